/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Drives a fuzz target without libFuzzer, with inputs that a seed decides.
 *
 * usage: fuzz_... RUNS [SEED [FIRST]]
 *
 * Run i of a seed is the same whatever ran before it: a failure names the call that repeats it alone.
 */
#include "dn_config.h"

#include "dn_fuzz.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../dn_test.h"

static char replay[128];

static void say_replay(int number)
{
    const ssize_t written = write(STDERR_FILENO, replay, strlen(replay));
    _exit(0 < written ? 1 : 2);
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

int main(int argc, char **argv)
{
    static uint8_t data[DN_FUZZ_MAX];
    const uint64_t runs = 1 < argc ? strtoull(argv[1], NULL, 0) : 100000;
    const uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 0) : 1;
    const uint64_t first = 3 < argc ? strtoull(argv[3], NULL, 0) : 0;

    signal(SIGABRT, say_replay);
    signal(SIGSEGV, say_replay);
    signal(SIGBUS, say_replay);
    signal(SIGFPE, say_replay);
    signal(SIGILL, say_replay);
    for (uint64_t i = first; i < first + runs; i++) {
        uint64_t random = seed;
        random = dn_test_random(&random) ^ (i * UINT64_C(0xd1342543de82ef95));
        snprintf(replay, sizeof(replay), "to repeat: %s 1 %llu %llu\n", argv[0], (unsigned long long) seed,
                 (unsigned long long) i);
        const size_t len = make_input(&random, data);
        /* in memory of exactly its length, so that a sanitizer sees a byte too far */
        uint8_t *exact = malloc(len + (0 == len));
        if (NULL == exact) {
            return 1;
        }
        memcpy(exact, data, len);
        LLVMFuzzerTestOneInput(exact, len);
        free(exact);
    }
    printf("%llu inputs of seed %llu\n", (unsigned long long) runs, (unsigned long long) seed);
    return 0;
}
