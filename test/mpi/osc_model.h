/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_model.h
 * What one-sided operations do to memory, written down once more, slowly: the model that windows are compared
 * with. It knows the predefined datatypes and operations of accumulates, and layouts of elements in memory.
 */
#ifndef DN_TEST_OSC_MODEL_H
#define DN_TEST_OSC_MODEL_H

#include "verify.h"

#include <mpi.h>

/** Predefined datatypes, by kinds: model_basic() tells about each. */
enum {
    MODEL_INT8,
    MODEL_UINT16,
    MODEL_INT32,
    MODEL_UINT32,
    MODEL_INT64,
    MODEL_UINT64,
    MODEL_FLOAT,
    MODEL_DOUBLE,
    MODEL_BYTE,
    MODEL_COMPLEX,
    MODEL_2INT,
    MODEL_SHORT_INT,
    MODEL_DOUBLE_INT,
    MODEL_BASICS
};

/** Operations of accumulates. */
enum {
    MODEL_SUM,
    MODEL_PROD,
    MODEL_MAX,
    MODEL_MIN,
    MODEL_BAND,
    MODEL_BOR,
    MODEL_BXOR,
    MODEL_LAND,
    MODEL_LOR,
    MODEL_LXOR,
    MODEL_MAXLOC,
    MODEL_MINLOC,
    MODEL_REPLACE,
    MODEL_NO_OP,
    MODEL_OPS
};

/** Bytes of an element in memory; its last ones may be a gap. */
size_t model_extent(int basic);
MPI_Datatype model_type(int basic);
MPI_Op model_op(int op);
/** Does MPI define this operation on this datatype? */
bool model_defined(int op, int basic);

/** An element whose values keep sums exact: small integers, also in the floating-point ones. Gaps are zeroed. */
void model_random_element(verify_rng_t *rng, int basic, void *to);

/** Change one element: *at becomes *at OP *operand. Gaps stay as they are. */
void model_change(int op, int basic, void *at, const void *operand);

/** Copy the bytes of an element that hold data. */
void model_copy(int basic, void *to, const void *from);
/** Do the bytes that hold data agree? */
bool model_equal(int basic, const void *a, const void *b);

/** Elements in memory: where each of them is. */
typedef struct {
    int basic;
    int count;      /**< elements of data */
    int type_count; /**< instances of type */
    MPI_Datatype type;
    bool derived;   /**< type is to be freed */
    ptrdiff_t *at;  /**< bytes from the buffer to each element, in the order of the data */
    ptrdiff_t low;  /**< lowest byte, from the buffer */
    ptrdiff_t high; /**< one beyond the highest */
} model_layout_t;

/** A layout of exactly @p count elements of a basic datatype: contiguous, strided, indexed, backwards, nested. */
model_layout_t model_layout(verify_rng_t *rng, int basic, int count);
void model_layout_free(model_layout_t *layout);

#endif
