/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_BENCH_MPI_H
#define DN_BENCH_MPI_H

/*
 * The frame of the MPI benchmark programs. A program is a table: what one
 * iteration does, and how its time becomes the columns of a line. Ranks,
 * buffers, warm-up, timing, verification and printing are done here once.
 *
 * Ranks 0 .. pairs-1 are the first of their pair, rank r talks to r + pairs.
 *
 * Verification (-c): before each iteration the senders write a pattern of the
 * size, iteration, sender and slot into every message of the window, and after
 * it the receivers compare every byte, and see that the memory between and
 * behind the data is as it was. Each iteration is then timed by itself, between
 * barriers, so that neither is part of the time.
 */

#include <mpi.h>
#ifdef OPEN_MPI
#    include <mpi-ext.h>
#endif

#include "dn_bench.h"

/* DN_BENCH_INIT(Name, ...) makes a request for a persistent collective: MPI 4 has them, Open MPI 5 too, and 4.1 as an extension. */
#if 4 <= MPI_VERSION || (defined(OMPI_MAJOR_VERSION) && 5 <= OMPI_MAJOR_VERSION)
#    define DN_BENCH_HAS_INIT        1
#    define DN_BENCH_INIT(Name, ...) MPI_##Name##_init(__VA_ARGS__)
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#    define DN_BENCH_HAS_INIT        1
#    define DN_BENCH_INIT(Name, ...) MPIX_##Name##_init(__VA_ARGS__)
#else
#    define DN_BENCH_HAS_INIT        0
#    define DN_BENCH_INIT(Name, ...) MPI_ERR_UNSUPPORTED_OPERATION
#endif

/** One end of the measured messages. */
typedef struct {
    dn_bench_layout_t layout; /**< what the other two members say to MPI */
    int count;
    MPI_Datatype type;
} dn_bench_end_t;

typedef struct {
    dn_bench_options_t options;
    int rank;
    int ranks;
    int pairs;
    int late;           /**< rank that comes late next, under -k */
    int peer;           /**< -1: this rank sits out */
    bool first;         /**< starts the exchange, and its time counts */
    bool sends;         /**< sends the measured messages */
    bool receives;      /**< receives them */
    size_t size;        /**< of the messages now measured, or what else is swept */
    int window;         /**< messages in one iteration */
    dn_bench_end_t out; /**< what is sent from send_buf */
    dn_bench_end_t in;  /**< how it is received into recv_buf */
    char *send_buf;
    char *recv_buf;
    size_t stride;         /**< bytes from slot to slot; 0: all messages use one buffer */
    MPI_Request *requests; /**< 2 x window */
} dn_bench_run_t;

/** Seconds one iteration took. */
typedef struct {
    double mean; /**< over the ranks whose time counts */
    double min;
    double max;
    bool failed; /**< a byte was wrong on some rank */
} dn_bench_time_t;

typedef enum {
    DN_BENCH_ONE_WAY,  /**< the first ranks send, the second ones receive */
    DN_BENCH_BOTH_WAYS /**< all send and receive */
} dn_bench_flow_t;

typedef struct {
    dn_bench_usage_t usage;
    const char *title; /**< '# <title>' opens the output */
    const dn_bench_options_t *defaults;
    dn_bench_flow_t flow;
    int max_pairs;               /**< 0: any number */
    bool every_rank;             /**< no pairs: all ranks take part and all times count */
    size_t (*next)(size_t size); /**< NULL: dn_bench_next_size() */
    /** Why the options cannot be had, or NULL. NULL: they can. */
    const char *(*obstacle)(const dn_bench_run_t *run);
    void (*ready)(dn_bench_run_t *run);    /**< once, before the first size: what follows from the options */
    void (*done)(dn_bench_run_t *run);     /**< once, after the last */
    void (*describe)(dn_bench_run_t *run); /**< both ends for run->size; NULL: that many bytes under -D */
    void (*begin)(dn_bench_run_t *run);    /**< before the first iteration of a size; NULL: nothing */
    int (*end)(dn_bench_run_t *run);       /**< after the last; returns wrong messages */
    void (*step)(dn_bench_run_t *run);
    void (*header)(const dn_bench_run_t *run);
    void (*report)(const dn_bench_run_t *run, const dn_bench_time_t *time);
} dn_bench_program_t;

/** The defaults of all programs that send windows of messages. */
extern const dn_bench_options_t dn_bench_window_defaults;

/** Messages of @p bytes contiguous bytes. */
void dn_bench_describe_bytes(dn_bench_run_t *run, size_t bytes);

/** Send one message, receive one. */
void dn_bench_send(const dn_bench_run_t *run);
void dn_bench_recv(const dn_bench_run_t *run);

/** One message there and one back; and the column of half of that time. */
void dn_bench_step_ping_pong(dn_bench_run_t *run);
void dn_bench_header_latency(const dn_bench_run_t *run);
void dn_bench_report_latency(const dn_bench_run_t *run, const dn_bench_time_t *time);

/** Post all sends or all receives of a window; returns the number of requests. */
int dn_bench_isend_window(dn_bench_run_t *run, MPI_Request *requests);
int dn_bench_irecv_window(dn_bench_run_t *run, MPI_Request *requests);

/** A 4-byte message from the second rank to the first: the window has arrived. */
void dn_bench_send_ack(const dn_bench_run_t *run);
void dn_bench_recv_ack(const dn_bench_run_t *run);

/** One window from the first rank to the second, closed by its acknowledgement. */
void dn_bench_step_window(dn_bench_run_t *run);

/** '# Size', 'MB/s'; and the value of that column from the time of a window. */
void dn_bench_header_bandwidth(const dn_bench_run_t *run);
double dn_bench_megabytes(const dn_bench_run_t *run, const dn_bench_time_t *time);

/** The whole program: main() returns what this returns. */
int dn_bench_main(int argc, char **argv, const dn_bench_program_t *program);

#define DN_BENCH_TAG     1
#define DN_BENCH_TAG_ACK 2

#endif
