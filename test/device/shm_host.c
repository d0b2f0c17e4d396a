/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What the shm device makes of what the host says of processes, descriptors and memory.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/dn_shm_int.h"

/* Processes */

/** State of a process, as /proc says it. */
static char state_of(pid_t pid)
{
    char path[32];
    char state = '?';

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
    FILE *file = fopen(path, "re");
    dn_check(NULL != file);
    dn_check_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    fclose(file);
    return state;
}

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
    while ('Z' != state_of(child)) {
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

static const dn_world_test_t tests[] = {
    {"a_process_lives_as_long_as_its_last_thread", 1, a_process_lives_as_long_as_its_last_thread},
};

/** usage: shm_host [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "host", .device = "shm", .cma = 1, .backing = "auto"};

    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, 1 < argc ? argv[1] : NULL);
}
