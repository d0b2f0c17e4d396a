# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# RHiNET3/SW, for ordinary optical parts (AOTF paper, table 2; Martini paper, section 10): credits for lines of 80 bits, CRC,
# and links that send again what came wrong. It was under development: what follows is a design, not measured.

name = rhinet3
switch_pass_ns = 240             # not published: assumed as RHiNET2/SW2
switch_ports_count = 8           # d1_switch_spec
switch_link_rate_gbit_s = 10     # d1_switch_spec; whether the bits that 8B10B adds are in it is not said: taken as data
switch_multicast_flag = 1        # not published: assumed as RHiNET2/SW
link_flow_unit_bytes = 10        # martini_switch_interfaces, 80 bits
link_credits_count = 1664        # assumed: 10 Gbit/s over the 1 km of d1_switch_spec and back are 1250 lines, 4 KB more 414
link_bit_errors_count = 1000     # martini_switch_interfaces: 1e-12
