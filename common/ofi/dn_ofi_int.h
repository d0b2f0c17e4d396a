/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ofi_int.h
 * The ofi device: any network for which libfabric has an RDM endpoint. A port has
 * one endpoint, one completion queue and one address vector. Every message goes
 * through them.
 *
 * A sender opens a *stream* to a peer with a HELLO. The HELLO says which process the sender is, and
 * names the stream by a token that the sender chooses. The sender repeats HELLO until the peer
 * answers with a CHALLENGE. Meanwhile messages wait at the sender, behind
 * the PROOF that the peer asks for (dn_auth.h, dn_ofi_greet.c). So a receiver
 * keeps nothing of processes that have no key, and little of processes that have not
 * sent their PROOF yet. All messages of
 * the stream carry its token and a number. The receiver puts them in order by the number,
 * so a provider need not keep order (FI_ORDER_SAS). Numbers of messages and
 * counts of lines have 64 bits and never wrap. So a number can be compared however old it
 * is, as that of the last AOTF. AOTF is such a message, too: the target's program or watcher
 * reads it, and stores the word. A provider's RMA write would not promise one store, nor an
 * order after messages.
 *
 * Credit: the receiver gives a stream `credit_max` lines of 64 B in its memory. The
 * sender keeps as many lines again in its own memory, and then returns DN_ERR_AGAIN. A
 * stream ends with LEAVE, which the receiver acknowledges with LEFT.
 *
 * PUSH and PULL are fi_writemsg with FI_DELIVERY_COMPLETE, and fi_readmsg, on
 * keys made by dn_ofi_segment_register(). Other transfers, and all atomic operations, return
 * DN_ERR_UNSUPPORTED, and the core processor does them by messages. The target changes or
 * reads its memory for them when it reads the message (dn_core_alone()).
 *
 * The target's program takes no part: while it computes or sleeps, the watcher (dn_ofi_watch.c) reads what
 * comes, and runs no handler. While the program polls, the watcher leaves the network to the program.
 *
 * The bell: whoever reads something that the program may wait for touches dn_iface_t::bell (dn_wait.h), once the lock is let go. This
 * thing is stored under the lock, and the sleeper takes the lock in the look of step S1. Where the sleeper had the lock first, the ringer
 * has taken the lock after step S0, so R1 finds the bell odd. Where the ringer had the lock first, S1 finds that thing. So these rings need
 * no fence of other processes.
 *
 * Who reads: a thread tells the device at step S2 that it sleeps now (dn_ofi_hand_on()). From then on the watcher reads. A turn of another
 * thread of the program takes the network back: that thread reads, and rings for the sleeper. When it stops without a sleep, as to compute,
 * the watcher learns that by the clock (dn_lull_t). Whether the bell is odd does not matter here, since a wait that has ended leaves it odd.
 *
 * Locks: ofi->lock guards all data of the device, and serialises calls of libfabric. The lock
 * is a leaf: it is taken after the port's lock, and no handler, completion, receiver of log lines or
 * dn_port_peer_lost() is called under it. There is one exception: where dn_port_adopt() finds no memory to inject faults, it logs
 * that at once. With a time limit there is a watcher
 * (dn_ofi_watch.c), so even a program of one thread takes the lock. The watcher never has the
 * port's lock.
 */
#ifndef DN_OFI_INT_H
#define DN_OFI_INT_H

#include "dn_clock.h"
#include "dn_ofi_state.h"

/** Is the bell rung while the program sleeps? Without a file to wait for, or without a thread, nobody reads then. */
int dn_ofi_rings(const dn_iface_t *iface);

/** Wake the watcher. */
void dn_ofi_watch_call(const dn_ofi_t *ofi);

static inline void dn_ofi_lock(dn_ofi_t *ofi)
{
    if (ofi->threads) {
        pthread_mutex_lock(&ofi->lock);
    }
}

/** Let go of the lock. Then do what has to be done without the lock: log, wake the watcher, ring. */
void dn_ofi_unlock_and_more(dn_ofi_t *ofi);

static inline void dn_ofi_unlock(dn_ofi_t *ofi)
{
    if (0 != (ofi->after | ofi->log.count)) {
        dn_ofi_unlock_and_more(ofi);
    } else if (ofi->threads) {
        pthread_mutex_unlock(&ofi->lock);
    }
}

/** Something came that the program may wait for. */
static inline void dn_ofi_ring(dn_ofi_t *ofi)
{
    ofi->after |= DN_OFI_AFTER_RING;
}

/** A peer was found gone: dn_peer_doubt(). */
static inline void dn_ofi_doubt(dn_ofi_t *ofi, dn_ofi_peer_t *peer, enum dn_peer_doubt why)
{
    dn_peer_doubt(&peer->base, why);
    dn_ofi_ring(ofi);
}

/** Suspect a peer when the lock is let go, and the reason is logged: the line comes before the program learns of the loss. */
static inline void dn_ofi_condemn(dn_ofi_t *ofi, dn_ofi_peer_t *peer, enum dn_peer_doubt why)
{
    peer->condemned = why;
    ofi->after |= DN_OFI_AFTER_CONDEMN;
}

/** Is a peer in doubt, or about to be? */
static inline int dn_ofi_is_doubted(const dn_ofi_peer_t *peer)
{
    return DN_PEER_TRUSTED != peer->condemned || dn_peer_is_doubted(&peer->base);
}

/** After the last message that came or went, calls are left out again when so many looks were in vain. */
#define DN_OFI_LIVELY 256u

/** A message came or went: more messages, or an answer, may follow. */
static inline void dn_ofi_stir(dn_ofi_t *ofi)
{
    ofi->lively = DN_OFI_LIVELY;
}

/** The program looks at the network: the watcher may nap on. */
static inline void dn_ofi_put_off(dn_ofi_t *ofi, uint64_t now)
{
    if (DN_OFI_WATCH_NAPS == ofi->watcher.state) {
        dn_lull_put_off(&ofi->watcher.lull, now);
    }
}

/** The program looks at the clock for the watcher once in so many turns. */
#define DN_OFI_LULL_TURNS 16u

/** Count a turn in which a thread of the program reads. The watcher compares the number without the lock, and only to see a change. */
static inline void dn_ofi_take_turn(dn_ofi_t *ofi)
{
    dn_store_relaxed(&ofi->turns, ofi->turns + 1);
    if (0 == ofi->turns % DN_OFI_LULL_TURNS) {
        dn_ofi_put_off(ofi, dn_clock_ns());
    }
}

static inline dn_ofi_head_t *dn_ofi_head(dn_ofi_buffer_t *buffer)
{
    return (dn_ofi_head_t *) buffer->bytes;
}

/** @name dn_ofi_fabric.c: libfabric's objects, memory, the completion queue */
/** @{ */
/** Choose a provider and open its objects. argument: PROVIDER, PROVIDER@DOMAIN,
 * @DOMAIN or NULL. */
dn_status_t dn_ofi_fabric_open(dn_ofi_t *ofi, const dn_config_t *config, const char *argument);
void dn_ofi_fabric_close(dn_ofi_t *ofi);
/** libfabric (dn_ofi_lib.c). @return NULL: @p wrong_p says what is wrong. */
const dn_ofi_lib_t *dn_ofi_lib_load(const char **wrong_p);
/** Choose a provider (dn_ofi_select.c). */
dn_status_t dn_ofi_select(dn_ofi_t *ofi, const dn_config_t *config, const char *argument);
/** Does the provider reach processes of this host only? */
int dn_ofi_is_local(const struct fi_info *info);
/** Does the provider send by sockets of the kernel? */
int dn_ofi_has_sockets(const struct fi_info *info);
/** Close the endpoint, so that the provider lets go of all memory at once. All peers are suspected, except this process itself. */
void dn_ofi_break(dn_ofi_t *ofi);
/**
 * The endpoint for RMA. RMA has an endpoint of its own: a key that the target does
 * not know then ends other RMA in flight, but no message. Where the provider has only
 * one endpoint, it is the endpoint of messages. NULL: it is closed.
 */
struct fid_ep *dn_ofi_rma_endpoint(dn_ofi_t *ofi);
/** Close the endpoint for RMA; the next operation opens another. */
void dn_ofi_rma_close(dn_ofi_t *ofi);
/** Register memory with the provider. NULL: the provider refuses. */
struct fid_mr *dn_ofi_mr(dn_ofi_t *ofi, void *base, uint64_t len, uint64_t access);
/** The address of an endpoint's name. It is entered once, and its users are
 * counted. NULL: the provider does not take the name. */
dn_ofi_node_t *dn_ofi_node(dn_ofi_t *ofi, const uint8_t *name, uint32_t len);
void dn_ofi_node_leave(dn_ofi_t *ofi, dn_ofi_node_t *node);
/** Post receives, until there are rx_want. */
void dn_ofi_refill(dn_ofi_t *ofi);
/** Read completions, at most one batch, and handle them. @return events. */
int dn_ofi_poll(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_pool.c: buffers for messages */
/** @{ */
/** A buffer of at least so many bytes; NULL: no memory. */
dn_ofi_buffer_t *dn_ofi_buffer(dn_ofi_t *ofi, size_t bytes);
void dn_ofi_buffer_free(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** Unregister the buffers of a pool. */
void dn_ofi_pool_unregister(dn_ofi_pool_t *pool);
/** Give the memory of a pool back. */
void dn_ofi_pool_close(dn_ofi_pool_t *pool);
/** @} */

/** @name dn_ofi_msg.c: sending AOTF and BOTF */
/** @{ */
dn_status_t dn_ofi_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head, size_t head_len,
                        const void *body, size_t body_len);
dn_status_t dn_ofi_lend(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head, size_t head_len,
                        const void *body, size_t body_len, dn_comp_t *comp);
dn_status_t dn_ofi_reserve(dn_peer_t *peer, size_t len, dn_window_t *window);
void dn_ofi_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len);
dn_status_t dn_ofi_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size);
dn_status_t dn_ofi_fence(dn_peer_t *peer);
/** Do what a message asks of the core processor, and answer, if no handler is needed. The buffer stays the caller's. @return not 0: the
 * message is done; 0: the handler is needed, and the buffer's `later` may be set. */
int dn_ofi_serve(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer);
/** Send an AOTF to a peer, or do it, where the peer is this process itself. DN_ERR_AGAIN: no room. */
dn_status_t dn_ofi_store(dn_ofi_t *ofi, dn_ofi_peer_t *peer, uint64_t off, uint64_t value, size_t size);
/** An operation found no room: now and then, look whether the peer lives.
 * @return DN_ERR_AGAIN or DN_ERR_UNREACH. */
dn_status_t dn_ofi_no_room(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Does RMA to this peer have to wait for messages that were sent before a
 * fence? */
int dn_ofi_is_fenced(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_loan.c: memory that senders lend */
/** @{ */
/** Make a loan: memory that is sent behind a buffer is lent until the message has gone out. @return 0: memory ran out. */
int dn_ofi_loan_make(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, dn_comp_t *comp);
/** Undo a loan: the provider did not take the buffer. */
void dn_ofi_loan_undo(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** Return a loan: the provider does not read the memory any more, or the message has no receiver any more. */
void dn_ofi_loan_return(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, dn_status_t status);
/** Return the loans of a stream, or of all streams (NULL), that the provider still reads. */
void dn_ofi_loan_return_all(dn_ofi_t *ofi, const dn_ofi_stream_t *stream, dn_status_t status);
/** Signal the loans that were returned; without the lock. @return how many. */
int dn_ofi_loan_signal(dn_ofi_t *ofi);
/** Free all loans without a signal. */
void dn_ofi_loan_close(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_queue.c: what waits on a stream */
/** @{ */
/** Does a message of so many bytes wait for other messages, to be sent together with them? */
int dn_ofi_gathers(const dn_ofi_t *ofi, dn_ofi_stream_t *stream, size_t len);
/** Append a message to what waits on a stream, its head filled in but for the number and the proof. */
void dn_ofi_append(dn_ofi_t *ofi, dn_ofi_stream_t *stream, dn_ofi_buffer_t *buffer, int gathers);
/** Queue a message that costs no credit: PROOF, LEAVE or CLOSE. */
dn_status_t dn_ofi_enqueue(dn_ofi_t *ofi, dn_ofi_stream_t *stream, enum dn_ofi_kind kind, const void *data,
                           size_t len);
/** Give a buffer to the provider. @return 0, or the provider's error. */
ssize_t dn_ofi_post(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, const dn_ofi_node_t *node);
/** Seal a message of an open stream, its head and bytes filled in. */
void dn_ofi_seal(const dn_ofi_t *ofi, const dn_ofi_stream_t *stream, dn_ofi_head_t *head);
/** End a stream, and suspect its peer: the provider has returned another error than "no room". */
void dn_ofi_broken(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Send messages that wait on a stream, as far as there is credit and the provider has room. A stream that greets says HELLO, if it is
 * time to. */
void dn_ofi_advance(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Send what was gathered. */
void dn_ofi_let_go(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_recv.c: messages that come */
/** @{ */
/** Handle messages that came in one buffer. The buffer is the callee's. */
void dn_ofi_arrived(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, size_t len);
/** Store the word of an AOTF. */
void dn_ofi_apply(dn_ofi_t *ofi, const dn_ofi_buffer_t *buffer);
/** Deliver a numbered message in its turn. Its sender has been found. */
void dn_ofi_sequence(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer);
/** Keep a message in the shortest buffer that holds it: the long ones are for receiving. */
dn_ofi_buffer_t *dn_ofi_shrink(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** Was this message sealed for one direction of a stream? */
int dn_ofi_opens(const dn_ofi_t *ofi, const dn_auth_way_t *way, dn_ofi_buffer_t *buffer);
/** Give a peer to the port. */
void dn_ofi_let_in(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_word.c: words about streams */
/** @{ */
/** Send a message outside of any order. If it needs a seal, the caller has sealed it. Aligned to 8. @return 0: the provider has no room. */
int dn_ofi_tell(dn_ofi_t *ofi, const dn_ofi_node_t *node, const void *message, size_t size);
/** Send a word outside of any order, in one direction of a stream. @return 0: the provider has no room. */
int dn_ofi_control(dn_ofi_t *ofi, const dn_ofi_node_t *node, enum dn_ofi_kind kind, uint64_t token,
                   const dn_auth_way_t *way, uint64_t value);
/** Ask the receiver of a stream what has come. Ask again after some time without an answer, since words can be lost. */
void dn_ofi_inquire(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Tell the sender how much has been taken, if it is enough to be worth a word. */
void dn_ofi_give_credit(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Send the words that this process owes to a peer's stream, now or when there is room. */
void dn_ofi_answer(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Handle a word about a stream of this process. The buffer is the caller's. */
void dn_ofi_word(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** Handle a word about a stream of its sender. The buffer is the caller's. */
void dn_ofi_asked(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** @} */

/** @name dn_ofi_progress.c: handlers and the turns of the threads that poll */
/** @{ */
int dn_ofi_progress(dn_iface_t *iface);
int dn_ofi_recv(dn_peer_base_t *peer, int max);
/** The next call of progress looks at the network, even if this device has no peer: the look of step S1 is not left out. @return 0. */
int dn_ofi_attend(dn_iface_t *iface);
/** A thread of the program sleeps now: the watcher reads, until a thread of the program takes a turn. */
void dn_ofi_hand_on(dn_iface_t *iface);
/** Look at the network and do what needs no handler. @return events. */
int dn_ofi_turn(dn_ofi_t *ofi);
/** Note that progress has to run handlers for a peer's messages. */
void dn_ofi_make_ready(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Take a peer out of the queue of peers whose handlers progress runs. */
void dn_ofi_unready(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_host.c: sockets and files in the kernel of this host */
/** @{ */
/** Have the kernel end all connections that this process made to an address, as if they had failed. The provider can still read what has
 * come, and then the end. Bytes that the provider has not sent yet are lost. Connections of other ports of this process to
 * that address end, too. Connections that the peer made stay. @return how many were ended; 0: the kernel has no such connection. */
int dn_ofi_cut(const dn_ofi_node_t *node);
/**
 * A file that can be read while sockets of the provider can be read. It is behind the file of a queue of completions (FI_WAIT_FD). The
 * queue's own file does not serve: before libfabric 1.20 it can be read for ever after the first completion, since fi_trywait() does not
 * reset it.
 *
 * @return -1: there is no such file, or the kernel does not tell. The file is the provider's, and is closed with the domain.
 */
int dn_ofi_network_file(int cq_fd);
/** @} */

/** @name dn_ofi_stream.c: streams to peers and from peers */
/** @{ */
/** Open a stream to a peer that has none. */
dn_status_t dn_ofi_open_stream(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Send no more on a peer's stream, if it has one, but LEAVE or CLOSE; what was accepted still goes out. */
void dn_ofi_leave(dn_ofi_t *ofi, dn_ofi_peer_t *peer, enum dn_ofi_kind kind);
/** Free a stream that is in no list any more, or NULL. */
void dn_ofi_free_stream(dn_ofi_stream_t *stream);
/** If a stream was left and has ended: return its loans, and free it once the provider has nothing of it. */
void dn_ofi_settle_stream(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Does a stream wait until an earlier stream to the same process has gone out? */
int dn_ofi_follows(const dn_ofi_t *ofi, const dn_ofi_stream_t *stream);
/** The stream of this process with this token, or NULL. */
dn_ofi_stream_t *dn_ofi_find_stream(const dn_ofi_t *ofi, uint64_t token);
/** The peer whose stream has this token, or NULL. */
dn_ofi_peer_t *dn_ofi_find_sender(const dn_ofi_t *ofi, uint64_t token);
/** Take the messages of an applicant's stream as a peer's from now on: those behind its PROOF. Messages of an earlier stream of the peer
 * may still wait for handlers. */
void dn_ofi_begin_rx(dn_ofi_t *ofi, dn_ofi_peer_t *peer, const dn_ofi_applicant_t *applicant);
/** End a peer's stream to this process, if there is one. */
void dn_ofi_end_rx(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_peer.c: peers come and go */
/** @{ */
dn_status_t dn_ofi_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                           dn_peer_base_t **peer_p);
void dn_ofi_disconnect(dn_peer_base_t *peer);
void dn_ofi_release(dn_peer_base_t *peer);
void dn_ofi_lost(dn_peer_base_t *peer);
dn_status_t dn_ofi_check(dn_peer_base_t *peer);
void dn_ofi_admitted(dn_iface_t *iface, const dn_pgid_t *pgid);
/** Tell the port of the peers that the watcher has met, where that is possible now. Needs the port's lock, too. */
void dn_ofi_meet(dn_ofi_t *ofi);
void dn_ofi_close_pidfd(dn_ofi_peer_t *peer);
/** Free a peer that is in no list, and what belongs to this process alone of it. */
void dn_ofi_free_copy(dn_ofi_peer_t *peer);
/** Make a peer of a process whose address is sound. */
dn_status_t dn_ofi_make_peer(dn_ofi_t *ofi, const dn_peer_base_t *id, const dn_ofi_where_t *where,
                             dn_ofi_peer_t **peer_p);
/** The peer of this nonce, or NULL. */
dn_ofi_peer_t *dn_ofi_find_peer(const dn_ofi_t *ofi, const uint64_t nonce[2]);
/** Has the address of a process possible values? */
int dn_ofi_is_sound(const dn_ofi_where_t *where);
/** Leave a peer, as dn_ofi_leave(), and give messages that were accepted for the peer some time to go out. */
void dn_ofi_depart(dn_ofi_t *ofi, dn_ofi_peer_t *peer, enum dn_ofi_kind kind);
/** Give up a peer that seems to live, but from which a PULL does not end: log it, tell the peer, and suspect the peer. */
void dn_ofi_give_up(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** A peer is about to be freed: no handler runs for it any more, though completions that are signalled meanwhile may call progress. */
void dn_ofi_part(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Forget the peers that have left. Without the device's lock. */
void dn_ofi_reap(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_greet.c: HELLO, CHALLENGE and PROOF */
/** @{ */
/** The side that a process has in a stream, as opener or as acceptor. */
void dn_ofi_side(const dn_ofi_where_t *where, uint32_t pid, dn_auth_side_t *side);
/** Say HELLO on a stream that is not open, if it is time to. */
void dn_ofi_greet(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** The same on all streams. */
void dn_ofi_greet_all(dn_ofi_t *ofi);
/** Handle a HELLO. The buffer is the caller's. */
void dn_ofi_hello(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** Handle a CHALLENGE. The buffer is the caller's. */
void dn_ofi_challenged(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** End a stream of this process that its receiver has refused. */
void dn_ofi_refused(dn_ofi_t *ofi, dn_ofi_stream_t *stream, uint64_t why);
/** The applicant of this token, or NULL. */
dn_ofi_applicant_t *dn_ofi_find_applicant(const dn_ofi_t *ofi, uint64_t token);
/** Handle a numbered message of an applicant. The buffer is the callee's. */
void dn_ofi_applied(dn_ofi_t *ofi, dn_ofi_applicant_t *applicant, dn_ofi_buffer_t *buffer);
/** Let in the applicants that have sent their PROOF, and had to wait. */
void dn_ofi_retry(dn_ofi_t *ofi);
/** Forget the applicants that have sent no PROOF for a long time; all: every applicant. */
void dn_ofi_expire(dn_ofi_t *ofi, int all);
/** @} */

/** @name dn_ofi_watch.c: work while the program computes, and peers that fall silent */
/** @{ */
/** Start the watcher: from now on there may be peers. */
void dn_ofi_watch_start(dn_ofi_t *ofi);
/** End the watcher: the port closes. */
void dn_ofi_watch_close(dn_ofi_t *ofi);
/** Close the descriptors of the watcher, which does not run. */
void dn_ofi_watch_free(dn_ofi_t *ofi);
/** Wait for a while until all messages have gone out. */
void dn_ofi_linger(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_rma.c: PUSH, PULL, segments */
/** @{ */
/** word[0]: the provider's key; word[1]: the number to add to an
 * offset in the segment, for the provider. */
#define DN_OFI_KEY DN_KEY_OFI

dn_status_t dn_ofi_push(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_ofi_pull(dn_peer_t *peer, const dn_xfer_t *xfer);
void dn_ofi_segment_register(dn_iface_t *iface, void *base, dn_key_t *key);
void dn_ofi_segment_unregister(dn_iface_t *iface, const dn_key_t *key);
/** Find a segment of this process: see dn_core_alone_t::find. */
int dn_ofi_segment_find(const dn_ofi_t *ofi, uint32_t sid, uint32_t generation, uint8_t **base_p,
                        uint64_t *len_p);
/** Take back every registration of segments and of operations: the endpoint
 * that they are bound to closes. */
void dn_ofi_rma_unregister(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_op.c: PUSH and PULL in flight */
/** @{ */
/** Hand the next part of an operation to the provider. @return 0, or the provider's error; after an error nothing has changed. */
ssize_t dn_ofi_issue(dn_ofi_t *ofi, dn_ofi_op_t *op);
/** Hand over as many parts as the provider takes. @return not 0: parts are left. */
int dn_ofi_op_advance(dn_ofi_t *ofi, dn_ofi_op_t *op);
/** Note that a part completed, or failed. */
void dn_ofi_part_done(dn_ofi_t *ofi, dn_ofi_part_t *part, int failed);
/** Unregister the local memory of an operation. */
void dn_ofi_op_unregister(dn_ofi_op_t *op);
/** Go on with operations that wait for room. @return not 0: some still wait.
 */
int dn_ofi_rma_advance(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Signal the operations that are done. Without the device's lock. @return how many. */
int dn_ofi_signal(dn_ofi_t *ofi);
/** Free an operation that is in no list. */
void dn_ofi_op_free(dn_ofi_op_t *op);
/** End the operations of a peer with DN_ERR_UNREACH, once the provider does not
 * write to their memory any more. If the provider does not let go of the memory,
 * the peer is given up, and its connections are ended; or else the endpoint for RMA
 * is closed. dn_ofi_signal() signals the operations. With !signal they are dropped:
 * this process is closing. */
void dn_ofi_rma_end(dn_ofi_t *ofi, dn_ofi_peer_t *peer, int signal);
/** @} */

#endif
