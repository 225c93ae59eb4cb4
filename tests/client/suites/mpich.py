# SPDX-License-Identifier: BSD-2-Clause
"""MPICH's own tests, from the lists that come with them (their format: test/mpi/README)."""
import os
import re
import subprocess

from engine import Case

RANKS_MAX = 4
LIMIT = 60      # seconds, if a list has no limit; longer tests get three times as much
LISTS = ["testlist", "testlist.dtp"]
MORE_LISTS = ["testlist.cvar"]  # with MORE=1: each of MPICH's own algorithms of collectives
FOLDERS = "attr coll comm datatype errhan errors group info init part pt2pt rma spawn threads topo".split()

# Programs that need the ranks given in their list.
AS_MANY_AS_LISTED = {"errors/comm/intercomm_abort", "errors/comm/subcomm_abort2"}


def harmless(line):
    return not line.strip() or re.fullmatch(r"\s*(No [Ee]rrors|Test Passed)\s*", line)


def judge_output(status, output):
    """The usual rule: the output is "No Errors" and nothing else."""
    lines = output.splitlines()
    other = [line for line in lines if not harmless(line)]
    if status != 0:
        return f"status {status}"
    if other:
        return "it says more than No Errors"
    if not any(re.fullmatch(r"\s*No [Ee]rrors\s*", line) for line in lines):
        return "it does not say No Errors"
    return None


def judge_failing(status, _output):
    """For programs that must end with an error."""
    return "status 0, where an error is due" if status == 0 else None


def judge_failing_quietly(status, output):
    """For programs that must end with an error other than a timeout."""
    if re.search(r"\bTIMEOUT\b|timed? ?out", output, re.I):
        return "ended by the launcher's time limit"
    return judge_failing(status, output)


def judge_no_errors(status, output):
    if not re.search(r"^\s*No [Ee]rrors\s*$", output, re.M):
        return "it does not say No Errors"
    return judge_failing(status, output)


JUDGES = {
    "TestStatus": judge_failing_quietly,
    "TestErrFatal": judge_failing,
    "TestStatusNoErrors": judge_no_errors,
}


def available_memory():
    with open("/proc/meminfo") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / (1 << 20)
    return 0


class Mpich:
    name = "mpich"
    title = "MPICH, its own tests (test/mpi)"

    def __init__(self, build, env):
        own = os.path.join(build, "mpich")
        self.prefix = own if env.get("MPICH", "build") in ("", "build") else env["MPICH"]
        self.tests = env.get("MPICH_TESTS") or os.path.join(build, "mpich-tests")
        self.source = os.path.join(env.get("MPICH_SOURCE") or os.path.join(build, "mpich-source"), "test/mpi")
        self.programs = env.get("PROGRAMS", "")
        self.more = env.get("MORE") == "1"
        self.folders = env.get("FOLDERS", "").split() or FOLDERS

    def prepare(self, root):
        """Builds MPICH and its tests if missing. Returns the reason of a failure, or None."""
        command = ["bash", os.path.join(root, "tests/client/suites/prepare.sh"), "mpich"]
        if self.programs:
            command.append(self.programs)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else (done.stdout.strip().splitlines() or ["not built"])[-1]

    def version(self):
        out = subprocess.run([f"{self.prefix}/bin/mpichversion"], capture_output=True, text=True, check=True).stdout
        return re.search(r"MPICH Version:\s*(\S+)", out)[1]

    def how(self, transport):
        chosen = "" if transport == "weft" else f" FI_PROVIDER={transport}"
        return f"built from the distribution's source package with ch4:ofi; MPIR_CVAR_NOLOCAL=1{chosen}, " \
               f"up to {RANKS_MAX} ranks on one host"

    def transports(self):
        return ["weft", "tcp"]

    def world_env(self, folder, provider):
        env = {"LD_LIBRARY_PATH": f"{folder}:{self.prefix}/lib", "MPIR_CVAR_NOLOCAL": "1"}
        if provider != "weft":
            env["FI_PROVIDER"] = provider
        return env

    def compiler(self):
        return f"{self.prefix}/bin/mpicc"

    def launch(self, ranks):
        return [f"{self.prefix}/bin/mpiexec", "-n", str(ranks)]

    def list_file(self, folder, name):
        for root in (self.tests, self.source):
            path = os.path.join(root, folder, name)
            if os.path.exists(path):
                return path
        return None

    def lines(self, folder):
        """Yields (folder, words) of each program, also of folders below."""
        for name in LISTS + (MORE_LISTS if self.more else []):
            path = self.list_file(folder, name)
            if not path:
                continue
            with open(path) as f:
                for line in f:
                    words = line.split("#")[0].split()
                    if not words or words[0].startswith("!"):
                        continue
                    below = os.path.join(folder, words[0])
                    if len(words) == 1 and os.path.isdir(os.path.join(self.source, below)):
                        yield from self.lines(below)
                    else:
                        yield folder, words

    def case(self, folder, words):
        program = os.path.join(folder, words[0])
        options = [word.split("=", 1) for word in words[2:] if "=" in word]
        values = dict(options)
        listed = int(words[1]) if len(words) > 1 else 2
        ranks = listed if program in AS_MANY_AS_LISTED else min(listed, RANKS_MAX)
        args = [value for key, value in options if key == "arg"]
        env = dict(value.split("=", 1) for key, value in options if key == "env")
        command = self.launch(ranks)
        command += [value for key, value in options if key == "mpiexecarg"]
        settings = [f"{key}={value}" for key, value in env.items()]
        return Case(name=" ".join([program, str(ranks)] + args + settings), command=command + [f"./{words[0]}"] + args,
                    cwd=os.path.join(self.tests, folder), env=env, limit=float(values.get("timeLimit", LIMIT)),
                    judge=JUDGES[values["resultTest"]] if "resultTest" in values else judge_output,
                    expected=values.get("xfail", ""), skip=self.missing(program, values))

    def missing(self, program, values):
        """Returns the reason not to run a program, or ""."""
        if not os.path.exists(os.path.join(self.tests, program)):
            return "it does not compile with this MPICH"
        need = float(values.get("mem", 0))
        if need and need * 1.2 > available_memory():
            return f"it needs {need} GB of memory"
        return ""

    def cases(self):
        seen = {}
        for folder in self.folders:
            for where, words in self.lines(folder):
                case = self.case(where, words)
                seen.setdefault(case.name, case)  # the lists contain some twice, once the ranks are limited
        return list(seen.values())
