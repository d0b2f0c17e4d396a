/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * dn_queue.h against a table of numbers: items of each destination leave in their order, a destination without room keeps back its
 * own only, and the round has just those that something waits for.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_queue.h"

#include "../dn_test.h"

enum { DESTINATIONS = 5, ITEMS = 200, STEPS = 200000 };

typedef struct item {
    dn_queue_item_t super;
    int to;
    int waits;
} item_t;

typedef struct destination {
    dn_queue_t queue;
    item_t *line[ITEMS]; /**< the model: oldest first */
    size_t n;
} destination_t;

static dn_round_t round_;
static destination_t destination[DESTINATIONS];
static item_t items[ITEMS];

static void check(void)
{
    uint32_t busy = 0;
    const dn_queue_t *before = NULL;

    for (int to = 0; to < DESTINATIONS; to++) {
        const destination_t *d = &destination[to];
        const dn_queue_item_t *at = d->queue.items.first;

        for (size_t i = 0; i < d->n; i++, at = at->next) {
            assert_ptr_equal(at, &d->line[i]->super);
        }
        assert_null(at);
        busy += 0 != d->n;
    }
    assert_int_equal(round_.count, busy);
    for (const dn_queue_t *queue = round_.first; NULL != queue; before = queue, queue = queue->next) {
        assert_ptr_equal(queue->before, before);
        assert_non_null(queue->items.first);
        assert_true(0 < busy--);
    }
    assert_int_equal(busy, 0);
    if (NULL != before) {
        assert_ptr_equal(round_.last, before);
    }
}

static void model_drop(destination_t *d, size_t i)
{
    d->line[i]->waits = 0;
    memmove(&d->line[i], &d->line[i + 1], (--d->n - i) * sizeof(d->line[0]));
}

/** A try as the header has it, in which some destinations have room for a few. */
static void try_all(uint64_t *random)
{
    dn_queue_t *queue, *seen[DESTINATIONS];
    uint32_t turns = 0;

    for (uint32_t n = round_.count; 0 != n && NULL != (queue = dn_round_turn(&round_)); n--) {
        destination_t *d = (destination_t *) (void *) queue;
        size_t room = dn_test_below(random, 4);
        dn_queue_item_t *item;

        for (uint32_t i = 0; i < turns; i++) {
            assert_ptr_not_equal(seen[i], queue);
        }
        seen[turns++] = queue;
        while (NULL != (item = dn_queue_pop(&round_, queue))) {
            assert_ptr_equal(item, &d->line[0]->super);
            if (0 == room--) {
                dn_queue_put_back(&round_, queue, item);
                break;
            }
            model_drop(d, 0);
        }
    }
}

static void order_is_kept(void **state)
{
    uint64_t random = 7;

    assert_null(dn_round_turn(&round_));
    for (int step = 0; step < STEPS; step++) {
        item_t *item = &items[dn_test_below(&random, ITEMS)];
        destination_t *d = &destination[item->waits ? item->to : (int) dn_test_below(&random, DESTINATIONS)];

        if (0 == dn_test_below(&random, 60)) {
            try_all(&random);
        } else if (!item->waits) {
            item->to = (int) (d - destination);
            item->waits = 1;
            d->line[d->n++] = item;
            dn_queue_push(&round_, &d->queue, &item->super);
        } else if (0 == dn_test_below(&random, 8)) {
            size_t i = 0;
            while (item != d->line[i]) {
                i++;
            }
            model_drop(d, i);
            dn_queue_remove(&round_, &d->queue, &item->super);
        } else if (0 == dn_test_below(&random, 50)) {
            /* A destination is lost. */
            while (NULL != dn_queue_pop(&round_, &d->queue)) {
                model_drop(d, 0);
            }
        }
        check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(order_is_kept)};

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
