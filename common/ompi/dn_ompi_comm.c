/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_comm.c
 * The numbers of communicators that come from groups. Threads: any.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "dn_ompi_int.h"
#include "dn_ompi_tag.h"

#include <stdio.h>

/** As dn_ompi_name(), of the number of a communicator. */
static char *name_of(const struct ompi_communicator_t *comm, const opal_process_name_t *proc)
{
    uint64_t number[2];
    char what[64];

    dn_ompi_comm_extended(comm, number);
    snprintf(what, sizeof(what), "comm.%llx.%llx", (unsigned long long) number[0],
             (unsigned long long) number[1]);
    return dn_ompi_name(what, proc);
}

/** Does a process of the communicator ask another one for its number? */
static bool is_asked(struct ompi_communicator_t *comm)
{
    return !dn_ompi_comm_is_global(comm) && (OMPI_COMM_IS_INTER(comm) || 1 < ompi_comm_size(comm));
}

int dn_ompi_comm_add(struct ompi_communicator_t *comm)
{
    uint32_t context = dn_ompi_comm_context(comm);

    if (!is_asked(comm)) {
        return OMPI_SUCCESS;
    }
    char *name = name_of(comm, &OPAL_PROC_MY_NAME);
    const int rc = NULL == name ? OMPI_ERR_OUT_OF_RESOURCE : dn_ompi_publish(name, &context, sizeof(context));
    free(name);
    return rc;
}

void dn_ompi_comm_del(dn_tag_t *tag, struct ompi_communicator_t *comm)
{
    dn_tag_forget(tag, dn_ompi_comm_context(comm));
    if (!is_asked(comm)) {
        return;
    }
    char *name = name_of(comm, &OPAL_PROC_MY_NAME);
    if (NULL != name) {
        dn_ompi_unpublish(name);
        free(name);
    }
}

/** Ask the launcher, until it knows. @return 0: nothing was told in time. */
static uint32_t look_up(struct ompi_communicator_t *comm, const opal_process_name_t *proc)
{
    char *name = name_of(comm, proc);
    void *told = NULL;
    uint32_t context = 0;
    size_t len = 0;

    if (NULL != name && OPAL_SUCCESS == dn_ompi_await(name, proc, &told, &len) && sizeof(context) == len) {
        memcpy(&context, told, len);
    }
    free(told);
    free(name);
    return context;
}

bool dn_ompi_comm_ask(struct ompi_communicator_t *comm, int rank, uint32_t *context)
{
    const opal_process_name_t *proc = &ompi_comm_peer_lookup(comm, rank)->super.proc_name;
    uint32_t *known = dn_ompi_comm_contexts(comm);

    if (0 == opal_compare_proc(OPAL_PROC_MY_NAME, *proc)) {
        return true;
    }
    /* Threads may ask at the same time, and get the same answer. */
    *context = NULL == known ? 0 : dn_load_relaxed(&known[rank]);
    if (OPAL_LIKELY(0 != *context)) {
        return true;
    }
    *context = look_up(comm, proc);
    if (NULL != known && 0 != *context) {
        dn_store_relaxed(&known[rank], *context);
    }
    if (0 == *context) {
        dn_ompi_help("no-number", opal_process_info.nodename, OPAL_NAME_PRINT(*proc));
    }
    return 0 != *context;
}
