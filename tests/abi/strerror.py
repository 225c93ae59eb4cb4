#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The texts of fi_strerror equal the table, for either sign; also texts for numbers that are no errors."""
import csv
import ctypes
import os
import sys

TABLE = "tests/abi/tables/constants-2.6.tsv"
ERRNO_MAX = 272

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
lib = ctypes.CDLL(os.path.abspath(os.environ.get("BUILD", "build") + "/libfabric.so"))
lib.fi_strerror.restype = ctypes.c_char_p
libc = ctypes.CDLL(None)
libc.strerror.restype = ctypes.c_char_p
failed = 0


def expect(number, text, what):
    global failed
    got = lib.fi_strerror(number).decode()
    if got != text:
        failed += 1
        print(f"strerror: {what} ({number}): {got!r}, not {text!r}")


seen = 0
with open(TABLE, encoding="utf-8", newline="") as f:
    for row in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
        if row["group"] != "errno" or row["text"] == "-":
            continue
        seen += 1
        for sign in (1, -1):
            expect(sign * int(row["decimal"]), row["text"], row["name"])
if seen < 60:
    sys.exit(f"strerror: only {seen} rows found in {TABLE}")

other = lib.fi_strerror(256).decode()
for number in range(256):
    expect(number, libc.strerror(number).decode(), "text of the C library")
for number in (ERRNO_MAX, -ERRNO_MAX, ERRNO_MAX + 1, 100000, 2**31 - 1, -(2**31)):
    expect(number, other, "no error number")
sys.exit(1 if failed else 0)
