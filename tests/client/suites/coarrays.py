# SPDX-License-Identifier: BSD-2-Clause
"""OpenCoarrays' own test programs, as the distribution built them: parallel Fortran over one-sided MPI."""
import glob
import os

from beside import Beside
from openmpi import rma_options

FOLDER = "/usr/lib/*/open-coarrays/openmpi/bin/OpenCoarrays-*-tests"
IMAGES = 4
OTHER_IMAGES = {"issue-552-send_by_ref-singleton": 1, "sync_team": 8, "team_number": 8}


class Coarrays(Beside):
    name = "coarrays"
    title = "OpenCoarrays, its own tests"
    packages = ["libcoarrays-openmpi-dev"]
    programs = f"the distribution's package, {IMAGES} images"
    pattern = r"[Tt]est passed"
    limit = 60

    def cases(self):
        folder = next(iter(glob.glob(FOLDER)))
        for program in sorted(os.listdir(folder)):
            images = OTHER_IMAGES.get(program, IMAGES)
            yield self.case(program, images, [os.path.join(folder, program)], self.build)


class CoarraysRma(Coarrays):
    """The same with windows over libfabric."""
    name = "coarrays-rma"
    title = "OpenCoarrays, one-sided over libfabric"
    options = rma_options()
