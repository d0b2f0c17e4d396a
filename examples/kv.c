/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file kv.c
 * A key-value store, as kv.h says. Rank 0 keeps it; each other rank is a client: it sets, gets and adds values of several lengths, checks
 * them, and says how long a command takes.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kv.h"

enum { ROUNDS = 2000 };

static kv_answer_t ask(kv_link_t *link, kv_command_t command, const char *key, const void *value,
                       uint32_t len)
{
    kv_item_t *request = kv_link_next(link, 0);

    request->used = command;
    request->len = len;
    snprintf(request->key, KV_KEY, "%s", key);
    if (0 != len) {
        memcpy(request->value, value, len);
    }
    kv_link_push(link, 0, ++link->number[0]);
    while (link->number[0] != kv_link_word(link, 0) >> 8) {
        meet_wait(&link->meet);
    }
    link->meet.steps++; /* what the wait was for */
    return (kv_answer_t) (kv_link_word(link, 0) & 0xff);
}

/** Microseconds of one command, of many. */
static double time_of(kv_link_t *link, kv_command_t command, const char *key, const void *value, uint32_t len,
                      kv_answer_t expected)
{
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < ROUNDS; i++) {
        meet_need(expected == ask(link, command, key, value, len) ? DN_OK : DN_ERR_PROTO, "an answer");
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    return ((double) (to.tv_sec - from.tv_sec) * 1e6 + (double) (to.tv_nsec - from.tv_nsec) / 1e3) / ROUNDS;
}

static void use(kv_link_t *link)
{
    uint8_t value[KV_VALUE];
    char key[KV_KEY];

    snprintf(key, sizeof(key), "of rank %u", (unsigned) link->meet.rank);
    meet_need(KV_ABSENT == ask(link, KV_GET, key, NULL, 0) ? DN_OK : DN_ERR_PROTO,
              "get of what is not there");
    for (uint32_t len = 16; len <= KV_VALUE; len *= 2) {
        memset(value, (int) (len / 16 + link->meet.rank), len);
        const double set = time_of(link, KV_SET, key, value, len, KV_STORED);
        const double get = time_of(link, KV_GET, key, NULL, 0, KV_FOUND);
        const double add = time_of(link, KV_ADD, key, value, len, KV_PRESENT);
        meet_need(len == link->in[0].len && 0 == memcmp(link->in[0].value, value, len) ? DN_OK : DN_ERR_PROTO,
                  "a value");
        printf("kv: %u bytes: set %.1f us, get %.1f us, add %.1f us\n", (unsigned) len, set, get, add);
    }
    (void) ask(link, KV_END, "end", NULL, 0);
}

int main(int argc, char **argv)
{
    static kv_link_t link;

    kv_link_open(&link, argc, argv);
    if (0 == link.meet.rank) {
        kv_keep(&link);
    } else {
        use(&link);
    }
    meet_end(&link.meet);
    return 0;
}
