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

/**
 * Start a thread to which the program's signals do not go.
 *
 * @param[out] thread  For pthread_join(), which the caller owes.
 * @return 0, or an errno value: there is no thread, as where a limit is reached. Nothing is logged.
 */
int dn_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
