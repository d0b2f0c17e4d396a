/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A window without MPI (dn_rma.h), and the part of this process in it.
 */
#ifndef RMA_PART_H
#define RMA_PART_H

#include "rma_world.h"

#include "dn_rma_int.h"

#include <sched.h>

enum {
    I64 = 7,  /**< number of the element */
    KEPT = 0, /**< words of a seat */
    HANDLE = 1,
    MET = 2,
    BEHIND = 8192, /**< bytes behind a control part, which are mapped with it */
};

/** A window, and the part of a process in it. */
typedef struct part {
    dn_world_t *world;
    dn_rma_t rma;
    dn_rma_win_t win;
    dn_rma_control_t *control;
    dn_segment_t *segment; /**< of the control part */
    dn_segment_t *memory;
    dn_peer_t *self;
    uint64_t met;
    unsigned refusals_left; /**< that a test wants */
    int threads;            /**< not 0: several of each process */
} part_t;

static part_t part;

/** dn_rma_config_t::wait. */
static inline void wait_more(uint64_t *state)
{
    (void) state;
    if (0 == dn_progress(part.world->port) + dn_rma_advance(&part.rma)) {
        sched_yield();
    }
}

static inline int find_element(int32_t type, uint32_t op, dn_element_t *element)
{
    *element = (dn_element_t){.size = 8, .extent = 8, .align = 8, .kind = DN_ELEMENT_SIGNED};
    return I64 == type && DN_ACC_MAXLOC > op;
}

static inline int find_region(const dn_rma_win_t *win, uint64_t at, uint64_t len, dn_rma_region_t *region)
{
    (void) win;
    (void) at;
    (void) len;
    (void) region;
    return 0;
}

static inline void refused(const char *why)
{
    printf("refused: %s\n", why);
    dn_check(0 != part.refusals_left);
    part.refusals_left--;
}

static inline void __attribute__((noreturn)) no_memory(void)
{
    abort();
}

/** Wait for all, and serve them meanwhile. */
static inline void meet(void)
{
    dn_world_post(part.world, MET, ++part.met);
    for (int rank = 0; rank < part.world->size; rank++) {
        while (part.met > dn_load_acquire(&part.world->board->seat[rank].word[MET])) {
            wait_more(NULL);
        }
    }
}

/**
 * Open a window of @p len bytes of private memory.
 * @param[in] mappers  Processes below this rank map the control parts of all others below it; everybody else is far.
 */
static inline void open_window(dn_world_t *world, void *base, uint64_t len, int mappers)
{
    const dn_rma_config_t calls = {.wait = wait_more,
                                   .threads = part.threads,
                                   .element = find_element,
                                   .find = find_region,
                                   .refused = refused,
                                   .no_memory = no_memory};

    world->job.threads = part.threads;
    dn_world_start(world);
    part = (part_t){.world = world,
                    .threads = part.threads,
                    .win = {.rma = &part.rma, .rank = world->rank, .size = world->size}};
    dn_check_equal(dn_rma_open(&part.rma, world->port, DN_CHAN_OSC, &calls), DN_OK);
    dn_check_equal(dn_connect(world->port, world->me->address, world->me->address_len, &part.self), DN_OK);
    dn_check_equal(dn_rma_win_open(&part.win), DN_OK);
    dn_check_equal(dn_segment_alloc(world->port, dn_rma_control_bytes(world->size) + BEHIND, &part.segment),
                   DN_OK);
    dn_check_equal(dn_segment_register(world->port, base, len, &part.memory), DN_OK);
    part.control = dn_segment_base(part.segment);
    dn_segment_key(part.segment, &world->me->key[0]);
    dn_segment_key(part.memory, &world->me->key[1]);
    dn_rma_win_begin(&part.win, part.control, UINT32_MAX - 100);
    dn_check_equal(dn_rma_win_join(&part.win), DN_OK);
    dn_world_post(world, HANDLE, part.win.handle);
    dn_world_barrier(world);
    for (int rank = 0; rank < world->size; rank++) {
        const dn_board_seat_t *seat = &world->board->seat[rank];
        void *control = NULL;

        if (rank == world->rank) {
            control = part.control;
        } else if (rank < mappers && world->rank < mappers) {
            dn_check_equal(dn_segment_map(world->peer[rank], &seat->key[0], &control), DN_OK);
        }
        part.win.target[rank].control = control;
        part.win.target[rank].peer = rank == world->rank ? part.self : world->peer[rank];
        part.win.far[rank].window = seat->word[HANDLE];
        part.win.far[rank].key = seat->key[1];
        part.win.far[rank].block_key = seat->key[0];
    }
    part.win.base = base;
    part.win.len = len;
    dn_rma_win_place(&part.win);
    dn_world_barrier(world);
}

static inline void close_window(void)
{
    for (int rank = 0; rank < part.win.size; rank++) {
        dn_check_equal(dn_rma_settle(&part.win, rank), DN_OK);
    }
    meet();
    dn_rma_win_close(&part.win);
    dn_rma_close(&part.rma);
    dn_disconnect(part.self);
    dn_segment_free(part.memory);
    dn_segment_free(part.segment);
    dn_world_stop(part.world);
}

/** The same where others have died: nobody is waited for. */
static inline void leave_window(void)
{
    dn_rma_win_close(&part.win);
    dn_rma_close(&part.rma);
    dn_segment_free(part.memory);
    dn_segment_free(part.segment);
    dn_close(part.world->port);
    part.world->port = NULL;
}

#endif
