/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A profile is taken with its units, or refused with one sentence that names the line, the key and what is accepted.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "model/dn_model_profile.h"

/** All keys that a NIC must have. */
static const char whole[] =
    "name = x\n"
    "host_store_ns = 50\nhost_to_nic_us = 0.1\nhost_read_4_ns = 1\nhost_read_8_ns = 2 # comment\n"
    "host_copy_mbyte_s = 800\n\nstage_write_from_host_dimm_cycles = 3\n"
    "stage_link_send_swif_cycles = 4\nstage_link_receive_ps = 70000\nstage_memory_write_ns = 10\n"
    "botf_payload_bytes = 464\nheader_bytes = 32\nlink_rate_gbit_s = 8\n"
    "dimm_clock_mhz = 100\nswif_clock_mhz = 62.5\n";

static dn_model_profile_t profile;

/** The whole one with a line more. */
static dn_status_t with(const char *line)
{
    char text[2048];

    snprintf(text, sizeof(text), "%s%s\n", whole, line);
    return dn_model_profile_parse(&profile, "test", text, 1);
}

static void refused(const char *line, const char *word)
{
    dn_test_log_expect();
    assert_int_equal(with(line), DN_ERR_PARAM);
    assert_true(dn_test_log_said(1, word));
}

static void units_are_counted(void **state)
{
    assert_int_equal(with("llcm_kib = 128"), DN_OK);
    assert_string_equal(profile.name, "x");
    assert_int_equal(profile.value[DN_P_HOST_STORE], 50000);
    assert_int_equal(profile.value[DN_P_HOST_TO_NIC], 100000);
    assert_int_equal(profile.value[DN_P_WRITE_FROM_HOST], 30000);
    assert_int_equal(profile.value[DN_P_LINK_SEND], 64000);
    assert_int_equal(profile.value[DN_P_LINK_RECEIVE], 70000);
    assert_int_equal(profile.value[DN_P_LINK_RATE], 1000000000);
    assert_int_equal(profile.value[DN_P_DIMM_CLOCK], 100000);
    assert_int_equal(profile.value[DN_P_LLCM_SIZE], 131072);
    assert_int_equal(profile.value[DN_P_FIFO], 2048);
}

static void mistakes_are_named(void **state)
{
    refused("host_stroe_ns = 1", "no key \"host_stroe_ns\"");
    refused("dma_read_start = 1", "has no unit");
    refused("dma_read_start = 1", "dma_read_start_bus_cycles");
    refused("dma_read_start_mhz = 1", "not given in that unit");
    refused("dma_read_start_ns = fast", "no number");
    refused("dma_read_start_ns = -1", "no number");
    refused("dma_read_start_ns = 5 us", "no number");
    refused("dma_read_start_ns = nan", "no number");
    refused("dma_read_start_ns = 200000", "must be from 0 to 100000");
    refused("dma_read_start_bus_cycles = 2", "bus_clock_mhz");
    refused("host_store_us = 1", "twice");
    refused("botf_window_check_flag = 2", "from 0 to 1");
    refused("what is this", "KEY = VALUE");
    refused("what is this", "test:17");
}

static void missing_keys_are_named(void **state)
{
    dn_test_log_expect();
    assert_int_equal(dn_model_profile_parse(&profile, "test", "name = x\n", 1), DN_ERR_PARAM);
    assert_true(dn_test_log_said(1, "host_store is missing"));
    dn_test_log_expect();
    assert_int_equal(dn_model_profile_parse(&profile, "test", strchr(whole, '\n'), 1), DN_ERR_PARAM);
    assert_true(dn_test_log_said(1, "name is missing"));
    /* A switch is not asked for a NIC's keys. */
    assert_int_equal(dn_model_profile_parse(&profile, "test", "name = x\nswitch_pass_ns = 5\n", 0), DN_OK);
    assert_int_equal(profile.value[DN_P_SWITCH_PASS], 5000);
}

static void files_are_found_or_named(void **state)
{
    dn_model_profile_t *open = NULL;

    assert_int_equal(dn_model_profile_open("dimmnet1-d", &open), DN_OK);
    assert_int_equal(dn_model_profile_value(open, "host_read_8"), 173000);
    assert_int_equal(dn_model_profile_value(open, "no such key"), 0);
    dn_model_profile_close(open);
    dn_test_log_expect();
    assert_int_equal(dn_model_profile_open("dimmnet9", &open), DN_ERR_PARAM);
    assert_true(dn_test_log_said(1, "dimmnet9.profile"));
}

static void every_key_has_a_meaning(void **state)
{
    const char *meaning = NULL;
    size_t i = 0;

    for (; NULL != dn_model_key(i, &meaning); i++) {
        assert_true(3 < strlen(meaning));
    }
    assert_int_equal(i, DN_P_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_counted),       cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(missing_keys_are_named),  cmocka_unit_test(files_are_found_or_named),
        cmocka_unit_test(every_key_has_a_meaning),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
