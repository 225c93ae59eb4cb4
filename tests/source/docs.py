#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The documents of docs/ name only what is there: identifiers in backticks, files, and every packet type of the wire.

docs/COMPATIBILITY.md is written by its own target and speaks of other programs. The rules are first shown to catch what breaks them.
"""
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

IDENTIFIER = re.compile(r"`(?:struct |enum )?([A-Za-z_]\w*)(?:\(\))?`")
FILE = re.compile(r"\b((?:src|tests|include|tools|examples)/[\w./-]+\.(?:c|h|py|sh|bash))\b")


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def unknown(text, known):
    """What a document names and is nowhere."""
    names = {n for n in IDENTIFIER.findall(text) if n not in known}
    return sorted(names | {f for f in FILE.findall(text) if not os.path.exists(f)})


def missing(text, names):
    return sorted(n for n in names if not re.search(r"\b" + n + r"\b", text))


sources = [p for root in ("src", "include", "tests", "tools") for p in glob.glob(root + "/**/*.[ch]", recursive=True)]
words = set(re.findall(r"\w+", "\n".join(read(p) for p in sources)))
assert unknown("`rx_deliver` in src/xfer/peer.c", words) == []
assert unknown("`no_such_name` in src/xfer/nowhere.c", words) == ["no_such_name", "src/xfer/nowhere.c"]

failed = False
pages = [p for p in sorted(glob.glob("docs/*.md")) if not p.endswith("COMPATIBILITY.md")]
for page in pages:
    for name in unknown(read(page), words):
        print(f"{page}: {name} is not in the sources")
        failed = True

wire = read("src/link/wire.h")
packets = re.findall(r"^\t(WIRE_\w+)[, ]", re.search(r"enum wire_op \{(.*?)\n\}", wire, re.S).group(1), re.M)
hellos = re.findall(r"^\t(HELLO_\w+)[, ]", re.search(r"enum hello_kind \{(.*?)\n\}", wire, re.S).group(1), re.M)
assert "WIRE_RTS" in packets and "HELLO_ACCEPT" in hellos
for name in missing(read("docs/PROTOCOL.md"), packets + hellos):
    print(f"docs/PROTOCOL.md does not tell of {name}")
    failed = True
print(f"{len(pages)} documents, {len(packets)} packets, {len(hellos)} hellos")
sys.exit(failed)
