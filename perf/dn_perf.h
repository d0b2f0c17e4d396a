/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_PERF_H
#define DN_PERF_H

/*
 * The primitives of libdimmnet between two processes, 0 and 1, each with a port. They agree by a
 * stream socket of their own beside libdimmnet, so that they may be forked from one program
 * (dn_perf) or run on two hosts (dimmnet_perf).
 */

#include "dimmnet.h"
#include "dn_atomic.h"
#include "dn_bench.h"

/** LLCM words: what AOTF writes, the status word of PUSH, and the first and number of those that many AOTFs fill. */
#define PERF_WORD_AOTF   0
#define PERF_WORD_STATUS 1
#define PERF_WORD_MANY   8
#define PERF_WORDS_MANY  512
#define PERF_LLCM_BYTES  (8 * (PERF_WORD_MANY + PERF_WORDS_MANY))

/** Sizes of a sweep at most. */
#define PERF_MAX_SIZES 48

/** Errors that the other process may say it has seen of one size. */
#define PERF_MAX_ERRORS 1000000000

/** Batches of --batches at most. */
#define PERF_MAX_BATCHES 1000

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

/** Memory of both processes, for the tests that need many ports: they run on one host only. */
typedef struct {
    perf_address_t address[2][PERF_MAX_PORTS];
    perf_file_t file[2][PERF_MAX_FILES];
    int num_files[2];
    double value[2]; /**< of each process */
} perf_shared_t;

typedef struct perf_test perf_test_t;

/** One process. */
typedef struct {
    const char *program; /**< for error sentences */
    const perf_test_t *test;
    dn_bench_options_t options;
    int index;          /**< 0 prints, starts, and is timed */
    int socket;         /**< stream to the other process */
    dn_group_key_t key; /**< of both */
    perf_shared_t *shared;
    dn_port_t *port;
    dn_peer_t *peer;
    uint64_t *llcm;     /**< words here that the peer writes */
    uint64_t peer_llcm; /**< offset of the peer's */
    dn_segment_t *segment;
    dn_key_t peer_key; /**< of the peer's segment */
    char *local;       /**< private side of transfers */
    size_t size;
    int window;
    size_t stride;      /**< bytes from slot to slot of a window */
    uint64_t iteration; /**< under -c, names the pattern */
    uint64_t sent;      /**< sequence number of AOTF and status words, and of atomics */
    uint64_t received;  /**< messages that have come, or words */
    uint64_t expected;  /**< messages that the steps wait for, so far */
    int slot;           /**< of the next message of this window */
    bool stores;        /**< the peer's AOTF is a store into memory here, which needs no progress */
    bool yields;        /**< the cores are shared */
    unsigned idle;      /**< polls in vain */
    long errors;
} perf_t;

struct perf_test {
    const char *name;
    const char *title;
    const char *columns[3]; /**< NULL ends */
    size_t min_size;
    size_t max_size;
    int window;
    dn_amo_op_t op; /**< of the atomic tests */
    bool both_ways; /**< process 1 sends measured data too */
    bool one_sided; /**< process 1 only makes progress */
    bool words;     /**< moves numbers, in the sizes that words have, and no pattern */
    int apart;      /**< of many AOTFs: words from one to the next, a divisor of PERF_WORDS_MANY; else 0 */
    bool pulls;     /**< data moves from the segment to local memory */
    bool transfers; /**< uses segments: measured on allocated, then on registered memory */
    void (*step)(perf_t *perf);
    /** Values of the columns (or of one, under transfers) from the seconds of a step. */
    int (*values)(const perf_t *perf, double seconds, double *values);
    /** Replaces all of the above: opens ports and prints by itself. */
    void (*run)(perf_t *perf);
};

typedef struct {
    size_t size;
    double values[2];
    long errors; /**< of both processes */
} perf_row_t;

/** What a test found, in process 0. */
typedef struct {
    dn_peer_attr_t attr;
    int num_values;
    int num_rows;
    perf_row_t row[PERF_MAX_SIZES];
} perf_result_t;

/** The tests of dn_perf_steps.c; a NULL name ends. */
extern const perf_test_t perf_tests[];

/** The test of this name, or NULL. */
const perf_test_t *perf_find(const char *name);

/** The options of programs that run these tests. */
void perf_defaults(dn_bench_options_t *options);

/** Take a test, with the options that the user gave and for the rest the test's own. */
void perf_choose(perf_t *perf, const perf_test_t *test, const dn_bench_options_t *given);

/** Run a test of sizes, from open port to close, in both processes. */
void perf_run(perf_t *perf, perf_result_t *result);

/** Print the results as OSU does. @return not 0: verification failed. */
int perf_print(perf_t *perf, const perf_result_t *result);

/** A process group key that nobody guesses; ends the process when there is none. */
void perf_random_key(const char *program, dn_group_key_t *key);

/** A message of the tests has come. */
void perf_on_message(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg);

/** Many AOTFs of a step have come: count the words that do not have the last value. */
void perf_check_many(perf_t *perf);

/** Open a port of the test's process group; @p pid must be its own. */
dn_port_t *perf_open(const perf_t *perf, uint32_t pid, perf_address_t *address);

dn_peer_t *perf_connect(const perf_t *perf, dn_port_t *port, const perf_address_t *address);

/** Wait until both processes are here; progresses @p ports[0..n). */
void perf_barrier(perf_t *perf, dn_port_t **ports, int n);

/** Give the other process @p len bytes and take as many from it; progresses @p ports[0..n). */
void perf_exchange(perf_t *perf, const void *mine, void *theirs, size_t len, dn_port_t **ports, int n);

/** End the process with a sentence. */
_Noreturn void perf_fail(const perf_t *perf, dn_status_t status, const char *what);

/** Many polls were in vain: give the core away if it is shared, and see whether the other process lives. */
void perf_idle(perf_t *perf);

/** Tests without sizes, of dn_perf alone. */
void perf_poll_run(perf_t *perf, bool active);
void perf_memory_run(perf_t *perf);

/** End the process with a sentence unless @p status is DN_OK. */
static inline void perf_must(const perf_t *perf, dn_status_t status, const char *what)
{
    if (DN_OK != status) {
        perf_fail(perf, status, what);
    }
}

/** A poll in vain. */
static inline void perf_vain(perf_t *perf)
{
    if (0 == (++perf->idle & (perf->yields ? 0x3f : 0xffff))) {
        perf_idle(perf);
    }
}

/** One poll of the test's own port. */
static inline void perf_progress(perf_t *perf)
{
    if (0 == dn_progress(perf->port)) {
        perf_vain(perf);
    }
}

/** Send a message, with progress while there is no room. */
static inline void perf_send(perf_t *perf, dn_port_t *port, dn_peer_t *peer, unsigned tag, const void *data,
                             size_t len)
{
    dn_status_t status;
    while (DN_ERR_AGAIN == (status = dn_botf(peer, DN_CHAN_USER, tag, NULL, 0, data, len))) {
        if (0 == dn_progress(port)) {
            perf_vain(perf);
        }
    }
    perf_must(perf, status, "dn_botf");
}

#endif
