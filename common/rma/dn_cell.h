/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_cell.h
 * A cell is the largest aligned piece of memory that one instruction of the processor changes: 16 bytes on x86-64 and AArch64,
 * 8 bytes elsewhere.
 *
 * A cell is read, changed and compared as a vector of words. No word is in two cells, because words and cells are aligned.
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

/** A cell's value. A cast between vectors of this size does not change bits. may_alias: a window may hold objects of any type. */
typedef uint64_t dn_cell_t __attribute__((vector_size(DN_CELL), may_alias));

/** An accumulate on words, in pieces. A piece that is less than a cell waits for other pieces of the same cell. */
typedef struct dn_cells {
    uint32_t size; /**< of a word */
    int is_signed;
    dn_acc_op_t op;
    uint64_t waiting;         /**< bytes that wait */
    uint8_t *at;              /**< the cell of these bytes */
    uint8_t operand[DN_CELL]; /**< their operands, by place in the cell */
    uint8_t mask[DN_CELL];    /**< 0xff: this byte waits */
    uint8_t *result[DN_CELL]; /**< where the old value of a byte that waits goes; NULL: not wanted */
} dn_cells_t;

/** Begin: no byte waits. */
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
 * Go on with whole, aligned words that lie together.
 * @param[in] operand  Of any alignment; not read by DN_ACC_NO_OP.
 * @param[in] result   Where the old values go; NULL: not wanted. The last bytes, at most a cell, may be written by dn_cells_end().
 */
void dn_cells_add(dn_cells_t *cells, uint8_t *at, const uint8_t *operand, uint8_t *result, uint64_t len);

/** Change the bytes that wait. */
void dn_cells_end(dn_cells_t *cells);

/** Results of bytes that wait will go to addresses that are lower by @p bytes. */
void dn_cells_rebase(dn_cells_t *cells, uint64_t bytes);

/** The result of an operation on the elements in a word. Bits above the last element have no meaning. */
uint64_t dn_cells_combine(const dn_element_t *element, dn_acc_op_t op, uint64_t word, uint64_t with);
/** @} */

/** Are @p len bytes at @p at in one cell? */
static inline int dn_cell_holds(const void *at, uint64_t len)
{
    return len <= DN_CELL - ((uintptr_t) at & (DN_CELL - 1));
}

/**
 * Compare and swap a cell: store @p value if the cell holds @p seen. Acquires and releases.
 * @param[in,out] seen  Out: what the cell held, all bytes of one moment, also where nothing was stored.
 * @return not 0: @p value was stored.
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

    /* A cell that differs from `seen` is stored back as it was: only a store that succeeds proves that both halves are of one moment. */
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

/** Does the processor load and store a whole cell by one plain instruction, at one moment? Processors with AVX do: their makers say so. */
static inline int dn_cell_moves(void)
{
#if defined(__x86_64__)
    return 0 != __builtin_cpu_supports("avx");
#else
    return 8 == DN_CELL;
#endif
}

/** Load a cell. Its two halves may be of different moments. */
static inline dn_cell_t dn_cell_peek(const void *at)
{
    const uint64_t *half = at;

#if 16 == DN_CELL
    return (dn_cell_t){dn_load_relaxed(half), dn_load_relaxed(half + 1)};
#else
    return (dn_cell_t){dn_load_relaxed(half)};
#endif
}

/** Load a cell: all bytes are of one moment. */
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

/** The result of an operation on the words of a cell. A comparison gives a word of ones, or of zeros. */
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

/** The same for words of @p size bytes. */
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
