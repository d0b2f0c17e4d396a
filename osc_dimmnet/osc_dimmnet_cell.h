/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_cell.h
 * Cells: the aligned bytes that one instruction of the processor changes at most. 16 of them on x86-64 and AArch64, 8 elsewhere.
 *
 * A cell is read, changed and compared as a vector of words. Words do not cross cells, as both are aligned.
 */
#ifndef OSC_DIMMNET_CELL_H
#define OSC_DIMMNET_CELL_H

#include "osc_dimmnet_atomic.h"

#if defined(__x86_64__) || defined(__aarch64__)
#    define OSC_CELL 16
#else
#    define OSC_CELL 8
#endif

typedef uint8_t osc_cell_8_t __attribute__((vector_size(OSC_CELL)));
typedef uint16_t osc_cell_16_t __attribute__((vector_size(OSC_CELL)));
typedef uint32_t osc_cell_32_t __attribute__((vector_size(OSC_CELL)));
typedef uint64_t osc_cell_64_t __attribute__((vector_size(OSC_CELL)));
typedef int8_t osc_cell_s8_t __attribute__((vector_size(OSC_CELL)));
typedef int16_t osc_cell_s16_t __attribute__((vector_size(OSC_CELL)));
typedef int32_t osc_cell_s32_t __attribute__((vector_size(OSC_CELL)));
typedef int64_t osc_cell_s64_t __attribute__((vector_size(OSC_CELL)));

/** A cell's value; any vector of its size is cast to another without a change of bits. Windows hold what they like. */
typedef uint64_t osc_cell_t __attribute__((vector_size(OSC_CELL), may_alias));

/** An accumulate on words, in pieces: what is not a whole cell waits for more of the same cell. Begins with zeros. */
typedef struct osc_cells {
    osc_element_t element; /**< words */
    osc_op_t op;
    uint64_t waiting;          /**< bytes that wait */
    uint8_t *at;               /**< the cell that they are in */
    uint8_t operand[OSC_CELL]; /**< by their place in the cell */
    uint8_t mask[OSC_CELL];    /**< 0xff: waits */
    uint8_t *result[OSC_CELL]; /**< where to write what was there; NULL: not wanted */
} osc_cells_t;

/** @name Accumulates on cells (osc_dimmnet_cell.c) */
/** @{ */

/**
 * Go on with bytes that lie together: whole words, aligned.
 * @param[in] operand  Of any alignment; not looked at by OSC_NO_OP.
 * @param[in] result   NULL: not wanted. The last bytes, at most a cell's, are there after ompi_osc_dimmnet_cells_end() only.
 */
void ompi_osc_dimmnet_cells_add(osc_cells_t *cells, uint8_t *at, const uint8_t *operand, uint8_t *result,
                                uint64_t len);

/** Change what waits. */
void ompi_osc_dimmnet_cells_end(osc_cells_t *cells);

/** The results of what waits go @p bytes before where they were to go. */
void ompi_osc_dimmnet_cells_rebase(osc_cells_t *cells, uint64_t bytes);
/** @} */

/** Are @p len bytes at @p at in one cell? */
static inline bool osc_in_cell(const void *at, uint64_t len)
{
    return len <= OSC_CELL - ((uintptr_t) at & (OSC_CELL - 1));
}

/**
 * Store @p value in a cell where @p seen is. Acquires and releases.
 * @param[in,out] seen  Out: what was there, all of it at one moment, whether or not it was the same.
 * @return was it the same?
 */
static inline bool osc_cell_swap(void *at, osc_cell_t *seen, osc_cell_t value)
{
#if defined(__x86_64__)
    uint64_t low = (*seen)[0], high = (*seen)[1];
    bool same;

    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(same), "+m"(*(osc_cell_t *) at), "+a"(low), "+d"(high)
                         : "b"(value[0]), "c"(value[1])
                         : "memory");
    *seen = (osc_cell_t){low, high};
    return same;
#elif defined(__aarch64__)
    const uint64_t low = (*seen)[0], high = (*seen)[1];
    uint64_t was_low, was_high;
    uint32_t failed;

    /* Also what is not the same is stored back: only then both halves are of one moment. */
    do {
        __asm__ __volatile__("ldaxp %0, %1, %2"
                             : "=&r"(was_low), "=&r"(was_high)
                             : "Q"(*(osc_cell_t *) at)
                             : "memory");
        const bool same = was_low == low && was_high == high;
        __asm__ __volatile__("stlxp %w0, %2, %3, %1"
                             : "=&r"(failed), "=Q"(*(osc_cell_t *) at)
                             : "r"(same ? value[0] : was_low), "r"(same ? value[1] : was_high)
                             : "memory");
    } while (0 != failed);
    *seen = (osc_cell_t){was_low, was_high};
    return was_low == low && was_high == high;
#else
    uint64_t expected = (*seen)[0];
    const bool same = __atomic_compare_exchange_n((uint64_t *) at, &expected, value[0], false,
                                                  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);

    *seen = (osc_cell_t){expected};
    return same;
#endif
}

/** Does the processor load and store a cell at once by plain instructions? Those that have AVX do, as their makers say. */
static inline bool osc_cell_moves(void)
{
#if defined(__x86_64__)
    return 0 != __builtin_cpu_supports("avx");
#else
    return 8 == OSC_CELL;
#endif
}

/** What is in a cell, perhaps one half before the other. */
static inline osc_cell_t osc_cell_peek(const void *at)
{
    const uint64_t *half = at;

#if 16 == OSC_CELL
    return (osc_cell_t){__atomic_load_n(half, __ATOMIC_RELAXED), __atomic_load_n(half + 1, __ATOMIC_RELAXED)};
#else
    return (osc_cell_t){__atomic_load_n(half, __ATOMIC_RELAXED)};
#endif
}

/** What is in a cell, all of it at one moment. */
static inline osc_cell_t osc_cell_load(void *at)
{
    osc_cell_t seen;

    if (osc_cell_moves()) {
        /* volatile: one load of the whole. */
        seen = *(const volatile osc_cell_t *) at;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        return seen;
    }
    seen = osc_cell_peek(at);
    (void) osc_cell_swap(at, &seen, seen);
    return seen;
}

/** What an operation makes of the words of a cell. A comparison gives words of ones, or zeros. */
#define OSC_COMBINE(bits)                                                                             \
    static inline osc_cell_##bits##_t osc_less_##bits(bool is_signed, osc_cell_##bits##_t a,          \
                                                      osc_cell_##bits##_t b)                          \
    {                                                                                                 \
        return is_signed ? (osc_cell_##bits##_t)((osc_cell_s##bits##_t) a < (osc_cell_s##bits##_t) b) \
                         : (osc_cell_##bits##_t)(a < b);                                              \
    }                                                                                                 \
                                                                                                      \
    static inline __attribute__((always_inline))                                                      \
    osc_cell_t osc_combine_##bits(osc_op_t op, bool is_signed, osc_cell_t cell, osc_cell_t with)      \
    {                                                                                                 \
        const osc_cell_##bits##_t old = (osc_cell_##bits##_t) cell;                                   \
        const osc_cell_##bits##_t operand = (osc_cell_##bits##_t) with;                               \
        osc_cell_##bits##_t less;                                                                     \
                                                                                                      \
        switch (op) {                                                                                 \
        case OSC_SUM:                                                                                 \
            return (osc_cell_t) (old + operand);                                                      \
        case OSC_BAND:                                                                                \
            return cell & with;                                                                       \
        case OSC_BOR:                                                                                 \
            return cell | with;                                                                       \
        case OSC_BXOR:                                                                                \
            return cell ^ with;                                                                       \
        case OSC_MAX:                                                                                 \
            less = osc_less_##bits(is_signed, old, operand);                                          \
            return (osc_cell_t) ((operand & less) | (old & ~less));                                   \
        case OSC_MIN:                                                                                 \
            less = osc_less_##bits(is_signed, old, operand);                                          \
            return (osc_cell_t) ((old & less) | (operand & ~less));                                   \
        case OSC_PROD:                                                                                \
            return (osc_cell_t) (old * operand);                                                      \
        case OSC_LAND:                                                                                \
            return (osc_cell_t) ((osc_cell_##bits##_t)((0 != old) & (0 != operand)) & 1);             \
        case OSC_LOR:                                                                                 \
            return (osc_cell_t) ((osc_cell_##bits##_t)((0 != old) | (0 != operand)) & 1);             \
        case OSC_LXOR:                                                                                \
            return (osc_cell_t) ((osc_cell_##bits##_t)((0 != old) ^ (0 != operand)) & 1);             \
        case OSC_NO_OP:                                                                               \
            return cell;                                                                              \
        default:                                                                                      \
            return with;                                                                              \
        }                                                                                             \
    }
OSC_COMBINE(8)
OSC_COMBINE(16)
OSC_COMBINE(32)
OSC_COMBINE(64)
#undef OSC_COMBINE

/** Words of @p size bytes. */
static inline __attribute__((always_inline)) osc_cell_t
osc_combine(uint32_t size, osc_op_t op, bool is_signed, osc_cell_t cell, osc_cell_t with)
{
    switch (size) {
    case 1:
        return osc_combine_8(op, is_signed, cell, with);
    case 2:
        return osc_combine_16(op, is_signed, cell, with);
    case 4:
        return osc_combine_32(op, is_signed, cell, with);
    default:
        return osc_combine_64(op, is_signed, cell, with);
    }
}

#endif
