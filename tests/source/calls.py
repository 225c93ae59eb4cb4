#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Calls point down: a file of src/ uses what its own level or a lower one defines, as includes do.

Calls up go through tables that the higher room fills; what is left is the table `transports` of src/link/transports.h, by which
all find what src/hw has. fi_* are the interface, which any file may use on what is no object. Without the names of src/link no
circle of files is larger than a level's rooms. How many of them are used from below, and how large the largest circle is with
them, is written down, and only falls. The rules are first shown to catch what breaks them.
"""
import glob
import os
import re
import subprocess
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
build = os.environ.get("BUILD", "build")

# Names used from below; files of the largest circle, contracts or not; names that conn/ uses of the rest of xfer.
UP, CIRCLE, CONN = 1, 26, 0

# As in includes.sh and docs/ARCHITECTURE.md.
LEVEL = {"base": 1, "atomic": 2, "link": 2, "info": 3, "core": 4, "cntr": 4, "hook": 4, "entry": 5, "hw": 6, "xfer": 7,
         "coll": 8, "api": 9}


def level(path):
    return LEVEL[path.split("/")[1]]


def upward(calls):
    """The uses, (file, name, file that defines it), that point up."""
    return sorted((user, name, owner) for user, name, owner in calls if level(user) < level(owner))


def circles(calls):
    """Sets of files that use one another, each of more than one file (Tarjan)."""
    uses = {}
    for user, _, owner in calls:
        uses.setdefault(user, set()).add(owner)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(uses.get(node, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for node in sorted(uses):
        if node not in index:
            visit(node)
    return found


def contracts():
    """Functions and tables that the headers of src/link declare."""
    names = set()
    for path in glob.glob("src/link/*.h"):
        with open(path, encoding="utf-8") as text:
            header = text.read()
        names |= set(re.findall(r"\b(\w+)\(", header)) | set(re.findall(r"^extern .*?(\w+)(?:\[\])?;", header, re.M))
    return names


def symbols():
    """Of each built file: (defined, used) names."""
    for path in sorted(glob.glob("src/**/*.c", recursive=True)):
        built = os.path.join(build, path[:-2] + ".o")
        if not os.path.exists(built):
            continue
        lines = [line.split() for line in subprocess.run(["nm", built], capture_output=True, text=True, check=True).stdout.splitlines()]
        yield path, {x[-1] for x in lines if x[-2] in "TDBR"}, {x[-1] for x in lines if x[-2] == "U"}


def is_conn(path):
    """Connecting, which is to use the engine by no name one day. Of its folder, cm* is FI_EP_MSG, and conn_stuck looks at requests."""
    return path.startswith("src/xfer/conn/") and not re.match(r"cm|conn_stuck", os.path.basename(path))


def risen(what, now, written):
    """True if the number is larger than the one that is written down."""
    if now != written:
        print(f"{what}: {now}, not {written}: " + ("it may only fall" if now > written else "write the lower number down"))
    return now > written


rule_down = ("src/xfer/a.c", "f", "src/core/b.c")
rule_up = ("src/core/b.c", "g", "src/xfer/a.c")
assert upward([rule_down, rule_up]) == [rule_up] and circles([rule_down]) == []
assert circles([rule_down, rule_up]) == [{"src/xfer/a.c", "src/core/b.c"}]

files = list(symbols())
if not files:
    sys.exit("calls: nothing is built in " + build)
owner_of = {name: path for path, defined, _ in files for name in defined}
contract = contracts()
assert {"worker_open", "transports"} <= contract
every = [(path, name, owner_of[name]) for path, _, used in files for name in used if owner_of.get(name, path) != path]
calls = [c for c in every if c[1] not in contract and not c[1].startswith("fi_")]

failed = False
for user, name, owner in upward(calls):
    print(f"{user} uses {name} of {owner}, which is above it")
    failed = True
largest = 0
for circle in circles(calls):
    largest = max(largest, len(circle))
    if len({level(path) for path in circle}) > 1:
        print("a circle of calls through several levels: " + " ".join(sorted(circle)))
        failed = True
names_up = len({name for _, name, _ in upward(every)})
of_xfer = {name for user, name, owner in every if is_conn(user) and owner.startswith("src/xfer/") and not is_conn(owner)}
whole = max(map(len, circles(every)))
failed |= risen("names up", names_up, UP)
failed |= risen("files of the largest circle", whole, CIRCLE)
failed |= risen("names of the engine that conn/ uses", len(of_xfer), CONN)
print(f"{len(calls)} uses of other files in {len(files)} files, {len(every) - len(calls)} through contracts; largest circle {largest}")
print(f"with contracts: {names_up} names up, largest circle {whole}; conn/ uses of the engine: " + " ".join(sorted(of_xfer)))
sys.exit(failed)
