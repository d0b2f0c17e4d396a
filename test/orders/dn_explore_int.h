/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_explore_int.h
 * Between the model of memory (dn_explore.c) and the calls of the compiler (dn_explore_calls.c).
 */
#ifndef DN_EXPLORE_INT_H
#define DN_EXPLORE_INT_H

#include "dn_explore.h"

#define DN_EXPLORE_NO_WORD (-1)

/** Is it memory that threads share? */
int dn_explore_is_shared(const void *address);
/** The running thread is about to read or write plainly. */
void dn_explore_access(const void *address, size_t len, int writes);
/** The atomic word at an address. DN_EXPLORE_NO_WORD: only one thread has it, or none runs yet. */
int dn_explore_find(const volatile void *address, size_t size);
/** Load and store a word; @p order as the compiler names it. */
uint64_t dn_explore_load(int index, int order);
void dn_explore_store(int index, uint64_t value, int order);

#endif
