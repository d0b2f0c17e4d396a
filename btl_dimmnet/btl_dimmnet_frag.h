/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file btl_dimmnet_frag.h
 * A descriptor of a message: room for all of its bytes; or room for its header only, with the data in the user's memory.
 * The user's data, and its datatype, stay as they are until the upper layer is told that the message was sent.
 */
#ifndef MCA_BTL_DIMMNET_FRAG_H
#define MCA_BTL_DIMMNET_FRAG_H

#include "btl_dimmnet.h"
#include "dn_ompi_prog.h"

/** Bytes in a small fragment. They take the longest header of pml/ob1 (RGET, 72 bytes) with a registration handle (48 bytes). */
#define MCA_BTL_DIMMNET_SMALL 256

typedef struct mca_btl_dimmnet_frag_t {
    mca_btl_base_descriptor_t base;
    mca_btl_base_segment_t segments[2]; /**< [0]: in data; [1], when used: user memory */
    opal_free_list_t *list;             /**< the list that it comes from */
    mca_btl_base_endpoint_t *endpoint;  /**< the receiver, from mca_btl_dimmnet_send() on */
    dn_queue_item_t item;               /**< while the message waits, and until the upper layer is told */
    int status;                         /**< OPAL_*: the result of a message that has waited */
    mca_btl_base_tag_t tag;
    bool walks;              /**< the bytes of [1] are gathered when they are sent */
    dn_prog_cursor_t cursor; /**< where the gathering begins */
    uint64_t data[];
} mca_btl_dimmnet_frag_t;
OBJ_CLASS_DECLARATION(mca_btl_dimmnet_frag_t);

static inline mca_btl_dimmnet_frag_t *mca_btl_dimmnet_frag_of(dn_queue_item_t *item)
{
    return (mca_btl_dimmnet_frag_t *) ((char *) item - offsetof(mca_btl_dimmnet_frag_t, item));
}

/** opal_free_list_item_init_fn_t; @p list is the free list of the item. */
int mca_btl_dimmnet_frag_init(opal_free_list_item_t *item, void *list);

/** A fragment with one segment of @p size bytes. @return NULL: too long, or the most fragments are in use, or no memory. */
static inline mca_btl_dimmnet_frag_t *mca_btl_dimmnet_frag_get(size_t size, uint8_t order, uint32_t flags)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    mca_btl_dimmnet_frag_t *frag = NULL;

    if (MCA_BTL_DIMMNET_SMALL >= size) {
        frag = (mca_btl_dimmnet_frag_t *) opal_free_list_get(&module->frags_small);
    } else if (module->super.btl_eager_limit >= size) {
        frag = (mca_btl_dimmnet_frag_t *) opal_free_list_get(&module->frags_eager);
    } else if (module->super.btl_max_send_size >= size) {
        frag = (mca_btl_dimmnet_frag_t *) opal_free_list_get(&module->frags_max);
    }
    if (OPAL_LIKELY(NULL != frag)) {
        frag->segments[0].seg_addr.pval = frag->data;
        frag->segments[0].seg_len = size;
        frag->base.des_segment_count = 1;
        frag->base.des_cbfunc = NULL;
        frag->base.des_flags = flags;
        frag->base.order = order;
        frag->walks = false;
    }
    return frag;
}

static inline void mca_btl_dimmnet_frag_return(mca_btl_dimmnet_frag_t *frag)
{
    opal_free_list_return(frag->list, &frag->base.super);
}

#endif
