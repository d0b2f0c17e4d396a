/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Requests to help with a transfer, and helpers that do not finish: what a process may ask of another, and how long it can
 * hold up another.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dn_port.h"
#include "shm/dn_shm_int.h"

/** As in dn_shm_help.c. */
typedef struct request {
    uint64_t roff, ours, len, generation;
    uint32_t sid, sid_generation, index, write;
} request_t;

enum { BYTES = 16384, OFFERED = 4096, GUARD = 4096, GENERATION = 7 };

/** Bytes of a PULL of many chunks. */
#define LONG_BYTES (UINT64_C(1) << 20)
#define CHUNKS     4 /**< it has more than these */

/** Calls that wait for nobody while the device waits for a helper: thousands in the two seconds that it waits, and these where the machine
 * stops the process meanwhile. If a call waited for the helper, it would be the only one. */
#define PROMPT_CALLS 3
/** Most CPU time of a call that waits for nobody. One that waits gives the core away and takes it again, for two seconds. */
#define PROMPT_S 1.0

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static dn_shm_map_t *map_behind(dn_peer_t *peer)
{
    return &((dn_shm_t *) ((dn_peer_base_t *) peer)->iface)->map;
}

/* What may be asked */

enum { VICTIM, ATTACKER, PAIR };

/** A request that is good: all that the victim offers, read into `ours`. */
static request_t good(const dn_world_t *world, void *ours)
{
    const dn_key_t *key = &world->board->seat[VICTIM].key[0];

    return (request_t){.ours = (uintptr_t) ours,
                       .len = OFFERED,
                       .sid = key->sid,
                       .sid_generation = key->generation,
                       .generation = GENERATION};
}

enum { GOOD_READ, GOOD_WRITE, STALE, UNKNOWN, ENDED_BEFORE, CUT_OFF_FROM = ENDED_BEFORE };

/** One of them spoilt. The first three are answered, or not, without more; who sends one of the others is cut off. */
static request_t spoil(request_t request, int how, size_t *len)
{
    *len = sizeof(request);
    switch (how) {
    case GOOD_WRITE:
        request.write = 1;
        break;
    case STALE:
        request.sid_generation--;
        break;
    case UNKNOWN:
        request.sid = UINT32_MAX;
        break;
    case CUT_OFF_FROM:
        request.roff = (uint64_t) -GUARD;
        break;
    case CUT_OFF_FROM + 1:
        request.roff = 1;
        break;
    case CUT_OFF_FROM + 2:
        request.len++;
        break;
    case CUT_OFF_FROM + 3:
        request.roff = OFFERED;
        break;
    case CUT_OFF_FROM + 4:
        request.roff = UINT64_MAX;
        break;
    case CUT_OFF_FROM + 5:
        request.len = UINT64_MAX;
        break;
    case CUT_OFF_FROM + 6:
        request.index = DN_SHM_HELPS;
        break;
    case CUT_OFF_FROM + 7:
        *len -= 8;
        break;
    default:
        break;
    }
    return request;
}

enum { HOWS = CUT_OFF_FROM + 8 };

/** The attacker's port asks once; what came of it is looked at. */
static void ask(dn_world_t *world, int how)
{
    static uint8_t mine[BYTES];
    size_t len;

    dn_world_open(world);
    dn_world_connect_to(world, VICTIM);
    memset(mine, 0xa5, sizeof(mine));
    dn_shm_help_t *help = &map_behind(world->peer[VICTIM])->header->help[0];
    dn_store_release(&help->next, (uint64_t) GENERATION << DN_SHM_CHUNK_BITS);
    const request_t request = spoil(good(world, mine + GUARD), how, &len);
    dn_check_equal(dn_botf(world->peer[VICTIM], DN_CHAN_DEVICE, 0, &request, len, NULL, 0), DN_OK);
    dn_world_post(world, 0, (uint64_t) how + 1);
    dn_world_sleep(world, VICTIM, 0, (uint64_t) how + 1);
    dn_check_equal(dn_load_acquire(&help->done), GOOD_READ == how || GOOD_WRITE == how);
    dn_check_equal(dn_load_acquire(&help->failed), 0);
    for (size_t i = 0; i < sizeof(mine); i++) {
        dn_check_equal(mine[i], GOOD_READ == how && GUARD <= i && i < GUARD + OFFERED ? 0x11 : 0xa5);
    }
    dn_close(world->port);
}

/** The victim's memory before and behind what it offers stays as it is, and so does that itself but for a good PUSH. */
static void serve(dn_world_t *world, int how, uint8_t *memory)
{
    dn_counters_t before, after;

    dn_counters(world->port, &before);
    memset(memory, 0x5a, BYTES);
    memset(memory + GUARD, 0x11, OFFERED);
    dn_test_log_expect();
    dn_world_sleep(world, ATTACKER, 0, (uint64_t) how + 1);
    do {
        dn_world_progress(world);
        dn_counters(world->port, &after);
    } while (how >= CUT_OFF_FROM && after.peers_lost == before.peers_lost);
    for (int i = 0; i < 100; i++) {
        dn_progress(world->port);
    }
    dn_check(dn_test_log_said(how >= CUT_OFF_FROM, how >= CUT_OFF_FROM ? "cut off" : NULL));
    dn_counters(world->port, &after);
    dn_check_equal(after.dropped - before.dropped, how >= CUT_OFF_FROM);
    for (size_t i = 0; i < BYTES; i++) {
        const int inside = GUARD <= i && i < GUARD + OFFERED;
        dn_check_equal(memory[i], !inside ? 0x5a : GOOD_WRITE == how ? 0xa5 : 0x11);
    }
    dn_world_post(world, 0, (uint64_t) how + 1);
}

static void help_is_given_within_the_segment_named(dn_world_t *world)
{
    static uint8_t memory[BYTES];
    dn_segment_t *segment;
    dn_peer_attr_t attr;

    if (VICTIM == world->rank) {
        dn_world_open(world);
        dn_check_equal(dn_segment_register(world->port, memory + GUARD, OFFERED, &segment), DN_OK);
        dn_segment_free(segment); /* its generation is stale from now on */
        dn_check_equal(dn_segment_register(world->port, memory + GUARD, OFFERED, &segment), DN_OK);
        dn_segment_key(segment, &world->me->key[0]);
        dn_world_connect_to(world, VICTIM);
        dn_peer_attr(world->peer[VICTIM], &attr);
        world->me->word[15] = attr.direct;
    }
    dn_world_barrier(world);
    if (0 == world->board->seat[VICTIM].word[15]) {
        printf("%s: left out: nobody helps without CMA\n", world->test);
        return;
    }
    for (int how = 0; how < HOWS; how++) {
        if (VICTIM == world->rank) {
            serve(world, how, memory);
        } else {
            ask(world, how);
        }
    }
    if (VICTIM == world->rank) {
        dn_close(world->port);
    }
}

/** A key of one's own segment may come back from a peer with another address in it: one's own table counts. */
static void own_memory_is_found_by_the_own_table(dn_world_t *world)
{
    static uint8_t memory[BYTES];
    uint8_t got[OFFERED];
    dn_segment_t *segment;
    dn_key_t key;

    dn_world_open(world);
    dn_world_connect_to(world, 0);
    memset(memory, 0x5a, BYTES);
    memset(memory + GUARD, 0x11, OFFERED);
    dn_check_equal(dn_segment_register(world->port, memory + GUARD, OFFERED, &segment), DN_OK);
    dn_segment_key(segment, &key);
    for (size_t i = 0; i < DN_KEY_WAYS; i++) {
        key.way[i].word[0] = (uintptr_t) memory;
    }
    const dn_xfer_t xfer = {.local = got, .key = &key, .len = OFFERED};
    dn_check_equal(dn_world_pull(world, world->peer[0], &xfer), DN_OK);
    for (size_t i = 0; i < OFFERED; i++) {
        dn_check_equal(got[i], 0x11);
    }
    dn_world_stop(world);
}

/* Helpers that do not finish */

enum { INITIATOR, HELPER, OTHER, TRIO };

/** What the helper does with the chunk that it has taken. */
enum { HOLDS_AND_LIES = 1, STOPS };

static void make_segment(dn_world_t *world, uint8_t *memory)
{
    dn_segment_t *segment;

    dn_test_fill(memory, LONG_BYTES, (uint64_t) world->rank);
    dn_check_equal(dn_segment_register(world->port, memory, LONG_BYTES, &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
}

/** All connected, all with a segment. @return 0: PULLs are not shared here. */
static int start(dn_world_t *world, uint8_t *memory)
{
    dn_peer_attr_t attr;

    world->config.help_min = 65536;
    dn_world_open(world);
    make_segment(world, memory);
    dn_world_barrier(world);
    dn_world_connect(world);
    dn_peer_attr(world->peer[(world->rank + 1) % TRIO], &attr);
    if (!attr.direct) {
        printf("%s: left out: PULLs are not shared without CMA\n", world->test);
        dn_world_stop(world);
    }
    return attr.direct;
}

/** Take the first chunk of the initiator's first PULL that is shared, as the library would. */
static void take_chunk(dn_shm_help_t *help)
{
    uint64_t word;

    do {
        word = dn_load_acquire(&help->next);
    } while (0 == word >> DN_SHM_CHUNK_BITS || CHUNKS <= (word & DN_SHM_CHUNKS_MAX)
             || !dn_cas_seq_cst(&help->next, &word, word + 1));
}

/** The helper: it has a chunk, and goes on or not. */
static void hold(dn_world_t *world, int what)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) world->peer[INITIATOR];
    dn_shm_help_t *help = &peer->map.header->help[0];

    take_chunk(help);
    dn_world_post(world, 0, 1);
    if (HOLDS_AND_LIES == what) {
        dn_world_sleep(world, INITIATOR, 0, 1);
        dn_store_release(&peer->tx.ring->line[peer->tx.at].head,
                         (uint64_t) (peer->tx.tail + 1) | UINT64_C(0x7fff) << 32);
    } else {
        dn_world_sleep(world, INITIATOR, 0, 1);
        raise(SIGSTOP);
    }
    /* Late: the PULL is over, and its descriptor must not be another's. */
    dn_world_sleep(world, INITIATOR, 0, 2);
    dn_fetch_add_acq_rel(&help->done, 1);
    dn_world_post(world, 0, 2);
    dn_world_sleep(world, INITIATOR, 0, 3);
    dn_world_die(world);
}

/** PULL from a helper, or PUSH to it, until it has a chunk. */
static void share_until_held(dn_world_t *world, int helper, uint8_t *local, dn_world_comp_t *comp, int write)
{
    const dn_xfer_t xfer = {
        .local = local, .key = &world->board->seat[helper].key[0], .len = LONG_BYTES, .comp = &comp->comp};
    dn_status_t status;

    *comp = dn_world_comp();
    while (DN_INPROGRESS
           != (status = dn_shm_share((dn_shm_peer_t *) world->peer[helper], &xfer, xfer.key->way[0].word[0],
                                     write))) {
        dn_check_equal(status, DN_OK);
    }
    dn_world_sleep(world, helper, 0, 1);
}

static void pull_until_held(dn_world_t *world, int helper, uint8_t *local, dn_world_comp_t *comp)
{
    share_until_held(world, helper, local, comp, 0);
}

/** PULLs from the third process, shared or not, are right. */
static void pull_from_other(dn_world_t *world)
{
    static uint8_t local[LONG_BYTES];
    const dn_key_t *key = &world->board->seat[OTHER].key[0];
    const dn_xfer_t xfer = {.local = local, .key = key, .len = LONG_BYTES};

    for (int i = 0; i < 20; i++) {
        memset(local, 0, sizeof(local));
        dn_status_t status =
            dn_shm_share((dn_shm_peer_t *) world->peer[OTHER], &xfer, key->way[0].word[0], 0);
        while (DN_INPROGRESS == status) {
            status = dn_flush(world->peer[OTHER]);
        }
        dn_check_equal(status, DN_OK);
        dn_check_bytes(local, LONG_BYTES, OTHER);
    }
}

/** The third process serves until all is over. */
static void serve_others(dn_world_t *world)
{
    dn_world_await(world, INITIATOR, 0, 3);
    dn_close(world->port);
}

/** It takes a chunk, never says that it is done, then breaks its ring: it is cut off, and nobody waits for it. */
static void a_helper_that_is_cut_off_holds_nobody_up(dn_world_t *world)
{
    static uint8_t memory[LONG_BYTES];
    static uint8_t local[LONG_BYTES];
    dn_world_comp_t comp;

    if (!start(world, memory)) {
        return;
    }
    if (HELPER == world->rank) {
        hold(world, HOLDS_AND_LIES);
    } else if (OTHER == world->rank) {
        serve_others(world);
        return;
    }
    pull_until_held(world, HELPER, local, &comp);
    dn_world_post(world, 0, 1);
    dn_test_log.expected = 1;
    dn_status_t status;
    int calls = 0;
    do {
        status = dn_flush(world->peer[HELPER]);
        calls += PROMPT_CALLS > calls;
    } while (DN_INPROGRESS == status);
    dn_check_equal(calls, PROMPT_CALLS);
    dn_check_equal(status, DN_ERR_UNREACH);
    dn_check(NULL != strstr(dn_test_log.last, "may write to the memory of that PULL"));
    dn_check_equal(comp.signals, 1);
    dn_check_equal(comp.status, DN_ERR_UNREACH);
    dn_test_log.expected = 0;
    pull_from_other(world);
    dn_world_post(world, 0, 2);
    dn_world_await(world, HELPER, 0, 2);
    pull_from_other(world);
    dn_disconnect(world->peer[HELPER]);
    dn_world_post(world, 0, 3);
    dn_close(world->port);
}

/** Its process is stopped with a chunk: a port closes all the same, and says what may come late. */
static void a_port_closes_while_a_helper_is_stopped(dn_world_t *world)
{
    static uint8_t memory[LONG_BYTES];
    static uint8_t local[LONG_BYTES];
    dn_world_comp_t comp;

    if (!start(world, memory)) {
        return;
    }
    if (HELPER == world->rank) {
        hold(world, STOPS);
    } else if (OTHER == world->rank) {
        serve_others(world);
        return;
    }
    const pid_t helper = (pid_t) world->board->seat[HELPER].os_pid;
    pull_until_held(world, HELPER, local, &comp);
    dn_world_post(world, 0, 1);
    while ('T' != dn_test_state((uint32_t) helper, NULL)) {
        sched_yield();
    }
    /* It lives, and so it may go on: nothing is said of the PULL, and others go on. */
    pull_from_other(world);
    dn_check_equal(comp.signals, 0);
    dn_test_log_expect();
    dn_close(world->port);
    dn_check(dn_test_log_said(1, "may write to the memory of that PULL"));
    dn_check_equal(comp.signals, 0);
    dn_world_post(world, 0, 2);
    dn_check_equal(kill(helper, SIGCONT), 0);
    dn_world_sleep(world, HELPER, 0, 2);
    dn_world_post(world, 0, 3);
}

/** Helpers of three PULLs, which have a chunk each. */
enum { HELPERS = 3 };

/** A helper: it has a chunk of a PULL of its own, and does nothing more. */
static void hold_for_ever(dn_world_t *world)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) world->peer[INITIATOR];

    take_chunk(&peer->map.header->help[world->rank - HELPER]);
    dn_world_post(world, 0, 1);
    dn_world_sleep(world, INITIATOR, 0, 1);
    dn_world_die(world);
}

/** None of several helpers does its part: they are waited for all at once. */
static void a_port_closes_in_the_time_of_one_helper(dn_world_t *world)
{
    static uint8_t memory[LONG_BYTES];
    static uint8_t local[HELPERS][LONG_BYTES];
    dn_world_comp_t comp[HELPERS];

    if (!start(world, memory)) {
        return;
    }
    if (INITIATOR != world->rank) {
        hold_for_ever(world);
    }
    for (int i = 0; i < HELPERS; i++) {
        pull_until_held(world, HELPER + i, local[i], &comp[i]);
    }
    dn_test_log_expect();
    const double before = seconds(CLOCK_MONOTONIC);
    dn_close(world->port);
    /* One after the other would take six seconds. */
    dn_check(seconds(CLOCK_MONOTONIC) - before < 5.5);
    dn_check(dn_test_log_said(HELPERS, "may write to the memory of that PULL"));
    for (int i = 0; i < HELPERS; i++) {
        dn_check_equal(comp[i].signals, 0);
    }
    dn_world_post(world, 0, 1);
}

/**
 * Both ends have left each other, and the helper has a chunk still: who polls is not held up. When the helper has ended, its
 * descriptor serves again.
 */
static void a_helper_that_has_left_holds_no_progress_up(dn_world_t *world)
{
    static uint8_t memory[LONG_BYTES];
    static uint8_t local[LONG_BYTES];
    dn_world_comp_t comp;

    if (!start(world, memory)) {
        return;
    }
    if (HELPER == world->rank) {
        take_chunk(&((dn_shm_peer_t *) world->peer[INITIATOR])->map.header->help[0]);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, INITIATOR, 0, 1);
        dn_disconnect(world->peer[INITIATOR]);
        dn_world_sleep(world, INITIATOR, 0, 2);
        dn_world_die(world);
    } else if (OTHER == world->rank) {
        serve_others(world);
        return;
    }
    pull_until_held(world, HELPER, local, &comp);
    while (NULL == ((dn_shm_peer_t *) world->peer[HELPER])->rx) {
        dn_world_progress(world);
    }
    dn_disconnect(world->peer[HELPER]);
    dn_world_post(world, 0, 1);
    dn_test_log_expect();
    int calls = 0;
    while (0 == dn_test_log.count) {
        dn_progress(world->port);
        calls += PROMPT_CALLS > calls;
    }
    dn_check_equal(calls, PROMPT_CALLS);
    dn_check(dn_test_log_said(1, "may write to the memory of that PULL"));
    dn_check_equal(comp.signals, 1);
    dn_check_equal(comp.status, DN_ERR_UNREACH);
    pull_from_other(world);
    const dn_shm_share_t *share = &((dn_shm_t *) world->port->ifaces)->share[0];
    dn_check_equal(share->state, DN_SHM_SHARE_OWED);
    dn_world_post(world, 0, 2);
    while (DN_SHM_SHARE_OWED == share->state) {
        pull_from_other(world);
    }
    const double before = seconds(CLOCK_THREAD_CPUTIME_ID);
    dn_close(world->port);
    dn_check(seconds(CLOCK_THREAD_CPUTIME_ID) - before < PROMPT_S);
    dn_world_post(world, 0, 3);
}

/** The helper leaves, and then says that its chunk is done, which the initiator does not poll for any more. */
static void a_pull_that_is_done_is_signalled_at_disconnection(dn_world_t *world)
{
    static uint8_t memory[LONG_BYTES];
    static uint8_t local[LONG_BYTES];
    dn_world_comp_t comp;

    if (!start(world, memory)) {
        return;
    }
    if (OTHER == world->rank) {
        serve_others(world);
        return;
    }
    const dn_shm_peer_t *peer = (dn_shm_peer_t *) world->peer[HELPER == world->rank ? INITIATOR : HELPER];
    while (NULL == peer->rx) {
        dn_world_progress(world);
    }
    if (HELPER == world->rank) {
        dn_shm_help_t *help = &peer->map.header->help[0];
        take_chunk(help);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, INITIATOR, 0, 1);
        dn_disconnect(world->peer[INITIATOR]);
        dn_world_sleep(world, INITIATOR, 0, 2);
        dn_fetch_add_acq_rel(&help->done, 1);
        dn_world_post(world, 0, 2);
        dn_world_sleep(world, INITIATOR, 0, 3);
        dn_close(world->port);
        return;
    }
    pull_until_held(world, HELPER, local, &comp);
    dn_world_post(world, 0, 1);
    while (NULL != peer->rx) {
        dn_world_progress(world);
    }
    dn_world_post(world, 0, 2);
    dn_world_sleep(world, HELPER, 0, 2);
    dn_check_equal(comp.signals, 0);
    dn_disconnect(world->peer[HELPER]);
    dn_check_equal(comp.signals, 1);
    dn_check_equal(comp.status, DN_OK);
    dn_world_post(world, 0, 3);
    dn_close(world->port);
    dn_check_equal(comp.signals, 1);
}

/** The helper of a PUSH without status words has done its chunk, and sleeps when the other end finishes. */
static void the_end_of_a_shared_push_wakes_its_target(dn_world_t *world)
{
    static uint8_t memory[LONG_BYTES];
    static uint8_t local[LONG_BYTES];
    dn_world_comp_t comp;

    if (!start(world, memory)) {
        return;
    }
    if (HELPER == world->rank) {
        dn_shm_help_t *help = &((dn_shm_peer_t *) world->peer[INITIATOR])->map.header->help[0];
        take_chunk(help);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, INITIATOR, 0, 1);
        /* As dn_wait() does, before it sleeps. */
        const uint32_t odd = dn_bell_set(dn_bell(world->port));
        dn_fetch_add_acq_rel(&help->done, 1);
        dn_world_post(world, 0, 2);
        dn_world_sleep(world, INITIATOR, 0, 2);
        dn_check(odd != dn_load_acquire_u32(dn_bell(world->port)));
        dn_world_post(world, 0, 3);
    } else if (INITIATOR == world->rank) {
        share_until_held(world, HELPER, local, &comp, 1);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, HELPER, 0, 2);
        while (0 == comp.signals) {
            dn_progress(world->port);
        }
        dn_check_equal(comp.status, DN_OK);
        dn_world_post(world, 0, 2);
        dn_world_sleep(world, HELPER, 0, 3);
        dn_world_post(world, 0, 3);
    } else {
        serve_others(world);
        return;
    }
    dn_close(world->port);
}

static const dn_world_test_t tests[] = {
    {"help_is_given_within_the_segment_named", PAIR, help_is_given_within_the_segment_named},
    {"own_memory_is_found_by_the_own_table", 1, own_memory_is_found_by_the_own_table},
    {"a_helper_that_is_cut_off_holds_nobody_up", TRIO, a_helper_that_is_cut_off_holds_nobody_up},
    {"a_port_closes_while_a_helper_is_stopped", TRIO, a_port_closes_while_a_helper_is_stopped},
    {"a_port_closes_in_the_time_of_one_helper", HELPER + HELPERS, a_port_closes_in_the_time_of_one_helper},
    {"a_helper_that_has_left_holds_no_progress_up", TRIO, a_helper_that_has_left_holds_no_progress_up},
    {"the_end_of_a_shared_push_wakes_its_target", TRIO, the_end_of_a_shared_push_wakes_its_target},
    {"a_pull_that_is_done_is_signalled_at_disconnection", TRIO,
     a_pull_that_is_done_is_signalled_at_disconnection},
};

/** usage: shm_help [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "help", .device = "shm"};

    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, 1 < argc ? argv[1] : NULL);
}
