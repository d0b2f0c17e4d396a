/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_open.c
 * Opening and closing: the port, memory that is mapped twice, the desk, and the same address in all processes. */
#include "dn_config.h"

#include "dn_dsm_host.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

_Static_assert(DN_DSM_RANKS_MAX <= DN_TREE_RADIX_MAX, "all ranks fit into one group");
/** The channel of the port by which lost processes are heard of. No messages go there. */
#define DN_DSM_CHAN (DN_CHAN_MAX - 1)
/** With so many ranks at most the tree is made of groups of DN_DSM_RADIX. A tree of groups gathers no more than some hundreds of bytes in all,
 * and with more ranks each of them could tell less than DN_DSM_TELL_MIN (dn_tree_allgather_max()). So more ranks are one group. */
#define DN_DSM_GROUPED 28u
#define DN_DSM_RADIX   8u
/** How many addresses are tried for the front. A thread sanitizer uses the others itself: memory that is wanted there is mapped at 0. */
#ifdef __SANITIZE_THREAD__
#    define DN_DSM_PLACES 4u
#else
#    define DN_DSM_PLACES 16u
#endif
/** While the program waits in the library now and then, the server looks whether the program has done so within this time. Each look takes
 * the core from the program for some 4 us where they share one. */
#define DN_DSM_LOOK_NS 200000
/** When so many looks have found that the program has, the server sleeps for this time before each look. */
#define DN_DSM_LOOKS   8u
#define DN_DSM_REST_NS 800000

static pthread_mutex_t dn_dsm_opening = PTHREAD_MUTEX_INITIALIZER;
static bool dn_dsm_taken; /**< a memory is open, or being opened. Under `dn_dsm_opening` */

/** dn_dsm_access_fn_t of dn_dsm_was. */
static const char *dn_dsm_open_was_accessed(dn_dsm_range_t *range, uint64_t off, int kind)
{
    (void) range;
    (void) off;
    (void) kind;
    return "was accessed after dn_dsm_close()";
}

/** The front of the last memory, after its close. Its pages permit nothing. It is in the list of ranges unless its length is 0. */
static dn_dsm_range_t dn_dsm_was = {.what = "shared memory", .access = dn_dsm_open_was_accessed};

/** @name The port */
/** @{ */
/** dn_lost_fn_t: note the rank of the peer, unless this process is closing or another rank is noted. */
static void dn_dsm_lost(dn_peer_t *peer, void *arg)
{
    dn_dsm_t *dsm = arg;

    if (dn_dsm_is_closing(dsm) || 0 != dn_dsm_gone(dsm)) {
        return;
    }
    for (uint32_t r = 0; r < dsm->ranks; r++) {
        if (peer == dsm->peer[r]) {
            dn_log_error(
                "shared memory: rank %u has ended, or is not reached any more: its pages and locks are gone",
                (unsigned) r);
            dn_store_release_u32(&dsm->lost, r + 1); /* L0 */
        }
    }
}

/** Find the bytes of LLCM for locks, rings and the tree. */
static dn_status_t dn_dsm_open_llcm(const dn_dsm_t *dsm, const dn_tree_config_t *tree, size_t *bytes_p)
{
    size_t bytes = 0;

    if (1 < dsm->ranks && DN_OK != dn_tree_llcm_bytes(tree, &bytes)) {
        return DN_ERR_NOMEM;
    }
    *bytes_p = bytes + dsm->locks * sizeof(dn_dsm_lines_t) + DN_DSM_RANKS_MAX * sizeof(uint64_t)
               + (UINT64_C(64) << 10);
    return DN_OK;
}

static dn_status_t dn_dsm_open_port(dn_dsm_t *dsm, const dn_dsm_config_t *config, const dn_group_key_t *key,
                                    const dn_tree_config_t *tree)
{
    const dn_job_t job = {.key = *key, .pid = dsm->rank, .size = dsm->ranks, .threads = 1};
    uint8_t address[DN_ADDRESS_MAX];
    size_t len, llcm;
    dn_config_t settings;
    char text[1024], number[32], *rest = text;

    dn_config_init(&settings);
    if (DN_OK != dn_dsm_open_llcm(dsm, tree, &llcm)) {
        return DN_ERR_NOMEM;
    }
    snprintf(number, sizeof(number), "%zu", (llcm + 63) / 64 * 64);
    if (llcm > settings.llcm_bytes && DN_OK != dn_config_set(&settings, "llcm_bytes", number)) {
        return DN_ERR_PARAM;
    }
    if (sizeof(text)
        <= (size_t) snprintf(text, sizeof(text), "%s", NULL == config->settings ? "" : config->settings)) {
        dn_log_error("shared memory: the settings have more than %zu characters", sizeof(text) - 1);
        return DN_ERR_PARAM;
    }
    for (char *name; NULL != (name = strtok_r(rest, " ", &rest));) {
        char *value = strchr(name, '=');
        if (NULL == value) {
            dn_log_error("shared memory: \"%s\" is no setting: write NAME=VALUE", name);
            return DN_ERR_PARAM;
        }
        *value++ = '\0';
        const dn_status_t status = dn_config_set(&settings, name, value);
        if (DN_OK != status) {
            return status;
        }
    }
    const bool faults = NULL != settings.fault && '\0' != settings.fault[0];
    dn_status_t status = dn_open(config->devices, &job, &settings, &dsm->port);
    if (DN_OK != status) {
        return status;
    }
    dsm->waits = (uint64_t) dn_first(dsm->port) << 32;
    len = sizeof(address);
    status = dn_lost_set(dsm->port, DN_DSM_CHAN, dn_dsm_lost, dsm);
    status = DN_OK != status ? status : dn_address(dsm->port, address, &len);
    status = DN_OK != status ? status : dn_dsm_meet_all(dsm, "address", address, len);
    for (uint32_t r = 0; r < dsm->ranks && DN_OK == status; r++) {
        dn_peer_attr_t attr;
        len = sizeof(address);
        status = dsm->meet->hear(dsm, r, "address", address, &len);
        if (DN_OK == status && DN_OK != (status = dn_connect(dsm->port, address, len, &dsm->peer[r]))) {
            dn_log_error("shared memory: rank %u is not reached by %s (%s)", (unsigned) r, config->devices,
                         dn_strerror(status));
        }
        if (DN_OK == status) {
            dn_peer_attr(dsm->peer[r], &attr);
            /* A peer whose device maps memory needs no progress of this process, unless faults are injected. */
            dsm->serves = dsm->serves || 0 == (attr.caps & DN_CAP_MAP) || faults;
        }
    }
    return status;
}

/** The server stands back while threads of the program wait in the library, or do so now and then: they make progress themselves, and the
 * server would only be in their way. @return dn_dsm_t::waits, when no thread has waited for some time. */
static uint64_t dn_dsm_stand_back(const dn_dsm_t *dsm)
{
    const struct timespec look = {.tv_nsec = DN_DSM_LOOK_NS}, rest = {.tv_nsec = DN_DSM_REST_NS};
    uint64_t seen, waits;
    unsigned looks = 0;

    do {
        if (DN_DSM_LOOKS < ++looks) {
            nanosleep(&rest, NULL);
        }
        seen = dn_load_relaxed(&dsm->waits);
        nanosleep(&look, NULL);
        waits = dn_load_relaxed(&dsm->waits);
    } while ((0 != (uint32_t) waits || seen != waits) && 0 == dn_load_relaxed_u32(&dsm->stop));
    return waits;
}

/** The server: make progress while the program computes, for processes that need the progress of this process. It sleeps until something
 * comes for it. Meanwhile a thread of the device, where there is one, does what needs no progress. */
static void *dn_dsm_serve(void *arg)
{
    dn_dsm_t *dsm = arg;
    dn_wait_t wait = {0};
    uint64_t steps = 0, seen = 0;

    /* Without this, the kernel adds 50 us to each sleep. */
    (void) prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    while (0 == dn_load_relaxed_u32(&dsm->stop)) {
        if (seen != dn_load_relaxed(&dsm->waits)) {
            seen = dn_dsm_stand_back(dsm);
            dn_wait_restart(&wait);
        }
        if (0 < dn_progress(dsm->port)) {
            steps++;
        } else {
            (void) dn_wait(dsm->port, &wait, steps, DN_WAIT_SERVES);
        }
    }
    return NULL;
}

static dn_status_t dn_dsm_open_server(dn_dsm_t *dsm)
{
    sigset_t all, before;

    if (!dsm->serves) {
        return DN_OK;
    }
    /* The server takes no signals: threads of the program do. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&dsm->server, NULL, dn_dsm_serve, dsm);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (0 != error) {
        dsm->serves = false;
        dn_log_error("shared memory: no thread can be started (%s)", strerror(error));
        return DN_ERR_NOMEM;
    }
    return DN_OK;
}
/** @} */

uint8_t *dn_dsm_place_address(uint32_t i)
{
    /* These are far from where systems put programs, heaps and libraries. The first four exist also with 39 bits of addresses. */
    return (uint8_t *) (uintptr_t) (4 > i ? (UINT64_C(0x10) + 4 * i) << 32 : (UINT64_C(0x10) + 4 * i) << 40);
}

/** Reserve addresses. @return whether they are free. */
static bool dn_dsm_place_take(const dn_dsm_t *dsm, uint32_t i)
{
    uint8_t *want = dn_dsm_place_address(i);
    void *got = mmap(want, dn_dsm_bytes(dsm), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (MAP_FAILED != got && got != want) {
        munmap(got, dn_dsm_bytes(dsm));
    }
    return got == want;
}

/** Find which addresses are free in this process. @return dn_dsm_card_t::places. */
static uint32_t dn_dsm_places(const dn_dsm_t *dsm)
{
    uint32_t places = 0;

    for (uint32_t i = 0; i < DN_DSM_PLACES; i++) {
        if (dn_dsm_place_take(dsm, i)) {
            munmap(dn_dsm_place_address(i), dn_dsm_bytes(dsm));
            places |= UINT32_C(1) << i;
        }
    }
    return places;
}

/** Get memory for the cache. Peers reach it, and it can be mapped twice. The memory of a port that has only a network is private: then the
 * cache is in a file of this process. */
static dn_status_t dn_dsm_open_cache(dn_dsm_t *dsm, dn_dsm_offer_t *offer)
{
    const uint64_t bytes = dn_dsm_bytes(dsm);
    dn_status_t status = dn_segment_alloc(dsm->port, bytes, &dsm->cache);

    if (DN_OK == status) {
        dsm->raw = dn_segment_base(dsm->cache);
        void *second = mremap(dsm->raw, 0, dsm->page_bytes, MREMAP_MAYMOVE);
        if (MAP_FAILED != second) {
            munmap(second, dsm->page_bytes);
            return DN_OK;
        }
        dn_segment_free(dsm->cache);
        dsm->cache = NULL;
    }
    offer->cache = dn_dsm_host_file(offer, "cache", bytes);
    dsm->raw = dsm->cache_file = dn_dsm_host_map(offer->cache, bytes);
    if (NULL == dsm->raw) {
        dn_log_error("shared memory: there are no %llu bytes of memory in a file (%s)",
                     (unsigned long long) bytes, strerror(errno));
        return DN_ERR_NOMEM;
    }
    return dn_segment_register(dsm->port, dsm->raw, bytes, &dsm->cache);
}

static dn_status_t dn_dsm_open_desk(dn_dsm_t *dsm, dn_dsm_card_t *card)
{
    const uint64_t words = (dsm->locks / dsm->ranks + 1) * sizeof(dn_dsm_word_t);
    const uint64_t rings = dsm->ranks * sizeof(dn_dsm_ring_t);
    void *memory;
    dn_status_t status = dn_segment_alloc(
        dsm->port, words + rings + 2 * dn_dsm_board_runs(dsm) * sizeof(dn_dsm_run_t), &dsm->desk);

    if (DN_OK != status) {
        dn_log_error("shared memory: there is no memory for %u locks and %u pages", (unsigned) dsm->locks,
                     (unsigned) dsm->pages);
        return status;
    }
    uint8_t *base = dn_segment_base(dsm->desk);
    dsm->rings = (dn_dsm_ring_t *) (base + words);
    dsm->board = (dn_dsm_run_t *) (base + words + rings);
    card->rings = words;
    card->board = words + rings;
    status = dn_llcm_alloc(dsm->port, dsm->locks * sizeof(dn_dsm_lines_t), &card->lines, &memory);
    if (DN_OK == status) {
        dsm->lines = memory;
        status = dn_llcm_alloc(dsm->port, DN_DSM_RANKS_MAX * sizeof(uint64_t), &card->counts, &memory);
        dsm->counts = memory;
    }
    return status;
}

/** Allocate what only this process uses. */
static dn_status_t dn_dsm_open_lists(dn_dsm_t *dsm)
{
    dn_dsm_list_t *const list[] = {&dsm->dirty, &dsm->loose, &dsm->wrote, &dsm->flush, &dsm->stale};
    bool all = true;

    dsm->page = calloc(dsm->pages, sizeof(*dsm->page));
    dsm->held = calloc(dsm->pages / 64 + 1, sizeof(*dsm->held));
    dsm->same = calloc(dsm->pages / 64 + 1, sizeof(*dsm->same));
    dsm->lock = calloc(dsm->locks, sizeof(*dsm->lock));
    dsm->out = malloc(DN_DSM_LOG * sizeof(*dsm->out) + sizeof(uint64_t));
    dsm->in = malloc(dn_dsm_board_runs(dsm) * sizeof(*dsm->in));
    dsm->blocks = malloc((DN_DSM_BLOCKS + dsm->page_bytes / 2) * sizeof(*dsm->blocks));
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        list[i]->page = malloc(dsm->pages * sizeof(*list[i]->page));
        all = all && NULL != list[i]->page;
    }
    dsm->twin = dsm->beside = mmap(NULL, dn_dsm_bytes(dsm), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (MAP_FAILED == dsm->beside) {
        dsm->beside = NULL;
    } else {
        /* A child process does not use it. */
        (void) madvise(dsm->beside, dn_dsm_bytes(dsm), MADV_DONTFORK);
    }
    if (!all || NULL == dsm->page || NULL == dsm->held || NULL == dsm->same || NULL == dsm->lock
        || NULL == dsm->out || NULL == dsm->in || NULL == dsm->blocks || NULL == dsm->beside
        || DN_OK != dn_dsm_notes_open(&dsm->notes, dsm->pages, dsm->ranks)) {
        dn_log_error("shared memory: there is no memory for what is known of %u pages",
                     (unsigned) dsm->pages);
        return DN_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < dsm->locks; i++) {
        pthread_mutex_init(&dsm->lock[i].mutex, NULL);
    }
    return DN_OK;
}

/** Have all processes the same settings? @param[out] places_p  Bits: addresses that are free in all of them. */
static dn_status_t dn_dsm_open_agree(const dn_dsm_t *dsm, uint32_t *places_p)
{
    const dn_dsm_card_t *own = &dsm->card[dsm->rank];

    *places_p = own->places;
    for (uint32_t r = 0; r < dsm->ranks; r++) {
        const dn_dsm_card_t *card = &dsm->card[r];
        if (card->bytes != own->bytes || card->locks != own->locks || card->protocol != own->protocol
            || card->page_bytes != own->page_bytes) {
            dn_log_error("shared memory: rank %u has %llu bytes in pages of %u, %u locks and protocol %u, "
                         "and rank %u %llu, %u, %u and "
                         "%u: open all alike",
                         (unsigned) dsm->rank, (unsigned long long) own->bytes, (unsigned) own->page_bytes,
                         (unsigned) own->locks, (unsigned) own->protocol, (unsigned) r,
                         (unsigned long long) card->bytes, (unsigned) card->page_bytes,
                         (unsigned) card->locks, (unsigned) card->protocol);
            return DN_ERR_PARAM;
        }
        if (card->moves != own->moves) {
            dn_log_error("shared memory: homes move in rank %u, and stay in rank %u: open all alike",
                         (unsigned) (own->moves ? dsm->rank : r), (unsigned) (own->moves ? r : dsm->rank));
            return DN_ERR_PARAM;
        }
        *places_p &= card->places;
    }
    if (0 == *places_p) {
        dn_log_error("shared memory: no range of %llu bytes is free in all processes: open with less, or "
                     "without a sanitizer",
                     (unsigned long long) own->bytes);
        return DN_ERR_UNSUPPORTED;
    }
    return DN_OK;
}

/** Map the front, at the same address in all processes, and begin to detect accesses. */
static dn_status_t dn_dsm_open_front(dn_dsm_t *dsm, uint32_t places)
{
    const uint64_t bytes = dn_dsm_bytes(dsm);
    uint32_t place = 0;

    while (0 == (places & (UINT32_C(1) << place))) {
        place++;
    }
    /* The address was free when the others were told. This process may have mapped something there since. */
    uint8_t *front = dn_dsm_place_address(place);
    const bool taken = dn_dsm_place_take(dsm, place);
    if (!taken || front != mremap(dsm->raw, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, front)) {
        dn_log_error("shared memory: %llu bytes cannot be mapped at %p (%s)", (unsigned long long) bytes,
                     (void *) front, strerror(errno));
        if (taken) {
            munmap(front, bytes);
        }
        return DN_ERR_UNSUPPORTED;
    }
    dsm->front = front;
    /* A child process does not use it. */
    (void) madvise(front, bytes, MADV_DONTFORK);
    if (dsm->shares) {
        /* No access is detected but those outside of what was allocated: dn_dsm_alloc_take(). */
        dsm->watch = dn_dsm_watch_by(dsm->watch.what, &dn_dsm_detect_segv);
    }
    const int error = dn_dsm_watch_open(&dsm->watch, front, bytes);
    if (0 != error) {
        dn_log_error("shared memory: accesses cannot be detected by %s (%s)", dsm->watch.way->name,
                     strerror(error));
        return DN_ERR_UNSUPPORTED;
    }
    return DN_OK;
}
/** @} */

/** @name Opening and closing */
/** @{ */
/** Exchange the cards of all processes, and set up what follows from them. */
static dn_status_t dn_dsm_open_cards(dn_dsm_t *dsm, const dn_tree_config_t *tree)
{
    dn_tree_card_t cards[DN_DSM_RANKS_MAX];
    dn_dsm_card_t *card = &dsm->card[dsm->rank];
    uint32_t places;
    dn_status_t status;

    *card = (dn_dsm_card_t){.bytes = dn_dsm_bytes(dsm),
                            .locks = dsm->locks,
                            .page_bytes = dsm->page_bytes,
                            .protocol = (uint32_t) dsm->protocol,
                            .moves = dsm->moves};
    dn_dsm_host_offer(dsm, &card->offer);
    status = dn_dsm_open_cache(dsm, &card->offer);
    status = DN_OK != status ? status : dn_dsm_open_desk(dsm, card);
    if (DN_OK == status && 1 < dsm->ranks) {
        status = dn_tree_create(dsm->port, tree, &card->tree, &dsm->tree);
    }
    if (DN_OK != status) {
        return status;
    }
    dn_segment_key(dsm->cache, &card->cache);
    dn_segment_key(dsm->desk, &card->desk);
    /* This comes last, since nothing is mapped after it. */
    card->places = dn_dsm_places(dsm);
    status = dn_dsm_meet_all(dsm, "card", card, sizeof(*card));
    for (uint32_t r = 0; r < dsm->ranks && DN_OK == status; r++) {
        size_t len = sizeof(*card);
        status = dsm->meet->hear(dsm, r, "card", &dsm->card[r], &len);
        if (DN_OK == status && sizeof(*card) != len) {
            dn_log_error(
                "shared memory: what rank %u tells has %zu bytes and not %zu: use one version of libdn_dsm "
                "in all processes",
                (unsigned) r, len, sizeof(*card));
            return DN_ERR_PARAM;
        }
        cards[r] = dsm->card[r].tree;
    }
    status = DN_OK != status ? status : dn_dsm_open_agree(dsm, &places);
    status = DN_OK != status ? status : dn_dsm_host_join(dsm);
    status = DN_OK != status ? status : dn_dsm_open_front(dsm, places);
    if (DN_OK != status || NULL == dsm->tree) {
        return status;
    }
    dn_tree_connect(dsm->tree, cards, dsm->peer);
    dsm->tell_bytes = dn_tree_allgather_max(dsm->tree) / 8 * 8;
    dsm->tell_bytes = sizeof(dn_dsm_tell_t) < dsm->tell_bytes ? sizeof(dn_dsm_tell_t) : dsm->tell_bytes;
    if (DN_DSM_TELL_MIN > dsm->tell_bytes) {
        dn_log_error("shared memory: %u processes are too many here for a barrier that tells",
                     (unsigned) dsm->ranks);
        return DN_ERR_UNSUPPORTED;
    }
    return DN_OK;
}

void dn_dsm_free(dn_dsm_t *dsm)
{
    dn_dsm_list_t *const list[] = {&dsm->dirty, &dsm->loose, &dsm->wrote, &dsm->flush, &dsm->stale};
    const uint64_t bytes = dn_dsm_bytes(dsm);

    dn_store_relaxed_u32(&dsm->stop, 1);
    if (dsm->serves) {
        dn_wait_ring(dsm->port);
        pthread_join(dsm->server, NULL);
    }
    if (NULL != dsm->front) {
        dsm->watch.way->close(&dsm->watch);
        /* The addresses stay reserved, so that a later access is known to be an access after the close. */
        (void) mmap(dsm->front, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                    0);
        dn_dsm_was.at = dsm->front;
        dn_dsm_was.len = bytes;
        dn_dsm_range_add(&dn_dsm_was);
    }
    if (NULL != dsm->tree) {
        dn_tree_abandon(dsm->tree);
    }
    if (NULL != dsm->port) {
        dn_close(dsm->port);
    }
    if (NULL != dsm->cache_file) {
        munmap(dsm->cache_file, bytes);
    }
    dn_dsm_host_leave(dsm);
    if (NULL != dsm->beside) {
        munmap(dsm->beside, bytes);
    }
    dn_dsm_notes_close(&dsm->notes);
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        free(list[i]->page);
    }
    if (NULL != dsm->meet) {
        dsm->meet->close(dsm);
    }
    free(dsm->page);
    free(dsm->held);
    free(dsm->same);
    free(dsm->lock);
    free(dsm->out);
    free(dsm->in);
    free(dsm->blocks);
    free(dsm->card);
    free(dsm->writer);
    free(dsm->told_of.page);
    free(dsm->map);
    free(dsm->fetched);
    free(dsm);
    pthread_mutex_lock(&dn_dsm_opening);
    dn_dsm_taken = false;
    pthread_mutex_unlock(&dn_dsm_opening);
}

dn_status_t dn_dsm_open(const dn_dsm_config_t *config, dn_dsm_t **dsm_p)
{
    dn_group_key_t key;

    pthread_mutex_lock(&dn_dsm_opening);
    const bool taken = dn_dsm_taken;
    dn_dsm_taken = true;
    pthread_mutex_unlock(&dn_dsm_opening);
    if (taken) {
        dn_log_error("shared memory: it is open in this process already");
        return DN_ERR_PARAM;
    }
    dn_dsm_t *dsm = calloc(1, sizeof(*dsm));
    if (NULL == dsm) {
        pthread_mutex_lock(&dn_dsm_opening);
        dn_dsm_taken = false;
        pthread_mutex_unlock(&dn_dsm_opening);
        return DN_ERR_NOMEM;
    }
    dsm->folder = -1;
    dsm->process = getpid();
    pthread_mutex_init(&dsm->sync, NULL);
    pthread_mutex_init(&dsm->table, NULL);
    /* This memory may get the addresses of the last one. */
    if (0 != dn_dsm_was.len) {
        dn_dsm_range_remove(&dn_dsm_was);
        munmap((void *) (uintptr_t) dn_dsm_was.at, dn_dsm_was.len);
        dn_dsm_was.len = 0;
    }
    dn_status_t status = dn_dsm_config_take(dsm, config);
    const dn_tree_config_t tree = {.ranks = dsm->ranks,
                                   .rank = dsm->rank,
                                   .radix = DN_DSM_GROUPED < dsm->ranks ? DN_TREE_RADIX_MAX : DN_DSM_RADIX,
                                   .depth = 8};
    if (DN_OK == status) {
        dsm->card = calloc(dsm->ranks, sizeof(*dsm->card));
        status = NULL == dsm->card ? DN_ERR_NOMEM : dn_dsm_open_lists(dsm);
    }
    status = DN_OK != status ? status : dn_dsm_map_open(dsm, config->map);
    status = DN_OK != status || !dsm->moves ? status : dn_dsm_move_open(dsm);
    if (DN_OK == status) {
        dsm->meet = dn_dsm_meet_find(config->folder);
        status = dsm->meet->open(dsm, config->folder, &key);
    }
    status = DN_OK != status ? status : dn_dsm_open_port(dsm, config, &key, &tree);
    status = DN_OK != status ? status : dn_dsm_open_cards(dsm, &tree);
    status = DN_OK != status ? status : dn_dsm_fault_watch(dsm->watch.way);
    const bool serves = dsm->serves;
    dsm->serves = DN_OK == status && serves;
    status = DN_OK != status ? status : dn_dsm_open_server(dsm);
    if (DN_OK != status) {
        dn_store_relaxed_u32(&dsm->closing, 1);
        dn_dsm_free(dsm);
        return status;
    }
    dsm->range = (dn_dsm_range_t){
        .what = dsm->watch.what, .at = dsm->front, .len = dn_dsm_bytes(dsm), .access = dn_dsm_page_access};
    dn_dsm_range_add(&dsm->range);
    *dsm_p = dsm;
    return DN_OK;
}

dn_status_t dn_dsm_close(dn_dsm_t *dsm)
{
    const dn_dsm_tell_t tell = {.call = DN_DSM_CALL_CLOSE, .interval = NULL != dsm->map};
    dn_dsm_tell_t told[DN_DSM_RANKS_MAX];
    uint32_t *fetched = NULL;
    uint8_t done = 1;

    dn_dsm_inside++;
    dn_status_t status = 0 != dsm->broken ? DN_ERR_UNREACH : dn_dsm_is_whole(dsm);
    status = DN_OK != status ? status : dn_dsm_all(dsm, &tell, told);
    /* A process that knows that all have come here may go, and is not missed. Until all know this, what this process has sent is needed. */
    dn_store_relaxed_u32(&dsm->closing, 1);
    const dn_status_t gathered = DN_OK != status ? status : dn_dsm_map_gather(dsm, told, &fetched);
    status = DN_OK != status ? status : dn_dsm_meet_all(dsm, "done", &done, sizeof(done));
    for (uint32_t r = 0; r < dsm->ranks && DN_OK == status; r++) {
        size_t len = sizeof(done);
        status = dsm->meet->hear(dsm, r, "done", &done, &len);
    }
    dn_dsm_range_remove(&dsm->range);
    const dn_status_t written = dn_dsm_map_write(dsm, fetched);
    /* The first error is returned. */
    status = DN_OK != gathered ? gathered : status;
    dn_dsm_free(dsm);
    dn_dsm_inside--;
    return DN_OK != status ? status : written;
}
/** @} */
