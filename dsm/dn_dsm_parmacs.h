/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_parmacs.h
 * Functions for the macros of c.m4.dn_dsm. Programs use the macros, and do not call these functions. The macros are the
 * PARMACS macros of SPLASH, made on dn_dsm.h.
 *
 * In PARMACS one process starts alone, and CREATE starts the others as copies of it. Here all processes are started together
 * (doc/dsm.md), and each runs main() up to CREATE. So main() has to do the same in each process up to there. Before CREATE the
 * memory of G_MALLOC is private to each process, at its final addresses. At CREATE the memory becomes shared, with the content
 * that it has in process 0. Process 0 goes on in main(). Each other process runs its function, waits for the end of process 0,
 * and ends.
 *
 * Before CREATE only process 0 writes to stdout.
 *
 * Errors:  these calls return no errors. At a failure the library writes a sentence, and the process ends with status 1. The
 *          other processes find that it is gone.
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

/** MAIN_INITENV; before CREATE. @param[in] bytes  Bytes of shared memory that the program needs at least; 0: as the
 * environment says. */
DN_API void dn_dsm_parmacs_init(unsigned long bytes);
/** CREATE. @param[in] count  0: process 1 runs @p fn at the first call, process 2 at the second call, and so on. Else: the
 * number of all processes, and each runs @p fn. */
DN_API void dn_dsm_parmacs_create(void (*fn)(void), long count);
/** WAIT_FOR_END: process 0 waits for the others. */
DN_API void dn_dsm_parmacs_wait(void);
/** MAIN_END: close, and end with status 0. */
DN_API void dn_dsm_parmacs_end(void) __attribute__((noreturn));

/** G_MALLOC: zeroed memory, aligned to 64 bytes; a page or more is aligned to a page. Any process calls this at any time. The
 * memory is never given back. A call before MAIN_INITENV does what MAIN_INITENV does; MAIN_INITENV may still come later, with
 * more bytes. */
DN_API void *dn_dsm_parmacs_malloc(unsigned long bytes);

/** LOCKINIT. @return the number of the new lock. */
DN_API int dn_dsm_parmacs_lock_new(void);
/** LOCK. */
DN_API void dn_dsm_parmacs_lock(int lock);
/** UNLOCK. */
DN_API void dn_dsm_parmacs_unlock(int lock);
/** BARRIER. @param[in] count  The number of all processes. */
DN_API void dn_dsm_parmacs_barrier(long count);
/** GETSUB. @param[in,out] gs  Two values: the number of a lock, and the next subscript. @return a subscript up to @p max,
 * each to one process. When all are given out: -1, to all processes at once; then the next subscript is 0 again. */
DN_API long dn_dsm_parmacs_getsub(long *gs, long max, long count);
/** SETPAUSE, CLEARPAUSE. @param[in,out] flag  Two values: the number of a lock, and whether the flag is set. */
DN_API void dn_dsm_parmacs_flag(long *flag, long value);
/** WAITPAUSE: wait until the flag is set. */
DN_API void dn_dsm_parmacs_flag_wait(const long *flag);
/** CLOCK. @return microseconds since a fixed time in the past. */
DN_API unsigned long dn_dsm_parmacs_clock(void);

#ifdef __cplusplus
}
#endif

#endif
