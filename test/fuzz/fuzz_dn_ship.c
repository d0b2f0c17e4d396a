/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any pieces of programs to a receiver, with uses of what it then has. Whatever comes, it keeps no more than its bounds, finds
 * a program only by the number under which it came whole, and what is kept stays until it is left.
 */
#include "dn_config.h"

#include "dn_fuzz.h"

#include <string.h>

#include "../dn_test.h"
#include "dn_ship.h"

enum { KEEPERS = 4 };

/** Before the bytes of each piece of an input. */
typedef struct letter {
    uint8_t slot;
    uint8_t flags;
    uint8_t id;
    uint8_t keeper; /**< who leaves what it has, and keeps what is in the slot then */
    uint16_t len;   /**< of the encoding; times 256 with the highest bit */
    uint16_t at;
    uint16_t n; /**< bytes that follow */
} letter_t;

static void look(const dn_ship_in_t *in)
{
    uint64_t bytes = NULL == in->coming ? 0 : in->expect.len;

    for (uint32_t i = 0; i < DN_SHIP_SLOTS; i++) {
        dn_ship_prog_t *prog = NULL;
        const dn_ship_in_slot_t *slot = &in->slot[i];
        bytes += NULL == slot->prog ? 0 : slot->prog->len;
        DN_FUZZ_CHECK(NULL == slot->prog || 0 < slot->prog->users);
        if (DN_OK == dn_ship_in_find(in, i, slot->id, &prog)) {
            DN_FUZZ_CHECK(prog == slot->prog && 0 != slot->id);
            DN_FUZZ_CHECK(DN_OK != dn_ship_in_find(in, i, slot->id + 1, &prog));
        }
    }
    DN_FUZZ_CHECK(bytes <= in->bytes && 2u * DN_SHIP_BYTES >= in->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static dn_ship_in_t in;
    dn_ship_prog_t *kept[KEEPERS] = {NULL};
    letter_t letter;

    while (sizeof(letter) <= len) {
        memcpy(&letter, data, sizeof(letter));
        data += sizeof(letter);
        len -= sizeof(letter);
        const size_t n = letter.n < len ? letter.n : len;
        const dn_ship_piece_t piece = {.id = letter.id,
                                       .slot = letter.slot,
                                       .flags = letter.flags,
                                       .len = 0 != (letter.len & 0x8000u) ? (letter.len & 0x7fffu) << 8
                                                                          : letter.len,
                                       .at = letter.at};
        uint8_t *exact = malloc(n + (0 == n));
        DN_FUZZ_CHECK(NULL != exact);
        memcpy(exact, data, n);
        dn_ship_in_piece(&in, &piece, exact, n);
        free(exact);
        data += n;
        len -= n;
        look(&in);
        dn_ship_prog_t **keeper = &kept[letter.keeper % KEEPERS];
        if (NULL != *keeper) {
            dn_ship_in_leave(&in, *keeper);
            *keeper = NULL;
        }
        if (DN_OK == dn_ship_in_find(&in, letter.slot % DN_SHIP_SLOTS, letter.id, keeper)) {
            dn_ship_in_keep(*keeper);
        }
        look(&in);
    }
    dn_ship_in_clear(&in);
    for (unsigned i = 0; i < KEEPERS; i++) {
        if (NULL != kept[i]) {
            dn_ship_in_leave(&in, kept[i]);
        }
    }
    DN_FUZZ_CHECK(0 == in.bytes && NULL == in.coming);
    return 0;
}

/* ---- seeds ---- */

static size_t write_letter(uint8_t *data, size_t room, const letter_t *letter, const uint8_t *bytes)
{
    if (sizeof(*letter) + letter->n > room) {
        return 0;
    }
    memcpy(data, letter, sizeof(*letter));
    memcpy(data + sizeof(*letter), bytes, letter->n);
    return sizeof(*letter) + letter->n;
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    size_t used = 0;

    for (uint64_t progs = 1 + dn_test_below(random, 5); 0 != progs; progs--) {
        uint8_t encoded[600];
        dn_prog_op_t op[8];
        dn_prog_t *prog = NULL;
        size_t n = sizeof(encoded);
        const size_t ops = 1 + dn_test_below(random, 8);
        for (size_t i = 0; i < ops; i++) {
            op[i] = (dn_prog_op_t){DN_PROG_RUN, 0, (int64_t) (i * 40), 1 + dn_test_below(random, 30), 1, 0};
        }
        if (DN_OK != dn_prog_create(op, ops, &prog) || DN_OK != dn_prog_encode(prog, encoded, &n)) {
            dn_prog_free(prog);
            continue;
        }
        dn_prog_free(prog);
        letter_t letter = {.slot = (uint8_t) dn_test_below(random, DN_SHIP_SLOTS + 1),
                           .flags = 0 == dn_test_below(random, 4),
                           .id = (uint8_t) dn_test_below(random, 4),
                           .keeper = (uint8_t) dn_test_below(random, KEEPERS),
                           .len = (uint16_t) n};
        const size_t cut = 0 == dn_test_below(random, 2) ? dn_test_below(random, n) : 0;
        if (0 != cut) {
            letter.n = (uint16_t) cut;
            used += write_letter(data + used, DN_FUZZ_MAX - used, &letter, encoded);
            letter.flags = 0;
        }
        letter.at = (uint16_t) cut;
        letter.n = (uint16_t) (n - cut);
        used += write_letter(data + used, DN_FUZZ_MAX - used, &letter, encoded + cut);
    }
    return used;
}
