/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Sequences of random operations through areas, in which any rank runs ahead as far as it can: results are those of a
 * reference, the same bits everywhere, in place or not, shorter and longer than the ring of slots. A rank that is gone ends
 * the operation of the others.
 */
#include "dn_config.h"

#include "dn_tree_forest.h"
#include "dn_tree_long.h"

#include <stdlib.h>

enum { OPERATIONS = 60, RING = DN_TREE_LONG_RING, MOST = RING + 3 * DN_TREE_LONG_SLOT };

typedef enum kind { BCAST, REDUCE, ALLREDUCE, REALS, PART, SCAN, EXSCAN, EXCHANGE, GATHER, KINDS } kind_t;

/** An operation as all ranks know it. */
typedef struct operation {
    kind_t kind;
    uint32_t root;
    size_t len; /**< bytes */
    uint64_t key;
    int in_place;
} operation_t;

/** x -> a x + b modulo 2^32, composed: it does not commute. */
typedef struct affine {
    uint32_t a;
    uint32_t b;
} affine_t;

/** A rank's end of a broadcast. */
typedef struct ends {
    dn_tree_mover_t super;
    uint8_t *bytes;
    int is_root;
    size_t moved;
} ends_t;

/** A rank's end of an exchange. */
typedef struct blocks {
    dn_tree_blocks_t super;
    const operation_t *op;
    uint32_t rank;
    size_t given;
    size_t got[FOREST_MAX]; /**< from each rank */
} blocks_t;

static forest_t forest;
static dn_segment_t *segment[FOREST_MAX];
static void *area[FOREST_MAX][FOREST_MAX];
static dn_tree_long_t *lng[FOREST_MAX];
static int grouped; /**< the ranks learn in groups */
static operation_t operation[OPERATIONS];
static unsigned operations;     /**< of them, in each run */
static unsigned at[FOREST_MAX]; /**< operations that a rank has completed */
static int under_way[FOREST_MAX];
static ends_t ends[FOREST_MAX];
static blocks_t blocks[FOREST_MAX];
static uint8_t *in[FOREST_MAX], *out[FOREST_MAX];

static void fold_affine(const dn_tree_reduction_t *reduction, const void *before, void *after, size_t count)
{
    const affine_t *l = before;
    affine_t *r = after;

    assert_int_equal(reduction->size, sizeof(affine_t));
    assert_true(DN_TREE_LONG_SLOT >= count * sizeof(affine_t));
    for (size_t i = 0; i < count; i++) {
        r[i] = (affine_t){l[i].a * r[i].a, l[i].a * r[i].b + l[i].b};
    }
}

static void fold_sum(const dn_tree_reduction_t *reduction, const void *before, void *after, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ((double *) after)[i] += ((const double *) before)[i];
    }
}

static void join_affine(const dn_tree_reduction_t *reduction, const void *left, const void *right, void *to,
                        size_t count)
{
    memcpy(to, right, count * sizeof(affine_t));
    fold_affine(reduction, left, to, count);
}

static const dn_tree_reduction_t affine = {.fold = fold_affine, .size = sizeof(affine_t)};
static const dn_tree_reduction_t joined = {
    .fold = fold_affine, .join = join_affine, .size = sizeof(affine_t)};
static const dn_tree_reduction_t sum = {.fold = fold_sum, .size = sizeof(double)};

static void move(dn_tree_mover_t *mover, void *slot, size_t from, size_t len)
{
    ends_t *end = (ends_t *) mover;

    assert_int_equal(from, end->moved);
    end->moved += len;
    if (end->is_root) {
        memcpy(slot, end->bytes + from, len);
    } else {
        memcpy(end->bytes + from, slot, len);
    }
}

static uint8_t byte_of(const operation_t *op, uint32_t rank, size_t i)
{
    return (uint8_t) ((op->key + rank * 251 + i) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static void give(dn_tree_blocks_t *super, void *slot, size_t from, size_t len)
{
    blocks_t *own = (blocks_t *) super;

    assert_int_equal(from, own->given);
    assert_true(0 != from || own->op->len == len || DN_TREE_LONG_PIECE <= len);
    own->given += len;
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *) slot)[i] = byte_of(own->op, own->rank, from + i);
    }
}

static void get(dn_tree_blocks_t *super, uint32_t rank, const void *slot, size_t from, size_t len)
{
    blocks_t *own = (blocks_t *) super;

    assert_int_not_equal(rank, own->rank);
    assert_int_equal(from, own->got[rank]);
    assert_true(0 != from || own->op->len == len || DN_TREE_LONG_PIECE <= len);
    own->got[rank] += len;
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(((const uint8_t *) slot)[i], byte_of(own->op, rank, from + i));
    }
}

static affine_t operand(const operation_t *op, uint32_t rank, size_t i)
{
    const uint64_t x = (op->key + rank * 1000003 + i) * UINT64_C(0x9e3779b97f4a7c15);

    return (affine_t){(uint32_t) (x >> 17) | 1, (uint32_t) (x >> 32)};
}

/** Sums of these depend on their order. */
static double real(const operation_t *op, uint32_t rank, size_t i)
{
    const affine_t x = operand(op, rank, i);

    /* Rounded before it is added to another: where a processor multiplies and adds in one step, the compiler would have it do so. */
    const volatile double product = (double) x.a * (0 == x.b % 3 ? 1e-9 : 1e9);

    return product;
}

static void fill_operands(const operation_t *op, uint32_t rank, uint8_t *to)
{
    for (size_t i = 0; i < op->len / 8; i++) {
        if (REALS == op->kind) {
            ((double *) to)[i] = real(op, rank, i);
        } else {
            ((affine_t *) to)[i] = operand(op, rank, i);
        }
    }
}

/** Where the part of a rank begins, of those that are of any lengths, many of none. */
static size_t part_of(const operation_t *op, uint32_t rank)
{
    const size_t all = op->len / 8;
    const size_t cut = rank * (1 + op->key % 3) * all / forest.ranks;

    return rank == forest.ranks || all < cut ? all : cut;
}

/** Does some rank, which is op->root, mark the operation? */
static int is_marked(const operation_t *op)
{
    return EXCHANGE == op->kind && 0 == op->key % 4;
}

static dn_status_t start(uint32_t rank, const operation_t *op)
{
    uint8_t *from = op->in_place ? out[rank] : in[rank];
    const dn_tree_reduction_t *maps = 0 == op->key % 2 ? &affine : &joined;
    uint8_t *to = REDUCE != op->kind || rank == op->root ? out[rank] : NULL;

    if (BCAST == op->kind) {
        ends[rank] = (ends_t){.super = {move}, .bytes = in[rank], .is_root = rank == op->root};
        dn_test_fill(in[rank], op->len, rank == op->root ? op->key : ~op->key);
        return dn_tree_long_bcast(lng[rank], op->root, op->len, &ends[rank].super);
    }
    if (is_marked(op) && rank == op->root) {
        dn_tree_long_mark(lng[rank]);
    }
    if (EXCHANGE == op->kind || GATHER == op->kind) {
        blocks[rank] = (blocks_t){.super = {give, get}, .op = op, .rank = rank};
        return EXCHANGE == op->kind ? dn_tree_long_exchange(lng[rank], op->len, &blocks[rank].super)
                                    : dn_tree_long_gather(lng[rank], op->root, op->len, &blocks[rank].super);
    }
    fill_operands(op, rank, from);
    if (PART == op->kind) {
        const size_t first = part_of(op, rank);
        return dn_tree_long_reduce_part(lng[rank], from, out[rank], op->len / 8, first,
                                        part_of(op, rank + 1) - first, maps);
    }
    if (SCAN == op->kind || EXSCAN == op->kind) {
        if (op->in_place || (EXSCAN == op->kind && 0 == rank)) {
            fill_operands(op, rank, out[rank]);
        } else {
            dn_test_fill(out[rank], op->len, ~op->key);
        }
        return (SCAN == op->kind ? dn_tree_long_scan : dn_tree_long_exscan)(lng[rank], from, out[rank],
                                                                            op->len / 8, maps);
    }
    if (REDUCE == op->kind) {
        return dn_tree_long_reduce(lng[rank], op->root, from, to, op->len / 8, maps);
    }
    return dn_tree_long_allreduce(lng[rank], from, to, op->len / 8, ALLREDUCE == op->kind ? maps : &sum);
}

/** Elements from .. to - 1 of the result of so many ranks, from the first on, are there; of none, what was there. */
static void check_order(uint32_t rank, const operation_t *op, uint32_t ranks, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const uint32_t last = 0 == ranks ? 0 : ranks - 1;
        affine_t all = operand(op, last, i);
        for (uint32_t r = last; 0 < r--;) {
            const affine_t x = operand(op, r, i);
            fold_affine(&affine, &x, &all, 1);
        }
        assert_memory_equal(&((affine_t *) out[rank])[i - from], &all, sizeof(all));
    }
}

static void check_sums(uint32_t rank, const operation_t *op)
{
    for (size_t i = 0; i < op->len / 8; i++) {
        double all = real(op, forest.ranks - 1, i);
        for (uint32_t r = forest.ranks - 1; 0 < r--;) {
            const double x = real(op, r, i);
            fold_sum(&sum, &x, &all, 1);
        }
        assert_memory_equal(&((double *) out[rank])[i], &all, sizeof(all));
    }
}

/** The bytes were looked at as they came. */
static void check_blocks(uint32_t rank, const operation_t *op)
{
    const int is_root = GATHER == op->kind && rank == op->root;
    const int learns = !grouped || rank == op->root;

    if (EXCHANGE == op->kind) {
        assert_int_equal(0 != dn_tree_long_is_marked(lng[rank]), learns && is_marked(op));
    }
    assert_int_equal(blocks[rank].given, is_root ? 0 : op->len);
    for (uint32_t r = 0; r < forest.ranks; r++) {
        const int gets = r != rank && (EXCHANGE == op->kind || is_root);
        assert_int_equal(blocks[rank].got[r], gets ? op->len : 0);
    }
}

static void check(uint32_t rank, const operation_t *op)
{
    if (BCAST == op->kind) {
        assert_int_equal(ends[rank].moved, op->len);
        assert_int_equal(dn_test_mismatch(in[rank], op->len, op->key), op->len);
    } else if (EXCHANGE == op->kind || GATHER == op->kind) {
        check_blocks(rank, op);
    } else if (REALS == op->kind) {
        check_sums(rank, op);
    } else if (PART == op->kind) {
        check_order(rank, op, forest.ranks, part_of(op, rank), part_of(op, rank + 1));
    } else if (SCAN == op->kind || EXSCAN == op->kind) {
        check_order(rank, op, rank + (SCAN == op->kind), 0, op->len / 8);
    } else if (ALLREDUCE == op->kind || rank == op->root) {
        check_order(rank, op, forest.ranks, 0, op->len / 8);
    }
}

static void draw_operations(uint64_t *random)
{
    for (unsigned i = 0; i < operations; i++) {
        operation_t *op = &operation[i];
        /* Streams of one kind and root let ranks run ahead. */
        const int again = 0 < i && 0 != dn_test_below(random, 3);
        op->kind = again ? operation[i - 1].kind : (kind_t) dn_test_below(random, KINDS);
        op->root = again ? operation[i - 1].root : (uint32_t) dn_test_below(random, forest.ranks);
        op->key = dn_test_random(random);
        op->in_place = 0 == dn_test_below(random, 2);
        const uint64_t any = dn_test_below(random, 8);
        const size_t most = 0 == any ? MOST - 8 : 3 > any ? 200 : 40000;
        op->len = 8 + dn_test_length(random, most) / 8 * 8;
    }
}

/** One turn of a rank. */
static void turn(uint32_t rank)
{
    if (operations == at[rank]) {
        return;
    }
    const operation_t *op = &operation[at[rank]];
    const dn_status_t status = under_way[rank] ? dn_tree_long_test(lng[rank]) : start(rank, op);
    under_way[rank] = DN_INPROGRESS == status;
    if (!under_way[rank]) {
        assert_int_equal(status, DN_OK);
        check(rank, op);
        at[rank]++;
    }
}

/** Run all; a rank that has its turn often has several in a row. */
static void run(uint64_t *random)
{
    unsigned long long turns = 0;
    uint32_t done = 0;

    memset(at, 0, sizeof(at));
    draw_operations(random);
    while (done < forest.ranks) {
        const uint32_t rank = (uint32_t) dn_test_below(random, forest.ranks);
        for (uint64_t n = 1 + dn_test_below(random, 10); 0 < n; n--) {
            turn(rank);
        }
        done = 0;
        for (uint32_t r = 0; r < forest.ranks; r++) {
            done += operations == at[r];
        }
        assert_true(turns++ < 4000000);
    }
}

static void create(uint32_t rank)
{
    grouped = 0;
    const dn_tree_long_config_t config = {forest.ranks, rank, area[rank], forest.peer[rank]};

    assert_int_equal(dn_tree_long_create(&config, &lng[rank]), DN_OK);
}

static void plant(uint32_t ranks)
{
    dn_key_t key;

    forest_open(&forest, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        assert_int_equal(dn_segment_alloc(forest.port[i], DN_TREE_LONG_AREA, &segment[i]), DN_OK);
        in[i] = malloc(MOST);
        out[i] = malloc(MOST);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        for (uint32_t k = 0; k < ranks; k++) {
            dn_segment_key(segment[k], &key);
            assert_int_equal(dn_segment_map(forest.peer[i][k], &key, &area[i][k]), DN_OK);
        }
        create(i);
    }
}

static void fell(void)
{
    for (uint32_t i = 0; i < forest.ranks; i++) {
        assert_int_equal(dn_tree_long_free(lng[i]), DN_OK);
        free(in[i]);
        free(out[i]);
    }
    forest_close(&forest);
}

static void any_ranks(void **state)
{
    static const uint32_t ranks[] = {2, 3, 4, 7, 13};

    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        uint64_t random = ranks[i];
        plant(ranks[i]);
        for (int again = 0; again < (2 == ranks[i] ? 4 : 1); again++) {
            run(&random);
        }
        /* In places of the ring that are wherever the last operation ended. */
        const uint64_t first = dn_tree_long_lines(area[0][0]);
        for (uint32_t rank = 0; rank < ranks[i]; rank++) {
            dn_tree_long_begin(lng[rank], first, 1);
        }
        run(&random);
        fell();
    }
}

/** Packages, NUMA nodes and caches of any size; the ranks dealt out to them one after the other, or anyhow. */
static void draw_places(uint64_t *random)
{
    const int sorted = 0 == dn_test_below(random, 2);

    for (uint32_t i = 0; i < forest.ranks; i++) {
        for (int key = 1; key < DN_TREE_KEYS; key++) {
            forest.place[i].key[key] =
                (uint32_t) (sorted ? i * (uint32_t) (key + 1) / 7 : dn_test_below(random, 3));
        }
    }
}

/** Have the ranks learn in groups, from where all have come to on. */
static void form_groups(uint64_t *random, uint64_t first)
{
    const uint32_t radix = 2 + (uint32_t) dn_test_below(random, 5);
    const int dense = 0 == dn_test_below(random, 2);

    draw_places(random);
    for (uint32_t i = 0; i < forest.ranks; i++) {
        assert_int_equal(dn_tree_long_group(lng[i], radix, forest.place), DN_OK);
        dn_tree_long_begin(lng[i], first, dense);
    }
    grouped = 2 < forest.ranks;
}

/** Areas serve several communicators, with groups and without. */
static void any_groups(void **state)
{
    for (uint32_t ranks = 2; ranks <= 17; ranks++) {
        uint64_t random = ranks;
        plant(ranks);
        /* Lines are counted in 64 bits, which no step may cut: the ranks pass a limit amid their operations. */
        const uint64_t limit = 0 == ranks % 3 ? 1000 : UINT64_C(1) << (30 + ranks % 3);
        form_groups(&random, limit - 1000 * operations / OPERATIONS);
        run(&random);
        assert_true(limit < dn_tree_long_lines(area[0][0]));
        for (int again = 0; again < 2; again++) {
            const uint64_t first = dn_tree_long_lines(area[0][0]);
            for (uint32_t i = 0; i < ranks; i++) {
                assert_int_equal(dn_tree_long_free(lng[i]), DN_OK);
            }
            for (uint32_t i = 0; i < ranks; i++) {
                create(i);
                dn_tree_long_begin(lng[i], first, 0);
            }
            if (0 != again) {
                form_groups(&random, first);
            }
            run(&random);
        }
        fell();
    }
}

/** Dense short pieces let a root run ahead by what a ring holds, and no further. */
static void a_root_runs_ahead_by_a_ring(void **state)
{
    enum { LINES = RING / 64, LEN = 60 };

    plant(3);
    for (uint32_t i = 0; i < 3; i++) {
        dn_tree_long_begin(lng[i], 5, 1);
        ends[i] = (ends_t){.super = {move}, .bytes = in[i], .is_root = 0 == i};
    }
    for (int n = 0; n <= LINES; n++) {
        dn_test_fill(in[0], LEN, (uint64_t) n);
        ends[0].moved = 0;
        assert_int_equal(dn_tree_long_bcast(lng[0], 0, LEN, &ends[0].super),
                         n < LINES ? DN_OK : DN_INPROGRESS);
    }
    for (uint32_t i = 1; i < 3; i++) {
        for (int n = 0; n < LINES; n++) {
            ends[i].moved = 0;
            /* Until the last has taken what lies in the first place. */
            assert_int_equal(dn_tree_long_test(lng[0]), 2 == i && 0 < n ? DN_OK : DN_INPROGRESS);
            assert_int_equal(dn_tree_long_bcast(lng[i], 0, LEN, &ends[i].super), DN_OK);
            assert_int_equal(dn_test_mismatch(in[i], LEN, (uint64_t) n), LEN);
        }
    }
    for (uint32_t i = 1; i < 3; i++) {
        ends[i].moved = 0;
        assert_int_equal(dn_tree_long_bcast(lng[i], 0, LEN, &ends[i].super), DN_OK);
        assert_int_equal(dn_test_mismatch(in[i], LEN, LINES), LEN);
    }
    fell();
}

/** The root of a broadcast is through before the others have begun; its area is not to be had before they have taken it. */
static void an_area_is_freed_when_all_have_taken(void **state)
{
    enum { LEN = 1000 };

    plant(3);
    for (uint32_t i = 0; i < 3; i++) {
        ends[i] = (ends_t){.super = {move}, .bytes = in[i], .is_root = 0 == i};
        dn_test_fill(in[i], LEN, i);
    }
    assert_int_equal(dn_tree_long_bcast(lng[0], 0, LEN, &ends[0].super), DN_OK);
    assert_int_equal(dn_tree_long_free(lng[0]), DN_INPROGRESS);
    assert_int_equal(dn_tree_long_bcast(lng[1], 0, LEN, &ends[1].super), DN_OK);
    assert_int_equal(dn_tree_long_free(lng[0]), DN_INPROGRESS);
    assert_int_equal(dn_tree_long_bcast(lng[2], 0, LEN, &ends[2].super), DN_OK);
    assert_int_equal(dn_test_mismatch(in[2], LEN, 0), LEN);
    fell();
}

/** Who is free first takes its area for the next communicator, whose set-up goes on while the other still has to be freed;
 * areas that have served as often as others, or more often, then serve together. */
static void an_area_that_serves_again_does_not_hold_others_up(void **state)
{
    enum { LEN = 1000 };
    uint64_t random = 1;
    uint64_t first;

    plant(2);
    for (uint32_t i = 0; i < 2; i++) {
        ends[i] = (ends_t){.super = {move}, .bytes = in[i], .is_root = 1 == i};
    }
    assert_int_equal(dn_tree_long_bcast(lng[1], 1, LEN, &ends[1].super), DN_OK);
    assert_int_equal(dn_tree_long_free(lng[1]), DN_INPROGRESS);
    assert_int_equal(dn_tree_long_bcast(lng[0], 1, LEN, &ends[0].super), DN_OK);
    assert_int_equal(dn_tree_long_free(lng[0]), DN_OK);
    first = dn_tree_long_lines(area[0][0]);
    assert_int_equal(first, dn_tree_long_lines(area[1][1]));
    create(0);
    dn_tree_long_begin(lng[0], first, 0);
    assert_int_equal(dn_tree_long_free(lng[1]), DN_OK);
    assert_int_equal(dn_tree_long_free(lng[0]), DN_OK);

    first += 3;
    for (uint32_t i = 0; i < 2; i++) {
        create(i);
        dn_tree_long_begin(lng[i], first, 0);
    }
    run(&random);
    assert_true(first < dn_tree_long_lines(area[0][0]));
    fell();
}

static int rings; /**< for any rank */

static void count_ring(dn_peer_t *peer)
{
    (void) peer;
    rings++;
}

/** However many pieces a rank goes on by in a test, it looks at the bell of each other one once. */
static void each_is_woken_once_a_test(void **state)
{
    enum { RANKS = 3 };

    plant(RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        ends[i] = (ends_t){.super = {move}, .bytes = in[i], .is_root = 0 == i};
        dn_test_fill(in[i], RING, i);
        for (uint32_t k = 0; k < RANKS; k++) {
            forest.peer[i][k]->ops.wake = count_ring;
        }
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        rings = 0;
        assert_int_equal(dn_tree_long_bcast(lng[i], 0, RING, &ends[i].super), DN_OK);
        assert_int_equal(rings, RANKS - 1);
        assert_int_equal(dn_test_mismatch(in[i], RING, 0), RING);
    }
    fell();
}

/** An operation that is longer than the ring. @param in_groups  by pairs: the last rank stands alone. */
static void lose_a_rank(kind_t kind, uint32_t root, int in_groups, int dense)
{
    const operation_t op = {.kind = kind, .root = root, .len = MOST - 8};
    dn_status_t status;
    int tests = 0;

    plant(3);
    for (uint32_t i = 0; i < 3; i++) {
        if (in_groups) {
            assert_int_equal(dn_tree_long_group(lng[i], 2, NULL), DN_OK);
        }
        dn_tree_long_begin(lng[i], 0, dense);
    }
    dn_close(forest.port[2]);
    status = start(0, &op);
    while (DN_INPROGRESS == status) {
        assert_true(tests++ < 100000);
        status = dn_tree_long_test(lng[0]);
    }
    assert_int_equal(status, DN_ERR_UNREACH);
    assert_int_equal(start(0, &op), DN_ERR_UNREACH);
    assert_int_equal(dn_tree_long_free(lng[0]), DN_INPROGRESS);
    for (uint32_t i = 0; i < 3; i++) {
        dn_tree_long_abandon(lng[i]);
        free(in[i]);
        free(out[i]);
    }
    forest.ranks = 2;
    forest_close(&forest);
}

static void a_lost_rank_ends_the_operation(void **state)
{
    for (int in_groups = 0; in_groups < 2; in_groups++) {
        for (int dense = 0; dense < 2; dense++) {
            for (kind_t kind = 0; kind < KINDS; kind++) {
                lose_a_rank(kind, 0, in_groups, dense);
                lose_a_rank(kind, 2, in_groups, dense);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_ranks),
        cmocka_unit_test(any_groups),
        cmocka_unit_test(a_root_runs_ahead_by_a_ring),
        cmocka_unit_test(an_area_is_freed_when_all_have_taken),
        cmocka_unit_test(an_area_that_serves_again_does_not_hold_others_up),
        cmocka_unit_test(each_is_woken_once_a_test),
        cmocka_unit_test(a_lost_rank_ends_the_operation),
    };

    operations = dn_test_rounds(OPERATIONS);
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
