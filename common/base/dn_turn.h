/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_turn.h
 * Turns: changes of an object's state, which are checked against the drawing of the object's life.
 *
 * An object that has a life has one enum of states. One function changes the state, and a header draws the arrows. A table
 * next to that function holds the same arrows: a row for each state, with the bits of the states that may follow. Builds
 * that look for errors (--enable-debug, or a sanitizer: DN_CHECK_STATES) end the process at a turn that the table does not
 * have. In other builds the check costs nothing.
 *
 * Pinned by test/unit/dn_turn_ends_what_is_not_drawn.
 */
#ifndef DN_TURN_H
#define DN_TURN_H

#include "dn_types.h"

/** The bit of a state in the rows of the states before it. */
#define DN_TURN_TO(state) (UINT32_C(1) << (state))

/** Write which turn was refused, and end the process. @param[in] what  The object: "a request". */
DN_DEVICE_API void dn_turn_refuse(const char *what, unsigned from, unsigned to)
    __attribute__((noreturn, cold));

/** Check that the table has this turn. If not, the process ends. */
static inline void dn_turn_check(const char *what, const uint32_t *table, unsigned from, unsigned to)
{
#ifdef DN_CHECK_STATES
    if (0 == (table[from] & DN_TURN_TO(to))) {
        dn_turn_refuse(what, from, to);
    }
#else
    (void) what;
    (void) table;
    (void) from;
    (void) to;
#endif
}

#endif
