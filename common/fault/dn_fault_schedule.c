/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_fault_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

#define DN_FAULT_N_MAX 1000000

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

dn_status_t dn_fault_parse(dn_fault_t *fault, const char *schedule)
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
