# SPDX-License-Identifier: BSD-2-Clause
"""Spack's recipe. It builds a clone: `spack develop --path CLONE weft@main`, or `spack dev-build weft@main` in it."""
from spack.package import *


class Weft(AutotoolsPackage):
    """A libfabric.so.1 for Linux: messages and memory over shared memory, RDMA devices, TCP and UDP."""

    license("BSD-2-Clause")
    version("main")

    variant("verbs", default=True, description="Use RDMA devices")
    variant("tls", default=True, description="Encrypt where it is asked for")
    variant("debug", default=False, description="No optimisation, and checks")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("m4", type="build")
    depends_on("autoconf", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libnl")
    depends_on("rdma-core@44:", when="+verbs")
    depends_on("openssl@3:", when="+tls")
    conflicts("platform=darwin")
    conflicts("platform=windows")

    # Programs built with Spack's libfabric run on this library: the concretizer may put it in that one's place.
    can_splice("libfabric@1:2.6", when="@main")

    def autoreconf(self, spec, prefix):
        for program in ("autoheader", "autoconf"):
            which(program, required=True)()

    def configure_args(self):
        return ["--enable-libnl", *self.enable_or_disable("verbs"), *self.enable_or_disable("tls"),
                *self.enable_or_disable("debug")]
