/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_fibnic.h"

/** Shortest frame: what a FIFO may hold when the next frame starts. */
#define DN_FIBNIC_THRESHOLD 64u

int dn_fibnic_offer(dn_fibnic_t *out, unsigned input, size_t frame)
{
    if (DN_FIBNIC_THRESHOLD < out->stored[input]) {
        return 0;
    }
    out->stored[input] += frame;
    return 1;
}

int dn_fibnic_serve(dn_fibnic_t *out, size_t frame)
{
    for (unsigned i = 0; i < out->inputs; i++) {
        const unsigned input = (out->turn + i) % out->inputs;
        if (frame <= out->stored[input]) {
            out->stored[input] -= frame;
            out->turn = (input + 1) % out->inputs;
            return (int) input;
        }
    }
    return -1;
}

double dn_fibnic_loss_percent(unsigned inputs, size_t frame, unsigned frames)
{
    dn_fibnic_t out = {.inputs = inputs};
    unsigned lost = 0;

    /* All frames start together; in the time of one the output passes one on. */
    for (unsigned i = 0; i < frames; i++) {
        for (unsigned input = 0; input < inputs; input++) {
            lost += !dn_fibnic_offer(&out, input, frame);
        }
        dn_fibnic_serve(&out, frame);
    }
    return 100.0 * lost / ((double) inputs * frames);
}
