/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_interrupted.c
 * Locks of a window change hands while a process is stopped, as a scheduler may stop it, after each single instruction
 * of MPI_Win_lock and MPI_Win_unlock. Nobody waits for ever, and nobody is beside an exclusive holder.
 *
 *   osc_interrupted [-n TIMES]
 *
 * On other processors than x86-64 it is not stopped.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

/** Of a stop: others take and give the lock meanwhile. */
#define STOP_NS 1000

static uint64_t times = 40;
static uint64_t stops;
static MPI_Win win;

/** The processor steps from here on: a SIGTRAP after each instruction; or runs again. */
static inline void step(bool on)
{
#if defined(__x86_64__)
    const uint64_t trap = 0x100;

    /* Below the stack pointer are 128 bytes that the compiler may use. */
    if (on) {
        __asm__ __volatile__("lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp"
                             :
                             : "r"(trap)
                             : "memory", "cc");
    } else {
        __asm__ __volatile__("lea -128(%%rsp), %%rsp; pushfq; andq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp"
                             :
                             : "r"(~trap)
                             : "memory", "cc");
    }
#else
    (void) on;
#endif
}

static void on_step(int number)
{
    const struct timespec time = {.tv_nsec = STOP_NS};

    (void) number;
    stops++;
    (void) nanosleep(&time, NULL);
}

/** Read two words that an exclusive holder changes; @p alone: be one. */
static int64_t visit(bool alone, bool stepping)
{
    int64_t pair[2];

    step(stepping);
    MPI_Win_lock(alone ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win);
    step(false);
    MPI_Get(pair, 2, MPI_INT64_T, 0, 0, 2, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    verify_that(pair[0] == pair[1], "a lock was held beside an exclusive one");
    if (alone) {
        pair[0] = ++pair[1];
        MPI_Put(pair, 2, MPI_INT64_T, 0, 0, 2, MPI_INT64_T, win);
    }
    step(stepping);
    MPI_Win_unlock(0, win);
    step(false);
    return pair[0];
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'n', "TIMES", &times, 1}, {0}};
    const struct sigaction action = {.sa_handler = on_step, .sa_flags = SA_RESTART};
    int64_t *memory;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    verify_options(argc, argv, options);
    MPI_Win_allocate(2 * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memory[0] = memory[1] = 0;
    verify_that(0 == sigaction(SIGTRAP, &action, NULL), "the signal cannot be handled");
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t n = 0; 0 == rank && n < times; n++) {
        /* Alone, mostly: who gives that up writes several words. */
        (void) visit(0 != n % 4, true);
    }
    while (0 != rank && (int64_t) (times - (times + 3) / 4) > visit(false, false)) {
    }
    for (uint64_t n = 0; n < 100; n++) {
        (void) visit(0 == (n + (uint64_t) rank) % 3, false);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        printf("osc_interrupted: a process that has a lock was stopped %llu times\n",
               (unsigned long long) stops);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
