# SPDX-License-Identifier: BSD-2-Clause
"""Programs of ours over Open MPI: the C programs of tests/client and the parts of mpi_parts.py, which check all data."""
import os
import re
import subprocess

from beside import Beside
from engine import Case
from openmpi import OpenMpi, openmpi_version, package_version, rma_options

LIMIT = 60
HERE = os.path.dirname(os.path.realpath(__file__))
PROGRAMS = {"mpi_check": ([], (1, 2, 4)), "mpi_rma": (["create"], (2, 4)), "mpi_accumulate": (["create", "no-max"], (2,))}
PARTS = {"threads": 2, "spawn": 1, "persistent": 3, "probes": 3, "types": 2, "cancel": 2, "nonblocking": 4, "between": 4,
         "partitioned": 2, "windows": 3, "locks": 3, "posts": 3}
WINDOWS = ["mpi_rma", "mpi_accumulate", "windows", "locks", "posts"]


def judge(status, output):
    if status:
        return f"status {status}"
    return None if re.search(r" passed with |^\w+ right$", output, re.M) else "it does not say that all data was right"


class MpiPlain(OpenMpi):
    name = "mpi-plain"
    title = "Open MPI, nothing set"
    packages = ["python3-mpi4py", "python3-numpy"]
    programs = "programs of ours in C and over the distribution's mpi4py"
    options = []
    kinds = list(PROGRAMS) + list(PARTS)

    def cases(self):
        for kind in self.kinds:
            if kind in PARTS:
                yield self.case(kind, PARTS[kind], ["/usr/bin/python3", os.path.join(HERE, "mpi_parts.py"), kind])
            else:
                words, many = PROGRAMS[kind]
                program = self.compiled(kind)
                for ranks in many:
                    yield self.case(kind, ranks, [program] + words)

    def case(self, kind, ranks, program):
        return Case(name=f"{kind} {ranks}", command=self.mpirun(ranks) + program, cwd=self.build, limit=LIMIT, judge=judge)

    def prepare(self, root):
        reason = super().prepare(root)
        if reason or self.options or self.chosen() == "cm":
            return reason
        return f"Open MPI {openmpi_version()} chooses pml/{self.chosen()} there, and messages do not go over libfabric"

    def how(self, transport):
        return super().how(transport).replace("4 ranks", "1 to 4 ranks")

    def chosen(self):
        """Returns the component for messages that Open MPI chooses."""
        env = dict(os.environ, **self.world_env(self.build, "weft"))
        command = self.mpirun(1) + ["--mca", "pml_base_verbose", "10", self.compiled("mpi_check")]
        out = subprocess.run(command, env=env, capture_output=True, text=True, check=False, errors="replace")
        found = re.search(r"selected (\w+) best priority", out.stdout + out.stderr)
        return found[1] if found else "?"

    def compiled(self, kind):
        program = os.path.join(self.build, "clients", kind)
        subprocess.run([self.compiler(), "-O2", "-w", "-std=gnu11", "-o", program,
                        os.path.join(HERE, "..", f"{kind}.c")], check=True)
        return program


class MpiMessages(MpiPlain):
    name = "mpi-cm"
    title = "Open MPI, messages over libfabric"
    options = OpenMpi.options
    kinds = [kind for kind in MpiPlain.kinds if kind not in WINDOWS]


class MpiRma(MpiPlain):
    name = "mpi-rma"
    title = "Open MPI, one-sided over libfabric"
    options = rma_options()
    kinds = WINDOWS


class MpichPackage(MpiPlain):
    """The distribution's MPICH, where it is built for libfabric."""
    name = "mpich-package"
    title = "MPICH, the distribution's package"
    packages = ["mpich", "libmpich-dev"]
    programs = "programs of ours in C"
    kinds = list(PROGRAMS)

    def prepare(self, _root):
        missing = [package for package in self.packages if not package_version(package)]
        if missing:
            return f"not installed: {' '.join(missing)}"
        out = subprocess.run(["mpichversion"], capture_output=True, text=True, check=True).stdout
        device = re.search(r"MPICH Device:\s*(\S+)", out)[1]
        return None if device.startswith("ch4:ofi") else f"MPICH {self.own_version()} is built for {device}"

    def version(self):
        return self.own_version()

    def how(self, _transport):
        return f"{self.programs}; MPIR_CVAR_NOLOCAL=1, 1 to 4 ranks on one host"

    def world_env(self, folder, provider):
        env = {"LD_LIBRARY_PATH": folder, "MPIR_CVAR_NOLOCAL": "1"}
        return env if provider == "weft" else dict(env, FI_PROVIDER=provider)

    def compiler(self):
        return "mpicc.mpich"

    def mpirun(self, ranks, options=None):
        return ["mpiexec.mpich", "-n", str(ranks)]


class Mpi4pyBench(Beside):
    name = "mpi4py-bench"
    title = "mpi4py, its own benchmarks"
    packages = ["python3-mpi4py", "python3-numpy"]
    programs = "mpi4py.bench of the distribution's package"
    pattern = r"^Hello, World|^time for \d+ loops|^ *\d+(?= +\d+\.)"

    def cases(self):
        for name, ranks in {"helloworld": 4, "ringtest": 4, "pingpong": 2}.items():
            yield self.case(name, ranks, ["/usr/bin/python3", "-m", "mpi4py.bench", name], self.build)
