/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What the shm device makes of what the host says of processes, descriptors and memory.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dn_port.h"
#include "shm/dn_shm_file.h"
#include "shm/dn_shm_int.h"
#include "shm/dn_shm_memory.h"

/* Processes */

static void *outlive(void *arg)
{
    (void) arg;
    for (;;) {
        pause();
    }
    return NULL;
}

/** A child whose first thread ends, while another goes on. */
static pid_t start_headless(void)
{
    pthread_t thread;
    const pid_t child = fork();

    dn_check(0 <= child);
    if (0 == child) {
        alarm(DN_WORLD_SECONDS);
        if (0 != pthread_create(&thread, NULL, outlive, NULL)) {
            _Exit(1);
        }
        pthread_exit(NULL);
    }
    while ('Z' != dn_test_state((uint32_t) child, NULL)) {
        sched_yield();
    }
    return child;
}

static void a_process_lives_as_long_as_its_last_thread(dn_world_t *world)
{
    uint64_t start;
    int status;
    const pid_t child = start_headless();

    (void) world;
    dn_check_equal(dn_shm_process((uint32_t) child, &start), DN_OK);
    dn_check(!dn_shm_gone((uint32_t) child, start));
    dn_check(dn_shm_gone((uint32_t) child, start + 1));
    dn_check_equal(kill(child, SIGKILL), 0);
    /* Ended and not waited for, then waited for. */
    while (!dn_shm_gone((uint32_t) child, start)) {
        sched_yield();
    }
    dn_check_equal(waitpid(child, &status, 0), child);
    dn_check_equal(dn_shm_process((uint32_t) child, &start), DN_ERR_UNREACH);
    dn_check(dn_shm_gone((uint32_t) child, start));
}

/** Not 0: reads fail so. */
static int read_error;

ssize_t __real_read(int fd, void *buffer, size_t len);
ssize_t __wrap_read(int fd, void *buffer, size_t len);

/** In place of the system's. */
ssize_t __wrap_read(int fd, void *buffer, size_t len)
{
    if (0 != read_error) {
        errno = read_error;
        return -1;
    }
    return __real_read(fd, buffer, len);
}

/** Its state cannot be read for want of memory: that says nothing of it. That it ended after it was found does. */
static void a_process_that_cannot_be_read_now_has_not_ended(dn_world_t *world)
{
    uint64_t start;

    (void) world;
    dn_check_equal(dn_shm_process((uint32_t) getpid(), &start), DN_OK);
    read_error = ENOMEM;
    const dn_status_t short_of_memory = dn_shm_process((uint32_t) getpid(), &start);
    const int gone = dn_shm_gone((uint32_t) getpid(), start);
    read_error = ESRCH;
    const dn_status_t ended = dn_shm_process((uint32_t) getpid(), &start);
    read_error = 0;
    dn_check_equal(short_of_memory, DN_ERR_NOMEM);
    dn_check(!gone);
    dn_check_equal(ended, DN_ERR_UNREACH);
}

/* Slots */

/** The slot whose sender goes on while the owner asks for its life; NULL: none. */
static dn_shm_slot_t *hurried;

dn_status_t __real_dn_shm_process(uint32_t os_pid, uint64_t *start_time_p);
dn_status_t __wrap_dn_shm_process(uint32_t os_pid, uint64_t *start_time_p);

/** In place of the library's. */
dn_status_t __wrap_dn_shm_process(uint32_t os_pid, uint64_t *start_time_p)
{
    if (NULL != hurried) {
        dn_store_release_u32(&hurried->state, DN_SHM_CLOSED);
        hurried = NULL;
        return DN_ERR_UNREACH;
    }
    return __real_dn_shm_process(os_pid, start_time_p);
}

/** The sender fills in its slot, closes it and ends, all after the owner saw its claim. */
static void a_slot_that_was_claimed_a_moment_ago_is_not_wiped(dn_world_t *world)
{
    dn_world_open(world);
    dn_world_connect_to(world, 0);
    dn_shm_t *shm = (dn_shm_t *) ((dn_peer_base_t *) world->peer[0])->iface;
    dn_shm_slot_t *slot = &shm->map.slot[shm->config.max_peers - 1];

    dn_store_release_u32(&slot->state, dn_shm_claim(1, 1));
    hurried = slot;
    dn_shm_retry(shm);
    dn_check(NULL == hurried);
    dn_check_equal(dn_load_acquire_u32(&slot->state), DN_SHM_CLOSED);
    dn_store_release_u32(&slot->state, DN_SHM_FREE);
    dn_disconnect(world->peer[0]);
    dn_close(world->port);
}

/** Who is connected by another device, and comes by this one too, is not taken for a peer of this one. */
static void a_peer_of_another_device_is_left_to_it(dn_world_t *world)
{
    static union {
        dn_shm_peer_t size;
        dn_peer_base_t base;
    } other;
    static const dn_shm_peer_t none;

    dn_world_listen(world, dn_world_hear);
    if (1 == world->rank) {
        dn_world_await(world, 0, 0, 1);
        dn_world_connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, "here", 4);
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 2);
    } else {
        dn_world_connect_to(world, 0);
        dn_shm_t *shm = (dn_shm_t *) ((dn_peer_base_t *) world->peer[0])->iface;
        dn_iface_t iface = shm->iface;
        dn_shm_where_t where;
        const dn_board_seat_t *seat = &world->board->seat[1];
        memcpy(&where, seat->address + seat->address_len - sizeof(where), sizeof(where));
        other.base.iface = &iface;
        memcpy(other.base.nonce, where.nonce, sizeof(where.nonce));
        dn_port_adopt(world->port, &other.base);
        dn_world_post(world, 0, 1);
        dn_world_await(world, 1, 0, 1);
        for (int i = 0; i < 1000; i++) {
            dn_progress(world->port);
        }
        dn_check_equal(world->heard, 0);
        dn_check_equal(memcmp((uint8_t *) &other + sizeof(other.base),
                              (const uint8_t *) &none + sizeof(other.base),
                              sizeof(none) - sizeof(other.base)),
                       0);
        dn_port_forget(world->port, &other.base);
        dn_shm_look_soon(shm);
        dn_world_hear_until(world, 1);
        dn_world_post(world, 0, 2);
    }
    dn_world_stop(world);
}

/* Descriptors */

/** A name that stands for no regular file is looked at, and not opened. */
static void what_is_no_file_is_not_opened(dn_world_t *world)
{
    char path[DN_SHM_PATH_MAX];
    char event[512];

    snprintf(path, sizeof(path), "%s/fifo", world->job.dir);
    dn_check_equal(mkfifo(path, 0600), 0);
    const int own = open(path, O_RDWR | O_CLOEXEC);
    dn_check(0 <= own);
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    dn_check(0 <= inotify_add_watch(watch, path, IN_OPEN));
    dn_check_equal(dn_shm_open_fd((uint32_t) getpid(), own, ""), -1);
    dn_check_equal(errno, EPROTO);
    dn_check_equal(dn_shm_open_fd((uint32_t) getpid(), own, path), -1);
    dn_check_equal(errno, EPROTO);
    dn_check_equal(read(watch, event, sizeof(event)), -1);
    dn_check_equal(errno, EAGAIN);
    close(watch);
    close(own);
    dn_check_equal(unlink(path), 0);
    /* A link is not followed by its name. */
    dn_check_equal(symlink("/dev/null", path), 0);
    dn_check_equal(dn_shm_open_fd((uint32_t) getpid(), own, path), -1);
    dn_check_equal(unlink(path), 0);
}

/* Memory */

static int counted;

int __wrap_dn_memory_is_counted(void);

/** In place of the library's. */
int __wrap_dn_memory_is_counted(void)
{
    return counted;
}

/** Bytes that a port's own mapping takes. */
static uint64_t memory_of(const dn_world_t *world)
{
    struct stat info;
    const dn_peer_base_t *self = (const dn_peer_base_t *) world->peer[world->rank];

    dn_check_equal(fstat(((const dn_shm_t *) self->iface)->fd, &info), 0);
    return (uint64_t) info.st_blocks * 512;
}

/** Bytes that the other's connection adds to a port's memory before a message is sent. */
static uint64_t memory_of_a_connection(dn_world_t *world)
{
    world->config.ring_lines = 1024;
    /* Too small for a thread that brings its memory in meanwhile. */
    world->config.stage_bytes = DN_SHM_GRANULE;
    world->config.backing = DN_BACKING_MEMFD;
    dn_world_open(world);
    dn_world_connect_to(world, world->rank);
    const uint64_t before = memory_of(world);
    dn_world_barrier(world);
    dn_world_connect_to(world, 1 - world->rank);
    dn_world_post(world, counted, 1);
    dn_world_sleep(world, 1 - world->rank, counted, 1);
    return memory_of(world) - before;
}

/** A page that is not there may be refused when it is touched: by a SIGBUS. */
static void a_ring_has_its_memory_where_that_is_counted(dn_world_t *world)
{
    counted = 1;
    dn_check(1024 * DN_LINE_BYTES <= memory_of_a_connection(world));
    dn_world_stop(world);
    memset(world->peer, 0, sizeof(world->peer));
    counted = 0;
    dn_check(1024 * DN_LINE_BYTES > memory_of_a_connection(world));
    dn_world_stop(world);
}

static void tick(int signal)
{
    (void) signal;
}

static void an_allocation_goes_on_after_signals(dn_world_t *world)
{
    const uint64_t bytes = UINT64_C(128) << 20;
    const struct sigaction action = {.sa_handler = tick};
    const struct itimerval often = {{0, 4000}, {0, 4000}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    struct stat info;
    const int fd = memfd_create("test", MFD_CLOEXEC);

    (void) world;
    dn_check(0 <= fd);
    dn_check_equal(sigaction(SIGALRM, &action, NULL), 0);
    dn_check_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    dn_check_equal(dn_shm_allocate(fd, 0, bytes), 0);
    dn_check_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    dn_check_equal(fstat(fd, &info), 0);
    dn_check(bytes <= (uint64_t) info.st_blocks * 512);
    close(fd);
}

/** A segment, or a stage, that may not be so large is done without; no signal ends the process. */
static void sizes_of_files_are_kept_to(dn_world_t *world)
{
    const struct rlimit limit = {48 << 20, 48 << 20};
    dn_segment_t *segment;

    signal(SIGXFSZ, SIG_DFL);
    dn_check_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    world->config.stage_bytes = DN_STAGE_BYTES_MAX;
    world->config.max_peers = 8;
    world->config.backing = DN_BACKING_MEMFD;
    dn_world_open(world);
    dn_world_connect_to(world, 0);
    dn_check_equal(((dn_shm_t *) ((dn_peer_base_t *) world->peer[0])->iface)->stage.count, 0);
    dn_check_equal(dn_segment_alloc(world->port, 64 << 20, &segment), DN_ERR_NOMEM);
    dn_check_equal(dn_segment_alloc(world->port, 1 << 20, &segment), DN_OK);
    dn_world_stop(world);
}

/** What there is; 0: what the system says. */
static uint64_t available;
static unsigned asked;

uint64_t __real_dn_shm_available(void);
uint64_t __wrap_dn_shm_available(void);

/** In place of the library's. */
uint64_t __wrap_dn_shm_available(void)
{
    asked++;
    return 0 == available ? __real_dn_shm_available() : available;
}

static dn_status_t alloc(dn_world_t *world, uint64_t bytes)
{
    dn_segment_t *segment;

    return dn_segment_alloc(world->port, bytes, &segment);
}

/** Many short segments ask once a second. A refusal is no old answer, and nothing is promised twice. */
static void what_is_available_is_asked_now_and_then(dn_world_t *world)
{
    const uint64_t mib = 1 << 20;

    world->config.backing = DN_BACKING_MEMFD;
    dn_world_open(world);
    available = 64 * mib;
    const uint64_t before = dn_shm_now_ms();
    for (int i = 0; i < 50; i++) {
        dn_check_equal(alloc(world, 100), DN_OK);
    }
    dn_check(asked <= 1 + (dn_shm_now_ms() - before) / 1000);
    ((dn_shm_t *) world->port->ifaces)->available_ms -= 1000;
    available = 3 * mib;
    asked = 0;
    dn_check_equal(alloc(world, 2 * mib), DN_OK);
    dn_check_equal(asked, 1);
    available = mib;
    dn_check_equal(alloc(world, 2 * mib), DN_ERR_NOMEM);
    dn_check_equal(asked, 2);
    available = 3 * mib;
    dn_check_equal(alloc(world, 2 * mib), DN_OK);
    dn_check_equal(asked, 3);
    dn_close(world->port);
}

/** Nor does it ask at all where segments are private memory. */
static void what_is_available_is_not_asked_for_private_memory(dn_world_t *world)
{
    world->config.backing = DN_BACKING_FILE;
    dn_world_open(world);
    asked = 0;
    dn_check_equal(alloc(world, 100), DN_OK);
    dn_check_equal(asked, 0);
    dn_close(world->port);
}

/** Write a file of a control group, its folders included. */
static void put(const dn_world_t *world, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", world->job.dir, name);
    for (char *slash = strchr(path + strlen(world->job.dir) + 1, '/'); NULL != slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void) mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    dn_check(NULL != file);
    fputs(text, file);
    fclose(file);
}

static void remove_tree(const dn_world_t *world)
{
    static const char *const name[] = {"self",
                                       "a/b/memory.max",
                                       "a/b/memory.current",
                                       "a/b/memory.stat",
                                       "a/memory.max",
                                       "a/memory.current",
                                       "memory/a/memory.limit_in_bytes",
                                       "memory/a/memory.usage_in_bytes",
                                       "memory/a/memory.stat",
                                       "a/b",
                                       "a",
                                       "memory/a",
                                       "memory"};
    char path[256];

    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", world->job.dir, name[i]);
        (void) remove(path);
    }
}

static uint64_t left(const dn_world_t *world)
{
    char self[256];

    snprintf(self, sizeof(self), "%s/self", world->job.dir);
    return dn_shm_cgroup_available(world->job.dir, self);
}

/** The tightest of all groups up to the root counts, of either version; caches that would be given up do not. */
static void control_groups_bound_what_is_available(dn_world_t *world)
{
    dn_check_equal(left(world), UINT64_MAX);
    put(world, "self", "0::/a/b\n");
    dn_check_equal(left(world), UINT64_MAX);
    put(world, "a/b/memory.max", "max\n");
    put(world, "a/b/memory.current", "700\n");
    dn_check_equal(left(world), UINT64_MAX);
    put(world, "a/memory.max", "1000\n");
    put(world, "a/memory.current", "900\n");
    dn_check_equal(left(world), 100);
    put(world, "a/b/memory.max", "750\n");
    dn_check_equal(left(world), 50);
    put(world, "a/b/memory.stat", "anon 5\nfile 600\ninactive_file 10\nactive_file 3\nshmem 7\n");
    dn_check_equal(left(world), 63);
    put(world, "a/b/memory.current", "800\n");
    put(world, "a/b/memory.stat", "");
    dn_check_equal(left(world), 0);
    put(world, "self", "7:cpu:/a/b\n4:memory:/a\n0::/elsewhere\n");
    dn_check_equal(left(world), UINT64_MAX);
    put(world, "memory/a/memory.limit_in_bytes", "5000\n");
    put(world, "memory/a/memory.usage_in_bytes", "4000\n");
    put(world, "memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 20\ntotal_active_file 4\n");
    dn_check_equal(left(world), 1024);
    remove_tree(world);
}

/* Processing units */

static void units_above_1023_are_seen(dn_world_t *world)
{
    dn_cpumask_t whole = {{0}}, part = {{0}};

    (void) world;
    dn_cpumask_add(&whole, 1100);
    dn_cpumask_add(&whole, 8191);
    dn_cpumask_add(&part, 8191);
    dn_check_equal(dn_cpumask_weight(&whole), 2);
    dn_check(dn_cpumask_within(&part, &whole));
    dn_check(!dn_cpumask_within(&whole, &part));
}

static const dn_world_test_t tests[] = {
    {"a_process_lives_as_long_as_its_last_thread", 1, a_process_lives_as_long_as_its_last_thread},
    {"a_process_that_cannot_be_read_now_has_not_ended", 1, a_process_that_cannot_be_read_now_has_not_ended},
    {"a_slot_that_was_claimed_a_moment_ago_is_not_wiped", 1,
     a_slot_that_was_claimed_a_moment_ago_is_not_wiped},
    {"a_peer_of_another_device_is_left_to_it", 2, a_peer_of_another_device_is_left_to_it},
    {"what_is_no_file_is_not_opened", 1, what_is_no_file_is_not_opened},
    {"a_ring_has_its_memory_where_that_is_counted", 2, a_ring_has_its_memory_where_that_is_counted},
    {"an_allocation_goes_on_after_signals", 1, an_allocation_goes_on_after_signals},
    {"sizes_of_files_are_kept_to", 1, sizes_of_files_are_kept_to},
    {"what_is_available_is_asked_now_and_then", 1, what_is_available_is_asked_now_and_then},
    {"what_is_available_is_not_asked_for_private_memory", 1,
     what_is_available_is_not_asked_for_private_memory},
    {"control_groups_bound_what_is_available", 1, control_groups_bound_what_is_available},
    {"units_above_1023_are_seen", 1, units_above_1023_are_seen},
};

/** usage: shm_host [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "host", .device = "shm"};

    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, 1 < argc ? argv[1] : NULL);
}
