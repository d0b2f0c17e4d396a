/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_atomic.h
 * The memory model of the project: C11 orders on words that several processes map.
 *
 * A plain pointer to shared memory becomes atomic by the cast in these few functions, so that layouts
 * stay plain structs whose offsets can be asserted.
 */
#ifndef DN_ATOMIC_H
#define DN_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

#include "dn_inline.h"
#include "dn_machine.h"

/** Read a word whose new value publishes memory written before it. Pairs with dn_store_release. */
static inline uint64_t dn_load_acquire(const uint64_t *word)
{
    return atomic_load_explicit((const _Atomic uint64_t *) word, memory_order_acquire);
}

/** Publish: everything written before becomes visible no later than this word. */
static inline void dn_store_release(uint64_t *word, uint64_t value)
{
    atomic_store_explicit((_Atomic uint64_t *) word, value, memory_order_release);
}

/** Publish the low 1 to 8 bytes of a value, in one store where their number is a power of two and divides the address, else byte by
 * byte from the low end. */
static inline void dn_store_bytes(uint8_t *to, uint64_t value, size_t size)
{
    const int whole = 0 == (uintptr_t) to % size;

    if (whole && 8 == size) {
        atomic_store_explicit((_Atomic uint64_t *) (void *) to, value, memory_order_release);
    } else if (whole && 4 == size) {
        atomic_store_explicit((_Atomic uint32_t *) (void *) to, (uint32_t) value, memory_order_release);
    } else if (whole && 2 == size) {
        atomic_store_explicit((_Atomic uint16_t *) (void *) to, (uint16_t) value, memory_order_release);
    } else {
        for (size_t i = 0; i < size; i++) {
            atomic_store_explicit((_Atomic uint8_t *) to + i, (uint8_t) (value >> (8 * i)),
                                  memory_order_release);
        }
    }
}

static inline uint32_t dn_load_acquire_u32(const uint32_t *word)
{
    return atomic_load_explicit((const _Atomic uint32_t *) word, memory_order_acquire);
}

static inline void dn_store_release_u32(uint32_t *word, uint32_t value)
{
    atomic_store_explicit((_Atomic uint32_t *) word, value, memory_order_release);
}

/** Read or write a word by which nothing else is ordered, and that another thread may look at meanwhile. */
static inline uint32_t dn_load_relaxed_u32(const uint32_t *word)
{
    return atomic_load_explicit((const _Atomic uint32_t *) word, memory_order_relaxed);
}

static inline void dn_store_relaxed_u32(uint32_t *word, uint32_t value)
{
    atomic_store_explicit((_Atomic uint32_t *) word, value, memory_order_relaxed);
}

/** Claim: 1 when *word was expected and is now desired. Acquires and releases. */
static inline int dn_cas_u32(uint32_t *word, uint32_t expected, uint32_t desired)
{
    return atomic_compare_exchange_strong_explicit((_Atomic uint32_t *) word, &expected, desired,
                                                   memory_order_acq_rel, memory_order_acquire);
}

static inline int dn_cas_u64(uint64_t *word, uint64_t expected, uint64_t desired)
{
    return atomic_compare_exchange_strong_explicit((_Atomic uint64_t *) word, &expected, desired,
                                                   memory_order_acq_rel, memory_order_acquire);
}

/** Old value; acquires and releases. */
static inline uint64_t dn_fetch_add_u64(uint64_t *word, uint64_t add)
{
    return atomic_fetch_add_explicit((_Atomic uint64_t *) word, add, memory_order_acq_rel);
}

static inline uint32_t dn_fetch_add_u32(uint32_t *word, uint32_t add)
{
    return atomic_fetch_add_explicit((_Atomic uint32_t *) word, add, memory_order_acq_rel);
}

static inline uint32_t dn_fetch_or_u32(uint32_t *word, uint32_t bits)
{
    return atomic_fetch_or_explicit((_Atomic uint32_t *) word, bits, memory_order_acq_rel);
}

/** Have a line brought here to write to it. Compilers make a prefetch to read of __builtin_prefetch on plain x86-64. */
static inline void dn_prefetch_own(const void *line)
{
#if defined(__x86_64__)
    __asm__ __volatile__("prefetchw %0" : : "m"(*(const char *) line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/** A test-and-set lock; used only where several threads share a port. */
typedef struct dn_lock {
    uint32_t taken;
} dn_lock_t;

static inline int dn_trylock(dn_lock_t *lock)
{
    return dn_cas_u32(&lock->taken, 0, 1);
}

static inline void dn_lock(dn_lock_t *lock)
{
    while (!dn_trylock(lock)) {
        dn_pause();
    }
}

static inline void dn_unlock(dn_lock_t *lock)
{
    dn_store_release_u32(&lock->taken, 0);
}

#endif
