/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A call that comes while another thread is in a barrier is refused, and does nothing: the next barrier does not find it, however soon it
 * comes. The word is in memory that cannot be written. So a call that changed it for a moment would end this process.
 */
#include "dn_config.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "dn_dsm_int.h"
#include "sanitizers.h"

static unsigned refusals;

/** dn_log_fn_t. */
static void count_refusal(const char *sentence, void *arg)
{
    (void) arg;
    refusals += NULL != strstr(sentence, "is in a barrier");
}

static int check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "failed: %s\n", what);
    }
    return !ok;
}

int main(void)
{
    dn_dsm_t *dsm = mmap(NULL, sizeof(*dsm), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int failed = 0;

    if (MAP_FAILED == dsm) {
        perror("mmap");
        return 1;
    }
    dn_log_set(count_refusal, NULL);
    failed |= check(DN_OK == dn_dsm_gate_enter(dsm, "a call") && DN_OK == dn_dsm_gate_enter(dsm, "another"),
                    "calls are let in together");
    failed |= check(2 == dsm->gate, "they are in the word");
    dn_dsm_gate_leave(dsm, 1);
    dn_dsm_gate_leave(dsm, 1);
    dn_dsm_gate_close(dsm, "a barrier");
    mprotect(dsm, sizeof(*dsm), PROT_READ);
    failed |= check(DN_ERR_PARAM == dn_dsm_gate_enter(dsm, "a call"), "a call is refused beside a barrier");
    failed |= check(1 == refusals, "that is said once");
    mprotect(dsm, sizeof(*dsm), PROT_READ | PROT_WRITE);
    dn_dsm_gate_leave(dsm, DN_DSM_GATE_ALL);
    failed |= check(DN_OK == dn_dsm_gate_enter(dsm, "a call"), "a call is let in after the barrier");
    munmap(dsm, sizeof(*dsm));
    return failed;
}
