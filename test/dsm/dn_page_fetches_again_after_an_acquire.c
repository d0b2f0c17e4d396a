/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A page is being fetched by one thread while another one acquires: what was PULLed ahead of that is not what is seen. The end of the PULL
 * is where the acquire comes.
 */
#include "dn_config.h"

#include "../device/dn_world.h"
#include "dn_dsm_op.h"
#include "dn_page.h"

static dn_mapping_t *map;
static volatile uint8_t memory[100];
static unsigned ends; /**< of PULLs */

dn_status_t __real_dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port);
dn_status_t __wrap_dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port);

dn_status_t __wrap_dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port)
{
    const dn_status_t status = __real_dn_dsm_op_end(op, port);

    ends++;
    if (1 == ends) {
        memory[1] = 2;
        dn_check_equal(dn_page_acquire(map), DN_OK);
    }
    return status;
}

static void test(dn_world_t *world)
{
    dn_segment_t *segment;
    dn_key_t key;

    memory[1] = 1;
    dn_world_start(world);
    dn_world_connect_to(world, 0);
    dn_check_equal(dn_segment_register(world->port, (void *) (uintptr_t) memory, sizeof(memory), &segment),
                   DN_OK);
    dn_segment_key(segment, &key);
    dn_check_equal(dn_page_map(world->port, world->peer[0], &key, 0, sizeof(memory), "segv", &map), DN_OK);
    dn_check_equal(((volatile uint8_t *) dn_page_base(map))[1], 2);
    dn_check_equal(ends, 2);
    dn_check_equal(dn_page_unmap(map), DN_OK);
    dn_world_stop(world);
}

int main(void)
{
    static const dn_variant_t shm = {.file = "", .device = "shm"};

    return dn_world_run("dn_page_fetches_again_after_an_acquire", &shm, 1, test);
}
