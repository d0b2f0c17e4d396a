/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_BENCH_H
#define DN_BENCH_H

/*
 * What every benchmark program here shares, with or without MPI: options,
 * iteration counts, payload patterns, the clock, statistics and columns.
 *
 * The option letters and the shape of the output follow the OSU
 * micro-benchmarks, so that scripts written for those read these: comment
 * lines start with '#', the first column is the size in bytes (10 characters,
 * left aligned), every further column is 20 characters, right aligned. Under -D
 * the size is that of the memory, and the last column that of the data.
 *
 * What OSU has no program for sweeps something else than a size, which then
 * stands in the first column.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dn_bench_layout.h"

#define DN_BENCH_SIZE_WIDTH  10
#define DN_BENCH_FIELD_WIDTH 20
#define DN_BENCH_LINE        64

/** Iterations for all sizes up to @c max_size bytes. */
typedef struct {
    size_t max_size;
    int iterations;
    int warmup;
} dn_bench_tier_t;

/**
 * The values of all options. A program fills in its defaults, then
 * dn_bench_parse() overwrites what the command line names.
 */
typedef struct {
    size_t min_size;
    size_t max_size;
    const dn_bench_tier_t *tiers; /**< the last one takes every larger size */
    int num_tiers;
    int iterations; /**< 0: by size, from the tiers */
    int warmup;     /**< -1: by size, from the tiers */
    int batches;    /**< the time printed is the median of this many batches */
    int window;     /**< messages in flight */
    int pairs;      /**< 0: half of the ranks */
    int precision;  /**< decimals */
    int skew_us;    /**< for which one rank after the other comes late to an iteration */
    int check_warmup;
    size_t mem_limit; /**< bytes of one window; 0: no limit */
    dn_bench_ddt_t ddt;
    bool check;
    bool rate;
    bool threads; /**< MPI is started with MPI_THREAD_MULTIPLE */
    bool machine;
    bool unexpected;          /**< the queue: of unexpected messages, else of posted receives */
    const char *first_column; /**< its title; NULL: Size */
    const char *cores;
    const char *device;
    const char *test;
    const char *win_kind; /**< how the window is made */
    const char *win_sync; /**< what opens and closes its epochs */
    const char *bind;     /**< address to wait at */
    const char *operand;  /**< what stands beside the options; NULL: nothing */
    const char *token;    /**< file of the secret that server and client share; NULL: none is named */
    int port;             /**< of TCP */
    int time_limit;       /**< seconds that a server gives a client; 0: not said */
    bool json;
    bool local;
    bool keep;
} dn_bench_options_t;

/** What a program says of itself to the option parser. */
typedef struct {
    const char *name;
    const char *purpose; /**< one sentence for -h */
    const char *accepts; /**< letters of the options it takes, see dn_bench.c */
    bool quiet;          /**< parse, but leave all text to another rank */
    const char *renamed; /**< pairs of letters: the one in dn_bench.c, the one that users write; NULL: none */
    const char *operand; /**< what may stand beside the options; NULL: nothing */
} dn_bench_usage_t;

typedef enum { DN_BENCH_RUN, DN_BENCH_HELP, DN_BENCH_USAGE_ERROR } dn_bench_parsed_t;

/**
 * Read the command line into @p options.
 *
 * @retval DN_BENCH_RUN          go on.
 * @retval DN_BENCH_HELP         help is printed; exit with 0.
 * @retval DN_BENCH_USAGE_ERROR  one sentence is on stderr; exit with 1.
 */
dn_bench_parsed_t dn_bench_parse(int argc, char **argv, const dn_bench_usage_t *usage,
                                 dn_bench_options_t *options);

/** The same for a program that has nothing to undo: ends it unless it is to run. */
void dn_bench_parse_or_exit(int argc, char **argv, const dn_bench_usage_t *usage,
                            dn_bench_options_t *options);

/** Iterations of @p size: those of -i, else those of the tier. */
int dn_bench_iterations(const dn_bench_options_t *options, size_t size);

/** Untimed iterations before them: those of -x, else those of the tier. */
int dn_bench_warmup(const dn_bench_options_t *options, size_t size);

/** Messages of @p size that one window holds under -W and -M, at least 1. */
int dn_bench_window(const dn_bench_options_t *options, size_t size);

/** The size after @p size in a sweep: doubled; 0 is followed by 1. */
static inline size_t dn_bench_next_size(size_t size)
{
    return 0 == size ? 1 : 2 * size;
}

/** Monotonic time in ns. */
uint64_t dn_bench_now_ns(void);

/** Page-aligned memory, every byte DN_BENCH_FILLER; ends the program with a sentence when there is none. */
void *dn_bench_alloc(size_t len);

/** A seed that differs for every size, iteration, sender and slot of a window. */
uint64_t dn_bench_seed(size_t size, uint64_t iteration, int sender, int slot);

/** Write the @p len bytes that belong to @p seed. */
void dn_bench_fill(void *buf, size_t len, uint64_t seed);

/** Compare with what dn_bench_fill() writes; offset of the first wrong byte, or @p len. */
size_t dn_bench_check(const void *buf, size_t len, uint64_t seed);

/** Median of @p n values, n >= 1; sorts them. */
double dn_bench_median(double *values, int n);

/** Print a header line: '# Size', or what stands for it, and the titles of the columns, NULL ends. */
void dn_bench_print_header(const dn_bench_options_t *options, const char *const *titles);

/**
 * Print a line of results: size, @p n values, Pass or Fail under -c, and the
 * bytes of data under -D. Flushed, so that a run cut short shows what it had.
 */
void dn_bench_print_row(const dn_bench_options_t *options, size_t size, const double *values, int n,
                        bool failed);

#endif
