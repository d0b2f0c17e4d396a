/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The PC ID table: the processes with a connection to this process. Each has a PC ID. An entry is found by this process' token of the
 * connection, or by the nonce of the other process.
 */
#include "dn_config.h"

#include "dn_ipnuma_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_log.h"

/** Arrows of the drawing in dn_ipnuma_int.h. */
const uint32_t dn_ipnuma_pc_turns[] = {
    [DN_IPNUMA_GREETS] = DN_TURN_TO(DN_IPNUMA_OPEN) | DN_TURN_TO(DN_IPNUMA_DEAD),
    [DN_IPNUMA_OPEN] = DN_TURN_TO(DN_IPNUMA_DEAD),
    [DN_IPNUMA_DEAD] = 0,
};

void dn_ipnuma_side(const dn_ipnuma_where_t *where, uint32_t pid, dn_auth_side_t *side)
{
    *side = (dn_auth_side_t){.nonce = {where->nonce[0], where->nonce[1]}, .pid = pid};
    dn_auth_digest(where, sizeof(*where), side->address);
}

void dn_ipnuma_pc_list(dn_ipnuma_pc_t *pc, uint64_t token)
{
    dn_ipnuma_pc_t **bucket = &pc->ipnuma->bucket[token % DN_IPNUMA_BUCKETS];

    pc->token = token;
    pc->bucket = *bucket;
    *bucket = pc;
}

void dn_ipnuma_pc_unlist(dn_ipnuma_pc_t *pc)
{
    dn_ipnuma_pc_t **at = &pc->ipnuma->bucket[pc->token % DN_IPNUMA_BUCKETS];

    while (pc != *at) {
        at = &(*at)->bucket;
    }
    *at = pc->bucket;
}

dn_ipnuma_pc_t *dn_ipnuma_pc_named(const dn_ipnuma_t *ipnuma, uint64_t token)
{
    dn_ipnuma_pc_t *pc = ipnuma->bucket[token % DN_IPNUMA_BUCKETS];

    while (NULL != pc && token != pc->token) {
        pc = pc->bucket;
    }
    return pc;
}

dn_ipnuma_pc_t *dn_ipnuma_pc_of(const dn_ipnuma_t *ipnuma, const uint64_t nonce[2])
{
    dn_ipnuma_pc_t *pc = ipnuma->pcs;

    while (NULL != pc && 0 != memcmp(pc->where.nonce, nonce, sizeof(pc->where.nonce))) {
        pc = pc->next;
    }
    return pc;
}

/** Take a free PC ID. @return 0: no PC ID is free. */
static uint16_t dn_ipnuma_pc_id(dn_ipnuma_t *ipnuma)
{
    for (uint32_t id = 1; id < 65536; id++) {
        uint8_t *byte = &ipnuma->pc_used[id / 8];
        if (0 == (*byte & 1u << id % 8)) {
            *byte = (uint8_t) (*byte | 1u << id % 8);
            return (uint16_t) id;
        }
    }
    return 0;
}

static void dn_ipnuma_pc_id_free(dn_ipnuma_t *ipnuma, uint16_t id)
{
    ipnuma->pc_used[id / 8] = (uint8_t) (ipnuma->pc_used[id / 8] & ~(1u << id % 8));
}

/** The address of the first page that holds a PC's LLCM. @param[out] len_p  Bytes from there to the end of the LLCM. */
static uint64_t dn_ipnuma_llcm_pages(const dn_ipnuma_where_t *where, uint64_t *len_p)
{
    const uint64_t within = where->llcm_at % DN_IPNUMA_PAGE;

    *len_p = where->llcm_bytes + within;
    return where->llcm_at - within;
}

dn_ipnuma_pc_t *dn_ipnuma_pc_open(dn_ipnuma_t *ipnuma, const dn_ipnuma_where_t *where, uint32_t pid,
                                  const dn_pgid_t *pgid, const dn_auth_root_t *root)
{
    /* First, since a path does without a socket of its own where no more files can be opened. */
    const int same_host = 0 == memcmp(where->host, ipnuma->where.host, sizeof(where->host));
    const int pidfd = same_host ? dn_process_open(where->os_pid) : -1;
    const int fd = dn_ipnuma_socket_connect(ipnuma, where);
    const uint32_t mtu = dn_ipnuma_socket_mtu(where, fd);
    const dn_ipnuma_link_terms_t terms = {.first = ipnuma->first,
                                          .datagram = 0 != mtu ? mtu : DN_IPNUMA_DATAGRAM_LEAST,
                                          .window = where->window,
                                          .ahead = ipnuma->where.window,
                                          .credit = where->credit,
                                          .given = ipnuma->where.credit,
                                          .cipher = ipnuma->cipher};
    uint64_t len, token;

    dn_ipnuma_pc_t *pc = calloc(1, sizeof(*pc));
    if (NULL == pc) {
        goto err_disconnect;
    }
    if (!dn_ipnuma_link_open(&pc->link, &dn_ipnuma_pc_ops, &terms)) {
        goto err_free;
    }
    pc->id = dn_ipnuma_pc_id(ipnuma);
    const uint64_t at = dn_ipnuma_llcm_pages(where, &len);
    if (0 == pc->id || DN_OK != dn_ipnuma_map_add(&ipnuma->map, pc->id, at, len, &pc->page)) {
        dn_log_later(&ipnuma->later,
                     "ipnuma has no PC ID or page left for PID %" PRIu32 "; connect to fewer processes", pid);
        goto err_id;
    }
    pc->ipnuma = ipnuma;
    pc->fd = fd;
    pc->where = *where;
    pc->pid = pid;
    pc->pgid = *pgid;
    pc->pidfd = pidfd;
    pc->requests = pc->answered = pc->replies = pc->replied = (uint32_t) ipnuma->first;
    pc->greet.root = *root;
    pc->greet.since = dn_clock_ns();
    pc->greet.gap = DN_IPNUMA_GREET_NS;
    if (NULL != dn_ipnuma_applicant_of(ipnuma, where->nonce)) {
        /* The other process is about to open the connection: wait for its PROOF before this process says HELLO. */
        pc->greet.at = pc->greet.since + DN_IPNUMA_GREET_NS;
    }
    dn_ipnuma_side(&ipnuma->where, dn_port_job(ipnuma->iface.port)->pid, &pc->greet.ours);
    dn_auth_random(pc->greet.ours.random, sizeof(pc->greet.ours.random));
    dn_ipnuma_side(where, pid, &pc->greet.theirs);
    dn_auth_random(&token, sizeof(token));
    dn_ipnuma_pc_list(pc, token | 1);
    pc->next = ipnuma->pcs;
    ipnuma->pcs = pc;
    ipnuma->npcs++;
    return pc;

err_id:
    if (0 != pc->id) {
        dn_ipnuma_pc_id_free(ipnuma, pc->id);
    }
    dn_ipnuma_link_close(&pc->link);
err_free:
    free(pc);
err_disconnect:
    dn_ipnuma_socket_disconnect(ipnuma, fd);
    if (0 <= pidfd) {
        close(pidfd);
    }
    return NULL;
}

void dn_ipnuma_pc_fit(dn_ipnuma_pc_t *pc)
{
    const uint32_t mtu = dn_ipnuma_socket_mtu(&pc->where, pc->fd);

    /* Where the kernel does not say, what was known of the path stays. */
    if (0 != mtu && dn_ipnuma_link_fit(&pc->link, mtu)) {
        /* The kernel may send rows of datagrams that are as long as that. */
        pc->one_by_one = 0;
    }
}

void dn_ipnuma_pc_count(dn_ipnuma_pc_t *pc)
{
    const dn_ipnuma_link_counts_t *now = &pc->link.counts;
    dn_counters_t *counters = pc->ipnuma->iface.counters;

    dn_count(&counters->resent, now->resent - pc->counted.resent);
    dn_count(&counters->dropped, now->dropped - pc->counted.dropped);
    pc->counted = *now;
}

void dn_ipnuma_pc_free(dn_ipnuma_pc_t *pc)
{
    dn_ipnuma_t *ipnuma = pc->ipnuma;
    dn_ipnuma_pc_t **at = &ipnuma->pcs;
    uint64_t len;

    while (pc != *at) {
        at = &(*at)->next;
    }
    *at = pc->next;
    ipnuma->npcs--;
    ipnuma->nsenders -= (uint32_t) pc->joined;
    dn_ipnuma_pc_unlist(pc);
    (void) dn_ipnuma_llcm_pages(&pc->where, &len);
    dn_ipnuma_map_remove(&ipnuma->map, pc->page, len);
    dn_ipnuma_pc_id_free(ipnuma, pc->id);
    dn_ipnuma_socket_disconnect(ipnuma, pc->fd);
    if (0 <= pc->pidfd) {
        close(pc->pidfd);
    }
    dn_ipnuma_pc_count(pc);
    dn_ipnuma_link_close(&pc->link);
    free(pc->partial);
    dn_auth_wipe(&pc->greet, sizeof(pc->greet));
    free(pc);
}
