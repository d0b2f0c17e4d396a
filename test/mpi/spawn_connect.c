/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file spawn_connect.c
 * Dynamic processes. Jobs that spawn one another, or meet at a port whose name goes through a file,
 * exchange messages over the intercommunicator, merge, exchange again, put and get through a window on private
 * memory, and part.
 *
 *   spawn_connect [-s SEED] [-n ROUNDS] spawn CHILDREN     start children, ROUNDS times
 *   spawn_connect [-s SEED] [-n ROUNDS] accept FILE        open a port, write its name to FILE, accept
 *   spawn_connect [-s SEED] [-n ROUNDS] connect FILE       read the name from FILE, connect
 *   spawn_connect [-s SEED] [-n ROUNDS] meet FILE          spawn one job that accepts and one that connects
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Longest wait for the other job's port name. */
#define WAIT_SECONDS 90

static const size_t sizes[] = {0, 1, 40, 64, 4000, 5000, 40000, 70000, 1 << 20, 5 << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static int rank;
static uint64_t seed = 1;
static int rounds = 2;
static const char *program;
static unsigned long long messages;

/** Every rank here with every rank there; @p here is the number of this side, 0 or 1. */
static void talk(MPI_Comm inter, int here, const char *who)
{
    int there_count;

    MPI_Comm_remote_size(inter, &there_count);
    for (size_t s = 0; s < SIZES; s++) {
        for (int there = 0; there < there_count; there++) {
            unsigned char *out = verify_guard_alloc(sizes[s], 0);
            unsigned char *in = verify_guard_alloc(sizes[s], 0);
            uint64_t mine = verify_key(seed, (uint64_t) here, (uint64_t) rank * 1000 + (uint64_t) there, s);
            uint64_t theirs =
                verify_key(seed, (uint64_t) !here, (uint64_t) there * 1000 + (uint64_t) rank, s);
            MPI_Request requests[2];
            verify_fill(out, sizes[s], mine);
            MPI_Irecv(in, (int) sizes[s], MPI_BYTE, there, (int) s, inter, &requests[0]);
            MPI_Isend(out, (int) sizes[s], MPI_BYTE, there, (int) s, inter, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            verify_expect(in, sizes[s], theirs, who);
            verify_guard_free(out, sizes[s], 0, who);
            verify_guard_free(in, sizes[s], 0, who);
            messages++;
        }
    }
}

/** Bytes that a process puts to, or gets from, another one. */
#define PIECE 40000

/** A window on private memory: everyone puts a piece to everyone in an epoch of a fence, and gets one in an epoch of locks. */
static void expose(MPI_Comm all, int me, int count)
{
    const size_t size = ((size_t) count + 1) * PIECE;
    unsigned char *memory = verify_guard_alloc(size, 0);
    unsigned char *out = verify_guard_alloc((size_t) count * PIECE, 0);
    unsigned char *in = verify_guard_alloc(PIECE, 0);
    MPI_Win window;

    memset(memory, 0, size);
    verify_fill(memory + (size_t) count * PIECE, PIECE, verify_key(seed, (uint64_t) me, 9, 9));
    MPI_Win_create(memory, (MPI_Aint) size, 1, MPI_INFO_NULL, all, &window);
    MPI_Win_fence(0, window);
    for (int target = 0; target < count; target++) {
        unsigned char *piece = out + (size_t) target * PIECE;
        verify_fill(piece, PIECE, verify_key(seed, (uint64_t) me, (uint64_t) target, 10));
        MPI_Put(piece, PIECE, MPI_BYTE, target, (MPI_Aint) me * PIECE, PIECE, MPI_BYTE, window);
    }
    MPI_Win_fence(0, window);
    for (int origin = 0; origin < count; origin++) {
        verify_expect(memory + (size_t) origin * PIECE, PIECE,
                      verify_key(seed, (uint64_t) origin, (uint64_t) me, 10),
                      "put among parents and children");
    }
    for (int target = 0; target < count; target++) {
        memset(in, 0, PIECE);
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window);
        MPI_Get(in, PIECE, MPI_BYTE, target, (MPI_Aint) count * PIECE, PIECE, MPI_BYTE, window);
        MPI_Win_unlock(target, window);
        verify_expect(in, PIECE, verify_key(seed, (uint64_t) target, 9, 9), "get among parents and children");
    }
    MPI_Win_free(&window);
    verify_guard_free(in, PIECE, 0, "get among parents and children");
    verify_guard_free(out, (size_t) count * PIECE, 0, "put among parents and children");
    verify_guard_free(memory, size, 0, "window among parents and children");
}

/** Merge both sides, let everyone speak to everyone by a collective, by a ring and by a window. */
static void merge(MPI_Comm inter, int here, const char *who)
{
    MPI_Comm all;
    int there_count;
    int here_count;
    int me;
    int count;
    int64_t sum = 0;

    MPI_Comm_remote_size(inter, &there_count);
    MPI_Comm_size(inter, &here_count);
    MPI_Intercomm_merge(inter, here, &all);
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &count);
    verify_that(here_count + there_count == count, "the merged communicator has another size");
    int64_t value = me + 1;
    MPI_Allreduce(&value, &sum, 1, MPI_INT64_T, MPI_SUM, all);
    verify_that((int64_t) count * (count + 1) / 2 == sum, "allreduce over merged jobs: wrong sum");

    size_t size = 100000;
    unsigned char *out = verify_guard_alloc(size, 0);
    unsigned char *in = verify_guard_alloc(size, 0);
    int left = (me + count - 1) % count;
    verify_fill(out, size, verify_key(seed, (uint64_t) me, 8, 8));
    MPI_Sendrecv(out, (int) size, MPI_BYTE, (me + 1) % count, 9, in, (int) size, MPI_BYTE, left, 9, all,
                 MPI_STATUS_IGNORE);
    verify_expect(in, size, verify_key(seed, (uint64_t) left, 8, 8), who);
    verify_guard_free(out, size, 0, who);
    verify_guard_free(in, size, 0, who);
    messages++;
    expose(all, me, count);
    MPI_Comm_free(&all); /* MPI_Comm_disconnect of a merged communicator hangs in Open MPI 4.1 */
}

/** Start the program again with a role of its own; the intercommunicator is the caller's. */
static MPI_Comm start(const char *role, const char *argument, int count)
{
    char seed_text[32];
    char rounds_text[32];
    char *arguments[] = {
        "-s", seed_text, "-n", rounds_text, (char *) (uintptr_t) role, (char *) (uintptr_t) argument, NULL};
    MPI_Comm inter;

    snprintf(seed_text, sizeof(seed_text), "%llu", (unsigned long long) seed);
    snprintf(rounds_text, sizeof(rounds_text), "%d", rounds);
    MPI_Comm_spawn(program, arguments, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    return inter;
}

static void run_spawn(const char *argument)
{
    int children = (int) verify_number(argument, 1, "spawn");

    for (int round = 0; round < rounds; round++) {
        MPI_Comm inter = start("child", "-", children);
        talk(inter, 0, "message from a child");
        merge(inter, 0, "message among parents and children");
        MPI_Comm_disconnect(&inter);
    }
}

static void run_child(void)
{
    MPI_Comm parent;

    MPI_Comm_get_parent(&parent);
    verify_that(MPI_COMM_NULL != parent, "the role child is for spawned processes only");
    talk(parent, 1, "message from a parent");
    merge(parent, 1, "message among parents and children");
    MPI_Comm_disconnect(&parent);
}

/** Leave the parent, if there is one: what follows concerns the other job only. */
static void leave_parent(void)
{
    MPI_Comm parent;

    MPI_Comm_get_parent(&parent);
    if (MPI_COMM_NULL != parent) {
        MPI_Comm_disconnect(&parent);
    }
}

static void write_port(const char *path, const char *port)
{
    char ready[4096];

    snprintf(ready, sizeof(ready), "%s.new", path);
    FILE *file = fopen(ready, "w");
    if (NULL == file || fprintf(file, "%s\n", port) < 0 || 0 != fclose(file) || 0 != rename(ready, path)) {
        verify_fail("cannot write the port name to %s", path);
    }
}

static void read_port(const char *path, char *port)
{
    double start_time = verify_seconds();
    FILE *file;

    while (NULL == (file = fopen(path, "r"))) {
        if (verify_seconds() - start_time > WAIT_SECONDS) {
            verify_fail("no port name came in %s within %d seconds", path, WAIT_SECONDS);
        }
        verify_sleep_ms(20);
    }
    if (NULL == fgets(port, MPI_MAX_PORT_NAME, file)) {
        verify_fail("%s holds no port name", path);
    }
    port[strcspn(port, "\n")] = '\0';
    fclose(file);
}

/** One side of a meeting, @p here 0 accepts and 1 connects. */
static void meet(const char *path, int here)
{
    char port[MPI_MAX_PORT_NAME] = "";

    leave_parent();
    if (0 == rank && 0 == here) {
        MPI_Open_port(MPI_INFO_NULL, port);
        write_port(path, port);
    } else if (0 == rank) {
        read_port(path, port);
    }
    for (int round = 0; round < rounds; round++) {
        MPI_Comm inter;
        if (0 == here) {
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        } else {
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        }
        talk(inter, here, "message from the job met at a port");
        merge(inter, here, "message among jobs that met at a port");
        MPI_Comm_disconnect(&inter);
    }
    if (0 == rank && 0 == here) {
        MPI_Close_port(port);
    }
}

static void run_meet(const char *path)
{
    MPI_Comm one = start("accept", path, 2);
    MPI_Comm other = start("connect", path, 2);

    MPI_Comm_disconnect(&one);
    MPI_Comm_disconnect(&other);
}

/** MPI_Init, with a file in the folder DN_TEST_IN_INIT for as long as it takes. */
static void init(int *argc, char ***argv)
{
    const char *folder = getenv("DN_TEST_IN_INIT");
    char path[4096];
    FILE *mark = NULL;

    if (NULL != folder) {
        snprintf(path, sizeof(path), "%s/%d", folder, (int) getpid());
        mark = fopen(path, "w");
    }
    MPI_Init(argc, argv);
    if (NULL != mark) {
        fclose(mark);
        unlink(path);
    }
}

static void bad_usage(void)
{
    fprintf(stderr,
            "usage: spawn_connect [-s SEED] [-n ROUNDS] spawn CHILDREN | accept FILE | connect FILE | "
            "meet FILE\n");
    exit(2);
}

int main(int argc, char **argv)
{
    int option;

    init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    program = argv[0];
    while (-1 != (option = getopt(argc, argv, "s:n:"))) {
        if ('s' == option) {
            seed = verify_number(optarg, 0, "-s");
        } else if ('n' == option) {
            rounds = (int) verify_number(optarg, 1, "-n");
        } else {
            bad_usage();
        }
    }
    if (optind + 2 != argc) {
        bad_usage();
    }
    const char *role = argv[optind];
    const char *argument = argv[optind + 1];
    if (0 == strcmp(role, "spawn")) {
        run_spawn(argument);
    } else if (0 == strcmp(role, "child")) {
        run_child();
    } else if (0 == strcmp(role, "accept")) {
        meet(argument, 0);
    } else if (0 == strcmp(role, "connect")) {
        meet(argument, 1);
    } else if (0 == strcmp(role, "meet")) {
        run_meet(argument);
    } else {
        bad_usage();
    }
    if (0 == rank) {
        printf("spawn_connect %s: rank 0 verified %llu messages\n", role, messages);
    }
    MPI_Finalize();
    return 0;
}
