/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_prog_naive.h
 * What a scatter/gather program means, by its definition alone: the place of each byte, one after the other.
 * And programs at random.
 */
#ifndef DN_PROG_NAIVE_H
#define DN_PROG_NAIVE_H

#include "dn_prog.h"

#include "../dn_test.h"

/** Places of the bytes of a stream, in order. */
typedef struct dn_naive {
    int64_t *byte;
    size_t n;
    size_t room; /**< a stream with more bytes sets n beyond it */
} dn_naive_t;

static inline void dn_naive_block(dn_naive_t *naive, int64_t at, uint64_t len)
{
    for (uint64_t i = 0; i < len && naive->n <= naive->room; i++) {
        if (naive->n < naive->room) {
            naive->byte[naive->n] = at + (int64_t) i;
        }
        naive->n++;
    }
}

static inline void dn_naive_ops(dn_naive_t *naive, const dn_prog_op_t *ops, size_t n, int64_t origin)
{
    for (size_t i = 0; i < n; i += 1 + ops[i].inside) {
        const dn_prog_op_t *op = &ops[i];
        for (uint64_t k = 0; k < op->count && naive->n <= naive->room; k++) {
            const int64_t at = (int64_t) ((uint64_t) origin + (uint64_t) op->at + k * (uint64_t) op->stride);
            const size_t before = naive->n;
            if (DN_PROG_RUN == op->kind) {
                dn_naive_block(naive, at, op->len);
            } else {
                dn_naive_ops(naive, op + 1, op->inside, at);
            }
            if (before == naive->n) {
                break; /* nor will further turns add anything */
            }
        }
    }
}

static inline void dn_naive_use(dn_naive_t *naive, const dn_prog_op_t *ops, size_t n, uint64_t count,
                                int64_t extent)
{
    naive->n = 0;
    for (uint64_t i = 0; i < count && naive->n <= naive->room; i++) {
        dn_naive_ops(naive, ops, n, (int64_t) (i * (uint64_t) extent));
        if (0 == naive->n) {
            break;
        }
    }
}

/** Lowest byte, and one beyond the highest; 0 and 0 when there are none. */
static inline void dn_naive_bounds(const dn_naive_t *naive, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    for (size_t i = 0; i < naive->n; i++) {
        *low = 0 == i || naive->byte[i] < *low ? naive->byte[i] : *low;
        *high = 0 == i || naive->byte[i] >= *high ? naive->byte[i] + 1 : *high;
    }
}

/** What dn_naive_random() makes. */
enum { DN_NAIVE_OPS = 400, DN_NAIVE_DEPTH = 5, DN_NAIVE_SPAN = 1 << 17 };

/** A program in the making: no two of its bytes have one place. */
typedef struct dn_naive_random {
    uint64_t *state;
    dn_prog_op_t *op;
    size_t n;
    uint64_t len;  /**< of most of its blocks */
    uint64_t left; /**< bytes that it may still have */
} dn_naive_random_t;

static inline uint64_t dn_naive_len(dn_naive_random_t *random)
{
    const uint64_t kind = dn_test_below(random->state, 4);
    return 0 == kind   ? dn_test_length(random->state, 300)
           : 1 == kind ? UINT64_C(4) << dn_test_below(random->state, 5)
                       : random->len;
}

/** How often something can be there: up to most, seldom 0, and only so that it still fits. */
static inline uint64_t dn_naive_count(dn_naive_random_t *random, uint64_t size, uint64_t most)
{
    const uint64_t count =
        0 == dn_test_below(random->state, 20) ? 0 : 1 + dn_test_length(random->state, most - 1);
    const uint64_t fits = 0 == size ? count : random->left / size;
    return count < fits ? count : fits;
}

/** Move the ops of a body so that it lies outside of low .. high, and take it in. */
static inline void dn_naive_beside(dn_naive_random_t *random, size_t first, int64_t own_low, int64_t own_high,
                                   int64_t *low, int64_t *high)
{
    const int64_t gap =
        0 == dn_test_below(random->state, 3) ? 0 : (int64_t) dn_test_length(random->state, 80);
    const int64_t move = 0 != dn_test_below(random->state, 4) ? *high + gap - own_low : *low - gap - own_high;

    for (size_t i = first; i < random->n; i += 1 + random->op[i].inside) {
        random->op[i].at += move;
    }
    *low = own_low + move < *low ? own_low + move : *low;
    *high = own_high + move > *high ? own_high + move : *high;
}

static inline dn_prog_op_t *dn_naive_add(dn_naive_random_t *random, dn_prog_kind_t kind, uint64_t len,
                                         uint64_t count, int64_t stride)
{
    dn_prog_op_t *op = &random->op[random->n++];
    *op = (dn_prog_op_t){kind, 0, 0, len, count, stride};
    return op;
}

/** Add ops to a body whose bytes are in low .. high. repeat: turns of the loops around it. */
static inline void dn_naive_body(dn_naive_random_t *random, unsigned depth, uint64_t repeat, int64_t *low,
                                 int64_t *high)
{
    uint64_t *state = random->state;

    for (uint64_t ops = dn_test_below(state, 5); 0 != ops && random->n < DN_NAIVE_OPS - 40; ops--) {
        const uint64_t kind = dn_test_below(state, 8);
        const size_t first = random->n;
        const uint64_t len = dn_naive_len(random);
        const int64_t slack = 0 == dn_test_below(state, 2) ? 0 : (int64_t) dn_naive_len(random);
        if (0 == kind) { /* single blocks with gaps */
            const uint64_t count = dn_naive_count(random, len * repeat, 40);
            for (uint64_t i = 0; i < count; i++) {
                dn_naive_add(random, DN_PROG_RUN, len, 1, (int64_t) dn_test_random(state));
                dn_naive_beside(random, random->n - 1, 0, (int64_t) len, low, high);
            }
            random->left -= count * len * repeat;
            continue;
        }
        if (1 == kind) { /* nothing, whatever its other fields hold */
            dn_prog_op_t *op = dn_naive_add(random, 0 == len % 2 ? DN_PROG_RUN : DN_PROG_LOOP, len, 0,
                                            (int64_t) dn_test_random(state));
            op->at = (int64_t) dn_test_random(state);
            continue;
        }
        const int loop = 4 < kind && DN_NAIVE_DEPTH > depth;
        const uint64_t count = dn_naive_count(random, loop ? 4 * repeat : len * repeat, loop ? 6 : 15);
        int64_t own_low = 0;
        int64_t own_high = (int64_t) len;
        dn_naive_add(random, loop ? DN_PROG_LOOP : DN_PROG_RUN, len, count, 0);
        if (loop) {
            own_high = 0;
            dn_naive_body(random, depth + 1, repeat * count, &own_low, &own_high);
            random->op[first].inside = (uint32_t) (random->n - first - 1);
        } else {
            random->left -= count * len * repeat;
        }
        const int back = 0 == dn_test_below(state, 4);
        const int64_t span = own_high - own_low + slack;
        const int64_t reach = 0 == count ? 0 : span * (int64_t) (count - 1);
        random->op[first].stride = back ? -span : span;
        own_low -= back ? reach : 0;
        own_high += back ? 0 : reach;
        dn_naive_beside(random, first, own_low, own_high, low, high);
    }
}

/**
 * Ops of a random program.
 *
 * @param[out] ops     Room for DN_NAIVE_OPS.
 * @param[in]  most    Bytes it may have.
 * @param[out] extent  At this distance instances do not overlap.
 * @return number of ops.
 */
static inline size_t dn_naive_random(uint64_t *state, dn_prog_op_t *ops, uint64_t most, int64_t *extent)
{
    dn_naive_random_t random = {.state = state, .op = ops};
    int64_t low, high;

    do {
        random.n = 0;
        random.left = most;
        random.len = UINT64_C(1) << dn_test_below(state, 7);
        low = high = 0;
        dn_naive_body(&random, 0, 1, &low, &high);
    } while (high - low > DN_NAIVE_SPAN || (most == random.left && 0 != dn_test_below(state, 20)));
    *extent = high - low + (int64_t) (dn_test_below(state, 2) * dn_test_length(state, 100));
    *extent = 0 == dn_test_below(state, 3) ? -*extent : *extent;
    return random.n;
}

/** Let some blocks of a program overlap, or lie anywhere within a few kilobytes. */
static inline void dn_naive_disturb(uint64_t *state, dn_prog_op_t *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (0 != ops[i].count && 0 == dn_test_below(state, 4)) {
            ops[i].at += (int64_t) dn_test_length(state, 500) - (int64_t) dn_test_length(state, 500);
        }
        if (0 != ops[i].count && 0 == dn_test_below(state, 4)) {
            ops[i].stride = (int64_t) dn_test_length(state, 100) - (int64_t) dn_test_length(state, 100);
        }
    }
}

#endif
