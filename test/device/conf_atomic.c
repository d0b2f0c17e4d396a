/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "conformance.h"

enum { WORDS = 64 };

/** An allocated and a registered segment of words, keys on the board. */
typedef struct words {
    dn_segment_t *segment[2];
    uint64_t *base[2];
} words_t;

static void offer(dn_world_t *world, words_t *words)
{
    static uint64_t memory[WORDS];

    words->base[1] = memory;
    dn_check_equal(dn_segment_alloc(world->port, sizeof(memory), &words->segment[0]), DN_OK);
    dn_check_equal(dn_segment_register(world->port, memory, sizeof(memory), &words->segment[1]), DN_OK);
    words->base[0] = dn_segment_base(words->segment[0]);
    for (int i = 0; i < 2; i++) {
        dn_segment_key(words->segment[i], &world->me->key[i]);
    }
    dn_world_barrier(world);
}

static void retract(dn_world_t *world, words_t *words)
{
    dn_world_barrier(world);
    dn_segment_free(words->segment[0]);
    dn_segment_free(words->segment[1]);
}

/** What the operation should leave, by its definition, on words of any width. */
static uint64_t after(dn_amo_op_t op, unsigned width, uint64_t old, uint64_t operand, uint64_t compare)
{
    const int64_t a = 4 == width ? (int32_t) old : (int64_t) old;
    const int64_t b = 4 == width ? (int32_t) operand : (int64_t) operand;
    const uint64_t mask = 4 == width ? UINT32_MAX : UINT64_MAX;
    const uint64_t value[DN_AMO_OPS] = {
        [DN_AMO_ADD] = old + operand,
        [DN_AMO_AND] = old & operand,
        [DN_AMO_OR] = old | operand,
        [DN_AMO_XOR] = old ^ operand,
        [DN_AMO_MIN] = a < b ? old : operand,
        [DN_AMO_MAX] = a > b ? old : operand,
        [DN_AMO_SWAP] = operand,
        [DN_AMO_CAS] = (old & mask) == (compare & mask) ? operand : old,
    };

    return value[op] & mask;
}

static uint64_t any_value(uint64_t *random)
{
    static const uint64_t edge[] = {0,          1,         UINT64_MAX, INT64_MAX,         UINT64_C(1) << 63,
                                    UINT32_MAX, INT32_MAX, 0x80000000, 0x7fffffffffffffff};

    return 0 == dn_test_below(random, 2) ? edge[dn_test_below(random, sizeof(edge) / sizeof(edge[0]))]
                                         : dn_test_random(random);
}

/** One random operation on word `at`, `expected` holds what the target should. */
static void one(dn_world_t *world, uint64_t *random, uint64_t expected[WORDS], int which)
{
    uint8_t result[16];
    const unsigned width = 0 == dn_test_below(random, 2) ? 4 : 8;
    const uint64_t roff = dn_test_below(random, sizeof(uint64_t) * WORDS / width) * width;
    const uint64_t mask = 4 == width ? UINT32_MAX : UINT64_MAX;
    uint64_t old = 0;

    memcpy(&old, (uint8_t *) expected + roff, width);
    const dn_amo_t amo = {.op = (dn_amo_op_t) dn_test_below(random, DN_AMO_OPS),
                          .width = width,
                          .operand = any_value(random),
                          .compare = 0 == dn_test_below(random, 2) ? old : any_value(random),
                          .result = 0 == dn_test_below(random, 8) ? NULL : result + 4,
                          .key = &world->board->seat[1].key[which],
                          .roff = roff};
    memset(result, 0xcc, sizeof(result));
    dn_check_equal(dn_world_atomic(world, world->peer[1], &amo), DN_OK);
    if (NULL != amo.result) {
        uint64_t got = 0;
        memcpy(&got, amo.result, width);
        dn_check_equal(got, old & mask);
    }
    dn_check_equal(result[3], 0xcc);
    dn_check_equal(result[4 + width], 0xcc);
    const uint64_t new = after(amo.op, width, old, amo.operand, amo.compare);
    memcpy((uint8_t *) expected + roff, &new, width);
}

void atomics_do_what_they_say(dn_world_t *world)
{
    words_t words;
    uint64_t expected[WORDS] = {0};
    uint64_t random = 3;

    dn_world_start(world);
    offer(world, &words);
    for (int which = 0; which < 2; which++) {
        memset(expected, 0, sizeof(expected));
        if (0 == world->rank) {
            for (int i = 0; i < 1500; i++) {
                one(world, &random, expected, which);
            }
            const dn_xfer_t pull = {
                .local = words.base[1], .key = &world->board->seat[1].key[which], .len = sizeof(expected)};
            dn_check_equal(dn_world_pull(world, world->peer[1], &pull), DN_OK);
            dn_check(0 == memcmp(words.base[1], expected, sizeof(expected)));
        }
        dn_world_barrier(world);
    }
    retract(world, &words);
    dn_world_stop(world);
}

enum { ROUNDS = 400 };

/** Add 1 by compare-and-swap, as often as it takes. */
static void add_by_cas(dn_world_t *world, dn_peer_t *peer, const dn_key_t *key, uint64_t roff, unsigned width)
{
    uint64_t found = 0, guess = 0;

    do {
        guess = found;
        const dn_amo_t amo = {.op = DN_AMO_CAS,
                              .width = width,
                              .operand = guess + 1,
                              .compare = guess,
                              .result = &found,
                              .key = key,
                              .roff = roff};
        dn_check_equal(dn_world_atomic(world, peer, &amo), DN_OK);
    } while (found != guess);
}

/** Everybody but 0 works on the words of 0: sums, a bit each, one extreme, and a chain of swaps. */
static void contend(dn_world_t *world, int which, unsigned width)
{
    const dn_key_t *key = &world->board->seat[0].key[which];
    dn_peer_t *peer = world->peer[0];
    uint64_t old, swapped = 0;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        old = 0;
        const dn_amo_t add = {DN_AMO_ADD, width, (uint64_t) world->rank, 0, &old, key, 0, NULL};
        dn_check_equal(dn_world_atomic(world, peer, &add), DN_OK);
        add_by_cas(world, peer, key, 8, width);
        const dn_amo_t flip = {DN_AMO_XOR, width, UINT64_C(1) << (8 + world->rank), 0, NULL, key, 16, NULL};
        dn_check_equal(dn_world_atomic(world, peer, &flip), DN_OK);
        const dn_amo_t max = {DN_AMO_MAX, width, i * 16 + (uint64_t) world->rank, 0, &old, key, 24, NULL};
        dn_check_equal(dn_world_atomic(world, peer, &max), DN_OK);
        old = 0;
        const dn_amo_t swap = {DN_AMO_SWAP, width, i * 16 + (uint64_t) world->rank, 0, &old, key, 32, NULL};
        dn_check_equal(dn_world_atomic(world, peer, &swap), DN_OK);
        swapped += old;
    }
    dn_world_post(world, which * 2 + (4 == width ? 0 : 1), swapped);
}

void contended_atomics_lose_nothing(dn_world_t *world)
{
    words_t words;
    const uint64_t others = (uint64_t) world->size - 1;
    const uint64_t ranks = others * (others + 1) / 2;

    dn_world_start(world);
    offer(world, &words);
    for (int which = 0; which < 2; which++) {
        for (unsigned width = 4; width <= 8; width += 4) {
            memset(words.base[which], 0, 64);
            dn_world_barrier(world);
            if (0 != world->rank) {
                contend(world, which, width);
            }
            dn_world_barrier(world);
            if (0 == world->rank) {
                uint64_t swapped = words.base[which][4];
                for (int i = 1; i < world->size; i++) {
                    swapped += world->board->seat[i].word[which * 2 + (4 == width ? 0 : 1)];
                }
                dn_check_equal(words.base[which][0], ROUNDS * ranks);
                dn_check_equal(words.base[which][1], ROUNDS * others);
                dn_check_equal(words.base[which][2], 0);
                dn_check_equal(words.base[which][3], (ROUNDS - 1) * 16 + others);
                dn_check_equal(swapped, others * 16 * (ROUNDS * (ROUNDS - 1) / 2) + ROUNDS * ranks);
            }
            dn_world_barrier(world);
        }
    }
    retract(world, &words);
    dn_world_stop(world);
}

/** Operations of one dn_atomics() that have ended. */
static unsigned together;

static void one_has_ended(dn_comp_t *comp, dn_status_t status)
{
    (void) comp;
    dn_check_equal(status, DN_OK);
    together++;
}

/** Start operations, all of them, and wait for their ends. */
static void run_together(dn_world_t *world, const dn_amo_t *amo, size_t n)
{
    dn_status_t status;
    size_t at = 0, started;

    together = 0;
    while (DN_ERR_AGAIN == (status = dn_atomics(world->peer[1], amo + at, n - at, &started))) {
        at += started;
        dn_progress(world->port);
    }
    dn_check_equal(status, DN_OK);
    dn_check_equal(at + started, n);
    while (n > together) {
        dn_progress(world->port);
    }
}

void atomics_go_together(dn_world_t *world)
{
    words_t words;
    dn_comp_t comp = {one_has_ended};
    size_t started = 1;

    dn_world_start(world);
    offer(world, &words);
    for (uint64_t i = 0; 0 == world->rank && i < ROUNDS; i++) {
        const dn_key_t *key = &world->board->seat[1].key[i % 2];
        const uint64_t round = i / 2;
        uint64_t old[4] = {0};
        const dn_amo_t amo[] = {
            {DN_AMO_SWAP, 8, round + 1, 0, &old[0], key, 0, &comp},
            {DN_AMO_ADD, 8, 3, 0, &old[1], key, 8, &comp},
            {DN_AMO_CAS, 8, round + 1, round, &old[2], key, 16, &comp},
            {DN_AMO_ADD, 4, 5, 0, &old[3], key, 24, &comp},
        };
        const size_t n = 1 + (size_t) dn_test_below(&world->random, DN_ATOMICS_MAX);

        /* Each word by its own operation, in one call or in two. */
        run_together(world, amo, n);
        if (DN_ATOMICS_MAX > n) {
            run_together(world, amo + n, DN_ATOMICS_MAX - n);
        }
        dn_check_equal(old[0], round);
        dn_check_equal(old[1], 3 * round);
        dn_check_equal(old[2], round);
        dn_check_equal((uint32_t) old[3], (uint32_t) (5 * round));
    }
    if (0 == world->rank) {
        const dn_amo_t wrong = {
            DN_AMO_ADD, 8, 1, 0, NULL, &world->board->seat[1].key[0], sizeof(uint64_t) * WORDS, &comp};

        dn_check_equal(dn_atomics(world->peer[1], &wrong, 0, &started), DN_ERR_PARAM);
        dn_check_equal(dn_atomics(world->peer[1], &wrong, 1, &started), DN_ERR_RANGE);
        dn_check_equal(started, 0);
    }
    retract(world, &words);
    dn_world_stop(world);
}

void atomics_meet_the_owners_cpu_atomics(dn_world_t *world)
{
    words_t words;
    const uint64_t count = 3000;

    dn_world_start(world);
    offer(world, &words);
    for (int which = 0; which < 2; which++) {
        dn_world_barrier(world);
        for (uint64_t i = 0; i < count; i++) {
            if (0 == world->rank) {
                const dn_amo_t add = {DN_AMO_ADD, 8, 1, 0, NULL, &world->board->seat[1].key[which], 0, NULL};
                dn_check_equal(dn_world_atomic(world, world->peer[1], &add), DN_OK);
            } else {
                dn_fetch_add_acq_rel(words.base[which], 1);
                dn_world_progress(world);
            }
        }
        dn_world_barrier(world);
        dn_check_equal(words.base[which][0], 1 == world->rank ? 2 * count : 0);
    }
    retract(world, &words);
    dn_world_stop(world);
}

/** Refused with the status, and no result is given. */
static void refused(dn_world_t *world, dn_peer_t *peer, const dn_amo_t *amo, dn_status_t wanted)
{
    uint8_t result[16];
    dn_amo_t mine = *amo;

    memset(result, 0xcc, sizeof(result));
    mine.result = result;
    dn_test_log.expected = 1;
    dn_check_equal(dn_world_atomic(world, peer, &mine), wanted);
    dn_test_log.expected = 0;
    for (size_t i = 0; i < sizeof(result); i++) {
        dn_check_equal(result[i], 0xcc);
    }
}

/** Everything that cannot be asked of a segment of 8 * WORDS bytes. */
static void refuse_impossible(dn_world_t *world, dn_peer_t *peer, const dn_key_t *key)
{
    static const unsigned width[] = {0, 1, 2, 3, 5, 6, 7, 9, 16, UINT32_MAX};
    static const uint64_t outside[] = {8 * WORDS, 8 * WORDS + 8, UINT64_MAX - 7, UINT64_MAX - 15,
                                       UINT64_C(1) << 63};
    const dn_amo_t good = {.op = DN_AMO_ADD, .width = 8, .operand = 1, .key = key};
    dn_amo_t amo = good;

    for (size_t i = 0; i < sizeof(width) / sizeof(width[0]); i++) {
        amo.width = width[i];
        refused(world, peer, &amo, DN_ERR_PARAM);
    }
    for (unsigned roff = 1; roff < 8; roff++) {
        amo = good;
        amo.roff = roff;
        refused(world, peer, &amo, DN_ERR_PARAM);
        amo.width = 4;
        if (4 != roff) {
            refused(world, peer, &amo, DN_ERR_PARAM);
        }
    }
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        amo = good;
        amo.roff = outside[i];
        refused(world, peer, &amo, DN_ERR_RANGE);
    }
    amo = good;
    amo.op = DN_AMO_OPS;
    refused(world, peer, &amo, DN_ERR_PARAM);
    amo.op = (dn_amo_op_t) UINT32_MAX;
    refused(world, peer, &amo, DN_ERR_PARAM);
}

void impossible_atomics_are_refused(dn_world_t *world)
{
    words_t words;

    dn_world_start(world);
    offer(world, &words);
    dn_peer_t *peer = world->peer[1 - world->rank];
    for (int which = 0; which < 2; which++) {
        const dn_key_t *key = &world->board->seat[1 - world->rank].key[which];
        dn_test_fill(words.base[which], 8 * WORDS, 5);
        dn_world_barrier(world);
        refuse_impossible(world, peer, key);
        dn_world_barrier(world);
        dn_check_bytes(words.base[which], 8 * WORDS, 5);
        dn_world_barrier(world);
        const dn_amo_t last = {.op = DN_AMO_SWAP, .width = 8, .key = key, .roff = 8 * WORDS - 8};
        dn_check_equal(dn_world_atomic(world, peer, &last), DN_OK);
        dn_world_barrier(world);
        dn_check_bytes(words.base[which], 8 * WORDS - 8, 5);
        dn_check_equal(words.base[which][WORDS - 1], 0);
    }
    retract(world, &words);
    dn_world_stop(world);
}

/** A segment may begin anywhere: what counts is where the word lies, in another process or the own. */
void atomics_on_misaligned_words_are_refused(dn_world_t *world)
{
    static _Alignas(64) uint8_t memory[64];
    dn_peer_t *self = NULL;
    dn_segment_t *segment = NULL;

    dn_world_start(world);
    dn_check_equal(dn_connect(world->port, world->me->address, world->me->address_len, &self), DN_OK);
    for (unsigned start = 1; start < 8; start++) {
        dn_test_fill(memory, sizeof(memory), start);
        dn_check_equal(dn_segment_register(world->port, memory + start, 40, &segment), DN_OK);
        dn_segment_key(segment, &world->me->key[0]);
        dn_world_barrier(world);
        for (int rank = 0; rank < world->size; rank++) {
            dn_peer_t *peer = rank == world->rank ? self : world->peer[rank];
            dn_amo_t amo = {
                .op = DN_AMO_ADD, .width = 8, .operand = 1, .key = &world->board->seat[rank].key[0]};
            refused(world, peer, &amo, DN_ERR_PARAM);
            amo.roff = 32;
            refused(world, peer, &amo, DN_ERR_PARAM);
            amo.width = 4;
            if (0 != start % 4) {
                refused(world, peer, &amo, DN_ERR_PARAM);
            } else {
                amo.operand = 0;
                dn_check_equal(dn_world_atomic(world, peer, &amo), DN_OK);
            }
        }
        dn_world_barrier(world);
        dn_check_bytes(memory, sizeof(memory), start);
        dn_segment_free(segment);
        dn_world_barrier(world);
    }
    dn_disconnect(self);
    dn_world_stop(world);
}
