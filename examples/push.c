/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file push.c
 * PUSH with a program. Rank 0 has a matrix; each process writes a column of it, from a vector, by one PUSH.
 *
 * A column does not lie together: it is one number in each row. A program says so: one RUN of ROWS blocks.
 * Behind the data the PUSH stores a status word in the LLCM of rank 0, which waits for the words of all.
 */
#include <stdio.h>

#include <dimmnet/dn_atomic.h>
#include <dimmnet/dn_prog.h>

#include "meet.h"

#define ROWS 1000

/** What rank 0 tells the others: its segment, and where its status words are. */
typedef struct target {
    dn_key_t key;
    uint64_t words;
} target_t;

static void write_column(meet_t *meet, const target_t *target)
{
    const dn_prog_op_t column = {.kind = DN_PROG_RUN,
                                 .len = sizeof(double),
                                 .count = ROWS,
                                 .stride = (int64_t) (meet->ranks * sizeof(double))};
    double vector[ROWS];
    dn_prog_t *prog;
    meet_need(dn_prog_create(&column, 1, &prog), "dn_prog_create");
    const dn_prog_use_t use = {.prog = prog, .count = 1};
    const dn_sg_t sg = {.use = &use};
    meet_comp_t done = meet_comp();
    const dn_xfer_t xfer = {.local = vector,
                            .len = sizeof(vector),
                            .key = &target->key,
                            .roff = meet->rank * sizeof(double),
                            .remote_sg = &sg,
                            .comp = &done.comp,
                            .flags = DN_XFER_STATUS_REMOTE,
                            .remote_value = 1,
                            .remote_status = target->words + meet->rank * sizeof(uint64_t)};
    dn_status_t status;

    for (int i = 0; i < ROWS; i++) {
        vector[i] = i + meet->rank / 100.0;
    }
    while (DN_ERR_AGAIN == (status = dn_push(meet->peer[0], &xfer))) {
        meet_wait(meet);
    }
    /* The vector and the program are lent until the PUSH is complete. */
    while (DN_INPROGRESS == status) {
        meet_wait(meet);
        status = done.status;
    }
    meet_need(status, "dn_push");
    dn_prog_free(prog);
}

int main(int argc, char **argv)
{
    meet_t meet;
    dn_segment_t *segment = NULL;
    void *memory = NULL;
    target_t target;

    meet_begin(&meet, argc, argv);
    if (0 == meet.rank) {
        const uint64_t bytes = ROWS * meet.ranks * sizeof(double);
        meet_need(dn_segment_alloc(meet.port, bytes, &segment), "dn_segment_alloc");
        dn_segment_key(segment, &target.key);
        meet_need(dn_llcm_alloc(meet.port, MEET_MAX * sizeof(uint64_t), &target.words, &memory),
                  "dn_llcm_alloc");
        meet_tell(&meet, "target", &target, sizeof(target));
    }
    meet_hear(&meet, 0, "target", &target, sizeof(target));
    write_column(&meet, &target);
    for (uint32_t i = 0; 0 == meet.rank && i < ROWS * meet.ranks; i++) {
        while (1 != dn_load_acquire((uint64_t *) memory + i % meet.ranks)) {
            meet_wait(&meet);
        }
        const double found = ((double *) dn_segment_base(segment))[i];
        meet_need(i / meet.ranks + i % meet.ranks / 100.0 == found ? DN_OK : DN_ERR_PROTO,
                  "a number of the matrix");
    }
    if (0 == meet.rank) {
        printf("push: %u columns are in their places\n", (unsigned) meet.ranks);
    }
    meet_end(&meet);
    return 0;
}
