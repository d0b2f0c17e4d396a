/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Must fail in a build with the thread sanitizer: two threads write one word.
 */
#include "dn_config.h"

#include <pthread.h>
#include <stdio.h>

#include "../dn_test.h"

#if !defined(__SANITIZE_THREAD__) && defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define __SANITIZE_THREAD__ 1
#    endif
#endif

#ifdef __SANITIZE_THREAD__
static unsigned long word;

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
    (void) argv;
#ifndef __SANITIZE_THREAD__
    printf("skipped: this build has no thread sanitizer (--enable-sanitizer=thread)\n");
    return 0 < argc ? DN_TEST_SKIP : 0;
#else
    pthread_t thread;
    pthread_create(&thread, NULL, count, NULL);
    count(NULL);
    pthread_join(thread, NULL);
    return 0 == word;
#endif
}
