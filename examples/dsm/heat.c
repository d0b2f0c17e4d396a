/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file heat.c
 * Heat on a plate, in steps: each point becomes the mean of its four neighbours. Each process has a band of rows at home; of the
 * neighbours' bands it reads the row beside its own. A barrier ends each step.
 */
#include <string.h>

#include "start.h"

#define ROWS    1024
#define COLUMNS 1024
#define STEPS   50

typedef double row_t[COLUMNS];

static void begin(row_t *plate, int from, int to)
{
    for (int i = from; i < to; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            plate[i][j] = 0 == i ? 100 : 0 == j || COLUMNS - 1 == j ? j / 10.0 : 0;
        }
    }
}

static void step(row_t *restrict new, const row_t *restrict old, int from, int to)
{
    for (int i = from; i < to; i++) {
        for (int j = 1; j < COLUMNS - 1; j++) {
            new[i][j] = (old[i - 1][j] + old[i + 1][j] + old[i][j - 1] + old[i][j + 1]) / 4;
        }
    }
}

int main(void)
{
    dn_dsm_t *dsm = start();
    const int rank = (int) dn_dsm_rank(dsm), ranks = (int) dn_dsm_ranks(dsm);
    row_t *plate[2];
    double serial = 0;
    int right = 1;

    for (int p = 0; p < 2; p++) {
        plate[p] = share(dsm, ROWS * sizeof(row_t), DN_DSM_HOME_BLOCK);
    }
    const int from = ROWS * rank / ranks, to = ROWS * (rank + 1) / ranks;
    begin(plate[0], from, to);
    begin(plate[1], from, to);
    barrier(dsm);
    const double began = seconds();
    for (int s = 0; s < STEPS; s++) {
        step(plate[(s + 1) % 2], plate[s % 2], 0 == rank ? 1 : from, ranks - 1 == rank ? ROWS - 1 : to);
        barrier(dsm);
    }
    const double took = seconds() - began;
    if (0 == rank) {
        row_t *alone[2] = {malloc(ROWS * sizeof(row_t)), malloc(ROWS * sizeof(row_t))};
        if (NULL == alone[0] || NULL == alone[1]) {
            need(DN_ERR_NOMEM, "malloc");
        }
        begin(alone[0], 0, ROWS);
        begin(alone[1], 0, ROWS);
        serial = seconds();
        for (int s = 0; s < STEPS; s++) {
            step(alone[(s + 1) % 2], alone[s % 2], 1, ROWS - 1);
        }
        serial = seconds() - serial;
        right = 0 == memcmp(plate[STEPS % 2], alone[STEPS % 2], ROWS * sizeof(row_t));
        free(alone[0]);
        free(alone[1]);
    }
    barrier(dsm);
    return end(dsm, "heat", right, took, serial);
}
