# SPDX-License-Identifier: BSD-2-Clause
"""Sweeps over lengths, as OSU's benchmarks do them, through mpi4py: all data is checked (see mpi_sweep.py)."""
import os

from beside import Beside
from openmpi import has_windows_beside_cm, rma_options

KINDS = {"latency": 2, "bandwidth": 2, "collectives": 4, "rma": 2}


class Sweeps(Beside):
    name = "sweeps"
    title = "Sweeps over lengths through mpi4py"
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
    name = "sweeps-rma"
    title = "Sweeps through mpi4py, one-sided over libfabric"
    options = rma_options()

    def cases(self):
        return [case for case in super().cases() if case.name == "rma"]
