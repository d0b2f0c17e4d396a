/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file point_to_point.c
 * MPI's calls for two processes, from tables: each way to send to each way to receive, with what each returns and what
 * it leaves in the status. The program prints it all and judges nothing but data: whoever runs it compares what two
 * implementations print.
 *
 *   point_to_point
 *
 * For 2 ranks. What the standard leaves open is not printed. MPI_ERROR of each status is set to a value that no call
 * writes before: "kept" says that it is still there.
 */
#include "dn_config.h"

#include "point_to_point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

p2p_t p2p;

static char *text;
static size_t text_len;
static FILE *lines;

void p2p_print(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(lines, format, args);
    va_end(args);
}

/** The class, by its name: numbers are an implementation's own. */
const char *p2p_class(int error)
{
    static const struct {
        int class;
        const char *name;
    } names[] = {{MPI_SUCCESS, "ok"},
                 {MPI_ERR_BUFFER, "buffer"},
                 {MPI_ERR_COUNT, "count"},
                 {MPI_ERR_TYPE, "type"},
                 {MPI_ERR_TAG, "tag"},
                 {MPI_ERR_COMM, "comm"},
                 {MPI_ERR_RANK, "rank"},
                 {MPI_ERR_REQUEST, "request"},
                 {MPI_ERR_ARG, "arg"},
                 {MPI_ERR_TRUNCATE, "truncate"},
                 {MPI_ERR_IN_STATUS, "in status"},
                 {MPI_ERR_PENDING, "pending"},
                 {P2P_KEPT, "kept"}};

    if (P2P_KEPT != error) {
        MPI_Error_class(error, &error);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (error == names[i].class) {
            return names[i].name;
        }
    }
    return "another error";
}

static const char *place_name(int place)
{
    return MPI_ANY_SOURCE == place  ? "any"
           : MPI_PROC_NULL == place ? "null"
           : 0 == place             ? "0"
           : 1 == place             ? "1"
                                    : "?";
}

void p2p_print_status(const MPI_Status *status)
{
    int cancelled = -1;
    int count = -1;

    MPI_Test_cancelled(status, &cancelled);
    MPI_Get_count(status, MPI_BYTE, &count);
    p2p_print(" from %s", place_name(status->MPI_SOURCE));
    if (MPI_ANY_TAG == status->MPI_TAG) {
        p2p_print(" tag any");
    } else {
        p2p_print(" tag %d", status->MPI_TAG);
    }
    p2p_print(" bytes %d cancelled %d error %s;", count, cancelled, p2p_class(status->MPI_ERROR));
}

void p2p_clear(MPI_Status *statuses, int count)
{
    memset(statuses, 0, (size_t) count * sizeof(*statuses));
    for (int i = 0; i < count; i++) {
        statuses[i].MPI_SOURCE = 77;
        statuses[i].MPI_TAG = 77;
        statuses[i].MPI_ERROR = P2P_KEPT;
    }
}

void p2p_meet(void)
{
    MPI_Sendrecv(NULL, 0, MPI_BYTE, p2p.peer, 0, NULL, 0, MPI_BYTE, p2p.peer, 0, p2p.control,
                 MPI_STATUS_IGNORE);
}

/** The lines of rank 0, then those of rank 1. */
static void print_all(void)
{
    fclose(lines);
    if (1 == p2p.rank) {
        unsigned long len = text_len;
        MPI_Send(&len, 1, MPI_UNSIGNED_LONG, 0, 0, p2p.control);
        MPI_Send(text, (int) len, MPI_BYTE, 0, 0, p2p.control);
    } else {
        unsigned long len;
        MPI_Recv(&len, 1, MPI_UNSIGNED_LONG, 1, 0, p2p.control, MPI_STATUS_IGNORE);
        char *other = malloc(len + 1);
        verify_that(NULL != other, "no memory for what rank 1 says");
        MPI_Recv(other, (int) len, MPI_BYTE, 1, 0, p2p.control, MPI_STATUS_IGNORE);
        printf("--- rank 0\n%.*s--- rank 1\n%.*s", (int) text_len, text, (int) len, other);
        free(other);
    }
    free(text);
}

int main(int argc, char **argv)
{
    int ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p2p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_that(2 == ranks, "point_to_point runs on 2 ranks");
    p2p.peer = 1 - p2p.rank;
    MPI_Comm_dup(MPI_COMM_WORLD, &p2p.world);
    MPI_Comm_dup(MPI_COMM_WORLD, &p2p.control);
    MPI_Comm_set_errhandler(p2p.world, MPI_ERRORS_RETURN);
    /* Requests that have no communicator belong to these. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    lines = open_memstream(&text, &text_len);
    verify_that(NULL != lines, "no memory for what is printed");
    p2p_exchange();
    p2p_corners();
    print_all();
    MPI_Comm_free(&p2p.control);
    MPI_Comm_free(&p2p.world);
    MPI_Finalize();
    return 0;
}
