/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_prog_int.h"

#include <string.h>

#define DN_PROG_MAGIC   0x67706e64u
#define DN_PROG_VERSION 1u

/** Start of an encoded program. */
typedef struct dn_prog_wire {
    uint32_t magic;
    uint16_t version;
    uint16_t depth;
    uint32_t ops;
    uint32_t places;
    uint64_t size;
    int64_t low;
    int64_t high;
} dn_prog_wire_t;

_Static_assert(sizeof(dn_prog_wire_t) == 40, "peers agree on the layout");
_Static_assert(sizeof(dn_prog_op_t) == 40, "peers agree on the layout");

/** Bytes of an encoded program; both numbers have 32 bits, so this does not overflow. */
static uint64_t dn_prog_wire_len(uint64_t ops, uint64_t places)
{
    return sizeof(dn_prog_wire_t) + ops * sizeof(dn_prog_op_t) + places * sizeof(int64_t);
}

dn_status_t dn_prog_encode(const dn_prog_t *prog, void *buf, size_t *len)
{
    const dn_prog_info_t *info = &prog->info;
    const size_t room = *len;
    uint8_t *at = buf;
    const dn_prog_wire_t head = {DN_PROG_MAGIC,
                                 DN_PROG_VERSION,
                                 (uint16_t) info->depth,
                                 info->ops,
                                 (uint32_t) prog->places,
                                 info->size,
                                 info->low,
                                 info->high};

    *len = dn_prog_wire_len(info->ops, prog->places);
    if (*len > room) {
        return DN_ERR_RANGE;
    }
    memcpy(at, &head, sizeof(head));
    at += sizeof(head);
    for (uint32_t i = 1; i <= info->ops; i++) {
        dn_prog_op_t op = prog->node[i].op;
        op.len = DN_PROG_LOOP == op.kind ? 0 : op.len;
        memcpy(at, &op, sizeof(op));
        at += sizeof(op);
    }
    memcpy(at, prog->place, prog->places * sizeof(int64_t));
    return DN_OK;
}

/** Is one op as dn_prog_encode() writes it? Whether `inside` fits is left to dn_prog_measure(). */
static int dn_prog_wire_op(const dn_prog_op_t *op)
{
    switch (op->kind) {
    case DN_PROG_RUN:
        return 0 == op->inside && 0 != op->len && 0 != op->count && (1 != op->count || 0 == op->stride);
    case DN_PROG_LIST:
        return 0 == op->inside && 0 == op->at && 0 != op->len && 1 < op->count && 0 == op->stride;
    case DN_PROG_LOOP:
        return 0 == op->at && 0 == op->len && 1 < op->count;
    default:
        return 0;
    }
}

/** Fill a program from an encoded program, and compare it with what the encoding declares. */
static dn_status_t dn_prog_read(dn_prog_t *prog, const dn_prog_wire_t *head, const uint8_t *at)
{
    const dn_prog_info_t *info = &prog->info;
    uint64_t first = 0;

    for (uint32_t i = 1; i <= head->ops; i++) {
        dn_prog_node_t *node = &prog->node[i];
        memcpy(&node->op, at, sizeof(node->op));
        at += sizeof(node->op);
        if (!dn_prog_wire_op(&node->op)) {
            return DN_ERR_PROTO;
        }
        if (DN_PROG_LIST == node->op.kind) {
            if (node->op.count > prog->places - first) {
                return DN_ERR_PROTO;
            }
            node->first = (uint32_t) first;
            first += node->op.count;
        }
    }
    memcpy(prog->place, at, prog->places * sizeof(int64_t));
    return first == prog->places && DN_OK == dn_prog_finish(prog) && head->depth == info->depth
                   && head->size == info->size && head->low == info->low && head->high == info->high
               ? DN_OK
               : DN_ERR_PROTO;
}

dn_status_t dn_prog_decode(const void *bytes, size_t len, const dn_prog_limits_t *limits, dn_prog_t **prog_p)
{
    static const dn_prog_limits_t usual = {1u << 16, 1u << 20, DN_PROG_DEPTH_MAX};
    dn_prog_wire_t head;

    if (sizeof(head) > len) {
        return DN_ERR_PROTO;
    }
    memcpy(&head, bytes, sizeof(head));
    if (DN_PROG_MAGIC != head.magic) {
        return DN_ERR_PROTO;
    }
    if (DN_PROG_VERSION != head.version) {
        return DN_ERR_VERSION;
    }
    limits = NULL == limits ? &usual : limits;
    if (head.ops > limits->max_ops || head.places > limits->max_places || head.depth > limits->max_depth
        || head.ops > DN_PROG_OPS_LIMIT) {
        return DN_ERR_RANGE;
    }
    if (dn_prog_wire_len(head.ops, head.places) != len) {
        return DN_ERR_PROTO;
    }
    dn_prog_t *prog = dn_prog_alloc(head.ops, head.places);
    if (NULL == prog) {
        return DN_ERR_NOMEM;
    }
    const dn_status_t status = dn_prog_read(prog, &head, (const uint8_t *) bytes + sizeof(head));
    if (DN_OK != status) {
        dn_prog_free(prog);
        return status;
    }
    *prog_p = prog;
    return DN_OK;
}
