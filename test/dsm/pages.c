/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Mappings of a peer's memory (dn_page.h), over each device that was built, with each way to detect accesses that works here, and with the one
 * that is chosen by itself:
 *
 *   pages [DEVICE DETECT TEST]
 *
 * DETECT "auto" is the choice.
 */
#include "dn_config.h"

#include "dn_page.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "dn_dsm.h"
#include "errors.h"
#include "sanitizers.h"

/** A page. */
#define PAGE ((uint64_t) sysconf(_SC_PAGESIZE))

enum { ROUNDS = 100, WRITERS = 3, WRITER_PAGES = 6, WRITER_ROUNDS = 300, TOUCHED_PAGES = 1024 };

static const char *detect; /**< of the run */

/** A segment of memory of the program, and its key. */
static uint8_t *registered(dn_world_t *world, uint64_t len)
{
    dn_segment_t *segment;
    uint8_t *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    dn_check(MAP_FAILED != memory);
    dn_check_equal(dn_segment_register(world->port, memory, len, &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    return memory;
}

/** Rank 0 has a segment of so many bytes; all know its key, and are connected. @return it in rank 0, else NULL. */
static uint8_t *shared(dn_world_t *world, uint64_t len)
{
    dn_segment_t *segment = NULL;
    uint8_t *memory = NULL;

    world->job.threads = 1;
    dn_world_start(world);
    if (0 == world->rank && 0 == strcmp(detect, "auto")) {
        dn_check_equal(dn_segment_alloc(world->port, len, &segment), DN_OK);
        memory = dn_segment_base(segment);
        dn_segment_key(segment, &world->me->key[0]);
    } else if (0 == world->rank) {
        /* Of a length that is no multiple of a page. */
        memory = registered(world, len);
    }
    dn_world_barrier(world);
    return memory;
}

static uint8_t *mapped(dn_world_t *world, uint64_t off, uint64_t len, dn_mapping_t **map_p)
{
    const dn_key_t *key = &world->board->seat[0].key[0];

    dn_check_equal(dn_page_map(world->port, world->peer[0], key, off, len, detect, map_p), DN_OK);
    return dn_page_base(*map_p);
}

static bool copies(const dn_mapping_t *map)
{
    return 0 != strcmp("shared", dn_page_detects(map));
}

static dn_page_stat_t stat_of(const dn_mapping_t *map)
{
    dn_page_stat_t stat;

    dn_page_stat(map, &stat);
    return stat;
}

static void unmap(dn_mapping_t *map)
{
    dn_check_equal(dn_page_unmap(map), DN_OK);
}

static void release(dn_mapping_t *map)
{
    dn_check_equal(dn_page_release(map), DN_OK);
}

static void acquire(dn_mapping_t *map)
{
    dn_check_equal(dn_page_acquire(map), DN_OK);
}

/** From a place that is no multiple of anything, to the end of the segment, which is none either. */
static void loads_find_what_the_owner_has(dn_world_t *world)
{
    const uint64_t len = 300 * PAGE + 77, off = 13;
    uint8_t *memory = shared(world, len);

    if (NULL != memory) {
        dn_test_fill(memory, len, 5);
        dn_world_barrier(world);
    } else {
        dn_mapping_t *map;
        dn_world_barrier(world);
        volatile const uint8_t *at = mapped(world, off, len - off, &map);
        dn_check(!copies(map) || 0 == (uintptr_t) at % PAGE);
        dn_check_equal(at[7 * PAGE], dn_test_byte(5, off + 7 * PAGE));
        dn_check_equal(stat_of(map).fetched, copies(map));
        /* The rest by two PULLs, of those ahead and behind. */
        dn_check_equal(dn_page_touch(map, dn_page_base(map), 100 * PAGE, 0), DN_OK);
        dn_check_equal(stat_of(map).pulls, copies(map) ? 3 : 0);
        for (uint64_t i = 0; i < len - off; i++) {
            if (at[i] != dn_test_byte(5, off + i)) {
                dn_check_equal(at[i], dn_test_byte(5, off + i));
            }
        }
        dn_check_equal(stat_of(map).fetched, copies(map) ? 301 : 0);
        unmap(map);
    }
    dn_world_stop(world);
}

static void stores_are_sent_by_a_release(dn_world_t *world)
{
    const uint64_t len = 20 * PAGE;
    uint8_t *memory = shared(world, len);
    dn_mapping_t *map = NULL;

    if (NULL == memory) {
        uint8_t *at = mapped(world, 0, len, &map);
        for (uint64_t page = 0; page < 10; page++) {
            at[page * PAGE + 8] = (uint8_t) (page + 1);
            at[page * PAGE + 9] = 9;
            at[page * PAGE + 800] = 8;
        }
    }
    dn_world_barrier(world);
    /* Over shm "auto" is that memory itself. */
    if (NULL != memory && (0 != strcmp(detect, "auto") || 0 != strcmp(world->variant->device, "shm"))) {
        dn_check_equal(memory[8], 0);
    }
    if (NULL != memory) {
        /* What nobody else stores to stays, in the same pages. */
        memory[7] = 70;
        memory[10] = 100;
    }
    dn_world_barrier(world);
    if (NULL == memory) {
        release(map);
        dn_check_equal(stat_of(map).pushes, copies(map));
        dn_check_equal(stat_of(map).blocks, copies(map) ? 20 : 0);
        dn_check_equal(stat_of(map).bytes, copies(map) ? 30 : 0);
        /* Nothing is left to send. */
        release(map);
        dn_check_equal(stat_of(map).pushes, copies(map));
    }
    dn_world_barrier(world);
    for (uint64_t page = 0; NULL != memory && page < 10; page++) {
        dn_check_equal(memory[page * PAGE + 8], page + 1);
        dn_check_equal(memory[page * PAGE + 9], 9);
        dn_check_equal(memory[page * PAGE + 800], 8);
    }
    dn_check(NULL == memory || (70 == memory[7] && 100 == memory[10]));
    dn_world_barrier(world);
    if (NULL == memory) {
        /* A page that was sent is written again: it needs no other twin. */
        ((uint8_t *) dn_page_base(map))[8] = 200;
        unmap(map);
    }
    dn_world_barrier(world);
    dn_check(NULL == memory || (200 == memory[8] && 9 == memory[9] && 70 == memory[7]));
    dn_world_stop(world);
}

/** More blocks than one PUSH has. */
static void many_stores_are_sent(dn_world_t *world)
{
    const uint64_t len = 40 * PAGE;
    uint8_t *memory = shared(world, len);

    if (NULL == memory) {
        dn_mapping_t *map;
        uint8_t *at = mapped(world, 0, len, &map);
        for (uint64_t i = 0; i < len; i += 2) {
            at[i] = 1;
        }
        release(map);
        dn_check(!copies(map) || (stat_of(map).pushes > 1 && stat_of(map).pushes < 40));
        unmap(map);
    }
    dn_world_barrier(world);
    for (uint64_t i = 0; NULL != memory && i < len; i++) {
        if (memory[i] != 1 - i % 2) {
            dn_check_equal(memory[i], 1 - i % 2);
        }
    }
    dn_world_stop(world);
}

/** The owner stores and gives a sign; the other answers. Each sign and each answer has data on several pages. */
static void what_is_ordered_is_seen(dn_world_t *world)
{
    uint64_t *word = (uint64_t *) (void *) shared(world, 4 * PAGE);
    const bool owner = NULL != word;
    dn_mapping_t *map = NULL;

    word = owner ? word : (uint64_t *) (void *) mapped(world, 0, 4 * PAGE, &map);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        for (uint64_t page = 0; owner && page < 4; page++) {
            dn_store_relaxed(&word[page * PAGE / 8 + i % 7], i);
        }
        if (owner) {
            dn_world_post(world, 0, i);
            dn_world_await(world, 1, 0, i);
        } else {
            dn_world_await(world, 0, 0, i);
            acquire(map);
        }
        for (uint64_t page = 0; page < 4; page++) {
            uint64_t *answer = &word[page * PAGE / 8 + 100 + i % 5];
            if (owner) {
                dn_check_equal(dn_load_relaxed(answer), i * i);
            } else {
                dn_check_equal(dn_load_relaxed(&word[page * PAGE / 8 + i % 7]), i);
                dn_store_relaxed(answer, i * i);
            }
        }
        if (!owner) {
            release(map);
            dn_world_post(world, 0, i);
        }
    }
    if (!owner) {
        unmap(map);
    }
    dn_world_stop(world);
}

/** Three processes, the owner among them, store to lines of one page by turns, and find all in the end. */
static void lines_of_a_page_have_several_writers(dn_world_t *world)
{
    const uint64_t lines = PAGE / 64;
    uint8_t *memory = shared(world, PAGE);
    dn_mapping_t *map = NULL;
    volatile uint8_t *at = NULL != memory ? memory : mapped(world, 0, PAGE, &map);

    for (unsigned round = 1; round <= 20; round++) {
        if (NULL != map) {
            acquire(map);
            (void) at[0];
        }
        /* All have the page as it was. */
        dn_world_barrier(world);
        for (uint64_t line = (uint64_t) world->rank; line < lines; line += (uint64_t) world->size) {
            at[line * 64 + 5] = (uint8_t) (round + line);
        }
        if (NULL != map) {
            release(map);
        }
        dn_world_barrier(world);
        if (NULL != map) {
            acquire(map);
        }
        for (uint64_t line = 0; line < lines; line++) {
            dn_check_equal(at[line * 64 + 5], (uint8_t) (round + line));
        }
        dn_world_barrier(world);
    }
    if (NULL != map) {
        unmap(map);
    }
    dn_world_stop(world);
}

static void an_acquire_sends_what_was_stored(dn_world_t *world)
{
    uint8_t *memory = shared(world, 2 * PAGE);
    dn_mapping_t *map;

    if (NULL == memory) {
        volatile uint8_t *at = mapped(world, 0, 2 * PAGE, &map);
        at[3] = 3;
        (void) at[PAGE];
        acquire(map);
        dn_check_equal(at[3], 3);
        dn_check_equal(stat_of(map).dropped, copies(map) ? 2 : 0);
        unmap(map);
    }
    dn_world_barrier(world);
    dn_check(NULL == memory || 3 == memory[3]);
    dn_world_stop(world);
}

/** A mapping ends within a page, of which the segment has more. */
static void nothing_is_sent_behind_the_end(dn_world_t *world)
{
    uint8_t *memory = shared(world, 3 * PAGE);

    if (NULL != memory) {
        memset(memory, 50, 3 * PAGE);
    }
    dn_world_barrier(world);
    if (NULL == memory) {
        dn_mapping_t *map;
        volatile uint8_t *at = mapped(world, 5, PAGE + 3, &map);
        dn_check_equal(at[PAGE + 2], 50);
        if (copies(map)) {
            dn_check_equal(at[PAGE + 3], 0);
            for (unsigned i = 1; i < 20; i++) {
                at[PAGE + i] = 1;
            }
        }
        at[PAGE + 2] = 1;
        release(map);
        acquire(map);
        dn_check_equal(at[PAGE + 2], 1);
        unmap(map);
    }
    dn_world_barrier(world);
    if (NULL != memory) {
        dn_check_equal(memory[5 + PAGE + 2], 1);
        for (uint64_t i = 5 + PAGE + 3; i < 3 * PAGE; i++) {
            dn_check_equal(memory[i], 50);
        }
    }
    dn_world_stop(world);
}

static void mappings_have_nothing_to_do_with_each_other(dn_world_t *world)
{
    uint8_t *memory = shared(world, 2 * PAGE);

    if (NULL == memory) {
        dn_mapping_t *map[2];
        volatile uint8_t *at[2] = {mapped(world, 0, 2 * PAGE, &map[0]), mapped(world, 1, PAGE, &map[1])};
        dn_check_equal(at[0][1], 0);
        dn_check_equal(at[1][0], 0);
        at[0][1] = 1;
        at[1][1] = 2;
        dn_check_equal(at[1][0], copies(map[1]) ? 0 : 1);
        release(map[0]);
        acquire(map[1]);
        dn_check_equal(at[1][0], 1);
        unmap(map[1]);
        /* The other one is detected as before, and the byte of the first one is there. */
        acquire(map[0]);
        dn_check_equal(at[0][2], 2);
        unmap(map[0]);
    }
    dn_world_barrier(world);
    dn_check(NULL == memory || (1 == memory[1] && 2 == memory[2]));
    dn_world_stop(world);
}

/** Also of a process that is its own peer. */
static void an_own_segment_is_mapped(dn_world_t *world)
{
    uint8_t *memory = shared(world, PAGE);
    dn_mapping_t *map;

    dn_world_connect_to(world, 0);
    volatile uint8_t *at = mapped(world, 0, PAGE, &map);
    memory[0] = 1;
    dn_check_equal(at[0], 1);
    at[1] = 2;
    release(map);
    dn_check_equal(memory[1], 2);
    unmap(map);
    dn_world_stop(world);
}

static void pages_that_the_kernel_takes_out_come_back(dn_world_t *world)
{
    uint8_t *memory = shared(world, 3 * PAGE);

    if (NULL == memory) {
        dn_mapping_t *map;
        uint8_t *base = mapped(world, 0, 3 * PAGE, &map);
        volatile uint8_t *at = base;
        at[1] = 1;
        (void) at[PAGE];
        if (copies(map)) {
            dn_check_equal(madvise(base, 3 * PAGE, MADV_DONTNEED), 0);
        }
        dn_check_equal(at[1], 1);
        at[PAGE + 2] = 2;
        at[2 * PAGE] = 3;
        if (copies(map)) {
            dn_check_equal(madvise(base, 3 * PAGE, MADV_DONTNEED), 0);
        }
        release(map);
        dn_check_equal(at[PAGE + 2], 2);
        unmap(map);
    }
    dn_world_barrier(world);
    dn_check(NULL == memory || (1 == memory[1] && 2 == memory[PAGE + 2] && 3 == memory[2 * PAGE]));
    dn_world_stop(world);
}

/** System calls and libdimmnet get memory that was touched. */
static void touched_pages_are_for_system_calls(dn_world_t *world)
{
    uint8_t *memory = shared(world, 4 * PAGE);

    if (NULL != memory) {
        dn_test_fill(memory, 4 * PAGE, 3);
    }
    dn_world_barrier(world);
    if (NULL == memory) {
        dn_mapping_t *map;
        uint8_t *at = mapped(world, 0, 4 * PAGE, &map);
        int pipes[2];
        dn_xfer_t xfer = {
            .local = at + 3 * PAGE, .key = &world->board->seat[0].key[0], .roff = 7, .len = 100};
        dn_check_equal(pipe(pipes), 0);
        /* The end of one page and the beginning of the next: a pipe has room for that. */
        dn_check_equal(dn_page_touch(map, at + PAGE - 100, 200, 0), DN_OK);
        dn_check_equal(write(pipes[1], at + PAGE - 100, 200), 200);
        dn_check_equal(dn_page_touch(map, at + 2 * PAGE - 100, 200, 1), DN_OK);
        dn_check_equal(read(pipes[0], at + 2 * PAGE - 100, 200), 200);
        dn_check_equal(dn_page_touch(map, at + 3 * PAGE, 100, 1), DN_OK);
        dn_check_equal(dn_world_pull(world, world->peer[0], &xfer), DN_OK);
        dn_check_equal(stat_of(map).faults, 0);
        unmap(map);
    }
    dn_world_barrier(world);
    if (NULL != memory) {
        for (uint64_t i = 0; i < 200; i++) {
            dn_check_equal(memory[2 * PAGE - 100 + i], dn_test_byte(3, PAGE - 100 + i));
        }
        for (uint64_t i = 0; i < 100; i++) {
            dn_check_equal(memory[3 * PAGE + i], dn_test_byte(3, 7 + i));
        }
        dn_check_equal(memory[2 * PAGE + 100], dn_test_byte(3, 2 * PAGE + 100));
    }
    dn_world_stop(world);
}

typedef struct writer {
    uint64_t *word;
    unsigned number;
    bool right;
} writer_t;

/** Count up words of one's own, in pages that all write. */
static void *count_up(void *arg)
{
    writer_t *writer = arg;

    for (uint64_t i = 1; i <= WRITER_ROUNDS; i++) {
        for (unsigned page = 0; page < WRITER_PAGES; page++) {
            uint64_t *word = &writer->word[page * PAGE / 8 + writer->number];
            writer->right = writer->right && i - 1 == *word;
            *word = i;
        }
        sched_yield();
    }
    return NULL;
}

/** Threads load and store while another one releases and acquires. */
static void threads_lose_no_store(dn_world_t *world)
{
    uint64_t *memory = (uint64_t *) (void *) shared(world, WRITER_PAGES * PAGE);

    if (NULL == memory) {
        dn_mapping_t *map;
        writer_t writer[WRITERS];
        pthread_t thread[WRITERS];
        uint64_t *word = (uint64_t *) (void *) mapped(world, 0, WRITER_PAGES * PAGE, &map);
        for (unsigned i = 0; i < WRITERS; i++) {
            writer[i] = (writer_t){.word = word, .number = i, .right = true};
            dn_check_equal(pthread_create(&thread[i], NULL, count_up, &writer[i]), 0);
        }
        for (unsigned i = 0; i < WRITER_ROUNDS; i++) {
            if (0 == i % 3) {
                acquire(map);
            } else {
                release(map);
            }
            sched_yield();
        }
        for (unsigned i = 0; i < WRITERS; i++) {
            pthread_join(thread[i], NULL);
            dn_check(writer[i].right);
        }
        unmap(map);
    }
    dn_world_barrier(world);
    for (unsigned i = 0; NULL != memory && i < WRITERS * WRITER_PAGES; i++) {
        dn_check_equal(memory[i % WRITER_PAGES * PAGE / 8 + i / WRITER_PAGES], WRITER_ROUNDS);
    }
    dn_world_stop(world);
}

typedef struct acquirer {
    dn_mapping_t *map;
    uint32_t acquires; /**< atomic */
    uint32_t ends;     /**< the same */
} acquirer_t;

static void *acquire_all_the_time(void *arg)
{
    acquirer_t *acquirer = arg;

    while (0 == dn_load_relaxed_u32(&acquirer->ends)) {
        acquire(acquirer->map);
        dn_store_relaxed_u32(&acquirer->acquires, acquirer->acquires + 1);
    }
    return NULL;
}

/** A thread has many pages while another one acquires all the time: no page is fetched more than twice. */
static void a_thread_that_acquires_keeps_no_other_from_its_pages(dn_world_t *world)
{
    uint8_t *memory = shared(world, TOUCHED_PAGES * PAGE);

    if (NULL == memory) {
        acquirer_t acquirer = {0};
        pthread_t thread;
        uint8_t *at = mapped(world, 0, TOUCHED_PAGES * PAGE, &acquirer.map);
        dn_check_equal(pthread_create(&thread, NULL, acquire_all_the_time, &acquirer), 0);
        while (10 > dn_load_relaxed_u32(&acquirer.acquires)) {
            sched_yield();
        }
        dn_check_equal(dn_page_touch(acquirer.map, at, TOUCHED_PAGES * PAGE, 0), DN_OK);
        dn_store_relaxed_u32(&acquirer.ends, 1);
        pthread_join(thread, NULL);
        dn_check(stat_of(acquirer.map).fetched <= 2 * TOUCHED_PAGES);
        unmap(acquirer.map);
    }
    dn_world_stop(world);
}

static void calls_refuse_what_is_wrong(dn_world_t *world)
{
    (void) shared(world, 2 * PAGE);
    const dn_key_t *key = &world->me->key[0];
    dn_mapping_t *map = NULL;

    dn_world_connect_to(world, 0);
    dn_peer_t *peer = world->peer[0];
    refused(dn_page_map(world->port, peer, key, 0, 0, detect, &map), DN_ERR_PARAM, "at least one byte");
    refused(dn_page_map(world->port, peer, key, 1, 2 * PAGE, detect, &map), DN_ERR_RANGE,
            "leave the segment");
    refused(dn_page_map(world->port, peer, key, UINT64_MAX, 2, detect, &map), DN_ERR_RANGE,
            "leave the segment");
    refused(dn_page_map(world->port, peer, key, 0, 1, "never", &map), DN_ERR_PARAM, "\"never\"");
    dn_key_t made_up = *key;
    made_up.len = UINT64_MAX;
    refused(dn_page_map(world->port, peer, &made_up, 0, UINT64_MAX, "segv", &map), DN_ERR_NOMEM,
            "more than there are numbers");
    uint8_t *at = mapped(world, PAGE, PAGE, &map);
    refused(dn_page_touch(map, at, PAGE + 1, 0), DN_ERR_RANGE, "are not in the mapping");
    refused(dn_page_touch(map, at - 1, 1, 0), DN_ERR_RANGE, "are not in the mapping");
    dn_check_equal(dn_page_touch(map, at + PAGE, 0, 0), DN_OK);
    unmap(map);
    dn_world_stop(world);
}

/** Memory that is locked is here, whether it was accessed or not: "uffd" and "scan" do not detect the first access. */
static void locked_memory_is_refused_or_detected(dn_world_t *world)
{
    uint8_t *memory = shared(world, PAGE);
    const dn_key_t *key = &world->me->key[0];
    dn_mapping_t *map = NULL;
    struct rlimit most;

    memory[1] = 1;
    dn_world_connect_to(world, 0);
    dn_check_equal(getrlimit(RLIMIT_MEMLOCK, &most), 0);
    /* By syscall(), as sanitizers do nothing for mlockall(). */
    if ((0 != geteuid() && (rlim_t) 64 << 20 > most.rlim_cur) || 0 != syscall(SYS_mlockall, MCL_FUTURE)) {
        fprintf(stderr, "skipped: this process may not lock enough memory (ulimit -l)\n");
        dn_world_stop(world);
        return;
    }
    if (0 == strcmp(detect, "uffd") || 0 == strcmp(detect, "scan")) {
        refused(dn_page_map(world->port, world->peer[0], key, 0, PAGE, detect, &map), DN_ERR_UNSUPPORTED,
                "memory locked");
    } else {
        dn_check_equal(mapped(world, 0, PAGE, &map)[1], 1);
        unmap(map);
    }
    dn_check_equal(syscall(SYS_munlockall), 0);
    dn_world_stop(world);
}

#ifndef __SANITIZE_THREAD__
static dn_mapping_t *of_the_parent;

static void load_in_a_child(dn_world_t *world)
{
    (void) world;
    (void) *(volatile uint8_t *) dn_page_base(of_the_parent);
}

static volatile uint8_t *unmapped;

static void load_what_is_unmapped(dn_world_t *world)
{
    (void) world;
    (void) *unmapped;
}

/** A child has no mapping of copies; after it was unmapped nobody has. */
static void other_accesses_end_the_process(dn_world_t *world)
{
    char said[2000];

    (void) shared(world, PAGE);
    dn_world_connect_to(world, 0);
    (void) mapped(world, 0, PAGE, &of_the_parent);
    if (copies(of_the_parent)) {
        /* A library that a device uses may have a handler of its own for the signal. */
        dn_check(0 != in_a_child(world, load_in_a_child, said, sizeof(said)));
        dn_check(NULL != strstr(said, "after fork() in the child"));
        unmapped = dn_page_base(of_the_parent);
        unmap(of_the_parent);
        dn_check(0 != in_a_child(world, load_what_is_unmapped, said, sizeof(said)));
        dn_check(NULL == strstr(said, "mapped pages"));
    } else {
        /* A child has that one, too, and it stays until the peer is disconnected. */
        dn_check_equal(in_a_child(world, load_in_a_child, said, sizeof(said)), 0);
        unmapped = dn_page_base(of_the_parent);
        unmap(of_the_parent);
        dn_check_equal(*unmapped, 0);
    }
    dn_world_stop(world);
}
#endif

/** Is a signal blocked? */
static bool is_blocked(int number)
{
    sigset_t blocked;

    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    return 0 != sigismember(&blocked, number);
}

static volatile sig_atomic_t blocks_what_it_asked_for;

static void earlier_handler(int number)
{
    blocks_what_it_asked_for = is_blocked(number) && is_blocked(SIGUSR1);
}

/** The handler that was there before is called as if it were the only one. */
static void an_earlier_handler_has_signals_blocked(dn_world_t *world)
{
    struct sigaction earlier = {.sa_handler = earlier_handler};
    dn_mapping_t *map;

    sigemptyset(&earlier.sa_mask);
    sigaddset(&earlier.sa_mask, SIGUSR1);
    (void) shared(world, PAGE);
    dn_world_connect_to(world, 0);
    dn_check_equal(sigaction(SIGSEGV, &earlier, NULL), 0);
    (void) mapped(world, 0, PAGE, &map);
    raise(SIGSEGV);
    dn_check(blocks_what_it_asked_for);
    dn_check(!is_blocked(SIGSEGV) && !is_blocked(SIGUSR1));
    unmap(map);
    dn_world_stop(world);
}

static volatile sig_atomic_t calls;

static void handler_of_one_call(int number)
{
    (void) number;
    if (1 < ++calls) {
        _exit(EXIT_FAILURE);
    }
}

static void fault_twice(dn_world_t *world)
{
    const struct sigaction earlier = {.sa_handler = handler_of_one_call, .sa_flags = SA_RESETHAND};
    volatile uintptr_t nowhere = 16;
    dn_mapping_t *map;

    (void) shared(world, PAGE);
    dn_world_connect_to(world, 0);
    dn_check_equal(sigaction(SIGSEGV, &earlier, NULL), 0);
    (void) mapped(world, 0, PAGE, &map);
    *(volatile uint8_t *) nowhere = 1;
}

/** As the kernel would. */
static void an_earlier_handler_for_one_call_has_one(dn_world_t *world)
{
    char said[2000];
    const int status = in_a_child(world, fault_twice, said, sizeof(said));

    dn_check(WIFSIGNALED(status) && SIGSEGV == WTERMSIG(status));
}

#ifdef __x86_64__
static void execute_a_page(dn_world_t *world)
{
    dn_mapping_t *map;

    (void) shared(world, PAGE);
    dn_world_connect_to(world, 0);
    ((void (*)(void)) mapped(world, 0, PAGE, &map))();
}

static void a_page_that_is_executed_ends_the_process(dn_world_t *world)
{
    char said[2000];
    const int status = in_a_child(world, execute_a_page, said, sizeof(said));

    /* A sanitizer ends it by an exit. */
    dn_check(0 != status && !(WIFSIGNALED(status) && SIGALRM == WTERMSIG(status)));
}
#endif

/** Rank 1 has a segment and dies when the other has mapped it. */
static void own_and_die(dn_world_t *world)
{
    (void) registered(world, 4 * PAGE);
    dn_world_post(world, 0, 1);
    dn_world_await(world, 0, 0, 1);
    dn_world_die(world);
}

/** A mapping of the segment of rank 1, which is dead. One page is here and written, one is not. */
static dn_mapping_t *mapped_of_the_dead(dn_world_t *world)
{
    dn_mapping_t *map;

    dn_world_await(world, 1, 0, 1);
    dn_check_equal(
        dn_page_map(world->port, world->peer[1], &world->board->seat[1].key[0], 0, 4 * PAGE, detect, &map),
        DN_OK);
    *(volatile uint8_t *) dn_page_base(map) = 1;
    dn_world_post(world, 0, 1);
    while (!dn_world_is_dead(world, 1)) {
        sched_yield();
    }
    return map;
}

static void a_release_tells_that_the_owner_is_lost(dn_world_t *world)
{
    dn_world_start(world);
    if (1 == world->rank) {
        own_and_die(world);
    }
    dn_mapping_t *map = mapped_of_the_dead(world);
    volatile uint8_t *at = dn_page_base(map);
    dn_test_log_expect();
    dn_check_equal(dn_page_touch(map, (uint8_t *) dn_page_base(map) + 3 * PAGE, 1, 0), DN_ERR_UNREACH);
    dn_check_equal(at[0], 1);
    dn_check_equal(dn_page_release(map), DN_ERR_UNREACH);
    /* Nothing is sent again. */
    dn_check_equal(dn_page_release(map), DN_OK);
    at[0] = 2;
    dn_check_equal(dn_page_acquire(map), DN_ERR_UNREACH);
    dn_check_equal(dn_page_unmap(map), DN_OK);
    dn_close(world->port);
}

static void load_from_the_dead(dn_world_t *world)
{
    dn_world_start(world);
    (void) ((volatile uint8_t *) dn_page_base(mapped_of_the_dead(world)))[3 * PAGE];
}

static void a_load_ends_who_needs_a_page_of_the_dead(dn_world_t *world)
{
    char said[2000];

    if (1 == world->rank) {
        dn_world_start(world);
        own_and_die(world);
    }
    const int status = in_a_child(world, load_from_the_dead, said, sizeof(said));
    dn_check(WIFEXITED(status) && EXIT_FAILURE == WEXITSTATUS(status));
    dn_check(NULL != strstr(said, "cannot be fetched from process 1"));
    dn_check(NULL != strstr(said, dn_strerror(DN_ERR_UNREACH)));
}

/** Memory that its owner cannot write, either. */
static void a_release_tells_what_cannot_be_stored(dn_world_t *world)
{
    uint8_t *memory = shared(world, 2 * PAGE);

    if (NULL != memory) {
        dn_check_equal(mprotect(memory, 2 * PAGE, PROT_READ), 0);
        dn_world_barrier(world);
    } else {
        dn_mapping_t *map;
        dn_world_barrier(world);
        volatile uint8_t *at = mapped(world, 0, 2 * PAGE, &map);
        at[1] = 1;
        refused(dn_page_release(map), DN_ERR_RANGE, "refuses to write");
        dn_check_equal(at[1], 1);
        acquire(map);
        dn_check_equal(at[1], 0);
        unmap(map);
    }
    dn_world_stop(world);
}

#ifndef __SANITIZE_THREAD__
/** dn_handler_fn_t. */
static void load_in_a_handler(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) tag;
    (void) data;
    (void) len;
    (void) arg;
    (void) ((volatile uint8_t *) dn_page_base(of_the_parent))[PAGE];
}

static void load_while_a_message_comes(dn_world_t *world)
{
    dn_world_listen(world, load_in_a_handler);
    dn_world_connect(world);
    dn_world_await(world, 0, 0, 1);
    volatile uint8_t *at = mapped(world, 0, 64 * PAGE, &of_the_parent);
    dn_world_post(world, 0, 1);
    dn_world_sleep(world, 0, 0, 2);
    for (unsigned page = 2; page < 64; page++) {
        (void) at[page * PAGE];
    }
}

static void a_function_that_progress_calls_loads_nothing(dn_world_t *world)
{
    char said[2000];

    if (1 == world->rank) {
        const int status = in_a_child(world, load_while_a_message_comes, said, sizeof(said));
        dn_check(0 != status);
        dn_check(NULL != strstr(said, "in a function that progress calls"));
        dn_world_post(world, 0, 2);
        return;
    }
    dn_world_start(world);
    const uint8_t *memory = registered(world, 64 * PAGE);
    dn_world_post(world, 0, 1);
    dn_world_await(world, 1, 0, 1);
    dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 0, memory, 8);
    dn_world_post(world, 0, 2);
    dn_world_await(world, 1, 0, 2);
    dn_close(world->port);
}
#endif

/** What a test needs: COPIES, and not the peer's memory itself; QUICK, that a death is known soon, or that it is the only way for which the
 * test waits. */
enum { COPIES = 1 << 0, NETWORK = 1 << 1, QUICK = 1 << 2, NEAR = 1 << 3 };

static const struct {
    const char *name;
    int processes;
    dn_world_fn_t fn;
    unsigned needs;
} tests[] = {
#define TEST(name, processes, needs)  \
    {                                 \
#        name, processes, name, needs \
    }
    TEST(loads_find_what_the_owner_has, 2, 0),
    TEST(stores_are_sent_by_a_release, 2, 0),
    TEST(many_stores_are_sent, 2, 0),
    TEST(what_is_ordered_is_seen, 2, 0),
    TEST(lines_of_a_page_have_several_writers, 3, 0),
    TEST(an_acquire_sends_what_was_stored, 2, 0),
    TEST(nothing_is_sent_behind_the_end, 2, 0),
    TEST(mappings_have_nothing_to_do_with_each_other, 2, 0),
    TEST(an_own_segment_is_mapped, 1, 0),
    TEST(pages_that_the_kernel_takes_out_come_back, 2, 0),
    TEST(touched_pages_are_for_system_calls, 2, 0),
    TEST(threads_lose_no_store, 2, 0),
    TEST(a_thread_that_acquires_keeps_no_other_from_its_pages, 2, 0),
    TEST(calls_refuse_what_is_wrong, 1, 0),
#ifndef __SANITIZE_THREAD__
    /* The thread sanitizer maps memory of its own where no page is any more: a load finds it, and goes on. */
    TEST(other_accesses_end_the_process, 1, 0),
#endif
    TEST(locked_memory_is_refused_or_detected, 1, 0),
    TEST(an_earlier_handler_has_signals_blocked, 1, COPIES),
    TEST(an_earlier_handler_for_one_call_has_one, 1, COPIES),
#ifdef __x86_64__
    TEST(a_page_that_is_executed_ends_the_process, 1, COPIES),
#endif
    /* Elsewhere a PUSH there ends the owner. */
    TEST(a_release_tells_what_cannot_be_stored, 2, COPIES | NEAR),
    TEST(a_release_tells_that_the_owner_is_lost, 2, COPIES | QUICK),
    TEST(a_load_ends_who_needs_a_page_of_the_dead, 2, COPIES | QUICK),
#ifndef __SANITIZE_THREAD__
    /* Elsewhere a PULL ends without progress. The thread sanitizer blocks all signals in a handler. */
    TEST(a_function_that_progress_calls_loads_nothing, 2, COPIES | NETWORK),
#endif
#undef TEST
};

/** @param[in] name  Of the way; "auto": it is chosen. @return not 0: something failed. */
static int run(const dn_variant_t *variant, const char *name, const char *only)
{
    const bool near = 0 == strcmp(variant->device, "shm");
    const unsigned has = (0 != strcmp(name, "auto") ? COPIES : 0) | (near ? NEAR : NETWORK)
                         | (near || 0 == strcmp(name, "segv") ? QUICK : 0);
    int failed = 0;

    detect = name;
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        if (tests[i].needs != (tests[i].needs & has) || (NULL != only && 0 != strcmp(only, tests[i].name))) {
            continue;
        }
        const int one = dn_world_run(tests[i].name, variant, tests[i].processes, tests[i].fn);
        printf("%s  %s %s %s\n", one ? "FAILED" : "passed", variant->device, name, tests[i].name);
        fflush(stdout);
        failed |= one;
    }
    return failed;
}

int main(int argc, char **argv)
{
    static const dn_variant_t variant[] = {
        {.file = "pages", .device = "shm"},
        {.file = "pages", .device = "shm", .settings = "fault=push:again/3,pull:again/3,all:slow/3,seed=1"},
#ifdef PAGES_NETWORKS
        {.file = "pages", .device = "ipnuma:lo", .settings = "timeout_s=5"},
        {.file = "pages", .device = "ofi:net@lo", .settings = "timeout_s=5"},
#endif
        {.file = "pages", .device = "emulate:dimmnet1-d"},
    };
    const char *only = 3 < argc ? argv[3] : NULL, *name;
    int failed = 0;

    for (size_t v = 0; v < sizeof(variant) / sizeof(variant[0]); v++) {
        char device[16];
        snprintf(device, sizeof(device), "%.*s", (int) strcspn(variant[v].device, ":"), variant[v].device);
        if (!dn_device_known(device) || (1 < argc && 0 != strcmp(argv[1], variant[v].device))) {
            continue;
        }
        failed |= 3 > argc || 0 == strcmp(argv[2], "auto") ? run(&variant[v], "auto", only) : 0;
        for (size_t d = 0; NULL != (name = dn_dsm_detect_name(d)); d++) {
            if (NULL == dn_dsm_detect_why_not(name) && (3 > argc || 0 == strcmp(argv[2], name))) {
                failed |= run(&variant[v], name, only);
            }
        }
    }
    return failed;
}
