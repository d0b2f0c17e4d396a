/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * A test between two processes: ports, memory, sizes, batches, and what the two tell each other.
 */
#include "dn_config.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dn_perf.h"

/* A look at the socket is a system call, which takes as long as many polls. */
#define POLLS_PER_LOOK 256

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

/** What two processes must know of each other, or agree on, once they are connected. */
typedef struct {
    uint64_t llcm;
    uint64_t botf_max;
} greeting_t;

_Noreturn void perf_fail(const perf_t *perf, dn_status_t status, const char *what)
{
    fprintf(stderr, "%s %s: %s failed in process %d: %s\n", perf->program, perf->test->name, what,
            perf->index, dn_strerror(status));
    exit(1);
}

static _Noreturn void gone(const perf_t *perf)
{
    fprintf(stderr, "%s %s: the other process has ended, or the way to it is cut\n", perf->program,
            perf->test->name);
    exit(1);
}

void perf_idle(perf_t *perf)
{
    char byte;
    ssize_t got = recv(perf->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (0 == got || (0 > got && EAGAIN != errno && EINTR != errno)) {
        gone(perf);
    }
    if (perf->yields) {
        sched_yield();
    }
}

void perf_exchange(perf_t *perf, const void *mine, void *theirs, size_t len, dn_port_t **ports, int n)
{
    char *at = theirs;
    if ((ssize_t) len != send(perf->socket, mine, len, MSG_NOSIGNAL)) {
        gone(perf);
    }
    while (0 < len) {
        for (int i = 0; i < (0 < n ? POLLS_PER_LOOK : 0); i++) {
            for (int k = 0; k < n; k++) {
                dn_progress(ports[k]);
            }
        }
        ssize_t got = recv(perf->socket, at, len, 0 < n ? MSG_DONTWAIT : 0);
        if (0 < got) {
            at += got;
            len -= (size_t) got;
        } else if (0 == got || (EAGAIN != errno && EINTR != errno)) {
            gone(perf);
        } else if (perf->yields) {
            sched_yield();
        }
    }
}

void perf_barrier(perf_t *perf, dn_port_t **ports, int n)
{
    char byte = 0;
    perf_exchange(perf, &byte, &byte, 1, ports, n);
}

static void exchange(perf_t *perf, const void *mine, void *theirs, size_t len)
{
    perf_exchange(perf, mine, theirs, len, &perf->port, 1);
}

static void barrier(perf_t *perf)
{
    perf_barrier(perf, &perf->port, 1);
}

void perf_random_key(const char *program, dn_group_key_t *key)
{
    if (0 != getentropy(key->byte, sizeof(key->byte))) {
        fprintf(stderr, "%s: the kernel gives no random numbers; allow getrandom in the sandbox\n", program);
        exit(1);
    }
}

dn_port_t *perf_open(const perf_t *perf, uint32_t pid, perf_address_t *address)
{
    dn_job_t job = {.key = perf->key, .pid = pid, .nlocal = 2};
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
    /* the other process says how long it is */
    perf_must(perf, sizeof(address->bytes) < address->len ? DN_ERR_PROTO : DN_OK, "the address");
    const dn_status_t status = dn_connect(port, address->bytes, address->len, &peer);
    if (DN_OK != status && DN_ERR_UNREACH != status && DN_ERR_UNSUPPORTED != status) {
        exit(1); /* the library has said why */
    }
    perf_must(perf, status, "dn_connect");
    return peer;
}

void perf_defaults(dn_bench_options_t *options)
{
    *options = (dn_bench_options_t){
        .min_size = SIZE_MAX,
        .max_size = SIZE_MAX,
        .warmup = -1,
        .batches = 5,
        .precision = 3,
        .mem_limit = 256u << 20,
        .tiers = tiers,
        .num_tiers = 4,
    };
}

void perf_choose(perf_t *perf, const perf_test_t *test, const dn_bench_options_t *given)
{
    perf->test = test;
    perf->options = *given;
    dn_bench_options_t *o = &perf->options;
    /* a latency is that of one at a time */
    o->window = 0 == o->window || 1 == test->window ? test->window : o->window;
    o->min_size = SIZE_MAX == o->min_size ? test->min_size : o->min_size;
    o->max_size = SIZE_MAX == o->max_size ? test->max_size : o->max_size;
    if (test->words) {
        /* other sizes do not exist */
        o->min_size = o->min_size < test->min_size ? test->min_size : o->min_size;
        o->max_size = o->max_size > test->max_size ? test->max_size : o->max_size;
    }
    o->tiers = 1 < test->window ? window_tiers : tiers;
    o->num_tiers = 4;
}

/* One size */

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
    for (int i = 0; !perf->test->words && is_source(perf) && i < perf->window; i++) {
        dn_bench_fill(memory_of(perf, perf->test->pulls) + (size_t) i * perf->stride, perf->size,
                      dn_bench_seed(perf->size, perf->iteration, perf->index, i));
    }
    perf->slot = 0;
}

/* Messages are verified as they come. */
static void verify(perf_t *perf)
{
    bool is_target = perf->test->both_ways || !is_source(perf);
    if (0 != perf->test->apart && is_target) {
        perf_check_many(perf);
    }
    if (!perf->test->transfers || perf->test->words || !is_target) {
        return;
    }
    for (int i = 0; i < perf->window; i++) {
        const char *slot = memory_of(perf, !perf->test->pulls) + (size_t) i * perf->stride;
        uint64_t seed = dn_bench_seed(perf->size, perf->iteration, 1 - perf->index, i);
        perf->errors += perf->size != dn_bench_check(slot, perf->size, seed);
    }
}

/* Whoever has nothing to do in a step makes progress at the next barrier. */
static uint64_t timed_steps(perf_t *perf, int n)
{
    uint64_t start = dn_bench_now_ns();
    for (int i = 0; i < n && !(perf->test->one_sided && 1 == perf->index); i++) {
        perf->test->step(perf);
    }
    return dn_bench_now_ns() - start;
}

static double run_steps(perf_t *perf, int n, bool check)
{
    uint64_t ns = 0;
    if (!check) {
        ns = timed_steps(perf, n);
        if (perf->test->one_sided) {
            barrier(perf);
        }
        return (double) ns / 1e9 / n;
    }
    for (int i = 0; i < n; i++) {
        perf->iteration++;
        fill(perf);
        barrier(perf);
        ns += timed_steps(perf, 1);
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
    double seconds[PERF_MAX_BATCHES];
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

static size_t slot_len(size_t size)
{
    return (size + DN_BENCH_LINE - 1) / DN_BENCH_LINE * DN_BENCH_LINE;
}

static size_t slots_len(const perf_t *perf, size_t size)
{
    int window = dn_bench_window(&perf->options, size);
    return perf->options.check ? slot_len(size) * (size_t) window : slot_len(size);
}

/* Memory for the largest size. The words of AOTF and of atomics begin at zero. */
static void make_memory(perf_t *perf, bool allocated)
{
    dn_key_t key = {0};
    size_t len = 64;
    for (size_t size = perf->options.min_size; size <= perf->options.max_size;
         size = dn_bench_next_size(size)) {
        len = slots_len(perf, size) > len ? slots_len(perf, size) : len;
    }
    perf->local = dn_bench_alloc(len);
    perf->segment = NULL;
    if (perf->test->transfers && allocated) {
        perf_must(perf, dn_segment_alloc(perf->port, len, &perf->segment), "dn_segment_alloc");
    } else if (perf->test->transfers) {
        perf_must(perf, dn_segment_register(perf->port, dn_bench_alloc(len), len, &perf->segment),
                  "dn_segment_register");
    }
    if (NULL != perf->segment) {
        memset(dn_segment_base(perf->segment), 0, len);
        dn_segment_key(perf->segment, &key);
    }
    exchange(perf, &key, &perf->peer_key, sizeof(key));
}

static void free_memory(perf_t *perf, bool allocated)
{
    barrier(perf);
    free(perf->local);
    if (NULL != perf->segment) {
        void *base = dn_segment_base(perf->segment);
        dn_segment_free(perf->segment);
        if (!allocated) {
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
    perf->expected = 0;
    dn_store_seq_cst(&perf->llcm[PERF_WORD_AOTF], 0);
    dn_store_seq_cst(&perf->llcm[PERF_WORD_STATUS], 0);
    memset(&perf->llcm[PERF_WORD_MANY], 0, 8 * PERF_WORDS_MANY);
    if (perf->test->words && perf->test->transfers) {
        memset(dn_segment_base(perf->segment), 0, 8);
    }
}

static void set_size(perf_t *perf, size_t size)
{
    perf->size = size;
    perf->window = dn_bench_window(&perf->options, size);
    perf->stride = perf->options.check ? slot_len(size) : 0;
}

/* All sizes, on one kind of memory. */
static void run_kind(perf_t *perf, bool allocated, perf_result_t *result)
{
    int values = result->num_values;
    perf_row_t *row = result->row;
    make_memory(perf, allocated);
    for (size_t size = perf->options.min_size; size <= perf->options.max_size;
         size = dn_bench_next_size(size), row++) {
        long theirs;
        set_size(perf, size);
        reset_counts(perf);
        double seconds = time_steps(perf);
        exchange(perf, &perf->errors, &theirs, sizeof(theirs));
        row->size = size;
        row->errors += perf->errors + (0 <= theirs && PERF_MAX_ERRORS > theirs ? theirs : PERF_MAX_ERRORS);
        result->num_values = values + perf->test->values(perf, seconds, row->values + values);
    }
    result->num_rows = (int) (row - result->row);
    free_memory(perf, allocated);
}

static void open_pair(perf_t *perf)
{
    perf_address_t mine = {.len = 0};
    perf_address_t theirs;
    greeting_t here;
    greeting_t there;
    dn_peer_attr_t attr;
    void *llcm;
    perf->port = perf_open(perf, (uint32_t) perf->index, &mine);
    perf_must(perf, dn_handler_set(perf->port, DN_CHAN_USER, perf_on_message, perf), "dn_handler_set");
    perf_must(perf, dn_llcm_alloc(perf->port, PERF_LLCM_BYTES, &here.llcm, &llcm), "dn_llcm_alloc");
    perf->llcm = llcm;
    exchange(perf, &mine, &theirs, sizeof(mine));
    perf->peer = perf_connect(perf, perf->port, &theirs);
    dn_peer_attr(perf->peer, &attr);
    here.botf_max = attr.botf_max;
    exchange(perf, &here, &there, sizeof(here));
    perf->peer_llcm = there.llcm;
    perf->stores = 0 != (attr.caps & DN_CAP_MAP);
    perf->yields = dn_oversubscribed(perf->port);
    uint64_t botf_max = here.botf_max < there.botf_max ? here.botf_max : there.botf_max;
    if (!perf->test->transfers && botf_max < perf->options.max_size) {
        perf->options.max_size = botf_max;
    }
}

void perf_run(perf_t *perf, perf_result_t *result)
{
    *result = (perf_result_t){.num_values = 0};
    open_pair(perf);
    dn_peer_attr(perf->peer, &result->attr);
    run_kind(perf, true, result);
    if (perf->test->transfers) {
        run_kind(perf, false, result);
    }
    barrier(perf);
    dn_disconnect(perf->peer);
    dn_close(perf->port);
}

int perf_print(perf_t *perf, const perf_result_t *result)
{
    int failed = 0;
    printf("# dimmnet %s\n# [ device: %s ] [ window: %d ] [ longest message: %zu, in one line: %zu ]\n",
           perf->test->title, result->attr.device, perf->options.window, result->attr.botf_max,
           result->attr.botf_inline);
    if (0 == result->num_rows) {
        printf("# none of the sizes asked for exists in this test\n");
        return 0;
    }
    dn_bench_print_header(&perf->options, perf->test->columns);
    for (int i = 0; i < result->num_rows; i++) {
        const perf_row_t *row = &result->row[i];
        dn_bench_print_row(&perf->options, row->size, row->values, result->num_values, 0 != row->errors);
        failed |= 0 != row->errors;
    }
    return failed;
}
