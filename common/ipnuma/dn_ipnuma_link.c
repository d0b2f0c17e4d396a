/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ipnuma_link.h"

#include <stdlib.h>
#include <string.h>

/** Time after which pieces that this process had no room to send are tried again. */
#define DN_IPNUMA_REFUSED_NS UINT64_C(50000)

/* Bodies */

static void dn_ipnuma_slabs_free(dn_ipnuma_link_t *link)
{
    while (NULL != link->slabs) {
        dn_ipnuma_slab_t *slab = link->slabs;
        link->slabs = slab->next;
        free(slab);
    }
    link->spare = NULL;
    link->bodies = 0;
    link->spares = 0;
}

static void dn_ipnuma_body_free(dn_ipnuma_link_t *link, dn_ipnuma_body_t *body)
{
    body->next = NULL;
    *(NULL == link->spare ? &link->spare : &link->spare_last->next) = body;
    link->spare_last = body;
    link->spares++;
    if (link->spares == link->bodies && DN_IPNUMA_SPARE < (uint64_t) link->bodies * link->room) {
        dn_ipnuma_slabs_free(link);
    }
}

/** Add bodies to the free ones. @return 0: no memory. */
static int dn_ipnuma_slab_add(dn_ipnuma_link_t *link)
{
    const uint32_t size = DN_IPNUMA_AROUND + link->room;
    const uint32_t row = DN_IPNUMA_ROW_BYTES / size;
    const uint32_t n = NULL == link->slabs || DN_IPNUMA_SLAB > row ? DN_IPNUMA_SLAB : row;

    dn_ipnuma_slab_t *slab = malloc(sizeof(*slab) + n * (sizeof(slab->body[0]) + size));
    if (NULL == slab) {
        return 0;
    }
    slab->next = link->slabs;
    link->slabs = slab;
    link->bodies += n;
    for (uint32_t i = 0; i < n; i++) {
        slab->body[i].tlps = (uint8_t *) &slab->body[n] + i * size + DN_IPNUMA_AHEAD;
        dn_ipnuma_body_free(link, &slab->body[i]);
    }
    return 1;
}

/** Take a free body. @return NULL: no memory. */
static dn_ipnuma_body_t *dn_ipnuma_body(dn_ipnuma_link_t *link)
{
    if (NULL == link->spare && !dn_ipnuma_slab_add(link)) {
        return NULL;
    }
    dn_ipnuma_body_t *body = link->spare;
    link->spare = body->next;
    link->spares--;
    body->next = NULL;
    body->len = 0;
    body->flying = 0;
    body->whole = 0;
    body->part = 0;
    return body;
}

/** Free a list of early bodies, which are in no slab. */
static void dn_ipnuma_body_free_all(dn_ipnuma_body_t *body)
{
    while (NULL != body) {
        dn_ipnuma_body_t *next = body->next;
        free(body);
        body = next;
    }
}

/* Life */

/** Bytes of TLPs in a datagram. */
static uint32_t dn_ipnuma_link_bytes(uint32_t datagram)
{
    return (uint32_t) (datagram - DN_IPNUMA_AROUND) / 8 * 8;
}

int dn_ipnuma_link_open(dn_ipnuma_link_t *link, const dn_ipnuma_link_ops_t *ops,
                        const dn_ipnuma_link_terms_t *terms)
{
    *link = (dn_ipnuma_link_t){.ops = ops,
                               .first = terms->first,
                               .end = terms->first,
                               .applied = terms->first,
                               .next = terms->first,
                               .window = terms->window,
                               .ahead = terms->ahead,
                               .credit = terms->credit,
                               .given = terms->given,
                               .told = terms->given,
                               .cipher = terms->cipher,
                               .room = dn_ipnuma_link_bytes(terms->datagram),
                               .fits = dn_ipnuma_link_bytes(terms->datagram),
                               .piece = dn_ipnuma_link_bytes(terms->datagram),
                               .seen = {.floor = terms->first}};
    return dn_loss_open(&link->loss, terms->first, terms->window);
}

void dn_ipnuma_link_close(dn_ipnuma_link_t *link)
{
    dn_loss_close(&link->loss);
    dn_ipnuma_slabs_free(link);
    dn_ipnuma_body_free_all(link->early);
    dn_auth_wipe(&link->out, sizeof(link->out));
    dn_auth_wipe(&link->in, sizeof(link->in));
    *link = (dn_ipnuma_link_t){.ops = link->ops};
}

void dn_ipnuma_link_key(dn_ipnuma_link_t *link, dn_auth_mode_t auth, const dn_auth_pair_t *pair,
                        dn_auth_role_t role, uint64_t token, uint64_t now)
{
    link->auth = auth;
    link->out = pair->way[role];
    link->in = pair->way[DN_AUTH_OPENER == role ? DN_AUTH_ACCEPTOR : DN_AUTH_OPENER];
    link->token = token;
    link->heard_at = now;
    link->keyed = 1;
}

/** dn_loss_fate_fn_t */
static void dn_ipnuma_link_fate(void *arg, void *load, int lost)
{
    dn_ipnuma_link_t *link = arg;
    dn_ipnuma_body_t *body = load;

    body->flying--;
    if (lost && 0 == body->flying) {
        dn_ipnuma_body_sort(&link->again, body);
    } else if (!lost) {
        if (0 != body->flying) {
            dn_loss_forget(&link->loss, body);
        }
        dn_ipnuma_body_free(link, body);
    }
}

/* A path that becomes narrower */

/** Set how long new bodies are. */
static void dn_ipnuma_link_measure(dn_ipnuma_link_t *link)
{
    const int hole = 0 != link->hole_at && DN_IPNUMA_PART_BYTES < link->fits;

    link->piece = hole ? DN_IPNUMA_PART_BYTES : link->fits;
}

int dn_ipnuma_link_fit(dn_ipnuma_link_t *link, uint32_t datagram)
{
    const uint32_t bytes = dn_ipnuma_link_bytes(datagram);
    const uint32_t before = link->piece;

    link->fits = bytes < link->room ? bytes : link->room;
    dn_ipnuma_link_measure(link);
    return before != link->piece;
}

/** Cut the first body of a list into parts, which take its place. No packet on its way carries it. @return 0: no memory; nothing has
 * changed. */
static int dn_ipnuma_link_cut(dn_ipnuma_link_t *link, dn_ipnuma_body_t **at)
{
    dn_ipnuma_body_t *body = *at, *rest = body->next, *last = NULL;

    for (uint32_t part = dn_ipnuma_parts(body->len) - 1; 0 != part; part--) {
        dn_ipnuma_body_t *one = dn_ipnuma_body(link);
        if (NULL == one) {
            while (rest != body->next) {
                one = rest;
                rest = one->next;
                dn_ipnuma_body_free(link, one);
            }
            return 0;
        }
        one->offset = body->offset;
        one->len = dn_ipnuma_part_len(body->len, part);
        one->whole = body->len;
        one->part = part;
        memcpy(one->tlps, body->tlps + part * DN_IPNUMA_PART_BYTES, one->len);
        last = NULL == last ? one : last;
        one->next = rest;
        rest = one;
    }
    body->whole = body->len;
    body->len = DN_IPNUMA_PART_BYTES;
    body->next = rest;
    link->last = body == link->last ? last : link->last;
    return 1;
}

/** If long packets go nowhere, send short ones from now on; and long ones again when one comes after all, or it is time to try. */
static void dn_ipnuma_link_look(dn_ipnuma_link_t *link, uint64_t now)
{
    if (dn_loss_in_hole(&link->loss)) {
        const uint64_t longer =
            DN_IPNUMA_RAISE_MOST_NS / 2 < link->hole_ns ? DN_IPNUMA_RAISE_MOST_NS : 2 * link->hole_ns;
        link->hole_ns = dn_loss_is_narrow(&link->loss) ? longer : DN_IPNUMA_RAISE_NS;
        link->hole_at = now;
        dn_ipnuma_link_measure(link);
        dn_loss_leave_hole(&link->loss, dn_ipnuma_link_fate, link);
    } else if (0 != link->hole_at
               && (!dn_loss_is_narrow(&link->loss) || now - link->hole_at > link->hole_ns)) {
        link->hole_at = 0;
        dn_ipnuma_link_measure(link);
    }
}

/* Sending */

/** Bytes of TLPs that still fit into the last body that waits. */
static uint32_t dn_ipnuma_link_left(const dn_ipnuma_link_t *link)
{
    const int none = NULL == link->waits || 0 != link->last->whole || link->piece < link->last->len;

    return none ? 0 : link->piece - link->last->len;
}

/** The offset behind a body's piece. */
static uint64_t dn_ipnuma_link_behind_body(const dn_ipnuma_body_t *body)
{
    return body->offset + (0 == body->whole ? body->len : body->whole);
}

uint32_t dn_ipnuma_link_room(const dn_ipnuma_link_t *link, uint64_t address, uint64_t want)
{
    /* A body with less room than this takes a TLP only if the TLP brings all the data that is left. */
    const uint32_t least = DN_TLP_HEADER + 128;
    const uint32_t lead = (uint32_t) address % DN_TLP_DW;
    uint32_t left = dn_ipnuma_link_left(link);

    if (left < least && left < DN_TLP_HEADER + DN_TLP_DW + lead + want) {
        left = link->piece;
    }
    left -= DN_TLP_HEADER;
    const uint32_t most = (DN_TLP_DATA < left ? DN_TLP_DATA : left) - lead;
    return want < most ? (uint32_t) want : most;
}

uint32_t dn_ipnuma_link_read(const dn_ipnuma_link_t *link, uint64_t address)
{
    const uint32_t data = link->piece - DN_TLP_HEADER;
    const uint32_t most = DN_TLP_DATA / data * data;

    return (0 == most ? DN_TLP_DATA : most) - (uint32_t) address % DN_TLP_DW;
}

uint8_t *dn_ipnuma_link_append(dn_ipnuma_link_t *link, const dn_tlp_t *tlp)
{
    const dn_tlp_t *base = dn_tlp_base(tlp, &link->newest);
    uint32_t size = (uint32_t) dn_tlp_size(tlp, base);
    dn_ipnuma_body_t *body = link->last;

    if (size > dn_ipnuma_link_left(link)) {
        body = dn_ipnuma_body(link);
        if (NULL == body) {
            return NULL;
        }
        body->offset = link->end;
        *(NULL == link->waits ? &link->waits : &link->last->next) = body;
        link->last = body;
        /* The first TLP of a datagram has a long header. */
        base = NULL;
        size = (uint32_t) dn_tlp_size(tlp, base);
    }
    uint8_t *bytes = body->tlps + body->len;
    uint8_t *data = dn_tlp_write(bytes, tlp, base);
    body->len += size;
    link->end += size;
    link->newest_at = bytes;
    link->newest = *tlp;
    return NULL == data ? bytes : data;
}

uint8_t *dn_ipnuma_link_store(dn_ipnuma_link_t *link, const dn_tlp_t *tlp)
{
    uint8_t *data = dn_ipnuma_link_left(link) < tlp->len
                        ? NULL
                        : dn_tlp_join(link->newest_at, &link->newest, tlp->address, tlp->len);

    if (NULL == data) {
        return dn_ipnuma_link_append(link, tlp);
    }
    link->last->len += tlp->len;
    link->end += tlp->len;
    return data;
}

/** Write the newest ranges of packets that have come, at most @p most. @return how many. */
static uint32_t dn_ipnuma_link_gaps(const dn_ipnuma_link_t *link, dn_ipnuma_gap_t *gap, uint32_t most)
{
    uint32_t n = 0;

    for (; n < link->seen.count && n < most; n++) {
        const dn_loss_range_t *range = &link->seen.range[n];
        const uint64_t count = range->last - range->first + 1;
        const uint64_t missing = 0 == n ? 0 : range[-1].first - range->last - 1;
        if (UINT32_MAX < missing) {
            break;
        }
        gap[n] = (dn_ipnuma_gap_t){.missing = (uint32_t) missing,
                                   .count = UINT32_MAX < count ? UINT32_MAX : (uint32_t) count};
    }
    return n;
}

/**
 * Make a packet, ready to be sent.
 *
 * @param[in] word   Packet without a piece: memory for it, DN_IPNUMA_WORD bytes. Packet with a piece: NULL.
 * @param[in] body   The piece; NULL: none.
 * @param[in] ahead  Bytes of packets that were made before, to be sent by the same call.
 */
static struct iovec dn_ipnuma_link_make(const dn_ipnuma_link_t *link, uint8_t *word,
                                        const dn_ipnuma_body_t *body, size_t ahead, unsigned flags,
                                        uint64_t number, uint64_t now)
{
    dn_ipnuma_gap_t gap[DN_IPNUMA_GAPS] = {{.count = 0}};
    const uint32_t most = NULL == body ? DN_IPNUMA_GAPS : DN_IPNUMA_GAPS_AHEAD;
    const uint32_t gaps = dn_ipnuma_link_gaps(link, gap, most);
    const size_t gap_bytes = (NULL == body ? gaps : most) * sizeof(gap[0]);
    uint8_t *bytes = NULL == body ? word : body->tlps - DN_IPNUMA_AHEAD;
    const uint64_t delay_us = 0 == gaps ? 0 : (now - link->seen_at) / 1000;
    const int part = NULL != body && 0 != body->whole;

    const dn_ipnuma_head_t head = {
        .token = link->token,
        .number = number,
        .kind = DN_IPNUMA_PACKET,
        .ranges = (uint8_t) gaps,
        .flags = (uint8_t) (flags | (NULL == body ? 0 : DN_IPNUMA_CARRIES) | (part ? DN_IPNUMA_PART : 0)),
        .part = (uint8_t) (part ? body->part : 0),
        .delay_us = UINT32_MAX < delay_us ? UINT32_MAX : (uint32_t) delay_us};
    const dn_ipnuma_ack_t ack = {
        .largest = 0 == gaps ? 0 : link->seen.range[0].last, .applied = link->next, .credit = link->given};
    size_t len = sizeof(head) + sizeof(ack) + gap_bytes;
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), &ack, sizeof(ack));
    memcpy(bytes + sizeof(head) + sizeof(ack), gap, gap_bytes);
    if (NULL != body) {
        const dn_ipnuma_piece_t piece = {
            .offset = body->offset, .len = part ? body->whole : body->len, .magic = DN_IPNUMA_MAGIC};
        const uint64_t code = DN_IPNUMA_END;
        memcpy(bytes + len, &piece, sizeof(piece));
        memcpy(body->tlps + body->len, &code, sizeof(code));
        len += sizeof(piece) + body->len + sizeof(code);
    }
    if (DN_AUTH_ENCRYPTED == link->auth) {
        /* The body stays in clear, so that it can be sent again. Its tag ends where the end code would end. */
        len += NULL == body ? DN_AUTH_TAIL : 0;
        dn_auth_encrypt(&link->out, number, bytes, len, offsetof(dn_ipnuma_head_t, proof), sizeof(head),
                        link->cipher + ahead);
        return (struct iovec){link->cipher + ahead, len};
    }
    dn_auth_seal(link->auth, &link->out, number, bytes, len, offsetof(dn_ipnuma_head_t, proof));
    return (struct iovec){bytes, len};
}

/** Use up the numbers of packets that were made and not sent, if packets are encrypted. Two different texts that are encrypted under one
 * number betray each other to a process that has seen both. */
static void dn_ipnuma_link_skip(dn_ipnuma_link_t *link, uint32_t n)
{
    for (uint32_t i = 0; DN_AUTH_ENCRYPTED == link->auth && i < n; i++) {
        (void) dn_loss_skip(&link->loss);
    }
}

/** Send packets that have just been made. @param[in] pieces  Not 0: each has a piece. @return how many were sent; there is no room for the
 * others now. */
static uint32_t dn_ipnuma_link_emit(dn_ipnuma_link_t *link, const struct iovec *packet, uint32_t n,
                                    int pieces)
{
    const uint32_t sent = link->ops->emit(link, packet, n);

    if (0 != sent) {
        link->told = link->given;
    }
    /* Packets with a piece do not tell a late packet: its acknowledgement is still owed. */
    if (0 != sent && !(link->late && pieces)) {
        link->owed = 0;
        link->urgent = 0;
        link->late = 0;
    }
    return sent;
}

/** Note that a packet with this body was sent. */
static void dn_ipnuma_link_fly(dn_ipnuma_link_t *link, dn_ipnuma_body_t *body, uint64_t now)
{
    body->flying++;
    dn_loss_sent(&link->loss, now, body, DN_IPNUMA_AROUND + body->len);
}

void dn_ipnuma_link_word(dn_ipnuma_link_t *link, unsigned flags, uint64_t now)
{
    _Alignas(8) uint8_t bytes[DN_IPNUMA_WORD];
    uint64_t number = link->loss.next;

    if (!link->keyed) {
        return;
    }
    if (0 != (flags & DN_IPNUMA_ASKS) && DN_LOSS_FLYING > link->loss.count) {
        dn_loss_sent(&link->loss, now, NULL, sizeof(bytes));
    } else {
        number = dn_loss_skip(&link->loss);
    }
    const struct iovec packet = dn_ipnuma_link_make(link, bytes, NULL, 0, flags, number, now);
    /* A packet for which there is no room is lost: a process that waits for an answer asks again. */
    (void) dn_ipnuma_link_emit(link, &packet, 1, 0);
}

/** Free lost bodies that came after all: they are not sent again. */
static void dn_ipnuma_link_drop_come(dn_ipnuma_link_t *link)
{
    while (NULL != link->again && dn_ipnuma_link_behind_body(link->again) <= link->applied) {
        dn_ipnuma_body_t *body = link->again;
        link->again = body->next;
        dn_ipnuma_body_free(link, body);
    }
}

/** Make packets of a list of bodies, for one call of emit(). The pacer and both windows bound their number, too.
 * @param[in] end  The body before which the row ends at the latest; NULL: none. @return how many. */
static uint32_t dn_ipnuma_link_row(const dn_ipnuma_link_t *link, dn_ipnuma_body_t *body,
                                   const dn_ipnuma_body_t *end, struct iovec packet[DN_IPNUMA_ROW],
                                   uint64_t now)
{
    const int again = body == link->again;
    const uint32_t first = end == body ? 0 : body->len;
    /* Where there was no room, one packet finds out whether there is room now. More packets may be encrypted in vain. */
    const uint32_t most = DN_AUTH_ENCRYPTED == link->auth && 0 != link->refused_at ? 1 : DN_IPNUMA_ROW;
    uint32_t n = 0, last = first;
    size_t size = 0;

    while (end != body && link->keyed && most > n && last == first && first >= body->len
           && DN_IPNUMA_ROW_BYTES >= size + DN_IPNUMA_AROUND + body->len) {
        if (!dn_loss_is_due(&link->loss, n, size, now)) {
            break;
        }
        size += DN_IPNUMA_AROUND + body->len;
        if (!dn_loss_has_room(&link->loss, n + 1, size)
            || (!again && dn_ipnuma_link_behind_body(body) - link->applied > link->window)) {
            break;
        }
        packet[n] = dn_ipnuma_link_make(link, NULL, body, size - DN_IPNUMA_AROUND - body->len, 0,
                                        link->loss.next + n, now);
        n++;
        last = body->len;
        body = body->next;
    }
    return n;
}

/** A packet for which this process has no room does not count as lost on the network, so no window shrinks. No process has seen the
 * packet, so its number is used again, unless the packet is encrypted: dn_ipnuma_link_skip(). */
static void dn_ipnuma_link_send_to(dn_ipnuma_link_t *link, const dn_ipnuma_body_t *end, uint64_t now)
{
    struct iovec packet[DN_IPNUMA_ROW];
    uint32_t n, sent;

    do {
        dn_ipnuma_link_drop_come(link);
        const int again = NULL != link->again;
        dn_ipnuma_body_t **at = again ? &link->again : &link->waits;
        const dn_ipnuma_body_t *stop = again ? NULL : end;
        if (stop != *at && link->piece < (*at)->len && !dn_ipnuma_link_cut(link, at)) {
            link->refused_at = now;
            break;
        }
        n = dn_ipnuma_link_row(link, *at, stop, packet, now);
        sent = 0 == n ? 0 : dn_ipnuma_link_emit(link, packet, n, 1);
        for (uint32_t i = 0; i < sent; i++) {
            dn_ipnuma_body_t *body = *at;
            *at = body->next;
            dn_ipnuma_link_fly(link, body, now);
        }
        dn_ipnuma_link_skip(link, n - sent);
        link->counts.resent += again ? sent : 0;
        link->refused_at = sent == n ? 0 : now;
    } while (0 != n && sent == n);
    const int room = dn_loss_has_room(&link->loss, 1, DN_IPNUMA_AROUND + link->piece);
    const int due = dn_loss_is_due(&link->loss, 0, 0, now);
    const int more = end != link->waits || NULL != link->again;
    if (room && due && !more) {
        dn_bbr_idle(&link->loss.bbr, link->loss.flying);
    }
    link->paced = room && !due && more;
}

void dn_ipnuma_link_send(dn_ipnuma_link_t *link, uint64_t now)
{
    dn_ipnuma_link_send_to(link, NULL, now);
}

void dn_ipnuma_link_send_full(dn_ipnuma_link_t *link, uint64_t now)
{
    dn_ipnuma_link_send_to(link, NULL == link->waits ? NULL : link->last, now);
}

int dn_ipnuma_link_settle(dn_ipnuma_link_t *link, const dn_ipnuma_ack_t *ack, const dn_loss_range_t *range,
                          uint32_t ranges, uint64_t delay_ns, uint64_t now)
{
    if (ack->applied > link->end
        || !dn_loss_ack(&link->loss, range, ranges, delay_ns, now, dn_ipnuma_link_fate, link)) {
        return 0;
    }
    link->applied = ack->applied > link->applied ? ack->applied : link->applied;
    link->credit = ack->credit > link->credit ? ack->credit : link->credit;
    return 1;
}

/** Send a probe, since no acknowledgement has come for a probe time-out: the oldest body that is lost, or else the oldest that is on its
 * way. Without such a body, send a packet without a piece. From the second time-out on send one behind a long packet, too: it comes
 * where only long packets are lost. */
static void dn_ipnuma_link_probe(dn_ipnuma_link_t *link, uint64_t now)
{
    const int lost = NULL != link->again;

    if (lost && link->piece < link->again->len) {
        /* Without memory for that, a long packet is better than none. */
        (void) dn_ipnuma_link_cut(link, &link->again);
    }
    dn_ipnuma_body_t *oldest = link->again;
    for (uint32_t i = 0; i < link->loss.count && NULL == oldest; i++) {
        oldest = link->loss.packet[(link->loss.head + i) % DN_LOSS_FLYING].load;
    }
    if (NULL == oldest) {
        dn_ipnuma_link_word(link, DN_IPNUMA_ASKS, now);
        return;
    }
    const struct iovec packet =
        dn_ipnuma_link_make(link, NULL, oldest, 0, DN_IPNUMA_ASKS, link->loss.next, now);
    if (0 == dn_ipnuma_link_emit(link, &packet, 1, 1)) {
        dn_ipnuma_link_skip(link, 1);
        return;
    }
    dn_ipnuma_link_fly(link, oldest, now);
    link->counts.resent++;
    link->again = lost ? oldest->next : link->again;
    if (1 < link->loss.probes && DN_IPNUMA_PART_BYTES < oldest->len) {
        dn_ipnuma_link_word(link, DN_IPNUMA_ASKS, now);
    }
}

uint64_t dn_ipnuma_link_timer(const dn_ipnuma_link_t *link)
{
    const uint64_t owed = 0 == link->owed || !link->keyed ? UINT64_MAX : link->owed_at + DN_LOSS_ACK_DELAY_NS;
    const uint64_t loss = dn_loss_timer(&link->loss);
    const uint64_t refused = 0 == link->refused_at ? UINT64_MAX : link->refused_at + DN_IPNUMA_REFUSED_NS;
    const uint64_t starved = 0 == link->starved_at ? UINT64_MAX : link->starved_at + DN_IPNUMA_STARVED_NS;
    const uint64_t due = link->paced ? link->loss.bbr.due_at : UINT64_MAX;
    const uint64_t sooner = owed < loss ? owed : loss;
    const uint64_t again = refused < starved ? refused : starved;
    const uint64_t soonest = again < sooner ? again : sooner;

    return due < soonest ? due : soonest;
}

void dn_ipnuma_link_tick(dn_ipnuma_link_t *link, int gathers, uint64_t now)
{
    if (now >= dn_loss_timer(&link->loss) && dn_loss_expire(&link->loss, now, dn_ipnuma_link_fate, link)) {
        dn_ipnuma_link_probe(link, now);
    }
    dn_ipnuma_link_look(link, now);
    dn_ipnuma_link_try_early(link, now);
    (gathers ? dn_ipnuma_link_send_full : dn_ipnuma_link_send)(link, now);
    if (0 != link->owed && (now >= link->owed_at + DN_LOSS_ACK_DELAY_NS || link->urgent)) {
        dn_ipnuma_link_word(link, 0, now);
    }
}
