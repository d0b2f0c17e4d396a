/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_cell.c
 * Accumulates on words, cell by cell: each cell changes in one step, also where it has gaps.
 */
#include "dn_config.h"

#include "dn_cell.h"

/** How far ahead lines are fetched. The processor does not fetch them by itself: an exchange keeps it from looking ahead. */
#define DN_CELLS_AHEAD 512u

/** Bytes of a line. */
#define DN_CELLS_LINE 64

/** Change cells side by side, by an operation that the compiler knows. */
static inline __attribute__((always_inline)) void dn_cells_change_by(uint32_t size, dn_acc_op_t op,
                                                                     int is_signed, uint8_t *at,
                                                                     const uint8_t *operand, uint8_t *result,
                                                                     uint64_t len)
{
    for (uint64_t off = 0; off < len; off += DN_CELL) {
        dn_cell_t value = {0}, seen;

        if (0 == ((uintptr_t) (at + off) & (DN_CELLS_LINE - 1)) && len - off > DN_CELLS_AHEAD) {
            __builtin_prefetch(at + off + DN_CELLS_AHEAD, 1);
        }
        if (DN_ACC_NO_OP == op) {
            seen = dn_cell_load(at + off);
        } else if (DN_ACC_REPLACE == op && NULL == result && dn_cell_moves()) {
            memcpy(&value, operand + off, sizeof(value));
            *(volatile dn_cell_t *) (void *) (at + off) = value;
            continue;
        } else {
            memcpy(&value, operand + off, sizeof(value));
            seen = dn_cell_peek(at + off);
            while (!dn_cell_swap(at + off, &seen, dn_cell_combine(size, op, is_signed, seen, value))) {
            }
        }
        if (NULL != result) {
            memcpy(result + off, &seen, sizeof(seen));
        }
    }
}

/** Change cells side by side: one loop for each operation that is one instruction. */
static void dn_cells_change_row(const dn_cells_t *cells, uint8_t *at, const uint8_t *operand, uint8_t *result,
                                uint64_t len)
{
    switch (cells->op) {
    case DN_ACC_NO_OP:
        dn_cells_change_by(8, DN_ACC_NO_OP, 0, at, operand, result, len);
        break;
    case DN_ACC_REPLACE:
        /* Before plain stores comes what was written before. */
        dn_fence_release();
        dn_cells_change_by(8, DN_ACC_REPLACE, 0, at, operand, result, len);
        break;
    case DN_ACC_BAND:
        dn_cells_change_by(8, DN_ACC_BAND, 0, at, operand, result, len);
        break;
    case DN_ACC_BOR:
        dn_cells_change_by(8, DN_ACC_BOR, 0, at, operand, result, len);
        break;
    case DN_ACC_BXOR:
        dn_cells_change_by(8, DN_ACC_BXOR, 0, at, operand, result, len);
        break;
    case DN_ACC_SUM:
        if (1 == cells->size) {
            dn_cells_change_by(1, DN_ACC_SUM, 0, at, operand, result, len);
        } else if (2 == cells->size) {
            dn_cells_change_by(2, DN_ACC_SUM, 0, at, operand, result, len);
        } else if (4 == cells->size) {
            dn_cells_change_by(4, DN_ACC_SUM, 0, at, operand, result, len);
        } else {
            dn_cells_change_by(8, DN_ACC_SUM, 0, at, operand, result, len);
        }
        break;
    default:
        dn_cells_change_by(cells->size, cells->op, cells->is_signed, at, operand, result, len);
        break;
    }
}

/** As dn_cell_combine(), for operations and sizes that the compiler does not know. */
static dn_cell_t __attribute__((noinline))
dn_cells_combine_any(uint32_t size, dn_acc_op_t op, int is_signed, dn_cell_t cell, dn_cell_t with)
{
    return dn_cell_combine(size, op, is_signed, cell, with);
}

uint64_t dn_cells_combine(const dn_element_t *element, dn_acc_op_t op, uint64_t word, uint64_t with)
{
    return dn_cells_combine_any(element->size, op, dn_element_is_signed(element), (dn_cell_t){word},
                                (dn_cell_t){with})[0];
}

/** Change the bytes of a cell that a mask names. The other bytes are written as they were, so no reader sees a change there. */
static dn_cell_t dn_cells_change_masked(const dn_cells_t *cells, dn_cell_t operand, dn_cell_t mask)
{
    dn_cell_t seen, next;

    if (DN_ACC_NO_OP == cells->op) {
        return dn_cell_load(cells->at);
    }
    seen = dn_cell_peek(cells->at);
    do {
        next = dn_cells_combine_any(cells->size, cells->op, cells->is_signed, seen, operand);
        next = (next & mask) | (seen & ~mask);
    } while (!dn_cell_swap(cells->at, &seen, next));
    return seen;
}

void dn_cells_end(dn_cells_t *cells)
{
    dn_cell_t operand, mask, seen;
    uint8_t bytes[DN_CELL];

    if (0 == cells->waiting) {
        return;
    }
    memcpy(&operand, cells->operand, sizeof(operand));
    memcpy(&mask, cells->mask, sizeof(mask));
    seen = dn_cells_change_masked(cells, operand, mask);
    memcpy(bytes, &seen, sizeof(bytes));
    for (int lane = 0; lane < DN_CELL; lane++) {
        if (0 != cells->mask[lane] && NULL != cells->result[lane]) {
            *cells->result[lane] = bytes[lane];
        }
    }
    memset(cells->mask, 0, sizeof(cells->mask));
    cells->waiting = 0;
}

/** Add some bytes of a cell. They wait for other bytes of the same cell. */
static void dn_cells_add_some(dn_cells_t *cells, uint8_t *at, const uint8_t *operand, uint8_t *result,
                              uint64_t len)
{
    const uint64_t lane = (uintptr_t) at & (DN_CELL - 1);
    int taken = cells->at != at - lane;

    for (uint64_t i = 0; i < len && lane + i < DN_CELL; i++) {
        taken = taken || 0 != cells->mask[lane + i];
    }
    if (taken) {
        dn_cells_end(cells);
    }
    cells->at = at - lane;
    for (uint64_t i = 0; i < len && lane + i < DN_CELL; i++) {
        cells->mask[lane + i] = 0xff;
        cells->operand[lane + i] = NULL == operand ? 0 : operand[i];
        cells->result[lane + i] = NULL == result ? NULL : result + i;
    }
    cells->waiting += len;
}

void dn_cells_add(dn_cells_t *cells, uint8_t *at, const uint8_t *operand, uint8_t *result, uint64_t len)
{
    const uint64_t before = -(uintptr_t) at & (DN_CELL - 1);
    uint64_t off = before < len ? before : len;

    operand = DN_ACC_NO_OP == cells->op ? NULL : operand;
    if (0 != off) {
        dn_cells_add_some(cells, at, operand, result, off);
    }
    const uint64_t whole = (len - off) / DN_CELL * DN_CELL;
    if (0 != whole) {
        dn_cells_end(cells);
        dn_cells_change_row(cells, at + off, NULL == operand ? NULL : operand + off,
                            NULL == result ? NULL : result + off, whole);
        off += whole;
    }
    if (off < len) {
        dn_cells_add_some(cells, at + off, NULL == operand ? NULL : operand + off,
                          NULL == result ? NULL : result + off, len - off);
    }
}

void dn_cells_rebase(dn_cells_t *cells, uint64_t bytes)
{
    for (int lane = 0; lane < DN_CELL; lane++) {
        if (0 != cells->mask[lane] && NULL != cells->result[lane]) {
            cells->result[lane] -= bytes;
        }
    }
}
