# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_DEVICE_ofi_CONFIG(if-usable, if-not): processes of any hosts, through libfabric
AC_DEFUN([DN_DEVICE_ofi_CONFIG], [
    AC_ARG_WITH([ofi],
        [AS_HELP_STRING([--with-ofi=DIR], [libfabric 1.9 or newer in DIR @<:@where pkg-config finds it@:>@])],
        [], [with_ofi=check])
    dn_device_ofi_why=
    dn_ofi_rpath=
    AS_CASE([$with_ofi],
        [no], [dn_device_ofi_why="left out by --without-ofi"],
        [yes|check],
            [PKG_CHECK_MODULES([OFI], [libfabric >= 1.9], [],
                [dn_device_ofi_why="libfabric 1.9 or newer was not found (libfabric-dev)"])],
        [dn_ofi_lib=$with_ofi/lib
         AS_IF([test -d "$with_ofi/lib64"], [dn_ofi_lib=$with_ofi/lib64])
         OFI_CFLAGS="-I$with_ofi/include"
         OFI_LIBS="-L$dn_ofi_lib -Wl,-rpath,$dn_ofi_lib -lfabric"
         dn_ofi_rpath="-Wl,-rpath,$dn_ofi_lib"
         AC_SUBST([OFI_CFLAGS])
         AC_SUBST([OFI_LIBS])])
    AS_IF([test -z "$dn_device_ofi_why"], [
        dn_save_CFLAGS=$CFLAGS
        dn_save_LIBS=$LIBS
        CFLAGS="$CFLAGS $OFI_CFLAGS"
        LIBS="$OFI_LIBS $LIBS"
        AC_MSG_CHECKING([whether the ofi device can be built])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <rdma/fabric.h>
#include <rdma/fi_rma.h>
#if FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) < FI_VERSION(1, 9)
#    error too old
#endif
]], [[struct fi_info *info = fi_allocinfo();
fi_freeinfo(info);]])],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             dn_device_ofi_why="libfabric 1.9 or newer does not compile and link with $OFI_CFLAGS $OFI_LIBS; see config.log"])
        CFLAGS=$dn_save_CFLAGS
        LIBS=$dn_save_LIBS
    ])
    # The device loads it: dn_ofi_lib.c.
    OFI_LIBS=$dn_ofi_rpath
    AS_CASE([$with_ofi], [no|check], [],
        [AS_IF([test -n "$dn_device_ofi_why"], [AC_MSG_ERROR([--with-ofi: $dn_device_ofi_why])])])
    AS_IF([test -z "$dn_device_ofi_why"], [$1], [$2])
])
