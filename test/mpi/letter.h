/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file letter.h
 * Requests to windows that tests write by hand, to be what no origin sends. They go from rank 1 to rank 0 by the port that
 * the components use.
 */
#ifndef DN_TEST_MPI_LETTER_H
#define DN_TEST_MPI_LETTER_H

#include "dimmnet.h"

/** Of dn_ompi.h, which needs headers of Open MPI's own: the port that the components use. */
enum dn_ompi_when { DN_OMPI_AHEAD_OF_MODEX, DN_OMPI_AFTER_MODEX };
int dn_ompi_open(enum dn_ompi_when when, dn_port_t **port_p);
void dn_ompi_close(void);

enum { VICTIM, ATTACKER, BODY = 600, ADDRESS_TAG = 1, DONE_TAG = 2 };

/** Of dn_rma_int.h. */
enum { ACCUMULATE = 1, LAYOUT, ANSWER, LOOK, POST, COMPLETE, FIND, PUT, GET, GOT, TAGS };
enum { FETCHES = 1, BY_PROGRAM = 2, COMPARES = 4, BY_BLOCKS = 32 };
enum { SUM, REPLACE, NO_OP, BAND, MAXLOC = 12, OPS = 14 };

typedef struct head {
    uint32_t window;
    uint32_t generation;
    int32_t rank;
    uint32_t flags;
    uint64_t task;
    uint64_t at;
    uint64_t count;
    int64_t extent;
    uint64_t skip;
    uint64_t len;
    int32_t type;
    uint32_t op;
    uint64_t layout;
    uint32_t slot;
    uint32_t pad;
} head_t;
_Static_assert(88 == sizeof(head_t), "the layout of dn_rma_head_t");

/** Before the bytes of a LAYOUT: dn_ship_piece_t. */
typedef struct piece {
    uint64_t layout;
    uint32_t slot;
    uint32_t flags;
    uint32_t len;
    uint32_t at;
} piece_t;

typedef struct answer {
    uint64_t task;
    uint64_t off;
    int32_t error;
    uint32_t pad;
} answer_t;
_Static_assert(24 == sizeof(answer_t), "the layout of dn_rma_reply_t");

typedef struct letter {
    head_t head;
    uint8_t body[BODY];
} letter_t;

/** An accumulate of two words to the first window, and all of it right. */
letter_t letter_right(void);

/** Send the first @p len bytes of a letter, or of anything. Other messages are handled meanwhile. */
void letter_send(dn_peer_t *victim, unsigned tag, const void *letter, size_t len);

/** The victim tells its address, and the attacker connects to it. */
void letter_invite(dn_port_t *port);
dn_peer_t *letter_connect(dn_port_t *port);

#endif
