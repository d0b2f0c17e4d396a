/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file torture.h
 * What the parts of the program torture share.
 *
 * A round has a *plan*, which every rank computes alike from the seed: all messages of the round, each
 * with two *positions*, at which its sender and its receiver begin. Positions are points of one line
 * common to all ranks. A rank handles its own in that order, and waits for a message only at a position
 * behind both of its beginnings, so the rank that waits at the lowest position always goes on: no
 * plan can deadlock. A message may be begun long before the point where both meet, by either side, so that
 * receives are posted early, messages come unexpected, and tags are taken in another order than sent.
 *
 * Tags and wildcards are then chosen so that by MPI's rules of matching each receive gets the message
 * planned for it and no other. Only the receives of a *group* compete: they are alike, take from any
 * source, and are checked together, per source in the order of sending.
 */
#ifndef DN_TEST_MPI_TORTURE_H
#define DN_TEST_MPI_TORTURE_H

#include "dn_atomic.h"
#include "verify.h"

#include <mpi.h>

#define MOST_RANKS    8
#define MOST_MESSAGES 1000
#define MOST_GROUPS   40
#define MOST_MEMBERS  12

/** @name Layouts and images (torture_image.c) */
/** @{ */

typedef enum {
    SHAPE_PLAIN, /* a count of the basic type */
    SHAPE_CONTIGUOUS,
    SHAPE_VECTOR,
    SHAPE_BACKWARDS, /* a vector of negative stride */
    SHAPE_INDEXED,
    SHAPE_STRUCT,
    SHAPE_INTERLEAVED, /* resized: the elements lie in the gaps of each other */
    SHAPES
} shape_kind_t;

/** One side's layout: @c count elements of @c each units, a unit being 1, 4 or 8 bytes (MPI_BYTE, MPI_INT,
 * MPI_DOUBLE). Everything else about it follows from the seed. */
typedef struct {
    shape_kind_t kind;
    unsigned unit;
    size_t each;
    int count;
    uint64_t seed;
} shape_t;

/** Consecutive bytes at a distance from the address handed to MPI. */
typedef struct {
    ptrdiff_t offset;
    size_t length;
} run_t;

/** Memory with a layout, and with known bytes around and between the data. */
typedef struct {
    shape_t shape;
    MPI_Datatype type;
    run_t *runs; /* of one element, in the order of the type map */
    size_t run_count;
    ptrdiff_t extent;
    ptrdiff_t low; /* offset of the first byte of memory */
    size_t size;
    size_t skew;
    unsigned char *memory;
    unsigned char *origin; /* the address handed to MPI */
    uint64_t background;
} image_t;

/** A shape for exactly @p units units: what a message is sent from. */
shape_t shape_exact(verify_rng_t *rng, unsigned unit, size_t units);
/** A shape with room for at least @p units. */
shape_t shape_room(verify_rng_t *rng, unsigned unit, size_t units);
/** A shape with room for less than @p units, of which there is at least 1. */
shape_t shape_short(verify_rng_t *rng, unsigned unit, size_t units);
/** Units that fit. */
size_t shape_units(const shape_t *shape);

/** MPI_BYTE, MPI_INT or MPI_DOUBLE. */
MPI_Datatype shape_basic(unsigned unit);

/** Allocate memory of that shape and make its datatype, committed. Free with image_close(). */
void image_open(image_t *image, const shape_t *shape, uint64_t seed);
/** Put the pattern of @p key into the first @p bytes bytes of the data, and background elsewhere. */
void image_write(image_t *image, size_t bytes, uint64_t key);
/** Copy the first @p bytes bytes of the data to @p out. */
void image_gather(const image_t *image, size_t bytes, unsigned char *out);
/** Whether all is as image_write() leaves it; if not, @p text says where. */
bool image_holds(const image_t *image, size_t bytes, uint64_t key, char *text, size_t text_size);
/** Free; fails when something outside of the memory was written. */
void image_close(image_t *image, const char *what);
/** @} */

/** @name Communicators (torture_space.c) */
/** @{ */

enum {
    SPACE_WORLD,  /* a copy of MPI_COMM_WORLD for each thread */
    SPACE_SHARED, /* one copy for all threads, told apart by tags */
    SPACE_SPLIT,  /* parts of it, in another order of ranks; renewed every few rounds */
    SPACE_INTER,  /* an intercommunicator between two parts; renewed likewise */
    SPACE_SHORT,  /* a copy that lives for one round */
    SPACE_OPEN,   /* where receives take any tag from any source */
    SPACES
};

/** A communicator: where messages match each other. */
typedef struct {
    bool alive;
    bool inter;
    MPI_Comm handle;
    int side[MOST_RANKS];  /* by rank in MPI_COMM_WORLD: which part; of an intercommunicator 0 or 1 */
    int place[MOST_RANKS]; /* the rank there */
    int sizes[MOST_RANKS]; /* ranks of each part */
} space_t;
/** @} */

/** What one thread of one rank tortures with. */
typedef struct {
    uint64_t seed;
    int rank;
    int ranks;
    int thread;
    int threads;
    size_t largest;
    bool ask_all;
    uint64_t rounds;

    MPI_Comm parent;  /* of all ranks, for collectives */
    MPI_Comm control; /* for tokens */
    space_t spaces[SPACES];
    int tag_top; /* MPI_TAG_UB */
    int windows; /* rounds whose tags differ */

    uint64_t round;
    uint64_t steps;
    const char *doing; /* the call that was entered last; the thread that watches for a hang reads it */
    int doing_message;
    unsigned long long messages; /* received and checked */
    unsigned long long bytes;
    unsigned long long truncated;
    unsigned long long cancelled;
} torture_t;

/** Fail with seed, round and how to repeat in front of the text. */
_Noreturn void torture_fail(const torture_t *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Fail unless an MPI call returned MPI_SUCCESS. */
void torture_must(const torture_t *t, int result, const char *call);

void spaces_open(torture_t *t, MPI_Comm shared);
void spaces_close(torture_t *t);
/** Free the communicators of parts and make others. */
void spaces_renew(torture_t *t);
void space_open_short(torture_t *t);
void space_close_short(torture_t *t);
/** Whether rank @p source can send to rank @p target there. */
bool space_connects(const space_t *space, int source, int target);

/** @name Plans (torture_plan.c) */
/** @{ */

typedef enum { MODE_STANDARD, MODE_SYNCHRONOUS, MODE_BUFFERED, MODE_READY, MODES } send_mode_t;

typedef enum {
    WAY_BLOCKING,
    WAY_NONBLOCKING,
    WAY_PERSISTENT,
    WAY_EXCHANGE, /* half of a sendrecv */
    WAY_REPLACE,  /* half of a sendrecv_replace */
    WAY_PROBE,    /* receives only: probe or iprobe, then recv */
    WAY_MATCHED,  /* mprobe or improbe, and mrecv or imrecv at message_t::take_at */
    WAY_CANCEL    /* irecv and cancel at once; recv when that succeeded */
} way_t;

/** A message of a plan. Of a message in a group the receiving half is one of the group's receives, and may get
 * any message of the group. */
typedef struct {
    int index;
    int space;
    int source; /* ranks in MPI_COMM_WORLD */
    int target;
    int label; /* its tag in small numbers; tag is what MPI gets */
    int tag;
    size_t bytes;
    uint64_t key;
    send_mode_t mode;
    way_t send_way;
    way_t recv_way;
    shape_t out;
    shape_t in;
    bool any_source;
    bool any_tag;
    bool held;       /* the receiver does nothing until the sender has seen that its synchronous send waits */
    int group;       /* -1: none */
    int leader;      /* first message of the same persistent requests */
    int next;        /* next one, or -1 */
    int sender_gets; /* WAY_EXCHANGE, WAY_REPLACE: what the sender receives in the same call, */
    int target_gives; /* and what the receiver sends in it; -1: nothing */
    uint64_t send_at;
    uint64_t recv_at;
    uint64_t take_at;  /* of WAY_MATCHED */
    uint64_t send_due; /* behind this position each half may be waited for */
    uint64_t recv_due;
} message_t;

/** Messages to one target that its receives take from any source. */
typedef struct {
    int count;
    int by_send[MOST_MEMBERS]; /* indices of messages in the order of sending */
    int by_recv[MOST_MEMBERS]; /* and in the order of posting */
} group_t;

typedef struct {
    bool fenced; /* a barrier ends the round */
    message_t messages[MOST_MESSAGES];
    int count;
    group_t groups[MOST_GROUPS];
    int group_count;
    int never_tag; /* no message has it */
} plan_t;

/** Bytes of buffered messages that a rank has in one round at most, with their overhead. */
#define BUFFERED_MOST 400000

void plan_make(plan_t *plan, const torture_t *t);
/** Rounds that can have tags of their own, 16 at most. Tags come back only behind a barrier. 0: too many
 * threads for that MPI_TAG_UB. */
int plan_windows(int tag_top, int threads);
/** @} */

/** @name One rank's part of a round (torture_round.c) */
/** @{ */

typedef enum { HALF_SEND, HALF_RECEIVE, HALF_TOKEN, HALF_JUNK } half_kind_t;

/** What one side of a message holds while it is under way; of a persistent request, for all of its messages. */
typedef struct {
    half_kind_t kind;
    message_t *m; /* the one under way; NULL: a receive that nothing will match */
    MPI_Request request;
    MPI_Message matched;
    MPI_Status status;
    image_t image;
    uint64_t due;    /* behind this position it may be waited for */
    bool active;     /* has begun and not ended */
    bool persistent; /* keeps its request when it ends */
    bool cancelled;
} half_t;

#define MOST_JUNK 6

typedef struct {
    torture_t *t;
    plan_t *plan;
    verify_rng_t rng; /* of this rank alone: what other ranks need not know */
    uint64_t now;     /* position reached */
    half_t *sends;    /* by index of message, or of the leader */
    half_t *receives;
    half_t *tokens;
    half_t junk[MOST_JUNK];
    half_t **pending; /* all that are active */
    int pending_count;
    half_t **freed; /* sends whose request was given up; their memory rests until the fence */
    int freed_count;
    int received[MOST_GROUPS];
} round_t;

/** Handle what a plan has for this rank. */
void round_run(torture_t *t, plan_t *plan);

/** Note what is called next, for who looks at a hang. */
void round_enter(round_t *r, const char *call, const message_t *m);
/** Fail unless the call noted last returned MPI_SUCCESS. */
void round_must(round_t *r, int result);
_Noreturn void round_fail(round_t *r, const message_t *m, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** @} */

/** @name Ending what has begun (torture_wait.c) */
/** @{ */

/** Whether its receive has too little room. */
bool truncates(const message_t *m);
/** Put a half that has begun among the pending ones. */
void pend(round_t *r, half_t *half, uint64_t due);
/** Wait for or test some of the pending halves, in a random way, and check those that ended. */
void end_some(round_t *r);
/** Wait for this one, which is due. */
void end_this(round_t *r, half_t *half);

/** Check what a receive got: status, data, and what lies around the data. @p error is what the call gave. */
void check_received(round_t *r, half_t *half, MPI_Status *status, int error);
/** Check the status of a probe for @p m. */
void check_probed(round_t *r, const message_t *m, MPI_Status *status);
/** Check that the buffer of a send is as it was. */
void check_sent(round_t *r, const message_t *m, const image_t *image);
/** Fail unless it is the status of a call with MPI_PROC_NULL. */
void check_null_status(round_t *r, MPI_Status *status);
/** @} */

/** @name Calls that must change nothing (torture_noise.c) */
/** @{ */

/** Make one of them, or none. */
void noise_make(round_t *r);
/** Cancel a receive that nothing matches, if it is active. */
void noise_cancel(round_t *r, half_t *half);
/** @} */

#endif
