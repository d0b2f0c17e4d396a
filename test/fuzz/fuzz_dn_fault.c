/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any text as a fault schedule: it is taken, or refused by one sentence. One that is taken says the same when it is read
 * again as it is told for a replay.
 */
#include "dn_config.h"

#include "dn_fuzz.h"

#include <string.h>

#include "../dn_test.h"
#include "fault/dn_fault_int.h"

static unsigned sentences;

static void count_sentence(const char *sentence, void *arg)
{
    (void) arg;
    (void) sentence;
    sentences++;
}

static void parse_again(const dn_fault_t *first)
{
    static dn_fault_t again;

    memset(&again, 0, sizeof(again));
    DN_FUZZ_CHECK(DN_OK == dn_fault_parse(&again, first->replay));
    DN_FUZZ_CHECK(again.seed == first->seed && again.nrules == first->nrules);
    DN_FUZZ_CHECK(0 == memcmp(again.rule, first->rule, first->nrules * sizeof(first->rule[0])));
    free(again.replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static dn_fault_t fault;
    char *text = malloc(len + 1);

    DN_FUZZ_CHECK(NULL != text);
    memcpy(text, data, len);
    text[len] = '\0';
    memset(&fault, 0, sizeof(fault));
    dn_log_set(count_sentence, NULL);
    sentences = 0;
    const dn_status_t status = dn_fault_parse(&fault, text);
    DN_FUZZ_CHECK(DN_OK == status ? 0 == sentences : 1 == sentences);
    if (DN_OK == status) {
        DN_FUZZ_CHECK(DN_FAULT_RULES_MAX >= fault.nrules);
        parse_again(&fault);
    }
    free(fault.replay);
    free(text);
    return 0;
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    static const char *const part[] = {"botf",
                                       "aotf",
                                       "push",
                                       "pull",
                                       "atomic",
                                       "fence",
                                       "all",
                                       ":again/",
                                       ":delay/",
                                       ":slow/",
                                       ":corrupt/",
                                       ":drop/",
                                       ":dup/",
                                       ":kill/",
                                       "1",
                                       "7",
                                       "1000000",
                                       ",",
                                       "seed=",
                                       "18446744073709551615",
                                       "99999999999999999999"};
    size_t len = 0;

    for (uint64_t n = 1 + dn_test_below(random, 20); 0 != n; n--) {
        const char *text = part[dn_test_below(random, sizeof(part) / sizeof(part[0]))];
        if (0 != dn_test_below(random, 4)) {
            /* a whole rule more often than not */
            len += (size_t) snprintf((char *) data + len, DN_FUZZ_MAX - len, "%s%s%s%s",
                                     part[dn_test_below(random, 7)], part[7 + dn_test_below(random, 7)],
                                     part[14 + dn_test_below(random, 3)], 1 == n ? "" : ",");
        } else {
            len += (size_t) snprintf((char *) data + len, DN_FUZZ_MAX - len, "%s", text);
        }
    }
    return len;
}
