/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_pace.h
 * Choose the faster way for long messages of one sender. There are three ways: one copy by the kernel (PULL), which both processes
 * share; one copy by the kernel, which the receiver makes alone; or pieces through memory that both sides have mapped, where the
 * sender fills this memory while the receiver empties it.
 *
 * Two rules say what the receiver's clock does not show: of messages that cross, and of processes that share cores (below). Else no table
 * can tell which way is faster. That depends on the caches that the two cores share, on whether the sender waits in the
 * library or has messages of its own to receive, and on other processes that run. So the receiver tries all ways and goes on with the
 * way that took least time. Now and then the receiver tries another way again: so rarely that the trials cost some 2 percent in the long
 * run, but soon where the best way has become much slower. A new length begins with the costs that are known of the next shorter
 * lengths.
 *
 * The first tries are dear: pieces take some hundred messages to warm their memory, and a sender of two hundred messages would end while
 * the receiver still tries. So the receiver measures how long lines of the first pieces take to come from the sender's cache. Where the
 * two cores are near, all of the first messages go in pieces until the memory of pieces is warm. Where the cores are far, two of the
 * first messages go in pieces. The guess may be wrong; later trials correct it. At a new length far cores try the kernel's ways anew within
 * the first messages, but not where pieces flow and are the best: a trial ends the lead that the sender has.
 *
 * Where messages of both processes cross, neither waits for the other, and the work of both cores counts. The receiver's clock does not
 * show the work that the sender does for this message. A share that the sender copies only delays what the sender receives itself, and
 * pieces are two copies in place of one. So a message that crosses is copied by its receiver alone. Messages of lengths of which many cross
 * do not flow (perf/dn_bibw, one message at a time, L of 120 ns: 16 KiB 4.8 GB/s by their receivers, 4.5 in pieces; 64 KiB 11.3 and 7.3).
 *
 * Where processes share cores, the clock shows which process had the core. So no times are learnt there. Messages of up to
 * DN_PACE_CROWD_FLOW flow: their senders need the core once. Longer messages are copied by their receivers alone (perf/dn_coll,
 * neighbor_alltoall, 4 ranks on 2 cores: 16 KiB 23 us in pieces, 31 by the receivers; 32 KiB 37 and 42; 64 KiB 80 and 64).
 *
 * Pieces of messages of up to DN_PACE_FLOW_MAX follow their envelope without being asked for: these messages flow. So the sender of such
 * a message has chosen the way before the receiver learns of the message. The receiver tells the sender which way the next messages are
 * to go.
 *
 * Units:      bytes, nanoseconds of any monotonic clock.
 * Threads:    none of these functions locks: one thread at a time.
 *
 * Pinned by test/unit/dn_pace_keeps_to_the_faster_way.c.
 */
#ifndef DN_PACE_H
#define DN_PACE_H

#include <stddef.h>
#include <stdint.h>

#include "dn_types.h"

enum dn_pace_way {
    DN_PACE_PULL,   /**< one copy; the sender copies a share of it if the sender waits */
    DN_PACE_ALONE,  /**< one copy, by the receiver: faster where both sides have other work */
    DN_PACE_PIECES, /**< two copies: into the mapped memory, and out of it */
    DN_PACE_WAYS,
    /** as DN_PACE_ALONE, or in pieces if the bytes follow: the message crosses, or processes share cores. The time of such a message says
     * nothing about other messages. */
    DN_PACE_BY_RULE,
    DN_PACE_ONLY, /**< there was no choice: nothing to learn */
};

/** Longest message that flows. */
#define DN_PACE_FLOW_MAX ((size_t) 64 << 10)

/** Longest message that flows where processes share cores (measured: see above). */
#define DN_PACE_CROWD_FLOW ((size_t) 32 << 10)

/** The user's setting for pieces: never, by the rules and the costs, always. */
enum dn_pace_stream { DN_PACE_STREAM_NEVER, DN_PACE_STREAM_AUTO, DN_PACE_STREAM_ALWAYS };

/** Classes of length, by powers of 2: from 16 KiB and less to more than 1 MiB. */
#define DN_PACE_CLASSES 8
/** The first classes are of messages that may flow. */
#define DN_PACE_FLOWING 3
/** A bit for each class whose messages may flow. */
#define DN_PACE_FLOW_ALL 7u

/** Messages in a row by which a way is tried, once its memory is warm. */
#define DN_PACE_TRIES 8

/** Bytes of pieces in a row before the time of pieces counts. The memory that pieces go through is larger than the caches, and cold at
 * first. Through cold memory pieces take up to four times as long. These bytes are some laps of that memory (dn_shm_stage.c). */
#define DN_PACE_COLD_BYTES ((size_t) 15 << 19)

/** Lines of the first pieces whose time is measured. The least time counts: any disturbance makes a line slower. */
#define DN_PACE_LOOKS 4
/** Nanoseconds in which a line comes from the cache of a near core, at most. From a far core a line takes at least twice as long
 * (perf/dn_line). perf/dn_latency with few iterations shows how good the guess is. */
#define DN_PACE_NEAR_NS 60

/** Messages of one way in a row after which the time of the next message counts. The first messages find memory that was never
 * touched, or that has left the caches, and a sender that does other things. */
#define DN_PACE_SETTLES 2

/** Weights by which messages of a class tell whether such messages cross. A number goes from 0 to DN_PACE_CROSSES_MOST. Each message that
 * crosses adds DN_PACE_CROSSED. At the top the class is taken for one whose messages cross, until the number is 0 again. Any other message
 * takes 1 from the number while the class is taken for that, and DN_PACE_UNCROSSED at other times. So where more than one message in 5
 * crosses, the class comes to be taken for that; where fewer than one in 17 do, no longer. Where both processes send windows of messages,
 * they take turns for a while, and some dozens do not cross. */
#define DN_PACE_CROSSED      16
#define DN_PACE_UNCROSSED    4
#define DN_PACE_CROSSES_MOST 64

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
        uint32_t left;          /**< messages until the next trial is over */
        enum dn_pace_way trial; /**< the way of that trial */
        uint16_t tries;         /**< messages of that trial, the last ones of `left` */
        float sum;              /**< of the known costs of that trial's messages */
        uint8_t timed;          /**< messages in `sum`, up to DN_PACE_TRIES - DN_PACE_SETTLES */
        uint16_t open;          /**< messages that may still count as spent for that trial */
        enum dn_pace_way best;  /**< the way that was best when `trial` was chosen */
        float cost_then;        /**< the cost of `best` at that time */
        uint8_t lost;           /**< trials in a row after which the best way was the same */
        uint8_t doubts;         /**< early trials of PIECES not long ago: dn_pace_doubt() */
        uint8_t hasty;          /**< trials still to come soon, as known costs are old or of other lengths */
        uint8_t kernel;         /**< the same, of the kernel's ways only: trials that have not begun */
        uint8_t unmet;          /**< messages in a row that were announced, though they were to flow */
    } class[DN_PACE_CLASSES];
    uint8_t crossed[DN_PACE_FLOWING]; /**< by class: up to DN_PACE_CROSSES_MOST */
    uint8_t crosses[DN_PACE_FLOWING]; /**< not 0: messages of the class are taken for such that cross */
    int crowded;                      /**< not 0: processes share cores, as dn_pace_crowd() was told */
    uint32_t line; /**< ns that a line of the sender took to come: the least of `looks` lines */
    uint8_t looks; /**< up to DN_PACE_LOOKS */
    uint64_t last; /**< when the last message ended whose end was timed */
    int skipped;   /**< not 0: another message has ended since, and no clock was read */
} dn_pace_t;

/** The bit of DN_PACE_FLOW_ALL for messages of @p len bytes; 0: they are too long to flow. */
DN_API uint32_t dn_pace_flow_bit(size_t len);

/** Messages of @p len bytes by which a way is tried at first. PIECES get few messages, since pieces may be far slower than the other ways;
 * but where the cores are known to be near, PIECES get so many that their memory becomes warm. @param[in] way  Less than DN_PACE_WAYS. */
DN_API unsigned dn_pace_first_tries(const dn_pace_t *pace, enum dn_pace_way way, size_t len);
/** Messages of @p len bytes by which a way is tried later. PIECES get so many that their memory becomes warm. */
DN_API unsigned dn_pace_tries(enum dn_pace_way way, size_t len);

/** How a message begins. */
enum dn_pace_begin {
    DN_PACE_ANNOUNCED, /**< announced: the message cannot flow */
    DN_PACE_HELD,      /**< announced, though the message might have flowed: not by DN_PACE_PIECES */
    DN_PACE_FLOWS,     /**< its bytes follow, in pieces */
    DN_PACE_UNTIMED,   /**< as DN_PACE_FLOWS, but its sender has read no clock: it ends with dn_pace_skip() */
};

/** Say whether processes share cores: before dn_pace_choose() and dn_pace_wants_flow(). */
static inline void dn_pace_crowd(dn_pace_t *pace, int crowded)
{
    pace->crowded = crowded;
}

/** The way for a message of @p len bytes that begins now. A message that goes by DN_PACE_BY_RULE ends with dn_pace_pass() or
 * dn_pace_skip(). @param[in] crosses  Not 0: the message left before its sender had begun to take the last long message of this process. */
DN_API enum dn_pace_way dn_pace_choose(dn_pace_t *pace, enum dn_pace_stream stream, size_t len,
                                       enum dn_pace_begin begin, int crosses);

/** Does the receiver have to time a line of the next piece? */
static inline int dn_pace_looks(const dn_pace_t *pace)
{
    return DN_PACE_LOOKS > pace->looks;
}
/** A line of a piece took @p ns nanoseconds to come. dn_pace_looks() was not 0. */
DN_API void dn_pace_look(dn_pace_t *pace, uint64_t ns);

/** Has the sender announced so many messages of @p len bytes in a row, though these were to flow, that it is to be told again? Only messages
 * count of which the costs decide. */
DN_API int dn_pace_is_unmet(dn_pace_t *pace, size_t len);

/** Are the next messages of @p len bytes to flow? @param[in] len  At most DN_PACE_FLOW_MAX. */
DN_API int dn_pace_wants_flow(dn_pace_t *pace, size_t len);

/**
 * A message has ended: learn the cost of its way. Several messages may be under way at once. So the time counts from the end of the
 * message before, if that ended later than @p started.
 * @param[in,out] pace   Of its sender.
 * @param[in] way        As chosen, less than DN_PACE_WAYS.
 * @param[in] len        Its bytes, not 0.
 * @param[in] started    When the message left its sender; or when the receiver looked at the message, if the receiver came late.
 * @param[in] now        When the message ended.
 */
DN_API void dn_pace_learn(dn_pace_t *pace, enum dn_pace_way way, size_t len, uint64_t started, uint64_t now);

/** A message has ended, nothing is learnt of it, and no clock was read. So the cost of the next message is not known either. */
DN_API void dn_pace_skip(dn_pace_t *pace);
/** A message has ended at @p now. Nothing else is learnt of it. */
DN_API void dn_pace_pass(dn_pace_t *pace, uint64_t now);

#endif
