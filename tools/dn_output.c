/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_output.h"

#include <stdio.h>

int dn_output_end(const char *program, int status)
{
    /* What a full buffer could not write before has set the error only: fflush() may have nothing left to write. */
    if (0 == fflush(stdout) && 0 == ferror(stdout)) {
        return status;
    }
    fprintf(stderr, "%s: standard output did not take all that was printed; see if its disk is full\n",
            program);
    return 1;
}
