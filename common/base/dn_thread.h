/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_thread.h
 * Threads of this library's own, beside those of the program.
 */
#ifndef DN_THREAD_H
#define DN_THREAD_H

#include <pthread.h>

/** Has this process threads beside the calling one? Where the C library does not say: it has. A child of a process in which this library
 * has started threads begins with one, and is taken to have no others. */
int dn_thread_has_others(void);

/**
 * Start a thread to which the program's signals do not go.
 *
 * @param[out] thread  For pthread_join(), which the caller owes.
 * @return 0, or an errno value: there is no thread, as where a limit is reached. Nothing is logged.
 */
int dn_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
