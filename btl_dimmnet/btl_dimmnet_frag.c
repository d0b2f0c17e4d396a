/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "btl_dimmnet_frag.h"

int mca_btl_dimmnet_frag_init(opal_free_list_item_t *item, void *list)
{
    mca_btl_dimmnet_frag_t *frag = (mca_btl_dimmnet_frag_t *) item;

    frag->list = list;
    frag->base.des_segments = frag->segments;
    return OPAL_SUCCESS;
}

OBJ_CLASS_INSTANCE(mca_btl_dimmnet_frag_t, mca_btl_base_descriptor_t, NULL, NULL);
OBJ_CLASS_INSTANCE(mca_btl_dimmnet_registration_t, opal_free_list_item_t, NULL, NULL);
