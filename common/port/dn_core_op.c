/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The operations of the initiator: their table, their queues, and their end.
 */
#include "dn_config.h"

#include "dn_core_int.h"

#include <stdlib.h>
#include <string.h>

void dn_core_open(dn_core_t *core, uint32_t first)
{
    dn_handle_open(&core->operations, first);
}

dn_core_op_t *dn_core_op_new(dn_core_t *core, dn_peer_base_t *peer, enum dn_core_kind kind)
{
    dn_core_op_t *op = calloc(1, sizeof(*op));

    if (NULL == op) {
        return NULL;
    }
    op->id = dn_handle_add(&core->operations, op);
    if (DN_HANDLE_NONE == op->id) {
        free(op);
        return NULL;
    }
    op->peer = peer;
    op->kind = kind;
    dn_fetch_add_acq_rel(&peer->core.amos, DN_CORE_OP_AMO == kind);
    return op;
}

dn_core_op_t *dn_core_op_find(const dn_core_t *core, const dn_peer_base_t *src, uint64_t id,
                              enum dn_core_kind kind)
{
    dn_core_op_t *op = dn_handle_find(&core->operations, id);

    return NULL != op && kind == op->kind && src == op->peer ? op : NULL;
}

void dn_core_wait(dn_core_t *core, dn_core_op_t *op)
{
    op->waits = 1;
    dn_queue_push(&core->sending, &op->peer->core.operations, &op->item);
}

void dn_core_wait_no_more(dn_core_t *core, dn_core_op_t *op)
{
    /* Nearly always the operation is its peer's oldest: later ones have sent nothing that could end them. */
    dn_queue_remove(&core->sending, &op->peer->core.operations, &op->item);
    op->waits = 0;
}

void dn_core_stop_sending(dn_core_t *core, dn_peer_base_t *peer)
{
    while (NULL != peer->core.operations.items.first) {
        dn_core_wait_no_more(core, dn_fifo_first(&peer->core.operations.items));
    }
}

int dn_core_may_ask(const dn_peer_base_t *peer, size_t n)
{
    return DN_CORE_ASKED_MAX >= peer->core.asked + n;
}

void dn_core_ask(dn_core_op_t *op)
{
    op->asked++;
    op->peer->core.asked++;
}

void dn_core_asks_nothing(dn_core_op_t *op)
{
    op->peer->core.asked -= op->asked;
    op->asked = 0;
}

void dn_core_leave_program(dn_core_op_t *op)
{
    if (op->ships && DN_SHIP_SLOTS != op->slot) {
        dn_ship_out_leave(op->peer->core.ours, op->slot);
        op->slot = DN_SHIP_SLOTS;
    }
}

void dn_core_op_drop(dn_core_t *core, dn_core_op_t *op)
{
    dn_core_asks_nothing(op);
    dn_core_leave_program(op);
    dn_fetch_add_acq_rel(&op->peer->core.amos, 0u - (DN_CORE_OP_AMO == op->kind));
    dn_xfer_drop(&op->sides);
    dn_handle_drop(&core->operations, op->id);
    free(op);
}

void dn_core_finish(dn_port_t *port, dn_core_op_t *op, dn_status_t status)
{
    dn_comp_t *comp = DN_CORE_OP_AMO == op->kind ? op->amo.comp : op->xfer.comp;

    if (op->waits) {
        dn_core_wait_no_more(&port->core, op);
    }
    if (DN_OK == status && 0 != (op->xfer.flags & DN_XFER_STATUS_LOCAL)) {
        dn_store_release(op->xfer.local_status, op->xfer.local_value);
    }
    if (DN_OK == status && DN_CORE_OP_AMO != op->kind) {
        dn_count(&port->counters.ring_bytes, op->xfer.len);
    }
    dn_peer_keep_error(op->peer, comp, status);
    dn_fetch_add_acq_rel(&op->peer->outstanding, (uint32_t) -1);
    dn_core_op_drop(&port->core, op);
    if (NULL != comp) {
        comp->fn(comp, status);
    }
}

void dn_core_close(dn_core_t *core)
{
    dn_queue_t *queue;

    while (NULL != (queue = dn_round_turn(&core->sending))) {
        dn_core_wait_no_more(core, dn_fifo_first(&queue->items));
    }
    while (NULL != (queue = dn_round_turn(&core->answering))) {
        dn_core_serve_lost(core, dn_core_answering(queue));
    }
    for (uint32_t i = 0; i < core->operations.count; i++) {
        dn_core_op_t *op = dn_handle_object(&core->operations, i);
        if (NULL != op) {
            dn_xfer_drop(&op->sides);
            free(op);
        }
    }
    dn_handle_close(&core->operations);
}
