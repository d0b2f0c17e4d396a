/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file edges_order.c
 * Matching: order, wildcards, matched probes, tags, intercommunicators.
 */
#include "dn_config.h"

#include "edges.h"

#include <stdlib.h>

static void matched_probe_takes_its_message_out(void)
{
    MPI_Request requests[3];
    unsigned char *out[3];

    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        if (0 == edges.rank) {
            for (int n = 0; n < 3; n++) {
                out[n] = edges_data(edges_lengths[i], (uint64_t) n);
                edges_must(MPI_Isend(out[n], (int) edges_lengths[i], MPI_BYTE, 1, EDGES_TAG, edges.pair,
                                     &requests[n]),
                           "MPI_Isend");
            }
            edges_must(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
            edges_meet();
            for (int n = 0; n < 3; n++) {
                free(out[n]);
            }
            continue;
        }
        unsigned char *in = verify_guard_alloc(edges_lengths[i], 0);
        MPI_Message messages[2];
        MPI_Status status;
        edges_must(MPI_Mprobe(0, EDGES_TAG, edges.pair, &messages[0], &status), "MPI_Mprobe");
        edges_status(&status, 0, EDGES_TAG, edges_lengths[i]);
        edges_must(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, edges.pair, &messages[1], &status), "MPI_Mprobe");
        edges_status(&status, 0, EDGES_TAG, edges_lengths[i]);
        edges_receive(edges_lengths[i], 2, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, EDGES_TAG, edges.pair);
        verify_that(!edges_is_there(MPI_ANY_SOURCE, MPI_ANY_TAG, edges.pair),
                    "a probe finds a message that was taken out");
        for (int n = 1; n >= 0; n--) {
            edges_must(MPI_Mrecv(in, (int) edges_lengths[i], MPI_BYTE, &messages[n], &status), "MPI_Mrecv");
            edges_status(&status, 0, EDGES_TAG, edges_lengths[i]);
            verify_expect(in, edges_lengths[i], (uint64_t) n, "message of a matched probe");
        }
        verify_guard_free(in, edges_lengths[i], 0, "receive after a matched probe");
        edges_meet();
    }
}

/* Length of message i: neighbours go different ways through a transport. */
static size_t mixed_length(int i)
{
    return edges_lengths[(size_t) (i * 7) % EDGES_LENGTHS];
}

/* Short and long messages of one tag, first unexpected, then into receives that wait for them. */
static void short_and_long_keep_their_order(void)
{
    enum { COUNT = 110 };
    MPI_Request requests[COUNT];
    unsigned char *bytes[COUNT];

    for (int posted = 0; posted < 2; posted++) {
        for (int i = 0; i < COUNT; i++) {
            int length = (int) mixed_length(i);
            if (0 == edges.rank && posted && 0 == i) {
                edges_meet();
            }
            if (0 == edges.rank) {
                bytes[i] = edges_data(mixed_length(i), (uint64_t) i);
                edges_must(MPI_Isend(bytes[i], length, MPI_BYTE, 1, EDGES_TAG, edges.world, &requests[i]),
                           "MPI_Isend");
            } else if (posted) {
                bytes[i] = edges_get(mixed_length(i), 1);
                edges_must(MPI_Irecv(bytes[i], length, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : 0,
                                     i % 3 ? MPI_ANY_TAG : EDGES_TAG, edges.world, &requests[i]),
                           "MPI_Irecv");
            }
        }
        if (1 == edges.rank && posted) {
            edges_meet();
        }
        if (1 == edges.rank && !posted) {
            edges_await(0, EDGES_TAG, edges.world);
            for (int i = 0; i < COUNT; i++) {
                edges_receive(mixed_length(i), (uint64_t) i, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, EDGES_TAG,
                              edges.world);
            }
            continue;
        }
        edges_must(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
        for (int i = 0; i < COUNT; i++) {
            verify_expect(bytes[i], mixed_length(i), (uint64_t) i, "message among shorter and longer ones");
            free(bytes[i]);
        }
    }
}

/* Receives that were posted before take what comes first, although a blocking one polls for it. */
static void blocking_receives_come_after_posted_ones(void)
{
    enum { COUNT = 60 };

    for (int i = 0; i < COUNT; i++) {
        const size_t length = mixed_length(i);
        MPI_Request request;

        if (0 == edges.rank) {
            edges_meet();
            edges_send(length, 2 * (uint64_t) i, 1, EDGES_TAG, edges.world);
            edges_send(length, 2 * (uint64_t) i + 1, 1, EDGES_TAG, edges.world);
            continue;
        }
        unsigned char *first = edges_get(length, 1);
        edges_must(MPI_Irecv(first, (int) length, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : 0,
                             i % 3 ? MPI_ANY_TAG : EDGES_TAG, edges.world, &request),
                   "MPI_Irecv");
        edges_meet();
        edges_receive(length, 2 * (uint64_t) i + 1, 0, EDGES_TAG, 0, EDGES_TAG, edges.world);
        edges_must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        verify_expect(first, length, 2 * (uint64_t) i, "message before that of a blocking receive");
        free(first);
    }
}

/* What a blocking receive polls for may come behind messages that are alike but for one thing. */
static void blocking_receives_pass_over_what_is_not_theirs(void)
{
    enum { COUNT = 60 };

    for (int i = 0; i < COUNT; i++) {
        /* So short that a send does not wait. */
        const size_t length = edges_lengths[i % 7];
        const MPI_Comm comm = i % 2 ? edges.world : edges.pair;
        const int tag = i % 2 ? EDGES_OTHER : EDGES_TAG;

        if (0 == edges.rank) {
            edges_meet();
            edges_send(length, 0, 1, tag, comm);
            edges_send(length, 1, 1, EDGES_TAG, edges.world);
            continue;
        }
        edges_meet();
        edges_receive(length, 1, 0, EDGES_TAG, 0, EDGES_TAG, edges.world);
        edges_receive(length, 0, 0, tag, 0, tag, comm);
    }
}

static void any_source_keeps_the_order_of_each(void)
{
    enum { COUNT = 400 };
    int next[EDGES_RANKS] = {0};

    if (0 != edges.rank) {
        for (int i = 0; i < COUNT; i++) {
            edges_send(mixed_length(i), verify_key((uint64_t) edges.rank, (uint64_t) i, 0, 0), 0, EDGES_TAG,
                       edges.world);
        }
        return;
    }
    unsigned char *in = verify_guard_alloc(EDGES_MIB, 0);
    for (int i = 0; i < COUNT * (edges.ranks - 1); i++) {
        MPI_Status status;
        edges_must(MPI_Recv(in, (int) EDGES_MIB, MPI_BYTE, MPI_ANY_SOURCE, i % 2 ? EDGES_TAG : MPI_ANY_TAG,
                            edges.world, &status),
                   "MPI_Recv");
        int source = status.MPI_SOURCE;
        verify_that(source > 0 && source < edges.ranks && next[source] < COUNT,
                    "a source that has sent everything");
        size_t length = mixed_length(next[source]);
        edges_status(&status, source, EDGES_TAG, length);
        verify_expect(in, length, verify_key((uint64_t) source, (uint64_t) next[source], 0, 0),
                      "next message of a source");
        next[source]++;
    }
    verify_guard_free(in, EDGES_MIB, 0, "receive from any source");
}

/* A receive of anything must not see what collectives send on the same communicator. */
static void wildcards_do_not_see_collectives(void)
{
    uint64_t in = 0;
    uint64_t sum = 0;
    uint64_t one = 1;
    MPI_Request request;
    MPI_Status status;

    edges_must(MPI_Irecv(&in, 1, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, edges.world, &request),
               "MPI_Irecv");
    for (int i = 0; i < 50; i++) {
        edges_must(MPI_Barrier(edges.world), "MPI_Barrier");
        edges_must(MPI_Allreduce(&one, &sum, 1, MPI_UINT64_T, MPI_SUM, edges.world), "MPI_Allreduce");
        verify_that((uint64_t) edges.ranks == sum, "MPI_Allreduce beside a receive of anything is wrong");
        edges_must(MPI_Bcast(&sum, 1, MPI_UINT64_T, i % edges.ranks, edges.world), "MPI_Bcast");
        verify_that(!edges_is_there(MPI_ANY_SOURCE, MPI_ANY_TAG, edges.world),
                    "a probe sees a collective's message");
    }
    edges_must(MPI_Send(&sum, 1, MPI_UINT64_T, (edges.rank + 1) % edges.ranks, EDGES_TAG, edges.world),
               "MPI_Send");
    edges_must(MPI_Wait(&request, &status), "MPI_Wait");
    edges_status(&status, (edges.rank + edges.ranks - 1) % edges.ranks, EDGES_TAG, sizeof(in));
    verify_that((uint64_t) edges.ranks == in, "a receive of anything got something else than the message");
}

static void outermost_tags_match(void)
{
    int *top = NULL;
    int found = 0;

    MPI_Comm_get_attr(edges.world, MPI_TAG_UB, &top, &found);
    verify_that(found && *top >= 32767, "MPI_TAG_UB is missing or below 32767");
    int tags[] = {0, 1, 32767, *top / 2, *top - 1, *top};
    int count = (int) (sizeof(tags) / sizeof(tags[0]));
    for (int i = 0; i < count; i++) {
        if (0 == edges.rank) {
            uint64_t value = (uint64_t) i;
            edges_must(MPI_Send(&value, 1, MPI_UINT64_T, 1, tags[i], edges.world), "MPI_Send");
        }
    }
    for (int i = count - 1; i >= 0 && 1 == edges.rank; i--) {
        uint64_t value = UINT64_MAX;
        MPI_Status status;
        edges_must(MPI_Recv(&value, 1, MPI_UINT64_T, 0, tags[i], edges.world, &status), "MPI_Recv");
        edges_status(&status, 0, tags[i], sizeof(value));
        verify_that((uint64_t) i == value, "a message came by another tag than its own");
    }
}

/* Even ranks on one side and odd ones on the other, in falling order; all talk to all of the other side. */
static void intercommunicator_carries_messages(void)
{
    MPI_Comm side;
    MPI_Comm inter;
    int others;
    int first =
        (edges.ranks - 1) % 2 == edges.rank % 2 ? edges.ranks - 2 : edges.ranks - 1; /* of the other side */

    edges_must(MPI_Comm_split(edges.world, edges.rank % 2, -edges.rank, &side), "MPI_Comm_split");
    edges_must(MPI_Intercomm_create(side, 0, edges.world, first, EDGES_TAG, &inter), "MPI_Intercomm_create");
    edges_must(MPI_Comm_remote_size(inter, &others), "MPI_Comm_remote_size");
    MPI_Request *requests = edges_get((size_t) others * EDGES_LENGTHS, sizeof(*requests));
    unsigned char **out = edges_get((size_t) others * EDGES_LENGTHS, sizeof(*out));
    int count = 0;
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        for (int other = 0; other < others; other++) {
            out[count] = edges_data(edges_lengths[i], (uint64_t) edges.rank);
            edges_must(MPI_Isend(out[count], (int) edges_lengths[i], MPI_BYTE, other, (int) i, inter,
                                 &requests[count]),
                       "MPI_Isend on an intercommunicator");
            count++;
        }
    }
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        for (int n = 0; n < others; n++) {
            MPI_Status status;
            edges_must(MPI_Probe(i % 2 ? n : MPI_ANY_SOURCE, (int) i, inter, &status), "MPI_Probe");
            int from = status.MPI_SOURCE;
            edges_receive(edges_lengths[i], (uint64_t) (first - 2 * from), from, (int) i, from, (int) i,
                          inter);
        }
    }
    edges_must(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    while (count > 0) {
        free(out[--count]);
    }
    free(out);
    free(requests);
    edges_must(MPI_Comm_free(&inter), "MPI_Comm_free");
    edges_must(MPI_Comm_free(&side), "MPI_Comm_free");
}

#define PATTERNS 4

/* All four kinds of receive, in one of their 24 orders. */
static void draw_order(int number, int *order)
{
    bool taken[PATTERNS] = {false};

    for (int i = 0, left = PATTERNS; i < PATTERNS; i++, left--) {
        int skip = number % left;
        int kind = 0;
        number /= left;
        while (taken[kind] || skip-- > 0) {
            kind++;
        }
        taken[kind] = true;
        order[i] = kind;
    }
}

static int source_of(int kind)
{
    return kind % 2 ? MPI_ANY_SOURCE : 0;
}

static int tag_of(int kind)
{
    return kind / 2 ? MPI_ANY_TAG : EDGES_TAG;
}

/* Message i of four: the first has another tag, which only receives of any tag take. */
static int tag_of_message(int i)
{
    return 0 == i ? EDGES_OTHER : EDGES_TAG;
}

/* Among receives that take a message the one posted first gets it, whatever is a wildcard in it. */
static void receives_are_served_in_the_order_of_posting(void)
{
    for (int number = 0; number < 24; number++) {
        uint64_t values[PATTERNS];
        MPI_Request requests[PATTERNS];
        int order[PATTERNS];
        bool served[PATTERNS] = {false};
        draw_order(number, order);
        for (int i = 0; i < PATTERNS && 1 == edges.rank; i++) {
            values[i] = UINT64_MAX;
            edges_must(MPI_Irecv(&values[i], 1, MPI_UINT64_T, source_of(order[i]), tag_of(order[i]),
                                 edges.world, &requests[i]),
                       "MPI_Irecv");
        }
        edges_meet();
        for (int i = 0; i < PATTERNS && 0 == edges.rank; i++) {
            uint64_t value = (uint64_t) i;
            edges_must(MPI_Send(&value, 1, MPI_UINT64_T, 1, tag_of_message(i), edges.world), "MPI_Send");
        }
        if (0 == edges.rank) {
            continue;
        }
        edges_must(MPI_Waitall(PATTERNS, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
        for (int i = 0; i < PATTERNS; i++) {
            int first = 0;
            while (served[first] || (0 == i && MPI_ANY_TAG != tag_of(order[first]))) {
                first++;
            }
            served[first] = true;
            verify_that((uint64_t) i == values[first], "a message went past a receive posted earlier");
        }
    }
}

/* The first message of this tag, or of any, that has not been taken; PATTERNS when none is left. */
static int first_left(const bool *taken, const int *tags, int tag)
{
    int first = 0;

    while (first < PATTERNS && (taken[first] || (MPI_ANY_TAG != tag && tag != tags[first]))) {
        first++;
    }
    return first;
}

/* Among messages that a receive takes it gets the one sent first. */
static void messages_are_taken_in_the_order_of_sending(void)
{
    static const int wanted[PATTERNS] = {EDGES_OTHER, MPI_ANY_TAG, EDGES_TAG, MPI_ANY_TAG};

    for (int number = 0; number < 1 << PATTERNS; number++) {
        int tags[PATTERNS];
        bool taken[PATTERNS] = {false};
        for (int i = 0; i < PATTERNS; i++) {
            uint64_t value = (uint64_t) i;
            tags[i] = number >> i & 1 ? EDGES_OTHER : EDGES_TAG;
            if (0 == edges.rank) {
                edges_must(MPI_Send(&value, 1, MPI_UINT64_T, 1, tags[i], edges.world), "MPI_Send");
            }
        }
        edges_meet();
        for (int i = 0; i < PATTERNS && 1 == edges.rank; i++) {
            const bool any = PATTERNS == first_left(taken, tags, wanted[i]);
            const int tag = any ? MPI_ANY_TAG : wanted[i];
            const int first = first_left(taken, tags, tag);
            uint64_t value = UINT64_MAX;
            edges_must(
                MPI_Recv(&value, 1, MPI_UINT64_T, source_of(number + i), tag, edges.world, MPI_STATUS_IGNORE),
                "MPI_Recv");
            verify_that((uint64_t) first == value, "a receive got another message than the first for it");
            taken[first] = true;
        }
    }
}

const edges_check_t edges_order[] = {
    {"matched_probe_takes_its_message_out", matched_probe_takes_its_message_out, false},
    {"short_and_long_keep_their_order", short_and_long_keep_their_order, false},
    {"blocking_receives_come_after_posted_ones", blocking_receives_come_after_posted_ones, false},
    {"blocking_receives_pass_over_what_is_not_theirs", blocking_receives_pass_over_what_is_not_theirs, false},
    {"any_source_keeps_the_order_of_each", any_source_keeps_the_order_of_each, true},
    {"wildcards_do_not_see_collectives", wildcards_do_not_see_collectives, true},
    {"outermost_tags_match", outermost_tags_match, false},
    {"intercommunicator_carries_messages", intercommunicator_carries_messages, true},
    {"receives_are_served_in_the_order_of_posting", receives_are_served_in_the_order_of_posting, false},
    {"messages_are_taken_in_the_order_of_sending", messages_are_taken_in_the_order_of_sending, false},
    {0},
};
