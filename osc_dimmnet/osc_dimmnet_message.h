/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_message.h
 * What far targets are asked by messages on DN_CHAN_OSC, and do when they progress (Martini paper, section 9: what the
 * hardware cannot do is left to the core processor).
 *
 * Requests of an origin travel in the order in which it makes them, and are carried out in this order. Each part of an
 * accumulate is answered; the answer has what was there before, if that is wanted. A layout of the target's memory is sent ahead,
 * as a program (dn_prog.h), when it is not the one used last, and after the answers to all that used that one.
 */
#ifndef OSC_DIMMNET_MESSAGE_H
#define OSC_DIMMNET_MESSAGE_H

#include "osc_dimmnet.h"

#include "ompi/request/request.h"

/** Parts of accumulates to one target that may wait for their answers; the origin waits before the next. So a target keeps no
 * more of one origin, while the guard is another's. */
#define OSC_ASKED_MAX 1024u

/** Bytes of an encoded program that a target takes: layouts of about 8 million places. */
#define OSC_PROGRAM_MAX ((uint64_t) 64 << 20)

/** What a message is: its BOTF tag. */
enum osc_message {
    OSC_ACCUMULATE = 1, /**< osc_head_t, operands */
    OSC_PROGRAM,        /**< osc_head_t, bytes of an encoded program from `skip` on, of `count` */
    OSC_ANSWER,         /**< osc_answer_t, bytes */
    OSC_LOCK,           /**< osc_head_t: wants the lock, `flags` says which; answered by OSC_GRANT */
    OSC_GRANT, /**< osc_head_t; with OSC_NEVER in `flags` there is none, as a process that has the lock has ended */
    OSC_UNLOCK,   /**< osc_head_t */
    OSC_POST,     /**< osc_head_t: an exposure epoch is open */
    OSC_COMPLETE, /**< osc_head_t: an access epoch has ended */
    OSC_FIND,     /**< osc_head_t: which region holds `len` bytes at `at`? Answered with an osc_region_t */
};

/** Bits of osc_head_t::flags. */
enum {
    OSC_FETCHES = 1,    /**< the answer is to have what was there */
    OSC_BY_PROGRAM = 2, /**< `count` instances of the program, `extent` apart; else bytes that lie together */
    OSC_COMPARES = 4,   /**< compare_and_swap: value, then what it is compared with */
    OSC_EXCLUSIVELY = 8, /**< OSC_LOCK */
    OSC_NEVER = 16,      /**< OSC_GRANT */
};

typedef struct osc_head {
    uint64_t window; /**< its handle at the receiver */
    int32_t rank;    /**< of the sender in it */
    uint32_t flags;
    uint64_t task;  /**< of the sender: it comes back with the answer */
    uint64_t at;    /**< in the window: origin of the layout */
    uint64_t count; /**< instances; OSC_PROGRAM: bytes in all */
    int64_t extent;
    uint64_t skip; /**< bytes of data before these */
    uint64_t len;  /**< bytes of data in this part */
    int32_t type;  /**< Fortran's number of the predefined datatype */
    uint32_t op;   /**< dn_acc_op_t */
} osc_head_t;

typedef struct osc_answer {
    uint64_t task;
    uint64_t off; /**< OSC_ACCUMULATE: bytes of data before these */
    int32_t error;
    uint32_t pad;
} osc_answer_t;

/** Memory attached to a dynamic window. */
typedef struct osc_region {
    uint64_t base; /**< address in its process */
    uint64_t len;
    uint64_t roff; /**< of base in the segment */
    dn_key_t key;
} osc_region_t;

/** An operation on a far target that is not complete. */
typedef struct osc_task {
    dn_comp_t comp; /**< first: what libdimmnet gives back */
    osc_far_t *far;
    ompi_request_t *request;   /**< NULL: nobody waits for this one alone */
    ompi_datatype_t *types[2]; /**< in use until it is complete; NULL: none */
    uint64_t handle;           /**< for answers; 0: it gets none */
    uint32_t parts;            /**< that are not answered */
    uint32_t holders;          /**< who looks at it, also when all parts are answered */
    int error;                 /**< of the first part that failed */
    bool fetches;
    osc_side_t result;
    osc_region_t *region; /**< OSC_FIND: where it goes */
} osc_task_t;

/** @name Tasks (osc_dimmnet_far.c) */
/** @{ */

/** A task that counts as pending, with a request if one is wanted. @return NULL: no memory. */
osc_task_t *ompi_osc_dimmnet_task_new(osc_far_t *far, ompi_win_t *win, ompi_request_t **request);

/** It is complete. */
void ompi_osc_dimmnet_task_end(osc_task_t *task, int error);

/** Start a PUSH or PULL, which ends the task when it is complete. @return an error for the call: the task has not ended. */
int ompi_osc_dimmnet_task_start(osc_task_t *task, dn_xfer_t *xfer, bool write);

/** The call fails whose task has ended, or ends by itself: the user gets MPI_REQUEST_NULL. NULL: there is no request. */
void ompi_osc_dimmnet_request_drop(ompi_request_t **request);
/** @} */

/** @name Batches of short puts and gets (osc_dimmnet_batch.c) */
/** @{ */

/**
 * Have a put or get of bytes that lie together wait for others, which are started all at once when there are enough of them.
 * @return false: it is not for a batch.
 */
bool ompi_osc_dimmnet_batch_add(osc_module_t *module, int target, const dn_xfer_t *xfer, bool write);

/** Start what waits for more of its kind. An error is one of those that osc_far_t::error tells. */
void ompi_osc_dimmnet_batch_start(osc_module_t *module, int target);
/** @} */

/** @name Messages (osc_dimmnet_message.c) */
/** @{ */
int ompi_osc_dimmnet_messages_open(void);
void ompi_osc_dimmnet_messages_close(void);

/** An answer, on its way or without room. */
typedef struct osc_queued {
    struct osc_queued *next;
    dn_peer_t *peer;
    unsigned tag;
    size_t len;
    uint8_t bytes[];
} osc_queued_t;

/** End the job, with a sentence: an origin that gets no answer would wait for ever. */
void ompi_osc_dimmnet_no_memory(void) __attribute__((noreturn));

/** An answer of @p len bytes, to be filled. */
osc_queued_t *ompi_osc_dimmnet_answer_new(dn_peer_t *peer, unsigned tag, size_t len);
/** Send it, now or when there is room; it is taken over. */
void ompi_osc_dimmnet_answer(osc_queued_t *queued);

/** Give a task its handle, by which @p parts answers find it, and hold it. @return false: no memory. */
bool ompi_osc_dimmnet_task_await(osc_task_t *task, uint32_t parts);
/** Hold it no more: @p parts of it are over, or all that are left. It ends with the last. */
void ompi_osc_dimmnet_task_leave(osc_task_t *task, uint32_t parts, int error);

/** An answer has come. */
void ompi_osc_dimmnet_answered(const dn_peer_t *src, const osc_answer_t *reply, const uint8_t *data,
                               size_t len);

/** Hold the window of a handle, NULL: there is none, as of a window that is gone: its messages may come late. */
osc_module_t *ompi_osc_dimmnet_window(uint64_t handle);
/** Hold a window that the caller holds for one more. */
void ompi_osc_dimmnet_window_hold(osc_module_t *module);
/** Hold it no more. */
void ompi_osc_dimmnet_window_leave(osc_module_t *module);

/** From here on messages find the window. @return false: no memory. */
bool ompi_osc_dimmnet_messages_join(osc_module_t *module);
/** Messages do not find it any more, and nobody holds it. */
void ompi_osc_dimmnet_messages_leave(osc_module_t *module);
/** @} */

/** @name The thread that helps (osc_dimmnet_helper.c) */
/** @{ */

/** From now on @p progress is called by a thread, if the MCA variable helper_thread says so. Where there can be none, a
 * help text says so, and the program serves by itself. */
void ompi_osc_dimmnet_helper_start(int (*progress)(void));
/** It has ended. It must not be called in a handler, nor with a lock that one takes. */
void ompi_osc_dimmnet_helper_stop(void);
/** @} */

/** @name Requests of an origin (osc_dimmnet_request.c) */
/** @{ */

/** The head of a request to a target. */
osc_head_t ompi_osc_dimmnet_head(const osc_module_t *module, int target);

/**
 * Accumulate at a far target.
 *
 * @param[in] origin   As in accumulate(), and @p result.
 * @param[in] compare  Not NULL for compare_and_swap.
 * @retval OMPI_ERR_NOT_SUPPORTED         a layout has no program: nothing else can be done.
 * @retval MPI_ERR_UNSUPPORTED_OPERATION  the program is longer than OSC_PROGRAM_MAX: the user accumulates by datatypes
 *                                        with fewer places.
 */
int ompi_osc_dimmnet_far_accumulate(osc_module_t *module, int target, const osc_side_t *origin,
                                    const osc_side_t *result, const void *compare, const osc_side_t *there,
                                    dn_acc_op_t op, ompi_request_t **request);

void ompi_osc_dimmnet_ask_lock(osc_module_t *module, int target, bool exclusive);
int ompi_osc_dimmnet_await_lock(osc_module_t *module, int target);
void ompi_osc_dimmnet_give_lock(osc_module_t *module, int target);
void ompi_osc_dimmnet_send_note(osc_module_t *module, int target, bool completes);

/** Ask a process for the region of its dynamic window that holds these bytes. */
int ompi_osc_dimmnet_ask_region(osc_module_t *module, int target, uint64_t at, uint64_t len,
                                osc_region_t *region);
/** @} */

/** @name The target's side (osc_dimmnet_serve.c) */
/** @{ */

/** dn_handler_fn_t of DN_CHAN_OSC. */
void ompi_osc_dimmnet_receive(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg);

/**
 * Carry out an OSC_ACCUMULATE.
 * @param[in,out] patience  Of all tries of this request.
 * @return the answer, for ompi_osc_dimmnet_answer(). NULL: another has the guard, and nothing has changed.
 */
osc_queued_t *ompi_osc_dimmnet_serve(osc_module_t *module, dn_peer_t *src, const osc_head_t *head,
                                     const uint8_t *data, size_t len, osc_patience_t *patience);

/** Look at those who wait for a lock of this process. @return locks granted. */
int ompi_osc_dimmnet_grant_waiting(void);

/** A rank does not hold the lock of this process any more, if it did. */
void ompi_osc_dimmnet_take_back(osc_module_t *module, int rank);

/** Who waits for a lock of this window will not get it. */
void ompi_osc_dimmnet_forget_waiting(osc_module_t *module);
/** @} */

/** @name Accumulates that wait for the guard (osc_dimmnet_later.c) */
/** @{ */

/** ompi_osc_dimmnet_serve(), now or later, in the order of the origin. Called in the handler. */
void ompi_osc_dimmnet_in_order(osc_module_t *module, dn_peer_t *src, const osc_head_t *head,
                               const uint8_t *body, size_t len);

/** Try again what waits. @return requests served. */
int ompi_osc_dimmnet_try_later(void);

/** What waits for this window is not served any more: the window goes. */
void ompi_osc_dimmnet_forget_later(const osc_module_t *module);
/** @} */

/** @name Dynamic windows (osc_dimmnet_dynamic.c) */
/** @{ */

/** Bytes of a block that the table of regions takes, behind the notes. */
uint64_t ompi_osc_dimmnet_regions_bytes(void);

/** Find the region that holds bytes of a target, in its table or by asking. OMPI_ERR_RMA_RANGE: there is none. */
int ompi_osc_dimmnet_region(osc_module_t *module, int target, uint64_t at, uint64_t len,
                            osc_region_t *region);

/** The same in the own table, which nobody else can write. */
int ompi_osc_dimmnet_own_region(const osc_module_t *module, uint64_t at, uint64_t len, osc_region_t *region);

/** Its memory in the address space of this process; NULL: not there. */
uint8_t *ompi_osc_dimmnet_region_here(osc_module_t *module, int target, const osc_region_t *region);

/** Room for its regions; NULL: no memory. */
struct osc_regions *ompi_osc_dimmnet_regions_open(void);
void ompi_osc_dimmnet_regions_close(osc_module_t *module);
/** @} */

/** Which bytes, from the displacement, a side covers. @return false: more than memory holds. */
bool ompi_osc_dimmnet_span(const osc_side_t *side, dn_prog_span_t *span);

#endif
