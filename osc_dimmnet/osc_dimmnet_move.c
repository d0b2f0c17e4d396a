/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_move.c
 * Put and get: copies between the memory of the origin and the memory of the target, which is mapped here.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

/** From so many bytes on, dn_copy() is faster than memcpy() for bytes that are not in this core's caches. */
#define COPY_MIN 128

/** From so many bytes on, dn_copy_in() is faster than dn_copy(): its string instruction writes whole lines without reading them
 * first (perf/dn_rma, put_bw). */
#define COPY_STRING (32u << 10)

/** Copy bytes that lie together. A word of 8 bytes is copied by one store, so that a process that polls it never sees a part of it. */
static inline void copy_bytes(uint8_t *to, const uint8_t *from, uint64_t len)
{
    uint64_t word;

    if (sizeof(word) == len) {
        memcpy(&word, from, sizeof(word));
        memcpy(to, &word, sizeof(word));
    } else if (COPY_MIN > len) {
        memcpy(to, from, len);
    } else if (COPY_STRING <= len) {
        dn_copy_in(to, from, len);
    } else {
        dn_copy(to, from, len);
    }
}

/** Copy between two sides, of which one has gaps. */
static int __attribute__((noinline)) copy_blocks(const osc_side_t *to, const osc_side_t *from)
{
    dn_prog_cursor_t write, read;

    if (OPAL_UNLIKELY(!osc_side_start(to, &write) || !osc_side_start(from, &read))) {
        return ompi_datatype_sndrcv((void *) (uintptr_t) from->buf, (int32_t) from->count, from->type,
                                    (void *) (uintptr_t) to->buf, (int32_t) to->count, to->type);
    }
    (void) dn_prog_copy(&write, &read, UINT64_MAX);
    return OMPI_SUCCESS;
}

static inline int move_copy(const osc_side_t *to, const osc_side_t *from)
{
    const uint64_t len = osc_side_bytes(from);

    if (OPAL_UNLIKELY(len > osc_side_bytes(to))) {
        return MPI_ERR_TRUNCATE;
    }
    if (OPAL_UNLIKELY(!osc_side_contiguous(to) || !osc_side_contiguous(from))) {
        return copy_blocks(to, from);
    }
    copy_bytes(osc_side_at(to), osc_side_at(from), len);
    return OMPI_SUCCESS;
}

/** Put or get. */
static inline __attribute__((always_inline)) int
move_either(osc_module_t *module, const void *origin_addr, dn_ompi_count_t origin_count,
            ompi_datatype_t *origin_type, int target, ptrdiff_t disp, size_t count, ompi_datatype_t *type,
            bool write, ompi_request_t **request)
{
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    osc_side_t there;
    int rc = osc_reach(module, target, disp, count, type, &there);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    if (OPAL_UNLIKELY(NULL == module->target[target].base)) {
        return ompi_osc_dimmnet_far_move(module, target, &origin, &there, write, request);
    }
    return write ? move_copy(&there, &origin) : move_copy(&origin, &there);
}

int ompi_osc_dimmnet_put(const void *origin_addr, dn_ompi_count_t origin_count, ompi_datatype_t *origin_type,
                         int target, ptrdiff_t target_disp, dn_ompi_count_t target_count,
                         ompi_datatype_t *target_type, ompi_win_t *win)
{
    return move_either(osc_module(win), origin_addr, origin_count, origin_type, target, target_disp,
                       target_count, target_type, true, NULL);
}

int ompi_osc_dimmnet_get(void *origin_addr, dn_ompi_count_t origin_count, ompi_datatype_t *origin_type,
                         int target, ptrdiff_t target_disp, dn_ompi_count_t target_count,
                         ompi_datatype_t *target_type, ompi_win_t *win)
{
    return move_either(osc_module(win), origin_addr, origin_count, origin_type, target, target_disp,
                       target_count, target_type, false, NULL);
}

int ompi_osc_dimmnet_rput(const void *origin_addr, dn_ompi_count_t origin_count, ompi_datatype_t *origin_type,
                          int target, ptrdiff_t target_disp, dn_ompi_count_t target_count,
                          ompi_datatype_t *target_type, ompi_win_t *win, ompi_request_t **request)
{
    *request = &ompi_request_empty;
    return move_either(osc_module(win), origin_addr, origin_count, origin_type, target, target_disp,
                       target_count, target_type, true, request);
}

int ompi_osc_dimmnet_rget(void *origin_addr, dn_ompi_count_t origin_count, ompi_datatype_t *origin_type,
                          int target, ptrdiff_t target_disp, dn_ompi_count_t target_count,
                          ompi_datatype_t *target_type, ompi_win_t *win, ompi_request_t **request)
{
    *request = &ompi_request_empty;
    return move_either(osc_module(win), origin_addr, origin_count, origin_type, target, target_disp,
                       target_count, target_type, false, request);
}
