/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file tests_go_on.c
 * A rank that does nothing but test requests of its messages still does its part of all else: of barriers that it has started and does not
 * test, and of a message that it sends. Each of MPI_Test, MPI_Testany, MPI_Testall and MPI_Testsome tells the truth meanwhile. The ranks are
 * four, so that a barrier takes each of them two rounds.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>

/** LONG: of a message whose sender has to take part. SPARE: places without a request. */
enum { ROUNDS = 40, KINDS = 4, MESSAGES = 3, SPARE = 1, ALL = MESSAGES + SPARE, LONG = 3 << 20 };

static int rank;

/** Test some requests. @param[in,out] left  Those that are not complete. @return were all of them complete when the call ended? */
static bool test(int kind, MPI_Request *requests, int *left)
{
    int done = 0, index = 0, indices[ALL], count;
    MPI_Status statuses[ALL];

    switch (kind) {
    case 0:
        for (index = 0; index < ALL && MPI_REQUEST_NULL == requests[index]; index++) {
        }
        verify_that(index < ALL, "a request is gone");
        MPI_Test(&requests[index], &done, &statuses[0]);
        verify_that(!done == (MPI_REQUEST_NULL != requests[index]),
                    "MPI_Test: a request does not say what the flag says");
        *left -= done;
        break;
    case 1:
        MPI_Testany(ALL, requests, &index, &done, &statuses[0]);
        verify_that(done || MPI_UNDEFINED == index, "MPI_Testany: an index without a complete request");
        verify_that(!done || (0 <= index && index < ALL && MPI_REQUEST_NULL == requests[index]),
                    "MPI_Testany: no complete request");
        *left -= done;
        break;
    case 2:
        MPI_Testall(ALL, requests, &done, statuses);
        *left = done ? 0 : *left;
        break;
    default:
        MPI_Testsome(ALL, requests, &count, indices, statuses);
        verify_that(MPI_UNDEFINED != count, "MPI_Testsome: no request is active");
        for (int i = 0; i < count; i++) {
            verify_that(MPI_REQUEST_NULL == requests[indices[i]], "MPI_Testsome: no complete request");
        }
        *left -= count;
    }
    return 0 == *left;
}

/** Rank 0 sends and receives by tests alone, and rank 1 sends only after the barrier that rank 0 does not test. */
static void run_round(int kind, unsigned char *out, unsigned char *in)
{
    MPI_Request barrier,
        requests[ALL] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int number = -1, left = MESSAGES;

    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    if (0 == rank) {
        MPI_Irecv(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, LONG, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Irecv(in, LONG, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[3]);
        while (!test(kind, requests, &left)) {
        }
        verify_that(kind == number, "a number is wrong");
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    } else if (1 < rank) {
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    } else {
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
        MPI_Recv(in, LONG, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&kind, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Send(out, LONG, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    if (2 > rank) {
        verify_expect(in, LONG, verify_key(1, 3, (uint64_t) kind, (uint64_t) (1 - rank)), "a long message");
    }
}

/** Arrays without an active request. */
static void run_empty(void)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int done = 0, index = 0, indices[2], count = 0, number;

    MPI_Testany(2, requests, &index, &done, MPI_STATUS_IGNORE);
    verify_that(done && MPI_UNDEFINED == index, "MPI_Testany: requests that there are not");
    MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    verify_that(done, "MPI_Testall: requests that there are not");
    MPI_Recv_init(&number, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Testsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
    verify_that(MPI_UNDEFINED == count, "MPI_Testsome: requests that are not active");
    MPI_Request_free(&requests[1]);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{0, NULL, NULL, 0}};
    unsigned char *out = malloc(LONG), *in = malloc(LONG);
    int ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    verify_that(4 == ranks && NULL != out && NULL != in, "this is for 4 ranks, and needs some memory");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        const int kind = round % KINDS;

        verify_fill(out, LONG, verify_key(1, 3, (uint64_t) kind, (uint64_t) rank));
        run_round(kind, out, in);
    }
    run_empty();
    MPI_Finalize();
    free(in);
    free(out);
    return 0;
}
