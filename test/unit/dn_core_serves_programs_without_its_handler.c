/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What a device asks of dn_core_alone(): a program is taken, and a PUSH or PULL that names it is done, at once. What is malformed, comes
 * behind a message that waits, or finds no room for its answer is left to the handler as it is. A thread of a device and a thread of the
 * program use the programs of a peer at the same time.
 */
#include "dn_config.h"

#include <pthread.h>

#include "dn_unit_core.h"

enum { TURNS = 2000 };

/** The device: what it has been asked for. */
static struct {
    size_t room;   /**< for an answer */
    unsigned asks; /**< calls of room() */
    unsigned tag;
    size_t len;
    _Alignas(8) uint8_t answer[sizeof(dn_core_reply_t) + ROOM];
} device;

static int find(void *arg, uint32_t sid, uint32_t generation, uint8_t **base_p, uint64_t *len_p)
{
    (void) arg;
    *base_p = dn_unit_core.memory;
    *len_p = ROOM;
    return sid == dn_unit_core.key.sid && generation == dn_unit_core.key.generation;
}

static void *room(void *arg, unsigned tag, size_t len)
{
    (void) arg;
    device.asks++;
    device.tag = tag;
    device.len = len;
    return len <= device.room ? device.answer : NULL;
}

static dn_status_t serve(unsigned tag, const void *message, size_t len, int behind)
{
    const dn_core_alone_t alone = {.src = (dn_peer_base_t *) dn_unit_core.self, .find = find, .room = room};

    return dn_core_alone(&alone, tag, message, len, behind);
}

enum { HEAD = offsetof(dn_unit_core_letter_t, data) };

/** A letter that is right, to memory that is blank. */
static dn_unit_core_letter_t right_letter(void)
{
    dn_unit_core_letter_t letter = dn_unit_core_letter();

    letter.request.id = 4;
    letter.request.flags |= DN_CORE_LAST;
    letter.request.off = 6;
    memset(dn_unit_core.memory, BLANK, ROOM);
    device.room = sizeof(device.answer);
    device.asks = 0;
    return letter;
}

enum { CUT = 40 };

/** The same program from CUT on. */
static dn_unit_core_parcel_t right_rest(void)
{
    dn_unit_core_parcel_t parcel = dn_unit_core_parcel();

    parcel.piece.at = CUT;
    memmove(parcel.bytes, parcel.bytes + CUT, parcel.piece.len - CUT);
    return parcel;
}

static dn_status_t send_piece(const dn_unit_core_parcel_t *parcel, size_t n)
{
    return serve(DN_CORE_PROG, parcel, sizeof(parcel->piece) + n, 0);
}

/** The right PUSH is done. */
static void expect_program(void)
{
    const dn_unit_core_letter_t letter = right_letter();

    assert_int_equal(serve(DN_CORE_PUSH, &letter, HEAD + LEN, 0), DN_OK);
    for (size_t i = 0; i < LEN; i++) {
        assert_int_equal(dn_unit_core.memory[dn_unit_core_place(i)], dn_test_byte(1, i));
        dn_unit_core.memory[dn_unit_core_place(i)] = BLANK;
    }
    dn_unit_core_expect_nothing();
}

static void expect_reply(unsigned tag, uint64_t off, uint64_t len)
{
    dn_core_reply_t reply;

    assert_int_equal(device.asks, 1);
    assert_int_equal(device.tag, tag);
    assert_int_equal(device.len, sizeof(reply) + len);
    memcpy(&reply, device.answer, sizeof(reply));
    assert_int_equal(reply.id, 4);
    assert_int_equal(reply.status, DN_OK);
    assert_int_equal(reply.flags, DN_CORE_USE);
    assert_int_equal(reply.off, off);
    assert_int_equal(reply.len, len);
}

static void programs_are_taken_and_used(void **state)
{
    const dn_unit_core_parcel_t first = dn_unit_core_parcel(), rest = right_rest();

    assert_int_equal(send_piece(&first, CUT), DN_OK);
    dn_unit_core_letter_t letter = right_letter();
    assert_int_equal(serve(DN_CORE_PUSH, &letter, HEAD + LEN, 0), DN_ERR_AGAIN);
    assert_int_equal(send_piece(&rest, rest.piece.len - CUT), DN_OK);
    expect_program();
    expect_reply(DN_CORE_PUSH_DONE, 0, 0);
    /* A part from the middle, which is not the last. */
    letter = right_letter();
    letter.use.at = SIZE + 6;
    letter.request.flags = DN_CORE_USE;
    assert_int_equal(serve(DN_CORE_PUSH, &letter, HEAD + 4, 0), DN_OK);
    assert_int_equal(device.asks, 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(dn_unit_core.memory[dn_unit_core_place(SIZE + 6 + i)], dn_test_byte(1, i));
    }
    letter = right_letter();
    for (size_t i = 0; i < LEN; i++) {
        dn_unit_core.memory[dn_unit_core_place(i)] = dn_test_byte(2, i);
    }
    assert_int_equal(serve(DN_CORE_PULL, &letter, HEAD, 0), DN_OK);
    expect_reply(DN_CORE_PULL_DATA, 6, LEN);
    assert_int_equal(dn_test_mismatch(device.answer + sizeof(dn_core_reply_t), LEN, 2), LEN);
    /* More than any message has, and with its head less again. */
    device.asks = 0;
    letter.use.extent = 0;
    letter.use.count = UINT64_MAX / SIZE;
    letter.use.len = letter.use.count * SIZE;
    assert_int_equal(serve(DN_CORE_PULL, &letter, HEAD, 0), DN_ERR_AGAIN);
    assert_int_equal(device.asks, 0);
}

static void nothing_overtakes_what_waits(void **state)
{
    dn_unit_core_parcel_t parcel = dn_unit_core_parcel();
    const dn_unit_core_letter_t letter = right_letter();

    parcel.piece.id++;
    assert_int_equal(serve(DN_CORE_PROG, &parcel, sizeof(parcel.piece) + parcel.piece.len, 1), DN_ERR_AGAIN);
    assert_int_equal(serve(DN_CORE_PUSH, &letter, HEAD + LEN, 1), DN_ERR_AGAIN);
    assert_int_equal(serve(DN_CORE_PULL, &letter, HEAD, 1), DN_ERR_AGAIN);
    assert_int_equal(device.asks, 0);
    dn_unit_core_expect_nothing();
    expect_program();
}

static void nothing_is_done_without_room(void **state)
{
    const dn_unit_core_letter_t letter = right_letter();

    device.room = sizeof(dn_core_reply_t) - 1;
    assert_int_equal(serve(DN_CORE_PUSH, &letter, HEAD + LEN, 0), DN_ERR_AGAIN);
    device.room = sizeof(dn_core_reply_t) + LEN - 1;
    assert_int_equal(serve(DN_CORE_PULL, &letter, HEAD, 0), DN_ERR_AGAIN);
    dn_unit_core_expect_nothing();
    expect_program();
}

/** Both leave a message to the handler, which drops it, or answers that it is out of range. */
static void refuse(unsigned tag, const dn_unit_core_letter_t *letter, size_t len, uint64_t dropped)
{
    device.asks = 0;
    assert_int_equal(serve(tag, letter, len, 0), DN_ERR_AGAIN);
    assert_int_equal(device.asks, 0);
    assert_int_equal(dn_unit_core_give(tag, letter, len), dropped);
    dn_unit_core_expect_nothing();
}

static void what_does_not_fit_is_left_to_the_handler(void **state)
{
    dn_unit_core_letter_t letter = right_letter();

    refuse(DN_CORE_PUSH, &letter, HEAD + LEN + 1, 1);
    refuse(DN_CORE_PUSH, &letter, HEAD - 1, 1);
    refuse(DN_CORE_PULL, &letter, sizeof(letter.request), 1);
    refuse(DN_CORE_PULL, &letter, sizeof(letter.request) - 1, 1);
    letter.use.at = 1;
    refuse(DN_CORE_PUSH, &letter, HEAD + LEN, 1);
    letter.use.at = UINT64_MAX;
    refuse(DN_CORE_PUSH, &letter, HEAD + 1, 1);
    letter = right_letter();
    letter.use.id++;
    refuse(DN_CORE_PULL, &letter, HEAD, 1);
    letter = right_letter();
    letter.request.blocks = UINT32_MAX;
    refuse(DN_CORE_PULL, &letter, HEAD, 1);
    letter = right_letter();
    letter.request.flags |= DN_CORE_NEAR;
    refuse(DN_CORE_PUSH, &letter, HEAD + LEN, 1);
    letter = right_letter();
    letter.use.len = letter.use.count = 0;
    refuse(DN_CORE_PULL, &letter, HEAD, 1);
    letter = right_letter();
    letter.use.roff = 9;
    refuse(DN_CORE_PUSH, &letter, HEAD + LEN, 0);
    letter.use.roff = ROOM - 255;
    refuse(DN_CORE_PUSH, &letter, HEAD + LEN, 0);
    letter = right_letter();
    letter.use.count = UINT64_MAX;
    refuse(DN_CORE_PULL, &letter, HEAD, 0);
    letter = right_letter();
    letter.request.sid_generation++;
    refuse(DN_CORE_PUSH, &letter, HEAD + LEN, 0);
    expect_program();
}

/** Nobody takes this piece. */
static void refuse_piece(const dn_unit_core_parcel_t *parcel, size_t n)
{
    assert_int_equal(send_piece(parcel, n), DN_ERR_AGAIN);
    assert_int_equal(dn_unit_core_give(DN_CORE_PROG, parcel, sizeof(parcel->piece) + n), 1);
}

static void malformed_pieces_change_nothing(void **state)
{
    const dn_unit_core_parcel_t whole = dn_unit_core_parcel();
    dn_unit_core_parcel_t first = whole, rest = right_rest();
    const size_t left = rest.piece.len - CUT;

    first.piece.slot++;
    first.piece.id++;
    rest.piece.slot++;
    rest.piece.id++;
    assert_int_equal(send_piece(&first, CUT), DN_OK);
    for (int wrong = 0; wrong < 8; wrong++) {
        dn_unit_core_parcel_t parcel = rest;
        parcel.piece.slot = 0 == wrong ? DN_SHIP_SLOTS : 1 == wrong ? SLOT : parcel.piece.slot;
        parcel.piece.id += 2 == wrong;
        parcel.piece.at += 3 == wrong ? 1 : 4 == wrong ? parcel.piece.len : 0;
        parcel.piece.len += 5 == wrong;
        parcel.piece.flags = 6 == wrong ? DN_SHIP_FRESH : 0;
        refuse_piece(&parcel, 3 == wrong ? left - 1 : 4 == wrong || 7 == wrong ? 0 : left);
    }
    assert_int_equal(serve(DN_CORE_PROG, &rest, sizeof(rest.piece) - 1, 0), DN_ERR_AGAIN);
    expect_program();
    /* The program that was coming can still be completed. */
    assert_int_equal(send_piece(&rest, left), DN_OK);
    dn_unit_core_letter_t letter = right_letter();
    letter.request.blocks++;
    letter.use.id++;
    assert_int_equal(serve(DN_CORE_PUSH, &letter, HEAD + LEN, 0), DN_OK);
}

/** As a whole, or in two pieces: neither the device nor the handler makes a program of it, and the next one is taken. */
static void what_is_no_program_is_refused_by_both(void **state)
{
    const dn_unit_core_letter_t letter = right_letter();
    dn_unit_core_parcel_t whole = dn_unit_core_parcel(), rest = right_rest();
    const size_t left = rest.piece.len - CUT;

    whole.bytes[whole.piece.len - 1] ^= 0x40;
    rest.bytes[left - 1] ^= 0x40;
    refuse_piece(&whole, whole.piece.len);
    refuse(DN_CORE_PULL, &letter, HEAD, 1);
    assert_int_equal(send_piece(&whole, CUT), DN_OK);
    refuse_piece(&rest, left);
    refuse(DN_CORE_PULL, &letter, HEAD, 1);
    whole = dn_unit_core_parcel();
    whole.piece.len = DN_SHIP_BYTES + 1;
    refuse_piece(&whole, CUT);
    refuse(DN_CORE_PULL, &letter, HEAD, 1);
    whole = dn_unit_core_parcel();
    assert_int_equal(send_piece(&whole, whole.piece.len), DN_OK);
    expect_program();
}

/** What a thread of a device serves. */
typedef struct mail {
    dn_unit_core_parcel_t parcel;
    dn_unit_core_letter_t letter;
    unsigned served;
} mail_t;

/** Another slot than SLOT gets programs, one after the other, and a transfer uses each. */
static void *ship_on(void *arg)
{
    mail_t *mail = arg;
    dn_unit_core_parcel_t *parcel = &mail->parcel;

    mail->letter.request.blocks = parcel->piece.slot = SLOT + 1;
    for (uint64_t turn = 1; turn <= TURNS; turn++) {
        mail->letter.use.id = parcel->piece.id = ID + turn;
        mail->served += DN_OK == send_piece(parcel, parcel->piece.len)
                        && DN_OK == serve(DN_CORE_PULL, &mail->letter, HEAD, 0);
    }
    return NULL;
}

/** The answers of the handler keep a program until they are sent, while a thread of a device takes others. */
static void two_threads_use_the_programs_of_a_peer(void **state)
{
    const dn_unit_core_letter_t letter = right_letter();
    mail_t mail = {dn_unit_core_parcel(), letter, 0};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, ship_on, &mail), 0);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        assert_int_equal(dn_unit_core_give(DN_CORE_PULL, &letter, HEAD), 0);
        dn_progress(dn_unit_core.port);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(mail.served, TURNS);
    for (unsigned turn = 0; turn < TURNS && 0 != dn_progress(dn_unit_core.port); turn++) {
    }
    expect_program();
}

/** A table that a device's thread makes for it would stay for ever. */
static void a_lost_peer_gets_no_table(void **state)
{
    const dn_unit_core_parcel_t parcel = dn_unit_core_parcel();
    dn_peer_base_t *peer = (dn_peer_base_t *) dn_unit_core.self;

    dn_port_peer_lost(dn_unit_core.port, peer);
    dn_core_forget(peer);
    assert_int_equal(send_piece(&parcel, parcel.piece.len), DN_ERR_AGAIN);
    assert_null(peer->core.its);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_taken_and_used),
        cmocka_unit_test(nothing_overtakes_what_waits),
        cmocka_unit_test(nothing_is_done_without_room),
        cmocka_unit_test(what_does_not_fit_is_left_to_the_handler),
        cmocka_unit_test(malformed_pieces_change_nothing),
        cmocka_unit_test(what_is_no_program_is_refused_by_both),
        cmocka_unit_test(two_threads_use_the_programs_of_a_peer),
        cmocka_unit_test(a_lost_peer_gets_no_table),
    };
    return cmocka_run_group_tests(tests, dn_unit_core_setup, dn_unit_core_teardown);
}
