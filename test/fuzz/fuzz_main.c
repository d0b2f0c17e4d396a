/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Drives a fuzz target without libFuzzer, with inputs of files, or with such that a seed decides.
 *
 * usage: fuzz_... FILE-OR-FOLDER...
 *        fuzz_... RUNS [SEED [FIRST [JOBS]]]
 *
 * Run i of a seed is the same whatever ran before it: a failure names the call that repeats it alone. So does
 * an input that takes a minute or more. Several jobs share the runs.
 */
#include "dn_config.h"

#include "dn_fuzz.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../dn_test.h"

enum {
    DIGITS = 20,    /**< of a number of 64 bits */
    HANG_S = 60,    /**< seconds; an input takes some microseconds */
    MOST_JOBS = 256 /**< processes */
};

static char replay[128 + DIGITS];
static size_t replay_len; /**< of what comes before the number of the run */
static volatile uint64_t run;

/** Called by signals, perhaps from malloc(): no stdio. */
static void say_replay(int number)
{
    char text[DIGITS + 1];
    size_t at = sizeof(text) - 1;

    text[at] = '\n';
    for (uint64_t left = run; at == sizeof(text) - 1 || 0 != left; left /= 10) {
        text[--at] = (char) ('0' + left % 10);
    }
    memcpy(replay + replay_len, text + at, sizeof(text) - at);
    const ssize_t written = write(STDERR_FILENO, replay, replay_len + sizeof(text) - at);
    _exit(0 < written ? 1 : 2);
}

static void watch(int number)
{
    static uint64_t seen = UINT64_MAX;

    if (seen == run) {
        say_replay(number);
    }
    seen = run;
    alarm(HANG_S);
}

/** Change some bytes, cut, or repeat a part. @return the new length. */
static size_t mutate(uint64_t *random, uint8_t *data, size_t len)
{
    static const uint8_t odd[] = {0, 1, 2, 3, 4, 7, 8, 16, 40, 0x7f, 0x80, 0xfe, 0xff};

    for (uint64_t changes = dn_test_length(random, 8); 0 != changes && 0 != len; changes--) {
        const size_t at = dn_test_below(random, len);
        const size_t part = 1 + dn_test_below(random, len - at);
        const size_t to = dn_test_below(random, len - part + 1);
        switch (dn_test_below(random, 8)) {
        case 0:
            data[at] = (uint8_t) dn_test_random(random);
            break;
        case 1:
            len = at;
            break;
        case 2:
            memmove(data + to, data + at, part);
            break;
        case 3:
            memset(data + at, odd[dn_test_below(random, sizeof(odd))], part < 8 ? part : 8);
            break;
        case 4:
            data[at] ^= (uint8_t) (1u << dn_test_below(random, 8));
            break;
        default:
            data[at] = odd[dn_test_below(random, sizeof(odd))];
            break;
        }
    }
    return len;
}

static size_t make_input(uint64_t *random, uint8_t *data)
{
    size_t len;

    if (0 == dn_test_below(random, 4)) {
        len = dn_test_length(random, 500);
        for (size_t i = 0; i < len; i++) {
            data[i] = (uint8_t) dn_test_random(random);
        }
        return len;
    }
    len = dn_fuzz_seed(random, data);
    return 0 == dn_test_below(random, 4) ? len : mutate(random, data, len);
}

/** Try bytes in memory of exactly their length, so that a sanitizer sees a byte too far. @return 0, 1: no memory. */
static int try_input(const uint8_t *data, size_t len)
{
    uint8_t *exact = malloc(len + (0 == len));

    if (NULL == exact) {
        return 1;
    }
    memcpy(exact, data, len);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
    return 0;
}

/** Try every JOBS-th run from the first on. */
static int try_runs(uint64_t first, uint64_t end, uint64_t seed, uint64_t jobs)
{
    static uint8_t data[DN_FUZZ_MAX];

    alarm(HANG_S);
    for (run = first; run < end; run += jobs) {
        uint64_t random = seed;
        random = dn_test_random(&random) ^ (run * UINT64_C(0xd1342543de82ef95));
        const size_t len = make_input(&random, data);
        if (0 != try_input(data, len)) {
            return 1;
        }
    }
    signal(SIGABRT, SIG_DFL); /* a leak that is reported at the exit belongs to no run in particular */
    return 0;
}

/** Have processes of their own share the runs. The first that fails ends the others. */
static int share_runs(uint64_t first, uint64_t end, uint64_t seed, uint64_t jobs)
{
    pid_t child[MOST_JOBS];
    int status, wrong = 0;

    for (uint64_t i = 0; i < jobs; i++) {
        child[i] = fork();
        if (0 == child[i]) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            exit(try_runs(first + i, end, seed, jobs));
        }
        wrong |= 0 > child[i];
    }
    for (pid_t ended = 0; 0 <= ended; ended = wait(&status)) {
        const int ill = 0 != ended && 0 != status;
        if (ill && !wrong) {
            fprintf(stderr, "process %d ended with status 0x%x\n", (int) ended, (unsigned) status);
        }
        wrong |= ill;
        for (uint64_t i = 0; i < jobs; i++) {
            child[i] = ended == child[i] ? 0 : child[i];
            if (wrong && 0 < child[i]) {
                kill(child[i], SIGKILL);
            }
        }
    }
    return wrong;
}

/** Try one file. @return 0, or 1: it cannot be read. */
static int try_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");

    if (NULL == file) {
        perror(path);
        return 1;
    }
    const size_t len = fread(data, 1, sizeof(data), file);
    fclose(file);
    const int n = snprintf(replay, sizeof(replay) - DIGITS, "input %.90s, ", path);
    replay_len = (size_t) n;
    run++;
    return try_input(data, len);
}

/** Try a file, or each of a folder. @return how many could not be read. */
static int try_path(const char *path)
{
    char name[1024];
    int wrong = 0;
    DIR *folder = opendir(path);

    if (NULL == folder) {
        return try_file(path);
    }
    for (const struct dirent *entry = readdir(folder); NULL != entry; entry = readdir(folder)) {
        if ('.' != entry->d_name[0]) {
            snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
            wrong += try_file(name);
        }
    }
    closedir(folder);
    return wrong;
}

static int try_paths(int n, char **paths)
{
    int wrong = 0;

    alarm(HANG_S);
    for (int i = 0; i < n; i++) {
        wrong |= 0 != try_path(paths[i]);
    }
    printf("%llu inputs of files\n", (unsigned long long) run);
    return wrong;
}

int main(int argc, char **argv)
{
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const uint64_t runs = 1 < argc ? strtoull(argv[1], NULL, 0) : 100000;
    const uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 0) : 1;
    const uint64_t first = 3 < argc ? strtoull(argv[3], NULL, 0) : 0;
    const uint64_t wanted = 4 < argc ? strtoull(argv[4], NULL, 0) : 1;
    const uint64_t jobs = wanted < MOST_JOBS ? wanted : MOST_JOBS;

    for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++) {
        signal(deadly[i], say_replay);
    }
    signal(SIGALRM, watch);
    if (1 < argc && !isdigit((unsigned char) argv[1][0])) {
        return try_paths(argc - 1, argv + 1);
    }
    const int len = snprintf(replay, sizeof(replay) - DIGITS, "to repeat: %s 1 %llu ", argv[0],
                             (unsigned long long) seed);
    replay_len = (size_t) len < sizeof(replay) - DIGITS ? (size_t) len : sizeof(replay) - DIGITS - 1;
    const int wrong =
        2 > jobs ? try_runs(first, first + runs, seed, 1) : share_runs(first, first + runs, seed, jobs);
    if (!wrong) {
        printf("%llu inputs of seed %llu\n", (unsigned long long) runs, (unsigned long long) seed);
    }
    return wrong;
}
