/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A process that connects properly, and then writes what it likes into the memory that it shares with its
 * victim: heads, rings, slots, headers, stages, help descriptors, messages to the core processor, programs, keys.
 * The victim may cut it off, but must not crash, hang, or touch a byte outside of what it offered, and goes on serving
 * a third process. Headers that are wrong from the start are refused with one sentence each.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dn_core_int.h"
#include "shm/dn_shm_int.h"

/** A block in the short form lies within 64 KiB of its base, and is not longer: in the guard, where it leaves the segment. */
enum { VICTIM, ATTACKER, WITNESS, PROCESSES, OFFERED = 4096, GUARD = 2 << 16, ROUNDS = 400 };

/** Bytes of a stage: two granules. */
#define STAGE (2 * DN_SHM_GRANULE)

static dn_shm_map_t theirs; /**< attacker: the victim's mapping */
static uint32_t my_slot;    /**< attacker: in the victim's mapping */
static dn_line_tx_t my_tx;  /**< attacker: its ring there, used past the library */
static uint8_t offered[GUARD + OFFERED + GUARD];
static uint64_t heard;

static dn_shm_where_t where_of(const dn_board_seat_t *seat)
{
    dn_shm_where_t where;

    memcpy(&where, seat->address + seat->address_len - sizeof(where), sizeof(where));
    return where;
}

/** The attacker's view: everything that its process can write. */
static void take_position(dn_world_t *world)
{
    const dn_shm_where_t where = where_of(&world->board->seat[VICTIM]);
    const dn_peer_base_t id = {.pid = VICTIM, .pgid = dn_world_pgid(world)};
    const dn_shm_where_t mine = where_of(world->me);

    dn_shm_detach(&theirs);
    dn_check_equal(dn_shm_attach(&where, &id, &theirs), DN_OK);
    my_slot = 0;
    while (my_slot < world->config.max_peers
           && 0 != memcmp(theirs.slot[my_slot].nonce, mine.nonce, sizeof(mine.nonce))) {
        my_slot++;
    }
    dn_check(my_slot < world->config.max_peers);
    dn_line_tx_init(&my_tx, (dn_ring_t *) (theirs.rings + my_slot * theirs.ring_stride),
                    world->config.ring_lines, 0);
}

/** The attacker's own mapping beside that of the library. */
static const dn_shm_map_t *own_map(const dn_world_t *world)
{
    static dn_shm_map_t mine;

    if (NULL == mine.header) {
        const dn_shm_where_t where = where_of(world->me);
        const dn_peer_base_t id = {.pid = (uint32_t) world->rank, .pgid = dn_world_pgid(world)};
        dn_check_equal(dn_shm_attach(&where, &id, &mine), DN_OK);
    }
    return &mine;
}

static void scribble(void *memory, size_t len, uint64_t *random)
{
    for (size_t i = 0; i < len; i++) {
        ((volatile uint8_t *) memory)[i] = (uint8_t) dn_test_random(random);
    }
}

/** A number that looks useful to an attacker. */
static uint64_t wicked(uint64_t *random)
{
    static const uint64_t edge[] = {0,
                                    1,
                                    2,
                                    8,
                                    56,
                                    57,
                                    64,
                                    OFFERED,
                                    OFFERED - 1,
                                    OFFERED + 1,
                                    65535,
                                    65536,
                                    UINT32_MAX,
                                    UINT64_MAX,
                                    UINT64_MAX - 7,
                                    INT64_MAX,
                                    UINT64_C(1) << 63,
                                    UINT64_C(1) << 40};

    return 0 == dn_test_below(random, 4) ? dn_test_random(random)
                                         : edge[dn_test_below(random, sizeof(edge) / sizeof(edge[0]))];
}

/* Attacks: one step each */

static void raw_message(dn_world_t *world, unsigned channel, unsigned tag, const void *data, size_t len)
{
    /* A victim that has cut us off returns no credit any more: having waited for it once is enough. */
    static int patience = 1000;
    int sent = 0;

    for (int i = 0; !sent && i < patience; i++) {
        sent = dn_line_send(&my_tx, channel, tag, data, len, NULL, 0);
        if (!sent) {
            dn_world_progress(world);
        }
    }
    patience = sent ? 1000 : 10;
}

/** Words that a core-processor message consists of, some of them a live segment's. */
static void attack_core(dn_world_t *world, uint64_t *random)
{
    uint64_t word[128];
    const dn_key_t *key = &world->board->seat[VICTIM].key[dn_test_below(random, 2)];

    for (size_t i = 0; i < 128; i++) {
        word[i] = wicked(random);
    }
    if (0 != dn_test_below(random, 8)) {
        word[1] = (uint64_t) key->generation << 32 | key->sid;
        word[2] = dn_test_below(random, 40) | dn_test_below(random, 4) << 32;
    }
    const size_t most = 0 == dn_test_below(random, 2) ? 128 : 1024;
    raw_message(world, DN_CHAN_CORE, (unsigned) dn_test_below(random, 9), word,
                dn_test_below(random, most + 1));
}

/** What fits, or at times something wicked. */
static uint64_t perhaps(uint64_t *random, uint64_t fits)
{
    return 0 == dn_test_below(random, 12) ? wicked(random) : fits;
}

/** A program of two rows of blocks that reaches below its origin. @return bytes of its encoding; of an instance in *size_p. */
static size_t encode(uint8_t *bytes, size_t room, uint64_t *size_p)
{
    const dn_prog_op_t op[] = {{DN_PROG_RUN, 0, -64, 8, 10, 24}, {DN_PROG_RUN, 0, 300, 24, 5, -40}};
    dn_prog_t *prog = NULL;

    dn_check_equal(dn_prog_create(op, 2, &prog), DN_OK);
    dn_check_equal(dn_prog_encode(prog, bytes, &room), DN_OK);
    *size_p = dn_prog_info(prog)->size;
    dn_prog_free(prog);
    return room;
}

/** A piece of a program for one of three slots: whole, or wrong somewhere. */
static void attack_slot(dn_world_t *world, uint64_t *random)
{
    uint8_t message[sizeof(dn_ship_piece_t) + 512];
    uint8_t *bytes = message + sizeof(dn_ship_piece_t);
    uint64_t size;
    const size_t len = encode(bytes, 512, &size);
    const uint32_t slot = (uint32_t) dn_test_below(random, 3);
    const dn_ship_piece_t piece = {.id = perhaps(random, 1 + slot),
                                   .slot = (uint32_t) perhaps(random, slot),
                                   .flags = (uint32_t) perhaps(random, 0),
                                   .len = (uint32_t) perhaps(random, len),
                                   .at = (uint32_t) perhaps(random, 0)};

    memcpy(message, &piece, sizeof(piece));
    if (0 == dn_test_below(random, 3)) {
        const uint64_t word = wicked(random);
        memcpy(bytes + 8 * dn_test_below(random, len / 8), &word, sizeof(word));
    }
    const size_t n = 0 == dn_test_below(random, 8) ? dn_test_below(random, 512) : len;
    raw_message(world, DN_CHAN_CORE, DN_CORE_PROG, message, sizeof(piece) + n);
}

/** A PUSH or PULL that names such a program, on a live segment, and fits into it or not. */
static void attack_programs(dn_world_t *world, uint64_t *random)
{
    uint8_t message[1500];
    uint64_t size;
    const dn_key_t *key = &world->board->seat[VICTIM].key[dn_test_below(random, 2)];
    const uint64_t slot = dn_test_below(random, 3);
    const uint64_t count = dn_test_below(random, 12);

    if (0 == dn_test_below(random, 3)) {
        attack_slot(world, random);
        return;
    }
    encode(message, sizeof(message), &size);
    const dn_core_use_t use = {.id = perhaps(random, 1 + slot),
                               .count = perhaps(random, count),
                               .extent = (int64_t) perhaps(random, dn_test_below(random, 400)),
                               .roff = perhaps(random, dn_test_below(random, OFFERED)),
                               .len = perhaps(random, size * count),
                               .at = perhaps(random, dn_test_below(random, 1 + size * count))};
    const dn_core_request_t request = {.sid = key->sid,
                                       .sid_generation = key->generation,
                                       .blocks = (uint32_t) perhaps(random, slot),
                                       .flags = DN_CORE_USE | (uint32_t) dn_test_below(random, 4),
                                       .off = perhaps(random, 8 * dn_test_below(random, 10))};
    scribble(message, sizeof(message), random);
    memcpy(message, &request, sizeof(request));
    memcpy(message + sizeof(request), &use, sizeof(use));
    const size_t head = sizeof(request) + sizeof(use);
    const uint64_t data =
        use.len > use.at && use.len - use.at < sizeof(message) - head ? use.len - use.at : 300;
    raw_message(world, DN_CHAN_CORE, 0 == dn_test_below(random, 3) ? DN_CORE_PULL : DN_CORE_PUSH, message,
                0 == dn_test_below(random, 12) ? dn_test_below(random, sizeof(message)) : head + data);
}

/** Blocks in the short form that fit, some empty, some over each other; then one field is wrong. */
static void attack_near(dn_world_t *world, uint64_t *random)
{
    enum { MOST = DN_CORE_NEAR_BLOCKS, MORE = 2, REACH = UINT16_MAX };
    static const uint32_t counts[] = {
        0, 1, 2, 5, DN_CORE_BLOCKS, DN_CORE_BLOCKS + 1, MOST - 1, MOST, MOST + 1, MOST + MORE};
    struct {
        dn_core_request_t request;
        uint64_t base;
        uint8_t rest[(MOST + MORE) * sizeof(dn_core_near_t) + 800];
    } message;
    dn_core_near_t near[MOST + MORE];
    const dn_key_t *key = &world->board->seat[VICTIM].key[dn_test_below(random, 2)];
    const uint32_t count = counts[dn_test_below(random, sizeof(counts) / sizeof(counts[0]))];
    dn_core_near_t *odd = &near[dn_test_below(random, 0 == count ? 1 : count)];
    size_t len = offsetof(__typeof__(message), rest) + count * sizeof(near[0]);

    scribble(&message, sizeof(message), random);
    message.base = dn_test_below(random, OFFERED / 2);
    message.request = (dn_core_request_t){.sid = key->sid,
                                          .sid_generation = key->generation,
                                          .blocks = count,
                                          .flags = DN_CORE_NEAR | (uint32_t) dn_test_below(random, 4),
                                          .off = 8 * dn_test_below(random, 10)};
    for (uint32_t i = 0; i < count; i++) {
        near[i] = (dn_core_near_t){.at = (uint16_t) dn_test_below(random, OFFERED / 2 - 8),
                                   .len = (uint16_t) dn_test_below(random, MOST - 1 <= count ? 7 : 17)};
    }
    const uint64_t wrong = dn_test_below(random, 12);
    switch (wrong) {
    case 0: {
        const uint64_t far[] = {UINT64_MAX - REACH, UINT64_MAX - REACH + 1, UINT64_MAX - OFFERED, OFFERED,
                                wicked(random)};
        message.base = far[dn_test_below(random, 5)];
        break;
    }
    case 1:
        odd->at = (uint16_t) (0 == dn_test_below(random, 2) ? REACH : dn_test_random(random));
        break;
    case 2:
        /* Across the end of the segment. */
        odd->at = (uint16_t) (OFFERED - message.base - dn_test_below(random, 4));
        odd->len = 8;
        break;
    case 3:
        message.request.blocks = (uint32_t) wicked(random);
        break;
    case 4:
        message.request.flags ^= 0 == dn_test_below(random, 2) ? DN_CORE_USE : DN_CORE_NEAR;
        break;
    case 5:
        message.request.sid = (uint32_t) wicked(random);
        break;
    case 6:
        message.request.sid_generation = (uint32_t) wicked(random);
        break;
    case 7:
        message.request.off = wicked(random);
        break;
    default:
        break;
    }
    memcpy(message.rest, near, count * sizeof(near[0]));
    for (uint32_t i = 0; i < count; i++) {
        len += near[i].len;
    }
    len = 8 == wrong ? dn_test_below(random, len) : len;
    if (9 == wrong && 0 != count) {
        /* The data end too soon, or too late. */
        odd->len = (uint16_t) wicked(random);
        memcpy(message.rest, near, count * sizeof(near[0]));
    }
    raw_message(world, DN_CHAN_CORE, 0 == dn_test_below(random, 3) ? DN_CORE_PULL : DN_CORE_PUSH, &message,
                len < sizeof(message) ? len : sizeof(message));
}

/** Requests to help, most of them as they should be but for one member: those that are malformed end it. */
static void attack_device(dn_world_t *world, uint64_t *random)
{
    const dn_key_t *key = &world->board->seat[VICTIM].key[dn_test_below(random, 2)];
    const uint64_t len = dn_test_below(random, OFFERED);
    const struct {
        uint64_t roff, ours, len;
        uint32_t sid, sid_generation, index, generation, write, pad;
    } request = {.roff = perhaps(random, dn_test_below(random, OFFERED - len)),
                 .ours = wicked(random),
                 .len = perhaps(random, len),
                 .sid = (uint32_t) perhaps(random, key->sid),
                 .sid_generation = (uint32_t) perhaps(random, key->generation),
                 .index = (uint32_t) perhaps(random, dn_test_below(random, DN_SHM_HELPS)),
                 .generation = (uint32_t) dn_test_below(random, 3),
                 .write = (uint32_t) dn_test_below(random, 2)};

    raw_message(world, DN_CHAN_DEVICE, (unsigned) dn_test_below(random, 3), &request,
                0 == dn_test_below(random, 64) ? dn_test_below(random, sizeof(request)) : sizeof(request));
}

static void attack_channels(dn_world_t *world, uint64_t *random)
{
    uint8_t data[2048];

    scribble(data, sizeof(data), random);
    raw_message(world, (unsigned) (2 + dn_test_below(random, 254)), (unsigned) dn_test_below(random, 256),
                data, dn_test_length(random, sizeof(data)));
}

/** A head with the right sequence and any length, rewinding where it should not. */
static void attack_heads(dn_world_t *world, uint64_t *random)
{
    const size_t len = dn_test_length(random, 32767);

    (void) world;
    if (len > dn_line_max(my_tx.lines) || 0 == dn_test_below(random, 16)) {
        dn_store_release(&my_tx.ring->line[my_tx.at].head,
                         (uint64_t) (my_tx.tail + 1) | (uint64_t) len << 32 | dn_test_random(random) << 47);
    } else if (dn_line_room(&my_tx, len)) {
        dn_line_publish(&my_tx, (unsigned) dn_test_below(random, 256), (unsigned) dn_test_below(random, 256),
                        len, dn_line_span(my_tx.at, len, my_tx.lines));
    }
}

static void attack_ring(dn_world_t *world, uint64_t *random)
{
    uint8_t *ring = (uint8_t *) my_tx.ring;

    (void) world;
    scribble(ring + dn_test_below(random, theirs.ring_stride - 64), 64, random);
}

/** Credit of the ring by which the victim sends to us: in our own memory. */
static void attack_credit(dn_world_t *world, uint64_t *random)
{
    const dn_shm_map_t *mine = own_map(world);

    for (uint32_t i = 0; i < 4; i++) {
        dn_ring_t *ring = (dn_ring_t *) (mine->rings + i * mine->ring_stride);
        dn_store_release_u32(&ring->credit, (uint32_t) wicked(random));
    }
}

static void attack_slots(dn_world_t *world, uint64_t *random)
{
    dn_shm_slot_t *slot = &theirs.slot[dn_test_below(random, world->config.max_peers)];
    const uint32_t state = slot->state;

    if (WITNESS == slot->pid && DN_SHM_READY == state) {
        return;
    }
    switch (dn_test_below(random, 4)) {
    case 0:
        scribble(slot, sizeof(*slot), random);
        break;
    case 1:
        /* The name of somebody who is there already. */
        memcpy(slot, &theirs.slot[dn_test_below(random, world->config.max_peers)], sizeof(*slot));
        break;
    case 2:
        memcpy(slot, &theirs.slot[my_slot], sizeof(*slot));
        slot->nonce[dn_test_below(random, 2)] = dn_test_random(random);
        break;
    default:
        break;
    }
    dn_store_release_u32(&slot->state, 0 == dn_test_below(random, 4) ? (uint32_t) wicked(random)
                                                                     : (uint32_t) dn_test_below(random, 4));
    dn_fetch_add_acq_rel(&theirs.header->arrivals, 1);
}

static void attack_help(dn_world_t *world, uint64_t *random)
{
    (void) world;
    uint64_t *word = (uint64_t *) &theirs.header->help[dn_test_below(random, DN_SHM_HELPS)];
    dn_store_release(&word[dn_test_below(random, 3)], wicked(random) << 32 | (wicked(random) & UINT32_MAX));
}

static void attack_header(dn_world_t *world, uint64_t *random)
{
    (void) world;
    uint32_t *word = (uint32_t *) theirs.header;
    /* Every second time identity and sizes, which are few. */
    const size_t bytes = 0 == dn_test_below(random, 2) ? offsetof(dn_shm_header_t, arrivals) : DN_SHM_PAGE;
    dn_store_release_u32(&word[dn_test_below(random, bytes / 4)], (uint32_t) wicked(random));
}

static void attack_own_header(dn_world_t *world, uint64_t *random)
{
    dn_shm_header_t *header = own_map(world)->header;
    /* Behind the stage that there is, but within the largest that a header may name. */
    const uint32_t staged[] = {(uint32_t) (2 + dn_test_below(random, 2000)) * DN_SHM_GRANULE, 64};

    /* Sizes that are legal, but not those of this mapping. */
    dn_store_release_u32(&header->max_peers,
                         0 == dn_test_below(random, 2) ? 16384 : (uint32_t) wicked(random));
    dn_store_release_u32(&header->ring_lines,
                         0 == dn_test_below(random, 2) ? 4096 : (uint32_t) wicked(random));
    dn_store_release_u32(&header->stage_bytes,
                         0 == dn_test_below(random, 2) ? DN_STAGE_BYTES_MAX : (uint32_t) wicked(random));
    dn_store_release(&header->llcm_bytes, 0 == dn_test_below(random, 2) ? 16 << 20 : wicked(random));
    raw_message(world, DN_WORLD_CHAN | DN_SHM_STAGED, 0, staged, sizeof(staged));
}

/** Lines that name any place in a stage; in the victim's own, the counts and what waits there for the attacker. */
static void attack_stage(dn_world_t *world, uint64_t *random)
{
    const uint32_t word[16] = {(uint32_t) wicked(random) & ~(0 == dn_test_below(random, 4) ? 0 : 63u),
                               (uint32_t) wicked(random)};

    switch (dn_test_below(random, 4)) {
    case 0:
        dn_store_release_u32(
            dn_shm_taken(&theirs, (uint32_t) dn_test_below(random, theirs.stage_bytes / DN_SHM_GRANULE)),
            (uint32_t) wicked(random));
        break;
    case 1:
        scribble(theirs.stage + dn_test_below(random, theirs.stage_bytes - 64), 64, random);
        break;
    default:
        raw_message(world, (0 == dn_test_below(random, 4) ? 127u : DN_WORLD_CHAN) | DN_SHM_STAGED, 0, word,
                    0 == dn_test_below(random, 4) ? dn_test_below(random, sizeof(word)) : 8);
        break;
    }
}

/* The other two */

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    volatile uint8_t sum = 0;
    dn_peer_attr_t attr;

    (void) arg;
    (void) tag;
    dn_peer_attr(src, &attr);
    for (size_t i = 0; i < len; i++) {
        sum = (uint8_t) (sum + ((const uint8_t *) data)[i]);
    }
    if (WITNESS == attr.pid || VICTIM == attr.pid) {
        heard++;
    }
}

/** Whatever an application does with a peer, whatever comes of it. */
static void deal_with(dn_world_t *world, dn_peer_t *peer, uint64_t *random)
{
    static uint8_t data[1 << 20];
    const dn_board_seat_t *seat = &world->board->seat[ATTACKER];
    const dn_xfer_t xfer = {.local = data, .key = &seat->key[dn_test_below(random, 2)], .len = OFFERED};
    const dn_xfer_t large = {.local = data, .key = &seat->key[2], .len = sizeof(data)};
    dn_peer_t *again = NULL;
    dn_message_t message;

    if (DN_OK == dn_peek(peer, DN_WORLD_CHAN, 1, &message)) {
        hear(peer, message.tag, message.data, message.len, world);
        dn_take(peer, &message);
    }
    dn_botf(peer, DN_WORLD_CHAN, 0, data, dn_test_length(random, 1000), NULL, 0);
    dn_aotf(peer, 8 * dn_test_below(random, 64), 1, 8);
    if (DN_INPROGRESS != dn_fence(peer)) {
        /* Not more and more of them: the attacker may never answer. */
        dn_push(peer, &xfer);
        dn_pull(peer, 0 == dn_test_below(random, 8) ? &large : &xfer);
    }
    if (0 == dn_test_below(random, 8)) {
        dn_peer_check(peer);
        if (DN_OK == dn_connect(world->port, seat->address, seat->address_len, &again)) {
            dn_disconnect(again);
        }
    }
}

/** Nothing outside of what was offered has changed. */
static void check_guards(void)
{
    for (size_t i = 0; i < GUARD; i++) {
        dn_check_equal(offered[i], 0x5a);
        dn_check_equal(offered[GUARD + OFFERED + i], 0x5a);
    }
}

static void say(dn_world_t *world, dn_peer_t *peer)
{
    dn_world_send(world, peer, DN_WORLD_CHAN, 0, "here", 4);
}

/** Everybody offers an allocated and a registered segment; the third is large, for shared PULLs. */
static void offer(dn_world_t *world)
{
    static uint8_t large[1 << 20];
    dn_segment_t *segment[3];

    memset(offered, 0x5a, sizeof(offered));
    dn_check_equal(dn_segment_alloc(world->port, OFFERED, &segment[0]), DN_OK);
    dn_check_equal(dn_segment_register(world->port, offered + GUARD, OFFERED, &segment[1]), DN_OK);
    dn_check_equal(dn_segment_register(world->port, large, sizeof(large), &segment[2]), DN_OK);
    for (int i = 0; i < 3; i++) {
        dn_segment_key(segment[i], &world->me->key[i]);
    }
}

/** One attack after the other by one process, while the two others work. `spares` the connection of the witness. */
static void fight(dn_world_t *world, void (*attack)(dn_world_t *, uint64_t *), int spares, int reconnects)
{
    const unsigned rounds = dn_test_rounds(ROUNDS);
    uint64_t random = 1 + (uint64_t) world->rank;

    world->config.max_peers = 16;
    world->config.ring_lines = 64;
    world->config.stage_bytes = STAGE;
    world->config.stage_min = 256;
    dn_world_open(world);
    offer(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, hear, NULL), DN_OK);
    dn_world_barrier(world);
    dn_world_connect(world);
    if (ATTACKER == world->rank) {
        take_position(world);
        for (uint64_t i = 0; i < rounds; i++) {
            attack(world, &random);
            dn_test_log.expected = 1;
            for (int k = 0; k < 4; k++) {
                dn_world_progress(world);
            }
            dn_world_post(world, 0, i + 1);
        }
        dn_world_post(world, 1, 1);
        dn_world_await(world, VICTIM, 1, 1);
        _Exit(0);
    }
    dn_test_log.expected = 1;
    if (VICTIM == world->rank) {
        dn_peer_t *peer = world->peer[ATTACKER];
        while (0 == dn_load_acquire(&world->board->seat[ATTACKER].word[1])) {
            dn_world_progress(world);
            if (NULL != peer) {
                deal_with(world, peer, &random);
            }
            if (reconnects && 0 == dn_test_below(&random, 4)) {
                const dn_board_seat_t *seat = &world->board->seat[ATTACKER];
                if (NULL != peer) {
                    dn_disconnect(peer);
                }
                if (DN_OK != dn_connect(world->port, seat->address, seat->address_len, &peer)) {
                    peer = NULL;
                }
            }
        }
        check_guards();
    }
    if (spares) {
        say(world, world->peer[VICTIM == world->rank ? WITNESS : VICTIM]);
        while (0 == heard) {
            dn_world_progress(world);
        }
    }
    dn_world_post(world, 2, 1);
    dn_world_await(world, VICTIM + WITNESS - world->rank, 2, 1);
    dn_close(world->port);
    world->port = NULL;
    if (VICTIM == world->rank) {
        check_guards();
    }
    dn_world_post(world, 1, 1);
}

static void core_messages(dn_world_t *world)
{
    fight(world, attack_core, 1, 0);
}

static void programs(dn_world_t *world)
{
    fight(world, attack_programs, 1, 0);
}

static void near_blocks(dn_world_t *world)
{
    fight(world, attack_near, 1, 0);
}

static void device_messages(dn_world_t *world)
{
    fight(world, attack_device, 1, 0);
}

static void any_channels(dn_world_t *world)
{
    fight(world, attack_channels, 1, 0);
}

static void any_heads(dn_world_t *world)
{
    fight(world, attack_heads, 1, 0);
}

static void any_ring(dn_world_t *world)
{
    fight(world, attack_ring, 1, 0);
}

static void any_credit(dn_world_t *world)
{
    fight(world, attack_credit, 1, 0);
}

static void any_slots(dn_world_t *world)
{
    fight(world, attack_slots, 1, 1);
}

static void any_help(dn_world_t *world)
{
    fight(world, attack_help, 1, 0);
}

static void any_stage(dn_world_t *world)
{
    fight(world, attack_stage, 1, 0);
}

/** The witness may be told anything here, for it is the victim's own identity that changes. */
static void any_header(dn_world_t *world)
{
    fight(world, attack_header, 0, 1);
}

static void sizes_that_change_later(dn_world_t *world)
{
    fight(world, attack_own_header, 1, 1);
}

/* Lines that say that a message lies in the stage */

enum { MAPPED = ATTACKER, STAGELESS, ORPHAN, LIARS_AND_VICTIM };

/** Tags of what must not be heard, and of a message in the ring. The others are places in true_lines. */
enum { TAG_LIE = 254, TAG_PLAIN };

/** Longest message of a ring of 1024 lines. */
#define LONGEST 28664u

typedef struct staged_line {
    unsigned channel; /**< without the bit */
    size_t len;       /**< of the line; 8 is right */
    uint32_t word[2]; /**< offset and length in the stage */
} staged_line_t;

static const staged_line_t false_lines[] = {
    {DN_WORLD_CHAN, 0, {0, 8}},
    {DN_WORLD_CHAN, 4, {0, 8}},
    {DN_WORLD_CHAN, 7, {0, 8}},
    {DN_WORLD_CHAN, 9, {0, 8}},
    {DN_WORLD_CHAN, 16, {0, 8}},
    {DN_WORLD_CHAN, 1000, {0, 8}},
    {DN_WORLD_CHAN, 8, {1, 8}},
    {DN_WORLD_CHAN, 8, {32, 8}},
    {DN_WORLD_CHAN, 8, {DN_SHM_GRANULE + 63, 1}},
    {DN_WORLD_CHAN, 8, {STAGE, 0}},
    {DN_WORLD_CHAN, 8, {STAGE, 8}},
    {DN_WORLD_CHAN, 8, {STAGE + 64, 8}},
    {DN_WORLD_CHAN, 8, {1U << 31, 8}},
    {DN_WORLD_CHAN, 8, {UINT32_MAX - 63, 64}},
    {DN_WORLD_CHAN, 8, {UINT32_MAX, UINT32_MAX}},
    {DN_WORLD_CHAN, 8, {0, LONGEST + 1}},
    {DN_WORLD_CHAN, 8, {0, DN_SHM_GRANULE}},
    {DN_WORLD_CHAN, 8, {0, DN_SHM_GRANULE + 1}},
    {DN_WORLD_CHAN, 8, {0, UINT32_MAX}},
    {DN_WORLD_CHAN, 8, {DN_SHM_GRANULE - 64, 65}},
    {DN_WORLD_CHAN, 8, {DN_SHM_GRANULE - 64, LONGEST}},
    {DN_WORLD_CHAN, 8, {STAGE - 64, 65}},
    {DN_WORLD_CHAN, 8, {STAGE - 64, LONGEST}},
    {DN_CHAN_MAX, 8, {0, 8}},
    {DN_SHM_STAGED - 1, 8, {0, 8}},
};

static const staged_line_t true_lines[] = {
    {DN_WORLD_CHAN, 8, {0, LONGEST}},        {DN_WORLD_CHAN, 8, {DN_SHM_GRANULE - 64, 64}},
    {DN_WORLD_CHAN, 8, {DN_SHM_GRANULE, 1}}, {DN_WORLD_CHAN, 8, {DN_SHM_GRANULE + 64, 0}},
    {DN_WORLD_CHAN, 8, {STAGE - 64, 64}},
};

enum { FALSE_LINES = sizeof(false_lines) / sizeof(false_lines[0]) };
enum { TRUE_LINES = sizeof(true_lines) / sizeof(true_lines[0]) };

static void hear_true_lines(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) arg;
    dn_check(TAG_PLAIN == tag || tag < TRUE_LINES);
    dn_check_equal(len, TAG_PLAIN == tag ? 4 : true_lines[tag].word[1]);
    dn_check_bytes(data, len, tag);
    heard++;
}

static void write_line(dn_world_t *world, const staged_line_t *line, unsigned tag)
{
    uint8_t data[1000] = {0};

    memcpy(data, line->word, sizeof(line->word));
    raw_message(world, line->channel | DN_SHM_STAGED, tag, data, line->len);
}

/** A port that writes the true lines, where it has a stage that is mapped, then a lie, then a message in the ring. */
static void tell_a_lie(dn_world_t *world, const staged_line_t *lie, uint64_t round)
{
    dn_shm_map_t mine;
    uint8_t plain[4];

    dn_world_open(world);
    dn_world_connect_to(world, VICTIM);
    take_position(world);
    const dn_shm_where_t where = where_of(world->me);
    const dn_peer_base_t id = {.pid = (uint32_t) world->rank, .pgid = dn_world_pgid(world)};
    dn_check_equal(dn_shm_attach(&where, &id, &mine), DN_OK);
    for (unsigned i = 0; MAPPED == world->rank && i < TRUE_LINES; i++) {
        dn_test_fill(mine.stage + true_lines[i].word[0], true_lines[i].word[1], i);
        write_line(world, &true_lines[i], i);
    }
    write_line(world, lie, TAG_LIE);
    dn_test_fill(plain, sizeof(plain), TAG_PLAIN);
    raw_message(world, DN_WORLD_CHAN, TAG_PLAIN, plain, sizeof(plain));
    if (ORPHAN == world->rank) {
        dn_close(world->port);
    }
    dn_world_post(world, 0, round);
    dn_world_sleep(world, VICTIM, world->rank, round);
    if (MAPPED == world->rank) {
        dn_check_equal(*dn_shm_taken(&mine, 0), 2);
        dn_check_equal(*dn_shm_taken(&mine, 1), 3);
    }
    dn_shm_detach(&mine);
    if (ORPHAN != world->rank) {
        dn_close(world->port);
    }
}

/** The victim reads what a liar's port has written: it is cut off at the lie, and what came before was heard. */
static void hear_a_lie(dn_world_t *world, int liar, uint64_t round)
{
    dn_counters_t before, after;

    dn_counters(world->port, &before);
    dn_world_sleep(world, liar, 0, round);
    heard = 0;
    dn_test_log_expect();
    do {
        dn_world_progress(world);
        dn_counters(world->port, &after);
    } while (after.dropped == before.dropped);
    for (int i = 0; i < 100; i++) {
        dn_progress(world->port);
    }
    dn_check(dn_test_log_said(1, "cut off"));
    dn_counters(world->port, &after);
    dn_check_equal(after.dropped - before.dropped, 1);
    dn_check_equal(heard, MAPPED == liar ? TRUE_LINES : 0);
    dn_world_post(world, liar, round);
}

/** By a sender with a stage, by one without, and by one that is gone: then even true lines name nothing. */
static void false_staged_lines(dn_world_t *world)
{
    const int own = world->rank;

    world->config.ring_lines = 1024;
    world->config.max_peers = 8;
    world->config.stage_bytes = STAGELESS == own ? 0 : STAGE;
    if (VICTIM == own) {
        dn_world_listen(world, hear_true_lines);
    } else {
        dn_world_barrier(world);
    }
    for (int liar = MAPPED; liar <= ORPHAN; liar++) {
        const uint64_t rounds = FALSE_LINES + (MAPPED == liar ? 0 : TRUE_LINES);
        if (VICTIM == own) {
            dn_world_post(world, LIARS_AND_VICTIM + liar, 1);
        } else if (liar == own) {
            dn_world_sleep(world, VICTIM, LIARS_AND_VICTIM + liar, 1);
        }
        for (uint64_t i = 0; i < rounds; i++) {
            if (VICTIM == own) {
                hear_a_lie(world, liar, i + 1);
            } else if (liar == own) {
                tell_a_lie(world, i < FALSE_LINES ? &false_lines[i] : &true_lines[i - FALSE_LINES], i + 1);
            }
        }
    }
    if (VICTIM == own) {
        dn_close(world->port);
    }
}

/* Keys and segments made up */

/** Segments that look right when they are mapped, and shrink then: a copy would meet a bus error. */
static void a_segment_that_can_shrink(dn_world_t *world)
{
    static uint8_t data[65536];
    const dn_shm_segment_head_t head = {DN_SHM_MAGIC, 77, sizeof(data), 5};

    dn_world_start(world);
    dn_test_log.expected = 1;
    if (ATTACKER == world->rank) {
        const int fd = memfd_create("hostile", MFD_CLOEXEC);
        dn_check(0 <= fd);
        dn_check_equal(ftruncate(fd, DN_SHM_PAGE + sizeof(data)), 0);
        dn_check_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
        world->me->key[0] = (dn_key_t){.sid = 5,
                                       .generation = 77,
                                       .len = sizeof(data),
                                       .way = {{DN_SHM_KEY_MAPPED, (uint32_t) fd, {0}}}};
        dn_world_barrier(world);
        dn_world_await(world, VICTIM, 0, 1);
        dn_check_equal(ftruncate(fd, 0), 0);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_barrier(world);
        const dn_xfer_t xfer = {
            .local = data, .key = &world->board->seat[ATTACKER].key[0], .len = sizeof(data)};
        dn_check(DN_OK > dn_world_pull(world, world->peer[ATTACKER], &xfer));
        dn_world_post(world, 0, 1);
        dn_world_await(world, ATTACKER, 0, 1);
        dn_check(DN_OK > dn_world_pull(world, world->peer[ATTACKER], &xfer));
    }
    dn_test_log.expected = 0;
    dn_world_stop(world);
}

static void any_keys(dn_world_t *world)
{
    static uint8_t data[256];
    uint64_t random = 3;

    dn_world_open(world);
    offer(world);
    dn_world_barrier(world);
    dn_world_connect(world);
    dn_test_log.expected = 1;
    for (int i = 0; VICTIM == world->rank && i < 3000; i++) {
        dn_key_t key = world->board->seat[ATTACKER].key[dn_test_below(&random, 2)];
        const uint64_t roff = wicked(&random);
        switch (dn_test_below(&random, 5)) {
        case 0:
            key.len = wicked(&random);
            break;
        case 1:
            key.way[0].fd = (uint32_t) wicked(&random);
            key.sid += 7;
            break;
        case 2:
            key.way[dn_test_below(&random, DN_KEY_WAYS)].kind = (uint32_t) dn_test_below(&random, 5);
            break;
        case 3:
            key.generation = (uint32_t) wicked(&random);
            break;
        default:
            scribble(&key, sizeof(key), &random);
            break;
        }
        /* PULL only: what a wrong key reads of the other process is its own affair, and stays there unharmed. */
        const dn_xfer_t xfer = {
            .local = data, .key = &key, .roff = roff, .len = dn_test_below(&random, sizeof(data))};
        dn_world_pull(world, world->peer[ATTACKER], &xfer);
    }
    dn_test_log.expected = 0;
    dn_world_barrier(world);
    check_guards();
    dn_world_stop(world);
}

/* Headers that are wrong from the start */

static dn_shm_header_t right_header(const dn_world_t *world, const uint64_t nonce[2])
{
    dn_shm_header_t header = {.version = DN_WIRE_VERSION,
                              .magic = DN_SHM_MAGIC,
                              .pgid = dn_world_pgid(world),
                              .nonce = {nonce[0], nonce[1]},
                              .pid = 9,
                              .uid = (uint32_t) geteuid(),
                              .os_pid = (uint32_t) getpid(),
                              .max_peers = 4,
                              .ring_lines = 64,
                              .start_time = where_of(world->me).start_time,
                              .llcm_bytes = 4096};
    const uint64_t stride = (dn_ring_bytes(64) + DN_SHM_PAGE - 1) / DN_SHM_PAGE * DN_SHM_PAGE;

    header.bytes = 3 * DN_SHM_PAGE + header.max_peers * stride;
    return header;
}

/** Where the parts of an address lie that a forger changes; found by their values. */
static size_t find(const uint8_t *bytes, size_t len, const void *part, size_t part_len)
{
    for (size_t at = 0; at + part_len <= len; at++) {
        if (0 == memcmp(bytes + at, part, part_len)) {
            return at;
        }
    }
    dn_check(0 == part_len);
    return 0;
}

/** An address like this process' own, but of the mapping behind fd, or in a file. @return its length. */
static size_t forge_address(const dn_world_t *world, int fd, const char *path, const dn_shm_header_t *header,
                            uint8_t *address)
{
    const size_t len = world->me->address_len;
    dn_shm_where_t where = where_of(world->me);
    const uint32_t pid = 9;

    memcpy(address, world->me->address, len);
    const size_t at = find(address, len, where.nonce, sizeof(where.nonce));
    memcpy(address + at, header->nonce, sizeof(header->nonce));
    memcpy(address + at + sizeof(header->nonce), &pid, sizeof(pid));
    memcpy(where.nonce, header->nonce, sizeof(where.nonce));
    where.fd = fd;
    snprintf(where.path, sizeof(where.path), "%s", path);
    where.bytes = header->bytes;
    memcpy(address + len - sizeof(where), &where, sizeof(where));
    return len;
}

static unsigned forged;

/** Try a mapping of file_bytes bytes that starts with the header. Owner 0: as it is. */
static void try_header(dn_world_t *world, const dn_shm_header_t *header, uint64_t file_bytes, uid_t owner,
                       dn_status_t wanted, const char *word)
{
    uint8_t address[DN_ADDRESS_MAX];
    dn_peer_t *peer = NULL;
    const int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    dn_check(0 <= fd);
    dn_check_equal(pwrite(fd, header, sizeof(*header), 0), sizeof(*header));
    dn_check_equal(ftruncate(fd, (off_t) file_bytes), 0);
    dn_check_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    if (0 != owner) {
        dn_check_equal(fchown(fd, owner, (gid_t) -1), 0);
    }
    const size_t len = forge_address(world, fd, "", header, address);
    dn_test_log_expect();
    dn_check_equal(dn_connect(world->port, address, len, &peer), wanted);
    dn_check(dn_test_log_said(DN_OK == wanted ? 0 : 1, word));
    if (DN_OK == wanted) {
        dn_disconnect(peer);
    }
    close(fd);
    forged++;
}

/** A fresh right header to be spoilt. */
static dn_shm_header_t next_header(const dn_world_t *world)
{
    const uint64_t nonce[2] = {0x1234567812345678 + forged, 0x8765432187654321};

    return right_header(world, nonce);
}

/** A good header in a memfd that can shrink: one that cannot have seals, which is no file of a folder either. */
static void try_unsealed(dn_world_t *world, const char *name, unsigned flags)
{
    uint8_t address[DN_ADDRESS_MAX];
    dn_peer_t *peer = NULL;
    const dn_shm_header_t header = next_header(world);
    const int fd = memfd_create(name, MFD_CLOEXEC | flags);

    dn_check(0 <= fd);
    dn_check_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    dn_check_equal(ftruncate(fd, (off_t) header.bytes), 0);
    const size_t len = forge_address(world, fd, "", &header, address);
    dn_test_log_expect();
    dn_check_equal(dn_connect(world->port, address, len, &peer), DN_ERR_PROTO);
    dn_check(dn_test_log_said(1, "not sealed"));
    close(fd);
    forged++;
}

static void try_memfds(dn_world_t *world)
{
    char name[64];
    const dn_shm_header_t next = next_header(world);

    try_unsealed(world, "forged", MFD_ALLOW_SEALING);
    try_unsealed(world, "forged", 0);
    snprintf(name, sizeof(name), "x/dimmnet.%016" PRIx64 "%016" PRIx64, next.nonce[0] + 2, next.nonce[1]);
    try_unsealed(world, name, 0);
}

static void try_sizes(dn_world_t *world)
{
    static const uint64_t bad[][3] = {
        /* max_peers, ring_lines, llcm_bytes */
        {0, 64, 4096},
        {16385, 64, 4096},
        {UINT32_MAX, 64, 4096},
        {4, 0, 4096},
        {4, 63, 4096},
        {4, 4097, 4096},
        {4, UINT32_MAX, 4096},
        {4, 1U << 31, 4096},
        {4, 64, 0},
        {4, 64, 4097},
        {4, 64, 32 << 20},
        {4, 64, UINT64_MAX},
        {4, 64, UINT64_MAX - 4095},
        {4, 64, UINT64_C(1) << 63},
        {8, 64, 4096},
        {4, 200, 4096},
        {4, 64, 8192},
        {16384, 4096, 16 << 20},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dn_shm_header_t header = next_header(world);
        const uint64_t right = header.bytes;
        header.max_peers = (uint32_t) bad[i][0];
        header.ring_lines = (uint32_t) bad[i][1];
        header.llcm_bytes = bad[i][2];
        try_header(world, &header, right, 0, DN_ERR_PROTO, "refused");
    }
}

/** Bytes that such a stage would add to these. */
static uint64_t stage_room(uint64_t bytes, uint32_t stage_bytes)
{
    const uint64_t before = 0 == stage_bytes ? 0 : -bytes & (DN_SHM_GRANULE - 1);
    const uint64_t counts = (uint64_t) (stage_bytes / DN_SHM_GRANULE) * DN_LINE_BYTES;

    return before + stage_bytes + (counts + DN_SHM_PAGE - 1) / DN_SHM_PAGE * DN_SHM_PAGE;
}

static void try_stages(dn_world_t *world)
{
    static const struct {
        uint32_t bytes;
        int64_t more; /**< than it would have to be */
        dn_status_t wanted;
    } stage[] = {
        {DN_SHM_GRANULE, 0, DN_OK},
        {3 * DN_SHM_GRANULE, 0, DN_OK},
        {DN_STAGE_BYTES_MAX, 0, DN_OK},
        /* Not whole granules. */
        {1, 0, DN_ERR_PROTO},
        {64, 0, DN_ERR_PROTO},
        {DN_SHM_PAGE, 0, DN_ERR_PROTO},
        {DN_SHM_GRANULE - 1, 0, DN_ERR_PROTO},
        {DN_SHM_GRANULE - DN_SHM_PAGE, 0, DN_ERR_PROTO},
        {3 * DN_SHM_GRANULE + DN_SHM_PAGE, 0, DN_ERR_PROTO},
        /* Too large. */
        {DN_STAGE_BYTES_MAX + DN_SHM_GRANULE, 0, DN_ERR_PROTO},
        {1U << 31, 0, DN_ERR_PROTO},
        /* More, or less, than there is. */
        {DN_SHM_GRANULE, -(int64_t) (DN_SHM_GRANULE + DN_SHM_PAGE), DN_ERR_PROTO},
        {DN_SHM_GRANULE, -(int64_t) DN_SHM_GRANULE, DN_ERR_PROTO},
        {DN_SHM_GRANULE, -(int64_t) DN_SHM_PAGE, DN_ERR_PROTO},
        {DN_SHM_GRANULE, DN_SHM_PAGE, DN_ERR_PROTO},
        {65 * DN_SHM_GRANULE, -(int64_t) DN_SHM_PAGE, DN_ERR_PROTO},
        {DN_STAGE_BYTES_MAX, -(int64_t) DN_STAGE_BYTES_MAX, DN_ERR_PROTO},
        {0, DN_SHM_GRANULE + DN_SHM_PAGE, DN_ERR_PROTO},
    };

    for (size_t i = 0; i < sizeof(stage) / sizeof(stage[0]); i++) {
        dn_shm_header_t header = next_header(world);
        header.stage_bytes = stage[i].bytes;
        header.bytes += stage_room(header.bytes, stage[i].bytes) + (uint64_t) stage[i].more;
        try_header(world, &header, header.bytes, 0, stage[i].wanted,
                   DN_OK == stage[i].wanted ? NULL : "refused");
    }
}

static void headers_that_are_wrong(dn_world_t *world)
{
    dn_world_open(world);
    dn_shm_header_t header = next_header(world);
    const uint64_t right = header.bytes;
    /* The forgery itself is good: with nothing wrong it connects. */
    try_header(world, &header, right, 0, DN_OK, NULL);
    static const uint64_t bytes[] = {0, 1, 8, 100, 4095, 4096, 4097, 8192};
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        header = next_header(world);
        try_header(world, &header, bytes[i], 0, DN_ERR_PROTO, "refused");
    }
    header = next_header(world);
    try_header(world, &header, right - 4096, 0, DN_ERR_PROTO, "refused");
    header = next_header(world);
    try_header(world, &header, right + 4096, 0, DN_ERR_PROTO, "refused");
    header = next_header(world);
    header.bytes = UINT64_MAX;
    try_header(world, &header, right, 0, DN_ERR_PROTO, "refused");
    header = next_header(world);
    header.magic ^= 1;
    try_header(world, &header, right, 0, DN_ERR_PROTO, "not that of a dimmnet port");
    header = next_header(world);
    header.version++;
    try_header(world, &header, right, 0, DN_ERR_VERSION, "version");
    header = next_header(world);
    header.pgid.byte[15] ^= 1;
    try_header(world, &header, right, 0, DN_ERR_ACCESS, "group");
    header = next_header(world);
    header.pid++;
    try_header(world, &header, right, 0, DN_ERR_ACCESS, "group");
    if (0 == geteuid()) {
        header = next_header(world);
        try_header(world, &header, right, 12345, DN_ERR_ACCESS, "user");
    } else {
        printf("headers_that_are_wrong: a file of another user is left out: only root can make one\n");
    }
    try_sizes(world);
    try_stages(world);
    try_memfds(world);
    dn_close(world->port);
    world->port = NULL;
}

/** A path of an address names a port's file in /dev/shm, or nothing is opened. */
static void files_elsewhere(dn_world_t *world)
{
    static const struct {
        const char *before; /**< the file's name */
        const char *behind;
        dn_status_t wanted;
    } at[] = {
        {"/dev/shm/", "", DN_ERR_UNREACH}, /* this may be, but there is none */
        {"/tmp/", "", DN_ERR_PROTO},       {"", "", DN_ERR_PROTO},
        {"/dev/shm/x/", "", DN_ERR_PROTO}, {"/dev/shm/../", "", DN_ERR_PROTO},
        {"/dev/shm/", "x", DN_ERR_PROTO},  {"/dev/shm/", "/", DN_ERR_PROTO},
        {"/dev/shm/x", "", DN_ERR_PROTO},  {"/proc/self/fd/", "", DN_ERR_PROTO},
    };

    world->job.dir = NULL;
    dn_world_open(world);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        const dn_shm_header_t header = next_header(world);
        uint8_t address[DN_ADDRESS_MAX];
        char path[DN_SHM_PATH_MAX];
        dn_peer_t *peer = NULL;
        snprintf(path, sizeof(path), "%sdimmnet.%016" PRIx64 "%016" PRIx64 "%s", at[i].before,
                 header.nonce[0], header.nonce[1], at[i].behind);
        const size_t len = forge_address(world, -1, path, &header, address);
        dn_test_log_expect();
        dn_check_equal(dn_connect(world->port, address, len, &peer), at[i].wanted);
        const int refused = DN_ERR_PROTO == at[i].wanted;
        dn_check(dn_test_log_said((unsigned) refused, refused ? "names a file" : NULL));
        forged++;
    }
    dn_close(world->port);
    world->port = NULL;
}

/** Two processes of one group and of two users. */
static void another_user(dn_world_t *world)
{
    if (0 != geteuid()) {
        printf("another_user: left out: only root can become another user\n");
        return;
    }
    if (1 == world->rank) {
        dn_check_equal(setgid(65534), 0);
        dn_check_equal(setuid(65534), 0);
    }
    world->job.dir = "/dev/shm";
    dn_world_open(world);
    dn_world_barrier(world);
    dn_peer_t *peer = NULL;
    const dn_board_seat_t *seat = &world->board->seat[1 - world->rank];
    dn_test_log_expect();
    dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &peer), DN_ERR_ACCESS);
    dn_check(dn_test_log_said(1, "user"));
    dn_check(NULL == peer);
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"headers_that_are_wrong", 1, headers_that_are_wrong},
    {"files_elsewhere", 1, files_elsewhere},
    {"another_user", 2, another_user},
    {"false_staged_lines", LIARS_AND_VICTIM, false_staged_lines},
    {"any_keys", 2, any_keys},
    {"a_segment_that_can_shrink", 2, a_segment_that_can_shrink},
    {"core_messages", PROCESSES, core_messages},
    {"programs", PROCESSES, programs},
    {"near_blocks", PROCESSES, near_blocks},
    {"device_messages", PROCESSES, device_messages},
    {"any_channels", PROCESSES, any_channels},
    {"any_heads", PROCESSES, any_heads},
    {"any_ring", PROCESSES, any_ring},
    {"any_credit", PROCESSES, any_credit},
    {"any_stage", PROCESSES, any_stage},
    {"any_slots", PROCESSES, any_slots},
    {"any_help", PROCESSES, any_help},
    {"any_header", PROCESSES, any_header},
    {"sizes_that_change_later", PROCESSES, sizes_that_change_later},
};

/** usage: hostile_segment [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t mapped = {.file = "hostile", .device = "shm", .settings = "help_min=65536"};
    const dn_variant_t ring = {.file = "hostile, ring only", .device = "shm", .settings = "cma=0"};
    const size_t count = sizeof(tests) / sizeof(tests[0]);
    int failed = dn_world_run_tests(tests, count, &mapped, argv[1]);

    for (size_t i = 0; i < count; i++) {
        if (PROCESSES == tests[i].processes && (1 == argc || 0 == strcmp(argv[1], tests[i].name))) {
            failed |= dn_world_run(tests[i].name, &ring, tests[i].processes, tests[i].fn);
        }
    }
    return failed;
}
