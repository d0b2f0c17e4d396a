/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_core_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

/** Messages that are sent for one answer before the next answer has its turn. */
#define DN_CORE_TURN 16

/** An answer to a peer: bytes to send (PULL), or a ready reply. */
typedef struct dn_core_answer {
    dn_queue_item_t item; /**< first: in dn_core_peer_t::answers */
    dn_peer_base_t *peer;
    unsigned tag;
    dn_core_reply_t reply;
    uint32_t sid;
    uint32_t sid_generation;
    dn_ship_prog_t *prog; /**< PULL: kept for `at`, or NULL */
    dn_sg_cursor_t at;    /**< PULL: addresses of this process; left 0 with a ready reply */
    dn_sg_t sg;
    dn_block_t block[]; /**< of sg */
} dn_core_answer_t;

/** Cut off a peer that cannot be served. */
static void dn_core_cut_off(dn_port_t *port, dn_peer_base_t *peer, const char *why)
{
    dn_log_error("%s PID %" PRIu32 "; it is cut off", why, peer->pid);
    dn_port_peer_lost(port, peer);
}

/** Make an answer to a peer, with room for blocks. NULL: the peer is cut off. */
static dn_core_answer_t *dn_core_answer_new(dn_port_t *port, dn_peer_base_t *peer, unsigned tag,
                                            const dn_core_reply_t *reply, size_t blocks)
{
    if (DN_CORE_ANSWERS_MAX <= peer->core.answering) {
        dn_core_cut_off(port, peer, "more answers than may be asked for at once wait for");
        return NULL;
    }
    dn_core_answer_t *answer = calloc(1, sizeof(*answer) + blocks * sizeof(answer->block[0]));
    if (NULL == answer) {
        dn_core_cut_off(port, peer, "no memory to answer");
        return NULL;
    }
    answer->peer = peer;
    answer->tag = tag;
    answer->reply = *reply;
    peer->core.answering++;
    return answer;
}

static void dn_core_answer_free(dn_core_answer_t *answer)
{
    answer->peer->core.answering--;
    if (NULL != answer->prog) {
        dn_core_leave_its(answer->peer, answer->prog);
    }
    free(answer);
}

static void dn_core_enqueue(dn_core_t *core, dn_core_answer_t *answer)
{
    dn_queue_push(&core->answering, &answer->peer->core.answers, &answer->item);
}

/** Does the refusal of this PUSH wait for credit already? Each failed message of a PUSH asks for the refusal again. */
static int dn_core_refused(const dn_peer_base_t *peer, const dn_core_reply_t *reply)
{
    for (const dn_core_answer_t *at = dn_fifo_first(&peer->core.answers.items); NULL != at;
         at = dn_fifo_next(&at->item)) {
        if (DN_CORE_PUSH_DONE == at->tag && DN_OK != at->reply.status && at->reply.id == reply->id) {
            return 1;
        }
    }
    return 0;
}

/** Reply now, or when there is credit. */
static void dn_core_reply(dn_port_t *port, dn_peer_base_t *peer, unsigned tag, const dn_core_reply_t *reply)
{
    if (!dn_port_return(port, peer)) {
        return;
    }
    /* Not ahead of those that wait. */
    if (NULL == peer->core.answers.items.first
        && DN_ERR_AGAIN != dn_botf(&peer->hot, DN_CHAN_CORE, tag, reply, sizeof(*reply), NULL, 0)) {
        return;
    }
    if (DN_CORE_PUSH_DONE == tag && DN_OK != reply->status && dn_core_refused(peer, reply)) {
        return;
    }
    dn_core_answer_t *answer = dn_core_answer_new(port, peer, tag, reply, 0);
    if (NULL != answer) {
        dn_core_enqueue(&port->core, answer);
    }
}

/** Copy blocks out of the short form. The message has them all. DN_ERR_PROTO: a block lies at no address. */
static dn_status_t dn_core_read_near(dn_block_t *block, uint32_t blocks, const uint8_t *bytes)
{
    dn_core_near_t near[DN_CORE_NEAR_BLOCKS];
    uint64_t base;

    memcpy(&base, bytes, sizeof(base));
    memcpy(near, bytes + sizeof(base), blocks * sizeof(near[0]));
    if (UINT64_MAX - UINT16_MAX < base) {
        return DN_ERR_PROTO;
    }
    for (uint32_t i = 0; i < blocks; i++) {
        block[i] = (dn_block_t){.at = base + near[i].at, .len = near[i].len};
    }
    return DN_OK;
}

/** Copy the blocks out of a message. DN_ERR_PROTO: malformed. */
static dn_status_t dn_core_read_blocks(dn_core_side_t *side, const dn_core_request_t *request,
                                       const uint8_t *bytes, size_t len)
{
    const int near = 0 != (request->flags & DN_CORE_NEAR);

    side->prog = NULL;
    side->base = side->total = side->at = 0;
    side->len = dn_core_side_bytes(request);
    if ((near ? DN_CORE_NEAR_BLOCKS : DN_CORE_BLOCKS) < request->blocks || len < side->len) {
        return DN_ERR_PROTO;
    }
    if (!near) {
        memcpy(side->block, bytes, side->len);
    } else if (DN_OK != dn_core_read_near(side->block, request->blocks, bytes)) {
        return DN_ERR_PROTO;
    }
    for (uint32_t i = 0; i < request->blocks; i++) {
        if (__builtin_add_overflow(side->total, side->block[i].len, &side->total)) {
            return DN_ERR_PROTO;
        }
    }
    side->sg = (dn_sg_t){.block = side->block, .count = request->blocks};
    return DN_OK;
}

/** Find a program of a peer, and keep it. */
static dn_status_t dn_core_keep_its(const dn_peer_base_t *src, uint32_t slot, uint64_t id,
                                    dn_ship_prog_t **prog_p)
{
    pthread_mutex_t *programs = &src->iface->port->programs;

    pthread_mutex_lock(programs);
    const dn_status_t status =
        NULL == src->core.its ? DN_ERR_PROTO : dn_ship_in_find(src->core.its, slot, id, prog_p);
    if (DN_OK == status) {
        dn_ship_in_keep(*prog_p);
    }
    pthread_mutex_unlock(programs);
    return status;
}

void dn_core_leave_its(const dn_peer_base_t *src, dn_ship_prog_t *prog)
{
    pthread_mutex_t *programs = &src->iface->port->programs;

    pthread_mutex_lock(programs);
    dn_ship_in_leave(src->core.its, prog);
    pthread_mutex_unlock(programs);
}

void dn_core_end_side(const dn_peer_base_t *src, dn_core_side_t *side)
{
    if (NULL != side->prog) {
        dn_core_leave_its(src, side->prog);
        side->prog = NULL;
    }
}

/** Copy a use out of a message, find its program, and keep the program. DN_ERR_PROTO: malformed, or the program was not shipped. */
static dn_status_t dn_core_read_use(const dn_peer_base_t *src, dn_core_side_t *side,
                                    const dn_core_request_t *request, const uint8_t *bytes, size_t len)
{
    dn_core_use_t use;

    side->prog = NULL;
    if (0 != (request->flags & DN_CORE_NEAR) || sizeof(use) > len) {
        return DN_ERR_PROTO;
    }
    memcpy(&use, bytes, sizeof(use));
    if (use.at > use.len) {
        return DN_ERR_PROTO;
    }
    side->len = sizeof(use);
    side->base = use.roff;
    side->total = use.len;
    side->at = use.at;
    const dn_status_t status = dn_core_keep_its(src, request->blocks, use.id, &side->prog);
    if (DN_OK == status) {
        side->use = (dn_prog_use_t){side->prog->prog, use.count, use.extent};
        side->sg = (dn_sg_t){.use = &side->use};
    }
    return status;
}

dn_status_t dn_core_read_layout(const dn_peer_base_t *src, dn_core_side_t *side,
                                const dn_core_request_t *request, const uint8_t *bytes, size_t len)
{
    return 0 != (request->flags & DN_CORE_USE) ? dn_core_read_use(src, side, request, bytes, len)
                                               : dn_core_read_blocks(side, request, bytes, len);
}

/** May a peer reach a segment by messages, or the LLCM (@p key NULL)? */
static int dn_core_opens(const dn_peer_base_t *src, const dn_key_t *key)
{
    const dn_device_t *device = src->iface->device;

    return NULL == device->opens || device->opens(src, key);
}

/** Find the segment that a message names. NULL, with the reason: there is none, or the device does not open it to this peer. */
static dn_segment_t *dn_core_segment(dn_port_t *port, const dn_peer_base_t *src, uint32_t sid,
                                     uint32_t generation, dn_status_t *status_p)
{
    dn_segment_t *segment = dn_segment_find(port, sid, generation);

    *status_p = NULL == segment ? DN_ERR_RANGE : DN_OK;
    if (NULL != segment && !dn_core_opens(src, &segment->key)) {
        *status_p = DN_ERR_ACCESS;
        return NULL;
    }
    return segment;
}

/** Copy the description of a side out of a message and check it. DN_OK: dn_core_end_side() ends the use of the side. */
static dn_status_t dn_core_read_side(dn_port_t *port, const dn_peer_base_t *src, dn_core_side_t *side,
                                     const dn_core_request_t *request, const uint8_t *bytes, size_t len)
{
    dn_status_t status = dn_core_read_layout(src, side, request, bytes, len);
    if (DN_OK == status) {
        const dn_segment_t *segment =
            dn_core_segment(port, src, request->sid, request->sid_generation, &status);
        if (NULL != segment) {
            side->memory = segment->base;
            status = dn_sg_check(&side->sg, side->base, side->total, segment->key.len);
        }
    }
    if (DN_OK != status) {
        dn_core_end_side(src, side);
    }
    return status;
}

static int dn_core_on_push(dn_port_t *port, dn_peer_base_t *src, const dn_core_request_t *request,
                           const uint8_t *bytes, size_t len)
{
    dn_core_side_t side;

    dn_status_t status = dn_core_read_side(port, src, &side, request, bytes, len);
    if (DN_ERR_PROTO == status) {
        return 0;
    }
    const uint64_t data = len - side.len;
    if (!dn_core_data_fit(request, &side, data)) {
        dn_core_end_side(src, &side);
        return 0;
    }
    if (DN_OK == status) {
        dn_core_put_data(&side, bytes + side.len, data);
        dn_core_end_side(src, &side);
        dn_peer_move(src);
        status = dn_core_put_status(port->llcm.base, port->config.llcm_bytes, request);
    }
    if (DN_OK != status || 0 != (request->flags & DN_CORE_LAST)) {
        const dn_core_reply_t reply = {
            .id = request->id, .status = status, .flags = request->flags & DN_CORE_USE};
        dn_core_reply(port, src, DN_CORE_PUSH_DONE, &reply);
    }
    return 1;
}

static int dn_core_on_pull(dn_port_t *port, dn_peer_base_t *src, const dn_core_request_t *request,
                           const uint8_t *bytes, size_t len)
{
    dn_core_side_t side;

    dn_status_t status = dn_core_read_side(port, src, &side, request, bytes, len);
    if (DN_ERR_PROTO == status) {
        return 0;
    }
    if (0 == side.total) {
        dn_core_end_side(src, &side);
        return 0;
    }
    const dn_core_reply_t reply = {.id = request->id,
                                   .status = status,
                                   .flags = request->flags & DN_CORE_USE,
                                   .off = request->off,
                                   .len = side.total};
    if (DN_OK != status) {
        dn_core_reply(port, src, DN_CORE_PULL_DATA, &reply);
        return 1;
    }
    const size_t blocks = dn_sg_listed(&side.sg);
    dn_core_answer_t *answer = dn_core_answer_new(port, src, DN_CORE_PULL_DATA, &reply, blocks);
    if (NULL == answer) {
        dn_core_end_side(src, &side);
        return 1;
    }
    answer->sid = request->sid;
    answer->sid_generation = request->sid_generation;
    if (NULL != side.prog) {
        /* The answer leaves the program. */
        answer->prog = side.prog;
        dn_core_start_side(&answer->at, &side, &side.sg);
    } else {
        memcpy(answer->block, side.block, blocks * sizeof(side.block[0]));
        answer->sg = (dn_sg_t){.block = answer->block, .count = side.sg.count};
        dn_core_start_side(&answer->at, &side, &answer->sg);
    }
    dn_core_enqueue(&port->core, answer);
    return 1;
}

dn_status_t dn_core_take_piece(dn_peer_base_t *src, const uint8_t *bytes, size_t len, int alone)
{
    pthread_mutex_t *programs = &src->iface->port->programs;
    dn_ship_piece_t piece;
    dn_status_t status = DN_ERR_NOMEM;

    if (sizeof(piece) > len) {
        return DN_ERR_PROTO;
    }
    memcpy(&piece, bytes, sizeof(piece));
    pthread_mutex_lock(programs);
    /* A peer is LOST or FORGOTTEN (release) before dn_core_forget() takes the lock. So a thread of a device makes no table behind
     * dn_core_forget(), which nobody would free. */
    if (NULL == src->core.its && (!alone || DN_PEER_LOST > dn_load_acquire_u32(&src->life))) {
        src->core.its = calloc(1, sizeof(*src->core.its));
    }
    if (NULL != src->core.its) {
        const int taken = dn_ship_in_piece(src->core.its, &piece, bytes + sizeof(piece), len - sizeof(piece));
        status = taken ? DN_OK : DN_ERR_PROTO;
    }
    pthread_mutex_unlock(programs);
    return status;
}

/** Take a piece of a program that is shipped. Later transfers name the program. */
static int dn_core_on_program(dn_port_t *port, dn_peer_base_t *src, const uint8_t *bytes, size_t len)
{
    const dn_status_t status = dn_core_take_piece(src, bytes, len, 0);

    if (DN_ERR_NOMEM == status) {
        dn_core_cut_off(port, src, "no memory to answer");
    }
    return DN_ERR_PROTO != status;
}

static void dn_core_on_amo(dn_port_t *port, dn_peer_base_t *src, const dn_core_amo_t *message)
{
    uint64_t old = 0;
    dn_status_t status;

    if (DN_PEER_LOST <= src->life) {
        /* The users of the peer were told that it is lost, and do what it has left undone. */
        return;
    }
    const dn_segment_t *segment = dn_core_segment(port, src, message->sid, message->sid_generation, &status);
    if (NULL != segment) {
        status = dn_core_run(segment->base, segment->key.len, message, &old);
    }
    const dn_core_reply_t reply = {.id = message->id, .status = status, .off = old};
    dn_core_reply(port, src, DN_CORE_AMO_DONE, &reply);
}

/** Send up to a turn's messages of one answer. DN_OK: it is complete. DN_INPROGRESS: its turn is over. DN_ERR_AGAIN: no credit. */
static dn_status_t dn_core_answer(dn_port_t *port, dn_core_answer_t *answer)
{
    dn_peer_t *peer = &answer->peer->hot;
    dn_window_t window;

    if (!dn_port_return(port, answer->peer)) {
        return DN_ERR_UNREACH;
    }
    if (0 == answer->at.left) {
        return dn_botf(peer, DN_CHAN_CORE, answer->tag, &answer->reply, sizeof(answer->reply), NULL, 0);
    }
    if (NULL == dn_segment_find(port, answer->sid, answer->sid_generation)) {
        /* Freed since it was asked for. */
        answer->reply.status = DN_ERR_RANGE;
        answer->reply.len = answer->at.left;
        answer->at.left = 0;
        return DN_INPROGRESS;
    }
    for (int turn = 0; 0 != answer->at.left; turn++) {
        if (DN_CORE_TURN == turn) {
            return DN_INPROGRESS;
        }
        const uint64_t most =
            dn_core_piece(answer->peer, answer->reply.off, answer->peer->botf_max - sizeof(answer->reply));
        answer->reply.len = answer->at.left < most ? answer->at.left : most;
        const size_t size = sizeof(answer->reply) + answer->reply.len;
        const dn_status_t status = dn_botf_reserve(peer, size, &window);
        if (DN_OK != status) {
            return status;
        }
        memcpy(window.data, &answer->reply, sizeof(answer->reply));
        dn_sg_gather((uint8_t *) window.data + sizeof(answer->reply), &answer->at, answer->reply.len);
        dn_botf_kick(peer, &window, DN_CHAN_CORE, answer->tag, size);
        dn_peer_move(answer->peer);
        answer->reply.off += answer->reply.len;
    }
    return DN_OK;
}

/** Send the answers to the peer whose turn it is, each as far as its turn and the credit allow. @return answers that are complete. */
static int dn_core_serve_peer(dn_port_t *port, dn_queue_t *queue)
{
    dn_core_t *core = &port->core;
    int n = 0;

    for (uint32_t answers = dn_core_answering(queue)->core.answering; 0 != answers; answers--) {
        /* Not in the queue meanwhile: a device may find in a send that the peer is lost, and all that waits goes. */
        dn_core_answer_t *answer = dn_queue_pop(&core->answering, queue);
        if (NULL == answer) {
            return n;
        }
        const dn_status_t status = dn_core_answer(port, answer);
        if (DN_ERR_AGAIN == status) {
            dn_queue_put_back(&core->answering, queue, &answer->item);
            return n;
        }
        if (DN_INPROGRESS == status) {
            dn_core_enqueue(core, answer);
        } else {
            dn_core_answer_free(answer);
            n++;
        }
    }
    return n;
}

int dn_core_serve_progress(dn_port_t *port)
{
    dn_core_t *core = &port->core;
    dn_queue_t *queue;
    int n = 0;

    for (uint32_t peers = core->answering.count;
         0 != peers && NULL != (queue = dn_round_turn(&core->answering)); peers--) {
        n += dn_core_serve_peer(port, queue);
    }
    return n;
}

dn_peer_base_t *dn_core_answering(dn_queue_t *queue)
{
    const dn_core_answer_t *answer = dn_fifo_first(&queue->items);

    return answer->peer;
}

void dn_core_serve_lost(dn_core_t *core, dn_peer_base_t *peer)
{
    dn_core_answer_t *answer;

    while (NULL != (answer = dn_queue_pop(&core->answering, &peer->core.answers))) {
        dn_core_answer_free(answer);
    }
}

int dn_core_serve(dn_port_t *port, dn_peer_base_t *src, unsigned tag, const uint8_t *bytes, size_t len)
{
    dn_core_request_t request;
    dn_core_amo_t amo;

    switch (tag) {
    case DN_CORE_PUSH:
    case DN_CORE_PULL:
        if (sizeof(request) > len) {
            return 0;
        }
        memcpy(&request, bytes, sizeof(request));
        bytes += sizeof(request);
        len -= sizeof(request);
        return DN_CORE_PUSH == tag ? dn_core_on_push(port, src, &request, bytes, len)
                                   : dn_core_on_pull(port, src, &request, bytes, len);
    case DN_CORE_AMO:
        for (size_t n = dn_core_amos(len), i = 0; i < n; i++) {
            memcpy(&amo, bytes + i * sizeof(amo), sizeof(amo));
            dn_core_on_amo(port, src, &amo);
        }
        return 0 != dn_core_amos(len);
    case DN_CORE_LINE:
        return dn_core_opens(src, NULL)
               && dn_core_put_line(port->llcm.base, port->config.llcm_bytes, bytes, len);
    case DN_CORE_LINES:
        return dn_core_opens(src, NULL)
               && dn_core_put_lines(port->llcm.base, port->config.llcm_bytes, bytes, len);
    case DN_CORE_PROG:
        return dn_core_on_program(port, src, bytes, len);
    default:
        return 0;
    }
}
