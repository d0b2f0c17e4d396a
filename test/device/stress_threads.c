/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Several threads of each process send, store, fence, transfer, receive and reconnect on one port at once: nothing is
 * lost, doubled or torn, and none waits for ever. A thread sanitizer watches the library while they do.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <pthread.h>
#include <sched.h>

#include "dn_atomic.h"

enum { THREADS = 3, MESSAGES = 4000, TRANSFERS = 150, PART = 3000, BYTES = THREADS * PART };

static dn_world_t *world;
static dn_peer_t *peer;
static uint64_t received[THREADS], next[THREADS];
static uint64_t completed;

/** The tag is the sending thread. Its messages come in order; one handler runs at a time. */
static void receive(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    uint64_t number;

    (void) src;
    (void) arg;
    dn_check(tag < THREADS);
    dn_check(sizeof(number) <= len);
    memcpy(&number, data, sizeof(number));
    dn_check_equal(number, next[tag]);
    dn_check_bytes((const uint8_t *) data + sizeof(number), len - sizeof(number), number);
    next[tag]++;
    dn_fetch_add_acq_rel(&received[tag], 1);
}

static void completion(dn_comp_t *comp, dn_status_t status)
{
    (void) comp;
    dn_check_equal(status, DN_OK);
    dn_fetch_add_acq_rel(&completed, 1);
}

static void send_numbered(unsigned thread, uint64_t number, uint64_t *random)
{
    uint8_t data[1500];
    const size_t len = sizeof(number) + dn_test_length(random, sizeof(data) - sizeof(number));
    dn_window_t window;
    dn_status_t status;

    memcpy(data, &number, sizeof(number));
    dn_test_fill(data + sizeof(number), len - sizeof(number), number);
    if (0 == number % 2) {
        dn_world_send(world, peer, DN_WORLD_CHAN, thread, data, len);
        return;
    }
    while (DN_ERR_AGAIN == (status = dn_botf_reserve(peer, len, &window))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_OK);
    memcpy(window.data, data, len);
    dn_botf_kick(peer, &window, DN_WORLD_CHAN, thread, len);
}

/** PUSH and PULL of the thread's own part of either segment of the other process. */
static void transfer(unsigned thread, uint64_t number, dn_comp_t *comp)
{
    static uint8_t memory[THREADS][2][PART];
    const int which = (int) (number % 2);
    const dn_xfer_t xfer = {.local = memory[thread][which],
                            .key = &world->board->seat[1 - world->rank].key[which],
                            .roff = thread * PART,
                            .len = PART,
                            .comp = comp};
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = 0 == number % 4 / 2 ? dn_push(peer, &xfer) : dn_pull(peer, &xfer))) {
        dn_world_progress(world);
    }
    dn_check(DN_OK == status || DN_INPROGRESS == status);
    if (DN_OK == status) {
        dn_fetch_add_acq_rel(&completed, 1);
    }
}

static void *work(void *arg)
{
    const unsigned thread = (unsigned) (uintptr_t) arg;
    static dn_comp_t comp[THREADS][TRANSFERS];
    uint64_t random = thread;
    dn_segment_t *segment = NULL;
    dn_peer_t *again = NULL;
    const dn_board_seat_t *seat = &world->board->seat[1 - world->rank];

    for (uint64_t i = 0; i < MESSAGES; i++) {
        send_numbered(thread, i, &random);
        if (0 == i % 8) {
            dn_world_progress(world);
        }
        if (i % (MESSAGES / TRANSFERS) == 0 && i / (MESSAGES / TRANSFERS) < TRANSFERS) {
            const uint64_t k = i / (MESSAGES / TRANSFERS);
            comp[thread][k].fn = completion;
            transfer(thread, k, &comp[thread][k]);
            dn_world_aotf(world, peer, seat->off[0] + 8 * thread, k + 1, 8);
            dn_check(0 <= dn_fence(peer));
            dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &again), DN_OK);
            dn_check(again == peer);
            dn_check_equal(dn_segment_alloc(world->port, 5000, &segment), DN_OK);
            dn_segment_free(segment);
            dn_disconnect(again);
        }
    }
    for (unsigned t = 0; t < THREADS; t++) {
        while (dn_load_acquire(&received[t]) < MESSAGES) {
            dn_world_progress(world);
        }
    }
    while (dn_load_acquire(&completed) < THREADS * TRANSFERS) {
        dn_world_progress(world);
    }
    return NULL;
}

static void stress(dn_world_t *here)
{
    pthread_t thread[THREADS];
    static uint8_t memory[BYTES];
    dn_segment_t *segment[2];
    void *words;

    world = here;
    world->job.threads = 1;
    dn_world_open(world);
    dn_check_equal(dn_llcm_alloc(world->port, 8 * THREADS, &world->me->off[0], &words), DN_OK);
    dn_world_barrier(world);
    dn_world_connect(world);
    peer = world->peer[1 - world->rank];
    dn_check_equal(dn_segment_alloc(world->port, BYTES, &segment[0]), DN_OK);
    dn_check_equal(dn_segment_register(world->port, memory, BYTES, &segment[1]), DN_OK);
    dn_segment_key(segment[0], &world->me->key[0]);
    dn_segment_key(segment[1], &world->me->key[1]);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, receive, NULL), DN_OK);
    dn_world_barrier(world);
    for (uintptr_t t = 0; t < THREADS; t++) {
        dn_check_equal(pthread_create(&thread[t], NULL, work, (void *) t), 0);
    }
    for (unsigned t = 0; t < THREADS; t++) {
        dn_check_equal(pthread_join(thread[t], NULL), 0);
    }
    dn_world_fence(world, peer);
    dn_world_barrier(world);
    for (unsigned t = 0; t < THREADS; t++) {
        dn_check_equal(dn_load_acquire((uint64_t *) words + t), TRANSFERS);
    }
    dn_world_stop(world);
    for (unsigned t = 0; t < THREADS; t++) {
        dn_check_equal(received[t], MESSAGES);
    }
    dn_check_equal(completed, THREADS * TRANSFERS);
}

static int has_device(const char *name)
{
    size_t i = 0;

    while (NULL != dn_device_name(i) && 0 != strcmp(name, dn_device_name(i))) {
        i++;
    }
    return NULL != dn_device_name(i);
}

/** usage: stress_threads [DEVICE] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "threads", .device = 1 < argc ? argv[1] : "shm"};
    const dn_variant_t ring = {
        .file = "threads, ring only", .device = "shm", .settings = "cma=0 ring_lines=256"};
    const dn_variant_t fault = {.file = "threads, faults",
                                .device = "shm",
                                .settings = "cma=0 fault=botf:again/5,botf:delay/20,all:slow/3,seed=3"};

    const dn_variant_t emulate = {.file = "threads, emulation", .device = "emulate:dimmnet1-d"};
    const dn_variant_t ipnuma = {.file = "threads, UDP", .device = "ipnuma:lo"};

    if (1 < argc) {
        return dn_world_run("stress_threads", &variant, 2, stress);
    }
    return dn_world_run("stress_threads", &variant, 2, stress)
           | dn_world_run("stress_threads", &ring, 2, stress)
           | dn_world_run("stress_threads", &fault, 2, stress)
           | (has_device("ipnuma") ? dn_world_run("stress_threads", &ipnuma, 2, stress) : 0)
           | (has_device("emulate") ? dn_world_run("stress_threads", &emulate, 2, stress) : 0);
}
