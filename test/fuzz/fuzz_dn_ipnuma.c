/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any datagrams to a port that another one is connected with. It drops them, or does what those of the other say, and stays within
 * what it shares: a segment, and its LLCM. Ports take as long to open as thousands of datagrams, so they stay for a number of
 * inputs, or until the connection is given up: to repeat a failure, try those before it, too.
 *
 * The process has a network of its own, of which only the loopback is up: an address in a datagram leads nowhere else.
 */
#include "dn_config.h"

#include "dn_fuzz_network.h"

#include <string.h>

#include "../dn_test.h"
#include "dn_port.h"
#include "ipnuma/dn_ipnuma_int.h"

enum { INPUTS = 64, HEAD = 3, TURNS = 50, SETTLE = 2000000, SHARED = 256, DATAGRAM = 1400 };
/** Bytes of the last part of a piece that comes in two. */
enum { LAST_PART = 200 };

/** The port that is tried, and the one that it takes the datagrams for. */
static dn_port_t *port, *other;
static uint8_t *shared; /**< by the first, of a size that a sanitizer watches */
static dn_segment_t *segment;
static unsigned inputs;
static unsigned ports; /**< that were opened */
static uint64_t sum;   /**< of all bytes that the handler got */

static dn_ipnuma_t *device_of(const dn_port_t *of)
{
    return (dn_ipnuma_t *) of->ifaces;
}

static dn_port_t *open_one(uint32_t pid)
{
    static const dn_auth_mode_t auth[] = {DN_AUTH_HELLO, DN_AUTH_FULL, DN_AUTH_ENCRYPTED};
    dn_job_t job = {.nlocal = 2, .pid = pid};
    dn_config_t config;
    dn_port_t *opened = NULL;

    dn_fuzz_network_config(&job, &config, auth[ports % 3]);
    DN_FUZZ_CHECK(DN_OK == dn_open("ipnuma:lo", &job, &config, &opened));
    DN_FUZZ_CHECK(DN_OK == dn_handler_set(opened, DN_CHAN_USER, dn_fuzz_read, &sum));
    return opened;
}

static void open_ports(void)
{
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_peer_t *peer = NULL;

    dn_log_set(dn_fuzz_say_nothing, NULL);
    port = open_one(0);
    other = open_one(1);
    ports++;
    shared = calloc(1, SHARED);
    DN_FUZZ_CHECK(NULL != shared);
    DN_FUZZ_CHECK(DN_OK == dn_segment_register(port, shared, SHARED, &segment));
    DN_FUZZ_CHECK(DN_OK == dn_address(other, address, &len));
    DN_FUZZ_CHECK(DN_OK == dn_connect(port, address, len, &peer));
    len = sizeof(address);
    DN_FUZZ_CHECK(DN_OK == dn_address(port, address, &len));
    DN_FUZZ_CHECK(DN_OK == dn_connect(other, address, len, &peer));
    sum = 0;
    DN_FUZZ_CHECK(DN_OK == dn_botf(peer, DN_CHAN_USER, 0, NULL, 0, "x", 1));
    for (unsigned turn = 0; turn < SETTLE && 0 == sum; turn++) {
        dn_progress(port);
        dn_progress(other);
    }
    DN_FUZZ_CHECK(0 != sum);
}

/** Nothing more goes out: what the other was made to miss is not waited for. */
static void cut(dn_ipnuma_t *ipnuma)
{
    dn_ipnuma_lock(ipnuma);
    for (dn_ipnuma_pc_t *pc = ipnuma->pcs; NULL != pc; pc = pc->next) {
        dn_ipnuma_kill(pc, DN_PEER_PARTED);
    }
    dn_ipnuma_unlock(ipnuma);
}

static void close_ports(void)
{
    cut(device_of(other));
    cut(device_of(port));
    dn_close(other);
    dn_close(port);
    free(shared);
    port = NULL;
    other = NULL;
    inputs = 0;
}

/** The HELLO of a member of the group: of the other port, but for what is not 0 in the input. */
static void make_hello(dn_ipnuma_t *ipnuma, dn_ipnuma_hello_datagram_t *datagram)
{
    dn_ipnuma_hello_t *hello = &datagram->hello;
    uint8_t *where = (uint8_t *) &hello->where;
    dn_pgid_t pgid;

    hello->magic ^= DN_IPNUMA_MAGIC;
    hello->version ^= DN_WIRE_VERSION;
    hello->to[0] ^= ipnuma->where.nonce[0];
    hello->to[1] ^= ipnuma->where.nonce[1];
    for (size_t i = 0; i < sizeof(hello->where); i++) {
        where[i] ^= ((const uint8_t *) &device_of(other)->where)[i];
    }
    const dn_auth_root_t *root =
        dn_guests_root(&ipnuma->guests, dn_port_group(port), hello->where.exchange, &pgid);
    if (NULL != root && dn_fuzz_is_zero(hello->mac, sizeof(hello->mac))) {
        dn_auth_mac(root, datagram, offsetof(dn_ipnuma_hello_datagram_t, hello.mac), hello->mac);
    }
}

/** The PROOF of the newest applicant. */
static void make_proof(const dn_ipnuma_t *ipnuma, dn_ipnuma_proof_datagram_t *datagram)
{
    const dn_ipnuma_applicant_t *applicant = ipnuma->applicant;

    if (NULL != applicant) {
        datagram->head.token ^= applicant->token;
        if (dn_fuzz_is_zero(datagram->proof.mac, sizeof(datagram->proof.mac))) {
            dn_auth_prove(&applicant->pair, DN_AUTH_OPENER, NULL, 0, datagram->proof.mac);
        }
    }
}

/** A packet of the other: numbers, addresses and codes change from run to run, and zeros of an input stand for those that are right. */
static void make_packet(dn_ipnuma_pc_t *pc, uint8_t *bytes, size_t len)
{
    dn_ipnuma_head_t *head = (dn_ipnuma_head_t *) (void *) bytes;
    dn_ipnuma_ack_t *ack = (dn_ipnuma_ack_t *) (void *) (head + 1);
    dn_ipnuma_link_t *link = &pc->link;
    const size_t ranges = 0 != (head->flags & DN_IPNUMA_CARRIES) ? DN_IPNUMA_GAPS_AHEAD : head->ranges;
    const size_t ahead = sizeof(*head) + sizeof(*ack) + ranges * sizeof(dn_ipnuma_gap_t);

    head->token ^= pc->token;
    head->number += 0 == link->seen.count ? link->first : link->seen.range[0].last + 1;
    if (ahead <= len) {
        ack->largest += 0 == head->ranges ? 0 : link->loss.next - 1;
        ack->applied += link->applied;
    }
    if (0 != (head->flags & DN_IPNUMA_CARRIES)
        && ahead + sizeof(dn_ipnuma_piece_t) + sizeof(uint64_t) <= len) {
        dn_ipnuma_piece_t *piece = (dn_ipnuma_piece_t *) (void *) (bytes + ahead);
        const uint64_t end = DN_IPNUMA_END;
        piece->offset += link->next;
        piece->magic ^= DN_IPNUMA_MAGIC;
        piece->len += 0 != (head->flags & DN_IPNUMA_PART)
                          ? DN_IPNUMA_PART_BYTES + LAST_PART
                          : (uint32_t) (len - ahead - sizeof(*piece) - sizeof(end));
        memcpy(bytes + len - sizeof(end), &end, sizeof(end));
        /* A first TLP on memory goes to the segment, or just beside it. */
        uint8_t *tlp = (uint8_t *) (piece + 1);
        dn_key_t key;
        dn_segment_key(segment, &key);
        const dn_key_way_t *way = dn_key_way(&key, DN_KEY_IPNUMA);
        if (ahead + sizeof(*piece) + DN_TLP_HEADER <= len && NULL != way && 0x74 != tlp[0]
            && 0x34 != tlp[0]) {
            const uint64_t at = __builtin_bswap64(way->word[0] + tlp[14] * 4 - 64);
            memcpy(tlp + 8, &at, sizeof(at));
            tlp[15] &= 0xfc;
        }
    }
    if (0 == head->proof && DN_AUTH_ENCRYPTED == link->auth && sizeof(*head) + DN_AUTH_TAIL <= len) {
        uint8_t *plain = malloc(len);
        DN_FUZZ_CHECK(NULL != plain);
        memcpy(plain, bytes, len);
        dn_auth_encrypt(&link->in, head->number, plain, len, offsetof(dn_ipnuma_head_t, proof), sizeof(*head),
                        bytes);
        free(plain);
    } else if (0 == head->proof) {
        dn_auth_seal(link->auth, &link->in, head->number, bytes, len, offsetof(dn_ipnuma_head_t, proof));
    }
}

static void make_right(dn_ipnuma_t *ipnuma, uint8_t *bytes, size_t len)
{
    dn_ipnuma_pc_t *pc = dn_ipnuma_pc_of(ipnuma, device_of(other)->where.nonce);
    const uint8_t kind = ((const dn_ipnuma_head_t *) (const void *) bytes)->kind;

    if (DN_IPNUMA_PACKET == kind && NULL != pc && pc->link.keyed) {
        make_packet(pc, bytes, len);
    } else if (DN_IPNUMA_HELLO == kind && sizeof(dn_ipnuma_hello_datagram_t) == len) {
        make_hello(ipnuma, (dn_ipnuma_hello_datagram_t *) (void *) bytes);
    } else if (DN_IPNUMA_PROOF == kind && sizeof(dn_ipnuma_proof_datagram_t) == len) {
        make_proof(ipnuma, (dn_ipnuma_proof_datagram_t *) (void *) bytes);
    }
}

static void try_datagram(const uint8_t *data, size_t n, unsigned how)
{
    dn_ipnuma_t *ipnuma = device_of(port);
    uint8_t *bytes = aligned_alloc(8, (n + 7) / 8 * 8);

    DN_FUZZ_CHECK(NULL != bytes);
    memcpy(bytes, data, n);
    dn_ipnuma_lock(ipnuma);
    if (0 == how % 2) {
        make_right(ipnuma, bytes, n);
    }
    dn_ipnuma_arrived(ipnuma, bytes, n, dn_clock_ns());
    dn_ipnuma_unlock(ipnuma);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (!dn_fuzz_is_apart("fuzz_dn_ipnuma")) {
        return 0;
    }
    if (NULL == port) {
        open_ports();
    }
    while (HEAD <= len) {
        const size_t wanted = data[1] | (size_t) data[2] << 8;
        const size_t n = wanted < len - HEAD ? wanted : len - HEAD;
        /* Shorter ones do not get here: dn_ipnuma_socket.c. */
        if (sizeof(dn_ipnuma_head_t) <= n) {
            try_datagram(data + HEAD, n, data[0]);
        }
        if (0 == data[0] / 2 % 4) {
            dn_progress(port);
        }
        data += HEAD + n;
        len -= HEAD + n;
    }
    for (unsigned turn = 0; turn < TURNS && 0 != dn_progress(port); turn++) {
    }
    const dn_ipnuma_pc_t *pc = dn_ipnuma_pc_of(device_of(port), device_of(other)->where.nonce);
    if (INPUTS == ++inputs || NULL == pc || DN_IPNUMA_DEAD == pc->state) {
        close_ports();
    }
    return 0;
}

/* ---- seeds ---- */

/** TLPs of any kind, most of them such as are sent, and some of them short writes. */
static size_t write_tlps(uint64_t *random, uint8_t *to, size_t room)
{
    const int stores = 0 == dn_test_below(random, 4);
    dn_tlp_t before = {.kind = DN_TLP_READ};
    size_t used = 0;

    for (uint64_t n = 1 + dn_test_below(random, 4); 0 != n && used + 256 < room; n--) {
        dn_tlp_t tlp = {.kind = stores ? DN_TLP_WRITE : (enum dn_tlp_kind) dn_test_below(random, 5),
                        .tag = stores ? 0 : (uint8_t) dn_test_below(random, 3),
                        .len = (uint32_t) dn_test_below(random, 100)};
        if (DN_TLP_ATOMIC == tlp.kind) {
            tlp.op = (uint8_t) dn_test_below(random, DN_AMO_OPS);
            tlp.len = (0 == dn_test_below(random, 2) ? 4 : 8) * (DN_AMO_CAS == tlp.op ? 2 : 1);
        } else if (DN_TLP_MESSAGE == tlp.kind) {
            tlp.message = (uint8_t) (0 == dn_test_below(random, 16) ? dn_test_below(random, 7) : DN_TLP_BOTF);
            tlp.channel =
                (uint8_t) (0 == dn_test_below(random, 8) ? dn_test_below(random, 18) : DN_CHAN_USER);
            tlp.total = tlp.len;
        } else if (DN_TLP_WRITE == tlp.kind || DN_TLP_READ == tlp.kind) {
            tlp.address = dn_test_below(random, 1 << 10);
            tlp.len += DN_TLP_WRITE == tlp.kind;
        }
        if (stores) {
            tlp.address &= ~UINT64_C(3);
            tlp.len = 4 << tlp.len % 5;
        }
        const dn_tlp_t *base = dn_tlp_base(&tlp, &before);
        (void) dn_tlp_write(to + used, &tlp, base);
        used += dn_tlp_size(&tlp, base);
        before = tlp;
    }
    if (0 == dn_test_below(random, 8)) {
        to[dn_test_below(random, used)] ^= (uint8_t) (1 << dn_test_below(random, 8));
    }
    return used;
}

static size_t write_datagram(uint64_t *random, uint8_t *to)
{
    static const uint8_t kinds[] = {DN_IPNUMA_PACKET, DN_IPNUMA_PACKET,    DN_IPNUMA_PACKET, DN_IPNUMA_PACKET,
                                    DN_IPNUMA_HELLO,  DN_IPNUMA_CHALLENGE, DN_IPNUMA_PROOF,  5};
    _Alignas(8) uint8_t bytes[DATAGRAM] = {0};
    dn_ipnuma_head_t *head = (dn_ipnuma_head_t *) (void *) bytes;
    size_t n = sizeof(*head);

    head->kind = kinds[dn_test_below(random, sizeof(kinds))];
    if (DN_IPNUMA_PACKET == head->kind) {
        head->flags =
            (uint8_t) (0 == dn_test_below(random, 64) ? dn_test_random(random)
                                                      : DN_IPNUMA_CARRIES | dn_test_below(random, 2) << 1);
        head->ranges =
            (uint8_t) (0 == dn_test_below(random, 4) ? dn_test_below(random, DN_IPNUMA_GAPS + 2) : 0);
        head->number = 0 == dn_test_below(random, 4) ? dn_test_below(random, 4) : 0;
        n += sizeof(dn_ipnuma_ack_t);
        const unsigned slots = 0 != (head->flags & DN_IPNUMA_CARRIES) ? DN_IPNUMA_GAPS_AHEAD : head->ranges;
        for (unsigned i = 0; i < slots; i++) {
            const dn_ipnuma_gap_t gap = {(uint32_t) (0 != i), 1};
            memcpy(bytes + n, &gap, sizeof(gap));
            n += sizeof(gap);
        }
        dn_ipnuma_piece_t piece = {.offset =
                                       0 == dn_test_below(random, 8) ? dn_test_below(random, 200) * 4 : 0};
        memcpy(bytes + n, &piece, sizeof(piece));
        n += sizeof(piece);
        const size_t tlps = write_tlps(random, bytes + n, DATAGRAM / 2);
        n += tlps + sizeof(uint64_t);
        if (0 == dn_test_below(random, 8)) {
            head->flags |= DN_IPNUMA_PART;
            head->part = (uint8_t) dn_test_below(random, 2);
            n += (0 == head->part ? DN_IPNUMA_PART_BYTES : LAST_PART) - tlps;
        }
    } else {
        n += DN_IPNUMA_HELLO == head->kind       ? sizeof(dn_ipnuma_hello_t)
             : DN_IPNUMA_CHALLENGE == head->kind ? sizeof(dn_ipnuma_challenge_t)
             : DN_IPNUMA_PROOF == head->kind     ? sizeof(dn_ipnuma_proof_t)
                                                 : dn_test_below(random, 64);
        head->token = DN_IPNUMA_HELLO == head->kind ? dn_test_below(random, 3) : 0;
        if (0 == dn_test_below(random, 4)) {
            bytes[sizeof(*head) + dn_test_below(random, n - sizeof(*head) + 1)] ^=
                (uint8_t) dn_test_random(random);
        }
    }
    to[0] = (uint8_t) dn_test_below(random, 16);
    to[1] = (uint8_t) n;
    to[2] = (uint8_t) (n >> 8);
    memcpy(to + HEAD, bytes, n);
    return HEAD + n;
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    size_t used = 0;

    for (uint64_t n = 1 + dn_test_below(random, 12); 0 != n && used + HEAD + DATAGRAM <= DN_FUZZ_MAX; n--) {
        used += write_datagram(random, data + used);
    }
    return used;
}
