# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
#
# A recipe for Spack: `spack repo add contrib/spack`, then `spack install dimmnet ^openmpi@5.0.5` in the folder of dimmnet-0.2.0.tar.gz.

import os

from spack.package import *


class Dimmnet(AutotoolsPackage):
    """Plug-ins for a stock Open MPI that send by CPU stores and receive by polling memory."""

    manual_download = True

    license("BSD-3-Clause")

    version("0.2.0")

    variant("ofi", default=True, description="Reach other hosts by libfabric")
    variant("pmix", default=True, description="Programs on shared memory meet by their launcher")
    variant("mpi", default=True, description="Components for Open MPI; libdimmnet alone otherwise")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2:")
    depends_on("libsodium@1.0.12:")
    depends_on("libfabric@1.9:", when="+ofi")
    depends_on("pmix@3:", when="+pmix")

    # Open MPI is installed without its internal headers, so its sources are configured once more; the components fit the very version.
    open_mpi = {
        "5.0.5": "6588d57c0a4bd299a24103f4e196051b29e8b55fbda49e11d5b3d32030a32776",
        "5.0.4": "64526852cdd88b2d30e022087c16ab3e03806c451b10cd691d5c1ac887d8ef9d",
        "5.0.3": "990582f206b3ab32e938aa31bbf07c639368e4405dca196fabe7f0f76eeda90b",
        "5.0.2": "ee46ad8eeee2c3ff70772160bff877cbf38c330a0bc3b3ddc811648b3396698f",
    }
    depends_on("openmpi@" + ",".join("=" + release for release in open_mpi), when="+mpi", type=("build", "link", "run"))
    for release, checksum in open_mpi.items():
        resource(
            name="openmpi-" + release,
            url=f"https://download.open-mpi.org/release/open-mpi/v5.0/openmpi-{release}.tar.bz2",
            sha256=checksum,
            placement="openmpi-source",
            when=f"+mpi ^openmpi@={release}",
        )

    def url_for_version(self, version):
        return f"file://{os.getcwd()}/dimmnet-{version}.tar.gz"

    @property
    def open_mpi_source(self):
        return join_path(self.stage.source_path, "openmpi-source")

    @run_before("configure", when="+mpi")
    def configure_open_mpi(self):
        Executable(join_path(self.stage.source_path, "contrib", "ompi_source"))(self.open_mpi_source)

    def configure_args(self):
        words = []
        if self.spec.satisfies("+ofi"):
            words.append("--with-ofi=" + self.spec["libfabric"].prefix)
        else:
            words.append("--without-ofi")
        words.append("--with-pmix" if self.spec.satisfies("+pmix") else "--without-pmix")
        if self.spec.satisfies("+mpi"):
            words.append("--with-ompi=" + join_path(self.spec["openmpi"].prefix.bin, "mpicc"))
            words.append("--with-ompi-source=" + self.open_mpi_source)
        else:
            words.append("--without-ompi")
        return words

    def setup_run_environment(self, env):
        # As share/dimmnet/env.sh does: Open MPI's own folder comes first, since it looks no further than one that is gone.
        if self.spec.satisfies("+mpi"):
            path = ":".join(["SYS_DEFAULT", join_path(self.prefix.lib, "openmpi"), "USER_DEFAULT"])
            env.set("OMPI_MCA_mca_base_component_path", path)
            env.set("PMIX_MCA_mca_base_component_path", self.prefix.lib)
