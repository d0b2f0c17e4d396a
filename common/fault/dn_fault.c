/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_fault_int.h"

#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

/** The wrapper of a peer: the inline calls get the peer, and find the wrapper there. */
static dn_fault_peer_t *dn_fault_of(const dn_peer_t *peer)
{
    return ((const dn_peer_base_t *) peer)->fault;
}

/** Draw the fault that hits this call. FAULT_KILL has taken effect already. */
static dn_fault_kind_t dn_fault_roll(dn_fault_peer_t *fp, dn_fault_op_t op)
{
    const dn_fault_t *fault = fp->fault;

    if (dn_load_acquire_u32(&fp->killed)) {
        return FAULT_KILL;
    }
    for (unsigned i = 0; i < fault->nrules; i++) {
        const dn_fault_rule_t *rule = &fault->rule[i];
        if (rule->op == op && 0 == dn_fault_draw(fp) % rule->n) {
            if (FAULT_KILL == rule->kind) {
                dn_store_release_u32(&fp->killed, 1);
            }
            return rule->kind;
        }
    }
    return FAULT_NONE;
}

/**
 * Decide about one message of len bytes.
 * @param[out] msg_p  NULL with DN_OK: no fault hits the message; send it through the device.
 */
static dn_status_t dn_fault_admit(dn_fault_peer_t *fp, size_t len, dn_fault_message_t **msg_p)
{
    const dn_fault_kind_t kind = dn_fault_roll(fp, OP_BOTF);

    *msg_p = NULL;
    if (FAULT_KILL == kind) {
        return DN_ERR_UNREACH;
    }
    if (FAULT_AGAIN == kind) {
        return DN_ERR_AGAIN;
    }
    const int held = dn_fault_held(fp);
    if (FAULT_NONE == kind && 0 == held) {
        return DN_OK;
    }
    if (DN_FAULT_HELD_MAX <= held) {
        return DN_ERR_AGAIN;
    }
    *msg_p = dn_fault_message_new(fp, kind, len);
    return NULL != *msg_p ? DN_OK : DN_ERR_AGAIN;
}

/**
 * Apply the fault to a call that is no message.
 * @param[out] slow_p  Not 0: the core processor runs the operation.
 * @return not 0: the call ends here, with *status_p.
 */
static int dn_fault_ends(dn_fault_peer_t *fp, dn_fault_op_t op, dn_status_t *status_p, int *slow_p)
{
    const dn_fault_kind_t kind = dn_fault_roll(fp, op);

    *slow_p = FAULT_SLOW == kind;
    switch (kind) {
    case FAULT_AGAIN:
        *status_p = DN_ERR_AGAIN;
        return 1;
    case FAULT_KILL:
        *status_p = DN_ERR_UNREACH;
        return 1;
    case FAULT_DROP:
        *status_p = DN_OK;
        return 1;
    default:
        return 0;
    }
}

/* Entries of the table that callers see */

/** A fault hits a message: keep its bytes. */
static void dn_fault_capture(dn_fault_peer_t *fp, dn_fault_message_t *msg, unsigned channel, unsigned tag,
                             const void *head, size_t head_len, const void *body, size_t body_len)
{
    msg->channel = channel;
    msg->tag = tag;
    if (0 < head_len) {
        memcpy(msg->data, head, head_len);
    }
    if (0 < body_len) {
        memcpy(msg->data + head_len, body, body_len);
    }
    dn_fault_submit(fp, msg);
}

static dn_status_t dn_fault_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                                 size_t head_len, const void *body, size_t body_len)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);
    dn_fault_message_t *msg = NULL;

    if (fp->base->botf_max < head_len || fp->base->botf_max - head_len < body_len) {
        return fp->inner.botf(peer, channel, tag, head, head_len, body, body_len);
    }
    const dn_status_t status = dn_fault_admit(fp, head_len + body_len, &msg);
    if (DN_OK != status) {
        return status;
    }
    if (NULL == msg) {
        return fp->inner.botf(peer, channel, tag, head, head_len, body, body_len);
    }
    dn_fault_capture(fp, msg, channel, tag, head, head_len, body, body_len);
    return DN_OK;
}

static dn_status_t dn_fault_lend(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                                 size_t head_len, const void *body, size_t body_len, dn_comp_t *comp)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);
    dn_fault_message_t *msg = NULL;

    const dn_status_t status = dn_fault_admit(fp, head_len + body_len, &msg);
    if (DN_OK == status && NULL == msg) {
        return fp->inner.lend(peer, channel, tag, head, head_len, body, body_len, comp);
    }
    if (DN_OK == status) {
        dn_fault_capture(fp, msg, channel, tag, head, head_len, body, body_len);
    }
    return status;
}

static dn_status_t dn_fault_reserve(dn_peer_t *peer, size_t len, dn_window_t *window)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);
    dn_fault_message_t *msg = NULL;

    if (fp->base->botf_max < len) {
        return fp->inner.reserve(peer, len, window);
    }
    const dn_status_t status = dn_fault_admit(fp, len, &msg);
    if (DN_OK != status) {
        return status;
    }
    if (NULL == msg) {
        return fp->inner.reserve(peer, len, window);
    }
    window->data = msg->data;
    window->len = len;
    window->mark = 0;
    dn_lock(&fp->lock);
    dn_fifo_push(&fp->windows, &msg->item);
    dn_unlock(&fp->lock);
    return DN_OK;
}

static void dn_fault_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);

    dn_lock(&fp->lock);
    dn_fault_message_t *msg = dn_fifo_first(&fp->windows);
    while (NULL != msg && msg->data != window->data) {
        msg = dn_fifo_next(&msg->item);
    }
    if (NULL != msg) {
        dn_fifo_remove(&fp->windows, &msg->item);
    }
    dn_unlock(&fp->lock);
    if (NULL == msg) {
        fp->inner.kick(peer, window, channel, tag, len);
        return;
    }
    msg->channel = channel;
    msg->tag = tag;
    msg->len = len < msg->len ? len : msg->len;
    dn_fault_submit(fp, msg);
}

static dn_status_t dn_fault_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);
    dn_status_t status;
    int slow;

    if (dn_fault_ends(fp, OP_AOTF, &status, &slow)) {
        return status;
    }
    return fp->inner.aotf(peer, off, value, size);
}

static dn_status_t dn_fault_aotf_line(dn_peer_t *peer, uint64_t off, const void *data, size_t len,
                                      uint64_t flag)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);
    dn_status_t status;
    int slow;

    if (dn_fault_ends(fp, OP_AOTF, &status, &slow)) {
        return status;
    }
    return fp->inner.aotf_line(peer, off, data, len, flag);
}

static dn_status_t dn_fault_push(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);
    dn_status_t status;
    int slow;

    if (dn_fault_ends(fp, OP_PUSH, &status, &slow)) {
        return status;
    }
    return slow ? dn_port_transfer((dn_peer_base_t *) peer, xfer, 1) : fp->inner.push(peer, xfer);
}

static dn_status_t dn_fault_pull(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);
    dn_status_t status;
    int slow;

    if (dn_fault_ends(fp, OP_PULL, &status, &slow)) {
        return status;
    }
    return slow ? dn_port_transfer((dn_peer_base_t *) peer, xfer, 0) : fp->inner.pull(peer, xfer);
}

static dn_status_t dn_fault_atomic(dn_peer_t *peer, const dn_amo_t *amo)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);
    dn_status_t status;
    int slow;

    if (dn_fault_ends(fp, OP_ATOMIC, &status, &slow)) {
        return status;
    }
    return slow ? dn_port_atomic((dn_peer_base_t *) peer, amo) : fp->inner.atomic(peer, amo);
}

/** Fence: operations after the fence must not overtake messages that are held here. */
static dn_status_t dn_fault_fence(dn_peer_t *peer)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);

    switch (dn_fault_roll(fp, OP_FENCE)) {
    case FAULT_AGAIN:
        return DN_INPROGRESS;
    case FAULT_KILL:
        return DN_ERR_UNREACH;
    default:
        return 0 < dn_fault_held(fp) ? DN_INPROGRESS : fp->inner.fence(peer);
    }
}

static const dn_peer_ops_t dn_fault_ops = {
    .botf = dn_fault_botf,
    .lend = dn_fault_lend,
    .reserve = dn_fault_reserve,
    .kick = dn_fault_kick,
    .aotf = dn_fault_aotf,
    .aotf_line = dn_fault_aotf_line,
    .push = dn_fault_push,
    .pull = dn_fault_pull,
    .atomic = dn_fault_atomic,
    .fence = dn_fault_fence,
};

/* What the port calls */

dn_status_t dn_fault_open(const char *schedule, uint32_t pid, dn_fault_t **fault_p)
{
    dn_fault_t *fault = calloc(1, sizeof(*fault));

    if (NULL == fault) {
        dn_log_error("fault schedule: no memory for %zu bytes", sizeof(*fault));
        return DN_ERR_NOMEM;
    }
    fault->pid = pid;
    const dn_status_t status = dn_fault_parse(fault, schedule);
    if (DN_OK != status) {
        dn_fault_close(fault);
        return status;
    }
    *fault_p = fault;
    return DN_OK;
}

static void dn_fault_peer_free(dn_fault_peer_t *fp)
{
    dn_fault_message_t *msg;

    while (NULL != (msg = dn_fifo_pop(&fp->waiting)) || NULL != (msg = dn_fifo_pop(&fp->windows))) {
        free(msg);
    }
    free(fp);
}

void dn_fault_close(dn_fault_t *fault)
{
    int left = 0;

    while (NULL != fault->peers) {
        dn_fault_peer_t *fp = fault->peers;
        fault->peers = fp->next;
        left += fp->left;
        dn_fault_peer_free(fp);
    }
    if (0 < left) {
        dn_log_error(
            "fault schedule: %d held messages found no room at their peer's disconnection and were dropped: "
            "progress until dn_fence() gives DN_OK before disconnecting",
            left);
    }
    free(fault->replay);
    free(fault);
}

/** Take over the messages that an earlier attachment of the same peer still holds: they leave first. No other thread calls this peer now. */
static void dn_fault_inherit(dn_fault_peer_t *fp, dn_fault_peer_t *before)
{
    if (NULL == before || 0 == before->left) {
        return;
    }
    fp->waiting = before->waiting;
    fp->held = before->held;
    before->waiting = (dn_fifo_t){0};
    before->held = 0;
    before->left = 0;
}

dn_status_t dn_fault_attach(dn_fault_t *fault, dn_peer_base_t *peer)
{
    dn_fault_peer_t *before = peer->fault;
    dn_fault_peer_t *fp = calloc(1, sizeof(*fp));

    if (NULL == fp) {
        dn_log_error("fault schedule: no memory for %zu bytes", sizeof(*fp));
        return DN_ERR_NOMEM;
    }
    fp->fault = fault;
    fp->base = peer;
    fp->inner = peer->hot.ops;
    fp->random = dn_fault_mix(fault->seed) ^ dn_fault_mix((uint64_t) fault->pid << 32 | peer->pid);
    peer->fault = fp;
    peer->hot.ops = dn_fault_ops;
    dn_fault_inherit(fp, before);
    dn_lock(&fault->lock);
    fp->next = fault->peers;
    fault->peers = fp;
    dn_unlock(&fault->lock);
    return DN_OK;
}

void dn_fault_detach(dn_fault_t *fault, dn_peer_base_t *peer)
{
    dn_fault_peer_t *fp = peer->fault;

    (void) fault;
    if (NULL == fp || dn_load_acquire_u32(&fp->detached)) {
        return;
    }
    if (dn_peer_is_lost(peer)) {
        /* The port's word is read under its lock, which senders do not have. */
        dn_store_release_u32(&fp->killed, 1);
    }
    dn_fault_release(fp, 1);
    dn_store_release_u32(&fp->detached, 1);
    if (!dn_peer_is_lost(peer)) {
        peer->hot.ops = fp->inner;
        /* Left for the next attachment of this peer, else for the log line of dn_fault_close(). */
        fp->left = dn_fault_held(fp);
    }
}

/** Declare a killed peer lost. Not in the call that drew the fault, because the port signals completions meanwhile. */
static void dn_fault_tell_killed(dn_fault_peer_t *fp)
{
    dn_lock(&fp->lock);
    const int tell = dn_load_acquire_u32(&fp->killed) && !fp->killed_told && !fp->detached;
    fp->killed_told |= tell;
    dn_unlock(&fp->lock);
    if (tell) {
        dn_port_t *port = fp->base->iface->port;
        dn_port_lock(port);
        dn_port_peer_lost(port, fp->base);
        dn_port_unlock(port);
    }
}

int dn_fault_progress(dn_fault_t *fault)
{
    int released = 0;

    dn_fetch_add_relaxed(&fault->tick, 1);
    dn_lock(&fault->lock);
    dn_fault_peer_t *fp = fault->peers;
    dn_unlock(&fault->lock);
    for (; NULL != fp; fp = fp->next) {
        if (!dn_load_acquire_u32(&fp->detached)) {
            released += dn_fault_release(fp, 0);
            dn_fault_tell_killed(fp);
        }
    }
    return released;
}

const char *dn_fault_replay(const dn_fault_t *fault)
{
    return fault->replay;
}
