/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives.c
 * Short collectives of every kind on communicators of every shape, against references that each rank computes.
 *
 *   collectives [-s SEED] [-n ROUNDS] [-a 0|1] [-b BARRIERS] [-c COMMUNICATORS] [-t THREADS] [-l BYTES] [-e ROUNDS] [-x ROUNDS]
 *               [-g ROUNDS] [-o ROUNDS]
 *
 *   -n  rounds of random collectives on each communicator
 *   -a  all operations on all types, in counts about the length of a line and of the longest operation in lines
 *   -b  barriers, of which none may be left before all ranks have come to it
 *   -c  communicators made, used and freed
 *   -t  threads that do what -n says at once, each on communicators of its own
 *   -l  most bytes of a block in random collectives, and four times the elements of their reductions; default 3000
 *   -e  rounds of long ones, each on several communicators in turns; and that all went through shared memory is checked
 *   -x  rounds of an allgather and an alltoall of a number for each rank; and that all went through lines is checked. Likewise
 *       nonblocking and persistent collectives; then persistent ones that outlive what they are made of
 *   -g  rounds of a short broadcast, a reduction, a scan and a gather, then some long exchanges, on ranks that share cores; and that they
 *       went through shared memory is checked
 *   -o  rounds of an allgather in which mostly a rank gives more than its place holds
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "collectives.h"
#include "counter.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 8, COMMS = 6, MOST_RANKS = 64 };

static uint64_t seed = 1;
static uint64_t rounds;
static uint64_t all;
static uint64_t barriers;
static uint64_t communicators;
static uint64_t threads;
static uint64_t longest = 3000;
static uint64_t long_rounds;
static uint64_t exchange_rounds;
static uint64_t stream_rounds;
static uint64_t excess_rounds;
static int rank;
static int ranks;
static unsigned long long checked;
static MPI_Comm of_thread[MOST_THREADS][COMMS];

void collectives_count(void)
{
    dn_fetch_add_seq_cst(&checked, 1);
}

/** Communicators of every kind: the world, its ranks reversed, halves, pairs, all but one, a rank alone. */
static void make_comms(MPI_Comm comm[COMMS])
{
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm[2]);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, -rank, &comm[3]);
    MPI_Comm_split(MPI_COMM_WORLD, rank == ranks - 1 ? MPI_UNDEFINED : 0, rank, &comm[4]);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &comm[5]);
}

static void free_comms(MPI_Comm comm[COMMS])
{
    for (int i = 0; i < COMMS; i++) {
        if (MPI_COMM_NULL != comm[i]) {
            MPI_Comm_free(&comm[i]);
        }
    }
}

static void some(MPI_Comm comm, verify_rng_t *rng)
{
    const int most = 0 == verify_below(rng, 4) ? (int) longest : 64;

    switch (verify_below(rng, 10)) {
    case 6:
        if (0 == verify_below(rng, 4)) {
            collectives_idup(comm, rng);
        } else if (0 == verify_below(rng, 4)) {
            collectives_persistent(comm, rng);
        } else {
            collectives_nonblocking(comm, rng);
        }
        break;
    case 0:
        MPI_Barrier(comm);
        collectives_count();
        break;
    case 1:
        collectives_bcast(comm, rng, most);
        break;
    case 2:
        collectives_allgather(comm, rng, most);
        break;
    case 3:
        collectives_alltoall(comm, rng, most);
        break;
    case 9:
        collectives_alltoallv(comm, rng, most);
        break;
    case 8:
        collectives_allgatherv(comm, rng, most);
        break;
    case 7:
        collectives_gather(comm, rng, most);
        break;
    default:
        collectives_reduce_some(comm, rng, most / 4);
        break;
    }
}

/** Rounds of random collectives, in turns on communicators that overlap. */
static void random_rounds(MPI_Comm comm[COMMS], uint64_t salt)
{
    verify_rng_t rng[COMMS];
    verify_rng_t here = {.state = verify_key(seed, salt, (uint64_t) rank, 7)};

    for (int i = 0; i < COMMS; i++) {
        /* The same in all members, whatever else they are in. */
        rng[i].state = verify_key(seed, salt, (uint64_t) i, 0);
    }
    for (uint64_t round = 0; round < rounds; round++) {
        for (int i = 0; i < COMMS; i++) {
            if (MPI_COMM_NULL != comm[i]) {
                some(comm[i], &rng[i]);
            }
        }
        collectives_nonblocking_on_all(comm, rng, COMMS, &here);
    }
}

static void *thread_main(void *arg)
{
    const uint64_t number = (uint64_t) (uintptr_t) arg;

    random_rounds(of_thread[number], number);
    return NULL;
}

static void run_threads(void)
{
    pthread_t thread[MOST_THREADS];

    for (uint64_t i = 0; i < threads; i++) {
        make_comms(of_thread[i]);
    }
    for (uint64_t i = 0; i < threads; i++) {
        verify_that(0 == pthread_create(&thread[i], NULL, thread_main, (void *) (uintptr_t) i),
                    "no thread can be started");
    }
    for (uint64_t i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    for (uint64_t i = 0; i < threads; i++) {
        free_comms(of_thread[i]);
    }
}

static void run_all_operations(void)
{
    static const int counts[] = {1, 2, 3, 7, 8, 14, 56, 57, 112, 113, 224, 225, 896, 897};
    verify_rng_t rng = {.state = verify_key(seed, 99, 0, 0)};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        collectives_reduce_all(MPI_COMM_WORLD, &rng, counts[i]);
    }
}

/** Come to a barrier, leave it; of every four one is nonblocking. */
static void pass_barrier(uint64_t number)
{
    MPI_Request request;

    if (0 == number % 4) {
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/** Each rank says in memory that all see to which barrier it has come. */
static void run_barriers(void)
{
    verify_rng_t rng = {.state = verify_key(seed, (uint64_t) rank, 5, 0)};
    unsigned long long *own;
    unsigned long long *of[MOST_RANKS];
    MPI_Aint size;
    MPI_Win window;
    int unit;

    verify_that(MOST_RANKS >= ranks, "-b is for 64 ranks at most");
    MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    for (int i = 0; i < ranks; i++) {
        MPI_Win_shared_query(window, i, &size, &unit, &of[i]);
    }
    dn_store_seq_cst(own, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t number = 1; number <= barriers; number++) {
        if (0 == verify_below(&rng, 64)) {
            for (volatile uint64_t n = verify_below(&rng, 2000); 0 < n; n--) {
            }
        }
        if (0 == verify_below(&rng, 2000)) {
            sched_yield();
        }
        dn_store_relaxed(own, number);
        pass_barrier(number);
        for (int i = 0; i < ranks; i++) {
            verify_that(number <= dn_load_relaxed(of[i]),
                        "a rank left a barrier before another had come to it");
        }
        collectives_count();
    }
    MPI_Win_free(&window);
}

/** Make, use and free; some live on while others come and go. */
static void run_communicators(void)
{
    enum { KEPT = 5 };
    verify_rng_t rng = {.state = verify_key(seed, 6, 0, 0)};
    MPI_Comm kept[KEPT];

    for (int i = 0; i < KEPT; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &kept[i]);
    }
    for (uint64_t i = 0; i < communicators; i++) {
        MPI_Comm *comm = &kept[verify_below(&rng, KEPT)];
        MPI_Comm_free(comm);
        MPI_Comm_dup(MPI_COMM_WORLD, comm);
        /* The root of broadcasts is ahead when it frees the communicator. */
        for (uint64_t n = verify_below(&rng, 12); 0 < n; n--) {
            collectives_bcast(*comm, &rng, 40);
        }
        if (0 == verify_below(&rng, 4)) {
            collectives_nonblocking_outlive(*comm, &rng);
        }
        some(kept[verify_below(&rng, KEPT)], &rng);
    }
    for (int i = 0; i < KEPT; i++) {
        MPI_Comm_free(&kept[i]);
    }
}

/** Have all ranks together fewer processors than there are ranks? Else they may share some all the same. */
static int share_cores(void)
{
    cpu_set_t own, of_all;

    verify_that(0 == sched_getaffinity(0, sizeof(own), &own), "the processors of a rank are not known");
    MPI_Allreduce(&own, &of_all, sizeof(own), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    return CPU_COUNT(&of_all) < ranks;
}

/** What is that long is not left to another component, which would pass just as well; but broadcasts to one, that has a core of its
 * own, may all be messages. */
static void run_long(void)
{
    if (0 < long_rounds) {
        const int may_be_messages = 2 == ranks && !share_cores();
        counter_t counter;

        counter_open(&counter, "coll_llcm_long_bytes");
        const unsigned long long bytes = collectives_long_in_turns(long_rounds);
        verify_that(bytes == counter_read(&counter), "long collectives went some other way");
        const unsigned long long nested = collectives_long_nested();
        const unsigned long long now = counter_read(&counter);
        verify_that(bytes + nested == now || (may_be_messages && bytes == now),
                    "long broadcasts went some other way");
        counter_close(&counter);
    }
}

/** Ranks that share cores run ahead by what an area holds: all go through areas but for the first. */
static void run_streams(void)
{
    /* Of 4 rounds, each of four collectives. */
    enum { FIRST_WORDS = 4 * 43, UNEQUAL_ROUNDS = 200 };

    if (0 < stream_rounds) {
        counter_t counter;

        counter_open(&counter, "coll_llcm_long_bytes");
        unsigned long long bytes = collectives_streams(stream_rounds) - FIRST_WORDS * sizeof(uint64_t);
        verify_that(bytes == counter_read(&counter), "streams of short collectives went some other way");
        bytes += collectives_long_exchanges();
        verify_that(bytes == counter_read(&counter), "exchanges of long blocks went some other way");
        bytes += collectives_long_unequal(seed, UNEQUAL_ROUNDS);
        verify_that(bytes == counter_read(&counter), "exchanges of unequal blocks went some other way");
        counter_close(&counter);
    }
}

static void run_excess(void)
{
    verify_rng_t rng = {.state = verify_key(seed, 8, 0, 0)};
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    collectives_excess(comm, &rng, excess_rounds);
    MPI_Comm_free(&comm);
}

/** An allgather and an alltoall of one number from each rank to each. */
static void exchange_numbers(uint64_t round)
{
    uint64_t out[MOST_RANKS], in[MOST_RANKS];

    for (int i = 0; i < ranks; i++) {
        out[i] = verify_key(round, (uint64_t) rank, (uint64_t) i, 0);
    }
    MPI_Allgather(out, 1, MPI_UINT64_T, in, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        verify_that(in[i] == verify_key(round, (uint64_t) i, 0, 0), "MPI_Allgather: a number is wrong");
    }
    MPI_Alltoall(out, 1, MPI_UINT64_T, in, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        verify_that(in[i] == verify_key(round, (uint64_t) i, (uint64_t) rank, 0),
                    "MPI_Alltoall: a number is wrong");
    }
    collectives_count();
}

/** What is that short is not left to another component either. */
static void run_exchanges(void)
{
    if (0 < exchange_rounds) {
        counter_t counter, through_areas;

        verify_that(MOST_RANKS >= ranks, "-x is for 64 ranks at most");
        counter_open(&counter, "coll_llcm_exchanges");
        counter_open(&through_areas, "coll_llcm_long_bytes");
        const unsigned long long before = counter_read(&through_areas);
        for (uint64_t round = 0; round < exchange_rounds; round++) {
            exchange_numbers(round);
        }
        verify_that(2 * exchange_rounds == counter_read(&counter), "short exchanges went some other way");
        verify_that(before == counter_read(&through_areas), "short exchanges did not go through lines");
        counter_close(&through_areas);
        counter_close(&counter);
        collectives_taken(MPI_COMM_WORLD);
        collectives_start_once(MPI_COMM_WORLD);
        collectives_persistent_outlive(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'s', "SEED", &seed, 0},
        {'n', "ROUNDS", &rounds, 0},
        {'a', "0|1", &all, 0},
        {'b', "BARRIERS", &barriers, 0},
        {'c', "COMMUNICATORS", &communicators, 0},
        {'t', "THREADS", &threads, 0},
        {'l', "BYTES", &longest, 0},
        {'e', "ROUNDS", &long_rounds, 0},
        {'x', "ROUNDS", &exchange_rounds, 0},
        {'g', "ROUNDS", &stream_rounds, 0},
        {'o', "ROUNDS", &excess_rounds, 0},
        {0, NULL, NULL, 0},
    };
    unsigned long long total = 0;
    MPI_Comm comm[COMMS];
    int level;

    verify_options(argc, argv, options);
    MPI_Init_thread(&argc, &argv, 0 < threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_that(MOST_THREADS >= threads && (0 == threads || MPI_THREAD_MULTIPLE == level),
                "so many threads cannot be had");
    collectives_reduce_begin();
    if (0 != all) {
        run_all_operations();
    }
    if (0 < barriers) {
        run_barriers();
    }
    run_communicators();
    run_long();
    run_exchanges();
    run_streams();
    run_excess();
    if (0 < threads) {
        run_threads();
    } else {
        make_comms(comm);
        random_rounds(comm, 0);
        free_comms(comm);
    }
    collectives_reduce_end();
    const unsigned long long own = dn_load_seq_cst(&checked);
    MPI_Reduce(&own, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("collectives: %d ranks, %llu collectives verified\n", ranks, total);
    }
    MPI_Finalize();
    return 0;
}
