/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_rma_int.h"

/** What is wrong with a message that was dropped. */
enum dn_rma_wrong {
    DN_RMA_WRONG_PIECE,
    DN_RMA_WRONG_QUESTION,
    DN_RMA_WRONG_KIND,
    DN_RMA_WRONG_LENGTH,
    DN_RMA_WRONG_SENDER,
    DN_RMA_WRONG_MANY,
    DN_RMA_WRONG_OFFER,
};

/** Report a wrong message, once for each sort: the port is locked meanwhile, so a flood of such messages must not cost more. */
static void dn_rma_refuse(dn_rma_t *rma, enum dn_rma_wrong wrong)
{
    static const char *const why[] = {
        [DN_RMA_WRONG_PIECE] = "a piece of a layout that is none, or does not follow the last",
        [DN_RMA_WRONG_QUESTION] = "a question for a region of a window without regions",
        [DN_RMA_WRONG_KIND] = "a request of no kind",
        [DN_RMA_WRONG_LENGTH] = "a message that is too short",
        [DN_RMA_WRONG_SENDER] = "a request in the name of another process",
        [DN_RMA_WRONG_MANY] = "an accumulate before answers to earlier ones",
        [DN_RMA_WRONG_OFFER] = "puts or gets that are not in the window, or have other lengths than it says",
    };
    const uint32_t bit = 1u << wrong;

    /* Pairs with itself: one of those that find the bit clear sets it. */
    if (0 == (bit & dn_fetch_or_acq_rel(&rma->told, bit))) {
        rma->config.refused(why[wrong]);
    }
}

/** Does a request come from the process whose rank it names? */
static bool dn_rma_is_from(const dn_rma_win_t *win, const dn_peer_t *src, int32_t rank)
{
    /* Pairs with the store in dn_rma_win_place(): who finds the peer finds the whole window. */
    return 0 <= rank && rank < win->size && src == dn_load_acquire(&win->far[rank].peer);
}

/** An accumulate that this process carries out for an origin. */
typedef struct dn_rma_work {
    const dn_rma_head_t *head;
    const uint8_t *data; /**< operands */
    size_t len;          /**< bytes of these */
    dn_prog_t *blocks;   /**< the layout of DN_RMA_BY_BLOCKS; NULL: not by blocks */
    dn_acc_walk_t walk;
} dn_rma_work_t;

/** Make a layout of the blocks that stand before the operands. */
static dn_status_t dn_rma_read_blocks(dn_rma_work_t *work, dn_prog_use_t *use)
{
    const uint64_t n = work->head->count;
    dn_prog_op_t *op;

    if (0 == n || work->len / sizeof(dn_block_t) < n) {
        return DN_ERR_PARAM;
    }
    op = calloc(n, sizeof(*op));
    if (NULL == op) {
        return DN_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < n; i++) {
        dn_block_t block;

        memcpy(&block, work->data + i * sizeof(block), sizeof(block));
        op[i] = (dn_prog_op_t){.kind = DN_PROG_RUN, .at = (int64_t) block.at, .len = block.len, .count = 1};
    }
    const dn_status_t status = dn_prog_create(op, n, &work->blocks);
    free(op);
    work->data += n * sizeof(dn_block_t);
    work->len -= n * sizeof(dn_block_t);
    *use = (dn_prog_use_t){work->blocks, 1, 0};
    return status;
}

/** Find the layout that a request names. @param[out] use  Without a program: bytes that lie together. */
static dn_status_t dn_rma_find_layout(const dn_rma_win_t *win, dn_rma_work_t *work, dn_prog_use_t *use)
{
    const dn_rma_head_t *head = work->head;
    const dn_rma_far_t *far = &win->far[head->rank];
    dn_ship_prog_t *shipped = NULL;

    *use = (dn_prog_use_t){.prog = NULL};
    if (0 != (DN_RMA_BY_BLOCKS & head->flags)) {
        return dn_rma_read_blocks(work, use);
    }
    if (0 == (DN_RMA_BY_PROGRAM & head->flags)) {
        return DN_OK;
    }
    const dn_status_t status =
        NULL == far->its ? DN_ERR_PROTO : dn_ship_in_find(far->its, head->slot, head->layout, &shipped);
    if (DN_OK == status) {
        *use = (dn_prog_use_t){shipped->prog, head->count, head->extent};
    }
    return status;
}

/** Start the walk over the elements that a request names, where they are in the window. @return an error for the origin. */
static dn_status_t dn_rma_start_target(const dn_rma_win_t *win, dn_rma_work_t *work)
{
    const dn_rma_head_t *head = work->head;
    dn_prog_span_t span = {.size = head->count, .low = 0, .high = (int64_t) head->count};
    /* Blocks have the data of this part, others that of all. */
    const uint64_t skip = 0 != (DN_RMA_BY_BLOCKS & head->flags) ? 0 : head->skip;
    dn_rma_region_t region;
    dn_prog_use_t use;

    if (DN_OK != dn_rma_find_layout(win, work, &use)
        || (NULL != use.prog && DN_OK != dn_prog_span(&use, &span))) {
        return DN_ERR_RANGE;
    }
    const uint64_t low = head->at + (uint64_t) span.low;
    const uint64_t len = (uint64_t) span.high - (uint64_t) span.low;
    if (skip > span.size || head->len > span.size - skip
        || (win->dynamic ? !win->rma->config.find(win, low, len, &region)
                         : low > win->len || len > win->len - low)) {
        return DN_ERR_RANGE;
    }
    const dn_rma_side_t side = {(uintptr_t) win->base + head->at, head->count, use};
    dn_rma_side_start(&side, &work->walk.target);
    dn_prog_seek(&work->walk.target, skip);
    return DN_OK;
}

/** Carry out an accumulate. @return as dn_acc_walk(). */
static dn_status_t dn_rma_work_here(dn_rma_work_t *work, uint8_t *old)
{
    const dn_rma_head_t *head = work->head;
    dn_acc_walk_t *walk = &work->walk;
    uint64_t at;

    if (DN_ACC_NO_OP == walk->op && !walk->fetches) {
        /* There is nothing to do, and the length is bounded by nothing. */
        return DN_OK;
    }
    if (0 != (DN_RMA_COMPARES & head->flags)) {
        (void) dn_prog_next(&walk->target, walk->element.size, &at);
        return dn_acc_swap(walk->guard, &walk->element, (void *) (uintptr_t) at, work->data,
                           work->data + walk->element.size, old);
    }
    if (0 == ((DN_RMA_BY_PROGRAM | DN_RMA_BY_BLOCKS) & head->flags) && 0 != head->len
        && !dn_element_has_gaps(&walk->element)) {
        /* Elements side by side. What one instruction does passes here, too. */
        (void) dn_prog_next(&walk->target, head->len, &at);
        return dn_acc_apply(walk->guard, &walk->element, walk->op, (void *) (uintptr_t) at, work->data,
                            walk->fetches ? old : NULL, head->len / walk->element.size);
    }
    dn_prog_start_bytes(&walk->origin, (uintptr_t) work->data, work->len);
    dn_prog_start_bytes(&walk->result, (uintptr_t) old, walk->fetches ? head->len : 0);
    return dn_acc_walk(walk, head->len);
}

/** Are there as many operands as the request needs, of whole elements? */
static bool dn_rma_fits(const dn_rma_work_t *work)
{
    const dn_rma_head_t *head = work->head;
    const dn_element_t *element = &work->walk.element;
    const bool compares = 0 != (DN_RMA_COMPARES & head->flags);
    const uint64_t wanted = compares                        ? 2 * (uint64_t) element->size
                            : DN_ACC_NO_OP == work->walk.op ? 0
                                                            : head->len;
    /* The answer to compare_and_swap has room for what is there, and its one element lies together. */
    const bool comparable = work->walk.fetches && 0 == ((DN_RMA_BY_PROGRAM | DN_RMA_BY_BLOCKS) & head->flags)
                            && dn_element_has_words(element) && head->len == element->size;

    return wanted == work->len && 0 != element->size && 0 == head->len % element->size
           && 0 == head->skip % element->size && (!compares || comparable);
}

dn_rma_answer_t *dn_rma_serve(dn_rma_win_t *win, dn_peer_t *src, const dn_rma_head_t *head,
                              const uint8_t *data, size_t len, dn_rma_wait_t *patience)
{
    const bool fetches = 0 != (head->flags & DN_RMA_FETCHES);
    dn_rma_work_t work = {
        .head = head, .data = data, .len = len, .walk = {.op = (dn_acc_op_t) head->op, .fetches = fetches}};
    dn_rma_reply_t reply = {.task = head->task, .off = head->skip, .status = DN_ERR_PARAM};
    const dn_rma_guard_t guard = dn_rma_guard(win, win->control, patience);
    dn_peer_attr_t attr;

    dn_peer_attr(src, &attr);
    /* The length of operands is that of the message; the origin may send longer ones than this process. */
    const bool answerable = !fetches || head->len <= attr.botf_max - sizeof(reply);
    const bool known = answerable && win->rma->config.element(head->type, head->op, &work.walk.element);
    dn_rma_answer_t *answer =
        dn_rma_answer_new(win->rma, src, DN_RMA_ANSWER, sizeof(reply) + (known && fetches ? head->len : 0));
    if (known) {
        work.walk.guard = &guard.super;
        /* First, as blocks stand before the operands. */
        const dn_status_t status = dn_rma_start_target(win, &work);

        if (dn_rma_fits(&work)) {
            reply.status = DN_OK == status ? dn_rma_work_here(&work, answer->bytes + sizeof(reply)) : status;
        }
        dn_prog_free(work.blocks);
    }
    if (DN_ERR_AGAIN == (dn_status_t) reply.status) {
        free(answer);
        return NULL;
    }
    if (DN_OK != (dn_status_t) reply.status) {
        /* Bytes for results may be unset. */
        answer->len = sizeof(reply);
    }
    memcpy(answer->bytes, &reply, sizeof(reply));
    return answer;
}

/** Handle a DN_RMA_LAYOUT: a piece of a layout. */
static void dn_rma_on_piece(dn_rma_win_t *win, dn_rma_far_t *far, const uint8_t *body, size_t len)
{
    dn_ship_piece_t piece;

    if (NULL == far->its) {
        far->its = dn_rma_need(win->rma, sizeof(*far->its));
        memset(far->its, 0, sizeof(*far->its));
    }
    /* What waits is to find its own layout. */
    bool good = sizeof(piece) <= len && 0 == dn_load_acquire_u32(&far->later);
    if (good) {
        memcpy(&piece, body, sizeof(piece));
        good = 0 != dn_ship_in_piece(far->its, &piece, body + sizeof(piece), len - sizeof(piece));
    }
    if (!good) {
        dn_rma_refuse(win->rma, DN_RMA_WRONG_PIECE);
    }
}

static void dn_rma_on_find(dn_rma_win_t *win, dn_peer_t *src, const dn_rma_head_t *head)
{
    const dn_rma_reply_t reply = {.task = head->task};
    dn_rma_region_t region = {.len = 0};

    if (!win->dynamic) {
        dn_rma_refuse(win->rma, DN_RMA_WRONG_QUESTION);
        return;
    }
    dn_rma_answer_t *answer = dn_rma_answer_new(win->rma, src, DN_RMA_ANSWER, sizeof(reply) + sizeof(region));
    if (!win->rma->config.find(win, head->at, head->len, &region)) {
        region = (dn_rma_region_t){.len = 0};
    }
    memcpy(answer->bytes, &reply, sizeof(reply));
    memcpy(answer->bytes + sizeof(reply), &region, sizeof(region));
    dn_rma_answer(win->rma, answer);
}

/** Count an epoch of a far process in its notes, of which this process is the only writer. */
static void dn_rma_on_note(uint64_t *word)
{
    dn_store_release(word, *word + 1);
}

/** Does a message belong to an offer? */
static bool dn_rma_is_offer(unsigned tag)
{
    return DN_RMA_PUT <= tag && DN_RMA_GOT >= tag;
}

/** Handle a request from a process of the window. */
static void dn_rma_on_request(dn_rma_win_t *win, dn_peer_t *src, unsigned tag, const dn_rma_head_t *head,
                              const uint8_t *body, size_t len)
{
    dn_rma_far_t *far = &win->far[head->rank];

    switch (tag) {
    case DN_RMA_ACCUMULATE:
        if (DN_RMA_ASKED_MAX <= dn_load_acquire_u32(&far->later)) {
            dn_rma_refuse(win->rma, DN_RMA_WRONG_MANY);
        } else {
            dn_rma_in_order(win, src, head, body, len);
        }
        break;
    case DN_RMA_LAYOUT:
        dn_rma_on_piece(win, far, body, len);
        break;
    case DN_RMA_LOOK:
        dn_rma_on_look(win, head->rank);
        break;
    case DN_RMA_POST:
        dn_rma_on_note(&win->control->notes[head->rank].posts);
        break;
    case DN_RMA_COMPLETE:
        dn_rma_on_note(&win->control->notes[head->rank].completes);
        break;
    case DN_RMA_FIND:
        dn_rma_on_find(win, src, head);
        break;
    default:
        dn_rma_refuse(win->rma, DN_RMA_WRONG_KIND);
        break;
    }
}

/** Least bytes of a message of this kind. */
static size_t dn_rma_head_len(unsigned tag)
{
    if (DN_RMA_ANSWER == tag) {
        return sizeof(dn_rma_reply_t);
    }
    return dn_rma_is_offer(tag) ? sizeof(dn_rma_offer_head_t) : sizeof(dn_rma_head_t);
}

/** Handle a message that names a window. @param data  at least as long as the head of its kind */
static void dn_rma_receive_in_window(dn_rma_t *rma, dn_peer_t *src, unsigned tag, const uint8_t *data,
                                     size_t len)
{
    union {
        dn_rma_head_t request;
        dn_rma_offer_head_t offer;
    } head;
    const bool offered = dn_rma_is_offer(tag);
    const size_t head_len = dn_rma_head_len(tag);

    memcpy(&head, data, head_len);
    const int rank = offered ? head.offer.rank : head.request.rank;
    dn_rma_win_t *win = dn_rma_win_find(rma, offered ? head.offer.window : head.request.window);
    if (NULL == win) {
        return;
    }
    if (!dn_rma_is_from(win, src, rank)) {
        dn_rma_refuse(rma, DN_RMA_WRONG_SENDER);
    } else if (!offered) {
        dn_rma_on_request(win, src, tag, &head.request, data + head_len, len - head_len);
    } else if (!dn_rma_on_offer(win, src, tag, &head.offer, data + head_len, len - head_len)) {
        dn_rma_refuse(rma, DN_RMA_WRONG_OFFER);
    }
    dn_rma_win_leave(win);
}

void dn_rma_receive(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_rma_t *rma = arg;

    if (dn_rma_head_len(tag) > len) {
        dn_rma_refuse(rma, DN_RMA_WRONG_LENGTH);
    } else if (DN_RMA_ANSWER == tag) {
        dn_rma_on_answer(rma, src, data, len);
    } else {
        dn_rma_receive_in_window(rma, src, tag, data, len);
    }
}
