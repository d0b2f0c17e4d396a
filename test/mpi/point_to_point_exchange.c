/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file point_to_point_exchange.c
 * Each way to send, to the other rank, to oneself and to MPI_PROC_NULL; each way to receive, with enough room and with
 * too little.
 */
#include "dn_config.h"

#include "point_to_point.h"

#include <stdlib.h>
#include <string.h>

/** One for each way in which transports treat a length. */
static const int lengths[] = {0, 1, 40, 1000, 5000, 20000, 300000};
#define LENGTHS    (sizeof(lengths) / sizeof(lengths[0]))
#define LONGEST    300000
#define BSEND_ROOM (8 * (LONGEST + MPI_BSEND_OVERHEAD))
/** A long message that is cut off is written as a whole by some, so buffers have room for it. */
#define BUFFER_ROOM (2 * LONGEST)

typedef struct {
    unsigned char *data;
    int count;
    MPI_Datatype type;
    int place; /**< target or source */
    MPI_Status *status;
} call_t;

/* --- ways to send; each returns what its last call gives */

typedef int (*send_fn_t)(const call_t *call);
typedef int (*blocking_fn_t)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*start_fn_t)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static const struct {
    const char *name;
    blocking_fn_t send;
    start_fn_t start;
    start_fn_t init;
} modes[] = {{"standard", MPI_Send, MPI_Isend, MPI_Send_init},
             {"synchronous", MPI_Ssend, MPI_Issend, MPI_Ssend_init},
             {"ready", MPI_Rsend, MPI_Irsend, MPI_Rsend_init},
             {"buffered", MPI_Bsend, MPI_Ibsend, MPI_Bsend_init}};
#define MODES (sizeof(modes) / sizeof(modes[0]))

enum { BLOCKING, NONBLOCKING, PERSISTENT, WAYS_TO_SEND };
static const char *const way_names[WAYS_TO_SEND] = {"blocking", "nonblocking", "persistent"};

/** Prints what is defined of the status of a send: whether it was cancelled, and the error's field. */
static void print_send(int error, const MPI_Status *status)
{
    int cancelled = -1;

    MPI_Test_cancelled(status, &cancelled);
    p2p_print(" send %s cancelled %d error %s;", p2p_class(error), cancelled, p2p_class(status->MPI_ERROR));
}

static void send_by(size_t mode, int way, const call_t *call)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int error;

    p2p_clear(&status, 1);
    status._cancelled = 0;
    switch (way) {
    case BLOCKING:
        error = modes[mode].send(call->data, call->count, call->type, call->place, P2P_TAG, p2p.world);
        p2p_print(" send %s;", p2p_class(error));
        return;
    case NONBLOCKING:
        modes[mode].start(call->data, call->count, call->type, call->place, P2P_TAG, p2p.world, &request);
        break;
    default:
        modes[mode].init(call->data, call->count, call->type, call->place, P2P_TAG, p2p.world, &request);
        MPI_Start(&request);
        break;
    }
    error = MPI_Wait(&request, &status);
    print_send(error, &status);
    if (MPI_REQUEST_NULL != request) {
        MPI_Request_free(&request);
    }
}

/** From @p sender to @p target, where a receive is posted. */
static void one_send(size_t mode, int way, int target, int length, MPI_Datatype type, const char *type_name)
{
    unsigned char *out = calloc(1, BUFFER_ROOM);
    unsigned char *in = calloc(1, BUFFER_ROOM);
    const call_t call = {.data = out, .count = length, .type = type, .place = target};
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Status status;

    verify_that(NULL != out && NULL != in, "no memory for a message");
    if (p2p.rank == target) {
        p2p_clear(&status, 1);
        MPI_Irecv(in, length, type, 0, P2P_TAG, p2p.world, &receive);
    }
    p2p_meet();
    p2p_print("%s, %s, %d %s to %d:", modes[mode].name, way_names[way], length, type_name, target);
    if (0 == p2p.rank) {
        verify_fill(out, 2 * (size_t) length, (uint64_t) length);
        send_by(mode, way, &call);
    }
    if (p2p.rank == target) {
        int error = MPI_Wait(&receive, &status);
        p2p_print(" receive %s", p2p_class(error));
        p2p_print_status(&status);
        for (int i = 0; i < length; i++) {
            const int at = MPI_BYTE == type ? i : 2 * i;
            verify_that(in[at] == verify_byte((uint64_t) length, (size_t) at), "a sent byte differs");
        }
    }
    p2p_print("\n");
    free(in);
    free(out);
}

static void every_send(void)
{
    MPI_Datatype spaced;

    MPI_Type_create_resized(MPI_BYTE, 0, 2, &spaced);
    MPI_Type_commit(&spaced);
    for (size_t mode = 0; mode < MODES; mode++) {
        for (int way = 0; way < WAYS_TO_SEND; way++) {
            for (size_t i = 0; i < LENGTHS; i++) {
                one_send(mode, way, 1, lengths[i], MPI_BYTE, "bytes");
                one_send(mode, way, 0, lengths[i], MPI_BYTE, "bytes");
                one_send(mode, way, 1, lengths[i], spaced, "spaced bytes");
            }
            one_send(mode, way, MPI_PROC_NULL, 40, MPI_BYTE, "bytes");
        }
    }
    MPI_Type_free(&spaced);
}

/* --- ways to receive; each ends with a status, and returns what its last call gives */

static MPI_Request post(const call_t *call)
{
    MPI_Request request = MPI_REQUEST_NULL;

    MPI_Irecv(call->data, call->count, call->type, call->place, P2P_TAG, p2p.world, &request);
    return request;
}

static int by_recv(const call_t *call)
{
    return MPI_Recv(call->data, call->count, call->type, call->place, P2P_TAG, p2p.world, call->status);
}

static int by_wild_recv(const call_t *call)
{
    return MPI_Recv(call->data, call->count, call->type,
                    MPI_PROC_NULL == call->place ? call->place : MPI_ANY_SOURCE, MPI_ANY_TAG, p2p.world,
                    call->status);
}

static int by_wait(const call_t *call)
{
    MPI_Request request = post(call);

    return MPI_Wait(&request, call->status);
}

static int by_test(const call_t *call)
{
    MPI_Request request = post(call);
    int done = 0;
    int error = MPI_SUCCESS;

    while (!done && MPI_SUCCESS == error) {
        error = MPI_Test(&request, &done, call->status);
    }
    return error;
}

static int by_get_status(const call_t *call)
{
    MPI_Request request = post(call);
    int done = 0;
    int error = MPI_SUCCESS;

    while (!done && MPI_SUCCESS == error) {
        error = MPI_Request_get_status(request, &done, call->status);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return error;
}

/* Among requests that are none. */
static int by_waitany(const call_t *call)
{
    MPI_Request requests[3] = {MPI_REQUEST_NULL, post(call), MPI_REQUEST_NULL};
    int index = -1;
    int error = MPI_Waitany(3, requests, &index, call->status);

    p2p_print(" index %d", index);
    return error;
}

static int by_testany(const call_t *call)
{
    MPI_Request requests[3] = {MPI_REQUEST_NULL, post(call), MPI_REQUEST_NULL};
    int index = -1;
    int done = 0;
    int error = MPI_SUCCESS;

    while (!done && MPI_SUCCESS == error) {
        error = MPI_Testany(3, requests, &index, &done, call->status);
    }
    p2p_print(" index %d", index);
    return error;
}

static int by_waitsome(const call_t *call)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, post(call)};
    int indices[2] = {-1, -1};
    int count = -1;
    int error = MPI_Waitsome(2, requests, &count, indices, call->status);

    p2p_print(" count %d index %d", count, indices[0]);
    return error;
}

static int by_testsome(const call_t *call)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, post(call)};
    int indices[2] = {-1, -1};
    int count = 0;
    int error = MPI_SUCCESS;

    while (0 == count && MPI_SUCCESS == error) {
        error = MPI_Testsome(2, requests, &count, indices, call->status);
    }
    p2p_print(" count %d index %d", count, indices[0]);
    return error;
}

static int all_of(const call_t *call, bool test)
{
    MPI_Request requests[2] = {post(call), MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    int error = MPI_SUCCESS;
    int done = 0;

    p2p_clear(statuses, 2);
    while (test && !done && MPI_SUCCESS == error) {
        error = MPI_Testall(2, requests, &done, statuses);
    }
    if (!test) {
        error = MPI_Waitall(2, requests, statuses);
    }
    p2p_print(" the one that is none:");
    p2p_print_status(&statuses[1]);
    *call->status = statuses[0];
    return error;
}

static int by_waitall(const call_t *call)
{
    return all_of(call, false);
}

static int by_testall(const call_t *call)
{
    return all_of(call, true);
}

static int by_persistent(const call_t *call)
{
    MPI_Request request;

    MPI_Recv_init(call->data, call->count, call->type, call->place, P2P_TAG, p2p.world, &request);
    MPI_Start(&request);
    int error = MPI_Wait(&request, call->status);
    MPI_Request_free(&request);
    return error;
}

static int by_probe(const call_t *call)
{
    int error = MPI_Probe(call->place, P2P_TAG, p2p.world, call->status);

    MPI_Recv(call->data, call->count, call->type, call->place, P2P_TAG, p2p.world, MPI_STATUS_IGNORE);
    return error;
}

static int by_iprobe(const call_t *call)
{
    int found = 0;
    int error = MPI_SUCCESS;

    while (!found && MPI_SUCCESS == error) {
        error = MPI_Iprobe(MPI_PROC_NULL == call->place ? call->place : MPI_ANY_SOURCE, MPI_ANY_TAG,
                           p2p.world, &found, call->status);
    }
    MPI_Recv(call->data, call->count, call->type, call->place, P2P_TAG, p2p.world, MPI_STATUS_IGNORE);
    return error;
}

static int by_mprobe(const call_t *call)
{
    MPI_Message message;
    int error = MPI_Mprobe(call->place, P2P_TAG, p2p.world, &message, call->status);

    MPI_Mrecv(call->data, call->count, call->type, &message, MPI_STATUS_IGNORE);
    return error;
}

static int by_improbe(const call_t *call)
{
    MPI_Message message;
    int found = 0;
    int error = MPI_SUCCESS;

    while (!found && MPI_SUCCESS == error) {
        error = MPI_Improbe(call->place, P2P_TAG, p2p.world, &found, &message, call->status);
    }
    MPI_Mrecv(call->data, call->count, call->type, &message, MPI_STATUS_IGNORE);
    return error;
}

static int by_mrecv(const call_t *call)
{
    MPI_Message message;

    MPI_Mprobe(call->place, P2P_TAG, p2p.world, &message, MPI_STATUS_IGNORE);
    int error = MPI_Mrecv(call->data, call->count, call->type, &message, call->status);
    p2p_print(" %s", MPI_MESSAGE_NULL == message      ? "taken"
                     : MPI_MESSAGE_NO_PROC == message ? "no process"
                                                      : "left");
    return error;
}

static int by_imrecv(const call_t *call)
{
    MPI_Message message;
    MPI_Request request;

    MPI_Mprobe(call->place, P2P_TAG, p2p.world, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(call->data, call->count, call->type, &message, &request);
    return MPI_Wait(&request, call->status);
}

static int by_sendrecv(const call_t *call)
{
    return MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, call->data, call->count, call->type, call->place,
                        P2P_TAG, p2p.world, call->status);
}

static int by_sendrecv_replace(const call_t *call)
{
    return MPI_Sendrecv_replace(call->data, call->count, call->type, MPI_PROC_NULL, 0, call->place, P2P_TAG,
                                p2p.world, call->status);
}

static const struct {
    const char *name;
    int (*receive)(const call_t *call);
} receives[] = {{"MPI_Recv", by_recv},
                {"MPI_Recv of any", by_wild_recv},
                {"MPI_Wait", by_wait},
                {"MPI_Test", by_test},
                {"MPI_Request_get_status", by_get_status},
                {"MPI_Waitany", by_waitany},
                {"MPI_Testany", by_testany},
                {"MPI_Waitsome", by_waitsome},
                {"MPI_Testsome", by_testsome},
                {"MPI_Waitall", by_waitall},
                {"MPI_Testall", by_testall},
                {"MPI_Recv_init", by_persistent},
                {"MPI_Probe", by_probe},
                {"MPI_Iprobe", by_iprobe},
                {"MPI_Mprobe", by_mprobe},
                {"MPI_Improbe", by_improbe},
                {"MPI_Mrecv", by_mrecv},
                {"MPI_Imrecv", by_imrecv},
                {"MPI_Sendrecv", by_sendrecv},
                {"MPI_Sendrecv_replace", by_sendrecv_replace}};
#define RECEIVES (sizeof(receives) / sizeof(receives[0]))

/** A message of @p length bytes from @p source to rank 1, which has @p room; @p waits: it is there before the call. */
static void one_receive(size_t receive, int source, int length, int room, bool waits)
{
    unsigned char *data = calloc(1, BUFFER_ROOM);
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Status status;

    verify_that(NULL != data, "no memory for a message");
    if (p2p.rank == source) {
        verify_fill(data, (size_t) length, (uint64_t) length);
        MPI_Isend(data, length, MPI_BYTE, 1, P2P_TAG, p2p.world, &sent);
    }
    if (waits) {
        p2p_meet();
    }
    if (1 == p2p.rank) {
        const call_t call = {
            .data = data, .count = room, .type = MPI_BYTE, .place = source, .status = &status};
        p2p_clear(&status, 1);
        p2p_print("%s, %d of %d bytes from %d:", receives[receive].name, room, length, source);
        int error = receives[receive].receive(&call);
        p2p_print(" %s", p2p_class(error));
        p2p_print_status(&status);
        p2p_print("\n");
        if (MPI_PROC_NULL != source && room >= length) {
            verify_expect(data, (size_t) length, (uint64_t) length, "a received message");
        }
    }
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    free(data);
}

static void every_receive(void)
{
    for (size_t receive = 0; receive < RECEIVES; receive++) {
        for (size_t i = 0; i < LENGTHS; i++) {
            for (int waits = 0; waits < 2; waits++) {
                one_receive(receive, 0, lengths[i], lengths[i], waits);
                one_receive(receive, 0, lengths[i], lengths[i] + 100, waits);
                if (0 != lengths[i]) {
                    one_receive(receive, 0, lengths[i], lengths[i] / 2, waits);
                }
            }
        }
        one_receive(receive, MPI_PROC_NULL, 0, 40, true);
    }
}

void p2p_exchange(void)
{
    void *buffer = malloc(BSEND_ROOM);
    int size;

    verify_that(NULL != buffer, "no memory for the buffer of MPI_Bsend");
    MPI_Buffer_attach(buffer, BSEND_ROOM);
    every_send();
    MPI_Buffer_detach(&buffer, &size);
    free(buffer);
    every_receive();
}
