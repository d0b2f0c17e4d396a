/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What a process of the shm device finds out while it only polls: that senders came when it had no descriptor or memory
 * for them, and that others have ended without a word, be it before they could say who they are.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shm/dn_shm_int.h"

#define MS UINT64_C(1000000)

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/** What is behind a seat's address. */
static dn_shm_where_t where_of(const dn_board_seat_t *seat)
{
    dn_shm_where_t where;

    memcpy(&where, seat->address + seat->address_len - sizeof(where), sizeof(where));
    return where;
}

/* Senders that come at a bad moment */

enum { RECEIVER, SENDER, POLLS = 300000, ROWS = 10 };

/** No file can be opened, or no memory be mapped. */
static void run_short(int resource)
{
    struct rlimit limit;
    unsigned long pages = 0;

    dn_check_equal(getrlimit(resource, &limit), 0);
    if (RLIMIT_NOFILE == resource) {
        limit.rlim_cur = (rlim_t) dup(STDIN_FILENO);
        close((int) limit.rlim_cur);
    } else {
        FILE *file = fopen("/proc/self/statm", "re");
        dn_check(NULL != file && 1 == fscanf(file, "%lu", &pages));
        fclose(file);
        /* The heap may grow a little: the mapping of a peer takes more. */
        limit.rlim_cur = (rlim_t) (pages + 256) * DN_SHM_PAGE;
    }
    dn_check_equal(setrlimit(resource, &limit), 0);
}

static void end_shortage(int resource)
{
    struct rlimit limit;

    dn_check_equal(getrlimit(resource, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    dn_check_equal(setrlimit(resource, &limit), 0);
}

/** @return CPU time of a row of polls. */
static uint64_t row_of_polls_ns(const dn_world_t *world)
{
    const uint64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

    for (int i = 0; i < POLLS; i++) {
        dn_progress(world->port);
    }
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
}

/** The sender comes in the midst of a shortage: that is said once, tried again without much work, and then it is heard. */
static void come_in_shortage(dn_world_t *world, int resource)
{
    dn_world_listen(world, dn_world_hear);
    if (RECEIVER == world->rank) {
        run_short(resource);
        dn_world_post(world, 0, 1);
        dn_test_log_expect();
        dn_world_await(world, SENDER, 0, 1);
        const uint64_t wall = now_ns();
        /* An attempt takes 5 us at least: this is a tenth of what they all would take. A virtual machine may count time that it did not
         * have, in some row. */
        uint64_t least = UINT64_MAX;
        for (int row = 0; row < ROWS && POLLS * UINT64_C(500) <= least; row++) {
            const uint64_t took = row_of_polls_ns(world);
            least = took < least ? took : least;
        }
        dn_check(POLLS * UINT64_C(500) > least);
        while (now_ns() - wall < 700 * MS) {
            dn_world_progress(world);
        }
        dn_check(dn_test_log_said(1, "PID 1"));
        dn_check_equal(world->heard, 0);
        end_shortage(resource);
        dn_world_hear_until(world, 1);
        dn_world_post(world, 0, 2);
    } else {
        dn_world_sleep(world, RECEIVER, 0, 1);
        dn_world_connect_to(world, RECEIVER);
        dn_world_send(world, world->peer[RECEIVER], DN_WORLD_CHAN, 0, "here", 4);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, RECEIVER, 0, 2);
    }
    dn_world_stop(world);
}

static void a_sender_that_came_without_files_is_heard_later(dn_world_t *world)
{
    come_in_shortage(world, RLIMIT_NOFILE);
}

static void a_sender_that_came_without_memory_is_heard_later(dn_world_t *world)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("%s: left out: a sanitizer needs more address space than can be told\n", world->test);
#else
    come_in_shortage(world, RLIMIT_AS);
#endif
}

/** The sender has left when its receiver looks: it is not taken for one that has ended, and is answered. */
static void answer(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_status_t status;

    dn_world_hear(src, tag, data, len, arg);
    do {
        status = dn_botf(src, DN_WORLD_CHAN, 0, "there", 5, NULL, 0);
    } while (DN_ERR_AGAIN == status);
    dn_check_equal(status, DN_OK);
}

static void a_sender_that_left_in_a_shortage_is_answered(dn_world_t *world)
{
    dn_world_listen(world, RECEIVER == world->rank ? answer : dn_world_hear);
    if (RECEIVER == world->rank) {
        run_short(RLIMIT_NOFILE);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, SENDER, 0, 1);
        dn_test_log_expect();
        dn_progress(world->port);
        dn_check(dn_test_log_said(1, "which has left"));
        dn_check_equal(world->heard, 0);
        end_shortage(RLIMIT_NOFILE);
    } else {
        dn_world_sleep(world, RECEIVER, 0, 1);
        dn_world_connect_to(world, RECEIVER);
        dn_world_send(world, world->peer[RECEIVER], DN_WORLD_CHAN, 0, "here", 4);
        dn_disconnect(world->peer[RECEIVER]);
        world->peer[RECEIVER] = NULL;
        dn_world_post(world, 0, 1);
    }
    dn_world_hear_until(world, 1);
    dn_world_stop(world);
}

/* Deaths */

/** Bound on what it takes to learn of a death by polls alone: time, far above what it takes, and where cores are scarce, so that polls are
 * few in that time, polls. */
#define NEWS_NS    (30000 * MS)
#define NEWS_POLLS 2048

static unsigned told;

static void count_news(dn_peer_t *peer, void *arg)
{
    (void) peer;
    (void) arg;
    told++;
}

/** This process reads what a peer sends from now on. */
static void await_ring(dn_world_t *world, int rank)
{
    while (NULL == ((const dn_shm_peer_t *) world->peer[rank])->rx) {
        dn_world_progress(world);
    }
}

/** The victim dies while the others poll, or sleep between polls as who shares its core does.
 * @param[in] alone  Not 0: they poll for messages of the victim alone. */
static void learn_of_death(dn_world_t *world, int connected, int alone)
{
    const int victim = world->size - 1;
    /* As who shares its core sleeps at most (dn_wait.h). */
    const struct timespec nap = {.tv_nsec = 1000000};

    dn_world_listen(world, dn_world_hear);
    if (connected) {
        dn_world_connect(world);
    } else if (victim == world->rank) {
        for (int k = 0; k < victim; k++) {
            dn_world_connect_to(world, k);
            dn_world_send(world, world->peer[k], DN_WORLD_CHAN, 0, "here", 4);
        }
    } else {
        dn_world_hear_until(world, 1);
    }
    dn_check_equal(dn_lost_set(world->port, DN_WORLD_CHAN, count_news, NULL), DN_OK);
    if (alone && victim != world->rank) {
        await_ring(world, victim);
    }
    dn_world_barrier(world);
    if (victim == world->rank) {
        dn_world_post(world, 0, 1);
        dn_world_die(world);
    }
    dn_world_sleep(world, victim, 0, 1);
    while (!dn_world_is_dead(world, victim)) {
        sched_yield();
    }
    const uint64_t death = now_ns();
    for (int polls = 0; 0 == told; polls++) {
        dn_check(NEWS_POLLS > polls || NEWS_NS > now_ns() - death);
        if (alone) {
            dn_check_equal(dn_recv(world->peer[victim], 1), 0);
        } else {
            dn_progress(world->port);
        }
        if (0 != world->rank) {
            nanosleep(&nap, NULL);
        }
    }
    dn_check_equal(told, 1);
    dn_check_equal(dn_world_lost(world), 1);
    dn_world_post(world, 1, 1);
    for (int k = 0; k < victim; k++) {
        dn_world_await(world, k, 1, 1);
    }
    dn_check_equal(told, 1);
    dn_close(world->port);
}

static void a_death_is_heard_of_by_polls_alone(dn_world_t *world)
{
    learn_of_death(world, 1, 0);
}

static void a_death_among_many_is_heard_of_by_polls_alone(dn_world_t *world)
{
    learn_of_death(world, 1, 0);
}

static void a_death_is_heard_of_by_who_polls_one_peer(dn_world_t *world)
{
    learn_of_death(world, 1, 1);
}

/** Who polls one peer hears it, too, when it has left and come again. */
static void who_comes_again_is_heard_by_who_polls_it_alone(dn_world_t *world)
{
    dn_world_listen(world, dn_world_hear);
    dn_world_connect(world);
    if (1 == world->rank) {
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, "here", 4);
        dn_world_sleep(world, 0, 0, 1);
        dn_disconnect(world->peer[0]);
        dn_world_connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 1, "again", 5);
        dn_world_sleep(world, 0, 0, 2);
    } else {
        dn_world_hear_until(world, 1);
        dn_world_post(world, 0, 1);
        const uint64_t before = now_ns();
        while (2 != world->heard) {
            dn_check(NEWS_NS > now_ns() - before);
            (void) dn_recv(world->peer[1], 1);
        }
        dn_world_post(world, 0, 2);
    }
    dn_world_stop(world);
}

static void the_death_of_who_came_by_itself_is_heard_of(dn_world_t *world)
{
    learn_of_death(world, 0, 0);
}

/** With threads, by whichever of them polls. */
static void a_death_is_heard_of_among_threads(dn_world_t *world)
{
    world->job.threads = 1;
    learn_of_death(world, 1, 0);
}

/** A port that was closed in order is no news, nor the end of its process. */
static void who_leaves_in_order_is_no_news(dn_world_t *world)
{
    dn_world_start(world);
    dn_check_equal(dn_lost_set(world->port, DN_WORLD_CHAN, count_news, NULL), DN_OK);
    dn_world_barrier(world);
    if (1 == world->rank) {
        dn_world_close(world, 0);
        return;
    }
    dn_world_sleep(world, 1, 0, 1);
    const uint64_t before = now_ns();
    while (now_ns() - before < 1200 * MS) {
        dn_progress(world->port);
    }
    dn_check_equal(told, 0);
    dn_check_equal(dn_peer_check(world->peer[1]), DN_ERR_UNREACH);
    dn_check_equal(told, 1);
    dn_close(world->port);
}

/** A process that is stopped lives, for as long as it is stopped. */
static void who_is_stopped_is_not_dead(dn_world_t *world)
{
    dn_world_listen(world, dn_world_hear);
    dn_world_connect(world);
    if (1 == world->rank) {
        raise(SIGSTOP);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, "here", 4);
    } else {
        while ('T' != dn_test_state(world->board->seat[1].os_pid, NULL)) {
            dn_progress(world->port);
        }
        const uint64_t before = now_ns();
        while (now_ns() - before < 1200 * MS) {
            dn_progress(world->port);
        }
        dn_check_equal(dn_world_lost(world), 0);
        dn_check_equal(kill((pid_t) world->board->seat[1].os_pid, SIGCONT), 0);
        dn_world_hear_until(world, 1);
    }
    dn_world_stop(world);
}

/* A first thread that ends before the others */

static uint8_t shown[8192];

/** What the second thread of process 1 does alone; the process ends with it. */
static void *go_on(void *arg)
{
    dn_world_t *world = arg;

    while (1 != dn_load_acquire(&world->board->seat[0].word[0])) {
        dn_world_progress(world);
    }
    dn_world_connect_to(world, 0);
    dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, "here", 4);
    dn_world_await(world, 0, 0, 2);
    dn_world_stop(world);
    fflush(NULL);
    exit(0);
}

/** Wait until the first thread of a process has ended. */
static void await_headless(uint32_t os_pid)
{
    while ('Z' != dn_test_state(os_pid, NULL)) {
        sched_yield();
    }
}

/** It is no peer yet when its first thread ends, or one already: it is met, heard and read all the same. */
static void outlive_first_thread(dn_world_t *world, int connected)
{
    dn_segment_t *segment = NULL;
    uint8_t data[sizeof(shown)];
    pthread_t thread;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("%s: left out: a sanitizer counts on the first thread\n", world->test);
    return;
#endif
    world->job.threads = 1;
    dn_world_listen(world, dn_world_hear);
    dn_test_fill(shown, sizeof(shown), 5);
    dn_check_equal(dn_segment_register(world->port, shown, sizeof(shown), &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    dn_world_barrier(world);
    if (1 == world->rank) {
        if (connected) {
            dn_world_await(world, 0, 1, 1);
        }
        dn_check_equal(pthread_create(&thread, NULL, go_on, world), 0);
        pthread_exit(NULL);
    }
    const dn_xfer_t xfer = {.local = data, .key = &world->board->seat[1].key[0], .len = sizeof(data)};
    if (connected) {
        dn_world_connect_to(world, 1);
        dn_check_equal(dn_world_pull(world, world->peer[1], &xfer), DN_OK);
        dn_world_post(world, 1, 1);
    }
    await_headless(world->board->seat[1].os_pid);
    dn_world_post(world, 0, 1);
    dn_world_hear_until(world, 1);
    if (!connected) {
        dn_world_connect_to(world, 1);
    }
    memset(data, 0, sizeof(data));
    dn_check_equal(dn_world_pull(world, world->peer[1], &xfer), DN_OK);
    dn_check_bytes(data, sizeof(data), 5);
    dn_check_equal(dn_world_lost(world), 0);
    dn_world_post(world, 0, 2);
    dn_world_stop(world);
}

static void who_goes_on_without_its_first_thread_is_read(dn_world_t *world)
{
    outlive_first_thread(world, 1);
}

static void who_comes_without_its_first_thread_is_met(dn_world_t *world)
{
    outlive_first_thread(world, 0);
}

/* Claims of the dead */

/** Not 0: the process ends where its file gets memory, or a ring does in the midst of taking a slot. */
static int ends_in_claim;
static int ends_without_header;

int posix_fallocate(int fd, off_t off, off_t len)
{
    if (ends_in_claim) {
        dn_world_die(dn_world_here);
    }
    if (ends_without_header) {
        kill(getpid(), SIGKILL);
    }
    return 0 == syscall(SYS_fallocate, fd, 0, off, len) ? 0 : errno;
}

/** One slot: who has claimed it is killed before it has said who it is. */
static void a_claimed_slot_comes_back_when_its_sender_is_killed(dn_world_t *world)
{
    enum { OWNER, CLAIMER, NEXT };
    const dn_board_seat_t *owner = &world->board->seat[OWNER];
    dn_status_t status = DN_ERR_NOMEM;

    world->config.max_peers = 1;
    world->config.backing = DN_BACKING_FILE;
    /* Not known, so that no file is unlinked before the end. */
    world->job.nlocal = 0;
    dn_world_listen(world, dn_world_hear);
    if (CLAIMER == world->rank) {
        ends_in_claim = 1;
        dn_world_connect_to(world, OWNER);
    } else if (NEXT == world->rank) {
        while (0 == kill((pid_t) world->board->seat[CLAIMER].os_pid, 0)) {
            sched_yield();
        }
        dn_test_log.expected = 1;
        while (DN_ERR_NOMEM == status) {
            status = dn_connect(world->port, owner->address, owner->address_len, &world->peer[OWNER]);
            dn_world_progress(world);
        }
        dn_test_log.expected = 0;
        dn_check_equal(status, DN_OK);
        dn_world_send(world, world->peer[OWNER], DN_WORLD_CHAN, 0, "here", 4);
        dn_world_sleep(world, OWNER, 0, 1);
    } else {
        dn_world_hear_until(world, 1);
        dn_world_post(world, 0, 1);
    }
    dn_close(world->port);
    if (0 == world->rank) {
        /* That of the killed one, which nobody else removes before another port is opened. */
        unlink(where_of(&world->board->seat[CLAIMER]).path);
    }
}

/** Who has claimed it lives, but does not go on: it keeps the slot. */
static void a_claimed_slot_is_kept_while_its_sender_lives(dn_world_t *world)
{
    world->config.max_peers = 2;
    dn_world_listen(world, dn_world_hear);
    if (1 == world->rank) {
        const dn_shm_where_t where = where_of(&world->board->seat[0]);
        const dn_peer_base_t id = {.pid = 0, .pgid = dn_world_pgid(world)};
        const dn_shm_where_t mine = where_of(world->me);
        dn_shm_map_t owner;
        dn_check_equal(dn_shm_attach(&where, &id, &owner), DN_OK);
        const uint32_t claim = dn_shm_claim(mine.os_pid, mine.start_time);
        dn_check(dn_cas_acq_rel_u32(&owner.slot[0].state, DN_SHM_FREE, claim));
        dn_world_connect_to(world, 0);
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 1);
        dn_check_equal(dn_load_acquire_u32(&owner.slot[0].state), claim);
        dn_store_release_u32(&owner.slot[0].state, DN_SHM_FREE);
        dn_shm_detach(&owner);
    } else {
        dn_world_await(world, 1, 0, 1);
        const uint64_t before = now_ns();
        while (now_ns() - before < 600 * MS) {
            dn_progress(world->port);
        }
        dn_world_post(world, 0, 1);
    }
    dn_world_stop(world);
}

/* Numbers of processes that are used again */

/** A child that has this number. -1: errno. */
static pid_t fork_as(pid_t pid)
{
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t) &pid, .set_tid_size = 1};

    return (pid_t) syscall(SYS_clone3, &args, sizeof(args));
}

/** The next process of a killed peer's number has memory at the same address, which nobody writes or reads. */
static void the_next_process_of_a_number_is_left_alone(dn_world_t *world)
{
    enum { BYTES = 4096 };
    static uint8_t memory[BYTES];
    dn_segment_t *segment = NULL;
    uint8_t data[BYTES];
    int status = 0;

    dn_world_start(world);
    dn_check_equal(dn_segment_register(world->port, memory, sizeof(memory), &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    dn_world_barrier(world);
    const dn_xfer_t xfer = {.local = data, .key = &world->board->seat[1].key[0], .len = sizeof(data)};
    if (1 == world->rank) {
        dn_world_await(world, 0, 0, 1);
        dn_world_die(world);
    }
    dn_test_fill(data, sizeof(data), 3);
    dn_check_equal(dn_world_push(world, world->peer[1], &xfer), DN_OK);
    dn_world_post(world, 0, 1);
    const pid_t number = (pid_t) world->board->seat[1].os_pid;
    while (0 == kill(number, 0)) {
        sched_yield();
    }
    const pid_t next = fork_as(number);
    if (0 == next) {
        /* A failure there ends it, too. */
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        while (1 == dn_load_acquire(&world->me->word[0])) {
            sched_yield();
        }
        /* Zeros, as they are here. */
        for (size_t i = 0; i < sizeof(memory); i++) {
            status |= memory[i];
        }
        _Exit(0 != status);
    }
    if (0 > next) {
        printf("%s: left out: no process can be given a number: %s\n", world->test, strerror(errno));
        dn_disconnect(world->peer[1]);
        dn_close(world->port);
        return;
    }
    dn_check_equal(next, number);
    /* The clock by which the peer is asked for again goes on. */
    const uint64_t before = now_ns();
    while (now_ns() - before < 20 * MS) {
        sched_yield();
    }
    dn_test_log_expect();
    dn_check_equal(dn_push(world->peer[1], &xfer), DN_ERR_UNREACH);
    dn_check_equal(dn_pull(world->peer[1], &xfer), DN_ERR_UNREACH);
    dn_check(dn_test_log_said(2, "is gone"));
    dn_check_bytes(data, sizeof(data), 3);
    dn_world_post(world, 0, 2);
    dn_check_equal(waitpid(next, &status, 0), next);
    dn_check_equal(status, 0);
    dn_progress(world->port);
    dn_check_equal(dn_world_lost(world), 1);
    dn_disconnect(world->peer[1]);
    dn_close(world->port);
}

/** In a process of its own: make a port in a file of this folder, and close it. */
static int port_in_a_file(dn_world_t *world, const char *folder, int ends)
{
    int status = 0;
    const pid_t child = fork();

    if (0 == child) {
        world->config.backing = DN_BACKING_FILE;
        world->job.dir = folder;
        ends_without_header = ends;
        dn_world_open(world);
        dn_close(world->port);
        _Exit(0);
    }
    dn_check_equal(waitpid(child, &status, 0), child);
    return status;
}

/** A process is killed before its file says whose it is: the next one that makes a port there removes that file. */
static void a_file_of_nobody_is_swept_by_the_next_port(dn_world_t *world)
{
    char folder[] = "/dev/shm/dn_test.XXXXXX";

    dn_check(NULL != mkdtemp(folder));
    const int status = port_in_a_file(world, folder, 1);
    dn_check(WIFSIGNALED(status) && SIGKILL == WTERMSIG(status));
    dn_check_equal(port_in_a_file(world, folder, 0), 0);
    dn_check_equal(rmdir(folder), 0);
}

static const dn_world_test_t tests[] = {
    {"a_file_of_nobody_is_swept_by_the_next_port", 1, a_file_of_nobody_is_swept_by_the_next_port},
    {"a_sender_that_came_without_files_is_heard_later", 2, a_sender_that_came_without_files_is_heard_later},
    {"a_sender_that_came_without_memory_is_heard_later", 2, a_sender_that_came_without_memory_is_heard_later},
    {"a_sender_that_left_in_a_shortage_is_answered", 2, a_sender_that_left_in_a_shortage_is_answered},
    {"a_death_is_heard_of_by_polls_alone", 2, a_death_is_heard_of_by_polls_alone},
    {"a_death_among_many_is_heard_of_by_polls_alone", 12, a_death_among_many_is_heard_of_by_polls_alone},
    {"a_death_is_heard_of_by_who_polls_one_peer", 3, a_death_is_heard_of_by_who_polls_one_peer},
    {"who_comes_again_is_heard_by_who_polls_it_alone", 2, who_comes_again_is_heard_by_who_polls_it_alone},
    {"the_death_of_who_came_by_itself_is_heard_of", 3, the_death_of_who_came_by_itself_is_heard_of},
    {"a_death_is_heard_of_among_threads", 3, a_death_is_heard_of_among_threads},
    {"who_leaves_in_order_is_no_news", 2, who_leaves_in_order_is_no_news},
    {"who_is_stopped_is_not_dead", 2, who_is_stopped_is_not_dead},
    {"who_goes_on_without_its_first_thread_is_read", 2, who_goes_on_without_its_first_thread_is_read},
    {"who_comes_without_its_first_thread_is_met", 2, who_comes_without_its_first_thread_is_met},
    {"a_claimed_slot_comes_back_when_its_sender_is_killed", 3,
     a_claimed_slot_comes_back_when_its_sender_is_killed},
    {"a_claimed_slot_is_kept_while_its_sender_lives", 2, a_claimed_slot_is_kept_while_its_sender_lives},
    {"the_next_process_of_a_number_is_left_alone", 2, the_next_process_of_a_number_is_left_alone},
};

/** usage: shm_watch [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "shm_watch", .device = "shm"};
    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, argv[1]);
}
