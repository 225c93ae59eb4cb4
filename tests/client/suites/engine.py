# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs of a client's suite, one at a time, and keeps their results.

A suite is a module with a class that offers: name, title, how (a line that says how it is run), version(),
transports() and cases(). A case is one program. A World says which library and transport it runs over.
"""
import dataclasses
import hashlib
import json
import os
import re
import signal
import subprocess
import time

REFERENCE_TRIES = 3  # runs over the reference before a pass there counts
OWN_TRIES = 3        # runs over this library of a failed test, to see whether it always fails
STRETCH = 3          # factor of the limit for a test that timed out on a busy machine
OUTPUT_MAX = 4000    # characters of a failing program's output that are kept


@dataclasses.dataclass
class World:
    """A library, and the environment that selects it."""
    name: str                # as shown: "weft", "tcp", "reference"
    folder: str              # of libfabric.so.1
    env: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Case:
    name: str                # unique within the suite
    command: list            # with its launcher
    cwd: str
    limit: float             # seconds
    judge: object            # judge(status, output) -> reason of a failure, or None
    env: dict = dataclasses.field(default_factory=dict)
    skip: str = ""           # reason not to run it
    expected: str = ""       # reason why the suite itself expects a failure
    parts: object = None     # parts() -> smaller cases, run in place of this one when it fails


@dataclasses.dataclass
class Outcome:
    reason: str = None       # None: passed
    seconds: float = 0
    over_limit: bool = False
    output: str = ""


def end_marked(mark):
    """Ends processes left running by a program: those with the mark in their environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                found = mark in f.read().split(b"\0")
            if found:
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


class Runner:
    def __init__(self, logs, slower=1):
        self.log = os.path.join(logs, "output")
        self.slower = slower
        self.number = 0
        os.makedirs(logs, exist_ok=True)

    def environment(self, case, world, limit):
        self.number += 1
        mark = f"WEFT_CLIENT={os.getpid()}.{self.number}"
        env = dict(os.environ, MPIEXEC_TIMEOUT=str(int(limit)), **world.env)
        env.update(case.env)
        env["WEFT_CLIENT"] = mark.split("=")[1]
        return env, mark.encode()

    def run(self, case, world, stretch=1):
        """Runs a case once. A launcher that obeys MPIEXEC_TIMEOUT ends by itself; others are ended a little later."""
        limit = case.limit * self.slower * stretch
        env, mark = self.environment(case, world, limit)
        command = [word.replace("@FOLDER@", world.folder) for word in case.command]
        start = time.monotonic()
        with open(self.log, "wb") as out:
            process = subprocess.Popen(command, cwd=case.cwd, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(limit + 15)
            except subprocess.TimeoutExpired:
                status = "limit"
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                end_marked(mark)
        seconds = time.monotonic() - start
        with open(self.log, "rb") as f:
            output = f.read().decode("utf-8", "replace")
        outcome = Outcome(seconds=round(seconds, 2), output=output[-OUTPUT_MAX:], over_limit=seconds >= limit)
        outcome.reason = f"not ended after {limit:.0f} s" if status == "limit" else case.judge(status, output)
        return outcome


class Results:
    """The results of this build of the library (`keep`: of any), in a file with a line per case, so that an interrupted
    run can continue."""

    def __init__(self, path, library, commit, keep=False):
        self.path = path
        self.library = library
        self.commit = commit
        self.rows = {}
        if os.path.exists(path):
            with open(path) as f:
                for line in f:
                    row = json.loads(line)
                    if keep or row["library"] == library:
                        self.rows[row["key"]] = row

    def add(self, key, **fields):
        row = {"key": key, "library": self.library, "commit": self.commit, "date": time.strftime("%Y-%m-%d"), **fields}
        self.rows[key] = row
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")
        return row


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


def first_words(output):
    """Returns the line of a program's output that best explains its failure."""
    lines = [line.strip() for line in output.splitlines() if line.strip(" =\t")]
    for pattern in (r"Assertion|[Aa]bort\(|assert", r"signal|Segmentation", r"[Ee]rror|ERROR|[Ff]ail"):
        for line in lines:
            if re.search(pattern, line) and not re.match(r"No [Ee]rrors", line):
                return line[:160]
    return lines[-1][:160] if lines else "no output"


def times_of(output):
    """Returns the times that beside.py has printed, as fields."""
    found = re.search(r"^seconds: ([\d.]+), over Open MPI's own transport ([\d.]+)$", output, re.M)
    return {"ours_took": float(found[1]), "own_took": float(found[2])} if found else {}


def run_stretched(runner, case, world):
    """Runs a case, again with a longer limit if it timed out. Returns the outcome and whether it needed that limit."""
    outcome = runner.run(case, world)
    if outcome.reason is None or not outcome.over_limit:
        return outcome, False
    return runner.run(case, world, STRETCH), True


def reference_says(runner, case, reference):
    """Returns (failed runs, runs) over the reference; stops at the first failure."""
    for turn in range(1, REFERENCE_TRIES + 1):
        outcome = runner.run(case, reference, STRETCH)
        if outcome.reason is not None:
            return 1, turn, outcome
    return 0, REFERENCE_TRIES, None


def try_case(runner, case, world, reference):
    """Returns the fields of a result: verdict pass, fail, reference (fails there too), expected or skip."""
    if case.skip:
        return {"verdict": "skip", "reason": case.skip, "seconds": 0}
    if case.expected:
        outcome, stretched = runner.run(case, world), False
    else:
        outcome, stretched = run_stretched(runner, case, world)
    fields = {"verdict": "pass", "seconds": outcome.seconds}
    if stretched:
        fields["stretched"] = True
    if outcome.reason is None:
        fields.update(times_of(outcome.output))
        return fields
    fields.update(verdict="fail", reason=outcome.reason, said=first_words(outcome.output), output=outcome.output)
    if case.expected:
        fields.update(verdict="expected", reason=f"the suite expects it ({case.expected}): {outcome.reason}")
        return fields
    failed, turns, theirs = reference_says(runner, case, reference)
    fields["reference"] = f"{failed} of {turns}"
    if failed:
        fields.update(verdict="reference", reference_reason=theirs.reason, reference_said=first_words(theirs.output))
        return fields
    if outcome.over_limit:
        return fields
    again = [runner.run(case, world).reason is not None for _ in range(OWN_TRIES - 1)]
    fields["ours"] = f"{1 + sum(again)} of {OWN_TRIES}"
    return fields
