/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_progress.h
 * The one progress callback of an MPI process, and how the process waits (dn_wait.h).
 *
 * Open MPI calls the callback in opal_progress(), so in every loop that waits for a request. It receives from
 * the port, then calls the functions that components have added, in that order. It is there from the first
 * dn_ompi_open() to the last dn_ompi_close(), ahead of which each component removes its functions. While
 * nobody has added one, the port is looked at in some of the calls.
 *
 * MPI_Wait and the like loop inside of Open MPI. So the callback waits within them, anew in each call, and within
 * dn_ompi_progress_wait(): once it was called in vain, back to back, for as long as the policy says, it
 * yields, or sleeps within the call. Between two calls of one wait the loop looks at what it waits for: that
 * is the loop's part of S1 in dn_wait.h. In any other call, MPI_Test or MPI_Iprobe say, it never sleeps,
 * however tight the loop: the program may compute between them. Other parts of Open MPI that have something
 * to do during a sleep, file operations say, ring no bell: each of their steps may be late by a sleep,
 * DN_WAIT_NAP_MAX_US at most.
 *
 * Where the messages of the process come by other transports of Open MPI, too, sleeps are those of
 * DN_WAIT_BLIND. Where all do, the callback never waits, since it is not asked to; but our own loops do so.
 *
 * Threads: functions may be added and removed by any, while others are in progress. A thread that holds the
 * port's lock does not sleep.
 */
#ifndef DN_OMPI_PROGRESS_H
#define DN_OMPI_PROGRESS_H

#include "dn_ompi.h"

#include "dn_atomic.h"
#include "dn_wait.h"

/** Go on with something. @return how many events there were. */
typedef int (*dn_ompi_progress_fn_t)(void);

/** Which messages of MPI a component carries. */
enum dn_ompi_carries {
    DN_OMPI_CARRIES_NONE,
    DN_OMPI_CARRIES_SOME, /**< as a BTL among others */
    DN_OMPI_CARRIES_ALL
};

/** How many windows of this process take messages: private. */
DN_API extern unsigned dn_ompi_served;
/** Count windows that take messages. Any thread. @param[in] more  Below 0: so many take none any more. */
DN_API void dn_ompi_serve(int more);
/** May others wait for this process? A component that polls memory of its own looks at the port now and then. */
static inline bool dn_ompi_serves(void)
{
    return 0 != dn_load_relaxed(&dn_ompi_served);
}

/** Have a function called, after the port was looked at. */
DN_API void dn_ompi_progress_add(dn_ompi_progress_fn_t fn, enum dn_ompi_carries carries);
/** Have it called no more; another thread may still be in it. Nothing, when it was not added. */
DN_API void dn_ompi_progress_remove(dn_ompi_progress_fn_t fn);

/** Do all messages of MPI go through us? The same in all processes of a job, once MPI_Init has chosen. */
DN_API bool dn_ompi_carries_all(void);

/** Whether a loop in vain gives its core away early: it shares the core with processes, or the policy says so. Whether
 * threads of this one share it, each finds out itself: dn_ompi_is_crowded(). */
DN_API bool dn_ompi_shares_core(void);

/** Has this thread found, in its last turns in vain, that another one of the process waits, too? It yields in
 * each turn then. A thread that computes meanwhile is not found: as in Open MPI, the kernel shares the core. */
DN_API bool dn_ompi_is_crowded(void);

/** A wait in a loop of ours, all zero when it begins. */
typedef struct dn_ompi_wait {
    dn_wait_t super;
    uint64_t events; /**< of the process, when it was called last */
    unsigned turns;
    unsigned lively; /**< turns still to come in each of which messages are looked for */
} dn_ompi_wait_t;

/**
 * Between two looks in vain of a loop that is ours: opal_progress(), in each turn or in some, and dn_wait().
 *
 * @param[in] steps  As in dn_wait().
 * @return whether it has slept.
 */
DN_API bool dn_ompi_wait(dn_ompi_wait_t *wait, uint64_t steps);

/** Another thread may sleep for what this one has just done. */
DN_API void dn_ompi_wait_ring(void);
/** A request has ended: where there are threads, the one that waits for it may sleep, and no peer rings for
 * it any more. */
static inline void dn_ompi_wait_tell(void)
{
    if (OPAL_UNLIKELY(opal_using_threads())) {
        dn_ompi_wait_ring();
    }
}

/** opal_progress() for a loop that ends when something comes, and does nothing else. */
DN_API void dn_ompi_progress_wait(void);
/** opal_progress() for a call that waits for nothing, however often it is made: it yields where cores are
 * shared, or another thread waits, and never sleeps. */
DN_API void dn_ompi_progress_once(void);

/** Look again whether this process shares its cores: it has another peer. dn_ompi_connect() does so. */
DN_API void dn_ompi_progress_look(void);

/** @name For dn_ompi.c */
/** @{ */
void dn_ompi_progress_open(dn_port_t *port);
void dn_ompi_progress_close(void);
/** @} */

#endif
