/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <string.h>

#include "dimmnet.h"
#include "dn_line.h"

#if defined(__x86_64__)

/** Up to here memcpy() copies by moves of its own accord. */
#    define DN_COPY_MIN 2048u

/** Copy whole lines to where lines begin. @return bytes copied. */
#    define DN_COPY_LINES(name)                                                                     \
        name(uint8_t *to, const uint8_t *from, size_t len)                                          \
        {                                                                                           \
            size_t at = 0;                                                                          \
            for (; len - at >= DN_LINE_BYTES; at += DN_LINE_BYTES) {                                \
                memcpy(__builtin_assume_aligned(to + at, DN_LINE_BYTES), from + at, DN_LINE_BYTES); \
                /* Compilers know this loop for what it is, and would make one memcpy() of it. */   \
                __asm__ __volatile__("" : : : "memory");                                            \
            }                                                                                       \
            return at;                                                                              \
        }

/* The wider the stores, the more lines are on their way to the core that writes them: it has room for so many stores that
 * wait. */
static __attribute__((target("avx512f,prefer-vector-width=512"))) size_t DN_COPY_LINES(dn_copy_by_64) static
    __attribute__((target("avx2"))) size_t DN_COPY_LINES(dn_copy_by_32)

        void dn_copy(void *to, const void *from, size_t len)
{
    uint8_t *t = to;
    const uint8_t *f = from;

    if (DN_COPY_MIN >= len || !__builtin_cpu_supports("avx2")) {
        memcpy(t, f, len);
        return;
    }
    size_t done = DN_LINE_BYTES - (uintptr_t) t % DN_LINE_BYTES;
    memcpy(t, f, DN_LINE_BYTES);
    done += __builtin_cpu_supports("avx512f") ? dn_copy_by_64(t + done, f + done, len - done)
                                              : dn_copy_by_32(t + done, f + done, len - done);
    memcpy(t + done, f + done, len - done);
}

#else

void dn_copy(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
}

#endif
