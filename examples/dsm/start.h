/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file start.h
 * What the programs of this folder share: they open the memory as the environment says, end with a sentence when a call fails, and
 * say at their end whether the answer is that of a serial program. */
#ifndef DN_EXAMPLE_START_H
#define DN_EXAMPLE_START_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <dimmnet/dn_dsm.h>

/** End this process unless @p status is DN_OK. libdn_dsm has said why. */
static inline void need(dn_status_t status, const char *what)
{
    if (DN_OK != status) {
        fprintf(stderr, "%s: %s\n", what, dn_strerror(status));
        exit(1);
    }
}

static inline dn_dsm_t *start(void)
{
    dn_dsm_config_t config;
    dn_dsm_t *dsm;

    need(dn_dsm_config_env(&config), "dn_dsm_config_env");
    need(dn_dsm_open(&config, &dsm), "dn_dsm_open");
    return dsm;
}

/** Memory for so many bytes. */
static inline void *share(dn_dsm_t *dsm, size_t bytes, dn_dsm_home_t home)
{
    void *at;

    need(dn_dsm_alloc(dsm, bytes, home, 0, &at), "dn_dsm_alloc");
    return at;
}

static inline void barrier(dn_dsm_t *dsm)
{
    need(dn_dsm_barrier(dsm), "dn_dsm_barrier");
}

static inline double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/** Close. Rank 0 says how it went; with DN_DSM_STAT in the environment, also what it took. @return the status of the program. */
static inline int end(dn_dsm_t *dsm, const char *name, int right, double took, double serial)
{
    const uint32_t rank = dn_dsm_rank(dsm), ranks = dn_dsm_ranks(dsm);
    dn_dsm_stat_t stat;
    char text[1000];

    dn_dsm_stat(dsm, &stat);
    dn_dsm_stat_text(&stat, text, sizeof(text));
    need(dn_dsm_close(dsm), "dn_dsm_close");
    if (0 == rank) {
        printf("%s: %u processes have %s answer (%.3f s, serial %.3f s)\n", name, (unsigned) ranks,
               right ? "the serial" : "another", took, serial);
        if (NULL != getenv("DN_DSM_STAT")) {
            fputs(text, stdout);
        }
    }
    return !right;
}

#endif
