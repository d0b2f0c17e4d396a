# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# A modern switch: 40 ports of 200 Gb/s, 130 ns from port to port (public data sheet of NVIDIA Quantum QM8700).

name = quantum-hdr
switch_pass_ns = 130             # public
switch_interval_ns = 5           # public: 200 million packets a second and port, about
switch_ports_count = 40          # public
