/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A message that names a program is served when all its numbers fit each other, the program and the segment. Else
 * no byte is stored: malformed ones are counted and not answered.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_core_int.h"

enum { SIZE = 24, COUNT = 3, LEN = SIZE * COUNT, SLOT = 5, ID = 77, ROOM = 1000, BLANK = 0x5a };

static dn_port_t *port;
static dn_peer_t *self;
static dn_key_t key;
static uint8_t memory[ROOM];

/** What a message says when it is right: two blocks of 8 and 16 bytes, the first 10 below the origin, three times. */
typedef struct letter {
    dn_core_request_t request;
    dn_core_use_t use;
    uint8_t data[LEN + 1];
} letter_t;

static letter_t right_letter(void)
{
    letter_t letter = {
        .request = {.sid = key.sid, .sid_generation = key.generation, .blocks = SLOT, .flags = DN_CORE_USE},
        .use = {.id = ID, .count = COUNT, .extent = 100, .roff = 10, .len = LEN}};
    dn_test_fill(letter.data, sizeof(letter.data), 1);
    return letter;
}

static int setup(void **state)
{
    const dn_job_t job = {.nlocal = 1};
    dn_segment_t *segment = NULL;

    dn_unit_setup(state);
    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &port), DN_OK);
    self = dn_unit_connect(port, port);
    assert_int_equal(dn_segment_register(port, memory, ROOM, &segment), DN_OK);
    dn_segment_key(segment, &key);
    return 0;
}

static int teardown(void **state)
{
    dn_close(port);
    return 0;
}

/** Give the core processor a message. @return messages that it has dropped of it. */
static uint64_t give(unsigned tag, const void *message, size_t len)
{
    dn_counters_t before, after;

    dn_counters(port, &before);
    dn_core_handler(self, tag, message, len, port);
    dn_counters(port, &after);
    return after.dropped - before.dropped;
}

static uint64_t push(const letter_t *letter, size_t n)
{
    memset(memory, BLANK, ROOM);
    return give(DN_CORE_PUSH, letter, offsetof(letter_t, data) + n);
}

static void expect_nothing(void)
{
    for (size_t i = 0; i < ROOM; i++) {
        assert_int_equal(memory[i], BLANK);
    }
}

/** Ship the program. */
static void ship(void **state)
{
    const dn_prog_op_t op[] = {{DN_PROG_RUN, 0, -10, 8, 1, 0}, {DN_PROG_RUN, 0, 40, 16, 1, 0}};
    struct {
        dn_ship_piece_t piece;
        uint8_t bytes[200];
    } message;
    size_t len = sizeof(message.bytes);
    dn_prog_t *prog = NULL;

    assert_int_equal(dn_prog_create(op, 2, &prog), DN_OK);
    assert_int_equal(dn_prog_encode(prog, message.bytes, &len), DN_OK);
    message.piece = (dn_ship_piece_t){ID, SLOT, 0, (uint32_t) len, 0};
    assert_int_equal(give(DN_CORE_PROG, &message, sizeof(message.piece) - 1), 1);
    assert_int_equal(give(DN_CORE_PROG, &message, sizeof(message.piece)), 1);
    assert_int_equal(give(DN_CORE_PROG, &message, sizeof(message.piece) + len), 0);
    dn_prog_free(prog);
}

static void what_fits_is_stored(void **state)
{
    letter_t letter = right_letter();

    assert_int_equal(push(&letter, LEN), 0);
    for (size_t i = 0; i < LEN; i++) {
        const size_t place = i / SIZE * 100 + (i % SIZE < 8 ? i % SIZE : 50 + i % SIZE - 8);
        assert_int_equal(memory[place], dn_test_byte(1, i));
        memory[place] = BLANK;
    }
    expect_nothing();
    /* A part from the middle. */
    letter.use.at = SIZE + 6;
    assert_int_equal(push(&letter, 4), 0);
    assert_int_equal(memory[106], dn_test_byte(1, 0));
    assert_int_equal(memory[107], dn_test_byte(1, 1));
    assert_int_equal(memory[150], dn_test_byte(1, 2));
    assert_int_equal(memory[151], dn_test_byte(1, 3));
}

static void what_is_malformed_is_counted(void **state)
{
    letter_t letter = right_letter();

    assert_int_equal(push(&letter, LEN + 1), 1);
    letter.use.at = 1;
    assert_int_equal(push(&letter, LEN), 1);
    letter.use.at = LEN + 1;
    assert_int_equal(push(&letter, 0), 1);
    letter.use.at = UINT64_MAX;
    assert_int_equal(push(&letter, 1), 1);
    letter = right_letter();
    letter.use.id++;
    assert_int_equal(push(&letter, LEN), 1);
    letter = right_letter();
    letter.request.blocks++;
    assert_int_equal(push(&letter, LEN), 1);
    letter.request.blocks = UINT32_MAX;
    assert_int_equal(push(&letter, LEN), 1);
    letter = right_letter();
    letter.request.flags |= DN_CORE_NEAR;
    assert_int_equal(push(&letter, LEN), 1);
    assert_int_equal(give(DN_CORE_PULL, &letter, offsetof(letter_t, data)), 1);
    letter = right_letter();
    assert_int_equal(give(DN_CORE_PUSH, &letter, offsetof(letter_t, data) - 1), 1);
    assert_int_equal(give(DN_CORE_PULL, &letter, sizeof(letter.request)), 1);
    letter.use.len = letter.use.count = 0;
    assert_int_equal(give(DN_CORE_PULL, &letter, offsetof(letter_t, data)), 1);
    expect_nothing();
}

/** These are answered with an error: they would be right for another segment. */
static void what_leaves_the_segment_is_not_stored(void **state)
{
    letter_t letter = right_letter();
    dn_counters_t before, counters;

    dn_counters(port, &before);
    letter.use.roff = 9;
    assert_int_equal(push(&letter, LEN), 0);
    expect_nothing();
    letter.use.roff = ROOM - 255;
    assert_int_equal(push(&letter, LEN), 0);
    expect_nothing();
    letter = right_letter();
    letter.use.count++;
    assert_int_equal(push(&letter, LEN), 0);
    expect_nothing();
    letter.use.count = UINT64_MAX;
    assert_int_equal(push(&letter, LEN), 0);
    expect_nothing();
    letter = right_letter();
    letter.request.sid_generation++;
    assert_int_equal(push(&letter, LEN), 0);
    expect_nothing();
    /* The five answers are for nobody's operation, and so are dropped when they come. */
    for (unsigned turn = 0; turn < 100; turn++) {
        dn_progress(port);
    }
    dn_counters(port, &counters);
    assert_int_equal(counters.dropped, before.dropped + 5);
}

/** Lines of a ring of five: the first bytes of the LLCM. */
typedef struct lines {
    dn_core_lines_t head;
    uint8_t data[5 * 10 + 1];
} lines_t;

static lines_t right_lines(void)
{
    lines_t lines = {
        .head = {.ring = {.depth = 5, .at = 3, .piece = 10}, .flag = UINT64_C(9) << 32 | UINT32_MAX}};

    dn_test_fill(lines.data, sizeof(lines.data), 2);
    return lines;
}

static uint64_t give_lines(const lines_t *lines, size_t n)
{
    return give(DN_CORE_LINES, lines, offsetof(lines_t, data) + n);
}

static void lines_are_stored_around_their_ring(void **state)
{
    const lines_t lines = right_lines();
    uint64_t off, flag;
    void *mem = NULL;

    assert_int_equal(dn_llcm_alloc(port, 5 * 64, &off, &mem), DN_OK);
    assert_int_equal(off, 0);
    uint8_t *llcm = mem;
    memset(llcm, BLANK, 5 * 64);
    assert_int_equal(give_lines(&lines, 25), 0);
    for (size_t i = 0; i < 5; i++) {
        uint8_t *line = llcm + (3 + i) % 5 * 64;
        const size_t len = i < 2 ? 10 : 2 == i ? 5 : 0;
        for (size_t k = 0; k < 56; k++) {
            assert_int_equal(line[k], k < len ? dn_test_byte(2, 10 * i + k) : BLANK);
        }
        memcpy(&flag, line + 56, sizeof(flag));
        /* The lower half begins again. */
        assert_int_equal(flag, 3 > i ? UINT64_C(9) << 32 | (uint32_t) (UINT32_MAX + i)
                                     : UINT64_C(0x5a5a5a5a5a5a5a5a));
    }
    dn_llcm_free(port, off, 5 * 64);
}

static void lines_out_of_place_are_counted(void **state)
{
    dn_peer_attr_t attr;
    lines_t lines = right_lines();

    dn_peer_attr(self, &attr);
    assert_int_equal(give_lines(&lines, 5 * 10 + 1), 1);
    assert_int_equal(give(DN_CORE_LINES, &lines, sizeof(lines.head) - 1), 1);
    lines.head.ring.at = 5;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines = right_lines();
    lines.head.ring.depth = 0;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines = right_lines();
    lines.head.ring.piece = 0;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines.head.ring.piece = DN_AOTF_LINE_MAX + 1;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines = right_lines();
    lines.head.ring.off = 8;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines.head.ring.off = attr.llcm_len - 4 * 64;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines.head.ring.off = UINT64_MAX - 63;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines = right_lines();
    lines.head.ring.depth = UINT32_MAX;
    assert_int_equal(give_lines(&lines, 10), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ship),
        cmocka_unit_test(what_fits_is_stored),
        cmocka_unit_test(what_is_malformed_is_counted),
        cmocka_unit_test(what_leaves_the_segment_is_not_stored),
        cmocka_unit_test(lines_are_stored_around_their_ring),
        cmocka_unit_test(lines_out_of_place_are_counted),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
