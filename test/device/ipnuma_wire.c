/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What somebody sees who listens on the way: two processes exchange texts over ipnuma in each way that it has, and a third one takes all
 * packets of their network. It finds each text where nothing is encrypted, and none with auth=encrypted.
 *
 * It needs the right to listen to a network, which a process has in one of its own.
 */
#include "dn_config.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>

#include "../dn_test.h"
#include "../dn_test_network.h"
#include "dn_clock.h"

enum { BYTES = 16 << 10, WAYS = 6, PACKET = 1 << 17, LISTENS = 64 << 20 };
#define SECONDS UINT64_C(60000000000)

/** Eight bytes for each way in which data goes. */
static const char text[WAYS][9] = {"messages", "PUSHwrit", "PULLread", "AOTFword", "add-this", "was-here"};

static dn_port_t *port[2];
static dn_peer_t *peer[2];
static unsigned heard;
static dn_status_t ended;
static unsigned seen[WAYS]; /**< packets with that text */
static unsigned packets;
static int wire; /**< a socket that hears all */

static void need(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "ipnuma_wire: wrong: %s\n", what);
        exit(1);
    }
}

/** Look at what came by since, so often that the socket has room for what comes next. */
static void look(void)
{
    static uint8_t bytes[PACKET];
    ssize_t len;

    while (0 < (len = recv(wire, bytes, sizeof(bytes), MSG_DONTWAIT))) {
        packets++;
        for (int way = 0; way < WAYS; way++) {
            seen[way] += NULL != memmem(bytes, (size_t) len, text[way], 8);
        }
    }
}

static int listen_to_all(void)
{
    const int room = LISTENS;
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

    if (0 > fd) {
        printf("no right to listen to a network\n");
        exit(DN_TEST_SKIP);
    }
    (void) setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
    return fd;
}

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) tag;
    (void) arg;
    need(BYTES == len && 0 == memcmp(data, text[0], 8), "a message comes as it was sent");
    heard++;
}

static void end(dn_comp_t *comp, dn_status_t status)
{
    (void) comp;
    ended = status;
}

static dn_comp_t comp = {end};

static void progress_both(void)
{
    dn_progress(port[0]);
    dn_progress(port[1]);
    look();
}

/** Wait for what was started. */
static void finish(dn_status_t status)
{
    const uint64_t until = dn_clock_ns() + SECONDS;

    while (DN_INPROGRESS == status && DN_INPROGRESS == ended && dn_clock_ns() < until) {
        progress_both();
    }
    need(DN_OK == (DN_INPROGRESS == status ? ended : status), "an operation ends well");
    ended = DN_INPROGRESS;
}

/** Bytes that are one text over and over. */
static void fill(uint8_t bytes[BYTES], int way)
{
    for (int i = 0; i < BYTES; i++) {
        bytes[i] = (uint8_t) text[way][i % 8];
    }
}

static void open_both(dn_auth_mode_t auth)
{
    for (int i = 0; i < 2; i++) {
        const dn_job_t job = {.key = {"a key of 16 byte"}, .pid = (uint32_t) i, .size = 2};
        dn_config_t config;
        dn_config_init(&config);
        config.auth = auth;
        const dn_status_t status = dn_open("ipnuma:lo", &job, &config, &port[i]);
        if (DN_ERR_UNSUPPORTED == status) {
            exit(DN_TEST_SKIP);
        }
        need(DN_OK == status && DN_OK == dn_handler_set(port[i], DN_CHAN_USER, hear, NULL),
             "a port is opened");
    }
    for (int i = 0; i < 2; i++) {
        uint8_t address[DN_ADDRESS_MAX];
        size_t len = sizeof(address);
        need(DN_OK == dn_address(port[!i], address, &len)
                 && DN_OK == dn_connect(port[i], address, len, &peer[i]),
             "a peer is reached");
    }
}

/** Each text goes in its way. */
static void exchange(void)
{
    static uint8_t memory[BYTES], local[BYTES];
    const uint64_t until = dn_clock_ns() + SECONDS;
    uint64_t word, old = 0, off = 0;
    dn_segment_t *segment = NULL;
    dn_status_t status;
    void *llcm = NULL;
    dn_key_t key;

    need(DN_OK == dn_segment_register(port[1], memory, BYTES, &segment), "a segment is registered");
    dn_segment_key(segment, &key);
    dn_xfer_t xfer = {.local = local, .key = &key, .len = BYTES, .comp = &comp};
    heard = 0;
    fill(local, 0);
    while (DN_ERR_AGAIN == (status = dn_botf(peer[0], DN_CHAN_USER, 0, NULL, 0, local, BYTES))) {
        progress_both();
    }
    need(DN_OK == status, "a message is taken");
    while (0 == heard && dn_clock_ns() < until) {
        progress_both();
    }
    need(1 == heard, "a message comes");
    fill(local, 1);
    uint32_t moves = dn_peer_moves(peer[0]);
    finish(dn_push(peer[0], &xfer));
    need(0 == memcmp(memory, local, BYTES), "what is PUSHed comes as it was");
    need(moves != dn_peer_moves(peer[0]), "a PUSH is seen to move");
    fill(memory, 2);
    moves = dn_peer_moves(peer[0]);
    const uint32_t served = dn_peer_moves(peer[1]);
    finish(dn_pull(peer[0], &xfer));
    need(0 == memcmp(memory, local, BYTES), "what is PULLed comes as it was");
    need(moves != dn_peer_moves(peer[0]) && served != dn_peer_moves(peer[1]),
         "a PULL is seen to move at both ends");
    need(DN_OK == dn_llcm_alloc(port[1], 64, &off, &llcm), "LLCM is had");
    memcpy(&word, text[3], sizeof(word));
    while (DN_ERR_AGAIN == (status = dn_aotf(peer[0], off, word, sizeof(word)))) {
        progress_both();
    }
    while (word != dn_load_acquire((const uint64_t *) llcm) && dn_clock_ns() < until) {
        progress_both();
    }
    need(DN_OK == status && word == dn_load_acquire((const uint64_t *) llcm), "a store takes effect");
    memcpy(&word, text[4], sizeof(word));
    memcpy(memory, text[5], sizeof(word));
    finish(dn_fetch_add(peer[0], &key, 0, 8, word, &old, &comp));
    need(0 == memcmp(&old, text[5], sizeof(old)), "an addition finds what was there");
}

static void try_with(dn_auth_mode_t auth)
{
    memset(seen, 0, sizeof(seen));
    packets = 0;
    open_both(auth);
    exchange();
    dn_close(port[1]);
    dn_close(port[0]);
    look();
    for (int way = 0; way < WAYS; way++) {
        const int found = 0 != seen[way];
        if (found != (DN_AUTH_ENCRYPTED != auth)) {
            fprintf(stderr, "ipnuma_wire: with auth %d \"%s\" is %s\n", auth, text[way],
                    found ? "seen on the way" : "not seen by the one who listens");
            exit(1);
        }
    }
    need(20 < packets, "packets are seen");
    printf("auth %d: %u packets are seen\n", auth, packets);
}

int main(void)
{
    if (!dn_test_leave_network()) {
        printf("no network of its own is allowed here\n");
        return DN_TEST_SKIP;
    }
    ended = DN_INPROGRESS;
    wire = listen_to_all();
    for (int auth = DN_AUTH_NONE; auth <= DN_AUTH_ENCRYPTED; auth++) {
        try_with((dn_auth_mode_t) auth);
    }
    close(wire);
    return 0;
}
