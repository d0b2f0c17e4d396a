# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# Sourced by every lint: sets root to the source tree to look at and gives
#   lint_files          the project's own files, relative to root, one a line
#   lint_c_files        of these the C sources and headers
#   lint_bad TEXT...    report one violation
#   lint_end            exit status of the lint
#   lint_skip REASON    nothing can be said here

set -uo pipefail
export LC_ALL=C

lint_name=$(basename "$0")
lint_failures=0
root=${1:-$(dirname "$0")/../..}
root=$(cd "$root" && pwd) || { echo "$lint_name: no such folder: $1" >&2; exit 2; }

# Written by autoreconf, configure, make or dpkg-buildpackage when a build runs inside the source tree, and folders of builds.
lint_generated='^(aclocal\.m4|configure~?|config\.(log|status)|libtool|dimmnet\.pc|env\.sh|examples/dsm/bodies\.c|m4/(libtool|lt.*)\.m4)$'
lint_generated+='|(^|/)(Makefile(\.in)?|stamp-h1|dn_config\.h(\.in~?)?|dn_devices\.h(\.new)?|\.dirstamp)$'
lint_generated+='|^debian/(files|debhelper-build-stamp|autoreconf\.(before|after)|.*\.(substvars|debhelper|debhelper\.log))$'
lint_generated+='|\.(l?o|l?a|so|log|trs|pyc|png|gz|swp)$|~$'

lint_find() {
    (cd "$root" && find . \
        \( -name .git -o -name autom4te.cache -o -name build-aux -o -name .deps -o -name .libs -o -name __pycache__ \
           -o -path './debian/*' -type d ! -name source -o -path ./build -o -path ./test/fuzz/corpus -o -path ./openmpi -o -path './dimmnet-[0-9]*' -o -path ./_build -o -path ./_inst \) -prune \
        -o -type f -name config.status ! -path ./config.status -printf 'BUILD %h\n' \
        -o -type f -printf '%P\n') |
        awk '/^BUILD \.\// { skip[substr($0, 9) "/"] = 1; next }
             { file[++n] = $0 }
             END {
                 for (i = 1; i <= n; i++) {
                     built = 0
                     for (s in skip) { built = built || 1 == index(file[i], s) }
                     if (!built) { print file[i] }
                 }
             }' |
        grep -vE "$lint_generated" | lint_texts | sort
}

# Programs built in place have no suffix to know them by, but are not text, or libtool's wrappers. A few processes look at all the files.
lint_texts() {
    local files f
    mapfile -t files
    for f in "${files[@]}"; do
        [[ -s $root/$f ]] || printf '%s\n' "$f"
    done
    printf '%s\n' "${files[@]}" |
        (cd "$root" && xargs -r -d '\n' grep -Il '^' -- |
            xargs -r -d '\n' awk 'FNR <= 3 && /temporary wrapper script for \.libs\// { wrapper[FILENAME] }
                                  END { for (i = 1; i < ARGC; i++) { if (!(ARGV[i] in wrapper)) { print ARGV[i] } } }')
}

lint_all=$(lint_find)
[[ -n $lint_all ]] || { echo "$lint_name: there is no source file in $root" >&2; exit 2; }

lint_files() {
    printf '%s\n' "$lint_all"
}

lint_c_files() {
    lint_files | grep -E '\.[ch]$'
}

lint_bad() {
    echo "$lint_name: $*"
    lint_failures=$((lint_failures + 1))
}

lint_skip() {
    echo "$lint_name: skipped: $*"
    exit 77
}

lint_end() {
    if [[ 0 -ne $lint_failures ]]; then
        echo "$lint_name: $lint_failures violation(s)"
        exit 1
    fi
    echo "$lint_name: nothing to complain about"
    exit 0
}
