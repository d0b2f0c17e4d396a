/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm.h
 * Distributed shared memory in pages, in the manner of SCASH: processes read and write one range of addresses like
 * plain memory. This library needs dimmnet.h only, and no MPI.
 *
 * Each page has a *home*: a process whose memory holds the valid content of the page. Another process gets a copy of
 * the page by a PULL, at its first access. A process that writes to its copy keeps a *twin*, which is the page before
 * the first write. At a release the process compares the page with its twin. The bytes that differ are a *diff*, and go
 * to the home by a PUSH. So several processes may write different bytes of one page. A *notice* tells other processes
 * that a page was written. A process that gets a notice drops its copy of the page, and fetches the page again at the
 * next access.
 *
 * Processes of one host map the same memory. Where all processes are on one host, nothing is fetched or sent. Where
 * there are several hosts, a page is at home with all processes of the host on which its home is. Each other host has
 * one copy. The first process of such a host that needs the page fetches it.
 *
 * @par What a program may rely on
 * The memory is release consistent. All processes see the same, right values if the program has no *data race*. A data
 * race is two accesses to one byte, of which at least one is a write, without an order between them. These order
 * accesses, in the same way as for the threads of one process:
 *
 *   - program order in one thread, and all that orders the threads of one process, such as a mutex;
 *   - dn_dsm_unlock() of a lock comes before the next dn_dsm_lock() of this lock, in whichever process;
 *   - each dn_dsm_barrier() comes after all that the processes did before it, and before all that they do after it;
 *   - dn_dsm_release(), then a sign by other means (a message, a file), then dn_dsm_acquire().
 *
 * The order is transitive. If B acquires from A, and C acquires from B, then C sees what A wrote before its release.
 * With the protocol "scope", dn_dsm_unlock() orders only writes since dn_dsm_lock() of the same lock;
 * barriers order all writes.
 *
 * @par Examples
 * Right, since the barrier orders the write before the reads:
 * @code
 *     if (0 == rank) { a[5] = 1; }
 *     dn_dsm_barrier(dsm);
 *     x = a[5];                      // 1 everywhere
 * @endcode
 * Right, since the lock orders every pair of accesses:
 * @code
 *     dn_dsm_lock(dsm, 0);
 *     (*count)++;
 *     dn_dsm_unlock(dsm, 0);
 * @endcode
 * Right, since the bytes differ, although they may lie in one page (*false sharing*, which costs time only):
 * @code
 *     a[rank] = rank;
 *     dn_dsm_barrier(dsm);
 * @endcode
 * Wrong: nothing orders the accesses to the flag. The reader may wait for ever, or find the new flag and the old datum.
 * @code
 *     if (0 == rank) { datum = 1; flag = 1; } else { while (0 == flag) { } x = datum; }
 * @endcode
 *
 * @par What it does not do
 *   - The library does not detect a data race.
 *   - Atomic instructions of the processor on shared memory order nothing between processes.
 *   - A system call that gets an address of shared memory may fail with EFAULT, as the kernel cannot wait for a page.
 *     The program calls dn_dsm_touch() before the system call. Where all processes are on one host and map the same
 *     memory, the system call succeeds without.
 *   - An asynchronous signal handler, and a function that dn_progress() calls, must not touch shared memory, nor a
 *     mapping (dn_page.h).
 *   - After fork() the child has no shared memory. An access to it ends the child with a sentence. The child makes no call
 *     of this header.
 *   - Of dn_dsm_config_t::bytes only what is allocated may be accessed. An access to the rest ends the process with a
 *     sentence, and a system call that gets such an address fails with EFAULT.
 *
 * @par Signals
 * Accesses are detected by SIGSEGV; with "uffd" and "scan" by SIGBUS, too. A thread must not block the signal: the kernel
 * kills the process at such an access. The library's signal handler fetches the page, and so runs the transport. It runs
 * on the thread's alternate stack where the thread has one (sigaltstack(2)); that stack needs at least 64 KiB. For an
 * address that is not in shared memory, the handler calls the one that was installed before. A program that installs a
 * handler of its own later keeps the library's handler, and calls it with all three arguments for each address that it
 * does not know itself.
 *
 * Errors:  as in dimmnet.h; each has been logged once, with a sentence. When a process is gone, its pages and locks are
 *          gone, too: calls return DN_ERR_UNREACH, and an access that needs such a page ends the accessing process with
 *          a sentence. The first such call may take a second longer, until it is known which process is gone. Any other
 *          error of a transfer for which other processes wait ends this process as well. If this process went on without
 *          its part of a lock, a barrier or a release, the others would wait for ever, or read old data.
 * Threads: all threads of a process may use the memory and all calls at once, with two exceptions. One thread of each
 *          process calls dn_dsm_alloc(), dn_dsm_alloc_homes(), dn_dsm_barrier(), dn_dsm_reduce() and dn_dsm_close(), and all
 *          processes call these in the same order. While a thread is in a barrier or a reduction, no other thread of its
 *          process calls dn_dsm_lock(), _unlock(), _acquire() or _release(). Where the library finds such a call, the
 *          call returns DN_ERR_PARAM; where it finds a barrier that begins during such a call, it ends the process with
 *          a sentence.
 *
 * Pinned by test/dsm.
 */
#ifndef DN_DSM_H
#define DN_DSM_H

#include "dimmnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The largest number of processes. */
#define DN_DSM_RANKS_MAX 64
/** The largest number of values of dn_dsm_reduce(). */
#define DN_DSM_VALUES_MAX 64

/** The shared memory, as this process has opened it: dn_dsm_open(). A process has at most one at a time. */
typedef struct dn_dsm dn_dsm_t;

/** Settings of dn_dsm_open(). dn_dsm_config_init() and dn_dsm_config_env() fill them in. The strings are lent for the call
 * of dn_dsm_open(). */
typedef struct dn_dsm_config {
    uint32_t rank;  /**< rank of this process: 0 .. ranks - 1 */
    uint32_t ranks; /**< number of processes: 1 .. DN_DSM_RANKS_MAX */
    uint64_t
        bytes; /**< bytes that can be allocated in all; the same in all processes. Default: 64 MiB. The system gives
                         the memory when it is touched */
    uint32_t locks; /**< number of locks: 1 .. 4096; the same in all processes. Default: 256 */
    /** Seconds to wait for the other processes to start. In dn_dsm_close() also the seconds to wait for a process that
     * is in dn_dsm_close(), too, and ends before it has left. Default: 60 */
    uint32_t timeout_s;
    /** Folder in which the processes meet. All processes can write to it, other users cannot, and no earlier job has used
     * it. NULL: the processes meet by PMIx; a launcher with PMIx has started them, and they are all processes of its
     * job. */
    const char *folder;
    const char *devices;  /**< list for dn_open(). Default: "shm" */
    const char *settings; /**< NAME=VALUE for dn_config_set(), separated by blanks; NULL: none */
    const char
        *protocol; /**< "lazy", "scope", "eager" or "update" (doc/dsm.md); the same in all processes. Default:
                               "lazy" */
    const char
        *detect; /**< how accesses are detected: "segv", "uffd", "scan", or "auto", the first that works */
    /** Which processes of a host map the same memory. "auto": all. "never": none. A number n: those for which rank / n is
     * the same, so that a host stands for several hosts. Of two processes with different settings, the setting counts
     * that lets fewer processes share. Default: "auto" */
    const char *share;
    /** "stay": pages keep their homes. "move": when a page was written by one process alone for some time, that process
     * becomes the page's home at a barrier. With "move" no thread may touch the memory while another thread of its process
     * is in a barrier; and where there are several hosts, each process has copies of its own. The same in all processes.
     * Default: "stay" */
    const char *homes;
    const char *
        map; /**< file for a picture of which process fetched which page. Rank 0 writes the file in dn_dsm_close()
                          (doc/dsm.md). NULL: none */
} dn_dsm_config_t;

/** Which processes are the homes of the pages of an allocation. */
typedef enum dn_dsm_home {
    DN_DSM_HOME_BLOCK, /**< the pages are cut into one contiguous part for each process, in the order of ranks */
    DN_DSM_HOME_CYCLIC, /**< the ranks by turns, page by page */
    DN_DSM_HOME_RANK    /**< one rank for all pages */
} dn_dsm_home_t;

/** What dn_dsm_reduce() does with values. */
typedef enum dn_dsm_fold { DN_DSM_SUM, DN_DSM_MIN, DN_DSM_MAX } dn_dsm_fold_t;

/** Counters of this process; each only grows. Times are nanoseconds, summed over all threads. */
typedef struct dn_dsm_stat {
    uint64_t read_faults;  /**< accesses that were detected as reads */
    uint64_t write_faults; /**< accesses that were detected as writes; one may make several pages writable */
    uint64_t fetched;      /**< pages that were PULLed */
    uint64_t dropped;      /**< copies that were dropped after a notice, or at an acquire */
    uint64_t twins;        /**< pages that became writable in this process and have their home elsewhere */
    uint64_t diffs;        /**< pages that were compared with their twins */
    uint64_t diff_blocks;  /**< contiguous pieces in all diffs */
    uint64_t diff_bytes;   /**< bytes that were PUSHed for diffs */
    uint64_t notices;      /**< notices that came and were new to this process */
    uint64_t locks;        /**< locks that threads of this process have got */
    uint64_t lock_waits;   /**< locks that this process got from another process */
    uint64_t moved;        /**< pages whose home this process has become */
    uint64_t barriers;     /**< barriers and reductions that have ended */
    uint64_t fault_ns;     /**< time in detected accesses */
    uint64_t release_ns;   /**< time to make diffs and send them home */
    uint64_t acquire_ns;   /**< time to receive notices and drop copies */
    uint64_t lock_ns;      /**< time in dn_dsm_lock(), without release_ns and acquire_ns */
    uint64_t barrier_ns;   /**< time in barriers, without release_ns and acquire_ns */
} dn_dsm_stat_t;

/** Set every field of @p config to its default. Rank and ranks become 0 and 1. */
DN_API void dn_dsm_config_init(dn_dsm_config_t *config);

/**
 * Set every field of @p config to its default, then to what the environment says: DN_DSM_RANK, _RANKS, _BYTES, _LOCKS,
 * _TIMEOUT, _FOLDER, _DEVICES, _SETTINGS, _PROTOCOL, _DETECT, _SHARE, _HOMES and _MAP. Under Open MPI's mpirun, rank and
 * ranks are those of the job.
 *
 * @param[out] config  The strings in it stay valid until the environment is changed.
 * @retval DN_ERR_PARAM  a variable should be a number, and is not: the log line says which.
 */
DN_API dn_status_t dn_dsm_config_env(dn_dsm_config_t *config);

/**
 * Open the memory. The call returns when all processes have exchanged what they need. A process may still fail after the
 * exchange, when it maps the memory. That process is gone then for the others: their next calls return DN_ERR_UNREACH.
 *
 * The processes leave files in the folder, one of which holds the key of the job. The caller removes the folder after all
 * processes have closed. The files have mode 0600. A process uses a file only if it belongs to the process' effective
 * user.
 *
 * @param[out] dsm_p  The caller's until dn_dsm_close().
 *
 * @retval DN_ERR_PARAM        a field is out of its range, the processes have different values of a field that has to be
 *                             the same, or this process has a memory open already: see the log line.
 * @retval DN_ERR_ACCESS       the folder cannot be used, the folder or a file in it belongs to another user, or PMIx has
 *                             failed.
 * @retval DN_ERR_NOMEM        memory, or LLCM, ran out.
 * @retval DN_ERR_UNREACH      a process did not come within timeout_s, or the devices do not reach it.
 * @retval DN_ERR_UNSUPPORTED  the way to detect accesses does not work here, PMIx is missing, or no range of addresses is
 *                             free in all processes.
 * Others as dn_open() and dn_connect().
 */
DN_API dn_status_t dn_dsm_open(const dn_dsm_config_t *config, dn_dsm_t **dsm_p);

/** Close the memory; all processes call this. From then on an access to the memory ends the process with a sentence. The
 * memory is closed whatever is returned.
 * @retval DN_ERR_UNREACH  a process has ended without this call.
 * @retval DN_ERR_ACCESS   the file dn_dsm_config_t::map cannot be written.
 * @retval DN_ERR_NOMEM    memory for the picture ran out. */
DN_API dn_status_t dn_dsm_close(dn_dsm_t *dsm);

/** The rank of this process. */
DN_API uint32_t dn_dsm_rank(const dn_dsm_t *dsm);
/** The number of processes. */
DN_API uint32_t dn_dsm_ranks(const dn_dsm_t *dsm);
/** The host of a rank: the lowest of the ranks that map the same memory as this rank, which may be the rank itself.
 * DN_DSM_RANKS_MAX: there is no such rank. */
DN_API uint32_t dn_dsm_host(const dn_dsm_t *dsm, uint32_t rank);
/** How accesses are detected: "segv", "uffd", "scan", or "shared" where all processes map the same memory. */
DN_API const char *dn_dsm_detects(const dn_dsm_t *dsm);
/** The name of the i-th way to detect accesses; NULL: there are no more. */
DN_API const char *dn_dsm_detect_name(size_t i);
/** Why a way to detect accesses does not work here, in a few words; NULL: it works. @param name  From
 * dn_dsm_detect_name(). */
DN_API const char *dn_dsm_detect_why_not(const char *name);

/**
 * Allocate zeroed memory at the same address in all processes. All processes call this with the same arguments. The call
 * returns after all processes have called it. But it orders no accesses: it neither releases nor acquires.
 *
 * @param[in]  bytes  At least 1; rounded up to whole pages.
 * @param[in]  home   Which processes are the homes of the pages.
 * @param[in]  rank   The home with DN_DSM_HOME_RANK; else ignored.
 * @param[out] at_p   The address, aligned to a page. The memory lives until dn_dsm_close().
 *
 * @retval DN_ERR_NOMEM    fewer bytes are left of dn_dsm_config_t::bytes: open with more.
 * @retval DN_ERR_PARAM    there is no such rank, @p bytes is 0, or the processes pass different arguments.
 * @retval DN_ERR_UNREACH  a process is gone.
 */
DN_API dn_status_t dn_dsm_alloc(dn_dsm_t *dsm, uint64_t bytes, dn_dsm_home_t home, uint32_t rank,
                                void **at_p);

/**
 * As dn_dsm_alloc(), with a home for each page.
 *
 * @param[in]  bytes  At least 1; rounded up to whole pages.
 * @param[in]  home   An array with the rank for each page. A page has sysconf(_SC_PAGESIZE) bytes. The array is the
 *                    caller's again on return.
 * @param[out] at_p   As in dn_dsm_alloc().
 * Errors as dn_dsm_alloc().
 */
DN_API dn_status_t dn_dsm_alloc_homes(dn_dsm_t *dsm, uint64_t bytes, const uint16_t *home, void **at_p);

/**
 * Get a lock. The processes that wait for a lock get it in the order of their requests. Of the waiting threads of one
 * process, any may get the lock next.
 *
 * Ordering: later accesses see what was written before the last dn_dsm_unlock() of this lock, as the head of this file
 *           says.
 *
 * @param[in] lock  0 .. dn_dsm_config_t::locks - 1.
 * @retval DN_ERR_PARAM    there is no such lock, this thread has it already, or another thread is in a barrier: nothing
 *                         happened.
 * @retval DN_ERR_UNREACH  a process is gone, and may have held the lock: no process gets the lock any more.
 */
DN_API dn_status_t dn_dsm_lock(dn_dsm_t *dsm, uint32_t lock);

/** Give a lock back.
 * @retval DN_ERR_PARAM    there is no such lock, this thread does not have it, or another thread is in a barrier:
 *                         nothing happened.
 * @retval DN_ERR_UNREACH  a process is gone. */
DN_API dn_status_t dn_dsm_unlock(dn_dsm_t *dsm, uint32_t lock);

/** Send home all that this process has written. When the call returns DN_OK, all of it is at the homes.
 * @retval DN_ERR_PARAM    another thread is in a barrier: nothing happened.
 * @retval DN_ERR_UNREACH  a process is gone. */
DN_API dn_status_t dn_dsm_release(dn_dsm_t *dsm);
/** Make later accesses see what is at the homes when this is called. This call, dn_dsm_lock() and dn_dsm_barrier() may
 * wait until another thread has fetched again a page that an earlier acquire made stale. One access of that thread may
 * be detected more than once. Errors as dn_dsm_release(). */
DN_API dn_status_t dn_dsm_acquire(dn_dsm_t *dsm);

/** Release, wait until all processes have called this, then acquire.
 * @retval DN_ERR_PARAM    another process is in another of the calls that all processes make together: the log line says
 *                         in which.
 * @retval DN_ERR_UNREACH  a process is gone. */
DN_API dn_status_t dn_dsm_barrier(dn_dsm_t *dsm);

/** A barrier that also folds values of all processes. The values are folded in one order, so that all processes get the
 * same bits.
 * @param[in,out] value  In: values of this process. Out: the sums, minima or maxima of all.
 * @param[in]     fold   The same in all processes.
 * @param[in]     count  The same in all processes, at most DN_DSM_VALUES_MAX.
 * Errors as dn_dsm_barrier(). DN_ERR_PARAM: also where processes pass different folds or counts. */
DN_API dn_status_t dn_dsm_reduce(dn_dsm_t *dsm, dn_dsm_fold_t fold, double *value, size_t count);

/** Fetch all pages of a range together that this process has no copy of.
 * @retval DN_ERR_RANGE    the range is not allocated shared memory.
 * @retval DN_ERR_UNREACH  a process is gone. */
DN_API dn_status_t dn_dsm_prefetch(dn_dsm_t *dsm, const void *at, uint64_t len);

/** Make a range readable, or writable, also for system calls. It stays so until a thread of this process calls
 * dn_dsm_lock(), _unlock(), _acquire(), _release(), _barrier() or _reduce(). With "uffd" and "scan" the kernel may remove a
 * page again when it reclaims memory: where a system call fails with EFAULT, call dn_dsm_touch() and make the system call
 * again. Errors as dn_dsm_prefetch(). @param[in] write  Not 0: writable. */
DN_API dn_status_t dn_dsm_touch(dn_dsm_t *dsm, void *at, uint64_t len, int write);

/** Read the counters. */
DN_API void dn_dsm_stat(const dn_dsm_t *dsm, dn_dsm_stat_t *stat);
/** Write counters into @p text as lines "NAME VALUE", with a 0 byte at the end. @return characters, as snprintf(). */
DN_API int dn_dsm_stat_text(const dn_dsm_stat_t *stat, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
