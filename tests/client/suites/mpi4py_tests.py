# SPDX-License-Identifier: BSD-2-Clause
"""mpi4py's own tests, from the distribution's source package, by the distribution's mpi4py.

A file of them is one program. Where it fails its classes are run one by one, then the methods of those that fail: one
that stops or crashes says nothing about the others.
"""
import ast
import os
import re
import subprocess

from engine import Case
from openmpi import OpenMpi

RANKS = (1, 2, 4)
LIMIT = 120

# One test, a class or a file; the tests find their own helpers beside them.
PROGRAM = """
import sys, unittest
sys.path.insert(0, '.')
suite = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
result = unittest.TextTestRunner(verbosity=1).run(suite)
print('tests', result.testsRun, 'of which skipped', len(result.skipped))
sys.exit(not result.wasSuccessful())
"""


def judge(status, output):
    if status == 0 and re.search(r"^tests \d+", output, re.M):
        return None
    found = re.search(r"^(ERROR|FAIL): (\S+)", output, re.M)
    return f"{found[1]}: {found[2]}" if found else f"status {status}"


def classes_of(path):
    """(class, its test methods) of a file. What a class inherits is run with the class alone."""
    with open(path) as f:
        tree = ast.parse(f.read())
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield node.name, [item.name for item in node.body
                              if isinstance(item, ast.FunctionDef) and item.name.startswith("test")]


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
        command = self.mpirun(ranks) + ["/usr/bin/python3", "-c", PROGRAM, test]
        return Case(name=f"{test} {ranks}", command=command, cwd=self.folder, limit=LIMIT, judge=judge, parts=parts)

    def methods(self, ranks, test, names):
        return lambda: [self.case(ranks, f"{test}.{name}") for name in names]

    def classes(self, ranks, module):
        return lambda: [self.case(ranks, f"{module}.{name}", self.methods(ranks, f"{module}.{name}", methods))
                        for name, methods in classes_of(os.path.join(self.folder, f"{module}.py"))]

    def cases(self):
        for ranks in RANKS:
            for name in sorted(os.listdir(self.folder)):
                if re.fullmatch(r"test_\w+\.py", name):
                    yield self.case(ranks, name[:-3], self.classes(ranks, name[:-3]))
