# SPDX-License-Identifier: BSD-2-Clause
"""Sweeps over lengths, as OSU's benchmarks do them, through mpi4py: all data is checked (see mpi_sweep.py)."""
import os
import re

from beside import Beside
from engine import Case
from openmpi import has_windows_beside_cm, rma_options

KINDS = {"latency": 2, "bandwidth": 2, "collectives": 4, "rma": 2}
LENGTHS = 12


def judge(status, output):
    if status:
        return f"status {status}"
    return None if len(re.findall(Sweeps.pattern, output, re.M)) == LENGTHS else "it does not say that all data was right"


class Sweeps(Beside):
    name = "sweeps"
    title = "mpi4py, sweeps over lengths"
    packages = ["python3-mpi4py", "python3-numpy"]
    programs = "a program of ours over the distribution's mpi4py"
    pattern = r"^\w+ +\d+ right$"

    def cases(self):
        program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "mpi_sweep.py")
        for kind, ranks in KINDS.items():
            if kind == "rma" and self.options == Beside.options and not has_windows_beside_cm():
                continue
            yield self.case(kind, ranks, ["/usr/bin/python3", program, kind], self.build)


class SweepsRma(Sweeps):
    """Not beside Open MPI's own transport, which takes a minute for it in 5.0.7, twenty times as long as ours."""
    name = "sweeps-rma"
    title = "mpi4py, sweeps one-sided over libfabric"
    options = rma_options()

    def cases(self):
        return [case for case in super().cases() if case.name == "rma"]

    def how(self, _transport):
        return f"{self.programs}; {' '.join(['mpirun'] + self.options)}, 2 ranks on one host"

    def case(self, name, ranks, program, cwd):
        return Case(name=name, command=self.mpirun(ranks) + program, cwd=cwd, limit=self.limit, judge=judge)
