/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file lu.c
 * A matrix as the product of a lower and an upper one, in place. Rows are a page each and go round: process r has rows r, r + ranks, ...
 * at home. In step k all take row k off theirs below it; the barrier tells that the next row is ready.
 */
#include <string.h>

#include "start.h"

#define N   512
#define ROW 512 /* numbers in a page of 4 KiB; on larger pages rows share them */

typedef double row_t[ROW];

static void fill(row_t *a, int first, int by)
{
    for (int i = first; i < N; i += by) {
        for (int j = 0; j < N; j++) {
            a[i][j] = i == j ? N : 1.0 / (1 + i + j);
        }
    }
}

/** The rows below k that are first, first + by, ... */
static void eliminate(row_t *a, int k, int first, int by)
{
    for (int i = first; i < N; i += by) {
        if (i > k) {
            const double by_k = a[i][k] / a[k][k];
            a[i][k] = by_k;
            for (int j = k + 1; j < N; j++) {
                a[i][j] -= by_k * a[k][j];
            }
        }
    }
}

int main(void)
{
    dn_dsm_t *dsm = start();
    const int rank = (int) dn_dsm_rank(dsm), ranks = (int) dn_dsm_ranks(dsm);
    row_t *a = share(dsm, N * sizeof(row_t), DN_DSM_HOME_CYCLIC);
    double serial = 0;
    int right = 1;

    fill(a, rank, ranks);
    barrier(dsm);
    const double began = seconds();
    for (int k = 0; k < N - 1; k++) {
        eliminate(a, k, rank, ranks);
        barrier(dsm);
    }
    const double took = seconds() - began;
    if (0 == rank) {
        static row_t b[N];
        fill(b, 0, 1);
        serial = seconds();
        for (int k = 0; k < N - 1; k++) {
            eliminate(b, k, 0, 1);
        }
        serial = seconds() - serial;
        right = 0 == memcmp(a, b, sizeof(b));
    }
    barrier(dsm);
    return end(dsm, "lu", right, took, serial);
}
