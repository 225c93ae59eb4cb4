# SPDX-License-Identifier: BSD-2-Clause
"""mpi4py's own tests, from the distribution's source package, by the distribution's mpi4py.

Each test file is one program. If it fails, its classes are run one by one, then the methods of failed classes, as a
test that hangs or crashes hides the results of the others.
"""
import os
import re
import subprocess

from engine import Case
from openmpi import OpenMpi

RANKS = (1, 2, 4)
LIMIT = 120
PYTHON = "/usr/bin/python3"  # the interpreter that the package is for

# Runs one test, a class or a file; the tests find their helpers beside them.
PROGRAM = """
import sys, unittest
sys.path.insert(0, '.')
suite = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
result = unittest.TextTestRunner(verbosity=1).run(suite)
sys.exit(not result.wasSuccessful())
"""

# Lists the names of all tests of a file.
LIST = """
import sys, unittest
sys.path.insert(0, '.')

def show(suite):
    for test in suite:
        show(test) if isinstance(test, unittest.TestSuite) else print('test', test.id())

show(unittest.defaultTestLoader.loadTestsFromName(sys.argv[1]))
"""


def judge(status, output):
    if status == 0:
        return None
    found = re.search(r"^(ERROR|FAIL): (\S+)", output, re.M)
    return f"{found[1]}: {found[2]}" if found else f"status {status}"


def tests_of(folder, module):
    """Returns the names of all tests of a file, "module.Class.method"; none if loading it fails."""
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run([PYTHON, "-c", LIST, module], cwd=folder, env=env, capture_output=True, text=True,
                          check=False, timeout=LIMIT)
    return re.findall(r"^test (\S+)$", done.stdout, re.M) if done.returncode == 0 else []


class Mpi4py(OpenMpi):
    name = "mpi4py"
    title = "mpi4py, its own tests"
    packages = ["python3-mpi4py"]
    programs = "the distribution's mpi4py, tests of its source package"

    def __init__(self, build, env):
        super().__init__(build, env)
        self.folder = os.path.join(env.get("MPI4PY") or os.path.join(build, "mpi4py-source"), "test")

    def how(self, transport):
        return super().how(transport).replace("4 ranks", "1, 2 and 4 ranks")

    def prepare(self, root):
        reason = super().prepare(root)
        if reason or os.path.isdir(self.folder):
            return reason
        done = subprocess.run(["bash", os.path.join(root, "tests/client/suites/prepare.sh"), "mpi4py"],
                              capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else (done.stdout.strip().splitlines() or ["not built"])[-1]

    def case(self, ranks, test, parts=None):
        command = self.mpirun(ranks) + [PYTHON, "-c", PROGRAM, test]
        return Case(name=f"{test} {ranks}", command=command, cwd=self.folder, limit=LIMIT, judge=judge, parts=parts)

    def parts(self, ranks, module, tests, depth):
        """Yields the classes of a file (depth 2), or the methods of a class (depth 3)."""
        if tests is None:
            tests = tests_of(self.folder, module)
        for name in dict.fromkeys(".".join(test.split(".")[:depth]) for test in tests):
            below = [test for test in tests if test.startswith(name + ".")]
            yield self.case(ranks, name, (lambda b=below: list(self.parts(ranks, module, b, 3))) if below else None)

    def cases(self):
        for ranks in RANKS:
            for name in sorted(os.listdir(self.folder)):
                if re.fullmatch(r"test_\w+\.py", name):
                    module = name[:-3]
                    yield self.case(ranks, module, lambda m=module, r=ranks: list(self.parts(r, m, None, 2)))
