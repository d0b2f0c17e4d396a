/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_explore.h
 * Run a few threads of real code in all ways that the C11 memory model allows.
 *
 * The code under test is compiled as for a thread sanitizer: the compiler puts a call before each access to memory and in
 * the place of each atomic operation, with its memory order. dn_explore.c answers these calls by a model of memory in the
 * place of the sanitizer. So the sources of the project are explored as they are.
 *
 * The model. An atomic word keeps all values that were stored into it, in their order. A thread has a view: for each word, the
 * oldest value that it may still read. A load returns any value from there on, each in an execution of its own, and moves the
 * view there. A release store keeps the view of its thread, and an acquire load that reads it takes that view over; a
 * relaxed one does not. Plain accesses are checked by vector clocks: two of different threads, one of them a write, with no
 * release and acquire between them, are a data race, and end the exploration with an error. Without a data race a plain
 * read returns what was written last, as the model has it.
 *
 * The exploration. A thread runs until it loads an atomic word. There it reads one of the values that there are, or lets the
 * others run until there is another. Each way is an execution; they are taken one after the other, until none is left. What
 * is not explored: stores to one word by threads that race for it in another order than they run, and loads that read from
 * stores which depend on them. The code under test has one writer for each word at a time, and no relaxed load.
 *
 * Threads: none but those explored, which are coroutines of one thread.
 */
#ifndef DN_EXPLORE_H
#define DN_EXPLORE_H

#include <stddef.h>
#include <stdint.h>

enum {
    DN_EXPLORE_THREADS = 3,
    DN_EXPLORE_BYTES = 128 << 10, /**< of the memory that threads share */
};

/** Shared memory: zeros at the start of each execution. Accesses to other memory are not looked at. */
extern uint8_t dn_explore_memory[DN_EXPLORE_BYTES];

typedef struct dn_explore_case {
    const char *name;
    /** Before each execution: what is written here, all threads have seen. Declares the atomic words. */
    void (*setup)(void);
    void (*body[DN_EXPLORE_THREADS])(void); /**< NULL: no such thread */
} dn_explore_case_t;

/** An order to take away: operations on words of this name are relaxed. */
typedef struct dn_explore_weak {
    const char *word;
    int stores; /**< not 0: its stores, else its loads */
} dn_explore_weak_t;

/** @name For setup and the threads */
/** @{ */
/** Declare an atomic word of @p size bytes, 4 or 8. Several may have one name. */
void dn_explore_word(const void *word, size_t size, const char *name);
/** Begin a try that may find nothing to do. */
void dn_explore_try(void);
/** The try found nothing to do: go on when a word that it has loaded has another value. */
void dn_explore_wait(void);
/** End the exploration with an error, unless @p ok. */
void dn_explore_check(int ok, const char *what);
/** Try until something is done. */
#define DN_EXPLORE_UNTIL(done)                           \
    for (dn_explore_try(); !(done); dn_explore_wait()) { \
    }
/** @} */

/**
 * Explore a case. @param weak  an order to take away, or NULL.
 * @return executions; *error_p: what went wrong in the last, or NULL.
 */
uint64_t dn_explore(const dn_explore_case_t *which, const dn_explore_weak_t *weak, const char **error_p);

#endif
