/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file edges.c
 * The corners of two-sided MPI, one check a function, each with what it expects and no randomness.
 *
 *   edges [-a] [-q LENGTH] [-c COMMUNICATORS] [-m MESSAGES] [NAME]...
 *
 *   -a   ask all, also what pml/ob1 of Open MPI 4.1 does wrong or differently: it writes the whole of a
 *        message that it fetches into a buffer too short for it, calls a truncated short one to oneself a
 *        success, delivers nothing on a communicator after a buffered send there was refused, and keeps
 *        unexpected messages without a limit
 *   -q   length of the queues of unexpected messages and of posted receives, default 100000. A matching that
 *        searches its queues from the front, as pml/ob1 does, takes time that grows with the square of it
 *   -c   how many communicators are made and freed, default 5000
 *   -m   messages of a flood that the receiver does not expect, default 100000. Again the time that pml/ob1
 *        takes grows with the square of it
 *   NAME only the checks of these names
 *
 * For 2 to 8 ranks; most checks are between ranks 0 and 1 while others wait. Rank 0 prints the name of each
 * check when it begins, so that a hang shows where. Ends with 0, or with 1 and a line that says what differs.
 */
#include "dn_config.h"

#include "edges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

edges_t edges = {.queue_length = 100000, .communicators = 5000, .flood = 100000};

void edges_must(int result, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    if (MPI_SUCCESS != result) {
        MPI_Error_string(result, text, &length);
        verify_fail("%s failed: %s", call, text);
    }
}

void edges_must_be(int result, int expected, const char *call)
{
    int class = result;

    MPI_Error_class(result, &class);
    if (class != expected) {
        verify_fail("%s gave error class %d, expected %d", call, class, expected);
    }
}

void edges_meet(void)
{
    edges_must(MPI_Sendrecv(NULL, 0, MPI_BYTE, edges.peer, 0, NULL, 0, MPI_BYTE, edges.peer, 0, edges.control,
                            MPI_STATUS_IGNORE),
               "MPI_Sendrecv");
}

void *edges_get(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    verify_that(NULL != memory, "no memory for a check");
    return memory;
}

unsigned char *edges_data(size_t length, uint64_t number)
{
    unsigned char *memory = edges_get(length, 1);

    verify_fill(memory, length, number);
    return memory;
}

void edges_send(size_t length, uint64_t number, int target, int tag, MPI_Comm comm)
{
    unsigned char *out = edges_data(length, number);

    edges_must(MPI_Send(out, (int) length, MPI_BYTE, target, tag, comm), "MPI_Send");
    free(out);
}

void edges_status(const MPI_Status *status, int source, int tag, size_t length)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    if (source != status->MPI_SOURCE || tag != status->MPI_TAG || length != (size_t) count) {
        verify_fail("the status says source %d, tag %d, %d bytes, expected %d, %d, %zu", status->MPI_SOURCE,
                    status->MPI_TAG, count, source, tag, length);
    }
}

void edges_receive(size_t length, uint64_t number, int source, int tag, int from, int its, MPI_Comm comm)
{
    unsigned char *in = verify_guard_alloc(length, 0);
    MPI_Status status;

    edges_must(MPI_Recv(in, (int) length, MPI_BYTE, source, tag, comm, &status), "MPI_Recv");
    edges_status(&status, from, its, length);
    verify_expect(in, length, number, "received data");
    verify_guard_free(in, length, 0, "receive buffer");
}

void edges_await(int source, int tag, MPI_Comm comm)
{
    int found = 0;

    while (!found) {
        edges_must(MPI_Iprobe(source, tag, comm, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
    }
}

bool edges_is_there(int source, int tag, MPI_Comm comm)
{
    int found = 0;

    edges_must(MPI_Iprobe(source, tag, comm, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
    return found;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    bool wanted = 0 == argc;

    for (int i = 0; i < argc; i++) {
        wanted = wanted || 0 == strcmp(name, argv[i]);
    }
    return wanted;
}

static void read_options(int argc, char **argv)
{
    int option;

    while (-1 != (option = getopt(argc, argv, "aq:c:m:"))) {
        switch (option) {
        case 'a':
            edges.ask_all = true;
            break;
        case 'q':
            edges.queue_length = (int) verify_number(optarg, 1, "-q");
            break;
        case 'c':
            edges.communicators = (int) verify_number(optarg, 1, "-c");
            break;
        case 'm':
            edges.flood = (int) verify_number(optarg, 1, "-m");
            break;
        default:
            fprintf(stderr, "usage: edges [-a] [-q LENGTH] [-c COMMUNICATORS] [-m MESSAGES] [NAME]...\n");
            exit(2);
        }
    }
}

static void run_check(const edges_check_t *check)
{
    if (0 == edges.rank) {
        printf("edges: %s\n", check->name);
        fflush(stdout);
    }
    if (check->all || edges.rank < 2) {
        check->check();
    }
    MPI_Barrier(edges.control);
    verify_that(!edges_is_there(MPI_ANY_SOURCE, MPI_ANY_TAG, edges.world), "a check left a message behind");
    MPI_Barrier(edges.control); /* the next one sends none before all have looked */
}

int main(int argc, char **argv)
{
    static const edges_check_t *const tables[] = {edges_modes, edges_cancel, edges_order, edges_flood,
                                                  edges_comm};
    int done = 0;

    read_options(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &edges.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &edges.ranks);
    verify_that(edges.ranks >= 2 && edges.ranks <= EDGES_RANKS, "edges runs on 2 to 8 ranks");
    edges.peer = 1 - edges.rank;
    MPI_Comm_dup(MPI_COMM_WORLD, &edges.world);
    MPI_Comm_dup(MPI_COMM_WORLD, &edges.control);
    MPI_Comm_split(MPI_COMM_WORLD, edges.rank < 2 ? 0 : MPI_UNDEFINED, edges.rank, &edges.pair);
    MPI_Comm_set_errhandler(edges.world, MPI_ERRORS_RETURN);

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (const edges_check_t *check = tables[i]; NULL != check->name; check++) {
            if (is_wanted(check->name, argc - optind, argv + optind)) {
                run_check(check);
                done++;
            }
        }
    }
    verify_that(done > 0, "no check has such a name; see the ends of the files of checks");
    if (MPI_COMM_NULL != edges.pair) {
        MPI_Comm_free(&edges.pair);
    }
    MPI_Comm_free(&edges.control);
    MPI_Comm_free(&edges.world);
    if (0 == edges.rank) {
        printf("edges: %d ranks, %d checks passed\n", edges.ranks, done);
    }
    MPI_Finalize();
    return 0;
}
