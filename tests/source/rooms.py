#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The rooms of src: what a file needs, by symbol or by include, is of its own room, or behind a door of a room that is not above it.

The one exception is the table `transports`, by which all find what src/hw has. No circle of files crosses a room. Calls up go through
tables that the higher room fills. docs/ARCHITECTURE.md has the same table of rooms. Each rule is first shown to catch what breaks it.
"""
import glob
import os
import re
import subprocess
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
build = os.environ.get("BUILD", "build")

# Of each room its level, and its doors: the headers that files of other rooms may include.
ROOMS = {
    "base": (1, "any but tls_calls"),
    "atomic": (2, "atomic"),
    "link": (3, "any"),
    "info": (4, "external, hints, ifaces, info, job_key, opened, providers, rails_setting, rdma_ports, rules"),
    "core": (5, "av, av_keys, av_set, cq, domain, driven, ep, eq, fabric, mr, mr_nic, mr_table, mr_view, wait, workers"),
    "cntr": (5, "cntr"),
    "hook": (6, "hook, rows"),
    "entry": (7, "args, entry_atomic, entry_msg, entry_rma, tables"),
    "hw": (8, "no"),
    "conn": (9, "acceptor, attempt, conn, conn_options, connect, contact, hello, listen, station"),
    "xfer": (10, "defer/defer, engine, group, msg/rx, msg/tx, rndv/rxreq, worker"),
    "coll": (11, "coll"),
    "api": (12, "no"),
}
EXCEPTION = "transports"
CIRCLE = 22  # files of the largest circle; only falls
INCLUDES = 12  # of our headers, that one header may have


def room_of(path):
    return path.split("/")[1]


def is_door(header, rooms):
    room, name = header[:-2].split("/", 1)
    doors = rooms[room][1]
    listed = name in re.sub("^any but ", "", doors).split(", ")
    return not listed if doors.startswith("any but ") else listed or doors == "any"


def faults_in_hw(path, header):
    """A transport knows itself alone, and of its folders dev/ is for the others; rails/, which builds may leave out, knows rdm/."""
    mine, other = (p.split("/")[1:-1] for p in (path[4:], header))
    if mine and other and mine[0] != other[0]:
        return "is another transport's"
    if other[1:] == ["rails"] != mine[1:]:
        return "may be left out of a build"
    if mine[1:] and other[1:] not in ([], ["dev"], mine[1:]) and (mine[1:], other[1:]) != (["rails"], ["rdm"]):
        return "is another folder's"
    return None


def faults_of(path, includes, rooms):
    """Faults of the lines, '"core/cq.h"' or '<stdio.h>', that a file includes."""
    faults, own, room = [], 0, room_of(path)
    if room not in rooms:
        return [f"{room} is no room of src"]
    for line in includes:
        header = line[1:-1]
        to = header.split("/")[0]
        if to not in rooms or to == header:
            if line[0] == '"' and header != "config.h":
                faults.append(f"{line} does not name its room")
            continue
        own += 1
        fault = None
        if to == room == "hw":
            fault = faults_in_hw(path, header)
        elif rooms[to][0] > rooms[room][0]:
            fault = "is above it"
        elif to != room and not is_door(header, rooms):
            fault = f"is no door of src/{to}"
        faults += [f"{line} {fault}"] if fault else []
    if path.endswith(".h") and own > INCLUDES:
        faults.append(f"has more than {INCLUDES} of our headers")
    return faults


def upward(uses, rooms):
    """The uses, (file, name, file that defines it), that point up."""
    return [use for use in uses if rooms[room_of(use[0])][0] < rooms[room_of(use[2])][0] and use[1] != EXCEPTION]


def circles(uses):
    """Sets of files that use one another, each of more than one file (Tarjan)."""
    of = {}
    for user, name, owner in uses:
        if name != EXCEPTION:
            of.setdefault(user, set()).add(owner)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(of.get(node, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for node in sorted(of):
        if node not in index:
            visit(node)
    return found


def crossing(uses):
    return [circle for circle in circles(uses) if len({room_of(path) for path in circle}) > 1]


def table(rooms):
    return [f"| `src/{room}/` | {level} | {doors} |" for room, (level, doors) in rooms.items()]


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def symbols_of(path):
    """(defined, used) names of a built file."""
    lines = subprocess.run(["nm", os.path.join(build, path[:-2] + ".o")], capture_output=True, text=True, check=True).stdout.splitlines()
    names = [line.split()[-2:] for line in lines]
    return {name for kind, name in names if kind in "TDBR"}, {name for kind, name in names if kind == "U"}


SHOWN = {"base": (1, "any but tls_calls"), "link": (2, "any"), "core": (3, "av, cq"), "hw": (4, "no"), "xfer": (5, "msg/tx")}
for path, line in (
        ("src/base/map.c", '"core/cq.h"'), ("src/base/map.c", "<core/cq.h>"), ("src/core/cq.c", '"cq.h"'), ("src/misc/a.c", "<stdio.h>"),
        ("src/core/cq.c", '"../hw/tcp/tcp.h"'), ("src/xfer/tx.c", '"core/shard.h"'), ("src/core/cq.c", '"base/tls_calls.h"'),
        ("src/xfer/tx.c", '"hw/transports.h"'), ("src/hw/shm/a.c", '"hw/tcp/tcp.h"'), ("src/hw/tcp/a.c", '"hw/tcp/rails/b.h"'),
        ("src/hw/verbs/rdm/a.c", '"hw/verbs/rails/b.h"'), ("src/hw/verbs/rc/a.c", '"hw/verbs/rdm/b.h"'),
        ("src/hw/verbs/dev/a.c", '"hw/verbs/rdm/b.h"')):
    assert len(faults_of(path, [line], SHOWN)) == 1, (path, line)
for path, line in (
        ("src/core/cq.c", '"core/shard.h"'), ("src/core/cq.c", '"config.h"'), ("src/core/cq.c", "<rdma/fabric.h>"), ("src/xfer/a.c", '"link/wire.h"'),
        ("src/hw/shm/a.c", '"core/cq.h"'), ("src/hw/list.c", '"hw/tcp/tcp.h"'), ("src/hw/shm/a.c", '"hw/transports.h"'), ("src/xfer/a.c", '"xfer/b.h"'),
        ("src/hw/verbs/rails/a.c", '"hw/verbs/rdm/b.h"'), ("src/hw/verbs/rc/a.c", '"hw/verbs/dev/b.h"'), ("src/hw/tcp/rails/a.c", '"hw/tcp/tcp.h"')):
    assert faults_of(path, [line], SHOWN) == [], (path, line)
assert [len(faults_of("src/core/a.h", [f'"base/{n}.h"' for n in range(count)], SHOWN)) for count in (12, 13)] == [0, 1]
down, up = ("src/xfer/a.c", "f", "src/core/b.c"), ("src/core/b.c", "g", "src/xfer/a.c")
assert upward([down, up, ("src/core/b.c", EXCEPTION, "src/hw/c.c")], SHOWN) == [up]
assert crossing([down, up]) == circles([down, up]) == [{down[0], up[0]}] and circles([down]) == []
inner = ("src/xfer/a.c", "f", "src/xfer/b.c"), ("src/xfer/b.c", "g", "src/xfer/a.c")
assert circles(inner) and not crossing(inner)

faults, entered = [], set()
for path in sorted(glob.glob("src/**/*.[ch]", recursive=True)):
    includes = re.findall(r'^[ \t]*#[ \t]*include[ \t]*("[^"]+"|<[^>]+>)', read(path), re.M)
    faults += [f"{path}: {fault}" for fault in faults_of(path, includes, ROOMS)]
    entered |= {line[1:-1] for line in includes if line[1:-1].split("/")[0] != room_of(path)}
headers = {path[4:] for path in glob.glob("src/**/*.h", recursive=True)}
named = {f"{room}/{name}.h" for room, (_, doors) in ROOMS.items() if doors != "no" and not doors.startswith("any") for name in doors.split(", ")}
faults += [f"src/{header}: is a door, and no header" for header in sorted(named - headers)]
faults += [f"src/{header}: is a door that no other room uses" for header in sorted(headers - entered) if is_door(header, ROOMS)]

built = {path: symbols_of(path) for path in glob.glob("src/**/*.c", recursive=True) if os.path.exists(os.path.join(build, path[:-2] + ".o"))}
owner_of = {name: path for path, (defined, _) in built.items() for name in defined}
uses = [(path, name, owner_of[name]) for path, (_, used) in built.items() for name in used if owner_of.get(name, path) != path]
if not uses:
    sys.exit("rooms: nothing is built in " + build)
faults += [f"{user}: uses {name} of {owner}, which is above it" for user, name, owner in upward(uses, ROOMS)]
faults += ["a circle through several rooms: " + " ".join(sorted(circle)) for circle in crossing(uses)]
largest = max(map(len, circles(uses)))
if largest != CIRCLE:
    faults.append(f"the largest circle has {largest} files, not {CIRCLE}: " + ("it may only fall" if largest > CIRCLE else "write that down"))
told = re.findall(r"^\| `src/\w+/` \| \d+ \| [^|]* \|", read("docs/ARCHITECTURE.md"), re.M)
faults += [f"docs/ARCHITECTURE.md and this test differ in the row {row}" for row in sorted(set(told) ^ set(table(ROOMS)))]

print("\n".join(faults + [f"{len(uses)} uses of other files in {len(built)} files, {len(entered)} headers of other rooms, largest circle {largest}"]))
sys.exit(bool(faults))
