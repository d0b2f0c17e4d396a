/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_meet.c
 * Neighbors meet: each process finds who gives which block to whom, and agrees with each neighbor on the host whether letters go between the
 * two. Which block of a giver is for which place of a receiver, the replaced function knows: the processes send each other the numbers of
 * their blocks by it.
 *
 * A failure stays: neighbors may have gone on, and count on this process. They are told by its area (dn_letters_fail()).
 */
#include "dn_config.h"

#include "coll_llcm_neighbor.h"

#include "ompi/mca/topo/base/base.h"
#include "ompi/mca/topo/topo.h"

#define CARD_TAG   (MCA_COLL_BASE_TAG_NEIGHBOR_BASE - COLL_LLCM_NEIGHBOR_TAGS)
#define ANSWER_TAG (CARD_TAG - 1)

_Static_assert(DN_LETTER_AREA != DN_TREE_LONG_AREA, "areas for letters are told from others by their length");

/** What a process tells its neighbors. */
typedef struct card {
    dn_key_t key;   /**< of its area */
    uint64_t first; /**< dn_letters_first() of its area */
    uint32_t most;  /**< coll_llcm_neighbors_t::most */
    uint32_t good;  /**< not 0: it has an area */
} card_t;

/** All that is sent and received when neighbors meet. */
typedef struct mail {
    card_t own;
    card_t *card; /**< by partner */
    /** By partner: letters can go between the two, as far as this process knows. Then what the partners say. */
    uint8_t *answer;
    int *given, *got; /**< of each block: the giver, and its number there */
} mail_t;

static void mail_free(mail_t *mail)
{
    if (NULL != mail) {
        free(mail->card);
        free(mail->answer);
        free(mail->given);
        free(mail->got);
        free(mail);
    }
}

void coll_llcm_neighbor_tear_down(coll_llcm_module_t *module)
{
    coll_llcm_neighbors_t *neighbors = module->neighbors;

    if (NULL != neighbors) {
        if (NULL != neighbors->area) {
            coll_llcm_area_give_back(neighbors->area);
        }
        mail_free(neighbors->mail);
        free(neighbors->target);
        free(neighbors->source);
        free(neighbors->partner);
        free(neighbors->request);
        free(neighbors);
        module->neighbors = NULL;
    }
}

/** How long the blocks may be that a process gives in letters. Of so many blocks that the tags of messages do not tell them apart, none. */
static uint32_t most_of(int gives)
{
    const uint32_t blocks = 0 == gives ? 1 : (uint32_t) gives;
    const uint32_t each = (DN_LETTER_BYTES / blocks - COLL_LLCM_NEIGHBOR_ENTRY) / 8 * 8;

    if (COLL_LLCM_NEIGHBOR_NUMBERS < gives) {
        return 0;
    }
    return COLL_LLCM_NEIGHBOR_SHORT < each ? COLL_LLCM_NEIGHBOR_SHORT : each;
}

/** Get memory for all that is found. @return whether there was memory. */
static bool neighbors_make(coll_llcm_neighbors_t *neighbors)
{
    const size_t out = (size_t) neighbors->gives, in = (size_t) neighbors->gets;
    mail_t *mail = calloc(1, sizeof(*mail));

    neighbors->mail = mail;
    neighbors->most = most_of(neighbors->gives);
    neighbors->target = calloc(out + 1, sizeof(*neighbors->target));
    neighbors->source = calloc(in + 1, sizeof(*neighbors->source));
    neighbors->partner = calloc(out + in + 1, sizeof(*neighbors->partner));
    neighbors->request = calloc(2 * (out + in) + 1, sizeof(ompi_request_t *));
    if (NULL == mail || NULL == neighbors->target || NULL == neighbors->source || NULL == neighbors->partner
        || NULL == neighbors->request) {
        return false;
    }
    mail->card = calloc(out + in + 1, sizeof(*mail->card));
    mail->answer = calloc(2 * (out + in) + 1, sizeof(*mail->answer));
    mail->given = calloc(2 * out + 1, sizeof(*mail->given));
    mail->got = calloc(2 * in + 1, sizeof(*mail->got));
    return NULL != mail->card && NULL != mail->answer && NULL != mail->given && NULL != mail->got;
}

/** @name Who is whose neighbor */
/** @{ */
/** Find the receiver of each block. */
static void find_targets(struct ompi_communicator_t *comm, coll_llcm_neighbors_t *neighbors)
{
    const int rank = ompi_comm_rank(comm);
    coll_llcm_target_t *target = neighbors->target;
    const int *to;

    if (OMPI_COMM_IS_CART(comm)) {
        for (int i = 0; i < neighbors->gives; i += 2) {
            (void) mca_topo_base_cart_shift(comm, i / 2, 1, &target[i].rank, &target[i + 1].rank);
        }
        return;
    }
    if (OMPI_COMM_IS_GRAPH(comm)) {
        const mca_topo_base_comm_graph_2_2_0_t *graph = comm->c_topo->mtc.graph;
        to = graph->edges + (0 == rank ? 0 : graph->index[rank - 1]);
    } else {
        to = comm->c_topo->mtc.dist_graph->out;
    }
    for (int i = 0; i < neighbors->gives; i++) {
        target[i].rank = to[i];
    }
}

static int compare_sources(const void *a, const void *b)
{
    const coll_llcm_source_t *one = a, *other = b;

    return one->rank != other->rank ? one->rank - other->rank : one->number - other->number;
}

static int compare_partners(const void *a, const void *b)
{
    return ((const coll_llcm_partner_t *) a)->rank - ((const coll_llcm_partner_t *) b)->rank;
}

/** Learn who gives which block for which place. */
static int find_sources(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    enum { WORDS = 2 };
    coll_llcm_neighbors_t *neighbors = module->neighbors;
    const mail_t *mail = neighbors->mail;
    ompi_datatype_t *word = &ompi_mpi_int.dt;

    for (int i = 0; i < neighbors->gives; i++) {
        mail->given[WORDS * i] = ompi_comm_rank(comm);
        mail->given[WORDS * i + 1] = i;
    }
    for (int i = 0; i < neighbors->gets; i++) {
        mail->got[WORDS * i] = MPI_PROC_NULL;
    }
    const int rc = module->saved.coll_neighbor_alltoall(mail->given, WORDS, word, mail->got, WORDS, word,
                                                        comm, module->saved.coll_neighbor_alltoall_module);
    for (int i = 0; i < neighbors->gets && OMPI_SUCCESS == rc; i++) {
        if (0 <= mail->got[WORDS * i]) {
            neighbors->source[neighbors->sources++] = (coll_llcm_source_t){
                .rank = mail->got[WORDS * i], .number = mail->got[WORDS * i + 1], .place = i};
        }
    }
    qsort(neighbors->source, (size_t) neighbors->sources, sizeof(neighbors->source[0]), compare_sources);
    return rc;
}

/** Note that a process is a partner. Another time, if it gives or gets several blocks. */
static void add_partner(coll_llcm_neighbors_t *neighbors, struct ompi_communicator_t *comm, int rank,
                        bool gives)
{
    if (0 <= rank && ompi_comm_rank(comm) != rank) {
        neighbors->partner[neighbors->partners++] =
            (coll_llcm_partner_t){.rank = rank, .gives = gives, .gets = !gives};
    }
}

/** List all partners, each once. In between, the list has neighbors of one direction, too. */
static void find_partners(coll_llcm_neighbors_t *neighbors, struct ompi_communicator_t *comm)
{
    coll_llcm_partner_t *partner = neighbors->partner;
    int last = -1;
    int source = 0;
    int mutual = 0;

    for (int i = 0; i < neighbors->gives; i++) {
        add_partner(neighbors, comm, neighbors->target[i].rank, false);
    }
    for (int i = 0; i < neighbors->sources; i++) {
        add_partner(neighbors, comm, neighbors->source[i].rank, true);
    }
    qsort(partner, (size_t) neighbors->partners, sizeof(partner[0]), compare_partners);
    for (int i = 0; i < neighbors->partners; i++) {
        if (0 > last || partner[last].rank != partner[i].rank) {
            partner[++last] = partner[i];
        }
        partner[last].gives = partner[last].gives || partner[i].gives;
        partner[last].gets = partner[last].gets || partner[i].gets;
    }
    for (int i = 0; i <= last; i++) {
        if (!partner[i].gives || !partner[i].gets) {
            continue;
        }
        while (neighbors->source[source].rank < partner[i].rank) {
            source++;
        }
        partner[mutual] = partner[i];
        partner[mutual++].source = source;
    }
    neighbors->partners = mutual;
}

/** The partner of a rank; NULL: it is none. */
static const coll_llcm_partner_t *partner_of(const coll_llcm_neighbors_t *neighbors, int rank)
{
    const coll_llcm_partner_t wanted = {.rank = rank};

    return bsearch(&wanted, neighbors->partner, (size_t) neighbors->partners, sizeof(wanted),
                   compare_partners);
}
/** @} */

/** @name Cards */
/** @{ */
/** Send something to all partners, and receive as much from each. An error with one does not keep the others waiting.
 * @param[in] step  Bytes from what is for a partner to what is for the next one; 0: all get the same. */
static int swap_with_partners(coll_llcm_neighbors_t *neighbors, struct ompi_communicator_t *comm, int tag,
                              const void *out, size_t step, void *in, size_t len)
{
    const dn_ompi_count_t count = (dn_ompi_count_t) len;
    ompi_datatype_t *byte = &ompi_mpi_byte.dt;
    ompi_request_t **request = neighbors->request;
    int requests = 0;
    int error = OMPI_SUCCESS;

    for (int i = 0; i < 2 * neighbors->partners; i++) {
        const bool sends = neighbors->partners <= i;
        const size_t partner = (size_t) (sends ? i - neighbors->partners : i);
        const int rank = neighbors->partner[partner].rank;
        request[requests] = MPI_REQUEST_NULL;
        const int rc = sends ? MCA_PML_CALL(isend((const uint8_t *) out + partner * step, count, byte, rank,
                                                  tag, MCA_PML_BASE_SEND_STANDARD, comm, &request[requests]))
                             : MCA_PML_CALL(irecv((uint8_t *) in + partner * len, count, byte, rank, tag,
                                                  comm, &request[requests]));
        requests += OMPI_SUCCESS == rc;
        error = OMPI_SUCCESS == error ? rc : error;
    }
    if (OMPI_SUCCESS == error) {
        error = ompi_request_wait_all((size_t) requests, request, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < requests; i++) {
        if (MPI_REQUEST_NULL != request[i]) {
            error = OMPI_SUCCESS == error ? OMPI_ERROR : error;
            (void) ompi_request_free(&request[i]);
        }
    }
    return error;
}

/** Is a neighbor on the same host? */
static bool is_on_host(struct ompi_communicator_t *comm, int rank)
{
    return OPAL_PROC_ON_LOCAL_NODE(ompi_comm_peer_lookup(comm, rank)->super.proc_flags);
}

/** Make an own area with room for what is known of the partners. Without an area, all blocks are messages. */
static void make_area(coll_llcm_neighbors_t *neighbors, card_t *own)
{
    const size_t partners = (size_t) neighbors->partners;
    coll_llcm_area_t *area;

    own->most = neighbors->most;
    if (0 == partners || NULL == coll_llcm.port || NULL == (area = coll_llcm_area_reserve(DN_LETTER_AREA))) {
        return;
    }
    neighbors->area = area;
    own->first = dn_letters_first(dn_segment_base(area->segment), dn_first(coll_llcm.port));
    dn_segment_key(area->segment, &own->key);
    area->base = calloc(partners, sizeof(*area->base));
    area->peer = calloc(partners, sizeof(*area->peer));
    if (NULL != area->base && NULL != area->peer
        && DN_OK == dn_letters_create(dn_segment_base(area->segment), (uint32_t) partners, &area->letters)) {
        area->size = neighbors->partners;
        neighbors->letters = area->letters;
        own->good = 1;
    }
}

/** Map the area of a partner. @return whether it could be mapped. */
static bool map_area(const coll_llcm_neighbors_t *neighbors, struct ompi_communicator_t *comm, int i,
                     const card_t *card)
{
    coll_llcm_area_t *area = neighbors->area;
    const int rank = neighbors->partner[i].rank;

    if (NULL == neighbors->letters || !is_on_host(comm, rank) || 0 == card->good
        || DN_LETTER_AREA != card->key.len) {
        return false;
    }
    if (OPAL_SUCCESS != dn_ompi_connect(&ompi_comm_peer_lookup(comm, rank)->super, &area->peer[i])) {
        area->peer[i] = NULL;
        return false;
    }
    return DN_OK == dn_segment_map(area->peer[i], &card->key, &area->base[i]);
}

/** Letters go between this process and a partner. */
static void join_partner(coll_llcm_neighbors_t *neighbors, int i, const card_t *card)
{
    coll_llcm_partner_t *partner = &neighbors->partner[i];
    const dn_letter_neighbor_t neighbor = {.area = neighbors->area->base[i],
                                           .peer = neighbors->area->peer[i],
                                           .first = card->first,
                                           .gives = 1,
                                           .gets = 1};

    partner->near = true;
    partner->most = card->most;
    dn_letters_join(neighbors->letters, (uint32_t) i, &neighbor);
}

/** Swap cards with the partners, map their areas, and agree with each whether letters go between the two. */
static int swap_cards(coll_llcm_neighbors_t *neighbors, struct ompi_communicator_t *comm)
{
    mail_t *mail = neighbors->mail;
    uint8_t *answer = mail->answer;
    uint8_t *theirs = answer + neighbors->partners;

    dn_store_relaxed(&coll_llcm.oversubscribed, dn_ompi_shares_core());
    make_area(neighbors, &mail->own);
    int rc = swap_with_partners(neighbors, comm, CARD_TAG, &mail->own, 0, mail->card, sizeof(mail->card[0]));
    for (int i = 0; i < neighbors->partners && OMPI_SUCCESS == rc; i++) {
        answer[i] = map_area(neighbors, comm, i, &mail->card[i]);
    }
    /* Also after a failure: no partner waits for the answer in vain. */
    const int swapped =
        swap_with_partners(neighbors, comm, ANSWER_TAG, answer, sizeof(*answer), theirs, sizeof(*theirs));
    rc = OMPI_SUCCESS == rc ? swapped : rc;
    for (int i = 0; i < neighbors->partners && OMPI_SUCCESS == rc; i++) {
        if (0 != answer[i] && 0 != theirs[i]) {
            join_partner(neighbors, i, &mail->card[i]);
        }
    }
    return rc;
}

/** Note of each block whether letters go between its two processes. */
static void note_who_is_near(coll_llcm_neighbors_t *neighbors)
{
    bool any = false;

    for (int i = 0; i < neighbors->gives; i++) {
        const coll_llcm_partner_t *partner = partner_of(neighbors, neighbors->target[i].rank);
        neighbors->target[i].near = NULL != partner && partner->near;
        any = any || neighbors->target[i].near;
    }
    for (int i = 0; i < neighbors->sources; i++) {
        const coll_llcm_partner_t *partner = partner_of(neighbors, neighbors->source[i].rank);
        neighbors->source[i].most = NULL != partner && partner->near ? partner->most : 0;
    }
    if (!any && NULL != neighbors->area) {
        /* No partner has joined, so none reads the area. */
        coll_llcm_area_give_back(neighbors->area);
        neighbors->area = NULL;
        neighbors->letters = NULL;
    }
}
/** @} */

int coll_llcm_meet_now(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    coll_llcm_neighbors_t *neighbors =
        COLL_LLCM_FEW == module->neighbor_calls ? calloc(1, sizeof(*neighbors)) : NULL;

    if (NULL == neighbors) {
        module->neighbor_calls = COLL_LLCM_FEW + 1;
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    module->neighbors = neighbors;
    int rc = mca_topo_base_neighbor_count(comm, &neighbors->gets, &neighbors->gives);
    if (OMPI_SUCCESS == rc && !neighbors_make(neighbors)) {
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (OMPI_SUCCESS == rc) {
        find_targets(comm, neighbors);
        rc = find_sources(module, comm);
    }
    if (OMPI_SUCCESS == rc) {
        find_partners(neighbors, comm);
        rc = swap_cards(neighbors, comm);
    }
    neighbors->error = rc;
    if (OMPI_SUCCESS == rc) {
        note_who_is_near(neighbors);
        mail_free(neighbors->mail);
        neighbors->mail = NULL;
    } else if (NULL != neighbors->letters) {
        dn_letters_fail(neighbors->letters);
    }
    return rc;
}
