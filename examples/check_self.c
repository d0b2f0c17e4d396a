/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A process that writes to itself over the device `self`: messages in order and of all lengths, windows, stores, and what the core
 * processor does by messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test/dn_test.h"

enum { MESSAGES = 5000, LONG = 20000 };

static uint64_t heard, bytes, wrong;
static unsigned ended;

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "check_self: %s\n", what);
        exit(1);
    }
}

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    wrong += tag != heard % 251 || dn_test_mismatch(data, len, heard) != len;
    heard++;
    bytes += len;
}

static void end(dn_comp_t *comp, dn_status_t status)
{
    ended += DN_OK == status;
}

static void messages(dn_port_t *port, dn_peer_t *peer)
{
    uint64_t random = 1, sent = 0;
    dn_peer_attr_t attr;
    uint8_t data[32768];

    dn_peer_attr(peer, &attr);
    check(0 == strcmp(attr.device, "self"), "this process is not reached by self");
    check(DN_ERR_RANGE == dn_botf(peer, DN_CHAN_USER, 0, data, attr.botf_max, data, 1),
          "too long a message is taken");
    for (uint64_t i = 0; i < MESSAGES; i++) {
        const size_t len = dn_test_length(&random, attr.botf_max);
        dn_status_t status;
        dn_window_t window;
        dn_test_fill(data, len, i);
        do {
            if (0 == i % 2) {
                status = dn_botf(peer, DN_CHAN_USER, i % 251, data, len / 3, data + len / 3, len - len / 3);
            } else {
                status = dn_botf_reserve(peer, len, &window);
                if (DN_OK == status) {
                    memcpy(window.data, data, len);
                    dn_botf_kick(peer, &window, DN_CHAN_USER, i % 251, len);
                }
            }
        } while (DN_ERR_AGAIN == status && 0 < dn_progress(port));
        check(DN_OK == status, "a message is not taken");
        sent += len;
    }
    while (0 < dn_progress(port)) {
    }
    check(MESSAGES == heard && sent == bytes && 0 == wrong, "messages are lost, or not as they were sent");
}

static void stores_and_transfers(dn_port_t *port, dn_peer_t *peer)
{
    static uint8_t from[LONG], back[LONG];
    dn_comp_t comp = {end};
    dn_segment_t *segment;
    dn_key_t key;
    uint64_t off;
    void *place;

    check(DN_OK == dn_llcm_alloc(port, 128, &off, &place), "there is no LLCM");
    check(DN_OK == dn_aotf(peer, off + 3, 0xaabbcc, 3) && 0xaabbcc == (*(uint64_t *) place >> 24 & 0xffffff),
          "a store is not there");
    check(DN_OK == dn_aotf_line(peer, off + 64, "line", 4, 7), "a line is not taken");
    check(DN_OK == dn_segment_alloc(port, LONG, &segment), "there is no segment");
    dn_segment_key(segment, &key);
    dn_test_fill(from, LONG, 9);
    const dn_xfer_t push = {.key = &key, .local = from, .len = LONG, .comp = &comp};
    const dn_xfer_t pull = {.key = &key, .local = back, .len = LONG, .comp = &comp};
    check(DN_INPROGRESS == dn_push(peer, &push), "a PUSH does not begin");
    while (1 > ended && 0 < dn_progress(port)) {
    }
    check(DN_INPROGRESS == dn_pull(peer, &pull), "a PULL does not begin");
    while (2 > ended && 0 < dn_progress(port)) {
    }
    check(2 == ended && LONG == dn_test_mismatch(back, LONG, 9), "a transfer does not end, or not well");
    check(DN_OK == dn_flush(peer) && 7 == ((uint64_t *) place)[15], "a line is not there");
    dn_segment_free(segment);
}

int main(void)
{
    const dn_job_t job = {.nlocal = 1};
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_port_t *port;
    dn_peer_t *peer;

    check(DN_OK == dn_open("self,shm", &job, NULL, &port), "the port does not open");
    check(DN_OK == dn_handler_set(port, DN_CHAN_USER, hear, NULL), "there is no handler");
    check(DN_OK == dn_address(port, address, &len), "there is no address");
    check(DN_OK == dn_connect(port, address, len, &peer), "this process does not reach itself");
    messages(port, peer);
    stores_and_transfers(port, peer);
    dn_disconnect(peer);
    check(DN_OK == dn_connect(port, address, len, &peer), "this process does not reach itself again");
    dn_close(port);
    printf("%u messages and 2 transfers came as they were sent\n", MESSAGES);
    return 0;
}
