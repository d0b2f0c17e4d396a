/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * L: the time in which one core's write to a cache line reaches another core.
 *
 * Two processes on two cores send one 64 B line to and fro in a mapping that
 * both share. The last word of a line is its sequence number, and that word
 * is the flag: nothing else is written or read. No message can be faster, so
 * every latency here is also given in multiples of L.
 *
 * Two forms are measured: only the word is written and read, and the whole line.
 */
#include "dn_config.h"

#include <stdio.h>
#include <string.h>

#include "dn_atomic.h"
#include "dn_bench.h"
#include "dn_bench_fork.h"

#define WORDS 7
/* Lines of the two directions lie a page apart, out of reach of prefetchers. */
#define APART 4096

typedef struct {
    uint64_t word[WORDS];
    uint64_t sequence;
} line_t;

_Static_assert(64 == sizeof(line_t), "one line");

typedef struct {
    _Alignas(APART) line_t there;
    _Alignas(APART) line_t back;
    _Alignas(APART) double word_ns[1000];
    double line_ns[1000];
} shared_t;

typedef struct {
    shared_t *shared;
    dn_bench_options_t options;
} context_t;

/* R1: pairs with the release store in line_out(). */
static inline void wait_for(line_t *line, uint64_t sequence)
{
    while (sequence != dn_load_acquire(&line->sequence)) {
    }
}

/* `ball` carries what was read into what is written next, so that the compiler can drop neither. */
static void line_out(line_t *line, uint64_t sequence, int whole, bool check, uint64_t ball)
{
    if (whole && check) {
        dn_bench_fill(line->word, sizeof(line->word), sequence);
    } else if (whole) {
        for (int i = 0; i < WORDS; i++) {
            line->word[i] = ball;
        }
    }
    dn_store_release(&line->sequence, sequence);
}

/* Returns wrong lines. */
static int line_in(line_t *line, uint64_t sequence, int whole, bool check, uint64_t *ball_p)
{
    wait_for(line, sequence);
    if (whole && check) {
        return sizeof(line->word) != dn_bench_check(line->word, sizeof(line->word), sequence);
    }
    if (whole) {
        uint64_t ball = 0;
        for (int i = 0; i < WORDS; i++) {
            ball += line->word[i];
        }
        *ball_p = ball;
    }
    return 0;
}

/* n times there and back; returns wrong lines. */
static int exchange(shared_t *shared, int index, int n, uint64_t *sequence_p, int whole, bool check)
{
    line_t *out = 0 == index ? &shared->there : &shared->back;
    line_t *in = 0 == index ? &shared->back : &shared->there;
    uint64_t sequence = *sequence_p;
    uint64_t ball = 1;
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        sequence++;
        if (0 == index) {
            line_out(out, sequence, whole, check, ball);
            wrong += line_in(in, sequence, whole, check, &ball);
        } else {
            wrong += line_in(in, sequence, whole, check, &ball);
            line_out(out, sequence, whole, check, ball);
        }
    }
    *sequence_p = sequence;
    return wrong;
}

static int play(int index, void *arg)
{
    context_t *context = arg;
    const dn_bench_options_t *o = &context->options;
    shared_t *shared = context->shared;
    uint64_t sequence = 0;
    int wrong = 0;
    for (int whole = 0; whole <= 1; whole++) {
        wrong += exchange(shared, index, o->warmup, &sequence, whole, o->check);
        for (int b = 0; b < o->batches; b++) {
            uint64_t start = dn_bench_now_ns();
            wrong += exchange(shared, index, o->iterations, &sequence, whole, o->check);
            double ns = (double) (dn_bench_now_ns() - start) / (2.0 * o->iterations);
            if (0 == index) {
                (whole ? shared->line_ns : shared->word_ns)[b] = ns;
            }
        }
    }
    if (0 != wrong) {
        fprintf(stderr, "dn_line: process %d received %d wrong lines\n", index, wrong);
    }
    return 0 != wrong;
}

static void print_results(const context_t *context, const int *cpus)
{
    const dn_bench_options_t *o = &context->options;
    double *forms[2] = {context->shared->word_ns, context->shared->line_ns};
    double median[2];
    for (int i = 0; i < 2; i++) {
        median[i] = dn_bench_median(forms[i], o->batches); /* sorts: [0] is the least */
    }
    if (o->machine) {
        printf("dn_line_ns=%.1f dn_line_min_ns=%.1f dn_line_payload_ns=%.1f "
               "dn_line_payload_min_ns=%.1f cores=%d,%d\n",
               median[0], forms[0][0], median[1], forms[1][0], cpus[0], cpus[1]);
        return;
    }
    printf("# dimmnet Cache Line Latency Test\n");
    printf("# [ cores: %d,%d ] [ batches: %d ]\n", cpus[0], cpus[1], o->batches);
    printf("%-10s%20s%20s%s\n", "# Written", "One-way (ns)", "Min (ns)",
           o->check ? "          Validation" : "");
    for (int i = 0; i < 2; i++) {
        printf("%-10s%20.*f%20.*f%s\n", 0 == i ? "word" : "line", o->precision, median[i], o->precision,
               forms[i][0], o->check ? "                Pass" : "");
    }
}

int main(int argc, char **argv)
{
    static const dn_bench_usage_t usage = {
        .name = "dn_line",
        .purpose = "One-way time of one cache line between two cores (L); defaults: -b 21 of "
                   "-i 5000\nround trips after -x 2000, on the first two cores of the affinity "
                   "mask.",
        .accepts = "ixbcCPL",
    };
    context_t context = {.options = {.iterations = 5000, .warmup = 2000, .batches = 21, .precision = 1}};
    int cpus[2];
    dn_bench_parse_or_exit(argc, argv, &usage, &context.options);
    if (0 != dn_bench_cpus(usage.name, context.options.cores, cpus, 2)) {
        return 1;
    }
    context.shared = dn_bench_shared(sizeof(shared_t));
    int status = dn_bench_fork(2, cpus, 2, play, &context);
    if (0 == status) {
        print_results(&context, cpus);
    }
    return status;
}
