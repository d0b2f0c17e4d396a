/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_int.h
 * Between the files of libmca_common_dimmnet.
 */
#ifndef DN_OMPI_INT_H
#define DN_OMPI_INT_H

#include "dn_ompi.h"

/** What the MCA variables of common_dimmnet say. */
typedef struct dn_ompi_settings {
    char *devices;      /**< dn_open()'s list */
    dn_config_t config; /**< its strings live as long as the variables */
    bool refused;       /**< a value was not accepted; the user has been told */
} dn_ompi_settings_t;

/** Register the variables unless they are, and the synonyms of @p component. */
void dn_ompi_var_register(const mca_base_component_t *component);
/** Are the variables of this initialisation of Open MPI registered? */
bool dn_ompi_var_registered(void);
/** Read them. */
void dn_ompi_var_get(dn_ompi_settings_t *settings);

#endif
