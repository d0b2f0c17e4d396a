/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_acc.h
 * Accumulate: change elements in memory that several processes map, and fetch the old values.
 *
 * The promise: a call takes effect as a whole. Of two calls that use the same bytes, each call finds the whole effect of the other
 * call, or nothing of it. The number of elements and the layout do not matter. There are two sorts of calls, and the promise holds
 * between calls of the same sort:
 *
 *   words   calls on integers at addresses that are multiples of their size. Two calls may have words of different sizes;
 *   others  calls on floating-point numbers, on foreign elements, and on integers at other addresses.
 *
 * Between a call on words and a call of the other sort there is no promise. The promise has one more limit. A call on words that holds
 * the guard changes a cell more than once if its layout leaves the cell and comes back, or names bytes twice. While the gate is open,
 * a call within that cell, which needs no guard, may take effect between these changes.
 *
 * How: a call holds the guard of the memory (dn_guard.h) from its begin to its end. Three kinds of calls need only one instruction.
 * They do not take the guard while the guard's gate is open:
 *
 *   one word, aligned         by the processor's atomic instruction for the operation. Operations without such an instruction
 *                             take one exchange;
 *   words in one cell         (dn_cell.h) by one exchange of the cell, or of the word that the elements make together. For
 *                             operations on bits the number of elements does not matter: they take the instruction for that word;
 *   dn_acc_swap(), aligned    by the instruction that compares and swaps.
 *
 * These three kinds pass through the guard's gate. While the gate is open, a call on words that holds the guard changes each cell in
 * one exchange, too. So a call that passes through the gate, which uses one cell only, comes before or after that exchange. While the
 * gate is closed, the three kinds take the guard as well, and a call on several words that holds the guard uses plain loops. Calls
 * of the other sort always hold the guard, and always use plain loops.
 *
 * Whether a call is for the gate follows from the element, the address and the length, and from nothing else. All processes agree on
 * this: two processes may map the memory at different addresses, but the difference is a multiple of a page. Where the guard has no
 * word, no other process uses the memory, and all calls but an aligned dn_acc_swap() use plain loops.
 *
 * Shape:     an operation, an element, and addresses of this process, which the caller has checked. The element must have the
 *            operation. Integers have all but MAXLOC and MINLOC. Floating-point numbers have SUM, PROD, MAX and MIN. Foreign
 *            elements have the operations that their function knows. All elements have REPLACE and NO_OP.
 * Ownership: no pointer is kept after the call.
 * Threads:   any number of processes and threads at once.
 * Ordering:  a call on one word is sequentially consistent; other calls are ordered by the guard, or by the exchange of their cell.
 * Errors:    those of dn_guard_enter(). After an error nothing has changed.
 *
 * Pinned by test/device/rma_accumulate.c.
 */
#ifndef DN_ACC_H
#define DN_ACC_H

#include "dn_guard.h"
#include "dn_prog.h"

typedef enum dn_acc_op {
    DN_ACC_SUM,
    DN_ACC_REPLACE,
    DN_ACC_NO_OP, /**< only fetches */
    DN_ACC_BAND,
    DN_ACC_BOR,
    DN_ACC_BXOR,
    DN_ACC_ATOMIC =
        DN_ACC_BXOR, /**< processors have one instruction for each operation up to here, and none for those below */
    DN_ACC_MAX,
    DN_ACC_MIN,
    DN_ACC_PROD,
    DN_ACC_LAND,
    DN_ACC_LOR,
    DN_ACC_LXOR,
    DN_ACC_MAXLOC, /**< of foreign elements: pairs */
    DN_ACC_MINLOC, /**< likewise */
    DN_ACC_OPS
} dn_acc_op_t;

typedef enum dn_element_kind {
    DN_ELEMENT_UNSIGNED, /**< words of 1, 2, 4 or 8 bytes */
    DN_ELEMENT_SIGNED,   /**< likewise */
    DN_ELEMENT_FLOAT,    /**< of 4 or 8 bytes */
    DN_ELEMENT_FOREIGN   /**< anything that dn_element_t::reduce knows */
} dn_element_kind_t;

/**
 * Change foreign elements side by side: at[i] = at[i] op operand[i]. No other thread uses them during the call.
 * Both sides are aligned. Not called for REPLACE and NO_OP.
 */
typedef void (*dn_element_reduce_fn_t)(const void *arg, dn_acc_op_t op, void *at, const void *operand,
                                       uint64_t n);

typedef struct dn_element {
    uint32_t size;   /**< bytes of data */
    uint32_t extent; /**< bytes with gaps; equal to `size` where there are no gaps */
    uint32_t align;  /**< a power of 2 */
    dn_element_kind_t kind;
    dn_element_reduce_fn_t reduce; /**< of foreign elements */
    const void *arg;
    const dn_prog_t *layout; /**< of an element with gaps, whose extent is at most 64 bytes */
} dn_element_t;

static inline int dn_element_has_words(const dn_element_t *element)
{
    return DN_ELEMENT_SIGNED >= element->kind;
}

static inline int dn_element_is_signed(const dn_element_t *element)
{
    return DN_ELEMENT_SIGNED == element->kind;
}

static inline int dn_element_has_gaps(const dn_element_t *element)
{
    return element->size != element->extent;
}

/** Is a call on this element at this address a call on words (see the head of this file)? */
static inline int dn_element_is_word(const dn_element_t *element, const void *at)
{
    return dn_element_has_words(element) && 0 == ((uintptr_t) at & (element->size - 1));
}

/**
 * Change @p n elements side by side, and return the old values.
 *
 * @param[in]  element  Without gaps.
 * @param[in]  operand  @p n elements side by side, of any alignment; not read by DN_ACC_NO_OP.
 * @param[out] result   The old values; NULL: the caller does not want them.
 * @return as dn_guard_enter(). Unless it is DN_OK, nothing has changed.
 */
DN_API dn_status_t dn_acc_apply(const dn_guard_t *guard, const dn_element_t *element, dn_acc_op_t op,
                                void *at, const void *operand, void *result, uint64_t n);

/** The same by plain loops, for elements that no other thread or process uses now. An element may have gaps: its `size` then has to
 * be its extent, and the gaps are copied, too. */
DN_API void dn_acc_apply_alone(const dn_element_t *element, dn_acc_op_t op, void *at, const void *operand,
                               void *result, uint64_t n);

/** Compare and swap one integer of any alignment: store @p value at @p at if @p compare is there. @return as dn_guard_enter(). */
DN_API dn_status_t dn_acc_swap(const dn_guard_t *guard, const dn_element_t *element, void *at,
                               const void *value, const void *compare, void *old);

/** An accumulate whose memory has layouts, while it is carried out. */
typedef struct dn_acc_walk {
    const dn_guard_t *guard;
    dn_element_t element;
    dn_acc_op_t op;
    int fetches;
    dn_prog_cursor_t target; /**< addresses */
    dn_prog_cursor_t origin; /**< of the operands; not used by DN_ACC_NO_OP */
    dn_prog_cursor_t result; /**< of the old values; not used unless `fetches` */
} dn_acc_walk_t;

/**
 * Carry out the next @p len bytes of elements.
 * @retval DN_ERR_PARAM  the target's layout, which may come from a peer, cuts an element. Elements before that element may have
 *                       changed. The results are not complete.
 * @retval DN_ERR_UNSUPPORTED  the element has gaps, and no layout. Nothing has changed.
 * Other values as dn_guard_enter().
 */
DN_API dn_status_t dn_acc_walk(dn_acc_walk_t *walk, uint64_t len);

#endif
