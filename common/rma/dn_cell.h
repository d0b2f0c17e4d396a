/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_cell.h
 * Cells: the aligned bytes that one instruction of the processor changes at most. 16 of them on x86-64 and AArch64, 8 elsewhere.
 *
 * A cell is read, changed and compared as a vector of words. Words do not cross cells, as both are aligned.
 */
#ifndef DN_CELL_H
#define DN_CELL_H

#include "dn_acc.h"

#include <string.h>

#if defined(__x86_64__) || defined(__aarch64__)
#    define DN_CELL 16
#else
#    define DN_CELL 8
#endif

typedef uint8_t dn_cell_8_t __attribute__((vector_size(DN_CELL)));
typedef uint16_t dn_cell_16_t __attribute__((vector_size(DN_CELL)));
typedef uint32_t dn_cell_32_t __attribute__((vector_size(DN_CELL)));
typedef uint64_t dn_cell_64_t __attribute__((vector_size(DN_CELL)));
typedef int8_t dn_cell_s8_t __attribute__((vector_size(DN_CELL)));
typedef int16_t dn_cell_s16_t __attribute__((vector_size(DN_CELL)));
typedef int32_t dn_cell_s32_t __attribute__((vector_size(DN_CELL)));
typedef int64_t dn_cell_s64_t __attribute__((vector_size(DN_CELL)));

/** A cell's value; any vector of its size is cast to another without a change of bits. Windows hold what they like. */
typedef uint64_t dn_cell_t __attribute__((vector_size(DN_CELL), may_alias));

/** An accumulate on words, in pieces: what is not a whole cell waits for more of the same cell. */
typedef struct dn_cells {
    uint32_t size; /**< of a word */
    int is_signed;
    dn_acc_op_t op;
    uint64_t waiting;         /**< bytes that wait */
    uint8_t *at;              /**< the cell that they are in */
    uint8_t operand[DN_CELL]; /**< by their place in the cell */
    uint8_t mask[DN_CELL];    /**< 0xff: waits */
    uint8_t *result[DN_CELL]; /**< where to write what was there, of those that wait; NULL: not wanted */
} dn_cells_t;

/** Nothing waits. */
static inline void dn_cells_open(dn_cells_t *cells, const dn_element_t *element, dn_acc_op_t op)
{
    cells->size = element->size;
    cells->is_signed = dn_element_is_signed(element);
    cells->op = op;
    cells->waiting = 0;
    cells->at = NULL;
    memset(cells->operand, 0, sizeof(cells->operand));
    memset(cells->mask, 0, sizeof(cells->mask));
}

/** @name Accumulates on cells (dn_cell.c) */
/** @{ */

/**
 * Go on with bytes that lie together: whole words, aligned.
 * @param[in] operand  Of any alignment; not looked at by DN_ACC_NO_OP.
 * @param[in] result   NULL: not wanted. The last bytes, at most a cell's, are there after dn_cells_end() only.
 */
void dn_cells_add(dn_cells_t *cells, uint8_t *at, const uint8_t *operand, uint8_t *result, uint64_t len);

/** Change what waits. */
void dn_cells_end(dn_cells_t *cells);

/** The results of what waits go @p bytes before where they were to go. */
void dn_cells_rebase(dn_cells_t *cells, uint64_t bytes);

/** What an operation makes of the elements that lie in a word. Bits of it above the last element are any. */
uint64_t dn_cells_combine(const dn_element_t *element, dn_acc_op_t op, uint64_t word, uint64_t with);
/** @} */

/** Are @p len bytes at @p at in one cell? */
static inline int dn_cell_holds(const void *at, uint64_t len)
{
    return len <= DN_CELL - ((uintptr_t) at & (DN_CELL - 1));
}

/**
 * Store @p value in a cell where @p seen is. Acquires and releases.
 * @param[in,out] seen  Out: what was there, all of it at one moment, whether or not it was the same.
 * @return was it the same?
 */
static inline int dn_cell_swap(void *at, dn_cell_t *seen, dn_cell_t value)
{
#if defined(__x86_64__)
    uint64_t low = (*seen)[0], high = (*seen)[1];
    int same;

    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(same), "+m"(*(dn_cell_t *) at), "+a"(low), "+d"(high)
                         : "b"(value[0]), "c"(value[1])
                         : "memory");
    *seen = (dn_cell_t){low, high};
    return same;
#elif defined(__aarch64__)
    const uint64_t low = (*seen)[0], high = (*seen)[1];
    uint64_t was_low, was_high;
    uint32_t failed;

    /* Also what is not the same is stored back: only then both halves are of one moment. */
    do {
        __asm__ __volatile__("ldaxp %0, %1, %2"
                             : "=&r"(was_low), "=&r"(was_high)
                             : "Q"(*(dn_cell_t *) at)
                             : "memory");
        const int same = was_low == low && was_high == high;
        __asm__ __volatile__("stlxp %w0, %2, %3, %1"
                             : "=&r"(failed), "=Q"(*(dn_cell_t *) at)
                             : "r"(same ? value[0] : was_low), "r"(same ? value[1] : was_high)
                             : "memory");
    } while (0 != failed);
    *seen = (dn_cell_t){was_low, was_high};
    return was_low == low && was_high == high;
#else
    uint64_t expected = (*seen)[0];
    const int same = dn_cas_seq_cst((uint64_t *) at, &expected, value[0]);

    *seen = (dn_cell_t){expected};
    return same;
#endif
}

/** Does the processor load and store a cell at once by plain instructions? Those that have AVX do, as their makers say. */
static inline int dn_cell_moves(void)
{
#if defined(__x86_64__)
    return 0 != __builtin_cpu_supports("avx");
#else
    return 8 == DN_CELL;
#endif
}

/** What is in a cell, perhaps one half before the other. */
static inline dn_cell_t dn_cell_peek(const void *at)
{
    const uint64_t *half = at;

#if 16 == DN_CELL
    return (dn_cell_t){dn_load_relaxed(half), dn_load_relaxed(half + 1)};
#else
    return (dn_cell_t){dn_load_relaxed(half)};
#endif
}

/** What is in a cell, all of it at one moment. */
static inline dn_cell_t dn_cell_load(void *at)
{
    dn_cell_t seen;

    if (dn_cell_moves()) {
        /* volatile: one load of the whole. */
        seen = *(const volatile dn_cell_t *) at;
        dn_fence_acquire();
        return seen;
    }
    seen = dn_cell_peek(at);
    (void) dn_cell_swap(at, &seen, seen);
    return seen;
}

/** What an operation makes of the words of a cell. A comparison gives words of ones, or zeros. */
#define DN_CELL_COMBINE(bits)                                                                       \
    static inline dn_cell_##bits##_t dn_cell_less_##bits(int is_signed, dn_cell_##bits##_t a,       \
                                                         dn_cell_##bits##_t b)                      \
    {                                                                                               \
        return is_signed ? (dn_cell_##bits##_t)((dn_cell_s##bits##_t) a < (dn_cell_s##bits##_t) b)  \
                         : (dn_cell_##bits##_t)(a < b);                                             \
    }                                                                                               \
                                                                                                    \
    static inline __attribute__((always_inline))                                                    \
    dn_cell_t dn_cell_combine_##bits(dn_acc_op_t op, int is_signed, dn_cell_t cell, dn_cell_t with) \
    {                                                                                               \
        const dn_cell_##bits##_t old = (dn_cell_##bits##_t) cell;                                   \
        const dn_cell_##bits##_t operand = (dn_cell_##bits##_t) with;                               \
        dn_cell_##bits##_t less;                                                                    \
                                                                                                    \
        switch (op) {                                                                               \
        case DN_ACC_SUM:                                                                            \
            return (dn_cell_t) (old + operand);                                                     \
        case DN_ACC_BAND:                                                                           \
            return cell & with;                                                                     \
        case DN_ACC_BOR:                                                                            \
            return cell | with;                                                                     \
        case DN_ACC_BXOR:                                                                           \
            return cell ^ with;                                                                     \
        case DN_ACC_MAX:                                                                            \
            less = dn_cell_less_##bits(is_signed, old, operand);                                    \
            return (dn_cell_t) ((operand & less) | (old & ~less));                                  \
        case DN_ACC_MIN:                                                                            \
            less = dn_cell_less_##bits(is_signed, old, operand);                                    \
            return (dn_cell_t) ((old & less) | (operand & ~less));                                  \
        case DN_ACC_PROD:                                                                           \
            return (dn_cell_t) (old * operand);                                                     \
        case DN_ACC_LAND:                                                                           \
            return (dn_cell_t) ((dn_cell_##bits##_t)((0 != old) & (0 != operand)) & 1);             \
        case DN_ACC_LOR:                                                                            \
            return (dn_cell_t) ((dn_cell_##bits##_t)((0 != old) | (0 != operand)) & 1);             \
        case DN_ACC_LXOR:                                                                           \
            return (dn_cell_t) ((dn_cell_##bits##_t)((0 != old) ^ (0 != operand)) & 1);             \
        case DN_ACC_NO_OP:                                                                          \
            return cell;                                                                            \
        default:                                                                                    \
            return with;                                                                            \
        }                                                                                           \
    }
DN_CELL_COMBINE(8)
DN_CELL_COMBINE(16)
DN_CELL_COMBINE(32)
DN_CELL_COMBINE(64)
#undef DN_CELL_COMBINE

/** Words of @p size bytes. */
static inline __attribute__((always_inline)) dn_cell_t
dn_cell_combine(uint32_t size, dn_acc_op_t op, int is_signed, dn_cell_t cell, dn_cell_t with)
{
    switch (size) {
    case 1:
        return dn_cell_combine_8(op, is_signed, cell, with);
    case 2:
        return dn_cell_combine_16(op, is_signed, cell, with);
    case 4:
        return dn_cell_combine_32(op, is_signed, cell, with);
    default:
        return dn_cell_combine_64(op, is_signed, cell, with);
    }
}

#endif
