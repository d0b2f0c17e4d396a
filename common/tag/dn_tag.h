/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tag.h
 * Two-sided messages: a receive takes the first message that fits it (dn_match.h), from one process or from any.
 *
 * A short message is one BOTF message, matched where it arrives. A long one is announced by its envelope; the receiver, once
 * it has matched, PULLs the data and says that it is done, or asks for the bytes in pieces when memory on either side does not
 * lie together, or pieces are faster (DIMM_Send/DIMM_Recv paper, protocol B: the sender comes first). One of medium length may flow:
 * where both share memory, and this takes less time, it comes in pieces without being asked for (dn_tag_flow.c). Where the receiver comes first, the sender may PUSH at once (protocol A: dn_tag_announce.c). What finds no room in the peer's ring waits, in order,
 * and dn_tag_progress() tries it again.
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
 *            NEW ---> PUSH_STARTS <--> PUSHES ---> TELLS ---> COMPLETE               into an announced receive
 *                                                    |
 *                                                    +------> WAITS_REPLY            that could not be made
 *
 *   receive  NEW ---> POSTED ---> MATCHED ---> COMPLETE                              an eager message; or cancelled
 *                       |            |
 *                       |            +---> WAITS_BYTES ---> COMPLETE              it flows
 *                       |            +---> ANSWERS ---> COMPLETE                  nothing is to be fetched, or it was synchronous
 *                       |            +---> PULLS <--> STARTS                      STARTS waits for room
 *                       |            |       |  +---> ANSWERS ---> COMPLETE
 *                       |            |       v
 *                       |            +---> ASKS <--> WAITS_BYTES ---> COMPLETE     in pieces; ASKS ---> ANSWERS: memory ran out
 *                       |                    ^
 *                       +---> IS_PUSHED -----+---> COMPLETE                        ASKS: the PUSH could not be made
 *
 * Ownership: a request, its memory and its layout are lent from dn_tag_send(), dn_tag_recv() or dn_tag_mrecv() until its
 *            callback is called, and not touched from then on.
 * Threads:   an engine whose configuration says `threads` may be used by any number at once, each request by one. Its lock is
 *            never held while libdimmnet is called or a callback runs. A request that has been matched belongs to the thread that
 *            matched it, then to the handlers, of which one runs at a time.
 * Ordering:  MPI's: of two messages of one sender that fit the same receive the one that was sent first is taken.
 * Errors:    a peer that is lost and a memory that is short are told to the engine's owner (dn_tag_config_t). A message that is
 *            malformed is counted and dropped.
 */
#ifndef DN_TAG_H
#define DN_TAG_H

#include "dimmnet.h"
#include "dn_atomic.h"
#include "dn_handle.h"
#include "dn_param.h"
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
    DN_TAG_CTS,        /**< send the bytes */
    DN_TAG_FRAG,     /**< bytes that follow those before */
    DN_TAG_DONE,     /**< handle of the sender's request: it may complete */
    DN_TAG_ANNOUNCE, /**< a receive waits for a long message */
    DN_TAG_TAKES,    /**< such a receive is matched, its message is being PUSHed */
    DN_TAG_PUSHED,   /**< that has ended */
    DN_TAG_WISH,     /**< what the receiver wants of the next messages */
    DN_TAG_FLOW,     /**< first bytes of a message that flows: the others follow, DN_TAG_FRAG */
    DN_TAG_NAME,     /**< which name a number of the sender's stands for: dn_tag_name.c */
};

/** What a receiver wants a sender to hold back, as so much of it lies there unreceived. */
enum dn_tag_hold {
    DN_TAG_HOLDS_NONE,
    /** Announce what is longer than DN_TAG_HELD_MIN, and let the receiver catch up for a moment after what is shorter. */
    DN_TAG_HOLDS_LONG,
    DN_TAG_HOLDS_ALL,
};

/** Data of a message that its receiver keeps however many there are, up to unexpected_limit. Programs whose processes first send
 * to each other, and then receive, rely on such room: others of Open MPI's transports give it for up to 4 KiB. */
#define DN_TAG_HELD_MIN 4096u

/** Contexts with this bit have a name, and come from dn_tag_name(). Others are as the engine's users agree on. */
#define DN_TAG_NAMED 0x80000000u
/** Such a context in an envelope: the sender's number. */
#define DN_TAG_ABROAD 0x40000000u

/** What a context of this process that has a name is called in the envelopes of messages it sends. */
static inline uint32_t dn_tag_abroad(uint32_t context)
{
    return context | DN_TAG_ABROAD;
}

/** The envelope, which is what a message is matched by. A message of up to 40 bytes travels in one line with it. */
typedef struct dn_tag_head {
    uint32_t context; /**< of MPI: the communicator's; of one that has a name: dn_tag_abroad() */
    int32_t source;   /**< of MPI: rank of the sender in the communicator; 0 or more */
    uint64_t tag;
} dn_tag_head_t;
_Static_assert(16 == sizeof(dn_tag_head_t), "40 bytes fit beside the envelope");

/** The same bytes, written by words, as they are copied. */
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

/** The envelope of a message, whose bytes the sender may still change: each is read once. */
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

/** What a request waits for: the drawing above. */
enum dn_tag_state {
    DN_TAG_NEW,         /**< for nothing yet */
    DN_TAG_WAITS_ROOM,  /**< send: for room for its first message */
    DN_TAG_WAITS_REPLY, /**< send: for DN_TAG_CTS or DN_TAG_DONE */
    DN_TAG_SENDS,       /**< send: pieces are on their way */
    DN_TAG_PUSH_STARTS, /**< send: for room for the PUSH */
    DN_TAG_PUSHES,      /**< send: for the PUSH */
    DN_TAG_TELLS,       /**< send: for room for DN_TAG_PUSHED */
    DN_TAG_POSTED,      /**< receive: for a match */
    DN_TAG_MATCHED,     /**< receive: for nothing, its message is here */
    DN_TAG_IS_PUSHED,   /**< receive: for DN_TAG_PUSHED */
    DN_TAG_STARTS,      /**< receive: for room for the PULL */
    DN_TAG_PULLS,       /**< receive: for the PULL */
    DN_TAG_WAITS_BYTES, /**< receive: for DN_TAG_FRAG, asked for or not */
    DN_TAG_ANSWERS,     /**< receive: for room for its last answer */
    DN_TAG_ASKS,        /**< receive: for room for DN_TAG_CTS */
    DN_TAG_COMPLETE,
};

/** Called once, by whichever thread completes the request: from dn_progress(), from dn_tag_progress(), or from the call that
 * started this request or another. The request is the caller's again: its results are set, its memory may go. */
typedef void (*dn_tag_fn_t)(dn_tag_req_t *req);

/** A send or a receive. All private but what is marked. */
struct dn_tag_req {
    /* What a short message touches stands first, and `posted` begins with such: a window of 64 receives is to stay in the
     * first-level cache. */
    dn_tag_fn_t complete; /**< the caller's */
    uint8_t *buffer;      /**< the user's memory when it lies together, else NULL */
    size_t len;           /**< send: bytes; receive: room */
    enum dn_tag_state state;
    dn_status_t status; /**< result: DN_OK, DN_ERR_TRUNC, DN_ERR_CANCELED, or another error */
    dn_tag_head_t head; /**< send: the envelope; receive: result, the message's */
    size_t size;        /**< receive: result, bytes of the message, also when not all of them fit */
    uint64_t handle;    /**< of this request, DN_HANDLE_NONE: none yet */
    dn_tag_t *tag;
    bool walks;            /**< memory does not lie together and has a program */
    enum dn_tag_kind kind; /**< send: of its first message */
    dn_match_recv_t posted;

    size_t wanted; /**< bytes of this message that the receiver takes */
    size_t done;   /**< of these, sent or received in pieces */
    void
        *layout; /**< for dn_tag_config_t's pack and unpack: memory neither lies together nor has a program */
    dn_tag_peer_t *peer;
    dn_queue_item_t item;  /**< in one queue at most: dn_tag_peer_t::waits, dn_tag_t::busy */
    uint64_t remote;       /**< handle of the other side's request */
    dn_segment_t *segment; /**< the registered buffer; send: NULL, none; receive: of one that was announced */
    dn_key_t key;          /**< of the other side's buffer */
    dn_comp_t comp;
    uint64_t *claim;      /**< receive: of its announcement */
    uint64_t claimed;     /**< that claim's number */
    enum dn_pace_way way; /**< receive: how a long message comes */
    uint64_t
        started; /**< receive: when it was posted, then when its bytes began to come; in ns, 0: not known */
    dn_prog_cursor_t cursor; /**< of the program, where done bytes are behind */
};

/** What a receiver wants of a sender from now on. */
typedef struct dn_tag_wish {
    uint32_t hold;  /**< enum dn_tag_hold */
    uint32_t flows; /**< of DN_PACE_FLOW_ALL: lengths of messages that are to flow; others are announced */
} dn_tag_wish_t;

/** A receive that was announced by a peer. */
typedef struct dn_tag_announce {
    uint32_t context;
    uint32_t claim; /**< index in claims */
    uint64_t tag;
    uint64_t seen;    /**< messages from the process that this goes to */
    uint64_t number;  /**< that stands at the claim until it is taken */
    uint64_t request; /**< handle at the receiver */
    uint64_t len;     /**< room */
    dn_key_t key;     /**< of that */
    dn_key_t claims;
} dn_tag_announce_t;

/** A process that messages go to or come from. All private but what is marked. */
struct dn_tag_peer {
    dn_peer_t *peer;
    dn_tag_t *tag;
    void *user;      /**< the owner's, of dn_tag_join(); NULL: it has sent before that */
    dn_fifo_t waits; /**< sends that wait for room */
    dn_tag_peer_t *next;
    dn_tag_peer_t *next_gone;
    size_t eager_limit;     /**< bytes of data in an eager message to it */
    size_t copy_limit;      /**< and in one that is copied; what is longer is sent from where it lies */
    size_t piece_max;       /**< bytes of data in a DN_TAG_FRAG to it */
    size_t kept_bytes;      /**< of its messages that nobody has received yet */
    dn_tag_wish_t wish;     /**< what it wants of us */
    dn_tag_wish_t our_wish; /**< what we want of it */
    uint32_t ahead; /**< bytes of long messages to it, since its own were last looked at: dn_tag_heed() */
    bool wish_due;  /**< our_wish has changed and it does not know */
    bool waited;    /**< it has had a moment to catch up since it was said to be behind, in vain; a hint where
                         threads send at once */
    uint32_t lost;  /**< the owner knows that it is; changed by compare-and-swap */
    bool gone; /**< it was left: nothing goes to it any more; written with pump and the port's lock held */
    bool kernel_copies; /**< it is on this host, and memory on either side is reached without its process */
    uint8_t lain;       /**< stays in a row before which a long message of it lay unread, up to DN_TAG_LAIN */
    uint64_t lain_since; /**< the last of these stays: dn_tag_t::here.since_ns */
    uint8_t looks;       /**< for announcements of it that are still to be made, before long messages to it */
    bool offered;        /**< what it announced still waits: offer */
    uint64_t sent;       /**< messages put into its ring that are matched there */
    uint64_t seen;       /**< such messages from it; both began at dn_first() */
    dn_tag_req_t *announced; /**< to it, one at a time; NULL: none */
    dn_tag_announce_t offer;
    uint64_t *offer_claim; /**< its claim, mapped */
    uint32_t transfers;    /**< PULLs and PUSHes of requests, in flight */
    uint64_t left; /**< requests that were first, ever: another thread may have taken one out of the line */
    bool cut;      /**< the port has said that it is lost */
    bool flows;    /**< messages of medium length to it may flow */
    uint32_t flowing; /**< not 0: one does, and has pieces to send; claimed by compare-and-swap */
    uint32_t flowed; /**< messages that flowed to it since its last wish; a hint where threads send at once */
    struct {
        dn_tag_req_t *req;   /**< that takes it; NULL: none yet */
        dn_tag_msg_t *msg;   /**< its bytes, when it was begun to be kept; neither of them: it is dropped */
        size_t left;         /**< bytes to come, 0: none flows */
    } flow;                  /**< the message that flows from it */
    dn_tag_alias_t *aliases; /**< what it calls contexts that have a name */
    dn_pace_t pace; /**< of long messages from it; large, so that it stands behind what short ones touch */
};

/** Which long receives are announced. */
enum dn_tag_announces {
    DN_TAG_ANNOUNCES_NONE,
    DN_TAG_ANNOUNCES_AWAY, /**< those of a process that lets messages lie, since it computes */
    DN_TAG_ANNOUNCES_ALL,
};

/** Settings of an engine, and what it tells its owner. */
typedef struct dn_tag_config {
    dn_tag_limits_t limit; /**< dn_params.def's section TAG */
    int threads;           /**< not 0: several may be in here at once */
    void *arg;             /**< for the calls below */
    /** Pack the next bytes of a layout. @return how many: fewer than len where an element is not to be cut, but one element at
     * least, and all that there are where len holds them. */
    size_t (*pack)(void *layout, void *to, size_t len);
    /** Unpack the next bytes of a layout, wherever an element is cut. */
    void (*unpack)(void *layout, const void *from, size_t len);
    /** Drive everything: dn_progress(), dn_tag_progress(), and what else the process has. */
    void (*progress)(void *arg);
    /** A peer is lost; it is not to be left from inside this call. @param[in] matters  Not 0: a request of ours was to reach it, or
     * waits for its answer, and does not end until the peer is left. A peer that was never joined (user is NULL) and does not
     * matter is gone after this call. */
    void (*lost)(dn_tag_peer_t *peer, int matters, void *arg);
    /** There is no memory for a message that has arrived: it is lost, and its receive would wait for ever. */
    void (*no_memory)(void *arg);
} dn_tag_config_t;

/** Words by which sides agree which of them has an announced buffer: see dn_tag_announce.c. */
typedef struct dn_tag_claims {
    bool tried;
    dn_segment_t *segment;
    uint64_t *word; /**< NULL: there are none */
    uint32_t next;
    uint64_t
        number; /**< of the last one; a sender may keep an announcement for any time, so it never wraps */
} dn_tag_claims_t;

/** Sizes of memory for kept messages: 0 is the C library's, 1 to 6 take 2 to 64 KiB of data. */
#define DN_TAG_ROOM_SIZES 7u

/** Memory that kept messages have given back: see dn_tag_room.c. */
typedef struct dn_tag_room {
    dn_tag_msg_t *idle[DN_TAG_ROOM_SIZES]; /**< last given back first; [0] has none */
    size_t idle_bytes;
} dn_tag_room_t;

/** An engine. All private but what is marked. */
struct dn_tag {
    dn_port_t *port;
    unsigned channel;
    dn_tag_config_t config;
    uint64_t dropped; /**< to be read: malformed messages */
    pthread_mutex_t lock;
    /* protected by lock */
    dn_match_t match;
    dn_tag_room_t room;
    dn_handle_table_t handles;
    dn_tag_claims_t claims;
    struct {
        dn_tag_name_t *first;
        uint32_t last;    /**< number that was made last */
        uint32_t strange; /**< names that only others have said */
    } names;
    dn_tag_peer_t *peers;
    dn_tag_peer_t *gone; /**< that were left while a transfer was in flight, or lost and never joined */
    dn_fifo_t busy;      /**< requests that wait for room, or send in pieces: progress goes through them */
    bool parted;         /**< some process was left: counts of messages may have begun anew */
    struct {
        uint64_t since_ns; /**< when it began, by dn_clock_ns() */
        uint64_t last_ns;  /**< when this process last looked at a long message */
    } here;       /**< the stay of this process in the library, as its long messages show it: dn_tag_stay() */
    bool queued;  /**< some peer has sends that wait, or is to be told a wish */
    bool heeding; /**< a sender looks at what a receiver says: not once more from inside of that */
    uint8_t vain; /**< moments in vain, less those that were not: each halves the next. A hint, as waited */
    pthread_mutex_t pump; /**< held by the thread that goes through what waits */
};

/** @name Engines and peers */
/** @{ */
/**
 * Begin on a channel of a port. Messages that have come before wait in the ring until now.
 * @retval DN_ERR_NOMEM  memory ran out.
 * @retval DN_ERR_PARAM  the channel cannot be used, as a sentence in the log says.
 */
DN_API dn_status_t dn_tag_open(dn_port_t *port, unsigned channel, const dn_tag_config_t *config,
                               dn_tag_t **tag_p);
/** End. No request is under way; messages that nobody has received are gone. */
DN_API void dn_tag_close(dn_tag_t *tag);

/**
 * Take over a connection that the caller has made (dn_connect()); dn_tag_leave() undoes it.
 *
 * @param[in] user  Not NULL: the owner's word for the peer, dn_tag_peer_t::user.
 *
 * @return the engine's part of the peer. Where another thread was faster, its connection stays and this one is undone. NULL:
 *         memory ran out; the connection is undone.
 */
DN_API dn_tag_peer_t *dn_tag_join(dn_tag_t *tag, dn_peer_t *peer, void *user);
/** Part from a peer: what waits for room gets a last chance, its unreceived messages are gone. Requests that still need the peer
 * end with DN_ERR_UNREACH, but for receives that are posted: a message of another may be for them. Messages of dn_tag_mprobe() are
 * received before. No other thread sends to the peer or receives from it meanwhile, though any may drive the port; it is not
 * called from inside of a callback. */
DN_API void dn_tag_leave(dn_tag_peer_t *peer);
/** Some peer that was not left yet; NULL: there is none. */
DN_API dn_tag_peer_t *dn_tag_some_peer(dn_tag_t *tag);
/** Is a request under way that needs this peer? */
DN_API int dn_tag_needs(const dn_tag_peer_t *peer);

/* What stands under the lock, but is looked at without it, is loaded and stored whole: queued, busy.first, waits.first, wish, wish_due. So
 * are ahead, waited, vain and heeding, which have no lock. */

/** Try again what waits. The caller drives the port by dn_progress() besides. @return events. */
DN_API int dn_tag_pump(dn_tag_t *tag);
/** As dn_tag_pump(), which is only called where something waits. */
static inline int dn_tag_progress(dn_tag_t *tag)
{
    return __builtin_expect(dn_load_relaxed(&tag->queued) || NULL != dn_load_relaxed(&tag->busy.first), 0)
               ? dn_tag_pump(tag)
               : 0;
}
/** @} */

/** @name Contexts that have a name
 * For users that agree on names of two words, and not on numbers.
 */
/** @{ */
/**
 * The context of a name, for receives. Messages for it may have come before.
 * @param[out] context_p  This process's number, with DN_TAG_NAMED set. The caller's until dn_tag_unname().
 * @retval DN_ERR_NOMEM  memory ran out.
 */
DN_API dn_status_t dn_tag_name(dn_tag_t *tag, const uint64_t word[2], uint32_t *context_p);
/** Undo one dn_tag_name(). The last forgets what came for the context and nobody has received. */
DN_API void dn_tag_unname(dn_tag_t *tag, uint32_t context);
/**
 * Say to a peer which name a context of this process has: once, ahead of the first message there. It never waits. To say it again does
 * no harm.
 * @retval DN_ERR_NOMEM    memory ran out: nothing was said.
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
/** Bytes that do not: by pack and unpack of the configuration. The caller may then set up `cursor` and `walks`. */
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
/** A message that is matched at the receiver was put into its ring. */
static inline void dn_tag_sent(dn_tag_peer_t *peer, const dn_tag_head_t *head)
{
    dn_store_relaxed(&peer->sent, dn_load_relaxed(&peer->sent) + 1);
    if (__builtin_expect(peer->offered, 0) && peer->offer.context == head->context
        && peer->offer.tag == head->tag) {
        peer->offered = false;
    }
}

/** Is a message of this length to be announced, as the receiver is behind? */
static inline bool dn_tag_is_held(const dn_tag_peer_t *peer, size_t len)
{
    const uint32_t hold = dn_load_relaxed(&peer->wish.hold);

    return __builtin_expect(DN_TAG_HOLDS_NONE != hold, 0)
           && (DN_TAG_HOLDS_ALL == hold || DN_TAG_HELD_MIN < len);
}

/** Is the receiver behind, and has it not had its moment yet? */
static inline bool dn_tag_may_pause(const dn_tag_peer_t *peer)
{
    return DN_TAG_HOLDS_LONG == dn_load_relaxed(&peer->wish.hold) && !dn_load_relaxed(&peer->waited);
}

/** One of both, which the receiver of most messages is not: a request is needed. */
static inline bool dn_tag_is_behind(const dn_tag_peer_t *peer, size_t len)
{
    return __builtin_expect(DN_TAG_HOLDS_NONE != dn_load_relaxed(&peer->wish.hold), 0)
           && (dn_tag_is_held(peer, len) || dn_tag_may_pause(peer));
}

/** Messages of up to DN_TAG_HELD_MIN between two looks at what the receiver has sent. */
#define DN_TAG_HEED_SHORT 256u

/** A message has left with its bytes: may the sender have to listen? */
static inline bool dn_tag_heeds(const dn_tag_peer_t *peer, size_t len)
{
    return DN_TAG_HELD_MIN < len || 0 == dn_load_relaxed(&peer->sent) % DN_TAG_HEED_SHORT;
}

/** After such a message: once in 64 KiB of those longer than DN_TAG_HELD_MIN, and after each shorter one, the sender reads what the receiver
 * has sent. That may ask for announcements, or a pause: a sender that only sends does not hear of it otherwise. Not of a message that is
 * announced: a process that fetches its peer's messages before all of its own are announced has that peer wait. Runs handlers and
 * completions. */
DN_API void dn_tag_heed(dn_tag_peer_t *peer, size_t len);

/** Send a copy as one eager message, now or not at all. @retval DN_ERR_AGAIN  now it cannot be: start a request. */
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
 * Send. The caller has set complete and the memory. Where the receiver is behind, the call lasts up to half a millisecond, in which what
 * the receiver has sent is read: handlers run, and completions of other requests.
 *
 * @param[in] req          Any bytes but those.
 * @param[in] peer         The receiver.
 * @param[in] head         Copied.
 * @param[in] synchronous  Not 0: complete when it is matched.
 *
 * @return DN_OK: started, perhaps complete already. DN_ERR_NOMEM, DN_ERR_UNREACH: it is not.
 */
DN_API dn_status_t dn_tag_send(dn_tag_req_t *req, dn_tag_peer_t *peer, const dn_tag_head_t *head,
                               int synchronous);
/** @} */

/** @name Receiving */
/** @{ */
/** What a receive takes. */
typedef struct dn_tag_want {
    uint32_t context;
    int32_t source; /**< or DN_MATCH_ANY_SOURCE */
    uint64_t tag;
    uint64_t ignore; /**< bits of the tag that may differ */
} dn_tag_want_t;

/** What a receive takes: to be set before it is started, as its memory is. */
static inline void dn_tag_wants(dn_tag_req_t *req, const dn_tag_want_t want)
{
    req->posted.context = want.context;
    req->posted.source = want.source;
    req->posted.tag = want.tag;
    req->posted.ignore = want.ignore;
}

/**
 * Receive. The caller has set complete, the memory, and what is wanted.
 *
 * @param[in] tag       The engine.
 * @param[in] req       Any bytes but those.
 * @param[in] from      The peer of the source, where it names one; NULL: any, or not known.
 * @param[in] blocking  Not 0: the caller does nothing but wait for it, so it is not announced.
 */
DN_API void dn_tag_recv(dn_tag_t *tag, dn_tag_req_t *req, dn_tag_peer_t *from, int blocking);

/** Poll for a receive that was just started, mostly its source: for a while, or until it is complete. The caller keeps the
 * request until then in any case. */
DN_API void dn_tag_poll(dn_tag_req_t *req, dn_tag_peer_t *from);

/** Looks at one source in a poll of it, and such polls between two looks at the others, inside a blocking receive. */
#define DN_TAG_LOOKS_OF_POLL   8u
#define DN_TAG_POLLS_OF_SOURCE 64u

/** Bytes of data that are copied without a call: those that travel in one line with the envelope. */
#define DN_TAG_SHORT 40u

/** Is the receive about to be posted the only one, and nothing kept that it could take? */
static inline bool dn_tag_next_in_order(const dn_tag_t *tag)
{
    return 0 == dn_match_posted_count(&tag->match) && 0 == dn_match_kept_count(&tag->match);
}

/**
 * Wait a while for an eager message that is the next of its source, and take it where it lies: no handler is called, nothing is
 * posted and matched. As long as nothing else is posted or kept, the message is this receive's by MPI's order, too.
 *
 * @param[in]  from    Of want's source. There are no threads.
 * @param[in]  room    Bytes at @p to, which may be NULL when it is 0.
 * @param[in]  polls   At most.
 * @param[out] head_p  The message's.
 * @param[out] size_p  Its bytes, all of which are at @p to.
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

/** Take a receive back that is still posted: it completes with DN_ERR_CANCELED. */
DN_API void dn_tag_cancel(dn_tag_req_t *req);
/** @} */

/** @name Messages that nobody has received */
/** @{ */
/** What a probe tells of a message. */
typedef struct dn_tag_found {
    dn_tag_head_t head;
    size_t size; /**< bytes of the message */
} dn_tag_found_t;

/** The first message that a receive would take; it stays where it is. @return 0: there is none. */
DN_API int dn_tag_probe(dn_tag_t *tag, const dn_tag_want_t *want, dn_tag_found_t *found_p);
/** The same, taken out of matching: the caller's, for dn_tag_mrecv(). NULL: there is none. */
DN_API dn_tag_msg_t *dn_tag_mprobe(dn_tag_t *tag, const dn_tag_want_t *want, dn_tag_found_t *found_p);
/** Receive a message of dn_tag_mprobe(), which is gone then. The caller has set complete and the memory. */
DN_API void dn_tag_mrecv(dn_tag_t *tag, dn_tag_req_t *req, dn_tag_msg_t *msg);
/** Forget what came for a context and nobody has received. */
DN_API void dn_tag_forget(dn_tag_t *tag, uint32_t context);
/** @} */

#endif
