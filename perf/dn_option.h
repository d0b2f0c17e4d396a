/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_OPTION_H
#define DN_OPTION_H

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/**
 * What getopt_long() did not take, as the user wrote it. Only for a letter that is no option, which may stand within a group of letters,
 * this is not the whole word.
 *
 * @param[in] letters  Letters of the options, as for getopt_long(), which has just returned '?' or ':'.
 * @param     room     Room for such a letter.
 */
static inline const char *dn_option_wrong(char **argv, const char *letters, char room[3])
{
    if (0 == optopt || NULL != strchr(letters, optopt)) {
        return argv[optind - 1];
    }
    snprintf(room, 3, "-%c", optopt);
    return room;
}

#endif
