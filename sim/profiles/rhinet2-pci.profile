# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# RHiNET-2/NI: Martini, second prototype, on PCI 64 bit/66 MHz; host Pentium III 933 MHz (Martini paper, 2002).
# Behind a value: the table it is from (spec column), "derived", "calibrated" with its cell, or "public".

name = rhinet2-pci
core_clock_mhz = 66              # martini_spec
swif_clock_mhz = 125             # martini_spec
bus_clock_mhz = 66               # martini_eval_conditions

host_store_bus_cycles = 5        # public: PCI single write, address, data and turn-around with medium DEVSEL
host_to_nic_ns = 0               # derived: in the store
host_read_8_ns = 100             # not published: flags lie in cached host memory
host_read_4_ns = 100
host_read_line_ns = 100
host_copy_mbyte_s = 264          # derived: half of the bus, single writes are joined two by two

stage_write_from_host_core_cycles = 3   # d1_aotf_stage_latency, in cycles of the core clock
stage_transaction_queue_core_cycles = 2
stage_header_lookup_core_cycles = 3
stage_size_decision_core_cycles = 1
stage_send_buffer_core_cycles = 1
stage_link_send_swif_cycles = 4
stage_link_receive_swif_cycles = 7
stage_memory_write_ns = 0        # in dma_write_start

htlb_entries_count = 1024
htlb_miss_us = 8.09              # as dimmnet1-d
botf_payload_bytes = 464
botf_window_check_flag = 1
botf_start_core_cycles = 7
botf_receive_core_cycles = 11.6
header_bytes = 32
packet_in_stages_bytes = 40
link_rate_mbyte_s = 1000         # martini_switch_interfaces

push_fields_count = 8            # martini paper, table 1
hardwired_pass_core_cycles = 11.6       # calibrated on martini_push_pull, PUSH without network
dma_read_start_bus_cycles = 20   # public: PCI 2.1 allows a target 16 clocks for its first data, 4 for arbitration and address
dma_write_start_bus_cycles = 5   # public: as a store
dma_rate_mbyte_s = 528           # martini_push_pull, theoretical
dma_burst_bytes = 512            # not published
dma_burst_gap_bus_cycles = 5.4   # calibrated on martini_push_pull, PM remote write
pull_bytes = 65535               # martini_push_pull
tlb_entries_count = 256          # not published
tlb_miss_us = 8.09
core_processor_us = 8.09

switch_pass_ns = 240             # dsr_parameters
switch_interval_ns = 240
switch_ports_count = 8           # d1_switch_spec
switch_link_rate_gbit_s = 8      # d1_switch_spec
switch_multicast_flag = 1        # AOTF paper, 5.1: RHiNET2/SW can multicast
