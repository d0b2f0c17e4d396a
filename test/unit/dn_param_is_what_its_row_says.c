/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Every row of dn_params.def has a default in its range, a sentence and a name of its own; text becomes the value that it says, and
 * what is no value changes nothing. The words of a row stand in the order of the values that the code knows them by.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_pace.h"
#include "dn_param.h"
#include "dn_tag.h"

static dn_config_t config;

static void rows(void **state)
{
    size_t count;
    const dn_param_t *row = dn_param_list(&count);
    char text[DN_PARAM_TEXT];
    uint32_t value;

    assert_true(30 < count);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(dn_param_find(row[i].section, row[i].name), &row[i]);
        assert_true(0 < strlen(row[i].sentence));
        assert_true('.' != row[i].sentence[strlen(row[i].sentence) - 1]);
        assert_in_range(dn_param_accepted(&row[i], text, sizeof(text)), 1, sizeof(text) - 1);
        if (DN_PARAM_KIND_ENVIRONMENT == row[i].kind) {
            continue;
        }
        assert_in_range(row[i].level, 1, 9);
        assert_in_range(dn_param_default(&row[i], text, sizeof(text)), 0, sizeof(text) - 1);
        if (DN_PARAM_KIND_LIST != row[i].kind && DN_OK != dn_param_parse(&row[i], text, &value)) {
            fail_msg("%s does not take its default, %s", row[i].name, text);
        }
        for (uint32_t word = 0; word < dn_param_words(&row[i]); word++) {
            assert_int_equal(dn_param_parse(&row[i], row[i].word[word], &value), DN_OK);
            assert_int_equal(value, word);
        }
    }
}

static void words(void **state)
{
    const dn_param_t *backing = dn_param_find(DN_PARAM_PORT, "backing");
    const dn_param_t *auth = dn_param_find(DN_PARAM_PORT, "auth");
    const dn_param_t *announce = dn_param_find(DN_PARAM_TAG, "announce");
    const dn_param_t *stream = dn_param_find(DN_PARAM_TAG, "stream");

    assert_string_equal(backing->word[DN_BACKING_AUTO], "auto");
    assert_string_equal(backing->word[DN_BACKING_MEMFD], "memfd");
    assert_string_equal(backing->word[DN_BACKING_FILE], "file");
    assert_string_equal(auth->word[DN_AUTH_NONE], "none");
    assert_string_equal(auth->word[DN_AUTH_HELLO], "hello");
    assert_string_equal(auth->word[DN_AUTH_FULL], "full");
    assert_string_equal(auth->word[DN_AUTH_ENCRYPTED], "encrypted");
    assert_string_equal(announce->word[DN_TAG_ANNOUNCES_NONE], "never");
    assert_string_equal(announce->word[DN_TAG_ANNOUNCES_AWAY], "auto");
    assert_string_equal(announce->word[DN_TAG_ANNOUNCES_ALL], "always");
    assert_string_equal(stream->word[DN_PACE_STREAM_NEVER], "never");
    assert_string_equal(stream->word[DN_PACE_STREAM_AUTO], "auto");
    assert_string_equal(stream->word[DN_PACE_STREAM_ALWAYS], "always");
}

static void taken(const char *name, const char *text)
{
    assert_int_equal(dn_config_set(&config, name, text), DN_OK);
}

static void texts_are_taken(void **state)
{
    dn_config_init(&config);
    taken("ring_lines", "0x80");
    assert_int_equal(config.ring_lines, 128);
    taken("stage_bytes", "2M");
    assert_int_equal(config.stage_bytes, 2 << 20);
    taken("stage_bytes", "1g");
    assert_int_equal(config.stage_bytes, 1 << 30);
    taken("stage_bytes", "64k");
    assert_int_equal(config.stage_bytes, 64 << 10);
    taken("first", "4294967294");
    assert_true(4294967294u == config.first);
    taken("cma", "no");
    assert_int_equal(config.cma, 0);
    taken("cma", "true");
    assert_int_equal(config.cma, 1);
    taken("cma", "0");
    assert_int_equal(config.cma, 0);
    taken("backing", "file");
    assert_int_equal(config.backing, DN_BACKING_FILE);
    taken("auth", "2");
    assert_int_equal(config.auth, DN_AUTH_FULL);
    taken("fault", "push:again/7");
    assert_string_equal(config.fault, "push:again/7");
}

static void others_are_refused(void **state)
{
    static const struct {
        const char *name, *text, *said;
    } bad[] = {
        {"ring_lines", "63", "64 to 4096 lines"},
        {"ring_lines", "4097", "64 to 4096 lines"},
        {"ring_lines", "12x", "ring_lines is \"12x\""},
        {"ring_lines", "", "ring_lines is \"\""},
        {"ring_lines", " 128", "64 to 4096"},
        {"ring_lines", "-128", "64 to 4096"},
        {"ring_lines", "+128", "64 to 4096"},
        {"ring_lines", "1kk", "64 to 4096"},
        {"llcm_bytes", "4100", "a multiple of 64 from 4096 to 16777216 bytes"},
        {"stage_bytes", "4294967296g", "stage_bytes"},
        {"stage_bytes", "18446744073709551617", "stage_bytes"},
        {"first", "4294967295", "0 to 4294967294"},
        {"cma", "2", "false, true"},
        {"cma", "maybe", "false, true"},
        {"backing", "memf", "auto, memfd, file"},
        {"backing", "Auto", "auto, memfd, file"},
        {"backing", "3", "auto, memfd, file"},
        {"no_such", "1", "no parameter no_such"},
    };
    dn_config_t before;

    dn_config_init(&config);
    before = config;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dn_test_log_expect();
        if (DN_ERR_PARAM != dn_config_set(&config, bad[i].name, bad[i].text)) {
            fail_msg("%s took \"%s\"", bad[i].name, bad[i].text);
        }
        assert_true(dn_test_log_said(1, bad[i].said));
        assert_memory_equal(&config, &before, sizeof(config));
    }
}

/** A text that is longer than its room is cut, and its whole length is told. */
static void texts_fit(void **state)
{
    const dn_param_t *backing = dn_param_find(DN_PARAM_PORT, "backing");
    char text[8];

    assert_int_equal(dn_param_accepted(backing, text, sizeof(text)), strlen("auto, memfd, file"));
    assert_string_equal(text, "auto, m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(words),
        cmocka_unit_test(texts_are_taken),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(texts_fit),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
