/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Memory of kept messages. Where a sender is ahead of its receiver, each message is kept for a moment. The C library gives
 * memory of this length back to the kernel, and the next message takes page faults, which last longer than its copy. So memory that was
 * given back is used again. The memory that was given back last is used first.
 */
#include "dn_config.h"

#include "dn_tag_int.h"

#include <stdlib.h>

/** Bytes of data in memory of size 1; each further size holds twice as much. Messages of up to half of this length, and messages too long
 * for the last size, have size 0: their memory goes back to the C library. */
#define DN_TAG_ROOM_LEAST 2048u

/** Bytes of data at most for which an engine's idle memory has room: as many as a stage holds. So far a sender can be ahead before it is
 * told to hold messages back. */
#define DN_TAG_ROOM_IDLE ((size_t) 4 << 20)

/** Bytes of data that memory of a size holds. @param[in] size  Not 0. */
static size_t dn_tag_room_len(unsigned size)
{
    return (size_t) DN_TAG_ROOM_LEAST << (size - 1);
}

/** The size of the memory for @p len bytes of data. */
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

/** Free the idle memory of a size. */
static void dn_tag_room_drop(dn_tag_room_t *room, unsigned size)
{
    while (NULL != room->idle[size]) {
        dn_tag_msg_t *msg = room->idle[size];

        room->idle[size] = msg->idle;
        room->idle_bytes -= dn_tag_room_len(size);
        free(msg);
    }
}

/** Free the idle memory of all sizes but @p size. Size 0 has no idle memory. */
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
        /* The idle memory of other sizes is not needed now: messages have this length. */
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
