/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Pieces of LLCM are aligned, zeroed, apart from each other and inside the peers' limit; what is given
 * back can be had again, and a full LLCM is refused with a sentence. It is known how much is taken.
 */
#include "dn_config.h"

#include "dn_unit.h"

enum { LLCM = 16384, PIECES = 300 };

typedef struct piece {
    uint64_t off;
    size_t len;
    uint8_t *mem;
} piece_t;

static dn_port_t *port;

static void take(piece_t *piece, size_t len)
{
    void *mem = NULL;

    assert_int_equal(dn_llcm_alloc(port, len, &piece->off, &mem), DN_OK);
    piece->len = len;
    piece->mem = mem;
    assert_int_equal(piece->off % 64, 0);
    assert_int_equal((uintptr_t) mem % 64, 0);
    assert_in_range(piece->off + len, len, LLCM);
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(piece->mem[i], 0);
    }
    memset(piece->mem, 0xff, len);
}

static int refused(size_t len)
{
    piece_t piece = {UINT64_MAX, 0, NULL};
    void *mem = &piece;

    dn_test_log_expect();
    const dn_status_t status = dn_llcm_alloc(port, len, &piece.off, &mem);
    if (DN_OK == status) {
        dn_test_log.expected = 0;
        dn_llcm_free(port, piece.off, len);
        return 0;
    }
    assert_int_equal(status, DN_ERR_NOMEM);
    assert_true(dn_test_log_said(1, "llcm_bytes"));
    assert_true(UINT64_MAX == piece.off && &piece == mem);
    return 1;
}

/** Largest piece to be had now. */
static size_t room(void)
{
    size_t lines = 0;

    while (!refused((lines + 1) * 64)) {
        lines++;
    }
    return lines * 64;
}

static void pieces_are_apart(void **state)
{
    piece_t piece[3];

    take(&piece[0], 1);
    take(&piece[1], 64);
    take(&piece[2], 65);
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < i; k++) {
            assert_true(piece[i].off + piece[i].len <= piece[k].off
                        || piece[k].off + piece[k].len <= piece[i].off);
            assert_ptr_equal(piece[i].mem - piece[i].off, piece[k].mem - piece[k].off);
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        dn_llcm_free(port, piece[i].off, piece[i].len);
    }
}

static void impossible_lengths_are_refused(void **state)
{
    assert_true(refused(LLCM + 1));
    assert_true(refused(SIZE_MAX));
    assert_true(refused(SIZE_MAX - 62));
    assert_true(refused(SIZE_MAX / 2));
}

/** Any order of taking and giving back; in the end the room is whole again. */
static void random_order(void **state)
{
    static uint8_t used[LLCM];
    static piece_t piece[PIECES];
    unsigned count = 0;
    uint64_t random = 9;
    size_t taken = 0;
    const size_t before = room();

    assert_in_range(before, LLCM / 2, LLCM);
    for (unsigned i = 0; i < 20000; i++) {
        const size_t len = 1 + dn_test_length(&random, 1023);
        if (0 == dn_test_below(&random, 2) && count < PIECES && !refused(len)) {
            take(&piece[count], len);
            for (size_t k = 0; k < len; k++) {
                assert_int_equal(used[piece[count].off + k], 0);
                used[piece[count].off + k] = 1;
            }
            taken += (piece[count].len + 63) / 64 * 64;
            count++;
        } else if (0 < count) {
            const unsigned at = (unsigned) dn_test_below(&random, count);
            memset(used + piece[at].off, 0, piece[at].len);
            dn_llcm_free(port, piece[at].off, piece[at].len);
            taken -= (piece[at].len + 63) / 64 * 64;
            piece[at] = piece[--count];
        }
        assert_int_equal(dn_llcm_taken(port), taken);
    }
    while (0 < count) {
        count--;
        dn_llcm_free(port, piece[count].off, piece[count].len);
    }
    assert_int_equal(room(), before);
}

static int setup(void **state)
{
    const dn_job_t job = {.key = {{1}}, .nlocal = 1};
    dn_config_t config;

    dn_test_log_watch();
    dn_config_init(&config);
    config.llcm_bytes = LLCM;
    return DN_OK == dn_open("shm", &job, &config, &port) ? 0 : -1;
}

static int teardown(void **state)
{
    dn_close(port);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_apart),
        cmocka_unit_test(impossible_lengths_are_refused),
        cmocka_unit_test(random_order),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
