/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_world.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dn_atomic.h"

dn_test_log_t dn_test_log;
dn_world_t *dn_world_here;

/* Checks */

void dn_check_at(int ok, const char *text, const char *file, int line)
{
    if (!ok) {
        fprintf(stderr, "%s: rank %d: %s:%d: failed: %s\n", dn_world_here->test, dn_world_here->rank, file,
                line, text);
        fflush(NULL);
        _Exit(1);
    }
    dn_store_release_u32(&dn_world_here->me->line, (uint32_t) line);
}

void dn_check_equal_at(uint64_t got, uint64_t wanted, const char *text, const char *file, int line)
{
    if (got != wanted) {
        fprintf(stderr, "%s: rank %d: %lld is not %lld\n", dn_world_here->test, dn_world_here->rank,
                (long long) got, (long long) wanted);
    }
    dn_check_at(got == wanted, text, file, line);
}

void dn_check_bytes_at(const void *buffer, size_t len, uint64_t key, const char *file, int line)
{
    const size_t at = dn_test_mismatch(buffer, len, key);

    if (at != len) {
        fprintf(stderr, "%s: rank %d: byte %zu of %zu is 0x%02x, not 0x%02x\n", dn_world_here->test,
                dn_world_here->rank, at, len, ((const uint8_t *) buffer)[at], dn_test_byte(key, at));
    }
    dn_check_at(at == len, "the bytes are those sent", file, line);
}

/* Meeting */

void dn_world_progress(dn_world_t *world)
{
    if (NULL == world->port || 0 == dn_progress(world->port)) {
        sched_yield();
    }
}

void dn_world_barrier(dn_world_t *world)
{
    world->barriers++;
    const uint32_t all = world->barriers * (uint32_t) world->size;

    dn_fetch_add_acq_rel(&world->board->arrived, 1);
    while (dn_load_acquire_u32(&world->board->arrived) < all) {
        dn_world_progress(world);
    }
    dn_fetch_add_acq_rel(&world->board->met, 1);
    while (dn_load_acquire_u32(&world->board->met) < all) {
        sched_yield();
    }
}

void dn_world_post(dn_world_t *world, int word, uint64_t value)
{
    dn_store_release(&world->me->word[word], value);
}

uint64_t dn_world_posted(const dn_world_t *world, int rank, int word)
{
    return dn_load_acquire(&world->board->seat[rank].word[word]);
}

void dn_world_await(dn_world_t *world, int rank, int word, uint64_t value)
{
    while (dn_world_posted(world, rank, word) < value) {
        dn_world_progress(world);
    }
}

void dn_world_sleep(const dn_world_t *world, int rank, int word, uint64_t value)
{
    while (dn_world_posted(world, rank, word) < value) {
        sched_yield();
    }
}

int dn_world_is_dead(const dn_world_t *world, int rank)
{
    long threads = 0;
    const char state = dn_test_state(world->board->seat[rank].os_pid, &threads);

    return '\0' == state || (('Z' == state || 'X' == state) && 1 >= threads);
}

void dn_world_die(dn_world_t *world)
{
    dn_store_release_u32(&world->me->dies, 1);
    kill(getpid(), SIGKILL);
    _Exit(1);
}

/* Ports */

dn_pgid_t dn_world_pgid(const dn_world_t *world)
{
    dn_pgid_t pgid;

    dn_check_equal(dn_pgid(&world->job.key, &pgid), DN_OK);
    return pgid;
}

void dn_world_open(dn_world_t *world)
{
    dn_check_equal(dn_open(world->variant->device, &world->job, &world->config, &world->port), DN_OK);
    world->me->address_len = sizeof(world->me->address);
    dn_check_equal(dn_address(world->port, world->me->address, &world->me->address_len), DN_OK);
}

void dn_world_listen(dn_world_t *world, dn_handler_fn_t fn)
{
    dn_world_open(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, fn, world), DN_OK);
    dn_world_barrier(world);
}

void dn_world_connect_to(dn_world_t *world, int rank)
{
    const dn_board_seat_t *seat = &world->board->seat[rank];

    dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &world->peer[rank]), DN_OK);
}

void dn_world_connect(dn_world_t *world)
{
    for (int i = 0; i < world->size; i++) {
        if (i != world->rank) {
            dn_world_connect_to(world, i);
        }
    }
    dn_world_barrier(world);
}

void dn_world_start(dn_world_t *world)
{
    dn_world_open(world);
    dn_world_barrier(world);
    dn_world_connect(world);
}

void dn_world_stop(dn_world_t *world)
{
    for (int i = 0; i < world->size; i++) {
        if (NULL != world->peer[i]) {
            dn_world_fence(world, world->peer[i]);
            dn_world_flush(world, world->peer[i]);
        }
    }
    dn_world_barrier(world);
    dn_close(world->port);
    world->port = NULL;
}

void dn_world_close(dn_world_t *world, int word)
{
    dn_close(world->port);
    world->port = NULL;
    dn_world_post(world, word, 1);
}

/* Hearing */

void dn_world_hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) data;
    (void) len;
    (void) arg;
    dn_check_equal(tag, dn_world_here->heard % 256);
    dn_world_here->heard++;
}

void dn_world_hear_until(dn_world_t *world, uint64_t count)
{
    while (world->heard < count) {
        dn_world_progress(world);
    }
}

uint64_t dn_world_lost(const dn_world_t *world)
{
    dn_counters_t counters;

    dn_counters(world->port, &counters);
    return counters.peers_lost;
}

uint64_t dn_world_dropped(const dn_world_t *world)
{
    dn_counters_t counters;

    dn_counters(world->port, &counters);
    return counters.dropped;
}

/* Operations */

void dn_world_send(dn_world_t *world, dn_peer_t *peer, unsigned channel, unsigned tag, const void *data,
                   size_t len)
{
    dn_status_t status;

    while (DN_ERR_AGAIN
           == (status = dn_botf(peer, channel, tag, data, len / 2, (const uint8_t *) data + len / 2,
                                len - len / 2))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_OK);
}

void dn_world_aotf(dn_world_t *world, dn_peer_t *peer, uint64_t off, uint64_t value, size_t size)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_aotf(peer, off, value, size))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_OK);
}

static void signalled(dn_comp_t *comp, dn_status_t status)
{
    dn_world_comp_t *counted = (dn_world_comp_t *) comp;

    counted->signals++;
    counted->status = status;
}

dn_world_comp_t dn_world_comp(void)
{
    return (dn_world_comp_t){{signalled}, 0, DN_INPROGRESS};
}

/** What an operation gave at once, or what its completion says: exactly one of the two. */
static dn_status_t settle(dn_world_t *world, dn_status_t status, const dn_world_comp_t *comp)
{
    while (DN_INPROGRESS == status && 0 == comp->signals) {
        dn_world_progress(world);
    }
    dn_check_equal(comp->signals, DN_INPROGRESS == status);
    status = DN_INPROGRESS == status ? comp->status : status;
    dn_check(DN_INPROGRESS != status && DN_ERR_AGAIN != status);
    return status;
}

static dn_status_t transfer(dn_world_t *world, dn_peer_t *peer, const dn_xfer_t *xfer, int push)
{
    dn_world_comp_t comp = dn_world_comp();
    dn_xfer_t mine = *xfer;
    dn_status_t status;

    mine.comp = &comp.comp;
    while (DN_ERR_AGAIN == (status = push ? dn_push(peer, &mine) : dn_pull(peer, &mine))) {
        dn_world_progress(world);
    }
    return settle(world, status, &comp);
}

dn_status_t dn_world_push(dn_world_t *world, dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return transfer(world, peer, xfer, 1);
}

dn_status_t dn_world_pull(dn_world_t *world, dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return transfer(world, peer, xfer, 0);
}

dn_status_t dn_world_atomic(dn_world_t *world, dn_peer_t *peer, const dn_amo_t *amo)
{
    dn_world_comp_t comp = dn_world_comp();
    dn_amo_t mine = *amo;
    dn_status_t status;

    mine.comp = &comp.comp;
    while (DN_ERR_AGAIN == (status = dn_atomic(peer, &mine))) {
        dn_world_progress(world);
    }
    return settle(world, status, &comp);
}

void dn_world_fence(dn_world_t *world, dn_peer_t *peer)
{
    dn_status_t status;

    while (DN_INPROGRESS == (status = dn_fence(peer))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_OK);
}

void dn_world_flush(dn_world_t *world, dn_peer_t *peer)
{
    dn_status_t status;

    while (DN_INPROGRESS == (status = dn_flush(peer))) {
        sched_yield();
    }
    dn_check_equal(status, DN_OK);
}

/* Running */

/** The settings of a variant; the rest are defaults. */
static void configure(dn_world_t *world, const char *dir)
{
    const dn_variant_t *variant = world->variant;

    char *rest = world->settings;

    dn_config_init(&world->config);
    snprintf(world->settings, sizeof(world->settings), "%s",
             NULL == variant->settings ? "" : variant->settings);
    for (char *name; NULL != (name = strtok_r(rest, " ", &rest));) {
        char *value = strchr(name, '=');
        dn_check(NULL != value);
        *value++ = '\0';
        dn_check_equal(dn_config_set(&world->config, name, value), DN_OK);
    }
    world->job.pid = (uint32_t) world->rank;
    world->job.nlocal = (uint32_t) world->size;
    world->job.dir = dir;
}

/**
 * A test that goes wrong harms nobody else: no file of its grows beyond this, a memfd included, which has no
 * limit otherwise; and when memory runs out all the same, it is the first to be ended.
 */
static void contain(void)
{
    const struct rlimit limit = {DN_WORLD_FILE_BYTES, DN_WORLD_FILE_BYTES};
    FILE *file = fopen("/proc/self/oom_score_adj", "w");

    if (NULL != file) {
        fputs("1000", file);
        fclose(file);
    }
    signal(SIGXFSZ, SIG_IGN);
    if (0 != setrlimit(RLIMIT_FSIZE, &limit)) {
        fprintf(stderr, "the size of files cannot be limited (%s): not run without\n", strerror(errno));
        _Exit(1);
    }
}

static void child(dn_world_t *world, const char *dir, dn_world_fn_t fn)
{
    contain();
    /* An interrupted run leaves no process behind. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    alarm(DN_WORLD_SECONDS);
    dn_test_log_watch();
    dn_world_here = world;
    world->me = &world->board->seat[world->rank];
    world->me->os_pid = (uint32_t) getpid();
    world->random = (uint64_t) world->rank + 1;
    configure(world, dir);
    fn(world);
    fflush(NULL);
    /* exit and not _Exit: a sanitizer looks for leaks there. */
    exit(0);
}

/** Say how a child ended unless it ended as it should. @return 1 when it did not. */
static int judge(const dn_world_t *world, int rank, int status)
{
    const dn_board_seat_t *seat = &world->board->seat[rank];

    if (WIFEXITED(status) && 0 == WEXITSTATUS(status) && !seat->dies) {
        return 0;
    }
    if (WIFSIGNALED(status) && SIGKILL == WTERMSIG(status) && seat->dies) {
        return 0;
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "%s: rank %d ended by signal %d%s; its last check passed was in line %u\n",
                world->test, rank, WTERMSIG(status),
                SIGALRM == WTERMSIG(status) ? " (deadline: it hung)" : "", seat->line);
    } else {
        fprintf(stderr, "%s: rank %d ended with status %d\n", world->test, rank, WEXITSTATUS(status));
    }
    return 1;
}

/** End those that still run, and none but those: an entry is 0 once reaped, or when it was never started. */
static void end_all(const dn_world_t *world, const pid_t *pid)
{
    for (int i = 0; i < world->size; i++) {
        dn_store_release_u32(&world->board->seat[i].dies, 1);
        if (0 < pid[i]) {
            kill(pid[i], SIGKILL);
        }
    }
}

/** Reap all; after the first failure the others are ended, since they may wait for the one that failed. */
static int reap(const dn_world_t *world, pid_t *pid)
{
    int failed = 0;

    for (;;) {
        int status = 0;
        const pid_t ended = wait(&status);
        int rank = 0;
        if (0 > ended) {
            return failed;
        }
        while (rank < world->size && pid[rank] != ended) {
            rank++;
        }
        if (rank == world->size) {
            continue;
        }
        pid[rank] = 0;
        if (0 == failed && judge(world, rank, status)) {
            failed = 1;
            end_all(world, pid);
        }
    }
}

/** Remove a folder. @return files found in it. */
static int clear_folder(const char *dir, int tell)
{
    int found = 0;
    DIR *folder = opendir(dir);

    for (struct dirent *entry = readdir(folder); NULL != entry; entry = readdir(folder)) {
        if (0 != strcmp(entry->d_name, ".") && 0 != strcmp(entry->d_name, "..")) {
            if (tell) {
                fprintf(stderr, "%s: left behind: %s/%s\n", dn_world_here->test, dir, entry->d_name);
            }
            unlinkat(dirfd(folder), entry->d_name, 0);
            found++;
        }
    }
    closedir(folder);
    rmdir(dir);
    return found;
}

int dn_world_run(const char *test, const dn_variant_t *variant, int size, dn_world_fn_t fn)
{
    dn_world_t world = {.test = test, .variant = variant, .size = size};
    pid_t pid[DN_WORLD_MAX] = {0};
    int started = 1;
    char dir[] = "/dev/shm/dn_test.XXXXXX";

    dn_world_here = &world;
    world.board = mmap(NULL, sizeof(dn_board_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == world.board || NULL == mkdtemp(dir)
        || sizeof(world.job.key) != getrandom(&world.job.key, sizeof(world.job.key), 0)) {
        fprintf(stderr, "%s: the test cannot be set up: %s\n", test, strerror(errno));
        return 1;
    }
    fflush(NULL);
    for (world.rank = 0; world.rank < size && started; world.rank++) {
        const pid_t forked = fork();
        if (0 == forked) {
            child(&world, dir, fn);
        }
        started = 0 < forked;
        pid[world.rank] = started ? forked : 0;
    }
    if (!started) {
        fprintf(stderr, "%s: no process can be started: %s\n", test, strerror(errno));
        end_all(&world, pid);
    }
    int failed = reap(&world, pid) | !started;
    failed |= 0 != clear_folder(dir, 0 == failed);
    munmap(world.board, sizeof(dn_board_t));
    if (failed) {
        fprintf(stderr, "%s: FAILED over %s%s%s\n", test, variant->file,
                NULL == variant->settings ? "" : " with ",
                NULL == variant->settings ? "" : variant->settings);
    }
    return failed;
}

int dn_world_run_tests(const dn_world_test_t *test, size_t tests, const dn_variant_t *variant,
                       const char *name)
{
    int failed = 0;
    size_t ran = 0;

    for (size_t i = 0; i < tests; i++) {
        if (NULL == name || 0 == strcmp(name, test[i].name)) {
            failed |= dn_world_run(test[i].name, variant, test[i].processes, test[i].fn);
            ran++;
        }
    }
    if (0 == ran) {
        fprintf(stderr, "there is no test %s\n", name);
    }
    return failed || 0 == ran;
}
