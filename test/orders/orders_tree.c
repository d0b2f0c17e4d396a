/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A link of a tree (dn_tree_link.h, dn_tree.c) over the stores of the shm device: lines one way, whose receiver tells by a word
 * what it has taken, and lines both ways, which tell it themselves.
 */
#include "dn_config.h"

#include "dn_tree_link.h"
#include "orders_cases.h"
#include "shm/dn_shm_int.h"

#include <string.h>

enum { DEPTH = 4, ONE_WAY = 14, BOTH_WAYS = 10, LLCM = 1024, CREDIT = DEPTH * 64, BYTES = 16 };

static dn_tree_t tree[2];
static dn_tree_link_t end[2];
static dn_shm_peer_t peer[2];
/** Nobody sleeps: the bell in it is even. */
static dn_shm_header_t awake;

/** What end @p i receives lies in its own LLCM. */
static uint8_t *llcm(int i)
{
    return dn_explore_memory + (size_t) i * LLCM;
}

static void set_up(void)
{
    memset(tree, 0, sizeof(tree));
    memset(peer, 0, sizeof(peer));
    for (int i = 0; i < 2; i++) {
        const dn_tree_line_t *lines = (const dn_tree_line_t *) llcm(i);

        peer[i].base.llcm_len = LLCM;
        peer[i].map.llcm = llcm(1 - i);
        peer[i].map.header = &awake;
        peer[i].base.hot.ops.aotf = dn_shm_aotf;
        peer[i].base.hot.ops.aotf_line = dn_shm_aotf_line;
        end[i] = (dn_tree_link_t){.peer = &peer[i].base.hot,
                                  .in = (dn_tree_line_t *) llcm(i),
                                  .credit = (const uint64_t *) (llcm(i) + CREDIT),
                                  .credit_off = CREDIT,
                                  .depth = DEPTH};
        dn_explore_word(end[i].credit, sizeof(*end[i].credit), "word of what was taken");
        for (int line = 0; line < DEPTH; line++) {
            dn_explore_word(&lines[line].flag, sizeof(lines[line].flag), "flag of a line");
        }
    }
}

static void put(int i, unsigned number)
{
    uint8_t data[BYTES];

    for (size_t at = 0; at < BYTES; at++) {
        data[at] = (uint8_t) (16 * number + at + (unsigned) i);
    }
    DN_EXPLORE_UNTIL(DN_OK == dn_tree_put(&end[i], data, BYTES, 0));
}

static void take(int i, unsigned number)
{
    const uint8_t *data;

    DN_EXPLORE_UNTIL(NULL != (data = dn_tree_look(&end[i])));
    for (size_t at = 0; at < BYTES; at++) {
        dn_explore_check(data[at] == (uint8_t) (16 * number + at + (unsigned) (1 - i)),
                         "another line than the one that was put");
    }
    dn_tree_take(&tree[i], &end[i]);
}

static void putter(void)
{
    for (unsigned i = 0; i < ONE_WAY; i++) {
        put(0, i);
    }
}

static void taker(void)
{
    for (unsigned i = 0; i < ONE_WAY; i++) {
        take(1, i);
    }
}

/** Ahead of the other by half a link at most, so that the lines alone tell what was taken. */
static void both(int self)
{
    for (unsigned i = 0; i < BOTH_WAYS; i++) {
        put(self, i);
        if (1 <= i) {
            take(self, i - 1);
        }
    }
}

static void first(void)
{
    both(0);
}

static void second(void)
{
    both(1);
}

const orders_case_t orders_tree[] = {
    {{"tree: lines one way", set_up, {putter, taker}},
     {{"flag of a line", 1},
      {"flag of a line", 0},
      {"word of what was taken", 1},
      {"word of what was taken", 0}}},
    {{"tree: lines both ways", set_up, {first, second}}, {{"flag of a line", 1}, {"flag of a line", 0}}},
    {{NULL, NULL, {NULL}}, {{NULL, 0}}},
};
