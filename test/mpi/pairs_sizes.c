/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pairs_sizes.c
 * Point-to-point messages between all pairs of ranks, at every size where a
 * protocol may switch, in every send mode; tag order, wildcards, probes and
 * truncation. Every message carries a pattern of its own.
 *
 *   pairs_sizes [-s SEED] [-m LARGEST_ALL_PAIRS] [-x LARGEST_ONE_PAIR]
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum send_mode { MODE_SEND, MODE_ISEND, MODE_SSEND, MODE_BSEND, MODE_RSEND, MODE_COUNT };

#define TAG_DATA  1
#define TAG_READY 2
#define TAG_MANY  100

/* Messages of one burst in the tag order, wildcard and probe tests. */
#define BURST 48

static int rank;
static int ranks;
static uint64_t seed = 1;
static size_t largest_all_pairs = 1 << 20;
static size_t largest_one_pair = 64 << 20;
static unsigned long long messages;

/* Distances from a power of two at which header sizes put real switches. */
static const int around[] = {-64, -48, -40, -32, -24, -16, -8, -1, 0, 1, 8, 64};

static int compare_sizes(const void *a, const void *b)
{
    size_t x = *(const size_t *) a;
    size_t y = *(const size_t *) b;

    return (x > y) - (x < y);
}

/* Sizes up to @p max, rising, no size twice; the caller frees *sizes_p. */
static int list_sizes(size_t max, size_t **sizes_p)
{
    size_t *sizes = malloc(1024 * sizeof(*sizes));
    int count = 0;
    int unique = 0;

    verify_that(NULL != sizes, "no memory for the list of sizes");
    for (size_t size = 0; size <= 72; size++) {
        sizes[count++] = size;
    }
    for (size_t power = 128; power <= (256 << 10); power *= 2) {
        for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
            sizes[count++] = (size_t) ((long) power + around[i]);
        }
    }
    for (size_t power = 512 << 10; power <= max; power *= 2) {
        sizes[count++] = power - 1;
        sizes[count++] = power;
        sizes[count++] = power + 1;
    }
    qsort(sizes, (size_t) count, sizeof(*sizes), compare_sizes);
    for (int i = 0; i < count; i++) {
        if (sizes[i] <= max && (0 == unique || sizes[i] != sizes[unique - 1])) {
            sizes[unique++] = sizes[i];
        }
    }
    *sizes_p = sizes;
    return unique;
}

static void send_by_mode(enum send_mode mode, const void *buffer, size_t size, int target)
{
    MPI_Request request;
    int count = (int) size;

    switch (mode) {
    case MODE_SEND:
        MPI_Send(buffer, count, MPI_BYTE, target, TAG_DATA, MPI_COMM_WORLD);
        break;
    case MODE_ISEND:
        MPI_Isend(buffer, count, MPI_BYTE, target, TAG_DATA, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case MODE_SSEND:
        MPI_Ssend(buffer, count, MPI_BYTE, target, TAG_DATA, MPI_COMM_WORLD);
        break;
    case MODE_BSEND:
        MPI_Bsend(buffer, count, MPI_BYTE, target, TAG_DATA, MPI_COMM_WORLD);
        break;
    default:
        MPI_Recv(NULL, 0, MPI_BYTE, target, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Rsend(buffer, count, MPI_BYTE, target, TAG_DATA, MPI_COMM_WORLD);
        break;
    }
}

/* Send to one rank and receive from another, at addresses skewed by @p skew. */
static void exchange(enum send_mode mode, size_t size, int target, int source, size_t skew)
{
    MPI_Request request;
    MPI_Status status;
    int received = -1;
    char what[96];
    unsigned char *out = verify_guard_alloc(size, skew);
    unsigned char *in = verify_guard_alloc(size, (skew * 5 + 3) % 64);

    snprintf(what, sizeof(what), "%zu bytes from rank %d, send mode %d", size, source, (int) mode);
    verify_fill(out, size, verify_key(seed, size, (uint64_t) rank, (uint64_t) mode));
    verify_fill(in, size, ~seed);
    MPI_Irecv(in, (int) size, MPI_BYTE, source, TAG_DATA, MPI_COMM_WORLD, &request);
    if (MODE_RSEND == mode) {
        MPI_Request ready;
        MPI_Isend(NULL, 0, MPI_BYTE, source, TAG_READY, MPI_COMM_WORLD, &ready);
        send_by_mode(mode, out, size, target);
        MPI_Wait(&ready, MPI_STATUS_IGNORE);
    } else {
        send_by_mode(mode, out, size, target);
    }
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &received);
    if ((int) size != received || source != status.MPI_SOURCE || TAG_DATA != status.MPI_TAG) {
        verify_fail("%s: the status says %d bytes from rank %d, tag %d", what, received, status.MPI_SOURCE,
                    status.MPI_TAG);
    }
    verify_expect(in, size, verify_key(seed, size, (uint64_t) source, (uint64_t) mode), what);
    verify_expect(out, size, verify_key(seed, size, (uint64_t) rank, (uint64_t) mode), what);
    verify_guard_free(out, size, skew, what);
    verify_guard_free(in, size, (skew * 5 + 3) % 64, what);
    messages++;
}

/* Every ordered pair, self included; with few ranks every mode at each size. */
static void all_pairs(void)
{
    size_t *sizes;
    int count = list_sizes(largest_all_pairs, &sizes);

    for (int distance = 0; distance < ranks; distance++) {
        int target = (rank + distance) % ranks;
        int source = (rank - distance + ranks) % ranks;
        for (int i = 0; i < count; i++) {
            for (int m = 0; m < MODE_COUNT; m++) {
                if (ranks > 2 && m != (i + distance) % MODE_COUNT) {
                    continue;
                }
                exchange((enum send_mode) m, sizes[i], target, source, (size_t) (i * 7 % 64));
            }
        }
    }
    free(sizes);
}

/* Both ranks of one pair send at once, up to the largest size. */
static void one_pair(void)
{
    int peer = rank ^ 1;

    if (rank > 1 || ranks < 2) {
        return;
    }
    for (size_t power = 2 << 20; power <= largest_one_pair; power *= 2) {
        exchange(MODE_SEND, power, peer, peer, 0);
        exchange(MODE_ISEND, power - 1, peer, peer, 1);
        if (power < largest_one_pair) {
            exchange(MODE_SSEND, power + 1, peer, peer, 13);
        }
    }
}

static size_t burst_size(int source, int i)
{
    verify_rng_t rng = {.state = verify_key(seed, (uint64_t) source, (uint64_t) i, 77)};

    return verify_size(&rng, 80 << 10);
}

/* Post one burst of sends, tag TAG_MANY + i; the caller waits and frees. */
static void burst_start(int target, unsigned char **buffers, MPI_Request *requests)
{
    for (int i = 0; i < BURST; i++) {
        size_t size = burst_size(rank, i);
        buffers[i] = verify_guard_alloc(size, (size_t) i);
        verify_fill(buffers[i], size, verify_key(seed, (uint64_t) rank, (uint64_t) i, 5));
        MPI_Isend(buffers[i], (int) size, MPI_BYTE, target, TAG_MANY + i, MPI_COMM_WORLD, &requests[i]);
    }
}

static void burst_end(unsigned char **buffers, MPI_Request *requests)
{
    MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < BURST; i++) {
        verify_guard_free(buffers[i], burst_size(rank, i), (size_t) i, "send buffer of a burst");
    }
    messages += BURST;
}

static void burst_expect(const void *buffer, MPI_Status *status, int source, int i)
{
    int received = -1;

    MPI_Get_count(status, MPI_BYTE, &received);
    if ((int) burst_size(source, i) != received || source != status->MPI_SOURCE
        || TAG_MANY + i != status->MPI_TAG) {
        verify_fail("message %d of rank %d: the status says %d bytes from rank %d, tag %d", i, source,
                    received, status->MPI_SOURCE, status->MPI_TAG);
    }
    verify_expect(buffer, (size_t) received, verify_key(seed, (uint64_t) source, (uint64_t) i, 5),
                  "message of a burst");
}

/* Receive a burst in a random order of tags: most messages come unexpected. */
static void tags_out_of_order(void)
{
    verify_rng_t rng = {.state = seed + (uint64_t) rank};
    unsigned char *out[BURST];
    MPI_Request requests[BURST];
    int order[BURST];
    int source = (rank + ranks - 1) % ranks;

    burst_start((rank + 1) % ranks, out, requests);
    verify_shuffle(&rng, order, BURST);
    for (int n = 0; n < BURST; n++) {
        int i = order[n];
        size_t size = burst_size(source, i);
        unsigned char *in = verify_guard_alloc(size, 1);
        MPI_Status status;
        MPI_Recv(in, (int) size, MPI_BYTE, source, TAG_MANY + i, MPI_COMM_WORLD, &status);
        burst_expect(in, &status, source, i);
        verify_guard_free(in, size, 1, "receive out of order");
    }
    burst_end(out, requests);
}

/* One message found by a probe of the kind chosen by @p how. */
static void receive_probed(int how, int source, int tag, MPI_Status *status, unsigned char **in_p)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    int found = 0;
    int count = 0;

    switch (how % 4) {
    case 0:
        MPI_Probe(source, tag, MPI_COMM_WORLD, status);
        break;
    case 1:
        while (!found) {
            MPI_Iprobe(source, tag, MPI_COMM_WORLD, &found, status);
        }
        break;
    case 2:
        MPI_Mprobe(source, tag, MPI_COMM_WORLD, &message, status);
        break;
    default:
        while (!found) {
            MPI_Improbe(source, tag, MPI_COMM_WORLD, &found, &message, status);
        }
        break;
    }
    MPI_Get_count(status, MPI_BYTE, &count);
    *in_p = verify_guard_alloc((size_t) count, 2);
    if (MPI_MESSAGE_NULL != message) {
        MPI_Mrecv(*in_p, count, MPI_BYTE, &message, status);
    } else {
        MPI_Recv(*in_p, count, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, MPI_COMM_WORLD, status);
    }
    verify_guard_check(*in_p, (size_t) count, 2, "probed receive");
}

/* Rank 0 takes a burst of everyone by wildcards; each source stays in order. */
static void any_source_and_probe(bool probe)
{
    unsigned char *out[BURST];
    MPI_Request requests[BURST];
    int *next = calloc((size_t) ranks, sizeof(*next));

    verify_that(NULL != next, "no memory for the sequence numbers");
    burst_start(0, out, requests);
    for (int n = 0; 0 == rank && n < BURST * ranks; n++) {
        MPI_Status status;
        unsigned char *in;
        size_t size = 80 << 10;
        if (probe) {
            int count = 0;
            receive_probed(n, MPI_ANY_SOURCE, MPI_ANY_TAG, &status, &in);
            MPI_Get_count(&status, MPI_BYTE, &count);
            size = (size_t) count;
        } else {
            in = verify_guard_alloc(size, 2);
            MPI_Recv(in, (int) size, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        }
        burst_expect(in, &status, status.MPI_SOURCE, next[status.MPI_SOURCE]++);
        verify_guard_free(in, size, 2, "receive by wildcard");
    }
    burst_end(out, requests);
    free(next);
}

/*
 * A message longer than its buffer: an error, and nothing written past it.
 * Eager sizes only: pml/ob1 of Open MPI 4.1 asks a transport that has get for
 * the whole of a larger message and overruns the buffer, whatever the BTL.
 */
static void truncation(void)
{
    static const size_t sizes[] = {1, 9, 43, 64, 100, 300, 500};
    int target = (rank + 1) % ranks;
    int source = (rank + ranks - 1) % ranks;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t room = sizes[i] / 2;
        unsigned char *out = verify_guard_alloc(sizes[i], 0);
        unsigned char *in = verify_guard_alloc(room, 0);
        MPI_Request request;
        MPI_Status status;
        int class = MPI_SUCCESS;

        verify_fill(out, sizes[i], verify_key(seed, sizes[i], (uint64_t) rank, 9));
        MPI_Isend(out, (int) sizes[i], MPI_BYTE, target, TAG_DATA, MPI_COMM_WORLD, &request);
        int rc = MPI_Recv(in, (int) room, MPI_BYTE, source, TAG_DATA, MPI_COMM_WORLD, &status);
        MPI_Error_class(rc, &class);
        if (MPI_ERR_TRUNCATE != class) {
            verify_fail("%zu bytes into a buffer of %zu: error class %d, expected %d", sizes[i], room, class,
                        MPI_ERR_TRUNCATE);
        }
        verify_that(MPI_SUCCESS == MPI_Wait(&request, MPI_STATUS_IGNORE),
                    "the sender of a truncated message got an error");
        verify_guard_free(in, room, 0, "truncated receive");
        verify_guard_free(out, sizes[i], 0, "truncated send");
        messages++;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Persistent requests, started again and again over the same buffers. */
static void persistent(void)
{
    static unsigned char out[6000];
    static unsigned char in[6000];
    int target = (rank + 1) % ranks;
    int source = (rank + ranks - 1) % ranks;
    MPI_Request requests[2];

    MPI_Send_init(out, sizeof(out), MPI_BYTE, target, TAG_DATA, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in, sizeof(in), MPI_BYTE, source, TAG_DATA, MPI_COMM_WORLD, &requests[1]);
    for (uint64_t round = 0; round < 50; round++) {
        verify_fill(out, sizeof(out), verify_key(seed, round, (uint64_t) rank, 11));
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        verify_expect(in, sizeof(in), verify_key(seed, round, (uint64_t) source, 11), "persistent receive");
        messages++;
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void read_options(int argc, char **argv)
{
    int option;

    while (-1 != (option = getopt(argc, argv, "s:m:x:"))) {
        switch (option) {
        case 's':
            seed = verify_number(optarg, 0, "-s");
            break;
        case 'm':
            largest_all_pairs = verify_number(optarg, 0, "-m");
            break;
        case 'x':
            largest_one_pair = verify_number(optarg, 0, "-x");
            break;
        default:
            fprintf(stderr, "usage: pairs_sizes [-s SEED] [-m LARGEST_ALL_PAIRS] "
                            "[-x LARGEST_ONE_PAIR]\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    size_t room;
    void *attached;
    int detached;
    unsigned long long total = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    read_options(argc, argv);
    room = 4 * (largest_all_pairs + 1024 + MPI_BSEND_OVERHEAD);
    attached = malloc(room);
    verify_that(NULL != attached, "no memory for the buffer of MPI_Bsend");
    MPI_Buffer_attach(attached, (int) room);

    all_pairs();
    tags_out_of_order();
    MPI_Barrier(MPI_COMM_WORLD);
    any_source_and_probe(false);
    MPI_Barrier(MPI_COMM_WORLD);
    any_source_and_probe(true);
    MPI_Barrier(MPI_COMM_WORLD);
    truncation();
    persistent();
    one_pair();

    MPI_Buffer_detach(&attached, &detached);
    free(attached);
    MPI_Reduce(&messages, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("pairs_sizes: %d ranks, %llu messages verified\n", ranks, total);
    }
    MPI_Finalize();
    return 0;
}
