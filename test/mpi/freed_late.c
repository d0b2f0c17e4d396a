/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file freed_late.c
 * Datatypes and communicators that the program frees while a request still uses them. They end with the request. The end of a type calls a
 * function of the program, which waits for messages here.
 *
 *   freed_late [-n ROUNDS] [-t 1] [-c 1] [-m 1]
 *
 *   -t 1  with MPI_THREAD_MULTIPLE: the function also waits for a mutex. Another thread holds the mutex while it waits for a message.
 *   -c 1  only communicators, by two threads: one thread leaves communicators to their requests, the other makes and frees its own
 *   -m 1  only communicators of messages that were matched by MPI_Mprobe
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FLOOD = 3000,
    BYTES = 1000,
    TAG_TYPED = 1,
    TAG_FLOOD,
    TAG_ASK,
    TAG_ANSWER,
    TAG_LEFT,
    COLLECTIVES = 12
};

static int rank;
static int keyval;
static int ended; /* types, so far */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/** MPI_Type_delete_attr_function: receive the whole flood, more than a ring holds. */
static int take_flood(MPI_Datatype type, int key, void *value, void *extra)
{
    static char bytes[BYTES];

    (void) type;
    (void) key;
    (void) value;
    (void) extra;
    for (int i = 0; i < FLOOD; i++) {
        MPI_Recv(bytes, BYTES, MPI_BYTE, 0, TAG_FLOOD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    ended++;
    return MPI_SUCCESS;
}

/** MPI_Type_delete_attr_function: wait for the mutex. */
static int take_mutex(MPI_Datatype type, int key, void *value, void *extra)
{
    (void) type;
    (void) key;
    (void) value;
    (void) extra;
    pthread_mutex_lock(&mutex);
    ended++;
    pthread_mutex_unlock(&mutex);
    return MPI_SUCCESS;
}

/** Receive by a type with gaps, which is freed at once. */
static MPI_Request receive_typed(void)
{
    static int ints[8];
    MPI_Datatype type;
    MPI_Request request;

    MPI_Type_vector(4, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, keyval, NULL);
    MPI_Irecv(ints, 1, type, 0, TAG_TYPED, MPI_COMM_WORLD, &request);
    MPI_Type_free(&type);
    return request;
}

static void send_typed(void)
{
    static const int ints[4];

    MPI_Send(ints, 4, MPI_INT, 1, TAG_TYPED, MPI_COMM_WORLD);
}

/** The ring is full when rank 1 comes to the message, and rank 0 waits for room. @param[in] leaves  Rank 1 frees the request at once. */
static void end_before_a_flood(bool leaves)
{
    static const char bytes[BYTES];
    const int before = ended;
    int flag;

    if (0 == rank) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_ASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        send_typed();
        for (int i = 0; i < FLOOD; i++) {
            MPI_Send(bytes, BYTES, MPI_BYTE, 1, TAG_FLOOD, MPI_COMM_WORLD);
        }
        return;
    }
    MPI_Request request = receive_typed();
    if (leaves) {
        MPI_Request_free(&request);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ASK, MPI_COMM_WORLD);
    verify_sleep_ms(20);
    if (!leaves) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    while (before == ended) {
        MPI_Iprobe(0, TAG_LEFT, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

static void *hold_mutex(void *argument)
{
    (void) argument;
    pthread_mutex_lock(&mutex);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ASK, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void end_beside_a_mutex(void)
{
    pthread_t thread;

    if (0 == rank) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_ASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        send_typed();
        verify_sleep_ms(5);
        MPI_Send(NULL, 0, MPI_BYTE, 1, TAG_ANSWER, MPI_COMM_WORLD);
        return;
    }
    MPI_Request request = receive_typed();
    verify_that(0 == pthread_create(&thread, NULL, hold_mutex, NULL), "cannot create a thread");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    pthread_join(thread, NULL);
}

/** A communicator that is used often enough to have a tree. */
static MPI_Comm used_comm(MPI_Comm of)
{
    const int out = 0;
    int in;
    MPI_Comm comm;

    MPI_Comm_dup(of, &comm);
    for (int i = 0; i < COLLECTIVES; i++) {
        MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, comm);
    }
    return comm;
}

/** Long enough for areas. */
static void use_areas(MPI_Comm comm)
{
    enum { LONG = 1 << 15 };
    static int in[LONG], out[LONG];

    MPI_Allreduce(in, out, LONG, MPI_INT, MPI_SUM, comm);
}

static MPI_Comm parents[2];
static uint64_t rounds = 20;

/** Communicators end with a receive of rank 0 that was left to itself. */
static void *leave_comms(void *argument)
{
    const MPI_Comm parent = parents[0];
    static int left;

    for (uint64_t i = 0; i < rounds; i++) {
        MPI_Comm comm = used_comm(parent);
        MPI_Request request;

        if (0 == rank) {
            MPI_Irecv(&left, 1, MPI_INT, 1, TAG_LEFT, comm, &request);
            MPI_Request_free(&request);
            MPI_Comm_free(&comm);
            MPI_Send(NULL, 0, MPI_BYTE, 1, TAG_ASK, parent);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_ANSWER, parent, MPI_STATUS_IGNORE);
        } else {
            const int one = 1;
            MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_ASK, parent, MPI_STATUS_IGNORE);
            MPI_Send(&one, 1, MPI_INT, 0, TAG_LEFT, comm);
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ANSWER, parent);
            MPI_Comm_free(&comm);
        }
    }
    return argument;
}

static void *free_comms(void *argument)
{
    for (uint64_t i = 0; i < rounds; i++) {
        MPI_Comm comm = used_comm(parents[1]);

        use_areas(comm);
        use_areas(comm);
        MPI_Comm_free(&comm);
    }
    return argument;
}

static void end_beside_others(void)
{
    pthread_t thread;

    MPI_Comm_dup(MPI_COMM_WORLD, &parents[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &parents[1]);
    verify_that(0 == pthread_create(&thread, NULL, leave_comms, NULL), "cannot create a thread");
    (void) free_comms(NULL);
    pthread_join(thread, NULL);
    MPI_Comm_free(&parents[0]);
    MPI_Comm_free(&parents[1]);
}

/** Bytes of the program's memory where the communicator lay, if it was freed too early: blocks of every length that it may have. */
enum {
    BLOCK_LEAST = 128,
    BLOCK_MOST = 1600,
    BLOCK_STEP = 8,
    BLOCKS = (BLOCK_MOST - BLOCK_LEAST) / BLOCK_STEP
};

static size_t block_length(size_t i)
{
    return BLOCK_LEAST + i * BLOCK_STEP;
}

/** A message that was matched by MPI_Mprobe holds its communicator, which is freed before the message is received. */
static void end_with_a_message(void)
{
    unsigned char *blocks[BLOCKS];
    int in = 0;
    MPI_Message message;
    MPI_Request request;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (0 == rank) {
        const int one = 1;
        MPI_Send(&one, 1, MPI_INT, 1, TAG_LEFT, comm);
        MPI_Comm_free(&comm);
        return;
    }
    MPI_Mprobe(0, TAG_LEFT, comm, &message, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(block_length(i));
        verify_fill(blocks[i], block_length(i), i);
    }
    MPI_Imrecv(&in, 1, MPI_INT, &message, &request);
    for (size_t i = 0; i < BLOCKS; i++) {
        verify_expect(blocks[i], block_length(i), i, "memory that is none of a communicator");
        free(blocks[i]);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify_that(1 == in, "a message came with other bytes");
}

int main(int argc, char **argv)
{
    uint64_t threads = 0, comms = 0, matched = 0;
    const verify_option_t options[] = {{'n', "ROUNDS", &rounds, 1},
                                       {'t', "THREADS", &threads, 0},
                                       {'c', "COMMUNICATORS", &comms, 0},
                                       {'m', "MATCHED", &matched, 0},
                                       {0}};
    int level;

    verify_options(argc, argv, options);
    MPI_Init_thread(&argc, &argv, 0 != threads || 0 != comms ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, 0 != threads ? take_mutex : take_flood, &keyval, NULL);
    if (0 != comms) {
        end_beside_others();
    }
    for (uint64_t i = 0; i < rounds && 0 == comms; i++) {
        if (0 != matched) {
            end_with_a_message();
        } else if (0 != threads) {
            end_beside_a_mutex();
        } else {
            end_before_a_flood(0 == i % 2);
        }
    }
    if (1 == rank) {
        verify_that(0 != comms || 0 != matched || rounds == (uint64_t) ended,
                    "a type has not ended with its request");
        printf("freed_late: %llu rounds\n", (unsigned long long) rounds);
    }
    MPI_Type_free_keyval(&keyval);
    MPI_Finalize();
    return 0;
}
