/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The table of counters has a line for each, with its own name and value. A text that is too short holds its beginning.
 */
#include "dn_config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_dsm.h"
#include "sanitizers.h"

static const struct {
    const char *name;
    size_t at;
} counter[] = {
#define ROW(name) {#name, offsetof(dn_dsm_stat_t, name)},
    ROW(read_faults) ROW(write_faults) ROW(fetched) ROW(dropped) ROW(twins) ROW(diffs) ROW(diff_blocks)
        ROW(diff_bytes) ROW(notices) ROW(locks) ROW(lock_waits) ROW(moved) ROW(barriers) ROW(fault_ns)
            ROW(release_ns) ROW(acquire_ns) ROW(lock_ns) ROW(barrier_ns)
#undef ROW
};

enum { COUNT = sizeof(counter) / sizeof(counter[0]) };

_Static_assert(sizeof(dn_dsm_stat_t) == COUNT * sizeof(uint64_t), "each counter has its row");

static void check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

int main(void)
{
    dn_dsm_stat_t stat;
    char text[1500], part[100], end;
    const char *line = text;

    for (size_t i = 0; i < COUNT; i++) {
        const uint64_t value = 0 == i ? UINT64_MAX : 1000 + i;
        memcpy((char *) &stat + counter[i].at, &value, sizeof(value));
    }
    const int len = dn_dsm_stat_text(&stat, text, sizeof(text));
    check(strlen(text) == (size_t) len, "its length is told");
    for (size_t i = 0; i < COUNT; i++) {
        char name[40];
        unsigned long long value;
        uint64_t wanted;
        memcpy(&wanted, (const char *) &stat + counter[i].at, sizeof(wanted));
        check(3 == sscanf(line, "%39s %llu%c", name, &value, &end) && '\n' == end, "a line is NAME VALUE");
        check(0 == strcmp(name, counter[i].name) && value == wanted, counter[i].name);
        line = strchr(line, '\n') + 1;
    }
    check('\0' == *line, "there are no more lines");
    memset(part, 'x', sizeof(part));
    check(len == dn_dsm_stat_text(&stat, part, sizeof(part) - 1), "the whole length is told");
    check(sizeof(part) - 2 == strlen(part) && 0 == strncmp(part, text, strlen(part))
              && 'x' == part[sizeof(part) - 1],
          "a text that is too short holds the beginning");
    return 0;
}
