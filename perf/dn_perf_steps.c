/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * One step of each test: what is repeated and timed.
 */
#include "dn_config.h"

#include <string.h>

#include "dn_perf.h"

#define TAG_DATA 0
#define TAG_ACK  1

/* All that was started is done at the peer. */
static void finish(perf_t *perf)
{
    dn_status_t status;
    while (DN_INPROGRESS == (status = dn_flush(perf->peer))) {
        perf_vain(perf);
    }
    perf_must(perf, status, "dn_flush");
}

/* AOTF */

static void aotf_send(perf_t *perf)
{
    uint64_t off = perf->peer_llcm + 8 * PERF_WORD_AOTF;
    dn_status_t status;
    perf->sent++;
    while (DN_ERR_AGAIN == (status = dn_aotf(perf->peer, off, perf->sent, perf->size))) {
        perf_progress(perf);
    }
    perf_must(perf, status, "dn_aotf");
}

/* The word counts: it must go from the last value to the next, in its low bytes. */
static void aotf_wait(perf_t *perf)
{
    uint64_t mask = 8 == perf->size ? UINT64_MAX : (1ull << (8 * perf->size)) - 1;
    uint64_t before = perf->received++ & mask;
    uint64_t now;
    while (before == (now = dn_load_acquire(&perf->llcm[PERF_WORD_AOTF]) & mask)) {
        if (perf->stores) {
            perf_vain(perf);
        } else {
            perf_progress(perf);
        }
    }
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

/* The word that AOTF i of many goes to: all of them in turn, the next one `apart` words on. */
static int many_word(const perf_t *perf, int i)
{
    int in_turn = PERF_WORDS_MANY / perf->test->apart;
    return PERF_WORD_MANY + i % in_turn * perf->test->apart + i / in_turn % perf->test->apart;
}

/* The value that AOTF i of many stores. It differs from turn to turn. The number of the turn is added since the words of a turn are a
 * multiple of the values of one byte. */
static uint64_t many_value(const perf_t *perf, int i)
{
    uint64_t mask = 8 == perf->size ? UINT64_MAX : (1ull << (8 * perf->size)) - 1;
    return (perf->iteration * 0x10001 + (uint64_t) (i + i / PERF_WORDS_MANY)) & mask;
}

static void step_aotf_many(perf_t *perf)
{
    for (int i = 0; i < perf->window; i++) {
        uint64_t off = perf->peer_llcm + 8 * (uint64_t) many_word(perf, i);
        dn_status_t status;
        while (DN_ERR_AGAIN == (status = dn_aotf(perf->peer, off, many_value(perf, i), perf->size))) {
            perf_progress(perf);
        }
        perf_must(perf, status, "dn_aotf");
    }
    finish(perf);
}

void perf_check_many(perf_t *perf)
{
    int first = perf->window < PERF_WORDS_MANY ? 0 : perf->window - PERF_WORDS_MANY;
    for (int i = first; i < perf->window; i++) {
        perf->errors += many_value(perf, i) != dn_load_acquire(&perf->llcm[many_word(perf, i)]);
    }
}

/* BOTF */

void perf_on_message(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
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

/* Some may have come already: whoever waits at a barrier makes progress, and the other may be past it. */
static void await_messages(perf_t *perf, int n)
{
    perf->expected += (uint64_t) n;
    while (perf->received < perf->expected) {
        perf_progress(perf);
    }
}

static void send_slot(perf_t *perf, int slot)
{
    perf_send(perf, perf->port, perf->peer, TAG_DATA, perf->local + (size_t) slot * perf->stride, perf->size);
}

static void step_botf_latency(perf_t *perf)
{
    if (0 == perf->index) {
        send_slot(perf, 0);
        await_messages(perf, 1);
    } else {
        await_messages(perf, 1);
        send_slot(perf, 0);
    }
}

static void step_botf_window(perf_t *perf)
{
    if (0 == perf->index) {
        for (int i = 0; i < perf->window; i++) {
            send_slot(perf, i);
        }
        await_messages(perf, 1);
    } else {
        await_messages(perf, perf->window);
        perf_send(perf, perf->port, perf->peer, TAG_ACK, NULL, 0);
    }
}

/* PUSH, PULL, atomics */

static void transfer(perf_t *perf, int slot, unsigned flags)
{
    size_t off = (size_t) slot * perf->stride;
    dn_xfer_t xfer = {
        .local = perf->local + off,
        .key = &perf->peer_key,
        .roff = off,
        .len = perf->size,
        .flags = flags,
        .remote_status = perf->peer_llcm + 8 * PERF_WORD_STATUS,
        .remote_value = perf->sent,
    };
    dn_status_t status;
    while (DN_ERR_AGAIN
           == (status = perf->test->pulls ? dn_pull(perf->peer, &xfer) : dn_push(perf->peer, &xfer))) {
        perf_progress(perf);
    }
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
    while (perf->received != dn_load_acquire(&perf->llcm[PERF_WORD_STATUS])) {
        perf_progress(perf);
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
    for (int i = 0; i < perf->window; i++) {
        transfer(perf, i, 0);
    }
    finish(perf);
}

/* Each takes the word from one number to the next, so that every old value is known. */
static void step_atomic(perf_t *perf)
{
    uint64_t old = 0;
    const dn_amo_t amo = {
        .op = perf->test->op,
        .width = (unsigned) perf->size,
        .operand = DN_AMO_ADD == perf->test->op ? 1 : perf->sent + 1,
        .compare = perf->sent,
        .result = &old,
        .key = &perf->peer_key,
    };
    dn_status_t status;
    while (DN_ERR_AGAIN == (status = dn_atomic(perf->peer, &amo))) {
        perf_progress(perf);
    }
    if (DN_INPROGRESS == status) {
        finish(perf);
        status = DN_OK;
    }
    perf_must(perf, status, perf->test->name);
    perf->errors += old != perf->sent++;
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
    if (perf->test->transfers) {
        return 1; /* the second column is of the other kind of memory */
    }
    values[1] = perf->window / seconds;
    return 2;
}

static int millions(const perf_t *perf, double seconds, double *values)
{
    values[0] = perf->window / seconds / 1e6;
    return 1;
}

#define KINDS_US                                  \
    {                                             \
        "Allocated (us)", "Registered (us)", NULL \
    }
#define KINDS_MB                                      \
    {                                                 \
        "Allocated (MB/s)", "Registered (MB/s)", NULL \
    }

const perf_test_t perf_tests[] = {
    {.name = "aotf",
     .title = "AOTF Latency Test",
     .columns = {"Latency (us)", NULL},
     .min_size = 1,
     .max_size = 8,
     .window = 1,
     .both_ways = true,
     .words = true,
     .step = step_aotf,
     .values = one_way_us},
    {.name = "aotf_rate",
     .title = "AOTF Rate Test, one word behind the other",
     .columns = {"Million/s", NULL},
     .min_size = 1,
     .max_size = 8,
     .window = 16384,
     .one_sided = true,
     .words = true,
     .apart = 1,
     .step = step_aotf_many,
     .values = millions},
    {.name = "aotf_rate_apart",
     .title = "AOTF Rate Test, each to a line of its own",
     .columns = {"Million/s", NULL},
     .min_size = 1,
     .max_size = 8,
     .window = 16384,
     .one_sided = true,
     .words = true,
     .apart = 8,
     .step = step_aotf_many,
     .values = millions},
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
     .columns = KINDS_US,
     .min_size = 1,
     .max_size = 4194304,
     .window = 1,
     .both_ways = true,
     .transfers = true,
     .step = step_push_latency,
     .values = one_way_us},
    {.name = "push_bw",
     .title = "PUSH Bandwidth Test",
     .columns = KINDS_MB,
     .min_size = 1,
     .max_size = 4194304,
     .window = 16,
     .one_sided = true,
     .transfers = true,
     .step = step_transfer_window,
     .values = megabytes},
    {.name = "pull_lat",
     .title = "PULL Latency Test",
     .columns = KINDS_US,
     .min_size = 1,
     .max_size = 4194304,
     .window = 1,
     .one_sided = true,
     .pulls = true,
     .transfers = true,
     .step = step_transfer_window,
     .values = whole_us},
    {.name = "pull_bw",
     .title = "PULL Bandwidth Test",
     .columns = KINDS_MB,
     .min_size = 1,
     .max_size = 4194304,
     .window = 16,
     .one_sided = true,
     .pulls = true,
     .transfers = true,
     .step = step_transfer_window,
     .values = megabytes},
    {.name = "fetch_add",
     .title = "Fetch-and-add Latency Test",
     .columns = KINDS_US,
     .min_size = 4,
     .max_size = 8,
     .window = 1,
     .op = DN_AMO_ADD,
     .one_sided = true,
     .words = true,
     .transfers = true,
     .step = step_atomic,
     .values = whole_us},
    {.name = "swap",
     .title = "Swap Latency Test",
     .columns = KINDS_US,
     .min_size = 4,
     .max_size = 8,
     .window = 1,
     .op = DN_AMO_SWAP,
     .one_sided = true,
     .words = true,
     .transfers = true,
     .step = step_atomic,
     .values = whole_us},
    {.name = "cas",
     .title = "Compare-and-swap Latency Test",
     .columns = KINDS_US,
     .min_size = 4,
     .max_size = 8,
     .window = 1,
     .op = DN_AMO_CAS,
     .one_sided = true,
     .words = true,
     .transfers = true,
     .step = step_atomic,
     .values = whole_us},
    {.name = NULL},
};

const perf_test_t *perf_find(const char *name)
{
    for (const perf_test_t *test = perf_tests; NULL != test->name; test++) {
        if (0 == strcmp(test->name, name)) {
            return test;
        }
    }
    return NULL;
}
