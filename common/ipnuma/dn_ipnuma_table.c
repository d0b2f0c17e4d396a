/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ipnuma_table.h"

#include <stdlib.h>
#include <string.h>

/* Page map */

static uint32_t dn_ipnuma_pages(uint64_t len)
{
    return (uint32_t) ((len + DN_IPNUMA_PAGE - 1) / DN_IPNUMA_PAGE);
}

/** Grow a page map to at least @p pages entries. */
static dn_status_t dn_ipnuma_map_grow(dn_ipnuma_map_t *map, uint32_t pages)
{
    uint32_t room = 0 == map->room ? 1024 : map->room;

    while (room < pages) {
        room *= 2;
    }
    if (room == map->room) {
        return DN_OK;
    }
    uint64_t *page = DN_IPNUMA_PAGES < pages ? NULL : realloc(map->page, room * sizeof(*page));
    if (NULL == page) {
        return DN_ERR_NOMEM;
    }
    memset(page + map->room, 0, (room - map->room) * sizeof(*page));
    map->page = page;
    map->room = room;
    return DN_OK;
}

dn_status_t dn_ipnuma_map_add(dn_ipnuma_map_t *map, uint32_t pc, uint64_t at, uint64_t len, uint32_t *page_p)
{
    const uint32_t pages = dn_ipnuma_pages(len);
    uint32_t start = map->first, run = 0;

    if (DN_IPNUMA_PAGES < pages) {
        return DN_ERR_NOMEM;
    }
    for (uint32_t i = start; run < pages; i++) {
        const int taken = i < map->room && 0 != map->page[i];
        run = taken ? 0 : run + 1;
        start = taken ? i + 1 : start;
    }
    const dn_status_t status = dn_ipnuma_map_grow(map, start + pages);
    if (DN_OK != status) {
        return status;
    }
    for (uint32_t i = 0; i < pages; i++) {
        map->page[start + i] = (uint64_t) pc << DN_IPNUMA_ADDRESS_BITS | (at + (uint64_t) i * DN_IPNUMA_PAGE);
    }
    map->first = start == map->first ? start + pages : map->first;
    *page_p = start;
    return DN_OK;
}

void dn_ipnuma_map_remove(dn_ipnuma_map_t *map, uint32_t page, uint64_t len)
{
    memset(map->page + page, 0, dn_ipnuma_pages(len) * sizeof(*map->page));
    map->first = page < map->first ? page : map->first;
}

void dn_ipnuma_map_close(dn_ipnuma_map_t *map)
{
    free(map->page);
    *map = (dn_ipnuma_map_t){NULL, 0, 0};
}

/* Shared region table */

/** The place of the first region that ends behind an address. */
static uint32_t dn_ipnuma_regions_place(const dn_ipnuma_regions_t *regions, uint64_t at)
{
    uint32_t low = 0, high = regions->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const dn_ipnuma_region_t *region = &regions->region[middle];
        if (region->at + region->len <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int dn_ipnuma_regions_grow(dn_ipnuma_regions_t *regions)
{
    if (regions->count < regions->room) {
        return 1;
    }
    const uint32_t room = 0 == regions->room ? 16 : 2 * regions->room;
    dn_ipnuma_region_t *region = realloc(regions->region, room * sizeof(*region));
    if (NULL == region) {
        return 0;
    }
    regions->region = region;
    regions->room = room;
    return 1;
}

dn_status_t dn_ipnuma_regions_add(dn_ipnuma_regions_t *regions, void *base, uint64_t len, uint32_t peer,
                                  uint32_t mask, uint64_t random, uint64_t *at_p)
{
    const uint64_t end = UINT64_C(1) << DN_IPNUMA_ADDRESS_BITS;
    const uint64_t within = (uintptr_t) base % DN_IPNUMA_PAGE;
    uint64_t at = random % end / DN_IPNUMA_PAGE * DN_IPNUMA_PAGE + within;

    if (0 == len || end / 2 < len || !dn_ipnuma_regions_grow(regions)) {
        return DN_ERR_NOMEM;
    }
    /* Look for free addresses from there on, once around. If a region is in the way, try the addresses behind it. */
    uint32_t place = dn_ipnuma_regions_place(regions, at);
    for (uint32_t tries = 0;; tries++) {
        if (at + len > end) {
            at = DN_IPNUMA_PAGE + within;
            place = dn_ipnuma_regions_place(regions, at);
        }
        if (place == regions->count || at + len <= regions->region[place].at) {
            break;
        }
        if (regions->count + 1 < tries) {
            return DN_ERR_NOMEM;
        }
        at = (regions->region[place].at + regions->region[place].len + DN_IPNUMA_PAGE - 1) / DN_IPNUMA_PAGE
                 * DN_IPNUMA_PAGE
             + within;
        place = dn_ipnuma_regions_place(regions, at);
    }
    memmove(regions->region + place + 1, regions->region + place,
            (regions->count - place) * sizeof(*regions->region));
    regions->region[place] =
        (dn_ipnuma_region_t){.at = at, .len = len, .base = base, .peer = peer & mask, .mask = mask};
    regions->count++;
    *at_p = at;
    return DN_OK;
}

void dn_ipnuma_regions_remove(dn_ipnuma_regions_t *regions, uint64_t at)
{
    const uint32_t place = dn_ipnuma_regions_place(regions, at);

    if (place < regions->count && at == regions->region[place].at) {
        regions->count--;
        memmove(regions->region + place, regions->region + place + 1,
                (regions->count - place) * sizeof(*regions->region));
    }
}

void dn_ipnuma_regions_close(dn_ipnuma_regions_t *regions)
{
    free(regions->region);
    *regions = (dn_ipnuma_regions_t){NULL, 0, 0};
}

uint8_t *dn_ipnuma_regions_find(const dn_ipnuma_regions_t *regions, uint64_t at, uint64_t len, uint32_t peer)
{
    const uint32_t place = dn_ipnuma_regions_place(regions, at);

    if (place == regions->count) {
        return NULL;
    }
    const dn_ipnuma_region_t *region = &regions->region[place];
    if (at < region->at || at - region->at > region->len || len > region->len - (at - region->at)
        || (peer & region->mask) != region->peer) {
        return NULL;
    }
    return region->base + (at - region->at);
}
