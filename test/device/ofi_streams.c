/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Streams of the ofi device when something of them comes late, twice or not at all. It knows the device's state, and
 * loses words of it where the network would:
 *
 *   ofi_streams [TEST]
 */
#include "dn_config.h"

#include "ofi_world.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/** After so long without a sign the others are given up, and a watcher reads in its place after an eighth of it. */
enum { PATIENCE_S = DN_WORLD_SILENT_S };

static void open_with(dn_world_t *world, uint32_t timeout_s, dn_handler_fn_t fn)
{
    world->config.timeout_s = timeout_s;
    dn_world_listen(world, fn);
}

/* A stream after another */

/** Read what comes, and handle none of it, until a word of another's seat is at least value. */
static void read_until(dn_world_t *world, int rank, int word, uint64_t value)
{
    dn_ofi_t *ofi = ofi_device(world);

    while (dn_load_acquire(&world->board->seat[rank].word[word]) < value) {
        dn_ofi_lock(ofi);
        dn_ofi_turn(ofi);
        dn_ofi_unlock(ofi);
        sched_yield();
    }
}

/** More than a window has room for, and less than two: the last of them wait for credit. */
enum { WINDOW_AND_MORE = 1400 };

static void send_more_than_a_window(dn_world_t *world, int rank)
{
    for (unsigned tag = 0; tag < WINDOW_AND_MORE; tag++) {
        dn_world_send(world, world->peer[rank], DN_WORLD_CHAN, tag % 256, NULL, 0);
    }
}

/** Rank 0 is sent more than a window, left, and connected to again before all has gone out. */
static void leave_and_come_back(dn_world_t *world)
{
    dn_world_connect_to(world, 0);
    send_more_than_a_window(world, 0);
    dn_disconnect(world->peer[0]);
    dn_world_connect_to(world, 0);
}

/** Who leaves and comes back before all has gone out is heard: what it said first, and what it said then. */
static void who_comes_back_is_heard_after_all_that_it_said(dn_world_t *world)
{
    enum { ALL = WINDOW_AND_MORE + 400 };

    open_with(world, 60, dn_world_hear);
    if (0 == world->rank) {
        read_until(world, 1, 0, 1);
        dn_world_hear_until(world, ALL);
        dn_world_post(world, 0, 1);
    } else {
        leave_and_come_back(world);
        for (unsigned tag = WINDOW_AND_MORE; tag < ALL; tag++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, tag % 256, NULL, 0);
        }
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** A stream may wait for longer than the time limit until the one before it has gone out, as the receiver computes. It was left, too. */
static void who_waits_behind_its_last_stream_is_heard(dn_world_t *world)
{
    open_with(world, PATIENCE_S, dn_world_hear);
    if (0 == world->rank) {
        read_until(world, 1, 0, 1);
        dn_world_hear_until(world, WINDOW_AND_MORE + 1);
        dn_world_post(world, 0, 1);
    } else {
        leave_and_come_back(world);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, WINDOW_AND_MORE % 256, NULL, 0);
        dn_disconnect(world->peer[0]);
        world->peer[0] = NULL;
        const uint64_t until = dn_clock_ns() + 2 * PATIENCE_S * UINT64_C(1000000000);
        while (dn_clock_ns() < until) {
            dn_world_progress(world);
        }
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** PUSH waits for what was sent ahead of a fence, but not for as many messages of the next stream. */
static void a_fence_holds_nothing_up_after_its_stream(dn_world_t *world)
{
    enum { MESSAGES = 400 };
    static uint8_t data[64];
    dn_segment_t *segment;

    open_with(world, 60, dn_world_hear);
    dn_check_equal(dn_segment_alloc(world->port, sizeof(data), &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    dn_world_connect(world);
    if (1 == world->rank) {
        for (unsigned tag = 0; tag < MESSAGES; tag++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, tag % 256, NULL, 0);
        }
        dn_world_fence(world, world->peer[0]);
        dn_disconnect(world->peer[0]);
        dn_world_connect_to(world, 0);
        const dn_xfer_t xfer = {.local = data, .key = &world->board->seat[0].key[0], .len = sizeof(data)};
        dn_check_equal(dn_world_push(world, world->peer[0], &xfer), DN_OK);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_hear_until(world, MESSAGES);
        dn_world_await(world, 1, 0, 1);
    }
    dn_world_barrier(world);
    dn_segment_free(segment);
    dn_world_stop(world);
}

/** Anybody can send a LEAVE of no stream at all; those that were left go on. */
static void a_leave_of_no_stream_ends_none(dn_world_t *world)
{
    open_with(world, 60, dn_world_hear);
    dn_ofi_t *ofi = ofi_device(world);
    if (0 == world->rank) {
        const uint64_t dropped = dn_world_dropped(world);
        dn_world_connect_to(world, 1);
        send_more_than_a_window(world, 1);
        dn_disconnect(world->peer[1]);
        world->peer[1] = NULL;
        dn_world_post(world, 0, 1);
        while (dropped == dn_world_dropped(world) && 0 != dn_load_seq_cst(&ofi->draining)) {
            dn_world_progress(world);
        }
        dn_check_equal(dn_load_seq_cst(&ofi->draining), 1);
        dn_world_post(world, 0, 2);
    } else {
        read_until(world, 0, 0, 1);
        dn_ofi_lock(ofi);
        dn_check(dn_ofi_control(ofi, ofi->peers->node, DN_OFI_LEAVE, 0,
                                &ofi->peers->rx.pair.way[DN_AUTH_ACCEPTOR], 0));
        dn_ofi_unlock(ofi);
        read_until(world, 0, 0, 2);
        dn_world_hear_until(world, WINDOW_AND_MORE);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** fi_send() of a provider that has failed. */
static ssize_t fail(struct fid_ep *ep, const void *bytes, size_t len, void *desc, fi_addr_t to, void *context)
{
    (void) ep;
    (void) bytes;
    (void) len;
    (void) desc;
    (void) to;
    (void) context;
    return -FI_EIO;
}

/** All that the one stream's credit covers has gone out, and the provider has nothing of it. */
static int waits_for_credit(dn_ofi_t *ofi)
{
    dn_ofi_lock(ofi);
    const int waits = NULL != ofi->stream[0]->first && 0 == ofi->stream[0]->flying;
    dn_ofi_unlock(ofi);
    return waits;
}

/** A stream that was left breaks when its credit comes, and nothing of it is under way: it is freed, and nobody waits for it. */
static void a_left_stream_that_breaks_is_freed(dn_world_t *world)
{
    static struct fi_ops_msg broken;

    open_with(world, 60, dn_world_hear);
    dn_ofi_t *ofi = ofi_device(world);
    if (0 == world->rank) {
        dn_world_connect_to(world, 1);
        send_more_than_a_window(world, 1);
        dn_disconnect(world->peer[1]);
        world->peer[1] = NULL;
        while (!waits_for_credit(ofi)) {
            dn_world_progress(world);
        }
        dn_ofi_lock(ofi);
        broken = *ofi->ep->msg;
        broken.send = fail;
        ofi->ep->msg = &broken;
        dn_ofi_unlock(ofi);
        dn_world_post(world, 0, 1);
        while (0 != dn_load_seq_cst(&ofi->draining)) {
            dn_world_progress(world);
        }
        dn_world_post(world, 0, 2);
    } else {
        read_until(world, 0, 0, 1);
        dn_world_await(world, 0, 0, 2);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/* What comes while nobody progresses */

enum { MANY = 400 };

/** Rank 1 greets and sends, while rank 0 computes until its watcher has read all of that. */
static void greet_who_computes(dn_world_t *world, int connects)
{
    const struct timespec work = {1, 0};

    open_with(world, PATIENCE_S, dn_world_hear);
    if (0 == world->rank) {
        dn_world_sleep(world, 1, 0, 1);
        nanosleep(&work, NULL);
        if (connects) {
            dn_world_connect_to(world, 1);
        }
        dn_world_hear_until(world, MANY);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_connect_to(world, 0);
        for (unsigned tag = 0; tag < MANY; tag++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, tag, NULL, 0);
        }
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static void a_greeting_is_taken_while_its_receiver_computes(dn_world_t *world)
{
    greet_who_computes(world, 0);
}

static void who_greeted_while_its_receiver_computed_is_the_one_connected_to(dn_world_t *world)
{
    greet_who_computes(world, 1);
}

/** A fence says that words are stored: also when the receiver has not seen yet who greeted it. */
static void words_are_stored_while_their_receiver_computes(dn_world_t *world)
{
    enum { WORDS = 100 };
    void *word = NULL;

    open_with(world, PATIENCE_S, dn_world_hear);
    if (0 == world->rank) {
        dn_check_equal(dn_llcm_alloc(world->port, 64, &world->me->off[0], &word), DN_OK);
    }
    dn_world_barrier(world);
    if (0 == world->rank) {
        dn_world_sleep(world, 1, 0, 1);
        dn_check_equal(dn_load_acquire((const uint64_t *) word), WORDS);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_connect_to(world, 0);
        for (uint64_t value = 1; value <= WORDS; value++) {
            dn_world_aotf(world, world->peer[0], world->board->seat[0].off[0], value, 8);
        }
        dn_world_fence(world, world->peer[0]);
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** A fence does not say that the words of a group are stored which is not let in yet. */
static void words_of_a_group_are_stored_when_it_is_let_in(dn_world_t *world)
{
    dn_pgid_t pgid;
    void *word = NULL;

    world->job.key.byte[0] ^= (uint8_t) world->rank;
    open_with(world, 60, dn_world_hear);
    if (0 == world->rank) {
        dn_check_equal(dn_llcm_alloc(world->port, 64, &world->me->off[0], &word), DN_OK);
    }
    dn_world_barrier(world);
    const dn_board_seat_t *other = &world->board->seat[1 - world->rank];
    dn_check_equal(dn_address_pgid(other->address, other->address_len, &pgid), DN_OK);
    if (0 == world->rank) {
        dn_world_await(world, 1, 0, 1);
        dn_check_equal(dn_load_acquire((const uint64_t *) word), 0);
        dn_check_equal(dn_group_admit(world->port, &pgid), DN_OK);
        dn_world_await(world, 1, 0, 2);
        dn_check_equal(dn_load_acquire((const uint64_t *) word), 5);
        dn_world_post(world, 0, 1);
    } else {
        dn_check_equal(dn_group_admit(world->port, &pgid), DN_OK);
        dn_world_connect_to(world, 0);
        const dn_ofi_stream_t *stream = ((const dn_ofi_peer_t *) world->peer[0])->tx;
        dn_world_aotf(world, world->peer[0], other->off[0], 5, 8);
        const uint64_t said = stream->greet.gap;
        while (said == stream->greet.gap) {
            dn_check_equal(dn_fence(world->peer[0]), DN_INPROGRESS);
            dn_world_progress(world);
        }
        dn_world_post(world, 0, 1);
        dn_world_fence(world, world->peer[0]);
        dn_world_post(world, 0, 2);
        dn_world_await(world, 0, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** A turn of the receiver's may end right after its watcher has met a process and read its last word: then the process is not forgotten
 * with what it has sent. */
static void who_closed_while_its_receiver_computed_is_heard_and_lost(dn_world_t *world)
{
    enum { MESSAGES = 3 };
    const struct timespec look = {0, 10000000};

    open_with(world, PATIENCE_S, dn_world_hear);
    if (0 == world->rank) {
        dn_ofi_t *ofi = ofi_device(world);
        int left = 0;
        while (!left) {
            nanosleep(&look, NULL);
            dn_ofi_lock(ofi);
            left = NULL != ofi->peers && dn_ofi_rx_has_left(ofi->peers);
            dn_ofi_unlock(ofi);
        }
        dn_check_equal(ofi->peers->owner, DN_OFI_STRANGER);
        dn_check(dn_peer_is_doubted(&ofi->peers->base));
        dn_port_bury(&ofi->iface);
        dn_ofi_reap(ofi);
        dn_check_equal(dn_world_lost(world), 0);
        dn_world_hear_until(world, MESSAGES);
        while (0 == dn_world_lost(world)) {
            dn_world_progress(world);
        }
    } else {
        dn_world_connect_to(world, 0);
        for (unsigned tag = 0; tag < MESSAGES; tag++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, tag, NULL, 0);
        }
        const dn_ofi_stream_t *stream = ((const dn_ofi_peer_t *) world->peer[0])->tx;
        while (DN_OFI_TX_OPEN != stream->state || NULL != stream->first || 0 != stream->flying) {
            dn_world_progress(world);
        }
    }
    dn_close(world->port);
}

/** Messages that wait take buffers of their own length, and those of the longest are for receiving. */
static void messages_of_1_kib_wait_in_short_buffers(dn_world_t *world)
{
    enum { MESSAGES = 200, SLABS = 3 };
    static uint8_t data[1000];
    const struct timespec look = {0, 10000000};

    world->config.ring_lines = 510;
    open_with(world, PATIENCE_S, dn_world_hear);
    if (0 == world->rank) {
        dn_world_sleep(world, 1, 0, 1);
        dn_ofi_t *ofi = ofi_device(world);
        uint32_t came = 0, slabs = 0;
        while (came < MESSAGES) {
            nanosleep(&look, NULL);
            dn_ofi_lock(ofi);
            came = NULL == ofi->peers ? 0 : ofi->peers->rx.number;
            dn_ofi_unlock(ofi);
        }
        for (const dn_ofi_slab_t *slab = ofi->pool[DN_OFI_LONG].slab; NULL != slab; slab = slab->next) {
            slabs++;
        }
        dn_check(slabs <= SLABS);
        dn_world_hear_until(world, MESSAGES);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_connect_to(world, 0);
        for (unsigned tag = 0; tag < MESSAGES; tag++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, tag, data, sizeof(data));
        }
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/* Words that are lost */

/** No credit is given but what is asked for: what the device gives by itself is taken for said, and lost. */
static void hear_and_lose_credit(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_ofi_t *ofi = ofi_device(arg);
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) src;

    dn_world_hear(src, tag, data, len, NULL);
    dn_ofi_lock(ofi);
    peer->rx.told = peer->rx.taken;
    dn_ofi_unlock(ofi);
}

static void send_and_lose_credit(dn_world_t *world, uint32_t timeout_s, uint64_t messages)
{
    open_with(world, timeout_s, hear_and_lose_credit);
    if (0 == world->rank) {
        dn_world_hear_until(world, messages);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_connect_to(world, 0);
        for (unsigned tag = 0; tag < messages; tag++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, tag, NULL, 0);
        }
        dn_world_await(world, 0, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static void lost_credit_is_given_again(dn_world_t *world)
{
    send_and_lose_credit(world, 60, 2400);
}

/** Without a time limit there is no watcher; and the sender only waits, for what it could hand over at once. */
static void lost_credit_is_given_again_without_a_watcher(dn_world_t *world)
{
    send_and_lose_credit(world, 0, 1800);
}

/** A fence asks what has come. Its question, or the answer, goes with a connection. */
static void a_question_is_asked_again(dn_world_t *world)
{
    open_with(world, 60, dn_world_hear);
    if (1 == world->rank) {
        dn_world_connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_fence(world, world->peer[0]);
        dn_ofi_t *ofi = ofi_device(world);
        dn_ofi_stream_t *stream = ((dn_ofi_peer_t *) world->peer[0])->tx;
        dn_ofi_lock(ofi);
        stream->asks.at = stream->asks.since = dn_clock_ns();
        dn_ofi_unlock(ofi);
        dn_world_aotf(world, world->peer[0], 0, 1, 8);
        dn_world_fence(world, world->peer[0]);
        dn_check_equal(stream->asks.at, 0);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/* Those who do not answer */

/** A process as dead as one whose host was cut off. */
static void fall_silent(void)
{
    kill(getpid(), SIGSTOP);
}

/** Until rank 1 has fallen silent, with its threads. Progresses, if that is wanted. */
static void await_silence(dn_world_t *world, int progresses)
{
    while ('T' != dn_test_state(world->board->seat[1].os_pid, NULL)) {
        if (progresses) {
            dn_world_progress(world);
        } else {
            sched_yield();
        }
    }
}

/** Rank 0 gives up rank 1, which wakes up, waits for rank 0 as long as it takes, and is told. */
static void give_up(dn_world_t *world, int to, int from)
{
    dn_test_log.expected = 1;
    open_with(world, 0 == world->rank ? PATIENCE_S : 3600, dn_world_hear);
    if (0 == world->rank ? to : from) {
        dn_world_connect_to(world, 1 - world->rank);
        dn_world_send(world, world->peer[1 - world->rank], DN_WORLD_CHAN, 0, NULL, 0);
    }
    dn_world_hear_until(world, (uint64_t) (0 == world->rank ? from : to));
    dn_world_barrier(world);
    if (1 == world->rank) {
        fall_silent();
    } else {
        await_silence(world, 1);
    }
    while (0 == dn_world_lost(world)) {
        dn_world_progress(world);
    }
    if (0 == world->rank) {
        kill((pid_t) world->board->seat[1].os_pid, SIGCONT);
        dn_world_await(world, 1, 1, 1);
    }
    dn_world_post(world, 1, 1);
    dn_close(world->port);
    dn_test_log.expected = 0;
}

static void who_is_given_up_is_told(dn_world_t *world)
{
    give_up(world, 1, 1);
}

static void who_is_given_up_is_told_though_it_only_sent(dn_world_t *world)
{
    give_up(world, 0, 1);
}

static void who_is_given_up_is_told_though_it_only_received(dn_world_t *world)
{
    give_up(world, 1, 0);
}

/** Nobody is there to be given up any more, but what was sent to it does not stay for ever. */
static void a_stream_that_was_left_ends_though_nobody_answers(dn_world_t *world)
{
    open_with(world, PATIENCE_S, dn_world_hear);
    if (1 == world->rank) {
        dn_world_hear_until(world, 1);
        fall_silent();
        dn_test_log.expected = 1;
        dn_world_await(world, 0, 0, 1);
    } else {
        dn_world_connect_to(world, 1);
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 0, NULL, 0);
        await_silence(world, 1);
        dn_disconnect(world->peer[1]);
        world->peer[1] = NULL;
        dn_check_equal(dn_load_seq_cst(&ofi_device(world)->draining), 1);
        while (0 != dn_load_seq_cst(&ofi_device(world)->draining)) {
            dn_world_progress(world);
        }
        kill((pid_t) world->board->seat[1].os_pid, SIGCONT);
        dn_world_post(world, 0, 1);
    }
    dn_close(world->port);
    dn_test_log.expected = 0;
}

/** @return the number of a process that was there, and is no more. */
static uint32_t one_that_ended(void)
{
    const pid_t pid = fork();

    if (0 == pid) {
        _Exit(0);
    }
    dn_check_equal(waitpid(pid, NULL, 0), pid);
    return (uint32_t) pid;
}

/** Two who end before their greeting is read have the slots: they are found out when a third asks for one. */
static void slots_of_those_who_ended_early_come_back(dn_world_t *world)
{
    world->config.max_peers = 2;
    open_with(world, 60, dn_world_hear);
    if (0 == world->rank) {
        for (uint64_t rank = 1; rank < 4; rank++) {
            dn_world_post(world, 0, rank);
            dn_world_hear_until(world, rank);
        }
        dn_world_post(world, 0, 4);
    } else {
        if (3 != world->rank) {
            ofi_device(world)->where.os_pid = one_that_ended();
        }
        dn_world_await(world, 0, 0, (uint64_t) world->rank);
        dn_world_connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, (unsigned) world->rank - 1, NULL, 0);
        dn_world_await(world, 0, 0, 4);
    }
    dn_close(world->port);
}

/* Long runs */

/** So many that the numbers pass the end of a range that begins to be counted shortly before it. */
enum { PASSED = 100 };

/** Fences, flushes and what waits behind them end wherever the numbers are: no AOTF was sent since the stream began. */
static void count_from(dn_world_t *world, uint32_t first)
{
    static uint8_t data[64];
    dn_segment_t *segment;
    void *word = NULL;

    world->config.first = first;
    open_with(world, 60, dn_world_hear);
    dn_check_equal(dn_segment_alloc(world->port, sizeof(data), &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    dn_check_equal(dn_llcm_alloc(world->port, 64, &world->me->off[0], &word), DN_OK);
    dn_world_connect(world);
    if (1 == world->rank) {
        const dn_board_seat_t *other = &world->board->seat[0];
        for (unsigned tag = 0; tag < PASSED; tag++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, tag, NULL, 0);
            dn_world_fence(world, world->peer[0]);
            const dn_xfer_t xfer = {.local = data, .key = &other->key[0], .len = sizeof(data)};
            dn_check_equal(dn_world_push(world, world->peer[0], &xfer), DN_OK);
            dn_world_flush(world, world->peer[0]);
        }
        dn_world_aotf(world, world->peer[0], other->off[0], 5, 8);
        dn_world_fence(world, world->peer[0]);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_hear_until(world, PASSED);
        dn_world_await(world, 1, 0, 1);
        dn_check_equal(dn_load_acquire((const uint64_t *) word), 5);
    }
    dn_world_barrier(world);
    dn_segment_free(segment);
    dn_world_stop(world);
}

/* Looks at the network */

static struct fi_ops_cq counted; /**< the provider's, but for */
static ssize_t (*read_of_provider)(struct fid_cq *cq, void *entries, size_t count);
static unsigned looks;

static ssize_t look(struct fid_cq *cq, void *entries, size_t count)
{
    looks++;
    return read_of_provider(cq, entries, count);
}

/** @return how many of some calls of progress look at the network. */
static unsigned looks_of(dn_world_t *world, unsigned calls)
{
    looks = 0;
    while (0 != calls--) {
        dn_progress(world->port);
    }
    return looks;
}

/** Nothing is left out while an answer may come, or the provider may have to answer; and behind that most is. */
static void looks_follow_each_other_behind_a_message(dn_world_t *world)
{
    enum { FEW = 32, CALLS = 200 };

    open_with(world, 60, dn_world_hear);
    dn_world_connect(world);
    if (0 == world->rank) {
        dn_ofi_t *ofi = ofi_device(world);
        counted = *ofi->cq->ops;
        read_of_provider = counted.read;
        counted.read = look;
        ofi->cq->ops = &counted;
        while (CALLS / 2 < looks_of(world, CALLS)) {
        }
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 0, NULL, 0);
        (void) looks_of(world, FEW);
        dn_check_equal(looks_of(world, CALLS), CALLS);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_hear_until(world, 1);
        dn_world_sleep(world, 0, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static void fences_end_where_numbers_pass_2_to_the_31(dn_world_t *world)
{
    count_from(world, (UINT32_C(1) << 31) - PASSED / 2);
}

static void fences_end_where_numbers_pass_2_to_the_32(dn_world_t *world)
{
    count_from(world, UINT32_MAX - PASSED / 2);
}

static const dn_world_test_t tests[] = {
    {"who_comes_back_is_heard_after_all_that_it_said", 2, who_comes_back_is_heard_after_all_that_it_said},
    {"who_waits_behind_its_last_stream_is_heard", 2, who_waits_behind_its_last_stream_is_heard},
    {"a_fence_holds_nothing_up_after_its_stream", 2, a_fence_holds_nothing_up_after_its_stream},
    {"a_leave_of_no_stream_ends_none", 2, a_leave_of_no_stream_ends_none},
    {"a_left_stream_that_breaks_is_freed", 2, a_left_stream_that_breaks_is_freed},
    {"a_greeting_is_taken_while_its_receiver_computes", 2, a_greeting_is_taken_while_its_receiver_computes},
    {"who_greeted_while_its_receiver_computed_is_the_one_connected_to", 2,
     who_greeted_while_its_receiver_computed_is_the_one_connected_to},
    {"words_are_stored_while_their_receiver_computes", 2, words_are_stored_while_their_receiver_computes},
    {"words_of_a_group_are_stored_when_it_is_let_in", 2, words_of_a_group_are_stored_when_it_is_let_in},
    {"who_closed_while_its_receiver_computed_is_heard_and_lost", 2,
     who_closed_while_its_receiver_computed_is_heard_and_lost},
    {"messages_of_1_kib_wait_in_short_buffers", 2, messages_of_1_kib_wait_in_short_buffers},
    {"lost_credit_is_given_again", 2, lost_credit_is_given_again},
    {"lost_credit_is_given_again_without_a_watcher", 2, lost_credit_is_given_again_without_a_watcher},
    {"a_question_is_asked_again", 2, a_question_is_asked_again},
    {"who_is_given_up_is_told", 2, who_is_given_up_is_told},
    {"who_is_given_up_is_told_though_it_only_sent", 2, who_is_given_up_is_told_though_it_only_sent},
    {"who_is_given_up_is_told_though_it_only_received", 2, who_is_given_up_is_told_though_it_only_received},
    {"a_stream_that_was_left_ends_though_nobody_answers", 2,
     a_stream_that_was_left_ends_though_nobody_answers},
    {"slots_of_those_who_ended_early_come_back", 4, slots_of_those_who_ended_early_come_back},
    {"looks_follow_each_other_behind_a_message", 2, looks_follow_each_other_behind_a_message},
    {"fences_end_where_numbers_pass_2_to_the_31", 2, fences_end_where_numbers_pass_2_to_the_31},
    {"fences_end_where_numbers_pass_2_to_the_32", 2, fences_end_where_numbers_pass_2_to_the_32},
};

int main(int argc, char **argv)
{
    return ofi_run_tests(tests, sizeof(tests) / sizeof(tests[0]), "ofi_streams", argv[1]);
}
