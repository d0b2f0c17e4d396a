/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dn_bench.h"

static int compare_offsets(const void *a, const void *b)
{
    const dn_bench_block_t *x = a;
    const dn_bench_block_t *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* MPI forbids to receive into the same byte twice. */
static bool overlap(const dn_bench_block_t *list, int n)
{
    dn_bench_block_t *sorted = dn_bench_alloc((size_t) n * sizeof(sorted[0]));
    int end = 0;
    bool found = false;
    memcpy(sorted, list, (size_t) n * sizeof(sorted[0]));
    qsort(sorted, (size_t) n, sizeof(sorted[0]), compare_offsets);
    for (int i = 0; i < n; i++) {
        if (0 != sorted[i].len) {
            found = found || sorted[i].offset < end;
            end = sorted[i].offset + sorted[i].len;
        }
    }
    free(sorted);
    return found;
}

static void append(dn_bench_ddt_t *ddt, dn_bench_block_t block)
{
    /* A power of two is where the room ends. */
    if (0 == (ddt->list_len & (ddt->list_len - 1))) {
        size_t room = 0 == ddt->list_len ? 1 : 2 * (size_t) ddt->list_len;
        ddt->list = realloc(ddt->list, room * sizeof(ddt->list[0]));
        if (NULL == ddt->list) {
            fprintf(stderr, "no memory for a list of %zu blocks; use a shorter one\n", room);
            exit(1);
        }
    }
    ddt->list[ddt->list_len++] = block;
}

/* At most nine digits a number: two of them together still fit into an int. */
static bool read_lines(FILE *file, dn_bench_ddt_t *ddt)
{
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    while (good && -1 != getline(&line, &room, file)) {
        dn_bench_block_t block;
        char rest;
        if ('#' == line[0] || '\0' == line[strspn(line, " \t\r\n")]) {
            continue;
        }
        good = 2 == sscanf(line, "%9d , %9d %c", &block.offset, &block.len, &rest) && 0 <= block.offset
               && 0 <= block.len;
        if (good) {
            append(ddt, block);
        }
    }
    free(line);
    return good && 0 < ddt->list_len;
}

static const char *parse_file(const char *path, dn_bench_ddt_t *ddt)
{
    FILE *file = fopen(path, "r");
    if (NULL == file) {
        return "a file that can be read";
    }
    bool good = read_lines(file, ddt);
    fclose(file);
    if (!good) {
        return "a file of lines 'displacement, block length' in bytes";
    }
    return overlap(ddt->list, ddt->list_len) ? "a file of blocks that do not overlap" : NULL;
}

/* As OSU does, the first four letters are enough, in either case. */
static bool begins(const char *text, const char *name)
{
    return 0 == strncasecmp(text, name, 4);
}

const char *dn_bench_ddt_parse(const char *text, dn_bench_ddt_t *ddt)
{
    const char *colon = strchr(text, ':');
    char rest;
    *ddt = (dn_bench_ddt_t){0};
    if (begins(text, "cont") && NULL == colon) {
        ddt->kind = DN_BENCH_CONT;
        return NULL;
    }
    if (begins(text, "vect") && NULL != colon) {
        ddt->kind = DN_BENCH_VECT;
        bool good = 2 == sscanf(colon, ":%9d:%9d%c", &ddt->stride, &ddt->len, &rest);
        return good && 1 <= ddt->len && ddt->len <= ddt->stride
                   ? NULL
                   : "vect:STRIDE:BLOCK in bytes, the stride at least the block";
    }
    if (begins(text, "indx") && NULL != colon) {
        ddt->kind = DN_BENCH_INDX;
        return parse_file(colon + 1, ddt);
    }
    return "cont, vect:STRIDE:BLOCK or indx:FILE";
}

dn_bench_layout_t dn_bench_layout_grid(size_t outer, size_t outer_stride, size_t inner, size_t stride,
                                       size_t len)
{
    dn_bench_layout_t layout = {.blocks = outer * inner,
                                .inner = inner,
                                .stride = stride,
                                .outer_stride = outer_stride,
                                .len = len,
                                .bytes = outer * inner * len};
    if (0 != layout.blocks) {
        layout.extent = (outer - 1) * outer_stride + (inner - 1) * stride + len;
    }
    return layout;
}

static dn_bench_layout_t list_layout(const dn_bench_block_t *list, int n)
{
    dn_bench_layout_t layout = {.blocks = (size_t) n, .list = list};
    for (int i = 0; i < n; i++) {
        size_t end = (size_t) list[i].offset + (size_t) list[i].len;
        layout.bytes += (size_t) list[i].len;
        layout.extent = layout.extent > end ? layout.extent : end;
    }
    return layout;
}

dn_bench_layout_t dn_bench_layout(const dn_bench_ddt_t *ddt, size_t size)
{
    switch (ddt->kind) {
    case DN_BENCH_VECT:
        return dn_bench_layout_grid(1, 0, size / (size_t) ddt->stride, (size_t) ddt->stride,
                                    (size_t) ddt->len);
    case DN_BENCH_INDX:
        return list_layout(ddt->list, ddt->list_len);
    default:
        return dn_bench_layout_grid(1, 0, 1, 0, size);
    }
}

static char *block_of(const dn_bench_layout_t *layout, void *mem, size_t k, size_t *len_p)
{
    if (NULL != layout->list) {
        *len_p = (size_t) layout->list[k].len;
        return (char *) mem + layout->list[k].offset;
    }
    *len_p = layout->len;
    return (char *) mem + k / layout->inner * layout->outer_stride + k % layout->inner * layout->stride;
}

void dn_bench_layout_fill(const dn_bench_layout_t *layout, void *mem, uint64_t seed)
{
    for (size_t k = 0; k < layout->blocks; k++) {
        size_t len;
        char *block = block_of(layout, mem, k, &len);
        dn_bench_fill(block, len, dn_bench_seed(seed, k, 0, 0));
    }
}

static size_t first_unlike_filler(const char *mem, size_t room)
{
    size_t i = 0;
    if (0 != room && DN_BENCH_FILLER == mem[0] && 0 == memcmp(mem, mem + 1, room - 1)) {
        return room;
    }
    while (i < room && DN_BENCH_FILLER == mem[i]) {
        i++;
    }
    return i;
}

size_t dn_bench_layout_check(const dn_bench_layout_t *layout, void *mem, size_t room, uint64_t seed)
{
    size_t wrong = room;
    for (size_t k = 0; k < layout->blocks; k++) {
        size_t len;
        char *block = block_of(layout, mem, k, &len);
        size_t at = dn_bench_check(block, len, dn_bench_seed(seed, k, 0, 0));
        size_t offset = (size_t) (block - (char *) mem) + at;
        if (at < len && offset < wrong) {
            wrong = offset;
        }
        memset(block, DN_BENCH_FILLER, len);
    }
    /* What is left is what no block holds. */
    size_t outside = first_unlike_filler(mem, room);
    if (outside < room) {
        memset(mem, DN_BENCH_FILLER, room);
    }
    return outside < wrong ? outside : wrong;
}
