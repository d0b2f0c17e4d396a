/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_world.h
 * A world of processes for one test: forked before any port is open, each with a port of its own, a
 * board of plain memory that all see, and a deadline.
 *
 * The board carries addresses, keys and barriers, so that a test of the transport does not rest on the
 * transport. Whoever waits progresses its port, as an application would.
 */
#ifndef DN_WORLD_H
#define DN_WORLD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../dn_test.h"

enum {
    DN_WORLD_MAX = 16,   /**< processes */
    DN_WORLD_WORDS = 16, /**< per process, for the test's own use */
    DN_WORLD_KEYS = 4,
    DN_WORLD_SECONDS = 300, /**< deadline of a process; on a loaded machine some take 60 */
    DN_WORLD_SILENT_S = 3,  /**< time limit where a loss is waited for; a stop of a second is none */
    DN_WORLD_CHAN = 8,      /**< DN_CHAN_USER */
    DN_WORLD_SETTINGS = 512 /**< bytes of a variant's settings */
};

/** Largest file or memfd that a process of a world can make. */
#define DN_WORLD_FILE_BYTES (UINT64_C(4) << 30)

/** What a test of the suite runs over, as a .conf file says it. */
typedef struct dn_variant {
    const char *file;
    const char *device;
    const char *settings; /**< NAME=VALUE of dn_config_t, apart by blanks; NULL: the defaults */
} dn_variant_t;

typedef struct dn_board_seat {
    uint8_t address[DN_ADDRESS_MAX];
    size_t address_len;
    dn_key_t key[DN_WORLD_KEYS];
    uint64_t off[DN_WORLD_KEYS]; /**< LLCM offsets */
    uint64_t word[DN_WORLD_WORDS];
    uint32_t line; /**< of the last check passed */
    uint32_t dies; /**< is to be killed by a signal */
    uint32_t os_pid;
} dn_board_seat_t;

typedef struct dn_board {
    uint32_t arrived;
    uint32_t met;
    dn_board_seat_t seat[DN_WORLD_MAX];
} dn_board_t;

typedef struct dn_world {
    const char *test;
    const dn_variant_t *variant;
    int size;
    int rank;
    uint32_t barriers;
    uint64_t random; /**< seeded by the rank; the same in each run */
    uint64_t heard;  /**< messages that dn_world_hear(), or the test's handler, has counted */
    dn_job_t job;
    char settings[DN_WORLD_SETTINGS]; /**< the variant's, whose words config points to */
    dn_config_t config;
    dn_port_t *port; /**< NULL: not open */
    dn_peer_t *peer[DN_WORLD_MAX];
    dn_board_t *board;
    dn_board_seat_t *me; /**< on the board */
} dn_world_t;

typedef void (*dn_world_fn_t)(dn_world_t *world);

/**
 * Run fn in `size` processes. Fails when one of them fails, ends otherwise than it said, passes its
 * deadline, or when a file is left in the job's folder.
 * @return 0 passed, 1 failed: what failed and how to run it again has been printed.
 */
int dn_world_run(const char *test, const dn_variant_t *variant, int size, dn_world_fn_t fn);

/** One of the tests of a program. */
typedef struct dn_world_test {
    const char *name;
    int processes;
    dn_world_fn_t fn;
} dn_world_test_t;

/** Run the test of a list that is called so; NULL: all of them. @return 0 passed, 1 some failed, or there is none. */
int dn_world_run_tests(const dn_world_test_t *test, size_t tests, const dn_variant_t *variant,
                       const char *name);

/** Open this process' port with world->job and ->config, put its address on the board. */
void dn_world_open(dn_world_t *world);
/** The same with a handler for DN_WORLD_CHAN, whose arg is the world. Ends with a barrier. */
void dn_world_listen(dn_world_t *world, dn_handler_fn_t fn);
/** The PGID of this process' job, as its key is now. */
dn_pgid_t dn_world_pgid(const dn_world_t *world);
/** Connect to that of another, which has opened. */
void dn_world_connect_to(dn_world_t *world, int rank);
/** Connect to everybody else's; all have opened. Ends with a barrier. */
void dn_world_connect(dn_world_t *world);
/** Both of the above. */
void dn_world_start(dn_world_t *world);
/** Wait until nothing is in flight, meet the others, close the port. */
void dn_world_stop(dn_world_t *world);
/** Close the port, then put 1 on the own seat of the board. The others may still send. */
void dn_world_close(dn_world_t *world, int word);

/** Progress once; gives the core away when nothing was there. */
void dn_world_progress(dn_world_t *world);
/** Wait for all. Nobody progresses in it any more once somebody has left it. */
void dn_world_barrier(dn_world_t *world);
/** Put a value on the own seat of the board (release). */
void dn_world_post(dn_world_t *world, int word, uint64_t value);
/** A word of another's seat. */
uint64_t dn_world_posted(const dn_world_t *world, int rank, int word);
/** Wait until a word of another's seat is at least value. */
void dn_world_await(dn_world_t *world, int rank, int word, uint64_t value);
/** The same without progress: nothing is received meanwhile. */
void dn_world_sleep(const dn_world_t *world, int rank, int word, uint64_t value);
/** Is the process of a rank dead? Its parent may not have reaped it, which makes no difference; its threads, of a provider
 * or a device, may end after the first of them. */
int dn_world_is_dead(const dn_world_t *world, int rank);
/** End by SIGKILL, as announced to the parent. */
void dn_world_die(dn_world_t *world) __attribute__((noreturn));

/** A completion that counts how often it is signalled, and keeps the last status. */
typedef struct dn_world_comp {
    dn_comp_t comp;
    unsigned signals;
    dn_status_t status; /**< DN_INPROGRESS until it is signalled */
} dn_world_comp_t;

/** A new one; it may be copied until its comp is given to an operation. */
dn_world_comp_t dn_world_comp(void);

/** dn_handler_fn_t: count messages whose tags count, too: 0 to 255, and again. */
void dn_world_hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg);
/** Wait until so many have been counted. */
void dn_world_hear_until(dn_world_t *world, uint64_t count);
/** Peers that this process' port has lost. */
uint64_t dn_world_lost(const dn_world_t *world);
/** Messages that it has dropped. */
uint64_t dn_world_dropped(const dn_world_t *world);

/** Send, as often as it takes. */
void dn_world_send(dn_world_t *world, dn_peer_t *peer, unsigned channel, unsigned tag, const void *data,
                   size_t len);
/** PUSH or PULL to completion. @return its final status, never AGAIN or INPROGRESS. */
dn_status_t dn_world_push(dn_world_t *world, dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_world_pull(dn_world_t *world, dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_world_atomic(dn_world_t *world, dn_peer_t *peer, const dn_amo_t *amo);
void dn_world_aotf(dn_world_t *world, dn_peer_t *peer, uint64_t off, uint64_t value, size_t size);
/** Fence, as often as it takes. */
void dn_world_fence(dn_world_t *world, dn_peer_t *peer);
void dn_world_flush(dn_world_t *world, dn_peer_t *peer);

/** The process the check is made in: set by dn_world_run(). */
extern dn_world_t *dn_world_here;

/** Fail this process unless ok. */
void dn_check_at(int ok, const char *text, const char *file, int line);
#define dn_check(ok) dn_check_at(!!(ok), #ok, __FILE__, __LINE__)
/** Fail unless the first is the second; both are shown. */
void dn_check_equal_at(uint64_t got, uint64_t wanted, const char *text, const char *file, int line);
#define dn_check_equal(got, wanted) \
    dn_check_equal_at((uint64_t) (got), (uint64_t) (wanted), #got " == " #wanted, __FILE__, __LINE__)
/** Fail unless the buffer holds the pattern of the key. */
void dn_check_bytes_at(const void *buffer, size_t len, uint64_t key, const char *file, int line);
#define dn_check_bytes(buffer, len, key) dn_check_bytes_at(buffer, len, key, __FILE__, __LINE__)

#endif
