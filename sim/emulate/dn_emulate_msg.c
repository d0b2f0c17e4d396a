/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_emulate_int.h"
#include "dn_log.h"

/** Whoever says that something arrives later than that is not believed. */
#define DN_EMULATE_AHEAD_S 10

/** Credit is told after this part of it has been taken. */
#define DN_EMULATE_PART 4

static dn_emulate_t *dn_emulate_of(const dn_emulate_peer_t *peer)
{
    return (dn_emulate_t *) peer->base.iface;
}

static size_t dn_lines(size_t len)
{
    return (sizeof(uint64_t) + len + DN_EMULATE_LINE - 1) / DN_EMULATE_LINE;
}

/** @name Sending */
/** @{ */
/**
 * Room at the second port for a head and @p len bytes, and credit. Until the kick no other thread sends to this peer, so that
 * what it receives is in the order of its times.
 */
static dn_status_t dn_emulate_room(dn_emulate_peer_t *peer, size_t len, dn_window_t *window)
{
    const dn_emulate_t *emulate = dn_emulate_of(peer);
    /* Pairs with the release in dn_emulate_credit(), which had seen as many sent: the difference is never below 0. Another thread
     * may have the window now, and what it sends is not in it yet: the limit may be passed by a message of each thread. */
    const uint64_t returned = dn_load_acquire(&peer->returned);
    const uint64_t away = dn_load_acquire(&peer->sent) - returned;

    if (0 != (dn_load_acquire_u32(&peer->owes) & DN_EMULATE_OWES_HELLO)) {
        return DN_ERR_AGAIN;
    }
    if (0 != away && away + dn_lines(len) > peer->lines) {
        dn_count(&emulate->iface.counters->credit_waits, 1);
        return DN_ERR_AGAIN;
    }
    const dn_status_t status = dn_botf_reserve(peer->inner, sizeof(dn_emulate_head_t) + len, window);
    dn_count(&emulate->iface.counters->credit_waits, DN_ERR_AGAIN == status);
    if (DN_ERR_UNREACH == status) {
        /* The second port's peer is gone. Until dn_emulate_inner_lost() is called, only this tells dn_flush(). */
        dn_store_relaxed_u32(&peer->base.wanted, 1);
    }
    return status;
}

/** Send what is in the window with its times, and be busy as long as the host would be. Cannot fail. */
static void dn_emulate_go(dn_emulate_peer_t *peer, dn_window_t *window, dn_emulate_kind_t kind,
                          dn_emulate_head_t head, size_t bytes, uint64_t len)
{
    dn_emulate_t *emulate = dn_emulate_of(peer);
    dn_emulate_trip_t trip;
    dn_core_part_t part;

    const dn_emulate_way_t way =
        dn_emulate_way(&emulate->nic, kind, &head, (uint8_t *) window->data + sizeof(head), bytes, &part);
    dn_lock(&emulate->lock);
    trip = DN_EMULATE_MESSAGE != way
               ? dn_emulate_part_trip(&emulate->nic, peer->reserved, peer->served, &part)
           : DN_EMULATE_AOTF == kind ? dn_emulate_aotf_trip(&emulate->nic, head.sent, len)
                                     : dn_emulate_botf_trip(&emulate->nic, head.sent, len);
    dn_unlock(&emulate->lock);
    /* A NIC that goes on by itself may have sent it already. */
    head.sent = trip.first < head.sent ? trip.first : head.sent;
    head.first = trip.first - head.sent;
    head.span = trip.last - trip.first;
    memcpy(window->data, &head, sizeof(head));
    /* Only who has the window writes it. Pairs with the loads in dn_emulate_room() and dn_emulate_credit(). */
    dn_store_release(&peer->sent, peer->sent + dn_lines(bytes));
    dn_botf_kick(peer->inner, window, DN_CHAN_USER, kind, sizeof(head) + bytes);
    const uint64_t over = dn_emulate_spin(trip.host);
    dn_lock(&emulate->lock);
    /* Of a transfer only what comes too late counts: here the host copies, which costs it time of its own. */
    emulate->sums.over += DN_EMULATE_MESSAGE == way ? over : 0;
    if (DN_EMULATE_BOTF != kind) {
        peer->stores = 1;
        peer->covered = 0;
    }
    dn_unlock(&emulate->lock);
}

static void dn_emulate_count(const dn_emulate_peer_t *peer, size_t len)
{
    dn_counters_t *counters = peer->base.iface->counters;

    dn_count(&counters->messages_sent, 1);
    dn_count(&counters->bytes_sent, len);
    dn_count(&counters->lines_sent, dn_lines(len));
}

static dn_status_t dn_emulate_botf(dn_peer_t *hot, unsigned channel, unsigned tag, const void *head,
                                   size_t head_len, const void *body, size_t body_len)
{
    dn_emulate_peer_t *peer = (dn_emulate_peer_t *) hot;
    const dn_emulate_head_t mine = {
        .sent = dn_emulate_begin(dn_emulate_of(peer)->slack), .channel = channel, .tag = tag};
    const size_t len = head_len + body_len;
    dn_window_t window;

    if (len > peer->base.botf_max || len < body_len) {
        return DN_ERR_RANGE;
    }
    const dn_status_t status = dn_emulate_room(peer, len, &window);
    if (DN_OK != status) {
        return status;
    }
    uint8_t *to = (uint8_t *) window.data + sizeof(mine);
    if (0 != head_len) {
        memcpy(to, head, head_len);
    }
    if (0 != body_len) {
        memcpy(to + head_len, body, body_len);
    }
    dn_emulate_go(peer, &window, DN_EMULATE_BOTF, mine, len, len);
    dn_emulate_count(peer, len);
    return DN_OK;
}

static dn_status_t dn_emulate_reserve(dn_peer_t *hot, size_t len, dn_window_t *window)
{
    dn_emulate_peer_t *peer = (dn_emulate_peer_t *) hot;
    const uint64_t now = dn_emulate_begin(dn_emulate_of(peer)->slack);
    dn_window_t inner;

    if (len > peer->base.botf_max) {
        return DN_ERR_RANGE;
    }
    const dn_status_t status = dn_emulate_room(peer, len, &inner);
    if (DN_OK == status) {
        peer->reserved = now;
        *window = (dn_window_t){(uint8_t *) inner.data + sizeof(dn_emulate_head_t), len, inner.mark};
    }
    return status;
}

static void dn_emulate_kick(dn_peer_t *hot, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    dn_emulate_peer_t *peer = (dn_emulate_peer_t *) hot;
    const dn_emulate_head_t mine = {
        .sent = dn_emulate_begin(dn_emulate_of(peer)->slack), .channel = channel, .tag = tag};
    dn_window_t inner = {(uint8_t *) window->data - sizeof(mine), window->len + sizeof(mine), window->mark};

    dn_emulate_go(peer, &inner, DN_EMULATE_BOTF, mine, len, len);
    dn_emulate_count(peer, len);
}

static dn_status_t dn_emulate_aotf(dn_peer_t *hot, uint64_t off, uint64_t value, size_t size)
{
    dn_emulate_peer_t *peer = (dn_emulate_peer_t *) hot;
    const dn_emulate_head_t mine = {.sent = dn_emulate_begin(dn_emulate_of(peer)->slack)};
    const dn_emulate_store_t store = {off, value, size};
    dn_window_t window;

    if (0 == size || sizeof(value) < size || off > peer->base.llcm_len || size > peer->base.llcm_len - off) {
        return DN_ERR_RANGE;
    }
    const dn_status_t status = dn_emulate_room(peer, sizeof(store), &window);
    if (DN_OK == status) {
        memcpy((uint8_t *) window.data + sizeof(mine), &store, sizeof(store));
        dn_emulate_go(peer, &window, DN_EMULATE_AOTF, mine, sizeof(store), size);
    }
    return status;
}

static dn_status_t dn_emulate_aotf_line(dn_peer_t *hot, uint64_t off, const void *data, size_t len,
                                        uint64_t flag)
{
    dn_emulate_peer_t *peer = (dn_emulate_peer_t *) hot;
    const dn_emulate_head_t mine = {.sent = dn_emulate_begin(dn_emulate_of(peer)->slack)};
    const dn_emulate_store_t store = {off, flag, len};
    dn_window_t window;

    if (DN_AOTF_LINE_MAX < len || 0 != off % DN_EMULATE_LINE || off >= peer->base.llcm_len) {
        return DN_ERR_RANGE;
    }
    const dn_status_t status = dn_emulate_room(peer, sizeof(store) + len, &window);
    if (DN_OK == status) {
        uint8_t *to = (uint8_t *) window.data + sizeof(mine);
        memcpy(to, &store, sizeof(store));
        if (0 != len) {
            memcpy(to + sizeof(store), data, len);
        }
        dn_emulate_go(peer, &window, DN_EMULATE_STORES, mine, sizeof(store) + len, DN_EMULATE_LINE);
    }
    return status;
}

/** Ask whether the stores before have taken effect. Without the lock, which dn_emulate_go() takes while it has a window. */
static dn_status_t dn_emulate_ask(dn_emulate_peer_t *peer)
{
    dn_emulate_t *emulate = dn_emulate_of(peer);
    dn_emulate_credit_t ask = {.session = peer->session};
    dn_window_t window;

    if (0 != (dn_load_acquire_u32(&peer->owes) & DN_EMULATE_OWES_HELLO)) {
        return DN_INPROGRESS;
    }
    const dn_status_t status = dn_botf_reserve(peer->inner, sizeof(ask), &window);
    if (DN_OK == status) {
        /* Ahead of the answer, which another thread may take at once; with the window, so in the order of sending. */
        dn_lock(&emulate->lock);
        ask.taken = peer->fences + 1;
        /* Pairs with the load in dn_emulate_answered(), which another thread runs without this lock. */
        dn_store_release(&peer->fences, ask.taken);
        peer->covered = ask.taken;
        dn_unlock(&emulate->lock);
        memcpy(window.data, &ask, sizeof(ask));
        dn_botf_kick(peer->inner, &window, DN_CHAN_USER, DN_EMULATE_ASK, sizeof(ask));
    }
    return DN_OK == status || DN_ERR_AGAIN == status ? DN_INPROGRESS : status;
}

static dn_status_t dn_emulate_fence(dn_peer_t *hot)
{
    dn_emulate_peer_t *peer = (dn_emulate_peer_t *) hot;
    dn_emulate_t *emulate = dn_emulate_of(peer);

    if (0 != dn_load_acquire_u32(&peer->base.outstanding)) {
        return DN_INPROGRESS;
    }
    dn_lock(&emulate->lock);
    if (0 != peer->covered && peer->covered <= dn_load_acquire(&peer->answered)) {
        peer->stores = 0;
    }
    const int done = !peer->stores;
    const int asks = 0 == peer->covered;
    dn_unlock(&emulate->lock);
    if (done) {
        return DN_OK;
    }
    return asks ? dn_emulate_ask(peer) : DN_INPROGRESS;
}

const dn_peer_ops_t dn_emulate_ops = {
    .botf = dn_emulate_botf,
    .reserve = dn_emulate_reserve,
    .kick = dn_emulate_kick,
    .aotf = dn_emulate_aotf,
    .aotf_line = dn_emulate_aotf_line,
    .push = NULL,
    .pull = NULL,
    .atomic = NULL,
    .fence = dn_emulate_fence,
};
/** @} */

/** @name Receiving */
/** @{ */
/** Is a store within this port's LLCM? */
static int dn_store_fits(const dn_emulate_t *emulate, unsigned kind, const dn_emulate_store_t *store,
                         size_t left)
{
    if (DN_EMULATE_STORES == kind) {
        return DN_AOTF_LINE_MAX >= store->size && left == store->size && 0 == store->off % DN_EMULATE_LINE
               && emulate->llcm_bytes > store->off;
    }
    return 0 != store->size && sizeof(store->value) >= store->size && 0 == left
           && emulate->llcm_bytes >= store->off && store->size <= emulate->llcm_bytes - store->off;
}

/** Something of a peer is lost here, as the log has said: nothing takes effect behind the gap. */
static void dn_emulate_cut(const dn_emulate_t *emulate, dn_emulate_peer_t *peer)
{
    peer->cut = 1;
    dn_port_peer_lost(emulate->iface.port, &peer->base);
}

/** Memory for @p len bytes from a peer. NULL: it is cut off, so that nothing takes effect behind the gap. */
static dn_emulate_item_t *dn_emulate_item_new(const dn_emulate_t *emulate, dn_emulate_peer_t *peer,
                                              size_t len)
{
    dn_emulate_item_t *item = aligned_alloc(16, (sizeof(*item) + len + 15) / 16 * 16);

    if (NULL == item) {
        dn_log_error("no memory for a message of %zu bytes from PID %" PRIu32 "; it is cut off", len,
                     peer->base.pid);
        dn_emulate_cut(emulate, peer);
    }
    return item;
}

int dn_emulate_asked(dn_emulate_t *emulate, dn_emulate_peer_t *peer, const void *data, size_t len)
{
    if (sizeof(dn_emulate_credit_t) != len || peer->cut) {
        return 0;
    }
    dn_emulate_item_t *item = dn_emulate_item_new(emulate, peer, len);
    if (NULL != item) {
        *item = (dn_emulate_item_t){.due = peer->due, .kind = DN_EMULATE_ASK, .len = len};
        memcpy(item->data, data, len);
        dn_fifo_push(&peer->items, &item->item);
    }
    return 1;
}

int dn_emulate_arrive(dn_emulate_t *emulate, dn_emulate_peer_t *peer, unsigned kind, const void *data,
                      size_t len)
{
    const uint64_t now = dn_emulate_now();
    const uint64_t most = (uint64_t) (emulate->ticks_per_ps * 1e12 * DN_EMULATE_AHEAD_S);
    const uint8_t *bytes = (const uint8_t *) data + sizeof(dn_emulate_head_t);
    dn_emulate_head_t head;
    dn_emulate_store_t store = {0};

    if (sizeof(head) > len || peer->cut) {
        return 0;
    }
    memcpy(&head, data, sizeof(head));
    size_t left = len - sizeof(head);
    const size_t lines = dn_lines(left);
    if (head.sent > now + most || head.channel >= DN_CHAN_MAX || head.tag > UINT8_MAX) {
        return 0;
    }
    if (head.first > most || head.span > most) {
        dn_log_error("what PID %" PRIu32 " sends waits more than %d s for the link of %s; it is cut off: "
                     "send less at once, or raise link_rate of the profile",
                     peer->base.pid, DN_EMULATE_AHEAD_S, emulate->profile);
        dn_emulate_cut(emulate, peer);
        return 1;
    }
    if (DN_EMULATE_BOTF != kind) {
        if (sizeof(store) > left) {
            return 0;
        }
        memcpy(&store, bytes, sizeof(store));
        bytes += sizeof(store);
        left -= sizeof(store);
        if (!dn_store_fits(emulate, kind, &store, left)) {
            return 0;
        }
    }
    dn_emulate_item_t *item = dn_emulate_item_new(emulate, peer, left);
    if (NULL == item) {
        return 1;
    }
    const uint64_t first = head.sent + head.first;
    const uint64_t last = first + head.span;
    dn_core_part_t part;
    const dn_emulate_way_t way = dn_emulate_way(&emulate->nic, kind, &head, bytes, left, &part);
    dn_lock(&emulate->lock);
    const uint64_t due = DN_EMULATE_MESSAGE != way
                             ? dn_emulate_part_arrival(&emulate->nic, first, last, &part)
                         : DN_EMULATE_AOTF == kind
                             ? dn_emulate_aotf_arrival(&emulate->nic, first, store.size)
                             : dn_emulate_botf_arrival(&emulate->nic, first, last,
                                                       DN_EMULATE_STORES == kind ? DN_EMULATE_LINE : left);
    dn_unlock(&emulate->lock);
    peer->due = due > peer->due ? due : peer->due;
    *item = (dn_emulate_item_t){
        .due = peer->due,
        .trip = peer->due > head.sent ? peer->due - head.sent : 0,
        .late = peer->due < emulate->poll ? now - peer->due : 0,
        .kind = (dn_emulate_kind_t) kind,
        .channel = head.channel,
        .tag = head.tag,
        .way = way,
        /* Behind a status word the acknowledgement has come already. */
        .served = peer->due - (part.status && 0 != emulate->nic.tell ? emulate->nic.ask : 0),
        .lines = lines,
        .len = left,
        .store = store,
    };
    if (0 != left) {
        memcpy(item->data, bytes, left);
    }
    dn_fifo_push(&peer->items, &item->item);
    return 1;
}

/** A fence's question has come to its turn. */
static void dn_emulate_answer(dn_emulate_peer_t *peer, const dn_emulate_item_t *item)
{
    memcpy(&peer->answer, item->data, sizeof(peer->answer));
    dn_store_release_u32(&peer->owes, peer->owes | DN_EMULATE_OWES_ANSWER);
}

/** One thing takes effect. The time that the profile's host takes to read a message begins at @p from. */
static void dn_emulate_effect(dn_emulate_t *emulate, dn_emulate_peer_t *peer, const dn_emulate_item_t *item,
                              uint64_t from)
{
    uint8_t *llcm = emulate->iface.llcm;
    const dn_handler_t *handler = &emulate->iface.handler[item->channel];

    switch (item->kind) {
    case DN_EMULATE_BOTF:
        if (DN_EMULATE_MESSAGE == item->way) {
            dn_emulate_spin(from + dn_emulate_read(&emulate->nic, sizeof(uint64_t) + item->len));
        } else {
            peer->served = item->served;
        }
        handler->fn(&peer->base.hot, item->tag, item->data, item->len, handler->arg);
        break;
    case DN_EMULATE_STORES:
        memcpy(llcm + item->store.off, item->data, item->len);
        dn_store_release((uint64_t *) (llcm + item->store.off + DN_AOTF_LINE_MAX), item->store.value);
        break;
    case DN_EMULATE_AOTF:
        dn_store_bytes(llcm + item->store.off, item->store.value, item->store.size);
        break;
    default:
        dn_emulate_answer(peer, item);
        break;
    }
}

/** Compare what came with the profile. */
static void dn_emulate_sum(dn_emulate_t *emulate, const dn_emulate_item_t *item)
{
    dn_lock(&emulate->lock);
    emulate->sums.count++;
    emulate->sums.trip += item->trip + emulate->nic.host_read;
    emulate->sums.over += item->late + emulate->poll_over;
    dn_unlock(&emulate->lock);
}

int dn_emulate_deliver(dn_emulate_t *emulate, dn_emulate_peer_t *peer, int max)
{
    const uint64_t poll = emulate->poll;
    uint64_t from = poll + emulate->nic.host_read;
    dn_emulate_item_t *passed = NULL;
    dn_emulate_item_t *item;
    int waits = 0;
    int n = 0;

    while (n < max
           && NULL != (item = NULL == passed ? dn_fifo_first(&peer->items) : dn_fifo_next(&passed->item))
           && item->due <= poll) {
        waits = waits || (DN_EMULATE_BOTF == item->kind && NULL == emulate->iface.handler[item->channel].fn);
        if (waits && DN_EMULATE_BOTF == item->kind) {
            /* It keeps its place; what passes it runs no handler, which alone could change the queue. */
            passed = item;
            continue;
        }
        dn_fifo_remove(&peer->items, &item->item);
        if (DN_EMULATE_ASK != item->kind) {
            dn_emulate_sum(emulate, item);
        }
        /* The next session may begin in its handler, and has a count of its own. */
        const uint64_t session = peer->far_session;
        emulate->depth++;
        dn_emulate_effect(emulate, peer, item, from);
        emulate->depth--;
        from = dn_emulate_now();
        peer->taken += session == peer->far_session ? item->lines : 0;
        free(item);
        n++;
    }
    if (peer->taken - peer->told >= emulate->lines / DN_EMULATE_PART) {
        dn_store_release_u32(&peer->owes, peer->owes | DN_EMULATE_OWES_CREDIT);
    }
    return n;
}

void dn_emulate_drop(dn_emulate_peer_t *peer)
{
    dn_emulate_item_t *item;

    while (NULL != (item = dn_fifo_pop(&peer->items))) {
        free(item);
    }
}
/** @} */
