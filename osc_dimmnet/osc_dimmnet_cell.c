/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_cell.c
 * Accumulates on words, cell by cell: each cell changes in one step, also where it has gaps.
 */
#include "dn_config.h"

#include "osc_dimmnet_cell.h"

/** Change a whole cell. @return what was there; with OSC_REPLACE, if @p fetches. */
static inline osc_cell_t change(const osc_element_t *element, osc_op_t op, uint8_t *at, osc_cell_t operand,
                                bool fetches)
{
    if (OSC_NO_OP == op) {
        return osc_cell_load(at);
    }
    if (OSC_REPLACE == op && !fetches && osc_cell_moves()) {
        __atomic_thread_fence(__ATOMIC_RELEASE);
        *(volatile osc_cell_t *) (void *) at = operand;
        return operand;
    }
    osc_cell_t seen = osc_cell_peek(at);
    while (!osc_cell_swap(at, &seen, osc_combine(element->size, op, element->is_signed, seen, operand))) {
    }
    return seen;
}

/** Change the bytes of a cell that a mask has. The others are written as they were, so not at all for who looks. */
static osc_cell_t change_masked(const osc_element_t *element, osc_op_t op, uint8_t *at, osc_cell_t operand,
                                osc_cell_t mask)
{
    osc_cell_t seen, next;

    if (OSC_NO_OP == op) {
        return osc_cell_load(at);
    }
    seen = osc_cell_peek(at);
    do {
        next = osc_combine(element->size, op, element->is_signed, seen, operand);
        next = (next & mask) | (seen & ~mask);
    } while (!osc_cell_swap(at, &seen, next));
    return seen;
}

void ompi_osc_dimmnet_cells_end(osc_cells_t *cells)
{
    osc_cell_t operand, mask, seen;
    uint8_t bytes[OSC_CELL];

    if (0 == cells->waiting) {
        return;
    }
    memcpy(&operand, cells->operand, sizeof(operand));
    memcpy(&mask, cells->mask, sizeof(mask));
    seen = change_masked(&cells->element, cells->op, cells->at, operand, mask);
    memcpy(bytes, &seen, sizeof(bytes));
    for (int lane = 0; lane < OSC_CELL; lane++) {
        if (0 != cells->mask[lane] && NULL != cells->result[lane]) {
            *cells->result[lane] = bytes[lane];
        }
    }
    memset(cells->mask, 0, sizeof(cells->mask));
    cells->waiting = 0;
}

/** Some bytes of a cell: they wait for others of the same. */
static void add_some(osc_cells_t *cells, uint8_t *at, const uint8_t *operand, uint8_t *result, uint64_t len)
{
    const uint64_t lane = (uintptr_t) at & (OSC_CELL - 1);
    bool taken = cells->at != at - lane;

    for (uint64_t i = 0; i < len; i++) {
        taken = taken || 0 != cells->mask[lane + i];
    }
    if (taken) {
        ompi_osc_dimmnet_cells_end(cells);
    }
    cells->at = at - lane;
    for (uint64_t i = 0; i < len; i++) {
        cells->mask[lane + i] = 0xff;
        cells->operand[lane + i] = NULL == operand ? 0 : operand[i];
        cells->result[lane + i] = NULL == result ? NULL : result + i;
    }
    cells->waiting += len;
}

void ompi_osc_dimmnet_cells_add(osc_cells_t *cells, uint8_t *at, const uint8_t *operand, uint8_t *result,
                                uint64_t len)
{
    const uint64_t before = -(uintptr_t) at & (OSC_CELL - 1);
    uint64_t off = before < len ? before : len;

    operand = OSC_NO_OP == cells->op ? NULL : operand;
    if (0 != off) {
        add_some(cells, at, operand, result, off);
    }
    if (len - off >= OSC_CELL) {
        ompi_osc_dimmnet_cells_end(cells);
    }
    for (; len - off >= OSC_CELL; off += OSC_CELL) {
        osc_cell_t value = {0};

        if (NULL != operand) {
            memcpy(&value, operand + off, sizeof(value));
        }
        value = change(&cells->element, cells->op, at + off, value, NULL != result);
        if (NULL != result) {
            memcpy(result + off, &value, sizeof(value));
        }
    }
    if (off < len) {
        add_some(cells, at + off, NULL == operand ? NULL : operand + off,
                 NULL == result ? NULL : result + off, len - off);
    }
}

void ompi_osc_dimmnet_cells_rebase(osc_cells_t *cells, uint64_t bytes)
{
    for (int lane = 0; lane < OSC_CELL; lane++) {
        if (0 != cells->mask[lane] && NULL != cells->result[lane]) {
            cells->result[lane] -= bytes;
        }
    }
}
