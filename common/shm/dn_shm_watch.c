/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_watch.c
 * What a process does now and then while it polls: it forgets who has closed, and by a slow clock it looks after its
 * peers and tries again what it had no descriptor or memory for.
 *
 * A peer that is killed says nothing, and who only waits for its messages sends it nothing either. So each peer's process is
 * looked at once in 500 ms and 2 ms more for each peer. The looks are spread over that time, since each takes some 20 us, so
 * that looks never take more than 1 % of the time. A process that closed its port has left in
 * order: that is no news unless something is sent to it.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <time.h>
#include <unistd.h>

/** Polls between two looks at the clock: some 3 us of vain ones, and 1/4 s where the process sleeps between them. */
#define DN_SHM_POLLS 256

/** Milliseconds in which each peer is looked at once, and how many more for each of them. */
#define DN_SHM_WATCH_MS      500u
#define DN_SHM_WATCH_MORE_MS 2u
/** A process that did not poll for longer than that need not catch up. */
#define DN_SHM_WATCH_AWAY_MS 500u

/** Milliseconds from an attempt for which there was no descriptor or memory to the next. */
#define DN_SHM_RETRY_MS 200u

uint64_t dn_shm_now_ns(void)
{
    struct timespec now;

    /* Read from a page of the kernel's: no system call. */
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

uint64_t dn_shm_now_ms(void)
{
    return dn_shm_now_ns() / 1000000;
}

void dn_shm_watch_start(dn_shm_t *shm)
{
    shm->patience = DN_SHM_POLLS;
    shm->watched_ms = dn_shm_now_ms();
}

/** One of the processes that could end without a word? */
static int dn_shm_is_watched(const dn_shm_t *shm, const dn_peer_base_t *base)
{
    const dn_shm_peer_t *peer = (const dn_shm_peer_t *) base;

    return &shm->iface == base->iface && !dn_peer_is_lost(base) && !peer->self
           && 0 == dn_load_acquire_u32(&peer->map.header->closed);
}

/** Has it ended? Not when nothing can be told of this process either: /proc is not there any more. */
static int dn_shm_has_ended(const dn_shm_t *shm, const dn_shm_peer_t *peer)
{
    return dn_shm_gone(peer->process.os_pid, peer->process.start_time)
           && !dn_shm_gone((uint32_t) getpid(), shm->start_time);
}

/** Look at the next so many peers. */
static void dn_shm_look_after(dn_shm_t *shm, uint32_t looks)
{
    uint32_t at = 0;

    for (dn_peer_base_t *base = dn_port_peers(shm->iface.port), *next; NULL != base && 0 != looks;
         base = next) {
        next = base->next;
        if (!dn_shm_is_watched(shm, base) || at++ < shm->watch_at) {
            continue;
        }
        shm->watch_at++;
        looks--;
        if (dn_shm_has_ended(shm, (dn_shm_peer_t *) base)) {
            /* It is watched no more: the next one has its place. */
            shm->watch_at--;
            at--;
            dn_port_peer_lost(shm->iface.port, base);
        }
    }
}

/** As many looks as the time since the last asks for. */
static void dn_shm_watch(dn_shm_t *shm, uint64_t elapsed_ms)
{
    const uint32_t elapsed = elapsed_ms < DN_SHM_WATCH_AWAY_MS ? (uint32_t) elapsed_ms : DN_SHM_WATCH_AWAY_MS;
    uint32_t watched = 0;

    for (const dn_peer_base_t *base = dn_port_peers(shm->iface.port); NULL != base; base = base->next) {
        watched += (uint32_t) dn_shm_is_watched(shm, base);
    }
    const uint32_t round = DN_SHM_WATCH_MS + watched * DN_SHM_WATCH_MORE_MS;
    shm->watch_due += watched * elapsed;
    const uint32_t looks = shm->watch_due / round;
    if (0 == looks) {
        return;
    }
    shm->watch_due %= round;
    if (shm->watch_at >= watched) {
        shm->watch_at = 0;
    }
    dn_shm_look_after(shm, looks);
}

void dn_shm_chores(dn_shm_t *shm)
{
    const uint64_t now = dn_shm_now_ms();

    if (shm->ending) {
        dn_shm_reap(shm);
    }
    if (now != shm->watched_ms) {
        const uint64_t elapsed = now - shm->watched_ms;
        shm->watched_ms = now;
        dn_shm_watch(shm, elapsed);
        if (0 != shm->retry_ms && now >= shm->retry_ms) {
            shm->retry_ms = 0;
            dn_shm_retry(shm);
        }
    }
    shm->patience = shm->ending ? 1 : DN_SHM_POLLS;
}

void dn_shm_retry_later(dn_shm_t *shm)
{
    if (0 == shm->retry_ms) {
        shm->retry_ms = dn_shm_now_ms() + DN_SHM_RETRY_MS;
    }
}

void dn_shm_close_later(dn_shm_t *shm, dn_shm_peer_t *peer)
{
    if (DN_SHM_RX_READS == peer->rx->state) {
        dn_shm_rx_turn(peer->rx, DN_SHM_RX_ENDS);
    }
    shm->ending = 1;
    shm->patience = 1;
}
