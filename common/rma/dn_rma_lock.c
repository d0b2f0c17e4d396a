/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_rma_lock.c
 * Locks, and the guard of accumulates, which is a lock that a process has for a moment.
 *
 * A process may end while it has a lock or the guard, or while other processes wait behind it. So a process that waits long looks
 * from time to time whether the processes that could be in its way live. It gives up when one of them does not.
 *
 * A far process changes the lock of a target, and its notes there, by remote atomic operations. These take effect in the order of the
 * calls, so a connection that breaks has carried out the first ones. Steps in one row go together (dn_atomics()):
 *
 *   to lock                notes := DRAWS; next++                the answer tells the number n, and whether it is its turn
 *     when it is not       notes := HAS n                        then the lock is read now and then
 *     shared, at its turn  notes := HAS n if not done; read++; notes := SHARES
 *   to unlock, exclusive   read++ and write++, in one step; notes := NONE
 *   to unlock, shared      write++; notes := NONE
 *
 * A process that shares a lock which nobody else has used since its last time gets in by one step:
 *
 *   to lock, shared        notes := SHARES; next++ and read++, in one step, if the lock is as it was left
 *
 * Any number of others may share the lock as long as a process does: numbers wrap meanwhile. So a process that has got in says no
 * number. A process that maps the lock takes the same steps by instructions; it goes from SHARES to DRAWS if the one step fails.
 *
 * When a far process is lost, the target finds out what it has left, by these notes and those of all others:
 *
 *   HAS n   The lock tells how far it came: whether it waits for the turn of n, is in, or (exclusive) has given the lock back.
 *   DRAWS   It has drawn no number; or it has one, and if that is exclusive it may be in. When it is the turn of a number that no other
 *           process has, the number is its.
 *   SHARES  It is in, or has not got in yet and has no number, or has just left. When no other process is in and the lock says that one is,
 *           it is in.
 *
 * The last two take until the other processes have said what numbers they have, or have left: the number is an orphan so long.
 */
#include "dn_config.h"

#include "dn_cell.h"
#include "dn_clock.h"
#include "dn_rma_int.h"

/** Looks at the guard by a caller that must not wait, and looks at the processes inside of a gate. Most accumulates end within this time. */
#define DN_RMA_GUARD_TRIES 100u

/** A far process that waits for a lock reads the lock again after this part of the time waited, but after DN_RMA_REST_NS at most. So it costs
 * the target's host few reads, and itself an eighth more time. */
#define DN_RMA_REST_PART 8u
#define DN_RMA_REST_NS   1000000u

/** A number of a lost process for the lock of this process, whose turn has not come. This object holds its window. */
typedef struct dn_rma_orphan {
    struct dn_rma_orphan *next;
    dn_rma_win_t *win;
    int rank;
} dn_rma_orphan_t;

/** A word of notes. @param wish  enum dn_rma_wish. */
static uint64_t dn_rma_wish_word(unsigned wish, uint32_t number)
{
    return (uint64_t) number << 32 | wish;
}

/** It may be the turn of a number: wake the process that has drawn it. A far process reads the lock by itself. */
static void dn_rma_lock_ring(const dn_rma_win_t *win, int target, uint32_t number)
{
    const dn_rma_control_t *control = win->target[target].control;

    /* Whoever sleeps has drawn, and noted the number, long before: the fence of that sleep (dn_wait.h) has come before these
     * loads, or after the turn was given, which the sleeper has found then. */
    if (!dn_ticket_is_drawn(&control->lock, number)) {
        return;
    }
    for (int rank = 0; rank < win->size; rank++) {
        if (dn_rma_wish_word(DN_RMA_WISH_HAS, number) == dn_load_acquire(&control->notes[rank].wish)) {
            if (NULL != win->target[rank].peer) {
                dn_wake(win->target[rank].peer);
            }
            return;
        }
    }
}

/** Look at the target, and at the processes that want or have its lock and map its block. If one of them has ended, break the lock. Takes
 * a system call for each of these processes. @return true: the lock is broken. */
static bool dn_rma_lock_look(const dn_rma_win_t *win, int target)
{
    dn_rma_control_t *control = win->target[target].control;

    for (int rank = 0; rank < win->size; rank++) {
        const uint64_t wish = dn_load_acquire(&control->notes[rank].wish);
        const bool near = 0 != (wish & DN_RMA_WISH_STATES) && 0 == (wish & DN_RMA_WISH_FAR);

        if ((rank == target || near) && !dn_rma_lives(win, rank)) {
            dn_ticket_break(&control->lock);
            return true;
        }
    }
    return false;
}

/** @name The lock of a far target */
/** @{ */

/** dn_comp_fn_t, of dn_rma_far_t::asks. */
static void dn_rma_asked(dn_comp_t *comp, dn_status_t status)
{
    dn_rma_remote_t *remote = (dn_rma_remote_t *) comp;

    remote->status = status;
    /* A release, for who waits: the old word and the status come before. */
    dn_store_release_u32(&remote->over, 1);
}

/** dn_comp_fn_t, of dn_rma_far_t::tells. */
static void dn_rma_told(dn_comp_t *comp, dn_status_t status)
{
    /* An error is a loss, which dn_rma_lost() is told of. A release: pairs with dn_rma_settle(), whose caller may take the window away. */
    (void) status;
    dn_fetch_sub_release(&((dn_rma_remote_t *) comp)->far->pending, 1);
}

void dn_rma_lock_open(dn_rma_far_t *far)
{
    far->asks = (dn_rma_remote_t){.comp = {dn_rma_asked}, .far = far};
    far->tells = (dn_rma_remote_t){.comp = {dn_rma_told}, .far = far};
}

/** Changes of the control part of a far target, in their order. */
typedef struct dn_rma_row {
    dn_rma_win_t *win;
    dn_rma_far_t *far;
    size_t n;
    dn_amo_t amo[DN_ATOMICS_MAX];
} dn_rma_row_t;

/** Add a change of a word to a row. @param off  Of the word, in the control part. */
static void dn_rma_row_put(dn_rma_row_t *row, uint64_t off, dn_amo_op_t op, uint64_t operand,
                           dn_rma_remote_t *remote)
{
    const dn_rma_far_t *far = row->far;

    row->amo[row->n++] = (dn_amo_t){.op = op,
                                    .width = sizeof(uint64_t),
                                    .operand = operand,
                                    .result = remote == &far->asks ? &remote->old : NULL,
                                    .key = &far->block_key,
                                    .roff = far->block_off + off,
                                    .comp = &remote->comp};
}

/** Write the notes of this process. */
static void dn_rma_row_wish(dn_rma_row_t *row, unsigned wish, uint32_t number)
{
    const uint64_t notes =
        offsetof(dn_rma_control_t, notes) + (uint64_t) row->win->rank * sizeof(dn_rma_notes_t);

    dn_rma_row_put(row, notes + offsetof(dn_rma_notes_t, wish), DN_AMO_SWAP, dn_rma_wish_word(wish, number),
                   &row->far->tells);
}

/** Change the lock. */
static void dn_rma_row_lock(dn_rma_row_t *row, dn_amo_op_t op, uint64_t operand, dn_rma_remote_t *remote)
{
    dn_rma_row_put(row, offsetof(dn_rma_control_t, lock), op, operand, remote);
}

/** Start the changes of a row. The comp of each is signalled once. */
static void dn_rma_row_start(const dn_rma_row_t *row)
{
    dn_rma_far_t *far = row->far;
    dn_rma_wait_t wait = {.polls = 0};
    dn_status_t status;
    size_t at = 0, started;

    for (size_t i = 0; i < row->n; i++) {
        if (&far->tells.comp == row->amo[i].comp) {
            dn_fetch_add_relaxed(&far->pending, 1);
        } else {
            far->asks.over = 0;
        }
    }
    for (;;) {
        status = dn_atomics(far->peer, row->amo + at, row->n - at, &started);
        at += started;
        /* Memory that lacks now may be given back while other operations end. */
        if (DN_ERR_AGAIN != status && DN_ERR_NOMEM != status) {
            break;
        }
        dn_rma_wait(row->win->rma, &wait);
    }
    for (; at < row->n; at++) {
        row->amo[at].comp->fn(row->amo[at].comp, status);
    }
}

/** Start a row with a change whose result is wanted, and wait for it. @param[out] word_p  The lock before that change. */
static dn_status_t dn_rma_row_ask(const dn_rma_row_t *row, uint64_t *word_p)
{
    dn_rma_remote_t *asks = &row->far->asks;
    dn_rma_wait_t wait = {.polls = 0};

    dn_rma_row_start(row);
    while (0 == dn_load_acquire_u32(&asks->over)) {
        dn_rma_wait(row->win->rma, &wait);
    }
    *word_p = asks->old;
    return asks->status;
}

/** Rest between two reads of a lock. */
static void dn_rma_rest(const dn_rma_win_t *win, dn_rma_wait_t *wait)
{
    const uint64_t now = dn_clock_ns();
    const uint64_t part = (now - wait->began_ns) / DN_RMA_REST_PART;
    const uint64_t until = now + (DN_RMA_REST_NS < part ? DN_RMA_REST_NS : part);

    do {
        dn_rma_wait(win->rma, wait);
    } while (until > dn_clock_ns());
}

/** Wait for the turn of a number of this process. @param[in] word  The lock as it was found last. */
static dn_status_t dn_rma_lock_await(dn_rma_win_t *win, int target, bool exclusive, uint32_t number,
                                     uint64_t word)
{
    const dn_rma_head_t head = dn_rma_head(win, target);
    dn_rma_row_t row = {.win = win, .far = &win->far[target]};
    dn_rma_wait_t wait = {.polls = 0};

    dn_rma_row_lock(&row, DN_AMO_ADD, 0, &row.far->asks);
    while (!dn_ticket_is_turn(word, exclusive, number)) {
        if (dn_ticket_is_broken(word)) {
            return DN_ERR_UNREACH;
        }
        if (dn_rma_time_to_look(&wait)) {
            (void) dn_rma_send_head(win, target, DN_RMA_LOOK, &head);
        }
        dn_rma_rest(win, &wait);
        const dn_status_t status = dn_rma_row_ask(&row, &word);
        if (DN_OK != status) {
            return status;
        }
    }
    return DN_OK;
}

/** A number is drawn: wait until it is its turn, and get in. @param[in] word  The lock as the draw found it. */
static dn_status_t dn_rma_lock_enter(dn_rma_win_t *win, int target, bool exclusive, uint64_t word)
{
    const unsigned has = DN_RMA_WISH_FAR | (exclusive ? DN_RMA_WISH_EXCLUSIVE : 0) | DN_RMA_WISH_HAS;
    const uint32_t number = dn_ticket_next(word);
    const bool waits = !dn_ticket_is_turn(word, exclusive, number);
    dn_rma_row_t row = {.win = win, .far = &win->far[target]};
    dn_status_t status = DN_OK;

    if (dn_ticket_carries(word, DN_TICKET_NEXT_ONE)) {
        dn_rma_row_lock(&row, DN_AMO_AND, ~DN_TICKET_CARRIES, &row.far->tells);
    }
    if (waits || !exclusive) {
        dn_rma_row_wish(&row, has, number);
    }
    if (waits) {
        dn_rma_row_start(&row);
        row.n = 0;
        status = dn_rma_lock_await(win, target, exclusive, number, word);
    }
    if (DN_OK != status) {
        /* The number stays drawn: others behind it find the same. */
        dn_rma_row_wish(&row, DN_RMA_WISH_NONE, 0);
    } else if (!exclusive) {
        dn_rma_row_lock(&row, DN_AMO_ADD, DN_TICKET_READ_ONE, &row.far->tells);
        dn_rma_row_wish(&row, DN_RMA_WISH_FAR | DN_RMA_WISH_SHARES, 0);
    }
    if (0 != row.n) {
        dn_rma_row_start(&row);
    }
    return status;
}

/** Draw a number, and get in if it is its turn. */
static dn_status_t dn_rma_lock_draw(dn_rma_win_t *win, int target, bool exclusive)
{
    dn_rma_far_t *far = &win->far[target];
    dn_rma_row_t row = {.win = win, .far = far};
    uint64_t word;

    dn_rma_row_wish(&row, DN_RMA_WISH_FAR | DN_RMA_WISH_DRAWS, 0);
    dn_rma_row_lock(&row, DN_AMO_ADD, DN_TICKET_NEXT_ONE, &far->asks);
    const dn_status_t status = dn_rma_row_ask(&row, &word);
    if (DN_OK != status) {
        return status;
    }
    far->calm = far->guess == word;
    far->guess = word + DN_TICKET_NEXT_ONE + DN_TICKET_READ_ONE + DN_TICKET_WRITE_ONE;
    return dn_rma_lock_enter(win, target, exclusive, word);
}

/** May the lock be shared by one step, if the guess is right? The step must not set a bit `carry`. */
static bool dn_rma_may_share(const dn_rma_far_t *far)
{
    return far->calm && dn_ticket_read(far->guess) == dn_ticket_next(far->guess)
           && !dn_ticket_carries(far->guess, DN_TICKET_NEXT_ONE + DN_TICKET_READ_ONE)
           && !dn_ticket_is_broken(far->guess);
}

/** Draw a number and get in, by one step. @retval DN_ERR_AGAIN  the guess was wrong, and nothing has changed. */
static dn_status_t dn_rma_lock_share(dn_rma_win_t *win, int target)
{
    dn_rma_far_t *far = &win->far[target];
    dn_rma_row_t row = {.win = win, .far = far};
    const uint64_t guess = far->guess;
    uint64_t word;

    dn_rma_row_wish(&row, DN_RMA_WISH_FAR | DN_RMA_WISH_SHARES, 0);
    dn_rma_row_lock(&row, DN_AMO_CAS, guess + DN_TICKET_NEXT_ONE + DN_TICKET_READ_ONE, &far->asks);
    row.amo[row.n - 1].compare = guess;
    const dn_status_t status = dn_rma_row_ask(&row, &word);
    if (DN_OK == status && guess != word) {
        return DN_ERR_AGAIN;
    }
    far->guess = guess + DN_TICKET_NEXT_ONE + DN_TICKET_READ_ONE + DN_TICKET_WRITE_ONE;
    return status;
}

static dn_status_t dn_rma_lock_far(dn_rma_win_t *win, int target, bool exclusive)
{
    dn_status_t status = DN_ERR_AGAIN;

    if (!exclusive && dn_rma_may_share(&win->far[target])) {
        status = dn_rma_lock_share(win, target);
    }
    return DN_ERR_AGAIN == status ? dn_rma_lock_draw(win, target, exclusive) : status;
}

static void dn_rma_unlock_far(dn_rma_win_t *win, int target, bool exclusive)
{
    dn_rma_row_t row = {.win = win, .far = &win->far[target]};

    dn_rma_row_lock(&row, DN_AMO_ADD, dn_ticket_given(exclusive), &row.far->tells);
    dn_rma_row_wish(&row, DN_RMA_WISH_NONE, 0);
    dn_rma_row_start(&row);
}
/** @} */

/** @name The lock of a target */
/** @{ */
dn_status_t dn_rma_lock(dn_rma_win_t *win, int target, bool exclusive)
{
    dn_rma_control_t *control = win->target[target].control;
    dn_rma_wait_t wait = {.polls = 0};

    if (NULL == control) {
        return dn_rma_lock_far(win, target, exclusive);
    }
    dn_ticket_t *lock = &control->lock;
    uint64_t *wish = &control->notes[win->rank].wish;
    /* What the process wants is seen by the release of the number that is drawn. */
    if (!exclusive) {
        dn_store_release(wish, dn_rma_wish_word(DN_RMA_WISH_SHARES, 0));
        if (dn_ticket_share(lock)) {
            return DN_OK;
        }
    }
    dn_store_release(wish, dn_rma_wish_word(DN_RMA_WISH_DRAWS, 0));
    const uint32_t number = dn_ticket_draw(lock);
    dn_store_release(wish, dn_rma_wish_word(DN_RMA_WISH_HAS, number));
    while (!dn_ticket_try(lock, exclusive, number)) {
        if (dn_rma_is_lost(win, target) || dn_ticket_is_broken(dn_load_acquire(&lock->word))
            || (dn_rma_wait_long(win->rma, &wait) && dn_rma_lock_look(win, target))) {
            /* The number stays drawn: others behind it find the same. */
            dn_store_release(wish, dn_rma_wish_word(DN_RMA_WISH_NONE, 0));
            return DN_ERR_UNREACH;
        }
    }
    if (!exclusive) {
        dn_store_release(wish, dn_rma_wish_word(DN_RMA_WISH_SHARES, 0));
        dn_rma_lock_ring(win, target, dn_ticket_number(number + 1));
    }
    return DN_OK;
}

void dn_rma_unlock(dn_rma_win_t *win, int target, bool exclusive)
{
    dn_rma_control_t *control = win->target[target].control;

    if (NULL == control) {
        dn_rma_unlock_far(win, target, exclusive);
        return;
    }
    const uint32_t next = dn_ticket_give(&control->lock, exclusive);
    /* A release: the process has given the lock before it says so. */
    dn_store_release(&control->notes[win->rank].wish, dn_rma_wish_word(DN_RMA_WISH_NONE, 0));
    dn_rma_lock_ring(win, target, next);
}
/** @} */

/** @name What far processes have to do with the lock of this process */
/** @{ */
void dn_rma_on_look(dn_rma_win_t *win, int rank)
{
    /* However often the rank asks. */
    if (dn_rma_time_to_look(&win->far[rank].patience)) {
        (void) dn_rma_lock_look(win, win->rank);
    }
}

/** The number of a lost process: give the lock back, if it is the turn of the number. @return false: it is not its turn yet. */
static bool dn_rma_give_for(const dn_rma_win_t *win, int exclusive, uint32_t number)
{
    dn_ticket_t *lock = &win->control->lock;
    const bool over = dn_ticket_is_over(dn_load_acquire(&lock->word), exclusive, number);

    if (over && exclusive) {
        /* It had given the lock back itself. */
        return true;
    }
    if (!over && !dn_ticket_try(lock, exclusive, number)) {
        return false;
    }
    if (!exclusive) {
        dn_rma_lock_ring(win, win->rank, dn_ticket_number(number + 1));
    }
    dn_rma_lock_ring(win, win->rank, dn_ticket_give(lock, exclusive));
    return true;
}

/** What another rank says about a number: see dn_rma_others_say_no(). */
typedef bool (*dn_rma_claims_fn_t)(uint64_t word, uint64_t wish);

/** DRAWS: may the rank have the number whose turn it is? */
static bool dn_rma_claims_turn(uint64_t word, uint64_t wish)
{
    const unsigned state = (unsigned) wish & DN_RMA_WISH_STATES;

    return DN_RMA_WISH_DRAWS == state
           || (DN_RMA_WISH_HAS == state && dn_ticket_write(word) == dn_ticket_number(wish >> 32));
}

/** SHARES: may the rank share the lock? Who draws has not got in, or has the lock alone. */
static bool dn_rma_claims_share(uint64_t word, uint64_t wish)
{
    const unsigned state = (unsigned) wish & DN_RMA_WISH_STATES;

    return DN_RMA_WISH_SHARES == state
           || (DN_RMA_WISH_HAS == state && dn_ticket_is_over(word, 0, dn_ticket_number(wish >> 32)));
}

/**
 * Is no other process the one that the lock, as it was found, waits for? Lost far processes in the same state as @p rank are left out: what
 * is given back for one of them may as well be another's.
 */
static bool dn_rma_others_say_no(const dn_rma_win_t *win, int rank, uint64_t word, dn_rma_claims_fn_t claims)
{
    const dn_rma_notes_t *notes = win->control->notes;
    const unsigned state = (unsigned) dn_load_acquire(&notes[rank].wish) & DN_RMA_WISH_STATES;
    /* All but `next`. */
    const uint64_t moves = ~(DN_TICKET_READ_ONE - 1);

    for (int other = 0; other < win->size; other++) {
        const uint64_t wish = dn_load_acquire(&notes[other].wish);
        const bool like = 0 != (wish & DN_RMA_WISH_FAR) && state == ((unsigned) wish & DN_RMA_WISH_STATES)
                          && 0 != dn_load_acquire_u32(&win->far[other].left);

        if (rank != other && !like && claims(word, wish)) {
            return false;
        }
    }
    /* A process has a wish from before it draws until after it has given the lock back. If the lock has not moved since @p word was loaded,
     * a process that it waits for had this wish while it was looked at. */
    return (word & moves) == (dn_load_acquire(&win->control->lock.word) & moves);
}

/** A lost far process may have drawn a number. @return false: it is not known yet whether it has. */
static bool dn_rma_give_drawn(const dn_rma_win_t *win, int rank)
{
    dn_ticket_t *lock = &win->control->lock;
    const uint64_t word = dn_load_acquire(&lock->word);

    if (dn_ticket_write(word) == dn_ticket_next(word)) {
        /* All numbers are given back. */
        return true;
    }
    if (dn_ticket_write(word) != dn_ticket_read(word)
        || !dn_rma_others_say_no(win, rank, word, dn_rma_claims_turn)) {
        return false;
    }
    /* Whether shared or exclusive: nobody has got in by this number, or one alone. */
    dn_rma_lock_ring(win, win->rank, dn_ticket_give(lock, 1));
    return true;
}

/** A lost far process may share the lock. @return false: it is not known yet whether it does. */
static bool dn_rma_give_left(const dn_rma_win_t *win, int rank)
{
    dn_ticket_t *lock = &win->control->lock;
    const uint64_t word = dn_load_acquire(&lock->word);

    if (dn_ticket_write(word) == dn_ticket_read(word)) {
        /* All that had got in have left. */
        return true;
    }
    if (!dn_rma_others_say_no(win, rank, word, dn_rma_claims_share)) {
        return false;
    }
    dn_rma_lock_ring(win, win->rank, dn_ticket_give(lock, 0));
    return true;
}

/** Clear what a lost rank wants of the lock of this process, in the thread that has dn_rma_t::giving. @return false: it is not the turn of
 * its number yet, or the number is not known yet. */
static bool dn_rma_clear_this_wish(const dn_rma_win_t *win, int rank)
{
    uint64_t *word = &win->control->notes[rank].wish;
    /* The device carries out nothing for a lost peer, so the rank does not change this word any more. */
    const uint64_t wish = dn_load_acquire(word);
    bool clear = true;

    if (0 == (wish & DN_RMA_WISH_FAR)) {
        /* None; or the rank maps this block, and who waits behind it finds that it has ended. */
        return true;
    }
    switch (wish & DN_RMA_WISH_STATES) {
    case DN_RMA_WISH_DRAWS:
        clear = dn_rma_give_drawn(win, rank);
        break;
    case DN_RMA_WISH_HAS:
        clear = dn_rma_give_for(win, 0 != (wish & DN_RMA_WISH_EXCLUSIVE), dn_ticket_number(wish >> 32));
        break;
    case DN_RMA_WISH_SHARES:
        clear = dn_rma_give_left(win, rank);
        break;
    default:
        break;
    }
    if (clear) {
        dn_store_release(word, dn_rma_wish_word(DN_RMA_WISH_NONE, 0));
    }
    return clear;
}

/** The same. @return false also where another thread clears a wish: two threads would give one number back twice. */
static bool dn_rma_clear_wish(const dn_rma_win_t *win, int rank)
{
    pthread_mutex_t *giving = &win->rma->giving;

    if (0 != pthread_mutex_trylock(giving)) {
        return false;
    }
    const bool clear = dn_rma_clear_this_wish(win, rank);
    (void) pthread_mutex_unlock(giving);
    return clear;
}

static void dn_rma_keep_orphan(dn_rma_t *rma, dn_rma_orphan_t *orphan)
{
    (void) pthread_mutex_lock(&rma->lock);
    orphan->next = rma->orphans;
    rma->orphans = orphan;
    (void) pthread_mutex_unlock(&rma->lock);
}

void dn_rma_take_back(dn_rma_win_t *win, int rank)
{
    /* A release: the device carries out nothing for the rank any more, as was said to the caller. */
    dn_store_release_u32(&win->far[rank].left, 1);
    if (!dn_rma_clear_wish(win, rank)) {
        dn_rma_orphan_t *orphan = dn_rma_need(win->rma, sizeof(*orphan));

        dn_rma_win_hold(win);
        *orphan = (dn_rma_orphan_t){.win = win, .rank = rank};
        dn_rma_keep_orphan(win->rma, orphan);
    }
}

int dn_rma_give_orphans(dn_rma_t *rma)
{
    dn_rma_orphan_t *all, *next;
    int given = 0;

    /* A look without the lock: who comes meanwhile is seen the next time. */
    if (NULL == dn_load_relaxed(&rma->orphans)) {
        return 0;
    }
    (void) pthread_mutex_lock(&rma->lock);
    all = rma->orphans;
    rma->orphans = NULL;
    (void) pthread_mutex_unlock(&rma->lock);
    for (; NULL != all; all = next) {
        next = all->next;
        if (dn_rma_clear_wish(all->win, all->rank)) {
            dn_rma_win_leave(all->win);
            free(all);
            given++;
        } else {
            dn_rma_keep_orphan(rma, all);
        }
    }
    return given;
}

void dn_rma_forget_orphans(dn_rma_win_t *win)
{
    (void) pthread_mutex_lock(&win->rma->lock);
    for (dn_rma_orphan_t **at = &win->rma->orphans; NULL != *at;) {
        dn_rma_orphan_t *orphan = *at;

        if (win == orphan->win) {
            *at = orphan->next;
            free(orphan);
            win->holders--;
        } else {
            at = &orphan->next;
        }
    }
    (void) pthread_mutex_unlock(&win->rma->lock);
}
/** @} */

/** @name The guard */
/** @{ */

/** Is the owner of the guard known to be lost, or no rank of the window at all? */
static bool dn_rma_guard_is_lost(const dn_rma_guard_t *guard, uint32_t owner)
{
    return (uint32_t) guard->win->size < owner || dn_rma_is_lost(guard->win, (int) owner - 1);
}

/** Has this owner ended while it had the guard? A process that left the guard before its end keeps no other process out. */
static bool dn_rma_guard_is_dead(const dn_rma_guard_t *guard, uint32_t owner)
{
    const bool dead = dn_rma_guard_is_lost(guard, owner) || !dn_rma_lives(guard->win, (int) owner - 1);

    return dead && owner == dn_load_acquire_u32(guard->super.word);
}

dn_status_t dn_rma_guard_wait(const dn_guard_t *super)
{
    const dn_rma_guard_t *guard = (const dn_rma_guard_t *) super;
    /* In progress a message might change what this operation is about to use. The last messages of an owner that has ended do not: this
     * operation comes from another process. */
    dn_rma_wait_t wait = {.quiet = true};
    unsigned tries = 0;
    uint32_t owner;

    while (0 != (owner = dn_guard_try(super))) {
        if (NULL == guard->tries) {
            if ((dn_rma_wait_long(guard->win->rma, &wait) || dn_rma_guard_is_lost(guard, owner))
                && dn_rma_guard_is_dead(guard, owner)) {
                return DN_ERR_UNREACH;
            }
        } else if (DN_RMA_GUARD_TRIES > ++tries) {
            dn_pause();
        } else {
            return dn_rma_time_to_look(guard->tries) && dn_rma_guard_is_dead(guard, owner) ? DN_ERR_UNREACH
                                                                                           : DN_ERR_AGAIN;
        }
    }
    return DN_OK;
}

/** Is there a process that takes part in no fence? */
static bool dn_rma_gate_is_held_open(const dn_rma_guard_t *guard)
{
    for (int rank = 0; rank < guard->win->size; rank++) {
        if (DN_RMA_INSIDE_ALWAYS == dn_load_relaxed_u32(&guard->control->notes[rank].inside)) {
            return true;
        }
    }
    return false;
}

/**
 * The gate is closed: wait until no process is inside. This takes a moment; or it takes long, where a process inside is stopped, or
 * waits for the core of this process.
 * @return false: it takes long, and a process is still inside.
 */
static bool dn_rma_gate_await(const dn_rma_guard_t *guard)
{
    unsigned tries = 0;

    for (int rank = 0; rank < guard->win->size; rank++) {
        /* Pairs with the release in dn_gate_leave(). What one instruction of a process that has ended
         * did is done, or never will be; a process that was cut off is none of the window's any more. */
        while (!dn_rma_is_lost(guard->win, rank)
               && 0 != dn_load_acquire_u32(&guard->control->notes[rank].inside)) {
            if (DN_RMA_GUARD_TRIES < ++tries) {
                return false;
            }
            dn_pause();
        }
    }
    return true;
}

/** Close the gate, since too many bytes go cell by cell. @return 0: the gate stays open. */
static int dn_rma_gate_close(const dn_rma_guard_t *guard)
{
    dn_rma_control_t *control = guard->control;

    control->longs = 0;
    if (!dn_rma_gate_is_held_open(guard)) {
        /* C0 to C2 of dn_guard.h. */
        dn_store_seq_cst(&control->gate, 1);
        if (0 != dn_bell_fence_all() && dn_rma_gate_await(guard)) {
            control->most = 0;
            return 1;
        }
        dn_store_release_u32(&control->gate, 0);
    }
    /* It was in vain, and may be the next time. */
    control->most = DN_RMA_CLOSE_MOST > control->most ? 2 * control->most : control->most;
    return 0;
}

int dn_rma_guard_close(const dn_guard_t *super, uint64_t len)
{
    const dn_rma_guard_t *guard = (const dn_rma_guard_t *) super;
    dn_rma_control_t *control = guard->control;
    const uint32_t bytes = (uint32_t) (DN_RMA_CLOSE_MOST < len ? DN_RMA_CLOSE_MOST : len);

    if (0 != dn_load_relaxed_u32(&control->gate)) {
        if (DN_CELL < bytes) {
            control->shorts -= bytes < control->shorts ? bytes : control->shorts;
            return 1;
        }
        control->shorts += DN_RMA_WORTH;
        if (DN_RMA_REOPEN > control->shorts) {
            return 1;
        }
        control->shorts = 0;
        /* A release: what was done under the guard comes before. */
        dn_store_release_u32(&control->gate, 0);
        return 0;
    }
    if (guard->win->crowded) {
        /* An owner of the guard that lost its core would keep all others waiting. */
        return 0;
    }
    if (DN_CELL >= bytes) {
        return 0;
    }
    control->most = 0 == control->most ? DN_RMA_CLOSE : control->most;
    control->longs += bytes;
    return control->most <= control->longs && 0 != dn_rma_gate_close(guard);
}
/** @} */
