/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What programs and libdimmnet share keeps its size and places, so that a program built for one release runs with the next: the
 * structures of the public headers, but for those of devices, which have a version of their own. A change here counts up the soname
 * (common/Makefile.am), the package's name in debian/, and these numbers. test/lint/library_interface holds the functions.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_prog.h"
#include "dn_tree.h"
#include "dn_tree_long.h"
#include "dn_wait.h"

#define SIZE(type, bytes)        #type, sizeof(type), bytes
#define PLACE(type, member, off) #type "." #member, offsetof(type, member), off

static const struct {
    const char *what;
    size_t is;
    size_t promised;
} layout[] = {
    {SIZE(dn_group_key_t, 16)},
    {PLACE(dn_group_key_t, byte, 0)},
    {SIZE(dn_pgid_t, 16)},
    {PLACE(dn_pgid_t, byte, 0)},
    {SIZE(dn_sg_t, 24)},
    {PLACE(dn_sg_t, block, 0)},
    {PLACE(dn_sg_t, count, 8)},
    {PLACE(dn_sg_t, use, 16)},
    {SIZE(dn_comp_t, 8)},
    {PLACE(dn_comp_t, fn, 0)},
    {SIZE(dn_xfer_t, 96)},
    {PLACE(dn_xfer_t, local, 0)},
    {PLACE(dn_xfer_t, local_sg, 8)},
    {PLACE(dn_xfer_t, key, 16)},
    {PLACE(dn_xfer_t, roff, 24)},
    {PLACE(dn_xfer_t, remote_sg, 32)},
    {PLACE(dn_xfer_t, len, 40)},
    {PLACE(dn_xfer_t, comp, 48)},
    {PLACE(dn_xfer_t, flags, 56)},
    {PLACE(dn_xfer_t, local_status, 64)},
    {PLACE(dn_xfer_t, local_value, 72)},
    {PLACE(dn_xfer_t, remote_status, 80)},
    {PLACE(dn_xfer_t, remote_value, 88)},
    {SIZE(dn_amo_t, 56)},
    {PLACE(dn_amo_t, op, 0)},
    {PLACE(dn_amo_t, width, 4)},
    {PLACE(dn_amo_t, operand, 8)},
    {PLACE(dn_amo_t, compare, 16)},
    {PLACE(dn_amo_t, result, 24)},
    {PLACE(dn_amo_t, key, 32)},
    {PLACE(dn_amo_t, roff, 40)},
    {PLACE(dn_amo_t, comp, 48)},
    {SIZE(dn_window_t, 24)},
    {PLACE(dn_window_t, data, 0)},
    {PLACE(dn_window_t, len, 8)},
    {PLACE(dn_window_t, mark, 16)},
    {SIZE(dn_message_t, 32)},
    {PLACE(dn_message_t, data, 0)},
    {PLACE(dn_message_t, len, 8)},
    {PLACE(dn_message_t, tag, 16)},
    {PLACE(dn_message_t, mark, 24)},
    {SIZE(dn_job_t, 48)},
    {PLACE(dn_job_t, key, 0)},
    {PLACE(dn_job_t, pid, 16)},
    {PLACE(dn_job_t, nlocal, 20)},
    {PLACE(dn_job_t, size, 24)},
    {PLACE(dn_job_t, dir, 32)},
    {PLACE(dn_job_t, threads, 40)},
    {SIZE(dn_config_t, 80)},
    {PLACE(dn_config_t, ring_lines, 0)},
    {PLACE(dn_config_t, max_peers, 4)},
    {PLACE(dn_config_t, llcm_bytes, 8)},
    {PLACE(dn_config_t, stage_bytes, 12)},
    {PLACE(dn_config_t, stage_min, 16)},
    {PLACE(dn_config_t, cma, 20)},
    {PLACE(dn_config_t, network_rma, 24)},
    {PLACE(dn_config_t, help_min, 28)},
    {PLACE(dn_config_t, backing, 32)},
    {PLACE(dn_config_t, fault, 40)},
    {PLACE(dn_config_t, first, 48)},
    {PLACE(dn_config_t, timeout_s, 52)},
    {PLACE(dn_config_t, provider_include, 56)},
    {PLACE(dn_config_t, provider_exclude, 64)},
    {PLACE(dn_config_t, auth, 72)},
    {PLACE(dn_config_t, wait, 76)},
    {SIZE(dn_counters_t, 96)},
    {PLACE(dn_counters_t, messages_sent, 0)},
    {PLACE(dn_counters_t, bytes_sent, 8)},
    {PLACE(dn_counters_t, lines_sent, 16)},
    {PLACE(dn_counters_t, credit_waits, 24)},
    {PLACE(dn_counters_t, mapped_bytes, 32)},
    {PLACE(dn_counters_t, cma_bytes, 40)},
    {PLACE(dn_counters_t, help_bytes, 48)},
    {PLACE(dn_counters_t, ring_bytes, 56)},
    {PLACE(dn_counters_t, dropped, 64)},
    {PLACE(dn_counters_t, peers_lost, 72)},
    {PLACE(dn_counters_t, progs_sent, 80)},
    {PLACE(dn_counters_t, resent, 88)},
    {SIZE(dn_device_attr_t, 32)},
    {PLACE(dn_device_attr_t, device, 0)},
    {PLACE(dn_device_attr_t, provider, 8)},
    {PLACE(dn_device_attr_t, domain, 16)},
    {PLACE(dn_device_attr_t, endpoint, 24)},
    {SIZE(dn_peer_attr_t, 80)},
    {PLACE(dn_peer_attr_t, device, 0)},
    {PLACE(dn_peer_attr_t, provider, 8)},
    {PLACE(dn_peer_attr_t, pgid, 16)},
    {PLACE(dn_peer_attr_t, pid, 32)},
    {PLACE(dn_peer_attr_t, botf_inline, 40)},
    {PLACE(dn_peer_attr_t, botf_max, 48)},
    {PLACE(dn_peer_attr_t, llcm_len, 56)},
    {PLACE(dn_peer_attr_t, direct, 64)},
    {PLACE(dn_peer_attr_t, sockets, 68)},
    {PLACE(dn_peer_attr_t, caps, 72)},
    {SIZE(dn_wait_t, 56)},
    {PLACE(dn_wait_t, steps, 0)},
    {PLACE(dn_wait_t, heard, 8)},
    {PLACE(dn_wait_t, began_ns, 16)},
    {PLACE(dn_wait_t, left_ns, 24)},
    {PLACE(dn_wait_t, flags, 32)},
    {PLACE(dn_wait_t, yields, 36)},
    {PLACE(dn_wait_t, odd, 40)},
    {PLACE(dn_wait_t, looked, 44)},
    {PLACE(dn_wait_t, fenced, 48)},
    {SIZE(dn_prog_op_t, 40)},
    {PLACE(dn_prog_op_t, kind, 0)},
    {PLACE(dn_prog_op_t, inside, 4)},
    {PLACE(dn_prog_op_t, at, 8)},
    {PLACE(dn_prog_op_t, len, 16)},
    {PLACE(dn_prog_op_t, count, 24)},
    {PLACE(dn_prog_op_t, stride, 32)},
    {SIZE(dn_prog_info_t, 48)},
    {PLACE(dn_prog_info_t, id, 0)},
    {PLACE(dn_prog_info_t, size, 8)},
    {PLACE(dn_prog_info_t, blocks, 16)},
    {PLACE(dn_prog_info_t, low, 24)},
    {PLACE(dn_prog_info_t, high, 32)},
    {PLACE(dn_prog_info_t, ops, 40)},
    {PLACE(dn_prog_info_t, depth, 44)},
    {SIZE(dn_prog_use_t, 24)},
    {PLACE(dn_prog_use_t, prog, 0)},
    {PLACE(dn_prog_use_t, count, 8)},
    {PLACE(dn_prog_use_t, extent, 16)},
    {SIZE(dn_prog_span_t, 24)},
    {PLACE(dn_prog_span_t, size, 0)},
    {PLACE(dn_prog_span_t, low, 8)},
    {PLACE(dn_prog_span_t, high, 16)},
    {SIZE(dn_prog_limits_t, 12)},
    {PLACE(dn_prog_limits_t, max_ops, 0)},
    {PLACE(dn_prog_limits_t, max_places, 4)},
    {PLACE(dn_prog_limits_t, max_depth, 8)},
    {SIZE(dn_prog_cursor_t, 376)},
    {PLACE(dn_prog_cursor_t, left, 0)},
    {PLACE(dn_prog_cursor_t, blocks, 8)},
    {PLACE(dn_prog_cursor_t, len, 16)},
    {PLACE(dn_prog_cursor_t, done, 24)},
    {PLACE(dn_prog_cursor_t, at, 32)},
    {PLACE(dn_prog_cursor_t, stride, 40)},
    {PLACE(dn_prog_cursor_t, place, 48)},
    {PLACE(dn_prog_cursor_t, prog, 56)},
    {PLACE(dn_prog_cursor_t, base, 64)},
    {PLACE(dn_prog_cursor_t, size, 72)},
    {PLACE(dn_prog_cursor_t, count, 80)},
    {PLACE(dn_prog_cursor_t, extent, 88)},
    {PLACE(dn_prog_cursor_t, node, 96)},
    {PLACE(dn_prog_cursor_t, depth, 100)},
    {PLACE(dn_prog_cursor_t, level, 104)},
    {SIZE(dn_tree_place_t, 16)},
    {PLACE(dn_tree_place_t, key, 0)},
    {SIZE(dn_tree_config_t, 24)},
    {PLACE(dn_tree_config_t, ranks, 0)},
    {PLACE(dn_tree_config_t, rank, 4)},
    {PLACE(dn_tree_config_t, radix, 8)},
    {PLACE(dn_tree_config_t, depth, 12)},
    {PLACE(dn_tree_config_t, place, 16)},
    {SIZE(dn_tree_card_t, 64)},
    {PLACE(dn_tree_card_t, off, 0)},
    {SIZE(dn_tree_reduction_t, 24)},
    {PLACE(dn_tree_reduction_t, fold, 0)},
    {PLACE(dn_tree_reduction_t, join, 8)},
    {PLACE(dn_tree_reduction_t, size, 16)},
    {SIZE(dn_tree_mover_t, 8)},
    {PLACE(dn_tree_mover_t, move, 0)},
    {SIZE(dn_tree_long_config_t, 24)},
    {PLACE(dn_tree_long_config_t, ranks, 0)},
    {PLACE(dn_tree_long_config_t, rank, 4)},
    {PLACE(dn_tree_long_config_t, area, 8)},
    {PLACE(dn_tree_long_config_t, peer, 16)},
};

static void places(void **state)
{
    for (size_t i = 0; i < sizeof(layout) / sizeof(layout[0]); i++) {
        if (layout[i].promised != layout[i].is) {
            fail_msg("%s is %zu, and programs of this soname were built for %zu", layout[i].what,
                     layout[i].is, layout[i].promised);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places)};

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
