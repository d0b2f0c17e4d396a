/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What processes of different builds share keeps its place: message lines, slots, headers, keys, status
 * codes. A change here is a change of DN_WIRE_VERSION, or of the library's interface version.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_line.h"
#include "shm/dn_shm_int.h"

static void the_hot_part_of_a_peer(void **state)
{
    assert_int_equal(sizeof(dn_peer_t), 112 + DN_CHAN_MAX * sizeof(void *));
    assert_int_equal(offsetof(dn_peer_t, user), 104);
    assert_int_equal(offsetof(dn_peer_t, enough), 104 + DN_CHAN_MAX * sizeof(void *));
    assert_int_equal(offsetof(dn_peer_t, ops.botf), 0);
    assert_int_equal(offsetof(dn_peer_t, ops.reserve), 8);
    assert_int_equal(offsetof(dn_peer_t, ops.kick), 16);
    assert_int_equal(offsetof(dn_peer_t, ops.aotf), 24);
    assert_int_equal(offsetof(dn_peer_t, ops.push), 32);
    assert_int_equal(offsetof(dn_peer_t, ops.pull), 40);
    assert_int_equal(offsetof(dn_peer_t, ops.atomic), 48);
    assert_int_equal(offsetof(dn_peer_t, ops.fence), 56);
    assert_int_equal(offsetof(dn_peer_t, ops.peek), 64);
    assert_int_equal(offsetof(dn_peer_t, ops.take), 72);
    assert_int_equal(offsetof(dn_peer_t, ops.aotf_line), 80);
    assert_int_equal(offsetof(dn_peer_t, ops.wake), 88);
    assert_int_equal(offsetof(dn_peer_t, ops.lend), 96);
}

static void keys(void **state)
{
    assert_int_equal(sizeof(dn_key_t), 64);
    assert_int_equal(offsetof(dn_key_t, sid), 0);
    assert_int_equal(offsetof(dn_key_t, generation), 4);
    assert_int_equal(offsetof(dn_key_t, len), 8);
    assert_int_equal(offsetof(dn_key_t, way), 16);
    assert_int_equal(sizeof(dn_key_way_t), 24);
    assert_int_equal(offsetof(dn_key_way_t, kind), 0);
    assert_int_equal(offsetof(dn_key_way_t, fd), 4);
    assert_int_equal(offsetof(dn_key_way_t, word), 8);
    assert_int_equal(DN_KEY_SHM, 1);
    assert_int_equal(DN_KEY_OFI, 16);
    assert_int_equal(sizeof(dn_block_t), 16);
    assert_int_equal(sizeof(dn_pgid_t), 16);
}

static void lines(void **state)
{
    assert_int_equal(sizeof(dn_line_t), 64);
    assert_int_equal(offsetof(dn_line_t, head), 0);
    assert_int_equal(offsetof(dn_line_t, data), 8);
    assert_int_equal(offsetof(dn_ring_t, credit), 0);
    assert_int_equal(offsetof(dn_ring_t, line), 128);
    assert_int_equal(dn_ring_bytes(16), 128 + 16 * 64);
    assert_int_equal(dn_line_max(64), 28 * 64 - 8);
    assert_int_equal(dn_line_max(510), 224 * 64 - 8);
    assert_int_equal(dn_line_max(4096), 32704);
}

/** The head word: sequence, length, tag, channel from the low end. */
static void heads(void **state)
{
    static union {
        dn_ring_t ring;
        uint8_t room[128 + 16 * 64];
    } memory;
    dn_line_tx_t tx;

    dn_line_tx_init(&tx, &memory.ring, 16, 0);
    assert_true(dn_line_send(&tx, 0x0b, 0xa5, "12345", 5, NULL, 0));
    assert_true(0x0ba5000500000001 == memory.ring.line[0].head);
    assert_memory_equal(memory.ring.line[0].data, "12345", 5);
}

/** A message of several lines: its bytes follow the head, or start at line 0 when the ring ends before they do. */
static void bytes_behind_heads(void **state)
{
    static union {
        dn_ring_t ring;
        uint8_t room[128 + 16 * 64];
    } memory;
    const dn_line_t *line = memory.ring.line;
    uint8_t data[184];
    dn_line_tx_t tx;

    dn_test_fill(data, sizeof(data), 1);
    dn_line_tx_init(&tx, &memory.ring, 16, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(dn_line_send(&tx, 8, 0, data, 10, data + 10, sizeof(data) - 10));
    }
    assert_true(0x080000b800000001 == line[0].head);
    assert_memory_equal(line[0].data, data, sizeof(data));
    assert_true(0x080000b800000004 == line[3].head);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(dn_line_send(&tx, 8, 0, NULL, 0, data, 120));
        assert_true(dn_line_send(&tx, 8, 0, NULL, 0, NULL, 0));
    }
    memory.ring.credit = 6;
    assert_true(dn_line_send(&tx, 8, 0, data, sizeof(data), NULL, 0));
    assert_true(0x080000b800000010 == line[15].head);
    assert_memory_equal(&line[0], data, sizeof(data));
    memory.ring.credit = 19;
    assert_true(dn_line_send(&tx, 8, 0, NULL, 0, NULL, 0));
    assert_true(0x0800000000000014 == line[3].head);
}

/** Beyond the first quarter, with a quarter free at line 0, the head says that the next one is there. */
static void rewinding_heads(void **state)
{
    static union {
        dn_ring_t ring;
        uint8_t room[128 + 16 * 64];
    } memory;
    const dn_line_t *line = memory.ring.line;
    dn_line_tx_t tx;

    dn_line_tx_init(&tx, &memory.ring, 16, 0);
    for (unsigned i = 0; i < 8; i++) {
        assert_true(dn_line_send(&tx, 8, 0, NULL, 0, NULL, 0));
    }
    memory.ring.credit = 4;
    assert_true(dn_line_send(&tx, 8, 0, NULL, 0, NULL, 0));
    assert_true(dn_line_send(&tx, 8, 0, NULL, 0, NULL, 0));
    memory.ring.credit = 6;
    assert_true(dn_line_send(&tx, 8, 0, "1", 1, NULL, 0));
    assert_true(dn_line_send(&tx, 8, 0, NULL, 0, NULL, 0));
    assert_true(0x0800000000000009 == line[8].head);
    assert_true(0x080000000000000a == line[9].head);
    assert_true(0x080080010000000b == line[10].head);
    assert_true(0x0800000000000011 == line[0].head);
}

static void slots(void **state)
{
    assert_int_equal(sizeof(dn_shm_slot_t), 64);
    assert_int_equal(offsetof(dn_shm_slot_t, state), 0);
    assert_int_equal(offsetof(dn_shm_slot_t, pid), 4);
    assert_int_equal(offsetof(dn_shm_slot_t, os_pid), 8);
    assert_int_equal(offsetof(dn_shm_slot_t, fd), 12);
    assert_int_equal(offsetof(dn_shm_slot_t, start_time), 16);
    assert_int_equal(offsetof(dn_shm_slot_t, nonce), 24);
    assert_int_equal(offsetof(dn_shm_slot_t, pgid), 40);
    assert_int_equal(offsetof(dn_shm_slot_t, pages), 56);
    assert_int_equal(offsetof(dn_shm_slot_t, life), 60);
    assert_int_equal(DN_SHM_FREE, 0);
    assert_int_equal(DN_SHM_CLAIMED, 1);
    assert_int_equal(DN_SHM_READY, 2);
    assert_int_equal(DN_SHM_CLOSED, 3);
}

static void headers(void **state)
{
    assert_int_equal(offsetof(dn_shm_header_t, version), 0);
    assert_int_equal(offsetof(dn_shm_header_t, magic), 4);
    assert_int_equal(offsetof(dn_shm_header_t, bytes), 8);
    assert_int_equal(offsetof(dn_shm_header_t, pgid), 16);
    assert_int_equal(offsetof(dn_shm_header_t, nonce), 32);
    assert_int_equal(offsetof(dn_shm_header_t, pid), 48);
    assert_int_equal(offsetof(dn_shm_header_t, uid), 52);
    assert_int_equal(offsetof(dn_shm_header_t, os_pid), 56);
    assert_int_equal(offsetof(dn_shm_header_t, max_peers), 60);
    assert_int_equal(offsetof(dn_shm_header_t, ring_lines), 64);
    assert_int_equal(offsetof(dn_shm_header_t, stage_bytes), 68);
    assert_int_equal(offsetof(dn_shm_header_t, start_time), 72);
    assert_int_equal(offsetof(dn_shm_header_t, llcm_bytes), 80);
    assert_int_equal(offsetof(dn_shm_header_t, cma_probe), 88);
    assert_int_equal(offsetof(dn_shm_header_t, units), 96);
    assert_int_equal(offsetof(dn_shm_header_t, arrivals), 256);
    assert_int_equal(offsetof(dn_shm_header_t, closed), 260);
    assert_int_equal(offsetof(dn_shm_header_t, bell), 264);
    assert_int_equal(offsetof(dn_shm_header_t, help), 320);
    assert_int_equal(sizeof(dn_shm_help_t), 64);
}

static void codes(void **state)
{
    assert_int_equal(DN_WIRE_VERSION, 26);
    assert_int_equal(DN_INPROGRESS, 1);
    assert_int_equal(DN_ERR_AGAIN, -1);
    assert_int_equal(DN_ERR_PARAM, -2);
    assert_int_equal(DN_ERR_RANGE, -3);
    assert_int_equal(DN_ERR_UNREACH, -4);
    assert_int_equal(DN_ERR_UNSUPPORTED, -5);
    assert_int_equal(DN_ERR_NOMEM, -6);
    assert_int_equal(DN_ERR_PROTO, -7);
    assert_int_equal(DN_ERR_VERSION, -8);
    assert_int_equal(DN_ERR_ACCESS, -9);
    assert_int_equal(DN_CHAN_BTL, 2);
    assert_int_equal(DN_CHAN_USER, 8);
    assert_int_equal(DN_CHAN_MAX, 16);
    assert_int_equal(DN_AMO_ADD, 0);
    assert_int_equal(DN_AMO_CAS, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hot_part_of_a_peer),
        cmocka_unit_test(keys),
        cmocka_unit_test(lines),
        cmocka_unit_test(heads),
        cmocka_unit_test(bytes_behind_heads),
        cmocka_unit_test(rewinding_heads),
        cmocka_unit_test(slots),
        cmocka_unit_test(headers),
        cmocka_unit_test(codes),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
