/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Runs the conformance suite over nodes of the model, as a .nodes file describes it:
 *
 *   conf_nodes MODULE FILE.nodes [TEST...]
 *
 * The suite is written for processes, with static data of their own. So each node gets a copy of the suite: MODULE, the
 * suite as a shared object, is loaded once for each. All else is as with processes: a board, checks, an error
 * log that is watched, and a deadline for each test, which runs in a process of its own.
 *
 * A line of the file is a setting and its value:
 *   profile NAME, NAME VALUE of any row of dn_params.def's section PORT, and those of conf_file.h
 */
#include "dn_config.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf_file.h"
#include "dn_model.h"
#include "dn_world.h"

typedef struct conf_test {
    const char *name;
    int processes;
} conf_test_t;

static const conf_test_t conf_tests[] = {
#define CONF_TEST(name, processes) {#name, processes},
#include "conf_tests.h"
#undef CONF_TEST
};

/** A node's copy of the suite. */
typedef struct copy {
    dn_world_fn_t fn;
    dn_world_t world;
    dn_test_log_t *log;
    dn_world_t **here;
} copy_t;

static char profile[64] = "dimmnet1-d";
static dn_variant_t variant = {.device = "model"};
static dn_config_t settings;
static conf_file_t file;
static copy_t copies[DN_WORLD_MAX];
static unsigned char *module;
static size_t module_len;

/** What a process does that waits without progress; the suite's copies find this before the C library's. */
__attribute__((visibility("default"))) int sched_yield(void);
int sched_yield(void)
{
    dn_model_yield();
    return 0;
}

/** conf_set_fn_t */
static int set(const char *name, const char *value)
{
    if (0 == strcmp(name, "profile")) {
        snprintf(profile, sizeof(profile), "%s", value);
        return 1;
    }
    return DN_OK == dn_config_set(&settings, name, value);
}

static void read_module(const char *path)
{
    FILE *file = fopen(path, "r");

    if (NULL == file || 0 != fseek(file, 0, SEEK_END)) {
        fprintf(stderr, "%s cannot be read: %s\n", path, strerror(errno));
        exit(99);
    }
    module_len = (size_t) ftell(file);
    module = malloc(module_len);
    rewind(file);
    if (NULL == module || module_len != fread(module, 1, module_len, file)) {
        fprintf(stderr, "%s cannot be read whole\n", path);
        exit(99);
    }
    fclose(file);
}

/** Load the suite once more: of a file of its own, since the loader knows files again. */
static void load(copy_t *copy, const char *test)
{
    char path[64];
    const int fd = memfd_create("suite", 0);

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (0 > fd || (ssize_t) module_len != write(fd, module, module_len)) {
        fprintf(stderr, "%s: no copy of the suite can be made: %s\n", test, strerror(errno));
        _Exit(1);
    }
    void *suite = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (NULL == suite) {
        fprintf(stderr, "%s: %s\n", test, dlerror());
        _Exit(1);
    }
    *(void **) &copy->fn = dlsym(suite, test);
    copy->log = dlsym(suite, "dn_test_log");
    copy->here = dlsym(suite, "dn_world_here");
    if (NULL == copy->fn || NULL == copy->log || NULL == copy->here) {
        fprintf(stderr, "%s: the module is not the suite\n", test);
        _Exit(1);
    }
}

/** As dn_test_log_note(), for the copy of the node that runs. */
static void note(const char *sentence, void *arg)
{
    const uint32_t node = dn_model_node();
    dn_test_log_t *log = UINT32_MAX == node ? NULL : copies[node].log;

    (void) arg;
    if (NULL != log && log->expected) {
        log->count++;
        snprintf(log->last, sizeof(log->last), "%s", sentence);
        return;
    }
    fprintf(stderr, "unexpected error log: %s\n", sentence);
    fflush(NULL);
    _Exit(1);
}

static void node(uint32_t rank, void *arg)
{
    copy_t *copy = &copies[rank];
    dn_world_t *world = &copy->world;

    world->rank = (int) rank;
    world->me = &world->board->seat[rank];
    world->me->os_pid = rank + 1;
    world->random = rank + 1;
    world->job.pid = rank;
    *copy->here = world;
    copy->fn(world);
}

/** One test in this process; ends it. */
static void run_here(const conf_test_t *test, unsigned long seed)
{
    dn_board_t *board = calloc(1, sizeof(*board));
    dn_model_config_t config;
    dn_model_report_t report;

    const struct rlimit limit = {DN_WORLD_FILE_BYTES, DN_WORLD_FILE_BYTES};

    alarm(DN_WORLD_SECONDS);
    if (0 != setrlimit(RLIMIT_FSIZE, &limit)) {
        fprintf(stderr, "the size of files cannot be limited (%s): not run without\n", strerror(errno));
        _Exit(1);
    }
    dn_log_set(note, NULL);
    dn_model_config_init(&config);
    config.profile = profile;
    config.seed = seed;
    config.nodes = (uint32_t) test->processes;
    config.fabric = DN_MODEL_CHAIN;
    config.switches = 1;
    for (int i = 0; i < test->processes; i++) {
        dn_world_t *world = &copies[i].world;
        load(&copies[i], test->name);
        *world =
            (dn_world_t){.test = test->name, .variant = &variant, .size = test->processes, .board = board};
        world->config = settings;
        world->job.nlocal = (uint32_t) test->processes;
    }
    const dn_status_t status = dn_model_run(&config, node, NULL, &report);
    free(board);
    fflush(NULL);
    exit(DN_OK == status ? 0 : 1);
}

/** @return 1 when it failed. */
static int run(int number, unsigned long seed)
{
    const conf_test_t *test = &conf_tests[number];
    int status = 0;

    if (conf_is_excluded(&file, number)) {
        return 0;
    }
    fflush(NULL);
    const pid_t child = fork();
    if (0 == child) {
        run_here(test, seed);
    }
    const int failed = 0 > child || child != waitpid(child, &status, 0) || 0 != status;
    printf("%s  %s\n", failed ? "FAILED   " : "passed   ", test->name);
    if (failed) {
        printf("its status is %#x%s; to run it again: %s MODULE %s %s (seed %lu)\n", status,
               WIFSIGNALED(status) && SIGALRM == WTERMSIG(status) ? " (deadline: it hung)" : "",
               program_invocation_name, variant.file, test->name, seed);
    }
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;

    if (3 > argc) {
        fprintf(stderr, "usage: conf_nodes MODULE FILE.nodes [TEST...]\n");
        return 99;
    }
    read_module(argv[1]);
    variant.file = argv[2];
    dn_config_init(&settings);
    settings.llcm_bytes = DN_MODEL_LLCM_BYTES;
    conf_file_read(&file, argv[2], set);
    for (unsigned pass = 0; pass < (0 == file.seeds ? 1 : file.seeds); pass++) {
        const unsigned long seed = 0 == file.seeds ? 0 : file.seed[pass];
        for (int i = 3; i < argc; i++) {
            failed += run(conf_find(argv[i]), seed);
        }
        for (int i = 0; 3 == argc && i < CONF_TESTS; i++) {
            failed += run(i, seed);
        }
    }
    free(module);
    printf("%d failed\n", failed);
    return 0 < failed;
}
