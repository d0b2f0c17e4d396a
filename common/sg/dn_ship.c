/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ship.h"

#include <stdlib.h>
#include <string.h>

/**
 * Most bytes that a receiver keeps for a sender. The sender counts no more than DN_SHIP_BYTES. But if the sender
 * disconnects and comes again, answers to its earlier requests may still keep as many bytes.
 */
#define DN_SHIP_KEPT (2u * DN_SHIP_BYTES)

_Static_assert(sizeof(dn_ship_piece_t) == 24, "peers agree on the layout");

/* ---- what a peer has of ours ---- */

/** Bytes of the encoding of a program. */
static size_t dn_ship_len(const dn_prog_t *prog)
{
    size_t len = 0;
    dn_prog_encode(prog, NULL, &len);
    return len;
}

int dn_ship_fits(const dn_prog_t *prog)
{
    return DN_SHIP_BYTES >= dn_ship_len(prog);
}

/** Of the slots that no transfer needs, the slot that was not used for the longest time; an empty slot first, but for @p with_program.
 * @return DN_SHIP_SLOTS: there is no such slot. */
static uint32_t dn_ship_oldest(const dn_ship_out_t *out, int with_program)
{
    uint32_t oldest = DN_SHIP_SLOTS;

    for (uint32_t i = 0; i < DN_SHIP_SLOTS; i++) {
        const dn_ship_out_slot_t *slot = &out->slot[i];
        if (0 == slot->users && (0 != slot->id || !with_program)
            && (DN_SHIP_SLOTS == oldest || slot->turn < out->slot[oldest].turn)) {
            oldest = i;
        }
    }
    return oldest;
}

/** Give a slot to a program, which has to be sent then. */
static dn_status_t dn_ship_load(dn_ship_out_t *out, dn_ship_out_slot_t *slot, const dn_prog_t *prog)
{
    size_t len = dn_ship_len(prog);
    uint8_t *encoded = malloc(len);

    if (NULL == encoded) {
        return DN_ERR_NOMEM;
    }
    dn_prog_encode(prog, encoded, &len);
    out->encoded = encoded;
    out->bytes += len - slot->len;
    *slot = (dn_ship_out_slot_t){.id = dn_prog_info(prog)->id, .len = (uint32_t) len};
    return DN_OK;
}

dn_status_t dn_ship_out_enter(dn_ship_out_t *out, const dn_prog_t *prog, uint32_t *slot_p)
{
    const uint64_t id = dn_prog_info(prog)->id;
    uint32_t i = 0;

    while (i < DN_SHIP_SLOTS && id != out->slot[i].id) {
        i++;
    }
    if (DN_SHIP_SLOTS == i) {
        i = dn_ship_oldest(out, 0);
        if (DN_SHIP_SLOTS == i) {
            return DN_ERR_AGAIN;
        }
        const dn_status_t status = dn_ship_load(out, &out->slot[i], prog);
        if (DN_OK != status) {
            return status;
        }
    }
    out->slot[i].users++;
    out->slot[i].turn = ++out->turn;
    *slot_p = i;
    return DN_OK;
}

dn_status_t dn_ship_out_next(const dn_ship_out_t *out, uint32_t slot, size_t room, dn_ship_piece_t *piece,
                             const uint8_t **bytes_p, size_t *n_p)
{
    const dn_ship_out_slot_t *mine = &out->slot[slot];
    const uint32_t flags = out->known ? 0 : DN_SHIP_FRESH;
    const size_t left = mine->len - mine->sent;

    if (0 == left) {
        return DN_OK;
    }
    *bytes_p = out->encoded + mine->sent;
    if (DN_SHIP_BYTES >= out->bytes) {
        *piece = (dn_ship_piece_t){mine->id, slot, flags, mine->len, mine->sent};
        *n_p = left < room ? left : room;
        return DN_INPROGRESS;
    }
    const uint32_t other = dn_ship_oldest(out, 1);
    if (DN_SHIP_SLOTS == other) {
        return DN_ERR_AGAIN;
    }
    *piece = (dn_ship_piece_t){.slot = other, .flags = flags};
    *n_p = 0;
    return DN_INPROGRESS;
}

/** Empty a slot. */
static void dn_ship_empty(dn_ship_out_t *out, dn_ship_out_slot_t *slot)
{
    out->bytes -= slot->len;
    memset(slot, 0, sizeof(*slot));
}

static void dn_ship_unload(dn_ship_out_t *out)
{
    free(out->encoded);
    out->encoded = NULL;
}

int dn_ship_out_sent(dn_ship_out_t *out, const dn_ship_piece_t *piece, size_t n)
{
    dn_ship_out_slot_t *slot = &out->slot[piece->slot];

    out->known = 1;
    if (0 == piece->len) {
        dn_ship_empty(out, slot);
        return 0;
    }
    slot->sent += (uint32_t) n;
    if (slot->sent != slot->len) {
        return 0;
    }
    dn_ship_unload(out);
    return 1;
}

void dn_ship_out_leave(dn_ship_out_t *out, uint32_t i)
{
    dn_ship_out_slot_t *slot = &out->slot[i];

    slot->users--;
    if (0 == slot->users && slot->sent != slot->len) {
        dn_ship_empty(out, slot);
        dn_ship_unload(out);
    }
}

void dn_ship_out_reset(dn_ship_out_t *out)
{
    dn_ship_unload(out);
    memset(out, 0, sizeof(*out));
}

/* ---- what we have of a peer's ---- */

static void dn_ship_in_end(dn_ship_in_t *in)
{
    if (NULL != in->coming) {
        free(in->coming);
        in->coming = NULL;
        in->bytes -= in->expect.len;
    }
}

static void dn_ship_in_empty(dn_ship_in_t *in, dn_ship_in_slot_t *slot)
{
    if (NULL != slot->prog) {
        dn_ship_in_leave(in, slot->prog);
    }
    *slot = (dn_ship_in_slot_t){.status = DN_ERR_PROTO};
}

/** Handle the first piece of a program: empty its slot. @return 0: the program is refused. */
static int dn_ship_in_begin(dn_ship_in_t *in, const dn_ship_piece_t *piece)
{
    dn_ship_in_slot_t *slot = &in->slot[piece->slot];

    dn_ship_in_end(in);
    dn_ship_in_empty(in, slot);
    slot->id = piece->id;
    if (DN_SHIP_BYTES < piece->len || DN_SHIP_KEPT - in->bytes < piece->len) {
        return 0;
    }
    if (0 == piece->len) {
        return 1;
    }
    in->coming = malloc(piece->len);
    if (NULL == in->coming) {
        slot->status = DN_ERR_NOMEM;
        return 0;
    }
    in->bytes += piece->len;
    in->expect = *piece;
    return 1;
}

/** All of a program has come: decode it. @return 0: the bytes are not a program. */
static int dn_ship_in_finish(dn_ship_in_t *in)
{
    dn_ship_in_slot_t *slot = &in->slot[in->expect.slot];
    dn_ship_prog_t *prog = calloc(1, sizeof(*prog));

    slot->status = DN_ERR_NOMEM;
    if (NULL != prog) {
        slot->status = dn_prog_decode(in->coming, in->expect.len, NULL, &prog->prog);
    }
    if (DN_OK != slot->status) {
        free(prog);
        dn_ship_in_end(in);
        return 0;
    }
    prog->len = in->expect.len;
    prog->users = 1;
    slot->prog = prog;
    dn_ship_in_end(in);
    in->bytes += prog->len;
    return 1;
}

int dn_ship_in_piece(dn_ship_in_t *in, const dn_ship_piece_t *piece, const uint8_t *bytes, size_t n)
{
    const int fresh = 0 != (piece->flags & DN_SHIP_FRESH);

    if (DN_SHIP_SLOTS <= piece->slot || piece->at > piece->len || n > piece->len - piece->at
        || (0 == n && 0 != piece->len)) {
        return 0;
    }
    if (0 != piece->at
        && (fresh || NULL == in->coming || piece->id != in->expect.id || piece->slot != in->expect.slot
            || piece->len != in->expect.len || piece->at != in->expect.at)) {
        return 0;
    }
    if (fresh) {
        dn_ship_in_clear(in);
    }
    if (0 == piece->at && !dn_ship_in_begin(in, piece)) {
        return 0;
    }
    if (0 == n) {
        return 1;
    }
    memcpy(in->coming + piece->at, bytes, n);
    in->expect.at += (uint32_t) n;
    return in->expect.at == in->expect.len ? dn_ship_in_finish(in) : 1;
}

dn_status_t dn_ship_in_find(const dn_ship_in_t *in, uint32_t slot, uint64_t id, dn_ship_prog_t **prog_p)
{
    if (DN_SHIP_SLOTS <= slot || 0 == id || id != in->slot[slot].id) {
        return DN_ERR_PROTO;
    }
    if (NULL == in->slot[slot].prog) {
        return in->slot[slot].status;
    }
    *prog_p = in->slot[slot].prog;
    return DN_OK;
}

void dn_ship_in_keep(dn_ship_prog_t *prog)
{
    prog->users++;
}

void dn_ship_in_leave(dn_ship_in_t *in, dn_ship_prog_t *prog)
{
    if (0 == --prog->users) {
        if (NULL != in) {
            in->bytes -= prog->len;
        }
        dn_prog_free(prog->prog);
        free(prog);
    }
}

void dn_ship_in_clear(dn_ship_in_t *in)
{
    dn_ship_in_end(in);
    for (uint32_t i = 0; i < DN_SHIP_SLOTS; i++) {
        dn_ship_in_empty(in, &in->slot[i]);
    }
}
