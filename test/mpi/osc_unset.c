/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_unset.c
 * Nothing of a target's memory leaves it but what is in its window: rank 1 asks for what was there with layouts that cut
 * elements, and looks at every byte of the answers.
 *
 *   osc_unset [-n TIMES]
 *
 * The window is zeros and stays so. The target fills its stack with other bytes; who runs it has malloc() fill memory, too.
 */
#include "dn_config.h"

#include "letter.h"
#include "verify.h"

#include "dn_prog.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 4096, STACK = 200000, POISON = 0xa5 };

static uint64_t times = 20;
static dn_port_t *port;
static dn_peer_t *victim;
static uint64_t answered; /**< task of the last answer */
static uint64_t refused, served;
static uint64_t layout; /**< number of the last one */

/** dn_handler_fn_t: instead of the windows' own. */
static void on_answer(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    const uint8_t *bytes = data;
    answer_t answer;

    verify_that(src == victim && ANSWER == tag && sizeof(answer) <= len, "a message is no answer");
    memcpy(&answer, data, sizeof(answer));
    verify_that(0 == answer.pad, "an answer has bytes that nobody has set");
    verify_that(0 == answer.error || sizeof(answer) == len, "an answer that is an error has more bytes");
    for (size_t i = sizeof(answer); i < len; i++) {
        verify_that(0 == bytes[i], "a byte of an answer was not in the window");
    }
    *(0 == answer.error ? &served : &refused) += 1;
    answered = answer.task;
}

/** Ask, and wait for the answer. */
static void ask(letter_t *letter, size_t body)
{
    static uint64_t task;

    letter->head.task = ++task;
    letter_send(victim, ACCUMULATE, letter, sizeof(letter->head) + body);
    while (answered != task) {
        dn_progress(port);
    }
}

/** Send a layout, as a new one of the first slot: requests by program name it. @p run bytes every @p stride, @p n times. */
static void send_layout(uint64_t run, uint64_t n, int64_t stride)
{
    const dn_prog_op_t op = {.kind = DN_PROG_RUN, .len = run, .count = n, .stride = stride};
    letter_t letter = letter_right();
    size_t len = BODY - sizeof(piece_t);
    dn_prog_t *prog;

    verify_that(DN_OK == dn_prog_create(&op, 1, &prog), "a layout cannot be made");
    verify_that(DN_OK == dn_prog_encode(prog, letter.body + sizeof(piece_t), &len),
                "a layout cannot be encoded");
    dn_prog_free(prog);
    const piece_t piece = {.layout = ++layout, .len = (uint32_t) len};
    memcpy(letter.body, &piece, sizeof(piece));
    letter_send(victim, LAYOUT, &letter, sizeof(letter.head) + sizeof(piece) + len);
}

/** Every operation that is made of zeros and leaves zeros, by elements of each size. */
static void ask_all(void)
{
    const MPI_Datatype types[] = {MPI_INT64_T, MPI_INT32_T,          MPI_INT16_T,
                                  MPI_DOUBLE,  MPI_C_DOUBLE_COMPLEX, MPI_DOUBLE_INT};
    static const uint64_t runs[] = {1, 2, 3, 4, 6, 8, 12};
    static const uint32_t ops[] = {SUM, REPLACE, NO_OP};

    for (size_t r = 0; r < sizeof(runs) / sizeof(runs[0]); r++) {
        send_layout(runs[r], 48 / runs[r], (int64_t) runs[r] + 4);
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
            for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
                letter_t letter = letter_right();

                memset(letter.body, 0, sizeof(letter.body));
                letter.head.flags = FETCHES | BY_PROGRAM;
                letter.head.type = MPI_Type_c2f(types[i]);
                letter.head.op = MPI_DOUBLE_INT == types[i] ? (0 == k ? MAXLOC : ops[k]) : ops[k];
                letter.head.layout = layout;
                letter.head.count = 2;
                letter.head.extent = 512;
                letter.head.len = MPI_DOUBLE_INT == types[i] ? 84 : 96;
                ask(&letter, NO_OP == ops[k] ? 0 : letter.head.len);
                /* From within an element. */
                letter.head.flags = FETCHES;
                letter.head.count = 128;
                letter.head.skip = runs[r];
                ask(&letter, NO_OP == ops[k] ? 0 : letter.head.len);
            }
        }
    }
}

static void attack(void)
{
    victim = letter_connect(port);
    dn_handler_clear(port, DN_CHAN_OSC);
    verify_that(DN_OK == dn_handler_set(port, DN_CHAN_OSC, on_answer, NULL), "answers cannot be seen");
    for (uint64_t n = 0; n < times; n++) {
        ask_all();
    }
    verify_that(0 != refused && 0 != served, "all requests were refused, or none");
    MPI_Send(NULL, 0, MPI_BYTE, VICTIM, DONE_TAG, MPI_COMM_WORLD);
    dn_disconnect(victim);
}

/** Leave other bytes where the next calls have their variables. */
static void __attribute__((noinline)) poison(void)
{
    uint8_t bytes[STACK];

    memset(bytes, POISON, sizeof(bytes));
    __asm__ __volatile__("" : : "r"(bytes) : "memory");
}

static void endure(const uint8_t *memory)
{
    int done = 0;

    letter_invite(port);
    while (!done) {
        poison();
        MPI_Iprobe(ATTACKER, DONE_TAG, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, ATTACKER, DONE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < BYTES; i++) {
        verify_that(0 == memory[i], "sums of zeros are something else");
    }
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'n', "TIMES", &times, 1}, {0}};
    static uint8_t memory[BYTES] __attribute__((aligned(64)));
    MPI_Win win;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    verify_options(argc, argv, options);
    MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    verify_that(0 == dn_ompi_open(DN_OMPI_AFTER_MODEX, &port), "there is no port");
    if (ATTACKER == rank) {
        attack();
        printf("osc_unset: %llu requests refused, %llu served, no byte of another place told\n",
               (unsigned long long) refused, (unsigned long long) served);
    } else {
        endure(memory);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    dn_ompi_close();
    MPI_Finalize();
    return 0;
}
