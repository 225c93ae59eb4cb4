#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that a small message stays within its budget of executed instructions.

hotpath.c steps through calls on two connected endpoints over shared memory. Each call has a budget
of instructions, locked instructions and calls, makes no system call, and runs no other library's
code but memcpy. With a call's name as an argument, also prints the functions that its instructions
belong to.
"""
import collections
import os
import platform
import re
import subprocess
import sys
import tempfile

SKIP = 77
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
LIBRARY = os.path.join(BUILD, "libfabric.so")

# Limit of instructions, locked instructions and calls for each call, without the domain's lock. A
# send of eight bytes calls only the link; where two calls are allowed, memcpy may run too. The
# one-sided operations at the end have eight bytes; only posting them is counted.
SMALL = (89, 1, 1)
DATA = (104, 1, 1)
COPIED = (155, 1, 2)
BUDGET = {
    "tsend": SMALL,
    "tinject": SMALL,
    "send": SMALL,
    "inject": SMALL,
    "tinjectdata": DATA,
    "tsenddata": DATA,
    "tsend-64": COPIED,
    "trecv": (42, 0, 0),
    "recv": (40, 0, 0),
    "cq_read": (48, 0, 1),
    "cq_read-empty": (27, 0, 0),
    "cq_read+receive": (119, 0, 1),
    "cq_read+eight": (906, 0, 1),
    "cq_read+unknown": (307, 0, 5),
    "inject_write": (163, 1, 1),
    "cq_read+serve": (589, 2, 12),
    "read": (174, 1, 1),
    "fetch_atomic": (200, 1, 1),
}
LOCK = (24, 1, 0)  # added with FI_THREAD_SAFE: locking and unlocking the shard
OTHERS = 1.25  # factor for other compilers than gcc, whose code the limits are for
MEMCPY = 60  # instructions of the C library where two calls are allowed


def skip(why):
    print("hotpath: " + why)
    sys.exit(SKIP)


def optimised():
    """Returns whether the build is optimised: the budget does not hold for a debug build."""
    with open(os.path.join(ROOT, "config.mk"), encoding="utf-8") as config:
        flags = re.search(r"^CFLAGS = (.*)$", config.read(), re.M)
    return flags and re.search(r"-O[23]\b", flags.group(1)) and "-fsanitize" not in flags.group(1)


def steps(program, level):
    """Returns {call: [(whose, address, kind)]} of one run."""
    run = subprocess.run([program, level], stdout=subprocess.PIPE, timeout=30, check=False, text=True)
    if run.returncode == SKIP:
        skip("this system does not let a process trace its child")
    if run.returncode:
        sys.exit(f"hotpath: {level}: the traced program ended with status {run.returncode}")
    seen = {}
    for line in run.stdout.splitlines():
        words = line.split()
        if words[0] == "call":
            seen[words[1]] = []
        else:
            seen[list(seen)[-1]].append(words)
    return seen


def functions(trace):
    """Counts instructions by function; inlined functions have their own names."""
    own = [step[1] for step in trace if step[0] == "own"]
    run = subprocess.run(["addr2line", "-fe", LIBRARY] + own, stdout=subprocess.PIPE, check=True, text=True)
    return collections.Counter(run.stdout.splitlines()[::2])


def slack():
    with open(LIBRARY, "rb") as library:
        return OTHERS if b"clang version" in library.read() else 1


def judge(name, level, trace):
    """Prints the counts of one call. Returns its faults."""
    kinds = collections.Counter(step[2] for step in trace if step[0] == "own")
    own = sum(kinds.values())
    foreign = sum(step[0] == "other" for step in trace)
    limit = [a + b if level == "safe" else a for a, b in zip(BUDGET[name], LOCK)]
    limit[0] = int(limit[0] * slack())
    got = [own, kinds["locked"], kinds["call"]]
    print("%-7s%-16s %4d of %4d instructions  %d of %d locked  %2d of %2d calls  %3d in other libraries"
          % (level, name, got[0], limit[0], got[1], limit[1], got[2], limit[2], foreign))
    faults = [f"{what}: {a}, at most {b} are allowed"
              for what, a, b in zip(("instructions", "locked instructions", "calls"), got, limit) if a > b]
    if any(step[2] == "syscall" for step in trace):
        faults.append("it makes a system call")
    if foreign > (MEMCPY if limit[2] > 1 else 0):
        faults.append(f"{foreign} instructions are executed in other libraries")
    return [f"{name} ({level}): {fault}" for fault in faults]


def main():
    if platform.machine() != "x86_64":
        skip("instructions are told apart on x86-64 only")
    if not optimised():
        skip("the build is not optimised (CFLAGS without -O2)")
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "hotpath")
        subprocess.run(os.environ.get("CC", "cc").split() + [
            "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", *os.environ.get("WERROR", "").split(), "-I", os.path.join(ROOT, "include"),
            "-o", program, os.path.join(ROOT, "tests/source/hotpath.c"), LIBRARY, "-Wl,-rpath," + BUILD], check=True)
        for level in "safe", "domain":
            seen = steps(program, level)
            for name in BUDGET:
                if name not in seen or not any(step[0] == "own" for step in seen[name]):
                    faults.append(f"{name} ({level}): nothing was counted")
                    continue
                faults += judge(name, level, seen[name])
                if name in sys.argv[1:]:
                    for function, count in functions(seen[name]).most_common():
                        print(f"    {count:4d} {function}")
    for fault in faults:
        print("hotpath: " + fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
