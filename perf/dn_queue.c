/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>

#include "dn_bench_mpi.h"

/*
 * Each rank has run->size entries of its peer's in a queue, each with a tag of
 * its own, and the measured message has to pass them.
 *
 * Posted: the receives of the entries are posted first, and the measured message
 * comes behind them. Unexpected: the messages of the entries are sent first. The
 * receive of the measured message would be posted before that arrives, and its
 * search be hidden behind the flight; therefore a second communicator, with
 * nothing in its queues, carries a notice behind each message, and the receive is
 * posted after it. Both are timed.
 *
 * After the last iteration the other half of the entries follows and empties the queue.
 */

#define MESSAGE_BYTES   8
#define FIRST_ENTRY_TAG 16

static const dn_bench_tier_t tiers[] = {
    {100, 10000, 500},
    {1000, 2000, 100},
    {10000, 400, 20},
    {SIZE_MAX, 40, 2},
};

static const dn_bench_options_t defaults = {
    .min_size = 0,
    .max_size = 100000,
    .tiers = tiers,
    .num_tiers = 4,
    .warmup = -1,
    .batches = 1,
    .window = 1,
    .precision = 2,
    .first_column = "Entries",
};

static struct {
    char *out;
    char *in;
    MPI_Request *requests; /* of the receives, then of the sends */
    int tags;              /* that differ */
    MPI_Comm notices;
} entries;

static size_t next(size_t size)
{
    return 0 == size ? 1 : 10 * size;
}

static void describe(dn_bench_run_t *run)
{
    dn_bench_describe_bytes(run, MESSAGE_BYTES);
}

/* With fewer tags than entries these come round again: MPI keeps the order of each tag. */
static int entry_tag(size_t k)
{
    return FIRST_ENTRY_TAG + (int) (k % (size_t) entries.tags);
}

static uint64_t entry_seed(const dn_bench_run_t *run, int sender, size_t k)
{
    return dn_bench_seed(run->size, k, sender, 1);
}

static void post_receives(const dn_bench_run_t *run)
{
    for (size_t k = 0; k < run->size; k++) {
        MPI_Irecv(entries.in + k * MESSAGE_BYTES, MESSAGE_BYTES, MPI_CHAR, run->peer, entry_tag(k),
                  MPI_COMM_WORLD, &entries.requests[k]);
    }
}

/* Tested at once, which lets messages in both directions move on: ob1 tries all sends that wait for
   room again at every turn, and a hundred thousand of them took 20 s. */
static void post_sends(const dn_bench_run_t *run)
{
    int done;
    for (size_t k = 0; k < run->size; k++) {
        MPI_Isend(entries.out + k * MESSAGE_BYTES, MESSAGE_BYTES, MPI_CHAR, run->peer, entry_tag(k),
                  MPI_COMM_WORLD, &entries.requests[run->size + k]);
        MPI_Test(&entries.requests[run->size + k], &done, MPI_STATUS_IGNORE);
    }
}

static void begin(dn_bench_run_t *run)
{
    int *tag_ub;
    int known;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &known);
    entries.tags = *tag_ub - FIRST_ENTRY_TAG;
    entries.out = dn_bench_alloc(run->size * MESSAGE_BYTES);
    entries.in = dn_bench_alloc(run->size * MESSAGE_BYTES);
    entries.requests = dn_bench_alloc(2 * run->size * sizeof(MPI_Request));
    for (size_t k = 0; k < run->size; k++) {
        dn_bench_fill(entries.out + k * MESSAGE_BYTES, MESSAGE_BYTES, entry_seed(run, run->rank, k));
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &entries.notices);
    if (run->options.unexpected) {
        post_sends(run);
    } else {
        post_receives(run);
    }
}

static int check_entries(const dn_bench_run_t *run)
{
    int errors = 0;
    for (size_t k = 0; run->options.check && k < run->size; k++) {
        errors +=
            MESSAGE_BYTES
            != dn_bench_check(entries.in + k * MESSAGE_BYTES, MESSAGE_BYTES, entry_seed(run, run->peer, k));
    }
    if (0 != errors) {
        fprintf(stderr, "rank %d: wrong data in %d of the %zu entries of the queue\n", run->rank, errors,
                run->size);
    }
    return errors;
}

static int end(dn_bench_run_t *run)
{
    if (run->options.unexpected) {
        post_receives(run);
    } else {
        post_sends(run);
    }
    MPI_Waitall(2 * (int) run->size, entries.requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&entries.notices);
    int errors = check_entries(run);
    free(entries.requests);
    free(entries.in);
    free(entries.out);
    return errors;
}

static void send_noticed(const dn_bench_run_t *run)
{
    dn_bench_send(run);
    MPI_Send(NULL, 0, MPI_CHAR, run->peer, DN_BENCH_TAG, entries.notices);
}

static void recv_noticed(const dn_bench_run_t *run)
{
    MPI_Recv(NULL, 0, MPI_CHAR, run->peer, DN_BENCH_TAG, entries.notices, MPI_STATUS_IGNORE);
    dn_bench_recv(run);
}

static void step(dn_bench_run_t *run)
{
    if (!run->options.unexpected) {
        dn_bench_step_ping_pong(run);
    } else if (run->first) {
        send_noticed(run);
        recv_noticed(run);
    } else {
        recv_noticed(run);
        send_noticed(run);
    }
}

static void header(const dn_bench_run_t *run)
{
    printf("# [ queue: %s ]\n", run->options.unexpected ? "unexpected" : "posted");
    dn_bench_header_latency(run);
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_queue", "One-way time of 8 B messages behind entries of other tags in a queue.",
                  "eqixcuPBT", false},
        .title = "dimmnet MPI Queue Depth Test",
        .defaults = &defaults,
        .flow = DN_BENCH_BOTH_WAYS,
        .max_pairs = 1,
        .next = next,
        .describe = describe,
        .begin = begin,
        .end = end,
        .step = step,
        .header = header,
        .report = dn_bench_report_latency,
    };
    return dn_bench_main(argc, argv, &program);
}
