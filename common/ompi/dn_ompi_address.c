/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_address.c
 * How processes learn each other's addresses: from the modex where the port was opened in MPI_Init, and by name, through the launcher,
 * what is told later. That is the address of a port that was opened for a first window, and the one with a network, once somebody
 * is elsewhere.
 */
#include "dn_config.h"

#include "dn_ompi_int.h"

#include <stdio.h>
#include <time.h>

#include "ompi/runtime/mpiruntime.h"

/** Key of our addresses in the modex; all components share the port, so it is none's own. */
#define MODEX_KEY "dimmnet"

/** Pauses between two looks for what is not published yet. */
#define PAUSE_LEAST_NS 1000000L
#define PAUSE_MOST_NS  32000000L

/** What the modex says of the processes of this job, by rank. It is asked once of each, since a question to PMIx takes some
 * microseconds, and PMIx 5.0 leaks a little memory each time. */
static struct {
    opal_mutex_t lock;
    uint32_t ranks;
    struct {
        uint8_t *bytes; /**< NULL: not asked yet, or nothing was told */
        size_t len;
    } * of;
} modex = {.lock = OPAL_MUTEX_STATIC_INIT};

static char *told[DN_OMPI_ADDRESSES]; /**< names under which this process has published; NULL: nothing */

char *dn_ompi_name(const char *what, const opal_process_name_t *proc)
{
    char *name;

    return 0 > asprintf(&name, "dimmnet.%s.%lu.%lu", what, (unsigned long) proc->jobid,
                        (unsigned long) proc->vpid)
               ? NULL
               : name;
}

/** As dn_ompi_name(). */
static char *name_of(enum dn_ompi_address which, const opal_process_name_t *proc)
{
    static const char *const what[] = {[DN_OMPI_ADDRESS_FIRST] = "first", [DN_OMPI_ADDRESS_FAR] = "far"};

    return dn_ompi_name(what[which], proc);
}

int dn_ompi_address_tell(enum dn_ompi_address which, void *bytes, size_t len)
{
    int rc;

    if (DN_OMPI_ADDRESS_FIRST == which && OMPI_MPI_STATE_INIT_COMPLETED > ompi_mpi_state) {
        OPAL_MODEX_SEND_STRING(rc, DN_OMPI_MODEX_GLOBAL, (char *) (uintptr_t) MODEX_KEY, bytes, len);
        return rc;
    }
    told[which] = name_of(which, &OPAL_PROC_MY_NAME);
    rc = NULL == told[which] ? OPAL_ERR_OUT_OF_RESOURCE : dn_ompi_publish(told[which], bytes, len);
    if (OPAL_SUCCESS != rc) {
        free(told[which]);
        told[which] = NULL;
    }
    return rc;
}

void dn_ompi_address_forget(void)
{
    for (int i = 0; i < DN_OMPI_ADDRESSES; i++) {
        if (NULL != told[i]) {
            dn_ompi_unpublish(told[i]);
            free(told[i]);
            told[i] = NULL;
        }
    }
    opal_mutex_lock(&modex.lock);
    for (uint32_t rank = 0; rank < modex.ranks; rank++) {
        free(modex.of[rank].bytes);
    }
    free(modex.of);
    modex.of = NULL;
    modex.ranks = 0;
    opal_mutex_unlock(&modex.lock);
}

/** Ask the modex. @param[out] bytes_p  The caller's to free(). @return false: it has nothing. */
static bool modex_ask(const opal_process_name_t *proc, uint8_t **bytes_p, size_t *len_p)
{
    int rc;

    *bytes_p = NULL;
    *len_p = 0;
    OPAL_MODEX_RECV_STRING(rc, (char *) (uintptr_t) MODEX_KEY, proc, bytes_p, len_p);
    if (OPAL_SUCCESS == rc && NULL != *bytes_p && 0 != *len_p) {
        return true;
    }
    free(*bytes_p);
    *bytes_p = NULL;
    return false;
}

/** The same, of a process of this job, where the answer is kept. The lock is held. */
static bool modex_recall(const opal_process_name_t *proc, uint8_t **bytes_p, size_t *len_p)
{
    const uint32_t rank = proc->vpid;

    if (NULL == modex.of) {
        modex.of = calloc(dn_ompi_job_size(), sizeof(*modex.of));
        modex.ranks = NULL == modex.of ? 0 : dn_ompi_job_size();
    }
    if (rank >= modex.ranks) {
        return modex_ask(proc, bytes_p, len_p);
    }
    if (NULL == modex.of[rank].bytes && !modex_ask(proc, &modex.of[rank].bytes, &modex.of[rank].len)) {
        return false;
    }
    *len_p = modex.of[rank].len;
    *bytes_p = malloc(*len_p);
    if (NULL == *bytes_p) {
        return false;
    }
    memcpy(*bytes_p, modex.of[rank].bytes, *len_p);
    return true;
}

/** The time limit for processes that are silent. Where these are never given up, still nobody waits for ever for what may not be
 * published: then it is the usual limit. */
static uint32_t patience_s(void)
{
    dn_config_t usual;

    dn_config_init(&usual);
    return 0 != dn_ompi_params.port.timeout_s ? dn_ompi_params.port.timeout_s : usual.timeout_s;
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

int dn_ompi_await(const char *name, const opal_process_name_t *proc, void **bytes_p, size_t *len_p)
{
    const uint64_t until = clock_ns() + patience_s() * UINT64_C(1000000000);
    struct timespec pause = {.tv_nsec = PAUSE_LEAST_NS};
    int rc = dn_ompi_look_up(name, proc, bytes_p, len_p);

    while (OPAL_ERR_NOT_FOUND == rc && clock_ns() < until) {
        dn_progress(dn_ompi_port());
        (void) nanosleep(&pause, NULL);
        pause.tv_nsec = PAUSE_MOST_NS > pause.tv_nsec ? 2 * pause.tv_nsec : pause.tv_nsec;
        rc = dn_ompi_look_up(name, proc, bytes_p, len_p);
    }
    return rc;
}

/** dn_ompi_look_up() or dn_ompi_await(). */
typedef int (*find_fn_t)(const char *name, const opal_process_name_t *proc, void **bytes_p, size_t *len_p);

static int find_address(find_fn_t find, enum dn_ompi_address which, const opal_process_name_t *proc,
                        void **bytes_p, size_t *len_p)
{
    char *name = name_of(which, proc);
    const int rc = NULL == name ? OPAL_ERR_OUT_OF_RESOURCE : find(name, proc, bytes_p, len_p);

    free(name);
    return rc;
}

int dn_ompi_address_await(enum dn_ompi_address which, const opal_process_name_t *proc, void **bytes_p,
                          size_t *len_p)
{
    return find_address(dn_ompi_await, which, proc, bytes_p, len_p);
}

int dn_ompi_address_find(const opal_process_name_t *proc, void **bytes_p, size_t *len_p)
{
    uint8_t *bytes;
    bool found;

    if (OPAL_PROC_MY_NAME.jobid == proc->jobid) {
        opal_mutex_lock(&modex.lock);
        found = modex_recall(proc, &bytes, len_p);
        opal_mutex_unlock(&modex.lock);
    } else {
        found = modex_ask(proc, &bytes, len_p);
    }
    if (found) {
        *bytes_p = bytes;
        return OPAL_SUCCESS;
    }
    int rc = find_address(dn_ompi_look_up, DN_OMPI_ADDRESS_FIRST, proc, bytes_p, len_p);
    if (OPAL_SUCCESS == rc && (NULL == *bytes_p || 0 == *len_p)) {
        free(*bytes_p);
        return OPAL_ERR_NOT_FOUND;
    }
    return rc;
}
