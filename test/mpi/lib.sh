# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# What the MPI tests share; each of them sources this file first. From the environment:
#
#   abs_builddir   folder of the test programs (default: the working folder)
#   MPIRUN         default mpirun.openmpi
#   BTL            list for --mca btl (default self,dimmnet); vader is what Open MPI has of its own inside a host, also
#                  where that is called sm; without dimmnet in the list, tests of what only dimmnet has are skipped and the
#                  others show what Open MPI itself does
#   TRANSPORT      ob1 (default): pml/ob1 over these BTLs; pml: pml/dimmnet; mtl: pml/cm over mtl/uzura
#   SEED           to replay a test; otherwise a new one is chosen and printed
#   LIMIT          seconds after which a run counts as hanging (default 150)
#   MPI_ARGS       further words for every mpirun
#   KEEP           not empty: the scratch folder stays
#
# A test prints what it checked. When it fails, the last lines say how to repeat the run that failed.
#
# shellcheck shell=bash disable=SC2034,SC2054

set -u
export LC_ALL=C
ulimit -c 0

test_name=$(basename "$0")
test_dir=$(cd "$(dirname "$0")" && pwd -P)
test_path=$test_dir/$test_name
bin=${abs_builddir:-$PWD}
MPIRUN=${MPIRUN:-mpirun.openmpi}
BTL=${BTL:-self,dimmnet}
TRANSPORT=${TRANSPORT:-ob1}
LIMIT=${LIMIT:-150}
SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}

if [[ $(id -u) -eq 0 ]]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# The major version of Open MPI; what its own transport inside a host and its own windows are called; and words for mpirun to have it without CMA.
ompi_major=$("$MPIRUN" --version 2>/dev/null | sed -n '1s/^[^0-9]*\([0-9]*\).*/\1/p')
stock_shm=vader stock_osc=sm,pt2pt no_single_copy=(--mca btl_vader_single_copy_mechanism none)
[[ $ompi_major -lt 5 ]] || stock_shm=sm stock_osc=sm no_single_copy=(--mca smsc ^cma)
BTL=${BTL/vader/$stock_shm}

# shellcheck source=../say.sh
. "$(dirname "${BASH_SOURCE[0]}")/../say.sh"

# fail SENTENCE
fail() {
    say "FAILED: $*"
    say "to repeat: ${last_run:-} "
    say "or the whole test: SEED=$SEED TRANSPORT=$TRANSPORT${DEVICES:+ DEVICES=$DEVICES} BTL=$BTL MPIRUN=$MPIRUN abs_builddir=$bin $test_path"
    exit 1
}

has_btl() { [[ ,$BTL, == *,$1,* ]]; }

# For tests that mean nothing without the component.
need_dimmnet() { has_btl dimmnet || skip "needs dimmnet in the list of BTLs, which is $BTL"; }

need_command() {
    command -v "$1" >/dev/null || skip "$1 is not installed${2:+ (Debian package $2)}"
}

# Set $info to the ompi_info beside mpirun, whatever its suffix.
find_ompi_info() {
    info=$(command -v "$MPIRUN" | sed 's|mpirun\([^/]*\)$|ompi_info\1|')
    [[ -n $info && -x $info ]] || info=$(command -v ompi_info) || skip "there is no ompi_info"
}

# --- scratch folder; Open MPI's session folders go below it too

scratch=$(mktemp -d "${TMPDIR:-/tmp}/dn-test.XXXXXX") || exit 1
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR"
background=() # process ids to end when the test ends

cleanup() {
    local pid
    for pid in ${background[@]+"${background[@]}"}; do
        kill "$pid" 2>/dev/null
    done
    if [[ -n ${KEEP:-} ]]; then
        say "kept $scratch"
    else
        rm -rf "$scratch"
    fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# --- running MPI programs

# Words for mpirun that choose how two-sided messages go.
transport() {
    case $TRANSPORT in
    ob1) echo "--mca pml ob1 --mca btl $BTL" ;;
    pml) echo "--mca pml dimmnet --mca btl $BTL" ;;
    mtl) echo "--mca pml cm --mca mtl uzura --mca btl $BTL" ;;
    *) fail "TRANSPORT is ob1, pml or mtl, not \"$TRANSPORT\"" ;;
    esac
}

# Words for mpirun that switch CMA off, in each transport that has it.
without_cma=()
has_btl dimmnet && without_cma+=(--mca common_dimmnet_cma 0 --mca common_dimmnet_network_rma 0)
has_btl "$stock_shm" && without_cma+=("${no_single_copy[@]}")

# Words for mpirun that inject faults which no program may notice, beginning with SEED.
with_faults=()
has_btl dimmnet && with_faults=(--mca common_dimmnet_fault
    "all:again/7,botf:delay/11,all:slow/5,seed=$SEED")

# Words for mpirun that choose osc/dimmnet. Without dimmnet others stand in: osc/rdma of Open MPI 4.1 crashes over vader when a
# rank is its own target.
one_sided=(--mca osc dimmnet)
has_btl dimmnet || one_sided=(--mca osc "$stock_osc")

# Stock BTLs get the help they need on two cores. dimmnet has to do without.
stock_help=()
has_btl dimmnet || stock_help=(--mca mpi_yield_when_idle 1)

# mpi_command RANKS [MPIRUN-WORD]... -- PROGRAM [ARGUMENT]...
# Sets the array command, and last_run to a line for a shell.
mpi_command() {
    local ranks=$1 words=()
    shift
    while [[ $1 != -- ]]; do
        words+=("$1")
        shift
    done
    shift
    # shellcheck disable=SC2206,SC2046 # lists of words
    command=("$MPIRUN" --oversubscribe -n "$ranks" $(transport)
        ${stock_help[@]+"${stock_help[@]}"} ${MPI_ARGS:-} ${words[@]+"${words[@]}"} "$@")
    last_run=$(printf '%q ' "${command[@]}")
}

# A program that runs one command in the first ranks and another one in the others: "$by_rank" N COMMAND... :: COMMAND...
# mpirun of Open MPI 5.0.7 crashes when a colon separates two programs.
by_rank=$(cd "${BASH_SOURCE[0]%/*}" && pwd -P)/by_rank

# try_mpi, with the arguments of mpi_command: sets status and leaves the output in $scratch/out.
# Status 124 is a hang.
try_mpi() {
    mpi_command "$@"
    timeout -k 5 "$LIMIT" "${command[@]}" >"$scratch/out" 2>&1 </dev/null
    status=$?
    [[ $status -eq 137 ]] && status=124
    return 0
}

show_output() { # the ends of a long output
    if [[ $(wc -l <"$scratch/out") -gt 60 ]]; then
        head -n 30 "$scratch/out"
        echo "..."
        tail -n 30 "$scratch/out"
    else
        cat "$scratch/out"
    fi
}

# The job must have ended well, in time, without a word from the MPI library, and have left nothing
# behind. Its last line is shown.
check_run() {
    if [[ $status -eq 124 ]]; then
        show_output
        fail "the job did not end within $LIMIT s"
    elif [[ $status -ne 0 ]]; then
        show_output
        fail "the job ended with status $status"
    fi
    check_silence
    check_leftovers
    [[ ! -s $scratch/out ]] || say "$(tail -n 1 "$scratch/out")"
}

# run_mpi, with the arguments of mpi_command
run_mpi() {
    mark_leftovers
    try_mpi "$@"
    check_run
}

# --- what Open MPI itself does

# Words for mpirun by which nothing of dimmnet takes part, and no flag helps.
stock_words=(--mca osc ^dimmnet --mca coll ^llcm)

# show_stock WHAT and the arguments of mpi_command: run the same over Open MPI's own transport, and print what has become of it.
# It may fail: nothing but the comparison is asked of it. A figure that the job prints, "NAME NUMBER UNIT", is in $figure, else that is
# empty. STOCK_LIMIT: seconds after which it is given up (default 20).
show_stock() {
    local what=$1 ranks=$2 BTL=self,$stock_shm TRANSPORT=ob1 LIMIT=${STOCK_LIMIT:-20} kept=${last_run:-}
    shift 2
    try_mpi "$ranks" "${stock_words[@]}" "$@"
    read_figure
    case $status in
    0) say "stock, $what: ${figure:-right}; $(grep -cE "$library_speaks|process_vm|not permitted" "$scratch/out") lines of complaints" ;;
    124) say "stock, $what: does not end in $LIMIT s" ;;
    *) say "stock, $what: status $status; $(grep -m 1 -oE 'signal [0-9]+ \([^)]*\)|signal: [^(]*\([0-9]+\)|MPI_ERR[A-Z_]*|at least one pair of MPI processes.*' "$scratch/out" || echo "an error")" ;;
    esac
    rm -rf "${TMPDIR:?}"/*
    last_run=$kept
}

# show_ours WHAT and the arguments of mpi_command: as run_mpi, and a figure as show_stock has it.
show_ours() {
    local what=$1
    shift
    run_mpi "$@"
    read_figure
    say "dimmnet, $what: ${figure:-right}"
}

read_figure() { figure=$(grep -m 1 -xE '[a-z]+ [0-9.]+ [A-Za-z]+' "$scratch/out" | cut -d ' ' -f 2-); }

# below FIGURE FACTOR OTHER: is it less than so many times the other one?
below() { awk -v a="${1% *}" -v f="$2" -v b="${3% *}" 'BEGIN { exit !(a < f * b) }'; }

# run_spawning, with the arguments of mpi_command: run_mpi for programs that spawn. With Open MPI 4.1 one
# spawn in some dozens hangs in the launcher, whatever the BTL: a child waits for PMIx in MPI_Init for ever.
# So a hang with a process in MPI_Init is tried again, three times at most; any other hang is a failure.
run_spawning() {
    local attempt
    mark_leftovers
    export DN_TEST_IN_INIT=$scratch/in_init
    for attempt in 1 2 3 4; do
        rm -rf "$DN_TEST_IN_INIT"
        mkdir "$DN_TEST_IN_INIT"
        try_mpi "$@"
        [[ $status -eq 124 && $attempt -lt 4 && -n $(ls "$DN_TEST_IN_INIT") ]] || break
        say "attempt $attempt did not end in $LIMIT s, with a spawned process in MPI_Init; once more"
        rm -rf "${TMPDIR:?}"/*
    done
    unset DN_TEST_IN_INIT
    check_run
}

# Lines in which the MPI library or the components speak up.
library_speaks='^\[[^]]*:[0-9]+\] |^-{20,}|^(libmca|btl|mca|dimmnet)[:_]|[Bb]us error|[Ss]egmentation fault'

check_silence() {
    if grep -qE "$library_speaks" "$scratch/out"; then
        show_output
        fail "the job ended well, but the library printed an error or a warning"
    fi
}

# --- what a job must not leave behind

# Everything in places where a transport could leave something. A test that needs the certainty that
# others do not work there at the same time calls use_private_shm first.
list_leftovers() {
    find /dev/shm "$TMPDIR" -mindepth 1 2>/dev/null
    find /tmp -mindepth 1 -maxdepth 1 -name 'dimmnet*' ! -type d -newer "$scratch/tmp.start" 2>/dev/null
}
touch "$scratch/tmp.start"

mark_leftovers() { list_leftovers | sort >"$scratch/before"; }

# New entries, one a line; other users' and, outside use_private_shm, other jobs' files do not count.
new_leftovers() {
    local path
    list_leftovers | sort | comm -13 "$scratch/before" - | while IFS= read -r path; do
        if [[ -n ${DN_PRIVATE_SHM:-} || $path == "$TMPDIR"/* || $path == *dimmnet* ]]; then
            [[ -e $path ]] && echo "$path"
        fi
    done
}

check_leftovers() {
    local left
    left=$(new_leftovers)
    # Without a /dev/shm of its own, what a running job of somebody else has there is not ours.
    if [[ -z ${DN_PRIVATE_SHM:-} && -n $left ]]; then
        left=$(grep -v '^/dev/shm/' <<<"$left")
    fi
    [[ -z $left ]] || fail "left behind: $left"
}

# Run the rest of the test, from its beginning, with an empty /dev/shm of its own of $1 (default 2g)
# bytes, as root or in a user namespace. Returns 1 when the system does not allow it.
use_private_shm() {
    local size=${1:-2g} way
    [[ -n ${DN_PRIVATE_SHM:-} ]] && return 0
    for way in "--mount" "--map-root-user --mount"; do
        # shellcheck disable=SC2086 # several words
        if unshare $way mount -t tmpfs -o size="$size" tmpfs /dev/shm 2>/dev/null; then
            rm -rf "$scratch"
            trap - EXIT
            unset TMPDIR
            # shellcheck disable=SC2086,SC2016
            DN_PRIVATE_SHM=$size SEED=$SEED abs_builddir=$bin exec unshare $way \
                bash -c 'mount -t tmpfs -o size="$1" tmpfs /dev/shm && exec "$2"' _ "$size" "$test_path"
        fi
    done
    return 1
}

# Process ids of the program at path $1, which has to be a copy of the test's own.
pids_of() {
    find /proc -mindepth 2 -maxdepth 2 -name exe -lname "$1" -printf '%h\n' 2>/dev/null | sed 's|^/proc/||'
}

# wait_until SECONDS COMMAND...: poll until it succeeds; false when it does not in time.
wait_until() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [[ $SECONDS -lt $end ]] || return 1
        sleep 0.02
    done
}

# A number in 0 .. $1 - 1, from SEED; set as the variable random.
RANDOM=$((SEED % 32768))
draw() { random=$(((RANDOM * 32768 + RANDOM) % $1)); }
