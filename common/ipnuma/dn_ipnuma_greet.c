/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Connections are opened. A HELLO of a process without the key of a group that is let in leaves no record and
 * gets no answer. A HELLO of a process with the key leaves a record that expires, and gets an answer that is shorter than the HELLO.
 *
 * Both sides may say HELLO at once. Then the process with the smaller nonce opens, and the other process accepts. A process that has said
 * HELLO ignores a HELLO of a process with a larger nonce. A process that has just heard a HELLO does not take a CHALLENGE of a process
 * with a smaller nonce. A process that has heard a HELLO before it connects waits for the PROOF, at most for DN_IPNUMA_GREET_NS. A process
 * that has said PROOF ignores each HELLO until the PROOF is answered.
 */
#include "dn_config.h"

#include "dn_ipnuma_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

/** After this time an applicant's record is freed if another applicant wants its place. */
#define DN_IPNUMA_APPLY_LEAST_NS UINT64_C(1000000000)
/** Bytes of a HELLO that its MAC covers. */
#define DN_IPNUMA_SIGNED offsetof(dn_ipnuma_hello_datagram_t, hello.mac)

int dn_ipnuma_is_sound(const dn_ipnuma_where_t *where)
{
    const uint64_t end = UINT64_C(1) << DN_IPNUMA_ADDRESS_BITS;

    return DN_IPNUMA_DATAGRAM_LEAST <= where->datagram && 0 != where->port && 0 != where->ip
           && (64u << 10) <= where->window && (1u << 20) >= where->window
           && DN_IPNUMA_CREDIT_MAX >= where->credit && DN_IPNUMA_BOTF_MIN <= where->botf_max
           && dn_ipnuma_cost(where->botf_max) <= where->credit && (16u << 20) >= where->llcm_bytes
           && end > where->llcm_at && end - where->llcm_at >= where->llcm_bytes;
}

dn_ipnuma_applicant_t *dn_ipnuma_applicant_of(const dn_ipnuma_t *ipnuma, const uint64_t nonce[2])
{
    dn_ipnuma_applicant_t *newest = NULL;

    for (dn_ipnuma_applicant_t *one = ipnuma->applicant; NULL != one; one = one->next) {
        newest = 0 == memcmp(one->where.nonce, nonce, sizeof(one->where.nonce)) ? one : newest;
    }
    return newest;
}

static void dn_ipnuma_applicant_free(dn_ipnuma_t *ipnuma, dn_ipnuma_applicant_t *applicant)
{
    dn_ipnuma_applicant_t **at = &ipnuma->applicant;

    while (applicant != *at) {
        at = &(*at)->next;
    }
    *at = applicant->next;
    ipnuma->napplicants--;
    dn_auth_wipe(&applicant->pair, sizeof(applicant->pair));
    free(applicant);
}

/** If both processes want to open the connection, does this process open it? */
static int dn_ipnuma_goes_first(const dn_ipnuma_t *ipnuma, const uint64_t nonce[2])
{
    return 0 > memcmp(ipnuma->where.nonce, nonce, sizeof(ipnuma->where.nonce));
}

/* The opener */

static void dn_ipnuma_say_hello(dn_ipnuma_pc_t *pc)
{
    dn_ipnuma_t *ipnuma = pc->ipnuma;
    dn_ipnuma_hello_datagram_t datagram = {
        .head = {.token = pc->token, .kind = DN_IPNUMA_HELLO},
        .hello = {.magic = DN_IPNUMA_MAGIC,
                  .version = DN_WIRE_VERSION,
                  .pid = dn_port_job(ipnuma->iface.port)->pid,
                  .to = {pc->where.nonce[0], pc->where.nonce[1]},
                  .where = ipnuma->where},
    };

    memcpy(datagram.hello.random, pc->greet.ours.random, sizeof(datagram.hello.random));
    dn_auth_mac(&pc->greet.root, &datagram, DN_IPNUMA_SIGNED, datagram.hello.mac);
    (void) dn_ipnuma_socket_send(ipnuma, &pc->where, pc->fd, &datagram, sizeof(datagram));
}

static void dn_ipnuma_say_proof(const dn_ipnuma_pc_t *pc)
{
    dn_ipnuma_proof_datagram_t datagram = {.head = {.token = pc->link.token, .kind = DN_IPNUMA_PROOF}};

    dn_auth_prove(&pc->greet.pair, DN_AUTH_OPENER, NULL, 0, datagram.proof.mac);
    (void) dn_ipnuma_socket_send(pc->ipnuma, &pc->where, pc->fd, &datagram, sizeof(datagram));
}

void dn_ipnuma_greet(dn_ipnuma_pc_t *pc, uint64_t now)
{
    if (now < pc->greet.at || DN_IPNUMA_DEAD == pc->state
        || (DN_IPNUMA_OPEN == pc->state && 0 == pc->greet.at)) {
        return;
    }
    if (DN_IPNUMA_GREETS == pc->state) {
        dn_ipnuma_say_hello(pc);
    } else {
        dn_ipnuma_say_proof(pc);
    }
    pc->greet.at = now + pc->greet.gap;
    pc->greet.gap = pc->greet.gap < DN_IPNUMA_GREET_MOST_NS ? 2 * pc->greet.gap : pc->greet.gap;
}

/** Open a connection: the other process has proved its identity. */
static void dn_ipnuma_pc_begin(dn_ipnuma_pc_t *pc, const dn_auth_pair_t *pair, dn_auth_role_t role,
                               uint64_t token, uint64_t now)
{
    pc->greet.pair = *pair;
    dn_ipnuma_pc_turn(pc, DN_IPNUMA_OPEN);
    dn_ipnuma_link_key(&pc->link, pc->ipnuma->auth, pair, role, token, now);
}

static void dn_ipnuma_challenged(dn_ipnuma_t *ipnuma, const dn_ipnuma_challenge_datagram_t *datagram,
                                 uint64_t now)
{
    const dn_ipnuma_challenge_t *challenge = &datagram->challenge;
    dn_ipnuma_pc_t *pc = dn_ipnuma_pc_named(ipnuma, datagram->head.token);
    dn_auth_pair_t pair;
    uint8_t mac[DN_AUTH_MAC];

    if (NULL == pc || DN_IPNUMA_GREETS != pc->state) {
        /* This process has said HELLO several times, so the CHALLENGE comes several times. */
        return;
    }
    dn_ipnuma_applicant_t *applicant = dn_ipnuma_applicant_of(ipnuma, pc->where.nonce);
    if (DN_IPNUMA_WELCOME == challenge->terms.why && NULL != applicant
        && !dn_ipnuma_goes_first(ipnuma, pc->where.nonce)
        && now - applicant->since < DN_IPNUMA_APPLY_LEAST_NS) {
        /* Both processes open at once, and the other process goes first. An older HELLO of the other process does not count: the other
         * process has abandoned it, or somebody has repeated it. But this CHALLENGE answers the present HELLO of this process. */
        return;
    }
    dn_auth_side_t theirs = pc->greet.theirs;
    memcpy(theirs.random, challenge->random, sizeof(theirs.random));
    dn_auth_pair(&pc->greet.root, &pc->greet.ours, &theirs, &pair);
    dn_auth_prove(&pair, DN_AUTH_ACCEPTOR, &challenge->terms, sizeof(challenge->terms), mac);
    if (!dn_auth_same(mac, challenge->mac)) {
        dn_count(&ipnuma->iface.counters->dropped, 1);
    } else if (DN_IPNUMA_WELCOME != challenge->terms.why) {
        if (DN_IPNUMA_FULL == challenge->terms.why) {
            dn_log_later(&ipnuma->later, "all slots of PID %" PRIu32 " are taken; raise max_peers there",
                         pc->pid);
        }
        dn_ipnuma_kill(pc, DN_PEER_PARTED);
    } else {
        if (NULL != applicant) {
            dn_ipnuma_applicant_free(ipnuma, applicant);
        }
        dn_ipnuma_pc_begin(pc, &pair, DN_AUTH_OPENER, challenge->terms.token, now);
        pc->greet.at = now;
        pc->greet.gap = DN_IPNUMA_GREET_NS;
        dn_ipnuma_greet(pc, now);
        dn_ipnuma_link_send(&pc->link, now);
    }
    dn_auth_wipe(&pair, sizeof(pair));
}

/* The acceptor */

void dn_ipnuma_expire(dn_ipnuma_t *ipnuma, int all, uint64_t now)
{
    const uint64_t kept = dn_guest_kept_ns(ipnuma->timeout_ns);

    while (NULL != ipnuma->applicant && (all || (0 != kept && now - ipnuma->applicant->since > kept))) {
        dn_ipnuma_applicant_free(ipnuma, ipnuma->applicant);
    }
}

static int dn_ipnuma_has_place(dn_ipnuma_t *ipnuma, uint64_t now)
{
    if (ipnuma->napplicants >= ipnuma->max_senders
        && now - ipnuma->applicant->since > DN_IPNUMA_APPLY_LEAST_NS) {
        dn_ipnuma_applicant_free(ipnuma, ipnuma->applicant);
    }
    return ipnuma->napplicants < ipnuma->max_senders;
}

static void dn_ipnuma_challenge(const dn_ipnuma_t *ipnuma, const dn_ipnuma_applicant_t *applicant)
{
    const dn_ipnuma_challenge_datagram_t datagram = {
        .head = {.token = applicant->theirs, .kind = DN_IPNUMA_CHALLENGE}, .challenge = applicant->challenge};

    (void) dn_ipnuma_socket_send(ipnuma, &applicant->where, -1, &datagram, sizeof(datagram));
}

/** Handle a genuine HELLO: a process with the key of a group that is let in has made it at some time. */
static void dn_ipnuma_apply(dn_ipnuma_t *ipnuma, const dn_ipnuma_hello_datagram_t *datagram,
                            const dn_auth_root_t *root, const dn_pgid_t *pgid, enum dn_ipnuma_refusal why,
                            uint64_t now)
{
    const dn_ipnuma_hello_t *hello = &datagram->hello;
    dn_ipnuma_applicant_t **last = &ipnuma->applicant;
    dn_auth_side_t theirs, ours;

    dn_ipnuma_applicant_t *applicant = calloc(1, sizeof(*applicant));
    if (NULL == applicant) {
        dn_count(&ipnuma->iface.counters->dropped, 1);
        return;
    }
    *applicant = (dn_ipnuma_applicant_t){.theirs = datagram->head.token,
                                         .since = now,
                                         .pid = hello->pid,
                                         .pgid = *pgid,
                                         .where = hello->where,
                                         .challenge = {.terms = {.why = why}}};
    dn_auth_random(&applicant->token, sizeof(applicant->token));
    applicant->token |= 1;
    applicant->challenge.terms.token = applicant->token;
    dn_ipnuma_side(&hello->where, hello->pid, &theirs);
    memcpy(theirs.random, hello->random, sizeof(theirs.random));
    dn_ipnuma_side(&ipnuma->where, dn_port_job(ipnuma->iface.port)->pid, &ours);
    dn_auth_random(ours.random, sizeof(ours.random));
    memcpy(applicant->challenge.random, ours.random, sizeof(ours.random));
    dn_auth_pair(root, &theirs, &ours, &applicant->pair);
    dn_auth_prove(&applicant->pair, DN_AUTH_ACCEPTOR, &applicant->challenge.terms,
                  sizeof(applicant->challenge.terms), applicant->challenge.mac);
    while (NULL != *last) {
        last = &(*last)->next;
    }
    *last = applicant;
    ipnuma->napplicants++;
    dn_ipnuma_challenge(ipnuma, applicant);
    if (DN_IPNUMA_WELCOME != why) {
        dn_ipnuma_applicant_free(ipnuma, applicant);
    }
}

/** Has a process with the key of a group said this HELLO to this port? @return the secret that both share; NULL: no. */
static const dn_auth_root_t *dn_ipnuma_is_genuine(dn_ipnuma_t *ipnuma,
                                                  const dn_ipnuma_hello_datagram_t *datagram, dn_pgid_t *pgid)
{
    const dn_ipnuma_hello_t *hello = &datagram->hello;
    uint8_t mac[DN_AUTH_MAC];

    if (DN_IPNUMA_MAGIC != hello->magic || DN_WIRE_VERSION != hello->version || 0 == datagram->head.token
        || !dn_ipnuma_is_sound(&hello->where)
        || 0 != memcmp(hello->to, ipnuma->where.nonce, sizeof(hello->to))
        || 0 == memcmp(hello->where.nonce, ipnuma->where.nonce, sizeof(hello->where.nonce))) {
        dn_count(&ipnuma->iface.counters->dropped, 1);
        return NULL;
    }
    const dn_auth_root_t *root =
        dn_guests_root(&ipnuma->guests, dn_port_group(ipnuma->iface.port), hello->where.exchange, pgid);
    if (NULL == root) {
        dn_port_stranger(ipnuma->iface.port);
        return NULL;
    }
    dn_auth_mac(root, datagram, DN_IPNUMA_SIGNED, mac);
    if (!dn_auth_same(mac, hello->mac)) {
        dn_count(&ipnuma->iface.counters->dropped, 1);
        return NULL;
    }
    if (hello->where.auth != ipnuma->where.auth) {
        if (!ipnuma->told) {
            dn_log_later(&ipnuma->later,
                         "PID %" PRIu32
                         " has another auth than this process; set it to one value for the whole job",
                         hello->pid);
        }
        ipnuma->told = 1;
        return NULL;
    }
    return root;
}

static void dn_ipnuma_hello(dn_ipnuma_t *ipnuma, const dn_ipnuma_hello_datagram_t *datagram, uint64_t now)
{
    dn_pgid_t pgid;

    const dn_auth_root_t *root = dn_ipnuma_is_genuine(ipnuma, datagram, &pgid);
    if (NULL == root) {
        return;
    }
    dn_ipnuma_pc_t *pc = dn_ipnuma_pc_of(ipnuma, datagram->hello.where.nonce);
    if (ipnuma->closing) {
        if (dn_ipnuma_has_place(ipnuma, now)) {
            dn_ipnuma_apply(ipnuma, datagram, root, &pgid, DN_IPNUMA_CLOSED, now);
        }
        if (NULL != pc && DN_IPNUMA_GREETS == pc->state) {
            /* The CHALLENGE says that this port closes, so this process need not open the connection to say CLOSE. */
            dn_ipnuma_kill(pc, DN_PEER_PARTED);
        }
        return;
    }
    for (const dn_ipnuma_applicant_t *known = ipnuma->applicant; NULL != known; known = known->next) {
        if (datagram->head.token == known->theirs) {
            dn_ipnuma_challenge(ipnuma, known);
            return;
        }
    }
    if (NULL != pc && DN_IPNUMA_OPEN == pc->state
        && (datagram->head.token == pc->link.token || 0 != pc->greet.at)) {
        /* The HELLO is a late copy of the one that opened the connection. Or the other process has said it before the PROOF of this
         * process has come. */
        return;
    }
    if (NULL != pc && 0 != memcmp(&pc->pgid, &pgid, sizeof(pgid))) {
        /* The sender uses the nonce of a process of another group. */
        dn_count(&ipnuma->iface.counters->dropped, 1);
        return;
    }
    if ((NULL != pc && DN_IPNUMA_GREETS == pc->state && dn_ipnuma_goes_first(ipnuma, pc->where.nonce))
        || !dn_ipnuma_has_place(ipnuma, now)) {
        return;
    }
    enum dn_ipnuma_refusal why = DN_IPNUMA_WELCOME;
    /* Connections with processes that have not joined take memory, too: their number is bounded. */
    const int full =
        ipnuma->nsenders >= ipnuma->max_senders || (NULL == pc && ipnuma->npcs / 2 >= ipnuma->max_senders);
    if ((NULL == pc || !pc->joined) && full) {
        if (dn_ipnuma_find_dead(ipnuma)) {
            /* Slots become free now, and the process repeats its HELLO. */
            return;
        }
        why = DN_IPNUMA_FULL;
    }
    dn_ipnuma_apply(ipnuma, datagram, root, &pgid, why, now);
}

/** Find or make the entry of the PC ID table for an applicant. @return NULL: it gets no entry now. */
static dn_ipnuma_pc_t *dn_ipnuma_admit(dn_ipnuma_t *ipnuma, const dn_ipnuma_applicant_t *applicant)
{
    dn_ipnuma_pc_t *pc = dn_ipnuma_pc_of(ipnuma, applicant->where.nonce);
    dn_pgid_t pgid;

    if (NULL != pc && DN_IPNUMA_GREETS != pc->state) {
        /* The applicant has given up the old connection, and begins anew. The old connection has to end first. */
        dn_ipnuma_kill(pc, DN_PEER_SUSPECT);
        if (NULL != pc->peer) {
            return NULL;
        }
        dn_ipnuma_pc_free(pc);
        pc = NULL;
    }
    if (NULL == pc) {
        const dn_auth_root_t *root = dn_guests_root(&ipnuma->guests, dn_port_group(ipnuma->iface.port),
                                                    applicant->where.exchange, &pgid);
        pc = NULL == root
                 ? NULL
                 : dn_ipnuma_pc_open(ipnuma, &applicant->where, applicant->pid, &applicant->pgid, root);
    }
    return pc;
}

static void dn_ipnuma_proved(dn_ipnuma_t *ipnuma, const dn_ipnuma_proof_datagram_t *datagram, uint64_t now)
{
    dn_ipnuma_applicant_t *applicant = ipnuma->applicant;
    dn_ipnuma_pc_t *pc = dn_ipnuma_pc_named(ipnuma, datagram->head.token);
    uint8_t mac[DN_AUTH_MAC];

    while (NULL != applicant && datagram->head.token != applicant->token) {
        applicant = applicant->next;
    }
    const dn_auth_pair_t *pair = NULL != applicant ? &applicant->pair : NULL != pc ? &pc->greet.pair : NULL;
    if (NULL != pair) {
        dn_auth_prove(pair, DN_AUTH_OPENER, NULL, 0, mac);
    }
    if (NULL == pair || !dn_auth_same(mac, datagram->proof.mac)) {
        dn_count(&ipnuma->iface.counters->dropped, 1);
        return;
    }
    if (NULL != applicant) {
        pc = dn_ipnuma_admit(ipnuma, applicant);
        if (NULL == pc) {
            return;
        }
        dn_ipnuma_pc_unlist(pc);
        dn_ipnuma_pc_list(pc, applicant->token);
        dn_ipnuma_pc_begin(pc, pair, DN_AUTH_ACCEPTOR, applicant->theirs, now);
        pc->greet.at = 0;
        /* A PROOF of an earlier HELLO, which comes late, must not end this connection. */
        while (NULL != (applicant = dn_ipnuma_applicant_of(ipnuma, pc->where.nonce))) {
            dn_ipnuma_applicant_free(ipnuma, applicant);
        }
    }
    if (DN_IPNUMA_OPEN == pc->state) {
        /* The opener repeats PROOF until a packet comes: send one. */
        dn_ipnuma_link_word(&pc->link, 0, now);
        dn_ipnuma_link_send(&pc->link, now);
    }
    if (ipnuma->closing) {
        /* The CHALLENGE was said before this port began to close. dn_ipnuma_close() may have told all others. */
        dn_ipnuma_leave(pc, DN_TLP_CLOSE);
    }
}

/* Datagrams that come */

static void dn_ipnuma_packet(dn_ipnuma_t *ipnuma, uint8_t *bytes, size_t len, uint64_t now)
{
    dn_ipnuma_head_t head;

    memcpy(&head, bytes, sizeof(head));
    dn_ipnuma_pc_t *pc = dn_ipnuma_pc_named(ipnuma, head.token);
    if (NULL == pc || DN_IPNUMA_OPEN != pc->state) {
        dn_count(&ipnuma->iface.counters->dropped, NULL == pc);
        return;
    }
    if (dn_ipnuma_link_receive(&pc->link, bytes, len, now)) {
        pc->greet.at = 0;
    }
    dn_ipnuma_pc_count(pc);
    if (NULL != pc->link.broken) {
        dn_log_later(&ipnuma->later, "PID %" PRIu32 " sent %s over ipnuma; it is cut off", pc->pid,
                     pc->link.broken);
        dn_count(&ipnuma->iface.counters->dropped, 1);
        dn_ipnuma_kill(pc, DN_PEER_SUSPECT);
    } else if (pc->link.parted) {
        dn_ipnuma_kill(pc, DN_PEER_PARTED);
    }
}

void dn_ipnuma_arrived(dn_ipnuma_t *ipnuma, uint8_t *bytes, size_t len, uint64_t now)
{
    const uint8_t kind = ((const dn_ipnuma_head_t *) (const void *) bytes)->kind;

    if (DN_IPNUMA_PACKET == kind) {
        dn_ipnuma_packet(ipnuma, bytes, len, now);
    } else if (DN_IPNUMA_HELLO == kind && sizeof(dn_ipnuma_hello_datagram_t) == len) {
        dn_ipnuma_hello(ipnuma, (const dn_ipnuma_hello_datagram_t *) (const void *) bytes, now);
    } else if (DN_IPNUMA_CHALLENGE == kind && sizeof(dn_ipnuma_challenge_datagram_t) == len) {
        dn_ipnuma_challenged(ipnuma, (const dn_ipnuma_challenge_datagram_t *) (const void *) bytes, now);
    } else if (DN_IPNUMA_PROOF == kind && sizeof(dn_ipnuma_proof_datagram_t) == len) {
        dn_ipnuma_proved(ipnuma, (const dn_ipnuma_proof_datagram_t *) (const void *) bytes, now);
    } else {
        dn_count(&ipnuma->iface.counters->dropped, 1);
    }
}
