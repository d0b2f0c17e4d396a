/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_pace.h
 * Which way long messages of one sender come faster: by one copy that the kernel makes (PULL), for both processes at once or for
 * the receiver alone, or in pieces through memory that both sides have mapped, while one side fills and the other empties it.
 *
 * That depends on what no table knows: the caches that the two cores share, whether the sender waits in the library or has messages
 * of its own to receive, which other processes run. So the receiver tries all ways and goes on with the way that took least time; now
 * and then, so rarely that it costs some 2 percent (more where a way is over 30 times slower), it tries another way again.
 *
 * Units:      bytes, nanoseconds of any monotonic clock.
 * Threads:    none of this locks: one thread at a time.
 *
 * Pinned by test/unit/dn_pace_keeps_to_the_faster_way.c.
 */
#ifndef DN_PACE_H
#define DN_PACE_H

#include <stddef.h>
#include <stdint.h>

#include "dn_types.h"

enum dn_pace_way {
    DN_PACE_PULL,   /**< one copy; the sender takes a share of it if it waits */
    DN_PACE_ALONE,  /**< one copy, by the receiver: faster where both sides have their hands full */
    DN_PACE_PIECES, /**< two copies */
    DN_PACE_WAYS,
    DN_PACE_ONLY, /**< there was no choice: nothing to learn */
};

/** What the user has asked for. */
enum dn_pace_stream { DN_PACE_STREAM_NEVER, DN_PACE_STREAM_AUTO, DN_PACE_STREAM_ALWAYS };

/** Lengths are told apart by powers of 2, from 16 KiB and less to 2 MiB and more. */
#define DN_PACE_CLASSES 8

/** Messages in a row by which a way is tried. */
#define DN_PACE_TRIES 4

/** All zero at first. Private. */
typedef struct dn_pace {
    struct dn_pace_class {
        float cost[DN_PACE_WAYS];    /**< ns a KiB, 0: not known */
        uint16_t tried;              /**< messages, until every way has had its tries */
        uint8_t known[DN_PACE_WAYS]; /**< messages that cost[] is the mean of, up to DN_PACE_TRIES */
        uint8_t warm;                /**< not 0: a message has ended */
        uint16_t left;               /**< messages until another way has been tried again */
        enum dn_pace_way trial;      /**< that way */
    } class[DN_PACE_CLASSES];
    uint64_t last; /**< when a message ended */
} dn_pace_t;

/** The way for a message of @p len bytes that begins now. */
DN_API enum dn_pace_way dn_pace_choose(dn_pace_t *pace, enum dn_pace_stream stream, size_t len);

/**
 * A message has ended. Several may be under way at once; what counts is the time since the one before has ended.
 * @param[in,out] pace   Of its sender.
 * @param[in] way        As chosen, less than DN_PACE_WAYS.
 * @param[in] len        Its bytes, not 0.
 * @param[in] started    When dn_pace_choose() was called.
 * @param[in] now        When it ended.
 */
DN_API void dn_pace_learn(dn_pace_t *pace, enum dn_pace_way way, size_t len, uint64_t started, uint64_t now);

#endif
