/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * One of two processes that meet by PMIx: what is not told is not waited for, and after a fence that was waited for in vain comes a
 * sentence. With a second argument one of them finalizes PMIx alone. usage: meet_by_pmix FOLDER [alone], which has a pipe "waited".
 */
#include "dn_config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../dn_test.h"
#include "dn_dsm_int.h"

static int failed;

static void need(bool right, const dn_dsm_t *dsm, const char *what)
{
    if (!right) {
        printf("FAILED: rank %u: %s\n", (unsigned) dsm->rank, what);
        failed = 1;
    }
}

/** Meet the other process at the pipe "waited", which has a reader and a writer from then on. */
static void meet_at_pipe(int how)
{
    const int fd = open("waited", how);

    failed |= 0 > fd;
    close(fd);
}

static void open_it(dn_dsm_t *dsm)
{
    dn_group_key_t key;

    need(DN_OK == dn_dsm_meet_pmix.open(dsm, NULL, &key), dsm, "the opening fails");
}

static void hear_what_is_not_told(dn_dsm_t *dsm)
{
    uint8_t byte = 7;
    size_t len = 1;

    need(DN_OK == dn_dsm_meet_all(dsm, "some", 0 == dsm->rank ? &byte : NULL, 1), dsm, "no fence");
    need(DN_OK == dn_dsm_meet_pmix.hear(dsm, 0, "some", &byte, &len) && 7 == byte, dsm,
         "rank 0 is not heard");
    need(DN_ERR_UNREACH == dn_dsm_meet_pmix.hear(dsm, 1, "some", &byte, &len), dsm, "rank 1 is heard");
}

/** Rank 0 waits for rank 1 in vain, and begins once more. */
static void wait_in_vain(dn_dsm_t *dsm)
{
    dn_group_key_t key;

    if (1 == dsm->rank) {
        meet_at_pipe(O_RDONLY);
        return;
    }
    need(DN_ERR_UNREACH == dn_dsm_meet_pmix.together(dsm), dsm, "a fence without rank 1");
    dn_dsm_meet_pmix.close(dsm);
    need(DN_ERR_UNREACH == dn_dsm_meet_pmix.open(dsm, NULL, &key), dsm, "a fence after another");
    meet_at_pipe(O_WRONLY);
}

/** Rank 1 finalizes PMIx once too often: it is told so, once, and rank 0 does not wait for ever. */
static void finalize_alone(dn_dsm_t *dsm)
{
    uint8_t done = 1;

    if (1 == dsm->rank) {
        void *const library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_NOLOAD);
        void *const symbol = NULL == library ? NULL : dlsym(library, "PMIx_Finalize");
        int (*finalize)(const void *info, size_t infos) = NULL;
        memcpy(&finalize, &symbol, sizeof(symbol));
        need(NULL != finalize && 0 == finalize(NULL, 0), dsm, "PMIx is not finalized");
        need(DN_ERR_ACCESS == dn_dsm_meet_all(dsm, "done", &done, sizeof(done)), dsm, "PMIx goes on");
        dn_dsm_meet_pmix.close(dsm);
        meet_at_pipe(O_WRONLY);
        meet_at_pipe(O_RDONLY);
        return;
    }
    meet_at_pipe(O_RDONLY);
    need(DN_ERR_UNREACH == dn_dsm_meet_all(dsm, "done", &done, sizeof(done)), dsm, "a fence without rank 1");
    meet_at_pipe(O_WRONLY);
    dn_dsm_meet_pmix.close(dsm);
}

int main(int argc, char **argv)
{
    dn_dsm_t dsm = {.meet = &dn_dsm_meet_pmix};
    dn_dsm_config_t config;

    if (2 > argc || 0 != chdir(argv[1]) || DN_OK != dn_dsm_config_env(&config)) {
        return 99;
    }
    dsm.rank = config.rank;
    dsm.ranks = config.ranks;
    dsm.timeout_s = 20;
    open_it(&dsm);
    if (3 == argc) {
        dsm.timeout_s = 1;
        finalize_alone(&dsm);
        return failed;
    }
    dn_dsm_meet_pmix.close(&dsm);
    /* Both have left before one of them comes again. PMIx ends a fence with an error while one of its processes leaves. */
    meet_at_pipe(0 == dsm.rank ? O_WRONLY : O_RDONLY);
    open_it(&dsm);
    hear_what_is_not_told(&dsm);
    dsm.timeout_s = 1;
    wait_in_vain(&dsm);
    dn_dsm_meet_pmix.close(&dsm);
    return failed;
}
