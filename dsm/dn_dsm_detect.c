/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_detect.c
 * The list of ways, and the one that works everywhere: mprotect(2) and SIGSEGV. The kernel keeps an area for each run of pages that
 * permit the same, and has a limit of them (vm.max_map_count). */
#include "dn_config.h"

#include "dn_dsm_detect.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "dn_dsm.h"

static const char *dn_dsm_segv_why_not(void)
{
    return NULL;
}

static int dn_dsm_segv_set(void *at, uint64_t len, dn_dsm_access_t from, dn_dsm_access_t to)
{
    static const int prot[] = {
        [DN_DSM_NONE] = PROT_NONE, [DN_DSM_READ] = PROT_READ, [DN_DSM_WRITE] = PROT_READ | PROT_WRITE};

    (void) from;
    return 0 == mprotect(at, len, prot[to]) ? 0 : errno;
}

static int dn_dsm_segv_open(void *at, uint64_t len)
{
    return dn_dsm_segv_set(at, len, DN_DSM_WRITE, DN_DSM_NONE);
}

static void dn_dsm_segv_close(void) {}

const dn_dsm_detect_t dn_dsm_detect_segv = {.name = "segv",
                                            .signal = SIGSEGV,
                                            .why_not = dn_dsm_segv_why_not,
                                            .open = dn_dsm_segv_open,
                                            .close = dn_dsm_segv_close,
                                            .set = dn_dsm_segv_set};

static const dn_dsm_detect_t *const dn_dsm_detects_all[] = {&dn_dsm_detect_segv, &dn_dsm_detect_uffd,
                                                            &dn_dsm_detect_scan};

const dn_dsm_detect_t *dn_dsm_detect_find(const char *name)
{
    for (size_t i = 0; i < sizeof(dn_dsm_detects_all) / sizeof(dn_dsm_detects_all[0]); i++) {
        const dn_dsm_detect_t *way = dn_dsm_detects_all[i];
        if (0 == strcmp(name, way->name) || (0 == strcmp(name, "auto") && NULL == way->why_not())) {
            return way;
        }
    }
    return NULL;
}

const char *dn_dsm_detect_name(size_t i)
{
    return i < sizeof(dn_dsm_detects_all) / sizeof(dn_dsm_detects_all[0]) ? dn_dsm_detects_all[i]->name
                                                                          : NULL;
}

const char *dn_dsm_detect_why_not(const char *name)
{
    const dn_dsm_detect_t *way = dn_dsm_detect_find(name);

    return NULL == way ? "there is no such way" : way->why_not();
}
