/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Messages whose body is lent: it arrives, comes back once, waits for credit with its sender, and comes back when the receiver is lost, or
 * was left.
 *
 *   ofi_loans [TEST]
 */
#include "dn_config.h"

#include "ofi_world.h"

enum { HEAD = 24, BODY = 8000, MANY = 40 };

/** A message that is lent. */
typedef struct loan {
    dn_comp_t comp;
    uint8_t head[HEAD];
    uint8_t body[BODY];
    dn_status_t status;
    unsigned times;
} loan_t;

static loan_t each[MANY];

static void back(dn_comp_t *comp, dn_status_t status)
{
    ((loan_t *) comp)->status = status;
    ((loan_t *) comp)->times++;
}

/** Messages of both parts, in their order. */
static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    const uint64_t key = dn_world_here->heard;

    dn_world_hear(src, tag, data, len, arg);
    dn_check_equal(len, HEAD + BODY);
    dn_check_bytes(data, HEAD, 1000 + key);
    dn_check_bytes((const uint8_t *) data + HEAD, BODY, key);
}

static dn_status_t lend(const dn_world_t *world, uint64_t key)
{
    loan_t *loan = &each[key];

    loan->comp.fn = back;
    dn_test_fill(loan->head, HEAD, 1000 + key);
    dn_test_fill(loan->body, BODY, key);
    return dn_botf_lend(world->peer[1], DN_WORLD_CHAN, (unsigned) key, loan->head, HEAD, loan->body, BODY,
                        &loan->comp);
}

/** Before its receiver has answered, a sender has to copy. */
static dn_status_t lend_when_open(dn_world_t *world, uint64_t key)
{
    dn_status_t status;

    while (DN_ERR_UNSUPPORTED == (status = lend(world, key))) {
        dn_world_progress(world);
    }
    return status;
}

static void await(dn_world_t *world, const loan_t *loan, dn_status_t status)
{
    while (0 == loan->times) {
        dn_world_progress(world);
    }
    dn_check_equal(loan->status, status);
}

static void loans_come_back_once(dn_world_t *world)
{
    dn_world_listen(world, hear);
    if (0 == world->rank) {
        dn_world_connect_to(world, 1);
        for (uint64_t key = 0; key < MANY; key++) {
            dn_status_t status;
            while (DN_ERR_AGAIN == (status = lend_when_open(world, key))) {
                dn_world_progress(world);
            }
            dn_check_equal(status, DN_INPROGRESS);
            dn_check_equal(each[key].times, 0);
        }
        for (uint64_t key = 0; key < MANY; key++) {
            await(world, &each[key], DN_OK);
        }
        dn_world_await(world, 1, 0, 1);
        for (uint64_t key = 0; key < MANY; key++) {
            dn_check_equal(each[key].times, 1);
        }
    } else {
        dn_world_hear_until(world, MANY);
        dn_world_post(world, 0, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static void what_has_no_credit_stays_with_its_sender(dn_world_t *world)
{
    uint64_t lent = 0;
    dn_status_t status;

    dn_world_listen(world, hear);
    if (0 == world->rank) {
        dn_world_connect_to(world, 1);
        dn_check_equal(lend_when_open(world, lent++), DN_INPROGRESS);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, 1, 0, 1);
        /* A provider that is busy for a moment has the sender copy, which is not what this test waits for. */
        while (DN_INPROGRESS == (status = lend_when_open(world, lent))) {
            lent++;
            dn_check(lent < MANY);
        }
        dn_check_equal(status, DN_ERR_AGAIN);
        dn_check(NULL == ((const dn_ofi_peer_t *) world->peer[1])->tx->first);
        dn_world_post(world, 0, 2);
        while (DN_INPROGRESS != lend(world, lent)) {
            dn_world_progress(world);
        }
        await(world, &each[lent], DN_OK);
        dn_world_post(world, 1, lent + 1);
        dn_world_await(world, 1, 0, 2);
    } else {
        dn_world_await(world, 0, 0, 1);
        dn_world_hear_until(world, 1);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, 0, 0, 1);
        dn_world_await(world, 0, 1, 1);
        dn_world_hear_until(world, world->board->seat[0].word[1]);
        dn_world_post(world, 0, 2);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static void loans_of_who_is_lost_come_back(dn_world_t *world)
{
    dn_world_listen(world, hear);
    if (0 == world->rank) {
        dn_ofi_t *ofi = ofi_device(world);
        dn_world_connect_to(world, 1);
        dn_check_equal(lend_when_open(world, 0), DN_INPROGRESS);
        dn_peer_doubt((dn_peer_base_t *) world->peer[1], DN_PEER_SUSPECT);
        dn_port_bury(&ofi->iface);
        dn_check_equal(each[0].times, 1);
        /* On a slow machine its bytes may have left by then. */
        dn_check(DN_ERR_UNREACH == each[0].status || DN_OK == each[0].status);
        dn_check_equal(lend(world, 1), DN_ERR_UNSUPPORTED);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_await(world, 0, 0, 1);
    }
    dn_close(world->port);
}

/** fi_sendmsg(): the provider has the message for ever. */
static ssize_t keep(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
    (void) ep;
    (void) msg;
    (void) flags;
    return 0;
}

/** Rank 0 lends to rank 1, and leaves it. Rank 1 does nothing of its own once the first loan has come. */
static void lend_and_leave(dn_world_t *world)
{
    static struct fi_ops_msg stuck;
    dn_ofi_t *ofi = ofi_device(world);

    dn_world_connect_to(world, 1);
    dn_check_equal(lend_when_open(world, 0), DN_INPROGRESS);
    await(world, &each[0], DN_OK);
    dn_world_await(world, 1, 0, 1);
    dn_ofi_lock(ofi);
    stuck = *ofi->ep->msg;
    stuck.sendmsg = keep;
    ofi->ep->msg = &stuck;
    dn_ofi_unlock(ofi);
    dn_check_equal(lend(world, 1), DN_INPROGRESS);
    dn_disconnect(world->peer[1]);
    world->peer[1] = NULL;
    dn_check_equal(each[1].times, 0);
}

static void loans_of_who_was_left_and_is_stopped_come_back(dn_world_t *world)
{
    world->config.timeout_s = DN_WORLD_SILENT_S;
    dn_world_listen(world, hear);
    if (0 == world->rank) {
        lend_and_leave(world);
        await(world, &each[1], DN_ERR_UNREACH);
        dn_world_post(world, 0, 1);
    } else {
        dn_world_hear_until(world, 1);
        dn_ofi_lock(ofi_device(world));
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, 0, 0, 1);
        dn_ofi_unlock(ofi_device(world));
    }
    dn_world_barrier(world);
    dn_check_equal(each[1].times, 0 == world->rank);
    dn_world_stop(world);
}

/** Rank 1 says that all has come, before the provider of rank 0 says that it has gone out. */
static void loans_of_who_has_all_have_gone_well(dn_world_t *world)
{
    dn_world_listen(world, hear);
    if (0 == world->rank) {
        lend_and_leave(world);
        dn_world_post(world, 0, 1);
        await(world, &each[1], DN_OK);
    } else {
        dn_ofi_t *ofi = ofi_device(world);
        dn_world_hear_until(world, 1);
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 1);
        dn_ofi_lock(ofi);
        const dn_ofi_peer_t *peer = ofi->peers;
        dn_check(dn_ofi_control(ofi, peer->node, DN_OFI_LEFT, peer->rx.token,
                                &peer->rx.pair.way[DN_AUTH_ACCEPTOR], 0));
        dn_ofi_unlock(ofi);
    }
    dn_world_barrier(world);
    dn_check_equal(each[1].times, 0 == world->rank);
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"loans_come_back_once", 2, loans_come_back_once},
    {"what_has_no_credit_stays_with_its_sender", 2, what_has_no_credit_stays_with_its_sender},
    {"loans_of_who_is_lost_come_back", 2, loans_of_who_is_lost_come_back},
    {"loans_of_who_was_left_and_is_stopped_come_back", 2, loans_of_who_was_left_and_is_stopped_come_back},
    {"loans_of_who_has_all_have_gone_well", 2, loans_of_who_has_all_have_gone_well},
};

int main(int argc, char **argv)
{
    return ofi_run_tests(tests, sizeof(tests) / sizeof(tests[0]), "ofi_loans", argv[1]);
}
