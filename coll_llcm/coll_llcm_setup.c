/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_setup.c
 * A communicator's tree: the processes agree on it in the first collective, and give it back when the communicator is freed.
 */
#include "dn_config.h"

#include "coll_llcm.h"

#include "opal/util/output.h"

/** Trees take at most this share of the LLCM. The rest is left to other users. */
#define LLCM_SHARE(bytes) ((bytes) / 4 * 3)

/** Looks for a line in one call, where each process has a core. */
#define SPIN 64

/** What each process tells the others when it has made its part. */
typedef struct answer {
    dn_tree_card_t card;
    uint32_t good;   /**< not 0: the process has made its part */
    uint32_t shares; /**< not 0: the process shares its core, as far as it knows */
} answer_t;

bool coll_llcm_all_agree(coll_llcm_module_t *module, struct ompi_communicator_t *comm, bool good)
{
    /* The least of a number and of its negative are those of one number where all processes have the same. */
    const int radix = (int) dn_ompi_params.coll.radix, depth = (int) dn_ompi_params.coll.depth;
    int mine[] = {good, radix, -radix, depth, -depth};
    int all[5] = {0};

    return OMPI_SUCCESS
               == module->saved.coll_allreduce(mine, all, 5, &ompi_mpi_int.dt, &ompi_mpi_op_min.op, comm,
                                               module->saved.coll_allreduce_module)
           && 0 != all[0] && 0 == all[1] + all[2] && 0 == all[3] + all[4];
}

static int setup_gather(coll_llcm_module_t *module, struct ompi_communicator_t *comm, const void *own,
                        void *all, size_t len)
{
    ompi_datatype_t *byte = &ompi_mpi_byte.dt;

    return module->saved.coll_allgather(own, (int) len, byte, all, (int) len, byte, comm,
                                        module->saved.coll_allgather_module);
}

/** Find where this process runs. Its host is named by the lowest rank there. */
static void find_place(struct ompi_communicator_t *comm, dn_tree_place_t *place)
{
    dn_tree_place_here(place);
    for (int rank = 0; rank < ompi_comm_size(comm); rank++) {
        if (OPAL_PROC_ON_LOCAL_NODE(ompi_comm_peer_lookup(comm, rank)->super.proc_flags)) {
            place->key[0] = (uint32_t) rank;
            return;
        }
    }
}

/** Bytes of LLCM that trees may take. If they took all of it, libdimmnet would refuse more, and say so to the user. */
static size_t whole_share(void)
{
    const unsigned *bytes = NULL;
    const int index = mca_base_var_find("opal", "common", "dimmnet", "llcm_bytes");

    return 0 <= index && OPAL_SUCCESS == mca_base_var_get_value(index, &bytes, NULL, NULL)
               ? LLCM_SHARE(*bytes)
               : 0;
}

/** Are so many bytes of this share left? What trees took in earlier sessions of this process counts, too, as long as the port is the same.
 * Two threads that ask at once may both find room for one: then the share grows a little. */
static bool share_has(size_t bytes)
{
    const size_t whole = whole_share();
    const size_t taken = dn_llcm_taken(coll_llcm.port);

    return bytes <= whole && taken <= whole - bytes;
}

bool coll_llcm_has_plenty(void)
{
    coll_llcm_free_left(false);
    return dn_llcm_taken(coll_llcm.port) <= whole_share() / 2;
}

/** Make this process's part of the tree in this share. @return false: it could not be made. */
static bool share_create(const dn_tree_config_t *config, dn_tree_card_t *card, dn_tree_t **tree_p)
{
    size_t bytes;

    coll_llcm_free_left(false);
    return DN_OK == dn_tree_llcm_bytes(config, &bytes) && share_has(bytes)
           && DN_OK == dn_tree_create(coll_llcm.port, config, card, tree_p);
}

/** Connect to the processes to which the tree has links. @return whether all are reached. */
static bool connect_peers(coll_llcm_module_t *module, struct ompi_communicator_t *comm, const dn_tree_t *tree)
{
    int64_t rank;

    module->peer = calloc((size_t) ompi_comm_size(comm), sizeof(*module->peer));
    if (NULL == module->peer) {
        return false;
    }
    module->size = ompi_comm_size(comm);
    for (size_t i = 0; 0 <= (rank = dn_tree_linked(tree, i)); i++) {
        ompi_proc_t *proc = ompi_comm_peer_lookup(comm, (int) rank);
        if (NULL == module->peer[rank]
            && OPAL_SUCCESS != dn_ompi_connect(&proc->super, &module->peer[rank])) {
            module->peer[rank] = NULL;
            return false;
        }
    }
    return true;
}

/** Make this process's part of the tree. @return false: it could not be made. */
static bool make_part(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                      const dn_tree_place_t *place, dn_tree_card_t *card, dn_tree_t **tree_p)
{
    const dn_tree_config_t config = {.ranks = (uint32_t) ompi_comm_size(comm),
                                     .rank = (uint32_t) ompi_comm_rank(comm),
                                     .radix = dn_ompi_params.coll.radix,
                                     .depth = 1u << dn_ompi_params.coll.depth,
                                     .place = place};

    return NULL != coll_llcm.port && share_create(&config, card, tree_p)
           && connect_peers(module, comm, *tree_p);
}

/** What the set-up needs of all ranks. */
typedef struct gathered {
    answer_t *answer;
    dn_tree_card_t *card;
    dn_tree_place_t *place; /**< NULL: all ranks are at the same place */
    /** This rank's part. The module gets it when all ranks have their parts. The functions that gather may call collectives of this
     * communicator before that, and these must not use the tree. */
    dn_tree_t *tree;
} gathered_t;

static void gathered_free(gathered_t *all)
{
    free(all->answer);
    free(all->card);
    free(all->place);
}

/** Allocate room for what is gathered. @return whether all ranks have it. */
static bool gathered_alloc(coll_llcm_module_t *module, struct ompi_communicator_t *comm, bool places,
                           gathered_t *all)
{
    const size_t size = (size_t) ompi_comm_size(comm);

    all->answer = calloc(size, sizeof(*all->answer));
    all->card = calloc(size, sizeof(*all->card));
    all->place = places ? calloc(size, sizeof(*all->place)) : NULL;
    return coll_llcm_all_agree(module, comm,
                               NULL != all->answer && NULL != all->card && (!places || NULL != all->place));
}

/** Make the own part, and exchange answers with the other processes. @return whether all processes have made their parts. */
static bool setup_agree(coll_llcm_module_t *module, struct ompi_communicator_t *comm, gathered_t *all)
{
    const size_t size = (size_t) ompi_comm_size(comm);
    answer_t own = {.good = 0};
    dn_tree_place_t here;

    if (NULL != all->place) {
        find_place(comm, &here);
        if (OMPI_SUCCESS != setup_gather(module, comm, &here, all->place, sizeof(here))) {
            return false;
        }
    }
    own.good = make_part(module, comm, all->place, &own.card, &all->tree);
    /* After make_part(): the peers with which this process may share cores are known now. */
    own.shares = dn_ompi_shares_core();
    if (OMPI_SUCCESS != setup_gather(module, comm, &own, all->answer, sizeof(own))) {
        return false;
    }
    bool good = true;
    for (size_t i = 0; i < size; i++) {
        good = good && 0 != all->answer[i].good;
        module->crowded = module->crowded || 0 != all->answer[i].shares;
        all->card[i] = all->answer[i].card;
    }
    if (good) {
        dn_tree_connect(all->tree, all->card, module->peer);
        const bool oversubscribed = dn_ompi_shares_core();

        dn_store_relaxed(&coll_llcm.oversubscribed, oversubscribed);
        dn_tree_set_spin(all->tree, oversubscribed ? 0 : SPIN);
    }
    return good;
}

bool coll_llcm_set_up(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    const bool places = (unsigned) ompi_comm_size(comm) > dn_ompi_params.coll.radix
                        || ompi_group_have_remote_peers(comm->c_local_group);
    gathered_t all = {.tree = NULL};

    module->state = COLL_LLCM_BUSY;
    module->comm = comm;
    const bool good = gathered_alloc(module, comm, places, &all) && setup_agree(module, comm, &all);
    gathered_free(&all);
    module->tree = all.tree;
    if (!good) {
        coll_llcm_tear_down(module);
        module->state = COLL_LLCM_REFUSED;
        opal_output_verbose(10, ompi_coll_base_framework.framework_output, "coll:llcm: no tree for %s",
                            comm->c_name);
        return false;
    }
    opal_output_verbose(10, ompi_coll_base_framework.framework_output, "coll:llcm: a tree for %s",
                        comm->c_name);
    module->mapped = 0 != dn_tree_is_mapped(module->tree);
    module->state = COLL_LLCM_READY;
    return true;
}

/** Take all trees that were left off the list: the caller has them to itself. */
static coll_llcm_left_t *left_take(void)
{
    opal_mutex_lock(&coll_llcm.lock);
    coll_llcm_left_t *first = coll_llcm.left;
    coll_llcm.left = NULL;
    opal_mutex_unlock(&coll_llcm.lock);
    return first;
}

/** Put trees into the list; NULL: none. */
static void left_put(coll_llcm_left_t *first)
{
    coll_llcm_left_t **end = &first;

    while (NULL != *end) {
        end = &(*end)->next;
    }
    opal_mutex_lock(&coll_llcm.lock);
    *end = coll_llcm.left;
    coll_llcm.left = first;
    opal_mutex_unlock(&coll_llcm.lock);
}

/** dn_ompi_progress_fn_t. While one thread has the trees, others leave them out. */
static int setup_warn(void)
{
    coll_llcm_left_t *first = left_take();

    for (const coll_llcm_left_t *left = first; NULL != left; left = left->next) {
        if (NULL != left->peer) {
            dn_tree_warn(left->tree);
        }
    }
    left_put(first);
    return 0;
}

static void disconnect_all(dn_peer_t **peer, int size)
{
    for (int rank = 0; rank < size; rank++) {
        if (NULL != peer[rank]) {
            dn_disconnect(peer[rank]);
        }
    }
    free(peer);
}

/** Keep a tree until no peer writes to it any more, or the port closes. @param[in] peer  As coll_llcm_left_t::peer. @return false: no
 * memory. */
static bool setup_leave(dn_tree_t *tree, dn_peer_t **peer, int size)
{
    coll_llcm_left_t *left = malloc(sizeof(*left));

    if (NULL == left) {
        return false;
    }
    left->tree = tree;
    left->peer = peer;
    left->size = size;
    left->next = NULL;
    left_put(left);
    opal_mutex_lock(&coll_llcm.lock);
    const bool adds = NULL != peer && !coll_llcm.warns;
    coll_llcm.warns = coll_llcm.warns || adds;
    opal_mutex_unlock(&coll_llcm.lock);
    if (adds) {
        dn_ompi_progress_add(setup_warn, DN_OMPI_CARRIES_NONE);
    }
    return true;
}

int coll_llcm_failed(coll_llcm_module_t *module)
{
    /* Without memory for it, the next operation that fails tries again. */
    module->given_up = module->given_up || setup_leave(module->tree, module->peer, module->size);
    return OMPI_ERR_UNREACH;
}

void coll_llcm_tear_down(coll_llcm_module_t *module)
{
    if (!module->given_up) {
        if (NULL != module->tree && DN_OK != dn_tree_free(module->tree)
            && !setup_leave(module->tree, NULL, 0)) {
            dn_tree_abandon(module->tree);
        }
        disconnect_all(module->peer, module->size);
    }
    module->tree = NULL;
    module->peer = NULL;
    module->size = 0;
}

void coll_llcm_free_left(bool all)
{
    if (all && coll_llcm.warns) {
        dn_ompi_progress_remove(setup_warn);
        coll_llcm.warns = false;
    }
    coll_llcm_left_t *first = left_take();
    for (coll_llcm_left_t **at = &first; NULL != *at;) {
        coll_llcm_left_t *left = *at;
        const bool gone = DN_OK == dn_tree_free(left->tree);

        if (!gone && !all) {
            at = &left->next;
            continue;
        }
        if (!gone) {
            dn_tree_abandon(left->tree);
        }
        disconnect_all(left->peer, left->size);
        *at = left->next;
        free(left);
    }
    left_put(first);
}
