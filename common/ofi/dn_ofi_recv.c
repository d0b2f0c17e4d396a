/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <inttypes.h>
#include <string.h>

#include "dn_log.h"

void dn_ofi_apply(dn_ofi_t *ofi, const dn_ofi_buffer_t *buffer)
{
    dn_ofi_store_t store;

    memcpy(&store, buffer->bytes + sizeof(dn_ofi_head_t), sizeof(store));
    if (0 == store.size || 8 < store.size || store.off > ofi->where.llcm_bytes
        || store.size > ofi->where.llcm_bytes - store.off) {
        dn_count(&ofi->iface.counters->dropped, 1);
        return;
    }
    uint8_t *word = (uint8_t *) ofi->iface.llcm + store.off;
    const int whole = 0 == store.off % store.size;
    if (whole && 8 == store.size) {
        __atomic_store_n((uint64_t *) word, store.value, __ATOMIC_RELEASE);
    } else if (whole && 4 == store.size) {
        __atomic_store_n((uint32_t *) word, (uint32_t) store.value, __ATOMIC_RELEASE);
    } else if (whole && 2 == store.size) {
        __atomic_store_n((uint16_t *) word, (uint16_t) store.value, __ATOMIC_RELEASE);
    } else {
        for (uint64_t i = 0; i < store.size; i++) {
            __atomic_store_n(word + i, (uint8_t) (store.value >> (8 * i)), __ATOMIC_RELEASE);
        }
    }
}

void dn_ofi_give_credit(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (0 != peer->depth || 0 == peer->rx_token || peer->rx_left || peer->base.lost
        || peer->rx_taken - peer->rx_told < ofi->where.window / 4) {
        return;
    }
    if (dn_ofi_control(ofi, peer->node, DN_OFI_CREDIT, peer->rx_token, peer->rx_taken)) {
        peer->rx_told = peer->rx_taken;
    } else {
        ofi->work = 1;
    }
}

void dn_ofi_answer(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (peer->credit_due) {
        peer->credit_due = !dn_ofi_control(ofi, peer->node, DN_OFI_CREDIT, peer->rx_token, peer->rx_told);
    }
    if (peer->pong_due) {
        const enum dn_ofi_kind pong = peer->kept ? DN_OFI_KEPT : DN_OFI_PONG;
        peer->pong_due = !dn_ofi_control(ofi, peer->node, pong, peer->rx_token, peer->rx_number);
    }
    if (peer->left_due && !peer->pong_due) {
        peer->left_due = !dn_ofi_control(ofi, peer->node, DN_OFI_LEFT, peer->rx_token, 0);
    }
    ofi->work |= peer->credit_due || peer->pong_due || peer->left_due;
}

void dn_ofi_let_in(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    dn_ofi_buffer_t **at = &peer->first;

    peer->stranger = 0;
    peer->trusted = 1;
    peer->kept = 0;
    while (NULL != *at) {
        dn_ofi_buffer_t *buffer = *at;
        if (DN_OFI_AOTF == dn_ofi_head(buffer)->kind) {
            *at = buffer->next;
            dn_ofi_apply(ofi, buffer);
            peer->rx_taken += buffer->lines;
            dn_ofi_buffer_free(ofi, buffer);
        } else {
            peer->last = buffer;
            at = &buffer->next;
        }
    }
    dn_ofi_give_credit(ofi, peer);
    dn_ofi_make_ready(ofi, peer);
}

/** Bytes that no sender of ours writes: it is cut off. */
static void dn_ofi_distrust(dn_ofi_t *ofi, dn_ofi_peer_t *peer, const char *what)
{
    dn_count(&ofi->iface.counters->dropped, 1);
    if (!peer->suspect) {
        dn_log_error("PID %" PRIu32 " sent %s over ofi; it is cut off", peer->base.pid, what);
        dn_ofi_suspect(ofi, peer);
    }
}

/** It says itself that it has parted from this process. */
static void dn_ofi_parted(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    peer->parted = 1;
    dn_ofi_suspect(ofi, peer);
}

/** Keep a message in the shortest buffer that holds it: the long ones are for receiving. */
static dn_ofi_buffer_t *dn_ofi_shrink(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    const size_t size = sizeof(dn_ofi_head_t) + dn_ofi_head(buffer)->len;

    dn_ofi_buffer_t *least = dn_ofi_buffer(ofi, size);
    if (NULL == least || least->room == buffer->room) {
        if (NULL != least) {
            dn_ofi_buffer_free(ofi, least);
        }
        return buffer;
    }
    memcpy(least->bytes, buffer->bytes, size);
    least->lines = buffer->lines;
    dn_ofi_buffer_free(ofi, buffer);
    return least;
}

/** The next message of a stream, in order. */
static void dn_ofi_deliver(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer)
{
    const dn_ofi_head_t *head = dn_ofi_head(buffer);

    peer->rx_number++;
    if (DN_OFI_LEAVE == head->kind || DN_OFI_CLOSE == head->kind) {
        if (DN_OFI_CLOSE == head->kind) {
            dn_ofi_parted(ofi, peer);
        }
        peer->rx_left = 1;
        ofi->reap = 1;
        ofi->retry = NULL != ofi->stray;
        peer->left_due = 1;
        dn_ofi_answer(ofi, peer);
        dn_ofi_buffer_free(ofi, buffer);
        return;
    }
    buffer->lines = dn_ofi_lines(head->len);
    peer->rx_lines += buffer->lines;
    if (peer->rx_lines - peer->rx_told > ofi->where.window) {
        dn_ofi_buffer_free(ofi, buffer);
        dn_ofi_distrust(ofi, peer, "more than it had credit for");
        return;
    }
    if (DN_OFI_AOTF == head->kind && peer->trusted) {
        dn_ofi_apply(ofi, buffer);
        peer->rx_taken += buffer->lines;
        dn_ofi_buffer_free(ofi, buffer);
        dn_ofi_give_credit(ofi, peer);
        return;
    }
    peer->kept |= DN_OFI_AOTF == head->kind;
    if (NULL != peer->first) {
        buffer = dn_ofi_shrink(ofi, buffer);
    }
    dn_ofi_put_last(&peer->first, &peer->last, buffer);
    dn_ofi_make_ready(ofi, peer);
}

/** A numbered message: deliver it in its turn. */
static void dn_ofi_sequence(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer)
{
    /* Of a number that was delivered already, this is beyond any window. */
    const uint64_t ahead = dn_ofi_head(buffer)->number - peer->rx_number;

    peer->signs++;
    if (0 != ahead) {
        /* FI_ORDER_SAS is the order of matching: a short message may be complete
     * before a long one. */
        dn_ofi_buffer_t **at = &peer->early;
        while (NULL != *at && dn_ofi_head(*at)->number - peer->rx_number < ahead) {
            at = &(*at)->next;
        }
        /* A stream has no more messages on the way than lines, and the LEAVE. */
        if (ahead > ofi->where.window + 1
            || (NULL != *at && dn_ofi_head(*at)->number - peer->rx_number == ahead)) {
            dn_ofi_buffer_free(ofi, buffer);
            dn_ofi_distrust(ofi, peer, "a message out of its turn");
            return;
        }
        buffer = dn_ofi_shrink(ofi, buffer);
        buffer->next = *at;
        *at = buffer;
        return;
    }
    dn_ofi_deliver(ofi, peer, buffer);
    while (NULL != peer->early && dn_ofi_head(peer->early)->number == peer->rx_number) {
        dn_ofi_buffer_t *next = peer->early;
        peer->early = next->next;
        dn_ofi_deliver(ofi, peer, next);
    }
}

/** Keep a message for which its sender's HELLO, or room for that, is missing.
 * The oldest make room: they are of streams that are over. */
static void dn_ofi_keep(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    if (ofi->closing) {
        dn_ofi_buffer_free(ofi, buffer);
        return;
    }
    if (DN_OFI_STRAYS <= ofi->nstrays) {
        dn_ofi_buffer_t *oldest = ofi->stray;
        ofi->stray = oldest->next;
        ofi->nstrays--;
        dn_ofi_buffer_free(ofi, oldest);
        dn_count(&ofi->iface.counters->dropped, 1);
    }
    dn_ofi_buffer_t **at = &ofi->stray;
    while (NULL != *at) {
        at = &(*at)->next;
    }
    buffer = dn_ofi_shrink(ofi, buffer);
    buffer->next = NULL;
    *at = buffer;
    ofi->nstrays++;
}

/** A numbered message of nobody we know. */
static void dn_ofi_unknown(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    const dn_ofi_head_t *head = dn_ofi_head(buffer);

    /* 0 is the token of no stream, and `back` where there was none. */
    const int leaves = 0 != head->token && (DN_OFI_LEAVE == head->kind || DN_OFI_CLOSE == head->kind);

    for (uint32_t i = 0; leaves && i < ofi->nstreams; i++) {
        dn_ofi_stream_t *stream = ofi->stream[i];
        if (NULL != stream && NULL == stream->peer && stream->back == head->token) {
            /* Both close: each other's LEAVE is the acknowledgement. */
            dn_ofi_control(ofi, stream->node, DN_OFI_LEFT, head->token, 0);
            stream->dead = 1;
            dn_ofi_settle_stream(ofi, stream);
            dn_ofi_buffer_free(ofi, buffer);
            return;
        }
    }
    dn_ofi_keep(ofi, buffer);
}

static void dn_ofi_refused(dn_ofi_t *ofi, dn_ofi_stream_t *stream, uint32_t why)
{
    stream->dead = 1;
    if (NULL == stream->peer) {
        dn_ofi_settle_stream(ofi, stream);
        return;
    }
    if (DN_OFI_FULL == why && !stream->peer->suspect) {
        dn_log_error("all slots of PID %" PRIu32 " are taken; raise max_peers there", stream->peer->base.pid);
    }
    dn_ofi_parted(ofi, stream->peer);
}

/** A word about a stream of ours. */
static void dn_ofi_word(dn_ofi_t *ofi, const dn_ofi_head_t *head)
{
    dn_ofi_stream_t *stream = dn_ofi_find_stream(ofi, head->token);

    if (NULL == stream) {
        /* Of one that is over: it may come late. */
        return;
    }
    if (NULL != stream->peer) {
        stream->peer->signs++;
    }
    if (DN_OFI_CREDIT == head->kind) {
        /* Words may overtake each other: only one that is newer, and of what was sent, counts. */
        if (stream->credit <= head->number && head->number <= stream->sent) {
            stream->credit = head->number;
            dn_ofi_advance(ofi, stream);
        } else if (stream->credit - head->number > stream->window) {
            dn_count(&ofi->iface.counters->dropped, 1);
        }
    } else if (DN_OFI_LEFT == head->kind && stream->leaving) {
        stream->dead = 1;
        dn_ofi_settle_stream(ofi, stream);
    } else if (DN_OFI_PONG == head->kind || DN_OFI_KEPT == head->kind) {
        stream->asked = 0;
        if (stream->stored <= head->number && head->number <= stream->number) {
            stream->stored = head->number;
            stream->kept = DN_OFI_KEPT == head->kind;
        }
    } else if (DN_OFI_REFUSE == head->kind) {
        dn_ofi_refused(ofi, stream, (uint32_t) head->number);
    }
}

/** Does a message have a form that one of its kind can have? */
static int dn_ofi_well_formed(const dn_ofi_t *ofi, const dn_ofi_head_t *head, size_t len)
{
    if (sizeof(*head) > len || len - sizeof(*head) != head->len) {
        return 0;
    }
    switch (head->kind) {
    case DN_OFI_BOTF:
        return head->len <= ofi->where.botf_max && DN_CHAN_MAX > head->channel;
    case DN_OFI_AOTF:
        return sizeof(dn_ofi_store_t) == head->len;
    case DN_OFI_HELLO:
        return sizeof(dn_ofi_hello_t) == head->len;
    default:
        return 0 == head->len && 0 < head->kind && DN_OFI_KEPT >= head->kind;
    }
}

/** One message came. The buffer is the callee's. */
static void dn_ofi_one_arrived(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, size_t len)
{
    const dn_ofi_head_t *head = dn_ofi_head(buffer);

    if (!dn_ofi_well_formed(ofi, head, len)) {
        dn_count(&ofi->iface.counters->dropped, 1);
        dn_ofi_buffer_free(ofi, buffer);
        return;
    }
    if (DN_OFI_HELLO == head->kind) {
        if (dn_ofi_hello(ofi, buffer)) {
            ofi->retry = NULL != ofi->stray;
            dn_ofi_buffer_free(ofi, buffer);
        } else {
            dn_ofi_keep(ofi, buffer);
        }
        return;
    }
    if (DN_OFI_HELLO < head->kind && DN_OFI_PING != head->kind && DN_OFI_GONE != head->kind) {
        dn_ofi_word(ofi, head);
        dn_ofi_buffer_free(ofi, buffer);
        return;
    }
    dn_ofi_peer_t *peer = dn_ofi_find_sender(ofi, head->token);
    if (DN_OFI_PING == head->kind) {
        if (NULL != peer && peer->suspect) {
            /* An answer would keep it waiting for one who has given it up. */
            dn_ofi_control(ofi, peer->node, DN_OFI_REFUSE, peer->rx_token, DN_OFI_CLOSED);
            dn_ofi_buffer_free(ofi, buffer);
        } else if (NULL != peer) {
            peer->signs++;
            peer->pong_due = 1;
            peer->credit_due = 0 != head->number;
            peer->left_due = peer->rx_left;
            dn_ofi_answer(ofi, peer);
            dn_ofi_buffer_free(ofi, buffer);
        } else {
            /* It has overtaken the HELLO, and is not sent again soon. */
            dn_ofi_keep(ofi, buffer);
        }
    } else if (DN_OFI_GONE == head->kind && NULL != peer) {
        dn_ofi_buffer_free(ofi, buffer);
        dn_ofi_parted(ofi, peer);
    } else if (DN_OFI_GONE == head->kind) {
        dn_ofi_keep(ofi, buffer);
    } else if (NULL == peer || peer->rx_left) {
        dn_ofi_unknown(ofi, buffer);
    } else {
        dn_ofi_sequence(ofi, peer, buffer);
    }
}

/** The memory is gone for a message that came with others: nothing that its
 * sender sends later can be in order. */
static void dn_ofi_forgo(dn_ofi_t *ofi, uint64_t token)
{
    dn_ofi_peer_t *peer = dn_ofi_find_sender(ofi, token);

    dn_count(&ofi->iface.counters->dropped, 1);
    if (NULL != peer && !peer->suspect) {
        dn_log_error("no memory to receive from PID %" PRIu32 "; it is cut off", peer->base.pid);
        dn_ofi_suspect(ofi, peer);
    }
}

void dn_ofi_arrived(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, size_t len)
{
    size_t at = 0;

    while (at + sizeof(dn_ofi_head_t) <= len) {
        const dn_ofi_head_t *head = (const dn_ofi_head_t *) (buffer->bytes + at);
        const uint64_t size = sizeof(*head) + (uint64_t) head->len;
        if (0 == at && size == len) {
            dn_ofi_one_arrived(ofi, buffer, len);
            return;
        }
        if (size > len - at) {
            break;
        }
        dn_ofi_buffer_t *one = dn_ofi_buffer(ofi, size);
        if (NULL != one) {
            memcpy(one->bytes, head, size);
            dn_ofi_one_arrived(ofi, one, size);
        } else {
            dn_ofi_forgo(ofi, head->token);
        }
        at += (size + 7) & ~UINT64_C(7);
    }
    if (at < len || 0 == len) {
        dn_count(&ofi->iface.counters->dropped, 1);
    }
    dn_ofi_buffer_free(ofi, buffer);
}

void dn_ofi_retry(dn_ofi_t *ofi)
{
    dn_ofi_buffer_t *buffer = ofi->stray;

    ofi->retry = 0;
    ofi->stray = NULL;
    ofi->nstrays = 0;
    while (NULL != buffer) {
        dn_ofi_buffer_t *next = buffer->next;
        dn_ofi_arrived(ofi, buffer, sizeof(dn_ofi_head_t) + dn_ofi_head(buffer)->len);
        buffer = next;
    }
}
