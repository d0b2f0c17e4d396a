/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "dn_log.h"

/** Time that the provider gets to complete, or fail, what is in flight with a peer that is lost. */
#define DN_OFI_GRACE_NS UINT64_C(20000000)
/** Longest wait for the next part to complete, where no peer is given up because it is silent. */
#define DN_OFI_PATIENCE_NS UINT64_C(10000000000)

/* Parts */

static dn_ofi_part_t *dn_ofi_part_new(dn_ofi_t *ofi, dn_ofi_op_t *op, uint64_t len)
{
    dn_ofi_part_t *part = ofi->parts;

    if (NULL != part) {
        ofi->parts = part->next;
    } else {
        part = calloc(1, sizeof(*part));
    }
    if (NULL != part) {
        part->request.role = DN_OFI_RMA;
        part->op = op;
        part->len = len;
        part->next = op->part;
        op->part = part;
        op->peer->rma.flying += len;
    }
    return part;
}

static void dn_ofi_part_free(dn_ofi_t *ofi, dn_ofi_part_t *part)
{
    if (NULL != part->op) {
        dn_ofi_part_t **at = &part->op->part;
        while (part != *at) {
            at = &(*at)->next;
        }
        *at = part->next;
        part->op->peer->rma.flying -= part->len;
    }
    part->next = ofi->parts;
    ofi->parts = part;
}

/** Take the next runs of a cursor: at most @p limit runs, and at most @p max bytes in all. @return bytes. */
static uint64_t dn_ofi_runs(dn_sg_cursor_t *at, dn_block_t *run, size_t limit, size_t *count, uint64_t max)
{
    uint64_t total = 0;

    for (*count = 0; *count < limit; (*count)++) {
        const uint64_t len = dn_sg_next(at, max - total, &run[*count].at);
        if (0 == len) {
            break;
        }
        run[*count].len = len;
        total += len;
    }
    return total;
}

ssize_t dn_ofi_issue(dn_ofi_t *ofi, dn_ofi_op_t *op)
{
    dn_block_t ours[DN_OFI_IOV], theirs[DN_OFI_IOV];
    struct iovec iov[DN_OFI_IOV];
    struct fi_rma_iov rma[DN_OFI_IOV];
    void *desc[DN_OFI_IOV];
    size_t nours, ntheirs;
    dn_sg_cursor_t local_at = op->local_at;
    dn_sg_cursor_t remote_at = op->remote_at;
    const uint64_t longest = ofi->info->ep_attr->max_msg_size;

    if (ofi->tx_left <= ofi->tx_words || DN_OFI_FLYING <= op->peer->rma.flying) {
        return -FI_EAGAIN;
    }
    struct fid_ep *ep = dn_ofi_rma_endpoint(ofi);
    if (NULL == ep) {
        return -FI_ESHUTDOWN;
    }
    uint64_t len =
        dn_ofi_runs(&local_at, ours, ofi->iov_limit, &nours, longest < DN_OFI_PART ? longest : DN_OFI_PART);
    const uint64_t other = dn_ofi_runs(&remote_at, theirs, ofi->rma_iov_limit, &ntheirs, len);
    if (other < len) {
        /* The list of remote runs is full, and has fewer bytes than the local list: take as many local bytes. */
        local_at = op->local_at;
        len = dn_ofi_runs(&local_at, ours, DN_OFI_IOV, &nours, other);
    }
    dn_ofi_part_t *part = dn_ofi_part_new(ofi, op, len);
    if (NULL == part) {
        return -FI_EAGAIN;
    }
    for (size_t i = 0; i < nours; i++) {
        iov[i] = (struct iovec){(void *) (uintptr_t) ours[i].at, ours[i].len};
        desc[i] = NULL != op->mr ? fi_mr_desc(op->mr) : NULL;
    }
    for (size_t i = 0; i < ntheirs; i++) {
        rma[i] = (struct fi_rma_iov){.addr = op->remote + theirs[i].at, .len = theirs[i].len, .key = op->key};
    }
    const struct fi_msg_rma msg = {
        .msg_iov = iov,
        .desc = desc,
        .iov_count = nours,
        .addr = op->peer->node->addr,
        .rma_iov = rma,
        .rma_iov_count = ntheirs,
        .context = &part->request.context,
    };
    const ssize_t ret = op->write ? fi_writemsg(ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE)
                                  : fi_readmsg(ep, &msg, FI_COMPLETION);
    if (0 != ret) {
        dn_ofi_part_free(ofi, part);
        return ret;
    }
    ofi->tx_left--;
    ofi->backlog = 1;
    op->local_at = local_at;
    op->remote_at = remote_at;
    return 0;
}

/* Operations */

void dn_ofi_op_unregister(dn_ofi_op_t *op)
{
    if (NULL != op->mr) {
        fi_close(&op->mr->fid);
        op->mr = NULL;
    }
}

void dn_ofi_op_free(dn_ofi_op_t *op)
{
    dn_ofi_op_unregister(op);
    dn_xfer_drop(&op->sides);
    free(op);
}

static void dn_ofi_op_done(dn_ofi_t *ofi, dn_ofi_op_t *op)
{
    dn_fifo_remove(&op->peer->rma.ops, &op->item);
    op->peer->rma.handed += (uint32_t) op->failed;
    dn_fifo_push(&ofi->done, &op->item);
    dn_ofi_ring(ofi);
}

/** Has an operation failed, or been given up? Then no more parts of it go to the provider. */
static int dn_ofi_is_ended(const dn_ofi_op_t *op)
{
    return op->failed || DN_OK != op->status;
}

/** If all parts of an operation have completed, store the target's status word, and end the operation.
 * @return whether the status word waits for room. */
static int dn_ofi_op_settle(dn_ofi_t *ofi, dn_ofi_op_t *op)
{
    if (NULL != op->part || (!dn_ofi_is_ended(op) && 0 != op->local_at.left)) {
        return 0;
    }
    if (!dn_ofi_is_ended(op) && 0 != (op->xfer.flags & DN_XFER_STATUS_REMOTE)) {
        const dn_status_t status =
            dn_ofi_store(ofi, op->peer, op->xfer.remote_status, op->xfer.remote_value, sizeof(uint64_t));
        if (DN_ERR_AGAIN == status) {
            ofi->work = 1;
            return 1;
        }
        op->status = status;
    }
    dn_ofi_op_done(ofi, op);
    return 0;
}

int dn_ofi_op_advance(dn_ofi_t *ofi, dn_ofi_op_t *op)
{
    while (!dn_ofi_is_ended(op) && 0 != op->local_at.left) {
        const ssize_t ret = dn_ofi_issue(ofi, op);
        if (-FI_EAGAIN == ret) {
            ofi->work = 1;
            return 1;
        }
        op->failed = 0 != ret;
    }
    return 0;
}

int dn_ofi_rma_advance(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    int waits = 0;

    for (dn_ofi_op_t *op = dn_fifo_first(&peer->rma.ops), *next; NULL != op && !waits; op = next) {
        next = dn_fifo_next(&op->item);
        waits = dn_ofi_op_advance(ofi, op) || dn_ofi_op_settle(ofi, op);
    }
    return waits;
}

void dn_ofi_part_done(dn_ofi_t *ofi, dn_ofi_part_t *part, int failed)
{
    dn_ofi_op_t *op = part->op;

    dn_ofi_part_free(ofi, part);
    if (NULL == op || (failed && ofi->resetting)) {
        return;
    }
    if (!failed) {
        op->peer->watch.signs++;
        dn_peer_move(&op->peer->base);
    }
    op->failed |= failed;
    dn_ofi_op_settle(ofi, op);
}

/** Signal the end of an operation that is in no list, and of which the provider has nothing. */
static void dn_ofi_op_signal(dn_ofi_op_t *op)
{
    dn_comp_t *comp = op->xfer.comp;
    const dn_status_t status = op->status;

    if (DN_OK == status && 0 != (op->xfer.flags & DN_XFER_STATUS_LOCAL)) {
        dn_store_release(op->xfer.local_status, op->xfer.local_value);
    }
    dn_ofi_op_free(op);
    if (NULL != comp) {
        comp->fn(comp, status);
    }
}

/** Hand a failed operation to the core processor. The provider does not say reliably why it failed: the peer may not know the key, or a
 * connection broke. The core processor does the operation again, finds out, and signals. */
static void dn_ofi_hand_over(dn_ofi_t *ofi, dn_ofi_op_t *op)
{
    if (DN_OK == op->status) {
        op->status = dn_port_transfer(&op->peer->base, &op->xfer, op->write);
    }
    /* Count the operation as handed until the core processor has it. So a fence of another thread always finds the operation. */
    dn_ofi_lock(ofi);
    dn_peer_keep_error(&op->peer->base, op->xfer.comp, op->status);
    op->peer->rma.handed--;
    dn_ofi_unlock(ofi);
    if (DN_INPROGRESS == op->status) {
        dn_ofi_op_free(op);
    } else {
        dn_ofi_op_signal(op);
    }
}

int dn_ofi_signal(dn_ofi_t *ofi)
{
    int n = dn_ofi_loan_signal(ofi);

    for (;;) {
        dn_ofi_lock(ofi);
        dn_ofi_op_t *op = dn_fifo_pop(&ofi->done);
        if (NULL != op) {
            /* Calls of the provider need the lock. */
            dn_ofi_op_unregister(op);
        }
        dn_ofi_unlock(ofi);
        if (NULL == op) {
            return n;
        }
        if (op->failed) {
            dn_ofi_hand_over(ofi, op);
        } else {
            dn_ofi_op_signal(op);
        }
        n++;
    }
}

/** Has the provider parts of reads (if @p reads) or of writes (if @p writes) with a peer? */
static int dn_ofi_rma_flies(const dn_ofi_peer_t *peer, int reads, int writes)
{
    for (const dn_ofi_op_t *op = dn_fifo_first(&peer->rma.ops); NULL != op; op = dn_fifo_next(&op->item)) {
        if (NULL != op->part && (op->write ? writes : reads)) {
            return 1;
        }
    }
    return 0;
}

/** Wait until the provider has no parts of writes with a peer any more; with @p reads, no parts of reads, either. Parts complete in the
 * end if the peer lives. @return not 0: the provider has none. 0: no part has completed for @p patience_ns, or the endpoint is closed. */
static int dn_ofi_rma_await(dn_ofi_t *ofi, const dn_ofi_peer_t *peer, int reads, uint64_t patience_ns)
{
    uint64_t flying = peer->rma.flying;
    uint64_t since = dn_clock_ns();
    int late = 0;

    while (dn_ofi_rma_flies(peer, reads, 1)) {
        const uint64_t now = dn_clock_ns();
        if (flying != peer->rma.flying) {
            flying = peer->rma.flying;
            since = now;
            late = 0;
        }
        if (NULL == ofi->ep || late) {
            return 0;
        }
        /* Poll once more when the time is over: this thread may not have run meanwhile. */
        late = now - since > patience_ns;
        if (0 == dn_ofi_poll(ofi)) {
            sched_yield();
        }
    }
    return 1;
}

/** Longest time between the ends of two parts, if their peer lives. */
static uint64_t dn_ofi_patience(const dn_ofi_t *ofi)
{
    return 0 != ofi->timeout_ns ? ofi->timeout_ns : DN_OFI_PATIENCE_NS;
}

/** Take back the parts of an operation that the provider has lost, and begin the operation again. That is legal: nothing is promised of its
 * bytes until it is complete. */
static void dn_ofi_op_restart(dn_ofi_t *ofi, dn_ofi_op_t *op)
{
    while (NULL != op->part) {
        dn_ofi_part_free(ofi, op->part);
        ofi->tx_left++;
    }
    dn_sg_start(&op->local_at, op->xfer.local_sg, (uintptr_t) op->xfer.local, op->xfer.len);
    dn_sg_start(&op->remote_at, op->xfer.remote_sg, op->xfer.roff, op->xfer.len);
}

/** Have the provider let go of all RMA at once. Operations with other peers than @p gone are begun again. */
static void dn_ofi_rma_reset(dn_ofi_t *ofi, const dn_ofi_peer_t *gone)
{
    /* First wait for the writes to other peers. Bytes on their way could arrive behind the bytes of the second try, and of later writes. */
    for (dn_ofi_peer_t *peer = ofi->peers; NULL != peer; peer = peer->next) {
        if (peer != gone && !dn_ofi_is_doubted(peer)
            && !dn_ofi_rma_await(ofi, peer, 0, dn_ofi_patience(ofi))) {
            dn_ofi_doubt(ofi, peer, DN_PEER_SUSPECT);
        }
    }
    ofi->resetting = 1;
    dn_ofi_rma_close(ofi);
    while (0 != dn_ofi_poll(ofi)) {
    }
    ofi->resetting = 0;
    for (dn_ofi_peer_t *peer = ofi->peers; NULL != peer; peer = peer->next) {
        for (dn_ofi_op_t *op = dn_fifo_first(&peer->rma.ops); NULL != op; op = dn_fifo_next(&op->item)) {
            dn_ofi_op_restart(ofi, op);
        }
    }
    ofi->work = 1;
}

/** Take an operation apart from its parts, which the provider may still have. If such a part completes later, it is only freed. */
static void dn_ofi_op_abandon(dn_ofi_t *ofi, dn_ofi_op_t *op)
{
    while (NULL != op->part) {
        dn_ofi_part_t *part = op->part;
        if (NULL == ofi->ep) {
            dn_ofi_part_free(ofi, part);
        } else {
            op->part = part->next;
            op->peer->rma.flying -= part->len;
            part->op = NULL;
        }
    }
}

/** Wait until PULLs from a peer, and PUSHes to it, have ended. @return whether no PULL can write to memory of this process any more. */
static int dn_ofi_await_pulls(dn_ofi_t *ofi, const dn_ofi_peer_t *peer, uint64_t patience_ns)
{
    return dn_ofi_rma_await(ofi, peer, 1, patience_ns) || NULL == ofi->ep || !dn_ofi_rma_flies(peer, 1, 0);
}

/**
 * Have the provider give up the PULLs from a peer, by ending the connections to this peer. Connections to other peers stay. Before
 * libfabric 1.18 there is no other good way: if its tcp is closed in the midst of the answer to a read, it reports the read twice, and
 * frees it twice. The connection for messages ends, too, so the peer is told first that it is left.
 * @return whether no PULL can write any more.
 */
static int dn_ofi_fail_pulls(dn_ofi_t *ofi, dn_ofi_peer_t *peer, int closing)
{
    if (closing) {
        dn_ofi_depart(ofi, peer, DN_OFI_CLOSE);
    } else if (!dn_peer_is_lost(&peer->base)) {
        dn_ofi_give_up(ofi, peer);
    }
    dn_ofi_poll(ofi);
    return dn_ofi_cut(peer->node) && dn_ofi_await_pulls(ofi, peer, DN_OFI_LINGER_NS);
}

void dn_ofi_rma_end(dn_ofi_t *ofi, dn_ofi_peer_t *peer, int signal)
{
    const int alone = NULL != ofi->rma_ep && ofi->rma_ep == ofi->ep;
    const uint64_t last_ns = alone ? DN_OFI_LINGER_NS : DN_OFI_GRACE_NS;

    for (dn_ofi_op_t *op = dn_fifo_first(&peer->rma.ops); NULL != op; op = dn_fifo_next(&op->item)) {
        op->status = DN_ERR_UNREACH;
    }
    /* A PULL could write to memory that the caller of the PULL is about to get back. */
    if (!dn_ofi_await_pulls(ofi, peer, signal && !dn_ofi_is_doubted(peer) ? dn_ofi_patience(ofi) : last_ns)
        && !dn_ofi_fail_pulls(ofi, peer, !signal)) {
        if (!alone) {
            dn_ofi_rma_reset(ofi, peer);
        } else {
            if (signal) {
                dn_log_later(&ofi->log,
                             "provider %s does not give up a PULL from PID %" PRIu32
                             "; its endpoint is closed, and no peer is reached by it any more",
                             ofi->where.provider, peer->base.pid);
            }
            dn_ofi_break(ofi);
        }
    }
    dn_ofi_op_t *op;
    while (NULL != (op = dn_fifo_first(&peer->rma.ops))) {
        dn_ofi_op_abandon(ofi, op);
        if (signal) {
            dn_ofi_op_done(ofi, op);
        } else {
            dn_fifo_remove(&op->peer->rma.ops, &op->item);
            dn_ofi_op_free(op);
        }
    }
}
