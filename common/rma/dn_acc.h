/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_acc.h
 * Accumulate: change elements in memory that several processes map, and fetch what was there.
 *
 * What is promised: a call takes effect as a whole. Of two calls whose bytes meet, each finds all of the other's effect there or
 * none of it, whatever the number of elements and the layout. The promise holds for
 *
 *   words   calls on integers at addresses that are multiples of their size, among each other, whatever the sizes of their words;
 *   others  calls on floating-point numbers, foreign elements, and integers at odd addresses, among each other.
 *
 * A call on words that meets one of the others on the same bytes is only whole among its own sort. And a call on words that has
 * the guard changes a cell more than once if its layout leaves the cell and comes back, or names bytes twice: a call within one
 * cell, which needs no guard, may come between while the gate is open.
 *
 * How: every call takes the guard of the memory (dn_guard.h) for as long as it goes on, but for those that one instruction does,
 * if the guard's gate is open:
 *
 *   one word, aligned         by the processor's atomic instruction for the operation, or by one exchange where there is none;
 *   words in one cell         (dn_cell.h) by one exchange of the cell, or of the word that they make. Operations on bits, which
 *                             do not see how many words they are, take the instruction for that word;
 *   dn_acc_swap(), aligned    by its instruction.
 *
 * These pass through the guard's gate. While that is open, a call on words that holds the guard changes each cell in one exchange,
 * too, and all that it has to do there: what it meets without the guard lies in one cell, and comes before or after. While the gate
 * is closed, the three take the guard as well, and a call on words that holds it goes by plain loops. The others meet nobody without
 * the guard, and go by plain loops always.
 *
 * Which calls are for the gate follows from the element, the address and the length, and from nothing else. Pages are mapped alike
 * everywhere, so all processes agree on the address up to multiples of a page. Where the guard has no word, nobody else is there, and all goes by plain
 * loops.
 *
 * Shape:     an operation, an element, and addresses of this process, which the caller has checked. The operation is one that the
 *            element has: integers all but MAXLOC and MINLOC, floating-point numbers SUM, PROD, MAX and MIN, foreign ones what
 *            their function knows, all of them REPLACE and NO_OP.
 * Ownership: nothing is kept.
 * Threads:   any number of processes and threads at once.
 * Ordering:  a call on one word is sequentially consistent; others are ordered by the guard, or by the exchange of their cell.
 * Errors:    those of dn_guard_enter(): nothing has changed then.
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
        DN_ACC_BXOR, /**< processors have one instruction for each up to this, and for none behind it */
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
 * Change foreign elements side by side, which nobody else looks at now: at[i] = at[i] op operand[i].
 * Both sides are aligned. Not called for REPLACE and NO_OP.
 */
typedef void (*dn_element_reduce_fn_t)(const void *arg, dn_acc_op_t op, void *at, const void *operand,
                                       uint64_t n);

typedef struct dn_element {
    uint32_t size;   /**< bytes of data */
    uint32_t extent; /**< with its gaps: another number than `size` where there are some */
    uint32_t align;  /**< a power of 2 */
    dn_element_kind_t kind;
    dn_element_reduce_fn_t reduce; /**< of foreign ones */
    const void *arg;
    const dn_prog_t *layout; /**< of one with gaps; no longer than 64 bytes with them */
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

/** Do these bytes go the way of words? */
static inline int dn_element_is_word(const dn_element_t *element, const void *at)
{
    return dn_element_has_words(element) && 0 == ((uintptr_t) at & (element->size - 1));
}

/**
 * Change @p n elements side by side, and keep what was there.
 *
 * @param[in]  element  Without gaps.
 * @param[in]  operand  As many, side by side, of any alignment; not looked at by DN_ACC_NO_OP.
 * @param[out] result   NULL: not wanted.
 * @return as dn_guard_enter(): unless DN_OK nothing has changed.
 */
DN_API dn_status_t dn_acc_apply(const dn_guard_t *guard, const dn_element_t *element, dn_acc_op_t op,
                                void *at, const void *operand, void *result, uint64_t n);

/** The same where nobody else looks at the elements now, by plain loops. Of elements with gaps the gaps take part. */
DN_API void dn_acc_apply_alone(const dn_element_t *element, dn_acc_op_t op, void *at, const void *operand,
                               void *result, uint64_t n);

/** Store @p value if @p compare is there, whatever the alignment: one integer. @return as dn_guard_enter(). */
DN_API dn_status_t dn_acc_swap(const dn_guard_t *guard, const dn_element_t *element, void *at,
                               const void *value, const void *compare, void *old);

/** An accumulate under way between layouts. */
typedef struct dn_acc_walk {
    const dn_guard_t *guard;
    dn_element_t element;
    dn_acc_op_t op;
    int fetches;
    dn_prog_cursor_t target; /**< addresses */
    dn_prog_cursor_t origin; /**< DN_ACC_NO_OP: not looked at */
    dn_prog_cursor_t result; /**< likewise, unless fetches */
} dn_acc_walk_t;

/**
 * Go @p len bytes of elements ahead.
 * @retval DN_ERR_PARAM  the target's layout, which may be a peer's, cuts an element. Elements before it have changed, and there
 *                       are no results.
 * @retval DN_ERR_UNSUPPORTED  elements with gaps have no layout. Nothing has changed.
 * Else as dn_guard_enter().
 */
DN_API dn_status_t dn_acc_walk(dn_acc_walk_t *walk, uint64_t len);

#endif
