/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A fault schedule is taken as written, and one that is wrong is refused with one sentence that names
 * the rule and says what is accepted.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_fault_alone.h"

static void refused(const char *schedule, const char *word)
{
    dn_fault_t *fault = NULL;

    dn_test_log_expect();
    assert_int_equal(dn_fault_open(schedule, 0, &fault), DN_ERR_PARAM);
    assert_true(dn_test_log_said(1, word));
    assert_null(fault);
}

static void taken(const char *schedule, unsigned rules, const char *replay)
{
    dn_fault_t *fault = NULL;

    assert_int_equal(dn_fault_open(schedule, 0, &fault), DN_OK);
    assert_int_equal(fault->nrules, rules);
    assert_string_equal(dn_fault_replay(fault), replay);
    dn_fault_close(fault);
}

static void right_schedules(void **state)
{
    taken("botf:again/7", 1, "botf:again/7,seed=1");
    taken("seed=12", 0, "seed=12");
    taken("seed=0,push:slow/1", 1, "seed=0,push:slow/1");
    taken("botf:delay/3,aotf:drop/1000000,seed=18446744073709551615", 2,
          "botf:delay/3,aotf:drop/1000000,seed=18446744073709551615");
    taken("all:again/5", 6, "all:again/5,seed=1");
    taken("all:slow/5", 3, "all:slow/5,seed=1");
    taken("all:dup/5,pull:kill/2", 2, "all:dup/5,pull:kill/2,seed=1");
}

static void wrong_shape(void **state)
{
    refused("", "botf:again/7");
    refused("botf", "\"botf\"");
    refused("botf:again", "\"botf:again\"");
    refused("botf/again:7", "\"botf/again:7\"");
    refused("botf:again/7,", "botf:again/7");
    refused(",botf:again/7", "botf:again/7");
    refused("botf:again/7 ,seed=1", "1 to 1000000");
    refused("again/7", "\"again/7\"");
}

static void wrong_names(void **state)
{
    refused("send:again/7", "botf, aotf, push, pull, atomic, fence or all");
    refused("bot:again/7", "botf, aotf, push, pull, atomic, fence or all");
    refused(":again/7", "botf, aotf, push, pull, atomic, fence or all");
    refused("botf:/7", "again, delay, slow, corrupt, drop, dup or kill");
    refused("botf:agai/7", "again, delay, slow, corrupt, drop, dup or kill");
    refused("BOTF:again/7", "botf, aotf, push, pull, atomic, fence or all");
}

static void faults_that_do_not_fit(void **state)
{
    refused("push:delay/3", "delay is for botf");
    refused("botf:slow/3", "slow is for push, pull and atomic");
    refused("fence:corrupt/3", "corrupt is for botf");
    refused("pull:drop/3", "drop is for botf and aotf");
    refused("aotf:dup/3", "dup is for botf");
}

static void wrong_numbers(void **state)
{
    refused("botf:again/0", "1 to 1000000");
    refused("botf:again/", "1 to 1000000");
    refused("botf:again/-1", "1 to 1000000");
    refused("botf:again/+1", "1 to 1000000");
    refused("botf:again/1000001", "1 to 1000000");
    refused("botf:again/0x10", "1 to 1000000");
    refused("botf:again/7/7", "1 to 1000000");
    refused("botf:again/99999999999999999999999999", "1 to 1000000");
    refused("seed=", "whole number");
    refused("seed=x", "whole number");
    refused("seed=18446744073709551616", "whole number");
    refused("seed=1,seed=2", "second seed");
}

static void too_many_rules(void **state)
{
    char schedule[2048] = "botf:again/7";
    size_t len = strlen(schedule);

    for (unsigned i = 1; i < 64; i++) {
        len += (size_t) snprintf(schedule + len, sizeof(schedule) - len, ",botf:again/7");
    }
    dn_fault_t *fault = NULL;
    assert_int_equal(dn_fault_open(schedule, 0, &fault), DN_OK);
    dn_fault_close(fault);
    snprintf(schedule + len, sizeof(schedule) - len, ",botf:again/7");
    refused(schedule, "64 rules");
}

/** Whatever the bytes, the answer is a schedule or a sentence. */
static void random_text(void **state)
{
    static const char alphabet[] = "botfalpushatomicndregkw:/,=0179 seed";
    uint64_t random = 3;

    for (unsigned i = 0; i < 20000; i++) {
        char text[40];
        const size_t len = dn_test_below(&random, sizeof(text));
        for (size_t k = 0; k < len; k++) {
            text[k] = 0 == dn_test_below(&random, 50)
                          ? (char) (1 + dn_test_below(&random, 255))
                          : alphabet[dn_test_below(&random, sizeof(alphabet) - 1)];
        }
        text[len] = '\0';
        dn_fault_t *fault = NULL;
        dn_test_log_expect();
        const dn_status_t status = dn_fault_open(text, 0, &fault);
        assert_true(DN_OK == status || DN_ERR_PARAM == status);
        assert_int_equal(dn_test_log.count, DN_OK != status);
        if (DN_OK == status) {
            dn_fault_close(fault);
        }
        dn_test_log.expected = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_schedules), cmocka_unit_test(wrong_shape),
        cmocka_unit_test(wrong_names),     cmocka_unit_test(faults_that_do_not_fit),
        cmocka_unit_test(wrong_numbers),   cmocka_unit_test(too_many_rules),
        cmocka_unit_test(random_text),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
