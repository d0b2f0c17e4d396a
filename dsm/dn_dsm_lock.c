/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_lock.c
 * Locks are queues of processes. The home of a lock has a word, the tail, which names the last process of the queue. A process that wants
 * the lock swaps itself into the tail, and tells the process before it, by an AOTF into the LLCM of that process. That process hands the
 * lock over by a line of LLCM, which the waiting process polls.
 *
 *   ask:      swap the tail. If it was 0, this process has the lock. Else AOTF "this process is next" to the process that was there,
 *             and poll the own line
 *   give:     if no process is next, compare and swap the tail back to 0. Else, or if that fails, wait until `next` is set; send the line
 *
 * So a hand-over takes the time of one line, wherever the home is. The line has the last notes beside its flag. Notes before these are in
 * the log of the lock. The holder PUSHes its notes to the log at the home before it hands over. A new holder that is behind PULLs them.
 *
 * The flag is the turn of the waiting process, a number that it has told the process before it. No turn is used twice. A process clears its
 * word `next` before it swaps itself in: no other process can write the word then.
 */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <string.h>

/** In dn_dsm_lines_t::next: the turn is above the rank. */
#define DN_DSM_TURN_SHIFT 16

/** @name Words and lines */
/** @{ */
static uint32_t dn_dsm_lock_home(const dn_dsm_t *dsm, uint32_t lock)
{
    return lock % dsm->ranks;
}

/** Where a lock's word is in the desk of its home. The words are at the start of the desk. */
static uint64_t dn_dsm_lock_off(const dn_dsm_t *dsm, uint32_t lock)
{
    return (uint64_t) (lock / dsm->ranks) * sizeof(dn_dsm_word_t);
}

static dn_status_t dn_dsm_lock_aotf(dn_dsm_t *dsm, uint32_t rank, uint64_t off, uint64_t value)
{
    dn_wait_t wait = {0};
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_aotf(dsm->peer[rank], off, value, sizeof(value)))) {
        status = dn_dsm_wait(dsm, &wait, 0);
        if (DN_OK != status) {
            return status;
        }
    }
    return status;
}

/** Poll a word of the own LLCM. @param[in] until  Until it is @p value; false: until it is another value. */
static dn_status_t dn_dsm_lock_poll(dn_dsm_t *dsm, const uint64_t *word, uint64_t value, bool until)
{
    dn_wait_t wait = {0};

    while (until != (value == dn_load_acquire(word))) {
        const dn_status_t status = dn_dsm_wait(dsm, &wait, 0);
        if (DN_OK != status) {
            return status;
        }
    }
    return DN_OK;
}
/** @} */

/** @name The queue */
/** @{ */
/** SWAP or CAS of the tail of a lock, at its home. @param[out] before_p  The value before. */
static dn_status_t dn_dsm_lock_swap(dn_dsm_t *dsm, uint32_t lock, dn_amo_op_t op, uint64_t compare,
                                    uint64_t operand, uint64_t *before_p)
{
    const uint32_t home = dn_dsm_lock_home(dsm, lock);
    dn_amo_t amo = {.op = op,
                    .width = sizeof(uint64_t),
                    .compare = compare,
                    .operand = operand,
                    .key = &dsm->card[home].desk,
                    .roff = dn_dsm_lock_off(dsm, lock)};

    return dn_dsm_amo(dsm, home, &amo, before_p);
}

/** Ask for a lock, and wait until this process has it. @param[out] handed_p  Another process has handed it over, by the own line. */
static dn_status_t dn_dsm_lock_ask(dn_dsm_t *dsm, uint32_t lock, bool *handed_p)
{
    dn_dsm_lines_t *lines = &dsm->lines[lock];
    const uint64_t us = 1 + (uint64_t) dsm->rank;
    uint64_t before = 0;

    dn_store_release(&lines->next, 0);
    dsm->lock[lock].turn++;
    dn_status_t status = dn_dsm_lock_swap(dsm, lock, DN_AMO_SWAP, 0, us, &before);
    *handed_p = 0 != before;
    if (DN_OK != status || 0 == before) {
        return status;
    }
    if (before > dsm->ranks || before == us) {
        dn_log_error("shared memory: the word of lock %u was overwritten", (unsigned) lock);
        return DN_ERR_PROTO;
    }
    status = dn_dsm_lock_aotf(dsm, (uint32_t) before - 1,
                              dsm->card[before - 1].lines + lock * sizeof(dn_dsm_lines_t)
                                  + offsetof(dn_dsm_lines_t, next),
                              us | dsm->lock[lock].turn << DN_DSM_TURN_SHIFT);
    return DN_OK != status ? status : dn_dsm_lock_poll(dsm, &lines->flag, dsm->lock[lock].turn, true);
}

/** Give a lock to the next process, if there is one. @param[in] line  All of the line but its flag. */
static dn_status_t dn_dsm_lock_give(dn_dsm_t *dsm, uint32_t lock, const dn_dsm_lines_t *line)
{
    dn_dsm_lines_t *lines = &dsm->lines[lock];
    const uint64_t us = 1 + (uint64_t) dsm->rank;
    dn_status_t status;

    if (dsm->serves && 0 == dn_load_acquire(&lines->next)) {
        /* A process that waits may have told this by a message that has not been looked at. */
        (void) dn_progress(dsm->port);
    }
    if (0 == dn_load_acquire(&lines->next)) {
        uint64_t found = 0;
        status = dn_dsm_lock_swap(dsm, lock, DN_AMO_CAS, us, 0, &found);
        if (DN_OK != status || us == found) {
            return status;
        }
        status = dn_dsm_lock_poll(dsm, &lines->next, 0, false);
        if (DN_OK != status) {
            return status;
        }
    }
    const uint64_t next = dn_load_acquire(&lines->next);
    const uint32_t rank = (uint32_t) (next & ((1u << DN_DSM_TURN_SHIFT) - 1)) - 1;
    dn_wait_t wait = {0};
    if (rank >= dsm->ranks || rank == dsm->rank) {
        dn_log_error("shared memory: a line of lock %u was overwritten", (unsigned) lock);
        return DN_ERR_PROTO;
    }
    while (DN_ERR_AGAIN
           == (status = dn_aotf_line(dsm->peer[rank], dsm->card[rank].lines + lock * sizeof(dn_dsm_lines_t),
                                     line, DN_AOTF_LINE_MAX, next >> DN_DSM_TURN_SHIFT))) {
        status = dn_dsm_wait(dsm, &wait, 0);
        if (DN_OK != status) {
            return status;
        }
    }
    return status;
}
/** @} */

/** @name Notices in the log of a lock */
/** @{ */
/** Move bytes of a lock's word at its home to or from memory here. */
static dn_status_t dn_dsm_lock_move(dn_dsm_t *dsm, uint32_t lock, void *local, const dn_sg_t *local_sg,
                                    const dn_sg_t *remote_sg, uint64_t len, bool write)
{
    const uint32_t home = dn_dsm_lock_home(dsm, lock);
    dn_xfer_t xfer = {.local = local,
                      .local_sg = local_sg,
                      .key = &dsm->card[home].desk,
                      .roff = dn_dsm_lock_off(dsm, lock),
                      .remote_sg = remote_sg,
                      .len = len};

    return dn_dsm_move(dsm, home, &xfer, write);
}

/** Find where notes seq .. seq + count - 1 are in the word: in two blocks, of which the second may be empty. */
static void dn_dsm_lock_blocks(uint64_t seq, uint64_t count, dn_block_t block[2])
{
    const uint64_t at = seq % DN_DSM_LOG;
    const uint64_t first = at + count <= DN_DSM_LOG ? count : DN_DSM_LOG - at;

    block[0] = (dn_block_t){.at = offsetof(dn_dsm_word_t, log) + at * sizeof(dn_dsm_note_t),
                            .len = first * sizeof(dn_dsm_note_t)};
    block[1] =
        (dn_block_t){.at = offsetof(dn_dsm_word_t, log), .len = (count - first) * sizeof(dn_dsm_note_t)};
}

/** Hear what the lock was told since this process had it. `sync` is held. @param[in] handed  The lock was handed over by the own line. */
static dn_status_t dn_dsm_lock_hear(dn_dsm_t *dsm, uint32_t lock, bool handed)
{
    dn_dsm_lock_t *own = &dsm->lock[lock];
    const dn_dsm_lines_t *line = &dsm->lines[lock];
    uint64_t seq = line->seq;
    dn_status_t status = DN_OK;

    if (!handed) {
        const dn_block_t block = {.at = offsetof(dn_dsm_word_t, seq), .len = sizeof(seq)};
        const dn_sg_t sg = {.block = &block, .count = 1};
        status = dn_dsm_lock_move(dsm, lock, &seq, NULL, &sg, sizeof(seq), false);
    }
    const uint64_t behind = seq - own->seq;
    if (DN_OK != status || 0 == behind) {
        return status;
    }
    own->seq = seq;
    if (DN_DSM_LOG < behind) {
        /* This process does not get all notes, so it cannot tell them to others either. */
        dn_dsm_page_all_stale(dsm);
        dn_dsm_blind_set(dsm, lock);
        return DN_OK;
    }
    if (handed && behind == line->count && behind <= sizeof(line->note) / sizeof(line->note[0])) {
        dn_dsm_hear(dsm, line->note, behind, lock);
        return DN_OK;
    }
    dn_block_t block[2];
    const dn_sg_t sg = {.block = block, .count = 2};
    dn_dsm_lock_blocks(seq - behind, behind, block);
    status = dn_dsm_lock_move(dsm, lock, dsm->out, NULL, &sg, behind * sizeof(dn_dsm_note_t), false);
    if (DN_OK == status) {
        dn_dsm_hear(dsm, dsm->out, behind, lock);
    }
    return status;
}

/** Tell the lock what the next holder has to know. `sync` is held. @param[out] line  All of the line but its flag. */
static dn_status_t dn_dsm_lock_tell(dn_dsm_t *dsm, uint32_t lock, dn_dsm_lines_t *line)
{
    dn_dsm_lock_t *own = &dsm->lock[lock];
    const bool all = DN_DSM_SCOPE != dsm->protocol
                     && own->told < (lock == dsm->blind.by ? dsm->blind.other : dsm->blind.stamp);
    uint64_t count = dn_dsm_notes_get(&dsm->notes, own->told, lock, dsm->out, DN_DSM_LOG);
    uint64_t *seq = (uint64_t *) (dsm->out + DN_DSM_LOG);

    own->told = dsm->notes.stamp;
    if (0 == count && !all) {
        *line = (dn_dsm_lines_t){.seq = own->seq};
        return DN_OK;
    }
    const uint64_t before = own->seq;
    if (all || DN_DSM_LOG < count) {
        /* Too many notes: the number grows so far that every process is too far behind, and drops all copies. */
        own->seq += 2 * DN_DSM_LOG;
        count = 0;
    } else {
        own->seq += count;
    }
    *line = (dn_dsm_lines_t){.seq = own->seq, .count = (uint32_t) count};
    memcpy(line->note, dsm->out, count < 3 ? count * sizeof(dn_dsm_note_t) : sizeof(line->note));
    *seq = own->seq;
    const dn_block_t local[2] = {{.at = 0, .len = count * sizeof(dn_dsm_note_t)},
                                 {.at = DN_DSM_LOG * sizeof(dn_dsm_note_t), .len = sizeof(*seq)}};
    dn_block_t remote[3] = {[2] = {.at = offsetof(dn_dsm_word_t, seq), .len = sizeof(*seq)}};
    const dn_sg_t local_sg = {.block = local, .count = 2}, remote_sg = {.block = remote, .count = 3};
    dn_dsm_lock_blocks(before, count, remote);
    return dn_dsm_lock_move(dsm, lock, dsm->out, &local_sg, &remote_sg,
                            count * sizeof(dn_dsm_note_t) + sizeof(*seq), true);
}
/** @} */

/** Acquire with a lock that this process has got: hear notices, and drop stale copies. */
static dn_status_t dn_dsm_lock_acquire(dn_dsm_t *dsm, uint32_t lock, bool handed)
{
    const uint64_t began = dn_dsm_clock();
    dn_status_t status = DN_OK;

    pthread_mutex_lock(&dsm->sync);
    if (dn_dsm_is_eager(dsm)) {
        dn_dsm_hear_rings(dsm);
    } else {
        status = dn_dsm_lock_hear(dsm, lock, handed);
    }
    dn_dsm_page_loose_stale(dsm);
    if (DN_OK == status) {
        status = dn_dsm_page_drop(dsm);
    }
    if (DN_DSM_SCOPE == dsm->protocol) {
        dsm->lock[lock].told = dsm->notes.stamp;
    }
    pthread_mutex_unlock(&dsm->sync);
    dn_dsm_count(&dsm->stat.acquire_ns, dn_dsm_clock() - began);
    return status;
}

/** Has this thread the lock? Relaxed: only this thread writes its own number there, so it finds this number only if it has the lock. */
static bool dn_dsm_lock_is_ours(const dn_dsm_t *dsm, uint32_t lock)
{
    return dn_load_relaxed(&dsm->lock[lock].owner) == (uintptr_t) &dn_dsm_inside;
}

dn_status_t dn_dsm_lock(dn_dsm_t *dsm, uint32_t lock)
{
    bool handed = false;

    if (lock >= dsm->locks) {
        dn_log_error("shared memory: there is no lock %u, but %u", (unsigned) lock, (unsigned) dsm->locks);
        return DN_ERR_PARAM;
    }
    const uint64_t began = dn_dsm_clock();
    if (dn_dsm_lock_is_ours(dsm, lock)) {
        dn_log_error("shared memory: the thread has lock %u already", (unsigned) lock);
        return DN_ERR_PARAM;
    }
    dn_status_t status = dn_dsm_gate_enter(dsm, "dn_dsm_lock()");
    if (DN_OK != status) {
        return status;
    }
    pthread_mutex_lock(&dsm->lock[lock].mutex);
    dn_dsm_inside++;
    status = dn_dsm_is_whole(dsm);
    if (DN_OK == status && 1 < dsm->ranks) {
        status = dn_dsm_lock_ask(dsm, lock, &handed);
    }
    dn_dsm_count(&dsm->stat.locks, 1);
    dn_dsm_count(&dsm->stat.lock_waits, handed);
    dn_dsm_count(&dsm->stat.lock_ns, dn_dsm_clock() - began);
    if (DN_OK == status && !dsm->shares && 1 < dsm->ranks) {
        status = dn_dsm_lock_acquire(dsm, lock, handed);
    }
    status = dn_dsm_must(dsm, status, "dn_dsm_lock()");
    dn_dsm_inside--;
    if (DN_OK == status) {
        dn_store_relaxed(&dsm->lock[lock].owner, (uintptr_t) &dn_dsm_inside);
    } else {
        pthread_mutex_unlock(&dsm->lock[lock].mutex);
    }
    dn_dsm_gate_leave(dsm, 1);
    return status;
}

dn_status_t dn_dsm_unlock(dn_dsm_t *dsm, uint32_t lock)
{
    dn_dsm_lines_t line = {0};
    dn_status_t status;

    if (lock >= dsm->locks || !dn_dsm_lock_is_ours(dsm, lock)) {
        dn_log_error("shared memory: the thread does not have lock %u", (unsigned) lock);
        return DN_ERR_PARAM;
    }
    status = dn_dsm_gate_enter(dsm, "dn_dsm_unlock()");
    if (DN_OK != status) {
        return status;
    }
    dn_dsm_inside++;
    status = dn_dsm_is_whole(dsm);
    if (DN_OK == status && !dsm->shares && 1 < dsm->ranks) {
        pthread_mutex_lock(&dsm->sync);
        status = dn_dsm_tell_release(dsm);
        if (DN_OK == status && !dn_dsm_is_eager(dsm)) {
            status = dn_dsm_lock_tell(dsm, lock, &line);
        }
        pthread_mutex_unlock(&dsm->sync);
    }
    if (DN_OK == status && 1 < dsm->ranks) {
        status = dn_dsm_lock_give(dsm, lock, &line);
    }
    status = dn_dsm_must(dsm, status, "dn_dsm_unlock()");
    dn_store_relaxed(&dsm->lock[lock].owner, 0);
    pthread_mutex_unlock(&dsm->lock[lock].mutex);
    dn_dsm_inside--;
    dn_dsm_gate_leave(dsm, 1);
    return status;
}
