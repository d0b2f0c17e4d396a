/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Memory in pieces of segments: pieces are apart and zero, come back whole, and are found by peers, mapped or not.
 */
#include "dn_config.h"

#include "rma_world.h"

#include "dn_piece.h"

#include <string.h>

enum { PIECES = 24, STEPS = 3000, SHOWN = 3, PAGE = 4096 };

static int is_zero(const uint8_t *at, uint64_t len)
{
    return 0 == at[0] && 0 == memcmp(at, at + 1, len - 1);
}

static void pieces_are_apart_and_come_back(dn_world_t *world)
{
    dn_piece_t piece[PIECES] = {{0}};
    const unsigned steps = dn_test_rounds(STEPS);
    dn_pieces_t pieces;

    dn_world_start(world);
    dn_pieces_open(&pieces, world->port);
    for (unsigned step = 0; step < steps; step++) {
        const size_t i = dn_test_below(&world->random, PIECES);
        dn_key_t key;
        uint64_t off;

        if (NULL != piece[i].arena) {
            dn_check_bytes(piece[i].base, piece[i].len, i);
            dn_piece_free(&pieces, &piece[i]);
            dn_piece_free(&pieces, &piece[i]);
            continue;
        }
        const uint64_t len = 1 + dn_test_below(&world->random, 40 * PAGE);
        dn_check_equal(dn_piece_alloc(&pieces, len, UINT64_MAX, &piece[i]), DN_OK);
        dn_check(len <= piece[i].len);
        dn_check_equal((uintptr_t) piece[i].base % PAGE + piece[i].len % PAGE, 0);
        dn_check(is_zero(piece[i].base, piece[i].len));
        dn_test_fill(piece[i].base, piece[i].len, i);
        dn_piece_key(&piece[i], &key);
        dn_check(piece[i].off + piece[i].len <= key.len);
        dn_check(0 != dn_pieces_find(&pieces, piece[i].base + 1, piece[i].len - 1, &key, &off));
        dn_check_equal(off, piece[i].off + 1);
        dn_check(0 == dn_pieces_find(&pieces, piece, sizeof(piece), &key, &off));
        dn_check(0 == dn_pieces_find(&pieces, piece[i].base, UINT64_MAX, &key, &off));
    }
    for (size_t i = 0; i < PIECES; i++) {
        dn_piece_free(&pieces, &piece[i]);
    }
    /* All holes are one again, and nothing new is made for what fits into it. */
    dn_check_equal(pieces.segments, 1);
    dn_check_equal(dn_piece_alloc(&pieces, 16 << 20, 1, &piece[0]), DN_OK);
    dn_check_equal(dn_piece_alloc(&pieces, 1, 1, &piece[1]), DN_ERR_NOMEM);
    dn_check_equal(dn_piece_alloc(&pieces, 1, 2, &piece[1]), DN_OK);
    dn_check_equal(dn_piece_alloc(&pieces, UINT64_MAX, UINT64_MAX, &piece[2]), DN_ERR_NOMEM);
    dn_piece_free(&pieces, &piece[0]);
    dn_piece_free(&pieces, &piece[1]);
    dn_pieces_close(&pieces);
    dn_world_stop(world);
}

static void peers_find_pieces_by_their_keys(dn_world_t *world)
{
    static uint8_t copy[SHOWN * 3 * PAGE];
    dn_piece_t piece[SHOWN];
    dn_pieces_t pieces;
    dn_peer_attr_t attr;

    dn_world_start(world);
    dn_pieces_open(&pieces, world->port);
    for (uint32_t i = 0; i < SHOWN; i++) {
        dn_check_equal(dn_piece_alloc(&pieces, (i + 1) * 3 * PAGE, UINT64_MAX, &piece[i]), DN_OK);
        dn_test_fill(piece[i].base, piece[i].len, (uint64_t) world->rank * SHOWN + i);
        dn_piece_key(&piece[i], &world->me->key[i]);
        world->me->off[i] = piece[i].off;
    }
    dn_world_barrier(world);
    const int other = 1 - world->rank;
    dn_peer_attr(world->peer[other], &attr);
    for (uint32_t i = 0; i < SHOWN; i++) {
        const dn_key_t key = world->board->seat[other].key[i];
        const uint64_t off = world->board->seat[other].off[i];
        const dn_xfer_t xfer = {.local = copy, .key = &key, .roff = off, .len = (i + 1) * 3 * PAGE};
        void *base;

        dn_check_equal(dn_world_pull(world, world->peer[other], &xfer), DN_OK);
        dn_check_bytes(copy, xfer.len, (uint64_t) other * SHOWN + i);
        if (0 != (attr.caps & DN_CAP_MAP)) {
            dn_check_equal(dn_segment_map(world->peer[other], &key, &base), DN_OK);
            dn_check_bytes((uint8_t *) base + off, xfer.len, (uint64_t) other * SHOWN + i);
        }
    }
    dn_world_barrier(world);
    for (uint32_t i = 0; i < SHOWN; i++) {
        dn_piece_free(&pieces, &piece[i]);
    }
    dn_pieces_close(&pieces);
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"pieces_are_apart_and_come_back", 1, pieces_are_apart_and_come_back},
    {"peers_find_pieces_by_their_keys", 2, peers_find_pieces_by_their_keys},
};

/** A device whose memory nobody maps. */
static const dn_variant_t far[] = {{.file = "emulation", .device = "emulate:dimmnet1-d"}};

int main(int argc, char **argv)
{
    int failed = rma_run(tests, sizeof(tests) / sizeof(tests[0]), rma_mapped,
                         sizeof(rma_mapped) / sizeof(rma_mapped[0]), argv[1]);

    for (size_t i = 0; NULL != dn_device_name(i); i++) {
        if (0 == strcmp(dn_device_name(i), "emulate")) {
            failed |= rma_run(tests, sizeof(tests) / sizeof(tests[0]), far, 1, argv[1]);
        }
    }
    return failed;
}
