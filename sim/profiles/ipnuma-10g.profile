# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# IP-NUMA, KC705, PCIe Gen2 x4, 10GBASE-SR (IP-NUMA thesis). 48 ports are those of its switch.
# Behind a value: the table it is from, "derived", "calibrated" with its cell, or "assumed".

name = ipnuma-10g
host_store_ns = 12               # ipnuma_pcie_memcpy, Gen2x4, 4 bytes, WC
host_to_nic_ns = 212            # derived: 224 of ipnuma_pcie_memcpy, CPU write, without the store
host_read_8_ns = 100             # assumed: clflush and a read of main memory
host_read_4_ns = 100
host_read_line_ns = 100
host_copy_mbyte_s = 1561         # ipnuma_pcie_memcpy, 64 bytes WC in 41 ns

stage_write_from_host_ns = 0     # in host_to_nic
stage_header_lookup_ns = 54.5        # calibrated on ipnuma_rtt, 10G: page map and PC ID
stage_link_send_ns = 150         # derived: half of PHY/FIFO, 300 for 4 bytes
stage_link_receive_ns = 150
stage_access_check_ns = 54.5        # calibrated on ipnuma_rtt, 10G: shared region table
stage_memory_write_ns = 223       # ipnuma_hw_latency_model, DMA write

botf_payload_bytes = 64          # one WC line, one TLP (ipnuma_pcie_tlp_counts)
header_bytes = 90                # Ethernet with gap and preamble 38, IP 20, UDP 8, TLP header 16, magic and end 8 (assumed)
packet_min_bytes = 84            # shortest frame with gap and preamble
link_rate_mbyte_s = 1250
push_in_hardware_flag = 0        # CPU writes only
pull_in_hardware_flag = 0        # no remote read
switch_pass_ns = 380             # ipnuma_one_way_inputs
switch_ports_count = 48          # assumed

page_region_mib = 1024           # IP-NUMA thesis, table 4.1: 262,144 pages (the table prints 26,214), a page map of 2 MB
pc_id_count = 65536              # IP-NUMA thesis, section 3: 16 bits in a page map entry
shared_region_count = 0          # enough; not published
refusal_told_flag = 1            # IP-NUMA thesis, section 6: an error code is sent
refused_read_zero_flag = 1       # IP-NUMA thesis, section 6: a refused read returns 00
