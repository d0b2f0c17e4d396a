/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_acc_walk.c
 * Accumulates between layouts: find the pieces of memory, and change the elements there.
 */
#include "dn_config.h"

#include "dn_cell.h"

/** Bytes of operands, and of results, that are packed at a time. */
#define DN_ACC_CHUNK 4096u

/** Bytes of the longest element with gaps, a pair. */
#define DN_ACC_PAIR_MAX 64u

/**
 * Change elements without gaps: the next @p len bytes.
 * @param[in] cells  NULL: use plain loops.
 * @return 0: the layout cuts an element. No correct origin sends such a layout.
 */
static int dn_acc_walk_rows(dn_acc_walk_t *walk, dn_cells_t *cells, const uint8_t *operands, uint8_t *results,
                            uint64_t len)
{
    const dn_element_t *element = &walk->element;

    for (uint64_t off = 0, run; off < len; off += run) {
        uint8_t *result = walk->fetches ? results + off : NULL;
        uint64_t at;

        run = dn_prog_next(&walk->target, len - off, &at);
        if (0 != run % element->size) {
            return 0;
        }
        uint8_t *to = (uint8_t *) (uintptr_t) at;
        if (NULL != cells && dn_element_is_word(element, to)) {
            dn_cells_add(cells, to, operands + off, result, run);
        } else {
            if (NULL != cells) {
                /* What waits are the last bytes: the results of these follow at once. */
                dn_cells_end(cells);
            }
            dn_acc_apply_alone(element, walk->op, to, operands + off, result, run / element->size);
        }
    }
    return 1;
}

/** Start a walk over the pieces of one pair. */
static void dn_acc_start_pair(dn_prog_cursor_t *cursor, const dn_element_t *element, const void *pair)
{
    const dn_prog_use_t use = {element->layout, 1, element->extent};

    dn_prog_start(cursor, &use, (uintptr_t) pair);
}

/** Copy a pair from packed bytes to memory with its gap. */
static void dn_acc_spread(const dn_element_t *element, void *pair, const void *packed)
{
    dn_prog_cursor_t inside;

    dn_acc_start_pair(&inside, element, pair);
    (void) dn_prog_scatter(&inside, packed, element->size);
}

/**
 * Change pairs with gaps: the next @p len bytes, one pair after the other. A pair has several pieces. They change together,
 * also when the pair is only read or replaced.
 */
static void dn_acc_walk_pairs(dn_acc_walk_t *walk, const uint8_t *operands, uint8_t *results, uint64_t len)
{
    dn_element_t whole = walk->element;
    uint8_t packed[DN_ACC_PAIR_MAX];
    uint8_t value[DN_ACC_PAIR_MAX] __attribute__((aligned(64)));
    uint8_t pair[DN_ACC_PAIR_MAX] __attribute__((aligned(64)));
    dn_prog_cursor_t there, inside;

    whole.size = whole.extent;
    for (uint64_t off = 0; off < len; off += walk->element.size) {
        if (DN_ACC_NO_OP != walk->op) {
            dn_acc_spread(&walk->element, value, operands + off);
        }
        there = walk->target;
        (void) dn_prog_gather(packed, &there, walk->element.size);
        dn_acc_spread(&walk->element, pair, packed);
        dn_acc_apply_alone(&whole, walk->op, pair, value, NULL, 1);
        dn_acc_start_pair(&inside, &walk->element, pair);
        (void) dn_prog_copy(&walk->target, &inside, walk->element.size);
        if (walk->fetches) {
            memcpy(results + off, packed, walk->element.size);
        }
    }
}

/** As dn_acc_walk(), with the guard. */
static dn_status_t dn_acc_walk_guarded(dn_acc_walk_t *walk, uint64_t left)
{
    const int pairs = dn_element_has_gaps(&walk->element);
    const uint64_t most = DN_ACC_CHUNK / walk->element.size * walk->element.size;
    dn_cells_t cells;
    dn_cells_t *const by_cells = NULL != walk->guard->word && dn_element_has_words(&walk->element)
                                         && !dn_guard_close(walk->guard, left)
                                     ? &cells
                                     : NULL;
    uint8_t operands[DN_ACC_CHUNK] __attribute__((aligned(64)));
    /* Before those of a chunk are the results that still waited at the end of the last. */
    uint8_t results[DN_CELL + DN_ACC_CHUNK] __attribute__((aligned(64)));

    dn_cells_open(&cells, &walk->element, walk->op);
    for (uint64_t len; 0 != left; left -= len) {
        const uint64_t waited = cells.waiting;

        len = most < left ? most : left;
        if (DN_ACC_NO_OP != walk->op) {
            (void) dn_prog_gather(operands, &walk->origin, len);
        }
        if (pairs) {
            dn_acc_walk_pairs(walk, operands, results, len);
        } else if (!dn_acc_walk_rows(walk, by_cells, operands, results + waited, len)) {
            dn_cells_end(&cells);
            return DN_ERR_PARAM;
        }
        if (len == left) {
            dn_cells_end(&cells);
        }
        /* What waits are the last bytes: dn_acc_walk_rows(). */
        const uint64_t ready = waited + len - cells.waiting;
        if (walk->fetches) {
            (void) dn_prog_scatter(&walk->result, results, ready);
        }
        dn_cells_rebase(&cells, ready);
    }
    return DN_OK;
}

dn_status_t dn_acc_walk(dn_acc_walk_t *walk, uint64_t len)
{
    if (dn_element_has_gaps(&walk->element) && NULL == walk->element.layout) {
        return DN_ERR_UNSUPPORTED;
    }
    dn_status_t status = dn_guard_enter(walk->guard);
    if (DN_OK == status) {
        status = dn_acc_walk_guarded(walk, len);
        dn_guard_leave(walk->guard);
    }
    return status;
}
