/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file kv.c
 * A key-value store over AOTF and PUSH, with the commands of memcached that caches need. Rank 0 keeps it; the others ask.
 *
 *   request   one PUSH into the slot that rank 0 has for the client: command, key, value; its status word is the request's number
 *   answer    one PUSH of the value that was found, or one AOTF; the word that the client polls has the number, and the answer
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <dimmnet/dn_atomic.h>

#include "meet.h"

enum { ITEMS = 4096, VALUE = 512, ROUNDS = 2000 };
enum { GET, SET, ADD, END };
enum { STORED, FOUND, ABSENT, PRESENT, FULL };

typedef struct item {
    uint32_t used; /**< not 0; of a request: the command */
    uint32_t len;
    char key[24];
    uint8_t value[VALUE];
} item_t;

/** What each process tells the others: where items are written, and the words behind them. */
typedef struct place {
    dn_key_t key;
    uint64_t words;
} place_t;

typedef struct store {
    meet_t meet;
    place_t place[MEET_MAX];
    item_t *in;            /**< by rank, written by others */
    uint64_t *word;        /**< by rank, as are those that follow */
    item_t out[MEET_MAX];  /**< lent to the last PUSH to that rank */
    uint64_t at[MEET_MAX]; /**< the last number that came, or went */
} store_t;

/** What goes to a rank next. It is the device's until the PUSH before is complete. */
static item_t *next_out(store_t *s, uint32_t rank)
{
    while (DN_INPROGRESS == dn_flush(s->meet.peer[rank])) {
        meet_wait(&s->meet);
    }
    return &s->out[rank];
}

/** Write an item to a rank, and its word behind. */
static void push_item(store_t *s, uint32_t rank, uint64_t word)
{
    const dn_xfer_t xfer = {.local = &s->out[rank],
                            .len = offsetof(item_t, value) + s->out[rank].len,
                            .key = &s->place[rank].key,
                            .roff = s->meet.rank * sizeof(item_t),
                            .flags = DN_XFER_STATUS_REMOTE,
                            .remote_value = word,
                            .remote_status = s->place[rank].words + s->meet.rank * sizeof(word)};
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_push(s->meet.peer[rank], &xfer))) {
        meet_wait(&s->meet);
    }
    meet_need(DN_INPROGRESS == status ? DN_OK : status, "dn_push");
}

/* The keeper */

/** Where a key is, or would be. NULL: no room. */
static item_t *find(item_t *table, const char *key)
{
    uint32_t hash = 2166136261u;

    for (const char *c = key; '\0' != *c; c++) {
        hash = (hash ^ (uint8_t) *c) * 16777619u;
    }
    for (uint32_t i = 0; i < ITEMS; i++) {
        item_t *item = &table[(hash + i) % ITEMS];
        if (0 == item->used || 0 == strcmp(item->key, key)) {
            return item;
        }
    }
    return NULL;
}

static void answer(store_t *s, uint32_t rank, item_t *table)
{
    uint64_t what = STORED;

    /* What others write may change: a copy is looked at, and used. */
    item_t request = s->in[rank];
    request.key[sizeof(request.key) - 1] = '\0';
    request.len = request.len < VALUE ? request.len : VALUE;
    item_t *item = END > request.used ? find(table, request.key) : NULL;
    if (NULL == item) {
        what = FULL;
    } else if (GET == request.used) {
        what = 0 == item->used ? ABSENT : FOUND;
    } else if (ADD == request.used && 0 != item->used) {
        what = PRESENT;
    } else {
        memcpy(item, &request, offsetof(item_t, value) + request.len);
    }
    const uint64_t word = s->at[rank] << 8 | what;
    if (FOUND == what) {
        memcpy(next_out(s, rank), item, offsetof(item_t, value) + item->len);
        push_item(s, rank, word);
        return;
    }
    const uint64_t off = s->place[rank].words; /* of rank 0 */
    dn_status_t status;
    while (DN_ERR_AGAIN == (status = dn_aotf(s->meet.peer[rank], off, word, sizeof(word)))) {
        meet_wait(&s->meet);
    }
    meet_need(status, "dn_aotf");
}

static void keep(store_t *s)
{
    static item_t table[ITEMS];
    uint32_t clients = s->meet.ranks - 1;

    while (0 != clients) {
        for (uint32_t rank = 1; rank < s->meet.ranks; rank++) {
            if (s->at[rank] + 1 == dn_load_acquire(&s->word[rank])) {
                s->at[rank]++;
                s->meet.steps++; /* what the wait was for */
                clients -= END == s->in[rank].used;
                answer(s, rank, table);
            }
        }
        meet_wait(&s->meet);
    }
    printf("kv: %u clients were served\n", (unsigned) s->meet.ranks - 1);
}

/* A client */

static uint64_t ask(store_t *s, uint32_t command, const char *key, const void *value, uint32_t len)
{
    item_t *request = next_out(s, 0);

    request->used = command;
    request->len = len;
    snprintf(request->key, sizeof(request->key), "%s", key);
    if (0 != len) {
        memcpy(request->value, value, len);
    }
    push_item(s, 0, ++s->at[0]);
    while (s->at[0] != dn_load_acquire(s->word) >> 8) {
        meet_wait(&s->meet);
    }
    s->meet.steps++; /* what the wait was for */
    return dn_load_acquire(s->word) & 0xff;
}

/** Microseconds of one command, of many. */
static double time_of(store_t *s, uint32_t command, const char *key, const void *value, uint32_t len,
                      uint64_t expected)
{
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < ROUNDS; i++) {
        meet_need(expected == ask(s, command, key, value, len) ? DN_OK : DN_ERR_PROTO, "an answer");
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    return ((double) (to.tv_sec - from.tv_sec) * 1e6 + (double) (to.tv_nsec - from.tv_nsec) / 1e3) / ROUNDS;
}

static void use(store_t *s)
{
    uint8_t value[VALUE];
    char key[24];

    snprintf(key, sizeof(key), "of rank %u", (unsigned) s->meet.rank);
    meet_need(ABSENT == ask(s, GET, key, NULL, 0) ? DN_OK : DN_ERR_PROTO, "get of what is not there");
    for (uint32_t len = 16; len <= VALUE; len *= 2) {
        memset(value, (int) (len / 16 + s->meet.rank), len);
        const double set = time_of(s, SET, key, value, len, STORED);
        const double get = time_of(s, GET, key, NULL, 0, FOUND);
        const double add = time_of(s, ADD, key, value, len, PRESENT);
        meet_need(len == s->in[0].len && 0 == memcmp(s->in[0].value, value, len) ? DN_OK : DN_ERR_PROTO,
                  "a value");
        printf("kv: %u bytes: set %.1f us, get %.1f us, add %.1f us\n", (unsigned) len, set, get, add);
    }
    (void) ask(s, END, "end", NULL, 0);
}

int main(int argc, char **argv)
{
    static store_t s;
    dn_segment_t *segment;
    void *words;

    meet_begin(&s.meet, argc, argv);
    meet_need(dn_segment_alloc(s.meet.port, MEET_MAX * sizeof(item_t), &segment), "dn_segment_alloc");
    meet_need(dn_llcm_alloc(s.meet.port, MEET_MAX * sizeof(uint64_t), &s.place[s.meet.rank].words, &words),
              "dn_llcm_alloc");
    dn_segment_key(segment, &s.place[s.meet.rank].key);
    s.in = dn_segment_base(segment);
    s.word = words;
    meet_tell(&s.meet, "place", &s.place[s.meet.rank], sizeof(place_t));
    for (uint32_t rank = 0; rank < s.meet.ranks; rank++) {
        meet_hear(&s.meet, rank, "place", &s.place[rank], sizeof(place_t));
    }
    if (0 == s.meet.rank) {
        keep(&s);
    } else {
        use(&s);
    }
    meet_end(&s.meet);
    return 0;
}
