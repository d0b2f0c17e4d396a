/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Bad input and processes that die: each gets a sentence and an error, or the end of the process; none waits for ever.
 */
#include "dn_config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dn_dsm_host.h"
#include "errors.h"
#include "folder.h"
#include "sanitizers.h"

/** A page. */
#define PAGE ((uint64_t) sysconf(_SC_PAGESIZE))

static dn_dsm_config_t configured(const dn_world_t *world)
{
    dn_dsm_config_t config = folder_config(world->rank, world->size);

    config.devices = world->variant->device;
    config.settings = world->variant->settings;
    config.share = "never";
    config.bytes = 100 * PAGE;
    config.locks = 10;
    return config;
}

/** @param[in] share  dn_dsm_config_t::share. */
static dn_dsm_t *opened_with(const dn_world_t *world, const char *share)
{
    dn_dsm_config_t config = configured(world);
    dn_dsm_t *dsm = NULL;

    config.share = share;
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    return dsm;
}

static dn_dsm_t *opened(const dn_world_t *world)
{
    return opened_with(world, "never");
}

/** @param[in] settings  dn_dsm_config_t::settings. */
static dn_dsm_t *opened_under(const dn_world_t *world, const char *settings)
{
    dn_dsm_config_t config = configured(world);
    dn_dsm_t *dsm = NULL;

    config.settings = settings;
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    return dsm;
}

static void calls_refuse_what_is_wrong(dn_world_t *world)
{
    const dn_dsm_config_t config = configured(world);
    dn_dsm_t *dsm = opened(world), *second = NULL;
    double value[DN_DSM_VALUES_MAX + 1];
    void *at = NULL;
    const uint16_t home[] = {0, 2};

    refused(dn_dsm_unlock(dsm, 1), DN_ERR_PARAM, "does not have lock 1");
    refused(dn_dsm_lock(dsm, 10), DN_ERR_PARAM, "no lock 10");
    refused(dn_dsm_unlock(dsm, 10), DN_ERR_PARAM, "lock 10");
    dn_check_equal(dn_dsm_lock(dsm, 1), DN_OK);
    refused(dn_dsm_lock(dsm, 1), DN_ERR_PARAM, "already");
    dn_check_equal(dn_dsm_unlock(dsm, 1), DN_OK);
    refused(dn_dsm_alloc(dsm, 0, DN_DSM_HOME_BLOCK, 0, &at), DN_ERR_PARAM, "at least one byte");
    refused(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_RANK, 2, &at), DN_ERR_PARAM, "rank below 2");
    refused(dn_dsm_alloc(dsm, 101 * PAGE, DN_DSM_HOME_BLOCK, 0, &at), DN_ERR_NOMEM, "not left");
    refused(dn_dsm_alloc(dsm, PAGE, (dn_dsm_home_t) 3, 0, &at), DN_ERR_PARAM, "no such way");
    refused(dn_dsm_alloc_homes(dsm, 2 * PAGE, home, &at), DN_ERR_PARAM, "rank below 2");
    refused(dn_dsm_alloc_homes(dsm, 101 * PAGE, home, &at), DN_ERR_NOMEM, "not left");
    refused(dn_dsm_alloc(dsm, UINT64_MAX, DN_DSM_HOME_BLOCK, 0, &at), DN_ERR_NOMEM, "not left");
    dn_check_equal(dn_dsm_alloc(dsm, 2 * PAGE, DN_DSM_HOME_BLOCK, 0, &at), DN_OK);
    refused(dn_dsm_touch(dsm, at, 2 * PAGE + 1, 0), DN_ERR_RANGE, "not allocated");
    refused(dn_dsm_touch(dsm, value, 1, 0), DN_ERR_RANGE, "not allocated");
    refused(dn_dsm_prefetch(dsm, at, UINT64_MAX), DN_ERR_RANGE, "not allocated");
    refused(dn_dsm_reduce(dsm, DN_DSM_SUM, value, DN_DSM_VALUES_MAX + 1), DN_ERR_PARAM, "at most");
    refused(dn_dsm_open(&config, &second), DN_ERR_PARAM, "open in this process already");
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

static void configurations_are_checked(dn_world_t *world)
{
    const dn_dsm_config_t right = configured(world);
    dn_dsm_config_t wrong = right;
    dn_dsm_t *dsm = NULL;

    wrong.ranks = 0;
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_PARAM, "1 to 64 processes");
    wrong = right;
    wrong.protocol = "none";
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_PARAM, "no protocol \"none\"");
    wrong = right;
    wrong.detect = "guess";
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_PARAM, "\"guess\"");
    wrong = right;
    static const char *const share[] = {"perhaps", "0", "65", "2 hosts", "-1", ""};
    for (size_t i = 0; i < sizeof(share) / sizeof(share[0]); i++) {
        wrong.share = share[i];
        refused(dn_dsm_open(&wrong, &dsm), DN_ERR_PARAM, "auto, never");
    }
    wrong = right;
    wrong.homes = "go";
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_PARAM, "homes is \"go\"");
    wrong = right;
    wrong.locks = 0;
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_PARAM, "0 locks");
    wrong = right;
    wrong.bytes = (uint64_t) (UINT32_MAX / 2) * PAGE + 1;
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_PARAM, "at most 2147483647 pages");
    wrong = right;
    wrong.folder = NULL;
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_PARAM, "no folder");
    wrong.folder = "/nowhere/at/all";
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_ACCESS, "/nowhere/at/all");
    wrong = right;
    char settings[2000];
    memset(settings, ' ', sizeof(settings));
    settings[sizeof(settings) - 1] = '\0';
    wrong.settings = settings;
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_PARAM, "more than 1023 characters");
    wrong.settings = "ring_lines";
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_PARAM, "NAME=VALUE");
    /* That one has got as far as to the key; the folder is as good as before. */
    wrong = right;
    wrong.ranks = 2;
    wrong.timeout_s = 1;
    refused(dn_dsm_open(&wrong, &dsm), DN_ERR_UNREACH, "rank 1 has not come");
    refused(dn_dsm_open(&right, &dsm), DN_ERR_ACCESS, "used the folder");
    if (0 == geteuid() && 0 == chown(folder, 1, (gid_t) -1)) {
        refused(dn_dsm_open(&right, &dsm), DN_ERR_ACCESS, "another user");
        dn_check_equal(chown(folder, 0, (gid_t) -1), 0);
    }
    chmod(folder, 0777);
    refused(dn_dsm_open(&right, &dsm), DN_ERR_ACCESS, "others may write");
    setenv("DN_DSM_LOCKS", "many", 1);
    refused(dn_dsm_config_env(&wrong), DN_ERR_PARAM, "DN_DSM_LOCKS is \"many\"");
    setenv("DN_DSM_LOCKS", "7", 1);
    setenv("DN_DSM_RANK", "3", 1);
    dn_check_equal(dn_dsm_config_env(&wrong), DN_OK);
    dn_check_equal(wrong.locks, 7);
    dn_check_equal(wrong.rank, 3);
}

static void processes_that_open_differently_are_told(dn_world_t *world)
{
    dn_dsm_config_t config = configured(world);
    dn_dsm_t *dsm = NULL;

    config.locks += (uint32_t) world->rank;
    refused(dn_dsm_open(&config, &dsm), DN_ERR_PARAM, "open all alike");
    dn_world_barrier(world);
}

static void processes_that_call_differently_are_told(dn_world_t *world)
{
    dn_dsm_t *dsm = opened(world);
    void *at = NULL;

    if (0 == world->rank) {
        refused(dn_dsm_barrier(dsm), DN_ERR_PARAM, "rank 1 dn_dsm_alloc()");
    } else {
        refused(dn_dsm_alloc(dsm, 1, DN_DSM_HOME_BLOCK, 0, &at), DN_ERR_PARAM, "rank 0 dn_dsm_barrier()");
    }
    refused(dn_dsm_barrier(dsm), DN_ERR_UNREACH, "close it");
    dn_world_barrier(world);
    dn_check_equal(dn_dsm_close(dsm), DN_ERR_UNREACH);
}

static void processes_that_allocate_differently_are_told(dn_world_t *world)
{
    dn_dsm_t *dsm = opened(world);
    void *at = NULL;

    refused(dn_dsm_alloc(dsm, 1 + (uint64_t) world->rank, DN_DSM_HOME_BLOCK, 0, &at), DN_ERR_PARAM,
            "something else");
    dn_world_barrier(world);
    dn_check_equal(dn_dsm_close(dsm), DN_ERR_UNREACH);
}

static void processes_that_reduce_differently_are_told(dn_world_t *world)
{
    dn_dsm_t *dsm = opened(world);
    double value[2] = {1, 2};

    refused(dn_dsm_reduce(dsm, DN_DSM_SUM, value, 1 + (size_t) world->rank), DN_ERR_PARAM, "other values");
    dn_check(1 == value[0] && 2 == value[1]);
    dn_world_barrier(world);
    dn_check_equal(dn_dsm_close(dsm), DN_ERR_UNREACH);
}

static void *pass_a_barrier(void *dsm)
{
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    return NULL;
}

static void threads_keep_out_of_the_barrier_of_another(dn_world_t *world)
{
    dn_dsm_t *dsm = opened(world);

    if (0 == world->rank) {
        pthread_t thread;
        dn_check_equal(dn_dsm_lock(dsm, 1), DN_OK);
        dn_check_equal(pthread_create(&thread, NULL, pass_a_barrier, dsm), 0);
        while (0 == dn_load_relaxed_u32(&dsm->gate)) {
            sched_yield();
        }
        refused(dn_dsm_lock(dsm, 2), DN_ERR_PARAM, "in a barrier");
        refused(dn_dsm_unlock(dsm, 1), DN_ERR_PARAM, "in a barrier");
        refused(dn_dsm_release(dsm), DN_ERR_PARAM, "in a barrier");
        refused(dn_dsm_acquire(dsm), DN_ERR_PARAM, "in a barrier");
        dn_world_post(world, 0, 1);
        dn_check_equal(pthread_join(thread, NULL), 0);
        dn_check_equal(dn_dsm_unlock(dsm, 1), DN_OK);
    } else {
        dn_world_sleep(world, 0, 0, 1);
        dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    }
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

/** Fences that this process has come to. */
static int fences;

/** Others hear it, but this process takes it for failed. */
static dn_status_t tell_in_vain(dn_dsm_t *dsm, const char *what, const void *bytes, size_t len)
{
    dn_check_equal(dn_dsm_meet_folder.tell(dsm, what, bytes, len), DN_OK);
    return 0 == dsm->rank ? DN_OK : 0 == fences ? DN_ERR_ACCESS : DN_ERR_NOMEM;
}

static dn_status_t count_fences(dn_dsm_t *dsm)
{
    fences++;
    return DN_OK;
}

/** That of the map, and that of the end. The first error counts. */
static void who_cannot_tell_comes_to_all_fences(dn_world_t *world)
{
    dn_dsm_meet_t failing = dn_dsm_meet_folder;
    dn_dsm_config_t config = configured(world);
    char map[sizeof(folder) + 10];
    dn_dsm_t *dsm = NULL;

    failing.tell = tell_in_vain;
    failing.together = count_fences;
    snprintf(map, sizeof(map), "%s/map.png", folder);
    config.map = map;
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    dsm->meet = &failing;
    dn_check_equal(dn_dsm_close(dsm), 0 == world->rank ? DN_OK : DN_ERR_ACCESS);
    dn_check_equal(fences, 2);
}

static volatile uint8_t *allocated(dn_dsm_t *dsm)
{
    void *at = NULL;

    dn_check_equal(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_BLOCK, 0, &at), DN_OK);
    return at;
}

/** Meet all others, which are in this function, too, without a call of the library. @param[in] round  Larger each time. */
static void meet(dn_world_t *world, uint64_t round)
{
    dn_world_post(world, 0, round);
    for (int r = 0; r < world->size; r++) {
        dn_world_sleep(world, r, 0, round);
    }
}

/** How those who access memory outside of what was allocated have opened it, and how often they did so. */
static const char *outside_share, *outside_detect;
static uint64_t outside_round;

static void read_outside(dn_world_t *world)
{
    dn_dsm_config_t config = configured(world);
    dn_dsm_t *dsm = NULL;

    config.share = outside_share;
    config.detect = outside_detect;
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    volatile uint8_t *at = allocated(dsm);
    dn_check_equal(at[PAGE - 1], 0);
    /* One that ends is missed by another one that is still in a call. */
    meet(world, outside_round);
    (void) at[PAGE];
}

static void write_after_the_end(dn_world_t *world)
{
    dn_dsm_t *dsm = opened(world);
    volatile uint8_t *at = allocated(dsm);

    at[1] = 1;
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
    at[1] = 2;
}

static void write_elsewhere(dn_world_t *world)
{
    allocated(opened(world));
    volatile uintptr_t nowhere = 16;
    *(volatile uint8_t *) nowhere = 1;
}

static void be_killed(dn_world_t *world)
{
    opened(world);
    raise(SIGSEGV);
    /* Not reached. */
    _exit(EXIT_FAILURE);
}

static void ignore_the_signal(dn_world_t *world)
{
    signal(SIGSEGV, SIG_IGN);
    dn_dsm_t *dsm = opened(world);
    volatile uint8_t *at = allocated(dsm);

    raise(SIGSEGV);
    at[1] = 1;
    at[PAGE] = 1;
}

static volatile sig_atomic_t later_calls;
static struct sigaction later_before;

static void later_handler(int number, siginfo_t *info, void *context)
{
    later_calls++;
    if (0 != (later_before.sa_flags & SA_SIGINFO)) {
        later_before.sa_sigaction(number, info, context);
    }
}

/** A handler over ours that calls ours: the next opening puts ours over it. */
static void handle_the_signal_later(dn_world_t *world)
{
    const struct sigaction later = {.sa_sigaction = later_handler, .sa_flags = SA_SIGINFO};

    dn_check_equal(dn_dsm_close(opened(world)), DN_OK);
    dn_check_equal(sigaction(SIGSEGV, &later, &later_before), 0);
    folder_empty();
    volatile uint8_t *at = allocated(opened(world));
    at[1] = 1;
    dn_check_equal(later_calls, 0);
    at[PAGE] = 1;
}

static sigjmp_buf recovery;

static void recovering_handler(int number)
{
    siglongjmp(recovery, number);
}

/** Write there. @return whether that handler was called. */
static bool recovers(volatile uint8_t *at)
{
    if (0 != sigsetjmp(recovery, 1)) {
        return true;
    }
    *at = 1;
    return false;
}

/** The program has a handler that leaves by a jump; its faults and those of pages have their frames at the same place of the stack. */
static void recover_from_faults(dn_world_t *world)
{
    volatile uintptr_t nowhere = 16;

    signal(SIGSEGV, recovering_handler);
    dn_dsm_t *dsm = opened(world);
    volatile uint8_t *at = allocated(dsm);
    dn_check(recovers((volatile uint8_t *) nowhere));
    dn_check(!recovers(at));
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

static void ends_by(dn_world_t *world, int number, void (*fn)(dn_world_t *world), const char *word)
{
    char said[2000];
    const int status = in_a_child(world, fn, said, sizeof(said));

    dn_check(WIFSIGNALED(status) && number == WTERMSIG(status));
    dn_check(NULL == word ? '\0' == said[0] : NULL != strstr(said, word));
}

/** All processes read outside, by each way of detection. @param[in] share  dn_dsm_config_t::share. */
static void end_outside(dn_world_t *world, const char *share)
{
    outside_share = share;
    for (size_t i = 0; NULL != dn_dsm_detect_name(i); i++) {
        outside_detect = dn_dsm_detect_name(i);
        if (NULL != dn_dsm_detect_why_not(outside_detect)) {
            continue;
        }
        const bool faults = 0 == strcmp("auto", share) || 0 == strcmp("segv", outside_detect);
        const int number = faults ? SIGSEGV : SIGBUS;
        outside_round++;
        ends_by(world, number, read_outside, "outside of what was allocated");
        dn_world_barrier(world);
        if (0 == world->rank) {
            folder_empty();
        }
        dn_world_barrier(world);
    }
}

static void an_access_outside_ends_the_process(dn_world_t *world)
{
    end_outside(world, "never");
}

static void an_access_outside_of_what_all_share_ends_the_process(dn_world_t *world)
{
    end_outside(world, "auto");
}

/** Ranks 0 and 1 are one host, and rank 2 is another one. */
static void an_access_outside_ends_the_processes_of_a_host(dn_world_t *world)
{
    end_outside(world, "2");
}

/** What a system call would write outside of what is allocated is refused, so that it is not there when that is allocated. */
static void memory_that_all_share_is_zero_when_it_is_allocated(dn_world_t *world)
{
    dn_dsm_t *dsm = opened_with(world, "auto");
    uint8_t *at = (uint8_t *) (uintptr_t) allocated(dsm);
    int pipes[2];

    dn_check_equal(strcmp(dn_dsm_detects(dsm), "shared"), 0);
    dn_check_equal(pipe(pipes), 0);
    dn_check_equal(write(pipes[1], "1", 1), 1);
    at[PAGE - 1] = 1;
    dn_check_equal(read(pipes[0], at + PAGE, 1), -1);
    dn_check_equal(errno, EFAULT);
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_check((uintptr_t) allocated(dsm) == (uintptr_t) at + PAGE);
    for (uint64_t i = PAGE; i < 2 * PAGE; i++) {
        dn_check_equal(at[i], 0);
    }
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_check_equal(write(pipes[1], "1", 1), 1);
    dn_check_equal(read(pipes[0], at + PAGE + world->rank, 1), 1);
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_check(0 == memcmp(at + PAGE, "11", 2));
    close(pipes[0]);
    close(pipes[1]);
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

static void an_access_after_the_end_ends_the_process(dn_world_t *world)
{
    ends_by(world, SIGSEGV, write_after_the_end, "after dn_dsm_close()");
}

static void other_faults_are_left_alone(dn_world_t *world)
{
    ends_by(world, SIGSEGV, write_elsewhere, NULL);
}

/** Rank 1 has died: whoever waits is told, once. */
static void miss(dn_dsm_t *dsm, dn_status_t status)
{
    dn_check_equal(status, DN_ERR_UNREACH);
    dn_check_equal(dn_dsm_lock(dsm, 2), DN_ERR_UNREACH);
    dn_check(1 <= dn_test_log_count());
    dn_check_equal(dn_dsm_close(dsm), DN_ERR_UNREACH);
}

static void signals_that_are_sent_do_what_they_did_before(dn_world_t *world)
{
    ends_by(world, SIGSEGV, be_killed, NULL);
    folder_empty();
    ends_by(world, SIGSEGV, ignore_the_signal, "outside of what was allocated");
}

static void a_handler_that_came_later_is_passed(dn_world_t *world)
{
    ends_by(world, SIGSEGV, handle_the_signal_later, "outside of what was allocated");
}

static void faults_that_are_recovered_from_leave_pages_alone(dn_world_t *world)
{
    char said[2000];
    const int status = in_a_child(world, recover_from_faults, said, sizeof(said));

    dn_check(WIFEXITED(status) && 0 == WEXITSTATUS(status));
}

/** All leave a barrier; then rank 1 dies. Before, others may not have what it sent for the barrier. */
static void rank_1_dies(dn_world_t *world, dn_dsm_t *dsm)
{
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_test_log_expect();
    dn_world_post(world, 0, 1);
    for (int r = 0; 1 == world->rank && r < world->size; r++) {
        dn_world_sleep(world, r, 0, 1);
    }
    if (1 == world->rank) {
        dn_world_die(world);
    }
}

static void a_process_that_dies_with_a_lock_is_missed(dn_world_t *world)
{
    dn_dsm_t *dsm = opened(world);

    if (1 == world->rank) {
        dn_check_equal(dn_dsm_lock(dsm, 2), DN_OK);
    }
    rank_1_dies(world, dsm);
    miss(dsm, dn_dsm_lock(dsm, 2));
}

/** Ranks 0 and 1 are one host, and rank 1 takes a page of rank 2 with it. */
static void a_process_that_dies_with_a_page_taken_is_missed(dn_world_t *world)
{
    dn_dsm_t *dsm = opened_with(world, "2");
    const uint32_t page = 0;
    void *at = NULL;

    dn_check_equal(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_RANK, 2, &at), DN_OK);
    if (1 == world->rank) {
        dn_check_equal(dn_dsm_host_take(dsm, &page, 1), DN_OK);
    }
    rank_1_dies(world, dsm);
    miss(dsm, 0 == world->rank ? dn_dsm_touch(dsm, at, 1, 0) : dn_dsm_barrier(dsm));
}

/** Are all threads of a process stopped? */
static bool is_stopped(pid_t process)
{
    char path[64];
    bool all = true;

    snprintf(path, sizeof(path), "/proc/%d/task", (int) process);
    DIR *dir = opendir(path);
    dn_check(NULL != dir);
    for (struct dirent *entry = readdir(dir); NULL != entry; entry = readdir(dir)) {
        all = all && ('.' == entry->d_name[0] || 'T' == dn_test_state((uint32_t) atoi(entry->d_name), NULL));
    }
    closedir(dir);
    return all;
}

/** Ranks 0 and 1 are one host. What rank 0 sends to rank 2 comes there when that one goes on, and no sooner. */
static void a_page_is_taken_until_what_is_sent_is_at_home(dn_world_t *world)
{
    dn_dsm_t *dsm = opened_with(world, "2");
    const pid_t home = (pid_t) world->board->seat[2].os_pid;
    void *at = NULL;

    dn_check_equal(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_RANK, 2, &at), DN_OK);
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_world_post(world, 0, 1);
    if (0 == world->rank) {
        dn_world_sleep(world, 1, 0, 1);
        dn_world_sleep(world, 2, 0, 1);
        *(volatile uint8_t *) at = 1;
        kill(home, SIGSTOP);
        while (!is_stopped(home)) {
            sched_yield();
        }
        dn_world_post(world, 1, 1);
        dn_check_equal(dn_dsm_release(dsm), DN_OK);
        dn_world_post(world, 2, 1);
    } else if (1 == world->rank) {
        dn_dsm_spot_t *spot = dsm->host.spot;
        dn_world_sleep(world, 0, 1, 1);
        while (0 == dn_load_acquire_u32(&spot->sent)) {
            sched_yield();
        }
        bool taken = true;
        for (const uint64_t until = dn_dsm_clock() + 200000000; dn_dsm_clock() < until && taken;) {
            taken = DN_DSM_SENT == dn_load_acquire_u32(&spot->taken);
        }
        kill(home, SIGCONT);
        dn_check(taken);
        dn_world_sleep(world, 0, 2, 1);
        dn_check_equal(dn_load_acquire_u32(&spot->taken), DN_DSM_FREE);
    }
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

/** Ranks 0 and 1 are one host. Rank 1 has taken a page, and sends nothing, as rank 0 drops its copy: nobody hears of a write but that of
 * rank 2. */
static void a_page_that_is_only_taken_is_not_noted(dn_world_t *world)
{
    dn_dsm_config_t config = configured(world);
    dn_dsm_t *dsm = NULL;
    const uint32_t page = 0;
    dn_dsm_stat_t before, after;
    void *at = NULL;

    config.share = "2";
    config.detect = NULL == dn_dsm_detect_why_not("scan") ? "scan" : "auto";
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    dn_check_equal(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_RANK, 2, &at), DN_OK);
    volatile uint8_t *byte = at;
    /* The first barrier that tells of the page makes it shared, and the next one tells what its home has written before. */
    for (int i = 0; i < 3; i++) {
        dn_check(1 == world->rank || 0 == *byte);
        dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    }
    dn_check(1 == world->rank || 0 == *byte);
    if (1 == world->rank) {
        dn_check_equal(dn_dsm_host_take(dsm, &page, 1), DN_OK);
    } else if (2 == world->rank) {
        *byte = 1;
    }
    dn_dsm_stat(dsm, &before);
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_world_post(world, 0, 1);
    if (1 == world->rank) {
        /* A rank 0 that does not come waits for the page. */
        const uint64_t until = dn_dsm_clock() + 500000000;
        while (0 == dn_load_acquire(&world->board->seat[0].word[0]) && dn_dsm_clock() < until) {
            sched_yield();
        }
        dn_dsm_host_give(dsm, &page, 1);
    }
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_dsm_stat(dsm, &after);
    dn_check_equal(after.notices - before.notices, 2 != world->rank);
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

/** Whoever the others find on their host, or do not. @param[in] alone  It does not share: 0 or 1, of three. */
static void does_not_share(dn_world_t *world, uint32_t alone)
{
    dn_dsm_t *dsm = opened_with(world, alone == (uint32_t) world->rank ? "never" : "auto");
    void *at = NULL;

    dn_check_equal(dn_dsm_host(dsm, 0), 0);
    dn_check_equal(dn_dsm_host(dsm, 1), 1);
    dn_check_equal(dn_dsm_host(dsm, 2), 1 - alone);
    dn_check_equal(dn_dsm_host(dsm, 3), DN_DSM_RANKS_MAX);
    dn_check_equal(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_RANK, 2, &at), DN_OK);
    volatile uint32_t *word = at;
    word[world->rank] = 1 + (uint32_t) world->rank;
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    for (uint32_t r = 0; r < 3; r++) {
        dn_check_equal(word[r], 1 + r);
    }
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

static void a_process_that_does_not_share_is_a_host(dn_world_t *world)
{
    does_not_share(world, 1);
}

static void the_first_process_need_not_share(dn_world_t *world)
{
    does_not_share(world, 0);
}

/** Does this process map a table? */
static bool has_table(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[500];
    bool found = false;

    dn_check(NULL != maps);
    while (NULL != fgets(line, sizeof(line), maps)) {
        found = found || NULL != strstr(line, "memfd:dimmnet table");
    }
    fclose(maps);
    return found;
}

/** Who is alone, or has all on its host, needs none. */
static void only_hosts_beside_others_have_tables(dn_world_t *world)
{
    dn_dsm_t *dsm = opened_with(world, "2");

    dn_check_equal(has_table(), 2 > world->rank);
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
    dn_world_barrier(world);
    if (0 == world->rank) {
        folder_empty();
    }
    dn_world_barrier(world);
    dsm = opened_with(world, "auto");
    dn_check(!has_table());
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

/** There a host of several ranks beside others is none. */
static void homes_that_move_have_a_host_each(dn_world_t *world)
{
    dn_dsm_config_t config = configured(world);
    dn_dsm_t *dsm = NULL;

    config.share = "2";
    config.homes = "move";
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    for (uint32_t r = 0; r < 3; r++) {
        dn_check_equal(dn_dsm_host(dsm, r), r);
    }
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

static void a_process_that_dies_ends_a_barrier(dn_world_t *world)
{
    dn_dsm_t *dsm = opened(world);

    rank_1_dies(world, dsm);
    miss(dsm, dn_dsm_barrier(dsm));
}

/** The first operation towards another process fails. Progress tells later that this process is lost. */
static void a_loss_has_its_sentence_before_a_call_returns(dn_world_t *world)
{
    dn_dsm_t *dsm = opened_under(world, "fault=aotf:kill/1");
    void *at = NULL;

    dn_test_log_expect();
    /* Rank 0 may lose this process from here on. */
    dn_world_barrier(world);
    dn_check_equal(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_RANK, 0, &at), DN_ERR_UNREACH);
    dn_check(dn_test_log_said(1, "has ended, or is not reached"));
    dn_check_equal(dn_dsm_close(dsm), DN_ERR_UNREACH);
}

/** Progress never tells of this loss: the first call says it, and later ones return at once. */
static void a_loss_of_nobody_is_said_once(dn_world_t *world)
{
    dn_dsm_t *dsm = opened(world);

    dn_test_log_expect();
    dn_check_equal(dn_dsm_heard(dsm, DN_ERR_UNREACH, "the first call"), DN_ERR_UNREACH);
    dn_check_equal(dn_dsm_heard(dsm, DN_ERR_UNREACH, "the second call"), DN_ERR_UNREACH);
    dn_check(dn_test_log_said(1, "the first call has failed"));
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

/** The word of lock 0 is at home with rank 0. */
static void lock_what_was_overwritten(dn_world_t *world)
{
    dn_dsm_t *dsm = opened(world);

    ((dn_dsm_word_t *) dn_segment_base(dsm->desk))->tail = 99;
    (void) dn_dsm_lock(dsm, 0);
}

static void a_process_that_fails_half_way_ends_and_is_missed(dn_world_t *world)
{
    if (0 == world->rank) {
        char said[2000];
        const int status = in_a_child(world, lock_what_was_overwritten, said, sizeof(said));
        dn_check(WIFEXITED(status) && EXIT_FAILURE == WEXITSTATUS(status));
        dn_check(NULL != strstr(said, "this process ends"));
    } else {
        dn_test_log_expect();
        dn_dsm_t *dsm = opened(world);
        miss(dsm, dn_dsm_barrier(dsm));
    }
}

static const char *moves_with = "auto"; /**< dn_dsm_config_t::detect where homes move */

/** Two pages of rank 0: the first one is to move to rank 1. */
static volatile uint8_t *opened_to_move(const dn_world_t *world, dn_dsm_t **dsm_p)
{
    dn_dsm_config_t config = configured(world);
    void *at = NULL;

    config.homes = "move";
    config.detect = moves_with;
    dn_check_equal(dn_dsm_open(&config, dsm_p), DN_OK);
    dn_check_equal(dn_dsm_alloc(*dsm_p, 2 * PAGE, DN_DSM_HOME_RANK, 0, &at), DN_OK);
    return at;
}

/** What this process has written was told before it writes the page that moves. */
static void write_while_another_thread_is_in_the_barrier(dn_world_t *world)
{
    dn_dsm_t *dsm;
    volatile uint8_t *at = opened_to_move(world, &dsm);
    pthread_t thread;

    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    const uint64_t before = dsm->interval;
    uint64_t now = before;
    at[PAGE] = 1;
    (void) at[1];
    dn_check_equal(pthread_create(&thread, NULL, pass_a_barrier, dsm), 0);
    while (before == now) {
        pthread_mutex_lock(&dsm->sync);
        now = dsm->interval;
        pthread_mutex_unlock(&dsm->sync);
    }
    at[1] = 1;
    dn_world_post(world, 0, 1);
    pthread_join(thread, NULL);
}

static void threads_keep_off_pages_that_move(dn_world_t *world)
{
    if (0 == world->rank) {
        char said[2000];
        const int status =
            in_a_child(world, write_while_another_thread_is_in_the_barrier, said, sizeof(said));
        dn_check(WIFEXITED(status) && EXIT_FAILURE == WEXITSTATUS(status));
        dn_check(NULL != strstr(said, "with homes that move, none may"));
        return;
    }
    dn_dsm_t *dsm;
    volatile uint8_t *at = opened_to_move(world, &dsm);
    dn_status_t status = DN_OK;
    (void) at[PAGE];
    for (uint8_t i = 1; i <= 3; i++) {
        at[0] = i;
        if (3 == i) {
            dn_test_log_expect();
            dn_world_sleep(world, 0, 0, 1);
        }
        dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    }
    while (DN_OK == status) {
        status = dn_dsm_barrier(dsm);
    }
    miss(dsm, status);
}

static void threads_keep_off_pages_that_move_with_a_scan(dn_world_t *world)
{
    if (NULL == dn_dsm_detect_why_not("scan")) {
        moves_with = "scan";
        threads_keep_off_pages_that_move(world);
    }
}

/** A process that needs a page of a dead one. */
static void fetch(dn_world_t *world)
{
    dn_dsm_t *dsm = opened(world);
    void *at = NULL;

    dn_check_equal(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_RANK, 1, &at), DN_OK);
    dn_world_post(world, 0, 1);
    while (!dn_world_is_dead(world, 1)) {
        sched_yield();
    }
    (void) *(volatile uint8_t *) at;
}

static void a_page_of_a_dead_process_ends_who_needs_it(dn_world_t *world)
{
    void *at = NULL;

    if (1 == world->rank) {
        dn_dsm_t *dsm = opened(world);
        dn_check_equal(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_RANK, 1, &at), DN_OK);
        dn_world_sleep(world, 0, 0, 1);
        dn_world_die(world);
    }
    char said[2000];
    const int status = in_a_child(world, fetch, said, sizeof(said));
    dn_check(WIFEXITED(status) && EXIT_FAILURE == WEXITSTATUS(status));
    dn_check(NULL != strstr(said, "rank 1"));
}

/** The first PULL fails. Progress tells later that rank 1 is lost. */
static void fetch_in_vain(dn_world_t *world)
{
    dn_dsm_t *dsm = opened_under(world, "fault=pull:kill/1");
    void *at = NULL;

    dn_check_equal(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_RANK, 1, &at), DN_OK);
    (void) *(volatile uint8_t *) at;
}

static void a_page_that_is_not_fetched_tells_of_the_loss(dn_world_t *world)
{
    void *at = NULL;

    if (1 == world->rank) {
        dn_test_log_expect();
        dn_dsm_t *dsm = opened(world);
        dn_check_equal(dn_dsm_alloc(dsm, PAGE, DN_DSM_HOME_RANK, 1, &at), DN_OK);
        miss(dsm, dn_dsm_barrier(dsm));
        return;
    }
    char said[2000];
    const int status = in_a_child(world, fetch_in_vain, said, sizeof(said));
    dn_check(WIFEXITED(status) && EXIT_FAILURE == WEXITSTATUS(status));
    /* Progress may have told of it after all. */
    dn_check(NULL != strstr(said, "rank 1, which has ended, or is not reached")
             || NULL != strstr(said, "rank 1 is gone"));
}

static const dn_world_test_t everywhere[] = {
#define TEST(name, processes)  \
    {                          \
#        name, processes, name \
    }
    TEST(calls_refuse_what_is_wrong, 2),
    TEST(configurations_are_checked, 1),
    TEST(processes_that_open_differently_are_told, 2),
    TEST(processes_that_call_differently_are_told, 2),
    TEST(processes_that_allocate_differently_are_told, 2),
    TEST(processes_that_reduce_differently_are_told, 2),
    TEST(threads_keep_out_of_the_barrier_of_another, 2),
    TEST(who_cannot_tell_comes_to_all_fences, 2),
    TEST(an_access_outside_ends_the_process, 1),
    TEST(an_access_outside_of_what_all_share_ends_the_process, 2),
    TEST(an_access_outside_ends_the_processes_of_a_host, 3),
    TEST(memory_that_all_share_is_zero_when_it_is_allocated, 2),
    TEST(an_access_after_the_end_ends_the_process, 1),
    TEST(other_faults_are_left_alone, 1),
    TEST(signals_that_are_sent_do_what_they_did_before, 1),
    TEST(a_handler_that_came_later_is_passed, 1),
    TEST(faults_that_are_recovered_from_leave_pages_alone, 1),
    TEST(a_process_that_does_not_share_is_a_host, 3),
    TEST(the_first_process_need_not_share, 3),
    TEST(only_hosts_beside_others_have_tables, 3),
    TEST(homes_that_move_have_a_host_each, 3),
    TEST(a_process_that_dies_with_a_lock_is_missed, 3),
    TEST(a_process_that_dies_with_a_page_taken_is_missed, 3),
    TEST(a_page_that_is_only_taken_is_not_noted, 3),
    TEST(a_process_that_dies_ends_a_barrier, 2),
    TEST(a_loss_has_its_sentence_before_a_call_returns, 2),
    TEST(a_loss_of_nobody_is_said_once, 1),
    TEST(a_page_that_is_not_fetched_tells_of_the_loss, 2),
    TEST(a_process_that_fails_half_way_ends_and_is_missed, 2),
    TEST(threads_keep_off_pages_that_move, 2),
    TEST(threads_keep_off_pages_that_move_with_a_scan, 2),
};

/** Inside a host the memory of a dead process stays mapped until the next call tells. */
static const dn_world_test_t by_network[] = {
    TEST(a_process_that_dies_with_a_lock_is_missed, 3),
    TEST(a_process_that_dies_with_a_page_taken_is_missed, 3),
    TEST(a_page_of_a_dead_process_ends_who_needs_it, 2),
    TEST(a_page_is_taken_until_what_is_sent_is_at_home, 3),
};
#undef TEST

static int run(const dn_world_test_t *test, size_t tests, const dn_variant_t *variant, const char *only)
{
    int failed = 0;

    for (size_t i = 0; i < tests; i++) {
        if (NULL != only && 0 != strcmp(only, test[i].name)) {
            continue;
        }
        if (0 != folder_make()) {
            return 1;
        }
        const int one = dn_world_run(test[i].name, variant, test[i].processes, test[i].fn);
        folder_remove();
        printf("%s  %s %s\n", one ? "FAILED" : "passed", variant->device, test[i].name);
        fflush(stdout);
        failed |= one;
    }
    return failed;
}

/** run() in a process of its own. @return its process. */
static pid_t begin(const dn_world_test_t *test, size_t tests, const dn_variant_t *variant, const char *only)
{
    fflush(NULL);
    const pid_t begun = fork();

    if (0 == begun) {
        exit(run(test, tests, variant, only));
    }
    return begun;
}

/** Over all devices at once, since processes mostly wait here until others are taken for lost. */
int main(int argc, char **argv)
{
    static const dn_variant_t shm = {.file = "errors", .device = "shm"};
    static const dn_variant_t ipnuma = {.file = "errors", .device = "ipnuma:lo", .settings = "timeout_s=10"};
    static const dn_variant_t ofi = {.file = "errors", .device = "ofi:net@lo", .settings = "timeout_s=10"};
    const char *only = 1 < argc ? argv[1] : NULL;
    pid_t begun[3];
    int count = 0, failed = 0;

    begun[count++] = begin(everywhere, sizeof(everywhere) / sizeof(everywhere[0]), &shm, only);
    if (dn_device_known("ipnuma")) {
        begun[count++] = begin(by_network, sizeof(by_network) / sizeof(by_network[0]), &ipnuma, only);
    }
    /* Sanitizers do not see what libfabric does with memory and threads. */
    if (!SANITIZED && dn_device_known("ofi")) {
        begun[count++] = begin(by_network, sizeof(by_network) / sizeof(by_network[0]), &ofi, only);
    }
    while (0 < count--) {
        int status = 0;
        failed |= 0 > begun[count] || begun[count] != waitpid(begun[count], &status, 0) || 0 != status;
    }
    return failed;
}
