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
/** For devices, see dn_device.h. libdimmnet's own files, which define DN_INSIDE, call these directly. */
#ifdef DN_INSIDE
#    define DN_DEVICE_API __attribute__((visibility("protected")))
#else
#    define DN_DEVICE_API DN_API
#endif

/** Version of the address, segment and message formats. Peers must agree on it exactly. */
#define DN_WIRE_VERSION 21

/** What every fallible call returns: 0 or positive is progress, negative is an error. */
typedef enum dn_status {
    DN_OK = 0,               /**< done */
    DN_INPROGRESS = 1,       /**< started; completion is signalled from dn_progress() */
    DN_ERR_AGAIN = -1,       /**< no room now: call dn_progress(), then retry; nothing happened */
    DN_ERR_PARAM = -2,       /**< the caller passed something that can never work */
    DN_ERR_RANGE = -3,       /**< offset and length leave the segment, or the key is stale */
    DN_ERR_UNREACH = -4,     /**< no device reaches the peer, or the peer is gone */
    DN_ERR_UNSUPPORTED = -5, /**< no such operation here: choose another path at set-up */
    DN_ERR_NOMEM = -6,       /**< memory, file space, slots or descriptors ran out */
    DN_ERR_PROTO = -7,       /**< a peer's bytes are malformed */
    DN_ERR_VERSION = -8,     /**< the peer speaks another DN_WIRE_VERSION */
    DN_ERR_ACCESS = -9,      /**< another process group, another user, or the kernel said no */
    DN_ERR_TRUNC = -10,      /**< a message is longer than the room for it: what fits has been stored */
    DN_ERR_CANCELED = -11,   /**< the caller took it back before it began */
} dn_status_t;

/** The key of a process group: 128 bits that no outsider can guess. Its processes have it from their launcher;
 * it is never sent, and stands in no address. */
typedef struct dn_group_key {
    uint8_t byte[16]; /**< secret */
} dn_group_key_t;

/** The name of a process group (PGID of spec: Martini section 3): follows from its key, and is public.
 * dn_pgid(). */
typedef struct dn_pgid {
    uint8_t byte[16]; /**< public */
} dn_pgid_t;

/** What messages of a network carry, so that only processes that were let in are heard. */
typedef enum dn_auth_mode {
    DN_AUTH_NONE, /**< the opener proves that it has the group's key, which may be a weak one; later messages carry nothing */
    DN_AUTH_HELLO, /**< the opener proves that it has the group's key; later messages carry a secret word,
                        which is known only to those that can read the traffic */
    DN_AUTH_FULL, /**< later messages carry a tag over their bytes and number, too: nobody on the way can change, forge or
                        repeat one. Transfers go by messages then */
    DN_AUTH_ENCRYPTED /**< as DN_AUTH_FULL, and nobody on the way can read one; of the devices, ipnuma alone does so */
} dn_auth_mode_t;

/** The receiver of a message within the peer process. The tag (0..255) below it is the user's own. */
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
    DN_WAIT_AUTO, /**< spin while cores are free, yield where they are shared, sleep after some time in vain */
    DN_WAIT_SPIN,  /**< never give the core away */
    DN_WAIT_YIELD, /**< give the core to others who want it, never sleep */
    DN_WAIT_SLEEP  /**< sleep soon */
} dn_wait_policy_t;

/** What a process opens on a list of devices: dn_open(). */
typedef struct dn_port dn_port_t;
/** A peer lives while it is connected to (dn_connect(), dn_disconnect()). A peer that came by itself, by
 * sending, lives until it leaves: a handler that keeps its pointer for later connects to the peer. */
typedef struct dn_peer dn_peer_t;
/** Memory of this process that peers may PUSH to and PULL from: dn_segment_alloc(), dn_segment_register(). */
typedef struct dn_segment dn_segment_t;

/** How one device reaches a segment; opaque outside that device. */
typedef struct dn_key_way {
    uint32_t kind;    /**< tells the device and what it may do; 0: no way */
    uint32_t fd;      /**< or what else the device keeps there */
    uint64_t word[2]; /**< the device's own */
} dn_key_way_t;

/** Ways in a key, so devices of a list that reach registered memory by themselves. */
#define DN_KEY_WAYS 2

/**
 * Names a segment of another process: its SID, generation and length, plus what the owner's devices say of
 * it, so that each peer finds the words of the device by which it comes. Plain bytes: copy it, send it by any
 * channel. Never holds a pointer to use.
 */
typedef struct dn_key {
    uint32_t sid;                  /**< number of the segment in its process */
    uint32_t generation;           /**< tells it from one before that had the same number */
    uint64_t len;                  /**< bytes in the segment */
    dn_key_way_t way[DN_KEY_WAYS]; /**< one for each device that reaches it by itself */
} dn_key_t;

/** A piece of memory: `at` bytes from the base that the transfer names, `len` bytes long. */
typedef struct dn_block {
    uint64_t at;  /**< bytes from the base */
    uint64_t len; /**< bytes, 0 is legal */
} dn_block_t;

/**
 * Layout of one side of a transfer, in the order in which the byte stream fills it: blocks, of which any may
 * be empty, or a use of a scatter/gather program (dn_prog.h). The program is lent to the library until
 * completion.
 */
typedef struct dn_sg {
    const dn_block_t *block;       /**< count of them; not looked at where there is a use */
    size_t count;                  /**< blocks, 0 is legal */
    const struct dn_prog_use *use; /**< not NULL: this, and no blocks */
} dn_sg_t;

/** A completion handle: struct dn_comp. */
typedef struct dn_comp dn_comp_t;
/** Called once, from dn_progress() or dn_disconnect(), in the thread that calls it; may start new
 * operations. */
typedef void (*dn_comp_fn_t)(dn_comp_t *comp, dn_status_t status);
/** Completion handle, embedded in the caller's own request; lent to the library until fn is called. */
struct dn_comp {
    dn_comp_fn_t fn; /**< set by the caller, never NULL */
};

/** Flags of dn_xfer_t. */
enum {
    DN_XFER_STATUS_LOCAL = 1 << 0,  /**< store local_value at local_status when complete */
    DN_XFER_STATUS_REMOTE = 1 << 1, /**< PUSH only: store remote_value in the target's LLCM after the data */
    /** Without the peer's processor, where it can (dn_peer_attr_t::direct): short blocks take longer, but the
     * peer may compute meanwhile. */
    DN_XFER_ALONE = 1 << 2,
    DN_XFER_UNSHARED = 1 << 3, /**< the peer takes no share of a long copy: it is busy */
};

/** One PUSH or PULL: len bytes between local memory and a peer's segment. */
typedef struct dn_xfer {
    void *local;              /**< base of the local side */
    const dn_sg_t *local_sg;  /**< relative to local; NULL: contiguous */
    const dn_key_t *key;      /**< the remote segment */
    uint64_t roff;            /**< ROFS: base of the remote side, bytes from the segment's start */
    const dn_sg_t *remote_sg; /**< relative to roff; NULL: contiguous */
    uint64_t len;             /**< bytes to move, 0 is legal; an sg holds exactly as many */
    dn_comp_t *comp;          /**< signalled when DN_INPROGRESS was returned; NULL: use dn_flush() */
    unsigned flags;           /**< DN_XFER_* */
    uint64_t *local_status;   /**< 8-byte aligned, usually in the own LLCM */
    uint64_t local_value;     /**< stored there, with DN_XFER_STATUS_LOCAL */
    uint64_t remote_status;   /**< offset in the target's LLCM, multiple of 8 */
    uint64_t remote_value;    /**< stored there, with DN_XFER_STATUS_REMOTE */
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
    dn_amo_op_t op;      /**< what to do with the word */
    unsigned width;      /**< 4 or 8 bytes */
    uint64_t operand;    /**< for DN_AMO_CAS the value to store */
    uint64_t compare;    /**< DN_AMO_CAS only */
    void *result;        /**< width bytes for the old value; lent until completion; NULL: not wanted */
    const dn_key_t *key; /**< the remote segment */
    uint64_t roff;       /**< bytes from the segment's start, a multiple of width */
    dn_comp_t *comp;     /**< as in dn_xfer_t */
} dn_amo_t;

/** A BOTF window: room for one message at the peer, filled in place, then kicked. */
typedef struct dn_window {
    void *data;    /**< write 1..len bytes here */
    size_t len;    /**< bytes reserved */
    uint64_t mark; /**< the device's own */
} dn_window_t;

/** A message that has come, looked at where it lies: dn_peek(). */
typedef struct dn_message {
    const void *data; /**< len bytes, aligned to 8, in memory that the sender can still write */
    size_t len;       /**< bytes of it */
    unsigned tag;     /**< as it was sent, 0..255 */
    uint64_t mark;    /**< the device's own */
} dn_message_t;

/**
 * Receives one message. data: len bytes, aligned to 8, valid until return, and in memory that the sender can
 * still write: copy a field before checking it. May send, start transfers and call dn_progress(); must not
 * disconnect src, nor wait for room: credit goes back when the outermost handler is done.
 */
typedef void (*dn_handler_fn_t)(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg);

/** What this process is, towards its peers. Copied by dn_open(). */
typedef struct dn_job {
    dn_group_key_t key; /**< of the process group */
    uint32_t pid;       /**< PID: rank of this process in the group */
    uint32_t nlocal;    /**< processes of the group on this host, this one included; 0: not known */
    uint32_t size;      /**< processes of the group on all hosts; 0: not known */
    const char *dir;    /**< folder for backing files (job's session folder), NULL: /dev/shm */
    int threads;        /**< not 0: several threads may use the port at once */
} dn_job_t;

/** Most that dn_config_t::stage_bytes may be. */
#define DN_STAGE_BYTES_MAX (1u << 30)

/** Where shared memory comes from: dn_config_t::backing. */
typedef enum dn_backing { DN_BACKING_AUTO, DN_BACKING_MEMFD, DN_BACKING_FILE } dn_backing_t;

/** Settings of a port: a member for each row of dn_params.def's section PORT. dn_config_init() gives the
 * defaults. */
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
    uint64_t mapped_bytes;  /**< PUSH, PULL by CPU copies on mapped memory */
    uint64_t cma_bytes;     /**< by process_vm_readv/writev in this process */
    uint64_t help_bytes;    /**< copied by this process on behalf of a peer that PULLs or PUSHes */
    uint64_t ring_bytes;    /**< through the ring, run by the core processor */
    uint64_t dropped;       /**< malformed or refused messages from peers */
    uint64_t peers_lost; /**< peers whose process has ended or whose port has closed: a caller that waits asks
                                dn_peer_check() when this has grown */
    uint64_t progs_sent; /**< scatter/gather programs that peers were given to run */
    uint64_t resent;     /**< datagrams whose bytes were sent before, as they were lost or seemed so */
} dn_counters_t;

/** What the device does by itself towards a peer, read from what it fills in; the rest is done by the core
 * processors of both ends, with the same result. */
enum {
    DN_CAP_PUSH = 1 << 0,
    DN_CAP_PULL = 1 << 1,
    DN_CAP_ATOMIC = 1 << 2,
    DN_CAP_MAP = 1 << 3, /**< the peer's LLCM and allocated segments are mapped here */
};

/** An open device of a port. The strings live until the port is closed. */
typedef struct dn_device_attr {
    const char *device; /**< name, such as "ofi" */
    const char
        *provider; /**< of a network library, such as "tcp;ofi_rxm"; NULL, as the next two: it uses none */
    const char *domain;   /**< the provider's name of the interface, such as "eth0" */
    const char *endpoint; /**< where it is reached, as the provider writes that */
} dn_device_attr_t;

/** Limits of what reaches one peer. */
typedef struct dn_peer_attr {
    const char *device;   /**< name, such as "shm" */
    const char *provider; /**< of a network library, such as "tcp;ofi_rxm"; NULL: the device uses none */
    dn_pgid_t pgid;       /**< its process group */
    uint32_t pid;         /**< PID: its rank in that group */
    size_t botf_inline;   /**< longest message that travels in one line */
    size_t botf_max;      /**< longest message */
    uint64_t llcm_len;    /**< bytes of the peer's LLCM */
    int direct;           /**< long blocks of private memory are reached without the peer's processor */
    int sockets;          /**< the library sends by sockets: a round trip takes longer than copies */
    unsigned caps;        /**< DN_CAP_* */
} dn_peer_attr_t;

#endif
