/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * How a stream is opened: HELLO, CHALLENGE and PROOF of dn_auth.h.
 *
 * Only a process that has the key of a group that is let in can make a HELLO that is answered. So a receiver enters only addresses
 * that such a process has told, and keeps nothing of other processes. A HELLO of a group that is not let in yet is forgotten, and its
 * sender repeats it. An *applicant* is a process whose HELLO was answered. There is a bounded number of applicants, each for a bounded
 * time, and they take none of the slots for senders. A copy of an old HELLO gets no further than this, since the sender of the copy
 * has no PROOF for the new CHALLENGE.
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

/** Longest pause between two HELLOs. */
#define DN_OFI_GREET_MOST_NS UINT64_C(500000000)
/** After this time an applicant may be forgotten when another applicant wants its place. */
#define DN_OFI_APPLY_LEAST_NS UINT64_C(1000000000)

/** HELLO and CHALLENGE as they are sent. */
typedef struct dn_ofi_hello_message {
    dn_ofi_head_t head;
    dn_ofi_hello_t hello;
} dn_ofi_hello_message_t;

typedef struct dn_ofi_challenge_message {
    dn_ofi_head_t head;
    dn_ofi_challenge_t challenge;
} dn_ofi_challenge_message_t;

_Static_assert(sizeof(dn_ofi_hello_message_t) <= sizeof(dn_ofi_head_t) + DN_OFI_BOTF_MIN,
               "any provider takes a HELLO");
_Static_assert(sizeof(dn_ofi_challenge_message_t) < sizeof(dn_ofi_hello_message_t),
               "nobody is sent more than its HELLO had");

/** Bytes of a HELLO that the MAC covers. */
#define DN_OFI_SIGNED offsetof(dn_ofi_hello_message_t, hello.mac)

void dn_ofi_side(const dn_ofi_where_t *where, uint32_t pid, dn_auth_side_t *side)
{
    *side = (dn_auth_side_t){.nonce = {where->nonce[0], where->nonce[1]}, .pid = pid};
    dn_auth_digest(where, sizeof(*where), side->address);
}

/* The opener */

void dn_ofi_greet(dn_ofi_t *ofi, dn_ofi_stream_t *stream)
{
    const uint64_t now = dn_clock_ns();

    if (DN_OFI_TX_GREETS != stream->state || 0 != stream->flying || now < stream->greet.at) {
        return;
    }
    if (dn_ofi_follows(ofi, stream)) {
        ofi->work = 1;
        return;
    }
    dn_ofi_buffer_t *buffer = dn_ofi_buffer(ofi, sizeof(dn_ofi_hello_message_t));
    if (NULL == buffer) {
        return;
    }
    const dn_job_t *job = dn_port_job(ofi->iface.port);
    dn_ofi_hello_message_t *message = (dn_ofi_hello_message_t *) buffer->bytes;
    *message = (dn_ofi_hello_message_t){
        .head = {.token = stream->token,
                 .number = ofi->first,
                 .len = sizeof(message->hello),
                 .kind = DN_OFI_HELLO},
        .hello = {.magic = DN_OFI_MAGIC,
                  .version = DN_WIRE_VERSION,
                  .pid = job->pid,
                  .to = {stream->greet.theirs.nonce[0], stream->greet.theirs.nonce[1]},
                  .where = ofi->where},
    };
    memcpy(message->hello.random, stream->greet.ours.random, sizeof(message->hello.random));
    dn_auth_mac(&stream->greet.root, message, DN_OFI_SIGNED, message->hello.mac);
    buffer->size = sizeof(*message);
    buffer->stream = stream;
    const ssize_t ret = dn_ofi_post(ofi, buffer, stream->node);
    if (0 == ret) {
        stream->flying++;
        stream->greet.at = now + stream->greet.gap;
        stream->greet.gap =
            stream->greet.gap < DN_OFI_GREET_MOST_NS ? 2 * stream->greet.gap : stream->greet.gap;
        return;
    }
    dn_ofi_buffer_free(ofi, buffer);
    if (-FI_EAGAIN == ret) {
        ofi->work = 1;
    } else {
        dn_ofi_broken(ofi, stream);
    }
}

void dn_ofi_greet_all(dn_ofi_t *ofi)
{
    const uint64_t now = dn_clock_ns();

    if (now < ofi->greet_at) {
        return;
    }
    ofi->greeting = 0;
    ofi->greet_at = now + DN_OFI_GREET_MOST_NS;
    for (uint32_t i = 0; i < ofi->nstreams; i++) {
        dn_ofi_stream_t *stream = ofi->stream[i];
        if (NULL != stream && DN_OFI_TX_GREETS == stream->state) {
            dn_ofi_greet(ofi, stream);
            ofi->greeting++;
            const uint64_t at = stream->greet.at > now ? stream->greet.at : now + DN_OFI_GREET_NS;
            ofi->greet_at = at < ofi->greet_at ? at : ofi->greet_at;
        }
    }
}

void dn_ofi_refused(dn_ofi_t *ofi, dn_ofi_stream_t *stream, uint64_t why)
{
    dn_ofi_stream_end(stream);
    if (NULL == stream->peer) {
        dn_ofi_settle_stream(ofi, stream);
        return;
    }
    if (DN_OFI_FULL == why && !dn_ofi_is_doubted(stream->peer)) {
        dn_log_later(&ofi->log, "all slots of PID %" PRIu32 " are taken; raise max_peers there",
                     stream->peer->base.pid);
        dn_ofi_condemn(ofi, stream->peer, DN_PEER_PARTED);
    } else {
        dn_ofi_doubt(ofi, stream->peer, DN_PEER_PARTED);
    }
}

void dn_ofi_challenged(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    const dn_ofi_challenge_t *challenge =
        (const dn_ofi_challenge_t *) (buffer->bytes + sizeof(dn_ofi_head_t));
    dn_ofi_stream_t *stream = dn_ofi_find_stream(ofi, dn_ofi_head(buffer)->token);
    dn_auth_pair_t pair;
    uint8_t mac[DN_AUTH_MAC];

    if (NULL == stream || DN_OFI_TX_GREETS != stream->state) {
        /* This process has said HELLO several times, so the CHALLENGE comes several times. */
        return;
    }
    dn_auth_side_t theirs = stream->greet.theirs;
    memcpy(theirs.random, challenge->random, sizeof(theirs.random));
    dn_auth_pair(&stream->greet.root, &stream->greet.ours, &theirs, &pair);
    dn_auth_prove(&pair, DN_AUTH_ACCEPTOR, &challenge->why, sizeof(challenge->why), mac);
    if (!dn_auth_same(mac, challenge->mac)) {
        dn_count(&ofi->iface.counters->dropped, 1);
        return;
    }
    if (NULL != stream->peer) {
        stream->peer->watch.signs++;
    }
    if (DN_OFI_WELCOME != challenge->why) {
        dn_ofi_refused(ofi, stream, challenge->why);
        return;
    }
    stream->pair = pair;
    dn_auth_wipe(&pair, sizeof(pair));
    dn_ofi_stream_turn(stream, DN_OFI_TX_OPEN);
    dn_ofi_proof_t *proof = (dn_ofi_proof_t *) (stream->first->bytes + sizeof(dn_ofi_head_t));
    dn_auth_prove(&stream->pair, DN_AUTH_OPENER, NULL, 0, proof->mac);
    for (dn_ofi_buffer_t *waits = stream->first; NULL != waits; waits = waits->next) {
        dn_ofi_seal(ofi, stream, dn_ofi_head(waits));
    }
    dn_ofi_advance(ofi, stream);
}

/* The acceptor */

dn_ofi_applicant_t *dn_ofi_find_applicant(const dn_ofi_t *ofi, uint64_t token)
{
    dn_ofi_applicant_t *applicant = ofi->applicant;
    while (NULL != applicant && token != applicant->token) {
        applicant = applicant->next;
    }
    return applicant;
}

static void dn_ofi_forget(dn_ofi_t *ofi, dn_ofi_applicant_t *applicant)
{
    dn_ofi_applicant_t **at = &ofi->applicant;
    while (applicant != *at) {
        at = &(*at)->next;
    }
    *at = applicant->next;
    ofi->napplicants--;
    while (NULL != applicant->early) {
        dn_ofi_buffer_t *buffer = applicant->early;
        applicant->early = buffer->next;
        dn_ofi_buffer_free(ofi, buffer);
    }
    dn_ofi_node_leave(ofi, applicant->node);
    dn_auth_wipe(&applicant->pair, sizeof(applicant->pair));
    free(applicant);
}

void dn_ofi_expire(dn_ofi_t *ofi, int all)
{
    const uint64_t now = dn_clock_ns();
    const uint64_t kept = dn_guest_kept_ns(ofi->timeout_ns);

    while (NULL != ofi->applicant && (all || (0 != kept && now - ofi->applicant->since > kept))) {
        const dn_ofi_applicant_t *oldest = ofi->applicant;
        /* The applicant's PROOF may be on its way: tell the applicant. */
        (void) dn_ofi_control(ofi, oldest->node, DN_OFI_REFUSE, oldest->token,
                              &oldest->pair.way[DN_AUTH_ACCEPTOR], DN_OFI_CLOSED);
        dn_ofi_forget(ofi, ofi->applicant);
    }
}

/** All slots are taken: suspect the senders whose processes have ended. @return not 0: there are such senders. */
static int dn_ofi_find_dead(dn_ofi_t *ofi)
{
    int found = 0;

    for (dn_ofi_peer_t *peer = ofi->peers; NULL != peer; peer = peer->next) {
        if (0 != peer->rx.token && DN_OK != dn_ofi_check(&peer->base)) {
            dn_ofi_doubt(ofi, peer, DN_PEER_SUSPECT);
            found = 1;
        }
    }
    return found;
}

/** May a process that says HELLO have a stream to this process? @param peer NULL: the process is not known yet. */
static enum dn_ofi_refusal dn_ofi_judge(const dn_ofi_t *ofi, const dn_ofi_peer_t *peer)
{
    if (ofi->closing || (NULL != peer && dn_ofi_is_doubted(peer))) {
        return DN_OFI_CLOSED;
    }
    if ((NULL == peer || 0 == peer->rx.token) && ofi->nsenders >= ofi->max_senders) {
        return DN_OFI_FULL;
    }
    return DN_OFI_WELCOME;
}

/** Has an applicant to wait? Its old peer object is being freed; or the LEAVE of its last stream is still on the way. */
static int dn_ofi_has_to_wait(const dn_ofi_peer_t *peer)
{
    return NULL != peer && (DN_OFI_GOING == peer->owner || DN_OFI_RX_OPEN == peer->rx.state);
}

/** Is a peer of another group than the process that claims to be this peer? */
static int dn_ofi_is_of_another(const dn_ofi_peer_t *peer, const dn_pgid_t *pgid)
{
    return NULL != peer && 0 != memcmp(&peer->base.pgid, pgid, sizeof(*pgid));
}

static void dn_ofi_challenge(dn_ofi_t *ofi, const dn_ofi_applicant_t *applicant)
{
    const dn_ofi_challenge_message_t message = {
        .head = {.token = applicant->token, .len = sizeof(message.challenge), .kind = DN_OFI_CHALLENGE},
        .challenge = applicant->challenge,
    };

    /* When the provider has no room, there will be another HELLO. */
    (void) dn_ofi_tell(ofi, applicant->node, &message, sizeof(message));
}

/** Handle a genuine HELLO: a process with the key of a group that is let in has made it at some time. */
static void dn_ofi_apply_for(dn_ofi_t *ofi, const dn_ofi_hello_message_t *message, const dn_auth_root_t *root,
                             const dn_pgid_t *pgid, enum dn_ofi_refusal why)
{
    const dn_ofi_hello_t *hello = &message->hello;
    dn_ofi_applicant_t **last = &ofi->applicant;
    dn_auth_side_t theirs, ours;

    dn_ofi_applicant_t *applicant = calloc(1, sizeof(*applicant));
    dn_ofi_node_t *node =
        NULL == applicant ? NULL : dn_ofi_node(ofi, hello->where.name, hello->where.name_len);
    if (NULL == node) {
        free(applicant);
        dn_count(&ofi->iface.counters->dropped, 1);
        return;
    }
    *applicant = (dn_ofi_applicant_t){.token = message->head.token,
                                      .number = message->head.number,
                                      .since = dn_clock_ns(),
                                      .pid = hello->pid,
                                      .pgid = *pgid,
                                      .where = hello->where,
                                      .node = node,
                                      .challenge = {.why = why}};
    dn_ofi_side(&hello->where, hello->pid, &theirs);
    memcpy(theirs.random, hello->random, sizeof(theirs.random));
    dn_ofi_side(&ofi->where, dn_port_job(ofi->iface.port)->pid, &ours);
    dn_auth_random(ours.random, sizeof(ours.random));
    memcpy(applicant->challenge.random, ours.random, sizeof(ours.random));
    dn_auth_pair(root, &theirs, &ours, &applicant->pair);
    dn_auth_prove(&applicant->pair, DN_AUTH_ACCEPTOR, &applicant->challenge.why,
                  sizeof(applicant->challenge.why), applicant->challenge.mac);
    while (NULL != *last) {
        last = &(*last)->next;
    }
    *last = applicant;
    ofi->napplicants++;
    dn_ofi_challenge(ofi, applicant);
    if (DN_OFI_WELCOME != why) {
        dn_ofi_forget(ofi, applicant);
    }
}

/** Is there a place for one more applicant? Applicants that are older than DN_OFI_APPLY_LEAST_NS make room. */
static int dn_ofi_has_place(dn_ofi_t *ofi)
{
    dn_ofi_expire(ofi, 0);
    if (ofi->napplicants >= ofi->max_senders
        && dn_clock_ns() - ofi->applicant->since > DN_OFI_APPLY_LEAST_NS) {
        dn_ofi_forget(ofi, ofi->applicant);
    }
    return ofi->napplicants < ofi->max_senders;
}

/** Has a process with the key of a group said this HELLO to this port? @return the secret that both share; NULL: no. */
static const dn_auth_root_t *dn_ofi_is_genuine(dn_ofi_t *ofi, const dn_ofi_hello_message_t *message,
                                               dn_pgid_t *pgid)
{
    const dn_ofi_hello_t *hello = &message->hello;
    uint8_t mac[DN_AUTH_MAC];

    if (DN_OFI_MAGIC != hello->magic || DN_WIRE_VERSION != hello->version || !dn_ofi_is_sound(&hello->where)
        || 0 == message->head.token || 0 != memcmp(hello->to, ofi->where.nonce, sizeof(hello->to))
        || 0 == memcmp(hello->where.nonce, ofi->where.nonce, sizeof(hello->where.nonce))) {
        dn_count(&ofi->iface.counters->dropped, 1);
        return NULL;
    }
    const dn_auth_root_t *root =
        dn_guests_root(&ofi->guests, dn_port_group(ofi->iface.port), hello->where.exchange, pgid);
    if (NULL == root) {
        dn_port_stranger(ofi->iface.port);
        dn_ofi_ring(ofi);
        return NULL;
    }
    dn_auth_mac(root, message, DN_OFI_SIGNED, mac);
    if (!dn_auth_same(mac, hello->mac)) {
        dn_count(&ofi->iface.counters->dropped, 1);
        return NULL;
    }
    if (hello->where.auth != ofi->where.auth) {
        if (!ofi->told) {
            dn_log_later(&ofi->log,
                         "PID %" PRIu32
                         " has another auth than this process; set it to one value for the whole job",
                         hello->pid);
        }
        ofi->told = 1;
        return NULL;
    }
    return root;
}

void dn_ofi_hello(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    const dn_ofi_hello_message_t *message = (const dn_ofi_hello_message_t *) buffer->bytes;
    dn_pgid_t pgid;

    const dn_auth_root_t *root = dn_ofi_is_genuine(ofi, message, &pgid);
    if (NULL == root || NULL != dn_ofi_find_sender(ofi, message->head.token)) {
        return;
    }
    const dn_ofi_applicant_t *applicant = dn_ofi_find_applicant(ofi, message->head.token);
    if (NULL != applicant) {
        dn_ofi_challenge(ofi, applicant);
        return;
    }
    const dn_ofi_peer_t *peer = dn_ofi_find_peer(ofi, message->hello.where.nonce);
    if (dn_ofi_has_to_wait(peer) || !dn_ofi_has_place(ofi)) {
        return;
    }
    if (dn_ofi_is_of_another(peer, &pgid)) {
        dn_count(&ofi->iface.counters->dropped, 1);
        return;
    }
    const enum dn_ofi_refusal why = dn_ofi_judge(ofi, peer);
    if (DN_OFI_FULL != why || !dn_ofi_find_dead(ofi)) {
        dn_ofi_apply_for(ofi, message, root, &pgid, why);
    }
}

/** Make or find the peer for an applicant. @return NULL: no peer can be made. */
static dn_ofi_peer_t *dn_ofi_become(dn_ofi_t *ofi, const dn_ofi_applicant_t *applicant)
{
    dn_ofi_peer_t *peer = dn_ofi_find_peer(ofi, applicant->where.nonce);
    const dn_peer_base_t id = {.pid = applicant->pid, .pgid = applicant->pgid};

    if (NULL == peer && DN_OK == dn_ofi_make_peer(ofi, &id, &applicant->where, &peer)) {
        /* The port is told under its lock, which the watcher does not have. */
        if (DN_OFI_WATCH_READS == ofi->watcher.state) {
            ofi->unmet = 1;
            dn_ofi_ring(ofi);
        } else {
            dn_port_adopt(ofi->iface.port, &peer->base);
            dn_ofi_let_in(ofi, peer);
        }
    }
    return peer;
}

/** Let an applicant in if its PROOF has come and is right. It is an applicant no more then. */
static void dn_ofi_enter(dn_ofi_t *ofi, dn_ofi_applicant_t *applicant)
{
    dn_ofi_buffer_t **at = &applicant->early;
    uint8_t mac[DN_AUTH_MAC];

    while (NULL != *at
           && (DN_OFI_PROOF != dn_ofi_head(*at)->kind || applicant->number != dn_ofi_head(*at)->number)) {
        at = &(*at)->next;
    }
    if (NULL == *at) {
        return;
    }
    dn_auth_prove(&applicant->pair, DN_AUTH_OPENER, NULL, 0, mac);
    if (!dn_auth_same(mac, (*at)->bytes + sizeof(dn_ofi_head_t))) {
        dn_ofi_buffer_t *bad = *at;
        *at = bad->next;
        dn_ofi_buffer_free(ofi, bad);
        dn_count(&ofi->iface.counters->dropped, 1);
        return;
    }
    dn_ofi_peer_t *peer = dn_ofi_find_peer(ofi, applicant->where.nonce);
    if (dn_ofi_has_to_wait(peer)) {
        ofi->retry = 1;
        return;
    }
    enum dn_ofi_refusal why = dn_ofi_judge(ofi, peer);
    if (dn_ofi_is_of_another(peer, &applicant->pgid)) {
        /* The peer of this nonce was not known yet when the applicant said HELLO. */
        dn_count(&ofi->iface.counters->dropped, 1);
        why = DN_OFI_CLOSED;
    }
    peer = DN_OFI_WELCOME == why ? dn_ofi_become(ofi, applicant) : NULL;
    if (NULL == peer) {
        dn_ofi_control(ofi, applicant->node, DN_OFI_REFUSE, applicant->token,
                       &applicant->pair.way[DN_AUTH_ACCEPTOR], DN_OFI_WELCOME == why ? DN_OFI_CLOSED : why);
        dn_ofi_forget(ofi, applicant);
        return;
    }
    dn_ofi_buffer_t *proof = *at;
    dn_ofi_buffer_t *early = applicant->early;
    *at = proof->next;
    early = proof == early ? proof->next : early;
    dn_ofi_buffer_free(ofi, proof);
    applicant->early = NULL;
    dn_ofi_begin_rx(ofi, peer, applicant);
    dn_ofi_forget(ofi, applicant);
    while (NULL != early) {
        dn_ofi_buffer_t *buffer = early;
        early = buffer->next;
        dn_ofi_sequence(ofi, peer, buffer);
    }
}

void dn_ofi_applied(dn_ofi_t *ofi, dn_ofi_applicant_t *applicant, dn_ofi_buffer_t *buffer)
{
    const dn_ofi_head_t *head = dn_ofi_head(buffer);
    const uint32_t lines = DN_OFI_PROOF == head->kind ? 0 : dn_ofi_lines(head->len);
    /* The first message of a stream is its PROOF, and no later message is a PROOF. */
    const int placed = (DN_OFI_PROOF == head->kind) == (applicant->number == head->number)
                       && head->number - applicant->number <= ofi->where.credit_max + 1;
    dn_ofi_buffer_t **last = &applicant->early;

    while (NULL != *last && dn_ofi_head(*last)->number != head->number) {
        last = &(*last)->next;
    }
    if (!placed || NULL != *last || !dn_ofi_opens(ofi, &applicant->pair.way[DN_AUTH_OPENER], buffer)
        || applicant->lines + lines > ofi->where.credit_max + 1) {
        dn_count(&ofi->iface.counters->dropped, 1);
        dn_ofi_buffer_free(ofi, buffer);
        return;
    }
    buffer = dn_ofi_shrink(ofi, buffer);
    applicant->lines += lines;
    buffer->next = NULL;
    *last = buffer;
    dn_ofi_enter(ofi, applicant);
}

void dn_ofi_retry(dn_ofi_t *ofi)
{
    ofi->retry = 0;
    for (dn_ofi_applicant_t *applicant = ofi->applicant, *next; NULL != applicant; applicant = next) {
        next = applicant->next;
        if (NULL != applicant->early) {
            dn_ofi_enter(ofi, applicant);
        }
    }
}
