/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Tells which part of a transfer a message of the core processors is, for devices that give transfers other times than messages.
 */
#include "dn_config.h"

#include "dn_core_int.h"

#include <string.h>

/** The part that a request of a PUSH or PULL is. */
static dn_core_part_t dn_core_request_part(unsigned tag, const void *message, size_t len)
{
    dn_core_request_t request;
    dn_core_part_t part = {.kind = DN_CORE_PART_NONE};

    if (sizeof(request) > len) {
        return part;
    }
    memcpy(&request, message, sizeof(request));
    const int program = 0 != (request.flags & DN_CORE_USE);
    const size_t head = sizeof(request) + dn_core_side_bytes(&request);
    if (head > len) {
        return part;
    }
    part.kind = DN_CORE_PUSH == tag ? DN_CORE_PART_PUSH : DN_CORE_PART_ASK;
    part.first = 0 != (request.flags & DN_CORE_FIRST);
    part.last = 0 != (request.flags & DN_CORE_LAST);
    part.status = 0 != (request.flags & DN_CORE_STATUS);
    part.program = program;
    part.blocks = program || 0 == request.blocks ? 1 : request.blocks;
    part.len = len - head;
    return part;
}

dn_core_part_t dn_core_part(unsigned tag, const void *message, size_t len)
{
    dn_core_reply_t reply;

    if (DN_CORE_PUSH == tag || DN_CORE_PULL == tag) {
        return dn_core_request_part(tag, message, len);
    }
    if ((DN_CORE_PUSH_DONE != tag && DN_CORE_PULL_DATA != tag) || sizeof(reply) > len) {
        return (dn_core_part_t){.kind = DN_CORE_PART_NONE};
    }
    memcpy(&reply, message, sizeof(reply));
    return (dn_core_part_t){.kind = DN_CORE_PUSH_DONE == tag ? DN_CORE_PART_DONE : DN_CORE_PART_DATA,
                            .program = 0 != (reply.flags & DN_CORE_USE),
                            .off = reply.off,
                            .len = len - sizeof(reply)};
}
