/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * As many processes as dn_dsm.h says open the memory, and use all that processes do together.
 */
#include "dn_config.h"

#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "dn_dsm.h"
#include "folder.h"
#include "sanitizers.h"

/** A sanitizer takes much memory and time for each process: fewer tell as much, if they are more than 28. */
enum { RANKS = SANITIZED ? 33 : DN_DSM_RANKS_MAX, SECONDS = 300 };

static void check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

static void process(unsigned rank)
{
    dn_dsm_config_t config = folder_config((int) rank, RANKS);
    dn_dsm_t *dsm = NULL;
    double value = rank;
    void *at = NULL;

    config.share = "never";
    config.timeout_s = SECONDS;
    check(DN_OK == dn_dsm_open(&config, &dsm), "all open");
    check(DN_OK == dn_dsm_alloc(dsm, (RANKS + 1) * sizeof(uint64_t), DN_DSM_HOME_RANK, RANKS - 1, &at),
          "all allocate");
    volatile uint64_t *word = at;
    word[rank] = 1 + rank;
    check(DN_OK == dn_dsm_lock(dsm, 1), "all get a lock");
    word[RANKS]++;
    check(DN_OK == dn_dsm_unlock(dsm, 1), "all give it back");
    check(DN_OK == dn_dsm_barrier(dsm), "all meet");
    for (unsigned r = 0; r < RANKS; r++) {
        check(1 + r == word[r], "a barrier tells what all have written");
    }
    check(RANKS == word[RANKS], "each has counted once");
    check(DN_OK == dn_dsm_reduce(dsm, DN_DSM_SUM, &value, 1), "all reduce");
    check(RANKS * (RANKS - 1) / 2 == (int) value, "the sum is of all");
    check(DN_OK == dn_dsm_close(dsm), "all close");
}

int main(void)
{
    int failed = 0;

    if (0 != folder_make()) {
        return 99;
    }
    for (unsigned rank = 0; rank < RANKS; rank++) {
        const pid_t child = fork();
        if (0 == child) {
            prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
            alarm(SECONDS);
            process(rank);
            exit(0);
        }
        failed |= 0 > child;
    }
    for (int status; 0 < wait(&status);) {
        failed |= 0 != status;
    }
    folder_remove();
    return failed;
}
