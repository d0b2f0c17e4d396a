/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <hwloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dn_bench_fork.h"

static hwloc_topology_t load_topology(void)
{
    hwloc_topology_t topology;
    if (0 != hwloc_topology_init(&topology)) {
        return NULL;
    }
    if (0 != hwloc_topology_load(topology)) {
        hwloc_topology_destroy(topology);
        return NULL;
    }
    return topology;
}

/* First processing unit in the mask of every core; returns how many, at most n. */
static int first_cpus(hwloc_topology_t topology, hwloc_const_cpuset_t mask, int *cpus, int n)
{
    int found = 0;
    int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    hwloc_obj_type_t type = 0 < cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    hwloc_obj_t core = NULL;
    while (found < n && NULL != (core = hwloc_get_next_obj_by_type(topology, type, core))) {
        hwloc_bitmap_and(usable, core->cpuset, mask);
        if (!hwloc_bitmap_iszero(usable)) {
            cpus[found++] = hwloc_bitmap_first(usable);
        }
    }
    hwloc_bitmap_free(usable);
    return found;
}

static int listed_cpus(hwloc_const_cpuset_t mask, const char *list, int *cpus, int n)
{
    int found = 0;
    while ('\0' != *list) {
        char *end;
        long cpu = strtol(list, &end, 10);
        if (end == list || 0 > cpu || !hwloc_bitmap_isset(mask, (unsigned) cpu) || found == n
            || ('\0' != *end && ',' != *end)) {
            return -1;
        }
        cpus[found++] = (int) cpu;
        list = ',' == *end ? end + 1 : end;
    }
    return found;
}

int dn_bench_cpus(const char *program, const char *list, int *cpus, int n)
{
    hwloc_topology_t topology = load_topology();
    hwloc_bitmap_t mask = hwloc_bitmap_alloc();
    if (NULL == topology || NULL == mask || 0 != hwloc_get_cpubind(topology, mask, HWLOC_CPUBIND_PROCESS)) {
        fprintf(stderr, "%s: hwloc cannot tell which CPUs may be used here; see hwloc-info\n", program);
        hwloc_bitmap_free(mask);
        return -1;
    }
    int found = NULL == list ? first_cpus(topology, mask, cpus, n) : listed_cpus(mask, list, cpus, n);
    if (NULL == list && found < n) {
        fprintf(stderr,
                "%s: %d cores are needed and the affinity mask holds %d; start it without binding "
                "(taskset -c, mpirun --bind-to none) or name CPUs with --cores\n",
                program, n, found);
    } else if (found != n) {
        char allowed[256];
        hwloc_bitmap_list_snprintf(allowed, sizeof(allowed), mask);
        fprintf(stderr, "%s: --cores takes not %s; give %d of the CPUs %s, separated by commas\n", program,
                list, n, allowed);
    }
    hwloc_bitmap_free(mask);
    hwloc_topology_destroy(topology);
    return found == n ? 0 : -1;
}

void *dn_bench_shared(size_t len)
{
    void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == mem) {
        fprintf(stderr, "no shared memory of %zu bytes can be had; use smaller sizes (-m)\n", len);
        exit(1);
    }
    return mem;
}

void dn_bench_bind(int cpu)
{
    hwloc_topology_t topology = load_topology();
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    hwloc_bitmap_only(set, (unsigned) cpu);
    if (NULL == topology || 0 != hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_PROCESS)) {
        fprintf(stderr, "cannot bind to CPU %d; the times may belong to other cores\n", cpu);
    }
    hwloc_bitmap_free(set);
    if (NULL != topology) {
        hwloc_topology_destroy(topology);
    }
}

static int exit_status(int wait_status)
{
    if (WIFEXITED(wait_status)) {
        return WEXITSTATUS(wait_status);
    }
    fprintf(stderr, "a benchmark process was ended by signal %d\n", WTERMSIG(wait_status));
    return 128 + WTERMSIG(wait_status);
}

/* One of ours: ending any other child is the caller's own matter. */
static int forget_pid(pid_t *pids, int n, pid_t pid)
{
    for (int i = 0; i < n; i++) {
        if (pid == pids[i]) {
            pids[i] = 0;
            return 1;
        }
    }
    return 0;
}

static int wait_for_all(pid_t *pids, int n)
{
    int first_failure = 0;
    int left = 0;
    for (int i = 0; i < n; i++) {
        left += 0 != pids[i];
    }
    while (0 < left) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        if (0 > pid) {
            return 1;
        }
        left -= forget_pid(pids, n, pid);
        if (0 == status || 0 != first_failure) {
            continue;
        }
        first_failure = exit_status(status);
        for (int i = 0; i < n; i++) {
            if (0 != pids[i]) {
                kill(pids[i], SIGKILL);
            }
        }
    }
    return first_failure;
}

int dn_bench_fork(int n, const int *cpus, int ncpus, dn_bench_child_fn_t fn, void *arg)
{
    pid_t *pids = calloc((size_t) n, sizeof(pids[0]));
    pid_t parent = getpid();
    int failed = NULL == pids;
    fflush(NULL); /* or every child prints what is buffered */
    for (int i = 0; !failed && i < n; i++) {
        pid_t pid = fork();
        if (0 == pid) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (parent != getppid()) {
                _exit(1);
            }
            dn_bench_bind(cpus[i % ncpus]);
            int status = fn(i, arg);
            fflush(NULL);
            _exit(status);
        }
        if (0 > pid) {
            perror("a benchmark process cannot be started");
            failed = 1;
            for (int k = 0; k < i; k++) {
                kill(pids[k], SIGKILL);
            }
            break;
        }
        pids[i] = pid;
    }
    int status = NULL == pids ? 1 : wait_for_all(pids, n);
    free(pids);
    return failed ? 1 : status;
}
