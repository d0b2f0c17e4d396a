/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_map.c
 * The page map: a picture that shows which process fetched which page how often. When the memory is closed, rank 0 gathers the counts, lets
 * the other processes go, and writes the picture as a PNG.
 *
 * Each process has a panel, eight of them beside each other. In a panel each page has a cell, 64 of them beside each other.
 */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_dsm_png.h"

/** Width and height of a cell, in points. */
#define DN_DSM_MAP_CELL 4u
/** Cells of a panel beside each other. */
#define DN_DSM_MAP_CELLS 64u
/** Points between panels, and around them. */
#define DN_DSM_MAP_GAP 8u
/** The most panels beside each other. */
#define DN_DSM_MAP_PANELS 8u

/** Width of a panel with its gap, in points. */
#define DN_DSM_MAP_WIDTH (DN_DSM_MAP_CELLS * DN_DSM_MAP_CELL + DN_DSM_MAP_GAP)

typedef struct dn_dsm_colour {
    uint8_t rgb[3];
} dn_dsm_colour_t;

/** A map that is being drawn. */
typedef struct dn_dsm_map {
    const dn_dsm_t *dsm;
    uint32_t *fetched;     /**< fetches, by rank * dn_dsm_t::used + page */
    uint32_t width;        /**< in points */
    uint32_t height;       /**< in points */
    uint32_t panel_height; /**< in points, with its gap */
} dn_dsm_map_t;

static dn_dsm_colour_t dn_dsm_map_cell(const dn_dsm_map_t *map, uint32_t rank, uint32_t page)
{
    /* The colours of pages that were fetched once, 2 to 3 times, 4 to 7 times, and so on. */
    static const dn_dsm_colour_t level[] = {{{255, 245, 190}}, {{255, 225, 130}}, {{254, 190, 80}},
                                            {{253, 145, 60}},  {{250, 85, 40}},   {{225, 30, 30}},
                                            {{175, 0, 35}},    {{100, 0, 20}}};
    const uint32_t last = sizeof(level) / sizeof(level[0]) - 1;
    uint32_t fetched = map->fetched[(size_t) rank * map->dsm->used + page], at = 0;

    if (0 == fetched) {
        return rank == map->dsm->page[page].home ? (dn_dsm_colour_t){{170, 195, 230}}
                                                 : (dn_dsm_colour_t){{255, 255, 255}};
    }
    while (1 < fetched && at < last) {
        fetched /= 2;
        at++;
    }
    return level[at];
}

static dn_dsm_colour_t dn_dsm_map_point(const dn_dsm_map_t *map, uint32_t x, uint32_t y)
{
    const dn_dsm_colour_t ground = {{128, 128, 128}};

    if (DN_DSM_MAP_GAP > x || DN_DSM_MAP_GAP > y) {
        return ground;
    }
    x -= DN_DSM_MAP_GAP;
    y -= DN_DSM_MAP_GAP;
    const uint32_t rank = y / map->panel_height * DN_DSM_MAP_PANELS + x / DN_DSM_MAP_WIDTH;
    const uint32_t column = x % DN_DSM_MAP_WIDTH / DN_DSM_MAP_CELL,
                   page = y % map->panel_height / DN_DSM_MAP_CELL * DN_DSM_MAP_CELLS + column;
    return rank >= map->dsm->ranks || DN_DSM_MAP_CELLS <= column || page >= map->dsm->used
               ? ground
               : dn_dsm_map_cell(map, rank, page);
}

static void dn_dsm_map_draw(const dn_dsm_map_t *map, FILE *file)
{
    dn_dsm_colour_t row[DN_DSM_MAP_GAP + DN_DSM_MAP_PANELS * DN_DSM_MAP_WIDTH];
    dn_dsm_png_t png;

    dn_dsm_png_begin(&png, file, map->width, map->height);
    for (uint32_t y = 0; y < map->height; y++) {
        for (uint32_t x = 0; x < map->width; x++) {
            row[x] = dn_dsm_map_point(map, x, y);
        }
        dn_dsm_png_row(&png, row[0].rgb);
    }
}

/** Hear the counts of the ranks that tell some. @param[out] fetched  dn_dsm_map_t::fetched. */
static dn_status_t dn_dsm_map_hear(dn_dsm_t *dsm, const dn_dsm_tell_t *told, uint32_t *fetched)
{
    const size_t wanted = dsm->used * sizeof(*fetched);

    for (uint32_t r = 0; r < dsm->ranks; r++) {
        size_t len = wanted;
        const dn_status_t status =
            0 == told[r].interval ? DN_OK
                                  : dsm->meet->hear(dsm, r, "map", fetched + (size_t) r * dsm->used, &len);
        if (DN_OK != status) {
            return status;
        }
        if (len != wanted) {
            dn_log_error("shared memory: rank %u tells of %zu pages, and there are %u: no map is written",
                         (unsigned) r, len / sizeof(*fetched), (unsigned) dsm->used);
            return DN_ERR_PROTO;
        }
    }
    return DN_OK;
}

dn_status_t dn_dsm_map_open(dn_dsm_t *dsm, const char *path)
{
    if (NULL == path) {
        return DN_OK;
    }
    dsm->map = strdup(path);
    dsm->fetched = calloc(dsm->pages, sizeof(*dsm->fetched));
    return NULL == dsm->map || NULL == dsm->fetched ? DN_ERR_NOMEM : DN_OK;
}

dn_status_t dn_dsm_map_gather(dn_dsm_t *dsm, const dn_dsm_tell_t *told, uint32_t **fetched_p)
{
    bool any = false;

    *fetched_p = NULL;
    for (uint32_t r = 0; r < dsm->ranks; r++) {
        any = any || 0 != told[r].interval;
    }
    if (!any) {
        return DN_OK;
    }
    dn_status_t status = dn_dsm_meet_all(dsm, "map", dsm->fetched, dsm->used * sizeof(*dsm->fetched));
    if (0 != dsm->rank || NULL == dsm->map || DN_OK != status) {
        return status;
    }
    uint32_t *fetched = calloc((size_t) dsm->ranks * dsm->used + 1, sizeof(*fetched));
    if (NULL == fetched) {
        dn_log_error("shared memory: there is no memory for a map of %u pages in %u processes",
                     (unsigned) dsm->used, (unsigned) dsm->ranks);
        return DN_ERR_NOMEM;
    }
    status = dn_dsm_map_hear(dsm, told, fetched);
    if (DN_OK != status) {
        free(fetched);
        return status;
    }
    *fetched_p = fetched;
    return DN_OK;
}

dn_status_t dn_dsm_map_write(const dn_dsm_t *dsm, uint32_t *fetched)
{
    const uint32_t panels = dsm->ranks < DN_DSM_MAP_PANELS ? dsm->ranks : DN_DSM_MAP_PANELS;
    const uint32_t down = (dsm->ranks + DN_DSM_MAP_PANELS - 1) / DN_DSM_MAP_PANELS;
    dn_dsm_map_t map = {.dsm = dsm, .fetched = fetched};

    if (NULL == fetched) {
        return DN_OK;
    }
    map.panel_height =
        (dsm->used + DN_DSM_MAP_CELLS - 1) / DN_DSM_MAP_CELLS * DN_DSM_MAP_CELL + DN_DSM_MAP_GAP;
    map.width = panels * DN_DSM_MAP_WIDTH + DN_DSM_MAP_GAP;
    map.height = down * map.panel_height + DN_DSM_MAP_GAP;
    FILE *file = fopen(dsm->map, "we");
    bool whole = NULL != file;
    if (whole) {
        dn_dsm_map_draw(&map, file);
        whole = 0 == ferror(file);
        whole = 0 == fclose(file) && whole;
    }
    if (!whole) {
        dn_log_error("shared memory: the map cannot be written to %s (%s)", dsm->map, strerror(errno));
    }
    free(fetched);
    return whole ? DN_OK : DN_ERR_ACCESS;
}
