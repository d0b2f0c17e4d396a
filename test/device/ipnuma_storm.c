/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Messages of mixed sizes both ways over ipnuma, whose datagrams are lost (one in ten), doubled (one in twenty), held back and changed
 * (one in a hundred), as a seed says: none is missing, comes twice, or is another. Before that the same over a good wire, to compare
 * how many come a second.
 *
 *   ipnuma_storm [MESSAGES [SEED]]
 *
 * A tag covers each datagram (auth=full), since what changes here has passed the checksum of UDP.
 */
#include "dn_config.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../dn_test.h"
#include "bad_wire.h"
#include "dn_clock.h"

enum { LONGEST = 2048, SECONDS = 1200 };

static int rank;
static uint64_t heard; /**< messages of the other, ever; the next has this number */

static void need(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "ipnuma_storm: wrong: rank %d, message %" PRIu64 ": %s\n", rank, heard, what);
        exit(1);
    }
}

/** Message `number` of a rank: its length follows from both. */
static size_t length_of(int from, uint64_t number)
{
    uint64_t random = number * 2 + (uint64_t) from + 1;

    (void) dn_test_random(&random);
    return sizeof(number) + dn_test_length(&random, LONGEST - sizeof(number));
}

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    uint64_t number;

    (void) src;
    (void) arg;
    need(len >= sizeof(number), "a message is too short");
    memcpy(&number, data, sizeof(number));
    need(number == heard, "a message is missing, or came twice");
    need(tag == number % 256 && len == length_of(!rank, number), "a message has another tag or length");
    need(dn_test_mismatch((const uint8_t *) data + sizeof(number), len - sizeof(number), number)
             == len - sizeof(number),
         "a message is another");
    heard++;
}

static void exchange(dn_port_t *port, dn_peer_t *peer, uint64_t messages)
{
    uint8_t data[LONGEST];
    uint64_t sent = 0;

    while (sent < messages || heard < messages || DN_INPROGRESS == dn_fence(peer)) {
        for (int burst = 0; burst < 64 && sent < messages; burst++) {
            const size_t len = length_of(rank, sent);
            memcpy(data, &sent, sizeof(sent));
            dn_test_fill(data + sizeof(sent), len - sizeof(sent), sent);
            const dn_status_t status =
                dn_botf(peer, DN_CHAN_USER, (unsigned) (sent % 256), NULL, 0, data, len);
            if (DN_ERR_AGAIN == status) {
                break;
            }
            need(DN_OK == status, "a message is sent");
            sent++;
        }
        dn_progress(port);
    }
}

static dn_peer_t *meet(dn_port_t *port, int channel)
{
    uint8_t address[DN_ADDRESS_MAX] = {0};
    size_t len = sizeof(address);
    dn_peer_t *peer = NULL;

    need(DN_OK == dn_address(port, address, &len), "there is an address");
    need(sizeof(address) == write(channel, address, sizeof(address)), "the address is told");
    need(sizeof(address) == recv(channel, address, sizeof(address), MSG_WAITALL), "the address is heard");
    need(DN_OK == dn_connect(port, address, len, &peer), "the other is reached");
    return peer;
}

/** One process of two. @param[in] seed  Of what the wire does; 0: a good one. */
static void run_one(int channel, uint64_t messages, uint64_t seed)
{
    const dn_job_t job = {.key = {"a key of 16 byte"}, .pid = (uint32_t) rank, .size = 2};
    dn_config_t config;
    dn_port_t *port = NULL;

    alarm(SECONDS);
    dn_config_init(&config);
    config.auth = DN_AUTH_FULL;
    need(0 == seed || bad_wire_begin("10,5,3,1", seed + (uint64_t) rank), "the wire is bad");
    const dn_status_t status = dn_open("ipnuma:lo", &job, &config, &port);
    if (DN_ERR_UNSUPPORTED == status) {
        exit(DN_TEST_SKIP);
    }
    need(DN_OK == status && DN_OK == dn_handler_set(port, DN_CHAN_USER, hear, NULL), "a port is opened");
    dn_peer_t *peer = meet(port, channel);
    const uint64_t begin = dn_clock_ns();
    exchange(port, peer, messages);
    const double seconds = (double) (dn_clock_ns() - begin) / 1e9;
    dn_counters_t counters;
    dn_counters(port, &counters);
    need(0 == seed || messages < 1000 || 0 != counters.resent, "what was sent again is counted");
    /* The other may still ask for what was lost of the last words. */
    uint8_t done = 1;
    need(1 == write(channel, &done, 1), "the end is told");
    while (0 >= recv(channel, &done, 1, MSG_DONTWAIT)) {
        dn_progress(port);
    }
    const uint64_t faults = bad_wire_end();
    need(0 == seed || messages < 1000 || 0 != faults, "the wire is bad");
    if (0 == rank) {
        printf("%" PRIu64 " messages each way over a %s wire: %.0f a second, %" PRIu64 " faults, %" PRIu64
               " sent again\n",
               messages, 0 == seed ? "good" : "bad", 2 * (double) messages / seconds, faults,
               counters.resent);
    }
    dn_close(port);
    exit(0);
}

/** Two processes. @return exit status. */
static int run(uint64_t messages, uint64_t seed)
{
    int channel[2], result = 0;
    pid_t pid[2];

    need(0 == socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel), "there is a channel");
    for (rank = 0; rank < 2; rank++) {
        pid[rank] = fork();
        need(0 <= pid[rank], "a process is made");
        if (0 == pid[rank]) {
            close(channel[!rank]);
            run_one(channel[rank], messages, seed);
        }
    }
    close(channel[0]);
    close(channel[1]);
    for (int i = 0; i < 2; i++) {
        int status = 0;
        const pid_t which = wait(&status);
        const int one = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (0 != one && DN_TEST_SKIP != one) {
            /* The other one waits in vain. */
            kill(pid[which == pid[0]], SIGKILL);
        }
        result = 0 == result ? one : result;
    }
    return result;
}

int main(int argc, char **argv)
{
    const uint64_t messages = 1 < argc ? strtoull(argv[1], NULL, 0) : 100000;
    const uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 0) : 1;

    setvbuf(stdout, NULL, _IOLBF, 0);
    const int result = run(messages, 0);
    return 0 != result ? result : run(messages, seed);
}
