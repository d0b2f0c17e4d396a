/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_test.h
 * What the unit and device tests share: a seeded generator, byte patterns, and a watch on the error log.
 */
#ifndef DN_TEST_H
#define DN_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dimmnet.h"
#include "dn_atomic.h"

/** Exit status by which automake knows a skip. */
#define DN_TEST_SKIP 77

/** 64 bits from a generator that any seed starts; the same seed gives the same numbers anywhere. */
static inline uint64_t dn_test_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = *state;
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

/** A number in 0 .. bound - 1. */
static inline uint64_t dn_test_below(uint64_t *state, uint64_t bound)
{
    return dn_test_random(state) % bound;
}

/** A length in 0 .. max, each power of two about equally often. */
static inline size_t dn_test_length(uint64_t *state, size_t max)
{
    const unsigned bits = (unsigned) dn_test_below(state, 64 - (unsigned) __builtin_clzl(max | 1) + 1);
    const size_t len = 0 == bits ? 0 : (size_t) (dn_test_random(state) >> (64 - bits));
    return len < max ? len : max;
}

/**
 * Rounds of a test that repeats random ones: of @p all, so many of 100 as DN_TEST_ROUNDS says in the environment, but one at least.
 * bootstrap says so where each round takes long; the other builds run all of them.
 */
static inline unsigned dn_test_rounds(unsigned all)
{
    const char *share = getenv("DN_TEST_ROUNDS");
    const unsigned long percent = NULL == share ? 100 : strtoul(share, NULL, 10);

    if (0 == percent || 100 < percent) {
        fprintf(stderr, "DN_TEST_ROUNDS is %s, which is no number from 1 to 100\n", share);
        abort();
    }
    const unsigned rounds = (unsigned) ((uint64_t) all * percent / 100);
    return 0 == rounds ? 1 : rounds;
}

/** Byte i of the pattern that belongs to a key. */
static inline uint8_t dn_test_byte(uint64_t key, size_t i)
{
    return (uint8_t) (key * 31 + i * 131 + (i >> 8) * 17 + (i >> 16) * 7);
}

/** Bytes of the pattern that are made at once: of all of them i >> 8 is the same. */
enum { DN_TEST_BLOCK = 256 };

/** The bytes from i on, which begins a block. Nobody else sees them, so the thread sanitizer need not look at each. */
static __attribute__((noinline, no_sanitize_thread, unused)) void dn_test_block(uint8_t *block, uint64_t key,
                                                                                size_t i)
{
    const uint8_t first = dn_test_byte(key, i);

    for (unsigned k = 0; k < DN_TEST_BLOCK; k++) {
        block[k] = (uint8_t) (first + k * 131);
    }
}

static inline void dn_test_fill(void *buffer, size_t len, uint64_t key)
{
    uint8_t block[DN_TEST_BLOCK];

    for (size_t i = 0; i < len; i += DN_TEST_BLOCK) {
        dn_test_block(block, key, i);
        memcpy((uint8_t *) buffer + i, block, len - i < DN_TEST_BLOCK ? len - i : DN_TEST_BLOCK);
    }
}

/** First byte that is not the key's, or len. */
static inline size_t dn_test_mismatch(const void *buffer, size_t len, uint64_t key)
{
    const uint8_t *bytes = buffer;
    uint8_t block[DN_TEST_BLOCK];

    for (size_t i = 0; i < len; i += DN_TEST_BLOCK) {
        const size_t n = len - i < DN_TEST_BLOCK ? len - i : DN_TEST_BLOCK;

        dn_test_block(block, key, i);
        if (0 != memcmp(bytes + i, block, n)) {
            for (size_t k = 0; k < n; k++) {
                if (bytes[i + k] != block[k]) {
                    return i + k;
                }
            }
        }
    }
    return len;
}

/**
 * State of a process, by its letter in /proc: 'T' is stopped; 'Z' has ended, as far as its first thread goes, and was not waited
 * for.
 * @param[out] threads_p  How many it has; NULL: not wanted.
 * @return '\0': there is no such process.
 */
static inline char dn_test_state(uint32_t os_pid, long *threads_p)
{
    char path[32], line[512], state;
    long threads;

    snprintf(path, sizeof(path), "/proc/%u/stat", os_pid);
    FILE *file = fopen(path, "re");
    if (NULL == file) {
        return '\0';
    }
    /* The name in parentheses may hold anything. */
    const char *end = NULL == fgets(line, sizeof(line), file) ? NULL : strrchr(line, ')');
    fclose(file);
    if (NULL == end
        || 2
               != sscanf(end, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
                         &state, &threads)) {
        return '\0';
    }
    if (NULL != threads_p) {
        *threads_p = threads;
    }
    return state;
}

/** What was logged since the last look. */
typedef struct dn_test_log {
    unsigned count;
    int expected; /**< not 0: a sentence is what the test wants; else it ends the process */
    char last[512];
    dn_lock_t lock; /**< devices have threads of their own, which say sentences, too */
} dn_test_log_t;

/** One per program: each test is one translation unit or owns it through dn_world.c. */
extern dn_test_log_t dn_test_log;

static inline void dn_test_log_note(const char *sentence, void *arg)
{
    dn_test_log_t *log = arg;

    dn_lock(&log->lock);
    log->count++;
    snprintf(log->last, sizeof(log->last), "%s", sentence);
    if (!log->expected) {
        fprintf(stderr, "unexpected error log: %s\n", sentence);
        fflush(NULL);
        _Exit(1);
    }
    dn_unlock(&log->lock);
}

/** From now on an error log that no dn_test_log_expect() announced ends the process with a failure. */
static inline void dn_test_log_watch(void)
{
    memset(&dn_test_log, 0, sizeof(dn_test_log));
    dn_log_set(dn_test_log_note, &dn_test_log);
}

/** Calls that follow are to fail and to say so. */
static inline void dn_test_log_expect(void)
{
    dn_test_log.expected = 1;
    dn_test_log.count = 0;
    dn_test_log.last[0] = '\0';
}

/** Sentences since dn_test_log_expect(), where a thread of a device may be saying one. */
static inline unsigned dn_test_log_count(void)
{
    dn_lock(&dn_test_log.lock);
    const unsigned count = dn_test_log.count;
    dn_unlock(&dn_test_log.lock);
    return count;
}

/**
 * End of what dn_test_log_expect() began.
 * @return 1 when exactly `count` sentences came, each failure one, and the last is one clear line that
 *         holds `word` (NULL: any).
 */
static inline int dn_test_log_said(unsigned count, const char *word)
{
    const int right =
        count == dn_test_log.count
        && (0 == count || (NULL == strchr(dn_test_log.last, '\n') && 10 < strlen(dn_test_log.last)))
        && (NULL == word || NULL != strstr(dn_test_log.last, word));

    if (!right) {
        fprintf(stderr, "expected %u error log(s) about \"%s\", got %u, the last: \"%s\"\n", count,
                NULL == word ? "" : word, dn_test_log.count, dn_test_log.last);
    }
    dn_test_log.expected = 0;
    dn_test_log.count = 0;
    return right;
}

#endif
