/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A peer that names ever more segments: so many mappings are kept, and no more. Who uses thousands of them goes on.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shm/dn_shm_int.h"

enum { BYTES = 512, MORE = 1000, FORGED_SID = 1000000 };

/** What was mapped of a peer's segments: a name that is in no other test's mappings. */
static const char name[] = "dn many segments";

/** Segments of the process itself, one file for all: its head says which one it is for now. */
static dn_shm_segment_head_t *head;
static int file;

/** A port with a connection to itself, and a segment that looks like the library's. */
static void open_and_forge(dn_world_t *world)
{
    dn_world_open(world);
    dn_world_connect_to(world, 0);
    file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    dn_check(0 <= file);
    dn_check_equal(ftruncate(file, DN_SHM_PAGE + BYTES), 0);
    dn_check_equal(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    head = mmap(NULL, DN_SHM_PAGE + BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    dn_check(MAP_FAILED != (void *) head);
    *head = (dn_shm_segment_head_t){.magic = DN_SHM_MAGIC, .live = 1, .len = BYTES};
    dn_test_fill((uint8_t *) head + DN_SHM_PAGE, BYTES, 1);
}

/** Announce one more: the key of number @p i. */
static dn_key_t announce(uint32_t i)
{
    head->sid = FORGED_SID + i;
    return (dn_key_t){.sid = head->sid,
                      .generation = 1,
                      .len = BYTES,
                      .way = {{.kind = DN_SHM_KEY_MAPPED, .fd = (uint32_t) file}}};
}

/** Mappings of that file, but for the one of this test. */
static unsigned mappings(void)
{
    char line[512];
    unsigned found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");

    dn_check(NULL != maps);
    while (NULL != fgets(line, sizeof(line), maps)) {
        found += NULL != strstr(line, name);
    }
    fclose(maps);
    return found - 1;
}

static void pull(dn_world_t *world, uint32_t i)
{
    uint8_t got[BYTES] = {0};
    const dn_key_t key = announce(i);
    const dn_xfer_t xfer = {.local = got, .key = &key, .len = BYTES};

    dn_check_equal(dn_world_pull(world, world->peer[0], &xfer), DN_OK);
    dn_check_bytes(got, BYTES, 1);
}

/** Each is pulled from, in turn and again, with another one in between. */
static void segments_in_turn_are_mapped_again(dn_world_t *world)
{
    open_and_forge(world);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < DN_SHM_VIEWS + MORE; i++) {
            pull(world, i);
            pull(world, 0);
        }
    }
    dn_check_equal(mappings(), DN_SHM_VIEWS);
    dn_world_stop(world);
    dn_check_equal(mappings(), 0);
}

/** What a caller was given stays where it is; beyond the bound it is told so, by one sentence, and used segments make room. */
static void segments_given_to_callers_are_bounded(dn_world_t *world)
{
    void *base = NULL;
    void *first = NULL;

    open_and_forge(world);
    for (uint32_t i = 0; i < MORE; i++) {
        pull(world, DN_SHM_VIEWS + i);
    }
    for (uint32_t i = 0; i < DN_SHM_VIEWS; i++) {
        const dn_key_t key = announce(i);
        dn_check_equal(dn_segment_map(world->peer[0], &key, &base), DN_OK);
        first = 0 == i ? base : first;
    }
    dn_check_equal(mappings(), DN_SHM_VIEWS);
    dn_test_log_expect();
    for (uint32_t i = 0; i < MORE; i++) {
        const dn_key_t key = announce(DN_SHM_VIEWS + i);
        dn_check_equal(dn_segment_map(world->peer[0], &key, &base), DN_ERR_UNSUPPORTED);
    }
    dn_check(dn_test_log_said(1, "more segments than the 4096"));
    dn_check_equal(mappings(), DN_SHM_VIEWS);
    const dn_key_t key = announce(0);
    dn_check_equal(dn_segment_map(world->peer[0], &key, &base), DN_OK);
    dn_check(base == first);
    dn_check_bytes(base, BYTES, 1);
    dn_world_stop(world);
    dn_check_equal(mappings(), 0);
}

/** No descriptor is left to map the segment for the first of two operations: the second does not overtake it. */
static void atomics_keep_their_order_without_files(dn_world_t *world)
{
    uint64_t old[2] = {9, 9};
    dn_segment_t *segment;
    struct rlimit limit;
    dn_key_t key;

    dn_world_open(world);
    dn_world_connect_to(world, 0);
    dn_check_equal(dn_segment_alloc(world->port, BYTES, &segment), DN_OK);
    dn_segment_key(segment, &key);
    dn_check_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_max = limit.rlim_max};
    dn_check_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    dn_check_equal(dn_swap(world->peer[0], &key, 0, 8, 1, &old[0], NULL), DN_INPROGRESS);
    dn_check_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    dn_check_equal(dn_swap(world->peer[0], &key, 0, 8, 2, &old[1], NULL), DN_INPROGRESS);
    dn_world_flush(world, world->peer[0]);
    dn_check_equal(old[0], 0);
    dn_check_equal(old[1], 1);
    /* None of them is left: the segment is mapped. */
    dn_check_equal(dn_swap(world->peer[0], &key, 0, 8, 3, &old[0], NULL), DN_OK);
    dn_check_equal(old[0], 2);
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"segments_in_turn_are_mapped_again", 1, segments_in_turn_are_mapped_again},
    {"atomics_keep_their_order_without_files", 1, atomics_keep_their_order_without_files},
    {"segments_given_to_callers_are_bounded", 1, segments_given_to_callers_are_bounded},
};

/** usage: shm_view [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "window", .device = "shm"};

    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, 1 < argc ? argv[1] : NULL);
}
