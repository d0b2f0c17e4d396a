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

/** Notices that a lock, or a process, keeps for other processes. A process that is further behind drops all copies. */
#define DN_DSM_LOG 512u
/** Blocks of one transfer. */
#define DN_DSM_BLOCKS 4096u
/** Pages that are fetched at once. */
#define DN_DSM_FETCH 64u
/** Most locks. */
#define DN_DSM_LOCKS_MAX 4096u

/** Of a page, in this process: see above. */
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
    DN_DSM_SHARED = 1 << 0, /**< the same in all processes */
    DN_DSM_LOOSE = 1 << 1,  /**< fetched, and in the list of those since the last barrier */
    DN_DSM_WROTE = 1 << 2,  /**< written, and in the list of those since the last barrier */
    DN_DSM_STALE = 1 << 3,  /**< what is here, or on its way, is to be dropped */
    DN_DSM_LISTED = 1 << 4  /**< in the list of stale ones, where it stays until that is gone through */
};

/** A page; under `table`. */
typedef struct dn_dsm_page {
    uint8_t state; /**< dn_dsm_state_t: dn_dsm_page_set() alone changes it */
    uint8_t flags;
    uint16_t home;
} dn_dsm_page_t;

/** Pages that lie together, as a barrier tells of them. */
typedef struct dn_dsm_run {
    uint32_t page;
    uint32_t count; /**< the top bit: DN_DSM_RUN_WROTE */
} dn_dsm_run_t;
#define DN_DSM_RUN_WROTE (UINT32_C(1) << 31)

/** What each process tells the others in a call that all processes make. Where there is less room, the message has fewer runs. */
typedef struct dn_dsm_tell {
    uint32_t call; /**< dn_dsm_call_t, and of a reduction its DN_DSM_CALL_FOLD() */
    uint32_t runs; /**< written or fetched pages */
    /** Of what was written; for DN_DSM_CALL_ALLOC a sum of its arguments; for DN_DSM_CALL_CLOSE not 0 where it tells a map. */
    uint64_t interval;
    dn_dsm_run_t run[5];
} dn_dsm_tell_t;
_Static_assert(DN_AOTF_LINE_MAX == sizeof(dn_dsm_tell_t), "one line");
#define DN_DSM_TELL_MIN 16u

typedef enum dn_dsm_call {
    DN_DSM_CALL_BARRIER = 1,
    DN_DSM_CALL_REDUCE,
    DN_DSM_CALL_ALLOC,
    DN_DSM_CALL_CLOSE
} dn_dsm_call_t;

/** What of dn_dsm_tell_t::call is a dn_dsm_call_t. */
#define DN_DSM_CALL_MASK UINT32_C(0xff)
/** Beside it, what is the same in all processes. */
#define DN_DSM_CALL_FOLD(fold, count) ((uint32_t) (fold) << 8 | (uint32_t) (count) << 16)

/** A lock, in the desk of its home, which is rank lock % ranks. */
typedef struct dn_dsm_word {
    uint64_t tail; /**< 1 + the rank that asked last; 0: it is free */
    uint64_t seq;  /**< notices told by it so far: the holder's to write */
    uint64_t pad[6];
    dn_dsm_note_t log[DN_DSM_LOG]; /**< the last of them, by seq % DN_DSM_LOG */
} dn_dsm_word_t;

/** Two lines of LLCM for each lock. */
typedef struct dn_dsm_lines {
    uint64_t seq;   /**< dn_dsm_word_t::seq, from the process that hands the lock over */
    uint32_t count; /**< notes beside it, the last ones before seq */
    dn_dsm_note_t note[3];
    uint64_t spare;
    uint64_t flag; /**< dn_dsm_lock_t::turn: it is handed over */
    uint64_t next; /**< 1 + rank, and turn << 16, of the process that waits for this process; 0: none yet */
    uint64_t pad[7];
} dn_dsm_lines_t;
_Static_assert(128 == sizeof(dn_dsm_lines_t) && DN_AOTF_LINE_MAX == offsetof(dn_dsm_lines_t, flag),
               "two lines, of which the first ends with its flag");

/** A lock, in this process. */
typedef struct dn_dsm_lock {
    pthread_mutex_t mutex; /**< held by the thread that has the lock, or waits for another process */
    uintptr_t owner;       /**< a number of the thread that has the lock; 0: no thread has it. Atomic */
    uint64_t turn;         /**< times that this process has asked for it */
    uint64_t seq;          /**< notices of it that were heard */
    uint64_t told;         /**< dn_dsm_notes_t::stamp of what it was told */
} dn_dsm_lock_t;

/** More was seen than there are notes of: who gets a lock from this process drops all. The lock by which it was seen needs no
 * telling: its others were told when this process was. */
typedef struct dn_dsm_blind {
    uint64_t stamp; /**< dn_dsm_notes_t::stamp when it was last so; 0: not since the last barrier */
    uint64_t other; /**< the same, by another lock than `by` */
    uint32_t by;    /**< the lock of `stamp`; DN_DSM_NOWHERE: dn_dsm_acquire() */
} dn_dsm_blind_t;

/** Notices that one process tells this one as it releases: a ring in the desk. Their count is a word of LLCM. */
typedef struct dn_dsm_ring {
    dn_dsm_note_t log[DN_DSM_LOG];
} dn_dsm_ring_t;

/** Files in memory that a process offers to others of its host. */
typedef struct dn_dsm_offer {
    uint64_t nonce; /**< in their names */
    uint32_t os_pid;
    int32_t table;     /**< descriptor there; -1: nothing is offered */
    int32_t cache;     /**< the same; -1: dn_segment_map() maps it */
    uint32_t together; /**< as many ranks share there at most: dn_dsm_t::together */
} dn_dsm_offer_t;

/** What a process tells the others when it opens. */
typedef struct dn_dsm_card {
    uint64_t bytes;
    uint32_t locks;
    uint32_t page_bytes;
    uint32_t protocol;
    uint32_t places; /**< bits: dn_dsm_place_address() that are free in it */
    uint64_t moves;  /**< homes do */
    uint64_t rings;  /**< in the desk */
    uint64_t board;  /**< in the desk */
    uint64_t lines;  /**< LLCM: dn_dsm_lines_t of each lock */
    uint64_t counts; /**< LLCM: a word for each rank's ring */
    dn_key_t cache;
    dn_key_t desk;
    dn_dsm_offer_t offer;
    dn_tree_card_t tree;
} dn_dsm_card_t;

/** How notices travel, and what they do. */
typedef enum dn_dsm_protocol { DN_DSM_LAZY, DN_DSM_SCOPE, DN_DSM_EAGER, DN_DSM_UPDATE } dn_dsm_protocol_t;

/** Of dn_dsm_spot_t::taken. */
enum { DN_DSM_FREE, DN_DSM_TAKEN, DN_DSM_SENT };

/** A page, in the table. */
typedef struct dn_dsm_spot {
    uint32_t taken; /**< DN_DSM_TAKEN: a rank has it. DN_DSM_SENT: and sends it. Atomic */
    uint32_t sent;  /**< times that it was sent: it wraps, and is only asked whether it is another. Atomic */
    /** 1 + the clock before the last fetch by a process that knew that the page is shared; 0: there was none. Atomic */
    uint64_t since;
} dn_dsm_spot_t;
_Static_assert(16 == sizeof(dn_dsm_spot_t), "processes agree on the layout");

/** What the ranks of a host have together: dn_dsm_host.h. `spot` is NULL where this rank is alone on its host, or all ranks share. */
typedef struct dn_dsm_host {
    uint8_t *table;      /**< it begins with the twins */
    uint64_t *clock;     /**< in it. Atomic */
    dn_dsm_spot_t *spot; /**< in it: by page */
    /** In it: by page * ranks + rank, the interval up to which the copy has what the rank has written. Atomic */
    uint64_t *within;
    uint64_t wanted;  /**< the least dn_dsm_spot_t::since that does for this process. Under `table` */
    uint32_t *marked; /**< with a scan: dn_dsm_spot_t::sent, by page; else NULL. Under `sync` */
    uint64_t free;    /**< bits: places of dn_dsm_t::beside, a page each, that nobody has. Under `table` */
    void *cache;      /**< the keeper's, where it was mapped from its file; else NULL */
} dn_dsm_host_t;

/** Who has written a page, where homes move: dn_dsm_move.c. */
typedef struct dn_dsm_writer dn_dsm_writer_t;

/** A way to meet: below. */
typedef struct dn_dsm_meet dn_dsm_meet_t;

struct dn_dsm {
    uint32_t rank;
    uint32_t ranks;
    uint32_t locks;
    uint32_t page_bytes;
    uint32_t pages;
    uint32_t used; /**< pages that are allocated. Atomic: dn_dsm_used(), but in the thread that allocates */
    uint32_t timeout_s;
    dn_dsm_protocol_t protocol;
    bool moves;                        /**< homes do */
    bool shares;                       /**< one memory for all: nothing is detected, fetched or told */
    uint32_t together;                 /**< most ranks that have one cache: those of rank / together */
    uint16_t keeper[DN_DSM_RANKS_MAX]; /**< by rank: whose cache has its pages */
    dn_dsm_host_t host;
    const dn_dsm_meet_t *meet;
    int folder;     /**< of dn_dsm_meet_folder: descriptor */
    char path[256]; /**< of it */

    dn_port_t *port;
    dn_peer_t *peer[DN_DSM_RANKS_MAX];
    dn_dsm_card_t *card; /**< by rank */
    dn_tree_t *tree;     /**< NULL: one rank */
    size_t tell_bytes;   /**< of dn_dsm_tell_t */
    uint32_t lost;       /**< dn_dsm_gone(). Atomic */
    uint32_t closing;    /**< not 0: dn_dsm_is_closing(). Atomic */
    uint32_t broken;     /**< calls that all make were different */

    dn_segment_t *cache;
    void *cache_file; /**< memory of our own where the port has none to map twice; NULL: it has */
    uint8_t *raw;     /**< of the keeper's cache */
    uint8_t *front;
    uint8_t *
        beside; /**< private: twins by the same offsets; with a `host`, places for pages that are merged then */
    uint8_t *twin;        /**< by the same offsets: `beside`, or of the host */
    dn_dsm_watch_t watch; /**< of the front */
    dn_dsm_range_t range; /**< the same */

    dn_segment_t *desk;
    dn_dsm_ring_t *rings; /**< in the desk: by rank */
    dn_dsm_run_t
        *board; /**< in the desk: runs of this barrier and of the last, by turns, dn_dsm_board_runs() each */
    dn_dsm_lines_t *lines;
    uint64_t *counts;                 /**< LLCM: notes in each ring so far */
    uint64_t heard[DN_DSM_RANKS_MAX]; /**< of these */
    uint64_t told;                    /**< notes that this process has put into the rings of others */

    pthread_mutex_t sync; /**< of releases and acquires: notes, lists below, rings */
    pthread_mutex_t table;
    dn_dsm_page_t *page;
    uint64_t *held; /**< bits of pages that are neither ABSENT nor OWN. Under `table` */
    uint32_t
        again; /**< threads that fetch once more what was stale: nothing is marked meanwhile. Under `table` */
    dn_dsm_list_t dirty;     /**< under `table` */
    dn_dsm_list_t loose;     /**< under `table` */
    dn_dsm_list_t wrote;     /**< under `sync`: since the last barrier */
    dn_dsm_list_t flush;     /**< under `sync`: being sent */
    dn_dsm_list_t stale;     /**< under `sync`: named by notices */
    dn_dsm_writer_t *writer; /**< by page; NULL: homes stay. Under `sync` */
    dn_dsm_list_t told_of;   /**< under `sync`: written pages of which a barrier tells */
    dn_dsm_notes_t notes;
    uint64_t interval; /**< of what was released last */
    dn_dsm_blind_t blind;
    uint64_t barriers; /**< so far */
    uint32_t gate; /**< threads in calls that release or acquire, and DN_DSM_GATE_ALL in a barrier. Atomic */
    dn_dsm_lock_t *lock;
    dn_dsm_note_t *out; /**< room for DN_DSM_LOG: under `sync` */
    dn_dsm_run_t *in;   /**< room for a board: of barriers */
    dn_block_t *blocks; /**< room for DN_DSM_BLOCKS, and those of a page more: under `sync` */

    pthread_t server; /**< makes progress while the program computes */
    bool serves;
    uint32_t stop; /**< of the server. Atomic */

    dn_dsm_stat_t stat; /**< atomic */
    char *map;          /**< file for the page map; NULL: none is made */
    uint32_t *fetched;  /**< with a map: by page, how often. Who has set a page to FETCHING counts it */
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
/** 1 + rank of a process that is gone; 0: none. L1: pairs with L0 in dn_dsm_lost(): who finds one finds what was said of it, too. */
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
 * Are processes that go not missed? Any thread that makes progress asks this when it hears that one has gone.
 *
 * Relaxed: another process goes only after it has heard "done" from this one, and this one tells that by a system call after it has set
 * the word. So the word reaches memory before the other process can go, and before any thread here can hear of it. A
 * thread that hears of a process that went before that finds 0 or 1: whether that process is missed is open then anyway.
 */
static inline bool dn_dsm_is_closing(const dn_dsm_t *dsm)
{
    return 0 != dn_load_relaxed_u32(&dsm->closing);
}

/**
 * Pages that are allocated, for a thread that does not allocate.
 *
 * Relaxed: a thread that touches a page, or is told of it, comes after the call that has allocated the page in this process. The program
 * has handed the address on, or another process has left that call before it wrote the page. So the thread finds that many or more.
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

/** Between two looks in vain. Begins with zeros. @param[in] flags  0, or DN_WAIT_BLIND. @retval DN_ERR_UNREACH  a process is gone. */
dn_status_t dn_dsm_wait(dn_dsm_t *dsm, dn_wait_t *wait, unsigned flags);

/** Wait for the end of a transfer: dn_dsm_op_end(). @retval DN_ERR_UNREACH  it has failed, and a process is gone. */
dn_status_t dn_dsm_end(dn_dsm_t *dsm, dn_dsm_op_t *op);
/** Start a transfer, and wait for its end. */
dn_status_t dn_dsm_move(dn_dsm_t *dsm, uint32_t rank, dn_xfer_t *xfer, bool write);
/** An atomic operation on a word of a desk. @param[out] old_p  What was there. */
dn_status_t dn_dsm_amo(dn_dsm_t *dsm, uint32_t rank, dn_amo_t *amo, uint64_t *old_p);
/** End this process with a sentence unless a status is DN_OK or DN_ERR_UNREACH. It is for what others wait for: a lock that is not
 * handed over, or a barrier that is not joined. @return the status. */
dn_status_t dn_dsm_must(dn_status_t status, const char *what);
/** @} */

/** @name The gate (dn_dsm.c)
 * Notices that a barrier tells are forgotten by who has left it, and pages are shared one rank after the other. A release or acquire
 * of another thread between the two would miss some. So the two are kept apart: all changes are of one word, and whoever comes
 * second finds the other there. */
/** @{ */
/** Of a barrier; each other call adds 1. */
#define DN_DSM_GATE_ALL (UINT32_C(1) << 16)
/** A call that releases or acquires begins. @retval DN_ERR_PARAM  another thread is in a barrier: nothing happened. */
dn_status_t dn_dsm_gate_enter(dn_dsm_t *dsm, const char *what);
/** The same for a barrier, which others wait for: it ends the process. */
void dn_dsm_gate_close(dn_dsm_t *dsm, const char *what);
/** It ends. @param[in] what  1, or DN_DSM_GATE_ALL. */
static inline void dn_dsm_gate_leave(dn_dsm_t *dsm, uint32_t what)
{
    (void) dn_fetch_sub_release(&dsm->gate, what);
}
/** @} */

/** @name Configuration (dn_dsm_config.c) */
/** @{ */
/** Take over what is right of it. Errors as dn_dsm_open(). */
dn_status_t dn_dsm_config_take(dn_dsm_t *dsm, const dn_dsm_config_t *config);
/** @} */

/** @name Meeting (dn_dsm_meet.c)
 * Each process tells bytes under a name, then waits until it may hear those of the others. */
/** @{ */
/** A way to meet. */
struct dn_dsm_meet {
    /** Begin, and get the key of the process group. @param[in] folder  dn_dsm_config_t::folder. */
    dn_status_t (*open)(dn_dsm_t *dsm, const char *folder, dn_group_key_t *key);
    /** End. Also after open() has failed. */
    void (*close)(dn_dsm_t *dsm);
    /** Give the others bytes under a name that is used once. */
    dn_status_t (*tell)(dn_dsm_t *dsm, const char *what, const void *bytes, size_t len);
    /** All processes call this when they have told; those that can wait for the bytes of one process do nothing. */
    dn_status_t (*together)(dn_dsm_t *dsm);
    /** Wait for the bytes of a rank. @param[in,out] len  In: room. Out: bytes. */
    dn_status_t (*hear)(dn_dsm_t *dsm, uint32_t rank, const char *what, void *bytes, size_t *len);
};

extern const dn_dsm_meet_t dn_dsm_meet_folder;
/** By the launcher: where dimmnet was built with PMIx. */
extern const dn_dsm_meet_t dn_dsm_meet_pmix;

/** How a process with this dn_dsm_config_t::folder meets the others. */
const dn_dsm_meet_t *dn_dsm_meet_find(const char *folder);
/** Make a key for the job. */
dn_status_t dn_dsm_meet_key(dn_group_key_t *key);
/** Tell, then wait for all. A process that cannot tell waits, too: else it and the others would come to different fences.
 * @param[in] bytes  NULL: this process tells nothing. @return the first error. */
dn_status_t dn_dsm_meet_all(dn_dsm_t *dsm, const char *what, const void *bytes, size_t len);
/** Pause between two looks. @param[in] until  dn_dsm_meet_until(). @param[in] whom, where  For the log line: who has not come, and where to.
 * @retval DN_ERR_UNREACH  a process is gone, or the time is over. */
dn_status_t dn_dsm_meet_pause(dn_dsm_t *dsm, uint64_t until, const char *whom, const char *where);
/** When a wait that begins now is in vain. */
uint64_t dn_dsm_meet_until(const dn_dsm_t *dsm);
/** @} */

/** @name Calls that all make (dn_dsm_barrier.c) */
/** @{ */
/** Tell all others, and hear them. @param[out] told  By rank. */
dn_status_t dn_dsm_all(dn_dsm_t *dsm, const dn_dsm_tell_t *tell, dn_dsm_tell_t *told);
/** @} */

/** @name Opening (dn_dsm_open.c) */
/** @{ */
/** The i-th address that is tried for the front; the first one where that is free. */
uint8_t *dn_dsm_place_address(uint32_t i);
/** Take the memory and whatever else dn_dsm_close() gives back. */
void dn_dsm_free(dn_dsm_t *dsm);
/** @} */

/** @name Homes that move (dn_dsm_move.c)
 * Where homes stay, these do nothing. `sync` is held, but at the opening. */
/** @{ */
/** Begin to look for pages that are to move. */
dn_status_t dn_dsm_move_open(dn_dsm_t *dsm);
/** What this process has written is at home, and a barrier is to tell of it: have those pages here that may move here. */
dn_status_t dn_dsm_move_prepare(dn_dsm_t *dsm);
/** A barrier tells that a process has written a page. */
void dn_dsm_move_hear(dn_dsm_t *dsm, uint32_t page, uint32_t rank);
/** It has told everything: move. */
void dn_dsm_move_homes(dn_dsm_t *dsm);
/** @} */

/** @name The page map (dn_dsm_map.c) */
/** @{ */
/** Begin to count for a map. @param[in] path  NULL: there is none. */
dn_status_t dn_dsm_map_open(dn_dsm_t *dsm, const char *path);
/** All have come to dn_dsm_close(): tell rank 0. @param[out] fetched_p  In rank 0: for dn_dsm_map_write(); NULL: there is no map. */
dn_status_t dn_dsm_map_gather(dn_dsm_t *dsm, const dn_dsm_tell_t *told, uint32_t **fetched_p);
/** Write the map, and free what was gathered. Nobody waits for this. */
dn_status_t dn_dsm_map_write(const dn_dsm_t *dsm, uint32_t *fetched);
/** @} */

/** @name Pages (dn_dsm_page.c) */
/** @{ */
/** PULL pages, at most DN_DSM_FETCH in rising order, from their homes. @param[in] to, place  Where to: page page[i] goes to the place[i]-th page
 * there. In rising order, too. */
dn_status_t dn_dsm_page_pull(dn_dsm_t *dsm, uint8_t *to, const uint32_t *place, const uint32_t *page,
                             uint32_t count);
/** Have pages, at most DN_DSM_FETCH in rising order, here. @param[in] write  DN_DSM_IS_READ and so on. */
dn_status_t dn_dsm_page_have(dn_dsm_t *dsm, const uint32_t *page, uint32_t count, int write);
/** dn_dsm_access_fn_t, of the memory. */
const char *dn_dsm_page_access(dn_dsm_range_t *range, uint64_t off, int kind);
/** Have pages first .. first + count - 1 here, readable or writable. */
dn_status_t dn_dsm_page_need(dn_dsm_t *dsm, uint32_t first, uint32_t count, bool write);
/** Send home what was written. `sync` is held. */
dn_status_t dn_dsm_page_release(dn_dsm_t *dsm);
/** Drop the copies of dsm->stale, and empty it; with protocol "update" fetch them again. `sync` is held. */
dn_status_t dn_dsm_page_drop(dn_dsm_t *dsm);
/** A notice names a page: it goes into dsm->stale. `sync` is held. */
void dn_dsm_page_stale(dn_dsm_t *dsm, uint32_t page);
/** All copies are stale. `sync` is held. */
void dn_dsm_page_all_stale(dn_dsm_t *dsm);
/** So are loose ones. `sync` is held. */
void dn_dsm_page_loose_stale(dn_dsm_t *dsm);
/** All have come to a barrier, and the page has another home from here on. `sync` is held. */
void dn_dsm_page_move(dn_dsm_t *dsm, uint32_t number, uint32_t home);
/** A barrier has told that a page was fetched. `sync` is held. */
void dn_dsm_page_share(dn_dsm_t *dsm, uint32_t page);
/** @} */

/** @name Notices (dn_dsm_tell.c) */
/** @{ */
/** Take notes that a process or lock has told. `sync` is held. */
void dn_dsm_hear(dn_dsm_t *dsm, const dn_dsm_note_t *note, uint64_t count, uint32_t from);
/** Release; with an eager protocol, tell all. `sync` is held. */
dn_status_t dn_dsm_tell_release(dn_dsm_t *dsm);
/** With an eager protocol, hear what all have told. `sync` is held. */
void dn_dsm_hear_rings(dn_dsm_t *dsm);
/** More was seen, by a lock or DN_DSM_NOWHERE, than there are notes of. `sync` is held. */
void dn_dsm_blind_set(dn_dsm_t *dsm, uint32_t by);
/** Runs for which a board has room: written and fetched pages, no two of either together. */
static inline uint64_t dn_dsm_board_runs(const dn_dsm_t *dsm)
{
    return (uint64_t) dsm->pages + 2;
}
/** Is it one? */
static inline bool dn_dsm_is_eager(const dn_dsm_t *dsm)
{
    return DN_DSM_EAGER <= dsm->protocol;
}
/** @} */

#endif
