# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# Berkeley sockets over an ordinary 10G NIC (IP-NUMA thesis): software and NIC are one calibrated time.

name = sockets-10g
host_store_ns = 0                # in program_service
host_to_nic_ns = 0
host_read_8_ns = 0
host_read_4_ns = 0
host_read_line_ns = 1
host_copy_mbyte_s = 1000
stage_write_from_host_ns = 0
stage_link_send_ns = 0
stage_link_receive_ns = 0
stage_memory_write_ns = 0
botf_payload_bytes = 1472
header_bytes = 66
packet_min_bytes = 84
link_rate_mbyte_s = 1250
push_in_hardware_flag = 0
pull_in_hardware_flag = 0
program_service_ns = 11290         # calibrated on ipnuma_rtt, sockets, 10G
switch_pass_ns = 380             # ipnuma_one_way_inputs
