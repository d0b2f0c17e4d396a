/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file threads_multiple.c
 * MPI_THREAD_MULTIPLE: several threads a rank exchange at once, first each on
 * a communicator of its own, then all on one communicator told apart by tags,
 * then all receiving whatever comes by matched probe.
 *
 *   threads_multiple [-s SEED] [-t THREADS] [-n ROUNDS] [-m LARGEST]
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "verify.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_THREADS 32
#define WINDOW       4

/* Tags of the any-source phase lie above those of the threads. */
#define TAG_ANY 1000

static int rank;
static int ranks;
static uint64_t seed = 1;
static int threads = 4;
static int rounds = 150;
static size_t largest = 200000;
static MPI_Comm own[MOST_THREADS];
static MPI_Comm common;
static unsigned long long messages;
static int any_left; /* any-source messages still to arrive at this rank */

static size_t size_of(int source, int thread, int round, int slot)
{
    verify_rng_t rng = {.state = verify_key(seed, (uint64_t) source, (uint64_t) thread,
                                            (uint64_t) round * WINDOW + (uint64_t) slot)};

    return verify_size(&rng, largest);
}

static uint64_t key_of(int source, int thread, int round, int slot)
{
    return verify_key(seed + 1, (uint64_t) source, (uint64_t) thread,
                      (uint64_t) round * WINDOW + (uint64_t) slot);
}

/* A window each way between a thread and its namesake at another rank. */
static void exchange(MPI_Comm comm, int thread, int round, int base)
{
    int distance = round % ranks;
    int target = (rank + distance) % ranks;
    int source = (rank + ranks - distance) % ranks;
    MPI_Request requests[2 * WINDOW];
    unsigned char *in[WINDOW];
    unsigned char *out[WINDOW];

    for (int i = 0; i < WINDOW; i++) {
        size_t size = size_of(source, thread, round, i);
        in[i] = verify_guard_alloc(size, 0);
        MPI_Irecv(in[i], (int) size, MPI_BYTE, source, base + i, comm, &requests[i]);
    }
    for (int i = 0; i < WINDOW; i++) {
        size_t size = size_of(rank, thread, round, i);
        out[i] = verify_guard_alloc(size, 0);
        verify_fill(out[i], size, key_of(rank, thread, round, i));
        MPI_Isend(out[i], (int) size, MPI_BYTE, target, base + i, comm, &requests[WINDOW + i]);
    }
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW; i++) {
        size_t size = size_of(source, thread, round, i);
        verify_expect(in[i], size, key_of(source, thread, round, i), "message between threads");
        verify_guard_free(in[i], size, 0, "receive buffer of a thread");
        verify_guard_free(out[i], size_of(rank, thread, round, i), 0, "send buffer of a thread");
    }
    dn_fetch_add_seq_cst(&messages, WINDOW);
}

/* Small blocking messages, the pattern that races on the fast path. */
static void ping_pong(MPI_Comm comm, int thread, int base)
{
    int peer = rank ^ 1;

    if (peer >= ranks) {
        return;
    }
    for (uint64_t i = 0; i < 300; i++) {
        uint64_t out[2] = {verify_key(i, (uint64_t) rank, (uint64_t) thread, 1), i};
        uint64_t in[2] = {0, 0};
        if (0 == rank % 2) {
            MPI_Send(out, 16, MPI_BYTE, peer, base, comm);
            MPI_Recv(in, 16, MPI_BYTE, peer, base, comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, 16, MPI_BYTE, peer, base, comm, MPI_STATUS_IGNORE);
            MPI_Send(out, 16, MPI_BYTE, peer, base, comm);
        }
        if (verify_key(i, (uint64_t) peer, (uint64_t) thread, 1) != in[0] || i != in[1]) {
            verify_fail("ping-pong %llu of thread %d: wrong data", (unsigned long long) i, thread);
        }
        dn_fetch_add_relaxed(&messages, 1);
    }
}

/* Take one message of the any-source phase if there is one. */
static void take_any(void)
{
    MPI_Message message;
    MPI_Status status;
    int found = 0;
    int count = 0;

    MPI_Improbe(MPI_ANY_SOURCE, TAG_ANY, common, &found, &message, &status);
    if (!found) {
        return;
    }
    MPI_Get_count(&status, MPI_BYTE, &count);
    unsigned char *in = verify_guard_alloc((size_t) count, 0);
    MPI_Mrecv(in, count, MPI_BYTE, &message, &status);
    verify_that(count >= 8, "a message lost its number");
    uint64_t key = *(uint64_t *) (void *) in;
    verify_expect(in + 8, (size_t) count - 8, key, "message taken by a matched probe");
    verify_guard_free(in, (size_t) count, 0, "matched receive");
    dn_fetch_sub_seq_cst(&any_left, 1);
    dn_fetch_add_seq_cst(&messages, 1);
}

/* Threads of all ranks send to all ranks and share the work of receiving. */
static void any_phase(int thread)
{
    for (int i = 0; i < rounds; i++) {
        size_t size = 8 + size_of(rank, thread, i, 0) % 9000;
        uint64_t key = key_of(rank, thread, i, 0);
        unsigned char *out = verify_guard_alloc(size, 0);
        MPI_Request request;
        int done = 0;
        *(uint64_t *) (void *) out = key;
        verify_fill(out + 8, size - 8, key);
        MPI_Isend(out, (int) size, MPI_BYTE, (rank + i) % ranks, TAG_ANY, common, &request);
        while (!done) {
            take_any();
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        verify_guard_free(out, size, 0, "send buffer of the any-source phase");
    }
    while (dn_load_seq_cst(&any_left) > 0) {
        take_any();
    }
}

static void *run_thread(void *argument)
{
    int thread = (int) (intptr_t) argument;

    ping_pong(own[thread], thread, 0);
    ping_pong(common, thread, thread * WINDOW);
    for (int round = 0; round < rounds; round++) {
        exchange(own[thread], thread, round, 0);
        exchange(common, thread, round, thread * WINDOW);
    }
    any_phase(thread);
    return NULL;
}

static void read_options(int argc, char **argv)
{
    int option;

    while (-1 != (option = getopt(argc, argv, "s:t:n:m:"))) {
        switch (option) {
        case 's':
            seed = verify_number(optarg, 0, "-s");
            break;
        case 't':
            threads = (int) verify_number(optarg, 1, "-t");
            break;
        case 'n':
            rounds = (int) verify_number(optarg, 1, "-n");
            break;
        case 'm':
            largest = verify_number(optarg, 0, "-m");
            break;
        default:
            fprintf(stderr, "usage: threads_multiple [-s SEED] [-t THREADS] [-n ROUNDS] "
                            "[-m LARGEST]\n");
            exit(2);
        }
    }
    if (threads > MOST_THREADS) {
        fprintf(stderr, "threads_multiple: -t takes 1 to %d threads, not %d\n", MOST_THREADS, threads);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    pthread_t handles[MOST_THREADS];
    int provided = MPI_THREAD_SINGLE;
    unsigned long long mine;
    unsigned long long total = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (MPI_THREAD_MULTIPLE != provided) {
        verify_fail("this MPI grants thread level %d, MPI_THREAD_MULTIPLE is needed", provided);
    }
    read_options(argc, argv);
    dn_store_seq_cst(&any_left, 0);
    for (int source = 0; source < ranks; source++) {
        for (int i = 0; i < rounds; i++) {
            dn_fetch_add_seq_cst(&any_left, (source + i) % ranks == rank ? threads : 0);
        }
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &common);
    for (int i = 0; i < threads; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    }
    for (int i = 0; i < threads; i++) {
        if (0 != pthread_create(&handles[i], NULL, run_thread, (void *) (intptr_t) i)) {
            verify_fail("cannot create thread %d; use a smaller -t", i);
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(handles[i], NULL);
    }
    verify_that(0 == dn_load_seq_cst(&any_left), "more messages came than were sent");
    for (int i = 0; i < threads; i++) {
        MPI_Comm_free(&own[i]);
    }
    MPI_Comm_free(&common);
    mine = dn_load_seq_cst(&messages);
    MPI_Reduce(&mine, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("threads_multiple: %d ranks, %d threads each, %llu messages verified\n", ranks, threads,
               total);
    }
    MPI_Finalize();
    return 0;
}
