# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# AX3630S-24T, a Gigabit L3 switch, at its latency for 64 bytes (IP-NUMA thesis).

name = ax3630s
switch_pass_ns = 4072            # fibnic_latency: it stores 64 bytes in this time already
switch_ports_count = 24
switch_link_rate_gbit_s = 1      # IP-NUMA thesis: Gigabit Ethernet
