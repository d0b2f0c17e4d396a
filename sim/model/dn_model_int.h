/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_model_int.h
 * Inside of the model: the virtual clock (dn_model_sim.c), nodes' stacks (dn_model_stack.c) and what their code calls
 * (dn_model_node.c), the fabric (dn_model_net.c), its links where they have credits or errors (dn_model_hop.c), the NIC's paths
 * (dn_model_nic.c, dn_model_aotf.c, dn_model_op.c, dn_model_dma.c), IP-NUMA's tables (dn_model_table.c), the message rings (dn_model_msg.c) and the
 * device (dn_model.c).
 *
 * A node runs ahead of the others on a clock of its own: what it starts is entered at the moment of that
 * clock, and it waits for the common clock only before it looks at memory.
 */
#ifndef DN_MODEL_INT_H
#define DN_MODEL_INT_H

#include "dn_device.h"
#include "dn_line.h"
#include "dn_model_profile.h"

typedef struct dn_model dn_model_t;
typedef struct dn_model_node dn_model_node_t;
typedef struct dn_model_iface dn_model_iface_t;
typedef struct dn_model_peer dn_model_peer_t;
typedef struct dn_model_link dn_model_link_t;
typedef struct dn_model_op dn_model_op_t;
typedef struct dn_model_packet dn_model_packet_t;
typedef struct dn_model_hop dn_model_hop_t;
typedef struct dn_model_pc dn_model_pc_t;
typedef struct dn_model_mapped dn_model_mapped_t;

typedef void (*dn_model_event_fn_t)(dn_model_t *model, void *arg);

/** Something that happens at a time. */
typedef struct dn_model_event {
    uint64_t at_ps;
    uint64_t order; /**< among those of one time: that in which they were entered, or a shuffled number */
    dn_model_event_fn_t fn;
    void *arg;
} dn_model_event_t;

typedef enum dn_node_state {
    DN_NODE_RUNS,
    DN_NODE_SLEEPS, /**< until a time */
    DN_NODE_POLLS,  /**< until something arrives */
    DN_NODE_WAKES,  /**< something has: the next poll is entered */
    DN_NODE_ENDED
} dn_node_state_t;

/** A NIC's pieces that one packet after the other uses. */
typedef struct dn_model_busy {
    uint64_t pipe_ps;    /**< AOTF pipeline takes the next store */
    uint64_t link_ps;    /**< link takes the next packet */
    uint64_t receive_ps; /**< receiver takes the next packet that needs translation */
    uint64_t dma_ps;     /**< DMA of requests and answers */
} dn_model_busy_t;

/** A page of host memory that a NIC has read or written. */
typedef struct dn_model_host_page {
    uint64_t page;
    uint64_t number; /**< of this access among all of the NIC, from 1 on; 0: this place is free */
} dn_model_host_page_t;

struct dn_model_node {
    dn_model_t *model;
    uint32_t index;
    dn_node_state_t state;
    void *context; /**< of its stack */
    uint64_t *stack_end;
    uint64_t clock_ps;
    uint64_t random;
    uint64_t arrivals; /**< since the last poll */
    unsigned idle;     /**< polls in vain, one after the other */
    uint64_t poll_ps;
    dn_model_way_t way;
    dn_model_busy_t busy;
    uint64_t *window_ps; /**< when the windows used in turn are free again; made at first use */
    uint64_t windows;    /**< kicked so far: the first use of each needs no check */
    uint64_t *fifo;      /**< when stores in the transaction FIFO leave it, a ring; made at first use */
    uint64_t stores;
    uint64_t credits;
    uint32_t *htlb;                  /**< kick pages, ways of a set together; made at first use */
    uint32_t pages;                  /**< kick pages given out */
    uint64_t *tlb;                   /**< PATLB, then RVATLB; made at first use */
    dn_model_host_page_t *host_page; /**< host_room places, a power of two, at most half of them in use */
    uint64_t host_pages;
    uint64_t host_room;
    uint64_t llcm_used;
    dn_model_pc_t *pc; /**< PC ID table; made at first use */
    uint32_t pcs;
    uint32_t shared; /**< entries of the shared region table in use */
    uint64_t pages_mapped;
};

struct dn_model {
    dn_model_profile_t profile;
    dn_model_config_t config;
    dn_model_report_t report;
    dn_model_fn_t fn;
    void *arg;
    dn_model_node_t *node;
    dn_model_event_t *heap;
    size_t events;
    size_t room;
    uint64_t order;
    uint64_t now_ps;
    dn_model_node_t *here; /**< that runs, NULL: dn_model_run() */
    dn_model_node_t *next; /**< to run as soon as the event in hand is over */
    void *main_context;
    uint32_t running; /**< nodes that have not ended */
    uint64_t quiet;   /**< times that all waited with nothing under way, one after the other */
    int failed;       /**< dn_status_t that ends the run */
    uint8_t *stacks;
    uint64_t *fabric_ps; /**< busy until, by link of the fat tree or port of the star */
    dn_model_hop_t
        *hop; /**< NULL: links have neither credits nor errors, and fabric_ps is all that is needed */
    size_t hops;
    uint32_t levels;
    uint32_t down;              /**< ports downwards */
    dn_model_packet_t *packets; /**< to be used again */
    dn_model_iface_t **iface;   /**< by number; NULL: closed */
    uint32_t ifaces;
};

/** No time: there is no credit, or the run has failed. */
#define DN_MODEL_NEVER UINT64_MAX

static inline uint64_t dn_value(const dn_model_node_t *node, dn_model_param_t param)
{
    return node->model->profile.value[param];
}

/** Time of so many bytes at a rate. */
static inline uint64_t dn_time_of(uint64_t bytes, uint64_t rate)
{
    return (uint64_t) ((double) bytes * 1e12 / (double) rate + 0.5);
}

/** @name dn_model_sim.c */
/** @{ */
/** The run that this thread is in, or NULL. */
dn_model_t *dn_model_current(void);
/** Enter an event; when memory runs out the run ends. */
void dn_model_at(dn_model_t *model, uint64_t at_ps, dn_model_event_fn_t fn, void *arg);
/** Something has arrived at this node: who polls there finds it. */
void dn_model_arrived(dn_model_node_t *node);
/** Wait for the common clock to reach the node's own. */
void dn_model_sync(dn_model_node_t *node);
/** One poll's time; after one in vain until something arrives. @return arrivals since the last poll. */
uint64_t dn_model_look(dn_model_node_t *node);
/** The node does something other than to poll. */
static inline void dn_model_busy(dn_model_node_t *node)
{
    node->idle = 0;
}
uint64_t dn_model_random(uint64_t *state);
/** Let all look that poll, at something that came by no message. */
void dn_model_wake_all(dn_model_t *model);
/** Let events happen until the one who runs is to run again. */
void dn_model_loop(dn_model_t *model);
/** @} */

/** @name dn_model_stack.c */
/** @{ */
/** Prepare a stack so that switching to it calls enter(), which does not return. */
dn_status_t dn_model_stack_make(void **context_p, uint8_t *stack, size_t bytes, void (*enter)(void));
/** Prepare to come back to the stack in use. */
dn_status_t dn_model_stack_here(void **context_p);
/** Leave the stack in use, as *from_p, for another; comes back when somebody switches to it. */
void dn_model_stack_switch(void **from_p, void *to);
/** Free what was prepared; the stack itself, still mapped, is the caller's. */
void dn_model_stack_free(void *context);
/** @} */

/** How a packet travels. */
typedef enum dn_packet_kind {
    DN_PACKET_AOTF, /**< one store: no translation at the receiver */
    DN_PACKET_BOTF, /**< built in a window: translated */
    DN_PACKET_DMA,  /**< of the hardwired parts, whose passes are counted where they are made */
} dn_packet_kind_t;

/** The last byte of a packet is where it goes. */
typedef void (*dn_model_deliver_fn_t)(dn_model_t *model, dn_model_packet_t *packet);

/** A packet; who delivers it gives it back. What is not of the journey is its sender's own. */
struct dn_model_packet {
    dn_model_packet_t *next;
    dn_model_node_t *from;
    dn_model_node_t *to;
    dn_packet_kind_t kind;
    uint64_t len; /**< data bytes */
    uint64_t
        interval_ps; /**< kept from the packet before it at the receiver, and the path there, beyond the stages */
    uint64_t extra_ps;
    dn_model_deliver_fn_t deliver;
    dn_model_packet_t *copies; /**< that the switch makes of this one, one behind the other */
    dn_model_hop_t *held;      /**< link whose far buffer it is in, and how many of its credits it has */
    uint64_t credits;
    uint32_t hop;  /**< links behind it */
    uint32_t side; /**< of link, that receives */
    dn_model_link_t *link;
    dn_model_op_t *op;
    uint64_t number; /**< on its link, towards its side */
    uint64_t off;
    uint64_t size;
    uint64_t value;
    uint64_t wipe; /**< offset in the ring of a word to be wiped, or UINT64_MAX */
    uint64_t wiped;
    uint8_t data[64];
};

/** @name dn_model_net.c */
/** @{ */
dn_status_t dn_model_net_open(dn_model_t *model);
/** When the first byte of a packet that leaves a NIC now is at the last port on its way. @p wire_ps: its
 * length on a link. */
uint64_t dn_model_net_pass(dn_model_t *model, uint32_t from, uint32_t to, uint64_t wire_ps);
/** When the first byte of a packet that is at its last port now leaves that: packets from afar and from near
 * meet there. */
uint64_t dn_model_net_leave(dn_model_t *model, uint32_t from, uint32_t to, uint64_t wire_ps);
/** Time in a switch until the first byte of a packet may leave it. */
uint64_t dn_model_net_switch_ps(const dn_model_t *model, uint64_t wire_ps);
/** Switches from which a packet climbs the tree, not counting the one on top. */
uint32_t dn_model_net_climb(const dn_model_t *model, uint32_t from, uint32_t to);
/** Links of one level of the tree. */
size_t dn_model_net_width(const dn_model_t *model);
/** Number on its level (1: the lowest) of the link upwards from @p from on the way to @p to. */
size_t dn_model_net_up(const dn_model_t *model, uint32_t level, uint32_t from, uint32_t to);
/** Are two nodes joined? */
int dn_model_net_joins(const dn_model_t *model, uint32_t from, uint32_t to);
/** @} */

/** @name dn_model_hop.c */
/** @{ */
/** Make the links, where a profile has credits or errors for them. */
dn_status_t dn_model_hop_open(dn_model_t *model);
void dn_model_hop_close(dn_model_t *model);
/** The first byte of a packet is to leave the NIC now: from link to link, it goes to the other one. */
void dn_model_hop_enter(dn_model_t *model, dn_model_packet_t *packet);
/** @} */

/** @name dn_model_nic.c */
/** @{ */
/** A packet with its journey's fields set; NULL: the run has failed. */
dn_model_packet_t *dn_model_packet_new(dn_model_node_t *from, dn_model_node_t *to, dn_packet_kind_t kind,
                                       uint64_t len, dn_model_deliver_fn_t deliver);
void dn_model_packet_free(dn_model_t *model, dn_model_packet_t *packet);
/** Put a packet on the link as soon as it is free, from @p at_ps on. @return when its last byte has left. */
uint64_t dn_model_packet_send(dn_model_packet_t *packet, uint64_t at_ps);
/** dn_model_event_fn_t: the first byte of a packet leaves the sender's link now. */
void dn_model_packet_leave(dn_model_t *model, void *packet);
/** The first byte leaves the last link at a time. @return when the receiver begins to take the packet in. */
uint64_t dn_model_packet_enter(dn_model_t *model, dn_model_packet_t *packet, uint64_t at_ps);
/** Bytes on a link of a packet with so many data, and their time. */
uint64_t dn_model_wire_bytes(const dn_model_node_t *node, uint64_t len);
uint64_t dn_model_wire_ps(const dn_model_node_t *node, uint64_t len);
/** The host stores once to a kick page. @return when the packet is ready for the link, DN_MODEL_NEVER: no
 * credit. */
uint64_t dn_model_store(dn_model_node_t *node, uint32_t page);
/** The host fills a window with so many bytes and kicks it, once the window is free. @return as above. */
uint64_t dn_model_window(dn_model_node_t *node, uint64_t len);
/** The window kicked last is free again at a time. */
void dn_model_window_free(dn_model_node_t *node, uint64_t at_ps);
/** A kick page that no peer's page has yet. */
uint32_t dn_model_kick_page(dn_model_node_t *node);
/** Look in the HTLB; a miss is refilled. @return 1: it was there. */
int dn_model_htlb(dn_model_node_t *node, uint32_t page);
/** Look in PATLB (which 0) or RVATLB (1); a miss is refilled. @return the time that it takes beyond a hit. */
uint64_t dn_model_tlb(dn_model_node_t *node, int which, uint64_t key);
/**
 * What PATLB knows a page of host memory by: numbered in the order of first use, since addresses differ from
 * run to run, and the same run has to give the same misses.
 */
uint64_t dn_model_host_page(dn_model_node_t *node, uint64_t address);
/** CPU time to read so many bytes of a message. */
uint64_t dn_model_read_message_ps(const dn_model_node_t *node, uint64_t len);
/** @} */

/** @name dn_model_flow.c */
/** @{ */
/** Is a packet that leaves lost? Then it will be sent again. */
int dn_model_flow_loses(dn_model_packet_t *packet);
/** A packet has come: deliver it, and what has waited for it. */
void dn_model_flow_arrive(dn_model_t *model, dn_model_packet_t *packet);
/** @} */

/** Who a port is; kept by its links after it has left, since its messages are still read. */
typedef struct dn_model_who {
    dn_model_node_t *node;
    uint32_t number;
    uint32_t pid;
    uint64_t nonce[2];
    dn_pgid_t pgid;
    uint32_t ring_lines;
    uint32_t llcm_bytes;
} dn_model_who_t;

/** Whom an entry of the shared region table lets in: nodes that agree with this one where the mask has
 * ones. */
typedef struct dn_model_net {
    uint32_t node;
    uint32_t mask; /**< 0, as at first: all */
} dn_model_net_t;

/** A registered segment, as the NIC's table has it (SID to start). */
typedef struct dn_model_region {
    uint8_t *base;
    uint64_t len;
    uint32_t generation;
    int live;
    dn_model_net_t let_in;
} dn_model_region_t;

/** An open device of a node. */
struct dn_model_iface {
    dn_iface_t iface;
    dn_model_node_t *node;
    dn_model_who_t who; /**< its number is that in dn_model_t::iface */
    uint32_t max_peers;
    uint8_t *llcm;
    dn_model_net_t let_in;  /**< to LLCM and message rings */
    dn_model_link_t *links; /**< of this port */
    uint32_t senders;
    dn_model_link_t *ready; /**< with messages that came, oldest first */
    dn_model_link_t **ready_tail;
    int stirred;               /**< a link came, went or waits for admission */
    dn_model_region_t *region; /**< by SID */
    uint32_t regions;
    dn_model_op_t *done; /**< complete, to be signalled by progress */
    dn_model_op_t **done_tail;
    dn_model_op_t *ops; /**< in flight */
};

/** One end of a link. */
typedef struct dn_model_side {
    dn_model_iface_t *iface; /**< NULL: it has left */
    dn_model_who_t who;
    dn_model_peer_t *peer; /**< the other, as this side knows it; NULL: it does not */
    int open;              /**< this side sends */
    dn_ring_t *ring;       /**< in this side's memory: what it receives. Made at first use, as those below */
    dn_ring_t *mirror;     /**< what this side has sent: the lines as built, and the credit that came back */
    dn_line_tx_t tx;
    dn_line_rx_t rx;
    uint32_t flight;          /**< packets on their way to this side, but for those of transfers */
    int fenced;               /**< the other side waits until there are none */
    int refused;              /**< the other side's NIC has told that it lets this one's writes not in */
    uint64_t numbered;        /**< packets that were given a number */
    uint64_t arrived;         /**< of these, those delivered */
    dn_model_packet_t *early; /**< came behind a gap, by number */
    int waits;                /**< on the list of its port's links with messages */
    dn_model_link_t *next;
    dn_model_link_t *next_ready;
    size_t llcm; /**< taken for the ring */
} dn_model_side_t;

/** What two ports have in common; lives while a side or a packet needs it. To oneself both sides are
 * side 0. */
struct dn_model_link {
    dn_model_side_t side[2];
    uint32_t refs;
    int self;
};

/** The other side's number. */
static inline uint32_t dn_model_other(const dn_model_link_t *link, uint32_t side)
{
    return link->self ? side : 1 - side;
}

/** The side of a port. */
static inline uint32_t dn_model_side(const dn_model_link_t *link, const dn_model_iface_t *iface)
{
    return !link->self && iface == link->side[1].iface;
}

struct dn_model_peer {
    dn_peer_base_t base;
    dn_model_link_t *link;
    uint32_t side;              /**< our own */
    uint32_t number;            /**< of the other's port */
    dn_model_node_t *far;       /**< the other's node */
    uint32_t *kick_page;        /**< by page of its LLCM; 0: none yet */
    int mapped;                 /**< it has its PC ID, its LLCM its entries of the page map */
    dn_model_mapped_t *segment; /**< of it, in the page map */
};

/** @name dn_model_table.c */
/** @{ */
/** Enter a peer into PC ID table and page map. @retval DN_ERR_NOMEM  one of them is full: the log line says
 * which. */
dn_status_t dn_model_map_peer(dn_model_node_t *node, dn_model_peer_t *peer);
/** Undo it, and dn_model_map_segment() of the peer. */
void dn_model_unmap_peer(dn_model_node_t *node, dn_model_peer_t *peer);
/** Enter a peer's segment into the page map, unless it is there. @return 0: there is no room. */
int dn_model_map_segment(dn_model_node_t *node, dn_model_peer_t *peer, const dn_key_t *key);
/** Take an entry of the node's shared region table. @return 0: there is none. */
int dn_model_region_alloc(dn_model_node_t *node);
void dn_model_region_free(dn_model_node_t *node);
/** May a node write, or read, there? */
int dn_model_lets_in(const dn_model_net_t *net, const dn_model_node_t *from);
/** dn_device_t::opens: what comes by messages is for the core processor, which asks the shared region table
 * as the NIC does. */
int dn_model_opens(const dn_peer_base_t *src, const dn_key_t *key);
/** Does a peer open a segment to us? Counted, if not. */
int dn_model_opened(dn_model_peer_t *peer, const dn_key_t *key);
/** Is what a node sends into LLCM or rings of a link's side refused? Then it is counted, and its sender
 * told. */
int dn_model_refuses_from(dn_model_t *model, dn_model_link_t *link, uint32_t side,
                          const dn_model_node_t *from);
/** The same for a packet of the link that has come. */
int dn_model_refuses(dn_model_t *model, const dn_model_packet_t *packet);
/** @} */

static inline dn_model_side_t *dn_model_near(const dn_model_peer_t *peer)
{
    return &peer->link->side[peer->side];
}

static inline dn_model_side_t *dn_model_far(const dn_model_peer_t *peer)
{
    return &peer->link->side[dn_model_other(peer->link, peer->side)];
}

/** @name dn_model_aotf.c */
/** @{ */
/** A transfer, message or store to a port that has closed. */
dn_status_t dn_model_gone(dn_model_peer_t *peer);
/**
 * Is the other side there, does its NIC let this one in, and has the page map its LLCM?
 * @retval DN_ERR_UNREACH  it has left, or lets nothing in: it has been told to be lost.
 * @retval DN_ERR_NOMEM    the page map has no room: the peer lives, disconnect from another one first.
 */
dn_status_t dn_model_reaches(dn_model_peer_t *peer);
/** A packet to the other side of a link; NULL: the run has failed. */
dn_model_packet_t *dn_model_link_packet(dn_model_link_t *link, uint32_t from, dn_packet_kind_t kind,
                                        uint64_t len, dn_model_deliver_fn_t deliver);
/** Such a packet has done its work: its side may be fenced, its link may go. */
void dn_model_link_packet_free(dn_model_packet_t *packet);
dn_status_t dn_model_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size);
dn_status_t dn_model_aotf_line(dn_peer_t *peer, uint64_t off, const void *data, size_t len, uint64_t flag);
/** @} */

/** @name dn_model_msg.c */
/** @{ */
dn_status_t dn_model_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head, size_t head_len,
                          const void *body, size_t body_len);
dn_status_t dn_model_reserve(dn_peer_t *peer, size_t len, dn_window_t *window);
void dn_model_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len);
dn_status_t dn_model_fence(dn_peer_t *peer);
/** Hand on at most @p max messages that have come to one side. */
int dn_model_deliver(dn_model_link_t *link, uint32_t side, int max);
/** @} */

/** @name dn_model_dma.c */
/** @{ */
dn_status_t dn_model_push(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_model_pull(dn_peer_t *peer, const dn_xfer_t *xfer);
/** Signal what is complete. @return how many. */
int dn_model_signal(dn_model_iface_t *iface);
/** End what is in flight to a peer (NULL: to all) with an error, or without a word when the port closes. */
void dn_model_drop_ops(dn_model_iface_t *iface, const dn_model_peer_t *peer, int tell);
/** @} */

/** @name dn_model_peer.c */
/** @{ */
/** A port's part of its address. */
typedef struct dn_model_where {
    uint64_t nonce[2];
    uint32_t number;
    uint32_t node;
} dn_model_where_t;

dn_status_t dn_model_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                             dn_peer_base_t **peer_p);
void dn_model_disconnect(dn_peer_base_t *peer);
void dn_model_release(dn_peer_base_t *peer);
dn_status_t dn_model_check(dn_peer_base_t *peer);
/** Links that came or went since the last progress. */
void dn_model_stir(dn_model_iface_t *iface);
/** Leave all links: the port closes. */
void dn_model_leave_all(dn_model_iface_t *iface);
/** A packet needs a link no more. */
void dn_model_link_give(dn_model_link_t *link);
/** The other end of a link as this side knows it: made when its group is let in; NULL: it is not. */
dn_model_peer_t *dn_model_peer_of(dn_model_link_t *link, uint32_t side);
/** @} */

/** The module dn_device_model takes it from this library. */
DN_API extern const dn_device_t dn_device_model;

#endif
