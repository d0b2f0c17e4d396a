# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# FIBNIC: cut-through forwarding, Gigabit, 4 ports (IP-NUMA thesis).

name = fibnic
switch_pass_ns = 976             # fibnic_model: 62 stages of 8 ns, PHY 356, FIFOs and data path 124
switch_ports_count = 4
switch_link_rate_gbit_s = 1      # IP-NUMA thesis: Gigabit Ethernet
