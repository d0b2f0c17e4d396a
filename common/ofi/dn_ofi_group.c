/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The process groups that are let in, and what this process shares with each: a secret that follows from both keys.
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <stdlib.h>
#include <string.h>

void dn_ofi_groups_free(dn_ofi_t *ofi)
{
    if (NULL != ofi->group) {
        dn_auth_wipe(ofi->group, ofi->ngroups * sizeof(*ofi->group));
        free(ofi->group);
    }
}

dn_status_t dn_ofi_group_add(dn_ofi_t *ofi, const dn_pgid_t *pgid)
{
    /* realloc() would leave secrets behind. */
    dn_ofi_group_t *group = calloc(ofi->ngroups + 1, sizeof(*group));

    if (NULL == group) {
        return DN_ERR_NOMEM;
    }
    if (NULL != ofi->group) {
        memcpy(group, ofi->group, ofi->ngroups * sizeof(*group));
    }
    dn_ofi_groups_free(ofi);
    ofi->group = group;
    group[ofi->ngroups++] = (dn_ofi_group_t){.pgid = *pgid};
    return DN_OK;
}

const dn_auth_root_t *dn_ofi_root(dn_ofi_t *ofi, const uint8_t exchange[DN_AUTH_EXCHANGE], dn_pgid_t *pgid)
{
    for (uint32_t i = 0; i < ofi->ngroups; i++) {
        dn_ofi_group_t *group = &ofi->group[i];
        if (group->met && 0 == memcmp(group->exchange, exchange, DN_AUTH_EXCHANGE)) {
            *pgid = group->pgid;
            return &group->root;
        }
    }
    dn_auth_pgid(exchange, pgid);
    for (uint32_t i = 0; i < ofi->ngroups; i++) {
        dn_ofi_group_t *group = &ofi->group[i];
        if (0 == memcmp(&group->pgid, pgid, sizeof(*pgid))) {
            if (DN_OK != dn_auth_root(dn_port_group(ofi->iface.port), exchange, &group->root)) {
                return NULL;
            }
            memcpy(group->exchange, exchange, DN_AUTH_EXCHANGE);
            group->met = 1;
            return &group->root;
        }
    }
    return NULL;
}
