/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file wait_costs.c
 * What a rank that waits costs, and how soon it goes on once there is something. Each measurement has some tries, since a machine that does
 * other things, or whose host does, takes time or counts time that a rank did not have.
 *
 *   wait_costs [-m MS] [-w WAKES] [-c CPU_MS] [-a 0|1] [-u US] [-t TESTS] [-s SCANS] [-b 0|1]
 *
 *   -m  milliseconds that rank 0 waits for rank 1 in each kind of call
 *   -c  milliseconds of CPU time that each of them may take; 0: any
 *   -a  1: rank 0 has to stay awake, so that its thread never waits for the kernel
 *   -w  wakes: rank 1 writes when rank 0 is asleep, and rank 0 says how long it takes until it has returned
 *   -u  microseconds that half of the wakes may take; 0: any
 *   -t  calls of MPI_Test between which rank 0 computes: none of them may sleep
 *   -s  calls of MPI_Iscan of which rank 1 has all messages before it makes the first: its waits may not sleep
 *   -b  0: leave out the calls that block in a loop of the PML
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { LONG = 1 << 20, TAG = 7, FEW = 20, TRIES = 5 };

static uint64_t wait_ms = 2000;
static uint64_t cpu_most_ms;
static uint64_t awake;
static uint64_t wakes;
static uint64_t wake_most_us;
static uint64_t tests;
static uint64_t scans;
static uint64_t blocking = 1;

static char *message;
static MPI_Win window;
static int *word;

static uint64_t now_ns(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

/** Of all threads of the process: user and system. */
static double cpu_ms(void)
{
    struct rusage usage;

    (void) getrusage(RUSAGE_SELF, &usage);
    return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3
           + (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

/** How often this thread has left its core to wait for something. */
static long times_slept(void)
{
    struct rusage usage;

    (void) getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/** @name Kinds of waits: what rank 0 waits in, and what rank 1 ends it by */
/** @{ */
static void recv_waits(void)
{
    MPI_Recv(message, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void any_waits(void)
{
    MPI_Recv(message, 1, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void request_waits(void)
{
    MPI_Request request;

    MPI_Irecv(message, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void probe_waits(void)
{
    MPI_Probe(1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    recv_waits();
}

static void short_sent(void)
{
    MPI_Send(message, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

static void long_recv_waits(void)
{
    MPI_Recv(message, LONG, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void long_sent(void)
{
    MPI_Send(message, LONG, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

static void ssend_waits(void)
{
    MPI_Ssend(message, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
}

static void short_received(void)
{
    MPI_Recv(message, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void long_ssend_waits(void)
{
    MPI_Ssend(message, LONG, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
}

static void long_received(void)
{
    MPI_Recv(message, LONG, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void ibarrier(void)
{
    MPI_Request request;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void bcast(void)
{
    MPI_Bcast(message, 1, MPI_BYTE, 1, MPI_COMM_WORLD);
}

static void long_bcast(void)
{
    MPI_Bcast(message, LONG, MPI_BYTE, 1, MPI_COMM_WORLD);
}

static void lock(void)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
}

static void unlock(void)
{
    MPI_Win_unlock(0, window);
}

static void lock_waits(void)
{
    lock();
    unlock();
}

static void fence(void)
{
    MPI_Win_fence(0, window);
}

static void exposure_waits(void)
{
    MPI_Group all, other;
    const int rank = 1;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &rank, &other);
    MPI_Win_post(other, 0, window);
    MPI_Win_wait(window);
    MPI_Group_free(&other);
    MPI_Group_free(&all);
}

static void access_ends(void)
{
    MPI_Group all, other;
    const int rank = 0;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &rank, &other);
    MPI_Win_start(other, 0, window);
    MPI_Win_complete(window);
    MPI_Group_free(&other);
    MPI_Group_free(&all);
}

static const struct {
    const char *name;
    void (*ahead)(void); /**< by rank 1, before; NULL: nothing */
    void (*waits)(void); /**< by rank 0 */
    void (*ends)(void);  /**< by rank 1 */
    bool blocks;         /**< in a loop of the PML */
} kinds[] = {
    {"MPI_Recv", NULL, recv_waits, short_sent, true},
    {"MPI_Recv from any source", NULL, any_waits, short_sent, true},
    {"MPI_Wait", NULL, request_waits, short_sent, false},
    {"MPI_Probe", NULL, probe_waits, short_sent, true},
    {"MPI_Recv of 1 MiB", NULL, long_recv_waits, long_sent, true},
    {"MPI_Ssend", NULL, ssend_waits, short_received, true},
    {"MPI_Ssend of 1 MiB", NULL, long_ssend_waits, long_received, true},
    {"MPI_Barrier", NULL, barrier, barrier, false},
    {"MPI_Ibarrier and MPI_Wait", NULL, ibarrier, ibarrier, false},
    {"MPI_Bcast", NULL, bcast, bcast, false},
    {"MPI_Bcast of 1 MiB", NULL, long_bcast, long_bcast, false},
    {"MPI_Win_lock", lock, lock_waits, unlock, false},
    {"MPI_Win_fence", NULL, fence, fence, false},
    {"MPI_Win_wait", NULL, exposure_waits, access_ends, false},
};
/** @} */

/** A measurement of what @p arg says; both ranks take part. @return whether it is as it should be; true in a rank that does not know. */
typedef bool measure_t(int rank, uint64_t arg);

/** Measure until it is as it should be, TRIES times at most. */
static void measure(measure_t *once, int rank, uint64_t arg, const char *wrong)
{
    int right = 0;

    for (int i = 0; i < TRIES && 0 == right; i++) {
        right = once(rank, arg);
        MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    }
    verify_that(0 != right, wrong);
}

/** Rank 0 waits in a kind of call for as long as rank 1 sleeps. */
static bool cost(int rank, uint64_t kind)
{
    if (1 == rank && NULL != kinds[kind].ahead) {
        kinds[kind].ahead();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (1 == rank) {
        verify_sleep_ms((unsigned) wait_ms);
        kinds[kind].ends();
        return true;
    }
    const double before = cpu_ms();
    const long slept_before = times_slept();
    kinds[kind].waits();
    const double took = cpu_ms() - before;
    const long slept = times_slept() - slept_before;
    printf("%s of %llu ms took %.1f ms of CPU time and %ld sleeps\n", kinds[kind].name,
           (unsigned long long) wait_ms, took, slept);
    return (0 == cpu_most_ms || (double) cpu_most_ms >= took) && (0 == awake || FEW > slept);
}

/** In each kind of call. */
static void costs(int rank)
{
    for (uint64_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        if (!kinds[kind].blocks || 0 != blocking) {
            measure(cost, rank, kind,
                    0 == awake ? "that is too much for a rank that waits"
                               : "a rank sleeps that has to stay awake");
        }
    }
}

static int by_size(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *) a;
    const uint64_t right = *(const uint64_t *) b;

    return (left > right) - (left < right);
}

/** From the store of rank 1 to the return of rank 0: they share a clock. */
static bool wake(int rank, uint64_t times)
{
    uint64_t *took = calloc(times, sizeof(*took));
    double half = 0;
    uint64_t sent;

    verify_that(NULL != took, "no memory for times");
    for (uint64_t i = 0; i < times; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (1 == rank) {
            /* By then it sleeps, since it was in vain for more than a millisecond. */
            verify_sleep_ms(5 + (unsigned) (i % 16));
            sent = now_ns();
            MPI_Send(&sent, 1, MPI_UINT64_T, 0, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&sent, 1, MPI_UINT64_T, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            took[i] = now_ns() - sent;
        }
    }
    if (0 == rank) {
        qsort(took, times, sizeof(*took), by_size);
        half = (double) took[times / 2] / 1e3;
        printf("%llu wakes: half of them within %.1f us, 90 %% within %.1f us, the longest %.1f us\n",
               (unsigned long long) times, half, (double) took[times * 9 / 10] / 1e3,
               (double) took[times - 1] / 1e3);
    }
    free(took);
    return 0 == wake_most_us || (double) wake_most_us >= half;
}

/** A program that asks now and then, and computes meanwhile: no call takes as long as the shortest sleep, but for what others have
 * of the core. */
static bool test_now_and_then(int rank, uint64_t compute_us)
{
    MPI_Request request;
    uint64_t late = 0;
    int done = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (1 == rank) {
        MPI_Recv(message, 1, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(message, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        return true;
    }
    MPI_Irecv(message, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
    for (uint64_t i = 0; i < tests; i++) {
        const uint64_t began = now_ns();

        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        late += now_ns() - began > 50000;
        while (now_ns() - began < compute_us * 1000) {
        }
    }
    printf("%llu of %llu calls of MPI_Test, each %llu us, took more than 50 us\n", (unsigned long long) late,
           (unsigned long long) tests, (unsigned long long) compute_us);
    MPI_Send(message, 1, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return 10 * late < tests;
}

/** Rank 0 sends to rank 1 and waits for nobody. What rank 1 waits for is there, and nothing new comes: that is no reason to sleep. */
static bool scan_what_is_there(int rank, uint64_t times)
{
    const int mine = rank + 1;
    int sum = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (1 == rank) {
        /* It comes after the messages of all scans. */
        MPI_Recv(message, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const long slept_before = times_slept();
    for (uint64_t i = 0; i < times; i++) {
        MPI_Request request;

        MPI_Iscan(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify_that(0 == rank ? 1 == sum : 3 == sum, "a scan has another sum");
    }
    if (0 == rank) {
        MPI_Send(message, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        return true;
    }
    const long slept = times_slept() - slept_before;
    printf("%ld sleeps in %llu scans\n", slept, (unsigned long long) times);
    return (uint64_t) slept * 10 < times;
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'m', "MS", &wait_ms, 0},  {'c', "CPU_MS", &cpu_most_ms, 0}, {'a', "0|1", &awake, 0},
        {'w', "WAKES", &wakes, 0}, {'u', "US", &wake_most_us, 0},    {'t', "TESTS", &tests, 0},
        {'s', "SCANS", &scans, 0}, {'b', "0|1", &blocking, 0},       {0, NULL, NULL, 0}};
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    verify_options(argc, argv, options);
    message = calloc(1, LONG);
    verify_that(NULL != message, "no memory for messages");
    MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &window);
    if (0 != wait_ms) {
        /* Trees, areas and connections are made ahead. */
        barrier();
        ibarrier();
        bcast();
        long_bcast();
        fence();
        costs(rank);
    }
    if (0 != wakes) {
        measure(wake, rank, wakes, "a rank is woken too late");
    }
    for (uint64_t compute_us = 50; 0 != tests && 0 != compute_us; compute_us /= 7) {
        measure(test_now_and_then, rank, compute_us, "MPI_Test sleeps though the program computes");
    }
    if (0 != scans) {
        measure(scan_what_is_there, rank, scans, "a rank sleeps though what it waits for is there");
    }
    MPI_Win_free(&window);
    free(message);
    MPI_Finalize();
    return 0;
}
