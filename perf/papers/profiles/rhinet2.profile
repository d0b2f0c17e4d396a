# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# RHiNET2/SW (AOTF and Send/Recv papers).

name = rhinet2
switch_pass_ns = 240             # dsr_parameters
switch_interval_ns = 240         # d1_misc_constants
switch_ports_count = 8           # d1_switch_spec
