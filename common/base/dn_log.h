/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_log.h
 * One sentence for each failure, written by the code that finds it first (dn_log_set() in dimmnet.h).
 */
#ifndef DN_LOG_H
#define DN_LOG_H

#include "dn_types.h"

/** Write one sentence: what is wrong, with which value, and what to do. No newline. */
DN_DEVICE_API void dn_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Write one such sentence to the function of dn_log_answers_set(): a device is passed over, and this is no error. */
DN_DEVICE_API void dn_log_answer(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Write no errors of this thread until dn_log_mute(0): the thread tries something again, and the reason why it fails has been
 * written before. @return what was set before. */
DN_DEVICE_API int dn_log_mute(int mute);

/** A buffer of so many bytes holds every sentence. */
#define DN_SENTENCE_MAX 512

/** Copy each answer of this thread to @p sentence, of DN_SENTENCE_MAX bytes, until dn_log_keep(NULL). A later answer replaces an
 * earlier one. The caller may have to write the last answer as an error. */
void dn_log_keep(char *sentence);

/** Most sentences of a dn_log_later_t. */
#define DN_LOG_LATER_MAX 8u

/** Sentences that are formed under a lock, and logged when the lock has been let go: the receiver of log lines may take long, or call the
 * library. All zero at first. The thread that forms a sentence also takes it out before it lets go of the lock. */
typedef struct dn_log_later {
    uint32_t count; /**< sentences, with those for which there was no room */
    char sentence[DN_LOG_LATER_MAX][DN_SENTENCE_MAX]; /**< oldest first */
} dn_log_later_t;

/** Form a sentence, as for dn_log_error(): dn_log_mute() holds now, and not when the sentence is written. Beyond DN_LOG_LATER_MAX sentences, sentences are only counted. */
DN_DEVICE_API void dn_log_later(dn_log_later_t *later, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Move the sentences to a record of the calling thread. The lock is still held. */
DN_DEVICE_API void dn_log_take(dn_log_later_t *later, dn_log_later_t *taken);

/** Write the sentences that dn_log_take() has moved. The lock has been let go. */
DN_DEVICE_API void dn_log_taken(const dn_log_later_t *taken);

#endif
