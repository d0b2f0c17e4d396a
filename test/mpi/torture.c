/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file torture.c
 * All of two-sided MPI at once, in a random mix that cannot deadlock, checked against a model that every rank
 * computes from the seed: sends of four modes (blocking, nonblocking, persistent), receives by every way to
 * receive and to probe, wildcards, cancelled receives, MPI_PROC_NULL, messages to oneself, truncation,
 * derived datatypes on either side, bursts, intercommunicators, and communicators that come and go.
 * torture.h tells how a plan is made, torture_plan.c makes it.
 *
 *   torture [-s SEED] [-n ROUNDS] [-t THREADS] [-x MAXBYTES] [-a] [-w SECONDS]
 *
 *   -s   what the mix follows from; default: a new one, which is printed
 *   -n   rounds, of 10 to 60 items each, some of which are dozens of messages; default 100
 *   -t   threads of each rank, 1 to 16; with 2 or more they need MPI_THREAD_MULTIPLE. Each has its own
 *        communicators, and all share one more, told apart by their tags. Default 1
 *   -x   the longest message, bytes; default 1100000
 *   -a   ask all: truncate messages of any size and to oneself, too, not only up to 1000 bytes and to others.
 *        pml/ob1 of Open MPI 4.1 cannot: it writes the whole of a message that it fetches into a buffer too
 *        short for it, and calls a truncated short one to oneself a success
 *   -w   when nothing happens for so many seconds, tell the round and the call that every thread is in, and
 *        end with 1; default 0: never
 *
 * For 1 to 8 ranks. Of what arrives are checked: the data, the bytes around it and between its blocks, source,
 * tag and count of the status, the order of messages, and that synchronous sends wait. The data of a
 * truncated message must be the beginning of what was sent. Ends with 0 and one line that counts what was
 * verified, or with 1 and one line that tells the seed and what differs.
 *
 * What Open MPI 4.1 itself does wrong is not asked for: a persistent receive is not truncated, one that will
 * be is waited for alone and not by MPI_Waitall, and a persistent buffered send is started once.
 */
#include "dn_config.h"

#include "torture.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_THREADS 16

/* Every so many rounds the threads of a rank meet, buffered messages are waited for, and communicators change. */
#define MEETING 8

static struct {
    uint64_t seed;
    uint64_t rounds;
    int threads;
    size_t largest;
    bool ask_all;
    unsigned patience; /* seconds */
    torture_t tortures[MOST_THREADS];
    pthread_barrier_t meeting;
    void *buffer;
    int buffer_size;
    MPI_Comm shared;
    bool over;
} job = {.rounds = 100, .threads = 1, .largest = 1100000};

void torture_fail(const torture_t *t, const char *format, ...)
{
    char text[700];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    /* What is needed to repeat comes first: verify_fail() cuts long lines. */
    verify_fail("-s %llu -n %llu -t %d -x %zu%s on %d ranks, round %llu, thread %d: %s",
                (unsigned long long) t->seed, (unsigned long long) t->rounds, t->threads, t->largest,
                t->ask_all ? " -a" : "", t->ranks, (unsigned long long) t->round, t->thread, text);
}

void torture_must(const torture_t *t, int result, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    if (MPI_SUCCESS != result) {
        MPI_Error_string(result, text, &length);
        torture_fail(t, "%s failed: %s", call, text);
    }
}

static void attach(void)
{
    MPI_Buffer_attach(job.buffer, job.buffer_size);
}

/* Returns when all buffered messages have left the buffer. */
static void detach(void)
{
    void *buffer;
    int size;

    MPI_Buffer_detach(&buffer, &size);
    verify_that(buffer == job.buffer && size == job.buffer_size,
                "MPI_Buffer_detach gave another buffer than was attached");
}

static void meet(torture_t *t)
{
    dn_store_relaxed(&t->doing, "a meeting of the threads");
    pthread_barrier_wait(&job.meeting);
    if (0 == t->thread) {
        dn_store_relaxed(&t->doing, "MPI_Buffer_detach");
        detach();
        attach();
    }
    pthread_barrier_wait(&job.meeting);
    dn_store_relaxed(&t->doing, "renewal of communicators");
    spaces_renew(t);
}

static void *run_thread(void *argument)
{
    torture_t *t = argument;
    plan_t *plan = malloc(sizeof(*plan));

    verify_that(NULL != plan, "no memory for a plan");
    for (t->round = 0; t->round < t->rounds; t->round++) {
        if (t->round > 0 && 0 == t->round % MEETING) {
            meet(t);
        }
        if (0 == verify_key(t->seed, t->round, (uint64_t) t->thread, 3) % 3) {
            dn_store_relaxed(&t->doing, "MPI_Comm_dup");
            space_open_short(t);
        }
        plan_make(plan, t);
        round_run(t, plan);
    }
    free(plan);
    dn_store_relaxed(&t->doing, "nothing, it is done");
    return NULL;
}

/* Tell where all threads are when none has entered a call for a while. Runs in a thread of its own. */
static void *watch(void *argument)
{
    uint64_t before = 0;
    unsigned idle = 0;

    (void) argument;
    while (!dn_load_seq_cst(&job.over)) {
        uint64_t steps = 0;
        verify_sleep_ms(200);
        for (int i = 0; i < job.threads; i++) {
            steps += dn_load_relaxed(&job.tortures[i].steps);
        }
        idle = steps == before ? idle + 1 : 0;
        before = steps;
        if (idle > 5 * job.patience) {
            for (int i = 0; i < job.threads; i++) {
                const torture_t *t = &job.tortures[i];
                fprintf(
                    stderr,
                    "FAILED: torture: rank %d: seed %llu, round %llu, thread %d hangs in %s, message %d\n",
                    t->rank, (unsigned long long) t->seed, (unsigned long long) t->round, i,
                    dn_load_relaxed(&t->doing), dn_load_relaxed(&t->doing_message));
            }
            verify_sleep_ms(1000); /* the others have something to say too before mpirun ends them */
            _exit(1);
        }
    }
    return NULL;
}

static void read_options(int argc, char **argv)
{
    int option;

    job.seed = (uint64_t) getpid() ^ (uint64_t) (verify_seconds() * 1e6);
    while (-1 != (option = getopt(argc, argv, "s:n:t:x:aw:"))) {
        switch (option) {
        case 's':
            job.seed = verify_number(optarg, 0, "-s");
            break;
        case 'n':
            job.rounds = verify_number(optarg, 1, "-n");
            break;
        case 't':
            job.threads = (int) verify_number(optarg, 1, "-t");
            break;
        case 'x':
            job.largest = verify_number(optarg, 0, "-x");
            break;
        case 'a':
            job.ask_all = true;
            break;
        case 'w':
            job.patience = (unsigned) verify_number(optarg, 0, "-w");
            break;
        default:
            fprintf(stderr, "usage: torture [-s SEED] [-n ROUNDS] [-t THREADS] [-x MAXBYTES] [-a] "
                            "[-w SECONDS]\n");
            exit(2);
        }
    }
    if (job.threads > MOST_THREADS || job.largest > 1 << 30) {
        fprintf(stderr, "torture: -t takes at most %d, -x at most %d\n", MOST_THREADS, 1 << 30);
        exit(2);
    }
}

static void open_thread(int thread, int rank, int ranks)
{
    torture_t *t = &job.tortures[thread];
    int *top = NULL;
    int found = 0;

    *t = (torture_t){.seed = job.seed,
                     .rank = rank,
                     .ranks = ranks,
                     .thread = thread,
                     .threads = job.threads,
                     .largest = job.largest,
                     .ask_all = job.ask_all,
                     .rounds = job.rounds,
                     .doing = "its beginning"};
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &top, &found);
    verify_that(found && *top >= 32767, "MPI_TAG_UB is missing or below 32767");
    t->tag_top = *top;
    t->windows = plan_windows(*top, job.threads);
    verify_that(t->windows > 0, "MPI_TAG_UB is too low for so many threads; use a smaller -t");
    MPI_Comm_dup(MPI_COMM_WORLD, &t->parent);
    MPI_Comm_dup(MPI_COMM_WORLD, &t->control);
    spaces_open(t, job.shared);
}

static void close_thread(torture_t *t)
{
    spaces_close(t);
    MPI_Comm_free(&t->control);
    MPI_Comm_free(&t->parent);
}

static void run_threads(void)
{
    pthread_t handles[MOST_THREADS];

    for (int i = 1; i < job.threads; i++) {
        if (0 != pthread_create(&handles[i], NULL, run_thread, &job.tortures[i])) {
            verify_fail("cannot create thread %d; use a smaller -t", i);
        }
    }
    run_thread(&job.tortures[0]);
    for (int i = 1; i < job.threads; i++) {
        pthread_join(handles[i], NULL);
    }
}

static void report(int rank, int ranks)
{
    unsigned long long mine[4] = {0};
    unsigned long long total[4];

    for (int i = 0; i < job.threads; i++) {
        mine[0] += job.tortures[i].messages;
        mine[1] += job.tortures[i].bytes;
        mine[2] += job.tortures[i].truncated;
        mine[3] += job.tortures[i].cancelled;
    }
    MPI_Reduce(mine, total, 4, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("torture: %d ranks, %d threads each, %llu rounds: %llu messages and %llu bytes verified, %llu "
               "messages truncated, %llu receives cancelled\n",
               ranks, job.threads, (unsigned long long) job.rounds, total[0], total[1], total[2], total[3]);
    }
}

int main(int argc, char **argv)
{
    int provided;
    int rank;
    int ranks;
    pthread_t watcher;

    read_options(argc, argv);
    int needed = job.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, needed, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_that(provided >= needed, "this MPI does not grant the thread level needed");
    verify_that(ranks <= MOST_RANKS, "torture runs on 8 ranks at most");
    MPI_Bcast(&job.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("torture: seed %llu; repeat with -s %llu -n %llu -t %d -x %zu%s on %d ranks\n",
               (unsigned long long) job.seed, (unsigned long long) job.seed, (unsigned long long) job.rounds,
               job.threads, job.largest, job.ask_all ? " -a" : "", ranks);
        fflush(stdout);
    }

    job.shared = MPI_COMM_NULL;
    if (job.threads > 1) {
        MPI_Comm_dup(MPI_COMM_WORLD, &job.shared);
    }
    for (int i = 0; i < job.threads; i++) {
        open_thread(i, rank, ranks);
    }
    /* Twice what the plans of the rounds between two meetings hold at most, because it is cut into pieces. */
    job.buffer_size = 2 * MEETING * BUFFERED_MOST * job.threads;
    job.buffer = malloc((size_t) job.buffer_size);
    verify_that(NULL != job.buffer, "no memory for the buffer of buffered sends");
    pthread_barrier_init(&job.meeting, NULL, (unsigned) job.threads);
    attach();
    if (job.patience > 0 && 0 != pthread_create(&watcher, NULL, watch, NULL)) {
        verify_fail("cannot create a thread to watch; use -w 0");
    }
    run_threads();
    detach();
    dn_store_seq_cst(&job.over, true);
    if (job.patience > 0) {
        pthread_join(watcher, NULL);
    }
    for (int i = 0; i < job.threads; i++) {
        close_thread(&job.tortures[i]);
    }
    if (MPI_COMM_NULL != job.shared) {
        MPI_Comm_free(&job.shared);
    }
    free(job.buffer);
    pthread_barrier_destroy(&job.meeting);
    report(rank, ranks);
    MPI_Finalize();
    return 0;
}
