/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A program is sent before its first use and not again, until its slot was given to another. That is the slot used
 * least lately, never one that a transfer in flight names. What the receiver finds is what the sender means, however
 * the pieces are cut, and whatever was sent before.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_ship_pair.h"

enum { PIECE = 16 << 10, SOME = 60 };

/** Take, send, look, leave: a transfer. @return how many programs were sent for it. */
static unsigned use(dn_ship_pair_t *pair, const dn_prog_t *prog, size_t room)
{
    const unsigned before = pair->progs;
    uint32_t slot = 0;

    assert_int_equal(dn_ship_out_enter(&pair->out, prog, &slot), DN_OK);
    assert_int_equal(dn_ship_send(pair, slot, room), DN_OK);
    assert_int_equal(dn_ship_has(pair, slot, prog), 1);
    dn_ship_out_leave(&pair->out, slot);
    return pair->progs - before;
}

static void many(dn_prog_t **prog, size_t n, size_t blocks)
{
    for (size_t i = 0; i < n; i++) {
        prog[i] = dn_ship_make(i, blocks);
    }
}

static void free_all(dn_prog_t **prog, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dn_prog_free(prog[i]);
    }
}

static void once_however_often_it_is_used(void **state)
{
    static dn_ship_pair_t pair;
    dn_prog_t *prog[DN_SHIP_SLOTS];

    many(prog, DN_SHIP_SLOTS, 20);
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < DN_SHIP_SLOTS; i++) {
            assert_int_equal(use(&pair, prog[i], 1 + i), 0 == turn);
        }
    }
    dn_ship_pair_close(&pair);
    free_all(prog, DN_SHIP_SLOTS);
}

static void the_one_used_least_lately_goes(void **state)
{
    static dn_ship_pair_t pair;
    dn_prog_t *prog[DN_SHIP_SLOTS + 2];

    many(prog, DN_SHIP_SLOTS + 2, 20);
    for (unsigned i = 0; i < DN_SHIP_SLOTS; i++) {
        use(&pair, prog[i], PIECE);
    }
    assert_int_equal(use(&pair, prog[0], PIECE), 0);
    assert_int_equal(use(&pair, prog[DN_SHIP_SLOTS], PIECE), 1); /* instead of 1 */
    assert_int_equal(use(&pair, prog[0], PIECE), 0);
    assert_int_equal(use(&pair, prog[2], PIECE), 0);
    assert_int_equal(use(&pair, prog[1], PIECE), 1); /* instead of 3 */
    assert_int_equal(use(&pair, prog[4], PIECE), 0);
    assert_int_equal(use(&pair, prog[3], PIECE), 1);
    dn_ship_pair_close(&pair);
    free_all(prog, DN_SHIP_SLOTS + 2);
}

static void none_that_a_transfer_names_goes(void **state)
{
    static dn_ship_pair_t pair;
    dn_prog_t *prog[DN_SHIP_SLOTS + 1];
    uint32_t slot[DN_SHIP_SLOTS + 1];

    many(prog, DN_SHIP_SLOTS + 1, 20);
    for (unsigned i = 0; i < DN_SHIP_SLOTS; i++) {
        assert_int_equal(dn_ship_out_enter(&pair.out, prog[i], &slot[i]), DN_OK);
        assert_int_equal(dn_ship_send(&pair, slot[i], PIECE), DN_OK);
    }
    assert_int_equal(dn_ship_out_enter(&pair.out, prog[5], &slot[DN_SHIP_SLOTS]), DN_OK);
    assert_int_equal(slot[DN_SHIP_SLOTS], slot[5]);
    assert_int_equal(dn_ship_out_enter(&pair.out, prog[DN_SHIP_SLOTS], &slot[DN_SHIP_SLOTS]), DN_ERR_AGAIN);
    dn_ship_out_leave(&pair.out, slot[5]);
    assert_int_equal(dn_ship_out_enter(&pair.out, prog[DN_SHIP_SLOTS], &slot[DN_SHIP_SLOTS]), DN_ERR_AGAIN);
    dn_ship_out_leave(&pair.out, slot[5]);
    assert_int_equal(use(&pair, prog[DN_SHIP_SLOTS], PIECE), 1);
    assert_int_equal(dn_ship_has(&pair, slot[4], prog[4]), 1);
    assert_int_equal(dn_ship_has(&pair, slot[5], prog[5]), 0);
    dn_ship_pair_close(&pair);
    free_all(prog, DN_SHIP_SLOTS + 1);
}

/** Three programs of 400 KB each: two are within what the receiver keeps. */
static void old_ones_go_for_long_ones(void **state)
{
    static dn_ship_pair_t pair;
    dn_prog_t *small = dn_ship_make(9, 20);
    dn_prog_t *prog[3];
    uint32_t slot[3];

    many(prog, 3, 50000);
    use(&pair, small, PIECE);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(dn_ship_out_enter(&pair.out, prog[i], &slot[i]), DN_OK);
        assert_int_equal(dn_ship_send(&pair, slot[i], PIECE), DN_OK);
    }
    assert_int_equal(dn_ship_out_enter(&pair.out, prog[2], &slot[2]), DN_OK);
    assert_int_equal(dn_ship_send(&pair, slot[2], PIECE), DN_ERR_AGAIN);
    dn_ship_out_leave(&pair.out, slot[0]);
    assert_int_equal(dn_ship_send(&pair, slot[2], PIECE), DN_OK);
    assert_int_equal(dn_ship_has(&pair, slot[0], prog[0]), 0);
    assert_int_equal(dn_ship_has(&pair, slot[1], prog[1]), 1);
    assert_int_equal(dn_ship_has(&pair, slot[2], prog[2]), 1);
    assert_in_range(pair.in.bytes, 800000, DN_SHIP_BYTES);
    assert_int_equal(use(&pair, small, PIECE), 1);
    dn_ship_pair_close(&pair);
    free_all(prog, 3);
    dn_prog_free(small);
}

static void too_long_a_program_does_not_fit(void **state)
{
    const size_t places = (DN_SHIP_BYTES - 80) / 8;
    static dn_ship_pair_t pair;
    dn_prog_t *most = dn_ship_make(1, places), *more = dn_ship_make(1, places + 1);

    assert_int_equal(dn_ship_fits(most), 1);
    assert_int_equal(dn_ship_fits(more), 0);
    assert_int_equal(use(&pair, most, PIECE), 1);
    assert_int_equal(pair.in.bytes, DN_SHIP_BYTES);
    dn_ship_pair_close(&pair);
    dn_prog_free(most);
    dn_prog_free(more);
}

/** Send the first piece only. */
static void begin(dn_ship_pair_t *pair, uint32_t slot)
{
    dn_ship_piece_t piece;
    const uint8_t *bytes = NULL;
    size_t n = 0;

    assert_int_equal(dn_ship_out_next(&pair->out, slot, 50, &piece, &bytes, &n), DN_INPROGRESS);
    assert_int_equal(dn_ship_in_piece(&pair->in, &piece, bytes, n), 1);
    assert_int_equal(dn_ship_out_sent(&pair->out, &piece, n), 0);
}

static void what_was_left_half_way_is_sent_again(void **state)
{
    static dn_ship_pair_t pair;
    dn_prog_t *prog[2];
    uint32_t slot = 0;

    many(prog, 2, 20);
    assert_int_equal(dn_ship_out_enter(&pair.out, prog[0], &slot), DN_OK);
    begin(&pair, slot);
    assert_int_equal(dn_ship_has(&pair, slot, prog[0]), 0);
    dn_ship_out_leave(&pair.out, slot);
    assert_int_equal(use(&pair, prog[1], 50), 1);
    assert_int_equal(use(&pair, prog[0], 50), 1);
    dn_ship_pair_close(&pair);
    free_all(prog, 2);
}

/** A peer that we left may still have what we sent then, or not. */
static void a_new_table_begins_anew(void **state)
{
    static dn_ship_pair_t pair;
    dn_prog_t *prog[3];
    dn_ship_prog_t *kept = NULL;

    many(prog, 3, 20);
    for (unsigned i = 0; i < 3; i++) {
        use(&pair, prog[i], PIECE);
    }
    assert_int_equal(dn_ship_in_find(&pair.in, 2, dn_prog_info(prog[2])->id, &kept), DN_OK);
    dn_ship_in_keep(kept);
    dn_ship_out_reset(&pair.out);
    assert_int_equal(use(&pair, prog[0], PIECE), 1);
    assert_int_equal(dn_ship_has(&pair, 1, prog[1]), 0);
    assert_int_equal(use(&pair, prog[1], PIECE), 1);
    assert_int_equal(dn_prog_info(kept->prog)->size, dn_prog_info(prog[2])->size);
    dn_ship_in_leave(&pair.in, kept);
    dn_ship_pair_close(&pair);
    free_all(prog, 3);
}

/** Some programs, and in which slot each is that a transfer in flight names. */
typedef struct fleet {
    dn_prog_t *prog[SOME];
    uint32_t slot[SOME];
} fleet_t;

static void land(dn_ship_pair_t *pair, fleet_t *fleet, size_t i)
{
    if (DN_SHIP_SLOTS != fleet->slot[i]) {
        assert_int_equal(dn_ship_has(pair, fleet->slot[i], fleet->prog[i]), 1);
        dn_ship_out_leave(&pair->out, fleet->slot[i]);
        fleet->slot[i] = DN_SHIP_SLOTS;
    }
}

/** Transfers of any programs, some in flight for long: they end when others have no room. */
static void any_mix_of_transfers(void **state)
{
    static dn_ship_pair_t pair;
    static fleet_t fleet;
    const unsigned turns = dn_test_rounds(3000);
    uint64_t random = 1;
    unsigned started = 0;

    for (size_t i = 0; i < SOME; i++) {
        fleet.prog[i] = dn_ship_make(i, 2 + dn_test_length(&random, 100000));
        fleet.slot[i] = DN_SHIP_SLOTS;
    }
    for (unsigned turn = 0; turn < turns; turn++) {
        const size_t i = dn_test_below(&random, SOME);
        uint32_t slot = 0;
        if (DN_SHIP_SLOTS != fleet.slot[i]) {
            land(&pair, &fleet, i);
            continue;
        }
        started++;
        while (DN_OK != dn_ship_out_enter(&pair.out, fleet.prog[i], &slot)) {
            land(&pair, &fleet, dn_test_below(&random, SOME));
        }
        while (DN_OK != dn_ship_send(&pair, slot, 1 + dn_test_length(&random, PIECE))) {
            land(&pair, &fleet, dn_test_below(&random, SOME));
        }
        fleet.slot[i] = slot;
        assert_in_range(pair.in.bytes, 0, DN_SHIP_BYTES);
    }
    assert_in_range(pair.progs, SOME, started);
    dn_ship_pair_close(&pair);
    free_all(fleet.prog, SOME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_however_often_it_is_used),
        cmocka_unit_test(the_one_used_least_lately_goes),
        cmocka_unit_test(none_that_a_transfer_names_goes),
        cmocka_unit_test(old_ones_go_for_long_ones),
        cmocka_unit_test(too_long_a_program_does_not_fit),
        cmocka_unit_test(what_was_left_half_way_is_sent_again),
        cmocka_unit_test(a_new_table_begins_anew),
        cmocka_unit_test(any_mix_of_transfers),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
