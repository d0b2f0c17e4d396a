/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "letter.h"

#include "verify.h"

#include <mpi.h>

letter_t letter_right(void)
{
    letter_t letter = {.head = {.generation = 1, .rank = ATTACKER, .at = 8, .count = 16, .len = 16}};

    letter.head.type = MPI_Type_c2f(MPI_INT64_T);
    letter.body[0] = letter.body[8] = 1;
    return letter;
}

void letter_send(dn_peer_t *victim, unsigned tag, const void *letter, size_t len)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_botf(victim, DN_CHAN_OSC, tag, letter, len, NULL, 0))) {
        int flag;

        (void) MPI_Iprobe(VICTIM, DONE_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    verify_that(DN_OK == status, "a message was not taken");
}

void letter_invite(dn_port_t *port)
{
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);

    verify_that(DN_OK == dn_address(port, address, &len), "the port has no address");
    MPI_Send(address, (int) len, MPI_BYTE, ATTACKER, ADDRESS_TAG, MPI_COMM_WORLD);
}

dn_peer_t *letter_connect(dn_port_t *port)
{
    uint8_t address[DN_ADDRESS_MAX];
    MPI_Status status;
    dn_peer_t *victim;
    int len;

    MPI_Recv(address, sizeof(address), MPI_BYTE, VICTIM, ADDRESS_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &len);
    verify_that(DN_OK == dn_connect(port, address, (size_t) len, &victim), "the victim is not reached");
    return victim;
}
