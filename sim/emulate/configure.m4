# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_DEVICE_emulate_CONFIG(if-usable, if-not): a NIC's delays over shm, counted by the processor's clock
AC_DEFUN([DN_DEVICE_emulate_CONFIG], [
    AS_IF([test yes != "$enable_device_model" && test auto != "$enable_device_model"],
            [dn_device_emulate_why="it needs the profiles of the model, which is left out"
             $2],
          [test yes != "$enable_device_shm" && test auto != "$enable_device_shm"],
            [dn_device_emulate_why="it lies over shm, which is left out"
             $2],
        [AC_MSG_CHECKING([whether the emulate device can be built])
         AS_CASE([$host],
            [x86_64-*-linux*|aarch64*-*-linux*], [AC_MSG_RESULT([yes])
                                                  $1],
            [AC_MSG_RESULT([no])
             dn_device_emulate_why="no counter of constant rate is known for $host"
             $2])])
])
