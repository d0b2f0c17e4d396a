/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_device.h
 * What a device implements, and what it may use of the floor above. Nothing above a device knows
 * which device it is: everything goes through dn_device_t and the peer's dn_peer_ops_t.
 *
 * A device fills the entries that it can do. For push, pull and atomic the port has a version of its own, run
 * by the core processor over BOTF (dn_core.h): it is used where the device's entry is NULL and whenever that
 * returns DN_ERR_UNSUPPORTED. Their arguments have been checked (dn_xfer_check()). So what a device is able to do is
 * read from its table, and never declared apart.
 * The port has a version of its own for aotf_line, too. Where peek and take are NULL, callers receive by
 * handlers only.
 *
 * Threads: where dn_job_t::threads is set, the port calls the entries of dn_device_t under its lock, and
 * the ops of dn_peer_ops_t without: these the device makes safe itself.
 *
 * A device is built into libdimmnet, or is a module of its own: dn_device_NAME.so, in the library's folder of
 * modules or one that DN_DEVICE_PATH names (set-uid programs do not ask it). It exports dn_device_module and
 * is loaded when dn_open() first meets its name, for the life of the process: threads may run its code, and
 * peers hold its ops. No lock of libdimmnet is held while it loads. A device uses the public functions, and
 * those with DN_DEVICE_API: of this header, dn_log.h, dn_auth.h, dn_topo.h, dn_line.h, dn_sg.h and dn_xfer.h.
 * Nothing of these is promised from one DN_DEVICE_VERSION to the next; a module of another one is refused.
 *
 * Pinned by test/unit/dn_device_is_loaded_by_its_name.c; examples/ has a module.
 */
#ifndef DN_DEVICE_H
#define DN_DEVICE_H

#include <time.h>

#include "dimmnet.h"
#include "dn_atomic.h"
#include "dn_auth.h"
#include "dn_queue.h"
#include "dn_turn.h"

/** Is counted up with each change of what a device sees. */
#define DN_DEVICE_VERSION 2
/** Bytes of a device's name, which stands in addresses. */
#define DN_DEVICE_NAME_MAX 8

/** The table of a device: struct dn_device. */
typedef struct dn_device dn_device_t;

/** The function that receives the messages of a channel; fn NULL: none is set yet. */
typedef struct dn_handler {
    dn_handler_fn_t fn; /**< called for each message */
    void *arg;          /**< handed to it */
} dn_handler_t;

/** An open device of a port. A device embeds this first in its own state. */
typedef struct dn_iface {
    const dn_device_t *device; /**< its table */
    dn_port_t *port;           /**< whose it is */
    dn_handler_t *handler;     /**< the port's, DN_CHAN_MAX of them */
    dn_counters_t *counters;   /**< the port's; a thread-safe port may lose a count */
    void *llcm;            /**< the process' LLCM, llcm_bytes of the port's configuration, zeroed. NULL after
                                  open: any memory does, the port sets it */
    const char *provider;  /**< of a network library that the device has chosen; NULL: it uses none */
    const char *domain;    /**< of that provider, and */
    const char *endpoint;  /**< where it is reached: for people */
    int sockets;           /**< dn_peer_attr_t::sockets */
    uint32_t rest;         /**< calls of progress that the port leaves out; set by the device, 0: none */
    uint32_t doubts;       /**< dn_peer_doubt() calls that dn_port_bury() has not looked into yet; wraps */
    struct dn_iface *next; /**< of the port's list, in the order of dn_open()'s */
} dn_iface_t;

/** What the core processor knows of a peer (dn_core.h). */
typedef struct dn_core_peer {
    struct dn_ship *ship;  /**< programs that each has of the other; NULL: none yet */
    dn_queue_t operations; /**< dn_core_op_t with something left to send */
    dn_queue_t answers;    /**< dn_core_answer_t that wait for credit, */
    uint32_t answering;    /**< as many */
    uint32_t asked;        /**< requests to it whose answers have not come */
} dn_core_peer_t;

/**
 * The life of a peer, as it is on every device; each arrow is one dn_peer_turn(), and dn_peer.c has the
 * causes:
 *
 *            dn_port_adopt()       dn_connect()            the last dn_disconnect()
 *   NEW ----------------------> CAME ---------> CONNECTED ----------------------> LEFT
 *    |                                          ^       ^                          |
 *    +------------------------------------------+       +--------------------------+
 *                   dn_connect()                               dn_connect()
 *
 *   NEW, CAME, CONNECTED, LEFT ---> LOST        dn_port_peer_lost(): its users have been told
 *   NEW, CAME, CONNECTED, LEFT ---> FORGOTTEN   dn_peer_retire(): the device is about to free it
 *
 * A device makes a peer NEW, or LOST where its process had left before and only what it has sent is to be
 * had. What callers use (dn_peer_base_t::hot) is the device's while the peer is CAME or CONNECTED, and
 * answers DN_ERR_UNREACH in all other states. dn_connect() refuses a peer that is LOST or FORGOTTEN.
 *
 * Doubt: whatever finds that a peer is gone, in any thread and under any lock, says so by dn_peer_doubt().
 * That only ever grows; the next progress of the device turns such a peer LOST (dn_port_bury()).
 *
 * Threads: `life` changes under the port's lock only. A store releases and a load without that lock acquires, so that a thread
 *          that finds a peer LOST, as one that waits for a lock of the peer's does, comes behind all that the loser did before. `doubt`
 *          is set with release and counted in dn_iface_t::doubts, which a poll loads with acquire: what it counts, it sees.
 */
enum dn_peer_life {
    DN_PEER_NEW,
    DN_PEER_CAME,
    DN_PEER_CONNECTED,
    DN_PEER_LEFT,
    DN_PEER_LOST,
    DN_PEER_FORGOTTEN,
};

/** Why a peer is about to be LOST; of two reasons the later of this list counts. */
enum dn_peer_doubt {
    DN_PEER_TRUSTED, /**< no reason */
    DN_PEER_SUSPECT, /**< the peer was found gone, silent or broken, or was cut off */
    DN_PEER_PARTED,  /**< the peer has said itself that it takes, or sends, no more */
};

/** Floor 2's part of a peer; a device embeds it first in its own. */
typedef struct dn_peer_base {
    dn_peer_t hot;        /**< what callers use: made of ops by the port */
    dn_peer_ops_t ops;    /**< the device's own; lend, push, pull, atomic, aotf_line, wake may be NULL */
    dn_iface_t *iface;    /**< of its device */
    uint32_t connections; /**< dn_connect() calls not yet undone; 0: the peer came by itself */
    uint32_t pid;         /**< PID: rank in its group */
    dn_pgid_t pgid;       /**< its group */
    uint64_t nonce[2];    /**< the peer process' own, tells two processes of one PID apart */
    uint64_t llcm_len;    /**< bytes of its LLCM */
    size_t botf_inline;   /**< longest message that travels in one line */
    size_t botf_max;      /**< longest message */
    size_t
        cut; /**< transfers by messages are cut at multiples of it, where a message holds as much; 0: anywhere */
    /** Transfers in flight beyond their call, changed by fetch-and-add: a fence that finds 0 with acquire
     * comes behind them all, whichever thread has ended them. */
    uint32_t outstanding;
    uint32_t life;             /**< enum dn_peer_life */
    uint32_t doubt;            /**< enum dn_peer_doubt */
    uint32_t refusals;         /**< operations that found no room, ever, wraps: dn_peer_refused() */
    void *fault;               /**< of the fault wrapper, NULL without one */
    dn_core_peer_t core;       /**< what the core processor knows of it */
    struct dn_peer_base *next; /**< of the port's list */
} dn_peer_base_t;

/** By life: those that may follow (dn_turn.h). */
DN_DEVICE_API extern const uint32_t dn_peer_turns[];

/** Change a peer's life. The port's lock is held. */
static inline void dn_peer_turn(dn_peer_base_t *peer, enum dn_peer_life to)
{
    dn_turn_check("a peer", dn_peer_turns, peer->life, to);
    dn_store_release_u32(&peer->life, to);
}

/** Nobody is told of this peer any more: its device is about to free it. The port's lock is held. */
static inline void dn_peer_retire(dn_peer_base_t *peer)
{
    if (DN_PEER_LOST > peer->life) {
        dn_peer_turn(peer, DN_PEER_FORGOTTEN);
    }
}

/** Has everybody been told that it is gone? Any thread may ask. */
static inline int dn_peer_is_lost(const dn_peer_base_t *peer)
{
    return DN_PEER_LOST == dn_load_acquire_u32(&peer->life);
}

/** Is it lost, or about to be? Any thread may ask. */
static inline int dn_peer_is_doubted(const dn_peer_base_t *peer)
{
    return DN_PEER_TRUSTED != dn_load_acquire_u32(&peer->doubt);
}

/** Table of a device. name and every entry without "NULL:" is mandatory. */
struct dn_device {
    const char *name; /**< at most DN_DEVICE_NAME_MAX bytes, as dn_open() takes it */

    /** Open for a port. DN_ERR_UNSUPPORTED: not on this machine. */
    dn_status_t (*open)(dn_port_t *port, const dn_config_t *config, const char *argument,
                        dn_iface_t **iface_p);
    /** Undo open. The peers have been released. */
    void (*close)(dn_iface_t *iface);

    /** Write this device's part of the address, at most *len bytes; *len becomes what was used. */
    dn_status_t (*address)(const dn_iface_t *iface, void *buf, size_t *len);

    /**
     * Reach a peer by its part of the address. The identity in @p id has been checked against the
     * port's groups; the device checks that the other end is the same. *peer_p: in, the peer when it
     * exists without a connection of ours; out, the peer, with ops, botf_*, llcm_len set.
     * DN_ERR_UNREACH: not by this device. DN_ERR_UNSUPPORTED: this device reaches no process at all where that
     * address leads; the other end then has to find the same of this process' address.
     */
    dn_status_t (*connect)(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                           dn_peer_base_t **peer_p);
    /** Send no more to it. When it sends no more to us either, now or later, dn_port_forget() and free it. */
    void (*disconnect)(dn_peer_base_t *peer);
    /** Free it now: the port closes. */
    void (*release)(dn_peer_base_t *peer);

    /**
     * Receive from all peers: give each message to handler[channel], and keep it (and what follows from
     * that sender) when there is none yet; drop and count it when its channel is out of range.
     * @return events.
     */
    int (*progress)(dn_iface_t *iface);
    /** Receive at most max messages of one peer. */
    int (*recv)(dn_peer_base_t *peer, int max);

    /** DN_OK while the peer's process lives. */
    dn_status_t (*check)(dn_peer_base_t *peer);

    /** The peer was lost: signal the operations that the device has in flight to the peer. One whose memory
     * the peer's process may still write to is signalled as soon as that process does so no more. NULL: the
     * device never has any in flight. */
    void (*lost)(dn_peer_base_t *peer);

    /** A message on DN_CHAN_DEVICE, as a dn_handler_fn_t gets it. NULL: the device sends none. */
    void (*message)(dn_peer_base_t *src, unsigned tag, const void *data, size_t len);

    /** A group was admitted: look again at the processes that were waiting for that. NULL: none ever
     * waits. */
    void (*admitted)(dn_iface_t *iface, const dn_pgid_t *pgid);

    /** Allocate memory that peers can map; adds its way to the key. NULL: register is used. */
    dn_status_t (*segment_alloc)(dn_iface_t *iface, uint64_t len, void **base_p, dn_key_t *key);
    /** Undo segment_alloc. */
    void (*segment_release)(dn_iface_t *iface, void *base, const dn_key_t *key);
    /** Add a way to the key by which peers reach memory that this device did not allocate. NULL, or no way
     * added: by messages only. */
    void (*segment_register)(dn_iface_t *iface, void *base, dn_key_t *key);
    /** Undo segment_register: the memory may go after this. NULL: there is nothing to undo. */
    void (*segment_unregister)(dn_iface_t *iface, const dn_key_t *key);

    /** Where an allocated segment of this peer lies here; it stays there until the peer is freed. NULL:
     * nowhere. */
    dn_status_t (*map)(dn_peer_base_t *peer, const dn_key_t *key, void **base_p);

    /** Is the private memory of this peer reached without its processor (dn_peer_attr_t::direct)? NULL:
     * no. */
    int (*direct)(const dn_peer_base_t *peer);
    /** May this peer reach a segment of ours by messages, as far as the device's own tables say? NULL: each
     * may. */
    int (*opens)(const dn_peer_base_t *src, const dn_key_t *key);
    /** Does this process share its cores with peers? NULL: no. */
    int (*oversubscribed)(const dn_iface_t *iface);
    /** The bell of this process (dn_wait.h). All that the device does for a peer touches that of the peer, and
     * so does dn_peer_ops_t::wake. NULL: there is none. */
    uint32_t *(*bell)(const dn_iface_t *iface);
    /** As progress, but look at each peer, and do what is done now and then: the process is about to sleep, or
     * has slept. NULL: progress does. */
    int (*look)(dn_iface_t *iface);
    /** Changes with each message that dn_take() has taken. NULL: there is no dn_peek(), or nobody sleeps
     * here. */
    uint64_t (*heard)(const dn_iface_t *iface);
    int clocked; /**< not 0: what it does has its time by a clock, so that nobody sleeps over it unasked */
};

/** What a module exports, as dn_device_module. */
typedef struct dn_device_module {
    uint32_t version; /**< DN_DEVICE_VERSION */
    uint32_t
        size[4]; /**< of dn_device_t, dn_iface_t, dn_peer_base_t, dn_config_t: the headers are the same */
    const dn_device_t *device; /**< its table */
} dn_device_module_t;

/** What dn_device_module holds for dn_device_t @p table. */
#define DN_DEVICE_MODULE_INIT(table)                                                                         \
    {                                                                                                        \
        DN_DEVICE_VERSION,                                                                                   \
            {sizeof(dn_device_t), sizeof(dn_iface_t), sizeof(dn_peer_base_t), sizeof(dn_config_t)}, &(table) \
    }

/** The device of a module: dn_device_t @p table. */
#define DN_DEVICE_MODULE(table)                              \
    DN_API extern const dn_device_module_t dn_device_module; \
    const dn_device_module_t dn_device_module = DN_DEVICE_MODULE_INIT(table)

/** Make a device known to dn_open() that the program has already: none is loaded for its name. Adding it again
 * is legal.
 * @retval DN_ERR_VERSION  built for another version: the log line says which.
 * @retval DN_ERR_PARAM    an entry is missing, or another device has the name: the log line says which. */
DN_DEVICE_API dn_status_t dn_device_add(const dn_device_module_t *module);

/** Values of dn_key_way_t::kind. No two devices have one in common. */
enum {
    DN_KEY_NONE = 0, /**< no way */
    DN_KEY_SHM = 1,  /**< the first of a device's own */
    DN_KEY_OFI = 16,
    DN_KEY_IPNUMA = 32,
    DN_KEY_MODULE = 256, /**< from here on: of modules */
};

/** The way of a kind in a key, or NULL. */
static inline const dn_key_way_t *dn_key_way(const dn_key_t *key, uint32_t kind)
{
    for (int i = 0; i < DN_KEY_WAYS; i++) {
        if (kind == key->way[i].kind) {
            return &key->way[i];
        }
    }
    return NULL;
}

/** Add a way to a key. When there is no room for it, the core processor serves the peers that would have used
 * it. */
static inline void dn_key_add(dn_key_t *key, dn_key_way_t way)
{
    for (int i = 0; i < DN_KEY_WAYS; i++) {
        if (DN_KEY_NONE == key->way[i].kind) {
            key->way[i] = way;
            return;
        }
    }
}

/** What a key is besides its ways, in one word: a device that is given a key whose parts do not belong together leaves it to the core
 * processor, which refuses it. */
static inline uint32_t dn_key_sum(const dn_key_t *key)
{
    const uint64_t sum = (key->len ^ key->len >> 29) + UINT64_C(0x9e3779b1) * key->sid
                         + UINT64_C(0x85ebca77) * key->generation;

    return (uint32_t) (sum ^ sum >> 32);
}

/** What a message on DN_CHAN_CORE is to a PUSH or PULL. */
typedef enum dn_core_part_kind {
    DN_CORE_PART_NONE, /**< nothing, or it is malformed */
    DN_CORE_PART_PUSH, /**< some data, or all */
    DN_CORE_PART_DONE, /**< the acknowledgement of a PUSH */
    DN_CORE_PART_ASK,  /**< a PULL's request */
    DN_CORE_PART_DATA  /**< some of the answer, or all */
} dn_core_part_kind_t;

/** For a device that gives transfers other times than messages. */
typedef struct dn_core_part {
    dn_core_part_kind_t kind; /**< what the rest has a meaning for */
    int first;                /**< PUSH, ASK: of its transfer */
    int last;                 /**< PUSH: of its transfer */
    int status;               /**< PUSH: the target's status word comes with it */
    int program;              /**< the remote side is given by a program */
    uint32_t blocks;          /**< PUSH, ASK: of the remote side, at least 1 */
    uint64_t off;             /**< DATA: place in the byte stream */
    uint64_t len;             /**< bytes of data in the message */
} dn_core_part_t;

/** What a device gives for dn_core_alone(). */
typedef struct dn_core_alone {
    /** Where a segment of this process lies, as the device was told (dn_device_t::segment_register). @return 0: it does not know. */
    int (*find)(void *arg, uint32_t sid, uint32_t generation, uint8_t **base_p, uint64_t *len_p);
    /** Room for the answer, of so many bytes, with this tag on DN_CHAN_CORE; called at most once, and then the answer is filled in. From here
     * on the device is certain to send it. NULL: it cannot now. */
    void *(*room)(void *arg, unsigned tag, size_t len);
    void *arg;         /**< of both */
    uint8_t *llcm;     /**< of this process */
    uint64_t llcm_len; /**< its bytes */
} dn_core_alone_t;

/** @name What the port offers to a device (dn_port.c, dn_peer.c) */
/** @{ */
/** What dn_open() was told of this process. */
DN_DEVICE_API const dn_job_t *dn_port_job(const dn_port_t *port);
/** What the own group derives from its key: dn_auth.h. */
DN_DEVICE_API const dn_auth_group_t *dn_port_group(const dn_port_t *port);
/** The port's own number: tells two processes with one PID apart. */
DN_DEVICE_API const uint64_t *dn_port_nonce(const dn_port_t *port);
/** Is this group let in? */
DN_DEVICE_API int dn_port_admits(const dn_port_t *port, const dn_pgid_t *pgid);
/** A process of a group that is not let in has greeted. From any thread that has the device's lock. */
DN_DEVICE_API void dn_port_stranger(dn_port_t *port);
/** Where a segment of this process lies. The port's lock is held. @return 0: it does not live. */
DN_DEVICE_API int dn_port_segment(dn_port_t *port, uint32_t sid, uint32_t generation, uint8_t **base_p,
                                  uint64_t *len_p);
/** The first of the port's peers; dn_peer_base_t::next leads on. */
DN_DEVICE_API dn_peer_base_t *dn_port_peers(dn_port_t *port);
/** A peer whose calls answer DN_ERR_UNREACH: it takes the place of a peer that its device frees. */
dn_peer_t *dn_peer_nobody(void);
/** The peer of this nonce, or NULL. */
DN_DEVICE_API dn_peer_base_t *dn_port_find_peer(dn_port_t *port, const uint64_t nonce[2]);
/** Enter a peer that came by itself, with its ops set, NEW or LOST; the port owns the list. */
DN_DEVICE_API void dn_port_adopt(dn_port_t *port, dn_peer_base_t *peer);
/** Take a peer off the list: the device is about to free it. Channels that keep a word with it are told
 * (dn_lost_set()). */
DN_DEVICE_API void dn_port_forget(dn_port_t *port, dn_peer_base_t *peer);
/** A peer is gone: its ops answer DN_ERR_UNREACH from now on, its transfers are signalled so. */
DN_DEVICE_API void dn_port_peer_lost(dn_port_t *port, dn_peer_base_t *peer);
/** Look whether a peer's process lives, and turn the peer LOST if it does not. @return DN_OK: it lives, else
 * DN_ERR_UNREACH. */
DN_DEVICE_API dn_status_t dn_port_look(dn_peer_base_t *peer);
/** Turn the peers of a device LOST that are in doubt. For a progress that finds dn_iface_t::doubts, without
 * the device's locks. */
DN_DEVICE_API void dn_port_bury(dn_iface_t *iface);
/** A peer is found gone; the next progress of its device says so. Any thread may call, with any lock. */
DN_DEVICE_API void dn_peer_doubt(dn_peer_base_t *peer, enum dn_peer_doubt why);
/**
 * An operation found no room at a peer: each @p every times, look whether its process lives, and doubt it if not. Any thread may call.
 * @retval DN_OK           it was looked at, and lives: answer DN_ERR_AGAIN.
 * @retval DN_ERR_AGAIN    this was not such a time.
 * @retval DN_ERR_UNREACH  it does not live.
 */
DN_DEVICE_API dn_status_t dn_peer_refused(dn_peer_base_t *peer, uint32_t every);
/** Have a transfer done by messages that the device could not end: as dn_push() or dn_pull(), for the same
 * comp. */
DN_DEVICE_API dn_status_t dn_port_transfer(dn_peer_base_t *peer, const dn_xfer_t *xfer, int write);
/** The same for an atomic operation, as dn_atomic(). */
DN_DEVICE_API dn_status_t dn_port_atomic(dn_peer_base_t *peer, const dn_amo_t *amo);
/** Read a message of any peer, as far as dn_core_part_t goes. */
DN_DEVICE_API dn_core_part_t dn_core_part(unsigned tag, const void *message, size_t len);
/**
 * Do what a message on DN_CHAN_CORE asks of the memory of this process, when it comes: an atomic operation, lines, a PUSH, a PULL
 * whose answer is one message. Any thread may call, without the port's lock; what @p alone names must hold for so long.
 *
 * @param[in] behind  A message for which this has answered DN_ERR_AGAIN still waits for its handler.
 *
 * @retval DN_OK              it is done, and answered if room() was called: no handler is to have it.
 * @retval DN_ERR_AGAIN       nothing is done: the handler does it, or refuses it.
 * @retval DN_ERR_UNSUPPORTED it asks for nothing: the handler's, such as answers.
 */
DN_DEVICE_API dn_status_t dn_core_alone(const dn_core_alone_t *alone, unsigned tag, const void *message,
                                        size_t len, int behind);
/** Hold the port's lock (recursive): every entry of a device but the ops is called with it. */
DN_DEVICE_API void dn_port_lock(const dn_port_t *port);
/** Let go of it. */
DN_DEVICE_API void dn_port_unlock(const dn_port_t *port);
/** @} */

/** @name Bells (dn_wait.h) */
/** @{ */
/** To be called by a process whose stores may ring, before the first: it will take part in the fences of S0, from a moment on
 * that may come some tens of milliseconds later. As often as wanted. Any thread may call. */
DN_DEVICE_API void dn_bell_enroll_begin(void);
/** Return when what dn_bell_enroll_begin() began is over. */
void dn_bell_enroll_wait(void);
/** Both. @return 0: this process takes part in no fence, as the kernel refuses it. */
DN_DEVICE_API int dn_bell_enroll(void);
/** S0: make the bell odd. @return its value. */
uint32_t dn_bell_set(uint32_t *bell);
/** S0: fence all that have enrolled. @return 0: it is refused here. */
int dn_bell_fence_all(void);
/** S2, unless the bell is no longer @p odd. @return whether it was rung, else the time is over. */
int dn_bell_sleep(uint32_t *bell, uint32_t odd, const struct timespec *pause);
/** R2, when the bell was @p odd: it is even, or was once since R0, when this returns. */
DN_DEVICE_API void dn_bell_ring(uint32_t *bell, uint32_t odd);

/** R1 and R2: not more than a load while nobody sleeps. */
static inline void dn_bell_touch(uint32_t *bell)
{
    /* The compiler keeps R0 before R1; the rest is the sleeper's part. */
    dn_fence_compiler();
    const uint32_t seen = dn_load_relaxed(bell);

    if (__builtin_expect(0 != seen % 2, 0)) {
        dn_bell_ring(bell, seen);
    }
}
/** @} */

/** Add to a counter: no read-modify-write, several threads may lose a count. */
static inline void dn_count(uint64_t *counter, uint64_t add)
{
    dn_store_relaxed(counter, dn_load_relaxed(counter) + add);
}

#endif
