/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file bad_wire.h
 * A wire that loses UDP datagrams, brings them twice, holds them back and changes them, as a seed says: on the sending side, in place of
 * sendto(2). The kernel cuts no rows then, so that each datagram has its own fate.
 *
 * A program links bad_wire.c, and calls bad_wire_begin(). Or it is left as it is, and bad_wire.so is loaded before its libraries:
 *
 *   LD_PRELOAD=bad_wire.so DN_BAD_WIRE=10,5,3,1 PROGRAM
 *
 * At its end it then says how many faults there were. The wire is good until it begins.
 *
 * A changed datagram has passed the checksum of UDP: only where a tag covers each (auth=full) may there be any.
 */
#ifndef DN_TEST_BAD_WIRE_H
#define DN_TEST_BAD_WIRE_H

#include <stdint.h>

/**
 * Have a bad wire, before a port is opened.
 *
 * @param[in] rates  Of 100 datagrams of this process, how many are lost, come twice, come behind up to 8 others, and are changed: "10,5,3,1".
 * @param[in] seed   What befalls which. Another one for each process.
 * @return 0: these are no rates.
 */
int bad_wire_begin(const char *rates, uint64_t seed);
/** Before a fork: no thread is inside of the wire until bad_wire_go_on(), which the thread calls in both processes. */
void bad_wire_hold(void);
void bad_wire_go_on(void);
/** Have a good one again. What is held back is lost. @return faults that there were. */
uint64_t bad_wire_end(void);

#endif
