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
    dn_store_bytes((uint8_t *) ofi->iface.llcm + store.off, store.value, store.size);
    dn_ofi_ring(ofi);
}

void dn_ofi_let_in(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    dn_ofi_peer_turn(peer, DN_OFI_KNOWN);
    dn_ofi_give_credit(ofi, peer);
    dn_ofi_make_ready(ofi, peer);
}

/** Cut off a peer that has sent bytes which no correct sender writes. */
static void dn_ofi_distrust(dn_ofi_t *ofi, dn_ofi_peer_t *peer, const char *what)
{
    dn_count(&ofi->iface.counters->dropped, 1);
    if (!dn_ofi_is_doubted(peer)) {
        dn_log_later(&ofi->log, "PID %" PRIu32 " sent %s over ofi; it is cut off", peer->base.pid, what);
        dn_ofi_condemn(ofi, peer, DN_PEER_SUSPECT);
    }
}

dn_ofi_buffer_t *dn_ofi_shrink(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
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
    least->later = buffer->later;
    dn_ofi_buffer_free(ofi, buffer);
    return least;
}

/** Handle a message that is the next of its stream. */
static void dn_ofi_deliver(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer)
{
    const dn_ofi_head_t *head = dn_ofi_head(buffer);

    peer->rx.number++;
    if (DN_OFI_LEAVE == head->kind || DN_OFI_CLOSE == head->kind) {
        if (DN_OFI_CLOSE == head->kind) {
            dn_ofi_doubt(ofi, peer, DN_PEER_PARTED);
        }
        dn_ofi_rx_turn(peer, DN_OFI_RX_LEAVES);
        dn_store_seq_cst(&ofi->reap, 1);
        dn_ofi_ring(ofi);
        ofi->retry = NULL != ofi->applicant;
        dn_ofi_answer(ofi, peer);
        dn_ofi_buffer_free(ofi, buffer);
        return;
    }
    buffer->lines = dn_ofi_lines(head->len);
    peer->rx.lines += buffer->lines;
    if (peer->rx.lines - peer->rx.told > ofi->where.credit_max) {
        dn_ofi_buffer_free(ofi, buffer);
        dn_ofi_distrust(ofi, peer, "more than it had credit for");
        return;
    }
    buffer->later = 0;
    int done = DN_OFI_AOTF == head->kind;
    if (done) {
        dn_ofi_apply(ofi, buffer);
    } else if (DN_CHAN_CORE == head->channel) {
        done = dn_ofi_serve(ofi, peer, buffer);
    }
    if (done) {
        peer->rx.taken += buffer->lines;
        dn_ofi_buffer_free(ofi, buffer);
        dn_ofi_give_credit(ofi, peer);
        return;
    }
    peer->rx.later += buffer->later;
    if (NULL != peer->rx.first) {
        buffer = dn_ofi_shrink(ofi, buffer);
    }
    dn_ofi_put_last(&peer->rx.first, &peer->rx.last, buffer);
    dn_ofi_make_ready(ofi, peer);
    dn_ofi_ring(ofi);
}

/** Keep a message that has overtaken others until the others have come. */
static void dn_ofi_keep_early(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer)
{
    const uint64_t number = dn_ofi_head(buffer)->number;
    const uint32_t lines = dn_ofi_lines(dn_ofi_head(buffer)->len);
    dn_ofi_buffer_t **at = &peer->rx.early;

    while (NULL != *at && dn_ofi_head(*at)->number < number) {
        at = &(*at)->next;
    }
    if (NULL != *at && dn_ofi_head(*at)->number == number) {
        dn_count(&ofi->iface.counters->dropped, 1);
        dn_ofi_buffer_free(ofi, buffer);
        return;
    }
    /* A stream has no more lines on their way than it has credit for, and the LEAVE. */
    if (number - peer->rx.number > ofi->where.credit_max + 1
        || peer->rx.lines - peer->rx.told + peer->rx.early_lines + lines > ofi->where.credit_max + 1) {
        dn_ofi_buffer_free(ofi, buffer);
        dn_ofi_distrust(ofi, peer, "more than it had credit for");
        return;
    }
    buffer = dn_ofi_shrink(ofi, buffer);
    peer->watch.signs++;
    peer->rx.early_lines += lines;
    buffer->next = *at;
    *at = buffer;
}

void dn_ofi_sequence(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer)
{
    const uint64_t number = dn_ofi_head(buffer)->number;

    if (number < peer->rx.number || DN_OFI_RX_OPEN != peer->rx.state) {
        /* The message came before, and a process that has seen it on its way can send it again. Or the sender has left already. */
        dn_count(&ofi->iface.counters->dropped, 1);
        dn_ofi_buffer_free(ofi, buffer);
        return;
    }
    if (number != peer->rx.number) {
        /* Even where a provider has FI_ORDER_SAS, that is only the order of matching: a short message may be complete before a long one. */
        dn_ofi_keep_early(ofi, peer, buffer);
        return;
    }
    peer->watch.signs++;
    dn_ofi_deliver(ofi, peer, buffer);
    while (DN_OFI_RX_OPEN == peer->rx.state && NULL != peer->rx.early
           && dn_ofi_head(peer->rx.early)->number == peer->rx.number) {
        dn_ofi_buffer_t *next = peer->rx.early;
        peer->rx.early = next->next;
        peer->rx.early_lines -= dn_ofi_lines(dn_ofi_head(next)->len);
        dn_ofi_deliver(ofi, peer, next);
    }
}

int dn_ofi_opens(const dn_ofi_t *ofi, const dn_auth_way_t *way, dn_ofi_buffer_t *buffer)
{
    dn_ofi_head_t *head = dn_ofi_head(buffer);

    return dn_auth_opens(ofi->auth, way, head->number, head, sizeof(*head) + head->len,
                         offsetof(dn_ofi_head_t, proof));
}

/** Handle a numbered message that belongs to the stream of no peer: it may be of an applicant, or the LEAVE of a peer that was freed. */
static void dn_ofi_unknown(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    const dn_ofi_head_t *head = dn_ofi_head(buffer);

    dn_ofi_applicant_t *applicant = dn_ofi_find_applicant(ofi, head->token);
    if (NULL != applicant) {
        dn_ofi_applied(ofi, applicant, buffer);
        return;
    }
    /* No stream has the token 0, but `back` is 0 where the peer had no stream. */
    const int leaves = 0 != head->token && (DN_OFI_LEAVE == head->kind || DN_OFI_CLOSE == head->kind);

    for (uint32_t i = 0; leaves && i < ofi->nstreams; i++) {
        dn_ofi_stream_t *stream = ofi->stream[i];
        if (NULL != stream && NULL == stream->peer && stream->back == head->token
            && dn_ofi_opens(ofi, &stream->back_pair.way[DN_AUTH_OPENER], buffer)) {
            /* Both processes leave each other: the LEAVE of one acknowledges the LEAVE of the other. */
            dn_ofi_control(ofi, stream->node, DN_OFI_LEFT, head->token,
                           &stream->back_pair.way[DN_AUTH_ACCEPTOR], 0);
            dn_ofi_stream_end(stream);
            dn_ofi_settle_stream(ofi, stream);
            dn_ofi_buffer_free(ofi, buffer);
            return;
        }
    }
    dn_count(&ofi->iface.counters->dropped, 1);
    dn_ofi_buffer_free(ofi, buffer);
}

/** Has a message a possible form of its kind? */
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
    case DN_OFI_CHALLENGE:
        return sizeof(dn_ofi_challenge_t) == head->len;
    case DN_OFI_PROOF:
        return sizeof(dn_ofi_proof_t) == head->len;
    case DN_OFI_PONG:
        return sizeof(dn_ofi_pong_t) == head->len;
    default:
        return 0 == head->len && 0 < head->kind && DN_OFI_GONE >= head->kind;
    }
}

/** Handle a numbered message. The buffer is the callee's. */
static void dn_ofi_numbered(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    dn_ofi_peer_t *peer = dn_ofi_find_sender(ofi, dn_ofi_head(buffer)->token);

    if (NULL == peer) {
        dn_ofi_unknown(ofi, buffer);
    } else if (DN_OFI_RX_OPEN != peer->rx.state || DN_OFI_PROOF == dn_ofi_head(buffer)->kind
               || !dn_ofi_opens(ofi, &peer->rx.pair.way[DN_AUTH_OPENER], buffer)) {
        dn_count(&ofi->iface.counters->dropped, 1);
        dn_ofi_buffer_free(ofi, buffer);
    } else {
        dn_ofi_sequence(ofi, peer, buffer);
    }
}

/** Handle one message that came. The buffer is the callee's. */
static void dn_ofi_one_arrived(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, size_t len)
{
    const dn_ofi_head_t *head = dn_ofi_head(buffer);

    if (!dn_ofi_well_formed(ofi, head, len)) {
        dn_count(&ofi->iface.counters->dropped, 1);
        dn_ofi_buffer_free(ofi, buffer);
        return;
    }
    switch (head->kind) {
    case DN_OFI_HELLO:
        dn_ofi_hello(ofi, buffer);
        dn_ofi_buffer_free(ofi, buffer);
        break;
    case DN_OFI_CHALLENGE:
        dn_ofi_challenged(ofi, buffer);
        dn_ofi_buffer_free(ofi, buffer);
        break;
    case DN_OFI_PING:
    case DN_OFI_GONE:
        dn_ofi_asked(ofi, buffer);
        dn_ofi_buffer_free(ofi, buffer);
        break;
    case DN_OFI_CREDIT:
    case DN_OFI_LEFT:
    case DN_OFI_REFUSE:
    case DN_OFI_PONG:
        dn_ofi_word(ofi, buffer);
        dn_ofi_buffer_free(ofi, buffer);
        break;
    default:
        dn_ofi_numbered(ofi, buffer);
        break;
    }
}

/** There is no memory for a message that came in one buffer with others. Cut off its sender: no later message could be the next of the
 * stream. */
static void dn_ofi_forgo(dn_ofi_t *ofi, uint64_t token)
{
    dn_ofi_peer_t *peer = dn_ofi_find_sender(ofi, token);

    dn_count(&ofi->iface.counters->dropped, 1);
    if (NULL != peer && !dn_ofi_is_doubted(peer)) {
        dn_log_later(&ofi->log, "no memory to receive from PID %" PRIu32 "; it is cut off", peer->base.pid);
        dn_ofi_condemn(ofi, peer, DN_PEER_SUSPECT);
    }
}

/** Is a message a HELLO of a host with another byte order? This process cannot read it. It logs that once. */
static int dn_ofi_is_turned(dn_ofi_t *ofi, const dn_ofi_buffer_t *buffer, size_t len)
{
    const dn_ofi_head_t *head = (const dn_ofi_head_t *) buffer->bytes;

    if (sizeof(*head) + sizeof(dn_ofi_hello_t) != len || DN_OFI_HELLO != head->kind
        || __builtin_bswap32(sizeof(dn_ofi_hello_t)) != head->len) {
        return 0;
    }
    if (!ofi->told) {
        dn_log_later(&ofi->log, "a process on a host with another byte order wants to talk over ofi; run a "
                                "job on hosts of one byte order");
    }
    ofi->told = 1;
    return 1;
}

void dn_ofi_arrived(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, size_t len)
{
    size_t at = 0;

    if (dn_ofi_is_turned(ofi, buffer, len)) {
        dn_count(&ofi->iface.counters->dropped, 1);
        dn_ofi_buffer_free(ofi, buffer);
        return;
    }
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
