# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# DIMMnet-2 as the Send/Recv paper asks for it: DIMMnet-1 at 133 MHz whose hardware writes a status word at the receiver, and
# whose PUSH and PULL work together. No figure of a real DIMMnet-2 is used.
# Behind a value: the table it is from (spec column), "derived", or "calibrated" with the cell it was calibrated on.

name = dimmnet2
dimm_clock_mhz = 133.33          # as dimmnet1-133, and those below
swif_clock_mhz = 100           # d1_environments
core_clock_mhz = 66              # martini_spec

host_store_ns = 53               # d1_uncached_access
host_read_8_ns = 157.5
host_read_4_ns = 157.5
host_read_8_plain_ns = 269.3
host_to_nic_dimm_cycles = 10     # d1_misc_constants, store to DIMM
host_copy_mbyte_s = 1017

stage_write_from_host_dimm_cycles = 3   # d1_aotf_stage_latency, as all stages but the next to last two
stage_transaction_queue_dimm_cycles = 2
stage_header_lookup_dimm_cycles = 3
stage_size_decision_dimm_cycles = 1
stage_send_buffer_dimm_cycles = 1
stage_link_send_swif_cycles = 4
stage_link_receive_swif_cycles = 7   # 7 by design
stage_memory_write_dimm_cycles = 1
stage_outside_ns = 151             # d1_aotf_rtt, last column
stage_padding_ns = 0
stage_crossing_dimm_cycles = 1.3        # calibrated on d1_aotf_rtt, back to back, D

transaction_fifo_count = 2048    # d1_misc_constants, as those below
aotf_credits_count = 2048        # not published: all of the FIFO for one user
htlb_entries_count = 1024
htlb_ways_count = 4
htlb_miss_us = 8.09              # not published: as the core processor's program of dsr_aotf_rtt
botf_payload_bytes = 464
botf_windows_count = 2           # dsr_parameters
botf_window_check_flag = 1
botf_start_dimm_cycles = 7       # not published: as AOTF, whose header look-up it has not
botf_receive_core_cycles = 11.6  # not published: a pass of the receive part as below
pull_in_hardware_flag = 1
header_bytes = 32                # d1_misc_constants
packet_in_stages_bytes = 40      # an AOTF packet
link_rate_mbyte_s = 1000

push_fields_count = 8            # martini paper, table 1
hardwired_pass_core_cycles = 11.6       # calibrated on martini_push_pull, PUSH, see rhinet2-pci
dma_rate_mbyte_s = 1024
page_bytes = 4096
pull_bytes = 65535               # martini_push_pull: below 64 Kbyte
tlb_entries_count = 256          # not published
tlb_miss_us = 8.09               # not published: as htlb_miss
core_processor_us = 8.09         # calibrated on dsr_aotf_rtt, interrupt AOTF
llcm_kib = 128                   # d1_misc_constants

switch_pass_ns = 240             # dsr_parameters
switch_interval_ns = 240         # d1_misc_constants
switch_ports_count = 8           # d1_switch_spec
switch_link_rate_gbit_s = 8      # d1_switch_spec
switch_multicast_flag = 1        # AOTF paper, 5.1: RHiNET2/SW can multicast

program_timer_ns = 38            # d1_misc_constants
program_barrier_ns = 86          # calibrated on d1_barrier, MMX on, B: the same without MMX
program_barrier_mmx_ns = 86
program_sum_ns = 57              # calibrated on d1_global_sum, unsigned, D


# DIMM_Send/Recv paper, section 12
push_remote_status_flag = 1
receive_interval_ns = 0
