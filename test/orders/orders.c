/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * All executions of small cases that the C11 memory model allows are right, and no longer when any order is taken away:
 * so each is there, each is needed, and the exploration would find a missing one.
 *
 *   orders [CASE]   CASE: a part of its name
 */
#include "dn_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "orders_cases.h"

static int failures;

static void judge(const orders_case_t *of)
{
    const char *error;
    const uint64_t runs = dn_explore(&of->run, NULL, &error);

    printf("%s: %" PRIu64 " executions%s%s\n", of->run.name, runs,
           NULL == error ? "" : ", FAILED: ", NULL == error ? "" : error);
    fflush(stdout);
    failures += NULL != error;
    for (const dn_explore_weak_t *weak = of->needs; NULL != weak->word; weak++) {
        (void) dn_explore(&of->run, weak, &error);
        printf("  with relaxed %s of \"%s\": %s\n", weak->stores ? "stores" : "loads", weak->word,
               NULL == error ? "FAILED: nothing was found" : error);
        failures += NULL == error;
    }
}

int main(int argc, char **argv)
{
    static const orders_case_t *const all[] = {orders_line, orders_tree, orders_stage};
    int judged = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        for (const orders_case_t *of = all[i]; NULL != of->run.name; of++) {
            if (2 > argc || NULL != strstr(of->run.name, argv[1])) {
                judge(of);
                judged++;
            }
        }
    }
    if (0 == judged) {
        fprintf(stderr, "there is no case of this name: %s\n", argv[1]);
        return 2;
    }
    return 0 != failures;
}
