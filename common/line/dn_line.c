/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dimmnet.h"
#include "dn_line.h"

uint64_t dn_line_turn(dn_line_tx_t *tx, uint32_t at)
{
    uint64_t rewind = 0;

    if (at >= tx->lines) {
        tx->at = at - tx->lines;
    } else if (dn_line_free(tx, tx->lines - at + tx->lines / 4)) {
        tx->tail += tx->lines - at;
        tx->at = 0;
        rewind = DN_LINE_REWIND;
    } else {
        tx->at = at;
        return 0;
    }
    if (at > tx->lines) {
        /* The bytes of the message lie in the new lap already. */
        tx->clean = 0;
    } else {
        tx->clean = tx->mixed ? tx->clean : at;
        tx->mixed = 0;
    }
    return rewind;
}

int dn_line_send_long(dn_line_tx_t *tx, unsigned channel, unsigned tag, const void *head, size_t head_len,
                      const void *body, size_t body_len)
{
    const size_t len = head_len + body_len;
    const uint32_t span = dn_line_span(tx->at, len, tx->lines);
    uint8_t *data = dn_line_place(tx->ring, tx->at, len, tx->lines);
    size_t first = 0;

    if (!dn_line_free(tx, span)) {
        return 0;
    }
    /* The line of the next head comes while this message is copied. No receiver looks there yet. */
    dn_prefetch_own(&tx->ring->line[dn_line_next(tx->at, span, tx->lines)]);
    if (0 != body_len) {
        if (head_len <= DN_LINE_INLINE && dn_line_follows(tx->at, len, tx->lines)) {
            /* The receiver looks at the head's line all the time: what else lies there is written last. */
            first = DN_LINE_INLINE - head_len;
        }
        dn_copy_in(data + head_len + first, (const uint8_t *) body + first, body_len - first);
        dn_copy_inline(data + head_len, body, first);
    }
    if (0 != head_len) {
        memcpy(data, head, head_len);
    }
    dn_line_mix(tx);
    dn_line_publish(tx, channel, tag, len, span);
    return 1;
}
