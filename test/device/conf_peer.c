/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "conformance.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static dn_peer_t *heard_from;

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) tag;
    (void) arg;
    dn_check_bytes(data, len, 0x33);
    dn_world_here->heard++;
    heard_from = src;
}

static void say(dn_world_t *world, dn_peer_t *peer)
{
    uint8_t data[200];

    dn_test_fill(data, sizeof(data), 0x33);
    dn_world_send(world, peer, DN_WORLD_CHAN, 0, data, sizeof(data));
}

static dn_status_t connect_to(dn_world_t *world, int rank, dn_peer_t **peer_p)
{
    const dn_board_seat_t *seat = &world->board->seat[rank];

    return dn_connect(world->port, seat->address, seat->address_len, peer_p);
}

void connecting_twice_gives_the_same_peer(dn_world_t *world)
{
    dn_peer_t *again = NULL;

    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, hear, NULL), DN_OK);
    const int other = 1 - world->rank;
    for (int i = 0; i < 5; i++) {
        dn_check_equal(connect_to(world, other, &again), DN_OK);
        dn_check(again == world->peer[other]);
    }
    for (int i = 0; i < 5; i++) {
        dn_disconnect(again);
        say(world, world->peer[other]);
    }
    dn_world_hear_until(world, 5);
    dn_world_stop(world);
}

void connecting_to_oneself_works(dn_world_t *world)
{
    dn_world_open(world);
    dn_world_connect_to(world, 0);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, hear, NULL), DN_OK);
    for (uint64_t i = 1; i <= 1000; i++) {
        say(world, world->peer[0]);
        dn_world_hear_until(world, i);
        dn_check(heard_from == world->peer[0]);
    }
    dn_check_equal(dn_peer_check(world->peer[0]), DN_OK);
    dn_world_stop(world);
}

void attributes_tell_who_the_peer_is(dn_world_t *world)
{
    dn_peer_attr_t attr;
    const dn_pgid_t mine = dn_world_pgid(world);

    dn_world_start(world);
    dn_peer_attr(world->peer[1 - world->rank], &attr);
    dn_check_equal(strlen(attr.device), strcspn(world->variant->device, ":,"));
    dn_check(0 == strncmp(attr.device, world->variant->device, strlen(attr.device)));
    dn_check_equal(attr.pid, 1 - world->rank);
    dn_check(0 == memcmp(&attr.pgid, &mine, sizeof(attr.pgid)));
    dn_check_equal(attr.llcm_len, world->config.llcm_bytes);
    dn_check(!attr.direct || world->config.cma);
    dn_check(attr.botf_inline < attr.botf_max);
    dn_world_stop(world);
}

void a_peer_that_sends_first_is_the_one_connected_to(dn_world_t *world)
{
    dn_world_listen(world, hear);
    if (0 == world->rank) {
        dn_world_connect_to(world, 1);
        say(world, world->peer[1]);
        dn_world_hear_until(world, 2);
        dn_check(heard_from == world->peer[1]);
    } else {
        dn_world_hear_until(world, 1);
        dn_peer_t *first = heard_from;
        int mark = 0;
        dn_peer_set_user(first, DN_WORLD_CHAN, &mark);
        /* It came by itself, and can be answered as it is. */
        say(world, first);
        dn_world_connect_to(world, 0);
        dn_check(first == world->peer[0]);
        dn_check(&mark == dn_peer_user(world->peer[0], DN_WORLD_CHAN));
        say(world, world->peer[0]);
    }
    dn_world_stop(world);
}

/** The first handler runs until the next session has begun, and what came of it has been read. */
static void hear_while_a_session_begins(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    enum { READS = 3000 };

    hear(src, tag, data, len, NULL);
    if (1 == dn_world_here->heard) {
        dn_world_post(arg, 0, 1);
        dn_world_await(arg, 1, 0, 1);
        for (int i = 0; i < READS; i++) {
            dn_world_progress(arg);
        }
    }
}

static void hand_back(dn_peer_t *peer, void *arg)
{
    dn_check(arg == dn_peer_user(peer, DN_WORLD_CHAN));
    (*(int *) arg)++;
}

void user_pointers_of_visitors_come_back_at_close(dn_world_t *world)
{
    int times = 0;

    dn_world_listen(world, hear);
    dn_check_equal(dn_lost_set(world->port, DN_WORLD_CHAN, hand_back, &times), DN_OK);
    if (0 == world->rank) {
        dn_world_hear_until(world, 1);
        dn_peer_set_user(heard_from, DN_WORLD_CHAN, &times);
    } else {
        dn_world_connect_to(world, 0);
        say(world, world->peer[0]);
        dn_world_fence(world, world->peer[0]);
    }
    dn_world_barrier(world);
    dn_check_equal(times, 0);
    dn_close(world->port);
    world->port = NULL;
    dn_check_equal(times, 0 == world->rank);
}

/** What a handler has taken of the session before is no credit for the one that began while it ran. */
void a_session_that_begins_inside_a_handler_has_its_own_credit(dn_world_t *world)
{
    enum { MESSAGES = 1500 };
    dn_peer_attr_t attr;

    world->config.ring_lines = 64;
    dn_world_listen(world, hear_while_a_session_begins);
    if (0 == world->rank) {
        for (uint64_t i = 2; i <= MESSAGES; i++) {
            dn_world_hear_until(world, i);
            dn_world_post(world, 0, i);
        }
    } else {
        static uint8_t data[4096];
        dn_world_connect_to(world, 0);
        dn_peer_attr(world->peer[0], &attr);
        const size_t len = attr.botf_max < sizeof(data) ? attr.botf_max : sizeof(data);
        dn_test_fill(data, len, 0x33);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, data, len);
        dn_world_await(world, 0, 0, 1);
        dn_disconnect(world->peer[0]);
        dn_world_connect_to(world, 0);
        for (uint64_t i = 2; i <= MESSAGES; i++) {
            say(world, world->peer[0]);
            dn_world_post(world, 0, 1);
            dn_world_await(world, 0, 0, i);
        }
    }
    dn_world_stop(world);
}

void user_pointers_stay_with_the_peer(dn_world_t *world)
{
    int mark[2] = {0, 0};

    dn_world_start(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    dn_check(NULL == dn_peer_user(peer, DN_WORLD_CHAN));
    dn_peer_set_user(peer, DN_WORLD_CHAN, &mark[0]);
    dn_check(&mark[0] == dn_peer_user(peer, DN_WORLD_CHAN));
    dn_peer_set_user(peer, DN_WORLD_CHAN, &mark[1]);
    dn_check(&mark[1] == dn_peer_user(peer, DN_WORLD_CHAN));
    dn_world_stop(world);
}

/** The two processes are of two groups. */
static void be_strangers(dn_world_t *world)
{
    world->job.key.byte[0] ^= (uint8_t) world->rank;
    dn_world_listen(world, hear);
}

static void admit(dn_world_t *world, int rank)
{
    const dn_board_seat_t *seat = &world->board->seat[rank];
    const dn_pgid_t mine = dn_world_pgid(world);
    dn_pgid_t pgid;

    dn_check_equal(dn_address_pgid(seat->address, seat->address_len, &pgid), DN_OK);
    dn_check(0 != memcmp(&pgid, &mine, sizeof(pgid)));
    dn_check_equal(dn_group_admit(world->port, &pgid), DN_OK);
    dn_check_equal(dn_group_admit(world->port, &pgid), DN_OK);
}

void strangers_are_refused_until_admitted(dn_world_t *world)
{
    dn_peer_t *peer = NULL;

    be_strangers(world);
    for (int i = 0; i < 3; i++) {
        dn_test_log_expect();
        dn_check_equal(connect_to(world, 1 - world->rank, &peer), DN_ERR_ACCESS);
        dn_check(dn_test_log_said(1, "group"));
        dn_check(NULL == peer);
    }
    dn_world_barrier(world);
    admit(world, 1 - world->rank);
    dn_world_barrier(world);
    dn_world_connect_to(world, 1 - world->rank);
    say(world, world->peer[1 - world->rank]);
    dn_world_hear_until(world, 1);
    dn_world_stop(world);
}

void messages_of_strangers_wait(dn_world_t *world)
{
    be_strangers(world);
    if (0 == world->rank) {
        admit(world, 1);
        dn_world_connect_to(world, 1);
        for (int i = 0; i < 3; i++) {
            say(world, world->peer[1]);
        }
    }
    dn_world_barrier(world);
    for (int i = 0; i < 200; i++) {
        dn_progress(world->port);
    }
    dn_check_equal(world->heard, 0);
    dn_world_barrier(world);
    if (1 == world->rank) {
        admit(world, 0);
        dn_world_hear_until(world, 3);
        say(world, heard_from);
        dn_world_fence(world, heard_from);
    } else {
        dn_world_hear_until(world, 1);
    }
    dn_world_stop(world);
}

void strangers_refused_at_first_talk_once_admitted(dn_world_t *world)
{
    dn_peer_t *peer = NULL;

    be_strangers(world);
    if (0 == world->rank) {
        admit(world, 1);
        dn_world_connect_to(world, 1);
        say(world, world->peer[1]);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_await(world, 0, 0, 1);
        for (int i = 0; i < 200; i++) {
            dn_progress(world->port);
        }
        dn_test_log_expect();
        dn_check_equal(connect_to(world, 0, &peer), DN_ERR_ACCESS);
        dn_check(dn_test_log_said(1, "group"));
        dn_check_equal(world->heard, 0);
        admit(world, 0);
        dn_world_connect_to(world, 0);
        dn_world_hear_until(world, 1);
        dn_check(heard_from == world->peer[0]);
        say(world, world->peer[0]);
    }
    dn_world_hear_until(world, 1);
    dn_world_stop(world);
}

void any_number_of_groups_is_admitted(dn_world_t *world)
{
    be_strangers(world);
    for (unsigned i = 0; i < 300; i++) {
        dn_pgid_t pgid = dn_world_pgid(world);
        pgid.byte[1] ^= (uint8_t) (1 + i % 255);
        pgid.byte[2] ^= (uint8_t) (i / 255);
        dn_check_equal(dn_group_admit(world->port, &pgid), DN_OK);
    }
    admit(world, 1 - world->rank);
    dn_world_barrier(world);
    dn_world_connect_to(world, 1 - world->rank);
    say(world, world->peer[1 - world->rank]);
    dn_world_hear_until(world, 1);
    dn_world_stop(world);
}

void slots_come_back_after_disconnection(dn_world_t *world)
{
    world->config.max_peers = 2;
    dn_world_listen(world, hear);
    for (uint64_t round = 1; round <= 40; round++) {
        if (0 == world->rank) {
            dn_world_connect_to(world, 1);
            say(world, world->peer[1]);
            if (0 == round % 2) {
                dn_world_await(world, 1, 0, round);
            }
            dn_world_fence(world, world->peer[1]);
            dn_disconnect(world->peer[1]);
            world->peer[1] = NULL;
        } else {
            dn_world_hear_until(world, round);
            dn_world_post(world, 0, round);
        }
        dn_world_barrier(world);
        for (int i = 0; i < 20; i++) {
            dn_progress(world->port);
        }
        dn_world_barrier(world);
    }
    dn_world_stop(world);
}

/** A process of its own that sends one message to the first and ends. */
static void brief_sender(dn_world_t *parent, int number)
{
    dn_world_t world = *parent;
    dn_peer_t *peer = NULL;

    alarm(DN_WORLD_SECONDS);
    world.rank = 1 + number;
    world.me = &world.board->seat[1];
    world.job.pid = (uint32_t) (1 + number);
    world.port = NULL;
    dn_world_here = &world;
    dn_world_open(&world);
    dn_check_equal(connect_to(&world, 0, &peer), DN_OK);
    say(&world, peer);
    dn_world_fence(&world, peer);
    if (0 == number % 3) {
        /* Not even a goodbye. */
        _Exit(0);
    }
    if (0 == number % 2) {
        dn_disconnect(peer);
    }
    dn_close(world.port);
    _Exit(0);
}

void slots_come_back_after_processes_end(dn_world_t *world)
{
    const uint64_t count = 30;

    world->config.max_peers = 4;
    world->job.nlocal = 0;
    dn_world_open(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, hear, NULL), DN_OK);
    for (uint64_t i = 0; i < count; i++) {
        int status = 0;
        const pid_t pid = fork();
        if (0 == pid) {
            brief_sender(world, (int) i);
        }
        dn_check(0 < pid);
        while (0 == waitpid(pid, &status, WNOHANG)) {
            dn_world_progress(world);
        }
        dn_check_equal(status, 0);
        dn_world_hear_until(world, i + 1);
        for (int k = 0; k < 20; k++) {
            dn_progress(world->port);
        }
    }
    dn_world_stop(world);
}

void full_slots_are_refused_with_a_sentence(dn_world_t *world)
{
    world->config.max_peers = 0 == world->rank ? 2 : 8;
    dn_world_listen(world, hear);
    if (3 != world->rank && 0 != world->rank) {
        dn_world_connect_to(world, 0);
    }
    dn_world_barrier(world);
    if (3 == world->rank) {
        dn_test_log_expect();
        dn_check_equal(connect_to(world, 0, &world->peer[0]), DN_ERR_NOMEM);
        dn_check(dn_test_log_said(1, "max_peers"));
        dn_check(NULL == world->peer[0]);
    } else if (0 != world->rank) {
        say(world, world->peer[0]);
    }
    if (0 == world->rank) {
        dn_world_hear_until(world, 2);
    }
    dn_world_barrier(world);
    if (1 == world->rank) {
        dn_world_fence(world, world->peer[0]);
        dn_disconnect(world->peer[0]);
        world->peer[0] = NULL;
    }
    dn_world_barrier(world);
    if (3 == world->rank) {
        /* The slot is free as soon as port 0 has learnt of the departure, which may be under way for a while. */
        dn_test_log.expected = 1;
        while (DN_ERR_NOMEM == connect_to(world, 0, &world->peer[0])) {
            dn_progress(world->port);
        }
        dn_test_log.expected = 0;
        dn_check(NULL != world->peer[0]);
        say(world, world->peer[0]);
    }
    if (0 == world->rank) {
        dn_world_hear_until(world, 3);
    }
    dn_world_stop(world);
}

void messages_kicked_before_disconnection_arrive(dn_world_t *world)
{
    dn_world_listen(world, hear);
    if (0 == world->rank) {
        dn_world_connect_to(world, 1);
        for (int i = 0; i < 10; i++) {
            say(world, world->peer[1]);
        }
        dn_world_fence(world, world->peer[1]);
        dn_disconnect(world->peer[1]);
        world->peer[1] = NULL;
        dn_world_post(world, 0, 1);
    } else {
        /* Nothing is received until the other has gone. */
        dn_world_sleep(world, 0, 0, 1);
        dn_world_hear_until(world, 10);
    }
    dn_world_stop(world);
    dn_check_equal(world->heard, world->rank ? 10 : 0);
}

/**
 * End a child of fork() that has closed its copy of a port. The child asks the kernel itself: the thread sanitizer, which ends a process
 * by _exit(), counts the parent's other threads as the child's, and would turn the status into its own. Its reports are seen in the log only.
 */
static void end_child(int status)
{
    syscall(SYS_exit_group, status);
}

void a_child_closes_its_copy_of_a_port_unseen(dn_world_t *world)
{
    uint64_t value = 7;
    dn_segment_t *segment;
    int status = -1;

    dn_world_listen(world, hear);
    dn_check_equal(dn_segment_alloc(world->port, sizeof(value), &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    dn_world_connect(world);
    if (0 == world->rank) {
        const pid_t child = fork();
        if (0 == child) {
            dn_close(world->port);
            end_child(0);
        }
        dn_check(0 < child);
        while (0 == waitpid(child, &status, WNOHANG)) {
            dn_world_progress(world);
        }
        dn_check_equal(status, 0);
    }
    dn_world_barrier(world);
    dn_peer_t *peer = world->peer[!world->rank];
    const dn_xfer_t xfer = {
        .local = &value, .key = &world->board->seat[!world->rank].key[0], .len = sizeof(value)};
    dn_check_equal(dn_peer_check(peer), DN_OK);
    say(world, peer);
    dn_world_hear_until(world, 1);
    dn_check_equal(dn_world_push(world, peer, &xfer), DN_OK);
    value = 0;
    dn_check_equal(dn_world_pull(world, peer, &xfer), DN_OK);
    dn_check_equal(value, 7);
    dn_check_equal(dn_world_lost(world), 0);
    dn_world_stop(world);
}

void who_left_itself_comes_back_at_once(dn_world_t *world)
{
    enum { LIVES = 12, POLLS = 4 };

    dn_world_listen(world, hear);
    for (uint64_t life = 1; life <= LIVES; life++) {
        dn_world_connect_to(world, 0);
        say(world, world->peer[0]);
        dn_world_fence(world, world->peer[0]);
        dn_disconnect(world->peer[0]);
        world->peer[0] = NULL;
        /* What was said has been read, or not. */
        for (uint64_t i = 0; i < life % POLLS; i++) {
            dn_progress(world->port);
        }
    }
    dn_world_hear_until(world, LIVES);
    dn_world_stop(world);
}

/** All on one processing unit: whatever the machine, it is shared. Where there are many, a cpu_set_t is too short. */
static void run_on_one_unit(void)
{
    const size_t units = 8192; /* more than which Linux is not built for */
    const size_t bytes = CPU_ALLOC_SIZE(units);
    cpu_set_t *set = CPU_ALLOC(units);
    size_t unit = 0;

    dn_check(NULL != set);
    dn_check_equal(sched_getaffinity(0, bytes, set), 0);
    while (!CPU_ISSET_S(unit, bytes, set)) {
        unit++;
    }
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(unit, bytes, set);
    dn_check_equal(sched_setaffinity(0, bytes, set), 0);
    CPU_FREE(set);
}

void oversubscription_is_seen(dn_world_t *world)
{
    run_on_one_unit();
    dn_world_open(world);
    dn_check_equal(dn_oversubscribed(world->port), 0);
    dn_world_barrier(world);
    dn_world_connect(world);
    dn_check(0 != dn_oversubscribed(world->port));
    dn_world_stop(world);
}

/** Open files, and mappings shared with other processes, of this one. */
static void count_resources(unsigned *files, unsigned *mappings)
{
    char line[512];

    *files = 0;
    *mappings = 0;
    DIR *dir = opendir("/proc/self/fd");
    dn_check(NULL != dir);
    while (NULL != readdir(dir)) {
        (*files)++;
    }
    closedir(dir);
    FILE *maps = fopen("/proc/self/maps", "r");
    dn_check(NULL != maps);
    while (NULL != fgets(line, sizeof(line), maps)) {
        const char *rights = strchr(line, ' ');
        *mappings += NULL != rights && 5 < strlen(rights) && 's' == rights[4];
    }
    fclose(maps);
}

/** Descriptors of this process whose links hold this text. */
static unsigned count_files_of(const char *text)
{
    unsigned count = 0;
    const struct dirent *one;
    DIR *dir = opendir("/proc/self/fd");

    dn_check(NULL != dir);
    while (NULL != (one = readdir(dir))) {
        char link[256] = "";
        if (0 < readlinkat(dirfd(dir), one->d_name, link, sizeof(link) - 1)) {
            count += NULL != strstr(link, text);
        }
    }
    closedir(dir);
    return count;
}

/** Has a device of the port a network library? What that has opened stays in a child. */
static int uses_a_library(const dn_port_t *port)
{
    dn_device_attr_t attr;
    int uses = 0;

    for (size_t i = 0; DN_OK == dn_device_attr(port, i, &attr); i++) {
        uses |= NULL != attr.provider;
    }
    return uses;
}

/** Close a copy of a port, in a child. @return 0: no file and no mapping is left that was not there before the port was opened. */
static int close_copy(dn_port_t *port, unsigned files, unsigned mappings)
{
    const int library = uses_a_library(port);
    unsigned left_files, left_mappings;

    dn_close(port);
    count_resources(&left_files, &left_mappings);
    return 0 != count_files_of("pidfd") || (!library && (files != left_files || mappings != left_mappings));
}

void a_child_keeps_nothing_of_its_copy(dn_world_t *world)
{
    unsigned files = 0, mappings = 0;
    int status = -1;

    /* In the first round files may be opened that stay. */
    for (int round = 0; round < 2; round++) {
        count_resources(&files, &mappings);
        dn_world_start(world);
        status = -1;
        /* What a thread of this process is changing at the time of fork() stays in that child. So another child is tried. */
        for (int tries = 0; 0 != status && 20 > tries; tries++) {
            const pid_t child = fork();
            if (0 == child) {
                end_child(close_copy(world->port, files, mappings));
            }
            dn_check(0 < child);
            while (0 == waitpid(child, &status, WNOHANG)) {
                dn_world_progress(world);
            }
        }
        dn_world_stop(world);
        dn_world_barrier(world);
    }
    dn_check_equal(status, 0);
}

void opening_and_closing_leaks_nothing(dn_world_t *world)
{
    unsigned files[2], mappings[2];
    dn_segment_t *segment[3];
    static uint8_t memory[100];

    for (int round = 0; round < 12; round++) {
        dn_world_open(world);
        dn_world_connect_to(world, 0);
        for (int i = 0; i < 3; i++) {
            dn_check_equal(0 == i ? dn_segment_register(world->port, memory, 100, &segment[i])
                                  : dn_segment_alloc(world->port, 100000, &segment[i]),
                           DN_OK);
        }
        dn_segment_free(segment[1]);
        /* The others go with the port. */
        dn_world_stop(world);
        world->peer[0] = NULL;
        if (1 == round) {
            count_resources(&files[0], &mappings[0]);
        }
    }
    count_resources(&files[1], &mappings[1]);
    dn_check_equal(files[1], files[0]);
    dn_check_equal(mappings[1], mappings[0]);
}

/** PUSH to a segment of the other's that lives no longer than this. */
static void work_with_a_segment(dn_world_t *world)
{
    static uint8_t data[1000];
    dn_segment_t *segment = NULL;

    dn_check_equal(dn_segment_alloc(world->port, sizeof(data), &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    dn_world_barrier(world);
    const dn_xfer_t xfer = {
        .local = data, .key = &world->board->seat[1 - world->rank].key[0], .len = sizeof(data)};
    dn_check_equal(dn_world_push(world, world->peer[1 - world->rank], &xfer), DN_OK);
    dn_world_barrier(world);
    dn_segment_free(segment);
}

void connecting_and_working_leaks_nothing(dn_world_t *world)
{
    unsigned files[2] = {0, 0}, mappings[2] = {0, 0};

    for (int round = 0; round < 8; round++) {
        dn_world_start(world);
        work_with_a_segment(world);
        dn_world_stop(world);
        if (1 == round) {
            count_resources(&files[0], &mappings[0]);
        }
        dn_world_barrier(world);
    }
    count_resources(&files[1], &mappings[1]);
    dn_check_equal(files[1], files[0]);
    dn_check_equal(mappings[1], mappings[0]);
}

void segments_freed_by_their_owner_are_unmapped_here(dn_world_t *world)
{
    unsigned files[2] = {0, 0}, mappings[2] = {0, 0};

    dn_world_start(world);
    for (int round = 0; round < 60; round++) {
        work_with_a_segment(world);
        dn_world_barrier(world);
        if (9 == round) {
            count_resources(&files[0], &mappings[0]);
        }
    }
    count_resources(&files[1], &mappings[1]);
    /* The last one may stay until the next is mapped; faults let some go by another way. */
    dn_check_equal(files[1], files[0]);
    dn_check(mappings[1] <= mappings[0] + 2);
    dn_world_stop(world);
}
