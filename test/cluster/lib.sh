# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# What the tests on several hosts share; each of them sources this file first. It is ../mpi/lib.sh, and:
#
#   use_hosts N     from here on, ranks are dealt out to the hosts h1 .. hN (1 to 4), one after the other
#   at_length SHORT LONG   print the one that is wanted
#   on_host HOST COMMAND...
#   pull_out HOST   its network cable
#   give_up_soon    have mpirun notice, which then ends the job
#   cut_off HOST    both
#   plug_in HOST    put it back
#   slow_down HOST RATE
#   without_han     words for run_mpi and the like, beside a program that verifies Open MPI's own collectives
#   lost_host_is_told STATUS   of a job on a host that was cut off
#
# The hosts are name spaces of the kernel: each has its own network, host name, process ids, SysV IPC and
# /dev/shm, and is known by a boot id of its own. A bridge in one more name space, named head, joins them;
# mpirun and the test itself run there. The first process of head ends with the test, however that ends, and the
# kernel then ends all that is inside and takes the networks away.
#
# From the environment, beside what ../mpi/lib.sh takes:
#
#   DEVICES   list for common_dimmnet_devices (default auto)
#   LONG      not empty: the long forms of the tests, which take some five minutes in all on two cores, not two
#
# shellcheck shell=bash disable=SC2034

[[ -z ${cluster:-} ]] || return 0 # a script of ../mpi sources this once more
cluster=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=../mpi/lib.sh
. "$cluster/../mpi/lib.sh"

DEVICES=${DEVICES:-auto}
HOSTS_MAX=4
tcp_retries=$(</proc/sys/net/ipv4/tcp_retries2)
NET=10.77.0

# --- the outer part: makes the name spaces, runs the test in them, removes its scratch folder

# Process $1 by its name space, its id and when it started: an id alone may be another's by now.
process() { echo "$(readlink /proc/self/ns/pid) $1 $(sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20)"; }

# Remove what tests left that were killed before they could: their scratch folders name their owners.
sweep() {
    local record space pid start
    for record in "${scratch%/*}"/dn-test.*/owner; do
        [[ -O $record ]] && read -r space pid start <"$record" || continue
        # What processes of another name space are doing cannot be seen.
        [[ $space == "$(readlink /proc/self/ns/pid)" && "$space $pid $start" != "$(process "$pid")" ]] || continue
        rm -rf "${record%/owner}"
    done
}

head_space=(--mount --net --uts --pid --fork --kill-child --mount-proc)

run_in_name_spaces() {
    local way='' status
    need_command ip iproute2
    need_command nsenter util-linux
    need_command setpriv util-linux
    sweep
    # Users other than root need a user name space for it.
    for way in "env" "unshare --map-root-user" none; do
        [[ $way != none ]] || skip "network, mount and process name spaces cannot be made here: $(<"$scratch/why")"
        # shellcheck disable=SC2086 # several words
        ! $way unshare "${head_space[@]}" mount -t tmpfs tmpfs /dev/shm 2>"$scratch/why" || break
    done
    process $$ >"$scratch/owner"
    # shellcheck disable=SC2086
    DN_CLUSTER=$scratch/hosts SEED=$SEED TMPDIR=$scratch \
        $way setpriv --pdeathsig KILL unshare "${head_space[@]}" "$test_path" "$@" &
    inside=$!
    trap 'kill -KILL "$inside" 2>/dev/null; exit 130' INT TERM
    wait "$inside"
    status=$?
    exit "$status"
}

at_length() { [[ -z ${LONG:-} ]] && echo "$1" || echo "$2"; }

[[ -n ${DN_CLUSTER:-} ]] || run_in_name_spaces "$@"

# --- the inner part: hosts

export DN_CLUSTER
DN_PRIVATE_SHM=yes # so everything in it is ours

# The first process of a host; it waits there for its children, as init does. $1: its name, $2: its folder.
# shellcheck disable=SC2016 # expanded by the host
host_init='hostname "$1" && ip link set lo up && mount -t tmpfs -o size=2g tmpfs /dev/shm &&
    mount --bind "$2/boot_id" /proc/sys/kernel/random/boot_id && : >"$2/up" && read -r _ <"$2/down"'

start_host() { # NUMBER
    local name=h$1 folder=$DN_CLUSTER/h$1 pid
    mkdir -p "$folder/tmp"
    cat /proc/sys/kernel/random/uuid >"$folder/boot_id"
    mkfifo "$folder/down"
    unshare --mount --net --uts --ipc --pid --fork --kill-child --mount-proc \
        bash -c "$host_init" init "$name" "$folder" >"$folder/log" 2>&1 &
    pid=$!
    wait_until 60 test -e "$folder/up" -o ! -e "/proc/$pid" && [[ -e $folder/up ]] ||
        skip "a host cannot be made here: $(<"$folder/log")"
    echo "$pid" >"$folder/pid"
    ip link add "$name" type veth peer name eth0 netns "$pid" 2>"$folder/log" &&
        ip link set "$name" master bridge up 2>"$folder/log" ||
        skip "a host cannot be connected here: $(<"$folder/log")"
    on_host "$name" "ip addr add $NET.$1/24 dev eth0 && ip link set eth0 up" ||
        fail "$name has no network"
}

start_hosts() {
    local i
    hostname head
    mount -t tmpfs -o size=256m tmpfs /dev/shm || fail "head has no /dev/shm"
    mkdir -p "$DN_CLUSTER"
    {
        echo "127.0.0.1 localhost"
        echo "$NET.254 head"
        for ((i = 1; i <= HOSTS_MAX; i++)); do echo "$NET.$i h$i"; done
    } >"$DN_CLUSTER/names"
    mount --bind "$DN_CLUSTER/names" /etc/hosts || fail "head has no /etc/hosts of its own"
    ip link set lo up
    ip link add bridge type bridge 2>"$scratch/why" || skip "there is no network bridge here: $(<"$scratch/why")"
    ip addr add "$NET.254/24" dev bridge && ip link set bridge up || fail "the bridge does not come up"
    for ((i = 1; i <= HOSTS_MAX; i++)); do start_host "$i"; done
}

on_host() { "$cluster/enter_host" "$@"; }

pull_out() { ip link set "$1" down || fail "the cable of $1 stays in"; }

# mpirun tells the daemons to end, and waits for one that it cannot reach until TCP gives up: a quarter of an
# hour, unless head tries less often.
give_up_soon() { echo 1 >/proc/sys/net/ipv4/tcp_retries2 || fail "head cannot be told when TCP gives up"; }

cut_off() {
    give_up_soon
    pull_out "$1"
}

plug_in() {
    ip link set "$1" up || fail "the cable of $1 stays out"
    echo "$tcp_retries" >/proc/sys/net/ipv4/tcp_retries2 || fail "head cannot be told when TCP gives up"
}

# In both directions. tbf takes whole segments of up to 64 KiB, which it cuts itself.
slow_down() {
    need_command tc iproute2
    local tbf="root tbf rate $2 burst 16kb latency 200ms"
    # shellcheck disable=SC2086
    tc qdisc add dev "$1" $tbf 2>"$scratch/why" && on_host "$1" "tc qdisc add dev eth0 $tbf" 2>"$scratch/why" ||
        skip "a link cannot be made slow here: $(<"$scratch/why")"
}

# How often a packet to a host had to wait, or was dropped, for its slow link.
slowed_packets() { tc -s qdisc show dev "$1" | sed -n 's/.*overlimits \([0-9]*\).*/\1/p'; }

# --- running MPI programs

# The hosts share the cores of this machine, and no process can see that.
export OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_MCA_plm_rsh_agent=$cluster/enter_host
# As Open MPI 5.0 calls them.
export PRTE_MCA_plm=ssh PRTE_MCA_plm_ssh_no_tree_spawn=1 PRTE_MCA_plm_ssh_agent=$cluster/enter_host

# On several hosts coll/han of Open MPI 5.0.7 corrupts the heap in a reduce, and gathers wrong bytes where ranks have different datatypes, also
# without dimmnet.
without_han=()
[[ $ompi_major -lt 5 ]] || without_han=(--mca coll ^han)

# lost_host_is_told STATUS: the status of a job that was ended for a lost host. mpirun of Open MPI 5.0.7 ends with 0 each time; a release that
# ends with another status is to be held to that.
lost_host_is_told() {
    if [[ $ompi_major -lt 5 ]]; then
        [[ $1 -ne 0 ]] || fail "mpirun ended with 0 although a host was cut off"
    else
        [[ $1 -eq 0 ]] || fail "mpirun ended with $1, not with 0 as that of Open MPI 5.0.7 does: expect this of its release"
    fi
}

use_hosts() {
    local i list=h1:4
    for ((i = 2; i <= $1; i++)); do list+=,h$i:4; done
    MPI_ARGS="--host $list --map-by node --bind-to none"
}

# As in ../mpi/lib.sh, with what reaches other hosts: the devices of dimmnet, and stock_between beside vader.
stock_between=tcp
transport() {
    local words="--mca btl $BTL"
    ! has_btl "$stock_shm" || has_btl tcp || words+=${stock_between:+,$stock_between}
    ! has_btl dimmnet || words+=" --mca common_dimmnet_devices $DEVICES"
    case $TRANSPORT in
    ob1) echo "--mca pml ob1 $words" ;;
    pml) echo "--mca pml dimmnet $words" ;;
    mtl) echo "--mca pml cm --mca mtl uzura $words" ;;
    *) fail "TRANSPORT is ob1, pml or mtl, not \"$TRANSPORT\"" ;;
    esac
}

# Also in the hosts' own places.
list_leftovers() {
    local folder
    find /dev/shm "$TMPDIR" -mindepth 1 2>/dev/null
    for folder in "$DN_CLUSTER"/h*; do
        find "$folder/tmp" "/proc/$(<"$folder/pid")/root/dev/shm" -mindepth 1 2>/dev/null
    done
}

# plm_rsh, or plm_ssh, sometimes finds that the agent has begun before it was made a process group, and says so.
eval "one_host_$(declare -f check_silence)"
check_silence() {
    sed -i '/ plm:[rs]sh: Warning: setpgid(/d' "$scratch/out"
    one_host_check_silence
}

# The daemons on the hosts outlive mpirun by a moment.
nothing_left() { [[ -z $(new_leftovers) ]]; }
check_leftovers() { wait_until 30 nothing_left || fail "left behind: $(new_leftovers)"; }

start_hosts
use_hosts 2
