/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_fault.c
 * Accesses that a page does not permit: the signal handler, and what was there before it. */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

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

/** Do what would have been done without us. @param[in] why  A sentence on the address; NULL: none. */
static void dn_dsm_fault_pass(int number, siginfo_t *info, void *context, const char *why)
{
    /* A handler that was installed over ours, and was found there at a later opening, calls ours in its turn. Where a handler was
     * left by a jump, this may be taken for that: then `first` is mostly what `before` is. */
    const bool again = info == dn_dsm_fault_passed;
    const struct sigaction *before = &(again ? dn_dsm_fault_first : dn_dsm_fault_before)[SIGBUS == number];
    const siginfo_t *outer = dn_dsm_fault_passed;

    if (NULL != why && !again) {
        dn_log_error("shared memory: %p %s", info->si_addr, why);
    }
    dn_dsm_fault_passed = info;
    if (0 != (before->sa_flags & SA_SIGINFO)) {
        before->sa_sigaction(number, info, context);
    } else if (SIG_DFL != before->sa_handler && SIG_IGN != before->sa_handler) {
        before->sa_handler(number);
    } else if (0 < info->si_code || SIG_DFL == before->sa_handler) {
        /* The access is made again, and ends the process where a debugger finds it; the kernel heeds no SIG_IGN there either. */
        signal(number, SIG_DFL);
        if (0 >= info->si_code) {
            /* Sent by kill(2) or the like: it comes again when the handler is left. */
            raise(number);
        }
    }
    dn_dsm_fault_passed = outer;
}

static void dn_dsm_fault_handle(int number, siginfo_t *info, void *context)
{
    dn_dsm_t *dsm = dn_dsm_open_now;
    const uint8_t *at = info->si_addr;
    const int error = errno;

    if (NULL == dsm || 0 >= info->si_code || at < dsm->front || at >= dsm->front + dn_dsm_bytes(dsm)) {
        const bool was = 0 < info->si_code && dn_dsm_was_ours(at);
        dn_dsm_fault_pass(number, info, context, was ? "was accessed after dn_dsm_close()" : NULL);
        return;
    }
    if (0 != dn_dsm_inside) {
        dn_dsm_fault_pass(
            number, info, context,
            "was accessed in a signal handler while the thread was inside of libdn_dsm; a signal "
            "handler must not touch shared memory");
        return;
    }
    const uint32_t page = (uint32_t) ((uint64_t) (at - dsm->front) / dsm->page_bytes);
    if (page >= dn_dsm_used(dsm) || dsm->shares) {
        dn_dsm_fault_pass(number, info, context, "is outside of what was allocated");
        return;
    }
    const int write = dn_dsm_fault_kind(context);
    const uint64_t began = dn_dsm_clock();
    dn_dsm_inside++;
    dn_dsm_count(DN_DSM_IS_WRITE == write ? &dsm->stat.write_faults : &dsm->stat.read_faults, 1);
    if (DN_OK != dn_dsm_page_have(dsm, &page, 1, write)) {
        const uint32_t lost = dn_load_relaxed_u32(&dsm->lost);
        if (0 != lost) {
            dn_log_error(
                "shared memory: rank %u is gone, and the page of %p, of rank %u, is not fetched any more: "
                "this process ends",
                (unsigned) lost - 1, (const void *) at, (unsigned) dsm->page[page].home);
        } else {
            dn_log_error("shared memory: the page of %p cannot be fetched from rank %u: this process ends",
                         (const void *) at, (unsigned) dsm->page[page].home);
        }
        _exit(EXIT_FAILURE);
    }
    dn_dsm_count(&dsm->stat.fault_ns, dn_dsm_clock() - began);
    dn_dsm_inside--;
    errno = error;
}

dn_status_t dn_dsm_fault_watch(const dn_dsm_detect_t *detect)
{
    struct sigaction action = {.sa_sigaction = dn_dsm_fault_handle,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    static const int numbers[2] = {SIGSEGV, SIGBUS};

    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 2; i++) {
        /* An access outside, or after the end, raises SIGSEGV whatever the way. */
        if (SIGSEGV != numbers[i] && detect->signal != numbers[i]) {
            continue;
        }
        struct sigaction before;
        if (0 != sigaction(numbers[i], &action, &before)) {
            return DN_ERR_ACCESS;
        }
        /* Not ours: it is the first time, or the program has installed one since. */
        if (0 == (before.sa_flags & SA_SIGINFO) || dn_dsm_fault_handle != before.sa_sigaction) {
            dn_dsm_fault_before[i] = before;
            dn_dsm_fault_first[i] = dn_dsm_fault_watched[i] ? dn_dsm_fault_first[i] : before;
            dn_dsm_fault_watched[i] = true;
        }
    }
    return DN_OK;
}
