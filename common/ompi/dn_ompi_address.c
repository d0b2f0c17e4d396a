/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_address.c
 * How processes learn each other's addresses: from the modex where the port was opened in MPI_Init, and by name, through the launcher,
 * what is told later. That is the address of a port that was opened for a first window, and the one with a network, once somebody
 * is elsewhere.
 */
#include "dn_config.h"

#include "dn_ompi_int.h"

#include <stdio.h>

#include "ompi/runtime/mpiruntime.h"

/** Key of our addresses in the modex; all components share the port, so it is none's own. */
#define MODEX_KEY "dimmnet"

static char *told[DN_OMPI_ADDRESSES]; /**< names under which this process has published; NULL: nothing */

/** @return the caller's to free(), NULL: no memory. */
static char *name_of(enum dn_ompi_address which, const opal_process_name_t *proc)
{
    static const char *const kind[] = {[DN_OMPI_ADDRESS_FIRST] = "first", [DN_OMPI_ADDRESS_FAR] = "far"};
    char *name;

    return 0 > asprintf(&name, "dimmnet.%s.%lu.%lu", kind[which], (unsigned long) proc->jobid,
                        (unsigned long) proc->vpid)
               ? NULL
               : name;
}

int dn_ompi_address_tell(enum dn_ompi_address which, void *bytes, size_t len)
{
    int rc;

    if (DN_OMPI_ADDRESS_FIRST == which && OMPI_MPI_STATE_INIT_COMPLETED > ompi_mpi_state) {
        OPAL_MODEX_SEND_STRING(rc, DN_OMPI_MODEX_GLOBAL, (char *) (uintptr_t) MODEX_KEY, bytes, len);
        return rc;
    }
    told[which] = name_of(which, &OPAL_PROC_MY_NAME);
    rc = NULL == told[which] ? OPAL_ERR_OUT_OF_RESOURCE : dn_ompi_publish(told[which], bytes, len);
    if (OPAL_SUCCESS != rc) {
        free(told[which]);
        told[which] = NULL;
    }
    return rc;
}

void dn_ompi_address_forget(void)
{
    for (int i = 0; i < DN_OMPI_ADDRESSES; i++) {
        if (NULL != told[i]) {
            dn_ompi_unpublish(told[i]);
            free(told[i]);
            told[i] = NULL;
        }
    }
}

int dn_ompi_address_look_up(enum dn_ompi_address which, const opal_process_name_t *proc, void **bytes_p,
                            size_t *len_p)
{
    char *name = name_of(which, proc);
    const int rc = NULL == name ? OPAL_ERR_OUT_OF_RESOURCE : dn_ompi_look_up(name, proc, bytes_p, len_p);

    free(name);
    return rc;
}

int dn_ompi_address_find(const opal_process_name_t *proc, void **bytes_p, size_t *len_p)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    int rc;

    OPAL_MODEX_RECV_STRING(rc, (char *) (uintptr_t) MODEX_KEY, proc, &bytes, &len);
    if (OPAL_SUCCESS == rc && NULL != bytes && 0 != len) {
        *bytes_p = bytes;
        *len_p = len;
        return OPAL_SUCCESS;
    }
    free(bytes);
    rc = dn_ompi_address_look_up(DN_OMPI_ADDRESS_FIRST, proc, bytes_p, len_p);
    if (OPAL_SUCCESS == rc && (NULL == *bytes_p || 0 == *len_p)) {
        free(*bytes_p);
        return OPAL_ERR_NOT_FOUND;
    }
    return rc;
}
