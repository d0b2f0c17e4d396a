/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_auth.h
 * How processes of a network prove their identity to each other. This file knows no device: each device that leaves the host uses it
 * in the same way.
 *
 * A process group has a secret key of 128 bits, which its launcher hands to its processes. The key is never
 * sent. From it follow, each by a keyed hash (BLAKE2b) of its own purpose:
 *
 *     key --> root of the group                        shared by its processes
 *         --> secret half of the group's exchange      X25519
 *                 --> public half --> PGID             both are public: they stand in addresses
 *
 * Two groups that let each other in share a root, too: by the secret half of one and the public half of the
 * other. A process that lets a PGID in therefore trusts the processes that have the key behind that PGID, and
 * no others.
 *
 * A connection has an *opener* and an *acceptor*, and three messages come ahead of all others:
 *
 *     opener -> acceptor   HELLO      the opener's side; dn_auth_mac() by the root over all of it, the acceptor's number
 *                                     among it, so that only members make one, and it can be used nowhere else
 *     acceptor -> opener   CHALLENGE  the acceptor's random bytes; dn_auth_prove() by DN_AUTH_ACCEPTOR
 *     opener -> acceptor   PROOF      dn_auth_prove() by DN_AUTH_OPENER
 *
 * Both proofs, and the secrets of the pair, follow from both sides: random bytes, number, PID and address of
 * each, in the order of their roles. So no proof is good for another pair, another connection, or the other
 * direction. An acceptor that sees a HELLO for the second time gets no PROOF for it. Before the PROOF the
 * acceptor keeps no more than a record of bounded size and life, and sends no more than it was sent.
 *
 * From then on each message carries eight bytes of dn_auth_seal(): a secret word of the direction
 * (DN_AUTH_HELLO), or a tag over its bytes and its number of 64 bits (DN_AUTH_FULL, SipHash-2-4). The word
 * holds off processes that cannot read the traffic. The tag holds off those that can, too: a message that is
 * forged, changed, or was seen before is not taken. With DN_AUTH_ENCRYPTED a message goes through dn_auth_encrypt() instead
 * (ChaCha20-Poly1305 of RFC 8439): nobody on the way reads more of it than its head. The holder of a secret wipes
 * it when it is not needed any more.
 *
 * Threads: functions without state of their own; what they are given is the caller's.
 *
 * Pinned by test/unit/dn_auth_takes_only_what_its_peer_has_made.c.
 */
#ifndef DN_AUTH_H
#define DN_AUTH_H

#include "dn_types.h"

#define DN_AUTH_MAC      16u /**< bytes of a proof */
#define DN_AUTH_RANDOM   16u /**< bytes that a side adds to a connection */
#define DN_AUTH_EXCHANGE 32u /**< bytes of the public half of a group */

/** What a group derives from its key. Secret, but for exchange and pgid. */
typedef struct dn_auth_group {
    uint8_t root[32];                   /**< shared by its processes */
    uint8_t secret[32];                 /**< secret half of the exchange */
    uint8_t exchange[DN_AUTH_EXCHANGE]; /**< public half of it */
    dn_pgid_t pgid;                     /**< follows from the public half */
    int weak;                           /**< the key can be guessed */
} dn_auth_group_t;

/** What the processes of two groups share, or those of one. Secret. */
typedef struct dn_auth_root {
    uint8_t byte[32]; /**< all secrets of connections follow from it */
} dn_auth_root_t;

/** What a side of a connection brings in. Public. */
typedef struct dn_auth_side {
    uint8_t random[DN_AUTH_RANDOM]; /**< dn_auth_random(), anew for each connection */
    uint64_t nonce[2];              /**< of its port */
    uint8_t address[32];            /**< dn_auth_digest() of how it is reached */
    uint32_t pid;                   /**< PID of its process */
    uint32_t pad;                   /**< 0 */
} dn_auth_side_t;

/** Which side of a connection a process is. */
typedef enum dn_auth_role { DN_AUTH_OPENER, DN_AUTH_ACCEPTOR } dn_auth_role_t;

/** The secrets of one direction. */
typedef struct dn_auth_way {
    uint8_t key[16];    /**< of tags (DN_AUTH_FULL) */
    uint64_t word;      /**< of DN_AUTH_HELLO */
    uint8_t cipher[32]; /**< key of DN_AUTH_ENCRYPTED */
} dn_auth_way_t;

/** The secrets of a connection. */
typedef struct dn_auth_pair {
    uint8_t base[32];     /**< what proofs are made with */
    dn_auth_way_t way[2]; /**< by the role of the sender */
} dn_auth_pair_t;

/** @name Groups */
/** @{ */

/**
 * Derive what a group needs. Called once a port.
 *
 * @retval DN_ERR_ACCESS  the library for this does not start, as without random numbers: allow getrandom in the sandbox.
 */
DN_DEVICE_API dn_status_t dn_auth_group(const dn_group_key_t *key, dn_auth_group_t *group);

/** The PGID of the group whose public half is this. */
DN_DEVICE_API void dn_auth_pgid(const uint8_t exchange[DN_AUTH_EXCHANGE], dn_pgid_t *pgid);

/**
 * What the processes of this group share with those of another, or with each other.
 *
 * @param[in] exchange  The public half of the other group. The caller has compared dn_auth_pgid() of it with one that was
 *                      let in.
 *
 * @retval DN_ERR_PROTO  no group has such a public half.
 */
DN_DEVICE_API dn_status_t dn_auth_root(const dn_auth_group_t *group, const uint8_t exchange[DN_AUTH_EXCHANGE],
                                       dn_auth_root_t *root);
/** @} */

/** Overwrite what is secret, or has secrets in it, before its memory is given back. */
DN_DEVICE_API void dn_auth_wipe(void *secret, size_t len);

/** @name Three messages */
/** @{ */

/** Bytes that nobody can foretell. */
DN_DEVICE_API void dn_auth_random(void *bytes, size_t len);

/** A short name of bytes of any length. */
DN_DEVICE_API void dn_auth_digest(const void *bytes, size_t len, uint8_t digest[32]);

/** What a HELLO ends with: a MAC over the bytes before. */
DN_DEVICE_API void dn_auth_mac(const dn_auth_root_t *root, const void *bytes, size_t len,
                               uint8_t mac[DN_AUTH_MAC]);

/** Are two MACs the same? Takes the same time wherever they differ. */
DN_DEVICE_API int dn_auth_same(const uint8_t one[DN_AUTH_MAC], const uint8_t other[DN_AUTH_MAC]);

/** The secrets of a connection. Both sides get the same. */
DN_DEVICE_API void dn_auth_pair(const dn_auth_root_t *root, const dn_auth_side_t *opener,
                                const dn_auth_side_t *acceptor, dn_auth_pair_t *pair);

/** The proof of one role that it knows them, and means @p bytes (len 0: nothing more). */
DN_DEVICE_API void dn_auth_prove(const dn_auth_pair_t *pair, dn_auth_role_t role, const void *bytes,
                                 size_t len, uint8_t mac[DN_AUTH_MAC]);
/** @} */

/** @name Messages */
/** @{ */

/** The tag of a message of DN_AUTH_FULL; dn_auth_seal() and dn_auth_opens() are what callers use. */
DN_DEVICE_API uint64_t dn_auth_tag(const dn_auth_way_t *way, uint64_t number, void *message, size_t len,
                                   size_t at);

/**
 * Write the eight bytes by which a message shows its sender.
 *
 * @param[in]     number   Of the message in its direction, never the same twice.
 * @param[in,out] message  All of it, as it is sent.
 * @param[in]     at       Where the eight bytes are, a multiple of 8 at most len - 8; message is aligned to 8.
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
 * Was a message made by a holder of the secrets of this direction? With DN_AUTH_FULL: as it is, under this
 * number. The caller sees to it that no number is taken twice.
 *
 * @param[in] message  As for dn_auth_seal(). It is the same afterwards, but not meanwhile.
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

/** @name Messages that nobody else reads (DN_AUTH_ENCRYPTED) */
/** @{ */

/** Bytes at the end of such a message: the second half of its tag. The first half stands where dn_auth_seal() would write. */
#define DN_AUTH_TAIL 8u

/**
 * Encrypt a message. Its first bytes stay in clear; the tag covers them, too.
 *
 * @param[in]  number   Of the message in its direction. The caller never gives one twice, not even for a message that was not sent: two
 *                      messages under one number betray what is in them.
 * @param[in]  message  @p len bytes, of which the last DN_AUTH_TAIL, and eight at @p at, do not count.
 * @param[in]  at       Where the eight bytes are, within those in clear.
 * @param[in]  clear    Bytes that stay in clear, at most len - DN_AUTH_TAIL.
 * @param[out] made     @p len bytes, apart from @p message.
 */
DN_DEVICE_API void dn_auth_encrypt(const dn_auth_way_t *way, uint64_t number, const void *message, size_t len,
                                   size_t at, size_t clear, void *made);

/**
 * Decrypt a message where it lies.
 *
 * @param[in,out] message  Afterwards as dn_auth_encrypt() was given it, but for the bytes that do not count.
 *
 * @return 0: no holder of the secrets of this direction made it so, under this number. What was encrypted is overwritten.
 */
DN_DEVICE_API int dn_auth_decrypt(const dn_auth_way_t *way, uint64_t number, void *message, size_t len,
                                  size_t at, size_t clear);
/** @} */

#endif
