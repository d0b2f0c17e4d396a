/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A turn that an object's table has is made; any other ends the process with a sentence that says which it was.
 */
#include "dn_config.h"

/* As builds that look for errors have it. */
#ifndef DN_CHECK_STATES
#    define DN_CHECK_STATES
#endif

#include "dn_unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dn_turn.h"

enum { SOWN, GROWS, RIPE, STATES };

static const uint32_t turns[] = {
    [SOWN] = DN_TURN_TO(GROWS),
    [GROWS] = DN_TURN_TO(GROWS) | DN_TURN_TO(RIPE),
    [RIPE] = 0,
};

static void say_nothing(const char *line, void *arg)
{
    const char *want = arg;

    _exit(NULL != want && NULL != strstr(line, want) ? 1 : 2);
}

/** How a process that makes this turn ends: 0: it was made. 1: with the sentence, 2: with another. 3: without one. */
static int turn(unsigned from, unsigned to, char *sentence)
{
    int status = 0;
    const pid_t pid = fork();

    if (0 == pid) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dn_log_set(say_nothing, sentence);
        dn_turn_check("a plant", turns, from, to);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

static void only_what_is_drawn_is_made(void **state)
{
    for (unsigned from = 0; from < STATES; from++) {
        for (unsigned to = 0; to < STATES; to++) {
            char sentence[80];
            const int drawn = (SOWN == from && GROWS == to) || (GROWS == from && SOWN != to);

            snprintf(sentence, sizeof(sentence), "a plant turned from state %u to %u,", from, to);
            assert_int_equal(turn(from, to, sentence), drawn ? 0 : 1);
        }
    }
}

static void a_wrong_turn_does_not_return(void **state)
{
    int status = 0;
    const pid_t pid = fork();

    if (0 == pid) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        dn_log_set(NULL, NULL);
        dn_turn_check("a plant", turns, RIPE, SOWN);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && SIGABRT == WTERMSIG(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_drawn_is_made),
        cmocka_unit_test(a_wrong_turn_does_not_return),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
