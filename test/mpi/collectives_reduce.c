/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_reduce.c
 * Reductions, against what MPI_Reduce_local makes of the operands of all ranks, in the order of ranks. Operands are small whole
 * numbers, so that every order gives the same bits.
 */
#include "dn_config.h"

#include "collectives.h"

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Classes of types, as MPI has them. */
enum {
    WHOLE = 1,
    REAL = 2,
    COMPLEX = 4,
    LOGICAL = 8,
    RAW = 16,
    PAIR = 32,
    MATRIX = 64,
    SPREAD = 128,
    LEANING = 256
};

/** Types that have to be made, the last ones; bytes of an element before its address in the last. */
enum { MADE = 3, LEANS = 8 };

/**
 * Elements of a type whose first byte lies beside its address, at most: from 4,096 bytes of such data on, the ring of Open MPI
 * 4.1's own MPI_Allreduce, which does these types, writes beside its buffer and then aborts in free().
 */
enum { BESIDE_MAX = 1000 };

typedef void (*make_fn_t)(void *element, uint64_t number);

/** A type: how an element is made, and which of its bytes count. */
typedef struct value_type {
    MPI_Datatype type;
    unsigned class;
    size_t size; /**< from element to element */
    size_t used[2][2];
    make_fn_t make;
} value_type_t;

#define MAKE(name, c_type)                                                \
    static void make_##name(void *element, uint64_t number)               \
    {                                                                     \
        const c_type value = (c_type) (0 == number % 3 ? 2 : number % 2); \
        memcpy(element, &value, sizeof(value));                           \
    }
MAKE(char, signed char)
MAKE(short, short)
MAKE(int, int)
MAKE(long, int64_t)
MAKE(bool, bool)
MAKE(float, float)
MAKE(double, double)
MAKE(long_double, long double)
MAKE(float_complex, float complex)
MAKE(double_complex, double complex)

#define MAKE_PAIR(name, c_type)                                                       \
    typedef struct pair_##name {                                                      \
        c_type value;                                                                 \
        int index;                                                                    \
    } pair_##name##_t;                                                                \
    static void make_pair_##name(void *element, uint64_t number)                      \
    {                                                                                 \
        const pair_##name##_t pair = {(c_type) (number % 4), (int) (number / 4 % 5)}; \
        memcpy(element, &pair, sizeof(pair));                                         \
    }
MAKE_PAIR(float, float)
MAKE_PAIR(double, double)
MAKE_PAIR(long, long)
MAKE_PAIR(short, short)
MAKE_PAIR(int, int)
MAKE_PAIR(long_double, long double)

/** Two rows of two, multiplied modulo 2^32: the order counts. */
typedef struct matrix {
    uint32_t a[2][2];
} matrix_t;

static void make_matrix(void *element, uint64_t number)
{
    const matrix_t m = {{{(uint32_t) number | 1, (uint32_t) (number >> 8)}, {(uint32_t) (number >> 16), 3}}};

    memcpy(element, &m, sizeof(m));
}

static void multiply(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; i++) {
        const matrix_t l = ((const matrix_t *) in)[i];
        const matrix_t r = ((const matrix_t *) inout)[i];
        matrix_t *to = (matrix_t *) inout + i;
        for (int row = 0; row < 2; row++) {
            for (int column = 0; column < 2; column++) {
                to->a[row][column] = l.a[row][0] * r.a[0][column] + l.a[row][1] * r.a[1][column];
            }
        }
    }
}

/** An int in the midst of 12 bytes, of which the others are nobody's. */
typedef struct spread {
    int before;
    int value;
    int after;
} spread_t;

static void make_spread(void *element, uint64_t number)
{
    const spread_t spread = {0x11111111, (int) (number % 1000), 0x22222222};

    memcpy(element, &spread, sizeof(spread));
}

static void add_spread(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; i++) {
        ((spread_t *) inout)[i].value += ((const spread_t *) in)[i].value;
    }
}

/** The same of elements that begin LEANS bytes before their address. */
static void add_leaning(void *in, void *inout, int *count, MPI_Datatype *type)
{
    add_spread((char *) in - LEANS, (char *) inout - LEANS, count, type);
}

#define ALL(c_type)           \
    {                         \
        {                     \
            0, sizeof(c_type) \
        }                     \
    }
/* Of a long double, ten bytes say something on x86. */
#define LONG_DOUBLE_BYTES (64 == LDBL_MANT_DIG ? 10 : sizeof(long double))
#define PAIR_OF(name)                                     \
    {                                                     \
        {0, sizeof(((pair_##name##_t *) 0)->value)},      \
        {                                                 \
            offsetof(pair_##name##_t, index), sizeof(int) \
        }                                                 \
    }

#include <float.h>

static value_type_t types[] = {
    {MPI_SIGNED_CHAR, WHOLE, 1, ALL(char), make_char},
    {MPI_UNSIGNED_CHAR, WHOLE, 1, ALL(char), make_char},
    {MPI_SHORT, WHOLE, sizeof(short), ALL(short), make_short},
    {MPI_UNSIGNED_SHORT, WHOLE, sizeof(short), ALL(short), make_short},
    {MPI_INT, WHOLE, sizeof(int), ALL(int), make_int},
    {MPI_UNSIGNED, WHOLE, sizeof(int), ALL(int), make_int},
    {MPI_LONG, WHOLE, sizeof(long), ALL(long), make_long},
    {MPI_UNSIGNED_LONG, WHOLE, sizeof(long), ALL(long), make_long},
    {MPI_LONG_LONG, WHOLE, 8, ALL(int64_t), make_long},
    {MPI_INT8_T, WHOLE, 1, ALL(char), make_char},
    {MPI_UINT16_T, WHOLE, 2, ALL(short), make_short},
    {MPI_INT32_T, WHOLE, 4, ALL(int), make_int},
    {MPI_UINT64_T, WHOLE, 8, ALL(int64_t), make_long},
    {MPI_AINT, WHOLE, sizeof(MPI_Aint), ALL(MPI_Aint), make_long},
    {MPI_FLOAT, REAL, sizeof(float), ALL(float), make_float},
    {MPI_DOUBLE, REAL, sizeof(double), ALL(double), make_double},
    {MPI_LONG_DOUBLE, REAL, sizeof(long double), {{0, 0}}, make_long_double},
    {MPI_C_FLOAT_COMPLEX, COMPLEX, sizeof(float complex), ALL(float complex), make_float_complex},
    {MPI_C_DOUBLE_COMPLEX, COMPLEX, sizeof(double complex), ALL(double complex), make_double_complex},
    {MPI_C_BOOL, LOGICAL, sizeof(bool), ALL(bool), make_bool},
    {MPI_BYTE, RAW, 1, ALL(char), make_char},
    {MPI_FLOAT_INT, PAIR, sizeof(pair_float_t), PAIR_OF(float), make_pair_float},
    {MPI_DOUBLE_INT, PAIR, sizeof(pair_double_t), PAIR_OF(double), make_pair_double},
    {MPI_LONG_INT, PAIR, sizeof(pair_long_t), PAIR_OF(long), make_pair_long},
    {MPI_SHORT_INT, PAIR, sizeof(pair_short_t), PAIR_OF(short), make_pair_short},
    {MPI_2INT, PAIR, sizeof(pair_int_t), PAIR_OF(int), make_pair_int},
    {MPI_LONG_DOUBLE_INT, PAIR, sizeof(pair_long_double_t), PAIR_OF(long_double), make_pair_long_double},
    {MPI_DATATYPE_NULL, MATRIX, sizeof(matrix_t), ALL(matrix_t), make_matrix},
    {MPI_DATATYPE_NULL, SPREAD, sizeof(spread_t), ALL(spread_t), make_spread},
    {MPI_DATATYPE_NULL, LEANING, sizeof(spread_t), ALL(spread_t), make_spread},
};

/** An operation and the classes of types for which it is defined. */
typedef struct operation {
    MPI_Op op;
    unsigned classes;
    const char *name;
} operation_t;

static operation_t operations[] = {
    {MPI_MAX, WHOLE | REAL, "max"},
    {MPI_MIN, WHOLE | REAL, "min"},
    {MPI_SUM, WHOLE | REAL | COMPLEX, "sum"},
    {MPI_PROD, WHOLE | REAL | COMPLEX, "prod"},
    {MPI_LAND, WHOLE | LOGICAL, "land"},
    {MPI_LOR, WHOLE | LOGICAL, "lor"},
    {MPI_LXOR, WHOLE | LOGICAL, "lxor"},
    {MPI_BAND, WHOLE | RAW, "band"},
    {MPI_BOR, WHOLE | RAW, "bor"},
    {MPI_BXOR, WHOLE | RAW, "bxor"},
    {MPI_MAXLOC, PAIR, "maxloc"},
    {MPI_MINLOC, PAIR, "minloc"},
    {MPI_OP_NULL, MATRIX, "a product that does not commute"},
    {MPI_OP_NULL, SPREAD, "a sum of elements with gaps"},
    {MPI_OP_NULL, LEANING, "a sum of elements that begin before their address"},
};

enum { TYPES = sizeof(types) / sizeof(types[0]), OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

/** The types that have to be made. Ranks may make a type in different ways. */
static void make_types(int way)
{
    value_type_t *made = &types[TYPES - MADE];
    MPI_Datatype part;

    if (0 == way % 3) {
        MPI_Type_contiguous(4, MPI_UINT32_T, &made[0].type);
    } else if (1 == way % 3) {
        MPI_Type_vector(2, 2, 2, MPI_UINT32_T, &made[0].type);
    } else {
        MPI_Type_create_struct(2, (int[]){3, 1}, (MPI_Aint[]){0, 12},
                               (MPI_Datatype[]){MPI_UINT32_T, MPI_UINT32_T}, &made[0].type);
    }
    for (int i = 1; i < MADE; i++) {
        const int place = 1 == i ? (int) sizeof(int) : (int) sizeof(int) - LEANS;
        if (0 == way % 2) {
            MPI_Type_create_indexed_block(1, 1, &(int){place / (int) sizeof(int)}, MPI_INT, &part);
        } else {
            MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){place}, (MPI_Datatype[]){MPI_INT}, &part);
        }
        MPI_Type_create_resized(part, 1 == i ? 0 : -LEANS, sizeof(spread_t), &made[i].type);
        MPI_Type_free(&part);
    }
    for (int i = 0; i < MADE; i++) {
        MPI_Type_commit(&made[i].type);
    }
}

void collectives_reduce_begin(void)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    make_types(rank);
    MPI_Op_create(multiply, 0, &operations[OPERATIONS - MADE].op);
    MPI_Op_create(add_spread, 1, &operations[OPERATIONS - MADE + 1].op);
    MPI_Op_create(add_leaning, 1, &operations[OPERATIONS - MADE + 2].op);
    for (int i = 0; i < TYPES; i++) {
        if (MPI_LONG_DOUBLE == types[i].type || MPI_LONG_DOUBLE_INT == types[i].type) {
            types[i].used[0][1] = LONG_DOUBLE_BYTES;
        }
    }
}

void collectives_reduce_end(void)
{
    for (int i = 1; i <= MADE; i++) {
        MPI_Op_free(&operations[OPERATIONS - i].op);
        MPI_Type_free(&types[TYPES - i].type);
    }
}

static void make_operands(const value_type_t *type, void *to, int count, uint64_t id, int rank)
{
    for (int i = 0; i < count; i++) {
        type->make((char *) to + (size_t) i * type->size, verify_key(id, (uint64_t) rank, (uint64_t) i, 0));
    }
}

/** The value bytes of two arrays are the same; what lies between them is nobody's. */
static void compare(const value_type_t *type, const operation_t *operation, const char *got,
                    const char *wanted, int count, const char *call)
{
    for (int i = 0; i < count; i++) {
        for (int part = 0; part < 2; part++) {
            const size_t at = (size_t) i * type->size + type->used[part][0];
            if (0 != memcmp(got + at, wanted + at, type->used[part][1])) {
                char name[MPI_MAX_OBJECT_NAME];
                int len;
                MPI_Type_get_name(type->type, name, &len);
                verify_fail("%s of %d %s (%zu B each): %s: element %d is wrong", call, count, name,
                            type->size, operation->name, i);
            }
        }
    }
}

/** The result of the operands of so many ranks, at least one, from the first on. @param operand  room for as many. */
static void fold_operands(const value_type_t *type, const operation_t *operation, int count, uint64_t id,
                          int ranks, char *result, char *operand)
{
    const size_t from = LEANING == type->class ? LEANS : 0;

    make_operands(type, result, count, id, ranks - 1);
    for (int rank = ranks - 2; 0 <= rank; rank--) {
        make_operands(type, operand, count, id, rank);
        MPI_Reduce_local(operand + from, result + from, count, type->type, operation->op);
    }
}

/** Both scans. @param in, out, wanted, operand  as in reduce_one(); the last two are overwritten. */
static void scan_one(MPI_Comm comm, verify_rng_t *rng, const operation_t *operation, const value_type_t *type,
                     int count, uint64_t id, char *in, char *out, char *wanted, char *operand)
{
    const int in_place = (int) verify_below(rng, 2);
    const size_t from = LEANING == type->class ? LEANS : 0;
    const void *given = in_place ? MPI_IN_PLACE : in + from;
    int rank;

    MPI_Comm_rank(comm, &rank);
    make_operands(type, out, count, in_place ? id : id + 1, rank);
    MPI_Scan(given, out + from, count, type->type, operation->op, comm);
    fold_operands(type, operation, count, id, rank + 1, wanted, operand);
    compare(type, operation, out, wanted, count, "MPI_Scan");
    make_operands(type, out, count, in_place ? id : id + 1, rank);
    MPI_Exscan(given, out + from, count, type->type, operation->op, comm);
    if (0 < rank) {
        fold_operands(type, operation, count, id, rank, wanted, operand);
        compare(type, operation, out, wanted, count, "MPI_Exscan");
    }
}

/** A reduction of which each rank gets a part: of any length, or all of the same. @param in, out, wanted  as in reduce_one(). */
static void scatter_one(MPI_Comm comm, verify_rng_t *rng, const operation_t *operation,
                        const value_type_t *type, int count, uint64_t id, char *in, char *out, char *wanted)
{
    const int in_place = (int) verify_below(rng, 2);
    int rank, ranks;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const int alike = 0 == count % ranks && 0 == verify_below(rng, 2);
    int *counts = calloc((size_t) ranks, sizeof(*counts));
    int first = 0;
    int left = count;
    verify_that(NULL != counts, "no memory for the parts of a reduction");
    for (int i = 0; i < ranks; i++) {
        counts[i] = alike            ? count / ranks
                    : i == ranks - 1 ? left
                                     : (int) verify_below(rng, (uint64_t) (left + 1));
        left -= counts[i];
        first += i < rank ? counts[i] : 0;
    }
    make_operands(type, out, count, in_place ? id : id + 1, rank);
    if (alike) {
        MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : in, out, counts[0], type->type, operation->op,
                                 comm);
    } else {
        MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : in, out, counts, type->type, operation->op, comm);
    }
    const char *call = alike ? "MPI_Reduce_scatter_block" : "MPI_Reduce_scatter";
    compare(type, operation, out, wanted + (size_t) first * type->size, counts[rank], call);
    if (!in_place) {
        const size_t part = (size_t) counts[rank] * type->size;
        char *before = malloc((size_t) count * type->size + 1);
        verify_that(NULL != before, "no memory for what lies behind a part");
        make_operands(type, before, count, id + 1, rank);
        compare(type, operation, out + part, before + part, count - counts[rank], "what lies behind a part");
        free(before);
    }
    free(counts);
}

/** All reductions with one operation and type. */
static void reduce_one(MPI_Comm comm, verify_rng_t *rng, const operation_t *operation,
                       const value_type_t *type, int count)
{
    const uint64_t id = verify_random(rng);
    const int in_place = (int) verify_below(rng, 2);
    const size_t bytes = (size_t) count * type->size;
    const size_t from = LEANING == type->class ? LEANS : 0;
    int rank, ranks;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const int root = (int) verify_below(rng, (uint64_t) ranks);
    const size_t skew = type->size % 16;
    char *in = verify_guard_alloc(bytes, 0);
    char *out = verify_guard_alloc(bytes, 16 == type->size || 32 == type->size ? 16 : skew);
    char *wanted = malloc(bytes + 1);
    char *operand = malloc(bytes + 1);
    verify_that(NULL != wanted && NULL != operand, "no memory for a reduction");

    fold_operands(type, operation, count, id, ranks, wanted, operand);
    make_operands(type, in, count, id, rank);
    make_operands(type, out, count, in_place ? id : id + 1, rank);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in + from, out + from, count, type->type, operation->op, comm);
    compare(type, operation, out, wanted, count, "MPI_Allreduce");
    make_operands(type, out, count, in_place ? id : id + 1, rank);
    MPI_Reduce(in_place && rank == root ? MPI_IN_PLACE : in + from, rank == root ? out + from : NULL, count,
               type->type, operation->op, root, comm);
    if (rank == root) {
        compare(type, operation, out, wanted, count, "MPI_Reduce");
    }
    if (0 == (type->class & (SPREAD | LEANING))) {
        scatter_one(comm, rng, operation, type, count, id, in, out, wanted);
    }
    scan_one(comm, rng, operation, type, count, id, in, out, wanted, operand);
    make_operands(type, operand, count, id, rank);
    compare(type, operation, in, operand, count, "operands behind");
    free(operand);
    free(wanted);
    verify_guard_free(out, bytes, 16 == type->size || 32 == type->size ? 16 : skew, "reduction, result");
    verify_guard_free(in, bytes, 0, "reduction, operands");
    collectives_count();
}

void collectives_reduce_all(MPI_Comm comm, verify_rng_t *rng, int count)
{
    for (int o = 0; o < OPERATIONS; o++) {
        for (int t = 0; t < TYPES; t++) {
            if (0 != (operations[o].classes & types[t].class)) {
                reduce_one(comm, rng, &operations[o], &types[t], count);
            }
        }
    }
}

void collectives_reduce_some(MPI_Comm comm, verify_rng_t *rng, int most)
{
    const operation_t *operation;
    const value_type_t *type;

    do {
        operation = &operations[verify_below(rng, OPERATIONS)];
        type = &types[verify_below(rng, TYPES)];
    } while (0 == (operation->classes & type->class));
    if (0 != (type->class & (SPREAD | LEANING)) && BESIDE_MAX < most) {
        most = BESIDE_MAX;
    }
    reduce_one(comm, rng, operation, type, (int) verify_size(rng, (size_t) most));
}
