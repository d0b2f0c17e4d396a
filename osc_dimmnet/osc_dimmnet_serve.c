/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_serve.c
 * The target's side of the channel: what origins ask is checked and carried out, inside of dn_progress().
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

/** A process that waits for the lock of this one. */
typedef struct osc_waiting {
    struct osc_waiting *next;
    osc_module_t *module;
    int rank;
    osc_patience_t patience;
} osc_waiting_t;

static osc_waiting_t *waiting_first;
static opal_mutex_t waiting_lock = OPAL_MUTEX_STATIC_INIT;

/** What is wrong with a message that no origin sends. */
enum wrong {
    WRONG_PIECE,
    WRONG_LAYOUT,
    WRONG_LOCK,
    WRONG_QUESTION,
    WRONG_KIND,
    WRONG_LENGTH,
    WRONG_SENDER,
    WRONG_MANY,
};

static uint32_t told; /**< bits of enum wrong that need not be told again */

/** Such a message is dropped. A flood of them costs a text for each kind, and no more: the port is locked meanwhile. */
static void refuse(enum wrong wrong)
{
    static const char *const why[] = {
        [WRONG_PIECE] = "a piece of a layout that does not follow the last",
        [WRONG_LAYOUT] = "a layout that is none",
        [WRONG_LOCK] = "a second lock of who has it",
        [WRONG_QUESTION] = "a question for a region of a window without regions",
        [WRONG_KIND] = "a request of no kind",
        [WRONG_LENGTH] = "a message that is too short",
        [WRONG_SENDER] = "a request in the name of another process",
        [WRONG_MANY] = "an accumulate before answers to earlier ones",
    };
    const uint32_t bit = 1u << wrong;

    /* Pairs with itself: one of those that find the bit clear sets it. Nothing else is handed over by it. */
    if (0 == (bit & __atomic_fetch_or(&told, bit, __ATOMIC_RELAXED))) {
        dn_ompi_help("bad-request", opal_process_info.nodename, why[wrong]);
    }
}

/** Is a request from the process of the window that it says it is from? */
static bool is_from(const osc_module_t *module, const dn_peer_t *src, const osc_head_t *head)
{
    /* Pairs with the store in place_targets(): who finds the peer finds the whole window. */
    return 0 <= head->rank && head->rank < module->size
           && src == __atomic_load_n(&module->far[head->rank].peer, __ATOMIC_ACQUIRE);
}

static osc_queued_t *answer_of(dn_peer_t *src, unsigned tag, const void *bytes, size_t len, const void *more,
                               size_t more_len)
{
    osc_queued_t *queued = ompi_osc_dimmnet_answer_new(src, tag, len + more_len);

    memcpy(queued->bytes, bytes, len);
    if (0 != more_len) {
        memcpy(queued->bytes + len, more, more_len);
    }
    return queued;
}

static void answer(dn_peer_t *src, unsigned tag, const void *bytes, size_t len, const void *more,
                   size_t more_len)
{
    ompi_osc_dimmnet_answer(answer_of(src, tag, bytes, len, more, more_len));
}

/** Start the walk over the elements that a request names, where they are in the window. @return an error for the origin. */
static int target_walk(osc_module_t *module, const osc_head_t *head, dn_prog_cursor_t *cursor)
{
    const osc_far_t *far = &module->far[head->rank];
    const osc_target_t *own = &module->target[module->rank];
    const bool dynamic = MPI_WIN_FLAVOR_DYNAMIC == module->flavor;
    const uint64_t base = dynamic ? 0 : (uintptr_t) own->base;
    const dn_prog_use_t use = {far->its_prog, head->count, head->extent};
    dn_prog_span_t span = {.size = head->count, .low = 0, .high = (int64_t) head->count};
    osc_region_t region;

    if (0 != (head->flags & OSC_BY_PROGRAM)
        && (NULL == far->its_prog || DN_OK != dn_prog_span(&use, &span))) {
        return OMPI_ERR_RMA_RANGE;
    }
    const uint64_t low = head->at + (uint64_t) span.low;
    const uint64_t len = (uint64_t) span.high - (uint64_t) span.low;
    if (head->skip > span.size || head->len > span.size - head->skip
        || (dynamic ? OMPI_SUCCESS != ompi_osc_dimmnet_own_region(module, low, len, &region)
                    : low > own->size || len > own->size - low)) {
        return OMPI_ERR_RMA_RANGE;
    }
    if (0 != (head->flags & OSC_BY_PROGRAM)) {
        dn_prog_start(cursor, &use, base + head->at);
    } else {
        dn_prog_start_bytes(cursor, base + head->at, head->count);
    }
    dn_prog_seek(cursor, head->skip);
    return OMPI_SUCCESS;
}

/** compare_and_swap on one element, whose operands are in @p data. */
static int compare_here(dn_acc_walk_t *walk, const uint8_t *data, uint8_t *old)
{
    uint64_t at;

    (void) dn_prog_next(&walk->target, walk->element.size, &at);
    return osc_acc_error(dn_acc_swap(walk->guard, &walk->element, (void *) (uintptr_t) at, data,
                                     data + walk->element.size, old));
}

/** An accumulate whose walk over the target has begun. The operands are in @p data. @return as dn_acc_walk(). */
static int accumulate_here(dn_acc_walk_t *walk, const osc_head_t *head, const uint8_t *data, size_t len,
                           uint8_t *old)
{
    uint64_t at;

    if (0 == (head->flags & OSC_BY_PROGRAM) && 0 != head->len && !dn_element_has_gaps(&walk->element)) {
        /* Elements side by side. What one instruction does needs no guard here either. */
        (void) dn_prog_next(&walk->target, head->len, &at);
        return osc_acc_error(dn_acc_apply(walk->guard, &walk->element, walk->op, (void *) (uintptr_t) at,
                                          data, walk->fetches ? old : NULL, head->len / walk->element.size));
    }
    dn_prog_start_bytes(&walk->origin, (uintptr_t) data, len);
    dn_prog_start_bytes(&walk->result, (uintptr_t) old, walk->fetches ? head->len : 0);
    return osc_acc_error(dn_acc_walk(walk, head->len));
}

osc_queued_t *ompi_osc_dimmnet_serve(osc_module_t *module, dn_peer_t *src, const osc_head_t *head,
                                     const uint8_t *data, size_t len, osc_patience_t *patience)
{
    ompi_datatype_t *type = (ompi_datatype_t *) PMPI_Type_f2c(head->type);
    const bool compares = 0 != (head->flags & OSC_COMPARES);
    const bool fetches = 0 != (head->flags & OSC_FETCHES);
    dn_acc_walk_t walk = {.op = (dn_acc_op_t) head->op, .fetches = fetches};
    osc_answer_t reply = {.task = head->task, .off = head->skip, .error = OMPI_ERR_BAD_PARAM};
    dn_peer_attr_t attr;

    dn_peer_attr(src, &attr);
    if (NULL == type || MPI_DATATYPE_NULL == type || !ompi_datatype_is_predefined(type)
        || !ompi_osc_dimmnet_is_defined(head->op, type) || head->len > attr.botf_max) {
        return answer_of(src, OSC_ANSWER, &reply, sizeof(reply), NULL, 0);
    }
    walk.element = osc_element(type);
    const osc_guard_t guard = osc_guard_of(module, &module->control->accumulates, patience);
    walk.guard = &guard.super;
    const uint64_t wanted = compares                  ? 2 * (uint64_t) walk.element.size
                            : DN_ACC_NO_OP == walk.op ? 0
                                                      : head->len;
    /* The answer to compare_and_swap has room for what is there, and its one element lies together. */
    const bool comparable = fetches && 0 == (head->flags & OSC_BY_PROGRAM)
                            && dn_element_has_words(&walk.element) && head->len == walk.element.size;
    if (wanted == len && 0 != walk.element.size && 0 == head->len % walk.element.size
        && 0 == head->skip % walk.element.size && (!compares || comparable)) {
        reply.error = target_walk(module, head, &walk.target);
    }
    osc_queued_t *queued =
        ompi_osc_dimmnet_answer_new(src, OSC_ANSWER, sizeof(reply) + (fetches ? head->len : 0));
    uint8_t *results = queued->bytes + sizeof(reply);
    if (OMPI_SUCCESS == reply.error && compares) {
        reply.error = compare_here(&walk, data, results);
    } else if (OMPI_SUCCESS == reply.error) {
        reply.error = accumulate_here(&walk, head, data, len, results);
    }
    if (OMPI_ERR_WOULD_BLOCK == reply.error) {
        free(queued);
        return NULL;
    }
    if (OMPI_SUCCESS != reply.error) {
        /* Bytes for results may be unset. */
        queued->len = sizeof(reply);
    }
    memcpy(queued->bytes, &reply, sizeof(reply));
    return queued;
}

/** A piece of a program; with the last one it becomes what accumulates of this rank use. */
static void on_program(osc_far_t *far, const osc_head_t *head, const uint8_t *data, size_t len)
{
    /* What fits into the bytes is enough of a limit: they are all there before it is decoded. */
    static const dn_prog_limits_t limits = {.max_ops = OSC_PROGRAM_MAX / sizeof(dn_prog_op_t),
                                            .max_places = OSC_PROGRAM_MAX / sizeof(int64_t),
                                            .max_depth = DN_PROG_DEPTH_MAX};

    if (0 == head->skip) {
        /* The one before is not meant any more, whatever becomes of this one. */
        dn_prog_free(far->its_prog);
        far->its_prog = NULL;
        free(far->its_bytes);
        far->its_bytes = OSC_PROGRAM_MAX >= head->count ? malloc(head->count) : NULL;
        far->its_have = 0;
        far->its_total = head->count;
    }
    if (NULL == far->its_bytes || head->skip != far->its_have || len > far->its_total - far->its_have) {
        refuse(WRONG_PIECE);
        return;
    }
    memcpy(far->its_bytes + far->its_have, data, len);
    far->its_have += len;
    if (far->its_have == far->its_total) {
        if (DN_OK != dn_prog_decode(far->its_bytes, far->its_total, &limits, &far->its_prog)) {
            refuse(WRONG_LAYOUT);
        }
        free(far->its_bytes);
        far->its_bytes = NULL;
    }
}

void ompi_osc_dimmnet_take_back(osc_module_t *module, int rank)
{
    osc_far_t *far = &module->far[rank];
    uint32_t expected = OSC_LOCKS;

    /* Sequential, with grant() and lost(): one of the two sees what the other has stored, and one of them takes it back. */
    if (__atomic_compare_exchange_n(&far->locks, &expected, OSC_LOCKS_NOT, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
        dn_ticket_give(&module->control->lock, far->exclusive, far->number);
        ompi_osc_dimmnet_lock_ring(module, module->rank, far->number);
    }
}

/** Grant the lock if it is the turn of this rank. */
static bool grant(osc_module_t *module, int rank)
{
    osc_far_t *far = &module->far[rank];

    if (!dn_ticket_try(&module->control->lock, far->exclusive, far->number)) {
        return false;
    }
    if (!far->exclusive) {
        ompi_osc_dimmnet_lock_ring(module, module->rank, far->number);
    }
    __atomic_store_n(&far->locks, OSC_LOCKS, __ATOMIC_SEQ_CST);
    if (0 != __atomic_load_n(&far->lost, __ATOMIC_SEQ_CST)) {
        ompi_osc_dimmnet_take_back(module, rank);
        return true;
    }
    const osc_head_t head = ompi_osc_dimmnet_head(module, rank);
    answer(far->peer, OSC_GRANT, &head, sizeof(head), NULL, 0);
    return true;
}

/** The lock will not be had any more: say so to who waits for it. @return false: it may be had. */
static bool refuse_lock(osc_waiting_t *waiting)
{
    osc_module_t *module = waiting->module;

    if (!ompi_osc_dimmnet_time_to_look(&waiting->patience)
        || !ompi_osc_dimmnet_lock_dead(module, module->rank)) {
        return false;
    }
    osc_head_t head = ompi_osc_dimmnet_head(module, waiting->rank);
    head.flags = OSC_NEVER;
    osc_store_u32(&module->far[waiting->rank].locks, OSC_LOCKS_NOT);
    answer(module->far[waiting->rank].peer, OSC_GRANT, &head, sizeof(head), NULL, 0);
    return true;
}

static void wait_for_lock(osc_waiting_t *waiting)
{
    opal_mutex_lock(&waiting_lock);
    waiting->next = waiting_first;
    waiting_first = waiting;
    opal_mutex_unlock(&waiting_lock);
}

static void on_lock(osc_module_t *module, const osc_head_t *head)
{
    osc_far_t *far = &module->far[head->rank];

    if (OSC_LOCKS_NOT != osc_load_u32(&far->locks)) {
        refuse(WRONG_LOCK);
        return;
    }
    osc_store_u32(&far->locks, OSC_LOCKS_SOON);
    far->number = dn_ticket_draw(&module->control->lock);
    far->exclusive = 0 != (head->flags & OSC_EXCLUSIVELY);
    if (grant(module, head->rank)) {
        return;
    }
    osc_waiting_t *waiting = malloc(sizeof(*waiting));
    if (NULL == waiting) {
        ompi_osc_dimmnet_no_memory();
    }
    /* Besides the hold of the message. By its number another window may be found by now. */
    ompi_osc_dimmnet_window_hold(module);
    *waiting = (osc_waiting_t){.module = module, .rank = head->rank};
    wait_for_lock(waiting);
}

int ompi_osc_dimmnet_grant_waiting(void)
{
    osc_waiting_t *all, *next;
    int granted = 0;

    /* A look without the lock: who comes meanwhile is seen the next time. */
    if (NULL == __atomic_load_n(&waiting_first, __ATOMIC_RELAXED)) {
        return 0;
    }
    opal_mutex_lock(&waiting_lock);
    all = waiting_first;
    waiting_first = NULL;
    opal_mutex_unlock(&waiting_lock);
    for (; NULL != all; all = next) {
        next = all->next;
        if (grant(all->module, all->rank) || refuse_lock(all)) {
            ompi_osc_dimmnet_window_leave(all->module);
            free(all);
            granted++;
        } else {
            wait_for_lock(all);
        }
    }
    return granted;
}

void ompi_osc_dimmnet_forget_waiting(osc_module_t *module)
{
    opal_mutex_lock(&waiting_lock);
    for (osc_waiting_t **at = &waiting_first; NULL != *at;) {
        osc_waiting_t *waiting = *at;

        if (module == waiting->module) {
            *at = waiting->next;
            free(waiting);
            ompi_osc_dimmnet_window_leave(module);
        } else {
            at = &waiting->next;
        }
    }
    opal_mutex_unlock(&waiting_lock);
}

static void on_find(osc_module_t *module, dn_peer_t *src, const osc_head_t *head)
{
    osc_answer_t reply = {.task = head->task};
    osc_region_t region = {0};

    if (MPI_WIN_FLAVOR_DYNAMIC != module->flavor) {
        refuse(WRONG_QUESTION);
        return;
    }
    if (OMPI_SUCCESS != ompi_osc_dimmnet_own_region(module, head->at, head->len, &region)) {
        region.len = 0;
    }
    answer(src, OSC_ANSWER, &reply, sizeof(reply), &region, sizeof(region));
}

/** A request from one who shares the window. */
static void on_request(osc_module_t *module, dn_peer_t *src, unsigned tag, const osc_head_t *head,
                       const uint8_t *body, size_t len)
{
    osc_far_t *far = &module->far[head->rank];

    switch (tag) {
    case OSC_ACCUMULATE:
        if (OSC_ASKED_MAX <= osc_load_u32(&far->later)) {
            refuse(WRONG_MANY);
        } else {
            ompi_osc_dimmnet_in_order(module, src, head, body, len);
        }
        break;
    case OSC_PROGRAM:
        if (0 != osc_load_u32(&far->later)) {
            /* What waits uses the one before. */
            refuse(WRONG_PIECE);
        } else {
            on_program(far, head, body, len);
        }
        break;
    case OSC_LOCK:
        on_lock(module, head);
        break;
    case OSC_GRANT:
        osc_store_u32(&far->granted, 0 == (head->flags & OSC_NEVER) ? OSC_GRANT_GIVEN : OSC_GRANT_NEVER);
        break;
    case OSC_UNLOCK:
        ompi_osc_dimmnet_take_back(module, head->rank);
        break;
    case OSC_POST:
        osc_publish(&module->control->notes[head->rank].posts);
        break;
    case OSC_COMPLETE:
        osc_publish(&module->control->notes[head->rank].completes);
        break;
    case OSC_FIND:
        on_find(module, src, head);
        break;
    default:
        refuse(WRONG_KIND);
        break;
    }
}

void ompi_osc_dimmnet_receive(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    osc_answer_t reply;
    osc_head_t head;

    if (OSC_ANSWER == tag && sizeof(reply) <= len) {
        memcpy(&reply, data, sizeof(reply));
        ompi_osc_dimmnet_answered(src, &reply, (const uint8_t *) data + sizeof(reply), len - sizeof(reply));
        return;
    }
    if (sizeof(head) > len) {
        refuse(WRONG_LENGTH);
        return;
    }
    memcpy(&head, data, sizeof(head));
    osc_module_t *module = ompi_osc_dimmnet_window(head.window);
    if (NULL == module) {
        return;
    }
    if (is_from(module, src, &head)) {
        on_request(module, src, tag, &head, (const uint8_t *) data + sizeof(head), len - sizeof(head));
    } else {
        refuse(WRONG_SENDER);
    }
    ompi_osc_dimmnet_window_leave(module);
}
