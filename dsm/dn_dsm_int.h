/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_int.h
 * Private to libdn_dsm.
 *
 * Memory. Every process has a segment as long as the whole shared memory: the *cache*. A page is at the same offset in all caches. The
 * bytes in the cache of its home are the page's content. The cache is mapped twice: `raw`, for the library, and `front`, at the same
 * address in all processes, for the program. A second segment, the *desk*, has what other processes read or write for locks and notices.
 * Nothing here is sent by messages. Pages and notices go by PULL and PUSH. A lock is a word that processes swap. A lock is handed over by
 * a line of LLCM that the waiting process polls. So other processes need a process that computes only where its device needs progress,
 * and a thread makes this progress.
 *
 * The life of a page in a process that is not its home:
 *
 *                 access                       done, but not stale            write
 *      ABSENT ------------> FETCHING ------------------------------> CLEAN ----------> DIRTY
 *        ^                    |  ^ stale meanwhile: once more        |  ^               |
 *        |                    +--+                                   |  | sent          | release
 *        +---------------- notice, acquire --------------------------+  +-- FLUSHING <--+
 *        +---------------- sent, and stale meanwhile ---------------------------'
 *
 * The home of a page may change at a barrier (dn_dsm_move.c). In its home the page is never fetched and has no twin. OWN is a page of
 * which no other process has a lasting copy:
 *
 *      ABSENT ----access----> OWN ----barrier: a process has fetched it---> DIRTY <---> FLUSHING, CLEAN as above
 *      CLEAN -----barrier: the home has moved here----> OWN
 *
 * Where the way of detection has a scan (dn_dsm_detect.h), no write is noticed when it is made. So there is no moment at which a twin could
 * be made before the first write. Each copy has its twin from the start, and is CLEAN whether it was written or not:
 *
 *                 access             done: twin           notice, acquire             sent
 *      ABSENT ------------> FETCHING ----------> CLEAN -----------------> DROPPING ---------> ABSENT
 *                                                | ^
 *                                                +-+ release: scan, protect what was found, send what differs from the twin
 *
 * The twin has the bytes that came from the home, and the bytes that were sent from here. So a page differs from its twin exactly in the
 * bytes that were written here and not sent yet, no matter which other process writes the page. No write is lost:
 *
 *   - A write before the release is in the page before the scan asks the kernel. So the scan finds the page, and the comparison finds the
 *     write. A page that a scan does not find keeps its mark in the kernel, so a later scan finds it.
 *   - A page that was found is protected before it is compared. Another thread may write to the page meanwhile. Either the word that is
 *     compared has this write: then the write is sent, and is in the twin. Or the page differs from the twin afterwards, and the next scan
 *     finds the page.
 *   - A copy that is dropped is taken out of the front before it is compared: no thread writes it any more. It is compared in any case, as
 *     the kernel does not tell any more whether it was written.
 *   - The kernel may take a page out of the front when it reclaims memory. The scan finds this page, as if it had been written.
 *
 * A home needs no twin: if a scan finds a page at home, the page is noted. If it was not written, there is a notice too many, and no harm.
 *
 * A write fault may also make the next pages DIRTY, ahead of their writes (dn_dsm_page_guess()). A release finds pages that equal their
 * twins. It sends nothing of them, and tells nobody.
 *
 * A page is *shared* when a barrier has told all processes that a process has fetched it. Before that, its home does not notice its own
 * writes to the page. So a copy of such a page is *loose*: it is dropped at each acquire.
 *
 * Ranks of one host may have one cache: dn_dsm_host.h. Then "its home" is any rank of the home's host. Where a page is fetched or sent, or
 * has a twin, that is for all ranks of the host; but each rank has states of its own.
 *
 * Order of locks: a lock's own, `sync`, pages that are taken, places for fetched pages (dn_dsm_host.h), `table`. While a thread holds
 * `table`, it does not wait, does not call libdimmnet, and does not touch the front. A fault takes pages and `table`, never `sync`.
 */
#ifndef DN_DSM_INT_H
#define DN_DSM_INT_H

#include <dn_atomic.h>
#include <dn_log.h>
#include <dn_tree.h>
#include <dn_wait.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "dn_dsm.h"
#include "dn_dsm_count.h"
#include "dn_dsm_fault.h"
#include "dn_dsm_note.h"
#include "dn_dsm_op.h"

/** Notes that a lock, or a process, keeps for other processes. A process that is further behind drops all copies. */
#define DN_DSM_LOG 512u
/** A PUSH is started when it has so many blocks. The last page may add more blocks. */
#define DN_DSM_BLOCKS 4096u
/** The most pages that are fetched together. */
#define DN_DSM_FETCH 64u
/** The most pages that a write fault makes writable ahead of their writes. */
#define DN_DSM_AHEAD 16u
/** The most locks. */
#define DN_DSM_LOCKS_MAX 4096u

/** The state of a page in this process: see the head of this file. */
typedef enum dn_dsm_state {
    DN_DSM_ABSENT,
    DN_DSM_FETCHING,
    DN_DSM_CLEAN,
    DN_DSM_DIRTY,
    DN_DSM_FLUSHING,
    DN_DSM_DROPPING,
    DN_DSM_OWN
} dn_dsm_state_t;

/** Flags of a page. */
enum {
    DN_DSM_SHARED = 1 << 0, /**< a barrier has told that it was fetched: the same in all processes */
    DN_DSM_LOOSE = 1 << 1,  /**< fetched before it was shared: in dn_dsm_t::loose */
    DN_DSM_WROTE = 1 << 2,  /**< written and sent since the last barrier: in dn_dsm_t::wrote */
    DN_DSM_STALE = 1 << 3,  /**< the copy that is here, or on its way, has to be dropped */
    DN_DSM_LISTED = 1 << 4  /**< in dn_dsm_t::stale, also if a release has dropped it since */
};

/** A page in this process. Any thread of the process writes it, under `table`. */
typedef struct dn_dsm_page {
    uint8_t state; /**< dn_dsm_state_t; only dn_dsm_page_set() changes it */
    uint8_t flags; /**< DN_DSM_SHARED and so on */
    uint16_t home; /**< rank of its home */
} dn_dsm_page_t;

/** Pages that lie together, as a barrier tells of them. */
typedef struct dn_dsm_run {
    uint32_t page;  /**< the first */
    uint32_t count; /**< number of pages; the top bit, DN_DSM_RUN_WROTE: written; else fetched */
} dn_dsm_run_t;
#define DN_DSM_RUN_WROTE (UINT32_C(1) << 31)

/** What each process tells the others in a call that all processes make. If lines of the tree have less room, fewer runs are sent. */
typedef struct dn_dsm_tell {
    uint32_t call; /**< dn_dsm_call_t, and of a reduction its DN_DSM_CALL_FOLD() */
    uint32_t runs; /**< number of runs; those that do not fit here are on the board of the process */
    /** the interval of the last release; DN_DSM_CALL_ALLOC: a sum of the arguments; DN_DSM_CALL_CLOSE: not 0 if it makes a map */
    uint64_t interval;
    dn_dsm_run_t run[5]; /**< the first runs */
} dn_dsm_tell_t;
_Static_assert(DN_AOTF_LINE_MAX == sizeof(dn_dsm_tell_t), "one line");
/** Bytes of a dn_dsm_tell_t without runs. */
#define DN_DSM_TELL_MIN 16u

typedef enum dn_dsm_call {
    DN_DSM_CALL_BARRIER = 1,
    DN_DSM_CALL_REDUCE,
    DN_DSM_CALL_ALLOC,
    DN_DSM_CALL_CLOSE
} dn_dsm_call_t;

/** The part of dn_dsm_tell_t::call that is a dn_dsm_call_t. */
#define DN_DSM_CALL_MASK UINT32_C(0xff)
/** The other part, for a reduction: it has to be the same in all processes. */
#define DN_DSM_CALL_FOLD(fold, count) ((uint32_t) (fold) << 8 | (uint32_t) (count) << 16)

/** A lock, in the desk of its home. The home is rank lock % ranks. Other processes write it by transfers and atomic operations. */
typedef struct dn_dsm_word {
    uint64_t tail; /**< 1 + the rank that asked last; 0: the lock is free. Each process that asks swaps it */
    uint64_t seq;  /**< notes that were told by this lock so far, or too many. The holder writes it */
    uint64_t pad[6];
    dn_dsm_note_t log[DN_DSM_LOG]; /**< the last of these notes, by their number % DN_DSM_LOG. Likewise */
} dn_dsm_word_t;

/** Two lines of LLCM for each lock in each process. The process that hands the lock over writes the first line; the process that waits
 * for this process writes `next`. */
typedef struct dn_dsm_lines {
    uint64_t seq;          /**< dn_dsm_word_t::seq */
    uint32_t count;        /**< notes that were told by the last holder, the last ones before seq */
    dn_dsm_note_t note[3]; /**< the first of these notes */
    uint64_t spare;
    uint64_t flag; /**< dn_dsm_lock_t::turn of this process: the lock is handed over to it */
    uint64_t next; /**< 1 + rank, and turn << 16, of the process that waits for this process; 0: none yet */
    uint64_t pad[7];
} dn_dsm_lines_t;
_Static_assert(128 == sizeof(dn_dsm_lines_t) && DN_AOTF_LINE_MAX == offsetof(dn_dsm_lines_t, flag),
               "two lines, of which the first ends with its flag");

/** A lock, in this process. The thread that holds `mutex` writes it. */
typedef struct dn_dsm_lock {
    pthread_mutex_t mutex; /**< held by the thread that has the lock, or asks for it */
    uintptr_t owner;       /**< a number of the thread that has the lock; 0: no thread has it. Atomic */
    uint64_t turn;         /**< how often this process has asked for the lock */
    uint64_t seq;          /**< dn_dsm_word_t::seq up to which this process has heard. Also under `sync` */
    uint64_t told;         /**< dn_dsm_notes_t::stamp up to which the lock was told. Also under `sync` */
} dn_dsm_lock_t;

/** Has this process seen more than it has notes of? Then a process that gets a lock from it drops all copies. This does not hold for the
 * lock by which this process has seen more: the other processes that use that lock are told by its log, too. Under `sync`. */
typedef struct dn_dsm_blind {
    uint64_t stamp; /**< dn_dsm_notes_t::stamp when it last saw more; 0: not since the last barrier */
    uint64_t other; /**< the same, but by another lock than `by` */
    uint32_t by;    /**< the lock of `stamp`; DN_DSM_NOWHERE: dn_dsm_acquire() */
} dn_dsm_blind_t;

/** Notes that another process tells this process at a release: a ring in the desk. The other process writes it by PUSHes, which also count
 * the notes in a word of LLCM (dn_dsm_t::counts). */
typedef struct dn_dsm_ring {
    dn_dsm_note_t log[DN_DSM_LOG]; /**< by number % DN_DSM_LOG */
} dn_dsm_ring_t;

/** Files in memory that a process offers to other processes of its host. */
typedef struct dn_dsm_offer {
    uint64_t nonce;    /**< random number in the names of the files */
    uint32_t os_pid;   /**< the kernel's number of the process; 0: no offer was made */
    int32_t table;     /**< descriptor of the table in that process; -1: none is offered */
    int32_t cache;     /**< descriptor of the cache in that process; -1: dn_segment_map() maps the cache */
    uint32_t together; /**< its dn_dsm_t::together */
} dn_dsm_offer_t;

/** What a process tells the others when it opens the memory. Numbers of bytes are offsets in its desk or LLCM. */
typedef struct dn_dsm_card {
    uint64_t bytes;      /**< dn_dsm_bytes() */
    uint32_t locks;      /**< number of locks */
    uint32_t page_bytes; /**< bytes of a page */
    uint32_t protocol;   /**< dn_dsm_protocol_t */
    uint32_t places;     /**< bit i: dn_dsm_place_address(i) is free in the process */
    uint64_t moves;      /**< not 0: homes move */
    uint64_t rings;      /**< desk: dn_dsm_ring_t of each rank */
    uint64_t board;      /**< desk: dn_dsm_t::board */
    uint64_t lines;      /**< LLCM: dn_dsm_lines_t of each lock */
    uint64_t counts;     /**< LLCM: a word for the ring of each rank */
    dn_key_t cache;
    dn_key_t desk;
    dn_dsm_offer_t offer;
    dn_tree_card_t tree;
} dn_dsm_card_t;

/** How notices travel, and what they do. */
typedef enum dn_dsm_protocol { DN_DSM_LAZY, DN_DSM_SCOPE, DN_DSM_EAGER, DN_DSM_UPDATE } dn_dsm_protocol_t;

/** Values of dn_dsm_spot_t::taken. */
enum { DN_DSM_FREE, DN_DSM_TAKEN, DN_DSM_SENT };

/** A page, in the table. The rank that has taken the page writes it. */
typedef struct dn_dsm_spot {
    uint32_t taken; /**< DN_DSM_TAKEN: a rank has taken the page; DN_DSM_SENT: and sends it. Atomic */
    uint32_t sent;  /**< how often the page was sent. It wraps, and is compared for equality only. Atomic */
    /** 1 + the clock before the last fetch by a process that knew that the page is shared; 0: there was none. Atomic */
    uint64_t since;
} dn_dsm_spot_t;
_Static_assert(16 == sizeof(dn_dsm_spot_t), "processes agree on the layout");

/** What the ranks of a host have together: dn_dsm_host.h. `spot` is NULL where this rank is alone on its host, or all ranks share. */
typedef struct dn_dsm_host {
    uint8_t *table;      /**< the table: twins, clock, spots, intervals. All ranks of the host map it */
    uint64_t *clock;     /**< in the table: a count. Any rank adds 1. Atomic */
    dn_dsm_spot_t *spot; /**< in the table: by page */
    /** in the table: by page * ranks + rank, the interval up to which the copy has what that rank has written. The rank that has
     * taken the page writes it. Atomic */
    uint64_t *within;
    uint64_t wanted; /**< the least dn_dsm_spot_t::since that is new enough for this process. Under `table` */
    uint32_t *marked; /**< by page: dn_dsm_spot_t::sent (dn_dsm_host_mark()); NULL: no scan. Under `sync` */
    uint64_t free; /**< bit i: page i of dn_dsm_t::beside is a free place for a fetched page. Under `table` */
    void *cache;   /**< the keeper's cache, if it was mapped from the keeper's file; else NULL */
} dn_dsm_host_t;

/** The processes that have written a page, where homes move: dn_dsm_move.c. */
typedef struct dn_dsm_writer dn_dsm_writer_t;

/** Write faults that follow each other: dn_dsm_page_guess(). */
typedef struct dn_dsm_guess {
    uint32_t next; /**< the page behind those that the last write fault has made writable */
    uint32_t most; /**< pages that it was to make writable ahead of their writes, at most DN_DSM_AHEAD */
} dn_dsm_guess_t;

/** A way to meet: struct dn_dsm_meet below. */
typedef struct dn_dsm_meet dn_dsm_meet_t;

/** Bits of dn_dsm_t::unheard: a thread writes the log line, and it was written. */
enum { DN_DSM_SAYS = 1, DN_DSM_SAID = 2 };

/** The shared memory. The thread that opens it sets all members; members without another note do not change after that. */
struct dn_dsm {
    uint32_t rank;
    uint32_t ranks;
    uint32_t locks;      /**< number of locks */
    uint32_t page_bytes; /**< bytes of a page */
    uint32_t pages;      /**< number of pages, allocated or not */
    /** pages that are allocated: pages 0 .. used - 1. The thread that allocates writes it; others read it by dn_dsm_used(). Atomic */
    uint32_t used;
    uint32_t timeout_s;
    dn_dsm_protocol_t protocol;
    bool moves; /**< homes move */
    /** all ranks map one cache: nothing is fetched or told. The front permits all accesses to what is allocated, and none else */
    bool shares;
    uint32_t together;                 /**< ranks may map one cache if rank / together is the same for them */
    uint16_t keeper[DN_DSM_RANKS_MAX]; /**< by rank: the rank whose cache has its pages */
    dn_dsm_host_t host;
    const dn_dsm_meet_t *meet;
    int folder;     /**< of dn_dsm_meet_folder: descriptor of the folder; -1: not open */
    char path[256]; /**< path of that folder, for log lines */

    dn_port_t *port;
    dn_peer_t *peer[DN_DSM_RANKS_MAX]; /**< by rank, this rank included */
    dn_dsm_card_t *card;               /**< by rank */
    dn_tree_t *tree;                   /**< NULL: there is one rank */
    size_t tell_bytes;                 /**< bytes of a dn_dsm_tell_t that fit into a line of the tree */
    uint32_t lost;                     /**< dn_dsm_gone(). Threads that make progress write it. Atomic */
    uint32_t closing;                  /**< not 0: dn_dsm_is_closing(). Atomic */
    uint32_t
        unheard; /**< a call has failed by a loss of which progress did not tell: DN_DSM_SAYS, DN_DSM_SAID. Atomic */
    uint32_t broken; /**< not 0: a call that all processes make has failed. Only such calls use it */

    dn_segment_t *cache; /**< the cache of this process */
    void *cache_file; /**< memory of that cache in a file of this process; NULL: the segment's own memory */
    uint8_t *raw;     /**< the keeper's cache, mapped for the library */
    uint8_t *front;   /**< the same, mapped for the program */
    /** private memory, as long as the cache: twins, at the offsets of their pages; with a `host`: places for fetched pages */
    uint8_t *beside;
    uint8_t *twin;        /**< twins, at the offsets of their pages: `beside`, or in the table of the host */
    dn_dsm_watch_t watch; /**< of the front */
    dn_dsm_range_t range; /**< of the front */
    pid_t process;        /**< the process that has opened the memory: the kernel's number */

    dn_segment_t *desk;
    dn_dsm_ring_t *rings; /**< in the desk: by rank */
    /** in the desk: two boards of dn_dsm_board_runs() runs, for this barrier and for the last one, by turns */
    dn_dsm_run_t *board;
    dn_dsm_lines_t *lines;            /**< LLCM: by lock */
    uint64_t *counts;                 /**< LLCM: by rank: notes in its ring so far. That rank writes it */
    uint64_t heard[DN_DSM_RANKS_MAX]; /**< by rank: how many of these were heard. Under `sync` */
    uint64_t told; /**< notes that this process has put into the rings of others so far. Under `sync` */

    pthread_mutex_t sync;  /**< held in releases and acquires: guards notes, lists and rings */
    pthread_mutex_t table; /**< guards what is about pages */
    dn_dsm_page_t *page;   /**< by page. Under `table`; but homes: in calls that all processes make */
    uint64_t *held;        /**< by page, as bits: the page is neither ABSENT nor OWN. Under `table` */
    /** threads that fetch a page once more, since it became stale meanwhile: no page is marked until it is 0. Under `table` */
    uint32_t again;
    dn_dsm_guess_t guess; /**< under `table` */
    dn_dsm_list_t dirty;  /**< DIRTY pages. Under `table` */
    dn_dsm_list_t loose;  /**< pages with DN_DSM_LOOSE. Under `table` */
    dn_dsm_list_t wrote;  /**< pages with DN_DSM_WROTE. Under `sync` and `table` */
    dn_dsm_list_t flush;  /**< pages that are being sent. Under `sync` */
    uint64_t *same;       /**< by page, as bits: the page is in `flush`, and was not written. Under `sync` */
    dn_dsm_list_t stale;  /**< pages whose copies are to be dropped: DN_DSM_LISTED. Under `sync` */
    dn_dsm_writer_t *writer; /**< by page; NULL: homes stay. Under `sync` */
    dn_dsm_list_t told_of;   /**< written pages of which the present barrier tells. Under `sync` */
    dn_dsm_notes_t notes;    /**< under `sync` */
    uint64_t interval;       /**< of the last release that has sent a page. Under `sync` */
    dn_dsm_blind_t blind;    /**< under `sync` */
    uint64_t barriers;       /**< barriers and reductions so far. The thread that is in one writes it */
    /** threads in calls that release or acquire, and DN_DSM_GATE_ALL while a thread is in a barrier. Atomic */
    uint32_t gate;
    dn_dsm_lock_t *lock; /**< by lock */
    dn_dsm_note_t *out;  /**< room for DN_DSM_LOG notes and a word. Under `sync` */
    dn_dsm_run_t *in;    /**< room for a board of another process. Under `sync` */
    dn_block_t *blocks;  /**< room for DN_DSM_BLOCKS, and for those of a page more. Under `sync` */

    pthread_t server; /**< makes progress while the program computes */
    bool serves;      /**< there is a server */
    uint32_t stop;    /**< not 0: the server has to end. The thread that closes writes it. Atomic */
    /** Threads in dn_dsm_wait() or dn_dsm_end(), which make progress themselves; in the upper 32 bits, how many such waits have begun. Atomic */
    uint64_t waits;

    dn_dsm_stat_t stat; /**< atomic */
    char *map;          /**< path of the file for the page map; NULL: no map is made */
    /** with a map: by page, how often it was fetched; else NULL. The thread that has set a page to FETCHING counts it */
    uint32_t *fetched;
};

/** Nanoseconds of a clock that never goes back. */
static inline uint64_t dn_dsm_clock(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

/** @name Waiting (dn_dsm.c) */
/** @{ */
/** 1 + rank of a process that is gone; 0: none. L1: pairs with L0 in dn_dsm_lost(): the log line on the process was written before. */
static inline uint32_t dn_dsm_gone(const dn_dsm_t *dsm)
{
    return dn_load_acquire_u32(&dsm->lost);
}

/** @retval DN_ERR_UNREACH  a process is gone. */
static inline dn_status_t dn_dsm_is_whole(const dn_dsm_t *dsm)
{
    return 0 == dn_dsm_gone(dsm) ? DN_OK : DN_ERR_UNREACH;
}

/**
 * Is this process closing, so that a process that goes is not missed? A thread that makes progress asks this when it hears that a process
 * has gone.
 *
 * Relaxed: another process goes only after it has heard "done" from this process. This process tells "done" by a system call, after it has
 * set the word. So the word is in memory before the other process goes, and before a thread here can hear of that. If a
 * process went earlier, a thread may find 0 or 1: either is right then.
 */
static inline bool dn_dsm_is_closing(const dn_dsm_t *dsm)
{
    return 0 != dn_load_relaxed_u32(&dsm->closing);
}

/**
 * Pages that are allocated, for a thread that does not allocate.
 *
 * Relaxed: a thread that touches a page, or is told of it, comes after the call that has allocated the page in this process. Either the
 * program has passed the address to the thread, or another process has left that call before it wrote the page. So the thread finds at
 * least the pages of that call.
 */
static inline uint32_t dn_dsm_used(const dn_dsm_t *dsm)
{
    return dn_load_relaxed_u32(&dsm->used);
}

/** Bytes of the memory. */
static inline uint64_t dn_dsm_bytes(const dn_dsm_t *dsm)
{
    return (uint64_t) dsm->pages * dsm->page_bytes;
}

/** Make progress and wait a turn, between two looks in vain. @param[in,out] wait  Zeros at first. @param[in] flags  0, or DN_WAIT_BLIND.
 * @retval DN_ERR_UNREACH  a process is gone. */
dn_status_t dn_dsm_wait(dn_dsm_t *dsm, dn_wait_t *wait, unsigned flags);

/** Wait for the end of a transfer: dn_dsm_op_end(). @retval DN_ERR_UNREACH  the transfer has failed, and a process is gone. */
dn_status_t dn_dsm_end(dn_dsm_t *dsm, dn_dsm_op_t *op);
/** Start a transfer, and wait for its end. */
dn_status_t dn_dsm_move(dn_dsm_t *dsm, uint32_t rank, dn_xfer_t *xfer, bool write);
/** Do an atomic operation on a word of a desk, and wait for its end. @param[out] old_p  The value before. */
dn_status_t dn_dsm_amo(dn_dsm_t *dsm, uint32_t rank, dn_amo_t *amo, uint64_t *old_p);
/** A call is about to return a status. If this is DN_ERR_UNREACH, wait until progress has told which process is gone: its log line comes before
 * the call returns. An operation may return DN_ERR_UNREACH before progress tells, or as another process has given up; then there may be
 * no such process, and after a second the log line is of @p what. Later calls return at once then. @return the status. */
dn_status_t dn_dsm_heard(dn_dsm_t *dsm, dn_status_t status, const char *what);
/** End this process with a sentence, unless a status is DN_OK or DN_ERR_UNREACH. It is for calls for which other processes wait: after
 * such an error the lock is not handed over, or the barrier is not joined. @return dn_dsm_heard(). */
dn_status_t dn_dsm_must(dn_dsm_t *dsm, dn_status_t status, const char *what);
/** @} */

/** @name The gate (dn_dsm.c)
 * A process that has left a barrier forgets the notices that the barrier has told, and in a barrier pages become shared rank by rank. A
 * release or acquire of another thread meanwhile would miss some notices. So these calls are kept apart from barriers: both change one
 * word, and the call that comes second finds the other there. A call that is refused does not change the word. */
/** @{ */
/** A barrier adds this to the word; each other call adds 1. */
#define DN_DSM_GATE_ALL (UINT32_C(1) << 16)
/** A call that releases or acquires begins. @retval DN_ERR_PARAM  another thread is in a barrier: nothing happened. */
dn_status_t dn_dsm_gate_enter(dn_dsm_t *dsm, const char *what);
/** A barrier begins. If another thread is in a call that releases or acquires, this ends the process, as others wait for the barrier. */
void dn_dsm_gate_close(dn_dsm_t *dsm, const char *what);
/** The call or barrier ends. @param[in] what  1, or DN_DSM_GATE_ALL. */
static inline void dn_dsm_gate_leave(dn_dsm_t *dsm, uint32_t what)
{
    (void) dn_fetch_sub_release(&dsm->gate, what); /* G0 */
}
/** @} */

/** @name Configuration (dn_dsm_config.c) */
/** @{ */
/** Check a configuration, and take it over. Errors as dn_dsm_open(). */
dn_status_t dn_dsm_config_take(dn_dsm_t *dsm, const dn_dsm_config_t *config);
/** @} */

/** @name Meeting (dn_dsm_meet.c)
 * Each process tells bytes under a name, then waits until it may hear the bytes of the others. */
/** @{ */
/** A way to meet. */
struct dn_dsm_meet {
    /** Begin, and get the key of the process group. @param[in] folder  dn_dsm_config_t::folder. */
    dn_status_t (*open)(dn_dsm_t *dsm, const char *folder, dn_group_key_t *key);
    /** End. The caller calls this also after open() has failed. */
    void (*close)(dn_dsm_t *dsm);
    /** Give the others bytes under a name that is used once. */
    dn_status_t (*tell)(dn_dsm_t *dsm, const char *what, const void *bytes, size_t len);
    /** All processes call this when they have told. A way whose hear() waits does nothing here. */
    dn_status_t (*together)(dn_dsm_t *dsm);
    /** Get the bytes of a rank; wait for them if the way can. @param[in,out] len  In: room. Out: bytes. */
    dn_status_t (*hear)(dn_dsm_t *dsm, uint32_t rank, const char *what, void *bytes, size_t *len);
};

/** By files in a folder. */
extern const dn_dsm_meet_t dn_dsm_meet_folder;
/** By the launcher, if dimmnet was built with PMIx. */
extern const dn_dsm_meet_t dn_dsm_meet_pmix;

/** The way by which a process with this dn_dsm_config_t::folder meets the others. */
const dn_dsm_meet_t *dn_dsm_meet_find(const char *folder);
/** Make a random key for the process group. */
dn_status_t dn_dsm_meet_key(dn_group_key_t *key);
/** Tell, then wait for all. A process that cannot tell waits, too; otherwise it and the others would come to different fences.
 * @param[in] bytes  NULL: this process tells nothing. @return the first error. */
dn_status_t dn_dsm_meet_all(dn_dsm_t *dsm, const char *what, const void *bytes, size_t len);
/** Pause between two looks. @param[in] until  dn_dsm_meet_until(). @param[in] whom, where  For the log line: the process that has not come,
 * and the place. @retval DN_ERR_UNREACH  a process is gone, or the time is over. */
dn_status_t dn_dsm_meet_pause(dn_dsm_t *dsm, uint64_t until, const char *whom, const char *where);
/** The time of dn_dsm_clock() at which a wait that begins now gives up. */
uint64_t dn_dsm_meet_until(const dn_dsm_t *dsm);
/** @} */

/** @name Calls that all make (dn_dsm_barrier.c) */
/** @{ */
/** Tell all other processes, and hear what they tell. @param[out] told  By rank. */
dn_status_t dn_dsm_all(dn_dsm_t *dsm, const dn_dsm_tell_t *tell, dn_dsm_tell_t *told);
/** @} */

/** @name Opening (dn_dsm_open.c) */
/** @{ */
/** The i-th address that is tried for the front. The front lies at the first of them that is free in all processes. */
uint8_t *dn_dsm_place_address(uint32_t i);
/** Free the memory, and all that was opened for it. Called also when an opening has failed. */
void dn_dsm_free(dn_dsm_t *dsm);
/** @} */

/** @name Homes that move (dn_dsm_move.c)
 * If homes stay, dn_dsm_move_open() is not called, and the others do nothing. `sync` is held, but not in dn_dsm_move_open(). */
/** @{ */
/** Allocate what is known of writers. */
dn_status_t dn_dsm_move_open(dn_dsm_t *dsm);
/** A barrier will tell what this process has written, and all of this has been sent. Fetch the written pages that may move here. */
dn_status_t dn_dsm_move_prepare(dn_dsm_t *dsm);
/** A barrier tells that a process has written a page. */
void dn_dsm_move_hear(dn_dsm_t *dsm, uint32_t page, uint32_t rank);
/** The barrier has told everything: move the homes that have to move. */
void dn_dsm_move_homes(dn_dsm_t *dsm);
/** @} */

/** @name The page map (dn_dsm_map.c) */
/** @{ */
/** Begin to count for a map. @param[in] path  NULL: there is no map. */
dn_status_t dn_dsm_map_open(dn_dsm_t *dsm, const char *path);
/** All processes have come to dn_dsm_close(): tell rank 0 the counts. @param[out] fetched_p  In rank 0: for dn_dsm_map_write(); NULL: there
 * is no map. */
dn_status_t dn_dsm_map_gather(dn_dsm_t *dsm, const dn_dsm_tell_t *told, uint32_t **fetched_p);
/** Write the map, and free what was gathered. No process waits for this. */
dn_status_t dn_dsm_map_write(const dn_dsm_t *dsm, uint32_t *fetched);
/** @} */

/** @name Pages (dn_dsm_page.c) */
/** @{ */
/** PULL pages from the caches that have them. @param[in] page  Numbers of @p count pages, at most DN_DSM_FETCH, in rising order.
 * @param[in] to, place  Page page[i] goes to the place[i]-th page at @p to; place is in rising order, too. */
dn_status_t dn_dsm_page_pull(dn_dsm_t *dsm, uint8_t *to, const uint32_t *place, const uint32_t *page,
                             uint32_t count);
/**
 * Make pages accessible, and fetch those that are not here.
 * @param[in] page    At most DN_DSM_FETCH, in rising order.
 * @param[in] needed  So many, the first ones, are needed. Others are left out where they are at home, or not CLEAN.
 * @param[in] write   DN_DSM_IS_READ and so on.
 */
dn_status_t dn_dsm_page_have(dn_dsm_t *dsm, const uint32_t *page, uint32_t count, uint32_t needed, int write);
/** dn_dsm_access_fn_t of the front. */
const char *dn_dsm_page_access(dn_dsm_range_t *range, uint64_t off, int kind);
/** Make pages first .. first + count - 1 readable or writable, and fetch those that are not here. */
dn_status_t dn_dsm_page_need(dn_dsm_t *dsm, uint32_t first, uint32_t count, bool write);
/** Send home what this process has written. `sync` is held. */
dn_status_t dn_dsm_page_release(dn_dsm_t *dsm);
/** Drop the copies of dsm->stale, and empty the list; with protocol "update" fetch them again. `sync` is held. */
dn_status_t dn_dsm_page_drop(dn_dsm_t *dsm);
/** A notice names a page: its copy is stale. `sync` is held. */
void dn_dsm_page_stale(dn_dsm_t *dsm, uint32_t page);
/** All copies are stale. `sync` is held. */
void dn_dsm_page_all_stale(dn_dsm_t *dsm);
/** All loose copies are stale. `sync` is held. */
void dn_dsm_page_loose_stale(dn_dsm_t *dsm);
/** All processes are in a barrier: move a page to another home. `sync` is held. */
void dn_dsm_page_move(dn_dsm_t *dsm, uint32_t number, uint32_t home);
/** A barrier has told that a page was fetched: the page is shared. `sync` is held. */
void dn_dsm_page_share(dn_dsm_t *dsm, uint32_t page);
/** @} */

/** @name Notices (dn_dsm_tell.c) */
/** @{ */
/** Take notes. `sync` is held. @param[in] from  The lock that has told them; or DN_DSM_NOWHERE. */
void dn_dsm_hear(dn_dsm_t *dsm, const dn_dsm_note_t *note, uint64_t count, uint32_t from);
/** Release; with an eager protocol, tell all other processes. `sync` is held. */
dn_status_t dn_dsm_tell_release(dn_dsm_t *dsm);
/** With an eager protocol, hear what the others have told. `sync` is held. */
void dn_dsm_hear_rings(dn_dsm_t *dsm);
/** This process has seen more than it has notes of. `sync` is held. @param[in] by  The lock by which it has; or DN_DSM_NOWHERE. */
void dn_dsm_blind_set(dn_dsm_t *dsm, uint32_t by);
/** The most runs of a board: those of the written pages, and those of the fetched pages. */
static inline uint64_t dn_dsm_board_runs(const dn_dsm_t *dsm)
{
    return (uint64_t) dsm->pages + 2;
}
/** Is the protocol eager: "eager" or "update"? */
static inline bool dn_dsm_is_eager(const dn_dsm_t *dsm)
{
    return DN_DSM_EAGER <= dsm->protocol;
}
/** @} */

#endif
