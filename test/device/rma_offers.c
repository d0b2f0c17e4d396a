/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Puts and gets that a target is offered (dn_rma_offer.c): done as a whole, or not at all, whenever the target looks.
 */
#include "dn_config.h"

#include "rma_part.h"

#include <pthread.h>

enum {
    BYTES = 1 << 16,
    FRONT = 64, /**< bytes before the window in its segment */
    OFFERS = 400,
    BLOCKS = 20,
    LONGEST = 150, /**< bytes of a block */
    LATE = 50,
    RINGS = 100,
    DONE = 3, /**< word of a seat */
    LAST = 7, /**< tag of a message behind all others */
};

/** Nanoseconds for which an offer is surely taken, by a target that makes progress. */
#define SURELY_NS 60000000000u

static uint8_t segment[FRONT + BYTES], model[BYTES];
static uint8_t *const memory = segment + FRONT;
static unsigned lasts;

/** dn_handler_fn_t: all that was sent before has been read. */
static void count_last(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) data;
    (void) len;
    (void) arg;
    dn_check_equal(tag, LAST);
    lasts++;
}

/** Send a message that is read after all others of this process. */
static void send_last(int rank)
{
    dn_status_t status;

    while (DN_ERR_AGAIN
           == (status = dn_botf(part.world->peer[rank], DN_WORLD_CHAN, LAST, NULL, 0, NULL, 0))) {
        wait_more(NULL);
    }
    dn_check_equal(status, DN_OK);
}

/** Serve until so many messages of send_last() were read. */
static void serve(unsigned count)
{
    while (count > lasts) {
        wait_more(NULL);
    }
}

/** A window that does not begin with its segment; its processes make offers that last for @p ns. */
static void open_for(dn_world_t *world, uint64_t ns)
{
    memset(segment, 0, sizeof(segment));
    memset(model, 0, sizeof(model));
    lasts = 0;
    open_window(world, segment, sizeof(segment), world->size);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, count_last, NULL), DN_OK);
    part.win.base = memory;
    part.win.len = BYTES;
    for (int rank = 0; rank < world->size; rank++) {
        dn_peer_attr_t attr;

        dn_peer_attr(part.win.far[rank].peer, &attr);
        part.win.far[rank].roff = FRONT;
        part.win.far[rank].offer_ns = ns;
        /* Also where the processes share cores. */
        part.win.far[rank].offer_max = rank == world->rank ? 0 : attr.botf_max - sizeof(dn_rma_offer_head_t);
    }
    dn_world_barrier(world);
}

/** Some blocks that do not overlap, of all lengths. */
typedef struct blocks {
    dn_block_t here[BLOCKS];
    dn_block_t there[BLOCKS];
    uint8_t data[BLOCKS * LONGEST];
    dn_rma_moves_t moves;
} blocks_t;

static void choose(blocks_t *blocks, uint64_t *random)
{
    const uint32_t count = 1 + (uint32_t) dn_test_below(random, BLOCKS);
    uint64_t at = FRONT, bytes = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint64_t len = 1 + dn_test_below(random, LONGEST);

        blocks->here[i] = (dn_block_t){(uintptr_t) blocks->data + LONGEST * i, len};
        blocks->there[i] = (dn_block_t){at + dn_test_below(random, BYTES / BLOCKS - LONGEST), len};
        at += BYTES / BLOCKS;
        bytes += len;
    }
    blocks->moves = (dn_rma_moves_t){blocks->here, blocks->there, count, bytes};
}

/** Offer until there was room for the message. */
static void offer_surely(int target, const blocks_t *blocks, bool write)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_rma_offer(&part.win, target, &blocks->moves, write))) {
        wait_more(NULL);
    }
    dn_check_equal(status, DN_OK);
}

/** What was put is there, and what is got was put. Offers are numbered beyond 2^32. */
static void offers_are_carried_out(dn_world_t *world)
{
    blocks_t blocks;

    open_for(world, SURELY_NS);
    if (1 == world->rank) {
        serve(1);
    } else {
        part.win.far[1].offering.number = UINT32_MAX - OFFERS / 2;
        for (int n = 0; n < OFFERS; n++) {
            const bool write = 0 != dn_test_below(&world->random, 2);

            choose(&blocks, &world->random);
            for (size_t i = 0; i < sizeof(blocks.data); i++) {
                blocks.data[i] = write ? (uint8_t) dn_test_below(&world->random, 256) : 0xee;
            }
            offer_surely(1, &blocks, write);
            for (uint32_t i = 0; i < blocks.moves.count; i++) {
                uint8_t *here = (uint8_t *) (uintptr_t) blocks.here[i].at;
                uint8_t *there = model + blocks.there[i].at - FRONT;

                if (write) {
                    memcpy(there, here, blocks.here[i].len);
                } else {
                    dn_check_equal(memcmp(here, there, blocks.here[i].len), 0);
                }
            }
        }
        send_last(1);
    }
    close_window();
}

/** Each process has its offers carried out while it waits, whoever waits for whom. */
static void neighbours_offer_to_each_other(dn_world_t *world)
{
    const int next = (world->rank + 1) % world->size;
    const int before = (world->rank + world->size - 1) % world->size;
    uint64_t value, was;
    blocks_t blocks = {.here = {{(uintptr_t) &value, 8}}, .there = {{FRONT + 8 * (uint64_t) world->rank, 8}}};

    open_for(world, SURELY_NS);
    blocks.moves = (dn_rma_moves_t){blocks.here, blocks.there, 1, 8};
    for (uint64_t i = 1; i <= RINGS; i++) {
        value = i;
        offer_surely(next, &blocks, true);
        value = 0;
        offer_surely(next, &blocks, false);
        dn_check_equal(value, i);
        meet();
        memcpy(&was, memory + 8 * before, sizeof(was));
        dn_check_equal(was, i);
        meet();
    }
    close_window();
}

/** dn_rma_offer() of one thread of several, each with bytes of its own. */
static void *offer_by_thread(void *arg)
{
    const uint64_t at = *(const uint64_t *) arg;
    uint64_t value, seen = 0;
    const dn_block_t to = {FRONT + at, 8};
    const dn_block_t from[2] = {{(uintptr_t) &value, 8}, {(uintptr_t) &seen, 8}};
    blocks_t blocks = {.moves = {&from[0], &to, 1, 8}};

    for (value = 1; value <= RINGS; value++) {
        blocks.moves.here = &from[0];
        offer_surely(1, &blocks, true);
        blocks.moves.here = &from[1];
        offer_surely(1, &blocks, false);
        dn_check_equal(seen, value);
    }
    return NULL;
}

static void threads_offer_in_turn(dn_world_t *world)
{
    static const uint64_t at[] = {0, 64, 128};
    enum { THREADS = sizeof(at) / sizeof(at[0]) };
    pthread_t thread[THREADS];

    part.threads = 1;
    open_for(world, SURELY_NS);
    if (1 == world->rank) {
        serve(1);
    } else {
        for (int i = 0; i < THREADS; i++) {
            dn_check_equal(pthread_create(&thread[i], NULL, offer_by_thread, (void *) (uintptr_t) &at[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            dn_check_equal(pthread_join(thread[i], NULL), 0);
        }
        send_last(1);
    }
    close_window();
}

/** A target that computes finds offers long after they were taken back, when their memory has newer contents. Until then it gets no
 * other one. */
static void offers_taken_back_touch_nothing(dn_world_t *world)
{
    uint64_t old = 1, got = 7;
    const dn_block_t here[2] = {{(uintptr_t) &old, 8}, {(uintptr_t) &got, 8}};
    const dn_block_t there = {FRONT, 8};
    dn_rma_moves_t moves = {here, &there, 1, 8};

    open_for(world, 1000);
    for (unsigned i = 1; i <= 2 * LATE; i++) {
        const uint64_t newer = 100 + i;

        if (1 == world->rank) {
            /* Computes until the offer was taken back. */
            dn_world_post(world, KEPT, i);
            while (i > dn_load_acquire(&world->board->seat[0].word[KEPT])) {
                sched_yield();
            }
            memcpy(memory, &newer, sizeof(newer));
            serve(i);
            dn_check_equal(memcmp(memory, &newer, sizeof(newer)), 0);
        } else {
            const bool write = 0 == i % 2;
            uint32_t number;

            while (i > dn_load_acquire(&world->board->seat[1].word[KEPT])) {
                wait_more(NULL);
            }
            moves.here = &here[write ? 0 : 1];
            dn_check(LATE > i || 0 < part.win.far[1].offering.left);
            part.win.far[1].offering.left = 0;
            do {
                /* In vain, and maybe for want of room. */
                wait_more(NULL);
                number = part.win.far[1].offering.number;
                dn_check_equal(dn_rma_offer(&part.win, 1, &moves, write), DN_ERR_AGAIN);
            } while (number != part.win.far[1].offering.number
                     && DN_RMA_BACK != dn_rma_offer_state(&part.win.target[1].control->notes[0].offer));
            number = part.win.far[1].offering.number;
            dn_check_equal(dn_rma_offer(&part.win, 1, &moves, write), DN_ERR_AGAIN);
            dn_check_equal(part.win.far[1].offering.number, number);
            dn_world_post(world, KEPT, i);
            send_last(1);
            /* The target has read it, so it is asked again. */
            while (DN_RMA_FREE != dn_rma_offer_state(&part.win.target[1].control->notes[0].offer)) {
                wait_more(NULL);
            }
            dn_check_equal(got, 7);
        }
    }
    close_window();
}

/** A target that ends with an offer in its hands is found lost. */
static void the_dead_finish_no_offer(dn_world_t *world)
{
    const uint64_t value = 1;
    const dn_block_t here = {(uintptr_t) &value, 8};
    const dn_block_t there = {FRONT, 8};
    const blocks_t blocks = {.moves = {&here, &there, 1, 8}};
    dn_status_t status;

    open_for(world, 3000000000);
    if (1 == world->rank) {
        uint64_t *word = &part.control->notes[0].offer;
        uint64_t seen;

        do {
            sched_yield();
            seen = dn_load_acquire(word);
        } while (DN_RMA_OFFERED != seen % 8 || !dn_cas_acq_rel_u64(word, seen, seen + 1));
        dn_world_die(world);
    }
    dn_test_log_expect();
    /* A full port is not the end: faults are injected. */
    while (DN_ERR_AGAIN == (status = dn_rma_offer(&part.win, 1, &blocks.moves, true))) {
        dn_check_equal(dn_rma_offer_state(&part.win.target[1].control->notes[0].offer), DN_RMA_FREE);
    }
    dn_check_equal(status, DN_ERR_UNREACH);
    leave_window();
}

/** Send rank 0 a message as no origin or target does. */
static void send_wrong(unsigned tag, int32_t rank, uint32_t count, dn_block_t block, size_t data)
{
    struct {
        dn_rma_offer_head_t head;
        dn_block_t block;
        uint8_t data[64];
    } message = {.head = {part.win.far[0].window, rank, 0, count, 0}, .block = block};
    const size_t len = sizeof(message.head) + (DN_RMA_GOT == tag ? 0 : sizeof(message.block)) + data;
    dn_status_t status;

    memset(message.data, 0xff, sizeof(message.data));
    while (DN_ERR_AGAIN
           == (status = dn_botf(part.world->peer[0], DN_CHAN_OSC, tag, &message, len, NULL, 0))) {
        sched_yield();
    }
    dn_check_equal(status, DN_OK);
}

/** Blocks outside of the window, and lengths that do not fit, are refused before the word is looked at, and change nothing. */
static void offers_that_do_not_fit_are_refused(dn_world_t *world)
{
    static const dn_block_t wrong[] = {{BYTES, 8}, {BYTES - 7, 8}, {UINT64_MAX, 8}, {0, UINT64_MAX},
                                       {0, 16},    {0, 7},         {0, 0},          {UINT64_MAX - 3, 4}};

    open_for(world, SURELY_NS);
    if (0 == world->rank) {
        /* One sentence for each sort of wrong messages. */
        part.refusals_left = 2;
        /* As if the offer of this number were there to be taken. */
        part.control->notes[1].offer = dn_rma_offer_word(0, DN_RMA_OFFERED);
        meet();
        serve(1);
        dn_check_equal(part.refusals_left, 0);
        dn_check_equal(dn_rma_offer_state(&part.control->notes[1].offer), DN_RMA_OFFERED);
        for (int i = 0; i < BYTES; i++) {
            dn_check_equal(memory[i], 0);
        }
        meet();
        /* The right one is taken. */
        serve(2);
        dn_check_equal(dn_rma_offer_state(&part.control->notes[1].offer), DN_RMA_DONE);
        dn_check_equal(memory[BYTES - 1], 0xff);
    } else {
        meet();
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
            send_wrong(DN_RMA_PUT, 1, 1, wrong[i], 8);
        }
        send_wrong(DN_RMA_PUT, 1, 0, wrong[0], 0);
        send_wrong(DN_RMA_PUT, 1, 2, (dn_block_t){0, 8}, 8);
        send_wrong(DN_RMA_PUT, 1, UINT32_MAX, (dn_block_t){0, 8}, 8);
        send_wrong(DN_RMA_PUT, 0, 1, (dn_block_t){0, 8}, 8);
        send_wrong(DN_RMA_GET, 1, 1, (dn_block_t){BYTES - 7, 8}, 0);
        send_wrong(DN_RMA_GET, 1, 1, (dn_block_t){0, 8}, 8);
        /* Nobody has asked for anything. */
        send_wrong(DN_RMA_GOT, 1, 0, (dn_block_t){0, 0}, 8);
        send_last(0);
        meet();
        send_wrong(DN_RMA_PUT, 1, 1, (dn_block_t){BYTES - 8, 8}, 8);
        send_last(0);
    }
    close_window();
}

/** What answers another offer than that which waits, or with another length, is refused; the right answer comes through. */
static void answers_to_no_offer_are_refused(dn_world_t *world)
{
    uint64_t got = 7;
    const dn_block_t here = {(uintptr_t) &got, 8};
    const dn_block_t there = {FRONT, 8};
    const blocks_t blocks = {.moves = {&here, &there, 1, 8}};

    open_for(world, SURELY_NS);
    if (0 == world->rank) {
        part.refusals_left = 1;
        meet();
        offer_surely(1, &blocks, false);
        dn_check_equal(part.refusals_left, 0);
        dn_check_equal(got, 0x0101010101010101);
        send_last(1);
    } else {
        memset(memory, 1, 8);
        meet();
        /* It waits. */
        while (DN_RMA_OFFERED != dn_rma_offer_state(&part.control->notes[0].offer)) {
            sched_yield();
        }
        /* Number 0 is none of the first ones. */
        send_wrong(DN_RMA_GOT, 1, 0, (dn_block_t){0, 0}, 8);
        send_wrong(DN_RMA_GOT, 1, 0, (dn_block_t){0, 0}, 64);
        serve(1);
    }
    close_window();
}

static const dn_world_test_t tests[] = {
    {"offers_are_carried_out", 2, offers_are_carried_out},
    {"neighbours_offer_to_each_other", 3, neighbours_offer_to_each_other},
    {"threads_offer_in_turn", 2, threads_offer_in_turn},
    {"offers_taken_back_touch_nothing", 2, offers_taken_back_touch_nothing},
    {"the_dead_finish_no_offer", 2, the_dead_finish_no_offer},
    {"offers_that_do_not_fit_are_refused", 2, offers_that_do_not_fit_are_refused},
    {"answers_to_no_offer_are_refused", 2, answers_to_no_offer_are_refused},
};

int main(int argc, char **argv)
{
    return rma_run(tests, sizeof(tests) / sizeof(tests[0]), rma_mapped,
                   sizeof(rma_mapped) / sizeof(rma_mapped[0]), argv[1]);
}
