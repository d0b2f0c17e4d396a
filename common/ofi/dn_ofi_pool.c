/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Buffers for messages, in pools of three sizes.
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <stdlib.h>
#include <string.h>

static int dn_ofi_pool_grow(dn_ofi_t *ofi, dn_ofi_pool_t *pool)
{
    const size_t stride = (sizeof(dn_ofi_buffer_t) + pool->room + 63) & ~(size_t) 63;
    dn_ofi_slab_t *slab = aligned_alloc(64, sizeof(*slab) + pool->each * stride);

    if (NULL == slab) {
        return 0;
    }
    memset(slab, 0, sizeof(*slab) + pool->each * stride);
    if (0 != (ofi->mr_mode & FI_MR_LOCAL)) {
        slab->mr = dn_ofi_mr(ofi, slab->bytes, pool->each * stride, FI_SEND | FI_RECV);
        if (NULL == slab->mr) {
            free(slab);
            return 0;
        }
    }
    slab->next = pool->slab;
    pool->slab = slab;
    for (uint32_t i = 0; i < pool->each; i++) {
        dn_ofi_buffer_t *buffer = (dn_ofi_buffer_t *) (slab->bytes + i * stride);
        buffer->room = pool->room;
        buffer->desc = NULL != slab->mr ? fi_mr_desc(slab->mr) : NULL;
        buffer->next = pool->free;
        pool->free = buffer;
    }
    return 1;
}

dn_ofi_buffer_t *dn_ofi_buffer(dn_ofi_t *ofi, size_t bytes)
{
    dn_ofi_pool_t *pool = ofi->pool;

    while (bytes > pool->room) {
        pool++;
    }
    if (NULL == pool->free && !dn_ofi_pool_grow(ofi, pool)) {
        return NULL;
    }
    dn_ofi_buffer_t *buffer = pool->free;
    pool->free = buffer->next;
    buffer->next = NULL;
    buffer->lines = 0;
    buffer->loan = NULL;
    return buffer;
}

void dn_ofi_buffer_free(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    dn_ofi_pool_t *pool = ofi->pool;

    while (buffer->room > pool->room) {
        pool++;
    }
    buffer->next = pool->free;
    pool->free = buffer;
}

void dn_ofi_pool_unregister(dn_ofi_pool_t *pool)
{
    for (dn_ofi_slab_t *slab = pool->slab; NULL != slab; slab = slab->next) {
        if (NULL != slab->mr && 0 == fi_close(&slab->mr->fid)) {
            slab->mr = NULL;
        }
    }
}

void dn_ofi_pool_close(dn_ofi_pool_t *pool)
{
    dn_ofi_pool_unregister(pool);
    while (NULL != pool->slab) {
        dn_ofi_slab_t *slab = pool->slab;
        pool->slab = slab->next;
        free(slab);
    }
}
