/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_jia.c
 * JIAJIA's interface. It uses dn_dsm.h only. */
#include "dn_config.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "jia.h"

int jiapid;
int jiahosts;
int jia_lock_index;

static dn_dsm_t *jia_dsm;         /**< NULL: before jia_init(), and after jia_exit() */
static int jia_next;              /**< home of the next jia_alloc() */
static struct timespec jia_began; /**< time of jia_init() */

void jia_error(const char *format, ...)
{
    char text[500];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    /* The line is written by one call, as other processes may write at the same time. */
    fprintf(stderr, "process %d: %s\n", jiapid, text);
    exit(EXIT_FAILURE);
}

/** End this process, unless a status is DN_OK. libdn_dsm has logged what is wrong. */
static void jia_need(dn_status_t status, const char *what)
{
    if (DN_OK != status) {
        jia_error("%s: %s", what, dn_strerror(status));
    }
}

/** The open memory; ends this process if none is open. */
static dn_dsm_t *jia_open(const char *what)
{
    if (NULL == jia_dsm) {
        jia_error("%s before jia_init(), or after jia_exit()", what);
    }
    return jia_dsm;
}

void jia_init(int argc, char **argv)
{
    dn_dsm_config_t config;

    (void) argc;
    (void) argv;
    jia_need(dn_dsm_config_env(&config), "jia_init");
    jia_need(dn_dsm_open(&config, &jia_dsm), "jia_init");
    jiapid = (int) dn_dsm_rank(jia_dsm);
    jiahosts = (int) dn_dsm_ranks(jia_dsm);
    jia_next = 0;
    jia_lock_index = 0;
    (void) clock_gettime(CLOCK_MONOTONIC, &jia_began);
}

void jia_exit(void)
{
    dn_dsm_t *dsm = jia_open("jia_exit");

    jia_dsm = NULL;
    jia_need(dn_dsm_close(dsm), "jia_exit");
}

/** @name Memory */
/** @{ */
/** Allocate. @param[in] blocks  @p n sizes of blocks, in bytes; NULL: all blocks have @p block bytes. @param[in] host  Home of the first. */
static unsigned long jia_take(unsigned long bytes, unsigned long block, const int *blocks, int n, int host)
{
    dn_dsm_t *dsm = jia_open("jia_alloc");
    const unsigned long page = (unsigned long) sysconf(_SC_PAGESIZE);
    const unsigned long pages = bytes / page + (0 != bytes % page);
    int which = 0;
    void *at = NULL;

    if (0 == bytes || 0 >= n || 0 > host || host >= jiahosts) {
        jia_error("jia_alloc: %lu bytes by %d sizes of blocks, from process %d of %d on", bytes, n, host,
                  jiahosts);
    }
    uint16_t *home = malloc(pages * sizeof(*home));
    if (NULL == home) {
        jia_error("jia_alloc: there is no memory for a list of %lu pages", pages);
    }
    for (unsigned long first = 0; first < pages;) {
        const unsigned long size = NULL == blocks      ? block
                                   : 0 < blocks[which] ? (unsigned long) blocks[which]
                                                       : 0;
        const unsigned long some = size / page + (0 != size % page);
        if (0 == some) {
            jia_error("jia_alloc: a block of no bytes");
        }
        const unsigned long end = some < pages - first ? first + some : pages;
        while (first < end) {
            home[first++] = (uint16_t) host;
        }
        host = (host + 1) % jiahosts;
        which = 0 == host ? (which + 1) % n : which;
    }
    jia_need(dn_dsm_alloc_homes(dsm, bytes, home, &at), "jia_alloc");
    free(home);
    return (unsigned long) (uintptr_t) at;
}

unsigned long jia_alloc4(unsigned long bytes, const int *blocks, int n, int host)
{
    return jia_take(bytes, 0, blocks, n, host);
}

unsigned long jia_alloc3(unsigned long bytes, unsigned long block, int host)
{
    return jia_take(bytes, block, NULL, 1, host);
}

unsigned long jia_alloc2p(unsigned long bytes, int host)
{
    return jia_take(bytes, bytes, NULL, 1, host);
}

unsigned long jia_alloc2(unsigned long bytes, unsigned long block)
{
    return jia_take(bytes, block, NULL, 1, 0);
}

unsigned long jia_alloc1(unsigned long bytes)
{
    return jia_take(bytes, bytes, NULL, 1, 0);
}

unsigned long jia_alloc(unsigned long bytes)
{
    const unsigned long at = jia_take(bytes, bytes, NULL, 1, jia_next);

    jia_next = (jia_next + 1) % jiahosts;
    return at;
}
/** @} */

/** @name Synchronisation */
/** @{ */
void jia_lock(int lock)
{
    /* A number below zero becomes a large one, and dn_dsm_lock() refuses it. */
    jia_need(dn_dsm_lock(jia_open("jia_lock"), (uint32_t) lock), "jia_lock");
}

void jia_unlock(int lock)
{
    jia_need(dn_dsm_unlock(jia_open("jia_unlock"), (uint32_t) lock), "jia_unlock");
}

void jia_barrier(void)
{
    jia_need(dn_dsm_barrier(jia_open("jia_barrier")), "jia_barrier");
}

void jia_wait(void)
{
    jia_barrier();
}
/** @} */

double jia_clock(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) (now.tv_sec - jia_began.tv_sec) + 1e-9 * (double) (now.tv_nsec - jia_began.tv_nsec);
}

void jia_config(int what, int value)
{
    (void) what;
    (void) value;
}
