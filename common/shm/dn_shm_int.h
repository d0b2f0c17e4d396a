/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_int.h
 * Inside of the shm device: the private data of a process about its own mapping, its peers and its transfers. dn_shm_wire.h has the
 * data that peers see.
 *
 * Threads: the port's lock guards all of this data, the states included, unless a comment says otherwise. A peer's own lock guards
 *          the sending end to that peer, and is taken after the port's lock, never before. The stage's lock is taken after a peer's.
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

/** The mapping of a process: of this process or of a peer. */
typedef struct dn_shm_map {
    dn_shm_header_t *header;
    dn_shm_slot_t *slot;
    uint8_t *llcm;
    uint8_t *rings;
    size_t ring_stride;
    uint8_t *stage;
    size_t bytes;
    int file; /**< not 0: a file, not a memfd: the file system can run out of room */
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

/** Views at most that are kept of one peer. */
#define DN_SHM_VIEWS 4096u

/**
 * The life of a granule of the stage; each arrow is one dn_shm_granule_turn():
 *
 *   NEW ---> OPEN <---> RESTS <---> LEFT
 *             ^                      |
 *             +----------------------+
 */
enum dn_shm_granule_state {
    DN_SHM_GRANULE_NEW,   /**< the granule was never open */
    DN_SHM_GRANULE_OPEN,  /**< one sender and receiver use it: the sender adds messages */
    DN_SHM_GRANULE_RESTS, /**< it may be opened again once all its messages have been read */
    DN_SHM_GRANULE_LEFT, /**< as RESTS, but its reader's peer was freed with messages unread; RESTS once that process has ended */
};

/** The sender's private data for a granule of its stage. */
typedef struct dn_shm_granule {
    uint32_t put; /**< messages put there, ever; wraps; fixed unless OPEN */
    enum dn_shm_granule_state state;
    struct dn_shm_peer *peer; /**< the reader of its messages, now or last; NULL: that peer was left */
    uint32_t os_pid;          /**< LEFT: process of its reader */
    uint64_t start_time;      /**< LEFT: of that process */
} dn_shm_granule_t;

typedef struct dn_shm_stage {
    dn_lock_t
        lock; /**< of all below; taken after a peer's. populated, turns, due: read without it, too, so stored whole */
    uint32_t count;
    uint32_t populated; /**< granules that have memory: the first ones */
    uint32_t next;      /**< index of the populated granule to be looked at next */
    uint32_t turns;     /**< moves to a granule's start since new memory was last asked for */
    uint32_t due;       /**< turns after which new memory is asked for again */
    uint32_t misses;    /**< turns that found no granule */
    uint32_t ends;      /**< not 0: the thread that brings memory in is to end */
    int early;          /**< not 0: that thread was started */
    uint32_t met;       /**< connections whose peer's early memory was entered, up to DN_SHM_STAGE_MEETS */
    pthread_t thread;   /**< the thread that brings memory in */
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
    DN_SHM_TX_SHUT, /**< nothing can be sent */
    DN_SHM_TX_RING, /**< messages go through the ring */
    DN_SHM_TX_STAGE, /**< the peer has attached to this process's mapping: longer messages may go through the stage */
};

/** The next granule for messages, once the present one is full. */
enum dn_shm_walk {
    DN_SHM_WALK_AGAIN, /**< the first one that has been read: few are used, and stay in the caches */
    DN_SHM_WALK_ON,    /**< the one behind the last: lines have left the caches when they are used again */
};

/** Classes of length of messages. The cost of a walk for a byte of one class tells little about other classes. */
enum dn_shm_walk_length {
    DN_SHM_WALK_SHORT,  /**< up to a page */
    DN_SHM_WALK_MEDIUM, /**< several fill a granule */
    DN_SHM_WALK_PIECE,  /**< piece of a long message; two fill a granule */
    DN_SHM_WALK_LENGTHS
};

/** A sender's choice of the faster walk, for one class of length. All zero at first. */
typedef struct dn_shm_walks {
    dn_choice_t choice;    /**< among the walks; costs are ns for 64 KiB */
    enum dn_shm_walk walk; /**< of the next message */
    bool timed;            /**< the next message is timed */
} dn_shm_walks_t;

typedef struct dn_shm_peer {
    dn_peer_base_t base;
    _Alignas(DN_LINE_BYTES) dn_line_tx_t tx;
    size_t line_max; /**< longer messages may go through the stage */

    /** The sender's data about messages to this peer through the stage. */
    struct {
        dn_shm_granule_t *granule; /**< open for this peer; NULL: none */
        uint32_t used;             /**< bytes used of `granule` */
        uint32_t heard;            /**< rx->line.head when a message of medium length was last sent */
        uint32_t turned;           /**< rx->line.head when a granule was last full */
        uint32_t alone;            /**< turns since a message of the peer came, up to DN_SHM_STAGE_ALONE */
        uint32_t vain;             /**< waits in a row in which no granule was read */
        dn_shm_walks_t walks[DN_SHM_WALK_LENGTHS];
        dn_shm_walks_t *walking; /**< choice of the open granule's walk; NULL: its messages are a stream */
        uint64_t began_ns;       /**< when the write of the timed message began; 0: no message is timed */
    } stage;

    uint32_t tx_state; /**< enum dn_shm_tx_state */
    uint32_t slot;     /**< in the peer's mapping */
    dn_lock_t lock;    /**< of tx, tx_state and stage, where several threads send */
    int threads;
    int cma;
    int self;
    int contends;      /**< not 0: the peer may run only where this process may */
    uint64_t help_min; /**< least bytes of a transfer that is shared with the peer */
    dn_shm_map_t map;
    struct dn_shm_rx *rx; /**< reading end of the peer's messages; NULL: its ring is not polled */

    /** The peer's process. */
    struct {
        uint32_t os_pid;
        int32_t fd; /**< number of its mapping's descriptor in that process */
        uint64_t start_time;
        uint64_t proved; /**< dn_shm_now_ns() when os_pid was last seen to be this process */
    } process;

    /** The peer's segments that are mapped here: dn_shm_view.c. */
    struct {
        dn_shm_view_t *first; /**< the view that was used last; then the others by their last use */
        uint32_t count;
        /** Not 0: an atomic operation on a segment that can be mapped has gone by messages. Relaxed: a thread keeps the order of its own. */
        uint32_t passed;
        int crowded; /**< not 0: the log says already that more than DN_SHM_VIEWS are wanted */
    } views;
} dn_shm_peer_t;

/** For each state, the states that may follow (dn_turn.h). */
extern const uint32_t dn_shm_tx_turns[], dn_shm_rx_turns[], dn_shm_granule_turns[];

/** Change the state of the way to a peer. The peer's lock is held, unless the peer is lost and about to be freed. A thread that finds no
 * room reads the state without this lock (acquire), and reads it again under the port's lock before it opens the way. */
static inline void dn_shm_tx_turn(dn_shm_peer_t *peer, enum dn_shm_tx_state to)
{
    dn_turn_check("the way to a peer of shm", dn_shm_tx_turns, peer->tx_state, to);
    dn_store_release_u32(&peer->tx_state, to);
}

/** Change the state of a granule. The stage's lock is held. */
static inline void dn_shm_granule_turn(dn_shm_granule_t *granule, enum dn_shm_granule_state to)
{
    dn_turn_check("a granule", dn_shm_granule_turns, granule->state, to);
    granule->state = to;
}

/**
 * The reading end of a peer's messages; each arrow is one dn_shm_rx_turn(), under the port's lock:
 *
 *   NULL ---> READS ---> ENDS ---> NULL     dn_shm_attach_rx(), dn_shm_close_later(), dn_shm_detach_rx()
 */
enum dn_shm_rx_state {
    DN_SHM_RX_READS, /**< the peer's ring is polled */
    DN_SHM_RX_ENDS, /**< the peer sends no more: once its ring is drained, it is dropped, or comes by another slot */
};

/** The owner's private data for a ring that is polled: one line. */
typedef struct dn_shm_rx {
    dn_line_rx_t line;
    dn_shm_peer_t *peer;
    uint32_t len_limit; /**< messages are shorter; 0: the sender is cut off */
    uint32_t slot;
    uint32_t state;  /**< enum dn_shm_rx_state */
    uint32_t polled; /**< dn_shm_t::polls of the last poll of many rings that has polled this ring */
    uint8_t pad[64 - sizeof(dn_line_rx_t) - sizeof(void *) - 4 * sizeof(uint32_t)];
} dn_shm_rx_t;

_Static_assert(sizeof(dn_shm_rx_t) == 64, "a poll reads one private line");

/** Bits of dn_shm_t::ending. */
enum {
    DN_SHM_ENDS_SOON = 1, /**< an rx that ENDS may be drained after the next poll */
    DN_SHM_ENDS_HELD =
        2, /**< the next message of an rx that ENDS has no handler: the usual chores look at that */
};

static inline void dn_shm_rx_turn(dn_shm_rx_t *rx, enum dn_shm_rx_state to)
{
    dn_turn_check("what a peer of shm sends", dn_shm_rx_turns, rx->state, to);
    rx->state = to;
}

/** Values of dn_shm_t::refused, for a slot. 0: the slot's sender is a peer, or was not looked at yet. */
enum dn_shm_refused {
    DN_SHM_REFUSED = 1, /**< until another group is admitted */
    DN_SHM_SPENT =
        2, /**< its ring was read, so a new reader would not know where to begin; its sender may still write */
    DN_SHM_LATER = 3,   /**< there was no descriptor or memory for it */
    DN_SHM_RETRY = 4,   /**< as DN_SHM_LATER, and it is tried again now */
    DN_SHM_FOREIGN = 5, /**< it names no peer of this port: its ring is not read, and not waited for */
};

/** With more rings than DN_SHM_POLL_ALL, a poll looks at the recently active (hot) rings and at a few others. */
#define DN_SHM_POLL_ALL 6
#define DN_SHM_HOT      4
#define DN_SHM_SWEEP    4
#define DN_SHM_HOT_IDLE 256 /**< polls without a message until a ring is no longer hot */
#define DN_SHM_BATCH    32  /**< messages taken from one ring in a poll */

typedef struct dn_shm_hot {
    dn_shm_rx_t *rx;
    uint32_t idle;
} dn_shm_hot_t;

/** The states of a shared transfer. dn_shm_help.c has the arrows. */
enum dn_shm_share_state {
    DN_SHM_SHARE_FREE = 0,
    DN_SHM_SHARE_CALL,   /**< the call that started the transfer runs */
    DN_SHM_SHARE_OPEN,   /**< that call has returned DN_INPROGRESS */
    DN_SHM_SHARE_PARKED, /**< the peer is lost, its process still has a chunk; the caller is not told yet */
    DN_SHM_SHARE_OWED, /**< the caller does not wait any more; the process may still write to the descriptor */
};

/** The initiator's data for a transfer of which the target may copy a share. */
typedef struct dn_shm_share {
    enum dn_shm_share_state state;
    dn_shm_peer_t *peer; /**< OWED: NULL, as the peer may be freed */
    uint32_t os_pid;     /**< of the peer */
    uint64_t start_time;
    uint64_t generation; /**< of the descriptor: dn_shm_help.c */
    uint32_t chunks;
    uint32_t taken;     /**< chunks taken by this process */
    dn_status_t status; /**< of this process's share; PARKED: the status for the caller */
    uint32_t waits;     /**< OPEN: looks in vain since the target's life was last checked */
    uint64_t look_ms;   /**< PARKED, OWED: when the process's life is checked next */
    uint64_t late_ms;   /**< PARKED: when the caller is told at the latest */
    uint64_t remote;
    int write;      /**< not 0: a PUSH */
    dn_xfer_t xfer; /**< contiguous; its key is not kept */
} dn_shm_share_t;

typedef struct dn_shm {
    dn_iface_t iface;
    dn_config_t config;
    dn_shm_map_t map;
    int fd;
    int memfd;   /**< not 0: fd is a memfd; else it is a file */
    int counted; /**< dn_memory_is_counted() when the port was opened */
    int threads;
    int named;                  /**< not 0: dn_shm_yama_end() is due at the end */
    uint32_t contenders;        /**< processes, this one included, that may run only where this one may */
    uint32_t units;             /**< processing units where this process may run */
    char path[DN_SHM_PATH_MAX]; /**< "" with a memfd, or once unlinked */
    int folders; /**< not 0: the job has a folder, so files of peers may be outside of /dev/shm */
    uint64_t *cma_probe;
    uint64_t available; /**< last result of dn_shm_available(), less the bytes of segments allocated since */
    uint64_t available_ms;
    uint64_t start_time;
    uint8_t host[16];
    uint64_t user_ns; /**< inode number of the user namespace */

    uint32_t lives; /**< slots taken as a sender, wraps */
    uint32_t seen;  /**< value of `arrivals` when the slots were last looked at */
    uint32_t nrx;
    dn_shm_rx_t **rx;
    uint32_t sweep;
    /** number of the last poll of many rings; wraps, and is compared with that of a poll not long ago */
    uint32_t polls;
    uint32_t nhot;
    dn_shm_hot_t hot[DN_SHM_HOT];
    uint8_t *refused;    /**< for each slot: enum dn_shm_refused */
    int ending;          /**< DN_SHM_ENDS_*; 0: the rx of no peer ENDS */
    uint32_t patience;   /**< polls until dn_shm_chores() */
    uint64_t watched_ms; /**< when dn_shm_chores() last read the clock */
    uint64_t retry_ms;   /**< when dn_shm_chores() is to call dn_shm_retry(); 0: not at all */
    uint32_t watch_at;   /**< the watched peer to be looked at next */
    uint32_t watch_due;  /**< looks that are due, times the milliseconds of a round */

    dn_shm_stage_t stage;

    uint32_t nshares; /**< shares that are OPEN or PARKED */
    dn_shm_share_t share[DN_SHM_HELPS];
} dn_shm_t;

/** Do more processes share the processing units of this process than it has units? */
static inline int dn_shm_shares_cores(const dn_shm_t *shm)
{
    return 0 != shm->units && shm->contenders > shm->units;
}

/**
 * Hold a peer's sending end, where several threads send. Taken after the port's lock, never before.
 * @return 0: not held. The peer was lost while another thread held its end, maybe for ever: under a schedule of faults the kick
 *         of a window that was reserved before the loss never comes here.
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

/** Wake a peer, after a store to its mapping: R1 and R2 of dn_wait.h. The way to the peer is open, or its mapping is attached. */
static inline void dn_shm_ring(const dn_shm_peer_t *peer)
{
    dn_bell_touch(&peer->map.header->bell);
}

/** @name dn_shm_map.c: mappings */
/** @{ */
/** Make this process's mapping. Sets map, fd, path. */
dn_status_t dn_shm_create(dn_shm_t *shm, const dn_job_t *job);
void dn_shm_destroy(dn_shm_t *shm);
/** Unlink the file once every expected peer has attached. */
void dn_shm_unlink(dn_shm_t *shm);
/** Attach to a peer's mapping: map it, compare identities and check every size. DN_ERR_UNSUPPORTED: the kernel hides the mapping. */
dn_status_t dn_shm_attach(const dn_shm_where_t *where, const dn_peer_base_t *id, dn_shm_map_t *map);
void dn_shm_detach(dn_shm_map_t *map);
/** Allocate the memory of a ring now, where the file system, or a system that counts its memory, could run out of memory later. */
dn_status_t dn_shm_reserve_ring(const dn_shm_peer_t *peer, const char *path, uint32_t slot);
void dn_shm_host(uint8_t host[16]);
uint64_t dn_shm_user_ns(void);
/** @} */

/** @name dn_shm_process.c: does a process live? Any thread may ask; each look reads /proc, some 20 us. */
/** @{ */
/** Start time of a process. DN_ERR_UNREACH: all of its threads have ended. DN_ERR_NOMEM: not known now. */
dn_status_t dn_shm_process(uint32_t os_pid, uint64_t *start_time_p);
/** Parent of a process; 0: the process has none in this PID namespace, or the parent is not known. */
pid_t dn_shm_parent(pid_t pid);
/** Has the process with this number and start time certainly ended? 0: it lives, or this is not known now. */
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

/** Has the peer closed its port? (Acquire: what it has sent before is there.) */
static inline int dn_shm_has_closed(const dn_shm_peer_t *peer)
{
    return 0 != dn_load_acquire_u32(&peer->map.header->closed);
}

/** Something is wanted of a peer that has closed its port: its users are told when all its messages that have a handler are read.
 * Any thread. @return DN_ERR_UNREACH. */
static inline dn_status_t dn_shm_want(dn_shm_peer_t *peer)
{
    /* Relaxed: dn_shm_note_closed() looks at it later, and finds nothing else by it. */
    dn_store_relaxed_u32(&peer->base.wanted, 1);
    return DN_ERR_UNREACH;
}

/** Make a peer of a new sender: attach to the sender's mapping if its group is admitted. DN_ERR_ACCESS, DN_ERR_PROTO,
 * DN_ERR_VERSION: the sender cannot be a peer of this port. Any other error may pass. */
dn_status_t dn_shm_meet(dn_shm_t *shm, const dn_shm_slot_t *slot, dn_shm_peer_t **peer_p);
/** Free a peer and all that belongs to it. The port has forgotten the peer before. */
void dn_shm_free_peer(dn_shm_t *shm, dn_shm_peer_t *peer);
/** Free a child's copy of a peer: dn_device_t::close_copy. */
void dn_shm_free_copy(dn_shm_peer_t *peer);
/** @} */

/** @name dn_shm_slot.c: slots */
/** @{ */
/** Become a sender to this peer: claim a slot, write this process's identity there, count the arrival.
 * @param[in] path  Of the peer's file, or "". */
dn_status_t dn_shm_open_tx(dn_shm_peer_t *peer, const char *path);
/** Shut the way to this peer: its sending end has no room. */
void dn_shm_shut_tx(dn_shm_peer_t *peer);
/** Give up being a sender to this peer. The peer drains the messages that are in the ring. */
void dn_shm_close_tx(dn_shm_peer_t *peer);
/** Stop polling a ring. Its memory and its slot are given back. */
void dn_shm_detach_rx(dn_shm_t *shm, dn_shm_rx_t *rx);
/** The port closes, and has stopped reading the rings of its peers. Stop the rings that it has never read, too: a sender tells by their
 * credit whether it has sent something after the close (dn_shm_came_late()). */
void dn_shm_stop_rings(dn_shm_t *shm);
/** Look at the slots, after `arrivals` has changed. @param[in] again  Not 0: look again at senders whose group was not admitted. */
void dn_shm_look(dn_shm_t *shm, int again);
/** Look again at senders for which there was no descriptor or memory, and for claims whose process has ended. */
void dn_shm_retry(dn_shm_t *shm);
/** Have the next progress look at the slots, even if no sender has arrived. */
void dn_shm_look_soon(dn_shm_t *shm);
/** Drop the senders that have closed, and whose rings are drained. */
void dn_shm_reap(dn_shm_t *shm);
/** @} */

/** @name dn_shm_watch.c: chores, which a poll does now and then. The port's lock is held. */
/** @{ */
void dn_shm_watch_start(dn_shm_t *shm);
/** Do the chores that are due. A poll calls this when dn_shm_t::patience has come to 0. */
void dn_shm_chores(dn_shm_t *shm);
/** Have dn_shm_retry() called after some time. */
void dn_shm_retry_later(dn_shm_t *shm);
/** This peer sends no more: drop it as soon as its ring is drained. */
void dn_shm_close_later(dn_shm_t *shm, dn_shm_peer_t *peer);
/** Nanoseconds of a clock that goes on by 1 to 10 ms at a time; a few ns to read. Any thread. */
uint64_t dn_shm_now_ns(void);
/** dn_shm_now_ns() in milliseconds. */
uint64_t dn_shm_now_ms(void);
/** @} */

/** @name dn_shm_yama.c: processes that may read and write this process's memory by CMA. Any thread may call. */
/** @{ */
/** Name the launcher to Yama for one more port. @return whether dn_shm_yama_end() undoes it. */
int dn_shm_yama_allow(void);
/** Undo one dn_shm_yama_allow(). */
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
/** A peer has written what no sound peer writes: count this, log it, and read nothing more from the peer.
 * @param[in] what  The deed, for the log: "sent ..." */
void dn_shm_cut_off(dn_shm_t *shm, dn_shm_peer_t *peer, const char *what);
/** Read all that a peer has sent, whose process has ended or has closed its port. Of a peer that is cut off, nothing is read. */
void dn_shm_read_last(dn_shm_t *shm, dn_shm_peer_t *peer);
void dn_shm_wake(dn_peer_t *peer);
/** Has the next message of a ring a channel without a handler? */
int dn_shm_is_held(const dn_shm_t *shm, const dn_shm_rx_t *rx);
int dn_shm_progress(dn_iface_t *iface);
/** Look at all rings, and have the next progress do the chores. */
int dn_shm_poll_all(dn_iface_t *iface);
int dn_shm_recv(dn_peer_base_t *peer, int max);
/** @} */

/** @name dn_shm_stage.c: longer messages */
/** @{ */
/** The count of messages that the receiver has taken out of a granule. Each count has a line of its own, behind the last granule. */
static inline uint32_t *dn_shm_taken(const dn_shm_map_t *map, uint32_t granule)
{
    return (uint32_t *) (map->stage + map->stage_bytes + (size_t) granule * DN_LINE_BYTES);
}

dn_status_t dn_shm_stage_open(dn_shm_t *shm, const dn_job_t *job);
/** A peer is connected: enter the memory that the peer has brought in early into this process's page table. */
void dn_shm_stage_meet(dn_shm_t *shm, const dn_shm_peer_t *peer);
/** End the thread that brings memory in. Called before the mapping is destroyed. */
void dn_shm_stage_end(dn_shm_t *shm);
/** Free the private data. Called after the mapping was destroyed. */
void dn_shm_stage_close(dn_shm_t *shm);
/**
 * Reserve a place for a message of at most botf_max bytes, with room for its line in the ring. The peer's tx is held until
 * dn_shm_stage_kick().
 * DN_ERR_AGAIN: the peer has to read first. DN_ERR_UNSUPPORTED: send this message through the ring.
 */
dn_status_t dn_shm_stage_reserve(dn_shm_peer_t *peer, size_t len, uint8_t **place_p);
void dn_shm_stage_kick(dn_shm_peer_t *peer, unsigned channel, unsigned tag, size_t len);
/** Replace a line with DN_SHM_STAGED by the message that the line names. @return the count for dn_shm_stage_took(); NULL: malformed. */
uint32_t *dn_shm_stage_find(const dn_shm_rx_t *rx, dn_line_msg_t *msg);
/** Count a message whose bytes have been read (S1). */
static inline void dn_shm_stage_took(uint32_t *taken)
{
    dn_store_release_u32(taken, *taken + 1);
}
/** Let go of the granules of a peer to which nothing more is sent. The peer's mapping is still attached. */
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
/** Make the page by which peers know this process's memory: dn_shm_t::cma_probe. */
dn_status_t dn_shm_probe_open(dn_shm_t *shm);
void dn_shm_probe_close(dn_shm_t *shm);
/** Does the kernel let this process read the peer's memory, and is the memory really this peer's? One read decides. */
int dn_shm_cma_probe(const dn_shm_peer_t *peer);
/** One copy between this process's memory and a peer's memory, both contiguous. */
dn_status_t dn_shm_cma_copy(dn_shm_peer_t *peer, void *local, uint64_t remote, uint64_t len, int write);

/** PULL or PUSH a long contiguous block while the target copies a share of it. DN_ERR_UNSUPPORTED: DN_SHM_HELPS such transfers
 * are under way, or the block is too long: the caller copies it alone. */
dn_status_t dn_shm_share(dn_shm_peer_t *peer, const dn_xfer_t *xfer, uint64_t remote, int write);
/** Write the status words of a transfer that is complete, and wake the target of a PUSH. */
void dn_shm_signal(dn_shm_peer_t *peer, const dn_xfer_t *xfer, int write);
/** The target's side: handle a message on DN_CHAN_DEVICE. */
void dn_shm_message(dn_peer_base_t *src, unsigned tag, const void *data, size_t len);
/** Finish the transfers whose last chunks are done. @return their number. */
int dn_shm_help_progress(dn_shm_t *shm);
/** A peer is lost: complete the transfers with it. Where its process still has a chunk of a transfer, progress completes this later. */
void dn_shm_help_lost(dn_shm_t *shm, dn_shm_peer_t *peer);
/** Nothing more goes to a peer or comes from it: progress ends its transfers within 2 s. @return whether all have ended already. */
int dn_shm_help_leave(dn_shm_t *shm, const dn_shm_peer_t *peer);
/** As dn_shm_help_leave(), and wait until the transfers have ended. */
void dn_shm_help_end(dn_shm_t *shm, const dn_shm_peer_t *peer);
/** The port closes: no caller is told of a transfer any more, and the 2 s begin for all transfers at once. */
void dn_shm_help_close(dn_shm_t *shm);
/** @} */

#endif
