/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A process enrols for fences in a thread of its own, where it has others already, and nowhere else.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dn_device.h"

static const dn_job_t job = {.key = {{7}}, .pid = 0, .nlocal = 1};
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

/** Threads of this process. */
static int threads(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/task");

    if (NULL == dir) {
        return -1;
    }
    for (const struct dirent *entry; NULL != (entry = readdir(dir));) {
        count += '.' != entry->d_name[0];
    }
    closedir(dir);
    return count;
}

static void *wait_for_the_end(void *arg)
{
    (void) pthread_mutex_lock(&held);
    (void) pthread_mutex_unlock(&held);
    return arg;
}

/** What a child of fork() sees. @return 1: it enrols as any process does. */
static int child_enrols(int expected)
{
    int status = 0;
    const pid_t pid = fork();

    if (0 == pid) {
        /* A hang is a failure too. */
        (void) alarm(60);
        dn_bell_enroll_wait();
        _exit(expected == dn_bell_enroll() && expected == dn_bell_enroll() ? 0 : 1);
    }
    return 0 < pid && pid == waitpid(pid, &status, 0) && WIFEXITED(status) && 0 == WEXITSTATUS(status);
}

static void a_process_of_one_thread_stays_so(void **state)
{
    dn_port_t *port = NULL;

    (void) state;
#if __has_include(<sys/single_threaded.h>)
    const int before = threads();
#endif
    assert_int_equal(dn_open("shm", &job, NULL, &port), DN_OK);
#if __has_include(<sys/single_threaded.h>)
    assert_int_equal(threads(), before);
#endif
    dn_close(port);
    const int enrolled = dn_bell_enroll();
    assert_int_equal(enrolled, dn_bell_fence_all());
    assert_true(child_enrols(enrolled));
}

/** A program begins: it has two threads, and has not enrolled. @return the status with which it ends. */
static int run_with_threads(void)
{
    pthread_t thread;
    int wrong = 0;

    /* A hang is a failure too. */
    (void) alarm(240);
    (void) pthread_mutex_lock(&held);
    wrong |= 0 != pthread_create(&thread, NULL, wait_for_the_end, NULL);
    const int before = threads();
    for (int i = 0; i < 3; i++) {
        dn_port_t *port = NULL;

        wrong |= DN_OK != dn_open("shm", &job, NULL, &port);
        /* Under way, the first time: a child begins anew. */
        wrong |= !child_enrols(dn_bell_fence_all());
        dn_close(port);
        /* The kernel shows a thread for a moment after pthread_join(). */
        while (before != threads()) {
            (void) sched_yield();
        }
    }
    wrong |= dn_bell_enroll() != dn_bell_fence_all();
    (void) pthread_mutex_unlock(&held);
    wrong |= 0 != pthread_join(thread, NULL);
    return wrong;
}

/** The process that runs with threads. */
static pid_t other;

static void a_process_of_threads_closes_when_its_enrolment_is_over(void **state)
{
    int status = -1;

    (void) state;
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_of_one_thread_stays_so),
        cmocka_unit_test(a_process_of_threads_closes_when_its_enrolment_is_over),
    };

    other = fork();
    if (0 == other) {
        _exit(run_with_threads());
    }
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
