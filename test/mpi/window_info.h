/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file window_info.h
 * What a window says of a key of its info.
 */
#ifndef DN_TEST_MPI_WINDOW_INFO_H
#define DN_TEST_MPI_WINDOW_INFO_H

#include <mpi.h>

/** @return until the next call; "" when it says nothing. One thread at a time. */
static inline const char *window_info(MPI_Win win, const char *key)
{
    static char value[MPI_MAX_INFO_VAL + 1];
    MPI_Info info;
    int flag;

    value[0] = '\0';
    MPI_Win_get_info(win, &info);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &flag);
    MPI_Info_free(&info);
    return flag ? value : "";
}

#endif
