/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_fault_int.h"

#include <stdlib.h>
#include <string.h>

/** Progress calls for which a delayed message is held, at most. */
#define DN_FAULT_TICKS_MAX 8

dn_fault_message_t *dn_fault_message_new(dn_fault_peer_t *fp, dn_fault_kind_t kind, size_t len)
{
    dn_fault_message_t *msg = aligned_alloc(64, (sizeof(*msg) + len + 63) / 64 * 64);

    if (NULL != msg) {
        msg->kind = kind;
        msg->due = dn_load_relaxed(&fp->fault->tick);
        msg->channel = 0;
        msg->tag = 0;
        msg->len = len;
    }
    return msg;
}

/** Lock held by the caller. */
static void dn_fault_append(dn_fault_peer_t *fp, dn_fault_message_t *msg)
{
    dn_fifo_push(&fp->waiting, &msg->item);
    fp->held++;
}

int dn_fault_held(dn_fault_peer_t *fp)
{
    dn_lock(&fp->lock);
    const unsigned held = fp->held;
    dn_unlock(&fp->lock);
    return (int) held;
}

/** The first message if it may leave now (any time, when `all`), else NULL. */
static dn_fault_message_t *dn_fault_first(dn_fault_peer_t *fp, int all)
{
    const uint64_t tick = dn_load_relaxed(&fp->fault->tick);

    dn_lock(&fp->lock);
    dn_fault_message_t *msg = dn_fifo_first(&fp->waiting);
    if (NULL != msg && !all && tick < msg->due) {
        msg = NULL;
    }
    dn_unlock(&fp->lock);
    return msg;
}

void dn_fault_pop(dn_fault_peer_t *fp, dn_fault_message_t *msg)
{
    dn_lock(&fp->lock);
    dn_fifo_remove(&fp->waiting, &msg->item);
    fp->held--;
    dn_unlock(&fp->lock);
    free(msg);
}

int dn_fault_release(dn_fault_peer_t *fp, int all)
{
    int released = 0;

    dn_lock(&fp->lock);
    const int mine = !fp->releasing;
    fp->releasing = 1;
    dn_unlock(&fp->lock);
    if (!mine) {
        return 0;
    }
    for (dn_fault_message_t *msg = dn_fault_first(fp, all); NULL != msg; msg = dn_fault_first(fp, all)) {
        dn_status_t status = DN_ERR_UNREACH;
        if (!dn_load_acquire_u32(&fp->killed)) {
            status = fp->inner.botf(&fp->base->hot, msg->channel, msg->tag, msg->data, msg->len, NULL, 0);
        }
        if (DN_ERR_AGAIN == status) {
            break;
        }
        dn_fault_pop(fp, msg);
        released++;
        if (dn_load_acquire_u32(&fp->detached)) {
            /* The device found the peer lost: what is left is freed at the end. */
            break;
        }
    }
    dn_lock(&fp->lock);
    fp->releasing = 0;
    dn_unlock(&fp->lock);
    return released;
}

/** Turn one bit over; an empty message has only its tag. */
static void dn_fault_corrupt(dn_fault_peer_t *fp, dn_fault_message_t *msg)
{
    const uint64_t bit = dn_fault_draw(fp);

    if (0 < msg->len) {
        msg->data[bit / 8 % msg->len] ^= (uint8_t) (1U << bit % 8);
    } else {
        msg->tag ^= 1U << bit % 8;
    }
}

void dn_fault_submit(dn_fault_peer_t *fp, dn_fault_message_t *msg)
{
    dn_fault_message_t *twin = NULL;

    switch (msg->kind) {
    case FAULT_DROP:
        free(msg);
        return;
    case FAULT_CORRUPT:
        dn_fault_corrupt(fp, msg);
        break;
    case FAULT_DELAY:
        msg->due += 1 + dn_fault_draw(fp) % DN_FAULT_TICKS_MAX;
        break;
    case FAULT_DUP:
        twin = dn_fault_message_new(fp, FAULT_NONE, msg->len);
        if (NULL != twin) {
            twin->channel = msg->channel;
            twin->tag = msg->tag;
            memcpy(twin->data, msg->data, msg->len);
        }
        break;
    default:
        break;
    }
    dn_lock(&fp->lock);
    dn_fault_append(fp, msg);
    if (NULL != twin) {
        dn_fault_append(fp, twin);
    }
    dn_unlock(&fp->lock);
    dn_fault_release(fp, 0);
}
