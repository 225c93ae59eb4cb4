#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that each warning of src/ helps: it tells a value, names what the interface calls the thing, or says what to do.

What to do stands behind a colon, a semicolon or in parentheses. The rule is first shown to catch what breaks it.
"""
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

LITERAL = re.compile(r'"((?:\\.|[^"\\])*)"')


def warnings(source):
    """Yields (line, text) of each LOG_WARN, LOG_REFUSE and LOG_PEER call."""
    for call in re.finditer(r"\bLOG_(?:(?:WARN|PEER)\(|REFUSE\([^,]*,)\s*LOG_\w+,\s*((?:\"(?:\\.|[^\"\\])*\"\s*)+)", source):
        yield source[:call.start()].count("\n") + 1, "".join(LITERAL.findall(call.group(1)))


def helps(text):
    return "%" in text or re.search(r"\b(fi|FI)_\w", text) or re.search(r"[:;(] ?\w+ \w+", text)


EXAMPLE = 'LOG_WARN(LOG_EP_CTRL, "it "\n\t"failed");'
assert list(warnings("\n" + EXAMPLE)) == [(2, "it failed")]
assert list(warnings('return LOG_REFUSE(-FI_EINVAL, LOG_CQ, "it failed");')) == [(1, "it failed")]
assert not helps("it failed") and helps("it failed: %s") and helps("set FI_X") and helps("no queue: bind one first")

failed, count = 0, 0
for path in sorted(glob.glob("src/**/*.c", recursive=True)):
    with open(path, encoding="utf-8") as file:
        for line, text in warnings(file.read()):
            count += 1
            if not helps(text):
                print(f"{path}:{line}: {text}")
                failed = 1
print(f"{count} warnings")
sys.exit(failed or count < 200)
