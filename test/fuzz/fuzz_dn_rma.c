/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any messages to a process of two windows, one with memory of its own, one dynamic, from another process of these. No byte
 * beside the windows changes, and nothing that is asked is left over. How the one-sided component of Open MPI reads the numbers of
 * elements and operations that a peer sends is held by osc_hostile in test/mpi.
 */
#include "dn_config.h"

#include "dn_fuzz_port.h"

#include <string.h>

#include "../dn_test.h"
#include "dn_rma_int.h"

enum { WINDOW = 1024, GUARD = 512, BLANK = 0x5a, WINDOWS = 2, HEAD = 4, TURNS = 100, PAIR = 5, TYPES };

static dn_port_t *port;
static dn_peer_t *self;
static dn_rma_t rma;
static dn_rma_win_t win[WINDOWS];
static dn_prog_t *pair; /**< a number of 8 bytes, and one of 4 behind it */
static uint8_t memory[WINDOWS][GUARD + WINDOW + GUARD];

/** @name dn_rma_config_t */
/** @{ */
static void wait_more(uint64_t *state)
{
    (void) state;
    (void) dn_progress(port);
}

/** dn_element_reduce_fn_t. */
static void reduce(const void *arg, dn_acc_op_t op, void *at, const void *operand, uint64_t n)
{
    (void) arg;
    (void) op;
    memcpy(at, operand, 16 * (size_t) n);
}

static int find_element(int32_t type, uint32_t op, dn_element_t *element)
{
    static const dn_element_t all[TYPES] = {
        {.size = 1, .extent = 1, .align = 1, .kind = DN_ELEMENT_UNSIGNED},
        {.size = 4, .extent = 4, .align = 4, .kind = DN_ELEMENT_UNSIGNED},
        {.size = 8, .extent = 8, .align = 8, .kind = DN_ELEMENT_SIGNED},
        {.size = 8, .extent = 8, .align = 8, .kind = DN_ELEMENT_FLOAT},
        {.size = 2, .extent = 2, .align = 2, .kind = DN_ELEMENT_SIGNED},
        [PAIR] = {.size = 12, .extent = 16, .align = 8, .kind = DN_ELEMENT_FOREIGN, .reduce = reduce},
    };

    if (0 > type || TYPES <= type || DN_ACC_OPS <= op) {
        return 0;
    }
    *element = all[type];
    element->layout = PAIR == type ? pair : NULL;
    if (DN_ACC_REPLACE == op || DN_ACC_NO_OP == op) {
        return 1;
    }
    if (DN_ELEMENT_FLOAT == element->kind) {
        return DN_ACC_SUM == op || DN_ACC_MAX == op || DN_ACC_MIN == op || DN_ACC_PROD == op;
    }
    return (PAIR == type) == (DN_ACC_MAXLOC == op || DN_ACC_MINLOC == op);
}

/** Two regions, side by side. */
static int find_region(const dn_rma_win_t *of, uint64_t at, uint64_t len, dn_rma_region_t *region)
{
    for (uint64_t i = 0; i < 2; i++) {
        *region =
            (dn_rma_region_t){.base = (uintptr_t) memory[1] + GUARD + i * WINDOW / 2, .len = WINDOW / 2};
        if (at - region->base <= region->len && len <= region->len - (at - region->base)) {
            return of == &win[1];
        }
    }
    return 0;
}

static void refused(const char *why)
{
    (void) why;
}

static void __attribute__((noreturn)) no_memory(void)
{
    abort();
}
/** @} */

static void open_port(void)
{
    const dn_rma_config_t calls = {.wait = wait_more,
                                   .element = find_element,
                                   .find = find_region,
                                   .refused = refused,
                                   .no_memory = no_memory};
    const dn_prog_op_t op[] = {{.kind = DN_PROG_RUN, .len = 8, .count = 1},
                               {.kind = DN_PROG_RUN, .at = 8, .len = 4, .count = 1}};
    const dn_job_t job = {.nlocal = 1};
    dn_config_t config;

    dn_fuzz_config(&config);
    DN_FUZZ_CHECK(DN_OK == dn_open("shm", &job, &config, &port));
    self = dn_fuzz_connect_self(port);
    dn_log_set(dn_fuzz_say_nothing, NULL);
    DN_FUZZ_CHECK(DN_OK == dn_prog_create(op, 2, &pair));
    DN_FUZZ_CHECK(DN_OK == dn_rma_open(&rma, port, DN_CHAN_OSC, &calls));
}

/** A window of two processes, of which this one is the first and the sender of all messages the second. */
static void open_window(int i)
{
    dn_rma_win_t *w = &win[i];

    *w = (dn_rma_win_t){.rma = &rma, .size = 2, .dynamic = 0 != i};
    DN_FUZZ_CHECK(DN_OK == dn_rma_win_open(w) && DN_OK == dn_rma_win_join(w));
    w->base = 0 == i ? memory[0] + GUARD : NULL;
    w->len = 0 == i ? WINDOW : 0;
    w->control = calloc(1, dn_rma_control_bytes(2));
    DN_FUZZ_CHECK(NULL != w->control);
    w->target[0].control = w->control;
    w->target[0].peer = w->target[1].peer = w->far[1].peer = self;
}

static void open_all(void)
{
    open_port();
    memset(memory, BLANK, sizeof(memory));
    open_window(0);
    open_window(1);
}

/** What one input has left behind is not there for the next. */
static void settle(void)
{
    for (unsigned turn = 0; turn < TURNS && 0 != dn_progress(port) + dn_rma_advance(&rma); turn++) {
    }
    for (int i = 0; i < WINDOWS; i++) {
        dn_rma_control_t *control = win[i].control;

        dn_rma_win_close(&win[i]);
        free(control);
        open_window(i);
        for (size_t k = 0; k < GUARD; k++) {
            DN_FUZZ_CHECK(BLANK == memory[i][k] && BLANK == memory[i][GUARD + WINDOW + k]);
        }
    }
}

/** Numbers that change from run to run are zeros in an input, and so are addresses in the dynamic window. */
static void make_right(uint8_t *bytes, size_t len, int i)
{
    dn_rma_head_t head;

    if (sizeof(head) > len) {
        return;
    }
    memcpy(&head, bytes, sizeof(head));
    head.window ^= win[i].handle;
    head.rank ^= 1;
    head.at += 0 == i ? 0 : (uintptr_t) memory[i] + GUARD;
    memcpy(bytes, &head, sizeof(head));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (NULL == port) {
        open_all();
    }
    while (HEAD <= len) {
        const size_t wanted = data[2] | (size_t) data[3] << 8;
        const size_t n = wanted < len - HEAD ? wanted : len - HEAD;
        uint8_t *exact = malloc(n + (0 == n));
        DN_FUZZ_CHECK(NULL != exact);
        memcpy(exact, data + HEAD, n);
        make_right(exact, n, data[1] % WINDOWS);
        dn_rma_receive(self, data[0], exact, n, &rma);
        free(exact);
        data += HEAD + n;
        len -= HEAD + n;
    }
    settle();
    return 0;
}

/* ---- seeds ---- */

/** A number that fits, or one at an edge. */
static uint64_t perhaps(uint64_t *random, uint64_t fits)
{
    static const uint64_t edge[] = {0,          1,          WINDOW - 1, WINDOW,
                                    WINDOW + 1, UINT32_MAX, UINT64_MAX, (uint64_t) 1 << 63};

    return 0 != dn_test_below(random, 12) ? fits
                                          : edge[dn_test_below(random, sizeof(edge) / sizeof(edge[0]))];
}

static size_t write_message(uint8_t *to, size_t room, unsigned tag, unsigned which, const dn_rma_head_t *head,
                            const uint8_t *body, size_t n)
{
    if (HEAD + sizeof(*head) + n > room) {
        return 0;
    }
    to[0] = (uint8_t) tag;
    to[1] = (uint8_t) which;
    to[2] = (uint8_t) (sizeof(*head) + n);
    to[3] = (uint8_t) ((sizeof(*head) + n) >> 8);
    memcpy(to + HEAD, head, sizeof(*head));
    if (0 != n) {
        memcpy(to + HEAD + sizeof(*head), body, n);
    }
    return HEAD + sizeof(*head) + n;
}

static size_t write_accumulate(uint64_t *random, uint8_t *to, size_t room, unsigned which)
{
    static const uint8_t body[256];
    const int32_t type = (int32_t) dn_test_below(random, TYPES);
    const uint64_t elements = 1 + dn_test_below(random, 8);
    const unsigned compares = 0 == dn_test_below(random, 4) ? DN_RMA_COMPARES | DN_RMA_FETCHES : 0;
    const dn_block_t block = {perhaps(random, 64), perhaps(random, 16)};
    dn_rma_head_t head = {.at = perhaps(random, 8 * dn_test_below(random, 100)),
                          .flags = compares | (uint32_t) dn_test_below(random, 4),
                          .extent = (int64_t) perhaps(random, dn_test_below(random, 64)),
                          .layout = 1,
                          .slot = (uint32_t) dn_test_below(random, 2),
                          .type = type,
                          .op = (uint32_t) dn_test_below(random, DN_ACC_OPS + 1)};
    uint8_t bytes[sizeof(body)];
    dn_element_t element;

    (void) find_element(type, DN_ACC_NO_OP, &element);
    memcpy(bytes, body, sizeof(body));
    head.len = perhaps(random, 0 != compares ? element.size : elements * element.size);
    head.count = perhaps(random, head.len);
    head.skip = perhaps(random, 0);
    uint64_t n = 0 != compares ? 2 * (uint64_t) element.size : DN_ACC_NO_OP == head.op ? 0 : head.len;
    if (0 == dn_test_below(random, 4)) {
        head.flags |= DN_RMA_BY_BLOCKS;
        head.count = perhaps(random, 1);
        memcpy(bytes, &block, sizeof(block));
        n += sizeof(block);
    }
    return write_message(to, room, DN_RMA_ACCUMULATE, which, &head, bytes,
                         n < sizeof(bytes) ? (size_t) n : sizeof(bytes));
}

static size_t write_layout(uint64_t *random, uint8_t *to, size_t room, unsigned which)
{
    uint8_t body[512];
    dn_prog_t *prog = NULL;
    dn_ship_piece_t piece = {.id = 1, .slot = (uint32_t) dn_test_below(random, 2)};
    size_t n = sizeof(body) - sizeof(piece);
    dn_prog_op_t op[4];
    const size_t ops = 1 + dn_test_below(random, 4);

    for (size_t i = 0; i < ops; i++) {
        op[i] = (dn_prog_op_t){DN_PROG_RUN, 0, (int64_t) (i * 32), 1 + dn_test_below(random, 16), 1, 0};
    }
    if (DN_OK != dn_prog_create(op, ops, &prog) || DN_OK != dn_prog_encode(prog, body + sizeof(piece), &n)) {
        n = 0;
    }
    dn_prog_free(prog);
    piece.len = (uint32_t) perhaps(random, n);
    piece.at = (uint32_t) perhaps(random, 0);
    memcpy(body, &piece, sizeof(piece));
    const dn_rma_head_t head = {.count = 0};
    return write_message(to, room, DN_RMA_LAYOUT, which, &head, body, sizeof(piece) + n);
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    size_t used = 0;

    if (NULL == port) {
        open_all();
    }
    for (uint64_t n = 1 + dn_test_below(random, 8); 0 != n; n--) {
        const unsigned which = (unsigned) dn_test_below(random, WINDOWS);
        const uint64_t kind = dn_test_below(random, 6);
        uint8_t *to = data + used;
        if (3 > kind) {
            used += write_accumulate(random, to, DN_FUZZ_MAX - used, which);
        } else if (3 == kind) {
            used += write_layout(random, to, DN_FUZZ_MAX - used, which);
        } else {
            const dn_rma_head_t head = {.flags = (uint32_t) dn_test_below(random, 16),
                                        .at = perhaps(random, dn_test_below(random, WINDOW)),
                                        .len = perhaps(random, 8)};
            used +=
                write_message(to, DN_FUZZ_MAX - used, 1 + (unsigned) dn_test_below(random, DN_RMA_FIND + 1),
                              which, &head, NULL, 0);
        }
    }
    return used;
}
