/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Programs of SPLASH ask for more memory than they touch: CREATE shares what they have written, and takes no memory for the rest.
 */
#include "dn_config.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "dn_dsm_parmacs.h"
#include "folder.h"
#include "sanitizers.h"

#define WANTED (UINT64_C(1) << 30)
/** Of getrusage(), in KiB. */
#define MOST (INT64_C(256) << 10)

static volatile uint8_t *memory;
static int runs;

static void look(void)
{
    runs++;
    for (uint64_t at = 0; at < WANTED; at += WANTED / 8) {
        if (at / (WANTED / 8) + 1 != memory[at + 17]) {
            printf("FAILED: %d, and not %d, at %llu\n", memory[at + 17], (int) (at / (WANTED / 8)) + 1,
                   (unsigned long long) at);
            exit(1);
        }
    }
}

int main(void)
{
    struct rusage usage;

    if (SANITIZED) {
        printf("skipped: a sanitizer takes memory for what the program has not touched\n");
        return 77;
    }
    if (0 != folder_make()) {
        return 99;
    }
    atexit(folder_remove);
    setenv("DN_DSM_FOLDER", folder, 1);
    dn_dsm_parmacs_init(WANTED + (UINT64_C(1) << 20));
    memory = dn_dsm_parmacs_malloc(WANTED);
    for (uint64_t at = 0; at < WANTED; at += WANTED / 8) {
        memory[at + 17] = (uint8_t) (at / (WANTED / 8) + 1);
    }
    dn_dsm_parmacs_create(look, 1);
    dn_dsm_parmacs_wait();
    getrusage(RUSAGE_SELF, &usage);
    if (1 != runs || MOST < usage.ru_maxrss) {
        printf("FAILED: %d runs, %ld KiB\n", runs, usage.ru_maxrss);
        return 1;
    }
    dn_dsm_parmacs_end();
}
