/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_PERF_H
#define DN_PERF_H

/*
 * What the tests of dn_perf share: two processes, 0 and 1, each with a port, and
 * a mapping of their own beside libdimmnet by which they agree.
 */

#include <stdatomic.h>

#include "dimmnet.h"
#include "dn_bench.h"

/** Ports that one process of the poll and memory tests opens at most. */
#define PERF_MAX_PORTS 64

typedef struct {
    unsigned char bytes[DN_ADDRESS_MAX];
    size_t len;
} perf_address_t;

/** Files in memory that one process is seen to hold at most. */
#define PERF_MAX_FILES 256

typedef struct {
    uint64_t device;
    uint64_t inode;
    double bytes;
} perf_file_t;

/** Visible to both processes. */
typedef struct {
    _Alignas(64) atomic_uint arrived; /**< at barriers, ever */
    _Alignas(64) atomic_uint done;    /**< one-sided steps that process 0 has finished, ever */
    dn_pgid_t pgid;
    perf_address_t address[2][PERF_MAX_PORTS];
    uint64_t llcm_off[2];
    dn_key_t key[2];
    perf_file_t file[2][PERF_MAX_FILES];
    int num_files[2];
    double value[2]; /**< of each process, for the one that prints */
} perf_shared_t;

typedef struct perf_test perf_test_t;

/** One process. */
typedef struct {
    const perf_test_t *test;
    dn_bench_options_t options;
    perf_shared_t *shared;
    int index; /**< 0 prints, starts, and is timed */
    dn_port_t *port;
    dn_peer_t *peer;
    _Atomic uint64_t *llcm; /**< two words here that the peer writes */
    dn_segment_t *segment;
    char *local; /**< private side of transfers */
    size_t size;
    int window;
    size_t stride;      /**< bytes from slot to slot of a window */
    uint64_t iteration; /**< under -c, names the pattern */
    uint64_t sent;      /**< sequence number of AOTF and status words */
    uint64_t received;  /**< messages, ever */
    int slot;           /**< of the next message of this window */
    unsigned steps;     /**< one-sided steps done */
    long errors;
} perf_t;

struct perf_test {
    const char *name;
    const char *title;
    const char *columns[3]; /**< NULL ends */
    size_t min_size;
    size_t max_size;
    int window;
    bool both_ways; /**< process 1 sends measured data too */
    bool pulls;     /**< data moves from the segment to local memory */
    bool transfers; /**< uses segments: measured on mapped, then on registered memory */
    void (*step)(perf_t *perf);
    /** Values of the columns (or of one, under transfers) from the seconds of a step. */
    int (*values)(const perf_t *perf, double seconds, double *values);
    /** Replaces all of the above: opens ports and prints by itself. */
    void (*run)(perf_t *perf);
};

/** End the process with a sentence unless @p status is DN_OK. */
void perf_must(const perf_t *perf, dn_status_t status, const char *what);

/** Open a port of the test's process group; @p pid must be its own. */
dn_port_t *perf_open(const perf_t *perf, uint32_t pid, perf_address_t *address);

dn_peer_t *perf_connect(const perf_t *perf, dn_port_t *port, const perf_address_t *address);

/** Send a message, with progress while there is no room. */
void perf_send(const perf_t *perf, dn_port_t *port, dn_peer_t *peer, unsigned tag, const void *data,
               size_t len);

/** Wait until both processes are here; progresses @p ports[0..n). */
void perf_barrier(perf_t *perf, dn_port_t **ports, int n);

void perf_poll_run(perf_t *perf, bool active);
void perf_memory_run(perf_t *perf);

#endif
