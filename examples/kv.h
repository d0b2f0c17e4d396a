/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file kv.h
 * A key-value store over AOTF and PUSH, with the commands of memcached that caches need. Rank 0 keeps it; the others ask.
 *
 *   kv.c         the program, and the client
 *   kv_keeper.c  the keeper, and its table
 *   kv_link.c    requests and answers on their way
 */
#ifndef DN_EXAMPLE_KV_H
#define DN_EXAMPLE_KV_H

#include "meet.h"

enum { KV_KEY = 24, KV_VALUE = 512, KV_ITEMS = 4096 };

typedef enum kv_command { KV_GET, KV_SET, KV_ADD, KV_END } kv_command_t;
typedef enum kv_answer { KV_STORED, KV_FOUND, KV_ABSENT, KV_PRESENT, KV_FULL } kv_answer_t;

/** What is stored, and what goes from one process to another. */
typedef struct kv_item {
    uint32_t used; /**< in the table: not 0; in a request: the command */
    uint32_t len;  /**< of the value */
    char key[KV_KEY];
    uint8_t value[KV_VALUE];
} kv_item_t;

/** What each process tells the others: where they write items, and the words behind these. */
typedef struct kv_place {
    dn_key_t key;
    uint64_t words;
} kv_place_t;

/** The links of this process to all others. */
typedef struct kv_link {
    meet_t meet;
    kv_place_t place[MEET_MAX]; /**< by rank, as are all that follow */
    kv_item_t *in;              /**< written by others */
    uint64_t *word;             /**< written by others, each behind its item */
    kv_item_t out[MEET_MAX];    /**< lent to the last PUSH to that rank */
    meet_comp_t done[MEET_MAX]; /**< of that PUSH */
    uint64_t number[MEET_MAX];  /**< of the last request from or to that rank */
} kv_link_t;

/** Meet the others. The command line is that of meet_begin(). */
void kv_link_open(kv_link_t *link, int argc, char **argv);

/** Bytes of an item whose value has @p len bytes. */
size_t kv_item_bytes(uint32_t len);

/** What goes to a rank next: to be filled, and then sent by kv_link_push(). */
kv_item_t *kv_link_next(kv_link_t *link, uint32_t rank);

/** PUSH it, and a word behind it. */
void kv_link_push(kv_link_t *link, uint32_t rank, uint64_t word);

/** Store a word alone, by AOTF. */
void kv_link_store(kv_link_t *link, uint32_t rank, uint64_t word);

/** The last word of a rank. The item that was PUSHed ahead of the word is there, too. */
uint64_t kv_link_word(const kv_link_t *link, uint32_t rank);

/** The keeper: answer requests until each client has sent KV_END. */
void kv_keep(kv_link_t *link);

#endif
