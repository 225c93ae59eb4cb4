# SPDX-License-Identifier: BSD-2-Clause
"""GROMACS, molecular dynamics: the energies of a box of water, in its reproducible mode, must be the same."""
import os
import shutil
import subprocess

from beside import Beside

BOX = """integrator = md
dt = 0.002
nsteps = 200
nstenergy = 50
nstlog = 50
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = no
gen_vel = yes
gen_temp = 300
gen_seed = 7
constraints = h-bonds
"""
TOPOLOGY = """#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
"""
MAKE = """gmx -nobackup solvate -cs spc216 -box 2.5 2.5 2.5 -o box.gro -p water.top
gmx -nobackup grompp -f water.mdp -c box.gro -p water.top -o water.tpr -maxwarn 2"""

RUN = """gmx_mpi -nobackup -quiet mdrun -s water.tpr -reprod -ntomp 1 -pin off -g out.log -e out.edr -o out.trr -c out.gro
test "$OMPI_COMM_WORLD_RANK" != 0 || cat out.log"""


class Gromacs(Beside):
    name = "gromacs"
    title = "GROMACS, water"
    packages = ["gromacs"]
    programs = "the distribution's package, 200 steps of a box of 500 molecules of water, -reprod"
    pattern = r"^ +-?\d\.\d{5}e[-+]\d\d.*"  # energies, temperature, pressure

    def prepare(self, root):
        reason = super().prepare(root)
        if reason:
            return reason
        if not shutil.which("gmx_mpi"):
            return "the distribution's package has no gmx_mpi"
        self.folder = os.path.join(self.build, "clients", "gromacs")
        os.makedirs(self.folder, exist_ok=True)
        for name, text in {"water.mdp": BOX, "water.top": TOPOLOGY}.items():
            with open(os.path.join(self.folder, name), "w") as f:
                f.write(text)
        done = subprocess.run(["sh", "-ec", MAKE], cwd=self.folder, capture_output=True, text=True, check=False)
        return f"no box of water: {done.stderr.strip().splitlines()[-1]}" if done.returncode else None

    def cases(self):
        for ranks in (2, 4):
            yield self.case(f"water {ranks}", ranks, ["sh", "-ec", RUN], self.folder)
