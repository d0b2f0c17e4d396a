/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <string.h>
#include <sys/uio.h>

/** Operations that find no room between two looks whether the peer still lives. */
#define DN_OFI_REFUSALS 4096

static void dn_ofi_count_message(dn_ofi_t *ofi, size_t len)
{
    dn_counters_t *counters = ofi->iface.counters;
    dn_count(&counters->messages_sent, 1);
    dn_count(&counters->bytes_sent, len);
    dn_count(&counters->lines_sent, dn_ofi_lines(len));
}

/** Append a message of this process to itself to those that wait for handlers. */
static void dn_ofi_append_self(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer)
{
    peer->rx.lines += buffer->lines;
    buffer->later = 0;
    dn_ofi_put_last(&peer->rx.first, &peer->rx.last, buffer);
    dn_ofi_make_ready(ofi, peer);
    dn_ofi_ring(ofi);
}

/** Is there room for a message of so many lines? If there is no stream to the peer, one is opened. */
static dn_status_t dn_ofi_room(dn_ofi_t *ofi, dn_ofi_peer_t *peer, uint32_t lines)
{
    if (dn_peer_is_doubted(&peer->base)) {
        return DN_ERR_UNREACH;
    }
    if (peer->self) {
        return peer->rx.lines - peer->rx.taken + lines <= 2 * peer->credit_max ? DN_OK : DN_ERR_AGAIN;
    }
    if (NULL == peer->tx) {
        const dn_status_t status = dn_ofi_open_stream(ofi, peer);
        if (DN_OK != status) {
            return DN_ERR_NOMEM == status ? DN_ERR_AGAIN : status;
        }
    }
    return peer->tx->held + lines <= peer->tx->credit_max ? DN_OK : DN_ERR_AGAIN;
}

dn_status_t dn_ofi_no_room(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    const dn_status_t status = peer->self ? DN_ERR_AGAIN : dn_peer_refused(&peer->base, DN_OFI_REFUSALS);

    if (DN_OK == status && NULL != peer->tx) {
        /* The answer tells whether a peer on another host lives. It also brings credit again, since a CREDIT may have been lost. */
        dn_ofi_inquire(ofi, peer->tx);
    }
    if (DN_OK != status && DN_ERR_AGAIN != status) {
        dn_ofi_ring(ofi);
        return status;
    }
    ofi->awaited = 1;
    return DN_ERR_AGAIN;
}

/** Take a buffer for a message of @p len bytes, and reserve room for the message. */
static dn_status_t dn_ofi_buffer_reserve(dn_ofi_t *ofi, dn_ofi_peer_t *peer, size_t len,
                                         dn_ofi_buffer_t **buffer_p)
{
    const uint32_t lines = dn_ofi_lines(len);

    const dn_status_t status = dn_ofi_room(ofi, peer, lines);
    if (DN_OK != status) {
        if (DN_ERR_AGAIN != status) {
            return status;
        }
        dn_count(&ofi->iface.counters->credit_waits, 1);
        return dn_ofi_no_room(ofi, peer);
    }
    dn_ofi_buffer_t *buffer = dn_ofi_buffer(ofi, sizeof(dn_ofi_head_t) + len);
    if (NULL == buffer) {
        return DN_ERR_AGAIN;
    }
    buffer->lines = lines;
    if (!peer->self) {
        peer->tx->held += lines;
    }
    *buffer_p = buffer;
    return DN_OK;
}

/** Send a buffer from dn_ofi_buffer_reserve(). */
static void dn_ofi_give(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer, int gathers)
{
    if (peer->self) {
        dn_ofi_append_self(ofi, peer, buffer);
    } else if (NULL == peer->tx) {
        /* The peer was lost or disconnected since the reserve: the message is dropped. */
        dn_ofi_buffer_free(ofi, buffer);
    } else {
        dn_ofi_append(ofi, peer->tx, buffer, gathers);
    }
}

/** Send a short message by fi_inject(), without a buffer, if no message waits. @return 0: the message has to go in a buffer. */
static int dn_ofi_inject(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_head_t head, const void *first,
                         size_t first_len, const void *second, size_t second_len)
{
    _Alignas(8) uint8_t bytes[DN_OFI_SMALL];
    dn_ofi_stream_t *stream = peer->tx;
    const size_t size = sizeof(head) + head.len;
    const uint32_t lines = dn_ofi_lines(head.len);

    if (NULL == stream || NULL == ofi->ep || NULL != stream->first || size > ofi->inject
        || sizeof(bytes) < size || dn_peer_is_doubted(&peer->base)
        || stream->sent - stream->credit + lines > stream->credit_max) {
        return 0;
    }
    head.token = stream->token;
    head.number = stream->number;
    memcpy(bytes, &head, sizeof(head));
    if (0 != first_len) {
        memcpy(bytes + sizeof(head), first, first_len);
    }
    if (0 != second_len) {
        memcpy(bytes + sizeof(head) + first_len, second, second_len);
    }
    dn_ofi_seal(ofi, stream, (dn_ofi_head_t *) bytes);
    if (0 != fi_inject(ofi->ep, bytes, size, stream->node->addr)) {
        return 0;
    }
    dn_ofi_stir(ofi);
    stream->number++;
    stream->sent += lines;
    if (DN_OFI_AOTF == head.kind) {
        stream->stores = stream->number;
    }
    return 1;
}

dn_status_t dn_ofi_botf(dn_peer_t *hot, unsigned channel, unsigned tag, const void *first, size_t first_len,
                        const void *second, size_t second_len)
{
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) hot;
    dn_ofi_t *ofi = (dn_ofi_t *) peer->base.iface;
    const size_t len = first_len + second_len;
    const dn_ofi_head_t head = {
        .len = (uint32_t) len, .kind = DN_OFI_BOTF, .channel = (uint8_t) channel, .tag = (uint8_t) tag};
    dn_ofi_buffer_t *buffer = NULL;
    dn_status_t status = DN_OK;

    if (len > peer->base.botf_max || len < second_len) {
        return DN_ERR_RANGE;
    }
    dn_ofi_lock(ofi);
    const int gathers = dn_ofi_gathers(ofi, peer->tx, len);
    if (gathers || !dn_ofi_inject(ofi, peer, head, first, first_len, second, second_len)) {
        status = dn_ofi_buffer_reserve(ofi, peer, len, &buffer);
        if (DN_OK == status) {
            uint8_t *body = buffer->bytes + sizeof(head);
            *dn_ofi_head(buffer) = head;
            if (0 != first_len) {
                memcpy(body, first, first_len);
            }
            if (0 != second_len) {
                memcpy(body + first_len, second, second_len);
            }
            dn_ofi_give(ofi, peer, buffer, gathers);
        }
    }
    dn_ofi_unlock(ofi);
    if (DN_OK == status) {
        dn_ofi_count_message(ofi, len);
    }
    return status;
}

/** Can a message to a peer be sent from the caller's memory? Only if no tag covers its bytes, and the provider wants no registration. */
static int dn_ofi_borrows(const dn_ofi_t *ofi, const dn_ofi_peer_t *peer, size_t head_len)
{
    return NULL != ofi->ep && NULL != peer->tx && DN_OFI_TX_OPEN == peer->tx->state
           && !dn_peer_is_doubted(&peer->base) && DN_AUTH_FULL != ofi->auth
           && 0 == (ofi->mr_mode & FI_MR_LOCAL) && 2 <= ofi->iov_limit
           && sizeof(dn_ofi_head_t) + head_len <= ofi->pool[DN_OFI_SHORT].room;
}

/** Is there room for a message that is lent? It must not overtake other messages, and it does not wait in the stream's queue: without room
 * the caller keeps it. */
static int dn_ofi_has_way(const dn_ofi_t *ofi, const dn_ofi_stream_t *stream, uint32_t lines)
{
    return NULL == stream->first && ofi->tx_words < ofi->tx_left && stream->flying < ofi->tx_most
           && stream->sent - stream->credit + lines <= stream->credit_max;
}

/** Give a buffer to the provider, with the lent memory behind it. */
static ssize_t dn_ofi_post_both(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, const void *body, size_t body_len)
{
    const struct iovec iov[2] = {{buffer->bytes, buffer->size}, {(void *) (uintptr_t) body, body_len}};
    void *desc[2] = {NULL, NULL};
    const struct fi_msg msg = {.msg_iov = iov,
                               .desc = desc,
                               .iov_count = 2,
                               .addr = buffer->stream->node->addr,
                               .context = &buffer->request.context};

    buffer->request.role = DN_OFI_SEND;
    return fi_sendmsg(ofi->ep, &msg, FI_COMPLETION);
}

/** Send a message in two parts, of which the second is lent. */
static dn_status_t dn_ofi_send_both(dn_ofi_t *ofi, dn_ofi_stream_t *stream, const dn_ofi_head_t *head,
                                    const void *first, const void *second, size_t second_len, dn_comp_t *comp)
{
    const size_t first_len = head->len - second_len;
    dn_ofi_buffer_t *buffer = dn_ofi_buffer(ofi, sizeof(*head) + first_len);

    if (NULL == buffer) {
        return DN_ERR_AGAIN;
    }
    *dn_ofi_head(buffer) = *head;
    memcpy(dn_ofi_head(buffer) + 1, first, first_len);
    dn_ofi_seal(ofi, stream, dn_ofi_head(buffer));
    buffer->stream = stream;
    buffer->size = (uint32_t) (sizeof(*head) + first_len);
    buffer->lines = dn_ofi_lines(head->len);
    if (!dn_ofi_loan_make(ofi, buffer, comp)) {
        dn_ofi_buffer_free(ofi, buffer);
        return DN_ERR_AGAIN;
    }
    if (0 != dn_ofi_post_both(ofi, buffer, second, second_len)) {
        dn_ofi_loan_undo(ofi, buffer);
        dn_ofi_buffer_free(ofi, buffer);
        return DN_ERR_UNSUPPORTED;
    }
    ofi->tx_left--;
    ofi->backlog = 1;
    stream->number++;
    stream->sent += buffer->lines;
    stream->flying++;
    dn_ofi_stir(ofi);
    return DN_INPROGRESS;
}

dn_status_t dn_ofi_lend(dn_peer_t *hot, unsigned channel, unsigned tag, const void *first, size_t first_len,
                        const void *second, size_t second_len, dn_comp_t *comp)
{
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) hot;
    dn_ofi_t *ofi = (dn_ofi_t *) peer->base.iface;
    const size_t len = first_len + second_len;
    dn_ofi_head_t head = {
        .len = (uint32_t) len, .kind = DN_OFI_BOTF, .channel = (uint8_t) channel, .tag = (uint8_t) tag};
    dn_status_t status = DN_ERR_UNSUPPORTED;

    if (len > peer->base.botf_max || len < second_len) {
        return DN_ERR_RANGE;
    }
    dn_ofi_lock(ofi);
    if (dn_ofi_borrows(ofi, peer, first_len)) {
        if (peer->tx->burst.gathers) {
            /* Messages that are gathered go ahead of this one. */
            dn_ofi_advance(ofi, peer->tx);
        }
        if (dn_ofi_has_way(ofi, peer->tx, dn_ofi_lines(len))) {
            head.token = peer->tx->token;
            head.number = peer->tx->number;
            status = dn_ofi_send_both(ofi, peer->tx, &head, first, second, second_len, comp);
        } else {
            dn_count(&ofi->iface.counters->credit_waits, 1);
            status = dn_ofi_no_room(ofi, peer);
        }
    }
    dn_ofi_unlock(ofi);
    if (DN_INPROGRESS == status) {
        dn_ofi_count_message(ofi, len);
    }
    return status;
}

/* Requests that need no handler */

/** An answer to the peer that has asked. */
typedef struct dn_ofi_answer {
    dn_ofi_t *ofi;
    dn_ofi_peer_t *peer;
    dn_ofi_buffer_t *buffer; /**< NULL: there is none */
} dn_ofi_answer_t;

static int dn_ofi_answer_find(void *arg, uint32_t sid, uint32_t generation, uint8_t **base_p, uint64_t *len_p)
{
    const dn_ofi_answer_t *answer = arg;

    return dn_ofi_segment_find(answer->ofi, sid, generation, base_p, len_p);
}

static void *dn_ofi_answer_room(void *arg, unsigned tag, size_t len)
{
    dn_ofi_answer_t *answer = arg;

    if (len > answer->peer->base.botf_max
        || DN_OK != dn_ofi_buffer_reserve(answer->ofi, answer->peer, len, &answer->buffer)) {
        return NULL;
    }
    *dn_ofi_head(answer->buffer) = (dn_ofi_head_t){
        .len = (uint32_t) len, .kind = DN_OFI_BOTF, .channel = DN_CHAN_CORE, .tag = (uint8_t) tag};
    return answer->buffer->bytes + sizeof(dn_ofi_head_t);
}

int dn_ofi_serve(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer)
{
    dn_ofi_answer_t answer = {ofi, peer, NULL};
    const dn_core_alone_t alone = {.src = &peer->base,
                                   .find = dn_ofi_answer_find,
                                   .room = dn_ofi_answer_room,
                                   .arg = &answer,
                                   .llcm = ofi->iface.llcm,
                                   .llcm_len = ofi->where.llcm_bytes};
    const dn_ofi_head_t *asked = dn_ofi_head(buffer);

    /* The port answers a peer that this process has left. What comes next waits behind this message, as the port may answer soon. */
    if (DN_PEER_LEFT <= dn_load_acquire_u32(&peer->base.life)) {
        buffer->later = 1;
        return 0;
    }
    const dn_status_t status =
        dn_core_alone(&alone, asked->tag, buffer->bytes + sizeof(*asked), asked->len, 0 != peer->rx.later);
    buffer->later = DN_ERR_AGAIN == status;
    if (DN_OK == status
        && DN_CORE_PART_ASK != dn_core_part(asked->tag, buffer->bytes + sizeof(*asked), asked->len).kind) {
        /* Memory has changed. */
        dn_ofi_ring(ofi);
    }
    if (NULL != answer.buffer) {
        const dn_ofi_head_t *head = dn_ofi_head(answer.buffer);
        const size_t len = head->len;
        const int gathers = dn_ofi_gathers(ofi, peer->tx, len);
        if (!gathers && dn_ofi_inject(ofi, peer, *head, head + 1, len, NULL, 0)) {
            peer->tx->held -= answer.buffer->lines;
            dn_ofi_buffer_free(ofi, answer.buffer);
        } else {
            dn_ofi_give(ofi, peer, answer.buffer, gathers);
        }
        dn_ofi_count_message(ofi, len);
    }
    return DN_OK == status;
}

dn_status_t dn_ofi_reserve(dn_peer_t *hot, size_t len, dn_window_t *window)
{
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) hot;
    dn_ofi_t *ofi = (dn_ofi_t *) peer->base.iface;
    dn_ofi_buffer_t *buffer = NULL;

    if (len > peer->base.botf_max) {
        return DN_ERR_RANGE;
    }
    dn_ofi_lock(ofi);
    const dn_status_t status = dn_ofi_buffer_reserve(ofi, peer, len, &buffer);
    dn_ofi_unlock(ofi);
    if (DN_OK != status) {
        return status;
    }
    window->data = buffer->bytes + sizeof(dn_ofi_head_t);
    window->len = len;
    window->mark = (uintptr_t) buffer;
    return DN_OK;
}

void dn_ofi_kick(dn_peer_t *hot, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) hot;
    dn_ofi_t *ofi = (dn_ofi_t *) peer->base.iface;
    dn_ofi_buffer_t *buffer = (dn_ofi_buffer_t *) (uintptr_t) window->mark;
    const uint32_t lines = dn_ofi_lines(len);

    *dn_ofi_head(buffer) = (dn_ofi_head_t){
        .len = (uint32_t) len, .kind = DN_OFI_BOTF, .channel = (uint8_t) channel, .tag = (uint8_t) tag};
    dn_ofi_lock(ofi);
    if (!peer->self && NULL != peer->tx) {
        peer->tx->held -= buffer->lines - lines;
    }
    buffer->lines = lines;
    dn_ofi_give(ofi, peer, buffer, dn_ofi_gathers(ofi, peer->tx, len));
    dn_ofi_unlock(ofi);
    dn_ofi_count_message(ofi, len);
}

dn_status_t dn_ofi_store(dn_ofi_t *ofi, dn_ofi_peer_t *peer, uint64_t off, uint64_t value, size_t size)
{
    const dn_ofi_store_t store = {off, value, size};
    const dn_ofi_head_t head = {.len = sizeof(store), .kind = DN_OFI_AOTF};
    dn_ofi_buffer_t *buffer = NULL;

    const int gathers = dn_ofi_gathers(ofi, peer->tx, sizeof(store));
    if (!gathers && dn_ofi_inject(ofi, peer, head, &store, sizeof(store), NULL, 0)) {
        return DN_OK;
    }
    const dn_status_t status = dn_ofi_buffer_reserve(ofi, peer, sizeof(store), &buffer);
    if (DN_OK != status) {
        return status;
    }
    *dn_ofi_head(buffer) = head;
    memcpy(buffer->bytes + sizeof(head), &store, sizeof(store));
    if (peer->self) {
        dn_ofi_apply(ofi, buffer);
        dn_ofi_buffer_free(ofi, buffer);
    } else {
        dn_ofi_give(ofi, peer, buffer, gathers);
    }
    return DN_OK;
}

dn_status_t dn_ofi_aotf(dn_peer_t *hot, uint64_t off, uint64_t value, size_t size)
{
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) hot;
    dn_ofi_t *ofi = (dn_ofi_t *) peer->base.iface;

    if (0 == size || 8 < size || off > peer->base.llcm_len || size > peer->base.llcm_len - off) {
        return DN_ERR_RANGE;
    }
    dn_ofi_lock(ofi);
    const dn_status_t status = dn_ofi_store(ofi, peer, off, value, size);
    dn_ofi_unlock(ofi);
    return status;
}

/** Are all AOTFs of a stream known to be stored? The last AOTF may be any number of messages ago: numbers have 64 bits. */
static int dn_ofi_is_stored(const dn_ofi_stream_t *stream)
{
    return stream->stores <= stream->stored;
}

dn_status_t dn_ofi_fence(dn_peer_t *hot)
{
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) hot;
    dn_ofi_t *ofi = (dn_ofi_t *) peer->base.iface;
    dn_status_t status = DN_OK;

    dn_ofi_lock(ofi);
    dn_ofi_stream_t *stream = peer->tx;
    if (dn_peer_is_doubted(&peer->base)) {
        status = DN_ERR_UNREACH;
    } else if (0 != dn_load_acquire_u32(&peer->base.outstanding) || NULL != peer->rma.ops.first
               || 0 != peer->rma.handed) {
        status = DN_INPROGRESS;
    } else if (NULL != stream && !dn_ofi_is_stored(stream)) {
        dn_ofi_inquire(ofi, stream);
        status = DN_INPROGRESS;
    } else if (NULL != stream && (NULL != stream->first || 0 != stream->flying)) {
        status = DN_INPROGRESS;
    } else if (NULL != stream) {
        /* The receiver takes messages in their order. RMA does not keep that order, so later RMA waits until the messages have come. */
        peer->rma.fenced = stream->number;
    }
    ofi->awaited |= DN_INPROGRESS == status;
    dn_ofi_unlock(ofi);
    return status;
}

int dn_ofi_is_fenced(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    dn_ofi_stream_t *stream = peer->tx;
    /* The fence may be any number of messages ago: numbers have 64 bits. */
    const int waits = NULL != stream && peer->rma.fenced > stream->stored;

    if (waits) {
        dn_ofi_inquire(ofi, stream);
    }
    return waits;
}
