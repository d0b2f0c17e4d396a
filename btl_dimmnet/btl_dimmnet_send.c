/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file btl_dimmnet_send.c
 * Sending. A message leaves at once, copied, or waits for room behind the messages that wait already.
 *
 * Two threads may overtake each other between the look at the queue and the send. This does no harm: pml/ob1 numbers
 * the messages that must be matched in order.
 */
#include "dn_config.h"

#include "btl_dimmnet_frag.h"

/** Send a message whose data is gathered straight into the peer's window. */
static dn_status_t frag_gather(mca_btl_dimmnet_frag_t *frag)
{
    const mca_btl_base_segment_t *segment = frag->base.des_segments;
    const size_t len = segment[0].seg_len + segment[1].seg_len;
    dn_window_t window;
    dn_status_t status = dn_botf_reserve(frag->endpoint->peer, len, &window);

    if (DN_OK == status) {
        memcpy(window.data, segment[0].seg_addr.pval, segment[0].seg_len);
        (void) dn_prog_gather((char *) window.data + segment[0].seg_len, &frag->cursor, segment[1].seg_len);
        dn_botf_kick(frag->endpoint->peer, &window, DN_CHAN_BTL, frag->tag, len);
    }
    return status;
}

static dn_status_t frag_post(mca_btl_dimmnet_frag_t *frag)
{
    const mca_btl_base_segment_t *segment = frag->base.des_segments;
    const bool body = 1 < frag->base.des_segment_count;

    if (frag->walks) {
        return frag_gather(frag);
    }
    return dn_botf(frag->endpoint->peer, DN_CHAN_BTL, frag->tag, segment[0].seg_addr.pval, segment[0].seg_len,
                   body ? segment[1].seg_addr.pval : NULL, body ? segment[1].seg_len : 0);
}

/** The message was sent or has failed: call back and free, as the descriptor's flags say. */
static void frag_finish(mca_btl_dimmnet_frag_t *frag, int status)
{
    /* The flags are read first: a callback that owns the fragment may free it. */
    const uint32_t flags = frag->base.des_flags;

    if (0 != (MCA_BTL_DES_SEND_ALWAYS_CALLBACK & flags) && NULL != frag->base.des_cbfunc) {
        frag->base.des_cbfunc(mca_btl_dimmnet_module_of(frag->endpoint), frag->endpoint, &frag->base, status);
    }
    if (0 != (MCA_BTL_DES_FLAGS_BTL_OWNERSHIP & flags)) {
        mca_btl_dimmnet_frag_return(frag);
    }
}

static void frag_wait(mca_btl_base_endpoint_t *endpoint, mca_btl_dimmnet_frag_t *frag)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;

    /* The caller has not been told that the message is complete. */
    frag->base.des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
    mca_btl_dimmnet_mark(endpoint);
    OPAL_THREAD_LOCK(&module->lock);
    dn_queue_push(&module->waiting, &endpoint->waits, &frag->item);
    OPAL_THREAD_UNLOCK(&module->lock);
}

int mca_btl_dimmnet_send(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint,
                         mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    mca_btl_dimmnet_frag_t *frag = (mca_btl_dimmnet_frag_t *) descriptor;
    dn_status_t status = DN_ERR_AGAIN;

    frag->tag = tag;
    frag->endpoint = endpoint;
    if (OPAL_LIKELY(NULL == dn_load_relaxed(&endpoint->waits.items.first))) {
        status = frag_post(frag);
    }
    if (OPAL_LIKELY(DN_OK == status)) {
        frag_finish(frag, OPAL_SUCCESS);
        return 1;
    }
    if (DN_ERR_AGAIN == status) {
        frag_wait(endpoint, frag);
        return OPAL_SUCCESS;
    }
    if (DN_ERR_UNREACH == status) {
        mca_btl_dimmnet_lost(endpoint);
    }
    return dn_ompi_status(status);
}

/* Functions that are marked noinline stay out of line: if they were inlined, each small message would save their registers. */

/** Send data that has to be packed. It is packed straight into the peer's window, by the datatype's program if there is one. */
static dn_status_t __attribute__((noinline))
sendi_packed(mca_btl_base_endpoint_t *endpoint, struct opal_convertor_t *convertor, const void *header,
             size_t header_size, size_t payload_size, mca_btl_base_tag_t tag)
{
    dn_window_t window;
    dn_status_t status = dn_botf_reserve(endpoint->peer, header_size + payload_size, &window);

    if (OPAL_LIKELY(DN_OK == status)) {
        memcpy(window.data, header, header_size);
        (void) dn_ompi_prog_pack(convertor, (char *) window.data + header_size, payload_size);
        dn_botf_kick(endpoint->peer, &window, DN_CHAN_BTL, tag, header_size + payload_size);
    }
    return status;
}

/** Send without a descriptor, now or not at all. */
static inline dn_status_t sendi_once(mca_btl_base_endpoint_t *endpoint, struct opal_convertor_t *convertor,
                                     const void *header, size_t header_size, size_t payload_size,
                                     mca_btl_base_tag_t tag)
{
    void *data = NULL;

    if (0 != payload_size) {
        if (opal_convertor_need_buffers(convertor)) {
            return sendi_packed(endpoint, convertor, header, header_size, payload_size, tag);
        }
        opal_convertor_get_current_pointer(convertor, &data);
    }
    return dn_botf(endpoint->peer, DN_CHAN_BTL, tag, header, header_size, data, payload_size);
}

/** The most tries to send on a full ring. After these, the caller gets a descriptor, copies the message to it, and the copy waits.
 * While the receiver takes messages, room comes sooner than such a copy is made. */
#define SENDI_TRIES 50

static dn_status_t __attribute__((noinline))
sendi_again(mca_btl_base_endpoint_t *endpoint, struct opal_convertor_t *convertor, const void *header,
            size_t header_size, size_t payload_size, mca_btl_base_tag_t tag)
{
    dn_status_t status = DN_ERR_AGAIN;

    for (int i = 0; DN_ERR_AGAIN == status && i < SENDI_TRIES; i++) {
        dn_pause();
        status = sendi_once(endpoint, convertor, header, header_size, payload_size, tag);
    }
    return status;
}

/** The message was not sent. Give the caller a descriptor, to fill and to send. The convertor has not moved. */
static int __attribute__((noinline))
sendi_refused(mca_btl_base_endpoint_t *endpoint, dn_status_t status, struct opal_convertor_t *convertor,
              size_t header_size, size_t payload_size, uint8_t order, uint32_t flags,
              mca_btl_base_descriptor_t **descriptor)
{
    if (NULL != descriptor) {
        mca_btl_dimmnet_frag_t *frag = mca_btl_dimmnet_frag_get(header_size + payload_size, order, flags);

        *descriptor = NULL == frag ? NULL : &frag->base;
        if (0 != payload_size) {
            (void) dn_ompi_prog_adopt(convertor);
        }
    }
    if (DN_ERR_UNREACH == status) {
        mca_btl_dimmnet_lost(endpoint);
    }
    return dn_ompi_status(status);
}

int mca_btl_dimmnet_sendi(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint,
                          struct opal_convertor_t *convertor, void *header, size_t header_size,
                          size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                          mca_btl_base_descriptor_t **descriptor)
{
    dn_status_t status = DN_ERR_AGAIN;

    if (OPAL_LIKELY(NULL == dn_load_relaxed(&endpoint->waits.items.first))) {
        status = sendi_once(endpoint, convertor, header, header_size, payload_size, tag);
        if (DN_ERR_AGAIN == status) {
            status = sendi_again(endpoint, convertor, header, header_size, payload_size, tag);
        }
        if (OPAL_LIKELY(DN_OK == status)) {
            return OPAL_SUCCESS;
        }
    }
    return sendi_refused(endpoint, status, convertor, header_size, payload_size, order, flags, descriptor);
}

/** Send an endpoint's messages as far as there is room. Messages that were sent or have failed move to *done. The lock is held.
 * @return messages moved. */
static int send_drain(dn_queue_t *waits, dn_fifo_t *done)
{
    dn_queue_item_t *item;
    int count = 0;

    while (NULL != (item = dn_fifo_first(&waits->items))) {
        mca_btl_dimmnet_frag_t *frag = mca_btl_dimmnet_frag_of(item);
        dn_status_t status = frag_post(frag);

        if (DN_ERR_AGAIN == status) {
            break;
        }
        mca_btl_dimmnet_mark(frag->endpoint);
        frag->status = dn_ompi_status(status);
        dn_fifo_push(done, dn_queue_pop(&mca_btl_dimmnet.waiting, waits));
        count++;
    }
    return count;
}

int mca_btl_dimmnet_send_waiting(void)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    dn_fifo_t done = {0};
    dn_queue_item_t *item;
    dn_queue_t *waits;
    int count = 0;

    OPAL_THREAD_LOCK(&module->lock);
    for (uint32_t n = module->waiting.count; 0 != n && NULL != (waits = dn_round_turn(&module->waiting));
         n--) {
        count += send_drain(waits, &done);
    }
    OPAL_THREAD_UNLOCK(&module->lock);

    while (NULL != (item = dn_fifo_pop(&done))) {
        mca_btl_dimmnet_frag_t *frag = mca_btl_dimmnet_frag_of(item);

        if (OPAL_ERR_UNREACH == frag->status && dn_load_relaxed(&frag->endpoint->leaves)) {
            /* As mca_btl_dimmnet_send_forget(): ob1 would end the job. */
            mca_btl_dimmnet_frag_return(frag);
            continue;
        }
        if (OPAL_ERR_UNREACH == frag->status) {
            mca_btl_dimmnet_lost(frag->endpoint);
        }
        frag_finish(frag, frag->status);
    }
    return count;
}

void mca_btl_dimmnet_send_forget(mca_btl_base_endpoint_t *endpoint)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    dn_queue_item_t *item;

    OPAL_THREAD_LOCK(&module->lock);
    while (NULL != (item = dn_queue_pop(&module->waiting, &endpoint->waits))) {
        mca_btl_dimmnet_frag_return(mca_btl_dimmnet_frag_of(item));
    }
    OPAL_THREAD_UNLOCK(&module->lock);
}
