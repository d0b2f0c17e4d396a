/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The receiving half of a connection.
 */
#include "dn_config.h"

#include "dn_ipnuma_link.h"

#include <stdlib.h>
#include <string.h>

/** An acknowledgement of so many packets is sent at once. */
#define DN_IPNUMA_OWED 8u

/**
 * Do the TLPs of a piece that are next in the stream.
 *
 * @param[in] done  Bytes of the piece that were done before, when there was no memory for the rest. These TLPs are read, since the one
 *                  behind them may be a short write, and are not done again.
 *
 * @return 0: there is no memory for one of the TLPs now; this TLP and those behind it are not done.
 */
static int dn_ipnuma_link_take(dn_ipnuma_link_t *link, const uint8_t *bytes, uint32_t len, uint32_t done)
{
    dn_tlp_t tlp;
    const dn_tlp_t *before = NULL;

    for (uint32_t at = 0, size = 0; at < len && NULL == link->broken; at += size) {
        size = (uint32_t) dn_tlp_read(bytes + at, len - at, before, &tlp);
        if (0 == size || (at < done && at + size > done)) {
            link->broken = "a malformed TLP";
            break;
        }
        before = &tlp;
        if (at < done) {
            continue;
        }
        link->next += size;
        const int taken = link->ops->take(link, &tlp);
        if (0 > taken) {
            link->next -= size;
            return 0;
        }
        if (0 == taken && NULL == link->broken) {
            link->broken = "a TLP that nobody asked for";
        }
    }
    return 1;
}

/** Do the TLPs of early pieces that are next in the stream by now. */
static void dn_ipnuma_link_take_early(dn_ipnuma_link_t *link, uint64_t now)
{
    link->starved_at = 0;
    while (NULL != link->early && link->early->offset <= link->next && NULL == link->broken) {
        dn_ipnuma_body_t *body = link->early;
        const uint64_t done = link->next - body->offset;
        if (done < body->len && 0 != body->missing) {
            return;
        }
        if (done < body->len && !dn_ipnuma_link_take(link, body->tlps, body->len, (uint32_t) done)) {
            link->starved_at = now;
            return;
        }
        link->early = body->next;
        link->earlies--;
        free(body);
    }
}

void dn_ipnuma_link_try_early(dn_ipnuma_link_t *link, uint64_t now)
{
    const uint64_t before = link->next;

    if (0 != link->starved_at && now - link->starved_at >= DN_IPNUMA_STARVED_NS) {
        dn_ipnuma_link_take_early(link, now);
    }
    if (before != link->next) {
        /* The packets of the piece were acknowledged when they came, so the sender does not ask for this news. The packet asks for an
         * acknowledgement, and is repeated until one comes. */
        dn_ipnuma_link_word(link, DN_IPNUMA_ASKS, now);
    }
}

/** The early piece of an offset; where there is none, a new one of which all is missing. @return NULL: there is no memory for it. */
static dn_ipnuma_body_t *dn_ipnuma_link_early(dn_ipnuma_link_t *link, const dn_ipnuma_piece_t *piece)
{
    dn_ipnuma_body_t *body = link->early;

    while (NULL != body && body->offset < piece->offset) {
        body = body->next;
    }
    if (NULL != body && body->offset == piece->offset) {
        return body;
    }
    /* The memory is no longer than the piece: the sender decides how many pieces come early. The piece for which all others wait has a
     * place in any case, since it may come in parts. */
    const uint32_t most = 2 * DN_LOSS_FLYING + (piece->offset <= link->next);
    body = most <= link->earlies ? NULL : malloc(sizeof(*body) + piece->len);
    if (NULL == body) {
        return NULL;
    }
    *body = (dn_ipnuma_body_t){.offset = piece->offset,
                               .len = piece->len,
                               .tlps = (uint8_t *) (body + 1),
                               .missing = (1u << dn_ipnuma_parts(piece->len)) - 1};
    dn_ipnuma_body_sort(&link->early, body);
    link->earlies++;
    return body;
}

/** Keep a piece that has overtaken others, or a part of a piece. @param[in] part  -1: all of it. @return 0: there is no memory for it. */
static int dn_ipnuma_link_keep(dn_ipnuma_link_t *link, const dn_ipnuma_piece_t *piece, int part,
                               const uint8_t *bytes)
{
    dn_ipnuma_body_t *body = dn_ipnuma_link_early(link, piece);
    const uint32_t bits = 0 > part ? UINT32_MAX : 1u << part;

    if (NULL == body) {
        return 0;
    }
    if (body->len != piece->len) {
        link->broken = "two pieces of one offset";
    } else if (0 == (body->missing & bits)) {
        link->counts.doubled++;
    } else if (0 > part) {
        memcpy(body->tlps, bytes, piece->len);
    } else {
        memcpy(body->tlps + (uint32_t) part * DN_IPNUMA_PART_BYTES, bytes,
               dn_ipnuma_part_len(piece->len, (uint32_t) part));
    }
    body->missing &= ~bits;
    return 1;
}

/** Handle a piece, or a part of it. @param[in] part  -1: all of it. @return 0: there is no memory for all that came, so it counts as lost. */
static int dn_ipnuma_link_piece(dn_ipnuma_link_t *link, const dn_ipnuma_piece_t *piece, int part,
                                const uint8_t *bytes, uint64_t now)
{
    if (piece->offset + piece->len <= link->next) {
        link->counts.doubled++;
        link->urgent = 1;
        return 1;
    }
    if (piece->offset > link->next && piece->offset - link->next + piece->len > link->ahead) {
        link->broken = "more than there is room for";
        return 1;
    }
    if (piece->offset > link->next) {
        link->urgent = 1;
        return dn_ipnuma_link_keep(link, piece, part, bytes);
    }
    if (0 <= part) {
        if (!dn_ipnuma_link_keep(link, piece, part, bytes)) {
            return 0;
        }
        dn_ipnuma_link_take_early(link, now);
        return 1;
    }
    /* If the piece came before, and there was no memory for all of it, its first TLPs are done already. */
    const uint32_t done = (uint32_t) (link->next - piece->offset);
    if (!dn_ipnuma_link_take(link, bytes, piece->len, done)) {
        return 0;
    }
    dn_ipnuma_link_take_early(link, now);
    return 1;
}

/** Handle the acknowledgement in a packet. @return 0: its values are impossible. */
static int dn_ipnuma_link_acked(dn_ipnuma_link_t *link, const dn_ipnuma_head_t *head, const uint8_t *bytes,
                                uint64_t now)
{
    dn_loss_range_t range[DN_IPNUMA_GAPS];
    dn_ipnuma_ack_t ack;

    memcpy(&ack, bytes, sizeof(ack));
    uint64_t last = ack.largest;
    for (uint32_t i = 0; i < head->ranges; i++) {
        dn_ipnuma_gap_t gap;
        memcpy(&gap, bytes + sizeof(ack) + i * sizeof(gap), sizeof(gap));
        const uint64_t skip = 0 == i ? 0 : (uint64_t) gap.missing + 1;
        if (0 == gap.count || last < skip || last - skip < gap.count - 1 || (0 != i && 0 == gap.missing)) {
            return 0;
        }
        range[i].last = last - skip;
        range[i].first = range[i].last - (gap.count - 1);
        last = range[i].first;
    }
    return dn_ipnuma_link_settle(link, &ack, range, head->ranges, (uint64_t) head->delay_us * 1000, now);
}

/** Note that a packet was taken, and which acknowledgement is owed. */
static void dn_ipnuma_link_see(dn_ipnuma_link_t *link, const dn_ipnuma_head_t *head, uint64_t now)
{
    const uint64_t newest = 0 == link->seen.count ? head->number - 1 : link->seen.range[0].last;

    (void) dn_loss_see(&link->seen, head->number);
    link->seen_at = link->seen.range[0].last == head->number ? now : link->seen_at;
    /* A packet out of order comes late itself, or shows that another one is late or lost: the sender needs to know. */
    link->urgent |= newest + 1 != head->number || 0 != (head->flags & DN_IPNUMA_ASKS);
    if (0 != (head->flags & (DN_IPNUMA_CARRIES | DN_IPNUMA_ASKS))) {
        link->owed_at = 0 == link->owed ? now : link->owed_at;
        link->untold = 0 == link->owed || head->number < link->untold ? head->number : link->untold;
        link->owed++;
        link->urgent |= DN_IPNUMA_OWED <= link->owed;
    }
    link->late = 0 != link->owed && DN_IPNUMA_GAPS_AHEAD < link->seen.count
                 && link->untold < link->seen.range[DN_IPNUMA_GAPS_AHEAD - 1].first;
}

/** Did the other side make this packet? If so, an encrypted packet is decrypted in its place. */
static int dn_ipnuma_link_opens(const dn_ipnuma_link_t *link, uint64_t number, uint8_t *bytes, size_t len)
{
    const size_t at = offsetof(dn_ipnuma_head_t, proof);

    return link->keyed
           && (DN_AUTH_ENCRYPTED == link->auth
                   ? dn_auth_decrypt(&link->in, number, bytes, len, at, sizeof(dn_ipnuma_head_t))
                   : dn_auth_opens(link->auth, &link->in, number, bytes, len, at));
}

int dn_ipnuma_link_receive(dn_ipnuma_link_t *link, uint8_t *bytes, size_t len, uint64_t now)
{
    dn_ipnuma_head_t head;
    dn_ipnuma_piece_t piece = {.len = 0};
    uint64_t code;

    memcpy(&head, bytes, sizeof(head));
    if (!dn_ipnuma_link_opens(link, head.number, bytes, len)) {
        link->counts.dropped++;
        return 0;
    }
    const int carries = 0 != (head.flags & DN_IPNUMA_CARRIES);
    const int encrypted = DN_AUTH_ENCRYPTED == link->auth;
    const int part = carries && 0 != (head.flags & DN_IPNUMA_PART) ? head.part : -1;
    const size_t ahead =
        carries ? DN_IPNUMA_AHEAD
                : sizeof(head) + sizeof(dn_ipnuma_ack_t) + (size_t) head.ranges * sizeof(dn_ipnuma_gap_t);
    int good = head.ranges <= (carries ? DN_IPNUMA_GAPS_AHEAD : DN_IPNUMA_GAPS) && ahead <= len;
    if (good && carries) {
        memcpy(&piece, bytes + ahead - sizeof(piece), sizeof(piece));
        const uint64_t here = 0 > part ? piece.len : dn_ipnuma_part_len(piece.len, (uint32_t) part);
        good = DN_IPNUMA_MAGIC == piece.magic && 0 != here && 0 == piece.len % DN_TLP_DW
               && DN_IPNUMA_DATAGRAM - DN_IPNUMA_AROUND >= piece.len && len - ahead == here + sizeof(code);
        if (good) {
            memcpy(&code, bytes + ahead + here, sizeof(code));
            good = encrypted || DN_IPNUMA_END == code;
        }
    } else if (good) {
        good = ahead + (encrypted ? DN_AUTH_TAIL : 0) == len;
    }
    if (!good) {
        /* Where no tag covers the packet, the network may have changed it. So this does not break the connection. */
        link->counts.dropped++;
        return 0;
    }
    if (!dn_loss_is_new(&link->seen, head.number)) {
        link->counts.doubled++;
        return 0;
    }
    link->heard_at = now;
    if (!dn_ipnuma_link_acked(link, &head, bytes + sizeof(head), now)) {
        link->broken = "an acknowledgement of what was not sent";
        return 0;
    }
    link->parted |= 0 != (head.flags & DN_IPNUMA_GONE);
    if (carries && !dn_ipnuma_link_piece(link, &piece, part, bytes + ahead, now)) {
        /* Only a packet that was taken is acknowledged. */
        link->counts.dropped++;
        return 1;
    }
    dn_ipnuma_link_see(link, &head, now);
    return 1;
}
