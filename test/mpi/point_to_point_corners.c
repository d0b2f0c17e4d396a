/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file point_to_point_corners.c
 * Requests that are none or inactive, cancelled ones, errors, counts that are no whole number of elements.
 */
#include "dn_config.h"

#include "point_to_point.h"

#include <stdlib.h>
#include <string.h>

static void print_result(const char *what, int error, const MPI_Status *status)
{
    p2p_print("%s: %s", what, p2p_class(error));
    if (NULL != status) {
        p2p_print_status(status);
    }
    p2p_print("\n");
}

/* --- requests for which nothing is to be done */

static void complete_all_ways(const char *what, MPI_Request *request)
{
    MPI_Status status;
    int flag = -1;
    int index = -1;
    int count = -1;

    p2p_print("%s:\n", what);
    p2p_clear(&status, 1);
    print_result(" MPI_Wait", MPI_Wait(request, &status), &status);
    p2p_clear(&status, 1);
    print_result(" MPI_Test", MPI_Test(request, &flag, &status), &status);
    p2p_clear(&status, 1);
    print_result(" MPI_Request_get_status", MPI_Request_get_status(*request, &flag, &status), &status);
    p2p_clear(&status, 1);
    print_result(" MPI_Waitany", MPI_Waitany(1, request, &index, &status), &status);
    p2p_clear(&status, 1);
    print_result(" MPI_Testany", MPI_Testany(1, request, &index, &flag, &status), &status);
    p2p_clear(&status, 1);
    print_result(" MPI_Waitall", MPI_Waitall(1, request, &status), &status);
    p2p_clear(&status, 1);
    print_result(" MPI_Testall", MPI_Testall(1, request, &flag, &status), &status);
    print_result(" MPI_Waitsome", MPI_Waitsome(1, request, &count, &index, &status), NULL);
    p2p_print("  undefined %d flag %d index %d\n", MPI_UNDEFINED == count, flag, MPI_UNDEFINED == index);
    print_result(" MPI_Testsome", MPI_Testsome(1, request, &count, &index, &status), NULL);
    p2p_print("  undefined %d\n", MPI_UNDEFINED == count);
}

static void inactive_requests(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    char byte = 0;

    complete_all_ways("no request", &request);
    MPI_Recv_init(&byte, 1, MPI_BYTE, p2p.peer, P2P_TAG, p2p.world, &request);
    complete_all_ways("MPI_Recv_init, not started", &request);
    MPI_Request_free(&request);
    MPI_Send_init(&byte, 1, MPI_BYTE, p2p.peer, P2P_TAG, p2p.world, &request);
    complete_all_ways("MPI_Send_init, not started", &request);
    MPI_Request_free(&request);
    MPI_Bsend_init(&byte, 1, MPI_BYTE, p2p.peer, P2P_TAG, p2p.world, &request);
    complete_all_ways("MPI_Bsend_init, not started", &request);
    MPI_Request_free(&request);
    MPI_Recv_init(&byte, 1, MPI_BYTE, MPI_PROC_NULL, P2P_TAG, p2p.world, &request);
    complete_all_ways("MPI_Recv_init of no process, not started", &request);
    print_result("MPI_Start of it", MPI_Start(&request), NULL);
    complete_all_ways("MPI_Recv_init of no process, started", &request);
    MPI_Request_free(&request);
    p2p_print("freed: %d\n", MPI_REQUEST_NULL == request);
}

/* --- cancelled requests */

static void cancelled_receives(void)
{
    MPI_Request request;
    MPI_Status status;
    char byte = 0;

    p2p_clear(&status, 1);
    MPI_Irecv(&byte, 1, MPI_BYTE, p2p.peer, P2P_TAG, p2p.world, &request);
    print_result("MPI_Cancel", MPI_Cancel(&request), NULL);
    const int error = MPI_Wait(&request, &status);
    int cancelled = -1;
    MPI_Test_cancelled(&status, &cancelled);
    p2p_print("MPI_Wait of a cancelled receive: %s cancelled %d error %s\n", p2p_class(error), cancelled,
              p2p_class(status.MPI_ERROR));

    MPI_Recv_init(&byte, 1, MPI_BYTE, p2p.peer, P2P_TAG, p2p.world, &request);
    for (int i = 0; i < 2; i++) {
        p2p_meet();
        MPI_Start(&request);
        if (0 == i) {
            MPI_Cancel(&request);
        } else {
            MPI_Send(&byte, 1, MPI_BYTE, p2p.peer, P2P_TAG, p2p.world);
            p2p_meet();
            p2p_meet();
        }
        p2p_clear(&status, 1);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        p2p_print("start %d of a persistent receive: cancelled %d\n", i, cancelled);
    }
    MPI_Request_free(&request);
}

/** A receive that has its message, and sends, are not cancelled. */
static void what_has_left_is_not_cancelled(void)
{
    static char out[200000];
    static char in[200000];
    static const int lengths[] = {10, 200000};

    for (size_t i = 0; i < 2; i++) {
        MPI_Request send;
        MPI_Request receive;
        MPI_Status statuses[2];
        int cancelled = -1;

        MPI_Irecv(in, lengths[i], MPI_BYTE, p2p.peer, P2P_TAG, p2p.world, &receive);
        p2p_meet();
        MPI_Isend(out, lengths[i], MPI_BYTE, p2p.peer, P2P_TAG, p2p.world, &send);
        print_result("MPI_Cancel of a send", MPI_Cancel(&send), NULL);
        p2p_clear(statuses, 2);
        MPI_Wait(&send, &statuses[0]);
        MPI_Test_cancelled(&statuses[0], &cancelled);
        p2p_print("the send: cancelled %d\n", cancelled);
        int done = 0;
        while (!done) {
            MPI_Request_get_status(receive, &done, &statuses[1]);
        }
        print_result("MPI_Cancel of a receive that is complete", MPI_Cancel(&receive), NULL);
        p2p_clear(&statuses[1], 1);
        print_result("MPI_Wait", MPI_Wait(&receive, &statuses[1]), &statuses[1]);
    }
}

/* --- errors */

static void refused_arguments(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Datatype raw;
    char bytes[2] = {0, 0};

    MPI_Type_contiguous(2, MPI_BYTE, &raw); /* not committed */
    print_result("MPI_Send: rank", MPI_Send(bytes, 1, MPI_BYTE, 2, P2P_TAG, p2p.world), NULL);
    print_result("MPI_Send: any rank", MPI_Send(bytes, 1, MPI_BYTE, MPI_ANY_SOURCE, P2P_TAG, p2p.world),
                 NULL);
    print_result("MPI_Send: tag", MPI_Send(bytes, 1, MPI_BYTE, p2p.peer, -5, p2p.world), NULL);
    print_result("MPI_Send: any tag", MPI_Send(bytes, 1, MPI_BYTE, p2p.peer, MPI_ANY_TAG, p2p.world), NULL);
    print_result("MPI_Send: count", MPI_Send(bytes, -1, MPI_BYTE, p2p.peer, P2P_TAG, p2p.world), NULL);
    print_result("MPI_Send: type", MPI_Send(bytes, 1, MPI_DATATYPE_NULL, p2p.peer, P2P_TAG, p2p.world), NULL);
    print_result("MPI_Send: raw type", MPI_Send(bytes, 1, raw, p2p.peer, P2P_TAG, p2p.world), NULL);
    print_result("MPI_Send: no communicator", MPI_Send(bytes, 1, MPI_BYTE, p2p.peer, P2P_TAG, MPI_COMM_NULL),
                 NULL);
    print_result("MPI_Bsend: rank", MPI_Bsend(bytes, 1, MPI_BYTE, 2, P2P_TAG, p2p.world), NULL);
    print_result("MPI_Bsend_init: rank", MPI_Bsend_init(bytes, 1, MPI_BYTE, 2, P2P_TAG, p2p.world, &request),
                 NULL);
    print_result("MPI_Isend: rank", MPI_Isend(bytes, 1, MPI_BYTE, 2, P2P_TAG, p2p.world, &request), NULL);
    print_result("MPI_Recv: rank", MPI_Recv(bytes, 1, MPI_BYTE, 2, P2P_TAG, p2p.world, MPI_STATUS_IGNORE),
                 NULL);
    print_result("MPI_Recv: tag", MPI_Recv(bytes, 1, MPI_BYTE, p2p.peer, -5, p2p.world, MPI_STATUS_IGNORE),
                 NULL);
    print_result("MPI_Recv: count",
                 MPI_Recv(bytes, -1, MPI_BYTE, p2p.peer, P2P_TAG, p2p.world, MPI_STATUS_IGNORE), NULL);
    print_result("MPI_Irecv: raw type", MPI_Irecv(bytes, 1, raw, p2p.peer, P2P_TAG, p2p.world, &request),
                 NULL);
    print_result("MPI_Probe: rank", MPI_Probe(2, P2P_TAG, p2p.world, MPI_STATUS_IGNORE), NULL);
    print_result("MPI_Mprobe: tag", MPI_Mprobe(p2p.peer, -5, p2p.world, &message, MPI_STATUS_IGNORE), NULL);
    print_result("MPI_Start: no request", MPI_Start(&request), NULL);
    print_result("MPI_Cancel: no request", MPI_Cancel(&request), NULL);
    MPI_Type_free(&raw);
}

/** Of three receives the second is cut off. */
static void errors_of_many(const char *name, int way)
{
    char in[3][100];
    char out[100] = "";
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int indices[3];
    int count = 0;
    int flag = 0;
    int error = MPI_SUCCESS;

    for (int i = 0; i < 3; i++) {
        MPI_Irecv(in[i], 1 == i ? 10 : 100, MPI_BYTE, p2p.peer, P2P_TAG + i, p2p.world, &requests[i]);
    }
    p2p_meet();
    for (int i = 0; i < 3; i++) {
        MPI_Send(out, 20, MPI_BYTE, p2p.peer, P2P_TAG + i, p2p.world);
    }
    p2p_meet();
    for (int i = 0; i < 3; i++) {
        while (!flag) { /* so that all are complete before the call */
            MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
        }
        flag = 0;
    }
    p2p_clear(statuses, 3);
    switch (way) {
    case 0:
        error = MPI_Waitall(3, requests, statuses);
        break;
    case 1:
        error = MPI_Testall(3, requests, &flag, statuses);
        break;
    case 2:
        error = MPI_Waitsome(3, requests, &count, indices, statuses);
        break;
    case 3:
        error = MPI_Testsome(3, requests, &count, indices, statuses);
        break;
    default:
        error = MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        break;
    }
    p2p_print("%s: %s count %d\n", name, p2p_class(error), count);
    for (int i = 0; i < 3 && way < 4; i++) {
        print_result("  one of them", MPI_SUCCESS, &statuses[i]);
    }
    p2p_meet();
}

/* --- buffered sends without room; the length is one that no transport holds back for its sender */
static void refused_buffered_sends(void)
{
    enum { LONG = 4 << 20, ROOM = 1000 + MPI_BSEND_OVERHEAD };
    char *out = calloc(1, LONG);
    void *buffer = malloc(ROOM);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm comm;
    int size = -1;

    verify_that(NULL != out && NULL != buffer, "no memory for a message");
    MPI_Comm_dup(p2p.world, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    print_result("MPI_Bsend without a buffer", MPI_Bsend(out, LONG, MPI_BYTE, p2p.peer, P2P_TAG, comm), NULL);
    print_result("MPI_Buffer_attach", MPI_Buffer_attach(buffer, ROOM), NULL);
    print_result("MPI_Buffer_attach of a second", MPI_Buffer_attach(buffer, ROOM), NULL);
    print_result("MPI_Bsend beyond its buffer", MPI_Bsend(out, LONG, MPI_BYTE, p2p.peer, P2P_TAG, comm),
                 NULL);
    print_result("MPI_Ibsend beyond it", MPI_Ibsend(out, LONG, MPI_BYTE, p2p.peer, P2P_TAG, comm, &request),
                 NULL);
    print_result("MPI_Buffer_detach", MPI_Buffer_detach(&buffer, &size), NULL);
    p2p_print("room %d\n", size == ROOM);
    print_result("MPI_Buffer_detach of none", MPI_Buffer_detach(&buffer, &size), NULL);
    MPI_Comm_free(&comm);
    free(buffer);
    free(out);
}

/* --- counts */

static void counts_of_parts(void)
{
    static const int lengths[] = {0, 7, 8, 11, 12, 24};
    char out[24] = "";
    char in[24];
    MPI_Datatype pair;

    MPI_Type_contiguous(3, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        MPI_Status status;
        MPI_Count elements = -1;
        int count = -1;
        int parts = -1;

        MPI_Sendrecv(out, lengths[i], MPI_BYTE, p2p.peer, P2P_TAG, in, 2, pair, p2p.peer, P2P_TAG, p2p.world,
                     &status);
        MPI_Get_count(&status, pair, &count);
        MPI_Get_elements(&status, pair, &parts);
        MPI_Get_elements_x(&status, MPI_INT, &elements);
        p2p_print("%d bytes: count %d%s parts %d elements %d\n", lengths[i],
                  MPI_UNDEFINED == count ? -1 : count, MPI_UNDEFINED == count ? " undefined" : "",
                  MPI_UNDEFINED == parts ? -1 : parts, MPI_UNDEFINED == elements ? -1 : (int) elements);
    }
    MPI_Type_free(&pair);
}

void p2p_corners(void)
{
    inactive_requests();
    cancelled_receives();
    what_has_left_is_not_cancelled();
    refused_arguments();
    errors_of_many("MPI_Waitall", 0);
    errors_of_many("MPI_Testall", 1);
    errors_of_many("MPI_Waitsome", 2);
    errors_of_many("MPI_Testsome", 3);
    errors_of_many("MPI_Waitall without statuses", 4);
    refused_buffered_sends();
    counts_of_parts();
}
