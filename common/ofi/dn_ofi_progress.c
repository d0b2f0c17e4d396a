/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

/* A look at the network is a system call. It costs more than a message in shared memory, for which the program may be waiting. So calls of
 * progress are left out. */

/** While this device has no peer: calls that are left out between two looks at the clock. Another device of the list has the peers. */
#define DN_OFI_ALONE 127
/** While this device has no peer: time between two looks at the network. */
#define DN_OFI_ALONE_NS UINT64_C(500000)
/** While nothing comes and nothing is to go out: calls that are left out between two looks at the network. A program that turns to
 * computing leaves out so many slow calls, too, but only once. No calls are left out while an answer may be on its way, or while the
 * provider may be answering reads for this process, of which it says nothing: dn_ofi_stir(). */
#define DN_OFI_QUIET 15
/* Calls are left out only where a program polls without end. No calls are left out if the last calls, with those left out, took longer than
 * these times. */
#define DN_OFI_ALONE_CALLS_NS UINT64_C(100000)
#define DN_OFI_QUIET_CALLS_NS UINT64_C(4000)

void dn_ofi_make_ready(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (!peer->rx.queued && DN_OFI_KNOWN == peer->owner && NULL != peer->rx.first) {
        peer->rx.queued = 1;
        dn_fifo_push(&ofi->ready, &peer->rx.ready);
        ofi->nready++;
    }
}

void dn_ofi_unready(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (peer->rx.queued) {
        dn_fifo_remove(&ofi->ready, &peer->rx.ready);
        peer->rx.queued = 0;
        ofi->nready--;
    }
}

/** Run the handlers of up to @p max messages of one peer. The device's lock is let go for each handler. @return messages. */
static int dn_ofi_dispatch(dn_ofi_t *ofi, dn_ofi_peer_t *peer, int max)
{
    int n = 0;

    while (n < max && NULL != peer->rx.first) {
        dn_ofi_buffer_t *buffer = peer->rx.first;
        const dn_ofi_head_t *head = dn_ofi_head(buffer);
        const dn_handler_t *handler = &ofi->iface.handler[head->channel];
        if (NULL == handler->fn) {
            break;
        }
        peer->rx.first = buffer->next;
        /* The message leaves the list first, so its handler may call progress, which runs the handler of the next message. Credit is given
         * when the outermost handler is done. */
        const uint64_t token = peer->rx.token;
        peer->rx.depth++;
        dn_ofi_unlock(ofi);
        handler->fn(&peer->base.hot, head->tag, buffer->bytes + sizeof(*head), head->len, handler->arg);
        dn_ofi_lock(ofi);
        peer->rx.depth--;
        /* Until now the watcher may not do anything that comes behind this message. */
        peer->rx.later -= buffer->later;
        /* The peer's next stream may have begun meanwhile. It has its own count of lines, in which this message has no part. */
        buffer->lines = token == peer->rx.token ? buffer->lines : 0;
        peer->rx.taken += buffer->lines;
        dn_ofi_buffer_free(ofi, buffer);
        dn_ofi_give_credit(ofi, peer);
        n++;
    }
    return n;
}

/** Most messages of one peer that are handled before the next peer has its turn. */
#define DN_OFI_TURN 32

/** Give each peer with messages its turn. A peer that still has messages goes to the end of the queue. @return messages. */
static int dn_ofi_dispatch_all(dn_ofi_t *ofi)
{
    int n = 0;

    for (uint32_t turns = ofi->nready; 0 != turns && NULL != ofi->ready.first; turns--) {
        dn_ofi_peer_t *peer =
            (dn_ofi_peer_t *) ((char *) ofi->ready.first - offsetof(dn_ofi_peer_t, rx.ready));
        dn_ofi_unready(ofi, peer);
        n += dn_ofi_dispatch(ofi, peer, DN_OFI_TURN);
        dn_ofi_make_ready(ofi, peer);
    }
    return n;
}

/** Go on with all work that waits for room. */
static void dn_ofi_go_on(dn_ofi_t *ofi)
{
    ofi->work = 0;
    for (uint32_t i = 0; i < ofi->nstreams; i++) {
        if (NULL != ofi->stream[i]) {
            dn_ofi_advance(ofi, ofi->stream[i]);
            dn_ofi_settle_stream(ofi, ofi->stream[i]);
        }
    }
    for (dn_ofi_peer_t *peer = ofi->peers; NULL != peer; peer = peer->next) {
        dn_ofi_give_credit(ofi, peer);
        dn_ofi_answer(ofi, peer);
        if (NULL != peer->rma.ops.first && dn_ofi_rma_advance(ofi, peer)) {
            ofi->work = 1;
        }
    }
}

int dn_ofi_turn(dn_ofi_t *ofi)
{
    dn_ofi_let_go(ofi);
    const int n = dn_ofi_poll(ofi);

    if (ofi->unmet && DN_OFI_WATCH_READS != ofi->watcher.state) {
        ofi->unmet = 0;
        dn_ofi_meet(ofi);
    }
    if (ofi->retry) {
        dn_ofi_retry(ofi);
    }
    if (0 != ofi->greeting) {
        dn_ofi_greet_all(ofi);
    }
    if (ofi->work) {
        dn_ofi_go_on(ofi);
    }
    return n;
}

/** End a turn, without the lock: signal completions, tell the port of lost peers, and free peers that have left.
 * @param[in] more  dn_ofi_has_more(). Doubts are looked at here, since condemned peers are doubted when the lock is let go. */
static int dn_ofi_end_turn(dn_ofi_t *ofi, int more)
{
    int n = 0;

    if (__builtin_expect(more || 0 != dn_load_acquire_u32(&ofi->iface.doubts), 0)) {
        n = dn_ofi_signal(ofi);
        if (0 != dn_load_acquire_u32(&ofi->iface.doubts)) {
            dn_port_bury(&ofi->iface);
        }
        if (dn_load_seq_cst(&ofi->reap)) {
            dn_ofi_reap(ofi);
        }
    }
    return n;
}

/** Is there something for dn_ofi_end_turn() that needs the lock to be seen? */
static int dn_ofi_has_more(const dn_ofi_t *ofi)
{
    return NULL != ofi->done.first || NULL != ofi->loan.back.first || dn_load_seq_cst(&ofi->reap);
}

/** While this device has no peer, only a HELLO can come. Can a look at the network be left out now? */
static int dn_ofi_rests(dn_ofi_t *ofi)
{
    const uint64_t now = dn_clock_ns();

    ofi->iface.rest = now - ofi->called < DN_OFI_ALONE_CALLS_NS ? DN_OFI_ALONE : 0;
    ofi->called = now;
    if (now - ofi->looked < DN_OFI_ALONE_NS) {
        return 1;
    }
    ofi->looked = now;
    return 0;
}

/** Is there a message or a transfer that waits for room or credit, or is in flight? */
static int dn_ofi_is_busy(const dn_ofi_t *ofi)
{
    int busy = ofi->work || 0 != ofi->greeting;

    for (uint32_t i = 0; !busy && i < ofi->nstreams; i++) {
        busy = NULL != ofi->stream[i] && NULL != ofi->stream[i]->first;
    }
    for (const dn_ofi_peer_t *peer = ofi->peers; !busy && NULL != peer; peer = peer->next) {
        busy = NULL != peer->rma.ops.first;
    }
    return busy;
}

/** Ask for credit, which the network may have lost, on all streams with messages that wait. Where there is a watcher, it does so. */
static void dn_ofi_ask_all(dn_ofi_t *ofi)
{
    for (uint32_t i = 0; i < ofi->nstreams; i++) {
        dn_ofi_stream_t *stream = ofi->stream[i];
        if (NULL != stream && !dn_ofi_stream_ended(stream) && NULL != stream->first) {
            dn_ofi_inquire(ofi, stream);
        }
    }
}

/** A look was in vain. @return how many calls of progress can be left out now. */
static uint32_t dn_ofi_quiet(dn_ofi_t *ofi)
{
    if (0 != ofi->lively) {
        ofi->lively--;
        return 0;
    }
    const uint64_t now = dn_clock_ns();
    const uint64_t gap = now - ofi->called;

    ofi->called = now;
    dn_ofi_put_off(ofi, now);
    if (DN_OFI_WATCH_NONE == ofi->watcher.state && now - ofi->watcher.looked > DN_OFI_ASK_NS) {
        ofi->watcher.looked = now;
        dn_ofi_ask_all(ofi);
    }
    return gap < DN_OFI_QUIET_CALLS_NS && !dn_ofi_is_busy(ofi) ? DN_OFI_QUIET : 0;
}

int dn_ofi_attend(dn_iface_t *iface)
{
    dn_ofi_t *ofi = (dn_ofi_t *) iface;

    if (dn_ofi_rings(iface)) {
        ofi->looked = 0;
    }
    return 0;
}

void dn_ofi_hand_on(dn_iface_t *iface)
{
    dn_ofi_t *ofi = (dn_ofi_t *) iface;

    if (!dn_ofi_rings(iface)) {
        return;
    }
    dn_ofi_lock(ofi);
    ofi->watcher.handed = ofi->turns;
    /* A watcher that naps or guards does not listen to the network. The file of the network does not tell of completions that the
     * provider has already. */
    if (DN_OFI_WATCH_NAPS == ofi->watcher.state || ofi->watcher.guards || ofi->backlog) {
        ofi->after |= DN_OFI_AFTER_CALL;
    }
    dn_ofi_unlock(ofi);
}

int dn_ofi_progress(dn_iface_t *iface)
{
    dn_ofi_t *ofi = (dn_ofi_t *) iface;
    int n = 0;

    /* Relaxed suffices: a peer that the watcher enters just now is seen by a later call. */
    if (0 == dn_load_relaxed(&ofi->npeers) && 0 == dn_load_relaxed(&ofi->draining) && dn_ofi_rests(ofi)) {
        return 0;
    }
    dn_ofi_lock(ofi);
    dn_ofi_take_turn(ofi);
    if (0 != dn_ofi_turn(ofi) || NULL != ofi->ready.first) {
        n = dn_ofi_dispatch_all(ofi);
        dn_ofi_let_go(ofi);
        dn_ofi_stir(ofi);
        iface->rest = 0;
    } else if (NULL != ofi->peers || 0 != dn_load_seq_cst(&ofi->draining)) {
        iface->rest = dn_ofi_quiet(ofi);
    }
    const int more = dn_ofi_has_more(ofi);
    dn_ofi_unlock(ofi);
    return n + dn_ofi_end_turn(ofi, more);
}

int dn_ofi_recv(dn_peer_base_t *base, int max)
{
    dn_ofi_t *ofi = (dn_ofi_t *) base->iface;
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) base;

    dn_ofi_lock(ofi);
    dn_ofi_take_turn(ofi);
    if (NULL == peer->rx.first && 0 != dn_ofi_turn(ofi)) {
        dn_ofi_stir(ofi);
        ofi->iface.rest = 0;
    }
    const int n = dn_ofi_dispatch(ofi, peer, max);
    dn_ofi_let_go(ofi);
    dn_ofi_make_ready(ofi, peer);
    const int more = dn_ofi_has_more(ofi);
    dn_ofi_unlock(ofi);
    dn_ofi_end_turn(ofi, more);
    return n;
}
