# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# What the tests of the installed programs share; each of them sources this file first. From the environment:
#
#   TOOLS    folder of dimmnet_info and dimmnet_perf
#   DEVICES  devices of this build, separated by spaces
#   PROFILES folder of the profiles that are emulated
#   LIMIT    seconds after which a program counts as hanging (default 150)
#
# shellcheck shell=bash

set -u
export LC_ALL=C
ulimit -c 0

test_name=$(basename "$0")
TOOLS=${TOOLS:?name the folder of the programs}
DEVICES=${DEVICES:-shm}
LIMIT=${LIMIT:-150}
scratch=$(mktemp -d) || exit 2
background=()
trap 'end_background; rm -rf "$scratch"' EXIT

# shellcheck source=../say.sh
. "$(dirname "${BASH_SOURCE[0]}")/../say.sh"

fail() {
    say "FAILED: $*"
    for f in "$scratch"/*; do
        [[ -f $f ]] && { echo "--- ${f##*/}"; head -c 4000 "$f"; }
    done
    exit 1
}

end_background() {
    local pid
    for pid in "${background[@]}"; do
        kill "$pid" 2>/dev/null
    done
}

need_command() {
    command -v "$1" >/dev/null || skip "$1 is not installed${2:+ (Debian package $2)}"
}

info() { timeout "$LIMIT" "$TOOLS/dimmnet_info" "$@"; }
perf() { timeout "$LIMIT" "$TOOLS/dimmnet_perf" "$@"; }

# wait_for COMMAND...: until it is true; fails after LIMIT seconds.
wait_for() {
    local left=$((10 * LIMIT))
    until "$@"; do
        [[ $((left--)) -gt 0 ]] || fail "in $LIMIT s this did not become true: $*"
        sleep 0.1
    done
}

# start NAME COMMAND...: in the background, its output in NAME.out and NAME.err; its process is in $started.
start() {
    local name=$1
    shift
    : >"$scratch/$name.out"
    timeout "$LIMIT" "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" &
    started=$!
    background+=("$started")
}

# json EXPRESSION <DOCUMENT: a Python expression on the document d must be true.
json() {
    python3 -c 'import json, os, sys; d = json.load(sys.stdin); sys.exit(0 if eval("(" + sys.argv[1] + ")") else 1)' "$1"
}

# start_server NAME OPTION...: a server on a free port, which is in $port.
start_server() {
    local name=$1
    shift
    start "$name" "$TOOLS/dimmnet_perf" --port 0 "$@"
    wait_for grep -q 'port [0-9]' "$scratch/$name.out"
    port=$(sed -n 's/^# waiting at .* port \([0-9]*\)$/\1/p' "$scratch/$name.out")
}

# available DEVICE: does it work on this machine?
available() {
    info -D "$1" --peer >/dev/null 2>&1
}
