/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ofi_int.h
 * The ofi device: any network that libfabric has an RDM endpoint for. One
 * endpoint, completion queue and address vector a port; every message goes
 * through them.
 *
 * A sender opens a *stream* to a peer with a HELLO that says what process it is of and
 * names the stream by a token of its own. It says HELLO again until the peer
 * answers by a CHALLENGE; what is sent meanwhile waits with the sender, behind
 * the PROOF that the peer asks for (dn_auth.h, dn_ofi_greet.c). So a receiver
 * keeps nothing of processes that have not proved who they are. All messages of
 * the stream carry its token and a number. The receiver puts them in order by the number,
 * so a provider need not keep order (FI_ORDER_SAS). Numbers of messages and
 * counts of lines have 64 bits and never wrap: what is known of them may stand
 * still for any time, such as that of the last AOTF. AOTF is such a message,
 * too, stored by the target's progress: a provider's RMA write would promise
 * neither one store nor an order after messages.
 *
 * Credit: the receiver lets a stream have `credit_max` lines of 64 B in its memory;
 * beyond that the sender keeps as much again, then answers DN_ERR_AGAIN. A
 * stream ends with LEAVE, acknowledged by LEFT.
 *
 * PUSH and PULL are fi_writemsg with FI_DELIVERY_COMPLETE, and fi_readmsg, on
 * keys made by dn_ofi_segment_register(); what does not fit that returns
 * DN_ERR_UNSUPPORTED and is the core processor's, as are all atomic operations. What
 * they ask of the target's memory is done when the message is read (dn_core_alone()).
 *
 * The target takes no part: while its program computes, the watcher (dn_ofi_watch.c) reads what
 * comes, and runs no handler. While the program polls, the watcher leaves the network to it.
 *
 * Locks: ofi->lock guards everything here and serialises calls of libfabric. It
 * is a leaf: taken after the port's, and no handler, completion or
 * dn_port_peer_lost() is called under it. With a time limit it is taken in a
 * process of one thread, too, for there is the watcher's (dn_ofi_watch.c),
 * which never has the port's.
 */
#ifndef DN_OFI_INT_H
#define DN_OFI_INT_H

#include "dn_clock.h"
#include "dn_ofi_state.h"

/** Wake the watcher. */
void dn_ofi_watch_call(const dn_ofi_t *ofi);

static inline void dn_ofi_lock(dn_ofi_t *ofi)
{
    if (ofi->threads) {
        pthread_mutex_lock(&ofi->lock);
    }
}

/** Let go of the lock, and tell the watcher of what was gathered under it: it needs the lock. */
static inline void dn_ofi_unlock(dn_ofi_t *ofi)
{
    if (ofi->threads) {
        const int calls = ofi->watcher.calls;
        ofi->watcher.calls = 0;
        pthread_mutex_unlock(&ofi->lock);
        if (calls) {
            dn_ofi_watch_call(ofi);
        }
    }
}

/** Looks in vain behind the last message, of either direction, before calls are left out again. */
#define DN_OFI_LIVELY 256u

/** Something came or left: more may follow, or an answer. */
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

/** Turns between two looks at the clock for the watcher's sake. */
#define DN_OFI_LULL_TURNS 16u

/** Somebody else than the watcher reads. The watcher compares the number without the lock, and reads nothing else by it. */
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
/** libfabric, or NULL with what is wrong (dn_ofi_lib.c). */
const dn_ofi_lib_t *dn_ofi_lib_load(const char **wrong_p);
/** Choose a provider (dn_ofi_select.c). */
dn_status_t dn_ofi_select(dn_ofi_t *ofi, const dn_config_t *config, const char *argument);
/** Only with processes of this host? */
int dn_ofi_is_local(const struct fi_info *info);
/** Does it send by sockets of the kernel? */
int dn_ofi_has_sockets(const struct fi_info *info);
/** Close the endpoint, so that the provider lets go of all memory at once.
 * Every peer is suspected. */
void dn_ofi_break(dn_ofi_t *ofi);
/**
 * The endpoint by which RMA is started: one of its own, so that a key that the
 * target does not know ends what is in flight there, and no message. Where there
 * can be only one endpoint, it is that. NULL: it is closed.
 */
struct fid_ep *dn_ofi_rma_endpoint(dn_ofi_t *ofi);
/** Close it; the next operation opens another. */
void dn_ofi_rma_close(dn_ofi_t *ofi);
/** Register memory with the provider. NULL: it cannot be. */
struct fid_mr *dn_ofi_mr(dn_ofi_t *ofi, void *base, uint64_t len, uint64_t access);
/** The address of an endpoint's name, entered once and counted. NULL: the
 * provider does not take it. */
dn_ofi_node_t *dn_ofi_node(dn_ofi_t *ofi, const uint8_t *name, uint32_t len);
void dn_ofi_node_leave(dn_ofi_t *ofi, dn_ofi_node_t *node);
/** Keep receives posted. */
void dn_ofi_refill(dn_ofi_t *ofi);
/** Take what completed. @return events. */
int dn_ofi_poll(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_pool.c: buffers for messages */
/** @{ */
/** A buffer of at least so many bytes; NULL: no memory. */
dn_ofi_buffer_t *dn_ofi_buffer(dn_ofi_t *ofi, size_t bytes);
void dn_ofi_buffer_free(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** Have the provider let go of those of a pool. */
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
/** Do what a message asks of the core processor, and answer, if that needs no handler. The buffer stays the caller's; its `later` is set. @return
 * whether it is done. */
int dn_ofi_serve(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer);
/** Queue AOTF on a stream. DN_ERR_AGAIN: no room. */
dn_status_t dn_ofi_store(dn_ofi_t *ofi, dn_ofi_peer_t *peer, uint64_t off, uint64_t value, size_t size);
/** An operation found no room: now and then, look whether the peer lives.
 * DN_ERR_AGAIN or DN_ERR_UNREACH. */
dn_status_t dn_ofi_no_room(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Does RMA to this peer have to wait for messages that were sent before a
 * fence? */
int dn_ofi_is_fenced(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_loan.c: memory that senders lend */
/** @{ */
/** What follows a buffer is lent until it has gone out. @return 0: memory ran out. */
int dn_ofi_loan_make(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, dn_comp_t *comp);
/** The provider did not take the buffer. */
void dn_ofi_loan_undo(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** The provider reads it no more, or nobody wants what it reads. */
void dn_ofi_loan_return(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, dn_status_t status);
/** Those of a stream, or of all (NULL), go to nobody. */
void dn_ofi_loan_return_all(dn_ofi_t *ofi, const dn_ofi_stream_t *stream);
/** Signal those that were returned; without the lock. @return how many. */
int dn_ofi_loan_signal(dn_ofi_t *ofi);
/** Free all; nobody is told. */
void dn_ofi_loan_close(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_queue.c: what waits on a stream */
/** @{ */
/** Does a message of so many bytes wait for others, to be sent with them? */
int dn_ofi_gathers(const dn_ofi_t *ofi, dn_ofi_stream_t *stream, size_t len);
/** Append a message to what waits on a stream, its head filled in but for the number and the proof. */
void dn_ofi_append(dn_ofi_t *ofi, dn_ofi_stream_t *stream, dn_ofi_buffer_t *buffer, int gathers);
/** Queue a message without regard to credit: HELLO or LEAVE. */
dn_status_t dn_ofi_enqueue(dn_ofi_t *ofi, dn_ofi_stream_t *stream, enum dn_ofi_kind kind, const void *data,
                           size_t len);
/** Give a buffer to the provider. 0, or what it said. */
ssize_t dn_ofi_post(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, const dn_ofi_node_t *node);
/** Seal a message of an open stream, its head and bytes filled in. */
void dn_ofi_seal(const dn_ofi_t *ofi, const dn_ofi_stream_t *stream, dn_ofi_head_t *head);
/** The provider said something else than that it has no room. */
void dn_ofi_broken(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Send what waits on a stream, as far as credit and the provider go. */
void dn_ofi_advance(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Send what was gathered. */
void dn_ofi_let_go(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_recv.c: what messages that come mean */
/** @{ */
/** A message came. The buffer is the callee's. */
void dn_ofi_arrived(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, size_t len);
/** Store what an AOTF says. */
void dn_ofi_apply(dn_ofi_t *ofi, const dn_ofi_buffer_t *buffer);
/** A numbered message, whose sender has been found: deliver it in its turn. */
void dn_ofi_sequence(dn_ofi_t *ofi, dn_ofi_peer_t *peer, dn_ofi_buffer_t *buffer);
/** Keep a message in the shortest buffer that holds it: the long ones are for receiving. */
dn_ofi_buffer_t *dn_ofi_shrink(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** Was this message sealed for one direction of a stream? */
int dn_ofi_opens(const dn_ofi_t *ofi, const dn_auth_way_t *way, dn_ofi_buffer_t *buffer);
/** A peer is the port's from now on. */
void dn_ofi_let_in(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_word.c: what is said of streams */
/** @{ */
/** A message outside of any order, sealed already if it is to be; aligned to 8. 0: the provider has no room. */
int dn_ofi_tell(dn_ofi_t *ofi, const dn_ofi_node_t *node, const void *message, size_t size);
/** A word outside of any order, in one direction of a stream. 0: the provider has no room. */
int dn_ofi_control(dn_ofi_t *ofi, const dn_ofi_node_t *node, enum dn_ofi_kind kind, uint64_t token,
                   const dn_auth_way_t *way, uint64_t value);
/** Ask what of a stream has come; and once more after some time without an answer, since words can be lost. */
void dn_ofi_inquire(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Tell the sender how much has been taken, when that is worth a word. */
void dn_ofi_give_credit(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Send the words that its stream is owed, now or when there is room. */
void dn_ofi_answer(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** A word about a stream of ours came. The buffer is the caller's. */
void dn_ofi_word(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** A word about a stream of its sender's came. */
void dn_ofi_asked(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** @} */

/** @name dn_ofi_progress.c: handlers and the turns of the threads that poll */
/** @{ */
int dn_ofi_progress(dn_iface_t *iface);
int dn_ofi_recv(dn_peer_base_t *peer, int max);
/** Look at the network and do what needs no handler. @return events. */
int dn_ofi_turn(dn_ofi_t *ofi);
/** Have its handlers run in progress. */
void dn_ofi_make_ready(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Have them run no more until then. */
void dn_ofi_unready(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** @} */

/** @name dn_ofi_host.c: what the kernel of this host has */
/** @{ */
/** Have the kernel end all connections that were made from this process to an address, as if they had failed: what has
 * come can be read, and then their end; what the provider has not sent yet is lost. Those of other ports of this process to
 * that address are among them. Connections that the peer made stay. @return how many were ended, 0: none is the kernel's. */
int dn_ofi_cut(const dn_ofi_node_t *node);
/**
 * The file behind that of a queue of completions (FI_WAIT_FD) which can be read while sockets of the provider can. That of the queue can be
 * read after the first completion for ever, until libfabric 1.20: fi_trywait() takes back nothing there.
 *
 * @return -1: there is none, or the kernel does not tell. It is the provider's, and goes with the domain.
 */
int dn_ofi_network_file(int cq_fd);
/** @} */

/** @name dn_ofi_stream.c: streams, ours to peers and theirs to us */
/** @{ */
/** Open a stream to a peer that has none. */
dn_status_t dn_ofi_open_stream(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Send no more on a peer's stream, if it has one, but LEAVE or CLOSE; what was accepted still goes out. */
void dn_ofi_leave(dn_ofi_t *ofi, dn_ofi_peer_t *peer, enum dn_ofi_kind kind);
/** Free a stream that is in no list any more, or NULL. */
void dn_ofi_free_stream(dn_ofi_stream_t *stream);
/** Free a stream if nothing of it is left. */
void dn_ofi_settle_stream(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** Does it wait until another to the same process has gone out? */
int dn_ofi_follows(const dn_ofi_t *ofi, const dn_ofi_stream_t *stream);
/** Our stream of this token, or NULL. */
dn_ofi_stream_t *dn_ofi_find_stream(const dn_ofi_t *ofi, uint64_t token);
/** The sender of this token, or NULL. */
dn_ofi_peer_t *dn_ofi_find_sender(const dn_ofi_t *ofi, uint64_t token);
/** Take a peer's messages of an applicant's stream from now on, those behind its PROOF; those of a stream before may still wait for
 * handlers. */
void dn_ofi_begin_rx(dn_ofi_t *ofi, dn_ofi_peer_t *peer, const dn_ofi_applicant_t *applicant);
/** Its stream to us, if it has one, is over. */
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
/** Have the port know the peers that may be known to it. Needs the port's lock, too. */
void dn_ofi_meet(dn_ofi_t *ofi);
/** Make a peer of a process whose address is sound. */
dn_status_t dn_ofi_make_peer(dn_ofi_t *ofi, const dn_peer_base_t *id, const dn_ofi_where_t *where,
                             dn_ofi_peer_t **peer_p);
/** The peer of this nonce, or NULL. */
dn_ofi_peer_t *dn_ofi_find_peer(const dn_ofi_t *ofi, const uint64_t nonce[2]);
/** Is what a process says of itself possible? */
int dn_ofi_is_sound(const dn_ofi_where_t *where);
/** Leave a peer, as dn_ofi_leave(), and give what was accepted for it some time to go out. */
void dn_ofi_depart(dn_ofi_t *ofi, dn_ofi_peer_t *peer, enum dn_ofi_kind kind);
/** It lives, for all that is known, but a PULL from it does not end: say so here and there, and suspect it. */
void dn_ofi_give_up(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Forget the peers that have left. Without the device's lock. */
void dn_ofi_reap(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_greet.c: HELLO, CHALLENGE and PROOF */
/** @{ */
/** Our side of a stream: that of the opener, or the acceptor's. */
void dn_ofi_side(const dn_ofi_where_t *where, uint32_t pid, dn_auth_side_t *side);
/** Say HELLO on a stream that is not open, if it is time to. */
void dn_ofi_greet(dn_ofi_t *ofi, dn_ofi_stream_t *stream);
/** The same on all. */
void dn_ofi_greet_all(dn_ofi_t *ofi);
/** HELLO came. The buffer is the caller's. */
void dn_ofi_hello(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** CHALLENGE came. The buffer is the caller's. */
void dn_ofi_challenged(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer);
/** A stream of ours is not taken. */
void dn_ofi_refused(dn_ofi_t *ofi, dn_ofi_stream_t *stream, uint64_t why);
/** The applicant of this token, or NULL. */
dn_ofi_applicant_t *dn_ofi_find_applicant(const dn_ofi_t *ofi, uint64_t token);
/** A numbered message of an applicant came. The buffer is the callee's. */
void dn_ofi_applied(dn_ofi_t *ofi, dn_ofi_applicant_t *applicant, dn_ofi_buffer_t *buffer);
/** Let in the applicants that have proved themselves, and had to wait. */
void dn_ofi_retry(dn_ofi_t *ofi);
/** Forget the applicants that have not proved themselves for a long time; all: every applicant. */
void dn_ofi_expire(dn_ofi_t *ofi, int all);
/** @} */

/** @name dn_ofi_watch.c: what is done while the program computes, and peers that fall silent */
/** @{ */
/** There are peers from now on, or may be. */
void dn_ofi_watch_start(dn_ofi_t *ofi);
/** The port closes. */
void dn_ofi_watch_close(dn_ofi_t *ofi);
/** Wait for what still has to go out, for a while. */
void dn_ofi_linger(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_rma.c: PUSH, PULL, segments */
/** @{ */
/** word[0]: the provider's key; word[1]: what the provider wants added to a
 * place in the segment. */
#define DN_OFI_KEY DN_KEY_OFI

dn_status_t dn_ofi_push(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_ofi_pull(dn_peer_t *peer, const dn_xfer_t *xfer);
void dn_ofi_segment_register(dn_iface_t *iface, void *base, dn_key_t *key);
void dn_ofi_segment_unregister(dn_iface_t *iface, const dn_key_t *key);
/** Where a segment of this process lies: dn_core_alone_t::find. */
int dn_ofi_segment_find(const dn_ofi_t *ofi, uint32_t sid, uint32_t generation, uint8_t **base_p,
                        uint64_t *len_p);
/** Take back every registration of segments and of operations: the endpoint
 * that they are bound to closes. */
void dn_ofi_rma_unregister(dn_ofi_t *ofi);
/** @} */

/** @name dn_ofi_op.c: PUSH and PULL in flight */
/** @{ */
/** Hand the next part of an operation to the provider. 0, or what it said; then nothing has changed. */
ssize_t dn_ofi_issue(dn_ofi_t *ofi, dn_ofi_op_t *op);
/** Hand over what the provider takes. @return whether some is left. */
int dn_ofi_op_advance(dn_ofi_t *ofi, dn_ofi_op_t *op);
/** A part completed, or failed. */
void dn_ofi_part_done(dn_ofi_t *ofi, dn_ofi_part_t *part, int failed);
/** Take back the registration of its local memory. */
void dn_ofi_op_unregister(dn_ofi_op_t *op);
/** Go on with operations that waited for room. @return whether some still do.
 */
int dn_ofi_rma_advance(dn_ofi_t *ofi, dn_ofi_peer_t *peer);
/** Signal what is done. Without the device's lock. @return how many. */
int dn_ofi_signal(dn_ofi_t *ofi);
/** Free an operation that is off every list. */
void dn_ofi_op_free(dn_ofi_op_t *op);
/** End the operations of a peer with DN_ERR_UNREACH, once the provider writes
 * no more to their memory: when it does not let go of it, the peer is given up,
 * and its connections are ended, or else the endpoint for RMA is closed. They
 * are signalled by dn_ofi_signal(), or dropped when !signal: this process is
 * closing. */
void dn_ofi_rma_end(dn_ofi_t *ofi, dn_ofi_peer_t *peer, int signal);
/** @} */

#endif
