/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_atomic.h"
#include "dn_core.h"
#include "dn_log.h"

enum {
    DN_FAULT_RULES_MAX = 64,
    DN_FAULT_N_MAX = 1000000,
    DN_FAULT_HELD_MAX = 64, /**< messages held for one peer; more are refused with DN_ERR_AGAIN */
    DN_FAULT_TICKS_MAX = 8  /**< progress calls for which a delayed message is held, at most */
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

static const char *const dn_fault_op_name[OP_COUNT] = {"botf", "aotf", "push", "pull", "atomic", "fence"};

static const struct {
    const char *name;
    const char *fits; /**< for the log line */
    unsigned ops;     /**< bit set of dn_fault_op_t */
} dn_fault_kinds[FAULT_COUNT] = {
    [FAULT_AGAIN] = {"again", "any operation", (1U << OP_COUNT) - 1},
    [FAULT_DELAY] = {"delay", "botf", 1U << OP_BOTF},
    [FAULT_SLOW] = {"slow", "push, pull and atomic", 1U << OP_PUSH | 1U << OP_PULL | 1U << OP_ATOMIC},
    [FAULT_CORRUPT] = {"corrupt", "botf", 1U << OP_BOTF},
    [FAULT_DROP] = {"drop", "botf and aotf", 1U << OP_BOTF | 1U << OP_AOTF},
    [FAULT_DUP] = {"dup", "botf", 1U << OP_BOTF},
    [FAULT_KILL] = {"kill", "any operation", (1U << OP_COUNT) - 1},
};

typedef struct dn_fault_rule {
    dn_fault_op_t op;
    dn_fault_kind_t kind;
    uint32_t n;
} dn_fault_rule_t;

/** A message in our hands: a window being filled, or one that waits for its time. */
typedef struct dn_fault_message {
    struct dn_fault_message *next;
    dn_fault_kind_t kind; /**< what befalls it at its kick */
    uint64_t due;         /**< leaves when dn_fault_t::tick has come here */
    unsigned channel;
    unsigned tag;
    size_t len;
    uint8_t data[] __attribute__((aligned(64)));
} dn_fault_message_t;

/**
 * Hung on dn_peer_base_t::fault, and kept until dn_fault_close(): a peer may be lost, and so detached,
 * while another thread is in one of the entries below. The lock is a leaf: no call into the device or
 * the port under it.
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
    uint32_t killed;
    int killed_told;
    int releasing; /**< one thread at a time takes from the queue, so that order is kept */
    unsigned held;
    dn_fault_message_t *first, **last_next; /**< waiting, in the order of their kicks */
    dn_fault_message_t *windows;            /**< handed out by reserve */
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

/** The inline calls find us through the peer that they were given. */
static dn_fault_peer_t *dn_fault_of(const dn_peer_t *peer)
{
    return ((const dn_peer_base_t *) peer)->fault;
}

/** A bijective mix of a counter (a Weyl sequence through two xor-shift-multiply rounds). */
static uint64_t dn_fault_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t dn_fault_draw(dn_fault_peer_t *fp)
{
    return dn_fault_mix(dn_fetch_add_u64(&fp->random, UINT64_C(0x9e3779b97f4a7c15)));
}

/** What befalls this call. FAULT_KILL has taken effect already. */
static dn_fault_kind_t dn_fault_roll(dn_fault_peer_t *fp, dn_fault_op_t op)
{
    const dn_fault_t *fault = fp->fault;

    if (dn_load_acquire_u32(&fp->killed)) {
        return FAULT_KILL;
    }
    for (unsigned i = 0; i < fault->nrules; i++) {
        const dn_fault_rule_t *rule = &fault->rule[i];
        if (rule->op == op && 0 == dn_fault_draw(fp) % rule->n) {
            if (FAULT_KILL == rule->kind) {
                dn_store_release_u32(&fp->killed, 1);
            }
            return rule->kind;
        }
    }
    return FAULT_NONE;
}

/* Held messages */

static dn_fault_message_t *dn_fault_message_new(dn_fault_peer_t *fp, dn_fault_kind_t kind, size_t len)
{
    dn_fault_message_t *msg = aligned_alloc(64, (sizeof(*msg) + len + 63) / 64 * 64);

    if (NULL != msg) {
        msg->next = NULL;
        msg->kind = kind;
        msg->due = __atomic_load_n(&fp->fault->tick, __ATOMIC_RELAXED);
        msg->channel = 0;
        msg->tag = 0;
        msg->len = len;
    }
    return msg;
}

/** Lock held by the caller. */
static void dn_fault_append(dn_fault_peer_t *fp, dn_fault_message_t *msg)
{
    msg->next = NULL;
    *fp->last_next = msg;
    fp->last_next = &msg->next;
    fp->held++;
}

static int dn_fault_held(dn_fault_peer_t *fp)
{
    dn_lock(&fp->lock);
    const unsigned held = fp->held;
    dn_unlock(&fp->lock);
    return (int) held;
}

/** The first message if it may leave now (any time, when `all`), else NULL. */
static dn_fault_message_t *dn_fault_first(dn_fault_peer_t *fp, int all)
{
    const uint64_t tick = __atomic_load_n(&fp->fault->tick, __ATOMIC_RELAXED);

    dn_lock(&fp->lock);
    dn_fault_message_t *msg = fp->first;
    if (NULL != msg && !all && tick < msg->due) {
        msg = NULL;
    }
    dn_unlock(&fp->lock);
    return msg;
}

static void dn_fault_pop(dn_fault_peer_t *fp, dn_fault_message_t *msg)
{
    dn_lock(&fp->lock);
    fp->first = msg->next;
    if (NULL == fp->first) {
        fp->last_next = &fp->first;
    }
    fp->held--;
    dn_unlock(&fp->lock);
    free(msg);
}

/**
 * Send what may leave, in order, until the device has no room. A message stays first in the queue while
 * the device takes it, so that a sender who finds the queue empty may go straight to the device.
 */
static int dn_fault_release(dn_fault_peer_t *fp, int all)
{
    int released = 0;

    dn_lock(&fp->lock);
    const int mine = !fp->releasing;
    fp->releasing = 1;
    dn_unlock(&fp->lock);
    if (!mine) {
        return 0;
    }
    for (dn_fault_message_t *msg = dn_fault_first(fp, all); NULL != msg; msg = dn_fault_first(fp, all)) {
        dn_status_t status = DN_ERR_UNREACH;
        if (!fp->base->lost && !dn_load_acquire_u32(&fp->killed)) {
            status = fp->inner.botf(&fp->base->hot, msg->channel, msg->tag, msg->data, msg->len, NULL, 0);
        }
        if (DN_ERR_AGAIN == status) {
            break;
        }
        dn_fault_pop(fp, msg);
        released++;
        if (dn_load_acquire_u32(&fp->detached)) {
            /* The device found the peer lost: what is left is freed at the end. */
            break;
        }
    }
    dn_lock(&fp->lock);
    fp->releasing = 0;
    dn_unlock(&fp->lock);
    return released;
}

/** Turn one bit over; an empty message has only its tag. */
static void dn_fault_corrupt(dn_fault_peer_t *fp, dn_fault_message_t *msg)
{
    const uint64_t bit = dn_fault_draw(fp);

    if (0 < msg->len) {
        msg->data[bit / 8 % msg->len] ^= (uint8_t) (1U << bit % 8);
    } else {
        msg->tag ^= 1U << bit % 8;
    }
}

/** A complete message meets its fate: queued, twice or not at all. Ours from here on. */
static void dn_fault_submit(dn_fault_peer_t *fp, dn_fault_message_t *msg)
{
    dn_fault_message_t *twin = NULL;

    switch (msg->kind) {
    case FAULT_DROP:
        free(msg);
        return;
    case FAULT_CORRUPT:
        dn_fault_corrupt(fp, msg);
        break;
    case FAULT_DELAY:
        msg->due += 1 + dn_fault_draw(fp) % DN_FAULT_TICKS_MAX;
        break;
    case FAULT_DUP:
        twin = dn_fault_message_new(fp, FAULT_NONE, msg->len);
        if (NULL != twin) {
            twin->channel = msg->channel;
            twin->tag = msg->tag;
            memcpy(twin->data, msg->data, msg->len);
        }
        break;
    default:
        break;
    }
    dn_lock(&fp->lock);
    dn_fault_append(fp, msg);
    if (NULL != twin) {
        dn_fault_append(fp, twin);
    }
    dn_unlock(&fp->lock);
    dn_fault_release(fp, 0);
}

/**
 * Decide about one message of len bytes.
 * @param[out] msg_p  NULL with DN_OK: nothing befalls it, send it through the device.
 */
static dn_status_t dn_fault_admit(dn_fault_peer_t *fp, size_t len, dn_fault_message_t **msg_p)
{
    const dn_fault_kind_t kind = dn_fault_roll(fp, OP_BOTF);

    *msg_p = NULL;
    if (FAULT_KILL == kind) {
        return DN_ERR_UNREACH;
    }
    if (FAULT_AGAIN == kind) {
        return DN_ERR_AGAIN;
    }
    const int held = dn_fault_held(fp);
    if (FAULT_NONE == kind && 0 == held) {
        return DN_OK;
    }
    if (DN_FAULT_HELD_MAX <= held) {
        return DN_ERR_AGAIN;
    }
    *msg_p = dn_fault_message_new(fp, kind, len);
    return NULL != *msg_p ? DN_OK : DN_ERR_AGAIN;
}

/* Entries of the table that callers see */

static dn_status_t dn_fault_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                                 size_t head_len, const void *body, size_t body_len)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);
    dn_fault_message_t *msg = NULL;

    if (fp->base->botf_max < head_len || fp->base->botf_max - head_len < body_len) {
        return fp->inner.botf(peer, channel, tag, head, head_len, body, body_len);
    }
    const dn_status_t status = dn_fault_admit(fp, head_len + body_len, &msg);
    if (DN_OK != status) {
        return status;
    }
    if (NULL == msg) {
        return fp->inner.botf(peer, channel, tag, head, head_len, body, body_len);
    }
    msg->channel = channel;
    msg->tag = tag;
    if (0 < head_len) {
        memcpy(msg->data, head, head_len);
    }
    if (0 < body_len) {
        memcpy(msg->data + head_len, body, body_len);
    }
    dn_fault_submit(fp, msg);
    return DN_OK;
}

static dn_status_t dn_fault_reserve(dn_peer_t *peer, size_t len, dn_window_t *window)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);
    dn_fault_message_t *msg = NULL;

    if (fp->base->botf_max < len) {
        return fp->inner.reserve(peer, len, window);
    }
    const dn_status_t status = dn_fault_admit(fp, len, &msg);
    if (DN_OK != status) {
        return status;
    }
    if (NULL == msg) {
        return fp->inner.reserve(peer, len, window);
    }
    window->data = msg->data;
    window->len = len;
    window->mark = 0;
    dn_lock(&fp->lock);
    msg->next = fp->windows;
    fp->windows = msg;
    dn_unlock(&fp->lock);
    return DN_OK;
}

static void dn_fault_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);

    dn_lock(&fp->lock);
    dn_fault_message_t **link = &fp->windows;
    while (NULL != *link && (*link)->data != window->data) {
        link = &(*link)->next;
    }
    dn_fault_message_t *msg = *link;
    if (NULL != msg) {
        *link = msg->next;
    }
    dn_unlock(&fp->lock);
    if (NULL == msg) {
        fp->inner.kick(peer, window, channel, tag, len);
        return;
    }
    msg->channel = channel;
    msg->tag = tag;
    msg->len = len < msg->len ? len : msg->len;
    dn_fault_submit(fp, msg);
}

static dn_status_t dn_fault_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);

    switch (dn_fault_roll(fp, OP_AOTF)) {
    case FAULT_AGAIN:
        return DN_ERR_AGAIN;
    case FAULT_KILL:
        return DN_ERR_UNREACH;
    case FAULT_DROP:
        return DN_OK;
    default:
        return fp->inner.aotf(peer, off, value, size);
    }
}

static dn_status_t dn_fault_aotf_line(dn_peer_t *peer, uint64_t off, const void *data, size_t len,
                                      uint64_t flag)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);

    switch (dn_fault_roll(fp, OP_AOTF)) {
    case FAULT_AGAIN:
        return DN_ERR_AGAIN;
    case FAULT_KILL:
        return DN_ERR_UNREACH;
    case FAULT_DROP:
        return DN_OK;
    default:
        return fp->inner.aotf_line(peer, off, data, len, flag);
    }
}

static dn_status_t dn_fault_push(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);

    switch (dn_fault_roll(fp, OP_PUSH)) {
    case FAULT_AGAIN:
        return DN_ERR_AGAIN;
    case FAULT_KILL:
        return DN_ERR_UNREACH;
    case FAULT_SLOW:
        return dn_core_push(peer, xfer);
    default:
        return fp->inner.push(peer, xfer);
    }
}

static dn_status_t dn_fault_pull(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);

    switch (dn_fault_roll(fp, OP_PULL)) {
    case FAULT_AGAIN:
        return DN_ERR_AGAIN;
    case FAULT_KILL:
        return DN_ERR_UNREACH;
    case FAULT_SLOW:
        return dn_core_pull(peer, xfer);
    default:
        return fp->inner.pull(peer, xfer);
    }
}

static dn_status_t dn_fault_atomic(dn_peer_t *peer, const dn_amo_t *amo)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);

    switch (dn_fault_roll(fp, OP_ATOMIC)) {
    case FAULT_AGAIN:
        return DN_ERR_AGAIN;
    case FAULT_KILL:
        return DN_ERR_UNREACH;
    case FAULT_SLOW:
        return dn_core_atomic(peer, amo);
    default:
        return fp->inner.atomic(peer, amo);
    }
}

/** What comes after the fence must not overtake what is held here. */
static dn_status_t dn_fault_fence(dn_peer_t *peer)
{
    dn_fault_peer_t *fp = dn_fault_of(peer);

    switch (dn_fault_roll(fp, OP_FENCE)) {
    case FAULT_AGAIN:
        return DN_INPROGRESS;
    case FAULT_KILL:
        return DN_ERR_UNREACH;
    default:
        return 0 < dn_fault_held(fp) ? DN_INPROGRESS : fp->inner.fence(peer);
    }
}

static const dn_peer_ops_t dn_fault_ops = {
    .botf = dn_fault_botf,
    .reserve = dn_fault_reserve,
    .kick = dn_fault_kick,
    .aotf = dn_fault_aotf,
    .aotf_line = dn_fault_aotf_line,
    .push = dn_fault_push,
    .pull = dn_fault_pull,
    .atomic = dn_fault_atomic,
    .fence = dn_fault_fence,
};

/* The schedule's text */

/** A name among `count`, `len` bytes long and not terminated. @return its index, or count. */
static unsigned dn_fault_lookup(const char *text, size_t len, const char *(*name)(unsigned), unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (NULL != name(i) && strlen(name(i)) == len && 0 == memcmp(name(i), text, len)) {
            return i;
        }
    }
    return count;
}

static const char *dn_fault_op_text(unsigned i)
{
    return dn_fault_op_name[i];
}

static const char *dn_fault_kind_text(unsigned i)
{
    return dn_fault_kinds[i].name;
}

/** A whole number of exactly `len` bytes, digits only. @return 1 when it is one and at most max. */
static int dn_fault_number(const char *text, size_t len, uint64_t max, uint64_t *value_p)
{
    uint64_t value = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || '9' < text[i] || __builtin_mul_overflow(value, UINT64_C(10), &value)
            || __builtin_add_overflow(value, (uint64_t) (text[i] - '0'), &value) || max < value) {
            return 0;
        }
    }
    *value_p = value;
    return 0 < len;
}

/** Enter `kind` for one operation, or for each that it fits. */
static dn_status_t dn_fault_rule_add(dn_fault_t *fault, unsigned ops, dn_fault_kind_t kind, uint32_t n)
{
    for (unsigned op = 0; op < OP_COUNT; op++) {
        if (0 == (ops & 1U << op)) {
            continue;
        }
        if (DN_FAULT_RULES_MAX == fault->nrules) {
            dn_log_error(
                "fault schedule: more than %d rules (\"all\" counts once for each operation): leave some out",
                DN_FAULT_RULES_MAX);
            return DN_ERR_PARAM;
        }
        fault->rule[fault->nrules++] = (dn_fault_rule_t){(dn_fault_op_t) op, kind, n};
    }
    return DN_OK;
}

/** One OP:FAULT/N. */
static dn_status_t dn_fault_parse_rule(dn_fault_t *fault, const char *text, size_t len)
{
    const char *colon = memchr(text, ':', len);
    const char *slash = memchr(text, '/', len);
    const int shown = (int) (len < 64 ? len : 64);
    uint64_t n = 0;

    if (NULL == colon || NULL == slash || slash < colon) {
        dn_log_error(
            "fault schedule: \"%.*s\" is not a rule: write OP:FAULT/N such as botf:again/7, or seed=NUMBER",
            shown, text);
        return DN_ERR_PARAM;
    }
    const size_t op_len = (size_t) (colon - text);
    const int all = 3 == op_len && 0 == memcmp(text, "all", 3);
    const unsigned op = dn_fault_lookup(text, op_len, dn_fault_op_text, OP_COUNT);
    if (OP_COUNT == op && !all) {
        dn_log_error(
            "fault schedule: \"%.*s\" names no operation: use botf, aotf, push, pull, atomic, fence or all",
            shown, text);
        return DN_ERR_PARAM;
    }
    const unsigned kind =
        dn_fault_lookup(colon + 1, (size_t) (slash - colon - 1), dn_fault_kind_text, FAULT_COUNT);
    if (FAULT_COUNT == kind) {
        dn_log_error(
            "fault schedule: \"%.*s\" names no fault: use again, delay, slow, corrupt, drop, dup or kill",
            shown, text);
        return DN_ERR_PARAM;
    }
    const unsigned ops = all ? dn_fault_kinds[kind].ops : 1U << op & dn_fault_kinds[kind].ops;
    if (0 == ops) {
        dn_log_error("fault schedule: \"%.*s\" cannot be: %s is for %s", shown, text,
                     dn_fault_kinds[kind].name, dn_fault_kinds[kind].fits);
        return DN_ERR_PARAM;
    }
    if (!dn_fault_number(slash + 1, len - (size_t) (slash + 1 - text), DN_FAULT_N_MAX, &n) || 0 == n) {
        dn_log_error("fault schedule: \"%.*s\" has no usable N: write a whole number from 1 to %d", shown,
                     text, DN_FAULT_N_MAX);
        return DN_ERR_PARAM;
    }
    return dn_fault_rule_add(fault, ops, (dn_fault_kind_t) kind, (uint32_t) n);
}

static dn_status_t dn_fault_parse_seed(dn_fault_t *fault, const char *text, size_t len, int *seeded)
{
    if (*seeded) {
        dn_log_error("fault schedule: a second seed: give one seed=NUMBER");
        return DN_ERR_PARAM;
    }
    if (!dn_fault_number(text + 5, len - 5, UINT64_MAX, &fault->seed)) {
        dn_log_error(
            "fault schedule: \"%.*s\" is no seed: write a whole number from 0 to 18446744073709551615",
            (int) (len < 64 ? len : 64), text);
        return DN_ERR_PARAM;
    }
    *seeded = 1;
    return DN_OK;
}

static dn_status_t dn_fault_parse(dn_fault_t *fault, const char *schedule)
{
    int seeded = 0;

    fault->seed = 1;
    for (const char *text = schedule;; text++) {
        const size_t len = strcspn(text, ",");
        const dn_status_t status = 5 <= len && 0 == memcmp(text, "seed=", 5)
                                       ? dn_fault_parse_seed(fault, text, len, &seeded)
                                       : dn_fault_parse_rule(fault, text, len);
        if (DN_OK != status) {
            return status;
        }
        text += len;
        if ('\0' == *text) {
            break;
        }
    }
    const size_t room = strlen(schedule) + sizeof(",seed=1");
    fault->replay = malloc(room);
    if (NULL == fault->replay) {
        dn_log_error("fault schedule: no memory for %zu bytes", room);
        return DN_ERR_NOMEM;
    }
    snprintf(fault->replay, room, "%s%s", schedule, seeded ? "" : ",seed=1");
    return DN_OK;
}

/* What the port calls */

dn_status_t dn_fault_open(const char *schedule, uint32_t pid, dn_fault_t **fault_p)
{
    dn_fault_t *fault = calloc(1, sizeof(*fault));

    if (NULL == fault) {
        dn_log_error("fault schedule: no memory for %zu bytes", sizeof(*fault));
        return DN_ERR_NOMEM;
    }
    fault->pid = pid;
    const dn_status_t status = dn_fault_parse(fault, schedule);
    if (DN_OK != status) {
        dn_fault_close(fault);
        return status;
    }
    *fault_p = fault;
    return DN_OK;
}

static void dn_fault_peer_free(dn_fault_peer_t *fp)
{
    while (NULL != fp->first) {
        dn_fault_pop(fp, fp->first);
    }
    while (NULL != fp->windows) {
        dn_fault_message_t *msg = fp->windows;
        fp->windows = msg->next;
        free(msg);
    }
    free(fp);
}

void dn_fault_close(dn_fault_t *fault)
{
    int left = 0;

    while (NULL != fault->peers) {
        dn_fault_peer_t *fp = fault->peers;
        fault->peers = fp->next;
        left += fp->left;
        dn_fault_peer_free(fp);
    }
    if (0 < left) {
        dn_log_error(
            "fault schedule: %d held messages found no room at their peer's disconnection and were dropped: "
            "progress until dn_fence() gives DN_OK before disconnecting",
            left);
    }
    free(fault->replay);
    free(fault);
}

/** What an earlier attachment of the same peer still holds comes first. Nobody else calls this peer now. */
static void dn_fault_inherit(dn_fault_peer_t *fp, dn_fault_peer_t *before)
{
    if (NULL == before || 0 == before->left) {
        return;
    }
    fp->first = before->first;
    fp->last_next = before->last_next;
    fp->held = before->held;
    before->first = NULL;
    before->last_next = &before->first;
    before->held = 0;
    before->left = 0;
}

dn_status_t dn_fault_attach(dn_fault_t *fault, dn_peer_base_t *peer)
{
    dn_fault_peer_t *before = peer->fault;
    dn_fault_peer_t *fp = calloc(1, sizeof(*fp));

    if (NULL == fp) {
        dn_log_error("fault schedule: no memory for %zu bytes", sizeof(*fp));
        return DN_ERR_NOMEM;
    }
    fp->fault = fault;
    fp->base = peer;
    fp->inner = peer->hot.ops;
    fp->last_next = &fp->first;
    fp->random = dn_fault_mix(fault->seed) ^ dn_fault_mix((uint64_t) fault->pid << 32 | peer->pid);
    peer->fault = fp;
    peer->hot.ops = dn_fault_ops;
    dn_fault_inherit(fp, before);
    dn_lock(&fault->lock);
    fp->next = fault->peers;
    fault->peers = fp;
    dn_unlock(&fault->lock);
    return DN_OK;
}

void dn_fault_detach(dn_fault_t *fault, dn_peer_base_t *peer)
{
    dn_fault_peer_t *fp = peer->fault;

    (void) fault;
    if (NULL == fp || dn_load_acquire_u32(&fp->detached)) {
        return;
    }
    dn_fault_release(fp, 1);
    dn_store_release_u32(&fp->detached, 1);
    if (!peer->lost) {
        peer->hot.ops = fp->inner;
        /* Left for the next attachment of this peer, else for the log line of dn_fault_close(). */
        fp->left = dn_fault_held(fp);
    }
}

/** Outside of the call that drew the fault: the port signals completions while it does this. */
static void dn_fault_tell_killed(dn_fault_peer_t *fp)
{
    dn_lock(&fp->lock);
    const int tell = dn_load_acquire_u32(&fp->killed) && !fp->killed_told && !fp->detached;
    fp->killed_told |= tell;
    dn_unlock(&fp->lock);
    if (tell && !fp->base->lost) {
        dn_port_t *port = fp->base->iface->port;
        dn_port_lock(port);
        dn_port_peer_lost(port, fp->base);
        dn_port_unlock(port);
    }
}

int dn_fault_progress(dn_fault_t *fault)
{
    int released = 0;

    __atomic_fetch_add(&fault->tick, 1, __ATOMIC_RELAXED);
    dn_lock(&fault->lock);
    dn_fault_peer_t *fp = fault->peers;
    dn_unlock(&fault->lock);
    for (; NULL != fp; fp = fp->next) {
        if (!dn_load_acquire_u32(&fp->detached)) {
            released += dn_fault_release(fp, 0);
            dn_fault_tell_killed(fp);
        }
    }
    return released;
}

const char *dn_fault_replay(const dn_fault_t *fault)
{
    return fault->replay;
}
