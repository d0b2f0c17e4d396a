/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file sessions.c
 * Sessions of MPI-4, without MPI_Init: communicators that come from groups, and not from another communicator, have another number in
 * each process. Messages and collectives find them all the same.
 *
 *   sessions [-n ROUNDS]
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t rounds = 20;

#ifdef MPI_SESSION_NULL
/** More communicators than others have: the numbers of those to come differ. */
static int alone(MPI_Session session, MPI_Comm *own, int count)
{
    MPI_Group self;

    MPI_Group_from_session_pset(session, "mpi://SELF", &self);
    for (int i = 0; i < count; i++) {
        char name[32];

        snprintf(name, sizeof(name), "alone %d", i);
        MPI_Comm_create_from_group(self, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &own[i]);
    }
    MPI_Group_free(&self);
    return count;
}

/** Every length that goes another way, to the next rank and from the one before, by name and by wildcard. */
static void ring(MPI_Comm comm, uint64_t round)
{
    static const int lengths[] = {0, 1, 7, 64, 4000, 20000, 70000};
    static uint8_t out[70000], in[70000];
    int rank, ranks;

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
        MPI_Irecv(in, len, MPI_BYTE, i % 2 ? before : MPI_ANY_SOURCE, (int) i, comm, &request);
        MPI_Send(out, len, MPI_BYTE, (rank + 1) % ranks, (int) i, comm);
        MPI_Wait(&request, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        verify_that(len == count && before == status.MPI_SOURCE, "a message is not the one that was sent");
        for (int at = 0; at < len; at++) {
            verify_that((uint8_t) (first + before + at) == in[at], "a byte is not the one that was sent");
        }
    }
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

static void one_session(uint64_t round)
{
    MPI_Session session;
    MPI_Group world;
    MPI_Comm comm, twin, own[4];
    int rank, owned = 0;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_rank(world, &rank);
    owned = alone(session, own, rank % 4);
    MPI_Comm_create_from_group(world, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_dup(comm, &twin);
    for (uint64_t i = 0; i < rounds; i++) {
        ring(i % 2 ? twin : comm, round + i);
        collect(i % 2 ? comm : twin, i);
    }
    MPI_Comm_free(&twin);
    MPI_Comm_free(&comm);
    while (0 < owned) {
        MPI_Comm_free(&own[--owned]);
    }
    MPI_Group_free(&world);
    MPI_Session_finalize(&session);
    if (0 == rank) {
        printf("sessions: session %d, %d rounds verified\n", (int) round, (int) rounds);
    }
}
#endif

int main(int argc, char **argv)
{
    for (int option; - 1 != (option = getopt(argc, argv, "n:"));) {
        if ('n' != option) {
            fprintf(stderr, "usage: sessions [-n ROUNDS]\n");
            return 2;
        }
        rounds = verify_number(optarg, 1, "-n");
    }
#ifdef MPI_SESSION_NULL
    for (uint64_t round = 0; round < 3; round++) {
        one_session(round);
    }
    return 0;
#else
    printf("this MPI has no sessions\n");
    return 77;
#endif
}
