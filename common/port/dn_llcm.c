/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_port.h"

#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

#define DN_LLCM_UNIT 64u

dn_status_t dn_llcm_open(dn_llcm_t *llcm, void *base, uint32_t bytes)
{
    llcm->base = base;
    llcm->units = bytes / DN_LLCM_UNIT;
    llcm->taken = calloc((llcm->units + 63) / 64, sizeof(uint64_t));
    return NULL == llcm->taken ? DN_ERR_NOMEM : DN_OK;
}

void dn_llcm_close(dn_llcm_t *llcm)
{
    free(llcm->taken);
    llcm->taken = NULL;
}

static int dn_llcm_is_used(const dn_llcm_t *llcm, uint32_t unit)
{
    return 0 != (llcm->taken[unit / 64] & (UINT64_C(1) << (unit % 64)));
}

static void dn_llcm_mark(dn_llcm_t *llcm, uint32_t unit, uint32_t count, int taken)
{
    for (uint32_t i = unit; i < unit + count; i++) {
        const uint64_t bit = UINT64_C(1) << (i % 64);
        llcm->taken[i / 64] = taken ? llcm->taken[i / 64] | bit : llcm->taken[i / 64] & ~bit;
    }
}

dn_status_t dn_llcm_alloc(dn_port_t *port, size_t len, uint64_t *off_p, void **mem_p)
{
    dn_llcm_t *llcm = &port->llcm;
    const uint64_t need = len / DN_LLCM_UNIT + (0 != len % DN_LLCM_UNIT);
    uint32_t run = 0;

    dn_port_lock(port);
    for (uint32_t unit = 0; 0 != need && unit < llcm->units; unit++) {
        run = dn_llcm_is_used(llcm, unit) ? 0 : run + 1;
        if (run == need) {
            const uint32_t first = unit + 1 - run;
            dn_llcm_mark(llcm, first, run, 1);
            dn_port_unlock(port);
            *off_p = (uint64_t) first * DN_LLCM_UNIT;
            *mem_p = llcm->base + *off_p;
            memset(*mem_p, 0, need * DN_LLCM_UNIT);
            return DN_OK;
        }
    }
    dn_port_unlock(port);
    dn_log_error("no piece of %zu bytes is free in the LLCM; raise llcm_bytes, or ask for at least 1", len);
    return DN_ERR_NOMEM;
}

void dn_llcm_free(dn_port_t *port, uint64_t off, size_t len)
{
    dn_port_lock(port);
    dn_llcm_mark(&port->llcm, (uint32_t) (off / DN_LLCM_UNIT),
                 (uint32_t) (len / DN_LLCM_UNIT + (0 != len % DN_LLCM_UNIT)), 0);
    dn_port_unlock(port);
}

size_t dn_llcm_taken(dn_port_t *port)
{
    const dn_llcm_t *llcm = &port->llcm;
    size_t units = 0;

    dn_port_lock(port);
    for (uint32_t i = 0; i < (llcm->units + 63) / 64; i++) {
        units += (size_t) __builtin_popcountll(llcm->taken[i]);
    }
    dn_port_unlock(port);
    return units * DN_LLCM_UNIT;
}
