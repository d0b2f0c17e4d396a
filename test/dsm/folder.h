/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file folder.h
 * The folder where the processes of a run meet, and the configuration that names it. */
#ifndef DN_DSM_TEST_FOLDER_H
#define DN_DSM_TEST_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dn_dsm.h"

static char folder[64];

/** Make it. @return not 0: it could not be made. */
static inline int folder_make(void)
{
    snprintf(folder, sizeof(folder), "/dev/shm/dn_dsm.XXXXXX");
    if (NULL == mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    return 0;
}

/** The configuration of one of so many processes that meet in it. */
static inline dn_dsm_config_t folder_config(int rank, int ranks)
{
    dn_dsm_config_t config;

    dn_dsm_config_init(&config);
    config.rank = (uint32_t) rank;
    config.ranks = (uint32_t) ranks;
    config.folder = folder;
    return config;
}

/** Remove what is in it. */
static inline void folder_empty(void)
{
    DIR *dir = opendir(folder);

    for (struct dirent *entry = readdir(dir); NULL != entry; entry = readdir(dir)) {
        if ('.' != entry->d_name[0]) {
            unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    closedir(dir);
}

/** Remove it, and what is in it. */
static inline void folder_remove(void)
{
    folder_empty();
    rmdir(folder);
}

#endif
