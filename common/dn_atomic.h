/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_atomic.h
 * The memory model of the project: C11 orders on words that several threads or processes use.
 *
 * All atomic accesses use the names of this file, which say their order; a test (test/lint) checks this. Only
 * dn_inline.h, which C++ programs read as well, has a load of its own. A word is a plain integer, bool or pointer, of
 * any size that the machine loads at once. The access is atomic, not the type: so layouts stay plain
 * structures, whose offsets can be asserted.
 *
 * The names without an order (dn_fetch_add(), dn_swap(), dn_cas(), dn_fence()) are of dimmnet.h, and work on
 * a peer's memory.
 */
#ifndef DN_ATOMIC_H
#define DN_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dn_inline.h"
#include "dn_machine.h"

/**
 * @name One access to the word that @p at points to
 *
 * relaxed: orders no other access. acquire: where it reads the word of a release, later accesses see what was written
 * before that release. release: what was written before is seen by an acquire that reads this word. acq_rel: acquire
 * and release. seq_cst: acquire and release, and all seq_cst accesses have one order.
 *
 * These are macros, so that each works on every type of word.
 */
/** @{ */
#define dn_load_relaxed(at)         __atomic_load_n(at, __ATOMIC_RELAXED)         /**< the word */
#define dn_load_acquire(at)         __atomic_load_n(at, __ATOMIC_ACQUIRE)         /**< the word */
#define dn_load_seq_cst(at)         __atomic_load_n(at, __ATOMIC_SEQ_CST)         /**< the word */
#define dn_store_relaxed(at, value) __atomic_store_n(at, value, __ATOMIC_RELAXED) /**< write it */
#define dn_store_release(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE) /**< write it */
#define dn_store_seq_cst(at, value) __atomic_store_n(at, value, __ATOMIC_SEQ_CST) /**< write it */

/* Change the word, and return what it was before. */
#define dn_fetch_add_relaxed(at, add)  __atomic_fetch_add(at, add, __ATOMIC_RELAXED)    /**< old word */
#define dn_fetch_add_release(at, add)  __atomic_fetch_add(at, add, __ATOMIC_RELEASE)    /**< old word */
#define dn_fetch_add_acq_rel(at, add)  __atomic_fetch_add(at, add, __ATOMIC_ACQ_REL)    /**< old word */
#define dn_fetch_add_seq_cst(at, add)  __atomic_fetch_add(at, add, __ATOMIC_SEQ_CST)    /**< old word */
#define dn_fetch_sub_release(at, less) __atomic_fetch_sub(at, less, __ATOMIC_RELEASE)   /**< old word */
#define dn_fetch_sub_seq_cst(at, less) __atomic_fetch_sub(at, less, __ATOMIC_SEQ_CST)   /**< old word */
#define dn_fetch_and_seq_cst(at, bits) __atomic_fetch_and(at, bits, __ATOMIC_SEQ_CST)   /**< old word */
#define dn_fetch_or_relaxed(at, bits)  __atomic_fetch_or(at, bits, __ATOMIC_RELAXED)    /**< old word */
#define dn_fetch_or_acq_rel(at, bits)  __atomic_fetch_or(at, bits, __ATOMIC_ACQ_REL)    /**< old word */
#define dn_fetch_or_seq_cst(at, bits)  __atomic_fetch_or(at, bits, __ATOMIC_SEQ_CST)    /**< old word */
#define dn_fetch_xor_seq_cst(at, bits) __atomic_fetch_xor(at, bits, __ATOMIC_SEQ_CST)   /**< old word */
#define dn_swap_acq_rel(at, value)     __atomic_exchange_n(at, value, __ATOMIC_ACQ_REL) /**< old word */
#define dn_swap_seq_cst(at, value)     __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST) /**< old word */

/** Store the desired value if the word is *expected. @return whether it was; if not, *expected becomes the word that was
 * found, by an acquire. */
#define dn_cas_acq_rel(at, expected, desired) \
    __atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
/** As dn_cas_acq_rel(), but seq_cst. */
#define dn_cas_seq_cst(at, expected, desired) \
    __atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
/** As dn_cas_acq_rel(), but it may fail although the word is *expected: use it in a loop. */
#define dn_cas_weak_acq_rel(at, expected, desired) \
    __atomic_compare_exchange_n(at, expected, desired, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
/** As dn_cas_seq_cst(), but it may fail although the word is *expected: use it in a loop. */
#define dn_cas_weak_seq_cst(at, expected, desired) \
    __atomic_compare_exchange_n(at, expected, desired, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/* Fences order accesses of this thread to any words. */
#define dn_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE) /**< earlier loads stay before the fence */
#define dn_fence_release() __atomic_thread_fence(__ATOMIC_RELEASE) /**< later stores stay after the fence */
#define dn_fence_seq_cst() __atomic_thread_fence(__ATOMIC_SEQ_CST) /**< no access passes the fence */
#define dn_fence_compiler() \
    __atomic_signal_fence(__ATOMIC_SEQ_CST) /**< the processor may still move accesses */
/** @} */

/** @name The same accesses for a word of 32 bits in a layout that processes share: the compiler refuses another type. */
/** @{ */
static inline uint32_t dn_load_acquire_u32(const uint32_t *word)
{
    return dn_load_acquire(word);
}

static inline void dn_store_release_u32(uint32_t *word, uint32_t value)
{
    dn_store_release(word, value);
}

static inline uint32_t dn_load_relaxed_u32(const uint32_t *word)
{
    return dn_load_relaxed(word);
}

static inline void dn_store_relaxed_u32(uint32_t *word, uint32_t value)
{
    dn_store_relaxed(word, value);
}
/** @} */

/** Add to a counter by a load and a store: where several threads add, a count may be lost. */
static inline void dn_count(uint64_t *counter, uint64_t add)
{
    dn_store_relaxed(counter, dn_load_relaxed(counter) + add);
}

/** Store the low 1 to 8 bytes of a value by release. Where @p size is 1, 2, 4 or 8 and divides the address, this is one
 * store; else the bytes are stored singly, from the low end. */
static inline void dn_store_bytes(uint8_t *to, uint64_t value, size_t size)
{
    const int whole = 0 == (uintptr_t) to % size;

    if (whole && 8 == size) {
        dn_store_release((uint64_t *) (void *) to, value);
    } else if (whole && 4 == size) {
        dn_store_release((uint32_t *) (void *) to, (uint32_t) value);
    } else if (whole && 2 == size) {
        dn_store_release((uint16_t *) (void *) to, (uint16_t) value);
    } else {
        for (size_t i = 0; i < size; i++) {
            dn_store_release(to + i, (uint8_t) (value >> (8 * i)));
        }
    }
}

/** Store the desired value if the word is the expected one. @return 1 if it was, else 0. */
static inline int dn_cas_acq_rel_u32(uint32_t *word, uint32_t expected, uint32_t desired)
{
    return dn_cas_acq_rel(word, &expected, desired);
}

static inline int dn_cas_acq_rel_u64(uint64_t *word, uint64_t expected, uint64_t desired)
{
    return dn_cas_acq_rel(word, &expected, desired);
}

/** Prefetch a line that this thread is about to write. On plain x86-64 compilers turn __builtin_prefetch into a prefetch
 * for reading, so an instruction stands here. */
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
    uint32_t taken; /**< 1 while a thread has it */
} dn_lock_t;

static inline int dn_trylock(dn_lock_t *lock)
{
    return dn_cas_acq_rel_u32(&lock->taken, 0, 1);
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
