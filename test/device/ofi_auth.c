/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What the ofi device takes from who sends to its endpoint without being a member, or again what a member has sent. Rank 1
 * attacks rank 0 with the device's own means:
 *
 *   ofi_auth [TEST]
 */
#include "dn_config.h"

#include "ofi_world.h"

#include <string.h>

typedef struct hello_message {
    dn_ofi_head_t head;
    dn_ofi_hello_t hello;
} hello_message_t;

/** Where a process is reached: this part of its address comes last. */
static dn_ofi_where_t where_of(const dn_world_t *world, int rank)
{
    const dn_board_seat_t *seat = &world->board->seat[rank];
    dn_ofi_where_t where;

    memcpy(&where, seat->address + seat->address_len - sizeof(where), sizeof(where));
    return where;
}

/** Send bytes to a process, as often as it takes. */
static void throw_at(dn_world_t *world, int rank, const void *message, size_t size)
{
    dn_ofi_t *ofi = ofi_device(world);
    const dn_ofi_where_t where = where_of(world, rank);

    dn_ofi_lock(ofi);
    dn_ofi_node_t *node = dn_ofi_node(ofi, where.name, where.name_len);
    dn_check(NULL != node);
    while (!dn_ofi_tell(ofi, node, message, size)) {
        dn_ofi_poll(ofi);
    }
    dn_ofi_unlock(ofi);
}

/* The watcher reads what comes, too: what it may change is looked at with the lock. */

/** How many are asked for a proof. */
static uint32_t applicants(dn_ofi_t *ofi)
{
    dn_ofi_lock(ofi);
    const uint32_t n = ofi->napplicants;
    dn_ofi_unlock(ofi);
    return n;
}

/** Room of the first message that waits for a proof; 0: there is none. */
static uint32_t early_room(dn_ofi_t *ofi)
{
    dn_ofi_lock(ofi);
    const dn_ofi_applicant_t *one = ofi->applicant;
    const uint32_t room = NULL == one || NULL == one->early ? 0 : one->early->room;
    dn_ofi_unlock(ofi);
    return room;
}

/** Is nobody known here? */
static int is_empty(dn_ofi_t *ofi)
{
    dn_ofi_lock(ofi);
    const int empty = NULL == ofi->nodes && NULL == ofi->peers && NULL == ofi->applicant;
    dn_ofi_unlock(ofi);
    return empty;
}

static void throw_at_victim(dn_world_t *world, const void *message, size_t size)
{
    throw_at(world, 0, message, size);
}

/** Say again, with what was changed in it, that it is from who has this key. */
static void sign(hello_message_t *message, const dn_group_key_t *key)
{
    dn_auth_group_t group;
    dn_auth_root_t root;

    dn_check_equal(dn_auth_group(key, &group), DN_OK);
    dn_check_equal(dn_auth_root(&group, group.exchange, &root), DN_OK);
    dn_auth_mac(&root, message, offsetof(hello_message_t, hello.mac), message->hello.mac);
}

/** What a process says that has this key. */
static hello_message_t greeting(dn_world_t *world, const dn_group_key_t *key, uint64_t token)
{
    const dn_ofi_where_t where = where_of(world, 0);
    hello_message_t message = {
        .head = {.token = token, .len = sizeof(message.hello), .kind = DN_OFI_HELLO},
        .hello = {.magic = DN_OFI_MAGIC,
                  .version = DN_WIRE_VERSION,
                  .pid = 1,
                  .to = {where.nonce[0], where.nonce[1]},
                  .where = ofi_device(world)->where},
    };

    dn_auth_random(message.hello.random, sizeof(message.hello.random));
    sign(&message, key);
    return message;
}

/** Nobody is entered, let alone connected to, who has no key, changes a HELLO, has one that was meant for another, or says
 * that it is this process. */
static void forged_greetings_leave_nothing_behind(dn_world_t *world)
{
    enum { FORGED = 4 };

    dn_world_listen(world, dn_world_hear);
    if (1 == world->rank) {
        dn_group_key_t other = world->job.key;
        other.byte[3] ^= 1;
        hello_message_t message = greeting(world, &other, 77);
        throw_at_victim(world, &message, sizeof(message));
        message = greeting(world, &world->job.key, 78);
        message.hello.where.name[2] ^= 1;
        throw_at_victim(world, &message, sizeof(message));
        message = greeting(world, &world->job.key, 79);
        message.hello.to[0] ^= 1;
        throw_at_victim(world, &message, sizeof(message));
        message = greeting(world, &world->job.key, 80);
        memcpy(message.hello.where.nonce, message.hello.to, sizeof(message.hello.to));
        sign(&message, &world->job.key);
        throw_at_victim(world, &message, sizeof(message));
        dn_world_await(world, 0, 0, 1);
    } else {
        while (FORGED > dn_world_dropped(world)) {
            dn_world_progress(world);
            dn_check(is_empty(ofi_device(world)));
        }
        dn_world_post(world, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** How many applicants are kept that have greeted so long ago? Who waits for ever, or for a long limit, may still send its PROOF. */
static uint32_t kept_after(dn_ofi_t *ofi, uint64_t limit_s, uint64_t age_s)
{
    dn_ofi_lock(ofi);
    const uint64_t limit_ns = ofi->timeout_ns;
    for (dn_ofi_applicant_t *one = ofi->applicant; NULL != one; one = one->next) {
        one->since = dn_clock_ns() - age_s * UINT64_C(1000000000);
    }
    ofi->timeout_ns = limit_s * UINT64_C(1000000000);
    dn_ofi_expire(ofi, 0);
    ofi->timeout_ns = limit_ns;
    const uint32_t kept = ofi->napplicants;
    dn_ofi_unlock(ofi);
    return kept;
}

/** A HELLO that was heard before: its sender is asked for a proof, takes no slot, and is forgotten. */
static void repeated_greetings_take_no_slot_and_expire(dn_world_t *world)
{
    enum { GREETINGS = 6 };

    world->config.max_peers = 4;
    dn_world_listen(world, dn_world_hear);
    dn_ofi_t *ofi = ofi_device(world);
    if (0 != world->rank) {
        for (uint64_t i = 0; 1 == world->rank && i < GREETINGS; i++) {
            const hello_message_t message = greeting(world, &world->job.key, 100 + i);
            throw_at_victim(world, &message, sizeof(message));
            throw_at_victim(world, &message, sizeof(message));
        }
        dn_world_await(world, 0, 0, 1);
        if (2 == world->rank) {
            dn_world_connect_to(world, 0);
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        }
        dn_world_await(world, 0, 0, 2);
    } else {
        while (world->config.max_peers > applicants(ofi)) {
            dn_world_progress(world);
        }
        dn_check_equal(ofi->nsenders, 0);
        dn_check(NULL == ofi->peers);
        dn_world_post(world, 0, 1);
        /* One of them makes room for who can prove it. */
        dn_world_hear_until(world, 1);
        dn_check_equal(ofi->nsenders, 1);
        const uint32_t all = applicants(ofi);
        dn_check(0 != all);
        dn_check_equal(kept_after(ofi, 0, 100000), all);
        dn_check_equal(kept_after(ofi, 600, 1700), all);
        dn_check_equal(kept_after(ofi, 1, 50), all);
        dn_check_equal(kept_after(ofi, 600, 1801), 0);
        dn_world_post(world, 0, 2);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** A message as rank 1 would send it on its stream, sealed. */
static dn_ofi_head_t next_message(const dn_world_t *world, const dn_ofi_stream_t *stream, uint64_t number,
                                  unsigned tag)
{
    dn_ofi_head_t head = {.token = stream->token,
                          .number = number,
                          .kind = DN_OFI_BOTF,
                          .channel = DN_WORLD_CHAN,
                          .tag = (uint8_t) tag};

    dn_ofi_seal(ofi_device(world), stream, &head);
    return head;
}

/** Connect to rank 0, and hold back what would go out on the stream, the PROOF first, though rank 0 has asked for it. */
static dn_ofi_stream_t *knock(dn_world_t *world)
{
    dn_ofi_t *ofi = ofi_device(world);

    dn_ofi_lock(ofi);
    ofi->tx_most = 0;
    dn_ofi_unlock(ofi);
    dn_world_connect_to(world, 0);
    dn_ofi_stream_t *stream = ((dn_ofi_peer_t *) world->peer[0])->tx;
    while (DN_OFI_TX_OPEN != stream->state) {
        dn_world_progress(world);
    }
    return stream;
}

/** Let it go out. */
static void enter(dn_world_t *world)
{
    dn_ofi_t *ofi = ofi_device(world);

    dn_ofi_lock(ofi);
    ofi->tx_most = ofi->tx_left;
    dn_ofi_unlock(ofi);
}

/** A stream has one PROOF, which is its first message: others are not kept for the time after it, when they would be taken
 * for messages to handlers, of channels that there are not. */
static void a_stream_has_one_proof(dn_world_t *world)
{
    static const struct {
        uint64_t number;
        enum dn_ofi_kind kind;
    } bad[] = {{1, DN_OFI_PROOF}, {2, DN_OFI_PROOF}, {0, DN_OFI_BOTF}, {UINT64_MAX, DN_OFI_BOTF}};
    enum { BAD = sizeof(bad) / sizeof(bad[0]) };

    dn_world_listen(world, dn_world_hear);
    if (1 == world->rank) {
        const dn_ofi_stream_t *stream = knock(world);
        for (int i = 0; i < BAD; i++) {
            struct {
                dn_ofi_head_t head;
                dn_ofi_proof_t proof;
            } message = {.head = {.token = stream->token,
                                  .number = bad[i].number,
                                  .kind = (uint8_t) bad[i].kind,
                                  .len = sizeof(message.proof),
                                  .channel = DN_OFI_PROOF == bad[i].kind ? UINT8_MAX : DN_WORLD_CHAN,
                                  .tag = UINT8_MAX}};
            dn_ofi_seal(ofi_device(world), stream, &message.head);
            throw_at_victim(world, &message, sizeof(message));
        }
        enter(world);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_await(world, 0, 0, 1);
    } else {
        while (BAD > dn_world_dropped(world)) {
            dn_check(NULL == ofi_device(world)->peers);
            dn_world_progress(world);
        }
        dn_world_hear_until(world, 1);
        dn_world_post(world, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** A short message that comes ahead of the PROOF waits in a short buffer: there may be as many as there is credit. */
static void what_waits_for_a_proof_takes_little(dn_world_t *world)
{
    dn_world_listen(world, dn_world_hear);
    if (1 == world->rank) {
        dn_ofi_stream_t *stream = knock(world);
        const dn_ofi_head_t early = next_message(world, stream, stream->number, 0);
        throw_at_victim(world, &early, sizeof(early));
        dn_world_await(world, 0, 0, 1);
        stream->number++;
        stream->sent++;
        enter(world);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 1, NULL, 0);
        dn_world_await(world, 0, 0, 2);
    } else {
        uint32_t room;
        while (0 == (room = early_room(ofi_device(world)))) {
            dn_world_progress(world);
        }
        dn_check_equal(room, DN_OFI_SMALL);
        dn_world_post(world, 0, 1);
        dn_world_hear_until(world, 2);
        dn_world_post(world, 0, 2);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** Rank 1 is of another group than rank 0; they let each other in. It says that it has the number of rank 2, which is of rank
 * 0's group: by it processes are told from each other. */
static void let_in_who_poses_as_rank_2(dn_world_t *world)
{
    world->job.key.byte[0] ^= 1 == world->rank;
    dn_world_listen(world, dn_world_hear);
    if (2 != world->rank) {
        const dn_board_seat_t *other = &world->board->seat[1 - world->rank];
        dn_pgid_t pgid;
        dn_check_equal(dn_address_pgid(other->address, other->address_len, &pgid), DN_OK);
        dn_check_equal(dn_group_admit(world->port, &pgid), DN_OK);
    }
    if (1 == world->rank) {
        dn_ofi_t *ofi = ofi_device(world);
        const dn_ofi_where_t where = where_of(world, 2);
        dn_ofi_lock(ofi);
        memcpy(ofi->where.nonce, where.nonce, sizeof(where.nonce));
        dn_ofi_unlock(ofi);
    }
    dn_world_barrier(world);
}

/** Its HELLO came when nobody had that number, its PROOF when a peer of another group did. */
static void a_proof_takes_no_place_of_another_group(dn_world_t *world)
{
    let_in_who_poses_as_rank_2(world);
    if (1 == world->rank) {
        knock(world);
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 1);
        enter(world);
        dn_world_await(world, 0, 0, 2);
        /* It was refused. */
        world->peer[0] = NULL;
    } else if (2 == world->rank) {
        dn_world_await(world, 0, 0, 2);
    } else {
        dn_world_await(world, 1, 0, 1);
        dn_world_connect_to(world, 2);
        dn_world_post(world, 0, 1);
        while (0 != applicants(ofi_device(world))) {
            dn_world_progress(world);
        }
        dn_check_equal(((const dn_ofi_peer_t *) world->peer[2])->rx.token, 0);
        dn_check_equal(dn_world_dropped(world), 1);
        dn_world_post(world, 0, 2);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** Who has met it, and connects to rank 2 then, is not given it in place of rank 2. */
static void who_has_the_number_of_another_is_not_connected_to(dn_world_t *world)
{
    let_in_who_poses_as_rank_2(world);
    if (1 == world->rank) {
        dn_world_connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
    } else if (0 == world->rank) {
        const dn_board_seat_t *seat = &world->board->seat[2];
        dn_peer_t *peer = NULL;
        dn_world_hear_until(world, 1);
        dn_test_log_expect();
        dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &peer), DN_ERR_ACCESS);
        dn_check(dn_test_log_said(1, "group"));
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static void junk_does_not_keep_a_stranger_out(dn_world_t *world)
{
    enum { JUNK = 2000, MESSAGES = 20 };

    dn_world_listen(world, dn_world_hear);
    if (1 == world->rank) {
        for (uint64_t i = 1; i <= JUNK; i++) {
            const dn_ofi_head_t head = {.token = i << 32, .number = i, .kind = DN_OFI_BOTF, .channel = 8};
            throw_at_victim(world, &head, sizeof(head));
        }
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 1);
    } else if (2 == world->rank) {
        dn_world_connect_to(world, 0);
        for (unsigned tag = 0; tag < MESSAGES; tag++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, tag, NULL, 0);
        }
        dn_world_await(world, 0, 0, 1);
    } else {
        dn_world_hear_until(world, MESSAGES);
        while (JUNK > dn_world_dropped(world)) {
            dn_world_progress(world);
        }
        dn_world_post(world, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** With tags: a bit that differs, a tag that is made up and a message that was taken before are dropped, and the peer stays. */
static void what_was_changed_or_heard_before_is_dropped(dn_world_t *world)
{
    enum { BAD = 4 };

    world->config.auth = DN_AUTH_FULL;
    dn_world_listen(world, dn_world_hear);
    if (1 == world->rank) {
        dn_world_connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_await(world, 0, 0, 1);
        dn_ofi_stream_t *stream = ((dn_ofi_peer_t *) world->peer[0])->tx;
        dn_ofi_head_t head = next_message(world, stream, stream->number, 1);
        head.tag ^= 2;
        throw_at_victim(world, &head, sizeof(head));
        head = next_message(world, stream, stream->number, 1);
        head.proof = 12345;
        throw_at_victim(world, &head, sizeof(head));
        head = next_message(world, stream, stream->number, 1);
        head.proof = stream->pair.way[DN_AUTH_OPENER].word;
        throw_at_victim(world, &head, sizeof(head));
        head = next_message(world, stream, stream->number - 1, 1);
        throw_at_victim(world, &head, sizeof(head));
        dn_world_await(world, 0, 0, 2);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 1, NULL, 0);
        dn_world_await(world, 0, 0, 3);
    } else {
        dn_world_hear_until(world, 1);
        dn_world_post(world, 0, 1);
        while (BAD > dn_world_dropped(world)) {
            dn_world_progress(world);
        }
        dn_check_equal(world->heard, 1);
        dn_world_post(world, 0, 2);
        dn_world_hear_until(world, 2);
        dn_check_equal(dn_world_lost(world), 0);
        dn_world_post(world, 0, 3);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** What rank 0 knows of its only sender: messages that came ahead of others, and whether the sender has left. */
static int early_of_sender(dn_world_t *world, int *leaves_p)
{
    dn_ofi_t *ofi = ofi_device(world);
    int early = 0;

    dn_world_progress(world);
    dn_ofi_lock(ofi);
    const dn_ofi_peer_t *peer = ofi->peers;
    *leaves_p = NULL == peer || DN_OFI_RX_OPEN != peer->rx.state;
    for (const dn_ofi_buffer_t *at = NULL == peer ? NULL : peer->rx.early; NULL != at; at = at->next) {
        early++;
    }
    dn_ofi_unlock(ofi);
    return early;
}

/** Rank 1 leaves. Messages that have the numbers behind its LEAVE, and have come before the LEAVE, are dropped; so is a second LEAVE. */
static void nothing_is_taken_behind_a_leave(dn_world_t *world)
{
    int leaves = 0;

    dn_world_listen(world, dn_world_hear);
    if (1 == world->rank) {
        dn_world_connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_await(world, 0, 0, 1);
        const dn_ofi_stream_t *stream = ((dn_ofi_peer_t *) world->peer[0])->tx;
        for (uint64_t ahead = 3; 0 < ahead--;) {
            dn_ofi_head_t head = next_message(world, stream, stream->number + ahead, 1);
            head.kind = 1 == ahead ? DN_OFI_BOTF : DN_OFI_LEAVE;
            dn_ofi_seal(ofi_device(world), stream, &head);
            throw_at_victim(world, &head, sizeof(head));
            dn_world_await(world, 0, 0, 4 - ahead);
        }
        dn_world_await(world, 0, 0, 5);
    } else {
        dn_world_hear_until(world, 1);
        dn_world_post(world, 0, 1);
        for (int early = 1; 2 >= early; early++) {
            while (early > early_of_sender(world, &leaves)) {
            }
            dn_world_post(world, 0, (uint64_t) early + 1);
        }
        dn_world_post(world, 0, 4);
        while (!leaves) {
            (void) early_of_sender(world, &leaves);
        }
        for (int i = 0; i < 1000; i++) {
            dn_world_progress(world);
        }
        dn_check_equal(world->heard, 1);
        dn_world_post(world, 0, 5);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** Say a word thrice, in one direction of rank 1's stream. */
static void repeat_word(dn_world_t *world, int rank, void *word, size_t size, const dn_auth_way_t *way)
{
    const dn_ofi_head_t *head = word;

    dn_auth_seal(world->config.auth, way, head->number, word, size, offsetof(dn_ofi_head_t, proof));
    for (int i = 0; i < 3; i++) {
        throw_at(world, rank, word, size);
    }
}

/** Who is dead, or cut off, is not thought to live because somebody says again what it has said. */
static void what_was_heard_before_is_no_sign_of_life(dn_world_t *world)
{
    world->config.auth = DN_AUTH_FULL;
    dn_world_listen(world, dn_world_hear);
    dn_ofi_t *ofi = ofi_device(world);
    if (1 == world->rank) {
        dn_world_connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_await(world, 0, 0, 1);
        const dn_ofi_peer_t *peer = (const dn_ofi_peer_t *) world->peer[0];
        dn_ofi_stream_t *stream = peer->tx;
        dn_ofi_head_t ping = {.token = stream->token, .number = dn_ofi_question(5, 0), .kind = DN_OFI_PING};
        repeat_word(world, 0, &ping, sizeof(ping), &stream->pair.way[DN_AUTH_OPENER]);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 1, NULL, 0);
        dn_world_await(world, 0, 0, 2);
        dn_ofi_lock(ofi);
        stream->asks.number = 6;
        stream->asks.at = stream->asks.since = dn_clock_ns();
        const uint32_t signs = peer->watch.signs;
        dn_ofi_unlock(ofi);
        dn_world_post(world, 0, 1);
        while (2 > stream->credit) {
            dn_world_progress(world);
        }
        dn_check(0 != stream->asks.at);
        dn_check_equal(peer->watch.signs - signs, 1);
        dn_world_post(world, 0, 2);
    } else {
        dn_world_hear_until(world, 1);
        const dn_ofi_peer_t *peer = ofi->peers;
        const uint32_t signs = peer->watch.signs;
        dn_world_post(world, 0, 1);
        dn_world_hear_until(world, 2);
        /* The question, and the message. */
        dn_check_equal(peer->watch.signs - signs, 2);
        dn_world_post(world, 0, 2);
        dn_world_await(world, 1, 0, 1);
        struct {
            dn_ofi_head_t head;
            dn_ofi_pong_t pong;
        } pong = {.head = {.token = peer->rx.token, .number = 3, .kind = DN_OFI_PONG, .len = 8}, .pong = {5}};
        dn_ofi_head_t credit = {.token = peer->rx.token, .number = 2, .kind = DN_OFI_CREDIT};
        repeat_word(world, 1, &pong, sizeof(pong), &peer->rx.pair.way[DN_AUTH_ACCEPTOR]);
        repeat_word(world, 1, &credit, sizeof(credit), &peer->rx.pair.way[DN_AUTH_ACCEPTOR]);
        dn_world_await(world, 1, 0, 2);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** What a host of the other byte order says first. */
static void another_byte_order_is_told_once(dn_world_t *world)
{
    if (0 == world->rank) {
        /* Before the port is known: its own thread may be the first to hear. */
        dn_test_log_expect();
    }
    dn_world_listen(world, dn_world_hear);
    if (1 == world->rank) {
        hello_message_t message = greeting(world, &world->job.key, 77);
        message.head.len = __builtin_bswap32(message.head.len);
        throw_at_victim(world, &message, sizeof(message));
        throw_at_victim(world, &message, sizeof(message));
        dn_world_await(world, 0, 0, 1);
    } else {
        /* The port's thread counts a message, and says its sentence once it has left the port. */
        while (2 > dn_world_dropped(world) || 0 == dn_test_log_count()) {
            dn_world_progress(world);
        }
        dn_check(dn_test_log_said(1, "byte order"));
        dn_world_post(world, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** A launcher without random bytes makes a key of what it has. */
static void a_key_of_small_numbers_is_refused(dn_world_t *world)
{
    const uint64_t weak[2] = {4711, 1};

    memcpy(world->job.key.byte, weak, sizeof(weak));
    dn_test_log.expected = 1;
    dn_check(DN_OK != dn_open(world->variant->device, &world->job, &world->config, &world->port));
    dn_test_log.expected = 0;
    world->config.auth = DN_AUTH_NONE;
    dn_world_open(world);
    dn_close(world->port);
}

/** What is to be encrypted does not go in clear. */
static void auth_encrypted_is_refused(dn_world_t *world)
{
    world->config.auth = DN_AUTH_ENCRYPTED;
    dn_test_log.expected = 1;
    dn_check_equal(dn_open(world->variant->device, &world->job, &world->config, &world->port),
                   DN_ERR_UNSUPPORTED);
    dn_test_log.expected = 0;
}

/** Rank 1 lets nobody in, and connects to nobody, until it is told of rank 0's greeting. */
static void who_is_not_let_in_is_told_of(dn_world_t *world)
{
    const dn_board_seat_t *other = &world->board->seat[1 - world->rank];
    const uint32_t none = 0;
    dn_pgid_t pgid;

    world->job.key.byte[0] ^= 1 == world->rank;
    dn_world_listen(world, dn_world_hear);
    const uint32_t *strangers = dn_strangers(world->port);
    dn_check_equal(*strangers, none);
    dn_check_equal(dn_address_pgid(other->address, other->address_len, &pgid), DN_OK);
    if (0 == world->rank) {
        dn_check_equal(dn_group_admit(world->port, &pgid), DN_OK);
        dn_world_connect_to(world, 1);
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_fence(world, world->peer[1]);
        dn_check_equal(*strangers, none);
    } else {
        while (none == dn_load_relaxed(strangers)) {
            dn_world_progress(world);
        }
        dn_check_equal(world->heard, 0);
        dn_check_equal(dn_group_admit(world->port, &pgid), DN_OK);
        dn_world_hear_until(world, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** A peer with another auth is named when it is connected to. */
static void another_auth_is_told(dn_world_t *world)
{
    const dn_board_seat_t *other = &world->board->seat[1 - world->rank];
    dn_peer_t *peer = NULL;

    world->config.auth = 0 == world->rank ? DN_AUTH_FULL : DN_AUTH_HELLO;
    dn_world_listen(world, dn_world_hear);
    dn_test_log_expect();
    dn_check_equal(dn_connect(world->port, other->address, other->address_len, &peer), DN_ERR_ACCESS);
    dn_check(dn_test_log_said(1, "auth"));
    dn_world_barrier(world);
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"forged_greetings_leave_nothing_behind", 2, forged_greetings_leave_nothing_behind},
    {"repeated_greetings_take_no_slot_and_expire", 3, repeated_greetings_take_no_slot_and_expire},
    {"a_stream_has_one_proof", 2, a_stream_has_one_proof},
    {"what_waits_for_a_proof_takes_little", 2, what_waits_for_a_proof_takes_little},
    {"a_proof_takes_no_place_of_another_group", 3, a_proof_takes_no_place_of_another_group},
    {"who_has_the_number_of_another_is_not_connected_to", 3,
     who_has_the_number_of_another_is_not_connected_to},
    {"junk_does_not_keep_a_stranger_out", 3, junk_does_not_keep_a_stranger_out},
    {"another_byte_order_is_told_once", 2, another_byte_order_is_told_once},
    {"a_key_of_small_numbers_is_refused", 1, a_key_of_small_numbers_is_refused},
    {"auth_encrypted_is_refused", 1, auth_encrypted_is_refused},
    {"who_is_not_let_in_is_told_of", 2, who_is_not_let_in_is_told_of},
    {"another_auth_is_told", 2, another_auth_is_told},
    {"what_was_heard_before_is_no_sign_of_life", 2, what_was_heard_before_is_no_sign_of_life},
    {"nothing_is_taken_behind_a_leave", 2, nothing_is_taken_behind_a_leave},
    {"what_was_changed_or_heard_before_is_dropped", 2, what_was_changed_or_heard_before_is_dropped},
};

int main(int argc, char **argv)
{
    return ofi_run_tests(tests, sizeof(tests) / sizeof(tests[0]), "ofi_auth", argv[1]);
}
