/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_bench_mpi.h"

/* Wrong bytes reported one by one; after that only the verdict. */
#define MAX_REPORTS 3

/* A few ms to 0.5 s a size. */
static const dn_bench_tier_t window_tiers[] = {
    {8192, 1000, 100},
    {262144, 100, 10},
    {4194304, 20, 2},
    {SIZE_MAX, 10, 1},
};

const dn_bench_options_t dn_bench_window_defaults = {
    .min_size = 1,
    .max_size = 4194304,
    .tiers = window_tiers,
    .num_tiers = 4,
    .warmup = -1,
    .batches = 1,
    .window = 64,
    .precision = 2,
    .rate = true,
};

void dn_bench_send(const dn_bench_run_t *run)
{
    MPI_Send(run->send_buf, run->out.count, run->out.type, run->peer, DN_BENCH_TAG, MPI_COMM_WORLD);
}

void dn_bench_recv(const dn_bench_run_t *run)
{
    MPI_Recv(run->recv_buf, run->in.count, run->in.type, run->peer, DN_BENCH_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

void dn_bench_step_ping_pong(dn_bench_run_t *run)
{
    if (run->first) {
        dn_bench_send(run);
        dn_bench_recv(run);
    } else {
        dn_bench_recv(run);
        dn_bench_send(run);
    }
}

void dn_bench_header_latency(const dn_bench_run_t *run)
{
    static const char *const titles[] = {"Latency (us)", NULL};
    dn_bench_print_header(&run->options, titles);
}

void dn_bench_report_latency(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    double us = time->mean * 1e6 / 2;
    dn_bench_print_row(&run->options, run->size, &us, 1, time->failed);
}

static void post_window(dn_bench_run_t *run, bool send, MPI_Request *requests)
{
    for (int i = 0; i < run->window; i++) {
        size_t offset = (size_t) i * run->stride;
        if (send) {
            MPI_Isend(run->send_buf + offset, run->out.count, run->out.type, run->peer, DN_BENCH_TAG,
                      MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Irecv(run->recv_buf + offset, run->in.count, run->in.type, run->peer, DN_BENCH_TAG,
                      MPI_COMM_WORLD, &requests[i]);
        }
    }
}

int dn_bench_isend_window(dn_bench_run_t *run, MPI_Request *requests)
{
    post_window(run, true, requests);
    return run->window;
}

int dn_bench_irecv_window(dn_bench_run_t *run, MPI_Request *requests)
{
    post_window(run, false, requests);
    return run->window;
}

void dn_bench_send_ack(const dn_bench_run_t *run)
{
    char ack[4] = {0};
    MPI_Send(ack, sizeof(ack), MPI_CHAR, run->peer, DN_BENCH_TAG_ACK, MPI_COMM_WORLD);
}

void dn_bench_recv_ack(const dn_bench_run_t *run)
{
    char ack[4];
    MPI_Recv(ack, sizeof(ack), MPI_CHAR, run->peer, DN_BENCH_TAG_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void dn_bench_step_window(dn_bench_run_t *run)
{
    if (run->first) {
        int n = dn_bench_isend_window(run, run->requests);
        MPI_Waitall(n, run->requests, MPI_STATUSES_IGNORE);
        dn_bench_recv_ack(run);
    } else {
        int n = dn_bench_irecv_window(run, run->requests);
        MPI_Waitall(n, run->requests, MPI_STATUSES_IGNORE);
        dn_bench_send_ack(run);
    }
}

void dn_bench_header_bandwidth(const dn_bench_run_t *run)
{
    static const char *const titles[] = {"Bandwidth (MB/s)", NULL};
    dn_bench_print_header(&run->options, titles);
}

double dn_bench_megabytes(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    return (double) run->out.layout.bytes * run->window * run->pairs / time->mean / 1e6;
}

void dn_bench_describe_bytes(dn_bench_run_t *run, size_t bytes)
{
    run->out = (dn_bench_end_t){dn_bench_layout_grid(1, 0, 1, 0, bytes), (int) bytes, MPI_CHAR};
    run->in = run->out;
}

static MPI_Datatype indexed_type(const dn_bench_ddt_t *ddt)
{
    MPI_Datatype type;
    size_t len = (size_t) ddt->list_len * sizeof(int);
    int *lens = dn_bench_alloc(len);
    int *offsets = dn_bench_alloc(len);
    for (int i = 0; i < ddt->list_len; i++) {
        lens[i] = ddt->list[i].len;
        offsets[i] = ddt->list[i].offset;
    }
    MPI_Type_indexed(ddt->list_len, lens, offsets, MPI_CHAR, &type);
    free(lens);
    free(offsets);
    return type;
}

static dn_bench_end_t derived_end(const dn_bench_ddt_t *ddt, size_t size)
{
    dn_bench_end_t end = {.layout = dn_bench_layout(ddt, size), .count = 1};
    switch (ddt->kind) {
    case DN_BENCH_VECT:
        MPI_Type_vector((int) end.layout.blocks, ddt->len, ddt->stride, MPI_CHAR, &end.type);
        break;
    case DN_BENCH_INDX:
        end.type = indexed_type(ddt);
        break;
    default:
        MPI_Type_contiguous((int) size, MPI_CHAR, &end.type);
        break;
    }
    MPI_Type_commit(&end.type);
    return end;
}

static void describe(dn_bench_run_t *run, const dn_bench_program_t *program)
{
    const dn_bench_ddt_t *ddt = &run->options.ddt;
    if (NULL != program->describe) {
        program->describe(run);
    } else if (DN_BENCH_PLAIN == ddt->kind) {
        dn_bench_describe_bytes(run, run->size);
    } else {
        run->out = derived_end(ddt, run->size);
        run->in = derived_end(ddt, run->size);
    }
}

static void free_type(dn_bench_end_t *end)
{
    int n;
    int combiner;
    MPI_Type_get_envelope(end->type, &n, &n, &n, &combiner);
    if (MPI_COMBINER_NAMED != combiner) {
        MPI_Type_free(&end->type);
    }
}

/* Buffers for one size. Without -c all messages share one, as large windows
   would otherwise measure the memory and not the transport. The memory between
   the blocks differs at both ends: bytes of it that were sent along show. */
static void set_size(dn_bench_run_t *run, const dn_bench_program_t *program, size_t size)
{
    run->size = size;
    describe(run, program);
    size_t sent = run->out.layout.extent;
    size_t received = run->in.layout.extent;
    size_t extent = sent > received ? sent : received;
    run->window = dn_bench_window(&run->options, extent);
    size_t slot = (extent + DN_BENCH_LINE - 1) / DN_BENCH_LINE * DN_BENCH_LINE;
    run->stride = run->options.check ? slot : 0;
    size_t len = slot + (size_t) (run->window - 1) * run->stride;
    run->send_buf = dn_bench_alloc(len);
    run->recv_buf = dn_bench_alloc(len);
    memset(run->send_buf, 0xff ^ DN_BENCH_FILLER, len);
}

static void free_size(dn_bench_run_t *run)
{
    free_type(&run->out);
    free_type(&run->in);
    free(run->send_buf);
    free(run->recv_buf);
}

static void fill_window(dn_bench_run_t *run, uint64_t iteration)
{
    for (int i = 0; run->sends && i < run->window; i++) {
        dn_bench_layout_fill(&run->out.layout, run->send_buf + (size_t) i * run->stride,
                             dn_bench_seed(run->size, iteration, run->rank, i));
    }
}

static int check_window(dn_bench_run_t *run, uint64_t iteration, int reports)
{
    int errors = 0;
    for (int i = 0; run->receives && i < run->window; i++) {
        size_t at = dn_bench_layout_check(&run->in.layout, run->recv_buf + (size_t) i * run->stride,
                                          run->stride, dn_bench_seed(run->size, iteration, run->peer, i));
        if (at == run->stride) {
            continue;
        }
        if (reports + errors < MAX_REPORTS) {
            fprintf(stderr,
                    "rank %d: wrong data from rank %d: size %zu, iteration %llu, message %d of "
                    "the window, first at byte %zu\n",
                    run->rank, run->peer, run->size, (unsigned long long) iteration, i, at);
        }
        errors++;
    }
    return errors;
}

/* Verified iterations: returns wrong messages, adds up the time in ns. */
static int run_checked(dn_bench_run_t *run, const dn_bench_program_t *program, int iterations,
                       uint64_t *first_iteration_p, uint64_t *time_p)
{
    int errors = 0;
    for (int i = 0; i < iterations; i++) {
        for (int k = 0; 0 <= run->peer && k < run->options.check_warmup; k++) {
            program->step(run);
        }
        uint64_t iteration = (*first_iteration_p)++;
        fill_window(run, iteration);
        MPI_Barrier(MPI_COMM_WORLD);
        if (0 <= run->peer) {
            uint64_t start = dn_bench_now_ns();
            program->step(run);
            *time_p += dn_bench_now_ns() - start;
        }
        errors += check_window(run, iteration, errors);
    }
    return errors;
}

/* Under -k: compute, when it is our turn to be late. */
static void be_late(dn_bench_run_t *run)
{
    if (run->late == run->rank) {
        const uint64_t end = dn_bench_now_ns() + (uint64_t) run->options.skew_us * 1000;
        while (dn_bench_now_ns() < end) {
        }
    }
    run->late = (run->late + 1) % run->ranks;
}

static uint64_t run_plain(dn_bench_run_t *run, const dn_bench_program_t *program, int iterations)
{
    uint64_t start = dn_bench_now_ns();
    for (int i = 0; i < iterations; i++) {
        if (0 != run->options.skew_us) {
            be_late(run);
        }
        program->step(run);
    }
    return dn_bench_now_ns() - start;
}

/* Seconds an iteration takes on this rank; wrong messages are added to *errors_p. */
static double time_steps(dn_bench_run_t *run, const dn_bench_program_t *program, int *errors_p)
{
    const dn_bench_options_t *o = &run->options;
    int total = dn_bench_iterations(o, run->size);
    int batches = o->batches < total ? o->batches : total;
    int each = total / batches;
    uint64_t iteration = 0;
    double *seconds = dn_bench_alloc(sizeof(seconds[0]) * (size_t) batches);

    MPI_Barrier(MPI_COMM_WORLD);
    if (0 <= run->peer) {
        run_plain(run, program, dn_bench_warmup(o, run->size));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int b = 0; b < batches; b++) {
        uint64_t ns = 0;
        if (o->check && !program->every_rank) {
            *errors_p += run_checked(run, program, each, &iteration, &ns);
        } else if (0 <= run->peer) {
            ns = run_plain(run, program, each);
        }
        seconds[b] = (double) ns / 1e9 / each - o->skew_us / 1e6;
    }
    double median = dn_bench_median(seconds, batches);
    free(seconds);
    return median;
}

static dn_bench_time_t measure(dn_bench_run_t *run, const dn_bench_program_t *program)
{
    int errors = 0;
    int failed = 0;
    dn_bench_time_t time = {0};
    if (NULL != program->begin) {
        program->begin(run);
    }
    double mine = time_steps(run, program, &errors);
    if (NULL != program->end) {
        errors += program->end(run);
    }
    double sum = run->first ? mine : 0.0;
    double min = run->first ? mine : 1e9;
    MPI_Allreduce(&sum, &time.mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&sum, &time.max, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&min, &time.min, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&errors, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    time.mean /= program->every_rank ? run->ranks : run->pairs;
    time.failed = (0 != failed);
    return time;
}

/* Why this program cannot run with these ranks and options; NULL when it can. */
static const char *assign_ranks(dn_bench_run_t *run, const dn_bench_program_t *program)
{
    if (program->every_rank) {
        run->pairs = run->ranks;
        run->peer = run->rank;
        run->first = true;
        return NULL;
    }
    if (2 > run->ranks) {
        return "it needs two ranks: start it with mpirun -n 2";
    }
    if (1 == program->max_pairs && 2 != run->ranks) {
        return "it runs with exactly two ranks: start it with mpirun -n 2";
    }
    run->pairs = 0 != run->options.pairs ? run->options.pairs : run->ranks / 2;
    if (2 * run->pairs > run->ranks) {
        return "there are fewer ranks than two for each pair: use a smaller --num-pairs";
    }
    if (run->options.max_size > INT_MAX) {
        return "MPI counts bytes in an int: use sizes below 2G with -m";
    }
    bool second = run->rank >= run->pairs && run->rank < 2 * run->pairs;
    run->first = run->rank < run->pairs;
    run->peer = run->first ? run->rank + run->pairs : second ? run->rank - run->pairs : -1;
    run->sends = run->first || (second && DN_BENCH_BOTH_WAYS == program->flow);
    run->receives = second || (run->first && DN_BENCH_BOTH_WAYS == program->flow);
    return NULL;
}

static bool run_sizes(dn_bench_run_t *run, const dn_bench_program_t *program)
{
    bool failed = false;
    if (NULL != program->ready) {
        program->ready(run);
    }
    run->requests = dn_bench_alloc(2 * sizeof(MPI_Request) * (size_t) run->options.window);
    if (0 == run->rank) {
        printf("# %s\n", program->title);
        program->header(run);
    }
    for (size_t size = run->options.min_size; size <= run->options.max_size;
         size = NULL == program->next ? dn_bench_next_size(size) : program->next(size)) {
        set_size(run, program, size);
        dn_bench_time_t time = measure(run, program);
        failed = failed || time.failed;
        if (0 == run->rank) {
            program->report(run, &time);
        }
        free_size(run);
    }
    free(run->requests);
    if (NULL != program->done) {
        program->done(run);
    }
    return failed;
}

int dn_bench_main(int argc, char **argv, const dn_bench_program_t *program)
{
    dn_bench_run_t run = {.options = *program->defaults};
    int status = 0;

    /* The options say how MPI is started, and only then is it known which rank may speak. */
    dn_bench_usage_t usage = program->usage;
    usage.quiet = true;
    const dn_bench_parsed_t parsed = dn_bench_parse(argc, argv, &usage, &run.options);
    const int level = run.options.threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int provided;
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
    if (DN_BENCH_RUN != parsed && 0 == run.rank) {
        run.options = *program->defaults;
        dn_bench_parse(argc, argv, &program->usage, &run.options);
    }

    if (DN_BENCH_RUN == parsed) {
        const char *obstacle = provided < level ? "this MPI has no MPI_THREAD_MULTIPLE: leave out -T"
                                                : assign_ranks(&run, program);
        if (NULL == obstacle && NULL != program->obstacle) {
            obstacle = program->obstacle(&run);
        }
        if (NULL == obstacle) {
            status = run_sizes(&run, program) ? 1 : 0;
        } else {
            status = 1;
            if (0 == run.rank) {
                fprintf(stderr, "%s: %s\n", program->usage.name, obstacle);
            }
        }
    } else {
        status = DN_BENCH_HELP == parsed ? 0 : 1;
    }
    MPI_Finalize();
    return status;
}
