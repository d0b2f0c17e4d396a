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
    uint64_t random = 1;

    (void) state;
    for (uint64_t i = 0; i < 200000; i++) {
        const dn_tlp_t tlp = any_tlp(&random);
        const size_t size = dn_tlp_size(&tlp);
        dn_tlp_t again;

        assert_true(size <= sizeof(bytes) && 0 == size % DN_TLP_DW);
        uint8_t *data = dn_tlp_write(bytes, &tlp);
        assert_int_equal(NULL == data, DN_TLP_READ == tlp.kind || 0 == tlp.len);
        if (NULL != data) {
            assert_true(data + tlp.len <= bytes + size);
            dn_test_fill(data, tlp.len, i);
        }
        assert_int_equal(dn_tlp_read(bytes, size, &again), size);
        check_same(&again, &tlp);
        if (NULL != data) {
            assert_ptr_equal(again.data, data);
            assert_int_equal(dn_test_mismatch(again.data, tlp.len, i), tlp.len);
        }
        /* Cut off anywhere it is none. */
        assert_int_equal(dn_tlp_read(bytes, dn_test_below(&random, size), &again), 0);
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
        (void) dn_tlp_write(bytes, &tlp[i]);
        assert_memory_equal(bytes, wanted[i], DN_TLP_HEADER);
    }
}

static void a_read_of_nothing_is_a_flush(void **state)
{
    const dn_tlp_t tlp = {.kind = DN_TLP_READ, .tag = 9};
    dn_tlp_t again;

    (void) state;
    assert_null(dn_tlp_write(bytes, &tlp));
    assert_int_equal(dn_tlp_read(bytes, DN_TLP_HEADER, &again), DN_TLP_HEADER);
    check_same(&again, &tlp);
    /* A write of nothing is none. */
    bytes[0] = 0x60;
    bytes[7] = 0;
    assert_int_equal(dn_tlp_read(bytes, sizeof(bytes), &again), 0);
}

/** What is read from any bytes is within them, and would be written so. */
static void any_bytes_are_refused_or_sound(void **state)
{
    static const uint8_t type[] = {0x20, 0x60, 0x6c, 0x6d, 0x6e, 0x6f, 0x34, 0x74, 0x2a, 0x6a};
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
            bytes[1] = 0;
            bytes[2] = 0;
            bytes[15] &= 0xfc;
        }
        const size_t size = dn_test_below(&random, sizeof(bytes) + 1);
        const size_t got = dn_tlp_read(bytes, size, &tlp);
        if (0 != got) {
            taken++;
            assert_true(got <= size);
            assert_int_equal(got, dn_tlp_size(&tlp));
            if (NULL != tlp.data) {
                assert_true((const uint8_t *) tlp.data >= bytes + DN_TLP_HEADER
                            && (const uint8_t *) tlp.data + tlp.len <= bytes + got);
            }
        }
    }
    assert_true(1000 < taken);
}

/** Stores that follow each other are one write, as far as whole DW of one line go; others are left alone. */
static void stores_are_joined_within_a_line(void **state)
{
    uint64_t random = 3;
    unsigned joined = 0;

    (void) state;
    for (int i = 0; i < 200000; i++) {
        const dn_tlp_t tlp = {.kind = 0 == dn_test_below(&random, 16) ? DN_TLP_READ : DN_TLP_WRITE,
                              .requester = (uint16_t) i,
                              .address = dn_test_random(&random) >> 16,
                              .len = (uint32_t) (1 + dn_test_below(&random, 16))};
        const uint64_t end = tlp.address + tlp.len;
        const uint64_t at = end + (0 == dn_test_below(&random, 4) ? dn_test_below(&random, 8) : 0);
        const uint32_t len = (uint32_t) (1 + dn_test_below(&random, 16));
        uint8_t before[DN_TLP_HEADER];
        dn_tlp_t again;

        (void) dn_tlp_write(bytes, &tlp);
        memcpy(before, bytes, sizeof(before));
        const uint8_t *data = dn_tlp_join(bytes, at, len);
        const int fits = DN_TLP_WRITE == tlp.kind && at == end && 0 == end % DN_TLP_DW && 0 == len % DN_TLP_DW
                         && tlp.address / DN_TLP_LINE == (end + len - 1) / DN_TLP_LINE;
        assert_int_equal(fits, NULL != data);
        if (fits) {
            dn_tlp_t wanted = tlp;
            wanted.len += len;
            joined++;
            assert_int_equal(dn_tlp_read(bytes, sizeof(bytes), &again), dn_tlp_size(&wanted));
            check_same(&again, &wanted);
            assert_ptr_equal(data, (const uint8_t *) again.data + tlp.len);
        } else {
            assert_memory_equal(bytes, before, sizeof(before));
        }
    }
    assert_true(1000 < joined);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_again), cmocka_unit_test(headers_are_those_of_pci_express),
        cmocka_unit_test(a_read_of_nothing_is_a_flush),   cmocka_unit_test(stores_are_joined_within_a_line),
        cmocka_unit_test(any_bytes_are_refused_or_sound),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
