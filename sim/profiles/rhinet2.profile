# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# RHiNET2/SW (AOTF and Send/Recv papers). It says go and stop packet by packet (martini_switch_interfaces), but how much its buffers
# hold is not published: here they never fill. ECC corrects what comes wrong.

name = rhinet2
switch_pass_ns = 240             # dsr_parameters
switch_interval_ns = 240         # d1_misc_constants
switch_ports_count = 8           # d1_switch_spec
switch_link_rate_gbit_s = 8      # d1_switch_spec
switch_multicast_flag = 1        # AOTF paper, 5.1: RHiNET2/SW can multicast
