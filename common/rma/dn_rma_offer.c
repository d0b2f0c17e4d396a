/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_rma_offer.c
 * Short puts and gets on private memory of this host, carried out by a target that is in a call of this library.
 *
 * A system call costs as much as half a dozen lines that cross from core to core (perf/dn_rma, put and get on created windows). So an
 * origin that has to complete short operations first offers them to their target, in one message. A target that makes progress carries
 * them out at once. A target that computes, or does not run, does not answer: the origin takes the offer back after DN_RMA_OFFER_NS,
 * and makes the system call.
 *
 * The target may read the message long after that, when the memory has newer contents. So there is a word for each origin in the notes
 * of the target's block, which both map. The target reads and writes no memory of the window before it has taken the offer by this
 * word. The origin cannot take back an offer that the target has taken:
 *
 *   FREE, TAKEN, DONE --origin--> OFFERED --target--> TAKEN --target, after a put--> DONE
 *                                    |                  `-----target, declining----> FREE
 *                                    `-----origin---> BACK --target, reading it----> FREE
 *
 * The word has the number of the offer. So the message of an offer that was taken back does not meet a later offer. The bytes of gets
 * come in a message. While the word is BACK, the target has not yet read the last offer, and the origin makes no new one. So no more
 * than one message of an origin waits unread, and a target that computes for long costs the origin one wait. Where a target misses
 * several offers in a row, the origin leaves out offers, each time about twice as many.
 */
#include "dn_config.h"

#include "dn_rma_int.h"

/** Polls between two looks at the clock. */
#define DN_RMA_OFFER_POLLS 16

/** One poll in so many polls all peers, the others poll the target only: other peers may wait for this process. */
#define DN_RMA_OFFER_TURN 4

/** Missed offers in a row, beyond which the number of offers that are left out does not grow. Where offers are slow, few are made
 * anyhow (dn_rma_batch.c). */
#define DN_RMA_OFFER_MISSED 5

/** Looks for room to send an offer. If there is no room then, the offer is not made. */
#define DN_RMA_OFFER_TRIES 8

/** dn_rma_offer_head_t::count of a DN_RMA_GOT without bytes: the offer was taken back at the last moment. */
#define DN_RMA_GOT_NOTHING 1u

/** @name The origin's side */
/** @{ */
void dn_rma_offer_open(dn_rma_win_t *win, int target, size_t botf_max)
{
    dn_rma_far_t *far = &win->far[target];

    far->offering.number = dn_first(win->rma->port);
    far->offer_ns = DN_RMA_OFFER_NS;
    /* Where cores are shared, the target seldom runs while its origin waits. */
    if (target != win->rank && NULL != win->target[target].control && !win->dynamic && !win->crowded) {
        far->offer_max = botf_max - sizeof(dn_rma_offer_head_t);
    }
}

/** Send the message of an offer, the word before it. @return false: there is no room now. */
static bool dn_rma_offer_send(dn_rma_win_t *win, int target, const dn_rma_moves_t *moves, bool write)
{
    const dn_rma_far_t *far = &win->far[target];
    const uint32_t number = far->offering.number;
    const dn_rma_offer_head_t head = {far->window, win->rank, number, moves->count, 0};
    const size_t len = sizeof(head) + moves->count * sizeof(dn_block_t) + (write ? moves->bytes : 0);
    dn_window_t window;
    uint8_t *to;

    /* A target that reads its messages gives room back at once. */
    dn_status_t status;
    for (int tries = 1; DN_OK != (status = dn_botf_reserve(far->peer, len, &window)); tries++) {
        if (DN_ERR_AGAIN != status || DN_RMA_OFFER_TRIES < tries) {
            return false;
        }
        (void) dn_progress(win->rma->port);
    }
    /* The kick publishes it. */
    dn_store_relaxed(&win->target[target].control->notes[win->rank].offer,
                     dn_rma_offer_word(number, DN_RMA_OFFERED));
    to = window.data;
    memcpy(to, &head, sizeof(head));
    to += sizeof(head);
    for (uint32_t i = 0; i < moves->count; i++) {
        const dn_block_t block = {moves->there[i].at - far->roff, moves->there[i].len};

        memcpy(to, &block, sizeof(block));
        to += sizeof(block);
    }
    for (uint32_t i = 0; write && i < moves->count; i++) {
        memcpy(to, (const void *) (uintptr_t) moves->here[i].at, moves->here[i].len);
        to += moves->here[i].len;
    }
    dn_botf_kick(far->peer, &window, win->rma->channel, write ? DN_RMA_PUT : DN_RMA_GET, len);
    return true;
}

/** How far is an offer? @retval DN_INPROGRESS  not known yet. @retval DN_ERR_AGAIN  the target has declined. */
static dn_status_t dn_rma_offer_look(const dn_rma_offering_t *offering, const uint64_t *word, bool write)
{
    /* Pair with the releases in dn_rma_offer_put() and dn_rma_offer_on_got(), and with the exchange in dn_rma_offer_decline(). */
    const uint64_t seen = dn_load_acquire(word);

    if (dn_rma_offer_word(offering->number, DN_RMA_FREE) == seen) {
        return DN_ERR_AGAIN;
    }
    const bool done = write ? dn_rma_offer_word(offering->number, DN_RMA_DONE) == seen
                            : DN_RMA_FILLED == dn_load_acquire_u32(&offering->got);
    return done ? DN_OK : DN_INPROGRESS;
}

/** The target has taken the offer, or has declined: wait for the end, as long as the target lives. */
static dn_status_t dn_rma_offer_outlast(dn_rma_win_t *win, int target, const uint64_t *word, bool write)
{
    const dn_rma_offering_t *offering = &win->far[target].offering;
    dn_rma_wait_t wait = {.polls = 0};
    dn_status_t status;

    while (DN_INPROGRESS == (status = dn_rma_offer_look(offering, word, write))) {
        if (dn_rma_is_lost(win, target)
            || (dn_rma_wait_long(win->rma, &wait) && !dn_rma_lives(win, target))) {
            return DN_ERR_UNREACH;
        }
    }
    return status;
}

/** Wait until the target has carried out the offer. @retval DN_ERR_AGAIN  it has not begun, and will not. */
static dn_status_t dn_rma_offer_await(dn_rma_win_t *win, int target, bool write)
{
    dn_rma_far_t *far = &win->far[target];
    const dn_rma_offering_t *offering = &far->offering;
    uint64_t *word = &win->target[target].control->notes[win->rank].offer;
    const uint64_t deadline = dn_clock_ns() + far->offer_ns;
    dn_status_t status;

    for (unsigned polls = 1; DN_INPROGRESS == (status = dn_rma_offer_look(offering, word, write)); polls++) {
        /* The answer, and what the target or others offer meanwhile. */
        const int events =
            0 == polls % DN_RMA_OFFER_TURN ? dn_progress(win->rma->port) : dn_recv(far->peer, 1);
        if (0 == events) {
            dn_pause();
        }
        if (0 == polls % DN_RMA_OFFER_POLLS && deadline <= dn_clock_ns()) {
            /* Pairs with the exchanges of the target: one of the two gets the word. */
            return dn_cas_acq_rel_u64(word, dn_rma_offer_word(offering->number, DN_RMA_OFFERED),
                                      dn_rma_offer_word(offering->number, DN_RMA_BACK))
                       ? DN_ERR_AGAIN
                       : dn_rma_offer_outlast(win, target, word, write);
        }
    }
    return status;
}

/** Want no answer to a get any more: the memory for its bytes is the caller's again. */
static void dn_rma_offer_forget(dn_rma_offering_t *offering)
{
    unsigned polls = 0;

    for (;;) {
        const uint32_t got = dn_load_acquire_u32(&offering->got);

        if (DN_RMA_FILLING != got && dn_cas_acq_rel_u32(&offering->got, got, DN_RMA_UNWANTED)) {
            return;
        }
        dn_rma_pause(&polls);
    }
}

/** As dn_rma_offer(), in the thread that has dn_rma_offering_t::busy. */
static dn_status_t dn_rma_offer_make(dn_rma_win_t *win, int target, const dn_rma_moves_t *moves, bool write)
{
    dn_rma_offering_t *offering = &win->far[target].offering;
    const uint64_t *word = &win->target[target].control->notes[win->rank].offer;

    /* Pairs with the exchange in dn_rma_offer_take(). */
    if (dn_rma_offer_word(offering->number, DN_RMA_BACK) == dn_load_acquire(word)) {
        return DN_ERR_AGAIN;
    }
    if (0 != offering->left) {
        offering->left--;
        return DN_ERR_AGAIN;
    }
    offering->number++;
    if (!write) {
        offering->moves = moves;
        /* A release: the handler that finds it finds the rest. */
        dn_store_release_u32(&offering->got, DN_RMA_WANTED);
    }
    const bool sent = dn_rma_offer_send(win, target, moves, write);
    const dn_status_t status = sent ? dn_rma_offer_await(win, target, write) : DN_ERR_AGAIN;
    if (!write) {
        dn_rma_offer_forget(offering);
    }
    if (sent) {
        offering->missed = DN_OK == status ? 0 : offering->missed + (DN_RMA_OFFER_MISSED > offering->missed);
        /* The first one may be an accident. */
        offering->left = (1u << offering->missed) / 2 - (0 < offering->missed);
    }
    return status;
}

dn_status_t dn_rma_offer(dn_rma_win_t *win, int target, const dn_rma_moves_t *moves, bool write)
{
    dn_rma_far_t *far = &win->far[target];

    /* The exchange pairs with the release at the end, of another thread. */
    if (!dn_rma_offer_fits(far, moves) || !dn_cas_acq_rel_u32(&far->offering.busy, 0, 1)) {
        return DN_ERR_AGAIN;
    }
    const dn_status_t status = dn_rma_offer_make(win, target, moves, write);
    dn_store_release_u32(&far->offering.busy, 0);
    return status;
}

/** Handle a DN_RMA_GOT: the bytes of a get have come. @return false: the message is wrong. */
static bool dn_rma_offer_on_got(dn_rma_far_t *far, const dn_rma_offer_head_t *head, const uint8_t *data,
                                size_t len)
{
    dn_rma_offering_t *offering = &far->offering;

    /* Pairs with the release in dn_rma_offer_make(). In vain, it is late: the origin has found the target lost. */
    if (DN_RMA_GOT_NOTHING == head->count
        || !dn_cas_acq_rel_u32(&offering->got, DN_RMA_WANTED, DN_RMA_FILLING)) {
        return true;
    }
    const dn_rma_moves_t *moves = offering->moves;
    const bool good = head->number == offering->number && len == moves->bytes;
    for (uint32_t i = 0; good && i < moves->count; i++) {
        memcpy((void *) (uintptr_t) moves->here[i].at, data, moves->here[i].len);
        data += moves->here[i].len;
    }
    /* A release: what was got comes before. */
    dn_store_release_u32(&offering->got, good ? DN_RMA_FILLED : DN_RMA_WANTED);
    return good;
}
/** @} */

/** @name The target's side */
/** @{ */

/** A checked copy of an offer: its sender can still write to the memory of the message. */
typedef struct dn_rma_offered {
    uint32_t number;
    int rank;
    uint32_t count;
    uint64_t bytes;
    dn_block_t block[DN_RMA_MOVES_MOST];
} dn_rma_offered_t;

/** Copy and check an offer. @return false: a block is not in the window, or has no bytes. */
static bool dn_rma_offer_read(const dn_rma_win_t *win, const dn_rma_offer_head_t *head, const uint8_t *blocks,
                              dn_rma_offered_t *offered)
{
    offered->number = head->number;
    offered->rank = head->rank;
    offered->count = head->count;
    offered->bytes = 0;
    memcpy(offered->block, blocks, head->count * sizeof(*offered->block));
    for (uint32_t i = 0; i < offered->count; i++) {
        const dn_block_t *block = &offered->block[i];

        if (0 == block->len || block->at > win->len || block->len > win->len - block->at) {
            return false;
        }
        /* Of so few blocks in one memory the sum has no overflow. */
        offered->bytes += block->len;
    }
    return true;
}

/** Take an offer: from here on the origin cannot take it back. @return false: the origin has taken it back before, and learns by the
 * word that its message was read. */
static bool dn_rma_offer_take(uint64_t *word, uint32_t number)
{
    /* It pairs with the exchange in dn_rma_offer_await(). What the origin has stored comes before, by the message. */
    if (dn_cas_acq_rel_u64(word, dn_rma_offer_word(number, DN_RMA_OFFERED),
                           dn_rma_offer_word(number, DN_RMA_TAKEN))) {
        return true;
    }
    (void) dn_cas_acq_rel_u64(word, dn_rma_offer_word(number, DN_RMA_BACK),
                              dn_rma_offer_word(number, DN_RMA_FREE));
    return false;
}

/** Decline an offer, as there is no room for the answer. The origin need not wait then. */
static void dn_rma_offer_decline(dn_peer_t *src, uint64_t *word, uint32_t number)
{
    if (dn_rma_offer_take(word, number)) {
        /* Nobody else changes what is taken. */
        dn_store_release(word, dn_rma_offer_word(number, DN_RMA_FREE));
        dn_wake(src);
    }
}

static void dn_rma_offer_put(const dn_rma_win_t *win, dn_peer_t *src, const dn_rma_offered_t *offered,
                             const uint8_t *data)
{
    uint64_t *word = &win->control->notes[offered->rank].offer;

    if (!dn_rma_offer_take(word, offered->number)) {
        return;
    }
    for (uint32_t i = 0; i < offered->count; i++) {
        memcpy(win->base + offered->block[i].at, data, offered->block[i].len);
        data += offered->block[i].len;
    }
    /* A release: what was put comes before. */
    dn_store_release(word, dn_rma_offer_word(offered->number, DN_RMA_DONE));
    dn_wake(src);
}

static void dn_rma_offer_get(const dn_rma_win_t *win, dn_peer_t *src, const dn_rma_offered_t *offered)
{
    uint64_t *word = &win->control->notes[offered->rank].offer;
    dn_rma_offer_head_t head = {win->far[offered->rank].window, win->rank, offered->number, 0, 0};
    size_t len = sizeof(head) + offered->bytes;
    dn_peer_attr_t attr;
    dn_window_t window;

    /* Room comes first: what is taken is answered at once. */
    dn_peer_attr(src, &attr);
    if (attr.botf_max < len || DN_OK != dn_botf_reserve(src, len, &window)) {
        dn_rma_offer_decline(src, word, offered->number);
        return;
    }
    uint8_t *to = (uint8_t *) window.data + sizeof(head);
    if (dn_rma_offer_take(word, offered->number)) {
        for (uint32_t i = 0; i < offered->count; i++) {
            memcpy(to, win->base + offered->block[i].at, offered->block[i].len);
            to += offered->block[i].len;
        }
    } else {
        head.count = DN_RMA_GOT_NOTHING;
        len = sizeof(head);
    }
    memcpy(window.data, &head, sizeof(head));
    dn_botf_kick(src, &window, win->rma->channel, DN_RMA_GOT, len);
}

bool dn_rma_on_offer(dn_rma_win_t *win, dn_peer_t *src, unsigned tag, const dn_rma_offer_head_t *head,
                     const uint8_t *body, size_t len)
{
    dn_rma_offered_t offered;

    if (DN_RMA_GOT == tag) {
        return dn_rma_offer_on_got(&win->far[head->rank], head, body, len);
    }
    if (win->dynamic || 0 == head->count || DN_RMA_MOVES_MOST < head->count
        || len / sizeof(dn_block_t) < head->count || !dn_rma_offer_read(win, head, body, &offered)) {
        return false;
    }
    body += head->count * sizeof(dn_block_t);
    len -= head->count * sizeof(dn_block_t);
    if (len != (DN_RMA_PUT == tag ? offered.bytes : 0)) {
        return false;
    }
    if (DN_RMA_PUT == tag) {
        dn_rma_offer_put(win, src, &offered, body);
    } else {
        dn_rma_offer_get(win, src, &offered);
    }
    return true;
}
/** @} */
