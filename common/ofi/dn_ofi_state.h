/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ofi_state.h
 * What the ofi device keeps: buffers, streams, peers, transfers, groups and applicants, with the numbers that bound them. All of it
 * is guarded by ofi->lock (dn_ofi_int.h), the states among it; only dn_peer_base_t::life and ::doubt have orders of their own
 * (dn_device.h).
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
#include "dn_ofi_wire.h"
#include "dn_sg.h"
#include "dn_thread.h"

/** Bytes of a message with its head. What is not contiguous goes in such messages: 1 MiB in blocks of 64 B takes
 * 1.24 times as long as a contiguous one (perf/dn_latency over tcp), with a quarter of the bytes more than twice. */
#define DN_OFI_MESSAGE_MAX (65u * 1024)
/** Longest that ofi_rxm sends at once, without being asked (its FI_OFI_RXM_BUFFER_SIZE). */
#define DN_OFI_RXM_EAGER (16u * 1024)
/** Bytes of buffers for messages that wait: what 1 KiB takes must not depend on how long others are. Messages of up to MIDDLE may go out
 * with others: 4 KiB of an application with all heads are among them. */
#define DN_OFI_SMALL  512u
#define DN_OFI_MIDDLE 4608u
/** Longest message of a peer at least: pieces of 512 bytes and their heads, into which those above cut what is long. */
#define DN_OFI_BOTF_MIN 576u
#define DN_OFI_RINGS \
    16u /**< credit_max in the ring_lines of the configuration: credit is longer on its way here */
#define DN_OFI_CREDIT_MAX 8192u /**< lines */
/** Receives kept posted where the provider holds back senders (FI_RM_ENABLED). */
#define DN_OFI_RX 16u
/** and where it does not: at most, of the longest buffers. */
#define DN_OFI_RX_MAX 128u
/** Operations of each kind in flight at most, whatever the provider would take. */
#define DN_OFI_QUEUE_MAX 1024u
#define DN_OFI_IOV       8u           /**< iovecs given to one call */
#define DN_OFI_PART      (256u << 10) /**< longest single RMA operation */
#define DN_OFI_FLYING \
    (2u << 20) /**< bytes of RMA with a peer at a time (perf/dn_bw of 1 MiB: 2.8 \
                GB/s; 4 MiB in parts of 1 MiB: 1.7) */
#define DN_OFI_PLACE_BITS \
    20u /**< of a token; the others are random, as different senders' must not be alike */
#define DN_OFI_PUSH_NS UINT64_C(10000000) /**< for which disconnecting sends what it can */
/** HELLO is said again after so long, then after twice as long each time. */
#define DN_OFI_GREET_NS UINT64_C(4000000)
/** For which an answer is waited for before it is asked for again. */
#define DN_OFI_ASK_NS    UINT64_C(250000000)
#define DN_OFI_BUCKETS   1024u                /**< of the table of incoming streams */
#define DN_OFI_LINGER_NS UINT64_C(1000000000) /**< for which closing waits for others at most */

/** What is called of libfabric by name; the rest is reached through its
 * objects. */
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

/** An address of the vector, shared by what names it. */
typedef struct dn_ofi_node {
    struct dn_ofi_node *next;
    fi_addr_t addr;
    uint32_t users;
    uint32_t len;
    uint64_t newest; /**< token of the stream to it that was opened last */
    uint8_t
        name[DN_OFI_NAME_MAX + 1]; /**< 0 behind it: a provider reads as many bytes as its own names have */
} dn_ofi_node_t;

/** Memory for one message, to send or received. The message begins at bytes. */
typedef struct dn_ofi_buffer {
    dn_ofi_request_t request;
    struct dn_ofi_buffer *next;
    struct dn_ofi_stream *stream; /**< it is sent on */
    struct dn_ofi_loan *loan;     /**< the memory that is sent behind it, or NULL */
    void *desc;                   /**< of its registration, where the provider wants one */
    uint32_t room;
    uint32_t size;  /**< bytes in it */
    uint32_t lines; /**< of credit */
    uint32_t later; /**< received: 1 where it asks for what only the core processor's handler can do */
    _Alignas(8) uint8_t bytes[];
} dn_ofi_buffer_t;

/** Memory of a sender that is sent where it lies. */
typedef struct dn_ofi_loan {
    dn_queue_item_t item; /**< of dn_ofi_t::loan: in one of its queues */
    dn_ofi_buffer_t *buffer;
    dn_comp_t *comp;
    dn_status_t status;
} dn_ofi_loan_t;

/** Put a message behind those that wait. last is undefined while first is NULL.
 */
static inline void dn_ofi_put_last(dn_ofi_buffer_t **first, dn_ofi_buffer_t **last, dn_ofi_buffer_t *buffer)
{
    buffer->next = NULL;
    *(NULL == *first ? first : &(*last)->next) = buffer;
    *last = buffer;
}

/** Buffers of one size; grows, and shrinks only when the port closes. */
typedef struct dn_ofi_slab {
    struct dn_ofi_slab *next;
    struct fid_mr *mr;
    _Alignas(64) uint8_t bytes[];
} dn_ofi_slab_t;

typedef struct dn_ofi_pool {
    dn_ofi_buffer_t *free;
    dn_ofi_slab_t *slab;
    uint32_t room;
    uint32_t each; /**< buffers a slab */
} dn_ofi_pool_t;

enum { DN_OFI_SHORT, DN_OFI_MEDIUM, DN_OFI_LONG, DN_OFI_POOLS };

/**
 * The life of what we send to a peer; each arrow is one dn_ofi_stream_turn():
 *
 *   GREETS ---> OPEN ---> DEAD
 *     |
 *     +-------> REFUSED
 *
 * It GREETS by HELLO until the peer's CHALLENGE comes; with that it has keys. It ends when the peer refuses it, or has taken its LEAVE,
 * when the provider fails, or when the peer is lost. A stream without a peer has been left, and is freed when it has ended.
 */
enum dn_ofi_tx_state {
    DN_OFI_TX_GREETS,  /**< what is sent waits with us */
    DN_OFI_TX_REFUSED, /**< nothing more is sent, and there never were keys */
    DN_OFI_TX_OPEN,    /**< messages go out */
    DN_OFI_TX_DEAD,    /**< nothing more is sent; words of its receiver are still read */
};

/** What we send to a peer. Outlives the peer until all of it has been taken. */
typedef struct dn_ofi_stream {
    uint64_t token; /**< its last DN_OFI_PLACE_BITS: place in ofi->stream */
    enum dn_ofi_tx_state state;
    struct dn_ofi_peer *peer; /**< NULL: it was left */
    dn_ofi_node_t *node;
    uint64_t
        before; /**< token of the stream to the same process ahead of it: it begins when that has gone out */
    uint64_t back;            /**< token of the peer's stream to us when the peer was freed, 0: none */
    dn_auth_pair_t back_pair; /**< of that stream */
    dn_auth_pair_t pair;      /**< once it is open */

    /** How it is opened: dn_ofi_greet.c */
    struct {
        dn_auth_root_t root;
        dn_auth_side_t ours, theirs; /**< the random bytes of theirs come with the CHALLENGE */
        uint64_t since;              /**< when the stream was made */
        uint64_t at;                 /**< when HELLO is said next, */
        uint64_t gap;                /**< and the pause behind that */
    } greet;

    uint64_t number; /**< of the next message; it began at dn_config_t::first, as did `sent` and `credit` */
    uint32_t room;   /**< bytes of messages with their heads that go out together, at most */
    uint32_t credit_max;
    uint64_t sent;                 /**< lines, ever */
    uint64_t credit;               /**< lines taken, ever: at most credit_max behind sent */
    uint32_t held;                 /**< lines of first .. last, and of windows not yet kicked */
    uint32_t flying;               /**< buffers that the provider has */
    dn_ofi_buffer_t *first, *last; /**< wait for credit, or for the provider */
    uint64_t stores;               /**< number behind its last AOTF; 0: there was none */
    uint64_t stored;               /**< numbers below are known to have come */

    /** Short messages that go out together: dn_ofi_queue.c */
    struct {
        uint64_t turn;     /**< ofi->turns when the burst began */
        uint64_t sent_at;  /**< when the last of them was sent */
        uint32_t messages; /**< since it began */
        int gathers;       /**< the stream is in ofi->gathering */
        struct dn_ofi_stream *next;
    } burst;

    /** The PING that is not answered yet: dn_ofi_word.c */
    struct {
        uint64_t number; /**< which it was, or the last */
        uint64_t at;     /**< when it was sent last, 0: it is answered; */
        uint64_t since;  /**< and first */
    } asks;

    /** Does it come? dn_ofi_watch.c */
    struct {
        uint32_t unheard; /**< looks since `stored` has grown */
        uint64_t seen;    /**< `stored` at the last look */
    } watch;
} dn_ofi_stream_t;

/** By state: those that may follow (dn_turn.h). */
extern const uint32_t dn_ofi_stream_turns[];

static inline void dn_ofi_stream_turn(dn_ofi_stream_t *stream, enum dn_ofi_tx_state to)
{
    dn_turn_check("a stream of ofi", dn_ofi_stream_turns, stream->state, to);
    stream->state = to;
}

/** Is nothing more sent on it? */
static inline int dn_ofi_stream_ended(const dn_ofi_stream_t *stream)
{
    return DN_OFI_TX_REFUSED == stream->state || DN_OFI_TX_DEAD == stream->state;
}

/** Was it opened, so that its receiver's words can be told from others? */
static inline int dn_ofi_stream_keyed(const dn_ofi_stream_t *stream)
{
    return DN_OFI_TX_OPEN <= stream->state;
}

/** Send nothing more on it, if that has not been said before. */
static inline void dn_ofi_stream_end(dn_ofi_stream_t *stream)
{
    if (!dn_ofi_stream_ended(stream)) {
        dn_ofi_stream_turn(stream, DN_OFI_TX_OPEN == stream->state ? DN_OFI_TX_DEAD : DN_OFI_TX_REFUSED);
    }
}

/**
 * Whose a peer is; each arrow is one dn_ofi_peer_turn(). What the port has of it, lost or not, is dn_peer_base_t::life.
 *
 *   STRANGER ---> KNOWN ---> GOING
 *      |                       ^
 *      +-----------------------+
 */
enum dn_ofi_owner {
    DN_OFI_STRANGER, /**< the device's: the watcher has met it, and what it says waits for the port */
    DN_OFI_KNOWN,    /**< the port's, too */
    DN_OFI_GOING,    /**< it is being freed: what it says now is said to nobody */
};

/**
 * What a peer sends to us; each arrow is one dn_ofi_rx_turn():
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
    DN_OFI_OWES_CREDIT = 2u, /**< the last one is to be said again */
};

typedef struct dn_ofi_peer {
    dn_peer_base_t base;
    enum dn_ofi_owner owner;
    dn_ofi_stream_t *tx; /**< NULL: not open */
    dn_ofi_node_t *node;
    uint8_t exchange[DN_AUTH_EXCHANGE]; /**< of its group */
    dn_auth_side_t side;                /**< its side of streams, but for the random bytes */
    uint32_t credit_max;                /**< lines that it lets us have there */
    int self;
    int contends; /**< runs only where we may */
    int pidfd;    /**< of its process when that is on this host, else -1; or DN_PROCESS_ENDED */

    /** Its stream to us. */
    struct {
        enum dn_ofi_rx_state state;
        uint32_t owes;  /**< DN_OFI_OWES_ */
        uint64_t token; /**< 0: none */
        dn_auth_pair_t pair;
        struct dn_ofi_peer *next;      /**< of its bucket */
        uint64_t number;               /**< expected next */
        uint64_t lines;                /**< that came, ever */
        uint64_t taken;                /**< lines whose handlers have run, ever */
        uint64_t told;                 /**< of which the sender knows */
        uint64_t question;             /**< the newest that its PINGs have asked */
        dn_ofi_buffer_t *early;        /**< came ahead of others, by number */
        uint64_t early_lines;          /**< of early, which the sender has credit for, too */
        dn_ofi_buffer_t *first, *last; /**< for handlers */
        uint32_t later;                /**< dn_ofi_buffer_t::later of those, added up */
        uint32_t depth;                /**< its handlers running, one inside the other */
        int queued;                    /**< the peer is in ofi->ready */
        dn_queue_item_t ready;
    } rx;

    /** PUSH and PULL: dn_ofi_op.c */
    struct {
        dn_fifo_t ops;   /**< dn_ofi_op_t in flight */
        uint32_t handed; /**< of those no more in flight, for the core processor */
        uint64_t fenced; /**< number of the message behind which RMA may start; 0: it need not wait */
        uint64_t flying; /**< bytes of their parts that the provider has */
    } rma;

    /** Does it live? dn_ofi_watch.c */
    struct {
        uint32_t signs;    /**< of life, counted */
        uint32_t signs_at; /**< when `since` was set */
        uint64_t since;
    } watch;

    struct dn_ofi_peer *next; /**< of ofi->peers */
} dn_ofi_peer_t;

/** A segment of this process. */
typedef struct dn_ofi_segment {
    uint8_t *base; /**< NULL: there is none of this SID */
    uint64_t len;
    uint32_t generation;
    struct fid_mr *mr; /**< NULL: it is reached by messages only */
} dn_ofi_segment_t;

/** By state: those that may follow (dn_turn.h). */
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

/** Has its LEAVE come? */
static inline int dn_ofi_rx_has_left(const dn_ofi_peer_t *peer)
{
    return DN_OFI_RX_LEAVES <= peer->rx.state;
}

/** A PUSH or PULL. */
typedef struct dn_ofi_op {
    dn_queue_item_t item; /**< first: in dn_ofi_peer_t::rma.ops, then in done */
    dn_ofi_peer_t *peer;
    dn_xfer_t xfer; /**< what it points to are copies: the next five */
    dn_key_t whole_key;
    dn_sg_t local_sg, remote_sg;
    dn_prog_use_t local_use;
    dn_block_t *block;
    dn_sg_cursor_t local_at, remote_at;
    uint64_t remote; /**< what the provider wants added to a place in the segment */
    uint64_t key;
    struct fid_mr *mr;        /**< of the local memory, where the provider wants that */
    struct dn_ofi_part *part; /**< those that the provider has */
    int write;
    int failed; /**< by the provider: the core processor is to do it again */
    dn_status_t status;
} dn_ofi_op_t;

/** One call of fi_writemsg or fi_readmsg. */
typedef struct dn_ofi_part {
    dn_ofi_request_t request;
    dn_ofi_op_t *op; /**< NULL: given up */
    uint64_t len;
    struct dn_ofi_part *next; /**< of op->part, or of ofi->parts */
} dn_ofi_part_t;

/** A process that has said HELLO as only one with the key can, and has still to prove that it says so now. */
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
    dn_ofi_buffer_t *early; /**< messages that came by now, oldest first */
    uint64_t lines;         /**< of them */
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
    DN_OFI_WATCH_SLEEPS, /**< while nothing comes; or it looks after peers */
    DN_OFI_WATCH_READS,  /**< what came, without the port's lock */
    DN_OFI_WATCH_NAPS,   /**< while the program reads what comes */
};

typedef struct dn_ofi {
    dn_iface_t iface;
    pthread_mutex_t lock;
    int threads;
    uint32_t max_senders; /**< dn_config_t::max_peers more than the job has processes */
    dn_auth_mode_t auth;
    uint64_t first;       /**< dn_config_t::first */
    uint64_t timeout_ns;  /**< 0: nobody is given up for being silent */
    dn_ofi_where_t where; /**< of this process */
    uint32_t units;
    uint32_t contenders;

    const dn_ofi_lib_t *lib;
    struct fi_info *info;
    char name_text[2 * DN_OFI_NAME_MAX]; /**< of its endpoint, for people */
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_cq *cq;
    int cq_fd; /**< can be read while there is something to read from the network: dn_ofi_network_file(); -1: no such file */
    struct fid_av *av;
    struct fid_ep *ep;     /**< NULL: closed, and everybody is lost */
    struct fid_ep *rma_ep; /**< by which PUSH and PULL are started:
                            dn_ofi_rma_endpoint(). NULL: none yet */
    int rma_wanted;        /**< by the configuration */
    int rma;               /**< PULL by fi_read */
    int delivery;          /**< PUSH by fi_write: FI_DELIVERY_COMPLETE is there */
    uint64_t mr_mode;
    int local;         /**< reaches processes of this host only */
    uint64_t key_mask; /**< bits of a key */
    size_t iov_limit;  /**< of ours in one call of RMA */
    size_t rma_iov_limit;
    size_t inject;
    uint32_t tx_left;  /**< operations that the provider still takes, */
    uint32_t tx_words; /**< the last of them words alone: a peer that gets no answer gives this process up; */
    uint32_t tx_most;  /**< and messages of one stream: a peer that takes none leaves room for the others */
    uint32_t rx_want;  /**< receives to be kept posted */
    uint32_t rx_posted;

    dn_ofi_pool_t pool[DN_OFI_POOLS]; /**< by length */
    dn_ofi_part_t *parts;             /**< free */
    dn_ofi_node_t *nodes;
    dn_ofi_stream_t **stream; /**< by number, NULL: free */
    uint32_t nstreams;
    uint32_t draining; /**< streams without a peer */
    dn_ofi_peer_t *peers;
    uint32_t npeers;
    uint32_t nsenders; /**< peers with a stream to us */
    dn_ofi_peer_t *bucket[DN_OFI_BUCKETS];
    dn_fifo_t ready; /**< dn_ofi_peer_t::rx.ready of those with messages for handlers */
    uint32_t nready;
    dn_guests_t guests;            /**< groups that are let in */
    dn_ofi_applicant_t *applicant; /**< oldest first */
    uint32_t napplicants;
    uint32_t greeting;         /**< streams that were not open yet at the last look */
    uint64_t greet_at;         /**< when the next of them says HELLO */
    int told;                  /**< that somebody cannot be understood */
    dn_fifo_t done;            /**< dn_ofi_op_t, to be signalled, or to be done by the core processor */
    int resetting;             /**< failures of RMA are of our own making */
    dn_ofi_segment_t *segment; /**< by SID */
    uint32_t nsegments;

    dn_ofi_stream_t *gathering; /**< with messages that wait for others to go with them */

    /** dn_ofi_loan.c */
    struct {
        dn_fifo_t out;  /**< the provider reads them */
        dn_fifo_t back; /**< to be signalled */
        dn_fifo_t spare;
    } loan;

    int work;  /**< something waits for room */
    int retry; /**< an applicant that has proved itself may be let in now */
    int unmet; /**< the watcher has met peers, which the port does not know yet */
    int reap;  /**< some peer may be freed */
    int closing;
    uint64_t looked; /**< at the network, while there was no peer */
    uint64_t called; /**< progress, last */
    uint32_t lively; /**< looks in vain until calls are left out again */

    uint64_t turns; /**< in which somebody else than the watcher has read: dn_ofi_take_turn() */
    int backlog;    /**< there may be completions that the last turn of anybody has not read */

    /** The thread of dn_ofi_watch.c. */
    struct {
        enum dn_ofi_watch_state state;
        pthread_t thread;
        int event;  /**< wakes it: it has to look again, or to end */
        int guards; /**< it sends what is gathered soon, whatever the application does */
        int calls;  /**< it is to be told so */
        dn_awake_t awake;
        dn_lull_t lull;
        uint64_t turns;  /**< dn_ofi_t::turns when it looked last */
        uint64_t looked; /**< when somebody looked after streams last */
    } watcher;
} dn_ofi_t;

/** By state: those that may follow (dn_turn.h). */
extern const uint32_t dn_ofi_watch_turns[];

static inline void dn_ofi_watch_turn(dn_ofi_t *ofi, enum dn_ofi_watch_state to)
{
    dn_turn_check("the watcher of ofi", dn_ofi_watch_turns, ofi->watcher.state, to);
    ofi->watcher.state = to;
}

#endif
