/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_fault_int.h
 * Private to the fault wrapper:
 *
 *   dn_fault.c           calls that faults hit; attaching and detaching peers
 *   dn_fault_held.c      messages that are delayed
 *   dn_fault_schedule.c  the schedule's text
 */
#ifndef DN_FAULT_INT_H
#define DN_FAULT_INT_H

#include "dn_fault.h"

#include "dn_atomic.h"
#include "dn_queue.h"

enum {
    DN_FAULT_RULES_MAX = 64,
    DN_FAULT_HELD_MAX = 64 /**< messages held for one peer; more are refused with DN_ERR_AGAIN */
};

typedef enum dn_fault_op { OP_BOTF, OP_AOTF, OP_PUSH, OP_PULL, OP_ATOMIC, OP_FENCE, OP_COUNT } dn_fault_op_t;

typedef enum dn_fault_kind {
    FAULT_NONE,
    FAULT_AGAIN,
    FAULT_DELAY,
    FAULT_SLOW,
    FAULT_CORRUPT,
    FAULT_DROP,
    FAULT_DUP,
    FAULT_KILL,
    FAULT_COUNT
} dn_fault_kind_t;

typedef struct dn_fault_rule {
    dn_fault_op_t op;
    dn_fault_kind_t kind;
    uint32_t n;
} dn_fault_rule_t;

/** A message that the wrapper holds: a window that is being filled, or a message that waits for its time. */
typedef struct dn_fault_message {
    dn_queue_item_t item; /**< first: in dn_fault_peer_t::waiting, or in windows */
    dn_fault_kind_t kind; /**< the fault that hits the message at its kick */
    uint64_t due;         /**< the message leaves when dn_fault_t::tick has come to this number */
    unsigned channel;
    unsigned tag;
    size_t len;
    uint8_t data[] __attribute__((aligned(64)));
} dn_fault_message_t;

/**
 * The wrapper of a peer, in dn_peer_base_t::fault. It is kept until dn_fault_close(): a peer may be lost, and so
 * detached, while another thread is in a call of the wrapper. The lock is a leaf: no call into the device or
 * the port is made under it.
 */
typedef struct dn_fault_peer {
    struct dn_fault_peer *next; /**< of the list in dn_fault_t; never changes */
    uint32_t detached;          /**< base may be gone */
    int left;                   /**< messages for which the device had no room at the detachment */
    dn_fault_t *fault;
    dn_peer_base_t *base;
    dn_peer_ops_t inner; /**< the device's and port's own */
    uint64_t random;     /**< state of the generator: a counter, so that drawing needs no lock */
    dn_lock_t lock;      /**< of all below */
    /** not 0: no call reaches the peer any more: the schedule has killed it, or it was lost */
    uint32_t killed;
    int killed_told;
    int releasing; /**< one thread at a time takes from the queue, so that order is kept */
    unsigned held;
    dn_fifo_t waiting; /**< in the order of their kicks */
    dn_fifo_t windows; /**< handed out by reserve */
} dn_fault_peer_t;

struct dn_fault {
    unsigned nrules;
    dn_fault_rule_t rule[DN_FAULT_RULES_MAX];
    uint64_t seed;
    uint32_t pid;
    uint64_t tick; /**< progress calls so far */
    dn_lock_t lock;
    dn_fault_peer_t *peers;
    char *replay;
};

/** A bijective mix of a counter (a Weyl sequence through two xor-shift-multiply rounds). */
static inline uint64_t dn_fault_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t dn_fault_draw(dn_fault_peer_t *fp)
{
    return dn_fault_mix(dn_fetch_add_acq_rel(&fp->random, UINT64_C(0x9e3779b97f4a7c15)));
}

/** Put a schedule's rules and seed into what dn_fault_open() returns. DN_ERR_PARAM: logged. */
dn_status_t dn_fault_parse(dn_fault_t *fault, const char *schedule);

/** @name Messages that the wrapper holds. None of these functions is called with the peer's lock. */
/** @{ */
/** Make a message of len bytes, which the caller fills in. A fault hits it at its kick. NULL: no memory. */
dn_fault_message_t *dn_fault_message_new(dn_fault_peer_t *fp, dn_fault_kind_t kind, size_t len);
/** How many messages wait. */
int dn_fault_held(dn_fault_peer_t *fp);
/** Forget a message, the first that waits. */
void dn_fault_pop(dn_fault_peer_t *fp, dn_fault_message_t *msg);
/**
 * Send the messages that may leave, in order, until the device has no room. A message stays first in the queue while
 * the device takes it. So a sender that finds the queue empty may go straight to the device.
 * @param all  Not 0: also messages whose time has not come.
 * @return how many have left.
 */
int dn_fault_release(dn_fault_peer_t *fp, int all);
/** Apply the fault to a complete message: it is queued once, twice or not at all. The wrapper owns it from here on. */
void dn_fault_submit(dn_fault_peer_t *fp, dn_fault_message_t *msg);
/** @} */

#endif
