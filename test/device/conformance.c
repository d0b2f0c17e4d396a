/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Runs the conformance suite over one variant, as a .conf file describes it:
 *
 *   conformance FILE.conf [TEST...]
 *
 * A line of the file is a setting and its value:
 *   device NAME          for dn_open(), default shm
 *   fault SCHEDULE       without a seed
 *   NAME VALUE           any other row of dn_params.def's section PORT
 *   only TEST            this, and others so named, when none are on the command line
 * and those of conf_file.h.
 */
#include "dn_config.h"

#include "conf_file.h"
#include "conformance.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static const dn_world_test_t conf_tests[] = {
#define CONF_TEST(name, processes) {#name, processes, name},
#include "conf_tests.h"
#undef CONF_TEST
};

static dn_variant_t variant = {.device = "shm"};
static char device[32];
static char settings[DN_WORLD_SETTINGS / 2];
static char schedule[DN_WORLD_SETTINGS / 3];
static conf_file_t file;
static int only[CONF_TESTS];
static int nonly;

/** conf_set_fn_t */
static int set(const char *name, const char *value)
{
    if (0 == strcmp(name, "device")) {
        snprintf(device, sizeof(device), "%s", value);
        variant.device = device;
    } else if (0 == strcmp(name, "fault")) {
        snprintf(schedule, sizeof(schedule), "%s", value);
    } else if (0 == strcmp(name, "only")) {
        only[conf_find(value)] = 1;
        nonly++;
    } else {
        dn_config_t config;
        const size_t used = strlen(settings);
        snprintf(settings + used, sizeof(settings) - used, "%s=%s ", name, value);
        return DN_OK == dn_config_set(&config, name, value);
    }
    return 1;
}

/** One test. @return 1 when it failed. */
static int run(int number)
{
    const dn_world_test_t *test = &conf_tests[number];

    if (conf_is_excluded(&file, number)) {
        return 0;
    }
    const int failed = dn_world_run(test->name, &variant, test->processes, test->fn);
    printf("%s  %s\n", failed ? "FAILED   " : "passed   ", test->name);
    if (failed) {
        printf("to run it again: %s %s %s\n", program_invocation_name, variant.file, test->name);
    }
    fflush(stdout);
    return failed;
}

/** dn_log_fn_t: why a device is passed over. */
static void tell(const char *sentence, void *arg)
{
    (void) arg;
    printf("%s\n", sentence);
    fflush(stdout);
}

/** Does the device work on this machine? Asked by a process of its own: a world's port comes after its forks. */
static int is_here(void)
{
    int status = 0;

    fflush(NULL);
    const pid_t asked = fork();
    if (0 == asked) {
        /* Nobody is let in by it; a network refuses one of zeros. */
        const dn_job_t job = {.key = {"a key of 16 byte"}, .nlocal = 1};
        dn_log_answers_set(tell, NULL);
        dn_port_t *port = NULL;
        const dn_status_t opened = dn_open(variant.device, &job, NULL, &port);
        if (DN_OK == opened) {
            dn_close(port);
        }
        _Exit(DN_ERR_UNSUPPORTED == opened ? DN_TEST_SKIP : 0);
    }
    return 0 > asked || asked != waitpid(asked, &status, 0) || !WIFEXITED(status)
           || DN_TEST_SKIP != WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    int failed = 0;

    if (2 > argc) {
        fprintf(stderr, "usage: conformance FILE.conf [TEST...]\n");
        return 99;
    }
    variant.file = argv[1];
    conf_file_read(&file, argv[1], set);
    if (!is_here()) {
        return DN_TEST_SKIP;
    }
    for (unsigned pass = 0; pass < dn_test_rounds(file.seeds); pass++) {
        char all[DN_WORLD_SETTINGS];
        int used = snprintf(all, sizeof(all), "%sfault=%s", settings, schedule);
        if (0 < file.seeds) {
            snprintf(all + used, sizeof(all) - (size_t) used, ",seed=%lu", file.seed[pass]);
        }
        variant.settings = all;
        for (int i = 2; i < argc; i++) {
            failed += run(conf_find(argv[i]));
        }
        for (int i = 0; 2 == argc && i < CONF_TESTS; i++) {
            failed += 0 == nonly || only[i] ? run(i) : 0;
        }
    }
    printf("%d failed\n", failed);
    return 0 < failed;
}
