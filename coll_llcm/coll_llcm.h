/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm.h
 * The coll component llcm: collectives of short data in polled lines (dn_tree.h), and of longer data through memory that the
 * processes map (dn_tree_long.h), on intracommunicators. Where processes share cores, much of the short data goes through
 * that memory, too.
 *
 * A communicator gets its module cheaply. The tree is set up in the first collective that could use a tree. The functions that the
 * module has replaced gather where the processes run and where their lines lie. So all processes agree whether there is a tree.
 * Without a tree, and for collectives that a tree does not suit, the replaced functions do the work. The choice between the tree and
 * these functions follows only from facts that are the same in all processes: the bytes of data, the operation, the shape of the tree.
 * The memory consists of areas. They are agreed on in the same way, on one host, in the first collective that could use them. This is a
 * collective of more than COLL_LLCM_LINES_BEST bytes that is no message (coll_llcm_is_message()); or a short collective that the tree
 * does not suit; or, where processes share cores, a collective to which COLL_LLCM_FEW applies.
 *
 * On several hosts, the first process of each host exchanges lines with the first processes of other hosts through a device. The device
 * needs dn_progress() while these lines are polled. The other processes of a host poll memory, as on one host.
 *
 * When a process is lost, the operations that wait for it, and all later operations of these communicators, end with an
 * error in all processes that call them.
 *
 * Threads: those of MPI: one collective of a communicator at a time, several communicators at once.
 */
#ifndef COLL_LLCM_H
#define COLL_LLCM_H

#include "dn_atomic.h"
#include "dn_ompi.h"
#include "dn_ompi_progress.h"
#include "dn_queue.h"
#include "dn_tree.h"
#include "dn_tree_long.h"

#include "ompi_config.h"

#include "mpi.h"

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/op/op.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/btl/btl.h"
#include "opal/runtime/opal_progress.h"

/** Bytes up to which lines are faster than areas (perf/dn_coll, 2 ranks: 128 B in 0.13 us, through areas the same;
 * 256 B in 0.23 us, through areas 0.14 us). */
#define COLL_LLCM_LINES_BEST 128

/** Where processes share cores, areas also serve short broadcasts, reductions to one and scans, gathers, alltoalls with lengths, and
 * all reductions that are scattered: after so many of these, since for a few the set-up takes longer than it saves. A process that only gives, as the root of
 * a broadcast or the first of a scan, runs ahead by all that an area holds before it has to let others have its core (perf/dn_coll, bcast of 8 B, 8
 * ranks on 2 cores: 0.05 us, in lines 0.6 us). */
#define COLL_LLCM_FEW 16

/** Bytes from which one message of ours is faster than an area, which is written and read: between two processes, each on its core
 * (perf/dn_coll, bcast, reduce, scan and exscan, 2 ranks). Messages of others may wait for a lost process for ever. */
#define COLL_LLCM_MESSAGE 4096

/** What has become of a communicator's tree, or areas. */
typedef enum coll_llcm_state {
    COLL_LLCM_NEW,    /**< nothing has been tried */
    COLL_LLCM_BUSY,   /**< being set up: collectives called for that are not ours */
    COLL_LLCM_READY,  /**< it is there */
    COLL_LLCM_REFUSED /**< there will be none */
} coll_llcm_state_t;

/** Who does a collective. */
typedef enum coll_llcm_way {
    COLL_LLCM_BY_TREE,
    COLL_LLCM_BY_AREAS,
    COLL_LLCM_BY_OTHERS /**< the function that was there before */
} coll_llcm_way_t;

typedef struct coll_llcm_request coll_llcm_request_t;

/** An area of this process: coll_llcm_long.c. */
typedef struct coll_llcm_area coll_llcm_area_t;

typedef struct coll_llcm_module {
    mca_coll_base_module_t super;
    dn_tree_t *tree; /**< NULL unless COLL_LLCM_READY */
    /** Nonblocking operations of which not all are complete; 0: the tree is the caller's of the next collective. */
    uint64_t pending;
    dn_queue_t requests; /**< these operations, in the order of the calls */
    bool mapped; /**< lines come to this process without dn_progress(); another process may find otherwise */
    bool spans_hosts; /**< the communicator has processes on several hosts: the same in all of them */
    bool crowded;     /**< processes share cores: agreed on with the tree, or the areas */
    uint8_t few;      /**< collectives that COLL_LLCM_FEW is about, up to so many */
    uint64_t losses;  /**< of coll_llcm.losses, those looked at */
    unsigned turns;   /**< of its nonblocking operations, in coll_llcm_advance() */
    coll_llcm_state_t state;
    mca_coll_base_comm_coll_t saved;  /**< functions that this module took the place of, retained */
    struct ompi_communicator_t *comm; /**< whose module it is */
    dn_peer_t **peer;                 /**< by rank: connected to for the tree; NULL: not */
    int size;
    size_t llcm_bytes;   /**< of the tree */
    dn_tree_long_t *lng; /**< NULL unless area_state is COLL_LLCM_READY */
    coll_llcm_area_t *area;
    coll_llcm_state_t area_state;
} coll_llcm_module_t;

OBJ_CLASS_DECLARATION(coll_llcm_module_t);

/** An operation of Open MPI on a type, as the tree folds it. */
typedef struct coll_llcm_reduction {
    dn_tree_reduction_t super;
    ompi_op_t *op;
    ompi_datatype_t *type;
} coll_llcm_reduction_t;

/** What a request does. */
typedef enum coll_llcm_kind {
    COLL_LLCM_BARRIER,
    COLL_LLCM_ALLREDUCE,
    COLL_LLCM_REDUCE,
    COLL_LLCM_BCAST
} coll_llcm_kind_t;

/** A nonblocking operation; a persistent one is such an operation each time that it is started. */
struct coll_llcm_request {
    ompi_coll_base_nbc_request_t super; /**< Open MPI notes there what it retains */
    dn_queue_item_t item; /**< in coll_llcm_module_t::requests, then among those to be completed */
    coll_llcm_module_t
        *module; /**< of the communicator; of a persistent one, its own (coll_llcm_module_beside()) */
    coll_llcm_kind_t kind;
    const void *in; /**< of a reduction, as what follows */
    void *out;      /**< of a broadcast: the buffer */
    size_t count;   /**< elements of a reduction or of a broadcast */
    uint32_t root;
    coll_llcm_reduction_t reduction; /**< its op is NULL: it is none */
    ompi_datatype_t *type;           /**< of the elements; NULL: there are none */
    dn_status_t status;              /**< once it is complete */
    uint8_t
        bytes[DN_AOTF_LINE_MAX * DN_TREE_LINES]; /**< of a broadcast of elements that do not lie together */
};

OBJ_CLASS_DECLARATION(coll_llcm_request_t);

/** A tree whose communicator is gone, but to which a peer may still write a word. */
typedef struct coll_llcm_left {
    struct coll_llcm_left *next;
    dn_tree_t *tree;
    size_t llcm_bytes;
} coll_llcm_left_t;

typedef struct coll_llcm {
    dn_port_t *port; /**< NULL: it did not open, and there are no trees */
    /** dn_ompi_shares_core(), as of when a communicator was set up, while other threads may wait in collectives */
    bool oversubscribed; /**< a hint */
    uint64_t losses;     /**< peers lost; those have a user pointer */
    opal_mutex_t lock;   /**< of all below */
    coll_llcm_left_t *left;
    size_t llcm_used; /**< by trees */
    struct {
        opal_mutex_t lock;         /**< of what follows, and of trees with operations that are pending */
        dn_round_t modules;        /**< coll_llcm_module_t::requests of those with operations */
        uint64_t operations;       /**< pending; read without the lock */
        uint64_t far;              /**< of these, those whose lines come by dn_progress(); likewise */
        uint64_t begun;            /**< nonblocking operations, and starts of persistent ones; likewise */
        bool registered;           /**< progress calls coll_llcm_advance() */
        opal_free_list_t requests; /**< has a lock of its own */
    } nonblocking;
    coll_llcm_area_t *areas;
    uint64_t long_bytes; /**< of collectives through areas; not under the lock */
    uint64_t
        exchanges; /**< allgathers, gathers and alltoalls, also with lengths; several threads may lose a count */
    uint64_t naps; /**< that this process has taken; not under the lock */
} coll_llcm_t;

extern coll_llcm_t coll_llcm;

static inline void coll_llcm_count_exchange(void)
{
    const uint64_t count = dn_load_relaxed(&coll_llcm.exchanges);

    dn_store_relaxed(&coll_llcm.exchanges, count + 1);
}

OMPI_DECLSPEC extern mca_coll_base_component_t mca_coll_llcm_component;

/** @name coll_llcm_module.c */
/** @{ */
mca_coll_base_module_t *coll_llcm_comm_query(struct ompi_communicator_t *comm, int *priority);
/** A module that is in front of nothing: for a tree beside that of the communicator. To be released before the communicator.
 * @return NULL: no memory. */
coll_llcm_module_t *coll_llcm_module_beside(const coll_llcm_module_t *module);
/** @} */

/** @name coll_llcm_setup.c */
/** @{ */
/** Set the tree of a communicator up; collective. @return whether there is one now. */
bool coll_llcm_set_up(coll_llcm_module_t *module, struct ompi_communicator_t *comm);
/** Do all processes say so? Collective, by the function that was there before. Nobody leaves out a collective of a set-up
 * unless all do: who has no memory for what it brings says so here first. */
bool coll_llcm_all_agree(coll_llcm_module_t *module, struct ompi_communicator_t *comm, bool good);
/** Is half of what trees may take of the LLCM left? Persistent requests take no more, so that there are trees for communicators
 * to come. In this process; others may find otherwise. */
bool coll_llcm_has_plenty(void);
/** The communicator goes: give back what coll_llcm_set_up() took. */
void coll_llcm_tear_down(coll_llcm_module_t *module);
/** Free the trees that nobody writes to any more. @param all  or may do so: the port closes. */
void coll_llcm_free_left(bool all);
/** @} */

/** @name coll_llcm_nonblocking.c
 * Operations of one communicator take their turns on its tree: all its processes call them in the same order. Where there
 * is no tree yet they are left to the functions that were there before. To set it up means to wait for all, which their calls must
 * not do. Nor can it go on beside them: an operation that is called before all know how the set-up ends would have to be put off, and
 * if it ends without a tree, handed on later, among other nonblocking collectives in another order in each process.
 */
/** @{ */
int coll_llcm_nonblocking_open(void);
void coll_llcm_nonblocking_close(void);
/** Go on with the operations of all communicators. @return how many were completed. */
int coll_llcm_advance(void);
/** Wait until the nonblocking operations of a communicator are complete. */
void coll_llcm_drain(coll_llcm_module_t *module);

int coll_llcm_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
                       mca_coll_base_module_t *module);
/** Of these: data that fits into lines; the rest goes to the function that was there before. */
int coll_llcm_ibcast(void *buf, dn_ompi_count_t count, struct ompi_datatype_t *type, int root,
                     struct ompi_communicator_t *comm, ompi_request_t **request,
                     mca_coll_base_module_t *module);
int coll_llcm_ireduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                      struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                      ompi_request_t **request, mca_coll_base_module_t *module);
int coll_llcm_iallreduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                         struct ompi_op_t *op, struct ompi_communicator_t *comm, ompi_request_t **request,
                         mca_coll_base_module_t *module);
/** Likewise persistent, where the communicator has a tree. */
int coll_llcm_barrier_init(struct ompi_communicator_t *comm, struct ompi_info_t *info,
                           ompi_request_t **request, mca_coll_base_module_t *module);
int coll_llcm_bcast_init(void *buf, dn_ompi_count_t count, struct ompi_datatype_t *type, int root,
                         struct ompi_communicator_t *comm, struct ompi_info_t *info, ompi_request_t **request,
                         mca_coll_base_module_t *module);
int coll_llcm_reduce_init(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                          struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                          struct ompi_info_t *info, ompi_request_t **request, mca_coll_base_module_t *module);
int coll_llcm_allreduce_init(const void *sbuf, void *rbuf, dn_ompi_count_t count,
                             struct ompi_datatype_t *type, struct ompi_op_t *op,
                             struct ompi_communicator_t *comm, struct ompi_info_t *info,
                             ompi_request_t **request, mca_coll_base_module_t *module);
/** @} */

/** Has this communicator a tree? Called by all its processes in the same blocking collective, which then has the tree to
 * itself. */
static inline bool coll_llcm_ready(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    /* Another thread may have completed the last nonblocking operation: pairs with the release in settle(). */
    if (OPAL_UNLIKELY(0 != dn_load_acquire(&module->pending))) {
        coll_llcm_drain(module);
    }
    return OPAL_LIKELY(NULL != module->tree)
           || (COLL_LLCM_NEW == module->state && coll_llcm_set_up(module, comm));
}

/** Is the tree, which is there, as fast as it should be for so many bytes in elements of @p size bytes? */
static inline bool coll_llcm_is_fast(const coll_llcm_module_t *module, size_t bytes, size_t size)
{
    return OPAL_LIKELY(DN_AOTF_LINE_MAX >= bytes)
           || DN_AOTF_LINE_MAX / size * size * dn_tree_lines(module->tree) >= bytes;
}

/** Polls between two looks whether all are there whom an operation waits for. */
#define COLL_LLCM_WATCH_POLLS 256

/** Give the tree up when a process is lost that the operation under way needs, or when another process did. The tree is the
 * caller's. */
void coll_llcm_watch(coll_llcm_module_t *module);
/** @name coll_llcm_idle.c */
/** @{ */
/** What else there is to do while somebody waits.
 * @param near   for lines that come without dn_progress().
 * @param polls  so far.
 * @param steps  that were taken; other numbers if not the same ones.
 * @return whether the process has slept. */
bool coll_llcm_idle(dn_ompi_wait_t *wait, bool near, unsigned polls, uint64_t steps);
/** @} */

/** Polls between two looks at the port, where others may wait for this process: a look takes as long as some four polls (dn_perf -t poll). */
#define COLL_LLCM_SERVE_POLLS 4

/** Serve who waits for this process while it waits. */
static inline void coll_llcm_serve(unsigned polls)
{
    if (OPAL_UNLIKELY(dn_ompi_serves()) && 0 == polls % COLL_LLCM_SERVE_POLLS) {
        (void) dn_progress(coll_llcm.port);
    }
}

/** Between two tests of an operation of the tree. */
static inline void coll_llcm_poll(coll_llcm_module_t *module, dn_ompi_wait_t *wait, unsigned polls)
{
    coll_llcm_serve(polls);
    if (OPAL_UNLIKELY(0 == polls % 64 || dn_load_relaxed(&coll_llcm.oversubscribed) || !module->mapped)) {
        if (coll_llcm_idle(wait, 0 != dn_tree_waits_near(module->tree), polls, dn_tree_steps(module->tree))) {
            /* It may have been woken to be told just that, and polls are few now. */
            (void) dn_tree_heed(module->tree);
        }
        if (0 == polls % COLL_LLCM_WATCH_POLLS) {
            coll_llcm_watch(module);
        }
    }
}

/** Wait for the operation that was started. */
static inline int coll_llcm_wait(coll_llcm_module_t *module, dn_status_t status)
{
    dn_ompi_wait_t wait = {0};

    for (unsigned polls = 1; DN_INPROGRESS == status; polls++) {
        coll_llcm_poll(module, &wait, polls);
        status = dn_tree_test(module->tree);
    }
    return OPAL_LIKELY(DN_OK == status) ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

/** Bytes of data. */
static inline size_t coll_llcm_bytes(size_t count, const ompi_datatype_t *type)
{
    return count * type->super.size;
}

/** Do so many elements lie together? One does where several may not. */
static inline bool coll_llcm_is_contiguous(size_t count, const ompi_datatype_t *type)
{
    return opal_datatype_is_contiguous_memory_layout(&type->super, 1 == count);
}

/** Where elements that lie together begin. */
static inline void *coll_llcm_start(const void *buf, const ompi_datatype_t *type)
{
    return (uint8_t *) (uintptr_t) buf + type->super.true_lb;
}

/** @name coll_llcm_move.c */
/** @{ */
/** Copy elements into a contiguous buffer, or out of it. */
void coll_llcm_pack(void *to, const void *buf, size_t count, const ompi_datatype_t *type);
/** Likewise the first bytes of the elements, which may end amid one. */
void coll_llcm_pack_first(void *to, const void *buf, size_t count, const ompi_datatype_t *type, size_t len);
void coll_llcm_unpack(void *buf, size_t count, const ompi_datatype_t *type, const void *from);
/** Likewise bytes at .. at + len - 1 of the elements, which may begin and end amid one. */
void coll_llcm_unpack_part(void *buf, size_t count, const ompi_datatype_t *type, size_t at, const void *from,
                           size_t len);

/** Elements of any type that are packed or unpacked piece by piece, from the first on. A convertor packs whole numbers only: what
 * goes beyond the bytes that are asked for is kept for the next. */
typedef struct coll_llcm_converted {
    opal_convertor_t convertor;
    bool packs;
    size_t from, to; /**< of rest, what is to go first */
    uint8_t rest[64];
} coll_llcm_converted_t;

void coll_llcm_converted_open(coll_llcm_converted_t *converted, const void *buf, size_t count,
                              const ompi_datatype_t *type, bool packs);
/** The next @p len bytes: from the elements, or to them. It does not fail. */
void coll_llcm_converted_move(coll_llcm_converted_t *converted, void *bytes, size_t len);
void coll_llcm_converted_close(coll_llcm_converted_t *converted);

int coll_llcm_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_bcast(void *buf, dn_ompi_count_t count, struct ompi_datatype_t *type, int root,
                    struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/** @} */

/** @name coll_llcm_reduce.c */
/** @{ */
/** Describe a reduction. @return whether it is for the tree, which is there; the same in all processes. */
bool coll_llcm_reduction_fits(const coll_llcm_module_t *module, size_t count, ompi_datatype_t *type,
                              ompi_op_t *op, coll_llcm_reduction_t *reduction);
int coll_llcm_allreduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                        struct ompi_op_t *op, struct ompi_communicator_t *comm,
                        mca_coll_base_module_t *module);
int coll_llcm_reduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                     struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                     mca_coll_base_module_t *module);
int coll_llcm_reduce_scatter(const void *sbuf, void *rbuf, dn_ompi_counts_t counts,
                             struct ompi_datatype_t *type, struct ompi_op_t *op,
                             struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_reduce_scatter_block(const void *sbuf, void *rbuf, dn_ompi_count_t count,
                                   struct ompi_datatype_t *type, struct ompi_op_t *op,
                                   struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/** Scans: of all processes up to the own one, and of those before it. */
int coll_llcm_scan(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                   struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_exscan(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                     struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/** @} */

/** @name coll_llcm_long.c */
/** @{ */
/** Set the areas of a communicator up; collective. @return whether there are some now. */
bool coll_llcm_long_set_up(coll_llcm_module_t *module, struct ompi_communicator_t *comm);
/** The communicator goes: its area may serve others, once nobody looks at it. */
void coll_llcm_long_tear_down(coll_llcm_module_t *module);
/** Free all areas: the port closes. */
void coll_llcm_long_close(void);

/** Has this communicator areas? Called by all its processes in the same collective. */
static inline bool coll_llcm_long_ready(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    return OPAL_LIKELY(NULL != module->lng)
           || (COLL_LLCM_NEW == module->area_state && coll_llcm_long_set_up(module, comm));
}

/** Do processes share cores, where there can be areas? Processes agree on that with the tree, which is tried first. Called by all
 * in the same blocking collective; the same in all. */
static inline bool coll_llcm_is_crowded(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    if (OPAL_UNLIKELY(COLL_LLCM_NEW == module->state && COLL_LLCM_REFUSED != module->area_state)) {
        (void) coll_llcm_set_up(module, comm);
    }
    return module->crowded;
}

/** Are there two processes, each on its core, with messages of ours between them? The same in both. */
static inline bool coll_llcm_is_fast_pair(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    return 2 == ompi_comm_size(comm) && dn_ompi_carries_all() && !coll_llcm_is_crowded(module, comm);
}

/** Is a broadcast, a reduction to one or a scan of so many bytes better a message? The same in all processes. */
static inline bool coll_llcm_is_message(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                        size_t bytes)
{
    return COLL_LLCM_MESSAGE <= bytes && coll_llcm_is_fast_pair(module, comm);
}

/** Of a crowded communicator: were there so many of the collectives of COLL_LLCM_FEW that areas are worth their set-up? */
static inline bool coll_llcm_are_many(coll_llcm_module_t *module)
{
    if (COLL_LLCM_FEW == module->few) {
        return true;
    }
    module->few++;
    return false;
}

/** Is a broadcast or a reduction to one of so many bytes for areas? The same in all processes. */
static inline bool coll_llcm_is_for_areas(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                          size_t bytes)
{
    if (COLL_LLCM_LINES_BEST < bytes) {
        return !coll_llcm_is_message(module, comm, bytes) && coll_llcm_long_ready(module, comm);
    }
    return coll_llcm_ready(module, comm) && OPAL_UNLIKELY(module->crowded) && coll_llcm_are_many(module)
           && coll_llcm_long_ready(module, comm);
}

/** As the functions of dn_tree_long.h, until they are complete. @return OMPI_SUCCESS or OMPI_ERR_UNREACH. */
int coll_llcm_long_bcast(coll_llcm_module_t *module, void *buf, size_t count, ompi_datatype_t *type, int root,
                         bool is_root);
int coll_llcm_long_allreduce(coll_llcm_module_t *module, const void *in, void *out, size_t count,
                             const dn_tree_reduction_t *reduction);
int coll_llcm_long_reduce(coll_llcm_module_t *module, int root, const void *in, void *out, size_t count,
                          const dn_tree_reduction_t *reduction);
int coll_llcm_long_reduce_part(coll_llcm_module_t *module, const void *in, void *out, size_t count, size_t at,
                               size_t part, const dn_tree_reduction_t *reduction);
int coll_llcm_long_scan(coll_llcm_module_t *module, const void *in, void *out, size_t count, bool before,
                        const dn_tree_reduction_t *reduction);
int coll_llcm_long_exchange(coll_llcm_module_t *module, size_t len, dn_tree_blocks_t *blocks);
int coll_llcm_long_gather(coll_llcm_module_t *module, int root, size_t len, dn_tree_blocks_t *blocks);
/** @} */

/** @name coll_llcm_alltoallv.c */
/** @{ */
int coll_llcm_alltoallv(const void *sbuf, dn_ompi_counts_t scounts, dn_ompi_starts_t sstarts,
                        struct ompi_datatype_t *stype, void *rbuf, dn_ompi_counts_t rcounts,
                        dn_ompi_starts_t rstarts, struct ompi_datatype_t *rtype,
                        struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_alltoallw(const void *sbuf, dn_ompi_counts_t scounts, dn_ompi_starts_t sstarts,
                        struct ompi_datatype_t *const *stypes, void *rbuf, dn_ompi_counts_t rcounts,
                        dn_ompi_starts_t rstarts, struct ompi_datatype_t *const *rtypes,
                        struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/** @} */

/** @name coll_llcm_exchange.c */
/** @{ */
int coll_llcm_allgather(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype, void *rbuf,
                        dn_ompi_count_t rcount, struct ompi_datatype_t *rtype,
                        struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/** Blocks of any lengths, which all processes know; the longest decides who does it. Of gatherv and scatterv only the root knows
 * lengths: these are left to the functions that were there before, since the processes could not decide alike. */
int coll_llcm_allgatherv(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype, void *rbuf,
                         dn_ompi_counts_t counts, dn_ompi_starts_t starts, struct ompi_datatype_t *rtype,
                         struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_gather(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype, void *rbuf,
                     dn_ompi_count_t rcount, struct ompi_datatype_t *rtype, int root,
                     struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_alltoall(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype, void *rbuf,
                       dn_ompi_count_t rcount, struct ompi_datatype_t *rtype,
                       struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/** @} */

#endif
