# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# UZURA: 10GbE FPGA card on PCI-X 133 (UZURA paper). The paper's totals are predictions from basic timings; so are these.

name = uzura
host_store_ns = 97.5             # uzura_register_bus_time
host_to_nic_ns = 682.5           # derived: 780 of uzura_notification, register, without the store
start_polled_ns = 662.5          # derived: 760 of uzura_notification, polling by the NIC, without the store; start_by_polling_flag = 1 takes it
arrival_ns = 0                   # the data themselves are polled; to write them into memory is stage_memory_write
arrival_register_ns = 910        # uzura_notification, register polling; arrival_by_count = 1 takes it
arrival_interrupt_us = 4.99      # uzura_notification; arrival_by_count = 2 takes it
host_read_8_ns = 0               # uzura_latency_stages ends when the data are in host memory
host_read_4_ns = 0
host_read_line_ns = 100          # not published
host_copy_mbyte_s = 3200         # public: DDR2-400; a message is written into host memory

stage_write_from_host_ns = 0
stage_link_send_ns = 1030        # uzura_latency_stages: FPGA 90 and 160, half of the MACs' 1560
stage_link_receive_ns = 1280     # the other half, FPGA 350 and 150
stage_memory_write_ns = 180      # uzura_latency_stages, DMA to the host
botf_start_ns = 760              # uzura_latency_stages, DMA from the host

aotf_payload_bytes = 8
botf_payload_bytes = 4096        # MTU 4 KB
header_bytes = 38                # Ethernet with gap and preamble; the paper's 64 bytes hold the header of the message
packet_min_bytes = 84
packet_in_stages_bytes = 102     # 64 bytes and what is above
link_rate_mbyte_s = 1250         # 10GbE
push_fields_count = 0            # one start register
hardwired_pass_ns = 0            # in the stages
dma_read_start_ns = 760
dma_write_start_ns = 449         # derived: 3.89 us of uzura_pipeline_4kb, destination PCI-X, less stage_memory_write and 4 KB at dma_rate
dma_rate_mbyte_s = 1256          # calibrated on uzura_pipeline_4kb, source PCI-X: 4.02 us for 4 KB, the start of a DMA in it
pull_bytes = 65535               # not published
push_lists_flag = 1              # lists on both sides, interpreted by the NIC
tlb_entries_count = 65536        # derived: 4 MB of SRAM hold more
tlb_miss_ns = 320                # uzura_platform, look-up in the host's table
switch_pass_ns = 380             # assumed
