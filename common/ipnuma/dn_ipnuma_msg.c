/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * AOTF, lines and BOTF. A process reaches itself without TLPs. What messages ask of memory is done when they come, as what TLPs ask is:
 * in the order of the stream, and without the program.
 */
#include "dn_config.h"

#include "dn_ipnuma_int.h"

#include <stdlib.h>
#include <string.h>

/** Operations that find no room between two looks whether the peer still lives. */
#define DN_IPNUMA_REFUSALS 4096u
/** Pause between two requests for credit: an answer may be lost. */
#define DN_IPNUMA_ASK_NS UINT64_C(2000000)
#define DN_IPNUMA_LINE   64u

static void dn_ipnuma_count(dn_ipnuma_t *ipnuma, size_t len)
{
    dn_counters_t *counters = ipnuma->iface.counters;

    dn_count(&counters->messages_sent, 1);
    dn_count(&counters->bytes_sent, len);
    dn_count(&counters->lines_sent, 1 + (len + sizeof(uint64_t)) / DN_IPNUMA_LINE);
}

uint32_t dn_ipnuma_cost(size_t len)
{
    return (uint32_t) len + DN_IPNUMA_LINE;
}

dn_status_t dn_ipnuma_enter(dn_ipnuma_peer_t *peer)
{
    dn_ipnuma_pc_t *pc = peer->pc;

    if (dn_peer_is_doubted(&peer->base) || (NULL != pc && DN_IPNUMA_DEAD == pc->state)) {
        return DN_ERR_UNREACH;
    }
    if (NULL != pc && !pc->joins) {
        if (!dn_ipnuma_say(pc, DN_TLP_JOIN)) {
            return DN_ERR_AGAIN;
        }
        pc->joins = 1;
    }
    return DN_OK;
}

dn_status_t dn_ipnuma_no_room(dn_ipnuma_peer_t *peer)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) peer->base.iface;
    dn_ipnuma_pc_t *pc = peer->pc;
    const dn_status_t status = NULL == pc ? DN_ERR_AGAIN : dn_peer_refused(&peer->base, DN_IPNUMA_REFUSALS);

    if (NULL != pc && DN_ERR_UNREACH != status) {
        const uint64_t now = dn_clock_ns();
        dn_ipnuma_link_send(&pc->link, now);
        /* Packets that bring credit are not acknowledged: if one is lost, it is not sent again. So ask for credit. */
        if (0 == pc->link.loss.count && now - pc->credit_at > DN_IPNUMA_ASK_NS) {
            pc->credit_at = now;
            dn_ipnuma_link_word(&pc->link, DN_IPNUMA_ASKS, now);
        }
        dn_ipnuma_service_call(ipnuma);
    }
    return DN_OK == status ? DN_ERR_AGAIN : status;
}

/** Do TLPs gather until they fill a datagram? A turn of the program sends them in any case, and a turn of the thread when no stream goes on:
 * dn_ipnuma_goes_on(). While the service thread naps, the program itself takes turns. While the thread listens, an acknowledgement or its
 * clock has the thread take a turn; that takes longer than to send a few packets, and less than to send each TLP of a stream alone. Without
 * a thread, there may be no turn for long, so TLPs do not gather. */
static int dn_ipnuma_gathers(const dn_ipnuma_pc_t *pc)
{
    switch (pc->ipnuma->service.state) {
    case DN_IPNUMA_NAPS:
        return 0 != pc->link.loss.count;
    case DN_IPNUMA_LISTENS:
        return DN_IPNUMA_FEW <= pc->link.loss.count || dn_ipnuma_streams(pc);
    default:
        return 0;
    }
}

/** Note that the program has appended a TLP, or a row of them. @return the time, if it was asked for; or 0. */
static uint64_t dn_ipnuma_note_stream(dn_ipnuma_pc_t *pc)
{
    const dn_ipnuma_link_t *link = &pc->link;
    const uint64_t at = NULL == link->waits ? link->end : link->last->offset;

    if (at == pc->stream.at) {
        pc->stream.gathered++;
        return 0;
    }
    const uint64_t now = dn_clock_ns();
    const int slow = now - pc->stream.since > DN_IPNUMA_STREAM_NS * pc->stream.gathered;
    pc->stream.hasty = slow ? 0 : pc->stream.hasty;
    pc->stream.at = at;
    pc->stream.since = now;
    pc->stream.gathered = 1;
    return now;
}

void dn_ipnuma_go(dn_ipnuma_pc_t *pc)
{
    dn_ipnuma_link_t *link = &pc->link;

    if (DN_IPNUMA_OPEN != pc->state) {
        return;
    }
    const uint64_t noted = dn_ipnuma_note_stream(pc);
    const int gathers = dn_ipnuma_gathers(pc);
    if (gathers && link->waits == link->last) {
        return;
    }
    const uint64_t now = 0 != noted ? noted : dn_clock_ns();
    if (gathers) {
        dn_ipnuma_link_send_full(link, now);
    } else {
        dn_ipnuma_link_send(link, now);
        pc->stream.hasty += DN_IPNUMA_FEW > pc->stream.hasty;
    }
    dn_ipnuma_service_call(pc->ipnuma);
}

/* BOTF */

/** Make a message for a window, or of this process to itself. @return NULL: no memory. */
static dn_ipnuma_message_t *dn_ipnuma_own_message(unsigned channel, unsigned tag, size_t len)
{
    dn_ipnuma_message_t *message = malloc(sizeof(*message) + len);

    if (NULL != message) {
        message->next = NULL;
        message->len = (uint32_t) len;
        message->have = (uint32_t) len;
        message->cost = dn_ipnuma_cost(len);
        message->channel = (uint8_t) channel;
        message->tag = (uint8_t) tag;
        message->later = 0;
    }
    return message;
}

/** Give a message of this process to its own handlers. */
static void dn_ipnuma_put_own(dn_ipnuma_peer_t *peer, dn_ipnuma_message_t *message)
{
    *(NULL == peer->first ? &peer->first : &peer->last->next) = message;
    peer->last = message;
    dn_ipnuma_make_ready((dn_ipnuma_t *) peer->base.iface, peer);
}

/** Read what has come, which may be credit. The service thread is not woken by what is read here. So the work that this makes due is done
 * now, such as to send what has gathered behind packets that are acknowledged. */
static void dn_ipnuma_look_for_credit(dn_ipnuma_t *ipnuma)
{
    if (0 < dn_ipnuma_socket_receive(ipnuma)) {
        dn_ipnuma_attend_all(ipnuma, 0, dn_clock_ns());
        ipnuma->after |= DN_IPNUMA_AFTER_RING;
        dn_ipnuma_service_call(ipnuma);
    }
}

/** Let a message in: charge its cost to the credit, if there is enough. */
static dn_status_t dn_ipnuma_charge(dn_ipnuma_peer_t *peer, size_t len)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) peer->base.iface;
    const uint32_t cost = dn_ipnuma_cost(len);

    const dn_status_t status = dn_ipnuma_enter(peer);
    if (DN_OK != status) {
        return status;
    }
    if (NULL == peer->pc) {
        if (peer->waiting + cost > 2 * (uint64_t) ipnuma->where.credit) {
            dn_count(&ipnuma->iface.counters->credit_waits, 1);
            return DN_ERR_AGAIN;
        }
        peer->waiting += cost;
        return DN_OK;
    }
    dn_ipnuma_link_t *link = &peer->pc->link;
    if (link->charged + cost > link->credit) {
        dn_ipnuma_look_for_credit(ipnuma);
        if (DN_IPNUMA_DEAD == peer->pc->state) {
            return DN_ERR_UNREACH;
        }
    }
    if (link->charged + cost > link->credit) {
        dn_count(&ipnuma->iface.counters->credit_waits, 1);
        return dn_ipnuma_no_room(peer);
    }
    link->charged += cost;
    return DN_OK;
}

/** Two pieces of memory as one. */
typedef struct dn_ipnuma_two {
    const uint8_t *part[2];
    size_t len[2];
} dn_ipnuma_two_t;

static void dn_ipnuma_two_copy(dn_ipnuma_two_t *two, uint8_t *to, size_t len)
{
    for (int i = 0; i < 2; i++) {
        const size_t n = len < two->len[i] ? len : two->len[i];
        if (0 != n) {
            memcpy(to, two->part[i], n);
            two->part[i] += n;
            two->len[i] -= n;
            to += n;
            len -= n;
        }
    }
}

/** Append a message that was let in. */
static void dn_ipnuma_append(dn_ipnuma_pc_t *pc, unsigned channel, unsigned tag, dn_ipnuma_two_t two)
{
    const size_t len = two.len[0] + two.len[1];
    size_t left = len;

    do {
        const dn_tlp_t tlp = {.kind = DN_TLP_MESSAGE,
                              .requester = pc->id,
                              .tag = (uint8_t) tag,
                              .message = DN_TLP_BOTF,
                              .channel = (uint8_t) channel,
                              .total = (uint32_t) len,
                              .len = 0 == left ? 0 : dn_ipnuma_link_room(&pc->link, 0, left)};
        uint8_t *data = dn_ipnuma_link_append(&pc->link, &tlp);
        if (NULL == data) {
            /* There is no memory, and no way back: a part of the message may be in the stream, and the caller was promised the rest. */
            dn_ipnuma_kill(pc, DN_PEER_SUSPECT);
            return;
        }
        if (0 != tlp.len) {
            dn_ipnuma_two_copy(&two, data, tlp.len);
        }
        left -= tlp.len;
    } while (0 != left);
}

/** Send a message that was let in. */
static void dn_ipnuma_put(dn_ipnuma_pc_t *pc, unsigned channel, unsigned tag, dn_ipnuma_two_t two)
{
    dn_ipnuma_append(pc, channel, tag, two);
    dn_ipnuma_go(pc);
}

dn_status_t dn_ipnuma_botf(dn_peer_t *hot, unsigned channel, unsigned tag, const void *head, size_t head_len,
                           const void *body, size_t body_len)
{
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) hot;
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) peer->base.iface;
    dn_ipnuma_two_t two = {{head, body}, {head_len, body_len}};
    const size_t len = head_len + body_len;

    if (len > peer->base.botf_max || len < body_len) {
        return DN_ERR_RANGE;
    }
    dn_ipnuma_lock(ipnuma);
    dn_status_t status = dn_ipnuma_charge(peer, len);
    if (DN_OK == status && NULL != peer->pc) {
        dn_ipnuma_put(peer->pc, channel, tag, two);
    } else if (DN_OK == status) {
        dn_ipnuma_message_t *message = dn_ipnuma_own_message(channel, tag, len);
        if (NULL == message) {
            peer->waiting -= dn_ipnuma_cost(len);
            status = DN_ERR_AGAIN;
        } else {
            dn_ipnuma_two_copy(&two, message->bytes, len);
            dn_ipnuma_put_own(peer, message);
        }
    }
    dn_ipnuma_unlock(ipnuma);
    if (DN_OK == status) {
        dn_ipnuma_count(ipnuma, len);
    }
    return status;
}

dn_status_t dn_ipnuma_reserve(dn_peer_t *hot, size_t len, dn_window_t *window)
{
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) hot;
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) peer->base.iface;

    if (len > peer->base.botf_max) {
        return DN_ERR_RANGE;
    }
    dn_ipnuma_message_t *message = dn_ipnuma_own_message(0, 0, len);
    if (NULL == message) {
        return DN_ERR_AGAIN;
    }
    dn_ipnuma_lock(ipnuma);
    const dn_status_t status = dn_ipnuma_charge(peer, len);
    dn_ipnuma_unlock(ipnuma);
    if (DN_OK != status) {
        free(message);
        return status;
    }
    *window = (dn_window_t){.data = message->bytes, .len = len, .mark = (uintptr_t) message};
    return DN_OK;
}

void dn_ipnuma_kick(dn_peer_t *hot, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) hot;
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) peer->base.iface;
    dn_ipnuma_message_t *message = (dn_ipnuma_message_t *) (uintptr_t) window->mark;
    const uint32_t less = message->cost - dn_ipnuma_cost(len);

    message->len = (uint32_t) len;
    message->cost -= less;
    message->channel = (uint8_t) channel;
    message->tag = (uint8_t) tag;
    dn_ipnuma_lock(ipnuma);
    if (NULL == peer->pc) {
        peer->waiting -= less;
        dn_ipnuma_put_own(peer, message);
        message = NULL;
    } else {
        peer->pc->link.charged -= less;
        /* If the peer was lost since dn_ipnuma_reserve(), the message is dropped. */
        if (DN_IPNUMA_DEAD != peer->pc->state) {
            dn_ipnuma_put(peer->pc, channel, tag, (dn_ipnuma_two_t){{message->bytes, NULL}, {len, 0}});
        }
    }
    dn_ipnuma_unlock(ipnuma);
    free(message);
    dn_ipnuma_count(ipnuma, len);
}

/* Requests that need no handler */

/** An answer to the other side. */
typedef struct dn_ipnuma_answer {
    dn_ipnuma_pc_t *pc;
    dn_ipnuma_message_t *message; /**< NULL: there is none */
} dn_ipnuma_answer_t;

static int dn_ipnuma_answer_find(void *arg, uint32_t sid, uint32_t generation, uint8_t **base_p,
                                 uint64_t *len_p)
{
    const dn_ipnuma_pc_t *pc = ((const dn_ipnuma_answer_t *) arg)->pc;

    *base_p = dn_ipnuma_segment_find(pc->ipnuma, sid, generation, pc->where.ip, len_p);
    return NULL != *base_p;
}

/** As dn_ipnuma_charge(), but that nothing is read: a datagram is just being read. */
static void *dn_ipnuma_answer_room(void *arg, unsigned tag, size_t len)
{
    dn_ipnuma_answer_t *answer = arg;
    dn_ipnuma_peer_t *peer = answer->pc->peer;
    dn_ipnuma_link_t *link = &answer->pc->link;
    const uint32_t cost = dn_ipnuma_cost(len);

    if (len > peer->base.botf_max || link->charged + cost > link->credit || DN_OK != dn_ipnuma_enter(peer)) {
        return NULL;
    }
    answer->message = dn_ipnuma_own_message(DN_CHAN_CORE, tag, len);
    if (NULL == answer->message) {
        return NULL;
    }
    link->charged += cost;
    return answer->message->bytes;
}

int dn_ipnuma_carry_out(dn_ipnuma_pc_t *pc, dn_ipnuma_message_t *message)
{
    dn_ipnuma_answer_t answer = {pc, NULL};
    const dn_core_alone_t alone = {.src = &pc->peer->base,
                                   .find = dn_ipnuma_answer_find,
                                   .room = dn_ipnuma_answer_room,
                                   .arg = &answer,
                                   .llcm = pc->ipnuma->iface.llcm,
                                   .llcm_len = pc->ipnuma->where.llcm_bytes};

    /* The port answers a peer that this process has left, and refuses one that regions do not let in. What comes next waits behind this
     * message, as the port may answer soon. */
    if (DN_PEER_LEFT <= dn_load_acquire_u32(&pc->peer->base.life) || !dn_ipnuma_lets_in(pc)) {
        message->later = 1;
        return 0;
    }
    const dn_status_t status =
        dn_core_alone(&alone, message->tag, message->bytes, message->len, 0 != pc->peer->later);
    message->later = DN_ERR_AGAIN == status;
    if (NULL != answer.message) {
        /* The turn that reads sends it. */
        const dn_ipnuma_two_t two = {{answer.message->bytes, NULL}, {answer.message->len, 0}};
        dn_ipnuma_append(pc, DN_CHAN_CORE, answer.message->tag, two);
        dn_ipnuma_count(pc->ipnuma, answer.message->len);
        free(answer.message);
    }
    return DN_OK == status;
}

/* AOTF */

/** Append a write to a peer's LLCM, through the page map. @return 0: no memory. */
static int dn_ipnuma_store(dn_ipnuma_pc_t *pc, uint64_t off, const void *bytes, size_t len)
{
    const uint64_t within = pc->where.llcm_at % DN_IPNUMA_PAGE;
    const dn_tlp_t tlp = {.kind = DN_TLP_WRITE,
                          .requester = pc->id,
                          .address = dn_ipnuma_map_at(&pc->ipnuma->map, pc->page, within + off),
                          .len = (uint32_t) len};

    uint8_t *data = dn_ipnuma_link_store(&pc->link, &tlp);
    if (NULL == data) {
        return 0;
    }
    memcpy(data, bytes, len);
    return 1;
}

/** May a write to the peer's LLCM be appended now? */
static dn_status_t dn_ipnuma_may_store(dn_ipnuma_peer_t *peer)
{
    const dn_status_t status = dn_ipnuma_enter(peer);

    return DN_OK == status && NULL != peer->pc && DN_IPNUMA_AHEAD_MAX < dn_ipnuma_link_behind(&peer->pc->link)
               ? dn_ipnuma_no_room(peer)
               : status;
}

dn_status_t dn_ipnuma_aotf(dn_peer_t *hot, uint64_t off, uint64_t value, size_t size)
{
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) hot;
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) peer->base.iface;

    if (0 == size || 8 < size || off > peer->base.llcm_len || size > peer->base.llcm_len - off) {
        return DN_ERR_RANGE;
    }
    dn_ipnuma_lock(ipnuma);
    dn_status_t status = dn_ipnuma_may_store(peer);
    if (DN_OK == status && NULL == peer->pc) {
        dn_store_bytes((uint8_t *) ipnuma->iface.llcm + off, value, size);
    } else if (DN_OK == status) {
        status = dn_ipnuma_store(peer->pc, off, &value, size) ? DN_OK : DN_ERR_AGAIN;
        dn_ipnuma_go(peer->pc);
    }
    dn_ipnuma_unlock(ipnuma);
    return status;
}

dn_status_t dn_ipnuma_line(dn_peer_t *hot, uint64_t off, const void *data, size_t len, uint64_t flag)
{
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) hot;
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) peer->base.iface;

    if (DN_AOTF_LINE_MAX < len || 0 != off % DN_IPNUMA_LINE || off >= peer->base.llcm_len) {
        return DN_ERR_RANGE;
    }
    dn_ipnuma_lock(ipnuma);
    dn_status_t status = dn_ipnuma_may_store(peer);
    if (DN_OK == status && NULL == peer->pc) {
        uint8_t *line = (uint8_t *) ipnuma->iface.llcm + off;
        if (0 != len) {
            memcpy(line, data, len);
        }
        dn_store_release((uint64_t *) (void *) (line + DN_AOTF_LINE_MAX), flag);
    } else if (DN_OK == status) {
        status = (0 == len || dn_ipnuma_store(peer->pc, off, data, len))
                         && dn_ipnuma_store(peer->pc, off + DN_AOTF_LINE_MAX, &flag, sizeof(flag))
                     ? DN_OK
                     : DN_ERR_AGAIN;
        dn_ipnuma_go(peer->pc);
    }
    dn_ipnuma_unlock(ipnuma);
    return status;
}

dn_status_t dn_ipnuma_fence(dn_peer_t *hot)
{
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) hot;
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) peer->base.iface;
    dn_ipnuma_pc_t *pc = peer->pc;
    dn_status_t status = DN_OK;

    dn_ipnuma_lock(ipnuma);
    if (dn_peer_is_doubted(&peer->base)) {
        status = DN_ERR_UNREACH;
    } else if (0 != dn_load_acquire_u32(&peer->base.outstanding) || 0 != peer->ops) {
        status = DN_INPROGRESS;
    } else if (NULL != pc && 0 != dn_ipnuma_link_behind(&pc->link)) {
        pc->stream.hasty = 0;
        dn_ipnuma_link_send(&pc->link, dn_clock_ns());
        dn_ipnuma_service_call(ipnuma);
        status = DN_INPROGRESS;
    }
    dn_ipnuma_unlock(ipnuma);
    return status;
}
