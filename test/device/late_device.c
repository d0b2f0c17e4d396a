/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A device that is opened late, while another thread progresses the port: what goes by the device before it goes on, and a
 * process of another group that was let in before is reached. One that cannot be opened is said to be so.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "../dn_test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define NETWORK "ofi:tcp;ofi_rxm@lo"

enum { MESSAGES = 2000, SEGMENT = 4096 };

static void check(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "late_device: %s\n", what);
        exit(1);
    }
}

/** A port with its address, and how many messages it has heard. */
typedef struct node {
    dn_port_t *port;
    uint8_t address[DN_ADDRESS_MAX];
    size_t len;
    int heard;
} node_t;

static int logged;

static void count_log(const char *sentence, void *arg)
{
    (void) sentence;
    (void) arg;
    logged++;
}

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    node_t *node = arg;

    (void) src;
    check(sizeof(uint64_t) == len && 7 == tag, "a message is another than was sent");
    check(0x0123456789abcdefU == *(const uint64_t *) data, "a message has other bytes than were sent");
    dn_fetch_add_seq_cst(&node->heard, 1);
}

static void tell_address(node_t *node)
{
    node->len = sizeof(node->address);
    check(DN_OK == dn_address(node->port, node->address, &node->len), "a port has no address");
}

static void open_node(node_t *node, const char *devices, uint32_t pid, uint8_t key)
{
    dn_job_t job = {.pid = pid, .nlocal = 3, .size = 3, .threads = 1};

    dn_test_fill(job.key.byte, sizeof(job.key.byte), key);
    check(DN_OK == dn_open(devices, &job, NULL, &node->port), "a port does not open");
    check(DN_OK == dn_handler_set(node->port, DN_CHAN_USER, hear, node), "a port has no channel");
    tell_address(node);
}

static void admit(const node_t *node, const node_t *other)
{
    dn_pgid_t pgid;

    check(DN_OK == dn_address_pgid(other->address, other->len, &pgid), "an address has no PGID");
    check(DN_OK == dn_group_admit(node->port, &pgid), "a group is not let in");
}

static dn_peer_t *connect_to(const node_t *node, const node_t *other)
{
    dn_peer_t *peer = NULL;

    check(DN_OK == dn_connect(node->port, other->address, other->len, &peer), "a peer is not reached");
    return peer;
}

static void send_to(const node_t *node, dn_peer_t *peer, const node_t *other, int messages)
{
    const uint64_t word = 0x0123456789abcdefU;
    const int until = dn_load_seq_cst(&other->heard) + messages;

    for (int i = 0; i < messages; i++) {
        dn_status_t status;
        while (DN_ERR_AGAIN == (status = dn_botf(peer, DN_CHAN_USER, 7, &word, sizeof(word), NULL, 0))) {
            dn_progress(node->port);
        }
        check(DN_OK == status, "a message is not sent");
    }
    while (dn_load_seq_cst(&other->heard) < until) {
        dn_progress(node->port);
        dn_progress(other->port);
    }
}

static int done;

/** Progress a port, and ask it what the devices are asked for. */
static void *serve(void *arg)
{
    const node_t *node = arg;

    while (!dn_load_seq_cst(&done)) {
        dn_progress(node->port);
        (void) dn_oversubscribed(node->port);
        (void) dn_bell(node->port);
    }
    return NULL;
}

typedef struct traffic {
    const node_t *from, *to;
    dn_peer_t *peer;
} traffic_t;

static void *talk(void *arg)
{
    const traffic_t *traffic = arg;

    send_to(traffic->from, traffic->peer, traffic->to, MESSAGES);
    return NULL;
}

/** libfabric reads the variable once a process. */
static void what_cannot_be_opened_is_said(void)
{
    const pid_t child = fork();
    int status;

    if (0 == child) {
        node_t node = {.heard = 0};
        setenv("FI_PROVIDER", "nosuch", 1);
        open_node(&node, "shm", 0, 1);
        const size_t len = node.len;
        dn_log_set(count_log, NULL);
        check(DN_ERR_UNSUPPORTED == dn_device_open(node.port, "ofi") && 1 == logged,
              "a network that is not there is opened, or nothing is said of it");
        check(DN_ERR_PARAM == dn_device_open(node.port, "shm") && 2 == logged, "a device is opened twice");
        check(DN_ERR_PARAM == dn_device_open(node.port, "nosuch") && 3 == logged,
              "a device that is not there is opened");
        tell_address(&node);
        check(len == node.len, "the address names what could not be opened");
        dn_close(node.port);
        _exit(0);
    }
    check(child == waitpid(child, &status, 0) && 0 == status, "what cannot be opened is not said");
}

int main(void)
{
    static uint8_t memory[SEGMENT] __attribute__((aligned(64))), memory_of_far[SEGMENT];
    node_t near = {.heard = 0}, beside = {.heard = 0}, far = {.heard = 0};
    dn_segment_t *segment;
    dn_peer_t *peer;
    dn_key_t key;
    pthread_t server, talker;

    what_cannot_be_opened_is_said();
    open_node(&near, "shm", 0, 1);
    open_node(&beside, "shm", 1, 1);
    open_node(&far, NETWORK, 2, 2);
    admit(&near, &far);
    admit(&far, &near);
    check(DN_ERR_UNSUPPORTED == dn_connect(far.port, near.address, near.len, &peer),
          "who has no network is reached");
    check(DN_OK == dn_segment_register(near.port, memory, sizeof(memory), &segment), "there is no segment");
    dn_segment_key(segment, &key);

    traffic_t traffic = {.from = &beside, .to = &near, .peer = connect_to(&beside, &near)};
    check(0 == pthread_create(&server, NULL, serve, &near)
              && 0 == pthread_create(&talker, NULL, talk, &traffic),
          "there are no threads");
    const size_t len = near.len;
    check(DN_OK == dn_device_open(near.port, NETWORK), "the network is not opened");
    tell_address(&near);
    check(len < near.len, "the address does not name the network");
    dn_peer_t *to_near = connect_to(&far, &near), *to_far = connect_to(&near, &far);
    check(0 == pthread_join(talker, NULL), "a thread does not end");
    send_to(&far, to_near, &near, MESSAGES);
    send_to(&near, to_far, &far, MESSAGES);

    /* Words into its LLCM, and bytes into a segment that is older than the network. */
    const uint64_t out = 0x55;
    uint64_t off;
    void *llcm;
    check(DN_OK == dn_llcm_alloc(near.port, sizeof(out), &off, &llcm), "there is no LLCM");
    while (DN_ERR_AGAIN == dn_aotf(to_near, off, out, sizeof(out))) {
        dn_progress(far.port);
    }
    while (out != dn_load_acquire((uint64_t *) llcm)) {
        dn_progress(far.port);
    }
    const dn_xfer_t push = {.local = memory_of_far, .key = &key, .len = SEGMENT};
    dn_test_fill(memory_of_far, SEGMENT, 3);
    dn_status_t status;
    while (DN_ERR_AGAIN == (status = dn_push(to_near, &push))) {
        dn_progress(far.port);
    }
    check(0 <= status, "a PUSH does not start");
    while (DN_INPROGRESS == (status = dn_flush(to_near))) {
    }
    check(DN_OK == status && SEGMENT == dn_test_mismatch(memory, SEGMENT, 3), "a PUSH does not arrive");
    dn_store_seq_cst(&done, 1);
    check(0 == pthread_join(server, NULL), "a thread does not end");
    dn_segment_free(segment);
    dn_close(far.port);
    dn_close(beside.port);
    dn_close(near.port);
    printf("late_device: %d messages by each device\n", MESSAGES);
    return 0;
}
