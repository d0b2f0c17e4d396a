/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_element.c
 * The elements and operations of dn_acc.h for MPI's predefined datatypes and operations. Where libdimmnet has no loops for a datatype,
 * its elements are foreign, and MPI's own functions change them.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

static MPI_Op const handles[DN_ACC_OPS] = {
    [DN_ACC_SUM] = MPI_SUM,       [DN_ACC_REPLACE] = MPI_REPLACE, [DN_ACC_NO_OP] = MPI_NO_OP,
    [DN_ACC_BAND] = MPI_BAND,     [DN_ACC_BOR] = MPI_BOR,         [DN_ACC_BXOR] = MPI_BXOR,
    [DN_ACC_MAX] = MPI_MAX,       [DN_ACC_MIN] = MPI_MIN,         [DN_ACC_PROD] = MPI_PROD,
    [DN_ACC_LAND] = MPI_LAND,     [DN_ACC_LOR] = MPI_LOR,         [DN_ACC_LXOR] = MPI_LXOR,
    [DN_ACC_MAXLOC] = MPI_MAXLOC, [DN_ACC_MINLOC] = MPI_MINLOC,
};

const uint8_t ompi_osc_dimmnet_ops[OMPI_OP_BASE_FORTRAN_OP_MAX] = {
    [OMPI_OP_BASE_FORTRAN_NULL] = DN_ACC_OPS,      [OMPI_OP_BASE_FORTRAN_SUM] = DN_ACC_SUM,
    [OMPI_OP_BASE_FORTRAN_PROD] = DN_ACC_PROD,     [OMPI_OP_BASE_FORTRAN_MAX] = DN_ACC_MAX,
    [OMPI_OP_BASE_FORTRAN_MIN] = DN_ACC_MIN,       [OMPI_OP_BASE_FORTRAN_LAND] = DN_ACC_LAND,
    [OMPI_OP_BASE_FORTRAN_LOR] = DN_ACC_LOR,       [OMPI_OP_BASE_FORTRAN_LXOR] = DN_ACC_LXOR,
    [OMPI_OP_BASE_FORTRAN_BAND] = DN_ACC_BAND,     [OMPI_OP_BASE_FORTRAN_BOR] = DN_ACC_BOR,
    [OMPI_OP_BASE_FORTRAN_BXOR] = DN_ACC_BXOR,     [OMPI_OP_BASE_FORTRAN_MAXLOC] = DN_ACC_MAXLOC,
    [OMPI_OP_BASE_FORTRAN_MINLOC] = DN_ACC_MINLOC, [OMPI_OP_BASE_FORTRAN_REPLACE] = DN_ACC_REPLACE,
    [OMPI_OP_BASE_FORTRAN_NO_OP] = DN_ACC_NO_OP,
};

/** An element of ompi_osc_dimmnet_plain. */
#define PLAIN(type, sort)                                                                     \
    {                                                                                         \
        .size = sizeof(type), .extent = sizeof(type), .align = _Alignof(type), .kind = (sort) \
    }

const dn_element_t ompi_osc_dimmnet_plain[OPAL_DATATYPE_MAX_PREDEFINED] = {
    [OPAL_DATATYPE_INT1] = PLAIN(int8_t, DN_ELEMENT_SIGNED),
    [OPAL_DATATYPE_INT2] = PLAIN(int16_t, DN_ELEMENT_SIGNED),
    [OPAL_DATATYPE_INT4] = PLAIN(int32_t, DN_ELEMENT_SIGNED),
    [OPAL_DATATYPE_INT8] = PLAIN(int64_t, DN_ELEMENT_SIGNED),
    [OPAL_DATATYPE_LONG] = PLAIN(long, DN_ELEMENT_SIGNED),
    [OPAL_DATATYPE_UINT1] = PLAIN(uint8_t, DN_ELEMENT_UNSIGNED),
    [OPAL_DATATYPE_UINT2] = PLAIN(uint16_t, DN_ELEMENT_UNSIGNED),
    [OPAL_DATATYPE_UINT4] = PLAIN(uint32_t, DN_ELEMENT_UNSIGNED),
    [OPAL_DATATYPE_UINT8] = PLAIN(uint64_t, DN_ELEMENT_UNSIGNED),
    [OPAL_DATATYPE_UNSIGNED_LONG] = PLAIN(unsigned long, DN_ELEMENT_UNSIGNED),
    [OPAL_DATATYPE_BOOL] = PLAIN(bool, DN_ELEMENT_UNSIGNED),
    [OPAL_DATATYPE_WCHAR] = PLAIN(wchar_t, DN_ELEMENT_UNSIGNED),
    [OPAL_DATATYPE_FLOAT4] = PLAIN(float, DN_ELEMENT_FLOAT),
    [OPAL_DATATYPE_FLOAT8] = PLAIN(double, DN_ELEMENT_FLOAT),
};

bool ompi_osc_dimmnet_is_defined(uint32_t op, ompi_datatype_t *basic)
{
    char *why = NULL;

    /* A datatype of Fortran that this Open MPI was built without has a number behind the end of the map. */
    if (DN_ACC_OPS <= op || sizeof(ompi_op_ddt_map) / sizeof(ompi_op_ddt_map[0]) <= (size_t) basic->id) {
        return false;
    }
    if (DN_ACC_REPLACE == op || DN_ACC_NO_OP == op) {
        return true;
    }
    const bool valid = ompi_op_is_valid(handles[op], basic, &why, "");
    free(why);
    return valid;
}

/** dn_element_reduce_fn_t: MPI's own loops. @param[in] arg  The predefined datatype. */
static void element_reduce(const void *arg, dn_acc_op_t op, void *at, const void *operand, uint64_t n)
{
    ompi_datatype_t *type = (ompi_datatype_t *) (uintptr_t) arg;
    const uint64_t extent = (uint64_t) (type->super.ub - type->super.lb);

    while (0 != n) {
        const int some = INT32_MAX < n ? INT32_MAX : (int) n;

        (void) PMPI_Reduce_local(operand, at, some, type, handles[op]);
        at = (uint8_t *) at + (uint64_t) some * extent;
        operand = (const uint8_t *) operand + (uint64_t) some * extent;
        n -= (uint64_t) some;
    }
}

dn_element_t ompi_osc_dimmnet_element(ompi_datatype_t *basic)
{
    dn_element_t element = {.size = 1, .extent = 1, .align = 1, .kind = DN_ELEMENT_UNSIGNED};

    if (NULL == basic) {
        return element;
    }
    const dn_element_t *plain = osc_plain(basic);
    if (NULL != plain) {
        return *plain;
    }
    element.size = (uint32_t) basic->super.size;
    element.extent = (uint32_t) (basic->super.ub - basic->super.lb);
    element.align = 0 == basic->super.align ? 1 : basic->super.align;
    element.kind = DN_ELEMENT_FOREIGN;
    element.reduce = element_reduce;
    element.arg = basic;
    element.layout = dn_element_has_gaps(&element) ? dn_ompi_prog(basic) : NULL;
    return element;
}
