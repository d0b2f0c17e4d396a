/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file ofi_world.h
 * What tests share that know the state of the ofi device: a world of processes over a network of this host.
 */
#ifndef OFI_WORLD_H
#define OFI_WORLD_H

#include "dn_world.h"

#include "dn_port.h"
#include "ofi/dn_ofi_int.h"

/** The device of a process that has opened its port. */
static inline dn_ofi_t *ofi_device(const dn_world_t *world)
{
    return (dn_ofi_t *) world->port->ifaces;
}

/** dn_world_run_tests() over the network. @param program  As it is called. */
static inline int ofi_run_tests(const dn_world_test_t *test, size_t tests, const char *program,
                                const char *name)
{
    const dn_variant_t network = {
        .file = program, .device = "ofi:tcp;ofi_rxm@lo", .settings = "ring_lines=64"};

    return dn_world_run_tests(test, tests, &network, name);
}

#endif
