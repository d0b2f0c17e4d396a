/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_flavours.c
 * Windows of all flavours take all calls: values, nothing, nobody, oneself, in every kind of epoch and with every displacement
 * unit; pairs; wrong arguments and error handlers; hints and attributes.
 *
 *   osc_flavours
 */
#include "dn_config.h"

#include "osc_flavours.h"
#include "verify.h"
#include "window_info.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct flavour flavours[FLAVOURS] = {
    [ALLOCATE] = {"MPI_Win_allocate", MPI_WIN_FLAVOR_ALLOCATE, false},
    [SHARED] = {"MPI_Win_allocate_shared", MPI_WIN_FLAVOR_SHARED, false},
    [APART] = {"MPI_Win_allocate_shared, not contiguous", MPI_WIN_FLAVOR_SHARED, false},
    [CREATE] = {"MPI_Win_create", MPI_WIN_FLAVOR_CREATE, false},
    [CREATE_MAPPED] = {"MPI_Win_create on memory of MPI_Alloc_mem", MPI_WIN_FLAVOR_CREATE, true},
    [DYNAMIC] = {"MPI_Win_create_dynamic", MPI_WIN_FLAVOR_DYNAMIC, false},
    [DYNAMIC_MAPPED] = {"MPI_Win_create_dynamic on memory of MPI_Alloc_mem", MPI_WIN_FLAVOR_DYNAMIC, true},
};

int rank, ranks;
const struct flavour *kind;
MPI_Win win;
uint8_t *memory;
MPI_Aint *start;
int *unit;
const char *call_name = "";

void expect(int class, int rc, const char *what)
{
    int got = MPI_SUCCESS;

    if (MPI_SUCCESS != rc) {
        MPI_Error_class(rc, &got);
    }
    if (class != got) {
        char text[MPI_MAX_ERROR_STRING];
        int len;

        MPI_Error_string(rc, text, &len);
        verify_fail("%s, %s: %s gave \"%s\"", kind->name, call_name, what, text);
    }
}

void good(int rc, const char *what)
{
    expect(MPI_SUCCESS, rc, what);
}

/** @name Windows */
/** @{ */
static void window_open(enum where where, MPI_Info info)
{
    const int mine = 1 << (rank + (int) where) % 4;
    MPI_Aint at = 0;
    MPI_Info own;

    kind = &flavours[where];
    if (MPI_INFO_NULL == info) {
        MPI_Info_create(&own);
    } else {
        MPI_Info_dup(info, &own);
    }
    if (APART == where) {
        MPI_Info_set(own, "alloc_shared_noncontig", "true");
    }
    if (MPI_WIN_FLAVOR_ALLOCATE == kind->flavour) {
        MPI_Win_allocate(BYTES, mine, own, MPI_COMM_WORLD, &memory, &win);
    } else if (MPI_WIN_FLAVOR_SHARED == kind->flavour) {
        MPI_Win_allocate_shared(BYTES, mine, own, MPI_COMM_WORLD, &memory, &win);
    } else if (kind->mapped) {
        MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory);
    } else {
        memory = verify_guard_alloc(BYTES, 0);
    }
    if (MPI_WIN_FLAVOR_CREATE == kind->flavour) {
        MPI_Win_create(memory, BYTES, mine, own, MPI_COMM_WORLD, &win);
    } else if (MPI_WIN_FLAVOR_DYNAMIC == kind->flavour) {
        MPI_Win_create_dynamic(own, MPI_COMM_WORLD, &win);
        MPI_Win_attach(win, memory, BYTES);
        MPI_Get_address(memory, &at);
    }
    MPI_Info_free(&own);
    MPI_Allgather(&at, 1, MPI_AINT, start, 1, MPI_AINT, MPI_COMM_WORLD);
    const int used = MPI_WIN_FLAVOR_DYNAMIC == kind->flavour ? 1 : mine;
    MPI_Allgather(&used, 1, MPI_INT, unit, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    memset(memory, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void window_close(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (MPI_WIN_FLAVOR_DYNAMIC == kind->flavour) {
        good(MPI_Win_detach(win, memory), "MPI_Win_detach");
    }
    MPI_Win_free(&win);
    verify_that(MPI_WIN_NULL == win, "a window that is freed is not MPI_WIN_NULL");
    if (kind->mapped) {
        MPI_Free_mem(memory);
    } else if (MPI_WIN_FLAVOR_CREATE == kind->flavour || MPI_WIN_FLAVOR_DYNAMIC == kind->flavour) {
        verify_guard_free(memory, BYTES, 0, "memory of a window");
    }
}

MPI_Aint disp_of(int target, MPI_Aint at)
{
    return 0 > target ? at : start[target] + at / unit[target];
}
/** @} */

/** @name Epochs */
/** @{ */
void epoch_open(enum epoch epoch, int target)
{
    MPI_Group all;

    switch (epoch) {
    case FENCES:
        good(MPI_Win_fence(0, win), "MPI_Win_fence");
        break;
    case LOCK:
    case LOCK_ALONE:
        good(MPI_Win_lock(LOCK == epoch ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win),
             "MPI_Win_lock");
        break;
    case LOCK_ALL:
    case LOCK_ALL_UNCHECKED:
        good(MPI_Win_lock_all(LOCK_ALL == epoch ? 0 : MPI_MODE_NOCHECK, win), "MPI_Win_lock_all");
        break;
    default:
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        good(MPI_Win_post(all, 0, win), "MPI_Win_post");
        good(MPI_Win_start(all, 0, win), "MPI_Win_start");
        MPI_Group_free(&all);
        break;
    }
}

void epoch_close(enum epoch epoch, int target)
{
    switch (epoch) {
    case FENCES:
        good(MPI_Win_fence(MPI_MODE_NOSUCCEED, win), "MPI_Win_fence");
        break;
    case LOCK:
    case LOCK_ALONE:
        good(MPI_Win_unlock(target, win), "MPI_Win_unlock");
        break;
    case LOCK_ALL:
    case LOCK_ALL_UNCHECKED:
        good(MPI_Win_flush_local(target, win), "MPI_Win_flush_local");
        good(MPI_Win_flush_local_all(win), "MPI_Win_flush_local_all");
        good(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
        break;
    default:
        good(MPI_Win_complete(win), "MPI_Win_complete");
        good(MPI_Win_wait(win), "MPI_Win_wait");
        break;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}
/** @} */

/** @name Errors */
/** @{ */
static int handled;
static int handled_code;

static void on_error(MPI_Win *of, int *code, ...)
{
    verify_that(*of == win, "an error handler was given another window");
    handled++;
    handled_code = *code;
}

/** Arguments that no window takes. */
static void wrong_arguments(void)
{
    int64_t word = 0;
    MPI_Datatype raw;
    MPI_Request request;

    call_name = "wrong arguments";
    MPI_Type_contiguous(2, MPI_INT, &raw);
    epoch_open(LOCK_ALL, rank);
    const MPI_Aint disp = disp_of(rank, PLACE);
    expect(MPI_ERR_RANK, MPI_Put(&word, 1, MPI_INT64_T, ranks, disp, 1, MPI_INT64_T, win), "a rank too high");
    expect(MPI_ERR_RANK, MPI_Get(&word, 1, MPI_INT64_T, -77, disp, 1, MPI_INT64_T, win), "a negative rank");
    expect(MPI_ERR_RANK, MPI_Fetch_and_op(&word, &word, MPI_INT64_T, ranks, disp, MPI_SUM, win),
           "a rank too high");
    expect(MPI_ERR_RANK, MPI_Win_flush(ranks, win), "a flush of a rank too high");
    expect(MPI_ERR_COUNT, MPI_Put(&word, -1, MPI_INT64_T, rank, disp, 1, MPI_INT64_T, win),
           "a negative count");
    expect(MPI_ERR_COUNT, MPI_Rget(&word, 1, MPI_INT64_T, rank, disp, -1, MPI_INT64_T, win, &request),
           "a negative count at the target");
    expect(MPI_ERR_TYPE, MPI_Put(&word, 1, MPI_DATATYPE_NULL, rank, disp, 1, MPI_INT64_T, win),
           "no datatype");
    expect(MPI_ERR_TYPE, MPI_Put(&word, 1, raw, rank, disp, 1, MPI_INT64_T, win), "a datatype not committed");
    expect(MPI_ERR_TYPE, MPI_Compare_and_swap(&word, &word, &word, MPI_DOUBLE, rank, disp, win),
           "compare_and_swap of a floating-point number");
    expect(MPI_ERR_OP, MPI_Accumulate(&word, 1, MPI_INT64_T, rank, disp, 1, MPI_INT64_T, MPI_OP_NULL, win),
           "no operation");
    expect(MPI_ERR_OP, MPI_Accumulate(&word, 1, MPI_DOUBLE, rank, disp, 1, MPI_DOUBLE, MPI_BAND, win),
           "an operation that the datatype does not have");
    epoch_close(LOCK_ALL, rank);
    expect(MPI_ERR_LOCKTYPE, MPI_Win_lock(12345, rank, 0, win), "a lock of no type");
    expect(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, rank, 1 << 20, win), "an unknown assertion");
    expect(MPI_ERR_ASSERT, MPI_Win_fence(1 << 20, win), "an unknown assertion of a fence");
    expect(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, ranks, 0, win), "a lock of a rank too high");
    MPI_Type_free(&raw);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** Errors go to the handler of the window, once each, and nowhere else. */
static void error_handlers(void)
{
    MPI_Errhandler handler, got;
    int64_t word = 0;

    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Win_get_errhandler(win, &got);
    verify_that(got == handler, "a window has another error handler than it was given");
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&handler);
    handled = 0;
    const int rc = MPI_Put(&word, 1, MPI_INT64_T, rank, disp_of(rank, PLACE), 1, MPI_INT64_T, win);
    int class = MPI_SUCCESS;
    MPI_Error_class(handled_code, &class);
    verify_that(1 == handled && MPI_ERR_RMA_SYNC == class, "an error did not go to the handler once");
    MPI_Error_class(rc, &class);
    verify_that(MPI_ERR_RMA_SYNC == class, "a call did not return the error that it gave to the handler");
    MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    verify_that(2 == handled && MPI_ERR_OTHER == handled_code, "MPI_Win_call_errhandler did not call it");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
}
/** @} */

/** @name What windows tell */
/** @{ */
static int deleted;

static int on_delete(MPI_Win of, int key, void *value, void *extra)
{
    deleted++;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    const bool dynamic = MPI_WIN_FLAVOR_DYNAMIC == kind->flavour;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Group group, world;
    void *value;
    int flag, key, len, same;

    MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag);
    verify_that(flag && value == (dynamic ? MPI_BOTTOM : memory), "MPI_WIN_BASE is wrong");
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag);
    verify_that(flag && (dynamic ? 0 : BYTES) == *(MPI_Aint *) value, "MPI_WIN_SIZE is wrong");
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag);
    verify_that(flag && unit[rank] == *(int *) value, "MPI_WIN_DISP_UNIT is wrong");
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    verify_that(flag && kind->flavour == *(int *) value, "MPI_WIN_CREATE_FLAVOR is wrong");
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag);
    verify_that(flag && MPI_WIN_UNIFIED == *(int *) value, "MPI_WIN_MODEL is wrong");
    MPI_Win_get_group(win, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &same);
    verify_that(MPI_IDENT == same, "MPI_Win_get_group tells other processes");
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Win_set_name(win, "a window");
    MPI_Win_get_name(win, name, &len);
    verify_that(0 == strcmp("a window", name), "a window has another name than it was given");
    /* Deleted with the window. */
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, NULL);
    MPI_Win_set_attr(win, key, &deleted);
    MPI_Win_free_keyval(&key);
}

/** Hints at the creation: what is told holds, and calls go on to work. */
static void hints(enum where where)
{
    static const char *const keys[][2] = {
        {"accumulate_ordering", "none"}, {"accumulate_ordering", "rar,waw"},  {"same_size", "true"},
        {"accumulate_ops", "same_op"},   {"accumulate_ops", "same_op_no_op"}, {"no_such_hint", "true"},
        {"same_disp_unit", "false"},     {"alloc_shared_noncontig", "false"},
    };
    int64_t one = 1;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        MPI_Info info;

        MPI_Info_create(&info);
        MPI_Info_set(info, keys[i][0], keys[i][1]);
        window_open(where, info);
        MPI_Win_set_info(win, info);
        MPI_Info_free(&info);
        call_name = keys[i][0];
        verify_that(0 == strcmp("true", window_info(win, "same_size")), "same_size is true, but not told");
        verify_that(0 != strcmp("", window_info(win, "accumulate_ordering")),
                    "accumulate_ordering is not told");
        verify_that(0 == strcmp("false", window_info(win, "no_locks")), "no_locks is false, but not told");
        epoch_open(FENCES, rank);
        good(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, disp_of(0, PLACE), 1, MPI_INT64_T, MPI_SUM, win),
             "a sum");
        epoch_close(FENCES, rank);
        verify_that(0 != rank || ranks == *(int64_t *) (void *) (memory + PLACE), "a sum is not complete");
        window_close();
    }
}

/** No locks, by the user's word. */
static void no_locks(enum where where)
{
    MPI_Info info;
    int64_t one = 1;

    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    window_open(where, info);
    MPI_Info_free(&info);
    call_name = "no_locks";
    verify_that(0 == strcmp("true", window_info(win, "no_locks")), "no_locks is true, but not told");
    epoch_open(FENCES, rank);
    good(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, disp_of(0, PLACE), 1, MPI_INT64_T, MPI_SUM, win), "a sum");
    epoch_close(FENCES, rank);
    epoch_open(STARTS, rank);
    good(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, disp_of(0, PLACE), 1, MPI_INT64_T, MPI_SUM, win), "a sum");
    epoch_close(STARTS, rank);
    verify_that(0 != rank || 2 * ranks == *(int64_t *) (void *) (memory + PLACE), "a sum is not complete");
    window_close();
}
/** @} */

/** Windows without memory, of some ranks or all; regions of nothing. */
static void empty_windows(void)
{
    const MPI_Aint sizes[] = {0, 0 == rank ? 0 : 8, 0 == rank ? 8 : 0};
    void *base;
    MPI_Win of;

    kind = &flavours[CREATE];
    for (int i = 0; i < 3; i++) {
        for (int how = 0; how < 4; how++) {
            int64_t word = 0;
            int64_t own = 7;
            MPI_Aint size;
            int u;

            if (0 == how) {
                MPI_Win_create(0 == sizes[i] ? NULL : &own, sizes[i], 8, MPI_INFO_NULL, MPI_COMM_WORLD, &of);
            } else if (1 == how) {
                MPI_Win_allocate(sizes[i], 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &of);
            } else if (2 == how) {
                MPI_Win_allocate_shared(sizes[i], 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &of);
            } else {
                MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &of);
            }
            MPI_Win_set_errhandler(of, MPI_ERRORS_RETURN);
            MPI_Win_lock_all(0, of);
            for (int t = 0; t < ranks; t++) {
                const bool some = 1 == i ? 0 != t : 2 == i && 0 == t;

                good(MPI_Put(&word, 0, MPI_INT64_T, t, 0, 0, MPI_INT64_T, of), "a put of nothing");
                good(MPI_Get(&word, 0, MPI_INT64_T, t, 0, 0, MPI_INT64_T, of), "a get of nothing");
                good(MPI_Accumulate(&word, 0, MPI_INT64_T, t, 0, 0, MPI_INT64_T, MPI_SUM, of),
                     "a sum of nothing");
                expect(some && 3 != how ? MPI_SUCCESS : MPI_ERR_RMA_RANGE,
                       MPI_Fetch_and_op(&word, &own, MPI_INT64_T, t, 0, MPI_NO_OP, of),
                       "a fetch of what may not be");
                MPI_Win_flush(t, of);
                if (2 == how) {
                    MPI_Win_shared_query(of, t, &size, &u, &base);
                    verify_that((some ? 8 : 0) == size && some == (NULL != base),
                                "MPI_Win_shared_query tells an address of no memory");
                }
            }
            MPI_Win_unlock_all(of);
            MPI_Win_free(&of);
        }
    }
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{0}};
    int number = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    start = calloc((size_t) ranks, sizeof(*start));
    unit = calloc((size_t) ranks, sizeof(*unit));
    verify_that(NULL != start && NULL != unit, "no memory for addresses");
    for (int where = 0; where < FLAVOURS; where++) {
        window_open((enum where) where, MPI_INFO_NULL);
        attributes();
        number = values();
        nothing();
        pairs();
        wrong_arguments();
        error_handlers();
        deleted = 0;
        window_close();
        verify_that(1 == deleted, "an attribute was not deleted with its window");
        hints((enum where) where);
        no_locks((enum where) where);
    }
    empty_windows();
    if (0 == rank) {
        printf("osc_flavours: %d ranks, %d flavours, %d calls\n", ranks, FLAVOURS, number);
    }
    free(start);
    free(unit);
    MPI_Finalize();
    return 0;
}
