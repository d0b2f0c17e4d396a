# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_DEVICES(list, modules): the devices that libdimmnet has built in, and those that it loads when they are named
#
# A device <name> is a folder common/<name>, or sim/<name> for a module, with a fragment configure.m4 that defines
# DN_DEVICE_<name>_CONFIG(if-usable, if-not): it checks what the device needs and sets
# dn_device_<name>_why to the reason when that is missing. configure.ac needs no other change, and
# common/dn_devices.h gets a line DN_DEVICE(<name>) for each that is built in, for an X-macro.
AC_DEFUN([DN_DEVICES], [
    dn_devices=
    dn_devices_without=
    m4_foreach_w([dn_dev], [$1], [DN_DEVICE_CHOOSE(dn_dev)])
    AS_IF([test -z "$dn_devices"],
        [AC_MSG_ERROR([no device is left to build: libdimmnet needs one of: $1])])
    dn_devices_built_in=$dn_devices
    m4_foreach_w([dn_dev], [$2], [DN_DEVICE_CHOOSE(dn_dev)])
    AC_SUBST([DN_DEVICE_LIST], [$dn_devices])
    AC_CONFIG_COMMANDS([common/dn_devices.h], [
        {
            AS_ECHO(["/* SPDX-License-Identifier: BSD-3-Clause */"])
            AS_ECHO(["/* Copyright (c) 2026 The dimmnet authors */"])
            AS_ECHO(["/* Written by configure: the devices of this build. Included with DN_DEVICE(name) defined. */"])
            for dn_dev in $dn_devices_built_in; do
                AS_ECHO(["DN_DEVICE($dn_dev)"])
            done
        } >common/dn_devices.h.new
        # An unchanged file keeps its time, so that nothing is rebuilt.
        AS_IF([cmp -s common/dn_devices.h.new common/dn_devices.h],
            [rm -f common/dn_devices.h.new],
            [mv -f common/dn_devices.h.new common/dn_devices.h])
    ], [dn_devices_built_in='$dn_devices_built_in'])
])

# DN_DEVICE_CHOOSE(name): is this device built? Sets DN_DEVICE_<NAME>, and adds to dn_devices or dn_devices_without.
AC_DEFUN([DN_DEVICE_CHOOSE], [
    AC_ARG_ENABLE([device-$1],
        [AS_HELP_STRING([--disable-device-$1], [leave out the device $1])],
        [], [enable_device_$1=auto])
    AS_IF([test no = "$enable_device_$1"], [dn_usable=no],
        [m4_indir([DN_DEVICE_$1_CONFIG], [dn_usable=yes], [dn_usable=no])
         AS_IF([test yesno = "$enable_device_$1$dn_usable"],
             [AC_MSG_ERROR([--enable-device-$1: $dn_device_$1_why])])])
    AS_IF([test yes = "$dn_usable"], [dn_devices="${dn_devices:+$dn_devices }$1"],
        [dn_devices_without="$dn_devices_without, not $1 (${dn_device_$1_why:-left out by --disable-device-$1})"])
    AM_CONDITIONAL([DN_DEVICE_]m4_toupper($1), [test yes = "$dn_usable"])
])
