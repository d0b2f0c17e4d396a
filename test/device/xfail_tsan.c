/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Must fail in a build with the thread sanitizer: two threads write one word.
 */
#include "dn_config.h"

#include <pthread.h>

#include "xfail.h"

#ifdef __SANITIZE_THREAD__
/* Each write is one: the sanitizer may miss a pair of writes at the same instant, not a thousand. */
static volatile unsigned long word;

static void *count(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        word++;
    }
    return arg;
}
#endif

int main(int argc, char **argv)
{
    (void) argc;
    (void) argv;
#ifdef __SANITIZE_THREAD__
    pthread_t thread;
    pthread_create(&thread, NULL, count, NULL);
    count(NULL);
    pthread_join(thread, NULL);
    return 0 == word;
#else
    return xfail_skip("thread", "thread");
#endif
}
