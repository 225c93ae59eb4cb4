# SPDX-License-Identifier: BSD-2-Clause
"""ADIOS2's SST engine, whose RDMA data plane goes over libfabric: a writer and a reader; all data is checked.

By itself the data plane takes verbs, gni, psm2 and cxi only; FABRIC_IFACE names a domain that it takes whatever the provider.
"""
import os
import re
import subprocess

from engine import Case
from openmpi import OpenMpi

TALK = os.path.join(os.path.dirname(os.path.realpath(__file__)), "sst_talk.py")


def judge(status, output):
    if not re.search(r'Selecting DataPlane "rdma"', output):
        return "it does not take libfabric"
    if status:
        return f"status {status}"
    return None if re.search(r"^5 right$", output, re.M) else "it does not say that all steps were right"


class Sst(OpenMpi):
    name = "sst"
    title = "ADIOS2, SST's RDMA data plane"
    packages = ["python3-adios2-mpi", "python3-adios2", "python3-mpi4py", "python3-numpy"]
    programs = "a program of ours over the distribution's package"

    def how(self, _transport):
        return f"{self.programs}, two processes of one host, FABRIC_IFACE={self.domain()}"

    def domain(self):
        """Returns the domain of the first entry."""
        out = subprocess.run([os.path.join(self.build, "bin/fi_info")], capture_output=True, text=True, check=True).stdout
        return re.search(r"^ +domain: (\S+)", out, re.M)[1]

    def cases(self):
        yield Case(name="rdma", command=["/usr/bin/python3", TALK, "rdma"], cwd=self.build, limit=60, judge=judge,
                   env={"FABRIC_IFACE": self.domain(), "SstVerbose": "5"})
