/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file threads_buffered.c
 * Buffered sends of several threads at once: MPI_Bsend, MPI_Ibsend, and a request of MPI_Bsend_init that is
 * started in each round. Each thread of a rank sends to, and receives from, its namesake at the other rank.
 *
 *   threads_buffered [-t THREADS] [-n ROUNDS] [-e ELEMENTS] [-k KINDS] [-s SEED]
 *
 *   -e   most elements of a message, an int each, default 4096
 *   -k   the sum of what is sent: 1 MPI_Bsend, 2 MPI_Ibsend, 4 MPI_Bsend_init, default 7
 *
 * For 2 ranks. What is sent changes from round to round, and right after the send has returned. Ends with 0, or with 1
 * and a line that says what differs.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_THREADS 32

enum { BLOCKING, NONBLOCKING, PERSISTENT, KINDS };

/*
 * Messages of a thread that may wait in the buffer. A thread begins a round when its namesake has sent that of the round
 * before, and so has received the ones before that: those of two rounds wait. Twice as many, as the buffer may be cut up.
 */
#define MOST_WAITING (2 * 2 * KINDS)

static int rank;
static uint64_t threads = 4;
static uint64_t rounds = 8;
static uint64_t elements = 4096;
static uint64_t kinds = 7;
static uint64_t seed = 1;

typedef struct {
    int thread;
    int *out[KINDS];
    int *in;
    MPI_Request persistent;
} sender_t;

/* The persistent ones always have the most, as their count stays. */
static int count_of(int sender, int thread, uint64_t round, int kind)
{
    verify_rng_t rng = {
        .state = verify_key(seed, (uint64_t) (sender * MOST_THREADS + thread), round, (uint64_t) kind)};

    return (int) (PERSISTENT == kind || 0 == round % 2 ? elements : verify_below(&rng, elements + 1));
}

static uint64_t key_of(int sender, int thread, uint64_t round, int kind)
{
    return verify_key(seed + 1, (uint64_t) (sender * MOST_THREADS + thread), round, (uint64_t) kind);
}

static void must(int result, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    if (MPI_SUCCESS != result) {
        MPI_Error_string(result, text, &length);
        verify_fail("%s failed: %s", call, text);
    }
}

static void send_one(sender_t *sender, uint64_t round, int kind)
{
    const int count = count_of(rank, sender->thread, round, kind);
    const int tag = sender->thread * KINDS + kind;
    MPI_Request request;
    MPI_Status status;

    verify_fill(sender->out[kind], (size_t) count * sizeof(int), key_of(rank, sender->thread, round, kind));
    switch (kind) {
    case BLOCKING:
        must(MPI_Bsend(sender->out[kind], count, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD), "MPI_Bsend");
        break;
    case NONBLOCKING:
        must(MPI_Ibsend(sender->out[kind], count, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &request),
             "MPI_Ibsend");
        must(MPI_Wait(&request, &status), "MPI_Wait of MPI_Ibsend");
        break;
    default:
        must(MPI_Start(&sender->persistent), "MPI_Start");
        must(MPI_Wait(&sender->persistent, &status), "MPI_Wait of MPI_Bsend_init");
        break;
    }
    memset(sender->out[kind], 0xEE, (size_t) count * sizeof(int));
}

static void receive_one(sender_t *sender, uint64_t round, int kind)
{
    static const char *const names[KINDS] = {"data of MPI_Bsend", "data of MPI_Ibsend",
                                             "data of MPI_Bsend_init"};
    const int count = count_of(1 - rank, sender->thread, round, kind);
    MPI_Status status;
    int got = -1;

    must(MPI_Recv(sender->in, (int) elements, MPI_INT, 1 - rank, sender->thread * KINDS + kind,
                  MPI_COMM_WORLD, &status),
         "MPI_Recv");
    MPI_Get_count(&status, MPI_INT, &got);
    if (count != got) {
        verify_fail("%s: %d elements came, expected %d", names[kind], got, count);
    }
    verify_expect(sender->in, (size_t) count * sizeof(int), key_of(1 - rank, sender->thread, round, kind),
                  names[kind]);
}

static bool is_wanted(int kind)
{
    return 0 != (kinds >> kind & 1);
}

static int *get(void)
{
    int *memory = malloc((elements + 1) * sizeof(int));

    verify_that(NULL != memory, "no memory for a thread");
    return memory;
}

static void *run(void *arg)
{
    sender_t *sender = arg;

    sender->in = get();
    for (int kind = 0; kind < KINDS; kind++) {
        sender->out[kind] = get();
    }
    must(MPI_Bsend_init(sender->out[PERSISTENT], (int) elements, MPI_INT, 1 - rank,
                        sender->thread * KINDS + PERSISTENT, MPI_COMM_WORLD, &sender->persistent),
         "MPI_Bsend_init");
    for (uint64_t round = 0; round < rounds; round++) {
        for (int kind = 0; kind < KINDS; kind++) {
            if (is_wanted(kind)) {
                send_one(sender, round, kind);
            }
        }
        for (int kind = KINDS - 1; kind >= 0; kind--) {
            if (is_wanted(kind)) {
                receive_one(sender, round, kind);
            }
        }
    }
    must(MPI_Request_free(&sender->persistent), "MPI_Request_free");
    for (int kind = 0; kind < KINDS; kind++) {
        free(sender->out[kind]);
    }
    free(sender->in);
    return NULL;
}

static const verify_option_t options[] = {{'t', "THREADS", &threads, 1},   {'n', "ROUNDS", &rounds, 1},
                                          {'e', "ELEMENTS", &elements, 1}, {'k', "KINDS", &kinds, 1},
                                          {'s', "SEED", &seed, 0},         {0, NULL, NULL, 0}};

int main(int argc, char **argv)
{
    static sender_t senders[MOST_THREADS];
    static pthread_t ids[MOST_THREADS];
    void *buffer;
    int provided;
    int ranks;
    int size;

    verify_options(argc, argv, options);
    verify_that(threads <= MOST_THREADS, "-t takes 32 threads at most");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_that(MPI_THREAD_MULTIPLE == provided, "MPI_THREAD_MULTIPLE is not provided");
    verify_that(2 == ranks, "threads_buffered runs on 2 ranks");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    const size_t room = threads * MOST_WAITING * (elements * sizeof(int) + MPI_BSEND_OVERHEAD);
    buffer = malloc(room);
    verify_that(NULL != buffer, "no memory for the buffer of MPI_Bsend");
    must(MPI_Buffer_attach(buffer, (int) room), "MPI_Buffer_attach");
    for (int i = 0; i < (int) threads; i++) {
        senders[i].thread = i;
        verify_that(0 == pthread_create(&ids[i], NULL, run, &senders[i]), "cannot make a thread");
    }
    for (int i = 0; i < (int) threads; i++) {
        pthread_join(ids[i], NULL);
    }
    must(MPI_Buffer_detach(&buffer, &size), "MPI_Buffer_detach");
    verify_that((size_t) size == room, "MPI_Buffer_detach gives another size");
    free(buffer);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        printf("threads_buffered: %d threads, %d rounds of up to %d elements verified\n", (int) threads,
               (int) rounds, (int) elements);
    }
    MPI_Finalize();
    return 0;
}
