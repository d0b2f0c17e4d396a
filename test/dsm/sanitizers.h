/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file sanitizers.h
 * What sanitizers are to leave alone in a program that has shared memory.
 *
 * They have handlers of their own for SIGSEGV and SIGBUS, which end a process with a report and an exit status. Without these the kernel's
 * signal ends it, as it does without a sanitizer.
 */
#ifndef DN_DSM_TEST_SANITIZERS_H
#define DN_DSM_TEST_SANITIZERS_H

#include "dimmnet.h"

/** Has this program a sanitizer? */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define SANITIZED 1
#else
#    define SANITIZED 0
#endif
/** Is it the address sanitizer? */
#ifdef __SANITIZE_ADDRESS__
#    define ADDRESS_SANITIZED 1
#else
#    define ADDRESS_SANITIZED 0
#endif

#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);
DN_API const char *__asan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0";
}
#endif

#ifdef __SANITIZE_THREAD__
/** The handler that fetches a page runs the transport, so it calls functions that the sanitizer takes for unsafe in a handler. */
const char *__tsan_default_options(void);
DN_API const char *__tsan_default_options(void)
{
    return "report_signal_unsafe=0 handle_segv=0 handle_sigbus=0";
}

/** The sanitizer does not see that another process orders two threads of this one. dn_llcm_alloc() zeroes memory, this process tells a peer
 * where it is, and a thread of the device writes there for that peer. */
const char *__tsan_default_suppressions(void);
DN_API const char *__tsan_default_suppressions(void)
{
    return "race:dn_llcm_alloc\n";
}
#endif

#endif
