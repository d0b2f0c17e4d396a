# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_DEVICE_shm_CONFIG(if-usable, if-not): processes of one Linux host, through memory both map
AC_DEFUN([DN_DEVICE_shm_CONFIG], [
    AC_MSG_CHECKING([whether the shm device can be built])
    AS_CASE([$host_os],
        [linux*], [AC_MSG_RESULT([yes])
                   $1],
        [AC_MSG_RESULT([no])
         dn_device_shm_why="the shm device needs Linux, this is $host_os"
         $2])
])
