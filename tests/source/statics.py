#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that the name of a static function stands in one file of src/ alone, and has two words or more.

So grep, a debugger's breakpoint and a backtrace name one place. Such names begin with their file's: shm_cma_ended is in
shm_cma.c. What a template of src/entry asks of those who include it has the name that the template gives it. The rule is first
tested on examples that break it.
"""
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

DEFINED = re.compile(r"^static\s[^=;{}()#]*?\b(\w+)\((?!\()", re.M)
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s*")


def functions(text):
    return set(DEFINED.findall(ATTRIBUTE.sub("", text)))


def broken(files, asked=()):
    """Of {path: text}, the complaints; `asked`: names that templates give."""
    where = {}
    for path, text in sorted(files.items()):
        for name in functions(text) - set(asked):
            where.setdefault(name, []).append(path)
    return [f"{name} has one word: {paths[0]}" for name, paths in sorted(where.items()) if "_" not in name] + [
        f"{name} is defined in {' and '.join(paths)}" for name, paths in sorted(where.items()) if len(paths) > 1]


assert functions("static int a_b(int c)\n{\n\treturn d(c);\n}\nstatic __attribute__((format(printf, 1, 2))) void\ne_f(void);\n"
                 "static const int g[] = {h(1)};\n") == {"a_b", "e_f"}
assert broken({"a.c": "static void take(void)\n", "b.c": "static int x_y(int)\n", "c.c": "static int *x_y(void)\n"}) == [
    "take has one word: a.c", "x_y is defined in b.c and c.c"]
assert broken({"b.c": "static int x_y(int)\n", "c.c": "static int x_y(void)\n"}, {"x_y"}) == []

sources = {}
for path in glob.glob("src/**/*.[ch]", recursive=True):
    with open(path, encoding="utf-8") as text:
        sources[path] = text.read()
names = sum(len(functions(text)) for text in sources.values())
assert names > 1000, names
print(f"{names} static functions in {len(sources)} files")
templates = "".join(text for path, text in sources.items() if path.startswith("src/entry/"))
asked = set(re.findall(r"^ \*   (\w+)\(", templates, re.M))
assert "atomic_one" in asked
if complaints := broken(sources, asked):
    print(f"{len(complaints)} complaints; the file's name in front makes a name of one place:")
    sys.exit("\n".join(complaints))
