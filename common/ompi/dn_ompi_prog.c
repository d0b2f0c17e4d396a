/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "dn_ompi_prog.h"

#include <mpi.h>

#include "ompi/mca/pml/base/base.h"
#include "opal/datatype/opal_datatype_internal.h"

/** Instead of a program: the datatype has none, and is not compiled again. */
#define NO_PROGRAM UINT64_C(1)

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;

/** The attribute by which a datatype has its program, and by which the program is freed with the datatype. */
static int keyval = MPI_KEYVAL_INVALID;

/** Does ompi_datatype_t::pml_data have the program, too? 0: not known yet. */
static uint32_t uses_field;
enum { FIELD_YES = 1, FIELD_NO };

/** Does the field have programs? It has not where the PML that is used keeps something of its own there, as pml/ucx does. No datatype is
 * used before the PML is chosen. Relaxed suffices: all threads find the same. */
static bool has_field(void)
{
    static const char *const leave_it[] = {"dimmnet", "ob1", "cm"};
    uint32_t found = dn_load_relaxed_u32(&uses_field);

    if (OPAL_UNLIKELY(0 == found)) {
        const char *pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
        found = FIELD_NO;
        for (size_t i = 0; i < sizeof(leave_it) / sizeof(leave_it[0]); i++) {
            found = 0 == strcmp(pml, leave_it[i]) ? FIELD_YES : found;
        }
        dn_store_relaxed_u32(&uses_field, found);
    }
    return FIELD_YES == found;
}

/** MPI_Type_delete_attr_function. */
static int free_with_type(MPI_Datatype type, int key, void *value, void *extra)
{
    if (has_field()) {
        type->pml_data = NO_PROGRAM;
    }
    if (NO_PROGRAM != (uintptr_t) value) {
        dn_prog_free(value);
    }
    return MPI_SUCCESS;
}

/** Translate one element of a datatype's description to op[*n]. @return false: it is nested too deeply for a program. */
static bool add_op(const union dt_elem_desc *elem, dn_prog_op_t *op, size_t *n, size_t *open, unsigned *depth)
{
    dn_prog_op_t *next = &op[*n];

    switch (elem->elem.common.type) {
    case OPAL_DATATYPE_LOOP:
        if (DN_PROG_NEST_MAX == *depth) {
            return false;
        }
        *next = (dn_prog_op_t){.kind = DN_PROG_LOOP, .count = elem->loop.loops, .stride = elem->loop.extent};
        open[(*depth)++] = (*n)++;
        return true;
    case OPAL_DATATYPE_END_LOOP:
        if (0 == *depth) {
            return false;
        }
        --*depth;
        op[open[*depth]].inside = (uint32_t) (*n - open[*depth] - 1);
        return true;
    default:
        *next = (dn_prog_op_t){.kind = DN_PROG_RUN,
                               .at = elem->elem.disp,
                               .len = elem->elem.blocklen
                                      * opal_datatype_basicDatatypes[elem->elem.common.type]->size,
                               .count = elem->elem.count,
                               .stride = elem->elem.extent};
        (*n)++;
        return true;
    }
}

/** Compile the program of a datatype. @return NULL: see dn_ompi_prog(). */
static dn_prog_t *prog_compile(const opal_datatype_t *type)
{
    const dt_type_desc_t *desc =
        NULL != type->opt_desc.desc && 0 != type->opt_desc.used ? &type->opt_desc : &type->desc;
    dn_prog_op_t *op = calloc(desc->used + 1, sizeof(*op));
    size_t open[DN_PROG_NEST_MAX];
    dn_prog_t *prog = NULL;
    unsigned depth = 0;
    size_t n = 0;
    bool good = NULL != op;

    for (size_t i = 0; good && i < desc->used; i++) {
        good = add_op(&desc->desc[i], op, &n, open, &depth);
    }
    if (good && 0 == depth && DN_OK != dn_prog_create(op, n, &prog)) {
        prog = NULL;
    }
    free(op);
    if (NULL != prog && dn_prog_info(prog)->size != type->size) {
        dn_prog_free(prog);
        prog = NULL;
    }
    return prog;
}

/** What a datatype has: a program, NO_PROGRAM, or 0: it was not compiled yet. The lock is held. */
static uint64_t word_of(ompi_datatype_t *type)
{
    void *value = NULL;
    int has = 0;

    if (has_field()) {
        return type->pml_data;
    }
    if (MPI_KEYVAL_INVALID != keyval && MPI_SUCCESS == PMPI_Type_get_attr(type, keyval, &value, &has)
        && has) {
        return (uintptr_t) value;
    }
    return 0;
}

/** Have a datatype keep what it has got. @return false: it does not. */
static bool word_keep(ompi_datatype_t *type, uint64_t word)
{
    /* Predefined datatypes are never freed. */
    if (has_field() && (NO_PROGRAM == word || ompi_datatype_is_predefined(type))) {
        return true;
    }
    if (MPI_KEYVAL_INVALID == keyval
        && MPI_SUCCESS != PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, free_with_type, &keyval, NULL)) {
        return false;
    }
    return MPI_SUCCESS == PMPI_Type_set_attr(type, keyval, (void *) (uintptr_t) word);
}

static uint64_t __attribute__((noinline)) compile_once(ompi_datatype_t *type)
{
    OPAL_THREAD_LOCK(&lock);
    uint64_t word = word_of(type);
    if (0 == word) {
        dn_prog_t *prog = prog_compile(&type->super);

        word = NULL == prog ? NO_PROGRAM : (uintptr_t) prog;
        if (!word_keep(type, word)) {
            dn_prog_free(prog);
            word = NO_PROGRAM;
        }
        if (has_field()) {
            dn_store_release(&type->pml_data, word);
        }
    }
    OPAL_THREAD_UNLOCK(&lock);
    return word;
}

const dn_prog_t *dn_ompi_prog(ompi_datatype_t *type)
{
    uint64_t word = OPAL_LIKELY(has_field()) ? dn_load_acquire(&type->pml_data) : 0;

    if (OPAL_UNLIKELY(0 == word)) {
        word = compile_once(type);
    }
    return NO_PROGRAM == word ? NULL : (const dn_prog_t *) (uintptr_t) word;
}

/** Does a convertor only copy bytes of scattered data: without conversion, checksum or device? */
static bool is_plain(const opal_convertor_t *convertor)
{
    return CONVERTOR_HOMOGENEOUS
           == (CONVERTOR_TYPE_MASK & ~(CONVERTOR_SEND | CONVERTOR_RECV) & convertor->flags);
}

bool dn_ompi_prog_walk(dn_prog_cursor_t *cursor, const opal_convertor_t *convertor)
{
    ompi_datatype_t *type = (ompi_datatype_t *) (uintptr_t) convertor->pDesc;

    if (!is_plain(convertor) || !dn_ompi_prog_start(cursor, type, convertor->count, convertor->pBaseBuf)) {
        return false;
    }
    if (0 != convertor->bConverted) {
        dn_prog_seek(cursor, convertor->bConverted);
    }
    return true;
}

/** Move a convertor's position on by @p len bytes. The convertor's own stack stays as it is: code that packs by the program does not read
 * the stack. */
static void prog_pass(opal_convertor_t *convertor, size_t len)
{
    convertor->bConverted += len;
    if (convertor->bConverted == convertor->local_size) {
        convertor->flags |= CONVERTOR_COMPLETED;
    }
}

/** convertor_advance_fct_t. @return 1: all of the data is packed; 0: more is left. */
static int32_t prog_advance(opal_convertor_t *convertor, struct iovec *iov, uint32_t *iov_count, size_t *len)
{
    dn_prog_cursor_t cursor;
    uint32_t i;

    *len = 0;
    if (!dn_ompi_prog_walk(&cursor, convertor)) {
        return OPAL_ERROR;
    }
    for (i = 0; i < *iov_count && 0 != dn_prog_left(&cursor); i++) {
        iov[i].iov_len = dn_prog_gather(iov[i].iov_base, &cursor, iov[i].iov_len);
        *len += iov[i].iov_len;
    }
    *iov_count = i;
    prog_pass(convertor, *len);
    return 0 == dn_prog_left(&cursor);
}

bool dn_ompi_prog_adopt(opal_convertor_t *convertor)
{
    if (0 == (CONVERTOR_SEND & convertor->flags) || !is_plain(convertor)
        || NULL == dn_ompi_prog((ompi_datatype_t *) (uintptr_t) convertor->pDesc)) {
        return false;
    }
    convertor->fAdvance = prog_advance;
    return true;
}

size_t dn_ompi_prog_pack(opal_convertor_t *convertor, void *to, size_t len)
{
    struct iovec iov = {.iov_base = to, .iov_len = len};
    dn_prog_cursor_t cursor;
    uint32_t iov_count = 1;

    if (OPAL_LIKELY(dn_ompi_prog_walk(&cursor, convertor))) {
        convertor->fAdvance = prog_advance;
        len = dn_prog_gather(to, &cursor, len);
        prog_pass(convertor, len);
        return len;
    }
    return 0 > opal_convertor_pack(convertor, &iov, &iov_count, &len) ? 0 : len;
}

/** Data is cut at multiples of this many bytes. It is a multiple of the size of every basic datatype, and of the blocks that
 * opal_convertor_unpack() is slow with when they are cut. */
#define CUT 64

size_t dn_ompi_prog_pass(opal_convertor_t *convertor, size_t max, dn_prog_cursor_t *cursor_p)
{
    const size_t left = convertor->local_size - convertor->bConverted;
    size_t len = left;

    if (max < left) {
        const size_t beyond = (convertor->bConverted + max) % CUT;

        len = beyond < max ? max - beyond : max;
    }
    if (0 == len || !dn_ompi_prog_walk(cursor_p, convertor)) {
        return 0;
    }
    prog_pass(convertor, len);
    return len;
}
