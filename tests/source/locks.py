#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that the locks of the process are those of base/forked.h, which a forked child finds free.

No other file of src/ has a static lock: by itself, in an array, in a structure without a name, or in one whose name is that of a
structure with a lock. pthread_once is no lock here: a child runs anew what its parent had not ended (tests/unit/base_forked.c).
The rules are first shown to catch what breaks them.
"""
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

HOME = "src/base/forked.c"
LOCK = r"(?:pthread_(?:mutex|rwlock|spinlock|cond|barrier)_t|struct (?:lock|forked_line)|mtx_t|sem_t|atomic_flag)"
# A semaphore and a condition are no locks; but who waits for one is not woken in a child.
KNOWN = {("src/hw/tcp/tcp_flusher.c", "sem_t wake")}  # a child's flusher makes its own: start


def plain(text):
    """The text without comments, strings and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.)*", "", text, flags=re.M | re.S)


def blocks(text):
    """(what stands before the braces, what is within) of each structure."""
    for found in re.finditer(r"((?:\bstatic\s+)?(?:const\s+)?\b(?:struct|union)\b[^;{}()=]*)\{", text):
        depth, at = 1, found.end()
        while depth and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield found.group(1), text[found.end():at - 1]


def members(body):
    """The locks among the members: 'type name'. A pointer to a lock is none."""
    return [" ".join(found.split()) for found in re.findall(r"\b" + LOCK + r"\s+\w+(?=\s*[;\[])", body)]


def holders(texts):
    """The names of structures with a lock, as a member or in one."""
    found, bodies = set(), {}
    for text in texts:
        for head, body in blocks(text):
            name = re.search(r"struct\s+(\w+)", head)
            if name:
                bodies[name.group(1)] = body
    while True:
        more = {name for name, body in bodies.items() if name not in found and (
            members(body) or any(re.search(r"\bstruct\s+%s\s+\w+\s*[;\[]" % re.escape(h), body) for h in found))}
        if not more:
            return found
        found |= more


def static_locks(path, text, names):
    """The static locks of one file."""
    found = []
    kinds = "|".join([LOCK] + [r"struct\s+%s" % re.escape(n) for n in sorted(names)])
    for line in re.findall(r"^(?:static\s+)?(?:%s)\s+\w+\s*(?:\[[^]]*\]\s*)*[=;]|\bstatic\s+(?:%s)\s+\w+\s*(?:\[[^]]*\]\s*)*[=;]" % (kinds, kinds), text, re.M):
        found.append(" ".join(line.rstrip("=; \n").split()))
    for head, body in blocks(text):
        if head.startswith("static"):
            found += members(body)
    return [(path, f) for f in found if (path, f) not in KNOWN and path != HOME]


def broken(files):
    """(path, lock) for {path: text}."""
    texts = {path: plain(text) for path, text in files.items()}
    names = holders(texts.values())
    return [f for path, text in sorted(texts.items()) for f in static_locks(path, text, names)]


for caught in ("static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;", "struct lock l;", "static struct lock l[4];", "void f(void)\n{\n\tstatic struct lock l;\n}",
               "static struct {\n\tint a;\n\tstruct lock lock;\n} all = {.a = 1};", "struct a {\n\tstruct lock lock;\n};\nstatic struct a one;",
               "struct a {\n\tstruct lock lock;\n};\nstruct b {\n\tstruct a a;\n};\nstatic struct b two = {0};", "static struct {\n\tpthread_rwlock_t l;\n} __attribute__((aligned(64))) all[8];"):
    assert broken({"src/a.c": caught}), caught
for fine in ("struct a {\n\tstruct lock lock;\n};\nstatic struct a *one;", "static struct lock *of(void *p)\n{\n}", "void f(void)\n{\n\tstruct lock l;\n}",
             "static pthread_once_t once = PTHREAD_ONCE_INIT;", "/* static struct lock l; */", "static struct {\n\tpthread_mutex_t *lock;\n} w;"):
    assert not broken({"src/a.c": fine}), fine

sources = {}
for source in glob.glob("src/**/*.[ch]", recursive=True):
    with open(source, encoding="utf-8") as code:
        sources[source] = code.read()
wrong = broken(sources)
print(f"{len(sources)} files, {len(holders(plain(t) for t in sources.values()))} structures with locks")
if wrong or len(sources) < 300:
    sys.exit("locks: a static lock belongs into base/forked.h:\n" + "\n".join(f"{path}: {lock}" for path, lock in wrong))
