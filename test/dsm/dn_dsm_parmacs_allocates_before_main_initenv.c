/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * barnes of SPLASH allocates its bodies before MAIN_INITENV: they stay where they are when that asks for more memory, and are shared.
 */
#include "dn_config.h"

#include <stdint.h>
#include <stdlib.h>

#include "dn_dsm_parmacs.h"
#include "folder.h"
#include "sanitizers.h"

/** More than the default. */
#define WANTED (UINT64_C(1) << 28)
#define EARLY  10000

static uint8_t *early;
static uint8_t *late;
static int runs;

static void look(void)
{
    runs++;
    for (size_t i = 0; i < EARLY; i++) {
        if (i % 251 != early[i]) {
            printf("FAILED: %d at %zu\n", early[i], i);
            exit(1);
        }
    }
    late[WANTED - 1] = 1;
}

int main(void)
{
    if (ADDRESS_SANITIZED) {
        printf("skipped: the address sanitizer has the addresses where the memory of SPLASH programs lies\n");
        return 77;
    }
    if (0 != folder_make()) {
        return 99;
    }
    atexit(folder_remove);
    setenv("DN_DSM_FOLDER", folder, 1);
    early = dn_dsm_parmacs_malloc(EARLY);
    for (size_t i = 0; i < EARLY; i++) {
        early[i] = (uint8_t) (i % 251);
    }
    dn_dsm_parmacs_init(WANTED + (UINT64_C(1) << 20));
    late = dn_dsm_parmacs_malloc(WANTED);
    if (late < early + EARLY) {
        printf("FAILED: one is in the other\n");
        return 1;
    }
    dn_dsm_parmacs_create(look, 1);
    dn_dsm_parmacs_wait();
    if (1 != runs || 1 != late[WANTED - 1]) {
        printf("FAILED: %d runs\n", runs);
        return 1;
    }
    dn_dsm_parmacs_end();
}
