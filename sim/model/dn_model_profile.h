/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_model_profile.h
 * A NIC as numbers, read from a file.
 */
#ifndef DN_MODEL_PROFILE_H
#define DN_MODEL_PROFILE_H

#include "dn_model.h"

typedef enum dn_model_param {
#define DN_PARAM(id, key, unit, must, value, min, max, meaning) DN_P_##id,
#include "dn_model_param.h"
#undef DN_PARAM
    DN_P_COUNT
} dn_model_param_t;

struct dn_model_profile {
    char name[64];
    uint64_t value[DN_P_COUNT];
};

/** Read the text of a profile; @p origin is what error texts call it. @p nic 0: keys of a NIC may be
 * missing. */
dn_status_t dn_model_profile_parse(dn_model_profile_t *profile, const char *origin, const char *text,
                                   int nic);
/** Find a file by its name or path and read it. */
dn_status_t dn_model_profile_load(dn_model_profile_t *profile, const char *name);
/** Take the keys of switches, of cables and of what is agreed on a link from another file, which need not
 * have any other. */
dn_status_t dn_model_profile_load_fabric(dn_model_profile_t *profile, const char *name);

#endif
