/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_page.h
 * Load and store on a peer's memory: a range of addresses here stands for a piece of a peer's segment, a *mapping*. It is what the page
 * region and the write combining of IP-NUMA's card were, in software: it works over every device, and stands on dimmnet.h alone.
 *
 * A page of it comes by a PULL, at its first load or store, and stays. Stores change the page here only; dn_page_release() compares
 * each page that was written with its *twin*, the page as it came, and sends the bytes that differ by as few PUSHes as it can.
 * dn_page_acquire() drops the pages, so that later loads see what the segment has by then. The peer's program takes no part, where its
 * device needs no progress.
 *
 * Where the device maps the segment here (dn_segment_map()), that memory is the mapping: nothing is fetched or sent.
 *
 * @par What a program may rely on
 *   - A load finds what this process has stored there, through this mapping, since the last dn_page_acquire(), or since it was mapped; else what
 *     the segment had at some time since then.
 *   - When dn_page_release() returns DN_OK, what was stored before is in the segment. Stores may get there sooner, in any order, also one
 *     byte of a word before the others.
 *   - No byte is sent that was not stored to, so that the owner and several processes may store to different bytes of one page.
 *   - A store of the value that the page has already is not seen as a store, and not sent.
 *
 * So what orders two accesses to a byte, of which one is a store, is: dn_page_release() behind the store, a sign by other means (a message, a
 * status word, dn_aotf()), and dn_page_acquire() ahead of the other access where that is through a mapping, be it in another process or in
 * this one. The owner stores and loads its own memory as it is; over a mapping that is memory of the peer both calls are fences of the
 * processor. Several mappings of a segment have nothing to do with each other.
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
 * A load cannot return an error. Where a page cannot be fetched, since the peer is lost or its segment was freed, this process ends with a
 * sentence, by _exit(EXIT_FAILURE). A program that has to go on calls dn_page_touch() ahead of the loads: that returns the error.
 *
 * Two things are not returned by any call. With "segv" a load, store, touch, release or acquire also ends the process where the areas of the
 * kernel run out (vm.max_map_count); with "uffd" and "scan" an acquire ends it where its memory was locked since it was mapped (mlockall(2)). And where a mapping is the peer's memory itself, nothing tells that the peer is lost: its memory stays here, and
 * touch, release and acquire return DN_OK.
 *
 * @par Signals
 * Accesses are detected by SIGSEGV and SIGBUS, as dn_dsm.h says under *Signals*; a thread that touches a mapping blocks neither. The handler PULLs
 * and makes progress: so a load or store is a call of dn_progress() that waits. Therefore
 *
 *   - where one thread at a time may use the port (dn_job_t::threads is 0), the same holds for the mapping;
 *   - a function that dn_progress() calls, such as a message handler, and a handler of an asynchronous signal touch no mapping and no shared
 *     memory (dn_dsm.h), also where the page is here, as it may not be writable any more; and they release, acquire and unmap nothing. In an access
 *     or a call of this header such a touch ends the process with a sentence; in a dn_progress() of the program it may wait for ever;
 *   - a load or store is also a PULL on the peer: there is none between dn_botf_reserve() and dn_botf_kick() on the same port, say;
 *   - a system call that is given mapped memory may fail with EFAULT; a call of libdimmnet may wait for ever, or send wrong bytes: dn_page_touch()
 *     first. With "uffd" and "scan" the kernel may take a page out again: there the bytes are copied first, and libdimmnet gets the copy.
 *
 * After fork() the child has no mapping: an access there ends it with a sentence, and it makes no call of this header.
 *
 * Errors:  as in dimmnet.h; each has been logged once, with a sentence.
 * Threads: with dn_job_t::threads, all threads of a process may use a mapping and all calls at once, but for dn_page_unmap(), which needs
 *          every other use of the mapping to be over.
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

/** What has happened to a mapping; each only grows. */
typedef struct dn_page_stat {
    uint64_t faults;  /**< accesses that were detected */
    uint64_t fetched; /**< pages that were PULLed */
    uint64_t pulls;   /**< by as many PULLs */
    uint64_t dropped; /**< pages that dn_page_acquire() has dropped */
    uint64_t pushes;  /**< PUSHes of stores */
    uint64_t blocks;  /**< pieces that lie together in them */
    uint64_t bytes;   /**< of these */
} dn_page_stat_t;

/**
 * Map a piece of a peer's segment. Nothing is fetched yet.
 *
 * @param[in]  port       Of the peer. It stays open, and the peer connected, until dn_page_unmap().
 * @param[in]  peer       Whose segment it is; the own process is one, too.
 * @param[in]  key        Of the segment. Copied. A key has no rights of its own: who has it may load and store.
 * @param[in]  off        Bytes from the segment's start to the first one of the mapping; need not be a multiple of anything.
 * @param[in]  len        Bytes, at least 1. What lies behind them up to the end of a page stands for nothing: stores there go nowhere; where
 *                        dn_page_detects() is "shared", it is the peer's. What lies behind that page is not the mapping's.
 * @param[in]  detect     How accesses are detected: "segv", "uffd" or "scan" (doc/dsm.md), and each access is to a copy then. "auto":
 *                        the peer's memory itself where the device maps it, else "uffd" where it works, also with this memory, else
 *                        "segv": dn_log_answers_set() tells why.
 * @param[out] mapping_p  The caller's until dn_page_unmap().
 *
 * It takes addresses for three times @p len, and twice the memory of what is fetched where it is written; with "scan" always.
 *
 * @retval DN_ERR_RANGE        off and len leave the segment; or the device maps segments, and the key is stale or made up.
 * @retval DN_ERR_PARAM        no bytes, or no such way to detect accesses.
 * @retval DN_ERR_UNSUPPORTED  accesses are not detected here as asked for; by "uffd" and "scan" also where the program locks its memory
 *                             (mlockall(2)).
 * @retval DN_ERR_NOMEM        memory, addresses, or areas of the kernel (vm.max_map_count) ran out.
 * @retval DN_ERR_ACCESS       the kernel lets no handler be installed.
 * Others as dn_segment_map().
 */
DN_API dn_status_t dn_page_map(dn_port_t *port, dn_peer_t *peer, const dn_key_t *key, uint64_t off,
                               uint64_t len, const char *detect, dn_mapping_t **mapping_p);

/**
 * Release, then unmap: an access from now on is one to memory that is not there. It is unmapped whatever is returned. But what is the peer's memory
 * itself stays here until the peer is disconnected, as dn_segment_map() says.
 * Errors as dn_page_release(), DN_OK where nothing was left to send.
 */
DN_API dn_status_t dn_page_unmap(dn_mapping_t *mapping);

/** The address of the first byte. It is that of a page where dn_page_detects() is not "shared". */
DN_API void *dn_page_base(const dn_mapping_t *mapping);
/** How accesses are detected: "segv", "uffd", "scan", or "shared" where nothing has to be. */
DN_API const char *dn_page_detects(const dn_mapping_t *mapping);

/**
 * Send what was stored.
 *
 * Completion: DN_OK: it is in the peer's segment. It waits for that, unlike dn_fence(). What other threads store meanwhile is sent now
 *             or the next time.
 * Ordering:   what this process starts towards the peer afterwards comes after it, a message or a store by dn_aotf() as well.
 *
 * @retval DN_ERR_UNREACH  there was something to send, and the peer is lost. Nothing is promised of what was stored since the last release, and it
 *                         is not sent again; likewise for the other errors.
 * Others as dn_push().
 */
DN_API dn_status_t dn_page_release(dn_mapping_t *mapping);

/**
 * Drop the pages: what the segment has when this is called, or something newer, is seen from now on. What was stored here and not sent is
 * sent first. Errors as dn_page_release(); the pages are dropped all the same. It may wait for a PULL of another thread that an acquire before it
 * has overtaken; a load of that thread may fault more than once, then.
 */
DN_API dn_status_t dn_page_acquire(dn_mapping_t *mapping);

/**
 * Have a range here, by one PULL for 256 pages that lie together, readable, or writable, also for system calls and calls of libdimmnet; until the
 * next dn_page_acquire(), and writable until the next dn_page_release(). With "uffd" and "scan" the kernel may take a page out as it reclaims
 * memory: a system call that fails with EFAULT is made again after another dn_page_touch(), and libdimmnet is given a copy.
 *
 * @param[in] at  Inside of the mapping, with the @p len bytes behind it.
 *
 * @retval DN_ERR_RANGE    it is not: nothing happened.
 * @retval DN_ERR_UNREACH  the peer is lost. Pages that are here already stay so.
 * Others as dn_pull().
 */
DN_API dn_status_t dn_page_touch(dn_mapping_t *mapping, void *at, uint64_t len, int write);

/** Read the counters. */
DN_API void dn_page_stat(const dn_mapping_t *mapping, dn_page_stat_t *stat);

#ifdef __cplusplus
}
#endif

#endif
