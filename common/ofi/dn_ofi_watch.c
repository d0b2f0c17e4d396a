/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Who is still there. A peer that is silent for half of the time limit is
 * asked, and lost when it has not answered at its end. A process may compute
 * for longer than that. So a thread, which sleeps nearly always, answers in its
 * place, and looks after the peers. It also sends what was gathered when the
 * application does not progress (dn_ofi_queue.c). It starts when this
 * process has said where it is, or has a peer, and runs no handler and no completion.
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <time.h>

#include "dn_log.h"
#include "dn_thread.h"

/** Looks in one time limit. */
#define DN_OFI_LOOKS 8
/** Time limits after which a peer that lives has to say what came of a stream: a slow network keeps words waiting. */
#define DN_OFI_DEAF 2
/** For which messages of a burst wait at most, should the application not
 * progress. */
#define DN_OFI_GUARD_NS UINT64_C(200000)
/** Turns in which the thread reads what came. */
#define DN_OFI_CATCH_UP 1000

/** Arrows of the drawing in dn_ofi_state.h. */
const uint32_t dn_ofi_watch_turns[] = {
    [DN_OFI_WATCH_NONE] = DN_TURN_TO(DN_OFI_WATCH_SLEEPS),
    [DN_OFI_WATCH_SLEEPS] = DN_TURN_TO(DN_OFI_WATCH_READS) | DN_TURN_TO(DN_OFI_WATCH_NONE),
    [DN_OFI_WATCH_READS] = DN_TURN_TO(DN_OFI_WATCH_SLEEPS),
};

/** Ask a silent peer. One that only sends to us has no stream of ours yet. */
static void dn_ofi_probe(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (NULL != peer->tx || DN_OK == dn_ofi_open_stream(ofi, peer)) {
        dn_ofi_inquire(ofi, peer->tx);
    }
}

/** Has all come that was handed to the provider? It says nothing of short
 * messages (fi_inject), and a connection that breaks takes along what it held,
 * though the next message opens another. @return what is wrong, NULL: nothing. */
static const char *dn_ofi_find_lost(dn_ofi_t *ofi, dn_ofi_stream_t *stream, uint64_t now)
{
    const uint64_t sent = NULL == stream->first ? stream->number : dn_ofi_head(stream->first)->number;

    if (DN_OFI_TX_GREETS == stream->state) {
        return NULL == stream->peer && now - stream->greet.since > ofi->timeout_ns ? "was never opened"
                                                                                   : NULL;
    }
    if (0 != stream->asks.at && now - stream->asks.since > DN_OFI_DEAF * ofi->timeout_ns) {
        return "does not answer to messages, though it says others";
    }
    if (sent == stream->stored || stream->watch.seen != stream->stored) {
        stream->watch.unheard = 0;
        stream->watch.seen = stream->stored;
    } else if (0 == stream->asks.at && DN_OFI_LOOKS < ++stream->watch.unheard) {
        return "had a connection that broke, and messages were lost";
    }
    if (sent != stream->stored || NULL != stream->first || NULL == stream->peer) {
        dn_ofi_inquire(ofi, stream);
    }
    return NULL;
}

/** Look after all streams to others. One that was left has nobody who could be given up, and ends. */
static void dn_ofi_look_at_streams(dn_ofi_t *ofi, uint64_t now, int away)
{
    for (uint32_t i = 0; i < ofi->nstreams; i++) {
        dn_ofi_stream_t *stream = ofi->stream[i];
        if (NULL == stream || dn_ofi_stream_ended(stream)
            || (NULL != stream->peer && dn_peer_is_doubted(&stream->peer->base))) {
            continue;
        }
        if (away) {
            stream->asks.since = now;
            continue;
        }
        const char *wrong = dn_ofi_find_lost(ofi, stream, now);
        if (NULL != wrong && NULL == stream->peer) {
            dn_ofi_stream_end(stream);
            dn_ofi_settle_stream(ofi, stream);
        } else if (NULL != wrong) {
            dn_log_error("PID %" PRIu32 " %s; it is given up", stream->peer->base.pid, wrong);
            dn_peer_doubt(&stream->peer->base, DN_PEER_SUSPECT);
        }
    }
}

/** Does anything connect us with it, so that it should answer? */
static int dn_ofi_is_watched(const dn_ofi_t *ofi, const dn_ofi_peer_t *peer)
{
    return !peer->self && !dn_peer_is_doubted(&peer->base) && DN_OFI_KNOWN == peer->owner
           && (NULL == peer->tx || !dn_ofi_follows(ofi, peer->tx))
           && (NULL != peer->tx || DN_OFI_RX_OPEN == peer->rx.state);
}

/** Look after all peers. */
static void dn_ofi_look(dn_ofi_t *ofi)
{
    const uint64_t now = dn_clock_ns();
    /* After some time without looking we may not have read yet what they said. */
    const int away = now - ofi->watcher.looked > ofi->timeout_ns / 2;

    ofi->watcher.looked = now;
    dn_ofi_expire(ofi, 0);
    dn_ofi_look_at_streams(ofi, now, away);
    for (dn_ofi_peer_t *peer = ofi->peers; NULL != peer; peer = peer->next) {
        if (away || !dn_ofi_is_watched(ofi, peer) || peer->watch.signs != peer->watch.signs_at) {
            peer->watch.signs_at = peer->watch.signs;
            peer->watch.since = now;
        } else if (now - peer->watch.since > ofi->timeout_ns) {
            dn_log_error("nothing was heard from PID %" PRIu32 " for %" PRIu64
                         " s (timeout_s); it is given up",
                         peer->base.pid, ofi->timeout_ns / UINT64_C(1000000000));
            dn_peer_doubt(&peer->base, DN_PEER_SUSPECT);
        } else if (now - peer->watch.since > ofi->timeout_ns / 2) {
            dn_ofi_probe(ofi, peer);
        }
    }
}

/** Wait until some time, until there is something to guard, or until the thread
 * is to end. */
static void dn_ofi_rest(dn_ofi_t *ofi, uint64_t until)
{
    const int guarding = ofi->watcher.guards;
    const uint32_t greeting = ofi->greeting;
    const struct timespec end = {(time_t) (until / UINT64_C(1000000000)),
                                 (long) (until % UINT64_C(1000000000))};

    while (!ofi->closing && guarding == ofi->watcher.guards && greeting == ofi->greeting
           && ETIMEDOUT != pthread_cond_timedwait(&ofi->watcher.wake, &ofi->lock, &end)) {
    }
}

static void *dn_ofi_beat(void *arg)
{
    dn_ofi_t *ofi = arg;
    uint64_t turns = 0, greeted = 0;
    uint64_t look_at = dn_clock_ns() + ofi->timeout_ns / DN_OFI_LOOKS;

    dn_ofi_lock(ofi);
    while (!ofi->closing) {
        const int guarding = ofi->watcher.guards;
        const uint64_t greet_at = 0 != ofi->greeting && ofi->greet_at < look_at ? ofi->greet_at : look_at;
        dn_ofi_rest(ofi, guarding ? dn_clock_ns() + DN_OFI_GUARD_NS : greet_at);
        if (guarding) {
            /* What the application has not sent since by its progress. */
            ofi->watcher.guards = NULL != ofi->gathering;
            dn_ofi_let_go(ofi);
        }
        if (0 != ofi->greeting && greeted == ofi->turns) {
            /* Nobody reads the answer, and what waits for it stays here. */
            dn_ofi_watch_turn(ofi, DN_OFI_WATCH_READS);
            dn_ofi_turn(ofi);
            dn_ofi_watch_turn(ofi, DN_OFI_WATCH_SLEEPS);
        }
        greeted = ofi->turns;
        if (dn_clock_ns() < look_at) {
            continue;
        }
        if (turns == ofi->turns || ofi->backlog) {
            dn_ofi_watch_turn(ofi, DN_OFI_WATCH_READS);
            for (int i = 0; i < DN_OFI_CATCH_UP && 0 != dn_ofi_turn(ofi); i++) {
            }
            dn_ofi_watch_turn(ofi, DN_OFI_WATCH_SLEEPS);
        }
        turns = ofi->turns;
        dn_ofi_look(ofi);
        look_at = dn_clock_ns() + ofi->timeout_ns / DN_OFI_LOOKS;
    }
    dn_ofi_unlock(ofi);
    return NULL;
}

void dn_ofi_watch_open(dn_ofi_t *ofi)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&ofi->watcher.wake, &attr);
    pthread_condattr_destroy(&attr);
}

void dn_ofi_watch_start(dn_ofi_t *ofi)
{
    if (0 == ofi->timeout_ns || DN_OFI_WATCH_NONE != ofi->watcher.state) {
        return;
    }
    ofi->watcher.looked = dn_clock_ns();
    if (0 == dn_thread_start(&ofi->watcher.thread, dn_ofi_beat, ofi)) {
        dn_ofi_watch_turn(ofi, DN_OFI_WATCH_SLEEPS);
    } else {
        ofi->timeout_ns = 0;
        dn_log_error("no thread can be made to look after peers; one that falls "
                     "silent is waited for");
    }
}

void dn_ofi_watch_close(dn_ofi_t *ofi)
{
    dn_ofi_lock(ofi);
    ofi->closing = 1;
    pthread_cond_signal(&ofi->watcher.wake);
    dn_ofi_unlock(ofi);
    if (DN_OFI_WATCH_NONE != ofi->watcher.state) {
        pthread_join(ofi->watcher.thread, NULL);
        dn_ofi_watch_turn(ofi, DN_OFI_WATCH_NONE);
    }
}

void dn_ofi_linger(dn_ofi_t *ofi)
{
    const uint64_t until = dn_clock_ns() + DN_OFI_LINGER_NS;

    dn_ofi_lock(ofi);
    while (0 != dn_load_seq_cst(&ofi->draining) && dn_clock_ns() < until) {
        if (0 == dn_ofi_poll(ofi)) {
            sched_yield();
        }
        for (uint32_t i = 0; i < ofi->nstreams; i++) {
            if (NULL != ofi->stream[i]) {
                dn_ofi_advance(ofi, ofi->stream[i]);
                dn_ofi_settle_stream(ofi, ofi->stream[i]);
            }
        }
    }
    dn_ofi_unlock(ofi);
}
