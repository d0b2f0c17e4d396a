/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A program for JIAJIA that begins a second time gets the same locks, so that they last as long as it opens the memory.
 */
#include "dn_config.h"

#include "folder.h"
#include "jia.h"
#include "sanitizers.h"

int main(int argc, char **argv)
{
    LOCKDEC(one)
    ALOCKDEC(some, 3)

    if (0 != folder_make()) {
        return 99;
    }
    atexit(folder_remove);
    setenv("DN_DSM_FOLDER", folder, 1);
    for (int turn = 0; turn < 2; turn++) {
        jia_init(argc, argv);
        LOCKINIT(one)
        ALOCKINIT(some, 3)
        if (0 != one || 3 != some[2]) {
            printf("FAILED: locks %d and %d, and not 0 and 3, at turn %d\n", one, some[2], turn);
            return 1;
        }
        LOCK(one)
        UNLOCK(one)
        jia_exit();
        folder_empty();
    }
}
