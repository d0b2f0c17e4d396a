# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# What a test says of itself; sourced by the lib.sh of each folder of tests, after they have set test_name.
#
#   say TEXT...    print it
#   skip TEXT...   the test cannot be run here, and why
#
# shellcheck shell=bash

say() { echo "$test_name: $*"; }

skip() {
    say "skipped: $*"
    exit 77
}
