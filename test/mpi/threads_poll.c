/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file threads_poll.c
 * MPI_THREAD_MULTIPLE: several threads a rank receive messages of a rendezvous and poll for them without a
 * pause, while the sender sleeps and leaves them the cores. Unlike threads that wait, of which Open MPI lets
 * one at a time look for news, all of them are in the transport at once: one takes messages in while another
 * starts what had to wait.
 *
 *   threads_poll [-s SEED] [-t THREADS] [-n ROUNDS] [-m LARGEST]
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 16, WINDOW = 32, SLEEP_MS = 2, TAG_READY = 30000 };

static int rank;
static int ranks;
static uint64_t seed = 1;
static uint64_t threads = 3;
static uint64_t rounds = 40;
static uint64_t largest = 40000;

static size_t size_of(uint64_t key)
{
    verify_rng_t rng = {.state = key};

    return 1 + verify_below(&rng, largest);
}

/** Messages of a thread in one direction. */
typedef struct {
    MPI_Request request[WINDOW];
    unsigned char *data[WINDOW];
    uint64_t key[WINDOW];
} window_t;

static void open_window(window_t *w, int sender, int thread, uint64_t round)
{
    for (int i = 0; i < WINDOW; i++) {
        w->key[i] = verify_key(seed, (uint64_t) sender, (uint64_t) (thread * WINDOW + i), round);
        w->data[i] = verify_guard_alloc(size_of(w->key[i]), 0);
    }
}

static void poll_window(window_t *w)
{
    int done = 0;

    while (!done) {
        MPI_Testall(WINDOW, w->request, &done, MPI_STATUSES_IGNORE);
    }
}

static void close_window(window_t *w)
{
    for (int i = 0; i < WINDOW; i++) {
        verify_expect(w->data[i], size_of(w->key[i]), w->key[i], "message between polling threads");
        verify_guard_free(w->data[i], size_of(w->key[i]), 0, "message between polling threads");
    }
}

static void send_and_sleep(window_t *w, int target, int thread)
{
    for (int i = 0; i < WINDOW; i++) {
        MPI_Isend(w->data[i], (int) size_of(w->key[i]), MPI_BYTE, target, thread * WINDOW + i, MPI_COMM_WORLD,
                  &w->request[i]);
    }
    verify_sleep_ms(SLEEP_MS);
}

/** From the left neighbour's namesake, to the right one's: every other rank sends first. */
static void exchange(int thread, uint64_t round)
{
    const int target = (rank + 1) % ranks;
    const int source = (rank + ranks - 1) % ranks;
    const bool first = 1 == ranks || 0 == ((uint64_t) rank + round) % 2;
    window_t in;
    window_t out;

    open_window(&in, source, thread, round);
    open_window(&out, rank, thread, round);
    for (int i = 0; i < WINDOW; i++) {
        verify_fill(out.data[i], size_of(out.key[i]), out.key[i]);
        MPI_Irecv(in.data[i], (int) size_of(in.key[i]), MPI_BYTE, source, thread * WINDOW + i, MPI_COMM_WORLD,
                  &in.request[i]);
    }
    /* Receives are there before the messages, which are so matched when they are taken in. */
    MPI_Sendrecv(NULL, 0, MPI_BYTE, source, TAG_READY + thread, NULL, 0, MPI_BYTE, target, TAG_READY + thread,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (first) {
        send_and_sleep(&out, target, thread);
    }
    poll_window(&in);
    if (!first) {
        send_and_sleep(&out, target, thread);
    }
    poll_window(&out);
    close_window(&in);
    close_window(&out);
}

static void *run_thread(void *argument)
{
    for (uint64_t round = 0; round < rounds; round++) {
        exchange((int) (intptr_t) argument, round);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'s', "SEED", &seed, 0},
                                       {'t', "THREADS", &threads, 1},
                                       {'n', "ROUNDS", &rounds, 1},
                                       {'m', "LARGEST", &largest, 1},
                                       {0}};
    pthread_t handles[MOST_THREADS];
    int provided = MPI_THREAD_SINGLE;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_that(MPI_THREAD_MULTIPLE == provided, "this MPI does not grant MPI_THREAD_MULTIPLE");
    verify_options(argc, argv, options);
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    for (uint64_t i = 0; i < threads; i++) {
        if (0 != pthread_create(&handles[i], NULL, run_thread, (void *) (intptr_t) i)) {
            verify_fail("cannot create thread %llu; use a smaller -t", (unsigned long long) i);
        }
    }
    for (uint64_t i = 0; i < threads; i++) {
        pthread_join(handles[i], NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        printf("threads_poll: %d ranks, %llu threads each, %llu messages a rank verified\n", ranks,
               (unsigned long long) threads, (unsigned long long) (threads * rounds * WINDOW));
    }
    MPI_Finalize();
    return 0;
}
