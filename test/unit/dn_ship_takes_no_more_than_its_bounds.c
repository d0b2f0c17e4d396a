/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Whatever pieces a sender makes up, its receiver keeps a bounded number of bytes, those of programs that it still
 * runs counted, finds nothing that is not whole, and goes on with what is right.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_ship_pair.h"

enum { BOUND = 2 * DN_SHIP_BYTES, LONG = DN_SHIP_BYTES - 80 };

static dn_ship_in_t in;
static uint8_t encoded[DN_SHIP_BYTES];
static size_t len;

/** Encode a program of `blocks` places. */
static void encode(size_t blocks)
{
    dn_prog_t *prog = dn_ship_make(blocks, blocks);

    len = sizeof(encoded);
    assert_int_equal(dn_prog_encode(prog, encoded, &len), DN_OK);
    dn_prog_free(prog);
}

static int give(uint64_t id, uint32_t slot, uint32_t whole, uint32_t at, size_t n)
{
    const dn_ship_piece_t piece = {id, slot, 0, whole, at};
    return dn_ship_in_piece(&in, &piece, encoded + at, n);
}

static dn_status_t find(uint32_t slot, uint64_t id)
{
    dn_ship_prog_t *prog = NULL;
    return dn_ship_in_find(&in, slot, id, &prog);
}

static void end(void)
{
    dn_ship_in_clear(&in);
    assert_int_equal(in.bytes, 0);
}

static void wrong_pieces(void **state)
{
    encode(20);
    const uint32_t whole = (uint32_t) len;
    assert_int_equal(give(7, DN_SHIP_SLOTS, whole, 0, whole), 0);
    assert_int_equal(give(7, UINT32_MAX, whole, 0, whole), 0);
    assert_int_equal(give(7, 1, whole - 1, 0, whole), 0);
    assert_int_equal(give(7, 1, whole, 0, 0), 0);
    assert_int_equal(give(7, 1, 0, 0, 1), 0);
    assert_int_equal(give(7, 1, whole, whole + 1, 0), 0);
    assert_int_equal(give(7, 1, whole, 50, 50), 0); /* nothing began */
    assert_int_equal(find(1, 7), DN_ERR_PROTO);
    assert_int_equal(give(7, 1, whole, 0, 50), 1);
    assert_int_equal(give(8, 1, whole, 50, 50), 0);
    assert_int_equal(give(7, 2, whole, 50, 50), 0);
    assert_int_equal(give(7, 1, whole + 1, 50, 50), 0);
    assert_int_equal(give(7, 1, whole, 51, 50), 0);
    assert_int_equal(give(7, 1, whole, 49, 50), 0);
    assert_int_equal(find(1, 7), DN_ERR_PROTO);
    assert_int_equal(give(7, 1, whole, 50, whole - 50), 1);
    assert_int_equal(find(1, 7), DN_OK);
    assert_int_equal(give(7, 1, whole, 50, 50), 0);
    assert_int_equal(find(1, 7), DN_OK);
    assert_int_equal(find(1, 8), DN_ERR_PROTO);
    assert_int_equal(find(0, 0), DN_ERR_PROTO);
    assert_int_equal(find(DN_SHIP_SLOTS, 7), DN_ERR_PROTO);
    assert_int_equal(find(UINT32_MAX, 7), DN_ERR_PROTO);
    assert_int_equal(give(9, 1, 0, 0, 0), 1);
    assert_int_equal(find(1, 7), DN_ERR_PROTO);
    assert_int_equal(find(1, 9), DN_ERR_PROTO);
    end();
}

static void what_is_no_program(void **state)
{
    encode(20);
    encoded[0] ^= 1;
    assert_int_equal(give(7, 1, (uint32_t) len, 0, len), 0);
    assert_int_equal(find(1, 7), DN_ERR_PROTO);
    assert_int_equal(in.bytes, 0);
    encode(20);
    encoded[4] ^= 1;
    assert_int_equal(give(7, 1, (uint32_t) len, 0, len), 0);
    assert_int_equal(find(1, 7), DN_ERR_VERSION);
    assert_int_equal(in.bytes, 0);
    end();
}

static void too_many_bytes(void **state)
{
    dn_ship_prog_t *kept[3] = {NULL};

    assert_int_equal(give(7, 1, DN_SHIP_BYTES + 1, 0, 100), 0);
    assert_int_equal(give(7, 1, UINT32_MAX, 0, 100), 0);
    assert_int_equal(in.bytes, 0);
    encode(LONG / 8);
    assert_int_equal(len, DN_SHIP_BYTES);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(give(7 + i, i, (uint32_t) len, 0, len), 1);
        assert_int_equal(dn_ship_in_find(&in, i, 7 + i, &kept[i]), DN_OK);
        dn_ship_in_keep(kept[i]);
    }
    assert_int_equal(in.bytes, BOUND);
    encode(20);
    assert_int_equal(give(9, 2, (uint32_t) len, 0, len), 0);
    assert_int_equal(find(2, 9), DN_ERR_PROTO);
    /* What is kept counts, also when its slot is another's. */
    assert_int_equal(give(9, 1, (uint32_t) len, 0, len), 0);
    assert_int_equal(find(1, 8), DN_ERR_PROTO);
    dn_ship_in_leave(&in, kept[1]);
    assert_int_equal(in.bytes, DN_SHIP_BYTES);
    encode(LONG / 8);
    assert_int_equal(give(9, 1, (uint32_t) len, 0, len), 1);
    assert_int_equal(find(1, 9), DN_OK);
    dn_ship_in_leave(&in, kept[0]);
    end();
}

/** Pieces at random, many of which continue what is coming. */
static void any_pieces(void **state)
{
    const unsigned turns = dn_test_rounds(60000);
    uint64_t random = 3;
    unsigned taken = 0, found = 0;

    for (unsigned turn = 0; turn < turns; turn++) {
        if (0 == turn % 500) {
            encode(2 + dn_test_length(&random, LONG / 8 - 2));
        }
        dn_ship_piece_t piece = {1 + dn_test_below(&random, 3), (uint32_t) dn_test_below(&random, 4), 0,
                                 (uint32_t) len, 0};
        if (0 != dn_test_below(&random, 6) && NULL != in.coming) {
            piece = in.expect;
        }
        if (0 == dn_test_below(&random, 8)) {
            piece.flags = (uint32_t) dn_test_below(&random, 4);
        }
        if (0 == dn_test_below(&random, 20)) {
            piece.len = (uint32_t) dn_test_length(&random, UINT32_MAX);
        }
        if (0 == dn_test_below(&random, 20)) {
            piece.at = (uint32_t) dn_test_length(&random, UINT32_MAX);
        }
        size_t n = 0 == dn_test_below(&random, 9) ? dn_test_length(&random, sizeof(encoded))
                                                  : (size_t) piece.len - piece.at;
        n = n < sizeof(encoded) ? n : sizeof(encoded);
        const size_t from = piece.at < sizeof(encoded) - n ? piece.at : sizeof(encoded) - n;
        taken += (unsigned) dn_ship_in_piece(&in, &piece, encoded + from, n);
        assert_in_range(in.bytes, 0, BOUND);
        found += DN_OK == find((uint32_t) dn_test_below(&random, 4), 1 + dn_test_below(&random, 3));
    }
    assert_in_range(taken, turns / 60, turns);
    assert_in_range(found, turns / 60, turns);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_pieces),
        cmocka_unit_test(what_is_no_program),
        cmocka_unit_test(too_many_bytes),
        cmocka_unit_test(any_pieces),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
