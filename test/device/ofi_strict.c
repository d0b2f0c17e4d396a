/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Makes the provider that the ofi device has chosen one of a kind that is not on this machine. It
 *
 *  - wants every buffer registered (FI_MR_LOCAL), as verbs does,
 *  - wants registrations bound to the endpoint and enabled (FI_MR_ENDPOINT), and closes no endpoint before them, as cxi,
 *  - and completes messages in any order, as efa.
 *
 * Linked with the conformance suite, it replaces functions of libfabric's objects by some that check and then call
 * them. A device that does otherwise ends its process with a sentence.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>

#include "ofi/dn_ofi_int.h"

#define STRICT_MR (FI_MR_LOCAL | FI_MR_ENDPOINT)
/** Registrations of a process. */
#define STRICT_MAX 4096
/** One completion in so many is kept until the next are read. */
#define STRICT_KEEPS 4

typedef struct strict_mr {
    struct fid_mr *mr; /**< NULL: free */
    int bound;
    int enabled;
} strict_mr_t;

static dn_ofi_lib_t real;
static struct fi_ops real_mr, strict_mr_ops;
static struct fi_ops_mr real_reg, strict_reg_ops;
static struct fi_ops_fabric real_fabric, strict_fabric_ops;
static struct fi_ops_domain real_domain, strict_domain_ops;
static struct fi_ops_cq real_cq, strict_cq_ops;
static struct fi_ops real_ep, strict_ep_ops;
static struct fi_ops_msg real_msg, strict_msg_ops;
static struct fi_ops_rma real_rma, strict_rma_ops;
static strict_mr_t registered[STRICT_MAX];
static struct fi_cq_msg_entry kept;
static int keeps;
static unsigned random_state = 1;

static void demand(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "a strict provider: %s\n", what);
        fflush(NULL);
        _Exit(1);
    }
}

/* Registrations */

static strict_mr_t *strict_find(const struct fid_mr *mr)
{
    int i = 0;

    while (i < STRICT_MAX && mr != registered[i].mr) {
        i++;
    }
    demand(i < STRICT_MAX, NULL == mr ? "too many registrations" : "an unknown registration");
    return &registered[i];
}

static int strict_mr_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
    (void) flags;
    demand(FI_CLASS_EP == to->fclass, "a registration is bound to something else than an endpoint");
    strict_find((struct fid_mr *) fid)->bound = 1;
    return 0;
}

static int strict_mr_control(struct fid *fid, int command, void *arg)
{
    strict_mr_t *mr = strict_find((struct fid_mr *) fid);

    if (FI_ENABLE != command) {
        return real_mr.control(fid, command, arg);
    }
    demand(mr->bound, "a registration is enabled that is not bound");
    mr->enabled = 1;
    return 0;
}

static int strict_mr_close(struct fid *fid)
{
    strict_mr_t *mr = strict_find((struct fid_mr *) fid);
    const int ret = real_mr.close(fid);

    if (0 == ret) {
        *mr = (strict_mr_t){.mr = NULL};
    }
    return ret;
}

static int strict_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
                      uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
    const int ret = real_reg.reg(fid, buf, len, access, offset, key, flags, mr, context);

    if (0 == ret) {
        real_mr = *(*mr)->fid.ops;
        strict_mr_ops = real_mr;
        strict_mr_ops.bind = strict_mr_bind;
        strict_mr_ops.control = strict_mr_control;
        strict_mr_ops.close = strict_mr_close;
        (*mr)->fid.ops = &strict_mr_ops;
        /* The provider below may need none. */
        (*mr)->mem_desc = *mr;
        *strict_find(NULL) = (strict_mr_t){.mr = *mr};
    }
    return ret;
}

/** The buffer of a call comes with an enabled registration. What is below gets none. */
static void demand_desc(void *desc)
{
    demand(NULL != desc, "a buffer is not registered");
    demand(strict_find(desc)->enabled, "the registration of a buffer is not enabled");
}

/** As the provider below has given it. */
static struct fi_info *strict_bare_info(const struct fi_info *info)
{
    struct fi_info *bare = real.dupinfo(info);

    demand(NULL != bare, "no memory");
    bare->domain_attr->mr_mode &= ~STRICT_MR;
    return bare;
}

/* Endpoints */

static int strict_ep_close(struct fid *fid)
{
    for (int i = 0; i < STRICT_MAX; i++) {
        if (NULL != registered[i].mr && registered[i].bound) {
            return -FI_EBUSY;
        }
    }
    return real_ep.close(fid);
}

static ssize_t strict_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from,
                           void *context)
{
    demand_desc(desc);
    return real_msg.recv(ep, buf, len, NULL, from, context);
}

static ssize_t strict_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to,
                           void *context)
{
    demand_desc(desc);
    return real_msg.send(ep, buf, len, NULL, to, context);
}

/** With no descriptors. */
static struct fi_msg_rma strict_bare(const struct fi_msg_rma *msg)
{
    struct fi_msg_rma bare = *msg;

    for (size_t i = 0; i < msg->iov_count; i++) {
        demand_desc(msg->desc[i]);
    }
    bare.desc = NULL;
    return bare;
}

static ssize_t strict_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
    const struct fi_msg_rma bare = strict_bare(msg);
    return real_rma.readmsg(ep, &bare, flags);
}

static ssize_t strict_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
    const struct fi_msg_rma bare = strict_bare(msg);
    return real_rma.writemsg(ep, &bare, flags);
}

static int strict_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context)
{
    struct fi_info *bare = strict_bare_info(info);
    const int ret = real_domain.endpoint(domain, bare, ep, context);

    real.freeinfo(bare);
    if (0 == ret) {
        real_ep = *(*ep)->fid.ops;
        strict_ep_ops = real_ep;
        strict_ep_ops.close = strict_ep_close;
        (*ep)->fid.ops = &strict_ep_ops;
        real_msg = *(*ep)->msg;
        strict_msg_ops = real_msg;
        strict_msg_ops.recv = strict_recv;
        strict_msg_ops.send = strict_send;
        (*ep)->msg = &strict_msg_ops;
        real_rma = *(*ep)->rma;
        strict_rma_ops = real_rma;
        strict_rma_ops.readmsg = strict_readmsg;
        strict_rma_ops.writemsg = strict_writemsg;
        (*ep)->rma = &strict_rma_ops;
    }
    return ret;
}

/* Completions */

static unsigned draw(unsigned below)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 16) % below;
}

static ssize_t strict_read(struct fid_cq *cq, void *buf, size_t count)
{
    struct fi_cq_msg_entry *entry = buf;
    ssize_t n = real_cq.read(cq, buf, count - 1);

    if (-FI_EAGAIN == n && keeps) {
        n = 0;
    }
    if (0 > n) {
        return n;
    }
    for (ssize_t i = n - 1; 0 < i; i--) {
        const unsigned other = draw((unsigned) i + 1);
        const struct fi_cq_msg_entry swapped = entry[i];
        entry[i] = entry[other];
        entry[other] = swapped;
    }
    if (keeps) {
        entry[n++] = kept;
        keeps = 0;
    } else if (1 < n && 0 == draw(STRICT_KEEPS)) {
        kept = entry[--n];
        keeps = 1;
    }
    return n;
}

static int strict_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
                          void *context)
{
    const int ret = real_domain.cq_open(domain, attr, cq, context);

    if (0 == ret) {
        demand(FI_CQ_FORMAT_MSG == attr->format, "completions are of a format that is not known here");
        keeps = 0;
        real_cq = *(*cq)->ops;
        strict_cq_ops = real_cq;
        strict_cq_ops.read = strict_read;
        (*cq)->ops = &strict_cq_ops;
    }
    return ret;
}

/* From the library down */

static int strict_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
                         void *context)
{
    struct fi_info *bare = strict_bare_info(info);
    const int ret = real_fabric.domain(fabric, bare, domain, context);

    real.freeinfo(bare);
    if (0 == ret) {
        real_domain = *(*domain)->ops;
        strict_domain_ops = real_domain;
        strict_domain_ops.endpoint = strict_endpoint;
        strict_domain_ops.cq_open = strict_cq_open;
        (*domain)->ops = &strict_domain_ops;
        real_reg = *(*domain)->mr;
        strict_reg_ops = real_reg;
        strict_reg_ops.reg = strict_reg;
        (*domain)->mr = &strict_reg_ops;
    }
    return ret;
}

static int strict_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
    const int ret = real.fabric(attr, fabric, context);

    if (0 == ret) {
        real_fabric = *(*fabric)->ops;
        strict_fabric_ops = real_fabric;
        strict_fabric_ops.domain = strict_domain;
        (*fabric)->ops = &strict_fabric_ops;
    }
    return ret;
}

static int strict_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
                          const struct fi_info *hints, struct fi_info **info)
{
    const int ret = real.getinfo(version, node, service, flags, hints, info);

    for (struct fi_info *one = *info; 0 == ret && NULL != one; one = one->next) {
        demand(0 == (STRICT_MR & one->domain_attr->mr_mode), "the provider below is strict itself");
        one->domain_attr->mr_mode |= STRICT_MR;
    }
    return ret;
}

/** libfabric is loaded by processes with a port only, which are forked before: it does not survive a fork. */
static void strict_begin(void)
{
    const char *wrong;
    dn_ofi_lib_t *lib = (dn_ofi_lib_t *) dn_ofi_lib_load(&wrong);

    if (NULL != lib && strict_getinfo != lib->getinfo) {
        real = *lib;
        lib->getinfo = strict_getinfo;
        lib->fabric = strict_fabric;
    }
}

static void __attribute__((constructor)) strict_at_fork(void)
{
    pthread_atfork(NULL, NULL, strict_begin);
}
