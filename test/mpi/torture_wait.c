/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file torture_wait.c
 * Ending requests in every way that MPI has, and checking what came.
 */
#include "dn_config.h"

#include "torture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Requests in one call at most. */
#define MOST_SET 16

/* Requests handed to one call, with what they belong to. Some entries are null or inactive: half is NULL. */
typedef struct {
    half_t *halves[MOST_SET];
    MPI_Request requests[MOST_SET];
    MPI_Status statuses[MOST_SET];
    int indices[MOST_SET];
    bool ended[MOST_SET];
    int errors[MOST_SET];
    int count;
    int due;
} set_t;

enum {
    BY_WAIT,
    BY_WAITALL,
    BY_WAITANY,
    BY_WAITSOME,
    BY_TEST,
    BY_TESTALL,
    BY_TESTANY,
    BY_TESTSOME,
    BY_GET_STATUS,
    WAYS_TO_END
};

static int error_class(round_t *r, int error)
{
    int class;

    if (MPI_SUCCESS != MPI_Error_class(error, &class)) {
        round_fail(r, NULL, "%d is not an error code", error);
    }
    return class;
}

bool truncates(const message_t *m)
{
    return m->group < 0 && m->bytes > shape_units(&m->in) * m->in.unit;
}

void pend(round_t *r, half_t *half, uint64_t due)
{
    half->due = due;
    half->active = true;
    r->pending[r->pending_count++] = half;
}

static void unpend(round_t *r, const half_t *half)
{
    int i = 0;

    while (r->pending[i] != half) {
        i++;
    }
    r->pending[i] = r->pending[--r->pending_count];
}

static void check_not_cancelled(round_t *r, const message_t *m, const MPI_Status *status)
{
    int cancelled = 0;

    MPI_Test_cancelled(status, &cancelled);
    if (cancelled) {
        round_fail(r, m, "the status says cancelled");
    }
}

/* Source and tag of a status must be those of message m. */
static void check_origin(round_t *r, const message_t *m, const MPI_Status *status)
{
    int source = r->t->spaces[m->space].place[m->source];

    if (status->MPI_SOURCE != source || status->MPI_TAG != m->tag) {
        round_fail(r, m, "the status says source %d and tag %d, expected %d and %d", status->MPI_SOURCE,
                   status->MPI_TAG, source, m->tag);
    }
}

static void check_count(round_t *r, const message_t *m, MPI_Status *status, MPI_Datatype type, size_t each)
{
    size_t units = m->bytes / m->out.unit;
    int count = -1;
    int elements = -1;
    int expected = 0 == units % each ? (int) (units / each) : MPI_UNDEFINED;

    MPI_Get_count(status, type, &count);
    MPI_Get_elements(status, type, &elements);
    if (count != expected || elements != (int) units) {
        round_fail(r, m, "the status says count %d and %d elements, expected %d and %zu", count, elements,
                   expected, units);
    }
}

void check_probed(round_t *r, const message_t *m, MPI_Status *status)
{
    if (m->group >= 0) {
        return;
    }
    check_origin(r, m, status);
    check_count(r, m, status, shape_basic(m->in.unit), 1);
}

void check_null_status(round_t *r, MPI_Status *status)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    if (MPI_PROC_NULL != status->MPI_SOURCE || MPI_ANY_TAG != status->MPI_TAG || 0 != count) {
        round_fail(r, NULL, "a call with MPI_PROC_NULL gave source %d, tag %d, count %d", status->MPI_SOURCE,
                   status->MPI_TAG, count);
    }
}

static void check_empty(round_t *r, MPI_Status *status)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    if (MPI_ANY_SOURCE != status->MPI_SOURCE || MPI_ANY_TAG != status->MPI_TAG || 0 != count) {
        round_fail(r, NULL, "the status of an inactive request has source %d, tag %d, count %d",
                   status->MPI_SOURCE, status->MPI_TAG, count);
    }
    check_not_cancelled(r, NULL, status);
}

/* Which message of the plan begins with these bytes, to tell a lost order from damage. */
static void name_owner(const round_t *r, const image_t *image, size_t bytes, char *text, size_t text_size)
{
    unsigned char *data = malloc(bytes + 1);
    size_t first = bytes < 8 ? bytes : 8;

    verify_that(NULL != data, "no memory for the data of a message");
    image_gather(image, bytes, data);
    for (int i = 0; i < r->plan->count && first > 3; i++) {
        if (first == verify_mismatch(data, first, r->plan->messages[i].key)) {
            snprintf(text, text_size, "; it begins as message %d", i);
        }
    }
    free(data);
}

static void check_data(round_t *r, const message_t *m, const image_t *image)
{
    char text[256] = "";
    char owner[64] = "";
    size_t room = shape_units(&image->shape) * image->shape.unit;
    size_t bytes = m->bytes < room ? m->bytes : room;

    if (!image_holds(image, bytes, m->key, text, sizeof(text))) {
        name_owner(r, image, bytes, owner, sizeof(owner));
        round_fail(r, m, "%s%s", text, owner);
    }
    r->t->messages++;
    r->t->bytes += bytes;
}

void check_sent(round_t *r, const message_t *m, const image_t *image)
{
    char text[256];

    if (!image_holds(image, m->bytes, m->key, text, sizeof(text))) {
        round_fail(r, m, "the send buffer changed: %s", text);
    }
}

/* When all receives of a group have ended: each must have the next message of the source that it names. */
static void check_group(round_t *r, const group_t *group)
{
    message_t *messages = r->plan->messages;
    bool taken[MOST_MEMBERS] = {false};

    for (int i = 0; i < group->count; i++) {
        half_t *half = &r->receives[group->by_recv[i]];
        const int *place = r->t->spaces[messages[group->by_recv[i]].space].place;
        int j = 0;
        while (j < group->count
               && (taken[j] || place[messages[group->by_send[j]].source] != half->status.MPI_SOURCE)) {
            j++;
        }
        if (j == group->count) {
            round_fail(r, half->m, "a receive of group %d came from rank %d, which has no message left in it",
                       half->m->group, half->status.MPI_SOURCE);
        }
        const message_t *m = &messages[group->by_send[j]];
        taken[j] = true;
        check_origin(r, m, &half->status);
        check_count(r, m, &half->status, half->image.type, half->image.shape.each);
        check_data(r, m, &half->image);
    }
    for (int i = 0; i < group->count; i++) {
        half_t *half = &r->receives[group->by_recv[i]];
        if (!half->persistent) {
            image_close(&half->image, "receive of a group");
        }
    }
}

void check_received(round_t *r, half_t *half, MPI_Status *status, int error)
{
    message_t *m = half->m;
    int expected = truncates(m) ? MPI_ERR_TRUNCATE : MPI_SUCCESS;

    if (error_class(r, error) != expected) {
        round_fail(r, m, "%s gave error class %d, expected %d", r->t->doing, error_class(r, error), expected);
    }
    check_not_cancelled(r, m, status);
    if (m->group >= 0) {
        const group_t *group = &r->plan->groups[m->group];
        half->status = *status;
        if (++r->received[m->group] == group->count) {
            check_group(r, group);
        }
        return;
    }
    check_origin(r, m, status);
    if (MPI_SUCCESS == expected) {
        check_count(r, m, status, half->image.type, half->image.shape.each);
    } else {
        r->t->truncated++;
    }
    check_data(r, m, &half->image);
    if (!half->persistent) {
        image_close(&half->image, "receive");
    }
}

static void check_junk(round_t *r, half_t *half, const MPI_Status *status)
{
    char text[256];
    int cancelled = 0;

    MPI_Test_cancelled(status, &cancelled);
    if (!half->cancelled || !cancelled) {
        round_fail(r, NULL, "a receive that nothing can match ended%s",
                   half->cancelled ? " uncancelled" : "");
    }
    if (!image_holds(&half->image, 0, 0, text, sizeof(text))) {
        round_fail(r, NULL, "a cancelled receive changed its buffer: %s", text);
    }
    image_close(&half->image, "cancelled receive");
    r->t->cancelled++;
}

/* A request has ended. */
static void end_half(round_t *r, half_t *half, MPI_Status *status, int error)
{
    half->active = false;
    unpend(r, half);
    if (half->persistent == (MPI_REQUEST_NULL == half->request)) {
        round_fail(r, half->m, "%s left a %s request", r->t->doing, half->persistent ? "null" : "live");
    }
    if (HALF_RECEIVE == half->kind) {
        check_received(r, half, status, error);
        return;
    }
    if (MPI_SUCCESS != error) {
        round_fail(r, half->m, "%s gave error class %d", r->t->doing, error_class(r, error));
    }
    if (HALF_JUNK == half->kind) {
        check_junk(r, half, status);
    } else if (HALF_SEND == half->kind) {
        check_not_cancelled(r, half->m, status);
        if (half->m->held && r->now < half->m->recv_at) {
            round_fail(r, half->m, "a synchronous send ended before its receive began");
        }
        check_sent(r, half->m, &half->image);
        if (!half->persistent) {
            image_close(&half->image, "send");
        }
    }
}

/*
 * Some pending halves. A receive that will be truncated is alone: when a call gives an error, Open MPI 4.1
 * frees whatever of its requests seems to have one, and looks for that in such as have not ended too.
 * MPI_Waitall does not get it at all, because it may hang then when there are threads.
 */
static void choose_set(round_t *r, set_t *set, int way)
{
    int most = 1 + (int) verify_below(&r->rng, MOST_SET - 2);
    int start = (int) verify_below(&r->rng, (uint64_t) r->pending_count);
    bool alone = false;

    *set = (set_t){.count = 0};
    for (int i = 0; i < r->pending_count && set->count < most && !alone; i++) {
        half_t *half = r->pending[(start + i) % r->pending_count];
        bool truncated = HALF_RECEIVE == half->kind && truncates(half->m);
        bool due = half->due < r->now;
        if ((!due && (BY_WAIT == way || BY_WAITALL == way))
            || (truncated && (set->count > 0 || BY_WAITALL == way))) {
            continue;
        }
        alone = truncated;
        set->due += due;
        set->requests[set->count] = half->request;
        set->halves[set->count++] = half;
    }
    /* An entry that is null, or inactive, must not matter. */
    if (set->count > 0 && !alone && 0 == verify_below(&r->rng, 3)) {
        int leader = r->plan->count > 0 ? (int) verify_below(&r->rng, (uint64_t) r->plan->count) : 0;
        const half_t *idle = &r->sends[leader];
        set->requests[set->count] = MPI_REQUEST_NULL;
        if (idle->persistent && !idle->active && MPI_REQUEST_NULL != idle->request) {
            set->requests[set->count] = idle->request;
        }
        set->count++;
    }
}

/* Take over what a call left in the array, for entry i. */
static void note(set_t *set, int i, const MPI_Status *status, int error)
{
    set->ended[i] = true;
    set->errors[i] = error;
    set->statuses[i] = *status;
}

static void end_all(round_t *r, set_t *set, bool wait)
{
    MPI_Status statuses[MOST_SET];
    int done = 1;
    int result;

    if (wait) {
        round_enter(r, "MPI_Waitall", NULL);
        result = MPI_Waitall(set->count, set->requests, statuses);
    } else {
        round_enter(r, "MPI_Testall", NULL);
        result = MPI_Testall(set->count, set->requests, &done, statuses);
    }
    if (MPI_SUCCESS != result && MPI_ERR_IN_STATUS != error_class(r, result)) {
        round_must(r, result);
    }
    for (int i = 0; i < set->count && done; i++) {
        int error = MPI_SUCCESS == result ? MPI_SUCCESS : statuses[i].MPI_ERROR;
        if (NULL == set->halves[i]) {
            check_empty(r, &statuses[i]);
        } else if (MPI_ERR_PENDING != error) {
            note(set, i, &statuses[i], error);
        }
    }
}

static void end_several(round_t *r, set_t *set, bool wait)
{
    MPI_Status statuses[MOST_SET];
    int count = 0;
    int result;

    if (wait) {
        round_enter(r, "MPI_Waitsome", NULL);
        result = MPI_Waitsome(set->count, set->requests, &count, set->indices, statuses);
    } else {
        round_enter(r, "MPI_Testsome", NULL);
        result = MPI_Testsome(set->count, set->requests, &count, set->indices, statuses);
    }
    if (MPI_SUCCESS != result && MPI_ERR_IN_STATUS != error_class(r, result)) {
        round_must(r, result);
    }
    if (MPI_UNDEFINED == count || (wait && count < 1)) {
        round_fail(r, NULL, "%s says %d of %d requests ended", r->t->doing, count, set->count);
    }
    for (int i = 0; i < count; i++) {
        note(set, set->indices[i], &statuses[i], MPI_SUCCESS == result ? result : statuses[i].MPI_ERROR);
    }
}

static void end_any(round_t *r, set_t *set, bool wait)
{
    MPI_Status status;
    int index = MPI_UNDEFINED;
    int done = 1;
    int result;

    if (wait) {
        round_enter(r, "MPI_Waitany", NULL);
        result = MPI_Waitany(set->count, set->requests, &index, &status);
    } else {
        round_enter(r, "MPI_Testany", NULL);
        result = MPI_Testany(set->count, set->requests, &index, &done, &status);
    }
    if (!done && MPI_SUCCESS == result) {
        return;
    }
    if (index < 0 || index >= set->count) {
        round_fail(r, NULL, "%s gave index %d of %d requests", r->t->doing, index, set->count);
    }
    note(set, index, &status, result);
}

/* The call reports one request, the first. */
static void end_one(round_t *r, set_t *set, int way)
{
    MPI_Status status;
    int done = 1;
    int result;

    if (BY_GET_STATUS == way) {
        round_enter(r, "MPI_Request_get_status", set->halves[0]->m);
        round_must(r, MPI_Request_get_status(set->requests[0], &done, &status));
    }
    if (!done) {
        return;
    }
    if (BY_WAIT == way) {
        round_enter(r, "MPI_Wait", set->halves[0]->m);
        result = MPI_Wait(&set->requests[0], &status);
    } else {
        round_enter(r, "MPI_Test", set->halves[0]->m);
        result = MPI_Test(&set->requests[0], &done, &status);
    }
    if (!done && BY_GET_STATUS == way) {
        round_fail(r, set->halves[0]->m, "MPI_Request_get_status says ended, MPI_Test does not");
    }
    if (done) {
        note(set, 0, &status, result);
    }
}

static void end_set(round_t *r, set_t *set, int way)
{
    switch (way) {
    case BY_WAITALL:
    case BY_TESTALL:
        end_all(r, set, BY_WAITALL == way);
        break;
    case BY_WAITSOME:
    case BY_TESTSOME:
        end_several(r, set, BY_WAITSOME == way);
        break;
    case BY_WAITANY:
    case BY_TESTANY:
        end_any(r, set, BY_WAITANY == way);
        break;
    default:
        end_one(r, set, way);
        break;
    }
    for (int i = 0; i < set->count; i++) {
        half_t *half = set->halves[i];
        if (NULL == half) {
            if (set->ended[i]) {
                round_fail(r, NULL, "%s reported an inactive request", r->t->doing);
            }
            continue;
        }
        half->request = set->requests[i];
    }
    for (int i = 0; i < set->count; i++) {
        if (set->ended[i]) {
            end_half(r, set->halves[i], &set->statuses[i], set->errors[i]);
        }
    }
}

void end_some(round_t *r)
{
    set_t set;
    int way = (int) verify_below(&r->rng, WAYS_TO_END);

    if (0 == r->pending_count) {
        return;
    }
    choose_set(r, &set, way);
    if (set.count > 0 && (way >= BY_TEST || set.due > 0)) {
        end_set(r, &set, way);
    }
}

void end_this(round_t *r, half_t *half)
{
    while (half->active) {
        set_t set = {.halves = {half}, .requests = {half->request}, .count = 1, .due = 1};
        int way = (int) verify_below(&r->rng, WAYS_TO_END);
        end_set(r, &set, BY_WAITALL == way ? BY_WAIT : way);
    }
}
