/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm.h
 * Distributed shared memory in pages, in the manner of SCASH: processes read and write one range of addresses as
 * plain memory. It stands on dimmnet.h alone and knows no MPI.
 *
 * Each page has a *home*, a process whose memory holds what the page is. Another process that reads a page gets a
 * copy by a PULL, at its first access. A process that writes a page keeps a *twin*, the page as it was, and at a
 * release compares the two: the bytes that differ, a *diff*, go home by a PUSH. So several processes may write
 * different bytes of one page. A *notice* tells that a page was written: a copy that a notice names is dropped,
 * and fetched again at the next access.
 *
 * Processes of one host map one memory. Where the host has all, that is all there is to do. Beside others, a page is at home with the whole
 * host of its home. Each other host has one copy, which the first of its processes that needs the page fetches.
 *
 * @par What a program may rely on
 * The memory is release consistent. All processes see the same, right values when no two accesses to a byte, of
 * which one is a write, are without an order between them (there is no *data race*). What orders them, as it does
 * for the threads of one process:
 *
 *   - program order in one thread, and whatever orders the threads of one process, such as a mutex;
 *   - dn_dsm_unlock() of a lock comes before the next dn_dsm_lock() of it, in whichever process;
 *   - each dn_dsm_barrier() comes after what all processes did before it, and before what they do after it;
 *   - dn_dsm_release(), then a sign by other means (a message, a file), then dn_dsm_acquire().
 *
 * Such an order is passed on: what A wrote before it released is seen by C, if B acquired it from A, and C from B.
 * With the protocol "scope", dn_dsm_unlock() orders only what was written since dn_dsm_lock() of the same lock;
 * barriers order everything.
 *
 * @par Examples
 * Right, since the barrier orders the write before the reads:
 * @code
 *     if (0 == rank) { a[5] = 1; }
 *     dn_dsm_barrier(dsm);
 *     x = a[5];                      // 1 everywhere
 * @endcode
 * Right, since the lock orders every pair of accesses; also in one page with the next example's words:
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
 * Wrong: nothing orders the flag. The reader may wait for ever, or find the flag and an old datum.
 * @code
 *     if (0 == rank) { datum = 1; flag = 1; } else { while (0 == flag) { } x = datum; }
 * @endcode
 *
 * @par What it does not do
 * It does not detect a data race. Atomic instructions of the processor on shared memory order nothing between
 * processes. A system call that is given shared memory may fail with EFAULT, as it cannot wait for a page:
 * dn_dsm_touch() first; with one memory for all of a host such a call succeeds as it is. An asynchronous signal handler, and a
 * function that dn_progress() calls, must not touch shared memory, nor a mapping (dn_page.h). After fork() the child must not use it.
 *
 * @par Signals
 * Accesses are detected by SIGSEGV, and by SIGBUS with "uffd" and "scan". A thread that blocks the signal and makes such an access is
 * killed by the kernel. The handler fetches the page, and so runs the transport; it uses the thread's alternate stack where
 * there is one (sigaltstack(2)), which then has 64 KiB at least. A signal that is not of shared memory goes to the handler
 * that was there before. A handler that the program installs later calls the one that it replaces, with all three arguments,
 * for what it does not know.
 *
 * Errors:  as in dimmnet.h; each has been logged once, with a sentence. A process that is gone takes its pages and
 *          locks with it: calls return DN_ERR_UNREACH, and an access that needs such a page ends this process with
 *          a sentence. So does any other error of a transfer on which others wait: a process that went on without its
 *          part of a lock, a barrier or a release would leave them waiting, or with old data.
 * Threads: all threads of a process may use the memory and all calls at once, but for dn_dsm_alloc(),
 *          dn_dsm_alloc_homes(), dn_dsm_barrier(), dn_dsm_reduce() and dn_dsm_close(), which one thread of each process calls, and all
 *          processes in the same order. While a thread is in a barrier or a reduction, no other thread of its process
 *          is in dn_dsm_lock(), _unlock(), _acquire() or _release(): what is found to break this gets DN_ERR_PARAM, or
 *          ends the process with a sentence where it is the barrier that comes second.
 *
 * Pinned by test/dsm.
 */
#ifndef DN_DSM_H
#define DN_DSM_H

#include "dimmnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most processes. */
#define DN_DSM_RANKS_MAX 64
/** Most values of dn_dsm_reduce(). */
#define DN_DSM_VALUES_MAX 64

/** The part of a shared memory that is this process': dn_dsm_open(). There is one in a process at a time. */
typedef struct dn_dsm dn_dsm_t;

/** What a process opens. dn_dsm_config_init() and dn_dsm_config_env() fill it in. Strings are lent for dn_dsm_open(). */
typedef struct dn_dsm_config {
    uint32_t rank;  /**< of this process: 0 .. ranks - 1 */
    uint32_t ranks; /**< processes: 1 .. DN_DSM_RANKS_MAX */
    uint64_t
        bytes; /**< that can be allocated in all; the same everywhere. 64 MiB. Memory is taken as it is touched */
    uint32_t locks; /**< 1 .. 4096; the same everywhere. 256 */
    /** How long to wait for the other processes to start; in dn_dsm_close() also how long for one that has come there and ends
     * before it leaves. 60 */
    uint32_t timeout_s;
    /** Which all processes can write, nobody else can, and no job has used: they meet there. NULL: they meet by PMIx, where a launcher
     * with it has started them, and are all of its job. */
    const char *folder;
    const char *devices;  /**< as for dn_open(). "shm" */
    const char *settings; /**< NAME=VALUE of dn_config_set(), apart by blanks; NULL: none */
    const char
        *protocol; /**< "lazy", "scope", "eager" or "update" (doc/dsm.md); the same everywhere. "lazy" */
    const char
        *detect; /**< how accesses are detected: "segv", "uffd", "scan", or "auto", the first that works */
    /** "auto": processes of one host map one memory; "never"; or how many of a host do at most, of those whose ranks divided by this
     * number are the same. So one host stands for several. Of two processes the one counts that lets fewer share. "auto" */
    const char *share;
    /** "stay"; or "move": at a barrier a page gets the one process as its home that alone has written it for some time. Then no
     * thread touches the memory while another thread of its process is in a barrier, and where there are several hosts, each process has
     * copies of its own. The same everywhere. "stay" */
    const char *homes;
    const char *
        map; /**< file for a picture of who fetched which page, which rank 0 writes as it closes (doc/dsm.md); NULL: none */
} dn_dsm_config_t;

/** Where pages of an allocation have their homes. */
typedef enum dn_dsm_home {
    DN_DSM_HOME_BLOCK,  /**< a part that lies together for each process, in the order of ranks */
    DN_DSM_HOME_CYCLIC, /**< page by page, in turns */
    DN_DSM_HOME_RANK    /**< all with one rank */
} dn_dsm_home_t;

/** What dn_dsm_reduce() does with values. */
typedef enum dn_dsm_fold { DN_DSM_SUM, DN_DSM_MIN, DN_DSM_MAX } dn_dsm_fold_t;

/** What has happened in this process; each only grows. Times are of all threads together. */
typedef struct dn_dsm_stat {
    uint64_t read_faults;  /**< accesses that were detected as reads */
    uint64_t write_faults; /**< accesses that were detected as writes */
    uint64_t fetched;      /**< pages that were PULLed */
    uint64_t dropped;      /**< copies that a notice, or an acquire, has ended */
    uint64_t twins;        /**< pages of other homes that became writable here */
    uint64_t diffs;        /**< of these, compared with their twins */
    uint64_t diff_blocks;  /**< pieces that lie together in them */
    uint64_t diff_bytes;   /**< bytes PUSHed by them */
    uint64_t notices;      /**< heard of, and not known before */
    uint64_t locks;        /**< got */
    uint64_t lock_waits;   /**< of these, handed over by another process */
    uint64_t moved;        /**< pages whose home this process has become */
    uint64_t barriers;     /**< left, reductions included */
    uint64_t fault_ns;     /**< in detected accesses */
    uint64_t release_ns;   /**< making diffs and sending them home */
    uint64_t acquire_ns;   /**< hearing notices and dropping copies */
    uint64_t lock_ns;      /**< in dn_dsm_lock(), but for the two above */
    uint64_t barrier_ns;   /**< in barriers, but for these */
} dn_dsm_stat_t;

/** Set every field of @p config to its default: rank 0 of 1. */
DN_API void dn_dsm_config_init(dn_dsm_config_t *config);

/**
 * The same, then what the environment says: DN_DSM_RANK, _RANKS, _BYTES, _LOCKS, _TIMEOUT, _FOLDER, _DEVICES, _SETTINGS,
 * _PROTOCOL, _DETECT, _SHARE, _HOMES and _MAP. Under Open MPI's mpirun, rank and ranks are those of the job.
 *
 * @param[out] config  Its strings live as long as the environment is not changed.
 * @retval DN_ERR_PARAM  a number is none: the log line says which.
 */
DN_API dn_status_t dn_dsm_config_env(dn_dsm_config_t *config);

/**
 * Open the memory. Returns when all processes have told the others what they need. One may still fail after that, as it maps the
 * memory: then it is gone for the others, whose next calls return DN_ERR_UNREACH.
 *
 * The files of the meeting, with the key of the job among them, stay in the folder: the caller removes it when all processes have
 * closed. They have the rights 0600, and are taken only if they belong to the effective user.
 *
 * @param[out] dsm_p  The caller's until dn_dsm_close().
 *
 * @retval DN_ERR_PARAM        a field is out of its range, the processes disagree, or there is one open: see the log line.
 * @retval DN_ERR_ACCESS       the folder cannot be used, or it or a file in it belongs to another user; or PMIx has failed.
 * @retval DN_ERR_NOMEM        memory, or LLCM, ran out.
 * @retval DN_ERR_UNREACH      a process did not come within timeout_s, or is not reached by the devices.
 * @retval DN_ERR_UNSUPPORTED  accesses are not detected here as asked for, PMIx is not there, or no range of addresses is free in all
 *                             processes.
 * Others as dn_open() and dn_connect().
 */
DN_API dn_status_t dn_dsm_open(const dn_dsm_config_t *config, dn_dsm_t **dsm_p);

/** Close it, when all processes call this. The memory ends: an access to it ends the process with a sentence.
 * @retval DN_ERR_UNREACH  a process has ended without. It is closed all the same.
 * @retval DN_ERR_ACCESS   the map cannot be written; DN_ERR_NOMEM: there is no memory to draw it. It is closed all the same. */
DN_API dn_status_t dn_dsm_close(dn_dsm_t *dsm);

/** The rank of this process. */
DN_API uint32_t dn_dsm_rank(const dn_dsm_t *dsm);
/** The number of processes. */
DN_API uint32_t dn_dsm_ranks(const dn_dsm_t *dsm);
/** The host of a rank: the lowest of the ranks that have one memory with it, or the rank itself. DN_DSM_RANKS_MAX: there is no such rank. */
DN_API uint32_t dn_dsm_host(const dn_dsm_t *dsm, uint32_t rank);
/** How accesses are detected: "segv", "uffd", "scan", or "shared" where nothing has to be. */
DN_API const char *dn_dsm_detects(const dn_dsm_t *dsm);
/** The i-th way of detecting accesses; NULL: there are no more. */
DN_API const char *dn_dsm_detect_name(size_t i);
/** Why a way does not work here, in a few words; NULL: it works. @param name  From dn_dsm_detect_name(). */
DN_API const char *dn_dsm_detect_why_not(const char *name);

/**
 * Allocate zeroed memory at the same address in all processes, which all call this with the same arguments. Nobody leaves
 * before all have come, but it orders no accesses: it neither releases nor acquires.
 *
 * @param[in]  bytes  At least 1; whole pages are taken.
 * @param[in]  home   Where the homes are.
 * @param[in]  rank   For DN_DSM_HOME_RANK; else not looked at.
 * @param[out] at_p   Aligned to a page; lives until dn_dsm_close().
 *
 * @retval DN_ERR_NOMEM    more than what is left of dn_dsm_config_t::bytes: open with more.
 * @retval DN_ERR_PARAM    a rank that there is not, no bytes, or the processes disagree.
 * @retval DN_ERR_UNREACH  a process is gone.
 */
DN_API dn_status_t dn_dsm_alloc(dn_dsm_t *dsm, uint64_t bytes, dn_dsm_home_t home, uint32_t rank,
                                void **at_p);

/**
 * The same, with the home of each page.
 *
 * @param[in]  bytes  At least 1; whole pages are taken.
 * @param[in]  home   The rank of each page, of sysconf(_SC_PAGESIZE) bytes. It is the caller's again on return.
 * @param[out] at_p   As above.
 * Errors as dn_dsm_alloc().
 */
DN_API dn_status_t dn_dsm_alloc_homes(dn_dsm_t *dsm, uint64_t bytes, const uint16_t *home, void **at_p);

/**
 * Get a lock. Processes are queued: whichever asks first gets it first. Of the threads of one process any may be next.
 *
 * Ordering: sees what was written before the last dn_dsm_unlock() of it, as the head of this file says.
 *
 * @param[in] lock  0 .. dn_dsm_config_t::locks - 1.
 * @retval DN_ERR_PARAM    there is no such lock, this thread has it, or another is in a barrier: nothing happened.
 * @retval DN_ERR_UNREACH  a process is gone, and may have held it: nobody gets it any more.
 */
DN_API dn_status_t dn_dsm_lock(dn_dsm_t *dsm, uint32_t lock);

/** Give a lock back.
 * @retval DN_ERR_PARAM    there is no such lock, this thread does not have it, or another is in a barrier: nothing
 *                         happened.
 * @retval DN_ERR_UNREACH  a process is gone. */
DN_API dn_status_t dn_dsm_unlock(dn_dsm_t *dsm, uint32_t lock);

/** All that this process has written is at home when it returns.
 * @retval DN_ERR_PARAM    another thread is in a barrier: nothing happened.
 * @retval DN_ERR_UNREACH  a process is gone. */
DN_API dn_status_t dn_dsm_release(dn_dsm_t *dsm);
/** What is at home when it is called will be read. This, dn_dsm_lock() and dn_dsm_barrier() may wait until another thread has fetched again
 * what the acquire before made stale. That thread may fault more than once for one access. Errors as dn_dsm_release(). */
DN_API dn_status_t dn_dsm_acquire(dn_dsm_t *dsm);

/** Nobody leaves before all have come; releases, and acquires.
 * @retval DN_ERR_PARAM    another process calls another of the calls that all make: the log line says which.
 * @retval DN_ERR_UNREACH  a process is gone. */
DN_API dn_status_t dn_dsm_barrier(dn_dsm_t *dsm);

/** A barrier that folds values of all processes, in the same order everywhere: all get the same bits.
 * @param[in,out] value  In: of this process. Out: the sums, minima or maxima.
 * @param[in]     fold   The same everywhere.
 * @param[in]     count  The same everywhere, at most DN_DSM_VALUES_MAX.
 * Errors as dn_dsm_barrier(), DN_ERR_PARAM also where processes pass another fold or count. */
DN_API dn_status_t dn_dsm_reduce(dn_dsm_t *dsm, dn_dsm_fold_t fold, double *value, size_t count);

/** Fetch the pages of a range at once that are not here, before they are read.
 * @retval DN_ERR_RANGE    it is not allocated shared memory.
 * @retval DN_ERR_UNREACH  a process is gone. */
DN_API dn_status_t dn_dsm_prefetch(dn_dsm_t *dsm, const void *at, uint64_t len);

/** Have a range readable, or writable, also for system calls, until any thread of this process calls one of
 * dn_dsm_lock(), _unlock(), _acquire(), _release(), _barrier() or _reduce(). With "uffd" and "scan" the kernel may take a page
 * out again as it reclaims memory: a system call that fails with EFAULT is made again after another dn_dsm_touch(). Errors as
 * dn_dsm_prefetch(). */
DN_API dn_status_t dn_dsm_touch(dn_dsm_t *dsm, void *at, uint64_t len, int write);

/** Read the counters. */
DN_API void dn_dsm_stat(const dn_dsm_t *dsm, dn_dsm_stat_t *stat);
/** Write them as a table of lines "NAME VALUE" into @p text, which ends with a 0 byte. @return characters, as snprintf(). */
DN_API int dn_dsm_stat_text(const dn_dsm_stat_t *stat, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
