/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file btl_dimmnet.h
 * Open MPI's byte transfer layer on libdimmnet. A BTL message is one BOTF message on DN_CHAN_BTL, with the BTL's tag.
 * pml/ob1 moves long messages by put and get: these are PUSH and PULL. There are no atomics: osc_dimmnet does one-sided
 * operations.
 *
 * An operation for which libdimmnet has no room (DN_ERR_AGAIN) waits here, and the progress function retries it. So
 * no operation fails for want of room. pml/ob1 would retry some of its control messages only when another
 * operation completes, which may never happen.
 */
#ifndef MCA_BTL_DIMMNET_H
#define MCA_BTL_DIMMNET_H

#include "dn_atomic.h"
#include "dn_ompi.h"
#include "dn_ompi_progress.h"
#include "dn_patience.h"
#include "dn_queue.h"

#include "opal/class/opal_free_list.h"

/** A process that one of the modules reaches. Each message uses it, so it fits in one cache line, but for the mark. */
struct mca_btl_base_endpoint_t {
    dn_peer_t *peer;
    dn_queue_t waits;                     /**< messages that wait for room; in mca_btl_dimmnet_t::waiting */
    struct mca_btl_base_endpoint_t *next; /**< in mca_btl_dimmnet_t::endpoints */
    opal_proc_t *proc;
    bool takes_long; /**< mca_btl_dimmnet_long reaches the process */
    bool lost;       /**< the process is gone, and this has been reported */
    bool added;      /**< Open MPI is through with adding the process */
    /** It is about to be left: nobody is told of messages that cannot reach the process. Any thread loads it: relaxed */
    bool leaves;
    uint32_t ops;            /**< puts and gets that wait or are in flight; changed by fetch-and-add */
    dn_patience_mark_t mark; /**< of messages that wait, and of puts and gets */
};
typedef struct mca_btl_base_endpoint_t mca_btl_base_endpoint_t;
_Static_assert(64 >= offsetof(mca_btl_base_endpoint_t, mark), "what messages use fits in a cache line");

/** Names a piece of registered memory to a peer. Sent as plain bytes, at any alignment. */
struct mca_btl_base_registration_handle_t {
    dn_key_t key;
    uint64_t base; /**< address of the first byte in the owner: callers of a BTL name bytes by address */
};

/** A registration: the handle, and the segment that the handle names. */
typedef struct mca_btl_dimmnet_registration_t {
    opal_free_list_item_t super;
    struct mca_btl_base_registration_handle_t handle;
    dn_segment_t *segment;
} mca_btl_dimmnet_registration_t;
OBJ_CLASS_DECLARATION(mca_btl_dimmnet_registration_t);

/** The most modules. */
#define MCA_BTL_DIMMNET_MODULES 2

typedef struct mca_btl_dimmnet_component_t {
    mca_btl_base_component_t super;
    dn_port_t *port;     /**< NULL before the component is initialised and after it is finalised */
    bool listening;      /**< the channel's handler is set */
    bool driven;         /**< progress calls mca_btl_dimmnet_advance(); under mca_btl_dimmnet_t::lock */
    uintptr_t receiving; /**< the thread that delivers a message with the port's lock held; 0: none */
    uint64_t dropped;    /**< messages whose tag has no receiver */
} mca_btl_dimmnet_component_t;

typedef struct mca_btl_dimmnet_t {
    mca_btl_base_module_t super;
    mca_btl_base_module_error_cb_fn_t error_cb;
    bool lists_made;
    opal_free_list_t frags_small; /**< control messages: never refused while there is memory */
    opal_free_list_t frags_eager; /**< data, up to the eager limit: at most LIST_MAX, then ob1 waits */
    opal_free_list_t frags_max;   /**< data, up to btl_max_send_size: as frags_eager */
    opal_free_list_t ops;         /**< puts and gets */
    opal_free_list_t registrations;
    /* lock protects the lists below; no callback is called while it is held */
    opal_mutex_t lock;
    bool limits_known; /**< the limits have been compared with those of a first peer */
    mca_btl_base_endpoint_t *endpoints;
    dn_patience_t patience;        /**< with processes that are left */
    mca_btl_base_endpoint_t *gone; /**< endpoints that were left: puts and gets may still end */
    dn_round_t waiting;            /**< mca_btl_base_endpoint_t::waits, as far as they have messages */
    dn_fifo_t ops_waiting;         /**< puts and gets that wait for room */
    dn_fifo_t aside;               /**< messages to deliver without the port's lock */
} mca_btl_dimmnet_t;

OPAL_DECLSPEC extern mca_btl_dimmnet_component_t mca_btl_dimmnet_component;
extern mca_btl_dimmnet_t mca_btl_dimmnet;
/** See btl_dimmnet_module.c. mca_btl_dimmnet has all of its state. */
extern mca_btl_base_module_t mca_btl_dimmnet_long;

/** @name btl_dimmnet_component.c */
/** @{ */
/** dn_ompi_progress_fn_t: deliver what was put aside, and start messages and operations that wait. */
int mca_btl_dimmnet_advance(void);
/** Receive from the port, then call mca_btl_dimmnet_advance(). @return events. */
int mca_btl_dimmnet_progress(void);
/** Give a message to its receiver. */
void mca_btl_dimmnet_deliver(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint, unsigned tag,
                             const void *data, size_t len);
/** Take messages from now on. The caller has registered their receivers. */
int mca_btl_dimmnet_listen(void);
/** Have progress call mca_btl_dimmnet_advance() from now on: there is a process to send to, or to receive from. A job that uses another
 * transport does not pay for these calls. */
void mca_btl_dimmnet_drive(void);
/**
 * Compare the message limits with the longest message of a first peer. Defaults that are higher are lowered.
 * @return false: the user has set a limit that is too high or too low. A help text has said so.
 */
bool mca_btl_dimmnet_limits_fit(size_t longest);
/** A process is gone: say so once, and tell the upper layer, which may not return. The caller holds no lock. */
void mca_btl_dimmnet_lost(mca_btl_base_endpoint_t *endpoint);
/** @} */

/** @name btl_dimmnet_module.c */
/** @{ */
/** Make mca_btl_dimmnet_long from mca_btl_dimmnet. @param[out] modules  Room for both. @return the number of modules in use. */
int mca_btl_dimmnet_split(mca_btl_base_module_t **modules);
/** The module that will reach a process which has no endpoint yet. */
mca_btl_base_module_t *mca_btl_dimmnet_module_for(dn_peer_t *peer);
/** The module that reaches an endpoint. */
static inline mca_btl_base_module_t *mca_btl_dimmnet_module_of(const mca_btl_base_endpoint_t *endpoint)
{
    return OPAL_UNLIKELY(endpoint->takes_long) ? &mca_btl_dimmnet_long : &mca_btl_dimmnet.super;
}
/** A message begins to wait, or does not wait any more; a put or get begins to be under way, or is over. */
static inline void mca_btl_dimmnet_mark(mca_btl_base_endpoint_t *endpoint)
{
    dn_patience_mark(&mca_btl_dimmnet.patience, &endpoint->mark);
}
/** @} */

/** @name btl_dimmnet_aside.c */
/** @{ */
/** Copy a message, to be delivered without the port's lock. @return false: memory ran out. */
bool mca_btl_dimmnet_put_aside(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint, unsigned tag,
                               const void *data, size_t len);
/** Deliver what was put aside. The caller does not hold the port's lock. @return messages delivered. */
int mca_btl_dimmnet_deliver_aside(void);
/** An endpoint will be freed: messages that were put aside name it no more. They are delivered nevertheless. */
void mca_btl_dimmnet_aside_forget(const mca_btl_base_endpoint_t *endpoint);
/** Free messages that were put aside, without delivery. No message comes any more. */
void mca_btl_dimmnet_aside_free(void);
/** @} */

/** @name btl_dimmnet_send.c */
/** @{ */
int mca_btl_dimmnet_send(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint,
                         mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag);
int mca_btl_dimmnet_sendi(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint,
                          struct opal_convertor_t *convertor, void *header, size_t header_size,
                          size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                          mca_btl_base_descriptor_t **descriptor);
/** Send messages that wait, as far as there is room. @return messages that were sent or have failed. */
int mca_btl_dimmnet_send_waiting(void);
/** Free the messages that wait for an endpoint, without a callback. */
void mca_btl_dimmnet_send_forget(mca_btl_base_endpoint_t *endpoint);
/** @} */

/** @name btl_dimmnet_rdma.c */
/** @{ */
mca_btl_base_registration_handle_t *mca_btl_dimmnet_register_mem(mca_btl_base_module_t *btl,
                                                                 mca_btl_base_endpoint_t *endpoint,
                                                                 void *base, size_t size, uint32_t flags);
int mca_btl_dimmnet_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle);
int mca_btl_dimmnet_put(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint, void *local_address,
                        uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int mca_btl_dimmnet_get(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint, void *local_address,
                        uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
/** Start operations that wait, as far as there is room. @return operations that were started or have failed. */
int mca_btl_dimmnet_ops_waiting(void);
/** Free the operations that wait for an endpoint, without a callback. */
void mca_btl_dimmnet_ops_forget(mca_btl_base_endpoint_t *endpoint);
/** @} */

#endif
