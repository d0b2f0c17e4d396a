/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_types.h
 * Data types of the contract in dimmnet.h. Include dimmnet.h, not this file.
 */
#ifndef DN_TYPES_H
#define DN_TYPES_H

#include <stddef.h>
#include <stdint.h>

/** What the shared library exports. */
#define DN_API __attribute__((visibility("default")))
/** What the shared library exports for devices (dn_device.h). Inside of libdimmnet, where DN_INSIDE is defined, such a
 * function is called directly, without the procedure linkage table. */
#ifdef DN_INSIDE
#    define DN_DEVICE_API __attribute__((visibility("protected")))
#else
#    define DN_DEVICE_API DN_API
#endif

/** Version of the address, segment and message formats. Peers must agree on it exactly. */
#define DN_WIRE_VERSION 26

/** What every call returns that can fail: 0 or positive is no error, negative is an error. */
typedef enum dn_status {
    DN_OK = 0,               /**< done */
    DN_INPROGRESS = 1,       /**< started; completion is signalled from dn_progress() */
    DN_ERR_AGAIN = -1,       /**< no room now: call dn_progress(), then retry; nothing happened */
    DN_ERR_PARAM = -2,       /**< the caller passed something that can never work */
    DN_ERR_RANGE = -3,       /**< offset and length leave the segment, or the key is stale */
    DN_ERR_UNREACH = -4,     /**< no device reaches the peer, or the peer is gone */
    DN_ERR_UNSUPPORTED = -5, /**< there is no such operation here: choose another way at set-up */
    DN_ERR_NOMEM = -6,       /**< memory, file space, slots or descriptors ran out */
    DN_ERR_PROTO = -7,       /**< a peer's bytes are malformed */
    DN_ERR_VERSION = -8,     /**< the peer speaks another DN_WIRE_VERSION */
    DN_ERR_ACCESS = -9,      /**< another process group, another user, or the kernel refused */
    DN_ERR_TRUNC = -10,      /**< a message is longer than the room for it: the bytes that fit are stored */
    DN_ERR_CANCELED = -11,   /**< the caller took the operation back before it began */
} dn_status_t;

/** The key of a process group: 128 bits that no outsider can guess. The processes of the group get the key from their
 * launcher. libdimmnet never sends the key, and no address holds it. */
typedef struct dn_group_key {
    uint8_t byte[16]; /**< secret */
} dn_group_key_t;

/** The name of a process group (PGID of the Martini paper, section 3). It follows from the group's key by dn_pgid(), and
 * is public. */
typedef struct dn_pgid {
    uint8_t byte[16]; /**< public */
} dn_pgid_t;

/** What messages over a network carry as a proof that their sender belongs to an admitted group. */
typedef enum dn_auth_mode {
    DN_AUTH_NONE, /**< the opener proves that it has the group's key, which may be a weak one; later messages carry
                        no proof */
    DN_AUTH_HELLO, /**< the opener proves that it has the group's key; later messages carry a secret word. An
                        attacker learns the word only by reading the traffic */
    DN_AUTH_FULL,  /**< later messages also carry a tag over their bytes and number: an attacker between the
                        processes cannot change, forge or repeat a message. Transfers go by messages in this mode */
    DN_AUTH_ENCRYPTED /**< as DN_AUTH_FULL, and an attacker cannot read a message either; only device ipnuma has this mode */
} dn_auth_mode_t;

/** The part of the peer's program that receives a message. The user of a channel gives each message a tag of its own
 * choice, 0..255. */
typedef enum dn_channel {
    DN_CHAN_CORE = 0,   /**< reserved: core-processor requests of libdimmnet itself */
    DN_CHAN_DEVICE = 1, /**< reserved: from a device to the same device of the peer */
    DN_CHAN_BTL = 2,
    DN_CHAN_MTL = 3,
    DN_CHAN_COLL = 4,
    DN_CHAN_OSC = 5,
    DN_CHAN_USER = 8, /**< 8..15: applications */
    DN_CHAN_MAX = 16
} dn_channel_t;

/** How a process waits (dn_wait.h). */
typedef enum dn_wait_policy {
    DN_WAIT_AUTO, /**< spin while cores are free, yield where cores are shared, sleep when nothing comes for some time */
    DN_WAIT_SPIN,  /**< never give the core away */
    DN_WAIT_YIELD, /**< give the core to other processes that want it, never sleep */
    DN_WAIT_SLEEP  /**< sleep after a short time */
} dn_wait_policy_t;

/** What a process opens on a list of devices: dn_open(). */
typedef struct dn_port dn_port_t;
/** A process that a port exchanges messages with. The object lives from dn_connect() to the last dn_disconnect(). A peer
 * that has sent first, and that this process has not connected to, lives until it leaves: a handler that wants to keep
 * the pointer for later connects to the peer. */
typedef struct dn_peer dn_peer_t;
/** Memory of this process that peers may PUSH to and PULL from: dn_segment_alloc(), dn_segment_register(). */
typedef struct dn_segment dn_segment_t;

/** How one device reaches a segment. Only that device understands the fields. */
typedef struct dn_key_way {
    uint32_t kind;    /**< which device, and what the device may do (DN_KEY_* of dn_device.h); 0: no way */
    uint32_t fd;      /**< a file descriptor of the owner, or another value of the device */
    uint64_t word[2]; /**< values of the device */
} dn_key_way_t;

/** Ways in a key: the most devices of a port that can reach registered memory without the core processor. */
#define DN_KEY_WAYS 2

/**
 * Names a segment of another process: its SID, its generation, its length, and a way for each device of the owner. A
 * peer uses the way of the device by which it reaches the owner. A key is plain bytes: the owner copies it, and sends it
 * by any channel. No peer uses a value of a key as a pointer.
 */
typedef struct dn_key {
    uint32_t sid;        /**< number of the segment in its process */
    uint32_t generation; /**< differs from that of an earlier segment with the same number */
    uint64_t len;        /**< bytes in the segment */
    dn_key_way_t
        way[DN_KEY_WAYS]; /**< one for each device that reaches the segment without the core processor */
} dn_key_t;

/** A piece of memory: `len` bytes that begin `at` bytes behind the base of the transfer. */
typedef struct dn_block {
    uint64_t at;  /**< bytes from the base */
    uint64_t len; /**< bytes, 0 is legal */
} dn_block_t;

/**
 * Layout of one side of a transfer: blocks, or a use of a scatter/gather program (dn_prog.h). The bytes of the transfer
 * fill the blocks in their order; a block may be empty. A program is lent to the library until completion.
 */
typedef struct dn_sg {
    const dn_block_t *block;       /**< array of `count` blocks; ignored when `use` is not NULL */
    size_t count;                  /**< number of blocks, 0 is legal */
    const struct dn_prog_use *use; /**< not NULL: the layout is this use, and `block` is ignored */
} dn_sg_t;

/** A completion handle: struct dn_comp. */
typedef struct dn_comp dn_comp_t;
/** The library calls this once for each operation that returned DN_INPROGRESS: from inside of dn_progress() or
 * dn_disconnect(), in the thread of that call. The function may start new operations. */
typedef void (*dn_comp_fn_t)(dn_comp_t *comp, dn_status_t status);
/** Completion handle. The caller embeds it in its own request; it is lent to the library until fn is called. */
struct dn_comp {
    dn_comp_fn_t fn; /**< set by the caller, never NULL */
};

/** Flags of dn_xfer_t. */
enum {
    DN_XFER_STATUS_LOCAL = 1 << 0,  /**< store local_value at local_status when complete */
    DN_XFER_STATUS_REMOTE = 1 << 1, /**< PUSH only: store remote_value in the target's LLCM after the data */
    /** Do the transfer without the peer's processor, where the device can (dn_peer_attr_t::direct). Short blocks take
     * longer then, but the peer may compute meanwhile. */
    DN_XFER_ALONE = 1 << 2,
    DN_XFER_UNSHARED = 1 << 3, /**< this process alone copies, however long the transfer is */
};

/** One PUSH or PULL: len bytes between local memory and a peer's segment. */
typedef struct dn_xfer {
    void *local;              /**< base of the local side */
    const dn_sg_t *local_sg;  /**< relative to local; NULL: contiguous */
    const dn_key_t *key;      /**< the remote segment */
    uint64_t roff;            /**< ROFS: base of the remote side, bytes from the segment's start */
    const dn_sg_t *remote_sg; /**< relative to roff; NULL: contiguous */
    uint64_t len;             /**< bytes to move, 0 is legal; each sg holds exactly `len` bytes */
    dn_comp_t *comp;          /**< signalled when DN_INPROGRESS was returned; NULL: use dn_flush() */
    unsigned flags;           /**< DN_XFER_* */
    uint64_t *local_status;   /**< 8-byte aligned, usually in the own LLCM */
    uint64_t local_value;     /**< with DN_XFER_STATUS_LOCAL: stored at local_status */
    uint64_t remote_status;   /**< offset in the target's LLCM, multiple of 8 */
    uint64_t remote_value;    /**< with DN_XFER_STATUS_REMOTE: stored at remote_status */
} dn_xfer_t;

/** Remote atomic operations. All return the value found before the operation. */
typedef enum dn_amo_op {
    DN_AMO_ADD,
    DN_AMO_AND,
    DN_AMO_OR,
    DN_AMO_XOR,
    DN_AMO_MIN, /**< signed */
    DN_AMO_MAX, /**< signed */
    DN_AMO_SWAP,
    DN_AMO_CAS,
    DN_AMO_OPS
} dn_amo_op_t;

/** One remote atomic operation on a naturally aligned 4- or 8-byte word of a segment. */
typedef struct dn_amo {
    dn_amo_op_t op;   /**< what to do with the word */
    unsigned width;   /**< 4 or 8 bytes */
    uint64_t operand; /**< for DN_AMO_CAS the value to store */
    uint64_t compare; /**< DN_AMO_CAS only */
    void *result; /**< the old value is stored here, width bytes; lent until completion; NULL: not wanted */
    const dn_key_t *key; /**< the remote segment */
    uint64_t roff;       /**< bytes from the segment's start, a multiple of width */
    dn_comp_t *comp;     /**< as in dn_xfer_t */
} dn_amo_t;

/** A BOTF window: room for one message at the peer. The caller fills the window, then kicks it. */
typedef struct dn_window {
    void *data;    /**< the caller writes up to len bytes here */
    size_t len;    /**< bytes reserved */
    uint64_t mark; /**< a value of the device */
} dn_window_t;

/** A message that has come, and still lies in the receiver's ring: dn_peek(). */
typedef struct dn_message {
    const void *data; /**< len bytes, aligned to 8, in memory that the sender can still write */
    size_t len;       /**< bytes of the message */
    unsigned tag;     /**< the sender's tag, 0..255 */
    uint64_t mark;    /**< a value of the device */
} dn_message_t;

/**
 * A handler: the library calls it for each message of a channel.
 *
 * A handler may send, start transfers and call dn_progress(). It must not disconnect @p src, and must not wait for
 * room: the library gives credit back when the outermost handler has returned.
 *
 * @param[in] data  @p len bytes, aligned to 8, valid until the handler returns. The sender can still write this memory:
 *                  copy a field before you check it.
 */
typedef void (*dn_handler_fn_t)(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg);

/** The identity of this process towards its peers. dn_open() copies it. */
typedef struct dn_job {
    dn_group_key_t key; /**< of the process group */
    uint32_t pid;       /**< PID: rank of this process in the group */
    uint32_t nlocal;    /**< processes of the group on this host, this one included; 0: not known */
    uint32_t size;      /**< processes of the group on all hosts; 0: not known */
    const char *dir; /**< folder for backing files, such as the session folder of the job; NULL: /dev/shm */
    int threads;     /**< not 0: several threads may use the port at once */
} dn_job_t;

/** The largest value of dn_config_t::stage_bytes. */
#define DN_STAGE_BYTES_MAX (1u << 30)

/** Where shared memory comes from: dn_config_t::backing. */
typedef enum dn_backing { DN_BACKING_AUTO, DN_BACKING_MEMFD, DN_BACKING_FILE } dn_backing_t;

/** Settings of a port: a member for each row of section PORT of dn_params.def. dn_config_init() sets the defaults. */
typedef struct dn_config {
#define DN_PARAMS_AS_MEMBERS
#define DN_PARAMS_PORT
#include "dn_params.def"
} dn_config_t;

/** Counters of a port; each only grows. */
typedef struct dn_counters {
    uint64_t messages_sent; /**< by dn_botf(), dn_botf_kick() and dn_botf_lend() */
    uint64_t bytes_sent;    /**< payload of messages */
    uint64_t lines_sent;    /**< 64 B lines written for them */
    uint64_t credit_waits;  /**< sends refused because the peer's ring was full */
    uint64_t mapped_bytes;  /**< bytes of PUSHes and PULLs that were copied on mapped memory */
    uint64_t
        cma_bytes; /**< bytes of PUSHes and PULLs that process_vm_readv() and process_vm_writev() copied */
    uint64_t help_bytes; /**< bytes that this process copied as its share of a peer's PULL or PUSH */
    uint64_t ring_bytes; /**< bytes of PUSHes and PULLs that core processors did by messages */
    uint64_t dropped;    /**< malformed or refused messages from peers */
    uint64_t
        peers_lost; /**< peers whose process has ended or whose port has closed. A caller that waits calls
                                dn_peer_check() when this has grown */
    uint64_t progs_sent; /**< scatter/gather programs that were sent to peers */
    uint64_t resent;     /**< datagrams that were sent again, as they were lost or seemed to be */
} dn_counters_t;

/** What the device itself can do towards a peer. The core processors of both ends do the rest, with the same result. */
enum {
    DN_CAP_PUSH = 1 << 0,
    DN_CAP_PULL = 1 << 1,
    DN_CAP_ATOMIC = 1 << 2,
    DN_CAP_MAP = 1 << 3, /**< the peer's LLCM and allocated segments are mapped in this process */
};

/** An open device of a port. The strings live until the port is closed. */
typedef struct dn_device_attr {
    const char *device; /**< name, such as "ofi" */
    const char
        *provider; /**< provider of a network library, such as "tcp;ofi_rxm"; NULL: the device uses none, and
                                domain and endpoint are NULL, too */
    const char *domain;   /**< the provider's name of the interface, such as "eth0" */
    const char *endpoint; /**< the device's own address on the network, as the provider writes it */
} dn_device_attr_t;

/** What a connection to a peer is, and its limits. The strings live as long as the peer. */
typedef struct dn_peer_attr {
    const char *device; /**< name of the device, such as "shm" */
    const char
        *provider;  /**< provider of a network library, such as "tcp;ofi_rxm"; NULL: the device uses none */
    dn_pgid_t pgid; /**< process group of the peer */
    uint32_t pid;   /**< PID: rank of the peer in that group */
    size_t botf_inline; /**< longest message that travels in one line */
    size_t botf_max;    /**< longest message */
    uint64_t llcm_len;  /**< bytes of the peer's LLCM */
    int direct;         /**< not 0: long blocks of private memory are reached without the peer's processor */
    int sockets; /**< not 0: the network's library sends by sockets, so a round trip takes longer than copies */
    unsigned caps; /**< DN_CAP_* */
} dn_peer_attr_t;

#endif
