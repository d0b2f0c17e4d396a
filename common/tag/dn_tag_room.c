/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Memory of kept messages. Where a sender is ahead of its receiver, each message is kept for a moment. The C library gives
 * memory of this size back to the kernel, and its pages come anew with the next message, which takes longer than to copy that. So what was
 * given back is used again, what was used last first.
 */
#include "dn_config.h"

#include "dn_tag_int.h"

#include <stdlib.h>

/** Data of the first class; each further one has twice as much. Shorter messages are the C library's: class 0. */
#define DN_TAG_ROOM_LEAST 2048u

/** Memory that is not used is the engine's up to here: what a sender can be ahead before it hears that it is. */
#define DN_TAG_ROOM_IDLE ((size_t) 4 << 20)

/** Data that fits into a class. */
static size_t dn_tag_room_len(unsigned class)
{
    return (size_t) DN_TAG_ROOM_LEAST << (class - 1);
}

/** The class for so much data. */
static unsigned dn_tag_room_class(size_t len)
{
    unsigned class = 1;

    if (len <= DN_TAG_ROOM_LEAST / 2) {
        return 0;
    }
    while (DN_TAG_ROOM_CLASSES > class && dn_tag_room_len(class) < len) {
        class ++;
    }
    return DN_TAG_ROOM_CLASSES > class ? class : 0;
}

dn_tag_msg_t *dn_tag_room_get(dn_tag_t *tag, size_t len)
{
    const unsigned class = dn_tag_room_class(len);
    dn_tag_msg_t *msg = tag->room.idle[class];

    if (NULL != msg) {
        tag->room.idle[class] = msg->idle;
        tag->room.idle_bytes -= dn_tag_room_len(class);
        return msg;
    }
    msg = malloc(sizeof(*msg) + (0 != class ? dn_tag_room_len(class) : len));
    if (NULL != msg) {
        msg->room = class;
    }
    return msg;
}

/** Free what is idle in a class. */
static void dn_tag_room_drop(dn_tag_room_t *room, unsigned class)
{
    while (NULL != room->idle[class]) {
        dn_tag_msg_t *msg = room->idle[class];

        room->idle[class] = msg->idle;
        room->idle_bytes -= dn_tag_room_len(class);
        free(msg);
    }
}

/** Free what is idle in all classes but one; class 0 has nothing. */
static void dn_tag_room_drop_others(dn_tag_room_t *room, unsigned class)
{
    for (unsigned other = 1; DN_TAG_ROOM_CLASSES > other; other++) {
        if (class != other) {
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
