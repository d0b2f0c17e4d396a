/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * The primitives of libdimmnet by themselves, between two processes on two cores.
 */
#include "dn_config.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dn_bench_fork.h"
#include "dn_perf.h"

/** Passed to both processes. */
typedef struct {
    perf_t perf;
    int sockets[2];
} start_t;

static void run_poll_connected(perf_t *perf)
{
    perf_poll_run(perf, false);
}

static void run_poll_active(perf_t *perf)
{
    perf_poll_run(perf, true);
}

static const perf_test_t own_tests[] = {
    {.name = "poll", .title = "Idle Poll Test: connected peers that never sent", .run = run_poll_connected},
    {.name = "poll_active", .title = "Idle Poll Test: peers that sent before", .run = run_poll_active},
    {.name = "memory", .title = "Memory Test", .run = perf_memory_run},
    {.name = NULL},
};

static int child(int index, void *arg)
{
    static perf_result_t result;
    start_t *start = arg;
    perf_t *perf = &start->perf;
    close(start->sockets[1 - index]);
    perf->index = index;
    perf->socket = start->sockets[index];
    if (NULL == perf->test->run) {
        perf_run(perf, &result);
        return 0 == index ? perf_print(perf, &result) : 0;
    }
    if (0 == index) {
        printf("# dimmnet %s\n", perf->test->title);
    }
    perf->test->run(perf);
    return 0;
}

static int start_test(const perf_test_t *test, const dn_bench_options_t *given, const int *cpus)
{
    start_t start = {.perf = {.program = "dn_perf"}};
    perf_choose(&start.perf, test, given);
    start.perf.shared = dn_bench_shared(sizeof(*start.perf.shared));
    perf_random_key("dn_perf", &start.perf.key);
    if (0 != socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, start.sockets)) {
        perror("dn_perf: no pair of sockets can be had");
        return 1;
    }
    int status = dn_bench_fork(2, cpus, 2, child, &start);
    close(start.sockets[0]);
    close(start.sockets[1]);
    return status;
}

/** Run the tests of a table that are asked for, until one fails. @return how many were. */
static int run_tests(const perf_test_t *test, const dn_bench_options_t *options, const int *cpus, int *status)
{
    int ran = 0;
    for (; NULL != test->name && 0 == *status; test++) {
        if (NULL == options->test || 0 == strcmp(options->test, test->name)) {
            *status = start_test(test, options, cpus);
            ran++;
        }
    }
    return ran;
}

static void list_tests(FILE *out, const perf_test_t *test, const char *separator)
{
    for (; NULL != test->name; test++) {
        fprintf(out, "%s%s", separator, test->name);
        separator = ", ";
    }
}

int main(int argc, char **argv)
{
    static const dn_bench_usage_t usage = {
        .name = "dn_perf",
        .purpose =
            "Each primitive of libdimmnet between two processes. Tests (-t, default all in "
            "turn): aotf,\naotf_rate, aotf_rate_apart, botf_lat, botf_bw, push_lat, push_bw, pull_lat, "
            "pull_bw,\nfetch_add, swap, cas, poll, poll_active, memory.",
        .accepts = "dtmixcWMBCP",
    };
    dn_bench_options_t options;
    int cpus[2];
    int status = 0;
    perf_defaults(&options);
    options.device = "shm";
    dn_bench_parse_or_exit(argc, argv, &usage, &options);
    if (0 != dn_bench_cpus(usage.name, options.cores, cpus, 2)) {
        return 1;
    }
    int ran = run_tests(perf_tests, &options, cpus, &status);
    ran += run_tests(own_tests, &options, cpus, &status);
    if (0 == ran) {
        fprintf(stderr, "dn_perf: there is no test %s; give one of", options.test);
        list_tests(stderr, perf_tests, " ");
        list_tests(stderr, own_tests, ", ");
        fprintf(stderr, "\n");
        return 1;
    }
    return status;
}
