/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_fault.c
 * Accesses that a page does not permit: the signal handler, and what was there before it. */
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
 * A handler that looks for a range waits for nothing, whatever this thread, or one of the process that this one is a child of, was doing. Who
 * removes a range waits until nobody looks any more. */
/** @{ */
static pthread_mutex_t dn_dsm_ranges_lock = PTHREAD_MUTEX_INITIALIZER; /**< of changes */
static dn_dsm_range_t *dn_dsm_ranges;                                  /**< atomic, as are all `next` */
static uint32_t dn_dsm_lookers; /**< threads that look for a range. Atomic */

void dn_dsm_range_add(dn_dsm_range_t *range)
{
    pthread_mutex_lock(&dn_dsm_ranges_lock);
    range->next = dn_dsm_ranges;
    /* A0: pairs with A1: who finds the range finds what is in it. */
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
    /* L0 comes ahead of L1, and L2 ahead of L3, in the one order of all four: who is not seen by L1 does not find the range at L3. */
    dn_store_seq_cst(at, range->next);              /* L0 */
    while (0 != dn_load_seq_cst(&dn_dsm_lookers)) { /* L1: pairs also with L4 */
        sched_yield();
    }
    pthread_mutex_unlock(&dn_dsm_ranges_lock);
}

/** The range of an address. NULL: there is none. */
static dn_dsm_range_t *dn_dsm_range_find(const uint8_t *at)
{
    (void) dn_fetch_add_seq_cst(&dn_dsm_lookers, 1);         /* L2 */
    dn_dsm_range_t *range = dn_load_seq_cst(&dn_dsm_ranges); /* L3, A1 */
    while (NULL != range && (at < range->at || at >= range->at + range->len)) {
        range = dn_load_seq_cst(&range->next); /* the same */
    }
    /* L4: what was read here was read before a range is given back. */
    (void) dn_fetch_sub_release(&dn_dsm_lookers, 1);
    return range;
}
/** @} */

static struct sigaction
    dn_dsm_fault_before[2]; /**< of SIGSEGV and SIGBUS: what is called for what is not ours */
static struct sigaction dn_dsm_fault_first[2]; /**< the same when the handler was installed first */
static bool dn_dsm_fault_watched[2];
static __thread const siginfo_t *dn_dsm_fault_passed __attribute__((tls_model("initial-exec")));

/** Was the access a write? */
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

/** Do pages permit or forbid the access? Else making one accessible does not help: a page is not to be executed (known on x86-64 only), its
 * memory is broken, or a key of the program protects it. SEGV_MAPERR comes in a child, which has no pages. */
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

/** Call the handler of before, with what it has blocked: ours blocks nothing. */
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

/** Do what would have been done without us. @param[in] why  A sentence on the address, of the range @p what; NULL: none. */
static void dn_dsm_fault_pass(int number, siginfo_t *info, void *context, const char *what, const char *why)
{
    /* A handler that was installed over ours, and was found there at a later opening, calls ours in its turn. Where a handler was
     * left by a jump, this may be taken for that: then `first` is mostly what `before` is. */
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
        /* The access is made again, and ends the process where a debugger finds it; the kernel heeds no SIG_IGN there either. */
        signal(number, SIG_DFL);
        if (0 >= info->si_code) {
            /* Sent by kill(2) or the like: it ends the process here. */
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

/** Keep what was there before ours. Ours needs to know it from its first call on. */
static void dn_dsm_fault_keep(int i, const struct sigaction *before)
{
    dn_dsm_fault_before[i] = *before;
    if (!dn_dsm_fault_watched[i]) {
        dn_dsm_fault_first[i] = *before;
    }
}

/** dn_dsm_fault_watch(), one thread at a time. */
static dn_status_t dn_dsm_fault_install(const dn_dsm_detect_t *way)
{
    /* The signal is not blocked in the handler, so that an access there, by what progress calls, gets a sentence, too. */
    struct sigaction action = {.sa_sigaction = dn_dsm_fault_handle,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER};
    static const int numbers[2] = {SIGSEGV, SIGBUS};

    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 2; i++) {
        /* An access outside, or after the end, raises SIGSEGV whatever the way. */
        if (SIGSEGV != numbers[i] && way->signal != numbers[i]) {
            continue;
        }
        struct sigaction before, last;
        bool installed = 0 == sigaction(numbers[i], NULL, &before);
        /* Not ours: it is the first time, or the program has installed one since. */
        if (installed
            && (0 == (before.sa_flags & SA_SIGINFO) || dn_dsm_fault_handle != before.sa_sigaction)) {
            dn_dsm_fault_keep(i, &before);
            installed = 0 == sigaction(numbers[i], &action, &last);
            if (installed && last.sa_sigaction != before.sa_sigaction) {
                /* Another thread of the program was faster. */
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
