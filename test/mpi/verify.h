/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file verify.h
 * What the MPI test programs share: a seeded generator, byte patterns that
 * belong to one message only, buffers with guard bytes, and one way to fail.
 *
 * Every function here may be called by several threads at once; none
 * communicates, except that a failure aborts the job.
 */
#ifndef DN_TEST_MPI_VERIFY_H
#define DN_TEST_MPI_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A generator (splitmix64): the same state gives the same numbers anywhere. */
typedef struct {
    uint64_t state;
} verify_rng_t;

/** 64 random bits. */
uint64_t verify_random(verify_rng_t *rng);

/** A number in 0 .. bound - 1; @p bound is at least 1. */
uint64_t verify_below(verify_rng_t *rng, uint64_t bound);

/** A size in 0 .. max, about equally often in each power of two. */
size_t verify_size(verify_rng_t *rng, size_t max);

/** Put 0 .. count - 1 into @p order in a random order. */
void verify_shuffle(verify_rng_t *rng, int *order, int count);

/** Mix four numbers (source, target, tag, sequence...) into a pattern key. */
uint64_t verify_key(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/** Fill @p size bytes with the pattern of @p key; any address alignment. */
void verify_fill(void *buffer, size_t size, uint64_t key);

/** Byte @p index of the pattern of @p key. */
unsigned char verify_byte(uint64_t key, size_t index);

/** First index that differs from the pattern, or @p size when none does. */
size_t verify_mismatch(const void *buffer, size_t size, uint64_t key);

/** Fail, naming @p what and the offset, unless the bytes are those of @p key. */
void verify_expect(const void *buffer, size_t size, uint64_t key, const char *what);

/** A 64-bit hash in which every byte and its position count. */
uint64_t verify_hash(const void *buffer, size_t size);

/**
 * Allocate @p size bytes between two guards of 64 bytes.
 *
 * @p skew (0 .. 63) is the distance of the buffer from a 64-byte boundary, so
 * that copies meet unaligned addresses. The caller frees with
 * verify_guard_free(), which fails when a guard byte was written.
 */
void *verify_guard_alloc(size_t size, size_t skew);
void verify_guard_check(const void *buffer, size_t size, size_t skew, const char *what);
void verify_guard_free(void *buffer, size_t size, size_t skew, const char *what);

/** Print program name, rank and the text on stderr and abort the job with 1. */
_Noreturn void verify_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Fail with @p what unless @p condition holds. */
void verify_that(bool condition, const char *what);

/** Read a whole number at least @p low, or end with a sentence naming @p option. */
uint64_t verify_number(const char *text, uint64_t low, const char *option);

/** An option that takes a whole number: -letter NAME. */
typedef struct {
    char letter; /**< 0 ends a list */
    const char *name;
    uint64_t *value; /**< in: the default */
    uint64_t low;
} verify_option_t;

/** Read the command line, or end with a sentence that says what it may hold. */
void verify_options(int argc, char **argv, const verify_option_t *options);

/** Seconds of the monotonic clock. */
double verify_seconds(void);

/** Sleep; MPI makes no progress meanwhile. */
void verify_sleep_ms(unsigned ms);

#endif
