/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_model.h
 * Run programs over dimmnet.h on network interfaces that are not there: the device `model`.
 *
 * dn_model_run() makes N nodes in this process. Each is a coroutine that runs ordinary code: it opens a port
 * with dn_open("model"), tells its address, connects, sends, polls. What that costs on the NIC of a profile
 * is counted by a virtual clock in picoseconds; nothing depends on how fast this machine is. The same call
 * gives the same result, always, wherever in memory its buffers lie (as long as they begin at the same place
 * of a page); another seed gives another order of what happens at the same time, and other moments at which
 * polls look.
 *
 * Time passes in calls of dimmnet.h and of this file only. A store costs CPU time; dn_progress() and
 * dn_recv() cost one poll (dn_model_poll()). A second poll in vain gives the core to the other nodes until
 * something arrives, and the poll that then finds it comes at a random moment of the polling interval. A node that
 * waits for something that comes by no message has to call dn_progress() or dn_model_yield() too: nodes share
 * this thread.
 *
 * Rings of messages lie in the NIC's LLCM where its profile has no host_read_line: a first dn_botf() to a
 * peer whose LLCM has no room for one more gets DN_ERR_NOMEM. A port asks for DN_MODEL_LLCM_BYTES, say: the
 * default is more than some NICs have.
 *
 * Threads: one run at a time in a thread. A port of the model belongs to the node that opened it.
 */
#ifndef DN_MODEL_H
#define DN_MODEL_H

#include "dimmnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** dn_config_t::llcm_bytes of a node that needs no other: of the least LLCM of the papers' NICs half is left for rings. */
#define DN_MODEL_LLCM_BYTES 65536

/** How the nodes are joined. */
typedef enum dn_model_fabric {
    DN_MODEL_PAIR,     /**< each two nodes back to back by a cable */
    DN_MODEL_INTERNAL, /**< looped back inside the NIC: packets to oneself only */
    DN_MODEL_EXTERNAL, /**< looped back by a cable: packets to oneself only */
    DN_MODEL_STAR,     /**< one switch with a port for each node */
    DN_MODEL_CHAIN,    /**< dn_model_config_t::switches between each two nodes, not shared */
    DN_MODEL_TREE,     /**< fat tree of switches with the profile's ports, half of them upwards */
} dn_model_fabric_t;

/** One run. */
typedef struct dn_model_config {
    const char
        *profile; /**< a file, or a name of the folder DN_MODEL_PROFILES names, else of the installed ones */
    uint32_t nodes; /**< 1..131072 */
    uint64_t seed;  /**< 0: what happens at the same time happens in the order in which it was started */
    dn_model_fabric_t fabric; /**< what is between the nodes */
    const char
        *fabric_profile; /**< whose switches and links, as `profile`; NULL: those of the NIC's profile */
    uint32_t switches;   /**< DN_MODEL_CHAIN: between two nodes */
    uint32_t cable_m;    /**< cable from node to node in metres, beyond what the profile's link holds */
    size_t stack_bytes;  /**< of a node, touched memory only is used; 0: 256 KiB */
} dn_model_config_t;

/** What a run came to: counts over all nodes. */
typedef struct dn_model_report {
    uint64_t end_ps;        /**< virtual time when the last node ended */
    uint64_t events;        /**< of the simulation, handled */
    uint64_t packets;       /**< put on NICs' links; a multicast is one */
    uint64_t wire_bytes;    /**< of these */
    uint64_t aotf;          /**< packets of one store */
    uint64_t botf;          /**< packets built in a window */
    uint64_t push_packets;  /**< with data of PUSHes */
    uint64_t pull_packets;  /**< with data of PULLs */
    uint64_t pull_requests; /**< packets that ask for data */
    uint64_t acks;          /**< acknowledgements */
    uint64_t lost;          /**< packets and acknowledgements, on links that lose some */
    uint64_t resent;        /**< packets, for want of an acknowledgement */
    uint64_t
        link_packets; /**< over all links, where they have credits or bit errors, those sent again with them */
    uint64_t link_resent;   /**< of these: sent again by one link, since they had come wrong */
    uint64_t link_stalls;   /**< times that a link had something to send, and no credits for it */
    uint64_t link_credits;  /**< most in use on one link */
    uint64_t header_misses; /**< HTLB */
    uint64_t tlb_misses;    /**< PATLB and RVATLB */
    uint64_t credit_checks; /**< reads of the transaction FIFO's state when credits had run out */
    uint64_t window_checks; /**< reads of a window's state */
    uint64_t window_waits;  /**< of these, those that found the window still in use */
    uint64_t
        refused; /**< packets that named what their group may not name: dropped, or answered by an error */
    uint64_t interrupts;   /**< of the core processor: misses, interrupt AOTF */
    uint64_t multicasts;   /**< stores to several nodes at once */
    uint64_t llcm_bytes;   /**< most LLCM in use at one node: the port's and the message rings' */
    uint64_t pages_mapped; /**< most entries of the page map in use at one node */
    uint64_t unmapped;     /**< PUSHes and PULLs by messages, for want of entries */
    uint64_t errors;       /**< error codes sent to who wrote what it may not */
} dn_model_report_t;

/** What each node runs. @param[in] node  Its number, from 0 on. @param[in] arg  As given to dn_model_run(). */
typedef void (*dn_model_fn_t)(uint32_t node, void *arg);

/** All fields of a run: 2 nodes, back to back, seed 0. */
DN_API void dn_model_config_init(dn_model_config_t *config);

/**
 * Run fn in every node until all have returned.
 *
 * @param[out] report_p  NULL: not wanted.
 *
 * @retval DN_ERR_PARAM    a field out of its range, or a mistake in the profile: the log line says which.
 * @retval DN_ERR_NOMEM    no memory for the nodes.
 * @retval DN_ERR_UNREACH  all nodes wait and nothing is under way: a deadlock of the program. Their stacks are
 *                         gone, what they held is lost.
 *
 * Pinned by test/unit/dn_model_runs_nodes_in_virtual_time.c.
 */
DN_API dn_status_t dn_model_run(const dn_model_config_t *config, dn_model_fn_t fn, void *arg,
                                dn_model_report_t *report_p);

/** @name For the code of a node */
/** @{ */
/** This node's number; UINT32_MAX: not called by a node. */
DN_API uint32_t dn_model_node(void);
/** This node's clock in picoseconds since the run began. */
DN_API uint64_t dn_model_now(void);
/** Spend CPU time. */
DN_API void dn_model_compute(uint64_t ps);
/** Let the other nodes run. */
DN_API void dn_model_yield(void);
/** Let the nodes look that wait: what they wait for may have come by no message. Without it they look when
 * nothing is under way any more. */
DN_API void dn_model_wake(void);
/** A value of the run's profile: times in picoseconds, clocks in kHz, sizes in bytes, rates in bytes a second;
 * 0 for a key that is not there. */
DN_API uint64_t dn_model_value(const char *key);
/** What one poll of this node reads from now on. As at first: 8 bytes in one access. */
typedef enum dn_model_read {
    DN_MODEL_READ_8,       /**< 8 bytes in one access, by MMX on a 32-bit processor */
    DN_MODEL_READ_4,       /**< up to 4 bytes */
    DN_MODEL_READ_8_PLAIN, /**< 8 bytes without MMX */
    DN_MODEL_READ_NOTHING, /**< takes no time: to learn when something arrives */
} dn_model_read_t;
/** Say how this node polls from now on. */
DN_API void dn_model_poll(dn_model_read_t what);
/** Spend the time of one such read. */
DN_API void dn_model_read(dn_model_read_t what);

/** How dn_push() of this node sends from now on. */
typedef enum dn_model_way {
    DN_MODEL_WAY_SIZE, /**< up to the longest packet that a window holds by BOTF, longer ones by DMA */
    DN_MODEL_WAY_BOTF,
    DN_MODEL_WAY_DMA,
} dn_model_way_t;
/** Choose one of them. */
DN_API void dn_model_push_by(dn_model_way_t way);

/** Exchange the SO-DIMMs: the bank that was the NIC's faces the host. Costs the profile's time. */
DN_API void dn_model_switch_banks(void);

/**
 * AOTF with a command that the hardware does not know: the target's core processor adds the value to a list in
 * its LLCM. The list's first word counts the entries, entry i is the 8 bytes at @p off + 64 * i, i from 1 on.
 *
 * @retval DN_ERR_UNSUPPORTED  the peer is not one of the model.
 * Else as dn_aotf().
 */
DN_API dn_status_t dn_model_aotf_interrupt(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size);

/**
 * One AOTF to several peers of a port: one packet on the sender's link, which the switch sends on to each of
 * them once.
 *
 * @param peer   of one port; @p off, @p value and @p size are the same for all.
 * @param count  0: nothing is sent.
 *
 * @retval DN_ERR_UNSUPPORTED  the fabric is no star, its switch has no switch_multicast_flag, or a peer is not one of
 *                             the model: send to one after the other.
 * Else as dn_aotf(); nothing was sent to anybody then.
 *
 * Pinned by test/unit/dn_model_links_keep_credit_and_order.c.
 */
DN_API dn_status_t dn_model_aotf_multicast(dn_peer_t *const *peer, size_t count, uint64_t off, uint64_t value,
                                           size_t size);

/**
 * Say which nodes may reach memory of this port: those whose number agrees with @p node where @p mask has ones, as
 * IP-NUMA's shared region table does by address and subnet mask. At first: all. Others' writes are ignored, and an
 * error code tells the sender where the profile has refusal_told_flag: the peer is lost to it, until it disconnects and
 * connects anew. The status word of a PUSH lies in LLCM, whose entry counts for it; credit for messages that this port
 * has sent is let in from everybody, since it asked for that by sending.
 *
 * @param key  a segment's of this port; NULL: the port's LLCM and its messages.
 *
 * @retval DN_ERR_UNSUPPORTED  the port has no device of the model, or none of this run: nothing changed.
 * @retval DN_ERR_RANGE        the key is stale or made up, or the NIC's table had no entry for it: nothing changed.
 *
 * Pinned by test/unit/dn_model_bounds_ip_numas_tables.c.
 */
DN_API dn_status_t dn_model_share(dn_port_t *port, const dn_key_t *key, uint32_t node, uint32_t mask);
/** @} */

/** @name Profiles */
/** @{ */
/** The values of a profile: dn_model_profile_open(). */
typedef struct dn_model_profile dn_model_profile_t;
/**
 * Read a profile. Values are as dn_model_value() gives them.
 * @retval DN_ERR_PARAM  a mistake in the file: the log line says where, and what is accepted.
 * @retval DN_ERR_NOMEM  memory ran out.
 */
DN_API dn_status_t dn_model_profile_open(const char *name, dn_model_profile_t **profile_p);
/** Free a profile. */
DN_API void dn_model_profile_close(dn_model_profile_t *profile);
/** The value of a key, as dn_model_value() gives it. */
DN_API uint64_t dn_model_profile_value(const dn_model_profile_t *profile, const char *key);
/** The i-th key of all that there are, and its one-line meaning; NULL when there are no more. */
DN_API const char *dn_model_key(size_t i, const char **meaning_p);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
