/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_list.c
 * A linked list in a dynamic window, of elements that all ranks have attached: next is the rank and the displacement of an
 * element, written and read as 16 bytes by one accumulate each, as many programs do.
 *
 *   osc_list [-n ELEMENTS]
 *
 * Each rank appends ELEMENTS elements, and walks along the list meanwhile. Who appends has a lock of compare_and_swap; who walks
 * has nothing.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Where an element is; rank -1: nowhere. */
typedef struct place {
    int32_t rank;
    int32_t pad;
    int64_t disp;
} place_t;

typedef struct element {
    place_t next;
    int64_t check; /**< made of the rank and the number */
    int64_t pad;
} element_t;

/** At rank 0. */
typedef struct list {
    element_t head;
    place_t last;
    int64_t lock;
} list_t;

static const place_t nowhere = {.rank = -1};
static int rank, ranks;
static uint64_t elements = 2000;
static MPI_Win win;
static MPI_Aint list; /**< displacement at rank 0 */

static MPI_Aint address_of(const void *what)
{
    MPI_Aint address;

    MPI_Get_address(what, &address);
    return address;
}

static place_t read_place(int target, MPI_Aint disp)
{
    place_t place;

    MPI_Get_accumulate(NULL, 0, MPI_BYTE, &place, sizeof(place), MPI_BYTE, target, disp, sizeof(place),
                       MPI_BYTE, MPI_NO_OP, win);
    MPI_Win_flush(target, win);
    return place;
}

static void write_place(place_t place, int target, MPI_Aint disp)
{
    MPI_Accumulate(&place, sizeof(place), MPI_BYTE, target, disp, sizeof(place), MPI_BYTE, MPI_REPLACE, win);
    MPI_Win_flush(target, win);
}

/** Go to a place, which was read while others write it. @return where the next is. */
static place_t go_to(place_t at)
{
    int64_t check;

    verify_that(0 <= at.rank && at.rank < ranks && 0 != at.disp, "a place was seen in halves");
    MPI_Get(&check, 1, MPI_INT64_T, at.rank, at.disp + (MPI_Aint) offsetof(element_t, check), 1, MPI_INT64_T,
            win);
    MPI_Win_flush(at.rank, win);
    verify_that((at.disp ^ at.rank) == check, "a place leads to something else than an element");
    return read_place(at.rank, at.disp);
}

static void append(const element_t *element)
{
    const MPI_Aint lock = list + (MPI_Aint) offsetof(list_t, lock);
    const MPI_Aint last = list + (MPI_Aint) offsetof(list_t, last);
    const place_t place = {.rank = rank, .disp = address_of(element)};
    const int64_t taken = 1, is_free = 0;
    int64_t seen;

    do {
        MPI_Compare_and_swap(&taken, &is_free, &seen, MPI_INT64_T, 0, lock, win);
        MPI_Win_flush(0, win);
        (void) go_to(read_place(0, last));
    } while (0 != seen);
    const place_t before = read_place(0, last);
    write_place(place, before.rank, before.disp);
    write_place(place, 0, last);
    MPI_Accumulate(&is_free, 1, MPI_INT64_T, 0, lock, 1, MPI_INT64_T, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
}

/** Walk along the list. @return elements. */
static uint64_t walk(void)
{
    uint64_t count = 0;

    for (place_t at = read_place(0, list); - 1 != at.rank; count++) {
        at = go_to(at);
    }
    return count;
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'n', "ELEMENTS", &elements, 1}, {0}};
    element_t *mine;
    list_t *whole = NULL;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Alloc_mem((MPI_Aint) (elements * sizeof(*mine)), MPI_INFO_NULL, &mine);
    for (uint64_t i = 0; i < elements; i++) {
        mine[i] = (element_t){.next = nowhere, .check = address_of(&mine[i]) ^ rank};
    }
    MPI_Win_attach(win, mine, (MPI_Aint) (elements * sizeof(*mine)));
    if (0 == rank) {
        MPI_Alloc_mem(sizeof(*whole), MPI_INFO_NULL, &whole);
        *whole = (list_t){.head = {.next = nowhere, .check = address_of(whole)},
                          .last = {.rank = 0, .disp = address_of(whole)}};
        MPI_Win_attach(win, whole, sizeof(*whole));
        list = address_of(whole);
    }
    MPI_Bcast(&list, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t i = 0; i < elements; i++) {
        append(&mine[i]);
        if (0 == i % 500) {
            (void) walk();
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    verify_that(elements * (uint64_t) ranks == walk(), "elements of the list are lost");
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        printf("osc_list: %d ranks, %llu elements each\n", ranks, (unsigned long long) elements);
        MPI_Win_detach(win, whole);
        MPI_Free_mem(whole);
    }
    MPI_Win_detach(win, mine);
    MPI_Free_mem(mine);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
