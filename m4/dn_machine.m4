# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_MACHINE: stop with a sentence on a machine that common/dn_machine.h refuses.
AC_DEFUN([DN_MACHINE], [
    AC_MSG_CHECKING([whether dimmnet runs on $host_cpu])
    dn_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS -I$srcdir/common"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include "dn_machine.h"]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         dn_why=`$SED -n 's/.*error: .*\(dimmnet needs [[^"]]*\).*/\1/p' conftest.err | $SED 1q`
         AC_MSG_ERROR([${dn_why:-common/dn_machine.h does not compile; see config.log} (this is $host)])])
    CPPFLAGS=$dn_save_CPPFLAGS
])
