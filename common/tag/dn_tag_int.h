/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tag_int.h
 * Inside of two-sided messages: the layout of the messages of the protocol, and the functions that the files below share.
 *
 *   dn_tag.c           engines, peers, handles; waiting requests are tried again
 *   dn_tag_send.c      the sender's side
 *   dn_tag_flow.c      messages whose bytes follow without being asked for
 *   dn_tag_recv.c      the receiver's side: receives are started and cancelled; messages are probed; a matched message is fetched
 *   dn_tag_arrive.c    messages are read, matched or kept
 *   dn_tag_name.c      contexts that have a name
 *   dn_tag_room.c      memory of kept messages
 *   dn_tag_announce.c  the receiver comes first: announced receives
 */
#ifndef DN_TAG_INT_H
#define DN_TAG_INT_H

#include "dn_atomic.h"
#include "dn_clock.h"
#include "dn_device.h"
#include "dn_tag.h"
#include "dn_turn.h"

#include <string.h>
#include <time.h>
#if defined(__SANITIZE_THREAD__)
#    include <sanitizer/tsan_interface.h>
#endif

/** @name Layout of the messages of the protocol */
/** @{ */
typedef struct dn_tag_rts {
    dn_tag_head_t head;
    uint64_t request; /**< handle at the sender */
    uint64_t len;
    uint64_t left; /**< when this message left, in ns of the sender's clock */
    dn_tag_cross_t cross;
    dn_key_t key; /**< of the sender's memory, DN_TAG_RTS only */
} dn_tag_rts_t;

typedef struct dn_tag_cts {
    uint64_t request;  /**< handle at the sender */
    uint64_t receiver; /**< handle at the receiver, for DN_TAG_FRAG */
    uint64_t len;      /**< bytes wanted */
} dn_tag_cts_t;

/** Bytes of the head of a piece: one line. So the data of the piece begins at the start of a line, where copies are fast. */
#define DN_TAG_PIECE_HEAD 64u

/** The length of a piece is a multiple of this: so a piece seldom cuts a block of a derived type, or a cache line. */
#define DN_TAG_PIECE_UNIT 512

typedef struct dn_tag_frag {
    uint64_t receiver; /**< handle at the receiver; DN_HANDLE_NONE: the message that flows */
    uint8_t pad[DN_TAG_PIECE_HEAD - sizeof(uint64_t)];
} dn_tag_frag_t;

/** The head of the first piece of a message that flows. */
typedef struct dn_tag_flow {
    dn_tag_head_t head;
    uint64_t len;  /**< of the whole message */
    uint64_t left; /**< as dn_tag_rts_t::left; 0: no clock was read */
    dn_tag_cross_t cross;
    uint8_t pad[DN_TAG_PIECE_HEAD - sizeof(dn_tag_head_t) - 2 * sizeof(uint64_t) - sizeof(dn_tag_cross_t)];
} dn_tag_flow_t;

typedef struct dn_tag_takes {
    uint64_t receiver; /**< handle at the receiver */
    uint64_t request;  /**< handle at the sender */
    uint64_t len;
    uint64_t left; /**< as dn_tag_rts_t::left */
} dn_tag_takes_t;

typedef struct dn_tag_pushed {
    uint64_t receiver; /**< handle at the receiver */
    uint64_t done;     /**< 0: the bytes are to be asked for */
} dn_tag_pushed_t;

typedef struct dn_tag_named {
    dn_tag_head_t head; /**< context: the sender's number */
    uint64_t word[2];   /**< the name */
} dn_tag_named_t;
/** @} */

/** A kept message: no receive has taken it yet. Its data follows, where data came with the message or flows. */
struct dn_tag_msg {
    dn_match_msg_t match;
    enum dn_tag_kind kind;
    dn_tag_peer_t *peer; /**< the sender; NULL: it was left before the whole message came */
    uint64_t request;    /**< handle at the sender; DN_TAG_EAGER: DN_HANDLE_NONE */
    dn_tag_cross_t cross;
    dn_key_t key;
    size_t len;         /**< of the whole message */
    unsigned room;      /**< size of its memory: see dn_tag_room.c */
    dn_tag_msg_t *idle; /**< after dn_tag_room_put(): the next idle memory of its size */
    uint8_t data[];
};

/** A message that has arrived, as dn_tag_read() has read it. */
typedef struct dn_tag_arrival {
    enum dn_tag_kind kind;
    dn_tag_head_t head;
    uint64_t request;
    uint64_t left;        /**< dn_tag_rts_t::left; 0: the message was kept, is eager, or has no time */
    dn_tag_cross_t cross; /**< not of DN_TAG_EAGER and DN_TAG_SYNC */
    dn_key_t key;         /**< DN_TAG_RTS only */
    size_t len;           /**< of the whole message */
    const uint8_t *data;  /**< the whole data; NULL: it is not here yet */
} dn_tag_arrival_t;

static inline void dn_tag_lock(dn_tag_t *tag)
{
    if (tag->config.threads) {
        pthread_mutex_lock(&tag->lock);
    }
}

static inline void dn_tag_unlock(dn_tag_t *tag)
{
    if (tag->config.threads) {
        pthread_mutex_unlock(&tag->lock);
    }
}

/** @name For a thread sanitizer
 * All that a thread does before a message leaves comes before all that any thread does after its answer has come. The sanitizer does
 * not see this order, which goes through another process, or through a second mapping of the same memory.
 */
/** @{ */
static inline void dn_tag_leaves(dn_tag_t *tag)
{
#if defined(__SANITIZE_THREAD__)
    __tsan_release(tag);
#endif
}

static inline void dn_tag_comes(dn_tag_t *tag)
{
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(tag);
#endif
}
/** @} */

/** For each state, the states that may follow (dn_turn.h). */
extern const uint32_t dn_tag_turns[];

/** Change what a request waits for. */
static inline void dn_tag_turn(dn_tag_req_t *req, enum dn_tag_state to)
{
    dn_turn_check("a request", dn_tag_turns, req->state, to);
    /* Pairs with the load in dn_tag_state_of(). */
    dn_store_relaxed_u32((uint32_t *) &req->state, to);
}

/** What a request waits for. Another thread may change the state meanwhile. But a receive becomes POSTED, and leaves that state,
 * only under the lock. */
static inline enum dn_tag_state dn_tag_state_of(const dn_tag_req_t *req)
{
    return (enum dn_tag_state) dn_load_relaxed_u32((const uint32_t *) &req->state);
}

/** Count a transfer of a peer's request that begins (1) or has ended (-1). The end is counted last: the peer is not freed before. */
static inline void dn_tag_transfers(dn_tag_peer_t *peer, int more)
{
    (void) dn_fetch_add_acq_rel(&peer->transfers, (uint32_t) more);
}

/** A message begins to wait for a peer, or a message that has waited, or a part of it, has left, or has been answered. */
static inline void dn_tag_mark(dn_tag_peer_t *peer)
{
    dn_patience_mark(&peer->tag->patience, &peer->mark);
}

/** Complete a request: it belongs to the caller again. */
static inline void dn_tag_complete(dn_tag_req_t *req, dn_status_t status)
{
    req->status = status;
    dn_tag_turn(req, DN_TAG_COMPLETE);
    req->complete(req);
}

/** The request that an item belongs to. @param[in] item  Not NULL. */
static inline dn_tag_req_t *dn_tag_req_of(dn_queue_item_t *item)
{
    return (dn_tag_req_t *) ((char *) item - offsetof(dn_tag_req_t, item));
}

/** @name dn_tag.c */
/** @{ */
/** The engine's part of a peer. The lock is held. NULL: memory ran out. */
dn_tag_peer_t *dn_tag_peer_of(dn_tag_t *tag, dn_peer_t *peer);
/**
 * Borrow the device's part of a peer that another thread may find lost. Where no owner has joined the peer, the device frees its part of a
 * lost peer, with the port's lock held. So this takes that lock where it is needed. @return whether the port's lock is held now.
 */
static inline bool dn_tag_borrow(const dn_tag_peer_t *peer)
{
    /* A joined peer stays until dn_tag_leave(). */
    const bool borrows =
        __builtin_expect(peer->tag->config.threads, 0) && NULL == dn_load_relaxed(&peer->user);

    if (borrows) {
        dn_port_lock(peer->tag->port);
    }
    return borrows;
}
static inline void dn_tag_give_back(const dn_tag_peer_t *peer, bool borrowed)
{
    if (borrowed) {
        dn_port_unlock(peer->tag->port);
    }
}
/** What tells the receiver of a long message whether it crosses the receiver's own. */
static inline dn_tag_cross_t dn_tag_cross(const dn_tag_req_t *req)
{
    return (dn_tag_cross_t){.number = req->number, .heard = dn_load_relaxed(&req->peer->heard)};
}
/** Long messages of a peer that this process takes in another order than they were sent, at most. Where there are more, the guess whether
 * messages cross may be wrong. */
#define DN_TAG_LONGS_AHEAD 256u

/** This process begins to take the bytes of a long message. Messages may be taken in another order than they were sent: the one that was
 * sent last counts. The difference wraps. A number that is further behind than DN_TAG_LONGS_AHEAD is that of a peer that has begun anew. A short
 * message that was held back has the number of the long one before it. */
static inline void dn_tag_hear(dn_tag_peer_t *peer, uint32_t number)
{
    if (DN_TAG_LONGS_AHEAD < dn_load_relaxed(&peer->heard) - number) {
        dn_store_relaxed(&peer->heard, number);
    }
}
/** Send a message of the protocol. */
static inline dn_status_t dn_tag_tell(const dn_tag_peer_t *peer, enum dn_tag_kind kind, const void *message,
                                      size_t len)
{
    const bool borrowed = dn_tag_borrow(peer);

    dn_tag_leaves(peer->tag);
    const dn_status_t status = dn_botf(peer->peer, peer->tag->channel, kind, message, len, NULL, 0);
    dn_tag_give_back(peer, borrowed);
    return status;
}
/** A peer is lost that a request needs: tell the owner once. */
void dn_tag_lost(dn_tag_peer_t *peer);
/** A message to a peer can never leave, and a request here or there waits for it: tell the owner why. @param[in] status  An error, but not
 * DN_ERR_AGAIN. */
void dn_tag_stuck(dn_tag_peer_t *peer, dn_status_t status);
/** Give a request a handle. @return 0: memory ran out. */
int dn_tag_handle_add(dn_tag_req_t *req);
void dn_tag_handle_drop(dn_tag_req_t *req);
/** The request of a handle that @p peer has sent. NULL: the handle names no request of that peer in the state @p state. */
dn_tag_req_t *dn_tag_handle_find(dn_tag_t *tag, uint64_t handle, const dn_peer_t *peer,
                                 enum dn_tag_state state);
/** Put a request into dn_tag_t::busy: dn_tag_pump() tries it again. */
void dn_tag_busy(dn_tag_req_t *req);
/** @} */

/** @name dn_tag_send.c */
/** @{ */
/** Send a name, which is the memory of the request. @return as dn_tag_send(). */
dn_status_t dn_tag_send_name(dn_tag_req_t *req, dn_tag_peer_t *peer, uint32_t context);
/** Free the segment of a send: the receiver no longer needs the memory. */
void dn_tag_unregister(dn_tag_req_t *req);
/** Complete a send. */
void dn_tag_send_finish(dn_tag_req_t *req);
/** Send the messages that wait for room in a peer's ring. @return messages sent. */
int dn_tag_send_waiting(dn_tag_peer_t *peer);
/** Send a piece: the next bytes of a request behind a head of DN_TAG_PIECE_HEAD bytes. */
dn_status_t dn_tag_send_piece(dn_tag_req_t *req, enum dn_tag_kind kind, const void *head);
/** Send the next pieces. @return true: the request is complete. */
bool dn_tag_send_pieces(dn_tag_req_t *req, int *events);
/** Read the messages of a receiver before or after a send, unless this process does so already: further up in this thread, or in another
 * thread. `heeding` orders no other data, so any memory order would do. */
void dn_tag_listen(dn_tag_peer_t *peer);
/** Handle DN_TAG_CTS and DN_TAG_DONE, for which a send waits. */
void dn_tag_got_cts(dn_tag_t *tag, const dn_peer_t *src, const dn_tag_cts_t *cts);
void dn_tag_got_done(dn_tag_t *tag, const dn_peer_t *src, uint64_t handle);
/** @} */

/** @name dn_tag_recv.c */
/** @{ */
/** Complete a receive with req->status: all its bytes are here, or will not come. */
static inline void dn_tag_recv_finish(dn_tag_req_t *req)
{
    dn_tag_complete(req, req->status);
}

/** Put bytes into a receive's memory, behind the bytes that came before. The caller has cut off bytes that find no room. */
static inline void dn_tag_fill(dn_tag_req_t *req, const void *data, size_t len)
{
    if (NULL != req->buffer) {
        dn_copy(req->buffer + req->done, data, len);
    } else if (req->walks) {
        (void) dn_prog_scatter(&req->cursor, data, len);
    } else if (0 != len) {
        req->tag->config.unpack(req->layout, data, len);
    }
    req->done += len;
}

/** Set the results of a receive whose message has @p head and @p len bytes. @return bytes that the receive takes. */
static inline size_t dn_tag_match(dn_tag_req_t *req, const dn_tag_head_t head, size_t len)
{
    req->head = head;
    req->size = len;
    req->status = DN_OK;
    if (__builtin_expect(len > req->len, 0)) {
        req->status = DN_ERR_TRUNC;
        return req->len;
    }
    return len;
}

/** As dn_tag_match(), where the bytes come later, or not all at once. */
static inline void dn_tag_expect(dn_tag_req_t *req, const dn_tag_head_t head, size_t len)
{
    req->wanted = dn_tag_match(req, head, len);
    req->done = 0;
}

/** The bytes of a receive's message are here: learn the cost of the way by which they came. */
void dn_tag_learn_way(dn_tag_req_t *req);
/** The rest of dn_tag_deliver(), for a message that flows or whose sender waits for an answer. */
void dn_tag_deliver_waiting(dn_tag_req_t *req, const dn_tag_arrival_t *arrival, dn_tag_peer_t *peer);
/** End the announcement of a receive: it is matched otherwise, cancelled, or its peer is left. */
void dn_tag_announce_end(dn_tag_req_t *req);

/**
 * A receive has its message. If no other receive is posted, the next message would be kept, and copied once more. So the next message
 * stays in the ring until this process polls again: the program may post a receive before. A sender that reads the receiver's wishes
 * (dn_tag_heed()) reads on, as these may lie behind. The lock is held.
 */
static inline void dn_tag_let_rest_lie(const dn_tag_peer_t *peer)
{
    if (0 == dn_match_posted_count(&peer->tag->match) && !dn_load_relaxed(&peer->tag->heeding)) {
        dn_recv_enough(peer->peer);
    }
}

/** Receive a matched eager message of @p len bytes. */
static inline void dn_tag_deliver_eager(dn_tag_req_t *req, const dn_tag_head_t head, const uint8_t *data,
                                        size_t len)
{
    if (__builtin_expect(DN_HANDLE_NONE != req->handle, 0)) {
        dn_tag_announce_end(req);
    }
    const size_t wanted = dn_tag_match(req, head, len);
    if (__builtin_expect(NULL != req->buffer && DN_TAG_SHORT >= wanted, 1)) {
        dn_copy_inline(req->buffer, data, wanted);
    } else {
        req->done = 0;
        dn_tag_fill(req, data, wanted);
    }
    dn_tag_recv_finish(req);
}

/** Receive a matched message. */
static inline void dn_tag_deliver(dn_tag_req_t *req, const dn_tag_arrival_t *arrival, dn_tag_peer_t *peer)
{
    if (DN_TAG_EAGER == arrival->kind) {
        dn_tag_deliver_eager(req, arrival->head, arrival->data, arrival->len);
        return;
    }
    if (__builtin_expect(DN_HANDLE_NONE != req->handle, 0)) {
        dn_tag_announce_end(req);
    }
    dn_tag_expect(req, arrival->head, arrival->len);
    dn_tag_deliver_waiting(req, arrival, peer);
}
/** Handle DN_TAG_FRAG, DN_TAG_TAKES and DN_TAG_PUSHED, for which a receive waits. */
void dn_tag_got_frag(dn_tag_t *tag, const dn_peer_t *src, uint64_t handle, const uint8_t *data, size_t len);
void dn_tag_got_takes(dn_tag_t *tag, const dn_peer_t *src, const dn_tag_takes_t *takes);
void dn_tag_got_pushed(dn_tag_t *tag, const dn_peer_t *src, const dn_tag_pushed_t *pushed);
/** Try again the message or the PULL for which a receive waits for room. @return true: the receive does not wait for room any more. */
bool dn_tag_recv_again(dn_tag_req_t *req);
/** @} */

/** @name dn_tag_flow.c */
/** @{ */
/** Begin to send a message that flows. @return false: it does not flow, and is to be sent another way. */
bool dn_tag_flow(dn_tag_req_t *req);
/** The last piece of the message that flows to a peer has left: another message may flow. */
static inline void dn_tag_flow_end(dn_tag_peer_t *peer)
{
    dn_store_release_u32(&peer->flowing, 0);
}
/** Bytes of each piece of a message that flows to a peer; the last piece may be shorter. All pieces of a message are of about the same
 * length, since a short one would take many lines of the ring for its bytes. */
size_t dn_tag_flow_piece(const dn_tag_peer_t *peer, size_t len);
/** Handle DN_TAG_FLOW, and DN_TAG_FRAG of a message that flows. @return false: malformed. */
bool dn_tag_got_flow(dn_tag_t *tag, dn_peer_t *src, const uint8_t *data, size_t len);
bool dn_tag_got_flow_frag(dn_tag_t *tag, const dn_peer_t *src, const uint8_t *data, size_t len);
/** Have a matched receive wait for the message that flows from a peer. The lock is held. */
void dn_tag_flow_await(dn_tag_req_t *req, dn_tag_peer_t *peer);
/** The rest of the message that flows from a peer does not come. The lock is held. @return the receive that waits for it, or NULL. */
dn_tag_req_t *dn_tag_flow_abandon(dn_tag_peer_t *peer);
/** @} */

/** @name dn_tag_arrive.c */
/** @{ */
/** Find the receive for a message, or keep the message. */
void dn_tag_arrive(dn_tag_t *tag, dn_peer_t *src, const dn_tag_arrival_t *arrival);
/** dn_handler_fn_t of the channel; arg is the engine. */
void dn_tag_receive(dn_peer_t *src, unsigned kind, const void *data, size_t len, void *arg);
/** Note that dn_tag_peer_t::our_wish has changed, and the sender is to be told. The lock is held. */
void dn_tag_wish_changed(dn_tag_peer_t *peer);
/** Tell a sender dn_tag_peer_t::our_wish. The caller holds `pump`. @return false: no room now. */
bool dn_tag_tell_wish(dn_tag_peer_t *peer);
/** Tell a sender our_wish now, if this is due. A thread may read or receive messages for long before it calls dn_tag_pump(). Wishes leave
 * in order, since they are sent only with `pump` held. If another thread holds `pump`, that thread or the next dn_tag_pump() tells. */
void dn_tag_say_wish(dn_tag_peer_t *peer);
/** Take a kept message out of matching. The lock is held. */
void dn_tag_take_kept(dn_tag_msg_t *msg);
/** Drop kept messages. @param[in] context  Of this context; NULL: of all. @param[in] peer  Of this sender; NULL: of all.
 * @param[in] answered  true: only messages that are not eager, which still need their sender. */
void dn_tag_forget_kept(dn_tag_t *tag, const uint32_t *context, const dn_tag_peer_t *peer, bool answered);
/** @} */

/** @name dn_tag_name.c */
/** @{ */
/** Is @p context, of an envelope, a sender's number of a context that has a name? */
static inline bool dn_tag_is_abroad(uint32_t context)
{
    return (DN_TAG_NAMED | DN_TAG_ABROAD) == (context & (DN_TAG_NAMED | DN_TAG_ABROAD));
}
/** Handle DN_TAG_NAME. @return false: malformed. */
bool dn_tag_got_name(dn_tag_t *tag, dn_peer_t *src, const dn_tag_named_t *named);
/** Turn a sender's number in an envelope into this process's number. Numbers without DN_TAG_NAMED stay. @return false: the sender has
 * told no name for its number. */
bool dn_tag_translate(dn_tag_t *tag, const dn_peer_t *src, dn_tag_head_t *head);
/** Free the numbers of a peer, which is about to be freed; free the names of an engine, which is about to end. */
void dn_tag_names_leave(dn_tag_peer_t *peer);
void dn_tag_names_close(dn_tag_t *tag);
/** @} */

/** @name dn_tag_room.c */
/** @{ */
/** Memory for a message that is to be kept, with @p len bytes of data. The lock is held. NULL: memory ran out. */
dn_tag_msg_t *dn_tag_room_get(dn_tag_t *tag, size_t len);
/** Give the memory of a kept message back. The lock is held. @param[in] msg  May be NULL. */
void dn_tag_room_put(dn_tag_t *tag, dn_tag_msg_t *msg);
/** Free all memory that was given back: the engine ends. */
void dn_tag_room_close(dn_tag_t *tag);
/** @} */

/** @name dn_tag_announce.c */
/** @{ */
/** A receive of more than dn_tag_config_t::limit.announce_min bytes was just posted: announce the receive to its source, where this is
 * allowed and worth the message. There are no threads. @param[in] peer  The source; NULL: no single source, or the receiver blocks. */
void dn_tag_announce(dn_tag_req_t *req, dn_tag_peer_t *peer);
/** Note that this process looks at a long message at @p now. The lock is held, or there are no threads. @return when this process's stay
 * in the library began. */
uint64_t dn_tag_stay(dn_tag_t *tag, uint64_t now);
/** The message of a posted receive left its sender at @p left, and this process looks at it now: note in @p peer whether this process
 * lets messages of the peer lie. */
void dn_tag_look_back(dn_tag_req_t *req, dn_tag_peer_t *peer, uint64_t left);
/** Take an announcement back. @return false: the sender has taken it, and its message is on the way. */
bool dn_tag_announce_cancel(dn_tag_req_t *req);
/** PUSH a message if its receive has been announced. @return false: not PUSHed, and to be sent another way. */
bool dn_tag_push(dn_tag_req_t *req);
/** Try again the PUSH, or DN_TAG_PUSHED, for which a send waits for room. @return true: the send does not wait for room any more. */
bool dn_tag_push_again(dn_tag_req_t *req);
/** Take the claim of a receive's announcement: no sender can take it from now on. */
void dn_tag_claim_end(dn_tag_req_t *req);
/** Handle DN_TAG_ANNOUNCE. */
void dn_tag_got_announce(dn_tag_t *tag, dn_peer_t *src, const dn_tag_announce_t *announce);
/** Free the segment of the claims. */
void dn_tag_claims_close(dn_tag_t *tag);
/** @} */

#endif
