/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <stdlib.h>
#include <string.h>

/** Arrows of the drawings in dn_ofi_state.h. */
const uint32_t dn_ofi_stream_turns[] = {
    [DN_OFI_TX_GREETS] = DN_TURN_TO(DN_OFI_TX_OPEN) | DN_TURN_TO(DN_OFI_TX_REFUSED),
    [DN_OFI_TX_REFUSED] = 0,
    [DN_OFI_TX_OPEN] = DN_TURN_TO(DN_OFI_TX_DEAD),
    [DN_OFI_TX_DEAD] = 0,
};

const uint32_t dn_ofi_rx_turns[] = {
    [DN_OFI_RX_NONE] = DN_TURN_TO(DN_OFI_RX_OPEN) | DN_TURN_TO(DN_OFI_RX_LEFT),
    [DN_OFI_RX_OPEN] = DN_TURN_TO(DN_OFI_RX_LEAVES) | DN_TURN_TO(DN_OFI_RX_NONE),
    [DN_OFI_RX_LEAVES] = DN_TURN_TO(DN_OFI_RX_LEFT) | DN_TURN_TO(DN_OFI_RX_NONE),
    [DN_OFI_RX_LEFT] = DN_TURN_TO(DN_OFI_RX_LEAVES) | DN_TURN_TO(DN_OFI_RX_NONE),
};

/* Streams to peers */

/** The place in the table of streams that a token names. */
static uint32_t dn_ofi_place_of(uint64_t token)
{
    return (uint32_t) token & ((UINT32_C(1) << DN_OFI_PLACE_BITS) - 1);
}

dn_ofi_stream_t *dn_ofi_find_stream(const dn_ofi_t *ofi, uint64_t token)
{
    const uint32_t number = dn_ofi_place_of(token);
    return number < ofi->nstreams && NULL != ofi->stream[number] && token == ofi->stream[number]->token
               ? ofi->stream[number]
               : NULL;
}

int dn_ofi_follows(const dn_ofi_t *ofi, const dn_ofi_stream_t *stream)
{
    const dn_ofi_stream_t *before = dn_ofi_find_stream(ofi, stream->before);

    return NULL != before && !dn_ofi_stream_ended(before) && NULL != before->first;
}

/** Find or make a free place in the table of streams. */
static dn_status_t dn_ofi_place(dn_ofi_t *ofi, uint32_t *number_p)
{
    uint32_t number = 0;

    while (number < ofi->nstreams && NULL != ofi->stream[number]) {
        number++;
    }
    if (0 != number >> DN_OFI_PLACE_BITS) {
        return DN_ERR_NOMEM;
    }
    if (number == ofi->nstreams) {
        dn_ofi_stream_t **table = realloc(ofi->stream, (number + 1) * sizeof(*table));
        if (NULL == table) {
            return DN_ERR_NOMEM;
        }
        ofi->stream = table;
        ofi->stream[number] = NULL;
        ofi->nstreams++;
    }
    *number_p = number;
    return DN_OK;
}

/** Most bytes that go out together: as many as the receiver takes. Longer messages than ofi_rxm sends at once cost it a round trip more. */
static uint32_t dn_ofi_stream_room(const dn_ofi_t *ofi, const dn_ofi_peer_t *peer)
{
    const uint32_t takes = (uint32_t) sizeof(dn_ofi_head_t) + (uint32_t) peer->base.botf_max;
    const int asks = NULL != strstr(ofi->info->fabric_attr->prov_name, "ofi_rxm");

    return asks && DN_OFI_RXM_EAGER < takes ? DN_OFI_RXM_EAGER : takes;
}

dn_status_t dn_ofi_open_stream(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    static const dn_ofi_proof_t none;
    uint32_t number;
    uint64_t secret;
    dn_pgid_t pgid;

    const dn_auth_root_t *root =
        dn_guests_root(&ofi->guests, dn_port_group(ofi->iface.port), peer->exchange, &pgid);
    if (NULL == root) {
        return DN_ERR_ACCESS;
    }
    dn_ofi_stream_t *stream = calloc(1, sizeof(*stream));
    if (NULL == stream || DN_OK != dn_ofi_place(ofi, &number)) {
        free(stream);
        return DN_ERR_NOMEM;
    }
    dn_auth_random(&secret, sizeof(secret));
    /* The token is never 0, which stands for no stream. */
    stream->token = (secret | 1) << DN_OFI_PLACE_BITS | number;
    stream->peer = peer;
    stream->node = peer->node;
    stream->credit_max = peer->credit_max;
    stream->room = dn_ofi_stream_room(ofi, peer);
    stream->before = peer->node->newest;
    stream->number = stream->stored = stream->watch.seen = ofi->first;
    stream->sent = stream->credit = ofi->first;
    stream->greet.root = *root;
    stream->greet.theirs = peer->side;
    dn_ofi_side(&ofi->where, dn_port_job(ofi->iface.port)->pid, &stream->greet.ours);
    dn_auth_random(stream->greet.ours.random, sizeof(stream->greet.ours.random));
    stream->greet.since = dn_clock_ns();
    stream->greet.gap = DN_OFI_GREET_NS;
    /* The PROOF is filled in when the CHALLENGE comes. The other messages wait behind it. */
    if (DN_OK != dn_ofi_enqueue(ofi, stream, DN_OFI_PROOF, &none, sizeof(none))) {
        dn_ofi_free_stream(stream);
        return DN_ERR_NOMEM;
    }
    peer->node->newest = stream->token;
    peer->node->users++;
    ofi->stream[number] = stream;
    peer->tx = stream;
    ofi->greeting++;
    ofi->greet_at = 0;
    ofi->after |= DN_OFI_AFTER_CALL;
    dn_ofi_greet(ofi, stream);
    return DN_OK;
}

void dn_ofi_free_stream(dn_ofi_stream_t *stream)
{
    if (NULL != stream) {
        dn_auth_wipe(stream, sizeof(*stream));
        free(stream);
    }
}

void dn_ofi_settle_stream(dn_ofi_t *ofi, dn_ofi_stream_t *stream)
{
    if (NULL != stream->peer || !dn_ofi_stream_ended(stream)) {
        return;
    }
    /* While the receiver is stopped, the provider may have them for ever. */
    dn_ofi_loan_return_all(ofi, stream, DN_ERR_UNREACH);
    if (0 != stream->flying) {
        return;
    }
    while (NULL != stream->first) {
        dn_ofi_buffer_t *buffer = stream->first;
        stream->first = buffer->next;
        dn_ofi_buffer_free(ofi, buffer);
    }
    dn_ofi_stream_t **at = &ofi->gathering;
    while (stream->burst.gathers && stream != *at) {
        at = &(*at)->burst.next;
    }
    if (stream->burst.gathers) {
        *at = stream->burst.next;
    }
    ofi->stream[dn_ofi_place_of(stream->token)] = NULL;
    (void) dn_fetch_sub_seq_cst(&ofi->draining, 1);
    dn_ofi_node_leave(ofi, stream->node);
    dn_ofi_free_stream(stream);
}

void dn_ofi_leave(dn_ofi_t *ofi, dn_ofi_peer_t *peer, enum dn_ofi_kind kind)
{
    dn_ofi_stream_t *stream = peer->tx;

    if (NULL == stream) {
        return;
    }
    peer->tx = NULL;
    peer->rma.fenced = 0;
    stream->peer = NULL;
    stream->back = peer->rx.token;
    stream->back_pair = peer->rx.pair;
    (void) dn_fetch_add_seq_cst(&ofi->draining, 1);
    /* A stream that was neither opened nor used ends without a word. But the peer is told that the port closes. */
    const int unused =
        DN_OFI_LEAVE == kind && DN_OFI_TX_GREETS == stream->state && stream->first == stream->last;
    if (!dn_ofi_stream_ended(stream) && (unused || DN_OK != dn_ofi_enqueue(ofi, stream, kind, NULL, 0))) {
        dn_ofi_stream_end(stream);
    }
    dn_ofi_settle_stream(ofi, stream);
}

/* Streams from peers */

static dn_ofi_peer_t **dn_ofi_bucket(dn_ofi_t *ofi, uint64_t token)
{
    return &ofi->bucket[(token ^ token >> 32) % DN_OFI_BUCKETS];
}

dn_ofi_peer_t *dn_ofi_find_sender(const dn_ofi_t *ofi, uint64_t token)
{
    dn_ofi_peer_t *peer = *dn_ofi_bucket((dn_ofi_t *) ofi, token);
    while (NULL != peer && token != peer->rx.token) {
        peer = peer->rx.next;
    }
    return peer;
}

void dn_ofi_end_rx(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (DN_OFI_RX_NONE == peer->rx.state) {
        return;
    }
    dn_ofi_rx_turn(peer, DN_OFI_RX_NONE);
    if (0 == peer->rx.token) {
        /* The peer is this process itself, and has no stream. */
        return;
    }
    dn_ofi_peer_t **at = dn_ofi_bucket(ofi, peer->rx.token);
    while (peer != *at) {
        at = &(*at)->rx.next;
    }
    *at = peer->rx.next;
    peer->rx.token = 0;
    peer->rx.owes = 0;
    peer->rx.early_lines = 0;
    ofi->nsenders--;
    while (NULL != peer->rx.early) {
        dn_ofi_buffer_t *buffer = peer->rx.early;
        peer->rx.early = buffer->next;
        dn_ofi_buffer_free(ofi, buffer);
    }
}

void dn_ofi_begin_rx(dn_ofi_t *ofi, dn_ofi_peer_t *peer, const dn_ofi_applicant_t *applicant)
{
    const uint64_t token = applicant->token;
    const uint64_t first = applicant->number;

    dn_ofi_end_rx(ofi, peer);
    for (dn_ofi_buffer_t *buffer = peer->rx.first; NULL != buffer; buffer = buffer->next) {
        buffer->lines = 0;
    }
    dn_ofi_rx_turn(peer, DN_OFI_RX_OPEN);
    peer->rx.token = token;
    peer->rx.pair = applicant->pair;
    peer->rx.number = first + 1; /* behind the PROOF */
    peer->rx.lines = first;
    peer->rx.taken = first;
    peer->rx.told = first;
    peer->rx.question = 0;
    peer->rx.next = *dn_ofi_bucket(ofi, token);
    *dn_ofi_bucket(ofi, token) = peer;
    ofi->nsenders++;
}
