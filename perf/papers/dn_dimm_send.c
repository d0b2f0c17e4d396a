/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_dimm_send.h"

#include <string.h>

/** Words of a flag area, each written by one AOTF. */
enum {
    DN_DIMM_RECV_FIRST, /**< announcement of a receiver */
    DN_DIMM_SEND_FIRST, /**< announcement of a sender */
    DN_DIMM_SPLIT,      /**< split notice: message number, pieces */
    DN_DIMM_NOTICE,     /**< data sent, or PULL done: count of notices */
    DN_DIMM_REPLY       /**< count of replies */
};

/** In the message number of a split notice. */
#define DN_DIMM_BY_RECEIVER 0x80000000u

/** Announcement: flag with the message's number, group, byte flag (buffers left or used), length. */
static uint64_t announcement(const dn_dimm_t *dimm, uint32_t message, uint32_t buffers, uint32_t len)
{
    return (uint64_t) (0x80 | (message & 0x7f)) << 56 | (uint64_t) (dimm->pgid & 0xff) << 48
           | (uint64_t) buffers << 40 | len;
}

/** Is a word an announcement of this message by our group? */
static int announced(const dn_dimm_t *dimm, uint64_t word, uint32_t message)
{
    return word >> 56 == (0x80 | (message & 0x7f)) && ((word >> 48) & 0xff) == (dimm->pgid & 0xff);
}

/** An announcement is used up; the number in it comes again. */
static void retire(dn_dimm_t *dimm, unsigned word, uint32_t message)
{
    if (announced(dimm, dimm->flags[word], message)) {
        dimm->flags[word] = 0;
    }
}

static uint32_t pieces_of(uint32_t len, uint32_t buffers)
{
    const uint32_t room = buffers * DN_DIMM_BUFFER;
    return len <= room ? 1 : (len + room - 1) / room;
}

static void tell(dn_dimm_t *dimm, unsigned word, uint64_t value)
{
    dn_status_t status;

    while (
        DN_ERR_AGAIN
        == (status = dn_aotf(dimm->peer, dimm->far_flags + word * sizeof(uint64_t), value, sizeof(value)))) {
        dn_progress(dimm->port);
    }
    dn_paper_need(status, "dn_aotf");
}

/** Wait until a count in the flag area is reached. */
static void await(const dn_dimm_t *dimm, unsigned word, uint32_t count)
{
    while ((uint32_t) dimm->flags[word] != count) {
        dn_progress(dimm->port);
    }
}

/** Wait for the acknowledgement: what a notice says has to be there before it. */
static void settle(const dn_dimm_t *dimm)
{
    dn_status_t status;

    while (DN_INPROGRESS == (status = dn_flush(dimm->peer))) {
    }
    dn_paper_need(status, "dn_flush");
}

/** A notice after a piece, and the reply to it. */
static void notify(dn_dimm_t *dimm)
{
    settle(dimm);
    tell(dimm, DN_DIMM_NOTICE, ++dimm->notices[0]);
    await(dimm, DN_DIMM_REPLY, dimm->notices[0]);
}

static void await_notice(dn_dimm_t *dimm)
{
    await(dimm, DN_DIMM_NOTICE, dimm->notices[1] + 1);
}

static void reply(dn_dimm_t *dimm)
{
    tell(dimm, DN_DIMM_REPLY, ++dimm->notices[1]);
}

/** The host moves bytes between its memory and a region; the bank has to face it. */
static void move(void *to, const void *from, uint32_t len)
{
    const uint64_t rate = dn_model_value("host_copy");

    dn_model_switch_banks();
    memcpy(to, from, len);
    if (0 != rate) {
        dn_model_compute((uint64_t) ((double) len * 1e12 / (double) rate));
    }
}

/** Length of piece i of a message. */
static uint32_t piece_len(uint32_t len, uint32_t buffers, uint32_t i)
{
    const uint32_t room = buffers * DN_DIMM_BUFFER;
    const uint32_t left = len - i * room;
    return left < room ? left : room;
}

/** PUSH or PULL a piece between the own memory and a region of the peer. */
static void transfer(dn_dimm_t *dimm, void *local, uint64_t roff, uint32_t len, int push)
{
    const dn_xfer_t xfer = {.local = local, .key = &dimm->far_key, .roff = roff, .len = len};
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = push ? dn_push(dimm->peer, &xfer) : dn_pull(dimm->peer, &xfer))) {
        dn_progress(dimm->port);
    }
    dn_paper_need(status, push ? "dn_push" : "dn_pull");
    dimm->pieces++;
}

/** Protocol A, sender: the receiver has announced itself. */
static void send_second(dn_dimm_t *dimm, const uint8_t *data, uint32_t len, uint64_t word)
{
    const uint32_t buffers = (word >> 40) & 0xff;
    const uint32_t count = pieces_of(len, buffers);

    if (1 != count) {
        tell(dimm, DN_DIMM_SPLIT, (uint64_t) dimm->sent << 32 | count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t part = piece_len(len, buffers, i);
        if (0 != part) {
            transfer(dimm, (void *) (uintptr_t) (data + (size_t) i * buffers * DN_DIMM_BUFFER),
                     dimm->far_receive, part, 1);
        }
        notify(dimm);
    }
}

/** Protocol B, sender: the receiver PULLs from the send region, which is filled again between pieces. */
static void send_first(dn_dimm_t *dimm, const uint8_t *data, uint32_t len)
{
    const uint32_t count = pieces_of(len, dimm->buffers);
    const uint32_t used = 1 != count ? dimm->buffers : (len + DN_DIMM_BUFFER - 1) / DN_DIMM_BUFFER;

    move(dimm->send, data, piece_len(len, dimm->buffers, 0));
    tell(dimm, DN_DIMM_SEND_FIRST, announcement(dimm, dimm->sent, used, len));
    for (uint32_t i = 0; i < count; i++) {
        while ((uint32_t) dimm->flags[DN_DIMM_NOTICE] != dimm->notices[1] + 1) {
            if (0 == i && announced(dimm, dimm->flags[DN_DIMM_RECV_FIRST], dimm->sent)) {
                send_second(dimm, data, len, dimm->flags[DN_DIMM_RECV_FIRST]);
                return;
            }
            dn_progress(dimm->port);
        }
        if (i + 1 < count) {
            move(dimm->send, data + (size_t) (i + 1) * dimm->buffers * DN_DIMM_BUFFER,
                 piece_len(len, dimm->buffers, i + 1));
        }
        reply(dimm);
    }
}

void dn_dimm_send(dn_dimm_t *dimm, const void *data, uint32_t len)
{
    dimm->sent++;
    dn_progress(dimm->port);
    const uint64_t word = dimm->flags[DN_DIMM_RECV_FIRST];
    if (announced(dimm, word, dimm->sent)) {
        send_second(dimm, data, len, word);
    } else {
        send_first(dimm, data, len);
    }
    retire(dimm, DN_DIMM_RECV_FIRST, dimm->sent);
}

/** Protocol A, receiver: the sender writes into the receive region. */
static void recv_first(dn_dimm_t *dimm, uint8_t *data, uint32_t len)
{
    const uint32_t buffers = dimm->buffers;
    uint32_t count = 1;

    tell(dimm, DN_DIMM_RECV_FIRST, announcement(dimm, dimm->received, buffers, len));
    for (uint32_t i = 0; i < count; i++) {
        await_notice(dimm);
        const uint64_t split = dimm->flags[DN_DIMM_SPLIT];
        if (0 == i && split >> 32 == dimm->received) {
            count = (uint32_t) split;
        }
        move(data + (size_t) i * buffers * DN_DIMM_BUFFER, dimm->receive, piece_len(len, buffers, i));
        reply(dimm);
    }
}

/** Protocol B, receiver: it PULLs what the sender has ready. */
static void recv_second(dn_dimm_t *dimm, uint8_t *data, uint32_t len, uint64_t word)
{
    const uint32_t used = (word >> 40) & 0xff;
    const uint32_t count = pieces_of(len, 0 == used ? 1 : used);

    if (1 != count) {
        /* Messages of the two directions have numbers of their own: a receiver's notices are marked. */
        tell(dimm, DN_DIMM_SPLIT, (uint64_t) (dimm->received | DN_DIMM_BY_RECEIVER) << 32 | count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t part = piece_len(len, used, i);
        if (0 != part) {
            transfer(dimm, data + (size_t) i * used * DN_DIMM_BUFFER, dimm->far_send, part, 0);
        }
        notify(dimm);
    }
}

void dn_dimm_recv(dn_dimm_t *dimm, void *data, uint32_t len)
{
    dimm->received++;
    dn_progress(dimm->port);
    const uint64_t word = dimm->flags[DN_DIMM_SEND_FIRST];
    if (announced(dimm, word, dimm->received)) {
        recv_second(dimm, data, len, word);
    } else {
        recv_first(dimm, data, len);
    }
    retire(dimm, DN_DIMM_SEND_FIRST, dimm->received);
}

void dn_dimm_open(dn_dimm_t *dimm, dn_paper_node_t *self, uint32_t to)
{
    const dn_paper_seat_t *seat = &self->world->seat[to];

    *dimm = (dn_dimm_t){
        .port = self->port,
        .peer = dn_paper_peer(self, to),
        .flags = (volatile uint64_t *) self->area,
        .far_flags = seat->off,
        .receive = self->memory,
        .send = self->memory + DN_DIMM_REGION,
        .far_key = seat->key,
        .far_receive = 0,
        .far_send = DN_DIMM_REGION,
        .pgid = 0x5a,
        .buffers = DN_DIMM_BUFFERS,
    };
}
