/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_rma.h
 * Windows: memory of each of some processes that the others change. What its owner and the others say to each other, and what each
 * side does then, is here; which operations are legal when, and what elements are, is the face's.
 *
 * A window is a *block* of each process (dn_piece.h): a control part, then maybe its memory. Words of the control part are written
 * by the processes that synchronise with its owner, and polled with acquire loads; all but the two locks, the gate and offers have
 * one writer each. Where the block of a target is mapped, its lock, its guard and its notes are words here. A target whose memory is
 * not mapped, or which does not map ours, is *far*: put and get are PUSHes and PULLs, or offers where they are short
 * (dn_rma_offer.c); all else are messages that the target carries out when it progresses (Martini paper, section 9: what the
 * hardware cannot do is left to the core processor).
 *
 * Requests of an origin travel in the order in which it makes them, and are carried out in this order. Each part of an accumulate
 * is answered; the answer has what was there before, if that is wanted. A layout of the target's memory is shipped ahead (dn_ship.h),
 * after the answers to all parts before it, so that no part that waits at the target loses its layout; one too long for that
 * goes in blocks, beside the operands.
 *
 * The life of a task, an operation on a far target; each arrow is one call:
 *
 *   dn_rma_task_begin() ---> dn_rma_transfer() ------------> (its completion) ----------> dn_rma_task_t::end
 *                       ---> dn_rma_accumulate(), parts ---> (their answers) -----------> dn_rma_task_t::end
 *
 * Shape:     numbers of processes are ranks in the window, 0 .. size - 1.
 * Ownership: engine and window are the caller's memory; so is a task until it has begun, and again in its `end`.
 * Threads:   those of an engine whose configuration says `threads` may use it at once. Handlers run in the thread that makes
 *            progress, while others free windows and wait for tasks: a thread that has found a window, or a task, holds it
 *            until the thread is done with it, and it is not freed before. No lock is held while a call waits, but for the one that
 *            keeps the accumulates of several threads to one window apart.
 * Ordering:  what was stored before dn_rma_unlock() is seen by whoever has the lock next; what was stored before dn_rma_note() is
 *            seen by whoever finds the note.
 * Errors:    DN_ERR_UNREACH: a process is gone. What a peer sends is checked by whoever gets it, and dropped when it is not right.
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

/** What a process has to do with the lock of a block's owner. */
enum dn_rma_wish {
    DN_RMA_WISH_NONE,
    DN_RMA_WISH_OWN, /**< it wants or has the lock, by words of its own */
    DN_RMA_WISH_FAR, /**< the owner wants or has it on that process' behalf */
};

/** Lines that only one process of the window writes, but for offers: its notes to the owner of the block; or the owner, for one
 * that is far. */
typedef struct dn_rma_notes {
    uint64_t posts;     /**< exposure epochs that it has opened to the owner */
    uint64_t completes; /**< access epochs to the owner that it has ended */
    uint32_t wish;      /**< enum dn_rma_wish */
    uint32_t number;    /**< that was drawn for it, once there is a wish */
    uint64_t offer;     /**< of puts or gets to the owner, who writes this word, too: dn_rma_offer.c */
    uint32_t pad[8];
    /** dn_guard_t::inside; DN_RMA_INSIDE_ALWAYS: it takes part in no fence. In another line than what the owner polls. */
    uint32_t inside;
    uint32_t pad_inside[15];
} dn_rma_notes_t;
_Static_assert(2 * DN_RMA_LINE == sizeof(dn_rma_notes_t), "notes of two processes share no line");
_Static_assert(24 == offsetof(dn_rma_notes_t, offer) && DN_RMA_LINE == offsetof(dn_rma_notes_t, inside),
               "peers agree on the layout");

/**
 * The lock is queued. A process that maps this block says in its notes that it wants the lock, before it draws a number, and until
 * it has given the lock back. So those who wait in vain find out when it has ended: then nobody gets past its number, and all who
 * wait have an error. The others cannot tell what it had when it ended: they have that error also when it was about to draw. For
 * a far process the owner draws, and gives the lock back when that process is lost: others get it then.
 */
typedef struct dn_rma_control {
    dn_ticket_t lock;
    uint32_t pad_lock[13];
    uint32_t accumulates; /**< the guard of accumulates: 1 + the rank of its owner */
    uint32_t longs;       /**< its owner's: bytes of long accumulates since the gate was opened */
    uint32_t most;        /**< its owner's: of these, until the gate is closed; 0: DN_RMA_CLOSE */
    uint32_t
        shorts; /**< its owner's: what short ones since it was closed are worth, beyond the bytes of long ones */
    uint32_t pad_accumulates[12];
    uint32_t gate; /**< dn_guard_t::gate, in a line that few write */
    uint32_t pad_gate[15];
    dn_rma_notes_t notes[]; /**< by rank */
} dn_rma_control_t;
_Static_assert(3 * DN_RMA_LINE == sizeof(dn_rma_control_t)
                   && DN_RMA_LINE == offsetof(dn_rma_control_t, accumulates)
                   && 2 * DN_RMA_LINE == offsetof(dn_rma_control_t, gate),
               "each lock has a line of its own");

/** dn_rma_notes_t::inside of a process that takes part in no fence: the gate of a block that it maps stays open. */
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

/** A wait, maybe for what a process may never do, as it may have ended. Begins with zeros. */
typedef struct dn_rma_wait {
    uint64_t face[DN_RMA_WAIT_WORDS]; /**< the face's */
    unsigned polls;
    uint64_t began_ns; /**< of the wait, soon after the first poll */
    uint64_t next_ns;  /**< time to look who lives */
    bool quiet;        /**< no progress may be made: what is awaited needs nothing but a core */
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
    int threads; /**< not 0: several may be in here at once */
    /** Between two looks in vain: drive everything, spin, yield or sleep. @param[in,out] state  dn_rma_wait_t::face. */
    void (*wait)(uint64_t *state);
    /** The element of a number and an operation, both a peer's. @return 0: there is none, or it does not have the operation. */
    int (*element)(int32_t type, uint32_t op, dn_element_t *element_p);
    /** The region of a dynamic window of this process that holds these bytes. @return 0: none does. */
    int (*find)(const dn_rma_win_t *win, uint64_t at, uint64_t len, dn_rma_region_t *region_p);
    /** A message was dropped that no origin sends. Once for each sort. */
    void (*refused)(const char *why);
    /** There is no memory for an answer: its origin would wait for ever. Does not return. */
    void (*no_memory)(void) __attribute__((noreturn));
} dn_rma_config_t;

/** All private. */
struct dn_rma {
    dn_port_t *port;
    unsigned channel;
    dn_rma_config_t config;
    bool fenced;                    /**< this process takes part in the fences of who closes a gate */
    uint32_t told;                  /**< sorts of wrong messages that were told of, as bits */
    pthread_mutex_t lock;           /**< of the rest but `trying`; not held while libdimmnet is called */
    dn_handle_table_t windows;      /**< dn_rma_win_t */
    dn_handle_table_t tasks;        /**< dn_rma_task_t that wait for answers */
    dn_fifo_t answers;              /**< dn_rma_answer_t that found no room */
    dn_round_t origins;             /**< dn_rma_far_t::waits of those that wait for a guard */
    struct dn_rma_waiting *waiting; /**< far processes that wait for the lock of this one */
    pthread_mutex_t trying;         /**< of who tries what waits for a guard; taken before the other */
};

/** Begin on a channel of a port. @return as dn_handler_set(); on an error dn_rma_close() does nothing. */
DN_API dn_status_t dn_rma_open(dn_rma_t *rma, dn_port_t *port, unsigned channel,
                               const dn_rma_config_t *config);
/** End. Windows that are left are used no more. */
DN_API void dn_rma_close(dn_rma_t *rma);
/** Go on with what waits; the caller drives the port besides. @return events. */
DN_API int dn_rma_advance(dn_rma_t *rma);
/** @} */

/** @name Waiting */
/** @{ */
/** Between two polls of a word that another process will change, and rings then. */
DN_API void dn_rma_wait(const dn_rma_t *rma, dn_rma_wait_t *wait);
/**
 * The same where that process may have ended.
 * @return true: some time has passed without success, so see whether that process lives. Later waits go on.
 */
DN_API bool dn_rma_wait_long(const dn_rma_t *rma, dn_rma_wait_t *wait);
/** The same between two polls of somebody else's: only whether it is time. */
DN_API bool dn_rma_time_to_look(dn_rma_wait_t *wait);
/** The same where no progress may be made, as in handlers: what is awaited needs nothing but the core. */
DN_API void dn_rma_pause(unsigned *polls);
/** @} */

/** @name Windows */
/** @{ */

/** How to keep others off the memory of a target while elements of it change. */
typedef struct dn_rma_guard {
    dn_guard_t super; /**< first */
    const dn_rma_win_t *win;
    dn_rma_control_t *control; /**< of the target */
    dn_rma_wait_t
        *tries; /**< not NULL: the caller must not wait, and comes again; for how long it has done so */
} dn_rma_guard_t;

/** A process of a window, as this one sees it. */
typedef struct dn_rma_target {
    dn_rma_control_t *control; /**< of its block; NULL: not in the address space of this process */
    dn_peer_t *peer;
    uint32_t number; /**< by which its lock is held */
    uint32_t gone;   /**< not 0: its process has been found ended; it stays so */
    dn_rma_guard_t
        guard; /**< of accumulates on it, from dn_rma_win_place() on; without a control part it guards nothing */
} dn_rma_target_t;

/** What has become of a get that was offered. */
enum dn_rma_got {
    DN_RMA_UNWANTED,
    DN_RMA_WANTED,
    DN_RMA_FILLING, /**< the handler writes it to the caller's memory */
    DN_RMA_FILLED,
};

/** Puts and gets that a target is asked to carry out, one offer at a time. */
typedef struct dn_rma_offering {
    uint32_t busy;   /**< not 0: a thread has all of this */
    uint32_t number; /**< of the last one */
    uint32_t got;    /**< enum dn_rma_got: UNWANTED -> WANTED -> FILLING -> FILLED -> UNWANTED */
    uint32_t missed; /**< offers in a row that were taken back */
    uint32_t left;   /**< times that none is made yet, after such */
    const struct dn_rma_moves *moves; /**< of a get that is wanted */
} dn_rma_offering_t;

/** Lengths that short puts and gets on private memory of this host are told apart by: up to 1 KiB, up to 4 KiB, and more. */
#define DN_RMA_CHOICES 3

/** What there is to know of a process whose memory is not mapped here, or that does not map ours. */
typedef struct dn_rma_far {
    dn_peer_t *peer;    /**< NULL until dn_rma_win_place() */
    uint64_t window;    /**< handle of the window in that process */
    dn_key_t key;       /**< of the segment that its window is in, but for dynamic ones */
    uint64_t roff;      /**< where its window begins in there */
    bool gathers;       /**< short puts and gets go in batches */
    uint64_t offer_max; /**< bytes of those that are offered, with their blocks; 0: none are */
    uint64_t offer_ns;  /**< until an offer is taken back */
    dn_rma_offering_t offering;
    dn_choice_t choice[2][DN_RMA_CHOICES]; /**< of gets, and of puts, in ns: dn_rma_batch.c */
    struct dn_rma_batch *batch[2];         /**< of gets, and of puts; NULL: there is none */
    uint32_t pending;                      /**< operations to it that are not complete */
    dn_status_t error; /**< of the first to fail that does not tell by itself, until asked for; DN_OK: none */
    uint32_t lost;     /**< not 0: nothing of it will be answered; it stays so */
    uint32_t granted;  /**< enum dn_rma_grant: of its lock to us */
    uint32_t locks;    /**< enum dn_rma_locks: does it want or hold our lock? */
    uint32_t number;   /**< by which it does */
    bool exclusive;
    uint32_t asked;              /**< parts of accumulates to it that are not answered */
    dn_queue_t waits;            /**< accumulates of its that wait for the guard (dn_rma_later.c) */
    uint32_t later;              /**< of these, and the one that is tried */
    struct dn_ship_out *layouts; /**< that it has of ours; NULL: none yet */
    struct dn_ship_in *its;      /**< that we have of its */
} dn_rma_far_t;

struct dn_rma_win {
    dn_rma_t *rma;
    int rank;
    int size;
    bool crowded;  /**< processes share cores: who waits for another in a loop keeps that one from running */
    bool dynamic;  /**< displacements are addresses, and dn_rma_config_t::find knows which are legal */
    uint8_t *base; /**< of this process' memory; NULL for a dynamic one */
    uint64_t len;
    dn_rma_control_t *control; /**< of the own block */
    dn_rma_target_t *target;   /**< by rank */
    dn_rma_far_t *far;         /**< by rank; NULL: everybody maps everything */
    uint64_t handle;           /**< by which messages name it, with far targets */
    uint32_t holders;          /**< who looks at it for messages */
    pthread_mutex_t lock;      /**< of batches */
    pthread_mutex_t asking;    /**< of who ships a layout and uses it; waited for with */
    void *user;                /**< the face's */
};

/** Begin a window, which is all zero but rma, rank, size, dynamic and user. @return DN_ERR_NOMEM. */
DN_API dn_status_t dn_rma_win_open(dn_rma_win_t *win);
/** From here on messages find the window: there may be far targets. @return DN_ERR_NOMEM. */
DN_API dn_status_t dn_rma_win_join(dn_rma_win_t *win);
/** Nobody else knows of the own block yet: what is counted in it begins at @p first. */
DN_API void dn_rma_win_begin(const dn_rma_win_t *win, dn_rma_control_t *control, uint32_t first);
/** All of the window but `far[].peer` is known: from here on messages of the others are heeded. */
DN_API void dn_rma_win_place(dn_rma_win_t *win);
/** Messages do not find it any more, nobody holds it, and its memory is freed. */
DN_API void dn_rma_win_close(dn_rma_win_t *win);

/** Is a process known to be gone, so that nothing of it will come any more? Who waits long has to ask dn_rma_lives(). */
static inline bool dn_rma_is_lost(const dn_rma_win_t *win, int rank)
{
    return 0 != dn_load_acquire_u32(&win->target[rank].gone)
           || (NULL != win->far && 0 != dn_load_acquire_u32(&win->far[rank].lost));
}
/** Does the process of a rank live? It lives, too, while it is stopped. May take a system call: not for a hot path. Once it
 * does not, dn_rma_is_lost() says so, too. */
DN_API bool dn_rma_lives(const dn_rma_win_t *win, int rank);

/** Count an epoch in the notes that @p target keeps about this process, and ring. May wait for room. */
DN_API void dn_rma_note(dn_rma_win_t *win, int target, bool completes);

/** Get the lock of a target. @retval DN_ERR_UNREACH  nobody gets it any more. */
DN_API dn_status_t dn_rma_lock(dn_rma_win_t *win, int target, bool exclusive);
DN_API void dn_rma_unlock(dn_rma_win_t *win, int target, bool exclusive);
/** @} */

/** @name The guard of accumulates on a target */
/** @{ */
/** dn_guard_wait_fn_t, of a dn_rma_guard_t. */
DN_API dn_status_t dn_rma_guard_wait(const dn_guard_t *guard);

/** dn_guard_close_fn_t, of a dn_rma_guard_t: long accumulates close the gate, and many short ones open it. */
DN_API int dn_rma_guard_close(const dn_guard_t *guard, uint64_t len);

/** @param[in] control  Of the target; NULL: nobody else is there. */
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

/** Memory, by address or by its place in a window. */
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

/** An operation that is not complete. All but `end` is zero when it begins; private but what is marked. */
struct dn_rma_task {
    dn_comp_t comp; /**< first: what libdimmnet gives back */
    /** Called once, when it is complete: the task is the caller's again. NULL: it is freed. */
    void (*end)(dn_rma_task_t *task, dn_status_t status);
    bool tells;           /**< the caller's: of an error `end` tells, and nobody else */
    bool fetches;         /**< the caller's: what was there goes to `result` */
    dn_rma_side_t result; /**< the caller's */
    dn_rma_far_t *far;
    dn_rma_t *rma;
    uint64_t handle;         /**< for answers; DN_HANDLE_NONE: it gets none */
    uint32_t parts;          /**< that are not answered */
    uint32_t holders;        /**< who looks at it, also when all parts are answered */
    dn_status_t error;       /**< of the first part that failed */
    dn_rma_region_t *region; /**< where a region goes that was asked for */
};

/** It counts as pending from here on. */
DN_API void dn_rma_task_begin(dn_rma_win_t *win, int target, dn_rma_task_t *task);
/** It is complete. */
DN_API void dn_rma_task_end(dn_rma_task_t *task, dn_status_t status);

/** Start a PUSH or PULL, which ends the task when it is complete. @return an error of the call: the task has not ended. */
DN_API dn_status_t dn_rma_transfer(dn_rma_task_t *task, dn_xfer_t *xfer, bool write);

/**
 * Have a put or get of bytes that lie together wait for others, which are started all at once when there are enough of them.
 * @param[in] alone  As dn_rma_batch_start().
 * @return false: it is not for a batch.
 */
DN_API bool dn_rma_batch_add(dn_rma_win_t *win, int target, const dn_xfer_t *xfer, bool write, bool alone);
/** Start what waits for more of its kind. An error is one of those that dn_rma_far_t::error tells.
 * @param[in] alone  The target may compute meanwhile: DN_XFER_ALONE. */
DN_API void dn_rma_batch_start(dn_rma_win_t *win, int target, bool alone);

/** An accumulate. */
typedef struct dn_rma_acc {
    dn_acc_op_t op;
    int32_t type;                /**< the face's number of the element, for dn_rma_config_t::element */
    uint32_t size;               /**< of the element */
    const dn_rma_side_t *origin; /**< not looked at by DN_ACC_NO_OP */
    const dn_rma_side_t
        *there;          /**< in the window; it has as many bytes, and a span that dn_prog_span() takes */
    const void *compare; /**< not NULL: compare_and_swap of one element, and the task fetches */
} dn_rma_acc_t;

/** Accumulate. The task ends by its answers, also where the call fails: once it is complete. Of an error of the call the call alone
 * tells, and the caller's memory is the caller's again on return. */
DN_API dn_status_t dn_rma_accumulate(dn_rma_win_t *win, int target, const dn_rma_acc_t *acc,
                                     dn_rma_task_t *task);

/** Ask a process for the region of its dynamic window that holds these bytes. @retval DN_ERR_RANGE  none does, it says. */
DN_API dn_status_t dn_rma_ask_region(dn_rma_win_t *win, int target, uint64_t at, uint64_t len,
                                     dn_rma_region_t *region_p);

/** Wait until operations to a target are complete there. @return the error of one that failed. */
DN_API dn_status_t dn_rma_settle(dn_rma_win_t *win, int target);
/** @} */

#endif
