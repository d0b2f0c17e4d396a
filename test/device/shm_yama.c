/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Whom a process of the shm device lets into its memory where Yama restricts ptrace, and what goes on where the kernel lets
 * nobody in. Yama need not be there: prctl() and process_vm_readv() are those of this file.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "dn_world.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/** What was asked of Yama. */
static struct {
    unsigned calls;
    unsigned long named; /**< by the last call */
    int absent;
    int denies;
} yama;

int prctl(int option, ...)
{
    unsigned long word[4];
    va_list args;

    va_start(args, option);
    for (int i = 0; i < 4; i++) {
        word[i] = va_arg(args, unsigned long);
    }
    va_end(args);
    if (PR_SET_PTRACER != option) {
        return (int) syscall(SYS_prctl, option, word[0], word[1], word[2], word[3]);
    }
    yama.calls++;
    yama.named = word[0];
    errno = EINVAL;
    return yama.absent ? -1 : 0;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nlocal,
                         const struct iovec *remote, unsigned long nremote, unsigned long flags)
{
    if (yama.denies) {
        errno = EPERM;
        return -1;
    }
    return syscall(SYS_process_vm_readv, pid, local, nlocal, remote, nremote, flags);
}

/** A program that its launcher has given a process group, as mpirun and shells do. */
static void launch(void)
{
    dn_check_equal(setpgid(0, 0), 0);
}

static void open_port(const dn_world_t *world, dn_port_t **port_p)
{
    dn_check_equal(dn_open("shm", &world->job, &world->config, port_p), DN_OK);
}

static void the_launcher_is_named_until_the_last_port_closes(dn_world_t *world)
{
    dn_port_t *port[2];

    launch();
    open_port(world, &port[0]);
    dn_check_equal(yama.calls, 1);
    dn_check_equal(yama.named, (unsigned long) getppid());
    open_port(world, &port[1]);
    dn_close(port[0]);
    dn_check_equal(yama.calls, 1);
    dn_close(port[1]);
    dn_check_equal(yama.calls, 2);
    dn_check_equal(yama.named, 0);
    open_port(world, &port[0]);
    dn_check_equal(yama.named, (unsigned long) getppid());
    dn_close(port[0]);
    dn_check_equal(yama.named, 0);
}

/** A child without exec, whose status is that of a function. */
static void in_child(dn_world_t *world, void (*fn)(dn_world_t *world, pid_t launcher), pid_t launcher)
{
    int status = 0;
    const pid_t pid = fork();

    if (0 == pid) {
        fn(world, launcher);
        _Exit(0);
    }
    dn_check_equal(waitpid(pid, &status, 0), pid);
    dn_check_equal(status, 0);
}

static void expect_named(dn_world_t *world, pid_t launcher)
{
    dn_port_t *port = NULL;
    const unsigned before = yama.calls;

    open_port(world, &port);
    dn_check_equal(yama.calls, before + 1);
    dn_check_equal(yama.named, (unsigned long) launcher);
    dn_close(port);
    dn_check_equal(yama.named, 0);
}

/** The parent is a script of the same group: each rank has another. */
static void the_launcher_is_found_behind_a_script(dn_world_t *world)
{
    launch();
    in_child(world, expect_named, getppid());
}

/** Yama has forgotten in the child what the parent said. */
static void a_forked_process_names_for_itself(dn_world_t *world)
{
    dn_port_t *port = NULL;

    launch();
    open_port(world, &port);
    in_child(world, expect_named, getppid());
    dn_close(port);
}

/** Its parent has ended: who took it is named, but for the first process of the host. */
static void expect_no_parent(dn_world_t *world, pid_t parent)
{
    dn_port_t *port = NULL;

    while (getppid() == parent) {
        sched_yield();
    }
    open_port(world, &port);
    dn_close(port);
    dn_world_post(world, 0, 1 + (1 == getppid() ? yama.calls : 0));
}

static void a_process_without_launcher_does_not_name_everybodys(dn_world_t *world)
{
    struct stat info;

    launch();
    const pid_t parent = fork();
    if (0 == parent) {
        const pid_t self = getpid();
        if (0 == fork()) {
            expect_no_parent(world, self);
        }
        _Exit(0);
    }
    dn_check_equal(waitpid(parent, NULL, 0), parent);
    while (0 == dn_load_acquire(&world->me->word[0])) {
        sched_yield();
    }
    /* In a PID namespace of its own the first process may be the launcher. */
    dn_check_equal(stat("/proc/self/ns/pid", &info), 0);
    dn_check(0xeffffffcu != info.st_ino || 1 == world->me->word[0]);
}

static void nobody_is_named_without_cma(dn_world_t *world)
{
    dn_port_t *port = NULL;

    launch();
    world->config.cma = 0;
    open_port(world, &port);
    dn_close(port);
    dn_check_equal(yama.calls, 0);
}

static void without_yama_nothing_is_undone(dn_world_t *world)
{
    dn_port_t *port = NULL;

    launch();
    yama.absent = 1;
    open_port(world, &port);
    dn_close(port);
    dn_check_equal(yama.calls, 1);
}

static char answer[512];

static void note_answer(const char *sentence, void *arg)
{
    (void) arg;
    snprintf(answer, sizeof(answer), "%s", sentence);
}

/** Where the launcher is not common to both, bytes go by messages, and that is told to who wants to know. */
static void a_peer_that_lets_nobody_in_is_reached_by_messages(dn_world_t *world)
{
    static uint8_t memory[100000];
    dn_segment_t *segment = NULL;
    dn_peer_attr_t attr;

    yama.denies = 0 == world->rank;
    dn_log_answers_set(note_answer, NULL);
    dn_world_start(world);
    dn_peer_attr(world->peer[1 - world->rank], &attr);
    dn_check_equal(attr.direct, 0 != world->rank);
    dn_check_equal(NULL != strstr(answer, "without CMA"), 0 == world->rank);
    if (1 == world->rank) {
        dn_check_equal(dn_segment_register(world->port, memory, sizeof(memory), &segment), DN_OK);
        dn_segment_key(segment, &world->me->key[0]);
    }
    dn_world_barrier(world);
    if (0 == world->rank) {
        const dn_xfer_t xfer = {.local = memory, .key = &world->board->seat[1].key[0], .len = sizeof(memory)};
        dn_test_fill(memory, sizeof(memory), 7);
        dn_check_equal(dn_world_push(world, world->peer[1], &xfer), DN_OK);
        memset(memory, 0, sizeof(memory));
        dn_check_equal(dn_world_pull(world, world->peer[1], &xfer), DN_OK);
        dn_check_bytes(memory, sizeof(memory), 7);
    }
    dn_world_barrier(world);
    if (1 == world->rank) {
        dn_check_bytes(memory, sizeof(memory), 7);
    }
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"the_launcher_is_named_until_the_last_port_closes", 1, the_launcher_is_named_until_the_last_port_closes},
    {"the_launcher_is_found_behind_a_script", 1, the_launcher_is_found_behind_a_script},
    {"a_forked_process_names_for_itself", 1, a_forked_process_names_for_itself},
    {"a_process_without_launcher_does_not_name_everybodys", 1,
     a_process_without_launcher_does_not_name_everybodys},
    {"nobody_is_named_without_cma", 1, nobody_is_named_without_cma},
    {"without_yama_nothing_is_undone", 1, without_yama_nothing_is_undone},
    {"a_peer_that_lets_nobody_in_is_reached_by_messages", 2,
     a_peer_that_lets_nobody_in_is_reached_by_messages},
};

/** usage: shm_yama [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "shm_yama", .device = "shm"};
    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, argv[1]);
}
