/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_cell.h"

/** Bytes that are changed at a time where elements are first copied to aligned memory. */
#define DN_ACC_ALIGNED_BYTES 1024

/** The result of an operation on a word. Word and operand come extended to 64 bits. */
static inline uint64_t dn_acc_combine(dn_acc_op_t op, int is_signed, uint64_t old, uint64_t operand)
{
    const int less = is_signed ? (int64_t) old < (int64_t) operand : old < operand;

    switch (op) {
    case DN_ACC_SUM:
        return old + operand;
    case DN_ACC_BAND:
        return old & operand;
    case DN_ACC_BOR:
        return old | operand;
    case DN_ACC_BXOR:
        return old ^ operand;
    case DN_ACC_MAX:
        return less ? operand : old;
    case DN_ACC_MIN:
        return less ? old : operand;
    case DN_ACC_PROD:
        return old * operand;
    case DN_ACC_LAND:
        return 0 != old && 0 != operand;
    case DN_ACC_LOR:
        return 0 != old || 0 != operand;
    case DN_ACC_LXOR:
        return (0 != old) != (0 != operand);
    default:
        return operand;
    }
}

/** Sums of the words of @p size bytes, less than 8, that lie in two larger ones: no carry crosses the highest bit of a word. */
static inline uint64_t dn_acc_sums(uint32_t size, uint64_t old, uint64_t operand)
{
    const uint64_t highest = 1 == size   ? 0x8080808080808080u
                             : 2 == size ? 0x8000800080008000u
                                         : 0x8000000080000000u;

    return ((old & ~highest) + (operand & ~highest)) ^ ((old ^ operand) & highest);
}

/** Four steps of a loop in one, which the compiler does not make by itself. With wide registers a step takes less time than to count it
 * (perf/dn_rma, acc_latency of 512 B to 8 KiB). */
#define DN_ACC_UNROLL _Pragma("GCC unroll 4")

/** Words of each size: bits, unsigned type, signed type. */
#define DN_ACC_WORDS(X)      \
    X(8, uint8_t, int8_t)    \
    X(16, uint16_t, int16_t) \
    X(32, uint32_t, int32_t) \
    X(64, uint64_t, int64_t)

/**
 * dn_acc_change_one_*: change an aligned word by one atomic instruction; the old value goes to @p result.
 * dn_acc_change_by_*: the same by a loop around compare and swap; the word may hold several elements.
 * dn_acc_plain_by_*: change words of any alignment that no other thread or process uses now.
 */
#define DN_ACC_CHANGE(bits, word_t, signed_t)                                                             \
    static inline word_t dn_acc_combine_##bits(dn_acc_op_t op, int is_signed, word_t old, word_t operand) \
    {                                                                                                     \
        return (word_t) (is_signed ? dn_acc_combine(op, 1, (uint64_t) (signed_t) old,                     \
                                                    (uint64_t) (signed_t) operand)                        \
                                   : dn_acc_combine(op, 0, old, operand));                                \
    }                                                                                                     \
                                                                                                          \
    static inline void dn_acc_change_one_##bits(dn_acc_op_t op, word_t *at, const void *operand,          \
                                                void *result)                                             \
    {                                                                                                     \
        word_t word = 0;                                                                                  \
                                                                                                          \
        if (DN_ACC_NO_OP != op) {                                                                         \
            memcpy(&word, operand, sizeof(word));                                                         \
        }                                                                                                 \
        switch (op) {                                                                                     \
        case DN_ACC_SUM:                                                                                  \
            word = dn_fetch_add_seq_cst(at, word);                                                        \
            break;                                                                                        \
        case DN_ACC_REPLACE:                                                                              \
            word = dn_swap_seq_cst(at, word);                                                             \
            break;                                                                                        \
        case DN_ACC_BAND:                                                                                 \
            word = dn_fetch_and_seq_cst(at, word);                                                        \
            break;                                                                                        \
        case DN_ACC_BOR:                                                                                  \
            word = dn_fetch_or_seq_cst(at, word);                                                         \
            break;                                                                                        \
        case DN_ACC_BXOR:                                                                                 \
            word = dn_fetch_xor_seq_cst(at, word);                                                        \
            break;                                                                                        \
        default:                                                                                          \
            word = dn_load_seq_cst(at);                                                                   \
            break;                                                                                        \
        }                                                                                                 \
        if (NULL != result) {                                                                             \
            memcpy(result, &word, sizeof(word));                                                          \
        }                                                                                                 \
    }                                                                                                     \
                                                                                                          \
    static inline word_t dn_acc_next_##bits(const dn_element_t *element, dn_acc_op_t op, word_t old,      \
                                            word_t word)                                                  \
    {                                                                                                     \
        if (sizeof(word) == element->size) {                                                              \
            return dn_acc_combine_##bits(op, dn_element_is_signed(element), old, word);                   \
        }                                                                                                 \
        return (word_t) (DN_ACC_SUM == op ? dn_acc_sums(element->size, old, word)                         \
                                          : dn_cells_combine(element, op, old, word));                    \
    }                                                                                                     \
                                                                                                          \
    static void dn_acc_change_by_##bits(const dn_element_t *element, dn_acc_op_t op, word_t *at,          \
                                        const void *operand, void *result)                                \
    {                                                                                                     \
        word_t old = dn_load_relaxed(at), word;                                                           \
                                                                                                          \
        memcpy(&word, operand, sizeof(word));                                                             \
        while (!dn_cas_weak_seq_cst(at, &old, dn_acc_next_##bits(element, op, old, word))) {              \
        }                                                                                                 \
        if (NULL != result) {                                                                             \
            memcpy(result, &old, sizeof(old));                                                            \
        }                                                                                                 \
    }                                                                                                     \
                                                                                                          \
    static void dn_acc_swap_one_##bits(void *at, const void *value, const void *compare, void *old)       \
    {                                                                                                     \
        word_t found, stored;                                                                             \
                                                                                                          \
        memcpy(&found, compare, sizeof(found));                                                           \
        memcpy(&stored, value, sizeof(stored));                                                           \
        (void) dn_cas_seq_cst((word_t *) at, &found, stored);                                             \
        memcpy(old, &found, sizeof(found));                                                               \
    }                                                                                                     \
                                                                                                          \
    static inline __attribute__((always_inline)) void dn_acc_plain_by_##bits(                             \
        dn_acc_op_t op, int is_signed, uint8_t *at, const uint8_t *operand, uint64_t n)                   \
    {                                                                                                     \
        DN_ACC_UNROLL                                                                                     \
        for (uint64_t i = 0; i < n * sizeof(word_t); i += sizeof(word_t)) {                               \
            word_t old, word;                                                                             \
                                                                                                          \
            memcpy(&old, at + i, sizeof(old));                                                            \
            memcpy(&word, operand + i, sizeof(word));                                                     \
            word = dn_acc_combine_##bits(op, is_signed, old, word);                                       \
            memcpy(at + i, &word, sizeof(word));                                                          \
        }                                                                                                 \
    }
DN_ACC_WORDS(DN_ACC_CHANGE)
#undef DN_ACC_CHANGE
#undef DN_ACC_WORDS

/** For fewer bytes it does not pay to ask for wider registers. */
#define DN_ACC_WIDE_MIN 64

#if defined(__x86_64__)
/** Attribute of functions for processors with wider registers. */
#    define DN_ACC_WIDE __attribute__((target("avx2")))
/** Does this processor have them, and are they worth it for so many bytes? */
static inline int dn_acc_is_wide(uint64_t len)
{
    return DN_ACC_WIDE_MIN <= len && __builtin_cpu_supports("avx2");
}
#else
#    define DN_ACC_WIDE
static inline int dn_acc_is_wide(uint64_t len)
{
    (void) len;
    return 0;
}
#endif

/** Change a row of words of any alignment that no other thread or process uses now: one loop for each operation that vectors have.
 * @param attributes  Instructions that the compiler may use. */
#define DN_ACC_WORD_ROW(bits, name, attributes)                                          \
    attributes static void dn_acc_row_##name(dn_acc_op_t op, int is_signed, uint8_t *at, \
                                             const uint8_t *operand, uint64_t n)         \
    {                                                                                    \
        switch (op) {                                                                    \
        case DN_ACC_SUM:                                                                 \
            dn_acc_plain_by_##bits(DN_ACC_SUM, 0, at, operand, n);                       \
            break;                                                                       \
        case DN_ACC_BAND:                                                                \
            dn_acc_plain_by_##bits(DN_ACC_BAND, 0, at, operand, n);                      \
            break;                                                                       \
        case DN_ACC_BOR:                                                                 \
            dn_acc_plain_by_##bits(DN_ACC_BOR, 0, at, operand, n);                       \
            break;                                                                       \
        case DN_ACC_BXOR:                                                                \
            dn_acc_plain_by_##bits(DN_ACC_BXOR, 0, at, operand, n);                      \
            break;                                                                       \
        default:                                                                         \
            dn_acc_plain_by_##bits(op, is_signed, at, operand, n);                       \
            break;                                                                       \
        }                                                                                \
    }
DN_ACC_WORD_ROW(8, 8, )
DN_ACC_WORD_ROW(16, 16, )
DN_ACC_WORD_ROW(32, 32, )
DN_ACC_WORD_ROW(64, 64, )
DN_ACC_WORD_ROW(8, wide_8, DN_ACC_WIDE)
DN_ACC_WORD_ROW(16, wide_16, DN_ACC_WIDE)
DN_ACC_WORD_ROW(32, wide_32, DN_ACC_WIDE)
DN_ACC_WORD_ROW(64, wide_64, DN_ACC_WIDE)
#undef DN_ACC_WORD_ROW

/** Do these bytes together make one aligned word, of the element's size or larger? */
static inline int dn_acc_is_one_word(const void *at, uint64_t len)
{
    return sizeof(uint64_t) >= len && 0 == (((uintptr_t) at | len) & (len - 1));
}

/**
 * Is there one atomic instruction for the operation on these bytes? For some operations it does not matter how many elements the bytes
 * hold.
 */
static inline int dn_acc_has_instruction(const dn_element_t *element, dn_acc_op_t op, const void *at,
                                         uint64_t len)
{
    return DN_ACC_ATOMIC >= op && (element->size == len || (DN_ACC_SUM != op && dn_acc_is_one_word(at, len)));
}

/** Change one aligned word by one atomic instruction. */
static inline __attribute__((always_inline)) void dn_acc_change_one(uint64_t len, dn_acc_op_t op, void *at,
                                                                    const void *operand, void *result)
{
    switch (len) {
    case 1:
        dn_acc_change_one_8(op, at, operand, result);
        break;
    case 2:
        dn_acc_change_one_16(op, at, operand, result);
        break;
    case 4:
        dn_acc_change_one_32(op, at, operand, result);
        break;
    default:
        dn_acc_change_one_64(op, at, operand, result);
        break;
    }
}

/** Change elements that together make one aligned word, by any operation. */
static void dn_acc_change_word(const dn_element_t *element, dn_acc_op_t op, void *at, const void *operand,
                               void *result, uint64_t len)
{
    if (dn_acc_has_instruction(element, op, at, len)) {
        dn_acc_change_one(len, op, at, operand, result);
        return;
    }
    switch (len) {
    case 1:
        dn_acc_change_by_8(element, op, at, operand, result);
        break;
    case 2:
        dn_acc_change_by_16(element, op, at, operand, result);
        break;
    case 4:
        dn_acc_change_by_32(element, op, at, operand, result);
        break;
    default:
        dn_acc_change_by_64(element, op, at, operand, result);
        break;
    }
}

/** One aligned word: store @p value if @p compare is there. */
static void dn_acc_swap_word(uint32_t size, void *at, const void *value, const void *compare, void *old)
{
    switch (size) {
    case 1:
        dn_acc_swap_one_8(at, value, compare, old);
        break;
    case 2:
        dn_acc_swap_one_16(at, value, compare, old);
        break;
    case 4:
        dn_acc_swap_one_32(at, value, compare, old);
        break;
    default:
        dn_acc_swap_one_64(at, value, compare, old);
        break;
    }
}

/** Change words that no other thread or process uses now. Sums wrap around, as those of the atomic instructions do. */
static void dn_acc_plain_words(const dn_element_t *element, dn_acc_op_t op, void *at, const void *operand,
                               uint64_t n)
{
    const int is_signed = dn_element_is_signed(element), wide = dn_acc_is_wide(n * element->size);

    switch (element->size) {
    case 1:
        (wide ? dn_acc_row_wide_8 : dn_acc_row_8)(op, is_signed, at, operand, n);
        break;
    case 2:
        (wide ? dn_acc_row_wide_16 : dn_acc_row_16)(op, is_signed, at, operand, n);
        break;
    case 4:
        (wide ? dn_acc_row_wide_32 : dn_acc_row_32)(op, is_signed, at, operand, n);
        break;
    default:
        (wide ? dn_acc_row_wide_64 : dn_acc_row_64)(op, is_signed, at, operand, n);
        break;
    }
}

/** Change floating-point numbers of any alignment that no other thread or process uses now: one loop for each operation. */
#define DN_ACC_FLOAT(bits, float_t)                                                                 \
    static inline float_t dn_acc_float_combine_##bits(dn_acc_op_t op, float_t old, float_t operand) \
    {                                                                                               \
        switch (op) {                                                                               \
        case DN_ACC_SUM:                                                                            \
            return old + operand;                                                                   \
        case DN_ACC_PROD:                                                                           \
            return old * operand;                                                                   \
        case DN_ACC_MAX:                                                                            \
            return old > operand ? old : operand;                                                   \
        default:                                                                                    \
            return old < operand ? old : operand;                                                   \
        }                                                                                           \
    }                                                                                               \
                                                                                                    \
    static inline __attribute__((always_inline)) void dn_acc_float_by_##bits(                       \
        dn_acc_op_t op, uint8_t *at, const uint8_t *operand, uint64_t n)                            \
    {                                                                                               \
        DN_ACC_UNROLL                                                                               \
        for (uint64_t i = 0; i < n * sizeof(float_t); i += sizeof(float_t)) {                       \
            float_t old, value;                                                                     \
                                                                                                    \
            memcpy(&old, at + i, sizeof(old));                                                      \
            memcpy(&value, operand + i, sizeof(value));                                             \
            value = dn_acc_float_combine_##bits(op, old, value);                                    \
            memcpy(at + i, &value, sizeof(value));                                                  \
        }                                                                                           \
    }
DN_ACC_FLOAT(32, float)
DN_ACC_FLOAT(64, double)
#undef DN_ACC_FLOAT

/** Change a row of floating-point numbers. @param attributes  Instructions that the compiler may use. */
#define DN_ACC_FLOAT_ROW(bits, name, attributes)                                                        \
    attributes static void dn_acc_float_row_##name(dn_acc_op_t op, uint8_t *at, const uint8_t *operand, \
                                                   uint64_t n)                                          \
    {                                                                                                   \
        switch (op) {                                                                                   \
        case DN_ACC_SUM:                                                                                \
            dn_acc_float_by_##bits(DN_ACC_SUM, at, operand, n);                                         \
            break;                                                                                      \
        case DN_ACC_PROD:                                                                               \
            dn_acc_float_by_##bits(DN_ACC_PROD, at, operand, n);                                        \
            break;                                                                                      \
        case DN_ACC_MAX:                                                                                \
            dn_acc_float_by_##bits(DN_ACC_MAX, at, operand, n);                                         \
            break;                                                                                      \
        default:                                                                                        \
            dn_acc_float_by_##bits(DN_ACC_MIN, at, operand, n);                                         \
            break;                                                                                      \
        }                                                                                               \
    }
DN_ACC_FLOAT_ROW(32, 32, )
DN_ACC_FLOAT_ROW(64, 64, )
DN_ACC_FLOAT_ROW(32, wide_32, DN_ACC_WIDE)
DN_ACC_FLOAT_ROW(64, wide_64, DN_ACC_WIDE)
#undef DN_ACC_FLOAT_ROW

static void dn_acc_floats(uint32_t size, dn_acc_op_t op, uint8_t *at, const uint8_t *operand, uint64_t n)
{
    if (dn_acc_is_wide(n * size)) {
        (sizeof(float) == size ? dn_acc_float_row_wide_32 : dn_acc_float_row_wide_64)(op, at, operand, n);
    } else {
        (sizeof(float) == size ? dn_acc_float_row_32 : dn_acc_float_row_64)(op, at, operand, n);
    }
}

/** Change foreign elements that are not aligned, in a copy that is aligned. */
static void dn_acc_reduce_unaligned(const dn_element_t *element, dn_acc_op_t op, uint8_t *at,
                                    const uint8_t *operand, uint64_t n)
{
    uint8_t old[DN_ACC_ALIGNED_BYTES] __attribute__((aligned(64)));
    uint8_t value[DN_ACC_ALIGNED_BYTES] __attribute__((aligned(64)));

    while (0 != n) {
        const uint64_t most = sizeof(old) / element->extent;
        const uint64_t some = most < n ? most : n;
        const uint64_t bytes = some * element->extent;

        memcpy(old, at, bytes);
        memcpy(value, operand, bytes);
        element->reduce(element->arg, op, old, value, some);
        memcpy(at, old, bytes);
        at += bytes;
        operand += bytes;
        n -= some;
    }
}

/** Copy elements. For one number of 8 bytes, which is frequent, there is no call of memcpy(). */
static inline void dn_acc_copy(void *to, const void *from, uint64_t bytes)
{
    uint64_t word;

    if (sizeof(word) == bytes) {
        memcpy(&word, from, sizeof(word));
        memcpy(to, &word, sizeof(word));
    } else {
        memcpy(to, from, bytes);
    }
}

/** As dn_acc_apply_alone(). */
static inline void dn_acc_alone(const dn_element_t *element, dn_acc_op_t op, void *at, const void *operand,
                                void *result, uint64_t n)
{
    const uint64_t bytes = n * element->size;

    if (NULL != result) {
        dn_acc_copy(result, at, bytes);
    }
    if (DN_ACC_REPLACE == op) {
        dn_acc_copy(at, operand, bytes);
    } else if (DN_ACC_NO_OP == op) {
        return;
    } else if (DN_ELEMENT_FLOAT == element->kind) {
        dn_acc_floats(element->size, op, at, operand, n);
    } else if (dn_element_has_words(element)) {
        dn_acc_plain_words(element, op, at, operand, n);
    } else if (0 == (((uintptr_t) at | (uintptr_t) operand) & (element->align - 1))) {
        element->reduce(element->arg, op, at, operand, n);
    } else {
        dn_acc_reduce_unaligned(element, op, at, operand, n);
    }
}

void dn_acc_apply_alone(const dn_element_t *element, dn_acc_op_t op, void *at, const void *operand,
                        void *result, uint64_t n)
{
    dn_acc_alone(element, op, at, operand, result, n);
}

/** Change aligned words, cell by cell. */
static void dn_acc_change_cells(const dn_element_t *element, dn_acc_op_t op, void *at, const void *operand,
                                void *result, uint64_t len)
{
    dn_cells_t cells;

    dn_cells_open(&cells, element, op);
    dn_cells_add(&cells, at, operand, result, len);
    dn_cells_end(&cells);
}

/** The rest of dn_acc_apply() for aligned words in one cell, inside the gate. */
static __attribute__((noinline)) dn_status_t dn_acc_apply_inside(const dn_guard_t *guard,
                                                                 const dn_element_t *element, dn_acc_op_t op,
                                                                 void *at, const void *operand, void *result,
                                                                 uint64_t n)
{
    const uint64_t len = n * element->size;

    if (dn_acc_is_one_word(at, len)) {
        dn_acc_change_word(element, op, at, operand, result, len);
    } else {
        dn_acc_change_cells(element, op, at, operand, result, len);
    }
    dn_gate_leave(guard);
    return DN_OK;
}

/** The rest of dn_acc_apply(), with the guard: the change takes more than one instruction, or the gate is closed. */
static __attribute__((noinline)) dn_status_t dn_acc_apply_guarded(const dn_guard_t *guard,
                                                                  const dn_element_t *element, dn_acc_op_t op,
                                                                  void *at, const void *operand, void *result,
                                                                  uint64_t n)
{
    const uint64_t len = n * element->size;
    const dn_status_t status = dn_guard_enter(guard);

    if (DN_OK != status) {
        return status;
    }
    if (NULL == guard->word || !dn_element_is_word(element, at)) {
        dn_acc_alone(element, op, at, operand, result, n);
    } else if (1 == n) {
        /* Also where others are kept off: the memory's owner may poll the word. */
        (void) dn_guard_close(guard, len);
        dn_acc_change_word(element, op, at, operand, result, len);
    } else if (dn_guard_close(guard, len)) {
        dn_acc_alone(element, op, at, operand, result, n);
    } else {
        dn_acc_change_cells(element, op, at, operand, result, len);
    }
    dn_guard_leave(guard);
    return DN_OK;
}

dn_status_t dn_acc_apply(const dn_guard_t *guard, const dn_element_t *element, dn_acc_op_t op, void *at,
                         const void *operand, void *result, uint64_t n)
{
    const uint64_t len = n * element->size;

    if (NULL == guard->word || !dn_element_is_word(element, at) || !dn_cell_holds(at, len)
        || !dn_gate_enter(guard)) {
        return dn_acc_apply_guarded(guard, element, op, at, operand, result, n);
    }
    if (!dn_acc_has_instruction(element, op, at, len)) {
        return dn_acc_apply_inside(guard, element, op, at, operand, result, n);
    }
    dn_acc_change_one(len, op, at, operand, result);
    dn_gate_leave(guard);
    return DN_OK;
}

dn_status_t dn_acc_swap(const dn_guard_t *guard, const dn_element_t *element, void *at, const void *value,
                        const void *compare, void *old)
{
    const int is_word = dn_element_is_word(element, at);
    uint64_t found;

    if (is_word && dn_gate_enter(guard)) {
        dn_acc_swap_word(element->size, at, value, compare, old);
        dn_gate_leave(guard);
        return DN_OK;
    }
    const dn_status_t status = dn_guard_enter(guard);
    if (DN_OK != status) {
        return status;
    }
    if (is_word) {
        (void) dn_guard_close(guard, element->size);
        dn_acc_swap_word(element->size, at, value, compare, old);
    } else {
        memcpy(&found, at, element->size);
        if (0 == memcmp(&found, compare, element->size)) {
            memcpy(at, value, element->size);
        }
        memcpy(old, &found, element->size);
    }
    dn_guard_leave(guard);
    return DN_OK;
}
