/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_prog.h
 * Scatter/gather programs (dn_prog.h) of MPI datatypes.
 */
#ifndef DN_OMPI_PROG_H
#define DN_OMPI_PROG_H

#include "dn_prog.h"

#include "compat.h"

#include "ompi/datatype/ompi_datatype.h"

/**
 * The program of a datatype: compiled from Open MPI's own description at first use, kept with the datatype in the
 * field that Open MPI leaves to a PML, and freed with it.
 *
 * @param[in] type  Committed. Not to be freed while the program is used.
 *
 * Threads: any number at once.
 *
 * @return NULL: it has none, as memory ran out or it is nested too deeply: use the convertor.
 */
DN_API const dn_prog_t *dn_ompi_prog(ompi_datatype_t *type);

/** Count instances of a datatype at @p buf: what to walk. @return 0 when there is no program. */
static inline int dn_ompi_prog_start(dn_prog_cursor_t *cursor, ompi_datatype_t *type, size_t count,
                                     const void *buf)
{
    const dn_prog_t *prog = dn_ompi_prog(type);
    const dn_prog_use_t use = {prog, count, type->super.ub - type->super.lb};

    if (NULL == prog) {
        return 0;
    }
    dn_prog_start(cursor, &use, (uintptr_t) buf);
    return 1;
}

#endif
