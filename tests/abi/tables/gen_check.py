# SPDX-License-Identifier: BSD-2-Clause
"""Print a C file of _Static_asserts for the libfabric ABI tables.

usage: python3 gen_check.py STRUCTS.tsv CONSTANTS.tsv [--calls CALLS.tsv --release 2.6|1.17] [--no-types] > check.c
       cc -std=gnu11 -w -I INCLUDE_DIR -fsyntax-only check.c

For each row of STRUCTS it asserts size and alignment of the type (row
<total>), offset and size of every field and, unless --no-types, that the field
has the listed C type.  For each row of CONSTANTS it asserts the value (or the
text of a string macro) and, unless --no-types, the C type of the expression.
With --calls every listed function of that release is declared once more, so a
differing prototype is a compile error.  The counts go to stderr and into a
comment at the top of the C file.
"""
import argparse
import csv
import sys

FIRST = ["fabric.h", "fi_errno.h", "fi_eq.h", "fi_domain.h", "fi_endpoint.h",
         "fi_rma.h", "fi_tagged.h", "fi_atomic.h", "fi_cm.h",
         "fi_collective.h", "fi_trigger.h", "providers/fi_prov.h",
         "providers/fi_log.h", "fi_ext.h", "providers/fi_peer.h",
         "fi_profile.h"]


def rows(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def cstr(s):
    out = ""
    for b in s.encode():
        c = chr(b)
        if c in '"\\':
            out += "\\" + c
        elif 32 <= b < 127:
            out += c
        else:
            out += "\\%03o" % b
    return '"' + out + '"'


def literal(decimal, ctype):
    v = int(decimal)
    if v < 0:
        return "(%dLL - 1)" % (v + 1)
    return "%dULL" % v if v > 0x7FFFFFFF or "unsigned" in ctype else str(v)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("structs")
    ap.add_argument("constants")
    ap.add_argument("--calls")
    ap.add_argument("--release", choices=["2.6", "1.17"], default="2.6")
    ap.add_argument("--no-types", action="store_true")
    a = ap.parse_args()
    st, co = rows(a.structs), rows(a.constants)
    ca = rows(a.calls) if a.calls else []
    ca = [r for r in ca if r["in_" + a.release] == "yes"]
    types = not a.no_types

    hdrs = {r["header"] for r in st + co + ca} - {"-"}
    order = [h for h in FIRST if h in hdrs] + sorted(hdrs - set(FIRST))

    body, skipped = [], []
    n = dict(size=0, offset=0, fsize=0, ftype=0, value=0, text=0, vtype=0,
             proto=0)
    rows_done = dict(structs=0, constants=0, calls=0)

    def ok(expr, what):
        body.append("_Static_assert(%s, %s);" % (expr, cstr(what)))

    for r in st:
        s, f, note = r["struct"], r["field"], r["note"]
        if f == "<total>":
            ok("sizeof(%s) == %s" % (s, r["size"]), "sizeof %s" % s)
            if note.startswith("align="):
                ok("_Alignof(%s) == %s" % (s, note[6:]), "align of %s" % s)
            n["size"] += 1
            rows_done["structs"] += 1
            continue
        what = "%s.%s" % (s, f)
        if "bitfield" in note:
            skipped.append((what, "bit field: no offsetof"))
            continue
        ok("offsetof(%s, %s) == %s" % (s, f, r["offset"]), "offset of " + what)
        n["offset"] += 1
        rows_done["structs"] += 1
        expr = "((%s *) 0)->%s" % (s, f)
        if "flexible array" not in note:
            ok("sizeof(%s) == %s" % (expr, r["size"]), "size of " + what)
            n["fsize"] += 1
        if types and "{" not in r["ctype"]:
            ok("__builtin_types_compatible_p(__typeof__(%s), %s)"
               % (expr, r["ctype"]), "type of " + what)
            n["ftype"] += 1

    for r in co:
        name, kind, ct = r["name"], r["kind"], r["ctype"]
        if kind == "macro string":
            ok("__builtin_strcmp(%s, %s) == 0" % (name, cstr(r["text"])),
               "text of " + name)
            ok("sizeof(%s) == %d" % (name, len(r["text"].encode()) + 1),
               "length of " + name)
            n["text"] += 1
        elif r["decimal"] == "-":
            skipped.append((name, "no value (%s)" % kind))
            continue
        else:
            ok("(%s) == %s" % (name, literal(r["decimal"], ct)),
               "value of " + name)
            n["value"] += 1
            if types:
                ok("__builtin_types_compatible_p(__typeof__(%s), %s)"
                   % (name, ct), "type of " + name)
                n["vtype"] += 1
        rows_done["constants"] += 1

    protos = []
    for r in ca:
        kind = r["kind"]
        if kind.startswith("exported symbol"):
            protos.append("extern %s;" % r["prototype"])
        elif kind.startswith("static inline"):
            protos.append("static %s;" % r["prototype"])
        elif kind.startswith("exported by a provider"):
            protos.append("extern %s;" % r["prototype"])
        else:
            skipped.append((r["call"], kind))
            continue
        n["proto"] += 1
        rows_done["calls"] += 1

    sym = sorted({(r["call"]) for r in ca if r["kind"].startswith("macro")})
    msg = ["%d of %d struct rows, %d of %d constant rows, %d of %d call rows"
           % (rows_done["structs"], len(st), rows_done["constants"], len(co),
              rows_done["calls"], len(ca)),
           "asserts: %d type sizes (with alignment), %d field offsets, %d field "
           "sizes, %d field types, %d values, %d value types, %d strings, "
           "%d prototypes, %d macros defined"
           % (n["size"], n["offset"], n["fsize"], n["ftype"], n["value"],
              n["vtype"], n["text"], n["proto"], len(sym)),
           "rows not expressed: %d" % (len(skipped) - len(sym))]
    w = sys.stdout.write
    w("/* generated; " + ";\n   ".join(msg) + " */\n")
    for what, why in skipped:
        if what not in sym:
            w("/* not expressed: %s: %s */\n" % (what, why))
    w("#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n")
    for h in ("limits.h", "stdbool.h", "stddef.h", "stdint.h", "stdlib.h",
              "string.h", "sys/types.h", "sys/uio.h", "poll.h", "pthread.h"):
        w("#include <%s>\n" % h)
    # fi_profile.h of 2.6.0 uses this macro and no public header defines it
    w("#ifndef container_of\n#define container_of(p, t, f) "
      "((t *) ((char *) (p) - offsetof(t, f)))\n#endif\n")
    for h in order:
        w("#include <rdma/%s>\n" % h)
    w("\n" + "\n".join(body) + "\n")
    if protos:
        w("\n" + "\n".join(protos) + "\n")
    for m in sym:
        w("#ifndef %s\n#error macro %s is missing\n#endif\n" % (m, m))
    for m in msg:
        sys.stderr.write("gen_check: %s\n" % m)


if __name__ == "__main__":
    main()
