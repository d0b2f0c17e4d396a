/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A setting out of its range, an unknown device or a malformed fault schedule is refused by dn_open with
 * one sentence that names the setting; the ends of each range are taken. A number from which all counts is to be the same in both of two
 * that connect.
 */
#include "dn_config.h"

#include "dn_unit.h"

static const dn_job_t job = {.key = {{1}}, .nlocal = 1};

static void refused(const char *spec, const dn_config_t *config, const char *word)
{
    dn_port_t *port = NULL;

    dn_test_log_expect();
    const dn_status_t status = dn_open(spec, &job, config, &port);
    if (DN_OK == status) {
        dn_close(port);
        fail_msg("spec \"%s\" with a bad %s was taken", spec, word);
    }
    assert_int_equal(status, DN_ERR_PARAM);
    assert_true(dn_test_log_said(1, word));
    assert_null(port);
}

static void taken(const dn_config_t *config)
{
    dn_port_t *port = NULL;

    assert_int_equal(dn_open("shm", &job, config, &port), DN_OK);
    dn_close(port);
}

static void defaults(void **state)
{
    dn_config_t config;

    memset(&config, 0xff, sizeof(config));
    dn_config_init(&config);
    taken(&config);
    taken(NULL);
}

static void ring_lines(void **state)
{
    static const uint32_t bad[] = {0, 1, 16, 63, 4097, 32768, UINT32_MAX};
    dn_config_t config;

    dn_config_init(&config);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        config.ring_lines = bad[i];
        refused("shm", &config, "ring_lines");
    }
    config.ring_lines = 64;
    taken(&config);
    config.ring_lines = 65;
    taken(&config);
    config.ring_lines = 4096;
    taken(&config);
}

static void max_peers(void **state)
{
    static const uint32_t bad[] = {0, 16385, UINT32_MAX};
    dn_config_t config;

    dn_config_init(&config);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        config.max_peers = bad[i];
        refused("shm", &config, "max_peers");
    }
    config.max_peers = 1;
    taken(&config);
    config.max_peers = 16384;
    taken(&config);
}

static void llcm_bytes(void **state)
{
    static const uint32_t bad[] = {0, 4095, 4097, 4096 + 32, 16777216 + 64, UINT32_MAX};
    dn_config_t config;

    dn_config_init(&config);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        config.llcm_bytes = bad[i];
        refused("shm", &config, "llcm_bytes");
    }
    config.llcm_bytes = 4096;
    taken(&config);
    config.llcm_bytes = 16777216;
    taken(&config);
}

static void stage_bytes(void **state)
{
    static const uint32_t bad[] = {32768 + 32, (1u << 30) + 64, UINT32_MAX};
    static const uint32_t good[] = {0, 64, 32768, 1u << 30};
    dn_config_t config;

    dn_config_init(&config);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        config.stage_bytes = bad[i];
        refused("shm", &config, "stage_bytes");
    }
    for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        config.stage_bytes = good[i];
        taken(&config);
    }
}

static void timeout_s(void **state)
{
    dn_config_t config;

    dn_config_init(&config);
    config.timeout_s = 86401;
    refused("shm", &config, "timeout_s");
    config.timeout_s = 86400;
    taken(&config);
    config.timeout_s = 0;
    taken(&config);
}

static void first(void **state)
{
    dn_port_t *port[2];
    dn_config_t config;
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_peer_t *peer = NULL;

    dn_config_init(&config);
    config.first = UINT32_MAX;
    refused("shm", &config, "first");
    config.first = UINT32_MAX - 1;
    taken(&config);
    for (int i = 0; i < 2; i++) {
        config.first = (UINT32_C(1) << 31) - (uint32_t) i;
        assert_int_equal(dn_open("shm", &job, &config, &port[i]), DN_OK);
    }
    assert_int_equal(dn_address(port[0], address, &len), DN_OK);
    dn_test_log_expect();
    assert_int_equal(dn_connect(port[1], address, len, &peer), DN_ERR_PARAM);
    assert_true(dn_test_log_said(1, "counts from 2147483648, this process from 2147483647"));
    dn_close(port[0]);
    dn_close(port[1]);
}

static void backing(void **state)
{
    static const int bad[] = {-1, 3, INT32_MAX};
    dn_config_t config;

    dn_config_init(&config);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        config.backing = bad[i];
        refused("shm", &config, "backing");
    }
    for (int good = DN_BACKING_AUTO; good <= DN_BACKING_FILE; good++) {
        config.backing = good;
        taken(&config);
    }
}

static void auth(void **state)
{
    dn_config_t config;

    dn_config_init(&config);
    config.auth = DN_AUTH_ENCRYPTED + 1;
    refused("shm", &config, "auth");
    config.auth = DN_AUTH_ENCRYPTED;
    taken(&config);
}

static void fault(void **state)
{
    dn_config_t config;

    dn_config_init(&config);
    config.fault = "botf:again";
    refused("shm", &config, "fault");
    config.fault = "";
    taken(&config);
    config.fault = "botf:again/7,seed=2";
    taken(&config);
}

static void devices(void **state)
{
    static const char *const bad[] = {"",    "nosuch", "shm,nosuch", "nosuch,shm", "shm:argument",
                                      "SHM", "shmshm", "shm,shm"};

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refused(bad[i], NULL, "device");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),   cmocka_unit_test(ring_lines),  cmocka_unit_test(max_peers),
        cmocka_unit_test(llcm_bytes), cmocka_unit_test(stage_bytes), cmocka_unit_test(timeout_s),
        cmocka_unit_test(backing),    cmocka_unit_test(fault),       cmocka_unit_test(devices),
        cmocka_unit_test(first),      cmocka_unit_test(auth),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
