/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A process that parts from a peer which may still receive first serves the messages that it has announced to that peer: long ones, and
 * short ones that the peer has held back. It does so until the peer has them, or dies.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dn_unit_tag.h"

enum {
    LONG = 200000,
    SHORT = 500,
    CHANNEL = DN_CHAN_USER,
    PATIENCE_S = 60,
    AWAY_NS = 200000000 /**< the receiver looks away for so long: a sender that does not wait has left then */
};

typedef struct job {
    dn_tag_req_t req;
    unsigned times;
} job_t;

static dn_port_t *port;
static dn_tag_t *tag;
static uint8_t sent[LONG], received[LONG];
static const dn_tag_head_t head = {1, 0, 7};

static void on_complete(dn_tag_req_t *req)
{
    ((job_t *) req)->times++;
}

static void on_progress(void *arg)
{
    dn_progress(port);
    dn_tag_progress(tag);
}

/** A loss is seen in how a request ends. */
static void on_lost(dn_tag_peer_t *peer, int matters, void *arg) {}

static int open_engine(uint32_t pid)
{
    const dn_job_t job = {.pid = pid, .nlocal = 2};
    const dn_tag_config_t config = {
        .limit = {.eager_limit = 1000, .unexpected_limit = 1 << 20, .stream = DN_PACE_STREAM_AUTO},
        .progress = on_progress,
        .lost = on_lost,
        .no_memory = dn_unit_tag_no_memory};

    return DN_OK == dn_open(dn_device_name(0), &job, NULL, &port)
           && DN_OK == dn_tag_open(port, CHANNEL, &config, &tag);
}

/** How a process is reached. */
typedef struct address {
    size_t len;
    uint8_t bytes[DN_ADDRESS_MAX];
} address_t;

/** The receiver, a process of its own. It sees that a message is announced, looks away, and receives the message, or dies.
 * @param[in] to_parent    Where its address goes.
 * @param[in] from_parent  Closed by the parent when it has left. */
static void receive(size_t len, int dies, int to_parent, int from_parent)
{
    const dn_tag_want_t want = {.context = head.context, .source = head.source, .tag = head.tag};
    static job_t job;
    address_t own = {.len = sizeof(own.bytes)};
    dn_tag_found_t found;
    char none;

    alarm(3 * PATIENCE_S); /* its parent may have failed */
    if (!open_engine(1) || DN_OK != dn_address(port, own.bytes, &own.len)
        || sizeof(own) != (size_t) write(to_parent, &own, sizeof(own))) {
        _exit(1);
    }
    while (!dn_tag_probe(tag, &want, &found)) {
        on_progress(NULL);
    }
    /* Only a sender that does not wait makes use of this time: the test passes whatever it is. */
    nanosleep(&(struct timespec){.tv_nsec = AWAY_NS}, NULL);
    if (dies) {
        raise(SIGKILL);
    }
    job.req.complete = on_complete;
    dn_tag_memory(&job.req, received, len);
    dn_tag_wants(&job.req, want);
    dn_tag_recv(tag, &job.req, NULL, 0);
    while (0 == job.times) {
        on_progress(NULL);
    }
    const int failed =
        DN_OK != job.req.status || 0 != memcmp(sent, received, len) || 0 != read(from_parent, &none, 1);
    /* The parent has left. A thread sanitizer misses threads that are not joined. */
    dn_tag_close(tag);
    dn_close(port);
    _exit(failed);
}

/** Send one message, and leave its receiver at once. */
static void send_and_leave(size_t len, uint32_t hold, int dies)
{
    static job_t job;
    dn_peer_t *hot = NULL;
    address_t address;
    int up[2], down[2], status;

    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    const pid_t child = fork();
    assert_true(0 <= child);
    if (0 == child) {
        close(down[1]);
        receive(len, dies, up[1], down[0]);
    }
    assert_true(open_engine(0));
    assert_int_equal(read(up[0], &address, sizeof(address)), sizeof(address));
    assert_int_equal(dn_connect(port, address.bytes, address.len, &hot), DN_OK);
    dn_tag_peer_t *peer = dn_tag_join(tag, hot, &port);
    assert_non_null(peer);
    peer->wish.hold = hold;
    job = (job_t){.req.complete = on_complete};
    dn_tag_memory(&job.req, sent, len);
    assert_int_equal(dn_tag_send(&job.req, peer, &head, 0), DN_OK);
    assert_int_equal(job.times, 0);
    dn_tag_leave(peer, 1);
    assert_int_equal(job.times, 1);
    assert_int_equal(job.req.status, dies ? DN_ERR_UNREACH : DN_OK);
    close(down[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(dies ? WIFSIGNALED(status) : WIFEXITED(status) && 0 == WEXITSTATUS(status));
    dn_tag_close(tag);
    dn_close(port);
    close(up[0]);
    close(up[1]);
    close(down[0]);
}

static void long_messages_are_served(void **state)
{
    send_and_leave(LONG, DN_TAG_HOLDS_NONE, 0);
}

static void messages_that_were_held_back_are_served(void **state)
{
    send_and_leave(SHORT, DN_TAG_HOLDS_ALL, 0);
}

static void who_dies_is_not_waited_for(void **state)
{
    send_and_leave(LONG, DN_TAG_HOLDS_NONE, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_messages_are_served),
        cmocka_unit_test(messages_that_were_held_back_are_served),
        cmocka_unit_test(who_dies_is_not_waited_for),
    };

    for (size_t i = 0; i < LONG; i++) {
        sent[i] = (uint8_t) (i * 7 + i / 251);
    }
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
