/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_address.c
 * How processes learn each other's addresses. If a port is opened ahead of the modex, the modex has its address. Addresses that are told
 * later are published by name, through the launcher: the address of a port that is opened for a first window, and the address with a
 * network, when a process is met that shared memory does not reach.
 */
#include "dn_config.h"

#include "dn_ompi_int.h"

#include <stdio.h>
#include <time.h>

/** Key of dimmnet's addresses in the modex. All components share the port, so the key names no component. */
#define MODEX_KEY "dimmnet"

/** The first and the longest pause between two looks for an address that is not published yet. Each pause is twice the one before. */
#define PAUSE_LEAST_NS 1000000L
#define PAUSE_MOST_NS  32000000L

/** The modex's answers for the processes of this job, by rank. PMIx is not asked again for an address that is here: a question takes some
 * microseconds, and PMIx 5.0 leaks a little memory each time. */
static struct {
    opal_mutex_t asking; /**< held while PMIx is asked */
    opal_mutex_t lock;   /**< protects `ranks` and `of` */
    uint32_t ranks;      /**< elements of `of`: one for each process of the job; 0: not yet allocated */
    struct {
        uint8_t *bytes; /**< the address and the byte behind it; NULL: not asked yet, or nothing was told */
        size_t len;
    } * of;
} modex = {.asking = OPAL_MUTEX_STATIC_INIT, .lock = OPAL_MUTEX_STATIC_INIT};

static char *told[DN_OMPI_ADDRESSES]; /**< names of the published addresses; NULL: not published */

/** The name under which a process publishes an address. @return the caller's to free(); NULL: no memory. */
static char *name_of(enum dn_ompi_address which, const opal_process_name_t *proc)
{
    static const char *const what[] = {[DN_OMPI_ADDRESS_FIRST] = "first", [DN_OMPI_ADDRESS_FAR] = "far"};
    char *name;

    return 0 > asprintf(&name, "dimmnet.%s.%lu.%lu", what[which], (unsigned long) proc->jobid,
                        (unsigned long) proc->vpid)
               ? NULL
               : name;
}

int dn_ompi_address_tell_modex(void *bytes, size_t len)
{
    int rc;

    OPAL_MODEX_SEND_STRING(rc, DN_OMPI_MODEX_GLOBAL, (char *) (uintptr_t) MODEX_KEY, bytes, len);
    return rc;
}

int dn_ompi_address_tell(enum dn_ompi_address which, void *bytes, size_t len)
{
    int rc;

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

/** Ask the modex. @param[out] bytes_p  The caller's to free(). @return false: the modex has nothing of the process. */
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

/** Copy the kept answer for a process of this job. @param[out] bytes_p  The caller's to free(). @return false: no answer is kept, or no
 * memory. */
static bool modex_recall(uint32_t rank, uint8_t **bytes_p, size_t *len_p)
{
    *bytes_p = NULL;
    opal_mutex_lock(&modex.lock);
    if (rank < modex.ranks && NULL != modex.of[rank].bytes) {
        *len_p = modex.of[rank].len;
        *bytes_p = malloc(*len_p);
        if (NULL != *bytes_p) {
            memcpy(*bytes_p, modex.of[rank].bytes, *len_p);
        }
    }
    opal_mutex_unlock(&modex.lock);
    return NULL != *bytes_p;
}

/** Keep an answer, unless there is no memory. */
static void modex_keep(uint32_t rank, const uint8_t *bytes, size_t len)
{
    opal_mutex_lock(&modex.lock);
    if (NULL == modex.of) {
        modex.of = calloc(dn_ompi_job_size(), sizeof(*modex.of));
        modex.ranks = NULL == modex.of ? 0 : dn_ompi_job_size();
    }
    if (rank < modex.ranks && NULL == modex.of[rank].bytes) {
        modex.of[rank].bytes = malloc(len);
        if (NULL != modex.of[rank].bytes) {
            memcpy(modex.of[rank].bytes, bytes, len);
            modex.of[rank].len = len;
        }
    }
    opal_mutex_unlock(&modex.lock);
}

/** As modex_ask(), but an answer for a process of this job is kept. One thread asks at a time: the client of PMIx 5.0 mixes up the answers
 * when several threads ask at once, since it goes on reading a question after the thread has its answer. */
static bool modex_find(const opal_process_name_t *proc, uint8_t **bytes_p, size_t *len_p)
{
    const bool is_kept = OPAL_PROC_MY_NAME.jobid == proc->jobid;
    bool found = is_kept && modex_recall(proc->vpid, bytes_p, len_p);

    /* All processes of a job open their ports at the same stage. If this process opened its port after the modex, so did they, and the
     * modex has no addresses of them. Of the processes of another job this is not known. */
    if (found || (DN_OMPI_MODEX_WAITS && is_kept && NULL != told[DN_OMPI_ADDRESS_FIRST])) {
        return found;
    }
    opal_mutex_lock(&modex.asking);
    /* Another thread may have asked for the same process meanwhile. */
    found = is_kept && modex_recall(proc->vpid, bytes_p, len_p);
    if (!found) {
        found = modex_ask(proc, bytes_p, len_p);
        if (found && is_kept) {
            modex_keep(proc->vpid, *bytes_p, *len_p);
        }
    }
    opal_mutex_unlock(&modex.asking);
    return found;
}

/** How long to wait for an address, in seconds: the time limit for silent processes. If silent processes are never given up, it is the
 * default limit, since an address may never be published. */
static uint32_t patience_s(void)
{
    dn_config_t usual;

    dn_config_init(&usual);
    return 0 != dn_ompi_params.port.timeout_s ? dn_ompi_params.port.timeout_s : usual.timeout_s;
}

/** As dn_ompi_look_up(). */
static int address_look_up(enum dn_ompi_address which, const opal_process_name_t *proc, void **bytes_p,
                           size_t *len_p)
{
    char *name = name_of(which, proc);
    const int rc = NULL == name ? OPAL_ERR_OUT_OF_RESOURCE : dn_ompi_look_up(name, proc, bytes_p, len_p);

    free(name);
    return rc;
}

int dn_ompi_address_await(enum dn_ompi_address which, const opal_process_name_t *proc, void **bytes_p,
                          size_t *len_p)
{
    const uint64_t until = dn_ompi_clock_ns() + patience_s() * UINT64_C(1000000000);
    struct timespec pause = {.tv_nsec = PAUSE_LEAST_NS};
    int rc = address_look_up(which, proc, bytes_p, len_p);

    while (OPAL_ERR_NOT_FOUND == rc && dn_ompi_clock_ns() < until) {
        dn_progress(dn_ompi_port());
        (void) nanosleep(&pause, NULL);
        pause.tv_nsec = PAUSE_MOST_NS > pause.tv_nsec ? 2 * pause.tv_nsec : pause.tv_nsec;
        rc = address_look_up(which, proc, bytes_p, len_p);
    }
    return rc;
}

bool dn_ompi_address_recall(const opal_process_name_t *proc, void **bytes_p, size_t *len_p)
{
    uint8_t *bytes;
    const bool found = modex_find(proc, &bytes, len_p);

    *bytes_p = bytes;
    return found;
}

int dn_ompi_address_find(const opal_process_name_t *proc, void **bytes_p, size_t *len_p)
{
    if (dn_ompi_address_recall(proc, bytes_p, len_p)) {
        return OPAL_SUCCESS;
    }
    int rc = address_look_up(DN_OMPI_ADDRESS_FIRST, proc, bytes_p, len_p);
    if (OPAL_SUCCESS == rc && (NULL == *bytes_p || 0 == *len_p)) {
        free(*bytes_p);
        return OPAL_ERR_NOT_FOUND;
    }
    return rc;
}
