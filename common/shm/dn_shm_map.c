/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_shm_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dn_log.h"
#include "dn_shm_memory.h"

/** The initial user namespace has this inode number in every Linux kernel. */
#define DN_SHM_INIT_USER_NS 0xeffffffdu

/** Round up to a multiple of a power of 2. */
static uint64_t dn_shm_align_to(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

static uint64_t dn_shm_align(uint64_t bytes)
{
    return dn_shm_align_to(bytes, DN_SHM_PAGE);
}

static uint64_t dn_shm_slots_bytes(uint32_t max_peers)
{
    return dn_shm_align((uint64_t) max_peers * sizeof(dn_shm_slot_t));
}

/** Offset of the rings. The memory before the rings is allocated from the start. */
static uint64_t dn_shm_rings_off(uint32_t max_peers, uint64_t llcm_bytes)
{
    return DN_SHM_PAGE + dn_shm_slots_bytes(max_peers) + dn_shm_align(llcm_bytes);
}

static uint64_t dn_shm_stride(uint32_t lines)
{
    return dn_shm_align(dn_ring_bytes(lines));
}

/** Bytes of the stage and of the counts behind it. */
static uint64_t dn_shm_stage_stride(uint32_t stage_bytes)
{
    return stage_bytes + dn_shm_align((uint64_t) (stage_bytes / DN_SHM_GRANULE) * DN_LINE_BYTES);
}

/** Offset of the stage: a whole number of granules, so that each granule has pages of its own even where pages are larger than DN_SHM_PAGE. */
static uint64_t dn_shm_stage_off(const dn_shm_header_t *sizes)
{
    const uint64_t rings = dn_shm_rings_off(sizes->max_peers, sizes->llcm_bytes)
                           + sizes->max_peers * dn_shm_stride(sizes->ring_lines);

    return 0 == sizes->stage_bytes ? rings : dn_shm_align_to(rings, DN_SHM_GRANULE);
}

static uint64_t dn_shm_bytes(const dn_shm_header_t *sizes)
{
    return dn_shm_stage_off(sizes) + dn_shm_stage_stride(sizes->stage_bytes);
}

/** Set the parts of a mapping from its sizes, which have been checked. */
static void dn_shm_cut(dn_shm_map_t *map, void *mem, const dn_shm_header_t *sizes)
{
    uint8_t *base = mem;
    map->header = mem;
    map->slot = (dn_shm_slot_t *) (base + DN_SHM_PAGE);
    map->llcm = base + DN_SHM_PAGE + dn_shm_slots_bytes(sizes->max_peers);
    map->rings = base + dn_shm_rings_off(sizes->max_peers, sizes->llcm_bytes);
    map->ring_stride = dn_shm_stride(sizes->ring_lines);
    map->stage = base + dn_shm_stage_off(sizes);
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

/** May peers find this process's memfd through /proc? Peers of another user namespace cannot, and none can where this process is not
 * dumpable. */
static int dn_shm_memfd_reachable(void)
{
    return 1 == prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) && DN_SHM_INIT_USER_NS == dn_shm_user_ns();
}

/** Open the backing of this process's mapping: a memfd or a file, as the configuration says and the system allows. */
static dn_status_t dn_shm_backing(dn_shm_t *shm, const dn_job_t *job, uint64_t reserve)
{
    const uint64_t *nonce = dn_port_nonce(shm->iface.port);
    const int automatic = DN_BACKING_AUTO == shm->config.backing;

    shm->path[0] = '\0';
    shm->fd = -1;
    if (DN_BACKING_MEMFD == shm->config.backing || (automatic && dn_shm_memfd_reachable())) {
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
    dn_shm_header_t header = {
        .version = DN_WIRE_VERSION,
        .magic = DN_SHM_MAGIC,
        .pgid = dn_port_group(shm->iface.port)->pgid,
        .pid = job->pid,
        .uid = (uint32_t) geteuid(),
        .os_pid = (uint32_t) getpid(),
        .max_peers = config->max_peers,
        .first = config->first,
        .arrivals = config->first,
        .bell = config->first & ~1u,
        .ring_lines = config->ring_lines,
        .start_time = shm->start_time,
        .llcm_bytes = config->llcm_bytes,
        .cma_probe = (uintptr_t) shm->cma_probe,
        .nlocal = job->nlocal,
    };
    const uint64_t bytes = dn_shm_bytes(&header);
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
    header.stage_bytes = shm->memfd ? config->stage_bytes / DN_SHM_GRANULE * DN_SHM_GRANULE : 0;
    if (!dn_shm_file_size_allowed(dn_shm_bytes(&header))) {
        header.stage_bytes = 0;
    }
    header.bytes = dn_shm_bytes(&header);
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

/** Do the sizes in this header agree with the size of its file, and can this process use them? */
static int dn_shm_header_valid(const dn_shm_header_t *header, uint64_t file_bytes)
{
    const uint32_t lines = header->ring_lines;
    return header->bytes == file_bytes && 1 <= header->max_peers && header->max_peers <= 16384 && 64 <= lines
           && lines <= 4096 && 4096 <= header->llcm_bytes && header->llcm_bytes <= (16u << 20)
           && 0 == header->llcm_bytes % DN_LINE_BYTES && 0 == header->stage_bytes % DN_SHM_GRANULE
           && header->stage_bytes <= DN_STAGE_BYTES_MAX && header->bytes == dn_shm_bytes(header);
}

/** Compare a copy of a peer's header with the identity that the peer should have. */
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
        const int error = errno;
        dn_log_error("the shared memory of PID %" PRIu32
                     " cannot be opened (%s); raise the limits of this process",
                     id->pid, strerror(error));
        return dn_shm_is_shortage(error) ? DN_ERR_NOMEM : DN_ERR_PROTO;
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
    const int fd = dn_shm_open_fd(peer->process.os_pid, peer->process.fd, path);
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
