/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Runs of the model: what costs time, what is the same each time, what a seed changes, and what ends a run that hangs.
 */
#include "dn_config.h"

#include <errno.h>
#include <sys/mman.h>

#include "dn_model_nodes.h"

static uint64_t clock_of[NODES_MAX];

static void compute(node_t *self)
{
    const uint64_t before = dn_model_now();

    assert_int_equal(dn_model_node(), self->rank);
    dn_model_compute(1000 * (self->rank + 1));
    assert_int_equal(dn_model_now() - before, 1000 * (self->rank + 1));
}

static void computing_takes_the_time_said(void **state)
{
    assert_int_equal(dn_model_node(), UINT32_MAX);
    assert_int_equal(dn_model_now(), 0);
    nodes_init("dimmnet1-d", 3);
    assert_int_equal(nodes_run(compute), DN_OK);
    assert_int_equal(dn_model_node(), UINT32_MAX);
}

static uint64_t pulled_ps;
static uint64_t busy_ps;

/** Node 1 reads from node 0, which computes for so long and stores at node 1 then. */
static void read_from_one_that_computes(node_t *self)
{
    const uint32_t other = 1 - self->rank;
    const dn_xfer_t xfer = {.local = self->memory, .key = &nodes.key[other], .len = 4096};

    assert_int_equal(node_connect(self, other), DN_OK);
    nodes_meet();
    if (0 == self->rank) {
        dn_model_compute(busy_ps);
        assert_int_equal(dn_aotf(self->peer[other], nodes.off[other], 1, 8), DN_OK);
    } else {
        const uint64_t before = dn_model_now();
        dn_model_poll(DN_MODEL_READ_NOTHING);
        assert_int_equal(node_transfer(self, other, &xfer, 0), DN_OK);
        pulled_ps = dn_model_now() - before;
    }
}

static void a_nic_serves_others_while_its_node_computes(void **state)
{
    uint64_t took[2];

    for (unsigned i = 0; i < 2; i++) {
        busy_ps = (i + 1) * UINT64_C(1000000000);
        nodes_init("dimmnet1-d", 2);
        assert_int_equal(nodes_run(read_from_one_that_computes), DN_OK);
        took[i] = pulled_ps;
    }
    assert_int_equal(took[0], took[1]);
    assert_in_range(took[0], 1, busy_ps / 10);
}

/** A ring of stores around all nodes, some times. */
static void pass_on(node_t *self)
{
    const uint32_t count = nodes.config.nodes;
    const uint32_t to = (self->rank + 1) % count;
    volatile uint64_t *word = (volatile uint64_t *) self->area;

    assert_int_equal(node_connect(self, to), DN_OK);
    for (uint64_t i = 1; i <= 20; i++) {
        if (0 == self->rank) {
            assert_int_equal(dn_aotf(self->peer[to], nodes.off[to], i, 8), DN_OK);
        }
        while (i != *word) {
            dn_progress(self->port);
        }
        if (0 != self->rank) {
            assert_int_equal(dn_aotf(self->peer[to], nodes.off[to], i, 8), DN_OK);
        }
    }
    clock_of[self->rank] = dn_model_now();
}

static uint64_t time_of_ring(const char *profile, uint64_t seed)
{
    nodes_init(profile, 4);
    nodes.config.fabric = DN_MODEL_STAR;
    nodes.config.seed = seed;
    assert_int_equal(nodes_run(pass_on), DN_OK);
    assert_int_equal(nodes.report.packets, 80);
    assert_int_equal(nodes.report.aotf, 80);
    assert_true(nodes.report.end_ps >= clock_of[0]);
    return clock_of[0];
}

static void the_same_run_takes_the_same_time(void **state)
{
    const uint64_t first = time_of_ring("dimmnet1-d", 5);

    assert_int_equal(time_of_ring("dimmnet1-d", 5), first);
    assert_int_not_equal(time_of_ring("dimmnet1-d", 6), first);
    assert_true(time_of_ring("ipnuma-10g", 5) < first);
}

/** What others wrote at one moment, in its order. */
static uint32_t order[NODES_MAX];
static uint32_t seen;

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    order[seen++] = tag;
}

static void all_to_first(node_t *self)
{
    if (0 == self->rank) {
        assert_int_equal(dn_handler_set(self->port, DN_CHAN_USER, hear, NULL), DN_OK);
        nodes_meet();
        while (seen < nodes.config.nodes - 1) {
            dn_progress(self->port);
        }
    } else {
        assert_int_equal(node_connect(self, 0), DN_OK);
        nodes_meet();
        /* All at one moment, whatever they did before. */
        dn_model_compute(UINT64_C(1000000000) - dn_model_now());
        assert_int_equal(dn_botf(self->peer[0], DN_CHAN_USER, self->rank, "x", 1, NULL, 0), DN_OK);
    }
}

/** The order in which a run hears its nodes, as digits. */
static uint64_t order_of(uint64_t seed)
{
    uint64_t digits = 0;

    nodes_init("dimmnet1-d", 6);
    nodes.config.seed = seed;
    seen = 0;
    assert_int_equal(nodes_run(all_to_first), DN_OK);
    assert_int_equal(seen, 5);
    for (uint32_t i = 0; i < seen; i++) {
        digits = 10 * digits + order[i];
    }
    return digits;
}

static void seeds_shuffle_what_happens_at_once(void **state)
{
    const uint64_t first = order_of(0);
    unsigned others = 0;

    for (uint64_t seed = 0; seed < 9; seed++) {
        const uint64_t digits = order_of(seed);
        assert_int_equal(order_of(seed), digits);
        others += digits != first;
    }
    assert_in_range(others, 4, 8);
}

static void wait_for_nobody(node_t *self)
{
    while (0 == self->area[0]) {
        dn_progress(self->port);
    }
}

static void a_deadlock_ends_the_run(void **state)
{
    nodes_init("dimmnet1-d", 2);
    dn_test_log_expect();
    assert_int_equal(nodes_run(wait_for_nobody), DN_ERR_UNREACH);
    assert_true(dn_test_log_said(1, "never comes"));
}

static void wrong_runs_are_refused(void **state)
{
    dn_port_t *port = NULL;
    const dn_job_t job = {.nlocal = 1};
    void (*const fn)(node_t *) = compute;

    dn_test_log_expect();
    nodes_init("dimmnet1-d", 0);
    assert_int_equal(nodes_run(fn), DN_ERR_PARAM);
    nodes_init("dimmnet1-d", 131073);
    assert_int_equal(nodes_run(fn), DN_ERR_PARAM);
    nodes_init("dimmnet1-d", 2);
    nodes.config.fabric = (dn_model_fabric_t) 77;
    assert_int_equal(nodes_run(fn), DN_ERR_PARAM);
    nodes_init("dimmnet1-d", 2);
    nodes.config.stack_bytes = 100;
    assert_int_equal(nodes_run(fn), DN_ERR_PARAM);
    nodes_init("dimmnet1-d", 9);
    nodes.config.fabric = DN_MODEL_STAR;
    assert_int_equal(nodes_run(fn), DN_ERR_PARAM);
    assert_true(dn_test_log_said(5, "8 ports"));
    /* Outside of a run there is no node to be. */
    dn_test_log_expect();
    assert_int_equal(dn_open("model", &job, NULL, &port), DN_ERR_UNSUPPORTED);
    assert_true(dn_test_log_said(1, "no device"));
}

enum { STACKS = 4 };

static uint8_t *stack_page[STACKS];

static void remember_the_stack(node_t *self)
{
    uint8_t mark[64];

    memset(mark, (int) self->rank, sizeof(mark));
    stack_page[self->rank] = (uint8_t *) ((uintptr_t) mark & ~(uintptr_t) 4095);
}

/** A sanitizer keeps the frames of functions that never return; it must not find them in other memory. */
static void memory_where_a_stack_was_may_be_used(void **state)
{
    nodes_init("dimmnet1-d", STACKS);
    assert_int_equal(nodes_run(remember_the_stack), DN_OK);
    unsigned mapped = 0;
    for (unsigned i = 0; i < STACKS; i++) {
        uint8_t *memory = mmap(stack_page[i], 4096, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (MAP_FAILED == memory) {
            /* Other memory has come there already. */
            assert_int_equal(errno, EEXIST);
            continue;
        }
        mapped++;
        memset(memory, 1, 4096);
        assert_int_equal(munmap(memory, 4096), 0);
    }
    assert_in_range(mapped, 1, STACKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computing_takes_the_time_said),
        cmocka_unit_test(a_nic_serves_others_while_its_node_computes),
        cmocka_unit_test(the_same_run_takes_the_same_time),
        cmocka_unit_test(seeds_shuffle_what_happens_at_once),
        cmocka_unit_test(a_deadlock_ends_the_run),
        cmocka_unit_test(wrong_runs_are_refused),
        cmocka_unit_test(memory_where_a_stack_was_may_be_used),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
