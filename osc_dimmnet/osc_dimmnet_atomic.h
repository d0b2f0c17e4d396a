/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_atomic.h
 * What an accumulate does to the elements of a window.
 *
 * What is promised: a call takes effect as a whole. Of two calls whose bytes meet, each finds all of the other's effect there or
 * none of it, whatever the number of elements and the layout. MPI promises it of each element only. The promise holds for
 *
 *   words   calls on integers, logicals and bytes, at addresses that are multiples of their size, and calls by datatypes of
 *           several kinds, which count as bytes; among each other, whatever the sizes of their words;
 *   others  calls on floating-point numbers, complex ones, pairs, and integers at odd addresses; among each other.
 *
 * A call on words that meets one of the others on the same bytes is not of the same predefined datatype, so that MPI leaves
 * the result open (MPI-3.1, 11.7.1). There are two exceptions. At far targets a call of more bytes than a message holds
 * (osc_dimmnet_request.c) takes effect message by message. And a call on words that has the guard changes a cell more than once if
 * its layout leaves the cell and comes back, or names bytes twice: a call within one cell, which needs no guard, may come between.
 *
 * How: every call takes the guard of the target (osc_control_t::accumulates) for as long as it goes on, but for those that
 * one instruction does:
 *
 *   one word, aligned                  by the processor's atomic instruction for the operation;
 *   words in one cell                  (osc_dimmnet_cell.h) by one exchange of the cell;
 *   compare_and_swap, aligned          by that instruction.
 *
 * These do not look at the guard. So a call on words that holds the guard changes each cell in one exchange, too, and all that
 * it has to do there: what it meets without the guard lies in one cell, and comes before or after. The others meet nobody without
 * the guard, and go by plain loops.
 *
 * The way follows from the predefined datatype, the address and the length, and from nothing else. Pages are mapped alike
 * everywhere, so all processes agree on the address up to multiples of a page.
 *
 * A holder of the window's exclusive lock has the target for itself, so needs none of this, unless threads share it.
 */
#ifndef OSC_DIMMNET_ATOMIC_H
#define OSC_DIMMNET_ATOMIC_H

#include "osc_dimmnet.h"

/** Operations, as this component numbers them. */
typedef enum osc_op {
    OSC_SUM,
    OSC_REPLACE,
    OSC_NO_OP,
    OSC_BAND,
    OSC_BOR,
    OSC_BXOR,
    OSC_MAX,
    OSC_MIN,
    OSC_PROD,
    OSC_LAND,
    OSC_LOR,
    OSC_LXOR,
    OSC_MAXLOC,
    OSC_MINLOC,
    OSC_OPS
} osc_op_t;

/** The number of an operation; OSC_OPS: none that windows know. */
osc_op_t ompi_osc_dimmnet_op(MPI_Op op);

/** MPI's own handle. */
MPI_Op ompi_osc_dimmnet_op_handle(osc_op_t op);

/** Elements of a predefined datatype. */
typedef struct osc_element {
    ompi_datatype_t *type; /**< NULL: of several kinds, which count as bytes */
    uint32_t size;         /**< bytes of data */
    uint32_t extent;       /**< with what is between the parts of a pair */
    uint32_t align;
    bool words;
    bool is_signed;
} osc_element_t;

/** Integers, logicals, bytes: a bit for each OPAL_DATATYPE_* that the processor has atomic instructions for. */
#define OSC_SIGNED_IDS                                                              \
    (1u << OPAL_DATATYPE_INT1 | 1u << OPAL_DATATYPE_INT2 | 1u << OPAL_DATATYPE_INT4 \
     | 1u << OPAL_DATATYPE_INT8 | 1u << OPAL_DATATYPE_LONG)
#define OSC_WORD_IDS                                                                                    \
    (OSC_SIGNED_IDS | 1u << OPAL_DATATYPE_UINT1 | 1u << OPAL_DATATYPE_UINT2 | 1u << OPAL_DATATYPE_UINT4 \
     | 1u << OPAL_DATATYPE_UINT8 | 1u << OPAL_DATATYPE_UNSIGNED_LONG | 1u << OPAL_DATATYPE_BOOL         \
     | 1u << OPAL_DATATYPE_WCHAR)

/** The predefined datatype that all elements of @p type have. */
osc_element_t ompi_osc_dimmnet_element(ompi_datatype_t *type);

/** Do these bytes go the way of words? */
static inline bool osc_is_word(const osc_element_t *element, const void *at)
{
    return element->words && 0 == ((uintptr_t) at & (element->size - 1));
}

/** How to keep others off while elements change. */
typedef struct osc_guard {
    const osc_module_t *module;
    osc_control_t *control; /**< of the target; NULL: nobody else is there */
    osc_patience_t
        *tries; /**< not NULL: who asks must not wait, and comes again; for how long it has done so */
} osc_guard_t;

static inline osc_guard_t osc_guard(const osc_module_t *module, const osc_target_t *to)
{
    const bool alone = 0 != (to->epochs & OSC_EXCLUSIVE) && !module->threads;

    return (osc_guard_t){module, alone ? NULL : to->control, NULL};
}

/** The rest of osc_guard_enter(), when another has it (osc_dimmnet_passive.c). */
int ompi_osc_dimmnet_guard_wait(const osc_guard_t *guard);

/**
 * @retval OMPI_ERR_UNREACH      its owner has ended: what it was changing may be half changed, and stays guarded.
 * @retval OMPI_ERR_WOULD_BLOCK  osc_guard_t::tries is set, and another has it: the caller comes again later.
 */
static inline int osc_guard_enter(const osc_guard_t *guard)
{
    uint32_t owner = 0;

    if (NULL == guard->control
        || __atomic_compare_exchange_n(&guard->control->accumulates, &owner,
                                       (uint32_t) guard->module->rank + 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED)) {
        return OMPI_SUCCESS;
    }
    return ompi_osc_dimmnet_guard_wait(guard);
}

static inline void osc_guard_leave(const osc_guard_t *guard)
{
    if (NULL != guard->control) {
        osc_store_u32(&guard->control->accumulates, 0);
    }
}

/**
 * Change @p n elements side by side, and keep what was there.
 *
 * @param[in]  operand  As many, side by side, of any alignment; not looked at by OSC_NO_OP.
 * @param[out] result   NULL: not wanted.
 * @param[in]  element  Without gaps: its size is its extent.
 * @return as osc_guard_enter(): nothing has changed.
 */
int ompi_osc_dimmnet_apply(const osc_guard_t *guard, const osc_element_t *element, osc_op_t op, void *at,
                           const void *operand, void *result, uint64_t n);

/** The same where nobody else looks at the elements now, by plain loops. */
void ompi_osc_dimmnet_apply_alone(const osc_element_t *element, osc_op_t op, void *at, const void *operand,
                                  void *result, uint64_t n);

/** An accumulate under way. */
typedef struct osc_walk {
    osc_guard_t guard;
    osc_element_t element;
    osc_op_t op;
    bool fetches;
    dn_prog_cursor_t target;
    dn_prog_cursor_t origin; /**< OSC_NO_OP: not looked at */
    dn_prog_cursor_t result; /**< likewise, unless fetches */
} osc_walk_t;

/**
 * Go @p len bytes of elements ahead (osc_dimmnet_accumulate.c).
 * @retval OMPI_ERR_UNREACH    as osc_guard_enter(): nothing has changed.
 * @retval OMPI_ERR_BAD_PARAM  the target's layout, which is a peer's, cuts an element. Elements before it have changed, and
 *                             there are no results.
 */
int ompi_osc_dimmnet_walk(osc_walk_t *walk, uint64_t len);

/** compare_and_swap of one word, whatever its alignment: its size is the element's, as is that of the others. @return as
 * osc_guard_enter(). */
int ompi_osc_dimmnet_compare(const osc_guard_t *guard, const osc_element_t *element, void *at,
                             const void *value, const void *compare, void *old);

/** One word: store @p value if @p compare is there. @return what was there. */
uint64_t ompi_osc_dimmnet_swap_word(void *at, uint32_t size, uint64_t compare, uint64_t value);

#endif
