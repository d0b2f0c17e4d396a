/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_detect.c
 * The list of ways to detect accesses, and the way that works everywhere: mprotect(2) and SIGSEGV. The kernel keeps an area for each run of
 * pages with the same permission, and limits the number of areas (vm.max_map_count). */
#include "dn_config.h"

#include "dn_dsm_detect.h"

#include <dn_log.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dn_dsm.h"

static const char *dn_dsm_segv_why_not(void)
{
    return NULL;
}

static int dn_dsm_segv_set(const dn_dsm_watch_t *watch, void *at, uint64_t len, dn_dsm_access_t from,
                           dn_dsm_access_t to)
{
    static const int prot[] = {
        [DN_DSM_NONE] = PROT_NONE, [DN_DSM_READ] = PROT_READ, [DN_DSM_WRITE] = PROT_READ | PROT_WRITE};

    (void) watch;
    (void) from;
    return 0 == mprotect(at, len, prot[to]) ? 0 : errno;
}

static int dn_dsm_segv_open(dn_dsm_watch_t *watch, void *at, uint64_t len)
{
    return dn_dsm_segv_set(watch, at, len, DN_DSM_WRITE, DN_DSM_NONE);
}

static void dn_dsm_segv_close(dn_dsm_watch_t *watch)
{
    (void) watch;
}

const dn_dsm_detect_t dn_dsm_detect_segv = {.name = "segv",
                                            .signal = SIGSEGV,
                                            .why_not = dn_dsm_segv_why_not,
                                            .open = dn_dsm_segv_open,
                                            .close = dn_dsm_segv_close,
                                            .set = dn_dsm_segv_set};

static const dn_dsm_detect_t *const dn_dsm_detects_all[] = {&dn_dsm_detect_segv, &dn_dsm_detect_uffd,
                                                            &dn_dsm_detect_scan};

/** Find the way of a name; for "auto" the first way that works. @param[out] why_p  Why the way does not work; NULL: it works.
 * @return NULL: there is no such way. */
static const dn_dsm_detect_t *dn_dsm_detect_find(const char *name, const char **why_p)
{
    const bool any = 0 == strcmp(name, "auto");

    for (size_t i = 0; i < sizeof(dn_dsm_detects_all) / sizeof(dn_dsm_detects_all[0]); i++) {
        const dn_dsm_detect_t *way = dn_dsm_detects_all[i];
        if (!any && 0 != strcmp(name, way->name)) {
            continue;
        }
        *why_p = way->why_not();
        if (!any || NULL == *why_p) {
            return way;
        }
    }
    *why_p = "there is no such way, but segv, uffd and scan";
    return NULL;
}

const char *dn_dsm_detect_name(size_t i)
{
    return i < sizeof(dn_dsm_detects_all) / sizeof(dn_dsm_detects_all[0]) ? dn_dsm_detects_all[i]->name
                                                                          : NULL;
}

const char *dn_dsm_detect_why_not(const char *name)
{
    const char *why;

    (void) dn_dsm_detect_find(name, &why);
    return why;
}

dn_dsm_watch_t dn_dsm_watch_by(const char *what, const dn_dsm_detect_t *way)
{
    return (dn_dsm_watch_t){
        .way = way, .what = what, .page_bytes = (uint32_t) sysconf(_SC_PAGESIZE), .fd = -1, .map = -1};
}

dn_status_t dn_dsm_detect_choose(const char *what, const char *name, dn_dsm_watch_t *watch_p)
{
    const char *why;
    const dn_dsm_detect_t *way = dn_dsm_detect_find(name, &why);

    if (NULL != why) {
        dn_log_error("%s: accesses cannot be detected by \"%s\": %s", what, name, why);
        return NULL == way ? DN_ERR_PARAM : DN_ERR_UNSUPPORTED;
    }
    *watch_p = dn_dsm_watch_by(what, way);
    return DN_OK;
}

int dn_dsm_watch_open(dn_dsm_watch_t *watch, uint8_t *at, uint64_t len)
{
    watch->at = at;
    return watch->way->open(watch, at, len);
}

void dn_dsm_watch_scan(const dn_dsm_watch_t *watch, void *at, uint64_t len, bool surely,
                       dn_dsm_found_fn_t found, void *arg)
{
    const int error = watch->way->scan(watch, at, len, surely, found, arg);

    if (0 != error) {
        dn_log_error("%s: the kernel does not tell which pages were written (%s): detect accesses by segv",
                     watch->what, strerror(error));
        _exit(EXIT_FAILURE);
    }
}

/** @name Lists and spans of pages */
/** @{ */
static int dn_dsm_list_compare(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *) a, right = *(const uint32_t *) b;

    return (left > right) - (left < right);
}

void dn_dsm_list_sort(dn_dsm_list_t *list)
{
    if (0 < list->count) {
        qsort(list->page, list->count, sizeof(*list->page), dn_dsm_list_compare);
    }
}

void dn_dsm_list_take(dn_dsm_list_t *list, dn_dsm_list_t *from)
{
    const dn_dsm_list_t empty = *list;

    *list = *from;
    *from = empty;
    dn_dsm_list_sort(list);
}

void dn_dsm_span_end(dn_dsm_span_t *span)
{
    const dn_dsm_watch_t *watch = span->watch;

    if (0 == span->count) {
        return;
    }
    const int error = watch->way->set(watch, watch->at + (uint64_t) span->first * watch->page_bytes,
                                      (uint64_t) span->count * watch->page_bytes, span->from, span->to);
    if (0 != error) {
        dn_log_error("%s: the kernel does not protect a page (%s): %s", watch->what, strerror(error),
                     EINVAL == error ? "where memory is locked, as by mlockall(2), detect accesses by segv"
                                     : "raise vm.max_map_count, or detect accesses by uffd");
        _exit(EXIT_FAILURE);
    }
    span->count = 0;
}

void dn_dsm_span_add(dn_dsm_span_t *span, uint32_t page, dn_dsm_access_t from, dn_dsm_access_t to)
{
    if (span->first + span->count != page || from != span->from || to != span->to) {
        dn_dsm_span_end(span);
        *span = (dn_dsm_span_t){.watch = span->watch, .first = page, .from = from, .to = to};
    }
    span->count++;
}
/** @} */
