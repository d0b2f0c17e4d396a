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
#include "opal/datatype/opal_convertor.h"

/**
 * The program of a datatype. It is compiled from Open MPI's own description at first use, kept with the datatype, and freed with it. It is
 * an attribute of the datatype, and also in the field that Open MPI leaves to a PML, where the PML leaves this field alone.
 *
 * @param[in] type  Committed. Not to be freed while the program is used.
 *
 * Threads: any number at once.
 *
 * @return NULL: the datatype has no program, as memory ran out or it is nested too deeply: use the convertor.
 */
DN_API const dn_prog_t *dn_ompi_prog(ompi_datatype_t *type);

/** Start a walk over count instances of a datatype at @p buf, without a convertor. @return 0: the datatype has no
 * program. */
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

/**
 * Start a walk over the bytes that a convertor would pack or unpack, from its present position on.
 *
 * Refused are convertors that convert, sum, or copy from a device, and convertors of contiguous data.
 *
 * @param[in] convertor  Its datatype is an ompi_datatype_t.
 *
 * @return false: refused; use the convertor.
 */
DN_API bool dn_ompi_prog_walk(dn_prog_cursor_t *cursor, const opal_convertor_t *convertor);

/**
 * Have a convertor pack by the program of its datatype, from its present position on. Code that calls
 * opal_convertor_pack(), or sets the convertor to its beginning, works as with any other convertor.
 *
 * Nothing is done for a convertor that dn_ompi_prog_walk() refuses.
 *
 * @param[in] convertor  Prepared to pack. Its datatype is an ompi_datatype_t.
 *
 * @return false: the convertor packs as before.
 */
DN_API bool dn_ompi_prog_adopt(opal_convertor_t *convertor);

/**
 * As opal_convertor_pack(), for any convertor that packs. The convertor is adopted first, where that is possible.
 * @return bytes packed, at most @p len; 0 also after an error.
 */
DN_API size_t dn_ompi_prog_pack(opal_convertor_t *convertor, void *to, size_t len);

/**
 * Pass over the next bytes of an adopted convertor, to gather them later by a cursor.
 *
 * @param[in]  max       Bytes, at least 1.
 * @param[out] cursor_p  Stands before these bytes. Valid as long as the datatype and the user's memory.
 *
 * @return bytes passed: @p max, or all that are left. It may be less than @p max when more are left, for a cut that suits the receiver.
 */
DN_API size_t dn_ompi_prog_pass(opal_convertor_t *convertor, size_t max, dn_prog_cursor_t *cursor_p);

#endif
