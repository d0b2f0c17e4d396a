/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dimmnet.h"

static dn_log_fn_t dn_log_fn;
static void *dn_log_arg;
static dn_log_fn_t dn_log_answer_fn;
static void *dn_log_answer_arg;
static _Thread_local int dn_log_muted;
static _Thread_local char *dn_log_kept;

void dn_log_set(dn_log_fn_t fn, void *arg)
{
    dn_log_arg = arg;
    dn_log_fn = fn;
}

void dn_log_answers_set(dn_log_fn_t fn, void *arg)
{
    dn_log_answer_arg = arg;
    dn_log_answer_fn = fn;
}

static void dn_log_write(const char *sentence)
{
    if (NULL != dn_log_fn) {
        dn_log_fn(sentence, dn_log_arg);
    } else {
        fprintf(stderr, "dimmnet: %s\n", sentence);
    }
}

void dn_log_error(const char *format, ...)
{
    char sentence[DN_SENTENCE_MAX];
    va_list args;

    if (dn_log_muted) {
        return;
    }
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    dn_log_write(sentence);
}

void dn_log_later(dn_log_later_t *later, const char *format, ...)
{
    va_list args;

    if (dn_log_muted || DN_LOG_LATER_MAX <= later->count++) {
        return;
    }
    va_start(args, format);
    vsnprintf(later->sentence[later->count - 1], sizeof(later->sentence[0]), format, args);
    va_end(args);
}

/** Sentences of a record that are kept. */
static uint32_t dn_log_later_kept(const dn_log_later_t *later)
{
    return DN_LOG_LATER_MAX < later->count ? DN_LOG_LATER_MAX : later->count;
}

void dn_log_take(dn_log_later_t *later, dn_log_later_t *taken)
{
    taken->count = later->count;
    memcpy(taken->sentence, later->sentence, dn_log_later_kept(later) * sizeof(later->sentence[0]));
    later->count = 0;
}

void dn_log_taken(const dn_log_later_t *taken)
{
    const uint32_t kept = dn_log_later_kept(taken);

    for (uint32_t i = 0; i < kept; i++) {
        dn_log_write(taken->sentence[i]);
    }
    if (kept < taken->count) {
        char sentence[DN_SENTENCE_MAX];
        snprintf(sentence, sizeof(sentence), "%" PRIu32 " more errors of the same moment are left out",
                 taken->count - kept);
        dn_log_write(sentence);
    }
}

int dn_log_mute(int mute)
{
    const int before = dn_log_muted;

    dn_log_muted = mute;
    return before;
}

void dn_log_answer(const char *format, ...)
{
    char sentence[DN_SENTENCE_MAX];
    va_list args;

    if (NULL == dn_log_answer_fn && NULL == dn_log_kept) {
        return;
    }
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    if (NULL != dn_log_kept) {
        memcpy(dn_log_kept, sentence, sizeof(sentence));
    }
    if (NULL != dn_log_answer_fn) {
        dn_log_answer_fn(sentence, dn_log_answer_arg);
    }
}

void dn_log_keep(char *sentence)
{
    dn_log_kept = sentence;
}

const char *dn_version(void)
{
    return DN_VERSION;
}

const char *dn_strerror(dn_status_t status)
{
    switch (status) {
    case DN_OK:
        return "done";
    case DN_INPROGRESS:
        return "in progress";
    case DN_ERR_AGAIN:
        return "no room now, try again";
    case DN_ERR_PARAM:
        return "bad parameter";
    case DN_ERR_RANGE:
        return "out of range";
    case DN_ERR_UNREACH:
        return "peer not reachable";
    case DN_ERR_UNSUPPORTED:
        return "not supported";
    case DN_ERR_NOMEM:
        return "out of memory or space";
    case DN_ERR_PROTO:
        return "malformed bytes from a peer";
    case DN_ERR_VERSION:
        return "another version of dimmnet";
    case DN_ERR_ACCESS:
        return "access refused";
    case DN_ERR_TRUNC:
        return "message longer than its room";
    case DN_ERR_CANCELED:
        return "taken back";
    }
    return "unknown status";
}
