# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_OPTIONS: --enable-debug, --enable-sanitizer, --with-mcadir
AC_DEFUN([DN_OPTIONS], [
    AC_ARG_ENABLE([debug],
        [AS_HELP_STRING([--enable-debug], [no optimisation, internal checks on])],
        [], [enable_debug=no])
    AS_CASE([$enable_debug], [yes|no], [],
        [AC_MSG_ERROR([--enable-debug takes no value, not "$enable_debug"])])

    AC_ARG_ENABLE([sanitizer],
        [AS_HELP_STRING([--enable-sanitizer=address|thread|fuzzer],
            [build with ASan and UBSan, with TSan, or with ASan, UBSan and libFuzzer (CC=clang-14); use with --without-ompi])],
        [], [enable_sanitizer=no])
    AS_CASE([$enable_sanitizer], [no|address|thread|fuzzer], [],
        [AC_MSG_ERROR([--enable-sanitizer is one of address, thread, fuzzer; not "$enable_sanitizer"])])
    dn_sanitizer=$enable_sanitizer
    AM_CONDITIONAL([DN_LIBFUZZER], [test fuzzer = "$dn_sanitizer"])
    AM_CONDITIONAL([DN_SANITIZER], [test no != "$dn_sanitizer"])
    AM_CONDITIONAL([DN_THREAD_SANITIZER], [test thread = "$dn_sanitizer"])

    AC_ARG_WITH([mcadir],
        [AS_HELP_STRING([--with-mcadir=DIR], [install the Open MPI components in DIR @<:@LIBDIR/openmpi@:>@])],
        [], [with_mcadir='${libdir}/openmpi'])
    AS_CASE([$with_mcadir],
        [yes|no|""], [AC_MSG_ERROR([--with-mcadir needs a directory: --with-mcadir=DIR])],
        [/*|'${libdir}'*|'${prefix}'*], [],
        [AC_MSG_ERROR([--with-mcadir needs an absolute directory, not "$with_mcadir"])])
    AC_SUBST([mcadir], [$with_mcadir])
])

# DN_FLAGS: compiler and linker flags of all code here
AC_DEFUN([DN_FLAGS], [
    DN_CPPFLAGS='-I$(top_builddir)/common -I$(top_srcdir)/common -I$(top_srcdir)/sim'
    m4_foreach_w([dn_folder], [base line sg port tree tag rma],
        [DN_CPPFLAGS="$DN_CPPFLAGS -I\$(top_srcdir)/common/dn_folder"
        ])
    DN_CFLAGS="-std=gnu11 -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter -Werror=implicit-function-declaration"
    DN_LDFLAGS="-Wl,-z,now"
    dn_opt="-O3 -g"
    AS_IF([test yes = "$enable_debug"], [
        dn_opt="-O0 -g3"
        AC_DEFINE([DN_DEBUG], [1], [1: internal checks are compiled in])
    ], [AC_DEFINE([DN_DEBUG], [0])])
    # Builds that look for errors check every turn of an object's life: common/base/dn_turn.h.
    AS_IF([test yes = "$enable_debug" || test no != "$dn_sanitizer"], [DN_CPPFLAGS="$DN_CPPFLAGS -DDN_CHECK_STATES"])
    # A sanitizer's run-time library is found in the program, so its shared libraries are left with
    # undefined symbols when the compiler is clang.
    AS_CASE([$dn_sanitizer],
        [address], [
            dn_opt="-O1 -g"
            DN_CFLAGS="$DN_CFLAGS -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
            DN_LDFLAGS="$DN_LDFLAGS -fsanitize=address,undefined"],
        [fuzzer], [
            dn_opt="-O1 -g"
            DN_CFLAGS="$DN_CFLAGS -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
            DN_LDFLAGS="$DN_LDFLAGS -fsanitize=address,undefined"],
        [thread], [
            dn_opt="-O1 -g"
            DN_CFLAGS="$DN_CFLAGS -fsanitize=thread -fno-omit-frame-pointer"
            DN_LDFLAGS="$DN_LDFLAGS -fsanitize=thread"],
        [DN_LDFLAGS="$DN_LDFLAGS -Wl,-z,defs"])
    AS_IF([test set != "$dn_user_cflags"], [CFLAGS=$dn_opt])

    dn_save_CFLAGS=$CFLAGS
    dn_save_LDFLAGS=$LDFLAGS
    CFLAGS="$CFLAGS $DN_CFLAGS"
    LDFLAGS="$LDFLAGS $DN_LDFLAGS"
    AC_MSG_CHECKING([whether programs link with the flags of this project])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdatomic.h>]], [[static atomic_int a; atomic_store(&a, 1);]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([$CC cannot link with "$CFLAGS $LDFLAGS": use gcc 9 or clang 10 or newer, with sanitizer libraries where asked for; see config.log])])
    CFLAGS=$dn_save_CFLAGS
    LDFLAGS=$dn_save_LDFLAGS

    AC_SUBST([DN_CPPFLAGS])
    AC_SUBST([DN_CFLAGS])
    AC_SUBST([DN_LDFLAGS])
    AC_SUBST([AM_CPPFLAGS], ['$(DN_CPPFLAGS)'])
    AC_SUBST([AM_CFLAGS], ['$(DN_CFLAGS)'])
    AC_SUBST([AM_LDFLAGS], ['$(DN_LDFLAGS)'])
])
