/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_device.h
 * What a device implements, and what a device may use of the floor above. The code above a device does not know
 * which device it calls: all calls go through dn_device_t and the peer's dn_peer_ops_t.
 *
 * A device fills in the entries that it can do. For push, pull and atomic the port has a version of its own, which
 * the core processor runs over BOTF (dn_core.h). The port uses its own version where the device's entry is NULL, and
 * whenever the device's entry returns DN_ERR_UNSUPPORTED. The port has checked the arguments of push, pull and atomic
 * before the call (dn_xfer_check()). The port has a version of its own for aotf_line, too. Where peek and take are
 * NULL, callers receive by handlers only. So the table alone says what a device can do.
 *
 * Threads: where dn_job_t::threads is set, the port calls the entries of dn_device_t under the port's lock. It calls
 * the ops of dn_peer_ops_t without the lock: the device itself makes them safe for several threads.
 *
 * A device is built into libdimmnet, or is a module of its own: dn_device_NAME.so, in the library's folder of
 * modules, or in a folder of DN_DEVICE_PATH (which set-uid programs ignore). A module exports dn_device_module. The
 * first dn_open() that names the device loads the module. It stays loaded for the life of the process, as threads may
 * run its code, and peers hold its ops. No lock of libdimmnet is held while a module is loaded. A device uses the
 * public functions, and functions with DN_DEVICE_API: those of this header, dn_log.h, dn_auth.h, dn_topo.h, dn_line.h,
 * dn_sg.h and dn_xfer.h. The latter may change with DN_DEVICE_VERSION. So dn_open() refuses a module that was built for
 * another DN_DEVICE_VERSION.
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

/** Version of all that a device sees of libdimmnet. Each change of that adds 1. */
#define DN_DEVICE_VERSION 7
/** Most bytes of a device's name. Addresses hold the name. */
#define DN_DEVICE_NAME_MAX 8

/** The table of a device: struct dn_device. */
typedef struct dn_device dn_device_t;

/** The function that receives the messages of a channel; fn NULL: none is set yet. */
typedef struct dn_handler {
    dn_handler_fn_t fn; /**< called for each message */
    void *arg;          /**< argument of fn */
} dn_handler_t;

/** An open device of a port. A device has this structure at the start of its own state. */
typedef struct dn_iface {
    const dn_device_t *device; /**< table of the device */
    dn_port_t *port;           /**< port that has opened the device */
    dn_handler_t *handler;     /**< the port's array of DN_CHAN_MAX handlers */
    dn_counters_t *counters;   /**< counters of the port; with several threads a count may be lost */
    void *llcm; /**< LLCM of this process, zeroed, llcm_bytes of the port's configuration. A device that can
                                use any memory leaves NULL in open, and the port sets the field */
    /** The bell of this process (dn_wait.h). A device whose peers ring the bell themselves sets the field in open, and has
     * the LLCM, too. Other devices leave NULL in open, and the port sets the field; threads of theirs may ring the bell. */
    uint32_t *bell;
    const char *
        provider; /**< provider of a network library that the device has chosen; NULL: the device uses none */
    const char *domain;    /**< dn_device_attr_t::domain */
    const char *endpoint;  /**< dn_device_attr_t::endpoint */
    int sockets;           /**< dn_peer_attr_t::sockets */
    uint32_t rest;         /**< set by the device: calls of progress that the port leaves out; 0: none */
    uint32_t doubts;       /**< counts dn_peer_doubt() calls that dn_port_bury() has not handled yet; wraps */
    struct dn_iface *next; /**< next device of the port, in the order of dn_open()'s list */
} dn_iface_t;

/** What the core processor knows of a peer (dn_core.h). */
typedef struct dn_core_peer {
    struct dn_ship_out *ours; /**< programs that this process has sent to the peer; NULL: none yet */
    /** Programs that the peer has sent to this process; NULL: none yet. Under dn_port_t::programs: threads of a device use it, too */
    struct dn_ship_in *its;
    dn_queue_t operations; /**< dn_core_op_t with something left to send */
    dn_queue_t answers;    /**< dn_core_answer_t that wait for credit */
    uint32_t answering;    /**< number of entries in answers */
    uint32_t asked;        /**< requests to the peer whose answers have not come */
    /** Atomic operations that go by messages and have not ended. Changed by fetch-and-add: who loads 0 with acquire comes after all. */
    uint32_t amos;
    uint32_t moves; /**< dn_peer_moves(): changed by dn_peer_move() */
} dn_core_peer_t;

/**
 * The life of a peer, the same on every device. Each arrow is one dn_peer_turn(); dn_peer.c says what causes each:
 *
 *            dn_port_adopt()       dn_connect()            the last dn_disconnect()
 *   NEW ----------------------> CAME ---------> CONNECTED ----------------------> LEFT
 *    |                         ^                 ^       ^                          |  |
 *    +-------------------------|-----------------+       +--------------------------+  |
 *            dn_connect()      |                                dn_connect()           |
 *                              +-------------------------------------------------------+
 *                                   dn_port_return(): the peer still waits for answers
 *
 *   NEW, CAME, CONNECTED, LEFT ---> LOST        dn_port_peer_lost(): the users of the peer have been told
 *   NEW, CAME, CONNECTED, LEFT ---> FORGOTTEN   dn_peer_retire(): the device is about to free the peer
 *
 * A device creates a peer as NEW. It creates a peer as LOST where the peer's process has left already, and this
 * process still receives what that process has sent. While the peer is CAME or CONNECTED, the functions that callers
 * use (dn_peer_base_t::hot) are the device's; in all other states they return DN_ERR_UNREACH. dn_connect() refuses a
 * peer that is LOST or FORGOTTEN.
 *
 * Doubt: code that finds that a peer is gone, in any thread and under any lock, calls dn_peer_doubt(). A doubt is
 * never taken back. The next progress of the device turns such a peer LOST (dn_port_bury()).
 *
 * Threads: `life` changes only under the port's lock. Each store of it is a release. A load without the lock is an
 *          acquire: a thread that finds a peer LOST, for example while it waits for a lock of the peer, sees all that
 *          the thread which turned the peer LOST has done before. `doubt` is stored with release, and then counted in
 *          dn_iface_t::doubts. A poll loads that count with acquire, so it sees each doubt that is counted.
 */
enum dn_peer_life {
    DN_PEER_NEW,
    DN_PEER_CAME,
    DN_PEER_CONNECTED,
    DN_PEER_LEFT,
    DN_PEER_LOST,
    DN_PEER_FORGOTTEN,
};

/** Why a peer is about to be LOST. Of two reasons the later one of this list is kept. */
enum dn_peer_doubt {
    DN_PEER_TRUSTED, /**< no reason */
    DN_PEER_SUSPECT, /**< the peer was found gone, silent or broken, or was cut off */
    DN_PEER_PARTED,  /**< the peer itself has said that it takes, or sends, no more messages */
};

/** The part of a peer that all devices have in common. A device has this structure at the start of its own peer. */
typedef struct dn_peer_base {
    dn_peer_t hot; /**< what callers use; the port fills it in from ops */
    dn_peer_ops_t
        ops; /**< functions of the device; lend, push, pull, atomic, aotf_line, wake, and peek with take, may be NULL */
    dn_iface_t *iface;    /**< open device of the peer */
    uint32_t connections; /**< dn_connect() calls not yet undone; 0: the peer has sent first */
    uint32_t pid;         /**< PID: rank of the peer in its group */
    dn_pgid_t pgid;       /**< group of the peer */
    uint64_t nonce[2];    /**< random number of the peer's process; two processes with one PID differ in it */
    uint64_t llcm_len;    /**< bytes of the peer's LLCM */
    size_t botf_inline;   /**< longest message that travels in one line */
    size_t botf_max;      /**< longest message */
    size_t cut; /**< transfers by messages are cut at multiples of this, where a message is long enough for
                               one; 0: anywhere */
    /** Transfers that are in flight after their call has returned. Changed by fetch-and-add: a fence that loads 0 with
     * acquire comes after all of them, whichever thread has ended them. */
    uint32_t outstanding;
    uint32_t failed; /**< dn_status_t that dn_flush() has to tell: dn_peer_keep_error(). Atomic */
    uint32_t life;   /**< enum dn_peer_life */
    uint32_t doubt;  /**< enum dn_peer_doubt */
    uint32_t closed; /**< not 0: dn_port_peer_closed() was called. Under the port's lock */
    uint32_t wanted; /**< not 0: a function of the closed peer was called. Atomic */
    /** Not 0: dn_port_peer_lost() has not ended. Completions and functions of dn_lost_set() run, which may make progress. A device frees
     * no such peer, but later. Under the port's lock */
    uint32_t telling;
    uint32_t refusals;   /**< operations that found no room, since the start; wraps: dn_peer_refused() */
    void *fault;         /**< state of the device fault; NULL: that device is not used */
    dn_core_peer_t core; /**< what the core processor knows of the peer */
    struct dn_peer_base *next; /**< next peer of the port */
} dn_peer_base_t;

/** For each life, the lives that may follow (dn_turn.h). */
DN_DEVICE_API extern const uint32_t dn_peer_turns[];

/** Change a peer's life. The port's lock is held. */
static inline void dn_peer_turn(dn_peer_base_t *peer, enum dn_peer_life to)
{
    dn_turn_check("a peer", dn_peer_turns, peer->life, to);
    dn_store_release_u32(&peer->life, to);
}

/** From now on nobody is told of this peer, as its device is about to free the peer. The port's lock is held. */
static inline void dn_peer_retire(dn_peer_base_t *peer)
{
    if (DN_PEER_LOST > peer->life) {
        dn_peer_turn(peer, DN_PEER_FORGOTTEN);
    }
}

/** Have all users of the peer been told that it is lost? Any thread may ask. */
static inline int dn_peer_is_lost(const dn_peer_base_t *peer)
{
    return DN_PEER_LOST == dn_load_acquire_u32(&peer->life);
}

/** Is the peer lost, or about to be? Any thread may ask. */
static inline int dn_peer_is_doubted(const dn_peer_base_t *peer)
{
    return DN_PEER_TRUSTED != dn_load_acquire_u32(&peer->doubt);
}

/** A piece of a transfer with the peer has moved: dn_peer_moves(). A device calls this for the pieces of its own transfers. Any thread may
 * call. Where two threads count at once, a move may be missed. Relaxed: no data depends on it. */
static inline void dn_peer_move(dn_peer_base_t *peer)
{
    dn_store_relaxed_u32(&peer->core.moves, dn_load_relaxed_u32(&peer->core.moves) + 1);
}

/**
 * An operation that its call has left in progress ends with @p status. Without a comp, keep an error for dn_flush(). Who ends the
 * operation calls this before the store by which a fence finds the operation ended. DN_ERR_UNREACH is not kept: dn_flush() returns that
 * for a peer that is lost, in doubt or wanted, and a device that ends an operation so has to make the peer one of these.
 */
static inline void dn_peer_keep_error(dn_peer_base_t *peer, const dn_comp_t *comp, dn_status_t status)
{
    if (NULL == comp && 0 > status && DN_ERR_UNREACH != status) {
        (void) dn_cas_acq_rel_u32(&peer->failed, DN_OK, (uint32_t) status);
    }
}

/** Table of a device. An entry may be NULL only where its comment says what NULL means. */
struct dn_device {
    const char *name; /**< name for dn_open(), at most DN_DEVICE_NAME_MAX bytes */

    /** Open the device for a port. DN_ERR_UNSUPPORTED: the device does not work on this machine. */
    dn_status_t (*open)(dn_port_t *port, const dn_config_t *config, const char *argument,
                        dn_iface_t **iface_p);
    /** Undo open. The peers have been released. */
    void (*close)(dn_iface_t *iface);
    /**
     * Free the copy of an open device that a child of fork() has: unmap shared memory, close descriptors, free memory. Neither the process
     * that has opened the device nor a peer may notice. The child has none of the device's threads. A lock may be held by such a thread
     * for ever: the device frees nothing then that the lock protects. NULL: the copy stays until the child ends.
     *
     * @param[in] peers  Those of the device that the port knows, linked by dn_peer_base_t::next. Freed, too.
     */
    void (*close_copy)(dn_iface_t *iface, dn_peer_base_t *peers);

    /** Write this device's part of the address. *len: in, size of @p buf; out, bytes written. */
    dn_status_t (*address)(const dn_iface_t *iface, void *buf, size_t *len);

    /**
     * Reach a peer by this device's part of the peer's address. The port has checked the identity in @p id against the
     * admitted groups. The device checks that the process at the other end has this identity. *peer_p: in, the peer
     * where it exists already without a connection of this process, else NULL; out, the peer, with ops, botf_* and
     * llcm_len set. DN_ERR_UNREACH: this device does not reach the peer. DN_ERR_UNSUPPORTED: this device reaches no
     * process at the place of that address. In that case the device of the other process has to return the same for
     * the address of this process.
     */
    dn_status_t (*connect)(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                           dn_peer_base_t **peer_p);
    /** Send no more to the peer. When the peer sends no more to this process either, now or later, the device calls
     * dn_port_forget() and frees the peer. */
    void (*disconnect)(dn_peer_base_t *peer);
    /** Free the peer now, as the port closes. */
    void (*release)(dn_peer_base_t *peer);

    /**
     * Receive from all peers. Give each message to handler[channel]. Where there is no handler yet, keep the message,
     * and the later messages of its sender. Drop and count a message whose channel is out of range.
     * @return messages and completions handled.
     *
     * A device that can leave messages where they lie sets dn_peer_t::enough of a peer to 0 before the device hands on the peer's
     * messages, and hands on no more of them once the field is not 0: dn_recv_enough(). Other devices ignore the field.
     */
    int (*progress)(dn_iface_t *iface);
    /** Receive at most max messages of one peer, in the same way. */
    int (*recv)(dn_peer_base_t *peer, int max);

    /** DN_OK while the peer's process lives, else DN_ERR_UNREACH. */
    dn_status_t (*check)(dn_peer_base_t *peer);

    /** The peer was lost: signal the operations that the device has in flight to the peer. While the peer's process may
     * still write to the memory of an operation, the device does not signal that operation yet. NULL: the device never
     * has operations in flight. */
    void (*lost)(dn_peer_base_t *peer);

    /** Handle a message on DN_CHAN_DEVICE, as a dn_handler_fn_t does. NULL: the device sends no such messages. */
    void (*message)(dn_peer_base_t *src, unsigned tag, const void *data, size_t len);

    /** A group was admitted: look again at its processes that were waiting. NULL: no process ever waits. */
    void (*admitted)(dn_iface_t *iface, const dn_pgid_t *pgid);

    /** Allocate memory that peers can map, and add the device's way to the key. NULL: the port allocates memory, and
     * calls segment_register. */
    dn_status_t (*segment_alloc)(dn_iface_t *iface, uint64_t len, void **base_p, dn_key_t *key);
    /** Undo segment_alloc. NULL where segment_alloc is. */
    void (*segment_release)(dn_iface_t *iface, void *base, const dn_key_t *key);
    /** Add a way to the key by which peers reach memory that this device did not allocate. Where this is NULL, or adds
     * no way, peers reach the memory by messages only. */
    void (*segment_register)(dn_iface_t *iface, void *base, dn_key_t *key);
    /** Undo segment_register: the caller may unmap the memory after this. NULL: there is nothing to undo. */
    void (*segment_unregister)(dn_iface_t *iface, const dn_key_t *key);

    /** Map an allocated segment of this peer. It stays at its address until the peer is freed. NULL: this device maps
     * no segments. */
    dn_status_t (*map)(dn_peer_base_t *peer, const dn_key_t *key, void **base_p);

    /** Is the private memory of this peer reached without the peer's processor (dn_peer_attr_t::direct)? NULL: no. */
    int (*direct)(const dn_peer_base_t *peer);
    /** May this peer reach an own segment by messages, or the LLCM (@p key NULL), as far as the device's own tables say? NULL: each peer
     * may. */
    int (*opens)(const dn_peer_base_t *src, const dn_key_t *key);
    /** Does this process share its cores with peers (dn_oversubscribed())? NULL: no. */
    int (*oversubscribed)(const dn_iface_t *iface);
    /** Is dn_iface_t::bell touched for each thing that this process may wait for, and that comes by this device? A PUSH that a network
     * stores by itself, with no status, is excepted: a sleeper finds its bytes when the sleep ends by the clock. Where a
     * device has dn_peer_ops_t::wake, that touches the bell of the peer, too. NULL: no. */
    int (*rings)(const dn_iface_t *iface);
    /** As progress, for a process that is about to sleep, or has just slept: look at each peer, and also do what
     * progress does only now and then. NULL: the port calls progress. */
    int (*look)(dn_iface_t *iface);
    /** A thread of this process sleeps now, as the last step before it does: threads of the device that ring the bell have to read
     * from now on. The port's lock is held. NULL: no thread of the device has to know. */
    void (*sleeps)(dn_iface_t *iface);
    /** A number that changes with each message that dn_take() has taken. NULL: the device has no peek, or no process
     * sleeps on it. */
    uint64_t (*heard)(const dn_iface_t *iface);
    int clocked; /**< not 0: the device does things at times of a clock, so a process sleeps only where its settings
                      ask for that */
};

/** What a module exports by the name dn_device_module. */
typedef struct dn_device_module {
    uint32_t version; /**< DN_DEVICE_VERSION */
    uint32_t size
        [4]; /**< bytes of dn_device_t, dn_iface_t, dn_peer_base_t and dn_config_t, by which dn_open() sees
                                    that module and library were built with the same headers */
    const dn_device_t *device; /**< table of the device */
} dn_device_module_t;

/** Initial value of the dn_device_module of a device with the dn_device_t @p table. */
#define DN_DEVICE_MODULE_INIT(table)                                                                         \
    {                                                                                                        \
        DN_DEVICE_VERSION,                                                                                   \
            {sizeof(dn_device_t), sizeof(dn_iface_t), sizeof(dn_peer_base_t), sizeof(dn_config_t)}, &(table) \
    }

/** Define dn_device_module for a module whose device has the dn_device_t @p table. */
#define DN_DEVICE_MODULE(table)                              \
    DN_API extern const dn_device_module_t dn_device_module; \
    const dn_device_module_t dn_device_module = DN_DEVICE_MODULE_INIT(table)

/** Make known to dn_open() a device that is linked with the program. dn_open() then loads no module for its name. A
 * second call for the same device is legal.
 * @retval DN_ERR_VERSION  the device was built for another version: the log line says which.
 * @retval DN_ERR_PARAM    an entry is missing, or another device has the name: the log line says which. */
DN_DEVICE_API dn_status_t dn_device_add(const dn_device_module_t *module);

/** Values of dn_key_way_t::kind: the first value of each device. No value belongs to two devices. */
enum {
    DN_KEY_NONE = 0, /**< no way */
    DN_KEY_SHM = 1,
    DN_KEY_OFI = 16,
    DN_KEY_IPNUMA = 32,
    DN_KEY_MODULE = 256, /**< this and all greater values are for modules */
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

/** Add a way to a key. Where the key has no room left, the way is left out, and the core processor serves the peers that
 * would have used the way. */
static inline void dn_key_add(dn_key_t *key, dn_key_way_t way)
{
    for (int i = 0; i < DN_KEY_WAYS; i++) {
        if (DN_KEY_NONE == key->way[i].kind) {
            key->way[i] = way;
            return;
        }
    }
}

/** A checksum of a key's SID, generation and length. A device keeps it in its way. Where a peer's key does not match the
 * checksum, the device leaves the transfer to the core processor, which refuses the key. */
static inline uint32_t dn_key_sum(const dn_key_t *key)
{
    const uint64_t sum = (key->len ^ key->len >> 29) + UINT64_C(0x9e3779b1) * key->sid
                         + UINT64_C(0x85ebca77) * key->generation;

    return (uint32_t) (sum ^ sum >> 32);
}

/** Which part of a PUSH or PULL a message on DN_CHAN_CORE is. */
typedef enum dn_core_part_kind {
    DN_CORE_PART_NONE, /**< no part, or the message is malformed */
    DN_CORE_PART_PUSH, /**< data of a PUSH, some or all */
    DN_CORE_PART_DONE, /**< the acknowledgement of a PUSH */
    DN_CORE_PART_ASK,  /**< the request of a PULL */
    DN_CORE_PART_DATA  /**< data of a PULL, some or all */
} dn_core_part_kind_t;

/** What a message on DN_CHAN_CORE is, for a device that models the time of a transfer in another way than that of a
 * message. */
typedef struct dn_core_part {
    dn_core_part_kind_t kind; /**< which part; the fields below have a meaning for the kinds that they name */
    int first;                /**< PUSH, ASK: this is the first message of its transfer */
    int last;                 /**< PUSH: this is the last message of its transfer */
    int status;               /**< PUSH: the message holds the target's status word */
    int program;              /**< a program describes the remote side */
    uint32_t blocks;          /**< PUSH, ASK: blocks of the remote side, at least 1 */
    uint64_t off;             /**< DATA: place of the data in the byte stream */
    uint64_t len;             /**< bytes of data in the message */
} dn_core_part_t;

/** What a device passes to dn_core_alone(). */
typedef struct dn_core_alone {
    dn_peer_base_t *src; /**< the peer that has sent the message */
    /** Find a segment of this process among those that the device was told (dn_device_t::segment_register). @return 0:
     * the device does not know the segment. */
    int (*find)(void *arg, uint32_t sid, uint32_t generation, uint8_t **base_p, uint64_t *len_p);
    /** Give @p len bytes of room for the answer, which goes with this tag on DN_CHAN_CORE. Called at most once; the
     * caller then fills in the answer, and the device sends it in any case. NULL: there is no room now. */
    void *(*room)(void *arg, unsigned tag, size_t len);
    void *arg;         /**< argument of find and room */
    uint8_t *llcm;     /**< LLCM of this process */
    uint64_t llcm_len; /**< bytes of the LLCM */
} dn_core_alone_t;

/** @name What the port offers to a device (dn_port.c, dn_peer.c) */
/** @{ */
/** What dn_open() was told of this process. */
DN_DEVICE_API const dn_job_t *dn_port_job(const dn_port_t *port);
/** What is derived from the key of the own group: dn_auth.h. */
DN_DEVICE_API const dn_auth_group_t *dn_port_group(const dn_port_t *port);
/** The port's random number. Two processes with one PID differ in it. */
DN_DEVICE_API const uint64_t *dn_port_nonce(const dn_port_t *port);
/** Is this process a child of fork(), and the port the one that its parent has opened? */
DN_DEVICE_API int dn_port_is_copy(const dn_port_t *port);
/** Is this group admitted? */
DN_DEVICE_API int dn_port_admits(const dn_port_t *port, const dn_pgid_t *pgid);
/** A process has greeted whose group is not admitted. Called by any thread that holds the device's lock. */
DN_DEVICE_API void dn_port_stranger(dn_port_t *port);
/** Find a segment of this process. The port's lock is held. @return 0: there is no such segment, or it was freed. */
DN_DEVICE_API int dn_port_segment(dn_port_t *port, uint32_t sid, uint32_t generation, uint8_t **base_p,
                                  uint64_t *len_p);
/** The first of the port's peers; dn_peer_base_t::next leads to the next one. */
DN_DEVICE_API dn_peer_base_t *dn_port_peers(dn_port_t *port);
/** A peer whose functions return DN_ERR_UNREACH: callers get it in place of a peer that its device has freed. */
dn_peer_t *dn_peer_nobody(void);
/** The peer with this nonce, or NULL. */
DN_DEVICE_API dn_peer_base_t *dn_port_find_peer(dn_port_t *port, const uint64_t nonce[2]);
/** Put into the port's list a peer that has sent first. Its ops are set, and it is NEW or LOST. */
DN_DEVICE_API void dn_port_adopt(dn_port_t *port, dn_peer_base_t *peer);
/** Take a peer off the port's list, as the device is about to free the peer: also one that the port has not met. Channels that keep a
 * pointer with the peer are told (dn_lost_set()). */
DN_DEVICE_API void dn_port_forget(dn_port_t *port, dn_peer_base_t *peer);
/** A peer is gone: from now on its functions return DN_ERR_UNREACH. Its transfers in flight are signalled with this
 * error. */
DN_DEVICE_API void dn_port_peer_lost(dn_port_t *port, dn_peer_base_t *peer);
/** A peer has closed its port in good order. From now on its functions return DN_ERR_UNREACH, but dn_fence() and dn_peek(). A call of
 * another function sets dn_peer_base_t::wanted, and so does a device that ends an operation because of the close. When the device has
 * read all that the peer has sent and a handler takes, it puts a wanted peer in doubt, and so it does with a peer whose answers are awaited
 * (dn_core_peer_t::asked). The port's lock is held. */
DN_DEVICE_API void dn_port_peer_closed(dn_port_t *port, dn_peer_base_t *peer);
/** Does the peer's process live? If not, turn the peer LOST. @return DN_OK: the process lives, else DN_ERR_UNREACH. */
DN_DEVICE_API dn_status_t dn_port_look(dn_peer_base_t *peer);
/** Turn LOST all peers of a device that are in doubt. The device's progress calls this when dn_iface_t::doubts is not 0,
 * while it holds no lock of the device. */
DN_DEVICE_API void dn_port_bury(dn_iface_t *iface);
/** A peer was found gone: the next progress of its device turns it LOST. Any thread may call, under any lock. */
DN_DEVICE_API void dn_peer_doubt(dn_peer_base_t *peer, enum dn_peer_doubt why);
/**
 * An operation found no room at a peer. At each @p every-th call for a peer, look whether the peer's process lives, and
 * doubt the peer if not. Any thread may call.
 * @retval DN_OK           the process was looked at, and lives: the device returns DN_ERR_AGAIN.
 * @retval DN_ERR_AGAIN    the process was not looked at.
 * @retval DN_ERR_UNREACH  the process does not live.
 */
DN_DEVICE_API dn_status_t dn_peer_refused(dn_peer_base_t *peer, uint32_t every);
/** Do by messages a transfer that the device has begun and could not end: as dn_push() or dn_pull(), with the same
 * comp. */
DN_DEVICE_API dn_status_t dn_port_transfer(dn_peer_base_t *peer, const dn_xfer_t *xfer, int write);
/** As dn_port_transfer(), for an atomic operation. */
DN_DEVICE_API dn_status_t dn_port_atomic(dn_peer_base_t *peer, const dn_amo_t *amo);
/** Tell which part of a transfer a message is. The message may be malformed. */
DN_DEVICE_API dn_core_part_t dn_core_part(unsigned tag, const void *message, size_t len);
/**
 * Carry out a request of a message on DN_CHAN_CORE as soon as the message comes: an atomic operation, lines, a piece of a program, a PUSH,
 * or a PULL whose answer is one message. Blocks or a program may describe the remote side.
 *
 * Ordering: the device calls in the order in which the peer has sent the messages.
 *
 * Threads: any thread may call, without the port's lock; for one peer one thread at a time. The device may hold a lock of its own: the call
 *          takes none but dn_port_t::programs. The peer, and the memory that @p alone names, stay during the call. The port may forget the
 *          peer meanwhile.
 *
 * @param[in] behind  Not 0: an earlier message, for which this has returned DN_ERR_AGAIN, still waits for its handler, or the handler runs.
 *
 * @retval DN_OK              the request is carried out, and answered if room() was called. The device drops the message.
 * @retval DN_ERR_AGAIN       nothing is done; of a program that is refused only this is kept, that it cannot be found. The device gives
 *                            the message to the handler, which does or refuses it.
 * @retval DN_ERR_UNSUPPORTED the message is no request, but for example an answer. The device gives it to the handler.
 *
 * Pinned by test/unit/dn_core_serves_programs_without_its_handler.c and test/device/memory_between.c.
 */
DN_DEVICE_API dn_status_t dn_core_alone(const dn_core_alone_t *alone, unsigned tag, const void *message,
                                        size_t len, int behind);
/** Take the port's lock (recursive). The port holds it when it calls an entry of dn_device_t. */
DN_DEVICE_API void dn_port_lock(const dn_port_t *port);
/** Give the port's lock back. */
DN_DEVICE_API void dn_port_unlock(const dn_port_t *port);
/** @} */

/** @name Bells (dn_wait.h) */
/** @{ */
/** Begin to enroll this process: it is going to take part in the fences of step S0, from some tens of milliseconds later
 * on. A process calls this before its first store for which it may have to ring a bell. A process may call this
 * several times. Any thread may call. */
DN_DEVICE_API void dn_bell_enroll_begin(void);
/** Wait until the enrolment that dn_bell_enroll_begin() has begun is done. */
void dn_bell_enroll_wait(void);
/** dn_bell_enroll_begin(), then dn_bell_enroll_wait(). @return 0: this process takes part in no fence, as the kernel
 * refuses. */
DN_DEVICE_API int dn_bell_enroll(void);
/** Step S0: make the bell odd. @return its value. */
uint32_t dn_bell_set(uint32_t *bell);
/** Step S0: run a fence in all processes that have enrolled. @return 0: the kernel refuses the fence. */
int dn_bell_fence_all(void);
/** Step S2: sleep while the bell is @p odd, at most for @p pause. @return not 0: the bell was rung; 0: the time is over. */
int dn_bell_sleep(uint32_t *bell, uint32_t odd, const struct timespec *pause);
/** Step R2, for a bell that was @p odd. When this returns, the bell is even, or has been even since step R0. */
DN_DEVICE_API void dn_bell_ring(uint32_t *bell, uint32_t odd);

/** Steps R1 and R2. While the owner of the bell does not sleep, this costs one load. */
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

#endif
