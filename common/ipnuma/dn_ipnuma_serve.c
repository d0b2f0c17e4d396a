/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The work on TLPs that come. As with the card, it is done in the order of the stream, and without the program.
 */
#include "dn_config.h"

#include "dn_ipnuma_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

int dn_ipnuma_say(dn_ipnuma_pc_t *pc, enum dn_tlp_message what)
{
    const dn_tlp_t tlp = {.kind = DN_TLP_MESSAGE, .requester = pc->id, .message = (uint8_t) what};

    return NULL != dn_ipnuma_link_append(&pc->link, &tlp);
}

/** Refuse an access that no shared region lets in: count it, and tell the other side its address. */
static void dn_ipnuma_refuse(dn_ipnuma_pc_t *pc, const dn_tlp_t *access)
{
    const dn_tlp_t tlp = {.kind = DN_TLP_MESSAGE,
                          .requester = access->requester,
                          .tag = access->tag,
                          .message = DN_TLP_ERROR,
                          .len = sizeof(access->address),
                          .total = sizeof(access->address)};

    dn_count(&pc->ipnuma->iface.counters->dropped, 1);
    if (DN_TLP_WRITE == access->kind) {
        pc->ipnuma->refused_writes++;
        /* Only the first refused write before a flush is reported. The answer to the flush says that a write was refused. */
        if (pc->refused) {
            return;
        }
        pc->refused = 1;
    } else {
        pc->ipnuma->refused_reads++;
    }
    uint8_t *data = dn_ipnuma_link_append(&pc->link, &tlp);
    if (NULL != data) {
        memcpy(data, &access->address, sizeof(access->address));
    }
}

/** Store up to DN_TLP_LINE bytes in the order of addresses: each naturally aligned word of 8, 4, 2 or 1 bytes is one store. */
static void dn_ipnuma_write_line(uint8_t *to, const uint8_t *from, size_t len)
{
    while (0 != len) {
        const size_t place = ((uintptr_t) to | 8u) & -((uintptr_t) to | 8u);
        const size_t most = 1u << (31 - __builtin_clz((uint32_t) len));
        const size_t n = place < most ? place : most;
        uint64_t value = 0;
        memcpy(&value, from, n);
        dn_store_bytes(to, value, n);
        to += n;
        from += n;
        len -= n;
    }
}

static void dn_ipnuma_write(dn_ipnuma_pc_t *pc, const dn_tlp_t *tlp)
{
    uint8_t *to = dn_ipnuma_regions_find(&pc->ipnuma->regions, tlp->address, tlp->len, pc->where.ip);

    if (NULL == to) {
        dn_ipnuma_refuse(pc, tlp);
    } else if (DN_TLP_LINE >= tlp->len) {
        dn_ipnuma_write_line(to, tlp->data, tlp->len);
    } else {
        memcpy(to, tlp->data, tlp->len);
    }
}

/** A new entry for a request that came. @return NULL: the other side has more open requests than there are tags. */
static dn_ipnuma_reply_t *dn_ipnuma_reply_new(dn_ipnuma_pc_t *pc, const dn_tlp_t *tlp)
{
    if (DN_IPNUMA_TAGS == pc->replies - pc->replied) {
        return NULL;
    }
    dn_ipnuma_reply_t *reply = &pc->reply[pc->replies++ % DN_IPNUMA_TAGS];
    *reply = (dn_ipnuma_reply_t){.requester = tlp->requester, .tag = tlp->tag};
    return reply;
}

static int dn_ipnuma_read(dn_ipnuma_pc_t *pc, const dn_tlp_t *tlp)
{
    dn_ipnuma_reply_t *reply = dn_ipnuma_reply_new(pc, tlp);

    if (NULL == reply) {
        return 0;
    }
    if (0 == tlp->len) {
        reply->status = pc->refused ? DN_TLP_REFUSED : DN_TLP_SUCCESS;
        pc->refused = 0;
        return 1;
    }
    reply->left = tlp->len;
    reply->at = tlp->address;
    reply->reads = NULL != dn_ipnuma_regions_find(&pc->ipnuma->regions, tlp->address, tlp->len, pc->where.ip);
    if (!reply->reads) {
        reply->status = DN_TLP_REFUSED;
        dn_ipnuma_refuse(pc, tlp);
    }
    return 1;
}

static int dn_ipnuma_operate(dn_ipnuma_pc_t *pc, const dn_tlp_t *tlp)
{
    const int swaps = DN_AMO_CAS == tlp->op;
    const uint32_t width = swaps ? tlp->len / 2 : tlp->len;
    dn_amo_t amo = {.op = (dn_amo_op_t) tlp->op, .width = width};

    dn_ipnuma_reply_t *reply = dn_ipnuma_reply_new(pc, tlp);
    if (NULL == reply) {
        return 0;
    }
    memcpy(swaps ? &amo.compare : &amo.operand, tlp->data, width);
    if (swaps) {
        memcpy(&amo.operand, (const uint8_t *) tlp->data + width, width);
    }
    amo.result = &reply->value;
    reply->left = width;
    uint8_t *word = dn_ipnuma_regions_find(&pc->ipnuma->regions, tlp->address, width, pc->where.ip);
    if (NULL == word) {
        reply->status = DN_TLP_REFUSED;
        dn_ipnuma_refuse(pc, tlp);
    } else if (0 != (uintptr_t) word % width) {
        reply->status = DN_TLP_ABORTED;
    } else {
        dn_amo_run(word, &amo);
    }
    return 1;
}

/** Append the next part of an answer. @return 0: no memory. */
static int dn_ipnuma_reply_part(dn_ipnuma_pc_t *pc, dn_ipnuma_reply_t *reply)
{
    const uint8_t *from = (const uint8_t *) &reply->value;
    dn_tlp_t tlp = {.kind = DN_TLP_COMPLETION,
                    .completer = pc->id,
                    .requester = reply->requester,
                    .tag = reply->tag,
                    .len = 0 == reply->left ? 0 : dn_ipnuma_link_room(&pc->link, 0, reply->left)};

    if (reply->reads) {
        /* The sharing of the region may have ended since the request came, or since the last part. */
        from = dn_ipnuma_regions_find(&pc->ipnuma->regions, reply->at, tlp.len, pc->where.ip);
        reply->reads = NULL != from;
        reply->status = reply->reads ? reply->status : DN_TLP_REFUSED;
    }
    tlp.status = reply->status;
    uint8_t *data = dn_ipnuma_link_append(&pc->link, &tlp);
    if (NULL == data) {
        return 0;
    }
    if (0 == tlp.len) {
        return 1;
    }
    if (DN_TLP_REFUSED == reply->status) {
        memset(data, 0, tlp.len);
    } else {
        memcpy(data, from, tlp.len);
    }
    if (reply->reads && NULL != pc->peer) {
        dn_peer_move(&pc->peer->base);
    }
    reply->at += tlp.len;
    reply->left -= tlp.len;
    return 1;
}

void dn_ipnuma_reply(dn_ipnuma_pc_t *pc)
{
    while (pc->replied != pc->replies && DN_IPNUMA_AHEAD_MAX > dn_ipnuma_link_behind(&pc->link)) {
        dn_ipnuma_reply_t *reply = &pc->reply[pc->replied % DN_IPNUMA_TAGS];
        if (!dn_ipnuma_reply_part(pc, reply)) {
            return;
        }
        pc->replied += 0 == reply->left;
    }
}

/** Begin a message for a handler. @return as dn_ipnuma_link_ops_t::take. */
static int dn_ipnuma_message_new(dn_ipnuma_pc_t *pc, const dn_tlp_t *tlp)
{
    const uint32_t cost = dn_ipnuma_cost(tlp->total);

    if (!pc->joined || tlp->total > pc->ipnuma->where.botf_max || DN_CHAN_MAX <= tlp->channel) {
        return 0;
    }
    /* A sender has at most this credit in messages that no handler has taken. */
    if (pc->waiting_cost + cost > pc->ipnuma->where.credit) {
        pc->link.broken = "more messages than it had credit for";
        return 0;
    }
    dn_ipnuma_message_t *message = malloc(sizeof(*message) + tlp->total);
    if (NULL == message) {
        return -1;
    }
    pc->waiting_cost += cost;
    message->next = NULL;
    message->len = tlp->total;
    message->have = 0;
    message->cost = cost;
    message->channel = tlp->channel;
    message->tag = tlp->tag;
    message->later = 0;
    pc->partial = message;
    return 1;
}

static int dn_ipnuma_message(dn_ipnuma_pc_t *pc, const dn_tlp_t *tlp)
{
    if (pc->ipnuma->closing && (NULL == pc->peer || !pc->joined)) {
        /* No handler takes the message, nor what came of it before. dn_ipnuma_join() has ignored a JOIN that came since the port closes. */
        free(pc->partial);
        pc->partial = NULL;
        return 1;
    }
    const int begun = NULL != pc->partial ? 1 : dn_ipnuma_message_new(pc, tlp);
    if (1 != begun) {
        return begun;
    }
    dn_ipnuma_message_t *message = pc->partial;
    if (tlp->len > message->len - message->have || (0 == tlp->len && 0 != message->len)) {
        return 0;
    }
    if (0 != tlp->len) {
        memcpy(message->bytes + message->have, tlp->data, tlp->len);
    }
    message->have += tlp->len;
    if (message->have == message->len) {
        dn_ipnuma_peer_t *peer = pc->peer;
        pc->partial = NULL;
        if (DN_CHAN_CORE == message->channel && dn_ipnuma_carry_out(pc, message)) {
            dn_ipnuma_give_credit(pc, message->cost);
            free(message);
            return 1;
        }
        peer->later += message->later;
        *(NULL == peer->first ? &peer->first : &peer->last->next) = message;
        peer->last = message;
        dn_ipnuma_make_ready(pc->ipnuma, peer);
    }
    return 1;
}

static int dn_ipnuma_told(dn_ipnuma_pc_t *pc, const dn_tlp_t *tlp)
{
    switch (tlp->message) {
    case DN_TLP_BOTF:
        return dn_ipnuma_message(pc, tlp);
    case DN_TLP_JOIN:
        return dn_ipnuma_join(pc);
    case DN_TLP_LEAVE:
        if (NULL != pc->partial) {
            /* The LEAVE comes in the midst of a message: no correct sender does that. */
            return 0;
        }
        dn_ipnuma_part(pc);
        return 1;
    case DN_TLP_CLOSE:
        /* The closing process waits for the acknowledgement of its CLOSE, and for nothing else: send it now. */
        dn_ipnuma_link_word(&pc->link, 0, dn_clock_ns());
        dn_ipnuma_kill(pc, DN_PEER_PARTED);
        return 1;
    case DN_TLP_ERROR:
        /* There is nothing to do: the completion of the access, or of the flush behind it, ends the operation. */
        return 1;
    default:
        return 0;
    }
}

/** dn_ipnuma_link_ops_t::take */
static int dn_ipnuma_take(dn_ipnuma_link_t *link, const dn_tlp_t *tlp)
{
    dn_ipnuma_pc_t *pc = (dn_ipnuma_pc_t *) link;

    if (DN_IPNUMA_OPEN != pc->state) {
        /* A TLP before this one has ended the connection: this one is dropped. */
        return 1;
    }
    pc->stream.hasty = 0;
    switch (tlp->kind) {
    case DN_TLP_WRITE:
        dn_ipnuma_write(pc, tlp);
        return 1;
    case DN_TLP_READ:
        return dn_ipnuma_read(pc, tlp);
    case DN_TLP_ATOMIC:
        return dn_ipnuma_operate(pc, tlp);
    case DN_TLP_COMPLETION:
        return dn_ipnuma_answered(pc, tlp);
    default:
        return dn_ipnuma_told(pc, tlp);
    }
}

/** dn_ipnuma_link_ops_t::emit */
static uint32_t dn_ipnuma_emit(dn_ipnuma_link_t *link, const struct iovec *datagram, uint32_t n)
{
    return dn_ipnuma_socket_send_row((dn_ipnuma_pc_t *) link, datagram, n);
}

const dn_ipnuma_link_ops_t dn_ipnuma_pc_ops = {dn_ipnuma_emit, dn_ipnuma_take};
