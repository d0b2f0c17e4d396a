/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any bytes from a client to the server of dimmnet_perf, and from a server to its client. Nobody is served who does not
 * know the token, no path is among the devices of who is served, and no test is run that is not in the table, or beyond its
 * bounds.
 */
#include "dn_config.h"

#include "dn_fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../dn_test.h"
#include "dn_net.h"
#include "dn_perf_tool.h"

static int sockets[2] = {-1, -1};
static int log_fd = -1; /**< sentences go there, and not to the terminal */

static void connect_sockets(void)
{
    if (0 > log_fd) {
        log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    }
    DN_FUZZ_CHECK(0 == socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
}

/** Do as if the other side said these bytes and ended. */
static int greet(const uint8_t *data, size_t len, const dn_token_t *token, int as_client, char *devices,
                 dn_group_key_t *key)
{
    connect_sockets();
    const int saved = dup(STDERR_FILENO);
    dup2(log_fd, STDERR_FILENO);
    DN_FUZZ_CHECK(0 == dn_net_send(sockets[1], data, len));
    shutdown(sockets[1], SHUT_WR);
    const int status = as_client ? dn_greet_server(sockets[0], "there", token, "shm", key)
                                 : dn_greet_client(sockets[0], token, NULL, devices, key);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(sockets[0]);
    close(sockets[1]);
    return status;
}

static void try_greeting(const uint8_t *data, size_t len)
{
    static const dn_token_t none;
    static const dn_token_t some = {1, {1, 2, 3}};
    char devices[DN_GREET_DEVICES] = "";
    dn_group_key_t key;

    if (0 == greet(data, len, &none, 0, devices, &key)) {
        DN_FUZZ_CHECK(NULL == strchr(devices, '/') && NULL != memchr(devices, '\0', sizeof(devices)));
    }
    /* It would have to hash 32 random bytes that it has not seen. */
    DN_FUZZ_CHECK(0 != greet(data, len, &some, 0, devices, &key));
    DN_FUZZ_CHECK(0 != greet(data, len, &some, 1, devices, &key));
}

/** What is said first, without the random bytes. */
static void try_judge(const uint8_t *data, size_t len)
{
    static const dn_token_t none;
    dn_hello_t hello;

    memset(&hello, 0, sizeof(hello));
    memcpy(&hello, data, len < sizeof(hello) ? len : sizeof(hello));
    const dn_greet_t verdict = dn_greet_judge(&hello, &none, NULL);
    if (DN_GREET_SERVED == verdict) {
        DN_FUZZ_CHECK(NULL == memchr(hello.devices, '/', strlen(hello.devices)) && 0 == hello.token);
    }
}

static void try_plan(const uint8_t *data, size_t len)
{
    dn_plan_t plan;

    memset(&plan, 0, sizeof(plan));
    memcpy(&plan, data, len < sizeof(plan) ? len : sizeof(plan));
    if (!dn_plan_check(&plan)) {
        return;
    }
    perf_t perf = {.program = "fuzz"};
    dn_bench_options_t options;
    perf_defaults(&options);
    options.min_size = plan.min_size;
    options.max_size = plan.max_size;
    options.mem_limit = plan.mem_limit;
    options.iterations = plan.iterations;
    options.warmup = plan.warmup;
    options.batches = plan.batches;
    options.window = plan.window;
    perf_choose(&perf, perf_find(plan.test), &options);
    int rows = 0;
    for (size_t size = perf.options.min_size; size <= perf.options.max_size;
         size = dn_bench_next_size(size)) {
        const size_t slot = (size + DN_BENCH_LINE - 1) / DN_BENCH_LINE * DN_BENCH_LINE;
        DN_FUZZ_CHECK(PERF_MAX_SIZES > rows++);
        DN_FUZZ_CHECK(2 * DN_PLAN_MEMORY >= slot * (size_t) dn_bench_window(&perf.options, size));
        DN_FUZZ_CHECK(0 <= dn_bench_iterations(&perf.options, size)
                      && 0 <= dn_bench_warmup(&perf.options, size));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (0 == len) {
        return 0;
    }
    /* System calls take long: most inputs do without. */
    if (0 == data[0] % 16) {
        try_greeting(data + 1, len - 1);
    }
    if (1 == data[0] % 2) {
        try_judge(data + 1, len - 1);
    } else {
        try_plan(data + 1, len - 1);
    }
    return 0;
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    static const char *const lists[] = {"shm", "shm,ofi", "emulate:dimmnet1-d", "emulate:/tmp/x", "model",
                                        ",",   "shm:x"};
    static const char *const tests[] = {"aotf", "botf_lat", "push_bw", "cas", "poll", ""};
    static const uint64_t sizes[] = {0, 1, 8, 4096, (uint64_t) 1 << 30, ((uint64_t) 1 << 30) + 1, UINT64_MAX};

    data[0] = (uint8_t) dn_test_random(random);
    if (0 == data[0] % 2 && 0 != data[0] % 16) {
        dn_plan_t plan = {.min_size = sizes[dn_test_below(random, 7)],
                          .max_size = sizes[dn_test_below(random, 7)],
                          .mem_limit = sizes[dn_test_below(random, 7)],
                          .iterations = (int32_t) dn_test_below(random, 100),
                          .batches = 1 + (int32_t) dn_test_below(random, 5),
                          .window = (int32_t) sizes[dn_test_below(random, 4)]};
        snprintf(plan.test, sizeof(plan.test), "%s", tests[dn_test_below(random, 6)]);
        memcpy(data + 1, &plan, sizeof(plan));
        return 1 + sizeof(plan);
    }
    dn_hello_t hello = {.magic = "dnperf2",
                        .wire = DN_WIRE_VERSION,
                        .bytes = sizeof(dn_plan_t),
                        .token = (uint32_t) dn_test_below(random, 2)};
    snprintf(hello.devices, sizeof(hello.devices), "%s", lists[dn_test_below(random, 7)]);
    memcpy(data + 1, &hello, sizeof(hello));
    memset(data + 1 + sizeof(hello), 7, sizeof(dn_verdict_t) + sizeof(dn_plan_t));
    return 1 + sizeof(hello) + dn_test_below(random, sizeof(dn_verdict_t) + sizeof(dn_plan_t));
}
