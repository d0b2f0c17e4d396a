/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_torture.c
 * Random one-sided operations, datatypes, windows and synchronisations, compared with a sequential model.
 *
 *   osc_torture [-s SEED] [-n ROUNDS] [-o OPERATIONS] [-k KINDS] [-m BYTES]
 *
 * All ranks draw the same plan, and each plays all of it on a model of all windows. A window is cut into
 * one slice for each origin and one for all. In its own slice an origin does anything: with what it does there the model agrees
 * to the byte, as do the values that come back. In the common slice all origins accumulate at once, by operations whose
 * order does not show. Slices change hands from round to round.
 *
 * KINDS is a sum: 1 MPI_Win_allocate, 2 MPI_Win_allocate_shared, 4 MPI_Win_create, 8 MPI_Win_create_dynamic.
 */
#include "dn_config.h"

#include "osc_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_ALLOCATE, KIND_SHARED, KIND_CREATE, KIND_DYNAMIC, KINDS };
enum { SYNC_FENCE, SYNC_SHARED, SYNC_EXCLUSIVE, SYNC_ALL, SYNC_PSCW, SYNCS };
enum { DO_PUT, DO_GET, DO_ACCUMULATE, DO_GET_ACCUMULATE, DO_FETCH_AND_OP, DO_COMPARE_AND_SWAP, DOINGS };

/** Every displacement unit divides it. */
#define UNITS_MAX 16

/** Elements that all origins change. */
#define COMMON 5

/** Displacement units of the ranks, in turn. */
static const int units[] = {1, 8, 4, 16};

static int rank;
static int ranks;
static uint64_t seed = 1;
static uint64_t rounds = 20;
static uint64_t per_round = 12;
static uint64_t kinds = (1 << KINDS) - 1;
static uint64_t bytes = 6000;
static unsigned long long operations;

/** A window, and the model of all its memory. */
typedef struct {
    MPI_Win win;
    int kind;
    size_t size;          /**< of each rank */
    uint8_t *mine;        /**< this rank's */
    uint8_t *model;       /**< of all ranks, one after the other */
    MPI_Aint *start;      /**< of a dynamic window */
    void *memory;         /**< to be freed */
    int sync;             /**< of this round */
    bool overlap;         /**< operations of an origin may touch the same bytes, all as one datatype */
    bool flushes;         /**< a flush follows each operation */
    bool ordered;         /**< accumulates only: in the order of the calls, without anything between them */
    int basic;            /**< that datatype, for the origin whose plan is drawn */
    bool requests;        /**< operations that have a request form use it */
    MPI_Group neighbours; /**< all ranks */
} window_t;

/** An operation of one origin. */
typedef struct {
    int doing, target, op;
    model_layout_t here, result, there;
    size_t place; /**< of the target's first byte in its window */
    uint8_t *here_mem, *result_mem, *expect_mem;
    uint8_t compare[32];
    MPI_Request request;
} operation_t;

static void open_window(window_t *w, int kind, verify_rng_t *rng)
{
    MPI_Aint mine = 0;
    MPI_Info info;

    memset(w, 0, sizeof(*w));
    w->kind = kind;
    /* A multiple of every unit and element. */
    w->size = 64 * (size_t) (ranks + 1) * (1 + (size_t) verify_below(rng, bytes / 64));
    w->start = calloc((size_t) ranks, sizeof(*w->start));
    w->model = calloc((size_t) ranks, w->size);
    verify_that(NULL != w->start && NULL != w->model, "no memory for the model of a window");
    MPI_Info_create(&info);
    if (KIND_SHARED == kind && 0 == verify_below(rng, 2)) {
        MPI_Info_set(info, "alloc_shared_noncontig", "true");
    }
    const int unit = units[rank % 4];
    const MPI_Aint size = (MPI_Aint) w->size;
    if (KIND_ALLOCATE == kind) {
        MPI_Win_allocate(size, unit, info, MPI_COMM_WORLD, &w->mine, &w->win);
    } else if (KIND_SHARED == kind) {
        MPI_Win_allocate_shared(size, unit, info, MPI_COMM_WORLD, &w->mine, &w->win);
    } else {
        w->memory = verify_guard_alloc(w->size, 0);
        w->mine = w->memory;
    }
    if (KIND_CREATE == kind) {
        MPI_Win_create(w->mine, size, unit, info, MPI_COMM_WORLD, &w->win);
    } else if (KIND_DYNAMIC == kind) {
        MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &w->win);
        MPI_Win_attach(w->win, w->mine, size);
        MPI_Get_address(w->mine, &mine);
    }
    MPI_Info_free(&info);
    MPI_Allgather(&mine, 1, MPI_AINT, w->start, 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Comm_group(MPI_COMM_WORLD, &w->neighbours);
    memset(w->mine, 0, w->size);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void close_window(window_t *w)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (KIND_DYNAMIC == w->kind) {
        MPI_Win_detach(w->win, w->mine);
    }
    MPI_Win_free(&w->win);
    if (NULL != w->memory) {
        verify_guard_free(w->memory, w->size, 0, "memory of a window");
    }
    MPI_Group_free(&w->neighbours);
    free(w->model);
    free(w->start);
}

/** Where a displacement of the target leads to byte @p place. Places are multiples of UNITS_MAX. */
static MPI_Aint disp_of(const window_t *w, int target, size_t place)
{
    if (KIND_DYNAMIC == w->kind) {
        return MPI_Aint_add(w->start[target], (MPI_Aint) place);
    }
    return (MPI_Aint) place / units[target % 4];
}

/** @name Drawing */
/** @{ */

static bool is_single(int doing)
{
    return DO_FETCH_AND_OP == doing || DO_COMPARE_AND_SWAP == doing;
}

/** Does MPI define compare_and_swap on it? */
static bool is_word(int basic)
{
    return MODEL_UINT64 >= basic || MODEL_BYTE == basic;
}

/** Is the operation one for this round? */
static bool allowed(const window_t *w, int doing)
{
    if (w->ordered && (DO_PUT == doing || DO_GET == doing)) {
        return false;
    }
    return !w->overlap || DO_COMPARE_AND_SWAP != doing || is_word(w->basic);
}

static int draw_basic(verify_rng_t *rng, const operation_t *o)
{
    int basic;

    do {
        basic = (int) verify_below(rng, MODEL_BASICS);
    } while (DO_COMPARE_AND_SWAP == o->doing && !is_word(basic));
    return basic;
}

static int draw_op(verify_rng_t *rng, const operation_t *o, int basic)
{
    int op;

    do {
        op = (int) verify_below(rng, MODEL_OPS);
    } while (!model_defined(op, basic) || (MODEL_NO_OP == op && DO_ACCUMULATE == o->doing));
    return op;
}

static void random_memory(verify_rng_t *rng, uint8_t *memory, const model_layout_t *layout)
{
    for (int i = 0; i < layout->count; i++) {
        model_random_element(rng, layout->basic, memory + layout->at[i] - layout->low);
    }
}

/** Memory for a layout, guarded; the same bytes on every rank that draws it. */
static uint8_t *layout_memory(verify_rng_t *rng, const model_layout_t *layout)
{
    const size_t room = (size_t) (layout->high - layout->low);
    uint8_t *memory = verify_guard_alloc(room, 0);

    memset(memory, 0x5a, room);
    random_memory(rng, memory, layout);
    return memory;
}

/** An operation on a free part of a slice that begins at *@p next. @return false: nothing more fits. */
static bool draw(verify_rng_t *rng, const window_t *w, operation_t *o, size_t *next, size_t end)
{
    int count;

    memset(o, 0, sizeof(*o));
    o->request = MPI_REQUEST_NULL;
    do {
        o->doing = (int) verify_below(rng, DOINGS);
    } while (!allowed(w, o->doing));
    const int basic = w->overlap ? w->basic : draw_basic(rng, o);
    o->op = draw_op(rng, o, basic);
    count = is_single(o->doing) ? 1 : (int) verify_size(rng, 40);
    o->here = model_layout(rng, basic, count);
    o->result = model_layout(rng, basic, count);
    o->there = model_layout(rng, basic, count);
    const size_t room = (size_t) (o->there.high - o->there.low);
    o->place = (*next + UNITS_MAX - 1) / UNITS_MAX * UNITS_MAX;
    if (o->place + room > end) {
        return false;
    }
    if (!w->overlap) {
        *next = o->place + room;
    }
    return true;
}

static void free_operation(operation_t *o)
{
    model_layout_free(&o->here);
    model_layout_free(&o->result);
    model_layout_free(&o->there);
}
/** @} */

/** @name Playing on the model */
/** @{ */

/** Change the model; what an origin gets goes to @p o->expect_mem, if it is there. */
static void play(const window_t *w, operation_t *o)
{
    uint8_t *target = w->model + (size_t) o->target * w->size + o->place - o->there.low;

    for (int i = 0; i < o->there.count; i++) {
        uint8_t *at = target + o->there.at[i];
        const uint8_t *operand = o->here_mem + o->here.at[i] - o->here.low;
        const model_layout_t *back = DO_GET == o->doing ? &o->here : &o->result;

        if (NULL != o->expect_mem && DO_PUT != o->doing && DO_ACCUMULATE != o->doing) {
            model_copy(o->there.basic, o->expect_mem + back->at[i] - back->low, at);
        }
        switch (o->doing) {
        case DO_GET:
            break;
        case DO_PUT:
            model_copy(o->there.basic, at, operand);
            break;
        case DO_COMPARE_AND_SWAP:
            if (model_equal(o->there.basic, at, o->compare)) {
                model_copy(o->there.basic, at, operand);
            }
            break;
        default:
            model_change(o->op, o->there.basic, at, operand);
            break;
        }
    }
}
/** @} */

/** @name Doing */
/** @{ */

static void issue(const window_t *w, operation_t *o)
{
    void *here = o->here_mem - o->here.low;
    void *result = o->result_mem - o->result.low;
    const MPI_Aint disp = disp_of(w, o->target, o->place - (size_t) o->there.low);
    const MPI_Aint first = disp_of(w, o->target, o->place); /* of the element of a single one */
    const bool req = w->requests;
    MPI_Request *r = &o->request;

    switch (o->doing) {
    case DO_PUT:
        req ? MPI_Rput(here, o->here.type_count, o->here.type, o->target, disp, o->there.type_count,
                       o->there.type, w->win, r)
            : MPI_Put(here, o->here.type_count, o->here.type, o->target, disp, o->there.type_count,
                      o->there.type, w->win);
        break;
    case DO_GET:
        req ? MPI_Rget(here, o->here.type_count, o->here.type, o->target, disp, o->there.type_count,
                       o->there.type, w->win, r)
            : MPI_Get(here, o->here.type_count, o->here.type, o->target, disp, o->there.type_count,
                      o->there.type, w->win);
        break;
    case DO_ACCUMULATE:
        req ? MPI_Raccumulate(here, o->here.type_count, o->here.type, o->target, disp, o->there.type_count,
                              o->there.type, model_op(o->op), w->win, r)
            : MPI_Accumulate(here, o->here.type_count, o->here.type, o->target, disp, o->there.type_count,
                             o->there.type, model_op(o->op), w->win);
        break;
    case DO_GET_ACCUMULATE:
        req ? MPI_Rget_accumulate(here, o->here.type_count, o->here.type, result, o->result.type_count,
                                  o->result.type, o->target, disp, o->there.type_count, o->there.type,
                                  model_op(o->op), w->win, r)
            : MPI_Get_accumulate(here, o->here.type_count, o->here.type, result, o->result.type_count,
                                 o->result.type, o->target, disp, o->there.type_count, o->there.type,
                                 model_op(o->op), w->win);
        break;
    case DO_FETCH_AND_OP:
        MPI_Fetch_and_op(o->here_mem, o->result_mem, model_type(o->there.basic), o->target, first,
                         model_op(o->op), w->win);
        break;
    default:
        MPI_Compare_and_swap(o->here_mem, o->compare, o->result_mem, model_type(o->there.basic), o->target,
                             first, w->win);
        break;
    }
}

static void epoch_begin(const window_t *w)
{
    switch (w->sync) {
    case SYNC_FENCE:
        MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
        break;
    case SYNC_ALL:
        MPI_Win_lock_all(0, w->win);
        break;
    case SYNC_PSCW:
        MPI_Win_post(w->neighbours, 0, w->win);
        MPI_Win_start(w->neighbours, 0, w->win);
        break;
    default:
        break;
    }
}

static void epoch_end(const window_t *w)
{
    switch (w->sync) {
    case SYNC_FENCE:
        MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
        break;
    case SYNC_ALL:
        MPI_Win_unlock_all(w->win);
        break;
    case SYNC_PSCW:
        MPI_Win_complete(w->win);
        MPI_Win_wait(w->win);
        break;
    default:
        break;
    }
}

static void do_it(const window_t *w, operation_t *o)
{
    const bool locks = SYNC_SHARED == w->sync || SYNC_EXCLUSIVE == w->sync;

    if (locks) {
        MPI_Win_lock(SYNC_SHARED == w->sync ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, o->target, 0, w->win);
    }
    issue(w, o);
    if (locks) {
        if (MPI_REQUEST_NULL != o->request) {
            MPI_Wait(&o->request, MPI_STATUS_IGNORE);
        }
        MPI_Win_unlock(o->target, w->win);
    } else if (w->flushes) {
        MPI_Win_flush(o->target, w->win);
    }
}

static void compare_back(const window_t *w, const operation_t *o, uint64_t round)
{
    const model_layout_t *back = DO_GET == o->doing ? &o->here : &o->result;
    const uint8_t *memory = DO_GET == o->doing ? o->here_mem : o->result_mem;

    if (DO_PUT == o->doing || DO_ACCUMULATE == o->doing) {
        return;
    }
    for (ptrdiff_t i = 0; i < back->high - back->low; i++) {
        if (memory[i] != o->expect_mem[i]) {
            verify_fail("seed %llu, round %llu: operation %d (op %d, datatype %d, %d elements) on rank %d, "
                        "window kind "
                        "%d, sync %d brought back a wrong byte %td",
                        (unsigned long long) seed, (unsigned long long) round, o->doing, o->op,
                        o->there.basic, o->there.count, o->target, w->kind, w->sync, i);
        }
    }
}
/** @} */

/** Memory on the side of the origin, and what is expected back. */
static void dress(verify_rng_t *rng, operation_t *o)
{
    uint8_t element[32];

    o->here_mem = layout_memory(rng, &o->here);
    o->result_mem = layout_memory(rng, &o->result);
    model_random_element(rng, o->there.basic, element);
    memcpy(o->compare, element,
           sizeof(element) < model_extent(o->there.basic) ? sizeof(element) : model_extent(o->there.basic));
    const model_layout_t *back = DO_GET == o->doing ? &o->here : &o->result;
    const size_t room = (size_t) (back->high - back->low);
    o->expect_mem = malloc(room + 1);
    verify_that(NULL != o->expect_mem, "no memory for what is expected");
    memcpy(o->expect_mem, DO_GET == o->doing ? o->here_mem : o->result_mem, room);
}

static void undress(operation_t *o)
{
    verify_guard_free(o->here_mem, (size_t) (o->here.high - o->here.low), 0, "an origin's memory");
    verify_guard_free(o->result_mem, (size_t) (o->result.high - o->result.low), 0, "memory of a result");
    free(o->expect_mem);
}

/** Have half of the compare_and_swaps find what they compare with. */
static void lure(const window_t *w, operation_t *o, verify_rng_t *rng)
{
    if (DO_COMPARE_AND_SWAP == o->doing && 0 != verify_below(rng, 2)) {
        model_copy(o->there.basic, o->compare,
                   w->model + (size_t) o->target * w->size + o->place - o->there.low + o->there.at[0]);
    }
}

/** The operations of one origin: drawn and played by all ranks, done by the origin. */
static void play_origin(window_t *w, int origin, verify_rng_t *rng, operation_t *list, int *count,
                        uint64_t round)
{
    const size_t slice = w->size / (size_t) (ranks + 1);
    const size_t begin = slice * (((size_t) origin + round) % (size_t) (ranks + 1));
    size_t *next = calloc((size_t) ranks, sizeof(*next));

    verify_that(NULL != next, "no memory for a plan");
    for (int t = 0; t < ranks; t++) {
        next[t] = begin;
    }
    *count = 0;
    w->basic = (int) verify_below(rng, MODEL_BASICS);
    for (uint64_t i = 0; i < per_round; i++) {
        operation_t *o = &list[*count];
        const int target = (int) verify_below(rng, (uint64_t) ranks);
        const bool fits = draw(rng, w, o, &next[target], begin + slice);

        o->target = target;
        dress(rng, o);
        if (fits) {
            lure(w, o, rng);
            play(w, o);
        }
        if (fits && origin == rank) {
            ++*count;
        } else {
            undress(o);
            free_operation(o);
        }
    }
    free(next);
}

/**
 * Elements for all: at the same place of each target, by one operation and datatype a round.
 * @return this rank's operands, to be freed when the epoch is over.
 */
static uint8_t *play_common(window_t *w, verify_rng_t *rng, uint64_t round)
{
    static const int order_free[] = {MODEL_SUM, MODEL_MAX, MODEL_MIN, MODEL_BAND, MODEL_BOR, MODEL_BXOR};
    const bool locks = SYNC_SHARED == w->sync || SYNC_EXCLUSIVE == w->sync;
    const size_t slice = w->size / (size_t) (ranks + 1);
    const size_t begin = slice * (((size_t) ranks + round) % (size_t) (ranks + 1));
    int op, basic;

    do {
        op = order_free[verify_below(rng, sizeof(order_free) / sizeof(order_free[0]))];
        basic = (int) verify_below(rng, MODEL_BASICS);
    } while (!model_defined(op, basic));
    const size_t extent = model_extent(basic);
    const size_t count = slice / extent < COMMON ? slice / extent : COMMON;
    uint8_t *kept = calloc((size_t) ranks, COMMON * extent);
    uint8_t *other = calloc((size_t) ranks, COMMON * extent);
    verify_that(NULL != kept && NULL != other, "no memory for operands");
    for (int origin = 0; origin < ranks; origin++) {
        for (int target = 0; target < ranks; target++) {
            uint8_t *operand = (origin == rank ? kept : other) + (size_t) target * COMMON * extent;
            uint8_t *at = w->model + (size_t) target * w->size + begin;

            for (size_t i = 0; i < count; i++) {
                model_random_element(rng, basic, operand + i * extent);
                model_change(op, basic, at + i * extent, operand + i * extent);
            }
        }
    }
    for (int target = 0; target < ranks; target++) {
        if (locks) {
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win);
        }
        MPI_Accumulate(kept + (size_t) target * COMMON * extent, (int) count, model_type(basic), target,
                       disp_of(w, target, begin), (int) count, model_type(basic), model_op(op), w->win);
        if (locks) {
            MPI_Win_unlock(target, w->win);
        }
        operations++;
    }
    free(other);
    return kept;
}

static void clear(window_t *w)
{
    memset(w->model, 0, (size_t) ranks * w->size);
    memset(w->mine, 0, w->size);
}

static void look(window_t *w, uint64_t round)
{
    const uint8_t *model = w->model + (size_t) rank * w->size;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w->win);
    MPI_Win_sync(w->win);
    MPI_Win_unlock(rank, w->win);
    for (size_t i = 0; i < w->size; i++) {
        if (model[i] != w->mine[i]) {
            verify_fail("seed %llu, round %llu: byte %zu of %zu of a window of kind %d is 0x%02x, not 0x%02x "
                        "(sync %d%s)",
                        (unsigned long long) seed, (unsigned long long) round, i, w->size, w->kind,
                        w->mine[i], model[i], w->sync,
                        w->ordered   ? ", ordered"
                        : w->overlap ? ", overlapping"
                                     : "");
        }
    }
}

static void run_round(window_t *w, verify_rng_t *rng, uint64_t round)
{
    operation_t *list = calloc(per_round, sizeof(*list));
    operation_t *spare = calloc(per_round, sizeof(*spare));
    int count = 0;

    verify_that(NULL != list && NULL != spare, "no memory for a round");
    w->sync = (int) verify_below(rng, SYNCS);
    w->ordered = 0 == verify_below(rng, 3);
    w->flushes = SYNC_ALL == w->sync && !w->ordered && 0 == verify_below(rng, 2);
    w->overlap = w->ordered || w->flushes || SYNC_SHARED == w->sync || SYNC_EXCLUSIVE == w->sync;
    w->requests = SYNC_FENCE != w->sync && SYNC_PSCW != w->sync && !w->flushes && 0 == verify_below(rng, 2);
    clear(w);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int origin = 0; origin < ranks; origin++) {
        int others = 0;

        play_origin(w, origin, rng, origin == rank ? list : spare, origin == rank ? &count : &others, round);
    }
    epoch_begin(w);
    for (int i = 0; i < count; i++) {
        do_it(w, &list[i]);
    }
    uint8_t *kept = play_common(w, rng, round);
    for (int i = 0; i < count; i++) {
        if (MPI_REQUEST_NULL != list[i].request) {
            MPI_Wait(&list[i].request, MPI_STATUS_IGNORE);
        }
    }
    epoch_end(w);
    free(kept);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        compare_back(w, &list[i], round);
        undress(&list[i]);
        free_operation(&list[i]);
        operations++;
    }
    look(w, round);
    MPI_Barrier(MPI_COMM_WORLD);
    free(list);
    free(spare);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'s', "SEED", &seed, 0},   {'n', "ROUNDS", &rounds, 1}, {'o', "OPERATIONS", &per_round, 1},
        {'k', "KINDS", &kinds, 1}, {'m', "BYTES", &bytes, 64},  {0}};
    unsigned long long total = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    for (int kind = 0; kind < KINDS; kind++) {
        verify_rng_t rng = {.state = verify_key(seed, (uint64_t) kind, 0, 0)};
        window_t w;

        if (0 == (kinds >> kind & 1)) {
            continue;
        }
        for (uint64_t done = 0; done < rounds; done++) {
            if (0 == done % 4) {
                open_window(&w, kind, &rng);
            }
            run_round(&w, &rng, done);
            if (3 == done % 4 || done + 1 == rounds) {
                close_window(&w);
            }
        }
    }
    MPI_Reduce(&operations, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("osc_torture: %d ranks, seed %llu, %llu operations verified\n", ranks,
               (unsigned long long) seed, total);
    }
    MPI_Finalize();
    return 0;
}
