#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that the manual pages fit the interface, and that their examples compile.

* Each exported call is in the SYNOPSIS of a page, by .Fn or .Fo, and in its NAME, so that `make install` links it to the page.
  A call or macro in a SYNOPSIS exists. A name has one page.
* Each structure of include/rdma that an application fills in or reads is named by a page that tells of all its members.
* A page of this project that another one, or a comment in include/ or src/, refers to exists.
* Each literal block under EXAMPLES in section 3 is a C file without warnings. In other sections blocks that include
  nothing are commands.

The rules are first tested on examples that break them. TIMEOUT=120
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

# Tables of entry points, objects, and what layers of a provider tell each other: no application touches their members.
INNER = re.compile(r"fi_ops|fi_(profile|hmem_override)_ops|fid")
# What a page may refer to that is nobody else's.
OURS = re.compile(r"fi_|weft")
# The characters that have to be escaped in a literal block.
ESCAPES = {r"\e": "\\", r"\&": "", r"\-": "-", r"\(aq": "'", r"\(dq": '"', r"\(ha": "^", r"\(ti": "~", r"\(ga": "`"}


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def sections(page):
    """Returns the sections of a page, by their titles."""
    parts = re.split(r'^\.Sh "?([^"\n]+)"?\n', page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def names(page):
    lines = re.findall(r"^\.Nm (.*)", sections(page).get("NAME", ""), re.M)
    return {n for line in lines for n in line.split() if n != ","}


def calls(page):
    return set(re.findall(r'^\.F[no] "?(\w+)', sections(page).get("SYNOPSIS", ""), re.M))


def told(page):
    """Returns the calls that have their page here."""
    return calls(page) & names(page)


def structures_of(header):
    """Returns the structures of a header that applications use, each with its members, those of nested ones, too."""
    bare = re.sub(r"\(\*(\w+)\)\([^;]*\);", r"\1;", re.sub(r"/\*.*?\*/", "", header, flags=re.S))
    found = {}
    for name, body in re.findall(r"^(?:struct|union) (\w+) \{\n(.*?)^\}", bare, re.M | re.S):
        declared = " , ".join(re.findall(r"([^;{}]*);", body))
        found[name] = set(re.findall(r"(\w+)(?:\[\w+\])?\s*(?:,|$)", declared)) - {"internal", "reserved"}
    return {name: members for name, members in found.items() if not INNER.match(name)}


def described(page, structures):
    """Returns the structures that a page names and whose members it tells of."""
    body = "".join(text for title, text in sections(page).items() if title not in ("SYNOPSIS", "EXAMPLES"))
    words = set(re.findall(r"\w+", body))
    named = set(re.findall(r"\b(?:struct|union) (\w+)", body + sections(page).get("SYNOPSIS", "")))
    return {s for s in named & set(structures) if structures[s] <= words}


def references(page):
    return {(n, s) for n, s in re.findall(r"\bXr (\S+) (\d)", page) if OURS.match(n)}


def mentions(source):
    """Returns the pages that comments of a C file refer to."""
    return set(re.findall(r"\b(fi_\w+|weft[\w-]*|fabric)\(([37])\)", source))


def examples(page):
    """Returns the literal blocks under EXAMPLES, as they are shown."""
    blocks = re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$", sections(page).get("EXAMPLES", ""), re.M)
    return [re.sub(r"\\(?:\(..|.)", lambda e: ESCAPES[e.group()], block) for block in blocks]


def warnings(program):
    """Returns what the compiler says about a C file, or ""."""
    command = [os.environ.get("CC", "cc"), "-fsyntax-only", "-Wall", "-Werror", "-Iinclude", "-xc", "-"]
    return subprocess.run(command, input=program, capture_output=True, text=True, check=False).stderr


def faults(title, page, known):
    """Returns what is wrong with a page by itself."""
    found = [f"there is no call {call}" for call in sorted(calls(page) - known)]
    programs = [block for block in examples(page) if title.endswith(".3") or block.startswith("#include")]
    found += [f"example {i}:\n{said}" for i, block in enumerate(programs, 1) if (said := warnings(block))]
    if title.endswith(".3") and not programs:
        found.append("there is no example")
    return found


GOOD = r""".Sh NAME
.Nm fi_good ,
.Nm fi_other
.Nd x
.Sh SYNOPSIS
.Ft int
.Fn fi_good "struct fi_argument *argument"
.Ft int
.Fo fi_other
.Fc
.Sh DESCRIPTION
Members of
.Vt struct fi_described :
.Fa one , two , four , five , eight ;
.Xr fi_there 3 ,
.Xr userfaultfd 2
.Sh EXAMPLES
.Bd -literal -offset indent
char end(void)
{
	return \(aq\en\(aq;
}
.Ed
"""
KNOWN = {"fi_good", "fi_other"}
assert faults("fi_good.3", GOOD, KNOWN) == []
STRUCTURE = structures_of("""struct fi_described {
	int one, two; /* three; */
	union {
		long four;
		int (*five)(int six, int seven);
	} eight[2];
};

struct fid_inner {
	int one;
};
""")
assert STRUCTURE == {"fi_described": {"one", "two", "four", "five", "eight"}}
assert described(GOOD, STRUCTURE) == {"fi_described"} and references(GOOD) == {("fi_there", "3")}
assert mentions("/* See fi_there(3). */ size = sizeof(3);") == {("fi_there", "3")}
assert described(GOOD.replace("four", "4"), STRUCTURE) == described(GOOD.replace("fi_described", "x"), STRUCTURE) == set()
assert faults("fi_good.3", GOOD, {"fi_good"}) == ["there is no call fi_other"]
assert told(GOOD) == KNOWN and told(GOOD.replace(".Nm fi_other\n", "")) == {"fi_good"}
assert faults("fi_good.3", GOOD.split(".Sh EXAMPLES")[0], KNOWN) == ["there is no example"]
for wrong in ("int unused;\n\treturn 0", "fi_no_such_call();\n\treturn 0"):
    BAD = GOOD.replace(r"return \(aq\en\(aq", wrong)
    assert "example 1" in faults("fi_good.3", BAD, KNOWN)[0]
    assert faults("fi_good.7", BAD, KNOWN) == [] and faults("fi_good.7", BAD.replace("char end", "#include <x>\n"), KNOWN)

with tempfile.TemporaryDirectory() as there:
    with open(there + "/fi_good.3", "w", encoding="utf-8") as good:
        good.write(GOOD)
    links = subprocess.run(["awk", "-f", "man/links.awk", good.name], capture_output=True, text=True, check=True)
    assert links.stdout == "fi_other.3 fi_good.3\n"

pages = {os.path.basename(p): read(p) for p in glob.glob("man/*.[1-9]")}
exported = set(re.findall(r"^\t\t(fi_\w+);", read("libfabric.map"), re.M))
headers = "".join(read(p) for p in glob.glob("include/rdma/**/*.h", recursive=True))
macros = set(re.findall(r"^#define (\w+)\(", headers, re.M))
structures = structures_of(headers)
assert {"fi_getinfo", "fi_cq_sread"} < exported and "dest_addr" in structures["fi_info"]

failed = False
owner = {}
for title, page in sorted(pages.items()):
    section = title.rpartition(".")[2]
    for fault in faults(title, page, exported | macros):
        print(f"man/{title}: {fault}")
        failed = True
    for name in names(page) | {title.rpartition(".")[0]}:
        if owner.setdefault((name, section), title) != title:
            print(f"man/{title}: {name} is in the NAME of {owner[name, section]}, too")
            failed = True

files = [p for root in ("include", "src") for p in glob.glob(root + "/**/*.[ch]", recursive=True)]
referred = set().union(*map(references, pages.values()), *(mentions(read(p)) for p in files))
MISSING = {
    "calls without a page": exported.difference(*map(told, pages.values())),
    "structures without a page": set(structures).difference(*(described(p, structures) for p in pages.values())),
    "references to no page": {f"{n}({s})" for n, s in referred - set(owner)},
}
for what, missing in MISSING.items():
    if missing:
        print(f"{len(missing)} {what}: {' '.join(sorted(missing))}")
        failed = True
print(f"{len(pages)} pages, {len(exported)} calls, {len(structures)} structures")
sys.exit(failed)
