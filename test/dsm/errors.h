/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file errors.h
 * What tests of bad input, and of processes that end, share.
 */
#ifndef DN_DSM_TEST_ERRORS_H
#define DN_DSM_TEST_ERRORS_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../device/dn_world.h"

/** A call returns an error and logs one sentence, which has some words. */
#define refused(call, status, word)          \
    do {                                     \
        dn_test_log_expect();                \
        dn_check_equal(call, status);        \
        dn_check(dn_test_log_said(1, word)); \
    } while (0)

/** Run a function in a child; its sentences and how it ends. @return of waitpid(). */
static inline int in_a_child(dn_world_t *world, void (*fn)(dn_world_t *world), char *said, size_t size)
{
    int pipes[2], status = 0;
    size_t len = 0;
    ssize_t got;

    dn_check_equal(pipe(pipes), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (0 == child) {
        /* As for the process of a test. */
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        alarm(DN_WORLD_SECONDS);
        dup2(pipes[1], STDERR_FILENO);
        dn_log_set(NULL, NULL);
        fn(world);
        _exit(0);
    }
    close(pipes[1]);
    while (len + 1 < size && 0 < (got = read(pipes[0], said + len, size - 1 - len))) {
        len += (size_t) got;
    }
    said[len] = '\0';
    close(pipes[0]);
    dn_check_equal(waitpid(child, &status, 0), child);
    return status;
}

#endif
