/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Memory that a sender lends: the provider reads it until the message has gone out, or failed to. Then, or when the receiver is lost or
 * the stream was left and has ended, the loan is returned, and the next call that makes progress signals it.
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <stdlib.h>

/** Take a loan out of the queue of loans that the provider reads. @return the loan. */
static dn_ofi_loan_t *dn_ofi_loan_unlink(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    dn_ofi_loan_t *loan = buffer->loan;

    dn_fifo_remove(&ofi->loan.out, &loan->item);
    buffer->loan = NULL;
    return loan;
}

int dn_ofi_loan_make(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, dn_comp_t *comp)
{
    dn_ofi_loan_t *loan = dn_fifo_pop(&ofi->loan.spare);

    if (NULL == loan) {
        loan = malloc(sizeof(*loan));
    }
    if (NULL == loan) {
        return 0;
    }
    *loan = (dn_ofi_loan_t){.buffer = buffer, .comp = comp};
    buffer->loan = loan;
    dn_fifo_push(&ofi->loan.out, &loan->item);
    return 1;
}

void dn_ofi_loan_undo(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    dn_fifo_push(&ofi->loan.spare, &dn_ofi_loan_unlink(ofi, buffer)->item);
}

void dn_ofi_loan_return(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, dn_status_t status)
{
    dn_ofi_loan_t *loan = dn_ofi_loan_unlink(ofi, buffer);

    loan->status = status;
    dn_fifo_push(&ofi->loan.back, &loan->item);
    dn_ofi_ring(ofi);
}

void dn_ofi_loan_return_all(dn_ofi_t *ofi, const dn_ofi_stream_t *stream, dn_status_t status)
{
    for (dn_ofi_loan_t *loan = dn_fifo_first(&ofi->loan.out), *next; NULL != loan; loan = next) {
        next = dn_fifo_next(&loan->item);
        if (NULL == stream || stream == loan->buffer->stream) {
            dn_ofi_loan_return(ofi, loan->buffer, status);
        }
    }
}

int dn_ofi_loan_signal(dn_ofi_t *ofi)
{
    int n = 0;

    for (;; n++) {
        dn_comp_t *comp = NULL;
        dn_status_t status = DN_OK;
        dn_ofi_lock(ofi);
        dn_ofi_loan_t *loan = dn_fifo_pop(&ofi->loan.back);
        if (NULL != loan) {
            comp = loan->comp;
            status = loan->status;
            dn_fifo_push(&ofi->loan.spare, &loan->item);
        }
        dn_ofi_unlock(ofi);
        if (NULL == comp) {
            return n;
        }
        comp->fn(comp, status);
    }
}

static void dn_ofi_loan_free(dn_fifo_t *loans)
{
    for (dn_ofi_loan_t *loan; NULL != (loan = dn_fifo_pop(loans));) {
        free(loan);
    }
}

void dn_ofi_loan_close(dn_ofi_t *ofi)
{
    dn_ofi_loan_free(&ofi->loan.out);
    dn_ofi_loan_free(&ofi->loan.back);
    dn_ofi_loan_free(&ofi->loan.spare);
}
