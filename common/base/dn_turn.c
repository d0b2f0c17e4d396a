/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_turn.h"

#include <stdlib.h>

#include "dn_log.h"

void dn_turn_refuse(const char *what, unsigned from, unsigned to)
{
    dn_log_error("%s turned from state %u to %u, which no drawing shows", what, from, to);
    abort();
}
