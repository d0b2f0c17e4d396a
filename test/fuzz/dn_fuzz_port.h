/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_fuzz_port.h
 * What fuzz targets with a port share: a small port, a connection of it to itself, and an input that is taken in pieces.
 */
#ifndef DN_FUZZ_PORT_H
#define DN_FUZZ_PORT_H

#include "dimmnet.h"
#include "dn_fuzz.h"

/** What of an input is left. */
typedef struct dn_fuzz_input {
    const uint8_t *data;
    size_t len;
} dn_fuzz_input_t;

/** The next number of an input, least byte first. What is behind the end counts as zeros. */
static inline uint64_t dn_fuzz_draw(dn_fuzz_input_t *input, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes && 0 != input->len; i++) {
        value |= (uint64_t) *input->data++ << 8 * i;
        input->len--;
    }
    return value;
}

/** For dn_log_set(): most inputs lead to a sentence. */
static inline void dn_fuzz_say_nothing(const char *sentence, void *arg)
{
    (void) sentence;
    (void) arg;
}

/** The settings of a port that is soon opened and takes little memory; its stage is left out. */
static inline void dn_fuzz_config(dn_config_t *config)
{
    dn_config_init(config);
    config->max_peers = 4;
    config->ring_lines = 64;
    config->llcm_bytes = 4096;
    config->stage_bytes = 0;
}

/** A peer through which a port reaches itself. */
static inline dn_peer_t *dn_fuzz_connect_self(dn_port_t *port)
{
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_peer_t *self = NULL;

    DN_FUZZ_CHECK(DN_OK == dn_address(port, address, &len));
    DN_FUZZ_CHECK(DN_OK == dn_connect(port, address, len, &self));
    return self;
}

#endif
