# SPDX-License-Identifier: BSD-2-Clause
"""Shared by suites over Open MPI: makes it use libfabric, at least for messages."""
import functools
import re
import shutil
import subprocess


class OpenMpi:
    """Uses mtl/ofi for all ranks, also those of one host, with libfabric's first entry. `options` makes it do so."""
    packages = []
    options = ["--mca", "pml", "cm", "--mca", "mtl", "ofi"]

    def __init__(self, build, env):
        self.build = build
        self.env = env

    def version(self):
        return f"{self.own_version()}, Open MPI {openmpi_version()}"

    def own_version(self):
        return package_version(self.packages[0])

    def how(self, _transport):
        return f"{self.programs}; {' '.join(['mpirun'] + self.options)}, 4 ranks on one host"

    def transports(self):
        return ["weft"]

    def world_env(self, folder, provider):
        env = {"LD_LIBRARY_PATH": folder, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if provider != "weft":
            env["FI_PROVIDER"] = provider
            env["OMPI_MCA_mtl_ofi_provider_include"] = provider  # otherwise Open MPI excludes the provider by its name
        return env

    def prepare(self, _root):
        if not openmpi_version():
            return "Open MPI is not installed"
        missing = [package for package in self.packages if not package_version(package)]
        return f"not installed: {' '.join(missing)}" if missing else None

    def compiler(self):
        return "mpicc"

    def launch(self, ranks):
        return self.mpirun(ranks)

    def mpirun(self, ranks, options=None):
        return ["mpirun", "-n", str(ranks), "--oversubscribe"] + (self.options if options is None else options)


def package_version(package):
    out = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package], capture_output=True,
                         text=True, check=False).stdout
    return out.split()[1] if out.startswith("installed ") else ""


def has_windows_beside_cm():
    """Open MPI 5.0 opens no btl beside pml/cm, and has no windows there."""
    return not openmpi_version().startswith("5.")


def rma_options():
    """Returns the options for windows over libfabric; messages may go another way."""
    if not has_windows_beside_cm():
        return ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp,ofi", "--mca", "btl_tcp_if_include", "lo", "--mca", "osc", "rdma"]
    return OpenMpi.options + ["--mca", "btl", "self,ofi", "--mca", "osc", "rdma"]


def own_transport():
    """Returns the options for Open MPI's own transport inside a host."""
    return ["--mca", "pml", "ob1", "--mca", "btl", "self,vader" if openmpi_version() < "5" else "self,sm"]


@functools.cache
def openmpi_version():
    if not shutil.which("mpirun"):
        return ""
    out = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\(Open MPI\) (\S+)", out)
    return found[1] if found else ""
