/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Short puts and gets are offered where that takes less time, and given to the kernel where that does; a change is noticed, and no
 * disturbance taken for one. The other way has few of them.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_rma_choice.h"

#define ROUND DN_RMA_CHOICE_EVERY

/** Make so many operations, which take so long by each way. @return how many went by the kernel. */
static unsigned run(dn_rma_choice_t *choice, unsigned operations, uint64_t offer, uint64_t kernel)
{
    unsigned went = 0;

    for (unsigned i = 0; i < operations; i++) {
        bool timed;
        const enum dn_rma_way way = dn_rma_choice_make(choice, &timed);

        if (timed) {
            dn_rma_choice_learn(choice, way, DN_RMA_BY_KERNEL == way ? kernel : offer);
        }
        went += DN_RMA_BY_KERNEL == way;
    }
    return went;
}

static void the_faster_way_has_nearly_all(void **state)
{
    const uint32_t firsts[] = {0, UINT32_MAX - ROUND / 2, INT32_MAX};

    for (unsigned i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        dn_rma_choice_t offers = {.made = firsts[i]};
        dn_rma_choice_t kernels = {.made = firsts[i]};

        (void) run(&offers, ROUND, 500, 4000);
        assert_int_equal(run(&offers, ROUND, 500, 4000), DN_RMA_CHOICE_TRIES);
        (void) run(&kernels, ROUND, 900, 300);
        assert_int_equal(run(&kernels, ROUND, 900, 300), ROUND - DN_RMA_CHOICE_TRIES);
    }
}

static void a_change_is_noticed(void **state)
{
    dn_rma_choice_t choice = {0};

    (void) run(&choice, 2 * ROUND, 500, 4000);
    /* The target computes from now on. */
    (void) run(&choice, ROUND, 9000, 4000);
    assert_in_range(run(&choice, ROUND, 9000, 4000), ROUND / 2, ROUND);
    (void) run(&choice, 4 * ROUND, 500, 4000);
    assert_int_equal(run(&choice, ROUND, 500, 4000), DN_RMA_CHOICE_TRIES);
}

static void a_disturbance_is_none(void **state)
{
    dn_rma_choice_t choice = {0};

    (void) run(&choice, ROUND, 500, 800);
    dn_rma_choice_learn(&choice, DN_RMA_BY_OFFER, UINT64_MAX);
    assert_int_equal(run(&choice, ROUND, 500, 800), DN_RMA_CHOICE_TRIES);
}

/** No offer was ever made: there may be a reason, but none to give up. */
static void what_is_not_known_is_not_worse(void **state)
{
    dn_rma_choice_t choice = {0};
    bool timed;

    for (unsigned i = 0; i < 2 * DN_RMA_CHOICE_TRIES; i++) {
        (void) dn_rma_choice_make(&choice, &timed);
        dn_rma_choice_learn(&choice, DN_RMA_BY_KERNEL, 300);
    }
    assert_int_equal(dn_rma_choice_make(&choice, &timed), DN_RMA_BY_OFFER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_way_has_nearly_all),
        cmocka_unit_test(a_change_is_noticed),
        cmocka_unit_test(a_disturbance_is_none),
        cmocka_unit_test(what_is_not_known_is_not_worse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
