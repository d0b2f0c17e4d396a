/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_rma_int.h
 * Inside of windows: what the messages say, and what the sides share.
 *
 *   dn_rma.c        engines, windows and tasks by number, answers that wait for room, waiting
 *   dn_rma_ask.c    the origin's side: what far targets are asked. An origin waits inside of its call for room to send
 *   dn_rma_batch.c  the origin's side: short puts and gets go together
 *   dn_rma_offer.c  both sides: the target carries them out, if it is there
 *   dn_rma_serve.c  the target's side: what origins ask is checked and carried out, inside of dn_progress()
 *   dn_rma_later.c  the target's side: accumulates that find the guard taken
 *   dn_rma_lock.c   locks and guards, of targets that are mapped, and of this process for those that are far
 */
#ifndef DN_RMA_INT_H
#define DN_RMA_INT_H

#include "dn_clock.h"
#include "dn_device.h"
#include "dn_rma.h"
#include "dn_ship.h"

#include <stdlib.h>
#include <string.h>

/** Parts of accumulates to one target that may wait for their answers; the origin waits before the next. So a target keeps no
 * more of one origin, while the guard is another's. */
#define DN_RMA_ASKED_MAX 1024u

/** Blocks of puts or gets that go in one call of the kernel, or in one offer. */
#define DN_RMA_MOVES_MOST 64

/** Nanoseconds until an offer is taken back: two to four calls of the kernel. */
#define DN_RMA_OFFER_NS 4000u

/** Bytes of long accumulates, those of more than a cell, that are worth one short one that takes the guard (perf/dn_rma). */
#define DN_RMA_WORTH 256u

/** Bytes of long accumulates after which the gate is closed: cell by cell they take as long as the fence does. Each
 * closing in vain doubles it, up to the second number. */
#define DN_RMA_CLOSE      (16u << 10)
#define DN_RMA_CLOSE_MOST (64u << 20)

/** What short accumulates are worth in bytes, beyond those of long ones, when the gate is opened again. */
#define DN_RMA_REOPEN (64 * DN_RMA_WORTH)

/** What a message is: its BOTF tag. */
enum dn_rma_kind {
    DN_RMA_ACCUMULATE = 1, /**< dn_rma_head_t, dn_block_t if DN_RMA_BY_BLOCKS, operands */
    DN_RMA_LAYOUT,         /**< dn_rma_head_t, dn_ship_piece_t, bytes */
    DN_RMA_ANSWER,         /**< dn_rma_reply_t, bytes */
    DN_RMA_LOCK,           /**< dn_rma_head_t: wants the lock, `flags` says which; answered by DN_RMA_GRANT */
    DN_RMA_GRANT, /**< dn_rma_head_t; with DN_RMA_NEVER in `flags` there is none, as a process that has the lock has ended */
    DN_RMA_UNLOCK,   /**< dn_rma_head_t */
    DN_RMA_POST,     /**< dn_rma_head_t: an exposure epoch is open */
    DN_RMA_COMPLETE, /**< dn_rma_head_t: an access epoch has ended */
    DN_RMA_FIND, /**< dn_rma_head_t: which region holds `len` bytes at `at`? Answered with a dn_rma_region_t */
    DN_RMA_PUT,  /**< dn_rma_offer_head_t, blocks of the window, their bytes */
    DN_RMA_GET,  /**< dn_rma_offer_head_t, blocks of the window; answered by DN_RMA_GOT */
    DN_RMA_GOT,  /**< dn_rma_offer_head_t, bytes */
};

/** Bits of dn_rma_head_t::flags. */
enum {
    DN_RMA_FETCHES = 1, /**< the answer is to have what was there */
    DN_RMA_BY_PROGRAM =
        2,               /**< `count` instances of the layout, `extent` apart; else bytes that lie together */
    DN_RMA_COMPARES = 4, /**< compare_and_swap: value, then what it is compared with */
    DN_RMA_EXCLUSIVELY = 8, /**< DN_RMA_LOCK */
    DN_RMA_NEVER = 16,      /**< DN_RMA_GRANT */
    DN_RMA_BY_BLOCKS = 32,  /**< `count` blocks, from `at` on, which have the data of this part and no more */
};

typedef struct dn_rma_head {
    uint64_t window; /**< its handle at the receiver */
    int32_t rank;    /**< of the sender in it */
    uint32_t flags;
    uint64_t task;  /**< of the sender: it comes back with the answer */
    uint64_t at;    /**< in the window: origin of the layout */
    uint64_t count; /**< instances, or bytes of data in all, or blocks */
    int64_t extent;
    uint64_t skip;   /**< bytes of data before these */
    uint64_t len;    /**< bytes of data in this part */
    int32_t type;    /**< the face's number of the element */
    uint32_t op;     /**< dn_acc_op_t */
    uint64_t layout; /**< number of the program in its slot */
    uint32_t slot;
    uint32_t pad;
} dn_rma_head_t;

typedef struct dn_rma_reply {
    uint64_t task;
    uint64_t off; /**< DN_RMA_ACCUMULATE: bytes of data before these */
    int32_t status;
    uint32_t pad;
} dn_rma_reply_t;

/** Of offers. Short: with a block and one word it takes 48 bytes, which one line has room for. */
typedef struct dn_rma_offer_head {
    uint64_t window; /**< its handle at the receiver */
    int32_t rank;    /**< of the sender in it */
    uint32_t number; /**< of the offer, at its origin for this target */
    uint32_t count;  /**< dn_block_t that follow, by their place in the window */
    uint32_t pad;
} dn_rma_offer_head_t;
_Static_assert(24 == sizeof(dn_rma_offer_head_t), "peers agree on the layout");
_Static_assert(88 == sizeof(dn_rma_head_t) && 24 == sizeof(dn_rma_reply_t), "peers agree on the layouts");
_Static_assert(sizeof(dn_rma_reply_t) <= sizeof(dn_rma_head_t), "what was there fits where a part fits");

/** What a far process has said of its lock, which we want. */
enum dn_rma_grant { DN_RMA_GRANT_NOT, DN_RMA_GRANT_GIVEN, DN_RMA_GRANT_NEVER };

/** What a far process has of our lock. */
enum dn_rma_locks { DN_RMA_LOCKS_NOT, DN_RMA_LOCKS_SOON, DN_RMA_LOCKS };

/** An answer, on its way or without room. */
typedef struct dn_rma_answer {
    dn_queue_item_t item; /**< first */
    dn_peer_t *peer;
    enum dn_rma_kind kind;
    size_t len;
    uint8_t bytes[];
} dn_rma_answer_t;

/** Where only engines of several threads need one. */
static inline void dn_rma_enter(const dn_rma_win_t *win, pthread_mutex_t *lock)
{
    if (win->rma->config.threads) {
        (void) pthread_mutex_lock(lock);
    }
}

static inline void dn_rma_leave(const dn_rma_win_t *win, pthread_mutex_t *lock)
{
    if (win->rma->config.threads) {
        (void) pthread_mutex_unlock(lock);
    }
}

/** @name dn_rma.c */
/** @{ */

/** malloc(), or the end of the process. */
void *dn_rma_need(const dn_rma_t *rma, size_t len);

/** An answer of @p len bytes, to be filled. */
dn_rma_answer_t *dn_rma_answer_new(const dn_rma_t *rma, dn_peer_t *peer, enum dn_rma_kind kind, size_t len);
/** Send it, now or when there is room; it is taken over. */
void dn_rma_answer(dn_rma_t *rma, dn_rma_answer_t *answer);

/** Give a task its handle, by which an answer finds it, and hold it. @return false: no memory. */
bool dn_rma_task_await(dn_rma_task_t *task);
/** There is one more part to be answered, of a task that the caller holds. */
void dn_rma_task_more(dn_rma_task_t *task);
/** Hold it no more: @p parts of it are over, or all that are left. It ends with the last. */
void dn_rma_task_leave(dn_rma_task_t *task, uint32_t parts, dn_status_t status);

/** Hold the window of a handle, NULL: there is none, as of a window that is gone: its messages may come late. */
dn_rma_win_t *dn_rma_win_find(dn_rma_t *rma, uint64_t handle);
/** Hold a window that the caller holds for one more. */
void dn_rma_win_hold(dn_rma_win_t *win);
/** Hold it no more. */
void dn_rma_win_leave(dn_rma_win_t *win);
/** @} */

/** @name dn_rma_ask.c */
/** @{ */
/** The head of a message to a far process. */
dn_rma_head_t dn_rma_head(const dn_rma_win_t *win, int rank);
/** Send one that is a head and no more; waits for room. */
dn_status_t dn_rma_send_head(const dn_rma_win_t *win, int rank, enum dn_rma_kind kind,
                             const dn_rma_head_t *head);
/** An answer has come. */
void dn_rma_on_answer(dn_rma_t *rma, const dn_peer_t *src, const uint8_t *bytes, size_t len);
/** @} */

/** @name dn_rma_offer.c */
/** @{ */

/** States of dn_rma_notes_t::offer, beside the number of the offer: dn_rma_offer.c draws them. */
enum dn_rma_offer_state { DN_RMA_FREE, DN_RMA_OFFERED, DN_RMA_TAKEN, DN_RMA_DONE, DN_RMA_BACK };

static inline uint64_t dn_rma_offer_word(uint32_t number, enum dn_rma_offer_state state)
{
    return (uint64_t) number << 3 | state;
}

/** The state of a word. */
static inline enum dn_rma_offer_state dn_rma_offer_state(const uint64_t *word)
{
    return (enum dn_rma_offer_state)(dn_load_acquire(word) & 7);
}

/** Puts, or gets. */
typedef struct dn_rma_moves {
    const dn_block_t *here;  /**< addresses */
    const dn_block_t *there; /**< offsets in the segment of the target's window, of the same lengths */
    uint32_t count;
    uint64_t bytes;
} dn_rma_moves_t;

/** Make offers to a target from here on, if that is of use. */
void dn_rma_offer_open(dn_rma_win_t *win, int target, size_t botf_max);
/** May they be offered? */
static inline bool dn_rma_offer_fits(const dn_rma_far_t *far, const dn_rma_moves_t *moves)
{
    return far->offer_max >= moves->bytes + moves->count * sizeof(dn_block_t)
           && DN_RMA_MOVES_MOST >= moves->count;
}

/**
 * Have a target carry them out, and wait for that. The caller is in a call of the user's.
 * @retval DN_OK           it has.
 * @retval DN_ERR_AGAIN    nothing has moved, nor will: they are for dn_rma_transfer().
 * @retval DN_ERR_UNREACH  the target was lost meanwhile.
 */
dn_status_t dn_rma_offer(dn_rma_win_t *win, int target, const dn_rma_moves_t *moves, bool write);
/** A DN_RMA_PUT, DN_RMA_GET or DN_RMA_GOT. @return false: nobody sends this. */
bool dn_rma_on_offer(dn_rma_win_t *win, dn_peer_t *src, unsigned tag, const dn_rma_offer_head_t *head,
                     const uint8_t *body, size_t len);
/** @} */

/** @name dn_rma_serve.c */
/** @{ */

/** dn_handler_fn_t. */
void dn_rma_receive(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg);

/**
 * Carry out a DN_RMA_ACCUMULATE.
 * @param[in]     data      Behind the head.
 * @param[in,out] patience  Of all tries of this request.
 * @return the answer, for dn_rma_answer(). NULL: another has the guard, and nothing has changed.
 */
dn_rma_answer_t *dn_rma_serve(dn_rma_win_t *win, dn_peer_t *src, const dn_rma_head_t *head,
                              const uint8_t *data, size_t len, dn_rma_wait_t *patience);
/** @} */

/** @name dn_rma_later.c */
/** @{ */
/** dn_rma_serve(), now or later, in the order of the origin. Called in the handler. */
void dn_rma_in_order(dn_rma_win_t *win, dn_peer_t *src, const dn_rma_head_t *head, const uint8_t *body,
                     size_t len);
/** Try again what waits. @return requests served. */
int dn_rma_try_later(dn_rma_t *rma);
/** What waits for this window is not served any more: the window goes. */
void dn_rma_forget_later(dn_rma_win_t *win);
/** @} */

/** @name dn_rma_lock.c: the lock of this process, for those that are far */
/** @{ */
/** One asks for it. @return false: it has asked before. */
bool dn_rma_on_lock(dn_rma_win_t *win, int rank, bool exclusive);
/** A rank does not hold it any more, if it did. */
void dn_rma_take_back(dn_rma_win_t *win, int rank);
/** Look at those who wait for it. @return locks granted. */
int dn_rma_grant_waiting(dn_rma_t *rma);
/** Who waits for it will not get it. */
void dn_rma_forget_waiting(dn_rma_win_t *win);
/** @} */

#endif
