# SPDX-License-Identifier: BSD-2-Clause
"""The HPC Challenge benchmark, which checks its results: HPL, PTRANS, RandomAccess, FFT and more."""
import os
import re

from engine import Case
from openmpi import OpenMpi

INPUT = "/usr/share/doc/hpcc/examples/_hpccinf.txt"
LIMIT = 300
SHAPES = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2)}  # ranks: rows and columns of HPL's grid


def judge(status, output):
    if status != 0:
        return f"status {status}"
    wrong = [line for line in output.splitlines() if re.search(r"\bFAILED\b", line) or
             re.search(r"^\s*[1-9]\d* tests completed and failed", line)]
    if wrong:
        return wrong[0].strip()
    return None if re.search(r"^Success=1$", output, re.M) else "it does not say Success=1"


class Hpcc(OpenMpi):
    name = "hpcc"
    title = "HPC Challenge"
    packages = ["hpcc"]
    programs = "the distribution's package"

    def how(self, transport):
        return super().how(transport).replace("4 ranks", "1 to 4 ranks")

    def cases(self):
        for ranks, shape in SHAPES.items():
            folder = os.path.join(self.build, "clients", f"hpcc{ranks}")
            os.makedirs(folder, exist_ok=True)
            self.write_input(folder, shape)
            run = " ".join(self.mpirun(ranks) + ["hpcc"])
            script = f"rm -f hpccoutf.txt; {run}; s=$?; cat hpccoutf.txt; exit $s"
            yield Case(name=f"hpcc {ranks}", command=["sh", "-c", script], cwd=folder, limit=LIMIT, judge=judge)

    @staticmethod
    def write_input(folder, shape):
        with open(INPUT) as f:
            text = f.read()
        text = re.sub(r"^\d+( +Ps)", rf"{shape[0]}\1", text, flags=re.M)
        text = re.sub(r"^\d+( +Qs)", rf"{shape[1]}\1", text, flags=re.M)
        with open(os.path.join(folder, "hpccinf.txt"), "w") as f:
            f.write(text)
