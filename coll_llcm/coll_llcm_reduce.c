/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_reduce.c
 * Reductions, by Open MPI's own operations.
 */
#include "dn_config.h"

#include "coll_llcm.h"

static void fold(const dn_tree_reduction_t *super, const void *in, void *inout, size_t count)
{
    const coll_llcm_reduction_t *reduction = (const coll_llcm_reduction_t *) super;

    ompi_op_reduce(reduction->op, (void *) (uintptr_t) in, inout, count, reduction->type);
}

/**
 * Bytes from element to element where so many can go through lines, else 0. Predefined types may have gaps inside, which go
 * along: their elements are as long in C. It is the same in all processes, as the type is.
 */
static size_t stride_of(int count, const ompi_datatype_t *type)
{
    const ptrdiff_t extent = type->super.ub - type->super.lb;

    if (0 >= extent
        || DN_AOTF_LINE_MAX < extent
        /* Mostly it is one line; a division takes time. */
        || (DN_AOTF_LINE_MAX < (size_t) count * (size_t) extent
            && dn_tree_max((size_t) extent) < (size_t) count * (size_t) extent)) {
        return 0;
    }
    if (!ompi_datatype_is_predefined(type)
        && (0 == (type->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS) || 0 != type->super.true_lb
            || 0 == (type->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS))) {
        return 0;
    }
    return (size_t) extent;
}

bool coll_llcm_reduction_fits(int count, ompi_datatype_t *type, ompi_op_t *op,
                              coll_llcm_reduction_t *reduction)
{
    reduction->super.fold = fold;
    reduction->super.size = stride_of(count, type);
    reduction->op = op;
    reduction->type = type;
    return 0 != reduction->super.size;
}

/** Is this one for the tree? Fills in the reduction. */
static inline bool takes(coll_llcm_module_t *module, struct ompi_communicator_t *comm, int count,
                         ompi_datatype_t *type, ompi_op_t *op, coll_llcm_reduction_t *reduction)
{
    return OPAL_LIKELY(coll_llcm_reduction_fits(count, type, op, reduction)) && coll_llcm_ready(module, comm)
           && (ompi_op_is_commute(op) || 0 != dn_tree_ordered(module->tree));
}

int coll_llcm_allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
                        struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    coll_llcm_reduction_t reduction;

    if (OPAL_UNLIKELY(!takes(module, comm, count, type, op, &reduction))) {
        return module->saved.coll_allreduce(sbuf, rbuf, count, type, op, comm,
                                            module->saved.coll_allreduce_module);
    }
    return coll_llcm_wait(module, dn_tree_allreduce(module->tree, MPI_IN_PLACE == sbuf ? rbuf : sbuf, rbuf,
                                                    (size_t) count, &reduction.super));
}

int coll_llcm_reduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
                     struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                     mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    coll_llcm_reduction_t reduction;

    if (OPAL_UNLIKELY(!takes(module, comm, count, type, op, &reduction))) {
        return module->saved.coll_reduce(sbuf, rbuf, count, type, op, root, comm,
                                         module->saved.coll_reduce_module);
    }
    return coll_llcm_wait(module,
                          dn_tree_reduce(module->tree, (uint32_t) root, MPI_IN_PLACE == sbuf ? rbuf : sbuf,
                                         rbuf, (size_t) count, &reduction.super));
}
