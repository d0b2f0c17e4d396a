/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "osc_dimmnet_cell.h"

#include "opal/datatype/opal_datatype_internal.h"

/** Bytes that are changed at a time where they have to be brought to an alignment first. */
#define ALIGNED_BYTES 1024

static MPI_Op const handles[OSC_OPS] = {
    [OSC_SUM] = MPI_SUM,       [OSC_REPLACE] = MPI_REPLACE, [OSC_NO_OP] = MPI_NO_OP, [OSC_BAND] = MPI_BAND,
    [OSC_BOR] = MPI_BOR,       [OSC_BXOR] = MPI_BXOR,       [OSC_MAX] = MPI_MAX,     [OSC_MIN] = MPI_MIN,
    [OSC_PROD] = MPI_PROD,     [OSC_LAND] = MPI_LAND,       [OSC_LOR] = MPI_LOR,     [OSC_LXOR] = MPI_LXOR,
    [OSC_MAXLOC] = MPI_MAXLOC, [OSC_MINLOC] = MPI_MINLOC,
};

osc_op_t ompi_osc_dimmnet_op(MPI_Op op)
{
    int i = 0;

    while (OSC_OPS > i && op != handles[i]) {
        i++;
    }
    return (osc_op_t) i;
}

MPI_Op ompi_osc_dimmnet_op_handle(osc_op_t op)
{
    return handles[op];
}

osc_element_t ompi_osc_dimmnet_element(ompi_datatype_t *type)
{
    ompi_datatype_t *basic =
        ompi_datatype_is_predefined(type) ? type : ompi_datatype_get_single_predefined_type_from_args(type);
    osc_element_t element = {.type = basic};

    if (NULL == basic) {
        /* Of several kinds: only MPI_REPLACE and MPI_NO_OP get here, which take them as bytes. */
        element.size = element.extent = element.align = 1;
        element.words = true;
        return element;
    }
    element.size = (uint32_t) basic->super.size;
    element.extent = (uint32_t) (basic->super.ub - basic->super.lb);
    element.align = 0 == basic->super.align ? 1 : basic->super.align;
    if (32 > basic->super.id && 0 != (OSC_WORD_IDS & 1u << basic->super.id)) {
        element.words = 8 >= element.size;
        element.is_signed = 0 != (OSC_SIGNED_IDS & 1u << basic->super.id);
    }
    return element;
}

/** What an operation makes of a word; both come extended to 64 bits. */
static inline uint64_t combine(osc_op_t op, bool is_signed, uint64_t old, uint64_t operand)
{
    const bool less = is_signed ? (int64_t) old < (int64_t) operand : old < operand;

    switch (op) {
    case OSC_SUM:
        return old + operand;
    case OSC_BAND:
        return old & operand;
    case OSC_BOR:
        return old | operand;
    case OSC_BXOR:
        return old ^ operand;
    case OSC_MAX:
        return less ? operand : old;
    case OSC_MIN:
        return less ? old : operand;
    case OSC_PROD:
        return old * operand;
    case OSC_LAND:
        return 0 != old && 0 != operand;
    case OSC_LOR:
        return 0 != old || 0 != operand;
    case OSC_LXOR:
        return (0 != old) != (0 != operand);
    default:
        return operand;
    }
}

/** Words of each size: bits, unsigned type, signed type. */
#define WORDS(X)             \
    X(8, uint8_t, int8_t)    \
    X(16, uint16_t, int16_t) \
    X(32, uint32_t, int32_t) \
    X(64, uint64_t, int64_t)

/**
 * change_*: a word by one atomic instruction, or by a loop around one; what was there goes to @p result.
 * plain_row_*: while nobody else looks at them, of any alignment; a loop for each of the operations that vectors have.
 */
#define CHANGE(bits, word_t, signed_t)                                                                       \
    static inline word_t combine_##bits(osc_op_t op, bool is_signed, word_t old, word_t operand)             \
    {                                                                                                        \
        return (word_t) (is_signed                                                                           \
                             ? combine(op, true, (uint64_t) (signed_t) old, (uint64_t) (signed_t) operand)   \
                             : combine(op, false, old, operand));                                            \
    }                                                                                                        \
                                                                                                             \
    static inline word_t change_##bits(osc_op_t op, bool is_signed, word_t *at, word_t operand)              \
    {                                                                                                        \
        word_t old;                                                                                          \
                                                                                                             \
        switch (op) {                                                                                        \
        case OSC_SUM:                                                                                        \
            return __atomic_fetch_add(at, operand, __ATOMIC_SEQ_CST);                                        \
        case OSC_REPLACE:                                                                                    \
            return __atomic_exchange_n(at, operand, __ATOMIC_SEQ_CST);                                       \
        case OSC_NO_OP:                                                                                      \
            return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                    \
        case OSC_BAND:                                                                                       \
            return __atomic_fetch_and(at, operand, __ATOMIC_SEQ_CST);                                        \
        case OSC_BOR:                                                                                        \
            return __atomic_fetch_or(at, operand, __ATOMIC_SEQ_CST);                                         \
        case OSC_BXOR:                                                                                       \
            return __atomic_fetch_xor(at, operand, __ATOMIC_SEQ_CST);                                        \
        default:                                                                                             \
            old = __atomic_load_n(at, __ATOMIC_RELAXED);                                                     \
            while (!__atomic_compare_exchange_n(at, &old, combine_##bits(op, is_signed, old, operand), true, \
                                                __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {                       \
            }                                                                                                \
            return old;                                                                                      \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    static void change_one_##bits(osc_op_t op, bool is_signed, void *at, const void *operand, void *result)  \
    {                                                                                                        \
        word_t word = 0;                                                                                     \
                                                                                                             \
        if (OSC_NO_OP != op) {                                                                               \
            memcpy(&word, operand, sizeof(word));                                                            \
        }                                                                                                    \
        word = change_##bits(op, is_signed, at, word);                                                       \
        if (NULL != result) {                                                                                \
            memcpy(result, &word, sizeof(word));                                                             \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    static inline __attribute__((always_inline)) void plain_by_##bits(                                       \
        osc_op_t op, bool is_signed, uint8_t *at, const uint8_t *operand, uint64_t n)                        \
    {                                                                                                        \
        for (uint64_t i = 0; i < n * sizeof(word_t); i += sizeof(word_t)) {                                  \
            word_t old, word;                                                                                \
                                                                                                             \
            memcpy(&old, at + i, sizeof(old));                                                               \
            memcpy(&word, operand + i, sizeof(word));                                                        \
            word = combine_##bits(op, is_signed, old, word);                                                 \
            memcpy(at + i, &word, sizeof(word));                                                             \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    static void plain_row_##bits(osc_op_t op, bool is_signed, uint8_t *at, const uint8_t *operand,           \
                                 uint64_t n)                                                                 \
    {                                                                                                        \
        switch (op) {                                                                                        \
        case OSC_SUM:                                                                                        \
            plain_by_##bits(OSC_SUM, false, at, operand, n);                                                 \
            break;                                                                                           \
        case OSC_BAND:                                                                                       \
            plain_by_##bits(OSC_BAND, false, at, operand, n);                                                \
            break;                                                                                           \
        case OSC_BOR:                                                                                        \
            plain_by_##bits(OSC_BOR, false, at, operand, n);                                                 \
            break;                                                                                           \
        case OSC_BXOR:                                                                                       \
            plain_by_##bits(OSC_BXOR, false, at, operand, n);                                                \
            break;                                                                                           \
        default:                                                                                             \
            plain_by_##bits(op, is_signed, at, operand, n);                                                  \
            break;                                                                                           \
        }                                                                                                    \
    }
WORDS(CHANGE)

/** One aligned word. */
static void change_word(const osc_element_t *element, osc_op_t op, void *at, const void *operand,
                        void *result)
{
    switch (element->size) {
    case 1:
        change_one_8(op, element->is_signed, at, operand, result);
        break;
    case 2:
        change_one_16(op, element->is_signed, at, operand, result);
        break;
    case 4:
        change_one_32(op, element->is_signed, at, operand, result);
        break;
    default:
        change_one_64(op, element->is_signed, at, operand, result);
        break;
    }
}

uint64_t ompi_osc_dimmnet_swap_word(void *at, uint32_t size, uint64_t compare, uint64_t value)
{
    uint8_t c8 = (uint8_t) compare;
    uint16_t c16 = (uint16_t) compare;
    uint32_t c32 = (uint32_t) compare;

    switch (size) {
    case 1:
        __atomic_compare_exchange_n((uint8_t *) at, &c8, (uint8_t) value, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        return c8;
    case 2:
        __atomic_compare_exchange_n((uint16_t *) at, &c16, (uint16_t) value, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        return c16;
    case 4:
        __atomic_compare_exchange_n((uint32_t *) at, &c32, (uint32_t) value, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        return c32;
    default:
        __atomic_compare_exchange_n((uint64_t *) at, &compare, value, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        return compare;
    }
}

/**
 * Words that nobody else looks at now. Not by MPI's own loops: those of Open MPI 4.1 stop at the greatest number when sums of
 * 8 or 16 bits overflow in a vector (op/avx), where the atomic instructions, and C, wrap around.
 */
static void plain_words(const osc_element_t *element, osc_op_t op, void *at, const void *operand, uint64_t n)
{
    switch (element->size) {
    case 1:
        plain_row_8(op, element->is_signed, at, operand, n);
        break;
    case 2:
        plain_row_16(op, element->is_signed, at, operand, n);
        break;
    case 4:
        plain_row_32(op, element->is_signed, at, operand, n);
        break;
    default:
        plain_row_64(op, element->is_signed, at, operand, n);
        break;
    }
}

/** MPI's own loops, where nobody else is. Both sides are aligned. */
static void reduce(const osc_element_t *element, osc_op_t op, void *at, const void *operand, uint64_t n)
{
    while (0 != n) {
        const int some = INT32_MAX < n ? INT32_MAX : (int) n;

        (void) PMPI_Reduce_local(operand, at, some, element->type, handles[op]);
        at = (uint8_t *) at + (uint64_t) some * element->extent;
        operand = (const uint8_t *) operand + (uint64_t) some * element->extent;
        n -= (uint64_t) some;
    }
}

/** The same by way of aligned memory. */
static void reduce_unaligned(const osc_element_t *element, osc_op_t op, uint8_t *at, const uint8_t *operand,
                             uint64_t n)
{
    uint8_t old[ALIGNED_BYTES] __attribute__((aligned(64)));
    uint8_t value[ALIGNED_BYTES] __attribute__((aligned(64)));

    while (0 != n) {
        const uint64_t most = sizeof(old) / element->extent;
        const uint64_t some = most < n ? most : n;
        const uint64_t bytes = some * element->extent;

        memcpy(old, at, bytes);
        memcpy(value, operand, bytes);
        reduce(element, op, old, value, some);
        memcpy(at, old, bytes);
        at += bytes;
        operand += bytes;
        n -= some;
    }
}

void ompi_osc_dimmnet_apply_alone(const osc_element_t *element, osc_op_t op, void *at, const void *operand,
                                  void *result, uint64_t n)
{
    const uint64_t bytes = n * element->size;

    if (NULL != result) {
        memcpy(result, at, bytes);
    }
    if (OSC_REPLACE == op) {
        memcpy(at, operand, bytes);
    } else if (OSC_NO_OP == op) {
        return;
    } else if (element->words) {
        plain_words(element, op, at, operand, n);
    } else if (0 == (((uintptr_t) at | (uintptr_t) operand) & (element->align - 1))) {
        reduce(element, op, at, operand, n);
    } else {
        reduce_unaligned(element, op, at, operand, n);
    }
}

/** Aligned words, cell by cell. */
static void change_cells(const osc_element_t *element, osc_op_t op, void *at, const void *operand,
                         void *result, uint64_t len)
{
    osc_cells_t cells = {.element = *element, .op = op};

    ompi_osc_dimmnet_cells_add(&cells, at, operand, result, len);
    ompi_osc_dimmnet_cells_end(&cells);
}

int ompi_osc_dimmnet_apply(const osc_guard_t *guard, const osc_element_t *element, osc_op_t op, void *at,
                           const void *operand, void *result, uint64_t n)
{
    const uint64_t len = n * element->size;
    const bool by_words = NULL != guard->control && osc_is_word(element, at);

    if (by_words && 1 == n) {
        change_word(element, op, at, operand, result);
        return OMPI_SUCCESS;
    }
    if (by_words && osc_in_cell(at, len)) {
        change_cells(element, op, at, operand, result, len);
        return OMPI_SUCCESS;
    }
    const int rc = osc_guard_enter(guard);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (by_words) {
        change_cells(element, op, at, operand, result, len);
    } else {
        ompi_osc_dimmnet_apply_alone(element, op, at, operand, result, n);
    }
    osc_guard_leave(guard);
    return OMPI_SUCCESS;
}

int ompi_osc_dimmnet_compare(const osc_guard_t *guard, const osc_element_t *element, void *at,
                             const void *value, const void *compare, void *old)
{
    int rc = OMPI_SUCCESS;
    uint64_t wanted = 0;
    uint64_t stored = 0;
    uint64_t found = 0;

    memcpy(&stored, value, element->size);
    memcpy(&wanted, compare, element->size);
    if (OPAL_LIKELY(osc_is_word(element, at))) {
        found = ompi_osc_dimmnet_swap_word(at, element->size, wanted, stored);
    } else {
        rc = osc_guard_enter(guard);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        memcpy(&found, at, element->size);
        if (found == wanted) {
            memcpy(at, &stored, element->size);
        }
        osc_guard_leave(guard);
    }
    memcpy(old, &found, element->size);
    return rc;
}
