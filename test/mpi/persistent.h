/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file persistent.h
 * Persistent collectives: an extension in Open MPI 4.1.
 */
#ifndef DN_TEST_MPI_PERSISTENT_H
#define DN_TEST_MPI_PERSISTENT_H

#include <mpi.h>

/** Make a request for a persistent collective: INIT(Bcast, buffer, ..., info, &request). */
#if 5 <= OMPI_MAJOR_VERSION
#    define INIT(Name, ...) MPI_##Name##_init(__VA_ARGS__)
#else
#    include <mpi-ext.h>
#    define INIT(Name, ...) MPIX_##Name##_init(__VA_ARGS__)
#endif

#endif
