/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Messages of anything to the core processor, from a peer that is this process itself: pieces of programs, PUSHes
 * and PULLs with blocks or uses of programs, atomic operations, lines, replies to nothing. Not a byte beside the
 * segment and the LLCM may change, and what is kept of programs stays within its bounds. Some messages are given to
 * dn_core_alone() first, as a device gives them, and to the handler if they are left to it.
 */
#include "dn_config.h"

#include "dn_fuzz_port.h"

#include <string.h>

#include "../unit/dn_prog_naive.h"
#include "dn_core_int.h"

enum { SEGMENT = 2048, GUARD = (1 << 16) + DN_FUZZ_MAX, SLOTS = 3, HEAD = 4, TURNS = 200, BLANK = 0x5a };

static dn_port_t *port;
static dn_peer_t *self;
static dn_key_t key;
static uint8_t memory[GUARD + SEGMENT + GUARD];

/** A port that is connected to itself, and a segment with a guard on either side. */
static void open_port(void)
{
    const dn_job_t job = {.nlocal = 1};
    dn_segment_t *segment = NULL;
    dn_config_t config;

    dn_fuzz_config(&config);
    DN_FUZZ_CHECK(DN_OK == dn_open(dn_device_name(0), &job, &config, &port));
    self = dn_fuzz_connect_self(port);
    DN_FUZZ_CHECK(DN_OK == dn_segment_register(port, memory + GUARD, SEGMENT, &segment));
    dn_segment_key(segment, &key);
    memset(memory, BLANK, sizeof(memory));
}

/** Serve what waits for it, some of which may never end; then forget all. */
static void settle(void)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) self;

    for (unsigned turn = 0; turn < TURNS && 0 != dn_progress(port); turn++) {
    }
    DN_FUZZ_CHECK(NULL == peer->core.its || 2u * DN_SHIP_BYTES >= peer->core.its->bytes);
    dn_core_lost(port, peer);
    dn_core_forget(peer);
    while (0 != dn_progress(port)) {
    }
}

/** Has a guard only bytes that nobody has stored? The guards are as long as a block in the short form reaches. */
static int is_blank(const uint8_t *guard)
{
    return BLANK == guard[0] && 0 == memcmp(guard, guard + 1, GUARD - 1);
}

/* As in a device. */

static int find(void *arg, uint32_t sid, uint32_t generation, uint8_t **base_p, uint64_t *len_p)
{
    (void) arg;
    *base_p = memory + GUARD;
    *len_p = SEGMENT;
    return sid == key.sid && generation == key.generation;
}

/** @param[out] arg  The answer. */
static void *room(void *arg, unsigned tag, size_t len)
{
    void **answer_p = arg;

    (void) tag;
    DN_FUZZ_CHECK(NULL == *answer_p && 0 != len);
    *answer_p = malloc(len);
    return *answer_p;
}

/** @return 0: the message is left to the handler. */
static int serve(unsigned tag, const void *message, size_t len)
{
    void *answer = NULL;
    const dn_core_alone_t alone = {.src = (dn_peer_base_t *) self,
                                   .find = find,
                                   .room = room,
                                   .arg = &answer,
                                   .llcm = port->llcm.base,
                                   .llcm_len = port->config.llcm_bytes};

    const dn_status_t status = dn_core_alone(&alone, tag, message, len, 0);
    DN_FUZZ_CHECK(DN_OK == status || NULL == answer);
    free(answer);
    return DN_OK == status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (NULL == port) {
        open_port();
    }
    while (HEAD <= len) {
        const unsigned tag = data[0];
        const size_t wanted = data[1] | (size_t) data[2] << 8;
        const size_t n = wanted < len - HEAD ? wanted : len - HEAD;
        uint8_t *exact = malloc(n + (0 == n));
        DN_FUZZ_CHECK(NULL != exact);
        memcpy(exact, data + HEAD, n);
        if (0 == data[3] % 2 || !serve(tag, exact, n)) {
            dn_core_handler(self, tag, exact, n, port);
        }
        free(exact);
        data += HEAD + n;
        len -= HEAD + n;
    }
    settle();
    DN_FUZZ_CHECK(is_blank(memory) && is_blank(memory + GUARD + SEGMENT));
    return 0;
}

/* ---- seeds ---- */

/** Any number, or one at an edge. */
static uint64_t edge(uint64_t *random)
{
    static const uint64_t edges[] = {0,           1,          8,         SEGMENT - 1,       SEGMENT,
                                     SEGMENT + 1, UINT32_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};

    return 0 == dn_test_below(random, 2) ? dn_test_random(random)
                                         : edges[dn_test_below(random, sizeof(edges) / sizeof(edges[0]))];
}

/** A number that fits, or at times another. */
static uint64_t perhaps(uint64_t *random, uint64_t fits)
{
    return 0 == dn_test_below(random, 16) ? edge(random) : fits;
}

/** Messages in the making. */
typedef struct letters {
    uint64_t *random;
    uint8_t *data;
    size_t len;
    dn_prog_info_t prog[SLOTS]; /**< what was sent into each slot */
} letters_t;

/** Add a message of a head and some bytes; NULL: of any. 0: it does not fit. */
static void write_down(letters_t *letters, unsigned tag, const void *head, size_t head_len,
                       const uint8_t *body, size_t body_len)
{
    uint8_t *at = letters->data + letters->len;
    const size_t n = head_len + body_len;

    if (DN_FUZZ_MAX < letters->len + HEAD + n) {
        return;
    }
    at[0] = (uint8_t) tag;
    at[1] = (uint8_t) n;
    at[2] = (uint8_t) (n >> 8);
    at[3] = (uint8_t) dn_test_below(letters->random, 2);
    memcpy(at + HEAD, head, head_len);
    for (size_t i = 0; i < body_len; i++) {
        at[HEAD + head_len + i] = NULL == body ? (uint8_t) i : body[i];
    }
    letters->len += HEAD + n;
}

/** A program into a slot, in one piece or two. */
static void write_program(letters_t *letters)
{
    static dn_prog_op_t ops[DN_NAIVE_OPS];
    uint8_t encoded[1500];
    uint64_t *random = letters->random;
    const uint32_t slot = (uint32_t) dn_test_below(random, SLOTS);
    dn_prog_t *prog = NULL;
    int64_t extent;
    size_t n = sizeof(encoded);

    const size_t count = dn_naive_random(random, ops, 300, &extent);
    DN_FUZZ_CHECK(DN_OK == dn_prog_create(ops, count, &prog));
    if (DN_OK == dn_prog_encode(prog, encoded, &n)) {
        const size_t cut = 0 == dn_test_below(random, 4) ? dn_test_below(random, n) : 0;
        dn_ship_piece_t piece = {.id = perhaps(random, 1 + slot),
                                 .slot = (uint32_t) perhaps(random, slot),
                                 .flags = (uint32_t) perhaps(random, 0),
                                 .len = (uint32_t) perhaps(random, n)};
        if (0 != cut) {
            write_down(letters, DN_CORE_PROG, &piece, sizeof(piece), encoded, cut);
        }
        piece.at = (uint32_t) perhaps(random, cut);
        write_down(letters, DN_CORE_PROG, &piece, sizeof(piece), encoded + cut, n - cut);
        letters->prog[slot] = *dn_prog_info(prog);
    }
    dn_prog_free(prog);
}

/** A PUSH or PULL that names a program which was sent before, and mostly fits into the segment. */
static void write_use(letters_t *letters)
{
    uint64_t *random = letters->random;
    const uint32_t slot = (uint32_t) dn_test_below(random, SLOTS);
    const dn_prog_info_t *prog = &letters->prog[slot];
    const unsigned push = 0 != dn_test_below(random, 3);
    const int endless = !push && 0 == dn_test_below(random, 8);
    const uint64_t count = endless ? 1 << 30 : 0 == dn_test_below(random, 2) ? 1 : dn_test_below(random, 5);
    struct {
        dn_core_request_t request;
        dn_core_use_t use;
    } head = {
        .request = {.sid = (uint32_t) perhaps(random, key.sid),
                    .sid_generation = key.generation,
                    .blocks = (uint32_t) perhaps(random, slot),
                    .flags = DN_CORE_USE | (uint32_t) dn_test_below(random, 4),
                    .off = perhaps(random, push ? 8 * dn_test_below(random, 600) : 0)},
        .use = {.id = perhaps(random, 1 + slot),
                .count = perhaps(random, count),
                .extent = (int64_t) perhaps(random, endless ? 0 : dn_test_below(random, 300)),
                .roff =
                    perhaps(random, (0 > prog->low ? (uint64_t) -prog->low : 0) + dn_test_below(random, 300)),
                .len = perhaps(random, count * prog->size)},
    };
    const uint64_t left = push ? head.use.len : 0;
    head.use.at = perhaps(random, 0 == left ? 0 : dn_test_below(random, left));
    const uint64_t n = left < head.use.at ? 0 : left - head.use.at;
    write_down(letters, push ? DN_CORE_PUSH : DN_CORE_PULL, &head, sizeof(head), NULL, n < 1000 ? n : 1000);
}

/** A PUSH or PULL with blocks. */
static void write_blocks(letters_t *letters)
{
    uint64_t *random = letters->random;
    const unsigned push = 0 != dn_test_below(random, 2);
    struct {
        dn_core_request_t request;
        dn_block_t block[4];
    } head = {.request = {.sid = key.sid,
                          .sid_generation = key.generation,
                          .flags = (uint32_t) dn_test_below(random, 4),
                          .off = perhaps(random, 8)}};
    const uint32_t blocks = (uint32_t) dn_test_below(random, 5);
    uint64_t total = 0;

    for (uint32_t i = 0; i < blocks; i++) {
        head.block[i] = (dn_block_t){perhaps(random, dn_test_below(random, SEGMENT - 200)),
                                     perhaps(random, dn_test_below(random, 200))};
        total += head.block[i].len;
    }
    head.request.blocks = (uint32_t) perhaps(random, blocks);
    write_down(letters, push ? DN_CORE_PUSH : DN_CORE_PULL, &head,
               sizeof(head.request) + blocks * sizeof(dn_block_t), NULL, push && 1000 > total ? total : 0);
}

/** As write_blocks(), in the short form; at times one field is wrong. */
static void write_near(letters_t *letters)
{
    enum { MOST = DN_CORE_NEAR_BLOCKS, MORE = 2 };
    static const uint32_t counts[] = {0, 1, 2, DN_CORE_BLOCKS + 1, MOST - 1, MOST, MOST + 1, MOST + MORE};
    uint64_t *random = letters->random;
    const unsigned push = 0 != dn_test_below(random, 2);
    struct {
        dn_core_request_t request;
        uint64_t base;
        dn_core_near_t near[MOST + MORE];
    } head = {.request = {.sid = key.sid,
                          .sid_generation = key.generation,
                          .flags = DN_CORE_NEAR | (uint32_t) dn_test_below(random, 4),
                          .off = 8},
              .base = dn_test_below(random, SEGMENT / 2)};
    const uint32_t blocks =
        (uint32_t) (0 == dn_test_below(random, 2)
                        ? counts[dn_test_below(random, sizeof(counts) / sizeof(counts[0]))]
                        : dn_test_below(random, 5));
    dn_core_near_t *odd = &head.near[dn_test_below(random, 0 == blocks ? 1 : blocks)];
    uint64_t total = 0;

    head.request.blocks = blocks;
    for (uint32_t i = 0; i < blocks; i++) {
        head.near[i] = (dn_core_near_t){.at = (uint16_t) dn_test_below(random, SEGMENT / 2 - 8),
                                        .len = (uint16_t) dn_test_below(random, 9)};
    }
    switch (dn_test_below(random, 16)) {
    case 0:
        head.base = edge(random);
        break;
    case 1:
        head.base = UINT64_MAX - dn_test_below(random, 2 * UINT16_MAX);
        break;
    case 2:
        odd->at = (uint16_t) edge(random);
        break;
    case 3:
        /* Across the end of the segment. */
        *odd = (dn_core_near_t){.at = (uint16_t) (SEGMENT - head.base - dn_test_below(random, 4)), .len = 8};
        break;
    case 4:
        odd->len = (uint16_t) edge(random);
        break;
    case 5:
        head.request.blocks = (uint32_t) edge(random);
        break;
    case 6:
        head.request.flags |= DN_CORE_USE;
        break;
    case 7:
        head.request.sid_generation = (uint32_t) edge(random);
        break;
    case 8:
        head.request.off = edge(random);
        break;
    default:
        break;
    }
    for (uint32_t i = 0; i < blocks; i++) {
        total += head.near[i].len;
    }
    write_down(letters, push ? DN_CORE_PUSH : DN_CORE_PULL, &head,
               offsetof(__typeof__(head), near) + blocks * sizeof(dn_core_near_t), NULL,
               push && 1200 > total ? total : 0);
}

/** Something of a fixed length: words that may mean anything, or an atomic operation. */
static void write_words(letters_t *letters)
{
    uint64_t *random = letters->random;
    uint64_t word[7];

    for (size_t i = 0; i < 7; i++) {
        word[i] = perhaps(random, dn_test_below(random, 64));
    }
    word[1] = (uint64_t) key.generation << 32 | key.sid;
    word[5] = perhaps(random, dn_test_below(random, DN_AMO_OPS + 1) | (uint64_t) 8 << 32);
    write_down(letters, (unsigned) dn_test_below(random, DN_CORE_PROG + 2), word,
               0 == dn_test_below(random, 4) ? dn_test_below(random, sizeof(word)) : sizeof(dn_core_amo_t),
               NULL, 0);
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    static void (*const write[])(letters_t *) = {write_program, write_use,  write_use,  write_use,
                                                 write_blocks,  write_near, write_words};
    letters_t letters = {.random = random, .data = data};

    if (NULL == port) {
        open_port();
    }
    write_program(&letters);
    for (uint64_t n = dn_test_below(random, 12); 0 != n; n--) {
        write[dn_test_below(random, sizeof(write) / sizeof(write[0]))](&letters);
    }
    return letters.len;
}
