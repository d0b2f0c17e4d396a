# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# OIP-SW, optics and logic in one package (AOTF paper, table 2; Martini paper, section 10). It was under development. It says go
# and stop by lines of 32 bits, but how much its buffers hold is not published: here they never fill. It detects no errors.

name = oip-sw
switch_pass_ns = 240             # not published: assumed as RHiNET2/SW2
switch_ports_count = 16          # d1_switch_spec: 15 optical, 1 electrical
switch_link_rate_gbit_s = 2.5    # d1_switch_spec; 9 channels of 250 Mbit/s are 2.25
switch_multicast_flag = 1        # not published: assumed as RHiNET2/SW
