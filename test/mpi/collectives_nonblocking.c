/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_nonblocking.c
 * Nonblocking collectives that overlap: on one communicator, on several at once, and with blocking ones. Persistent ones.
 */
#include "dn_config.h"

#include "collectives.h"
#include "complete.h"
#include "counter.h"
#include "persistent.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OPERATIONS = 64, MOST_OF_COMM = 6, IN_LINES = 100 };

typedef enum kind { ALLREDUCE, REDUCE, BCAST, KINDS } kind_t;

/** An operation that is under way. */
typedef struct operation {
    MPI_Comm comm;
    kind_t kind;
    int rank; /**< of this one */
    int root;
    int apart;   /**< words from one to the next of a result */
    uint64_t id; /**< of its operands */
    int count;   /**< 0: a barrier */
    uint64_t *in;
    uint64_t *out;
} operation_t;

typedef struct set {
    operation_t operation[MOST_OPERATIONS];
    MPI_Request request[MOST_OPERATIONS];
    int count;
} set_t;

static size_t bytes_of_result(const operation_t *operation)
{
    return (size_t) (operation->count * operation->apart) * sizeof(uint64_t);
}

/** Make the buffers of an operation of which all else is known, and fill in what this rank gives. */
static void fill(operation_t *operation)
{
    operation->in = malloc((size_t) operation->count * sizeof(uint64_t));
    operation->out = verify_guard_alloc(bytes_of_result(operation), 8);
    verify_that(NULL != operation->in, "no memory for a reduction");
    for (int i = 0; i < operation->count; i++) {
        operation->in[i] = verify_key(operation->id, (uint64_t) operation->rank, (uint64_t) i, 0);
    }
    for (int i = 0; i < operation->count * operation->apart; i++) {
        operation->out[i] = operation->in[i / operation->apart];
    }
}

/** @param in  of a reduction. */
static void launch(const operation_t *operation, const void *in, MPI_Request *request)
{
    MPI_Comm comm = operation->comm;

    if (0 == operation->count) {
        MPI_Ibarrier(comm, request);
    } else if (ALLREDUCE == operation->kind) {
        MPI_Iallreduce(in, operation->out, operation->count, MPI_UINT64_T, MPI_SUM, comm, request);
    } else if (REDUCE == operation->kind) {
        MPI_Ireduce(in, operation->out, operation->count, MPI_UINT64_T, MPI_SUM, operation->root, comm,
                    request);
    } else {
        MPI_Datatype type;
        MPI_Type_create_resized(MPI_UINT64_T, 0, operation->apart * (MPI_Aint) sizeof(uint64_t), &type);
        MPI_Type_commit(&type);
        MPI_Ibcast(operation->out, operation->count, type, operation->root, comm, request);
        MPI_Type_free(&type);
    }
}

/** Start one of up to @p most unsigned integers, so that the sum is exact whatever the order. */
static void begin(set_t *set, MPI_Comm comm, verify_rng_t *rng, int most)
{
    operation_t *operation = &set->operation[set->count];
    MPI_Request *request = &set->request[set->count++];
    const bool in_place = 0 == verify_below(rng, 3);
    int rank, ranks;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    *operation = (operation_t){.comm = comm, .id = verify_random(rng), .apart = 1};
    operation->rank = rank;
    operation->kind = (kind_t) verify_below(rng, KINDS);
    operation->root = (int) verify_below(rng, (uint64_t) ranks);
    if (0 == verify_below(rng, 4)) {
        launch(operation, NULL, request);
        return;
    }
    operation->count = 1 + (int) verify_size(rng, (size_t) most);
    /* In types of their own. */
    operation->apart = BCAST == operation->kind && 0 == (operation->id + (uint64_t) rank) % 3 ? 2 : 1;
    fill(operation);
    launch(operation,
           in_place && (ALLREDUCE == operation->kind || rank == operation->root) ? MPI_IN_PLACE
                                                                                 : operation->in,
           request);
}

/** Word @p i of the result of a kind, of operands of @p id. */
static uint64_t result_of(kind_t kind, uint64_t id, int root, int ranks, int i)
{
    uint64_t sum = 0;

    for (int rank = 0; rank < ranks; rank++) {
        sum += BCAST != kind || rank == root ? verify_key(id, (uint64_t) rank, (uint64_t) i, 0) : 0;
    }
    return sum;
}

static void check(operation_t *operation)
{
    const bool has_result = REDUCE != operation->kind || operation->rank == operation->root;
    int ranks;

    MPI_Comm_size(operation->comm, &ranks);
    for (int i = 0; i < operation->count && has_result; i++) {
        verify_that(result_of(operation->kind, operation->id, operation->root, ranks, i)
                        == operation->out[i * operation->apart],
                    "a nonblocking result is wrong");
        verify_that(1 == operation->apart || operation->in[i] == operation->out[2 * i + 1],
                    "a nonblocking broadcast wrote into a gap");
    }
    if (0 != operation->count) {
        free(operation->in);
        verify_guard_free(operation->out, bytes_of_result(operation), 8, "a nonblocking collective");
    }
    collectives_count();
}

/** complete_fn_t */
static void check_one(void *arg, int index)
{
    set_t *set = arg;

    check(&set->operation[index]);
}

/** Complete all, and check each. */
static void complete(set_t *set, verify_rng_t *rng)
{
    complete_all(set->request, set->count, rng, check_one, set);
}

/** A blocking collective, or none. */
static void block(MPI_Comm comm, verify_rng_t *rng)
{
    switch (verify_below(rng, 4)) {
    case 0:
        MPI_Barrier(comm);
        break;
    case 1:
        collectives_bcast(comm, rng, 60);
        break;
    case 2:
        collectives_reduce_some(comm, rng, 12);
        break;
    default:
        break;
    }
}

void collectives_nonblocking(MPI_Comm comm, verify_rng_t *rng)
{
    set_t set = {.count = 0};
    verify_rng_t here;
    int rank;

    MPI_Comm_rank(comm, &rank);
    here.state = verify_key(verify_random(rng), (uint64_t) rank, 0, 0);
    for (uint64_t n = 1 + verify_below(rng, MOST_OF_COMM); 0 < n; n--) {
        begin(&set, comm, rng, 0 == verify_below(rng, 8) ? 4 * IN_LINES : IN_LINES / 2);
    }
    block(comm, rng);
    begin(&set, comm, rng, IN_LINES);
    complete(&set, &here);
}

enum { PERSISTENT = KINDS + 1, STARTS = 5 };

/** Persistent requests of one communicator: one of each kind, and a barrier. */
typedef struct persistent {
    MPI_Request request[PERSISTENT];
    uint64_t in[IN_LINES + 1];
    uint64_t out[KINDS][IN_LINES + 1];
    int apart; /**< words from one to the next of a broadcast */
    int count, rank, ranks, root;
} persistent_t;

/** @param of_bcast  type of a broadcast. */
static void persistent_make(persistent_t *all, MPI_Comm comm, MPI_Datatype type, MPI_Datatype of_bcast,
                            MPI_Op op)
{
    MPI_Comm_rank(comm, &all->rank);
    MPI_Comm_size(comm, &all->ranks);
    INIT(Allreduce, all->in, all->out[ALLREDUCE], all->count, type, op, comm, MPI_INFO_NULL,
         &all->request[ALLREDUCE]);
    INIT(Reduce, all->in, all->out[REDUCE], all->count, type, op, all->root, comm, MPI_INFO_NULL,
         &all->request[REDUCE]);
    INIT(Bcast, all->out[BCAST], all->count, of_bcast, all->root, comm, MPI_INFO_NULL, &all->request[BCAST]);
    INIT(Barrier, comm, MPI_INFO_NULL, &all->request[KINDS]);
}

static void persistent_fill(persistent_t *all, uint64_t id)
{
    for (int i = 0; i < all->count; i++) {
        all->in[i] = verify_key(id, (uint64_t) all->rank, (uint64_t) i, 0);
        all->out[BCAST][i * all->apart] = all->in[i];
    }
}

static void persistent_check(const persistent_t *all, uint64_t id)
{
    for (kind_t kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < all->count && (REDUCE != kind || all->rank == all->root); i++) {
            const int at = BCAST == kind ? i * all->apart : i;
            verify_that(result_of(kind, id, all->root, all->ranks, i) == all->out[kind][at],
                        "a persistent collective gave a wrong result");
        }
    }
}

static void persistent_free(persistent_t *all)
{
    for (int i = 0; i < PERSISTENT; i++) {
        MPI_Request_free(&all->request[i]);
    }
}

void collectives_persistent(MPI_Comm comm, verify_rng_t *rng)
{
    persistent_t all = {.count = 1 + (int) verify_size(rng, IN_LINES), .apart = 1};
    const uint64_t id = verify_random(rng);
    int ranks;

    MPI_Comm_size(comm, &ranks);
    all.root = (int) verify_below(rng, (uint64_t) ranks);
    persistent_make(&all, comm, MPI_UINT64_T, MPI_UINT64_T, MPI_SUM);
    verify_rng_t here = {.state = verify_key(id, (uint64_t) all.rank, 0, 0)};
    for (uint64_t start = 0; start < STARTS; start++) {
        int order[PERSISTENT];
        /* Requests are started in any order, another one in each rank, and before or after another collective. */
        const int blocks_at = (int) verify_below(&here, PERSISTENT + 1);
        verify_shuffle(&here, order, PERSISTENT);
        persistent_fill(&all, id + start);
        for (int i = 0; i <= PERSISTENT; i++) {
            if (i == blocks_at) {
                block(comm, rng);
            }
            if (i < PERSISTENT) {
                MPI_Start(&all.request[order[i]]);
            }
        }
        MPI_Waitall(PERSISTENT, all.request, MPI_STATUSES_IGNORE);
        persistent_check(&all, id + start);
    }
    persistent_free(&all);
    collectives_count();
}

/** Some operations and starts, each of which adds 1 to a counter.
 * @param before  what the counter was. @param what  they are called. */
static void check_taken(const counter_t *counter, unsigned long long before, const char *what)
{
    if (before + STARTS != counter_read(counter)) {
        verify_fail("%s: %llu of %d went through lines", what, counter_read(counter) - before, STARTS);
    }
    collectives_count();
}

/** Nonblocking ones of a kind; KINDS: barriers. */
static void take_nonblocking(MPI_Comm comm, int kind, const counter_t *counter)
{
    static const char *const name[] = {"MPI_Iallreduce", "MPI_Ireduce", "MPI_Ibcast", "MPI_Ibarrier"};
    const unsigned long long before = counter_read(counter);

    for (uint64_t start = 0; start < STARTS; start++) {
        operation_t operation = {.comm = comm, .id = start, .apart = 1};
        MPI_Request request;
        int ranks;
        MPI_Comm_rank(comm, &operation.rank);
        MPI_Comm_size(comm, &ranks);
        operation.root = (int) start % ranks;
        if (KINDS != kind) {
            operation.kind = (kind_t) kind;
            operation.count = 3;
            fill(&operation);
        }
        launch(&operation, operation.in, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(&operation);
    }
    check_taken(counter, before, name[kind]);
}

/** Starts of a persistent request. */
static void take_persistent(MPI_Request *request, int kind, const counter_t *counter)
{
    static const char *const name[] = {"a persistent MPI_Allreduce", "a persistent MPI_Reduce",
                                       "a persistent MPI_Bcast", "a persistent MPI_Barrier"};
    const unsigned long long before = counter_read(counter);

    for (int start = 0; start < STARTS; start++) {
        MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    check_taken(counter, before, name[kind]);
}

void collectives_taken(MPI_Comm comm)
{
    persistent_t all = {.count = 3, .apart = 1};
    counter_t counter;

    counter_open(&counter, "coll_llcm_nonblocking");
    persistent_make(&all, comm, MPI_UINT64_T, MPI_UINT64_T, MPI_SUM);
    persistent_fill(&all, 1);
    for (int kind = 0; kind < PERSISTENT; kind++) {
        take_nonblocking(comm, kind, &counter);
        take_persistent(&all.request[kind], kind, &counter);
    }
    persistent_check(&all, 1);
    persistent_free(&all);
    counter_close(&counter);
}

static void add_words(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; i++) {
        ((uint64_t *) inout)[i] += ((uint64_t *) in)[i];
    }
}

/** A word whose next one is so many words away. */
static MPI_Datatype words_apart(int words)
{
    MPI_Datatype type;

    MPI_Type_create_resized(MPI_UINT64_T, 0, words * (MPI_Aint) sizeof(uint64_t), &type);
    MPI_Type_commit(&type);
    return type;
}

void collectives_persistent_outlive(MPI_Comm comm)
{
    enum { TURNS = 3, APART = 2 };
    static persistent_t all[TURNS];

    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Datatype type = words_apart(1);
        MPI_Datatype of_bcast = words_apart(APART);
        MPI_Comm made;
        MPI_Op op;
        MPI_Comm_dup(comm, &made);
        MPI_Barrier(made);
        MPI_Op_create(add_words, 1, &op);
        all[turn].count = 3;
        all[turn].apart = APART;
        persistent_make(&all[turn], made, type, of_bcast, op);
        MPI_Op_free(&op);
        MPI_Type_free(&type);
        MPI_Type_free(&of_bcast);
        MPI_Comm_free(&made);
        /* Where that was. */
        MPI_Datatype later[] = {words_apart(5), words_apart(6), words_apart(7)};
        for (uint64_t start = 0; start < STARTS; start++) {
            persistent_fill(&all[turn], start);
            MPI_Startall(PERSISTENT, all[turn].request);
            MPI_Waitall(PERSISTENT, all[turn].request, MPI_STATUSES_IGNORE);
            persistent_check(&all[turn], start);
        }
        for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
            MPI_Type_free(&later[i]);
        }
        /* The last ones are left to MPI_Finalize(). */
        if (turn + 1 < TURNS) {
            persistent_free(&all[turn]);
        }
        collectives_count();
    }
}

/** Fail unless a request is not started again. */
static void check_refused(MPI_Request *request)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(MPI_Start(request), &class);
    verify_that(MPI_ERR_REQUEST == class, "a persistent collective that is under way was started again");
}

void collectives_start_once(MPI_Comm comm)
{
    persistent_t all = {.count = 3, .apart = 1};

    persistent_make(&all, comm, MPI_UINT64_T, MPI_UINT64_T, MPI_SUM);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (uint64_t start = 0; start < STARTS; start++) {
        persistent_fill(&all, start);
        if (0 == all.rank) {
            MPI_Startall(PERSISTENT, all.request);
            /* These wait for the other ranks, which start nothing before the broadcast. */
            check_refused(&all.request[ALLREDUCE]);
            check_refused(&all.request[KINDS]);
        }
        MPI_Bcast(&start, 1, MPI_UINT64_T, 0, comm);
        if (0 != all.rank) {
            MPI_Startall(PERSISTENT, all.request);
        }
        MPI_Waitall(PERSISTENT, all.request, MPI_STATUSES_IGNORE);
        persistent_check(&all, start);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    persistent_free(&all);
    collectives_count();
}

void collectives_idup(MPI_Comm comm, verify_rng_t *rng)
{
    MPI_Request request;
    MPI_Comm made;

    MPI_Comm_idup(comm, &made, &request);
    /* Open MPI's own reductions come between these, not at the same places in all ranks. */
    for (int i = 0; i < 3; i++) {
        block(comm, rng);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
    collectives_count();
}

void collectives_nonblocking_on_all(MPI_Comm *comm, verify_rng_t *rng, int comms, verify_rng_t *here)
{
    set_t set = {.count = 0};
    int order[MOST_OPERATIONS];

    /* Communicators need not come in the same order in all ranks, only the operations of each. */
    verify_shuffle(here, order, comms);
    for (int i = 0; i < comms; i++) {
        const int which = order[i];
        if (MPI_COMM_NULL != comm[which]) {
            for (uint64_t n = verify_below(&rng[which], MOST_OF_COMM); 0 < n; n--) {
                begin(&set, comm[which], &rng[which], IN_LINES);
            }
        }
    }
    complete(&set, here);
}

void collectives_nonblocking_outlive(MPI_Comm comm, verify_rng_t *rng)
{
    set_t set = {.count = 0};
    MPI_Comm made;

    MPI_Comm_dup(comm, &made);
    MPI_Barrier(made);
    for (uint64_t n = 1 + verify_below(rng, MOST_OF_COMM); 0 < n; n--) {
        begin(&set, made, rng, IN_LINES);
    }
    MPI_Comm_free(&made);
    for (int i = 0; i < set.count; i++) {
        set.operation[i].comm = comm; /* of the same size */
    }
    complete(&set, rng);
}
