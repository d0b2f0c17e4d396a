/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Sequences of random operations on trees of every shape, in which any rank runs ahead as far as it can: results are
 * those of a reference, the same bits everywhere, and no barrier is left early; also where numbers wrap around.
 */
#include "dn_config.h"

#include "dn_tree_forest.h"

enum { OPERATIONS = 400, WORDS = 16 * 7, BYTES = WORDS * 8 };

typedef enum kind {
    BARRIER,
    BCAST,
    REDUCE,
    ALLREDUCE,
    REALS,
    SCAN,
    EXSCAN,
    ALLGATHER,
    ALLTOALL,
    KINDS
} kind_t;

/** An operation as all ranks know it. */
typedef struct operation {
    kind_t kind;
    uint32_t root;
    size_t count; /**< words, or bytes of a broadcast or block */
    uint64_t key;
} operation_t;

static forest_t forest;
static operation_t operation[OPERATIONS];
static unsigned operations;     /**< of them, in each run */
static unsigned at[FOREST_MAX]; /**< operations that a rank has completed */
static int under_way[FOREST_MAX];
static uint8_t in[FOREST_MAX][FOREST_MAX * BYTES];
static uint8_t out[FOREST_MAX][FOREST_MAX * BYTES];
static double reals[OPERATIONS][WORDS]; /**< what the first rank got */

/** x -> a x + b, folded by composition: does not commute, and 2^32 makes it exact. */
typedef struct affine {
    uint32_t a;
    uint32_t b;
} affine_t;

static affine_t compose(affine_t left, affine_t right)
{
    return (affine_t){left.a * right.a, left.a * right.b + left.b};
}

static void fold_affine(const dn_tree_reduction_t *reduction, const void *left, void *right, size_t count)
{
    const affine_t *l = left;
    affine_t *r = right;

    assert_int_equal(reduction->size, sizeof(affine_t));
    for (size_t i = 0; i < count; i++) {
        r[i] = compose(l[i], r[i]);
    }
}

static void fold_sum(const dn_tree_reduction_t *reduction, const void *left, void *right, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ((double *) right)[i] += ((const double *) left)[i];
    }
}

static const dn_tree_reduction_t affine = {.fold = fold_affine, .size = sizeof(affine_t)};
static const dn_tree_reduction_t sum = {.fold = fold_sum, .size = sizeof(double)};

static affine_t operand(const operation_t *op, uint32_t rank, size_t i)
{
    uint64_t state = op->key + rank * 1000003 + i;
    const uint64_t x = dn_test_random(&state);

    return (affine_t){(uint32_t) x | 1, (uint32_t) (x >> 32)};
}

static void fill_operands(const operation_t *op, uint32_t rank)
{
    for (size_t i = 0; i < op->count; i++) {
        const affine_t x = operand(op, rank, i);
        if (REALS == op->kind) {
            /* Sums of these depend on their order. */
            ((double *) in[rank])[i] = (double) x.a * (0 == x.b % 3 ? 1e-9 : 1e9);
        } else {
            ((affine_t *) in[rank])[i] = x;
        }
    }
}

/** Does some rank, which is op->root, mark the operation? */
static int is_marked(const operation_t *op)
{
    return (ALLGATHER == op->kind || ALLTOALL == op->kind) && 0 == op->key % 4;
}

static dn_status_t start(uint32_t rank, const operation_t *op)
{
    dn_tree_t *tree = forest.tree[rank];
    const int in_place = 0 == op->key % 3;

    if (is_marked(op) && rank == op->root) {
        dn_tree_mark(tree);
    }

    switch (op->kind) {
    case BARRIER:
        return dn_tree_barrier(tree);
    case BCAST:
        dn_test_fill(in[rank], op->count, rank == op->root ? op->key : ~op->key);
        return dn_tree_bcast(tree, op->root, in[rank], op->count);
    case REDUCE:
        fill_operands(op, rank);
        return dn_tree_reduce(tree, op->root, in[rank], rank == op->root ? out[rank] : NULL, op->count,
                              &affine);
    case ALLREDUCE:
        fill_operands(op, rank);
        memcpy(out[rank], in[rank], op->count * sizeof(affine_t));
        return dn_tree_allreduce(tree, in_place ? out[rank] : in[rank], out[rank], op->count, &affine);
    case REALS:
        fill_operands(op, rank);
        return dn_tree_allreduce(tree, in[rank], out[rank], op->count, &sum);
    case SCAN:
    case EXSCAN:
        fill_operands(op, rank);
        if (in_place || (EXSCAN == op->kind && 0 == rank)) {
            memcpy(out[rank], in[rank], op->count * sizeof(affine_t));
        } else {
            dn_test_fill(out[rank], op->count * sizeof(affine_t), ~op->key);
        }
        return (SCAN == op->kind ? dn_tree_scan : dn_tree_exscan)(tree, in_place ? out[rank] : in[rank],
                                                                  out[rank], op->count, &affine);
    case ALLGATHER:
        dn_test_fill(in[rank], op->count, op->key + rank);
        return dn_tree_allgather(tree, in[rank], out[rank], op->count);
    default:
        for (uint32_t to = 0; to < forest.ranks; to++) {
            dn_test_fill(in[rank] + to * op->count, op->count, op->key + 100 * rank + to);
        }
        return dn_tree_alltoall(tree, in[rank], out[rank], op->count);
    }
}

/** The result is that of so many ranks, from the first on; of none, it is what was there. */
static void check_order(uint32_t rank, const operation_t *op, uint32_t ranks)
{
    for (size_t i = 0; i < op->count; i++) {
        affine_t wanted = operand(op, 0, i);
        for (uint32_t r = 1; r < ranks; r++) {
            wanted = compose(wanted, operand(op, r, i));
        }
        assert_memory_equal(&((affine_t *) out[rank])[i], &wanted, sizeof(wanted));
    }
}

static void check(uint32_t rank, const operation_t *op)
{
    const unsigned number = (unsigned) (op - operation);

    if (BARRIER == op->kind) {
        for (uint32_t r = 0; r < forest.ranks; r++) {
            assert_true(at[r] > number || (at[r] == number && under_way[r]));
        }
    } else if (BCAST == op->kind) {
        assert_int_equal(dn_test_mismatch(in[rank], op->count, op->key), op->count);
    } else if (REALS == op->kind) {
        if (0 == reals[number][0]) {
            memcpy(reals[number], out[rank], op->count * sizeof(double));
        }
        assert_memory_equal(reals[number], out[rank], op->count * sizeof(double));
    } else if (ALLREDUCE == op->kind || (REDUCE == op->kind && rank == op->root)) {
        check_order(rank, op, forest.ranks);
    } else if (SCAN == op->kind || EXSCAN == op->kind) {
        check_order(rank, op, rank + (SCAN == op->kind));
    } else if (ALLGATHER == op->kind || ALLTOALL == op->kind) {
        assert_int_equal(0 != dn_tree_is_marked(forest.tree[rank]), is_marked(op));
        for (uint32_t r = 0; r < forest.ranks; r++) {
            const uint64_t key = op->key + (ALLGATHER == op->kind ? r : 100 * r + rank);
            assert_int_equal(dn_test_mismatch(out[rank] + r * op->count, op->count, key), op->count);
        }
    }
}

static size_t most_of(kind_t kind)
{
    switch (kind) {
    case BCAST:
        return dn_tree_max(1);
    case ALLGATHER:
        return dn_tree_allgather_max(forest.tree[0]);
    case ALLTOALL:
        return dn_tree_alltoall_max(forest.tree[0]);
    case SCAN:
    case EXSCAN:
        return dn_tree_scan_max(forest.tree[0], sizeof(affine_t)) / sizeof(affine_t);
    default:
        return WORDS;
    }
}

static void draw_operations(uint64_t *random)
{
    const int ordered = dn_tree_ordered(forest.tree[0]);

    for (unsigned i = 0; i < operations; i++) {
        operation_t *op = &operation[i];
        /* Streams of one kind and root let ranks run ahead. */
        const int again = 0 < i && 0 != dn_test_below(random, 4);
        op->kind = again ? operation[i - 1].kind : (kind_t) dn_test_below(random, KINDS);
        op->root = again ? operation[i - 1].root : (uint32_t) dn_test_below(random, forest.ranks);
        op->key = dn_test_random(random);
        if (!ordered && (REDUCE == op->kind || ALLREDUCE == op->kind)) {
            op->kind = REALS;
        }
        if (0 == most_of(op->kind)) {
            op->kind = BARRIER;
        }
        const size_t max = most_of(op->kind);
        op->count = 1 + dn_test_below(random, 0 == dn_test_below(random, 2) && 7 < max ? 7 : max);
    }
}

/** One turn of a rank. @return 1: it has completed all. */
static int turn(uint32_t rank)
{
    if (operations == at[rank]) {
        return 1;
    }
    const operation_t *op = &operation[at[rank]];
    const dn_status_t status = under_way[rank] ? dn_tree_test(forest.tree[rank]) : start(rank, op);
    if (DN_INPROGRESS == status) {
        under_way[rank] = 1;
        return 0;
    }
    assert_int_equal(status, DN_OK);
    under_way[rank] = 1;
    check(rank, op);
    under_way[rank] = 0;
    at[rank]++;
    return operations == at[rank];
}

/** Run all; a rank that has its turn often has several in a row. */
static void run(uint64_t *random)
{
    unsigned long long turns = 0;
    uint32_t done = 0;

    memset(at, 0, sizeof(at));
    memset(under_way, 0, sizeof(under_way));
    memset(reals, 0, sizeof(reals));
    draw_operations(random);
    while (done < forest.ranks) {
        const uint32_t rank = (uint32_t) dn_test_below(random, forest.ranks);
        done = 0;
        for (uint64_t n = 1 + dn_test_below(random, 30); 0 < n; n--) {
            turn(rank);
        }
        for (uint32_t r = 0; r < forest.ranks; r++) {
            done += operations == at[r];
        }
        assert_true(turns++ < 4000000);
    }
}

static void draw_places(uint64_t *random, int sorted)
{
    for (uint32_t i = 0; i < forest.ranks; i++) {
        for (int key = 0; key < DN_TREE_KEYS; key++) {
            forest.place[i].key[key] =
                (uint32_t) (sorted ? i * (uint32_t) (key + 1) / 7 : dn_test_below(random, 3));
        }
    }
}

static void any_shape(uint32_t ranks, uint64_t seed)
{
    uint64_t random = seed;

    /* The numbers of the lines pass 2^31 or 2^32 early, or neither. */
    forest_open_at(
        &forest, ranks,
        0 == seed % 3 ? 0 : (uint32_t) ((UINT64_C(1) << (30 + seed % 3)) - 1 - dn_test_below(&random, 100)));
    for (int shape = 0; shape < 6; shape++) {
        draw_places(&random, shape % 2);
        forest.config = (dn_tree_config_t){
            .radix = 2 + (uint32_t) dn_test_below(&random, 8),
            .depth = 4u << dn_test_below(&random, 3),
        };
        forest_plant(&forest);
        for (uint32_t i = 0; i < ranks; i++) {
            dn_tree_set_spin(forest.tree[i], (uint32_t) shape % 4);
        }
        run(&random);
        forest_fell(&forest);
    }
    forest_close(&forest);
}

static void two_ranks(void **state)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        any_shape(2, seed);
    }
}

static void few_ranks(void **state)
{
    for (uint32_t ranks = 3; ranks <= 8; ranks++) {
        any_shape(ranks, ranks);
    }
}

static void many_ranks(void **state)
{
    any_shape(9, 9);
    any_shape(13, 13);
    any_shape(FOREST_MAX, FOREST_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ranks),
        cmocka_unit_test(few_ranks),
        cmocka_unit_test(many_ranks),
    };

    operations = dn_test_rounds(OPERATIONS);
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
