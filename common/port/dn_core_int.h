/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_core_int.h
 * Inside of the core processor: the messages, and the functions that both sides share. dn_core.c and dn_core_op.c are the
 * initiator's side, dn_core_serve.c is the target's. dn_core_alone.c is the part of the target's work that a device can do
 * without a call of the program.
 */
#ifndef DN_CORE_INT_H
#define DN_CORE_INT_H

#include "dn_core.h"
#include "dn_port.h"
#include "dn_sg.h"
#include "dn_ship.h"
#include "dn_xfer.h"

/** Requests to a peer that may wait for their answers at the same time. The next operation waits until some answers have come. */
#define DN_CORE_ASKED_MAX 1024
/** Answers to a peer that may wait for credit at the same time: DN_CORE_ASKED_MAX, and refusals of PUSHes that the peer has ended
 * already. A peer that asks for more breaks the rule, and is cut off. */
#define DN_CORE_ANSWERS_MAX (4 * DN_CORE_ASKED_MAX)
/** Most bytes of a message that describe blocks. */
#define DN_CORE_LIST_BYTES 512
/** Most blocks that a message describes, each by a dn_block_t. */
#define DN_CORE_BLOCKS (DN_CORE_LIST_BYTES / sizeof(dn_block_t))
/** Most blocks that a message describes in the short form: DN_CORE_NEAR. */
#define DN_CORE_NEAR_BLOCKS ((DN_CORE_LIST_BYTES - sizeof(uint64_t)) / sizeof(dn_core_near_t))
#define DN_CORE_LINE_BYTES  (DN_AOTF_LINE_MAX + sizeof(uint64_t))

/** Tags on DN_CHAN_CORE. */
enum dn_core_tag {
    DN_CORE_PUSH = 1,      /**< dn_core_request_t, blocks or dn_core_use_t, their data */
    DN_CORE_PULL = 2,      /**< dn_core_request_t, blocks or dn_core_use_t */
    DN_CORE_AMO = 3,       /**< 1 to DN_ATOMICS_MAX dn_core_amo_t */
    DN_CORE_PUSH_DONE = 4, /**< dn_core_reply_t */
    DN_CORE_PULL_DATA = 5, /**< dn_core_reply_t, data */
    DN_CORE_AMO_DONE = 6,  /**< for each operation a dn_core_reply_t, off is the old value */
    DN_CORE_LINE = 7,      /**< dn_core_line_t, data */
    DN_CORE_PROG = 8,      /**< dn_ship_piece_t, bytes of the program */
    DN_CORE_LINES = 9,     /**< dn_core_lines_t, data */
};

enum {
    DN_CORE_LAST = 1 << 0,   /**< last message of a PUSH: the target replies */
    DN_CORE_STATUS = 1 << 1, /**< the target stores the status word before its reply */
    DN_CORE_USE = 1 << 2,    /**< a dn_core_use_t follows, no blocks */
    DN_CORE_FIRST = 1 << 3,  /**< first message of a PUSH or PULL */
    DN_CORE_NEAR = 1 << 4, /**< the short form: a base of 8 bytes and dn_core_near_t follow, no dn_block_t */
};

typedef struct dn_core_request {
    uint64_t id; /**< handle of the operation at the initiator; replies name it */
    uint32_t sid;
    uint32_t sid_generation;
    uint32_t blocks; /**< blocks that follow, placed in the segment; DN_CORE_USE: the program's slot */
    uint32_t flags;
    uint64_t off; /**< PULL: place of these blocks in the byte stream; PUSH: the status word's offset */
    uint64_t value;
} dn_core_request_t;

/** A block that lies less than 64 KiB behind the base of its message. */
typedef struct dn_core_near {
    uint16_t at; /**< bytes from the base to the block */
    uint16_t len;
} dn_core_near_t;

/** The remote side of a transfer: a use of a program that the target has. */
typedef struct dn_core_use {
    uint64_t id; /**< id of the program at the initiator */
    uint64_t count;
    int64_t extent;
    uint64_t roff; /**< offset of the use's origin in the segment */
    uint64_t len;  /**< bytes of the whole transfer */
    uint64_t at;   /**< PUSH: place of the data that follow, in the byte stream; PULL: 0 */
} dn_core_use_t;

typedef struct dn_core_amo {
    uint64_t id;
    uint32_t sid;
    uint32_t sid_generation;
    uint64_t roff;
    uint64_t operand;
    uint64_t compare;
    uint32_t op;
    uint32_t width;
} dn_core_amo_t;

typedef struct dn_core_reply {
    uint64_t id;
    int32_t status;
    uint32_t flags; /**< DN_CORE_USE, as in the request */
    uint64_t off;   /**< PULL: place of the data in the byte stream */
    uint64_t len;   /**< PULL: bytes that this reply settles; with an error no data follow */
} dn_core_reply_t;

/** A line for the LLCM; its data follow. */
typedef struct dn_core_line {
    uint64_t off;
    uint64_t flag;
} dn_core_line_t;

/** Several lines of a ring; their data follow. */
typedef struct dn_core_lines {
    dn_lines_t ring;
    uint64_t flag; /**< flag of the first line */
} dn_core_lines_t;

_Static_assert(sizeof(dn_core_lines_t) == 32, "peers agree on the layout");
_Static_assert(sizeof(dn_core_amo_t) <= 56, "an atomic operation is one line");
_Static_assert(sizeof(dn_core_request_t) == 40, "peers agree on the layout");
_Static_assert(sizeof(dn_core_use_t) == 48, "peers agree on the layout");
_Static_assert(sizeof(dn_core_near_t) == 4, "peers agree on the layout");

/** Bytes that describe the remote side in a request. They follow the request. */
static inline size_t dn_core_side_bytes(const dn_core_request_t *request)
{
    if (0 != (request->flags & DN_CORE_USE)) {
        return sizeof(dn_core_use_t);
    }
    return 0 != (request->flags & DN_CORE_NEAR)
               ? sizeof(uint64_t) + (size_t) request->blocks * sizeof(dn_core_near_t)
               : (size_t) request->blocks * sizeof(dn_block_t);
}

/** @name An operation that this process started (dn_core_op.c) */
/** @{ */
enum dn_core_kind { DN_CORE_OP_PUSH, DN_CORE_OP_PULL, DN_CORE_OP_AMO };

typedef struct dn_core_op {
    dn_queue_item_t item; /**< first: in dn_core_peer_t::operations */
    dn_peer_base_t *peer;
    enum dn_core_kind kind;
    uint64_t id;
    int waits;      /**< not 0: the operation is in dn_core_peer_t::operations */
    int advances;   /**< not 0: dn_core_advance() sends it; if the peer is lost then, its caller ends it */
    uint32_t asked; /**< its share of dn_core_peer_t::asked */
    dn_status_t status;
    dn_key_t key;
    dn_xfer_t xfer;           /**< PUSH, PULL */
    dn_xfer_sides_t sides;    /**< the checked sides of xfer */
    int ships;                /**< not 0: the remote side is a use of a program that is shipped */
    uint32_t slot;            /**< slot of its program at the peer; DN_SHIP_SLOTS: not taken yet */
    dn_sg_cursor_t local_at;  /**< PUSH: next byte to send */
    dn_sg_cursor_t remote_at; /**< next byte to send or to ask for; if it ships, in the byte stream */
    uint64_t settled;         /**< PULL: bytes that have come or failed */
    dn_amo_t amo;
} dn_core_op_t;

/** Make an operation towards a peer: zeros, but for its handle. NULL: memory ran out. */
dn_core_op_t *dn_core_op_new(dn_core_t *core, dn_peer_base_t *peer, enum dn_core_kind kind);
/** Find the operation that a reply from this peer names, or NULL. */
dn_core_op_t *dn_core_op_find(const dn_core_t *core, const dn_peer_base_t *src, uint64_t id,
                              enum dn_core_kind kind);
/** Have an operation wait behind the other operations to its peer: for credit, or for answers to earlier requests. */
void dn_core_wait(dn_core_t *core, dn_core_op_t *op);
void dn_core_wait_no_more(dn_core_t *core, dn_core_op_t *op);
/** Take all operations to a peer out of those that wait. */
void dn_core_stop_sending(dn_core_t *core, dn_peer_base_t *peer);
/** May so many more requests go to a peer? */
int dn_core_may_ask(const dn_peer_base_t *peer, size_t n);
/** Count a request of this operation that has gone to its peer. */
void dn_core_ask(dn_core_op_t *op);
/** No answer for this operation is expected any more: its requests do not count against the limit. */
void dn_core_asks_nothing(dn_core_op_t *op);
/** The operation does not need its program at the peer any more. */
void dn_core_leave_program(dn_core_op_t *op);
/** Free an operation and its handle. */
void dn_core_op_drop(dn_core_t *core, dn_core_op_t *op);
/** End an operation: write its status words, free it, signal its completion. */
void dn_core_finish(dn_port_t *port, dn_core_op_t *op, dn_status_t status);
/** @} */

/** Is this a line of an LLCM of @p llcm_len bytes? */
static inline int dn_core_line_fits(uint64_t off, size_t len, uint64_t llcm_len)
{
    return DN_AOTF_LINE_MAX >= len && 0 == off % DN_CORE_LINE_BYTES && off < llcm_len
           && DN_CORE_LINE_BYTES <= llcm_len - off;
}

/** Are these lines of a ring in an LLCM of @p llcm_len bytes? */
static inline int dn_core_lines_fit(const dn_lines_t *ring, size_t len, uint64_t llcm_len)
{
    return 0 != ring->piece && DN_AOTF_LINE_MAX >= ring->piece && ring->at < ring->depth
           && len <= (size_t) ring->depth * ring->piece && 0 == ring->off % DN_CORE_LINE_BYTES
           && ring->off < llcm_len && ring->depth <= (llcm_len - ring->off) / DN_CORE_LINE_BYTES;
}

/** Bytes of a transfer, from @p off on, that go to a peer in one message: at most @p most. */
static inline uint64_t dn_core_piece(const dn_peer_base_t *peer, uint64_t off, uint64_t most)
{
    return 0 == peer->cut || most < peer->cut ? most : most - (off + most) % peer->cut;
}

/** The remote side of a transfer, as a message describes it to the target. */
typedef struct dn_core_side {
    uint8_t *memory; /**< of the segment */
    dn_sg_t sg;      /**< describes `block`, or `use` */
    dn_block_t block[DN_CORE_NEAR_BLOCKS];
    dn_prog_use_t use;
    dn_ship_prog_t *prog; /**< the program of `use`, which is kept; NULL: there is none */
    uint64_t base;        /**< offset in the segment that `sg` starts from, in bytes */
    uint64_t total;       /**< bytes of the whole side */
    uint64_t at;          /**< bytes of the side before the data of this message */
    size_t len;           /**< bytes of the message that describe the side */
} dn_core_side_t;

/** @name The effects of a message on the memory of this process, in a handler or in a device (dn_core_alone.c) */
/** @{ */
/** Store a line. @return 0: the message is malformed. */
int dn_core_put_line(uint8_t *llcm, uint64_t llcm_len, const uint8_t *bytes, size_t len);
/** Store lines of a ring. @return 0: the message is malformed. */
int dn_core_put_lines(uint8_t *llcm, uint64_t llcm_len, const uint8_t *bytes, size_t len);
/** Store the status word of a PUSH, if it has one, after its data. DN_ERR_RANGE: the word is not in the LLCM. */
dn_status_t dn_core_put_status(uint8_t *llcm, uint64_t llcm_len, const dn_core_request_t *request);
/** How many atomic operations are in a message of this length? @return 0: the message is malformed. */
static inline size_t dn_core_amos(size_t len)
{
    const size_t n = len / sizeof(dn_core_amo_t);

    return n * sizeof(dn_core_amo_t) == len && DN_ATOMICS_MAX >= n ? n : 0;
}
/** Run an atomic operation in a segment. @param[out] old  The value before. */
dn_status_t dn_core_run(uint8_t *base, uint64_t len, const dn_core_amo_t *message, uint64_t *old);
/** @} */

/** Copy the description of a side out of a message: blocks, or a use, whose program is kept until dn_core_end_side(). The caller finds the
 * memory of the segment. DN_ERR_PROTO: the message is malformed, or the program was not shipped. */
dn_status_t dn_core_read_layout(const dn_peer_base_t *src, dn_core_side_t *side,
                                const dn_core_request_t *request, const uint8_t *bytes, size_t len);
/** Leave the program of a side, if it keeps one. */
void dn_core_end_side(const dn_peer_base_t *src, dn_core_side_t *side);
/** Leave a program of a peer that a side has kept. */
void dn_core_leave_its(const dn_peer_base_t *src, dn_ship_prog_t *prog);
/**
 * Take a message with a piece of a program.
 * @param[in] alone  Not 0: the caller is dn_core_alone(), without the port's lock.
 * @retval DN_ERR_PROTO  the piece is refused.
 * @retval DN_ERR_NOMEM  the peer has no table, and there is no memory for one, or @p alone and the peer is lost.
 */
dn_status_t dn_core_take_piece(dn_peer_base_t *src, const uint8_t *bytes, size_t len, int alone);

/** Start a walk through a side that has been checked. */
static inline void dn_core_start_side(dn_sg_cursor_t *cursor, const dn_core_side_t *side, const dn_sg_t *sg)
{
    dn_sg_start(cursor, sg, (uintptr_t) side->memory + side->base, side->total);
}

/** Do so many bytes of data belong to a message of a PUSH? */
static inline int dn_core_data_fit(const dn_core_request_t *request, const dn_core_side_t *side,
                                   uint64_t data)
{
    return 0 != (request->flags & DN_CORE_USE) ? data <= side->total - side->at : data == side->total;
}

/** Store the data of a message of a PUSH. The side has been checked. */
static inline void dn_core_put_data(const dn_core_side_t *side, const uint8_t *bytes, uint64_t len)
{
    dn_sg_cursor_t to;

    dn_core_start_side(&to, side, &side->sg);
    dn_sg_skip(&to, side->at);
    dn_sg_scatter(&to, bytes, len);
}

/** Serve a message of an initiator. @return 0: the message is malformed, or a line that the device does not let in. */
int dn_core_serve(dn_port_t *port, dn_peer_base_t *src, unsigned tag, const uint8_t *bytes, size_t len);

/** Send the answers that wait for credit at the target. @return answers that are complete. */
int dn_core_serve_progress(dn_port_t *port);

/** Drop the answers to a peer. */
void dn_core_serve_lost(dn_core_t *core, dn_peer_base_t *peer);
/** The peer of a queue of answers that is not empty. */
dn_peer_base_t *dn_core_answering(dn_queue_t *queue);

#endif
