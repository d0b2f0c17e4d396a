/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A link goes on where the numbers of its lines pass 2^31 and 2^32, with a credit word that has stood still since the link was made,
 * or since so many lines ago: room is neither missed nor made up.
 */
#include "dn_config.h"

#include "dn_tree_forest.h"

#include "dn_tree_int.h"

enum { DEPTH = 8, BARRIERS = 40, AHEAD = 4 * DEPTH };

static const uint32_t starts[] = {
    0,
    (UINT32_C(1) << 31) - BARRIERS / 2,
    (UINT32_C(1) << 31) + 16,
    UINT32_MAX - BARRIERS / 2,
    UINT32_MAX - 1,
};
enum { STARTS = sizeof(starts) / sizeof(starts[0]) };

static forest_t forest;

static void plant(uint32_t first)
{
    forest_open_at(&forest, 2, first);
    forest.config = (dn_tree_config_t){.radix = 2, .depth = DEPTH};
    forest_plant(&forest);
}

/** Lines that say themselves what was taken: no word is written. */
static void pass_barriers(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(dn_tree_barrier(forest.tree[1]), DN_INPROGRESS);
        assert_int_equal(dn_tree_barrier(forest.tree[0]), DN_OK);
        assert_int_equal(dn_tree_test(forest.tree[1]), DN_OK);
    }
}

/** Lines one way: @p root runs ahead as far as it can, the other one follows, until all have come. @return how far that was. */
static unsigned run_ahead(uint32_t root, unsigned count)
{
    uint64_t sent[AHEAD];
    unsigned done = 0, heard = 0, most = 0;
    int under_way = 0;

    while (heard < count) {
        while (done < count) {
            sent[done] = 4711 + done;
            const dn_status_t status =
                under_way ? dn_tree_test(forest.tree[root])
                          : dn_tree_bcast(forest.tree[root], root, &sent[done], sizeof(sent[done]));
            under_way = DN_INPROGRESS == status;
            if (under_way) {
                break;
            }
            assert_int_equal(status, DN_OK);
            done++;
        }
        most = done - heard > most ? done - heard : most;
        uint64_t word = 0;
        /* It hangs here, where a link that has room is taken for full: the root is given some turns. */
        assert_true(heard < done);
        assert_int_equal(dn_tree_bcast(forest.tree[1 - root], root, &word, sizeof(word)), DN_OK);
        assert_int_equal(word, 4711 + heard);
        heard++;
    }
    return most;
}

static void streams_follow_barriers_across(uint32_t first, unsigned barriers)
{
    plant(first);
    pass_barriers(barriers);
    for (uint32_t root = 0; root < 2; root++) {
        /* That the last barrier's line was taken is not known to the one who left it first. */
        const unsigned most = run_ahead(root, AHEAD);
        assert_in_range(most, DEPTH - 1, DEPTH);
    }
    pass_barriers(barriers);
    forest_fell(&forest);
    forest_close(&forest);
}

static void a_word_may_stand_still_since_the_link_was_made(void **state)
{
    for (unsigned i = 0; i < STARTS; i++) {
        for (unsigned barriers = 0; barriers <= BARRIERS; barriers++) {
            streams_follow_barriers_across(starts[i], barriers);
        }
    }
}

/** As after so many lines each way, a multiple of depth, of which none needed a word. */
static void jump(uint64_t lines)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        dn_tree_link_t *link = &forest.tree[rank]->group[0].link[1 - rank];
        link->sent += lines;
        link->taken += lines;
        link->acked += (uint32_t) lines;
        link->told += (uint32_t) lines;
        for (uint32_t i = 0; i < DEPTH; i++) {
            const uint64_t flag = link->in[i].flag;
            link->in[i].flag = (uint32_t) (flag + lines) | (uint64_t) (uint32_t) ((flag >> 32) + lines) << 32;
        }
    }
}

static void a_word_may_stand_still_for_any_number_of_lines(void **state)
{
    const uint64_t around[] = {UINT64_C(1) << 30, UINT64_C(1) << 31, UINT64_C(3) << 30,
                               UINT64_C(1) << 32, UINT64_C(1) << 33, UINT64_C(5) << 31};

    for (unsigned i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
        for (int64_t off = -4 * DEPTH; off <= 4 * DEPTH; off += DEPTH) {
            plant(0);
            /* Both words have been written once. */
            run_ahead(0, AHEAD);
            run_ahead(1, AHEAD);
            jump(around[i] + (uint64_t) off);
            for (unsigned barriers = 0; barriers < DEPTH; barriers++) {
                pass_barriers(barriers);
                assert_in_range(run_ahead(barriers % 2, AHEAD), DEPTH - 1, DEPTH);
            }
            forest_fell(&forest);
            forest_close(&forest);
        }
    }
}

static void what_was_not_sent_is_not_believed_to_be_taken(void **state)
{
    uint64_t word = 4711;

    plant(starts[1]);
    dn_tree_link_t *link = &forest.tree[0]->group[0].link[1];
    *(uint64_t *) (uintptr_t) link->credit = link->sent + 2 * DEPTH;
    for (unsigned i = 0; i < DEPTH; i++) {
        assert_int_equal(dn_tree_bcast(forest.tree[0], 0, &word, sizeof(word)), DN_OK);
    }
    assert_int_equal(dn_tree_bcast(forest.tree[0], 0, &word, sizeof(word)), DN_INPROGRESS);
    dn_tree_abandon(forest.tree[0]);
    dn_tree_abandon(forest.tree[1]);
    forest_close(&forest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_may_stand_still_since_the_link_was_made),
        cmocka_unit_test(a_word_may_stand_still_for_any_number_of_lines),
        cmocka_unit_test(what_was_not_sent_is_not_believed_to_be_taken),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
