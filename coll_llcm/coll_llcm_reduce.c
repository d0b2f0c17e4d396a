/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_reduce.c
 * Reductions, by Open MPI's own operations.
 */
#include "dn_config.h"

#include "coll_llcm.h"

static void reduce_fold(const dn_tree_reduction_t *super, const void *in, void *inout, size_t count)
{
    const coll_llcm_reduction_t *reduction = (const coll_llcm_reduction_t *) super;

    ompi_op_reduce(reduction->op, (void *) (uintptr_t) in, inout, count, reduction->type);
}

static void reduce_join(const dn_tree_reduction_t *super, const void *left, const void *right, void *out,
                        size_t count)
{
    const coll_llcm_reduction_t *reduction = (const coll_llcm_reduction_t *) super;

    ompi_3buff_op_reduce(reduction->op, (void *) (uintptr_t) left, (void *) (uintptr_t) right, out,
                         (int) count, reduction->type);
}

/** Has Open MPI a function of three buffers for this operation on this type? */
static bool is_joined(const ompi_datatype_t *type, const ompi_op_t *op)
{
    if (!ompi_op_is_intrinsic((ompi_op_t *) (uintptr_t) op) || !ompi_datatype_is_predefined(type)) {
        return false;
    }
    const int index = ompi_op_ddt_map[type->id];
    return 0 <= index && NULL != op->o_3buff_intrinsic.fns[index];
}

/**
 * Bytes from one element to the next, if elements can be copied with this length; else 0. Predefined types may have gaps inside. The
 * gaps are copied, too, since an element in C includes them. Other types with gaps are left to the replaced functions, since the bytes
 * in the gaps of a result belong to the caller. All processes get the same answer, since they have the same type.
 */
static size_t stride_of(const ompi_datatype_t *type)
{
    const ptrdiff_t extent = type->super.ub - type->super.lb;

    if (0 >= extent || (ptrdiff_t) DN_TREE_LONG_ELEMENT < extent) {
        return 0;
    }
    if (!ompi_datatype_is_predefined(type)
        && (0 == (type->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS) || 0 != type->super.true_lb
            || 0 == (type->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS))) {
        return 0;
    }
    return (size_t) extent;
}

/** Can so many elements go through lines? */
static inline bool is_short(size_t bytes, size_t size)
{
    /* Mostly one line is enough. It is checked first, since dn_tree_max() takes a division. */
    return DN_AOTF_LINE_MAX >= size && (DN_AOTF_LINE_MAX >= bytes || dn_tree_max(size) >= bytes);
}

/** Fill in a reduction. @return whether its elements can be copied (stride_of()). */
static inline bool reduce_describe(ompi_datatype_t *type, ompi_op_t *op, coll_llcm_reduction_t *reduction)
{
    reduction->super.fold = reduce_fold;
    reduction->super.join = NULL;
    reduction->super.size = stride_of(type);
    reduction->op = op;
    reduction->type = type;
    return OPAL_LIKELY(0 != reduction->super.size);
}

bool coll_llcm_reduction_fits(const coll_llcm_module_t *module, size_t count, ompi_datatype_t *type,
                              ompi_op_t *op, coll_llcm_reduction_t *reduction)
{
    if (!reduce_describe(type, op, reduction)) {
        return false;
    }
    const size_t bytes = count * reduction->super.size;
    return is_short(bytes, reduction->super.size) && coll_llcm_is_fast(module, bytes, reduction->super.size);
}

/** Choose the way of a reduction, and fill in the reduction. All processes choose the same. @param[in] to_one  The result goes to one
 * process; false: to all. Inline always: a call takes 44 instructions more, 5 to 7 % of a reduction of 8 B (perf/dn_coll, 2 ranks). */
static inline __attribute__((always_inline)) coll_llcm_way_t
reduce_choose(coll_llcm_module_t *module, struct ompi_communicator_t *comm, bool to_one, size_t count,
              ompi_datatype_t *type, ompi_op_t *op, coll_llcm_reduction_t *reduction)
{
    if (!reduce_describe(type, op, reduction)) {
        return COLL_LLCM_BY_OTHERS;
    }
    const size_t bytes = count * reduction->super.size;
    if (to_one && coll_llcm_is_message(module, comm, COLL_LLCM_MEASURED_REDUCE, bytes)) {
        return COLL_LLCM_BY_OTHERS;
    }
    if (to_one && 0 != count ? coll_llcm_is_for_areas(module, comm, bytes)
                             : COLL_LLCM_LINES_BEST < bytes && coll_llcm_long_ready(module, comm)) {
        return COLL_LLCM_BY_AREAS;
    }
    if (is_short(bytes, reduction->super.size) && coll_llcm_ready(module, comm)
        && coll_llcm_is_fast(module, bytes, reduction->super.size)
        && (ompi_op_is_commute(op) || 0 != dn_tree_ordered(module->tree))) {
        return COLL_LLCM_BY_TREE;
    }
    return 0 != count && coll_llcm_long_ready(module, comm) ? COLL_LLCM_BY_AREAS : COLL_LLCM_BY_OTHERS;
}

int coll_llcm_allreduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                        struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const void *in = MPI_IN_PLACE == sbuf ? rbuf : sbuf;
    coll_llcm_reduction_t reduction;

    const coll_llcm_way_t way = reduce_choose(module, comm, false, count, type, op, &reduction);
    if (OPAL_LIKELY(COLL_LLCM_BY_TREE == way)) {
        return coll_llcm_wait(module,
                              dn_tree_allreduce(module->tree, in, rbuf, (size_t) count, &reduction.super));
    }
    if (COLL_LLCM_BY_AREAS == way) {
        reduction.super.join = is_joined(type, op) ? reduce_join : NULL;
        return coll_llcm_long_allreduce(module, in, rbuf, (size_t) count, &reduction.super);
    }
    return module->saved.coll_allreduce(sbuf, rbuf, count, type, op, comm,
                                        module->saved.coll_allreduce_module);
}

int coll_llcm_reduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                     struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                     mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const void *in = MPI_IN_PLACE == sbuf ? rbuf : sbuf;
    coll_llcm_reduction_t reduction;

    const coll_llcm_way_t way = reduce_choose(module, comm, true, count, type, op, &reduction);
    if (OPAL_LIKELY(COLL_LLCM_BY_TREE == way)) {
        return coll_llcm_wait(module, dn_tree_reduce(module->tree, (uint32_t) root, in, rbuf, (size_t) count,
                                                     &reduction.super));
    }
    if (COLL_LLCM_BY_AREAS == way) {
        reduction.super.join = is_joined(type, op) ? reduce_join : NULL;
        return coll_llcm_note_time(
            module, coll_llcm_long_reduce(module, root, in, rbuf, (size_t) count, &reduction.super));
    }
    return coll_llcm_note_time(module, module->saved.coll_reduce(sbuf, rbuf, count, type, op, root, comm,
                                                                 module->saved.coll_reduce_module));
}

/** @name Scans */
/** @{ */
/** Do areas suit a scan of so many bytes, if there are areas? All processes get the same answer. */
static bool scan_suits_areas(coll_llcm_module_t *module, struct ompi_communicator_t *comm, size_t bytes)
{
    return coll_llcm_lines_best_one_way(comm) < bytes
           || (coll_llcm_is_crowded(module, comm) && coll_llcm_are_many(module));
}

/** Choose the way of a scan, and fill in the reduction. All processes choose the same. */
static coll_llcm_way_t scan_choose(coll_llcm_module_t *module, struct ompi_communicator_t *comm, size_t count,
                                   ompi_datatype_t *type, ompi_op_t *op, coll_llcm_reduction_t *reduction)
{
    if (0 == count || !reduce_describe(type, op, reduction)) {
        return COLL_LLCM_BY_OTHERS;
    }
    const size_t bytes = count * reduction->super.size;
    if (coll_llcm_is_message(module, comm, COLL_LLCM_MEASURED_SCAN, bytes)) {
        return COLL_LLCM_BY_OTHERS;
    }
    if (scan_suits_areas(module, comm, bytes) && coll_llcm_long_ready(module, comm)) {
        return COLL_LLCM_BY_AREAS;
    }
    if (COLL_LLCM_LINES_BEST >= bytes && coll_llcm_ready(module, comm)
        && dn_tree_scan_max(module->tree, reduction->super.size) >= bytes) {
        return COLL_LLCM_BY_TREE;
    }
    return coll_llcm_long_ready(module, comm) ? COLL_LLCM_BY_AREAS : COLL_LLCM_BY_OTHERS;
}

/** Any scan. @param[in] before  Only over the processes before this process. */
static int scan_any(const void *sbuf, void *rbuf, dn_ompi_count_t count, ompi_datatype_t *type, ompi_op_t *op,
                    bool before, struct ompi_communicator_t *comm, coll_llcm_module_t *module)
{
    const void *in = MPI_IN_PLACE == sbuf ? rbuf : sbuf;
    const mca_coll_base_comm_coll_t *saved = &module->saved;
    coll_llcm_reduction_t reduction;

    const coll_llcm_way_t way = scan_choose(module, comm, count, type, op, &reduction);
    if (COLL_LLCM_BY_TREE == way) {
        return coll_llcm_wait(module, (before ? dn_tree_exscan : dn_tree_scan)(
                                          module->tree, in, rbuf, (size_t) count, &reduction.super));
    }
    if (COLL_LLCM_BY_AREAS == way) {
        reduction.super.join = is_joined(type, op) ? reduce_join : NULL;
        return coll_llcm_note_time(
            module, coll_llcm_long_scan(module, in, rbuf, (size_t) count, before, &reduction.super));
    }
    return coll_llcm_note_time(
        module, before ? saved->coll_exscan(sbuf, rbuf, count, type, op, comm, saved->coll_exscan_module)
                       : saved->coll_scan(sbuf, rbuf, count, type, op, comm, saved->coll_scan_module));
}

int coll_llcm_scan(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                   struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    return scan_any(sbuf, rbuf, count, type, op, false, comm, (coll_llcm_module_t *) super);
}

int coll_llcm_exscan(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                     struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    return scan_any(sbuf, rbuf, count, type, op, true, comm, (coll_llcm_module_t *) super);
}
/** @} */

/** @name Reductions that are scattered
 * Through lines, a short one is an allreduce, of which each process keeps its part. Through areas, each process reduces its part.
 */
/** @{ */
/** Up to so many bytes of the whole result, areas are faster for reduce_scatter than the replaced function (perf/dn_coll, 2 ranks, and 4 and
 * 8 ranks on 2 cores). For reduce_scatter_block areas are faster at all lengths: the replaced function reduces to one process, which
 * scatters. */
#define SCATTER_MOST 1048576u

/** From so many bytes of the whole result on, lines are faster between hosts (perf/compare_hosts, 2 hosts x 2 ranks). */
#define SCATTER_HOSTS_LEAST 32u

/** Choose the way of a reduction that is scattered, and fill in the reduction. All processes choose the same. @param[in] most  The most
 * bytes for this component. */
static coll_llcm_way_t scatter_choose(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                      size_t count, size_t most, ompi_datatype_t *type, ompi_op_t *op,
                                      coll_llcm_reduction_t *reduction)
{
    if (0 == count || !reduce_describe(type, op, reduction) || most / reduction->super.size < count) {
        return COLL_LLCM_BY_OTHERS;
    }
    const size_t bytes = count * reduction->super.size;
    const bool suits = coll_llcm_is_crowded(module, comm) ? coll_llcm_are_many(module)
                                                          : coll_llcm_lines_best_one_way(comm) < bytes;
    if (suits && coll_llcm_long_ready(module, comm)) {
        return COLL_LLCM_BY_AREAS;
    }
    return COLL_LLCM_LINES_BEST >= bytes && is_short(bytes, reduction->super.size)
                   && coll_llcm_ready(module, comm) && (!module->spans_hosts || SCATTER_HOSTS_LEAST <= bytes)
                   && coll_llcm_is_fast(module, bytes, reduction->super.size)
                   && (ompi_op_is_commute(op) || 0 != dn_tree_ordered(module->tree))
               ? COLL_LLCM_BY_TREE
               : COLL_LLCM_BY_OTHERS;
}

/** Reduce @p count elements through lines or areas. This process gets @p part elements of the result, from element @p at on. */
static int scatter_by(coll_llcm_way_t way, coll_llcm_module_t *module, const void *sbuf, void *rbuf,
                      size_t count, size_t at, size_t part, coll_llcm_reduction_t *reduction)
{
    const void *in = MPI_IN_PLACE == sbuf ? rbuf : sbuf;
    const size_t size = reduction->super.size;

    if (COLL_LLCM_BY_AREAS == way) {
        reduction->super.join = is_joined(reduction->type, reduction->op) ? reduce_join : NULL;
        return coll_llcm_long_reduce_part(module, in, rbuf, count, at, part, &reduction->super);
    }
    _Alignas(64) uint8_t all[COLL_LLCM_LINES_BEST];
    int rc = coll_llcm_wait(module, dn_tree_allreduce(module->tree, in, all, count, &reduction->super));
    if (OMPI_SUCCESS == rc && 0 != part) {
        memcpy(rbuf, all + at * size, part * size);
    }
    return rc;
}

int coll_llcm_reduce_scatter(const void *sbuf, void *rbuf, dn_ompi_counts_t counts,
                             struct ompi_datatype_t *type, struct ompi_op_t *op,
                             struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const int rank = ompi_comm_rank(comm);
    coll_llcm_reduction_t reduction;
    size_t count = 0;
    size_t at = 0;

    for (int i = 0; i < ompi_comm_size(comm); i++) {
        at = i == rank ? count : at;
        count += dn_ompi_count_at(counts, i);
    }
    const coll_llcm_way_t way = scatter_choose(module, comm, count, SCATTER_MOST, type, op, &reduction);
    if (COLL_LLCM_BY_OTHERS != way) {
        return scatter_by(way, module, sbuf, rbuf, count, at, dn_ompi_count_at(counts, rank), &reduction);
    }
    return module->saved.coll_reduce_scatter(sbuf, rbuf, counts, type, op, comm,
                                             module->saved.coll_reduce_scatter_module);
}

int coll_llcm_reduce_scatter_block(const void *sbuf, void *rbuf, dn_ompi_count_t count,
                                   struct ompi_datatype_t *type, struct ompi_op_t *op,
                                   struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const size_t part = (size_t) count;
    coll_llcm_reduction_t reduction;

    const size_t all = part * (size_t) ompi_comm_size(comm);
    const coll_llcm_way_t way = scatter_choose(module, comm, all, SIZE_MAX, type, op, &reduction);
    if (COLL_LLCM_BY_OTHERS != way) {
        return scatter_by(way, module, sbuf, rbuf, all, part * (size_t) ompi_comm_rank(comm), part,
                          &reduction);
    }
    return module->saved.coll_reduce_scatter_block(sbuf, rbuf, count, type, op, comm,
                                                   module->saved.coll_reduce_scatter_block_module);
}
/** @} */
