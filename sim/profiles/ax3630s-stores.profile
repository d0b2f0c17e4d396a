# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# AX3630S-24T as a store-and-forward switch: what it takes for frames of any length (IP-NUMA thesis).

name = ax3630s-stores
switch_pass_ns = 3400            # calibrated on fibnic_latency, 64 bytes: 4072 less the 672 in which the frame comes in
switch_stores_flag = 1
switch_ports_count = 24
switch_link_rate_gbit_s = 1      # IP-NUMA thesis: Gigabit Ethernet
