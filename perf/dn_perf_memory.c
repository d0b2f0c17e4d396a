/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * Memory of ports and pairs: what both processes together use more than before, by stage. Private
 * pages, and the pages that exist in the memory files (memfd, /dev/shm) that they hold open.
 */
#include "dn_config.h"

#include <dirent.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "dn_perf.h"

/* Messages a direction that wrap any ring, and use its room for long ones. */
#define FILL_MESSAGES 10000

typedef struct {
    perf_t *perf;
    dn_port_t *ports[PERF_MAX_PORTS]; /* of process 1; process 0 uses the first */
    dn_peer_t *peers[PERF_MAX_PORTS]; /* the other end of each pair, seen from here */
    int num_ports;
    uint64_t received;
    uint64_t sent;
} state_t;

static void count_message(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    state_t *state = arg;
    (void) src;
    (void) tag;
    (void) data;
    (void) len;
    state->received++;
}

/* Bytes of private memory in this process. */
static double private_bytes(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (NULL != f && NULL != fgets(line, sizeof(line), f) && 1 != sscanf(line, "Anonymous: %ld", &kib)) {
    }
    if (NULL != f) {
        fclose(f);
    }
    return 1024.0 * (double) kib;
}

/* Files in memory that this process holds open: name and true size of each. A page is there once it was
   written or reserved, mapped or not. */
static int shared_files(perf_file_t *files, int max)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    while (NULL != folder && n < max && NULL != (entry = readdir(folder))) {
        struct statfs fs;
        struct stat info;
        int fd = atoi(entry->d_name);
        if (0 == fstatfs(fd, &fs) && TMPFS_MAGIC == fs.f_type && 0 == fstat(fd, &info)
            && S_ISREG(info.st_mode)) {
            files[n++] = (perf_file_t){(uint64_t) info.st_dev, (uint64_t) info.st_ino,
                                       512.0 * (double) info.st_blocks};
        }
    }
    if (NULL != folder) {
        closedir(folder);
    }
    return n;
}

static bool seen_before(const perf_shared_t *shared, int process, int at)
{
    const perf_file_t *file = &shared->file[process][at];
    for (int p = 0; p <= process; p++) {
        for (int i = 0; i < (p == process ? at : shared->num_files[p]); i++) {
            if (shared->file[p][i].device == file->device && shared->file[p][i].inode == file->inode) {
                return true;
            }
        }
    }
    return false;
}

/* Both processes together, each file once; the same value in both. */
static double total_bytes(state_t *state)
{
    perf_t *perf = state->perf;
    perf_shared_t *shared = perf->shared;
    perf_barrier(perf, state->ports, state->num_ports);
    shared->value[perf->index] = private_bytes();
    shared->num_files[perf->index] = shared_files(shared->file[perf->index], PERF_MAX_FILES);
    perf_barrier(perf, state->ports, state->num_ports);
    double total = shared->value[0] + shared->value[1];
    for (int p = 0; p < 2; p++) {
        for (int i = 0; i < shared->num_files[p]; i++) {
            total += seen_before(shared, p, i) ? 0 : shared->file[p][i].bytes;
        }
    }
    perf_barrier(perf, state->ports, state->num_ports);
    return total;
}

static void open_ports(state_t *state)
{
    perf_t *perf = state->perf;
    int n = 0 == perf->index ? 1 : PERF_MAX_PORTS;
    for (int i = 0; i < n; i++) {
        uint32_t pid = (uint32_t) (0 == perf->index ? 0 : 1 + i);
        state->ports[i] = perf_open(perf, pid, &perf->shared->address[perf->index][i]);
        perf_must(perf, dn_handler_set(state->ports[i], DN_CHAN_USER, count_message, state),
                  "dn_handler_set");
    }
    state->num_ports = n;
}

static dn_port_t *port_of(state_t *state, int pair)
{
    return state->ports[0 == state->perf->index ? 0 : pair];
}

static void connect_pairs(state_t *state)
{
    perf_t *perf = state->perf;
    for (int i = 0; i < PERF_MAX_PORTS; i++) {
        const perf_address_t *address = &perf->shared->address[1 - perf->index][0 == perf->index ? i : 0];
        state->peers[i] = perf_connect(perf, port_of(state, i), address);
    }
}

static void progress_all(state_t *state)
{
    for (int i = 0; i < state->num_ports; i++) {
        dn_progress(state->ports[i]);
    }
}

/* `count` messages in each direction of the first `pairs` pairs; 0 as `len`: the longest. */
static void talk(state_t *state, int pairs, int count, size_t len)
{
    static char data[1 << 20];
    for (int k = 0; k < count; k++) {
        for (int i = 0; i < pairs; i++) {
            dn_peer_attr_t attr;
            dn_peer_attr(state->peers[i], &attr);
            size_t max = attr.botf_max < sizeof(data) ? attr.botf_max : sizeof(data);
            dn_status_t status;
            while (DN_ERR_AGAIN
                   == (status =
                           dn_botf(state->peers[i], DN_CHAN_USER, 0, NULL, 0, data, 0 == len ? max : len))) {
                progress_all(state);
            }
            perf_must(state->perf, status, "dn_botf");
            state->sent++;
        }
        while (state->received + (uint64_t) (8 * pairs) < state->sent) {
            progress_all(state); /* both ends move on together */
        }
    }
    while (state->received < state->sent) {
        progress_all(state);
    }
}

static void print_stage(const state_t *state, const char *what, double bytes, int n)
{
    if (0 == state->perf->index) {
        printf("%-28s%6d%20.0f\n", what, n, bytes / n);
        fflush(stdout);
    }
}

void perf_memory_run(perf_t *perf)
{
    state_t state = {.perf = perf};
    double now;
    double before = total_bytes(&state);
    if (0 == before) {
        fprintf(stderr, "dn_perf memory: this kernel has no /proc/self/smaps_rollup (Linux 4.14 has)\n");
        return;
    }
    if (0 == perf->index) {
        printf("%-28s%6s%20s\n", "# Growth by", "count", "Bytes each");
    }
    open_ports(&state);
    now = total_bytes(&state);
    print_stage(&state, "open port", now - before, 1 + PERF_MAX_PORTS);
    before = now;
    connect_pairs(&state);
    now = total_bytes(&state);
    print_stage(&state, "connected, idle pair", now - before, PERF_MAX_PORTS);
    double idle = now;
    talk(&state, PERF_MAX_PORTS, 1, 8);
    now = total_bytes(&state);
    print_stage(&state, "pair, one message each way", now - idle, PERF_MAX_PORTS);
    talk(&state, PERF_MAX_PORTS, FILL_MESSAGES, 8);
    talk(&state, PERF_MAX_PORTS, FILL_MESSAGES / 100, 0);
    now = total_bytes(&state);
    print_stage(&state, "pair, rings used up", now - idle, PERF_MAX_PORTS);
    for (int i = 0; i < state.num_ports; i++) {
        dn_close(state.ports[i]);
    }
}
