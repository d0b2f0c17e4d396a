/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_progress.h
 * The one progress callback of an MPI process, and how the process waits (dn_wait.h).
 *
 * Open MPI calls the callback in opal_progress(), and so in every loop that waits for a request. The callback receives
 * from the port, then calls the functions that components have added, in that order. The callback is registered from the
 * first dn_ompi_open() to the last dn_ompi_close(). Each component removes its functions before that. While no function
 * is added, only some of the calls look at the port.
 *
 * MPI_Wait and similar functions loop inside of Open MPI. So the callback waits within them, anew in each call, and
 * within dn_ompi_progress_wait(). When it was called in vain, back to back, for as long as the policy says, it
 * yields, or sleeps within the call. Between two calls of one wait, the loop looks at its request: this
 * is the loop's part of S1 in dn_wait.h. In any other call, such as MPI_Test or MPI_Iprobe, the callback never sleeps,
 * however tight the loop is: the program may compute between the calls. Other parts of Open MPI may have work
 * during a sleep, such as file operations. They ring no bell: each of their steps may be late by a sleep,
 * at most DN_WAIT_NAP_MAX_US.
 *
 * Where messages of the process also come by other transports of Open MPI, sleeps are those of DN_WAIT_BLIND. Where
 * all messages come by other transports, the callback never waits, since no component asks for it; but dimmnet's own
 * loops do.
 *
 * Threads: any thread may add and remove functions, while other threads are in progress. A thread that holds the
 * port's lock does not sleep.
 */
#ifndef DN_OMPI_PROGRESS_H
#define DN_OMPI_PROGRESS_H

#include "dn_ompi.h"

#include "dn_atomic.h"
#include "dn_queue.h"
#include "dn_wait.h"

/** Make progress. @return the number of events. */
typedef int (*dn_ompi_progress_fn_t)(void);

/** Which messages of MPI a component carries. */
enum dn_ompi_carries {
    DN_OMPI_CARRIES_NONE,
    DN_OMPI_CARRIES_SOME, /**< as a BTL among other BTLs */
    DN_OMPI_CARRIES_ALL
};

/** How many windows of this process take messages. Only dn_ompi_serve() and dn_ompi_serves() use it. */
DN_API extern unsigned dn_ompi_served;
/** Count windows that take messages. Any thread. @param[in] more  Added to the number; below 0: so many windows have ended. */
DN_API void dn_ompi_serve(int more);
/** May other processes wait for this process? Then a component that polls memory of its own has to look at the port now and then. */
static inline bool dn_ompi_serves(void)
{
    return 0 != dn_load_relaxed(&dn_ompi_served);
}

/** Have a function called, after the port was looked at. */
DN_API void dn_ompi_progress_add(dn_ompi_progress_fn_t fn, enum dn_ompi_carries carries);
/** Have a function called no more. Another thread may still be in the function. Does nothing when the function was not added. */
DN_API void dn_ompi_progress_remove(dn_ompi_progress_fn_t fn);

/** Do all messages of MPI go through dimmnet? The same in all processes of a job, once MPI_Init has chosen. */
DN_API bool dn_ompi_carries_all(void);

/** Whether a loop in vain gives its core away early: the core is shared with other processes, or the policy says so. Whether
 * threads of this process share the core, each thread finds out itself: dn_ompi_is_crowded(). */
DN_API bool dn_ompi_shares_core(void);

/** Has this thread found, in its last turns in vain, that another thread of the process waits, too? This thread yields in
 * each turn then. A thread that computes meanwhile is not found: as in Open MPI, the kernel shares the core. */
DN_API bool dn_ompi_is_crowded(void);

/** A wait in a loop of dimmnet's own. All zero when it begins. One thread uses it. */
typedef struct dn_ompi_wait {
    dn_wait_t super;
    uint64_t events; /**< the process's number of calls with events, at the last look */
    unsigned turns;  /**< calls of dn_ompi_wait() */
    unsigned lively; /**< in so many more turns, each turn looks for messages */
} dn_ompi_wait_t;

/**
 * Called between two looks in vain of a loop of dimmnet's own: opal_progress(), in each turn or in some, and dn_wait().
 *
 * @param[in] steps  As in dn_wait().
 * @return true: the call has slept.
 */
DN_API bool dn_ompi_wait(dn_ompi_wait_t *wait, uint64_t steps);

/** Wake other threads: a thread may sleep until this thread has done what it has just done. */
DN_API void dn_ompi_wait_ring(void);
/** Tell that a request has ended. Where there are threads, the thread that waits for the request may sleep, and no peer
 * rings for it any more. */
static inline void dn_ompi_wait_tell(void)
{
    if (OPAL_UNLIKELY(opal_using_threads())) {
        dn_ompi_wait_ring();
    }
}

/** opal_progress() for a loop that ends when something comes, and does nothing else. */
DN_API void dn_ompi_progress_wait(void);
/** opal_progress() for a call that does not wait, even if the program repeats it. It yields where cores are
 * shared, or where another thread waits, and never sleeps. */
DN_API void dn_ompi_progress_once(void);

/** @name Work that is set aside
 * A handler runs with the port's lock held, and its sender gets no room in the ring meanwhile. So a handler gives up no object that it may
 * be the last to hold: the end of a datatype calls functions of the user, which may wait for messages, and the end of a communicator takes
 * locks of other components. Such work is done when progress has left the port, or when the user frees a request.
 */
/** @{ */
/** Set aside: a member of the object that the work is for. */
typedef struct dn_ompi_aside {
    dn_queue_item_t item;
    void (*fn)(struct dn_ompi_aside *aside); /**< does the work; may free the object */
} dn_ompi_aside_t;
/** Set work aside. Any thread, also in a handler. */
DN_API void dn_ompi_set_aside(dn_ompi_aside_t *aside, void (*fn)(dn_ompi_aside_t *aside));
/** Do the work that was set aside. The caller is in no handler; where it may be in one, as dn_ompi_inside() says, nothing is done. */
DN_API void dn_ompi_do_aside(void);
/** Forget the work that was set aside: what it is for is about to be freed. */
DN_API void dn_ompi_drop_aside(void);
/** Count handlers that call functions of Open MPI, which may make progress in turn: such a call begins (1) or has ended (-1). */
DN_API void dn_ompi_inside(int more);
/** @} */

/** Look again whether this process shares its cores. dn_ompi_connect() calls this for each new peer. */
DN_API void dn_ompi_progress_look(void);

/** @name For dn_ompi.c */
/** @{ */
void dn_ompi_progress_open(dn_port_t *port);
void dn_ompi_progress_close(void);
/** @} */

#endif
