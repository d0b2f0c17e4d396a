/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ipnuma_int.h
 * The ipnuma device: IP-NUMA, with a thread that does the work of the card. This header has what the files of the device share.
 *
 *   dn_ipnuma_tlp      codec: TLPs                          no socket, no port
 *   dn_ipnuma_bbr      congestion control: window and rate  no socket, no port
 *   dn_ipnuma_loss     packet numbers, acknowledgements     no socket, no port
 *   dn_ipnuma_link     a stream of TLPs each way            no socket, no port
 *   dn_ipnuma_table    page map, shared region table        no socket, no port
 *   dn_ipnuma_pc       PC ID table
 *   dn_ipnuma_greet    HELLO, CHALLENGE, PROOF
 *   dn_ipnuma_serve    work on TLPs that come
 *   dn_ipnuma_op       PUSH, PULL and atomics as TLPs that go
 *   dn_ipnuma_msg      AOTF, lines and BOTF; requests of messages that need no handler
 *   dn_ipnuma_peer     peers come and go
 *   dn_ipnuma_service  the thread, turns, timers
 *   dn_ipnuma_socket   UDP
 *   dn_ipnuma          the device's table
 *
 * ipnuma->lock guards all data of the device. The service thread, too, holds the lock while it works on TLPs that came. Handlers and
 * completions run in calls of the program, without the lock.
 *
 * Who reads: a thread of the program tells the device at step S2 (dn_wait.h) that it sleeps now (dn_ipnuma_hand_on()). From then on the
 * service thread reads and rings. A turn of another thread of the program takes the network back: that thread reads, and rings for the
 * sleeper. When it stops without a sleep, as to compute, the service thread learns that by the clock (dn_lull_t). Whether the bell is odd
 * does not matter here, since a wait that has ended leaves it odd.
 */
#ifndef DN_IPNUMA_INT_H
#define DN_IPNUMA_INT_H

#include <pthread.h>

#include "dn_atomic.h"
#include "dn_clock.h"
#include "dn_device.h"
#include "dn_guest.h"
#include "dn_host.h"
#include "dn_ipnuma_link.h"
#include "dn_ipnuma_table.h"
#include "dn_log.h"
#include "dn_sg.h"
#include "dn_thread.h"
#include "dn_xfer.h"

/** Credit of a sender: so many times ring_lines (of the configuration) lines of 64 bytes, in messages that wait at this process. */
#define DN_IPNUMA_RINGS      8u
#define DN_IPNUMA_CREDIT_MAX (1u << 20)
#define DN_IPNUMA_BOTF_MAX   (65u * 1024)
#define DN_IPNUMA_BOTF_MIN   576u
#define DN_IPNUMA_INLINE     56u
/** Most reads, flushes and atomic operations with a PC that have no answer yet: there are so many tags. */
#define DN_IPNUMA_TAGS 256u
/** Bytes of writes and reads that are under way with a PC before the next operation has to wait. */
#define DN_IPNUMA_AHEAD_MAX (256u << 10)
/** A process repeats HELLO or PROOF after this time. The time doubles at each repetition, until it exceeds DN_IPNUMA_GREET_MOST_NS. */
#define DN_IPNUMA_GREET_NS      UINT64_C(4000000)
#define DN_IPNUMA_GREET_MOST_NS UINT64_C(500000000)
#define DN_IPNUMA_BUCKETS       1024u
/** Slots for datagrams that come: one system call fills at most so many slots. */
#define DN_IPNUMA_BATCH 16u
/** Most paths of a port that have a socket of their own. It bounds files, and memory of the kernel; no measurement has given it. */
#define DN_IPNUMA_CONNECTED 128u
/** These sockets of a port may take one file descriptor of so many. The program needs the others. */
#define DN_IPNUMA_SHARE 4u
/** Most characters of the name of an interface, or of an address, with the end of the text. */
#define DN_IPNUMA_NAME 64u
/** Longest time that closing waits for bytes on their way. */
#define DN_IPNUMA_LINGER_NS UINT64_C(1000000000)

typedef struct dn_ipnuma dn_ipnuma_t;
typedef struct dn_ipnuma_peer dn_ipnuma_peer_t;
typedef struct dn_ipnuma_op dn_ipnuma_op_t;

/** A message for a handler. */
typedef struct dn_ipnuma_message {
    struct dn_ipnuma_message *next;
    uint32_t len;
    uint32_t have; /**< bytes that have come */
    uint32_t cost; /**< credit that the message uses */
    uint8_t channel;
    uint8_t tag;
    uint8_t later; /**< not 0: a request that waits for its handler, as those behind it do: dn_core_alone() */
    _Alignas(8) uint8_t bytes[];
} dn_ipnuma_message_t;

/** A request of this process that has no answer yet. */
typedef struct dn_ipnuma_request {
    dn_ipnuma_op_t *op; /**< NULL: the operation has ended, and the answer is dropped */
    uint32_t left;      /**< bytes of data that are still to come */
    int refused;
} dn_ipnuma_request_t;

/** A request of the other side that is not answered yet. */
typedef struct dn_ipnuma_reply {
    uint64_t at; /**< READ: address of the data that is still to be sent */
    uint64_t value;
    uint32_t left; /**< bytes of data to send; a flush has none */
    uint16_t requester;
    uint8_t tag;
    uint8_t status;
    uint8_t reads; /**< not 0: the data is in a shared region; 0: it is in `value` */
} dn_ipnuma_reply_t;

/**
 * The life of a connection; each arrow is one dn_ipnuma_pc_turn():
 *
 *   GREETS ---> OPEN ---> DEAD
 *     |                    ^
 *     +--------------------+
 *
 * The opener says HELLO until the CHALLENGE comes. The acceptor's connection is OPEN when the PROOF comes. DEAD: the other side closed,
 * is lost, or refuses.
 */
enum dn_ipnuma_pc_state {
    DN_IPNUMA_GREETS,
    DN_IPNUMA_OPEN,
    DN_IPNUMA_DEAD,
};

/** An entry of the PC ID table: another process, and the connection with it. The entry stays when there is no peer for a while. */
typedef struct dn_ipnuma_pc {
    dn_ipnuma_link_t link; /**< first */
    dn_ipnuma_t *ipnuma;
    enum dn_ipnuma_pc_state state;
    uint16_t id;    /**< 1 to 65535 */
    uint64_t token; /**< this process' token: the other side names the connection by it */
    dn_ipnuma_where_t where;
    uint32_t pid;
    dn_pgid_t pgid;
    uint32_t page; /**< page of the page region where the LLCM of the other process begins */
    int fd;        /**< sends to the other process, and receives nothing; -1: the port's socket sends */
    int pidfd;     /**< of the other process, if it is on this host; else -1; or DN_PROCESS_ENDED */
    dn_ipnuma_peer_t *peer; /**< NULL: the other process is no peer now */
    int joined;             /**< the other process has said JOIN, and not LEAVE since */
    int joins;              /**< this process has said JOIN, and not LEAVE since */
    int closes;             /**< this process has said CLOSE */
    uint64_t applied;       /**< link.applied at the last look */
    uint64_t applied_at;    /**< since when `applied` has not changed, while bytes were on their way */
    int silent; /**< the other process was silent for too long, or takes nothing: it is about to be given up */
    int one_by_one; /**< the kernel does not send rows of datagrams on this path */

    /** A stream of the program's small TLPs: dn_ipnuma_go(). */
    struct {
        uint32_t hasty;    /**< calls of dn_ipnuma_go() that sent at once, at most DN_IPNUMA_FEW */
        uint32_t gathered; /**< TLPs that have gathered in the body that begins at the offset `at` */
        uint64_t at;
        uint64_t since; /**< when the first of them came */
        uint64_t
            until; /**< when the thread sends what has gathered by then; 0: the thread has set itself no time */
    } stream;
    uint64_t credit_at; /**< when this process last asked for credit */

    dn_ipnuma_link_counts_t counted; /**< what dn_ipnuma_pc_count() has counted of link.counts */

    /** How the connection is opened: dn_ipnuma_greet.c */
    struct {
        dn_auth_root_t root;
        dn_auth_side_t ours, theirs;
        dn_auth_pair_t pair;
        uint64_t since; /**< when the entry was made */
        uint64_t at;    /**< when HELLO or PROOF is said next; 0: HELLO at once, PROOF never */
        uint64_t gap;   /**< the pause behind that */
    } greet;

    /** Requests of this process, oldest first. `requests` and `answered` are numbers of requests: they begin at dn_ipnuma_t::first, wrap,
     * and are DN_IPNUMA_TAGS apart at most. */
    dn_ipnuma_request_t request[DN_IPNUMA_TAGS];
    uint32_t requests, answered;
    uint64_t wanted;   /**< bytes of data that answers are still to bring */
    dn_fifo_t sending; /**< dn_ipnuma_op_t of which a part is not in the stream yet */

    /** Requests of the other side, oldest first, numbered alike. */
    dn_ipnuma_reply_t reply[DN_IPNUMA_TAGS];
    uint32_t replies, replied;
    int refused; /**< not 0: a write was refused since the last flush */

    dn_ipnuma_message_t *partial; /**< a message of which more is to come */
    uint64_t waiting_cost;        /**< credit of messages that came, and that no handler has taken */

    struct dn_ipnuma_pc *next;   /**< in dn_ipnuma_t::pcs */
    struct dn_ipnuma_pc *bucket; /**< the next in the same bucket of tokens */
} dn_ipnuma_pc_t;

/** So many packets, or TLPs, are few. The program sends a stream when it has sent so many packets that were not full, and nothing but
 * acknowledgements has come meanwhile. A program that waits for what the other process stores in return sends no stream. While so many packets
 * are on their way, TLPs gather in any case (dimmnet_perf, aotf_rate). */
#define DN_IPNUMA_FEW 4u
/** TLPs of a stream follow each other within this time, in the mean. Where program and thread share a core, this is about the time that one
 * takes to send a packet for each TLP, and the other to take its acknowledgement and to look on (dimmnet_perf, aotf_rate). */
#define DN_IPNUMA_STREAM_NS UINT64_C(30000)
/** Time that the thread gives a stream to go on when all of its packets are acknowledged (dimmnet_perf, aotf_rate). */
#define DN_IPNUMA_HOLD_NS UINT64_C(16000)

/** Does the program send a stream of small TLPs? */
static inline int dn_ipnuma_streams(const dn_ipnuma_pc_t *pc)
{
    return DN_IPNUMA_OPEN == pc->state && DN_IPNUMA_FEW <= pc->stream.hasty
           && (0 != pc->link.loss.count || 0 != pc->stream.until);
}

extern const uint32_t dn_ipnuma_pc_turns[], dn_ipnuma_peer_turns[];

static inline void dn_ipnuma_pc_turn(dn_ipnuma_pc_t *pc, enum dn_ipnuma_pc_state to)
{
    dn_turn_check("a connection of ipnuma", dn_ipnuma_pc_turns, pc->state, to);
    pc->state = to;
}

/**
 * The owner of a peer; each arrow is one dn_ipnuma_peer_turn():
 *
 *   STRANGER ---> KNOWN ---> GOING
 *      |                       ^
 *      +-----------------------+
 */
enum dn_ipnuma_owner {
    DN_IPNUMA_STRANGER, /**< the device: the thread has met the peer */
    DN_IPNUMA_KNOWN,    /**< the device and the port */
    DN_IPNUMA_GOING,    /**< the peer is being freed */
};

struct dn_ipnuma_peer {
    dn_peer_base_t base;
    dn_ipnuma_pc_t *pc; /**< NULL: this process itself */
    enum dn_ipnuma_owner owner;
    int contends;                      /**< not 0: the peer runs only on cores where this process may run */
    dn_ipnuma_message_t *first, *last; /**< for handlers */
    uint32_t later;   /**< sum of dn_ipnuma_message_t::later of these, and of those whose handlers run */
    uint64_t waiting; /**< this process itself: credit of messages that no handler has taken */
    uint32_t depth;   /**< its handlers that run now, one inside the other */
    int queued;       /**< in ipnuma->ready */
    dn_queue_item_t ready;
    uint32_t ops; /**< operations that were not signalled yet */
    struct dn_ipnuma_peer *next;
};

static inline void dn_ipnuma_peer_turn(dn_ipnuma_peer_t *peer, enum dn_ipnuma_owner to)
{
    dn_turn_check("a peer of ipnuma", dn_ipnuma_peer_turns, peer->owner, to);
    peer->owner = to;
}

enum dn_ipnuma_op_kind { DN_IPNUMA_PUSH, DN_IPNUMA_PULL, DN_IPNUMA_AMO };

/** A PUSH, PULL or atomic operation. */
struct dn_ipnuma_op {
    dn_queue_item_t item; /**< first: in dn_ipnuma_pc_t::sending, then in dn_ipnuma_t::done */
    dn_ipnuma_peer_t *peer;
    enum dn_ipnuma_op_kind kind;
    dn_xfer_t xfer;
    dn_xfer_sides_t sides;
    dn_amo_t amo;
    dn_sg_cursor_t local_at, remote_at;
    uint64_t run_at;   /**< AMO: address of the word */
    uint32_t requests; /**< requests that have no answer yet */
    int sent;          /**< not 0: all of the operation is in the stream */
    dn_status_t status;
};

/** A segment of this process. */
typedef struct dn_ipnuma_segment {
    uint64_t at;  /**< the address of its region */
    uint64_t len; /**< 0: there is none */
    uint32_t generation;
} dn_ipnuma_segment_t;

/** A process that has said a HELLO which needs the key. It has still to prove that the HELLO is new, and not a copy. */
typedef struct dn_ipnuma_applicant {
    struct dn_ipnuma_applicant *next;
    uint64_t token;  /**< this process' token of the connection */
    uint64_t theirs; /**< the applicant's token */
    uint64_t since;
    uint32_t pid;
    dn_pgid_t pgid;
    dn_ipnuma_where_t where;
    dn_auth_pair_t pair;
    dn_ipnuma_challenge_t challenge;
} dn_ipnuma_applicant_t;

/**
 * The thread's life; each arrow is one dn_ipnuma_service_turn():
 *
 *   NONE ---> LISTENS <---> NAPS
 *    ^           |
 *    +-----------+
 */
enum dn_ipnuma_service_state {
    DN_IPNUMA_NO_THREAD,
    DN_IPNUMA_LISTENS, /**< the thread wakes when a datagram comes */
    DN_IPNUMA_NAPS, /**< the program looks at the network: the thread wakes when the program stops doing so, or sleeps */
};

struct dn_ipnuma {
    dn_iface_t iface;
    pthread_mutex_t lock;
    int fd; /**< receives all that comes; sends CHALLENGEs, and all where a path has no socket of its own */
    uint32_t connected; /**< paths that have a socket of their own */
    uint16_t sends_by;  /**< UDP port of these sockets; 0: not known yet */
    int cuts_rows;      /**< not 0: the kernel cuts a row into datagrams */
    dn_auth_mode_t auth;
    uint8_t *cipher; /**< DN_AUTH_ENCRYPTED: dn_ipnuma_link_terms_t::cipher of all connections */
    uint64_t first;
    uint64_t timeout_ns;
    uint32_t max_senders;
    int rma;        /**< dn_config_t::network_rma */
    uint32_t units; /**< processing units that this process may run on; 0: not known */
    /** processes that may run on these units only; written under the lock, and read without it as a hint */
    uint32_t contenders;
    char domain[32], endpoint[32];
    dn_ipnuma_where_t where;
    dn_guests_t guests;
    dn_ipnuma_regions_t regions;
    dn_ipnuma_segment_t *segment; /**< by sid: messages name segments so */
    uint32_t nsegments;
    uint32_t peers_at, peers_mask; /**< the addresses that regions let in: dn_ipnuma_region_t */
    dn_ipnuma_map_t map;
    int shared; /**< not 0: the LLCM is in the shared region table */

    dn_ipnuma_pc_t *pcs;
    dn_ipnuma_pc_t *bucket[DN_IPNUMA_BUCKETS];
    uint8_t pc_used[65536 / 8]; /**< PC IDs, by bit */
    uint32_t npcs;
    uint32_t nsenders;                /**< processes that have joined */
    dn_ipnuma_applicant_t *applicant; /**< oldest first */
    uint32_t napplicants;
    dn_ipnuma_peer_t *peers;
    uint32_t npeers;
    dn_fifo_t ready; /**< dn_ipnuma_peer_t::ready */
    uint32_t nready;
    dn_fifo_t done; /**< dn_ipnuma_op_t to be signalled */

    int unmet;     /**< not 0: there are strangers */
    uint32_t reap; /**< some peer may be freed */
    int told;      /**< not 0: it was logged that a process has another auth */
    int closing;
    uint64_t turns;     /**< turns in which the program has looked at the network */
    uint64_t turned_at; /**< time of the last turn of any thread */
    int fast;           /**< not 0: that turn came soon after the turn before it */
    int busy;           /**< not 0: in that turn packets were on their way, or owed */
    uint32_t vain;      /**< calls of progress in a row that found nothing to do */
    /** accesses of other processes that no shared region has let in */
    uint64_t refused_writes, refused_reads;

    uint32_t after;       /**< DN_IPNUMA_AFTER_CALL and so on: what is done when the lock is let go */
    dn_log_later_t later; /**< what is logged then */

    struct {
        enum dn_ipnuma_service_state state;
        pthread_t thread;
        int event;       /**< wakes the thread */
        dn_lull_t lull;  /**< while the thread naps */
        int ends;        /**< not 0: the thread is to end */
        uint64_t handed; /**< `turns` when a thread of the program last went to sleep: dn_ipnuma_hand_on() */
        int reads; /**< not 0: the present turn is the thread's, or of dn_ipnuma_linger(); 0: the program's */
        uint64_t wake_at; /**< when the thread wakes by itself; 0: it is awake, or about to look again */
        dn_awake_t awake;
        uint64_t look_at; /**< when the thread looks after silent processes next */
        uint64_t looked;  /**< when it did so last */
    } service;

    struct dn_ipnuma_slots *slots; /**< memory for datagrams that come: dn_ipnuma_socket.c */
};

/** May the other process of a connection reach the regions of this process? */
static inline int dn_ipnuma_lets_in(const dn_ipnuma_pc_t *pc)
{
    return 0 == ((pc->where.ip ^ pc->ipnuma->peers_at) & pc->ipnuma->peers_mask);
}

extern const uint32_t dn_ipnuma_service_turns[];

static inline void dn_ipnuma_lock(dn_ipnuma_t *ipnuma)
{
    pthread_mutex_lock(&ipnuma->lock);
}

/** What is done when the lock is let go, as a thread that is woken may want the lock at once. A ring that comes so late is not missed: what
 * the bell is rung for is stored under the lock, and a sleeper takes the lock once more before it sleeps. Where the sleeper has had the lock
 * before the ringer, the ringer finds the bell odd. */
enum {
    DN_IPNUMA_AFTER_CALL = 1u, /**< the service thread is called */
    DN_IPNUMA_AFTER_RING = 2u, /**< the bell is touched */
};

/** Let the lock go, then do what waits for that: calls, rings, log lines. */
void dn_ipnuma_unlock_and_more(dn_ipnuma_t *ipnuma);

static inline void dn_ipnuma_unlock(dn_ipnuma_t *ipnuma)
{
    if (0 != ipnuma->later.count || 0 != ipnuma->after) {
        dn_ipnuma_unlock_and_more(ipnuma);
    } else {
        pthread_mutex_unlock(&ipnuma->lock);
    }
}

/** @name dn_ipnuma.c */
/** @{ */
/** Share the LLCM with other processes, once its address is known. */
void dn_ipnuma_share_llcm(dn_ipnuma_t *ipnuma);
/** @} */

/** @name dn_ipnuma_socket.c */
/** @{ */
/** Open the socket. @param[in] argument  An interface, or an IPv4 address. "": the first interface that leads out of this host; or else
 * loopback. */
dn_status_t dn_ipnuma_socket_open(dn_ipnuma_t *ipnuma, const char *argument);
void dn_ipnuma_socket_close(dn_ipnuma_t *ipnuma);
/**
 * Make a socket that sends to one process: the kernel keeps the route there, and does not look for it for each datagram. Before Linux 6.9 or
 * so, the kernel does look for it once for each row of datagrams.
 *
 * All these sockets of a port send by one UDP port, and not by the one where the port receives: the kernel would hand them what is for the
 * port. Processes do not look where a datagram comes from.
 *
 * @return -1: the port has as many as it may have, or the kernel gives none. Then the port's own socket sends. Nothing is logged.
 */
int dn_ipnuma_socket_connect(dn_ipnuma_t *ipnuma, const dn_ipnuma_where_t *where);
/** Close such a socket. -1: there is none. */
void dn_ipnuma_socket_disconnect(dn_ipnuma_t *ipnuma, int fd);
/** Most bytes of a datagram that the path to a process takes whole, and at least DN_IPNUMA_DATAGRAM_LEAST; 0: the kernel does not say.
 * @param[in] fd  From dn_ipnuma_socket_connect(), or -1. */
uint32_t dn_ipnuma_socket_mtu(const dn_ipnuma_where_t *where, int fd);
/** Send a datagram, which may be lost. @param[in] fd  A socket that sends only there; -1: the port's own.
 * @return 0: this process has no room for it now. */
int dn_ipnuma_socket_send(const dn_ipnuma_t *ipnuma, const dn_ipnuma_where_t *where, int fd,
                          const void *bytes, size_t len);
/** Send a row of datagrams: dn_ipnuma_link_ops_t::emit. */
uint32_t dn_ipnuma_socket_send_row(dn_ipnuma_pc_t *pc, const struct iovec *datagram, uint32_t n);
/** Take what has come, and give each datagram to dn_ipnuma_arrived(). @return the number of datagrams, a row counted as one: at most
 * DN_IPNUMA_BATCH. At this number there may be more. */
int dn_ipnuma_socket_receive(dn_ipnuma_t *ipnuma);
/** @} */

/** @name dn_ipnuma_pc.c */
/** @{ */
/** Start to open a connection with a process. There must be no connection with it. NULL: no memory, or PC IDs or pages are used up. */
dn_ipnuma_pc_t *dn_ipnuma_pc_open(dn_ipnuma_t *ipnuma, const dn_ipnuma_where_t *where, uint32_t pid,
                                  const dn_pgid_t *pgid, const dn_auth_root_t *root);
void dn_ipnuma_pc_free(dn_ipnuma_pc_t *pc);
/** Ask the kernel how long the datagrams of the path may be by now. */
void dn_ipnuma_pc_fit(dn_ipnuma_pc_t *pc);
/** Add to the port's counters what the connection has counted since the last call. Called in each turn, and when the connection ends. */
void dn_ipnuma_pc_count(dn_ipnuma_pc_t *pc);
/** The connection with the process of this nonce, or with this token of this process; NULL: none. */
dn_ipnuma_pc_t *dn_ipnuma_pc_of(const dn_ipnuma_t *ipnuma, const uint64_t nonce[2]);
dn_ipnuma_pc_t *dn_ipnuma_pc_named(const dn_ipnuma_t *ipnuma, uint64_t token);
/** Enter a connection into the table by this token of this process; and take it out. */
void dn_ipnuma_pc_list(dn_ipnuma_pc_t *pc, uint64_t token);
void dn_ipnuma_pc_unlist(dn_ipnuma_pc_t *pc);
/** Fill in a side of a connection, except its random bytes. */
void dn_ipnuma_side(const dn_ipnuma_where_t *where, uint32_t pid, dn_auth_side_t *side);
/** @} */

/** @name dn_ipnuma_greet.c */
/** @{ */
/** The newest record of the process of this nonce, which has asked for a connection, or NULL. */
dn_ipnuma_applicant_t *dn_ipnuma_applicant_of(const dn_ipnuma_t *ipnuma, const uint64_t nonce[2]);
/** Say HELLO or PROOF, if it is time to. */
void dn_ipnuma_greet(dn_ipnuma_pc_t *pc, uint64_t now);
/** Handle a datagram that came. */
void dn_ipnuma_arrived(dn_ipnuma_t *ipnuma, uint8_t *bytes, size_t len, uint64_t now);
/** Forget applicants that have given this process up by now; all: every applicant. The caller has read what has come: it may be a PROOF. */
void dn_ipnuma_expire(dn_ipnuma_t *ipnuma, int all, uint64_t now);
/** Has the address of a process possible values? */
int dn_ipnuma_is_sound(const dn_ipnuma_where_t *where);
/** @} */

/** @name dn_ipnuma_serve.c */
/** @{ */
extern const dn_ipnuma_link_ops_t dn_ipnuma_pc_ops;
/** Answer requests of the other side while there is room. */
void dn_ipnuma_reply(dn_ipnuma_pc_t *pc);
/** Append a message without data. @return 0: no memory. */
int dn_ipnuma_say(dn_ipnuma_pc_t *pc, enum dn_tlp_message what);
/** @} */

/** @name dn_ipnuma_op.c */
/** @{ */
dn_status_t dn_ipnuma_push(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_ipnuma_pull(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_ipnuma_atomic(dn_peer_t *peer, const dn_amo_t *amo);
/** Put more of the operations into the stream. */
void dn_ipnuma_advance(dn_ipnuma_pc_t *pc);
/** Handle an answer. @return 0: the answer does not fit the oldest open request of this process. */
int dn_ipnuma_answered(dn_ipnuma_pc_t *pc, const dn_tlp_t *tlp);
/** End the operations of a peer: signalled with DN_ERR_UNREACH, or dropped. */
void dn_ipnuma_end_ops(dn_ipnuma_t *ipnuma, dn_ipnuma_peer_t *peer, int signal);
/** Signal the operations that are done. Without the lock. @return how many. */
int dn_ipnuma_signal(dn_ipnuma_t *ipnuma);
void dn_ipnuma_segment_register(dn_iface_t *iface, void *base, dn_key_t *key);
void dn_ipnuma_segment_unregister(dn_iface_t *iface, const dn_key_t *key);
/** Find a segment that lets a process in. @param[in] peer  IPv4 address of the process. @return NULL: there is none. */
uint8_t *dn_ipnuma_segment_find(const dn_ipnuma_t *ipnuma, uint32_t sid, uint32_t generation, uint32_t peer,
                                uint64_t *len_p);
/** @} */

/** @name dn_ipnuma_msg.c */
/** @{ */
dn_status_t dn_ipnuma_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head, size_t head_len,
                           const void *body, size_t body_len);
dn_status_t dn_ipnuma_reserve(dn_peer_t *peer, size_t len, dn_window_t *window);
void dn_ipnuma_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len);
dn_status_t dn_ipnuma_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size);
dn_status_t dn_ipnuma_line(dn_peer_t *peer, uint64_t off, const void *data, size_t len, uint64_t flag);
dn_status_t dn_ipnuma_fence(dn_peer_t *peer);
/** Do what a message on DN_CHAN_CORE that came asks for, if it needs no handler. @return 0: the handler is needed, and the message's
 * `later` may be set. */
int dn_ipnuma_carry_out(dn_ipnuma_pc_t *pc, dn_ipnuma_message_t *message);
/** Credit that a message costs. */
uint32_t dn_ipnuma_cost(size_t len);
/** Join, if this process has not joined yet, and look whether operations may go to a peer. The lock is held. */
dn_status_t dn_ipnuma_enter(dn_ipnuma_peer_t *peer);
/** An operation found no room: send bodies that wait, and, now and then, ask for credit and look whether the peer lives.
 * @return DN_ERR_AGAIN or DN_ERR_UNREACH. */
dn_status_t dn_ipnuma_no_room(dn_ipnuma_peer_t *peer);
/** Send TLPs that were appended. While TLPs gather, a later call or turn sends them. */
void dn_ipnuma_go(dn_ipnuma_pc_t *pc);
/** @} */

/** @name dn_ipnuma_peer.c */
/** @{ */
dn_status_t dn_ipnuma_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                              dn_peer_base_t **peer_p);
void dn_ipnuma_disconnect(dn_peer_base_t *peer);
void dn_ipnuma_release(dn_peer_base_t *peer);
void dn_ipnuma_lost(dn_peer_base_t *peer);
dn_status_t dn_ipnuma_check(dn_peer_base_t *peer);
void dn_ipnuma_admitted(dn_iface_t *iface, const dn_pgid_t *pgid);
/** Handle a JOIN. @return as dn_ipnuma_link_ops_t::take. */
int dn_ipnuma_join(dn_ipnuma_pc_t *pc);
/** Handle a LEAVE. */
void dn_ipnuma_part(dn_ipnuma_pc_t *pc);
/** Say that this process sends no more: LEAVE, or CLOSE. Without memory for that, the connection ends. pc NULL: there is no connection, and
 * nothing is sent. */
void dn_ipnuma_leave(dn_ipnuma_pc_t *pc, enum dn_tlp_message what);
/** End a connection: nothing goes over it any more. */
void dn_ipnuma_kill(dn_ipnuma_pc_t *pc, enum dn_peer_doubt why);
/** Tell the port of the strangers. Needs the port's lock, too. */
void dn_ipnuma_meet(dn_ipnuma_t *ipnuma);
/** Note that progress has to run handlers for a peer's messages. */
void dn_ipnuma_make_ready(dn_ipnuma_t *ipnuma, dn_ipnuma_peer_t *peer);
/** Take a peer out of the queue of peers whose handlers progress runs. */
void dn_ipnuma_unready(dn_ipnuma_t *ipnuma, dn_ipnuma_peer_t *peer);
/** Free the peers that are over. Without the lock. */
void dn_ipnuma_reap(dn_ipnuma_t *ipnuma);
/** Look for processes that have ended, and end their connections. @return not 0: there were such processes. */
int dn_ipnuma_find_dead(dn_ipnuma_t *ipnuma);
/** @} */

/** @name dn_ipnuma_service.c */
/** @{ */
int dn_ipnuma_progress(dn_iface_t *iface);
int dn_ipnuma_recv(dn_peer_base_t *peer, int max);
/** Give credit back to the sender of a message that is done. When the credit is worth a packet, tell the sender. */
void dn_ipnuma_give_credit(dn_ipnuma_pc_t *pc, uint32_t cost);
/** A thread of the program sleeps now: the service thread reads, until a thread of the program takes a turn. */
void dn_ipnuma_hand_on(dn_iface_t *iface);
/** Read the datagrams that came, and do all work that is due. If another thread of the program sleeps, its bell is rung when the lock is let
 * go. @return as dn_ipnuma_socket_receive(). */
int dn_ipnuma_turn(dn_ipnuma_t *ipnuma);
/** Do the work that is due for each connection, after something has been read. @param[in] quiet  Not 0: nothing has come. */
void dn_ipnuma_attend_all(dn_ipnuma_t *ipnuma, int quiet, uint64_t now);
/** Tell the thread that a packet was sent, so that it keeps the timers. It is called when the lock is let go. */
void dn_ipnuma_service_call(dn_ipnuma_t *ipnuma);
void dn_ipnuma_service_start(dn_ipnuma_t *ipnuma);
void dn_ipnuma_service_stop(dn_ipnuma_t *ipnuma);
/** Wait, at most for DN_IPNUMA_LINGER_NS, until the other processes have done all that was sent. */
void dn_ipnuma_linger(dn_ipnuma_t *ipnuma);
/** @} */

#endif
