/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * What -c of the benchmarks relies on: the pattern check finds any single wrong
 * byte, data of another iteration, sender, slot or size, and data that is shifted.
 * Under a derived datatype it also finds what was written between the blocks,
 * and data that was not transposed.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_bench.h"

#define MAX_LEN 200

static int failures;

static void expect(size_t found, size_t wanted, const char *what, size_t len)
{
    if (found != wanted) {
        printf("%s, %zu bytes: %zu, %zu expected\n", what, len, found, wanted);
        failures++;
    }
}

static void single_bytes(size_t len)
{
    unsigned char buf[MAX_LEN + 1];
    uint64_t seed = dn_bench_seed(len, 3, 1, 2);
    buf[len] = 0xee;
    dn_bench_fill(buf, len, seed);
    expect(buf[len], 0xee, "byte behind the buffer", len);
    expect(dn_bench_check(buf, len, seed), len, "right data", len);
    for (size_t i = 0; i < len; i++) {
        buf[i] ^= (unsigned char) (1u << (i % 8));
        expect(dn_bench_check(buf, len, seed), i, "one wrong bit", len);
        buf[i] ^= (unsigned char) (1u << (i % 8));
    }
}

/* Data that belongs elsewhere: within 16 bytes a difference must show. */
static void other_data(const void *buf, size_t len, uint64_t seed, const char *what)
{
    if (dn_bench_check(buf, len, seed) >= 16) {
        printf("%s is taken for the right data\n", what);
        failures++;
    }
}

static void foreign_data(void)
{
    unsigned char buf[MAX_LEN];
    uint64_t seed = dn_bench_seed(100, 7, 0, 5);
    dn_bench_fill(buf, sizeof(buf), seed);
    other_data(buf, 100, dn_bench_seed(100, 8, 0, 5), "another iteration");
    other_data(buf, 100, dn_bench_seed(100, 7, 1, 5), "another sender");
    other_data(buf, 100, dn_bench_seed(100, 7, 0, 6), "another slot");
    other_data(buf, 100, dn_bench_seed(101, 7, 0, 5), "another size");
    for (size_t shift = 1; shift <= 64; shift++) {
        other_data(buf + shift, 100, seed, "shifted data");
    }
    memset(buf, 0, sizeof(buf));
    other_data(buf, 100, seed, "zeroes");
}

/* As it is after a right transfer between ends of the same layout. */
static void place(const dn_bench_layout_t *layout, unsigned char *mem, size_t room, uint64_t seed)
{
    memset(mem, DN_BENCH_FILLER, room);
    dn_bench_layout_fill(layout, mem, seed);
}

/* Any wrong byte is found where it is, be it data or not, and is not found a second time. */
static void single_bytes_of(const char *what, dn_bench_layout_t layout, size_t bytes, size_t extent)
{
    unsigned char mem[2 * MAX_LEN];
    size_t room = extent + 16;
    expect(layout.bytes, bytes, what, extent);
    expect(layout.extent, extent, what, extent);
    place(&layout, mem, room, 11);
    expect(dn_bench_layout_check(&layout, mem, room, 11), room, what, extent);
    for (size_t i = 0; i < room; i++) {
        expect(mem[i], DN_BENCH_FILLER, "filler once checked", extent);
        place(&layout, mem, room, 11);
        mem[i] ^= (unsigned char) (1u << (i % 8));
        expect(dn_bench_layout_check(&layout, mem, room, 11), i, what, extent);
    }
}

static dn_bench_ddt_t ddt_of(const char *text)
{
    dn_bench_ddt_t ddt;
    const char *expected = dn_bench_ddt_parse(text, &ddt);
    if (NULL != expected) {
        printf("%s is refused: give %s\n", text, expected);
        failures++;
    }
    return ddt;
}

static void refused(const char *text)
{
    dn_bench_ddt_t ddt;
    if (NULL == dn_bench_ddt_parse(text, &ddt)) {
        printf("%s is taken\n", text);
        failures++;
    }
}

/* The argument that names a file of these lines; it is there until the next call. */
static const char *index_file(const char *lines)
{
    static char argument[] = "indx:bench_pattern.XXXXXX";
    char *path = argument + strlen("indx:");
    if ('X' == path[strlen(path) - 1]) {
        close(mkstemp(path));
    }
    FILE *file = fopen(path, "w");
    if (NULL == file || 0 > fputs(lines, file) || 0 != fclose(file)) {
        perror(path);
        exit(1);
    }
    return argument;
}

static void datatypes(void)
{
    dn_bench_ddt_t cont = ddt_of("cont");
    dn_bench_ddt_t vect = ddt_of("vect:24:2");
    dn_bench_ddt_t dense = ddt_of("VECT:8:8");
    dn_bench_ddt_t indx = ddt_of(index_file("#displacement, length\n\n60, 9\n2,10\n 12 , 3\n30,0\n"));
    single_bytes_of("cont", dn_bench_layout(&cont, 100), 100, 100);
    single_bytes_of("vect", dn_bench_layout(&vect, 100), 8, 74);
    single_bytes_of("vect without gaps", dn_bench_layout(&dense, 100), 96, 96);
    single_bytes_of("vect of no block", dn_bench_layout(&vect, 23), 0, 0);
    single_bytes_of("indx", dn_bench_layout(&indx, 7), 22, 69);
    refused("");
    refused("nothing");
    refused("cont:4");
    refused("vect");
    refused("vect:8");
    refused("vect:8:0");
    refused("vect:4:8");
    refused("vect:8:4:2");
    refused("vect:-8:-9");
    refused("vect:9999999999:1");
    refused("indx");
    refused("indx:./no such file");
    refused(index_file("# nothing\n"));
    refused(index_file("1, 2\n3\n"));
    refused(index_file("1, 2, 3\n"));
    refused(index_file("-1, 2\n"));
    refused(index_file("8, 4\n0, 9\n"));
    remove(strchr(index_file(""), ':') + 1);
}

/* Sent by columns, received by rows: element i of column j is element j of row i. */
static void transposition(void)
{
    enum { ORDER = 6 };
    uint32_t in[ORDER][ORDER];
    uint32_t out[ORDER][ORDER];
    size_t element = sizeof(in[0][0]);
    dn_bench_layout_t by_columns = dn_bench_layout_grid(ORDER, element, ORDER, sizeof(in[0]), element);
    dn_bench_layout_t by_rows = dn_bench_layout_grid(ORDER, sizeof(in[0]), ORDER, element, element);
    dn_bench_layout_fill(&by_columns, in, 5);
    for (int i = 0; i < ORDER; i++) {
        for (int j = 0; j < ORDER; j++) {
            out[j][i] = in[i][j];
        }
    }
    expect(dn_bench_layout_check(&by_rows, out, sizeof(out), 5), sizeof(out), "transposed", sizeof(out));
    memcpy(out, in, sizeof(out));
    expect(dn_bench_layout_check(&by_rows, out, sizeof(out), 5), element, "not transposed", sizeof(out));
}

static void statistics(void)
{
    double odd[] = {5, 1, 3};
    double even[] = {4, 1, 3, 2};
    if (3.0 != dn_bench_median(odd, 3) || 2.5 != dn_bench_median(even, 4)) {
        printf("a median is wrong\n");
        failures++;
    }
}

int main(void)
{
    for (size_t len = 0; len < MAX_LEN; len++) {
        single_bytes(len);
    }
    foreign_data();
    datatypes();
    transposition();
    statistics();
    return 0 == failures ? 0 : 1;
}
