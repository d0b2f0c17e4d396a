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

/** Write one such sentence where dn_log_answers_set() wants it: a device is passed over, and that is no
 * error. */
DN_DEVICE_API void dn_log_answer(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Drop what this thread has to say as an error, until dn_log_mute(0): something is tried again, and why it
 * fails has been said. */
DN_DEVICE_API void dn_log_mute(int mute);

/** Room for any sentence. */
#define DN_SENTENCE_MAX 512

/** Copy what this thread answers to @p sentence, of DN_SENTENCE_MAX bytes, until dn_log_keep(NULL): the caller may have to say it
 * as an error. The last answer stays. */
void dn_log_keep(char *sentence);

#endif
