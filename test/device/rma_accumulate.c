/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Accumulates: every operation on every element gives what a plain loop gives, wherever the elements lie, and calls of several
 * processes take effect one after the other, each as a whole.
 */
#include "dn_config.h"

#include "rma_world.h"

#include "dn_acc.h"

#include <sched.h>
#include <string.h>

enum { BYTES = 512, CALLS = 6000, DRAWN = 20000, GUARD = 64 };

static dn_status_t wait_for_guard(const dn_guard_t *guard)
{
    while (0 != dn_guard_try(guard)) {
        sched_yield();
    }
    return DN_OK;
}

/** dn_guard_close_fn_t, where nobody else is. */
static int keep_all_off(const dn_guard_t *guard, uint64_t len)
{
    (void) guard;
    (void) len;
    return 1;
}

/** A pair as MPI's MAXLOC has it, with a gap behind it and one between its parts. */
typedef struct pair {
    int32_t index;
    double value;
    int32_t last;
} pair_t;

/** dn_element_reduce_fn_t */
static void greatest(const void *arg, dn_acc_op_t op, void *at, const void *operand, uint64_t n)
{
    pair_t *to = at;
    const pair_t *from = operand;

    dn_check(arg == &greatest);
    dn_check_equal(op, DN_ACC_MAXLOC);
    dn_check_equal((uintptr_t) at % _Alignof(pair_t) + (uintptr_t) operand % _Alignof(pair_t), 0);
    for (uint64_t i = 0; i < n; i++) {
        if (from[i].value > to[i].value) {
            to[i].value = from[i].value;
            to[i].index = from[i].index;
            to[i].last = from[i].last;
        }
    }
}

static dn_element_t element_of(dn_element_kind_t kind, uint32_t size)
{
    return (dn_element_t){.size = size, .extent = size, .align = size, .kind = kind};
}

static const dn_element_t u8 = {.size = 1, .extent = 1, .align = 1, .kind = DN_ELEMENT_UNSIGNED};
static const dn_element_t u32 = {.size = 4, .extent = 4, .align = 4, .kind = DN_ELEMENT_UNSIGNED};
static const dn_element_t i64 = {.size = 8, .extent = 8, .align = 8, .kind = DN_ELEMENT_SIGNED};
static const dn_element_t f64 = {.size = 8, .extent = 8, .align = 8, .kind = DN_ELEMENT_FLOAT};

/** The guard of memory that all share, as this process takes it. */
static dn_guard_t guard_by(const dn_world_t *world, uint32_t *word)
{
    return (dn_guard_t){.word = word, .owner = (uint32_t) world->rank + 1, .wait = wait_for_guard};
}

/** What one element becomes, by arithmetic of 64 bits. */
static void naive_word(const dn_element_t *element, dn_acc_op_t op, uint8_t *at, const uint8_t *operand)
{
    uint64_t a = 0, b = 0, c;

    memcpy(&a, at, element->size);
    memcpy(&b, operand, element->size);
    const unsigned shift = 64 - 8 * element->size;
    const int64_t sa = (int64_t) (a << shift) >> shift, sb = (int64_t) (b << shift) >> shift;
    const int less = DN_ELEMENT_SIGNED == element->kind ? sa < sb : a < b;
    switch (op) {
    case DN_ACC_SUM:
        c = a + b;
        break;
    case DN_ACC_BAND:
        c = a & b;
        break;
    case DN_ACC_BOR:
        c = a | b;
        break;
    case DN_ACC_BXOR:
        c = a ^ b;
        break;
    case DN_ACC_MAX:
        c = less ? b : a;
        break;
    case DN_ACC_MIN:
        c = less ? a : b;
        break;
    case DN_ACC_PROD:
        c = a * b;
        break;
    case DN_ACC_LAND:
        c = 0 != a && 0 != b;
        break;
    case DN_ACC_LOR:
        c = 0 != a || 0 != b;
        break;
    case DN_ACC_LXOR:
        c = (0 != a) != (0 != b);
        break;
    case DN_ACC_NO_OP:
        c = a;
        break;
    default:
        c = b;
        break;
    }
    memcpy(at, &c, element->size);
}

static double naive_number(dn_acc_op_t op, double a, double b)
{
    switch (op) {
    case DN_ACC_SUM:
        return a + b;
    case DN_ACC_PROD:
        return a * b;
    case DN_ACC_MAX:
        return a > b ? a : b;
    case DN_ACC_MIN:
        return a < b ? a : b;
    case DN_ACC_NO_OP:
        return a;
    default:
        return b;
    }
}

static void naive(const dn_element_t *element, dn_acc_op_t op, uint8_t *at, const uint8_t *operand)
{
    if (DN_ELEMENT_FLOAT != element->kind) {
        naive_word(element, op, at, operand);
    } else if (sizeof(float) == element->size) {
        float a, b;
        memcpy(&a, at, sizeof(a));
        memcpy(&b, operand, sizeof(b));
        a = (float) naive_number(op, (double) a, (double) b);
        memcpy(at, &a, sizeof(a));
    } else {
        double a, b;
        memcpy(&a, at, sizeof(a));
        memcpy(&b, operand, sizeof(b));
        a = naive_number(op, a, b);
        memcpy(at, &a, sizeof(a));
    }
}

/** Numbers whose sums and products are exact; words of any bits, zeros among them. */
static void fill(const dn_element_t *element, uint8_t *at, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++) {
        const double number = (double) dn_test_below(random, 64) - 32;
        const float single = (float) number;
        const uint64_t word = 0 == dn_test_below(random, 3) ? 0 : dn_test_random(random);
        const void *from = DN_ELEMENT_FLOAT != element->kind ? (const void *) &word
                           : sizeof(float) == element->size  ? (const void *) &single
                                                             : (const void *) &number;
        memcpy(at + i * element->size, from, element->size);
    }
}

static const struct {
    dn_element_kind_t kind;
    uint32_t size;
} kinds[] = {
    {DN_ELEMENT_UNSIGNED, 1}, {DN_ELEMENT_UNSIGNED, 2}, {DN_ELEMENT_UNSIGNED, 4}, {DN_ELEMENT_UNSIGNED, 8},
    {DN_ELEMENT_SIGNED, 1},   {DN_ELEMENT_SIGNED, 2},   {DN_ELEMENT_SIGNED, 4},   {DN_ELEMENT_SIGNED, 8},
    {DN_ELEMENT_FLOAT, 4},    {DN_ELEMENT_FLOAT, 8},
};

static dn_acc_op_t draw_op(const dn_element_t *element, uint64_t *random)
{
    static const dn_acc_op_t of_numbers[] = {DN_ACC_SUM, DN_ACC_PROD,    DN_ACC_MAX,
                                             DN_ACC_MIN, DN_ACC_REPLACE, DN_ACC_NO_OP};

    return DN_ELEMENT_FLOAT == element->kind ? of_numbers[dn_test_below(random, 6)]
                                             : (dn_acc_op_t) dn_test_below(random, DN_ACC_MAXLOC);
}

/** Side by side, or by a layout, which every other element is. */
static void run_one(const dn_guard_t *guard, const dn_element_t *element, dn_acc_op_t op, uint8_t *at,
                    const uint8_t *operand, uint8_t *result, size_t n, size_t stride, bool by_layout)
{
    const dn_prog_op_t row = {
        .kind = DN_PROG_RUN, .len = element->size, .count = n, .stride = (int64_t) stride};
    dn_acc_walk_t walk = {.guard = guard, .element = *element, .op = op, .fetches = NULL != result};
    dn_prog_t *prog;

    if (element->size == stride && !by_layout) {
        dn_check_equal(dn_acc_apply(guard, element, op, at, operand, result, n), DN_OK);
        return;
    }
    dn_check_equal(dn_prog_create(&row, 1, &prog), DN_OK);
    const dn_prog_use_t use = {prog, 1, 0};
    dn_prog_start(&walk.target, &use, (uintptr_t) at);
    dn_prog_start_bytes(&walk.origin, (uintptr_t) operand, n * element->size);
    dn_prog_start_bytes(&walk.result, (uintptr_t) result, n * element->size);
    dn_check_equal(dn_acc_walk(&walk, n * element->size), DN_OK);
    dn_prog_free(prog);
}

static void every_operation_gives_what_a_loop_gives(dn_world_t *world)
{
    static uint8_t memory[GUARD + 2 * BYTES + GUARD], model[sizeof(memory)];
    static uint8_t operand[BYTES + 8], result[BYTES + 8], before[BYTES];
    uint64_t random = 1;
    uint32_t word = 0;

    (void) world;
    for (int i = 0; i < DRAWN; i++) {
        const size_t kind = dn_test_below(&random, sizeof(kinds) / sizeof(kinds[0]));
        const dn_element_t element = element_of(kinds[kind].kind, kinds[kind].size);
        const dn_guard_t guard = {.word = 0 == dn_test_below(&random, 4) ? NULL : &word,
                                  .owner = 1,
                                  .wait = wait_for_guard,
                                  .close = 0 == dn_test_below(&random, 2) ? NULL : keep_all_off};
        const dn_acc_op_t op = draw_op(&element, &random);
        const size_t n = 1 + dn_test_below(&random, 0 == i % 2 ? 6 : BYTES / element.size - 8);
        const size_t stride = element.size * (1 + dn_test_below(&random, 2));
        const size_t odd = dn_test_below(&random, 8);
        const int fetches = DN_ACC_NO_OP == op || 0 != dn_test_below(&random, 2);
        uint8_t *at = memory + GUARD + (0 == dn_test_below(&random, 3) ? odd : odd * element.size);

        dn_test_fill(memory, sizeof(memory), (uint64_t) i);
        fill(&element, operand + odd, n, &random);
        for (size_t k = 0; k < n; k++) {
            fill(&element, at + k * stride, 1, &random);
        }
        memcpy(model, memory, sizeof(memory));
        for (size_t k = 0; k < n; k++) {
            memcpy(before + k * element.size, at + k * stride, element.size);
            naive(&element, op, model + (at - memory) + k * stride, operand + odd + k * element.size);
        }
        run_one(&guard, &element, op, at, DN_ACC_NO_OP == op ? NULL : operand + odd,
                fetches ? result + odd : NULL, n, stride, 0 == dn_test_below(&random, 4));
        dn_check_equal(memcmp(memory, model, sizeof(memory)), 0);
        if (fetches) {
            dn_check_equal(memcmp(result + odd, before, n * element.size), 0);
        }
        dn_check_equal(word, 0);
    }
}

/** A walk packs results by the chunk: here words lie in rows to each side of an element that is not aligned, which is near the chunk's
 * end. */
static void an_odd_element_leaves_the_results_in_order(dn_world_t *world)
{
    enum { CHUNK = 4096, STRIDE = 32, ODD = 11, MORE = 40 };
    static uint8_t memory[STRIDE * (CHUNK / 2 + MORE)], model[sizeof(memory)];
    static uint8_t operand[CHUNK + 8 * MORE], result[sizeof(operand)], before[sizeof(operand)];
    uint64_t random = 1;
    uint32_t word = 0;
    const dn_guard_t guard = {.word = &word, .owner = 1, .wait = wait_for_guard};

    (void) world;
    for (uint32_t size = 2; size <= 8; size *= 2) {
        const dn_element_t element = element_of(DN_ELEMENT_UNSIGNED, size);
        const uint64_t n = CHUNK / size + MORE;
        for (uint64_t odd = CHUNK / size - 3; odd <= CHUNK / size + 1; odd++) {
            const dn_prog_op_t rows[] = {
                {.kind = DN_PROG_RUN, .len = size, .count = odd, .stride = STRIDE},
                {.kind = DN_PROG_RUN, .at = (int64_t) (STRIDE * odd + ODD), .len = size, .count = 1},
                {.kind = DN_PROG_RUN,
                 .at = (int64_t) (STRIDE * (odd + 1)),
                 .len = size,
                 .count = n - odd - 1,
                 .stride = STRIDE},
            };
            dn_acc_walk_t walk = {.guard = &guard, .element = element, .op = DN_ACC_SUM, .fetches = 1};
            dn_prog_t *prog;

            dn_test_fill(memory, sizeof(memory), odd);
            dn_test_fill(result, sizeof(result), odd);
            fill(&element, operand, n, &random);
            memcpy(model, memory, sizeof(memory));
            for (uint64_t i = 0; i < n; i++) {
                uint8_t *at = model + STRIDE * i + (odd == i ? ODD : 0);
                memcpy(before + i * size, at, size);
                naive(&element, DN_ACC_SUM, at, operand + i * size);
            }
            dn_check_equal(dn_prog_create(rows, 3, &prog), DN_OK);
            const dn_prog_use_t use = {prog, 1, 0};
            dn_prog_start(&walk.target, &use, (uintptr_t) memory);
            dn_prog_start_bytes(&walk.origin, (uintptr_t) operand, n * size);
            dn_prog_start_bytes(&walk.result, (uintptr_t) result, n * size);
            dn_check_equal(dn_acc_walk(&walk, n * size), DN_OK);
            dn_prog_free(prog);
            dn_check_equal(memcmp(memory, model, sizeof(memory)), 0);
            dn_check_equal(memcmp(result, before, n * size), 0);
        }
    }
}

static void foreign_pairs_keep_their_gaps(dn_world_t *world)
{
    static const dn_prog_op_t parts[] = {
        {.kind = DN_PROG_RUN, .at = 0, .len = 4, .count = 1},
        {.kind = DN_PROG_RUN, .at = offsetof(pair_t, value), .len = 12, .count = 1},
    };
    uint8_t room[8 * sizeof(pair_t) + 1] __attribute__((aligned(64)));
    pair_t operands[4] = {{10, 1.5, 11}, {20, -7.0, 21}, {30, 9.0, 31}, {40, 0.0, 41}};
    uint8_t packed[4 * 16], old[4 * 16];
    dn_element_t element = {.size = 16,
                            .extent = sizeof(pair_t),
                            .align = _Alignof(pair_t),
                            .kind = DN_ELEMENT_FOREIGN,
                            .reduce = greatest,
                            .arg = &greatest};
    uint32_t word = 0;
    const dn_guard_t guard = {.word = &word, .owner = 1, .wait = wait_for_guard};
    dn_prog_t *layout;

    (void) world;
    dn_check_equal(dn_prog_create(parts, 2, &layout), DN_OK);
    for (size_t odd = 0; odd < 2; odd++) {
        const dn_prog_use_t use = {layout, 4, sizeof(pair_t)}, packs = {layout, 4, sizeof(pair_t)};
        dn_acc_walk_t walk = {.guard = &guard, .element = element, .op = DN_ACC_MAXLOC, .fetches = 1};
        dn_prog_cursor_t from;

        memset(room, 0x5a, sizeof(room));
        for (int i = 0; i < 4; i++) {
            const pair_t zero = {i, 0.5, -i};
            memcpy(room + odd + (size_t) i * sizeof(pair_t), &zero.index, 4);
            memcpy(room + odd + (size_t) i * sizeof(pair_t) + 8, &zero.value, 12);
        }
        dn_prog_start(&from, &packs, (uintptr_t) operands);
        (void) dn_prog_gather(packed, &from, sizeof(packed));
        dn_prog_start(&walk.target, &use, (uintptr_t) room + odd);
        dn_prog_start_bytes(&walk.origin, (uintptr_t) packed, sizeof(packed));
        dn_prog_start_bytes(&walk.result, (uintptr_t) old, sizeof(old));
        dn_check_equal(dn_acc_walk(&walk, sizeof(packed)), DN_ERR_UNSUPPORTED);
        walk.element.layout = layout;
        dn_check_equal(dn_acc_walk(&walk, sizeof(packed)), DN_OK);
        for (int i = 0; i < 4; i++) {
            const int wins = operands[i].value > 0.5;
            pair_t is;
            memcpy(&is, room + odd + (size_t) i * sizeof(pair_t), sizeof(is));
            dn_check_equal(is.index, wins ? operands[i].index : i);
            dn_check_equal(is.last, wins ? operands[i].last : -i);
            dn_check(is.value == (wins ? operands[i].value : 0.5));
            dn_check_equal(((const uint8_t *) &is)[4], 0x5a);
            dn_check_equal(((const uint8_t *) &is)[sizeof(is) - 1], 0x5a);
            memcpy(&is.value, old + 16 * i + 4, sizeof(is.value));
            dn_check(0.5 == is.value);
        }
    }
    dn_prog_free(layout);
}

static void a_layout_that_cuts_an_element_is_refused(dn_world_t *world)
{
    static const dn_prog_op_t cut = {.kind = DN_PROG_RUN, .len = 3, .count = 4, .stride = 8};
    const dn_element_t element = element_of(DN_ELEMENT_SIGNED, 4);
    uint8_t memory[32] = {0}, operand[12] = {1};
    uint32_t word = 0;
    const dn_guard_t guard = {.word = &word, .owner = 1, .wait = wait_for_guard};
    dn_acc_walk_t walk = {.guard = &guard, .element = element, .op = DN_ACC_SUM};
    dn_prog_t *prog;

    (void) world;
    dn_check_equal(dn_prog_create(&cut, 1, &prog), DN_OK);
    const dn_prog_use_t use = {prog, 1, 0};
    dn_prog_start(&walk.target, &use, (uintptr_t) memory);
    dn_prog_start_bytes(&walk.origin, (uintptr_t) operand, sizeof(operand));
    dn_check_equal(dn_acc_walk(&walk, sizeof(operand)), DN_ERR_PARAM);
    dn_check_equal(word, 0);
    dn_prog_free(prog);
}

/** Bytes that make one word change by it: with calls on that word, on its halves and on its bytes. */
static void halves_of_a_word_take_effect_as_a_whole(dn_world_t *world)
{
    typedef struct shared {
        uint32_t guard;
        uint32_t pad[15];
        uint32_t sums[2];
        uint8_t bytes[4];
        uint8_t pad_bytes[4];
        uint32_t replaced[2];
        int64_t greatest;
    } shared_t;
    dn_segment_t *segment;
    shared_t *shared = rma_share(world, sizeof(*shared), &segment);
    const dn_guard_t guard = guard_by(world, &shared->guard);
    const uint32_t ones[2] = {1, 1};
    const uint8_t byte_ones[4] = {1, 1, 1, 1};
    const int64_t both = 1 + ((int64_t) 1 << 32);

    for (int i = 0; i < CALLS; i++) {
        const uint32_t mark = (uint32_t) (i * world->size + world->rank);
        const uint32_t marks[2] = {mark, mark};
        const int64_t next = mark;
        uint32_t seen[2];

        dn_check_equal(
            dn_acc_apply(&guard, &u32, DN_ACC_SUM, shared->sums, ones, 0 == i % 2 ? seen : NULL, 2), DN_OK);
        dn_check_equal(dn_acc_apply(&guard, &u32, DN_ACC_SUM, &shared->sums[i % 2], ones, NULL, 1), DN_OK);
        dn_check_equal(dn_acc_apply(&guard, &i64, DN_ACC_SUM, shared->sums, &both, NULL, 1), DN_OK);
        dn_check_equal(dn_acc_apply(&guard, &u8, DN_ACC_SUM, shared->bytes, byte_ones, NULL, 4), DN_OK);
        dn_check_equal(
            dn_acc_apply(&guard, &u8, DN_ACC_REPLACE, shared->replaced, marks, NULL, sizeof(marks)), DN_OK);
        dn_check_equal(dn_acc_apply(&guard, &u32, DN_ACC_NO_OP, shared->replaced, NULL, seen, 2), DN_OK);
        dn_check_equal(seen[0], seen[1]);
        dn_check_equal(dn_acc_apply(&guard, &u32, DN_ACC_MAX, shared->replaced, marks, seen, 2), DN_OK);
        dn_check_equal(seen[0], seen[1]);
        dn_check_equal(dn_acc_apply(&guard, &i64, DN_ACC_MAX, &shared->greatest, &next, NULL, 1), DN_OK);
        dn_check(next <= dn_load_acquire(&shared->greatest));
    }
    dn_world_barrier(world);
    const uint32_t all = (uint32_t) (CALLS * world->size);
    dn_check_equal(shared->sums[0], 2 * all + all / 2);
    dn_check_equal(shared->sums[1], 2 * all + all / 2);
    for (int k = 0; k < 4; k++) {
        dn_check_equal(shared->bytes[k], (uint8_t) all);
    }
    dn_check_equal(shared->greatest, all - 1);
    rma_stop(world, segment);
}

/** Rows of words, bytes and floating-point numbers that are replaced are read as they were written, and sums lose nothing. */
static void calls_of_several_take_effect_as_a_whole(dn_world_t *world)
{
    typedef struct shared {
        uint32_t guard;
        uint32_t pad[15];
        uint32_t row[24];
        double numbers[12];
        int64_t sum[4];
        uint8_t unaligned[24];
        uint32_t swapped;
    } shared_t;
    dn_segment_t *segment;
    shared_t *shared = rma_share(world, sizeof(*shared), &segment);
    const dn_guard_t guard = guard_by(world, &shared->guard);
    const int64_t ones[4] = {1, 1, 1, 1};

    for (int i = 0; i < CALLS; i++) {
        uint32_t row[24], seen[24];
        double numbers[12], last[12];

        for (int k = 0; k < 24; k++) {
            row[k] = (uint32_t) (i * world->size + world->rank);
        }
        for (int k = 0; k < 12; k++) {
            numbers[k] = row[0];
        }
        dn_check_equal(dn_acc_apply(&guard, &u32, DN_ACC_REPLACE, shared->row, row, seen, 24), DN_OK);
        for (int k = 1; k < 24; k++) {
            dn_check_equal(seen[k], seen[0]);
        }
        /* The same words, as bytes. */
        dn_check_equal(dn_acc_apply(&guard, &u8, DN_ACC_NO_OP, shared->row, NULL, seen, sizeof(seen)), DN_OK);
        for (int k = 1; k < 24; k++) {
            dn_check_equal(seen[k], seen[0]);
        }
        dn_check_equal(dn_acc_apply(&guard, &f64, DN_ACC_REPLACE, shared->numbers, numbers, last, 12), DN_OK);
        for (int k = 1; k < 12; k++) {
            dn_check(last[k] == last[0]);
        }
        dn_check_equal(dn_acc_apply(&guard, &i64, DN_ACC_SUM, shared->sum, ones, NULL, 1 + (uint64_t) i % 4),
                       DN_OK);
        dn_check_equal(dn_acc_apply(&guard, &i64, DN_ACC_SUM, shared->unaligned + 3, ones, NULL, 2), DN_OK);
        uint32_t was, next;
        do {
            was = dn_load_acquire_u32(&shared->swapped);
            next = was + 1;
            seen[0] = was;
            dn_check_equal(dn_acc_swap(&guard, &u32, &shared->swapped, &next, &seen[0], &seen[1]), DN_OK);
        } while (seen[1] != was);
    }
    dn_world_barrier(world);
    const int64_t all = (int64_t) CALLS * world->size;
    for (int k = 0; k < 4; k++) {
        dn_check_equal(shared->sum[k], all - all / 4 * k);
    }
    int64_t pair[2];
    memcpy(pair, shared->unaligned + 3, sizeof(pair));
    dn_check_equal(pair[0], all);
    dn_check_equal(pair[1], all);
    dn_check_equal(shared->swapped, all);
    rma_stop(world, segment);
}

static const dn_world_test_t tests[] = {
    {"every_operation_gives_what_a_loop_gives", 1, every_operation_gives_what_a_loop_gives},
    {"an_odd_element_leaves_the_results_in_order", 1, an_odd_element_leaves_the_results_in_order},
    {"foreign_pairs_keep_their_gaps", 1, foreign_pairs_keep_their_gaps},
    {"a_layout_that_cuts_an_element_is_refused", 1, a_layout_that_cuts_an_element_is_refused},
    {"halves_of_a_word_take_effect_as_a_whole", 3, halves_of_a_word_take_effect_as_a_whole},
    {"calls_of_several_take_effect_as_a_whole", 3, calls_of_several_take_effect_as_a_whole},
};

int main(int argc, char **argv)
{
    return rma_run(tests, sizeof(tests) / sizeof(tests[0]), rma_mapped,
                   sizeof(rma_mapped) / sizeof(rma_mapped[0]), argv[1]);
}
