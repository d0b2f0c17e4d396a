/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file conformance.h
 * The conformance suite: what dimmnet.h promises, as tests that know no device.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "dn_atomic.h"
#include "dn_world.h"

#define CONF_TEST(name, processes) void name(dn_world_t *world);
#include "conf_tests.h"
#undef CONF_TEST

#endif
