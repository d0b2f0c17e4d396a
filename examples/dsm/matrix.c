/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file matrix.c
 * Product of two matrices: each process makes a band of rows of it. It reads its band of the first matrix, which it has at home, and
 * all of the second, which it fetches ahead.
 */
#include <string.h>

#include "start.h"

#define N 384

typedef double row_t[N];

static void fill(row_t *a, row_t *b, int from, int to)
{
    for (int i = from; i < to; i++) {
        for (int j = 0; j < N; j++) {
            a[i][j] = (i * 7 + j) % 13;
            b[i][j] = (i + j * 5) % 11;
        }
    }
}

static void multiply(row_t *restrict c, const row_t *restrict a, const row_t *restrict b, int from, int to)
{
    for (int i = from; i < to; i++) {
        row_t sum = {0};
        for (int k = 0; k < N; k++) {
            for (int j = 0; j < N; j++) {
                sum[j] += a[i][k] * b[k][j];
            }
        }
        memcpy(c[i], sum, sizeof(sum));
    }
}

int main(void)
{
    dn_dsm_t *dsm = start();
    const int rank = (int) dn_dsm_rank(dsm), ranks = (int) dn_dsm_ranks(dsm);
    const int from = N * rank / ranks, to = N * (rank + 1) / ranks;
    row_t *a = share(dsm, N * sizeof(row_t), DN_DSM_HOME_BLOCK);
    row_t *b = share(dsm, N * sizeof(row_t), DN_DSM_HOME_BLOCK);
    row_t *c = share(dsm, N * sizeof(row_t), DN_DSM_HOME_BLOCK);
    double serial = 0;
    int right = 1;

    fill(a, b, from, to);
    barrier(dsm);
    const double began = seconds();
    need(dn_dsm_prefetch(dsm, b, N * sizeof(row_t)), "dn_dsm_prefetch");
    multiply(c, a, b, from, to);
    barrier(dsm);
    const double took = seconds() - began;
    if (0 == rank) {
        static row_t x[N], y[N], z[N];
        fill(x, y, 0, N);
        serial = seconds();
        multiply(z, x, y, 0, N);
        serial = seconds() - serial;
        right = 0 == memcmp(c, z, sizeof(z));
    }
    barrier(dsm);
    return end(dsm, "matrix", right, took, serial);
}
