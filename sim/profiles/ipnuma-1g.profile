# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# IP-NUMA, LatticeECP3 Versa, PCIe Gen1 x1, 1000BASE-T (IP-NUMA thesis).
# Behind a value: the table it is from, "derived", "calibrated" with its cell, or "assumed".

name = ipnuma-1g
host_store_ns = 18               # ipnuma_pcie_memcpy, Gen1x1, 4 bytes, WC
host_to_nic_ns = 368            # derived: 386 of ipnuma_pcie_memcpy, CPU write, without the store
host_read_8_ns = 100             # assumed: clflush and a read of main memory
host_read_4_ns = 100
host_read_line_ns = 100
host_copy_mbyte_s = 191          # ipnuma_pcie_memcpy, 64 bytes WC in 335 ns

stage_write_from_host_ns = 0     # in host_to_nic
stage_header_lookup_ns = 1562      # calibrated on ipnuma_rtt, 1G
stage_link_send_ns = 178         # fibnic_model, PHY, half of 356
stage_link_receive_ns = 178
stage_access_check_ns = 1562      # calibrated on ipnuma_rtt, 1G
stage_memory_write_ns = 386       # derived: as the CPU write, as the thesis does at Gen2 x8

botf_payload_bytes = 64          # one WC line, one TLP (ipnuma_pcie_tlp_counts)
header_bytes = 90                # Ethernet with gap and preamble 38, IP 20, UDP 8, TLP header 16, magic and end 8 (assumed)
packet_min_bytes = 84            # shortest frame with gap and preamble
link_rate_mbyte_s = 125
push_in_hardware_flag = 0        # CPU writes only
pull_in_hardware_flag = 0        # no remote read
switch_pass_ns = 380             # ipnuma_one_way_inputs
switch_ports_count = 48          # assumed

page_region_mib = 1024           # assumed: that of the 10G card; not published for this one
pc_id_count = 65536              # IP-NUMA thesis, section 3: 16 bits in a page map entry
shared_region_count = 0          # enough; not published
refusal_told_flag = 1            # IP-NUMA thesis, section 6: an error code is sent
refused_read_zero_flag = 1       # IP-NUMA thesis, section 6: a refused read returns 00
