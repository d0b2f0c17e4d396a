/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Rounds of letters between the neighbors of any graph, in which each process runs ahead as far as it can: the letters are those of the same
 * round, and processes that are not neighbors do not wait for each other. A neighbor that is gone ends the rounds of those that need it.
 * Areas serve one circle after another.
 */
#include "dn_config.h"

#include "dn_letter.h"
#include "dn_tree_forest.h"

#include <stdlib.h>

enum { ROUNDS = 200 };

/** What a process does in a round. */
typedef struct ends {
    dn_letter_ends_t super;
    uint32_t rank;
    int given;
    int got[FOREST_MAX];
} ends_t;

static forest_t forest;
static dn_segment_t *segment[FOREST_MAX];
static void *area[FOREST_MAX][FOREST_MAX]; /**< by who has mapped it, and by its owner */
static dn_letters_t *letters[FOREST_MAX];
static int edge[FOREST_MAX][FOREST_MAX]; /**< the first gives the second its letters */
static ends_t ends[FOREST_MAX];
static uint64_t done[FOREST_MAX]; /**< rounds that a rank has completed */
static int under_way[FOREST_MAX];
static uint64_t key;

/** Neighbors are numbered without the own rank. */
static uint32_t number_of(uint32_t own, uint32_t rank)
{
    return rank < own ? rank : rank - 1;
}

static uint64_t key_of(uint32_t rank, uint64_t round)
{
    return key + rank * UINT64_C(1000003) + round;
}

static size_t len_of(uint32_t rank, uint64_t round)
{
    uint64_t random = key_of(rank, round);

    return dn_test_length(&random, DN_LETTER_BYTES);
}

static void give(dn_letter_ends_t *super, void *letter)
{
    ends_t *own = (ends_t *) super;

    own->given++;
    dn_test_fill(letter, len_of(own->rank, done[own->rank]), key_of(own->rank, done[own->rank]));
}

static void get(dn_letter_ends_t *super, uint32_t i, const void *letter)
{
    ends_t *own = (ends_t *) super;
    const uint32_t rank = i < own->rank ? i : i + 1;
    const uint64_t round = done[own->rank];
    const size_t len = len_of(rank, round);

    own->got[rank]++;
    assert_int_equal(dn_test_mismatch(letter, len, key_of(rank, round)), len);
}

static void plant(uint32_t ranks)
{
    dn_key_t of;

    forest_open(&forest, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        assert_int_equal(dn_segment_alloc(forest.port[i], DN_LETTER_AREA, &segment[i]), DN_OK);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        for (uint32_t k = 0; k < ranks; k++) {
            dn_segment_key(segment[k], &of);
            assert_int_equal(dn_segment_map(forest.peer[i][k], &of, &area[i][k]), DN_OK);
        }
    }
}

/** Form a circle, of the edges that there are. @param begin  where counters of new areas begin */
static void meet(uint64_t begin)
{
    uint64_t first[FOREST_MAX];

    memset(done, 0, sizeof(done));
    for (uint32_t i = 0; i < forest.ranks; i++) {
        first[i] = dn_letters_first(area[i][i], begin);
        assert_int_equal(dn_letters_create(area[i][i], forest.ranks - 1, &letters[i]), DN_OK);
    }
    for (uint32_t i = 0; i < forest.ranks; i++) {
        for (uint32_t k = 0; k < forest.ranks; k++) {
            const dn_letter_neighbor_t neighbor = {area[i][k], forest.peer[i][k], first[k], edge[k][i],
                                                   edge[i][k]};
            if (i != k && (edge[i][k] || edge[k][i])) {
                dn_letters_join(letters[i], number_of(i, k), &neighbor);
            }
        }
    }
}

static void fell(void)
{
    for (uint32_t i = 0; i < forest.ranks; i++) {
        assert_int_equal(dn_letters_free(letters[i]), DN_OK);
    }
    forest_close(&forest);
}

static void draw_edges(uint64_t *random, uint64_t share)
{
    memset(edge, 0, sizeof(edge));
    for (uint32_t i = 0; i < forest.ranks; i++) {
        for (uint32_t k = 0; k < forest.ranks; k++) {
            edge[i][k] = 0 == dn_test_below(random, share);
        }
    }
}

static dn_status_t turn(uint32_t rank)
{
    dn_status_t status;

    if (under_way[rank]) {
        status = dn_letters_test(letters[rank]);
    } else {
        ends[rank] = (ends_t){.super = {give, get}, .rank = rank};
        status = dn_letters_exchange(letters[rank], &ends[rank].super);
    }
    under_way[rank] = DN_INPROGRESS == status;
    if (DN_OK == status) {
        assert_int_equal(ends[rank].given, 1);
        for (uint32_t k = 0; k < forest.ranks; k++) {
            assert_int_equal(ends[rank].got[k], k != rank && edge[k][rank]);
        }
        done[rank]++;
    }
    return status;
}

/** How far two neighbors may be apart. */
static void check_distances(void)
{
    for (uint32_t i = 0; i < forest.ranks; i++) {
        for (uint32_t k = 0; k < forest.ranks; k++) {
            if (i != k && edge[i][k]) {
                assert_true(done[k] <= done[i] + 1 && done[i] <= done[k] + DN_LETTER_PLACES);
            }
        }
    }
}

static void run(uint64_t *random)
{
    const uint64_t rounds = dn_test_rounds(ROUNDS);
    unsigned long long turns = 0;
    uint32_t through = 0;

    key = dn_test_random(random);
    while (through < forest.ranks) {
        const uint32_t rank = (uint32_t) dn_test_below(random, forest.ranks);
        for (uint64_t n = 1 + dn_test_below(random, 10); 0 < n && done[rank] < rounds; n--) {
            assert_int_not_equal(turn(rank), DN_ERR_UNREACH);
        }
        check_distances();
        through = 0;
        for (uint32_t i = 0; i < forest.ranks; i++) {
            through += done[i] == rounds;
        }
        assert_true(turns++ < 4000000);
    }
}

/** Letters are counted in 64 bits, which no step may cut: the counters pass a limit amid the rounds. */
static void neighbors_of_any_graph(void **state)
{
    static const uint64_t limit[] = {0, UINT64_C(1) << 31, UINT64_C(1) << 32};

    for (uint32_t ranks = 2; ranks <= 9; ranks++) {
        uint64_t random = ranks;
        plant(ranks);
        for (uint64_t again = 0; again < 3; again++) {
            draw_edges(&random, 1 + again);
            meet(0 == ranks % 3 ? 0 : limit[ranks % 3] - 20);
            run(&random);
            for (uint32_t i = 0; i < ranks && again < 2; i++) {
                assert_int_equal(dn_letters_free(letters[i]), DN_OK);
            }
        }
        fell();
    }
}

/** Ranks 0 and 1 go on by themselves; rank 2 takes letters of rank 1 only, and holds rank 1 up when its area is full. */
static void only_neighbors_are_waited_for(void **state)
{
    plant(3);
    memset(edge, 0, sizeof(edge));
    edge[0][1] = edge[1][0] = 1;
    meet(0);
    for (int n = 0; n < 5 * (int) DN_LETTER_PLACES; n++) {
        assert_int_equal(turn(0), DN_INPROGRESS);
        assert_int_equal(turn(1), DN_OK);
        assert_int_equal(turn(0), DN_OK);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(dn_letters_free(letters[i]), DN_OK);
    }
    edge[1][2] = 1;
    meet(0);
    for (int n = 0; n < (int) DN_LETTER_PLACES; n++) {
        assert_int_equal(turn(0), DN_INPROGRESS);
        assert_int_equal(turn(1), DN_OK);
        assert_int_equal(turn(0), DN_OK);
    }
    assert_int_equal(turn(0), DN_INPROGRESS);
    assert_int_equal(turn(1), DN_INPROGRESS);
    assert_int_equal(ends[1].given, 0);
    assert_int_equal(turn(2), DN_OK);
    assert_int_equal(turn(1), DN_OK);
    assert_int_equal(dn_letters_free(letters[1]), DN_INPROGRESS);
    while (done[2] < done[1]) {
        assert_int_equal(turn(2), DN_OK);
    }
    assert_int_equal(turn(0), DN_OK);
    fell();
}

static int rings; /**< for any rank */

static void count_ring(dn_peer_t *peer)
{
    (void) peer;
    rings++;
}

static void only_neighbors_are_woken(void **state)
{
    plant(4);
    memset(edge, 0, sizeof(edge));
    edge[0][1] = edge[0][2] = 1;
    meet(0);
    for (uint32_t k = 0; k < 4; k++) {
        for (uint32_t i = 0; i < 4; i++) {
            forest.peer[k][i]->ops.wake = count_ring;
        }
    }
    assert_int_equal(turn(0), DN_OK);
    assert_int_equal(rings, 2);
    assert_int_equal(turn(1), DN_OK);
    assert_int_equal(rings, 3);
    assert_int_equal(turn(2), DN_OK);
    assert_int_equal(turn(3), DN_OK);
    assert_int_equal(rings, 4);
    fell();
}

/** @param gives  the lost rank was to give rank 0 a letter; or to read its letters */
static void lose_a_neighbor(int gives)
{
    dn_status_t status;
    int tests = 0;

    plant(3);
    memset(edge, 0, sizeof(edge));
    edge[2][0] = gives;
    edge[0][2] = !gives;
    meet(0);
    /* Rank 2 takes part in one round. */
    assert_int_equal(turn(gives ? 2 : 0), DN_OK);
    assert_int_equal(turn(gives ? 0 : 2), DN_OK);
    while (!gives && done[0] < 1 + DN_LETTER_PLACES) {
        assert_int_equal(turn(0), DN_OK);
    }
    dn_close(forest.port[2]);
    while (DN_INPROGRESS == (status = turn(0))) {
        assert_true(tests++ < 100000);
    }
    assert_int_equal(status, DN_ERR_UNREACH);
    assert_int_equal(turn(0), DN_ERR_UNREACH);
    assert_int_equal(dn_letters_free(letters[0]), DN_INPROGRESS);
    /* Not a neighbor: it goes on. */
    assert_int_equal(turn(1), DN_OK);
    for (uint32_t i = 0; i < 3; i++) {
        dn_letters_abandon(letters[i]);
    }
    forest.ranks = 2;
    forest_close(&forest);
}

static void a_lost_neighbor_ends_the_rounds(void **state)
{
    memset(under_way, 0, sizeof(under_way));
    lose_a_neighbor(1);
    lose_a_neighbor(0);
}

/** A line of four: the loss of the last one reaches the first, which is no neighbor of it. */
static void a_loss_goes_from_neighbor_to_neighbor(void **state)
{
    enum { RANKS = 4, LOST = RANKS - 1 };
    int going = LOST;

    plant(RANKS);
    memset(under_way, 0, sizeof(under_way));
    memset(edge, 0, sizeof(edge));
    for (uint32_t i = 0; i < LOST; i++) {
        edge[i][i + 1] = edge[i + 1][i] = 1;
    }
    meet(0);
    dn_close(forest.port[LOST]);
    for (int tests = 0; 0 < going; tests++) {
        assert_true(tests < 100000);
        going = 0;
        for (uint32_t i = 0; i < LOST; i++) {
            going += DN_ERR_UNREACH != turn(i);
        }
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        dn_letters_abandon(letters[i]);
    }
    forest.ranks = LOST;
    forest_close(&forest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbors_of_any_graph),
        cmocka_unit_test(only_neighbors_are_waited_for),
        cmocka_unit_test(only_neighbors_are_woken),
        cmocka_unit_test(a_lost_neighbor_ends_the_rounds),
        cmocka_unit_test(a_loss_goes_from_neighbor_to_neighbor),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
