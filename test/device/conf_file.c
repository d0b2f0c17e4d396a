/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "conf_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[CONF_TESTS] = {
#define CONF_TEST(name, processes) #name,
#include "conf_tests.h"
#undef CONF_TEST
};

int conf_find(const char *name)
{
    for (int i = 0; i < CONF_TESTS; i++) {
        if (0 == strcmp(names[i], name)) {
            return i;
        }
    }
    fprintf(stderr, "there is no test \"%s\"; conf_tests.h has them all\n", name);
    exit(99);
}

static void exclude(conf_file_t *file, const char *value)
{
    char name[100] = "";
    int used = 0;

    if (1 != sscanf(value, "%99s %n", name, &used) || '\0' == value[used]) {
        fprintf(stderr, "exclude \"%s\": write the test's name and the reason\n", value);
        exit(99);
    }
    snprintf(file->reason[conf_find(name)], sizeof(file->reason[0]), "%s", value + used);
}

void conf_file_read(conf_file_t *file, const char *path, conf_set_fn_t set)
{
    char line[400];
    FILE *stream = fopen(path, "r");

    if (NULL == stream) {
        fprintf(stderr, "%s cannot be read: %s\n", path, strerror(errno));
        exit(99);
    }
    while (NULL != fgets(line, sizeof(line), stream)) {
        char name[40] = "";
        int used = 0;
        line[strcspn(line, "\n")] = '\0';
        if ('#' == line[0] || 1 != sscanf(line, "%39s %n", name, &used)) {
            continue;
        }
        const char *value = line + used;
        if (0 == strcmp(name, "seed") && file->seeds < CONF_SEEDS_MAX) {
            file->seed[file->seeds++] = strtoul(value, NULL, 0);
        } else if (0 == strcmp(name, "exclude")) {
            exclude(file, value);
        } else if (!set(name, value)) {
            fprintf(stderr, "%s: \"%s %s\" is no setting; the program's source lists them\n", path, name,
                    value);
            exit(99);
        }
    }
    fclose(stream);
}

int conf_is_excluded(const conf_file_t *file, int test)
{
    if ('\0' == file->reason[test][0]) {
        return 0;
    }
    printf("excluded  %s: %s\n", names[test], file->reason[test]);
    return 1;
}
