/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file botf.c
 * BOTF: messages. Each process says hello to each other one, in a window that it fills in place, and hears one answer from each,
 * which is sent from a buffer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meet.h"

enum { HELLO, ANSWER };

static uint32_t answers; /* that have come */

/** Receives each message, from inside of dn_progress(). The bytes are lent until it returns. */
static void hear(dn_peer_t *from, unsigned tag, const void *data, size_t len, void *arg)
{
    const meet_t *meet = arg;
    dn_peer_attr_t attr;
    dn_status_t status;

    dn_peer_attr(from, &attr);
    if (ANSWER == tag) {
        printf("rank %u: %.*s\n", (unsigned) meet->rank, (int) len, (const char *) data);
        answers++;
        return;
    }
    char text[100];
    const int text_len = snprintf(text, sizeof(text), "rank %u has heard \"%.*s\" from rank %u",
                                  (unsigned) meet->rank, (int) len, (const char *) data, (unsigned) attr.pid);
    /* A peer that this process has not connected to yet is answered all the same. A head and a body leave as one message. */
    status = dn_botf(from, DN_CHAN_USER, ANSWER, NULL, 0, text, (size_t) text_len);
    if (DN_OK != status) {
        fprintf(stderr, "no room for an answer: %s\n", dn_strerror(status));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static const char hello[] = "hello";
    meet_t meet;

    meet_begin(&meet, argc, argv);
    meet_need(dn_handler_set(meet.port, DN_CHAN_USER, hear, &meet), "dn_handler_set");
    for (uint32_t r = 0; r < meet.ranks; r++) {
        dn_window_t window;
        dn_status_t status;
        /* DN_ERR_AGAIN: the peer has not taken what was sent before, so there is no room. */
        while (DN_ERR_AGAIN == (status = dn_botf_reserve(meet.peer[r], sizeof(hello) - 1, &window))) {
            meet_wait(&meet);
        }
        meet_need(status, "dn_botf_reserve");
        memcpy(window.data, hello, sizeof(hello) - 1);
        dn_botf_kick(meet.peer[r], &window, DN_CHAN_USER, HELLO, sizeof(hello) - 1);
    }
    while (answers < meet.ranks) {
        meet_wait(&meet);
    }
    meet_end(&meet);
    return 0;
}
