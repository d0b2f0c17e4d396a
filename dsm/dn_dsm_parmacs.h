/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_parmacs.h
 * What the macros of c.m4.dn_dsm call; programs do not. They are the PARMACS macros of SPLASH, on dn_dsm.h.
 *
 * In PARMACS one process begins, and CREATE starts the others, which have all that it had then. Here they are started together
 * (doc/dsm.md), and all run main() up to CREATE: that is to do the same in each of them. Until then the memory of G_MALLOC is private, at the
 * addresses that it will have. At CREATE it is shared, with what process 0 has in it. Process 0 goes on in main(); another runs its
 * function, waits for the end of process 0, and ends.
 *
 * Until CREATE only process 0 writes to stdout.
 *
 * Errors:  these calls return none. A failure writes a sentence, and ends the process with status 1; the others find that it is gone.
 * Threads: one thread in each process calls these.
 *
 * Pinned by examples/dsm/programs_have_their_serial_answers, and by dn_dsm_parmacs_* in test/dsm.
 */
#ifndef DN_DSM_PARMACS_H
#define DN_DSM_PARMACS_H

#include "dimmnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** MAIN_INITENV; before CREATE. @param[in] bytes  That the program wants at least; 0: as the environment says. */
DN_API void dn_dsm_parmacs_init(unsigned long bytes);
/** CREATE. @param[in] count  0: process 1 runs it at the first call, process 2 at the second ...; else all do, which are so many. */
DN_API void dn_dsm_parmacs_create(void (*fn)(void), long count);
/** WAIT_FOR_END: process 0 waits for the others. */
DN_API void dn_dsm_parmacs_wait(void);
/** MAIN_END: close, and end with status 0. */
DN_API void dn_dsm_parmacs_end(void) __attribute__((noreturn));

/** G_MALLOC: zeros, aligned to 64 bytes, or to a page where they are as long. Any process calls it at any time. The memory is never given back.
 * Before MAIN_INITENV it does what that does; MAIN_INITENV may come later, with more bytes. */
DN_API void *dn_dsm_parmacs_malloc(unsigned long bytes);

/** LOCKINIT. @return its number. */
DN_API int dn_dsm_parmacs_lock_new(void);
/** LOCK. */
DN_API void dn_dsm_parmacs_lock(int lock);
/** UNLOCK. */
DN_API void dn_dsm_parmacs_unlock(int lock);
/** BARRIER. @param[in] count  Of all processes, no less. */
DN_API void dn_dsm_parmacs_barrier(long count);
/** GETSUB. @param[in,out] gs  A lock, and what is next. @return next .. max, each to one process; then -1, to all at once, and the
 * next one is 0 again. */
DN_API long dn_dsm_parmacs_getsub(long *gs, long max, long count);
/** SETPAUSE, CLEARPAUSE. @param[in,out] flag  A lock, and whether it is set. */
DN_API void dn_dsm_parmacs_flag(long *flag, long value);
/** WAITPAUSE: until it is set. */
DN_API void dn_dsm_parmacs_flag_wait(const long *flag);
/** CLOCK. @return microseconds since some time. */
DN_API unsigned long dn_dsm_parmacs_clock(void);

#ifdef __cplusplus
}
#endif

#endif
