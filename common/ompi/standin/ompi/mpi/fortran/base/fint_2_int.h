/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file fint_2_int.h
 * Stands in for a header that ompi/op/op.h includes and that distributions leave out: conversion between the integers of
 * C and of Fortran.
 */
#ifndef DN_STANDIN_FINT_2_INT_H
#define DN_STANDIN_FINT_2_INT_H

#define OMPI_INT_2_FINT(value) ((MPI_Fint) (value))
#define OMPI_FINT_2_INT(value) ((int) (value))

#endif
