/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The watcher: a thread that does the work of a network card. While the program computes or sleeps, the watcher reads what comes, and so
 * does what peers ask of the memory of this process. It rings the bell of a program that sleeps, when something came that the program may
 * wait for. While the program looks at the network itself, the watcher naps until the program stops doing so (dn_lull_t), or goes to
 * sleep. Where the provider has no file to wait for, the watcher looks at the network now and then, and the program sleeps by the clock.
 *
 * The watcher looks after peers, too. It asks a peer that is silent for half of the time limit. The peer is lost if it has not answered
 * at the end of the limit. A program may compute for longer than that: the watcher answers in its place. The watcher also sends what was
 * gathered, if the application makes no progress (dn_ofi_queue.c). It starts when this process has told its address, or has a peer; without
 * a time limit (timeout_s) there is no watcher. It runs no handler and no completion.
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "dn_log.h"
#include "dn_thread.h"

/** The watcher looks after peers so many times in one time limit. */
#define DN_OFI_LOOKS 8
/** A peer that lives has so many time limits to say what has come of a stream: on a slow network, words are late. */
#define DN_OFI_DEAF 2
/** Longest time that gathered messages wait if the program makes no progress. */
#define DN_OFI_GUARD_NS UINT64_C(200000)
/** Most turns in which the watcher reads messages that came, before it looks after peers. */
#define DN_OFI_CATCH_UP 1000
/** Time between two looks at the network where the provider has no file to wait for, or work waits for room. */
#define DN_OFI_APART_NS UINT64_C(1000000)
/** Shortest sleep. Without it, a time in the past would have the watcher look without end. */
#define DN_OFI_SLEEP_LEAST_NS UINT64_C(50000)

/** Arrows of the drawing in dn_ofi_state.h. */
const uint32_t dn_ofi_watch_turns[] = {
    [DN_OFI_WATCH_NONE] = DN_TURN_TO(DN_OFI_WATCH_SLEEPS),
    [DN_OFI_WATCH_SLEEPS] =
        DN_TURN_TO(DN_OFI_WATCH_READS) | DN_TURN_TO(DN_OFI_WATCH_NAPS) | DN_TURN_TO(DN_OFI_WATCH_NONE),
    [DN_OFI_WATCH_READS] = DN_TURN_TO(DN_OFI_WATCH_SLEEPS),
    [DN_OFI_WATCH_NAPS] = DN_TURN_TO(DN_OFI_WATCH_SLEEPS),
};

/** Ask a silent peer. If this process has no stream to the peer yet, one is opened. */
static void dn_ofi_probe(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (NULL != peer->tx || DN_OK == dn_ofi_open_stream(ofi, peer)) {
        dn_ofi_inquire(ofi, peer->tx);
    }
}

/** Have all messages of a stream come that the provider has taken? The provider does not report the fate of short messages (fi_inject()).
 * A connection that breaks loses the messages that it held, and the next message opens another connection.
 * @return what is wrong; NULL: nothing. */
static const char *dn_ofi_find_lost(dn_ofi_t *ofi, dn_ofi_stream_t *stream, uint64_t now)
{
    const uint64_t sent = NULL == stream->first ? stream->number : dn_ofi_head(stream->first)->number;

    if (DN_OFI_TX_GREETS == stream->state) {
        if (dn_ofi_follows(ofi, stream)) {
            /* It has said no HELLO yet. */
            stream->greet.since = now;
        }
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

/** Look after all streams to peers. If messages of a stream are lost, its peer is given up. A stream that was left has no peer, and ends.
 * @param[in] away  Not 0: the watcher has not looked for some time. */
static void dn_ofi_look_at_streams(dn_ofi_t *ofi, uint64_t now, int away)
{
    for (uint32_t i = 0; i < ofi->nstreams; i++) {
        dn_ofi_stream_t *stream = ofi->stream[i];
        if (NULL == stream || dn_ofi_stream_ended(stream)
            || (NULL != stream->peer && dn_ofi_is_doubted(stream->peer))) {
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
            dn_log_later(&ofi->log, "PID %" PRIu32 " %s; it is given up", stream->peer->base.pid, wrong);
            dn_ofi_condemn(ofi, stream->peer, DN_PEER_SUSPECT);
        }
    }
}

/** Is there a stream from or to a peer, so that the peer has to answer? */
static int dn_ofi_is_watched(const dn_ofi_t *ofi, const dn_ofi_peer_t *peer)
{
    return !peer->self && !dn_ofi_is_doubted(peer) && DN_OFI_KNOWN == peer->owner
           && (NULL == peer->tx || !dn_ofi_follows(ofi, peer->tx))
           && (NULL != peer->tx || DN_OFI_RX_OPEN == peer->rx.state);
}

/** Look after all peers. */
static void dn_ofi_look(dn_ofi_t *ofi)
{
    const uint64_t now = dn_clock_ns();
    /* If the watcher has not looked for some time, messages of peers may have come, and not been read yet. */
    const int away = now - ofi->watcher.looked > ofi->timeout_ns / 2;

    ofi->watcher.looked = now;
    dn_ofi_expire(ofi, 0);
    dn_ofi_look_at_streams(ofi, now, away);
    for (dn_ofi_peer_t *peer = ofi->peers; NULL != peer; peer = peer->next) {
        if (away || !dn_ofi_is_watched(ofi, peer) || peer->watch.signs != peer->watch.signs_at) {
            peer->watch.signs_at = peer->watch.signs;
            peer->watch.since = now;
        } else if (now - peer->watch.since > ofi->timeout_ns) {
            dn_log_later(&ofi->log,
                         "nothing was heard from PID %" PRIu32 " for %" PRIu64
                         " s (timeout_s); it is given up",
                         peer->base.pid, ofi->timeout_ns / UINT64_C(1000000000));
            dn_ofi_condemn(ofi, peer, DN_PEER_SUSPECT);
        } else if (now - peer->watch.since > ofi->timeout_ns / 2) {
            dn_ofi_probe(ofi, peer);
        }
    }
}

void dn_ofi_watch_call(const dn_ofi_t *ofi)
{
    if (0 <= ofi->watcher.event) {
        dn_thread_call(ofi->watcher.event);
    }
}

/** Have the watcher sleep until a time, until the network can be read (only if @p listens), or until it is called. The lock is let go.
 * @return whether the network can be read. */
static int dn_ofi_sleep(dn_ofi_t *ofi, uint64_t until, int listens)
{
    struct pollfd wait[2] = {{.fd = ofi->watcher.event, .events = POLLIN},
                             {.fd = ofi->cq_fd, .events = POLLIN}};
    const uint64_t begin = dn_clock_ns();
    const int backlog = listens && ofi->backlog;
    int woken = 0;

    /* Only the watcher runs here, so it need not call itself when it lets go of the lock. */
    ofi->after &= ~DN_OFI_AFTER_CALL;
    dn_ofi_unlock(ofi);
    if (backlog) {
        /* The file does not tell of completions that the provider has already. The program may want the lock. */
        dn_pause();
    } else {
        woken = dn_thread_wait(wait, listens && 0 <= wait[1].fd ? 2 : 1,
                               until < begin + DN_OFI_SLEEP_LEAST_NS ? begin + DN_OFI_SLEEP_LEAST_NS : until);
    }
    dn_ofi_lock(ofi);
    dn_awake_slept(&ofi->watcher.awake, begin, dn_clock_ns(), woken);
    return 0 != wait[1].revents;
}

/** Have the watcher nap until the program looks no more, until a time, or until the watcher is called. The lock is let go. */
static void dn_ofi_nap(dn_ofi_t *ofi, uint64_t until)
{
    const uint64_t begin = dn_clock_ns();

    dn_ofi_watch_turn(ofi, DN_OFI_WATCH_NAPS);
    ofi->after &= ~DN_OFI_AFTER_CALL;
    dn_ofi_unlock(ofi);
    const uint64_t turns = dn_lull_wait(&ofi->watcher.lull, ofi->watcher.event, &ofi->turns, until);
    dn_ofi_lock(ofi);
    dn_ofi_watch_turn(ofi, DN_OFI_WATCH_SLEEPS);
    ofi->watcher.turns = turns;
    dn_awake_slept(&ofi->watcher.awake, begin, dn_clock_ns(), 0);
}

/** Have the watcher do a turn, in the place of the program. @return events. */
static int dn_ofi_serve_turn(dn_ofi_t *ofi)
{
    dn_ofi_watch_turn(ofi, DN_OFI_WATCH_READS);
    const int n = dn_ofi_turn(ofi);
    dn_ofi_let_go(ofi);
    dn_ofi_watch_turn(ofi, DN_OFI_WATCH_SLEEPS);
    return n;
}

/** Will the program be woken when the lock is let go? It wants a core then, and reads itself. */
static int dn_ofi_wakes(const dn_ofi_t *ofi)
{
    /* Relaxed suffices: the ring itself looks again. */
    return 0 != (DN_OFI_AFTER_RING & ofi->after) && 0 != dn_load_relaxed_u32(ofi->iface.bell) % 2;
}

/** Can the network be read? A read of this process' memory by a peer makes no event: the provider answers it in a turn that seems to be in
 * vain. Only the file of the network tells of it. The lock is not held. */
static int dn_ofi_is_readable(const dn_ofi_t *ofi)
{
    struct pollfd network = {.fd = ofi->cq_fd, .events = POLLIN};

    return 0 <= network.fd && 0 < poll(&network, 1, 0);
}

/** Have the watcher stay awake after a request, since the sender may send its next request when it has the answer. */
static void dn_ofi_look_on(dn_ofi_t *ofi)
{
    const uint64_t turns = ofi->turns;
    uint64_t now = dn_clock_ns();
    int came = 0;

    if (!dn_awake_begin(&ofi->watcher.awake, now)) {
        return;
    }
    while (dn_awake_lasts(&ofi->watcher.awake, now, came) && turns == ofi->turns && !ofi->closing
           && !dn_ofi_wakes(ofi)) {
        /* The program may want the lock. */
        dn_ofi_unlock(ofi);
        dn_pause();
        const int readable = dn_ofi_is_readable(ofi);
        dn_ofi_lock(ofi);
        came = 0 != dn_ofi_serve_turn(ofi) || readable;
        now = dn_clock_ns();
    }
    /* The thread may go to another core, and wait there for its turn. */
    dn_ofi_unlock(ofi);
    const uint64_t off = dn_awake_end(&ofi->watcher.awake, now);
    dn_ofi_lock(ofi);
    if (0 != off) {
        dn_ofi_sleep(ofi, now + off, 0);
    }
}

/** Read the messages that the program has left unread, then look after all peers. @return 0: not yet, since a sleeping program has to be
 * woken first, and there may be signs of life that are not read. */
static int dn_ofi_look_after(dn_ofi_t *ofi)
{
    for (int i = 0; i < DN_OFI_CATCH_UP && ofi->backlog && !dn_ofi_wakes(ofi) && 0 != dn_ofi_serve_turn(ofi);
         i++) {
    }
    if (ofi->backlog && dn_ofi_wakes(ofi)) {
        return 0;
    }
    dn_ofi_look(ofi);
    return 1;
}

/** When the watcher has work to do, if nothing comes and no thread calls it. */
static uint64_t dn_ofi_timer(const dn_ofi_t *ofi, uint64_t look_at)
{
    uint64_t at = look_at;

    if (0 > ofi->cq_fd || ofi->work) {
        const uint64_t soon = dn_clock_ns() + DN_OFI_APART_NS;
        at = soon < at ? soon : at;
    }
    return 0 != ofi->greeting && ofi->greet_at < at ? ofi->greet_at : at;
}

static void *dn_ofi_beat(void *arg)
{
    dn_ofi_t *ofi = arg;
    const uint64_t begin = dn_clock_ns();
    uint64_t look_at = begin + ofi->timeout_ns / DN_OFI_LOOKS;
    int readable = 0;

    dn_ofi_lock(ofi);
    dn_awake_start(&ofi->watcher.awake, begin);
    while (!ofi->closing) {
        if (ofi->watcher.guards) {
            dn_ofi_sleep(ofi, dn_clock_ns() + DN_OFI_GUARD_NS, 0);
            /* Send the gathered messages that the program has not sent meanwhile. */
            ofi->watcher.guards = NULL != ofi->gathering;
            dn_ofi_let_go(ofi);
        }
        /* Does the program look at the network? If it has gone to sleep since its last turn, the watcher has to read and ring. */
        const int polled = ofi->watcher.turns != ofi->turns && ofi->watcher.handed != ofi->turns;
        ofi->watcher.turns = ofi->turns;
        if (!polled && (0 != dn_ofi_serve_turn(ofi) || readable)) {
            if (ofi->contenders <= ofi->units && !dn_ofi_wakes(ofi)) {
                dn_ofi_look_on(ofi);
            } else {
                ofi->backlog = 1;
            }
        }
        readable = 0;
        if (dn_clock_ns() >= look_at && dn_ofi_look_after(ofi)) {
            look_at = dn_clock_ns() + ofi->timeout_ns / DN_OFI_LOOKS;
        }
        if (ofi->watcher.guards || ofi->closing) {
            continue;
        }
        if (polled) {
            dn_ofi_nap(ofi, look_at);
        } else {
            readable = dn_ofi_sleep(ofi, dn_ofi_timer(ofi, look_at), 1);
        }
    }
    dn_ofi_unlock(ofi);
    return NULL;
}

void dn_ofi_watch_start(dn_ofi_t *ofi)
{
    if (0 == ofi->timeout_ns || DN_OFI_WATCH_NONE != ofi->watcher.state) {
        return;
    }
    ofi->watcher.looked = dn_clock_ns();
    ofi->watcher.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int failed = 0 > ofi->watcher.event ? errno : dn_lull_open(&ofi->watcher.lull);
    if (0 == failed) {
        failed = dn_thread_start(&ofi->watcher.thread, dn_ofi_beat, ofi);
    }
    if (0 == failed) {
        dn_ofi_watch_turn(ofi, DN_OFI_WATCH_SLEEPS);
    } else {
        ofi->timeout_ns = 0;
        dn_log_later(&ofi->log,
                     "no thread can be made to serve what comes over ofi, and to look after peers: %s; one "
                     "that falls silent is waited for; raise limits, as of processes",
                     strerror(failed));
    }
}

void dn_ofi_watch_free(dn_ofi_t *ofi)
{
    if (0 <= ofi->watcher.event) {
        close(ofi->watcher.event);
        ofi->watcher.event = -1;
    }
    dn_lull_close(&ofi->watcher.lull);
}

void dn_ofi_watch_close(dn_ofi_t *ofi)
{
    dn_ofi_lock(ofi);
    ofi->closing = 1;
    const int runs = DN_OFI_WATCH_NONE != ofi->watcher.state;
    dn_ofi_unlock(ofi);
    dn_ofi_watch_call(ofi);
    if (runs) {
        pthread_join(ofi->watcher.thread, NULL);
        dn_ofi_watch_turn(ofi, DN_OFI_WATCH_NONE);
    }
    dn_ofi_watch_free(ofi);
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
