# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_DEVICE_model_CONFIG(if-usable, if-not): nodes in one process under a virtual clock
AC_DEFUN([DN_DEVICE_model_CONFIG], [
    AC_CHECK_HEADERS([ucontext.h], [$1], [
        dn_device_model_why="ucontext.h was not found"
        $2
    ])
])
