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
 * written before. */
DN_DEVICE_API void dn_log_mute(int mute);

/** A buffer of so many bytes holds every sentence. */
#define DN_SENTENCE_MAX 512

/** Copy each answer of this thread to @p sentence, of DN_SENTENCE_MAX bytes, until dn_log_keep(NULL). A later answer replaces an
 * earlier one. The caller may have to write the last answer as an error. */
void dn_log_keep(char *sentence);

#endif
