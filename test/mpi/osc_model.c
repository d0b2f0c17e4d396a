/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "osc_model.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int value, index;
} pair_2int_t;

typedef struct {
    short value;
    int index;
} pair_short_t;

typedef struct {
    double value;
    int index;
} pair_double_t;

size_t model_extent(int basic)
{
    static const size_t extent[MODEL_BASICS] = {
        [MODEL_INT8] = 1,
        [MODEL_UINT16] = 2,
        [MODEL_INT32] = 4,
        [MODEL_UINT32] = 4,
        [MODEL_INT64] = 8,
        [MODEL_UINT64] = 8,
        [MODEL_FLOAT] = sizeof(float),
        [MODEL_DOUBLE] = sizeof(double),
        [MODEL_BYTE] = 1,
        [MODEL_COMPLEX] = sizeof(double complex),
        [MODEL_2INT] = sizeof(pair_2int_t),
        [MODEL_SHORT_INT] = sizeof(pair_short_t),
        [MODEL_DOUBLE_INT] = sizeof(pair_double_t),
    };
    return extent[basic];
}

MPI_Datatype model_type(int basic)
{
    const MPI_Datatype type[MODEL_BASICS] = {
        [MODEL_INT8] = MPI_INT8_T,
        [MODEL_UINT16] = MPI_UINT16_T,
        [MODEL_INT32] = MPI_INT32_T,
        [MODEL_UINT32] = MPI_UINT32_T,
        [MODEL_INT64] = MPI_INT64_T,
        [MODEL_UINT64] = MPI_UINT64_T,
        [MODEL_FLOAT] = MPI_FLOAT,
        [MODEL_DOUBLE] = MPI_DOUBLE,
        [MODEL_BYTE] = MPI_BYTE,
        [MODEL_COMPLEX] = MPI_C_DOUBLE_COMPLEX,
        [MODEL_2INT] = MPI_2INT,
        [MODEL_SHORT_INT] = MPI_SHORT_INT,
        [MODEL_DOUBLE_INT] = MPI_DOUBLE_INT,
    };
    return type[basic];
}

MPI_Op model_op(int op)
{
    const MPI_Op handle[MODEL_OPS] = {
        [MODEL_SUM] = MPI_SUM,         [MODEL_PROD] = MPI_PROD,     [MODEL_MAX] = MPI_MAX,
        [MODEL_MIN] = MPI_MIN,         [MODEL_BAND] = MPI_BAND,     [MODEL_BOR] = MPI_BOR,
        [MODEL_BXOR] = MPI_BXOR,       [MODEL_LAND] = MPI_LAND,     [MODEL_LOR] = MPI_LOR,
        [MODEL_LXOR] = MPI_LXOR,       [MODEL_MAXLOC] = MPI_MAXLOC, [MODEL_MINLOC] = MPI_MINLOC,
        [MODEL_REPLACE] = MPI_REPLACE, [MODEL_NO_OP] = MPI_NO_OP,
    };
    return handle[op];
}

bool model_defined(int op, int basic)
{
    switch (op) {
    case MODEL_REPLACE:
    case MODEL_NO_OP:
        return true;
    case MODEL_SUM:
    case MODEL_PROD:
        return basic <= MODEL_DOUBLE || MODEL_COMPLEX == basic;
    case MODEL_MAX:
    case MODEL_MIN:
        return basic <= MODEL_DOUBLE;
    case MODEL_MAXLOC:
    case MODEL_MINLOC:
        return basic >= MODEL_2INT;
    case MODEL_LAND:
    case MODEL_LOR:
    case MODEL_LXOR:
        return basic <= MODEL_UINT64;
    default:
        return basic <= MODEL_UINT64 || MODEL_BYTE == basic;
    }
}

/** Elements of all numeric kinds, by name of kind and C type. */
#define INTEGERS(X)           \
    X(MODEL_INT8, int8_t)     \
    X(MODEL_UINT16, uint16_t) \
    X(MODEL_INT32, int32_t)   \
    X(MODEL_UINT32, uint32_t) \
    X(MODEL_INT64, int64_t)   \
    X(MODEL_UINT64, uint64_t) \
    X(MODEL_BYTE, uint8_t)
#define FLOATS(X)         \
    X(MODEL_FLOAT, float) \
    X(MODEL_DOUBLE, double)
#define PAIRS(X)                     \
    X(MODEL_2INT, pair_2int_t)       \
    X(MODEL_SHORT_INT, pair_short_t) \
    X(MODEL_DOUBLE_INT, pair_double_t)

void model_random_element(verify_rng_t *rng, int basic, void *to)
{
    /* Never 0, which has two signs: MPI does not say which one a maximum keeps. */
    const int small = (int) (1 + verify_below(rng, 3)) * (0 == verify_below(rng, 2) ? 1 : -1);

    memset(to, 0, model_extent(basic));
    switch (basic) {
#define INTEGER(kind, type_t)                             \
    case kind: {                                          \
        const type_t value = (type_t) verify_random(rng); \
        memcpy(to, &value, sizeof(value));                \
        break;                                            \
    }
        INTEGERS(INTEGER)
#define SMALL(kind, type_t)                  \
    case kind: {                             \
        const type_t value = (type_t) small; \
        memcpy(to, &value, sizeof(value));   \
        break;                               \
    }
        FLOATS(SMALL)
        SMALL(MODEL_COMPLEX, double complex)
#define PAIR(kind, type_t)                           \
    case kind: {                                     \
        type_t value;                                \
        memset(&value, 0, sizeof(value));            \
        value.value = small;                         \
        value.index = (int) verify_below(rng, 1000); \
        memcpy(to, &value, sizeof(value));           \
        break;                                       \
    }
        PAIRS(PAIR)
    default:
        verify_fail("no such datatype");
    }
}

void model_copy(int basic, void *to, const void *from)
{
    switch (basic) {
    case MODEL_SHORT_INT:
        memcpy(to, from, sizeof(short));
        memcpy((char *) to + offsetof(pair_short_t, index),
               (const char *) from + offsetof(pair_short_t, index), sizeof(int));
        break;
    case MODEL_DOUBLE_INT:
        memcpy(to, from, offsetof(pair_double_t, index) + sizeof(int));
        break;
    default:
        memcpy(to, from, model_extent(basic));
        break;
    }
}

bool model_equal(int basic, const void *a, const void *b)
{
    uint8_t x[32] = {0};
    uint8_t y[32] = {0};

    model_copy(basic, x, a);
    model_copy(basic, y, b);
    return 0 == memcmp(x, y, sizeof(x));
}

/** Bits are the same for signed and unsigned; what is not is done at full width by the caller's type. */
#define CHANGE_INTEGER(kind, type_t)                                    \
    case kind: {                                                        \
        type_t a, b;                                                    \
        memcpy(&a, at, sizeof(a));                                      \
        memcpy(&b, operand, sizeof(b));                                 \
        a = MODEL_SUM == op    ? (type_t) ((uint64_t) a + (uint64_t) b) \
            : MODEL_PROD == op ? (type_t) ((uint64_t) a * (uint64_t) b) \
            : MODEL_MAX == op  ? (a > b ? a : b)                        \
            : MODEL_MIN == op  ? (a < b ? a : b)                        \
            : MODEL_BAND == op ? (type_t) (a & b)                       \
            : MODEL_BOR == op  ? (type_t) (a | b)                       \
            : MODEL_BXOR == op ? (type_t) (a ^ b)                       \
            : MODEL_LAND == op ? (type_t) (a && b)                      \
            : MODEL_LOR == op  ? (type_t) (a || b)                      \
                               : (type_t) (!a != !b);                    \
        memcpy(at, &a, sizeof(a));                                      \
        break;                                                          \
    }
#define CHANGE_FLOAT(kind, type_t)               \
    case kind: {                                 \
        type_t a, b;                             \
        memcpy(&a, at, sizeof(a));               \
        memcpy(&b, operand, sizeof(b));          \
        a = MODEL_SUM == op    ? a + b           \
            : MODEL_PROD == op ? a * b           \
            : MODEL_MAX == op  ? (a > b ? a : b) \
                               : (a < b ? a : b); \
        memcpy(at, &a, sizeof(a));               \
        break;                                   \
    }
#define CHANGE_PAIR(kind, type_t)                                 \
    case kind: {                                                  \
        type_t a, b;                                              \
        memcpy(&a, at, sizeof(a));                                \
        memcpy(&b, operand, sizeof(b));                           \
        if (a.value == b.value) {                                 \
            a.index = a.index < b.index ? a.index : b.index;      \
        } else if ((MODEL_MAXLOC == op) == (b.value > a.value)) { \
            a = b;                                                \
        }                                                         \
        model_copy(basic, at, &a);                                \
        break;                                                    \
    }

void model_change(int op, int basic, void *at, const void *operand)
{
    if (MODEL_NO_OP == op) {
        return;
    }
    if (MODEL_REPLACE == op) {
        model_copy(basic, at, operand);
        return;
    }
    switch (basic) {
        INTEGERS(CHANGE_INTEGER)
        FLOATS(CHANGE_FLOAT)
        PAIRS(CHANGE_PAIR)
    case MODEL_COMPLEX: {
        double complex a, b;
        memcpy(&a, at, sizeof(a));
        memcpy(&b, operand, sizeof(b));
        a = MODEL_SUM == op ? a + b : a * b;
        memcpy(at, &a, sizeof(a));
        break;
    }
    default:
        verify_fail("no such datatype");
    }
}

/** @name Layouts */
/** @{ */

static void set_range(model_layout_t *layout)
{
    const ptrdiff_t extent = (ptrdiff_t) model_extent(layout->basic);

    layout->low = layout->high = 0;
    for (int i = 0; i < layout->count; i++) {
        if (0 == i || layout->at[i] < layout->low) {
            layout->low = layout->at[i];
        }
        if (0 == i || layout->at[i] + extent > layout->high) {
            layout->high = layout->at[i] + extent;
        }
    }
}

/** One type with each element at its place, in blocks as they come. */
static void make_indexed(model_layout_t *layout)
{
    int *blocks = calloc((size_t) layout->count + 1, sizeof(*blocks));
    MPI_Aint *places = calloc((size_t) layout->count + 1, sizeof(*places));

    verify_that(NULL != blocks && NULL != places, "no memory for a datatype");
    for (int i = 0; i < layout->count; i++) {
        blocks[i] = 1;
        places[i] = layout->at[i];
    }
    MPI_Type_create_hindexed(layout->count, blocks, places, model_type(layout->basic), &layout->type);
    MPI_Type_commit(&layout->type);
    layout->derived = true;
    layout->type_count = 1;
    free(blocks);
    free(places);
}

/** Rows of a vector of vectors; strides of @p step elements within, and of a whole row and @p more behind it. */
static void make_nested(model_layout_t *layout, int rows, int step, int more)
{
    const int columns = layout->count / rows;
    const int extent = (int) model_extent(layout->basic);
    const int row_bytes = (columns * step + more) * extent;
    MPI_Datatype row;

    for (int i = 0; i < layout->count; i++) {
        layout->at[i] = (ptrdiff_t) (i / columns) * row_bytes + (ptrdiff_t) (i % columns) * step * extent;
    }
    MPI_Type_vector(columns, 1, step, model_type(layout->basic), &row);
    MPI_Type_create_hvector(rows, 1, row_bytes, row, &layout->type);
    MPI_Type_commit(&layout->type);
    MPI_Type_free(&row);
    layout->derived = true;
    layout->type_count = 1;
}

/** Instances of a type that is resized: @p step elements from one to the next. */
static void make_resized(model_layout_t *layout, int step)
{
    const ptrdiff_t extent = (ptrdiff_t) model_extent(layout->basic);

    for (int i = 0; i < layout->count; i++) {
        layout->at[i] = i * step * extent;
    }
    MPI_Type_create_resized(model_type(layout->basic), 0, step * extent, &layout->type);
    MPI_Type_commit(&layout->type);
    layout->derived = true;
    layout->type_count = layout->count;
}

model_layout_t model_layout(verify_rng_t *rng, int basic, int count)
{
    model_layout_t layout = {.basic = basic, .count = count};
    const ptrdiff_t extent = (ptrdiff_t) model_extent(basic);
    const uint64_t kind = verify_below(rng, 6);
    ptrdiff_t at = 0;

    layout.at = calloc((size_t) count + 1, sizeof(*layout.at));
    verify_that(NULL != layout.at, "no memory for a layout");
    if (1 == kind && 0 != count) {
        make_resized(&layout, 1 + (int) verify_below(rng, 4));
    } else if (2 == kind && 0 != count) {
        const int rows = 0 == count % 3 ? 3 : 0 == count % 2 ? 2 : 1;

        make_nested(&layout, rows, 1 + (int) verify_below(rng, 3), (int) verify_below(rng, 5));
    } else if (3 == kind || 4 == kind) {
        /* Gaps of any length, for one of the two from the end backwards, and from below the buffer's address. */
        at = -(ptrdiff_t) (16 * verify_below(rng, 3));
        for (int i = 0; i < count; i++) {
            layout.at[3 == kind ? i : count - 1 - i] = at;
            at += extent * (1 + (ptrdiff_t) (verify_below(rng, 3) / 2 * verify_below(rng, 4)));
        }
        make_indexed(&layout);
    } else {
        for (int i = 0; i < count; i++) {
            layout.at[i] = i * extent;
        }
        layout.type = model_type(basic);
        layout.type_count = count;
    }
    set_range(&layout);
    return layout;
}

void model_layout_free(model_layout_t *layout)
{
    if (layout->derived) {
        MPI_Type_free(&layout->type);
    }
    free(layout->at);
}
/** @} */
