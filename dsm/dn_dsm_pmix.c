/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_pmix.c
 * How the processes of a launcher with PMIx find each other. The launcher passes what each process tells to all of them at once, in a
 * fence. PMIx is loaded when it is needed, and is not linked, since most programs do not need it.
 *
 * A fence waits for all processes of the job. So before the first fence each process checks its rank and the size of the job. Processes that
 * are only a part of the job are refused.
 */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <dlfcn.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DN_DSM_PMIX_LIBRARY "libpmix.so.2"

/** The functions of PMIx that are used. */
static struct {
    __typeof__(PMIx_Init) *init;
    __typeof__(PMIx_Finalize) *finalize;
    __typeof__(PMIx_Put) *put;
    __typeof__(PMIx_Commit) *commit;
    __typeof__(PMIx_Fence_nb) *fence;
    __typeof__(PMIx_Get) *get;
} dn_dsm_pmix;
static pmix_proc_t dn_dsm_pmix_us; /**< this process */
/** The state of PMIx, as far as this file has begun it. */
static enum {
    DN_DSM_PMIX_CLOSED,
    DN_DSM_PMIX_OPEN,
    DN_DSM_PMIX_ENDED /**< another part of the program has finalized PMIx; a log line has said so */
} dn_dsm_pmix_state;

/** The fence; there is one at a time. A fence for which this process has waited in vain may still end: no other fence is started before. A
 * thread of PMIx writes this when the fence ends. */
static struct {
    uint32_t under_way; /**< not 0: the fence has not ended. Atomic */
    /** Fences that have ended well so far: a fence ends well in all processes or in none. The name of what is told before a fence has the
     * number of that fence. So no process takes what another process has told at another time. */
    uint32_t count;
    pmix_status_t status; /**< of the last fence that has ended */
} dn_dsm_pmix_fence;

static dn_status_t dn_dsm_pmix_failed(const char *what, pmix_status_t status)
{
    if (PMIX_ERR_INIT == status && DN_DSM_PMIX_OPEN == dn_dsm_pmix_state) {
        dn_dsm_pmix_state = DN_DSM_PMIX_ENDED;
        dn_log_error("shared memory: PMIx was finalized in this process, and the memory is open: call "
                     "PMIx_Finalize() no more often than PMIx_Init(), or set DN_DSM_FOLDER, where the "
                     "processes meet without it");
    } else if (DN_DSM_PMIX_ENDED != dn_dsm_pmix_state) {
        dn_log_error("shared memory: %s of PMIx has failed (%d): set DN_DSM_FOLDER, where the processes meet "
                     "without it",
                     what, (int) status);
    }
    return DN_ERR_ACCESS;
}

/** Look up a function of a library. */
static bool dn_dsm_pmix_find(void *library, const char *name, void *function, size_t size)
{
    void *const symbol = dlsym(library, name);

    memcpy(function, &symbol, size);
    return NULL != symbol;
}

static dn_status_t dn_dsm_pmix_load(void)
{
    /* PMIx stays loaded, since it has threads. */
    const int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    void *library = dlopen(DN_DSM_PMIX_LIBRARY, how);

    if (NULL == library) {
        /* The folder that dimmnet was built with: the loader may not look there. */
        library = dlopen(DN_PMIX_LIBDIR "/" DN_DSM_PMIX_LIBRARY, how);
    }
    if (NULL == library
        || !dn_dsm_pmix_find(library, "PMIx_Init", &dn_dsm_pmix.init, sizeof(dn_dsm_pmix.init))
        || !dn_dsm_pmix_find(library, "PMIx_Finalize", &dn_dsm_pmix.finalize, sizeof(dn_dsm_pmix.finalize))
        || !dn_dsm_pmix_find(library, "PMIx_Put", &dn_dsm_pmix.put, sizeof(dn_dsm_pmix.put))
        || !dn_dsm_pmix_find(library, "PMIx_Commit", &dn_dsm_pmix.commit, sizeof(dn_dsm_pmix.commit))
        || !dn_dsm_pmix_find(library, "PMIx_Fence_nb", &dn_dsm_pmix.fence, sizeof(dn_dsm_pmix.fence))
        || !dn_dsm_pmix_find(library, "PMIx_Get", &dn_dsm_pmix.get, sizeof(dn_dsm_pmix.get))) {
        dn_log_error("shared memory: no folder is named where the processes meet, and PMIx, by which the "
                     "launcher would "
                     "have them meet, is not loaded (%s): set DN_DSM_FOLDER",
                     dlerror());
        return DN_ERR_UNSUPPORTED;
    }
    return DN_OK;
}

/** A flag for a call of PMIx. The macros of PMIx are not used, since they call functions of the library in some versions. */
static pmix_info_t dn_dsm_pmix_flag(const char *name)
{
    pmix_info_t flag = {.value = {.type = PMIX_BOOL, .data.flag = true}};

    snprintf(flag.key, sizeof(flag.key), "%s", name);
    return flag;
}

/** Look up a value that the server of this host has. The call does not wait for a value that is not there: a fence has brought all that was
 * told before it. */
static pmix_status_t dn_dsm_pmix_get(pmix_rank_t rank, const char *name, pmix_value_t **value_p)
{
    const pmix_info_t at_once = dn_dsm_pmix_flag(PMIX_IMMEDIATE);
    pmix_proc_t whom = dn_dsm_pmix_us;

    whom.rank = rank;
    return dn_dsm_pmix.get(&whom, name, &at_once, 1, value_p);
}

/** Has this process the rank that the launcher gives it, and are these all processes of the job? */
static dn_status_t dn_dsm_pmix_agree(const dn_dsm_t *dsm)
{
    pmix_value_t *value = NULL;
    uint32_t size = 0;

    const pmix_status_t status = dn_dsm_pmix_get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &value);
    if (PMIX_SUCCESS != status) {
        return dn_dsm_pmix_failed("the size of the job", status);
    }
    size = value->data.uint32;
    free(value);
    if (dn_dsm_pmix_us.rank != dsm->rank || size != dsm->ranks) {
        dn_log_error(
            "shared memory: the launcher knows rank %u of %u as rank %u of %u: all processes of a job "
            "open the memory, or meet in DN_DSM_FOLDER",
            (unsigned) dsm->rank, (unsigned) dsm->ranks, (unsigned) dn_dsm_pmix_us.rank, (unsigned) size);
        return DN_ERR_PARAM;
    }
    return DN_OK;
}

/** The name under which a process tells. @param[in] fence  The number of the fence that brings it. */
static void dn_dsm_pmix_name(uint32_t fence, const char *what, pmix_key_t name)
{
    snprintf(name, sizeof(pmix_key_t), "dn_dsm.%u.%s", (unsigned) fence, what);
}

static dn_status_t dn_dsm_pmix_tell(dn_dsm_t *dsm, const char *what, const void *bytes, size_t len)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT,
                          .data.bo = {.bytes = (char *) (uintptr_t) bytes, .size = len}};
    pmix_key_t name;

    (void) dsm;
    dn_dsm_pmix_name(dn_dsm_pmix_fence.count + 1, what, name);
    pmix_status_t status = dn_dsm_pmix.put(PMIX_GLOBAL, name, &value);
    status = PMIX_SUCCESS != status ? status : dn_dsm_pmix.commit();
    return PMIX_SUCCESS == status ? DN_OK : dn_dsm_pmix_failed("a word to the others", status);
}

/** pmix_op_cbfunc_t: the fence has ended. A thread of PMIx calls this. */
static void dn_dsm_pmix_ended(pmix_status_t status, void *arg)
{
    (void) arg;
    dn_dsm_pmix_fence.status = status;
    dn_dsm_pmix_fence.count += PMIX_SUCCESS == status;
    /* W0: pairs with R0: a thread that finds the fence ended finds the status and the count set. */
    dn_store_release_u32(&dn_dsm_pmix_fence.under_way, 0);
}

static dn_status_t dn_dsm_pmix_together(dn_dsm_t *dsm)
{
    const uint64_t until = dn_dsm_meet_until(dsm);
    const pmix_info_t collect = dn_dsm_pmix_flag(PMIX_COLLECT_DATA);
    pmix_proc_t all = dn_dsm_pmix_us;

    all.rank = PMIX_RANK_WILDCARD;
    if (0 != dn_load_acquire_u32(&dn_dsm_pmix_fence.under_way)) {
        /* The last fence of this memory has not ended: a log line has named what it waits for. */
        return DN_ERR_UNREACH;
    }
    dn_store_relaxed_u32(&dn_dsm_pmix_fence.under_way, 1);
    const pmix_status_t status = dn_dsm_pmix.fence(&all, 1, &collect, 1, dn_dsm_pmix_ended, NULL);
    if (PMIX_OPERATION_SUCCEEDED == status) {
        /* The fence has ended at once: PMIx does not call the function. */
        dn_dsm_pmix_ended(PMIX_SUCCESS, NULL);
    } else if (PMIX_SUCCESS != status) {
        dn_store_relaxed_u32(&dn_dsm_pmix_fence.under_way, 0);
        return dn_dsm_pmix_failed("a fence", status);
    }
    /* R0 */
    while (0 != dn_load_acquire_u32(&dn_dsm_pmix_fence.under_way)) {
        const dn_status_t waited = dn_dsm_meet_pause(dsm, until, "a process of the job", "a fence of PMIx");
        if (DN_OK != waited) {
            return waited;
        }
    }
    return PMIX_SUCCESS == dn_dsm_pmix_fence.status ? DN_OK
                                                    : dn_dsm_pmix_failed("a fence", dn_dsm_pmix_fence.status);
}

static dn_status_t dn_dsm_pmix_hear(dn_dsm_t *dsm, uint32_t rank, const char *what, void *bytes, size_t *len)
{
    pmix_value_t *value = NULL;
    pmix_key_t name;

    (void) dsm;
    dn_dsm_pmix_name(dn_dsm_pmix_fence.count, what, name);
    const pmix_status_t status = dn_dsm_pmix_get(rank, name, &value);
    if (PMIX_ERR_INIT == status) {
        return dn_dsm_pmix_failed("a question", status);
    }
    if (PMIX_SUCCESS != status) {
        dn_log_error("shared memory: PMIx has no \"%s\" of rank %u (%d): see what that process says, or set "
                     "DN_DSM_FOLDER, where the processes meet without PMIx",
                     what, (unsigned) rank, (int) status);
        return DN_ERR_UNREACH;
    }
    if (PMIX_BYTE_OBJECT != value->type) {
        dn_log_error("shared memory: PMIx has \"%s\" of rank %u, but not as bytes (type %u): another library "
                     "uses the name %s",
                     what, (unsigned) rank, (unsigned) value->type, name);
        if (PMIX_STRING == value->type) {
            free(value->data.string);
        }
        free(value);
        return DN_ERR_PROTO;
    }
    /* More bytes than there is room for are cut off, as those of a file are. */
    *len = value->data.bo.size < *len ? value->data.bo.size : *len;
    memcpy(bytes, value->data.bo.bytes, *len);
    free(value->data.bo.bytes);
    free(value);
    return DN_OK;
}

static dn_status_t dn_dsm_pmix_open(dn_dsm_t *dsm, const char *folder, dn_group_key_t *key)
{
    size_t len = sizeof(*key);
    dn_status_t status = dn_dsm_pmix_load();

    (void) folder;
    if (DN_OK != status) {
        return status;
    }
    if (0 != dn_load_acquire_u32(&dn_dsm_pmix_fence.under_way)) {
        dn_log_error(
            "shared memory: an earlier fence of PMIx, which this process waited for in vain, has not "
            "ended: start the job again, or set DN_DSM_FOLDER, where the processes meet without it");
        return DN_ERR_UNREACH;
    }
    const pmix_status_t begun = dn_dsm_pmix.init(&dn_dsm_pmix_us, NULL, 0);
    if (PMIX_SUCCESS != begun) {
        return dn_dsm_pmix_failed("the beginning", begun);
    }
    dn_dsm_pmix_state = DN_DSM_PMIX_OPEN;
    status = dn_dsm_pmix_agree(dsm);
    if (DN_OK == status && 0 == dsm->rank) {
        status = dn_dsm_meet_key(key);
    }
    status =
        DN_OK != status ? status : dn_dsm_meet_all(dsm, "key", 0 == dsm->rank ? key : NULL, sizeof(*key));
    status = DN_OK != status ? status : dn_dsm_pmix_hear(dsm, 0, "key", key, &len);
    if (DN_OK == status && sizeof(*key) != len) {
        dn_log_error("shared memory: rank 0 tells by PMIx what has not the 16 bytes of a key");
        status = DN_ERR_PROTO;
    }
    return status;
}

static void dn_dsm_pmix_close(dn_dsm_t *dsm)
{
    (void) dsm;
    if (DN_DSM_PMIX_OPEN == dn_dsm_pmix_state) {
        (void) dn_dsm_pmix.finalize(NULL, 0);
    }
    dn_dsm_pmix_state = DN_DSM_PMIX_CLOSED;
}

const dn_dsm_meet_t dn_dsm_meet_pmix = {.open = dn_dsm_pmix_open,
                                        .close = dn_dsm_pmix_close,
                                        .tell = dn_dsm_pmix_tell,
                                        .together = dn_dsm_pmix_together,
                                        .hear = dn_dsm_pmix_hear};
