/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ship.h
 * Programs (dn_prog.h) cross the wire once. Each process keeps two tables for each peer: the programs that it has
 * sent to the peer, and the programs that have come from the peer.
 *
 * A receiver has a table of slots for each sender. Only the sender decides which program is in a slot. The sender
 * ships a program into a slot, in pieces, before the first transfer that names the program. Later transfers only
 * name the slot and the program. When the sender gives the slot to another program, the old program is gone. Messages
 * to one peer arrive in order, so a transfer always finds the program that it names, and no side asks or confirms:
 *
 *   sender    piece, piece of A into 0 | use A in 0 | use A in 0 | piece of B into 0 | use B in 0 | piece of A ...
 *
 * A sender gives away the slot that it has not used for the longest time. It never gives away a slot that a
 * transfer in flight names. A program that was freed never comes again, as its number is never given again. So its
 * slot goes to another program in time.
 *
 * A receiver takes no more than DN_SHIP_SLOTS programs, and a bounded number of bytes, whatever a peer sends.
 *
 * Threads: one thread at a time for each table. A program that is kept may be walked by any thread, as a program never changes; to keep
 * it, and to leave it, are uses of the table.
 *
 * Pinned by test/unit/dn_ship_sends_each_program_once.c and dn_ship_takes_no_more_than_its_bounds.c.
 */
#ifndef DN_SHIP_H
#define DN_SHIP_H

#include "dn_prog.h"

#define DN_SHIP_SLOTS 32
/** Most encoded bytes of all programs that a peer has from this process. A longer program is not shipped: this
 * is one with more than 131,000 places of a LIST. */
#define DN_SHIP_BYTES (1u << 20)

enum {
    DN_SHIP_FRESH = 1 << 0, /**< in the first piece from a new table: the receiver empties all slots */
};

/** Start of a message; bytes of the encoding follow. */
typedef struct dn_ship_piece {
    uint64_t id; /**< the program's number at its sender */
    uint32_t slot;
    uint32_t flags; /**< DN_SHIP_* */
    uint32_t len;   /**< of the whole encoding; 0: this piece only empties the slot */
    uint32_t at;    /**< place of these bytes in the encoding; 0: the old program in the slot is gone */
} dn_ship_piece_t;

/** @name Programs of this process that a peer has */
/** @{ */
typedef struct dn_ship_out_slot {
    uint64_t id;    /**< 0: empty */
    uint64_t turn;  /**< when a transfer took the slot last: dn_ship_out_t::turn */
    uint32_t len;   /**< of the encoding */
    uint32_t sent;  /**< bytes of the encoding that were sent */
    uint32_t users; /**< transfers that have taken the slot, and have not left it */
} dn_ship_out_slot_t;

typedef struct dn_ship_out {
    dn_ship_out_slot_t slot[DN_SHIP_SLOTS];
    uint64_t turn;
    uint64_t bytes;   /**< sum of len */
    uint8_t *encoded; /**< encoding of the program that is being sent */
    int known;        /**< not 0: a piece from this table was sent to the peer */
} dn_ship_out_t;

/** Is a program short enough to be shipped? */
int dn_ship_fits(const dn_prog_t *prog);

/**
 * Take the slot of a program that fits, or choose a slot for the program. One program at a time is being sent: the
 * caller sends the messages of this transfer next.
 *
 * @retval DN_ERR_AGAIN  transfers in flight have taken all slots: try again when a transfer has left its slot.
 * @retval DN_ERR_NOMEM  memory ran out.
 */
dn_status_t dn_ship_out_enter(dn_ship_out_t *out, const dn_prog_t *prog, uint32_t *slot_p);

/**
 * What the caller has to send before a transfer can name a slot that was taken.
 *
 * @param[in]  room     Bytes that may follow the piece, at least 1.
 * @param[out] piece    Send this,
 * @param[out] bytes_p  with these bytes behind it,
 * @param[out] n_p      the number of these bytes.
 *
 * @retval DN_OK          nothing: the peer has the program.
 * @retval DN_INPROGRESS  send the piece, then call dn_ship_out_sent(), and ask again.
 * @retval DN_ERR_AGAIN   the peer has no room for the program until a transfer in flight leaves its slot.
 */
dn_status_t dn_ship_out_next(const dn_ship_out_t *out, uint32_t slot, size_t room, dn_ship_piece_t *piece,
                             const uint8_t **bytes_p, size_t *n_p);

/** Note that the piece of dn_ship_out_next() was sent. @return 1: it was the last piece of a program; else 0. */
int dn_ship_out_sent(dn_ship_out_t *out, const dn_ship_piece_t *piece, size_t n);

/** A transfer is over: leave the slot that the transfer has taken. */
void dn_ship_out_leave(dn_ship_out_t *out, uint32_t slot);

/** Begin a new table: no transfer is in flight any more, and the peer may have forgotten all programs. */
void dn_ship_out_reset(dn_ship_out_t *out);
/** @} */

/** @name Programs of a peer that this process has */
/** @{ */

/** A program, with the number of its users. */
typedef struct dn_ship_prog {
    dn_prog_t *prog;
    uint32_t len;   /**< of its encoding */
    uint32_t users; /**< 1 for its slot, and 1 for each transfer that keeps the program */
} dn_ship_prog_t;

typedef struct dn_ship_in_slot {
    uint64_t id;
    dn_ship_prog_t *prog;
    dn_status_t status; /**< why prog is NULL */
} dn_ship_in_slot_t;

typedef struct dn_ship_in {
    dn_ship_in_slot_t slot[DN_SHIP_SLOTS];
    uint64_t bytes;         /**< encoded bytes of all programs here, and of the program that is coming */
    uint8_t *coming;        /**< encoding of the program that is coming, so far; NULL: no program is coming */
    dn_ship_piece_t expect; /**< its next piece */
} dn_ship_in_t;

/**
 * Take a piece. Piece and bytes may be anything, in memory that the peer cannot change meanwhile.
 *
 * @return 1: taken; 0: refused. A piece that is malformed, or is not the next one, changes nothing. Else the program is more than may be
 *         kept, or is no program, or there is no memory for it: it cannot be found then. In each case the caller may give the piece again,
 *         before any other piece. Only that memory is there by then can make a difference.
 */
int dn_ship_in_piece(dn_ship_in_t *in, const dn_ship_piece_t *piece, const uint8_t *bytes, size_t n);

/**
 * Find the program that a transfer names. It is valid until the next piece comes, or while a transfer keeps it.
 * @retval DN_ERR_PROTO  the program is not there, or the bytes that came were not a program.
 * @retval DN_ERR_NOMEM  there was no memory for the program.
 * Other errors as dn_prog_decode() returned them.
 */
dn_status_t dn_ship_in_find(const dn_ship_in_t *in, uint32_t slot, uint64_t id, dn_ship_prog_t **prog_p);

/** Keep a program, also when its slot goes to another program. dn_ship_in_leave() ends this. */
void dn_ship_in_keep(dn_ship_prog_t *prog);
/** @param[in] in  NULL: the table was cleared, and is gone. */
void dn_ship_in_leave(dn_ship_in_t *in, dn_ship_prog_t *prog);

/** Empty all slots. Programs that transfers keep live until these leave them. */
void dn_ship_in_clear(dn_ship_in_t *in);
/** @} */

#endif
