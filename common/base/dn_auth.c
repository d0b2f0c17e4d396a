/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_auth.h"

#include <sodium.h>
#include <string.h>

_Static_assert(sizeof(dn_auth_side_t) == 72, "both sides hash the same bytes");
_Static_assert(DN_AUTH_EXCHANGE == crypto_scalarmult_BYTES, "the public half is a point");
_Static_assert(sizeof(((dn_auth_way_t *) NULL)->key) == crypto_shorthash_KEYBYTES, "a key of SipHash");
_Static_assert(sizeof(uint64_t) == crypto_shorthash_BYTES, "a tag of SipHash");
_Static_assert(sizeof(((dn_auth_way_t *) NULL)->cipher) == crypto_aead_chacha20poly1305_IETF_KEYBYTES,
               "a key of ChaCha20");
_Static_assert(sizeof(uint64_t) + DN_AUTH_TAIL == crypto_aead_chacha20poly1305_IETF_ABYTES,
               "two halves of a tag of Poly1305");

/** Bytes of the name of a hash's purpose. Hashes of two purposes differ (BLAKE2b's personalization). */
#define DN_AUTH_PURPOSE crypto_generichash_blake2b_PERSONALBYTES
static const char dn_auth_for_root[DN_AUTH_PURPOSE + 1] = "dimmnet group   ";
static const char dn_auth_for_secret[DN_AUTH_PURPOSE + 1] = "dimmnet exchange";
static const char dn_auth_for_pgid[DN_AUTH_PURPOSE + 1] = "dimmnet pgid    ";
static const char dn_auth_for_groups[DN_AUTH_PURPOSE + 1] = "dimmnet groups  ";
static const char dn_auth_for_address[DN_AUTH_PURPOSE + 1] = "dimmnet address ";
static const char dn_auth_for_hello[DN_AUTH_PURPOSE + 1] = "dimmnet hello   ";
static const char dn_auth_for_pair[DN_AUTH_PURPOSE + 1] = "dimmnet pair    ";
static const char dn_auth_for_way[2][DN_AUTH_PURPOSE + 1] = {"dimmnet to      ", "dimmnet fro     "};
static const char dn_auth_for_cipher[2][DN_AUTH_PURPOSE + 1] = {"dimmnet cipher o", "dimmnet cipher a"};
static const char dn_auth_for_proof[2][DN_AUTH_PURPOSE + 1] = {"dimmnet opener  ", "dimmnet acceptor"};

/** A hash of bytes under a key. @param[in] key_len  0: no key, so that every process can make this hash. */
static void dn_auth_hash(const char *purpose, const void *key, size_t key_len, const void *bytes, size_t len,
                         void *hash, size_t hash_len)
{
    (void) crypto_generichash_blake2b_salt_personal(hash, hash_len, bytes, len, key, key_len, NULL,
                                                    (const uint8_t *) purpose);
}

/** Can the key be guessed? A launcher without random bytes makes a key of numbers that it has for other uses: each half is short then. */
static int dn_auth_is_weak(const dn_group_key_t *key)
{
    uint64_t half[2];

    memcpy(half, key->byte, sizeof(half));
    return half[0] <= UINT32_MAX || half[1] <= UINT32_MAX || half[0] == half[1];
}

dn_status_t dn_auth_group(const dn_group_key_t *key, dn_auth_group_t *group)
{
    if (0 > sodium_init()) {
        return DN_ERR_ACCESS;
    }
    dn_auth_hash(dn_auth_for_root, key->byte, sizeof(key->byte), NULL, 0, group->root, sizeof(group->root));
    dn_auth_hash(dn_auth_for_secret, key->byte, sizeof(key->byte), NULL, 0, group->secret,
                 sizeof(group->secret));
    (void) crypto_scalarmult_base(group->exchange, group->secret);
    dn_auth_pgid(group->exchange, &group->pgid);
    group->weak = dn_auth_is_weak(key);
    return DN_OK;
}

void dn_auth_pgid(const uint8_t exchange[DN_AUTH_EXCHANGE], dn_pgid_t *pgid)
{
    dn_auth_hash(dn_auth_for_pgid, NULL, 0, exchange, DN_AUTH_EXCHANGE, pgid->byte, sizeof(pgid->byte));
}

dn_status_t dn_auth_root(const dn_auth_group_t *group, const uint8_t exchange[DN_AUTH_EXCHANGE],
                         dn_auth_root_t *root)
{
    uint8_t both[2][DN_AUTH_EXCHANGE];
    uint8_t shared[crypto_scalarmult_BYTES];

    const int order = memcmp(group->exchange, exchange, DN_AUTH_EXCHANGE);
    if (0 == order) {
        memcpy(root->byte, group->root, sizeof(root->byte));
        return DN_OK;
    }
    if (0 != crypto_scalarmult(shared, group->secret, exchange)) {
        return DN_ERR_PROTO;
    }
    memcpy(both[order < 0 ? 0 : 1], group->exchange, DN_AUTH_EXCHANGE);
    memcpy(both[order < 0 ? 1 : 0], exchange, DN_AUTH_EXCHANGE);
    dn_auth_hash(dn_auth_for_groups, shared, sizeof(shared), both, sizeof(both), root->byte,
                 sizeof(root->byte));
    dn_auth_wipe(shared, sizeof(shared));
    return DN_OK;
}

void dn_auth_wipe(void *secret, size_t len)
{
    sodium_memzero(secret, len);
}

void dn_auth_random(void *bytes, size_t len)
{
    randombytes_buf(bytes, len);
}

void dn_auth_digest(const void *bytes, size_t len, uint8_t digest[32])
{
    dn_auth_hash(dn_auth_for_address, NULL, 0, bytes, len, digest, 32);
}

void dn_auth_mac(const dn_auth_root_t *root, const void *bytes, size_t len, uint8_t mac[DN_AUTH_MAC])
{
    dn_auth_hash(dn_auth_for_hello, root->byte, sizeof(root->byte), bytes, len, mac, DN_AUTH_MAC);
}

int dn_auth_same(const uint8_t one[DN_AUTH_MAC], const uint8_t other[DN_AUTH_MAC])
{
    return 0 == sodium_memcmp(one, other, DN_AUTH_MAC);
}

void dn_auth_pair(const dn_auth_root_t *root, const dn_auth_side_t *opener, const dn_auth_side_t *acceptor,
                  dn_auth_pair_t *pair)
{
    const dn_auth_side_t both[2] = {*opener, *acceptor};

    dn_auth_hash(dn_auth_for_pair, root->byte, sizeof(root->byte), both, sizeof(both), pair->base,
                 sizeof(pair->base));
    for (int role = 0; role < 2; role++) {
        uint8_t bytes[sizeof(pair->way[0].key) + sizeof(pair->way[0].word)];
        dn_auth_hash(dn_auth_for_way[role], pair->base, sizeof(pair->base), NULL, 0, bytes, sizeof(bytes));
        memcpy(pair->way[role].key, bytes, sizeof(pair->way[role].key));
        memcpy(&pair->way[role].word, bytes + sizeof(pair->way[role].key), sizeof(pair->way[role].word));
        dn_auth_wipe(bytes, sizeof(bytes));
        dn_auth_hash(dn_auth_for_cipher[role], pair->base, sizeof(pair->base), NULL, 0,
                     pair->way[role].cipher, sizeof(pair->way[role].cipher));
    }
}

void dn_auth_prove(const dn_auth_pair_t *pair, dn_auth_role_t role, const void *bytes, size_t len,
                   uint8_t mac[DN_AUTH_MAC])
{
    dn_auth_hash(dn_auth_for_proof[role], pair->base, sizeof(pair->base), bytes, len, mac, DN_AUTH_MAC);
}

uint64_t dn_auth_tag(const dn_auth_way_t *way, uint64_t number, void *message, size_t len, size_t at)
{
    uint64_t *place = (uint64_t *) ((uint8_t *) message + at);
    const uint64_t was = *place;
    uint64_t tag;

    /* The number is hashed where the tag will stand, so that all is in one piece. */
    *place = number;
    (void) crypto_shorthash((uint8_t *) &tag, message, len, way->key);
    *place = was;
    return tag;
}

/* Messages that nobody else reads */

/** The nonce of a message. The key belongs to one direction of one connection, so the number of the message suffices. */
static void dn_auth_nonce(uint64_t number, uint8_t nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES])
{
    memset(nonce, 0, crypto_aead_chacha20poly1305_IETF_NPUBBYTES);
    memcpy(nonce + crypto_aead_chacha20poly1305_IETF_NPUBBYTES - sizeof(number), &number, sizeof(number));
}

void dn_auth_encrypt(const dn_auth_way_t *way, uint64_t number, const void *message, size_t len, size_t at,
                     size_t clear, void *made)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES];
    uint8_t tag[crypto_aead_chacha20poly1305_IETF_ABYTES];
    uint8_t *to = made;

    dn_auth_nonce(number, nonce);
    memcpy(to, message, clear);
    memset(to + at, 0, sizeof(uint64_t));
    (void) crypto_aead_chacha20poly1305_ietf_encrypt_detached(
        to + clear, tag, NULL, (const uint8_t *) message + clear, len - clear - DN_AUTH_TAIL, to, clear, NULL,
        nonce, way->cipher);
    memcpy(to + at, tag, sizeof(uint64_t));
    memcpy(to + len - DN_AUTH_TAIL, tag + sizeof(uint64_t), DN_AUTH_TAIL);
}

int dn_auth_decrypt(const dn_auth_way_t *way, uint64_t number, void *message, size_t len, size_t at,
                    size_t clear)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES];
    uint8_t tag[crypto_aead_chacha20poly1305_IETF_ABYTES];
    uint8_t *from = message;

    if (len < clear + DN_AUTH_TAIL) {
        return 0;
    }
    dn_auth_nonce(number, nonce);
    memcpy(tag, from + at, sizeof(uint64_t));
    memcpy(tag + sizeof(uint64_t), from + len - DN_AUTH_TAIL, DN_AUTH_TAIL);
    memset(from + at, 0, sizeof(uint64_t));
    return 0
           == crypto_aead_chacha20poly1305_ietf_decrypt_detached(from + clear, NULL, from + clear,
                                                                 len - clear - DN_AUTH_TAIL, tag, from, clear,
                                                                 nonce, way->cipher);
}
