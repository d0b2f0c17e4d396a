/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * The primitives of libdimmnet by themselves, between two processes on two cores.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_bench_fork.h"
#include "dn_perf.h"

#define TAG_DATA 0
#define TAG_ACK  1
/* LLCM words: what AOTF writes, and the status word of PUSH. */
#define WORD_AOTF   0
#define WORD_STATUS 1
#define LLCM_BYTES  64

static const dn_bench_tier_t tiers[] = {
    {8192, 20000, 1000},
    {262144, 1000, 50},
    {4194304, 100, 10},
    {SIZE_MAX, 20, 2},
};

static const dn_bench_tier_t window_tiers[] = {
    {8192, 500, 50},
    {262144, 50, 5},
    {4194304, 10, 1},
    {SIZE_MAX, 5, 1},
};

void perf_must(const perf_t *perf, dn_status_t status, const char *what)
{
    if (DN_OK != status) {
        fprintf(stderr, "dn_perf %s: %s failed in process %d: %s\n", perf->test->name, what, perf->index,
                dn_strerror(status));
        exit(1);
    }
}

dn_port_t *perf_open(const perf_t *perf, uint32_t pid, perf_address_t *address)
{
    dn_job_t job = {.pgid = perf->shared->pgid, .pid = pid, .nlocal = 2};
    dn_config_t config;
    dn_port_t *port;
    dn_config_init(&config);
    if (config.max_peers < 2 * PERF_MAX_PORTS) {
        config.max_peers = 2 * PERF_MAX_PORTS;
    }
    perf_must(perf, dn_open(perf->options.device, &job, &config, &port), "dn_open");
    address->len = sizeof(address->bytes);
    perf_must(perf, dn_address(port, address->bytes, &address->len), "dn_address");
    return port;
}

dn_peer_t *perf_connect(const perf_t *perf, dn_port_t *port, const perf_address_t *address)
{
    dn_peer_t *peer;
    perf_must(perf, dn_connect(port, address->bytes, address->len, &peer), "dn_connect");
    return peer;
}

void perf_send(const perf_t *perf, dn_port_t *port, dn_peer_t *peer, unsigned tag, const void *data,
               size_t len)
{
    dn_status_t status;
    while (DN_ERR_AGAIN == (status = dn_botf(peer, DN_CHAN_USER, tag, NULL, 0, data, len))) {
        dn_progress(port);
    }
    perf_must(perf, status, "dn_botf");
}

void perf_barrier(perf_t *perf, dn_port_t **ports, int n)
{
    unsigned mine = atomic_fetch_add(&perf->shared->arrived, 1);
    unsigned all = mine - mine % 2 + 2;
    while ((int) (atomic_load(&perf->shared->arrived) - all) < 0) {
        for (int i = 0; i < n; i++) {
            dn_progress(ports[i]);
        }
    }
}

static void barrier(perf_t *perf)
{
    perf_barrier(perf, &perf->port, 1);
}

/* AOTF */

static void aotf_send(perf_t *perf)
{
    uint64_t off = perf->shared->llcm_off[1 - perf->index] + 8 * WORD_AOTF;
    dn_status_t status;
    perf->sent++;
    while (DN_ERR_AGAIN == (status = dn_aotf(perf->peer, off, perf->sent, perf->size))) {
        dn_progress(perf->port);
    }
    perf_must(perf, status, "dn_aotf");
}

/* The word counts: it must go from the last value to the next, in its low bytes. */
static void aotf_wait(perf_t *perf)
{
    uint64_t mask = 8 == perf->size ? UINT64_MAX : (1ull << (8 * perf->size)) - 1;
    uint64_t before = perf->received++ & mask;
    uint64_t now;
    do {
        now = atomic_load_explicit(&perf->llcm[WORD_AOTF], memory_order_acquire) & mask;
    } while (now == before);
    perf->errors += now != (perf->received & mask);
}

static void step_aotf(perf_t *perf)
{
    if (0 == perf->index) {
        aotf_send(perf);
        aotf_wait(perf);
    } else {
        aotf_wait(perf);
        aotf_send(perf);
    }
}

/* BOTF */

static void on_message(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    perf_t *perf = arg;
    (void) src;
    perf->received++;
    if (TAG_DATA != tag || !perf->options.check) {
        return;
    }
    uint64_t seed = dn_bench_seed(perf->size, perf->iteration, 1 - perf->index, perf->slot++);
    perf->errors += len != perf->size || len != dn_bench_check(data, len, seed);
}

static void await_messages(perf_t *perf, uint64_t target)
{
    while (perf->received < target) {
        dn_progress(perf->port);
    }
}

static void send_slot(perf_t *perf, int slot)
{
    perf_send(perf, perf->port, perf->peer, TAG_DATA, perf->local + (size_t) slot * perf->stride, perf->size);
}

static void step_botf_latency(perf_t *perf)
{
    uint64_t target = perf->received + 1;
    if (0 == perf->index) {
        send_slot(perf, 0);
        await_messages(perf, target);
    } else {
        await_messages(perf, target);
        send_slot(perf, 0);
    }
}

static void step_botf_window(perf_t *perf)
{
    if (0 == perf->index) {
        uint64_t target = perf->received + 1;
        for (int i = 0; i < perf->window; i++) {
            send_slot(perf, i);
        }
        await_messages(perf, target);
    } else {
        await_messages(perf, perf->received + (uint64_t) perf->window);
        perf_send(perf, perf->port, perf->peer, TAG_ACK, NULL, 0);
    }
}

/* PUSH, PULL, fetch-add: process 1 only makes progress until process 0 is done. */

static void finish(perf_t *perf)
{
    dn_status_t status;
    while (DN_INPROGRESS == (status = dn_flush(perf->peer))) {
    }
    perf_must(perf, status, "dn_flush");
}

static void serve_or_tell(perf_t *perf)
{
    perf->steps++;
    if (0 == perf->index) {
        atomic_store_explicit(&perf->shared->done, perf->steps, memory_order_release);
        return;
    }
    /* process 0 may be steps ahead */
    while ((int) (atomic_load_explicit(&perf->shared->done, memory_order_acquire) - perf->steps) < 0) {
        dn_progress(perf->port);
    }
}

static void transfer(perf_t *perf, int slot, unsigned flags)
{
    size_t off = (size_t) slot * perf->stride;
    dn_xfer_t xfer = {
        .local = perf->local + off,
        .key = &perf->shared->key[1 - perf->index],
        .roff = off,
        .len = perf->size,
        .flags = flags,
        .remote_status = perf->shared->llcm_off[1 - perf->index] + 8 * WORD_STATUS,
        .remote_value = perf->sent,
    };
    dn_status_t status;
    do {
        status = perf->test->pulls ? dn_pull(perf->peer, &xfer) : dn_push(perf->peer, &xfer);
    } while (DN_ERR_AGAIN == status && 0 <= dn_progress(perf->port));
    perf_must(perf, DN_INPROGRESS == status ? DN_OK : status, perf->test->name);
}

/* To and fro: each side's word in LLCM says that the other's data is there. */
static void push_send(perf_t *perf)
{
    perf->sent++;
    transfer(perf, 0, DN_XFER_STATUS_REMOTE);
}

static void push_wait(perf_t *perf)
{
    perf->received++;
    while (perf->received != atomic_load_explicit(&perf->llcm[WORD_STATUS], memory_order_acquire)) {
        dn_progress(perf->port);
    }
}

static void step_push_latency(perf_t *perf)
{
    if (0 == perf->index) {
        push_send(perf);
        push_wait(perf);
    } else {
        push_wait(perf);
        push_send(perf);
    }
    finish(perf);
}

static void step_transfer_window(perf_t *perf)
{
    if (0 == perf->index) {
        for (int i = 0; i < perf->window; i++) {
            transfer(perf, i, 0);
        }
        finish(perf);
    }
    serve_or_tell(perf);
}

/* The sum that is added makes every old value known: it is the number of the step. */
static void step_fetch_add(perf_t *perf)
{
    if (0 == perf->index) {
        uint64_t old = 0;
        dn_status_t status;
        do {
            status = dn_fetch_add(perf->peer, &perf->shared->key[1], 0, (unsigned) perf->size, 1, &old, NULL);
        } while (DN_ERR_AGAIN == status && 0 <= dn_progress(perf->port));
        if (DN_INPROGRESS == status) {
            finish(perf);
            status = DN_OK;
        }
        perf_must(perf, status, "dn_fetch_add");
        perf->errors += old != perf->sent++;
    }
    serve_or_tell(perf);
}

/* Times of a step into columns. */

static int one_way_us(const perf_t *perf, double seconds, double *values)
{
    (void) perf;
    values[0] = seconds * 1e6 / 2;
    return 1;
}

static int whole_us(const perf_t *perf, double seconds, double *values)
{
    (void) perf;
    values[0] = seconds * 1e6;
    return 1;
}

static int megabytes(const perf_t *perf, double seconds, double *values)
{
    values[0] = (double) perf->size * perf->window / seconds / 1e6;
    values[1] = perf->window / seconds;
    return perf->test->transfers ? 1 : 2;
}

static void run_poll_connected(perf_t *perf)
{
    perf_poll_run(perf, false);
}

static void run_poll_active(perf_t *perf)
{
    perf_poll_run(perf, true);
}

#define MAPPED_US                              \
    {                                          \
        "Mapped (us)", "Registered (us)", NULL \
    }
#define MAPPED_MB                                  \
    {                                              \
        "Mapped (MB/s)", "Registered (MB/s)", NULL \
    }

static const perf_test_t tests[] = {
    {.name = "aotf",
     .title = "AOTF Latency Test",
     .columns = {"Latency (us)", NULL},
     .min_size = 1,
     .max_size = 8,
     .window = 1,
     .both_ways = true,
     .step = step_aotf,
     .values = one_way_us},
    {.name = "botf_lat",
     .title = "BOTF Latency Test",
     .columns = {"Latency (us)", NULL},
     .max_size = 4096,
     .window = 1,
     .both_ways = true,
     .step = step_botf_latency,
     .values = one_way_us},
    {.name = "botf_bw",
     .title = "BOTF Bandwidth / Message Rate Test",
     .columns = {"MB/s", "Messages/s", NULL},
     .min_size = 1,
     .max_size = 4096,
     .window = 64,
     .step = step_botf_window,
     .values = megabytes},
    {.name = "push_lat",
     .title = "PUSH Latency Test (with target status)",
     .columns = MAPPED_US,
     .min_size = 1,
     .max_size = 4194304,
     .window = 1,
     .both_ways = true,
     .transfers = true,
     .step = step_push_latency,
     .values = one_way_us},
    {.name = "push_bw",
     .title = "PUSH Bandwidth Test",
     .columns = MAPPED_MB,
     .min_size = 1,
     .max_size = 4194304,
     .window = 16,
     .transfers = true,
     .step = step_transfer_window,
     .values = megabytes},
    {.name = "pull_lat",
     .title = "PULL Latency Test",
     .columns = MAPPED_US,
     .min_size = 1,
     .max_size = 4194304,
     .window = 1,
     .pulls = true,
     .transfers = true,
     .step = step_transfer_window,
     .values = whole_us},
    {.name = "pull_bw",
     .title = "PULL Bandwidth Test",
     .columns = MAPPED_MB,
     .min_size = 1,
     .max_size = 4194304,
     .window = 16,
     .pulls = true,
     .transfers = true,
     .step = step_transfer_window,
     .values = megabytes},
    {.name = "fetch_add",
     .title = "Fetch-and-add Latency Test",
     .columns = MAPPED_US,
     .min_size = 4,
     .max_size = 8,
     .window = 1,
     .transfers = true,
     .step = step_fetch_add,
     .values = whole_us},
    {.name = "poll", .title = "Idle Poll Test: connected peers that never sent", .run = run_poll_connected},
    {.name = "poll_active", .title = "Idle Poll Test: peers that sent before", .run = run_poll_active},
    {.name = "memory", .title = "Memory Test", .run = perf_memory_run},
};

#define NUM_TESTS ((int) (sizeof(tests) / sizeof(tests[0])))

/* One size */

static bool moves_pattern(const perf_t *perf)
{
    return step_aotf != perf->test->step && step_fetch_add != perf->test->step;
}

static bool is_source(const perf_t *perf)
{
    bool starts = perf->test->both_ways || 0 == perf->index;
    return perf->test->pulls ? 1 == perf->index : starts;
}

static char *memory_of(const perf_t *perf, bool segment)
{
    return segment ? dn_segment_base(perf->segment) : perf->local;
}

static void fill(perf_t *perf)
{
    for (int i = 0; moves_pattern(perf) && is_source(perf) && i < perf->window; i++) {
        dn_bench_fill(memory_of(perf, perf->test->pulls) + (size_t) i * perf->stride, perf->size,
                      dn_bench_seed(perf->size, perf->iteration, perf->index, i));
    }
    perf->slot = 0;
}

/* Messages are verified as they come. */
static void verify(perf_t *perf)
{
    bool is_target = perf->test->both_ways || !is_source(perf);
    if (!perf->test->transfers || !moves_pattern(perf) || !is_target) {
        return;
    }
    for (int i = 0; i < perf->window; i++) {
        const char *slot = memory_of(perf, !perf->test->pulls) + (size_t) i * perf->stride;
        uint64_t seed = dn_bench_seed(perf->size, perf->iteration, 1 - perf->index, i);
        perf->errors += perf->size != dn_bench_check(slot, perf->size, seed);
    }
}

static double run_steps(perf_t *perf, int n, bool check)
{
    uint64_t ns = 0;
    if (!check) {
        uint64_t start = dn_bench_now_ns();
        for (int i = 0; i < n; i++) {
            perf->test->step(perf);
        }
        return (double) (dn_bench_now_ns() - start) / 1e9 / n;
    }
    for (int i = 0; i < n; i++) {
        perf->iteration++;
        fill(perf);
        barrier(perf);
        uint64_t start = dn_bench_now_ns();
        perf->test->step(perf);
        ns += dn_bench_now_ns() - start;
        barrier(perf); /* all data has arrived */
        verify(perf);
        barrier(perf); /* and may be overwritten */
    }
    return (double) ns / 1e9 / n;
}

/* Seconds a step takes. */
static double time_steps(perf_t *perf)
{
    const dn_bench_options_t *o = &perf->options;
    double seconds[1000];
    int total = dn_bench_iterations(o, perf->size);
    int batches = o->batches < total ? o->batches : total;
    int warmup = dn_bench_warmup(o, perf->size);
    barrier(perf);
    if (0 < warmup) {
        run_steps(perf, warmup, o->check);
    }
    barrier(perf);
    for (int b = 0; b < batches; b++) {
        seconds[b] = run_steps(perf, total / batches, o->check);
    }
    return dn_bench_median(seconds, batches);
}

static size_t slots_len(const perf_t *perf, size_t size)
{
    int window = dn_bench_window(&perf->options, size);
    size_t slot = (size + DN_BENCH_LINE - 1) / DN_BENCH_LINE * DN_BENCH_LINE;
    return perf->options.check ? slot * (size_t) window : slot;
}

/* Memory for the largest size. AOTF's and fetch-add's words begin at zero. */
static void make_memory(perf_t *perf, bool mapped)
{
    size_t len = 64;
    for (size_t size = perf->options.min_size; size <= perf->options.max_size;
         size = dn_bench_next_size(size)) {
        len = slots_len(perf, size) > len ? slots_len(perf, size) : len;
    }
    perf->local = dn_bench_alloc(len);
    perf->segment = NULL;
    if (perf->test->transfers && mapped) {
        perf_must(perf, dn_segment_alloc(perf->port, len, &perf->segment), "dn_segment_alloc");
    } else if (perf->test->transfers) {
        perf_must(perf, dn_segment_register(perf->port, dn_bench_alloc(len), len, &perf->segment),
                  "dn_segment_register");
    }
    if (NULL != perf->segment) {
        memset(dn_segment_base(perf->segment), 0, len);
        dn_segment_key(perf->segment, &perf->shared->key[perf->index]);
    }
    barrier(perf);
}

static void free_memory(perf_t *perf, bool mapped)
{
    barrier(perf);
    free(perf->local);
    if (NULL != perf->segment) {
        void *base = dn_segment_base(perf->segment);
        dn_segment_free(perf->segment);
        if (!mapped) {
            free(base);
        }
    }
}

/* Nothing is in flight here: every count and every word that is counted up begins at 0 again. */
static void reset_counts(perf_t *perf)
{
    perf->errors = 0;
    perf->sent = 0;
    perf->received = 0;
    atomic_store(&perf->llcm[WORD_AOTF], 0);
    atomic_store(&perf->llcm[WORD_STATUS], 0);
    if (step_fetch_add == perf->test->step) {
        memset(dn_segment_base(perf->segment), 0, 8);
    }
}

/* Sizes of one kind of memory; times[] gets the seconds of each. */
static void run_kind(perf_t *perf, bool mapped, double *times, long *errors)
{
    make_memory(perf, mapped);
    for (size_t size = perf->options.min_size; size <= perf->options.max_size;
         size = dn_bench_next_size(size), times++, errors++) {
        size_t slot = (size + DN_BENCH_LINE - 1) / DN_BENCH_LINE * DN_BENCH_LINE;
        perf->size = size;
        perf->window = dn_bench_window(&perf->options, size);
        perf->stride = perf->options.check ? slot : 0;
        reset_counts(perf);
        *times = time_steps(perf);
        perf->shared->value[perf->index] = (double) perf->errors;
        barrier(perf);
        *errors += (long) (perf->shared->value[0] + perf->shared->value[1]);
        barrier(perf);
    }
    free_memory(perf, mapped);
}

#define MAX_SIZES 48

static int print_sizes(perf_t *perf, double times[][MAX_SIZES], const long *errors)
{
    int failed = 0;
    dn_bench_print_header(&perf->options, perf->test->columns);
    size_t size = perf->options.min_size;
    for (int i = 0; size <= perf->options.max_size; i++, size = dn_bench_next_size(size)) {
        double values[2];
        perf->size = size;
        perf->window = dn_bench_window(&perf->options, size);
        int n = perf->test->values(perf, times[0][i], values);
        if (perf->test->transfers) {
            n += perf->test->values(perf, times[1][i], values + 1);
        }
        dn_bench_print_row(&perf->options, size, values, n, 0 != errors[i]);
        failed |= 0 != errors[i];
    }
    return failed;
}

/* A test of sizes, from open port to close. */
static int run_test(perf_t *perf)
{
    static double times[2][MAX_SIZES];
    static long errors[MAX_SIZES];
    void *llcm;
    dn_peer_attr_t attr;
    perf->port = perf_open(perf, (uint32_t) perf->index, &perf->shared->address[perf->index][0]);
    perf_must(perf, dn_handler_set(perf->port, DN_CHAN_USER, on_message, perf), "dn_handler_set");
    perf_must(perf, dn_llcm_alloc(perf->port, LLCM_BYTES, &perf->shared->llcm_off[perf->index], &llcm),
              "dn_llcm_alloc");
    perf->llcm = llcm;
    barrier(perf);
    perf->peer = perf_connect(perf, perf->port, &perf->shared->address[1 - perf->index][0]);
    dn_peer_attr(perf->peer, &attr);
    if (!perf->test->transfers && attr.botf_max < perf->options.max_size) {
        perf->options.max_size = attr.botf_max;
    }
    barrier(perf);
    if (0 == perf->index) {
        printf("# dimmnet %s\n# [ device: %s ] [ window: %d ] [ longest message: %zu, in one "
               "line: %zu ]\n",
               perf->test->title, attr.device, perf->options.window, attr.botf_max, attr.botf_inline);
    }
    run_kind(perf, true, times[0], errors);
    if (perf->test->transfers) {
        run_kind(perf, false, times[1], errors);
    }
    int failed = 0 == perf->index ? print_sizes(perf, times, errors) : 0;
    barrier(perf);
    dn_disconnect(perf->peer);
    dn_close(perf->port);
    return failed;
}

static int child(int index, void *arg)
{
    perf_t perf = *(const perf_t *) arg;
    perf.index = index;
    if (NULL == perf.test->run) {
        return run_test(&perf);
    }
    if (0 == index) {
        printf("# dimmnet %s\n", perf.test->title);
    }
    perf.test->run(&perf);
    return 0;
}

static void random_key(dn_pgid_t *pgid)
{
    if (0 != getentropy(pgid->byte, sizeof(pgid->byte))) {
        perror("dn_perf: the kernel gives no random numbers");
        exit(1);
    }
}

/* Options that the user gave, else the test's own. */
static int start_test(const perf_test_t *test, const dn_bench_options_t *given, const int *cpus)
{
    perf_t perf = {.test = test, .options = *given};
    dn_bench_options_t *o = &perf.options;
    o->window = 0 == o->window ? test->window : o->window;
    o->min_size = SIZE_MAX == o->min_size ? test->min_size : o->min_size;
    o->max_size = SIZE_MAX == o->max_size ? test->max_size : o->max_size;
    if (step_aotf == test->step || step_fetch_add == test->step) {
        /* words: other sizes do not exist */
        o->min_size = o->min_size < test->min_size ? test->min_size : o->min_size;
        o->max_size = o->max_size > test->max_size ? test->max_size : o->max_size;
    }
    o->tiers = 1 < test->window ? window_tiers : tiers;
    o->num_tiers = 4;
    perf.shared = dn_bench_shared(sizeof(*perf.shared));
    random_key(&perf.shared->pgid);
    return dn_bench_fork(2, cpus, 2, child, &perf);
}

static void list_tests(FILE *out)
{
    for (int i = 0; i < NUM_TESTS; i++) {
        fprintf(out, "%s%s", tests[i].name, i + 1 < NUM_TESTS ? ", " : "\n");
    }
}

int main(int argc, char **argv)
{
    static const dn_bench_usage_t usage = {
        .name = "dn_perf",
        .purpose = "Each primitive of libdimmnet between two processes. Tests (-t, default all in "
                   "turn): aotf,\nbotf_lat, botf_bw, push_lat, push_bw, pull_lat, pull_bw, "
                   "fetch_add, poll, poll_active, memory.",
        .accepts = "dtmixcWMBCP",
    };
    dn_bench_options_t options = {.min_size = SIZE_MAX,
                                  .max_size = SIZE_MAX,
                                  .warmup = -1,
                                  .batches = 5,
                                  .precision = 3,
                                  .mem_limit = 256u << 20,
                                  .device = "shm",
                                  .tiers = tiers,
                                  .num_tiers = 4};
    int cpus[2];
    int ran = 0;
    int status = 0;
    switch (dn_bench_parse(argc, argv, &usage, &options)) {
    case DN_BENCH_HELP:
        return 0;
    case DN_BENCH_USAGE_ERROR:
        return 1;
    default:
        break;
    }
    if (0 != dn_bench_cpus(usage.name, options.cores, cpus, 2)) {
        return 1;
    }
    for (int i = 0; i < NUM_TESTS && 0 == status; i++) {
        if (NULL == options.test || 0 == strcmp(options.test, tests[i].name)) {
            status = start_test(&tests[i], &options, cpus);
            ran++;
        }
    }
    if (0 == ran) {
        fprintf(stderr, "dn_perf: there is no test %s; give one of ", options.test);
        list_tests(stderr);
        return 1;
    }
    return status;
}
