/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dn_bench.h"
#include "dn_option.h"

/* The sizes of huge pages and of transfers alike are far below this; it only
   stops a mistyped number from becoming an allocation. */
#define MAX_SIZE      ((size_t) 1 << 40)
#define MAX_BATCHES   1000
#define MAX_SKEW_US   1000000
#define MAX_PRECISION 9
#define MAX_ENTRIES   10000000
/* Floats of such a matrix are still below 2 GiB. */
#define MAX_ORDER      23170
#define MAX_PORT       65535
#define MAX_TIME_LIMIT 86400

/* Letters are the identity of an option: a program accepts a subset. */
typedef struct {
    char letter;
    const char *name;
    const char *argument; /* NULL: takes none */
    const char *help;
} option_row_t;

static const option_row_t option_rows[] = {
    {'m', "message-size", "[MIN:]MAX",
     "message sizes in bytes, doubled from MIN to MAX; K, M and G are understood"},
    {'e', "entries", "[MIN:]MAX", "entries ahead of the message: 0, then tenfold from 1 to MAX"},
    {'n', "order", "[MIN:]MAX",
     "rows and columns of the matrix, or cells along an edge, doubled from MIN to MAX"},
    {'i', "iterations", "N", "timed iterations of every size"},
    {'x', "warmup", "N", "untimed iterations before them"},
    {'b', "batches", "N", "time N batches of the iterations"},
    {'B', "batches", "N", "print the median of N batches of the iterations"},
    {'c', "validation", NULL, "verify every byte received; the exit status tells"},
    {'u', "validation-warmup", "N", "with -c, untimed iterations before every verified one"},
    {'W', "window-size", "N", "messages in flight"},
    {'M', "mem-limit", "BYTES", "use a smaller window where N messages exceed BYTES"},
    {'p', "num-pairs", "N", "pairs of ranks that communicate (default half of the ranks)"},
    {'R', "print-rate", "0|1", "print the message rate (default 1)"},
    {'f', "full", NULL, "accepted for scripts: all columns are always printed"},
    {'D', "ddt", "TYPE", "send a derived datatype: cont, vect:STRIDE:BLOCK (bytes) or indx:FILE"},
    {'q', "queue", "NAME", "where the entries are: posted (default) or unexpected"},
    {'C', "cores", "A,B", "CPUs to run on, as the operating system numbers them"},
    {'d', "device", "SPEC", "device list, such as shm,ofi"},
    {'t', "test", "NAME", "what to measure"},
    {'w', "win-option", "NAME", "window: allocate, create, alloc_mem, shared or dynamic"},
    {'s', "sync-option", "NAME", "epochs: flush, flush_local, lock, lock_all, pscw or fence"},
    {'k', "skew", "US", "each time another rank computes for US before it comes; print the time beyond that"},
    {'T', "thread-multiple", NULL, "start MPI with MPI_THREAD_MULTIPLE, as libraries and mpi4py do"},
    {'P', "precision", "N", "decimals of the results"},
    {'L', "machine", NULL, "print key=value lines only"},
    {'O', "port", "N", "TCP port of the server (default 13003); 0: any that is free, which it prints"},
    {'I', "bind", "ADDRESS", "where the server waits (default 127.0.0.1: this host only)"},
    {'K', "keep", NULL, "go on waiting when a client is done"},
    {'Z', "time-limit", "S",
     "seconds that a server gives a client, from its greeting to its last test, and that a client "
     "waits for the greeting (default 600; with --local none)"},
    {'A', "token", "FILE",
     "file of mode 0600 with the secret that server and client share; else DIMMNET_PERF_TOKEN"},
    {'l', "local", NULL, "start both processes here, on two cores"},
    {'j', "json", NULL, "print one JSON document"},
    {'h', "help", NULL, "show this text"},
};

#define NUM_ROWS ((int) (sizeof(option_rows) / sizeof(option_rows[0])))

/* A program sweeps what one of these names. */
#define SWEEP_LETTERS "men"

static bool accepts(const dn_bench_usage_t *usage, char letter)
{
    return 'h' == letter || NULL != strchr(usage->accepts, letter);
}

/* The letter that users of this program write. */
static char written(const dn_bench_usage_t *usage, char letter)
{
    for (const char *pair = usage->renamed; NULL != pair && '\0' != *pair; pair += 2) {
        if (letter == pair[0]) {
            return pair[1];
        }
    }
    return letter;
}

static void print_tiers(const char *swept, const dn_bench_options_t *options)
{
    char range[64] = "by test";
    if (SIZE_MAX != options->min_size) {
        snprintf(range, sizeof(range), "%zu:%zu", options->min_size, options->max_size);
    }
    printf("\nDefault --%s: %s. Default iterations and warm-up by that:\n", swept, range);
    for (int i = 0; i < options->num_tiers; i++) {
        const dn_bench_tier_t *tier = &options->tiers[i];
        if (i + 1 < options->num_tiers) {
            printf("  up to %8zu  %6d %5d\n", tier->max_size, tier->iterations, tier->warmup);
        } else {
            printf("  above that    %6d %5d\n", tier->iterations, tier->warmup);
        }
    }
}

static void print_help(const dn_bench_usage_t *usage, const dn_bench_options_t *options)
{
    printf("Usage: %s [options]%s%s%s\n%s\n\nOptions:\n", usage->name, NULL == usage->operand ? "" : " [",
           NULL == usage->operand ? "" : usage->operand, NULL == usage->operand ? "" : "]", usage->purpose);
    for (int i = 0; i < NUM_ROWS; i++) {
        const option_row_t *row = &option_rows[i];
        if (accepts(usage, row->letter)) {
            char left[64];
            snprintf(left, sizeof(left), "-%c, --%s %s", written(usage, row->letter), row->name,
                     NULL == row->argument ? "" : row->argument);
            printf("  %-34s %s\n", left, row->help);
        }
    }
    for (int i = 0; i < NUM_ROWS; i++) {
        if (accepts(usage, option_rows[i].letter) && NULL != strchr(SWEEP_LETTERS, option_rows[i].letter)) {
            print_tiers(option_rows[i].name, options);
        }
    }
}

/* A whole number, with K, M or G where @p suffix allows; false when it is anything else. */
static bool parse_number(const char *text, bool suffix, size_t max, size_t *value_p)
{
    char *end;
    if (!isdigit((unsigned char) text[0])) {
        return false;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    int shift = 0;
    if (suffix && '\0' != *end) {
        const char *found = strchr("kKmMgG", *end);
        if (NULL == found) {
            return false;
        }
        shift = 10 * (1 + (int) (found - "kKmMgG") / 2);
        end++;
    }
    if (0 != errno || '\0' != *end || value > (max >> shift)) {
        return false;
    }
    *value_p = (size_t) value << shift;
    return true;
}

static bool parse_int(const char *text, int min, int max, int *value_p)
{
    size_t value;
    if (!parse_number(text, false, (size_t) max, &value) || value < (size_t) min) {
        return false;
    }
    *value_p = (int) value;
    return true;
}

/* MAX, MIN:, :MAX or MIN:MAX. */
static bool parse_range(const char *text, size_t limit, dn_bench_options_t *options)
{
    char left[32];
    size_t min = options->min_size;
    size_t max = options->max_size;
    const char *colon = strchr(text, ':');
    if (NULL == colon) {
        if (!parse_number(text, true, limit, &max)) {
            return false;
        }
        min = min < max ? min : max;
    } else {
        size_t len = (size_t) (colon - text);
        if (len >= sizeof(left) || (0 == len && '\0' == colon[1])) {
            return false;
        }
        memcpy(left, text, len);
        left[len] = '\0';
        if ((0 != len && !parse_number(left, true, limit, &min))
            || ('\0' != colon[1] && !parse_number(colon + 1, true, limit, &max))) {
            return false;
        }
    }
    options->min_size = min;
    options->max_size = max;
    return min <= max;
}

/* What the argument of an option must be, in words; NULL when it is. */
static const char *apply(char letter, const char *arg, dn_bench_options_t *o)
{
    int flag;
    switch (letter) {
    case 'm':
        return parse_range(arg, MAX_SIZE, o) ? NULL : "MAX, MIN: or MIN:MAX in bytes, such as 1:4M";
    case 'e':
        return parse_range(arg, MAX_ENTRIES, o) ? NULL : "MAX, MIN: or MIN:MAX, at most 10000000";
    case 'n':
        return parse_range(arg, MAX_ORDER, o) ? NULL : "MAX, MIN: or MIN:MAX, at most 23170";
    case 'D':
        return dn_bench_ddt_parse(arg, &o->ddt);
    case 'q':
        o->unexpected = (0 == strcmp(arg, "unexpected"));
        return o->unexpected || 0 == strcmp(arg, "posted") ? NULL : "posted or unexpected";
    case 'i':
        return parse_int(arg, 1, INT_MAX, &o->iterations) ? NULL : "a number of at least 1";
    case 'x':
        return parse_int(arg, 0, INT_MAX, &o->warmup) ? NULL : "a number of at least 0";
    case 'b':
    case 'B':
        return parse_int(arg, 1, MAX_BATCHES, &o->batches) ? NULL : "a number of 1 to 1000";
    case 'u':
        return parse_int(arg, 0, INT_MAX, &o->check_warmup) ? NULL : "a number of at least 0";
    case 'W':
        return parse_int(arg, 1, 65536, &o->window) ? NULL : "a number of 1 to 65536";
    case 'M':
        return parse_number(arg, true, MAX_SIZE, &o->mem_limit) ? NULL : "a number of bytes, such as 256M";
    case 'p':
        return parse_int(arg, 1, INT_MAX / 2, &o->pairs) ? NULL : "a number of at least 1";
    case 'k':
        return parse_int(arg, 0, MAX_SKEW_US, &o->skew_us) ? NULL : "a number of 0 to 1000000";
    case 'P':
        return parse_int(arg, 0, MAX_PRECISION, &o->precision) ? NULL : "a number of 0 to 9";
    case 'R':
        if (!parse_int(arg, 0, 1, &flag)) {
            return "0 or 1";
        }
        o->rate = (1 == flag);
        return NULL;
    case 'c':
        o->check = true;
        return NULL;
    case 'L':
        o->machine = true;
        return NULL;
    case 'T':
        o->threads = true;
        return NULL;
    case 'O':
        return parse_int(arg, 0, MAX_PORT, &o->port) ? NULL : "a number of 0 to 65535";
    case 'I':
        o->bind = arg;
        return NULL;
    case 'K':
        o->keep = true;
        return NULL;
    case 'Z':
        return parse_int(arg, 1, MAX_TIME_LIMIT, &o->time_limit) ? NULL : "a number of 1 to 86400";
    case 'A':
        o->token = arg;
        return NULL;
    case 'l':
        o->local = true;
        return NULL;
    case 'j':
        o->json = true;
        return NULL;
    case 'C':
        o->cores = arg;
        return NULL;
    case 'd':
        o->device = arg;
        return NULL;
    case 't':
        o->test = arg;
        return NULL;
    case 'w':
        o->win_kind = arg;
        return NULL;
    case 's':
        o->win_sync = arg;
        return NULL;
    default: /* 'f' */
        return NULL;
    }
}

static const char *option_name(char letter)
{
    for (int i = 0; i < NUM_ROWS; i++) {
        if (letter == option_rows[i].letter) {
            return option_rows[i].name;
        }
    }
    return "";
}

static void complain(const dn_bench_usage_t *usage, const char *what, const char *text, const char *advice)
{
    if (!usage->quiet) {
        fprintf(stderr, "%s: %s%s; %s\n", usage->name, what, text, advice);
    }
}

dn_bench_parsed_t dn_bench_parse(int argc, char **argv, const dn_bench_usage_t *usage,
                                 dn_bench_options_t *options)
{
    struct option longs[NUM_ROWS + 1];
    char shorts[2 * NUM_ROWS + 2];
    char known[UCHAR_MAX + 1] = {0};
    int n = 0;
    int end = 0;
    shorts[end++] = ':'; /* a missing value is told from an unknown option */
    for (int i = 0; i < NUM_ROWS; i++) {
        const option_row_t *row = &option_rows[i];
        if (!accepts(usage, row->letter)) {
            continue;
        }
        longs[n++] = (struct option){row->name, NULL == row->argument ? no_argument : required_argument, NULL,
                                     written(usage, row->letter)};
        shorts[end++] = written(usage, row->letter);
        known[(unsigned char) written(usage, row->letter)] = row->letter;
        if (NULL != row->argument) {
            shorts[end++] = ':';
        }
    }
    shorts[end] = '\0';
    longs[n] = (struct option){0};

    int letter;
    opterr = 0;
    optind = 1;
    while (-1 != (letter = getopt_long(argc, argv, shorts, longs, NULL))) {
        if ('h' == letter) {
            if (!usage->quiet) {
                print_help(usage, options);
            }
            return DN_BENCH_HELP;
        }
        if ('?' == letter || ':' == letter) {
            char room[3];
            complain(usage, ':' == letter ? "a value is missing after " : "there is no option ",
                     dn_option_wrong(argv, shorts, room), "-h lists the options");
            return DN_BENCH_USAGE_ERROR;
        }
        const char *expected = apply(known[letter], optarg, options);
        if (NULL != expected) {
            char what[64];
            snprintf(what, sizeof(what), "--%s takes not ", option_name(known[letter]));
            char advice[96];
            snprintf(advice, sizeof(advice), "give %s", expected);
            complain(usage, what, optarg, advice);
            return DN_BENCH_USAGE_ERROR;
        }
    }
    if (NULL != usage->operand && optind < argc) {
        options->operand = argv[optind++];
    }
    if (optind < argc) {
        complain(usage, "there is nothing to do with ", argv[optind],
                 "all settings are options, -h lists them");
        return DN_BENCH_USAGE_ERROR;
    }
    return DN_BENCH_RUN;
}

void dn_bench_parse_or_exit(int argc, char **argv, const dn_bench_usage_t *usage, dn_bench_options_t *options)
{
    const dn_bench_parsed_t parsed = dn_bench_parse(argc, argv, usage, options);

    if (DN_BENCH_RUN != parsed) {
        exit(DN_BENCH_HELP == parsed ? 0 : 1);
    }
}

static const dn_bench_tier_t *tier_of(const dn_bench_options_t *options, size_t size)
{
    int i = 0;
    while (i + 1 < options->num_tiers && size > options->tiers[i].max_size) {
        i++;
    }
    return &options->tiers[i];
}

int dn_bench_iterations(const dn_bench_options_t *options, size_t size)
{
    return 0 < options->iterations ? options->iterations : tier_of(options, size)->iterations;
}

int dn_bench_warmup(const dn_bench_options_t *options, size_t size)
{
    return 0 <= options->warmup ? options->warmup : tier_of(options, size)->warmup;
}

int dn_bench_window(const dn_bench_options_t *options, size_t size)
{
    size_t window = (size_t) options->window;
    if (0 != options->mem_limit && 0 != size && window > options->mem_limit / size) {
        window = options->mem_limit / size;
    }
    return 0 == window ? 1 : (int) window;
}

uint64_t dn_bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

void *dn_bench_alloc(size_t len)
{
    void *mem = NULL;
    len = 0 == len ? 1 : len;
    if (0 != posix_memalign(&mem, 4096, len)) {
        fprintf(stderr, "no memory for %zu bytes; use smaller sizes or a smaller window\n", len);
        exit(1);
    }
    memset(mem, DN_BENCH_FILLER, len);
    return mem;
}

/* A bijection of 64 bits that spreads close inputs far apart. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 29)) * 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 32);
}

uint64_t dn_bench_seed(size_t size, uint64_t iteration, int sender, int slot)
{
    uint64_t place = ((uint64_t) (uint32_t) sender << 32) | (uint32_t) slot;
    return mix(mix(mix(size + 1) ^ iteration) ^ place);
}

static inline uint64_t pattern_word(uint64_t seed, size_t index)
{
    uint64_t x = (seed + index) * 0x9e3779b97f4a7c15u;
    return x ^ (x >> 32);
}

void dn_bench_fill(void *buf, size_t len, uint64_t seed)
{
    char *out = buf;
    size_t words = len / 8;
    for (size_t i = 0; i < words; i++) {
        uint64_t word = pattern_word(seed, i);
        memcpy(out + 8 * i, &word, 8);
    }
    uint64_t last = pattern_word(seed, words);
    memcpy(out + 8 * words, &last, len % 8);
}

/* First byte that differs in at most one word of the pattern. */
static size_t first_difference(const char *in, size_t n, uint64_t word)
{
    char expected[8];
    size_t i = 0;
    memcpy(expected, &word, 8);
    while (i < n && in[i] == expected[i]) {
        i++;
    }
    return i;
}

size_t dn_bench_check(const void *buf, size_t len, uint64_t seed)
{
    const char *in = buf;
    size_t words = len / 8;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, in + 8 * i, 8);
        if (word != pattern_word(seed, i)) {
            return 8 * i + first_difference(in + 8 * i, 8, pattern_word(seed, i));
        }
    }
    return 8 * words + first_difference(in + 8 * words, len % 8, pattern_word(seed, words));
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;
    return (x > y) - (x < y);
}

double dn_bench_median(double *values, int n)
{
    qsort(values, (size_t) n, sizeof(values[0]), compare_doubles);
    return 1 == n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

void dn_bench_print_header(const dn_bench_options_t *options, const char *const *titles)
{
    char first[DN_BENCH_SIZE_WIDTH + 1];
    snprintf(first, sizeof(first), "# %s", NULL == options->first_column ? "Size" : options->first_column);
    printf("%-*s", DN_BENCH_SIZE_WIDTH, first);
    for (; NULL != *titles; titles++) {
        printf("%*s", DN_BENCH_FIELD_WIDTH, *titles);
    }
    if (options->check) {
        printf("%*s", DN_BENCH_FIELD_WIDTH, "Validation");
    }
    if (DN_BENCH_PLAIN != options->ddt.kind) {
        printf("%*s", DN_BENCH_FIELD_WIDTH, "Transmit Size");
    }
    printf("\n");
    fflush(stdout);
}

void dn_bench_print_row(const dn_bench_options_t *options, size_t size, const double *values, int n,
                        bool failed)
{
    printf("%-*zu", DN_BENCH_SIZE_WIDTH, size);
    for (int i = 0; i < n; i++) {
        printf("%*.*f", DN_BENCH_FIELD_WIDTH, options->precision, values[i]);
    }
    if (options->check) {
        printf("%*s", DN_BENCH_FIELD_WIDTH, failed ? "Fail" : "Pass");
    }
    if (DN_BENCH_PLAIN != options->ddt.kind) {
        printf("%*zu", DN_BENCH_FIELD_WIDTH, dn_bench_layout(&options->ddt, size).bytes);
    }
    printf("\n");
    fflush(stdout);
}
