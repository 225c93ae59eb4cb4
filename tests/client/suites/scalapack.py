# SPDX-License-Identifier: BSD-2-Clause
"""ScaLAPACK's test programs from the distribution's package, including those of BLACS and PBLAS."""
import os
import re
import shutil

from engine import Case
from openmpi import OpenMpi

FOLDER = "/usr/lib/{}/scalapack/openmpi-tests"
RANKS = 4
LIMIT = 60

# Programs that fail now and then over any MPI, also Open MPI's own shared memory. xdllt and xsllt
# stop in pdlacon, where ranks decide separately by figures that may differ in the last bit. xdsyevr
# and xssyevr compare two uninitialized reals with a copy (shown by valgrind); a NaN differs from
# itself.
STOPS = "it may stop over any MPI, every other time over Open MPI's own shared memory"
UNWRITTEN = "it judges by memory it has not written, over Open MPI's own shared memory, too, where 1 run of 26 failed"
EXPECTED = {**dict.fromkeys(("xdllt", "xsllt"), STOPS), **dict.fromkeys(("xdsyevr", "xssyevr"), UNWRITTEN)}


def judge(status, output):
    """Each program counts its own tests, and prints the counts in its own way."""
    if status != 0:
        return f"status {status}"
    wrong = failed_lines(output)
    if wrong:
        return wrong[0].strip()
    return None if re.search(r"end of tests", output, re.I) else "it does not say that its tests have ended"


def failed_lines(output):
    lines = [line for line in output.splitlines() if "PASSED" not in line]  # without headings of tables
    return [line for line in lines if re.search(r"\bFAILED\b", line) or
            re.search(r"^\s*[1-9]\d* tests completed and failed", line)] + table_failures(output)


def table_failures(output):
    """Returns the failures in the rows of PBLAS's summary: name, tests, passed, failed, skipped."""
    rows = re.findall(r"^\s*\|?\s*P\w+((?:\s+\d+){4})\s*$", output, re.M)
    return [f"failed of a summary: {row.strip()}" for row in rows if row.split()[2] != "0"]


def judge_blacs(_status, output):
    """Its last test is an abort of all ranks, with an error."""
    wrong = failed_lines(output)
    if wrong:
        return wrong[0].strip()
    return None if "final auxiliary test is for BLACS_ABORT" in output else "it does not get to its last test"


class Scalapack(OpenMpi):
    name = "scalapack"
    title = "ScaLAPACK, its own tests"
    packages = ["scalapack-mpi-test"]
    programs = "the distribution's package"

    def cases(self):
        source = FOLDER.format(os.popen("dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch")
                               .read().strip())
        copy = os.path.join(self.build, "clients", "scalapack")
        if not os.path.isdir(copy):
            shutil.copytree(source, copy)
        for folder in ("BLACS", "PBLAS", "."):
            for program in sorted(os.listdir(os.path.join(copy, folder))):
                path = os.path.join(copy, folder, program)
                if os.path.isdir(path) or not os.access(path, os.X_OK) or (folder == "." and "btest" in program):
                    continue
                yield Case(name=os.path.normpath(os.path.join(folder, program)),
                           command=self.mpirun(RANKS) + [f"./{program}"], cwd=os.path.dirname(path), limit=LIMIT,
                           expected=EXPECTED.get(program, ""), judge=judge_blacs if folder == "BLACS" else judge)
