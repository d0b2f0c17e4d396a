/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A peer on the same host that connects as it should, and then writes what it likes into the memory that the two share:
 * header, slots, rings, stage, counts, lines of every channel, descriptors of help. The victim goes on, touches no memory
 * that it did not offer, and closes. Peer and victim are two ports of this process; the peer's port does nothing by itself.
 */
#include "dn_config.h"

#include "dn_fuzz_port.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "../dn_test.h"
#include "dn_port.h"
#include "shm/dn_shm_int.h"

enum { OFFERED = 64 << 10, STEPS = 64, ROUNDS = 8 };

/** What an input consists of: a byte says which, more follow. */
enum step {
    WRITE_VICTIM, /**< into the victim's mapping */
    WRITE_PEER,   /**< into the peer's own, which the victim has mapped */
    SEND_LINE,    /**< to the victim, whole */
    PROGRESS,     /**< of the victim */
    ANSWER,       /**< the victim sends a message */
    TRANSFER,     /**< the victim pushes or pulls by a key of the peer */
    TAKE,         /**< the victim receives from this peer alone */
    CONNECT,      /**< the victim disconnects and connects again */
    STEP_KINDS
};

static dn_port_t *victim;
static dn_port_t *peer;
static dn_peer_t *to_peer;   /**< of the victim */
static dn_peer_t *to_victim; /**< of the peer */
static dn_key_t key;         /**< of the peer's segment */
static uint8_t offered[OFFERED];
static uint8_t local[OFFERED];
static uint64_t sum; /**< of all bytes that handlers got */

/* ---- the kernel's copies, which move nothing here ---- */

static int inside(const struct iovec *iov, const void *memory, size_t len)
{
    const uintptr_t at = (uintptr_t) iov->iov_base - (uintptr_t) memory;
    return at <= len && iov->iov_len <= len - at;
}

/** The read by which a peer's memory is tried, of 16 bytes that a port has for this. */
static int is_probe(const struct iovec *remote)
{
    const void *const probe[] = {((dn_shm_t *) victim->ifaces)->cma_probe,
                                 ((dn_shm_t *) peer->ifaces)->cma_probe};
    return 16 == remote->iov_len && (probe[0] == remote->iov_base || probe[1] == remote->iov_base);
}

static ssize_t copy(const struct iovec *ours, size_t n, const struct iovec *theirs, int reads)
{
    ssize_t total = 0;

    if (reads && 1 == n && 16 == ours->iov_len && !inside(ours, local, sizeof(local))
        && !inside(ours, offered, sizeof(offered))) {
        if (!is_probe(theirs)) {
            errno = EFAULT;
            return -1;
        }
        memcpy(ours->iov_base, theirs->iov_base, 16);
        return 16;
    }
    for (size_t i = 0; i < n; i++) {
        DN_FUZZ_CHECK(inside(&ours[i], local, sizeof(local)) || inside(&ours[i], offered, sizeof(offered)));
        total += (ssize_t) ours[i].iov_len;
    }
    return total;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *ours, unsigned long n, const struct iovec *theirs,
                         unsigned long m, unsigned long flags)
{
    return copy(ours, n, theirs, 1);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *ours, unsigned long n, const struct iovec *theirs,
                          unsigned long m, unsigned long flags)
{
    return copy(ours, n, theirs, 0);
}

/* ---- two ports ---- */

static void on_message(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    for (size_t i = 0; i < len; i++) {
        sum += ((const volatile uint8_t *) data)[i];
    }
}

static dn_port_t *open_one(uint32_t pid, uint8_t *address, size_t *len)
{
    const dn_job_t job = {.pid = pid, .nlocal = 2};
    dn_config_t config;
    dn_port_t *port;

    dn_fuzz_config(&config);
    config.stage_bytes = 2 * DN_SHM_GRANULE;
    config.backing = DN_BACKING_MEMFD;
    config.help_min = 8192;
    DN_FUZZ_CHECK(DN_OK == dn_open("shm", &job, &config, &port));
    DN_FUZZ_CHECK(DN_OK == dn_address(port, address, len));
    return port;
}

static uint8_t peer_address[DN_ADDRESS_MAX];
static size_t peer_address_len;

static void open_both(void)
{
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_segment_t *segment = NULL;

    dn_log_set(dn_fuzz_say_nothing, NULL);
    victim = open_one(0, address, &len);
    peer_address_len = sizeof(peer_address);
    peer = open_one(1, peer_address, &peer_address_len);
    DN_FUZZ_CHECK(DN_OK == dn_handler_set(victim, DN_CHAN_USER, on_message, NULL));
    DN_FUZZ_CHECK(DN_OK == dn_segment_register(victim, offered, sizeof(offered), &segment));
    DN_FUZZ_CHECK(DN_OK == dn_segment_register(peer, offered, sizeof(offered), &segment));
    dn_segment_key(segment, &key);
    DN_FUZZ_CHECK(DN_OK == dn_connect(peer, address, len, &to_victim));
    DN_FUZZ_CHECK(DN_OK == dn_connect(victim, peer_address, peer_address_len, &to_peer));
    dn_progress(victim);
    dn_progress(peer);
}

/* ---- steps ---- */

/** Change bytes in a mapping: mostly where the other side looks. */
static void write_map(dn_fuzz_input_t *input, const dn_shm_map_t *map)
{
    const uint64_t kind = dn_fuzz_draw(input, 1);
    const uint64_t off = dn_fuzz_draw(input, 2);
    const size_t n = 1 + dn_fuzz_draw(input, 1) % 64;
    uint8_t *const base = (uint8_t *) (uintptr_t) map->header;
    uint8_t *part[] = {base,       (uint8_t *) map->slot,        map->llcm, map->rings,
                       map->stage, map->stage + map->stage_bytes};
    uint8_t *at = part[kind % 6] + (3 == kind % 6 ? kind / 6 % 4 * map->ring_stride : 0) + off;
    uint8_t *const end = base + map->bytes;

    for (size_t i = 0; i < n && 0 != input->len && at + i < end; i++) {
        at[i] ^= (uint8_t) dn_fuzz_draw(input, 1);
    }
}

static void send_line(dn_fuzz_input_t *input)
{
    dn_shm_peer_t *hostile = (dn_shm_peer_t *) to_victim;
    uint8_t bytes[UINT8_MAX] = {0};
    const unsigned channel = (unsigned) dn_fuzz_draw(input, 1);
    const unsigned tag = (unsigned) dn_fuzz_draw(input, 1);
    const size_t n = dn_fuzz_draw(input, 1);

    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t) dn_fuzz_draw(input, 1);
    }
    (void) dn_line_send(&hostile->tx, channel, tag, bytes, n, NULL, 0);
}

static void transfer(dn_fuzz_input_t *input)
{
    dn_key_t used = key;
    const uint64_t kind = dn_fuzz_draw(input, 1);
    const size_t changed = dn_fuzz_draw(input, 1);
    uint8_t *byte = (uint8_t *) &used;

    if (sizeof(used) > changed) {
        byte[changed] ^= (uint8_t) dn_fuzz_draw(input, 1);
    }
    const dn_xfer_t xfer = {.local = local,
                            .key = &used,
                            .roff = dn_fuzz_draw(input, 2),
                            .len = dn_fuzz_draw(input, 2),
                            .flags = (unsigned) (kind >> 1) & DN_XFER_ALONE};
    (void) (0 != kind % 2 ? dn_push(to_peer, &xfer) : dn_pull(to_peer, &xfer));
}

static void reconnect(void)
{
    dn_peer_t *again = NULL;

    dn_disconnect(to_peer);
    to_peer = NULL;
    if (DN_OK == dn_connect(victim, peer_address, peer_address_len, &again)) {
        to_peer = again;
    }
}

static void make_step(dn_fuzz_input_t *input)
{
    const enum step step = (enum step)(dn_fuzz_draw(input, 1) % STEP_KINDS);

    switch (step) {
    case WRITE_VICTIM:
        write_map(input, &((dn_shm_t *) victim->ifaces)->map);
        break;
    case WRITE_PEER:
        write_map(input, &((dn_shm_t *) peer->ifaces)->map);
        break;
    case SEND_LINE:
        send_line(input);
        break;
    case ANSWER:
        if (NULL != to_peer) {
            (void) dn_botf(to_peer, DN_CHAN_USER, 1, NULL, 0, local, dn_fuzz_draw(input, 2) % 4096);
        }
        break;
    case TRANSFER:
        if (NULL != to_peer) {
            transfer(input);
        }
        break;
    case TAKE:
        if (NULL != to_peer) {
            dn_recv(to_peer, (int) (1 + dn_fuzz_draw(input, 1) % 8));
        }
        break;
    case CONNECT:
        if (NULL != to_peer) {
            reconnect();
        }
        break;
    default:
        dn_progress(victim);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    dn_fuzz_input_t input = {data, len};

    open_both();
    for (unsigned i = 0; i < STEPS && 0 != input.len; i++) {
        make_step(&input);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        dn_progress(victim);
    }
    dn_close(victim);
    dn_close(peer);
    return 0;
}

/* ---- seeds ---- */

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    size_t used = 0;

    for (uint64_t steps = 1 + dn_test_below(random, 24); 0 != steps && used < 1500; steps--) {
        const uint64_t step = dn_test_below(random, STEP_KINDS + 3);
        size_t n = 8;
        data[used++] = (uint8_t) (STEP_KINDS <= step ? SEND_LINE : step);
        for (size_t i = 0; i < 64; i++) {
            data[used + i] = 0 == dn_test_below(random, 3) ? (uint8_t) dn_test_random(random) : 0;
        }
        if (STEP_KINDS <= step || SEND_LINE == step) {
            static const uint8_t channel[] = {DN_CHAN_CORE,        DN_CHAN_DEVICE, DN_CHAN_USER,
                                              0x80 | DN_CHAN_USER, 0x80,           15};
            data[used] = channel[dn_test_below(random, sizeof(channel))];
            data[used + 2] = (uint8_t) (0 == dn_test_below(random, 2) ? 8 * dn_test_below(random, 8)
                                                                      : dn_test_below(random, 60));
            if (DN_CHAN_DEVICE == data[used]) {
                /* as long as a request for help */
                data[used + 2] = 40;
            }
            n = 3 + data[used + 2];
        } else if (WRITE_VICTIM == step || WRITE_PEER == step) {
            data[used + 2] &= 15;
            data[used + 3] &= 15;
            n = 4 + 1 + data[used + 3];
        } else if (PROGRESS == step || CONNECT == step) {
            n = 0;
        }
        used += n;
    }
    return used;
}
