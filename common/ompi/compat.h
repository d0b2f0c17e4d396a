/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file compat.h
 * Differences between Open MPI 4.1, 5.0 and 6.0. Only this file depends on which of them dimmnet is built for.
 */
#ifndef DN_OMPI_COMPAT_H
#define DN_OMPI_COMPAT_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#ifdef HAVE_OMPI_COUNT_ARRAY_T
#    include "ompi/util/count_disp_array.h"
#endif
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "opal/mca/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/btl/base/base.h"
#include "opal/util/proc.h"

#ifdef HAVE_OPAL_MCA_THREADS_THREADS_H
#    include "opal/mca/threads/mutex.h"
#    include "opal/mca/threads/threads.h"
#else
#    include "opal/threads/mutex.h"
#    include "opal/threads/threads.h"
#endif

#ifdef HAVE_OPAL_MCA_PMIX_PMIX_INTERNAL_H
#    include "opal/mca/pmix/pmix-internal.h"
#    define DN_OMPI_MODEX_GLOBAL PMIX_GLOBAL
/** Whether a question to the modex waits for ever when a process of another host has told nothing there. */
#    define DN_OMPI_MODEX_WAITS true
#else
#    include "ompi/mca/rte/rte.h"
#    include "opal/mca/pmix/pmix.h"
#    define DN_OMPI_MODEX_GLOBAL OPAL_PMIX_GLOBAL
#    define DN_OMPI_MODEX_WAITS  false
#endif

/** @name Versions of the frameworks, for the first line of a component's structure */
/** @{ */
#ifdef HAVE_OMPI_COUNT_ARRAY_T
#    define DN_OMPI_COLL_VERSION  MCA_COLL_BASE_VERSION_3_0_0
#    define DN_OMPI_OSC_VERSION   OMPI_OSC_BASE_VERSION_4_0_0
#    define DN_OMPI_PML_VERSION   MCA_PML_BASE_VERSION_2_1_0
#    define DN_OMPI_MPOOL_VERSION MCA_MPOOL_BASE_VERSION_3_1_0
#elif defined(HAVE_MCA_COLL_BASE_MODULE_T_COLL_AGREE)
#    define DN_OMPI_COLL_VERSION  MCA_COLL_BASE_VERSION_2_4_0
#    define DN_OMPI_OSC_VERSION   OMPI_OSC_BASE_VERSION_3_0_0
#    define DN_OMPI_PML_VERSION   MCA_PML_BASE_VERSION_2_1_0
#    define DN_OMPI_MPOOL_VERSION MCA_MPOOL_BASE_VERSION_3_1_0
#else
#    define DN_OMPI_COLL_VERSION  MCA_COLL_BASE_VERSION_2_0_0
#    define DN_OMPI_OSC_VERSION   OMPI_OSC_BASE_VERSION_3_0_0
#    define DN_OMPI_PML_VERSION   MCA_PML_BASE_VERSION_2_0_0
#    define DN_OMPI_MPOOL_VERSION MCA_MPOOL_BASE_VERSION_3_0_0
#endif
/** @} */

/** @name Counts of elements, units of displacements, and arrays of counts and displacements by rank
 * In Open MPI 6.0, counts and units have 64 bits, and an array has elements of int or of 64 bits.
 */
/** @{ */
#ifdef HAVE_OMPI_COUNT_ARRAY_T
typedef size_t dn_ompi_count_t;
typedef ptrdiff_t dn_ompi_unit_t;
typedef ompi_count_array_t dn_ompi_counts_t;
typedef ompi_disp_array_t dn_ompi_starts_t;
typedef ompi_disp_array_t dn_ompi_places_t;
#else
typedef int dn_ompi_count_t;
typedef int dn_ompi_unit_t;
typedef const int *dn_ompi_counts_t;
typedef const int *dn_ompi_starts_t;
typedef const ptrdiff_t *dn_ompi_places_t; /**< displacements in bytes, of a collective among neighbors */
#endif

static inline size_t dn_ompi_count_at(dn_ompi_counts_t counts, int rank)
{
#ifdef HAVE_OMPI_COUNT_ARRAY_T
    return ompi_count_array_get(counts, (size_t) rank);
#else
    return (size_t) counts[rank];
#endif
}

static inline ptrdiff_t dn_ompi_start_at(dn_ompi_starts_t starts, int rank)
{
#ifdef HAVE_OMPI_COUNT_ARRAY_T
    return ompi_disp_array_get(starts, (size_t) rank);
#else
    return starts[rank];
#endif
}

static inline ptrdiff_t dn_ompi_place_at(dn_ompi_places_t places, int i)
{
#ifdef HAVE_OMPI_COUNT_ARRAY_T
    return ompi_disp_array_get(places, (size_t) i);
#else
    return places[i];
#endif
}
/** @} */

/** Put a function and its module into a communicator: those of the module that is enabled, or those that were there before. Up to
 * Open MPI 5.0, Open MPI takes the functions from the module itself, and this does nothing. */
#if HAVE_DECL_MCA_COLL_INSTALL_API
#    define DN_OMPI_COLL_INSTALL(comm, name, function, module) \
        MCA_COLL_INSTALL_API(comm, name, function, module, "llcm")
#else
#    define DN_OMPI_COLL_INSTALL(comm, name, function, module) \
        ((void) (comm), (void) (function), (void) (module))
#endif

/** A character of the strings that an info key's callback takes: opal_key_interest_callback_t. */
#ifdef DN_OMPI_INFO_CONST
typedef const char dn_ompi_info_char_t;
#else
typedef char dn_ompi_info_char_t;
#endif

#ifdef HAVE_MCA_MTL_BASE_COMPONENT_2_0_0_T_ACCELERATOR_SUPPORT
/** By this parameter an MTL tells whether it takes memory of accelerators. mtl/uzura does not, and leaves the value as it is. */
#    define DN_OMPI_MTL_INIT_MORE , bool *accelerator_support
#else
#    define DN_OMPI_MTL_INIT_MORE
#endif

#ifdef HAVE_MCA_BTL_BASE_RECEIVE_DESCRIPTOR_T
/** The function that dumps an enumerator has one more parameter. dimmnet's enumerators do not use it. */
#    define DN_OMPI_ENUM_DUMP_MORE , mca_base_var_enum_dump_type_t output_type
#    define DN_OMPI_ENUM_DUMP_TEXT , MCA_BASE_VAR_ENUM_DUMP_READABLE
#else
#    define DN_OMPI_ENUM_DUMP_MORE
#    define DN_OMPI_ENUM_DUMP_TEXT
#endif

/**
 * The key that the launcher has made at random for this job: 16 hexadecimal digits, a hyphen, and 16 more digits.
 * @return the caller's to free(); NULL: the launcher gives no key.
 */
static inline char *dn_ompi_job_key(void)
{
    char *key = NULL;

#ifdef HAVE_OPAL_MCA_PMIX_PMIX_INTERNAL_H
    opal_process_name_t job = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = OPAL_VPID_WILDCARD};
    int rc;

    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, PMIX_CREDENTIAL, &job, &key, PMIX_STRING);
    if (PMIX_SUCCESS == rc && NULL != key) {
        return key;
    }
#endif
    key = getenv("OMPI_MCA_orte_precondition_transports");
    return NULL == key ? NULL : strdup(key);
}

/** @name Bytes that processes tell each other by name, after the modex and across jobs */
/** @{ */
/** Publish bytes under a name, until dn_ompi_unpublish(). @return OPAL_SUCCESS, or why not. */
static inline int dn_ompi_publish(const char *name, void *bytes, size_t len)
{
#ifdef HAVE_OPAL_MCA_PMIX_PMIX_INTERNAL_H
    pmix_byte_object_t object = {.bytes = bytes, .size = len};
    pmix_info_t info;

    PMIX_INFO_LOAD(&info, name, &object, PMIX_BYTE_OBJECT);
    const pmix_status_t status = PMIx_Publish(&info, 1);
    PMIX_INFO_DESTRUCT(&info);
    return PMIX_SUCCESS == status ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
#else
    opal_value_t *value = OBJ_NEW(opal_value_t);
    opal_list_t list;
    int rc = OPAL_ERR_NOT_SUPPORTED;

    OBJ_CONSTRUCT(&list, opal_list_t);
    value->key = strdup(name);
    value->type = OPAL_BYTE_OBJECT;
    value->data.bo.bytes = bytes;
    value->data.bo.size = (int32_t) len;
    opal_list_append(&list, &value->super);
    if (NULL != value->key && NULL != opal_pmix.publish) {
        rc = opal_pmix.publish(&list);
    }
    value->data.bo.bytes = NULL; /* the bytes are the caller's, and are not freed with the value */
    OPAL_LIST_DESTRUCT(&list);
    return rc;
#endif
}

/** Withdraw the bytes that this process has published under a name. */
static inline void dn_ompi_unpublish(char *name)
{
    char *names[] = {name, NULL};

#ifdef HAVE_OPAL_MCA_PMIX_PMIX_INTERNAL_H
    (void) PMIx_Unpublish(names, NULL, 0);
#else
    if (NULL != opal_pmix.unpublish) {
        (void) opal_pmix.unpublish(names, NULL);
    }
#endif
}

/**
 * Look up the bytes that a process has published under a name.
 * @param[in]  from     The process. Bytes that another process has published under that name do not count.
 * @param[out] bytes_p  The caller's to free().
 * @retval OPAL_ERR_NOT_FOUND  The process has published nothing yet.
 */
static inline int dn_ompi_look_up(const char *name, const opal_process_name_t *from, void **bytes_p,
                                  size_t *len_p)
{
    int rc = OPAL_ERR_NOT_SUPPORTED;

#ifdef HAVE_OPAL_MCA_PMIX_PMIX_INTERNAL_H
    opal_process_name_t publisher;
    pmix_pdata_t found;

    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, name);
    const pmix_status_t status = PMIx_Lookup(&found, 1, NULL, 0);
    if (PMIX_SUCCESS == status && PMIX_BYTE_OBJECT == found.value.type) {
        OPAL_PMIX_CONVERT_PROCT(rc, &publisher, &found.proc);
        if (OPAL_SUCCESS == rc && publisher.jobid == from->jobid && publisher.vpid == from->vpid) {
            *bytes_p = found.value.data.bo.bytes;
            *len_p = found.value.data.bo.size;
            found.value.data.bo.bytes = NULL;
        } else {
            rc = OPAL_ERR_NOT_FOUND;
        }
    } else if (PMIX_ERR_NOT_FOUND == status || PMIX_SUCCESS == status) {
        rc = OPAL_ERR_NOT_FOUND;
    }
    PMIX_PDATA_DESTRUCT(&found);
#else
    opal_pmix_pdata_t *found = OBJ_NEW(opal_pmix_pdata_t);
    opal_list_t list;

    OBJ_CONSTRUCT(&list, opal_list_t);
    found->value.key = strdup(name);
    opal_list_append(&list, &found->super);
    if (NULL != found->value.key && NULL != opal_pmix.lookup) {
        rc = opal_pmix.lookup(&list, NULL);
    }
    if (OPAL_SUCCESS == rc && OPAL_BYTE_OBJECT == found->value.type && found->proc.jobid == from->jobid
        && found->proc.vpid == from->vpid) {
        *bytes_p = found->value.data.bo.bytes;
        *len_p = (size_t) found->value.data.bo.size;
        found->value.data.bo.bytes = NULL;
    } else if (OPAL_SUCCESS == rc) {
        rc = OPAL_ERR_NOT_FOUND;
    }
    OPAL_LIST_DESTRUCT(&list);
#endif
    return rc;
}
/** @} */

/** @name Memory in the buffer that the user has attached for buffered sends
 * In Open MPI 6.0 a communicator may have such a buffer of its own. The communicator is held until the memory is freed.
 */
/** @{ */
static inline void *dn_ompi_attached_alloc(struct ompi_communicator_t *comm, size_t len)
{
#ifdef HAVE_MCA_PML_BSEND_BUFFER_T
    void *buffer = mca_pml_base_bsend_request_alloc_buf(comm, len);

    if (NULL != buffer) {
        OBJ_RETAIN(comm);
    }
    return buffer;
#else
    (void) comm;
    return mca_pml_base_bsend_request_alloc_buf(len);
#endif
}

static inline void dn_ompi_attached_free(struct ompi_communicator_t *comm, void *buffer)
{
#ifdef HAVE_MCA_PML_BSEND_BUFFER_T
    (void) mca_pml_base_bsend_request_free(comm, buffer);
    OBJ_RELEASE(comm);
#else
    (void) comm;
    (void) mca_pml_base_bsend_request_free(buffer);
#endif
}
/** @} */

/** May a process begin MPI again after it has ended MPI? With sessions it may. */
#ifdef MPI_SESSION_NULL
#    define DN_OMPI_BEGINS_AGAIN true
#else
#    define DN_OMPI_BEGINS_AGAIN false
#endif

/** @name The number of a communicator, by which its messages are matched
 * Open MPI 5.0 makes communicators from groups. Each process may give such a communicator a different number. Their extended number is the
 * same in all processes: it is their name.
 */
/** @{ */
#ifdef HAVE_OMPI_COMM_EXTENDED_CID_T
/** By this flag a PML or an MTL says that it matches such communicators. */
#    define DN_OMPI_PML_FLAGS MCA_PML_BASE_FLAG_SUPPORTS_EXT_CID
#    define DN_OMPI_MTL_FLAGS MCA_MTL_BASE_FLAG_SUPPORTS_EXT_CID
#else
#    define DN_OMPI_PML_FLAGS 0
#    define DN_OMPI_MTL_FLAGS 0
#endif

/** A communicator's number in this process; below 2^31. */
static inline uint32_t dn_ompi_comm_context(const struct ompi_communicator_t *comm)
{
#ifdef HAVE_OMPI_COMM_EXTENDED_CID_T
    return comm->c_index;
#else
    return (uint32_t) comm->c_contextid;
#endif
}

/** Is a communicator's number the same in all its processes? */
static inline bool dn_ompi_comm_is_global(const struct ompi_communicator_t *comm)
{
#ifdef HAVE_OMPI_COMM_EXTENDED_CID_T
    return 0 != OMPI_COMM_IS_GLOBAL_INDEX(comm);
#else
    return true;
#endif
}

/** A communicator's extended number, in two words. */
static inline void dn_ompi_comm_extended(const struct ompi_communicator_t *comm, uint64_t number[2])
{
#ifdef HAVE_OMPI_COMM_EXTENDED_CID_T
    number[0] = comm->c_contextid.cid_base;
    number[1] = comm->c_contextid.cid_sub.u64;
#else
    number[0] = dn_ompi_comm_context(comm);
    number[1] = 0;
#endif
}
/** @} */

/** Index in ompi_proc_t::proc_endpoints of the process's dn_tag_peer_t: the place of an MTL. If Open MPI was built without MTLs, it is the
 * place of a PML that is not in use. */
#ifdef OMPI_PROC_ENDPOINT_TAG_MTL
#    define DN_OMPI_ENDPOINT_TAG OMPI_PROC_ENDPOINT_TAG_MTL
#else
#    define DN_OMPI_ENDPOINT_TAG OMPI_PROC_ENDPOINT_TAG_PML
#endif

/** The number of processes of this job. */
static inline uint32_t dn_ompi_job_size(void)
{
#ifdef HAVE_OPAL_MCA_PMIX_PMIX_INTERNAL_H
    return opal_process_info.num_procs;
#else
    return (uint32_t) ompi_process_info.num_procs;
#endif
}

/** Give a message to the callback of its tag. @return false: no callback is registered for the tag. */
static inline bool dn_ompi_am_deliver(struct mca_btl_base_module_t *btl,
                                      struct mca_btl_base_endpoint_t *endpoint, unsigned tag,
                                      const void *data, size_t len)
{
    const mca_btl_active_message_callback_t *to = mca_btl_base_active_message_trigger + tag;
    mca_btl_base_segment_t segment;

    if (MCA_BTL_TAG_MAX <= tag || NULL == to->cbfunc) {
        return false;
    }
    segment.seg_addr.pval = (void *) (uintptr_t) data;
    segment.seg_len = len;
#ifdef HAVE_MCA_BTL_BASE_RECEIVE_DESCRIPTOR_T
    const mca_btl_base_receive_descriptor_t descriptor = {.endpoint = endpoint,
                                                          .des_segments = &segment,
                                                          .des_segment_count = 1,
                                                          .tag = (mca_btl_base_tag_t) tag,
                                                          .cbdata = to->cbdata};
    to->cbfunc(btl, &descriptor);
#else
    /* Receivers read only the segments. To clear the rest would cost more than the call. */
    mca_btl_base_descriptor_t descriptor;
    descriptor.des_segments = &segment;
    descriptor.des_segment_count = 1;
    descriptor.des_cbfunc = NULL;
    descriptor.des_flags = 0;
    to->cbfunc(btl, (mca_btl_base_tag_t) tag, &descriptor, to->cbdata);
    (void) endpoint;
#endif
    return true;
}

#endif
