# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_DEVICE_ipnuma_CONFIG(if-usable, if-not): processes of any hosts, by TLPs over UDP
AC_DEFUN([DN_DEVICE_ipnuma_CONFIG], [
    AC_MSG_CHECKING([whether the ipnuma device can be built])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <ifaddrs.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#ifndef __linux__
#    error it asks Linux for the MTU of a path, and waits by its eventfd
#endif
]], [[return eventfd(0, 0);]])],
        [AC_MSG_RESULT([yes])
         $1],
        [AC_MSG_RESULT([no])
         dn_device_ipnuma_why="the ipnuma device needs Linux, this is $host_os"
         $2])
])
