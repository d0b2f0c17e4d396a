/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file btl_dimmnet_module.c
 * The modules: they add and remove processes, and make descriptors.
 *
 * There are two modules, with the same functions, because ob1 takes the length of its fragments from the module. mca_btl_dimmnet_long
 * reaches the processes that take longer messages, by devices of a network (1 MiB in blocks of 64 B to another host takes a third of
 * the time). mca_btl_dimmnet reaches all other processes.
 */
#include "dn_config.h"

#include "btl_dimmnet_frag.h"
#include "btl_dimmnet_op.h"

#include "dn_wait.h"

#include "opal/class/opal_bitmap.h"
#include "opal/util/output.h"

/** Polls between two looks whether the process lives, while something is under way to it. A look calls the kernel. */
#define LAST_POLLS 1000
/** A process for which nothing has moved for so long is given up: mca_btl_dimmnet_t::patience. */
#define LAST_NS UINT64_C(10000000000)

/** Elements with which the lists of operations and of registrations begin, and by which they grow. */
#define OPS_NUM 32

/** Does a process take all messages that the limits of this process allow? */
static bool takes_our_messages(const opal_proc_t *proc, const dn_peer_attr_t *attr)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    size_t longest;

    if (!module->limits_known) {
        if (!mca_btl_dimmnet_limits_fit(attr->botf_max)) {
            return false;
        }
        module->limits_known = true;
        opal_output_verbose(
            10, opal_btl_base_framework.framework_output, "btl:dimmnet: eager limit %lu, fragments of %lu",
            (unsigned long) module->super.btl_eager_limit, (unsigned long) module->super.btl_max_send_size);
    }
    longest = module->super.btl_eager_limit;
    if (longest < module->super.btl_max_send_size) {
        longest = module->super.btl_max_send_size;
    }
    if (longest <= attr->botf_max) {
        return true;
    }
    dn_ompi_help(DN_OMPI_TEXT_PEER_LIMIT, opal_process_info.nodename, OPAL_NAME_PRINT(proc->proc_name),
                 (unsigned long) attr->botf_max, (unsigned long) longest);
    return false;
}

/** Descriptors in a list: at first, added when more are needed, and at most. When the most are in use, ob1 waits. */
#define LIST_NUM 8
#define LIST_INC 64
#define LIST_MAX 512

/** @param[in] max  0: no limit. */
static int list_make(opal_free_list_t *list, size_t item, opal_class_t *class, int num, int max, int inc)
{
    const bool is_frag = OBJ_CLASS(mca_btl_dimmnet_frag_t) == class;

    return opal_free_list_init(list, item, 64, class, 0, 0, num, 0 == max ? -1 : max, inc, NULL, 0, NULL,
                               is_frag ? mca_btl_dimmnet_frag_init : NULL, is_frag ? list : NULL);
}

/** Make the lists with the first process: the limits are known then. A job that does not use this BTL needs no lists. */
static int lists_make(mca_btl_dimmnet_t *module)
{
    int rc;

    if (module->lists_made) {
        return OPAL_SUCCESS;
    }
    rc = list_make(&module->frags_small, sizeof(mca_btl_dimmnet_frag_t) + MCA_BTL_DIMMNET_SMALL,
                   OBJ_CLASS(mca_btl_dimmnet_frag_t), LIST_NUM, 0, LIST_INC);
    if (OPAL_SUCCESS == rc) {
        rc = list_make(&module->frags_eager, sizeof(mca_btl_dimmnet_frag_t) + module->super.btl_eager_limit,
                       OBJ_CLASS(mca_btl_dimmnet_frag_t), LIST_NUM, LIST_MAX, LIST_INC);
    }
    if (OPAL_SUCCESS == rc) {
        rc = list_make(&module->frags_max, sizeof(mca_btl_dimmnet_frag_t) + module->super.btl_max_send_size,
                       OBJ_CLASS(mca_btl_dimmnet_frag_t), LIST_NUM, LIST_MAX, LIST_INC);
    }
    if (OPAL_SUCCESS == rc) {
        rc = list_make(&module->ops, sizeof(mca_btl_dimmnet_op_t), OBJ_CLASS(mca_btl_dimmnet_op_t), OPS_NUM,
                       0, OPS_NUM);
    }
    if (OPAL_SUCCESS == rc) {
        rc = list_make(&module->registrations, sizeof(mca_btl_dimmnet_registration_t),
                       OBJ_CLASS(mca_btl_dimmnet_registration_t), OPS_NUM, 0, OPS_NUM);
    }
    module->lists_made = OPAL_SUCCESS == rc;
    return rc;
}

static mca_btl_base_endpoint_t *endpoint_make(opal_proc_t *proc, dn_peer_t *peer, bool takes_long)
{
    mca_btl_base_endpoint_t *endpoint = calloc(1, sizeof(*endpoint));

    if (NULL != endpoint && OPAL_SUCCESS != lists_make(&mca_btl_dimmnet)) {
        free(endpoint);
        endpoint = NULL;
    }
    if (NULL != endpoint) {
        endpoint->takes_long = takes_long;
        endpoint->peer = peer;
        endpoint->proc = proc;
    }
    return endpoint;
}

static bool module_is_long(const dn_peer_attr_t *attr)
{
    const size_t size = mca_btl_dimmnet_long.btl_max_send_size;

    return 0 != size && size <= attr->botf_max;
}

mca_btl_base_module_t *mca_btl_dimmnet_module_for(dn_peer_t *peer)
{
    dn_peer_attr_t attr;

    dn_peer_attr(peer, &attr);
    return module_is_long(&attr) ? &mca_btl_dimmnet_long : &mca_btl_dimmnet.super;
}

static void endpoint_link(mca_btl_base_endpoint_t *endpoint)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;

    OPAL_THREAD_LOCK(&module->lock);
    endpoint->next = module->endpoints;
    module->endpoints = endpoint;
    OPAL_THREAD_UNLOCK(&module->lock);
}

/** Find the endpoint of a process. Any of the two modules may have made it. @return NULL: there is none. */
static mca_btl_base_endpoint_t *endpoint_find(const opal_proc_t *proc)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    mca_btl_base_endpoint_t *endpoint;

    OPAL_THREAD_LOCK(&module->lock);
    endpoint = module->endpoints;
    while (NULL != endpoint && proc != endpoint->proc) {
        endpoint = endpoint->next;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    return endpoint;
}

/** Connect to a process, and make its endpoint. @return NULL: leave the process to another BTL. */
static mca_btl_base_endpoint_t *endpoint_connect(opal_proc_t *proc)
{
    const int output = opal_btl_base_framework.framework_output;
    mca_btl_base_endpoint_t *endpoint = NULL;
    dn_peer_attr_t attr;
    dn_peer_t *peer;
    int rc;

    if (opal_proc_local_get() == proc) {
        return NULL;
    }
    rc = dn_ompi_connect(proc, &peer);
    if (OPAL_SUCCESS != rc) {
        opal_output_verbose(10, output, "btl:dimmnet: %s is not reached: %s",
                            OPAL_NAME_PRINT(proc->proc_name), opal_strerror(rc));
        return NULL;
    }
    dn_peer_attr(peer, &attr);
    if (takes_our_messages(proc, &attr)) {
        endpoint = endpoint_make(proc, peer, module_is_long(&attr));
    }
    if (NULL == endpoint) {
        dn_disconnect(peer);
        return NULL;
    }
    endpoint_link(endpoint);
    mca_btl_dimmnet_drive();
    dn_peer_set_user(peer, DN_CHAN_BTL, endpoint);
    opal_output_verbose(
        10, output,
        "btl:dimmnet: %s is reached by %s, %s; messages of up to %lu bytes in one line, %lu in all",
        OPAL_NAME_PRINT(proc->proc_name), attr.device,
        attr.direct ? "its memory directly" : "its memory by messages", (unsigned long) attr.botf_inline,
        (unsigned long) attr.botf_max);
    return endpoint;
}

static int module_add_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs,
                            mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    int rc = OPAL_SUCCESS;

    for (size_t i = 0; OPAL_SUCCESS == rc && i < nprocs; i++) {
        mca_btl_base_endpoint_t *endpoint = endpoint_find(procs[i]);

        endpoint = NULL == endpoint ? endpoint_connect(procs[i]) : endpoint;
        endpoints[i] = NULL != endpoint && btl == mca_btl_dimmnet_module_of(endpoint) ? endpoint : NULL;
        if (NULL != endpoints[i] && NULL != reachable) {
            rc = opal_bitmap_set_bit(reachable, (int) i);
        }
    }
    return rc;
}

/** Take an endpoint off the list. @return false: it was not there. */
static bool endpoint_unlink(const mca_btl_base_endpoint_t *endpoint)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    mca_btl_base_endpoint_t **link = &module->endpoints;
    bool found;

    OPAL_THREAD_LOCK(&module->lock);
    while (NULL != *link && endpoint != *link) {
        link = &(*link)->next;
    }
    found = NULL != *link;
    if (found) {
        *link = endpoint->next;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    return found;
}

/** A wait for an endpoint, which is in no list any more, looks. @return whether the endpoint is to be given up. */
static bool endpoint_gives_up(mca_btl_base_endpoint_t *endpoint)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    bool over;

    OPAL_THREAD_LOCK(&module->lock);
    if (dn_patience_look(&module->patience, dn_ompi_clock_ns())) {
        for (mca_btl_base_endpoint_t *at = module->endpoints; NULL != at; at = at->next) {
            dn_patience_note(&module->patience, &at->mark, dn_peer_moves(at->peer));
        }
    }
    dn_patience_note(&module->patience, &endpoint->mark, dn_peer_moves(endpoint->peer));
    over = dn_patience_is_over(&module->patience, &endpoint->mark);
    OPAL_THREAD_UNLOCK(&module->lock);
    return over;
}

/** Wait for what is under way to a process, as long as it moves (dn_patience.h). A process that lives takes it, unless it does not look at
 * the network any more. What is under way to a process that is gone ends by itself, puts and gets of which it has copied a share within
 * 2 s. */
static void endpoint_await(mca_btl_base_endpoint_t *endpoint)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    dn_wait_t wait = {0};
    bool over = false;

    OPAL_THREAD_LOCK(&module->lock);
    dn_patience_begin(&module->patience, dn_ompi_clock_ns());
    OPAL_THREAD_UNLOCK(&module->lock);
    /* At least one poll: the process may take all now. Acquire: pairs with op_count(). Messages that wait are looked at under the lock
     * later: relaxed. */
    for (uint64_t polls = 0; !over
                             && (NULL != dn_load_relaxed(&endpoint->waits.items.first)
                                 || 0 != dn_load_acquire_u32(&endpoint->ops));
         polls++) {
        if (0 == polls % LAST_POLLS) {
            (void) dn_peer_check(endpoint->peer);
        }
        if (0 != mca_btl_dimmnet_progress()) {
            dn_wait_restart(&wait);
        } else {
            (void) dn_wait(mca_btl_dimmnet_component.port, &wait, 0, 0);
        }
        over = endpoint_gives_up(endpoint);
    }
    OPAL_THREAD_LOCK(&module->lock);
    dn_patience_end(&module->patience);
    OPAL_THREAD_UNLOCK(&module->lock);
}

/** Part from a process. The endpoint stays until the port is closed: a put or get that was waited for in vain may end later. */
static void endpoint_leave(mca_btl_base_endpoint_t *endpoint)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;

    /* The end of the process is no news from here on. */
    dn_store_relaxed(&endpoint->leaves, true);
    dn_store_relaxed(&endpoint->lost, true);
    endpoint_await(endpoint);
    mca_btl_dimmnet_send_forget(endpoint);
    mca_btl_dimmnet_aside_forget(endpoint);
    mca_btl_dimmnet_ops_forget(endpoint);
    if (endpoint == dn_peer_user(endpoint->peer, DN_CHAN_BTL)) {
        dn_peer_set_user(endpoint->peer, DN_CHAN_BTL, NULL);
    }
    dn_disconnect(endpoint->peer);
    OPAL_THREAD_LOCK(&module->lock);
    endpoint->next = module->gone;
    module->gone = endpoint;
    OPAL_THREAD_UNLOCK(&module->lock);
}

/** The component needs the port no more. An endpoint whose put or get may still end stays. */
static void endpoints_free(void)
{
    mca_btl_base_endpoint_t **link = &mca_btl_dimmnet.gone;

    while (NULL != *link) {
        mca_btl_base_endpoint_t *endpoint = *link;

        if (0 != dn_load_acquire_u32(&endpoint->ops)) {
            link = &endpoint->next;
        } else {
            *link = endpoint->next;
            free(endpoint);
        }
    }
}

static int module_del_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs,
                            mca_btl_base_endpoint_t **endpoints)
{
    for (size_t i = 0; i < nprocs; i++) {
        /* bml/r2 passes an endpoint twice if it uses the endpoint for sends and for puts. The second time the endpoint is left
         * already: find it in the list before it is touched. */
        if (NULL != endpoints[i] && endpoint_unlink(endpoints[i])) {
            endpoint_leave(endpoints[i]);
        }
    }
    return OPAL_SUCCESS;
}

/** Open MPI calls this for each tag, after it has put the receiver in its table. Before the first call, messages stay in the ring. */
static int module_register(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag,
                           mca_btl_base_module_recv_cb_fn_t cbfunc, void *cbdata)
{
    return mca_btl_dimmnet_listen();
}

static int module_register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t cbfunc)
{
    mca_btl_dimmnet.error_cb = cbfunc;
    return OPAL_SUCCESS;
}

static int module_finalize(mca_btl_base_module_t *btl)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;
    mca_btl_dimmnet_component_t *component = &mca_btl_dimmnet_component;

    if (NULL == component->port) {
        return OPAL_SUCCESS;
    }
    /* This comes first: the receivers are gone. */
    if (component->listening) {
        dn_handler_clear(component->port, DN_CHAN_BTL);
        (void) dn_lost_set(component->port, DN_CHAN_BTL, NULL, NULL);
        component->listening = false;
    }
    while (NULL != module->endpoints) {
        mca_btl_base_endpoint_t *endpoint = module->endpoints;

        module->endpoints = endpoint->next;
        endpoint_leave(endpoint);
    }
    mca_btl_dimmnet_aside_free();
    dn_ompi_progress_remove(mca_btl_dimmnet_advance);
    /* No other thread is in this component any more. */
    component->driven = false;
    component->port = NULL;
    dn_ompi_close();
    endpoints_free();
    return OPAL_SUCCESS;
}

static mca_btl_base_descriptor_t *module_alloc(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint,
                                               uint8_t order, size_t size, uint32_t flags)
{
    mca_btl_dimmnet_frag_t *frag = mca_btl_dimmnet_frag_get(size, order, flags);

    return NULL == frag ? NULL : &frag->base;
}

static int module_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    mca_btl_dimmnet_frag_return((mca_btl_dimmnet_frag_t *) descriptor);
    return OPAL_SUCCESS;
}

/** The data stays in the user's memory until the message is sent: the send makes the only copy. If only the convertor can pack the data, it
 * is packed here. */
static mca_btl_base_descriptor_t *module_prepare_src(mca_btl_base_module_t *btl,
                                                     mca_btl_base_endpoint_t *endpoint,
                                                     struct opal_convertor_t *convertor, uint8_t order,
                                                     size_t reserve, size_t *size, uint32_t flags)
{
    const bool scattered = opal_convertor_need_buffers(convertor);
    const bool walks = scattered && dn_ompi_prog_adopt(convertor);
    const bool pack = scattered && !walks;
    mca_btl_dimmnet_frag_t *frag;

    if (pack) {
        /* The data is packed into a fragment. Fragments have the sizes of this module. */
        btl = &mca_btl_dimmnet.super;
    }
    if (reserve + *size > btl->btl_max_send_size && reserve + *size > btl->btl_eager_limit) {
        *size = btl->btl_max_send_size - reserve;
    }
    frag = mca_btl_dimmnet_frag_get(pack ? reserve + *size : reserve, order, flags);
    if (OPAL_UNLIKELY(NULL == frag)) {
        return NULL;
    }
    if (walks) {
        *size = dn_ompi_prog_pass(convertor, *size, &frag->cursor);
        frag->walks = true;
        frag->segments[0].seg_len = reserve;
        frag->segments[1].seg_addr.pval = NULL;
        frag->segments[1].seg_len = *size;
        frag->base.des_segment_count = 2;
    } else if (pack) {
        struct iovec iov = {.iov_base = (char *) frag->data + reserve, .iov_len = *size};
        uint32_t iov_count = 1;

        if (0 > opal_convertor_pack(convertor, &iov, &iov_count, size)) {
            mca_btl_dimmnet_frag_return(frag);
            return NULL;
        }
        frag->segments[0].seg_len = reserve + *size;
    } else {
        opal_convertor_get_current_pointer(convertor, &frag->segments[1].seg_addr.pval);
        frag->segments[1].seg_len = *size;
        frag->base.des_segment_count = 2;
    }
    return &frag->base;
}

mca_btl_base_module_t mca_btl_dimmnet_long;

int mca_btl_dimmnet_split(mca_btl_base_module_t **modules)
{
    const size_t longer = dn_ompi_params.btl.long_send_size;
    mca_btl_base_module_t *sends = &mca_btl_dimmnet.super;

    mca_btl_dimmnet_long = *sends;
    mca_btl_dimmnet_long.btl_max_send_size = sends->btl_max_send_size < longer ? longer : 0;
    int n = 0;
    modules[n++] = sends;
    if (0 != mca_btl_dimmnet_long.btl_max_send_size) {
        modules[n++] = &mca_btl_dimmnet_long;
    }
    return n;
}

mca_btl_dimmnet_t mca_btl_dimmnet = {
    .super = {.btl_component = &mca_btl_dimmnet_component.super,
              .btl_add_procs = module_add_procs,
              .btl_del_procs = module_del_procs,
              .btl_register = module_register,
              .btl_register_error = module_register_error,
              .btl_finalize = module_finalize,
              .btl_alloc = module_alloc,
              .btl_free = module_free,
              .btl_prepare_src = module_prepare_src,
              .btl_send = mca_btl_dimmnet_send,
              .btl_sendi = mca_btl_dimmnet_sendi,
              .btl_put = mca_btl_dimmnet_put,
              .btl_get = mca_btl_dimmnet_get,
              .btl_dump = mca_btl_base_dump,
              .btl_register_mem = mca_btl_dimmnet_register_mem,
              .btl_deregister_mem = mca_btl_dimmnet_deregister_mem},
    .patience = {.limit_ns = LAST_NS},
};
