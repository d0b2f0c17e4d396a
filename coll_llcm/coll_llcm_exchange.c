/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_exchange.c
 * Allgather, gather and alltoall, of blocks that are not so long that messages are faster.
 */
#include "dn_config.h"

#include "coll_llcm.h"

/** Bytes of a block of an allgather, and of all blocks of an alltoall, up to which areas are faster than what was there before.
 * Measured with 2 ranks, and where processes share cores with 4 and 8 on 2 cores (perf/dn_coll). They hold for any number of
 * ranks, for which nothing better is known. @{ */
#define ALLGATHER_MOST         4096u
#define ALLGATHER_CROWDED_MOST 524288u
#define ALLTOALL_MOST          8192u
#define ALLTOALL_CROWDED_MOST  524288u
/** @} */
/** Likewise of a gather, only where processes share cores: up to GATHER_SHORT, and from GATHER_LONG to GATHER_MOST. Messages of the
 * lengths between are faster, since they run ahead by the stage, which holds more than an area; GATHER_LONG is one
 * more than the longest of these lengths (perf/dn_coll, 4 and 8 ranks on 2 cores). @{ */
#define GATHER_SHORT 1024u
#define GATHER_LONG  4097u
#define GATHER_MOST  65536u
/** @} */

static void exchange_count(void)
{
    const uint64_t count = dn_load_relaxed(&coll_llcm.exchanges);

    dn_store_relaxed(&coll_llcm.exchanges, count + 1);
}

/** Are so many bytes for areas, if there are some? The same in all processes: bytes are the same everywhere, types need not be.
 * @param crowded_most  where processes share cores; not less than @p most. */
static bool exchange_suits(coll_llcm_module_t *module, struct ompi_communicator_t *comm, size_t bytes,
                           size_t most, size_t crowded_most)
{
    return 0 != bytes && crowded_most >= bytes && (most >= bytes || coll_llcm_is_crowded(module, comm));
}

/** Likewise. @param suits  areas would do. */
static coll_llcm_way_t exchange_choose(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                       size_t bytes, size_t (*max)(const dn_tree_t *tree), bool suits)
{
    if (COLL_LLCM_LINES_BEST < bytes && suits && coll_llcm_long_ready(module, comm)) {
        return COLL_LLCM_BY_AREAS;
    }
    if (dn_tree_max(1) >= bytes && coll_llcm_ready(module, comm) && max(module->tree) >= bytes) {
        return COLL_LLCM_BY_TREE;
    }
    /* Short, but too long for this tree, or there is none. */
    return suits && coll_llcm_long_ready(module, comm) ? COLL_LLCM_BY_AREAS : COLL_LLCM_BY_OTHERS;
}

/** Is a gather for areas? Likewise. */
static bool gather_suits(coll_llcm_module_t *module, struct ompi_communicator_t *comm, size_t bytes)
{
    return 0 != bytes && (GATHER_SHORT >= bytes || (GATHER_LONG <= bytes && GATHER_MOST >= bytes))
           && coll_llcm_is_crowded(module, comm) && coll_llcm_are_many(module)
           && coll_llcm_long_ready(module, comm);
}

/** Where block @p i begins. */
static void *exchange_block(const void *buf, int i, int count, const ompi_datatype_t *type)
{
    return (uint8_t *) (uintptr_t) buf + (ptrdiff_t) i * count * (type->super.ub - type->super.lb);
}

/** @name Through areas
 * All processes do an exchange, or none: the others would wait for one that finds no memory and returns. So elements with gaps
 * are packed into areas and unpacked from them, without a buffer of their own.
 */
/** @{ */
/** What a process gives and gets, in blocks. */
typedef struct blocks {
    dn_tree_blocks_t super;
    const uint8_t *in; /**< what it gives, where that lies together; else NULL, and: */
    coll_llcm_converted_t elements;
    void *rbuf; /**< where blocks are to lie, if it gets some */
    int rcount; /**< elements of each */
    const ompi_datatype_t *rtype;
    uint8_t *out; /**< where they all lie together; else NULL */
    size_t len;   /**< bytes of a block */
    size_t own;   /**< rank of this process */
} blocks_t;

static void blocks_give(blocks_t *blocks, const void *sbuf, int count, const ompi_datatype_t *stype)
{
    blocks->in = coll_llcm_is_contiguous(count, stype) ? coll_llcm_start(sbuf, stype) : NULL;
    if (NULL == blocks->in) {
        coll_llcm_converted_open(&blocks->elements, sbuf, count, stype, true);
    }
}

static void blocks_get(blocks_t *blocks, int size, void *rbuf, int rcount, const ompi_datatype_t *rtype)
{
    blocks->rbuf = rbuf;
    blocks->rcount = rcount;
    blocks->rtype = rtype;
    blocks->out = coll_llcm_is_contiguous(size * rcount, rtype) ? coll_llcm_start(rbuf, rtype) : NULL;
}

static void blocks_close(blocks_t *blocks)
{
    if (NULL == blocks->in) {
        coll_llcm_converted_close(&blocks->elements);
    }
}

/** Put bytes at .. at + len - 1 of the block of a rank where it belongs. */
static void blocks_put(const blocks_t *blocks, size_t rank, size_t at, const void *bytes, size_t len)
{
    if (NULL != blocks->out) {
        dn_copy(blocks->out + rank * blocks->len + at, bytes, len);
    } else {
        coll_llcm_unpack_part(exchange_block(blocks->rbuf, (int) rank, blocks->rcount, blocks->rtype),
                              blocks->rcount, blocks->rtype, at, bytes, len);
    }
}

/** Put the block that this process gives itself. */
static void blocks_keep(const blocks_t *blocks, const void *sbuf, int scount, const ompi_datatype_t *stype)
{
    coll_llcm_converted_t elements;
    uint8_t bytes[1024];
    size_t len;

    if (coll_llcm_is_contiguous(scount, stype)) {
        blocks_put(blocks, blocks->own, 0, coll_llcm_start(sbuf, stype), blocks->len);
        return;
    }
    coll_llcm_converted_open(&elements, sbuf, scount, stype, true);
    for (size_t at = 0; at < blocks->len; at += len) {
        len = sizeof(bytes) < blocks->len - at ? sizeof(bytes) : blocks->len - at;
        coll_llcm_converted_move(&elements, bytes, len);
        blocks_put(blocks, blocks->own, at, bytes, len);
    }
    coll_llcm_converted_close(&elements);
}

/** Of a gather: the own block. */
static void give_block(dn_tree_blocks_t *super, void *area, size_t at, size_t len)
{
    blocks_t *blocks = (blocks_t *) super;

    if (NULL != blocks->in) {
        dn_copy(area, blocks->in + at, len);
    } else {
        coll_llcm_converted_move(&blocks->elements, area, len);
    }
}

static void get_block(dn_tree_blocks_t *super, uint32_t rank, const void *area, size_t at, size_t len)
{
    blocks_put((const blocks_t *) super, rank, at, area, len);
}

/** Of an alltoall: all blocks. Nobody looks at the own one, which is left out where that is simple. */
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
        dn_copy(area, blocks->in + at, start < at + len ? start - at : len);
    }
    if (end < at + len) {
        const size_t from = end < at ? at : end;
        dn_copy((uint8_t *) area + (from - at), blocks->in + from, at + len - from);
    }
}

/** What is for this process. */
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

/** The blocks of all to a root, or TO_ALL. */
static int gather_long(coll_llcm_module_t *module, struct ompi_communicator_t *comm, const void *sbuf,
                       int scount, const ompi_datatype_t *stype, void *rbuf, int rcount,
                       const ompi_datatype_t *rtype, int root)
{
    const int rank = ompi_comm_rank(comm);
    const bool in_place = MPI_IN_PLACE == sbuf;
    blocks_t blocks = {.super = {give_block, get_block}, .own = (size_t) rank};

    if (in_place) {
        sbuf = exchange_block(rbuf, rank, rcount, rtype);
        scount = rcount;
        stype = rtype;
    }
    blocks.len = coll_llcm_bytes(scount, stype);
    blocks_give(&blocks, sbuf, scount, stype);
    if (TO_ALL == root || rank == root) {
        blocks_get(&blocks, ompi_comm_size(comm), rbuf, rcount, rtype);
        if (!in_place) {
            blocks_keep(&blocks, sbuf, scount, stype);
        }
    }
    int rc = TO_ALL == root ? coll_llcm_long_exchange(module, blocks.len, &blocks.super)
                            : coll_llcm_long_gather(module, root, blocks.len, &blocks.super);
    blocks_close(&blocks);
    return rc;
}

/** Blocks of all to all. In place what is given lies in a copy meanwhile: at most ALLTOALL_MOST bytes. */
static int alltoall_long(coll_llcm_module_t *module, struct ompi_communicator_t *comm, const void *sbuf,
                         int scount, const ompi_datatype_t *stype, void *rbuf, int rcount,
                         const ompi_datatype_t *rtype)
{
    const int size = ompi_comm_size(comm);
    const int rank = ompi_comm_rank(comm);
    const size_t len = coll_llcm_bytes(rcount, rtype);
    blocks_t blocks = {.super = {give_others, get_own}, .len = len, .own = (size_t) rank};
    uint8_t copy[ALLTOALL_MOST];

    blocks_get(&blocks, size, rbuf, rcount, rtype);
    if (MPI_IN_PLACE == sbuf) {
        coll_llcm_pack(copy, rbuf, size * rcount, rtype);
        blocks.in = copy;
    } else {
        blocks_give(&blocks, sbuf, size * scount, stype);
        blocks_keep(&blocks, exchange_block(sbuf, rank, scount, stype), scount, stype);
    }
    int rc = coll_llcm_long_exchange(module, len * (size_t) size, &blocks.super);
    blocks_close(&blocks);
    return rc;
}
/** @} */

int coll_llcm_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf, int rcount,
                        struct ompi_datatype_t *rtype, struct ompi_communicator_t *comm,
                        mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const int size = ompi_comm_size(comm);
    const int rank = ompi_comm_rank(comm);
    const size_t len = coll_llcm_bytes(rcount, rtype);
    uint8_t own[DN_AOTF_LINE_MAX * DN_TREE_LINES];

    const coll_llcm_way_t way =
        exchange_choose(module, comm, len, dn_tree_allgather_max,
                        exchange_suits(module, comm, len, ALLGATHER_MOST, ALLGATHER_CROWDED_MOST));
    if (COLL_LLCM_BY_OTHERS == way) {
        return module->saved.coll_allgather(sbuf, scount, stype, rbuf, rcount, rtype, comm,
                                            module->saved.coll_allgather_module);
    }
    exchange_count();
    if (COLL_LLCM_BY_AREAS == way) {
        return gather_long(module, comm, sbuf, scount, stype, rbuf, rcount, rtype, TO_ALL);
    }
    if (0 == len) {
        return OMPI_SUCCESS;
    }
    if (MPI_IN_PLACE == sbuf) {
        sbuf = exchange_block(rbuf, rank, rcount, rtype);
        scount = rcount;
        stype = rtype;
    }
    coll_llcm_pack(own, sbuf, scount, stype);
    if (coll_llcm_is_contiguous(size * rcount, rtype)) {
        return coll_llcm_wait(module,
                              dn_tree_allgather(module->tree, own, coll_llcm_start(rbuf, rtype), len));
    }
    uint8_t all[len * (size_t) size];
    int rc = coll_llcm_wait(module, dn_tree_allgather(module->tree, own, all, len));
    if (OMPI_SUCCESS == rc) {
        coll_llcm_unpack(rbuf, size * rcount, rtype, all);
    }
    return rc;
}

int coll_llcm_gather(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf, int rcount,
                     struct ompi_datatype_t *rtype, int root, struct ompi_communicator_t *comm,
                     mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const size_t len = MPI_IN_PLACE == sbuf ? coll_llcm_bytes(rcount, rtype) : coll_llcm_bytes(scount, stype);

    if (!gather_suits(module, comm, len)) {
        return module->saved.coll_gather(sbuf, scount, stype, rbuf, rcount, rtype, root, comm,
                                         module->saved.coll_gather_module);
    }
    exchange_count();
    return gather_long(module, comm, sbuf, scount, stype, rbuf, rcount, rtype, root);
}

int coll_llcm_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf, int rcount,
                       struct ompi_datatype_t *rtype, struct ompi_communicator_t *comm,
                       mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const size_t size = (size_t) ompi_comm_size(comm);
    const size_t len = coll_llcm_bytes(rcount, rtype);

    /* In place is so in all processes. */
    const size_t crowded_most = MPI_IN_PLACE == sbuf ? ALLTOALL_MOST : ALLTOALL_CROWDED_MOST;

    const coll_llcm_way_t way =
        exchange_choose(module, comm, len, dn_tree_alltoall_max,
                        exchange_suits(module, comm, len * size, ALLTOALL_MOST, crowded_most));
    if (COLL_LLCM_BY_OTHERS == way) {
        return module->saved.coll_alltoall(sbuf, scount, stype, rbuf, rcount, rtype, comm,
                                           module->saved.coll_alltoall_module);
    }
    exchange_count();
    if (0 == len) {
        return OMPI_SUCCESS;
    }
    if (COLL_LLCM_BY_AREAS == way) {
        return alltoall_long(module, comm, sbuf, scount, stype, rbuf, rcount, rtype);
    }
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool in_gaps = in_place || !coll_llcm_is_contiguous((int) size * scount, stype);
    const bool out_gaps = !coll_llcm_is_contiguous((int) size * rcount, rtype);
    /* Not more than lines hold. */
    uint8_t in[in_gaps ? len * size : 1];
    uint8_t out[out_gaps ? len * size : 1];
    const uint8_t *from = in_gaps ? in : coll_llcm_start(sbuf, stype);
    uint8_t *to = out_gaps ? out : coll_llcm_start(rbuf, rtype);
    if (in_gaps) {
        coll_llcm_pack(in, in_place ? rbuf : sbuf, (int) size * (in_place ? rcount : scount),
                       in_place ? rtype : stype);
    }
    int rc = coll_llcm_wait(module, dn_tree_alltoall(module->tree, from, to, len));
    if (out_gaps && OMPI_SUCCESS == rc) {
        coll_llcm_unpack(rbuf, (int) size * rcount, rtype, out);
    }
    return rc;
}
