/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dimmnet.h
 * The contract of libdimmnet: send with CPU stores, receive by polling memory.
 *
 * A process opens a *port*, learns its *address*, carries that to other processes by any channel it has
 * (PMIx, a file, a pipe) and *connects* to theirs. A connected *peer* offers the primitives of DIMMnet-1 and
 * Martini: AOTF (one store into the peer's polled memory), BOTF (a message built in a window), PUSH and PULL
 * (remote write and read, with blocks or programs on both sides), and atomics on remote words. Which device
 * carries them is decided by dn_open()'s list and never shows in a call.
 *
 * Errors: every call that can fail returns dn_status_t; outputs are set only on DN_OK. DN_ERR_AGAIN
 * means that nothing happened and that dn_progress() makes room. Every other error has been logged
 * once (dn_log_set()) by the code that found it.
 *
 * Threads: with dn_job_t::threads set, every call may be made from several threads at once, except
 * that dn_close(), dn_disconnect() and dn_segment_free() need every other use of their object to be
 * over. Without it one thread at a time may use a port and what belongs to it.
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
 * @param[in] text  Lent as long as @p config is used when the field is a string.
 *
 * @retval DN_ERR_PARAM  there is no such field, or the value is not accepted: the log line says which is. Nothing is set.
 *
 * Pinned by test/unit/dn_param_is_what_its_row_says.c.
 */
DN_API dn_status_t dn_config_set(dn_config_t *config, const char *name, const char *text);

/**
 * Open a port on a list of devices.
 *
 * @param[in]  spec    Device names separated by commas, such as "shm"; a peer is reached by the first
 *                     that can.
 * @param[in]  job     The group and PID of this process. Copied.
 * @param[in]  config  Settings, NULL: defaults. Copied.
 * @param[out] port_p  The port; the caller's until dn_close().
 *
 * @retval DN_ERR_PARAM        unknown device or a module that is not loaded, one listed twice, or a setting out of its range: the
 *                             log line says which and what is accepted; correct it.
 * @retval DN_ERR_NOMEM        no memory or file space: free some, or choose another folder.
 * @retval DN_ERR_ACCESS       the kernel or folder refuses shared memory: see the log line.
 * @retval DN_ERR_UNSUPPORTED  no device of the list works on this machine.
 *
 * Pinned by test/device/conformance.c.
 */
DN_API dn_status_t dn_open(const char *spec, const dn_job_t *job, const dn_config_t *config,
                           dn_port_t **port_p);

/**
 * Open one more device of an open port, behind those of dn_open()'s list: peers that are connected stay where
 * they are, and dn_address() names it from now on. Segments made before are reached by messages over it.
 *
 * @param[in] spec  One device, written as in dn_open()'s list.
 *
 * @retval DN_ERR_PARAM        no such device, or it is open: the log line says which.
 * @retval DN_ERR_UNSUPPORTED  it does not work on this machine, or cannot be opened late. Logged, unlike by dn_open(), which has
 *                             other devices to go on with.
 *
 * Pinned by test/device/late_device.c.
 */
DN_API dn_status_t dn_device_open(dn_port_t *port, const char *spec);

/**
 * Close a port: disconnect its peers, free its segments and leave no file behind. Peers that still send to it
 * get DN_ERR_UNREACH. Operations in flight are dropped without a completion. A peer's process that copies a
 * share of one of them (dn_pull(): sharing) gets 2 s to end it; all such processes have the same 2 s.
 */
DN_API void dn_close(dn_port_t *port);

/**
 * Let peers of another process group in (an entry of Martini's PGIDTBL). A port talks to its own
 * group from the start. Messages from a group not admitted stay in their ring, or
 * with their sender, until it is.
 *
 * @retval DN_ERR_NOMEM  memory ran out.
 */
DN_API dn_status_t dn_group_admit(dn_port_t *port, const dn_pgid_t *pgid);

/**
 * A word that changes when a process of a group that is not admitted has greeted over a network. Who it is, nobody has proved: find
 * the groups that may be expected by a channel that you trust, and admit these. The process greets again.
 *
 * Threads: to be read at any time, by dn_load_relaxed() or the like; it lives as long as the port.
 */
DN_API const uint32_t *dn_strangers(const dn_port_t *port);

/**
 * The bytes by which others connect to this port: version, PGID, PID, host, devices.
 *
 * @param[in,out] len  In: size of @p buf. Out: bytes used, or needed when DN_ERR_RANGE is returned.
 *
 * @retval DN_ERR_RANGE  @p buf is too small: retry with *len bytes (at most DN_ADDRESS_MAX).
 */
DN_API dn_status_t dn_address(const dn_port_t *port, void *buf, size_t *len);

/** An address never needs more bytes than this. */
#define DN_ADDRESS_MAX 2048

/** The PGID of the group that has a key, as it stands in the addresses of its processes.
 * @retval DN_ERR_ACCESS  libsodium does not start: allow getrandom in the sandbox. */
DN_API dn_status_t dn_pgid(const dn_group_key_t *key, dn_pgid_t *pgid_p);

/** The PGID inside an address; check it came by a channel that you trust, then dn_group_admit().
 * @retval DN_ERR_PROTO    not an address.
 * @retval DN_ERR_VERSION  an address of another version of libdimmnet. */
DN_API dn_status_t dn_address_pgid(const void *address, size_t len, dn_pgid_t *pgid_p);

/** Read the counters of a port (a sum over its devices and peers). */
DN_API void dn_counters(const dn_port_t *port, dn_counters_t *counters);

/** Where errors are written: one sentence each, no newline. NULL restores stderr. Process-wide. */
typedef void (*dn_log_fn_t)(const char *sentence, void *arg);
/** Set where errors are written: dn_log_fn_t. */
DN_API void dn_log_set(dn_log_fn_t fn, void *arg);

/** Where answers that are no errors are written, in the same way: why dn_open() passes a device over, why dn_connect()
 * does not reach a peer by one, and why dn_page_map() (dn_page.h) detects accesses by another way than its first. NULL, as at first:
 * nowhere. Process-wide. */
DN_API void dn_log_answers_set(dn_log_fn_t fn, void *arg);

/** The name of the i-th device, as dn_open() takes it: those of this build, and then modules (dn_device.h),
 * which are not loaded by that. NULL when there are no more. */
DN_API const char *dn_device_name(size_t i);
/** Is there a device of this name, built in or as a module? It is not loaded by that. */
DN_API int dn_device_known(const char *name);

/** The i-th open device of a port, in the order of dn_open()'s list.
 * @retval DN_ERR_RANGE  there are no more. */
DN_API dn_status_t dn_device_attr(const dn_port_t *port, size_t i, dn_device_attr_t *attr);

/** A few words for a status, never NULL. */
DN_API const char *dn_strerror(dn_status_t status);

/** The version of the library that runs, such as "0.2.0". The version that a program was built for says nothing of it. */
DN_API const char *dn_version(void);
/** @} */

/** @name Peers */
/** @{ */

/**
 * Connect to a process by its address, by the first device of the list that reaches it. Connecting twice
 * gives the same peer, counted; connecting to oneself works.
 *
 * @retval DN_ERR_PROTO    not an address, or the peer's segment is malformed: the peer is not one of
 *                         ours; give up on it.
 * @retval DN_ERR_VERSION  the peer runs another version of libdimmnet: install the same one.
 * @retval DN_ERR_PARAM    the peer counts from another dn_config_t::first: set the same one.
 * @retval DN_ERR_ACCESS   another process group or user: dn_group_admit() it, or give up.
 * @retval DN_ERR_UNREACH  the process is gone, or is not reached by a device that would do: use another transport. Not logged: this
 *                         is an answer, not a failure.
 * @retval DN_ERR_UNSUPPORTED  no device that both have open leads to where the process is, another host or name space, be the
 *                         process there or not: open one that does (dn_device_open()), or use another transport. Not logged.
 * @retval DN_ERR_NOMEM    the peer has no slot left (dn_config_t::max_peers), or memory ran out. Later devices of the list
 *                         are not tried, since the peer may come by this one: try again, or use another transport.
 */
DN_API dn_status_t dn_connect(dn_port_t *port, const void *address, size_t len, dn_peer_t **peer_p);

/**
 * Undo one dn_connect(). After the last the peer pointer is dead; messages kicked before still arrive. Waits
 * as dn_close() does where the peer is lost, or has never sent. What is in flight is signalled all the same,
 * from inside of this call or later.
 */
DN_API void dn_disconnect(dn_peer_t *peer);

/** Limits of a peer. */
DN_API void dn_peer_attr(const dn_peer_t *peer, dn_peer_attr_t *attr);

/** A pointer of the user of a channel, kept with the peer (NULL at first, and for a channel that does not
 * exist). A peer that sends first exists before the caller connects to it. */
DN_API void dn_peer_set_user(dn_peer_t *peer, unsigned channel, void *user);
static inline void *dn_peer_user(const dn_peer_t *peer, unsigned channel);

/** DN_OK while the peer's process lives, else DN_ERR_UNREACH. A system call: not for a hot path. */
DN_API dn_status_t dn_peer_check(dn_peer_t *peer);

/** Takes the news that a peer is lost: see dn_lost_set(). */
typedef void (*dn_lost_fn_t)(dn_peer_t *peer, void *arg);

/**
 * Set the function of a channel that hears of lost peers. A peer is lost when its process has ended or has
 * closed its port, when the peer was silent for dn_config_t::timeout_s, or when it was cut off for what it
 * sent. Without such a function only an operation towards the peer tells, and a caller that waits for its
 * messages waits for ever.
 *
 * @param[in] channel  DN_CHAN_BTL .. DN_CHAN_MAX - 1.
 * @param[in] fn       Called once a peer, connected to or not; NULL: nobody is told from now on.
 *
 * Completion: fn is called from inside of dn_progress(), dn_recv() or dn_peer_check(), after the peer's transfers have
 *             been signalled; those of which its process still copies a share (dn_pull(): sharing) follow within 2 s, so
 *             that their memory and their dn_comp_t have to stay until then. A device looks after its peers while the caller
 *             polls: that a process of this host has ended is told within half a second, and 2 ms more for each peer
 *             there; that one elsewhere is silent after timeout_s. That a port was closed in order is told when
 *             something is sent to it, or dn_peer_check() asks.
 * Ordering:   messages that came before may be handled after it. A peer that disconnects is not lost while its port
 *             stays open; whether one whose port has closed has left in order, the users of the channel know.
 * Ownership:  the peer is lent for the call, unless it is connected to. One that nobody has connected to is freed some time after
 *             it was lost, or has closed its port: fn is called ahead of that where the channel still keeps a word with the
 *             peer (dn_peer_set_user()).
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
 * @param[out] off_p  Its offset, to be told to peers. Aligned to 64.
 * @param[out] mem_p  Its address here. Poll it with acquire loads.
 *
 * @retval DN_ERR_NOMEM  no such piece is free, or @p len is 0: raise dn_config_t::llcm_bytes.
 */
DN_API dn_status_t dn_llcm_alloc(dn_port_t *port, size_t len, uint64_t *off_p, void **mem_p);
/** Give a piece back: the offset and length of its dn_llcm_alloc(). */
DN_API void dn_llcm_free(dn_port_t *port, uint64_t off, size_t len);

/**
 * AOTF: put 1 to 8 bytes into a peer's LLCM, in one store when naturally aligned.
 *
 * @param[in] off    Offset in the peer's LLCM.
 * @param[in] value  The bytes, in the machine's order, from the low end.
 * @param[in] size   1 to 8 bytes. Atomic when 1, 2, 4 or 8 and @p off is a multiple of it.
 *
 * Completion: DN_OK: @p value is taken; it becomes visible without further calls where this process maps
 *             the LLCM, else as this end progresses; whether the other has to, too, is the device's (doc/cluster.md).
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
 * Put a line into a peer's LLCM: data, and a flag in the line's last word that becomes visible after them.
 * The owner polls the flag and finds the data in the same line, so that both cost the transfer of one line
 * between caches (BOTF of one line into LLCM).
 *
 * @param[in] off   Offset of the line in the peer's LLCM, a multiple of 64.
 * @param[in] data  Goes to the start of the line; what lies between its end and the flag is left as it was.
 * @param[in] len   0 to DN_AOTF_LINE_MAX bytes.
 * @param[in] flag  The line's last word, 8 bytes at offset DN_AOTF_LINE_MAX; in one store. The owner reads it by an
 *                  acquire load, then the data.
 *
 * Completion: DN_OK: @p data may be reused; the line becomes visible without further calls where this process maps
 *             the LLCM, else as this end progresses; whether the other has to, too, is the device's.
 * Ordering:   not before the lines and AOTFs that the same caller has put there before; towards messages and PUSHes as
 *             dn_aotf().
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
 * Set the function that receives the messages of a channel. Messages that came before a handler was set are
 * kept in their ring, and hold back what follows them from the same sender.
 * @retval DN_ERR_PARAM  the channel is reserved, out of range, or has another handler.
 */
DN_API dn_status_t dn_handler_set(dn_port_t *port, unsigned channel, dn_handler_fn_t fn, void *arg);
/** Take the handler of a channel away. Its later messages are held back. */
DN_API void dn_handler_clear(dn_port_t *port, unsigned channel);

/**
 * Send a message: head then body, copied before return (a window reserved, filled and kicked at once).
 *
 * @param[in] channel   DN_CHAN_BTL .. DN_CHAN_MAX - 1.
 * @param[in] tag       0..255, given to the handler.
 * @param[in] head_len  Bytes of @p head, which may be NULL when it is 0.
 * @param[in] body_len  Bytes of @p body, likewise. Both add up to at most dn_peer_attr_t::botf_max.
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
 * Send a message as dn_botf() does, but lend the body until it has left instead of copying it. This pays for long
 * bodies, where the device copies what it is given.
 *
 * @param[in] comp  Signalled when @p body is the caller's again: by DN_OK, or by DN_ERR_UNREACH when the peer is lost. In that case
 *                  the network's library may still read the memory, but nobody gets what it reads.
 *
 * @retval DN_OK               sent by a copy after all; @p comp is not signalled.
 * @retval DN_INPROGRESS       sent, and lent.
 * @retval DN_ERR_UNSUPPORTED  nothing was sent: not by this device, or not now, and @p comp is not signalled; use dn_botf().
 * Others as dn_botf(). Pinned by test/device/ofi_loans.c.
 */
static inline dn_status_t dn_botf_lend(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                                       size_t head_len, const void *body, size_t body_len, dn_comp_t *comp);

/**
 * Reserve a window of @p len bytes at the peer, to build a message in place. At most one window a peer
 * and thread at a time; fill it and kick it without calling any other function on this peer.
 * Errors as dn_botf(). Between reserve and kick nothing can fail.
 */
static inline dn_status_t dn_botf_reserve(dn_peer_t *peer, size_t len, dn_window_t *window);
/** Publish the first @p len bytes of a window (0 .. window->len) as one message. Cannot fail. */
static inline void dn_botf_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag,
                                size_t len);

/**
 * Receive what one peer has sent, without looking at the others: for a caller that knows its source.
 * @return messages handled, at most @p max.
 */
DN_API int dn_recv(dn_peer_t *src, int max);

/**
 * Look at the next message of one peer where it lies, for a caller that waits for just this one. That takes half of the
 * instructions of a handler's call. It stays the next one until dn_take(); until then call nothing else of
 * this port but dn_peek(). A caller that gets no DN_OK for long calls dn_progress() now and then.
 *
 * @param[in] looks  At most, back to back; at least 1.
 *
 * @retval DN_OK               it is on @p channel: @p message tells what it is.
 * @retval DN_ERR_AGAIN        nothing has come from this peer. Not logged.
 * @retval DN_ERR_UNSUPPORTED  what comes, on this or another channel, is to be received by dn_recv(): where several threads
 *                             use the port, it is always so. Not logged.
 */
static inline dn_status_t dn_peek(dn_peer_t *src, unsigned channel, unsigned looks, dn_message_t *message);
/** Go past the message that dn_peek() has just shown; its bytes are the sender's again. */
static inline void dn_take(dn_peer_t *src, const dn_message_t *message);

/**
 * Receive from all peers, run core-processor work and signal completions.
 * @return messages and completions handled; 0: nothing was there.
 */
DN_API int dn_progress(dn_port_t *port);

/**
 * Whether this process shares its cores: not 0 when more processes of its peers than processing units
 * may run where it may. A spinning caller then yields after a few idle polls.
 */
DN_API int dn_oversubscribed(const dn_port_t *port);

/** dn_config_t::first of this port: a caller with counters of its own begins there, too. */
DN_API uint32_t dn_first(const dn_port_t *port);

/** The word by which peers wake this process when it sleeps, in dn_wait() (dn_wait.h). NULL: none can. */
DN_API uint32_t *dn_bell(const dn_port_t *port);

/**
 * Wake a peer if it sleeps in dn_wait(). It is for a caller that has stored something for the peer by itself, so that no
 * call of this library has rung. It costs a load while the peer does not sleep, and nothing where the peer cannot be woken.
 * It may be left out: a sleeping peer looks by itself some time later.
 *
 * Ordering: after the store, but without a fence: see dn_wait.h.
 */
static inline void dn_wake(dn_peer_t *peer);
/**
 * As memcpy(), for bytes on their way between two cores: out of a message, which another core has written.
 * It moves words, or uses the string instruction where the processor is faster with that, and the places of source and
 * target in their pages do not make it slow.
 */
DN_API void dn_copy(void *to, const void *from, size_t len);
/** The same into a BOTF window, whose lines another core has read: from shorter lengths on by the string
 * instruction. */
DN_API void dn_copy_in(void *to, const void *from, size_t len);
/** @} */

/** @name Segments (Martini paper section 4) */
/** @{ */

/**
 * Allocate zeroed memory that every local peer can map, so that PUSH and PULL are CPU copies. The memory has
 * huge pages where the system gives them to shared memory that asks
 * (/sys/kernel/mm/transparent_hugepage/shmem_enabled: advise). It is of the NUMA node on which the caller
 * runs, whichever process touches it first. The pages are taken as they are touched, or at once where
 * dn_memory_is_counted().
 *
 * @param[in]  len    Bytes, at least 1.
 * @retval DN_ERR_NOMEM  no memory or file space: nothing was allocated; use dn_segment_register(). Not logged.
 */
DN_API dn_status_t dn_segment_alloc(dn_port_t *port, uint64_t len, dn_segment_t **segment_p);

/**
 * Whether the system promises no more memory than it has (vm.overcommit_memory is 2). A page of shared memory
 * that was not taken before may then be refused by a SIGBUS when it is touched: a process that gives pages
 * back by holes may not get them again.
 */
DN_API int dn_memory_is_counted(void);

/**
 * Make memory that the user has a segment. No copy, no pinning; @p base stays the caller's and must
 * outlive the segment. @p len 0 is legal. */
DN_API dn_status_t dn_segment_register(dn_port_t *port, void *base, uint64_t len, dn_segment_t **segment_p);

/** Free a segment; allocated memory is unmapped here. Its key is stale from then on. */
DN_API void dn_segment_free(dn_segment_t *segment);

/**
 * An allocated segment of a peer in this process' own address space, to read and write as one's own memory.
 * The caller orders what both sides do there, by messages or by atomics in it. It stays mapped until the peer
 * is disconnected, also when its owner has freed it.
 *
 * @param[out] base_p  Its first byte.
 *
 * @retval DN_ERR_UNSUPPORTED  it is not memory that this process can map, or it has no descriptor or address
 *                             space left for it now, or has 4096 others of the peer mapped: PUSH and PULL.
 * @retval DN_ERR_RANGE        the key is stale or made up.
 */
DN_API dn_status_t dn_segment_map(dn_peer_t *peer, const dn_key_t *key, void **base_p);

/** Start of a segment in this process. */
DN_API void *dn_segment_base(const dn_segment_t *segment);
/** The key by which peers name it. */
DN_API void dn_segment_key(const dn_segment_t *segment, dn_key_t *key_p);
/** @} */

/** @name PUSH, PULL, atomics (Martini paper section 5) */
/** @{ */

/**
 * PUSH: write local blocks to a peer's segment. PULL: read a peer's segment into local blocks. Either side
 * may be a use of a scatter/gather program (dn_prog.h) instead.
 *
 * Size:       xfer->len bytes, 0 is legal; each sg adds up to exactly as many.
 * Completion: exactly one of
 *             - < 0            nothing is promised of the target bytes, comp is never signalled;
 *             - DN_OK          complete: local memory may be reused, PUSHed bytes are visible at the
 *                              target, comp is never signalled;
 *             - DN_INPROGRESS  comp is signalled once from dn_progress(), with the same meaning or an
 *                              error. Without comp: after dn_flush() gives DN_OK.
 *             Status words are stored (release) after the bytes, the local one even on DN_OK. The
 *             remote one is what Martini defined and left out: the target may poll for it.
 * Ordering:   none between transfers, nor between blocks, unless separated by dn_fence().
 * Ownership:  xfer and its arrays are the caller's again on return; the memory they name, programs, comp and
 *             local_status are lent until completion.
 * Programs:   where the target runs one, it is sent there before its first use and kept; the messages of later uses
 *             name it.
 * Sharing:    a long PULL or PUSH (dn_config_t::help_min) may be copied by both processes at once, but for
 *             DN_XFER_UNSHARED. At most 8 of a port are at a time; what is more is copied by this process alone, with the same result.
 *             Where the peer is lost while its process copies, comp is signalled when that process has done its part or has
 *             ended, after 2 s at the latest. A process that needs longer is stopped, or does not take part: an error line says so,
 *             and it may write a PULL's memory as long as it lives.
 *
 * @retval DN_ERR_AGAIN    no descriptor or credit: dn_progress(), retry. Not logged.
 * @retval DN_ERR_PARAM    an sg does not add up to len, or misaligned status words.
 * @retval DN_ERR_RANGE    the remote blocks leave the segment, or the key is stale or made up: a caller
 *                         bug. Found where memory is mapped or the peer's core processor is asked; where
 *                         the kernel copies, only an address that is not mapped is; a network that is
 *                         given a wrong key may end the connection: DN_ERR_UNREACH.
 * @retval DN_ERR_UNREACH  the peer is gone.
 */
static inline dn_status_t dn_push(dn_peer_t *peer, const dn_xfer_t *xfer);
static inline dn_status_t dn_pull(dn_peer_t *peer, const dn_xfer_t *xfer);

/**
 * An atomic operation on a word of a peer's segment; atomic towards CPU atomics of the owner too.
 * Completion, ownership and errors as dn_push(); DN_ERR_PARAM also for width or alignment.
 */
static inline dn_status_t dn_atomic(dn_peer_t *peer, const dn_amo_t *amo);

static inline dn_status_t dn_fetch_add(dn_peer_t *peer, const dn_key_t *key, uint64_t roff, unsigned width,
                                       uint64_t add, void *result, dn_comp_t *comp);
static inline dn_status_t dn_swap(dn_peer_t *peer, const dn_key_t *key, uint64_t roff, unsigned width,
                                  uint64_t value, void *result, dn_comp_t *comp);
static inline dn_status_t dn_cas(dn_peer_t *peer, const dn_key_t *key, uint64_t roff, unsigned width,
                                 uint64_t compare, uint64_t value, void *result, dn_comp_t *comp);

/**
 * Order: what was started towards @p peer before takes effect there before what is started after.
 * @retval DN_INPROGRESS  not yet: earlier transfers still run; dn_progress(), call again.
 */
DN_API dn_status_t dn_fence(dn_peer_t *peer);

/**
 * Are all PUSHes, PULLs and atomics to @p peer complete at both ends? Progresses once; never blocks.
 * @retval DN_OK           all are.
 * @retval DN_INPROGRESS   not yet: call again.
 * @retval DN_ERR_UNREACH  the peer is gone; what was in flight has been signalled with this error.
 */
DN_API dn_status_t dn_flush(dn_peer_t *peer);
/** @} */

#ifdef __cplusplus
}
#endif

#include "dn_inline.h"

#endif
