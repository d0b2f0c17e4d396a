/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura.h
 * Open MPI's matching transport layer by the engine of dn_tag.h: two-sided messages under pml/cm, for users that ask for pml/cm.
 * pml/dimmnet does the same, but without pml/cm's request and convertor for every message.
 */
#ifndef MTL_UZURA_H
#define MTL_UZURA_H

#include "dn_ompi_prog.h"
#include "dn_ompi_tag.h"

#include "ompi/mca/mtl/base/base.h"
#include "ompi/mca/mtl/mtl.h"

OMPI_DECLSPEC extern mca_mtl_base_component_2_0_0_t mca_mtl_uzura_component;
extern mca_mtl_base_module_t mca_mtl_uzura;

/** The engine, from the component's initialisation to the module's finalisation; else NULL. */
extern dn_tag_t *mca_mtl_uzura_tag;

/** A request. pml/cm allocates it behind its own request. */
typedef struct mtl_uzura_req {
    struct mca_mtl_request_t super;
    dn_tag_req_t req;
} mtl_uzura_req_t;

/** @name mtl_uzura_message.c */
/** @{ */
int mca_mtl_uzura_send(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dst, int tag,
                       struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode);
int mca_mtl_uzura_isend(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dst, int tag,
                        struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
                        mca_mtl_request_t *request);
int mca_mtl_uzura_irecv(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src, int tag,
                        struct opal_convertor_t *convertor, struct mca_mtl_request_t *request);
int mca_mtl_uzura_iprobe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src,
                         int tag, int *flag, struct ompi_status_public_t *status);
int mca_mtl_uzura_improbe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src,
                          int tag, int *matched, struct ompi_message_t **message,
                          struct ompi_status_public_t *status);
int mca_mtl_uzura_imrecv(struct mca_mtl_base_module_t *mtl, struct opal_convertor_t *convertor,
                         struct ompi_message_t **message, struct mca_mtl_request_t *request);
int mca_mtl_uzura_cancel(struct mca_mtl_base_module_t *mtl, mca_mtl_request_t *request, int flag);
/** @} */

#endif
