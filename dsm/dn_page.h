/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_page.h
 * Load and store on a peer's memory. A *mapping* is a range of addresses in this process that stands for a piece of a
 * peer's segment. A mapping is in software what the page region and the write combining of IP-NUMA's card were. It works
 * over every device, and needs dimmnet.h only.
 *
 * A page of a mapping is fetched by a PULL at its first load or store, and stays in this process. A store changes only
 * the page in this process. dn_page_release() compares each written page with its *twin*, which is the page before the
 * first store, and sends the bytes that differ by as few PUSHes as it can. dn_page_acquire() drops the pages, so that
 * later loads see newer content of the segment. The peer's program takes no part, where the peer's device needs no
 * progress.
 *
 * Where the device can map the segment itself (dn_segment_map()), the mapping is that memory: nothing is fetched or
 * sent.
 *
 * @par What a program may rely on
 *   - A load of a byte finds the last value that this process has stored through this mapping since the last
 *     dn_page_acquire() (or since dn_page_map()). Where there was no such store, the load finds a value that the segment
 *     had at some time since then.
 *   - When dn_page_release() returns DN_OK, all earlier stores are in the segment. A store may get there sooner, in any
 *     order; also one byte of a word before the others.
 *   - A byte to which this process has not stored is not sent. So the owner and several processes may store to different
 *     bytes of one page.
 *   - A store of the value that the page has already is not detected as a store, and is not sent.
 *
 * Two accesses to one byte, of which at least one is a store, are ordered by these three: dn_page_release() after the
 * store; a sign by other means (a message, a status word, dn_aotf()); and dn_page_acquire() before the other access,
 * where that goes through a mapping, in another process or in this one. The owner accesses its own memory without these
 * calls. Where the mapping is memory of the peer, both calls are fences of the processor. Several mappings of one segment
 * are independent of each other.
 *
 * @par Example
 * @code
 *     dn_page_map(port, peer, &key, 0, 1 << 20, "auto", &mapping);
 *     uint64_t *word = dn_page_base(mapping);
 *     word[5] = word[4] + 1;          // a PULL, at the load
 *     dn_page_release(mapping);       // a PUSH of what differs in word[5]
 *     ... a message from the owner ...
 *     dn_page_acquire(mapping);
 *     x = word[4];                    // a PULL again: what the owner had stored before its message
 *     dn_page_unmap(mapping);
 * @endcode
 *
 * @par Loads that fail
 * A load cannot return an error. Where a page cannot be fetched, as the peer is lost or its segment was freed, this
 * process writes a sentence, and ends by _exit(EXIT_FAILURE). A program that has to go on calls dn_page_touch() before the
 * loads: dn_page_touch() returns the error.
 *
 * No call returns an error in these cases:
 *   - With "segv", a load, a store, dn_page_touch(), dn_page_release() or dn_page_acquire() ends the process when the kernel
 *     has no more areas for it (vm.max_map_count).
 *   - With "uffd" and "scan", dn_page_acquire() ends the process when the program has locked the mapping's memory since
 *     dn_page_map() (mlockall(2)).
 *   - Where the mapping is the peer's memory itself, nothing tells that the peer is lost. The memory stays mapped, and
 *     dn_page_touch(), dn_page_release() and dn_page_acquire() return DN_OK.
 *
 * @par Signals
 * Accesses are detected by SIGSEGV and SIGBUS, as dn_dsm.h says under *Signals*. A thread that touches a mapping blocks
 * neither of the two. The signal handler PULLs and makes progress: a load or store is therefore like a call of
 * dn_progress() that waits. From this follow these rules:
 *
 *   - Where one thread at a time may use the port (dn_job_t::threads is 0), one thread at a time may use the mapping.
 *   - A function that dn_progress() calls, such as a message handler, and a handler of an asynchronous signal must not touch
 *     a mapping or shared memory (dn_dsm.h). This holds also for a page that has been fetched, as the page may no longer be
 *     writable. They must not release, acquire or unmap a mapping either. Where such a function runs inside of an access or
 *     of a call of this header, its touch ends the process with a sentence; inside of a dn_progress() of the program, its
 *     touch may wait for ever.
 *   - A load or store may be a PULL from the peer. So there must be none where no call on the peer is allowed, for example
 *     between dn_botf_reserve() and dn_botf_kick().
 *   - A system call that gets an address of a mapping may fail with EFAULT. A call of libdimmnet that gets such an address
 *     may wait for ever, or send wrong bytes. The program calls dn_page_touch() first. With "uffd" and "scan" the kernel may
 *     remove the page again: there the program copies the bytes, and passes the copy to libdimmnet.
 *
 * After fork() the child has no mapping. An access to it ends the child with a sentence. But where the mapping is the peer's
 * memory itself, the child has that memory, too. The child makes no call of this header.
 *
 * Errors:  as in dimmnet.h; each has been logged once, with a sentence.
 * Threads: with dn_job_t::threads set, all threads of a process may use a mapping and all calls at once. But dn_page_unmap()
 *          is called only after every other use of the mapping is over.
 *
 * Pinned by test/dsm/pages.c.
 */
#ifndef DN_PAGE_H
#define DN_PAGE_H

#include "dimmnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A piece of a peer's segment, mapped here: dn_page_map(). */
typedef struct dn_mapping dn_mapping_t;

/** Counters of a mapping; each only grows. */
typedef struct dn_page_stat {
    uint64_t faults;  /**< accesses that were detected */
    uint64_t fetched; /**< pages that were PULLed */
    uint64_t pulls;   /**< PULLs */
    uint64_t dropped; /**< pages that dn_page_acquire() has dropped */
    uint64_t pushes;  /**< PUSHes */
    uint64_t blocks;  /**< contiguous pieces in all PUSHes */
    uint64_t bytes;   /**< bytes in all PUSHes */
} dn_page_stat_t;

/**
 * Map a piece of a peer's segment. Nothing is fetched yet.
 *
 * @param[in]  port       The port of the peer. The port stays open, and the peer connected, until dn_page_unmap().
 * @param[in]  peer       The owner of the segment; it may be the own process.
 * @param[in]  key        The key of the segment. Copied. A key does not tell rights to read from rights to write: each process
 *                        that has the key may load and store.
 * @param[in]  off        Bytes from the start of the segment to the start of the mapping; any value inside of the segment.
 * @param[in]  len        Bytes, at least 1. Bytes behind the mapping in its last page are not part of it: stores to them are
 *                        lost. But where dn_page_detects() is "shared", those bytes belong to the peer. The page after that is
 *                        not part of the mapping.
 * @param[in]  detect     How accesses are detected: "segv", "uffd" or "scan" (doc/dsm.md). With these, all accesses go to
 *                        copies. "auto": the mapping is the peer's memory where the device can map it; else "uffd" where it
 *                        works for this memory; else "segv". dn_log_answers_set() tells why.
 * @param[out] mapping_p  The caller's until dn_page_unmap().
 *
 * Memory:     a mapping takes addresses for three times @p len bytes. It takes memory for each fetched page, and again for
 *             each fetched page that is written; with "scan" twice for each fetched page.
 *
 * @retval DN_ERR_RANGE        @p off and @p len leave the segment; or the device maps segments, and the key is stale or made
 *                             up.
 * @retval DN_ERR_PARAM        @p len is 0, or there is no such way to detect accesses.
 * @retval DN_ERR_UNSUPPORTED  the way to detect accesses does not work here. "uffd" and "scan" do not work where the program
 *                             locks its memory (mlockall(2)).
 * @retval DN_ERR_NOMEM        memory, addresses, or areas of the kernel (vm.max_map_count) ran out.
 * @retval DN_ERR_ACCESS       the kernel does not let the signal handler be installed.
 * Others as dn_segment_map().
 */
DN_API dn_status_t dn_page_map(dn_port_t *port, dn_peer_t *peer, const dn_key_t *key, uint64_t off,
                               uint64_t len, const char *detect, dn_mapping_t **mapping_p);

/**
 * Release, then unmap. From now on the addresses stand for nothing, and an access to them is an error of the program. The
 * mapping ends whatever is returned. Where the mapping is the peer's memory itself, that memory stays mapped until the
 * peer is disconnected, as dn_segment_map() says.
 * Errors as dn_page_release(); DN_OK where nothing was left to send.
 */
DN_API dn_status_t dn_page_unmap(dn_mapping_t *mapping);

/** The address of the first byte of the mapping. It is aligned to a page unless dn_page_detects() is "shared". */
DN_API void *dn_page_base(const dn_mapping_t *mapping);
/** How accesses are detected: "segv", "uffd", "scan"; or "shared" where the mapping is the peer's memory. */
DN_API const char *dn_page_detects(const dn_mapping_t *mapping);

/**
 * Send the stored bytes to the segment.
 *
 * Completion: DN_OK: the bytes are in the peer's segment. The call waits for that, unlike dn_fence(). Bytes that other
 *             threads store during the call are sent now or by the next release.
 * Ordering:   operations that this process starts towards the peer after the call take effect after the stores; messages
 *             and dn_aotf() as well.
 *
 * @retval DN_ERR_UNREACH  there was something to send, and the peer is lost. Of the stores since the last release, any part may
 *                         be in the segment, and they are not sent again. The same holds for the other errors.
 * Others as dn_push().
 */
DN_API dn_status_t dn_page_release(dn_mapping_t *mapping);

/**
 * Drop the pages: later loads see what the segment has at the time of this call, or something newer. Stored bytes that were
 * not sent yet are sent first. The call may wait for a PULL of another thread that began before an earlier acquire. One
 * access of that thread may then be detected more than once. Errors as dn_page_release(); the pages are dropped all the
 * same.
 */
DN_API dn_status_t dn_page_acquire(dn_mapping_t *mapping);

/**
 * Fetch a range, and make it readable, or writable, also for system calls and calls of libdimmnet. One PULL fetches up to 256
 * contiguous pages. The range stays readable until the next dn_page_acquire(), and writable until the next
 * dn_page_release() or dn_page_acquire(). With "uffd" and "scan" the kernel may remove a page when it reclaims memory. Where
 * a system call fails with EFAULT, call dn_page_touch() and make the system call again. For a call of libdimmnet, copy the
 * bytes, and pass the copy.
 *
 * @param[in] at     Start of the range. The range lies inside of the mapping.
 * @param[in] len    Bytes in the range.
 * @param[in] write  Not 0: writable.
 *
 * @retval DN_ERR_RANGE    the range leaves the mapping: nothing happened.
 * @retval DN_ERR_UNREACH  the peer is lost. Pages that were fetched before stay readable.
 * Others as dn_pull().
 */
DN_API dn_status_t dn_page_touch(dn_mapping_t *mapping, void *at, uint64_t len, int write);

/** Read the counters. */
DN_API void dn_page_stat(const dn_mapping_t *mapping, dn_page_stat_t *stat);

#ifdef __cplusplus
}
#endif

#endif
