/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_sg.h
 * Walking one side of a transfer (dn_sg_t), and copying between two sides.
 */
#ifndef DN_SG_H
#define DN_SG_H

#include "dn_prog.h"
#include "dn_types.h"

/** Where a walk through one side stands. */
typedef struct dn_sg_cursor {
    uint64_t left;     /**< bytes of the whole walk that are ahead */
    const dn_sg_t *sg; /**< of blocks; NULL: one contiguous block, or a use */
    uint64_t base;     /**< added to every block's place */
    size_t index;      /**< the present block */
    uint64_t done;     /**< bytes of the present block that are behind */
    int walks; /**< not 0: a walk through a use, by `walk`; `base`, `index` and `done` have no meaning. A list of blocks has a walk
                              of its own, which takes half the time */
    dn_prog_cursor_t walk; /**< through the use */
} dn_sg_cursor_t;

/**
 * Check one side: it has @p len bytes, and none of its blocks leaves 0 .. limit when the side is placed at @p base.
 * @retval DN_ERR_PARAM  the sum differs, or an address overflows.
 * @retval DN_ERR_RANGE  a block leaves the limit.
 */
DN_DEVICE_API dn_status_t dn_sg_check(const dn_sg_t *sg, uint64_t base, uint64_t len, uint64_t limit);

/** Number of blocks in the list of a side; 0 where sg is NULL or a use. */
static inline size_t dn_sg_listed(const dn_sg_t *sg)
{
    return NULL != sg && NULL == sg->use ? sg->count : 0;
}

/** Number of blocks of a side; 1 where sg is NULL. The side has been checked. */
DN_DEVICE_API uint64_t dn_sg_blocks(const dn_sg_t *sg);

/** Start a walk over @p len bytes; sg NULL: they lie together. The side has been checked. */
DN_DEVICE_API void dn_sg_start(dn_sg_cursor_t *cursor, const dn_sg_t *sg, uint64_t base, uint64_t len);

/**
 * Take the next run of bytes that lie together, at most @p max.
 * @param[out] at_p  Where the run begins.
 * @return the length of the run; 0 only when nothing is left or max is 0.
 */
DN_DEVICE_API uint64_t dn_sg_next(dn_sg_cursor_t *cursor, uint64_t max, uint64_t *at_p);

/** Go @p len bytes ahead. */
DN_DEVICE_API void dn_sg_skip(dn_sg_cursor_t *cursor, uint64_t len);

/** Copy @p len bytes from one side to the other; the cursors hold addresses of this process. */
DN_DEVICE_API void dn_sg_copy(dn_sg_cursor_t *to, dn_sg_cursor_t *from, uint64_t len);

/** Copy @p len bytes of one side into a buffer. */
DN_DEVICE_API void dn_sg_gather(void *buffer, dn_sg_cursor_t *from, uint64_t len);
/** Copy @p len bytes of a buffer into one side. */
DN_DEVICE_API void dn_sg_scatter(dn_sg_cursor_t *to, const void *buffer, uint64_t len);

#endif
