/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any messages over a network to a port that is connected to itself. It drops them, or takes them as those of the peer
 * that their token names, and stays within its bounds. A port takes as long to open as thousands of messages, so it
 * stays for a number of inputs: to repeat a failure, try those before it, too.
 *
 * The process has a network of its own, of which only the loopback is up: an address in a message leads nowhere else.
 */
#include "dn_config.h"

#include "dn_fuzz_network.h"

#include <string.h>

#include "../dn_test.h"
#include "dn_port.h"
#include "ofi/dn_ofi_int.h"

enum { INPUTS = 64, HEAD = 3, TURNS = 50, SETTLE = 10000 };

/* libfabric keeps some memory of each connection that a port had when it was closed. */
DN_API const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static dn_port_t *port;
static dn_peer_t *self;
static unsigned inputs;
static unsigned ports; /**< that were opened */
static uint64_t sum;   /**< of all bytes that the handler got */

static void open_port(void)
{
    dn_job_t job = {.nlocal = 1};
    dn_config_t config;

    dn_fuzz_network_config(&job, &config, 0 == ports++ % 2 ? DN_AUTH_HELLO : DN_AUTH_FULL);
    dn_log_set(dn_fuzz_say_nothing, NULL);
    DN_FUZZ_CHECK(DN_OK == dn_open("ofi:net@lo", &job, &config, &port));
    DN_FUZZ_CHECK(DN_OK == dn_handler_set(port, DN_CHAN_USER, dn_fuzz_read, &sum));
    self = dn_fuzz_connect_self(port);
    (void) dn_botf(self, DN_CHAN_USER, 0, NULL, 0, "x", 1);
    for (unsigned turn = 0; turn < SETTLE && 0 == sum; turn++) {
        dn_progress(port);
    }
    sum = 0;
}

/** HELLO as it is sent. */
typedef struct hello_message {
    dn_ofi_head_t head;
    dn_ofi_hello_t hello;
} hello_message_t;

/** The HELLO of a member of the group: of this port, but for what is not 0 in the input. */
static void make_hello(dn_ofi_t *ofi, hello_message_t *message)
{
    dn_ofi_hello_t *hello = &message->hello;
    uint8_t *where = (uint8_t *) &hello->where;
    dn_pgid_t pgid;

    hello->magic ^= DN_OFI_MAGIC;
    hello->version ^= DN_WIRE_VERSION;
    hello->to[0] ^= ofi->where.nonce[0];
    hello->to[1] ^= ofi->where.nonce[1];
    for (size_t i = 0; i < sizeof(hello->where); i++) {
        where[i] ^= ((const uint8_t *) &ofi->where)[i];
    }
    const dn_auth_root_t *root =
        dn_guests_root(&ofi->guests, dn_port_group(ofi->iface.port), hello->where.exchange, &pgid);
    if (NULL != root && dn_fuzz_is_zero(hello->mac, sizeof(hello->mac))) {
        dn_auth_mac(root, message, offsetof(hello_message_t, hello.mac), hello->mac);
    }
}

/** What proves a message of an applicant, or of the peer, or a word about our stream to it. */
static const dn_auth_way_t *way_of(dn_ofi_t *ofi, dn_ofi_head_t *head)
{
    const dn_ofi_peer_t *peer = (const dn_ofi_peer_t *) self;
    const int word = DN_OFI_CREDIT <= head->kind && DN_OFI_GONE >= head->kind && DN_OFI_PING != head->kind
                     && DN_OFI_GONE != head->kind;

    if (word) {
        head->token ^= NULL == peer->tx ? 0 : peer->tx->token;
        return NULL == peer->tx || !dn_ofi_stream_keyed(peer->tx) ? NULL
                                                                  : &peer->tx->pair.way[DN_AUTH_ACCEPTOR];
    }
    const dn_ofi_applicant_t *applicant = dn_ofi_find_applicant(ofi, head->token);
    if (NULL != applicant) {
        dn_ofi_proof_t *proof = (dn_ofi_proof_t *) (head + 1);
        head->number += applicant->number;
        if (DN_OFI_PROOF == head->kind && sizeof(*proof) == head->len
            && dn_fuzz_is_zero(proof->mac, sizeof(proof->mac))) {
            dn_auth_prove(&applicant->pair, DN_AUTH_OPENER, NULL, 0, proof->mac);
        }
        return &applicant->pair.way[DN_AUTH_OPENER];
    }
    head->token ^= peer->rx.token;
    head->number += peer->rx.number;
    return &peer->rx.pair.way[DN_AUTH_OPENER];
}

/** Tokens, numbers and proofs change from run to run: zeros of an input stand for those that are right. */
static void make_right(dn_ofi_t *ofi, uint8_t *bytes, size_t len)
{
    dn_ofi_head_t *head = (dn_ofi_head_t *) bytes;

    if (sizeof(*head) > len || head->len != len - sizeof(*head)) {
        return;
    }
    if (DN_OFI_HELLO == head->kind) {
        if (sizeof(hello_message_t) == len) {
            make_hello(ofi, (hello_message_t *) bytes);
        }
        return;
    }
    const dn_auth_way_t *way = way_of(ofi, head);
    if (NULL != way && 0 == head->proof) {
        dn_auth_seal(ofi->auth, way, head->number, bytes, len, offsetof(dn_ofi_head_t, proof));
    }
}

static void try_message(const uint8_t *data, size_t n, unsigned how)
{
    dn_ofi_t *ofi = (dn_ofi_t *) port->ifaces;
    dn_ofi_buffer_t *buffer = dn_ofi_buffer(ofi, n + (0 == n));

    if (NULL == buffer || n > buffer->room) {
        if (NULL != buffer) {
            dn_ofi_buffer_free(ofi, buffer);
        }
        return;
    }
    memcpy(buffer->bytes, data, n);
    if (0 == how % 2) {
        make_right(ofi, buffer->bytes, n);
    }
    dn_ofi_arrived(ofi, buffer, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (!dn_fuzz_is_apart("fuzz_dn_ofi")) {
        return 0;
    }
    if (NULL == port) {
        open_port();
    }
    while (HEAD <= len) {
        const size_t wanted = data[1] | (size_t) data[2] << 8;
        const size_t n = wanted < len - HEAD ? wanted : len - HEAD;
        try_message(data + HEAD, n, data[0]);
        if (0 == data[0] / 2 % 4) {
            dn_progress(port);
        }
        data += HEAD + n;
        len -= HEAD + n;
    }
    for (unsigned turn = 0; turn < TURNS && 0 != dn_progress(port); turn++) {
    }
    if (INPUTS == ++inputs) {
        dn_close(port);
        port = NULL;
        inputs = 0;
    }
    return 0;
}

/* ---- seeds ---- */

static size_t write_message(uint64_t *random, uint8_t *to)
{
    uint8_t kind = (uint8_t) dn_test_below(random, DN_OFI_GONE + 2);
    if ((DN_OFI_LEAVE == kind || DN_OFI_CLOSE == kind || DN_OFI_GONE == kind || DN_OFI_REFUSE == kind)
        && 0 != dn_test_below(random, 64)) {
        /* Behind it nothing more would be taken from the peer. */
        kind = DN_OFI_BOTF + (uint8_t) dn_test_below(random, 2);
    }
    /* Small tokens are those of applicants. */
    dn_ofi_head_t head = {
        .token = DN_OFI_HELLO == kind || 0 == dn_test_below(random, 4) ? dn_test_below(random, 3) : 0,
        .number = 0 == dn_test_below(random, 3) ? dn_test_below(random, 5) : 0,
        .kind = kind,
        .channel = (uint8_t) dn_test_below(random, DN_CHAN_MAX + 1),
        .tag = (uint8_t) dn_test_random(random)};
    size_t body = DN_OFI_BOTF == kind        ? dn_test_below(random, 200)
                  : DN_OFI_AOTF == kind      ? sizeof(dn_ofi_store_t)
                  : DN_OFI_HELLO == kind     ? sizeof(dn_ofi_hello_t)
                  : DN_OFI_CHALLENGE == kind ? sizeof(dn_ofi_challenge_t)
                  : DN_OFI_PONG == kind      ? sizeof(dn_ofi_pong_t)
                  : DN_OFI_PROOF == kind     ? sizeof(dn_ofi_proof_t)
                                             : 0;
    const size_t noise = 0 == dn_test_below(random, 2) ? 4 : 200;
    body += 0 == dn_test_below(random, 16);
    head.len = (uint32_t) (0 == dn_test_below(random, 16) ? dn_test_random(random) : body);
    const size_t n = sizeof(head) + body;

    to[0] = (uint8_t) dn_test_below(random, 16);
    to[1] = (uint8_t) n;
    to[2] = (uint8_t) (n >> 8);
    memcpy(to + HEAD, &head, sizeof(head));
    for (size_t i = 0; i < body; i++) {
        to[HEAD + sizeof(head) + i] =
            0 == dn_test_below(random, noise) ? (uint8_t) dn_test_random(random) : 0;
    }
    return HEAD + n;
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    size_t used = 0;

    for (uint64_t n = 1 + dn_test_below(random, 12); 0 != n && used < DN_FUZZ_MAX - 1024; n--) {
        used += write_message(random, data + used);
    }
    return used;
}
