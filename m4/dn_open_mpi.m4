# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors

# DN_OPEN_MPI: finds Open MPI through its compiler wrapper and tests the features in which its versions differ
AC_DEFUN([DN_OPEN_MPI], [
    AC_ARG_WITH([ompi],
        [AS_HELP_STRING([--with-ompi=MPICC], [compiler wrapper of the Open MPI to build for @<:@mpicc.openmpi, mpicc@:>@])
AS_HELP_STRING([--without-ompi], [build libdimmnet, its tests and the benchmarks that need no MPI])],
        [], [with_ompi=yes])
    AC_ARG_WITH([ompi-source],
        [AS_HELP_STRING([--with-ompi-source=DIR], [take the internal headers of Open MPI from its sources, unpacked and configured in DIR @<:@those that are installed@:>@])],
        [], [with_ompi_source=no])
    dn_ompi_summary="not used (--without-ompi)"
    dn_mcadir_summary="none"
    AS_IF([test no != "$with_ompi"], [_DN_OMPI_FIND])
    AM_CONDITIONAL([DN_HAVE_OMPI], [test no != "$with_ompi"])
    AC_SUBST([MPICC])
    AC_SUBST([MPIRUN])
    AC_SUBST([MPI_CFLAGS])
    AC_SUBST([MPI_LIBS])
    AC_SUBST([DN_OMPI_VERSION])
    AC_SUBST([DN_OMPI_CPPFLAGS])
    AC_SUBST([DN_OMPI_CFLAGS])
    AC_SUBST([DN_OMPI_LDFLAGS])
    AC_SUBST([DN_OMPI_LIBS])
    AC_SUBST([DN_OMPI_BTL_LIBS])
    AC_SUBST([DN_PMIX_COMPONENTS])
    AC_SUBST([DN_OMPI_DIR])
    # For the shell of a test: components come from the build tree. PMIx is told of a folder of its own, as in env.sh.
    DN_COMPONENTS_OF_BUILD="OMPI_MCA_mca_base_component_path='\$(abs_top_builddir)/openmpi:SYS_DEFAULT'; export OMPI_MCA_mca_base_component_path"
    AS_IF([test -n "$DN_PMIX_COMPONENTS"],
        [DN_COMPONENTS_OF_BUILD="$DN_COMPONENTS_OF_BUILD; PMIX_MCA_mca_base_component_path='$DN_PMIX_COMPONENTS'; export PMIX_MCA_mca_base_component_path"])
    AC_SUBST([DN_COMPONENTS_OF_BUILD])
])

m4_define([_DN_OMPI_HINT],
    [[install libopenmpi-dev and openmpi-bin, name its compiler wrapper by --with-ompi=MPICC, or build without it by --without-ompi]])

# The flags of the wrapper, then the folders of the internal headers, then features.
AC_DEFUN([_DN_OMPI_FIND], [
    AS_CASE([$with_ompi],
        [yes], [AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc])],
        [*/*], [
            MPICC=
            AS_IF([test -x "$with_ompi"], [MPICC=`cd "$(dirname "$with_ompi")" && pwd`/`basename "$with_ompi"`])],
        [AC_PATH_PROG([MPICC], [$with_ompi])])
    AS_IF([test -z "$MPICC"], [
        AS_IF([test yes = "$with_ompi"],
            [AC_MSG_ERROR([Open MPI was not found: ]_DN_OMPI_HINT)],
            [AC_MSG_ERROR([--with-ompi: "$with_ompi" is not a program: ]_DN_OMPI_HINT)])])
    dn_incdirs=`"$MPICC" --showme:incdirs 2>&AS_MESSAGE_LOG_FD` && test -n "$dn_incdirs" ||
        AC_MSG_ERROR([$MPICC is not the compiler wrapper of Open MPI (it does not know --showme:incdirs): ]_DN_OMPI_HINT)
    dn_libdirs=`"$MPICC" --showme:libdirs 2>&AS_MESSAGE_LOG_FD`

    AS_IF([test no = "$with_ompi_source"], [_DN_OMPI_HEADERS_INSTALLED], [_DN_OMPI_HEADERS_SOURCE])
    # As system headers: their warnings are not ours to fix.
    DN_OMPI_CPPFLAGS=
    for dn_dir in $dn_ompi_folders; do
        AS_IF([test /usr/include != "$dn_dir"], [DN_OMPI_CPPFLAGS="$DN_OMPI_CPPFLAGS -isystem $dn_dir"])
    done
    dn_ompi_cppflags=$DN_OMPI_CPPFLAGS
    # Headers that others include but that distributions leave out, in words of our own; searched last.
    AS_IF([test no = "$with_ompi_source"], [
        DN_OMPI_CPPFLAGS="$DN_OMPI_CPPFLAGS -idirafter \$(top_srcdir)/common/ompi/standin"
        dn_ompi_cppflags="$dn_ompi_cppflags -idirafter $srcdir/common/ompi/standin"])
    DN_OMPI_CFLAGS=
    AS_CASE([$host_cpu], [x86_64|amd64], [DN_OMPI_CFLAGS="-mcx16"])
    DN_OMPI_LDFLAGS=
    for dn_dir in $dn_libdirs; do
        DN_OMPI_LDFLAGS="$DN_OMPI_LDFLAGS -L$dn_dir"
    done
    MPI_CFLAGS=`"$MPICC" --showme:compile`
    MPI_LIBS=`"$MPICC" --showme:link`
    dn_mpi_bin=`AS_DIRNAME(["$MPICC"])`
    AS_CASE([$MPICC],
        [*.openmpi], [AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun], [mpirun], [$dn_mpi_bin$PATH_SEPARATOR$PATH])],
        [AC_PATH_PROGS([MPIRUN], [mpirun mpirun.openmpi], [mpirun], [$dn_mpi_bin$PATH_SEPARATOR$PATH])])
    # Where this Open MPI looks for components: dimmnet-enable puts links there. Empty where it does not say.
    AC_PATH_PROG([OMPI_INFO], [ompi_info], [], [$dn_mpi_bin$PATH_SEPARATOR$PATH])
    DN_OMPI_DIR=`test -z "$OMPI_INFO" || "$OMPI_INFO" --parsable --path pkglibdir 2>&AS_MESSAGE_LOG_FD | $SED -n 's/^path:pkglibdir://p'`

    dn_save_CPPFLAGS=$CPPFLAGS
    dn_save_CFLAGS=$CFLAGS
    CPPFLAGS="$CPPFLAGS $dn_ompi_cppflags"
    CFLAGS="$CFLAGS -std=gnu11 $DN_OMPI_CFLAGS"
    _DN_OMPI_VERSION
    _DN_OMPI_FEATURES
    CPPFLAGS=$dn_save_CPPFLAGS
    CFLAGS=$dn_save_CFLAGS

    # libopen-pal is named always: its soname is what keeps a component of one major version from loading into another.
    AS_IF([test 5 -gt "$dn_opal_major"],
        [DN_OMPI_BTL_LIBS="-lopen-pal -lopen-rte"],
        [DN_OMPI_BTL_LIBS="-lopen-pal -lpmix"
         # env.sh names PMIx's own folder of components, or, where it has none, an existing folder.
         DN_PMIX_COMPONENTS=`$PKG_CONFIG --variable=libdir pmix 2>&AS_MESSAGE_LOG_FD`/pmix
         AS_IF([test ! -d "$DN_PMIX_COMPONENTS"], [DN_PMIX_COMPONENTS=/usr/lib])])
    # libmpi of Open MPI 6.0 has MPI's own functions only.
    AS_IF([test 6 -gt "$dn_opal_major"],
        [DN_OMPI_LIBS="-lmpi $DN_OMPI_BTL_LIBS"],
        [DN_OMPI_LIBS="-lmpi -lopen_mpi $DN_OMPI_BTL_LIBS"])
    dn_ompi_summary="$DN_OMPI_VERSION ($MPICC)"
    dn_mcadir_summary=$mcadir
])

# Where the internal headers are installed. Sets dn_ompi_include, which has opal_config.h, and dn_ompi_folders, all to search.
AC_DEFUN([_DN_OMPI_HEADERS_INSTALLED], [
    AC_MSG_CHECKING([for the internal headers of Open MPI])
    dn_ompi_include=
    for dn_dir in $dn_incdirs; do
        for dn_sub in "$dn_dir/openmpi" "$dn_dir"; do
            AS_IF([test -z "$dn_ompi_include" && test -r "$dn_sub/opal_config.h"], [dn_ompi_include=$dn_sub])
        done
    done
    AS_IF([test -z "$dn_ompi_include"], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([there is no opal_config.h below $dn_incdirs: this Open MPI was installed without its internal headers. Name its configured sources by --with-ompi-source=DIR (contrib/ompi_source configures them), or build without it by --without-ompi])])
    AC_MSG_RESULT([$dn_ompi_include])
    dn_ompi_folders="$dn_ompi_include $dn_incdirs"
    # Open MPI 5.0 includes the headers of the PMIx that it was built with; distributions package that one apart.
    AS_IF([test -r "$dn_ompi_include/opal/mca/pmix/pmix-internal.h"],
        [dn_ompi_folders="$dn_ompi_folders `$PKG_CONFIG --cflags-only-I pmix 2>&AS_MESSAGE_LOG_FD | $SED 's/-I//g'`"])
])

# The same from sources: the folders in which Open MPI's own files look for headers, also for those of packages that it brings along.
AC_DEFUN([_DN_OMPI_HEADERS_SOURCE], [
    AC_MSG_CHECKING([for the configured sources of Open MPI])
    dn_ompi_include=$with_ompi_source/opal/include
    AS_IF([test ! -r "$with_ompi_source/ompi/Makefile" || test ! -r "$dn_ompi_include/opal_config.h"], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([--with-ompi-source: there are no configured sources of Open MPI in "$with_ompi_source": unpack those of the Open MPI to build for there, and configure them by contrib/ompi_source])])
    AC_MSG_RESULT([$with_ompi_source])
    dn_build=`cd "$with_ompi_source" && pwd -P`
    dn_source=`$SED -n 's/^top_srcdir = //p' "$dn_build/Makefile"`
    dn_source=`cd "$dn_build" && cd "$dn_source" && pwd -P`
    dn_ompi_folders=
    for dn_word in `$SED -n -e 's/^DEFAULT_INCLUDES = //p' -e 's/^CPPFLAGS = //p' "$dn_build/ompi/Makefile" |
            $SED -e "s|[[$]][[({]]top_srcdir[[})]]|$dn_source|g" -e "s|[[$]][[({]]top_builddir[[})]]|$dn_build|g" -e 's/-iquote */-I/g'`; do
        AS_CASE([$dn_word], [-I/*], [dn_ompi_folders="$dn_ompi_folders `AS_ECHO(["$dn_word"]) | $SED 's/^-I//'`"])
    done
])

AC_DEFUN([_DN_OMPI_VERSION], [
    AC_MSG_CHECKING([for the version of Open MPI])
    m4_foreach([dn_part], [[MAJOR], [MINOR], [RELEASE]], [
        AC_COMPUTE_INT([dn_opal_]m4_tolower(dn_part), [OPAL_]dn_part[_VERSION], [[#include "opal_config.h"
#include "opal/version.h"]],
            [AC_MSG_RESULT([unknown])
             AC_MSG_ERROR([opal_config.h in $dn_ompi_include does not say OPAL_]dn_part[_VERSION: ]_DN_OMPI_HINT)])
    ])
    DN_OMPI_VERSION="$dn_opal_major.$dn_opal_minor.$dn_opal_release"
    AC_MSG_RESULT([$DN_OMPI_VERSION])
    AS_CASE([$dn_opal_major.$dn_opal_minor], [4.1|5.0|6.0], [],
        [AC_MSG_ERROR([Open MPI $DN_OMPI_VERSION is not supported: versions 4.1, 5.0 and 6.0 are. Name the wrapper of another one by --with-ompi=MPICC])])
    AS_IF([test no != "$with_ompi_source"], [
        dn_installed=`"$MPICC" --showme:version 2>&AS_MESSAGE_LOG_FD | $SED -n 's/.*Open MPI v\{0,1\}\([[0-9.]]*[[0-9]]\).*/\1/p'`
        AS_IF([test "$DN_OMPI_VERSION" != "$dn_installed"],
            [AC_MSG_ERROR([--with-ompi-source: "$with_ompi_source" has Open MPI $DN_OMPI_VERSION, and $MPICC is of ${dn_installed:-an unknown version}: take the sources of the one that is installed])])])
    AC_DEFINE_UNQUOTED([DN_OMPI_MAJOR], [$dn_opal_major], [Major version of the Open MPI built for])
    AC_DEFINE_UNQUOTED([DN_OMPI_MINOR], [$dn_opal_minor], [Minor version of the Open MPI built for])
    AC_DEFINE_UNQUOTED([DN_OMPI_RELEASE], [$dn_opal_release], [Release number of the Open MPI built for])
    AC_DEFINE_UNQUOTED([DN_OMPI_VERSION], ["$DN_OMPI_VERSION"], [Version of the Open MPI built for, as a string])
])

# Features, not versions. A type or member that is absent is an ordinary answer; a header that does not
# compile would look the same, so btl.h itself is checked first.
AC_DEFUN([_DN_OMPI_FEATURES], [
    AC_CHECK_TYPE([mca_btl_base_module_t], [],
        [AC_MSG_ERROR([opal/mca/btl/btl.h does not compile, see config.log: ]_DN_OMPI_HINT)], [[#include "opal_config.h"
#include "opal/mca/btl/btl.h"]])
    AC_CHECK_TYPES([mca_btl_base_receive_descriptor_t], [], [], [[#include "opal_config.h"
#include "opal/mca/btl/btl.h"]])
    AC_CHECK_MEMBERS([mca_btl_base_module_t.btl_ft_event, mca_btl_base_module_t.btl_atomic_cswap], [], [],
        [[#include "opal_config.h"
#include "opal/mca/btl/btl.h"]])
    AC_CHECK_HEADERS([opal/mca/pmix/pmix-internal.h opal/mca/pmix/pmix.h opal/threads/threads.h opal/mca/threads/threads.h orte/util/proc_info.h],
        [], [], [[#include "opal_config.h"
#include <stddef.h>]])
    AC_CHECK_MEMBERS([mca_mtl_base_component_2_0_0_t.accelerator_support], [], [], [[#include "opal_config.h"
#include "ompi/mca/mtl/mtl.h"]])
    AC_CHECK_MEMBERS([mca_coll_base_module_t.coll_agree], [], [], [[#include "opal_config.h"
#include "ompi/mca/coll/coll.h"]])
    AC_CHECK_DECLS([MCA_COLL_INSTALL_API], [], [], [[#include "opal_config.h"
#include "ompi/mca/coll/coll.h"]])
    AC_CHECK_TYPES([ompi_count_array_t], [], [], [[#include "opal_config.h"
#include "ompi/mca/coll/coll.h"]])
    AC_CHECK_TYPES([mca_pml_bsend_buffer_t], [], [], [[#include "opal_config.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"]])
    AC_MSG_CHECKING([whether a process has room for the peer of a network])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include "opal_config.h"
#if !defined(OMPI_PROC_ENDPOINT_TAG_MTL) && !defined(OMPI_PROC_ENDPOINT_TAG_PML)
#    error there is none
#endif
]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([Open MPI $DN_OMPI_VERSION is configured without any component for networks (mtl/ofi, pml/ucx), and its processes have no room for what dimmnet keeps of each: take one that is configured --with-libfabric (4.1), --with-ofi or --with-ucx])])
    AC_MSG_CHECKING([whether callbacks of info keys take constant strings])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include "opal_config.h"
#include "opal/util/info_subscriber.h"
extern const char *tell(opal_infosubscriber_t *object, const char *key, const char *value);
extern opal_key_interest_callback_t tell;]])],
        [AC_MSG_RESULT([yes])
         AC_DEFINE([DN_OMPI_INFO_CONST], [1], [Callbacks of info keys take constant strings])],
        [AC_MSG_RESULT([no])])
    AC_CHECK_TYPES([ompi_comm_extended_cid_t], [], [], [[#include "opal_config.h"
#include "ompi/communicator/communicator.h"]])
])
