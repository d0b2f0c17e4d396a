/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_atomic.h
 * What an accumulate does to the elements of a window.
 *
 * Each element must change in one step, whoever else accumulates there at the same time: another process,
 * another thread, another operation. So everything that reads or writes an element for an accumulate has to
 * go one and the same way. There are two:
 *
 *   words  integers, logicals and bytes of 1, 2, 4 or 8 bytes, at an address that is a multiple of their size:
 *          by the processor's atomic instructions.
 *   lock   all else: floating-point numbers, complex ones, pairs, integers at odd addresses: while holding the lock
 *          of the target (osc_control_t::accumulates). Long runs then go at the speed of plain loops.
 *
 * The way follows from the predefined datatype of the element and its address, and from nothing else. All
 * accumulates that meet at one element have the same predefined datatype, or MPI leaves the result open (MPI-3.1,
 * 11.7.1), and pages are mapped alike everywhere, so all processes agree on the address up to multiples of a page. Hence
 * they choose alike. compare_and_swap takes integers, logicals and bytes only: words, or the lock at odd addresses.
 *
 * A holder of the window's exclusive lock has the target for itself, so needs neither, unless threads share it.
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
    ompi_datatype_t *type;
    uint32_t size;   /**< bytes of data; 0: nothing is known but bytes */
    uint32_t extent; /**< with what is between the parts of a pair */
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
    uint32_t *lock; /**< NULL: nobody else is there */
} osc_guard_t;

static inline osc_guard_t osc_guard(const osc_module_t *module, const osc_target_t *to)
{
    const bool alone = 0 != (to->epochs & OSC_EXCLUSIVE) && !module->threads;

    return (osc_guard_t){alone ? NULL : &to->control->accumulates};
}

void ompi_osc_dimmnet_guard_take(uint32_t *lock);

static inline void osc_guard_enter(const osc_guard_t *guard)
{
    if (NULL != guard->lock) {
        ompi_osc_dimmnet_guard_take(guard->lock);
    }
}

static inline void osc_guard_leave(const osc_guard_t *guard)
{
    if (NULL != guard->lock) {
        osc_store_u32(guard->lock, 0);
    }
}

/**
 * Change @p n elements side by side, and keep what was there.
 *
 * @param[in]  operand  As many, side by side, of any alignment; not looked at by OSC_NO_OP.
 * @param[out] result   NULL: not wanted.
 * @param[in]  element  Without gaps: its size is its extent.
 */
void ompi_osc_dimmnet_apply(osc_guard_t guard, const osc_element_t *element, osc_op_t op, void *at,
                            const void *operand, void *result, uint64_t n);

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
 * @return false: the target's layout, which is a peer's, cuts an element. Elements before it have changed, and there are
 *         no results.
 */
bool ompi_osc_dimmnet_walk(osc_walk_t *walk, uint64_t len);

/** compare_and_swap of one word, whatever its alignment: its size is the element's, as is that of the others. */
void ompi_osc_dimmnet_compare(osc_guard_t guard, const osc_element_t *element, void *at, const void *value,
                              const void *compare, void *old);

/** One word: store @p value if @p compare is there. @return what was there. */
uint64_t ompi_osc_dimmnet_swap_word(void *at, uint32_t size, uint64_t compare, uint64_t value);

#endif
