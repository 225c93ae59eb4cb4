#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The bools of struct peer, with those of the structs that it embeds, are few, and only get fewer.

What can be one of several things is an enum, and what only an attempt to connect needs is in struct attempt. The rule is first
shown to count what it should.
"""
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

BOOLS = 7
HEADERS = ("src/xfer/peer.h", "src/conn/contact.h")


def bools(header, name):
    """Counts the bools of a struct and of those structs of the header that are members of it."""
    body = re.search(r"^struct " + name + r" \{\n(.*?)^\};", header, re.M | re.S)
    if not body:
        return 0
    members = re.sub(r"/\*.*?\*/", "", body.group(1), flags=re.S)
    own = sum(names.count(",") + 1 for names in re.findall(r"^\s*bool ([^;]*);", members, re.M))
    return own + sum(bools(header, inner) for inner in re.findall(r"^\s*struct (\w+) \w", members, re.M))


sample = "struct a {\n\tbool x, y; /* bool z; */\n\tstruct b *p;\n};\n\nstruct c {\n\tstruct a a;\n\tbool q;\n};\n"
assert bools(sample, "c") == 3 and bools(sample, "a") == 2

count = bools("".join(open(path, encoding="utf-8").read() for path in HEADERS), "peer")
if count != BOOLS:
    print(f"struct peer has {count} bools, not {BOOLS}: " + ("they may only get fewer" if count > BOOLS else "write the lower number down"))
sys.exit(count > BOOLS)
