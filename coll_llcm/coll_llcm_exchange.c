/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_exchange.c
 * Allgather(v), gather and alltoall, of blocks that are not so long that messages are faster.
 *
 * A process may give more to an allgather(v) than its place holds. It takes part all the same: it gives the bytes that fit, and marks the
 * exchange. So no process waits for it for ever, and all processes return MPI_ERR_TRUNCATE, like a receiver of a message that is too
 * long. Where areas are shared by more processes than look at each other (ALL_LOOK in coll_llcm_long.c), only the process that gave too
 * much returns this error. Where all places are empty there is no exchange, and the other processes do not learn of the error. In an
 * alltoall, Open MPI itself returns the error before it calls a component.
 */
#include "dn_config.h"

#include "coll_llcm.h"

/** Up to so many bytes, areas are faster than the replaced functions: bytes of a block of an allgather, and of all blocks of an alltoall.
 * Those for processes that share cores were measured with 4 and 8 ranks on 2 cores (perf/dn_coll). The others are used for three and more
 * processes that have a core each; they were measured with 2 ranks, as no better values are known. Two such processes measure themselves
 * (coll_llcm_choice.c), up to the same lengths as processes that share cores. @{ */
#define ALLGATHER_MOST         4096u
#define ALLGATHER_CROWDED_MOST 524288u
#define ALLTOALL_MOST          8192u
#define ALLTOALL_CROWDED_MOST  524288u
/** @} */
/** Where processes share cores, areas are faster for a gather of blocks of up to GATHER_SHORT bytes, and of GATHER_LONG to GATHER_MOST bytes.
 * Between these lengths messages are faster: their senders run ahead, since the stage holds more than an area. GATHER_LONG is one more than
 * the longest of such messages (perf/dn_coll, 4 and 8 ranks on 2 cores). @{ */
#define GATHER_SHORT 1024u
#define GATHER_LONG  4097u
#define GATHER_MOST  65536u
/** @} */

/** Do areas suit so many bytes, if there are areas? All processes get the same answer: they have the same bytes, though maybe other types.
 * @param[in] crowded_most  The most bytes where processes share cores; not less than @p most. If both are the same, two processes do not
 * measure. */
static bool exchange_suits(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                           coll_llcm_measured_t kind, size_t bytes, size_t most, size_t crowded_most)
{
    if (0 == bytes || crowded_most < bytes) {
        return false;
    }
    if (most < crowded_most && coll_llcm_is_measured(module, comm, bytes)) {
        return !coll_llcm_choose_messages(module, kind, bytes);
    }
    return most >= bytes || coll_llcm_is_crowded(module, comm);
}

/** Choose the way of an exchange. All processes choose the same. @param[in] suits  What exchange_suits() has returned. */
static coll_llcm_way_t exchange_choose(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                       size_t bytes, size_t (*max)(const dn_tree_t *tree), bool suits)
{
    if (COLL_LLCM_LINES_BEST < bytes && suits && coll_llcm_long_ready(module, comm)) {
        return COLL_LLCM_BY_AREAS;
    }
    if (dn_tree_max(1) >= bytes && coll_llcm_ready(module, comm) && max(module->tree) >= bytes) {
        return COLL_LLCM_BY_TREE;
    }
    /* The data is short, but too long for this tree, or there is no tree. Or the data is long, and areas are refused. */
    return suits && coll_llcm_long_ready(module, comm) ? COLL_LLCM_BY_AREAS : COLL_LLCM_BY_OTHERS;
}

/** Does a gather go through areas? All processes get the same answer. */
static bool gather_suits(coll_llcm_module_t *module, struct ompi_communicator_t *comm, size_t bytes)
{
    return 0 != bytes && (GATHER_SHORT >= bytes || (GATHER_LONG <= bytes && GATHER_MOST >= bytes))
           && coll_llcm_is_crowded(module, comm) && coll_llcm_are_many(module)
           && coll_llcm_long_ready(module, comm);
}

/** Do all places lie together, in the order of ranks? */
static bool places_lie_together(const coll_llcm_side_t *places, int size)
{
    return NULL == places->counts && coll_llcm_is_contiguous((size_t) size * places->count, places->type);
}

/** What a process gives to other processes. */
typedef struct given {
    const void *buf;
    size_t count;
    const ompi_datatype_t *type;
    size_t bytes; /**< bytes that are given: no more than fit into the place */
} given_t;

/** @param[in] place  Bytes that fit. @param[out] marks  The user gives more bytes than fit. */
static given_t given_of(const void *buf, size_t count, const ompi_datatype_t *type, size_t place, bool *marks)
{
    const size_t bytes = coll_llcm_bytes(count, type);

    *marks = bytes > place;
    return (given_t){.buf = buf, .count = count, .type = type, .bytes = bytes < place ? bytes : place};
}

/** @name Through areas
 * Either all processes do an exchange, or none does: if a process found no memory and returned, the others would wait for it. So elements
 * with gaps are packed into areas, and unpacked from areas, without a buffer of their own.
 */
/** @{ */
/** What a process gives and gets, in blocks. */
typedef struct blocks {
    dn_tree_blocks_t super;
    const uint8_t *in;              /**< the bytes that it gives, if they lie together; else NULL */
    coll_llcm_converted_t elements; /**< what it gives, if `in` is NULL */
    size_t given;                   /**< bytes that it gives */
    const coll_llcm_side_t *places; /**< for the blocks that it gets; NULL: it gets none */
    uint8_t *out;                   /**< the places, if they all lie together; else NULL */
    size_t len;                     /**< the most bytes of a block */
    size_t own;                     /**< rank of this process */
} blocks_t;

static void blocks_give(blocks_t *blocks, const given_t *given)
{
    blocks->given = given->bytes;
    blocks->in =
        coll_llcm_is_contiguous(given->count, given->type) ? coll_llcm_start(given->buf, given->type) : NULL;
    if (NULL == blocks->in) {
        coll_llcm_converted_open(&blocks->elements, given->buf, given->count, given->type, true);
    }
}

static void blocks_get(blocks_t *blocks, int size, const coll_llcm_side_t *places)
{
    blocks->places = places;
    blocks->out = places_lie_together(places, size) ? coll_llcm_start(places->buf, places->type) : NULL;
}

static void blocks_close(blocks_t *blocks)
{
    if (NULL == blocks->in) {
        coll_llcm_converted_close(&blocks->elements);
    }
}

/** Put bytes at .. at + len - 1 of the block of a rank into its place. */
static void blocks_put(const blocks_t *blocks, size_t rank, size_t at, const void *bytes, size_t len)
{
    if (NULL != blocks->out) {
        dn_copy(blocks->out + rank * blocks->len + at, bytes, len);
    } else {
        coll_llcm_unpack_part(coll_llcm_side_block(blocks->places, (int) rank),
                              coll_llcm_side_count(blocks->places, (int) rank), blocks->places->type, at,
                              bytes, len);
    }
}

/** Put the block that this process gives itself into its place. */
static void blocks_keep(const blocks_t *blocks, const given_t *given)
{
    coll_llcm_converted_t elements;
    uint8_t bytes[1024];
    size_t len;

    if (coll_llcm_is_contiguous(given->count, given->type)) {
        blocks_put(blocks, blocks->own, 0, coll_llcm_start(given->buf, given->type), given->bytes);
        return;
    }
    coll_llcm_converted_open(&elements, given->buf, given->count, given->type, true);
    for (size_t at = 0; at < given->bytes; at += len) {
        len = sizeof(bytes) < given->bytes - at ? sizeof(bytes) : given->bytes - at;
        coll_llcm_converted_move(&elements, bytes, len);
        blocks_put(blocks, blocks->own, at, bytes, len);
    }
    coll_llcm_converted_close(&elements);
}

/** How many of the bytes at .. at + len - 1 a block of @p bytes bytes has. */
static size_t part_of(size_t bytes, size_t at, size_t len)
{
    const size_t left = at < bytes ? bytes - at : 0;

    return left < len ? left : len;
}

/** Give the own block of a gather. It may be shorter than the blocks of other processes. */
static void give_block(dn_tree_blocks_t *super, void *area, size_t at, size_t len)
{
    blocks_t *blocks = (blocks_t *) super;

    len = part_of(blocks->given, at, len);
    if (0 == len) {
        return;
    }
    if (NULL != blocks->in) {
        dn_copy_in(area, blocks->in + at, len);
    } else {
        coll_llcm_converted_move(&blocks->elements, area, len);
    }
}

static void get_block(dn_tree_blocks_t *super, uint32_t rank, const void *area, size_t at, size_t len)
{
    const blocks_t *blocks = (const blocks_t *) super;
    const size_t bytes =
        coll_llcm_bytes(coll_llcm_side_count(blocks->places, (int) rank), blocks->places->type);

    len = part_of(bytes, at, len);
    if (0 != len) {
        blocks_put(blocks, rank, at, area, len);
    }
}

/** Give all blocks of an alltoall. No process reads the block for this process. It is left out if the blocks lie together. */
static void give_others(dn_tree_blocks_t *super, void *area, size_t at, size_t len)
{
    const blocks_t *blocks = (const blocks_t *) super;
    const size_t start = blocks->own * blocks->len;
    const size_t end = start + blocks->len;

    if (NULL == blocks->in) {
        give_block(super, area, at, len);
        return;
    }
    if (at < start) {
        dn_copy_in(area, blocks->in + at, start < at + len ? start - at : len);
    }
    if (end < at + len) {
        const size_t from = end < at ? at : end;
        dn_copy_in((uint8_t *) area + (from - at), blocks->in + from, at + len - from);
    }
}

/** Get the block for this process out of the blocks that a rank gives. */
static void get_own(dn_tree_blocks_t *super, uint32_t rank, const void *area, size_t at, size_t len)
{
    const blocks_t *blocks = (const blocks_t *) super;
    const size_t start = blocks->own * blocks->len;
    const size_t end = start + blocks->len;
    const size_t from = start < at ? at : start;
    const size_t to = end < at + len ? end : at + len;

    if (from < to) {
        blocks_put(blocks, rank, from - start, (const uint8_t *) area + (from - at), to - from);
    }
}

#define TO_ALL (-1)

/** Gather the blocks of all processes to a root, or TO_ALL. @param[in] len  The most bytes of a block.
 * @param[in] in_place  What this process gives lies in its place already. */
static int gather_long(coll_llcm_module_t *module, struct ompi_communicator_t *comm, const given_t *given,
                       bool in_place, const coll_llcm_side_t *places, size_t len, int root)
{
    const int rank = ompi_comm_rank(comm);
    blocks_t blocks = {.super = {give_block, get_block}, .own = (size_t) rank, .len = len};

    blocks_give(&blocks, given);
    if (TO_ALL == root || rank == root) {
        blocks_get(&blocks, ompi_comm_size(comm), places);
        if (!in_place) {
            blocks_keep(&blocks, given);
        }
    }
    int rc = TO_ALL == root ? coll_llcm_long_exchange(module, len, &blocks.super)
                            : coll_llcm_long_gather(module, root, len, &blocks.super);
    blocks_close(&blocks);
    return rc;
}

/** An alltoall through areas. In place, what this process gives is copied first: at most ALLTOALL_MOST bytes. */
static int alltoall_long(coll_llcm_module_t *module, struct ompi_communicator_t *comm, const void *sbuf,
                         size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                         ompi_datatype_t *rtype)
{
    const int size = ompi_comm_size(comm);
    const int rank = ompi_comm_rank(comm);
    const size_t len = coll_llcm_bytes(rcount, rtype);
    blocks_t blocks = {.super = {give_others, get_own}, .len = len, .own = (size_t) rank};
    const coll_llcm_side_t places = {.buf = rbuf, .type = rtype, .count = rcount};
    uint8_t copy[ALLTOALL_MOST];

    blocks_get(&blocks, size, &places);
    if (MPI_IN_PLACE == sbuf) {
        coll_llcm_pack(copy, rbuf, (size_t) size * rcount, rtype);
        blocks.in = copy;
        blocks.given = len * (size_t) size;
    } else {
        const given_t all = {sbuf, (size_t) size * scount, stype, len * (size_t) size};
        const coll_llcm_side_t in = {.buf = (void *) (uintptr_t) sbuf, .type = stype, .count = scount};
        const given_t own = {coll_llcm_side_block(&in, rank), scount, stype, len};
        blocks_give(&blocks, &all);
        blocks_keep(&blocks, &own);
    }
    int rc = coll_llcm_long_exchange(module, len * (size_t) size, &blocks.super);
    blocks_close(&blocks);
    return rc;
}
/** @} */

/** @name Marks: in an exchange that is marked, a process has given only a part of its data. */
/** @{ */
static void exchange_mark(coll_llcm_module_t *module, coll_llcm_way_t way, bool marks)
{
    if (OPAL_UNLIKELY(marks)) {
        if (COLL_LLCM_BY_AREAS == way) {
            dn_tree_long_mark(module->lng);
        } else {
            dn_tree_mark(module->tree);
        }
    }
}

/** Wait for an allgather through lines. */
static int allgather_wait(coll_llcm_module_t *module, dn_status_t status)
{
    const int rc = coll_llcm_wait(module, status);

    return OPAL_UNLIKELY(OMPI_SUCCESS == rc && dn_tree_is_marked(module->tree)) ? MPI_ERR_TRUNCATE : rc;
}
/** @} */

/** Choose the way of an allgather. All processes choose the same. @param[in] len  Bytes of the longest block. */
static coll_llcm_way_t allgather_choose(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                        size_t len)
{
    return exchange_choose(module, comm, len, dn_tree_allgather_max,
                           exchange_suits(module, comm, COLL_LLCM_MEASURED_ALLGATHER, len, ALLGATHER_MOST,
                                          ALLGATHER_CROWDED_MOST));
}

/** Do an allgather through lines or areas. @param[in] len  Bytes of the longest block. */
static int allgather_by(coll_llcm_way_t way, coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                        const void *sbuf, size_t scount, const ompi_datatype_t *stype,
                        const coll_llcm_side_t *places, size_t len)
{
    const int size = ompi_comm_size(comm);
    const int rank = ompi_comm_rank(comm);
    const bool in_place = MPI_IN_PLACE == sbuf;
    const size_t count = coll_llcm_side_count(places, rank);
    uint8_t own[DN_AOTF_LINE_MAX * DN_TREE_LINES];
    bool marks;

    const given_t given =
        given_of(in_place ? coll_llcm_side_block(places, rank) : sbuf, in_place ? count : scount,
                 in_place ? places->type : stype, coll_llcm_bytes(count, places->type), &marks);
    dn_count(&coll_llcm.exchanges, 1);
    if (0 == len) {
        return marks ? MPI_ERR_TRUNCATE : OMPI_SUCCESS;
    }
    exchange_mark(module, way, marks);
    if (COLL_LLCM_BY_AREAS == way) {
        const int rc = gather_long(module, comm, &given, in_place, places, len, TO_ALL);
        return OPAL_UNLIKELY(OMPI_SUCCESS == rc && dn_tree_long_is_marked(module->lng)) ? MPI_ERR_TRUNCATE
                                                                                        : rc;
    }
    coll_llcm_pack_first(own, given.buf, given.count, given.type, given.bytes);
    memset(own + given.bytes, 0, len - given.bytes);
    if (places_lie_together(places, size)) {
        return allgather_wait(
            module, dn_tree_allgather(module->tree, own, coll_llcm_start(places->buf, places->type), len));
    }
    uint8_t all[len * (size_t) size];
    int rc = allgather_wait(module, dn_tree_allgather(module->tree, own, all, len));
    for (int i = 0; i < size && OMPI_ERR_UNREACH != rc; i++) {
        coll_llcm_unpack(coll_llcm_side_block(places, i), coll_llcm_side_count(places, i), places->type,
                         all + (size_t) i * len);
    }
    return rc;
}

int coll_llcm_allgather(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype, void *rbuf,
                        dn_ompi_count_t rcount, struct ompi_datatype_t *rtype,
                        struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const coll_llcm_side_t places = {.buf = rbuf, .type = rtype, .count = rcount};
    const size_t len = coll_llcm_bytes(rcount, rtype);

    const coll_llcm_way_t way = allgather_choose(module, comm, len);
    return coll_llcm_note_time(module,
                               COLL_LLCM_BY_OTHERS == way
                                   ? module->saved.coll_allgather(sbuf, scount, stype, rbuf, rcount, rtype,
                                                                  comm, module->saved.coll_allgather_module)
                                   : allgather_by(way, module, comm, sbuf, scount, stype, &places, len));
}

int coll_llcm_allgatherv(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype, void *rbuf,
                         dn_ompi_counts_t counts, dn_ompi_starts_t starts, struct ompi_datatype_t *rtype,
                         struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const coll_llcm_side_t places = {.buf = rbuf, .type = rtype, .counts = &counts, .starts = &starts};
    size_t most = 0;

    for (int i = 0; i < ompi_comm_size(comm); i++) {
        most = most < dn_ompi_count_at(counts, i) ? dn_ompi_count_at(counts, i) : most;
    }
    const size_t len = coll_llcm_bytes(most, rtype);
    const coll_llcm_way_t way = allgather_choose(module, comm, len);
    return coll_llcm_note_time(
        module, COLL_LLCM_BY_OTHERS == way
                    ? module->saved.coll_allgatherv(sbuf, scount, stype, rbuf, counts, starts, rtype, comm,
                                                    module->saved.coll_allgatherv_module)
                    : allgather_by(way, module, comm, sbuf, scount, stype, &places, len));
}

int coll_llcm_gather(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype, void *rbuf,
                     dn_ompi_count_t rcount, struct ompi_datatype_t *rtype, int root,
                     struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const size_t len = MPI_IN_PLACE == sbuf ? coll_llcm_bytes(rcount, rtype) : coll_llcm_bytes(scount, stype);

    if (!gather_suits(module, comm, len)) {
        return module->saved.coll_gather(sbuf, scount, stype, rbuf, rcount, rtype, root, comm,
                                         module->saved.coll_gather_module);
    }
    const coll_llcm_side_t places = {.buf = rbuf, .type = rtype, .count = rcount};
    const bool in_place = MPI_IN_PLACE == sbuf;
    const given_t given = {.buf = in_place ? coll_llcm_side_block(&places, root) : sbuf,
                           .count = in_place ? rcount : scount,
                           .type = in_place ? rtype : stype,
                           .bytes = len};
    dn_count(&coll_llcm.exchanges, 1);
    return gather_long(module, comm, &given, in_place, &places, len, root);
}

int coll_llcm_alltoall(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype, void *rbuf,
                       dn_ompi_count_t rcount, struct ompi_datatype_t *rtype,
                       struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const size_t size = (size_t) ompi_comm_size(comm);
    const size_t len = coll_llcm_bytes(rcount, rtype);

    /* Either all processes call this in place, or none does. */
    const size_t crowded_most = MPI_IN_PLACE == sbuf ? ALLTOALL_MOST : ALLTOALL_CROWDED_MOST;

    const coll_llcm_way_t way = exchange_choose(
        module, comm, len, dn_tree_alltoall_max,
        exchange_suits(module, comm, COLL_LLCM_MEASURED_ALLTOALL, len * size, ALLTOALL_MOST, crowded_most));
    if (COLL_LLCM_BY_OTHERS == way) {
        return coll_llcm_note_time(module,
                                   module->saved.coll_alltoall(sbuf, scount, stype, rbuf, rcount, rtype, comm,
                                                               module->saved.coll_alltoall_module));
    }
    dn_count(&coll_llcm.exchanges, 1);
    if (0 == len) {
        return OMPI_SUCCESS;
    }
    if (COLL_LLCM_BY_AREAS == way) {
        return coll_llcm_note_time(module,
                                   alltoall_long(module, comm, sbuf, scount, stype, rbuf, rcount, rtype));
    }
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool in_gaps = in_place || !coll_llcm_is_contiguous(size * (size_t) scount, stype);
    const bool out_gaps = !coll_llcm_is_contiguous(size * (size_t) rcount, rtype);
    /* The buffers are no longer than lines are. */
    uint8_t in[in_gaps ? len * size : 1];
    uint8_t out[out_gaps ? len * size : 1];
    const uint8_t *from = in_gaps ? in : coll_llcm_start(sbuf, stype);
    uint8_t *to = out_gaps ? out : coll_llcm_start(rbuf, rtype);
    if (in_gaps) {
        coll_llcm_pack(in, in_place ? rbuf : sbuf, size * (size_t) (in_place ? rcount : scount),
                       in_place ? rtype : stype);
    }
    int rc = coll_llcm_wait(module, dn_tree_alltoall(module->tree, from, to, len));
    if (out_gaps && OMPI_SUCCESS == rc) {
        coll_llcm_unpack(rbuf, size * (size_t) rcount, rtype, out);
    }
    return rc;
}
