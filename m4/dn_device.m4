# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_DEVICES(list): the devices of libdimmnet, in the order in which a port tries them
#
# A device <name> is a folder common/<name> or sim/<name> with a fragment configure.m4 that defines
# DN_DEVICE_<name>_CONFIG(if-usable, if-not): it checks what the device needs and sets
# dn_device_<name>_why to the reason when that is missing. configure.ac needs no other change, and
# common/dn_devices.h gets a line DN_DEVICE(<name>) for an X-macro.
AC_DEFUN([DN_DEVICES], [
    dn_devices=
    dn_devices_without=
    m4_foreach_w([dn_dev], [$1], [
        AC_ARG_ENABLE([device-]dn_dev,
            [AS_HELP_STRING([--disable-device-]dn_dev, [leave out the device ]dn_dev)],
            [], [enable_device_]dn_dev[=auto])
        AS_IF([test no = "$enable_device_]dn_dev["], [dn_usable=no],
            [m4_indir([DN_DEVICE_]dn_dev[_CONFIG], [dn_usable=yes], [dn_usable=no])
             AS_IF([test yesno = "$enable_device_]dn_dev[$dn_usable"],
                 [AC_MSG_ERROR([--enable-device-]dn_dev[: $dn_device_]dn_dev[_why])])])
        AS_IF([test yes = "$dn_usable"], [dn_devices="${dn_devices:+$dn_devices }dn_dev"],
            [dn_devices_without="$dn_devices_without, not ]dn_dev[ (${dn_device_]dn_dev[_why:-left out by --disable-device-]dn_dev[})"])
        AM_CONDITIONAL([DN_DEVICE_]m4_toupper(dn_dev), [test yes = "$dn_usable"])
    ])
    AS_IF([test -z "$dn_devices"],
        [AC_MSG_ERROR([no device is left to build: libdimmnet needs one of: $1])])
    AC_SUBST([DN_DEVICE_LIST], [$dn_devices])
    AC_CONFIG_COMMANDS([common/dn_devices.h], [
        {
            AS_ECHO(["/* SPDX-License-Identifier: BSD-3-Clause */"])
            AS_ECHO(["/* Copyright (c) 2026 The dimmnet authors */"])
            AS_ECHO(["/* Written by configure: the devices of this build. Included with DN_DEVICE(name) defined. */"])
            for dn_dev in $dn_devices; do
                AS_ECHO(["DN_DEVICE($dn_dev)"])
            done
        } >common/dn_devices.h.new
        # An unchanged file keeps its time, so that nothing is rebuilt.
        AS_IF([cmp -s common/dn_devices.h.new common/dn_devices.h],
            [rm -f common/dn_devices.h.new],
            [mv -f common/dn_devices.h.new common/dn_devices.h])
    ], [dn_devices='$dn_devices'])
])
