/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The part of the target's work that needs neither a call of its program nor the port's lock: the accesses to memory that a message asks
 * for. A device calls these functions when the message comes, in the thread that reads it. Of the port's tables they use the programs of
 * the peer, which have a lock of their own. Every refusal is left to the handler: refusals are made in one place.
 */
#include "dn_config.h"

#include "dn_core_int.h"

#include <string.h>

int dn_core_put_line(uint8_t *llcm, uint64_t llcm_len, const uint8_t *bytes, size_t len)
{
    dn_core_line_t head;

    if (sizeof(head) > len) {
        return 0;
    }
    memcpy(&head, bytes, sizeof(head));
    len -= sizeof(head);
    if (!dn_core_line_fits(head.off, len, llcm_len)) {
        return 0;
    }
    uint8_t *line = llcm + head.off;
    memcpy(line, bytes + sizeof(head), len);
    /* Pairs with the acquire of who polls the line: its data are there before its flag. */
    dn_store_release((uint64_t *) (line + DN_AOTF_LINE_MAX), head.flag);
    return 1;
}

int dn_core_put_lines(uint8_t *llcm, uint64_t llcm_len, const uint8_t *bytes, size_t len)
{
    dn_core_lines_t head;

    if (sizeof(head) > len) {
        return 0;
    }
    memcpy(&head, bytes, sizeof(head));
    bytes += sizeof(head);
    len -= sizeof(head);
    if (!dn_core_lines_fit(&head.ring, len, llcm_len)) {
        return 0;
    }
    uint8_t *ring = llcm + head.ring.off;
    const uint64_t upper = head.flag & ~(uint64_t) UINT32_MAX;
    for (uint32_t i = 0; 0 < len; i++) {
        uint8_t *line = ring + (size_t) ((head.ring.at + i) % head.ring.depth) * DN_CORE_LINE_BYTES;
        const size_t part = len < head.ring.piece ? len : head.ring.piece;
        memcpy(line, bytes, part);
        /* As in dn_core_put_line(). */
        dn_store_release((uint64_t *) (line + DN_AOTF_LINE_MAX), upper | (uint32_t) (head.flag + i));
        bytes += part;
        len -= part;
    }
    return 1;
}

dn_status_t dn_core_put_status(uint8_t *llcm, uint64_t llcm_len, const dn_core_request_t *request)
{
    if (0 == (request->flags & DN_CORE_STATUS)) {
        return DN_OK;
    }
    if (0 != request->off % sizeof(uint64_t) || request->off >= llcm_len) {
        return DN_ERR_RANGE;
    }
    dn_store_release((uint64_t *) (llcm + request->off), request->value);
    return DN_OK;
}

dn_status_t dn_core_run(uint8_t *base, uint64_t len, const dn_core_amo_t *message, uint64_t *old)
{
    const dn_key_t key = {.len = len};
    const dn_amo_t amo = {
        .op = (dn_amo_op_t) message->op,
        .width = message->width,
        .operand = message->operand,
        .compare = message->compare,
        .result = old,
        .key = &key,
        .roff = message->roff,
    };

    dn_status_t status = dn_amo_check(&amo);
    if (DN_OK == status && 0 != ((uintptr_t) base + message->roff) % message->width) {
        status = DN_ERR_PARAM;
    }
    if (DN_OK == status) {
        dn_amo_run(base + message->roff, &amo);
    }
    return status;
}

static dn_status_t dn_core_amo_alone(const dn_core_alone_t *alone, const uint8_t *bytes, size_t len)
{
    const size_t n = dn_core_amos(len);
    dn_core_amo_t message[DN_ATOMICS_MAX];
    uint8_t *base[DN_ATOMICS_MAX];
    uint64_t room[DN_ATOMICS_MAX];

    if (0 == n) {
        return DN_ERR_AGAIN;
    }
    memcpy(message, bytes, len);
    for (size_t i = 0; i < n; i++) {
        if (!alone->find(alone->arg, message[i].sid, message[i].sid_generation, &base[i], &room[i])) {
            return DN_ERR_AGAIN;
        }
    }
    uint8_t *answer = alone->room(alone->arg, DN_CORE_AMO_DONE, n * sizeof(dn_core_reply_t));
    if (NULL == answer) {
        return DN_ERR_AGAIN;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t old = 0;
        const dn_status_t status = dn_core_run(base[i], room[i], &message[i], &old);
        const dn_core_reply_t reply = {.id = message[i].id, .status = status, .off = old};
        memcpy(answer + i * sizeof(reply), &reply, sizeof(reply));
    }
    return DN_OK;
}

/** Read the remote side of a PUSH or PULL, whose segment the device knows. dn_core_end_side() ends the use of the side in any case. */
static dn_status_t dn_core_side_alone(const dn_core_alone_t *alone, const dn_core_request_t *request,
                                      const uint8_t *bytes, size_t len, dn_core_side_t *side)
{
    uint64_t room;

    if (DN_OK != dn_core_read_layout(alone->src, side, request, bytes, len)
        || !alone->find(alone->arg, request->sid, request->sid_generation, &side->memory, &room)
        || DN_OK != dn_sg_check(&side->sg, side->base, side->total, room)) {
        return DN_ERR_AGAIN;
    }
    return DN_OK;
}

static dn_status_t dn_core_push_alone(const dn_core_alone_t *alone, const dn_core_request_t *request,
                                      const dn_core_side_t *side, const uint8_t *bytes, size_t len)
{
    const int last = 0 != (request->flags & DN_CORE_LAST);
    void *answer = NULL;

    if (!dn_core_data_fit(request, side, len)) {
        return DN_ERR_AGAIN;
    }
    if (last) {
        answer = alone->room(alone->arg, DN_CORE_PUSH_DONE, sizeof(dn_core_reply_t));
        if (NULL == answer) {
            return DN_ERR_AGAIN;
        }
    }
    dn_core_put_data(side, bytes, len);
    dn_peer_move(alone->src);
    if (last) {
        const dn_core_reply_t reply = {.id = request->id,
                                       .status = dn_core_put_status(alone->llcm, alone->llcm_len, request),
                                       .flags = request->flags & DN_CORE_USE};
        memcpy(answer, &reply, sizeof(reply));
    }
    return DN_OK;
}

static dn_status_t dn_core_pull_alone(const dn_core_alone_t *alone, const dn_core_request_t *request,
                                      const dn_core_side_t *side)
{
    dn_sg_cursor_t from;

    /* Blocks of a program may overlap: the length may be any number. */
    if (0 == side->total || side->total > alone->src->botf_max) {
        return DN_ERR_AGAIN;
    }
    uint8_t *answer = alone->room(alone->arg, DN_CORE_PULL_DATA, sizeof(dn_core_reply_t) + side->total);
    if (NULL == answer) {
        return DN_ERR_AGAIN;
    }
    const dn_core_reply_t reply = {
        .id = request->id, .flags = request->flags & DN_CORE_USE, .off = request->off, .len = side->total};
    memcpy(answer, &reply, sizeof(reply));
    dn_core_start_side(&from, side, &side->sg);
    dn_sg_gather(answer + sizeof(reply), &from, side->total);
    dn_peer_move(alone->src);
    return DN_OK;
}

static dn_status_t dn_core_transfer_alone(const dn_core_alone_t *alone, unsigned tag, const uint8_t *bytes,
                                          size_t len)
{
    dn_core_request_t request;
    dn_core_side_t side;

    if (sizeof(request) > len) {
        return DN_ERR_AGAIN;
    }
    memcpy(&request, bytes, sizeof(request));
    bytes += sizeof(request);
    len -= sizeof(request);
    dn_status_t status = dn_core_side_alone(alone, &request, bytes, len, &side);
    if (DN_OK == status) {
        status = DN_CORE_PUSH == tag
                     ? dn_core_push_alone(alone, &request, &side, bytes + side.len, len - side.len)
                     : dn_core_pull_alone(alone, &request, &side);
    }
    dn_core_end_side(alone->src, &side);
    return status;
}

dn_status_t dn_core_alone(const dn_core_alone_t *alone, unsigned tag, const void *message, size_t len,
                          int behind)
{
    const uint8_t *bytes = message;

    switch (tag) {
    case DN_CORE_AMO:
        /* Atomic operations keep their order. */
        return behind ? DN_ERR_AGAIN : dn_core_amo_alone(alone, bytes, len);
    case DN_CORE_LINE:
        return dn_core_put_line(alone->llcm, alone->llcm_len, bytes, len) ? DN_OK : DN_ERR_AGAIN;
    case DN_CORE_LINES:
        return dn_core_put_lines(alone->llcm, alone->llcm_len, bytes, len) ? DN_OK : DN_ERR_AGAIN;
    case DN_CORE_PUSH:
    case DN_CORE_PULL:
        /* The last message of a PUSH says that all are stored: it does not overtake one that waits for the handler. */
        return behind ? DN_ERR_AGAIN : dn_core_transfer_alone(alone, tag, bytes, len);
    case DN_CORE_PROG:
        /* A transfer that waits for the handler may name the program that is in the slot now. */
        return behind || DN_OK != dn_core_take_piece(alone->src, bytes, len, 1) ? DN_ERR_AGAIN : DN_OK;
    default:
        return DN_ERR_UNSUPPORTED;
    }
}
