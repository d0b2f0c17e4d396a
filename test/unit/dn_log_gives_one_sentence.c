/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * An error log is one sentence given to whoever asked for it, cut when it is too long; and every status
 * has words of its own.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_log.h"

static void a_sentence_reaches_the_listener(void **state)
{
    dn_test_log_expect();
    dn_log_error("field %s is %d", "ring_lines", 7);
    assert_string_equal(dn_test_log.last, "field ring_lines is 7");
    assert_true(dn_test_log_said(1, "ring_lines"));
}

static void a_long_sentence_is_cut(void **state)
{
    char text[3000];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    dn_test_log_expect();
    dn_log_error("%s", text);
    assert_in_range(strlen(dn_test_log.last), 100, sizeof(dn_test_log.last) - 1);
    assert_true(dn_test_log_said(1, "aaa"));
}

/** What is formed under a lock waits, in order; where there is no room, it is counted. */
static void a_sentence_waits_until_the_lock_is_let_go(void **state)
{
    static dn_log_later_t later, taken;

    dn_test_log_expect();
    for (uint32_t i = 0; i < DN_LOG_LATER_MAX + 2; i++) {
        dn_log_later(&later, "sentence %u", (unsigned) i);
    }
    assert_true(dn_test_log_said(0, ""));
    dn_test_log_expect();
    dn_log_take(&later, &taken);
    assert_int_equal(later.count, 0);
    dn_log_taken(&taken);
    assert_string_equal(dn_test_log.last, "2 more errors of the same moment are left out");
    assert_true(dn_test_log_said(DN_LOG_LATER_MAX + 1, "left out"));
    dn_log_mute(1);
    dn_log_later(&later, "muted");
    dn_log_mute(0);
    assert_int_equal(later.count, 0);
}

static void every_status_has_its_words(void **state)
{
    for (int i = DN_ERR_ACCESS; i <= DN_INPROGRESS; i++) {
        assert_non_null(dn_strerror((dn_status_t) i));
        assert_string_not_equal(dn_strerror((dn_status_t) i), dn_strerror((dn_status_t) 1000));
        for (int k = DN_ERR_ACCESS; k < i; k++) {
            assert_string_not_equal(dn_strerror((dn_status_t) i), dn_strerror((dn_status_t) k));
        }
    }
    assert_non_null(dn_strerror((dn_status_t) 1000));
    assert_non_null(dn_strerror((dn_status_t) -1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sentence_reaches_the_listener),
        cmocka_unit_test(a_long_sentence_is_cut),
        cmocka_unit_test(a_sentence_waits_until_the_lock_is_let_go),
        cmocka_unit_test(every_status_has_its_words),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
