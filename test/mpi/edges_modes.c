/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file edges_modes.c
 * Messages cut short, and messages of every mode, to others and to oneself.
 */
#include "dn_config.h"

#include "edges.h"

#include <stdlib.h>
#include <string.h>

/* --- truncation */

enum { RECV, POSTED, WILD, MRECV, IMRECV, WAYS_TO_RECEIVE };

typedef struct {
    size_t length; /* of the message */
    size_t room;   /* less */
    bool synchronous;
    bool spaced; /* on both sides every byte has a gap of one behind it */
    int way;
} cut_t;

#define GAP_BYTE 0x5A

/* A byte with a gap of one behind it. */
static MPI_Datatype make_spaced(void)
{
    MPI_Datatype spaced;

    edges_must(MPI_Type_create_resized(MPI_BYTE, 0, 2, &spaced), "MPI_Type_create_resized");
    edges_must(MPI_Type_commit(&spaced), "MPI_Type_commit");
    return spaced;
}

/* Put gaps between bytes, and take them out. */
static void spread(unsigned char *to, const unsigned char *from, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        to[2 * i] = from[i];
        to[2 * i + 1] = GAP_BYTE;
    }
}

static void gather(unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        verify_that(GAP_BYTE == bytes[2 * i + 1], "a gap was written by a truncated receive");
        bytes[i] = bytes[2 * i];
    }
}

/* Returns what the call gave that ends the receive. */
static int receive_short(const cut_t *cut, void *in, MPI_Datatype type, int source, MPI_Request *posted,
                         MPI_Status *status)
{
    const int room = (int) cut->room;
    MPI_Message message;
    MPI_Request request;
    int error = MPI_SUCCESS;

    switch (cut->way) {
    case RECV:
        return MPI_Recv(in, room, type, source, EDGES_TAG, edges.world, status);
    case POSTED:
        return MPI_Wait(posted, status);
    case WILD:
        edges_must(MPI_Irecv(in, room, type, MPI_ANY_SOURCE, MPI_ANY_TAG, edges.world, &request),
                   "MPI_Irecv");
        return MPI_Wait(&request, status);
    default:
        edges_must(MPI_Mprobe(source, EDGES_TAG, edges.world, &message, status), "MPI_Mprobe");
        edges_status(status, source, EDGES_TAG, cut->length);
        if (MRECV == cut->way) {
            return MPI_Mrecv(in, room, type, &message, status);
        }
        edges_must(MPI_Imrecv(in, room, type, &message, &request), "MPI_Imrecv");
        for (int done = 0; !done;) {
            error = MPI_Test(&request, &done, status);
        }
        return error;
    }
}

/* The count is the length of the message, as pml/ob1 has it: so its receiver learns how much room it needs. */
static void check_truncated(const cut_t *cut, int source, int error, const MPI_Status *status)
{
    int count = -1;

    edges_must_be(error, MPI_ERR_TRUNCATE, "a receive with too little room");
    MPI_Get_count(status, MPI_BYTE, &count);
    if (source != status->MPI_SOURCE || EDGES_TAG != status->MPI_TAG || cut->length != (size_t) count) {
        verify_fail("the status of %zu bytes truncated to %zu says source %d, tag %d, %d bytes", cut->length,
                    cut->room, status->MPI_SOURCE, status->MPI_TAG, count);
    }
}

static void truncate_message(int sender, int receiver, const cut_t *cut, uint64_t number)
{
    const size_t step = cut->spaced ? 2 : 1;
    MPI_Datatype spaced = make_spaced();
    MPI_Datatype type = cut->spaced ? spaced : MPI_BYTE;
    unsigned char *bytes = edges_data(cut->length, number);
    unsigned char *out = edges_get(cut->length, step);
    unsigned char *in = verify_guard_alloc(cut->room * step, 0);
    MPI_Request posted = MPI_REQUEST_NULL;
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Status status;

    memset(in, GAP_BYTE, cut->room * step);
    if (edges.rank == receiver && POSTED == cut->way) {
        edges_must(MPI_Irecv(in, (int) cut->room, type, sender, EDGES_TAG, edges.world, &posted),
                   "MPI_Irecv");
    }
    if (sender != receiver) {
        edges_meet();
    }
    if (edges.rank == sender) {
        if (cut->spaced) {
            spread(out, bytes, cut->length);
        } else {
            memcpy(out, bytes, cut->length);
        }
        edges_must((cut->synchronous ? MPI_Issend : MPI_Isend)(out, (int) cut->length, type, receiver,
                                                               EDGES_TAG, edges.world, &sent),
                   "a send");
    }
    if (edges.rank == receiver) {
        int error = receive_short(cut, in, type, sender, &posted, &status);
        check_truncated(cut, sender, error, &status);
        if (cut->spaced) {
            gather(in, cut->room);
        }
        verify_expect(in, cut->room, number, "beginning of a truncated message");
    }
    edges_must(MPI_Wait(&sent, MPI_STATUS_IGNORE), "MPI_Wait of a send that was truncated");
    verify_guard_free(in, cut->room * step, 0, "buffer of a truncated receive");
    free(out);
    free(bytes);
    edges_must(MPI_Type_free(&spaced), "MPI_Type_free");
}

/* Every kind of message to a third of the room that it needs, to one byte less, and to none. */
static void truncate_messages(int sender, int receiver)
{
    enum { ROOMS = 3, KINDS = ROOMS * 2 * 2 * WAYS_TO_RECEIVE };

    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        const size_t length = edges_lengths[i];
        const size_t rooms[ROOMS] = {length / 3, length - 1, 0};
        /* pml/ob1 of Open MPI 4.1 fetches a long message as a whole, beyond the end of the room. */
        if (0 == length || (length > 1000 && !edges.ask_all)) {
            continue;
        }
        for (int kind = 0; kind < KINDS; kind++) {
            const cut_t cut = {.length = length,
                               .room = rooms[kind % ROOMS],
                               .synchronous = kind / ROOMS % 2,
                               .spaced = kind / ROOMS / 2 % 2,
                               .way = kind / ROOMS / 4};
            truncate_message(sender, receiver, &cut, i);
        }
    }
}

static void truncation_is_told(void)
{
    truncate_messages(0, 1);
    /* pml/ob1 of Open MPI 4.1 calls a truncated short message to oneself a success. */
    if (edges.ask_all && 0 == edges.rank) {
        truncate_messages(0, 0);
    }
    /* What comes after is whole. */
    if (0 == edges.rank) {
        edges_send(5000, 9, 1, EDGES_TAG, edges.world);
    } else {
        edges_receive(5000, 9, 0, EDGES_TAG, 0, EDGES_TAG, edges.world);
    }
}

/* MPI_ERR_BUFFER, and nothing is sent. The length is one that no transport holds back for its sender. */
static void buffered_send_needs_its_buffer(void)
{
    size_t room = 1000 + MPI_BSEND_OVERHEAD;
    int length = (int) (4 * EDGES_MIB);
    unsigned char *out = edges_data(4 * EDGES_MIB, 1);
    void *buffer = edges_get(room, 1);
    void *detached;
    MPI_Request request;
    MPI_Comm comm;
    int size;

    edges_must(MPI_Comm_dup(edges.pair, &comm), "MPI_Comm_dup");
    edges_must(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    if (0 == edges.rank) {
        edges_must_be(MPI_Bsend(out, length, MPI_BYTE, 1, EDGES_TAG, comm), MPI_ERR_BUFFER,
                      "MPI_Bsend without a buffer");
        edges_must(MPI_Buffer_attach(buffer, (int) room), "MPI_Buffer_attach");
        edges_must_be(MPI_Bsend(out, length, MPI_BYTE, 1, EDGES_TAG, comm), MPI_ERR_BUFFER,
                      "MPI_Bsend beyond its buffer");
        edges_must_be(MPI_Ibsend(out, length, MPI_BYTE, 1, EDGES_TAG, comm, &request), MPI_ERR_BUFFER,
                      "MPI_Ibsend beyond its buffer");
        edges_must(MPI_Bsend(out, 900, MPI_BYTE, 1, EDGES_TAG, edges.ask_all ? comm : edges.pair),
                   "MPI_Bsend");
        memset(out, 0, 900);
        edges_meet();
        edges_must(MPI_Buffer_detach(&detached, &size), "MPI_Buffer_detach");
        verify_that(detached == buffer && (size_t) size == room, "MPI_Buffer_detach gave another buffer");
    } else {
        edges_receive(900, 1, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, EDGES_TAG, edges.ask_all ? comm : edges.pair);
        edges_meet();
        verify_that(!edges_is_there(MPI_ANY_SOURCE, MPI_ANY_TAG, comm),
                    "a buffered send that was refused arrived");
    }
    edges_must(MPI_Comm_free(&comm), "MPI_Comm_free");
    free(out);
    free(buffer);
}

/* --- modes */

static void ready_send_finds_its_receive(void)
{
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        int length = (int) edges_lengths[i];
        unsigned char *bytes = edges_data(edges_lengths[i], i);
        unsigned char *in = verify_guard_alloc(edges_lengths[i], 0);
        MPI_Request requests[3];
        if (1 == edges.rank) {
            edges_must(MPI_Irecv(in, length, MPI_BYTE, 0, EDGES_TAG, edges.world, &requests[0]), "MPI_Irecv");
            edges_meet();
            edges_must(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), "MPI_Wait");
            verify_expect(in, edges_lengths[i], i, "message of MPI_Rsend");
            memset(in, 0, edges_lengths[i]);
            edges_must(
                MPI_Irecv(in, length, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, edges.world, &requests[0]),
                "MPI_Irecv");
            edges_must(MPI_Irecv(NULL, 0, MPI_BYTE, 0, EDGES_OTHER, edges.world, &requests[1]), "MPI_Irecv");
            edges_meet();
            edges_must(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
            verify_expect(in, edges_lengths[i], i, "message of MPI_Irsend");
        } else {
            edges_meet();
            edges_must(MPI_Rsend(bytes, length, MPI_BYTE, 1, EDGES_TAG, edges.world), "MPI_Rsend");
            edges_meet();
            edges_must(MPI_Irsend(bytes, length, MPI_BYTE, 1, EDGES_TAG, edges.world, &requests[0]),
                       "MPI_Irsend");
            edges_must(MPI_Rsend_init(NULL, 0, MPI_BYTE, 1, EDGES_OTHER, edges.world, &requests[1]),
                       "MPI_Rsend_init");
            edges_must(MPI_Start(&requests[1]), "MPI_Start");
            edges_must(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
            edges_must(MPI_Request_free(&requests[1]), "MPI_Request_free");
        }
        free(bytes);
        verify_guard_free(in, edges_lengths[i], 0, "receive of a ready send");
    }
}

static void must_not_be_done(MPI_Request *request, const char *when)
{
    for (int i = 0; i < 20; i++) {
        int done = 0;
        edges_must(MPI_Test(request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done) {
            verify_fail("a synchronous send ended %s", when);
        }
    }
}

/* Neither time nor progress at both ends, nor probes, nor a receive with another tag, end it. */
static void synchronous_send_waits_for_its_receive(void)
{
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        int length = (int) edges_lengths[i];
        unsigned char *bytes = edges_data(edges_lengths[i], i);
        unsigned char *in = verify_guard_alloc(edges_lengths[i], 0);
        MPI_Request request;
        MPI_Message message;
        if (0 == edges.rank) {
            edges_must(MPI_Issend(bytes, length, MPI_BYTE, 1, EDGES_TAG, edges.world, &request),
                       "MPI_Issend");
            verify_sleep_ms(2);
            must_not_be_done(&request, "before its receive");
            edges_meet();
            must_not_be_done(&request, "by progress of the receiver");
            edges_meet();
            must_not_be_done(&request, "by a probe");
            edges_meet();
            must_not_be_done(&request, "by a receive of another tag");
            edges_meet();
            must_not_be_done(&request, "by a matched probe");
            edges_meet();
            edges_must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        } else {
            edges_meet();
            edges_await(0, EDGES_TAG, edges.world);
            edges_meet();
            edges_must(MPI_Irecv(NULL, 0, MPI_BYTE, 0, EDGES_OTHER, edges.world, &request), "MPI_Irecv");
            edges_meet();
            edges_must(MPI_Mprobe(0, EDGES_TAG, edges.world, &message, MPI_STATUS_IGNORE), "MPI_Mprobe");
            edges_meet();
            edges_meet();
            edges_must(MPI_Mrecv(in, length, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
            verify_expect(in, edges_lengths[i], i, "message of MPI_Issend");
            edges_must(MPI_Cancel(&request), "MPI_Cancel");
            edges_must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        }
        free(bytes);
        verify_guard_free(in, edges_lengths[i], 0, "receive of a synchronous send");
    }
}

typedef int (*send_fn_t)(const void *buffer, int count, MPI_Datatype type, int target, int tag,
                         MPI_Comm comm);
typedef int (*start_fn_t)(const void *buffer, int count, MPI_Datatype type, int target, int tag,
                          MPI_Comm comm, MPI_Request *request);

static const struct {
    const char *name;
    send_fn_t send;
    start_fn_t start;
    start_fn_t init;
    int starts; /* of a persistent request: pml/ob1 of Open MPI 4.1 sends a buffered one's first data again */
} modes[] = {{"standard", MPI_Send, MPI_Isend, MPI_Send_init, 3},
             {"synchronous", MPI_Ssend, MPI_Issend, MPI_Ssend_init, 3},
             {"ready", MPI_Rsend, MPI_Irsend, MPI_Rsend_init, 3},
             {"buffered", MPI_Bsend, MPI_Ibsend, MPI_Bsend_init, 1}};
#define MODES (sizeof(modes) / sizeof(modes[0]))

enum { BLOCKING, NONBLOCKING, PERSISTENT, WAYS_TO_SEND };

/* A receive that is posted and a send that comes behind it; a persistent pair, some times. */
static void exchange(int sender, int receiver, size_t mode, int way, size_t length)
{
    const int starts = PERSISTENT != way ? 1 : edges.ask_all ? 3 : modes[mode].starts;
    const int count = (int) length;
    unsigned char *out = edges_get(length, 1);
    unsigned char *in = verify_guard_alloc(length, 0);
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Request send = MPI_REQUEST_NULL;
    MPI_Status status;

    if (edges.rank == receiver) {
        edges_must(MPI_Recv_init(in, count, MPI_BYTE, sender, EDGES_TAG, edges.world, &receive),
                   "MPI_Recv_init");
    }
    if (edges.rank == sender && PERSISTENT == way) {
        edges_must(modes[mode].init(out, count, MPI_BYTE, receiver, EDGES_TAG, edges.world, &send),
                   modes[mode].name);
    }
    for (int i = 0; i < starts; i++) {
        const uint64_t number = (uint64_t) i + mode;
        if (edges.rank == receiver) {
            memset(in, 0, length);
            edges_must(MPI_Start(&receive), "MPI_Start of a receive");
        }
        if (sender != receiver) {
            edges_meet();
        }
        if (edges.rank == sender) {
            verify_fill(out, length, number);
            if (BLOCKING == way) {
                edges_must(modes[mode].send(out, count, MPI_BYTE, receiver, EDGES_TAG, edges.world),
                           modes[mode].name);
            } else if (NONBLOCKING == way) {
                edges_must(modes[mode].start(out, count, MPI_BYTE, receiver, EDGES_TAG, edges.world, &send),
                           modes[mode].name);
            } else {
                edges_must(MPI_Start(&send), "MPI_Start of a send");
            }
            edges_must(MPI_Wait(&send, MPI_STATUS_IGNORE), "MPI_Wait of a send");
            memset(out, 0, length);
        }
        if (edges.rank == receiver) {
            edges_must(MPI_Wait(&receive, &status), "MPI_Wait of a receive");
            edges_status(&status, sender, EDGES_TAG, length);
            verify_expect(in, length, number, modes[mode].name);
        }
    }
    if (MPI_REQUEST_NULL != receive) {
        edges_must(MPI_Request_free(&receive), "MPI_Request_free");
    }
    if (MPI_REQUEST_NULL != send) {
        edges_must(MPI_Request_free(&send), "MPI_Request_free");
    }
    free(out);
    verify_guard_free(in, length, 0, "receive of a mode");
}

static void every_mode_reaches_its_receive(void)
{
    /* Two of the longest, as the first may not have left when the second comes. */
    const size_t room = 2 * (EDGES_MIB + MPI_BSEND_OVERHEAD);
    void *buffer = edges_get(room, 1);
    void *detached;
    int size;

    edges_must(MPI_Buffer_attach(buffer, (int) room), "MPI_Buffer_attach");
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        for (size_t mode = 0; mode < MODES; mode++) {
            for (int way = 0; way < WAYS_TO_SEND; way++) {
                exchange(0, 1, mode, way, edges_lengths[i]);
                exchange(1, 0, mode, way, edges_lengths[i]);
                exchange(edges.rank, edges.rank, mode, way, edges_lengths[i]);
            }
        }
    }
    edges_must(MPI_Buffer_detach(&detached, &size), "MPI_Buffer_detach");
    free(buffer);
}

/* MPI_Bsend returns, and its data may change, before there is any receive. */
static void buffered_sends_leave_before_their_receives(void)
{
    size_t room = 0;
    void *detached;
    int size;

    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        room += edges_lengths[i] + MPI_BSEND_OVERHEAD;
    }
    void *buffer = edges_get(room, 1);
    if (0 == edges.rank) {
        edges_must(MPI_Buffer_attach(buffer, (int) room), "MPI_Buffer_attach");
        for (size_t i = 0; i < EDGES_LENGTHS; i++) {
            unsigned char *out = edges_data(edges_lengths[i], i);
            edges_must(MPI_Bsend(out, (int) edges_lengths[i], MPI_BYTE, 1, EDGES_TAG, edges.world),
                       "MPI_Bsend");
            memset(out, 0, edges_lengths[i]);
            free(out);
        }
    }
    edges_meet();
    for (size_t i = 0; i < EDGES_LENGTHS && 1 == edges.rank; i++) {
        edges_receive(edges_lengths[i], i, MPI_ANY_SOURCE, EDGES_TAG, 0, EDGES_TAG, edges.world);
    }
    if (0 == edges.rank) {
        edges_must(MPI_Buffer_detach(&detached, &size), "MPI_Buffer_detach");
    }
    free(buffer);
}

/* Nothing at all is a message: no elements of a type, or elements of a type that has no bytes. */
static void empty_messages_arrive(void)
{
    MPI_Datatype nothing;
    MPI_Status status;
    uint64_t in = 5;

    edges_must(MPI_Type_contiguous(0, MPI_INT, &nothing), "MPI_Type_contiguous");
    edges_must(MPI_Type_commit(&nothing), "MPI_Type_commit");
    MPI_Datatype spaced = make_spaced();
    const MPI_Datatype types[] = {MPI_BYTE, MPI_DOUBLE_INT, spaced, nothing};
    for (int i = 0; i < 4; i++) {
        const int count = nothing == types[i] ? 3 : 0;
        if (0 == edges.rank) {
            edges_must(MPI_Send(NULL, count, types[i], 1, EDGES_TAG, edges.world), "MPI_Send of nothing");
            edges_must(MPI_Ssend(NULL, count, types[i], 1, EDGES_OTHER, edges.world), "MPI_Ssend of nothing");
            continue;
        }
        edges_must(MPI_Recv(&in, 1, MPI_UINT64_T, 0, EDGES_TAG, edges.world, &status), "MPI_Recv of nothing");
        edges_status(&status, 0, EDGES_TAG, 0);
        edges_must(MPI_Recv(NULL, count, types[i], 0, EDGES_OTHER, edges.world, &status),
                   "MPI_Recv of nothing");
        edges_status(&status, 0, EDGES_OTHER, 0);
        verify_that(5 == in, "a message of nothing wrote something");
    }
    edges_must(MPI_Type_free(&spaced), "MPI_Type_free");
    edges_must(MPI_Type_free(&nothing), "MPI_Type_free");
}

static void messages_to_oneself_arrive(void)
{
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        int length = (int) edges_lengths[i];
        unsigned char *out = edges_data(edges_lengths[i], i);
        unsigned char *in = verify_guard_alloc(edges_lengths[i], 0);
        MPI_Request request;
        edges_must(MPI_Isend(out, length, MPI_BYTE, edges.rank, EDGES_TAG, edges.world, &request),
                   "MPI_Isend to oneself");
        edges_await(edges.rank, EDGES_TAG, edges.world);
        edges_receive(edges_lengths[i], i, MPI_ANY_SOURCE, EDGES_TAG, edges.rank, EDGES_TAG, edges.world);
        edges_must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        edges_must(MPI_Issend(out, length, MPI_BYTE, 0, EDGES_TAG, MPI_COMM_SELF, &request),
                   "MPI_Issend to oneself");
        must_not_be_done(&request, "before its receive from oneself");
        edges_receive(edges_lengths[i], i, 0, MPI_ANY_TAG, 0, EDGES_TAG, MPI_COMM_SELF);
        edges_must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        edges_must(MPI_Irecv(in, length, MPI_BYTE, edges.rank, EDGES_TAG, edges.world, &request),
                   "MPI_Irecv from oneself");
        edges_must(MPI_Ssend(out, length, MPI_BYTE, edges.rank, EDGES_TAG, edges.world),
                   "MPI_Ssend to oneself");
        edges_must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        verify_expect(in, edges_lengths[i], i, "message to oneself");
        edges_must(MPI_Sendrecv(out, length, MPI_BYTE, edges.rank, EDGES_TAG, in, length, MPI_BYTE,
                                edges.rank, EDGES_TAG, edges.world, MPI_STATUS_IGNORE),
                   "MPI_Sendrecv with oneself");
        verify_expect(in, edges_lengths[i], i, "message of MPI_Sendrecv with oneself");
        free(out);
        verify_guard_free(in, edges_lengths[i], 0, "receive from oneself");
    }
}

const edges_check_t edges_modes[] = {
    {"truncation_is_told", truncation_is_told, false},
    {"buffered_send_needs_its_buffer", buffered_send_needs_its_buffer, false},
    {"ready_send_finds_its_receive", ready_send_finds_its_receive, false},
    {"synchronous_send_waits_for_its_receive", synchronous_send_waits_for_its_receive, false},
    {"every_mode_reaches_its_receive", every_mode_reaches_its_receive, false},
    {"buffered_sends_leave_before_their_receives", buffered_sends_leave_before_their_receives, false},
    {"empty_messages_arrive", empty_messages_arrive, false},
    {"messages_to_oneself_arrive", messages_to_oneself_arrive, true},
    {0},
};
