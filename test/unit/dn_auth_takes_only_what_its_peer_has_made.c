/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What proves who a process is: nobody makes it without the key, for another connection, for the other direction or twice.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <stdlib.h>
#include <string.h>

#include "dn_auth.h"

enum { AT = 24, HEAD = 32, MESSAGE = 200 };

static const dn_group_key_t key = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
static const dn_group_key_t other_key = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17}};

static dn_auth_root_t root_of(const dn_group_key_t *group_key)
{
    dn_auth_group_t group;
    dn_auth_root_t root;

    assert_int_equal(dn_auth_group(group_key, &group), DN_OK);
    assert_int_equal(dn_auth_root(&group, group.exchange, &root), DN_OK);
    return root;
}

static dn_auth_side_t side_of(uint8_t who)
{
    dn_auth_side_t side = {.nonce = {who, 7}, .pid = who};

    memset(side.random, 0x40 + who, sizeof(side.random));
    dn_auth_digest(&who, sizeof(who), side.address);
    return side;
}

static dn_auth_pair_t pair_of(const dn_group_key_t *group_key, uint8_t opener, uint8_t acceptor)
{
    const dn_auth_root_t root = root_of(group_key);
    const dn_auth_side_t one = side_of(opener), two = side_of(acceptor);
    dn_auth_pair_t pair;

    dn_auth_pair(&root, &one, &two, &pair);
    return pair;
}

static void assert_hex(const void *bytes, size_t len, const char *hex)
{
    char text[129] = "";

    for (size_t i = 0; i < len; i++) {
        snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *) bytes)[i]);
    }
    assert_string_equal(text, hex);
}

/** Processes of two builds agree on these; they were computed by Python's hashlib, and the tag by SipHash's paper. */
static void answers_are_the_known_ones(void **state)
{
    const dn_auth_root_t root = root_of(&key);
    const dn_auth_pair_t pair = pair_of(&key, 1, 2);
    dn_auth_way_t paper;
    uint64_t bytes[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x000e0d0c0b0a0908)};
    uint8_t mac[DN_AUTH_MAC];
    dn_pgid_t pgid;

    assert_hex(root.byte, sizeof(root.byte),
               "a9103faaa5b52d77917afddc7e3b8018d0cc7132ce90a2be5b3422c162242d4d");
    assert_int_equal(dn_pgid(&key, &pgid), DN_OK);
    assert_hex(pgid.byte, sizeof(pgid.byte), "7d7f7d03d0bde7af235ed53b3c873288");
    dn_auth_mac(&root, "abc", 3, mac);
    assert_hex(mac, sizeof(mac), "d140b3bd9423d3f35d8281ce3a714dc6");
    assert_hex(pair.base, sizeof(pair.base),
               "49edc3e6dfe8b6112846781356e8d1b36cea0ebd699de9afcf59c6499e5c458e");
    dn_auth_prove(&pair, DN_AUTH_OPENER, "abc", 3, mac);
    assert_hex(mac, sizeof(mac), "477f4a1e921f80b421073e3f84816367");
    for (uint8_t i = 0; i < sizeof(paper.key); i++) {
        paper.key[i] = i;
    }
    assert_true(UINT64_C(0xa129ca6149be45e5) == dn_auth_tag(&paper, bytes[0], bytes, 15, 0));
}

static void another_key_makes_nothing_that_fits(void **state)
{
    const dn_auth_root_t one = root_of(&key), two = root_of(&other_key);
    const dn_auth_pair_t good = pair_of(&key, 1, 2), bad = pair_of(&other_key, 1, 2);
    uint8_t mac[2][DN_AUTH_MAC];
    dn_pgid_t pgid[2];

    assert_memory_not_equal(&one, &two, sizeof(one));
    dn_auth_mac(&one, "abc", 3, mac[0]);
    dn_auth_mac(&two, "abc", 3, mac[1]);
    assert_false(dn_auth_same(mac[0], mac[1]));
    for (int role = 0; role < 2; role++) {
        dn_auth_prove(&good, role, NULL, 0, mac[0]);
        dn_auth_prove(&bad, role, NULL, 0, mac[1]);
        assert_false(dn_auth_same(mac[0], mac[1]));
        assert_true(good.way[role].word != bad.way[role].word);
    }
    assert_int_equal(dn_pgid(&key, &pgid[0]), DN_OK);
    assert_int_equal(dn_pgid(&other_key, &pgid[1]), DN_OK);
    assert_memory_not_equal(&pgid[0], &pgid[1], sizeof(pgid[0]));
}

/** Who sends back what it was sent has proved nothing, and a proof for one connection is none for the next. */
static void proofs_fit_one_connection_and_one_role(void **state)
{
    const dn_auth_root_t root = root_of(&key);
    const dn_auth_side_t opener = side_of(1), acceptor = side_of(2);
    const dn_auth_pair_t pair = pair_of(&key, 1, 2);
    uint8_t good[2][DN_AUTH_MAC], bad[DN_AUTH_MAC];

    for (int role = 0; role < 2; role++) {
        dn_auth_prove(&pair, role, NULL, 0, good[role]);
    }
    assert_false(dn_auth_same(good[0], good[1]));
    assert_true(pair.way[0].word != pair.way[1].word);
    assert_memory_not_equal(pair.way[0].key, pair.way[1].key, sizeof(pair.way[0].key));
    const dn_auth_pair_t turned = pair_of(&key, 2, 1);
    for (int role = 0; role < 2; role++) {
        dn_auth_prove(&turned, role, NULL, 0, bad);
        assert_false(dn_auth_same(good[0], bad));
        assert_false(dn_auth_same(good[1], bad));
    }
    /* Each bit of both sides counts. */
    for (size_t bit = 0; bit < 8 * sizeof(opener); bit++) {
        for (int side = 0; side < 2; side++) {
            dn_auth_side_t changed = 0 == side ? opener : acceptor;
            dn_auth_pair_t other;
            ((uint8_t *) &changed)[bit / 8] ^= (uint8_t) (1U << bit % 8);
            dn_auth_pair(&root, 0 == side ? &changed : &opener, 0 == side ? &acceptor : &changed, &other);
            dn_auth_prove(&other, DN_AUTH_OPENER, NULL, 0, bad);
            assert_false(dn_auth_same(good[0], bad));
        }
    }
    dn_auth_prove(&pair, DN_AUTH_ACCEPTOR, "\1", 1, bad);
    assert_false(dn_auth_same(good[1], bad));
}

static void macs_differ_when_one_bit_does(void **state)
{
    uint8_t one[DN_AUTH_MAC] = {0}, other[DN_AUTH_MAC] = {0};

    assert_true(dn_auth_same(one, other));
    for (unsigned bit = 0; bit < 8 * DN_AUTH_MAC; bit++) {
        other[bit / 8] ^= (uint8_t) (1U << bit % 8);
        assert_false(dn_auth_same(one, other));
        other[bit / 8] ^= (uint8_t) (1U << bit % 8);
    }
}

static void groups_that_know_each_others_names_share_a_root(void **state)
{
    const dn_group_key_t third_key = {{9}};
    const dn_group_key_t *const keys[] = {&key, &other_key, &third_key};
    dn_auth_group_t group[3];
    dn_auth_root_t root[3][3];
    dn_pgid_t pgid;
    uint8_t nowhere[DN_AUTH_EXCHANGE] = {0};

    for (int i = 0; i < 3; i++) {
        assert_int_equal(dn_auth_group(keys[i], &group[i]), DN_OK);
    }
    for (int i = 0; i < 3; i++) {
        dn_auth_pgid(group[i].exchange, &pgid);
        assert_memory_equal(&pgid, &group[i].pgid, sizeof(pgid));
        for (int k = 0; k < 3; k++) {
            assert_int_equal(dn_auth_root(&group[i], group[k].exchange, &root[i][k]), DN_OK);
        }
    }
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            assert_memory_equal(&root[i][k], &root[k][i], sizeof(root[0][0]));
            assert_true(i == k || 0 != memcmp(&root[i][k], &root[i][i], sizeof(root[0][0])));
        }
    }
    assert_memory_not_equal(&root[0][1], &root[0][2], sizeof(root[0][0]));
    assert_int_equal(dn_auth_root(&group[0], nowhere, &root[0][0]), DN_ERR_PROTO);
}

/** As launchers make them that only have a job's number and a step's. */
static void keys_of_small_numbers_are_weak(void **state)
{
    const uint64_t half[][2] = {
        {1234, 5}, {0, 0}, {UINT64_C(0x123456789abcdef0), 7}, {7, UINT64_C(0x123456789abcdef0)}};
    dn_group_key_t weak;
    dn_auth_group_t group;

    for (size_t i = 0; i < sizeof(half) / sizeof(half[0]); i++) {
        memcpy(weak.byte, half[i], sizeof(weak.byte));
        assert_int_equal(dn_auth_group(&weak, &group), DN_OK);
        assert_true(group.weak);
    }
    assert_int_equal(dn_auth_group(&key, &group), DN_OK);
    assert_false(group.weak);
}

/* Messages */

typedef union message {
    uint64_t word[MESSAGE / 8];
    uint8_t byte[MESSAGE];
} message_t;

static message_t plain_of(uint64_t number)
{
    message_t message;

    for (size_t i = 0; i < MESSAGE; i++) {
        message.byte[i] = (uint8_t) (3 * i + number);
    }
    return message;
}

static message_t made(dn_auth_mode_t mode, const dn_auth_way_t *way, uint64_t number, size_t len)
{
    message_t message = plain_of(number);

    dn_auth_seal(mode, way, number, &message, len, AT);
    return message;
}

static void a_tag_fits_one_message_alone(void **state)
{
    const dn_auth_pair_t pair = pair_of(&key, 1, 2);
    const dn_auth_way_t *way = &pair.way[0];

    for (size_t len = HEAD; len <= MESSAGE; len += 7) {
        const message_t good = made(DN_AUTH_FULL, way, 5, len);
        message_t copy = good;
        assert_true(dn_auth_opens(DN_AUTH_FULL, way, 5, &copy, len, AT));
        assert_memory_equal(&copy, &good, sizeof(good));
        for (size_t bit = 0; bit < 8 * len; bit++) {
            copy.byte[bit / 8] ^= (uint8_t) (1U << bit % 8);
            assert_false(dn_auth_opens(DN_AUTH_FULL, way, 5, &copy, len, AT));
            copy.byte[bit / 8] ^= (uint8_t) (1U << bit % 8);
        }
        for (size_t shorter = HEAD; shorter < len; shorter++) {
            assert_false(dn_auth_opens(DN_AUTH_FULL, way, 5, &copy, shorter, AT));
        }
        /* Under another number, also one that ends with the same 32 bits; and in the other direction. */
        assert_false(dn_auth_opens(DN_AUTH_FULL, way, 6, &copy, len, AT));
        assert_false(dn_auth_opens(DN_AUTH_FULL, way, 5 + (UINT64_C(1) << 32), &copy, len, AT));
        assert_false(dn_auth_opens(DN_AUTH_FULL, &pair.way[1], 5, &copy, len, AT));
    }
}

static void a_word_is_that_of_its_direction(void **state)
{
    const dn_auth_pair_t pair = pair_of(&key, 1, 2);
    message_t message = made(DN_AUTH_HELLO, &pair.way[0], 5, MESSAGE);

    assert_true(dn_auth_opens(DN_AUTH_HELLO, &pair.way[0], 9, &message, MESSAGE, AT));
    assert_false(dn_auth_opens(DN_AUTH_HELLO, &pair.way[1], 9, &message, MESSAGE, AT));
    message = made(DN_AUTH_NONE, &pair.way[0], 5, MESSAGE);
    assert_false(dn_auth_opens(DN_AUTH_HELLO, &pair.way[0], 9, &message, MESSAGE, AT));
    assert_false(dn_auth_opens(DN_AUTH_FULL, &pair.way[0], 5, &message, MESSAGE, AT));
    assert_true(dn_auth_opens(DN_AUTH_NONE, &pair.way[0], 9, &message, MESSAGE, AT));
}

static message_t encrypted(const dn_auth_way_t *way, uint64_t number, const message_t *plain, size_t len)
{
    message_t message;

    dn_auth_encrypt(way, number, plain, len, AT, HEAD, &message);
    return message;
}

/** Computed from RFC 8439 in Python, which gives the RFC's own example, too. */
static void a_cipher_is_the_known_one(void **state)
{
    const dn_auth_pair_t pair = pair_of(&key, 1, 2);
    const message_t plain = plain_of(5), message = encrypted(&pair.way[DN_AUTH_OPENER], 5, &plain, 56);

    assert_hex(pair.way[DN_AUTH_OPENER].cipher, sizeof(pair.way[0].cipher),
               "b4710729eae03a435dc9ec1e5072305eff50a915776a2e18ea63e5677eddbe74");
    assert_hex(pair.way[DN_AUTH_ACCEPTOR].cipher, sizeof(pair.way[0].cipher),
               "0b6e01eac4e87d6b5ad3a7004d0a72eea4f28ce8914f27bd56162bece32d7a68");
    assert_hex(&message, 28, "05080b0e1114171a1d202326292c2f3235383b3e4144474a670c5e8d");
    assert_hex(message.byte + 28, 28, "f372087988dc11a49327b654e8f9533b24298a8bd0dfb72f228b29a2");
}

/** No bit of it can be changed, nor where it ends, and it is good under its number and in its direction alone. */
static void a_cipher_fits_one_message_alone(void **state)
{
    const dn_auth_pair_t pair = pair_of(&key, 1, 2), bad = pair_of(&other_key, 1, 2);
    const dn_auth_way_t *way = &pair.way[0];
    const message_t plain = plain_of(5);

    for (size_t len = HEAD + DN_AUTH_TAIL; len <= MESSAGE; len += 7) {
        const size_t end = len - DN_AUTH_TAIL;
        const message_t good = encrypted(way, 5, &plain, len);
        message_t copy = good;
        assert_true(dn_auth_decrypt(way, 5, &copy, len, AT, HEAD));
        assert_memory_equal(&copy, &plain, AT);
        assert_memory_equal(copy.byte + HEAD, plain.byte + HEAD, end - HEAD);
        for (size_t bit = 0; bit < 8 * len; bit++) {
            copy = good;
            copy.byte[bit / 8] ^= (uint8_t) (1U << bit % 8);
            assert_false(dn_auth_decrypt(way, 5, &copy, len, AT, HEAD));
        }
        for (size_t shorter = 0; shorter < len; shorter++) {
            copy = good;
            assert_false(dn_auth_decrypt(way, 5, &copy, shorter, AT, HEAD));
        }
        copy = good;
        assert_false(dn_auth_decrypt(way, 6, &copy, len, AT, HEAD));
        copy = good;
        assert_false(dn_auth_decrypt(way, 5 + (UINT64_C(1) << 32), &copy, len, AT, HEAD));
        copy = good;
        assert_false(dn_auth_decrypt(&pair.way[1], 5, &copy, len, AT, HEAD));
        copy = good;
        assert_false(dn_auth_decrypt(&bad.way[0], 5, &copy, len, AT, HEAD));
    }
}

/** Nothing that is encrypted is in what is sent, nor do two messages with the same bytes look alike. */
static void a_cipher_shows_its_head_alone(void **state)
{
    const dn_auth_pair_t pair = pair_of(&key, 1, 2);
    message_t plain, message[3];
    unsigned same = 0;

    memset(&plain, 'p', sizeof(plain));
    message[0] = encrypted(&pair.way[0], 5, &plain, MESSAGE);
    message[1] = encrypted(&pair.way[0], 6, &plain, MESSAGE);
    message[2] = encrypted(&pair.way[1], 5, &plain, MESSAGE);
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(&message[i], &plain, AT);
        for (size_t at = HEAD; at + 8 <= MESSAGE; at++) {
            assert_memory_not_equal(message[i].byte + at, plain.byte + at, 8);
        }
        for (size_t at = HEAD; at < MESSAGE; at++) {
            same += message[i].byte[at] == message[(i + 1) % 3].byte[at];
        }
    }
    /* One byte in 256 is by chance. */
    assert_true(16 > same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_the_known_ones),
        cmocka_unit_test(another_key_makes_nothing_that_fits),
        cmocka_unit_test(proofs_fit_one_connection_and_one_role),
        cmocka_unit_test(macs_differ_when_one_bit_does),
        cmocka_unit_test(groups_that_know_each_others_names_share_a_root),
        cmocka_unit_test(keys_of_small_numbers_are_weak),
        cmocka_unit_test(a_tag_fits_one_message_alone),
        cmocka_unit_test(a_word_is_that_of_its_direction),
        cmocka_unit_test(a_cipher_is_the_known_one),
        cmocka_unit_test(a_cipher_fits_one_message_alone),
        cmocka_unit_test(a_cipher_shows_its_head_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
