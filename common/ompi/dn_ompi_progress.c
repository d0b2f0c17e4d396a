/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "dn_ompi_int.h"
#include "dn_ompi_progress.h"

#include <assert.h>
#include <sched.h>

#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/btl/base/base.h"
#include "opal/runtime/opal_progress.h"

/** The most functions at a time. Each component adds one, coll_llcm two. */
#define FUNCTIONS 8

/** Calls in vain after which the callback calls dn_wait(): where cores are shared, and where they are not. A call takes about 50 ns. A
 * message that comes within POLLS_ALONE calls is not delayed by a look at the clock. */
#define POLLS_SHARED 10u
#define POLLS_ALONE  256u

/** After a thread has found that another thread of this process waits, too, it gives its core away in CROWDED turns in vain. */
#define CROWDED 32u

/** Where cores are shared, one turn in TURNS looks for messages. */
#define TURNS 8u
/** After a message, each of the next LIVELY turns looks for messages: more messages often follow. */
#define LIVELY 64u

/** While no function is added, one call in SELDOM looks at the port. */
#define SELDOM 8u
/** Of the calls that test requests, one in TESTS does all of Open MPI's work. */
#define TESTS 8u

static opal_mutex_t dn_ompi_progress_lock = OPAL_MUTEX_STATIC_INIT; /**< of the list of functions */

static struct {
    dn_port_t *port;
    unsigned count;                          /**< places in use in fn, with the places of removed functions */
    dn_ompi_progress_fn_t fn[FUNCTIONS];     /**< NULL: the function was removed */
    enum dn_ompi_carries carries[FUNCTIONS]; /**< by index of fn: what the function's component carries */
    unsigned most;                           /**< the most of these, an enum dn_ompi_carries */
    bool shared;                             /**< processes share cores */
    bool gives;                              /**< dn_ompi_shares_core() */
    bool blind;     /**< messages come by a transport that rings no bell; set when a wait begins */
    unsigned limit; /**< POLLS_SHARED or POLLS_ALONE; a crowded thread uses POLLS_SHARED */
    /* Any thread writes these, without a lock. They are hints: two threads may lose a count. */
    const void *waiter;        /**< dn_ompi_own of the thread that last waited in vain */
    unsigned polls;            /**< calls in vain, back to back */
    unsigned tests;            /**< calls of MPI_Test and its like, of a process without threads */
    uint64_t events;           /**< calls that had events */
    const uint32_t *strangers; /**< dn_strangers() of the port */
    uint32_t met;              /**< the value of *strangers that was last acted on */
    dn_fifo_t aside; /**< dn_ompi_set_aside(); a thread also looks without the lock whether it is empty */
    unsigned inside; /**< dn_ompi_inside() */
} dn_ompi_progress;

static opal_mutex_t dn_ompi_aside_lock = OPAL_MUTEX_STATIC_INIT; /**< of the list of what is set aside */

/** What the callback does when it was called in vain. */
enum when_in_vain {
    YIELDS, /**< yields where cores are shared or another thread waits, and never sleeps: the program may have other work */
    WAITS,  /**< calls dn_wait(), which may sleep */
    RETURNS, /**< returns at once: dn_ompi_wait() does the waiting, or this thread is in dn_wait() */
};

/** The state of a thread. Each call that waits uses it. So it lies where a thread finds it without a call: in the few bytes that the C
 * library keeps for libraries that are loaded later. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    dn_wait_t wait; /**< of the callback */
    enum when_in_vain in_vain;
    unsigned crowded; /**< turns of CROWDED that are left */
} dn_ompi_own;

/** Choose what the callback does in this thread when it was called in vain. @return the choice before. */
static inline enum when_in_vain in_vain_from_now(enum when_in_vain in_vain)
{
    const enum when_in_vain before = dn_ompi_own.in_vain;

    dn_ompi_own.in_vain = in_vain;
    return before;
}

/** opal_progress() with this choice. */
static void progress_that(enum when_in_vain in_vain)
{
    const enum when_in_vain before = in_vain_from_now(in_vain);

    opal_progress();
    dn_ompi_own.in_vain = before;
}

void dn_ompi_progress_once(void)
{
    progress_that(YIELDS);
}

void dn_ompi_progress_wait(void)
{
    progress_that(WAITS);
}

/** @name MPI_Wait and its like
 * Only these functions know that they wait: MPI_Test calls the callback in the same way. Open MPI calls them through a table, so that
 * components can put functions of their own around them.
 */
/** @{ */
static ompi_request_fns_t dn_ompi_stock; /**< Open MPI's functions */

/** Begin a new wait. The time that an earlier call waited says nothing of this call: its messages may all be here, and only turns of
 * Open MPI's own schedules may be left, for which no bell rings. Threads share the count of calls in vain. So the count is not reset where
 * there are threads: the wait of another thread goes on.
 * @return as in_vain_from_now(). */
static inline enum when_in_vain wait_begins(void)
{
    dn_wait_restart(&dn_ompi_own.wait);
    if (0 != dn_load_relaxed(&dn_ompi_progress.polls) && !opal_using_threads()) {
        dn_store_relaxed(&dn_ompi_progress.polls, 0);
    }
    return in_vain_from_now(WAITS);
}

/** End a wait. @return rc. */
static inline int wait_ends(enum when_in_vain before, int rc)
{
    dn_ompi_own.in_vain = before;
    return rc;
}

static int wait_for_one(ompi_request_t **request, ompi_status_public_t *status)
{
    const enum when_in_vain before = wait_begins();

    return wait_ends(before, dn_ompi_stock.req_wait(request, status));
}

static int wait_for_any(size_t count, ompi_request_t **requests, int *index, ompi_status_public_t *status)
{
    const enum when_in_vain before = wait_begins();

    return wait_ends(before, dn_ompi_stock.req_wait_any(count, requests, index, status));
}

static int wait_for_all(size_t count, ompi_request_t **requests, ompi_status_public_t *statuses)
{
    const enum when_in_vain before = wait_begins();

    return wait_ends(before, dn_ompi_stock.req_wait_all(count, requests, statuses));
}

static int wait_for_some(size_t count, ompi_request_t **requests, int *done, int *indices,
                         ompi_status_public_t *statuses)
{
    const enum when_in_vain before = wait_begins();

    return wait_ends(before, dn_ompi_stock.req_wait_some(count, requests, done, indices, statuses));
}

/** @} */

/** Look for messages, and call the added functions. @return events. */
static inline int look_once(unsigned count)
{
    int events = dn_progress(dn_ompi_progress.port);

    for (unsigned i = 0; i < count; i++) {
        /* Pairs with the release in dn_ompi_progress_add(): the data that the function works on was written before. */
        const dn_ompi_progress_fn_t fn = dn_load_acquire(&dn_ompi_progress.fn[i]);

        if (OPAL_LIKELY(NULL != fn)) {
            events += fn();
        }
    }
    return events;
}

/** @name MPI_Test and its like
 * Programs call these functions again and again, between pieces of their own work. Where all messages are dimmnet's, a test of requests
 * that are under way looks for messages only. If it finds none, the requests are as they were, since there are no other threads. Open
 * MPI's functions would make progress of all that there is, as nonblocking collectives of other components, and execute a fence: one call
 * in TESTS does so. Processes with threads, and those that share cores, leave all to these functions.
 */
/** @{ */
static inline bool is_under_way(const ompi_request_t *request)
{
    return OMPI_REQUEST_PML == request->req_type && OMPI_REQUEST_ACTIVE == request->req_state
           && !REQUEST_COMPLETE(request);
}

/** Are some of these requests under way, and is none of them complete, or of another type? */
static bool are_under_way(size_t count, ompi_request_t **requests)
{
    bool some = false;

    for (size_t i = 0; i < count; i++) {
        if (is_under_way(requests[i])) {
            some = true;
        } else if (OMPI_REQUEST_INACTIVE != requests[i]->req_state) {
            return false;
        }
    }
    return some;
}

/** Look for messages for a request that is under way. @return false: some came, or Open MPI's function has to be called. */
static bool look_in_vain(void)
{
    return dn_ompi_carries_all() && !dn_ompi_shares_core() && !opal_using_threads()
           && 0 != ++dn_ompi_progress.tests % TESTS
           && 0 == look_once(dn_load_relaxed(&dn_ompi_progress.count));
}

static int test_one(ompi_request_t **request, int *completed, ompi_status_public_t *status)
{
    if (is_under_way(*request) && look_in_vain()) {
        *completed = false;
        return OMPI_SUCCESS;
    }
    return dn_ompi_stock.req_test(request, completed, status);
}

static int test_any(size_t count, ompi_request_t **requests, int *index, int *completed,
                    ompi_status_public_t *status)
{
    if (are_under_way(count, requests) && look_in_vain()) {
        *index = MPI_UNDEFINED;
        *completed = false;
        return OMPI_SUCCESS;
    }
    return dn_ompi_stock.req_test_any(count, requests, index, completed, status);
}

static int test_all(size_t count, ompi_request_t **requests, int *completed, ompi_status_public_t *statuses)
{
    size_t i = 0;

    while (i < count && !is_under_way(requests[i])) {
        i++;
    }
    if (i < count && look_in_vain()) {
        *completed = false;
        return OMPI_SUCCESS;
    }
    return dn_ompi_stock.req_test_all(count, requests, completed, statuses);
}

static int test_some(size_t count, ompi_request_t **requests, int *done, int *indices,
                     ompi_status_public_t *statuses)
{
    if (are_under_way(count, requests) && look_in_vain()) {
        *done = 0;
        return OMPI_SUCCESS;
    }
    return dn_ompi_stock.req_test_some(count, requests, done, indices, statuses);
}
/** @} */

static void hook_requests(void)
{
    dn_ompi_stock = ompi_request_functions;
    ompi_request_functions.req_test = test_one;
    ompi_request_functions.req_test_any = test_any;
    ompi_request_functions.req_test_all = test_all;
    ompi_request_functions.req_test_some = test_some;
    ompi_request_functions.req_wait = wait_for_one;
    ompi_request_functions.req_wait_any = wait_for_any;
    ompi_request_functions.req_wait_all = wait_for_all;
    ompi_request_functions.req_wait_some = wait_for_some;
}

static void unhook_requests(void)
{
    if (wait_for_one == ompi_request_functions.req_wait && test_one == ompi_request_functions.req_test) {
        ompi_request_functions = dn_ompi_stock;
    }
}

/** Do messages come by a transport that rings no bell? */
static bool is_blind(void)
{
    mca_btl_base_selected_module_t *module;

    if (DN_OMPI_CARRIES_SOME != dn_load_relaxed(&dn_ompi_progress.most)) {
        return DN_OMPI_CARRIES_NONE == dn_load_relaxed(&dn_ompi_progress.most);
    }
    OPAL_LIST_FOREACH(module, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        const char *name = module->btl_component->btl_version.mca_component_name;

        /* A message of a process to itself is there when the process waits, unless another thread sends it. */
        if (0 != strcmp("dimmnet", name) && (dn_ompi_threads() || 0 != strcmp("self", name))) {
            return true;
        }
    }
    return false;
}

/** Progress the PML and all BTLs. @return how many events they report; opal_progress() does not report these. */
static int progress_hear(void)
{
    mca_btl_base_selected_module_t *module;
    /* pml/ob1 may have no such function: its transports make progress. */
    int heard = NULL != mca_pml.pml_progress ? mca_pml.pml_progress() : 0;

    if (mca_base_framework_is_open(&opal_btl_base_framework)) {
        OPAL_LIST_FOREACH(module, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
        {
            if (NULL != module->btl_component->btl_progress) {
                heard += module->btl_component->btl_progress();
            }
        }
    }
    return heard;
}

unsigned dn_ompi_served;

void dn_ompi_serve(int more)
{
    (void) dn_fetch_add_relaxed(&dn_ompi_served, (unsigned) more);
}

bool dn_ompi_is_crowded(void)
{
    return 0 != dn_ompi_own.crowded;
}

/**
 * After a call in vain: look whether another thread of this process waits, too. The two may want the same core, since it is not known how
 * many threads poll. Each waiting thread writes a word, and finds another thread there. A thread that waits alone finds itself, and only
 * reads.
 * @return the number of calls in vain after which the callback yields or waits.
 */
static inline unsigned look_for_threads(void)
{
    if (OPAL_UNLIKELY(opal_using_threads() && DN_WAIT_SPIN != (dn_wait_policy_t) dn_ompi_params.port.wait)) {
        const void *waiter = dn_load_relaxed(&dn_ompi_progress.waiter);

        if (waiter != &dn_ompi_own) {
            dn_store_relaxed(&dn_ompi_progress.waiter, &dn_ompi_own);
            dn_ompi_own.crowded = NULL == waiter ? 0 : CROWDED;
        } else if (0 != dn_ompi_own.crowded) {
            dn_ompi_own.crowded--;
        }
    }
    return 0 != dn_ompi_own.crowded ? POLLS_SHARED : dn_load_relaxed(&dn_ompi_progress.limit);
}

static unsigned wait_flags(void)
{
    return (dn_load_relaxed(&dn_ompi_progress.shared) ? DN_WAIT_SHARED : 0)
           | (dn_ompi_is_crowded() ? DN_WAIT_CROWDED : 0)
           | (dn_load_relaxed(&dn_ompi_progress.blind) ? DN_WAIT_BLIND : 0);
}

void dn_ompi_progress_look(void)
{
    const dn_wait_policy_t policy = (dn_wait_policy_t) dn_ompi_params.port.wait;
    const bool shared = dn_ompi_yields() || 0 != dn_oversubscribed(dn_ompi_progress.port);
    const bool gives = DN_WAIT_SPIN != policy && (DN_WAIT_YIELD == policy || shared);

    dn_store_relaxed(&dn_ompi_progress.shared, shared);
    dn_store_relaxed(&dn_ompi_progress.gives, gives);
    dn_store_relaxed(&dn_ompi_progress.limit, gives ? POLLS_SHARED : POLLS_ALONE);
}

bool dn_ompi_carries_all(void)
{
    return DN_OMPI_CARRIES_ALL == dn_load_relaxed(&dn_ompi_progress.most);
}

bool dn_ompi_shares_core(void)
{
    return dn_load_relaxed(&dn_ompi_progress.gives);
}

/** Enough calls were in vain: yield, call dn_wait(), or return, as this thread has chosen. @return 1: dn_wait() has yielded or slept, so
 * that Open MPI need not yield; 0: no event. */
static __attribute__((noinline)) int wait_in_callback(void)
{
    if (RETURNS == dn_ompi_own.in_vain || DN_OMPI_CARRIES_NONE == dn_load_relaxed(&dn_ompi_progress.most)) {
        return 0;
    }
    if (YIELDS == dn_ompi_own.in_vain) {
        (void) sched_yield();
        return 0;
    }
    if (0 == dn_ompi_own.wait.began_ns) {
        dn_store_relaxed(&dn_ompi_progress.blind, is_blind());
    }
    dn_ompi_own.in_vain = RETURNS;
    const dn_wait_end_t end =
        dn_wait(dn_ompi_progress.port, &dn_ompi_own.wait, 0, DN_WAIT_TIGHT | wait_flags());
    dn_ompi_own.in_vain = WAITS;
    return DN_WAIT_LOOK != end;
}

/** @name Work that is set aside */
/** @{ */
void dn_ompi_set_aside(dn_ompi_aside_t *aside, void (*fn)(dn_ompi_aside_t *aside))
{
    aside->fn = fn;
    opal_mutex_lock(&dn_ompi_aside_lock);
    dn_fifo_push(&dn_ompi_progress.aside, &aside->item);
    opal_mutex_unlock(&dn_ompi_aside_lock);
}

static dn_ompi_aside_t *next_aside(void)
{
    opal_mutex_lock(&dn_ompi_aside_lock);
    dn_ompi_aside_t *aside = dn_fifo_pop(&dn_ompi_progress.aside);
    opal_mutex_unlock(&dn_ompi_aside_lock);
    return aside;
}

static __attribute__((noinline)) void do_aside(void)
{
    dn_ompi_aside_t *aside;

    /* A thread finds its own count, so any memory order will do. A count of another thread only puts the work off. */
    while (0 == dn_load_relaxed(&dn_ompi_progress.inside) && NULL != (aside = next_aside())) {
        aside->fn(aside);
    }
}

void dn_ompi_do_aside(void)
{
    /* A hint: the list is looked at again under the lock. */
    if (OPAL_UNLIKELY(NULL != dn_load_relaxed(&dn_ompi_progress.aside.first))) {
        do_aside();
    }
}

void dn_ompi_drop_aside(void)
{
    opal_mutex_lock(&dn_ompi_aside_lock);
    dn_ompi_progress.aside = (dn_fifo_t){0};
    opal_mutex_unlock(&dn_ompi_aside_lock);
}

void dn_ompi_inside(int more)
{
    (void) dn_fetch_add_relaxed(&dn_ompi_progress.inside, (unsigned) more);
}
/** @} */

/** A process has greeted whose group is not let in. */
static __attribute__((noinline)) void meet_strangers(uint32_t strangers)
{
    dn_store_relaxed(&dn_ompi_progress.met, strangers);
    dn_ompi_let_job_in();
}

/** opal_progress_callback_t. */
static int progress_callback(void)
{
    const unsigned count = dn_load_relaxed(&dn_ompi_progress.count);
    const unsigned polls = dn_load_relaxed(&dn_ompi_progress.polls);

    if (0 == count && 0 != polls % SELDOM) {
        dn_store_relaxed(&dn_ompi_progress.polls, polls + 1);
        return 0;
    }
    int events = look_once(count);
    dn_ompi_do_aside();
    const uint32_t strangers = dn_load_relaxed(dn_ompi_progress.strangers);
    if (OPAL_UNLIKELY(strangers != dn_load_relaxed(&dn_ompi_progress.met))) {
        meet_strangers(strangers);
    }
    if (0 < events) {
        dn_store_relaxed(&dn_ompi_progress.polls, 0);
        dn_count(&dn_ompi_progress.events, 1);
    } else if (polls < look_for_threads() || 0 == count) {
        dn_store_relaxed(&dn_ompi_progress.polls, polls + 1);
    } else if (YIELDS != dn_ompi_own.in_vain || dn_load_relaxed(&dn_ompi_progress.gives)
               || 0 != dn_ompi_own.crowded) {
        events = wait_in_callback();
    }
    return events;
}

bool dn_ompi_wait(dn_ompi_wait_t *wait, uint64_t steps)
{
    if (0 == wait->turns++) {
        dn_store_relaxed(&dn_ompi_progress.blind, is_blind());
    }
    /* A process that is about to sleep, or has slept, looks at everything in each turn: its bell is odd. */
    if (0 != wait->lively || 0 != wait->super.odd || !dn_ompi_shares_core() || 0 == wait->turns % TURNS
        || dn_load_relaxed(&dn_ompi_progress.blind)) {
        const int heard = dn_load_relaxed(&dn_ompi_progress.blind) ? progress_hear() : 0;

        progress_that(RETURNS);
        const uint64_t events = dn_load_relaxed(&dn_ompi_progress.events);
        if (events != wait->events || 0 < heard) {
            wait->events = events;
            wait->lively = LIVELY;
            dn_wait_restart(&wait->super);
        } else if (0 != wait->lively) {
            wait->lively--;
        }
    }
    const dn_wait_end_t end = dn_wait(dn_ompi_progress.port, &wait->super, steps, wait_flags());
    return DN_WAIT_SLEPT == end || DN_WAIT_WOKEN == end;
}

void dn_ompi_wait_ring(void)
{
    dn_wait_ring(dn_ompi_progress.port);
}

/** Find the most that a component of an added function carries. */
static void count_carried(void)
{
    enum dn_ompi_carries most = DN_OMPI_CARRIES_NONE;

    for (unsigned i = 0; i < dn_load_relaxed(&dn_ompi_progress.count); i++) {
        if (NULL != dn_load_relaxed(&dn_ompi_progress.fn[i]) && most < dn_ompi_progress.carries[i]) {
            most = dn_ompi_progress.carries[i];
        }
    }
    dn_store_relaxed(&dn_ompi_progress.most, most);
}

void dn_ompi_progress_add(dn_ompi_progress_fn_t fn, enum dn_ompi_carries carries)
{
    unsigned i = 0;

    opal_mutex_lock(&dn_ompi_progress_lock);
    const unsigned count = dn_load_relaxed(&dn_ompi_progress.count);
    while (i < count && NULL != dn_load_relaxed(&dn_ompi_progress.fn[i])) {
        i++;
    }
    assert(FUNCTIONS > i);
    dn_ompi_progress.carries[i] = carries;
    dn_store_release(&dn_ompi_progress.fn[i], fn);
    if (i == count) {
        dn_store_release(&dn_ompi_progress.count, count + 1);
    }
    count_carried();
    opal_mutex_unlock(&dn_ompi_progress_lock);
}

void dn_ompi_progress_remove(dn_ompi_progress_fn_t fn)
{
    opal_mutex_lock(&dn_ompi_progress_lock);
    for (unsigned i = 0; i < dn_load_relaxed(&dn_ompi_progress.count); i++) {
        if (fn == dn_load_relaxed(&dn_ompi_progress.fn[i])) {
            dn_store_relaxed(&dn_ompi_progress.fn[i], NULL);
        }
    }
    count_carried();
    opal_mutex_unlock(&dn_ompi_progress_lock);
}

void dn_ompi_progress_open(dn_port_t *port)
{
    dn_ompi_progress.port = port;
    dn_ompi_progress.strangers = dn_strangers(port);
    dn_ompi_progress.met = *dn_ompi_progress.strangers;
    dn_ompi_progress_look();
    opal_progress_register(progress_callback);
    hook_requests();
}

void dn_ompi_progress_close(void)
{
    unhook_requests();
    opal_progress_unregister(progress_callback);
    dn_store_relaxed(&dn_ompi_progress.count, 0);
    dn_store_relaxed(&dn_ompi_progress.polls, 0);
    dn_store_relaxed(&dn_ompi_progress.waiter, NULL);
    dn_ompi_progress.aside = (dn_fifo_t){0};
    dn_ompi_progress.port = NULL;
}
