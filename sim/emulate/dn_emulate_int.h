/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_emulate_int.h
 * The device `emulate:PROFILE`: the delays of a NIC's profile, laid over shared memory in real time.
 *
 * It is a port within the port: what is sent goes as a message of a second port, of shm, at once, with the
 * times at which the profile's NIC would have sent it. The receiver keeps it until it would have arrived. So
 * an ordinary program sees what it would see on that NIC, as far as this machine is faster than it.
 *
 * What is emulated: the CPU time of stores, windows, polls and reads of messages (the caller spins so long);
 * the stages, the link, the windows used in turn, the receiver's interval between packets, the hardwired
 * parts and their DMA. Every two processes are joined by a cable. What is not: switches, misses of header and
 * address tables (all entries are warm), the transaction FIFO's bound. Credit comes back in no time.
 *
 * PUSH, PULL and atomics are done by the core processors with messages. Where the profile has hardware for a
 * PUSH or PULL, its messages take that hardware's times: a request, a packet a page, an acknowledgement. Its
 * data are taken to begin at a page and to lie together: a block more costs a request, but no packet. The
 * target has to progress, as it would not have to with that hardware.
 *
 * Ordering: messages, lines and AOTFs of one sender take effect in the order in which they were sent, but
 * that lines and AOTFs pass messages that wait for a handler, which hold up the messages behind them; on the
 * NIC an AOTF may pass any message. All of them take effect while their receiver progresses; dn_fence() has
 * nothing to wait for after messages alone; for stores it asks whether they have.
 *
 * Times are in ticks of the processor's counter, which runs at one rate and alike on all cores (invariant
 * TSC); where it does not, in nanoseconds of the kernel's clock. DN_EMULATE_CLOCK chooses, for all processes
 * alike.
 *
 * Locks: the port's is held where peers and what came are changed; the ops take a leaf lock for the NIC's
 * state only.
 */
#ifndef DN_EMULATE_INT_H
#define DN_EMULATE_INT_H

#include "dn_device.h"
#include "dn_model.h"
#include "dn_queue.h"

#define DN_EMULATE_LINE 64

/** @name dn_emulate_time.c: the NIC */
/** @{ */
/** Ticks of one NIC's profile, and until when its parts are in use. */
typedef struct dn_emulate_nic {
    uint64_t host_store, host_to_nic, host_read, host_read_line;
    uint64_t write_from_host, header_lookup, send_buffer, link_send;
    uint64_t botf_start, botf_receive, receive_interval;
    uint64_t path;    /**< from the sender's link into the receiver's memory */
    uint64_t padding; /**< of a padded packet */
    uint64_t header_bytes, wire_min, wire_free, botf_max;
    int window_check;
    double copy_per_byte, wire_per_byte;
    uint64_t request; /**< the host describes a transfer */
    uint64_t arrival; /**< in path: from memory until the host can know; of a transfer once, at its end */
    uint64_t pass, dma_read, dma_write, dma_gap, memory_write;
    uint64_t ask;  /**< a packet without data, from one hardwired part to the other */
    uint64_t tell; /**< from the data until a status word that software sends is there; 0: hardware's is */
    uint64_t page, dma_burst, pull_max;
    int push_dma, pull_dma, dma_cut, lists;
    double dma_per_byte;
    uint64_t *window; /**< when each of those used in turn is free */
    uint64_t windows, kicked;
    uint64_t pipe, link, receive; /**< when the next store, packet, packet to be translated may follow */
    uint64_t dma;                 /**< when the bus is free for the next packet of a transfer */
    uint64_t step, next;          /**< when the page in hand was taken up, the next of that transfer may be */
} dn_emulate_nic_t;

/** How a NIC carries a message. */
typedef enum dn_emulate_way {
    DN_EMULATE_MESSAGE, /**< as one */
    DN_EMULATE_WINDOW,  /**< data of a PUSH in windows: without the message's head, and nobody reads it */
    DN_EMULATE_DMA,     /**< data of a PUSH or PULL by the hardwired parts */
    DN_EMULATE_WORD     /**< what these tell each other: a PULL's request, an acknowledgement */
} dn_emulate_way_t;

/** When something is under way. */
typedef struct dn_emulate_trip {
    uint64_t host;  /**< the caller goes on */
    uint64_t first; /**< the first packet has left the sender */
    uint64_t last;  /**< the last one has */
} dn_emulate_trip_t;

/** Read a profile. DN_ERR_PARAM: the log line says what is wrong with it. */
dn_status_t dn_emulate_nic_open(dn_emulate_nic_t *nic, const dn_model_profile_t *profile,
                                double ticks_per_ps);
void dn_emulate_nic_close(dn_emulate_nic_t *nic);
/** One store of so many bytes at a time. */
dn_emulate_trip_t dn_emulate_aotf_trip(dn_emulate_nic_t *nic, uint64_t now, uint64_t size);
/** A message of so many bytes: as many packets as it takes, the last one with the first bytes. */
dn_emulate_trip_t dn_emulate_botf_trip(dn_emulate_nic_t *nic, uint64_t now, uint64_t len);
/** A part of a transfer that is not carried as a message. @p began: when the host did; @p served: when the
 * NIC, with an answer. */
dn_emulate_trip_t dn_emulate_part_trip(dn_emulate_nic_t *nic, uint64_t began, uint64_t served,
                                       const dn_core_part_t *part);
/** When it is in the receiver's memory, by the receiver's NIC; messages have to be translated. */
uint64_t dn_emulate_aotf_arrival(const dn_emulate_nic_t *nic, uint64_t last, uint64_t size);
uint64_t dn_emulate_botf_arrival(dn_emulate_nic_t *nic, uint64_t first, uint64_t last, uint64_t len);
uint64_t dn_emulate_part_arrival(dn_emulate_nic_t *nic, uint64_t first, uint64_t last,
                                 const dn_core_part_t *part);
/** CPU time to read a message. */
uint64_t dn_emulate_read(const dn_emulate_nic_t *nic, uint64_t len);
/** @} */

/** @name dn_emulate_clock.c: the counter */
/** @{ */
/** Set before the first port of the process opens, and never again: its threads read it plainly. */
extern int dn_emulate_by_kernel;
uint64_t dn_emulate_kernel_now(void);

static inline uint64_t dn_emulate_now(void)
{
    if (dn_emulate_by_kernel) {
        return dn_emulate_kernel_now();
    }
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;
    __asm__ __volatile__("isb; mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

/** Choose the counter, once in a process, and tell its rate.
 * @retval DN_ERR_UNSUPPORTED  the one that DN_EMULATE_CLOCK names does not run at one rate here: the log line says so.
 * @retval DN_ERR_PARAM        it names none: the log line says which there are. */
dn_status_t dn_emulate_clock(double *ticks_per_ps_p);
/**
 * When what the thread does now begins. What this library takes between two of its calls is no time of the
 * profile: up to
 * @p slack ticks since the last spin are not counted.
 */
uint64_t dn_emulate_begin(uint64_t slack);
/** Spin until a time. @return by how much it was over already. */
uint64_t dn_emulate_spin(uint64_t until);
/** @} */

/** What goes over the second port; its tags there. */
typedef enum dn_emulate_kind {
    DN_EMULATE_HELLO,  /**< dn_emulate_hello_t: its sender is connected */
    DN_EMULATE_BYE,    /**< and is so no more */
    DN_EMULATE_CREDIT, /**< dn_emulate_credit_t */
    DN_EMULATE_ASK, /**< dn_emulate_credit_t: a fence's number, to be answered when what came before has taken effect */
    DN_EMULATE_ANSWER, /**< the same back */
    DN_EMULATE_AOTF,   /**< dn_emulate_head_t, dn_emulate_store_t */
    DN_EMULATE_STORES, /**< dn_emulate_head_t, dn_emulate_store_t, bytes: a line */
    DN_EMULATE_BOTF    /**< dn_emulate_head_t, bytes: a message */
} dn_emulate_kind_t;

/** Before all that takes time. */
typedef struct dn_emulate_head {
    uint64_t sent;
    uint64_t first; /**< ticks later: what waits for the link may be seconds ahead of it */
    uint64_t span;  /**< from the first packet to the last */
    uint32_t channel;
    uint32_t tag;
} dn_emulate_head_t;

/** How something is carried that is sent with @p head, and which part of a transfer it is: its message has @p
 * len bytes. */
dn_emulate_way_t dn_emulate_way(const dn_emulate_nic_t *nic, unsigned kind, const dn_emulate_head_t *head,
                                const void *message, size_t len, dn_core_part_t *part_p);

typedef struct dn_emulate_store {
    uint64_t off;
    uint64_t value; /**< of a line: its flag */
    uint64_t size;  /**< of an AOTF; of a line: bytes that follow */
} dn_emulate_store_t;

/** A port's part of its address. */
typedef struct dn_emulate_where {
    uint64_t print; /**< of the profile: both have to be alike */
    char profile[32];
    uint32_t llcm_bytes;
    uint32_t lines; /**< that may be on their way to it from one peer */
    uint32_t len;
    uint8_t address[768]; /**< of the second port, len bytes */
} dn_emulate_where_t;

typedef struct dn_emulate_hello {
    uint64_t nonce[2]; /**< of the first port */
    uint64_t session;
    dn_emulate_where_t where;
} dn_emulate_hello_t;

/** Lines that were taken since the session began: a sender may have so many more under way as the ring
 * has. */
typedef struct dn_emulate_credit {
    uint64_t session;
    uint64_t taken;
} dn_emulate_credit_t;

/** Something that came and has to wait for its time. */
typedef struct dn_emulate_item {
    dn_queue_item_t item; /**< first: in dn_emulate_peer_t::items */
    uint64_t due;
    uint64_t trip; /**< that the profile takes, from the send on */
    uint64_t late; /**< it came after its time and a poll that would have found it */
    dn_emulate_kind_t kind;
    unsigned channel;
    unsigned tag;
    dn_emulate_way_t way;
    uint64_t served; /**< from when on the NIC answers, unless it is a message */
    size_t lines;    /**< of credit */
    size_t len;
    dn_emulate_store_t store;
    uint8_t data[] __attribute__((aligned(16)));
} dn_emulate_item_t;

/** Controls that could not be sent yet. */
enum {
    DN_EMULATE_OWES_HELLO = 1,
    DN_EMULATE_OWES_BYE = 2,
    DN_EMULATE_OWES_CREDIT = 4,
    DN_EMULATE_OWES_ANSWER = 8
};

typedef struct dn_emulate_peer {
    dn_peer_base_t base;
    struct dn_emulate_peer *next;
    dn_peer_t *inner; /**< of the second port, connected to; NULL: it has left */
    uint64_t inner_nonce[2];
    int near_open;     /**< we are connected to it */
    int far_open;      /**< it is to us */
    int gone;          /**< it has ended: what it has sent is to be had, a bye may be missing */
    int cut;           /**< something of it was lost here: nothing behind that takes effect */
    uint32_t owes;     /**< DN_EMULATE_OWES_*; nothing passes a hello */
    uint64_t session;  /**< of our connection; 0: none, as when we only answer */
    uint64_t sent;     /**< lines, in this session */
    uint64_t returned; /**< of them */
    uint64_t lines;    /**< that may be on their way */
    int stores;        /**< there are some that no fence has seen take effect */
    uint64_t covered;  /**< number of the fence behind them, 0: not asked yet */
    uint64_t fences;   /**< numbers of those asked, and answered */
    uint64_t answered;
    dn_emulate_credit_t answer; /**< to be given */
    uint64_t far_session;
    uint64_t taken;    /**< lines of its session */
    uint64_t told;     /**< of them */
    uint64_t due;      /**< of what came last */
    uint64_t reserved; /**< when the window was that is being filled */
    uint64_t served;   /**< from when on its NIC's questions are answered */
    dn_fifo_t items;
} dn_emulate_peer_t;

/** What became of the profile's times; sums over what was received, and what was sent. */
typedef struct dn_emulate_sums {
    uint64_t count;
    uint64_t trip;
    uint64_t over; /**< ticks beyond them */
} dn_emulate_sums_t;

typedef struct dn_emulate {
    dn_iface_t iface;
    dn_port_t *inner;
    char profile[32];
    uint64_t print;
    double ticks_per_ps;
    uint64_t slack; /**< of dn_emulate_begin() */
    uint32_t llcm_bytes;
    uint32_t lines; /**< that a peer may have on their way to us */
    uint64_t sessions;
    dn_emulate_peer_t *peers;
    unsigned depth;     /**< handlers that run */
    uint64_t poll;      /**< when the last one began */
    uint64_t poll_over; /**< by how much it took too long */
    dn_lock_t lock;     /**< of nic, of sums, and of what peers' fences wait for */
    dn_emulate_nic_t nic;
    dn_emulate_sums_t sums;
} dn_emulate_t;

/** @name dn_emulate_msg.c: sending, receiving */
/** @{ */
extern const dn_peer_ops_t dn_emulate_ops;
/** Something came, of AOTF, STORES or BOTF. @return 0: malformed. */
int dn_emulate_arrive(dn_emulate_t *emulate, dn_emulate_peer_t *peer, unsigned kind, const void *data,
                      size_t len);
/** A fence asks whether all before has taken effect. */
int dn_emulate_asked(dn_emulate_t *emulate, dn_emulate_peer_t *peer, const void *data, size_t len);
/** Hand on what is due of one peer. @return how much. */
int dn_emulate_deliver(dn_emulate_t *emulate, dn_emulate_peer_t *peer, int max);
/** Drop what waits. */
void dn_emulate_drop(dn_emulate_peer_t *peer);
/** @} */

/** @name dn_emulate_peer.c: who is connected to whom */
/** @{ */
dn_status_t dn_emulate_where(const dn_emulate_t *emulate, dn_emulate_where_t *where);
dn_status_t dn_emulate_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                               dn_peer_base_t **peer_p);
void dn_emulate_disconnect(dn_peer_base_t *peer);
void dn_emulate_release(dn_peer_base_t *peer);
dn_status_t dn_emulate_check(dn_peer_base_t *peer);
/** dn_handler_fn_t and dn_lost_fn_t of the second port. */
void dn_emulate_came(dn_peer_t *inner, unsigned tag, const void *data, size_t len, void *arg);
void dn_emulate_inner_lost(dn_peer_t *inner, void *arg);
/** Send the controls that are owed, as far as there is room. */
void dn_emulate_pay(dn_emulate_t *emulate, dn_emulate_peer_t *peer);
/** Free the peers that neither side is connected to. No handler runs. */
void dn_emulate_sweep(dn_emulate_t *emulate);
/** @} */

/** The module dn_device_emulate takes it from this library. */
DN_API extern const dn_device_t dn_device_emulate;

#endif
