/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_bench_mpi.h"
#include "dn_bench_window.h"

static const dn_bench_tier_t tiers[] = {
    {8192, 10000, 100},
    {262144, 1000, 10},
    {4194304, 100, 2},
    {SIZE_MAX, 10, 1},
};

static const dn_bench_options_t defaults = {
    .min_size = 8,
    .max_size = 4194304,
    .tiers = tiers,
    .num_tiers = 4,
    .warmup = -1,
    .batches = 1,
    .window = 64,
    .precision = 2,
    .test = "put_latency",
    .win_kind = "allocate",
    .win_sync = "flush",
};

typedef enum { PUT, GET, ACC, GET_ACC, FOP, CAS } operation_t;

typedef enum { LATENCY, BANDWIDTH, BOTH_WAYS } measure_t;

typedef struct {
    const char *name;
    operation_t operation;
    measure_t measure;
} rma_test_t;

static const rma_test_t tests[] = {
    {"put_latency", PUT, LATENCY}, {"get_latency", GET, LATENCY},
    {"acc_latency", ACC, LATENCY}, {"get_acc_latency", GET_ACC, LATENCY},
    {"fop_latency", FOP, LATENCY}, {"cas_latency", CAS, LATENCY},
    {"put_bw", PUT, BANDWIDTH},    {"get_bw", GET, BANDWIDTH},
    {"put_bibw", PUT, BOTH_WAYS},
};

#define NUM_TESTS ((int) (sizeof(tests) / sizeof(tests[0])))

/* Ranks of a pair: the first one operates, or both do. */
enum { ORIGIN, TARGET };

static struct {
    const rma_test_t *test;
    MPI_Comm pair;
    dn_bench_win_t win;
    char *results; /* of get_accumulate and its kin */
    int errors;
} rma;

static const rma_test_t *find(const char *name)
{
    for (int i = 0; i < NUM_TESTS; i++) {
        if (0 == strcmp(name, tests[i].name)) {
            return &tests[i];
        }
    }
    return NULL;
}

/* Accumulates add words. */
static bool counts_words(const rma_test_t *test)
{
    return PUT != test->operation && GET != test->operation;
}

static bool is_one_word(const rma_test_t *test)
{
    return FOP == test->operation || CAS == test->operation;
}

static const char *obstacle(const dn_bench_run_t *run)
{
    const rma_test_t *test = find(run->options.test);
    if (NULL == test) {
        return "--test is put_latency, get_latency, acc_latency, get_acc_latency, fop_latency, "
               "cas_latency, put_bw, get_bw or put_bibw";
    }
    if (counts_words(test) && DN_BENCH_PLAIN != run->options.ddt.kind) {
        return "accumulates are measured on words side by side: leave out --ddt";
    }
    if (counts_words(test) && (0 == run->options.min_size || 0 != run->options.min_size % sizeof(uint64_t))) {
        return "accumulates are measured on words: begin with a size of 8, or 16, ...";
    }
    return dn_bench_win_obstacle(&run->options);
}

static void ready(dn_bench_run_t *run)
{
    const rma_test_t *test = find(run->options.test);
    rma.test = test;
    if (LATENCY == test->measure) {
        run->options.window = 1;
    }
    if (is_one_word(test)) {
        run->options.min_size = run->options.max_size = sizeof(uint64_t);
    }
    if (0 <= run->peer) {
        const bool gets = GET == test->operation;
        run->sends = BOTH_WAYS == test->measure || run->first != gets;
        run->receives = BOTH_WAYS == test->measure || run->first == gets;
    }
    int pair = run->first ? run->rank : run->peer;
    MPI_Comm_split(MPI_COMM_WORLD, 0 <= run->peer ? pair : MPI_UNDEFINED, run->first ? ORIGIN : TARGET,
                   &rma.pair);
}

/* The window takes the place of the buffer at the target. */
static char **lent_buffer(dn_bench_run_t *run)
{
    return GET == rma.test->operation ? &run->send_buf : &run->recv_buf;
}

static void begin(dn_bench_run_t *run)
{
    if (0 > run->peer) {
        return;
    }
    const size_t extent =
        run->out.layout.extent > run->in.layout.extent ? run->out.layout.extent : run->in.layout.extent;
    const size_t slot = (extent + DN_BENCH_LINE - 1) / DN_BENCH_LINE * DN_BENCH_LINE;
    const int other = run->first ? TARGET : ORIGIN;
    const bool both = BOTH_WAYS == rma.test->measure;
    dn_bench_win_open(&rma.win, &run->options, rma.pair, slot + (size_t) (run->window - 1) * run->stride,
                      &other, both || !run->first, &other, both || run->first);
    rma.results = dn_bench_alloc(slot);
    rma.errors = 0;
    if (both || !run->first) {
        free(*lent_buffer(run));
        *lent_buffer(run) = rma.win.memory;
    }
}

static int end(dn_bench_run_t *run)
{
    if (0 > run->peer) {
        return 0;
    }
    if (BOTH_WAYS == rma.test->measure || !run->first) {
        *lent_buffer(run) = NULL;
    }
    dn_bench_win_close(&rma.win);
    free(rma.results);
    return rma.errors;
}

/* A word of memory as dn_bench_win_open() and the frame leave it. */
static uint64_t filler(void)
{
    uint64_t word;
    memset(&word, DN_BENCH_FILLER, sizeof(word));
    return word;
}

static void operate(dn_bench_run_t *run, size_t offset)
{
    static const uint64_t unchanged = UINT64_C(0x0101010101010101) * DN_BENCH_FILLER;
    const int other = run->first ? TARGET : ORIGIN;
    const MPI_Aint there = rma.win.base[other] + (MPI_Aint) offset;
    const int words = (int) (run->size / sizeof(uint64_t));
    char *here = run->send_buf + offset;
    MPI_Win win = rma.win.win;
    switch (rma.test->operation) {
    case PUT:
        MPI_Put(here, run->out.count, run->out.type, other, there, run->in.count, run->in.type, win);
        break;
    case GET:
        MPI_Get(run->recv_buf + offset, run->in.count, run->in.type, other, there, run->out.count,
                run->out.type, win);
        break;
    case ACC:
        MPI_Accumulate(here, words, MPI_UINT64_T, other, there, words, MPI_UINT64_T, MPI_SUM, win);
        break;
    case GET_ACC:
        MPI_Get_accumulate(here, words, MPI_UINT64_T, rma.results, words, MPI_UINT64_T, other, there, words,
                           MPI_UINT64_T, MPI_SUM, win);
        break;
    case FOP:
        MPI_Fetch_and_op(here, rma.results, MPI_UINT64_T, other, there, MPI_SUM, win);
        break;
    default:
        MPI_Compare_and_swap(here, &unchanged, rma.results, MPI_UINT64_T, other, there, win);
        break;
    }
}

/* At the origin: what was there before has been fetched. At the target: of a sum only what came is left. */
static void check_words(dn_bench_run_t *run)
{
    const bool fetches = ACC != rma.test->operation;
    for (size_t at = 0; at < run->size; at += sizeof(uint64_t)) {
        uint64_t word;
        if (!run->first && CAS != rma.test->operation) {
            memcpy(&word, run->recv_buf + at, sizeof(word));
            word -= filler();
            memcpy(run->recv_buf + at, &word, sizeof(word));
        } else if (run->first && fetches) {
            memcpy(&word, rma.results + at, sizeof(word));
            rma.errors += filler() != word;
        }
    }
}

static void step(dn_bench_run_t *run)
{
    if (run->options.check) {
        if (counts_words(rma.test) && !run->first) {
            memset(run->recv_buf, DN_BENCH_FILLER, run->size); /* what untimed iterations have added to */
        }
        /* The target has filled its memory by stores. */
        dn_bench_win_sync(&rma.win);
        MPI_Barrier(rma.pair);
    }
    dn_bench_win_begin(&rma.win);
    if (run->first || BOTH_WAYS == rma.test->measure) {
        for (int i = 0; i < run->window; i++) {
            operate(run, (size_t) i * run->stride);
        }
    }
    dn_bench_win_end(&rma.win);
    if (BOTH_WAYS == rma.test->measure && dn_bench_win_passive(&rma.win)) {
        MPI_Barrier(rma.pair);
    }
    if (!run->options.check) {
        return;
    }
    if (DN_BENCH_FLUSH_LOCAL == rma.win.sync && MPI_GROUP_EMPTY != rma.win.targets) {
        MPI_Win_flush_all(rma.win.win);
    }
    MPI_Barrier(rma.pair);
    dn_bench_win_sync(&rma.win);
    if (counts_words(rma.test)) {
        check_words(run);
    }
}

static void header(const dn_bench_run_t *run)
{
    printf("# [ %s ] [ window: %s ] [ synchronisation: %s ]\n", run->options.test, run->options.win_kind,
           run->options.win_sync);
    if (LATENCY == rma.test->measure) {
        dn_bench_header_latency(run);
    } else {
        dn_bench_header_bandwidth(run);
    }
}

static void report(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    const double ways = BOTH_WAYS == rma.test->measure ? 2 : 1;
    const double value =
        LATENCY == rma.test->measure ? time->mean * 1e6 : ways * dn_bench_megabytes(run, time);
    dn_bench_print_row(&run->options, run->size, &value, 1, time->failed);
}

static void done(dn_bench_run_t *run)
{
    if (0 <= run->peer) {
        MPI_Comm_free(&rma.pair);
    }
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_rma",
                  "Time of a one-sided operation (-t) with its synchronisation (-s) on a window (-w), or "
                  "bandwidth of many of them.",
                  "twsmixcuWMpPBDT", false},
        .title = "dimmnet MPI One-Sided Test",
        .defaults = &defaults,
        .flow = DN_BENCH_ONE_WAY,
        .obstacle = obstacle,
        .ready = ready,
        .begin = begin,
        .end = end,
        .done = done,
        .step = step,
        .header = header,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
