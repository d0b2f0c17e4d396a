/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The stage of the shm device: receivers that do not read, that are killed, that progress inside of a handler; senders
 * that leave before anybody has read, and that come again. Every message is numbered, and all of its bytes are looked at.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/dn_port.h"
#include "shm/dn_shm_int.h"
#include "shm/dn_shm_memory.h"

enum { SENDER, FIRST, SECOND, THIRD };

/** Words on the board. */
enum { HEARD, STAGED, GO };

/** Longest message: a granule takes three of these. */
#define LONGEST 10000u

/** A piece of a long message: a granule takes two of these. */
#define PIECE 14000u

static uint8_t data[PIECE];
static uint64_t heard;
static uint64_t staged; /**< of these, in the stage of their sender */

/** Messages of up to so many bytes go through the ring. */
#define SHORT 64u

/** The first is short, the others are not. */
static size_t length_of(uint64_t number)
{
    uint64_t random = number;

    return 0 == number ? SHORT : SHORT + 1 + dn_test_below(&random, LONGEST - SHORT);
}

static uint64_t key_of(int receiver, uint64_t number)
{
    return number * DN_WORLD_MAX + (uint64_t) receiver;
}

static int in_stage(dn_peer_t *src, const uint8_t *at)
{
    const dn_shm_map_t *map = &((const dn_shm_peer_t *) src)->map;

    return NULL != map->header && map->stage <= at && at < map->stage + map->stage_bytes;
}

/** The next one, whole. */
static void check_message(dn_peer_t *src, unsigned tag, const void *bytes, size_t len)
{
    dn_check_equal(tag, heard & 0xff);
    dn_check_equal(len, length_of(heard));
    dn_check_bytes(bytes, len, key_of(dn_world_here->rank, heard));
    staged += (uint64_t) in_stage(src, bytes);
    heard++;
}

static void hear(dn_peer_t *src, unsigned tag, const void *bytes, size_t len, void *arg)
{
    (void) arg;
    check_message(src, tag, bytes, len);
}

/** Send what data holds, now or not at all. */
static dn_status_t try_to_send(dn_world_t *world, int rank, uint64_t number)
{
    const size_t len = length_of(number);

    return dn_botf(world->peer[rank], DN_WORLD_CHAN, number & 0xff, data, len / 3, data + len / 3,
                   len - len / 3);
}

static void compose(int rank, uint64_t number)
{
    dn_test_fill(data, length_of(number), key_of(rank, number));
}

/** Send one, now or not at all. */
static dn_status_t try_to_say(dn_world_t *world, int rank, uint64_t number)
{
    compose(rank, number);
    return try_to_send(world, rank, number);
}

static void say(dn_world_t *world, int rank, uint64_t number)
{
    dn_status_t status;

    compose(rank, number);
    while (DN_ERR_AGAIN == (status = try_to_send(world, rank, number))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_OK);
}

/** Read until so many have come, and keep the board up to date. What is on it has been counted in the stage, too. */
static void hear_until(dn_world_t *world, uint64_t count)
{
    while (heard < count) {
        dn_world_progress(world);
        dn_world_post(world, STAGED, staged);
        dn_world_post(world, HEARD, heard);
    }
}

/** Send from *number to before end; each is read before the next. @return how many of them went through the stage. */
static uint64_t say_in_step(dn_world_t *world, int rank, uint64_t *number, uint64_t end)
{
    const uint64_t before = dn_load_acquire(&world->board->seat[rank].word[STAGED]);

    for (; *number < end; (*number)++) {
        say(world, rank, *number);
        dn_world_await(world, rank, HEARD, *number + 1);
    }
    return dn_load_acquire(&world->board->seat[rank].word[STAGED]) - before;
}

/** Send until the receiver, which does not read, would have to. @return the number of the next one. */
static uint64_t say_all_that_fits(dn_world_t *world, int rank, uint64_t number)
{
    dn_status_t status;

    while (DN_OK == (status = try_to_say(world, rank, number))) {
        number++;
    }
    dn_check_equal(status, DN_ERR_AGAIN);
    return number;
}

static void open_staged(dn_world_t *world, uint32_t granules, dn_handler_fn_t handler)
{
    world->config.ring_lines = 1024;
    world->config.stage_bytes = granules * DN_SHM_GRANULE;
    world->config.stage_min = SHORT;
    dn_world_listen(world, handler);
}

/** The sender has connected, its receivers have attached: what is sent now may go through the stage, still unused. */
static void start_staged(dn_world_t *world, uint32_t granules)
{
    open_staged(world, granules, hear);
    if (SENDER != world->rank) {
        hear_until(world, 1);
        return;
    }
    for (int rank = FIRST; rank < world->size; rank++) {
        uint64_t number = 0;
        dn_world_connect_to(world, rank);
        say_in_step(world, rank, &number, 1);
    }
}

static void a_receiver_that_does_not_read_keeps_its_own_granules_only(dn_world_t *world)
{
    enum { LIES = 6, SOME = 400, MORE = 600, END = 700 };
    uint64_t number[] = {0, 1, 1, 1};

    start_staged(world, 8);
    switch (world->rank) {
    case SENDER:
        /* Three granules at most. */
        for (; number[FIRST] <= LIES; number[FIRST]++) {
            dn_check_equal(try_to_say(world, FIRST, number[FIRST]), DN_OK);
        }
        dn_check_equal(say_in_step(world, SECOND, &number[SECOND], SOME), SOME - 1);
        /* All but the one that is open for the second, who goes on with it; for the third there is none. */
        number[FIRST] = say_all_that_fits(world, FIRST, number[FIRST]);
        dn_check(LIES + 10 < number[FIRST]);
        dn_check_equal(say_in_step(world, SECOND, &number[SECOND], MORE), MORE - SOME);
        dn_check_equal(say_in_step(world, THIRD, &number[THIRD], MORE), 0);
        dn_world_post(world, GO, number[FIRST]);
        dn_world_await(world, FIRST, HEARD, number[FIRST]);
        dn_check_equal(say_in_step(world, SECOND, &number[SECOND], END), END - MORE);
        dn_check_equal(say_in_step(world, THIRD, &number[THIRD], END), END - MORE);
        break;
    case FIRST:
        dn_world_sleep(world, SENDER, GO, 1);
        hear_until(world, dn_load_acquire(&world->board->seat[SENDER].word[GO]));
        break;
    default:
        hear_until(world, END);
        break;
    }
    dn_world_stop(world);
}

/** Messages to all as they come, while one of them often looks away; at first it has the whole stage. */
static void a_full_stage_loses_and_reorders_nothing(dn_world_t *world)
{
    const uint64_t count = dn_test_rounds(2000);
    uint64_t number[] = {count, 1, 1, 1};

    start_staged(world, 4);
    if (SENDER == world->rank) {
        number[FIRST] = say_all_that_fits(world, FIRST, number[FIRST]);
        while (number[FIRST] < count || number[SECOND] < count || number[THIRD] < count) {
            const int rank = (int) dn_test_below(&world->random, THIRD + 1);
            const dn_status_t status =
                number[rank] < count ? try_to_say(world, rank, number[rank]) : DN_ERR_AGAIN;
            number[rank] += DN_OK == status;
            if (DN_OK != status) {
                dn_check_equal(status, DN_ERR_AGAIN);
                dn_world_progress(world);
            }
            if (count / 10 == number[SECOND]) {
                dn_world_post(world, GO, 1);
            }
        }
        dn_world_barrier(world);
        dn_check(count - count / 10 >= world->board->seat[SECOND].word[STAGED]);
        dn_check(0 < world->board->seat[SECOND].word[STAGED]);
    } else {
        if (FIRST == world->rank) {
            dn_world_sleep(world, SENDER, GO, 1);
        }
        while (heard < count) {
            const uint64_t more = 1 + dn_test_below(&world->random, 60);
            hear_until(world, heard + more < count ? heard + more : count);
            for (int i = FIRST == world->rank ? 100 : 0; 0 < i; i--) {
                sched_yield();
            }
        }
        dn_world_barrier(world);
    }
    dn_world_stop(world);
}

enum { READS, DIES, DIES_LATER, CLOSES };

/** The sender leaves a receiver that has all of the stage; before or after it has ended, or it reads all that there is. */
static void leave_with_a_full_stage(dn_world_t *world, int how)
{
    /* So many messages that find no granule until the ends of readers are looked for. */
    enum { HELD = 100, LOOKED = 10000, END = LOOKED + 100 };
    const int ends_first = DIES == how || CLOSES == how;
    uint64_t number[] = {0, 1, 1};

    start_staged(world, 8);
    switch (world->rank) {
    case SENDER:
        number[FIRST] = say_all_that_fits(world, FIRST, number[FIRST]);
        dn_check_equal(say_in_step(world, SECOND, &number[SECOND], HELD), 0);
        if (!ends_first) {
            dn_disconnect(world->peer[FIRST]);
        }
        dn_world_post(world, GO, READS != how);
        if (ends_first) {
            while (DN_OK == dn_peer_check(world->peer[FIRST])) {
                sched_yield();
            }
            dn_disconnect(world->peer[FIRST]);
        }
        for (; number[SECOND] < LOOKED; number[SECOND]++) {
            say(world, SECOND, number[SECOND]);
        }
        dn_world_await(world, SECOND, HEARD, number[SECOND]);
        if (READS == how) {
            /* It lives, and has not read. */
            dn_check_equal(world->board->seat[SECOND].word[STAGED], 0);
            dn_world_post(world, GO, number[FIRST]);
            dn_world_await(world, FIRST, HEARD, number[FIRST]);
        }
        dn_check_equal(say_in_step(world, SECOND, &number[SECOND], END), END - LOOKED);
        dn_world_post(world, GO, END);
        break;
    case FIRST:
        dn_world_sleep(world, SENDER, GO, 1);
        if (CLOSES == how) {
            dn_close(world->port);
            world->port = NULL;
            dn_world_sleep(world, SENDER, GO, END);
            return;
        }
        if (READS != how) {
            dn_world_die(world);
        }
        hear_until(world, dn_load_acquire(&world->board->seat[SENDER].word[GO]));
        break;
    default:
        hear_until(world, END);
        break;
    }
    dn_close(world->port);
}

static void granules_come_back_from_a_receiver_that_was_killed(dn_world_t *world)
{
    leave_with_a_full_stage(world, DIES);
}

static void granules_come_back_from_a_receiver_that_is_killed_later(dn_world_t *world)
{
    leave_with_a_full_stage(world, DIES_LATER);
}

static void granules_come_back_from_a_receiver_that_has_closed(dn_world_t *world)
{
    leave_with_a_full_stage(world, CLOSES);
}

static void granules_come_back_from_a_receiver_that_reads_later(dn_world_t *world)
{
    leave_with_a_full_stage(world, READS);
}

/** Nothing more can come: what is not there now is lost. */
static void hear_the_rest(dn_world_t *world, uint64_t count)
{
    for (int i = 0; i < 1000; i++) {
        dn_progress(world->port);
    }
    dn_check_equal(heard, count);
}

static void leave_before_anybody_reads(dn_world_t *world, int dies)
{
    enum { COUNT = 8 };

    open_staged(world, 8, hear);
    if (SENDER == world->rank) {
        dn_world_connect_to(world, FIRST);
        for (uint64_t i = 0; i < COUNT; i++) {
            dn_check_equal(try_to_say(world, FIRST, i), DN_OK);
        }
        if (dies) {
            dn_world_die(world);
        }
        dn_close(world->port);
        dn_world_post(world, GO, 1);
        return;
    }
    if (dies) {
        while (0 == kill((pid_t) world->board->seat[SENDER].os_pid, 0)) {
            sched_yield();
        }
    } else {
        dn_world_sleep(world, SENDER, GO, 1);
    }
    hear_the_rest(world, COUNT);
    dn_check_equal(staged, 0);
    dn_close(world->port);
}

static void a_sender_that_left_before_anybody_read_is_heard(dn_world_t *world)
{
    leave_before_anybody_reads(world, 0);
}

static void a_sender_that_was_killed_before_anybody_read_is_heard(dn_world_t *world)
{
    leave_before_anybody_reads(world, 1);
}

/** Handlers that run one inside the other. */
static int depth;

/** Look at the message again after others have come behind it. */
static void hear_nested(dn_peer_t *src, unsigned tag, const void *bytes, size_t len, void *arg)
{
    dn_world_t *world = arg;
    const uint64_t number = heard;

    check_message(src, tag, bytes, len);
    if (3 > depth) {
        depth++;
        for (int i = 0; i < 20; i++) {
            dn_world_progress(world);
        }
        depth--;
    }
    dn_check_bytes(bytes, len, key_of(world->rank, number));
}

static void a_handler_that_progresses_keeps_its_message(dn_world_t *world)
{
    const uint64_t count = dn_test_rounds(2000);

    open_staged(world, 2, hear_nested);
    dn_world_connect(world);
    if (SENDER == world->rank) {
        for (uint64_t i = 0; i < count; i++) {
            say(world, FIRST, i);
        }
    } else {
        hear_until(world, count);
        dn_check(count / 10 < staged);
    }
    dn_world_stop(world);
}

static void a_sender_that_comes_again_is_heard_in_order(dn_world_t *world)
{
    enum { LIVES = 40, EACH = 10 };
    uint64_t number = 0;

    open_staged(world, 4, hear);
    if (SENDER == world->rank) {
        for (int i = 0; i < LIVES; i++) {
            dn_world_connect_to(world, FIRST);
            if (0 == i % 2) {
                say_in_step(world, FIRST, &number, number + EACH / 2);
            }
            for (uint64_t end = (uint64_t) (i + 1) * EACH; number < end; number++) {
                say(world, FIRST, number);
            }
            dn_disconnect(world->peer[FIRST]);
            world->peer[FIRST] = NULL;
        }
    } else {
        hear_until(world, LIVES * EACH);
        dn_check(LIVES * EACH / 10 < staged);
    }
    dn_world_stop(world);
}

static void ignore(dn_peer_t *src, unsigned tag, const void *bytes, size_t len, void *arg)
{
    (void) src;
    (void) tag;
    (void) bytes;
    (void) len;
    *(int *) arg = 1;
}

/** What it had of the receiver before, which has forgotten it, does not count any more. */
static void a_sender_that_comes_again_and_leaves_at_once_is_heard(dn_world_t *world)
{
    enum { BEFORE = 4, COUNT = 8 };
    uint64_t number = 0;
    int answered = 0;

    open_staged(world, 4, hear);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN + 1, ignore, &answered), DN_OK);
    dn_world_connect_to(world, 1 - world->rank);
    if (SENDER == world->rank) {
        say_in_step(world, FIRST, &number, BEFORE);
        while (!answered) {
            dn_world_progress(world);
        }
        dn_disconnect(world->peer[FIRST]);
        dn_world_post(world, GO, 1);
        dn_world_sleep(world, FIRST, GO, 1);
        dn_world_connect_to(world, FIRST);
        for (; number < COUNT; number++) {
            dn_check_equal(try_to_say(world, FIRST, number), DN_OK);
        }
        dn_close(world->port);
        dn_world_post(world, GO, 2);
        return;
    }
    hear_until(world, BEFORE);
    dn_check(0 < staged);
    dn_world_send(world, world->peer[SENDER], DN_WORLD_CHAN + 1, 0, "back", 4);
    dn_world_await(world, SENDER, GO, 1);
    hear_the_rest(world, BEFORE);
    dn_disconnect(world->peer[SENDER]);
    dn_world_post(world, GO, 1);
    dn_world_sleep(world, SENDER, GO, 2);
    hear_the_rest(world, COUNT);
    dn_close(world->port);
}

/** What is next: until it has come, and then not gone by itself. */
static dn_status_t look(dn_peer_t *src, dn_message_t *message)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_peek(src, DN_WORLD_CHAN, 1, message))) {
        sched_yield();
    }
    return status;
}

/** Count a message, whatever it says. */
static void hear_any(dn_peer_t *src, unsigned tag, const void *bytes, size_t len, void *arg)
{
    (void) tag;
    (void) len;
    (void) arg;
    staged += (uint64_t) in_stage(src, bytes);
    heard++;
}

/** What a sender has of its stage. */
static uint32_t populated(const dn_world_t *world, int rank)
{
    return ((const dn_shm_t *) ((const dn_shm_peer_t *) world->peer[rank])->base.iface)->stage.populated;
}

static void messages_are_shown_in_the_ring_and_in_the_stage(dn_world_t *world)
{
    enum { SOME = 50, MANY = 500 };
    dn_message_t message;

    open_staged(world, 4, hear);
    dn_world_connect_to(world, 1 - world->rank);
    dn_world_barrier(world);
    if (SENDER == world->rank) {
        for (uint64_t i = 0; i < SOME; i++) {
            dn_test_fill(data, SHORT, i);
            dn_world_send(world, world->peer[FIRST], DN_WORLD_CHAN, 5, data, SHORT);
        }
        dn_world_await(world, FIRST, GO, 1);
        for (uint64_t i = 1; i <= MANY; i++) {
            say(world, FIRST, i);
            dn_world_await(world, FIRST, HEARD, i + 1);
        }
        dn_world_send(world, world->peer[FIRST], DN_WORLD_CHAN + 1, 0, data, LONGEST);
    } else {
        dn_peer_t *src = world->peer[SENDER];
        /* Attached by the first progress that sees it. */
        while (NULL == ((dn_shm_peer_t *) src)->rx) {
            dn_world_progress(world);
        }
        for (uint64_t i = 0; i < SOME; i++) {
            dn_check_equal(look(src, &message), DN_OK);
            dn_check_equal(message.tag, 5);
            dn_check_equal(message.len, SHORT);
            dn_check_bytes(message.data, SHORT, i);
            dn_take(src, &message);
        }
        dn_check_equal(dn_peek(src, DN_WORLD_CHAN, 1, &message), DN_ERR_AGAIN);
        dn_world_post(world, GO, 1);
        for (heard = 1; heard <= MANY;) {
            dn_check_equal(look(src, &message), DN_OK);
            check_message(src, message.tag, message.data, message.len);
            dn_check_equal(staged, heard - 1);
            dn_take(src, &message);
            dn_world_post(world, HEARD, heard);
        }
        /* Of another channel. */
        dn_check_equal(look(src, &message), DN_ERR_UNSUPPORTED);
    }
    dn_world_barrier(world);
    dn_close(world->port);
}

/** Send messages, each of which is read before the next. @return how many have been sent in all. */
static uint64_t send_one_by_one(dn_world_t *world, size_t len, uint64_t sent, uint64_t more)
{
    for (uint64_t i = 0; i < more; i++) {
        dn_world_send(world, world->peer[FIRST], DN_WORLD_CHAN, 0, data, len);
        dn_world_await(world, FIRST, HEARD, ++sent);
    }
    return sent;
}

/** A walk is known to take less time, and its tries are over. */
static void walk_for_long(dn_shm_walks_t *walks, enum dn_shm_walk walk)
{
    walks->walk = walk;
    walks->choice = (dn_choice_t){.cost = {UINT32_MAX, UINT32_MAX}, .made = 1u << 15};
    walks->choice.cost[walk] = 1;
}

static void wait_for_the_stage(dn_world_t *world)
{
    const dn_shm_peer_t *peer = (const dn_shm_peer_t *) world->peer[FIRST];

    while (NULL == peer->rx || 0 == dn_load_acquire_u32(&peer->tx.ring->attached)) {
        dn_world_progress(world);
    }
}

/** Nothing is sent back, and each message is read before the next. A granule begins with a line; four of QUARTER bytes fill it. */
static void who_sends_more_has_more_of_the_stage(dn_world_t *world)
{
    enum {
        GRANULES = 16,
        QUARTER = DN_SHM_GRANULE / 4 - DN_LINE_BYTES,
        FEW = 15 * 4, /* The first of them finds no granule at all. */
        ALL = 4 * 16 * GRANULES + 100
    };

    open_staged(world, GRANULES, hear_any);
    dn_world_connect_to(world, 1 - world->rank);
    dn_world_barrier(world);
    if (SENDER == world->rank) {
        wait_for_the_stage(world);
        uint64_t sent = send_one_by_one(world, QUARTER, 0, FEW);
        dn_check_equal(populated(world, FIRST), 1);
        sent = send_one_by_one(world, QUARTER, sent, 16 * 4);
        dn_check_equal(populated(world, FIRST), 2);
        (void) send_one_by_one(world, QUARTER, sent, ALL - sent);
        dn_check_equal(populated(world, FIRST), GRANULES);
    } else {
        hear_until(world, ALL);
        dn_check_equal(staged, ALL);
    }
    dn_world_stop(world);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_the_end(void *arg)
{
    (void) pthread_mutex_lock(&held);
    (void) pthread_mutex_unlock(&held);
    return arg;
}

/** KiB of a mapping that are in this process' page table. */
static unsigned long mapped_kib(const void *at)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    unsigned long first, end, kib = 0;
    int here = 0;
    char line[300];

    dn_check(NULL != file);
    while (NULL != fgets(line, sizeof(line), file)) {
        if (2 == sscanf(line, "%lx-%lx ", &first, &end)) {
            here = first <= (uintptr_t) at && (uintptr_t) at < end;
        } else if (here && 1 == sscanf(line, "Rss: %lu kB", &kib)) {
            break;
        }
    }
    fclose(file);
    return kib;
}

/** Some kernels do not, or do not tell, and emulators say that they have. */
static int kernel_enters_pages(void)
{
    const int fd = memfd_create("enter", MFD_CLOEXEC);

    dn_check(0 == ftruncate(fd, DN_SHM_GRANULE));
    void *mem = mmap(NULL, DN_SHM_GRANULE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    dn_check(MAP_FAILED != mem);
    (void) madvise(mem, DN_SHM_GRANULE, MADV_POPULATE_READ);
    const int entered = DN_SHM_GRANULE / 1024 <= mapped_kib(mem);
    munmap(mem, DN_SHM_GRANULE);
    close(fd);
    return entered;
}

/** A read of a hole would allocate what is another process' to allocate. */
static void pages_without_memory_are_not_entered(dn_world_t *world)
{
    static const uint8_t bytes[DN_SHM_GRANULE];
    const int fd = memfd_create("holes", MFD_CLOEXEC);
    struct stat info;

    (void) world;
    dn_check(0 == ftruncate(fd, 3 * DN_SHM_GRANULE));
    dn_check_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    dn_check_equal(pwrite(fd, bytes, sizeof(bytes), 2 * DN_SHM_GRANULE), sizeof(bytes));
    void *mem = mmap(NULL, 3 * DN_SHM_GRANULE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    dn_check(MAP_FAILED != mem);
    dn_shm_enter_pages(mem, 3 * DN_SHM_GRANULE);
    dn_check(0 == fstat(fd, &info));
    dn_check_equal(512 * (uint64_t) info.st_blocks, 2 * DN_SHM_GRANULE);
    dn_check(!kernel_enters_pages() || DN_SHM_GRANULE / 1024 == mapped_kib(mem));
    munmap(mem, 3 * DN_SHM_GRANULE);
    close(fd);
}

/** The process has a thread besides; the first port is closed while memory may still come. Of the second one, the first message finds
 * memory that is there, and its receiver has it in the page table before. */
static void memory_comes_early_where_there_are_threads_and_cores(dn_world_t *world)
{
    enum { GRANULES = 128, EARLY = 64 };
    const uint32_t wanted = world->size <= sysconf(_SC_NPROCESSORS_ONLN) ? EARLY : 0;
    pthread_t thread;

    (void) pthread_mutex_lock(&held);
    dn_check_equal(pthread_create(&thread, NULL, wait_for_the_end, NULL), 0);
    open_staged(world, GRANULES, hear_any);
    dn_close(world->port);
    open_staged(world, GRANULES, hear_any);
    const dn_shm_stage_t *stage = &((const dn_shm_t *) world->port->ifaces)->stage;
    while (wanted != dn_load_relaxed(&stage->populated)) {
        sched_yield();
    }
    dn_world_barrier(world);
    dn_world_connect_to(world, 1 - world->rank);
    dn_world_barrier(world);
    if (SENDER == world->rank) {
        wait_for_the_stage(world);
        (void) send_one_by_one(world, DN_SHM_GRANULE / 4, 0, 1);
        dn_check(0 == wanted || wanted == populated(world, FIRST));
    } else {
        const uint8_t *from = ((const dn_shm_peer_t *) world->peer[SENDER])->map.stage;
        dn_check(!kernel_enters_pages() || wanted * DN_SHM_GRANULE / 1024 <= mapped_kib(from));
        hear_until(world, 1);
        dn_check_equal(staged, 1);
    }
    dn_world_stop(world);
    (void) pthread_mutex_unlock(&held);
    dn_check_equal(pthread_join(thread, NULL), 0);
}

/** Pieces of long messages, in a stage that is larger than the caches. Each is read before the next. */
static void pieces_try_both_walks_and_keep_to_one(dn_world_t *world)
{
    enum {
        LARGE = 64,
        GRANULES = LARGE,
        OTHERS = LARGE / 2,
        GROW = 2 * 16 * GRANULES,
        PIECES = 2 * 70,
        TRIES = 900
    };
    const uint64_t all = GROW + TRIES + 3 * PIECES;

    open_staged(world, GRANULES, hear_any);
    dn_world_connect_to(world, 1 - world->rank);
    dn_world_barrier(world);
    if (SENDER == world->rank) {
        dn_shm_peer_t *peer = (dn_shm_peer_t *) world->peer[FIRST];
        dn_shm_granule_t *granule = ((const dn_shm_t *) peer->base.iface)->stage.granule;
        dn_shm_walks_t *walks = &peer->stage.walks[DN_SHM_WALK_PIECE];
        wait_for_the_stage(world);
        uint64_t sent = send_one_by_one(world, PIECE, 0, GROW);
        dn_check_equal(populated(world, FIRST), GRANULES);
        /* Both walks are tried before one of them has a longer turn. */
        sent = send_one_by_one(world, PIECE, sent, TRIES);
        dn_check(0 < walks->choice.cost[DN_SHM_WALK_AGAIN] && 0 < walks->choice.cost[DN_SHM_WALK_ON]);
        /* In one of them few granules are used, in the other one all. */
        walk_for_long(walks, DN_SHM_WALK_AGAIN);
        sent = send_one_by_one(world, PIECE, sent, PIECES / 2);
        for (uint64_t i = 0; i < PIECES / 2; i++) {
            sent = send_one_by_one(world, PIECE, sent, 1);
            dn_check(peer->stage.granule < granule + 2);
        }
        uint32_t put[GRANULES];
        for (uint32_t i = 0; i < GRANULES; i++) {
            put[i] = granule[i].put;
        }
        walk_for_long(walks, DN_SHM_WALK_ON);
        sent = send_one_by_one(world, PIECE, sent, PIECES);
        for (uint32_t i = 0; i < GRANULES; i++) {
            dn_check(put[i] != granule[i].put);
        }
        /* Where those that come first are others', the next ones are taken. */
        while (peer->stage.granule < granule + OTHERS) {
            sent = send_one_by_one(world, PIECE, sent, 1);
        }
        enum dn_shm_granule_state states[OTHERS];
        for (uint32_t i = 0; i < OTHERS; i++) {
            states[i] = granule[i].state;
            granule[i].state = DN_SHM_GRANULE_OPEN;
        }
        walk_for_long(walks, DN_SHM_WALK_AGAIN);
        const uint64_t before = dn_load_acquire(&world->board->seat[FIRST].word[STAGED]);
        const dn_shm_granule_t *was = peer->stage.granule;
        sent = send_one_by_one(world, PIECE, sent, 2);
        dn_check(was != peer->stage.granule);
        dn_check(peer->stage.granule >= granule + OTHERS);
        dn_check_equal(dn_load_acquire(&world->board->seat[FIRST].word[STAGED]) - before, 2);
        for (uint32_t i = 0; i < OTHERS; i++) {
            granule[i].state = states[i];
        }
        dn_check(all >= sent);
        (void) send_one_by_one(world, PIECE, sent, all - sent);
    } else {
        hear_until(world, all);
        dn_check_equal(staged, all);
    }
    dn_world_stop(world);
}

/** Two processes that answer each other: a message of medium length goes the way that is known to be faster. */
static void who_is_answered_walks_where_that_is_faster(dn_world_t *world)
{
    enum { GRANULES = 64, LEN = 8000, GROW = 4 * 16 * GRANULES, SOME = 300 };
    const int other = 1 - world->rank;
    uint64_t rounds = 0;

    open_staged(world, GRANULES, hear_any);
    dn_world_connect_to(world, other);
    dn_world_barrier(world);
    dn_shm_peer_t *peer = (dn_shm_peer_t *) world->peer[other];
    for (int walk = -1; walk <= DN_SHM_WALK_ON; walk++) {
        const uint64_t end = rounds + (0 > walk ? GROW : SOME);
        const dn_shm_granule_t *was = NULL;
        uint64_t moved = 0;

        if (0 <= walk) {
            dn_check_equal(populated(world, other), GRANULES);
            walk_for_long(&peer->stage.walks[DN_SHM_WALK_MEDIUM], (enum dn_shm_walk) walk);
        }
        for (; rounds < end; rounds++) {
            if (SENDER == world->rank) {
                dn_world_send(world, world->peer[other], DN_WORLD_CHAN, 0, data, LEN);
            }
            while (heard <= rounds) {
                dn_world_progress(world);
            }
            if (SENDER != world->rank) {
                dn_world_send(world, world->peer[other], DN_WORLD_CHAN, 0, data, LEN);
            }
            moved += was != peer->stage.granule;
            was = peer->stage.granule;
        }
        /* Four fit into a granule. */
        dn_check(DN_SHM_WALK_AGAIN != walk || 2 >= moved);
        dn_check(DN_SHM_WALK_ON != walk || SOME / 5 <= moved);
    }
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"a_receiver_that_does_not_read_keeps_its_own_granules_only", 4,
     a_receiver_that_does_not_read_keeps_its_own_granules_only},
    {"a_full_stage_loses_and_reorders_nothing", 4, a_full_stage_loses_and_reorders_nothing},
    {"granules_come_back_from_a_receiver_that_was_killed", 3,
     granules_come_back_from_a_receiver_that_was_killed},
    {"granules_come_back_from_a_receiver_that_is_killed_later", 3,
     granules_come_back_from_a_receiver_that_is_killed_later},
    {"granules_come_back_from_a_receiver_that_has_closed", 3,
     granules_come_back_from_a_receiver_that_has_closed},
    {"granules_come_back_from_a_receiver_that_reads_later", 3,
     granules_come_back_from_a_receiver_that_reads_later},
    {"a_sender_that_left_before_anybody_read_is_heard", 2, a_sender_that_left_before_anybody_read_is_heard},
    {"a_sender_that_was_killed_before_anybody_read_is_heard", 2,
     a_sender_that_was_killed_before_anybody_read_is_heard},
    {"a_handler_that_progresses_keeps_its_message", 2, a_handler_that_progresses_keeps_its_message},
    {"messages_are_shown_in_the_ring_and_in_the_stage", 2, messages_are_shown_in_the_ring_and_in_the_stage},
    {"who_sends_more_has_more_of_the_stage", 2, who_sends_more_has_more_of_the_stage},
    {"pages_without_memory_are_not_entered", 1, pages_without_memory_are_not_entered},
    {"memory_comes_early_where_there_are_threads_and_cores", 2,
     memory_comes_early_where_there_are_threads_and_cores},
    {"pieces_try_both_walks_and_keep_to_one", 2, pieces_try_both_walks_and_keep_to_one},
    {"who_is_answered_walks_where_that_is_faster", 2, who_is_answered_walks_where_that_is_faster},
    {"a_sender_that_comes_again_is_heard_in_order", 2, a_sender_that_comes_again_is_heard_in_order},
    {"a_sender_that_comes_again_and_leaves_at_once_is_heard", 2,
     a_sender_that_comes_again_and_leaves_at_once_is_heard},
};

/** usage: shm_stage [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "shm_stage", .device = "shm", .settings = "backing=memfd"};
    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, argv[1]);
}
