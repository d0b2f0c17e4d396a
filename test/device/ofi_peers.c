/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What a list of devices, and peers that fall silent, mean over ofi:
 *
 *   ofi_peers [TEST]
 */
#include "dn_config.h"

#include "dn_world.h"

#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "dn_atomic.h"

#define NETWORK "ofi:tcp;ofi_rxm@lo"

/** Time limit of processes that wait for a loss while they are held up. Under the thread sanitizer on a loaded machine, ofi_rxm alone takes
 * seconds to connect four of them. */
#ifdef __SANITIZE_THREAD__
enum { LIMIT_S = 8 };
#else
enum { LIMIT_S = DN_WORLD_SILENT_S };
#endif

enum { BYTES = 300000, LONG_BYTES = 64 << 20, TURN_BYTES = 4 << 20, MESSAGE_BYTES = 64 << 10 };

/** sockets' own RDM endpoints, and those that a layer makes above them. */
static const dn_variant_t networks[] = {
    {.file = "ofi_peers over tcp", .device = "ofi:tcp@lo"},
    {.file = "ofi_peers over tcp;ofi_rxm", .device = NETWORK},
};

/* A list */

static uint64_t moved(const dn_world_t *world, int by_messages)
{
    dn_counters_t counters;

    dn_counters(world->port, &counters);
    return by_messages ? counters.ring_bytes : counters.mapped_bytes + counters.cma_bytes;
}

/** PUSH into both segments of a peer and PULL it back, each in its turn of three processes. */
static void there_and_back(dn_world_t *world, int rank)
{
    static uint8_t out[BYTES], back[BYTES];

    for (unsigned k = 0; k < 2; k++) {
        dn_xfer_t xfer = {.local = out, .key = &world->board->seat[rank].key[k], .len = BYTES};
        dn_test_fill(out, BYTES, 10 * (uint64_t) world->rank + k);
        dn_check_equal(dn_world_push(world, world->peer[rank], &xfer), DN_OK);
        xfer.local = back;
        dn_check_equal(dn_world_pull(world, world->peer[rank], &xfer), DN_OK);
        dn_check_bytes(back, BYTES, 10 * (uint64_t) world->rank + k);
    }
}

/**
 * Rank 0 has both devices, 1 only the network, 2 only shared memory. 0 reaches each by what both have, with
 * the same key for either, and none of it goes through messages.
 */
static void each_peer_finds_its_words_in_a_key(dn_world_t *world)
{
    static const dn_variant_t variant[] = {
        {.file = "both", .device = "shm," NETWORK},
        {.file = "network", .device = NETWORK},
        {.file = "memory", .device = "shm"},
    };
    static const char *const device[] = {NULL, "ofi", "shm"};
    static uint8_t memory[BYTES];
    dn_segment_t *segment[2];
    dn_peer_attr_t attr;
    dn_peer_t *none = NULL;

    world->variant = &variant[world->rank];
    dn_world_listen(world, dn_world_hear);
    dn_check_equal(dn_segment_alloc(world->port, BYTES, &segment[0]), DN_OK);
    dn_check_equal(dn_segment_register(world->port, memory, BYTES, &segment[1]), DN_OK);
    dn_segment_key(segment[0], &world->me->key[0]);
    dn_segment_key(segment[1], &world->me->key[1]);
    dn_world_barrier(world);
    for (int rank = 0; rank < 3; rank++) {
        if (0 == rank * world->rank && rank != world->rank) {
            dn_world_connect_to(world, rank);
            dn_peer_attr(world->peer[rank], &attr);
            dn_check(0 == strcmp(attr.device, device[rank + world->rank]));
        }
    }
    if (0 != world->rank) {
        const dn_board_seat_t *seat = &world->board->seat[3 - world->rank];
        dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &none), DN_ERR_UNSUPPORTED);
    }
    dn_world_barrier(world);
    for (int turn = 0; turn < 3; turn++) {
        for (int rank = 0; turn == world->rank && rank < 3; rank++) {
            if (NULL != world->peer[rank]) {
                there_and_back(world, rank);
            }
        }
        dn_world_barrier(world);
    }
    dn_check_equal(moved(world, 1), 0);
    dn_check(1 == world->rank || 0 != moved(world, 0));
    dn_segment_free(segment[0]);
    dn_segment_free(segment[1]);
    dn_world_stop(world);
}

/* Bursts */

/** Short messages that follow each other closely are sent together, later; but not only when their sender progresses. */
static void a_burst_arrives_while_its_sender_sleeps(dn_world_t *world)
{
    enum { BURST = 50 };

    /* So that nobody looks after peers meanwhile. */
    world->config.timeout_s = 3600;
    dn_world_listen(world, dn_world_hear);
    dn_world_connect(world);
    dn_world_send(world, world->peer[1 - world->rank], DN_WORLD_CHAN, 0, NULL, 0);
    dn_world_hear_until(world, 1);
    dn_world_barrier(world);
    if (0 == world->rank) {
        for (unsigned tag = 1; tag <= BURST; tag++) {
            dn_check_equal(dn_botf(world->peer[1], DN_WORLD_CHAN, tag, NULL, 0, NULL, 0), DN_OK);
        }
        dn_world_sleep(world, 1, 0, 1);
    } else {
        dn_world_hear_until(world, 1 + BURST);
        dn_world_post(world, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/* Keys */

/** PULL what lies in the good segment of rank 1. */
static void pull_good(dn_world_t *world, uint8_t *to)
{
    const dn_xfer_t xfer = {.local = to, .key = &world->board->seat[1].key[1], .len = BYTES};
    const uint32_t moves = dn_peer_moves(world->peer[1]);

    memset(to, 0, BYTES);
    dn_check_equal(dn_world_pull(world, world->peer[1], &xfer), DN_OK);
    dn_check_bytes(to, BYTES, 1);
    dn_check(moves != dn_peer_moves(world->peer[1]));
}

/** Use a stale key while a PULL of another segment is in flight. */
static void use_stale_key(dn_world_t *world, int write)
{
    static uint8_t mine[BYTES], other[BYTES];
    dn_world_comp_t comp = dn_world_comp();
    dn_peer_t *peer = world->peer[1];
    const dn_xfer_t good = {
        .local = mine, .key = &world->board->seat[1].key[1], .len = BYTES, .comp = &comp.comp};
    const dn_xfer_t stale = {.local = other, .key = &world->board->seat[1].key[0], .len = BYTES};
    dn_status_t status;

    memset(mine, 0, BYTES);
    while (DN_ERR_AGAIN == (status = dn_pull(peer, &good))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_INPROGRESS);
    dn_test_log.expected = 1;
    dn_check_equal(write ? dn_world_push(world, peer, &stale) : dn_world_pull(world, peer, &stale),
                   DN_ERR_RANGE);
    dn_test_log.expected = 0;
    while (0 == comp.signals) {
        dn_world_progress(world);
    }
    dn_check_equal(comp.status, DN_OK);
    dn_check_bytes(mine, BYTES, 1);
}

/**
 * The provider ends a connection over a key that the target does not know. That costs neither the peer, nor other
 * transfers, nor messages; and RMA comes back, which is seen from nothing going by messages.
 */
static void a_stale_key_spoils_nothing(dn_world_t *world)
{
    enum { ROUNDS = 4 };
    static uint8_t memory[2][BYTES], mine[BYTES];
    dn_segment_t *segment[2];

    dn_world_listen(world, dn_world_hear);
    for (int k = 0; k < 2; k++) {
        dn_check_equal(dn_segment_register(world->port, memory[k], BYTES, &segment[k]), DN_OK);
        dn_segment_key(segment[k], &world->me->key[k]);
    }
    dn_test_fill(memory[1], BYTES, 1);
    dn_segment_free(segment[0]);
    dn_world_barrier(world);
    dn_world_connect(world);
    if (0 == world->rank) {
        for (unsigned round = 0; round < ROUNDS; round++) {
            use_stale_key(world, round % 2);
            dn_world_send(world, world->peer[1], DN_WORLD_CHAN, round, NULL, 0);
            uint64_t before;
            do {
                before = moved(world, 1);
                pull_good(world, mine);
            } while (before != moved(world, 1));
        }
    } else {
        dn_world_hear_until(world, ROUNDS);
    }
    dn_world_barrier(world);
    dn_check_equal(dn_world_lost(world), 0);
    dn_segment_free(segment[1]);
    dn_world_stop(world);
}

/* Silence */

/** Nobody progresses in rank 1 for several time limits, yet rank 0 keeps it. */
static void a_peer_that_computes_is_kept(dn_world_t *world)
{
    const struct timespec work = {2 * DN_WORLD_SILENT_S + 1, 0};

    world->config.timeout_s = DN_WORLD_SILENT_S;
    dn_world_listen(world, dn_world_hear);
    dn_world_connect(world);
    if (1 == world->rank) {
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_hear_until(world, 1);
        nanosleep(&work, NULL);
        dn_world_post(world, 0, 1);
        dn_world_hear_until(world, 2);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 1, NULL, 0);
    } else {
        dn_world_hear_until(world, 1);
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_await(world, 1, 0, 1);
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 1, NULL, 0);
        dn_world_hear_until(world, 2);
    }
    dn_check_equal(dn_world_lost(world), 0);
    dn_world_stop(world);
}

/** A process as dead as one whose host was cut off: it does nothing and its kernel says nothing of it. */
static void fall_silent(dn_world_t *world)
{
    dn_world_post(world, 0, 1);
    kill(getpid(), SIGSTOP);
}

/** End a process that fell silent. */
static void end_silent(dn_world_t *world, int rank)
{
    dn_board_seat_t *seat = &world->board->seat[rank];

    dn_store_release_u32(&seat->dies, 1);
    kill((pid_t) seat->os_pid, SIGKILL);
}

/** The descriptor of this process' next connection behind one, -1: that was the last. */
static int next_connection(int fd)
{
    enum { DESCRIPTORS = 256 };

    while (++fd < DESCRIPTORS) {
        struct sockaddr_in other;
        socklen_t len = sizeof(other);
        if (0 == getpeername(fd, (struct sockaddr *) &other, &len) && AF_INET == other.sin_family) {
            return fd;
        }
    }
    return -1;
}

/** From now on connections hold little: what is sent stops in the midst of a message as soon as its receiver does. */
static void narrow_connections(void)
{
    const int few = 32768;

    for (int fd = next_connection(-1); 0 <= fd; fd = next_connection(fd)) {
        dn_check_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)), 0);
        dn_check_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few)), 0);
    }
}

static void wait_for_a_loss(dn_world_t *world)
{
    dn_test_log.expected = 1;
    while (0 == dn_world_lost(world)) {
        dn_world_progress(world);
    }
    dn_test_log.expected = 0;
}

/** Rank 0 has never sent it anything, nor connected to it. */
static void a_silent_sender_is_lost_to_who_only_receives(dn_world_t *world)
{
    world->config.timeout_s = DN_WORLD_SILENT_S;
    dn_world_listen(world, dn_world_hear);
    if (1 == world->rank) {
        dn_world_connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_fence(world, world->peer[0]);
        dn_world_await(world, 0, 0, 1);
        fall_silent(world);
        return;
    }
    dn_world_hear_until(world, 1);
    dn_world_post(world, 0, 1);
    wait_for_a_loss(world);
    end_silent(world, 1);
    dn_close(world->port);
}

/** What it asked for comes neither before nor after it was told that nothing will. */
static void a_pull_from_a_silent_peer_ends_and_writes_no_more(dn_world_t *world)
{
    static uint8_t theirs[LONG_BYTES], mine[LONG_BYTES];
    dn_world_comp_t comp = dn_world_comp();
    dn_segment_t *segment;

    world->config.timeout_s = DN_WORLD_SILENT_S;
    dn_world_listen(world, dn_world_hear);
    dn_check_equal(dn_segment_register(world->port, theirs, LONG_BYTES, &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    memset(theirs, 1, LONG_BYTES);
    dn_world_barrier(world);
    dn_world_connect(world);
    if (1 == world->rank) {
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_hear_until(world, 1);
        fall_silent(world);
        /* It wakes up without friends. */
        dn_test_log.expected = 1;
        for (;;) {
            dn_world_progress(world);
        }
    }
    dn_world_hear_until(world, 1);
    /* Connects what RMA goes by. */
    dn_xfer_t xfer = {.local = mine, .key = &world->board->seat[1].key[0], .len = 1};
    dn_check_equal(dn_world_pull(world, world->peer[1], &xfer), DN_OK);
    dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 0, NULL, 0);
    dn_world_await(world, 1, 0, 1);
    const pid_t other = (pid_t) world->board->seat[1].os_pid;
    const struct timespec while_it_stops = {0, 100000000};
    nanosleep(&while_it_stops, NULL);
    xfer.len = LONG_BYTES;
    xfer.comp = &comp.comp;
    dn_check_equal(dn_pull(world->peer[1], &xfer), DN_INPROGRESS);
    wait_for_a_loss(world);
    while (0 == comp.signals) {
        dn_world_progress(world);
    }
    dn_check_equal(comp.status, DN_ERR_UNREACH);
    memset(mine, 2, LONG_BYTES);
    kill(other, SIGCONT);
    dn_test_log.expected = 1;
    for (int i = 0; i < 30; i++) {
        nanosleep(&while_it_stops, NULL);
        dn_progress(world->port);
    }
    for (size_t i = 0; i < LONG_BYTES; i++) {
        dn_check(2 == mine[i]);
    }
    dn_check_equal(comp.signals, 1);
    end_silent(world, 1);
    dn_close(world->port);
    dn_test_log.expected = 0;
}

/** Until rank 0 has posted its word 1, let another process run in short moments only. */
static void hold_up(const dn_world_t *world, int rank)
{
    const dn_board_seat_t *first = &world->board->seat[0];
    const pid_t other = (pid_t) world->board->seat[rank].os_pid;
    const struct timespec held = {0, 100000000}, runs = {0, 50000000};

    while (0 == dn_load_acquire(&first->word[1])) {
        kill(other, SIGSTOP);
        nanosleep(&held, NULL);
        kill(other, SIGCONT);
        nanosleep(&runs, NULL);
    }
}

/** Open with a segment of LONG_BYTES, which holds what the rank is filled with, and its key on the board. */
static void offer(dn_world_t *world)
{
    static uint8_t theirs[LONG_BYTES];
    dn_segment_t *segment;

    dn_world_listen(world, dn_world_hear);
    dn_check_equal(dn_segment_register(world->port, theirs, LONG_BYTES, &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    dn_test_fill(theirs, LONG_BYTES, (uint64_t) world->rank);
    dn_world_barrier(world);
}

static void start_pull(dn_world_t *world, int rank, const dn_xfer_t *xfer)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_pull(world->peer[rank], xfer))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_INPROGRESS);
}

/** Look at a byte that a PULL is about to write, by whichever thread reads the network. Meant to race: nothing follows from the value but
 * that the PULL has begun. */
static uint8_t __attribute__((noinline, no_sanitize_thread)) peek(const uint8_t *byte)
{
    return *(const volatile uint8_t *) byte;
}

/** Begin a PULL of LONG_BYTES over a narrow connection, and stop the process that answers in the midst of it. */
static void pull_and_stop(dn_world_t *world, int rank, dn_world_comp_t *comp)
{
    static uint8_t mine[LONG_BYTES];
    const dn_xfer_t xfer = {
        .local = mine, .key = &world->board->seat[rank].key[0], .len = LONG_BYTES, .comp = &comp->comp};

    *comp = dn_world_comp();
    mine[1] = (uint8_t) ~dn_test_byte((uint64_t) rank, 1);
    const uint8_t before = mine[1];
    start_pull(world, rank, &xfer);
    while (before == peek(&mine[1])) {
        dn_world_progress(world);
    }
    kill((pid_t) world->board->seat[rank].os_pid, SIGSTOP);
    dn_check_equal(comp->signals, 0);
}

/**
 * A PULL from a peer that has fallen silent in the midst of it is taken back in the midst of others, from a peer that
 * lives: they bring all the same what they are to.
 */
static void pulls_from_others_outlive_a_silent_peer(dn_world_t *world)
{
    static uint8_t mine[TURN_BYTES];
    dn_world_comp_t lost;

    world->config.timeout_s = LIMIT_S;
    offer(world);
    if (0 != world->rank) {
        dn_world_connect_to(world, 0);
        dn_world_await(world, 0, 0, 1);
        narrow_connections();
        dn_world_post(world, 0, 1);
        if (3 == world->rank) {
            hold_up(world, 2);
        }
        dn_world_await(world, 0, 2, 1);
        dn_close(world->port);
        return;
    }
    for (int rank = 1; rank < 4; rank++) {
        const dn_xfer_t first = {.local = mine, .key = &world->board->seat[rank].key[0], .len = 1};
        dn_world_connect_to(world, rank);
        dn_check_equal(dn_world_pull(world, world->peer[rank], &first), DN_OK);
    }
    narrow_connections();
    dn_world_post(world, 0, 1);
    dn_world_await(world, 1, 0, 1);
    dn_world_await(world, 2, 0, 1);
    pull_and_stop(world, 1, &lost);
    dn_test_log.expected = 1;
    while (0 == lost.signals) {
        dn_world_comp_t comp = dn_world_comp();
        const dn_xfer_t xfer = {
            .local = mine, .key = &world->board->seat[2].key[0], .len = TURN_BYTES, .comp = &comp.comp};
        memset(mine, 0, TURN_BYTES);
        start_pull(world, 2, &xfer);
        while (0 == comp.signals) {
            dn_world_progress(world);
            dn_world_post(world, 1, (uint64_t) lost.signals);
        }
        dn_check_equal(comp.status, DN_OK);
        dn_check_bytes(mine, TURN_BYTES, 2);
    }
    dn_test_log.expected = 0;
    dn_check_equal(lost.status, DN_ERR_UNREACH);
    dn_check_equal(dn_world_lost(world), 1);
    end_silent(world, 1);
    dn_close(world->port);
    dn_world_post(world, 1, 1);
    dn_world_post(world, 2, 1);
}

/** A peer that was busy for longer than closing waits for it hears that its peer has closed, and nothing else. */
static void who_closes_in_the_midst_of_a_pull_leaves(dn_world_t *world)
{
    dn_world_comp_t dropped;

    world->config.timeout_s = DN_WORLD_SILENT_S;
    offer(world);
    dn_world_connect(world);
    if (1 == world->rank) {
        dn_world_await(world, 0, 0, 1);
        narrow_connections();
        dn_world_post(world, 0, 1);
        while (DN_OK == dn_peer_check(world->peer[0])) {
            dn_world_progress(world);
        }
        dn_world_post(world, 1, 1);
        dn_close(world->port);
        return;
    }
    uint8_t byte;
    const dn_xfer_t first = {.local = &byte, .key = &world->board->seat[1].key[0], .len = 1};
    dn_check_equal(dn_world_pull(world, world->peer[1], &first), DN_OK);
    narrow_connections();
    dn_world_post(world, 0, 1);
    dn_world_await(world, 1, 0, 1);
    pull_and_stop(world, 1, &dropped);
    dn_close(world->port);
    dn_check_equal(dropped.signals, 0);
    kill((pid_t) world->board->seat[1].os_pid, SIGCONT);
    /* It is not to see that this process has ended. */
    dn_world_sleep(world, 1, 1, 1);
}

/** The last message is in the midst when its sender falls silent: it is let go of, once. */
static void a_long_message_of_a_silent_peer_is_let_go_of(dn_world_t *world)
{
    static uint8_t data[MESSAGE_BYTES];
    dn_peer_attr_t attr;

    world->config.timeout_s = DN_WORLD_SILENT_S;
    dn_world_listen(world, dn_world_hear);
    dn_world_connect(world);
    dn_world_send(world, world->peer[1 - world->rank], DN_WORLD_CHAN, 0, NULL, 0);
    dn_world_hear_until(world, 1);
    dn_peer_attr(world->peer[1 - world->rank], &attr);
    narrow_connections();
    dn_world_barrier(world);
    if (1 == world->rank) {
        const size_t len = attr.botf_max < MESSAGE_BYTES ? attr.botf_max : MESSAGE_BYTES;
        for (unsigned tag = 1;; tag++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, tag % 256, data, len);
        }
    }
    dn_world_hear_until(world, 8);
    const struct timespec while_it_begins = {0, 50000000};
    nanosleep(&while_it_begins, NULL);
    kill((pid_t) world->board->seat[1].os_pid, SIGSTOP);
    wait_for_a_loss(world);
    end_silent(world, 1);
    dn_close(world->port);
}

/** Lose what the kernel has of connections of this process, as a reset on the way does: both ends still live. */
static void lose_connections(void)
{
    for (int fd = next_connection(-1); 0 <= fd; fd = next_connection(fd)) {
        const int dead = socket(AF_INET, SOCK_STREAM, 0);
        dup2(dead, fd);
        close(dead);
    }
}

/** Rank 1: lose connections before each message, until rank 0 is done. */
static void lose_messages(dn_world_t *world)
{
    const uint64_t *done = &world->board->seat[0].word[0];

    dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
    dn_world_hear_until(world, 1);
    for (uint64_t round = 1; 0 == dn_load_acquire(done); round++) {
        lose_connections();
        dn_world_post(world, 0, round);
        while (world->heard < 1 + round && 0 == dn_load_acquire(done)) {
            dn_progress(world->port);
        }
        dn_world_post(world, 1, world->heard);
    }
}

/**
 * Rank 1 lives and answers, but sooner or later a short message to it goes with a connection. Rank 0, which is not
 * told by its provider, does not take it for delivered for ever.
 */
static void a_peer_is_given_up_when_messages_are_lost(dn_world_t *world)
{
    const dn_board_seat_t *other = &world->board->seat[1];
    dn_status_t status = DN_OK;

    world->config.timeout_s = DN_WORLD_SILENT_S;
    dn_world_listen(world, dn_world_hear);
    dn_world_connect(world);
    dn_test_log.expected = 1;
    if (1 == world->rank) {
        lose_messages(world);
    } else {
        dn_world_hear_until(world, 1);
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 0, NULL, 0);
        for (uint64_t round = 1; 0 == dn_world_lost(world); round++) {
            dn_world_sleep(world, 1, 0, round);
            status = dn_botf(world->peer[1], DN_WORLD_CHAN, (unsigned) round, NULL, 0, NULL, 0);
            while (DN_OK == status && 0 == dn_world_lost(world)
                   && dn_load_acquire(&other->word[1]) < 1 + round) {
                dn_progress(world->port);
            }
        }
        dn_world_post(world, 0, 1);
    }
    dn_close(world->port);
    dn_test_log.expected = 0;
}

static const dn_world_test_t tests[] = {
    {"each_peer_finds_its_words_in_a_key", 3, each_peer_finds_its_words_in_a_key},
    {"a_burst_arrives_while_its_sender_sleeps", 2, a_burst_arrives_while_its_sender_sleeps},
    {"a_stale_key_spoils_nothing", 2, a_stale_key_spoils_nothing},
    {"a_peer_that_computes_is_kept", 2, a_peer_that_computes_is_kept},
    {"a_silent_sender_is_lost_to_who_only_receives", 2, a_silent_sender_is_lost_to_who_only_receives},
    {"a_peer_is_given_up_when_messages_are_lost", 2, a_peer_is_given_up_when_messages_are_lost},
    {"a_pull_from_a_silent_peer_ends_and_writes_no_more", 2,
     a_pull_from_a_silent_peer_ends_and_writes_no_more},
    {"a_long_message_of_a_silent_peer_is_let_go_of", 2, a_long_message_of_a_silent_peer_is_let_go_of},
    {"who_closes_in_the_midst_of_a_pull_leaves", 2, who_closes_in_the_midst_of_a_pull_leaves},
    {"pulls_from_others_outlive_a_silent_peer", 4, pulls_from_others_outlive_a_silent_peer},
};

int main(int argc, char **argv)
{
    int failed = 0;

    for (size_t n = 0; n < sizeof(networks) / sizeof(networks[0]); n++) {
        failed |= dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &networks[n], argv[1]);
    }
    return failed;
}
