/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_guest.h
 * The process groups that a device of a network admits. With each of them this process shares a secret, which follows from
 * the keys of both groups (dn_auth.h).
 *
 * Threads: the caller holds a lock. A structure of zeros admits no group.
 */
#ifndef DN_GUEST_H
#define DN_GUEST_H

#include "dn_auth.h"

/** The record of a process that has greeted is kept for so many time limits (timeout_s). Such a process says HELLO for one limit, and then
 * waits for an answer to its PROOF for up to two, before it gives this process up. */
#define DN_GUEST_LIMITS 3u
/** The record is kept for this time at least: that process may have a longer limit than this one. */
#define DN_GUEST_KEPT_NS UINT64_C(60000000000)

/** How long is the record of a process kept that has greeted, and whose PROOF does not come? @param[in] timeout_ns  The time limit; 0: there
 * is none. @return 0: for ever, as that process waits for ever. */
static inline uint64_t dn_guest_kept_ns(uint64_t timeout_ns)
{
    const uint64_t limits = DN_GUEST_LIMITS * timeout_ns;

    return 0 != limits && limits < DN_GUEST_KEPT_NS ? DN_GUEST_KEPT_NS : limits;
}

/** An admitted group. */
typedef struct dn_guest {
    dn_pgid_t pgid;
    int met; /**< not 0: a process of the group has come, and the fields below are known */
    uint8_t exchange[DN_AUTH_EXCHANGE]; /**< public half of the group's key pair */
    dn_auth_root_t root;                /**< secret that this process's group shares with that group */
} dn_guest_t;

typedef struct dn_guests {
    dn_guest_t *guest;
    uint32_t count;
} dn_guests_t;

/** May a process of group @p own open a device of a network? @return 0: no, as outsiders can guess the group's key, and would
 * be admitted. A log line has said that @p device is passed over, and what to do. */
int dn_guests_may_come(const dn_auth_group_t *own, dn_auth_mode_t mode, const char *device);

/** Admit the group with this PGID from now on. @retval DN_ERR_NOMEM  nothing has changed. */
dn_status_t dn_guests_add(dn_guests_t *guests, const dn_pgid_t *pgid);

/** The secret that group @p own, to which this process belongs, shares with the group of this public half. @param[out] pgid
 * The PGID of that group. @return NULL: that group is not admitted. */
const dn_auth_root_t *dn_guests_root(dn_guests_t *guests, const dn_auth_group_t *own,
                                     const uint8_t exchange[DN_AUTH_EXCHANGE], dn_pgid_t *pgid);

/** Forget all groups, and wipe their secrets. */
void dn_guests_close(dn_guests_t *guests);

#endif
