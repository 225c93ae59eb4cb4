#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that no identifier contains an everyday word that once had several meanings here.

Comments and messages may use these words in plain English. docs/GLOSSARY.md has the terms to use.
The rule is first tested on examples that break it.
"""
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

WORDS = {"offer", "offers", "landing", "arrival", "told", "turn", "turns", "settle", "settled", "native"}
QUIET = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#[ \t]*include[^\n]*', re.S | re.M)


def broken(text):
    """Yields (line, identifier) for each name that contains one of WORDS."""
    code = QUIET.sub(lambda m: "\n" * m.group(0).count("\n"), text)
    for number, line in enumerate(code.split("\n"), 1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            if WORDS & set(name.lower().split("_")):
                yield number, name


assert [n for _, n in broken('int rig_turns, hosted; /* a turn */ char *s = "told"; bool told;')] == ["rig_turns", "told"]
assert not list(broken("/* It\n * settles. */\nint returned, provider_offered;"))

failed = 0
files = [p for root in ("src", "tests", "tools", "examples") for p in glob.glob(root + "/**/*.[ch]", recursive=True)]
for path in sorted(files):
    with open(path, encoding="utf-8") as source:
        for at, name in broken(source.read()):
            print(f"{path}:{at}: {name}")
            failed = 1
print(f"{len(files)} files")
sys.exit(failed)
