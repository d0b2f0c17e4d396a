/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file btl_dimmnet_aside.c
 * Messages of processes that Open MPI has not added yet, with MPI_THREAD_MULTIPLE.
 *
 * A message is delivered with the port's lock held. Its receiver may want to answer. The first answer to a process adds
 * this process, under a lock of Open MPI's own (mca_bml_lock). Another thread that connects may hold that lock, and wait
 * for the port's lock. Each of the two threads would wait for the other for ever. So such a message is copied, and
 * delivered when the thread has left the port. Once the process is added, no thread takes Open MPI's lock for it again,
 * and its messages are delivered where they lie.
 *
 * Later messages may overtake a message that is put aside. pml/ob1 allows this. It numbers the messages that must be matched in order
 * (MATCH, RNDV, RGET). The other messages (ACK, PUT, FIN, FRAG) come only after an answer of this process. The answer has added the
 * sender, so these messages are not put aside.
 */
#include "dn_config.h"

#include "btl_dimmnet.h"

/** A message that waits. */
struct mca_btl_dimmnet_aside {
    dn_queue_item_t item; /**< first: in mca_btl_dimmnet_t::aside */
    mca_btl_base_module_t *module;
    mca_btl_base_endpoint_t *endpoint; /**< NULL: the sender had none when it came, or has none any more */
    unsigned tag;
    size_t len;
    uint64_t data[];
};

bool mca_btl_dimmnet_put_aside(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint, unsigned tag,
                               const void *data, size_t len)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    struct mca_btl_dimmnet_aside *aside = malloc(sizeof(*aside) + len);

    if (NULL == aside) {
        return false;
    }
    aside->module = btl;
    aside->endpoint = endpoint;
    aside->tag = tag;
    aside->len = len;
    memcpy(aside->data, data, len);
    OPAL_THREAD_LOCK(&module->lock);
    dn_fifo_push(&module->aside, &aside->item);
    OPAL_THREAD_UNLOCK(&module->lock);
    return true;
}

int mca_btl_dimmnet_deliver_aside(void)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    int count = 0;

    for (;;) {
        OPAL_THREAD_LOCK(&module->lock);
        struct mca_btl_dimmnet_aside *aside = dn_fifo_pop(&module->aside);
        OPAL_THREAD_UNLOCK(&module->lock);
        if (NULL == aside) {
            return count;
        }
        mca_btl_dimmnet_deliver(aside->module, aside->endpoint, aside->tag, aside->data, aside->len);
        free(aside);
        count++;
    }
}

void mca_btl_dimmnet_aside_free(void)
{
    void *aside;

    while (NULL != (aside = dn_fifo_pop(&mca_btl_dimmnet.aside))) {
        free(aside);
    }
}

void mca_btl_dimmnet_aside_forget(const mca_btl_base_endpoint_t *endpoint)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;

    OPAL_THREAD_LOCK(&module->lock);
    for (struct mca_btl_dimmnet_aside *aside = dn_fifo_first(&module->aside); NULL != aside;
         aside = dn_fifo_next(&aside->item)) {
        if (endpoint == aside->endpoint) {
            aside->endpoint = NULL;
        }
    }
    OPAL_THREAD_UNLOCK(&module->lock);
}
