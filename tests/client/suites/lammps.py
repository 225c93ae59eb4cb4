# SPDX-License-Identifier: BSD-2-Clause
"""LAMMPS, molecular dynamics: the rows of its log must be the same to the last digit."""
import os

from beside import Beside

EXAMPLES = "/usr/share/lammps/examples"
INPUTS = ("melt", "peptide")  # short-range forces; a molecule in water, whose long-range forces go through a parallel FFT


class Lammps(Beside):
    name = "lammps"
    title = "LAMMPS"
    packages = ["lammps", "lammps-examples"]
    programs = "the distribution's package, its examples melt and peptide"
    # step, temperature, energies, pressure; or lines of names and values
    pattern = r"^ *\d+( +-?\d+(\.\d+)?([eE][-+]\d+)?){5} *$|^\w+ += .*"

    def cases(self):
        for name in INPUTS:
            for ranks in (1, 2, 4):
                yield self.case(f"{name} {ranks}", ranks, ["lmp", "-in", f"in.{name}", "-log", "none"],
                                os.path.join(EXAMPLES, name))
