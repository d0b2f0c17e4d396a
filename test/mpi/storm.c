/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file storm.c
 * A random mix of traffic, the same for the same seed: windows of messages
 * between all ranks posted in random order, floods of unexpected messages
 * into one receiver that is away, alltoall with hashes, and chains.
 *
 *   storm [-s SEED] [-n ROUNDS | -t SECONDS] [-m LARGEST] [-p FOLDER]
 *
 * With -p every rank writes its process id to FOLDER/RANK once traffic runs.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TAG_WINDOW 10
#define TAG_CHAIN  30

/** First of the tags of floods. Each flood has its own: a wildcard must not see the next one's messages. */
#define TAG_FLOOD  1000
#define FLOOD_TAGS 30000

/* Most messages between two ranks in one window. */
#define MOST_EACH 12

/* Most messages of one sender in a flood; 4 of 5 are small. */
#define MOST_FLOOD 400

static int rank;
static int ranks;
static uint64_t seed;
static uint64_t rounds = 40;
static uint64_t seconds;
static size_t largest = 300000;
static const char *folder;
static unsigned long long messages;
static unsigned long long bytes;

/* One message of a window; every rank computes the same plan. */
typedef struct {
    int source;
    int target;
    int tag;
    size_t size;
    uint64_t key;
    unsigned char *buffer;
} message_t;

static void count_message(size_t size)
{
    messages++;
    bytes += size;
}

/* All messages of a round, in an order common to all ranks; caller frees. */
static int plan_window(verify_rng_t *rng, message_t **plan_p)
{
    int count = 0;
    message_t *plan = calloc((size_t) ranks * (size_t) ranks * MOST_EACH, sizeof(*plan));

    verify_that(NULL != plan, "no memory for the plan of a window");
    for (int source = 0; source < ranks; source++) {
        for (int target = 0; target < ranks; target++) {
            int each = (int) verify_below(rng, MOST_EACH / (ranks > 4 ? 4 : 1) + 1);
            for (int i = 0; i < each; i++) {
                plan[count++] = (message_t){.source = source,
                                            .target = target,
                                            .tag = TAG_WINDOW + (int) verify_below(rng, 3),
                                            .size = verify_size(rng, largest),
                                            .key = verify_random(rng)};
            }
        }
    }
    *plan_p = plan;
    return count;
}

/* Wait for requests in a random style, so that each completion path is used. */
static void complete(verify_rng_t *mine, int count, MPI_Request *requests)
{
    int style = (int) verify_below(mine, 3);
    int index;

    if (0 == style) {
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    } else if (1 == style) {
        do {
            MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        } while (MPI_UNDEFINED != index);
    } else {
        int done = 0;
        while (!done) {
            MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        }
    }
}

/*
 * Receives and sends are posted interleaved at random. Two messages of one
 * pair and tag keep their order, as the rule of non-overtaking demands.
 */
static void window(verify_rng_t *rng, verify_rng_t *mine)
{
    message_t *plan;
    int count = plan_window(rng, &plan);
    int posted = 0;
    MPI_Request *requests = malloc((size_t) (2 * count + 1) * sizeof(MPI_Request));
    unsigned char **out = calloc((size_t) count + 1, sizeof(*out));
    int next[2] = {0, 0};

    verify_that(NULL != requests && NULL != out, "no memory for the requests of a window");
    while (next[0] < count || next[1] < count) {
        int receive = next[1] >= count || (next[0] < count && 0 == verify_below(mine, 2));
        int i = next[!receive]++;
        message_t *m = &plan[i];
        if (receive && rank == m->target) {
            m->buffer = verify_guard_alloc(m->size, 0);
            MPI_Irecv(m->buffer, (int) m->size, MPI_BYTE, m->source, m->tag, MPI_COMM_WORLD,
                      &requests[posted++]);
        } else if (!receive && rank == m->source) {
            out[i] = verify_guard_alloc(m->size, 0);
            verify_fill(out[i], m->size, m->key);
            MPI_Isend(out[i], (int) m->size, MPI_BYTE, m->target, m->tag, MPI_COMM_WORLD,
                      &requests[posted++]);
        }
    }
    complete(mine, posted, requests);
    for (int i = 0; i < count; i++) {
        if (NULL != plan[i].buffer) {
            verify_expect(plan[i].buffer, plan[i].size, plan[i].key, "message of a window");
            verify_guard_free(plan[i].buffer, plan[i].size, 0, "receive of a window");
            count_message(plan[i].size);
        }
        if (NULL != out[i]) {
            verify_guard_free(out[i], plan[i].size, 0, "send of a window");
        }
    }
    free(plan);
    free(out);
    free(requests);
}

static size_t flood_size(uint64_t id, int source, int i)
{
    verify_rng_t rng = {.state = verify_key(id, (uint64_t) source, (uint64_t) i, 0)};

    return 8 + (0 != verify_below(&rng, 5) ? verify_below(&rng, 120) : verify_size(&rng, 20000));
}

/* The victim of a flood takes everything by wildcard, in order per source. */
static void take_flood(uint64_t id, int each, int tag)
{
    int *next = calloc((size_t) ranks, sizeof(*next));

    verify_that(NULL != next, "no memory for the sequence numbers of a flood");
    for (int n = 0; n < each * (ranks - 1); n++) {
        MPI_Status status;
        int count;
        MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        int source = status.MPI_SOURCE;
        int i = next[source]++;
        unsigned char *in = verify_guard_alloc((size_t) count, 0);
        MPI_Recv(in, count, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status);
        if ((size_t) count != flood_size(id, source, i)) {
            verify_fail("flood message %d of rank %d has %d bytes, expected %zu", i, source, count,
                        flood_size(id, source, i));
        }
        verify_expect(in, (size_t) count, verify_key(id, (uint64_t) source, (uint64_t) i, 1),
                      "flood message");
        verify_guard_free(in, (size_t) count, 0, "receive of a flood");
        count_message((size_t) count);
    }
    free(next);
}

/* All others send to one rank that does not look at its messages for a while. */
static void flood(verify_rng_t *rng, int tag)
{
    int victim = (int) verify_below(rng, (uint64_t) ranks);
    uint64_t id = verify_random(rng);
    int each = 1 + (int) verify_below(rng, MOST_FLOOD);
    unsigned away = (unsigned) verify_below(rng, 30);

    if (rank == victim) {
        verify_sleep_ms(away);
        take_flood(id, each, tag);
        return;
    }
    MPI_Request *requests = malloc((size_t) each * sizeof(MPI_Request));
    unsigned char **out = malloc((size_t) each * sizeof(*out));
    verify_that(NULL != requests && NULL != out, "no memory for the requests of a flood");
    for (int i = 0; i < each; i++) {
        size_t size = flood_size(id, rank, i);
        out[i] = verify_guard_alloc(size, 0);
        verify_fill(out[i], size, verify_key(id, (uint64_t) rank, (uint64_t) i, 1));
        MPI_Isend(out[i], (int) size, MPI_BYTE, victim, tag, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(each, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < each; i++) {
        verify_guard_free(out[i], flood_size(id, rank, i), 0, "send of a flood");
    }
    free(out);
    free(requests);
}

/* Equal blocks from all to all; what each rank should hold is told by hashes. */
static void all_to_all(verify_rng_t *rng)
{
    size_t block = 1 + verify_size(rng, largest / 4);
    uint64_t id = verify_random(rng);
    unsigned char *out = verify_guard_alloc(block * (size_t) ranks, 0);
    unsigned char *in = verify_guard_alloc(block * (size_t) ranks, 0);
    uint64_t *sent = malloc(2 * (size_t) ranks * sizeof(*sent));

    verify_that(NULL != sent, "no memory for the hashes of an alltoall");
    for (int i = 0; i < ranks; i++) {
        unsigned char *part = out + block * (size_t) i;
        verify_fill(part, block, verify_key(id, (uint64_t) rank, (uint64_t) i, 0));
        sent[i] = verify_hash(part, block);
    }
    MPI_Alltoall(out, (int) block, MPI_BYTE, in, (int) block, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Alltoall(sent, 1, MPI_UINT64_T, sent + ranks, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        const unsigned char *part = in + block * (size_t) i;
        verify_expect(part, block, verify_key(id, (uint64_t) i, (uint64_t) rank, 0), "block of an alltoall");
        verify_that(sent[ranks + i] == verify_hash(part, block), "a hash of an alltoall differs");
        count_message(block);
    }
    free(sent);
    verify_guard_free(out, block * (size_t) ranks, 0, "send of an alltoall");
    verify_guard_free(in, block * (size_t) ranks, 0, "receive of an alltoall");
}

/* A message that every rank changes and hands on, a number of times round. */
static void chain(verify_rng_t *rng)
{
    size_t size = 1 + verify_size(rng, 4000);
    uint64_t laps = 1 + verify_below(rng, 30);
    uint64_t id = verify_random(rng);
    unsigned char *buffer = verify_guard_alloc(size, 0);
    int right = (rank + 1) % ranks;
    int left = (rank + ranks - 1) % ranks;
    uint64_t hop = (uint64_t) rank;

    for (uint64_t lap = 0; lap < laps; lap++, hop += (uint64_t) ranks) {
        if (0 != hop) {
            MPI_Recv(buffer, (int) size, MPI_BYTE, left, TAG_CHAIN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            verify_expect(buffer, size, id + hop, "message of a chain");
            count_message(size);
        }
        verify_fill(buffer, size, id + hop + 1);
        if (hop + 1 < laps * (uint64_t) ranks) {
            MPI_Send(buffer, (int) size, MPI_BYTE, right, TAG_CHAIN, MPI_COMM_WORLD);
        }
    }
    verify_guard_free(buffer, size, 0, "buffer of a chain");
}

static void round_of(uint64_t number)
{
    verify_rng_t rng = {.state = verify_key(seed, number, 0, 0)};
    verify_rng_t mine = {.state = verify_key(seed, number, (uint64_t) rank, 1)};

    switch (verify_below(&rng, 8)) {
    case 0:
    case 1:
        flood(&rng, TAG_FLOOD + (int) (number % FLOOD_TAGS));
        break;
    case 2:
        all_to_all(&rng);
        break;
    case 3:
        if (ranks > 1) {
            chain(&rng);
        }
        break;
    default:
        window(&rng, &mine);
        break;
    }
}

static void write_pid(void)
{
    char path[4096];
    char ready[4100];

    snprintf(path, sizeof(path), "%s/%d", folder, rank);
    snprintf(ready, sizeof(ready), "%s.new", path);
    FILE *file = fopen(ready, "w");
    if (NULL == file || fprintf(file, "%d\n", (int) getpid()) < 0 || 0 != fclose(file)
        || 0 != rename(ready, path)) {
        verify_fail("cannot write %s; -p takes a folder that exists", path);
    }
}

static void read_options(int argc, char **argv)
{
    int option;

    seed = (uint64_t) getpid() ^ (uint64_t) (verify_seconds() * 1e6);
    while (-1 != (option = getopt(argc, argv, "s:n:t:m:p:"))) {
        switch (option) {
        case 's':
            seed = verify_number(optarg, 0, "-s");
            break;
        case 'n':
            rounds = verify_number(optarg, 1, "-n");
            break;
        case 't':
            seconds = verify_number(optarg, 1, "-t");
            break;
        case 'm':
            largest = verify_number(optarg, 1, "-m");
            break;
        case 'p':
            folder = optarg;
            break;
        default:
            fprintf(stderr, "usage: storm [-s SEED] [-n ROUNDS | -t SECONDS] [-m LARGEST] [-p FOLDER]\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    unsigned long long mine[2];
    unsigned long long total[2] = {0, 0};
    uint64_t number;
    int more;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    read_options(argc, argv);
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("storm: seed %llu; replay with -s %llu -m %zu on %d ranks\n", (unsigned long long) seed,
               (unsigned long long) seed, largest, ranks);
        fflush(stdout);
    }
    round_of(0);
    if (NULL != folder) {
        write_pid();
    }
    double start = verify_seconds();
    for (number = 1;; number++) {
        if (0 == seconds) {
            more = number < rounds;
        } else {
            more = verify_seconds() - start < (double) seconds;
            MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        if (!more) {
            break;
        }
        round_of(number);
    }
    mine[0] = messages;
    mine[1] = bytes;
    MPI_Reduce(mine, total, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("storm: %d ranks, %llu rounds, %llu messages and %llu bytes verified\n", ranks,
               (unsigned long long) number, total[0], total[1]);
    }
    MPI_Finalize();
    return 0;
}
