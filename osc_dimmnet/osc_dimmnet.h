/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet.h
 * Open MPI's one-sided communication on libdimmnet.
 *
 * This component knows MPI: which operations are legal when, MPI's datatypes and operations, and windows of all flavours. dn_rma.h has
 * the messages between the processes of a window, the locks and the guards.
 *
 * Where the origin maps the memory of a target, put, get and accumulate are loads and stores of the origin; the target
 * takes no part. So an operation is complete when its call returns, a flush is a memory fence, and requests are complete
 * from the start. A target whose memory is not mapped is *far*: a flush waits for the operations on a far target.
 *
 * Threads: several threads may use one window. The state of each target and of the window says which targets an epoch has opened. These
 * states change under the module's lock; operations read them without the lock. No thread waits while it holds that lock. MPI_Win_start
 * sets the states of its targets without the lock: while its group is open, no other call changes them.
 */
#ifndef OSC_DIMMNET_H
#define OSC_DIMMNET_H

#include "dn_ompi.h"
#include "dn_ompi_prog.h"
#include "dn_ompi_progress.h"
#include "dn_piece.h"
#include "dn_rma.h"

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/op/op.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/win/win.h"
#include "opal/datatype/opal_datatype_internal.h"

/** Bits of an epoch: why operations on a target are legal now. */
enum osc_epoch {
    OSC_FENCE = 1,      /**< a fence opened it; all targets */
    OSC_START = 2,      /**< MPI_Win_start named the target */
    OSC_SHARED = 4,     /**< the target is locked shared; in osc_module_t::epochs: all targets are */
    OSC_EXCLUSIVE = 8,  /**< the target is locked exclusively */
    OSC_UNCHECKED = 16, /**< as OSC_SHARED, by MPI_MODE_NOCHECK: no lock was taken */
    OSC_PASSIVE = OSC_SHARED | OSC_EXCLUSIVE | OSC_UNCHECKED
};

/** A process of a window, as this process sees it. */
typedef struct osc_target {
    uint8_t *base;      /**< its window memory, in the address space of this process; NULL: not mapped here */
    uint64_t size;      /**< bytes of its window memory */
    uint64_t unit;      /**< bytes of one step of a displacement */
    unsigned epochs;    /**< osc_epoch bits */
    uint64_t posts;     /**< count of its exposure epochs for which MPI_Win_start has waited or waits */
    uint64_t completes; /**< count of its access epochs for which MPI_Win_post has opened an epoch */
} osc_target_t;

/** The processes that MPI_Win_post or MPI_Win_start named, by their ranks in the window. */
typedef struct osc_group {
    int *rank;
    int count;
    bool open;
} osc_group_t;

/** A window. */
typedef struct osc_module {
    ompi_osc_base_module_t super;
    osc_target_t *target; /**< by rank */
    unsigned epochs;      /**< osc_epoch bits that hold for all targets */
    int locks;            /**< targets that are locked one by one */
    int flavor;           /**< MPI_WIN_FLAVOR_... */
    bool noncontig;       /**< MPI_WIN_FLAVOR_SHARED: each process has its own memory */
    bool threads;         /**< several threads may call at once */
    dn_rma_win_t rma;
    ompi_communicator_t *comm;
    ompi_win_t *win;
    dn_segment_t *segment;       /**< registered for the user's own memory; NULL: none */
    struct osc_regions *regions; /**< dynamic window: what is attached (osc_dimmnet_dynamic.c); else NULL */
    dn_piece_t block;            /**< the block of this process (dn_rma.h) */
    unsigned tests;              /**< calls of MPI_Win_test in vain */
    unsigned settles;            /**< calls of ompi_osc_dimmnet_settle(); wraps */
    osc_group_t posted;          /**< of the exposure epoch */
    osc_group_t started;         /**< of the access epoch */
    opal_mutex_t lock;           /**< protects epochs, locks, posted, started and the regions */
} osc_module_t;

/** What all windows of a process share. */
typedef struct osc_component {
    ompi_osc_base_component_t super;
    dn_port_t *port;         /**< NULL until the first window or MPI_Alloc_mem */
    bool failed;             /**< the port, or the engine of windows, cannot be opened */
    bool maps;               /**< other processes can map what this process allocates */
    dn_rma_t rma;            /**< the engine of windows */
    dn_pieces_t pieces;      /**< memory for windows and MPI_Alloc_mem */
    opal_hash_table_t peers; /**< dn_peer_t by process name */
    opal_mutex_t lock;       /**< protects peers */
    opal_mutex_t open_lock;  /**< held while the port is opened; taken before lock */
} osc_component_t;

OMPI_DECLSPEC extern osc_component_t mca_osc_dimmnet_component;
extern const ompi_osc_base_module_t ompi_osc_dimmnet_module;

static inline osc_module_t *osc_module(const ompi_win_t *win)
{
    return (osc_module_t *) win->w_osc_module;
}

/** @name Waiting */
/** @{ */

/** Wait a little between two polls of a word. The process that will change the word rings then. */
static inline void osc_wait(dn_rma_wait_t *wait)
{
    dn_rma_wait(&mca_osc_dimmnet_component.rma, wait);
}

/** As osc_wait(), if that process may have ended. @return true: the caller looks whether that process lives. */
static inline bool osc_wait_long(dn_rma_wait_t *wait)
{
    return dn_rma_wait_long(&mca_osc_dimmnet_component.rma, wait);
}

/** Order puts before what this process does next: a process that sees what comes next sees the puts, too. The fence is a full one, since
 * also x86 may do a later load before an earlier store. */
static inline void osc_complete(void)
{
    dn_fence_seq_cst();
}
/** @} */

/** @name Peers (osc_dimmnet_peer.c) */
/** @{ */

/** Open the port, unless it is open. @return whether this process can serve windows. */
bool ompi_osc_dimmnet_port_ready(void);

/** How the processes of a communicator reach each other. */
enum osc_reached { OSC_NOT_ALL, OSC_ALL_CONNECTED, OSC_ALL_MAPPED };

/** Connect to processes of a communicator that are new, and find how all processes reach each other. Collective: all get the same answer. */
enum osc_reached ompi_osc_dimmnet_reach(ompi_communicator_t *comm);

/** How does this process reach all processes of a communicator? It is connected to all of them. Another process may have another answer.
 * OSC_NOT_ALL: a process is lost. */
enum osc_reached ompi_osc_dimmnet_reached(ompi_communicator_t *comm);

/** The peer of a rank; NULL: this process is not connected to it. */
dn_peer_t *ompi_osc_dimmnet_peer(ompi_communicator_t *comm, int rank);

/** Part from all peers and close the port. */
void ompi_osc_dimmnet_peers_close(void);
/** @} */

/** @name MPI_Alloc_mem (osc_dimmnet_alloc.c) */
/** @{ */

/** Take memory for a caller that can also use other memory. @return false: no memory, or new segments would take too many file
 * descriptors. No help text is shown then. */
bool ompi_osc_dimmnet_spare(uint64_t len, dn_piece_t *piece);

/** From here on MPI_Alloc_mem asks this component for memory, if the MCA variable alloc_mem says so. */
void ompi_osc_dimmnet_alloc_open(void);
void ompi_osc_dimmnet_alloc_close(void);
/** @} */

/** @name Windows (osc_dimmnet_window.c) */
/** @{ */
int ompi_osc_dimmnet_window_make(ompi_win_t *win, void **base, size_t size, dn_ompi_unit_t disp_unit,
                                 ompi_communicator_t *comm, opal_info_t *info, int flavor);
int ompi_osc_dimmnet_free(ompi_win_t *win);
int ompi_osc_dimmnet_shared_query(ompi_win_t *win, int rank, size_t *size, dn_ompi_unit_t *disp_unit,
                                  void *baseptr);
/** Regions of a dynamic window (osc_dimmnet_dynamic.c). */
int ompi_osc_dimmnet_attach(ompi_win_t *win, void *base, size_t len);
int ompi_osc_dimmnet_detach(ompi_win_t *win, const void *base);
/** @} */

/** @name Synchronisation (osc_dimmnet_active.c, osc_dimmnet_passive.c) */
/** @{ */
int ompi_osc_dimmnet_fence(int assert, ompi_win_t *win);
int ompi_osc_dimmnet_start(ompi_group_t *group, int assert, ompi_win_t *win);
int ompi_osc_dimmnet_complete(ompi_win_t *win);
int ompi_osc_dimmnet_post(ompi_group_t *group, int assert, ompi_win_t *win);
int ompi_osc_dimmnet_test(ompi_win_t *win, int *flag);
int ompi_osc_dimmnet_wait_posted(ompi_win_t *win);
int ompi_osc_dimmnet_lock(int type, int target, int assert, ompi_win_t *win);
int ompi_osc_dimmnet_unlock(int target, ompi_win_t *win);
int ompi_osc_dimmnet_lock_all(int assert, ompi_win_t *win);
int ompi_osc_dimmnet_unlock_all(ompi_win_t *win);
int ompi_osc_dimmnet_sync(ompi_win_t *win);
int ompi_osc_dimmnet_flush(int target, ompi_win_t *win);
int ompi_osc_dimmnet_flush_all(ompi_win_t *win);
/** @} */

/** @name Accumulates: MPI's elements and operations, as dn_acc.h has them (osc_dimmnet_element.c) */
/** @{ */

/** The dn_acc_op_t of an operation, by the operation's number in Fortran. DN_ACC_OPS: accumulates do not have the operation. */
extern const uint8_t ompi_osc_dimmnet_ops[OMPI_OP_BASE_FORTRAN_OP_MAX];

/** The dn_acc_op_t of an operation. DN_ACC_OPS: accumulates do not have the operation. */
static inline dn_acc_op_t osc_op(const ompi_op_t *op)
{
    const unsigned number = (unsigned) op->o_f_to_c_index;

    return OPAL_LIKELY(OMPI_OP_BASE_FORTRAN_OP_MAX > number) ? (dn_acc_op_t) ompi_osc_dimmnet_ops[number]
                                                             : DN_ACC_OPS;
}

/** Does MPI define the operation for elements of a predefined datatype? If not, Open MPI's loops would end the job. */
bool ompi_osc_dimmnet_is_defined(uint32_t op, ompi_datatype_t *basic);

/** The predefined datatype of all elements of @p type. NULL: the elements are of several kinds, and count as bytes. */
static inline ompi_datatype_t *osc_basic(ompi_datatype_t *type)
{
    return OPAL_LIKELY(ompi_datatype_is_predefined(type))
               ? type
               : ompi_datatype_get_single_predefined_type_from_args(type);
}

/** The elements of plain predefined datatypes, by the datatype's number in OPAL: integers, logicals, bytes and floating-point numbers. They
 * have no gaps, and lower bound 0. `size` 0: the datatype is not plain. */
extern const dn_element_t ompi_osc_dimmnet_plain[OPAL_DATATYPE_MAX_PREDEFINED];

/** The elements of a plain predefined datatype. NULL: the datatype is another one. */
static inline const dn_element_t *osc_plain(const ompi_datatype_t *type)
{
    const unsigned id = type->super.id;

    return OPAL_LIKELY(ompi_datatype_is_predefined(type) && OPAL_DATATYPE_MAX_PREDEFINED > id
                       && 0 != ompi_osc_dimmnet_plain[id].size)
               ? &ompi_osc_dimmnet_plain[id]
               : NULL;
}

/** The elements of any predefined datatype. @param[in] basic  NULL: the elements are bytes: only MPI_REPLACE and MPI_NO_OP take elements
 * of several kinds. */
dn_element_t ompi_osc_dimmnet_element(ompi_datatype_t *basic);

/** Open MPI's error for the status of an accumulate. */
static inline int osc_acc_error(dn_status_t status)
{
    return OPAL_LIKELY(DN_OK == status) ? OMPI_SUCCESS
           : DN_ERR_AGAIN == status     ? OMPI_ERR_WOULD_BLOCK
                                        : dn_ompi_status(status);
}
/** @} */

/** @name Operations: one side of each */
/** @{ */

/** Instances of a datatype in memory. */
typedef struct osc_side {
    const void *buf;
    size_t count;
    ompi_datatype_t *type;
} osc_side_t;

static inline uint64_t osc_side_bytes(const osc_side_t *side)
{
    return side->count * side->type->super.size;
}

/** Do the bytes of a side lie together? */
static inline bool osc_side_contiguous(const osc_side_t *side)
{
    return 1 >= side->count ? 0 != (side->type->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS)
                            : (OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS)
                                  == (side->type->super.flags
                                      & (OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS));
}

/** The address of the first byte of a side whose bytes lie together. */
static inline uint8_t *osc_side_at(const osc_side_t *side)
{
    return (uint8_t *) (uintptr_t) side->buf + side->type->super.true_lb;
}

/** Start a walk over a side. @return false: its datatype has no program. */
static inline bool osc_side_start(const osc_side_t *side, dn_prog_cursor_t *cursor)
{
    if (osc_side_contiguous(side)) {
        dn_prog_start_bytes(cursor, (uintptr_t) osc_side_at(side), osc_side_bytes(side));
        return true;
    }
    return 0 != dn_ompi_prog_start(cursor, side->type, side->count, side->buf);
}

/**
 * Find the side of an operation that lies in a window.
 *
 * @param[in]  disp    The user's displacement.
 * @param[out] side_p  Its buf is an address here. If the target's memory is not mapped, its buf is the offset in the target's window; in
 *                     a dynamic window, the address at the target.
 * @retval OMPI_ERR_RMA_SYNC   no epoch allows operations on the target.
 * @retval OMPI_ERR_RMA_RANGE  a byte is outside of the window.
 */
static inline int osc_reach(const osc_module_t *module, int target, ptrdiff_t disp, size_t count,
                            ompi_datatype_t *type, osc_side_t *side_p);

/** The rest of osc_reach() for a datatype with gaps: are all bytes of the side in the window? @param[in] at  Bytes from the start of the
 * window to the displacement. */
int ompi_osc_dimmnet_within(const osc_target_t *to, uint64_t at, const osc_side_t *side);

static inline int osc_reach(const osc_module_t *module, int target, ptrdiff_t disp, size_t count,
                            ompi_datatype_t *type, osc_side_t *side_p)
{
    const osc_target_t *to = &module->target[target];
    uint64_t at, first;

    if (OPAL_UNLIKELY(0 == (to->epochs | module->epochs))) {
        return OMPI_ERR_RMA_SYNC;
    }
    if (OPAL_UNLIKELY(__builtin_mul_overflow((uint64_t) disp, to->unit, &at))) {
        return OMPI_ERR_RMA_RANGE;
    }
    *side_p = (osc_side_t){to->base + at, count, type};
    if (OPAL_UNLIKELY(!osc_side_contiguous(side_p))) {
        return ompi_osc_dimmnet_within(to, at, side_p);
    }
    first = at + (uint64_t) type->super.true_lb;
    const uint64_t len = osc_side_bytes(side_p);
    /* A side without bytes is never outside. */
    if (OPAL_UNLIKELY((first > to->size || len > to->size - first) && 0 != len)) {
        return OMPI_ERR_RMA_RANGE;
    }
    return OMPI_SUCCESS;
}
/** @} */

/** @name Far targets (osc_dimmnet_far.c) */
/** @{ */

/** An operation on a far target that is not complete. */
typedef struct osc_task {
    dn_rma_task_t super;       /**< first */
    ompi_request_t *request;   /**< the user's; NULL: the user waits for all operations together */
    ompi_datatype_t *types[2]; /**< held until the operation is complete; NULL: none */
} osc_task_t;

/** Find which bytes a side covers, counted from the displacement. @return false: more bytes than memory has, or the datatype has no
 * program. */
bool ompi_osc_dimmnet_span(const osc_side_t *side, dn_prog_span_t *span);

/** Open MPI's error for a status of dn_rma.h. */
static inline int osc_error(dn_status_t status)
{
    return OPAL_LIKELY(DN_OK == status) ? OMPI_SUCCESS
           : DN_ERR_RANGE == status     ? OMPI_ERR_RMA_RANGE
                                        : dn_ompi_status(status);
}

/**
 * Accumulate at a far target.
 *
 * @param[in] origin   As in accumulate().
 * @param[in] result   As in accumulate().
 * @param[in] compare  Not NULL for compare_and_swap.
 * @retval OMPI_ERR_NOT_SUPPORTED  a layout has no program: nothing else can be done.
 */
int ompi_osc_dimmnet_far_accumulate(osc_module_t *module, int target, const osc_side_t *origin,
                                    const osc_side_t *result, const void *compare, const osc_side_t *there,
                                    dn_acc_op_t op, ompi_request_t **request);

/** Put to or get from a far target. @param[in] there  As osc_reach() gives it. @param[out] request  NULL: the user wants no request. */
int ompi_osc_dimmnet_far_move(osc_module_t *module, int target, const osc_side_t *origin,
                              const osc_side_t *there, bool write, ompi_request_t **request);

/** Wait until the operations on a target, or on all targets (-1), are complete there. @return the error of an operation that failed. */
int ompi_osc_dimmnet_settle(osc_module_t *module, int target);

/** Complete the operations on a target, or on all targets (-1): on mapped memory by a fence, on far targets by a wait. */
static inline int osc_settle(osc_module_t *module, int target)
{
    osc_complete();
    return OPAL_LIKELY(NULL == module->rma.far) ? OMPI_SUCCESS : ompi_osc_dimmnet_settle(module, target);
}
/** @} */

/** @name Progress for far targets (osc_dimmnet_helper.c) */
/** @{ */
/** Open the engine of windows. */
int ompi_osc_dimmnet_rma_open(void);
void ompi_osc_dimmnet_rma_close(void);
/** Count the windows for which progress is made. A helper thread makes progress, too, if the MCA variable helper_thread says so. If the
 * thread cannot be started, a help text says so. The caller is not in a handler, and holds no lock that a handler takes. */
void ompi_osc_dimmnet_count_windows(int more);
/** @} */

/** @name Dynamic windows (osc_dimmnet_dynamic.c) */
/** @{ */

/** Bytes of a block that the table of regions takes, behind the notes. */
uint64_t ompi_osc_dimmnet_regions_bytes(void);

/** Find the region that holds bytes of a target, in the target's table if that is mapped, or by a message to the target.
 * @retval OMPI_ERR_RMA_RANGE  There is no such region. */
int ompi_osc_dimmnet_region(osc_module_t *module, int target, uint64_t at, uint64_t len,
                            dn_rma_region_t *region);

/** dn_rma_config_t::find: find a region in the own table, which no other process can write. @return 0: there is no such region. */
int ompi_osc_dimmnet_own_region(const dn_rma_win_t *win, uint64_t at, uint64_t len, dn_rma_region_t *region);

/** The memory of a region in the address space of this process; NULL: the region is not mapped here. */
uint8_t *ompi_osc_dimmnet_region_here(osc_module_t *module, int target, const dn_rma_region_t *region);

/** Make the table of regions of this process, and of regions that this process maps. @return NULL: no memory. */
struct osc_regions *ompi_osc_dimmnet_regions_open(int size);
void ompi_osc_dimmnet_regions_close(osc_module_t *module);
/** @} */

/** @name Operations (osc_dimmnet_move.c, osc_dimmnet_accumulate.c) */
/** @{ */
int ompi_osc_dimmnet_put(const void *origin_addr, dn_ompi_count_t origin_count, ompi_datatype_t *origin_type,
                         int target, ptrdiff_t target_disp, dn_ompi_count_t target_count,
                         ompi_datatype_t *target_type, ompi_win_t *win);
int ompi_osc_dimmnet_get(void *origin_addr, dn_ompi_count_t origin_count, ompi_datatype_t *origin_type,
                         int target, ptrdiff_t target_disp, dn_ompi_count_t target_count,
                         ompi_datatype_t *target_type, ompi_win_t *win);
int ompi_osc_dimmnet_rput(const void *origin_addr, dn_ompi_count_t origin_count, ompi_datatype_t *origin_type,
                          int target, ptrdiff_t target_disp, dn_ompi_count_t target_count,
                          ompi_datatype_t *target_type, ompi_win_t *win, ompi_request_t **request);
int ompi_osc_dimmnet_rget(void *origin_addr, dn_ompi_count_t origin_count, ompi_datatype_t *origin_type,
                          int target, ptrdiff_t target_disp, dn_ompi_count_t target_count,
                          ompi_datatype_t *target_type, ompi_win_t *win, ompi_request_t **request);
int ompi_osc_dimmnet_accumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                ompi_datatype_t *origin_type, int target, ptrdiff_t target_disp,
                                dn_ompi_count_t target_count, ompi_datatype_t *target_type, MPI_Op op,
                                ompi_win_t *win);
int ompi_osc_dimmnet_get_accumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                    ompi_datatype_t *origin_type, void *result_addr,
                                    dn_ompi_count_t result_count, ompi_datatype_t *result_type, int target,
                                    ptrdiff_t target_disp, dn_ompi_count_t target_count,
                                    ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win);
int ompi_osc_dimmnet_raccumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                 ompi_datatype_t *origin_type, int target, ptrdiff_t target_disp,
                                 dn_ompi_count_t target_count, ompi_datatype_t *target_type, MPI_Op op,
                                 ompi_win_t *win, ompi_request_t **request);
int ompi_osc_dimmnet_rget_accumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                     ompi_datatype_t *origin_type, void *result_addr,
                                     dn_ompi_count_t result_count, ompi_datatype_t *result_type, int target,
                                     ptrdiff_t target_disp, dn_ompi_count_t target_count,
                                     ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win,
                                     ompi_request_t **request);
int ompi_osc_dimmnet_fetch_and_op(const void *origin_addr, void *result_addr, ompi_datatype_t *type,
                                  int target, ptrdiff_t target_disp, MPI_Op op, ompi_win_t *win);
int ompi_osc_dimmnet_compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
                                      ompi_datatype_t *type, int target, ptrdiff_t target_disp,
                                      ompi_win_t *win);
/** @} */

#endif
