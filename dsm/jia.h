/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file jia.h
 * The interface of JIAJIA on dn_dsm.h, so that programs which were written for it run unchanged. Compile them with
 * -I.../include/dimmnet, and link them with -ldn_dsm -ldimmnet.
 *
 * What differs:
 *   - Processes are started together (doc/dsm.md), and the environment says which is which. jia_init() starts none and reads no
 *     .jiahosts.
 *   - Memory is lazily release consistent. This is more than JIAJIA promises: a program that is right on JIAJIA is right
 *     here. With DN_DSM_PROTOCOL=scope the memory is as consistent as JIAJIA's.
 *   - Locks are 0 .. DN_DSM_LOCKS - 1, and sizes are not limited to what an int holds.
 *   - jia_wait() is a barrier, and so also brings memory up to date.
 *   - jia_config() does nothing: what it switches changes how fast a program is, not what it computes. Homes migrate with
 *     DN_DSM_HOMES=move.
 *   - jia_startstat() and jia_stopstat() only tell the time: dn_dsm_stat() counts from the beginning on.
 *   - jia_wtnt(), jia_wtntw() and jia_wtntd(), which announce writes, do nothing: the library detects writes itself.
 *   - There are no condition variables, messages and load balancing. Of the macros of Argonne there are no pauses and
 *     subscripts: c.m4.dn_dsm has them all.
 *
 * Errors:  these calls return no errors. At a failure the library writes a sentence, and the process ends with status 1.
 *          The other processes find that it is gone, and end in the same way.
 * Threads: as the calls of dn_dsm.h on which they stand. What allocates, waits or is a barrier is called by all processes
 *          in the same order, with the same arguments.
 *
 * Pinned by examples/dsm/programs_have_their_serial_answers.
 */
#ifndef JIA_H
#define JIA_H

#include "dn_dsm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The names that jia_config() takes. */
#define HMIG      0
#define ADWD      1
#define BROADCAST 2
#define LOADBAL   3
#define WVEC      4
#ifndef ON
#    define OFF 0
#    define ON  1
#endif

/** Number of this process: 0 .. jiahosts - 1, from jia_init() on. The program only reads it. */
extern DN_API int jiapid;
/** Number of processes, from jia_init() on. The program only reads it. */
extern DN_API int jiahosts;

/** Open the memory as dn_dsm_config_env() says. The arguments are not used. */
DN_API void jia_init(int argc, char **argv);
/** Close the memory. All processes call this. The call returns. */
DN_API void jia_exit(void);

/** Allocate zeroed memory, all of it at home with one process: process 0 at the first call, process 1 at the next call, and so on by turns.
 * @param[in] bytes  Whole pages are taken, here and below. @return the address, the same in all processes. */
DN_API unsigned long jia_alloc(unsigned long bytes);
/** Allocate zeroed memory, all of it at home with process 0. */
DN_API unsigned long jia_alloc1(unsigned long bytes);
/** Allocate zeroed memory, @p block bytes at home with each process by turns, beginning with process 0. */
DN_API unsigned long jia_alloc2(unsigned long bytes, unsigned long block);
/** Allocate zeroed memory, all of it at home with process @p host. */
DN_API unsigned long jia_alloc2p(unsigned long bytes, int host);
/** Allocate zeroed memory, @p block bytes at home with each process by turns, beginning with process @p host. */
DN_API unsigned long jia_alloc3(unsigned long bytes, unsigned long block, int host);
/** Allocate zeroed memory, in rounds. In the first round blocks[0] bytes are at home with each process from @p host on; in the second,
 * blocks[1] bytes with each process from 0 on; and so on. After blocks[n - 1] comes blocks[0] again. */
DN_API unsigned long jia_alloc4(unsigned long bytes, const int *blocks, int n, int host);

/** As dn_dsm_lock(). */
DN_API void jia_lock(int lock);
/** As dn_dsm_unlock(). */
DN_API void jia_unlock(int lock);
/** As dn_dsm_barrier(). */
DN_API void jia_barrier(void);
/** As jia_barrier(). */
DN_API void jia_wait(void);

/** Seconds since jia_init(). */
DN_API double jia_clock(void);
/** Write a sentence to stderr, formatted as by printf(), and end this process with status 1. */
DN_API void jia_error(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/** Another name of jia_error() in JIAJIA. */
#define jia_errexit jia_error
/** Accepted, and ignored. */
DN_API void jia_config(int what, int value);
/** @name Announcements that memory at @p at is written: they do nothing. */
/** @{ */
#define jia_wtnt(at, bytes)
#define jia_wtntw(at)
#define jia_wtntd(at)
/** @} */

/** Microseconds since jia_init(), modulo the range of an unsigned int. */
static inline unsigned int jia_startstat(void)
{
    return (unsigned int) (uint64_t) (jia_clock() * 1e6);
}

/** As jia_startstat(). */
static inline unsigned int jia_stopstat(void)
{
    return jia_startstat();
}

/** @name The macros of Argonne that JIAJIA has, too
 * Locks are numbers, from 0 on. They are the same in all processes if all processes initialise them in the same order. */
/** @{ */
/** The number of the next lock that is initialised. */
extern DN_API int jia_lock_index;
#define LOCKDEC(lock)  int lock;
#define LOCKINIT(lock) (lock) = jia_lock_index++;
#define LOCK(lock)     jia_lock(lock);
#define UNLOCK(lock)   jia_unlock(lock);

#define ALOCKDEC(locks, count) int locks[count];
#define ALOCKINIT(locks, count)                     \
    {                                               \
        int jia_i;                                  \
        for (jia_i = 0; jia_i < (count); jia_i++) { \
            (locks)[jia_i] = jia_lock_index++;      \
        }                                           \
    }
#define ALOCK(locks, i)  jia_lock((locks)[i]);
#define AULOCK(locks, i) jia_unlock((locks)[i]);

#define BARDEC(barrier) int barrier;
#define BARINIT(barrier)
#define BARRIER(barrier, count) jia_barrier();
#define WAIT_FOR_END(count)     jia_barrier();

#define EXTERN_ENV
#define MAIN_ENV
#define MAIN_INITENV(x, y)
#define MAIN_END

#define G_MALLOC(bytes) jia_alloc1(bytes);
#define CLOCK(seconds)  (seconds) = jia_clock();
/** @} */

#ifdef __cplusplus
}
#endif

#endif
