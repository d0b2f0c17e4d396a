/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ofi_state.h
 * The state of the ofi device: buffers, streams, peers, transfers, groups and applicants, with their limits. ofi->lock guards all of it
 * (dn_ofi_int.h), but for dn_peer_base_t::life and ::doubt, which have memory orders of their own (dn_device.h).
 */
#ifndef DN_OFI_STATE_H
#define DN_OFI_STATE_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "dn_atomic.h"
#include "dn_device.h"
#include "dn_guest.h"
#include "dn_host.h"
#include "dn_log.h"
#include "dn_ofi_wire.h"
#include "dn_sg.h"
#include "dn_thread.h"
#include "dn_xfer.h"

/** Most bytes of a message with its head. Transfers that are not contiguous go in such messages: 1 MiB in blocks of 64 B takes
 * 1.24 times as long as a contiguous MiB (perf/dn_latency over tcp); in messages of a quarter of the bytes, more than twice as long. */
#define DN_OFI_MESSAGE_MAX (65u * 1024)
/** Longest message that ofi_rxm sends at once, without a request by the receiver (its FI_OFI_RXM_BUFFER_SIZE). */
#define DN_OFI_RXM_EAGER (16u * 1024)
/** Bytes of buffers for messages that wait: a message of 1 KiB must not take a buffer for the longest message. Messages of up to MIDDLE
 * may go out together: 4 KiB of an application with all heads fit. */
#define DN_OFI_SMALL  512u
#define DN_OFI_MIDDLE 4608u
/** Every peer takes messages of so many bytes: the upper layers cut long data into pieces of at least 512 bytes and their heads. */
#define DN_OFI_BOTF_MIN 576u
/** credit_max is so many times the ring_lines of the configuration: over a network, credit takes longer to come. */
#define DN_OFI_RINGS      16u
#define DN_OFI_CREDIT_MAX 8192u /**< lines */
/** Most receives kept posted where the provider holds back senders (FI_RM_ENABLED). */
#define DN_OFI_RX 16u
/** Most receives kept posted where the provider does not hold back senders. */
#define DN_OFI_RX_MAX 128u
/** Most operations in flight, even if the provider takes more. */
#define DN_OFI_QUEUE_MAX 1024u
#define DN_OFI_IOV       8u           /**< iovecs given to one call */
#define DN_OFI_PART      (256u << 10) /**< longest single RMA operation */
/** Bytes of RMA in flight with a peer, from which on no further part is begun (perf/dn_bw of 1 MiB: 2.8 GB/s; 4 MiB in parts of 1 MiB:
 * 1.7). */
#define DN_OFI_FLYING (2u << 20)
/** Bits of a token that are a place. The other bits are random, so that tokens of different senders differ. */
#define DN_OFI_PLACE_BITS 20u
/** Longest time that a disconnect tries to send messages that wait. */
#define DN_OFI_PUSH_NS UINT64_C(10000000)
/** A process repeats HELLO after this time. The time doubles at each repetition, until it exceeds half a second. */
#define DN_OFI_GREET_NS UINT64_C(4000000)
/** Time without an answer after which a question is asked again. */
#define DN_OFI_ASK_NS    UINT64_C(250000000)
#define DN_OFI_BUCKETS   1024u                /**< of the table of incoming streams */
#define DN_OFI_LINGER_NS UINT64_C(1000000000) /**< longest time that closing waits for peers */

/** Functions of libfabric that are looked up by name; all others are reached
 * through its objects. */
typedef struct dn_ofi_lib {
    uint32_t (*version)(void);
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
                   const struct fi_info *hints, struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    const char *(*strerror)(int error);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
} dn_ofi_lib_t;

/** What an op_context points to; libfabric owns `context` until the operation
 * completes. */
typedef struct dn_ofi_request {
    struct fi_context2 context;
    enum { DN_OFI_SEND, DN_OFI_RECV, DN_OFI_RMA } role;
} dn_ofi_request_t;

/** An address of the address vector, shared by all objects that use it. */
typedef struct dn_ofi_node {
    struct dn_ofi_node *next;
    fi_addr_t addr;
    uint32_t users;
    uint32_t len;
    uint64_t newest; /**< token of the newest stream to this address */
    /** with a 0 behind it: a provider reads as many bytes as its own names have */
    uint8_t name[DN_OFI_NAME_MAX + 1];
} dn_ofi_node_t;

/** Memory for one message, to send or received. The message begins at bytes. */
typedef struct dn_ofi_buffer {
    dn_ofi_request_t request;
    struct dn_ofi_buffer *next;
    struct dn_ofi_stream *stream; /**< the stream on which the message is sent */
    struct dn_ofi_loan *loan;     /**< the memory that is sent behind the buffer, or NULL */
    void *desc; /**< descriptor of its registration, where the provider wants a registration */
    uint32_t room;
    uint32_t size;  /**< bytes in the buffer */
    uint32_t lines; /**< of credit */
    /** of a message received: 1: only the core processor's handler can do what the message asks for */
    uint32_t later;
    _Alignas(8) uint8_t bytes[];
} dn_ofi_buffer_t;

/** Memory of a sender that is sent where it lies. */
typedef struct dn_ofi_loan {
    dn_queue_item_t item; /**< of dn_ofi_t::loan: in one of its queues */
    dn_ofi_buffer_t *buffer;
    dn_comp_t *comp;
    dn_status_t status;
} dn_ofi_loan_t;

/** Put a message behind those that wait. last is undefined while first is NULL. */
static inline void dn_ofi_put_last(dn_ofi_buffer_t **first, dn_ofi_buffer_t **last, dn_ofi_buffer_t *buffer)
{
    buffer->next = NULL;
    *(NULL == *first ? first : &(*last)->next) = buffer;
    *last = buffer;
}

/** Memory of some buffers of a pool. */
typedef struct dn_ofi_slab {
    struct dn_ofi_slab *next;
    struct fid_mr *mr;
    _Alignas(64) uint8_t bytes[];
} dn_ofi_slab_t;

/** Buffers of one size. A pool grows, and shrinks only when the port closes. */
typedef struct dn_ofi_pool {
    dn_ofi_buffer_t *free;
    dn_ofi_slab_t *slab;
    uint32_t room;
    uint32_t each; /**< buffers a slab */
} dn_ofi_pool_t;

enum { DN_OFI_SHORT, DN_OFI_MEDIUM, DN_OFI_LONG, DN_OFI_POOLS };

/**
 * The life of a stream to a peer; each arrow is one dn_ofi_stream_turn():
 *
 *   GREETS ---> OPEN ---> DEAD
 *     |
 *     +-------> REFUSED
 *
 * A stream GREETS by HELLO until the peer's CHALLENGE comes. With the CHALLENGE the stream has keys. The stream ends when the peer refuses
 * it or has taken its LEAVE, when the provider fails, or when the peer is lost. A stream without a peer has been left; it is freed when it
 * has ended.
 */
enum dn_ofi_tx_state {
    DN_OFI_TX_GREETS,  /**< messages wait in this process */
    DN_OFI_TX_REFUSED, /**< nothing more is sent, and there never were keys */
    DN_OFI_TX_OPEN,    /**< messages go out */
    DN_OFI_TX_DEAD,    /**< nothing more is sent; words of the receiver are still read */
};

/** A stream to a peer. It outlives the peer until the receiver has taken all of it. */
typedef struct dn_ofi_stream {
    uint64_t token; /**< its last DN_OFI_PLACE_BITS: place in ofi->stream */
    enum dn_ofi_tx_state state;
    struct dn_ofi_peer *peer; /**< NULL: the stream was left */
    dn_ofi_node_t *node;
    /** token of an earlier stream to the same process: this stream begins when the earlier one has gone out */
    uint64_t before;
    uint64_t back; /**< token of the peer's stream to this process when this stream was left; 0: none */
    dn_auth_pair_t back_pair; /**< keys of the peer's stream */
    dn_auth_pair_t pair;      /**< keys of this stream, once it is open */

    /** How the stream is opened: dn_ofi_greet.c */
    struct {
        dn_auth_root_t root;
        dn_auth_side_t ours, theirs; /**< the random bytes of theirs come with the CHALLENGE */
        uint64_t since;              /**< when it was made, or was seen to wait for `before` */
        uint64_t at;                 /**< when HELLO is said next */
        uint64_t gap;                /**< the pause behind that */
    } greet;

    uint64_t number; /**< of the next message; `number`, `sent` and `credit` begin at dn_config_t::first */
    uint32_t room;   /**< most bytes of messages, with their heads, that go out together */
    uint32_t credit_max;
    uint64_t sent;                 /**< lines sent, in all */
    uint64_t credit;               /**< lines taken, in all: at most credit_max less than `sent` */
    uint32_t held;                 /**< lines of first .. last, and of windows not yet kicked */
    uint32_t flying;               /**< buffers that the provider has */
    dn_ofi_buffer_t *first, *last; /**< wait for credit, or for the provider */
    uint64_t stores;               /**< 1 + the number of the last AOTF; 0: there was no AOTF */
    uint64_t stored;               /**< the receiver is known to have all messages with smaller numbers */

    /** Short messages that go out together: dn_ofi_queue.c */
    struct {
        uint64_t turn;     /**< ofi->turns when the burst began */
        uint64_t sent_at;  /**< when the last message came that could have been gathered */
        uint32_t messages; /**< messages since the burst began */
        int gathers;       /**< the stream is in ofi->gathering */
        struct dn_ofi_stream *next;
    } burst;

    /** The PING that is not answered yet: dn_ofi_word.c */
    struct {
        uint64_t number; /**< its number; or that of the last PING, which is answered */
        uint64_t at;     /**< when it was sent last; 0: it is answered */
        uint64_t since;  /**< when it was sent first */
    } asks;

    /** Do messages of the stream arrive? dn_ofi_watch.c */
    struct {
        uint32_t unheard; /**< looks since `stored` has grown */
        uint64_t seen;    /**< `stored` at the last look */
    } watch;
} dn_ofi_stream_t;

/** By state: the states that may follow (dn_turn.h). */
extern const uint32_t dn_ofi_stream_turns[];

static inline void dn_ofi_stream_turn(dn_ofi_stream_t *stream, enum dn_ofi_tx_state to)
{
    dn_turn_check("a stream of ofi", dn_ofi_stream_turns, stream->state, to);
    stream->state = to;
}

/** Is nothing more sent on a stream? */
static inline int dn_ofi_stream_ended(const dn_ofi_stream_t *stream)
{
    return DN_OFI_TX_REFUSED == stream->state || DN_OFI_TX_DEAD == stream->state;
}

/** Was a stream ever open? Then it has keys, by which words of its receiver are known to be genuine. */
static inline int dn_ofi_stream_keyed(const dn_ofi_stream_t *stream)
{
    return DN_OFI_TX_OPEN <= stream->state;
}

/** End a stream: nothing more is sent on it. A second call does nothing. */
static inline void dn_ofi_stream_end(dn_ofi_stream_t *stream)
{
    if (!dn_ofi_stream_ended(stream)) {
        dn_ofi_stream_turn(stream, DN_OFI_TX_OPEN == stream->state ? DN_OFI_TX_DEAD : DN_OFI_TX_REFUSED);
    }
}

/**
 * The owner of a peer; each arrow is one dn_ofi_peer_turn(). Whether the port holds the peer lost is in dn_peer_base_t::life.
 *
 *   STRANGER ---> KNOWN ---> GOING
 *      |                       ^
 *      +-----------------------+
 */
enum dn_ofi_owner {
    DN_OFI_STRANGER, /**< the device: the watcher has met the peer, whose messages wait for the port */
    DN_OFI_KNOWN,    /**< the device and the port */
    DN_OFI_GOING,    /**< the peer is being freed: its messages are dropped */
};

/**
 * A peer's stream to this process; each arrow is one dn_ofi_rx_turn():
 *
 *          its PROOF         its LEAVE            LEFT is said
 *   NONE ------------> OPEN ----------> LEAVES <---------------> LEFT
 *    ^                  |                 |      asked again      |
 *    +------------------+-----------------+-----------------------+   forgotten, or the next stream begins
 *
 * A process sends to itself without a stream: NONE, and LEFT from its disconnect on.
 */
enum dn_ofi_rx_state {
    DN_OFI_RX_NONE,
    DN_OFI_RX_OPEN,
    DN_OFI_RX_LEAVES, /**< LEFT waits for room */
    DN_OFI_RX_LEFT,
};

/** Words that wait for room. */
enum {
    DN_OFI_OWES_PONG = 1u,
    DN_OFI_OWES_CREDIT = 2u, /**< the last CREDIT is to be sent again */
};

typedef struct dn_ofi_peer {
    dn_peer_base_t base;
    enum dn_ofi_owner owner;
    dn_ofi_stream_t *tx; /**< stream to the peer; NULL: there is no stream */
    dn_ofi_node_t *node;
    uint8_t exchange[DN_AUTH_EXCHANGE]; /**< of its group */
    dn_auth_side_t side;                /**< its side of streams, but for the random bytes */
    uint32_t credit_max;                /**< lines that a stream to the peer may have there */
    int self;
    int contends;                 /**< not 0: the peer runs only on cores where this process may run */
    enum dn_peer_doubt condemned; /**< why the peer is to be doubted, once that is logged: dn_ofi_condemn() */
    int pidfd;                    /**< of its process, if it is on this host; else -1; or DN_PROCESS_ENDED */

    /** Its stream to this process. */
    struct {
        enum dn_ofi_rx_state state;
        uint32_t owes;  /**< DN_OFI_OWES_ */
        uint64_t token; /**< 0: none */
        dn_auth_pair_t pair;
        struct dn_ofi_peer *next;      /**< of its bucket */
        uint64_t number;               /**< expected next */
        uint64_t lines;                /**< lines that came, in all */
        uint64_t taken;                /**< lines of messages that are done, in all */
        uint64_t told;                 /**< lines taken of which the sender knows */
        uint64_t question;             /**< the newest question of its PINGs */
        dn_ofi_buffer_t *early;        /**< messages that have overtaken others, sorted by number */
        uint64_t early_lines;          /**< lines of `early`: the sender's credit covers them, too */
        dn_ofi_buffer_t *first, *last; /**< messages that wait for handlers */
        uint32_t later; /**< sum of dn_ofi_buffer_t::later of these, and of those whose handlers run */
        uint32_t depth; /**< its handlers that run now, one inside the other */
        int queued;     /**< the peer is in ofi->ready */
        dn_queue_item_t ready;
    } rx;

    /** PUSH and PULL: dn_ofi_op.c */
    struct {
        dn_fifo_t ops;   /**< dn_ofi_op_t in flight */
        uint32_t handed; /**< operations that the core processor does again; they are not in `ops` */
        uint64_t fenced; /**< RMA starts when messages below this number have come; 0: RMA need not wait */
        uint64_t flying; /**< bytes of their parts that the provider has */
    } rma;

    /** Does the peer live? dn_ofi_watch.c */
    struct {
        uint32_t signs;    /**< number of signs of life */
        uint32_t signs_at; /**< `signs` when `since` was set */
        uint64_t since;
    } watch;

    struct dn_ofi_peer *next; /**< of ofi->peers */
} dn_ofi_peer_t;

/** A segment of this process. */
typedef struct dn_ofi_segment {
    uint8_t *base; /**< NULL: there is no segment of this SID */
    uint64_t len;
    uint32_t generation;
    struct fid_mr *mr; /**< NULL: peers reach the segment by messages only */
} dn_ofi_segment_t;

/** By state: the states that may follow (dn_turn.h). */
extern const uint32_t dn_ofi_peer_turns[], dn_ofi_rx_turns[];

static inline void dn_ofi_peer_turn(dn_ofi_peer_t *peer, enum dn_ofi_owner to)
{
    dn_turn_check("a peer of ofi", dn_ofi_peer_turns, peer->owner, to);
    peer->owner = to;
}

static inline void dn_ofi_rx_turn(dn_ofi_peer_t *peer, enum dn_ofi_rx_state to)
{
    dn_turn_check("what a peer of ofi sends", dn_ofi_rx_turns, peer->rx.state, to);
    peer->rx.state = to;
}

/** Has a peer's LEAVE come? */
static inline int dn_ofi_rx_has_left(const dn_ofi_peer_t *peer)
{
    return DN_OFI_RX_LEAVES <= peer->rx.state;
}

/** A PUSH or PULL. */
typedef struct dn_ofi_op {
    dn_queue_item_t item; /**< first: in dn_ofi_peer_t::rma.ops, then in done */
    dn_ofi_peer_t *peer;
    dn_xfer_t xfer; /**< points to copies: the next two members */
    dn_key_t whole_key;
    dn_xfer_sides_t sides;
    dn_sg_cursor_t local_at, remote_at;
    uint64_t remote; /**< the number to add to an offset in the segment, for the provider */
    uint64_t key;
    struct fid_mr *mr;        /**< of the local memory, where the provider wants a registration */
    struct dn_ofi_part *part; /**< parts that the provider has */
    int write;
    int failed; /**< not 0: the provider has failed, and the core processor is to do the operation again */
    dn_status_t status;
} dn_ofi_op_t;

/** One call of fi_writemsg or fi_readmsg. */
typedef struct dn_ofi_part {
    dn_ofi_request_t request;
    dn_ofi_op_t *op; /**< NULL: given up */
    uint64_t len;
    struct dn_ofi_part *next; /**< of op->part, or of ofi->parts */
} dn_ofi_part_t;

/** A process that has said a HELLO which needs the key. It has still to prove that the HELLO is new, and not a copy. */
typedef struct dn_ofi_applicant {
    struct dn_ofi_applicant *next;
    uint64_t token;
    uint64_t number; /**< of its PROOF */
    uint64_t since;
    uint32_t pid;
    dn_pgid_t pgid;
    dn_ofi_where_t where;
    dn_ofi_node_t *node;
    dn_auth_pair_t pair;
    dn_ofi_challenge_t challenge;
    dn_ofi_buffer_t *early; /**< messages that have come so far, oldest first */
    uint64_t lines;         /**< of `early` */
} dn_ofi_applicant_t;

/**
 * The watcher's life; each arrow is one dn_ofi_watch_turn():
 *
 *   NONE ---> SLEEPS <---> READS
 *    ^         |  ^
 *    +---------+  +------> NAPS
 */
enum dn_ofi_watch_state {
    DN_OFI_WATCH_NONE,   /**< there is no thread */
    DN_OFI_WATCH_SLEEPS, /**< it sleeps while nothing comes, or looks after peers */
    DN_OFI_WATCH_READS,  /**< it reads what came, without the port's lock */
    DN_OFI_WATCH_NAPS,   /**< it naps while the program reads what comes */
};

typedef struct dn_ofi {
    dn_iface_t iface;
    pthread_mutex_t lock;
    int threads;
    uint32_t max_senders; /**< dn_config_t::max_peers more than the job has processes */
    dn_auth_mode_t auth;
    uint64_t first;       /**< dn_config_t::first */
    uint64_t timeout_ns;  /**< 0: no peer is given up because it is silent */
    dn_ofi_where_t where; /**< of this process */
    uint32_t units;
    uint32_t contenders;

    const dn_ofi_lib_t *lib;
    struct fi_info *info;
    char name_text[2 * DN_OFI_NAME_MAX]; /**< of its endpoint, for people */
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_cq *cq;
    int cq_fd; /**< a file that can be read while the network can be read: dn_ofi_network_file(); -1: no such file */
    struct fid_av *av;
    struct fid_ep *ep;     /**< NULL: closed, and every peer is lost */
    struct fid_ep *rma_ep; /**< the endpoint of PUSH and PULL: dn_ofi_rma_endpoint(); NULL: it is not open */
    int rma_wanted;        /**< the configuration lets RMA be used */
    int rma;               /**< PULL goes by fi_readmsg() */
    int delivery;          /**< PUSH goes by fi_writemsg(): the provider has FI_DELIVERY_COMPLETE */
    uint64_t mr_mode;
    int local;         /**< not 0: the provider reaches processes of this host only */
    uint64_t key_mask; /**< bits of a key */
    size_t iov_limit;  /**< most local iovecs in one call of RMA */
    size_t rma_iov_limit;
    size_t inject;
    uint32_t tx_left; /**< operations that the provider still takes */
    /** the last so many are for words only: a peer that gets no answer gives this process up */
    uint32_t tx_words;
    /** most messages of one stream at the provider: a peer that takes none leaves room for other peers */
    uint32_t tx_most;
    uint32_t rx_want; /**< receives to be kept posted */
    uint32_t rx_posted;

    dn_ofi_pool_t pool[DN_OFI_POOLS]; /**< by length */
    dn_ofi_part_t *parts;             /**< free */
    dn_ofi_node_t *nodes;
    dn_ofi_stream_t **stream; /**< by number, NULL: free */
    uint32_t nstreams;
    uint32_t draining; /**< streams without a peer */
    dn_ofi_peer_t *peers;
    uint32_t npeers;
    uint32_t nsenders; /**< peers with a stream to this process */
    dn_ofi_peer_t *bucket[DN_OFI_BUCKETS];
    dn_fifo_t ready; /**< dn_ofi_peer_t::rx.ready of the peers with messages for handlers */
    uint32_t nready;
    dn_guests_t guests;            /**< groups that are let in */
    dn_ofi_applicant_t *applicant; /**< oldest first */
    uint32_t napplicants;
    uint32_t greeting;         /**< streams that were not open yet at the last look */
    uint64_t greet_at;         /**< when the next of these streams says HELLO */
    int told;                  /**< not 0: it was logged that a host has another byte order */
    dn_fifo_t done;            /**< dn_ofi_op_t, to be signalled, or to be done by the core processor */
    int resetting;             /**< not 0: the device itself ends RMA in flight, so failures mean nothing */
    dn_ofi_segment_t *segment; /**< by SID */
    uint32_t nsegments;

    dn_ofi_stream_t *gathering; /**< streams with messages that wait for more messages to go with them */

    /** dn_ofi_loan.c */
    struct {
        dn_fifo_t out;  /**< loans that the provider reads */
        dn_fifo_t back; /**< loans to be signalled */
        dn_fifo_t spare;
    } loan;

    int work;  /**< something waits for room */
    int retry; /**< an applicant that has sent its PROOF may be let in now */
    int unmet; /**< the watcher has met peers that the port does not know yet */
    int reap;  /**< some peer may be freed */
    int closing;
    uint64_t looked; /**< time of the last look at the network, while there was no peer */
    uint64_t called; /**< time of the last call of progress that has looked at the clock */
    uint32_t lively; /**< so many looks in vain are left until calls are left out again */

    uint64_t turns; /**< turns in which a thread of the program has read: dn_ofi_take_turn() */
    /** there may be completions that no turn has read: the last look found some, or something was posted since, which the provider may have
     * completed at once. The file of the network tells of none of them */
    int backlog;
    int awaited; /**< an operation of the program was told to wait: the next event rings */

    /** The thread of dn_ofi_watch.c. */
    struct {
        enum dn_ofi_watch_state state;
        pthread_t thread;
        int event;  /**< wakes the watcher: it has to look again, or to end */
        int guards; /**< the watcher sends what is gathered soon, even if the application makes no progress */
        dn_awake_t awake;
        dn_lull_t lull;
        uint64_t turns; /**< dn_ofi_t::turns at the watcher's last look */
        uint64_t
            handed; /**< dn_ofi_t::turns when a thread of the program last went to sleep: dn_ofi_hand_on() */
        uint64_t looked; /**< when any thread last looked after streams */
    } watcher;

    uint32_t after;     /**< DN_OFI_AFTER_CALL and so on: what is done when the lock is let go */
    dn_log_later_t log; /**< what is logged then */
} dn_ofi_t;

/** What is done when the lock is let go: dn_ofi_unlock(). */
enum {
    DN_OFI_AFTER_CALL = 1u,    /**< the watcher is woken */
    DN_OFI_AFTER_RING = 2u,    /**< the bell is touched */
    DN_OFI_AFTER_CONDEMN = 4u, /**< condemned peers are suspected */
};

/** By state: the states that may follow (dn_turn.h). */
extern const uint32_t dn_ofi_watch_turns[];

static inline void dn_ofi_watch_turn(dn_ofi_t *ofi, enum dn_ofi_watch_state to)
{
    dn_turn_check("the watcher of ofi", dn_ofi_watch_turns, ofi->watcher.state, to);
    ofi->watcher.state = to;
}

#endif
