/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file sort.c
 * Sort by digits of 8 bits, from the lowest on. Each process counts the digits of its part; from all counts it knows where its numbers go,
 * which may be anywhere: pages have several writers.
 */
#include <string.h>

#include "start.h"

#define NUMBERS (1 << 18)
#define DIGITS  256

static uint32_t drawn(uint32_t i)
{
    uint32_t x = i * 2654435761u + 12345;

    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ x >> 13;
}

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

    return (x > y) - (x < y);
}

/** Where the numbers of each digit of a process go. */
static void place(uint32_t (*count)[DIGITS], int rank, int ranks, uint32_t *at)
{
    uint32_t before = 0;

    for (int d = 0; d < DIGITS; d++) {
        for (int r = 0; r < ranks; r++) {
            if (r == rank) {
                at[d] = before;
            }
            before += count[r][d];
        }
    }
}

int main(void)
{
    dn_dsm_t *dsm = start();
    const int rank = (int) dn_dsm_rank(dsm), ranks = (int) dn_dsm_ranks(dsm);
    const uint32_t from = (uint32_t) ((uint64_t) NUMBERS * rank / ranks),
                   to = (uint32_t) ((uint64_t) NUMBERS * (rank + 1) / ranks);
    uint32_t *part[2];
    double serial = 0;
    int right = 1;

    for (int p = 0; p < 2; p++) {
        part[p] = share(dsm, NUMBERS * sizeof(uint32_t), DN_DSM_HOME_BLOCK);
    }
    uint32_t(*count)[DIGITS] = share(dsm, ranks * sizeof(*count), DN_DSM_HOME_CYCLIC);
    for (uint32_t i = from; i < to; i++) {
        part[0][i] = drawn(i);
    }
    barrier(dsm);
    const double began = seconds();
    for (int shift = 0, p = 0; shift < 32; shift += 8, p = !p) {
        uint32_t at[DIGITS];
        memset(count[rank], 0, sizeof(count[rank]));
        for (uint32_t i = from; i < to; i++) {
            count[rank][part[p][i] >> shift & (DIGITS - 1)]++;
        }
        barrier(dsm);
        place(count, rank, ranks, at);
        for (uint32_t i = from; i < to; i++) {
            part[!p][at[part[p][i] >> shift & (DIGITS - 1)]++] = part[p][i];
        }
        barrier(dsm);
    }
    const double took = seconds() - began;
    if (0 == rank) {
        uint32_t *alone = malloc(NUMBERS * sizeof(uint32_t));
        if (NULL == alone) {
            need(DN_ERR_NOMEM, "malloc");
        }
        for (uint32_t i = 0; i < NUMBERS; i++) {
            alone[i] = drawn(i);
        }
        serial = seconds();
        qsort(alone, NUMBERS, sizeof(uint32_t), compare);
        serial = seconds() - serial;
        right = 0 == memcmp(part[0], alone, NUMBERS * sizeof(uint32_t));
        free(alone);
    }
    barrier(dsm);
    return end(dsm, "sort", right, took, serial);
}
