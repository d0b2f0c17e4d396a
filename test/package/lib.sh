# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# What the tests of packaging share; each of them sources this file first. From the environment:
#
#   SOURCE, BUILD  the source tree and the build tree
#
# shellcheck shell=bash

set -u
export LC_ALL=C

test_name=$(basename "$0")
SOURCE=${SOURCE:?name the source tree}
BUILD=${BUILD:?name the build tree}
scratch=$(mktemp -d) || exit 2
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT

# shellcheck source=../say.sh
. "$(dirname "${BASH_SOURCE[0]}")/../say.sh"

fail() {
    say "FAILED: $*"
    exit 1
}

version=$(sed -n 's/^AC_INIT(\[dimmnet\], \[\(.*\)\])$/\1/p' "$SOURCE/configure.ac")
[[ -n $version ]] || fail "configure.ac names no version"
