#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that the documents of docs/ fit the sources.

Identifiers in backticks, files and folders in them exist. They name all packet types, states of
requests, protocols, locks and settings. README.md is short. docs/COMPATIBILITY.md is generated, and not checked. The
rules are first tested on examples that break them.
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
    """Returns the names in a document that the sources lack."""
    names = {n for n in IDENTIFIER.findall(text) if n not in known}
    return sorted(names | {f for f in FILE.findall(text) if not os.path.exists(f)})


def missing(text, names):
    return sorted(n for n in names if not re.search(r"\b" + n + r"\b", text))


sources = [p for root in ("src", "include", "tests", "tools") for p in glob.glob(root + "/**/*.[ch]", recursive=True)]
words = set(re.findall(r"\w+", "\n".join(read(p) for p in sources)))
assert unknown("`rx_deliver` in src/xfer/worker.c", words) == []
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

def demand(page, names, least):
    """Checks that the page has each of these names."""
    global failed
    assert len(names) >= least, f"{page}: only {names} found in the sources"
    for name in missing(read(page), names):
        print(f"{page} does not tell of {name}")
        failed = True


def enumerators(path, name):
    body = re.search(r"enum " + name + r" \{(.*?)\n\}", read(path), re.S).group(1)
    return re.findall(r"^\t([A-Z]\w+)", body, re.M)


states = [n.removeprefix("TXREQ_") for n in enumerators("src/xfer/peer.h", "txreq_state")]
demand("docs/REQUEST-LIFECYCLE.md", [n for n in states if n not in ("NEW", "LISTS", "STATES")], 8)
demand("docs/ARCHITECTURE.md", enumerators("src/xfer/rndv/way.h", "way_out"), 4)
demand("docs/ARCHITECTURE.md", enumerators("src/xfer/rndv/way.h", "way_in"), 3)

# Names of locks: members, and those of the process.
LOCK = re.compile(r"^\s*(?:struct lock|pthread_mutex_t) (\w+);", re.M)
locks = {n for p in sources if p.startswith("src/") for n in LOCK.findall(read(p))}
demand("docs/LOCKING.md", sorted(locks), 7)
demand("docs/LOCKING.md", [n for n in enumerators("src/base/forked.h", "forked_lock") if n not in ("FORKED_RENEWED", "FORKED_LOCKS")], 15)

settings = set(re.findall(r'"(FI_[A-Z_]+)", (?:NULL|")', read("src/base/env.h")))
demand("man/weft-env.7", sorted(settings), 15)
if len(settings) > 45:
    print(f"src/base/env.h: {len(settings)} settings, at most 45")
    failed = True
for name in sorted(set(re.findall(r"^\.It Ev (\w+)", read("man/weft-env.7"), re.M)) - settings):
    print(f"man/weft-env.7: {name} is no setting")
    failed = True

def is_test(name):
    kind, _, rest = name.partition("_")
    return bool(glob.glob(f"tests/{kind}/{rest}.*") or glob.glob(f"tests/unit/{name}.c"))


# Tests that pages tell to run, and those in the cells of the table of attacks, each of which has some or says that there is none.
assert is_test("source_docs") and not is_test("fault_no_such")
told = {(p, n) for p in pages for names in re.findall(r"`make ((?:t/\w+ ?)+)", read(p)) for n in re.findall(r"t/(\w+)", names) if n != "NAME"}
cells = [c for row in read("docs/SECURITY.md").splitlines() if re.match(r"\| \*\*[\w ]+\*\*", row) for c in row.split(" | ")[1:]]
assert len(cells) == 28, len(cells)
told |= {("docs/SECURITY.md", n) for c in cells for n in re.findall(r"\b[a-z]+_\w+", re.sub("`.*?`", "", c))}
for page, name in sorted(told):
    if not is_test(name):
        print(f"{page}: no test {name}")
        failed = True
for cell in cells:
    if not re.search(r"_|no test|the same|as an outsider", re.sub("`.*?`", "", cell)):
        print(f"docs/SECURITY.md: no test in the cell {cell!r}")
        failed = True

# What docs/PROMISES.md gives as proof: tests, and properties of the generated programs.
proofs = [row.rsplit(" | ", 1)[1] for row in read("docs/PROMISES.md").splitlines() if re.match(r"\| \d+ \|", row)]
judged = set(re.findall(r'"([a-z]+): ', "\n".join(read(p) for p in glob.glob("tests/api/generated/*.h"))))
for name in re.findall(r"\w+_\w+", " ".join(proofs)):
    if not is_test(name):
        print(f"docs/PROMISES.md: no test {name}")
        failed = True
for name in set(re.findall(r"\*(\w+)\*", " ".join(proofs))) ^ judged - {"call", "crash", "hang"}:
    print(f"docs/PROMISES.md, tests/api/generated: property {name} is not in both")
    failed = True

# The rows of ends: the table of docs/NETWORKS.md is that of the sources, with the texts of fi_cq_strerror.
def rows_of_ends(code, texts):
    own = {n: "".join(re.findall(r'"([^"]*)"', body)) for n, body in re.findall(r'\[(REASON_\w+) - REASON_BUDGET\] =((?:\s*"[^"]*")+)', texts)}
    rows = re.findall(r"^\t\[(END_\w+)\] = \{(\w+)(?:, (REASON_\w+))?", code, re.M)
    return [f"| `{end}` | " + ("as found" if err == "0" else f"`{err}`") + " | " + (f"`{reason}` | {own[reason]} |" if reason else "the error | of the error |")
            for end, err, reason in rows]


assert rows_of_ends("\t[END_A] = {FI_B, REASON_C, .d = true},\n\t[END_E] = {0},", '[REASON_C - REASON_BUDGET] =\n\t"f "\n\t"g",') == [
    "| `END_A` | `FI_B` | `REASON_C` | f g |", "| `END_E` | as found | the error | of the error |"]
ends = rows_of_ends(read("src/conn/conn_end.c"), read("src/base/reason.c"))
told_ends = [row for row in read("docs/NETWORKS.md").splitlines() if row.startswith("| `END_")]
names_of_ends = [n for n in enumerators("src/conn/conn_end.h", "conn_end") if n not in ("END_NONE", "END_COUNT")]
assert len(ends) == len(names_of_ends) > 10, (ends, names_of_ends)
for row in [r for r in told_ends + ends if told_ends.count(r) != 1 or ends.count(r) != 1]:
    print(f"docs/NETWORKS.md, src/conn/conn_end.c: not in both: {row}")
    failed = True

# A sentence of these pages that says "all" or "never" is held by a test, or says less.
ABSOLUTE = re.compile(r"\b(alone|all|never|at most|none)\b", re.I)
HELD = {"A header includes at most 12 headers": "source_rooms", "way.h alone compares the length": "source_contract"}


def absolute(text):
    """The sentences with such a word, code left out."""
    plain = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.S)
    parts = re.split(r"\n\s*\n|\n(?=[*#|] ?)|\||(?<=[.;:!?])\s+", plain)
    return [re.sub(r"\s+", " ", p).strip() for p in parts if ABSOLUTE.search(p)]


assert absolute("`none` is. It never\nends; so. | all |\n* b") == ["It never ends;", "all"]
for page in "docs/ARCHITECTURE.md", "CONTRIBUTING.md", "docs/GLOSSARY.md":
    for sentence in absolute(read(page)):
        if not any(words in sentence and is_test(test) for words, test in HELD.items()):
            print(f"{page}: no test holds {sentence!r}")
            failed = True

if (length := len(read("README.md").split())) > 1000:
    print(f"README.md: {length} words, at most 1,000; what explains belongs into docs")
    failed = True

rooms = None
for line in read("docs/ARCHITECTURE.md").split("## Folders")[1].split("\n## ")[0].splitlines():
    cell = line.split("|")[1].strip() if line.startswith("| ") else ""
    if cell.startswith("src/"):
        rooms = cell.split(", ")
    elif cell:
        for name in re.split(r"[,;] ", cell):
            if not any(glob.glob(f"{room}/**/{name}.[ch]", recursive=True) for room in rooms):
                print(f"docs/ARCHITECTURE.md: no file {name} in {rooms}")
                failed = True
shown = {n for cell in re.findall(r"^\| ([\w*, ;]+) \|", read("docs/ARCHITECTURE.md"), re.M) for n in re.split(r"[,;] ", cell)}
for path in glob.glob("src/**/*.c", recursive=True):
    name = os.path.basename(path)[:-2]
    if name not in shown and name.split("_")[0] + "_*" not in shown:
        print(f"docs/ARCHITECTURE.md does not tell of {path}")
        failed = True

print(f"{len(told)} tests of attacks and of pages")
print(f"{len(proofs)} promises, {len(judged)} properties")
print(f"{len(states) - 3} states, {len(locks)} locks, {len(settings)} settings")
print(f"{len(pages)} documents, {len(packets)} packets, {len(hellos)} hellos")
sys.exit(failed)
