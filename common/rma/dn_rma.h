/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_rma.h
 * Windows: each process of a group has memory that the other processes change. The messages and shared words of a window, and what
 * each side does with them, are here. The face (the component that uses this engine) knows which operations are legal when, and
 * what elements are.
 *
 * In a window each process has a *block* (dn_piece.h): a control part, then maybe its memory. Words of the control part are written
 * by the processes that synchronise with its owner, and polled with acquire loads. The two locks, the gate and the offers have
 * several writers; every other word has one writer. Where the block of a target is mapped, the origin uses its lock, its guard and its
 * notes as words in memory. A target whose memory is not mapped, or which does not map the memory of this process, is *far*. Put and
 * get on a far target are PUSHes and PULLs, or offers where they are short (dn_rma_offer.c). Where the block is not mapped, the lock is
 * taken and given by remote atomic operations (dn_rma_lock.c), which need no call of the target where a device serves them by itself.
 * All other operations are messages that the target carries out when it makes progress (Martini paper, section 9: what the hardware
 * cannot do is left to the core processor).
 *
 * The requests of an origin travel, and are carried out, in the order in which the origin makes them. Each part of an accumulate
 * is answered; the answer has the old values, if the origin wants them. A layout of the target's memory is shipped ahead (dn_ship.h).
 * The origin sends a layout after the answers to all earlier parts, so that a part that waits at the target does not lose its own
 * layout. A layout that is too long to be shipped is sent as blocks, in the message of the operands.
 *
 * A task is an operation on a far target. This is its life; each arrow is one call:
 *
 *   dn_rma_task_begin() ---> dn_rma_transfer() ------------> (its completion) ----------> dn_rma_task_t::end
 *                       ---> dn_rma_accumulate(), parts ---> (their answers) -----------> dn_rma_task_t::end
 *
 * Shape:     numbers of processes are ranks in the window, 0 .. size - 1.
 * Ownership: engine and window are the caller's memory. A task is the caller's until it has begun, and again in its `end`.
 * Threads:   several threads may use an engine at once if its configuration says `threads`. Handlers run in the thread that makes
 *            progress. Other threads may free windows and wait for tasks meanwhile. So a thread that has found a window or a task
 *            holds it as long as the thread uses it, and what is held is not freed. No lock is held while a call waits, but for
 *            dn_rma_win_t::asking, which keeps the accumulates of several threads to one window apart.
 * Ordering:  what was stored before dn_rma_unlock() is seen by the next holder of the lock; what was stored before dn_rma_note()
 *            is seen by the process that finds the note.
 * Errors:    DN_ERR_UNREACH: a process is gone. The receiver checks each message of a peer, and drops a wrong one.
 *
 * Pinned by test/device/rma_windows.c, rma_offers.c and rma_gate.c.
 */
#ifndef DN_RMA_H
#define DN_RMA_H

#include "dimmnet.h"
#include "dn_acc.h"
#include "dn_choice.h"
#include "dn_handle.h"
#include "dn_queue.h"
#include "dn_ticket.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define DN_RMA_LINE 64

typedef struct dn_rma dn_rma_t;
typedef struct dn_rma_win dn_rma_win_t;
typedef struct dn_rma_task dn_rma_task_t;

/** @name The control part of a block */
/** @{ */

/** What a process has to do with the lock of a block's owner: dn_rma_notes_t::wish. */
enum dn_rma_wish {
    DN_RMA_WISH_NONE,
    DN_RMA_WISH_DRAWS, /**< is about to draw a number, or has drawn it. A far process that then has the lock alone leaves it at that */
    DN_RMA_WISH_HAS,   /**< wants the lock, or has it alone, by the number in the upper half of the word */
    DN_RMA_WISH_SHARES, /**< is about to share the lock, shares it, is about to give it back, or has just done so */
    DN_RMA_WISH_STATES = 3,
    DN_RMA_WISH_FAR =
        4, /**< a bit beside the state: the process is far, and writes the word by dn_atomic() */
    DN_RMA_WISH_EXCLUSIVE = 8, /**< a bit beside DN_RMA_WISH_FAR: how it wants or has the lock */
};

/** The notes of one process to the owner of the block. That process alone writes these lines, but for `offer`. Of a far process the
 * owner of the block counts `posts` and `completes`, by messages. */
typedef struct dn_rma_notes {
    uint64_t posts;     /**< exposure epochs that the process has opened to the owner */
    uint64_t completes; /**< access epochs to the owner that the process has ended */
    uint64_t wish;      /**< enum dn_rma_wish, and the number in the upper half */
    uint64_t offer;     /**< of puts or gets to the owner; both processes write this word: dn_rma_offer.c */
    uint32_t pad[8];
    /** dn_guard_t::inside; DN_RMA_INSIDE_ALWAYS: the process takes part in no fence. Not in the line that the owner polls. */
    uint32_t inside;
    uint32_t pad_inside[15];
} dn_rma_notes_t;
_Static_assert(2 * DN_RMA_LINE == sizeof(dn_rma_notes_t), "notes of two processes share no line");
_Static_assert(24 == offsetof(dn_rma_notes_t, offer) && DN_RMA_LINE == offsetof(dn_rma_notes_t, inside),
               "peers agree on the layout");

/**
 * The control part of a block.
 *
 * The lock is queued. A process that wants the lock says so in its notes, from before it draws a number until it has given the lock
 * back. So processes that wait in vain find out when such a process has ended. The number of a process that mapped this block is never
 * given back then: the lock is broken, and all processes that wait return an error. They cannot tell whether it had drawn yet, so they
 * return the error also when it ended before it drew.
 *
 * When a far process is lost, the owner of the block gives the lock back in its next progress, and the next process gets it
 * (dn_rma_lock.c).
 */
typedef struct dn_rma_control {
    dn_ticket_t lock;
    uint32_t pad_lock[14];
    uint32_t accumulates; /**< the guard of accumulates: 1 + the rank of its owner; 0: free */
    uint32_t longs;       /**< written with the guard: bytes of long accumulates since the gate was opened */
    /** written with the guard: when `longs` reaches it, the gate is closed; 0: DN_RMA_CLOSE */
    uint32_t most;
    uint32_t
        shorts; /**< written with the guard: worth of short accumulates since the gate was closed, less the bytes of long ones */
    uint32_t pad_accumulates[12];
    uint32_t gate; /**< dn_guard_t::gate, in a line that is written seldom */
    uint32_t pad_gate[15];
    dn_rma_notes_t notes[]; /**< by rank */
} dn_rma_control_t;
_Static_assert(3 * DN_RMA_LINE == sizeof(dn_rma_control_t)
                   && DN_RMA_LINE == offsetof(dn_rma_control_t, accumulates)
                   && 2 * DN_RMA_LINE == offsetof(dn_rma_control_t, gate),
               "each lock has a line of its own");

/** dn_rma_notes_t::inside of a process that takes part in no fence: the gate of a block that this process maps stays open. */
#define DN_RMA_INSIDE_ALWAYS UINT32_MAX

/** Bytes of a control part. */
static inline uint64_t dn_rma_control_bytes(int size)
{
    return sizeof(dn_rma_control_t) + (uint64_t) size * sizeof(dn_rma_notes_t);
}
/** @} */

/** @name Engines */
/** @{ */

/** Words for the face's part of a wait. */
#define DN_RMA_WAIT_WORDS 10

/** The state of a wait. A wait may be for another process, which may have ended. Begins with zeros. */
typedef struct dn_rma_wait {
    uint64_t face[DN_RMA_WAIT_WORDS]; /**< the face's */
    unsigned polls;
    uint64_t began_ns; /**< begin of the wait, soon after the first poll */
    uint64_t next_ns;  /**< when to look next whether the other process lives */
    bool quiet;        /**< this wait must make no progress: the other process needs nothing but a core */
} dn_rma_wait_t;

/** Memory of a dynamic window. */
typedef struct dn_rma_region {
    uint64_t base; /**< address in its process */
    uint64_t len;
    uint64_t roff; /**< of base in the segment */
    dn_key_t key;
} dn_rma_region_t;

/** What an engine asks its face for. */
typedef struct dn_rma_config {
    int threads; /**< not 0: several threads may use the engine at once */
    /** Between two looks in vain: drive everything, spin, yield or sleep. @param[in,out] state  dn_rma_wait_t::face. */
    void (*wait)(uint64_t *state);
    /** Find the element of a number. Number and operation come from a peer. @return 0: no such element, or it lacks the operation. */
    int (*element)(int32_t type, uint32_t op, dn_element_t *element_p);
    /** The region of a dynamic window of this process that holds these bytes. @return 0: none does. */
    int (*find)(const dn_rma_win_t *win, uint64_t at, uint64_t len, dn_rma_region_t *region_p);
    /** A wrong message of a peer was dropped. Called once for each sort of wrong message. */
    void (*refused)(const char *why);
    /** There is no memory to serve a request: its origin would wait for ever. Does not return. */
    void (*no_memory)(void) __attribute__((noreturn));
} dn_rma_config_t;

/** All private. */
struct dn_rma {
    dn_port_t *port;
    unsigned channel;
    dn_rma_config_t config;
    bool fenced;   /**< this process takes part in the fence of a process that closes a gate */
    uint32_t told; /**< sorts of wrong messages that were reported by dn_rma_config_t::refused, as bits */
    pthread_mutex_t
        lock; /**< guards the members below but `giving` and `trying`; not held while libdimmnet is called */
    dn_handle_table_t windows; /**< dn_rma_win_t */
    dn_handle_table_t tasks;   /**< dn_rma_task_t that wait for answers */
    dn_fifo_t answers;         /**< dn_rma_answer_t that wait for room to send */
    dn_round_t origins;        /**< dn_rma_far_t::waits of the origins whose accumulates wait for a guard */
    pthread_mutex_t
        giving; /**< held by the thread that gives back what a lost process has left; taken before no other */
    struct dn_rma_orphan *orphans; /**< what lost far processes have left of the locks of this process */
    pthread_mutex_t trying; /**< held by the thread that tries what waits for a guard; taken before `lock` */
};

/** Begin on a channel of a port. @return as dn_handler_set(); on an error dn_rma_close() does nothing. */
DN_API dn_status_t dn_rma_open(dn_rma_t *rma, dn_port_t *port, unsigned channel,
                               const dn_rma_config_t *config);
/** End. The caller does not use windows that are still open any more. */
DN_API void dn_rma_close(dn_rma_t *rma);
/** Go on with answers and accumulates that wait, and with locks that lost processes want. The caller also drives the port. @return number of events. */
DN_API int dn_rma_advance(dn_rma_t *rma);
/** @} */

/** @name Waiting */
/** @{ */
/** Wait a little between two polls of a word. The process that will change the word rings then. */
DN_API void dn_rma_wait(const dn_rma_t *rma, dn_rma_wait_t *wait);
/**
 * The same where the other process may have ended.
 * @return true: some time has passed. The caller looks whether the other process lives, and may wait on.
 */
DN_API bool dn_rma_wait_long(const dn_rma_t *rma, dn_rma_wait_t *wait);
/** Is it time to look whether the other process lives? For callers that wait in a way of their own. */
DN_API bool dn_rma_time_to_look(dn_rma_wait_t *wait);
/** As dn_rma_wait(), where no progress may be made, as in handlers: the other side needs nothing but the core. */
DN_API void dn_rma_pause(unsigned *polls);
/** @} */

/** @name Windows */
/** @{ */

/** How to keep other processes off the memory of a target while elements change. */
typedef struct dn_rma_guard {
    dn_guard_t super; /**< first */
    const dn_rma_win_t *win;
    dn_rma_control_t *control; /**< of the target */
    dn_rma_wait_t
        *tries; /**< not NULL: the caller must not wait, and tries again later; the state of all its tries */
} dn_rma_guard_t;

/** A process of a window, as this process sees it. */
typedef struct dn_rma_target {
    dn_rma_control_t *control; /**< of its block; NULL: not in the address space of this process */
    dn_peer_t *peer;
    uint32_t gone; /**< not 0: the process was found to have ended; it stays so */
    dn_rma_guard_t
        guard; /**< of accumulates on the target, from dn_rma_win_place() on; without a control part it guards nothing */
} dn_rma_target_t;

/** What has become of a get that was offered. */
enum dn_rma_got {
    DN_RMA_UNWANTED,
    DN_RMA_WANTED,
    DN_RMA_FILLING, /**< the handler writes it to the caller's memory */
    DN_RMA_FILLED,
};

/** Offers to a target, which is asked to carry out puts and gets. There is one offer at a time. */
typedef struct dn_rma_offering {
    uint32_t busy;   /**< not 0: a thread uses this object */
    uint32_t number; /**< of the last offer */
    uint32_t got;    /**< enum dn_rma_got: UNWANTED -> WANTED -> FILLING -> FILLED -> UNWANTED */
    uint32_t missed; /**< offers in a row that were not carried out; counted up to DN_RMA_OFFER_MISSED */
    uint32_t left;   /**< how many offers are still left out after missed ones */
    const struct dn_rma_moves *moves; /**< of a get that is wanted */
} dn_rma_offering_t;

/** A word of a far process' control part that this process changes by dn_atomic(). */
typedef struct dn_rma_remote {
    dn_comp_t comp; /**< first */
    struct dn_rma_far *far;
    uint64_t old;  /**< what the word was before */
    uint32_t over; /**< not 0: the operation has ended */
    dn_status_t status;
} dn_rma_remote_t;

/** Classes of length of batches of short puts and gets on private memory of this host: up to 1 KiB, 2 KiB and so on, and above 32 KiB. */
#define DN_RMA_CHOICES 7

/** A far process: its memory is not mapped here, or it does not map the memory of this process. */
typedef struct dn_rma_far {
    dn_peer_t *peer;    /**< NULL until dn_rma_win_place() */
    uint64_t window;    /**< handle of the window in that process */
    dn_key_t key;       /**< of the segment of its window; not for dynamic windows */
    uint64_t roff;      /**< where its window begins in that segment */
    dn_key_t block_key; /**< of the segment of its block */
    uint64_t block_off; /**< where its block begins in that segment */
    bool gathers;       /**< short puts and gets go in batches */
    uint64_t offer_max; /**< most bytes of an offer, with its blocks; 0: no offers are made */
    uint64_t offer_ns;  /**< until an offer is taken back */
    dn_rma_offering_t offering;
    dn_choice_t choice[2][DN_RMA_CHOICES]; /**< of gets, and of puts, in ns: dn_rma_batch.c */
    struct dn_rma_batch *batch[2];         /**< of gets, and of puts; NULL: no batch */
    uint32_t pending;                      /**< operations to this process that are not complete */
    /** of the first failed task without `tells`, until dn_rma_settle() returns it; DN_OK: none */
    dn_status_t error;
    uint32_t lost;          /**< not 0: the process is lost and will answer nothing; it stays so */
    uint32_t left;          /**< not 0: and changes nothing here any more: dn_rma_take_back() */
    dn_rma_remote_t asks;   /**< the change of its lock that this process waits for */
    dn_rma_remote_t tells;  /**< changes of its lock and notes that nobody waits for, but dn_rma_settle() */
    uint64_t guess;         /**< its lock, as this process has left it */
    bool calm;              /**< the guess was right the last time */
    dn_rma_wait_t patience; /**< between two looks that the far process has asked for: DN_RMA_LOOK */
    uint32_t asked;         /**< parts of accumulates to the far process that are not answered */
    dn_queue_t waits;       /**< accumulates from the far process that wait for the guard (dn_rma_later.c) */
    uint32_t later;         /**< number of accumulates in `waits`, and the accumulate that is tried now */
    /** layouts of this process that were sent to the far process; NULL: none yet */
    struct dn_ship_out *layouts;
    struct dn_ship_in *its; /**< layouts that came from the far process; NULL: none yet */
} dn_rma_far_t;

struct dn_rma_win {
    dn_rma_t *rma;
    int rank;
    int size;
    /** processes share cores: a process that waits in a loop may keep the other process from running */
    bool crowded;
    bool dynamic;  /**< displacements are addresses, and dn_rma_config_t::find knows which are legal */
    uint8_t *base; /**< of this process' memory; NULL for a dynamic one */
    uint64_t len;
    dn_rma_control_t *control; /**< of the own block */
    dn_rma_target_t *target;   /**< by rank */
    dn_rma_far_t *far;         /**< by rank; NULL: there are no far processes */
    uint64_t handle;           /**< names the window in messages; used where there are far processes */
    /** how many use the window: messages at work, and requests that wait. It is not freed meanwhile */
    uint32_t holders;
    pthread_mutex_t lock; /**< of batches */
    /** held by the thread that sends an accumulate, with its layout; held also while that waits */
    pthread_mutex_t asking;
    void *user; /**< the face's */
};

/** Begin a window, which is all zero but rma, rank, size, dynamic and user. @return DN_ERR_NOMEM, also where the window has more
 * processes than a lock has numbers (DN_TICKETS). */
DN_API dn_status_t dn_rma_win_open(dn_rma_win_t *win);
/** For a window with far processes: from here on messages find the window. @return DN_ERR_NOMEM. */
DN_API dn_status_t dn_rma_win_join(dn_rma_win_t *win);
/** Set up the control part of the own block, before any other process knows of it: all counters begin at @p first. */
DN_API void dn_rma_win_begin(const dn_rma_win_t *win, dn_rma_control_t *control, uint32_t first);
/** The caller has filled in all of the window but `far[].peer`: from here on messages of the other processes are accepted. */
DN_API void dn_rma_win_place(dn_rma_win_t *win);
/** Close: messages do not find the window any more. The caller has called dn_rma_settle() for each rank, unless it is lost. Waits until no thread holds the window, then frees its tables. */
DN_API void dn_rma_win_close(dn_rma_win_t *win);

/** Is a process known to be gone, so that nothing will come from it any more? A caller that waits long has to ask dn_rma_lives(). */
static inline bool dn_rma_is_lost(const dn_rma_win_t *win, int rank)
{
    return 0 != dn_load_acquire_u32(&win->target[rank].gone)
           || (NULL != win->far && 0 != dn_load_acquire_u32(&win->far[rank].lost));
}
/** Does the process of a rank live? A stopped process lives. May take a system call: not for a hot path. Once the answer was no,
 * dn_rma_is_lost() says so, too. */
DN_API bool dn_rma_lives(const dn_rma_win_t *win, int rank);

/** Count an epoch in the notes that @p target keeps about this process, and ring. May wait for room. */
DN_API void dn_rma_note(dn_rma_win_t *win, int target, bool completes);

/** Get the lock of a target; waits. @retval DN_ERR_UNREACH  a process has ended, and no process gets the lock any more. */
DN_API dn_status_t dn_rma_lock(dn_rma_win_t *win, int target, bool exclusive);
/** Give the lock of a target back. What this process has put is complete there: the caller has called dn_rma_settle(). Of a far target the
 * lock is on its way back when this returns, and dn_rma_settle() waits until it is there. */
DN_API void dn_rma_unlock(dn_rma_win_t *win, int target, bool exclusive);
/** @} */

/** @name The guard of accumulates on a target */
/** @{ */
/** dn_guard_wait_fn_t, of a dn_rma_guard_t. */
DN_API dn_status_t dn_rma_guard_wait(const dn_guard_t *guard);

/** dn_guard_close_fn_t, of a dn_rma_guard_t: long accumulates close the gate, and many short ones open it. */
DN_API int dn_rma_guard_close(const dn_guard_t *guard, uint64_t len);

/** @param[in] control  Of the target; NULL: no other process uses its memory. */
static inline dn_rma_guard_t dn_rma_guard(const dn_rma_win_t *win, dn_rma_control_t *control,
                                          dn_rma_wait_t *tries)
{
    dn_rma_guard_t guard = {.win = win, .control = control, .tries = tries};

    if (NULL != control) {
        guard.super = (dn_guard_t){.word = &control->accumulates,
                                   .owner = (uint32_t) win->rank + 1,
                                   .wait = dn_rma_guard_wait,
                                   .gate = win->rma->fenced ? &control->gate : NULL,
                                   .inside = &control->notes[win->rank].inside,
                                   .threads = win->rma->config.threads,
                                   .close = dn_rma_guard_close};
    }
    return guard;
}
/** @} */

/** @name Operations on far targets */
/** @{ */

/** Memory of one side of an operation, by address or by its place in a window. */
typedef struct dn_rma_side {
    uint64_t at;       /**< origin of the layout, or of the bytes */
    uint64_t len;      /**< bytes of data */
    dn_prog_use_t use; /**< without a program: the bytes lie together */
} dn_rma_side_t;

static inline void dn_rma_side_start(const dn_rma_side_t *side, dn_prog_cursor_t *cursor)
{
    if (NULL == side->use.prog) {
        dn_prog_start_bytes(cursor, side->at, side->len);
    } else {
        dn_prog_start(cursor, &side->use, side->at);
    }
}

/** An operation that is not complete. All members are zero when it begins, but `end` and those that are marked "set by the caller".
 * The other members are private. */
struct dn_rma_task {
    dn_comp_t comp; /**< first: what libdimmnet gives back */
    /** Called once, when the operation is complete: the task is the caller's again. NULL: the task is freed by free(). */
    void (*end)(dn_rma_task_t *task, dn_status_t status);
    /** set by the caller: an error is reported to `end` only, and dn_rma_settle() does not return it */
    bool tells;
    bool fetches;         /**< set by the caller: the old values go to `result` */
    dn_rma_side_t result; /**< set by the caller */
    dn_rma_far_t *far;
    dn_rma_t *rma;
    uint64_t handle; /**< for answers; DN_HANDLE_NONE: the task gets no answers */
    uint32_t parts;  /**< parts that are not answered */
    /** how many use the task: it does not end before all are done, even if all parts are answered */
    uint32_t holders;
    dn_status_t error;       /**< of the first part that failed */
    dn_rma_region_t *region; /**< where the answer to dn_rma_ask_region() goes; NULL: another operation */
};

/** Begin: the task counts as pending from here on. */
DN_API void dn_rma_task_begin(dn_rma_win_t *win, int target, dn_rma_task_t *task);
/** End: the operation is complete. */
DN_API void dn_rma_task_end(dn_rma_task_t *task, dn_status_t status);

/** Start a PUSH or PULL, which ends the task when it is complete. @return an error of the call: the task has not ended. */
DN_API dn_status_t dn_rma_transfer(dn_rma_task_t *task, dn_xfer_t *xfer, bool write);

/**
 * Add a put or get of bytes that lie together to a batch. When the batch is full, its operations are started all at once.
 * @param[in] alone  As dn_rma_batch_start().
 * @return false: nothing was added; the caller starts the operation by dn_rma_transfer().
 */
DN_API bool dn_rma_batch_add(dn_rma_win_t *win, int target, const dn_xfer_t *xfer, bool write, bool alone);
/** Start the batches of a target. An error goes to dn_rma_far_t::error.
 * @param[in] alone  The target may compute meanwhile: DN_XFER_ALONE.
 * @return false: there was none. */
DN_API bool dn_rma_batch_start(dn_rma_win_t *win, int target, bool alone);

/** An accumulate. */
typedef struct dn_rma_acc {
    dn_acc_op_t op;
    int32_t type;                /**< the face's number of the element, for dn_rma_config_t::element */
    uint32_t size;               /**< of the element */
    const dn_rma_side_t *origin; /**< the operands; not read by DN_ACC_NO_OP */
    const dn_rma_side_t
        *there; /**< in the window: as many bytes as the operands, with a span that dn_prog_span() takes */
    const void *compare; /**< not NULL: compare_and_swap of one element; the task has `fetches` */
} dn_rma_acc_t;

/** Accumulate. The task ends once, also where the call fails. It ends when its last answer has come, or in the call. An error of the
 * call is reported by its return value only, and the caller's memory is the caller's again then. */
DN_API dn_status_t dn_rma_accumulate(dn_rma_win_t *win, int target, const dn_rma_acc_t *acc,
                                     dn_rma_task_t *task);

/** Ask a process for the region of its dynamic window that holds these bytes; waits. @retval DN_ERR_RANGE  no region holds them. */
DN_API dn_status_t dn_rma_ask_region(dn_rma_win_t *win, int target, uint64_t at, uint64_t len,
                                     dn_rma_region_t *region_p);

/** Wait until all operations to a target are complete there. @return the error of the first operation that failed; DN_OK: none. */
DN_API dn_status_t dn_rma_settle(dn_rma_win_t *win, int target);
/** @} */

#endif
