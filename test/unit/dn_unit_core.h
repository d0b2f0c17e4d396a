/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_unit_core.h
 * For tests of what a message asks of the memory of its target: a port that is connected to itself, a segment, a program, and messages of a
 * transfer whose remote side is a use of this program. Each test program includes this once.
 */
#ifndef DN_UNIT_CORE_H
#define DN_UNIT_CORE_H

#include "dn_core_int.h"
#include "dn_unit.h"

/** SIZE: bytes of the program; COUNT, LEN: of the use; SLOT, ID: where the program is; ROOM: bytes of the segment; BLANK: what is in them. */
enum { SIZE = 24, COUNT = 3, LEN = SIZE * COUNT, SLOT = 5, ID = 77, ROOM = 1000, BLANK = 0x5a };

static struct {
    dn_port_t *port;
    dn_peer_t *self;
    dn_key_t key;
    uint8_t memory[ROOM];
} dn_unit_core;

static inline int dn_unit_core_setup(void **state)
{
    const dn_job_t job = {.nlocal = 1};
    dn_segment_t *segment = NULL;

    dn_unit_setup(state);
    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &dn_unit_core.port), DN_OK);
    dn_unit_core.self = dn_unit_connect(dn_unit_core.port, dn_unit_core.port);
    assert_int_equal(dn_segment_register(dn_unit_core.port, dn_unit_core.memory, ROOM, &segment), DN_OK);
    dn_segment_key(segment, &dn_unit_core.key);
    return 0;
}

static inline int dn_unit_core_teardown(void **state)
{
    dn_close(dn_unit_core.port);
    return 0;
}

/** Give the core processor a message. @return messages that it has dropped of it. */
static inline uint64_t dn_unit_core_give(unsigned tag, const void *message, size_t len)
{
    dn_counters_t before, after;

    dn_counters(dn_unit_core.port, &before);
    dn_core_handler(dn_unit_core.self, tag, message, len, dn_unit_core.port);
    dn_counters(dn_unit_core.port, &after);
    return after.dropped - before.dropped;
}

/** A message of a PUSH, or without its data of a PULL. */
typedef struct dn_unit_core_letter {
    dn_core_request_t request;
    dn_core_use_t use;
    uint8_t data[LEN + 1];
} dn_unit_core_letter_t;

/** What a message says when it is right: two blocks of 8 and 16 bytes, the first 10 below the origin, three times. */
static inline dn_unit_core_letter_t dn_unit_core_letter(void)
{
    dn_unit_core_letter_t letter = {.request = {.sid = dn_unit_core.key.sid,
                                                .sid_generation = dn_unit_core.key.generation,
                                                .blocks = SLOT,
                                                .flags = DN_CORE_USE},
                                    .use = {.id = ID, .count = COUNT, .extent = 100, .roff = 10, .len = LEN}};

    dn_test_fill(letter.data, sizeof(letter.data), 1);
    return letter;
}

/** Where a byte of the data is stored. */
static inline size_t dn_unit_core_place(size_t i)
{
    return i / SIZE * 100 + (i % SIZE < 8 ? i % SIZE : 50 + i % SIZE - 8);
}

/** A message with a piece of a program. */
typedef struct dn_unit_core_parcel {
    dn_ship_piece_t piece;
    uint8_t bytes[200];
} dn_unit_core_parcel_t;

/** The whole program. */
static inline dn_unit_core_parcel_t dn_unit_core_parcel(void)
{
    const dn_prog_op_t op[] = {{DN_PROG_RUN, 0, -10, 8, 1, 0}, {DN_PROG_RUN, 0, 40, 16, 1, 0}};
    dn_unit_core_parcel_t parcel;
    dn_prog_t *prog = NULL;
    size_t len = sizeof(parcel.bytes);

    assert_int_equal(dn_prog_create(op, 2, &prog), DN_OK);
    assert_int_equal(dn_prog_encode(prog, parcel.bytes, &len), DN_OK);
    parcel.piece = (dn_ship_piece_t){ID, SLOT, 0, (uint32_t) len, 0};
    dn_prog_free(prog);
    return parcel;
}

static inline void dn_unit_core_expect_nothing(void)
{
    for (size_t i = 0; i < ROOM; i++) {
        assert_int_equal(dn_unit_core.memory[i], BLANK);
    }
}

#endif
