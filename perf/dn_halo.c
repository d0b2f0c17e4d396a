/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_bench_mpi.h"
#include "dn_bench_window.h"

/* Exchanges under -c that are looked at after the timed ones. */
#define VERIFIED 5

/* Cells along an edge: more make a grid of more than 1 GiB. */
#define EDGE_MAX 512

#define AXES  3
#define FACES 6

static const dn_bench_tier_t tiers[] = {
    {16, 5000, 50},
    {64, 500, 10},
    {SIZE_MAX, 50, 2},
};

static const dn_bench_options_t defaults = {
    .min_size = 8,
    .max_size = 128,
    .tiers = tiers,
    .num_tiers = 3,
    .warmup = -1,
    .batches = 1,
    .window = 1,
    .precision = 2,
    .first_column = "Edge",
    .test = "put",
    .win_kind = "allocate",
    .win_sync = "fence",
};

/*
 * Each rank has a cube of cells and around it a layer of ghosts, which are the outermost cells of its neighbours. Face 2a
 * is the lower one of axis a, face 2a + 1 the upper one; what leaves by one enters the neighbour's ghosts at the
 * opposite one.
 */
static struct {
    MPI_Comm comm;
    int rank;
    int neighbour[FACES];
    int partner[FACES]; /* the same without repetitions */
    int num_partners;
    int edge;
    double *grid;
    MPI_Datatype cells[FACES]; /* of the rank's own at a face */
    MPI_Datatype ghosts[FACES];
    dn_bench_win_t win;
} halo;

static int opposite(int face)
{
    return face ^ 1;
}

static void operate_put(int face)
{
    MPI_Put(halo.grid, 1, halo.cells[face], halo.neighbour[face], halo.win.base[halo.neighbour[face]], 1,
            halo.ghosts[opposite(face)], halo.win.win);
}

static void operate_get(int face)
{
    MPI_Get(halo.grid, 1, halo.ghosts[face], halo.neighbour[face], halo.win.base[halo.neighbour[face]], 1,
            halo.cells[opposite(face)], halo.win.win);
}

static void exchange_one_sided(void (*operate)(int face))
{
    dn_bench_win_begin(&halo.win);
    for (int face = 0; face < FACES; face++) {
        operate(face);
    }
    dn_bench_win_end(&halo.win);
    if (dn_bench_win_passive(&halo.win)) {
        MPI_Barrier(halo.comm);
        dn_bench_win_sync(&halo.win);
    }
}

static void put(void)
{
    exchange_one_sided(operate_put);
}

static void get(void)
{
    exchange_one_sided(operate_get);
}

static void sendrecv(void)
{
    MPI_Request requests[2 * FACES];
    for (int face = 0; face < FACES; face++) {
        MPI_Irecv(halo.grid, 1, halo.ghosts[face], halo.neighbour[face], opposite(face), halo.comm,
                  &requests[face]);
    }
    for (int face = 0; face < FACES; face++) {
        MPI_Isend(halo.grid, 1, halo.cells[face], halo.neighbour[face], face, halo.comm,
                  &requests[FACES + face]);
    }
    MPI_Waitall(2 * FACES, requests, MPI_STATUSES_IGNORE);
}

typedef struct {
    const char *name;
    void (*exchange)(void);
} way_t;

static const way_t ways[] = {{"put", put}, {"get", get}, {"sendrecv", sendrecv}};

static const way_t *find(const char *name)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (0 == strcmp(name, ways[i].name)) {
            return &ways[i];
        }
    }
    return NULL;
}

static const char *obstacle(const dn_bench_run_t *run)
{
    if (NULL == find(run->options.test)) {
        return "--test is put, get or sendrecv";
    }
    if (1 > run->options.min_size || EDGE_MAX < run->options.max_size) {
        return "the grid has 1 to 512 cells along an edge";
    }
    return dn_bench_win_obstacle(&run->options);
}

static void ready(dn_bench_run_t *run)
{
    const int periodic[AXES] = {1, 1, 1};
    int ranks[AXES] = {0, 0, 0};
    MPI_Dims_create(run->ranks, AXES, ranks);
    MPI_Cart_create(MPI_COMM_WORLD, AXES, ranks, periodic, 0, &halo.comm);
    MPI_Comm_rank(halo.comm, &halo.rank);
    for (int axis = 0; axis < AXES; axis++) {
        MPI_Cart_shift(halo.comm, axis, 1, &halo.neighbour[2 * axis], &halo.neighbour[2 * axis + 1]);
    }
    for (int face = 0; face < FACES; face++) {
        int i = 0;
        while (i < halo.num_partners && halo.partner[i] != halo.neighbour[face]) {
            i++;
        }
        if (i == halo.num_partners) {
            halo.partner[halo.num_partners++] = halo.neighbour[face];
        }
    }
}

static void done(dn_bench_run_t *run)
{
    (void) run;
    MPI_Comm_free(&halo.comm);
}

/* The frame's own buffers are not used. */
static void describe(dn_bench_run_t *run)
{
    dn_bench_describe_bytes(run, DN_BENCH_LINE);
}

/* The layer of cells at @p place of an axis, without ghosts of other axes. */
static MPI_Datatype layer(int axis, int place)
{
    const int sizes[AXES] = {halo.edge + 2, halo.edge + 2, halo.edge + 2};
    int lens[AXES] = {halo.edge, halo.edge, halo.edge};
    int starts[AXES] = {1, 1, 1};
    MPI_Datatype type;
    lens[axis] = 1;
    starts[axis] = place;
    MPI_Type_create_subarray(AXES, sizes, lens, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void begin(dn_bench_run_t *run)
{
    halo.edge = (int) run->size;
    const size_t across = run->size + 2;
    for (int axis = 0; axis < AXES; axis++) {
        halo.ghosts[2 * axis] = layer(axis, 0);
        halo.cells[2 * axis] = layer(axis, 1);
        halo.cells[2 * axis + 1] = layer(axis, halo.edge);
        halo.ghosts[2 * axis + 1] = layer(axis, halo.edge + 1);
    }
    dn_bench_win_open(&halo.win, &run->options, halo.comm, across * across * across * sizeof(double),
                      halo.partner, halo.num_partners, halo.partner, halo.num_partners);
    halo.grid = (double *) (void *) halo.win.memory;
}

static void step(dn_bench_run_t *run)
{
    find(run->options.test)->exchange();
}

static double *cell(int x, int y, int z)
{
    const size_t across = (size_t) halo.edge + 2;
    return &halo.grid[((size_t) x * across + (size_t) y) * across + (size_t) z];
}

/* What the cells of a rank hold in round n: all different. */
static double value(int rank, int n, int x, int y, int z)
{
    return (((rank * (double) VERIFIED + n) * EDGE_MAX + x) * EDGE_MAX + y) * EDGE_MAX + z;
}

/* Which ghosts are these? @return the face, FACES: the rank's own cells, FACES + 1: at an edge, where nobody writes. */
static int face_of(const int at[AXES])
{
    int found = FACES;
    for (int axis = 0; axis < AXES; axis++) {
        if (0 == at[axis] || halo.edge + 1 == at[axis]) {
            found = FACES == found ? 2 * axis + (0 != at[axis]) : FACES + 1;
        }
    }
    return found;
}

static double wanted(int n, const int at[AXES])
{
    const int face = face_of(at);
    int from[AXES] = {at[0], at[1], at[2]};
    if (FACES < face) {
        return -1;
    }
    if (FACES > face) {
        from[face / 2] = 0 == face % 2 ? halo.edge : 1;
    }
    return value(FACES == face ? halo.rank : halo.neighbour[face], n, from[0], from[1], from[2]);
}

/* Calls @p visit for every cell and ghost; stops at one that it refuses. */
static bool visit_all(int n, bool (*visit)(int n, const int at[AXES]))
{
    int at[AXES];
    for (at[0] = 0; at[0] < halo.edge + 2; at[0]++) {
        for (at[1] = 0; at[1] < halo.edge + 2; at[1]++) {
            for (at[2] = 0; at[2] < halo.edge + 2; at[2]++) {
                if (!visit(n, at)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool set(int n, const int at[AXES])
{
    *cell(at[0], at[1], at[2]) = FACES == face_of(at) ? value(halo.rank, n, at[0], at[1], at[2]) : -1;
    return true;
}

static bool check(int n, const int at[AXES])
{
    if (wanted(n, at) == *cell(at[0], at[1], at[2])) {
        return true;
    }
    fprintf(stderr, "rank %d: wrong cell %d,%d,%d of a grid of %d\n", halo.rank, at[0], at[1], at[2],
            halo.edge);
    return false;
}

/* Nobody has all of his ghosts before all neighbours are done, also with what a local flush leaves under way. */
static void settle(void)
{
    if (DN_BENCH_FLUSH_LOCAL == halo.win.sync) {
        MPI_Win_flush_all(halo.win.win);
    }
    MPI_Barrier(halo.comm);
}

static int end(dn_bench_run_t *run)
{
    int errors = 0;
    if (run->options.check) {
        settle();
    }
    for (int n = 0; run->options.check && n < VERIFIED; n++) {
        visit_all(n, set);
        dn_bench_win_sync(&halo.win);
        MPI_Barrier(halo.comm);
        step(run);
        settle();
        dn_bench_win_sync(&halo.win);
        errors += !visit_all(n, check);
    }
    for (int face = 0; face < FACES; face++) {
        MPI_Type_free(&halo.cells[face]);
        MPI_Type_free(&halo.ghosts[face]);
    }
    dn_bench_win_close(&halo.win);
    return errors;
}

static void header(const dn_bench_run_t *run)
{
    static const char *const titles[] = {"Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", NULL};
    printf("# [ %s ] [ window: %s ] [ synchronisation: %s ] [ ranks: %d ]\n", run->options.test,
           run->options.win_kind, run->options.win_sync, run->ranks);
    dn_bench_print_header(&run->options, titles);
}

static void report(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    double us[] = {time->mean * 1e6, time->min * 1e6, time->max * 1e6};
    dn_bench_print_row(&run->options, run->size, us, 3, time->failed);
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_halo",
                  "Time of a halo exchange: each rank has a cube of doubles and gets the six faces of its "
                  "neighbours, by put, get or sendrecv (-t).",
                  "tnwsixcPBT", false},
        .title = "dimmnet MPI Halo Exchange Test",
        .defaults = &defaults,
        .every_rank = true,
        .obstacle = obstacle,
        .ready = ready,
        .describe = describe,
        .begin = begin,
        .end = end,
        .done = done,
        .step = step,
        .header = header,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
