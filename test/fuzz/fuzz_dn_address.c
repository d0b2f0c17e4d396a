/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any bytes as the address of a peer: it is refused, by one sentence at most, or found to be out of reach, and no part
 * that is handed to a device leaves the address. What is like the port's own address connects to itself.
 */
#include "dn_config.h"

#include "dn_fuzz_port.h"

#include <string.h>

#include "../dn_test.h"
#include "dn_port.h"

static dn_port_t *port;
static uint8_t own[DN_ADDRESS_MAX];
static size_t own_len;
static unsigned sentences;

static void count_sentence(const char *sentence, void *arg)
{
    (void) arg;
    DN_FUZZ_CHECK(strlen(sentence) < 1024);
    sentences++;
}

static void open_port(void)
{
    const dn_job_t job = {.nlocal = 1};
    dn_config_t config;

    dn_fuzz_config(&config);
    DN_FUZZ_CHECK(DN_OK == dn_open("shm", &job, &config, &port));
    own_len = sizeof(own);
    DN_FUZZ_CHECK(DN_OK == dn_address(port, own, &own_len));
    dn_log_set(count_sentence, NULL);
}

/** The port's own address changes from run to run: zeros of an input stand for what it has there. */
static uint8_t *like_own(const uint8_t *data, size_t len)
{
    uint8_t *address = malloc(len + (0 == len));

    DN_FUZZ_CHECK(NULL != address);
    for (size_t i = 0; i < len; i++) {
        address[i] = data[i] ^ (i < own_len ? own[i] : 0);
    }
    return address;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    dn_address_head_t head;
    dn_peer_t *peer = NULL;
    dn_pgid_t pgid;

    if (NULL == port) {
        open_port();
    }
    uint8_t *address = like_own(data, len);
    sentences = 0;
    if (DN_OK == dn_address_read(address, len, &head)) {
        for (size_t i = 0; NULL != dn_device_name(i); i++) {
            const void *part = NULL;
            size_t part_len = 0;
            if (DN_OK == dn_address_find(address, &head, dn_device_name(i), &part, &part_len)
                && NULL != part) {
                DN_FUZZ_CHECK((const uint8_t *) part >= address && part_len <= len
                              && (size_t) ((const uint8_t *) part - address) <= len - part_len);
            }
        }
        DN_FUZZ_CHECK(DN_OK == dn_address_pgid(address, len, &pgid) && 0 == sentences);
    }
    DN_FUZZ_CHECK(1 >= sentences);
    sentences = 0;
    const dn_status_t status = dn_connect(port, address, len, &peer);
    DN_FUZZ_CHECK(1 >= sentences && (DN_OK == status) == (NULL != peer));
    DN_FUZZ_CHECK(DN_OK == status || DN_ERR_UNREACH == status || DN_ERR_UNSUPPORTED == status
                  || 1 == sentences);
    if (DN_OK == status) {
        dn_disconnect(peer);
    }
    for (unsigned turn = 0; turn < 8 && 0 != dn_progress(port); turn++) {
    }
    free(address);
    return 0;
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    if (NULL == port) {
        open_port();
    }
    memset(data, 0, own_len);
    for (uint64_t changes = dn_test_below(random, 4); 0 != changes; changes--) {
        data[dn_test_below(random, own_len)] = (uint8_t) dn_test_random(random);
    }
    return 0 == dn_test_below(random, 8) ? dn_test_below(random, own_len) : own_len;
}
