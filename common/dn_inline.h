/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_inline.h
 * Hot path of dimmnet.h: one indirect call through the table of functions in the peer, which the device has filled in.
 *
 * When the peer is lost, each entry is replaced, by one store, with a function that returns DN_ERR_UNREACH
 * (dn_peer.c). Other threads may call meanwhile. A relaxed load finds the old or the new function. A relaxed load is
 * enough, as neither function reads anything that was written just before the store: the old one uses the peer and its
 * device's state, which stay until no thread uses them, and the new one uses nothing.
 */
#ifndef DN_INLINE_H
#define DN_INLINE_H

#include "dn_types.h"

#include <string.h>

/** What a device does for one peer. In dn_peer no entry is NULL but `take`, where `peek` never returns DN_OK; in
 * dn_peer_base_t::ops some may be (dn_device.h). */
typedef struct dn_peer_ops {
    /** dn_botf() */
    dn_status_t (*botf)(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head, size_t head_len,
                        const void *body, size_t body_len);
    /** dn_botf_reserve() */
    dn_status_t (*reserve)(dn_peer_t *peer, size_t len, dn_window_t *window);
    /** dn_botf_kick() */
    void (*kick)(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len);
    /** dn_aotf() */
    dn_status_t (*aotf)(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size);
    /** dn_push() */
    dn_status_t (*push)(dn_peer_t *peer, const dn_xfer_t *xfer);
    /** dn_pull() */
    dn_status_t (*pull)(dn_peer_t *peer, const dn_xfer_t *xfer);
    /** dn_atomic() */
    dn_status_t (*atomic)(dn_peer_t *peer, const dn_amo_t *amo);
    /** dn_fence() */
    dn_status_t (*fence)(dn_peer_t *peer);
    /** dn_peek() */
    dn_status_t (*peek)(dn_peer_t *peer, unsigned channel, unsigned looks, dn_message_t *message);
    /** dn_take() */
    void (*take)(dn_peer_t *peer, const dn_message_t *message);
    /** dn_aotf_line() */
    dn_status_t (*aotf_line)(dn_peer_t *peer, uint64_t off, const void *data, size_t len, uint64_t flag);
    /** dn_wake() */
    void (*wake)(dn_peer_t *peer);
    /** dn_botf_lend() */
    dn_status_t (*lend)(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head, size_t head_len,
                        const void *body, size_t body_len, dn_comp_t *comp);
} dn_peer_ops_t;

/** The part of a peer that inline code uses: its first cache lines. Each entry, each pointer of a user and `enough` are
 * loaded and stored as one atomic word. */
struct dn_peer {
    dn_peer_ops_t ops; /**< functions of the device; in a lost peer, functions that return DN_ERR_UNREACH */
    void *user[DN_CHAN_MAX]; /**< dn_peer_user() */
    /** dn_recv_enough(): not 0 until the device hands on the next messages of the peer; some devices ignore it */
    uint32_t enough;
};

static inline void dn_recv_enough(dn_peer_t *src)
{
    __atomic_store_n(&src->enough, 1, __ATOMIC_RELAXED);
}

static inline void *dn_peer_user(const dn_peer_t *peer, unsigned channel)
{
    return DN_CHAN_MAX > channel ? __atomic_load_n(&peer->user[channel], __ATOMIC_RELAXED) : NULL;
}

/**
 * Copy a few bytes without a call: two overlapping moves of one size class. 16 bytes are moved as two words, as most
 * callers have just written them by two stores. A processor that loads 16 bytes which it has stored in two parts waits
 * until both parts have left its store buffer.
 */
static inline void dn_copy_inline(void *to, const void *from, size_t len)
{
    char *t = (char *) to;
    const char *f = (const char *) from;
    if (len == 16) {
        uint64_t word[2];
        memcpy(word, f, 16);
        /* Without this the compiler makes one move of the two. */
        __asm__("" : "+r"(word[0]), "+r"(word[1]));
        memcpy(t, word, 8);
        memcpy(t + 8, word + 1, 8);
    } else if (len > 16) {
        for (; len > 32; len -= 16, t += 16, f += 16) {
            memcpy(t, f, 16);
        }
        char last[16];
        memcpy(last, f + len - 16, 16);
        memcpy(t, f, 16);
        memcpy(t + len - 16, last, 16);
    } else if (len >= 8) {
        uint64_t last;
        memcpy(&last, f + len - 8, 8);
        memcpy(t, f, 8);
        memcpy(t + len - 8, &last, 8);
    } else if (len >= 4) {
        uint32_t last;
        memcpy(&last, f + len - 4, 4);
        memcpy(t, f, 4);
        memcpy(t + len - 4, &last, 4);
    } else if (len > 0) {
        t[0] = f[0];
        t[len / 2] = f[len / 2];
        t[len - 1] = f[len - 1];
    }
}

/** Load an entry of a peer's table; the head of this file says why a relaxed load is enough. */
#define DN_PEER_OP(peer, op) __atomic_load_n(&(peer)->ops.op, __ATOMIC_RELAXED)

static inline dn_status_t dn_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size)
{
    return DN_PEER_OP(peer, aotf)(peer, off, value, size);
}

static inline dn_status_t dn_aotf_line(dn_peer_t *peer, uint64_t off, const void *data, size_t len,
                                       uint64_t flag)
{
    return DN_PEER_OP(peer, aotf_line)(peer, off, data, len, flag);
}

static inline void dn_wake(dn_peer_t *peer)
{
    DN_PEER_OP(peer, wake)(peer);
}

static inline dn_status_t dn_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                                  size_t head_len, const void *body, size_t body_len)
{
    return DN_PEER_OP(peer, botf)(peer, channel, tag, head, head_len, body, body_len);
}

static inline dn_status_t dn_botf_lend(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                                       size_t head_len, const void *body, size_t body_len, dn_comp_t *comp)
{
    return DN_PEER_OP(peer, lend)(peer, channel, tag, head, head_len, body, body_len, comp);
}

static inline dn_status_t dn_botf_reserve(dn_peer_t *peer, size_t len, dn_window_t *window)
{
    return DN_PEER_OP(peer, reserve)(peer, len, window);
}

static inline void dn_botf_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag,
                                size_t len)
{
    DN_PEER_OP(peer, kick)(peer, window, channel, tag, len);
}

static inline dn_status_t dn_peek(dn_peer_t *src, unsigned channel, unsigned looks, dn_message_t *message)
{
    return DN_PEER_OP(src, peek)(src, channel, looks, message);
}

static inline void dn_take(dn_peer_t *src, const dn_message_t *message)
{
    DN_PEER_OP(src, take)(src, message);
}

static inline dn_status_t dn_push(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return DN_PEER_OP(peer, push)(peer, xfer);
}

static inline dn_status_t dn_pull(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return DN_PEER_OP(peer, pull)(peer, xfer);
}

static inline dn_status_t dn_atomic(dn_peer_t *peer, const dn_amo_t *amo)
{
    return DN_PEER_OP(peer, atomic)(peer, amo);
}

static inline dn_status_t dn_fetch_add(dn_peer_t *peer, const dn_key_t *key, uint64_t roff, unsigned width,
                                       uint64_t add, void *result, dn_comp_t *comp)
{
    const dn_amo_t amo = {DN_AMO_ADD, width, add, 0, result, key, roff, comp};
    return dn_atomic(peer, &amo);
}

static inline dn_status_t dn_swap(dn_peer_t *peer, const dn_key_t *key, uint64_t roff, unsigned width,
                                  uint64_t value, void *result, dn_comp_t *comp)
{
    const dn_amo_t amo = {DN_AMO_SWAP, width, value, 0, result, key, roff, comp};
    return dn_atomic(peer, &amo);
}

static inline dn_status_t dn_cas(dn_peer_t *peer, const dn_key_t *key, uint64_t roff, unsigned width,
                                 uint64_t compare, uint64_t value, void *result, dn_comp_t *comp)
{
    const dn_amo_t amo = {DN_AMO_CAS, width, value, compare, result, key, roff, comp};
    return dn_atomic(peer, &amo);
}

/** For a loop that tries again at once: the core saves power, or serves its other hardware thread. */
static inline void dn_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif
