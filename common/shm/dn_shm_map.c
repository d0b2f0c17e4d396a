/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <unistd.h>

#include "dn_log.h"
#include "dn_shm_memory.h"

/** The initial user namespace has this inode number in every Linux kernel. */
#define DN_SHM_INIT_USER_NS 0xeffffffdu

/** How the name of a file of ours begins. */
#define DN_SHM_PREFIX "dimmnet."
/** Bytes of such a name, its end included. */
#define DN_SHM_NAME_MAX (sizeof(DN_SHM_PREFIX) + 32)
/** Where files are when the job has no folder of its own. */
#define DN_SHM_FOLDER "/dev/shm"

static uint64_t dn_shm_align(uint64_t bytes)
{
    return (bytes + DN_SHM_PAGE - 1) & ~(uint64_t) (DN_SHM_PAGE - 1);
}

static uint64_t dn_shm_slots_bytes(uint32_t max_peers)
{
    return dn_shm_align((uint64_t) max_peers * sizeof(dn_shm_slot_t));
}

/** Offset of the rings: all before them has memory from the start. */
static uint64_t dn_shm_rings_off(uint32_t max_peers, uint64_t llcm_bytes)
{
    return DN_SHM_PAGE + dn_shm_slots_bytes(max_peers) + dn_shm_align(llcm_bytes);
}

static uint64_t dn_shm_stride(uint32_t lines)
{
    return dn_shm_align(dn_ring_bytes(lines));
}

/** Bytes of the stage with the counts behind it. */
static uint64_t dn_shm_stage_stride(uint32_t stage_bytes)
{
    return stage_bytes + dn_shm_align((uint64_t) (stage_bytes / DN_SHM_GRANULE) * DN_LINE_BYTES);
}

/** Cut a mapping into its parts by sizes that have been checked. */
static void dn_shm_cut(dn_shm_map_t *map, void *mem, const dn_shm_header_t *sizes)
{
    uint8_t *base = mem;
    map->header = mem;
    map->slot = (dn_shm_slot_t *) (base + DN_SHM_PAGE);
    map->llcm = base + DN_SHM_PAGE + dn_shm_slots_bytes(sizes->max_peers);
    map->rings = base + dn_shm_rings_off(sizes->max_peers, sizes->llcm_bytes);
    map->ring_stride = dn_shm_stride(sizes->ring_lines);
    map->stage = map->rings + sizes->max_peers * map->ring_stride;
    map->bytes = sizes->bytes;
    map->max_peers = sizes->max_peers;
    map->ring_lines = sizes->ring_lines;
    map->first = sizes->first;
    map->stage_bytes = sizes->stage_bytes;
    map->llcm_bytes = sizes->llcm_bytes;
    map->cma_probe = sizes->cma_probe;
    map->units = sizes->units;
}

static uint64_t dn_shm_inode(const char *path)
{
    struct stat info;
    return 0 == stat(path, &info) ? (uint64_t) info.st_ino : 0;
}

uint64_t dn_shm_user_ns(void)
{
    return dn_shm_inode("/proc/self/ns/user");
}

void dn_shm_host(uint8_t host[16])
{
    char text[40] = "";
    uint64_t word[2] = {dn_shm_inode("/proc/self/ns/pid"), dn_shm_inode("/proc/self/ns/ipc")};

    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (NULL != file) {
        if (NULL == fgets(text, sizeof(text), file)) {
            text[0] = '\0';
        }
        fclose(file);
    }
    for (size_t i = 0; '\0' != text[i]; i++) {
        /* FNV-1a: spreads the boot's id over both words. */
        word[i % 2] = (word[i % 2] ^ (uint8_t) text[i]) * UINT64_C(0x100000001b3);
    }
    memcpy(host, word, sizeof(word));
}

/** May peers find our memfd through /proc? Not from another user namespace, nor when we are not dumpable. */
static int dn_shm_memfd_reachable(void)
{
    return 1 == prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) && DN_SHM_INIT_USER_NS == dn_shm_user_ns();
}

/** Look at what a name stands for, and open it when it is a regular file. @return fd, -1: errno. */
static int dn_shm_open_regular(int folder, const char *name, int flags)
{
    char again[48];
    struct stat info;
    int fd = -1;

    const int seen = openat(folder, name, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));
    if (0 > seen) {
        return -1;
    }
    if (0 != fstat(seen, &info) || !S_ISREG(info.st_mode)) {
        errno = EPROTO;
    } else {
        snprintf(again, sizeof(again), "/proc/thread-self/fd/%d", seen);
        fd = open(again, (flags & ~O_NOFOLLOW) | O_CLOEXEC);
    }
    const int error = errno;
    close(seen);
    errno = error;
    return fd;
}

/**
 * Remove a file that a killed process of ours left: its header names a process that is gone, or nobody, while no process holds
 * the lock under which headers are written.
 */
static void dn_shm_sweep_file(int folder, const char *name)
{
    dn_shm_header_t header;
    struct statfs system;
    struct stat info;
    uint8_t host[16];

    dn_shm_host(host);
    const int fd = dn_shm_open_regular(folder, name, O_RDONLY | O_NOFOLLOW);
    if (0 > fd) {
        return;
    }
    /* The lock ends with the process that has it, or when this closes the file. */
    const int locked = 0 == flock(fd, LOCK_EX | LOCK_NB);
    if ((locked || EWOULDBLOCK != errno) && 0 == fstat(fd, &info) && info.st_uid == geteuid()) {
        const int whole =
            (ssize_t) sizeof(header) == pread(fd, &header, sizeof(header), 0) && DN_SHM_MAGIC == header.magic;
        /* Elsewhere than in memory the lock of another host might not be seen. */
        const int left = whole ? 0 == memcmp(header.host, host, sizeof(host))
                                     && dn_shm_gone(header.os_pid, header.start_time)
                               : locked && 0 == fstatfs(fd, &system) && TMPFS_MAGIC == system.f_type;
        if (left) {
            unlinkat(folder, name, 0);
        }
    }
    close(fd);
}

static void dn_shm_sweep(const char *path)
{
    DIR *folder = opendir(path);
    if (NULL == folder) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); NULL != entry; entry = readdir(folder)) {
        if (0 == strncmp(entry->d_name, DN_SHM_PREFIX, strlen(DN_SHM_PREFIX))) {
            dn_shm_sweep_file(dirfd(folder), entry->d_name);
        }
    }
    closedir(folder);
}

/** The name of a port's file, in any folder. */
static void dn_shm_name(const uint64_t nonce[2], char name[DN_SHM_NAME_MAX])
{
    snprintf(name, DN_SHM_NAME_MAX, DN_SHM_PREFIX "%016" PRIx64 "%016" PRIx64, nonce[0], nonce[1]);
}

/** Create a file, locked until its header says whose it is. @return fd, -1: errno. */
static int dn_shm_open_locked(const char *path)
{
    struct stat info;

    for (;;) {
        const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (0 > fd) {
            return -1;
        }
        while (0 != flock(fd, LOCK_EX) && EINTR == errno) {
        }
        /* Another process that sweeps may have taken it for left over before it was locked. */
        if (0 != fstat(fd, &info) || 0 != info.st_nlink) {
            return fd;
        }
        close(fd);
    }
}

/** Create a file of our own in @p dir and give @p reserve bytes their space. @return fd, -1: errno. */
static int dn_shm_create_file(dn_shm_t *shm, const char *dir, const uint64_t nonce[2], uint64_t reserve)
{
    char name[DN_SHM_NAME_MAX];

    dn_shm_name(nonce, name);
    const int n = snprintf(shm->path, sizeof(shm->path), "%s/%s", dir, name);
    if (0 > n || sizeof(shm->path) <= (size_t) n) {
        errno = ENAMETOOLONG;
        return -1;
    }
    dn_shm_sweep(dir);
    const int fd = dn_shm_open_locked(shm->path);
    if (0 > fd) {
        return -1;
    }
    const int error = dn_shm_allocate(fd, 0, reserve);
    if (0 != error) {
        close(fd);
        unlink(shm->path);
        errno = error;
        return -1;
    }
    return fd;
}

/** A folder whose files are memory, the job's own when it is, else /dev/shm. */
static const char *dn_shm_folder(const dn_job_t *job)
{
    struct statfs info;
    if (NULL != job->dir && 0 == statfs(job->dir, &info) && TMPFS_MAGIC == info.f_type) {
        return job->dir;
    }
    return DN_SHM_FOLDER;
}

/** Open the backing of the own mapping: memfd or file, by configuration and by what works. */
static dn_status_t dn_shm_backing(dn_shm_t *shm, const dn_job_t *job, uint64_t reserve)
{
    const uint64_t *nonce = dn_port_nonce(shm->iface.port);
    const int automatic = 0 == strcmp(shm->config.backing, "auto");

    shm->path[0] = '\0';
    shm->fd = -1;
    if (0 == strcmp(shm->config.backing, "memfd") || (automatic && dn_shm_memfd_reachable())) {
        shm->fd = memfd_create("dimmnet", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        const int error = 0 > shm->fd ? errno : dn_shm_allocate(shm->fd, 0, reserve);
        if (0 == error) {
            shm->memfd = 1;
            return DN_OK;
        }
        if (0 <= shm->fd) {
            close(shm->fd);
        }
        if (!automatic) {
            dn_log_error("shared memory for %" PRIu64
                         " bytes cannot be made by memfd_create (%s); set the backing to "
                         "auto or file",
                         reserve, strerror(error));
            return DN_ERR_NOMEM;
        }
    }
    const char *folder = dn_shm_folder(job);
    shm->fd = dn_shm_create_file(shm, folder, nonce, reserve);
    if (0 > shm->fd && NULL != job->dir && 0 != strcmp(folder, job->dir)) {
        folder = job->dir;
        shm->fd = dn_shm_create_file(shm, folder, nonce, reserve);
    }
    if (0 > shm->fd) {
        const int error = errno;
        shm->path[0] = '\0';
        dn_log_error("no room for %" PRIu64
                     " bytes of shared memory in %s (%s); free some there, or set the backing "
                     "to memfd",
                     reserve, folder, strerror(error));
        return EACCES == error || EPERM == error || EROFS == error ? DN_ERR_ACCESS : DN_ERR_NOMEM;
    }
    return DN_OK;
}

dn_status_t dn_shm_create(dn_shm_t *shm, const dn_job_t *job)
{
    const dn_config_t *config = &shm->config;
    const uint64_t reserve = dn_shm_rings_off(config->max_peers, config->llcm_bytes);
    const uint64_t bytes = reserve + config->max_peers * dn_shm_stride(config->ring_lines);
    if (!dn_shm_file_size_allowed(bytes)) {
        dn_log_error("shared memory of %" PRIu64
                     " bytes is more than a file of this process may have (RLIMIT_FSIZE); "
                     "raise ulimit -f, or lower max_peers or ring_lines",
                     bytes);
        return DN_ERR_NOMEM;
    }
    dn_status_t status = dn_shm_backing(shm, job, reserve);
    if (DN_OK != status) {
        return status;
    }
    shm->counted = dn_memory_is_counted();
    /* A file would need room for all of it from the start. */
    uint32_t stage_bytes = shm->memfd ? config->stage_bytes / DN_SHM_GRANULE * DN_SHM_GRANULE : 0;
    if (!dn_shm_file_size_allowed(bytes + dn_shm_stage_stride(stage_bytes))) {
        stage_bytes = 0;
    }
    dn_shm_header_t header = {
        .version = DN_WIRE_VERSION,
        .magic = DN_SHM_MAGIC,
        .bytes = bytes + dn_shm_stage_stride(stage_bytes),
        .pgid = dn_port_group(shm->iface.port)->pgid,
        .pid = job->pid,
        .uid = (uint32_t) geteuid(),
        .os_pid = (uint32_t) getpid(),
        .max_peers = config->max_peers,
        .first = config->first,
        .arrivals = config->first,
        .bell = config->first & ~1u,
        .ring_lines = config->ring_lines,
        .stage_bytes = stage_bytes,
        .start_time = shm->start_time,
        .llcm_bytes = config->llcm_bytes,
        .cma_probe = (uintptr_t) shm->cma_probe,
        .nlocal = job->nlocal,
    };
    memcpy(header.nonce, dn_port_nonce(shm->iface.port), sizeof(header.nonce));
    memcpy(header.host, shm->host, sizeof(header.host));
    dn_topo_allowed(&header.units);

    if (0 != ftruncate(shm->fd, (off_t) header.bytes)) {
        goto err_destroy;
    }
    if (shm->memfd) {
        /* No peer can make the mapping shorter under our feet. */
        fcntl(shm->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    }
    void *mem = mmap(NULL, header.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, shm->fd, 0);
    if (MAP_FAILED == mem) {
        goto err_destroy;
    }
    memcpy(mem, &header, sizeof(header));
    if (!shm->memfd) {
        flock(shm->fd, LOCK_UN);
    }
    dn_shm_cut(&shm->map, mem, &header);
    return DN_OK;

err_destroy:
    dn_log_error("%" PRIu64
                 " bytes of address space for shared memory are refused (%s); lower max_peers or the ring's "
                 "sizes",
                 header.bytes, strerror(errno));
    dn_shm_destroy(shm);
    return DN_ERR_NOMEM;
}

void dn_shm_unlink(dn_shm_t *shm)
{
    if ('\0' != shm->path[0]) {
        unlink(shm->path);
        shm->path[0] = '\0';
    }
}

void dn_shm_destroy(dn_shm_t *shm)
{
    dn_shm_unlink(shm);
    dn_shm_detach(&shm->map);
    close(shm->fd);
}

int dn_shm_path_valid(const dn_shm_t *shm, const dn_shm_where_t *where)
{
    char name[DN_SHM_NAME_MAX];
    const char *slash = strrchr(where->path, '/');

    if ('\0' == where->path[0]) {
        return 1;
    }
    dn_shm_name(where->nonce, name);
    if (NULL == slash || 0 != strcmp(slash + 1, name)) {
        return 0;
    }
    const size_t folder = (size_t) (slash - where->path);
    return shm->folders
           || (strlen(DN_SHM_FOLDER) == folder && 0 == memcmp(where->path, DN_SHM_FOLDER, folder));
}

/** The same by the threads of a process: one whose first thread has ended shows its descriptors only there. */
static int dn_shm_open_by_thread(uint32_t os_pid, int32_t fd)
{
    char path[64];
    struct dirent *entry;
    int opened = -1;
    int error = ENOENT;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", os_pid);
    DIR *folder = opendir(path);
    if (NULL == folder) {
        return -1;
    }
    while (0 > opened && (ENOENT == error || ESRCH == error) && NULL != (entry = readdir(folder))) {
        const unsigned long thread = strtoul(entry->d_name, NULL, 10);
        if (0 != thread) {
            snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%lu/fd/%" PRId32, os_pid, thread, fd);
            opened = dn_shm_open_regular(AT_FDCWD, path, O_RDWR);
            error = errno;
        }
    }
    closedir(folder);
    errno = error;
    return opened;
}

int dn_shm_open_fd(uint32_t os_pid, int32_t fd, const char *path)
{
    char proc[48];

    if ('\0' != path[0]) {
        const int opened = dn_shm_open_regular(AT_FDCWD, path, O_RDWR | O_NOFOLLOW);
        if (0 <= opened || ENOENT != errno) {
            return opened;
        }
        /* Unlinked since every process of the group has it; a later one may find it as it would a memfd. */
    }
    snprintf(proc, sizeof(proc), "/proc/%" PRIu32 "/fd/%" PRId32, os_pid, fd);
    const int opened = dn_shm_open_regular(AT_FDCWD, proc, O_RDWR);
    return 0 <= opened || (ENOENT != errno && ESRCH != errno) ? opened : dn_shm_open_by_thread(os_pid, fd);
}

/** Is this header what its file's size allows and what we can use? */
static int dn_shm_header_valid(const dn_shm_header_t *header, uint64_t file_bytes)
{
    const uint32_t lines = header->ring_lines;
    return header->bytes == file_bytes && 1 <= header->max_peers && header->max_peers <= 16384 && 64 <= lines
           && lines <= 4096 && 4096 <= header->llcm_bytes && header->llcm_bytes <= (16u << 20)
           && 0 == header->llcm_bytes % DN_LINE_BYTES && 0 == header->stage_bytes % DN_SHM_GRANULE
           && header->stage_bytes <= DN_STAGE_BYTES_MAX
           && header->bytes
                  == dn_shm_rings_off(header->max_peers, header->llcm_bytes)
                         + header->max_peers * dn_shm_stride(lines)
                         + dn_shm_stage_stride(header->stage_bytes);
}

/** Compare a copy of a peer's header with who it should be. */
static dn_status_t dn_shm_identify(const dn_shm_header_t *header, const dn_shm_where_t *where,
                                   const dn_peer_base_t *id)
{
    if (DN_SHM_MAGIC != header->magic || 0 != memcmp(header->nonce, where->nonce, sizeof(header->nonce))
        || header->start_time != where->start_time || header->os_pid != where->os_pid
        || header->bytes != where->bytes) {
        dn_log_error("the shared memory named by the address of PID %" PRIu32
                     " is not that of a dimmnet port",
                     id->pid);
        return DN_ERR_PROTO;
    }
    if (DN_WIRE_VERSION != header->version) {
        dn_log_error("PID %" PRIu32 " uses version %" PRIu32
                     " of dimmnet's shared memory, this process version %d; "
                     "install the same dimmnet everywhere",
                     id->pid, header->version, DN_WIRE_VERSION);
        return DN_ERR_VERSION;
    }
    if (0 != memcmp(&header->pgid, &id->pgid, sizeof(header->pgid)) || header->pid != id->pid) {
        dn_log_error("the process that claims to be PID %" PRIu32 " of a group is not in it; refused",
                     id->pid);
        return DN_ERR_ACCESS;
    }
    return DN_OK;
}

/** Is this open file one that a folder names, or once named, as the port's file is? A memfd is in no folder. */
static int dn_shm_is_named(int fd, const uint64_t nonce[2])
{
    char proc[48];
    char path[DN_SHM_PATH_MAX + 16];
    char name[DN_SHM_NAME_MAX];

    snprintf(proc, sizeof(proc), "/proc/thread-self/fd/%d", fd);
    const ssize_t len = readlink(proc, path, sizeof(path) - 1);
    if (0 > len) {
        return 0;
    }
    path[len] = '\0';
    const char *slash = strrchr(path, '/');
    dn_shm_name(nonce, name);
    return 0 != strncmp(path, "/memfd:", 7) && NULL != slash && 0 == strncmp(slash + 1, name, strlen(name));
}

dn_status_t dn_shm_attach(const dn_shm_where_t *where, const dn_peer_base_t *id, dn_shm_map_t *map)
{
    dn_shm_header_t header;
    struct stat info;

    const int fd = dn_shm_open_fd(where->os_pid, where->fd, where->path);
    if (0 > fd) {
        if (EACCES == errno || EPERM == errno) {
            return DN_ERR_UNSUPPORTED;
        }
        if (ENOENT == errno || ESRCH == errno) {
            return DN_ERR_UNREACH;
        }
        if (EPROTO == errno) {
            dn_log_error("the shared memory of PID %" PRIu32 " is not a file; refused", id->pid);
            return DN_ERR_PROTO;
        }
        dn_log_error("the shared memory of PID %" PRIu32
                     " cannot be opened (%s); raise the limits of this process",
                     id->pid, strerror(errno));
        return DN_ERR_NOMEM;
    }
    dn_status_t status = DN_ERR_PROTO;
    if (0 != fstat(fd, &info) || (off_t) sizeof(header) > info.st_size
        || (ssize_t) sizeof(header) != pread(fd, &header, sizeof(header), 0)) {
        dn_log_error("the shared memory of PID %" PRIu32 " is truncated; refused", id->pid);
        goto out_close;
    }
    /* A file has no seals (an error), or cannot have any (F_SEAL_SEAL alone), as a memfd may: its owner is trusted. */
    const int seals = fcntl(fd, F_GET_SEALS);
    const int file = (0 > seals || F_SEAL_SEAL == seals) && dn_shm_is_named(fd, where->nonce);
    if (!file && (0 >= seals || 0 == (seals & F_SEAL_SHRINK))) {
        dn_log_error("the shared memory of PID %" PRIu32 " is not sealed against shrinking; refused",
                     id->pid);
        goto out_close;
    }
    if (info.st_uid != geteuid()) {
        dn_log_error("the shared memory of PID %" PRIu32
                     " belongs to user %u, this process to user %u; refused",
                     id->pid, (unsigned) info.st_uid, (unsigned) geteuid());
        status = DN_ERR_ACCESS;
        goto out_close;
    }
    status = dn_shm_identify(&header, where, id);
    if (DN_OK != status) {
        goto out_close;
    }
    if (!dn_shm_header_valid(&header, (uint64_t) info.st_size)) {
        dn_log_error("the shared memory of PID %" PRIu32 " has a malformed header; refused", id->pid);
        status = DN_ERR_PROTO;
        goto out_close;
    }
    void *mem = mmap(NULL, header.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (MAP_FAILED == mem) {
        dn_log_error("no address space for the %" PRIu64 " bytes of PID %" PRIu32 " (%s); lower max_peers",
                     header.bytes, id->pid, strerror(errno));
        status = DN_ERR_NOMEM;
        goto out_close;
    }
    dn_shm_cut(map, mem, &header);
    map->file = file;
out_close:
    close(fd);
    return status;
}

void dn_shm_detach(dn_shm_map_t *map)
{
    if (NULL != map->header) {
        munmap(map->header, map->bytes);
        map->header = NULL;
    }
}

dn_status_t dn_shm_reserve_ring(const dn_shm_peer_t *peer, const char *path, uint32_t slot)
{
    const dn_shm_map_t *map = &peer->map;

    if (!map->file && !((const dn_shm_t *) peer->base.iface)->counted) {
        return DN_OK;
    }
    const uint64_t off = (uint64_t) (map->rings - (uint8_t *) map->header) + slot * map->ring_stride;
    const int fd = dn_shm_open_fd(peer->os_pid, peer->fd, path);
    const int error = 0 > fd ? errno : dn_shm_allocate(fd, off, map->ring_stride);
    if (0 <= fd) {
        close(fd);
    }
    if (0 != error) {
        dn_log_error("no memory for a ring of %zu bytes in that of PID %" PRIu32
                     " (%s); free some, lower ring_lines, or, for a file, set the backing to memfd",
                     map->ring_stride, peer->base.pid, strerror(error));
        return DN_ERR_NOMEM;
    }
    return DN_OK;
}
