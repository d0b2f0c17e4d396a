/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_unit_emulate.h
 * Ports of emulate, which is in the program and not in a module.
 */
#ifndef DN_UNIT_EMULATE_H
#define DN_UNIT_EMULATE_H

#include "dn_unit.h"

#include "emulate/dn_emulate_int.h"

/** Group set-up as dn_unit_setup(): the ports count by the kernel's clock, which is there everywhere. */
static inline int dn_unit_setup_emulate(void **state)
{
    static const dn_device_module_t emulate = DN_DEVICE_MODULE_INIT(dn_device_emulate);

    setenv("DN_EMULATE_CLOCK", "kernel", 1);
    return DN_OK == dn_device_add(&emulate) ? dn_unit_setup(state) : 1;
}

#endif
