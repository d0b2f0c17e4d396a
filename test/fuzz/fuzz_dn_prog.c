/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Scatter/gather programs of anything: bytes as a hostile peer might send them, encodings with a head that
 * is right for their ops, and ops for dn_prog_create(). Whether each is taken is held against a judge that knows
 * the definition only; what is taken must cover exactly what it declares, and move bytes as defined, in memory
 * that ends where its bounds end.
 */
#include "dn_config.h"

#include "dn_fuzz.h"

#include <string.h>

#include "../unit/dn_prog_naive.h"
#include "dn_prog_int.h"

enum {
    OPS = 24,
    PLACES = 48,
    STREAM = 600, /**< bytes of a program that are looked at one by one */
    MEMORY = 1 << 12,
    LONG_STREAM = 6000, /**< of one in LONG: more than is moved by way of a buffer at once */
    LONG_MEMORY = 1 << 16,
    LONG = 64,
    PATTERN = 256,
    WIRE = 40 * (OPS + 1) + 8 * PLACES
};

_Static_assert((size_t) DN_FUZZ_MAX > (size_t) WIRE, "seeds fit");

/* ---- input ---- */

typedef struct input {
    const uint8_t *data;
    size_t len;
} input_t;

/** A byte of the input; behind its end there are zeros. */
static inline uint64_t draw_byte(input_t *input)
{
    if (0 == input->len) {
        return 0;
    }
    input->len--;
    return *input->data++;
}

static uint64_t draw(input_t *input, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++) {
        value |= draw_byte(input) << 8 * i;
    }
    return value;
}

/** How many bytes to move next, below `most` and often few; all of them when the input has ended. */
static uint64_t draw_part(input_t *input, uint64_t most)
{
    if (0 == input->len) {
        return UINT64_MAX;
    }
    const uint64_t factor = draw_byte(input);
    return 1 + factor * draw_byte(input) % most;
}

/** A number: mostly small, else near an edge, or any. */
static int64_t draw_number(input_t *input)
{
    static const uint64_t edge[] = {
        0, 1, UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_C(1) << 62, UINT64_C(1) << 63};
    const uint64_t kind = draw_byte(input);

    if (160 > kind) {
        return (int64_t) (kind % 32);
    }
    if (208 > kind) {
        return (int8_t) draw_byte(input) * (1 + (int64_t) (kind % 4) * 3);
    }
    if (240 > kind) {
        return (int64_t) (edge[kind % 6] + (uint64_t) (int8_t) (draw_byte(input) % 5) - 2);
    }
    return (int64_t) draw(input, 8);
}

/** Ops in a row; what is inside of a loop may be wrong. @return their number. */
static size_t draw_ops(input_t *input, dn_prog_op_t *ops)
{
    const size_t n = draw_byte(input) % (OPS + 1);

    for (size_t i = 0; i < n; i++) {
        const uint64_t kind = draw_byte(input);
        dn_prog_op_t *op = &ops[i];
        op->kind = 250 < kind ? (uint32_t) kind % 8 : 0 == kind % 3 ? DN_PROG_LOOP : DN_PROG_RUN;
        op->inside = 0;
        if (DN_PROG_LOOP == op->kind || 250 < kind) {
            op->inside = (uint32_t) (0 == n - i - 1 ? kind % 2 : (kind / 3) % (n - i + (240 < kind)));
        }
        op->at = draw_number(input);
        op->len = (uint64_t) draw_number(input);
        op->count = (uint64_t) draw_number(input);
        op->stride = draw_number(input);
    }
    return n;
}

/* ---- judge ---- */

typedef __int128 wide_t;

/** What some ops cover, at the place where they are. */
typedef struct cover {
    wide_t size; /**< at most 2^64: more is as wrong */
    wide_t low;
    wide_t high;
} cover_t;

typedef struct judge {
    int wrong;        /**< malformed, or something leaves 64 bits */
    int deep;         /**< more loops around each other than may be given */
    unsigned deepest; /**< loops around each other that have turns and bytes */
} judge_t;

static int is_outside(const cover_t *cover)
{
    return INT64_MIN > cover->low || INT64_MAX < cover->high || 0 != cover->size >> 64;
}

static void repeat(cover_t *cover, uint64_t count, int64_t stride, judge_t *judge)
{
    const unsigned __int128 size = (unsigned __int128) cover->size * count;
    const wide_t reach = (wide_t) (count - 1) * stride;

    if (is_outside(cover)) {
        judge->wrong = 1;
        return;
    }
    cover->size = 0 == size >> 64 ? (wide_t) size : (wide_t) 1 << 64;
    cover->low += 0 > reach ? reach : 0;
    cover->high += 0 > reach ? 0 : reach;
    judge->wrong |= is_outside(cover);
}

static cover_t judge_ops(judge_t *judge, const dn_prog_op_t *ops, size_t n, wide_t origin, unsigned nest)
{
    cover_t all = {0, 0, 0};

    for (size_t i = 0; i < n; i += 1 + ops[i].inside) {
        const dn_prog_op_t *op = &ops[i];
        const wide_t at = origin + op->at;
        cover_t part = {op->len, at, at + op->len};
        if ((DN_PROG_RUN != op->kind && DN_PROG_LOOP != op->kind) || op->inside >= n - i
            || (DN_PROG_RUN == op->kind && 0 != op->inside)) {
            judge->wrong = 1;
            return all;
        }
        if (DN_PROG_LOOP == op->kind) {
            if (DN_PROG_NEST_MAX == nest) {
                judge->deep = 1;
                return all;
            }
            if (0 != op->count) {
                part = judge_ops(judge, op + 1, op->inside, at, nest + 1);
            }
        }
        if (judge->wrong || judge->deep) {
            return all;
        }
        if (0 == op->count || 0 == part.size) {
            continue;
        }
        judge->deepest = nest > judge->deepest ? nest : judge->deepest;
        repeat(&part, op->count, op->stride, judge);
        if (judge->wrong) {
            return all;
        }
        all.low = 0 == all.size || part.low < all.low ? part.low : all.low;
        all.high = 0 == all.size || part.high > all.high ? part.high : all.high;
        all.size += part.size;
        judge->wrong |= is_outside(&all);
    }
    return all;
}

/* ---- what is taken ---- */

/** A program, the ops that it means, and what the judge says of them. */
typedef struct subject {
    const dn_prog_t *prog;
    const dn_prog_op_t *op;
    size_t ops;
    dn_prog_use_t use;
    cover_t cover; /**< of the use */
    int64_t place[LONG_STREAM];
    dn_naive_t naive; /**< of the use; its first bytes, as many as are looked at */
    size_t room;      /**< bytes between its bounds that may be had */
    uint8_t *memory;
    uint64_t base;
} subject_t;

static size_t known(const subject_t *subject)
{
    return subject->naive.n < subject->naive.room ? subject->naive.n : subject->naive.room;
}

/** Judge a use, and flatten it up to a limit. @return 0 when it is not to be started. */
static int open_use(subject_t *subject, uint64_t count, int64_t extent, int is_long)
{
    judge_t judge = {0};
    dn_prog_span_t span;

    subject->use = (dn_prog_use_t){subject->prog, count, extent};
    subject->cover = judge_ops(&judge, subject->op, subject->ops, 0, 0);
    if (0 == count || 0 == subject->cover.size) {
        subject->cover = (cover_t){0, 0, 0};
    } else {
        repeat(&subject->cover, count, extent, &judge);
    }
    DN_FUZZ_CHECK((DN_OK == dn_prog_span(&subject->use, &span)) == !judge.wrong);
    if (judge.wrong) {
        return 0;
    }
    DN_FUZZ_CHECK(span.size == (uint64_t) subject->cover.size);
    DN_FUZZ_CHECK(span.low == (int64_t) subject->cover.low && span.high == (int64_t) subject->cover.high);
    subject->naive = (dn_naive_t){subject->place, 0, is_long ? LONG_STREAM : STREAM};
    subject->room = is_long ? LONG_MEMORY : MEMORY;
    dn_naive_use(&subject->naive, subject->op, subject->ops, count, extent);
    DN_FUZZ_CHECK(span.size == subject->naive.n || subject->naive.room < subject->naive.n);
    return 1;
}

static void check_next(const subject_t *subject, dn_prog_cursor_t *cursor, uint64_t position, uint64_t max)
{
    const uint64_t left = (uint64_t) subject->cover.size - position;
    uint64_t at = 0;
    const uint64_t run = dn_prog_next(cursor, max, &at);

    DN_FUZZ_CHECK(run <= max && run <= left && (0 == run) == (0 == max || 0 == left));
    DN_FUZZ_CHECK(dn_prog_left(cursor) == left - run);
    DN_FUZZ_CHECK(
        0 == run
        || ((int64_t) at >= subject->cover.low && (int64_t) at + (wide_t) run <= subject->cover.high));
    const uint64_t end = position + run < known(subject) ? position + run : known(subject);
    for (uint64_t i = position; i < end; i++) {
        DN_FUZZ_CHECK((int64_t) (at + i - position) == subject->place[i]);
    }
}

/** Walk and jump without touching memory: works for any size. */
static void check_walk(const subject_t *subject, input_t *input)
{
    const uint64_t size = (uint64_t) subject->cover.size;
    dn_prog_cursor_t cursor, other;
    uint64_t at = 0, at_other = 0;

    dn_prog_start(&cursor, &subject->use, 0);
    DN_FUZZ_CHECK(dn_prog_left(&cursor) == size);
    for (uint64_t i = 0; i < known(subject);) {
        check_next(subject, &cursor, i, draw_part(input, 100));
        i = size - dn_prog_left(&cursor);
    }
    for (unsigned i = 0; i < 8 && 0 != size; i++) {
        const uint64_t position = draw(input, 8) % size;
        dn_prog_seek(&cursor, position);
        DN_FUZZ_CHECK(dn_prog_left(&cursor) == size - position);
        other = cursor;
        check_next(subject, &cursor, position, UINT64_MAX);
        /* The same byte, by a skip from an earlier one. */
        const uint64_t back = draw_byte(input) % 200;
        dn_prog_seek(&cursor, position < back ? 0 : position - back);
        dn_prog_skip(&cursor, position < back ? position : back);
        DN_FUZZ_CHECK(1 == dn_prog_next(&cursor, 1, &at));
        DN_FUZZ_CHECK(1 == dn_prog_next(&other, 1, &at_other));
        DN_FUZZ_CHECK(at == at_other);
    }
    dn_prog_seek(&cursor, size);
    DN_FUZZ_CHECK(0 == dn_prog_next(&cursor, UINT64_MAX, &at));
}

static size_t room_of(const subject_t *subject)
{
    return (size_t) (subject->cover.high - subject->cover.low);
}

/** What a use's memory holds at first; uses that differ in their bounds mostly differ in it. */
static const uint8_t *pattern_of(const subject_t *subject)
{
    static uint8_t pattern[PATTERN + LONG_MEMORY];

    if (0 == pattern[1]) {
        dn_test_fill(pattern, sizeof(pattern), 0);
    }
    return pattern + room_of(subject) % PATTERN;
}

/** Memory of exactly the bounds of a use. @return 0 when that is too much, or not every byte is known. */
static int take_memory(subject_t *subject)
{
    const size_t room = room_of(subject);

    if (subject->cover.high - subject->cover.low > (wide_t) subject->room
        || subject->cover.size > (wide_t) subject->naive.room) {
        return 0;
    }
    subject->memory = malloc(room + (0 == room));
    DN_FUZZ_CHECK(NULL != subject->memory);
    memcpy(subject->memory, pattern_of(subject), room);
    subject->base = (uintptr_t) subject->memory - (uint64_t) subject->cover.low;
    /* An origin that is no address may still have all bytes of its use in memory. */
    const wide_t origin = (wide_t) (uintptr_t) subject->memory - subject->cover.low;
    const uint64_t end = (uintptr_t) subject->memory + room;
    const dn_status_t status = dn_prog_check(&subject->use, subject->base, subject->naive.n, end);
    DN_FUZZ_CHECK(0 > origin || 0 != origin >> 64 || DN_OK == status);
    DN_FUZZ_CHECK(0 == room
                  || DN_OK != dn_prog_check(&subject->use, subject->base, subject->naive.n, end - 1));
    return 1;
}

static inline uint8_t *byte_of(const subject_t *subject, size_t i)
{
    return (uint8_t *) (uintptr_t) (subject->base + (uint64_t) subject->place[i]);
}

static void check_gather(const subject_t *subject, input_t *input)
{
    static uint8_t stream[LONG_STREAM];
    dn_prog_cursor_t cursor;
    const size_t n = subject->naive.n;

    dn_prog_start(&cursor, &subject->use, subject->base);
    for (size_t done = 0; done < n;) {
        const uint64_t most = draw_part(input, 500);
        const size_t part = most < n - done ? most : n - done;
        DN_FUZZ_CHECK(part == dn_prog_gather(stream + done, &cursor, part));
        done += part;
    }
    for (size_t i = 0; i < n; i++) {
        DN_FUZZ_CHECK(stream[i] == *byte_of(subject, i));
    }
    /* Back to where it came from: nothing changes, even where blocks overlap. */
    dn_prog_start(&cursor, &subject->use, subject->base);
    DN_FUZZ_CHECK(n == dn_prog_scatter(&cursor, stream, UINT64_MAX));
    DN_FUZZ_CHECK(0 == memcmp(subject->memory, pattern_of(subject), room_of(subject)));
}

/** To a program at random that covers as much, and back again. */
static void check_copy(const subject_t *subject, input_t *input)
{
    static dn_prog_op_t ops[DN_NAIVE_OPS];
    static subject_t partner;
    dn_prog_t *prog = NULL;
    dn_prog_cursor_t from, to;
    uint64_t random = draw(input, 2), done = 0;
    int64_t extent = 0;

    partner.op = ops;
    partner.ops = dn_naive_random(&random, ops, 500, &extent);
    DN_FUZZ_CHECK(DN_OK == dn_prog_create(ops, partner.ops, &prog));
    partner.prog = prog;
    const uint64_t size = dn_prog_info(prog)->size;
    const uint64_t count = 0 == size ? 0 : (subject->naive.n + size - 1) / size;
    if (!open_use(&partner, count, extent, 1) || !take_memory(&partner)) {
        dn_prog_free(prog);
        return;
    }
    const size_t n = partner.naive.n < subject->naive.n ? partner.naive.n : subject->naive.n;
    dn_prog_start(&from, &subject->use, subject->base);
    dn_prog_start(&to, &partner.use, partner.base);
    while (done < n) {
        done += dn_prog_copy(&to, &from, draw_part(input, 999));
    }
    DN_FUZZ_CHECK(done == n && 0 == dn_prog_copy(&to, &from, 1));
    for (size_t i = 0; i < n; i++) {
        DN_FUZZ_CHECK(*byte_of(&partner, i) == *byte_of(subject, i));
    }
    dn_prog_seek(&from, 0);
    dn_prog_seek(&to, 0);
    DN_FUZZ_CHECK(n == dn_prog_copy(&from, &to, UINT64_MAX));
    DN_FUZZ_CHECK(0 == memcmp(subject->memory, pattern_of(subject), room_of(subject)));
    free(partner.memory);
    dn_prog_free(prog);
}

/** To the same program elsewhere: every byte arrives, even where blocks overlap, and none between them. */
static void check_twin(const subject_t *subject, input_t *input)
{
    const size_t room = room_of(subject), n = subject->naive.n;
    uint8_t *memory = calloc(1, room + 1), *wanted = calloc(1, room + 1);
    dn_prog_cursor_t from, to;

    DN_FUZZ_CHECK(NULL != memory && NULL != wanted);
    dn_prog_start(&from, &subject->use, subject->base);
    dn_prog_start(&to, &subject->use, (uintptr_t) memory - (uint64_t) subject->cover.low);
    for (uint64_t done = 0; done < n;) {
        done += dn_prog_copy(&to, &from, draw_part(input, 999));
    }
    for (size_t i = 0; i < n; i++) {
        wanted[subject->place[i] - subject->cover.low] = *byte_of(subject, i);
    }
    DN_FUZZ_CHECK(0 == memcmp(memory, wanted, room + 1));
    free(memory);
    free(wanted);
}

static void check_use(subject_t *subject, uint64_t count, int64_t extent, input_t *input)
{
    int64_t at = 0;
    uint64_t len = 0;

    if (!open_use(subject, count, extent, 0 == draw_byte(input) % LONG)) {
        return;
    }
    check_walk(subject, input);
    if (dn_prog_contiguous(&subject->use, &at, &len)) {
        DN_FUZZ_CHECK(len == (uint64_t) subject->cover.size);
        DN_FUZZ_CHECK(0 == len || at == subject->cover.low);
        for (size_t i = 0; i < known(subject); i++) {
            DN_FUZZ_CHECK(subject->place[i] == at + (int64_t) i);
        }
    }
    if (take_memory(subject)) {
        check_gather(subject, input);
        check_copy(subject, input);
        check_twin(subject, input);
        free(subject->memory);
    }
}

/** Encoding what was decoded, or decoding what was encoded, changes nothing. */
static void check_encoding(const dn_prog_t *prog)
{
    static uint8_t wire[2][WIRE];
    size_t len[2] = {WIRE, WIRE};
    dn_prog_t *again = NULL;

    DN_FUZZ_CHECK(DN_OK == dn_prog_encode(prog, wire[0], &len[0]));
    DN_FUZZ_CHECK(DN_OK == dn_prog_decode(wire[0], len[0], NULL, &again));
    DN_FUZZ_CHECK(DN_OK == dn_prog_encode(again, wire[1], &len[1]));
    DN_FUZZ_CHECK(len[0] == len[1] && 0 == memcmp(wire[0], wire[1], len[0]));
    DN_FUZZ_CHECK(dn_prog_info(prog)->size == dn_prog_info(again)->size);
    DN_FUZZ_CHECK(dn_prog_info(prog)->blocks == dn_prog_info(again)->blocks);
    dn_prog_free(again);
}

static void check_taken(dn_prog_t *prog, const dn_prog_op_t *ops, size_t n, input_t *input)
{
    static subject_t subject;

    subject.prog = prog;
    subject.op = ops;
    subject.ops = n;
    check_encoding(prog);
    check_use(&subject, 1, 0, input);
    const uint64_t count = draw_byte(input) % 8;
    check_use(&subject, count, draw_number(input), input);
    check_use(&subject, (uint64_t) draw_number(input), draw_number(input), input);
    dn_prog_free(prog);
}

/* ---- three kinds of input ---- */

static void try_create(input_t *input)
{
    static dn_prog_op_t ops[OPS];
    judge_t judge = {0};
    dn_prog_t *prog = NULL;
    const size_t n = draw_ops(input, ops);

    const cover_t cover = judge_ops(&judge, ops, n, 0, 0);
    const dn_status_t status = dn_prog_create(ops, n, &prog);
    if (DN_OK != status) {
        DN_FUZZ_CHECK(judge.wrong || judge.deep
                      || (DN_ERR_UNSUPPORTED == status && DN_PROG_DEPTH_MAX < judge.deepest));
        return;
    }
    DN_FUZZ_CHECK(!judge.wrong && !judge.deep);
    DN_FUZZ_CHECK(dn_prog_info(prog)->size == (uint64_t) cover.size);
    DN_FUZZ_CHECK(dn_prog_info(prog)->ops <= n);
    check_taken(prog, ops, n, input);
}

/** An encoding and what is in it, by the description in dn_prog.h. */
typedef struct wire {
    uint32_t magic;
    uint16_t version;
    uint16_t depth;
    uint32_t ops;
    uint32_t places;
    uint64_t size;
    int64_t low;
    int64_t high;
} wire_t;

/** Is each op as it must be written? */
static int is_canonical(const dn_prog_op_t *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const dn_prog_op_t *op = &ops[i];
        const int loop = DN_PROG_LOOP == op->kind, list = DN_PROG_LIST == op->kind;
        if (loop == (0 == op->inside) || loop == (0 != op->len) || 0 == op->count
            || (1 == op->count && (loop || list || 0 != op->stride)) || ((loop || list) && 0 != op->at)
            || (list && 0 != op->stride)) {
            return 0;
        }
    }
    return 1;
}

/**
 * The ops that an encoding means, canonical or not: its own, with a RUN for each block of a LIST.
 * @return their number; SIZE_MAX when they have no meaning.
 */
static size_t expand(const dn_prog_op_t *ops, size_t n, const int64_t *place, size_t places,
                     dn_prog_op_t *out, size_t room)
{
    size_t first = 0, to = 0, start[OPS + 1];

    for (size_t i = 0; i < n; i++) {
        const dn_prog_op_t *op = &ops[i];
        const int loop = DN_PROG_LOOP == op->kind, list = DN_PROG_LIST == op->kind;
        start[i] = to;
        if ((!loop && !list && DN_PROG_RUN != op->kind) || (!loop && 0 != op->inside)
            || (list && op->count > places - first) || to + (list ? op->count : 1) > room) {
            return SIZE_MAX;
        }
        for (uint64_t k = 0; list && k < op->count; k++) {
            out[to++] = (dn_prog_op_t){DN_PROG_RUN, 0, place[first++], op->len, 1, 0};
        }
        if (!list) {
            out[to] = *op;
            out[to++].at = loop ? 0 : op->at;
        }
    }
    start[n] = to;
    for (size_t i = 0; i < n; i++) {
        if (DN_PROG_LOOP == ops[i].kind) {
            out[start[i]].inside = (uint32_t) (start[i + 1 + ops[i].inside] - start[i] - 1);
        }
    }
    return first == places ? to : SIZE_MAX;
}

static unsigned loops_around(const dn_prog_op_t *ops, size_t n)
{
    unsigned most = 0;

    for (size_t i = 0; i < n; i += 1 + ops[i].inside) {
        if (DN_PROG_LOOP == ops[i].kind) {
            const unsigned here = 1 + loops_around(ops + i + 1, ops[i].inside);
            most = here > most ? here : most;
        }
    }
    return most;
}

/** Do loops end where or before the loop around them does? */
static int is_nested(const dn_prog_op_t *ops, size_t n)
{
    for (size_t i = 0; i < n; i += 1 + ops[i].inside) {
        if (ops[i].inside >= n - i || !is_nested(ops + i + 1, ops[i].inside)) {
            return 0;
        }
    }
    return 1;
}

/** Hold the decoder against the judge, for an encoding whose lengths are right and whose places are known. */
static void try_wire(const wire_t *head, const dn_prog_op_t *ops, const int64_t *place, const uint8_t *bytes,
                     size_t len, input_t *input)
{
    static dn_prog_op_t meant[OPS + PLACES];
    judge_t judge = {0};
    dn_prog_t *prog = NULL;
    cover_t cover = {0, 0, 0};
    const size_t n = is_nested(ops, head->ops)
                         ? expand(ops, head->ops, place, head->places, meant, OPS + PLACES)
                         : SIZE_MAX;
    const unsigned depth = SIZE_MAX == n ? 0 : loops_around(meant, n);

    if (SIZE_MAX != n) {
        cover = judge_ops(&judge, meant, n, 0, 0);
    }
    const int right = is_canonical(ops, head->ops) && SIZE_MAX != n && !judge.wrong && !judge.deep
                      && depth == head->depth && DN_PROG_DEPTH_MAX >= depth
                      && (uint64_t) cover.size == head->size && cover.low == head->low
                      && cover.high == head->high;
    const dn_status_t status = dn_prog_decode(bytes, len, NULL, &prog);
    DN_FUZZ_CHECK((DN_OK == status) == right);
    if (DN_OK == status) {
        check_taken(prog, meant, n, input);
    }
}

/** Write an encoding down. @return its length. */
static size_t put_wire(uint8_t *bytes, const wire_t *head, const dn_prog_op_t *ops, const int64_t *place)
{
    memcpy(bytes, head, sizeof(*head));
    memcpy(bytes + sizeof(*head), ops, head->ops * sizeof(*ops));
    memcpy(bytes + sizeof(*head) + head->ops * sizeof(*ops), place, head->places * sizeof(*place));
    return sizeof(*head) + head->ops * sizeof(*ops) + head->places * sizeof(*place);
}

/** Take blocks from the first LIST for the last one: the sum stays right, in 64 bits. */
static void shift_blocks(dn_prog_op_t *ops, size_t n, uint64_t blocks)
{
    dn_prog_op_t *first = NULL, *last = NULL;

    for (size_t i = 0; i < n; i++) {
        if (DN_PROG_LIST == ops[i].kind) {
            first = NULL == first ? &ops[i] : first;
            last = &ops[i];
        }
    }
    if (first != last) {
        first->count -= blocks;
        last->count += blocks;
    }
}

/** Ops as a peer may write them, below a head that the judge finds right for them, or nearly so. */
static void try_decode_ops(input_t *input)
{
    static dn_prog_op_t ops[OPS], meant[OPS + PLACES];
    static int64_t place[PLACES];
    static uint8_t bytes[WIRE];
    judge_t judge = {0};
    const size_t n = draw_ops(input, ops);
    wire_t head = {0x67706e64, 1, 0, (uint32_t) n, 0, 0, 0, 0};

    for (size_t i = 0; i < n; i++) {
        const uint64_t how = draw_byte(input);
        dn_prog_op_t *op = &ops[i];
        if (0 == how) {
            continue; /* as it came */
        }
        if (DN_PROG_RUN == op->kind && 1 == how % 3 && 1 < op->count && op->count <= PLACES - head.places) {
            *op = (dn_prog_op_t){DN_PROG_LIST, 0, 0, op->len, op->count, 0};
            for (uint64_t k = 0; k < op->count; k++) {
                place[head.places++] = draw_number(input);
            }
        }
        op->at = DN_PROG_LOOP == op->kind ? 0 : op->at;
        op->len = DN_PROG_LOOP == op->kind ? 0 : op->len;
        op->stride = 1 == op->count ? 0 : op->stride;
    }
    if (1 == draw_byte(input) % 16) {
        shift_blocks(ops, n, (uint64_t) draw_number(input));
    }
    if (is_nested(ops, n)) {
        const size_t m = expand(ops, n, place, head.places, meant, OPS + PLACES);
        if (SIZE_MAX != m) {
            const cover_t cover = judge_ops(&judge, meant, m, 0, 0);
            head.depth = (uint16_t) loops_around(meant, m);
            head.size = (uint64_t) cover.size;
            head.low = (int64_t) cover.low;
            head.high = (int64_t) cover.high;
        }
    }
    const size_t len = put_wire(bytes, &head, ops, place);
    const uint64_t spoil = draw_byte(input);
    if (250 < spoil) {
        bytes[8 * (spoil % 5) + draw_byte(input) % 8] ^= (uint8_t) (1u << draw_byte(input) % 8);
        dn_prog_t *prog = NULL;
        DN_FUZZ_CHECK(DN_OK != dn_prog_decode(bytes, len, NULL, &prog));
        return;
    }
    try_wire(&head, ops, place, bytes, len, input);
}

/** Bytes as they come. The decoder may take any that is an encoding, and the judge must agree. */
static void try_decode(input_t *input)
{
    static dn_prog_op_t ops[OPS];
    static int64_t place[PLACES];
    wire_t head;
    dn_prog_t *prog = NULL;

    if (sizeof(head) <= input->len) {
        memcpy(&head, input->data, sizeof(head));
        if (0x67706e64 == head.magic && 1 == head.version && OPS >= head.ops && PLACES >= head.places
            && sizeof(head) + head.ops * sizeof(*ops) + head.places * sizeof(*place) == input->len) {
            memcpy(ops, input->data + sizeof(head), head.ops * sizeof(*ops));
            memcpy(place, input->data + sizeof(head) + head.ops * sizeof(*ops), head.places * sizeof(*place));
            input_t bytes = *input;
            try_wire(&head, ops, place, input->data, input->len, &bytes);
            return;
        }
    }
    if (DN_OK == dn_prog_decode(input->data, input->len, NULL, &prog)) {
        DN_FUZZ_CHECK(OPS < dn_prog_info(prog)->ops || PLACES < prog->places);
        dn_prog_free(prog);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    input_t input = {data, len};
    const uint64_t kind = draw_byte(&input) % 3;

    if (0 == kind) {
        try_create(&input);
    } else if (1 == kind) {
        try_decode_ops(&input);
    } else {
        try_decode(&input);
    }
    return 0;
}

/** Write ops down as draw_ops() reads them: each a loop around all that follow, with some turns. */
static void seed_nest(uint64_t *random, uint8_t *to, size_t n)
{
    for (; 0 != n; n--) {
        const uint8_t op[] = {(uint8_t) (1 == n ? 1 : 3 * (n - 1)), (uint8_t) dn_test_below(random, 160),
                              (uint8_t) dn_test_below(random, 160), (uint8_t) (1 + dn_test_below(random, 4)),
                              (uint8_t) dn_test_below(random, 160)};
        memcpy(to, op, sizeof(op));
        to += sizeof(op);
    }
}

/** The same, with single blocks of one length, some of them far apart. */
static void seed_blocks(uint64_t *random, uint8_t *to, size_t n)
{
    for (; 0 != n; n--) {
        *to++ = 1;
        if (0 == dn_test_below(random, 4)) {
            *to++ = (uint8_t) (208 + dn_test_below(random, 32));
            *to++ = (uint8_t) dn_test_random(random);
        } else {
            *to++ = (uint8_t) dn_test_below(random, 160);
        }
        *to++ = 4; /* len */
        *to++ = 1; /* count */
        *to++ = 0;
    }
}

/** Bytes of which loops, small numbers and few ops come out more often than of bytes at random. */
static size_t seed_ops(uint64_t *random, uint8_t *data)
{
    const size_t n = dn_test_below(random, OPS + 1);
    const size_t len = 6 * OPS + dn_test_below(random, 256);
    const uint64_t any_one_in = 0 == dn_test_below(random, 8) ? 4 : 16;
    const uint64_t shape = dn_test_below(random, 32);

    for (size_t i = 0; i < len; i += 4) {
        const uint64_t any = dn_test_random(random);
        for (size_t k = 0; k < 4; k++) {
            const uint64_t part = any >> 16 * k;
            data[i + k] = (uint8_t) (0 == part % any_one_in ? part >> 8 : (part >> 8) % 256 * 160 / 256);
        }
    }
    data[0] = (uint8_t) n;
    if (0 == shape) {
        seed_nest(random, data + 1, n);
    } else if (1 == shape) {
        seed_blocks(random, data + 1, n);
    }
    return len;
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    static dn_prog_op_t ops[DN_NAIVE_OPS];
    dn_prog_t *prog = NULL;
    size_t len;
    int64_t extent;

    data[0] = (uint8_t) dn_test_below(random, 3);
    if (2 != data[0]) {
        return 1 + seed_ops(random, data + 1);
    }
    do {
        dn_prog_free(prog);
        prog = NULL;
        const size_t n = dn_naive_random(random, ops, 500, &extent);
        DN_FUZZ_CHECK(DN_OK == dn_prog_create(ops, n, &prog));
        len = WIRE;
    } while (DN_OK != dn_prog_encode(prog, data + 1, &len));
    dn_prog_free(prog);
    return 1 + len;
}
