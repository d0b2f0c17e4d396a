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
 * and then, so rarely that it costs some 2 percent in the long run, it tries another way again, and soon where the way that it goes has
 * become much slower. Lengths that are new begin with what is known of the next shorter ones.
 *
 * The first tries are dear: pieces take some hundred messages to warm their memory, and a sender of two hundred messages would end while
 * the receiver still tries. So the receiver times how long lines of the first pieces take to come from the sender's cache. Where the two
 * cores are near, all of the first messages go in pieces until their memory is warm; where the cores are far, two. That is a guess which
 * later trials correct.
 *
 * Pieces of messages of up to DN_PACE_FLOW_MAX follow their envelope without being asked for: these messages flow. So the sender of a
 * shorter message has chosen before the receiver hears of it, and the receiver tells the sender what it wants of the next ones.
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

/** Longest message that flows. */
#define DN_PACE_FLOW_MAX ((size_t) 64 << 10)

/** What the user has asked for. */
enum dn_pace_stream { DN_PACE_STREAM_NEVER, DN_PACE_STREAM_AUTO, DN_PACE_STREAM_ALWAYS };

/** Lengths are told apart by powers of 2, from 16 KiB and less to 2 MiB and more. */
#define DN_PACE_CLASSES 8
/** A bit for each class whose messages may flow. */
#define DN_PACE_FLOW_ALL 7u

/** Messages in a row by which a way is tried, once its memory is warm. */
#define DN_PACE_TRIES 8

/** Bytes of pieces in a row before their time counts. The memory that they go through is larger than the caches, and cold at first: then
 * pieces take up to four times as long as they will. So many bytes are some laps of it (dn_shm_stage.c). */
#define DN_PACE_COLD_BYTES ((size_t) 15 << 19)

/** Lines of the first pieces whose time is taken. The least of these counts: what disturbs a line makes it slower. */
#define DN_PACE_LOOKS 4
/** Nanoseconds in which a line comes from the cache of a near core, at most. From a far core it takes twice as long and more (perf/dn_line;
 * perf/dn_latency with few iterations shows what the guess is worth). */
#define DN_PACE_NEAR_NS 60

/** Messages of one way in a row after which the time of the next one counts: the first ones find memory that was never touched, or that
 * has left the caches, and a sender that does other things. */
#define DN_PACE_SETTLES 2

/** All zero at first. Private. */
typedef struct dn_pace {
    struct dn_pace_class {
        float cost[DN_PACE_WAYS];     /**< ns a KiB, 0: not known */
        uint8_t known[DN_PACE_WAYS];  /**< messages that cost[] is the mean of, up to DN_PACE_TRIES */
        uint16_t spent[DN_PACE_WAYS]; /**< messages that went this way for its last trial */
        uint8_t flows;                /**< not 0: messages of this class may flow */
        uint8_t settled;              /**< messages in a row by the same way, up to DN_PACE_SETTLES */
        enum dn_pace_way last;        /**< the way of the message that ended last */
        uint8_t turn;                 /**< ways that have had their first tries */
        uint16_t tried;               /**< first tries of the next way so far */
        uint8_t met;                  /**< not 0: a message of this class has come */
        uint16_t uncounted;     /**< pieces until what they go through is warm: their time does not count */
        uint32_t left;          /**< messages until another way has been tried again */
        enum dn_pace_way trial; /**< the way that is tried then */
        uint16_t tries;         /**< by so many messages, the last ones of `left` */
        float sum;              /**< of the costs of that trial's messages, as far as these are known */
        uint8_t timed;          /**< such messages, up to DN_PACE_TRIES - DN_PACE_SETTLES */
        uint16_t open;          /**< messages that may still count as spent for that trial */
        enum dn_pace_way best;  /**< the way that was best when `trial` was chosen */
        float cost_then;        /**< its cost at that time */
        uint8_t lost;           /**< trials in a row after which the best way was the same */
        uint8_t doubts;         /**< trials of PIECES that came early, not long ago */
        uint8_t
            hasty; /**< trials that follow each other soon: what is known is of other lengths, or of other times */
        uint8_t unmet; /**< messages in a row that were announced, though they were to flow */
    } class[DN_PACE_CLASSES];
    uint32_t line; /**< ns that a line of the sender took to come, the least of `looks` */
    uint8_t looks; /**< up to DN_PACE_LOOKS */
    uint64_t last; /**< when a message ended */
    int skipped;   /**< not 0: another one has ended since, and no clock was read */
} dn_pace_t;

/** The bit of DN_PACE_FLOW_ALL for messages of @p len bytes; 0: they are too long to flow. */
DN_API uint32_t dn_pace_flow_bit(size_t len);

/** Messages of @p len bytes by which a way is tried at first: few of PIECES, since these may be far slower than the others, but where the
 * cores are known to be near. @param[in] way  Less than DN_PACE_WAYS. */
DN_API unsigned dn_pace_first_tries(const dn_pace_t *pace, enum dn_pace_way way, size_t len);
/** Messages of @p len bytes by which a way is tried later: of PIECES so many that their memory gets warm. */
DN_API unsigned dn_pace_tries(enum dn_pace_way way, size_t len);

/** How a message begins. */
enum dn_pace_begin {
    DN_PACE_ANNOUNCED, /**< it cannot flow */
    DN_PACE_HELD,      /**< announced, though it might have flowed: it goes any way but DN_PACE_PIECES */
    DN_PACE_FLOWS,     /**< its bytes follow: it goes by DN_PACE_PIECES */
    DN_PACE_UNTIMED,   /**< and its sender has not read a clock: it ends with dn_pace_skip() */
};

/** The way for a message of @p len bytes that begins now. */
DN_API enum dn_pace_way dn_pace_choose(dn_pace_t *pace, enum dn_pace_stream stream, size_t len,
                                       enum dn_pace_begin begin);

/** Does the receiver have to time a line of the next piece? */
static inline int dn_pace_looks(const dn_pace_t *pace)
{
    return DN_PACE_LOOKS > pace->looks;
}
/** A line of a piece took @p ns nanoseconds to come. dn_pace_looks() was not 0. */
DN_API void dn_pace_look(dn_pace_t *pace, uint64_t ns);

/** The sender does otherwise than it was told, for so many messages of @p len bytes that it should be told once more. */
DN_API int dn_pace_is_unmet(const dn_pace_t *pace, size_t len);

/** Are the next messages of @p len bytes to flow? @param[in] len  At most DN_PACE_FLOW_MAX. */
DN_API int dn_pace_wants_flow(const dn_pace_t *pace, size_t len);

/**
 * A message has ended. Several may be under way at once; what counts is the time since the one before has ended.
 * @param[in,out] pace   Of its sender.
 * @param[in] way        As chosen, less than DN_PACE_WAYS.
 * @param[in] len        Its bytes, not 0.
 * @param[in] started    When it left its sender, or was looked at by a receiver that had been away.
 * @param[in] now        When it ended.
 */
DN_API void dn_pace_learn(dn_pace_t *pace, enum dn_pace_way way, size_t len, uint64_t started, uint64_t now);

/** A message has ended of which nothing is learnt, and no clock was read. The time of the next one cannot be told from its own, then. */
DN_API void dn_pace_skip(dn_pace_t *pace);
/** A message has ended of which nothing is learnt but when. */
DN_API void dn_pace_pass(dn_pace_t *pace, uint64_t now);

#endif
