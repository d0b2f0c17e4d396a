# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# What contrib/debian/try does in a Debian that has Open MPI and nothing else, by bash -eu. It lies in /debs with the packages.
cd /tmp
die() { echo "FAILED: $*" >&2; exit 1; }
files() { find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /debs -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log \
    -o -path /var/cache -o -path /var/lib/apt -o -path /etc/ld.so.cache \) -prune -o -print | sort; }
components() { ompi_info 2>&1 | tee /tmp/info | grep -cE 'MCA .*: (dimmnet|uzura|llcm) ' || true; }
# By what two ranks send 8 bytes to and fro.
pml() {
    mpirun -n 2 --oversubscribe --mca pml_base_verbose 10 /debs/latency -m 8:8 >/tmp/out 2>&1 || { cat /tmp/out; die "the job ended with $?"; }
    ! grep -i 'cannot open\|unable to open' /tmp/out || die "a component cannot be opened"
    grep -q '^8 ' /tmp/out || { cat /tmp/out; die "the job measured nothing"; }
    sed -n 's/.*select: component \([a-z0-9]*\) selected.*/\1/p; s/.*selected \([a-z0-9]*\) best priority.*/\1/p' /tmp/out | sort -u
}

$apt openmpi-bin >/dev/null
files >/tmp/before
[[ 0 = "$(components)" ]] || die "Open MPI has something of dimmnet before it is installed"
$apt /debs/*.deb >/dev/null
echo "installed, with $(dpkg-query -W -f '${Depends}\n' openmpi-dimmnet | tr ',' '\n' | grep -E '^ *libopenmpi[^ ]* \(= ' | xargs)"

[[ 0 = "$(components)" && disabled = "$(dimmnet-enable --status)" ]] || die "it is not inactive when installed"
[[ ob1 = "$(pml)" ]] || die "inactive, and used: $(pml)"
[[ dimmnet = "$(. /usr/share/dimmnet/env.sh && pml)" ]] || die "env.sh does not enable it: $(cat /tmp/out)"

dimmnet-enable
dimmnet-enable # once more: nothing changes
[[ 5 = "$(components)" ]] || { cat /tmp/info; die "ompi_info shows $(components) components"; }
! grep -i 'cannot open\|unable to open' /tmp/info || die "ompi_info cannot open a component"
[[ dimmnet = "$(set +eu; . /etc/profile; pml)" ]] || die "enabled, and not used after a login: $(cat /tmp/out)"
echo "enabled: $(grep '^8 ' /tmp/out | xargs echo 'bytes, us:')"
/debs/user
dimmnet_info >/tmp/out && grep -A 1 Devices /tmp/out
# A device that is a module, with its profile.
dimmnet_perf --local -D emulate:dimmnet1-d -t latency -s 8:8 -n 50 -w 0 >/tmp/out 2>&1 || { cat /tmp/out; die "dimmnet_perf does not work"; }

$apt --reinstall /debs/openmpi-dimmnet*.deb >/dev/null
[[ enabled = "$(dimmnet-enable --status)" ]] || die "an upgrade disables it"
dimmnet-disable
[[ 0 = "$(components)" && ob1 = "$(pml)" ]] || die "disabled, and used"
dimmnet-enable

apt-get purge -qq -y $packages >/dev/null
apt-get autoremove -qq -y --purge >/dev/null
[[ 0 = "$(components)" && ob1 = "$(pml)" ]] || die "removed, and used"
files >/tmp/after
# Libraries that came with it and that something else keeps are no leftovers of it.
comm -13 /tmp/before /tmp/after >/tmp/left
[[ ! -s /tmp/left ]] || { head -20 /tmp/left; die "$(wc -l </tmp/left) files are left"; }
