/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_unit_profile.h
 * NICs that differ from a published one in some values.
 */
#ifndef DN_UNIT_PROFILE_H
#define DN_UNIT_PROFILE_H

#include "dn_unit.h"

#include <unistd.h>

enum { DN_UNIT_PATH_MAX = 32 };

/**
 * Write a NIC's profile with other values into a file of its own.
 *
 * @param[out] path    The caller unlinks it.
 * @param[in]  base    Name of a profile in DN_MODEL_PROFILES.
 * @param[in]  change  Lines "key = value", NULL behind the last; each takes the place of the base's with this key.
 */
static inline void dn_unit_write_profile(char path[DN_UNIT_PATH_MAX], const char *base,
                                         const char *const *change)
{
    char from[512], line[512];

    snprintf(path, DN_UNIT_PATH_MAX, "/tmp/dn-profile-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(0 <= fd);
    snprintf(from, sizeof(from), "%s/%s.profile", getenv("DN_MODEL_PROFILES"), base);
    FILE *in = fopen(from, "r");
    FILE *out = fdopen(fd, "w");
    assert_non_null(in);
    assert_non_null(out);
    while (NULL != fgets(line, sizeof(line), in)) {
        int kept = 1;
        for (unsigned i = 0; NULL != change[i]; i++) {
            kept = kept && 0 != strncmp(line, change[i], strcspn(change[i], "="));
        }
        if (kept) {
            fputs(line, out);
        }
    }
    for (unsigned i = 0; NULL != change[i]; i++) {
        fprintf(out, "%s\n", change[i]);
    }
    fclose(in);
    fclose(out);
}

#endif
