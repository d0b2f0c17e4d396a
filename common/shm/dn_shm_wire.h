/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_wire.h
 * The shm device: each process owns one shared mapping. Its peers write there by stores, and the owner polls it.
 *
 *   0            header: identity, sizes, help descriptors           dn_shm_header_t, one page
 *   slots_off    slot i: the sender that writes into ring i           dn_shm_slot_t, 64 B each
 *   llcm_off     LLCM
 *   rings_off    ring i, for the sender in slot i                    dn_ring_t
 *   stage_off    the stage: longer messages that the owner sends     dn_shm_stage.c; at a multiple of DN_SHM_GRANULE
 *
 * The mapping is sparse: a ring takes memory when its first message is written, and so does the stage. A sender claims a slot
 * by compare-and-swap, writes its identity there, makes the slot READY and counts `arrivals` up. The owner then attaches to
 * the sender's mapping and compares identities. Only then does the owner read the ring. The owner cannot attach to a sender
 * that has closed its port already: there the owner only checks that the slot names an admitted group.
 */
#ifndef DN_SHM_WIRE_H
#define DN_SHM_WIRE_H

#include <stddef.h>

#include "dn_device.h"
#include "dn_line.h"
#include "dn_topo.h"

#define DN_SHM_MAGIC    0x6e6d6964u /* "dimn" */
#define DN_SHM_PAGE     4096u
#define DN_SHM_HELPS    8 /**< transfers shared at once; the initiator copies further ones alone */
#define DN_SHM_PATH_MAX 200

#define DN_SHM_GRANULE (32u << 10) /**< bytes of the stage that serve one pair at a time */
#define DN_SHM_STAGED  0x80u       /**< in the channel of a line: the message lies in the sender's stage */

/** Bits of dn_shm_help_t::next that hold the number of a chunk; and the largest number of chunks of a transfer. */
#define DN_SHM_CHUNK_BITS 20
#define DN_SHM_CHUNKS_MAX ((UINT32_C(1) << DN_SHM_CHUNK_BITS) - 1)

/** A transfer of which the target may copy a share: both processes claim chunks from `next`. */
typedef struct dn_shm_help {
    uint64_t next;   /**< generation:44 | first chunk not taken:20 */
    uint64_t done;   /**< chunks finished by the target */
    uint64_t failed; /**< 0, or 1 + the chunk that the target took and could not copy */
    uint8_t pad[DN_LINE_BYTES - 3 * sizeof(uint64_t)];
} dn_shm_help_t;

_Static_assert(sizeof(dn_shm_help_t) == DN_LINE_BYTES, "a help descriptor is a line");

typedef struct dn_shm_header {
    uint32_t version; /**< DN_WIRE_VERSION */
    uint32_t magic;
    uint64_t bytes; /**< of the whole mapping */
    dn_pgid_t pgid;
    uint64_t nonce[2];
    uint32_t pid;
    uint32_t uid;
    uint32_t os_pid;
    uint32_t max_peers;
    uint32_t ring_lines;
    uint32_t stage_bytes; /**< multiple of DN_SHM_GRANULE */
    uint64_t start_time;  /**< of the process, clock ticks since boot */
    uint64_t llcm_bytes;
    uint64_t cma_probe; /**< address of a copy of nonce in the owner's private memory */
    dn_cpumask_t units; /**< where the owner may run */
    uint32_t nlocal;    /**< processes of the group on this host, 0: not known */
    uint8_t host[16];   /**< as in dn_shm_where_t */
    uint32_t first;     /**< dn_config_t::first: the lines in its rings are numbered from here */
    uint8_t pad1[8];

    uint32_t arrivals; /**< counts slots that became READY or CLOSED; wraps; polled by the owner */
    uint32_t closed;   /**< not 0: the owner has closed its port */
    uint32_t bell;     /**< dn_wait.h */
    uint8_t pad2[DN_LINE_BYTES - 3 * sizeof(uint32_t)];

    dn_shm_help_t help[DN_SHM_HELPS];
} dn_shm_header_t;

_Static_assert(offsetof(dn_shm_header_t, arrivals) % DN_LINE_BYTES == 0, "arrivals has its own line");
_Static_assert(offsetof(dn_shm_header_t, help) % DN_LINE_BYTES == 0, "help descriptors are lines");
_Static_assert(sizeof(dn_shm_header_t) <= DN_SHM_PAGE, "the header is one page");

enum dn_shm_slot_state {
    DN_SHM_FREE = 0,
    DN_SHM_CLAIMED = 1, /**< a sender fills it in: the low bits of dn_shm_claim() */
    DN_SHM_READY = 2,
    DN_SHM_CLOSED = 3, /**< no more messages; the owner drains the ring and frees the slot */
};

/** The state of a claimed slot names the process that claimed it, since this process may end before it has written its identity.
 * From the high bits: start time:8, PID:22, DN_SHM_CLAIMED:2. Linux has no PIDs of more than 22 bits. */
static inline uint32_t dn_shm_claim(uint32_t os_pid, uint64_t start_time)
{
    return (uint32_t) (start_time & 0xff) << 24 | (os_pid & 0x3fffff) << 2 | DN_SHM_CLAIMED;
}

static inline int dn_shm_is_claim(uint32_t state)
{
    return DN_SHM_CLAIMED == (state & 3);
}

typedef struct dn_shm_slot {
    uint32_t state;
    uint32_t pid;
    uint32_t os_pid;
    int32_t fd; /**< descriptor of the sender's mapping, in the sender's process */
    uint64_t start_time;
    uint64_t nonce[2];
    dn_pgid_t pgid;
    uint32_t pages; /**< length of the sender's mapping, in DN_SHM_PAGE */
    uint32_t life;  /**< counts the slots that this sender has taken, here and elsewhere; wraps */
} dn_shm_slot_t;

_Static_assert(sizeof(dn_shm_slot_t) == 64, "an idle pair costs one line");

/** This device's part of an address: how to find a process's mapping. */
typedef struct dn_shm_where {
    uint8_t host[16]; /**< kernel boot, PID namespace and IPC namespace, folded */
    uint64_t nonce[2];
    uint64_t start_time;
    uint64_t bytes;
    uint64_t user_ns;
    uint32_t uid;
    uint32_t os_pid;
    int32_t fd;
    int32_t memfd; /**< not 0: fd is a memfd, found through /proc by the same user namespace only */
    char path[DN_SHM_PATH_MAX]; /**< "" with a memfd */
} dn_shm_where_t;

#define DN_SHM_KEY_CMA    DN_KEY_SHM       /**< word[0]: the address of the segment's start */
#define DN_SHM_KEY_MAPPED (DN_KEY_SHM + 1) /**< fd: the segment's memfd */

/** First page of an allocated segment; the user's memory follows. */
typedef struct dn_shm_segment_head {
    uint32_t magic;
    uint32_t live; /**< the key's generation while the segment lives, then 0 */
    uint64_t len;
    uint32_t sid;
} dn_shm_segment_head_t;

#endif
