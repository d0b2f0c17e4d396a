/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What the shm device does when slots, shared PULLs, files and their owners end in an order that only a
 * process which writes past the library can bring about: how long each lives, and who gets it next.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dn_port.h"
#include "shm/dn_shm_int.h"

/** What is behind a seat's address. */
static dn_shm_where_t where_of(const dn_board_seat_t *seat)
{
    dn_shm_where_t where;

    memcpy(&where, seat->address + seat->address_len - sizeof(where), sizeof(where));
    return where;
}

/** A mapping of another process' memory beside that of the library. */
static dn_shm_map_t map_of(const dn_world_t *world, int rank)
{
    const dn_shm_where_t where = where_of(&world->board->seat[rank]);
    const dn_peer_base_t id = {.pid = (uint32_t) rank, .pgid = dn_world_pgid(world)};
    dn_shm_map_t map;

    dn_check_equal(dn_shm_attach(&where, &id, &map), DN_OK);
    return map;
}

static dn_peer_t *heard_from;

/** Numbered messages in their order. */
static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_check_bytes(data, len, dn_world_here->heard);
    dn_world_hear(src, tag, data, len, arg);
    heard_from = src;
}

static void say(dn_world_t *world, dn_peer_t *peer, uint64_t number)
{
    uint8_t data[200];

    dn_test_fill(data, sizeof(data), number);
    dn_world_send(world, peer, DN_WORLD_CHAN, number & 0xff, data, sizeof(data));
}

/* Slots */

enum { OWNER, LIAR, FIRST, SECOND };

/** The liar's ring at the owner, which it alone may write. */
static dn_ring_t *own_ring(const dn_world_t *world, const dn_shm_map_t *owner)
{
    const dn_shm_where_t mine = where_of(world->me);
    uint32_t slot = 0;

    while (slot < owner->max_peers && 0 != memcmp(owner->slot[slot].nonce, mine.nonce, sizeof(mine.nonce))) {
        slot++;
    }
    dn_check(slot < owner->max_peers);
    return (dn_ring_t *) (owner->rings + slot * owner->ring_stride);
}

/** The liar takes the first slot and writes a head that no sender writes; the owner is told and cuts it off. */
static dn_ring_t *lie(dn_world_t *world, uint32_t max_peers)
{
    dn_ring_t *ring = NULL;

    world->config.max_peers = max_peers;
    world->config.ring_lines = 64;
    dn_world_listen(world, hear);
    if (LIAR == world->rank) {
        dn_world_connect_to(world, OWNER);
        const dn_shm_map_t owner = map_of(world, OWNER);
        ring = own_ring(world, &owner);
    } else if (OWNER == world->rank) {
        dn_world_connect_to(world, LIAR);
        dn_test_log_expect();
    }
    dn_world_barrier(world);
    if (LIAR == world->rank) {
        dn_store_release(&ring->line[0].head, 1 | UINT64_C(0x7fff) << 32);
    } else if (OWNER == world->rank) {
        while (DN_ERR_UNREACH != dn_fence(world->peer[LIAR])) {
            dn_world_progress(world);
        }
        dn_check(dn_test_log_said(1, "cut off"));
    }
    dn_world_barrier(world);
    return ring;
}

/** The owner hears more, does all that follows from a sender's arrival, and says how many these were. */
static void hear_next(dn_world_t *world, uint64_t count)
{
    dn_world_hear_until(world, count);
    for (int k = 0; k < 20; k++) {
        dn_progress(world->port);
    }
    dn_world_post(world, 0, count);
}

/**
 * Cut off and disconnected from, the liar goes on writing: nobody else is given that ring, neither the first
 * sender nor one that comes after the owner has looked at its slots again.
 */
static void a_sender_cut_off_keeps_its_slot_while_it_lives(dn_world_t *world)
{
    const uint64_t count = 1500;
    const uint64_t before = LIAR < world->rank ? ((uint64_t) world->rank - FIRST) * count : 0;
    uint64_t random = 9;
    dn_ring_t *ring = lie(world, 8);

    if (OWNER == world->rank) {
        dn_disconnect(world->peer[LIAR]);
        world->peer[LIAR] = NULL;
    }
    dn_world_barrier(world);
    switch (world->rank) {
    case OWNER:
        hear_next(world, count);
        hear_next(world, 2 * count);
        break;
    case LIAR:
        while (2 * count > dn_load_acquire(&world->board->seat[OWNER].word[0])) {
            const uint64_t at = dn_test_below(&random, 64);
            dn_store_release(&ring->line[at].head, dn_test_random(&random));
            dn_store_release_u32(&ring->credit, (uint32_t) dn_test_random(&random));
        }
        break;
    default:
        dn_world_await(world, OWNER, 0, before);
        dn_world_connect_to(world, OWNER);
        for (uint64_t i = 0; i < count; i++) {
            say(world, world->peer[OWNER], before + i);
        }
        break;
    }
    dn_world_stop(world);
}

/** The liar ends; the others see it before they go on. */
static void end_liar(dn_world_t *world)
{
    if (LIAR == world->rank) {
        dn_world_die(world);
    }
    while (0 == kill((pid_t) world->board->seat[LIAR].os_pid, 0)) {
        sched_yield();
    }
}

/** The other senders come one after the other. */
static void meet_two(dn_world_t *world)
{
    if (OWNER == world->rank) {
        hear_next(world, 1);
        hear_next(world, 2);
    } else {
        const uint64_t number = (uint64_t) world->rank - FIRST;
        dn_world_await(world, OWNER, 0, number);
        dn_world_connect_to(world, OWNER);
        say(world, world->peer[OWNER], number);
        dn_world_fence(world, world->peer[OWNER]);
    }
}

/** Cut off but not disconnected from: its slot comes back when it has ended and others need one. */
static void the_slot_of_a_sender_cut_off_comes_back_when_it_ends(dn_world_t *world)
{
    /* Two slots, three senders. */
    lie(world, 2);
    end_liar(world);
    meet_two(world);
    if (OWNER == world->rank) {
        dn_disconnect(world->peer[LIAR]);
    }
    dn_world_await(world, OWNER, 0, 2);
    dn_close(world->port);
}

/** The owner cuts the liar off and disconnects from it while it lives. */
static void lie_and_leave(dn_world_t *world)
{
    lie(world, 2);
    if (OWNER == world->rank) {
        dn_disconnect(world->peer[LIAR]);
        world->peer[LIAR] = NULL;
    }
    dn_world_barrier(world);
}

/** Disconnected from as well, so that nothing but the slot is left of it: the same. */
static void the_slot_of_a_sender_left_alone_comes_back_when_it_ends(dn_world_t *world)
{
    lie_and_leave(world);
    end_liar(world);
    meet_two(world);
    dn_world_await(world, OWNER, 0, 2);
    dn_close(world->port);
}

/** No slot was free when it ended, so that nobody arrives and has the owner look: who was refused comes again. */
static void a_slot_comes_back_to_a_sender_that_was_refused(dn_world_t *world)
{
    const dn_board_seat_t *owner = &world->board->seat[OWNER];

    lie_and_leave(world);
    if (FIRST == world->rank) {
        dn_world_connect_to(world, OWNER);
        say(world, world->peer[OWNER], 0);
    } else if (OWNER == world->rank) {
        hear_next(world, 1);
    }
    dn_world_barrier(world);
    end_liar(world);
    if (SECOND == world->rank) {
        dn_status_t status;
        dn_test_log.expected = 1;
        do {
            status = dn_connect(world->port, owner->address, owner->address_len, &world->peer[OWNER]);
            sched_yield();
        } while (DN_ERR_NOMEM == status);
        dn_test_log.expected = 0;
        dn_check_equal(status, DN_OK);
        say(world, world->peer[OWNER], 1);
    } else if (OWNER == world->rank) {
        hear_next(world, 2);
    }
    dn_world_await(world, OWNER, 0, 2);
    dn_close(world->port);
}

/** A port whose header is not one that the owner reads comes to the owner. */
static void come_spoilt(dn_world_t *world, uint64_t round)
{
    dn_world_open(world);
    dn_shm_map_t mine = map_of(world, LIAR);
    if (0 == round % 2) {
        mine.header->version++;
    } else {
        mine.header->magic++;
    }
    dn_world_connect_to(world, OWNER);
    dn_world_sleep(world, OWNER, 1, round + 1);
    dn_shm_detach(&mine);
}

/** The owner refuses the sender of this round with one sentence, and progresses after that has left. */
static void refuse(dn_world_t *world, uint64_t round)
{
    dn_test_log_expect();
    while (0 == dn_test_log.count) {
        dn_world_progress(world);
    }
    dn_check(dn_test_log_said(1, 0 == round % 2 ? "version" : "not that of a dimmnet port"));
    dn_world_post(world, 1, round + 1);
    dn_world_sleep(world, LIAR, 0, round + 1);
    for (int k = 0; k < 20; k++) {
        dn_progress(world->port);
    }
    dn_world_post(world, 2, round + 1);
}

/** More of them than there are slots, one after the other; the last one ends without closing. */
static void slots_of_refused_senders_come_back(dn_world_t *world)
{
    enum { ROUNDS = 6 };

    world->config.max_peers = 2;
    world->config.ring_lines = 64;
    if (OWNER == world->rank) {
        dn_world_open(world);
    }
    dn_world_barrier(world);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (OWNER == world->rank) {
            refuse(world, round);
        } else {
            come_spoilt(world, round);
            dn_close(world->port);
            dn_world_post(world, 0, round + 1);
            dn_world_sleep(world, OWNER, 2, round + 1);
        }
    }
    if (LIAR == world->rank) {
        come_spoilt(world, ROUNDS);
        dn_world_die(world);
    }
    dn_test_log_expect();
    while (0 == dn_test_log.count) {
        dn_world_progress(world);
    }
    dn_shm_slot_t *slot = ((dn_shm_t *) world->port->ifaces)->map.slot;
    dn_check(DN_SHM_READY == slot[0].state || DN_SHM_READY == slot[1].state);
    dn_check(dn_test_log_said(1, "version"));
    dn_world_post(world, 1, ROUNDS + 1);
    while (0 == kill((pid_t) world->board->seat[LIAR].os_pid, 0)) {
        sched_yield();
    }
    dn_shm_look_soon((dn_shm_t *) world->port->ifaces);
    dn_progress(world->port);
    dn_check(DN_SHM_FREE == slot[0].state && DN_SHM_FREE == slot[1].state);
    dn_close(world->port);
}

/** They wait together, and the slot of the second life lies before that of the first, for which another sender seems to have it. */
static void lives_of_a_sender_that_wait_together_are_heard_in_order(dn_world_t *world)
{
    enum { LIVES = 3, EACH = 4 };
    uint32_t slot[LIVES];
    uint64_t number = 0;

    world->config.first = UINT32_MAX - 1;
    dn_world_listen(world, hear);
    if (OWNER == world->rank) {
        dn_world_sleep(world, LIAR, 0, 1);
        dn_world_hear_until(world, (uint64_t) LIVES * EACH);
        dn_close(world->port);
        return;
    }
    const dn_shm_map_t owner = map_of(world, OWNER);
    dn_store_release_u32(&owner.slot[0].state, DN_SHM_READY);
    for (int i = 0; i < LIVES; i++) {
        dn_world_connect_to(world, OWNER);
        slot[i] = ((const dn_shm_peer_t *) world->peer[OWNER])->slot;
        for (int k = 0; k < EACH; k++) {
            say(world, world->peer[OWNER], number++);
        }
        dn_disconnect(world->peer[OWNER]);
        if (0 == i) {
            dn_store_release_u32(&owner.slot[0].state, DN_SHM_FREE);
        }
    }
    dn_check_equal(slot[0], 1);
    dn_check_equal(slot[1], 0);
    dn_world_post(world, 0, 1);
    dn_close(world->port);
}

/* Windows */

/** Inside of the device from before the peer was lost, where a window that is never kicked holds it up. */
static void *send_behind_window(void *arg)
{
    dn_world_t *world = arg;
    dn_window_t window;

    dn_world_post(world, 0, 1);
    dn_check_equal(dn_shm_botf(world->peer[1], DN_WORLD_CHAN, 0, "behind", 6, NULL, 0), DN_ERR_UNREACH);
    dn_check_equal(dn_shm_reserve(world->peer[1], 6, &window), DN_ERR_UNREACH);
    return NULL;
}

/** A sender that nobody has met leaves at once: it is reached, whether what it has said is read by then or not. */
static void a_sender_that_has_just_left_is_reached(dn_world_t *world)
{
    enum { VISITS = 12, POLLS = 4 };

    dn_world_listen(world, hear);
    for (uint64_t visit = 0; visit < VISITS; visit++) {
        const int other = 1 - world->rank;

        if (1 == world->rank) {
            dn_world_sleep(world, 0, 0, visit + 1);
            for (uint64_t i = 0; i < visit % POLLS; i++) {
                dn_progress(world->port);
            }
        }
        dn_world_connect_to(world, other);
        say(world, world->peer[other], visit);
        dn_disconnect(world->peer[other]);
        world->peer[other] = NULL;
        dn_world_post(world, 0, visit + 1);
        dn_world_hear_until(world, visit + 1);
        dn_world_barrier(world);
    }
    dn_world_stop(world);
}

/** As when the fault wrapper is between: the kick does not reach the device any more. */
static void senders_end_behind_a_window_to_a_lost_peer(dn_world_t *world)
{
    dn_window_t window;
    pthread_t sender;

    world->job.threads = 1;
    dn_world_start(world);
    if (1 == world->rank) {
        dn_world_await(world, 0, 0, 1);
        dn_world_die(world);
    }
    dn_check_equal(dn_botf_reserve(world->peer[1], 500, &window), DN_OK);
    dn_check_equal(pthread_create(&sender, NULL, send_behind_window, world), 0);
    while (DN_OK == dn_peer_check(world->peer[1])) {
        sched_yield();
    }
    dn_check_equal(pthread_join(sender, NULL), 0);
    dn_disconnect(world->peer[1]);
    dn_close(world->port);
}

/* PULLs that the target helps with */

enum { INITIATOR, TARGET, PARTS = 4 };

/** Bytes of a PULL: one of many chunks, and one that takes long. */
#define SHORT_BYTES (UINT64_C(1) << 20)
#define LONG_BYTES  (UINT64_C(64) << 20)

/** Connected, memory of the target's on the board. @return 0: PULLs are not shared here, nothing to see. */
static int start_sharing(dn_world_t *world, uint8_t *memory, size_t len)
{
    dn_peer_attr_t attr;
    dn_segment_t *segment = NULL;

    world->config.help_min = 65536;
    dn_world_start(world);
    if (TARGET == world->rank) {
        dn_test_fill(memory, len, 1);
        dn_check_equal(dn_segment_register(world->port, memory, len, &segment), DN_OK);
        dn_segment_key(segment, &world->me->key[0]);
    } else {
        dn_peer_attr(world->peer[TARGET], &attr);
        world->me->word[15] = attr.direct && !dn_oversubscribed(world->port);
    }
    dn_world_barrier(world);
    if (0 == world->board->seat[INITIATOR].word[15]) {
        printf("%s: left out: PULLs are shared only with CMA and a core for each process\n", world->test);
        dn_world_stop(world);
        return 0;
    }
    return 1;
}

/** The target takes a chunk of the initiator's PULL, as its library would, and does not copy it. */
static int take_chunk(const dn_shm_map_t *theirs, uint32_t index, uint64_t *held)
{
    dn_shm_help_t *help = &theirs->header->help[index];
    const uint64_t word = dn_load_acquire(&help->next);
    uint64_t found = word;

    /* A long PULL has more chunks than that, so that this one is not over. */
    if (0 == word >> DN_SHM_CHUNK_BITS || *held >> DN_SHM_CHUNK_BITS == word >> DN_SHM_CHUNK_BITS
        || PARTS <= (word & DN_SHM_CHUNKS_MAX)) {
        return 0;
    }
    if (!dn_cas_seq_cst(&help->next, &found, word + 1)) {
        return 0;
    }
    *held = word;
    return 1;
}

/** One of each PULL of the initiator's, until it says that it is enough. @return where its descriptors lie. */
static dn_shm_map_t take_chunks(const dn_world_t *world, uint64_t held[DN_SHM_HELPS])
{
    const dn_shm_map_t theirs = map_of(world, INITIATOR);

    while (0 == dn_load_acquire(&world->board->seat[INITIATOR].word[0])) {
        for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
            take_chunk(&theirs, i, &held[i]);
        }
    }
    return theirs;
}

/** Say that the chunk could not be copied. */
static void give_chunk_back(const dn_shm_map_t *theirs, uint32_t index, uint64_t held)
{
    dn_shm_help_t *help = &theirs->header->help[index];

    dn_store_release(&help->failed, (held & DN_SHM_CHUNKS_MAX) + 1);
    dn_fetch_add_acq_rel(&help->done, 1);
}

/** PULL until the target has a chunk of it. The bytes are looked at where it had not. */
static void pull_until_shared(dn_world_t *world, uint8_t *local, dn_world_comp_t *comp)
{
    const dn_xfer_t xfer = {
        .local = local, .key = &world->board->seat[TARGET].key[0], .len = SHORT_BYTES, .comp = &comp->comp};
    dn_status_t status = DN_OK;

    *comp = dn_world_comp();
    while (DN_INPROGRESS != (status = dn_pull(world->peer[TARGET], &xfer))) {
        dn_check_equal(status, DN_OK);
        dn_check_bytes(local, SHORT_BYTES, 1);
        memset(local, 0, SHORT_BYTES);
    }
}

/** The target holds a chunk of as many PULLs as can be shared: one more is copied by the initiator alone. */
static void pulls_beyond_those_shared_are_copied_alone(dn_world_t *world)
{
    static uint8_t memory[DN_SHM_HELPS + 1][SHORT_BYTES];
    dn_world_comp_t comp[DN_SHM_HELPS];

    if (!start_sharing(world, memory[0], SHORT_BYTES)) {
        return;
    }
    if (INITIATOR == world->rank) {
        for (int i = 0; i < DN_SHM_HELPS; i++) {
            pull_until_shared(world, memory[i], &comp[i]);
        }
        const dn_xfer_t more = {
            .local = memory[DN_SHM_HELPS], .key = &world->board->seat[TARGET].key[0], .len = SHORT_BYTES};
        dn_check_equal(dn_pull(world->peer[TARGET], &more), DN_OK);
        dn_check_bytes(memory[DN_SHM_HELPS], SHORT_BYTES, 1);
        for (int i = 0; i < 1000; i++) {
            dn_progress(world->port);
        }
        for (int i = 0; i < DN_SHM_HELPS; i++) {
            dn_check_equal(comp[i].signals, 0);
        }
        dn_world_post(world, 0, 1);
        for (int i = 0; i < DN_SHM_HELPS; i++) {
            while (0 == comp[i].signals) {
                dn_world_progress(world);
            }
            dn_check_equal(comp[i].status, DN_OK);
            dn_check_bytes(memory[i], SHORT_BYTES, 1);
        }
    } else {
        uint64_t held[DN_SHM_HELPS] = {0};
        const dn_shm_map_t theirs = take_chunks(world, held);
        for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
            give_chunk_back(&theirs, i, held[i]);
        }
    }
    dn_world_stop(world);
}

static void a_pull_ends_when_its_helper_is_killed(dn_world_t *world)
{
    static uint8_t memory[SHORT_BYTES];
    dn_world_comp_t comp;

    if (!start_sharing(world, memory, sizeof(memory))) {
        return;
    }
    if (TARGET == world->rank) {
        uint64_t held[DN_SHM_HELPS] = {0};
        take_chunks(world, held);
        dn_world_die(world);
    }
    pull_until_shared(world, memory, &comp);
    dn_world_post(world, 0, 1);
    while (0 == comp.signals) {
        dn_world_progress(world);
    }
    dn_check_equal(comp.status, DN_ERR_UNREACH);
    for (int i = 0; i < 100; i++) {
        dn_progress(world->port);
    }
    dn_check_equal(comp.signals, 1);
    dn_disconnect(world->peer[TARGET]);
    dn_close(world->port);
}

/** What the two threads of the initiator share. */
enum { CHECKED = 1, PULLED };

/** Find the target gone while the other thread PULLs from it. */
static void *find_gone(void *arg)
{
    dn_world_t *world = arg;

    dn_world_sleep(world, TARGET, 0, 1);
    dn_check_equal(dn_peer_check(world->peer[TARGET]), DN_ERR_UNREACH);
    dn_world_post(world, CHECKED, 1);
    return NULL;
}

/** The target takes a chunk, closes, and is found gone before the PULL has gone into the background. */
static void a_pull_whose_target_is_lost_meanwhile_ends(dn_world_t *world)
{
    static uint8_t memory[LONG_BYTES];
    dn_world_comp_t comp = dn_world_comp();
    pthread_t thread;

    world->job.threads = 1;
    if (!start_sharing(world, memory, sizeof(memory))) {
        return;
    }
    if (TARGET == world->rank) {
        const dn_shm_map_t theirs = map_of(world, INITIATOR);
        const dn_shm_map_t mine = map_of(world, TARGET);
        const dn_board_seat_t *initiator = &world->board->seat[INITIATOR];
        uint64_t held = 0;
        while (!take_chunk(&theirs, 0, &held)) {
        }
        dn_store_release_u32(&mine.header->closed, 1);
        dn_world_post(world, 0, 1);
        while (0 == dn_load_acquire(&initiator->word[CHECKED])
               && 0 == dn_load_acquire(&initiator->word[PULLED])) {
            sched_yield();
        }
        dn_world_die(world);
    }
    const dn_xfer_t xfer = {
        .local = memory, .key = &world->board->seat[TARGET].key[0], .len = LONG_BYTES, .comp = &comp.comp};
    /* A copy may meet the end of the target: that is logged. */
    dn_test_log.expected = 1;
    dn_check_equal(pthread_create(&thread, NULL, find_gone, world), 0);
    dn_status_t status;
    while (DN_OK == (status = dn_pull(world->peer[TARGET], &xfer))) {
        /* The target did not run. */
    }
    dn_check(DN_INPROGRESS == status || DN_ERR_UNREACH == status);
    dn_world_post(world, PULLED, 1);
    while (DN_INPROGRESS == status && 0 == comp.signals) {
        dn_world_progress(world);
    }
    dn_check_equal(pthread_join(thread, NULL), 0);
    dn_test_log.expected = 0;
    dn_check_equal(comp.signals, DN_INPROGRESS == status);
    dn_check_equal(DN_INPROGRESS == status ? comp.status : status, DN_ERR_UNREACH);
    dn_disconnect(world->peer[TARGET]);
    dn_close(world->port);
}

/* Files */

/** A file of a port of a process that started then. */
static void leave_file(const dn_world_t *world, const char *name, const dn_shm_header_t *header)
{
    char path[DN_SHM_PATH_MAX];

    snprintf(path, sizeof(path), "%s/dimmnet.%s", world->job.dir, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    dn_check(0 <= fd);
    dn_check_equal(write(fd, header, sizeof(*header)), sizeof(*header));
    close(fd);
}

/** Remove a file. @return whether it was there. */
static int remove_file(const dn_world_t *world, const char *name)
{
    char path[DN_SHM_PATH_MAX];

    snprintf(path, sizeof(path), "%s/dimmnet.%s", world->job.dir, name);
    return 0 == unlink(path);
}

static void files_of_dead_processes_of_this_host_alone_are_swept(dn_world_t *world)
{
    dn_shm_header_t header = {.magic = DN_SHM_MAGIC};
    int status;

    const pid_t ended = fork();
    if (0 == ended) {
        _Exit(0);
    }
    dn_check_equal(waitpid(ended, &status, 0), ended);
    dn_shm_host(header.host);
    header.os_pid = (uint32_t) getpid();
    dn_check_equal(dn_shm_process(header.os_pid, &header.start_time), DN_OK);
    leave_file(world, "living", &header);
    header.os_pid = (uint32_t) ended;
    leave_file(world, "dead", &header);
    header.host[0] ^= 1;
    leave_file(world, "elsewhere", &header);
    world->config.backing = DN_BACKING_FILE;
    dn_world_open(world);
    dn_check(remove_file(world, "living"));
    dn_check(!remove_file(world, "dead"));
    dn_check(remove_file(world, "elsewhere"));
    dn_world_stop(world);
}

/** Leave the owner, which does not look, and come again: the new slot is one more. */
static void come_again(dn_world_t *world)
{
    dn_disconnect(world->peer[OWNER]);
    dn_world_connect_to(world, OWNER);
}

enum { EARLY = 1, LATE };

/** Come twice, then once more beside a process of another group. */
static void come_early(dn_world_t *world, const char *path)
{
    dn_world_connect_to(world, OWNER);
    come_again(world);
    dn_check_equal(access(path, F_OK), 0);
    const dn_shm_map_t map = map_of(world, OWNER);
    dn_shm_slot_t *other = &map.slot[((const dn_shm_peer_t *) world->peer[OWNER])->slot + 1];
    other->pid = LATE;
    other->nonce[0] = 1;
    dn_store_release_u32(&other->state, DN_SHM_READY);
    come_again(world);
    dn_check_equal(access(path, F_OK), 0);
    dn_store_release_u32(&other->state, DN_SHM_FREE);
    dn_world_post(world, 0, 1);
}

/** Neither a process that comes twice, nor one of another group, stands for one of the group that has not come. */
static void a_file_stays_until_all_of_its_group_have_come(dn_world_t *world)
{
    world->config.backing = DN_BACKING_FILE;
    dn_world_open(world);
    dn_world_barrier(world);
    const dn_shm_where_t owner = where_of(&world->board->seat[OWNER]);
    if (EARLY == world->rank) {
        come_early(world, owner.path);
    } else if (LATE == world->rank) {
        dn_world_sleep(world, OWNER, 0, 1);
        dn_world_connect_to(world, OWNER);
        dn_check_equal(access(owner.path, F_OK), -1);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_sleep(world, EARLY, 0, 1);
        dn_progress(world->port);
        dn_check_equal(access(owner.path, F_OK), 0);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, LATE, 0, 1);
    }
    dn_world_stop(world);
}

/** The number that the next file to be opened gets. */
static int next_file(void)
{
    const int fd = dup(STDIN_FILENO);

    close(fd);
    return fd;
}

static void a_port_without_room_is_refused_and_leaves_nothing_open(dn_world_t *world)
{
    static const dn_backing_t backing[] = {DN_BACKING_MEMFD, DN_BACKING_AUTO, DN_BACKING_FILE};
    const struct rlimit limit = {DN_SHM_PAGE, DN_SHM_PAGE};
    const int before = next_file();

    /* What is larger would be ended by this signal. */
    signal(SIGXFSZ, SIG_DFL);
    dn_check_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (size_t i = 0; i < sizeof(backing) / sizeof(backing[0]); i++) {
        world->config.backing = (int) backing[i];
        dn_test_log_expect();
        dn_check_equal(dn_open("shm", &world->job, &world->config, &world->port), DN_ERR_NOMEM);
        dn_check(dn_test_log_said(1, "ulimit -f"));
        dn_check_equal(next_file(), before);
    }
}

/** Bytes that the files of a folder take. */
static uint64_t room_taken(const char *dir)
{
    uint64_t bytes = 0;
    struct stat info;
    DIR *folder = opendir(dir);

    dn_check(NULL != folder);
    for (struct dirent *entry = readdir(folder); NULL != entry; entry = readdir(folder)) {
        if ('.' != entry->d_name[0]) {
            dn_check_equal(fstatat(dirfd(folder), entry->d_name, &info, 0), 0);
            bytes += (uint64_t) info.st_blocks * 512;
        }
    }
    closedir(folder);
    return bytes;
}

/** The file system may be full later: a ring in a file has all of its memory before it is written to. */
static void a_ring_in_a_file_has_its_room_before_an_answer(dn_world_t *world)
{
    world->config.backing = DN_BACKING_FILE;
    world->config.ring_lines = 1024;
    /* Not known, so that no file is unlinked before the end. */
    world->job.nlocal = 0;
    dn_world_listen(world, hear);
    uint64_t before = room_taken(world->job.dir);
    dn_world_barrier(world);
    if (0 == world->rank) {
        dn_world_connect_to(world, 1);
        dn_check(before + 1024 * DN_LINE_BYTES <= room_taken(world->job.dir));
        say(world, world->peer[1], 0);
    } else {
        dn_world_hear_until(world, 1);
        before = room_taken(world->job.dir);
        /* It came by itself: the way back is opened by the first answer. */
        say(world, heard_from, 0);
        dn_check(before + 1024 * DN_LINE_BYTES <= room_taken(world->job.dir));
    }
    dn_world_hear_until(world, 1);
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"a_sender_cut_off_keeps_its_slot_while_it_lives", 4, a_sender_cut_off_keeps_its_slot_while_it_lives},
    {"the_slot_of_a_sender_cut_off_comes_back_when_it_ends", 4,
     the_slot_of_a_sender_cut_off_comes_back_when_it_ends},
    {"the_slot_of_a_sender_left_alone_comes_back_when_it_ends", 4,
     the_slot_of_a_sender_left_alone_comes_back_when_it_ends},
    {"a_slot_comes_back_to_a_sender_that_was_refused", 4, a_slot_comes_back_to_a_sender_that_was_refused},
    {"lives_of_a_sender_that_wait_together_are_heard_in_order", 2,
     lives_of_a_sender_that_wait_together_are_heard_in_order},
    {"slots_of_refused_senders_come_back", 2, slots_of_refused_senders_come_back},
    {"a_sender_that_has_just_left_is_reached", 2, a_sender_that_has_just_left_is_reached},
    {"senders_end_behind_a_window_to_a_lost_peer", 2, senders_end_behind_a_window_to_a_lost_peer},
    {"pulls_beyond_those_shared_are_copied_alone", 2, pulls_beyond_those_shared_are_copied_alone},
    {"a_pull_ends_when_its_helper_is_killed", 2, a_pull_ends_when_its_helper_is_killed},
    {"a_pull_whose_target_is_lost_meanwhile_ends", 2, a_pull_whose_target_is_lost_meanwhile_ends},
    {"files_of_dead_processes_of_this_host_alone_are_swept", 1,
     files_of_dead_processes_of_this_host_alone_are_swept},
    {"a_file_stays_until_all_of_its_group_have_come", 3, a_file_stays_until_all_of_its_group_have_come},
    {"a_port_without_room_is_refused_and_leaves_nothing_open", 1,
     a_port_without_room_is_refused_and_leaves_nothing_open},
    {"a_ring_in_a_file_has_its_room_before_an_answer", 2, a_ring_in_a_file_has_its_room_before_an_answer},
};

/** usage: shm_lifetimes [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "shm_lifetimes", .device = "shm"};
    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, argv[1]);
}
