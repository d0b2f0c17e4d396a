/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_stage.c
 * The stage: memory of the sender, which its receivers map. The sender's longer messages go through the stage. For each such
 * message the ring carries one line that says where the bytes lie.
 *
 *   +-----------+-----------+-- ... --+-------------+---------+---------+-- ... --+-----------+
 *   | granule 0 | granule 1 |         | granule n-1 | taken 0 | taken 1 |         | taken n-1 |
 *   +-----------+-----------+-- ... --+-------------+---------+---------+-- ... --+-----------+
 *
 * A granule serves one sender and one receiver at a time: the sender puts messages into the granule, one behind the other, until
 * the next message does not fit. The granule may be used again when `taken`, the count of messages that receivers have read,
 * equals the count of messages put there. A receiver that does not read thus keeps only the granules that hold its messages.
 * Where the sender finds no granule, messages go through the ring.
 *
 * To get a new page of memory takes the sender as long as to send 100 KiB of messages, and between far cores it takes the
 * receiver as long again. So the stage begins without memory. It takes the memory of one more granule where no granule is free,
 * and once in DN_SHM_STAGE_TURNS turns from one granule to the next (DN_SHM_STAGE_TURNS_BEYOND where the stage is larger): a
 * process that sends much has a large stage.
 *
 * Where the process has threads already, as a process of Open MPI has, and the host has a core for each process, a further thread
 * brings in DN_SHM_STAGE_CACHES granules while the program starts, so that the first messages wait for no memory. As a receiver
 * connects, it enters the pages of these granules into its page table: otherwise its first read of each page would take as long
 * as to copy the page.
 *
 * In a stream the sender goes on with the next granule that has been read. A sender that is answered, or that sends pieces of long
 * messages, chooses one of two walks:
 *
 *   again  its own granule, or the first one that has been read: few granules stay in the caches. Faster where two cores share these.
 *   on     the next granule, as in a stream: between cores that share no small cache, a line that has left the reader's cache is
 *          written in half the time of a line that has not.
 *
 * Lines leave the caches where the stage is larger than the caches. From DN_SHM_STAGE_CACHES granules on, the sender measures the time
 * that its messages take to be written, uses the faster walk, and tries the other walk now and then (dn_choice.h). The first lap of the
 * walk "on" takes about as long as the walk "again". The next laps take half as long, as the caches that cores share hold the lines then.
 *
 *   S0  the sender writes the bytes, then the line that names them (W0 in dn_line.h); the receiver has read the line's
 *       head (R0) before the receiver looks here.
 *   S1  the receiver has read the bytes, then counts `taken` (release); the sender loads it (acquire) before it opens
 *       the granule again. The next receiver adds to what it finds there: the sender's line came in between.
 *
 * A sender uses the stage only after the receiver has attached to the sender's mapping. A receiver that cannot attach, since the sender
 * has left already, finds all its messages in the ring.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_clock.h"
#include "dn_shm_memory.h"
#include "dn_thread.h"

/** Granules at which a search for a free granule looks at most. */
#define DN_SHM_STAGE_LOOKS 8

/** Turns (to another granule, or to the start of the same) after which the stage takes one more granule: up to DN_SHM_STAGE_CACHES granules,
 * and beyond. So the memory comes while 32 MiB of messages, and then 512 MiB more, go through the stage. */
#define DN_SHM_STAGE_TURNS        16u
#define DN_SHM_STAGE_TURNS_BEYOND 256u

/** DN_SHM_STAGE_CACHES granules are 2 MiB, more than the second cache of a core. Turns bring in no more than DN_SHM_STAGE_WIDE granules: with
 * twice as many, messages as osu_bw's take a tenth more time. */
#define DN_SHM_STAGE_CACHES 64u
#define DN_SHM_STAGE_WIDE   128u

/** Connections at most whose peer's early memory is entered into this process's page table. This takes 0.3 ms for each. */
#define DN_SHM_STAGE_MEETS 8u

/** Turns without an answer after which the messages to a peer are a stream. */
#define DN_SHM_STAGE_ALONE 4u

/** The shortest message that counts for the choice of a walk. A window may be kicked with far less than was reserved, and tells nothing about
 * a walk then. The choice also counts in units of this length. */
#define DN_SHM_WALK_MIN 1024u

/** The trials of walks, in whole KiB of messages (perf/dn_coll, alltoall of 4 to 64 KiB without coll_llcm). A trial of the walk "on" lasts some
 * laps of the stage, until the caches hold as much of the stage as they can. This trial begins as soon as the walk "again" has been timed in
 * warm memory. The first lap of the walk "on" takes about as long as the walk "again", and the next laps half of that between most cores. A
 * round is 512 MiB, since a trial through cold memory is long. */
#define DN_SHM_WALK_COUNTS 96u
static const dn_choice_plan_t dn_shm_walk_plan = {
    .tries = {[DN_SHM_WALK_AGAIN] = 256,
              [DN_SHM_WALK_ON] = DN_SHM_STAGE_CACHES * DN_SHM_GRANULE / 2 * 7 / DN_SHM_WALK_MIN},
    .counts = DN_SHM_WALK_COUNTS,
    .once = 128,
    .every = 1u << 19};

/** The first so many granules get their memory at once where no granule is free: the sender does not wait for a reader. */
#define DN_SHM_STAGE_FIRST 4

/** Looks for a granule that has been read, before the stage takes new memory. They last some 10 us, in which a receiver that is reading has read
 * some messages. New memory takes 12 to 60 us in a virtual machine (perf/dn_coll, gather). */
#define DN_SHM_STAGE_PATIENCE 256u

/** Offset of the first message in a granule. dn_copy_in() is slow where the target's offset in a page is just behind the source's offset in
 * its page. The memory that a program sends begins at a page, or close to it. So this offset is seldom slow. */
#define DN_SHM_STAGE_START DN_LINE_BYTES

/** Turns in vain between two checks whether the readers of LEFT granules live. */
#define DN_SHM_STAGE_MISSES 4096

_Static_assert(DN_SHM_GRANULE / DN_SHM_WALK_MIN <= DN_SHM_WALK_COUNTS,
               "each trial has messages that are timed");
_Static_assert(DN_SHM_STAGE_CACHES *DN_SHM_GRANULE <= DN_SHM_ENTER_MAX, "what is early is entered at once");
_Static_assert(DN_LINE_LENGTHS <= DN_SHM_GRANULE - DN_SHM_STAGE_START,
               "the longest message fits into a granule");

/** The line of a message that goes through the stage. */
typedef struct dn_shm_staged {
    uint32_t off; /**< from the start of the sender's stage, a multiple of DN_LINE_BYTES */
    uint32_t len;
} dn_shm_staged_t;

/** The arrows of the drawing in dn_shm_int.h. */
const uint32_t dn_shm_granule_turns[] = {
    [DN_SHM_GRANULE_NEW] = DN_TURN_TO(DN_SHM_GRANULE_OPEN),
    [DN_SHM_GRANULE_OPEN] = DN_TURN_TO(DN_SHM_GRANULE_RESTS),
    [DN_SHM_GRANULE_RESTS] = DN_TURN_TO(DN_SHM_GRANULE_OPEN) | DN_TURN_TO(DN_SHM_GRANULE_LEFT),
    [DN_SHM_GRANULE_LEFT] = DN_TURN_TO(DN_SHM_GRANULE_OPEN) | DN_TURN_TO(DN_SHM_GRANULE_RESTS),
};

/** Have all messages of a granule been read? The counts wrap, but to compare them for equality suffices: they differ by no more than the
 * messages that a granule holds. */
static int dn_shm_stage_read(const dn_shm_t *shm, const dn_shm_granule_t *granule)
{
    const uint32_t index = (uint32_t) (granule - shm->stage.granule);
    return dn_load_acquire_u32(dn_shm_taken(&shm->map, index)) == granule->put;
}

/** Count the messages of a granule as read: nobody reads them any more. The lock is held. */
static void dn_shm_stage_drop(const dn_shm_t *shm, dn_shm_granule_t *granule)
{
    const uint32_t index = (uint32_t) (granule - shm->stage.granule);
    granule->put = dn_load_acquire_u32(dn_shm_taken(&shm->map, index));
}

/** Take back the LEFT granules whose reader's process has ended. The lock is held. */
static void dn_shm_stage_reclaim(dn_shm_t *shm)
{
    for (uint32_t i = 0; i < shm->stage.count; i++) {
        dn_shm_granule_t *granule = &shm->stage.granule[i];
        if (DN_SHM_GRANULE_LEFT == granule->state && dn_shm_gone(granule->os_pid, granule->start_time)) {
            dn_shm_stage_drop(shm, granule);
            dn_shm_granule_turn(granule, DN_SHM_GRANULE_RESTS);
        }
    }
}

/**
 * Allocate the memory of a granule at once, before it is touched. A fault for each page takes three times as long, and may end
 * the process by a SIGBUS.
 * @return 0: there is no memory.
 */
static int dn_shm_stage_populate(const dn_shm_t *shm, uint32_t index)
{
    uint8_t *granule = shm->map.stage + (size_t) index * DN_SHM_GRANULE;
    return 0
           == dn_shm_populate(shm->fd, granule, (uint64_t) (granule - (uint8_t *) shm->map.header),
                              DN_SHM_GRANULE);
}

/** Open a free granule for a peer, and let go of the granule that the peer had. The lock is held. */
static void dn_shm_stage_give(dn_shm_granule_t *granule, dn_shm_peer_t *peer)
{
    if (NULL != peer->stage.granule) {
        dn_shm_granule_turn(peer->stage.granule, DN_SHM_GRANULE_RESTS);
    }
    dn_shm_granule_turn(granule, DN_SHM_GRANULE_OPEN);
    granule->peer = peer;
    peer->stage.granule = granule;
    peer->stage.used = DN_SHM_STAGE_START;
}

/** Is a message of @p len bytes a piece of a long message? Two such pieces fill a granule, and more of them follow. */
static inline int dn_shm_stage_is_piece(size_t len)
{
    return DN_SHM_GRANULE / 8 * 3 < len;
}

/** The choice of a walk for messages of @p len bytes. */
static inline dn_shm_walks_t *dn_shm_walks_of(dn_shm_peer_t *peer, size_t len)
{
    return &peer->stage.walks[dn_shm_stage_is_piece(len) ? DN_SHM_WALK_PIECE
                              : DN_SHM_PAGE < len        ? DN_SHM_WALK_MEDIUM
                                                         : DN_SHM_WALK_SHORT];
}

/** Find a granule with memory, from *next_p on, that is not open and has no unread message. The lock is held. NULL: not found. */
static dn_shm_granule_t *dn_shm_stage_look(dn_shm_t *shm, uint32_t *next_p)
{
    const dn_shm_stage_t *stage = &shm->stage;

    for (uint32_t i = 0; i < DN_SHM_STAGE_LOOKS && i < stage->populated; i++) {
        dn_shm_granule_t *granule = &stage->granule[*next_p];

        *next_p = *next_p + 1 >= stage->populated ? 0 : *next_p + 1;
        if (DN_SHM_GRANULE_OPEN != granule->state && dn_shm_stage_read(shm, granule)) {
            return granule;
        }
    }
    return NULL;
}

/** Find a free granule for a peer by a walk. If the walk "again" finds none among the first granules, take any. The lock is held. */
static dn_shm_granule_t *dn_shm_stage_find_free(dn_shm_t *shm, enum dn_shm_walk walk)
{
    uint32_t first = 0;

    if (DN_SHM_WALK_AGAIN == walk) {
        dn_shm_granule_t *granule = dn_shm_stage_look(shm, &first);
        if (NULL != granule || DN_SHM_STAGE_LOOKS >= shm->stage.populated) {
            return granule;
        }
    }
    return dn_shm_stage_look(shm, &shm->stage.next);
}

/** Get a granule that was never used. The lock is held. NULL: there is no such granule, or no memory for it. */
static dn_shm_granule_t *dn_shm_stage_grow(dn_shm_t *shm)
{
    dn_shm_stage_t *stage = &shm->stage;
    const int grown = stage->populated < stage->count && dn_shm_stage_populate(shm, stage->populated);

    /* To be refused takes long, too. */
    dn_store_relaxed(&stage->turns, 0);
    dn_store_relaxed(&stage->due, grown && DN_SHM_STAGE_CACHES > stage->populated
                                      ? DN_SHM_STAGE_TURNS
                                      : DN_SHM_STAGE_TURNS_BEYOND);
    if (!grown) {
        return NULL;
    }
    dn_shm_granule_t *granule = &stage->granule[stage->populated];
    dn_store_relaxed(&stage->populated, stage->populated + 1);
    return granule;
}

/** The thread that brings memory in: a granule at a time, until it has all or is to end. */
static void *dn_shm_stage_early(void *arg)
{
    dn_shm_t *shm = arg;
    dn_shm_stage_t *stage = &shm->stage;
    int brought = 1;

    for (uint32_t i = 0; brought && i < DN_SHM_STAGE_CACHES && 0 == dn_load_acquire_u32(&stage->ends); i++) {
        /* Senders may take it meanwhile: then it is there, and this is soon over. */
        brought = dn_shm_stage_populate(shm, i);
        dn_lock(&stage->lock);
        if (brought && i == stage->populated) {
            dn_store_relaxed(&stage->populated, i + 1);
        }
        dn_unlock(&stage->lock);
    }
    return NULL;
}

void dn_shm_stage_meet(dn_shm_t *shm, const dn_shm_peer_t *peer)
{
    const uint64_t early = (uint64_t) DN_SHM_STAGE_CACHES * DN_SHM_GRANULE;

    if (shm->stage.early && !peer->self && DN_SHM_STAGE_MEETS > shm->stage.met) {
        shm->stage.met++;
        dn_shm_enter_pages(peer->map.stage, early < peer->map.stage_bytes ? early : peer->map.stage_bytes);
    }
}

/** Is memory to be brought in early? Where memory may run out, or cores are few, it comes as it is needed. */
static int dn_shm_stage_is_early(const dn_shm_t *shm, const dn_job_t *job)
{
    return DN_SHM_STAGE_CACHES <= shm->stage.count && shm->memfd && !shm->counted && dn_thread_has_others()
           && 1 < job->nlocal && job->nlocal <= (uint64_t) sysconf(_SC_NPROCESSORS_ONLN);
}

dn_status_t dn_shm_stage_open(dn_shm_t *shm, const dn_job_t *job)
{
    dn_shm_stage_t *stage = &shm->stage;

    stage->count = shm->map.stage_bytes / DN_SHM_GRANULE;
    if (0 != stage->count && shm->counted) {
        uint8_t *taken = (uint8_t *) dn_shm_taken(&shm->map, 0);
        const uint64_t off = (uint64_t) (taken - (uint8_t *) shm->map.header);
        if (0 != dn_shm_populate(shm->fd, taken, off, shm->map.bytes - off)) {
            stage->count = 0; /* what could go through it goes through rings */
        }
    }
    stage->granule = calloc(stage->count + 1, sizeof(*stage->granule));
    if (NULL == stage->granule) {
        return DN_ERR_NOMEM;
    }
    for (uint32_t i = 0; 0 != shm->config.first && i < stage->count; i++) {
        stage->granule[i].put = shm->config.first;
        dn_store_release_u32(dn_shm_taken(&shm->map, i), shm->config.first);
    }
    stage->early =
        dn_shm_stage_is_early(shm, job) && 0 == dn_thread_start(&stage->thread, dn_shm_stage_early, shm);
    stage->due = stage->early ? DN_SHM_STAGE_TURNS_BEYOND : 0;
    return DN_OK;
}

void dn_shm_stage_end(dn_shm_t *shm)
{
    if (shm->stage.early) {
        dn_store_release_u32(&shm->stage.ends, 1);
        (void) pthread_join(shm->stage.thread, NULL);
    }
    shm->stage.early = 0;
}

void dn_shm_stage_close(dn_shm_t *shm)
{
    free(shm->stage.granule);
}

/** Count a turn: is it time to take one more granule? Where threads turn at once, a turn may not be counted. */
static int dn_shm_stage_is_due(dn_shm_stage_t *stage)
{
    const uint32_t turns = dn_load_relaxed(&stage->turns) + 1;

    dn_store_relaxed(&stage->turns, turns);
    return dn_load_relaxed(&stage->due) <= turns && dn_load_relaxed(&stage->populated) < stage->count
           && dn_load_relaxed(&stage->populated) < DN_SHM_STAGE_WIDE;
}

/** Begin a peer's own granule anew. @return 0: the peer has no granule, or not all its messages have been read. */
static int dn_shm_stage_reuse(const dn_shm_t *shm, dn_shm_peer_t *peer)
{
    if (NULL == peer->stage.granule || !dn_shm_stage_read(shm, peer->stage.granule)) {
        return 0;
    }
    peer->stage.used = DN_SHM_STAGE_START;
    return 1;
}

/** Has a message of the peer come in the last few turns? Where there are threads, the answer is always yes: a thread does not read what
 * others receive. */
static int dn_shm_stage_is_answered(dn_shm_peer_t *peer)
{
    const uint32_t head = peer->threads || NULL == peer->rx ? peer->stage.turned + 1 : peer->rx->line.head;
    const uint32_t alone =
        DN_SHM_STAGE_ALONE > peer->stage.alone ? peer->stage.alone + 1 : DN_SHM_STAGE_ALONE;

    peer->stage.alone = head != peer->stage.turned ? 0 : alone;
    peer->stage.turned = head;
    return DN_SHM_STAGE_ALONE > peer->stage.alone;
}

/** Open a granule of new memory for a peer. @return 0: there is none. */
static int dn_shm_stage_add(dn_shm_t *shm, dn_shm_peer_t *peer)
{
    dn_lock(&shm->stage.lock);
    dn_shm_granule_t *granule = dn_shm_stage_grow(shm);
    if (NULL != granule) {
        dn_shm_stage_give(granule, peer);
    }
    dn_unlock(&shm->stage.lock);
    return NULL != granule;
}

/** Make room for a peer in another granule, or in its own granule once more. @return 0: none of them has been read. */
static int dn_shm_stage_move(dn_shm_t *shm, dn_shm_peer_t *peer, enum dn_shm_walk walk)
{
    dn_lock(&shm->stage.lock);
    dn_shm_granule_t *granule = dn_shm_stage_find_free(shm, walk);
    const int found = NULL != granule || dn_shm_stage_reuse(shm, peer);
    if (NULL != granule) {
        dn_shm_stage_give(granule, peer);
    }
    dn_unlock(&shm->stage.lock);
    return found;
}

/** Count a turn that found no granule. Now and then look for readers that have ended. */
static void dn_shm_stage_missed(dn_shm_t *shm)
{
    dn_lock(&shm->stage.lock);
    if (0 == ++shm->stage.misses % DN_SHM_STAGE_MISSES) {
        dn_shm_stage_reclaim(shm);
    }
    dn_unlock(&shm->stage.lock);
}

/** How often does the sender look for a granule that has been read, before it takes new memory? After each wait in vain half as often, down
 * to 0; then as often as at first. The sender does not wait where the receiver cannot run meanwhile, nor where the stage has fewer than
 * DN_SHM_STAGE_FIRST granules, or DN_SHM_STAGE_CACHES and more. */
static uint32_t dn_shm_stage_patience(const dn_shm_stage_t *stage, const dn_shm_peer_t *peer)
{
    /* Another thread may change these: then it is one wait more, or less. */
    const uint32_t populated = dn_load_relaxed(&stage->populated);
    const int waits = !peer->self && !peer->contends && DN_SHM_STAGE_FIRST <= populated
                      && populated < DN_SHM_STAGE_CACHES && populated < stage->count;

    return waits ? DN_SHM_STAGE_PATIENCE >> peer->stage.vain : 0;
}

/** Make room in a granule for a peer's next message. @return 0: no granule is free. */
static int dn_shm_stage_turn(dn_shm_t *shm, dn_shm_peer_t *peer, size_t len)
{
    const int chooses = dn_shm_stage_is_answered(peer) || dn_shm_stage_is_piece(len);

    peer->stage.walking = chooses ? dn_shm_walks_of(peer, len) : NULL;
    const enum dn_shm_walk walk = chooses ? peer->stage.walking->walk : DN_SHM_WALK_ON;
    if (dn_shm_stage_is_due(&shm->stage) && dn_shm_stage_add(shm, peer)) {
        return 1;
    }
    if (DN_SHM_WALK_AGAIN == walk && !dn_shm_stage_is_piece(len) && dn_shm_stage_reuse(shm, peer)) {
        return 1;
    }
    const uint32_t patience = dn_shm_stage_patience(&shm->stage, peer);
    for (uint32_t looks = 0; looks <= patience; looks++) {
        if (dn_shm_stage_move(shm, peer, walk)) {
            peer->stage.vain = 0;
            return 1;
        }
        dn_pause();
    }
    const int found = dn_shm_stage_add(shm, peer);
    if (0 != patience) {
        peer->stage.vain++;
    } else if (found) {
        peer->stage.vain = 0;
    }
    if (!found) {
        dn_shm_stage_missed(shm);
    }
    return found;
}

/** A message of @p len bytes has been written: learn its time, and choose the walk of the next messages. */
static void dn_shm_walk_next(dn_shm_peer_t *peer, size_t len)
{
    const dn_shm_t *shm = (const dn_shm_t *) peer->base.iface;
    dn_shm_walks_t *walks = peer->stage.walking;

    if (0 != peer->stage.began_ns) {
        dn_choice_learn(&walks->choice, walks->walk, ((dn_clock_ns() - peer->stage.began_ns) << 16) / len);
    }
    if (DN_SHM_STAGE_CACHES <= dn_load_relaxed(&shm->stage.populated)) {
        walks->walk = (enum dn_shm_walk) dn_choice_make(&walks->choice, &dn_shm_walk_plan,
                                                        (uint32_t) (len / DN_SHM_WALK_MIN), &walks->timed);
    }
}

dn_status_t dn_shm_stage_reserve(dn_shm_peer_t *peer, size_t len, uint8_t **place_p)
{
    dn_shm_t *shm = (dn_shm_t *) peer->base.iface;

    if (DN_SHM_TX_STAGE != peer->tx_state) {
        if (DN_SHM_TX_SHUT == peer->tx_state || 0 == shm->stage.count
            || 0 == dn_load_acquire_u32(&peer->tx.ring->attached)) {
            return DN_ERR_UNSUPPORTED;
        }
        dn_shm_tx_turn(peer, DN_SHM_TX_STAGE);
    }
    if (!dn_line_free(&peer->tx, 1)) {
        return DN_ERR_AGAIN;
    }
    if ((NULL == peer->stage.granule || len > DN_SHM_GRANULE - peer->stage.used)
        && !dn_shm_stage_turn(shm, peer, len)) {
        /* With a granule, it has not read all that is there. */
        return NULL != peer->stage.granule ? DN_ERR_AGAIN : DN_ERR_UNSUPPORTED;
    }
    *place_p = shm->map.stage + (size_t) (peer->stage.granule - shm->stage.granule) * DN_SHM_GRANULE
               + peer->stage.used;
    peer->stage.began_ns = NULL != peer->stage.walking && peer->stage.walking->timed ? dn_clock_ns() : 0;
    return DN_OK;
}

void dn_shm_stage_kick(dn_shm_peer_t *peer, unsigned channel, unsigned tag, size_t len)
{
    const dn_shm_t *shm = (const dn_shm_t *) peer->base.iface;
    const dn_shm_staged_t staged = {(uint32_t) (peer->stage.granule - shm->stage.granule) * DN_SHM_GRANULE
                                        + peer->stage.used,
                                    (uint32_t) len};

    if (DN_SHM_WALK_MIN <= len && NULL != peer->stage.walking) {
        dn_shm_walk_next(peer, len);
    }
    peer->stage.granule->put++;
    peer->stage.used += dn_line_units(len) * DN_LINE_BYTES;
    (void) dn_line_send(&peer->tx, channel | DN_SHM_STAGED, tag, &staged, sizeof(staged), NULL, 0);
}

uint32_t *dn_shm_stage_find(const dn_shm_rx_t *rx, dn_line_msg_t *msg)
{
    const dn_shm_map_t *map = &rx->peer->map;
    dn_shm_staged_t staged;

    if (sizeof(staged) != msg->len || NULL == map->header) {
        return NULL;
    }
    memcpy(&staged, msg->data, sizeof(staged));
    if (staged.off >= map->stage_bytes || 0 != staged.off % DN_LINE_BYTES || staged.len >= rx->len_limit
        || staged.len > DN_SHM_GRANULE - staged.off % DN_SHM_GRANULE) {
        return NULL;
    }
    msg->channel &= (uint8_t) ~DN_SHM_STAGED;
    msg->data = map->stage + staged.off;
    msg->len = staged.len;
    return dn_shm_taken(map, staged.off / DN_SHM_GRANULE);
}

void dn_shm_stage_leave(dn_shm_peer_t *peer)
{
    dn_shm_t *shm = (dn_shm_t *) peer->base.iface;
    dn_shm_stage_t *stage = &shm->stage;

    dn_lock(&stage->lock);
    for (uint32_t i = 0; i < stage->count; i++) {
        dn_shm_granule_t *granule = &stage->granule[i];
        if (peer == granule->peer) {
            granule->peer = NULL;
            if (DN_SHM_GRANULE_OPEN == granule->state) {
                dn_shm_granule_turn(granule, DN_SHM_GRANULE_RESTS);
            }
            if (dn_shm_has_closed(peer)) {
                /* Pairs with the store in dn_shm_close(), before which the peer has read for the last time. */
                dn_shm_stage_drop(shm, granule);
            }
            if (!dn_shm_stage_read(shm, granule)) {
                dn_shm_granule_turn(granule, DN_SHM_GRANULE_LEFT);
                granule->os_pid = peer->process.os_pid;
                granule->start_time = peer->process.start_time;
            }
        }
    }
    dn_unlock(&stage->lock);
    peer->stage.granule = NULL;
}
