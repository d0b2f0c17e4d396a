/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "dn_log.h"

/** Refused sends between two looks at whether the peer still lives (a look reads /proc: some 20 us). */
#define DN_SHM_REFUSALS 16384

/** Open the way to a peer that has come by itself, for the first message to it. DN_ERR_AGAIN: the way is open now. */
static dn_status_t dn_shm_answer(dn_shm_peer_t *peer)
{
    dn_port_lock(peer->base.iface->port);
    const dn_status_t status = DN_SHM_TX_SHUT != peer->tx_state ? DN_OK : dn_shm_open_tx(peer, "");
    dn_port_unlock(peer->base.iface->port);
    if (DN_ERR_UNREACH == status && dn_shm_has_closed(peer)) {
        return dn_shm_want(peer);
    }
    return DN_OK == status ? DN_ERR_AGAIN : status;
}

/** A send found no room: there is no credit, the way is not open yet, or the peer is lost. */
static __attribute__((noinline)) dn_status_t dn_shm_refused(dn_shm_peer_t *peer)
{
    dn_iface_t *iface = peer->base.iface;

    if (DN_SHM_TX_SHUT == dn_load_acquire_u32(&peer->tx_state)) {
        return dn_shm_answer(peer);
    }
    dn_count(&iface->counters->credit_waits, 1);
    if (dn_shm_has_closed(peer)) {
        return dn_shm_want(peer);
    }
    if (dn_peer_is_doubted(&peer->base)) {
        return DN_ERR_UNREACH;
    }
    const dn_status_t status = dn_peer_refused(&peer->base, DN_SHM_REFUSALS);
    return DN_OK == status ? DN_ERR_AGAIN : status;
}

static inline void dn_shm_count_message(dn_shm_peer_t *peer, size_t len)
{
    dn_counters_t *counters = peer->base.iface->counters;
    dn_count(&counters->messages_sent, 1);
    dn_count(&counters->bytes_sent, len);
    dn_count(&counters->lines_sent, dn_line_units(sizeof(uint64_t) + len));
}

/** From this length on, a message that answers goes through the stage, too. At 4 KiB the ring takes half as long again as the stage, at
 * 2 KiB the ring takes less time (perf/dn_latency). */
#define DN_SHM_ANSWER_STAGED 3072u

/**
 * Does a message of medium length answer the peer? For such a message the ring is better than the stage: the lines of the ring
 * are in the caches, and a new stage costs a page fault each 4 KiB in its first lap. From the second message in a row on, the
 * stage is better. Where several threads send, no message counts as an answer: a thread does not read what others receive.
 */
static inline int dn_shm_answers(dn_shm_peer_t *peer, size_t len)
{
    if (DN_SHM_ANSWER_STAGED <= len || peer->threads || NULL == peer->rx
        || peer->stage.heard == peer->rx->line.head) {
        return 0;
    }
    peer->stage.heard = peer->rx->line.head;
    return 1;
}

/** dn_shm_stage_reserve(), unless the ring is better. */
static dn_status_t dn_shm_place(dn_shm_peer_t *peer, size_t len, uint8_t **place_p)
{
    return dn_shm_answers(peer, len) ? DN_ERR_UNSUPPORTED : dn_shm_stage_reserve(peer, len, place_p);
}

/** Send a message that may go through the stage, or is too long. */
static __attribute__((noinline)) dn_status_t dn_shm_botf_long(dn_shm_peer_t *peer, unsigned channel,
                                                              unsigned tag, const void *head, size_t head_len,
                                                              const void *body, size_t body_len)
{
    const size_t len = head_len + body_len;
    uint8_t *place;

    if (len > peer->base.botf_max || len < body_len) {
        return DN_ERR_RANGE;
    }
    if (!dn_shm_lock_tx(peer)) {
        return DN_ERR_UNREACH;
    }
    const dn_status_t status = dn_shm_place(peer, len, &place);
    int sent = DN_OK == status;
    if (sent) {
        if (0 != head_len) {
            memcpy(place, head, head_len);
        }
        if (0 != body_len) {
            dn_copy_in(place + head_len, body, body_len);
        }
        dn_shm_stage_kick(peer, channel, tag, len);
    } else if (DN_ERR_UNSUPPORTED == status) {
        sent = dn_line_send(&peer->tx, channel, tag, head, head_len, body, body_len);
    }
    dn_shm_unlock_tx(peer);
    if (!sent) {
        return dn_shm_refused(peer);
    }
    dn_shm_ring(peer);
    dn_shm_count_message(peer, len);
    return DN_OK;
}

dn_status_t dn_shm_botf(dn_peer_t *hot, unsigned channel, unsigned tag, const void *head, size_t head_len,
                        const void *body, size_t body_len)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) hot;
    const size_t len = head_len + body_len;

    /* Two hints: of one for both, gcc makes a number that it tests. */
    if (__builtin_expect(len > peer->line_max, 0) || __builtin_expect(len < body_len, 0)) {
        return dn_shm_botf_long(peer, channel, tag, head, head_len, body, body_len);
    }
    if (!dn_shm_lock_tx(peer)) {
        return DN_ERR_UNREACH;
    }
    const int sent = dn_line_send(&peer->tx, channel, tag, head, head_len, body, body_len);
    dn_shm_unlock_tx(peer);
    if (__builtin_expect(!sent, 0)) {
        return dn_shm_refused(peer);
    }
    dn_shm_ring(peer);
    dn_shm_count_message(peer, len);
    return DN_OK;
}

dn_status_t dn_shm_reserve(dn_peer_t *hot, size_t len, dn_window_t *window)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) hot;

    if (__builtin_expect(len > peer->base.botf_max, 0)) {
        return DN_ERR_RANGE;
    }
    uint8_t *data = NULL;
    if (!dn_shm_lock_tx(peer)) {
        return DN_ERR_UNREACH;
    }
    dn_status_t status = len > peer->line_max ? dn_shm_place(peer, len, &data) : DN_ERR_UNSUPPORTED;
    window->mark = DN_OK == status;
    if (DN_ERR_UNSUPPORTED == status) {
        data = dn_line_reserve(&peer->tx, len);
    }
    if (__builtin_expect(NULL == data, 0)) {
        dn_shm_unlock_tx(peer);
        return dn_shm_refused(peer);
    }
    window->data = data;
    window->len = len;
    return DN_OK;
}

void dn_shm_kick(dn_peer_t *hot, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) hot;

    if (0 != window->mark) {
        dn_shm_stage_kick(peer, channel, tag, len);
    } else {
        dn_line_kick(&peer->tx, channel, tag, len);
    }
    dn_shm_unlock_tx(peer);
    dn_shm_ring(peer);
    dn_shm_count_message(peer, len);
}

dn_status_t dn_shm_aotf(dn_peer_t *hot, uint64_t off, uint64_t value, size_t size)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) hot;

    if (0 == size || 8 < size || off > peer->base.llcm_len || size > peer->base.llcm_len - off) {
        return DN_ERR_RANGE;
    }
    dn_store_bytes(peer->map.llcm + off, value, size);
    dn_shm_ring(peer);
    return DN_OK;
}

dn_status_t dn_shm_aotf_line(dn_peer_t *hot, uint64_t off, const void *data, size_t len, uint64_t flag)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) hot;

    if (__builtin_expect(DN_AOTF_LINE_MAX < len || 0 != off % DN_LINE_BYTES || off >= peer->base.llcm_len,
                         0)) {
        return DN_ERR_RANGE;
    }
    uint8_t *line = peer->map.llcm + off;
    dn_copy_inline(line, data, len);
    dn_store_release((uint64_t *) (line + DN_AOTF_LINE_MAX), flag);
    dn_shm_ring(peer);
    return DN_OK;
}

void dn_shm_wake(dn_peer_t *hot)
{
    dn_shm_ring((dn_shm_peer_t *) hot);
}

dn_status_t dn_shm_fence(dn_peer_t *hot)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) hot;

    if (0 != dn_load_acquire_u32(&peer->base.outstanding)) {
        return DN_INPROGRESS;
    }
    /* Mapped and CMA copies are over when their call returns; this orders them before later stores. */
    dn_fence_seq_cst();
    return DN_OK;
}

__attribute__((noinline)) void dn_shm_cut_off(dn_shm_t *shm, dn_shm_peer_t *peer, const char *what)
{
    dn_count(&shm->iface.counters->dropped, 1);
    dn_log_error("PID %" PRIu32 " %s; it is cut off", peer->base.pid, what);
    if (NULL != peer->rx) {
        peer->rx->len_limit = 0;
    }
    /* Not lost here: completions may free the peer, whose ring is being read. */
    dn_peer_doubt(&peer->base, DN_PEER_SUSPECT);
}

/** Wake the sender of a ring, which may wait for room, unless the sender has left. */
static inline void dn_shm_ring_sender(const dn_shm_rx_t *rx)
{
    if (NULL != rx->peer->map.header) {
        dn_shm_ring(rx->peer);
    }
}

/** Return credit when it is due. Inside of a handler this waits: the handler further out still reads from the ring. */
static inline void dn_shm_give_credit(dn_shm_rx_t *rx)
{
    if (0 == rx->line.depth && dn_line_credit_due(&rx->line)) {
        dn_line_return_credit(&rx->line);
        dn_shm_ring_sender(rx);
    }
}

/** Hand on up to @p max messages of a ring that has at least one. A handler may end this earlier: dn_recv_enough(). A poll of the same ring
 * from inside of a handler takes that back, which only costs time. */
static __attribute__((noinline)) int dn_shm_drain(dn_shm_t *shm, dn_shm_rx_t *rx, int max)
{
    dn_line_rx_t *line = &rx->line;
    uint32_t *enough = &rx->peer->base.hot.enough;
    dn_line_msg_t msg;
    int n = 0;

    dn_store_relaxed(enough, 0);
    while (n < max && 0 == dn_load_relaxed(enough) && dn_line_peek(line, &msg)) {
        if (__builtin_expect(msg.len >= rx->len_limit, 0)) {
            if (0 != rx->len_limit) {
                dn_shm_cut_off(shm, rx->peer, "wrote a head that is malformed into shared memory");
            }
            return n;
        }
        uint32_t *taken = NULL;
        if (__builtin_expect(DN_CHAN_MAX <= msg.channel, 0)) {
            /* A copy, so that the other messages stay in registers. */
            dn_line_msg_t staged = msg;
            if (0 != (msg.channel & DN_SHM_STAGED)) {
                taken = dn_shm_stage_find(rx, &staged);
            }
            if (DN_CHAN_MAX <= staged.channel) {
                dn_shm_cut_off(shm, rx->peer,
                               0 != (msg.channel & DN_SHM_STAGED)
                                   ? "wrote a line that names no message in its stage"
                                   : "sent a message on a channel that does not exist");
                return n;
            }
            msg = staged;
        }
        dn_line_prefetch(&msg);
        const dn_handler_t *handler = &shm->iface.handler[msg.channel];
        if (__builtin_expect(NULL == handler->fn, 0)) {
            return n;
        }
        /* Ahead of the call, so that a handler may progress; credit waits until the outermost is done. */
        dn_line_advance(line, &msg);
        if (0 != n) {
            dn_line_prefetch_next(line);
        }
        line->depth++;
        handler->fn(&rx->peer->base.hot, msg.tag, msg.data, msg.len, handler->arg);
        line->depth--;
        n++;
        if (NULL != taken) {
            dn_shm_stage_took(taken);
            dn_shm_ring_sender(rx);
        }
        dn_shm_give_credit(rx);
    }
    return n;
}

int dn_shm_is_held(const dn_shm_t *shm, const dn_shm_rx_t *rx)
{
    dn_line_msg_t msg;

    if (!dn_line_peek(&rx->line, &msg) || msg.len >= rx->len_limit) {
        return 0;
    }
    if (DN_CHAN_MAX <= msg.channel && 0 != (msg.channel & DN_SHM_STAGED)) {
        (void) dn_shm_stage_find(rx, &msg);
    }
    return DN_CHAN_MAX > msg.channel && NULL == shm->iface.handler[msg.channel].fn;
}

/** Look at one ring. In the common case it holds no message. */
static inline int dn_shm_poll_ring(dn_shm_t *shm, dn_shm_rx_t *rx, int max)
{
    return dn_line_quiet(&rx->line) ? 0 : dn_shm_drain(shm, rx, max);
}

void dn_shm_read_last(dn_shm_t *shm, dn_shm_peer_t *peer)
{
    /* A handler may have enough of a message. The peer's ring may go while a handler runs. */
    while (NULL != peer->rx && 0 != dn_shm_poll_ring(shm, peer->rx, INT_MAX)) {
    }
}

/** Note that a ring was active. Among the hot rings it takes the place of the ring that was idle for longest. */
static void dn_shm_heat(dn_shm_t *shm, dn_shm_rx_t *rx)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < shm->nhot; i++) {
        if (rx == shm->hot[i].rx) {
            shm->hot[i].idle = 0;
            return;
        }
        if (shm->hot[i].idle > shm->hot[at].idle) {
            at = i;
        }
    }
    if (shm->nhot < DN_SHM_HOT) {
        at = shm->nhot++;
    }
    shm->hot[at].rx = rx;
    shm->hot[at].idle = 0;
}

/** Poll many rings: first the hot rings, then the next few of all rings. No ring is polled twice, so the rest of a ring whose handler has
 * enough is left alone. A poll inside of a handler is another poll. */
static int dn_shm_poll_many(dn_shm_t *shm)
{
    const uint32_t number = ++shm->polls;
    int n = 0;

    for (uint32_t i = 0; i < shm->nhot; i++) {
        shm->hot[i].rx->polled = number;
        const int got = dn_shm_poll_ring(shm, shm->hot[i].rx, DN_SHM_BATCH);
        n += got;
        if (0 != got) {
            shm->hot[i].idle = 0;
        } else if (DN_SHM_HOT_IDLE < ++shm->hot[i].idle) {
            shm->hot[i] = shm->hot[--shm->nhot];
        }
    }
    for (uint32_t k = 0; k < DN_SHM_SWEEP && 0 != shm->nrx; k++) {
        if (++shm->sweep >= shm->nrx) {
            shm->sweep = 0;
        }
        dn_shm_rx_t *rx = shm->rx[shm->sweep];
        if (number == rx->polled) {
            continue;
        }
        rx->polled = number;
        const int got = dn_shm_poll_ring(shm, rx, DN_SHM_BATCH);
        if (0 != got) {
            n += got;
            dn_shm_heat(shm, rx);
        }
    }
    return n;
}

/** In dn_message_t::mark, above the span of a message in the ring. */
#define DN_SHM_MARK_REWIND (UINT64_C(1) << 32)
/** In dn_message_t::mark, above that bit: 0, or 1 + the granule of a message on the stage. */
#define DN_SHM_MARK_GRANULE 33

/** The case of dn_shm_show() where a line names a message on the stage. @return 0: it names none, or one of another channel. */
static __attribute__((noinline)) uint64_t dn_shm_show_staged(const dn_shm_rx_t *rx, dn_line_msg_t *msg,
                                                             unsigned channel)
{
    if ((channel | DN_SHM_STAGED) != msg->channel) {
        return 0;
    }
    const uint8_t *stage = rx->peer->map.stage;
    const int found = NULL != dn_shm_stage_find(rx, msg);
    return found ? 1 + (uint64_t) ((const uint8_t *) msg->data - stage) / DN_SHM_GRANULE : 0;
}

/** The case of dn_shm_peek() where a message is there. */
static inline dn_status_t dn_shm_show(const dn_shm_rx_t *rx, uint64_t head, unsigned channel,
                                      dn_message_t *message)
{
    dn_line_msg_t msg;
    uint64_t granule = 0;

    dn_line_read(&rx->line, head, &msg);
    if (__builtin_expect(msg.len >= rx->len_limit, 0)) {
        return DN_ERR_UNSUPPORTED;
    }
    /* The channel of a message on the stage is no caller's. */
    if (__builtin_expect(msg.channel != channel, 0)) {
        granule = dn_shm_show_staged(rx, &msg, channel);
        if (0 == granule) {
            return DN_ERR_UNSUPPORTED;
        }
    }
    dn_line_prefetch(&msg);
    message->data = msg.data;
    message->len = msg.len;
    message->tag = msg.tag;
    message->mark = granule << DN_SHM_MARK_GRANULE | (msg.rewind ? DN_SHM_MARK_REWIND : 0) | msg.span;
    return DN_OK;
}

dn_status_t dn_shm_peek(dn_peer_t *hot, unsigned channel, unsigned looks, dn_message_t *message)
{
    const dn_shm_peer_t *peer = (const dn_shm_peer_t *) hot;
    const dn_shm_rx_t *rx = peer->rx;
    uint64_t head;

    if (__builtin_expect(NULL == rx || peer->threads, 0)) {
        return DN_ERR_UNSUPPORTED;
    }
    return dn_line_look(&rx->line, looks, &head) ? dn_shm_show(rx, head, channel, message) : DN_ERR_AGAIN;
}

void dn_shm_take(dn_peer_t *hot, const dn_message_t *message)
{
    dn_shm_rx_t *rx = ((dn_shm_peer_t *) hot)->rx;
    /* What was checked, not what the sender may have written there since. */
    const dn_line_msg_t msg = {.span = (uint32_t) message->mark,
                               .rewind = 0 != (message->mark & DN_SHM_MARK_REWIND)};
    const uint64_t granule = message->mark >> DN_SHM_MARK_GRANULE;

    dn_line_advance(&rx->line, &msg);
    if (__builtin_expect(0 != granule, 0)) {
        dn_shm_stage_took(dn_shm_taken(&rx->peer->map, (uint32_t) (granule - 1)));
        dn_shm_ring_sender(rx);
    }
    dn_shm_give_credit(rx);
}

/** Do what is due beside the rings: meet senders, tell of lost peers, end shared transfers. @return transfers that have ended. */
static inline int dn_shm_mind(dn_shm_t *shm)
{
    dn_iface_t *iface = &shm->iface;
    int n = 0;

    if (__builtin_expect(shm->seen != dn_load_acquire_u32(&shm->map.header->arrivals), 0)) {
        dn_shm_look(shm, 0);
    }
    if (__builtin_expect(0 != dn_load_acquire_u32(&iface->doubts), 0)) {
        dn_port_bury(iface);
    }
    if (__builtin_expect(0 != shm->nshares, 0)) {
        n = dn_shm_help_progress(shm);
    }
    if (__builtin_expect(0 == --shm->patience, 0)) {
        dn_shm_chores(shm);
    }
    return n;
}

int dn_shm_progress(dn_iface_t *iface)
{
    dn_shm_t *shm = (dn_shm_t *) iface;
    int n = 0;

    if (shm->nrx <= DN_SHM_POLL_ALL) {
        for (uint32_t i = 0; i < shm->nrx; i++) {
            n += dn_shm_poll_ring(shm, shm->rx[i], DN_SHM_BATCH);
        }
    } else {
        n = dn_shm_poll_many(shm);
    }
    return n + dn_shm_mind(shm);
}

int dn_shm_poll_all(dn_iface_t *iface)
{
    dn_shm_t *shm = (dn_shm_t *) iface;
    int n = 0;

    if (shm->seen != dn_load_acquire_u32(&shm->map.header->arrivals)) {
        dn_shm_look(shm, 0);
    }
    for (uint32_t i = 0; i < shm->nrx; i++) {
        n += dn_shm_poll_ring(shm, shm->rx[i], DN_SHM_BATCH);
    }
    shm->patience = 1;
    return n;
}

/** The case of dn_shm_recv() where chores are due: the caller may poll by dn_recv() alone, for ever. */
static __attribute__((noinline)) int dn_shm_recv_and_mind(dn_shm_t *shm, dn_shm_rx_t *rx, int max)
{
    /* Due after the ring is read, unless a handler has done them. */
    shm->patience = 1;
    const int n = dn_shm_poll_ring(shm, rx, max);
    (void) dn_shm_mind(shm);
    return n;
}

int dn_shm_recv(dn_peer_base_t *base, int max)
{
    dn_shm_t *shm = (dn_shm_t *) base->iface;
    dn_shm_rx_t *rx = ((dn_shm_peer_t *) base)->rx;

    if (NULL == rx) {
        /* Not attached yet, or it closed: the general poll looks at arrivals. */
        return dn_shm_progress(&shm->iface);
    }
    if (__builtin_expect(0 == --shm->patience, 0)) {
        return dn_shm_recv_and_mind(shm, rx, max);
    }
    return dn_shm_poll_ring(shm, rx, max);
}
