/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_int.h
 * Inside of the shm device: what a process keeps of its own mapping, of its peers and of transfers. What peers see of it is in
 * dn_shm_wire.h.
 *
 * Threads: the port's lock guards all of this but what says otherwise, the states among it. A peer's own lock guards its sending
 *          end, and is taken after the port's, never before. The stage's is taken after a peer's.
 */
#ifndef DN_SHM_INT_H
#define DN_SHM_INT_H

#include <pthread.h>
#include <sys/types.h>

#include "dn_atomic.h"
#include "dn_choice.h"
#include "dn_device.h"
#include "dn_line.h"
#include "dn_shm_wire.h"
#include "dn_topo.h"

/** A mapping of a process, one's own or a peer's. */
typedef struct dn_shm_map {
    dn_shm_header_t *header;
    dn_shm_slot_t *slot;
    uint8_t *llcm;
    uint8_t *rings;
    size_t ring_stride;
    uint8_t *stage;
    size_t bytes;
    int file; /**< not a memfd: room in it can run out */
    /* Copied from the header when it was checked: a peer may change the header later. */
    uint32_t max_peers;
    uint32_t ring_lines;
    uint32_t first;
    uint32_t stage_bytes;
    uint64_t llcm_bytes;
    uint64_t cma_probe;
    dn_cpumask_t units;
} dn_shm_map_t;

/** An allocated segment of a peer, mapped here: dn_shm_view.c. */
typedef struct dn_shm_view dn_shm_view_t;

/** Most of them that are kept of a peer. */
#define DN_SHM_VIEWS 4096u

/**
 * The life of a granule of the stage; each arrow is one dn_shm_granule_turn():
 *
 *   NEW ---> OPEN <---> RESTS <---> LEFT
 *             ^                      |
 *             +----------------------+
 */
enum dn_shm_granule_state {
    DN_SHM_GRANULE_NEW,   /**< it was never open */
    DN_SHM_GRANULE_OPEN,  /**< one pair adds to it */
    DN_SHM_GRANULE_RESTS, /**< it is opened again when all of it has been read */
    DN_SHM_GRANULE_LEFT, /**< the same; its reader was left with unread messages, and RESTS it when that has ended */
};

/** What a sender keeps for a granule of its stage. */
typedef struct dn_shm_granule {
    uint32_t put; /**< messages, ever, wraps; by the pair that it is open for, else fixed */
    enum dn_shm_granule_state state;
    struct dn_shm_peer *peer; /**< whose messages it holds, or held last; NULL: it was left */
    uint32_t os_pid;          /**< LEFT: its reader */
    uint64_t start_time;      /**< of that */
} dn_shm_granule_t;

typedef struct dn_shm_stage {
    dn_lock_t
        lock; /**< of all below; taken after a peer's. populated, turns and due are looked at without it, too, and so stored whole */
    uint32_t count;
    uint32_t populated; /**< the first so many have memory */
    uint32_t next;      /**< of these, to be looked at next */
    uint32_t turns;     /**< to a granule's start, since new memory was last asked for */
    uint32_t due;       /**< turns after which it is asked for again */
    uint32_t misses;    /**< looks in vain */
    uint32_t ends;      /**< not 0: the thread that brings memory in is to end */
    int early;          /**< there is such a thread */
    uint32_t met;       /**< connections whose peer's early memory was entered, up to DN_SHM_STAGE_MEETS */
    pthread_t thread;   /**< that */
    dn_shm_granule_t *granule;
} dn_shm_stage_t;

/**
 * The way to a peer; each arrow is one dn_shm_tx_turn():
 *
 *          dn_shm_open_tx()        a message finds it attached
 *   SHUT -------------------> RING ---------------------------> STAGE
 *    ^                         |                                  |
 *    +-------------------------+----------------------------------+   dn_shm_close_tx()
 */
enum dn_shm_tx_state {
    DN_SHM_TX_SHUT,  /**< it has room for nothing */
    DN_SHM_TX_RING,  /**< messages go through the ring */
    DN_SHM_TX_STAGE, /**< the peer has attached to our mapping: longer ones may go through the stage */
};

/** Which granule the next message goes to. */
enum dn_shm_walk {
    DN_SHM_WALK_AGAIN, /**< the first that has been read, so that few are used, and these stay in the caches */
    DN_SHM_WALK_ON, /**< the one behind the last, so that lines have left the caches when they are used again */
};

/** Lengths that are told apart: what a walk costs for a byte of one says little of others. */
enum dn_shm_walk_length {
    DN_SHM_WALK_SHORT,  /**< up to a page */
    DN_SHM_WALK_MEDIUM, /**< several fill a granule */
    DN_SHM_WALK_PIECE,  /**< of a long message; two fill a granule */
    DN_SHM_WALK_LENGTHS
};

/** How a sender finds out which takes less time, for one of the lengths. All zero at first. */
typedef struct dn_shm_walks {
    dn_choice_t choice;    /**< between walks, in ns for 64 KiB */
    enum dn_shm_walk walk; /**< of the next message */
    bool timed;            /**< whether that is timed */
} dn_shm_walks_t;

typedef struct dn_shm_peer {
    dn_peer_base_t base;
    _Alignas(DN_LINE_BYTES) dn_line_tx_t tx;
    size_t line_max; /**< longer messages may go through the stage */

    /** Its part of the stage. */
    struct {
        dn_shm_granule_t *granule; /**< open for this peer; NULL: none */
        uint32_t used;             /**< bytes of that */
        uint32_t heard;            /**< rx->line.head when a message of medium length was last sent */
        uint32_t turned;           /**< and when a granule was last full */
        uint32_t alone;            /**< turns since the peer was heard, up to DN_SHM_STAGE_ALONE */
        uint32_t vain;             /**< waits in a row that ended without a granule that was read */
        dn_shm_walks_t walks[DN_SHM_WALK_LENGTHS];
        dn_shm_walks_t *walking; /**< by which the open granule was found; NULL: its messages are a stream */
        uint64_t began_ns;       /**< when a message that is timed began to be written; 0: none is */
    } stage;

    uint32_t tx_state; /**< enum dn_shm_tx_state */
    uint32_t slot;     /**< in the peer's mapping */
    dn_lock_t lock;    /**< of tx, tx_state and stage, where several threads send */
    int threads;
    int cma;
    int self;
    int contends;      /**< may run only where we may */
    uint64_t help_min; /**< bytes from which a transfer is shared with it */
    dn_shm_map_t map;
    struct dn_shm_rx *rx; /**< what it sends to us; NULL: nothing attached */

    /** Its process. */
    struct {
        uint32_t os_pid;
        int32_t fd; /**< of its mapping, there */
        uint64_t start_time;
        uint64_t proved; /**< dn_shm_now_ns() when os_pid was still its own */
    } process;

    /** Its segments: dn_shm_view.c. */
    struct {
        dn_shm_view_t *first; /**< the last one used first */
        uint32_t count;
        int crowded; /**< said that more than DN_SHM_VIEWS would be mapped */
    } views;
} dn_shm_peer_t;

/** By state: those that may follow (dn_turn.h). */
extern const uint32_t dn_shm_tx_turns[], dn_shm_rx_turns[], dn_shm_granule_turns[];

/** The peer's lock is held, unless it is lost and about to be freed. A thread that finds no room reads the state without the lock
 * (acquire), and looks again under the port's before it opens the way. */
static inline void dn_shm_tx_turn(dn_shm_peer_t *peer, enum dn_shm_tx_state to)
{
    dn_turn_check("the way to a peer of shm", dn_shm_tx_turns, peer->tx_state, to);
    dn_store_release_u32(&peer->tx_state, to);
}

/** The stage's lock is held. */
static inline void dn_shm_granule_turn(dn_shm_granule_t *granule, enum dn_shm_granule_state to)
{
    dn_turn_check("a granule", dn_shm_granule_turns, granule->state, to);
    granule->state = to;
}

/**
 * What a peer sends to us; each arrow is one dn_shm_rx_turn(), under the port's lock:
 *
 *   NULL ---> READS ---> ENDS ---> NULL     dn_shm_attach_rx(), dn_shm_close_later(), dn_shm_detach_rx()
 */
enum dn_shm_rx_state {
    DN_SHM_RX_READS, /**< its ring is polled */
    DN_SHM_RX_ENDS, /**< it sends no more: when its ring is drained, it is forgotten, or comes by another slot */
};

/** What the owner keeps for a ring that is polled: one line. */
typedef struct dn_shm_rx {
    dn_line_rx_t line;
    dn_shm_peer_t *peer;
    uint32_t len_limit; /**< messages are shorter; 0: the sender is cut off */
    uint32_t slot;
    uint32_t state; /**< enum dn_shm_rx_state */
    uint8_t pad[64 - sizeof(dn_line_rx_t) - sizeof(void *) - 3 * sizeof(uint32_t)];
} dn_shm_rx_t;

_Static_assert(sizeof(dn_shm_rx_t) == 64, "a poll reads one private line");

static inline void dn_shm_rx_turn(dn_shm_rx_t *rx, enum dn_shm_rx_state to)
{
    dn_turn_check("what a peer of shm sends", dn_shm_rx_turns, rx->state, to);
    rx->state = to;
}

/** In dn_shm_t::refused, of a slot; 0: its sender is a peer, or was not looked at yet. */
enum dn_shm_refused {
    DN_SHM_REFUSED = 1, /**< until another group is admitted */
    DN_SHM_SPENT =
        2, /**< its ring has been read, so a reader would not know where to begin; its sender may still write */
    DN_SHM_LATER = 3,   /**< there was no descriptor or memory for it */
    DN_SHM_RETRY = 4,   /**< the same, and now it is tried again */
    DN_SHM_FOREIGN = 5, /**< what it names is none of ours: its ring is not read, nor is it waited for */
};

/** With more rings than DN_SHM_POLL_ALL, a poll looks at the recently active ones and at a few others. */
#define DN_SHM_POLL_ALL 6
#define DN_SHM_HOT      4
#define DN_SHM_SWEEP    4
#define DN_SHM_HOT_IDLE 256 /**< polls without a message until a ring is no longer hot */
#define DN_SHM_BATCH    32  /**< messages taken from one ring in a poll */

typedef struct dn_shm_hot {
    dn_shm_rx_t *rx;
    uint32_t idle;
} dn_shm_hot_t;

/** See dn_shm_help.c for the arrows between these. */
enum dn_shm_share_state {
    DN_SHM_SHARE_FREE = 0,
    DN_SHM_SHARE_CALL,   /**< the call that started it runs */
    DN_SHM_SHARE_OPEN,   /**< that call has returned DN_INPROGRESS */
    DN_SHM_SHARE_PARKED, /**< the peer is lost, its process has a chunk still: nobody has been told */
    DN_SHM_SHARE_OWED,   /**< nobody waits for it; the process may still write to the descriptor */
};

/** A transfer that the target may help with, as its initiator keeps it. */
typedef struct dn_shm_share {
    enum dn_shm_share_state state;
    dn_shm_peer_t *peer; /**< NULL when it is OWED: the peer may be freed */
    uint32_t os_pid;     /**< of the peer */
    uint64_t start_time;
    uint64_t generation; /**< of the descriptor: dn_shm_help.c */
    uint32_t chunks;
    uint32_t taken;     /**< by us */
    dn_status_t status; /**< of our own share; PARKED: what the caller is told */
    uint32_t waits;     /**< OPEN: looks in vain, until the target's life is checked */
    uint64_t look_ms;   /**< PARKED, OWED: when it is checked next */
    uint64_t late_ms;   /**< PARKED: when the caller is told at the latest */
    uint64_t remote;
    int write;      /**< a PUSH */
    dn_xfer_t xfer; /**< contiguous; its key is not kept */
} dn_shm_share_t;

typedef struct dn_shm {
    dn_iface_t iface;
    dn_config_t config;
    dn_shm_map_t map;
    int fd;
    int memfd;   /**< fd is one, else a file */
    int counted; /**< dn_memory_is_counted() when the port was opened */
    int threads;
    int named;                  /**< dn_shm_yama_allow() is to be undone */
    uint32_t contenders;        /**< processes, this one included, that may run only where this one may */
    uint32_t units;             /**< processing units there */
    char path[DN_SHM_PATH_MAX]; /**< "" with a memfd, or once unlinked */
    int folders;                /**< files of peers may be elsewhere than in /dev/shm: the job has a folder */
    uint64_t *cma_probe;
    uint64_t available; /**< what dn_shm_available() said, less what segments have been given since */
    uint64_t available_ms;
    uint64_t start_time;
    uint8_t host[16];
    uint64_t user_ns; /**< inode number of the user namespace */

    uint32_t lives; /**< slots taken as a sender, wraps */
    uint32_t seen;  /**< arrivals looked at */
    uint32_t nrx;
    dn_shm_rx_t **rx;
    uint32_t sweep;
    uint32_t nhot;
    dn_shm_hot_t hot[DN_SHM_HOT];
    uint8_t *refused;    /**< by slot: enum dn_shm_refused */
    int ending;          /**< some peer's rx ENDS */
    uint32_t patience;   /**< polls until dn_shm_chores() */
    uint64_t watched_ms; /**< when that last looked at the clock */
    uint64_t retry_ms;   /**< when it is to call dn_shm_retry(), 0: nothing waits */
    uint32_t watch_at;   /**< the watched peer to be looked at next */
    uint32_t watch_due;  /**< looks that are due, in parts of a round's milliseconds */

    dn_shm_stage_t stage;

    uint32_t nshares; /**< OPEN or PARKED */
    dn_shm_share_t share[DN_SHM_HELPS];
} dn_shm_t;

/** Do more processes than processing units run where this one may? */
static inline int dn_shm_shares_cores(const dn_shm_t *shm)
{
    return 0 != shm->units && shm->contenders > shm->units;
}

/**
 * Hold a peer's sending end, where several threads send. Taken after the port's lock, never before.
 * @return 0: not held: the peer was lost while another thread holds its end, maybe for ever. With a schedule of faults the kick
 *         of a window that was reserved before the loss does not come here.
 */
static inline __attribute__((warn_unused_result)) int dn_shm_lock_tx(dn_shm_peer_t *peer)
{
    while (peer->threads && !dn_trylock(&peer->lock)) {
        if (dn_peer_is_lost(&peer->base)) {
            return 0;
        }
        dn_pause();
    }
    return 1;
}

static inline void dn_shm_unlock_tx(dn_shm_peer_t *peer)
{
    if (peer->threads) {
        dn_unlock(&peer->lock);
    }
}

/** Something was stored for a peer to whom the way is open, or whose mapping was attached to: R1 and R2 of dn_wait.h. */
static inline void dn_shm_ring(const dn_shm_peer_t *peer)
{
    dn_bell_touch(&peer->map.header->bell);
}

/** @name dn_shm_map.c: mappings */
/** @{ */
/** Make the own mapping. Sets map, fd, path. */
dn_status_t dn_shm_create(dn_shm_t *shm, const dn_job_t *job);
void dn_shm_destroy(dn_shm_t *shm);
/** Unlink the file once every expected peer has attached. */
void dn_shm_unlink(dn_shm_t *shm);
/** Map a peer's, compare identity and check every size. DN_ERR_UNSUPPORTED: the kernel hides it from us. */
dn_status_t dn_shm_attach(const dn_shm_where_t *where, const dn_peer_base_t *id, dn_shm_map_t *map);
void dn_shm_detach(dn_shm_map_t *map);
/** Give a ring its memory now, where the file system, or a system that counts its memory, could run out of it later. */
dn_status_t dn_shm_reserve_ring(const dn_shm_peer_t *peer, const char *path, uint32_t slot);
void dn_shm_host(uint8_t host[16]);
uint64_t dn_shm_user_ns(void);
/** @} */

/** @name dn_shm_process.c: does a process live? Any thread may ask; each look reads /proc, some 20 us. */
/** @{ */
/** Start time of a process. DN_ERR_UNREACH: all of its threads have ended. DN_ERR_NOMEM: no telling now. */
dn_status_t dn_shm_process(uint32_t os_pid, uint64_t *start_time_p);
/** Parent of a process; 0: it has none here, or there is no telling. */
pid_t dn_shm_parent(pid_t pid);
/** Has the process that started then certainly ended? 0: it lives, or there is no telling now. */
int dn_shm_gone(uint32_t os_pid, uint64_t start_time);
/** @} */

/** @name dn_shm_peer.c: peers */
/** @{ */
dn_status_t dn_shm_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                           dn_peer_base_t **peer_p);
void dn_shm_disconnect(dn_peer_base_t *peer);
void dn_shm_release(dn_peer_base_t *peer);
void dn_shm_lost(dn_peer_base_t *peer);
dn_status_t dn_shm_check(dn_peer_base_t *peer);
/** A sender that we do not know yet: attach to its own mapping if its group may talk to us. DN_ERR_ACCESS, DN_ERR_PROTO,
 * DN_ERR_VERSION: it is none of ours; any other error may pass. */
dn_status_t dn_shm_meet(dn_shm_t *shm, const dn_shm_slot_t *slot, dn_shm_peer_t **peer_p);
/** Give back all that a peer has, and itself. The port knows it no more. */
void dn_shm_free_peer(dn_shm_t *shm, dn_shm_peer_t *peer);
/** @} */

/** @name dn_shm_slot.c: slots */
/** @{ */
/** Become a sender of this peer: claim a slot, write this process's identity there, count the arrival. path: of its file, or "". */
dn_status_t dn_shm_open_tx(dn_shm_peer_t *peer, const char *path);
/** The way to this peer is not open: its sending end has room for nothing. */
void dn_shm_shut_tx(dn_shm_peer_t *peer);
/** Stop being a sender; the owner drains what is in the ring. */
void dn_shm_close_tx(dn_shm_peer_t *peer);
/** Stop polling a ring; give its memory and its slot back. */
void dn_shm_detach_rx(dn_shm_t *shm, dn_shm_rx_t *rx);
/** Look at the slots after `arrivals` moved, or when more senders may be let in. */
void dn_shm_look(dn_shm_t *shm, int again);
/** Look again at senders for which there was no descriptor or memory, and at claims. */
void dn_shm_retry(dn_shm_t *shm);
/** Let the next progress look at the slots whether something arrived or not. */
void dn_shm_look_soon(dn_shm_t *shm);
/** Forget the senders that have closed and whose rings are drained. */
void dn_shm_reap(dn_shm_t *shm);
/** @} */

/** @name dn_shm_watch.c: what is done now and then. The port's lock is held. */
/** @{ */
void dn_shm_watch_start(dn_shm_t *shm);
/** Do what is due; called by a poll when dn_shm_t::patience has come to 0. */
void dn_shm_chores(dn_shm_t *shm);
/** Have dn_shm_retry() called after some time. */
void dn_shm_retry_later(dn_shm_t *shm);
/** This peer sends no more: forget it as soon as its ring is drained. */
void dn_shm_close_later(dn_shm_t *shm, dn_shm_peer_t *peer);
/** Nanoseconds of a clock that goes on by 1 to 10 ms at a time; a few ns to read. Any thread. */
uint64_t dn_shm_now_ns(void);
/** The same in milliseconds. */
uint64_t dn_shm_now_ms(void);
/** @} */

/** @name dn_shm_yama.c: which processes may read and write our memory by CMA. Any thread may call. */
/** @{ */
/** Name the launcher to Yama for one more port. @return whether dn_shm_yama_end() undoes it. */
int dn_shm_yama_allow(void);
/** One port less. */
void dn_shm_yama_end(void);
/** @} */

/** @name dn_shm_msg.c: AOTF and BOTF */
/** @{ */
dn_status_t dn_shm_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head, size_t head_len,
                        const void *body, size_t body_len);
dn_status_t dn_shm_reserve(dn_peer_t *peer, size_t len, dn_window_t *window);
void dn_shm_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len);
dn_status_t dn_shm_peek(dn_peer_t *src, unsigned channel, unsigned looks, dn_message_t *message);
void dn_shm_take(dn_peer_t *src, const dn_message_t *message);
dn_status_t dn_shm_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size);
dn_status_t dn_shm_aotf_line(dn_peer_t *peer, uint64_t off, const void *data, size_t len, uint64_t flag);
dn_status_t dn_shm_fence(dn_peer_t *peer);
/** A peer has written what no peer of ours writes. Count it, say so, read nothing more of it. what: "sent ..." */
void dn_shm_cut_off(dn_shm_t *shm, dn_shm_peer_t *peer, const char *what);
void dn_shm_wake(dn_peer_t *peer);
int dn_shm_progress(dn_iface_t *iface);
/** Look at all rings, and have the next progress do what is due. */
int dn_shm_poll_all(dn_iface_t *iface);
int dn_shm_recv(dn_peer_base_t *peer, int max);
/** @} */

/** @name dn_shm_stage.c: longer messages */
/** @{ */
/** Where receivers count the messages taken out of a granule: a line each, behind the last granule. */
static inline uint32_t *dn_shm_taken(const dn_shm_map_t *map, uint32_t granule)
{
    return (uint32_t *) (map->stage + map->stage_bytes + (size_t) granule * DN_LINE_BYTES);
}

dn_status_t dn_shm_stage_open(dn_shm_t *shm, const dn_job_t *job);
/** A peer is connected: what it has brought in early will be read soon. */
void dn_shm_stage_meet(dn_shm_t *shm, const dn_shm_peer_t *peer);
/** Before the mapping goes. */
void dn_shm_stage_end(dn_shm_t *shm);
/** After that. */
void dn_shm_stage_close(dn_shm_t *shm);
/**
 * Place for a message of at most botf_max bytes; there is room for its line, too. The peer's tx is held until it is kicked.
 * DN_ERR_AGAIN: the peer has to read first. DN_ERR_UNSUPPORTED: send this message through the ring.
 */
dn_status_t dn_shm_stage_reserve(dn_shm_peer_t *peer, size_t len, uint8_t **place_p);
void dn_shm_stage_kick(dn_shm_peer_t *peer, unsigned channel, unsigned tag, size_t len);
/** Make a line with DN_SHM_STAGED the message that it stands for. @return where to count it; NULL: malformed. */
uint32_t *dn_shm_stage_find(const dn_shm_rx_t *rx, dn_line_msg_t *msg);
/** Its bytes have been read (S1). */
static inline void dn_shm_stage_took(uint32_t *taken)
{
    dn_store_release_u32(taken, *taken + 1);
}
/** Nothing more is sent to this peer, which still has its mapping. */
void dn_shm_stage_leave(dn_shm_peer_t *peer);
/** @} */

/** @name dn_shm_rma.c, dn_shm_view.c, dn_shm_help.c, dn_shm_segment.c: PUSH, PULL, atomics, segments */
/** @{ */
dn_status_t dn_shm_push(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_shm_pull_op(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_shm_atomic(dn_peer_t *peer, const dn_amo_t *amo);
dn_status_t dn_shm_segment_alloc(dn_iface_t *iface, uint64_t len, void **base_p, dn_key_t *key);
void dn_shm_segment_release(dn_iface_t *iface, void *base, const dn_key_t *key);
void dn_shm_segment_register(dn_iface_t *iface, void *base, dn_key_t *key);
/** A page that says to peers whose memory this is: dn_shm_t::cma_probe. */
dn_status_t dn_shm_probe_open(dn_shm_t *shm);
void dn_shm_probe_close(dn_shm_t *shm);
/** Does the kernel let us read this peer's memory, and is it this peer's? One real read decides. */
int dn_shm_cma_probe(const dn_shm_peer_t *peer);
/** One copy between the own memory and a peer's, both contiguous. */
dn_status_t dn_shm_cma_copy(dn_shm_peer_t *peer, void *local, uint64_t remote, uint64_t len, int write);

/** PULL or PUSH a long contiguous block while the target copies a share of it. DN_ERR_UNSUPPORTED: DN_SHM_HELPS of
 * them are under way, or it is too long: copy it alone. */
dn_status_t dn_shm_share(dn_shm_peer_t *peer, const dn_xfer_t *xfer, uint64_t remote, int write);
/** Write the status words of a transfer that is complete. */
void dn_shm_signal(dn_shm_peer_t *peer, const dn_xfer_t *xfer);
/** The target's side: a message on DN_CHAN_DEVICE. */
void dn_shm_message(dn_peer_base_t *src, unsigned tag, const void *data, size_t len);
/** Finish transfers whose last chunks have arrived. @return how many. */
int dn_shm_help_progress(dn_shm_t *shm);
/** A peer is lost: complete the transfers with it, or, while its process has a chunk of one, do so in progress later. */
void dn_shm_help_lost(dn_shm_t *shm, dn_shm_peer_t *peer);
/** Nothing more is sent to a peer, nor comes from it: its transfers end in 2 s at most, in progress. @return whether they have. */
int dn_shm_help_leave(dn_shm_t *shm, const dn_shm_peer_t *peer);
/** The same, and wait for them. */
void dn_shm_help_end(dn_shm_t *shm, const dn_shm_peer_t *peer);
/** The port closes: nobody is told any more of any transfer, and the 2 s of them all begin. */
void dn_shm_help_close(dn_shm_t *shm);
/** @} */

#endif
