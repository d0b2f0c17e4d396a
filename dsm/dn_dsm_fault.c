/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_fault.c
 * Accesses that a page does not permit: the signal handler, and the handler that was installed before it. */
#include "dn_config.h"

#include "dn_dsm_fault.h"

#include <dn_atomic.h>
#include <dn_log.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

__thread int dn_dsm_inside __attribute__((tls_model("initial-exec")));

/** @name Ranges
 * A handler that looks for a range waits for nothing. So it may interrupt any work of this thread; and in a child, it does not matter what
 * threads of the parent were doing. A thread that removes a range waits until no thread looks any more. */
/** @{ */
static pthread_mutex_t dn_dsm_ranges_lock = PTHREAD_MUTEX_INITIALIZER; /**< held while the list changes */
static dn_dsm_range_t *dn_dsm_ranges;                                  /**< atomic, as are all `next` */
static uint32_t dn_dsm_lookers; /**< threads that look for a range. Atomic */

void dn_dsm_range_add(dn_dsm_range_t *range)
{
    pthread_mutex_lock(&dn_dsm_ranges_lock);
    range->next = dn_dsm_ranges;
    /* A0: pairs with A1: a thread that finds the range finds its members set. */
    dn_store_release(&dn_dsm_ranges, range);
    pthread_mutex_unlock(&dn_dsm_ranges_lock);
}

void dn_dsm_range_remove(dn_dsm_range_t *range)
{
    dn_dsm_range_t **at = &dn_dsm_ranges;

    pthread_mutex_lock(&dn_dsm_ranges_lock);
    while (range != *at) {
        at = &(*at)->next;
    }
    /* All four are in one order, L0 before L1, and L2 before L3. So a thread that L1 does not see does not find the range at L3. */
    dn_store_seq_cst(at, range->next);              /* L0 */
    while (0 != dn_load_seq_cst(&dn_dsm_lookers)) { /* L1: pairs also with L4 */
        sched_yield();
    }
    pthread_mutex_unlock(&dn_dsm_ranges_lock);
}

/** Find the range of an address. @return NULL: there is none. */
static dn_dsm_range_t *dn_dsm_range_find(const uint8_t *at)
{
    (void) dn_fetch_add_seq_cst(&dn_dsm_lookers, 1);         /* L2 */
    dn_dsm_range_t *range = dn_load_seq_cst(&dn_dsm_ranges); /* L3, A1 */
    while (NULL != range && (at < range->at || at >= range->at + range->len)) {
        range = dn_load_seq_cst(&range->next); /* L3, A1 */
    }
    /* L4: the loads above are done before L1 sees this, and before the range is freed. */
    (void) dn_fetch_sub_release(&dn_dsm_lookers, 1);
    return range;
}
/** @} */

/* By signal: SIGSEGV, SIGBUS. The thread that installs a handler writes them. */
/** the handler that is called for addresses that are in no range: the one before the last installation */
static struct sigaction dn_dsm_fault_before[2];
static struct sigaction dn_dsm_fault_first[2]; /**< the handler before the first installation */
static bool dn_dsm_fault_watched[2];           /**< the library's handler was installed */
/** the signal that this thread is passing on; NULL: none */
static __thread const siginfo_t *dn_dsm_fault_passed __attribute__((tls_model("initial-exec")));

/** The kind of an access: DN_DSM_IS_READ and so on. */
static int dn_dsm_fault_kind(const void *context)
{
#if defined(__x86_64__)
    /* Bit 1 of the error code of a page fault. */
    return 0 != (((const ucontext_t *) context)->uc_mcontext.gregs[REG_ERR] & 2) ? DN_DSM_IS_WRITE
                                                                                 : DN_DSM_IS_READ;
#else
    (void) context;
    return DN_DSM_IS_UNKNOWN;
#endif
}

/** Was the signal raised because a page does not permit the access? Otherwise it does not help to make the page accessible: the access executes
 * the page (known on x86-64 only), the memory is broken, or a protection key of the program forbids it. SEGV_MAPERR comes in a child, which
 * has no pages. */
static bool dn_dsm_fault_is_of_pages(int number, const siginfo_t *info, const void *context)
{
#if defined(__x86_64__)
    /* Bit 4 of the error code: the processor was fetching an instruction. */
    if (0 != (((const ucontext_t *) context)->uc_mcontext.gregs[REG_ERR] & 16)) {
        return false;
    }
#else
    (void) context;
#endif
    return SIGBUS == number ? BUS_ADRERR == info->si_code
                            : SEGV_ACCERR == info->si_code || SEGV_MAPERR == info->si_code;
}

/** Call a handler that was installed before. The signals that it wants blocked are blocked meanwhile: the library's handler blocks none. */
static void dn_dsm_fault_call(const struct sigaction *before, int number, siginfo_t *info, void *context)
{
    sigset_t blocked = before->sa_mask, own;

    if (0 == (before->sa_flags & SA_NODEFER)) {
        sigaddset(&blocked, number);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &own);
    if (0 != (before->sa_flags & SA_SIGINFO)) {
        before->sa_sigaction(number, info, context);
    } else {
        before->sa_handler(number);
    }
    pthread_sigmask(SIG_SETMASK, &own, NULL);
}

/** Pass a signal on, as if the library had no handler. @param[in] what  The range, for the log line. @param[in] why  A text on the address;
 * NULL: no log line. */
static void dn_dsm_fault_pass(int number, siginfo_t *info, void *context, const char *what, const char *why)
{
    /* The program may have installed a handler after the library's. A later opening has found it as the handler before, and it calls the
     * library's handler again: then the first handler is called. If the program has left a handler by a jump, a new signal may be taken
     * for this; mostly `first` and `before` are the same then. */
    const bool again = info == dn_dsm_fault_passed;
    struct sigaction *kept = &(again ? dn_dsm_fault_first : dn_dsm_fault_before)[SIGBUS == number];
    const struct sigaction before = *kept;
    const siginfo_t *outer = dn_dsm_fault_passed;

    if (NULL != why && !again) {
        dn_log_error("%s: %p %s", what, info->si_addr, why);
    }
    dn_dsm_fault_passed = info;
    if (SIG_DFL != before.sa_handler && SIG_IGN != before.sa_handler) {
        if (0 != (before.sa_flags & SA_RESETHAND)) {
            kept->sa_flags &= ~SA_SIGINFO;
            kept->sa_handler = SIG_DFL;
        }
        dn_dsm_fault_call(&before, number, info, context);
    } else if (0 < info->si_code || SIG_DFL == before.sa_handler) {
        /* The thread makes the access again, which ends the process at the place where a debugger looks. The kernel does not heed
         * SIG_IGN for such a signal either. */
        signal(number, SIG_DFL);
        if (0 >= info->si_code) {
            /* The signal was sent by kill(2) or the like, and is sent again: it ends the process here. */
            raise(number);
        }
    }
    dn_dsm_fault_passed = outer;
}

static void dn_dsm_fault_handle(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    const uint8_t *at = info->si_addr;
    dn_dsm_range_t *range = dn_dsm_fault_is_of_pages(number, info, context) ? dn_dsm_range_find(at) : NULL;
    const char *why = NULL;

    if (NULL != range && 0 != dn_dsm_inside) {
        why = "was accessed in a signal handler, or in a function that progress calls, while the thread "
              "was inside of libdn_dsm; neither must touch such memory";
    } else if (NULL != range) {
        dn_dsm_inside++;
        why = range->access(range, (uint64_t) (at - range->at), dn_dsm_fault_kind(context));
        dn_dsm_inside--;
    }
    if (NULL == range || NULL != why) {
        dn_dsm_fault_pass(number, info, context, NULL == range ? NULL : range->what, why);
    }
    errno = error;
}

/** Keep the handler that was installed before. The library's handler may need it from its first call on. */
static void dn_dsm_fault_keep(int i, const struct sigaction *before)
{
    dn_dsm_fault_before[i] = *before;
    if (!dn_dsm_fault_watched[i]) {
        dn_dsm_fault_first[i] = *before;
    }
}

/** dn_dsm_fault_watch(). One thread at a time calls this. */
static dn_status_t dn_dsm_fault_install(const dn_dsm_detect_t *way)
{
    /* The signal is not blocked in the handler. So an access in a function that progress calls there gets a sentence, too. */
    struct sigaction action = {.sa_sigaction = dn_dsm_fault_handle,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER};
    static const int numbers[2] = {SIGSEGV, SIGBUS};

    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 2; i++) {
        /* SIGSEGV is always handled: with any way, an access outside of the allocated pages, or after the close, raises it. */
        if (SIGSEGV != numbers[i] && way->signal != numbers[i]) {
            continue;
        }
        struct sigaction before, last;
        bool installed = 0 == sigaction(numbers[i], NULL, &before);
        /* Another handler is there: this is the first time, or the program has installed a handler since. */
        if (installed
            && (0 == (before.sa_flags & SA_SIGINFO) || dn_dsm_fault_handle != before.sa_sigaction)) {
            dn_dsm_fault_keep(i, &before);
            installed = 0 == sigaction(numbers[i], &action, &last);
            if (installed && last.sa_sigaction != before.sa_sigaction) {
                /* Another thread of the program has installed a handler in between. */
                dn_dsm_fault_keep(i, &last);
            }
            dn_dsm_fault_watched[i] = dn_dsm_fault_watched[i] || installed;
        }
        if (!installed) {
            dn_log_error("the kernel does not let a handler of signal %d be installed (%s)", numbers[i],
                         strerror(errno));
            return DN_ERR_ACCESS;
        }
    }
    return DN_OK;
}

dn_status_t dn_dsm_fault_watch(const dn_dsm_detect_t *way)
{
    static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&installing);
    const dn_status_t status = dn_dsm_fault_install(way);
    pthread_mutex_unlock(&installing);
    return status;
}
