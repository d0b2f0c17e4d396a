/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Words: messages about a stream that are not part of the stream, and have no order. A word can be lost, come late or come twice.
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <string.h>

int dn_ofi_control(dn_ofi_t *ofi, const dn_ofi_node_t *node, enum dn_ofi_kind kind, uint64_t token,
                   const dn_auth_way_t *way, uint64_t value)
{
    dn_ofi_head_t word = {.token = token, .number = value, .kind = (uint8_t) kind};

    dn_auth_seal(ofi->auth, way, value, &word, sizeof(word), offsetof(dn_ofi_head_t, proof));
    return dn_ofi_tell(ofi, node, &word, sizeof(word));
}

int dn_ofi_tell(dn_ofi_t *ofi, const dn_ofi_node_t *node, const void *message, size_t size)
{
    if (NULL == ofi->ep) {
        return 1;
    }
    if (size <= ofi->inject) {
        return -FI_EAGAIN != fi_inject(ofi->ep, message, size, node->addr);
    }
    dn_ofi_buffer_t *buffer = dn_ofi_buffer(ofi, size);
    if (NULL == buffer) {
        return 0;
    }
    buffer->stream = NULL;
    buffer->size = (uint32_t) size;
    memcpy(buffer->bytes, message, size);
    const ssize_t ret = dn_ofi_post(ofi, buffer, node);
    if (0 != ret) {
        dn_ofi_buffer_free(ofi, buffer);
    }
    return -FI_EAGAIN != ret;
}

/* At the sender of a stream */

void dn_ofi_inquire(dn_ofi_t *ofi, dn_ofi_stream_t *stream)
{
    const uint64_t now = dn_clock_ns();

    if (DN_OFI_TX_OPEN != stream->state || (0 != stream->asks.at && now - stream->asks.at < DN_OFI_ASK_NS)) {
        return;
    }
    const uint64_t question = stream->asks.number + (0 == stream->asks.at);
    /* Messages without credit may wait in the queue, or with the program, which tries again. */
    const int waits = NULL != stream->first || stream->sent - stream->credit > stream->credit_max / 2;
    if (dn_ofi_control(ofi, stream->node, DN_OFI_PING, stream->token, &stream->pair.way[DN_AUTH_OPENER],
                       dn_ofi_question(question, waits))) {
        stream->asks.number = question;
        stream->asks.since = 0 != stream->asks.at ? stream->asks.since : now;
        stream->asks.at = now;
    }
}

/** Note a word of a stream's receiver. Only a word that cannot have been said before is a sign of life. */
static void dn_ofi_heard(dn_ofi_stream_t *stream, int is_new)
{
    if (NULL != stream->peer) {
        stream->peer->watch.signs += (uint32_t) is_new;
    }
}

void dn_ofi_word(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    const dn_ofi_head_t *head = dn_ofi_head(buffer);
    dn_ofi_stream_t *stream = dn_ofi_find_stream(ofi, head->token);

    if (NULL == stream || !dn_ofi_stream_keyed(stream)) {
        /* The stream is over, and the word comes late. */
        return;
    }
    if (!dn_ofi_opens(ofi, &stream->pair.way[DN_AUTH_ACCEPTOR], buffer)) {
        dn_count(&ofi->iface.counters->dropped, 1);
        return;
    }
    if (DN_OFI_CREDIT == head->kind) {
        /* Words may overtake each other. A CREDIT counts only if it is not older than the last, and only for lines that were sent. */
        if (stream->credit <= head->number && head->number <= stream->sent) {
            dn_ofi_heard(stream, stream->credit < head->number);
            stream->credit = head->number;
            dn_ofi_advance(ofi, stream);
        } else if (stream->credit - head->number > stream->credit_max) {
            dn_count(&ofi->iface.counters->dropped, 1);
        }
    } else if (DN_OFI_LEFT == head->kind && NULL == stream->peer) {
        /* The receiver has what was lent, though the provider has not said so yet. */
        dn_ofi_loan_return_all(ofi, stream, DN_OK);
        dn_ofi_stream_end(stream);
        dn_ofi_settle_stream(ofi, stream);
    } else if (DN_OFI_PONG == head->kind) {
        const dn_ofi_pong_t *pong = (const dn_ofi_pong_t *) (head + 1);
        if (0 == stream->asks.at || stream->asks.number != pong->question) {
            /* The question was asked several times, and so the answer comes several times. */
            return;
        }
        dn_ofi_heard(stream, 1);
        stream->asks.at = 0;
        if (stream->stored <= head->number && head->number <= stream->number) {
            stream->stored = head->number;
        }
    } else if (DN_OFI_REFUSE == head->kind) {
        dn_ofi_refused(ofi, stream, head->number);
    }
}

/* At the receiver of a stream */

void dn_ofi_give_credit(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (0 != peer->rx.depth || DN_OFI_RX_OPEN != peer->rx.state || dn_peer_is_lost(&peer->base)
        || peer->rx.taken - peer->rx.told < ofi->where.credit_max / 2) {
        return;
    }
    if (dn_ofi_control(ofi, peer->node, DN_OFI_CREDIT, peer->rx.token, &peer->rx.pair.way[DN_AUTH_ACCEPTOR],
                       peer->rx.taken)) {
        peer->rx.told = peer->rx.taken;
    } else {
        ofi->work = 1;
    }
}

/** Tell a peer how much of its stream has come. @return 0: the provider has no room. */
static int dn_ofi_pong(dn_ofi_t *ofi, const dn_ofi_peer_t *peer)
{
    struct {
        dn_ofi_head_t head;
        dn_ofi_pong_t pong;
    } message = {.head = {.token = peer->rx.token,
                          .number = peer->rx.number,
                          .len = sizeof(message.pong),
                          .kind = DN_OFI_PONG},
                 .pong = {.question = peer->rx.question}};

    dn_auth_seal(ofi->auth, &peer->rx.pair.way[DN_AUTH_ACCEPTOR], message.head.number, &message,
                 sizeof(message), offsetof(dn_ofi_head_t, proof));
    return dn_ofi_tell(ofi, peer->node, &message, sizeof(message));
}

void dn_ofi_answer(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    const dn_auth_way_t *way = &peer->rx.pair.way[DN_AUTH_ACCEPTOR];

    if (0 != (DN_OFI_OWES_CREDIT & peer->rx.owes)
        && dn_ofi_control(ofi, peer->node, DN_OFI_CREDIT, peer->rx.token, way, peer->rx.told)) {
        peer->rx.owes &= ~DN_OFI_OWES_CREDIT;
    }
    if (0 != (DN_OFI_OWES_PONG & peer->rx.owes) && dn_ofi_pong(ofi, peer)) {
        peer->rx.owes &= ~DN_OFI_OWES_PONG;
    }
    if (DN_OFI_RX_LEAVES == peer->rx.state && 0 == (DN_OFI_OWES_PONG & peer->rx.owes)
        && dn_ofi_control(ofi, peer->node, DN_OFI_LEFT, peer->rx.token, way, 0)) {
        dn_ofi_rx_turn(peer, DN_OFI_RX_LEFT);
        dn_ofi_ring(ofi);
    }
    ofi->work |= 0 != peer->rx.owes || DN_OFI_RX_LEAVES == peer->rx.state;
}

void dn_ofi_asked(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    const dn_ofi_head_t *head = dn_ofi_head(buffer);
    dn_ofi_peer_t *peer = dn_ofi_find_sender(ofi, head->token);

    if (NULL == peer || !dn_ofi_opens(ofi, &peer->rx.pair.way[DN_AUTH_OPENER], buffer)) {
        /* If the stream is not known yet, its sender asks again. */
        dn_count(&ofi->iface.counters->dropped, NULL != peer);
    } else if (DN_OFI_GONE == head->kind) {
        dn_ofi_doubt(ofi, peer, DN_PEER_PARTED);
    } else if (dn_ofi_is_doubted(peer)) {
        /* A PONG would keep the peer waiting for this process, which has given it up. */
        dn_ofi_control(ofi, peer->node, DN_OFI_REFUSE, peer->rx.token, &peer->rx.pair.way[DN_AUTH_ACCEPTOR],
                       DN_OFI_CLOSED);
    } else {
        const uint64_t question = head->number >> 1;
        if (question < peer->rx.question) {
            /* A newer question was answered, or is about to be. */
            return;
        }
        peer->watch.signs += question > peer->rx.question;
        peer->rx.question = question;
        peer->rx.owes =
            DN_OFI_OWES_PONG | (dn_ofi_question(question, 1) == head->number ? DN_OFI_OWES_CREDIT : 0);
        if (DN_OFI_RX_LEFT == peer->rx.state) {
            dn_ofi_rx_turn(peer, DN_OFI_RX_LEAVES);
        }
        dn_ofi_answer(ofi, peer);
    }
}
