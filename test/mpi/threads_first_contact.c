/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file threads_first_contact.c
 * MPI_THREAD_MULTIPLE: one thread of each rank sends to processes that it has not sent to before, while others receive
 * from processes that have not been sent to either. Both ways lead into Open MPI's list of processes.
 *
 *   threads_first_contact [-s SEED] [-m BYTES] [-c CHILDREN]
 *
 *   -m   most bytes of a message, default 100000
 *   -c   processes that are spawned then, and with which all is done again; default 0
 *
 * Ends with 0, or with 1 and a line that says what differs.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Receivers: one by requests that are posted before, one by probes. */
enum { POSTED, PROBED, RECEIVERS };

static uint64_t seed = 1;
static uint64_t largest = 100000;
static uint64_t children;

typedef struct {
    MPI_Comm comm;
    int rank; /**< mine */
    int others;
    int receiver; /**< POSTED or PROBED */
} group_t;

static uint64_t key_of(int source, int target, int receiver)
{
    return verify_key(seed, (uint64_t) source, (uint64_t) target, (uint64_t) receiver);
}

static int length_of(uint64_t key)
{
    verify_rng_t rng = {.state = key};

    return (int) verify_size(&rng, largest);
}

static void *get(size_t size)
{
    void *memory = malloc(size + 1);

    verify_that(NULL != memory, "no memory for a message");
    return memory;
}

/** Each message for the first time to its target; in an order of this rank's own. */
static void *send_all(void *arg)
{
    const group_t *group = arg;
    const int count = group->others * RECEIVERS;
    MPI_Request *requests = get((size_t) count * sizeof(MPI_Request));
    void **out = get((size_t) count * sizeof(void *));
    int *order = get((size_t) count * sizeof(int));
    verify_rng_t rng = {.state = verify_key(seed, (uint64_t) group->rank, 7, 7)};

    verify_shuffle(&rng, order, count);
    for (int i = 0; i < count; i++) {
        const int target = order[i] / RECEIVERS;
        const int receiver = order[i] % RECEIVERS;
        const uint64_t key = key_of(group->rank, target, receiver);
        const int length = length_of(key);

        out[i] = get((size_t) length);
        verify_fill(out[i], (size_t) length, key);
        MPI_Isend(out[i], length, MPI_BYTE, target, receiver, group->comm, &requests[i]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) {
        free(out[i]);
    }
    free(order);
    free(out);
    free(requests);
    return NULL;
}

static void check(const void *in, const MPI_Status *status, const group_t *group)
{
    const uint64_t key = key_of(status->MPI_SOURCE, group->rank, group->receiver);
    int length = -1;

    MPI_Get_count(status, MPI_BYTE, &length);
    verify_that(length_of(key) == length, "a message has another length");
    verify_expect(in, (size_t) length, key, "a message of a first contact");
}

static void receive_posted(const group_t *group)
{
    MPI_Request *requests = get((size_t) group->others * sizeof(MPI_Request));
    void **in = get((size_t) group->others * sizeof(void *));

    for (int i = 0; i < group->others; i++) {
        in[i] = get(largest);
        MPI_Irecv(in[i], (int) largest, MPI_BYTE, i, POSTED, group->comm, &requests[i]);
    }
    for (int done = 0; done < group->others; done++) {
        MPI_Status status;
        int index;

        MPI_Waitany(group->others, requests, &index, &status);
        check(in[index], &status, group);
        free(in[index]);
    }
    free(in);
    free(requests);
}

static void *receive_all(void *arg)
{
    const group_t *group = arg;

    if (POSTED == group->receiver) {
        receive_posted(group);
        return NULL;
    }
    void *in = get(largest);
    for (int i = 0; i < group->others; i++) {
        MPI_Message message;
        MPI_Status status;

        MPI_Mprobe(MPI_ANY_SOURCE, PROBED, group->comm, &message, &status);
        MPI_Mrecv(in, (int) largest, MPI_BYTE, &message, &status);
        check(in, &status, group);
    }
    free(in);
    return NULL;
}

static void exchange(MPI_Comm comm, int others)
{
    group_t groups[RECEIVERS + 1];
    pthread_t threads[RECEIVERS + 1];

    for (int i = 0; i <= RECEIVERS; i++) {
        groups[i] = (group_t){.comm = comm, .others = others, .receiver = i};
        MPI_Comm_rank(comm, &groups[i].rank);
        verify_that(
            0 == pthread_create(&threads[i], NULL, RECEIVERS == i ? send_all : receive_all, &groups[i]),
            "cannot make a thread");
    }
    for (int i = 0; i <= RECEIVERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static const verify_option_t options[] = {{'s', "SEED", &seed, 0},
                                          {'m', "BYTES", &largest, 1},
                                          {'c', "CHILDREN", &children, 0},
                                          {0, NULL, NULL, 0}};

static void exchange_with_children(char *program)
{
    char number[32];
    char size[32];
    char *arguments[] = {"-s", number, "-m", size, NULL};
    MPI_Comm spawned;

    snprintf(number, sizeof(number), "%llu", (unsigned long long) seed);
    snprintf(size, sizeof(size), "%llu", (unsigned long long) largest);
    MPI_Comm_spawn(program, arguments, (int) children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &spawned,
                   MPI_ERRCODES_IGNORE);
    exchange(spawned, (int) children);
    MPI_Comm_disconnect(&spawned);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int provided;
    int ranks;
    int rank;

    verify_options(argc, argv, options);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    verify_that(MPI_THREAD_MULTIPLE == provided, "MPI_THREAD_MULTIPLE is not provided");
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    exchange(MPI_COMM_WORLD, ranks);
    MPI_Comm_get_parent(&parent);
    if (MPI_COMM_NULL != parent) {
        int others;

        MPI_Comm_remote_size(parent, &others);
        exchange(parent, others);
        MPI_Comm_disconnect(&parent);
    } else if (0 != children) {
        exchange_with_children(argv[0]);
    }
    if (0 == rank && MPI_COMM_NULL == parent) {
        printf("threads_first_contact: %d ranks, %d messages each way verified\n", ranks, RECEIVERS * ranks);
    }
    MPI_Finalize();
    return 0;
}
