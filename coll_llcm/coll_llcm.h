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
 * collective of more bytes than suit lines (COLL_LLCM_LINES_BEST, coll_llcm_lines_best_one_way()) that is no message
 * (coll_llcm_is_message()); or a short collective that the tree does not suit; or a collective to which COLL_LLCM_FEW applies.
 *
 * On several hosts, the first process of each host exchanges lines with the first processes of other hosts through a device. The device
 * needs dn_progress() while these lines are polled. The other processes of a host poll memory, as on one host.
 *
 * Neighborhood collectives have areas of their own, which only neighbors map (coll_llcm_neighbor.c). Only neighbors agree on anything, and
 * only they wait for each other. A loss goes from neighbor to neighbor (dn_letter.h).
 *
 * When a process is lost, the other operations that wait for it, and all later operations of these communicators, end with an
 * error in all processes that call them.
 *
 * Threads: those of MPI: one collective of a communicator at a time, several communicators at once.
 */
#ifndef COLL_LLCM_H
#define COLL_LLCM_H

#include "dn_atomic.h"
#include "dn_letter.h"
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

/** Up to so many bytes, lines are faster than areas for an allreduce (perf/dn_coll, 2 ranks: 128 B take 0.13 us in lines and in areas;
 * 256 B take 0.23 us in lines, 0.14 us in areas). */
#define COLL_LLCM_LINES_BEST 128

/** For a few calls the set-up of areas takes longer than areas save. So areas serve these collectives after COLL_LLCM_FEW calls. Between
 * two processes that have a core each: those of COLL_LLCM_MEASURED_LEAST bytes and more. Where processes share cores: short broadcasts,
 * short reductions to one process, short scans, gathers, alltoalls with lengths, and all reductions that are scattered. A process that
 * only gives, such as the root of a broadcast, fills a whole area before it has to let other processes have its core (perf/dn_coll, bcast
 * of 8 B, 8 ranks on 2 cores: 0.05 us in areas, 0.6 us in lines). */
#define COLL_LLCM_FEW 16

/** Collectives of at least so many bytes may be messages between two processes that have a core each: coll_llcm_choice.c. Shorter ones go
 * through lines or areas. Messages of other transports are not used for this: they may wait for a lost process for ever. */
#define COLL_LLCM_MEASURED_LEAST 4096

/** From so many bytes on, a broadcast between such processes is a message without a measurement: one copy by its receiver takes less than
 * two copies through an area, and messages of such lengths learn their pace only after more tries than would be made. */
#define COLL_LLCM_BCAST_MESSAGE 262144

/** Collectives for which two processes measure whether areas or messages are faster. */
typedef enum coll_llcm_measured {
    COLL_LLCM_MEASURED_BCAST,
    COLL_LLCM_MEASURED_REDUCE,
    COLL_LLCM_MEASURED_SCAN,
    COLL_LLCM_MEASURED_ALLGATHER,
    COLL_LLCM_MEASURED_ALLTOALL,
    COLL_LLCM_MEASURED
} coll_llcm_measured_t;

/** What two processes have measured: coll_llcm_choice.c. */
typedef struct coll_llcm_choice coll_llcm_choice_t;

/** The state of a communicator's tree, or of its areas. */
typedef enum coll_llcm_state {
    COLL_LLCM_NEW,    /**< nothing has been tried */
    COLL_LLCM_BUSY,   /**< being set up: collectives that the set-up calls go to the replaced functions */
    COLL_LLCM_READY,  /**< they can be used */
    COLL_LLCM_REFUSED /**< the set-up has failed, and is not tried again */
} coll_llcm_state_t;

/** How a collective is done. */
typedef enum coll_llcm_way {
    COLL_LLCM_BY_TREE,
    COLL_LLCM_BY_AREAS,
    COLL_LLCM_BY_OTHERS /**< by the function that this module has replaced */
} coll_llcm_way_t;

typedef struct coll_llcm_request coll_llcm_request_t;

/** The neighbors of a process in a topology: coll_llcm_neighbor.h. */
typedef struct coll_llcm_neighbors coll_llcm_neighbors_t;

/** An area of this process. While it belongs to a communicator: also the areas of other processes. */
typedef struct coll_llcm_area {
    struct coll_llcm_area *next; /**< in coll_llcm_t::areas */
    dn_segment_t *segment;       /**< its memory */
    size_t len;                  /**< bytes of it: DN_TREE_LONG_AREA or DN_LETTER_AREA */
    /** A communicator uses it, or a thread looks whether it is free: what follows is theirs. */
    bool used;
    dn_tree_long_t *lng;   /**< of the last communicator, as long as another process may read the area */
    dn_letters_t *letters; /**< likewise */
    int size;              /**< elements of base and peer: by rank, or by neighbor */
    void **base;           /**< areas of other processes, mapped here; NULL: not mapped */
    dn_peer_t **peer;      /**< NULL: this process itself, or not connected */
} coll_llcm_area_t;

typedef struct coll_llcm_module {
    mca_coll_base_module_t super;
    dn_tree_t *tree; /**< NULL unless COLL_LLCM_READY */
    /** nonblocking operations that are not complete; while it is 0, the caller of the next collective has the tree to itself */
    uint64_t pending;
    dn_queue_t requests; /**< these operations, in the order of the calls */
    bool mapped; /**< lines come to this process without dn_progress(); another process may find otherwise */
    bool spans_hosts;        /**< the communicator has processes on several hosts: the same in all of them */
    bool crowded;            /**< processes share cores: agreed on with the tree, or the areas */
    bool given_up;           /**< the tree is given up, and is in coll_llcm_t::left with its peers */
    uint8_t few;             /**< calls of the collectives of COLL_LLCM_FEW; counted up to COLL_LLCM_FEW */
    uint64_t losses;         /**< coll_llcm.losses when coll_llcm_watch() last looked */
    unsigned turns;          /**< of its nonblocking operations, in coll_llcm_advance() */
    coll_llcm_state_t state; /**< of the tree */
    mca_coll_base_comm_coll_t saved;  /**< the functions that this module has replaced; modules held */
    struct ompi_communicator_t *comm; /**< whose module it is; NULL until a set-up */
    dn_peer_t **peer;                 /**< by rank: a peer that the tree has a link to; else NULL */
    int size;                         /**< elements of peer */
    dn_tree_long_t *lng;              /**< NULL unless area_state is COLL_LLCM_READY */
    coll_llcm_area_t *area;           /**< the area of this process; NULL: none */
    coll_llcm_choice_t *choice;       /**< of two processes with areas; else NULL */
    coll_llcm_state_t area_state;
    /** Of collectives among neighbors; counted up to COLL_LLCM_FEW, or one more if there is no memory to meet neighbors. */
    uint8_t neighbor_calls;
    coll_llcm_neighbors_t *neighbors; /**< NULL until this process has met its neighbors */
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
    dn_queue_item_t item; /**< in coll_llcm_module_t::requests, then in a list of complete operations */
    /** of the communicator; a persistent request has a module of its own (coll_llcm_module_beside()) */
    coll_llcm_module_t *module;
    coll_llcm_kind_t kind;
    const void *in; /**< data of a reduction */
    void *out;      /**< result of a reduction; buffer of a broadcast */
    size_t count;   /**< elements of a reduction or of a broadcast */
    uint32_t root;
    coll_llcm_reduction_t reduction;                 /**< of a reduction; else its op is NULL */
    ompi_datatype_t *type;                           /**< of the elements; NULL: a barrier */
    dn_status_t status;                              /**< once the operation is complete */
    uint8_t bytes[DN_AOTF_LINE_MAX * DN_TREE_LINES]; /**< data of a broadcast of elements with gaps */
};

OBJ_CLASS_DECLARATION(coll_llcm_request_t);

/** A tree whose communicator was freed, while a peer may still write a word to the tree; or a tree that is given up. */
typedef struct coll_llcm_left {
    struct coll_llcm_left *next;
    dn_tree_t *tree;
    dn_peer_t **peer; /**< of a tree that is given up: coll_llcm_module_t::peer; else NULL */
    int size;         /**< elements of peer */
} coll_llcm_left_t;

typedef struct coll_llcm {
    dn_port_t *port; /**< NULL: the port was not opened, and there are no trees */
    /** dn_ompi_shares_core() at the last set-up; a hint, which other threads may read meanwhile */
    bool oversubscribed;
    uint64_t losses; /**< lost peers; each of them has a user pointer then */
    /** Protects left, warns, the list of areas, and coll_llcm_area_t::used. Taken after the port's lock, never before: a handler, which has
     * the port's lock, may free a communicator. So nothing of libdimmnet is called under this lock. */
    opal_mutex_t lock;
    coll_llcm_left_t *left; /**< trees that are not yet freed */
    bool warns;             /**< progress warns peers of trees that are given up */
    struct {
        opal_mutex_t lock;         /**< protects what follows, and trees with pending operations */
        dn_round_t modules;        /**< coll_llcm_module_t::requests of modules with operations */
        uint64_t operations;       /**< pending operations; read without the lock */
        uint64_t far;              /**< of these, operations whose lines come by dn_progress(); likewise */
        uint64_t begun;            /**< nonblocking operations and persistent starts so far; likewise */
        bool registered;           /**< progress calls coll_llcm_advance() */
        opal_free_list_t requests; /**< has a lock of its own */
    } nonblocking;
    coll_llcm_area_t *areas; /**< all areas of this process */
    /* by dn_count(): an atomic addition would take longer than the rest of a short collective's bookkeeping */
    uint64_t long_bytes; /**< of collectives through areas */
    uint64_t exchanges;  /**< allgathers, gathers and alltoalls, also with lengths or among neighbors */
    uint64_t naps;       /**< sleeps of this process in collectives; not under the lock */
} coll_llcm_t;

extern coll_llcm_t coll_llcm;

OMPI_DECLSPEC extern mca_coll_base_component_t mca_coll_llcm_component;

/** @name coll_llcm_module.c */
/** @{ */
mca_coll_base_module_t *coll_llcm_comm_query(struct ompi_communicator_t *comm, int *priority);
/** Make a module for a tree beside the tree of the communicator. The module's functions are not installed. The caller releases the module
 * before the communicator. @return NULL: no memory. */
coll_llcm_module_t *coll_llcm_module_beside(const coll_llcm_module_t *module);
/** @} */

/** @name coll_llcm_setup.c */
/** @{ */
/** Set up the tree of a communicator. Collective. @return whether there is a tree now: the same in all processes. */
bool coll_llcm_set_up(coll_llcm_module_t *module, struct ompi_communicator_t *comm);
/** Do all processes say yes, and have the same radix and depth? Collective, by the replaced function. Either all processes do the next
 * collective of a set-up, or none does: a process that has no memory for it says no here. */
bool coll_llcm_all_agree(coll_llcm_module_t *module, struct ompi_communicator_t *comm, bool good);
/** Is half of the LLCM for trees free in this process? Another process may find otherwise. If not, persistent requests get no trees, so
 * that later communicators can have some. */
bool coll_llcm_has_plenty(void);
/** The communicator is freed: give back what coll_llcm_set_up() took. */
void coll_llcm_tear_down(coll_llcm_module_t *module);
/** An operation of the tree has failed: the tree is given up. From now on progress tells the processes that begin to wait for room for
 * lines which this process does not take any more (dn_tree_warn()). @return OMPI_ERR_UNREACH. */
int coll_llcm_failed(coll_llcm_module_t *module);
/** Free trees of coll_llcm_t::left to which no peer writes any more. @param[in] all  Free all of them, as the port closes. */
void coll_llcm_free_left(bool all);
/** @} */

/** @name coll_llcm_nonblocking.c
 * Operations of one communicator take turns on its tree: all its processes call them in the same order. While there is no tree, the
 * replaced functions do them. A nonblocking call cannot set up the tree, since it must not wait for the other processes. Nor can the
 * set-up go on in the background. An operation that is called meanwhile would have to be put off. If the set-up ends without a tree, each
 * process would pass this operation to the replaced function at another place among its nonblocking collectives.
 */
/** @{ */
int coll_llcm_nonblocking_open(void);
void coll_llcm_nonblocking_close(void);
/** dn_ompi_progress_fn_t: go on with the operations of all communicators. @return how many were completed. */
int coll_llcm_advance(void);
/** Wait until the nonblocking operations of a communicator are complete. */
void coll_llcm_drain(coll_llcm_module_t *module);

int coll_llcm_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
                       mca_coll_base_module_t *module);
/** These three take data that fits into lines. All other data goes to the replaced function. */
int coll_llcm_ibcast(void *buf, dn_ompi_count_t count, struct ompi_datatype_t *type, int root,
                     struct ompi_communicator_t *comm, ompi_request_t **request,
                     mca_coll_base_module_t *module);
int coll_llcm_ireduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                      struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                      ompi_request_t **request, mca_coll_base_module_t *module);
int coll_llcm_iallreduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                         struct ompi_op_t *op, struct ompi_communicator_t *comm, ompi_request_t **request,
                         mca_coll_base_module_t *module);
/** The same collectives as persistent requests, if the communicator has a tree. */
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

/** Has this communicator a tree? All its processes call this in the same blocking collective. The collective then has the tree to
 * itself. */
static inline bool coll_llcm_ready(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    /* Pairs with the release in nonblocking_settle(): another thread may have completed the last nonblocking operation. */
    if (OPAL_UNLIKELY(0 != dn_load_acquire(&module->pending))) {
        coll_llcm_drain(module);
    }
    return OPAL_LIKELY(NULL != module->tree)
           || (COLL_LLCM_NEW == module->state && coll_llcm_set_up(module, comm));
}

/** Is the tree fast for so many bytes, in elements of @p size bytes? The communicator has a tree. */
static inline bool coll_llcm_is_fast(const coll_llcm_module_t *module, size_t bytes, size_t size)
{
    return OPAL_LIKELY(DN_AOTF_LINE_MAX >= bytes)
           || DN_AOTF_LINE_MAX / size * size * dn_tree_lines(module->tree) >= bytes;
}

/** Polls between two looks whether a process is lost that an operation waits for. */
#define COLL_LLCM_WATCH_POLLS 256

/** Give the tree up if a process is lost that the operation under way needs, or if another process has given it up. No other thread uses
 * the tree. */
void coll_llcm_watch(coll_llcm_module_t *module);
/** @name coll_llcm_idle.c */
/** @{ */
/** What a process does between two polls while it waits.
 * @param[in] near   The process waits for lines that come without dn_progress().
 * @param[in] polls  Polls so far.
 * @param[in] steps  A number that changes when the operation makes progress, as in dn_wait().
 * @return whether the process has slept. */
bool coll_llcm_idle(dn_ompi_wait_t *wait, bool near, unsigned polls, uint64_t steps);
/** @} */

/** Polls between two looks at the port, if other processes may wait for this process. A look takes as long as about four polls
 * (dn_perf -t poll). */
#define COLL_LLCM_SERVE_POLLS 4

/** While this process waits, serve processes that wait for it. */
static inline void coll_llcm_serve(unsigned polls)
{
    if (OPAL_UNLIKELY(dn_ompi_serves()) && 0 == polls % COLL_LLCM_SERVE_POLLS) {
        (void) dn_progress(coll_llcm.port);
    }
}

/** Serve other processes between two looks at areas. @return whether coll_llcm_idle() is due. */
static inline bool coll_llcm_area_is_idle(unsigned polls)
{
    coll_llcm_serve(polls);
    return 0 == polls % 64 || dn_load_relaxed(&coll_llcm.oversubscribed);
}

/** What a process does between two tests of an operation of the tree. */
static inline void coll_llcm_poll(coll_llcm_module_t *module, dn_ompi_wait_t *wait, unsigned polls)
{
    coll_llcm_serve(polls);
    if (OPAL_UNLIKELY(0 == polls % 64 || dn_load_relaxed(&coll_llcm.oversubscribed) || !module->mapped)) {
        if (coll_llcm_idle(wait, 0 != dn_tree_waits_near(module->tree), polls, dn_tree_steps(module->tree))) {
            /* The process may have been woken because the tree is given up. It polls seldom now, so it looks for this at once. */
            (void) dn_tree_heed(module->tree);
        }
        if (0 == polls % COLL_LLCM_WATCH_POLLS) {
            coll_llcm_watch(module);
        }
    }
}

/** Wait for the operation of the tree that was started. @param[in] status  As its start has returned it. */
static inline int coll_llcm_wait(coll_llcm_module_t *module, dn_status_t status)
{
    dn_ompi_wait_t wait = {0};

    for (unsigned polls = 1; DN_INPROGRESS == status; polls++) {
        coll_llcm_poll(module, &wait, polls);
        status = dn_tree_test(module->tree);
    }
    return OPAL_LIKELY(DN_OK == status) ? OMPI_SUCCESS : coll_llcm_failed(module);
}

/** Bytes of data in so many elements. */
static inline size_t coll_llcm_bytes(size_t count, const ompi_datatype_t *type)
{
    return count * type->super.size;
}

/** Do so many elements lie together? One element may, where several do not. */
static inline bool coll_llcm_is_contiguous(size_t count, const ompi_datatype_t *type)
{
    return opal_datatype_is_contiguous_memory_layout(&type->super, 1 == count);
}

/** The first byte of elements that lie together. */
static inline void *coll_llcm_start(const void *buf, const ompi_datatype_t *type)
{
    return (uint8_t *) (uintptr_t) buf + type->super.true_lb;
}

/** Where blocks lie: those of all ranks, or those for neighbors. */
typedef struct coll_llcm_side {
    void *buf;
    ompi_datatype_t *type;          /**< of all blocks, if types is NULL */
    ompi_datatype_t *const *types;  /**< of each block; or NULL */
    size_t count;                   /**< elements of each block, if counts is NULL */
    const dn_ompi_counts_t *counts; /**< elements of each block; or NULL */
    /** Of each block: elements before it; with types: bytes. NULL: blocks lie side by side. */
    const dn_ompi_starts_t *starts;
    /** Of each block, among neighbors and with types: bytes before it. starts is NULL then. */
    const dn_ompi_places_t *places;
} coll_llcm_side_t;

static inline ompi_datatype_t *coll_llcm_side_type(const coll_llcm_side_t *side, int i)
{
    return NULL == side->types ? side->type : side->types[i];
}

static inline size_t coll_llcm_side_count(const coll_llcm_side_t *side, int i)
{
    return NULL == side->counts ? side->count : dn_ompi_count_at(*side->counts, i);
}

static inline size_t coll_llcm_side_bytes(const coll_llcm_side_t *side, int i)
{
    return coll_llcm_bytes(coll_llcm_side_count(side, i), coll_llcm_side_type(side, i));
}

static inline void *coll_llcm_side_block(const coll_llcm_side_t *side, int i)
{
    uint8_t *buf = side->buf;

    if (NULL != side->places) {
        return buf + dn_ompi_place_at(*side->places, i);
    }
    const ptrdiff_t unit = NULL == side->types ? side->type->super.ub - side->type->super.lb : 1;
    return buf
           + (NULL == side->starts ? i * (ptrdiff_t) side->count : dn_ompi_start_at(*side->starts, i)) * unit;
}

/** @name coll_llcm_move.c */
/** @{ */
/** Copy elements into a contiguous buffer. */
void coll_llcm_pack(void *to, const void *buf, size_t count, const ompi_datatype_t *type);
/** Copy the first @p len bytes of the elements into a contiguous buffer. They may end inside of an element. */
void coll_llcm_pack_first(void *to, const void *buf, size_t count, const ompi_datatype_t *type, size_t len);
/** Copy elements out of a contiguous buffer. */
void coll_llcm_unpack(void *buf, size_t count, const ompi_datatype_t *type, const void *from);
/** Copy bytes at .. at + len - 1 of the elements out of a contiguous buffer. They may begin and end inside of an element. */
void coll_llcm_unpack_part(void *buf, size_t count, const ompi_datatype_t *type, size_t at, const void *from,
                           size_t len);

/** Elements of any type that are packed or unpacked piece by piece, from the first element on. A convertor packs only whole numbers. If a
 * number does not fit into a piece, its other bytes are kept for the next piece. */
typedef struct coll_llcm_converted {
    opal_convertor_t convertor;
    bool packs;
    size_t from, to;  /**< bytes from .. to - 1 of rest come first in the next piece */
    uint8_t rest[64]; /**< packed bytes that are kept */
} coll_llcm_converted_t;

void coll_llcm_converted_open(coll_llcm_converted_t *converted, const void *buf, size_t count,
                              const ompi_datatype_t *type, bool packs);
/** Move the next @p len bytes from the elements, or to them. It does not fail. */
void coll_llcm_converted_move(coll_llcm_converted_t *converted, void *bytes, size_t len);
void coll_llcm_converted_close(coll_llcm_converted_t *converted);

int coll_llcm_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_bcast(void *buf, dn_ompi_count_t count, struct ompi_datatype_t *type, int root,
                    struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/** @} */

/** @name coll_llcm_reduce.c */
/** @{ */
/** Describe a reduction. The communicator has a tree. @return whether the tree suits the reduction: the same in all processes. */
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
/** Scans: over all processes up to this process, and over those before this process. */
int coll_llcm_scan(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                   struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_exscan(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                     struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/** @} */

/** @name coll_llcm_long.c */
/** @{ */
/** Set up the areas of a communicator. Collective. @return whether there are areas now: the same in all processes. */
bool coll_llcm_long_set_up(coll_llcm_module_t *module, struct ompi_communicator_t *comm);
/** The communicator is freed. Its area may serve another communicator once no process reads the area any more. */
void coll_llcm_long_tear_down(coll_llcm_module_t *module);
/** Free all areas: the port closes. */
void coll_llcm_long_close(void);
/** Reserve an area of @p len bytes for a communicator. Two threads that ask at once may make one more than there may be.
 * @return NULL: there is none. */
coll_llcm_area_t *coll_llcm_area_reserve(size_t len);
/** Give an area back that coll_llcm_area_reserve() has returned. The area may serve again once no process reads it any more. */
void coll_llcm_area_give_back(coll_llcm_area_t *area);

/** Say which process is lost, if it is. @param[in] peer  May be NULL: then it is not known. */
static inline void coll_llcm_say_if_lost(const dn_peer_t *peer, struct ompi_communicator_t *comm, int rank)
{
    if (NULL != peer && NULL != dn_peer_user(peer, DN_CHAN_COLL)) {
        dn_ompi_say_lost(&ompi_comm_peer_lookup(comm, rank)->super);
    }
}

/** Has this communicator areas? All its processes call this in the same collective. */
static inline bool coll_llcm_long_ready(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    return OPAL_LIKELY(NULL != module->lng)
           || (COLL_LLCM_NEW == module->area_state && coll_llcm_long_set_up(module, comm));
}

/** Do processes of the communicator share cores? They agree on this when the tree is set up, which is tried here first if there can be
 * areas. All processes call this in the same blocking collective, and get the same answer. */
static inline bool coll_llcm_is_crowded(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    if (OPAL_UNLIKELY(COLL_LLCM_NEW == module->state && COLL_LLCM_REFUSED != module->area_state)) {
        (void) coll_llcm_set_up(module, comm);
    }
    return module->crowded;
}

/** Has the communicator two processes, with a core each, that exchange messages through dimmnet? Both get the same answer. */
static inline bool coll_llcm_is_fast_pair(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    return 2 == ompi_comm_size(comm) && dn_ompi_carries_all() && !coll_llcm_is_crowded(module, comm);
}

/** @name coll_llcm_choice.c */
/** @{ */
/** @return NULL: no memory. The caller's to free(). */
coll_llcm_choice_t *coll_llcm_choice_make(void);
/** Choose: is this collective of so many bytes a message? Both processes get the same answer. They have areas. This counts as a call, and
 * may add up times of both. */
bool coll_llcm_choose_messages(coll_llcm_module_t *module, coll_llcm_measured_t kind, size_t bytes);
/** The collective under way has ended. */
void coll_llcm_choice_timed(coll_llcm_choice_t *choice);
/** @} */

/** Note how long the collective took that has ended, if that is measured. @return rc. */
static inline int coll_llcm_note_time(coll_llcm_module_t *module, int rc)
{
    if (NULL != module->choice) {
        coll_llcm_choice_timed(module->choice);
    }
    return rc;
}

/** Count a collective of COLL_LLCM_FEW. @return whether there were enough that areas are worth their set-up. */
static inline bool coll_llcm_are_many(coll_llcm_module_t *module)
{
    if (COLL_LLCM_FEW == module->few) {
        return true;
    }
    module->few++;
    return false;
}

/** Can a collective of so many bytes be a message, or go through areas? */
static inline bool coll_llcm_may_be_message(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                            size_t bytes)
{
    return COLL_LLCM_MEASURED_LEAST <= bytes && coll_llcm_is_fast_pair(module, comm);
}

/** Do two processes measure which way is faster for an exchange of so many bytes? Both get the same answer. Called once in a collective,
 * whose function ends with coll_llcm_note_time(). */
static inline bool coll_llcm_is_measured(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                         size_t bytes)
{
    return coll_llcm_may_be_message(module, comm, bytes) && coll_llcm_are_many(module)
           && coll_llcm_long_ready(module, comm);
}

/** Is a broadcast, a reduction to one process or a scan of so many bytes a message? All processes get the same answer. Called as
 * coll_llcm_is_measured(). Without areas, it is left to the replaced function, whatever this says. */
static inline bool coll_llcm_is_message(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                        coll_llcm_measured_t kind, size_t bytes)
{
    return coll_llcm_may_be_message(module, comm, bytes)
           && (!coll_llcm_are_many(module)
               || (coll_llcm_long_ready(module, comm) && coll_llcm_choose_messages(module, kind, bytes)));
}

/** Up to so many bytes, lines are faster than areas for broadcasts, reductions to one process, scans, and reductions that are scattered.
 * Between two processes this is one line (perf/dn_coll, bcast, reduce, scan, exscan and reduce_scatter, 2 ranks). */
static inline size_t coll_llcm_lines_best_one_way(struct ompi_communicator_t *comm)
{
    return 2 == ompi_comm_size(comm) ? DN_AOTF_LINE_MAX : COLL_LLCM_LINES_BEST;
}

/** Does a broadcast or a reduction to one process of so many bytes, which is no message, go through areas? All processes get the same
 * answer. */
static inline bool coll_llcm_is_for_areas(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                          size_t bytes)
{
    if (coll_llcm_lines_best_one_way(comm) < bytes) {
        return coll_llcm_long_ready(module, comm);
    }
    return coll_llcm_ready(module, comm) && OPAL_UNLIKELY(module->crowded) && coll_llcm_are_many(module)
           && coll_llcm_long_ready(module, comm);
}

/** As the functions of dn_tree_long.h; they return when the operation is complete. @return OMPI_SUCCESS or OMPI_ERR_UNREACH. */
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
/** Blocks of any lengths. All processes know all lengths, and choose the way by the longest block. This component has no gatherv and
 * scatterv: only the root knows their lengths, so the processes could not choose alike. */
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

/** @name coll_llcm_meet.c */
/** @{ */
/** The communicator is freed: forget its neighbors. */
void coll_llcm_neighbor_tear_down(coll_llcm_module_t *module);
/** @} */

/** @name coll_llcm_neighbor.c */
/** @{ */
int coll_llcm_neighbor_allgather(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype,
                                 void *rbuf, dn_ompi_count_t rcount, struct ompi_datatype_t *rtype,
                                 struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_neighbor_allgatherv(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype,
                                  void *rbuf, dn_ompi_counts_t counts, dn_ompi_starts_t starts,
                                  struct ompi_datatype_t *rtype, struct ompi_communicator_t *comm,
                                  mca_coll_base_module_t *module);
int coll_llcm_neighbor_alltoall(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype,
                                void *rbuf, dn_ompi_count_t rcount, struct ompi_datatype_t *rtype,
                                struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_neighbor_alltoallv(const void *sbuf, dn_ompi_counts_t scounts, dn_ompi_starts_t sstarts,
                                 struct ompi_datatype_t *stype, void *rbuf, dn_ompi_counts_t rcounts,
                                 dn_ompi_starts_t rstarts, struct ompi_datatype_t *rtype,
                                 struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_llcm_neighbor_alltoallw(const void *sbuf, dn_ompi_counts_t scounts, dn_ompi_places_t splaces,
                                 struct ompi_datatype_t *const *stypes, void *rbuf, dn_ompi_counts_t rcounts,
                                 dn_ompi_places_t rplaces, struct ompi_datatype_t *const *rtypes,
                                 struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/** @} */

#endif
