/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi.h
 * What the components of one process share: the MCA variables of libdimmnet, one port, the exchange of addresses, and
 * the texts of errors.
 *
 * Threads: dn_ompi_register(), dn_ompi_open() and dn_ompi_close() are called where Open MPI opens and
 * closes components, one at a time. dn_ompi_connect() may be called by several threads.
 */
#ifndef DN_OMPI_H
#define DN_OMPI_H

#include <time.h>

#include "dimmnet.h"
#include "dn_ompi_text.h"
#include "dn_param.h"

#include "compat.h"

/** The values of the MCA variables, by sections of dn_params.def. A member is set when its section is
 * registered. */
typedef struct dn_ompi_params {
    dn_config_t port;
    dn_tag_limits_t tag;
    dn_mpi_params_t mpi;
    dn_btl_params_t btl;
    dn_pml_params_t pml;
    dn_mtl_params_t mtl;
    dn_coll_params_t coll;
    dn_osc_params_t osc;
} dn_ompi_params_t;

/** Components only read it. */
extern DN_API dn_ompi_params_t dn_ompi_params;

/** Was a value of a section refused? A help text has said so: the component withdraws when it is
 * initialised. */
DN_API bool dn_ompi_params_refused(dn_param_section_t section);

/**
 * Register the MCA variables of dn_params.def that several components share, and those of @p section, the component's own section. A
 * component calls this first in its register function.
 *
 * @param[in] built  The version of dimmnet whose headers the component was compiled with.
 *
 * @retval OPAL_SUCCESS            also when a value was refused: dn_ompi_params_refused() tells.
 * @retval OPAL_ERR_NOT_AVAILABLE  dimmnet was built for another Open MPI, or Open MPI's structures differ; or the component, this library
 *                                 and libdimmnet are of different versions. A help text has said so; return this from the register function.
 */
DN_API int dn_ompi_register_built(const mca_base_component_t *component, dn_param_section_t section,
                                  const char *built);

static inline int dn_ompi_register(const mca_base_component_t *component, dn_param_section_t section)
{
    return dn_ompi_register_built(component, section, DN_VERSION);
}

/** When a port is opened. Only the caller knows this: a session of MPI-4 has a modex of its own, as MPI_Init has. */
enum dn_ompi_when {
    DN_OMPI_AHEAD_OF_MODEX, /**< where a PML, an MTL or a BTL is initialised, or a coll component is opened */
    DN_OMPI_AFTER_MODEX,    /**< at any time later */
};

/**
 * Open the port of this process, or share the open port. Tell its address to all processes that MPI may connect. Ahead of the
 * modex this costs nothing; later, each process asks the launcher for each address.
 *
 * @param[in]  when    The time of this call.
 * @param[out] port_p  Lent until dn_ompi_close().
 *
 * @retval OPAL_ERR_BAD_PARAM  a variable was refused, with a help text.
 * @retval other               from libdimmnet, which has logged why, or from the launcher. After any error the component withdraws.
 */
DN_API int dn_ompi_open(enum dn_ompi_when when, dn_port_t **port_p);

/**
 * Whether Open MPI itself gives its core away when it waits: the user says so, or the launcher knows of more
 * processes than cores. Where several (virtual) hosts share cores, only the user knows.
 */
DN_API bool dn_ompi_yields(void);

/**
 * Whether a thread of dimmnet may be in the port, beside the threads of the program. Users of the port then take the
 * locks that they take with MPI_THREAD_MULTIPLE. Open MPI's own locks are on then. Call this after
 * dn_ompi_register().
 */
static inline bool dn_ompi_helper_thread(void)
{
    return 0 != dn_ompi_params.mpi.helper_thread;
}

/** Undo one dn_ompi_open(). The last call closes the port. */
DN_API void dn_ompi_close(void);

/** Whether a device in the list reaches other hosts. The answer is the same on all hosts, also where a host cannot
 * open this device. */
DN_API bool dn_ompi_leaves_host(void);

/** Whether the job has processes on several hosts. */
DN_API bool dn_ompi_spans_hosts(void);

/** Whether the list `auto` needed its network, and could not open it. A help text has said so. */
DN_API bool dn_ompi_far_has_failed(void);

/** May several threads be in MPI at once? With sessions they may, since a session that asks for threads may follow a session that did
 * not. */
static inline bool dn_ompi_threads(void)
{
    return ompi_mpi_thread_multiple
           || (DN_OMPI_BEGINS_AGAIN && OMPI_MPI_STATE_NOT_INITIALIZED == ompi_mpi_state);
}

/** Counters of the open port, or of the port that was open last; zeros before the first. */
DN_API void dn_ompi_counters(dn_counters_t *counters);

/**
 * Connect to a process by the address that the process has told before this call. PMIx names the processes of other jobs,
 * and has authenticated them, so their process group is let in.
 *
 * @param[out] peer_p  The caller's until dn_disconnect().
 *
 * @retval OPAL_ERR_UNREACH  no address, or out of reach: leave the process to another transport.
 * @retval other             libdimmnet has logged why; leave the process to another transport, too.
 */
DN_API int dn_ompi_connect(opal_proc_t *proc, dn_peer_t **peer_p);

/** Whether Open MPI has added a process to the processes that pml/ob1 sends to. No thread takes Open MPI's lock to add
 * the process any more then. */
DN_API bool dn_ompi_added(const opal_proc_t *proc);

/**
 * Whether the job ends because libdimmnet has reported a process lost (dn_lost_set()). A process of the own job: yes,
 * unless MPI_Finalize has begun here, since the process may have left in order then. A process of another job may
 * finalize while this job goes on: its loss matters only to a process that still waits for it.
 *
 * @param[in] proc  NULL: a process that has sent, and to which this process has not connected.
 */
DN_API bool dn_ompi_loss_matters(const opal_proc_t *proc);

/** Say that a process is lost, once for its host, unless libdimmnet has just said more of a process there.
 * @param[in] proc  NULL: it is not known which process. */
DN_API void dn_ompi_say_lost(const opal_proc_t *proc);

/**
 * Show a text of dn_ompi_text.h, once on each host of a job. The process prints the text at once, without the launcher:
 * Open MPI 4.1 loses some of the texts that it relays to mpirun.
 */
DN_API void dn_ompi_help(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Nanoseconds of a clock that never goes back, for what waits: dn_clock_ns() is inside of libdimmnet. */
static inline uint64_t dn_ompi_clock_ns(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

/** Translate a status; all components use this function. DN_INPROGRESS is success: the operation was accepted. */
static inline int dn_ompi_status(dn_status_t status)
{
    switch (status) {
    case DN_OK:
    case DN_INPROGRESS:
        return OPAL_SUCCESS;
    case DN_ERR_AGAIN:
        return OPAL_ERR_OUT_OF_RESOURCE;
    case DN_ERR_PARAM:
        return OPAL_ERR_BAD_PARAM;
    case DN_ERR_RANGE:
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    case DN_ERR_UNREACH:
        return OPAL_ERR_UNREACH;
    case DN_ERR_UNSUPPORTED:
        return OPAL_ERR_NOT_SUPPORTED;
    case DN_ERR_NOMEM:
        return OPAL_ERR_OUT_OF_RESOURCE;
    case DN_ERR_PROTO:
    case DN_ERR_VERSION:
        return OPAL_ERR_COMM_FAILURE;
    case DN_ERR_ACCESS:
        return OPAL_ERR_PERM;
    case DN_ERR_TRUNC:
    case DN_ERR_CANCELED:
        break;
    }
    return OPAL_ERROR;
}

#endif
