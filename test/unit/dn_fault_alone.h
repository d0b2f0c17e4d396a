/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_fault_alone.h
 * The fault wrapper with nothing around it: the device below, the core processor and the port are fakes
 * that write down what they are asked.
 */
#ifndef DN_FAULT_ALONE_H
#define DN_FAULT_ALONE_H

#include "dn_log.c"
#include "fault/dn_fault.c"
#include "fault/dn_fault_held.c"
#include "fault/dn_fault_schedule.c"

/** What the fakes saw. */
static struct {
    unsigned calls[OP_COUNT];
    unsigned core[OP_COUNT];
    unsigned windows;
    unsigned lost;
    unsigned room; /**< messages that the device still takes */
    unsigned taken;
    unsigned first[4096]; /**< first word of each message taken */
    size_t len[4096];
    unsigned tag[4096];
    uint8_t window[4096];
} fake;

static dn_status_t fake_take(unsigned tag, const void *data, size_t len)
{
    assert_in_range(fake.taken, 0, 4095);
    fake.first[fake.taken] = 0;
    memcpy(&fake.first[fake.taken], data, len < 4 ? len : 4);
    fake.len[fake.taken] = len;
    fake.tag[fake.taken++] = tag;
    return DN_OK;
}

static dn_status_t fake_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                             size_t head_len, const void *body, size_t body_len)
{
    uint8_t data[4096];

    if (4096 < head_len + body_len) {
        return DN_ERR_RANGE;
    }
    if (0 == fake.room) {
        return DN_ERR_AGAIN;
    }
    fake.room--;
    fake.calls[OP_BOTF]++;
    if (0 < head_len) {
        memcpy(data, head, head_len);
    }
    if (0 < body_len) {
        memcpy(data + head_len, body, body_len);
    }
    return fake_take(tag, data, head_len + body_len);
}

static dn_status_t fake_reserve(dn_peer_t *peer, size_t len, dn_window_t *window)
{
    if (4096 < len) {
        return DN_ERR_RANGE;
    }
    if (0 == fake.room) {
        return DN_ERR_AGAIN;
    }
    fake.room--;
    *window = (dn_window_t){fake.window, len, 1};
    return DN_OK;
}

static void fake_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    assert_ptr_equal(window->data, fake.window);
    fake.windows++;
    fake_take(tag, fake.window, len);
}

static dn_status_t fake_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size)
{
    fake.calls[OP_AOTF]++;
    return DN_OK;
}

static dn_status_t fake_push(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    fake.calls[OP_PUSH]++;
    return DN_OK;
}

static dn_status_t fake_pull(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    fake.calls[OP_PULL]++;
    return DN_OK;
}

static dn_status_t fake_atomic(dn_peer_t *peer, const dn_amo_t *amo)
{
    fake.calls[OP_ATOMIC]++;
    return DN_OK;
}

static dn_status_t fake_fence(dn_peer_t *peer)
{
    fake.calls[OP_FENCE]++;
    return DN_OK;
}

dn_status_t dn_port_transfer(dn_peer_base_t *peer, const dn_xfer_t *xfer, int write)
{
    fake.core[write ? OP_PUSH : OP_PULL]++;
    return DN_OK;
}

dn_status_t dn_port_atomic(dn_peer_base_t *peer, const dn_amo_t *amo)
{
    fake.core[OP_ATOMIC]++;
    return DN_OK;
}

void dn_port_lock(const dn_port_t *port) {}

void dn_port_unlock(const dn_port_t *port) {}

void dn_port_peer_lost(dn_port_t *port, dn_peer_base_t *peer)
{
    peer->life = DN_PEER_LOST;
    fake.lost++;
}

static const dn_peer_ops_t fake_ops = {.botf = fake_botf,
                                       .reserve = fake_reserve,
                                       .kick = fake_kick,
                                       .aotf = fake_aotf,
                                       .push = fake_push,
                                       .pull = fake_pull,
                                       .atomic = fake_atomic,
                                       .fence = fake_fence};

static dn_iface_t fake_iface;

/** A peer of PID 7 under a schedule of PID 3; the fakes start afresh. */
static inline dn_fault_t *fault_over(dn_peer_base_t *peer, const char *schedule)
{
    dn_fault_t *fault = NULL;

    memset(&fake, 0, sizeof(fake));
    fake.room = 4096;
    memset(peer, 0, sizeof(*peer));
    peer->hot.ops = fake_ops;
    peer->iface = &fake_iface;
    peer->pid = 7;
    peer->botf_max = 4096;
    assert_int_equal(dn_fault_open(schedule, 3, &fault), DN_OK);
    assert_int_equal(dn_fault_attach(fault, peer), DN_OK);
    return fault;
}

static inline void fault_end(dn_fault_t *fault, dn_peer_base_t *peer)
{
    dn_fault_detach(fault, peer);
    dn_fault_close(fault);
}

#endif
