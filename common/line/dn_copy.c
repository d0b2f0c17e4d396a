/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <string.h>

#include "dimmnet.h"
#include "dn_line.h"

#if defined(__x86_64__)
#    include <cpuid.h>

/** Up to this length memcpy() copies by moves in any case. */
#    define DN_COPY_MIN 2048u

/**
 * From this length on the processor's string instruction is faster into lines that another core has read: the instruction does not load
 * whole lines that it overwrites. Between far cores it takes half the time of moves. Into memory that lies in this core's caches, moves
 * are faster at any length: between near cores the string instruction takes up to twice their time.
 */
#    define DN_COPY_IN_STRING 448u

/**
 * Moves ask for lines so many bytes ahead. A core looks ahead of its loads only as far as its window of instructions reaches; between far
 * cores that is too few lines (perf/dn_latency, 64 KiB).
 */
#    define DN_COPY_AHEAD 1024u

/** Loops begin at the starts of lines of code: a loop of moves that lies in two lines took half as long again (perf/dn_rma, put_latency of
 * 4 KiB). */
#    if defined(__clang__)
#        define DN_COPY_ALIGNS
#    else
#        define DN_COPY_ALIGNS __attribute__((optimize("align-loops=64")))
#    endif

/** A sanitizer does not see the bytes that the string instruction moves. So under a sanitizer all is copied by moves. */
#    if defined(__has_feature)
#        define DN_COPY_FEATURE(name) __has_feature(name)
#    else
#        define DN_COPY_FEATURE(name) 0
#    endif
#    if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || DN_COPY_FEATURE(memory_sanitizer)
#        define DN_COPY_HIDES 1
#    else
#        define DN_COPY_HIDES 0
#    endif

/** A bit of CPUID's leaf 7: the string instruction is fast, for short strings, too. */
#    define DN_COPY_FSRM (1u << 4) /* EDX */

/** Where the target's offset in its page is less than DN_COPY_HAZARD bytes beyond the source's offset in its page, the moves of the
 * string instruction wait for each other. */
#    define DN_COPY_PAGE   4096u
#    define DN_COPY_HAZARD 64u

/** Copy a whole line to the start of a line, by moves as wide as the target attribute of the caller allows. */
static inline __attribute__((always_inline)) void dn_copy_line(uint8_t *to, const uint8_t *from)
{
    memcpy(__builtin_assume_aligned(to, DN_LINE_BYTES), from, DN_LINE_BYTES);
    /* Compilers know a loop of these for what it is, and would make one memcpy() of it. */
    __asm__ __volatile__("" : : : "memory");
}

/** Copy whole lines to the starts of lines. @return bytes copied. */
static inline __attribute__((always_inline)) size_t dn_copy_lines(uint8_t *to, const uint8_t *from,
                                                                  size_t len)
{
    size_t at = 0;

    for (; len > DN_COPY_AHEAD + at; at += DN_LINE_BYTES) {
        __builtin_prefetch(from + at + DN_COPY_AHEAD);
        dn_copy_line(to + at, from + at);
    }
    for (; len - at >= DN_LINE_BYTES; at += DN_LINE_BYTES) {
        dn_copy_line(to + at, from + at);
    }
    return at;
}

/**
 * Copy by one move for each line. A core has room for a fixed number of stores that wait for their lines: the wider the stores, the
 * more lines are on their way.
 */
DN_COPY_ALIGNS __attribute__((target("avx512f,prefer-vector-width=512"))) static size_t
dn_copy_lines_at_once(uint8_t *to, const uint8_t *from, size_t len)
{
    return dn_copy_lines(to, from, len);
}

/** Copy by moves. @param[in] len  More than DN_LINE_BYTES. */
DN_COPY_ALIGNS static void dn_copy_moves(uint8_t *t, const uint8_t *f, size_t len)
{
    size_t done = DN_LINE_BYTES - (uintptr_t) t % DN_LINE_BYTES;

    memcpy(t, f, DN_LINE_BYTES);
    done += __builtin_cpu_supports("avx512f") ? dn_copy_lines_at_once(t + done, f + done, len - done)
                                              : dn_copy_lines(t + done, f + done, len - done);
    memcpy(t + done, f + done, len - done);
}

/** Is the string instruction fast here? 0: not known yet. */
static uint32_t dn_copy_string;
enum { DN_COPY_STRING_NO = 1, DN_COPY_STRING_YES };

static __attribute__((noinline)) uint32_t dn_copy_ask(void)
{
    unsigned a, b, c, d;
    const int fast = !DN_COPY_HIDES && __get_cpuid_count(7, 0, &a, &b, &c, &d) && 0 != (d & DN_COPY_FSRM);

    /* Threads that ask at the same time store the same value. */
    dn_store_relaxed_u32(&dn_copy_string, fast ? DN_COPY_STRING_YES : DN_COPY_STRING_NO);
    return fast ? DN_COPY_STRING_YES : DN_COPY_STRING_NO;
}

/** Copy by the string instruction. @return 0: the instruction is slow here, and nothing was copied. */
static inline int dn_copy_by_string(uint8_t *t, const uint8_t *f, size_t len)
{
    uint32_t string = dn_load_relaxed_u32(&dn_copy_string);

    if (__builtin_expect(0 == string, 0)) {
        string = dn_copy_ask();
    }
    if (DN_COPY_STRING_YES != string
        || ((uintptr_t) t - (uintptr_t) f - 1) % DN_COPY_PAGE < DN_COPY_HAZARD - 1) {
        return 0;
    }
    __asm__ __volatile__("rep movsb" : "+D"(t), "+S"(f), "+c"(len) : : "memory");
    return 1;
}

/** Copy by moves: those of memcpy() or of this file, whichever are faster at this length. */
static inline void dn_copy_by_moves(uint8_t *t, const uint8_t *f, size_t len)
{
    if (DN_COPY_MIN >= len) {
        memcpy(t, f, len);
    } else {
        dn_copy_moves(t, f, len);
    }
}

void dn_copy(void *to, const void *from, size_t len)
{
    dn_copy_by_moves(to, from, len);
}

void dn_copy_in(void *to, const void *from, size_t len)
{
    if (DN_COPY_IN_STRING > len || !dn_copy_by_string(to, from, len)) {
        dn_copy_by_moves(to, from, len);
    }
}

#else

void dn_copy(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
}

void dn_copy_in(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
}

#endif
