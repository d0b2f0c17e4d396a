/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file orders_cases.h
 * Small cases of the protocols whose memory orders are explored, and the orders that each of them needs.
 */
#ifndef ORDERS_CASES_H
#define ORDERS_CASES_H

#include "dn_explore.h"

/** A case, and the orders without which it must fail; up to the first without a word. */
typedef struct orders_case {
    dn_explore_case_t run;
    dn_explore_weak_t needs[8];
} orders_case_t;

/** Up to the first without a name. */
extern const orders_case_t orders_line[];
extern const orders_case_t orders_tree[];
extern const orders_case_t orders_stage[];

#endif
