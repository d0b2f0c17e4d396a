/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ship.h
 * Programs (dn_prog.h) cross the wire once: what a peer has of ours, and what we have of a peer's.
 *
 * Of each sender, a receiver has a table of slots. What is in them is the sender's choice alone: it ships a
 * program into a slot, in pieces, before the first transfer that names it, and later transfers name slot and
 * program only. When it gives the slot to another program, what was there is gone. Messages to one peer
 * arrive in order, so a transfer always finds what it names, and nothing has to be asked or confirmed:
 *
 *   sender    piece, piece of A into 0 | use A in 0 | use A in 0 | piece of B into 0 | use B in 0 | piece of A ...
 *
 * The slot that a sender gives away is the one that it has used least lately, and none that a transfer in
 * flight names. So the slot of a program that was freed, whose number never comes again, goes to another in
 * time.
 *
 * A receiver takes no more than DN_SHIP_SLOTS programs, and a bounded number of bytes, whatever it is sent.
 *
 * Threads: one at a time.
 *
 * Pinned by test/unit/dn_ship_sends_each_program_once.c and dn_ship_takes_no_more_than_its_bounds.c.
 */
#ifndef DN_SHIP_H
#define DN_SHIP_H

#include "dn_prog.h"

#define DN_SHIP_SLOTS 32
/** Encoded bytes of all programs that a peer has of ours. A longer one is not shipped: 131,000 places of a
 * LIST. */
#define DN_SHIP_BYTES (1u << 20)

enum {
    DN_SHIP_FRESH = 1 << 0, /**< of the first piece from a new table: what all slots had is gone */
};

/** Start of a message; bytes of the encoding follow. */
typedef struct dn_ship_piece {
    uint64_t id; /**< the program's number at its sender */
    uint32_t slot;
    uint32_t flags; /**< DN_SHIP_* */
    uint32_t len;   /**< of the whole encoding; 0: only to empty the slot */
    uint32_t at;    /**< place of these bytes in it; 0: what the slot had is gone */
} dn_ship_piece_t;

/** @name What a peer has of ours */
/** @{ */
typedef struct dn_ship_out_slot {
    uint64_t id;    /**< 0: empty */
    uint64_t turn;  /**< of the last transfer that took it */
    uint32_t len;   /**< of the encoding */
    uint32_t sent;  /**< bytes of that */
    uint32_t users; /**< transfers that have taken and not left it */
} dn_ship_out_slot_t;

typedef struct dn_ship_out {
    dn_ship_out_slot_t slot[DN_SHIP_SLOTS];
    uint64_t turn;
    uint64_t bytes;   /**< sum of len */
    uint8_t *encoded; /**< of the program that is on its way */
    int known;        /**< the peer has had a piece from this table */
} dn_ship_out_t;

/** Is a program short enough to be shipped? */
int dn_ship_fits(const dn_prog_t *prog);

/**
 * Take the slot of a program that fits, or choose one for it. One program at a time is on its way: this is
 * for the transfer whose messages come next.
 *
 * @retval DN_ERR_AGAIN  transfers in flight have taken all: when one has left its slot, try again.
 * @retval DN_ERR_NOMEM  memory ran out.
 */
dn_status_t dn_ship_out_enter(dn_ship_out_t *out, const dn_prog_t *prog, uint32_t *slot_p);

/**
 * What has to be sent before a slot that was taken can be named.
 *
 * @param[in]  room     Bytes that may follow the piece, at least 1.
 * @param[out] piece    Send this,
 * @param[out] bytes_p  with these bytes behind it,
 * @param[out] n_p      which are so many.
 *
 * @retval DN_OK          nothing: the peer has it.
 * @retval DN_INPROGRESS  send it, then dn_ship_out_sent(), and ask again.
 * @retval DN_ERR_AGAIN   there is no room for it at the peer until a transfer in flight leaves its slot.
 */
dn_status_t dn_ship_out_next(const dn_ship_out_t *out, uint32_t slot, size_t room, dn_ship_piece_t *piece,
                             const uint8_t **bytes_p, size_t *n_p);

/** The piece of dn_ship_out_next() is sent. @return 1 when the peer now has one program more; else 0. */
int dn_ship_out_sent(dn_ship_out_t *out, const dn_ship_piece_t *piece, size_t n);

/** A transfer is over: leave the slot that it has taken. */
void dn_ship_out_leave(dn_ship_out_t *out, uint32_t slot);

/** No transfer is in flight any more, and the peer may have forgotten all: begin a new table. */
void dn_ship_out_reset(dn_ship_out_t *out);
/** @} */

/** @name What we have of a peer's */
/** @{ */

/** A program, and how many need it. */
typedef struct dn_ship_prog {
    dn_prog_t *prog;
    uint32_t len;   /**< of its encoding */
    uint32_t users; /**< its slot, and each transfer that keeps it */
} dn_ship_prog_t;

typedef struct dn_ship_in_slot {
    uint64_t id;
    dn_ship_prog_t *prog;
    dn_status_t status; /**< why prog is NULL */
} dn_ship_in_slot_t;

typedef struct dn_ship_in {
    dn_ship_in_slot_t slot[DN_SHIP_SLOTS];
    uint64_t bytes;         /**< encodings of all programs that are there, and of the one that is coming */
    uint8_t *coming;        /**< its encoding so far; NULL: none is */
    dn_ship_piece_t expect; /**< its next piece */
} dn_ship_in_t;

/**
 * Take a piece. Piece and bytes may be anything, in memory that the peer cannot change meanwhile.
 * @return 1; 0 when it is malformed, or more than may be kept: its program cannot be found.
 */
int dn_ship_in_piece(dn_ship_in_t *in, const dn_ship_piece_t *piece, const uint8_t *bytes, size_t n);

/**
 * The program that a transfer names. It stays until the next piece comes, or for as long as it is kept.
 * @retval DN_ERR_PROTO  that program is not there, or what came was none.
 * @retval DN_ERR_NOMEM  there was no memory for it. And whatever dn_prog_decode() said.
 */
dn_status_t dn_ship_in_find(const dn_ship_in_t *in, uint32_t slot, uint64_t id, dn_ship_prog_t **prog_p);

/** Keep a program, whatever becomes of its slot; and leave it. */
void dn_ship_in_keep(dn_ship_prog_t *prog);
void dn_ship_in_leave(dn_ship_in_t *in, dn_ship_prog_t *prog);

/** Forget all that nobody keeps, and leave what somebody does. */
void dn_ship_in_clear(dn_ship_in_t *in);
/** @} */

/** Both, of one peer. */
typedef struct dn_ship {
    dn_ship_out_t out;
    dn_ship_in_t in;
} dn_ship_t;

#endif
