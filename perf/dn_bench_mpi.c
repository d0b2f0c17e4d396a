/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "dn_bench_mpi.h"

/* Wrong bytes reported one by one; after that only the verdict. */
#define MAX_REPORTS 3

const dn_bench_tier_t dn_bench_window_tiers[DN_BENCH_WINDOW_TIERS] = {
    {8192, 1000, 100},
    {262144, 100, 10},
    {4194304, 20, 2},
    {SIZE_MAX, 10, 1},
};

static void post_window(dn_bench_run_t *run, bool send, MPI_Request *requests)
{
    int count = (int) run->size;
    for (int i = 0; i < run->window; i++) {
        size_t offset = (size_t) i * run->stride;
        if (send) {
            MPI_Isend(run->send_buf + offset, count, MPI_CHAR, run->peer, DN_BENCH_TAG, MPI_COMM_WORLD,
                      &requests[i]);
        } else {
            MPI_Irecv(run->recv_buf + offset, count, MPI_CHAR, run->peer, DN_BENCH_TAG, MPI_COMM_WORLD,
                      &requests[i]);
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
    return (double) run->size * run->window * run->pairs / time->mean / 1e6;
}

/* Buffers for one size. Without -c all messages share one, as large windows
   would otherwise measure the memory and not the transport. */
static void set_size(dn_bench_run_t *run, size_t size)
{
    run->size = size;
    run->window = dn_bench_window(&run->options, size);
    size_t slot = (size + DN_BENCH_LINE - 1) / DN_BENCH_LINE * DN_BENCH_LINE;
    run->stride = run->options.check ? slot : 0;
    size_t len = slot + (size_t) (run->window - 1) * run->stride;
    run->send_buf = dn_bench_alloc(len);
    run->recv_buf = dn_bench_alloc(len);
}

static void fill_window(dn_bench_run_t *run, uint64_t iteration)
{
    for (int i = 0; run->sends && i < run->window; i++) {
        dn_bench_fill(run->send_buf + (size_t) i * run->stride, run->size,
                      dn_bench_seed(run->size, iteration, run->rank, i));
    }
}

static int check_window(dn_bench_run_t *run, uint64_t iteration, int reports)
{
    int errors = 0;
    for (int i = 0; run->receives && i < run->window; i++) {
        const char *message = run->recv_buf + (size_t) i * run->stride;
        size_t at = dn_bench_check(message, run->size, dn_bench_seed(run->size, iteration, run->peer, i));
        if (at == run->size) {
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

static uint64_t run_plain(dn_bench_run_t *run, const dn_bench_program_t *program, int iterations)
{
    uint64_t start = dn_bench_now_ns();
    for (int i = 0; i < iterations; i++) {
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
        if (o->check) {
            *errors_p += run_checked(run, program, each, &iteration, &ns);
        } else if (0 <= run->peer) {
            ns = run_plain(run, program, each);
        }
        seconds[b] = (double) ns / 1e9 / each;
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
    double mine = time_steps(run, program, &errors);
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
    run->requests = dn_bench_alloc(2 * sizeof(MPI_Request) * (size_t) run->options.window);
    if (0 == run->rank) {
        printf("# %s\n", program->title);
        program->header(run);
    }
    for (size_t size = run->options.min_size; size <= run->options.max_size;
         size = dn_bench_next_size(size)) {
        set_size(run, size);
        dn_bench_time_t time = measure(run, program);
        failed = failed || time.failed;
        if (0 == run->rank) {
            program->report(run, &time);
        }
        free(run->send_buf);
        free(run->recv_buf);
    }
    free(run->requests);
    return failed;
}

int dn_bench_main(int argc, char **argv, const dn_bench_program_t *program)
{
    dn_bench_run_t run = {.options = program->defaults};
    int status = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);

    dn_bench_usage_t usage = program->usage;
    usage.quiet = (0 != run.rank);
    dn_bench_parsed_t parsed = dn_bench_parse(argc, argv, &usage, &run.options);
    if (DN_BENCH_RUN == parsed) {
        const char *obstacle = assign_ranks(&run, program);
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
