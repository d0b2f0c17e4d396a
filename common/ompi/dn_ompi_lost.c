/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_lost.c
 * Processes that are lost: which of them end the job. The user reads of a loss once for each host, because when a host
 * is cut off, every process elsewhere loses every process there.
 */
#include "dn_config.h"

#include "dn_ompi_int.h"

#include <inttypes.h>
#include <time.h>

#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"

/** Seconds. If libdimmnet has spoken of a host within this time, no further text is shown for a lost process there. */
#define SAID_FOR 10

/** The text before a rank, by which libdimmnet names a process in its sentences. */
#define NAMED_AS "PID "

/** The host of a process to which this process has connected. */
typedef struct place {
    uint64_t host; /**< hash of the host's name; 0: not known */
    time_t said;   /**< lost_seconds() when libdimmnet last spoke of the host; 0: never */
} place_t;

static struct {
    opal_mutex_t lock; /**< protects all: libdimmnet also logs from threads of its own */
    place_t *place;    /**< by rank in the job; of ranks that several jobs have, the last connected */
    size_t places;     /**< elements of place */
    bool other_jobs;   /**< this process has connected to processes of other jobs */
} dn_ompi_lost = {.lock = OPAL_MUTEX_STATIC_INIT};

static time_t lost_seconds(void)
{
    return (time_t) (dn_ompi_clock_ns() / UINT64_C(1000000000)) + 1;
}

/** The place of a rank; NULL: the host of the rank is not known. The lock is held. */
static place_t *place_of(uintmax_t rank)
{
    return rank < dn_ompi_lost.places && 0 != dn_ompi_lost.place[rank].host ? &dn_ompi_lost.place[rank]
                                                                            : NULL;
}

/** Make room for the place of a rank. The lock is held. @return false: no memory. */
static bool make_room(uint32_t rank)
{
    const size_t places = 2 * ((size_t) rank + 1);
    place_t *place;

    if (rank < dn_ompi_lost.places) {
        return true;
    }
    place = realloc(dn_ompi_lost.place, places * sizeof(*place));
    if (NULL == place) {
        return false;
    }
    memset(place + dn_ompi_lost.places, 0, (places - dn_ompi_lost.places) * sizeof(*place));
    dn_ompi_lost.place = place;
    dn_ompi_lost.places = places;
    return true;
}

void dn_ompi_lost_note(const opal_proc_t *proc)
{
    const bool other_job = OPAL_PROC_MY_NAME.jobid != proc->proc_name.jobid;
    const uint32_t rank = proc->proc_name.vpid;

    opal_mutex_lock(&dn_ompi_lost.lock);
    const bool known = !other_job && !dn_ompi_lost.other_jobs && NULL != place_of(rank);
    opal_mutex_unlock(&dn_ompi_lost.lock);
    /* Open MPI is asked for the host's name once only: Open MPI 5.0 makes a new string each time. */
    const uint64_t host = known ? 0 : dn_ompi_hash(DN_OMPI_HASH, opal_get_proc_hostname(proc));

    opal_mutex_lock(&dn_ompi_lost.lock);
    dn_ompi_lost.other_jobs = dn_ompi_lost.other_jobs || other_job;
    if (!known && make_room(rank) && host != dn_ompi_lost.place[rank].host) {
        dn_ompi_lost.place[rank] = (place_t){.host = host};
    }
    opal_mutex_unlock(&dn_ompi_lost.lock);
}

void dn_ompi_lost_forget(void)
{
    opal_mutex_lock(&dn_ompi_lost.lock);
    free(dn_ompi_lost.place);
    dn_ompi_lost.place = NULL;
    dn_ompi_lost.places = 0;
    dn_ompi_lost.other_jobs = false;
    opal_mutex_unlock(&dn_ompi_lost.lock);
}

uint64_t dn_ompi_lost_key(const char *sentence)
{
    const char *name = strstr(sentence, NAMED_AS);
    uint64_t key = dn_ompi_hash(DN_OMPI_HASH, sentence);
    char *rest;

    if (NULL == name) {
        return key;
    }
    const uintmax_t rank = strtoumax(name + strlen(NAMED_AS), &rest, 10);
    opal_mutex_lock(&dn_ompi_lost.lock);
    const place_t *about = place_of(rank);
    if (NULL != about) {
        const uint64_t host = about->host;

        for (size_t i = 0; i < dn_ompi_lost.places; i++) {
            if (host == dn_ompi_lost.place[i].host) {
                dn_ompi_lost.place[i].said = lost_seconds();
            }
        }
        /* The text behind the rank tells what has happened. */
        key = dn_ompi_hash(host, rest);
    }
    opal_mutex_unlock(&dn_ompi_lost.lock);
    return key;
}

bool dn_ompi_loss_matters(const opal_proc_t *proc)
{
    const bool mine =
        NULL == proc ? !dn_ompi_lost.other_jobs : OPAL_PROC_MY_NAME.jobid == proc->proc_name.jobid;

    /* Processes that have only sessions do not wait for each other at the end. So a process may have ended in order. */
    return mine && OMPI_MPI_STATE_NOT_INITIALIZED != ompi_mpi_state
           && OMPI_MPI_STATE_FINALIZE_STARTED > ompi_mpi_state && !ompi_async_mpi_finalize;
}

void dn_ompi_say_lost(const opal_proc_t *proc)
{
    const char *host = opal_get_proc_hostname(proc);
    const uint64_t key = dn_ompi_hash(dn_ompi_hash(DN_OMPI_HASH, "peer-lost"), host);
    bool said = false;

    if (NULL != proc) {
        opal_mutex_lock(&dn_ompi_lost.lock);
        const place_t *place = place_of(proc->proc_name.vpid);
        said = NULL != place && 0 != place->said && lost_seconds() - place->said <= SAID_FOR;
        opal_mutex_unlock(&dn_ompi_lost.lock);
    }
    if (!said) {
        dn_ompi_help_once(key, DN_OMPI_TEXT_PEER_LOST, opal_process_info.nodename,
                          NULL == proc ? "unknown" : OPAL_NAME_PRINT(proc->proc_name), host);
    }
}
