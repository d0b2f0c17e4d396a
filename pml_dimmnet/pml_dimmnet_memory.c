/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pml_dimmnet_memory.c
 * Memory of a message, from MPI's terms to the engine's.
 */
#include "dn_config.h"

#include "pml_dimmnet.h"

/** Make a convertor, for a type without a program. @return NULL: memory ran out. */
static opal_convertor_t *convertor_new(const void *buf, size_t count, const ompi_datatype_t *type, bool sends)
{
    opal_convertor_t *convertor = OBJ_NEW(opal_convertor_t);

    if (NULL == convertor) {
        return NULL;
    }
    if (sends) {
        (void) opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, buf, 0,
                                                        convertor);
    } else {
        (void) opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count, buf, 0,
                                                        convertor);
    }
    return convertor;
}

int mca_pml_dimmnet_memory_apart(dn_tag_req_t *req, opal_convertor_t **convertor_p, const void *buf,
                                 size_t count, ompi_datatype_t *type, bool sends)
{
    dn_tag_layout(req, NULL, count * type->super.size);
    req->walks = 0 != dn_ompi_prog_start(&req->cursor, type, count, buf);
    if (OPAL_LIKELY(req->walks || 0 == req->len)) {
        return OMPI_SUCCESS;
    }
    *convertor_p = convertor_new(buf, count, type, sends);
    req->layout = *convertor_p;
    return NULL == *convertor_p ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
}
