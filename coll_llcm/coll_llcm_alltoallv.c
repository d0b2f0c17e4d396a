/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_alltoallv.c
 * Alltoallv and alltoallw where processes share cores: through areas.
 *
 * Only the two processes of a pair know how much data goes between them, so no process can choose the way alone. Each
 * process first gives LETTER bytes, which all processes read. They say where the block of each receiver begins among the giver's bytes.
 * Behind that come the blocks themselves, if they fit. So all processes know the largest number of bytes that any process gives. If some
 * blocks did not fit, all blocks go through areas in a second exchange that is long enough. If that exchange would be too long, all
 * processes leave the work to the function that the module has replaced.
 */
#include "dn_config.h"

#include "coll_llcm.h"

/** Bytes that each process gives first (perf/dn_coll, 4 ranks on 2 cores: a second exchange takes as long as 8 KiB more in the first). */
#define LETTER 16384u
/** The most bytes that a process gives through areas, for each other process (perf/dn_coll, 4 ranks on 2 cores: 64 KiB in 76 us, by messages
 * 105 us; 128 KiB in 149 us, by messages 128 us). */
#define MOST 65536u
/** The most processes. Their starts have to fit into the first piece of a letter. */
#define RANKS_MOST 512
/** Stands in place of the end of the last block, if a process would give more bytes than areas are for. */
#define TOO_MANY UINT32_MAX

_Static_assert((RANKS_MOST + 1) * sizeof(uint32_t) <= DN_TREE_LONG_PIECE && DN_TREE_LONG_PIECE <= LETTER,
               "the starts are in the first piece of a letter");

/** What a process gives and gets. */
typedef struct letters {
    dn_tree_blocks_t super;
    const coll_llcm_side_t *in, *out;
    uint32_t ranks, rank;
    size_t head; /**< bytes before the blocks: the starts in a letter; 0 in the second exchange */
    bool gives;  /**< this process gives its blocks behind the head */
    /** ranks + 1 elements: where the block for a rank begins among the given bytes; the block for itself is empty */
    uint32_t *start;
    uint32_t *end;                  /**< by rank: bytes that this rank gives, or TOO_MANY */
    uint32_t *from, *to;            /**< by rank: the block for this process among the bytes of that rank */
    uint32_t most;                  /**< the most bytes that a rank gives, or TOO_MANY */
    bool excess;                    /**< a block was longer than its place */
    uint32_t giving;                /**< the rank whose block is given now */
    bool opened;                    /**< elements is in use */
    coll_llcm_converted_t elements; /**< of the block that is given now, if they do not lie together */
} letters_t;

static bool letters_fit(const letters_t *letters, uint32_t bytes)
{
    return LETTER - letters->head >= bytes;
}

/** Find where the own blocks begin. */
static void letters_begin(letters_t *letters)
{
    size_t at = 0;

    for (uint32_t i = 0; i < letters->ranks; i++) {
        letters->start[i] = (uint32_t) at;
        at += i == letters->rank ? 0 : coll_llcm_side_bytes(letters->in, (int) i);
        at = MOST * (size_t) (letters->ranks - 1) < at ? TOO_MANY : at;
    }
    letters->start[letters->ranks] = (uint32_t) at;
    letters->most = (uint32_t) at;
    letters->gives = letters_fit(letters, letters->most);
}

/** The block that is given now has ended, or the exchange has failed. */
static void letters_close(letters_t *letters)
{
    if (letters->opened) {
        coll_llcm_converted_close(&letters->elements);
        letters->opened = false;
    }
}

/** Copy a part of the block that is given now, from byte @p at on. Parts come in order. */
static void give_part(letters_t *letters, uint8_t *area, size_t at, size_t len)
{
    const coll_llcm_side_t *in = letters->in;
    const uint32_t rank = letters->giving;
    const size_t count = coll_llcm_side_count(in, (int) rank);
    const ompi_datatype_t *type = coll_llcm_side_type(in, (int) rank);

    if (coll_llcm_is_contiguous(count, type)) {
        dn_copy_in(area, (uint8_t *) coll_llcm_start(coll_llcm_side_block(in, (int) rank), type) + at, len);
        return;
    }
    if (0 == at) {
        coll_llcm_converted_open(&letters->elements, coll_llcm_side_block(in, (int) rank), count, type, true);
        letters->opened = true;
    }
    coll_llcm_converted_move(&letters->elements, area, len);
    if (at + len == letters->start[rank + 1] - letters->start[rank]) {
        letters_close(letters);
    }
}

/** Copy bytes @p at .. at + len - 1 of the own blocks. */
static void give_blocks(letters_t *letters, uint8_t *area, size_t at, size_t len)
{
    const uint32_t *start = letters->start;
    size_t part;

    for (; 0 < len && letters->giving < letters->ranks; at += part, area += part, len -= part) {
        const uint32_t end = start[letters->giving + 1];
        part = end - at < len ? end - at : len;
        if (0 < part) {
            give_part(letters, area, at - start[letters->giving], part);
        }
        letters->giving += at + part == end;
    }
}

static void letters_give(dn_tree_blocks_t *super, void *area, size_t at, size_t len)
{
    letters_t *letters = (letters_t *) super;
    /* The head is at the start of the first piece. */
    const size_t head = 0 == at ? letters->head : 0;

    if (0 < head) {
        memcpy(area, letters->start, head);
    }
    if (letters->gives) {
        give_blocks(letters, (uint8_t *) area + head, at + head - letters->head, len - head);
    }
}

/** Learn from the head of a letter where the block for this process is, and how many bytes the rank gives. */
static void read_head(letters_t *letters, uint32_t rank, const uint32_t *start)
{
    const uint32_t end = start[letters->ranks];

    letters->end[rank] = end;
    letters->from[rank] = start[letters->rank];
    letters->to[rank] = start[letters->rank + 1];
    letters->most = letters->most < end ? end : letters->most;
    letters->excess =
        letters->excess
        || letters->to[rank] - letters->from[rank] > coll_llcm_side_bytes(letters->out, (int) rank);
}

static void letters_get(dn_tree_blocks_t *super, uint32_t rank, const void *area, size_t at, size_t len)
{
    letters_t *letters = (letters_t *) super;

    if (0 == at && 0 < letters->head) {
        read_head(letters, rank, area);
    }
    if (0 < letters->head && !letters_fit(letters, letters->end[rank])) {
        return;
    }
    const size_t begin = letters->head + letters->from[rank];
    const size_t end = letters->head + letters->to[rank];
    const size_t from = at < begin ? begin : at;
    const size_t to = end < at + len ? end : at + len;
    const size_t place = begin + coll_llcm_side_bytes(letters->out, (int) rank);
    const size_t until = place < to ? place : to;

    if (from < until) {
        coll_llcm_unpack_part(coll_llcm_side_block(letters->out, (int) rank),
                              coll_llcm_side_count(letters->out, (int) rank),
                              coll_llcm_side_type(letters->out, (int) rank), from - begin,
                              (const uint8_t *) area + (from - at), until - from);
    }
}

/** Copy the block that this process gives itself. */
static int keep_own(const letters_t *letters)
{
    const uint32_t rank = letters->rank;

    return ompi_datatype_sndrcv(coll_llcm_side_block(letters->in, (int) rank),
                                (dn_ompi_count_t) coll_llcm_side_count(letters->in, (int) rank),
                                coll_llcm_side_type(letters->in, (int) rank),
                                coll_llcm_side_block(letters->out, (int) rank),
                                (dn_ompi_count_t) coll_llcm_side_count(letters->out, (int) rank),
                                coll_llcm_side_type(letters->out, (int) rank));
}

/** Give and get so many bytes. */
static int letters_exchange(letters_t *letters, coll_llcm_module_t *module, size_t len)
{
    const int rc = coll_llcm_long_exchange(module, len, &letters->super);

    letters_close(letters);
    return rc;
}

/** Exchange all blocks through areas. @param[out] too_many  Nothing was done: a process gives more bytes than areas are for. All processes
 * get the same answer. */
static int exchange_letters(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                            const coll_llcm_side_t *in, const coll_llcm_side_t *out, bool *too_many)
{
    uint32_t starts[4 * RANKS_MOST + 1];
    const uint32_t ranks = (uint32_t) ompi_comm_size(comm);
    letters_t letters = {.super = {letters_give, letters_get},
                         .in = in,
                         .out = out,
                         .ranks = ranks,
                         .rank = (uint32_t) ompi_comm_rank(comm),
                         .head = (ranks + 1) * sizeof(starts[0]),
                         .start = starts,
                         .from = starts + ranks + 1,
                         .to = starts + 2 * ranks + 1,
                         .end = starts + 3 * ranks + 1};

    letters_begin(&letters);
    int rc = letters_exchange(&letters, module, LETTER);
    *too_many = TOO_MANY == letters.most;
    if (OMPI_SUCCESS != rc || *too_many) {
        return rc;
    }
    if (!letters_fit(&letters, letters.most)) {
        letters.head = 0;
        letters.gives = true;
        letters.giving = 0;
        rc = letters_exchange(&letters, module, letters.most);
    }
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    dn_count(&coll_llcm.exchanges, 1);
    rc = keep_own(&letters);
    return OMPI_SUCCESS == rc && letters.excess ? MPI_ERR_TRUNCATE : rc;
}

/** Do areas suit this alltoall? All processes get the same answer: either all of them call it in place, or none. */
static bool letters_suit(coll_llcm_module_t *module, struct ompi_communicator_t *comm, const void *sbuf)
{
    return MPI_IN_PLACE != sbuf && RANKS_MOST >= ompi_comm_size(comm) && coll_llcm_is_crowded(module, comm)
           && coll_llcm_are_many(module) && coll_llcm_long_ready(module, comm);
}

int coll_llcm_alltoallv(const void *sbuf, dn_ompi_counts_t scounts, dn_ompi_starts_t sstarts,
                        struct ompi_datatype_t *stype, void *rbuf, dn_ompi_counts_t rcounts,
                        dn_ompi_starts_t rstarts, struct ompi_datatype_t *rtype,
                        struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const coll_llcm_side_t in = {
        .buf = (void *) (uintptr_t) sbuf, .type = stype, .counts = &scounts, .starts = &sstarts};
    const coll_llcm_side_t out = {.buf = rbuf, .type = rtype, .counts = &rcounts, .starts = &rstarts};
    bool others = !letters_suit(module, comm, sbuf);
    int rc = others ? OMPI_SUCCESS : exchange_letters(module, comm, &in, &out, &others);

    return others && OMPI_SUCCESS == rc
               ? module->saved.coll_alltoallv(sbuf, scounts, sstarts, stype, rbuf, rcounts, rstarts, rtype,
                                              comm, module->saved.coll_alltoallv_module)
               : rc;
}

int coll_llcm_alltoallw(const void *sbuf, dn_ompi_counts_t scounts, dn_ompi_starts_t sstarts,
                        struct ompi_datatype_t *const *stypes, void *rbuf, dn_ompi_counts_t rcounts,
                        dn_ompi_starts_t rstarts, struct ompi_datatype_t *const *rtypes,
                        struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const coll_llcm_side_t in = {
        .buf = (void *) (uintptr_t) sbuf, .types = stypes, .counts = &scounts, .starts = &sstarts};
    const coll_llcm_side_t out = {.buf = rbuf, .types = rtypes, .counts = &rcounts, .starts = &rstarts};
    bool others = !letters_suit(module, comm, sbuf);
    int rc = others ? OMPI_SUCCESS : exchange_letters(module, comm, &in, &out, &others);

    return others && OMPI_SUCCESS == rc
               ? module->saved.coll_alltoallw(sbuf, scounts, sstarts, stypes, rbuf, rcounts, rstarts, rtypes,
                                              comm, module->saved.coll_alltoallw_module)
               : rc;
}
