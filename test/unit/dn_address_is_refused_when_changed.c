/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * An address cut short, lengthened, or with any byte changed is refused, or else means the same process
 * as before: it never crashes, and never gives a peer that does not work.
 */
#include "dn_config.h"

#include "dn_unit.h"

static dn_group_key_t key;
static dn_port_t *port;
static uint8_t address[DN_ADDRESS_MAX];
static size_t address_len;
static unsigned heard;

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    heard++;
}

/** The peer answers to its name: a message to it arrives here, since it is this process. */
static void works(dn_peer_t *peer)
{
    const unsigned before = heard;

    assert_int_equal(dn_peer_check(peer), DN_OK);
    assert_int_equal(dn_botf(peer, DN_CHAN_USER, 0, "x", 1, NULL, 0), DN_OK);
    for (unsigned i = 0; i < 1000 && heard == before; i++) {
        dn_progress(port);
    }
    assert_int_equal(heard, before + 1);
}

/** @return what dn_connect() said: an error with its one sentence (UNREACH and UNSUPPORTED have none), or a working peer. */
static dn_status_t try(const void *bytes, size_t len)
{
    dn_peer_t *peer = NULL;
    dn_pgid_t pgid;

    dn_test_log_expect();
    const dn_status_t status = dn_connect(port, bytes, len, &peer);
    assert_int_not_equal(status, DN_INPROGRESS);
    assert_int_not_equal(status, DN_ERR_AGAIN);
    assert_true(
        dn_test_log_said(DN_OK != status && DN_ERR_UNREACH != status && DN_ERR_UNSUPPORTED != status, NULL));
    if (DN_OK == status) {
        works(peer);
        dn_disconnect(peer);
        for (unsigned i = 0; i < 4; i++) {
            dn_progress(port);
        }
    } else {
        assert_null(peer);
    }
    dn_test_log.expected = 1;
    dn_address_pgid(bytes, len, &pgid);
    dn_test_log.expected = 0;
    return status;
}

/** Copies in memory of exactly their length: a byte too far meets a sanitizer. */
static dn_status_t try_copy(const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len + (0 == len));

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    const dn_status_t status = try(copy, len);
    free(copy);
    return status;
}

static void the_address_itself_works(void **state)
{
    assert_int_equal(try_copy(address, address_len), DN_OK);
    assert_int_equal(try_copy(address, address_len), DN_OK);
}

static void every_truncation_is_refused(void **state)
{
    dn_pgid_t pgid;

    for (size_t len = 0; len < address_len; len++) {
        assert_int_equal(try_copy(address, len), DN_ERR_PROTO);
        dn_test_log_expect();
        assert_int_equal(dn_address_pgid(address, len, &pgid), DN_ERR_PROTO);
        assert_true(dn_test_log_said(1, "address"));
    }
}

static void a_longer_address_is_refused(void **state)
{
    uint8_t longer[DN_ADDRESS_MAX + 64] = {0};

    memcpy(longer, address, address_len);
    for (size_t len = address_len + 1; len < sizeof(longer); len++) {
        assert_int_equal(try_copy(longer, len), DN_ERR_PROTO);
    }
}

static void every_changed_byte_is_refused_or_harmless(void **state)
{
    uint8_t changed[DN_ADDRESS_MAX];
    unsigned refused = 0, versions = 0;

    for (size_t i = 0; i < address_len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(changed, address, address_len);
            changed[i] ^= (uint8_t) (1U << bit);
            const dn_status_t status = try_copy(changed, address_len);
            refused += DN_OK != status;
            versions += DN_ERR_VERSION == status;
        }
    }
    /* At least magic, version, length, group, nonce and PID. */
    assert_in_range(refused, 8 * 32, 8 * address_len);
    assert_in_range(versions, 8, 32);
}

static void random_bytes_are_refused(void **state)
{
    uint8_t bytes[DN_ADDRESS_MAX];
    uint64_t random = 1;

    for (unsigned i = 0; i < 3000; i++) {
        const size_t len = dn_test_below(&random, sizeof(bytes) + 1);
        memcpy(bytes, address, address_len);
        for (size_t k = 0 == i % 2 ? 0 : 32 + dn_test_below(&random, 400); k < len; k++) {
            bytes[k] = (uint8_t) dn_test_random(&random);
        }
        assert_int_not_equal(try_copy(bytes, 0 == i % 3 ? address_len : len), 1000);
    }
}

static void another_version_is_told(void **state)
{
    uint8_t changed[DN_ADDRESS_MAX];
    unsigned told = 0;

    for (size_t i = 0; i < 16; i++) {
        dn_pgid_t pgid;
        memcpy(changed, address, address_len);
        changed[i]++;
        dn_test_log_expect();
        if (DN_ERR_VERSION == dn_address_pgid(changed, address_len, &pgid)) {
            assert_true(dn_test_log_said(1, "version"));
            assert_int_equal(try_copy(changed, address_len), DN_ERR_VERSION);
            told++;
        }
        dn_test_log.expected = 0;
    }
    assert_in_range(told, 1, 4);
}

static void another_byte_order_is_told(void **state)
{
    uint8_t changed[DN_ADDRESS_MAX];
    dn_pgid_t pgid;

    for (size_t i = 0; i < address_len; i++) {
        changed[i] = i < 4 ? address[3 - i] : address[i];
    }
    dn_test_log_expect();
    assert_int_equal(dn_address_pgid(changed, address_len, &pgid), DN_ERR_PROTO);
    assert_true(dn_test_log_said(1, "byte order"));
}

static void a_buffer_too_small_is_told_the_length(void **state)
{
    uint8_t bytes[DN_ADDRESS_MAX];

    for (size_t room = 0; room < address_len; room++) {
        size_t len = room;
        memset(bytes, 0xab, sizeof(bytes));
        dn_test_log.expected = 1;
        assert_int_equal(dn_address(port, bytes, &len), DN_ERR_RANGE);
        dn_test_log.expected = 0;
        assert_int_equal(len, address_len);
        for (size_t i = room; i < sizeof(bytes); i++) {
            assert_int_equal(bytes[i], 0xab);
        }
    }
}

static void the_group_is_inside(void **state)
{
    dn_pgid_t pgid, made;

    assert_int_equal(dn_address_pgid(address, address_len, &pgid), DN_OK);
    assert_int_equal(dn_pgid(&key, &made), DN_OK);
    assert_memory_equal(&pgid, &made, sizeof(pgid));
}

/** Addresses go through hands that are not to have it, and into files. */
static void the_key_is_not_inside(void **state)
{
    for (size_t i = 0; i + sizeof(key) / 2 <= address_len; i++) {
        assert_memory_not_equal(address + i, key.byte, sizeof(key) / 2);
        assert_memory_not_equal(address + i, key.byte + sizeof(key) / 2, sizeof(key) / 2);
    }
}

static int setup(void **state)
{
    dn_job_t job = {.nlocal = 1};
    dn_config_t config;

    for (unsigned i = 0; i < 16; i++) {
        key.byte[i] = (uint8_t) (i + 1);
    }
    job.key = key;
    dn_test_log_watch();
    dn_config_init(&config);
    config.max_peers = 8;
    if (DN_OK != dn_open("shm", &job, &config, &port)) {
        return -1;
    }
    address_len = sizeof(address);
    if (DN_OK != dn_address(port, address, &address_len)) {
        return -1;
    }
    return DN_OK == dn_handler_set(port, DN_CHAN_USER, hear, NULL) ? 0 : -1;
}

static int teardown(void **state)
{
    dn_close(port);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_address_itself_works),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(a_longer_address_is_refused),
        cmocka_unit_test(every_changed_byte_is_refused_or_harmless),
        cmocka_unit_test(random_bytes_are_refused),
        cmocka_unit_test(another_version_is_told),
        cmocka_unit_test(a_buffer_too_small_is_told_the_length),
        cmocka_unit_test(another_byte_order_is_told),
        cmocka_unit_test(the_group_is_inside),
        cmocka_unit_test(the_key_is_not_inside),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
