/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_stage.c
 * The stage: memory of the sender, mapped by its receivers, through which its longer messages go. The ring carries one
 * line that says where the bytes lie.
 *
 *   +-----------+-----------+-- ... --+-------------+---------+---------+-- ... --+-----------+
 *   | granule 0 | granule 1 |         | granule n-1 | taken 0 | taken 1 |         | taken n-1 |
 *   +-----------+-----------+-- ... --+-------------+---------+---------+-- ... --+-----------+
 *
 * A granule serves one pair at a time: the sender puts messages into it, one behind the other, until the next one does
 * not fit. It may be used again when `taken`, the messages that receivers have read, equals what was put there. A receiver that does
 * not read thus keeps the granules that hold its messages and no more; when there is no other, messages go through the ring.
 *
 * A new page of memory takes as long to come as 100 KiB of messages for the sender, and between far cores as long again for
 * the receiver. So a sender that is answered goes on with the same granule once all of it has been read. In a stream it goes on with the
 * next one that has memory and has been read, and takes a new one where there is none.
 *
 * A stream is faster where its lines have left the caches when they are used again, although what dn_copy_in() writes asks for no bytes
 * of them, and where few pages hold them. So after DN_SHM_STAGE_STREAM moves the stage takes a large page of the processor's, if the
 * kernel has one, and from then on a granule as often. The large page costs as much as some granules in small pages, and its receivers
 * one fault.
 *
 * Pieces of long messages are packed by moves, which ask for the bytes of the lines that they write. Between cores that share a cache, these
 * come faster from the few granules that were read last; between others, faster from memory than from the reader's cache. So the sender
 * takes the time that it packs, goes the faster way, and tries the other one now and then (dn_choice.h).
 *
 *   S0  the sender writes the bytes, then the line that names them (W0 in dn_line.h); the receiver has read the line's
 *       head (R0) before it looks here.
 *   S1  the receiver has read the bytes, then counts `taken` (release); the sender loads it (acquire) before it opens
 *       the granule again. The next receiver adds to what it finds there: the sender's line came in between.
 *
 * A sender uses the stage only after the receiver has attached to its mapping: who comes later, when the sender has
 * left, finds all that was sent before in the ring.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dn_clock.h"
#include "dn_shm_memory.h"

/** Granules that are looked at for a free one. */
#define DN_SHM_STAGE_LOOKS 8

/** Moves from one granule with memory to another after which the stage takes a large page: 8 MiB, which take as long as the page. Where it
 * has that, or there is no such page, it adds a granule each time, up to DN_SHM_STAGE_WIDE: far, osu_bw's way, 8 KiB take 12 GB/s through
 * 2 MiB and 15 through 4. */
#define DN_SHM_STAGE_STREAM 256
#define DN_SHM_STAGE_WIDE   128u

/** A move by a piece of a long message counts as so many: a process that sends long messages sends much. */
#define DN_SHM_STAGE_PIECES_COUNT 8

/** Pieces by which a walk is tried. */
#define DN_SHM_PIECES_TRIES 32

/** Times that the kernel is asked for the large page, where it cannot give it at the moment. */
#define DN_SHM_STAGE_TRIES 4

/** Granules that are taken as soon as none is free. */
#define DN_SHM_STAGE_FIRST 4

/** Looks for a granule that has been read before a further one is taken: some 10 us, in which a reader that is at it has read some. New
 * memory takes 12 to 60 in a virtual machine (perf/dn_coll, gather). */
#define DN_SHM_STAGE_PATIENCE 256u

/** Granules in a large page. */
#define DN_SHM_STAGE_LARGE ((uint32_t) (DN_SHM_LARGE_PAGE / DN_SHM_GRANULE))

/** Where the first message of a granule begins. Its place in a page is then seldom just behind that of where it comes from, which
 * dn_copy_in() is slow with: memory that a program sends begins at a page, or close to it. */
#define DN_SHM_STAGE_START DN_LINE_BYTES

/** Looks in vain between two at whether readers live that were left with unread messages. */
#define DN_SHM_STAGE_MISSES 4096

_Static_assert(DN_LINE_LENGTHS <= DN_SHM_GRANULE - DN_SHM_STAGE_START,
               "the longest message fits into a granule");

/** A message on its way through the stage: the bytes of its line. */
typedef struct dn_shm_staged {
    uint32_t off; /**< from the start of the sender's stage, a multiple of DN_LINE_BYTES */
    uint32_t len;
} dn_shm_staged_t;

/** Arrows of the drawing in dn_shm_int.h. */
const uint32_t dn_shm_granule_turns[] = {
    [DN_SHM_GRANULE_NEW] = DN_TURN_TO(DN_SHM_GRANULE_OPEN),
    [DN_SHM_GRANULE_OPEN] = DN_TURN_TO(DN_SHM_GRANULE_RESTS),
    [DN_SHM_GRANULE_RESTS] = DN_TURN_TO(DN_SHM_GRANULE_OPEN) | DN_TURN_TO(DN_SHM_GRANULE_LEFT),
    [DN_SHM_GRANULE_LEFT] = DN_TURN_TO(DN_SHM_GRANULE_OPEN) | DN_TURN_TO(DN_SHM_GRANULE_RESTS),
};

dn_status_t dn_shm_stage_open(dn_shm_t *shm)
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
    stage->tries = DN_SHM_STAGE_LARGE <= stage->count ? DN_SHM_STAGE_TRIES : 0;
    stage->granule = calloc(stage->count + 1, sizeof(*stage->granule));
    if (NULL == stage->granule) {
        return DN_ERR_NOMEM;
    }
    for (uint32_t i = 0; 0 != shm->config.first && i < stage->count; i++) {
        stage->granule[i].put = shm->config.first;
        dn_store_release_u32(dn_shm_taken(&shm->map, i), shm->config.first);
    }
    return DN_OK;
}

void dn_shm_stage_close(dn_shm_t *shm)
{
    free(shm->stage.granule);
}

/** Has all of a granule been read? Equal is enough, whatever wraps: what was put there is ahead of what was taken by no more than a
 * granule holds. */
static int dn_shm_stage_read(const dn_shm_t *shm, const dn_shm_granule_t *granule)
{
    const uint32_t index = (uint32_t) (granule - shm->stage.granule);
    return dn_load_acquire_u32(dn_shm_taken(&shm->map, index)) == granule->put;
}

/** Granules whose reader was left alive, and is not any more. The lock is held. */
static void dn_shm_stage_reclaim(dn_shm_t *shm)
{
    for (uint32_t i = 0; i < shm->stage.count; i++) {
        dn_shm_granule_t *granule = &shm->stage.granule[i];
        if (DN_SHM_GRANULE_LEFT == granule->state && dn_shm_gone(granule->os_pid, granule->start_time)) {
            granule->put = dn_load_acquire_u32(dn_shm_taken(&shm->map, i));
            dn_shm_granule_turn(granule, DN_SHM_GRANULE_RESTS);
        }
    }
}

/**
 * Have all memory of granules at once, before it is touched: a fault for each page takes three times as long, and
 * may be a SIGBUS.
 * @return 0: there is none.
 */
static int dn_shm_stage_populate(const dn_shm_t *shm, uint32_t first, uint32_t count)
{
    uint8_t *granule = shm->map.stage + (size_t) first * DN_SHM_GRANULE;
    return 0
           == dn_shm_populate(shm->fd, granule, (uint64_t) (granule - (uint8_t *) shm->map.header),
                              (uint64_t) count * DN_SHM_GRANULE);
}

/** Open a granule that is found free for a peer, and let go of the one that it had. The lock is held. */
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

/** Is it a piece of a long message, of which two fill a granule? More of them follow. */
static inline int dn_shm_stage_is_piece(size_t len)
{
    return DN_SHM_GRANULE / 8 * 3 < len;
}

/** A granule with memory of which nothing is open or unread, from *next_p on; the lock is held. NULL: not found. */
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

/** Is something to go to the granules that were read last? */
static int dn_shm_stage_goes_again(const dn_shm_peer_t *peer, size_t len)
{
    return dn_shm_stage_is_piece(len) && DN_SHM_WALK_AGAIN == peer->stage.pieces.walk;
}

/** The same for @p len bytes. Where all that are to be used again are unread, any will do. */
static dn_shm_granule_t *dn_shm_stage_find_free(dn_shm_t *shm, const dn_shm_peer_t *peer, size_t len)
{
    uint32_t first = 0;

    if (dn_shm_stage_goes_again(peer, len)) {
        dn_shm_granule_t *granule = dn_shm_stage_look(shm, &first);
        if (NULL != granule || DN_SHM_STAGE_LOOKS >= shm->stage.populated) {
            return granule;
        }
    }
    return dn_shm_stage_look(shm, &shm->stage.next);
}

/** A granule that is used for the first time; the lock is held. NULL: there is none, or no memory for it. */
static dn_shm_granule_t *dn_shm_stage_grow(dn_shm_t *shm)
{
    dn_shm_stage_t *stage = &shm->stage;

    if (stage->populated >= stage->count || !dn_shm_stage_populate(shm, stage->populated, 1)) {
        return NULL;
    }
    dn_shm_granule_t *granule = &stage->granule[stage->populated];
    dn_store_relaxed(&stage->populated, stage->populated + 1);
    return granule;
}

/** Take a large page, in place of the granules that are there; what they hold stays. It takes long, so the lock is not held. */
static void dn_shm_stage_widen(dn_shm_t *shm)
{
    dn_shm_stage_t *stage = &shm->stage;
    const int error = dn_shm_collapse(shm->map.stage, DN_SHM_LARGE_PAGE);
    /* Emulators of a kernel say that it is done, and do nothing. */
    const uint32_t wide = 0 == error && dn_shm_stage_populate(shm, 0, DN_SHM_STAGE_LARGE);

    dn_lock(&stage->lock);
    if (wide && DN_SHM_STAGE_LARGE > stage->populated) {
        dn_store_relaxed(&stage->populated, DN_SHM_STAGE_LARGE);
    }
    dn_store_relaxed(&stage->wide, stage->wide | wide); /* another thread may have had it meanwhile */
    if (0 != error && EAGAIN != error && EBUSY != error && ENOMEM != error) {
        stage->tries = 0;
    }
    dn_unlock(&stage->lock);
}

/** A stream has moved on: has it done so often enough for the stage to become larger for good? The lock is held. */
static int dn_shm_stage_count(dn_shm_stage_t *stage, size_t len)
{
    stage->moves += dn_shm_stage_is_piece(len) ? DN_SHM_STAGE_PIECES_COUNT : 1;
    if (DN_SHM_STAGE_STREAM > stage->moves) {
        return 0;
    }
    stage->moves = 0;
    return 1;
}

/** Go on with a peer's own granule. @return 0: it has none, or not all of it has been read. */
static int dn_shm_stage_reuse(const dn_shm_t *shm, dn_shm_peer_t *peer)
{
    if (NULL == peer->stage.granule || !dn_shm_stage_read(shm, peer->stage.granule)) {
        return 0;
    }
    peer->stage.used = DN_SHM_STAGE_START;
    return 1;
}

/** Has a peer sent something since it was asked last? Threads do not look at what others receive: then it always has. */
static int dn_shm_stage_is_answered(dn_shm_peer_t *peer)
{
    const uint32_t head = peer->threads || NULL == peer->rx ? peer->stage.turned + 1 : peer->rx->line.head;
    const int answered = head != peer->stage.turned;

    peer->stage.turned = head;
    return answered;
}

/** Have room in another granule for a peer, or in its own once more. @param grows  also in one of new memory. @return 0: none is
 * free. */
static int dn_shm_stage_move(dn_shm_t *shm, dn_shm_peer_t *peer, size_t len, int grows)
{
    dn_shm_stage_t *stage = &shm->stage;
    int widens = 0;

    dn_lock(&stage->lock);
    dn_shm_granule_t *granule = dn_shm_stage_find_free(shm, peer, len);
    int found = NULL != granule || dn_shm_stage_reuse(shm, peer);
    if (!found && grows) {
        granule = dn_shm_stage_grow(shm);
        found = NULL != granule;
        if (!found && 0 == ++stage->misses % DN_SHM_STAGE_MISSES) {
            dn_shm_stage_reclaim(shm);
        }
    } else if (found && !dn_shm_stage_goes_again(peer, len) && dn_shm_stage_count(stage, len)) {
        widens = 0 != stage->tries && !stage->wide;
        stage->tries -= (uint32_t) widens;
        dn_shm_granule_t *more =
            widens || DN_SHM_STAGE_WIDE <= stage->populated ? NULL : dn_shm_stage_grow(shm);
        granule = NULL != more ? more : granule;
    }
    if (NULL != granule) {
        dn_shm_stage_give(granule, peer);
    }
    dn_unlock(&stage->lock);
    if (widens) {
        dn_shm_stage_widen(shm);
    }
    return found;
}

/** How often does the sender look for a granule that has been read, before it takes new memory? Half as often each time that this was
 * in vain, until there is nothing left to halve: then it begins anew. Not where the reader cannot run meanwhile, nor in a long stream. */
static uint32_t dn_shm_stage_patience(const dn_shm_stage_t *stage, const dn_shm_peer_t *peer)
{
    /* Another thread may change these: then it is one wait more, or less. */
    const uint32_t populated = dn_load_relaxed(&stage->populated);
    const int waits = !peer->self && !peer->contends && !dn_load_relaxed(&stage->wide)
                      && DN_SHM_STAGE_FIRST <= populated && populated < stage->count;

    return waits ? DN_SHM_STAGE_PATIENCE >> peer->stage.vain : 0;
}

/** Have room in a granule for a peer's next message. @return 0: none is free. */
static int dn_shm_stage_turn(dn_shm_t *shm, dn_shm_peer_t *peer, size_t len)
{
    const int answered = dn_shm_stage_is_answered(peer) && !dn_shm_stage_is_piece(len);

    if (answered && dn_shm_stage_reuse(shm, peer)) {
        return 1;
    }
    const uint32_t patience = dn_shm_stage_patience(&shm->stage, peer);
    for (uint32_t looks = 0; looks < patience; looks++) {
        if (dn_shm_stage_move(shm, peer, len, 0)) {
            peer->stage.vain = 0;
            return 1;
        }
        dn_pause();
    }
    const int found = dn_shm_stage_move(shm, peer, len, 1);
    if (0 != patience) {
        peer->stage.vain++;
    } else if (found) {
        peer->stage.vain = 0;
    }
    return found;
}

/** A piece has been packed: where does the next one go? */
static void dn_shm_pieces_end(dn_shm_pieces_t *pieces, size_t len)
{
    if (0 != pieces->began_ns) {
        dn_choice_learn(&pieces->choice, pieces->walk, ((dn_clock_ns() - pieces->began_ns) << 16) / len);
        pieces->began_ns = 0;
    }
    pieces->walk = (enum dn_shm_walk) dn_choice_make(&pieces->choice, DN_SHM_PIECES_TRIES, &pieces->timed);
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
    if (dn_shm_stage_is_piece(len) && peer->stage.pieces.timed) {
        peer->stage.pieces.began_ns = dn_clock_ns();
    }
    return DN_OK;
}

void dn_shm_stage_kick(dn_shm_peer_t *peer, unsigned channel, unsigned tag, size_t len)
{
    const dn_shm_t *shm = (const dn_shm_t *) peer->base.iface;
    const dn_shm_staged_t staged = {(uint32_t) (peer->stage.granule - shm->stage.granule) * DN_SHM_GRANULE
                                        + peer->stage.used,
                                    (uint32_t) len};

    if (dn_shm_stage_is_piece(len)) {
        dn_shm_pieces_end(&peer->stage.pieces, len);
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
