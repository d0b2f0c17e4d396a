/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_cell.c
 * Accumulates on words, cell by cell: each cell changes in one step, also where it has gaps.
 */
#include "dn_config.h"

#include "osc_dimmnet_cell.h"

/** How far ahead lines are fetched: an exchange keeps the processor from looking beyond it, so nobody else would. */
#define AHEAD 512u

/** Change cells side by side, by an operation that the compiler knows. */
static inline __attribute__((always_inline)) void change_by(uint32_t size, osc_op_t op, bool is_signed,
                                                            uint8_t *at, const uint8_t *operand,
                                                            uint8_t *result, uint64_t len)
{
    for (uint64_t off = 0; off < len; off += OSC_CELL) {
        osc_cell_t value = {0}, seen;

        if (0 == ((uintptr_t) (at + off) & (OSC_LINE - 1)) && len - off > AHEAD) {
            __builtin_prefetch(at + off + AHEAD, 1);
        }
        if (OSC_NO_OP == op) {
            seen = osc_cell_load(at + off);
        } else if (OSC_REPLACE == op && NULL == result && osc_cell_moves()) {
            memcpy(&value, operand + off, sizeof(value));
            *(volatile osc_cell_t *) (void *) (at + off) = value;
            continue;
        } else {
            memcpy(&value, operand + off, sizeof(value));
            seen = osc_cell_peek(at + off);
            while (!osc_cell_swap(at + off, &seen, osc_combine(size, op, is_signed, seen, value))) {
            }
        }
        if (NULL != result) {
            memcpy(result + off, &seen, sizeof(seen));
        }
    }
}

/** Change cells side by side: a loop for each of the operations that are of one instruction. */
static void change_row(const osc_element_t *element, osc_op_t op, uint8_t *at, const uint8_t *operand,
                       uint8_t *result, uint64_t len)
{
    switch (op) {
    case OSC_NO_OP:
        change_by(8, OSC_NO_OP, false, at, operand, result, len);
        break;
    case OSC_REPLACE:
        /* Before plain stores comes what was written before. */
        __atomic_thread_fence(__ATOMIC_RELEASE);
        change_by(8, OSC_REPLACE, false, at, operand, result, len);
        break;
    case OSC_BAND:
        change_by(8, OSC_BAND, false, at, operand, result, len);
        break;
    case OSC_BOR:
        change_by(8, OSC_BOR, false, at, operand, result, len);
        break;
    case OSC_BXOR:
        change_by(8, OSC_BXOR, false, at, operand, result, len);
        break;
    case OSC_SUM:
        if (1 == element->size) {
            change_by(1, OSC_SUM, false, at, operand, result, len);
        } else if (2 == element->size) {
            change_by(2, OSC_SUM, false, at, operand, result, len);
        } else if (4 == element->size) {
            change_by(4, OSC_SUM, false, at, operand, result, len);
        } else {
            change_by(8, OSC_SUM, false, at, operand, result, len);
        }
        break;
    default:
        change_by(element->size, op, element->is_signed, at, operand, result, len);
        break;
    }
}

/** As osc_combine(), for operations and sizes that the compiler does not know. */
static osc_cell_t __attribute__((noinline))
combine_any(const osc_element_t *element, osc_op_t op, osc_cell_t cell, osc_cell_t with)
{
    return osc_combine(element->size, op, element->is_signed, cell, with);
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
        next = combine_any(element, op, seen, operand);
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

    for (uint64_t i = 0; i < len && lane + i < OSC_CELL; i++) {
        taken = taken || 0 != cells->mask[lane + i];
    }
    if (taken) {
        ompi_osc_dimmnet_cells_end(cells);
    }
    cells->at = at - lane;
    for (uint64_t i = 0; i < len && lane + i < OSC_CELL; i++) {
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
    const uint64_t whole = (len - off) / OSC_CELL * OSC_CELL;
    if (0 != whole) {
        ompi_osc_dimmnet_cells_end(cells);
        change_row(&cells->element, cells->op, at + off, NULL == operand ? NULL : operand + off,
                   NULL == result ? NULL : result + off, whole);
        off += whole;
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
