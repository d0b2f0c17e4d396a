/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_OUTPUT_H
#define DN_OUTPUT_H

/**
 * End the output of a program. Where standard output has not taken all that was printed, write one sentence to stderr.
 *
 * @param[in] status  Exit status of the program so far.
 *
 * @return the exit status: @p status, or 1 if the output is not complete.
 */
int dn_output_end(const char *program, int status);

#endif
