# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# Memory of a CXL 2.0 pool, stored to and polled by CPUs: public figures of the CXL consortium and of makers.
# A read that misses takes about 250 ns (170 to 400 by device and switch), a store about as long to be seen.

name = cxl
host_store_ns = 2                # public: posted, one store a few cycles
host_to_nic_ns = 60              # public: root port and CXL.mem request, a quarter of the read
host_read_8_ns = 250             # public: load to use
host_read_4_ns = 250
host_read_line_ns = 250
host_copy_mbyte_s = 20000        # public: x8 at 32 GT/s, writes
stage_write_from_host_ns = 0
stage_link_send_ns = 25          # public: port latency of CXL controllers, 21 to 25 ns each way
stage_link_receive_ns = 25
stage_memory_write_ns = 40       # public: DRAM
botf_payload_bytes = 64          # one line
header_bytes = 4                 # 68-byte flit
link_rate_mbyte_s = 32000        # public: x8 at 32 GT/s
push_in_hardware_flag = 0
pull_in_hardware_flag = 0
switch_pass_ns = 70              # public: CXL switch, about
switch_ports_count = 32
