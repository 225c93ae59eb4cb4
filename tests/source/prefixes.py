#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that an extern function's name begins with its file's name, or with the first word of it.

tx_req_end may live in tx_req.c, tx.c or tx_flush.c, and shm_ring_step in a file shm_....c, but
neither in peer.c. Plural file names count as singular (providers.c has provider_find). Exempt are
exported functions and those that headers of src/link and xfer/engine.h declare: the contract names them, not the
folder that implements them. The rule is first tested on examples that break it.
"""
import glob
import os
import re
import subprocess
import sys

root = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
build = os.environ.get("BUILD", os.path.join(root, "build"))


def fits(function, source):
    stem = os.path.basename(source)[:-2]
    firsts = {stem.split("_")[0], re.sub(r"s$", "", stem.split("_")[0])}
    return any(function == first or function.startswith(first + "_") for first in firsts)


def declared():
    """Returns the names that headers of src/link and xfer/engine.h declare."""
    names = set()
    for header in glob.glob(os.path.join(root, "src/link/*.h")) + [os.path.join(root, "src/xfer/engine.h")]:
        with open(header, encoding="utf-8") as text:
            names |= set(re.findall(r"\b(\w+)\(", text.read()))
    return names


def functions(source):
    found = subprocess.run(["nm", "--defined-only", os.path.join(build, source[:-2] + ".o")], capture_output=True,
                           text=True, check=True).stdout
    return [line.split()[2] for line in found.splitlines() if line.split()[1] == "T"]


assert fits("tx_req_end", "src/xfer/msg/tx_flush.c") and fits("provider_find", "src/info/providers.c")
assert not fits("tx_req_end", "src/xfer/peer.c") and not fits("txreq", "src/xfer/msg/tx.c")

os.chdir(root)
contract = declared()
assert "defer_run" in contract
sources = [s for s in glob.glob("src/**/*.c", recursive=True) if os.path.exists(os.path.join(build, s[:-2] + ".o"))]
if not sources:
    sys.exit("prefixes: nothing is built in " + build)
seen, broken = 0, []
for path in sorted(sources):
    for name in functions(path):
        seen += 1
        if not name.startswith(("fi_", "weft_", "_")) and name not in contract and not fits(name, path):
            broken.append(f"{path}: {name}")
print(f"{seen} extern functions in {len(sources)} files")
if broken:
    sys.exit("prefixes: these do not begin with their file's name:\n" + "\n".join(broken))
