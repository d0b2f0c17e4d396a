/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file conf_file.h
 * The files that say over what the suite runs. A line is a setting and its value, or a comment that begins with #.
 * Settings of both programs:
 *
 *   seed N               run everything with this seed; may be given again
 *   exclude TEST REASON  what cannot be done, and why
 */
#ifndef CONF_FILE_H
#define CONF_FILE_H

enum {
#define CONF_TEST(name, processes) CONF_##name,
#include "conf_tests.h"
#undef CONF_TEST
    CONF_TESTS,
    CONF_SEEDS_MAX = 16
};

typedef struct conf_file {
    unsigned long seed[CONF_SEEDS_MAX];
    unsigned seeds;
    char reason[CONF_TESTS][200]; /**< "": not excluded */
} conf_file_t;

/** A setting of one program only. @return 0: it knows none that is called so. */
typedef int (*conf_set_fn_t)(const char *name, const char *value);

/** Read a file, or end the program with a sentence. */
void conf_file_read(conf_file_t *file, const char *path, conf_set_fn_t set);
/** The number of a test in conf_tests.h; ends the program with a sentence when there is none. */
int conf_find(const char *name);
/** Is a test excluded? Then says so, and why. */
int conf_is_excluded(const conf_file_t *file, int test);

#endif
