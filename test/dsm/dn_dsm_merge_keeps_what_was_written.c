/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A merge replaces the bytes that equal the twin, and no others: neither those that differ before, nor those that another thread writes
 * meanwhile.
 */
#include "dn_config.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_atomic.h"
#include "../dn_test.h"
#include "dn_dsm_diff.h"

#define PAGE 4096u

enum { TURNS = 2000 };

static _Alignas(8) uint8_t page[PAGE], twin[PAGE], fresh[PAGE];
static uint32_t stop;

static void check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

static uint8_t lot(void)
{
    static uint32_t random = 1;

    random = random * 1664525u + 1013904223u;
    return (uint8_t) (random >> 24);
}

/** Every byte value of all three, and words of which some bytes differ. */
static void bytes_that_equal_the_twin_are_replaced(void)
{
    static uint8_t before[PAGE], old[PAGE];
    const unsigned turns = dn_test_rounds(TURNS);

    for (unsigned turn = 0; turn < turns; turn++) {
        for (size_t i = 0; i < PAGE; i++) {
            old[i] = twin[i] = lot();
            /* Also by the top bit alone, and by the lowest. */
            const uint8_t by = lot() % 8;
            before[i] = page[i] = (uint8_t) (twin[i] ^ (0 == by ? 0x80 : 1 == by ? 1 : 2 == by ? lot() : 0));
            fresh[i] = lot();
        }
        dn_dsm_merge(page, twin, fresh, PAGE);
        for (size_t i = 0; i < PAGE; i++) {
            check(page[i] == (before[i] == old[i] ? fresh[i] : before[i]),
                  "what equals the twin is replaced");
        }
        check(0 == memcmp(twin, fresh, PAGE), "the twin is what was fetched");
    }
}

/** Write the odd bytes of the first words again and again. */
static void *write_meanwhile(void *arg)
{
    uint8_t *last = arg;

    for (uint8_t value = 1; 0 == dn_load_relaxed_u32(&stop); value = (uint8_t) (value % 255 + 1)) {
        for (size_t i = 1; i < 64; i += 2) {
            check(last[i] == dn_load_relaxed(&page[i]), "what was written meanwhile stays");
            last[i] = value;
            dn_store_relaxed(&page[i], value);
        }
    }
    return NULL;
}

static void bytes_that_are_written_meanwhile_stay(void)
{
    static uint8_t last[64];
    const unsigned turns = dn_test_rounds(100 * TURNS);
    pthread_t writer;

    memset(page, 0, PAGE);
    memset(twin, 0, PAGE);
    memset(fresh, 0, PAGE);
    check(0 == pthread_create(&writer, NULL, write_meanwhile, last), "a thread starts");
    for (uint32_t turn = 0; turn < turns; turn++) {
        /* Of the odd bytes the others know nothing: they are 0, which is never written. */
        for (size_t i = 0; i < 64; i += 2) {
            fresh[i] = (uint8_t) turn;
        }
        dn_dsm_merge(page, twin, fresh, 64);
        for (size_t i = 0; i < 64; i += 2) {
            check((uint8_t) turn == dn_load_relaxed(&page[i]), "what was fetched comes");
        }
    }
    dn_store_relaxed_u32(&stop, 1);
    check(0 == pthread_join(writer, NULL), "the thread ends");
}

int main(void)
{
    bytes_that_equal_the_twin_are_replaced();
    bytes_that_are_written_meanwhile_stay();
    return 0;
}
