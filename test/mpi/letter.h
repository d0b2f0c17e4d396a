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

/** Of libmca_common_dimmnet: the port that the components use. */
int dn_ompi_open(dn_port_t **port_p);
void dn_ompi_close(void);

enum { VICTIM, ATTACKER, BODY = 600, ADDRESS_TAG = 1, DONE_TAG = 2 };

/** Of osc_dimmnet_message.h. */
enum { ACCUMULATE = 1, PROGRAM, ANSWER, LOCK, GRANT, UNLOCK, POST, COMPLETE, FIND, TAGS };
enum { FETCHES = 1, BY_PROGRAM = 2, COMPARES = 4, EXCLUSIVELY = 8 };
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
} head_t;
_Static_assert(72 == sizeof(head_t), "the layout of osc_head_t");

typedef struct answer {
    uint64_t task;
    uint64_t off;
    int32_t error;
    uint32_t pad;
} answer_t;
_Static_assert(24 == sizeof(answer_t), "the layout of osc_answer_t");

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
