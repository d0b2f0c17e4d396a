/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_emulate_int.h"

DN_DEVICE_MODULE(dn_device_emulate);
