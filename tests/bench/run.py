#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures this library beside others and the limits of the machine, by turns, in rounds.

    make bench                                    all of it, an hour or so
    make bench ONLY="messages tcp/*" ROUNDS=1     some parts, or rows by their names
    make bench AGAINST=/path/to/another/build     two builds of this library instead, to see what changed

Read from the environment: BUILD (build), ROUNDS (3; with AGAINST 5), ONLY, SIZES (those to measure of each row's),
AGAINST (a folder with another libfabric.so.1), CC. Writes bench/raw.csv, bench/index.md and bench/index.html below $BUILD,
also if it is interrupted. docs/BENCH.md says what each row is. The status is 0 if this library failed in none. Low speed is
never a failure, as the machine may be busy.
"""
import csv
import fnmatch
import math
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import jobs
import machine
import report
import rows

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))


def fail(why):
    sys.exit(f"bench: {why}")


def say(text, passing=False):
    """Tells something. On a terminal the next text replaces what is only passing; a file has a line for each."""
    begin, end = ("\r\033[K", "" if passing else "\n") if sys.stderr.isatty() else ("", "\n")
    print(f"{begin}bench: {text}", end=end, file=sys.stderr, flush=True)


def reference():
    """Returns the path of the system's libfabric.so.1, or None."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    return next((line.split()[-1] for line in known.splitlines() if line.split()[:1] == ["libfabric.so.1"]), None)


def compile_all(work, library, with_mpi):
    """Compiles the programs. Those of the interface are linked with the older library, so that they run on both."""
    programs = {name: [library] for name in ("client", "onesided", "threads", "wake", "connect", "collective", "rails", "match", "tables",
                                          "star", "everybody")}
    programs.update(limit=[], sockets=["-luring"], tls=["-lssl", "-lcrypto"],
                    plain=["-Isrc", "-I.", "-DWEFT_API_2_7", os.path.join(os.path.dirname(work), "libfabric.a")])
    compilers = dict.fromkeys(programs, os.environ.get("CC", "cc"))
    if with_mpi:
        programs.update(mpi_rate=[], collective_mpi=[])
        compilers.update(mpi_rate="mpicc", collective_mpi="mpicc")
    for name, more in programs.items():
        options = ["-std=gnu11", "-O2", "-Wall", "-pthread", "-o", os.path.join(work, name), f"tests/bench/{name}.c"]
        include = ["-D_GNU_SOURCE"] if compilers[name] == "mpicc" else ["-Iinclude"]
        if subprocess.run([*compilers[name].split(), *include, *options, *more], cwd=ROOT, check=False).returncode:
            fail(f"{name}.c does not compile")


def numbers(name, default):
    """Reads a setting of numbers."""
    words = os.environ.get(name, "").split() or default
    if not all(str(word).isdigit() and int(word) for word in words):
        fail(f"{name} is not a list of numbers from 1: {' '.join(words)}")
    return [int(word) for word in words]


def selected(bench):
    """Returns the rows that ONLY and SIZES leave, the late ones last. A word of ONLY that names none is an error."""
    every = [(part, row) for part, make in rows.PARTS.items() for row in make(bench) if row.jobs]
    sizes = set(numbers("SIZES", []))
    wanted = {}  # name: row
    for word in os.environ.get("ONLY", "").split() or rows.PARTS:
        found = {row.name: row for part, row in every if word == part or fnmatch.fnmatchcase(row.name, word)}
        if not found:
            fail(f"ONLY: {word} is no part ({', '.join(rows.PARTS)}) and no row")
        wanted.update(found)
    chosen = [row for _, row in every if row.name in wanted]
    for row in chosen:
        row.sizes = [size for size in row.sizes if not sizes or size in sizes]
    chosen = [row for row in chosen if row.sizes]
    return sorted(chosen, key=lambda row: row.late) or fail("no row has one of these SIZES")


class Run:
    """A run of some rows: what is done, what failed, and raw.csv."""

    def __init__(self, folder, chosen, rounds):
        self.raw = open(os.path.join(folder, "raw.csv"), "w", encoding="utf-8", newline="", buffering=1)
        self.csv = csv.writer(self.raw, lineterminator="\n")
        self.csv.writerow(report.HEADER)
        self.chosen, self.rounds = chosen, rounds
        self.started, self.done = time.monotonic(), 0
        self.all = sum(len(row.sizes) * row.times * (1 if row.late else rounds) for row in chosen)
        self.refused = {}  # (row, size, who): whether it was only too slow

    def show(self, turn, row, size):
        """Shows the row and the time left, judged by the steps that are done."""
        left = (time.monotonic() - self.started) / self.done * (self.all - self.done) / 60 if self.done else None
        text = f"round {turn} of {self.rounds}, {row.name} {size}, {100 * self.done // self.all} %"
        say(text + ("" if left is None else f", {left:.0f} min left"), passing=True)

    def one(self, row, size, who, number):
        """Of a curve, what takes too long has an endless time. Of what a program tells, the row may want a part."""
        def write(word, value):
            name, unit = (f"{row.name}-{word}", row.words[word]) if word else (row.name, row.unit)
            self.csv.writerow([name, who, size, number, f"{value:.6g}", unit])

        told = set()
        try:
            for word, value in row.jobs[who](size):
                told.add(word)
                if word is None or word in row.words:
                    write(word, value)
        except jobs.Refused as reason:
            slow = isinstance(reason, jobs.Slow) and report.is_curve(row.name)
            for word in (word for word, unit in row.words.items() if slow and unit in report.TIMES and word not in told):
                write(word, math.inf)
            if (row.name, size, who) not in self.refused:
                say(f"{row.name} {size}, {who}: {reason}")
            self.refused[row.name, size, who] = slow

    def ours_failed(self):
        return any(who == report.OURS and not slow for (_, _, who), slow in self.refused.items())

    def one_round(self, turn):
        """What runs first finds other caches and clocks: all take turns at that."""
        for row in self.chosen:
            if row.late and turn < self.rounds:
                continue
            for again in range(row.times):
                for size in row.sizes:
                    self.show(turn, row, size)
                    order = list(row.jobs) if (turn + again) % 2 else list(reversed(row.jobs))
                    for who in order:
                        self.one(row, size, who, (turn - 1) * row.times + again + 1)
                    self.done += 1


def prepare(folder, build, before):
    """Compiles what is needed. Returns who is compared, and the facts for the report."""
    for library in filter(None, (build, before)):
        if not os.path.exists(os.path.join(library, "libfabric.so.1")):
            fail(f"no libfabric.so.1 in {library}")
    installed = reference()
    bench = rows.Bench(folder, build, installed and os.path.dirname(installed), before)
    for name, there in ("UCX (ucx_perftest)", bench.ucx), ("Open MPI (mpirun, mpicc)", bench.mpi), ("libfabric", installed):
        if bench.rivals and not there:
            say(f"{name} is not installed: its figures are left out")
    if not bench.hosts:
        say("several hosts take root and ip (iproute2): their rows are left out")
    os.makedirs(folder, exist_ok=True)
    compile_all(folder, installed or os.path.join(build, "libfabric.so.1"), bench.mpi)
    return bench, machine.facts(ROOT, build, installed, before)


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the program that runs, then reports
    build = os.path.realpath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
    before = os.environ.get("AGAINST") and os.path.realpath(os.environ["AGAINST"])
    rounds = numbers("ROUNDS", [5 if before else 3])[0]
    folder = os.path.join(build, "bench")
    bench, facts = prepare(folder, build, before)
    run = Run(folder, selected(bench), rounds)
    interrupted = False
    try:
        for turn in range(1, rounds + 1):
            run.one_round(turn)
            report.write(folder, facts, rows.GOALS)
    except KeyboardInterrupt:
        interrupted = True
    figures = report.write(folder, facts, rows.GOALS)
    print("\n".join(report.in_text(figures, rows.GOALS)))
    print(f"\nwritten: {folder}/index.html, index.md, raw.csv" + (" (interrupted)" if interrupted else ""))
    return 130 if interrupted else int(run.ours_failed())


if __name__ == "__main__":
    sys.exit(main())
