/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The queue of a stream: messages wait there for credit or for the provider, and short ones that follow each other closely go out
 * together.
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <string.h>

/** Short messages on a stream that go out at once, one by one, between two turns of progress. */
#define DN_OFI_SINGLES 4
/** The messages behind them are gathered if each follows the one before within this time: sending takes 5 to 10 us. */
#define DN_OFI_GAP_NS UINT64_C(30000)
/** A stream that holds so many lines does not gather. */
#define DN_OFI_GATHER 512

ssize_t dn_ofi_post(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, const dn_ofi_node_t *node)
{
    if (NULL == ofi->ep) {
        return -FI_ESHUTDOWN;
    }
    if (ofi->tx_left <= (NULL == buffer->stream ? 0 : ofi->tx_words)) {
        return -FI_EAGAIN;
    }
    buffer->request.role = DN_OFI_SEND;
    const ssize_t ret =
        fi_send(ofi->ep, buffer->bytes, buffer->size, buffer->desc, node->addr, &buffer->request.context);
    if (0 == ret) {
        ofi->tx_left--;
        ofi->backlog = 1;
        dn_ofi_stir(ofi);
    }
    return ret;
}

void dn_ofi_seal(const dn_ofi_t *ofi, const dn_ofi_stream_t *stream, dn_ofi_head_t *head)
{
    dn_auth_seal(ofi->auth, &stream->pair.way[DN_AUTH_OPENER], head->number, head, sizeof(*head) + head->len,
                 offsetof(dn_ofi_head_t, proof));
}

void dn_ofi_broken(dn_ofi_t *ofi, dn_ofi_stream_t *stream)
{
    dn_ofi_stream_end(stream);
    if (NULL != stream->peer) {
        dn_ofi_doubt(ofi, stream->peer, DN_PEER_SUSPECT);
    } else {
        /* The caller may go on with the stream: it is settled with the work that waits. */
        ofi->work = 1;
    }
}

/** May a message go in one buffer with the messages before it? */
static int dn_ofi_joins(const dn_ofi_t *ofi, const dn_ofi_stream_t *stream, const dn_ofi_buffer_t *buffer,
                        uint32_t size, uint32_t lines, uint32_t credit)
{
    return NULL != buffer && buffer->room < ofi->pool[DN_OFI_LONG].room && size + buffer->size <= stream->room
           && lines + buffer->lines <= credit;
}

/** The place in a buffer where the next message begins. */
static uint32_t dn_ofi_end(const dn_ofi_buffer_t *buffer)
{
    return (buffer->size + 7) & ~7u;
}

/** Join the short messages at the head of a queue in one buffer, as many as there is credit for: each call that sends is expensive. */
static void dn_ofi_join(dn_ofi_t *ofi, dn_ofi_stream_t *stream)
{
    const uint32_t credit = stream->credit_max - (uint32_t) (stream->sent - stream->credit);
    dn_ofi_buffer_t *first = stream->first;
    dn_ofi_buffer_t *next = first->next;

    if (!dn_ofi_joins(ofi, stream, next, dn_ofi_end(first), first->lines, credit)) {
        return;
    }
    if (first->room < ofi->pool[DN_OFI_LONG].room) {
        dn_ofi_buffer_t *whole = dn_ofi_buffer(ofi, ofi->pool[DN_OFI_LONG].room);
        if (NULL == whole) {
            return;
        }
        memcpy(whole->bytes, first->bytes, first->size);
        whole->size = first->size;
        whole->lines = first->lines;
        whole->stream = stream;
        dn_ofi_buffer_free(ofi, first);
        first = whole;
    }
    while (dn_ofi_joins(ofi, stream, next, dn_ofi_end(first), first->lines, credit)) {
        dn_ofi_buffer_t *joined = next;
        memcpy(first->bytes + dn_ofi_end(first), joined->bytes, joined->size);
        first->size = dn_ofi_end(first) + joined->size;
        first->lines += joined->lines;
        next = joined->next;
        dn_ofi_buffer_free(ofi, joined);
    }
    first->next = next;
    stream->first = first;
    stream->last = NULL == next ? first : stream->last;
}

void dn_ofi_advance(dn_ofi_t *ofi, dn_ofi_stream_t *stream)
{
    if (DN_OFI_TX_GREETS == stream->state) {
        dn_ofi_greet(ofi, stream);
        return;
    }
    while (NULL != stream->first && DN_OFI_TX_OPEN == stream->state) {
        dn_ofi_join(ofi, stream);
        dn_ofi_buffer_t *buffer = stream->first;
        if (stream->sent - stream->credit + buffer->lines > stream->credit_max) {
            return;
        }
        dn_ofi_buffer_t *next = buffer->next;
        const ssize_t ret =
            stream->flying < ofi->tx_most ? dn_ofi_post(ofi, buffer, stream->node) : -FI_EAGAIN;
        if (-FI_EAGAIN == ret) {
            ofi->work = 1;
            return;
        }
        if (0 != ret) {
            dn_ofi_broken(ofi, stream);
            return;
        }
        stream->flying++;
        stream->sent += buffer->lines;
        stream->held -= buffer->lines;
        stream->first = next;
    }
}

/* Bursts */

int dn_ofi_gathers(const dn_ofi_t *ofi, dn_ofi_stream_t *stream, size_t len)
{
    if (NULL == stream || DN_OFI_WATCH_NONE == ofi->watcher.state
        || sizeof(dn_ofi_head_t) + len > ofi->pool[DN_OFI_MEDIUM].room
        || ofi->pool[DN_OFI_MEDIUM].room == ofi->pool[DN_OFI_LONG].room) {
        return 0;
    }
    if (stream->burst.turn != ofi->turns) {
        stream->burst.turn = ofi->turns;
        stream->burst.messages = 0;
    }
    if (++stream->burst.messages <= DN_OFI_SINGLES) {
        return 0;
    }
    const uint64_t now = dn_clock_ns();
    const uint64_t gap = now - stream->burst.sent_at;
    stream->burst.sent_at = now;
    return gap < DN_OFI_GAP_NS;
}

/** Have a stream gather. Progress sends the messages; if the program makes no progress, the watcher sends them. */
static void dn_ofi_gather(dn_ofi_t *ofi, dn_ofi_stream_t *stream)
{
    if (!stream->burst.gathers) {
        stream->burst.gathers = 1;
        stream->burst.next = ofi->gathering;
        ofi->gathering = stream;
    }
    ofi->after |= ofi->watcher.guards ? 0 : DN_OFI_AFTER_CALL;
    ofi->watcher.guards = 1;
}

void dn_ofi_let_go(dn_ofi_t *ofi)
{
    while (NULL != ofi->gathering) {
        dn_ofi_stream_t *stream = ofi->gathering;
        ofi->gathering = stream->burst.next;
        stream->burst.gathers = 0;
        dn_ofi_advance(ofi, stream);
    }
}

void dn_ofi_append(dn_ofi_t *ofi, dn_ofi_stream_t *stream, dn_ofi_buffer_t *buffer, int gathers)
{
    dn_ofi_head_t *head = dn_ofi_head(buffer);

    head->token = stream->token;
    head->number = stream->number++;
    if (DN_OFI_AOTF == head->kind) {
        stream->stores = stream->number;
    }
    buffer->stream = stream;
    buffer->size = (uint32_t) sizeof(*head) + head->len;
    if (DN_OFI_TX_OPEN == stream->state) {
        dn_ofi_seal(ofi, stream, head);
    }
    dn_ofi_put_last(&stream->first, &stream->last, buffer);
    if (gathers && stream->held < DN_OFI_GATHER) {
        dn_ofi_gather(ofi, stream);
    } else {
        dn_ofi_advance(ofi, stream);
    }
}

dn_status_t dn_ofi_enqueue(dn_ofi_t *ofi, dn_ofi_stream_t *stream, enum dn_ofi_kind kind, const void *data,
                           size_t len)
{
    dn_ofi_buffer_t *buffer = dn_ofi_buffer(ofi, sizeof(dn_ofi_head_t) + len);

    if (NULL == buffer) {
        return DN_ERR_NOMEM;
    }
    *dn_ofi_head(buffer) = (dn_ofi_head_t){.kind = (uint8_t) kind, .len = (uint32_t) len};
    if (0 != len) {
        memcpy(buffer->bytes + sizeof(dn_ofi_head_t), data, len);
    }
    dn_ofi_append(ofi, stream, buffer, 0);
    return DN_OK;
}
