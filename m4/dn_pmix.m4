# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_PMIX: PMIx, which libdn_dsm loads when a launcher has it
AC_DEFUN([DN_PMIX], [
    AC_ARG_WITH([pmix],
        [AS_HELP_STRING([--without-pmix],
            [programs on shared memory meet in a folder alone, not by their launcher @<:@PMIx 3.0 or newer where pkg-config finds it@:>@])],
        [], [with_pmix=check])
    AS_CASE([$with_pmix], [yes|no|check], [],
        [AC_MSG_ERROR([--with-pmix takes no value, not "$with_pmix": name the folder of pmix.pc in PKG_CONFIG_PATH])])
    dn_pmix_why=
    AS_IF([test no = "$with_pmix"], [dn_pmix_why="left out by --without-pmix"],
        [PKG_CHECK_MODULES([PMIX], [pmix >= 3.0], [],
            [dn_pmix_why="PMIx 3.0 or newer was not found (libpmix-dev)"])])
    AS_IF([test -z "$dn_pmix_why"], [
        dn_save_CPPFLAGS=$CPPFLAGS
        CPPFLAGS="$CPPFLAGS $PMIX_CFLAGS"
        AC_MSG_CHECKING([whether pmix.h can be included])
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <pmix.h>]], [[__typeof__(PMIx_Fence_nb) *fence = 0;
return fence != 0;]])],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             dn_pmix_why="pmix.h does not compile with $PMIX_CFLAGS; see config.log"])
        CPPFLAGS=$dn_save_CPPFLAGS
    ])
    AS_CASE([$with_pmix], [yes],
        [AS_IF([test -n "$dn_pmix_why"], [AC_MSG_ERROR([--with-pmix: $dn_pmix_why])])])
    AS_IF([test -z "$dn_pmix_why"],
        [dn_pmix_libdir=`$PKG_CONFIG --variable=libdir pmix 2>&AS_MESSAGE_LOG_FD`
         AC_DEFINE_UNQUOTED([DN_PMIX_LIBDIR], ["$dn_pmix_libdir"],
             [where libpmix was when this was configured; empty: not known])])
    AM_CONDITIONAL([DN_HAVE_PMIX], [test -z "$dn_pmix_why"])
])
