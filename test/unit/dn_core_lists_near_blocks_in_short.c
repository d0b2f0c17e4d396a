/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Blocks within 64 KiB are described in 4 bytes each, up to DN_CORE_NEAR_BLOCKS of them in a message; other blocks in 16 bytes, up to
 * DN_CORE_BLOCKS of them. The target stores the same bytes in both forms, and stores nothing of a malformed message. The device is
 * replaced: the test keeps the messages, and gives them to the same process as its peer's.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_core_int.h"

enum { ROOM = 1 << 18, LETTERS = 8, WORD = 8, REACH = UINT16_MAX, BLANK = 0x5a };

static dn_port_t *port;
static dn_peer_t *self;
static dn_key_t key;
static uint8_t memory[ROOM], wanted[ROOM], local[ROOM];
/** Messages that were sent. */
static struct letter {
    uint8_t bytes[ROOM];
    dn_core_request_t request;
    size_t len;
    unsigned tag;
} letter[LETTERS];
static unsigned letters;
/** Status of the last reply. */
static int32_t replied;

static dn_status_t fake_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                             size_t head_len, const void *body, size_t body_len)
{
    dn_core_reply_t reply;

    assert_int_equal(head_len, sizeof(reply));
    memcpy(&reply, head, sizeof(reply));
    replied = reply.status;
    return DN_OK;
}

static dn_status_t fake_reserve(dn_peer_t *peer, size_t len, dn_window_t *window)
{
    assert_true(letters < LETTERS);
    assert_true(len <= ROOM);
    *window = (dn_window_t){.data = letter[letters].bytes, .len = len};
    return DN_OK;
}

static void fake_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    struct letter *to = &letter[letters++];

    memcpy(&to->request, to->bytes, sizeof(to->request));
    to->len = len;
    to->tag = tag;
}

static int setup(void **state)
{
    const dn_job_t job = {.nlocal = 1};
    dn_segment_t *segment = NULL;

    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &port), DN_OK);
    self = dn_unit_connect(port, port);
    ((dn_peer_base_t *) self)->botf_max = ROOM;
    assert_int_equal(dn_segment_register(port, memory, ROOM, &segment), DN_OK);
    dn_segment_key(segment, &key);
    self->ops.botf = fake_botf;
    self->ops.reserve = fake_reserve;
    self->ops.kick = fake_kick;
    dn_test_fill(local, ROOM, 3);
    return 0;
}

static int teardown(void **state)
{
    dn_close(port);
    return 0;
}

/** PUSH to these blocks: keep the messages, and what the memory has to be afterwards. */
static void push(const dn_block_t *block, size_t count)
{
    const dn_sg_t sg = {.block = block, .count = count};
    uint64_t len = 0;

    letters = 0;
    memset(memory, BLANK, ROOM);
    memset(wanted, BLANK, ROOM);
    for (size_t i = 0; i < count; i++) {
        memcpy(wanted + block[i].at, local + len, block[i].len);
        len += block[i].len;
    }
    const dn_xfer_t xfer = {.local = local, .key = &key, .remote_sg = &sg, .len = len};
    assert_int_equal(dn_core_push(self, &xfer), DN_INPROGRESS);
}

/** Give a message to the core processor. @return messages that it has dropped. */
static uint64_t give(const struct letter *from, size_t len)
{
    dn_counters_t before, after;
    uint8_t *exact = malloc(len);

    assert_non_null(exact);
    memcpy(exact, from->bytes, len);
    dn_counters(port, &before);
    dn_core_handler(self, from->tag, exact, len, port);
    dn_counters(port, &after);
    free(exact);
    return after.dropped - before.dropped;
}

static void give_all(void)
{
    replied = DN_ERR_AGAIN;
    for (unsigned i = 0; i < letters; i++) {
        assert_int_equal(give(&letter[i], letter[i].len), 0);
    }
    assert_int_equal(replied, DN_OK);
    assert_memory_equal(memory, wanted, ROOM);
}

/** Has a message so many blocks, in this form, and nothing else but its data? */
static void expect(unsigned n, uint32_t blocks, int near, uint64_t data)
{
    assert_true(n < letters);
    const dn_core_part_t part = dn_core_part(letter[n].tag, letter[n].bytes, letter[n].len);
    const size_t head =
        near ? sizeof(uint64_t) + blocks * sizeof(dn_core_near_t) : blocks * sizeof(dn_block_t);

    assert_int_equal(letter[n].request.blocks, blocks);
    assert_int_equal(0 != (letter[n].request.flags & DN_CORE_NEAR), near);
    assert_int_equal(letter[n].len, sizeof(dn_core_request_t) + head + data);
    assert_int_equal(part.kind, DN_CORE_PART_PUSH);
    assert_int_equal(part.blocks, blocks);
    assert_int_equal(part.len, data);
}

static void words_of_a_page_are_one_message(void **state)
{
    dn_block_t block[2 * DN_CORE_NEAR_BLOCKS];

    for (size_t i = 0; i < 64; i++) {
        block[i] = (dn_block_t){.at = 4096 + 64 * i, .len = WORD};
    }
    push(block, 64);
    assert_int_equal(letters, 1);
    expect(0, 64, 1, 64 * WORD);
    give_all();
    /* Downwards, and more than one message has. */
    for (size_t i = 0; i < 2 * DN_CORE_NEAR_BLOCKS; i++) {
        block[i] = (dn_block_t){.at = 60000 - 16 * i, .len = 1 + i % 9};
    }
    push(block, 2 * DN_CORE_NEAR_BLOCKS);
    assert_int_equal(letters, 2);
    assert_int_equal(letter[0].request.blocks, DN_CORE_NEAR_BLOCKS);
    assert_int_equal(letter[1].request.blocks, DN_CORE_NEAR_BLOCKS);
    give_all();
}

static void the_short_form_ends_at_64_kib(void **state)
{
    dn_block_t block[2] = {{.at = 100, .len = WORD}, {.at = 100 + REACH, .len = REACH}};

    push(block, 2);
    expect(0, 2, 1, WORD + REACH);
    give_all();
    block[1].at++;
    push(block, 2);
    expect(0, 2, 0, WORD + REACH);
    give_all();
    block[1] = (dn_block_t){.at = 200, .len = REACH + 1};
    push(block, 2);
    expect(0, 2, 0, WORD + REACH + 1);
    give_all();
    push(block, 1);
    expect(0, 1, 0, WORD);
    give_all();
}

/** A far block begins a message of its own only where there is no room in the long form. */
static void a_far_block_ends_the_short_form(void **state)
{
    enum { NEAR = DN_CORE_BLOCKS + 8 };
    dn_block_t block[NEAR + 1];

    for (size_t i = 0; i < NEAR; i++) {
        block[i] = (dn_block_t){.at = 16 * i, .len = WORD};
    }
    block[NEAR] = (dn_block_t){.at = 2 * REACH, .len = WORD};
    push(block, NEAR + 1);
    assert_int_equal(letters, 2);
    expect(0, NEAR, 1, NEAR * WORD);
    expect(1, 1, 0, WORD);
    give_all();
    block[DN_CORE_BLOCKS] = block[NEAR];
    push(block, DN_CORE_BLOCKS + 1);
    assert_int_equal(letters, 2);
    expect(0, DN_CORE_BLOCKS, 1, DN_CORE_BLOCKS * WORD);
    expect(1, 1, 0, WORD);
    give_all();
    block[1] = block[NEAR];
    push(block, DN_CORE_BLOCKS);
    assert_int_equal(letters, 1);
    expect(0, DN_CORE_BLOCKS, 0, DN_CORE_BLOCKS * WORD);
}

static const size_t base_at = sizeof(dn_core_request_t), near_at = sizeof(dn_core_request_t) + WORD;

static void rewrite(const dn_core_request_t *request, uint64_t base)
{
    memcpy(letter[0].bytes, request, sizeof(*request));
    memcpy(letter[0].bytes + base_at, &base, sizeof(base));
}

/** Ask for so many words by a message that ends @p cut bytes before its list does. No data tells how long the list is. The bytes behind the
 * end are the rest of the list. @return messages dropped. */
static uint64_t ask(uint32_t flags, size_t blocks, size_t cut)
{
    const dn_core_request_t request = {
        .sid = key.sid, .sid_generation = key.generation, .blocks = (uint32_t) blocks, .flags = flags};
    const dn_core_near_t near = {.len = WORD};
    const dn_block_t block = {.len = WORD};
    const void *entry = 0 != flags ? (const void *) &near : &block;
    const size_t each = 0 != flags ? sizeof(near) : sizeof(block);
    const size_t head = 0 != flags ? near_at : base_at;
    dn_counters_t before, after;

    rewrite(&request, 0);
    for (size_t i = 0; i < blocks; i++) {
        memcpy(letter[0].bytes + head + i * each, entry, each);
    }
    dn_counters(port, &before);
    dn_core_handler(self, DN_CORE_PULL, letter[0].bytes, head + blocks * each - cut, port);
    dn_counters(port, &after);
    return after.dropped - before.dropped;
}

static void a_pull_has_its_whole_list(void **state)
{
    const struct {
        uint32_t flags;
        size_t most;
    } form[] = {{DN_CORE_NEAR, DN_CORE_NEAR_BLOCKS}, {0, DN_CORE_BLOCKS}};

    for (size_t i = 0; i < 2; i++) {
        for (size_t cut = 1; cut <= 512; cut++) {
            assert_int_equal(ask(form[i].flags, form[i].most, cut), 1);
        }
        assert_int_equal(ask(form[i].flags, form[i].most, 0), 0);
        assert_int_equal(ask(form[i].flags, form[i].most + 1, 0), 1);
    }
}

static void what_is_malformed_is_dropped(void **state)
{
    dn_block_t block[DN_CORE_NEAR_BLOCKS];

    for (size_t i = 0; i < DN_CORE_NEAR_BLOCKS; i++) {
        block[i] = (dn_block_t){.at = 4096 + 16 * i, .len = WORD};
    }
    push(block, DN_CORE_NEAR_BLOCKS);
    const dn_core_request_t good = letter[0].request;
    dn_core_request_t bad = good;
    for (size_t len = 0; len < letter[0].len; len++) {
        assert_int_equal(give(&letter[0], len), 1);
    }
    const uint32_t counts[] = {good.blocks - 1, good.blocks + 1, UINT32_MAX, 0, UINT32_MAX / 4 + 1};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        bad.blocks = counts[i];
        rewrite(&bad, block[0].at);
        assert_int_equal(give(&letter[0], ROOM), 1);
        assert_int_equal(give(&letter[0], letter[0].len), 1);
    }
    bad = good;
    bad.flags &= ~(uint32_t) DN_CORE_NEAR;
    rewrite(&bad, block[0].at);
    assert_int_equal(give(&letter[0], letter[0].len), 1);
    bad.flags = good.flags | DN_CORE_USE;
    rewrite(&bad, block[0].at);
    assert_int_equal(give(&letter[0], letter[0].len), 1);
    rewrite(&good, UINT64_MAX - UINT16_MAX + 1);
    assert_int_equal(give(&letter[0], letter[0].len), 1);
    for (size_t i = 0; i < ROOM; i++) {
        assert_int_equal(memory[i], BLANK);
    }
    rewrite(&good, block[0].at);
    give_all();
}

/** These are answered with an error: they would be right for another segment. */
static void what_leaves_the_segment_is_refused(void **state)
{
    const dn_block_t block[2] = {{.at = ROOM - 100, .len = WORD}, {.at = ROOM - WORD, .len = WORD}};

    push(block, 2);
    const uint64_t bases[] = {block[0].at + 1, ROOM, UINT64_MAX - UINT16_MAX, UINT64_C(1) << 63};
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        rewrite(&letter[0].request, bases[i]);
        replied = DN_OK;
        assert_int_equal(give(&letter[0], letter[0].len), 0);
        assert_int_equal(replied, DN_ERR_RANGE);
    }
    rewrite(&letter[0].request, block[0].at);
    const dn_core_near_t far = {.at = UINT16_MAX, .len = WORD};
    memcpy(letter[0].bytes + near_at + sizeof(far), &far, sizeof(far));
    assert_int_equal(give(&letter[0], letter[0].len), 0);
    assert_int_equal(replied, DN_ERR_RANGE);
    for (size_t i = 0; i < ROOM; i++) {
        assert_int_equal(memory[i], BLANK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(words_of_a_page_are_one_message, setup, teardown),
        cmocka_unit_test_setup_teardown(the_short_form_ends_at_64_kib, setup, teardown),
        cmocka_unit_test_setup_teardown(a_far_block_ends_the_short_form, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pull_has_its_whole_list, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_malformed_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(what_leaves_the_segment_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
