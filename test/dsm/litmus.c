/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Conformance of the memory model that dn_dsm.h states: small programs without a data race, many rounds each, over one variant:
 *
 *   litmus FILE.dsm [PROTOCOL DETECT PROCESSES [TEST]]
 *
 * A line of the file is a setting of the port and its value; `device NAME` is for dn_open(), `rounds N` says how many, `share auto` permits
 * one memory; with `homes move` homes do; `wire RATES` is for bad_wire_begin(). Each protocol and way of detection that works here is run in 2,
 * 3 and 4 processes, which never share memory else; over a bad wire each protocol once. With `share N` they are on hosts of N, as if there
 * were several, and never all on one. With LONG not empty in the environment there are 100000 rounds. A sanitizer makes all of this slow: with one,
 * there are few rounds, each protocol is run once, in 2 or 3 processes without `share`, by another way than the protocol before where there
 * are several ways, and some files are skipped.
 */
#include "dn_config.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../device/bad_wire.h"
#include "../device/dn_world.h"
#include "dn_atomic.h"
#include "dn_dsm.h"
#include "folder.h"
#include "sanitizers.h"

#define PAGE 4096u

enum {
    ROUNDS_LONG = 100000,
    ROUNDS_A_SECOND = 100, /**< at least, where four processes share two cores with others */
    ROUNDS_SANITIZED = 10  /**< at most, with a sanitizer */
};

static char device[64] = "shm";
static char share[8] = "never";
static char homes[8] = "stay";
static char wire[20]; /**< rates of a bad wire; "": it is good */
static char settings[DN_WORLD_SETTINGS];
static unsigned rounds = 200;
static const char *only;

/* Of the run. */
static const char *protocol;
static const char *detect;

/** What a test uses. */
typedef struct ground {
    dn_world_t *world;
    dn_dsm_t *dsm;
    unsigned rank;
    unsigned ranks;
    uint64_t *far;  /**< 16 pages, with homes by turns */
    uint64_t *wide; /**< 1200 pages, in blocks */
    uint64_t *one;  /**< a page of the last rank */
} ground_t;

static void barrier(const ground_t *g)
{
    dn_check_equal(dn_dsm_barrier(g->dsm), DN_OK);
}

static void lock(const ground_t *g, uint32_t number)
{
    dn_check_equal(dn_dsm_lock(g->dsm, number), DN_OK);
}

static void unlock(const ground_t *g, uint32_t number)
{
    dn_check_equal(dn_dsm_unlock(g->dsm, number), DN_OK);
}

/** Is a rank on the same host? */
static bool is_near(const ground_t *g, uint32_t rank)
{
    return dn_dsm_host(g->dsm, g->rank) == dn_dsm_host(g->dsm, rank);
}

/** A datum of another page than the one that says it is there. */
static void a_barrier_passes_messages(const ground_t *g)
{
    for (uint64_t i = 1; i <= rounds; i++) {
        const unsigned writer = (unsigned) (i % g->ranks);
        if (g->rank == writer) {
            g->far[i % 16 * (PAGE / 8)] = i;
            g->one[1] = i;
        }
        barrier(g);
        dn_check_equal(g->far[i % 16 * (PAGE / 8)], i);
        dn_check_equal(g->one[1], i);
        barrier(g);
    }
}

/** The reader asks for the lock until it finds the flag: then the datum is there, too. */
static void a_lock_passes_messages(const ground_t *g)
{
    for (uint64_t i = 1; i <= rounds; i++) {
        const unsigned writer = (unsigned) (i % g->ranks);
        bool seen = false;
        if (g->rank == writer) {
            lock(g, 1);
            g->far[5 * (PAGE / 8) + 1] = i;
            g->one[2] = i;
            unlock(g, 1);
        }
        while (!seen) {
            lock(g, 1);
            if (i == g->one[2]) {
                dn_check_equal(g->far[5 * (PAGE / 8) + 1], i);
                seen = true;
            }
            unlock(g, 1);
        }
        /* Nobody writes the next one while somebody still looks for this one. */
        barrier(g);
    }
}

/** Counters that a lock each guards: the locks have different homes, and the counters one page. */
static void a_lock_hands_over(const ground_t *g)
{
    uint64_t before[3];

    memcpy(before, g->one + 8, sizeof(before));
    barrier(g);
    for (unsigned i = 0; i < rounds; i++) {
        const unsigned which = (i + g->rank) % 3;
        lock(g, which);
        g->one[8 + which]++;
        unlock(g, which);
    }
    barrier(g);
    dn_check_equal(g->one[8] + g->one[9] + g->one[10],
                   before[0] + before[1] + before[2] + (uint64_t) g->ranks * rounds);
    barrier(g);
}

/** What A wrote is seen by C, which has it from B. With "scope" it has to be written inside. */
static void an_order_is_passed_on(const ground_t *g)
{
    for (uint64_t i = 1; i <= rounds / 4 && 0 != strcmp(protocol, "scope"); i++) {
        const uint32_t last = g->ranks - 1;
        for (uint32_t r = 0; r < g->ranks; r++) {
            /* Each rank waits for the word of the one before, and writes its own with another lock. */
            bool seen = g->rank != r || 0 == r;
            while (!seen) {
                lock(g, 20 + r);
                seen = i == g->far[(6 + r) * (PAGE / 8)];
                unlock(g, 20 + r);
            }
            if (g->rank != r) {
                continue;
            }
            if (0 == r) {
                g->far[PAGE / 8 * 3 + 3] = i; /* outside of any lock */
            } else {
                dn_check_equal(g->far[PAGE / 8 * 3 + 3], i);
            }
            if (r != last) {
                lock(g, 20 + r + 1);
                g->far[(6 + r + 1) * (PAGE / 8)] = i;
                unlock(g, 20 + r + 1);
            }
        }
        barrier(g);
    }
}

/** Words that are written outside of locks, in a page that others write, too: it is dirty and stale when the first lock is got. Its
 * home, which is rank 1, does not write it. */
static void an_inner_lock_forgets_nothing(const ground_t *g)
{
    volatile uint64_t *outside = g->far + 13 * (PAGE / 8), *inside = g->one + 80;

    for (uint64_t i = 1; i <= rounds && 1 != g->rank && 0 != strcmp(protocol, "scope"); i++) {
        outside[g->rank] = i;
        lock(g, 40);
        lock(g, 41);
        inside[g->rank] = i;
        unlock(g, 41);
        for (unsigned r = 0; r < g->ranks; r++) {
            dn_check(outside[r] >= inside[r]);
        }
        unlock(g, 40);
    }
}

/** All write every page, each its own bytes. */
static void bytes_of_a_page_have_several_writers(const ground_t *g)
{
    uint8_t *byte = (uint8_t *) g->far;

    for (unsigned i = 0; i < rounds; i++) {
        for (unsigned at = g->rank; at < 4 * PAGE; at += g->ranks * (1 + at % 7)) {
            byte[at] = (uint8_t) (i + at);
        }
        barrier(g);
        for (unsigned r = 0; r < g->ranks; r++) {
            for (unsigned at = r; at < 4 * PAGE; at += g->ranks * (1 + at % 7)) {
                dn_check(byte[at] == (uint8_t) (i + at));
            }
        }
        barrier(g);
    }
}

/** Some bytes under a lock, others by barriers, in one page. */
static void locks_and_barriers_share_a_page(const ground_t *g)
{
    const uint64_t start = g->one[30];

    barrier(g);
    for (unsigned i = 1; i <= rounds; i++) {
        g->one[40 + g->rank] = i;
        lock(g, 7);
        g->one[30]++;
        unlock(g, 7);
        dn_check_equal(g->one[40 + g->rank], i);
        barrier(g);
        dn_check_equal(g->one[30], start + (uint64_t) i * g->ranks);
        for (unsigned r = 0; r < g->ranks; r++) {
            dn_check_equal(g->one[40 + r], i);
        }
        barrier(g);
    }
}

/** More pages at once than a log has room for. */
static void more_notices_than_there_is_room_for_are_heard(const ground_t *g)
{
    const uint64_t base = g->one[50];

    barrier(g);
    for (uint64_t turn = g->rank; turn < 3 * g->ranks; turn += g->ranks) {
        bool ours = false;
        while (!ours) {
            lock(g, 3);
            ours = base + turn == g->one[50];
            for (unsigned p = 0; ours && p < 1200; p++) {
                dn_check(0 == turn || base + turn == g->wide[p * (PAGE / 8) + 1]);
                g->wide[p * (PAGE / 8) + 1] = base + turn + 1;
            }
            g->one[50] += ours;
            unlock(g, 3);
        }
    }
    barrier(g);
    dn_check_equal(g->wide[7 * (PAGE / 8) + 1], base + 3 * g->ranks);
    barrier(g);
}

/** Odd ranks write their words and seldom order anything, while even ones get, write and release the same page again and again. No word is
 * lost, and none that was there before comes back. */
static void what_is_written_beside_transfers_is_kept(const ground_t *g)
{
    enum { WORDS = 16 };
    volatile uint64_t *page = g->far + 11 * (PAGE / 8), *own = page + 300 + g->rank * WORDS;
    const uint64_t turns = rounds / 2;
    uint64_t i = 0;

    memset((void *) (uintptr_t) own, 0, WORDS * sizeof(*own));
    const uint64_t start = page[299], start_odd = page[298];
    barrier(g);
    if (0 == g->rank % 2) {
        for (uint64_t turn = 0; turn < turns; turn++) {
            lock(g, 60);
            page[299]++;
            unlock(g, 60);
        }
        dn_world_post(g->world, 6, 1);
    } else {
        while (0 == dn_world_posted(g->world, (int) g->rank - 1, 6)) {
            i++;
            dn_check_equal(own[i % WORDS], WORDS < i ? i - WORDS : 0);
            own[i % WORDS] = i;
            if (0 == i % 500) {
                lock(g, 64);
                page[298]++;
                unlock(g, 64);
            }
        }
    }
    barrier(g);
    dn_world_post(g->world, 6, 0);
    dn_world_post(g->world, 7, i);
    dn_check_equal(page[299], start + (g->ranks + 1) / 2 * turns);
    barrier(g);
    uint64_t odd = start_odd;
    for (unsigned r = 1; r < g->ranks; r += 2) {
        const uint64_t last = dn_world_posted(g->world, (int) r, 7);
        dn_check_equal(page[300 + r * WORDS + last % WORDS], last);
        odd += last / 500;
    }
    dn_check_equal(page[298], odd);
    barrier(g);
}

/** Rank 1 writes a word, which rank 0 of its host sends with its own, and drops the page as rank 2 has written it. Rank 4 of another host knows of
 * that one, and has to hear that rank 1 has written. */
static void what_another_rank_has_sent_is_noted(const ground_t *g)
{
    enum { SENDER, WRITER, OTHER, READER = 4 };
    void *at;

    dn_check_equal(dn_dsm_alloc(g->dsm, PAGE, DN_DSM_HOME_RANK, OTHER % g->ranks, &at), DN_OK);
    volatile uint64_t *word = at;
    for (uint64_t i = 1; i <= rounds / 10 && READER < g->ranks && 0 != strcmp(protocol, "scope"); i++) {
        dn_check_equal(word[WRITER], i - 1);
        barrier(g);
        if (OTHER == g->rank) {
            lock(g, 61);
            word[OTHER] = i;
            unlock(g, 61);
            dn_world_post(g->world, 8, i);
        } else if (WRITER == g->rank) {
            dn_world_sleep(g->world, READER, 8, i);
            word[WRITER] = i;
            dn_world_post(g->world, 8, i);
            dn_world_sleep(g->world, SENDER, 8, i);
            lock(g, 61);
            unlock(g, 61);
            lock(g, 62);
            unlock(g, 62);
            dn_world_post(g->world, 9, i);
        } else if (SENDER == g->rank) {
            dn_world_sleep(g->world, WRITER, 8, i);
            lock(g, 63);
            word[SENDER] = i;
            unlock(g, 63);
            dn_world_post(g->world, 8, i);
        } else if (READER == g->rank) {
            dn_world_sleep(g->world, OTHER, 8, i);
            lock(g, 61);
            dn_check_equal(word[OTHER], i);
            unlock(g, 61);
            dn_world_post(g->world, 8, i);
            dn_world_sleep(g->world, WRITER, 9, i);
            lock(g, 62);
            dn_check_equal(word[WRITER], i);
            unlock(g, 62);
        }
        barrier(g);
    }
    barrier(g);
    dn_world_post(g->world, 8, 0);
    dn_world_post(g->world, 9, 0);
    barrier(g);
}

static dn_dsm_stat_t stat_of(const ground_t *g)
{
    dn_dsm_stat_t stat;

    dn_dsm_stat(g->dsm, &stat);
    return stat;
}

static uint64_t faults(const ground_t *g)
{
    const dn_dsm_stat_t stat = stat_of(g);

    return stat.read_faults + stat.write_faults;
}

/** A page of another host that is dirty when the copy is dropped: no other rank has sent it. */
static void what_is_dropped_was_sent_once(const ground_t *g)
{
    void *at;

    dn_check_equal(dn_dsm_alloc(g->dsm, PAGE, DN_DSM_HOME_RANK, g->ranks - 1, &at), DN_OK);
    volatile uint64_t *word = at;
    for (uint64_t i = 1; i <= rounds / 10 && 0 == g->rank; i++) {
        word[3] = i;
        const uint64_t before = stat_of(g).diffs;
        /* No barrier has told of the copy, so each acquire drops it. */
        lock(g, 65);
        unlock(g, 65);
        dn_check_equal(stat_of(g).diffs - before, !is_near(g, g->ranks - 1));
        dn_check_equal(word[3], i);
    }
    barrier(g);
    dn_check_equal(word[3], rounds / 10);
    barrier(g);
}

/** Once too many notices have gone by a lock, the next ones that it hands over are few again: other copies stay. */
static void a_lock_that_was_told_too_much_recovers(const ground_t *g)
{
    enum { READ = 12, TURNS = 6 };
    const uint64_t base = g->one[55];
    uint64_t before = 0, turns = 0;

    for (unsigned p = 0; p < READ; p++) {
        dn_check(UINT64_MAX != g->far[p * (PAGE / 8)]);
    }
    barrier(g);
    for (uint64_t turn = g->rank; turn < TURNS * g->ranks; turn += g->ranks) {
        bool ours = false;
        while (!ours) {
            lock(g, 3);
            ours = base + turn == g->one[55];
            for (unsigned p = 0; ours && 0 == turn && p < 1200; p++) {
                g->wide[p * (PAGE / 8) + 3] = base;
            }
            if (ours) {
                /* Who looks in vain writes nothing, so that the lock is not told too much by that. */
                g->one[55]++;
            }
            unlock(g, 3);
        }
        for (unsigned p = 0; p < READ; p++) {
            dn_check(UINT64_MAX != g->far[p * (PAGE / 8)]);
        }
        turns++;
        before = 2 == turns ? stat_of(g).fetched : before;
    }
    /* The page of the word after each time that it was written, but none of those that nobody has written. */
    dn_check(stat_of(g).fetched - before <= (uint64_t) (TURNS - 2) * g->ranks);
    barrier(g);
}

/** The sign goes by the board, which the memory knows nothing of. */
static void a_release_and_an_acquire_need_no_lock(const ground_t *g)
{
    for (uint64_t i = 1; i <= rounds / 4; i++) {
        if (0 == g->rank) {
            g->far[9 * (PAGE / 8) + 5] = i;
            g->one[60] = 2 * i;
            dn_check_equal(dn_dsm_release(g->dsm), DN_OK);
            dn_world_post(g->world, 3, i);
        } else {
            dn_world_sleep(g->world, 0, 3, i);
            dn_check_equal(dn_dsm_acquire(g->dsm), DN_OK);
            dn_check_equal(g->far[9 * (PAGE / 8) + 5], i);
            dn_check_equal(g->one[60], 2 * i);
        }
        barrier(g);
    }
    barrier(g);
    dn_world_post(g->world, 3, 0);
    barrier(g);
}

/** Rows that each rank keeps, whose neighbours read only their ends: only these are noticed when they are written again. */
static void what_nobody_else_reads_stays_at_home(const ground_t *g)
{
    enum { ROWS = 8 };
    const size_t row = (size_t) sysconf(_SC_PAGESIZE) / 8;
    const unsigned own = ROWS * g->rank, end = own + ROWS, all = ROWS * g->ranks;
    void *at;

    dn_check_equal(dn_dsm_alloc(g->dsm, all * row * 8, DN_DSM_HOME_BLOCK, 0, &at), DN_OK);
    volatile uint64_t *rows = at;
    const uint64_t before = faults(g);
    for (uint64_t i = 1; i <= rounds / 10; i++) {
        for (unsigned p = own; p < end; p++) {
            rows[p * row] = i + p;
        }
        barrier(g);
        if (0 < own) {
            dn_check_equal(rows[(own - 1) * row], i + own - 1);
        }
        if (end < all) {
            dn_check_equal(rows[end * row], i + end);
        }
        barrier(g);
    }
    dn_check(faults(g) - before <= ROWS + 4 * (uint64_t) (rounds / 10));
}

/** Their home writes without noticing, until a barrier has told of the copies. The board says when. */
static void copies_that_their_home_does_not_know_of_are_dropped(const ground_t *g)
{
    const int home = (int) g->ranks - 1;

    for (uint64_t turn = 1; turn <= 3; turn++) {
        void *at;
        dn_check_equal(dn_dsm_alloc(g->dsm, PAGE, DN_DSM_HOME_RANK, (uint32_t) home, &at), DN_OK);
        volatile uint64_t *fresh = at;
        if (0 == g->rank) {
            dn_check_equal(fresh[1], 0);
            dn_world_post(g->world, 4, turn);
        }
        if (home == (int) g->rank) {
            fresh[0] = 1;
            dn_world_sleep(g->world, 0, 4, turn);
            if (1 < turn) {
                lock(g, 30);
            }
            fresh[1] = 7;
            if (1 < turn) {
                unlock(g, 30);
                dn_world_post(g->world, 5, turn);
            }
        }
        if (1 < turn && 0 == g->rank) {
            dn_world_sleep(g->world, home, 5, turn);
            lock(g, 30);
            dn_check_equal(fresh[1], 7);
            unlock(g, 30);
        }
        barrier(g);
        dn_check_equal(fresh[1], 7);
    }
    barrier(g);
    dn_world_post(g->world, 4, 0);
    dn_world_post(g->world, 5, 0);
    barrier(g);
}

static void reductions_are_the_same_everywhere(const ground_t *g)
{
    for (unsigned i = 0; i < rounds / 4; i++) {
        double value[3] = {g->rank + i, g->rank, 0.1 * g->rank};
        double most = g->rank;
        g->far[g->rank * (PAGE / 8)] = i;
        dn_check_equal(dn_dsm_reduce(g->dsm, DN_DSM_SUM, value, 3), DN_OK);
        dn_check_equal((uint64_t) value[0], g->ranks * (g->ranks - 1) / 2 + i * g->ranks);
        dn_check_equal(g->far[(g->rank + 1) % g->ranks * (PAGE / 8)], i);
        dn_check_equal(dn_dsm_reduce(g->dsm, DN_DSM_MAX, &most, 1), DN_OK);
        dn_check_equal((uint64_t) most, g->ranks - 1);
    }
}

typedef struct worker {
    const ground_t *ground;
    unsigned number;
} worker_t;

static void *work(void *arg)
{
    const worker_t *worker = arg;
    const ground_t *g = worker->ground;

    for (unsigned i = 0; i < rounds / 2; i++) {
        g->far[(i % 8) * (PAGE / 8) + 100 + g->rank * 2 + worker->number] = i + 1;
        lock(g, 11 + i % 2);
        g->one[70 + i % 2]++;
        unlock(g, 11 + i % 2);
        dn_check_equal(g->far[(i % 8) * (PAGE / 8) + 100 + g->rank * 2 + worker->number], i + 1);
    }
    return NULL;
}

static void threads_use_it_at_once(const ground_t *g)
{
    pthread_t thread[2];
    worker_t worker[2] = {{g, 0}, {g, 1}};
    const uint64_t before = g->one[70] + g->one[71];

    barrier(g);
    for (int i = 0; i < 2; i++) {
        dn_check_equal(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        dn_check_equal(pthread_join(thread[i], NULL), 0);
    }
    barrier(g);
    dn_check_equal(g->one[70] + g->one[71], before + (uint64_t) g->ranks * 2 * (rounds / 2));
    for (unsigned w = 0; w < 2 * g->ranks; w++) {
        for (unsigned p = 0; p < 8 && p < rounds / 2; p++) {
            const unsigned last = (rounds / 2 - 1 - p) / 8 * 8 + p + 1;
            dn_check_equal(g->far[p * (PAGE / 8) + 100 + w], last);
        }
    }
    barrier(g);
}

/** System calls take what was touched. */
static void touched_memory_goes_to_system_calls(const ground_t *g)
{
    int pipes[2];
    char byte[64] = {0};
    char *text = (char *) (g->far + 12 * (PAGE / 8));

    dn_check_equal(pipe(pipes), 0);
    if (0 == g->rank) {
        memset(text, 'a', sizeof(byte));
    }
    barrier(g);
    dn_check_equal(dn_dsm_touch(g->dsm, text, sizeof(byte), 0), DN_OK);
    dn_check_equal(write(pipes[1], text, sizeof(byte)), sizeof(byte));
    dn_check_equal(read(pipes[0], byte, sizeof(byte)), sizeof(byte));
    dn_check_equal(byte[63], 'a');
    barrier(g);
    if (g->rank + 1 == g->ranks) {
        dn_check_equal(write(pipes[1], "hello", 5), 5);
        dn_check_equal(dn_dsm_touch(g->dsm, text, 5, 1), DN_OK);
        dn_check_equal(read(pipes[0], text, 5), 5);
    }
    barrier(g);
    dn_check(0 == memcmp(text, "helloa", 6));
    /* The kernel may take a page out of the front that is here, and lies behind one that is mapped. */
    void *at;
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    dn_check_equal(dn_dsm_alloc(g->dsm, 4 * page, DN_DSM_HOME_RANK, 0, &at), DN_OK);
    dn_check_equal(dn_dsm_touch(g->dsm, at, 4 * page, 0), DN_OK);
    dn_check_equal(madvise((uint8_t *) at + 2 * page, page, MADV_DONTNEED), 0);
    dn_check_equal(dn_dsm_touch(g->dsm, at, 4 * page, 0), DN_OK);
    dn_check_equal(write(pipes[1], (uint8_t *) at + 2 * page, 1), 1);
    barrier(g);
    close(pipes[0]);
    close(pipes[1]);
}

/** The kernel takes a page out of the front after it was written, as it may when it reclaims memory. Every second time the page is read
 * again before the release. */
static void what_the_kernel_takes_out_is_not_forgotten(const ground_t *g)
{
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    void *at;

    dn_check_equal(dn_dsm_alloc(g->dsm, page, DN_DSM_HOME_RANK, 0, &at), DN_OK);
    volatile uint64_t *word = at;
    for (uint64_t i = 1; i <= rounds / 10; i++) {
        dn_check_equal(word[g->rank], i - 1);
        word[g->rank] = i;
        dn_check_equal(madvise(at, page, MADV_DONTNEED), 0);
        if (0 == i % 2) {
            dn_check_equal(word[g->rank], i);
        }
        barrier(g);
        for (unsigned r = 0; r < g->ranks; r++) {
            dn_check_equal(word[r], i);
        }
        barrier(g);
    }
}

/** More pages at once than a process of a host has places for: two threads have half of those of each home. */
static void *prefetch_half(void *arg)
{
    const worker_t *worker = arg;
    const ground_t *g = worker->ground;
    const uint64_t home = 1200 / g->ranks, half = home / 2;

    for (unsigned i = 0; i <= rounds / 40; i++) {
        dn_check_equal(dn_dsm_acquire(g->dsm), DN_OK);
        for (uint64_t first = worker->number * half; first + half <= 1200; first += home) {
            dn_check_equal(dn_dsm_prefetch(g->dsm, g->wide + first * (PAGE / 8), half * PAGE), DN_OK);
            for (uint64_t p = first; p < first + half; p++) {
                dn_check_equal(g->wide[p * (PAGE / 8) + 4], p);
            }
        }
    }
    return NULL;
}

static void threads_fetch_many_pages_at_once(const ground_t *g)
{
    pthread_t thread[2];
    worker_t worker[2] = {{g, 0}, {g, 1}};

    for (uint64_t p = g->rank; p < 1200; p += g->ranks) {
        g->wide[p * (PAGE / 8) + 4] = p;
    }
    barrier(g);
    for (int i = 0; i < 2; i++) {
        dn_check_equal(pthread_create(&thread[i], NULL, prefetch_half, &worker[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        dn_check_equal(pthread_join(thread[i], NULL), 0);
    }
    barrier(g);
}

/** What was prefetched is read without a fault. */
static void prefetched_pages_are_here(const ground_t *g)
{
    enum { PAGES = 20 };
    const size_t page = (size_t) sysconf(_SC_PAGESIZE) / 8;
    const uint64_t wanted = is_near(g, 0) ? 0 : PAGES;
    void *at;

    dn_check_equal(dn_dsm_alloc(g->dsm, PAGES * page * 8, DN_DSM_HOME_RANK, 0, &at), DN_OK);
    const volatile uint64_t *datum = at;
    const uint64_t before = stat_of(g).fetched;
    dn_check_equal(dn_dsm_prefetch(g->dsm, at, PAGES * page * 8), DN_OK);
    dn_check_equal(stat_of(g).fetched - before, wanted);
    const uint64_t had = faults(g);
    for (unsigned p = 0; p < PAGES; p++) {
        dn_check_equal(datum[p * page], 0);
    }
    dn_check_equal(faults(g), had);
    barrier(g);
}

/** The ranks of a host fetch a page that others write once, whoever of them reads it first, and nobody tells of it but the writer. */
static void a_host_fetches_a_page_once(const ground_t *g)
{
    const unsigned writer = g->ranks - 1;
    const bool tells = 0 != strcmp("shared", dn_dsm_detects(g->dsm));
    double fetched = 0;
    void *at;

    dn_check_equal(dn_dsm_alloc(g->dsm, PAGE, DN_DSM_HOME_RANK, writer, &at), DN_OK);
    volatile uint64_t *word = at;
    for (uint64_t i = 1; i <= 10; i++) {
        /* The first barrier that tells of the page makes it shared. */
        const dn_dsm_stat_t before = stat_of(g);
        if (writer == g->rank) {
            *word = i;
        }
        barrier(g);
        dn_check_equal(*word, i);
        fetched += 2 < i ? (double) (stat_of(g).fetched - before.fetched) : 0;
        barrier(g);
        /* A rank that drops its copy, while another one fetches the page, tells of no write. */
        const uint64_t heard = stat_of(g).notices - before.notices;
        dn_check(3 > i || 0 == strcmp("move", homes) || heard == (tells && writer != g->rank));
    }
    uint64_t hosts = 0;
    for (unsigned r = 0; r < g->ranks; r++) {
        hosts += r == dn_dsm_host(g->dsm, r);
    }
    dn_check_equal(dn_dsm_reduce(g->dsm, DN_DSM_SUM, &fetched, 1), DN_OK);
    /* A home that moves makes the last fetches of its page needless. */
    dn_check(0 == strcmp("move", homes) || (uint64_t) fetched == 8 * (hosts - 1));
}

enum { SWEPT = 64, SWEEP = 40 };

/** Pages that ranks write one after the other. */
typedef struct sweep {
    const ground_t *g;
    volatile uint64_t *word;
    size_t page; /**< words of a page */
    unsigned number;
    uint64_t value;
} sweep_t;

static void *sweep_pages(void *arg)
{
    const sweep_t *sweep = arg;

    for (unsigned p = 0; p < SWEEP; p++) {
        sweep->word[(p + 5 * sweep->g->rank) % SWEPT * sweep->page + 2 * sweep->g->rank + sweep->number] =
            sweep->value + p;
    }
    return NULL;
}

/** Two threads of each rank write words of the same pages; those of other ranks begin some pages further on. */
static void sweep_by_all(const ground_t *g, volatile uint64_t *word, size_t page, uint64_t value)
{
    pthread_t thread[2];
    sweep_t sweep[2];

    for (unsigned i = 0; i < 2; i++) {
        sweep[i] = (sweep_t){g, word, page, i, value};
        dn_check_equal(pthread_create(&thread[i], NULL, sweep_pages, &sweep[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        dn_check_equal(pthread_join(thread[i], NULL), 0);
    }
    barrier(g);
    for (unsigned r = 0; r < g->ranks; r++) {
        for (unsigned p = 0; p < SWEEP; p++) {
            dn_check_equal(word[(p + 5 * r) % SWEPT * page + 2 * r], value + p);
            dn_check_equal(word[(p + 5 * r) % SWEPT * page + 2 * r + 1], value + p);
        }
    }
    barrier(g);
}

/** Rank 0 writes some of the pages that all have read. @param[in] stride  From a page to the next one. @return what this rank has counted
 * until it has read all of the pages again. */
static dn_dsm_stat_t sweep_by_one(const ground_t *g, volatile uint64_t *word, size_t page, unsigned stride,
                                  uint64_t value)
{
    uint64_t was[SWEPT];

    for (unsigned p = 0; p < SWEPT; p++) {
        was[p] = word[p * page + 40];
    }
    barrier(g);
    const dn_dsm_stat_t before = stat_of(g);
    for (unsigned p = 0; 0 == g->rank && p < SWEEP; p += stride) {
        word[p * page + 40] = value + p;
    }
    barrier(g);
    for (unsigned p = 0; p < SWEPT; p++) {
        dn_check_equal(word[p * page + 40], SWEEP > p && 0 == p % stride ? value + p : was[p]);
    }
    const dn_dsm_stat_t after = stat_of(g);
    barrier(g);
    return (dn_dsm_stat_t){.write_faults = after.write_faults - before.write_faults,
                           .fetched = after.fetched - before.fetched,
                           .twins = after.twins - before.twins,
                           .notices = after.notices - before.notices};
}

/** Writes that follow each other make pages writable that are written later or not at all. What was not written, or was written
 * again as it was, is told to nobody and fetched by nobody. Writes that lie scattered make no other pages writable. */
static void pages_are_made_writable_ahead(const ground_t *g)
{
    const size_t page = (size_t) sysconf(_SC_PAGESIZE) / 8;
    const bool guesses =
        0 == strcmp("segv", dn_dsm_detects(g->dsm)) || 0 == strcmp("uffd", dn_dsm_detects(g->dsm));
    const bool counts = guesses && 0 == strcmp("never", share) && 0 == strcmp("stay", homes);
    void *at;

    dn_check_equal(dn_dsm_alloc(g->dsm, SWEPT * page * 8, DN_DSM_HOME_RANK, g->ranks - 1, &at), DN_OK);
    volatile uint64_t *word = at;
    const bool reads = 0 != g->rank && g->ranks - 1 != g->rank;
    for (uint64_t i = 1; i <= 3; i++) {
        const dn_dsm_stat_t first = sweep_by_one(g, word, page, 1, 1000 * i);
        if (counts && 1 < i) {
            /* Not in the first turn, as the barrier that makes pages shared has copies dropped. */
            dn_check(0 != g->rank || (SWEEP / 2 > first.write_faults && SWEEP < first.twins));
            dn_check_equal(first.notices, 0 == g->rank ? 0 : SWEEP);
            dn_check_equal(first.fetched, reads ? SWEEP : 0);
        }
        const dn_dsm_stat_t again = sweep_by_one(g, word, page, 1, 1000 * i);
        const dn_dsm_stat_t apart = sweep_by_one(g, word, page, 2, 1000 * i + 500);
        if (counts) {
            dn_check_equal(again.notices + again.fetched, 0);
            dn_check_equal(apart.twins, 0 == g->rank ? SWEEP / 2 : 0);
            dn_check_equal(apart.fetched, reads ? SWEEP / 2 : 0);
        }
        sweep_by_all(g, word, page, 1000 * i);
    }
}

/** Each rank fetches what is not its own, and nothing else. */
static void pages_have_the_homes_that_they_were_given(const ground_t *g)
{
    static const uint16_t wanted[] = {1, 0, 0, 1, 1, 1, 0};
    enum { PAGES = sizeof(wanted) / sizeof(wanted[0]) };
    const size_t page = (size_t) sysconf(_SC_PAGESIZE) / 8;
    void *at;
    uint64_t far = 0;

    dn_check_equal(dn_dsm_alloc_homes(g->dsm, PAGES * page * 8, wanted, &at), DN_OK);
    volatile uint64_t *datum = at;
    for (unsigned p = 0; p < PAGES; p++) {
        if (wanted[p] == g->rank) {
            datum[p * page] = p;
        }
        far += !is_near(g, wanted[p]);
    }
    barrier(g);
    const uint64_t before = stat_of(g).fetched;
    for (unsigned p = 0; p < PAGES; p++) {
        dn_check_equal(datum[p * page], p);
    }
    dn_check_equal(stat_of(g).fetched - before, far);
    barrier(g);
}

/** The writer changes. One page it writes alone, one also rank 0 now and then, and one all. */
static void pages_move_to_who_writes_them(const ground_t *g)
{
    enum { BARRIERS = 8 };
    const bool moves = 0 == strcmp(homes, "move") && 0 != strcmp("shared", dn_dsm_detects(g->dsm));
    const size_t page = (size_t) sysconf(_SC_PAGESIZE) / 8;
    const uint64_t before = stat_of(g).moved;
    uint64_t expected = 0, i = 0;
    void *at;

    dn_check_equal(dn_dsm_alloc(g->dsm, 2 * page * 8, DN_DSM_HOME_RANK, 0, &at), DN_OK);
    volatile uint64_t *one = at, *two = one + page;
    dn_check_equal(dn_dsm_alloc(g->dsm, page * 8, DN_DSM_HOME_RANK, g->ranks - 1, &at), DN_OK);
    volatile uint64_t *all = at;
    for (uint32_t turn = 1; turn <= 2 * g->ranks; turn++) {
        const uint32_t writer = turn % g->ranks;
        for (uint64_t b = 0; b < BARRIERS; b++) {
            i++;
            if (writer == g->rank) {
                lock(g, 50);
                one[b] = i;
                one[page - 1 - b] = i;
                unlock(g, 50);
                two[1] = i;
            }
            if (writer == g->rank && 0 == b % 2) {
                /* It has no copy when it comes to the barrier. */
                dn_check_equal(dn_dsm_release(g->dsm), DN_OK);
                dn_check_equal(dn_dsm_acquire(g->dsm), DN_OK);
            }
            if (0 == g->rank && 0 == b % 2) {
                two[2] = i;
            }
            all[g->rank] = i;
            barrier(g);
            for (uint64_t earlier = 0; earlier <= b; earlier++) {
                dn_check_equal(one[earlier], i - (b - earlier));
                dn_check_equal(one[page - 1 - earlier], i - (b - earlier));
            }
            dn_check_equal(two[1], i);
            dn_check_equal(two[2], i - b % 2);
            for (uint32_t r = 0; r < g->ranks; r++) {
                dn_check_equal(all[r], i);
            }
            barrier(g);
        }
        expected += writer == g->rank;
    }
    dn_check_equal(stat_of(g).moved - before, moves ? expected : 0);
}

static const struct {
    const char *name;
    void (*fn)(const ground_t *ground);
} tests[] = {
#define TEST(name)  \
    {               \
#        name, name \
    }
    TEST(a_barrier_passes_messages),
    TEST(a_lock_passes_messages),
    TEST(a_lock_hands_over),
    TEST(an_order_is_passed_on),
    TEST(an_inner_lock_forgets_nothing),
    TEST(bytes_of_a_page_have_several_writers),
    TEST(locks_and_barriers_share_a_page),
    TEST(what_is_written_beside_transfers_is_kept),
    TEST(what_another_rank_has_sent_is_noted),
    TEST(what_is_dropped_was_sent_once),
    TEST(more_notices_than_there_is_room_for_are_heard),
    TEST(a_lock_that_was_told_too_much_recovers),
    TEST(a_release_and_an_acquire_need_no_lock),
    TEST(what_nobody_else_reads_stays_at_home),
    TEST(copies_that_their_home_does_not_know_of_are_dropped),
    TEST(reductions_are_the_same_everywhere),
    TEST(threads_use_it_at_once),
    TEST(threads_fetch_many_pages_at_once),
    TEST(touched_memory_goes_to_system_calls),
    TEST(what_the_kernel_takes_out_is_not_forgotten),
    TEST(prefetched_pages_are_here),
    TEST(a_host_fetches_a_page_once),
    TEST(pages_are_made_writable_ahead),
    TEST(pages_have_the_homes_that_they_were_given),
    TEST(pages_move_to_who_writes_them),
#undef TEST
};

/** A process of a run. */
static void process(dn_world_t *world)
{
    dn_dsm_config_t config = folder_config(world->rank, world->size);
    ground_t g = {.world = world, .rank = (unsigned) world->rank, .ranks = (unsigned) world->size};
    void *at;

    dn_check('\0' == wire[0] || bad_wire_begin(wire, g.rank));
    config.devices = device;
    config.settings = settings;
    config.protocol = protocol;
    config.detect = detect;
    config.share = share;
    config.homes = homes;
    config.bytes = 1500 * (uint64_t) sysconf(_SC_PAGESIZE);
    dn_check_equal(dn_dsm_open(&config, &g.dsm), DN_OK);
    const unsigned most = 0 == strcmp(share, "auto")    ? g.ranks
                          : 0 == strcmp(share, "never") ? 1
                                                        : (unsigned) atoi(share);
    for (unsigned r = 0; r < g.ranks; r++) {
        dn_check_equal(dn_dsm_host(g.dsm, r), r / most * most);
    }
    dn_check_equal(dn_dsm_alloc(g.dsm, 16 * PAGE, DN_DSM_HOME_CYCLIC, 0, &at), DN_OK);
    g.far = at;
    dn_check_equal(dn_dsm_alloc(g.dsm, 1200 * PAGE, DN_DSM_HOME_BLOCK, 0, &at), DN_OK);
    g.wide = at;
    dn_check_equal(dn_dsm_alloc(g.dsm, 100, DN_DSM_HOME_RANK, g.ranks - 1, &at), DN_OK);
    g.one = at;
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        if (NULL == only || 0 == strcmp(only, tests[i].name)) {
            world->test = tests[i].name;
            alarm(DN_WORLD_SECONDS + rounds / ROUNDS_A_SECOND);
            tests[i].fn(&g);
            barrier(&g);
        }
    }
    if (NULL != getenv("DN_DSM_STAT") && 0 == g.rank) {
        const dn_dsm_stat_t stat = stat_of(&g);
        char text[1000];
        dn_dsm_stat_text(&stat, text, sizeof(text));
        fputs(text, stdout);
    }
    dn_check_equal(dn_dsm_close(g.dsm), DN_OK);
    dn_check('\0' == wire[0] || 0 != bad_wire_end());
}

/** @return not 0: it failed. */
static int run(int processes)
{
    static char name[100];
    const dn_variant_t variant = {.file = name, .device = device, .settings = settings};

    snprintf(name, sizeof(name), "%s %s %s %d", device, protocol, detect, processes);
    if (0 != folder_make()) {
        return 1;
    }
    const int failed = dn_world_run("opening", &variant, processes, process);
    folder_remove();
    printf("%s  %s\n", failed ? "FAILED" : "passed", name);
    fflush(stdout);
    return failed;
}

static void read_file(const char *path)
{
    char line[400], name[40], value[300];
    FILE *file = fopen(path, "r");

    if (NULL == file) {
        perror(path);
        exit(99);
    }
    while (NULL != fgets(line, sizeof(line), file)) {
        if ('#' == line[0] || 2 != sscanf(line, "%39s %299s", name, value)) {
            continue;
        }
        if (0 == strcmp(name, "device")) {
            snprintf(device, sizeof(device), "%.63s", value);
        } else if (0 == strcmp(name, "rounds")) {
            rounds = (unsigned) atoi(value);
        } else if (0 == strcmp(name, "share")) {
            snprintf(share, sizeof(share), "%.7s", value);
        } else if (0 == strcmp(name, "wire")) {
            snprintf(wire, sizeof(wire), "%.19s", value);
        } else if (0 == strcmp(name, "homes")) {
            snprintf(homes, sizeof(homes), "%.7s", value);
        } else {
            const size_t used = strlen(settings);
            snprintf(settings + used, sizeof(settings) - used, "%s=%s ", name, value);
        }
    }
    fclose(file);
}

/** Why the file is not run with the sanitizer. @return NULL: it is. */
static const char *why_not_sanitized(void)
{
    if (0 == strncmp(device, "ofi", 3)) {
        return "sanitizers do not see what libfabric does with memory and threads";
    }
    if ('\0' != wire[0]) {
        return "with a sanitizer, datagrams that are lost take a minute to come again";
    }
    if (!ADDRESS_SANITIZED && 0 == strncmp(device, "ipnuma", 6) && 1 < atoi(share)) {
        return "with the thread sanitizer it takes a minute; ipnuma.dsm and hosts.dsm make the same calls";
    }
    return NULL;
}

static const char *const protocols[] = {"lazy", "scope", "eager", "update"};

enum { PROTOCOLS = sizeof(protocols) / sizeof(protocols[0]), WAYS_MAX = 8 };

/** Find the ways of detection that work here. @return their number. */
static size_t find_ways(const char *ways[WAYS_MAX])
{
    size_t count = 0;
    const char *name;

    for (size_t i = 0; NULL != (name = dn_dsm_detect_name(i)); i++) {
        const char *why = dn_dsm_detect_why_not(name);
        if (NULL != why) {
            printf("not here  %s: %s\n", name, why);
        } else if (count < WAYS_MAX) {
            ways[count++] = name;
        }
    }
    return count;
}

/** Each protocol by each way, and each number of processes with each protocol and with each way. @return not 0: something failed. */
static int run_all(const char *const *ways, size_t count)
{
    const int hosts_of = atoi(share);
    int failed = 0;

    for (size_t p = 0; p < PROTOCOLS; p++) {
        for (size_t d = 0; d < count; d++) {
            protocol = protocols[p];
            detect = ways[d];
            if (1 < hosts_of) {
                /* Two hosts, and a third one that has less. */
                failed |= run(2 * hosts_of) | run(2 * hosts_of + 1);
                continue;
            }
            failed |= run((int) (2 + (p + d) % 3));
            if ('\0' != wire[0]) {
                /* Each protocol once: what was lost takes long. */
                break;
            }
            failed |= 0 == d ? run((int) (2 + (p + 2) % 3)) : 0;
        }
    }
    return failed;
}

/** Each protocol once, by each way in turn. @return not 0: something failed. */
static int run_sanitized(const char *const *ways, size_t count)
{
    const int hosts_of = atoi(share);
    int failed = 0;

    for (size_t p = 0; p < PROTOCOLS; p++) {
        protocol = protocols[p];
        detect = ways[p % count];
        failed |= run(1 < hosts_of ? 2 * hosts_of : (int) (2 + p % 2));
    }
    return failed;
}

int main(int argc, char **argv)
{
    const char *ways[WAYS_MAX];

    if (2 > argc) {
        fprintf(stderr, "usage: litmus FILE.dsm [PROTOCOL DETECT PROCESSES [TEST]]\n");
        return 99;
    }
    read_file(argv[1]);
    const char *wanted = getenv("DN_DSM_ROUNDS"), *at_length = getenv("LONG");
    if (NULL != wanted) {
        rounds = (unsigned) atoi(wanted);
    } else if (NULL != at_length && '\0' != *at_length) {
        rounds = ROUNDS_LONG;
    } else if (SANITIZED && ROUNDS_SANITIZED < rounds) {
        rounds = ROUNDS_SANITIZED;
    }
    const char *why_not = SANITIZED && 5 > argc ? why_not_sanitized() : NULL;
    if (NULL != why_not) {
        printf("skipped: %s\n", why_not);
        return 77;
    }
    if (5 <= argc) {
        protocol = argv[2];
        detect = argv[3];
        only = argv[5];
        return run(atoi(argv[4]));
    }
    const size_t count = find_ways(ways);
    return SANITIZED ? run_sanitized(ways, count) : run_all(ways, count);
}
