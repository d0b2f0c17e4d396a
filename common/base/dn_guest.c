/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_guest.h"

#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

int dn_guests_may_come(const dn_auth_group_t *own, dn_auth_mode_t mode, const char *device)
{
    if (!own->weak || DN_AUTH_NONE == mode) {
        return 1;
    }
    dn_log_error("%s is passed over: the launcher has given this job a key of small numbers, which others "
                 "can guess; start it by mpirun, "
                 "or set auth to none where nobody else is on the network",
                 device);
    return 0;
}

/** Wipe and free the memory of groups, which holds secrets. */
static void dn_guests_free(dn_guest_t *guest, uint32_t count)
{
    if (NULL != guest) {
        dn_auth_wipe(guest, count * sizeof(*guest));
        free(guest);
    }
}

void dn_guests_close(dn_guests_t *guests)
{
    dn_guests_free(guests->guest, guests->count);
    *guests = (dn_guests_t){NULL, 0};
}

dn_status_t dn_guests_add(dn_guests_t *guests, const dn_pgid_t *pgid)
{
    /* realloc() would leave secrets behind. */
    dn_guest_t *guest = calloc(guests->count + 1, sizeof(*guest));

    if (NULL == guest) {
        return DN_ERR_NOMEM;
    }
    if (NULL != guests->guest) {
        memcpy(guest, guests->guest, guests->count * sizeof(*guest));
    }
    dn_guests_free(guests->guest, guests->count);
    guests->guest = guest;
    guest[guests->count++] = (dn_guest_t){.pgid = *pgid};
    return DN_OK;
}

const dn_auth_root_t *dn_guests_root(dn_guests_t *guests, const dn_auth_group_t *own,
                                     const uint8_t exchange[DN_AUTH_EXCHANGE], dn_pgid_t *pgid)
{
    for (uint32_t i = 0; i < guests->count; i++) {
        const dn_guest_t *guest = &guests->guest[i];
        if (guest->met && 0 == memcmp(guest->exchange, exchange, DN_AUTH_EXCHANGE)) {
            *pgid = guest->pgid;
            return &guest->root;
        }
    }
    dn_auth_pgid(exchange, pgid);
    for (uint32_t i = 0; i < guests->count; i++) {
        dn_guest_t *guest = &guests->guest[i];
        if (0 == memcmp(&guest->pgid, pgid, sizeof(*pgid))) {
            if (DN_OK != dn_auth_root(own, exchange, &guest->root)) {
                return NULL;
            }
            memcpy(guest->exchange, exchange, DN_AUTH_EXCHANGE);
            guest->met = 1;
            return &guest->root;
        }
    }
    return NULL;
}
