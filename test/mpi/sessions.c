/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file sessions.c
 * Sessions of MPI-4, without MPI_Init: communicators that come from groups, and not from another communicator, may have a different
 * number in each process. Messages and collectives find them all the same.
 *
 *   sessions [-n ROUNDS] [-s SESSIONS] [-t THREADS] [-w] [-e]
 *
 * With threads, several send in one communicator at once, also the first messages to each process. With -w, windows are made of
 * such a communicator. With -e, rank 0 ends its session while the others go on.
 *
 * One session by default: of several in a row some never begin in Open MPI 5.0.7, also without dimmnet, as PMIx shows what an earlier
 * session has told.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t rounds = 20;
static uint64_t sessions = 1;
static uint64_t threads = 0;
static int windows = 0;
static int early = 0;

#ifdef MPI_SESSION_NULL
/** More communicators than others have: the numbers of those to come differ. */
static void alone(MPI_Session session, MPI_Comm *own, int count)
{
    MPI_Group self;

    MPI_Group_from_session_pset(session, "mpi://SELF", &self);
    for (int i = 0; i < count; i++) {
        char name[32];

        snprintf(name, sizeof(name), "alone %d", i);
        MPI_Comm_create_from_group(self, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &own[i]);
    }
    MPI_Group_free(&self);
}

#    define LONGEST 70000

/** To the next rank, and from the rank before by its number or from any: one length for each way that a message goes. No other thread has
 * these tags, from @p tag on. */
static void ring(MPI_Comm comm, uint64_t round, int tag)
{
    static const int lengths[] = {0, 1, 7, 64, 4000, 20000, LONGEST};
    uint8_t *out = malloc(LONGEST), *in = malloc(LONGEST);
    int rank, ranks;

    verify_that(NULL != out && NULL != in, "there is no memory");

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const int len = lengths[i], before = (rank + ranks - 1) % ranks;
        const uint8_t first = (uint8_t) (round + i);
        MPI_Status status;
        MPI_Request request;
        int count;

        for (int at = 0; at < len; at++) {
            out[at] = (uint8_t) (first + rank + at);
            in[at] = 0;
        }
        MPI_Irecv(in, len, MPI_BYTE, i % 2 ? before : MPI_ANY_SOURCE, tag + (int) i, comm, &request);
        MPI_Send(out, len, MPI_BYTE, (rank + 1) % ranks, tag + (int) i, comm);
        MPI_Wait(&request, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        verify_that(len == count && before == status.MPI_SOURCE, "a message is not the one that was sent");
        for (int at = 0; at < len; at++) {
            verify_that((uint8_t) (first + before + at) == in[at], "a byte is not the one that was sent");
        }
    }
    free(out);
    free(in);
}

static void collect(MPI_Comm comm, uint64_t round)
{
    const int64_t mine = (int64_t) round + 1;
    int64_t sum = 0;
    int rank, ranks, from_0;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Barrier(comm);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, comm);
    verify_that(ranks * mine == sum, "a sum is wrong");
    from_0 = 0 == rank ? (int) round : -1;
    MPI_Bcast(&from_0, 1, MPI_INT, 0, comm);
    verify_that((int) round == from_0, "a broadcast is wrong");
}

/** Between two groups: the first rank, and the others. Ranks count from 0 in each. */
static void between_groups(MPI_Group world, uint64_t round)
{
    MPI_Group first, others;
    MPI_Comm comm;
    int rank, ranks, zero = 0, token = -1;

    MPI_Group_rank(world, &rank);
    MPI_Group_size(world, &ranks);
    MPI_Group_incl(world, 1, &zero, &first);
    MPI_Group_excl(world, 1, &zero, &others);
    MPI_Intercomm_create_from_groups(0 == rank ? first : others, 0, 0 == rank ? others : first, 0,
                                     "two sides", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    for (int other = 0; other < ranks - 1; other++) {
        const int sent = (int) round + other;

        if (0 == rank) {
            MPI_Send(&sent, 1, MPI_INT, other, 1, comm);
            MPI_Recv(&token, 1, MPI_INT, other, 2, comm, MPI_STATUS_IGNORE);
            verify_that(sent + 1 == token, "an answer between two groups is wrong");
        } else if (other == rank - 1) {
            MPI_Recv(&token, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
            verify_that(sent == token, "a message between two groups is wrong");
            token++;
            MPI_Send(&token, 1, MPI_INT, 0, 2, comm);
        }
    }
    MPI_Comm_free(&comm);
    MPI_Group_free(&first);
    MPI_Group_free(&others);
}

/** One of those that share a communicator. */
typedef struct sender {
    MPI_Comm comm;
    int number;
    pthread_t thread;
} sender_t;

static void *send_beside_others(void *arg)
{
    const sender_t *sender = arg;

    for (uint64_t i = 0; i < rounds; i++) {
        ring(sender->comm, i + (uint64_t) sender->number, 100 * (1 + sender->number));
    }
    return NULL;
}

static void send_by_threads(MPI_Comm comm)
{
    sender_t *sender = calloc(threads, sizeof(*sender));

    verify_that(NULL != sender, "there is no memory");
    for (uint64_t i = 0; i < threads; i++) {
        sender[i].comm = comm;
        sender[i].number = (int) i;
        verify_that(0 == pthread_create(&sender[i].thread, NULL, send_beside_others, &sender[i]),
                    "a thread is not started");
    }
    for (uint64_t i = 0; i < threads; i++) {
        pthread_join(sender[i].thread, NULL);
    }
    free(sender);
}

/** Each rank writes its number into the next rank's memory, and reads what the rank before has told that of itself. */
static void write_and_read(MPI_Win win, const int *memory, MPI_Comm comm, int round)
{
    int rank, ranks, got = -1;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const int before = (rank + ranks - 1) % ranks;
    const int told = 1000 * round + rank;
    MPI_Win_fence(0, win);
    MPI_Put(&told, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    verify_that(1000 * round + before == memory[0], "what was put is wrong");
    MPI_Get(&got, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    verify_that(told == got, "what was got is wrong");
    MPI_Win_fence(0, win);
}

static void make_windows(MPI_Comm comm)
{
    static int own[4];
    int *allocated;
    MPI_Win made, taken;

    MPI_Win_create(own, sizeof(own), sizeof(int), MPI_INFO_NULL, comm, &made);
    MPI_Win_allocate(sizeof(own), sizeof(int), MPI_INFO_NULL, comm, &allocated, &taken);
    for (int round = 0; round < (int) rounds; round++) {
        write_and_read(made, own, comm, round);
        write_and_read(taken, allocated, comm, round);
    }
    MPI_Win_free(&taken);
    MPI_Win_free(&made);
}

/** The others' communicator, which they use when rank 0 has ended its session. MPI_COMM_NULL: this is rank 0. */
static MPI_Comm comm_of_others(MPI_Group world)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group others;
    int rank, zero = 0;

    MPI_Group_rank(world, &rank);
    MPI_Group_excl(world, 1, &zero, &others);
    if (0 != rank) {
        MPI_Comm_create_from_group(others, "others", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    }
    MPI_Group_free(&others);
    return comm;
}

static void go_on_without_rank_0(MPI_Comm *comm)
{
    /* Nothing here may depend on rank 0 any more, so nothing tells that it is gone. */
    const struct timespec pause = {.tv_nsec = 200000000};

    (void) nanosleep(&pause, NULL);
    for (uint64_t i = 0; i < rounds; i++) {
        ring(*comm, i, 0);
        collect(*comm, i);
    }
    MPI_Comm_free(comm);
}

static void begin(MPI_Session *session)
{
    MPI_Info info;

    MPI_Info_create(&info);
    if (0 != threads) {
        MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    }
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, session);
    MPI_Info_free(&info);
}

static void one_session(uint64_t round)
{
    MPI_Session session;
    MPI_Group world;
    MPI_Comm comm, twin, others = MPI_COMM_NULL, own[4];
    int rank;

    begin(&session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_rank(world, &rank);
    int owned = rank % 4;
    alone(session, own, owned);
    MPI_Comm_create_from_group(world, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    if (0 != threads) {
        send_by_threads(comm);
    }
    if (windows) {
        make_windows(comm);
    }
    if (early) {
        others = comm_of_others(world);
    }
    MPI_Comm_dup(comm, &twin);
    for (uint64_t i = 0; i < rounds; i++) {
        ring(i % 2 ? twin : comm, round + i, 0);
        collect(i % 2 ? comm : twin, i);
    }
    between_groups(world, round);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&comm);
    while (0 < owned) {
        MPI_Comm_free(&own[--owned]);
    }
    MPI_Group_free(&world);
    if (MPI_COMM_NULL != others) {
        go_on_without_rank_0(&others);
    }
    MPI_Session_finalize(&session);
    if (0 == rank) {
        printf("sessions: session %d, %d rounds verified\n", (int) round, (int) rounds);
    }
}
#endif

int main(int argc, char **argv)
{
    int option;

    while (-1 != (option = getopt(argc, argv, "n:s:t:we"))) {
        switch (option) {
        case 'n':
            rounds = verify_number(optarg, 1, "-n");
            break;
        case 's':
            sessions = verify_number(optarg, 1, "-s");
            break;
        case 't':
            threads = verify_number(optarg, 1, "-t");
            break;
        case 'w':
            windows = 1;
            break;
        case 'e':
            early = 1;
            break;
        default:
            fprintf(stderr, "usage: sessions [-n ROUNDS] [-s SESSIONS] [-t THREADS] [-w] [-e]\n");
            return 2;
        }
    }
#ifdef MPI_SESSION_NULL
    for (uint64_t round = 0; round < sessions; round++) {
        one_session(round);
    }
    return 0;
#else
    printf("this MPI has no sessions\n");
    return 77;
#endif
}
