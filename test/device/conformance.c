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
 *   cma 0|1, backing NAME, ring_lines N, stage_bytes N, stage_min N, help_min N    of dn_config_t
 *   fault SCHEDULE       without a seed
 *   seed N               run everything with this seed; may be given again
 *   exclude TEST REASON  what the variant cannot do, and why
 *   only TEST            this, and others so named, when none are on the command line
 */
#include "dn_config.h"

#include "conformance.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct conf_test {
    const char *name;
    int processes;
    dn_world_fn_t fn;
} conf_test_t;

static const conf_test_t conf_tests[] = {
#define CONF_TEST(name, processes) {#name, processes, name},
#include "conf_tests.h"
#undef CONF_TEST
};

enum { TESTS = sizeof(conf_tests) / sizeof(conf_tests[0]), SEEDS_MAX = 16 };

static dn_variant_t variant = {.device = "shm", .cma = 1, .backing = "auto"};
static char device[32];
static char schedule[200];
static unsigned long seeds[SEEDS_MAX];
static unsigned nseeds;
static char reason[TESTS][200];
static int only[TESTS];
static int nonly;

static const conf_test_t *find(const char *name)
{
    for (int i = 0; i < TESTS; i++) {
        if (0 == strcmp(conf_tests[i].name, name)) {
            return &conf_tests[i];
        }
    }
    fprintf(stderr, "there is no test \"%s\"; conf_tests.h has them all\n", name);
    exit(99);
}

static void exclude(const char *value)
{
    char name[100] = "";
    int used = 0;

    if (1 != sscanf(value, "%99s %n", name, &used) || '\0' == value[used]) {
        fprintf(stderr, "exclude \"%s\": write the test's name and the reason\n", value);
        exit(99);
    }
    const conf_test_t *test = find(name);
    snprintf(reason[test - conf_tests], sizeof(reason[0]), "%s", value + used);
}

static void set(const char *name, const char *value)
{
    if (0 == strcmp(name, "device")) {
        snprintf(device, sizeof(device), "%s", value);
        variant.device = device;
    } else if (0 == strcmp(name, "cma")) {
        variant.cma = atoi(value);
    } else if (0 == strcmp(name, "backing")) {
        snprintf(variant.backing, sizeof(variant.backing), "%s", value);
    } else if (0 == strcmp(name, "ring_lines")) {
        variant.ring_lines = (uint32_t) strtoul(value, NULL, 0);
    } else if (0 == strcmp(name, "stage_bytes")) {
        variant.stage_bytes = (uint32_t) strtoul(value, NULL, 0);
    } else if (0 == strcmp(name, "stage_min")) {
        variant.stage_min = (uint32_t) strtoul(value, NULL, 0);
    } else if (0 == strcmp(name, "help_min")) {
        variant.help_min = strtoul(value, NULL, 0);
    } else if (0 == strcmp(name, "fault")) {
        snprintf(schedule, sizeof(schedule), "%s", value);
    } else if (0 == strcmp(name, "seed") && nseeds < SEEDS_MAX) {
        seeds[nseeds++] = strtoul(value, NULL, 0);
    } else if (0 == strcmp(name, "exclude")) {
        exclude(value);
    } else if (0 == strcmp(name, "only")) {
        only[find(value) - conf_tests] = 1;
        nonly++;
    } else {
        fprintf(stderr, "%s: \"%s\" is no setting; conformance.c lists them\n", variant.file, name);
        exit(99);
    }
}

static void read_variant(const char *path)
{
    char line[400];
    FILE *file = fopen(path, "r");

    variant.file = path;
    if (NULL == file) {
        fprintf(stderr, "%s cannot be read: %s\n", path, strerror(errno));
        exit(99);
    }
    while (NULL != fgets(line, sizeof(line), file)) {
        char name[40] = "";
        int used = 0;
        line[strcspn(line, "\n")] = '\0';
        if ('#' != line[0] && 1 == sscanf(line, "%39s %n", name, &used)) {
            set(name, line + used);
        }
    }
    fclose(file);
}

/** One test. @return 1 when it failed. */
static int run(const conf_test_t *test)
{
    const char *why = reason[test - conf_tests];

    if ('\0' != why[0]) {
        printf("excluded  %s: %s\n", test->name, why);
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
        const dn_job_t job = {.nlocal = 1};
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
    read_variant(argv[1]);
    if (!is_here()) {
        return DN_TEST_SKIP;
    }
    for (unsigned pass = 0; pass < (0 == nseeds ? 1 : nseeds); pass++) {
        if (0 < nseeds) {
            snprintf(variant.fault, sizeof(variant.fault), "%s,seed=%lu", schedule, seeds[pass]);
        } else {
            snprintf(variant.fault, sizeof(variant.fault), "%s", schedule);
        }
        for (int i = 2; i < argc; i++) {
            failed += run(find(argv[i]));
        }
        for (int i = 0; 2 == argc && i < TESTS; i++) {
            failed += 0 == nonly || only[i] ? run(&conf_tests[i]) : 0;
        }
    }
    printf("%d failed\n", failed);
    return 0 < failed;
}
