/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A client of dimmnet_perf that does as it should up to some point, and then what it likes.
 *
 * usage: hostile_client PORT HOW [DEVICES]
 *
 *   mute      says nothing
 *   drip      says its first words one byte after the other
 *   devices   greets, and asks for DEVICES
 *   plan      asks for a test of 2^63 bytes
 *   silent    asks for a test, and says nothing more
 *   address   gives an address that says to be longer than an address can be
 *   parts     gives an address whose parts lead out of it
 *
 * Ends with 0 once the server has parted from it.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "dn_net.h"
#include "dn_perf_tool.h"
#include "dn_port.h"

/** What comes before each part of an address. */
typedef struct {
    char device[8];
    uint32_t len;
    uint32_t pad;
} part_t;

/** The server's words, until it closes the connection. */
static int await_end(int socket)
{
    char byte;

    while (0 == dn_net_receive(socket, &byte, 1)) {
    }
    return 0;
}

static int drip(int socket)
{
    const struct timespec pause = {0, 50000000};

    while (0 == dn_net_send(socket, "d", 1)) {
        nanosleep(&pause, NULL);
    }
    return 0;
}

/** A test that the server takes. */
static void ask(int socket, uint64_t size)
{
    const dn_plan_t plan = {.test = "aotf",
                            .min_size = 8,
                            .max_size = size,
                            .mem_limit = 1 << 20,
                            .iterations = 1,
                            .batches = 1,
                            .window = 1};
    dn_net_send(socket, &plan, sizeof(plan));
}

static void send_address(int socket, const dn_group_key_t *key, size_t len, uint32_t part_len)
{
    static perf_address_t theirs;
    static perf_address_t mine;
    dn_pgid_t pgid;

    if (DN_OK != dn_pgid(key, &pgid)) {
        exit(2);
    }
    const dn_address_head_t head = {.magic = 0x61646e64u,
                                    .version = DN_WIRE_VERSION,
                                    .len = (uint16_t) len,
                                    .pgid = pgid,
                                    .nonce = {1, 2},
                                    .parts = 2};
    const part_t part = {.device = "x", .len = part_len};

    dn_net_receive(socket, &theirs, sizeof(theirs));
    mine.len = len;
    memcpy(mine.bytes, &head, sizeof(head));
    memcpy(mine.bytes + sizeof(head), &part, sizeof(part));
    dn_net_send(socket, &mine, sizeof(mine));
}

int main(int argc, char **argv)
{
    static const dn_token_t none;
    dn_group_key_t key;
    const char *how = 2 < argc ? argv[2] : "";
    const int socket = 2 < argc ? dn_net_connect("hostile_client", "127.0.0.1", atoi(argv[1])) : -1;

    if (0 > socket) {
        return 2;
    }
    if (0 == strcmp(how, "mute")) {
        return await_end(socket);
    }
    if (0 == strcmp(how, "drip")) {
        return drip(socket);
    }
    const char *devices = 3 < argc ? argv[3] : "shm";
    if (0 != dn_greet_server(socket, "this host", &none, devices, &key)) {
        return 0 == strcmp(how, "devices") ? await_end(socket) : 2;
    }
    ask(socket, 0 == strcmp(how, "plan") ? (uint64_t) 1 << 63 : 8);
    if (0 == strcmp(how, "address")) {
        send_address(socket, &key, 65535, 60000);
    } else if (0 == strcmp(how, "parts")) {
        send_address(socket, &key, sizeof(dn_address_head_t) + sizeof(part_t), 60000);
    }
    return await_end(socket);
}
