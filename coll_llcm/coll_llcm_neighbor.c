/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_neighbor.c
 * Neighborhood collectives: short blocks go in letters through areas (dn_letter.h), long blocks and those for other hosts are messages.
 *
 * In each call a process gives one letter to its neighbors on the host, and waits for their letters. A letter begins with an entry for each
 * block: where the block is in the letter, and how long it is. The entry of a longer block says that it comes as a message. Both ends start
 * these messages before they wait for letters, by the length of the block at their end. The two lengths differ only in a program
 * that breaks the rules of MPI. Then the letter tells the receiver what the giver does. As with messages, a shorter block comes as it is, and
 * a longer block is an error.
 *
 * All is agreed on between neighbors, nothing among all processes. Processes that are not neighbors may have other numbers of calls: Open MPI
 * itself returns from some calls in which a process has nothing to give and to get. Neighbors meet in call COLL_LLCM_FEW + 1
 * (coll_llcm_meet.c), since for a few calls that takes longer than letters save.
 */
#include "dn_config.h"

#include "coll_llcm_neighbor.h"

/** Stands in place of the length of a block that comes as a message. */
#define BY_MESSAGE UINT32_MAX

/** A block in a letter. */
typedef struct entry {
    uint32_t at;  /**< bytes of the letter before it */
    uint32_t len; /**< its bytes, or BY_MESSAGE */
} entry_t;

_Static_assert(COLL_LLCM_NEIGHBOR_ENTRY == sizeof(entry_t), "coll_llcm_meet.c leaves room for entries");

/** A call. */
typedef struct call {
    dn_letter_ends_t super;
    coll_llcm_neighbors_t *neighbors;
    const coll_llcm_side_t *in, *out;
    bool to_all; /**< one block goes to all receivers */
    int error;   /**< the first error of a block; the other blocks are given and got all the same */
    /** Letters, or the start of a message, have failed: messages that were started may never end. */
    bool broken;
    int requests; /**< elements of neighbors->request that are used */
} call_t;

/** Note an error of a block. */
static void note_error(call_t *call, int rc)
{
    call->error = OMPI_SUCCESS == call->error ? rc : call->error;
}

/** Is a block of so many bytes in a letter? @param[in] most  Of the giver, in an alltoall; 0: no block of an allgather is, either. */
static bool is_short(const call_t *call, uint32_t most, size_t bytes)
{
    return 0 != most && bytes <= (call->to_all ? COLL_LLCM_NEIGHBOR_SHORT : most);
}

/** @name Letters */
/** @{ */
/** Put block @p i into a letter, or say that it is a message. @param[in] next  Bytes of the letter that are used. @return the same, afterwards. */
static size_t give_block(const call_t *call, int i, uint8_t *area, size_t next)
{
    const size_t bytes = coll_llcm_side_bytes(call->in, i);
    entry_t *entry = (entry_t *) area + i;

    if (!is_short(call, call->neighbors->most, bytes)) {
        entry->len = BY_MESSAGE;
        return next;
    }
    *entry = (entry_t){.at = (uint32_t) next, .len = (uint32_t) bytes};
    coll_llcm_pack(area + next, coll_llcm_side_block(call->in, i), coll_llcm_side_count(call->in, i),
                   coll_llcm_side_type(call->in, i));
    return next + (bytes + 7) / 8 * 8;
}

static void give_letter(dn_letter_ends_t *super, void *area)
{
    const call_t *call = (const call_t *) super;
    const coll_llcm_neighbors_t *neighbors = call->neighbors;
    size_t next = (size_t) neighbors->gives * sizeof(entry_t);

    /* Where no block may be in a letter, there is no room for the entries either. */
    if (0 == neighbors->most) {
        return;
    }
    if (call->to_all) {
        (void) give_block(call, 0, area, sizeof(entry_t));
        return;
    }
    for (int i = 0; i < neighbors->gives; i++) {
        if (neighbors->target[i].near) {
            next = give_block(call, i, area, next);
        }
    }
}

/** Get a block out of a letter. */
static void get_block(call_t *call, int place, const uint8_t *area, entry_t entry)
{
    const size_t room = coll_llcm_side_bytes(call->out, place);

    if (DN_LETTER_BYTES < entry.at || DN_LETTER_BYTES - entry.at < entry.len) {
        note_error(call, OMPI_ERROR); /* not written by this component */
        return;
    }
    if (entry.len > room) {
        note_error(call, MPI_ERR_TRUNCATE);
    }
    coll_llcm_unpack_part(coll_llcm_side_block(call->out, place), coll_llcm_side_count(call->out, place),
                          coll_llcm_side_type(call->out, place), 0, area + entry.at,
                          entry.len < room ? entry.len : room);
}

static void get_letter(dn_letter_ends_t *super, uint32_t i, const void *area)
{
    call_t *call = (call_t *) super;
    const coll_llcm_neighbors_t *neighbors = call->neighbors;
    const int rank = neighbors->partner[i].rank;
    coll_llcm_source_t *source = neighbors->source + neighbors->partner[i].source;

    for (; source < neighbors->source + neighbors->sources && rank == source->rank; source++) {
        const entry_t *entry = (const entry_t *) area + (call->to_all ? 0 : source->number);
        source->comes = 0 == source->most || BY_MESSAGE == entry->len;
        if (!source->comes) {
            get_block(call, source->place, area, *entry);
        }
    }
}
/** @} */

/** @name Messages */
/** @{ */
/** The tag of a message. It tells the number of the block among those that the sender gives; numbers that have the same tag are sent and
 * received in their order. It also tells the round: a sender may be ahead of a receiver that will not take its message, by DN_LETTER_PLACES. */
static int message_tag(const call_t *call, int number)
{
    _Static_assert(COLL_LLCM_NEIGHBOR_ROUNDS > DN_LETTER_PLACES,
                   "rounds that may be under way have different tags");
    return MCA_COLL_BASE_TAG_NEIGHBOR_BASE - number % COLL_LLCM_NEIGHBOR_NUMBERS * COLL_LLCM_NEIGHBOR_ROUNDS
           - (int) (call->neighbors->round % COLL_LLCM_NEIGHBOR_ROUNDS);
}

/** Keep a request that was started. @param[in] rc  Of the start. */
static void keep_request(call_t *call, ompi_request_t *request, int rc)
{
    if (OMPI_SUCCESS == rc) {
        call->neighbors->request[call->requests++] = request;
    } else {
        note_error(call, rc);
        call->broken = true;
    }
}

/** Start to receive a block as a message. */
static void start_receive(call_t *call, struct ompi_communicator_t *comm, coll_llcm_source_t *source)
{
    ompi_request_t *request = MPI_REQUEST_NULL;
    const int rc = MCA_PML_CALL(irecv(coll_llcm_side_block(call->out, source->place),
                                      (dn_ompi_count_t) coll_llcm_side_count(call->out, source->place),
                                      coll_llcm_side_type(call->out, source->place), source->rank,
                                      message_tag(call, source->number), comm, &request));

    source->requested = OMPI_SUCCESS == rc ? call->requests : -1;
    keep_request(call, request, rc);
}

/** Copy a block that this process gives itself. */
static void keep_block(call_t *call, const coll_llcm_source_t *source)
{
    const int from = call->to_all ? 0 : source->number;
    const int to = source->place;

    note_error(call,
               ompi_datatype_sndrcv(coll_llcm_side_block(call->in, from),
                                    (dn_ompi_count_t) coll_llcm_side_count(call->in, from),
                                    coll_llcm_side_type(call->in, from), coll_llcm_side_block(call->out, to),
                                    (dn_ompi_count_t) coll_llcm_side_count(call->out, to),
                                    coll_llcm_side_type(call->out, to)));
}

/** Start the messages that this process expects, by the lengths of places. */
static void start_receives(call_t *call, struct ompi_communicator_t *comm)
{
    const coll_llcm_neighbors_t *neighbors = call->neighbors;

    for (int i = 0; i < neighbors->sources; i++) {
        coll_llcm_source_t *source = &neighbors->source[i];
        const size_t room = coll_llcm_side_bytes(call->out, source->place);
        const bool own = ompi_comm_rank(comm) == source->rank;
        source->requested = -1;
        /* Without a letter, it comes as a message. */
        source->comes = !own;
        if (!own && !is_short(call, source->most, room)) {
            start_receive(call, comm, source);
        }
    }
}

static void start_sends(call_t *call, struct ompi_communicator_t *comm)
{
    const coll_llcm_neighbors_t *neighbors = call->neighbors;

    for (int i = 0; i < neighbors->gives; i++) {
        const coll_llcm_target_t *target = &neighbors->target[i];
        const int block = call->to_all ? 0 : i;
        if (0 <= target->rank && ompi_comm_rank(comm) != target->rank
            && !is_short(call, target->near ? neighbors->most : 0, coll_llcm_side_bytes(call->in, block))) {
            ompi_request_t *request = MPI_REQUEST_NULL;
            const int rc = MCA_PML_CALL(isend(
                coll_llcm_side_block(call->in, block),
                (dn_ompi_count_t) coll_llcm_side_count(call->in, block), coll_llcm_side_type(call->in, block),
                target->rank, message_tag(call, i), MCA_PML_BASE_SEND_STANDARD, comm, &request));
            keep_request(call, request, rc);
        }
    }
}

/** Do as the letters say: receive messages that this process had not expected, and no others. */
static void heed_letters(call_t *call, struct ompi_communicator_t *comm)
{
    const coll_llcm_neighbors_t *neighbors = call->neighbors;

    for (int i = 0; i < neighbors->sources; i++) {
        coll_llcm_source_t *source = &neighbors->source[i];
        if (ompi_comm_rank(comm) == source->rank) {
            keep_block(call, source);
        } else if (source->comes && 0 > source->requested) {
            start_receive(call, comm, source);
        } else if (!source->comes && 0 <= source->requested) {
            (void) ompi_request_cancel(neighbors->request[source->requested]);
        }
    }
}

/** Wait for the messages. Where that might be for ever, requests that are under way are freed, as the functions do that this component has
 * replaced. */
static void finish_messages(call_t *call)
{
    ompi_request_t **request = call->neighbors->request;

    if (OPAL_LIKELY(!call->broken) && 0 < call->requests) {
        note_error(call, ompi_request_wait_all((size_t) call->requests, request, MPI_STATUSES_IGNORE));
    }
    /* Those that are left have failed. Open MPI 6.0 does not always say so. */
    for (int i = 0; i < call->requests; i++) {
        if (OPAL_UNLIKELY(MPI_REQUEST_NULL != request[i])) {
            note_error(call, MPI_SUCCESS != request[i]->req_status.MPI_ERROR
                                 ? request[i]->req_status.MPI_ERROR
                                 : OMPI_ERROR);
            (void) ompi_request_free(&request[i]);
        }
    }
}
/** @} */

/** Wait for the letters. */
static int wait_for_letters(const call_t *call, struct ompi_communicator_t *comm, dn_status_t status)
{
    const coll_llcm_neighbors_t *neighbors = call->neighbors;
    dn_letters_t *letters = neighbors->letters;
    dn_ompi_wait_t wait = {0};

    for (unsigned polls = 1; DN_INPROGRESS == status; polls++) {
        if (0 < call->requests && dn_load_relaxed(&coll_llcm.oversubscribed)) {
            wait.lively = 1; /* each turn looks for messages */
        } else if (0 < call->requests) {
            dn_ompi_progress_once();
        }
        if (OPAL_UNLIKELY(coll_llcm_area_is_idle(polls))
            && coll_llcm_idle(&wait, true, polls, dn_letters_steps(letters))) {
            dn_letters_slept(letters);
        }
        status = dn_letters_test(letters);
    }
    if (OPAL_LIKELY(DN_OK == status)) {
        return OMPI_SUCCESS;
    }
    for (int i = 0; i < neighbors->partners; i++) {
        coll_llcm_say_if_lost(neighbors->area->peer[i], comm, neighbors->partner[i].rank);
    }
    return OMPI_ERR_UNREACH;
}

/** Do a call. */
static int neighbor_exchange(coll_llcm_module_t *module, struct ompi_communicator_t *comm, bool to_all,
                             const coll_llcm_side_t *in, const coll_llcm_side_t *out)
{
    call_t call = {.super = {give_letter, get_letter}, .in = in, .out = out, .to_all = to_all};
    dn_status_t status = DN_OK;
    int rc = coll_llcm_meet(module, comm);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    dn_count(&coll_llcm.exchanges, 1);
    call.neighbors = module->neighbors;
    start_receives(&call, comm);
    /* The letter before the messages: then it is there when a message is. */
    if (NULL != call.neighbors->letters) {
        status = dn_letters_exchange(call.neighbors->letters, &call.super);
    }
    start_sends(&call, comm);
    rc = wait_for_letters(&call, comm, status);
    if (OPAL_LIKELY(OMPI_SUCCESS == rc)) {
        heed_letters(&call, comm);
    } else {
        note_error(&call, rc);
        call.broken = true;
    }
    finish_messages(&call);
    call.neighbors->round++;
    return call.error;
}

/** Is this call, or was an earlier call, the one in which neighbors meet? A PML with short tags could take messages of this component for those
 * of others. */
static bool neighbors_are_due(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    if (OPAL_LIKELY(NULL != module->neighbors)) {
        return true;
    }
    if (NULL == comm->c_topo || NULL == module->saved.coll_neighbor_alltoall
        || INT32_MAX / 2 > mca_pml.pml_max_tag) {
        return false;
    }
    if (COLL_LLCM_FEW <= module->neighbor_calls) {
        return true;
    }
    module->neighbor_calls++;
    return false;
}

int coll_llcm_neighbor_allgather(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype,
                                 void *rbuf, dn_ompi_count_t rcount, struct ompi_datatype_t *rtype,
                                 struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const coll_llcm_side_t in = {.buf = (void *) (uintptr_t) sbuf, .type = stype, .count = (size_t) scount};
    const coll_llcm_side_t out = {.buf = rbuf, .type = rtype, .count = (size_t) rcount};

    return neighbors_are_due(module, comm)
               ? neighbor_exchange(module, comm, true, &in, &out)
               : module->saved.coll_neighbor_allgather(sbuf, scount, stype, rbuf, rcount, rtype, comm,
                                                       module->saved.coll_neighbor_allgather_module);
}

int coll_llcm_neighbor_allgatherv(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype,
                                  void *rbuf, dn_ompi_counts_t counts, dn_ompi_starts_t starts,
                                  struct ompi_datatype_t *rtype, struct ompi_communicator_t *comm,
                                  mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const coll_llcm_side_t in = {.buf = (void *) (uintptr_t) sbuf, .type = stype, .count = (size_t) scount};
    const coll_llcm_side_t out = {.buf = rbuf, .type = rtype, .counts = &counts, .starts = &starts};

    return neighbors_are_due(module, comm)
               ? neighbor_exchange(module, comm, true, &in, &out)
               : module->saved.coll_neighbor_allgatherv(sbuf, scount, stype, rbuf, counts, starts, rtype,
                                                        comm, module->saved.coll_neighbor_allgatherv_module);
}

int coll_llcm_neighbor_alltoall(const void *sbuf, dn_ompi_count_t scount, struct ompi_datatype_t *stype,
                                void *rbuf, dn_ompi_count_t rcount, struct ompi_datatype_t *rtype,
                                struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const coll_llcm_side_t in = {.buf = (void *) (uintptr_t) sbuf, .type = stype, .count = (size_t) scount};
    const coll_llcm_side_t out = {.buf = rbuf, .type = rtype, .count = (size_t) rcount};

    return neighbors_are_due(module, comm)
               ? neighbor_exchange(module, comm, false, &in, &out)
               : module->saved.coll_neighbor_alltoall(sbuf, scount, stype, rbuf, rcount, rtype, comm,
                                                      module->saved.coll_neighbor_alltoall_module);
}

int coll_llcm_neighbor_alltoallv(const void *sbuf, dn_ompi_counts_t scounts, dn_ompi_starts_t sstarts,
                                 struct ompi_datatype_t *stype, void *rbuf, dn_ompi_counts_t rcounts,
                                 dn_ompi_starts_t rstarts, struct ompi_datatype_t *rtype,
                                 struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const coll_llcm_side_t in = {
        .buf = (void *) (uintptr_t) sbuf, .type = stype, .counts = &scounts, .starts = &sstarts};
    const coll_llcm_side_t out = {.buf = rbuf, .type = rtype, .counts = &rcounts, .starts = &rstarts};

    return neighbors_are_due(module, comm)
               ? neighbor_exchange(module, comm, false, &in, &out)
               : module->saved.coll_neighbor_alltoallv(sbuf, scounts, sstarts, stype, rbuf, rcounts, rstarts,
                                                       rtype, comm,
                                                       module->saved.coll_neighbor_alltoallv_module);
}

int coll_llcm_neighbor_alltoallw(const void *sbuf, dn_ompi_counts_t scounts, dn_ompi_places_t splaces,
                                 struct ompi_datatype_t *const *stypes, void *rbuf, dn_ompi_counts_t rcounts,
                                 dn_ompi_places_t rplaces, struct ompi_datatype_t *const *rtypes,
                                 struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const coll_llcm_side_t in = {
        .buf = (void *) (uintptr_t) sbuf, .types = stypes, .counts = &scounts, .places = &splaces};
    const coll_llcm_side_t out = {.buf = rbuf, .types = rtypes, .counts = &rcounts, .places = &rplaces};

    return neighbors_are_due(module, comm)
               ? neighbor_exchange(module, comm, false, &in, &out)
               : module->saved.coll_neighbor_alltoallw(sbuf, scounts, splaces, stypes, rbuf, rcounts, rplaces,
                                                       rtypes, comm,
                                                       module->saved.coll_neighbor_alltoallw_module);
}
