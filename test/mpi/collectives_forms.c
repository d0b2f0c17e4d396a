/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_forms.c
 * Every collective in each of its forms, blocking, nonblocking and persistent, on communicators of every kind: also those among neighbours
 * and between two groups. Several are under way at once, on one communicator and on communicators that overlap, and are completed in any
 * order.
 *
 *   collectives_forms [-s SEED] [-n ROUNDS] [-e ROUNDS] [-k KIND] [-l BYTES]
 *
 *   -n  rounds of random collectives that are under way at once
 *   -e  rounds of every kind in every form on every communicator, one after another
 *   -k  with -e: only this kind, by its place in kind_t, from 1 on
 *   -l  most bytes of a block; default 20000
 *
 * Where coll_llcm has a collective in its own ways, and where it leaves it to others, the result must be the same.
 */
#include "dn_config.h"

#include "collectives_forms.h"
#include "complete.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_OPERATIONS = 96, STARTS = 3 };

static uint64_t seed = 1;
static uint64_t rounds;
static uint64_t each_rounds;
static uint64_t only;
static uint64_t most = 20000;
static unsigned long long verified;

/** Operations of which requests are made at once. */
typedef struct set {
    operation_t operation[MOST_OPERATIONS];
    MPI_Request request[MOST_OPERATIONS];
    int count;
} set_t;

static kind_t draw_kind(const space_t *space, form_t form, verify_rng_t *rng)
{
    kind_t kind;

    do {
        kind = (kind_t) verify_below(rng, KINDS);
    } while (!kind_suits(kind, form, space));
    return kind;
}

static void check(operation_t *operation)
{
    operation_check(operation);
    verified++;
}

/** Add an operation to a set. Of a persistent one, the request is made. */
static void set_add(set_t *set, const space_t *space, kind_t kind, form_t form, verify_rng_t *rng)
{
    operation_t *operation = &set->operation[set->count];

    verify_that(MOST_OPERATIONS > set->count, "these are too many operations");
    operation_draw(operation, space, kind, form, rng, most);
    operation_fill(operation);
    operation_call(operation, &set->request[set->count]);
    set->count++;
}

/** complete_fn_t */
static void check_one(void *arg, int index)
{
    set_t *set = arg;

    check(&set->operation[index]);
}

/** Complete all that are under way, and check each. */
static void set_complete(set_t *set, verify_rng_t *here)
{
    complete_all(set->request, set->count, here, check_one, set);
}

static void set_free(set_t *set)
{
    for (int i = 0; i < set->count; i++) {
        if (MPI_REQUEST_NULL != set->request[i]) {
            MPI_Request_free(&set->request[i]);
        }
        operation_free(&set->operation[i]);
    }
    set->count = 0;
}

/** A blocking collective of any kind. */
static void block(const space_t *space, kind_t kind, verify_rng_t *rng)
{
    operation_t operation;

    operation_draw(&operation, space, kind, BLOCKING, rng, most);
    operation_fill(&operation);
    operation_call(&operation, NULL);
    check(&operation);
    operation_free(&operation);
}

/** Start all operations of the set, which are persistent, in any order, some of them together. */
static void set_start(set_t *set, verify_rng_t *here)
{
    MPI_Request together[MOST_OPERATIONS];
    int order[MOST_OPERATIONS];
    int place[MOST_OPERATIONS];
    int count = 0;

    verify_shuffle(here, order, set->count);
    for (int i = 0; i < set->count; i++) {
        operation_fill(&set->operation[order[i]]);
        if (0 == verify_below(here, 2)) {
            MPI_Start(&set->request[order[i]]);
        } else {
            place[count] = order[i];
            together[count++] = set->request[order[i]];
        }
    }
    MPI_Startall(count, together);
    for (int i = 0; i < count; i++) {
        set->request[place[i]] = together[i];
    }
}

/** Begin some nonblocking operations on each communicator. Each rank takes the communicators in an order of its own. */
static void begin_some(set_t *set, const space_t space[SPACES], verify_rng_t rng[SPACES], verify_rng_t *here)
{
    enum { MOST_OF_SPACE = 4 };
    int order[SPACES];

    verify_shuffle(here, order, SPACES);
    for (int i = 0; i < SPACES; i++) {
        const int which = order[i];
        if (MPI_COMM_NULL != space[which].comm) {
            for (uint64_t n = verify_below(&rng[which], MOST_OF_SPACE); 0 < n; n--) {
                const kind_t kind = draw_kind(&space[which], NONBLOCKING, &rng[which]);
                set_add(set, &space[which], kind, NONBLOCKING, &rng[which]);
            }
        }
    }
}

static void block_some(const space_t space[SPACES], verify_rng_t rng[SPACES])
{
    for (int i = 0; i < SPACES; i++) {
        if (MPI_COMM_NULL != space[i].comm && 0 == verify_below(&rng[i], 3)) {
            block(&space[i], draw_kind(&space[i], BLOCKING, &rng[i]), &rng[i]);
        }
    }
}

static void run_at_once(const space_t space[SPACES], set_t *set, set_t *persistent)
{
    verify_rng_t here;
    verify_rng_t rng[SPACES];
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    here.state = verify_key(seed, (uint64_t) rank, 1, 0);
    for (int i = 0; i < SPACES; i++) {
        /* The same in all members, whatever else they are in. */
        rng[i].state = verify_key(seed, (uint64_t) i, 2, 0);
    }
    for (uint64_t round = 0; round < rounds; round++) {
        begin_some(set, space, rng, &here);
        block_some(space, rng);
        set_complete(set, &here);
        set_free(set);
        for (int i = 0; i < SPACES; i++) {
            for (uint64_t n = verify_below(&rng[i], 3); 0 < n && MPI_COMM_NULL != space[i].comm; n--) {
                const kind_t kind = draw_kind(&space[i], PERSISTENT, &rng[i]);
                set_add(persistent, &space[i], kind, PERSISTENT, &rng[i]);
            }
        }
        for (int start = 0; start < STARTS; start++) {
            set_start(persistent, &here);
            begin_some(set, space, rng, &here);
            block_some(space, rng);
            set_complete(persistent, &here);
            set_complete(set, &here);
            set_free(set);
        }
        set_free(persistent);
    }
}

/** One operation at a time. */
static void run_one(const space_t *space, kind_t kind, form_t form, set_t *set, verify_rng_t *rng,
                    verify_rng_t *here)
{
    if (BLOCKING == form) {
        block(space, kind, rng);
        return;
    }
    set_add(set, space, kind, form, rng);
    for (int start = 0; start < (PERSISTENT == form ? STARTS : 1); start++) {
        if (PERSISTENT == form) {
            set_start(set, here);
        }
        set_complete(set, here);
    }
    set_free(set);
}

static void run_each(const space_t space[SPACES], set_t *set)
{
    for (uint64_t round = 0; round < each_rounds; round++) {
        for (int i = 0; i < SPACES; i++) {
            verify_rng_t rng = {.state = verify_key(seed, round, (uint64_t) i, 3)};
            verify_rng_t here = {.state = verify_key(seed, round, (uint64_t) space[i].rank, 4)};
            for (int kind = 0; kind < KINDS && MPI_COMM_NULL != space[i].comm; kind++) {
                for (int form = 0; form < FORMS && (0 == only || only == (uint64_t) kind + 1); form++) {
                    if (kind_suits((kind_t) kind, (form_t) form, &space[i])) {
                        run_one(&space[i], (kind_t) kind, (form_t) form, set, &rng, &here);
                    }
                }
            }
        }
    }
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'s', "SEED", &seed, 0}, {'n', "ROUNDS", &rounds, 0}, {'e', "ROUNDS", &each_rounds, 0},
        {'k', "KIND", &only, 0}, {'l', "BYTES", &most, 0},    {0, NULL, NULL, 0},
    };
    static set_t set, persistent;
    unsigned long long total = 0;
    space_t space[SPACES];
    int rank, ranks;

    verify_options(argc, argv, options);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    reductions_begin();
    spaces_make(space, seed);
    run_at_once(space, &set, &persistent);
    run_each(space, &set);
    spaces_free(space);
    reductions_end();
    MPI_Reduce(&verified, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("collectives_forms: %d ranks, %llu collectives verified\n", ranks, total);
    }
    MPI_Finalize();
    return 0;
}
