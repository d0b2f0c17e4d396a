/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ofi_int.h
 * The ofi device: any network that libfabric has an RDM endpoint for. One
 * endpoint, completion queue and address vector a port; every message goes
 * through them.
 *
 * A sender opens a *stream* to a peer with a HELLO that says who it is and
 * names the stream by a token of its own. It says HELLO again until the peer
 * answers by a CHALLENGE; what is sent meanwhile waits with the sender, behind
 * the PROOF that the peer asks for (dn_auth.h, dn_ofi_greet.c). So a receiver
 * keeps nothing of processes that have not proved who they are. All messages of
 * the stream carry its token and a number. The receiver puts them in order by the number,
 * so a provider need not keep order (FI_ORDER_SAS). Numbers of messages and
 * counts of lines have 64 bits and never wrap: what is known of them may stand
 * still for any time, such as that of the last AOTF. AOTF is such a message,
 * too, stored by the target's progress: a provider's RMA write would promise
 * neither one store nor an order after messages.
 *
 * Credit: the receiver lets a stream have `window` lines of 64 B in its memory;
 * beyond that the sender keeps as much again, then answers DN_ERR_AGAIN. A
 * stream ends with LEAVE, acknowledged by LEFT.
 *
 * PUSH and PULL are fi_writemsg with FI_DELIVERY_COMPLETE, and fi_readmsg, on
 * keys made by dn_ofi_segment_register(); what does not fit that returns
 * DN_ERR_UNSUPPORTED and is the core processor's, as are all atomic operations.
 *
 * Locks: ofi->lock guards everything here and serialises calls of libfabric. It
 * is a leaf: taken after the port's, and no handler, completion or
 * dn_port_peer_lost() is called under it. With a time limit it is taken in a
 * process of one thread, too, for there is the watcher's (dn_ofi_watch.c),
 * which never has the port's.
 */
#ifndef DN_OFI_INT_H
#define DN_OFI_INT_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "dn_atomic.h"
#include "dn_device.h"
#include "dn_ofi_wire.h"
#include "dn_sg.h"

/** Bytes of a message with its head. What is not contiguous goes in such messages: 1 MiB in blocks of 64 B takes
 * 1.24 times as long as a contiguous one (perf/dn_latency over tcp), with a quarter of the bytes more than twice. */
#define DN_OFI_MESSAGE_MAX (64u * 1024)
/** Longest that ofi_rxm sends at once, without being asked (its FI_OFI_RXM_BUFFER_SIZE). */
#define DN_OFI_RXM_EAGER (16u * 1024)
/** Bytes of buffers for messages that wait: what 1 KiB takes must not depend on how long others are. */
#define DN_OFI_SMALL  512u
#define DN_OFI_MIDDLE 4096u
/** Longest message of a peer at least: pieces of 512 bytes and their heads, into which those above cut what is long. */
#define DN_OFI_BOTF_MIN 576u
#define DN_OFI_RINGS \
    8u /**< a window in the ring_lines of the configuration: credit is longer on its way here */
#define DN_OFI_WINDOW_MAX 4096u /**< lines */
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

/** In place of a handle on a process: it had ended before its HELLO was read, as short-lived ones do. */
#define DN_OFI_ENDED (-2)

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
    void *desc;                   /**< of its registration, where the provider wants one */
    uint32_t room;
    uint32_t size;  /**< bytes in it */
    uint32_t lines; /**< of credit */
    _Alignas(8) uint8_t bytes[];
} dn_ofi_buffer_t;

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

/** What we send to a peer. Outlives the peer until all of it has been taken. */
typedef struct dn_ofi_stream {
    uint64_t token; /**< its last DN_OFI_PLACE_BITS: place in ofi->stream */
    uint64_t
        before; /**< token of the stream to the same process ahead of it: it begins when that has gone out */
    struct dn_ofi_peer *peer;
    dn_ofi_node_t *node;
    uint64_t back;            /**< token of the peer's stream to us when the peer was freed,
                    0: none */
    dn_auth_pair_t back_pair; /**< of that stream */
    int open;                 /**< it was challenged: messages go out */
    dn_auth_root_t root;
    dn_auth_side_t ours, theirs; /**< the random bytes of theirs come with the CHALLENGE */
    dn_auth_pair_t pair;         /**< once it is open */
    uint64_t since;              /**< when it was made */
    uint64_t greet_at;           /**< when HELLO is said next, */
    uint64_t greet_gap;          /**< and the pause behind that */
    uint64_t number; /**< of the next message; it began at dn_config_t::first, as did `sent` and `credit` */
    uint32_t room;   /**< bytes of the longest message that its receiver takes, with its head */
    uint32_t window;
    uint64_t sent;                 /**< lines, ever */
    uint64_t credit;               /**< lines taken, ever: at most window behind sent */
    uint32_t held;                 /**< lines of first .. last, and of windows not yet kicked */
    uint32_t flying;               /**< buffers that the provider has */
    dn_ofi_buffer_t *first, *last; /**< wait for credit, or for the provider */
    uint64_t stores;               /**< number behind its last AOTF; 0: there was none */
    uint64_t stored;               /**< numbers below are known to have come */
    int asked;                     /**< a PING is not answered yet */
    uint64_t question;             /**< which it was, or the last */
    uint64_t asked_at;             /**< when it was sent last, */
    uint64_t asked_since;          /**< and first */
    uint64_t turn;                 /**< ofi->turns when its burst began */
    uint32_t burst;                /**< messages since */
    uint64_t sent_at;              /**< when the last of them was sent */
    int gathers;                   /**< is in ofi->gathering */
    struct dn_ofi_stream *gathering_next;
    uint32_t unheard; /**< looks since what came of it has grown */
    uint64_t seen;    /**< stored at the last look */
    int leaving;      /**< its LEAVE is queued */
    int dead;         /**< nothing more is sent */
} dn_ofi_stream_t;

typedef struct dn_ofi_peer {
    dn_peer_base_t base;
    dn_ofi_stream_t *tx; /**< NULL: not open */
    dn_ofi_node_t *node;
    uint8_t exchange[DN_AUTH_EXCHANGE]; /**< of its group */
    dn_auth_side_t side;                /**< its side of streams, but for the random bytes */
    uint32_t window;                    /**< lines that it lets us have there */
    int self;
    int contends;        /**< runs only where we may */
    int pidfd;           /**< of its process when that is on this host, else -1; or DN_OFI_ENDED */
    _Atomic int suspect; /**< found gone; the next progress says so */
    int parted;          /**< it has said itself that it takes, or sends, no more */
    uint32_t refusals;   /**< since its life was last looked at */
    int stranger;        /**< met by the watcher: not the port's yet */
    int going;           /**< is being freed: what it says now is said to nobody */

    uint64_t rx_token;             /**< of its stream to us, 0: none */
    dn_auth_pair_t rx_pair;        /**< of that stream */
    struct dn_ofi_peer *rx_next;   /**< of its bucket */
    uint64_t rx_number;            /**< expected next */
    uint64_t rx_lines;             /**< that came, ever */
    uint64_t rx_taken;             /**< lines whose handlers have run, ever */
    uint64_t rx_told;              /**< of which the sender knows */
    uint64_t early_lines;          /**< of early, which the sender has credit for, too */
    uint32_t depth;                /**< its handlers running, one inside the other */
    uint64_t rx_question;          /**< the newest that its PINGs have asked */
    int rx_left;                   /**< its LEAVE came */
    int left_due, pong_due;        /**< LEFT or PONG wait for room */
    int credit_due;                /**< the last CREDIT is to be said again */
    int queued;                    /**< is in ofi->ready */
    dn_ofi_buffer_t *early;        /**< came ahead of others, by number */
    dn_ofi_buffer_t *first, *last; /**< for handlers */
    struct dn_ofi_peer *ready_next;

    struct dn_ofi_op *op, **op_tail; /**< in flight, oldest first */
    uint32_t handed;                 /**< of those no more in flight, for the core processor */
    uint64_t fenced;                 /**< number of the message behind which RMA may start */
    int fences;                      /**< there is one */
    uint64_t flying;                 /**< bytes of their parts that the provider has */
    uint32_t signs;                  /**< of life, counted */
    uint32_t signs_at;               /**< when `since` was set */
    uint64_t since;

    struct dn_ofi_peer *next; /**< of ofi->peers */
} dn_ofi_peer_t;

/** A PUSH or PULL. */
typedef struct dn_ofi_op {
    struct dn_ofi_op *next;
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

/** A group that is let in. */
typedef struct dn_ofi_group {
    dn_pgid_t pgid;
    int met;                            /**< the rest is known: one of its processes was met */
    uint8_t exchange[DN_AUTH_EXCHANGE]; /**< its public half */
    dn_auth_root_t root;                /**< what we share with it */
} dn_ofi_group_t;

/** Who has said HELLO as a process can that has the key, and has still to prove that it says so now. */
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
    uint32_t tx_words; /**< the last of them words alone: who gets no answer gives this process up; */
    uint32_t tx_most;  /**< and messages of one stream: a peer that takes none leaves room for the others */
    uint32_t rx_want;  /**< receives to be kept posted */
    uint32_t rx_posted;

    dn_ofi_pool_t pool[DN_OFI_POOLS]; /**< by length */
    dn_ofi_part_t *parts;             /**< free */
    dn_ofi_node_t *nodes;
    dn_ofi_stream_t **stream; /**< by number, NULL: free */
    uint32_t nstreams;
    _Atomic uint32_t draining; /**< streams without a peer */
    dn_ofi_peer_t *peers;
    _Atomic uint32_t npeers;
    uint32_t nsenders; /**< peers with a stream to us */
    dn_ofi_peer_t *bucket[DN_OFI_BUCKETS];
    dn_ofi_peer_t *ready, **ready_tail; /**< with messages for handlers */
    uint32_t nready;
    dn_ofi_group_t *group; /**< the first is our own */
    uint32_t ngroups;
    dn_ofi_applicant_t *applicant; /**< oldest first */
    uint32_t napplicants;
    uint32_t greeting;              /**< streams that were not open yet at the last look */
    uint64_t greet_at;              /**< when the next of them says HELLO */
    int told;                       /**< that somebody cannot be understood */
    dn_ofi_op_t *done, **done_tail; /**< to be signalled, or to be done by the core processor */
    int resetting;                  /**< failures of RMA are of our own making */
    struct fid_mr **mr;             /**< of segments, by SID */
    uint32_t nmr;

    dn_ofi_stream_t *gathering; /**< with messages that wait for others to go with them */
    int guarding;               /**< the watcher sends these soon, whatever the application does
                 */
    int calls;                  /**< the watcher is to be told so */

    int work;             /**< something waits for room */
    int retry;            /**< an applicant that has proved itself may be let in now */
    int unmet;            /**< the watcher has met peers, which the port does not know yet */
    _Atomic int suspects; /**< some peer's suspect is set */
    _Atomic int reap;     /**< some peer may be freed */
    int closing;
    uint64_t looked; /**< at the network, while there was no peer */
    uint64_t called; /**< progress, last */

    pthread_t watcher;
    pthread_cond_t wake; /**< with lock: the port closes */
    int watching;        /**< there is a watcher */
    int beating;         /**< it is reading what came, without the port's lock */
    uint64_t turns;      /**< in which somebody else did */
    int backlog;         /**< and there was more to read than the last of them read */
    uint64_t watched;    /**< when peers were looked at last */
} dn_ofi_t;

static inline void dn_ofi_lock(dn_ofi_t *ofi)
{
    if (ofi->threads) {
        pthread_mutex_lock(&ofi->lock);
    }
}

/** Let go of the lock, and tell the watcher of what was gathered under it: it needs the lock. */
static inline void dn_ofi_unlock(dn_ofi_t *ofi)
{
    if (ofi->threads) {
        const int calls = ofi->calls;
        ofi->calls = 0;
        pthread_mutex_unlock(&ofi->lock);
        if (calls) {
            pthread_cond_signal(&ofi->wake);
        }
    }
}

static inline dn_ofi_head_t *dn_ofi_head(dn_ofi_buffer_t *buffer)
{
    return (dn_ofi_head_t *) buffer->bytes;
}

/** @name dn_ofi_fabric.c: libfabric's objects, memory, the completion queue */
/** @{ */
/** Choose a provider and open its objects. argument: PROVIDER, PROVIDER@DOMAIN,
 * @DOMAIN or NULL. */
dn_status_t dn_ofi_fabric_open(dn_ofi_t *ofi, const dn_config_t *config, const char *argument);
void dn_ofi_fabric_close(dn_ofi_t *ofi);
/** libfabric, or NULL with what is wrong (dn_ofi_lib.c). */
const dn_ofi_lib_t *dn_ofi_lib_load(const char **wrong_p);
/** Choose a provider (dn_ofi_select.c). */
dn_status_t dn_ofi_select(dn_ofi_t *ofi, const dn_config_t *config, const char *argument);
/** Only with processes of this host? */
int dn_ofi_is_local(const struct fi_info *info);
/** Close the endpoint, so that the provider lets go of all memory at once.
 * Every peer is suspected. */
void dn_ofi_break(dn_ofi_t *ofi);
/**
 * The endpoint by which RMA is started: one of its own, so that a key that the
 * target does not know ends what is in flight there, and no message. Where there
 * can be only one endpoint, it is that. NULL: it is closed.
 */
struct fid_ep *dn_ofi_rma_endpoint(dn_ofi_t *ofi);
/** Close it; the next operation opens another. */
void dn_ofi_rma_close(dn_ofi_t *ofi);
/** Register memory with the provider. NULL: it cannot be. */
struct fid_mr *dn_ofi_mr(dn_ofi_t *ofi, void *base, uint64_t len, uint64_t access);
/** A buffer of at least so many bytes; NULL: no memory. */
dn_ofi_buffer_t *dn_ofi_buffer(dn_ofi_t *ofi, size_t bytes);
void dn_ofi_buffer_free(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** The address of an endpoint's name, entered once and counted. NULL: the
 * provider does not take it. */
dn_ofi_node_t *dn_ofi_node(dn_ofi_t *ofi, const uint8_t *name, uint32_t len);
void dn_ofi_node_leave(dn_ofi_t *ofi, dn_ofi_node_t *node);
/** Keep receives posted. */
void dn_ofi_refill(dn_ofi_t *ofi);
/** Take what completed. @return events. */
int dn_ofi_poll(dn_ofi_t *ofi);
/** Nanoseconds since some time. */
uint64_t dn_ofi_clock(void);
/** @} */

/** @name dn_ofi_msg.c: sending AOTF and BOTF */
/** @{ */
dn_status_t dn_ofi_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head, size_t head_len,
                        const void *body, size_t body_len);
dn_status_t dn_ofi_reserve(dn_peer_t *peer, size_t len, dn_window_t *window);
void dn_ofi_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len);
dn_status_t dn_ofi_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size);
dn_status_t dn_ofi_fence(dn_peer_t *peer);
/** Send what was gathered. */
void dn_ofi_let_go(dn_ofi_t *ofi);
/** Queue AOTF on a stream. DN_ERR_AGAIN: no room. */
dn_status_t dn_ofi_store(dn_ofi_t *ofi, dn_ofi_peer_t *peer, uint64_t off, uint64_t value, size_t size);
/** Queue a message without regard to credit: HELLO or LEAVE. */
dn_status_t dn_ofi_enqueue(dn_ofi_t *ofi, dn_ofi_stream_t *stream, enum dn_ofi_kind kind, const void *data,
                           size_t len);
/** Give a buffer to the provider. 0, or what it said. */
ssize_t dn_ofi_post(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, const dn_ofi_node_t *node);
/** Seal a message of an open stream, its head and bytes filled in. */
void dn_ofi_seal(const dn_ofi_t *ofi, const dn_ofi_stream_t *stream, dn_ofi_head_t *head);
/** The provider said something else than that it has no room. */
void dn_ofi_broken(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Send what waits on a stream, as far as credit and the provider go. */
void dn_ofi_advance(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** An operation found no room: now and then, look whether the peer lives.
 * DN_ERR_AGAIN or DN_ERR_UNREACH. */
dn_status_t dn_ofi_no_room(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Does RMA to this peer have to wait for messages that were sent before a
 * fence? */
int dn_ofi_is_fenced(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_recv.c: what messages that come mean */
/** @{ */
/** A message came. The buffer is the callee's. */
void dn_ofi_arrived(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, size_t len);
/** Store what an AOTF says. */
void dn_ofi_apply(dn_ofi_t *ofi, const dn_ofi_buffer_t *buffer);
/** A numbered message, whose sender has been found: deliver it in its turn. */
void dn_ofi_sequence(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer);
/** Keep a message in the shortest buffer that holds it: the long ones are for receiving. */
dn_ofi_buffer_t *dn_ofi_shrink(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** Was this message sealed for one direction of a stream? */
int dn_ofi_opens(const dn_ofi_t *ofi, const dn_auth_way_t *way, dn_ofi_buffer_t *buffer);
/** It is the port's from now on. */
void dn_ofi_let_in(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_word.c: what is said of streams */
/** @{ */
/** A message outside of any order, sealed already if it is to be; aligned to 8. 0: the provider has no room. */
int dn_ofi_tell(dn_ofi_t *ofi, const dn_ofi_node_t *node, const void *message, size_t size);
/** A word outside of any order, in one direction of a stream. 0: the provider has no room. */
int dn_ofi_control(dn_ofi_t *ofi, const dn_ofi_node_t *node, enum dn_ofi_kind kind, uint64_t token,
                   const dn_auth_way_t *way, uint64_t value);
/** Ask what of a stream has come; and once more after some time without an answer, since words can be lost. */
void dn_ofi_inquire(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Tell the sender how much has been taken, when that is worth a word. */
void dn_ofi_give_credit(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Send the words that its stream is owed, now or when there is room. */
void dn_ofi_answer(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** A word about a stream of ours came. The buffer is the caller's. */
void dn_ofi_word(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** One about a stream of its sender's. */
void dn_ofi_asked(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** A peer has said itself that it has parted from this process. */
void dn_ofi_parted(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_progress.c: handlers and the turns of who polls */
/** @{ */
int dn_ofi_progress(dn_iface_t *iface);
int dn_ofi_recv(dn_peer_base_t *peer, int max);
/** Look at the network and do what needs no handler. @return events. */
int dn_ofi_turn(dn_ofi_t *ofi);
/** Have its handlers run in progress. */
void dn_ofi_make_ready(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Have them run no more until then. */
void dn_ofi_unready(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_host.c: processes of this host, and what its kernel has */
/** @{ */
/** What tells this host, and this set of PIDs, from others. */
void dn_ofi_host(uint8_t host[16]);
/** A handle on a process of this host, which tells when it has ended; close() closes it. DN_OFI_ENDED: it has, and is
 * waited for by its parent, too. -1: there is none. */
int dn_ofi_open_process(uint32_t os_pid);
/** Has it ended? Who has no handle never sees that. */
int dn_ofi_has_ended(int pidfd);
/** Have the kernel end all connections that were made from this process to an address, as if they had failed: what has
 * come can be read, and then their end; what the provider has not sent yet is lost. Those of other ports of this process to
 * that address are among them. Connections that the peer made stay. @return how many were ended, 0: none is the kernel's. */
int dn_ofi_cut(const dn_ofi_node_t *node);
/** @} */

/** @name dn_ofi_stream.c: streams, ours to peers and theirs to us */
/** @{ */
/** Open a stream to a peer that has none. */
dn_status_t dn_ofi_open_stream(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Send no more on a peer's stream, if it has one, but LEAVE or CLOSE; what was accepted still goes out. */
void dn_ofi_leave(dn_ofi_t *ofi, dn_ofi_peer_t *peer, enum dn_ofi_kind kind);
/** Free a stream that is in no list any more, or NULL. */
void dn_ofi_free_stream(dn_ofi_stream_t *stream);
/** Free a stream if nothing of it is left. */
void dn_ofi_settle_stream(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Does it wait until another to the same process has gone out? */
int dn_ofi_follows(const dn_ofi_t *ofi, const dn_ofi_stream_t *stream);
/** Our stream of this token, or NULL. */
dn_ofi_stream_t *dn_ofi_find_stream(const dn_ofi_t *ofi, uint64_t token);
/** The sender of this token, or NULL. */
dn_ofi_peer_t *dn_ofi_find_sender(const dn_ofi_t *ofi, uint64_t token);
/** Take a peer's messages of an applicant's stream from now on, those behind its PROOF; those of a stream before may still wait for
 * handlers. */
void dn_ofi_begin_rx(dn_ofi_t *ofi, dn_ofi_peer_t *peer, const dn_ofi_applicant_t *applicant);
/** Its stream to us, if it has one, is over. */
void dn_ofi_end_rx(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_peer.c: peers come and go */
/** @{ */
dn_status_t dn_ofi_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                           dn_peer_base_t **peer_p);
void dn_ofi_disconnect(dn_peer_base_t *peer);
void dn_ofi_release(dn_peer_base_t *peer);
void dn_ofi_lost(dn_peer_base_t *peer);
dn_status_t dn_ofi_check(dn_peer_base_t *peer);
void dn_ofi_admitted(dn_iface_t *iface, const dn_pgid_t *pgid);
/** Have the port know the peers that may be known to it. Needs the port's lock, too. */
void dn_ofi_meet(dn_ofi_t *ofi);
/** Make a peer of a process whose address is sound. */
dn_status_t dn_ofi_make_peer(dn_ofi_t *ofi, const dn_peer_base_t *id, const dn_ofi_where_t *where,
                             dn_ofi_peer_t **peer_p);
/** The peer of this nonce, or NULL. */
dn_ofi_peer_t *dn_ofi_find_peer(const dn_ofi_t *ofi, const uint64_t nonce[2]);
/** Is what a process says of itself possible? */
int dn_ofi_is_sound(const dn_ofi_where_t *where);
/** Leave a peer, as dn_ofi_leave(), and give what was accepted for it some time to go out. */
void dn_ofi_depart(dn_ofi_t *ofi, dn_ofi_peer_t *peer, enum dn_ofi_kind kind);
/** It lives, for all that is known, but a PULL from it does not end: say so here and there, and suspect it. */
void dn_ofi_give_up(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Something failed towards it. */
void dn_ofi_suspect(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Declare the suspects lost, forget those who left. Without the device's lock.
 */
void dn_ofi_bury(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_group.c: groups that are let in */
/** @{ */
/** Let in a group of this name, from now on. DN_ERR_NOMEM. */
dn_status_t dn_ofi_group_add(dn_ofi_t *ofi, const dn_pgid_t *pgid);
/** What we share with the group of this public half. NULL: it was not let in. */
const dn_auth_root_t *dn_ofi_root(dn_ofi_t *ofi, const uint8_t exchange[DN_AUTH_EXCHANGE], dn_pgid_t *pgid);
/** Forget them. */
void dn_ofi_groups_free(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_greet.c: HELLO, CHALLENGE and PROOF */
/** @{ */
/** Our side of a stream: that of the opener, or the acceptor's. */
void dn_ofi_side(const dn_ofi_where_t *where, uint32_t pid, dn_auth_side_t *side);
/** Say HELLO on a stream that is not open, if it is time to. */
void dn_ofi_greet(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** The same on all. */
void dn_ofi_greet_all(dn_ofi_t *ofi);
/** HELLO came. The buffer is the caller's. */
void dn_ofi_hello(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** CHALLENGE came. The buffer is the caller's. */
void dn_ofi_challenged(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** A stream of ours is not taken. */
void dn_ofi_refused(dn_ofi_t *ofi, dn_ofi_stream_t *stream, uint64_t why);
/** The applicant of this token, or NULL. */
dn_ofi_applicant_t *dn_ofi_find_applicant(const dn_ofi_t *ofi, uint64_t token);
/** A numbered message of an applicant came. The buffer is the callee's. */
void dn_ofi_applied(dn_ofi_t *ofi, dn_ofi_applicant_t *applicant, dn_ofi_buffer_t *buffer);
/** Let in those who have proved themselves, and had to wait. */
void dn_ofi_retry(dn_ofi_t *ofi);
/** Forget those who have not for a long time; all: every one. */
void dn_ofi_expire(dn_ofi_t *ofi, int all);
/** @} */

/** @name dn_ofi_watch.c: peers that fall silent */
/** @{ */
void dn_ofi_watch_open(dn_ofi_t *ofi);
/** There are peers from now on, or may be. */
void dn_ofi_watch_start(dn_ofi_t *ofi);
/** The port closes. */
void dn_ofi_watch_close(dn_ofi_t *ofi);
/** Wait for what still has to go out, for a while. */
void dn_ofi_linger(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_rma.c: PUSH, PULL, segments */
/** @{ */
/** word[0]: the provider's key; word[1]: what the provider wants added to a
 * place in the segment. */
#define DN_OFI_KEY DN_KEY_OFI

dn_status_t dn_ofi_push(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_ofi_pull(dn_peer_t *peer, const dn_xfer_t *xfer);
void dn_ofi_segment_register(dn_iface_t *iface, void *base, dn_key_t *key);
void dn_ofi_segment_unregister(dn_iface_t *iface, const dn_key_t *key);
/** Take back every registration of segments and of operations: the endpoint
 * that they are bound to closes. */
void dn_ofi_rma_unregister(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_op.c: PUSH and PULL in flight */
/** @{ */
/** Hand the next part of an operation to the provider. 0, or what it said; then nothing has changed. */
ssize_t dn_ofi_issue(dn_ofi_t *ofi, dn_ofi_op_t *op);
/** Hand over what the provider takes. @return whether some is left. */
int dn_ofi_op_advance(dn_ofi_t *ofi, dn_ofi_op_t *op);
/** A part completed, or failed. */
void dn_ofi_part_done(dn_ofi_t *ofi, dn_ofi_part_t *part, int failed);
/** Take back the registration of its local memory. */
void dn_ofi_op_unregister(dn_ofi_op_t *op);
/** Go on with operations that waited for room. @return whether some still do.
 */
int dn_ofi_rma_advance(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Signal what is done. Without the device's lock. @return how many. */
int dn_ofi_signal(dn_ofi_t *ofi);
/** Free an operation that is off every list. */
void dn_ofi_op_free(dn_ofi_op_t *op);
/** End the operations of a peer with DN_ERR_UNREACH, once the provider writes
 * no more to their memory: when it does not let go of it, the peer is given up,
 * and its connections are ended, or else the endpoint for RMA is closed. They
 * are signalled by dn_ofi_signal(), or dropped when !signal: this process is
 * closing. */
void dn_ofi_rma_end(dn_ofi_t *ofi, dn_ofi_peer_t *peer, int signal);
/** @} */

#endif
