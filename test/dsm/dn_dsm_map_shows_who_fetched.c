/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The page map has the right colour where a process has fetched a page, where it is at home, and where neither is so. No process
 * waits until it is drawn.
 */
#include "dn_config.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "../device/dn_world.h"
#include "dn_dsm.h"
#include "folder.h"
#include "sanitizers.h"

enum { PAGES = 70, ONCE = 3, OFTEN = 65, TIMES = 5, RANKS = 3 };

static char map[100];
static const char *wanted = map;

static void process(dn_world_t *world)
{
    const size_t page = (size_t) sysconf(_SC_PAGESIZE) / 8;
    const bool fails = map != wanted && 0 == world->rank;
    dn_dsm_config_t config = folder_config(world->rank, world->size);
    dn_dsm_t *dsm;
    void *at;

    config.share = "never";
    config.map = wanted;
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    dn_check_equal(dn_dsm_alloc(dsm, PAGES * page * 8, DN_DSM_HOME_RANK, 0, &at), DN_OK);
    volatile uint64_t *datum = at;
    for (uint64_t i = 1; i <= TIMES; i++) {
        if (0 == world->rank) {
            datum[OFTEN * page] = i;
        }
        dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
        if (2 == world->rank) {
            dn_check_equal(datum[OFTEN * page], i);
        }
        if (1 == world->rank && 1 == i) {
            dn_check_equal(datum[ONCE * page], 0);
        }
        dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    }
    if (fails) {
        dn_test_log_expect();
    }
    dn_check_equal(dn_dsm_close(dsm), fails ? DN_ERR_ACCESS : DN_OK);
    dn_check(!fails || dn_test_log_said(1, "/nowhere/map"));
}

/** A row: its chunk's length and name, the head of its block and of the row, colours, and the sum of the chunk. */
enum { BEFORE_ROW = 8 + 6, AFTER_ROW = 4 };

static unsigned number(const uint8_t *byte)
{
    return (unsigned) byte[0] << 24 | (unsigned) byte[1] << 16 | (unsigned) byte[2] << 8 | byte[3];
}

/** @return the colour of a cell as 0xrrggbb. */
static long colour(const uint8_t *rows, unsigned width, unsigned rank, unsigned page)
{
    const unsigned x = 8 + rank * (64 * 4 + 8) + page % 64 * 4 + 2, y = 8 + page / 64 * 4 + 2;
    const uint8_t *rgb = rows + y * (BEFORE_ROW + 3 * width + AFTER_ROW) + BEFORE_ROW + 3 * x;

    return (long) rgb[0] << 16 | rgb[1] << 8 | rgb[2];
}

/** Adler-32 of all rows, as the picture ends with it. */
static unsigned sum_of(const uint8_t *rows, unsigned width, unsigned height)
{
    unsigned a = 1, b = 0;

    for (unsigned y = 0; y < height; y++) {
        const uint8_t *row = rows + y * (BEFORE_ROW + 3 * width + AFTER_ROW) + BEFORE_ROW - 1;
        for (unsigned i = 0; i < 1 + 3 * width; i++) {
            a = (a + row[i]) % 65521;
            b = (b + a) % 65521;
        }
    }
    return b << 16 | a;
}

/** @return not 0: it is wrong. */
static int check(void)
{
    static const struct {
        unsigned rank, page;
        long colour;
    } cells[] = {
        {0, 0, 0xaac3e6},    {0, OFTEN, 0xaac3e6},    {0, PAGES, 0x808080},
        {1, ONCE, 0xfff5be}, {1, ONCE + 1, 0xffffff}, {1, OFTEN, 0xffffff},
        {2, ONCE, 0xffffff}, {2, OFTEN, 0xfebe50},    {2, OFTEN - 1, 0xffffff},
    };
    /* Each PNG ends with these bytes, the sum of an empty chunk among them. */
    static const uint8_t end[12] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
    enum { WIDTH = 8 + RANKS * (64 * 4 + 8), HEIGHT = 8 + 2 * 4 + 8, HEAD = 8 + 25 + 14 };
    enum { ROWS = HEIGHT * (BEFORE_ROW + 3 * WIDTH + AFTER_ROW), ALL = HEAD + ROWS + 4 + sizeof(end) };
    static uint8_t picture[ALL + 1];
    const uint8_t *rows = picture + HEAD;
    FILE *file = fopen(map, "r");
    int failed = 0;

    if (NULL == file || ALL != fread(picture, 1, sizeof(picture), file)
        || 0 != memcmp(picture, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", 16)
        || 0 != memcmp(picture + ALL - sizeof(end), end, sizeof(end))) {
        printf("FAILED: %s is not a picture of %d bytes\n", map, (int) ALL);
        return 1;
    }
    fclose(file);
    if (WIDTH != number(picture + 16) || HEIGHT != number(picture + 20)
        || sum_of(rows, WIDTH, HEIGHT) != number(picture + ALL - sizeof(end) - 8)) {
        printf("FAILED: %u x %u points, or their sum\n", number(picture + 16), number(picture + 20));
        failed = 1;
    }
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
        const long got = colour(rows, WIDTH, cells[i].rank, cells[i].page);
        if (got != cells[i].colour) {
            printf("FAILED: rank %u, page %u: %06lx, not %06lx\n", cells[i].rank, cells[i].page, got,
                   cells[i].colour);
            failed = 1;
        }
    }
    return failed;
}

/** Rank 0 writes the map to a pipe. The others have closed before one of them reads it. */
static void leave_the_drawer(dn_world_t *world)
{
    char byte[4];

    process(world);
    if (1 == world->rank) {
        FILE *file = fopen(map, "r");
        dn_check(NULL != file);
        dn_check_equal(fread(byte, 1, sizeof(byte), file), sizeof(byte));
        dn_check(0 == memcmp(byte, "\x89PNG", sizeof(byte)));
        while (EOF != fgetc(file)) {
        }
        fclose(file);
    }
}

int main(void)
{
    static const dn_variant_t shm = {.file = "dn_dsm_map_shows_who_fetched", .device = "shm"};

    if (0 != folder_make()) {
        return 99;
    }
    snprintf(map, sizeof(map), "%s/map.png", folder);
    int failed = dn_world_run("a map", &shm, RANKS, process);
    failed |= check();
    folder_empty();
    failed |= 0 != mkfifo(map, 0600);
    failed |= dn_world_run("a map that nobody waits for", &shm, RANKS, leave_the_drawer);
    folder_empty();
    wanted = "/nowhere/map";
    failed |= dn_world_run("a map that cannot be written", &shm, RANKS, process);
    folder_remove();
    return failed;
}
