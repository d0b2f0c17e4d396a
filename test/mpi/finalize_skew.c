/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file finalize_skew.c
 * Ranks reach MPI_Finalize at very different times, the early ones with messages still unread at
 * their receivers. Every message must arrive, whoever has gone into MPI_Finalize meanwhile.
 *
 *   finalize_skew [-s SEED] [-d MILLISECONDS] [-n MESSAGES] [-b | -f] [-l]
 *
 *   -b  in buffered mode, so that a rank may send more than its receivers have room for
 *   -f  nonblocking sends, whose requests are freed, so that a rank leaves them all to MPI_Finalize
 *   -l  long messages
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/** Small enough for the eager protocol of any BTL, so that a send ends without its receiver. */
#define SMALL 1000
/** Bytes that a message of -l has more. */
#define LONG 200000

static int rank;
static int ranks;
static uint64_t seed = 1;
static unsigned delay_ms = 200;
static int count = 20;
static bool buffered;
static bool freed;
static bool long_ones;

/** Bytes of a message. */
static size_t size_of(int source, int target, int i)
{
    return verify_key(seed, (uint64_t) source, (uint64_t) target, (uint64_t) i) % SMALL
           + (long_ones ? LONG : 0);
}

/** All messages to all later ranks; small ones need no receiver to complete. */
static void send_to_later(void)
{
    unsigned char out[SMALL];

    for (int target = rank + 1; target < ranks; target++) {
        for (int i = 0; i < count; i++) {
            size_t size = size_of(rank, target, i);
            verify_fill(out, size, verify_key(seed + 1, (uint64_t) rank, (uint64_t) target, (uint64_t) i));
            (buffered ? MPI_Bsend : MPI_Send)(out, (int) size, MPI_BYTE, target, i, MPI_COMM_WORLD);
        }
    }
}

static void send_to_later_buffered(void)
{
    const int size = ranks * count * (SMALL + MPI_BSEND_OVERHEAD);
    void *memory = malloc((size_t) size);
    int detached;

    MPI_Buffer_attach(memory, size);
    send_to_later();
    MPI_Buffer_detach(&memory, &detached);
    free(memory);
}

/** The memory of the messages has to stay until MPI_Finalize has ended. */
static void send_to_later_freed(void)
{
    for (int target = rank + 1; target < ranks; target++) {
        for (int i = 0; i < count; i++) {
            const size_t size = size_of(rank, target, i);
            unsigned char *out = malloc(size);
            MPI_Request request;

            verify_that(NULL != out, "memory ran out");
            verify_fill(out, size, verify_key(seed + 1, (uint64_t) rank, (uint64_t) target, (uint64_t) i));
            MPI_Isend(out, (int) size, MPI_BYTE, target, i, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
    }
}

/** The messages of earlier ranks, last tag first; the earlier ranks are in MPI_Finalize by now. */
static void receive_from_earlier(void)
{
    static unsigned char in[LONG + SMALL];

    for (int source = 0; source < rank; source++) {
        for (int i = count - 1; i >= 0; i--) {
            const size_t size = size_of(source, rank, i);
            MPI_Status status;
            int got;
            MPI_Recv(in, LONG + SMALL, MPI_BYTE, source, i, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &got);
            verify_that((int) size == got, "a message has another length");
            verify_expect(in, size, verify_key(seed + 1, (uint64_t) source, (uint64_t) rank, (uint64_t) i),
                          "message of a rank that is in MPI_Finalize");
        }
    }
}

int main(int argc, char **argv)
{
    int option;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while (-1 != (option = getopt(argc, argv, "s:d:n:bfl"))) {
        switch (option) {
        case 's':
            seed = verify_number(optarg, 0, "-s");
            break;
        case 'd':
            delay_ms = (unsigned) verify_number(optarg, 0, "-d");
            break;
        case 'n':
            count = (int) verify_number(optarg, 0, "-n");
            break;
        case 'b':
            buffered = true;
            break;
        case 'f':
            freed = true;
            break;
        case 'l':
            long_ones = true;
            break;
        default:
            fprintf(stderr,
                    "usage: finalize_skew [-s SEED] [-d MILLISECONDS] [-n MESSAGES] [-b | -f] [-l]\n");
            exit(2);
        }
    }
    if (buffered) {
        send_to_later_buffered();
    } else if (freed) {
        send_to_later_freed();
    } else {
        send_to_later();
    }
    verify_sleep_ms(delay_ms * (unsigned) rank);
    receive_from_earlier();
    MPI_Finalize();
    printf("finalize_skew: rank %d of %d done\n", rank, ranks);
    return 0;
}
