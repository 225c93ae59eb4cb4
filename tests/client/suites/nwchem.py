# SPDX-License-Identifier: BSD-2-Clause
"""NWChem, quantum chemistry over Global Arrays: the energies of a water molecule must be the same."""
import os

from beside import Beside

WATER = """start water
geometry units angstroms
 O 0.0 0.0 0.0
 H 0.0 0.757 0.587
 H 0.0 -0.757 0.587
end
basis
 * library 6-31g
end
task scf energy
"""


class Nwchem(Beside):
    name = "nwchem"
    title = "NWChem, water"
    packages = ["nwchem-openmpi"]
    programs = "the distribution's package, self-consistent field of a water molecule"
    pattern = r"(energy|repulsion).*= .*"

    def cases(self):
        folder = os.path.join(self.build, "clients", "nwchem")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "water.nw"), "w") as f:
            f.write(WATER)
        for ranks in (1, 2, 4):
            yield self.case(f"water {ranks}", ranks, ["nwchem.openmpi", "water.nw"], folder)
