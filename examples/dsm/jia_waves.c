/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file jia_waves.c
 * A program for JIAJIA: a wave on a string, of which each process has a part. A lock guards the sum of what is left of it; its terms
 * are whole numbers, so that their order is of no account.
 */
#include <jia.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS 65536
#define STEPS  60

static void pluck(double *now, double *before, int from, int to)
{
    for (int i = from; i < to; i++) {
        now[i] = before[i] = sin(M_PI * 3 * i / (POINTS - 1));
    }
}

/** The string as it will be, in the place of the string as it was before. */
static void step(const double *now, double *before, int from, int to)
{
    for (int i = 0 == from ? 1 : from; i < to && i < POINTS - 1; i++) {
        before[i] = 2 * now[i] - before[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
    }
}

static long above(const double *now, int from, int to)
{
    long count = 0;

    for (int i = from; i < to; i++) {
        count += 0.5 < now[i];
    }
    return count;
}

int main(int argc, char **argv)
{
    int right = 1;
    LOCKDEC(sum_lock)

    jia_init(argc, argv);
    LOCKINIT(sum_lock)
    const int block = (POINTS + jiahosts - 1) / jiahosts;
    const int from = block * jiapid, end = from + block, to = end < POINTS ? end : POINTS;
    double *string[2];
    for (int i = 0; i < 2; i++) {
        string[i] = (double *) jia_alloc3(POINTS * sizeof(double), (unsigned long) block * sizeof(double), 0);
    }
    long *sum = (long *) jia_alloc(sizeof(*sum));

    pluck(string[0], string[1], from, to);
    jia_barrier();
    const double began = jia_clock();
    const unsigned statistics = jia_startstat();
    for (int s = 0; s < STEPS; s++) {
        step(string[s % 2], string[(s + 1) % 2], from, to);
        jia_barrier();
    }
    const long mine = above(string[STEPS % 2], from, to);
    LOCK(sum_lock)
    *sum += mine;
    jia_wtntw(sum);
    UNLOCK(sum_lock)
    BARRIER(all, jiahosts)
    const double took = jia_clock() - began;

    if (0 == jiapid) {
        double *alone[2] = {malloc(POINTS * sizeof(double)), malloc(POINTS * sizeof(double))};
        if (NULL == alone[0] || NULL == alone[1]) {
            jia_errexit("there is no memory for the serial answer");
        }
        pluck(alone[0], alone[1], 0, POINTS);
        for (int s = 0; s < STEPS; s++) {
            step(alone[s % 2], alone[(s + 1) % 2], 0, POINTS);
        }
        right = jia_stopstat() >= statistics && above(alone[STEPS % 2], 0, POINTS) == *sum
                && 0 == memcmp(alone[STEPS % 2], string[STEPS % 2], POINTS * sizeof(double));
        printf("jia_waves: %d processes have %s answer (%.3f s)\n", jiahosts,
               right ? "the serial" : "another", took);
        free(alone[0]);
        free(alone[1]);
    }
    jia_exit();
    return !right;
}
