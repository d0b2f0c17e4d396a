/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_machine.h
 * What dimmnet needs of a machine. configure compiles this file before it looks for anything else. Where an assertion
 * fails, configure ends with the same sentence.
 */
#ifndef DN_MACHINE_H
#define DN_MACHINE_H

#include <stddef.h>

_Static_assert(
    8 == sizeof(void *) && 8 == sizeof(size_t),
    "dimmnet needs a machine of 64 bits: addresses and lengths go between processes in words of 64 bits");
/* Where the machine has no such instruction, the compiler calls a library that takes a lock. The lock is private to a
 * process, so two processes could change the word at once. */
_Static_assert(
    2 == __GCC_ATOMIC_CHAR_LOCK_FREE && 2 == __GCC_ATOMIC_SHORT_LOCK_FREE && 2 == __GCC_ATOMIC_INT_LOCK_FREE
        && 2 == __GCC_ATOMIC_LLONG_LOCK_FREE,
    "dimmnet needs atomic instructions on words of 8 to 64 bits: other processes map the same words");
_Static_assert(__ORDER_LITTLE_ENDIAN__ == __BYTE_ORDER__,
               "dimmnet needs a little-endian machine: what goes between processes has that order, and no "
               "other is tested");

#endif
