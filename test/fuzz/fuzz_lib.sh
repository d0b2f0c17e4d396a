# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# What any_bytes_are_survived and campaign know of targets and of libFuzzer; both source it.
#
# shellcheck shell=bash

# fuzz_cost TARGET: how many inputs of the quickest target take as long as one of this.
fuzz_cost() {
    case $1 in
    fuzz_dn_fault) echo 1 ;;
    fuzz_dn_address | fuzz_dn_greet) echo 3 ;;
    fuzz_dn_profile | fuzz_dn_rma) echo 6 ;;
    fuzz_dn_ship) echo 8 ;;
    fuzz_dn_core) echo 20 ;;
    fuzz_dn_prog | fuzz_dn_tag) echo 40 ;;
    fuzz_dn_ipnuma | fuzz_dn_ofi | fuzz_dn_shm) echo 100 ;;
    *) echo 10 ;;
    esac
}

# fuzz_by_libfuzzer PROGRAM: is it driven by libFuzzer?
fuzz_by_libfuzzer() {
    "$1" -help=1 2>&1 | grep libFuzzer >/dev/null
}

# fuzz_run PROGRAM RUNS SEED FOLDER CORPUS...: by libFuzzer; what reaches new code goes to FOLDER, what fails beside it.
fuzz_run() {
    local program=$1 runs=$2 seed=$3 folder=$4
    shift 4
    "$program" -runs="$runs" -seed="$seed" -max_len=4096 -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$folder.failed-" "$folder" "$@"
}

# fuzz_executions LOG: how many inputs libFuzzer tried.
fuzz_executions() {
    sed -n 's/^stat::number_of_executed_units: *//p' "$1"
}
