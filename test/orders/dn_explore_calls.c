/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The calls that a compiler makes for a thread sanitizer, answered by the model of memory.
 */
#include "dn_config.h"

#include "dn_explore_int.h"

#include <string.h>

#define DN_EXPLORE_PLAIN(size)                       \
    void __tsan_read##size(const void *at)           \
    {                                                \
        dn_explore_access(at, size, 0);              \
    }                                                \
    void __tsan_write##size(void *at)                \
    {                                                \
        dn_explore_access(at, size, 1);              \
    }                                                \
    void __tsan_unaligned_read##size(const void *at) \
    {                                                \
        dn_explore_access(at, size, 0);              \
    }                                                \
    void __tsan_unaligned_write##size(void *at)      \
    {                                                \
        dn_explore_access(at, size, 1);              \
    }
DN_EXPLORE_PLAIN(1)
DN_EXPLORE_PLAIN(2)
DN_EXPLORE_PLAIN(4)
DN_EXPLORE_PLAIN(8)
DN_EXPLORE_PLAIN(16)

void __tsan_read_range(const void *at, size_t len)
{
    dn_explore_access(at, len, 0);
}

void __tsan_write_range(void *at, size_t len)
{
    dn_explore_access(at, len, 1);
}

/* Words that threads do not share are those of one thread. */
#define DN_EXPLORE_ATOMIC(bits)                                                                    \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)        \
    {                                                                                              \
        const int index = dn_explore_find(at, sizeof(*at));                                        \
        return DN_EXPLORE_NO_WORD == index ? *at : (uint##bits##_t) dn_explore_load(index, order); \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value, int order) \
    {                                                                                              \
        const int index = dn_explore_find(at, sizeof(*at));                                        \
        if (DN_EXPLORE_NO_WORD == index) {                                                         \
            dn_explore_access((const void *) at, sizeof(*at), 1);                                  \
            *at = value;                                                                           \
        } else {                                                                                   \
            dn_explore_store(index, value, order);                                                 \
        }                                                                                          \
    }
DN_EXPLORE_ATOMIC(8)
DN_EXPLORE_ATOMIC(16)
DN_EXPLORE_ATOMIC(32)
DN_EXPLORE_ATOMIC(64)

/** The locks of private memory are free. */
int __tsan_atomic32_compare_exchange_strong(volatile uint32_t *at, uint32_t *expected, uint32_t desired,
                                            int order, int failed)
{
    const int equal = *at == *expected;

    dn_explore_check(!dn_explore_is_shared((const void *) at),
                     "an exchange in shared memory is not explored");
    if (equal) {
        *at = desired;
    } else {
        *expected = *at;
    }
    return equal;
}

/** Change a word of this process's own memory. */
#define EXPLORE_CHANGE(bits, name, operator)                                                               \
    uint##bits##_t __tsan_atomic##bits##_fetch_##name(volatile uint##bits##_t *at, uint##bits##_t operand, \
                                                      int order)                                           \
    {                                                                                                      \
        const uint##bits##_t old = *at;                                                                    \
                                                                                                           \
        (void) order;                                                                                      \
        dn_explore_check(!dn_explore_is_shared((const void *) at),                                         \
                         "a change of a word in shared memory is not explored");                           \
        *at = old operator operand;                                                                        \
        return old;                                                                                        \
    }
EXPLORE_CHANGE(32, add, +)
EXPLORE_CHANGE(64, or, |)
EXPLORE_CHANGE(64, and, &)

void __tsan_atomic_thread_fence(int order)
{
    dn_explore_check(0, "a fence is not explored");
}

/** What a compiler keeps in order is in order here. */
void __tsan_atomic_signal_fence(int order)
{
    (void) order;
}

void __tsan_func_entry(void *caller)
{
    (void) caller;
}

void __tsan_func_exit(void) {}

void __tsan_init(void) {}

/** memcpy() of the code under test. */
void *dn_explore_copy(void *to, const void *from, size_t len);
void *dn_explore_copy(void *to, const void *from, size_t len)
{
    dn_explore_access(from, len, 0);
    dn_explore_access(to, len, 1);
    return memcpy(to, from, len);
}
