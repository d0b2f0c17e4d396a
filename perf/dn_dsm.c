/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm.c
 * What pages, barriers and locks of libdn_dsm take, in two processes that share no cache of pages:
 *
 *   DN_DSM_SHARE=never examples/dsm/run 2 build/perf/dn_dsm
 *
 * All pages are at home with rank 0. A line of the output is a name and microseconds, the median of ROUNDS rounds:
 *
 *   first     rank 1 reads a word of a page that it has never had
 *   again     the same of a page that rank 0 has written since, in an order that nothing guesses
 *   diff      rank 1 changes 64 words of a page, and the barrier sends them home: a page's part of both
 *   barrier   nothing was written
 *   tree      a barrier of the tree alone (dn_tree_barrier()), of a second port of each process
 *   lock      a lock goes from its holder to the rank that waits for it, and nothing was written
 *   hand      a lock goes from one rank to the other, with the page of a word that is counted up under it
 *
 * Every word that is read is verified.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <sys/random.h>

#include "dn_bench.h"
#include "dn_dsm.h"
#include "dn_tree.h"
#include "dn_wait.h"

enum {
    RANKS = 2,
    ROUNDS = 7,
    PAGES = 512,
    WORDS = 512,
    CHANGED = 64,
    BARRIERS = 2000,
    HANDS = 500,
    GIVES = 100,
    QUEUES_US = 500,
    STRIDE = 389
};

typedef uint64_t page_t[WORDS];

static dn_dsm_t *dsm;
static uint32_t rank;

static void need(dn_status_t status, const char *what)
{
    if (DN_OK != status) {
        fprintf(stderr, "%s: %s\n", what, dn_strerror(status));
        exit(1);
    }
}

static void barrier(void)
{
    need(dn_dsm_barrier(dsm), "dn_dsm_barrier");
}

static double microseconds(void)
{
    return 1e-3 * (double) dn_bench_now_ns();
}

static void expect(uint64_t is, uint64_t should, const char *what)
{
    if (is != should) {
        fprintf(stderr, "%s: %llu is here, not %llu\n", what, (unsigned long long) is,
                (unsigned long long) should);
        exit(1);
    }
}

/** Rank 0 prints what has been measured by rank @p by. */
static void print(const char *name, uint32_t by, double *times)
{
    double median = rank == by ? dn_bench_median(times, ROUNDS) : 0;

    need(dn_dsm_reduce(dsm, DN_DSM_SUM, &median, 1), "dn_dsm_reduce");
    if (0 == rank) {
        printf("%-8s %10.3f\n", name, median);
    }
}

static page_t *share(void)
{
    void *at;

    need(dn_dsm_alloc(dsm, PAGES * sizeof(page_t), DN_DSM_HOME_RANK, 0, &at), "dn_dsm_alloc");
    return at;
}

/** Rank 0 writes a word of each page, and rank 1 reads it. @return microseconds for each page. */
static double fetch(page_t *pages, uint64_t round, int stride)
{
    if (0 == rank) {
        for (uint64_t i = 0; i < PAGES; i++) {
            pages[i][0] = i + round;
        }
    }
    barrier();
    const double began = microseconds();
    if (1 == rank) {
        for (uint64_t i = 0, at = 0; i < PAGES; i++, at = (at + (uint64_t) stride) % PAGES) {
            expect(pages[at][0], at + round, "a fetched page");
        }
    }
    const double took = microseconds() - began;
    barrier();
    return took / PAGES;
}

static double diff(page_t *pages, uint64_t round)
{
    const double began = microseconds();
    if (1 == rank) {
        for (uint64_t i = 0; i < PAGES; i++) {
            for (int w = 0; w < CHANGED; w++) {
                pages[i][w * (WORDS / CHANGED)] = i + round + (uint64_t) w;
            }
        }
    }
    barrier();
    const double took = microseconds() - began;
    for (uint64_t i = 0; i < PAGES; i++) {
        for (int w = 0; w < CHANGED; w++) {
            expect(pages[i][w * (WORDS / CHANGED)], i + round + (uint64_t) w, "a merged page");
        }
    }
    barrier();
    return took / PAGES;
}

static double barriers(void)
{
    const double began = microseconds();
    for (int i = 0; i < BARRIERS; i++) {
        barrier();
    }
    return (microseconds() - began) / BARRIERS;
}

/** What the second ports tell each other, in shared memory. */
typedef struct desk {
    dn_group_key_t key;
    uint8_t address[RANKS][DN_ADDRESS_MAX];
    size_t len[RANKS];
    dn_tree_card_t card[RANKS];
} desk_t;

_Static_assert(sizeof(desk_t) <= PAGES * sizeof(page_t), "share() is a desk");

static dn_port_t *port;
static dn_tree_t *tree;

/** Open a second port, over the same devices, and a tree as libdn_dsm has it. */
static void tree_open(desk_t *desk)
{
    const char *devices = getenv("DN_DSM_DEVICES");
    const dn_tree_config_t shape = {.ranks = RANKS, .rank = rank, .radix = 8, .depth = 8};
    dn_job_t job = {.pid = rank, .size = RANKS, .threads = 1};
    dn_config_t config;
    dn_peer_t *peer[RANKS];

    /* A system call does not write to shared memory. */
    if (sizeof(job.key) != getrandom(&job.key, sizeof(job.key), 0)) {
        need(DN_ERR_NOMEM, "getrandom");
    }
    if (0 == rank) {
        desk->key = job.key;
    }
    barrier();
    job.key = desk->key;
    dn_config_init(&config);
    need(dn_open(NULL == devices ? "shm" : devices, &job, &config, &port), "dn_open");
    desk->len[rank] = sizeof(desk->address[rank]);
    need(dn_address(port, desk->address[rank], &desk->len[rank]), "dn_address");
    need(dn_tree_create(port, &shape, &desk->card[rank], &tree), "dn_tree_create");
    barrier();
    for (uint32_t r = 0; r < RANKS; r++) {
        need(dn_connect(port, desk->address[r], desk->len[r], &peer[r]), "dn_connect");
    }
    dn_tree_connect(tree, desk->card, peer);
    barrier();
}

static double trees(void)
{
    const double began = microseconds();
    for (int i = 0; i < BARRIERS; i++) {
        dn_wait_t wait = {0};
        dn_status_t status = dn_tree_barrier(tree);
        while (DN_INPROGRESS == status) {
            if (0 == dn_progress(port)) {
                (void) dn_wait(port, &wait, 0, 0);
            }
            status = dn_tree_test(tree);
        }
        need(status, "dn_tree_barrier");
    }
    return (microseconds() - began) / BARRIERS;
}

/** Rank 0 gives the lock while rank 1 waits for it, awake. Rank 0 has had it for so long that rank 1 is in the queue. Both are on one
 * machine, whose clock they share. */
static double locks(void)
{
    double sum = 0;

    for (int i = 0; i < GIVES; i++) {
        if (0 == rank) {
            need(dn_dsm_lock(dsm, 0), "dn_dsm_lock");
        }
        barrier();
        double at = microseconds();
        if (0 == rank) {
            const double until = at + QUEUES_US;
            while (until > (at = microseconds())) {
            }
            need(dn_dsm_unlock(dsm, 0), "dn_dsm_unlock");
            at = -at;
        } else {
            need(dn_dsm_lock(dsm, 0), "dn_dsm_lock");
            at = microseconds();
            need(dn_dsm_unlock(dsm, 0), "dn_dsm_unlock");
        }
        need(dn_dsm_reduce(dsm, DN_DSM_SUM, &at, 1), "dn_dsm_reduce");
        sum += at;
    }
    return sum / GIVES;
}

/** Rank 0 counts from even numbers, rank 1 from odd ones. */
static double hands(volatile uint64_t *count)
{
    const uint64_t start = *count;
    barrier();
    const double began = microseconds();
    for (int i = 0; i < HANDS;) {
        need(dn_dsm_lock(dsm, 0), "dn_dsm_lock");
        if (rank == *count % 2) {
            ++*count;
            i++;
        }
        need(dn_dsm_unlock(dsm, 0), "dn_dsm_unlock");
    }
    barrier();
    const double took = microseconds() - began;
    expect(*count, start + 2 * (uint64_t) HANDS, "the count");
    barrier();
    return took / (2.0 * HANDS);
}

int main(void)
{
    dn_dsm_config_t config;
    double times[7][ROUNDS];

    need(dn_dsm_config_env(&config), "dn_dsm_config_env");
    need(dn_dsm_open(&config, &dsm), "dn_dsm_open");
    rank = dn_dsm_rank(dsm);
    if (RANKS != dn_dsm_ranks(dsm)) {
        fprintf(stderr, "dn_dsm: start 2 processes\n");
        return 1;
    }
    page_t *again = share(), *counter = share();
    for (uint64_t round = 0; round < ROUNDS; round++) {
        times[0][round] = fetch(share(), 1, 1);
        (void) fetch(again, 2 * round + 1, STRIDE);
        times[1][round] = fetch(again, 2 * round + 2, STRIDE);
        times[2][round] = diff(again, 100 * (round + 1));
        times[3][round] = barriers();
        times[5][round] = locks();
        times[6][round] = hands(&counter[0][0]);
    }
    /* A second port makes the first one believe that more processes share the cores: it is opened last. */
    tree_open((desk_t *) share());
    for (uint64_t round = 0; round < ROUNDS; round++) {
        times[4][round] = trees();
    }
    dn_tree_abandon(tree);
    dn_close(port);
    print("first", 1, times[0]);
    print("again", 1, times[1]);
    print("diff", 1, times[2]);
    print("barrier", 0, times[3]);
    print("tree", 0, times[4]);
    print("lock", 0, times[5]);
    print("hand", 0, times[6]);
    need(dn_dsm_close(dsm), "dn_dsm_close");
    return 0;
}
