/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ipnuma_table.h
 * The tables of an IP-NUMA NIC (thesis sections 3 and 6).
 *
 * The page map says where a page of the own page region leads: to a PC, and to an address there. The shared region table lists the own
 * memory that other PCs may reach: by which address they name it, and which PCs it lets in, by IP address and subnet mask. Addresses
 * have 48 bits. The address of a region is drawn at random when the region is shared. For the PC ID table see dn_ipnuma_int.h.
 *
 * Threads: the caller's lock. All zeros: an empty table. Pinned by test/unit/dn_ipnuma_tables_let_in_whom_they_name.c.
 */
#ifndef DN_IPNUMA_TABLE_H
#define DN_IPNUMA_TABLE_H

#include "dn_types.h"

#define DN_IPNUMA_PAGE         4096u
#define DN_IPNUMA_PAGES        262144u /**< of the page region: 1 GiB */
#define DN_IPNUMA_ADDRESS_BITS 48

/** @name Page map */
/** @{ */

/** An entry: PC ID in the upper 16 bits, address in the lower 48. 0: the page leads nowhere, as no PC has the ID 0. */
typedef struct dn_ipnuma_map {
    uint64_t *page;
    uint32_t room;  /**< entries there are */
    uint32_t first; /**< no page before it is free */
} dn_ipnuma_map_t;

/**
 * Map memory of a PC to pages that follow each other.
 *
 * @param[in]  pc      1 to 65535.
 * @param[in]  at      Of the first byte, a multiple of the page.
 * @param[out] page_p  The first page.
 *
 * @retval DN_ERR_NOMEM  the page region, or memory, is used up.
 */
dn_status_t dn_ipnuma_map_add(dn_ipnuma_map_t *map, uint32_t pc, uint64_t at, uint64_t len, uint32_t *page_p);
void dn_ipnuma_map_remove(dn_ipnuma_map_t *map, uint32_t page, uint64_t len);
void dn_ipnuma_map_close(dn_ipnuma_map_t *map);

/** Where an offset from the start of a page leads. */
static inline uint64_t dn_ipnuma_map_at(const dn_ipnuma_map_t *map, uint32_t page, uint64_t off)
{
    const uint64_t entry = map->page[page + off / DN_IPNUMA_PAGE];

    return (entry & ((UINT64_C(1) << DN_IPNUMA_ADDRESS_BITS) - 1)) + off % DN_IPNUMA_PAGE;
}
/** @} */

/** @name Shared region table */
/** @{ */
typedef struct dn_ipnuma_region {
    uint64_t at; /**< address by which other PCs name its first byte */
    uint64_t len;
    uint8_t *base;
    uint32_t peer; /**< IPv4 address in the byte order of the host */
    /** the bits of `peer` that count; 0: the region lets in every process that has proved its identity */
    uint32_t mask;
} dn_ipnuma_region_t;

typedef struct dn_ipnuma_regions {
    dn_ipnuma_region_t *region; /**< by address */
    uint32_t count;
    uint32_t room;
} dn_ipnuma_regions_t;

/**
 * Share memory.
 *
 * @param[in]  len     At least 1.
 * @param[in]  random  Where to look for free addresses first: bits that no peer can predict.
 * @param[out] at_p    The address by which other PCs name its first byte; its offset in a page is that of @p base.
 *
 * @retval DN_ERR_NOMEM  no memory, or nowhere so many addresses are free.
 */
dn_status_t dn_ipnuma_regions_add(dn_ipnuma_regions_t *regions, void *base, uint64_t len, uint32_t peer,
                                  uint32_t mask, uint64_t random, uint64_t *at_p);
/** End the sharing of a region. An address without a region is legal. */
void dn_ipnuma_regions_remove(dn_ipnuma_regions_t *regions, uint64_t at);
void dn_ipnuma_regions_close(dn_ipnuma_regions_t *regions);

/** Find a range in this process. @param[in] peer  IPv4 address of the asker. @return NULL: no region holds all of the range and lets
 * @p peer in. */
uint8_t *dn_ipnuma_regions_find(const dn_ipnuma_regions_t *regions, uint64_t at, uint64_t len, uint32_t peer);
/** @} */

#endif
