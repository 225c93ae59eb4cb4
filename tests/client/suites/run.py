#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs clients' own suites over this library; what fails also runs over the distribution's libfabric.

    make check-clients                     all of it: an hour or two; goes on where it was interrupted
    make check-clients SUITES="mpich hpcc" some of it
    make check-clients MORE=1              MPICH's algorithms of collectives one by one, too
    make check-clients AGAIN=fail          failed programs again (AGAIN=all: everything)

Read from the environment: BUILD, SUITES, TRANSPORTS, FOLDERS (of MPICH's tests), TESTS (a part of a program's name),
PROGRAMS (a file with the names of those to run), BUDGET (seconds; programs that would begin later are left out),
AGAIN, MORE, SLOWER (factor for time limits), MPICH (a prefix) with MPICH_SOURCE and MPICH_TESTS, MPI4PY (a folder with its
source), RESULTS (a folder; default: $BUILD/clients), KEEP=1 (results of another build of the library count too), FIELD (the
suite of Debian that this is; default: bookworm), COMMIT (of the library). Suites that were run whole get new rows in
docs/COMPATIBILITY.md, whose first column README.md lists; other rows stay, with the commit they were made with. The status
is 0 if nothing failed that passes over the reference.
"""
import fnmatch
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import engine
import probe
import report
from coarrays import Coarrays, CoarraysRma
from hpcc import Hpcc
from lammps import Lammps
from gromacs import Gromacs
from mpi4py_tests import Mpi4py
from mpi_programs import Mpi4pyBench, MpichPackage, MpiMessages, MpiPlain, MpiRma
from mpich import Mpich
from nwchem import Nwchem
from scalapack import Scalapack
from sst import Sst
from sweeps import Sweeps, SweepsRma
from tools import Tools

SOME = ("FOLDERS", "TESTS", "PROGRAMS", "BUDGET")  # settings that select a part of a suite
SUITES = [Tools, MpiPlain, MpiMessages, MpiRma, Mpi4pyBench, MpichPackage, Mpich, Mpi4py, Sweeps, SweepsRma, Hpcc, Scalapack, Coarrays,
          CoarraysRma, Sst, Lammps, Gromacs, Nwchem]


def commit_of(root):
    if os.environ.get("COMMIT"):
        return os.environ["COMMIT"]
    out = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                         check=False)
    dirty = subprocess.run(["git", "-C", root, "status", "--porcelain", "-uno", "src", "include"], capture_output=True,
                           text=True, check=False).stdout
    return (out.stdout.strip() or "?") + ("+" if dirty else "")


def reference_folder(work):
    """Makes a folder that contains only the distribution's libfabric.so.1."""
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    paths = [line.split()[-1] for line in known.splitlines() if line.split()[:1] == ["libfabric.so.1"]]
    if not paths:
        sys.exit("check-clients: the distribution's libfabric1 is not installed")
    folder = os.path.join(work, "reference")
    os.makedirs(folder, exist_ok=True)
    link = os.path.join(folder, "libfabric.so.1")
    if os.path.lexists(link):
        os.remove(link)
    os.symlink(paths[0], link)
    return folder


class Session:
    def __init__(self):
        self.root = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
        self.field = os.environ.get("FIELD", report.HOME)
        self.build = os.path.realpath(os.environ.get("BUILD", os.path.join(self.root, "build")))
        self.work = os.path.realpath(os.environ.get("RESULTS", os.path.join(self.build, "clients")))
        os.makedirs(self.work, exist_ok=True)
        self.runner = engine.Runner(self.work, float(os.environ.get("SLOWER", 1)))
        self.reference = reference_folder(self.work)
        self.results = engine.Results(os.path.join(self.work, "results"),
                                      engine.digest(os.path.join(self.build, "libfabric.so.1")), commit_of(self.root),
                                      os.environ.get("KEEP") == "1")
        self.whole = not any(os.environ.get(name) for name in SOME)
        self.programs = self.listed(os.environ.get("PROGRAMS"))
        self.budget = float(os.environ.get("BUDGET", "inf"))
        self.end = self.budget
        if self.budget < float("inf"):
            engine.STRETCH = 1  # nobody waits for tests that take longer
        self.left_out = 0

    @staticmethod
    def listed(path):
        """Reads names from a file, one per line; * matches any text."""
        if not path:
            return ["*"]
        with open(path) as f:
            return [line.strip() for line in f if line.strip() and not line.startswith("#")]

    def wanted(self, suite):
        """Returns the cases to run, in the order of the names. An unknown name is an error."""
        cases = list(suite.cases())
        found = [(name, [case for case in cases if fnmatch.fnmatchcase(case.name, name)]) for name in self.programs]
        unknown = [name for name, matching in found if not matching]
        if unknown:
            sys.exit(f"check-clients: no such programs: {', '.join(unknown)}")
        return [case for _, matching in found for case in matching if os.environ.get("TESTS", "") in case.name]

    def suites(self):
        wanted = os.environ.get("SUITES", "").split()
        for make in SUITES:
            if not wanted or make.name in wanted:
                yield make(self.build, os.environ)

    def transports(self, suite):
        wanted = os.environ.get("TRANSPORTS", "").split()
        return [transport for transport in suite.transports() if not wanted or transport in wanted]

    def due(self, row):
        again = os.environ.get("AGAIN", "")
        return row is None or again == "all" or (again == "fail" and row["verdict"] == "fail")

    def run_all(self, suite, transport):
        ours = engine.World(transport, self.build, suite.world_env(self.build, transport))
        theirs = engine.World("reference", self.reference, suite.world_env(self.reference, "tcp"))
        for world in (ours, theirs) if hasattr(suite, "launch") else ():
            wrong = probe.loads(suite, world, self.root, self.work)
            if wrong:
                sys.exit(f"check-clients: {wrong}")
        cases = self.wanted(suite)
        for turn, case in enumerate(cases, 1):
            self.one(f"{turn:{len(str(len(cases)))}}/{len(cases)}", suite, transport, case, (ours, theirs))

    def one(self, turn, suite, transport, case, worlds):
        key = f"{suite.name}|{transport}|{case.name}"
        row = self.results.rows.get(key)
        if not self.due(row):
            return row
        if time.monotonic() > self.end:
            self.left_out += 1
            return row
        fields = engine.try_case(self.runner, case, *worlds)
        parts = case.parts() if case.parts and fields["verdict"] != "pass" else []
        if len(parts) > 1:
            for part in parts:
                self.one(turn, suite, transport, part, worlds)
            fields = {"verdict": "parted", "seconds": fields["seconds"]}
        row = self.results.add(key, suite=suite.name, transport=transport, name=case.name, **fields)
        if row["verdict"] != "parted":
            print(report.line(turn, row), flush=True)
        return row


def write_document(session, suites, missing):
    """Replaces what docs/COMPATIBILITY.md says of the suites that were run; the rest stays as it was."""
    path = os.path.join(session.root, "docs/COMPATIBILITY.md")
    with open(path) as f:
        before = f.read()
    now = [(suite, transport) for suite in suites for transport in session.transports(suite)]
    text = report.document(session, [make(session.build, os.environ) for make in SUITES], now, missing, before)
    with open(path, "w") as f:
        f.write(text)
    path = os.path.join(session.root, "README.md")
    with open(path) as f:
        before = f.read()
    with open(path, "w") as f:
        f.write(report.readme(text, before))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends running programs on exit
    session = Session()
    suites = list(session.suites())
    missing = {}
    for suite in suites:
        reason = suite.prepare(session.root) if hasattr(suite, "prepare") else None
        if reason:
            print(f"{suite.name}: not run: {reason}")
            missing[suite.name] = reason
            continue
        transports = session.transports(suite)
        for transport in transports:
            print(f"{suite.title}, {transport}", flush=True)
            session.end = time.monotonic() + session.budget / len(transports)
            session.run_all(suite, transport)
    if session.whole:
        write_document(session, suites, missing)
    print(report.table(session, suites, missing))
    if session.left_out:
        print(f"the time was over: {session.left_out} programs were not run")
    return report.last_line(session, suites)


if __name__ == "__main__":
    sys.exit(main())
