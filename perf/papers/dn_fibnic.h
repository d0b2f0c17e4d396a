/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_fibnic.h
 * FIBNIC's outputs under congestion (IP-NUMA thesis, 11.4).
 */
#ifndef DN_FIBNIC_H
#define DN_FIBNIC_H

#include <stddef.h>

/** FIFOs of an output, one for each input, frames in bytes of link time. */
typedef struct dn_fibnic {
    size_t stored[16];
    unsigned inputs;
    unsigned turn; /**< input that is served next */
} dn_fibnic_t;

/** A frame starts to come in. @return 0: dropped whole, since more than a shortest frame is stored there. */
int dn_fibnic_offer(dn_fibnic_t *out, unsigned input, size_t frame);
/** Send the next frame of the FIFOs, in turn. @return its input, or -1: all are empty. */
int dn_fibnic_serve(dn_fibnic_t *out, size_t frame);

/** Loss in percent when so many inputs send frames at wire rate to one output. */
double dn_fibnic_loss_percent(unsigned inputs, size_t frame, unsigned frames);

#endif
