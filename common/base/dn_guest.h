/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_guest.h
 * The process groups that a device of a network lets in, and what this process shares with each: a secret that follows
 * from both keys (dn_auth.h).
 *
 * Threads: the caller's lock. All zeros: nobody is let in.
 */
#ifndef DN_GUEST_H
#define DN_GUEST_H

#include "dn_auth.h"

/** A group that is let in. */
typedef struct dn_guest {
    dn_pgid_t pgid;
    int met;                            /**< the rest is known: one of its processes was met */
    uint8_t exchange[DN_AUTH_EXCHANGE]; /**< its public half */
    dn_auth_root_t root;                /**< what we share with it */
} dn_guest_t;

typedef struct dn_guests {
    dn_guest_t *guest;
    uint32_t count;
} dn_guests_t;

/** May a device of a network be opened by a process of group @p own? @return 0: others can guess the group's key, and would be let in. A
 * sentence has said that @p device is passed over, and what to do. */
int dn_guests_may_come(const dn_auth_group_t *own, dn_auth_mode_t mode, const char *device);

/** Let in a group of this name, from now on. @retval DN_ERR_NOMEM  nothing has changed. */
dn_status_t dn_guests_add(dn_guests_t *guests, const dn_pgid_t *pgid);

/** What this process, of group @p own, shares with the group of this public half. @param[out] pgid  Its name.
 * @return NULL: the group was not let in. */
const dn_auth_root_t *dn_guests_root(dn_guests_t *guests, const dn_auth_group_t *own,
                                     const uint8_t exchange[DN_AUTH_EXCHANGE], dn_pgid_t *pgid);

/** Forget them, and wipe what is secret. */
void dn_guests_close(dn_guests_t *guests);

#endif
