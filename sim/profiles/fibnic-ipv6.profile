# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# FIBNIC with IPv6: 74 stages (IP-NUMA thesis).

name = fibnic-ipv6
switch_pass_ns = 1072            # fibnic_model: 74 stages of 8 ns, PHY 356, FIFOs and data path 124
switch_ports_count = 4
switch_link_rate_gbit_s = 1      # IP-NUMA thesis: Gigabit Ethernet
