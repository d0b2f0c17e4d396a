/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dimmnet.h
 * The contract of libdimmnet: send with CPU stores, receive by polling memory.
 *
 * A process opens a *port*. It learns the *address* of the port, and carries the address to other processes by any
 * channel that the processes have (PMIx, a file, a pipe). It *connects* to the addresses of the others. A connected
 * *peer* offers the primitives of DIMMnet-1 and Martini: AOTF (one store into the peer's polled memory), BOTF (a
 * message built in a window), PUSH and PULL (remote write and read, with blocks or programs on both sides), and
 * atomics on remote words. The list of dn_open() decides which device carries them. The calls are the same for all
 * devices.
 *
 * Errors: every call that can fail returns dn_status_t; outputs are set only on DN_OK. DN_ERR_AGAIN means that nothing
 * happened and that dn_progress() makes room. What is wrong with settings, with the machine, or with the bytes of a peer
 * is logged once (dn_log_set()) by the code that found it. Other errors are answers, and are not logged: the peer is
 * gone, the arguments of an operation are wrong or its key is stale, a buffer is too small, there are no more devices, a
 * device cannot do this. Where malloc() fails, most calls log nothing.
 *
 * Threads: with dn_job_t::threads set, several threads may make calls at once. But dn_close(), dn_disconnect() and
 * dn_segment_free() are called only after every other use of their object is over. Where dn_job_t::threads is 0, one
 * thread at a time may use a port, its peers and its segments.
 *
 * fork(): a port belongs to the process that has opened it. A child has a copy of the port, of which dn_close() is the only call that the
 * child may make: it frees memory and descriptors, and neither the parent nor a peer notices. What libfabric holds, and what another
 * thread was changing at the time of fork(), stays until the child ends, or calls exec(). The child may open ports of its own.
 *
 * Ordering: messages of one sender arrive in the order of their kicks. Nothing else is ordered until
 * dn_fence(). Sources: DIMMnet-1 AOTF paper sections 2 to 5, Martini paper sections 2 to 6.
 */
#ifndef DIMMNET_H
#define DIMMNET_H

#include "dn_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @name Port */
/** @{ */

/** Set every field of @p config to its default. */
DN_API void dn_config_init(dn_config_t *config);

/**
 * Set one field of @p config from text, as a user writes it (dn_params.def has the names).
 *
 * @param[in] text  Where the field is a string, @p text is lent as long as @p config is used.
 *
 * @retval DN_ERR_PARAM  there is no such field, or the value is not accepted: the log line names the accepted ones.
 *                       Nothing is set.
 *
 * Pinned by test/unit/dn_param_is_what_its_row_says.c.
 */
DN_API dn_status_t dn_config_set(dn_config_t *config, const char *name, const char *text);

/**
 * Open a port on a list of devices.
 *
 * @param[in]  spec    Device names separated by commas, such as "shm". A peer is reached by the first device of the
 *                     list that can reach the peer.
 * @param[in]  job     The group and PID of this process. Copied.
 * @param[in]  config  Settings, NULL: defaults. Copied.
 * @param[out] port_p  The port; the caller's until dn_close().
 *
 * @retval DN_ERR_PARAM        a device is unknown, its module cannot be loaded, a device is listed twice, or a setting is
 *                             out of its range. The log line says which, and what is accepted: correct it.
 * @retval DN_ERR_NOMEM        no memory or file space: free some, or choose another folder.
 * @retval DN_ERR_ACCESS       the kernel or folder refuses shared memory: see the log line.
 * @retval DN_ERR_UNSUPPORTED  no device of the list works on this machine.
 *
 * Pinned by test/device/conformance.c.
 */
DN_API dn_status_t dn_open(const char *spec, const dn_job_t *job, const dn_config_t *config,
                           dn_port_t **port_p);

/**
 * Open one more device of an open port, behind the devices of dn_open()'s list. Connected peers keep their device.
 * dn_address() names the new device from now on. Peers that come by the new device reach older segments by messages.
 *
 * @param[in] spec  One device, written as in dn_open()'s list.
 *
 * @retval DN_ERR_PARAM        there is no such device, or the device is open already: the log line says which.
 * @retval DN_ERR_UNSUPPORTED  the device does not work on this machine, or cannot be opened late. The reason is logged as
 *                             an error. (dn_open() does not log it as an error, as it goes on with other devices.)
 *
 * Pinned by test/device/late_device.c.
 */
DN_API dn_status_t dn_device_open(dn_port_t *port, const char *spec);

/**
 * Close a port: disconnect its peers, free its segments and leave no file behind. Peers that still send to the port
 * get DN_ERR_UNREACH. Operations in flight are dropped without a completion. Where the process of a peer copies a
 * share of such an operation (dn_pull(): sharing), dn_close() waits for the end of the copy, at most 2 s for all
 * peers together. Functions of dn_lost_set() may be called from inside of dn_close().
 */
DN_API void dn_close(dn_port_t *port);

/**
 * Admit another process group (an entry of Martini's PGIDTBL): its processes may become peers. A port talks to its
 * own group from the start. Messages of a group that is not admitted stay in their ring, or with their sender, until
 * the group is admitted.
 *
 * @retval DN_ERR_NOMEM  memory ran out.
 */
DN_API dn_status_t dn_group_admit(dn_port_t *port, const dn_pgid_t *pgid);

/**
 * A word that changes when a process has greeted over a network whose group is not admitted. The process has not
 * proved who it is. So the caller learns by a channel that it trusts which groups to expect, and admits those. The
 * process greets again.
 *
 * Threads: any thread may read the word at any time, by dn_load_relaxed() or the like. The word lives as long as the
 *          port.
 */
DN_API const uint32_t *dn_strangers(const dn_port_t *port);

/**
 * The bytes by which others connect to this port: version, PGID, PID, host, devices.
 *
 * @param[in,out] len  In: size of @p buf in bytes. Out: bytes used; with DN_ERR_RANGE, bytes needed.
 *
 * @retval DN_ERR_RANGE  @p buf is too small: retry with *len bytes (at most DN_ADDRESS_MAX).
 */
DN_API dn_status_t dn_address(const dn_port_t *port, void *buf, size_t *len);

/** An address never needs more bytes than this. */
#define DN_ADDRESS_MAX 2048

/** The PGID of the group that has the key @p key. The addresses of the group's processes hold this PGID.
 * @retval DN_ERR_ACCESS  libsodium does not start: allow the system call getrandom in the sandbox. */
DN_API dn_status_t dn_pgid(const dn_group_key_t *key, dn_pgid_t *pgid_p);

/** The PGID inside an address. The caller makes sure that the address came by a channel that it trusts, then calls
 * dn_group_admit().
 * @retval DN_ERR_PROTO    not an address.
 * @retval DN_ERR_VERSION  an address of another version of libdimmnet. */
DN_API dn_status_t dn_address_pgid(const void *address, size_t len, dn_pgid_t *pgid_p);

/** Read the counters of a port (a sum over its devices and peers). */
DN_API void dn_counters(const dn_port_t *port, dn_counters_t *counters);

/** Writes an error for the user. @param[in] sentence  One sentence, without a newline; lent for the call. */
typedef void (*dn_log_fn_t)(const char *sentence, void *arg);
/** Set the function that writes errors, for the whole process. NULL: errors go to stderr, as at first. */
DN_API void dn_log_set(dn_log_fn_t fn, void *arg);

/** Set the function that writes answers which are not errors, for the whole process. Such answers are: why dn_open()
 * passes over a device, why dn_connect() does not reach a peer by a device, and why dn_page_map() (dn_page.h) does not
 * detect accesses in its first way. NULL: such answers are not written, as at first. */
DN_API void dn_log_answers_set(dn_log_fn_t fn, void *arg);

/** The name of the i-th device, as dn_open() takes it: first the devices of this build, then modules (dn_device.h).
 * This call loads no module. NULL: there are no more devices. */
DN_API const char *dn_device_name(size_t i);
/** Is there a device of this name, built in or as a module? This call loads no module. */
DN_API int dn_device_known(const char *name);

/** The i-th open device of a port, in the order of dn_open()'s list.
 * @retval DN_ERR_RANGE  there are no more. */
DN_API dn_status_t dn_device_attr(const dn_port_t *port, size_t i, dn_device_attr_t *attr);

/** A few words that describe a status; never NULL. */
DN_API const char *dn_strerror(dn_status_t status);

/** The version of the library that runs, such as "0.2.0". A program may have been built for another version. */
DN_API const char *dn_version(void);
/** @} */

/** @name Peers */
/** @{ */

/**
 * Connect to a process by its address, by the first device of the list that reaches the process. A second call for
 * the same process gives the same peer, which counts its connections. A process may connect to itself.
 *
 * @retval DN_ERR_PROTO    @p address is not an address, or the peer's memory is malformed. The process does not use
 *                         libdimmnet: give up on it.
 * @retval DN_ERR_VERSION  the peer runs another version of libdimmnet: install the same one.
 * @retval DN_ERR_PARAM    the peer counts from another dn_config_t::first: set the same value in both processes.
 * @retval DN_ERR_ACCESS   the process belongs to another process group or user: dn_group_admit() the group, or give up.
 * @retval DN_ERR_UNREACH  the process is gone, or the devices that lead to its host do not reach it: use another
 *                         transport. Not logged: this is an answer, not a failure.
 * @retval DN_ERR_UNSUPPORTED  the process is on another host or in another name space, and no device that both
 *                         processes have open leads there, whether the process lives or not. Open a device that does
 *                         (dn_device_open()), or use another transport. Not logged.
 * @retval DN_ERR_NOMEM    the peer has no slot left (dn_config_t::max_peers), or memory ran out. Later devices of the
 *                         list are not tried, as the peer may connect to this process by the present device: try
 *                         again, or use another transport.
 */
DN_API dn_status_t dn_connect(dn_port_t *port, const void *address, size_t len, dn_peer_t **peer_p);

/**
 * Undo one dn_connect(). When the last dn_connect() is undone, the caller must not use @p peer any more. Messages
 * that were kicked before still arrive. Where the peer is lost, or has never sent, this call waits as dn_close()
 * does. Operations in flight are signalled, from inside of this call or later. Operations of the peer towards this
 * process go on: where messages carry them, this process answers the messages from dn_progress().
 */
DN_API void dn_disconnect(dn_peer_t *peer);

/** Limits of a peer. */
DN_API void dn_peer_attr(const dn_peer_t *peer, dn_peer_attr_t *attr);

/** Keep a pointer with the peer, for the user of a channel. A peer that sends first exists before the caller connects
 * to the peer. */
DN_API void dn_peer_set_user(dn_peer_t *peer, unsigned channel, void *user);
/** The pointer that dn_peer_set_user() has kept. NULL: none yet, or there is no such channel. */
static inline void *dn_peer_user(const dn_peer_t *peer, unsigned channel);

/** DN_OK while the peer's process lives, else DN_ERR_UNREACH. A system call: not for a hot path. Where the process has ended, its last
 * messages are handled, and functions of dn_lost_set() are called, from inside of this call. */
DN_API dn_status_t dn_peer_check(dn_peer_t *peer);

/** A number that changes when a piece of a transfer with the peer has moved, whichever of the two has started the transfer: a caller that
 * waits for a long transfer sees that the transfer goes on. Wraps. What the peer reads or writes in memory of this process without this
 * process may make no change: copies of the kernel, and RMA of a network's library. Any thread may call. */
DN_API uint32_t dn_peer_moves(const dn_peer_t *peer);

/** Is called for a peer that is lost: see dn_lost_set(). */
typedef void (*dn_lost_fn_t)(dn_peer_t *peer, void *arg);

/**
 * Set the function that is called, for a channel, when a peer is lost. A peer is lost when its process has ended or
 * has closed its port, when the peer was silent for dn_config_t::timeout_s, or when this process has cut the peer off
 * for malformed or illegal bytes. Where there is no such function, only an operation towards the peer tells that the peer is
 * lost, and a caller that waits for messages of the peer waits for ever.
 *
 * @param[in] channel  DN_CHAN_BTL .. DN_CHAN_MAX - 1.
 * @param[in] fn       Called once for each lost peer, also for a peer that nobody has connected to. NULL: no function
 *                     is called from now on.
 *
 * Completion: fn is called from inside of dn_progress(), dn_recv() or dn_peer_check(), after the peer's transfers have
 *             been signalled. But transfers of which the peer's process still copies a share (dn_pull(): sharing) are
 *             signalled up to 2 s later: their memory and their dn_comp_t have to stay until then.
 *             A device looks after its peers while the caller polls. The end of a process of this host is told within
 *             half a second, and 2 ms more for each peer on this host. The silence of a process of another host is
 *             told after timeout_s. The close of a port in good order is told when this process sends something to
 *             the port, or calls dn_peer_check(). That message may still get DN_OK, and is dropped. A message that came
 *             before the close tells nothing, whether the port has read it or not; nor does what dn_aotf() stores
 *             before this process has found the port closed.
 * Ordering:   messages that a process of this host has sent before it ended or closed its port are handled before fn is
 *             called, where their channel has a handler, and no message without one is before them. Those of other
 *             hosts may be handled after it. A peer that disconnects is not lost while its port stays open. Whether a
 *             peer whose port has closed left in good order, only the users of the channel can tell.
 * Ownership:  a connected peer stays until dn_disconnect(). A peer that nobody has connected to is lent for the call:
 *             it is freed some time after it was lost, or has closed its port. Before it is freed, fn is called for
 *             each channel that still keeps a pointer with the peer (dn_peer_set_user()); dn_close() frees such a peer,
 *             too, and then calls fn from inside of dn_close().
 * Threads:    the port's lock is held; fn must not wait, connect or disconnect.
 *
 * @retval DN_ERR_PARAM  the channel is reserved or out of range.
 *
 * Pinned by test/device/conf_death.c and test/cluster/host_cut_off_ends_the_job.
 */
DN_API dn_status_t dn_lost_set(dn_port_t *port, unsigned channel, dn_lost_fn_t fn, void *arg);
/** @} */

/** @name LLCM and AOTF (AOTF paper sections 2 and 3) */
/** @{ */

/**
 * Take a piece of this process' LLCM, zeroed: memory that peers write by AOTF and that the owner polls.
 *
 * @param[in]  len    Bytes, rounded up to a multiple of 64.
 * @param[out] off_p  The offset of the piece, for peers. Aligned to 64.
 * @param[out] mem_p  The address of the piece in this process. Poll the piece with acquire loads.
 *
 * @retval DN_ERR_NOMEM  no such piece is free, or @p len is 0: raise dn_config_t::llcm_bytes.
 */
DN_API dn_status_t dn_llcm_alloc(dn_port_t *port, size_t len, uint64_t *off_p, void **mem_p);
/** Give a piece back: the offset and length of its dn_llcm_alloc(). */
DN_API void dn_llcm_free(dn_port_t *port, uint64_t off, size_t len);
/** Bytes of all pieces that were taken and not given back. */
DN_API size_t dn_llcm_taken(dn_port_t *port);

/**
 * AOTF: put 1 to 8 bytes into a peer's LLCM, in one store when naturally aligned.
 *
 * @param[in] off    Offset in the peer's LLCM.
 * @param[in] value  The bytes, in the machine's order, from the low end.
 * @param[in] size   1 to 8 bytes. The store is atomic when @p size is 1, 2, 4 or 8 and @p off is a multiple of @p size.
 *
 * Completion: DN_OK: the value is on its way. Where this process maps the peer's LLCM, the value becomes visible
 *             without further calls. Elsewhere it becomes visible while this process calls dn_progress(); with some
 *             devices the peer has to call dn_progress(), too (doc/cluster.md).
 * Ordering:   after the messages, PUSHes and AOTFs to the same peer that an earlier dn_fence() covers.
 *
 * @retval DN_ERR_AGAIN    no credit: progress, retry.
 * @retval DN_ERR_RANGE    outside the peer's LLCM.
 * @retval DN_ERR_UNREACH  the peer is gone.
 */
static inline dn_status_t dn_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size);

/** Bytes of data beside the flag of a line. */
#define DN_AOTF_LINE_MAX 56

/**
 * Put a line into a peer's LLCM: data, and a flag in the line's last word. The flag becomes visible after the data.
 * The owner polls the flag and finds the data in the same line, so that flag and data together cost the transfer of
 * one line between caches (BOTF of one line into LLCM).
 *
 * @param[in] off   Offset of the line in the peer's LLCM, a multiple of 64.
 * @param[in] data  Goes to the start of the line. Bytes between the end of the data and the flag stay as they were.
 * @param[in] len   0 to DN_AOTF_LINE_MAX bytes.
 * @param[in] flag  The line's last word, 8 bytes at offset DN_AOTF_LINE_MAX; in one store. The owner reads the flag by
 *                  an acquire load, then the data.
 *
 * Completion: DN_OK: @p data may be reused. The line becomes visible as the value of dn_aotf() does.
 * Ordering:   the line becomes visible after the lines and AOTFs that the same caller has put into this LLCM before.
 *             Towards messages and PUSHes the order is that of dn_aotf().
 *
 * @retval DN_ERR_AGAIN    no credit: progress, retry. Not logged.
 * @retval DN_ERR_RANGE    outside the peer's LLCM, not at a line's start, or too long.
 * @retval DN_ERR_UNREACH  the peer is gone.
 *
 * Pinned by test/device/conf_tree.c.
 */
static inline dn_status_t dn_aotf_line(dn_peer_t *peer, uint64_t off, const void *data, size_t len,
                                       uint64_t flag);
/** @} */

/** @name BOTF: messages (AOTF paper section 2.5) */
/** @{ */

/**
 * Set the function that receives the messages of a channel. Messages that came before the handler was set stay in
 * their ring, and hold back the later messages of the same sender, until dn_close() at the latest. That a sender is
 * lost is told without them.
 * @retval DN_ERR_PARAM  the channel is reserved, out of range, or has another handler.
 */
DN_API dn_status_t dn_handler_set(dn_port_t *port, unsigned channel, dn_handler_fn_t fn, void *arg);
/** Take the handler of a channel away. Later messages of the channel are held back. */
DN_API void dn_handler_clear(dn_port_t *port, unsigned channel);

/**
 * Send a message: head then body, copied before return (a window reserved, filled and kicked at once).
 *
 * @param[in] channel   DN_CHAN_BTL .. DN_CHAN_MAX - 1.
 * @param[in] tag       0..255, given to the handler.
 * @param[in] head_len  Bytes of @p head, which may be NULL when it is 0.
 * @param[in] body_len  Bytes of @p body, which may be NULL when it is 0. @p head_len + @p body_len is at most
 *                      dn_peer_attr_t::botf_max.
 *
 * Completion: DN_OK: buffers may be reused, the message arrives when the peer progresses.
 * Ordering:   in order with other messages to this peer.
 *
 * @retval DN_ERR_AGAIN    no credit: dn_progress(), retry. Not logged.
 * @retval DN_ERR_RANGE    longer than botf_max: send it in parts, or PUSH it.
 * @retval DN_ERR_UNREACH  the peer is gone: dn_disconnect().
 */
static inline dn_status_t dn_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                                  size_t head_len, const void *body, size_t body_len);

/**
 * Send a message as dn_botf() does. But the body is lent to the library until it has left, and is not copied before
 * the return. This is faster for long bodies, where dn_botf() of the device would copy the body.
 *
 * @param[in] comp  Signalled when @p body is the caller's again: with DN_OK, or with DN_ERR_UNREACH when the peer is
 *                  lost. In the second case the network's library may still read the memory, but no process gets the
 *                  bytes that it reads.
 *
 * @retval DN_OK               sent: the body was copied after all; @p comp is never signalled.
 * @retval DN_INPROGRESS       sent: the body is lent until @p comp is signalled.
 * @retval DN_ERR_UNSUPPORTED  nothing was sent, and @p comp is never signalled: this device does not lend, or cannot
 *                             now. Use dn_botf().
 * Others as dn_botf(). Pinned by test/device/ofi_loans.c.
 */
static inline dn_status_t dn_botf_lend(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                                       size_t head_len, const void *body, size_t body_len, dn_comp_t *comp);

/**
 * Reserve a window of @p len bytes at the peer, to build a message in place. A thread has at most one window of a peer
 * at a time. Between dn_botf_reserve() and dn_botf_kick() the thread calls no other function on this peer, and nothing
 * can fail. Errors as dn_botf().
 */
static inline dn_status_t dn_botf_reserve(dn_peer_t *peer, size_t len, dn_window_t *window);
/** Publish the first @p len bytes of a window (0 .. window->len) as one message. Cannot fail. */
static inline void dn_botf_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag,
                                size_t len);

/**
 * Receive the messages of one peer, without a look at the other peers: for a caller that knows its source.
 * @return messages handled, at most @p max.
 */
DN_API int dn_recv(dn_peer_t *src, int max);

/**
 * Tell the device, from inside of a handler, that this process needs no further message of the peer now. Messages that have
 * come already stay where they lie until the next dn_progress() or dn_recv(). A caller uses this where it would have to copy
 * the next message away, but is about to say where the bytes are to go.
 *
 * A hint: a device may hand on more messages. Other peers are not affected. Any thread may call this.
 *
 * Pinned by test/device/conf_message.c and test/unit/dn_tag_leaves_messages_where_they_lie.c.
 */
static inline void dn_recv_enough(dn_peer_t *src);

/**
 * Look at the next message of one peer where the message lies, for a caller that waits for this message only. This
 * takes half of the instructions of a handler's call. The message stays the next one until dn_take(). Between DN_OK
 * and dn_take() the caller calls no function of this port but dn_peek(). A caller that gets no DN_OK for a long time
 * calls dn_progress() now and then.
 *
 * @param[in] looks  Most looks of one call, back to back; at least 1.
 *
 * @retval DN_OK               the next message is on @p channel, and @p message describes it.
 * @retval DN_ERR_AGAIN        no message has come from this peer. Not logged.
 * @retval DN_ERR_UNSUPPORTED  the next message, on this or another channel, has to be received by dn_recv(). This is the
 *                             only answer where several threads use the port. Not logged.
 */
static inline dn_status_t dn_peek(dn_peer_t *src, unsigned channel, unsigned looks, dn_message_t *message);
/** Be done with the message that dn_peek() has just shown. Its bytes are the sender's again. */
static inline void dn_take(dn_peer_t *src, const dn_message_t *message);

/**
 * Receive from all peers, run core-processor work and signal completions.
 * @return messages and completions handled; 0: there was nothing to do.
 */
DN_API int dn_progress(dn_port_t *port);

/**
 * Does this process share its cores with its peers? Not 0: this process, and those peers on this host that may run on its
 * processing units only, are more processes than these units. A caller that spins then yields after a few idle polls.
 */
DN_API int dn_oversubscribed(const dn_port_t *port);

/** dn_config_t::first of this port. A caller with counters of its own starts them at this value, too. */
DN_API uint32_t dn_first(const dn_port_t *port);

/** The word by which peers, or threads of devices in this process, wake this process while it sleeps in dn_wait() (dn_wait.h). NULL: nobody
 * wakes it, and it sleeps by the clock. */
DN_API uint32_t *dn_bell(const dn_port_t *port);

/**
 * Wake a peer that sleeps in dn_wait(). A caller uses this when it has stored something into the peer's memory by its
 * own instructions: calls of this library wake the peer themselves. While the peer does not sleep, the call costs a
 * load; where the peer cannot be woken, it costs nothing. A caller may leave the call out: a peer that sleeps looks
 * at its memory by itself some time later.
 *
 * Ordering: call this after the store. No fence is needed between them: see dn_wait.h.
 */
static inline void dn_wake(dn_peer_t *peer);
/**
 * As memcpy(), for bytes that another core has written, such as those of a message. The copy asks for the lines of the
 * source ahead of time. Its speed does not depend on where source and target lie in their pages.
 */
DN_API void dn_copy(void *to, const void *from, size_t len);
/** As memcpy(), into lines that another core has read, such as those of a BOTF window. This copy uses the string
 * instruction where the processor is faster with that. */
DN_API void dn_copy_in(void *to, const void *from, size_t len);
/** @} */

/** @name Segments (Martini paper section 4) */
/** @{ */

/**
 * Allocate zeroed memory that every local peer can map, so that PUSH and PULL are CPU copies. The memory has
 * huge pages where the system gives huge pages to shared memory that asks for them
 * (/sys/kernel/mm/transparent_hugepage/shmem_enabled: advise). The memory lies on the NUMA node on which the caller
 * runs, whichever process touches it first. The system gives the pages when they are touched first; where
 * dn_memory_is_counted() is not 0, this call has it give them all at once.
 *
 * @param[in]  len    Bytes, at least 1.
 * @retval DN_ERR_NOMEM  no memory or file space: nothing was allocated; use dn_segment_register(). Not logged.
 */
DN_API dn_status_t dn_segment_alloc(dn_port_t *port, uint64_t len, dn_segment_t **segment_p);

/**
 * Does the system promise no more memory than it has (vm.overcommit_memory is 2)? Then the first touch of a page of
 * shared memory may end in a SIGBUS, as the system has no page left. The same may happen to a process that gives pages
 * back by punching holes, and touches them again.
 */
DN_API int dn_memory_is_counted(void);

/**
 * Make a segment of memory that the caller has. Nothing is copied or pinned. The memory stays the caller's, and must
 * outlive the segment. @p len may be 0. */
DN_API dn_status_t dn_segment_register(dn_port_t *port, void *base, uint64_t len, dn_segment_t **segment_p);

/** Free a segment. Memory of dn_segment_alloc() is unmapped in this process. The segment's key is stale from now on. */
DN_API void dn_segment_free(dn_segment_t *segment);

/**
 * Map a segment of a peer, which the peer has allocated by dn_segment_alloc(). This process reads and writes the
 * segment like its own memory. The callers of both processes order their accesses, by messages or by atomics in the
 * segment. The segment stays mapped until the peer is disconnected, even after its owner has freed the segment.
 *
 * @param[out] base_p  The address of the segment's first byte in this process.
 *
 * @retval DN_ERR_UNSUPPORTED  this process cannot map the memory, has no descriptor or addresses left for it, or has
 *                             mapped 4096 other segments of the peer: use dn_push() and dn_pull().
 * @retval DN_ERR_RANGE        the key is stale or made up.
 */
DN_API dn_status_t dn_segment_map(dn_peer_t *peer, const dn_key_t *key, void **base_p);

/** The address of the first byte of an own segment. */
DN_API void *dn_segment_base(const dn_segment_t *segment);
/** The key by which peers name the segment. */
DN_API void dn_segment_key(const dn_segment_t *segment, dn_key_t *key_p);
/** @} */

/** @name PUSH, PULL, atomics (Martini paper section 5) */
/** @{ */

/**
 * PUSH: write local blocks to a peer's segment. PULL: read a peer's segment into local blocks. On either side a use of
 * a scatter/gather program (dn_prog.h) may stand in place of the blocks.
 *
 * Size:       xfer->len bytes, 0 is legal; the blocks of each sg add up to exactly xfer->len.
 * Completion: exactly one of
 *             - < 0            nothing is promised of the target bytes, comp is never signalled;
 *             - DN_OK          complete: local memory may be reused, PUSHed bytes are visible at the
 *                              target, comp is never signalled;
 *             - DN_INPROGRESS  comp is signalled once from dn_progress(), with DN_OK (same meaning) or an error. Without
 *                              comp it is dn_flush() that tells: the transfer has ended, and with which error.
 *             Status words are stored (release) after the bytes, the local one even on DN_OK. The
 *             target may poll for the remote one. (Martini defined the remote one, and left it out.)
 * Ordering:   none between transfers, nor between blocks, unless separated by dn_fence().
 * Ownership:  xfer and its arrays are the caller's again on return. The memory that they name, programs, comp and
 *             local_status are lent until completion.
 * Programs:   where the target has to run a program, this process sends the program before its first use. The target
 *             keeps the program, and the messages of later uses name it.
 * Sharing:    both processes may copy parts of a long PULL or PUSH (dn_config_t::help_min) at once, unless
 *             DN_XFER_UNSHARED is set. At most 8 transfers of a port are shared at a time; this process copies the
 *             others alone, with the same result. Where the peer is lost while its process copies, comp is signalled
 *             when that process has done its part or has ended, after 2 s at the latest. A process that has not done
 *             its part by then is stopped (SIGSTOP), or does not keep to the protocol. An error line says so, and that
 *             process may write the local memory of the PULL as long as it lives.
 *
 * @retval DN_ERR_AGAIN    no descriptor or credit: dn_progress(), retry. Not logged.
 * @retval DN_ERR_PARAM    an sg does not add up to len, or misaligned status words.
 * @retval DN_ERR_RANGE    the remote blocks leave the segment, or the key is stale or made up: the caller has an
 *                         error. Always returned where the segment is mapped, or the peer's core processor does the
 *                         transfer. Where the kernel copies, returned only for addresses that are not mapped. A network
 *                         may end the connection for a wrong key: then the error is DN_ERR_UNREACH.
 * @retval DN_ERR_UNREACH  the peer is gone.
 */
static inline dn_status_t dn_push(dn_peer_t *peer, const dn_xfer_t *xfer);
/** PULL: see dn_push(). */
static inline dn_status_t dn_pull(dn_peer_t *peer, const dn_xfer_t *xfer);

/**
 * An atomic operation on a word of a peer's segment. It is atomic towards atomic instructions of the owner, too.
 * Completion, ownership and errors as dn_push(). DN_ERR_PARAM: the width or the alignment is wrong.
 *
 * Ordering: the atomic operations of one thread on words of one segment take effect in the order of its calls. When the peer is lost,
 *           those that have taken effect are the first ones. Once the peer's function of dn_lost_set() is called for this process, none
 *           of this process takes effect there any more.
 */
static inline dn_status_t dn_atomic(dn_peer_t *peer, const dn_amo_t *amo);

/** Most operations of one dn_atomics(). */
#define DN_ATOMICS_MAX 4

/**
 * Start some atomic operations towards a peer, in the order of the array. Where a message carries them, one message carries all, and one
 * answer comes back. As so many calls of dn_atomic(), but for these points:
 *
 * @param[in]  amo        @p n operations. The comp of each is not NULL.
 * @param[in]  n          1 to DN_ATOMICS_MAX.
 * @param[out] started_p  How many were started: the first ones. Always set.
 *
 * Completion: the comp of each operation that was started is signalled once, maybe from inside of this call.
 *
 * @retval DN_OK         all were started.
 * @retval DN_ERR_AGAIN  no descriptor or credit: dn_progress(), then call this for the others. Not logged.
 * Other errors as dn_atomic(), of the first operation that was not started. Pinned by test/device/conf_atomic.c.
 */
DN_API dn_status_t dn_atomics(dn_peer_t *peer, const dn_amo_t *amo, size_t n, size_t *started_p);

/** dn_atomic() with DN_AMO_ADD. */
static inline dn_status_t dn_fetch_add(dn_peer_t *peer, const dn_key_t *key, uint64_t roff, unsigned width,
                                       uint64_t add, void *result, dn_comp_t *comp);
/** dn_atomic() with DN_AMO_SWAP. */
static inline dn_status_t dn_swap(dn_peer_t *peer, const dn_key_t *key, uint64_t roff, unsigned width,
                                  uint64_t value, void *result, dn_comp_t *comp);
/** dn_atomic() with DN_AMO_CAS. */
static inline dn_status_t dn_cas(dn_peer_t *peer, const dn_key_t *key, uint64_t roff, unsigned width,
                                 uint64_t compare, uint64_t value, void *result, dn_comp_t *comp);

/**
 * Order operations towards @p peer: those that were started before this call returned DN_OK take effect before those
 * that are started later. This tells no error of an operation: dn_flush() does.
 * @retval DN_OK          the order holds.
 * @retval DN_INPROGRESS  not yet, as earlier transfers still run: call dn_progress(), then this again.
 */
DN_API dn_status_t dn_fence(dn_peer_t *peer);

/**
 * Are all PUSHes, PULLs and atomics to @p peer complete at both ends? This makes progress once, and never blocks.
 *
 * An operation without comp that fails after its call has returned DN_INPROGRESS leaves its error with the peer. The call that finds
 * all operations ended returns the error, and takes it away. Of several errors the first one is kept. An error that the operation's own
 * call, or its comp, has told is not kept.
 *
 * Threads: of several threads that flush one peer, one gets the error.
 *
 * @retval DN_OK           all have ended, and those without comp have not failed since the last answer.
 * @retval DN_INPROGRESS   not yet: call this again.
 * @retval DN_ERR_UNREACH  the peer is gone: dn_disconnect(). The operations in flight have been signalled with this error.
 * Other errors as of the operation. All have ended; which of them have failed is not known. The peer can still be used.
 *
 * Pinned by test/device/conf_transfer.c and conf_death.c.
 */
DN_API dn_status_t dn_flush(dn_peer_t *peer);
/** @} */

#ifdef __cplusplus
}
#endif

#include "dn_inline.h"

#endif
