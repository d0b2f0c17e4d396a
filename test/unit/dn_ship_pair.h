/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ship_pair.h
 * A sender's table and its receiver's, with nothing between them, and programs to ship.
 */
#ifndef DN_SHIP_PAIR_H
#define DN_SHIP_PAIR_H

#include "dn_ship.h"

#include "../dn_test.h"

typedef struct dn_ship_pair {
    dn_ship_out_t out;
    dn_ship_in_t in;
    unsigned pieces; /**< that were sent */
    unsigned progs;  /**< of which the sender says that the receiver has them now */
} dn_ship_pair_t;

/** A LIST of n blocks, no two of which are at one distance; seed: which one. */
static inline dn_prog_t *dn_ship_make(uint64_t seed, size_t n)
{
    dn_prog_op_t *op = calloc(n, sizeof(*op));
    dn_prog_t *prog = NULL;
    int64_t at = 0;

    assert_non_null(op);
    for (size_t i = 0; i < n; i++) {
        at += 8 + (int64_t) (1 + i % 2 + dn_test_below(&seed, 40));
        op[i] = (dn_prog_op_t){DN_PROG_RUN, 0, at, 8, 1, 0};
    }
    assert_int_equal(dn_prog_create(op, n, &prog), DN_OK);
    free(op);
    return prog;
}

/** Let the receiver have what it lacks of a slot that was taken, in pieces of up to `room` bytes. */
static inline dn_status_t dn_ship_send(dn_ship_pair_t *pair, uint32_t slot, size_t room)
{
    dn_ship_piece_t piece;
    const uint8_t *bytes = NULL;
    dn_status_t status;
    size_t n = 0;

    while (DN_INPROGRESS == (status = dn_ship_out_next(&pair->out, slot, room, &piece, &bytes, &n))) {
        assert_in_range(n, 0, room);
        assert_int_equal(dn_ship_in_piece(&pair->in, &piece, bytes, n), 1);
        pair->pieces++;
        pair->progs += (unsigned) dn_ship_out_sent(&pair->out, &piece, n);
    }
    return status;
}

/** Does the receiver find a program in a slot? */
static inline int dn_ship_has(const dn_ship_pair_t *pair, uint32_t slot, const dn_prog_t *prog)
{
    static uint8_t ours[DN_SHIP_BYTES], theirs[DN_SHIP_BYTES];
    size_t our_len = sizeof(ours), their_len = sizeof(theirs);
    dn_ship_prog_t *found = NULL;

    if (DN_OK != dn_ship_in_find(&pair->in, slot, dn_prog_info(prog)->id, &found)) {
        return 0;
    }
    return DN_OK == dn_prog_encode(prog, ours, &our_len)
           && DN_OK == dn_prog_encode(found->prog, theirs, &their_len) && our_len == their_len
           && 0 == memcmp(ours, theirs, our_len);
}

static inline void dn_ship_pair_close(dn_ship_pair_t *pair)
{
    dn_ship_out_reset(&pair->out);
    dn_ship_in_clear(&pair->in);
    assert_int_equal(pair->in.bytes, 0);
}

#endif
