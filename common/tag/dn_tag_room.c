/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Memory of kept messages. Where a sender is ahead of its receiver, each message is kept for a moment. The C library gives
 * memory of this length back to the kernel, and the next message takes page faults, which last longer than its copy. So memory that was
 * given back is used again, what was used last first.
 */
#include "dn_config.h"

#include "dn_tag_int.h"

#include <stdlib.h>

/** Data of size 1; each further one has twice as much. Messages of half as much are the C library's, and those beyond the last: size 0. */
#define DN_TAG_ROOM_LEAST 2048u

/** Data that idle memory of an engine has room for, at most: as much as a stage holds, which a sender can be ahead before it is told. */
#define DN_TAG_ROOM_IDLE ((size_t) 4 << 20)

/** Data that a size has room for; not of 0. */
static size_t dn_tag_room_len(unsigned size)
{
    return (size_t) DN_TAG_ROOM_LEAST << (size - 1);
}

/** The size for so much data. */
static unsigned dn_tag_room_size(size_t len)
{
    unsigned size = 1;

    if (len <= DN_TAG_ROOM_LEAST / 2) {
        return 0;
    }
    while (DN_TAG_ROOM_SIZES > size && dn_tag_room_len(size) < len) {
        size++;
    }
    return DN_TAG_ROOM_SIZES > size ? size : 0;
}

dn_tag_msg_t *dn_tag_room_get(dn_tag_t *tag, size_t len)
{
    const unsigned size = dn_tag_room_size(len);
    dn_tag_msg_t *msg = tag->room.idle[size];

    if (NULL != msg) {
        tag->room.idle[size] = msg->idle;
        tag->room.idle_bytes -= dn_tag_room_len(size);
        return msg;
    }
    msg = malloc(sizeof(*msg) + (0 != size ? dn_tag_room_len(size) : len));
    if (NULL != msg) {
        msg->room = size;
    }
    return msg;
}

/** Free what is idle of a size. */
static void dn_tag_room_drop(dn_tag_room_t *room, unsigned size)
{
    while (NULL != room->idle[size]) {
        dn_tag_msg_t *msg = room->idle[size];

        room->idle[size] = msg->idle;
        room->idle_bytes -= dn_tag_room_len(size);
        free(msg);
    }
}

/** Free what is idle of all sizes but one; size 0 has nothing. */
static void dn_tag_room_drop_others(dn_tag_room_t *room, unsigned size)
{
    for (unsigned other = 1; DN_TAG_ROOM_SIZES > other; other++) {
        if (size != other) {
            dn_tag_room_drop(room, other);
        }
    }
}

void dn_tag_room_put(dn_tag_t *tag, dn_tag_msg_t *msg)
{
    dn_tag_room_t *room = &tag->room;

    if (NULL == msg || 0 == msg->room) {
        free(msg);
        return;
    }
    const size_t len = dn_tag_room_len(msg->room);
    if (DN_TAG_ROOM_IDLE - room->idle_bytes < len) {
        /* Messages have other lengths now. */
        dn_tag_room_drop_others(room, msg->room);
    }
    if (DN_TAG_ROOM_IDLE - room->idle_bytes < len) {
        free(msg);
        return;
    }
    room->idle_bytes += len;
    msg->idle = room->idle[msg->room];
    room->idle[msg->room] = msg;
}

void dn_tag_room_close(dn_tag_t *tag)
{
    dn_tag_room_drop_others(&tag->room, 0);
}
