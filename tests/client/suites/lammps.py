# SPDX-License-Identifier: BSD-2-Clause
"""LAMMPS, molecular dynamics: the rows of its log must be the same to the last digit."""
from beside import Beside

INPUT = "/usr/share/lammps/examples/melt/in.melt"


class Lammps(Beside):
    name = "lammps"
    title = "LAMMPS, melt"
    packages = ["lammps", "lammps-examples"]
    programs = "the distribution's package, its example melt"
    pattern = r"^ *\d+( +-?\d+(\.\d+)?([eE][-+]\d+)?){5} *$"  # step, temperature, energies, pressure

    def cases(self):
        for ranks in (1, 2, 4):
            yield self.case(f"melt {ranks}", ranks, ["lmp", "-in", INPUT, "-log", "none"], self.build)
