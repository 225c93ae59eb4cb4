# SPDX-License-Identifier: BSD-2-Clause
"""Shared by suites over Open MPI: makes it use libfabric, at least for messages."""
import re
import shutil
import subprocess


class OpenMpi:
    """Uses mtl/ofi for all ranks, also those of one host, with libfabric's first entry."""
    packages = []

    def __init__(self, build, env):
        self.build = build
        self.env = env

    def version(self):
        return f"{self.own_version()}, Open MPI {openmpi_version()}"

    def own_version(self):
        return package_version(self.packages[0])

    def how(self, _transport):
        return f"{self.programs}; mpirun --mca pml cm --mca mtl ofi, 4 ranks on one host"

    def transports(self):
        return ["weft"]

    def world_env(self, folder, provider):
        env = {"LD_LIBRARY_PATH": folder, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if provider != "weft":
            env["FI_PROVIDER"] = provider
            env["OMPI_MCA_mtl_ofi_provider_include"] = provider  # otherwise Open MPI excludes the provider by its name
        return env

    def prepare(self, _root):
        if not shutil.which("mpirun") or not openmpi_version():
            return "Open MPI is not installed"
        missing = [package for package in self.packages if not package_version(package)]
        return f"not installed: {' '.join(missing)}" if missing else None

    def compiler(self):
        return "mpicc"

    def launch(self, ranks):
        return self.mpirun(ranks)

    @staticmethod
    def mpirun(ranks):
        return ["mpirun", "-n", str(ranks), "--oversubscribe", "--mca", "pml", "cm", "--mca", "mtl", "ofi"]


def package_version(package):
    out = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package], capture_output=True,
                         text=True, check=False).stdout
    return out.split()[1] if out.startswith("installed ") else ""


def openmpi_version():
    out = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\(Open MPI\) (\S+)", out)
    return found[1] if found else ""
