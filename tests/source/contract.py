#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The contract with transports, src/link/link.h, stays narrow: its functions are counted, and their number only falls.

What only one transport knows has no name in the rooms above it, and which way a message goes by its length is decided in one file.
The counting is first shown to see what it is to see.
"""
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

POINTERS = 45  # pointers to functions in link.h
# Identifiers that no file of these rooms has: how packets lie in a ring; copies by both processes, but for a figure of the interface.
SEALED = {"src/core": r"link_slots?", "src/xfer": r"link_slots?|(?!received_)(\w+_)?joint(_\w+)?"}
# The thresholds of a way, and the file of the engine that alone compares lengths with them.
WAYS, THRESHOLDS = "src/xfer/rndv/way.h", r"eager_max|zcopy_min|gather_max|WIRE_PAUSED_MAX"


def code(text):
    """The text without comments and strings."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.S)


def pointers(text):
    return len(re.findall(r"\(\*\w+\)\(", code(text)))


def sealed(text, names):
    return sorted(set(word for word in re.findall(r"\w+", code(text)) if re.fullmatch(names, word)))


assert pointers("int (*a)(void); /* (*b)(int) */ void *(*c)(\n\tint);") == 2
assert sealed("link->joint_min + s->received_joint;", SEALED["src/xfer"]) == ["joint_min"]
assert sealed("len > link->eager_max && max", THRESHOLDS) == ["eager_max"]
assert sealed("f(const struct link_slot *s) /* slots */", "link_slots?") == ["link_slot"]

broken = []
with open("src/link/link.h", encoding="utf-8") as text:
    count = pointers(text.read())
print(f"{count} pointers to functions in link.h")
if count > POINTERS:
    broken.append(f"src/link/link.h has {count} pointers to functions: at most {POINTERS}")
elif count < POINTERS:
    broken.append(f"src/link/link.h has {count} pointers to functions: write that down here, as the most there may be")
for room, names in sorted(SEALED.items()):
    files = glob.glob(room + "/**/*.[ch]", recursive=True)
    assert files, room
    for path in sorted(files):
        with open(path, encoding="utf-8") as text:
            broken += [f"{path} names {word}" for word in sealed(text.read(), names)]
engine = [p for p in glob.glob("src/*/**/*.[ch]", recursive=True) if not p.startswith(("src/hw/", "src/link/", "src/base/"))]
assert WAYS in engine
for path in sorted(engine):
    with open(path, encoding="utf-8") as text:
        names = sealed(text.read(), THRESHOLDS)
    assert path != WAYS or len(names) == 4, names
    broken += [f"{path} compares a length with {name}: {WAYS} does" for name in names if path != WAYS]
if broken:
    sys.exit("contract: " + "\n".join(broken))
