/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tag.h
 * Two-sided messages: a receive takes the first message that fits it (dn_match.h), from one process or from any.
 *
 * A short message is one BOTF message, which is matched where it arrives. A long message is announced by its envelope. Once
 * the receiver has matched the envelope, the receiver PULLs the data and tells the sender that the data is there. Or the
 * receiver asks for the bytes in pieces: where memory on either side does not lie together, or where pieces are faster
 * (DIMM_Send/DIMM_Recv paper, protocol B: the sender comes first). A message of medium length may flow: where both sides share
 * memory, and this takes less time, the message comes in pieces without being asked for (dn_tag_flow.c). Where the receiver
 * comes first, the sender may PUSH at once (protocol A: dn_tag_announce.c). A message that finds no room in the peer's ring
 * waits, in order, and dn_tag_progress() tries to send it again.
 *
 * The life of a request; each arrow is one dn_tag_turn():
 *
 *   send     NEW ---> WAITS_ROOM <--> (sent) ---> COMPLETE                           an eager message
 *                                      |
 *                                      +---> WAITS_REPLY ---> COMPLETE               PULLed, or synchronous
 *                                              ^   |
 *                                              |   +--------> SENDS ---> COMPLETE    in pieces
 *                                              |
 *            NEW ---> SENDS ---> COMPLETE                                            it flows
 *
 *            NEW ---> PUSH_STARTS <--> PUSHES ---> TELLS ---> COMPLETE               the receive was announced
 *                                                    |
 *                                                    +------> WAITS_REPLY            the PUSH could not be made
 *
 *   receive  NEW ---> POSTED ---> MATCHED ---> COMPLETE                              an eager message; or a cancelled receive
 *                       |            |
 *                       |            +---> WAITS_BYTES ---> COMPLETE              it flows
 *                       |            +---> ANSWERS ---> COMPLETE                  nothing to fetch, or a synchronous message
 *                       |            +---> PULLS <--> STARTS                      STARTS waits for room, or for a poll: MATCHED ---> STARTS
 *                       |            |       |  +---> ANSWERS ---> COMPLETE
 *                       |            |       v
 *                       |            +---> ASKS <--> WAITS_BYTES ---> COMPLETE     in pieces; ASKS ---> ANSWERS: memory ran out
 *                       |                    ^
 *                       +---> IS_PUSHED -----+---> COMPLETE                        ASKS: the PUSH could not be made
 *
 * Ownership: a request, its memory and its layout are lent from dn_tag_send(), dn_tag_recv() or dn_tag_mrecv() until the
 *            request's callback is called. The engine does not touch them from then on.
 * Threads:   where the engine's configuration sets `threads`, any number of threads may use the engine at once, and one thread
 *            at a time uses a request. A matched request belongs to the thread that matched it, then to the handlers; one
 *            handler runs at a time. No message is sent, no transfer is started and no callback runs with the engine's lock
 *            held.
 * Ordering:  MPI's: where two messages of one sender fit the same receive, the receive takes the message that was sent first.
 * Errors:    the engine tells its owner of a lost peer and of a lack of memory (dn_tag_config_t). It counts and drops a
 *            malformed message.
 */
#ifndef DN_TAG_H
#define DN_TAG_H

#include "dimmnet.h"
#include "dn_atomic.h"
#include "dn_handle.h"
#include "dn_param.h"
#include "dn_patience.h"
#include "dn_prog.h"
#include "dn_queue.h"

#include <pthread.h>
#include <stdbool.h>

#include "dn_match.h"
#include "dn_pace.h"

typedef struct dn_tag dn_tag_t;
typedef struct dn_tag_peer dn_tag_peer_t;
typedef struct dn_tag_req dn_tag_req_t;
typedef struct dn_tag_msg dn_tag_msg_t;
typedef struct dn_tag_name dn_tag_name_t;
typedef struct dn_tag_alias dn_tag_alias_t;

/** What a message is: its BOTF tag. */
enum dn_tag_kind {
    DN_TAG_EAGER = 1, /**< dn_tag_head_t, data */
    DN_TAG_SYNC,      /**< dn_tag_head_t, handle of the sender's request, data; answered by DN_TAG_DONE */
    DN_TAG_RTS, /**< a long message of memory that lies together; answered by DN_TAG_CTS or DN_TAG_DONE */
    DN_TAG_RTS_PACKED, /**< as DN_TAG_RTS, without a key: memory does not lie together, or nothing is to be PULLed */
    DN_TAG_CTS,        /**< the sender is to send the bytes in pieces */
    DN_TAG_FRAG,     /**< the next bytes of a message */
    DN_TAG_DONE,     /**< handle of the sender's request, which may complete */
    DN_TAG_ANNOUNCE, /**< a receive waits for a long message */
    DN_TAG_TAKES,    /**< the sender takes an announced receive, and PUSHes its message */
    DN_TAG_PUSHED,   /**< the PUSH has ended */
    DN_TAG_WISH,     /**< what the receiver wants of the next messages */
    DN_TAG_FLOW,     /**< first bytes of a message that flows; DN_TAG_FRAG brings the others */
    DN_TAG_NAME,     /**< the name that a number of the sender stands for: dn_tag_name.c */
    DN_TAG_HOW_FAR,  /**< a word of no meaning: has the receiver read more? Answered by DN_TAG_SO_FAR */
    DN_TAG_SO_FAR,   /**< uint64_t: dn_peer_moves() at its sender */
};

/** Messages that a receiver wants a sender to hold back, because many bytes of that sender's messages wait unreceived. */
enum dn_tag_hold {
    DN_TAG_HOLDS_NONE,
    /** The sender announces messages longer than DN_TAG_HELD_MIN. After a shorter message it pauses for a moment, in which the
     * receiver may catch up. */
    DN_TAG_HOLDS_LONG,
    DN_TAG_HOLDS_ALL,
};

/** Longest data in bytes of a message that its receiver keeps, up to unexpected_limit bytes of such messages. Programs whose
 * processes first send to each other, and then receive, rely on such room. Other transports of Open MPI give such room to
 * messages of up to 4 KiB. */
#define DN_TAG_HELD_MIN 4096u

/** Contexts with this bit have a name, and come from dn_tag_name(). The engine's users agree on the numbers of all others. */
#define DN_TAG_NAMED 0x80000000u
/** Set with DN_TAG_NAMED in an envelope: the context is the sender's number, not the receiver's. */
#define DN_TAG_ABROAD 0x40000000u

/** The number that stands for a context with a name in the envelopes that this process sends. */
static inline uint32_t dn_tag_abroad(uint32_t context)
{
    return context | DN_TAG_ABROAD;
}

/** The envelope, by which a message is matched. A message of up to 40 bytes travels in one line with its envelope. */
typedef struct dn_tag_head {
    uint32_t context; /**< the communicator's in MPI; where the context has a name: dn_tag_abroad() */
    int32_t source;   /**< rank of the sender in the communicator of MPI; 0 or more */
    uint64_t tag;
} dn_tag_head_t;
_Static_assert(16 == sizeof(dn_tag_head_t), "40 bytes fit beside the envelope");

/** The bytes of an envelope as words: an envelope is copied by words. */
typedef struct dn_tag_words {
    uint64_t word[2];
} dn_tag_words_t;

static inline dn_tag_words_t dn_tag_words(const dn_tag_head_t *head)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t first = head->context | (uint64_t) (uint32_t) head->source << 32;
#else
    const uint64_t first = (uint64_t) head->context << 32 | (uint32_t) head->source;
#endif
    return (dn_tag_words_t){{first, head->tag}};
}

/** The envelope of a message. The sender may still change the bytes of the message, so each byte is read once. */
static inline dn_tag_head_t dn_tag_head_of(const void *message)
{
    dn_tag_words_t words;

    memcpy(&words, message, sizeof(words));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (dn_tag_head_t){(uint32_t) words.word[0], (int32_t) (words.word[0] >> 32), words.word[1]};
#else
    return (dn_tag_head_t){(uint32_t) (words.word[0] >> 32), (int32_t) words.word[0], words.word[1]};
#endif
}

/** What a request waits for: see the drawing above. */
enum dn_tag_state {
    DN_TAG_NEW,         /**< for nothing yet */
    DN_TAG_WAITS_ROOM,  /**< send: for room for its first message */
    DN_TAG_WAITS_REPLY, /**< send: for DN_TAG_CTS or DN_TAG_DONE */
    DN_TAG_SENDS,       /**< send: pieces are on their way */
    DN_TAG_PUSH_STARTS, /**< send: for room for the PUSH */
    DN_TAG_PUSHES,      /**< send: for the PUSH */
    DN_TAG_TELLS,       /**< send: for room for DN_TAG_PUSHED */
    DN_TAG_POSTED,      /**< receive: for a match */
    DN_TAG_MATCHED,     /**< receive: for nothing, as its message is here */
    DN_TAG_IS_PUSHED,   /**< receive: for DN_TAG_PUSHED */
    DN_TAG_STARTS,      /**< receive: for room for the PULL, or until this process polls */
    DN_TAG_PULLS,       /**< receive: for the PULL */
    DN_TAG_WAITS_BYTES, /**< receive: for DN_TAG_FRAG, asked for or not */
    DN_TAG_ANSWERS,     /**< receive: for room for its last answer */
    DN_TAG_ASKS,        /**< receive: for room for DN_TAG_CTS */
    DN_TAG_COMPLETE,
};

/** Called once, by the thread that completes the request: from dn_progress(), from dn_tag_progress(), or from the call that
 * started this request or another request. The request's results are set. The request belongs to the caller again, and may be
 * freed. */
typedef void (*dn_tag_fn_t)(dn_tag_req_t *req);

/** A send or a receive. Private, but for the fields marked "the caller's", "the user's" or "result". */
struct dn_tag_req {
    /* The fields that a short message touches stand first, and at the beginning of `posted`: a window of 64 receives is to stay
     * in the first-level cache. */
    dn_tag_fn_t complete; /**< the caller's */
    uint8_t *buffer;      /**< the user's memory when it lies together, else NULL */
    size_t len;           /**< send: bytes; receive: room */
    enum dn_tag_state state;
    dn_status_t status; /**< result: DN_OK, DN_ERR_TRUNC, DN_ERR_CANCELED, or another error */
    dn_tag_head_t head; /**< send: the envelope; receive: result, the message's envelope */
    size_t size;        /**< receive: result, bytes of the whole message, even if fewer fit */
    uint64_t handle;    /**< the handle of this request; DN_HANDLE_NONE: none yet */
    dn_tag_t *tag;
    bool walks;            /**< the memory does not lie together, and `cursor` walks it by a program */
    enum dn_tag_kind kind; /**< send: kind of its first message */
    dn_match_recv_t posted;

    size_t wanted; /**< bytes of this message that the receiver takes */
    size_t done;   /**< bytes of `wanted` that were sent or received in pieces */
    void *layout;  /**< for dn_tag_config_t's pack and unpack: memory neither together nor with a program */
    dn_tag_peer_t *peer;
    dn_queue_item_t item;  /**< in one queue at most: dn_tag_peer_t::waits, dn_tag_t::busy */
    uint64_t remote;       /**< handle of the other side's request */
    dn_segment_t *segment; /**< the registered buffer; send: or NULL; receive: only if announced */
    dn_key_t key;          /**< key of the other side's buffer */
    dn_comp_t comp;
    uint64_t *claim;      /**< receive: the word of its announcement (dn_tag_claims_t) */
    uint64_t claimed;     /**< the number that `claim` held when it was announced */
    enum dn_pace_way way; /**< receive: the way by which a long message comes */
    uint32_t number;      /**< of a long message: dn_tag_cross_t */
    uint64_t
        started; /**< receive: ns, when it was posted, later when its bytes began to come; 0: not known */
    dn_prog_cursor_t cursor; /**< the place in the program behind the first `done` bytes */
};

/** What a receiver wants of a sender from now on. */
typedef struct dn_tag_wish {
    uint32_t hold;  /**< enum dn_tag_hold */
    uint32_t flows; /**< bits of DN_PACE_FLOW_ALL: classes of length that are to flow; others are announced */
} dn_tag_wish_t;

/** Tells the receiver of a long message whether the message crosses a long message of the receiver: whether it left before its sender had
 * begun to take the receiver's last one. Both numbers begin at dn_first(), count up, and wrap. */
typedef struct dn_tag_cross {
    uint32_t number; /**< of this message among the long messages of its sender to this receiver */
    uint32_t heard;  /**< the last number of the receiver's messages that the sender has begun to take */
} dn_tag_cross_t;

/** A receive that was announced by a peer. */
typedef struct dn_tag_announce {
    uint32_t context;
    uint32_t claim; /**< index of its word in the segment of `claims` */
    uint64_t tag;
    uint64_t seen;    /**< messages that the receiver has seen of this sender */
    uint64_t number;  /**< the claim's word holds this until one side takes the claim */
    uint64_t request; /**< handle at the receiver */
    uint64_t len;     /**< room in the receive's buffer */
    dn_key_t key;     /**< of that buffer */
    dn_key_t claims;  /**< of the segment of the receiver's claims */
} dn_tag_announce_t;

/** A process that messages go to or come from. Private, but for `user`. */
struct dn_tag_peer {
    dn_peer_t *peer;
    dn_tag_t *tag;
    void *user;      /**< the owner's, of dn_tag_join(); NULL: it has sent, and is not joined yet */
    dn_fifo_t waits; /**< sends that wait for room */
    dn_tag_peer_t *next;
    dn_tag_peer_t *next_gone;
    size_t eager_limit;     /**< bytes of data in an eager message to it */
    size_t copy_limit;      /**< bytes in an eager message that is copied; a longer one is lent */
    size_t piece_max;       /**< bytes of data in a DN_TAG_FRAG to it */
    size_t kept_bytes;      /**< memory of its messages that no receive has taken yet */
    dn_tag_wish_t wish;     /**< what the peer wants of this process */
    dn_tag_wish_t our_wish; /**< what this process wants of the peer */
    uint32_t ahead; /**< bytes of long messages to it since its messages were last read: dn_tag_heed() */
    bool wish_due;  /**< our_wish has changed, and the peer has not been told */
    bool waited;    /**< do not pause for it: a pause was in vain, or cores are shared; with threads a hint */
    uint32_t lost; /**< not 0: the owner is told that it is lost, or leaves it; changed by compare-and-swap */
    bool gone;     /**< it was left: nothing goes to it any more; written with `pump` and the port's lock */
    bool kernel_copies;  /**< it is on this host; its memory is reached without its process */
    uint8_t lain;        /**< stays in a row before each of which its message lay unread, up to DN_TAG_LAIN */
    uint64_t lain_since; /**< the last of these stays, as dn_tag_t::here.since_ns */
    uint8_t looks;       /**< how often to look for its announcements before the next long messages to it */
    bool offered;        /**< `offer` is an announcement that may still be taken */
    uint64_t sent;       /**< messages put into its ring that are matched there */
    uint64_t seen;       /**< such messages from it; both counts began at dn_first() */
    dn_tag_req_t *announced; /**< the receive that is announced to it; NULL: none */
    dn_tag_announce_t offer;
    uint64_t *offer_claim; /**< the claim of `offer`, mapped */
    uint32_t transfers;    /**< PULLs and PUSHes of requests, in flight */
    uint64_t left;    /**< requests taken out of `waits`, ever; tells a thread that another took the first */
    bool cut;         /**< the port has said that it is lost */
    bool flows;       /**< messages of medium length to it may flow */
    uint32_t flowing; /**< not 0: a message flows to it, with pieces to send; set by compare-and-swap */
    uint32_t flowed; /**< messages that flowed to it since its last wish; a hint where threads send at once */
    uint32_t longs;  /**< the number of the last long message to it; dn_tag_cross_t */
    uint32_t heard;  /**< the number of its long message that this process began to take last */
    dn_patience_mark_t mark; /**< of what waits for it: dn_tag_leave() */
    uint64_t so_far;         /**< of its last DN_TAG_SO_FAR */
    struct {
        uint32_t number;     /**< dn_tag_cross_t::number */
        dn_tag_req_t *req;   /**< the receive that takes the message; NULL: none yet */
        dn_tag_msg_t *msg;   /**< its bytes, where it is kept; neither `req` nor `msg`: it is dropped */
        size_t left;         /**< bytes to come; 0: no message flows */
    } flow;                  /**< the message that flows from it */
    dn_tag_alias_t *aliases; /**< its numbers for contexts that have a name */
    dn_pace_t pace; /**< of long messages from it; last, as it is large and short messages do not touch it */
};

/** Which long receives are announced. */
enum dn_tag_announces {
    DN_TAG_ANNOUNCES_NONE,
    DN_TAG_ANNOUNCES_AWAY, /**< where this process lets messages lie, since it computes */
    DN_TAG_ANNOUNCES_ALL,
};

/** Settings of an engine, and the calls by which the engine reaches its owner. */
typedef struct dn_tag_config {
    dn_tag_limits_t limit; /**< dn_params.def's section TAG */
    int threads;           /**< not 0: several threads may use the engine at once */
    void *arg;             /**< for the calls below */
    /** Pack the next bytes of a layout. @return bytes packed. Where an element is not to be cut, these may be fewer than len,
     * but at least one element is packed; and all remaining bytes are packed where len holds them. */
    size_t (*pack)(void *layout, void *to, size_t len);
    /** Unpack the next bytes of a layout. These may end anywhere inside an element. */
    void (*unpack)(void *layout, const void *from, size_t len);
    /** Drive everything: dn_progress(), dn_tag_progress(), and all other progress of the process. */
    void (*progress)(void *arg);
    /** A peer is lost. The owner does not call dn_tag_leave() from inside of this call. @param[in] matters  Not 0: a request of
     * this process was to reach the peer, or waits for its answer; the request does not end until the peer is left. Where
     * matters is 0, and the peer was never joined (user is NULL), the peer is gone after this call. */
    void (*lost)(dn_tag_peer_t *peer, int matters, void *arg);
    /** Does a receive or a probe of this context and source take messages of this peer only? It needs the peer. Called with the engine's
     * lock held. NULL: none does. */
    int (*names)(const dn_tag_peer_t *peer, uint32_t context, int32_t source, void *arg);
    /** There is no memory for a message that has arrived, or that is to leave. Its receive would wait for ever. */
    void (*no_memory)(void *arg);
} dn_tag_config_t;

/** Words by which a sender and a receiver agree which of them has an announced buffer: see dn_tag_announce.c. */
typedef struct dn_tag_claims {
    bool tried;
    dn_segment_t *segment;
    uint64_t *word; /**< NULL: there are none */
    uint32_t next;
    uint64_t
        number; /**< of the last claim; never wraps, since a sender may keep an announcement for any time */
} dn_tag_claims_t;

/** Sizes of memory for kept messages. Memory of size 0 goes back to the C library; sizes 1 to 6 take 2 to 64 KiB of data. */
#define DN_TAG_ROOM_SIZES 7u

/** Memory that kept messages have given back: see dn_tag_room.c. */
typedef struct dn_tag_room {
    dn_tag_msg_t *idle[DN_TAG_ROOM_SIZES]; /**< memory of each size, last given back first; [0] is empty */
    size_t idle_bytes;
} dn_tag_room_t;

/** An engine. Private, but for `dropped`. */
struct dn_tag {
    dn_port_t *port;
    unsigned channel;
    dn_tag_config_t config;
    uint64_t dropped; /**< malformed messages; the owner may read it */
    pthread_mutex_t lock;
    /* protected by lock */
    dn_match_t match;
    dn_tag_room_t room;
    dn_handle_table_t handles;
    dn_tag_claims_t claims;
    struct {
        dn_tag_name_t *first;
        uint32_t last;    /**< the newest number */
        uint32_t strange; /**< names that only peers have said, and no dn_tag_name() of this process */
    } names;
    dn_tag_peer_t *peers;
    dn_tag_peer_t *gone; /**< peers left while a transfer was in flight, or lost and never joined */
    dn_fifo_t busy; /**< requests that wait for room, or send in pieces; dn_tag_pump() tries them again */
    bool parted;    /**< a peer was left: its counts of messages may have begun anew */
    dn_patience_t patience; /**< with peers that are left: dn_tag_leave() */
    struct {
        uint64_t since_ns; /**< when the stay began, by dn_clock_ns() */
        uint64_t last_ns;  /**< when this process last looked at a long message */
    } here;        /**< this process's stay in the library, seen by its long messages: dn_tag_stay() */
    bool queued;   /**< a peer has sends that wait, or is to be told a wish */
    bool mourns;   /**< a peer was lost, at some time */
    bool heeding;  /**< a sender reads a receiver's messages; not to be nested: dn_tag_listen() */
    bool puts_off; /**< this process looks for an announcement: PULLs wait until it polls; no threads then */
    uint8_t vain;  /**< pauses in vain, less others; each halves the next pause. A hint, as `waited` */
    pthread_mutex_t pump; /**< held by the thread that tries again what waits */
};

/** @name Engines and peers */
/** @{ */
/**
 * Open an engine on a channel of a port. Messages that came before this call have waited in the ring, and are read now.
 * @retval DN_ERR_NOMEM  memory ran out.
 * @retval DN_ERR_PARAM  the channel cannot be used: the log line says why.
 */
DN_API dn_status_t dn_tag_open(dn_port_t *port, unsigned channel, const dn_tag_config_t *config,
                               dn_tag_t **tag_p);
/** Close an engine. No request is under way. Messages that were not received are gone. */
DN_API void dn_tag_close(dn_tag_t *tag);

/**
 * Take over a connection that the caller has made (dn_connect()). dn_tag_leave() undoes this call.
 *
 * @param[in] user  The owner's pointer for the peer, dn_tag_peer_t::user; not NULL.
 *
 * @return the engine's part of the peer. Where another thread has joined the peer first, that thread's connection stays and
 *         @p peer is disconnected. NULL: memory ran out, and @p peer is disconnected.
 */
DN_API dn_tag_peer_t *dn_tag_join(dn_tag_t *tag, dn_peer_t *peer, void *user);
/** Part from a peer. Messages that wait for room are sent, as long as the peer lives and takes them. Unreceived messages of the peer are
 * gone. Requests that still need the peer end with DN_ERR_UNREACH. Posted receives stay: a message of another peer may be for them. The
 * caller has received the peer's messages of dn_tag_mprobe() before. No other thread sends to the peer or receives from the peer during
 * this call, but any thread may drive the port. This is not called from inside of a callback.
 *
 * The call waits for messages to the peer as long as they move: it gives them up when nothing of them has moved for 10 s. A message moves
 * when it leaves, when a piece of it leaves, when its answer comes, and with each piece of a transfer that dn_peer_moves() sees. Nothing
 * else that comes by the port counts. The 10 s are those of dn_patience.h: all peers that do not look at the network any more cost them
 * once, and looks that are more than half a second apart count as that. What is not in them: up to 3 s for each lost peer with transfers in
 * flight, since its process may still copy, and the time of dn_disconnect(). A peer that reads memory of this process by RMA sees its
 * pieces itself, and is asked for their number: DN_TAG_HOW_FAR. But a peer whose kernel copies one long message in one call does not move
 * meanwhile: the message moves at its end only. And all transfers with the peer count, also those of another user of the port: a peer that
 * lives and goes on with them is kept, though it takes no message.
 * @param[in] receives  Not 0: the peer may still receive messages. Those that are announced are served, as long as it lives and takes
 *                      them. */
DN_API void dn_tag_leave(dn_tag_peer_t *peer, int receives);
/** Any one of the peers that were not left yet. NULL: there is none. */
DN_API dn_tag_peer_t *dn_tag_some_peer(dn_tag_t *tag);
/** Is a request under way that needs this peer? */
DN_API int dn_tag_needs(const dn_tag_peer_t *peer);

/* Some fields are written under the lock but also read without the lock: queued, mourns, busy.first, waits.first, wish, wish_due. They
 * are loaded and stored whole. So are ahead, waited, vain, heeding, longs and heard, which no lock protects. */

/** Try again the requests and wishes that wait. The caller also drives the port by dn_progress(). @return events. */
DN_API int dn_tag_pump(dn_tag_t *tag);
/** Call dn_tag_pump() if something waits. @return events. */
static inline int dn_tag_progress(dn_tag_t *tag)
{
    return __builtin_expect(dn_load_relaxed(&tag->queued) || NULL != dn_load_relaxed(&tag->busy.first), 0)
               ? dn_tag_pump(tag)
               : 0;
}
/** @} */

/** @name Contexts that have a name
 * For users of the engine that agree on names of two words, and not on numbers.
 */
/** @{ */
/**
 * The context of a name, for receives. Messages for the context may have come before this call.
 * @param[out] context_p  This process's number for the name, with DN_TAG_NAMED set. Valid until dn_tag_unname().
 * @retval DN_ERR_NOMEM  memory ran out.
 */
DN_API dn_status_t dn_tag_name(dn_tag_t *tag, const uint64_t word[2], uint32_t *context_p);
/** Undo one dn_tag_name(). Once all of a name's calls are undone, the unreceived messages for the context are gone. */
DN_API void dn_tag_unname(dn_tag_t *tag, uint32_t context);
/**
 * Tell a peer the name of a context of this process. The caller does so once, ahead of its first message to the peer in this
 * context. To tell the name again does no harm. This call never waits.
 * @retval DN_ERR_NOMEM    memory ran out: the peer was not told.
 * @retval DN_ERR_UNREACH  the peer is lost.
 */
DN_API dn_status_t dn_tag_introduce(dn_tag_peer_t *peer, const uint64_t word[2], uint32_t context);
/** @} */

/** @name Memory of a request: one of these before it is started */
/** @{ */
/** Bytes that lie together. */
static inline void dn_tag_memory(dn_tag_req_t *req, void *buffer, size_t len)
{
    req->buffer = buffer;
    req->len = len;
    req->walks = false;
}
/** Bytes that do not lie together: pack and unpack of the configuration move them. Or the caller sets up `cursor` and `walks`
 * after this call, and a program moves them. */
static inline void dn_tag_layout(dn_tag_req_t *req, void *layout, size_t len)
{
    req->buffer = NULL;
    req->len = len;
    req->walks = false;
    req->layout = layout;
}
/** @} */

/** @name Sending */
/** @{ */
/** Count a message that was put into the receiver's ring, and is matched there. */
static inline void dn_tag_sent(dn_tag_peer_t *peer, const dn_tag_head_t *head)
{
    dn_count(&peer->sent, 1);
    if (__builtin_expect(peer->offered, 0) && peer->offer.context == head->context
        && peer->offer.tag == head->tag) {
        peer->offered = false;
    }
}

/** Is a message of this length to be announced because the receiver is behind? */
static inline bool dn_tag_is_held(const dn_tag_peer_t *peer, size_t len)
{
    const uint32_t hold = dn_load_relaxed(&peer->wish.hold);

    return __builtin_expect(DN_TAG_HOLDS_NONE != hold, 0)
           && (DN_TAG_HOLDS_ALL == hold || DN_TAG_HELD_MIN < len);
}

/** Is the receiver behind, and has the sender not paused in vain for it yet? */
static inline bool dn_tag_may_pause(const dn_tag_peer_t *peer)
{
    return DN_TAG_HOLDS_LONG == dn_load_relaxed(&peer->wish.hold) && !dn_load_relaxed(&peer->waited);
}

/** dn_tag_is_held() or dn_tag_may_pause(): the message needs a request. Most receivers are not behind. */
static inline bool dn_tag_is_behind(const dn_tag_peer_t *peer, size_t len)
{
    return __builtin_expect(DN_TAG_HOLDS_NONE != dn_load_relaxed(&peer->wish.hold), 0)
           && (dn_tag_is_held(peer, len) || dn_tag_may_pause(peer));
}

/** Messages of up to DN_TAG_HELD_MIN bytes between two reads of the receiver's messages: dn_tag_heed(). */
#define DN_TAG_HEED_SHORT 256u

/** A message has left with its bytes: is dn_tag_heed() to be called? */
static inline bool dn_tag_heeds(const dn_tag_peer_t *peer, size_t len)
{
    return DN_TAG_HELD_MIN < len || 0 == dn_load_relaxed(&peer->sent) % DN_TAG_HEED_SHORT;
}

/** Called where dn_tag_heeds() is true: the sender reads the receiver's messages. It does so at every call for a short message,
 * and once in 64 KiB of messages longer than DN_TAG_HELD_MIN. The receiver may ask for announcements, or for a pause, and a
 * sender that only sends would not learn of this otherwise. Not called after a message that is announced: a process that fetches
 * its peer's messages, before it has announced all of its own, lets that peer wait. Runs handlers and completions. */
DN_API void dn_tag_heed(dn_tag_peer_t *peer, size_t len);

/** Send a copy as one eager message, now or not at all. @retval DN_ERR_AGAIN  not sent, for any reason: start a request. */
static inline dn_status_t dn_tag_inject(dn_tag_peer_t *peer, const dn_tag_head_t *head, const void *data,
                                        size_t len)
{
    if (__builtin_expect(NULL != dn_load_relaxed(&peer->waits.first) || dn_tag_is_behind(peer, len)
                             || len > peer->copy_limit,
                         0)) {
        return DN_ERR_AGAIN;
    }
    const dn_tag_words_t words = dn_tag_words(head);
    if (__builtin_expect(
            DN_OK != dn_botf(peer->peer, peer->tag->channel, DN_TAG_EAGER, &words, sizeof(words), data, len),
            0)) {
        return DN_ERR_AGAIN;
    }
    dn_tag_sent(peer, head);
    if (__builtin_expect(dn_tag_heeds(peer, len), 0)) {
        dn_tag_heed(peer, len);
    }
    return DN_OK;
}

/**
 * Send. The caller has set `complete` and the memory. Where the receiver is behind, the call lasts up to half a millisecond. In
 * this time the sender reads the receiver's messages: handlers run, and completions of other requests.
 *
 * @param[in] req          All fields but `complete` and the memory may hold any bytes.
 * @param[in] peer         The receiver.
 * @param[in] head         Copied.
 * @param[in] synchronous  Not 0: the request completes when the message is matched.
 *
 * @return DN_OK: started, perhaps complete already. DN_ERR_NOMEM, DN_ERR_UNREACH: not started.
 */
DN_API dn_status_t dn_tag_send(dn_tag_req_t *req, dn_tag_peer_t *peer, const dn_tag_head_t *head,
                               int synchronous);
/** @} */

/** @name Receiving */
/** @{ */
/** The messages that a receive takes. */
typedef struct dn_tag_want {
    uint32_t context;
    int32_t source; /**< or DN_MATCH_ANY_SOURCE */
    uint64_t tag;
    uint64_t ignore; /**< bits of the tag that may differ */
} dn_tag_want_t;

/** Set the messages that a receive takes. The caller does so before the receive is started, as with its memory. */
static inline void dn_tag_wants(dn_tag_req_t *req, const dn_tag_want_t want)
{
    req->posted.context = want.context;
    req->posted.source = want.source;
    req->posted.tag = want.tag;
    req->posted.ignore = want.ignore;
}

/**
 * Receive. The caller has set `complete`, the memory, and the messages that the receive takes (dn_tag_wants()).
 *
 * @param[in] tag       The engine.
 * @param[in] req       All other fields may hold any bytes.
 * @param[in] from      The peer that the receive names as its source; NULL: any source, or the peer is not known.
 * @param[in] blocking  Not 0: the caller does nothing but wait for the receive, so the receive is not announced.
 */
DN_API void dn_tag_recv(dn_tag_t *tag, dn_tag_req_t *req, dn_tag_peer_t *from, int blocking);

/** Poll for a receive that was just started, mostly the ring of its source: for a while, or until the receive is complete. The
 * completion does not free the request: the caller keeps the request until this call has returned. */
DN_API void dn_tag_poll(dn_tag_req_t *req, dn_tag_peer_t *from);

/** In a blocking receive: looks at the source in one poll, and polls of the source between two calls that drive everything. */
#define DN_TAG_LOOKS_OF_POLL   8u
#define DN_TAG_POLLS_OF_SOURCE 64u

/** Longest data in bytes that is copied without a call: such data travels in one line with the envelope. */
#define DN_TAG_SHORT 40u

/** Is no receive posted and no message kept? Then the next message is for the next receive. */
static inline bool dn_tag_next_in_order(const dn_tag_t *tag)
{
    return 0 == dn_match_posted_count(&tag->match) && 0 == dn_match_kept_count(&tag->match);
}

/**
 * Wait a while for an eager message, and take it from the ring where it is the next message of its source. No handler is called,
 * and no receive is posted. As no other receive is posted and no message is kept, MPI's order gives this message to this
 * receive, too.
 *
 * @param[in]  from    The peer of want's source. The engine's configuration does not set `threads`.
 * @param[in]  room    Bytes at @p to. 0: @p to may be NULL.
 * @param[in]  polls   Polls of the source at most.
 * @param[out] head_p  The message's envelope.
 * @param[out] size_p  Bytes of the message, all of which are at @p to.
 *
 * @return 0: nothing was taken; start a receive.
 */
static inline int dn_tag_take_next(dn_tag_peer_t *from, const dn_tag_want_t want, void *to, size_t room,
                                   unsigned polls, dn_tag_head_t *head_p, size_t *size_p)
{
    const dn_tag_t *tag = from->tag;
    dn_message_t message;
    dn_status_t seen;

    if (!dn_tag_next_in_order(tag)) {
        return 0;
    }
    for (unsigned i = 1;
         DN_ERR_AGAIN == (seen = dn_peek(from->peer, tag->channel, DN_TAG_LOOKS_OF_POLL, &message)); i++) {
        if (i >= polls) {
            return 0;
        }
        if (__builtin_expect(0 == i % DN_TAG_POLLS_OF_SOURCE, 0)) {
            tag->config.progress(tag->config.arg);
            if (!dn_tag_next_in_order(tag)) {
                return 0;
            }
        }
    }
    if (__builtin_expect(DN_OK != seen || DN_TAG_EAGER != message.tag || sizeof(*head_p) > message.len, 0)) {
        return 0;
    }
    const dn_tag_head_t head = dn_tag_head_of(message.data);
    const size_t len = message.len - sizeof(head);
    if (__builtin_expect(head.context != want.context || head.source != want.source
                             || 0 != ((head.tag ^ want.tag) & ~want.ignore) || len > room,
                         0)) {
        return 0;
    }
    if (len <= DN_TAG_SHORT) {
        dn_copy_inline(to, (const uint8_t *) message.data + sizeof(head), len);
    } else {
        dn_copy(to, (const uint8_t *) message.data + sizeof(head), len);
    }
    dn_take(from->peer, &message);
    from->seen++;
    *head_p = head;
    *size_p = len;
    return 1;
}

/** Cancel a receive. If the receive is still posted, it completes with DN_ERR_CANCELED. If not, nothing happens. */
DN_API void dn_tag_cancel(dn_tag_req_t *req);
/** @} */

/** @name Messages that nobody has received */
/** @{ */
/** The facts that a probe tells of a message. */
typedef struct dn_tag_found {
    dn_tag_head_t head;
    size_t size; /**< bytes of the message */
} dn_tag_found_t;

/** Find the first message that a receive would take. The message stays kept. @return 0: there is none. */
DN_API int dn_tag_probe(dn_tag_t *tag, const dn_tag_want_t *want, dn_tag_found_t *found_p);
/** As dn_tag_probe(), but take the message out of matching: only dn_tag_mrecv() receives it now. NULL: there is none. */
DN_API dn_tag_msg_t *dn_tag_mprobe(dn_tag_t *tag, const dn_tag_want_t *want, dn_tag_found_t *found_p);
/** Was a peer lost, at some time? A loss that this thread does not see yet is seen by its next look. */
static inline bool dn_tag_mourns(const dn_tag_t *tag)
{
    return dn_load_relaxed(&tag->mourns);
}
/** A caller of dn_tag_probe() or dn_tag_mprobe() has found no message, and waits for one, and dn_tag_mourns() is true. Where the caller needs
 * a peer that is lost, the owner is told, as for a receive. @param[in] from  The peer that the caller names as the source, as in
 * dn_tag_recv(). */
DN_API void dn_tag_await(dn_tag_t *tag, const dn_tag_want_t *want, dn_tag_peer_t *from);
/** Receive a message of dn_tag_mprobe(). The engine frees @p msg. The caller has set `complete` and the memory. */
DN_API void dn_tag_mrecv(dn_tag_t *tag, dn_tag_req_t *req, dn_tag_msg_t *msg);
/** Drop the unreceived messages of a context. */
DN_API void dn_tag_forget(dn_tag_t *tag, uint32_t context);
/** @} */

#endif
