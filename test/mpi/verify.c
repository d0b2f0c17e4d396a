/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "verify.h"

#include <errno.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GUARD_SIZE 64
#define GUARD_BYTE 0xA5

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t verify_random(verify_rng_t *rng)
{
    rng->state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(rng->state);
}

uint64_t verify_below(verify_rng_t *rng, uint64_t bound)
{
    return verify_random(rng) % bound;
}

size_t verify_size(verify_rng_t *rng, size_t max)
{
    unsigned bits = 0;

    while (bits < 63 && (max >> bits) > 0) {
        bits++;
    }
    size_t top = (size_t) 1 << verify_below(rng, bits + 1);
    size_t size = verify_below(rng, top);
    return size < max ? size : max;
}

void verify_shuffle(verify_rng_t *rng, int *order, int count)
{
    for (int i = 0; i < count; i++) {
        int j = (int) verify_below(rng, (uint64_t) i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

uint64_t verify_key(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return mix(mix(mix(mix(a + 1) + b) + c) + d);
}

/* Word w of a pattern; two multiplications keep 64 MiB a matter of 50 ms. */
static inline uint64_t pattern_word(uint64_t key, size_t w)
{
    uint64_t x = (key + w) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    return x * UINT64_C(0xbf58476d1ce4e5b9);
}

void verify_fill(void *buffer, size_t size, uint64_t key)
{
    unsigned char *bytes = buffer;
    size_t i = 0;

    for (; i + 8 <= size; i += 8) {
        uint64_t word = pattern_word(key, i / 8);
        memcpy(bytes + i, &word, 8);
    }
    if (i < size) {
        uint64_t word = pattern_word(key, i / 8);
        memcpy(bytes + i, &word, size - i);
    }
}

unsigned char verify_byte(uint64_t key, size_t index)
{
    uint64_t word = pattern_word(key, index / 8);
    unsigned char bytes[8];

    memcpy(bytes, &word, 8);
    return bytes[index % 8];
}

size_t verify_mismatch(const void *buffer, size_t size, uint64_t key)
{
    const unsigned char *bytes = buffer;

    for (size_t i = 0; i < size; i += 8) {
        size_t length = size - i < 8 ? size - i : 8;
        uint64_t word = pattern_word(key, i / 8);
        if (0 != memcmp(bytes + i, &word, length)) {
            while (bytes[i] == verify_byte(key, i)) {
                i++;
            }
            return i;
        }
    }
    return size;
}

void verify_expect(const void *buffer, size_t size, uint64_t key, const char *what)
{
    size_t at = verify_mismatch(buffer, size, key);

    if (at < size) {
        verify_fail("%s: byte %zu of %zu is 0x%02x, expected 0x%02x", what, at, size,
                    ((const unsigned char *) buffer)[at], verify_byte(key, at));
    }
}

uint64_t verify_hash(const void *buffer, size_t size)
{
    const unsigned char *bytes = buffer;
    uint64_t hash = mix(size + 1);

    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return mix(hash);
}

void *verify_guard_alloc(size_t size, size_t skew)
{
    size_t whole = (GUARD_SIZE + skew + size + GUARD_SIZE + 63) / 64 * 64;
    unsigned char *base = aligned_alloc(64, whole);

    if (NULL == base) {
        verify_fail("no memory for a buffer of %zu bytes; run with smaller sizes", size);
    }
    memset(base, GUARD_BYTE, GUARD_SIZE + skew);
    memset(base + GUARD_SIZE + skew + size, GUARD_BYTE, GUARD_SIZE);
    return base + GUARD_SIZE + skew;
}

void verify_guard_check(const void *buffer, size_t size, size_t skew, const char *what)
{
    const unsigned char *bytes = buffer;

    for (size_t i = 1; i <= GUARD_SIZE + skew; i++) {
        if (GUARD_BYTE != *(bytes - i)) {
            verify_fail("%s: byte %zu before a buffer of %zu bytes was overwritten", what, i, size);
        }
    }
    for (size_t i = 0; i < GUARD_SIZE; i++) {
        if (GUARD_BYTE != bytes[size + i]) {
            verify_fail("%s: byte %zu after a buffer of %zu bytes was overwritten", what, i, size);
        }
    }
}

void verify_guard_free(void *buffer, size_t size, size_t skew, const char *what)
{
    verify_guard_check(buffer, size, skew, what);
    free((unsigned char *) buffer - GUARD_SIZE - skew);
}

void verify_fail(const char *format, ...)
{
    char text[512];
    int rank = -1;
    int running = 0;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    MPI_Initialized(&running);
    if (running) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    fprintf(stderr, "FAILED: %s: rank %d: %s\n", program_invocation_short_name, rank, text);
    fflush(stderr);
    if (running) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    exit(1);
}

void verify_that(bool condition, const char *what)
{
    if (!condition) {
        verify_fail("%s", what);
    }
}

uint64_t verify_number(const char *text, uint64_t low, const char *option)
{
    char *end = NULL;

    errno = 0;
    uint64_t value = strtoull(text, &end, 0);
    if (0 != errno || end == text || '\0' != *end || '-' == *text || value < low) {
        fprintf(stderr, "%s: %s takes a whole number of at least %llu, not \"%s\"\n",
                program_invocation_short_name, option, (unsigned long long) low, text);
        exit(2);
    }
    return value;
}

static _Noreturn void show_usage(const verify_option_t *options)
{
    fprintf(stderr, "usage: %s", program_invocation_short_name);
    for (; 0 != options->letter; options++) {
        fprintf(stderr, " [-%c %s]", options->letter, options->name);
    }
    fprintf(stderr, "\n");
    exit(2);
}

void verify_options(int argc, char **argv, const verify_option_t *options)
{
    char letters[64] = "";
    int found;

    for (size_t i = 0; 0 != options[i].letter && 2 * i + 2 < sizeof(letters); i++) {
        snprintf(letters + 2 * i, sizeof(letters) - 2 * i, "%c:", options[i].letter);
    }
    while (-1 != (found = getopt(argc, argv, letters))) {
        const verify_option_t *option = options;
        while (0 != option->letter && found != option->letter) {
            option++;
        }
        if (0 == option->letter) {
            show_usage(options);
        }
        *option->value = verify_number(optarg, option->low, (const char[]){'-', option->letter, '\0'});
    }
    if (optind < argc) {
        show_usage(options);
    }
}

double verify_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

void verify_sleep_ms(unsigned ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long) (ms % 1000) * 1000000};

    while (-1 == nanosleep(&pause, &pause) && EINTR == errno) {
    }
}
