/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The codec of TLPs: what was written is read again, in the layout of PCI Express, and what was not written by it, or is cut off, is
 * refused or read as something that it could have written.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "ipnuma/dn_ipnuma_tlp.h"

static _Alignas(8) uint8_t bytes[DN_TLP_HEADER + DN_TLP_DATA];

/** The first byte of a short write. */
enum { SHORT = 0x8e };

/** A TLP that can be sent, its data apart. */
static dn_tlp_t any_tlp(uint64_t *random)
{
    dn_tlp_t tlp = {.kind = (enum dn_tlp_kind) dn_test_below(random, 5),
                    .tag = (uint8_t) dn_test_random(random)};

    if (DN_TLP_COMPLETION != tlp.kind) {
        tlp.requester = (uint16_t) dn_test_random(random);
    }
    if (DN_TLP_READ == tlp.kind || DN_TLP_WRITE == tlp.kind) {
        tlp.address = dn_test_random(random) >> 16;
        tlp.len = (uint32_t) (1 + dn_test_length(random, DN_TLP_DATA - 1 - tlp.address % DN_TLP_DW));
    } else if (DN_TLP_ATOMIC == tlp.kind) {
        tlp.address = dn_test_random(random) >> 16 << 2;
        tlp.op = (uint8_t) dn_test_below(random, DN_AMO_OPS);
        tlp.len = (uint32_t) (4 << dn_test_below(random, 2)) * (DN_AMO_CAS == tlp.op ? 2 : 1);
    } else if (DN_TLP_MESSAGE == tlp.kind) {
        tlp.message = (uint8_t) (1 + dn_test_below(random, 5));
        tlp.channel = (uint8_t) dn_test_below(random, 16);
        tlp.total = (uint32_t) dn_test_random(random);
        tlp.len = (uint32_t) dn_test_length(random, DN_TLP_DATA);
    } else {
        tlp.requester = (uint16_t) dn_test_random(random);
        tlp.completer = (uint16_t) dn_test_random(random);
        tlp.status = (uint8_t) dn_test_below(random, 8);
        tlp.len = (uint32_t) dn_test_length(random, DN_TLP_DATA);
    }
    return tlp;
}

/** A write near another one, most often such that a short write says it. */
static dn_tlp_t near_write(uint64_t *random, const dn_tlp_t *before)
{
    const uint64_t reach = 0 == dn_test_below(random, 2) ? DN_TLP_SHORT_REACH + 64 : 256;
    dn_tlp_t tlp = {.kind = DN_TLP_WRITE,
                    .requester = before->requester,
                    .tag = (uint8_t) (before->tag + (0 == dn_test_below(random, 16))),
                    .address = before->address + dn_test_below(random, 2 * reach) - reach,
                    .len = (uint32_t) (1 + dn_test_below(random, 80))};

    if (0 != dn_test_below(random, 4)) {
        tlp.address &= ~UINT64_C(3);
        tlp.len = (tlp.len + 3) & ~3u;
    }
    return tlp;
}

/** Does a short write say this, by the drawing in dn_ipnuma_tlp.h? */
static int fits_short(const dn_tlp_t *tlp, const dn_tlp_t *before)
{
    const int64_t apart = (int64_t) (tlp->address - before->address / 4 * 4);

    return DN_TLP_WRITE == before->kind && DN_TLP_WRITE == tlp->kind && 0 == tlp->address % 4
           && 0 == tlp->len % 4 && 64 >= tlp->len && before->requester == tlp->requester
           && before->tag == tlp->tag && -(2 << 20) <= apart && (2 << 20) > apart;
}

static void check_same(const dn_tlp_t *got, const dn_tlp_t *wanted)
{
    assert_int_equal(got->kind, wanted->kind);
    assert_int_equal(got->requester, wanted->requester);
    assert_int_equal(got->tag, wanted->tag);
    assert_int_equal(got->address, wanted->address);
    assert_int_equal(got->len, wanted->len);
    assert_int_equal(got->op, wanted->op);
    assert_int_equal(got->status, wanted->status);
    assert_int_equal(got->completer, wanted->completer);
    assert_int_equal(got->message, wanted->message);
    assert_int_equal(got->channel, wanted->channel);
    assert_int_equal(got->total, wanted->total);
}

static void what_was_written_is_read_again(void **state)
{
    dn_tlp_t before = {.kind = DN_TLP_READ};
    uint64_t random = 1;
    unsigned shorter = 0;

    (void) state;
    for (uint64_t i = 0; i < 200000; i++) {
        const dn_tlp_t tlp = 0 == dn_test_below(&random, 2) ? any_tlp(&random) : near_write(&random, &before);
        const dn_tlp_t *base = dn_tlp_base(&tlp, &before);
        const size_t size = dn_tlp_size(&tlp, base);
        dn_tlp_t again;

        assert_true(size <= sizeof(bytes) && 0 == size % DN_TLP_DW);
        uint8_t *data = dn_tlp_write(bytes, &tlp, base);
        assert_int_equal(SHORT == bytes[0], fits_short(&tlp, &before));
        assert_int_equal(dn_tlp_size(&tlp, NULL) - size, SHORT == bytes[0] ? 12 : 0);
        shorter += SHORT == bytes[0];
        assert_int_equal(NULL == data, DN_TLP_READ == tlp.kind || 0 == tlp.len);
        if (NULL != data) {
            assert_true(data + tlp.len <= bytes + size);
            dn_test_fill(data, tlp.len, i);
        }
        assert_int_equal(dn_tlp_read(bytes, size, &before, &again), size);
        check_same(&again, &tlp);
        if (NULL != data) {
            assert_ptr_equal(again.data, data);
            assert_int_equal(dn_test_mismatch(again.data, tlp.len, i), tlp.len);
        }
        /* Cut off anywhere it is none. */
        assert_int_equal(dn_tlp_read(bytes, dn_test_below(&random, size), &before, &again), 0);
        /* What was read takes the place of the TLP before. */
        assert_int_equal(dn_tlp_read(bytes, size, &before, &before), size);
        check_same(&before, &tlp);
    }
    assert_true(1000 < shorter);
}

static void a_short_write_has_one_header_word(void **state)
{
    static const struct {
        uint64_t before, address;
        uint32_t len;
        uint8_t header[4];
    } cases[] = {
        {0x1000, 0x1040, 8, {SHORT, 0x10, 0, 0x10}},
        {0x1000, 0xfc0, 8, {SHORT, 0x1f, 0xff, 0xf0}},
        {0x1000, 0x1000, 4, {SHORT, 0, 0, 0}},
        {0x1003, 0x1000, 64, {SHORT, 0xf0, 0, 0}},
        {0x200000, 0, 4, {SHORT, 0x08, 0, 0}},
        {0, 0x1ffffc, 4, {SHORT, 0x07, 0xff, 0xff}},
        {4, UINT64_MAX - 3, 4, {SHORT, 0x0f, 0xff, 0xfe}},
        {UINT64_MAX - 3, 4, 4, {SHORT, 0, 0, 2}},
    };
    static const uint64_t far[][2] = {{0x200004, 0}, {0, 0x200000}, {0, UINT64_MAX / 2 + 1}};

    (void) state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const dn_tlp_t before = {
            .kind = DN_TLP_WRITE, .requester = 0xabcd, .tag = 7, .address = cases[i].before, .len = 4};
        dn_tlp_t tlp = before, again;
        tlp.address = cases[i].address;
        tlp.len = cases[i].len;
        assert_ptr_equal(dn_tlp_base(&tlp, &before), &before);
        assert_int_equal(dn_tlp_size(&tlp, &before), 4 + tlp.len);
        assert_ptr_equal(dn_tlp_write(bytes, &tlp, &before), bytes + 4);
        assert_memory_equal(bytes, cases[i].header, 4);
        assert_int_equal(dn_tlp_read(bytes, sizeof(bytes), &before, &again), 4 + tlp.len);
        check_same(&again, &tlp);
    }
    for (unsigned i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        const dn_tlp_t before = {.kind = DN_TLP_WRITE, .address = far[i][0], .len = 4};
        const dn_tlp_t tlp = {.kind = DN_TLP_WRITE, .address = far[i][1], .len = 4};
        assert_null(dn_tlp_base(&tlp, &before));
        assert_int_equal(dn_tlp_size(&tlp, NULL), DN_TLP_HEADER + 4);
    }
}

static void a_short_write_stands_behind_a_write_only(void **state)
{
    dn_tlp_t before = {.kind = DN_TLP_WRITE, .address = 0x1000, .len = 4}, tlp = before;
    uint8_t least[12];

    (void) state;
    tlp.len = 8;
    (void) dn_tlp_write(bytes, &tlp, &before);
    memcpy(least, bytes, sizeof(least));
    assert_int_equal(dn_tlp_read(bytes, sizeof(bytes), &before, &tlp), sizeof(least));
    /* The first TLP of a datagram is not short, however much is behind it. */
    assert_int_equal(dn_tlp_read(bytes, sizeof(bytes), NULL, &tlp), 0);
    for (int kind = 0; kind <= DN_TLP_COMPLETION; kind++) {
        before.kind = (enum dn_tlp_kind) kind;
        assert_int_equal(0 != dn_tlp_read(bytes, sizeof(bytes), &before, &tlp), DN_TLP_WRITE == kind);
    }
    before.kind = DN_TLP_WRITE;
    for (size_t size = 0; size < sizeof(least); size++) {
        assert_int_equal(dn_tlp_read(bytes, size, &before, &tlp), 0);
    }
}

static void headers_are_those_of_pci_express(void **state)
{
    /* Memory Write, 4 DW header, 2 DW: bytes 2 to 5 behind 0x123456789a8. */
    static const uint8_t write[] = {0x60, 0, 0,    2,    0xab, 0xcd, 7,    0x3c,
                                    0,    0, 0x01, 0x23, 0x45, 0x67, 0x89, 0xa8};
    /* Memory Read of 4096 bytes: the length is written as 0. */
    static const uint8_t read[] = {0x20, 0, 0, 0, 0xab, 0xcd, 7, 0xff, 0, 0, 0, 0, 0, 0, 0x10, 0};
    /* FetchAdd of 64 bits. */
    static const uint8_t add[] = {0x6c, 0, 0, 2, 0xab, 0xcd, 7, 0, 0, 0, 0, 0, 0, 0, 0x10, 8};
    const dn_tlp_t tlp[] = {
        {.kind = DN_TLP_WRITE, .requester = 0xabcd, .tag = 7, .address = 0x123456789aa, .len = 4},
        {.kind = DN_TLP_READ, .requester = 0xabcd, .tag = 7, .address = 0x1000, .len = 4096},
        {.kind = DN_TLP_ATOMIC,
         .requester = 0xabcd,
         .tag = 7,
         .address = 0x1008,
         .len = 8,
         .op = DN_AMO_ADD}};
    const uint8_t *wanted[] = {write, read, add};

    (void) state;
    for (int i = 0; i < 3; i++) {
        (void) dn_tlp_write(bytes, &tlp[i], NULL);
        assert_memory_equal(bytes, wanted[i], DN_TLP_HEADER);
    }
}

static void a_read_of_nothing_is_a_flush(void **state)
{
    const dn_tlp_t tlp = {.kind = DN_TLP_READ, .tag = 9};
    dn_tlp_t again;

    (void) state;
    assert_null(dn_tlp_write(bytes, &tlp, NULL));
    assert_int_equal(dn_tlp_read(bytes, DN_TLP_HEADER, NULL, &again), DN_TLP_HEADER);
    check_same(&again, &tlp);
    /* A write of nothing is none. */
    bytes[0] = 0x60;
    bytes[7] = 0;
    assert_int_equal(dn_tlp_read(bytes, sizeof(bytes), NULL, &again), 0);
}

/** What is read from any bytes is within them, and would be written so. */
static void any_bytes_are_refused_or_sound(void **state)
{
    static const uint8_t type[] = {0x20, 0x60, 0x6c, 0x6d, 0x6e, 0x6f, 0x34, 0x74, 0x2a, 0x6a, SHORT};
    dn_tlp_t before = {.kind = DN_TLP_READ};
    uint64_t random = 2;
    unsigned taken = 0;

    (void) state;
    for (int i = 0; i < 500000; i++) {
        dn_tlp_t tlp;
        for (unsigned k = 0; k < DN_TLP_HEADER; k += 8) {
            const uint64_t word = dn_test_random(&random);
            memcpy(bytes + k, &word, sizeof(word));
        }
        if (0 != i % 4) {
            /* Near to a good one. */
            bytes[0] = type[dn_test_below(&random, sizeof(type))];
            bytes[1] = SHORT == bytes[0] ? bytes[1] : 0;
            bytes[2] = SHORT == bytes[0] ? bytes[2] : 0;
            bytes[15] &= 0xfc;
        }
        const size_t size = dn_test_below(&random, sizeof(bytes) + 1);
        const size_t got = dn_tlp_read(bytes, size, &before, &tlp);
        if (0 != got) {
            const size_t header = SHORT == bytes[0] ? DN_TLP_SHORT_HEADER : DN_TLP_HEADER;
            taken++;
            assert_true(got <= size);
            assert_int_equal(got, dn_tlp_size(&tlp, SHORT == bytes[0] ? &before : NULL));
            if (NULL != tlp.data) {
                assert_true((const uint8_t *) tlp.data >= bytes + header
                            && (const uint8_t *) tlp.data + tlp.len <= bytes + got);
            }
            before = tlp;
        }
    }
    assert_true(1000 < taken);
}

/** Stores that follow each other are one write, as far as whole DW of one line go; others are left alone. */
static void stores_are_joined_within_a_line(void **state)
{
    uint64_t random = 3;
    unsigned joined[2] = {0, 0};

    (void) state;
    for (int i = 0; i < 200000; i++) {
        const dn_tlp_t before = {.kind = DN_TLP_WRITE, .requester = (uint16_t) i, .len = 4};
        const uint64_t base = 0 == dn_test_below(&random, 2) ? 0 : dn_test_random(&random) >> 16;
        const dn_tlp_t tlp = {.kind = 0 == dn_test_below(&random, 16) ? DN_TLP_READ : DN_TLP_WRITE,
                              .requester = (uint16_t) i,
                              .address = base + dn_test_below(&random, 1 << 16),
                              .len = (uint32_t) (1 + dn_test_below(&random, 16))};
        const uint64_t end = tlp.address + tlp.len;
        const uint64_t at = end + (0 == dn_test_below(&random, 4) ? dn_test_below(&random, 8) : 0);
        const uint32_t len = (uint32_t) (1 + dn_test_below(&random, 16));
        uint8_t header[DN_TLP_HEADER];
        const dn_tlp_t *behind = dn_tlp_base(&tlp, &before);
        dn_tlp_t newest = tlp, again;

        (void) dn_tlp_write(bytes, &tlp, behind);
        memcpy(header, bytes, sizeof(header));
        const uint8_t *data = dn_tlp_join(bytes, &newest, at, len);
        const int fits = DN_TLP_WRITE == tlp.kind && at == end && 0 == end % DN_TLP_DW && 0 == len % DN_TLP_DW
                         && tlp.address / DN_TLP_LINE == (end + len - 1) / DN_TLP_LINE;
        assert_int_equal(fits, NULL != data);
        if (fits) {
            dn_tlp_t wanted = tlp;
            wanted.len += len;
            joined[SHORT == bytes[0]]++;
            check_same(&newest, &wanted);
            assert_int_equal(dn_tlp_read(bytes, sizeof(bytes), &before, &again),
                             dn_tlp_size(&tlp, behind) + len);
            check_same(&again, &wanted);
            assert_ptr_equal(data, (const uint8_t *) again.data + tlp.len);
        } else {
            check_same(&newest, &tlp);
            assert_memory_equal(bytes, header, sizeof(header));
        }
    }
    assert_true(1000 < joined[0] && 500 < joined[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_again),
        cmocka_unit_test(headers_are_those_of_pci_express),
        cmocka_unit_test(a_read_of_nothing_is_a_flush),
        cmocka_unit_test(stores_are_joined_within_a_line),
        cmocka_unit_test(any_bytes_are_refused_or_sound),
        cmocka_unit_test(a_short_write_has_one_header_word),
        cmocka_unit_test(a_short_write_stands_behind_a_write_only),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
