/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_rma_int.h
 * Private to windows: the messages, and what the source files share.
 *
 *   dn_rma.c        engines, windows and tasks by handle, answers that wait for room, waiting
 *   dn_rma_ask.c    the origin's side: requests to far targets. An origin waits inside of its call for room to send
 *   dn_rma_batch.c  the origin's side: several short puts and gets go together
 *   dn_rma_offer.c  both sides: a target that makes progress carries out short puts and gets
 *   dn_rma_serve.c  the target's side: requests are checked and carried out, inside of dn_progress()
 *   dn_rma_later.c  the target's side: accumulates that find the guard taken
 *   dn_rma_lock.c   locks and guards of targets, and what lost processes have left of the lock of this process
 */
#ifndef DN_RMA_INT_H
#define DN_RMA_INT_H

#include "dn_clock.h"
#include "dn_device.h"
#include "dn_rma.h"
#include "dn_ship.h"

#include <stdlib.h>
#include <string.h>

/** Most parts of accumulates to one target without an answer: the origin waits before it sends the next part. So a target keeps no
 * more parts of one origin while another process has the guard. */
#define DN_RMA_ASKED_MAX 1024u

/** Blocks of puts or gets that go in one call of the kernel, or in one offer. */
#define DN_RMA_MOVES_MOST 64

/** Nanoseconds until an offer is taken back: two to four calls of the kernel. */
#define DN_RMA_OFFER_NS 4000u

/** A short accumulate that takes the guard counts as much as so many bytes of long ones (perf/dn_rma). Long: more than a cell. */
#define DN_RMA_WORTH 256u

/** Bytes of long accumulates after which the gate is closed: cell by cell, so many bytes take as long as the fence. Each
 * time that the gate could not be closed doubles this number, up to DN_RMA_CLOSE_MOST. */
#define DN_RMA_CLOSE      (16u << 10)
#define DN_RMA_CLOSE_MOST (64u << 20)

/** The gate is opened again when short accumulates (DN_RMA_WORTH each), less the bytes of long ones, come to so many bytes. */
#define DN_RMA_REOPEN (64 * DN_RMA_WORTH)

/** The kind of a message: its BOTF tag. */
enum dn_rma_kind {
    DN_RMA_ACCUMULATE = 1, /**< dn_rma_head_t, dn_block_t if DN_RMA_BY_BLOCKS, operands */
    DN_RMA_LAYOUT,         /**< dn_rma_head_t, dn_ship_piece_t, bytes */
    DN_RMA_ANSWER,         /**< dn_rma_reply_t, bytes */
    DN_RMA_LOOK, /**< dn_rma_head_t: the sender waits long for the lock: do those live that it may wait for? */
    DN_RMA_POST,     /**< dn_rma_head_t: an exposure epoch is open */
    DN_RMA_COMPLETE, /**< dn_rma_head_t: an access epoch has ended */
    DN_RMA_FIND, /**< dn_rma_head_t: which region holds `len` bytes at `at`? Answered with a dn_rma_region_t */
    DN_RMA_PUT,  /**< dn_rma_offer_head_t, blocks of the window, their bytes */
    DN_RMA_GET,  /**< dn_rma_offer_head_t, blocks of the window; answered by DN_RMA_GOT */
    DN_RMA_GOT,  /**< dn_rma_offer_head_t, bytes */
};

/** Bits of dn_rma_head_t::flags. */
enum {
    DN_RMA_FETCHES = 1, /**< the answer is to have the old values */
    DN_RMA_BY_PROGRAM =
        2,               /**< `count` instances of the layout, `extent` apart; else bytes that lie together */
    DN_RMA_COMPARES = 4, /**< compare_and_swap: first the new value, then the value to compare with */
    /** `count` blocks, by their offset from `at`, which hold the data of this part only */
    DN_RMA_BY_BLOCKS = 32,
};

typedef struct dn_rma_head {
    uint64_t window; /**< its handle at the receiver */
    int32_t rank;    /**< of the sender in it */
    uint32_t flags;
    uint64_t task;  /**< handle of the sender's task, which comes back with the answer */
    uint64_t at;    /**< in the window: origin of the layout */
    uint64_t count; /**< instances, or bytes of data in all, or blocks */
    int64_t extent;
    uint64_t skip;   /**< bytes of data before this part */
    uint64_t len;    /**< bytes of data in this part */
    int32_t type;    /**< the face's number of the element */
    uint32_t op;     /**< dn_acc_op_t */
    uint64_t layout; /**< number of the program in its slot */
    uint32_t slot;
    uint32_t pad;
} dn_rma_head_t;

typedef struct dn_rma_reply {
    uint64_t task;
    uint64_t off; /**< in an answer to DN_RMA_ACCUMULATE: bytes of data before this part */
    int32_t status;
    uint32_t pad;
} dn_rma_reply_t;

/** The head of messages of offers. It is short: with one block and one word the message has 48 bytes, which fit into one line. */
typedef struct dn_rma_offer_head {
    uint64_t window; /**< its handle at the receiver */
    int32_t rank;    /**< of the sender in it */
    uint32_t number; /**< of the offer; the origin counts its offers to each target */
    uint32_t count;  /**< dn_block_t that follow, by their place in the window */
    uint32_t pad;
} dn_rma_offer_head_t;
_Static_assert(24 == sizeof(dn_rma_offer_head_t), "peers agree on the layout");
_Static_assert(88 == sizeof(dn_rma_head_t) && 24 == sizeof(dn_rma_reply_t), "peers agree on the layouts");
_Static_assert(sizeof(dn_rma_reply_t) <= sizeof(dn_rma_head_t), "what was there fits where a part fits");

/** An answer that is to be sent, or waits for room. */
typedef struct dn_rma_answer {
    dn_queue_item_t item; /**< first */
    dn_peer_t *peer;
    enum dn_rma_kind kind;
    size_t len;
    uint8_t bytes[];
} dn_rma_answer_t;

/** Take a lock that only an engine with several threads needs. */
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

/** malloc(). Where there is no memory, dn_rma_config_t::no_memory ends the process. */
void *dn_rma_need(const dn_rma_t *rma, size_t len);

/** Make an answer of @p len bytes, which the caller fills. */
dn_rma_answer_t *dn_rma_answer_new(const dn_rma_t *rma, dn_peer_t *peer, enum dn_rma_kind kind, size_t len);
/** Send an answer, now or when there is room. The engine owns the answer from here on. */
void dn_rma_answer(dn_rma_t *rma, dn_rma_answer_t *answer);

/** Give a task its handle, by which an answer finds the task, with one part to be answered. The caller holds the task then.
 * @return false: no memory. */
bool dn_rma_task_await(dn_rma_task_t *task);
/** Add one more part to be answered, to a task that the caller holds. */
void dn_rma_task_more(dn_rma_task_t *task);
/** End a hold of a task: @p parts of its parts are over, or all that are left. The task ends when no part and no hold is left. */
void dn_rma_task_leave(dn_rma_task_t *task, uint32_t parts, dn_status_t status);

/** Find the window of a handle, and hold it. @return NULL: no such window. It may be gone: messages may come late. */
dn_rma_win_t *dn_rma_win_find(dn_rma_t *rma, uint64_t handle);
/** Hold a window once more. The caller holds it already. */
void dn_rma_win_hold(dn_rma_win_t *win);
/** End one hold of a window. */
void dn_rma_win_leave(dn_rma_win_t *win);
/** @} */

/** @name dn_rma_ask.c */
/** @{ */
/** The head of a message to a far process. */
dn_rma_head_t dn_rma_head(const dn_rma_win_t *win, int rank);
/** Send a message that is a head only; waits for room. */
dn_status_t dn_rma_send_head(const dn_rma_win_t *win, int rank, enum dn_rma_kind kind,
                             const dn_rma_head_t *head);
/** Handle a DN_RMA_ANSWER (dn_rma.c). */
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

/** Several puts, or several gets, of one offer or batch. */
typedef struct dn_rma_moves {
    const dn_block_t *here;  /**< addresses */
    const dn_block_t *there; /**< offsets in the segment of the target's window, of the same lengths */
    uint32_t count;
    uint64_t bytes;
} dn_rma_moves_t;

/** Prepare offers to a target. No offers are made to a target where they would not help. */
void dn_rma_offer_open(dn_rma_win_t *win, int target, size_t botf_max);
/** Do these puts or gets fit into one offer? */
static inline bool dn_rma_offer_fits(const dn_rma_far_t *far, const dn_rma_moves_t *moves)
{
    return far->offer_max >= moves->bytes + moves->count * sizeof(dn_block_t)
           && DN_RMA_MOVES_MOST >= moves->count;
}

/**
 * Ask a target to carry out puts or gets, and wait. Not called in a handler.
 * @retval DN_OK           the target has carried them out.
 * @retval DN_ERR_AGAIN    nothing has moved, and nothing will: the caller uses dn_rma_transfer().
 * @retval DN_ERR_UNREACH  the target was lost meanwhile.
 */
dn_status_t dn_rma_offer(dn_rma_win_t *win, int target, const dn_rma_moves_t *moves, bool write);
/** Handle a DN_RMA_PUT, DN_RMA_GET or DN_RMA_GOT. @return false: the message is wrong. */
bool dn_rma_on_offer(dn_rma_win_t *win, dn_peer_t *src, unsigned tag, const dn_rma_offer_head_t *head,
                     const uint8_t *body, size_t len);
/** @} */

/** @name dn_rma_serve.c */
/** @{ */

/** dn_handler_fn_t. */
void dn_rma_receive(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg);

/**
 * Carry out a DN_RMA_ACCUMULATE.
 * @param[in]     data      The bytes behind the head.
 * @param[in,out] patience  The wait for the guard: the same object for all tries of this request.
 * @return the answer, for dn_rma_answer(). NULL: another process has the guard, and nothing has changed.
 */
dn_rma_answer_t *dn_rma_serve(dn_rma_win_t *win, dn_peer_t *src, const dn_rma_head_t *head,
                              const uint8_t *data, size_t len, dn_rma_wait_t *patience);
/** @} */

/** @name dn_rma_later.c */
/** @{ */
/** Call dn_rma_serve(), now or later, in the order in which the origin has asked. Called in the handler. */
void dn_rma_in_order(dn_rma_win_t *win, dn_peer_t *src, const dn_rma_head_t *head, const uint8_t *body,
                     size_t len);
/** Try the requests again that wait. @return requests served. */
int dn_rma_try_later(dn_rma_t *rma);
/** Drop the requests that wait for a window, which is about to be freed. */
void dn_rma_forget_later(dn_rma_win_t *win);
/** @} */

/** @name dn_rma_lock.c: what far processes have to do with the lock of this process */
/** @{ */
/** Prepare changes of the lock of a far process. */
void dn_rma_lock_open(dn_rma_far_t *far);
/** Handle a DN_RMA_LOOK of a rank. */
void dn_rma_on_look(dn_rma_win_t *win, int rank);
/** A rank is lost. If it is far, and wants or has the lock, give the lock back on its behalf, now or when its turn comes. */
void dn_rma_take_back(dn_rma_win_t *win, int rank);
/** Give back the lock on behalf of lost processes whose turn has come. @return how many. */
int dn_rma_give_orphans(dn_rma_t *rma);
/** Forget the numbers of lost processes for the lock of a window, which is about to be freed. */
void dn_rma_forget_orphans(dn_rma_win_t *win);
/** @} */

#endif
