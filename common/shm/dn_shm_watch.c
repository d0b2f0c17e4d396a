/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_watch.c
 * Chores of a process that polls. The process drops senders that have closed. By a slow clock it checks whether its peers
 * live, and looks again at senders for which it had no descriptor or memory.
 *
 * A peer that is killed tells nothing, and a process that only waits for the peer's messages does not find out by sending. So
 * the process of each peer is checked once in a round of 500 ms, and 2 ms more for each peer. The checks are spread over the
 * round. A check takes some 20 us, so all checks never take more than 1 % of the time. A process that has closed its port has
 * left in order: its end is no loss unless something is sent to it afterwards, or an answer of it is waited for.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <time.h>
#include <unistd.h>

/** Polls between two looks at the clock. Polls in vain take some 3 us together, or 1/4 s where the process sleeps between polls. */
#define DN_SHM_POLLS 256

/** Milliseconds of a round in which each peer is checked once, and further milliseconds of the round for each peer. */
#define DN_SHM_WATCH_MS      500u
#define DN_SHM_WATCH_MORE_MS 2u
/** A process that did not poll for longer than this need not make up for more checks than are due in this time. */
#define DN_SHM_WATCH_AWAY_MS 500u

/** Milliseconds from an attempt for which there was no descriptor or memory to the next attempt. */
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

/** Is this a peer of the device's whose end is not known yet? */
static int dn_shm_is_other(const dn_shm_t *shm, const dn_peer_base_t *base)
{
    return &shm->iface == base->iface && !dn_peer_is_lost(base) && !((const dn_shm_peer_t *) base)->self;
}

/** Could the process of this peer end without telling this process? */
static int dn_shm_is_watched(const dn_shm_t *shm, const dn_peer_base_t *base)
{
    return dn_shm_is_other(shm, base) && !dn_shm_has_closed((const dn_shm_peer_t *) base);
}

/** Has all been read that a peer has sent, which has closed its port, or can nothing more be read, as a handler is wanting? A ring that it
 * has opened before that is not attached yet where the device has not looked at all arrivals, or tries one again later. */
static int dn_shm_has_read(const dn_shm_t *shm, const dn_shm_peer_t *peer)
{
    return (NULL == peer->rx || dn_shm_is_held(shm, peer->rx))
           && shm->seen == dn_load_acquire_u32(&shm->map.header->arrivals) && 0 == shm->retry_ms;
}

/** Has this process sent a message to a peer after that has closed its port? The credit in the ring covers all that came before the close. */
static int dn_shm_came_late(dn_shm_peer_t *peer)
{
    if (peer->threads && !dn_trylock(&peer->lock)) {
        /* A thread sends just now. The next look tells. */
        return 0;
    }
    const int late = !dn_line_is_taken(&peer->tx);
    dn_shm_unlock_tx(peer);
    return late;
}

/** A peer has closed its port. Where this process waits for answers, wants something else, or has sent a message since, it is told, once all
 * is read that the peer has sent. */
static void dn_shm_note_closed(dn_shm_t *shm, dn_peer_base_t *base)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) base;

    dn_port_peer_closed(shm->iface.port, base);
    if ((0 != base->core.asked || 0 != dn_load_relaxed_u32(&base->wanted) || dn_shm_came_late(peer))
        && dn_shm_has_read(shm, peer) && !dn_peer_is_doubted(base)) {
        dn_peer_doubt(base, DN_PEER_SUSPECT);
    }
}

/** Has the process of a peer ended? No, if this very process seems to have ended, too: then /proc is not there any more. */
static int dn_shm_has_ended(const dn_shm_t *shm, const dn_shm_peer_t *peer)
{
    return dn_shm_gone(peer->process.os_pid, peer->process.start_time)
           && !dn_shm_gone((uint32_t) getpid(), shm->start_time);
}

/** Check the next @p looks peers. */
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
            /* It is watched no more: the next one has its place. Completions that it signals may change the list. */
            shm->watch_at--;
            at = 0;
            dn_port_peer_lost(shm->iface.port, base);
            next = dn_port_peers(shm->iface.port);
        }
    }
}

/** Check as many peers as are due after @p elapsed_ms milliseconds. */
static void dn_shm_watch(dn_shm_t *shm, uint64_t elapsed_ms)
{
    const uint32_t elapsed = elapsed_ms < DN_SHM_WATCH_AWAY_MS ? (uint32_t) elapsed_ms : DN_SHM_WATCH_AWAY_MS;
    uint32_t watched = 0;

    for (dn_peer_base_t *base = dn_port_peers(shm->iface.port); NULL != base; base = base->next) {
        if (dn_shm_is_watched(shm, base)) {
            watched++;
        } else if (dn_shm_is_other(shm, base)) {
            dn_shm_note_closed(shm, base);
        }
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
    shm->patience = 0 != (shm->ending & DN_SHM_ENDS_SOON) ? 1 : DN_SHM_POLLS;
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
    shm->ending |= DN_SHM_ENDS_SOON;
    shm->patience = 1;
}
