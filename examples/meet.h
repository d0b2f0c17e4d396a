/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file meet.h
 * How the processes of an example find each other: each writes files into a folder that all of them can read.
 *
 * libdimmnet needs such a channel once, for addresses and keys; a launcher or a socket does as well. The
 * script `run` makes the folder, writes the key of the process group into it, and starts the processes.
 *
 * Errors:  each function ends its process with one sentence when something fails.
 * Threads: one thread of a process uses a meet_t.
 */
#ifndef DN_EXAMPLE_MEET_H
#define DN_EXAMPLE_MEET_H

#include <dimmnet/dimmnet.h>
#include <dimmnet/dn_wait.h>

/** Processes of one example, at most. */
#define MEET_MAX 16

/** One process of an example. */
typedef struct meet {
    dn_port_t *port;
    uint32_t rank;             /**< of this process: 0 .. ranks - 1 */
    uint32_t ranks;            /**< processes in all */
    dn_peer_t *peer[MEET_MAX]; /**< by rank, this process included; NULL until meet_begin() returns */
    dn_wait_t wait;            /**< of meet_wait() */
    uint64_t steps;            /**< of meet_wait() */
} meet_t;

/** A completion that keeps the status of one operation. */
typedef struct meet_comp {
    dn_comp_t comp;
    dn_status_t status; /**< DN_INPROGRESS until the operation has ended */
} meet_comp_t;

/** Open a port on shared memory, or on the devices that MEET_DEVICES names in the environment, and connect it to those of all processes. The command
 * line is FOLDER RANK RANKS; the folder becomes the working folder. */
void meet_begin(meet_t *meet, int argc, char **argv);

/** Give the others @p len bytes under the name @p what. A name is used once. */
void meet_tell(const meet_t *meet, const char *what, const void *bytes, size_t len);

/** Wait for the bytes of @p rank under that name, at most @p size. @return their number. */
size_t meet_hear(meet_t *meet, uint32_t rank, const char *what, void *bytes, size_t size);

/** Receive what has come. When nothing has come, wait as the settings of the port say. The caller then looks again. */
void meet_wait(meet_t *meet);

static inline void meet_keep_status(dn_comp_t *comp, dn_status_t status)
{
    ((meet_comp_t *) comp)->status = status;
}

/** A completion for an operation that is about to be started. */
static inline meet_comp_t meet_comp(void)
{
    return (meet_comp_t){{meet_keep_status}, DN_INPROGRESS};
}

/** End this process unless @p status is DN_OK. @p what is the call that gave it. */
void meet_need(dn_status_t status, const char *what);

/** Wait until all processes are here, then disconnect and close the port. */
void meet_end(meet_t *meet);

#endif
