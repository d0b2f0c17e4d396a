/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_auth.h
 * How processes of a network prove their identity to each other. This file knows no device: each device that leaves the host uses it
 * in the same way.
 *
 * A process group has a secret key of 128 bits, which its launcher gives to its processes. The key is never sent. These values
 * follow from the key, each by a keyed hash (BLAKE2b) with a purpose of its own:
 *
 *     key --> root of the group                        shared by its processes
 *         --> secret half of the group's exchange      X25519
 *                 --> public half --> PGID             both are public: they stand in addresses
 *
 * Two groups that admit each other share a root, too. It follows from the secret half of one group and the public half of
 * the other group. So a process that admits a PGID trusts the processes that have the key behind that PGID, and no others.
 *
 * A connection has an *opener* and an *acceptor*, and begins with three messages:
 *
 *     opener -> acceptor   HELLO      the opener's side; dn_auth_mac() by the root over the whole HELLO. The HELLO holds the
 *                                     acceptor's nonce. So only members can make it, and no other acceptor takes it
 *     acceptor -> opener   CHALLENGE  the acceptor's random bytes; dn_auth_prove() by DN_AUTH_ACCEPTOR
 *     opener -> acceptor   PROOF      dn_auth_prove() by DN_AUTH_OPENER
 *
 * Both proofs, and the secrets of the pair, follow from both sides: the random bytes, nonce, PID and address of each side, in
 * the order of their roles. So no proof is valid for another pair, another connection, or the other direction. A process that
 * sends a copy of an old HELLO to the acceptor cannot make the PROOF. Before the PROOF the acceptor keeps no more than a record
 * of bounded size and life, and sends no more bytes than it has received.
 *
 * From then on each message carries eight bytes of dn_auth_seal(): a secret word of the direction (DN_AUTH_HELLO), or a tag
 * over the message's bytes and its number of 64 bits (DN_AUTH_FULL, SipHash-2-4). The word keeps out processes that cannot read
 * the traffic. The tag also keeps out processes that can: a message that is forged, changed, or was seen before is not taken.
 * With DN_AUTH_ENCRYPTED a message goes through dn_auth_encrypt() instead (ChaCha20-Poly1305 of RFC 8439): a process that reads
 * the traffic can read only the head of the message. The holder of a secret wipes the secret when it is not needed any more.
 *
 * Threads: the functions have no state of their own. The caller owns the structures that it passes.
 *
 * Pinned by test/unit/dn_auth_takes_only_what_its_peer_has_made.c.
 */
#ifndef DN_AUTH_H
#define DN_AUTH_H

#include "dn_types.h"

#define DN_AUTH_MAC      16u /**< bytes of a proof */
#define DN_AUTH_RANDOM   16u /**< bytes that a side adds to a connection */
#define DN_AUTH_EXCHANGE 32u /**< bytes of the public half of a group */

/** The values that a group derives from its key. Secret, but for exchange and pgid. */
typedef struct dn_auth_group {
    uint8_t root[32];                   /**< shared by its processes */
    uint8_t secret[32];                 /**< secret half of the exchange */
    uint8_t exchange[DN_AUTH_EXCHANGE]; /**< public half of the exchange */
    dn_pgid_t pgid;                     /**< follows from the public half */
    int weak;                           /**< not 0: the key can be guessed */
} dn_auth_group_t;

/** The secret that the processes of two groups share, or the processes of one group. */
typedef struct dn_auth_root {
    uint8_t byte[32]; /**< all secrets of connections follow from it */
} dn_auth_root_t;

/** The values that a side brings into a connection. Public. */
typedef struct dn_auth_side {
    uint8_t random[DN_AUTH_RANDOM]; /**< dn_auth_random(), anew for each connection */
    uint64_t nonce[2];              /**< nonce of its port */
    uint8_t address[32];            /**< dn_auth_digest() of its device's part of an address */
    uint32_t pid;                   /**< PID of its process */
    uint32_t pad;                   /**< 0 */
} dn_auth_side_t;

/** The role of a process in a connection. */
typedef enum dn_auth_role { DN_AUTH_OPENER, DN_AUTH_ACCEPTOR } dn_auth_role_t;

/** The secrets of one direction. */
typedef struct dn_auth_way {
    uint8_t key[16];    /**< key of tags (DN_AUTH_FULL) */
    uint64_t word;      /**< word of DN_AUTH_HELLO */
    uint8_t cipher[32]; /**< key of DN_AUTH_ENCRYPTED */
} dn_auth_way_t;

/** The secrets of a connection. */
typedef struct dn_auth_pair {
    uint8_t base[32];     /**< key of the proofs */
    dn_auth_way_t way[2]; /**< by the role of the sender */
} dn_auth_pair_t;

/** @name Groups */
/** @{ */

/**
 * Derive the values of a group from its key. Called once for each port.
 *
 * @retval DN_ERR_ACCESS  libsodium does not start, as without random numbers: allow getrandom in the sandbox.
 */
DN_DEVICE_API dn_status_t dn_auth_group(const dn_group_key_t *key, dn_auth_group_t *group);

/** The PGID of the group with this public half. */
DN_DEVICE_API void dn_auth_pgid(const uint8_t exchange[DN_AUTH_EXCHANGE], dn_pgid_t *pgid);

/**
 * The secret that the processes of this group share with the processes of another group, or with each other.
 *
 * @param[in] exchange  The public half of the other group. The caller has checked that dn_auth_pgid() of it is an admitted
 *                      PGID.
 *
 * @retval DN_ERR_PROTO  no group has such a public half.
 */
DN_DEVICE_API dn_status_t dn_auth_root(const dn_auth_group_t *group, const uint8_t exchange[DN_AUTH_EXCHANGE],
                                       dn_auth_root_t *root);
/** @} */

/** Overwrite a secret, or memory that holds secrets, before the memory is given back. */
DN_DEVICE_API void dn_auth_wipe(void *secret, size_t len);

/** @name Three messages */
/** @{ */

/** Random bytes, which no process can foretell. */
DN_DEVICE_API void dn_auth_random(void *bytes, size_t len);

/** A hash, without a key, of bytes of any length. */
DN_DEVICE_API void dn_auth_digest(const void *bytes, size_t len, uint8_t digest[32]);

/** The MAC at the end of a HELLO, over the bytes before it. */
DN_DEVICE_API void dn_auth_mac(const dn_auth_root_t *root, const void *bytes, size_t len,
                               uint8_t mac[DN_AUTH_MAC]);

/** Are two MACs the same? The time of this call does not tell where they differ. */
DN_DEVICE_API int dn_auth_same(const uint8_t one[DN_AUTH_MAC], const uint8_t other[DN_AUTH_MAC]);

/** The secrets of a connection. Both sides get the same secrets. */
DN_DEVICE_API void dn_auth_pair(const dn_auth_root_t *root, const dn_auth_side_t *opener,
                                const dn_auth_side_t *acceptor, dn_auth_pair_t *pair);

/** The proof that a side of role @p role knows the secrets of the pair. The proof also covers @p bytes. */
DN_DEVICE_API void dn_auth_prove(const dn_auth_pair_t *pair, dn_auth_role_t role, const void *bytes,
                                 size_t len, uint8_t mac[DN_AUTH_MAC]);
/** @} */

/** @name Messages */
/** @{ */

/** The tag of a message of DN_AUTH_FULL. Callers use dn_auth_seal() and dn_auth_opens() instead. */
DN_DEVICE_API uint64_t dn_auth_tag(const dn_auth_way_t *way, uint64_t number, void *message, size_t len,
                                   size_t at);

/**
 * Write the eight bytes by which a message shows its sender.
 *
 * @param[in]     number   Number of the message in its direction. No two messages have the same number.
 * @param[in,out] message  The whole message, as it is sent; aligned to 8 bytes.
 * @param[in]     at       Offset of the eight bytes: a multiple of 8, at most len - 8.
 */
static inline void dn_auth_seal(dn_auth_mode_t mode, const dn_auth_way_t *way, uint64_t number, void *message,
                                size_t len, size_t at)
{
    *(uint64_t *) ((uint8_t *) message + at) = DN_AUTH_FULL == mode
                                                   ? dn_auth_tag(way, number, message, len, at)
                                               : DN_AUTH_HELLO == mode ? way->word
                                                                       : 0;
}

/**
 * Was a message made by a holder of the secrets of this direction? With DN_AUTH_FULL: with these very bytes, under this
 * number. The caller takes no number twice.
 *
 * @param[in] message  As for dn_auth_seal(). The call changes the message, and restores it before it returns.
 */
static inline int dn_auth_opens(dn_auth_mode_t mode, const dn_auth_way_t *way, uint64_t number, void *message,
                                size_t len, size_t at)
{
    const uint64_t says = *(const uint64_t *) ((const uint8_t *) message + at);

    if (DN_AUTH_FULL == mode) {
        return says == dn_auth_tag(way, number, message, len, at);
    }
    return DN_AUTH_NONE == mode || (DN_AUTH_HELLO == mode && says == way->word);
}
/** @} */

/** @name Encrypted messages (DN_AUTH_ENCRYPTED) */
/** @{ */

/** Bytes at the end of an encrypted message: the second half of its tag. The first half stands where dn_auth_seal() would write. */
#define DN_AUTH_TAIL 8u

/**
 * Encrypt a message. Its first bytes stay in clear; the tag covers them, too.
 *
 * @param[in]  number   Number of the message in its direction. The caller never gives a number twice, not even after a message that was
 *                      not sent: two messages under one number betray their contents.
 * @param[in]  message  @p len bytes. Of these, the last DN_AUTH_TAIL bytes, and eight bytes at @p at, have no meaning.
 * @param[in]  at       Offset of these eight bytes, within the bytes that stay in clear.
 * @param[in]  clear    Bytes that stay in clear, at most len - DN_AUTH_TAIL.
 * @param[out] made     @p len bytes, apart from @p message.
 */
DN_DEVICE_API void dn_auth_encrypt(const dn_auth_way_t *way, uint64_t number, const void *message, size_t len,
                                   size_t at, size_t clear, void *made);

/**
 * Decrypt a message where it lies.
 *
 * @param[in,out] message  Afterwards the message that was given to dn_auth_encrypt(), but for the bytes without meaning.
 *
 * @return 0: no holder of the secrets of this direction has made this message under this number. The encrypted bytes are overwritten.
 */
DN_DEVICE_API int dn_auth_decrypt(const dn_auth_way_t *way, uint64_t number, void *message, size_t len,
                                  size_t at, size_t clear);
/** @} */

#endif
