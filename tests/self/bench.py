#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The report of the benchmark: known raw figures must give the right spread, ratios, goals, changes and growth.

A run must measure all by turns and record what it gets, also beside programs that fail. Each row of the benchmark must have its definition in docs/BENCH.md, and each goal a row.
"""
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/bench"))

import jobs
import report
import rows
import run

RAW = """row,who,size,round,value,unit
shm/latency,Weft,8,1,1.0,us
shm/latency,libfabric,8,1,2.0,us
shm/latency,limit: CMA,8,1,4.0,us
shm/latency,limit: two copies,8,1,0.5,us
shm/latency,Weft,8,2,3.0,us
shm/latency,libfabric,8,2,12.0,us
shm/latency,limit: CMA,8,2,4.0,us
shm/latency,limit: two copies,8,2,1.0,us
shm/latency,libfabric,8,3,100,us
shm/latency,Weft,64,1,7,us
shm/rate,Weft,8,1,20,M/s
shm/rate,UCX,8,1,10,M/s
shm/rate,limit: ring,8,1,30,M/s
shm/rate,limit: other,8,1,40,M/s
"""
# Of two builds: `rate` is better in each round, `time` is worse, `noise` overlaps, `equal` differs by less than noise.
AGAINST = "row,who,size,round,value,unit\n" + "".join(
    f"{row},{who},8,{turn + 1},{value},{unit}\n"
    for row, unit, ours, before in (("rate", "M/s", (12, 11, 13), (10, 10, 10)), ("time", "us", (3, 3, 3), (2, 2, 2.5)),
                                    ("noise", "us", (2, 3, 4), (3, 4, 5)), ("equal", "us", (100, 101, 100), (99, 99, 99)),
                                    ("few", "us", (1,), (2,)))
    for who, values in (("Weft", ours), ("before", before)) for turn, value in enumerate(values))


def written(text):
    """Returns the figures of a raw.csv, and the pages written beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "raw.csv")
        with open(path, "w", encoding="utf-8") as raw:
            raw.write(text)
        found = report.write(folder, [("processor", "a <b>")], GOALS)
        pages = []
        for name in "index.md", "index.html":
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                pages.append(file.read())
        return found, *pages


def equal(got, wanted):
    if got != wanted:
        sys.exit(f"bench: {got!r} instead of {wanted!r}")


GOALS = [("shm/latency", 8, report.LIMIT, 2.5), ("shm/latency", 8, "libfabric", 0.3), ("shm/rate", 8, "UCX", 2),
         ("shm/rate", 8, None, 21), ("shm/rate", 64, None, 1)]

figures, markdown, page = written(RAW)
equal(figures.rows(), ["shm/latency", "shm/rate"])
equal(figures.people("shm/latency"), ["Weft", "libfabric", "limit: CMA", "limit: two copies"])
equal(figures.spread("shm/latency", 8, "libfabric"), (2.0, 12.0, 100.0))
equal(figures.spread("shm/latency", 64, "libfabric"), None)
equal(figures.quotients("shm/latency", 8, "libfabric"), [0.5, 0.25])  # the third round has no figure of ours
equal(figures.ratio("shm/latency", 8, "libfabric"), 0.375)
equal(figures.best_limit("shm/latency", 8), "limit: two copies")
equal(figures.best_limit("shm/rate", 8), "limit: other")
equal(figures.best_limit("shm/latency", 64), None)
equal([report.short(size) for size in (8, 4096, 3 << 20, 132)], ["8", "4K", "3M", "132"])
equal(report.table(figures, "shm/latency"), (
    ["size", "Weft", "libfabric", "limit: CMA", "limit: two copies", "Weft/libfabric", "Weft/limit"],
    [["8", "2 (1 - 3)", "12 (2 - 100)", "4", "0.75 (0.5 - 1)", "0.38", "2.50"], ["64", "7", "-", "-", "-", "-", "-"]]))
equal([report.verdict(figures, goal).split()[-1] for goal in GOALS], ["met", "missed", "met", "missed", "measured"])
equal(len(report.notes_of(figures, GOALS)[0][1]), 4)  # the goal of a size that was left out is not spoken of
for text in markdown, page:
    for part in "2 (1 - 3)", "0.38", report.definitions()["shm/latency"].split("`")[0]:
        assert part in text, part
if shutil.which("gnuplot"):
    picture = report.chart(figures, "shm/latency", 0)
    assert picture.startswith("<svg") and picture.rstrip().endswith("</svg>") and picture in page, "no plot"
    for name in figures.people("shm/latency"):
        assert f">{name}<" in picture, f"{name} is not in the plot"
equal(report.chart(figures, "shm/rate", 0), "")  # one size
assert "a &lt;b&gt;" in page and "<b>" not in page
assert "| processor | a <b> |" in markdown

changed = report.changes(written(AGAINST)[0])
equal([" ".join(line.split()) for line in changed],
      ["rate 8 1.20 faster in each round: 1.20 1.10 1.30", "time 8 1.50 SLOWER in each round: 1.50 1.50 1.20"])

equal(list(jobs.program("sh", "-c", "echo {} 3; echo sum {} 4", scale=lambda value, size: value * size)(8)), [(None, 24.0), ("sum", 32.0)])
for script, reason in ("echo no such; exit 1", "status 1"), ("echo none >&2; exit 77", "not offered: none"):
    try:
        list(jobs.program("sh", "-c", script)(8))
        sys.exit(f"bench: {script} is not refused")
    except jobs.Refused as refused:
        assert str(refused).startswith(reason), refused

slow = jobs.program("sh", "-c", "echo first {} 3; if [ {} -ge 10 ]; then echo second {} 5; sleep 60; fi", seconds=1)
equal(list(slow(1)), [("first", 3.0)])
begun = time.monotonic()
for size, told in (10, ["first", "second"]), (100, []), (10, []):  # only the first one is waited for
    words = []
    try:
        for word, _ in slow(size):
            words.append(word)
        sys.exit("bench: what does not end is no failure")
    except jobs.Slow as late:
        equal((str(late), words), ("no end within 1 s", told))
assert time.monotonic() - begun < 10
equal(list(slow(2)), [("first", 3.0)])

with tempfile.TemporaryDirectory() as jobs.SHARED:
    gone = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    names = [f"{gone}:0:0", f"{os.getpid()}:0:0", f"{gone}:other"]
    for name in names:
        open(os.path.join(jobs.SHARED, name), "w", encoding="utf-8").close()
    jobs.sweep(time.time() - 10)
    equal(sorted(os.listdir(jobs.SHARED)), sorted([f"{os.getpid()}:0:0", f"{gone}:other"]))
    open(os.path.join(jobs.SHARED, f"{gone}:0:0"), "w", encoding="utf-8").close()
    jobs.sweep(time.time() + 10)  # it is older
    assert f"{gone}:0:0" in os.listdir(jobs.SHARED)
jobs.SHARED = "/dev/shm"

one = AGAINST.splitlines()[0] + "\n" + "\n".join(line for line in AGAINST.splitlines() if line.startswith("few"))
equal(report.notes_of(written(one)[0], [])[0][1], ["that takes 3 rounds or more to tell"])

# A cost may be a fifth more where there is ten times as much, or two fifths and a bit for a hundred times. "few" is too slow for the last.
CURVE = "row,who,size,round,value,unit\n" + "".join(
    f"cost/{row},{who},{size},1,{value},ns\n"
    for row, who, values in (("any-random", "Weft", {1: 100, 10: 119, 100: 143, 10000: 200}), ("any-random", "libfabric", {1: 50, 10: 100, 10000: "inf"}),
                             ("host-all", "Weft", {2: 1, 200: 100}), ("shm-idle", "Weft", {1: 10, 10: 13, 100: 0, 1000: 5}))
    for size, value in values.items())
figures, markdown, page = written(CURVE)
equal(figures.growth("cost/any-random", "Weft"), {100: 143 / 119})
equal(figures.growth("cost/any-random", "libfabric"), {10: 2.0, 10000: math.inf})
equal(figures.growth("cost/shm-idle", "Weft"), {10: 1.3})  # what fell to nothing may come back
equal(report.table(figures, "cost/any-random"), (
    ["of", "1", "10", "100", "10,000"],
    [["Weft", "100", "119", "143 ^1.202", "200"], ["libfabric", "50", "100 ^2", "-", f"> {jobs.SLOW} s"]]))
equal([line.split() for line in report.growths(figures)],
      [["cost/any-random", "NOT", "EXPLAINED", "at", "100", "^1.202"], ["cost/host-all", "explained", "at", "200", "^10"],
       ["cost/shm-idle", "NOT", "EXPLAINED", "at", "10", "^1.3"]])
assert report.GROWS in report.definitions()["cost/host-all"] and report.GROWS not in report.definitions()["cost/any-random"]
for text in markdown, page:
    for part in "143 ^1.202", "10,000", "NOT EXPLAINED":
        assert part in text, part
equal(report.notes_of(written(CURVE.replace("119", "120").replace("143", "144").replace(",13,", ",12,").replace("200,1,100", "200,1,1"))[0], []),
      [("Costs that grow by more than a fifth for ten times as many", ["none"])])
equal(report.notes_of(written(RAW)[0], []), [])

line = "repeat,20000,0.195,0.233,0.234,32.59,32.60,4271184,4271185"
equal([jobs.perftest_figure(line, 1000, unit) for unit in ("us", "M/s", "GB/s")], [0.234, 4.271185, 4.271185])
equal(jobs.schedule(4096, False, 1), (11, 20000))
equal(jobs.schedule(8, False, 64), (11, 64000))
equal(jobs.schedule(65536, True, 64), (21, 64))

order = []


def job(who, *pairs):
    def measured(size):
        order.append(who)
        if not pairs:
            raise jobs.Refused("as it must")
        yield from pairs
    return measured


plain = rows.Row("plain", "us", [8, 64], {"Weft": job("Weft", (None, 2)), "UCX": job("UCX")})
late = rows.Row("late", "ms", [5], {"Weft": job("late", (None, 3), ("sum", 4))}, times=2, words={"sum": "bytes"}, late=True)
with tempfile.TemporaryDirectory() as work:
    session = run.Run(work, [plain, late], 2)
    for turn in 1, 2:
        session.one_round(turn)
    equal(session.done, session.all)
    equal(session.refused, {("plain", 8, "UCX"): False, ("plain", 64, "UCX"): False})
    assert not session.ours_failed()
    equal(order, ["Weft", "UCX"] * 2 + ["UCX", "Weft"] * 2 + ["late"] * 2)
    with open(os.path.join(work, "raw.csv"), encoding="utf-8") as raw:
        equal(raw.read().split(), ["row,who,size,round,value,unit", "plain,Weft,8,1,2,us", "plain,Weft,64,1,2,us",
                                   "plain,Weft,8,2,2,us", "plain,Weft,64,2,2,us", "late,Weft,5,3,3,ms",
                                   "late-sum,Weft,5,3,4,bytes", "late,Weft,5,4,3,ms", "late-sum,Weft,5,4,4,bytes"])
    curve = rows.Row("cost/of", "", [10], {"Weft": slow}, words={"first": "ns", "third": "ns", "memory": "bytes"})
    session.one(curve, 10, "Weft", 1)  # `slow` tells "second", too; of a row that is no curve what takes too long is not told
    session.one(rows.Row("of", "us", [10], {"Weft": slow}), 10, "Weft", 1)
    with open(os.path.join(work, "raw.csv"), encoding="utf-8") as raw:
        equal([line for line in raw.read().split() if "of" in line], ["cost/of-first,Weft,10,1,inf,ns", "cost/of-third,Weft,10,1,inf,ns"])
    equal(session.refused["cost/of", 10, "Weft"], True)
    session.refused.pop(("of", 10, "Weft"))
    assert not session.ours_failed()  # it is only slow
    session.one(rows.Row("ours", "us", [8], {"Weft": job("Weft")}), 8, "Weft", 1)
    assert session.ours_failed()

with tempfile.TemporaryDirectory() as work:
    bench = rows.Bench(work, "/ours", "/theirs", None)
    bench.ucx = bench.mpi = bench.hosts = True
    every = [row for part in rows.PARTS.values() for row in part(bench)]
    os.environ.update(ONLY="tcp/lat* wake", SIZES="8 64")
    equal([(row.name, row.sizes) for row in run.selected(bench)], [("shm/wake", [8]), ("tcp/wake", [8]), ("tcp/latency", [8, 64])])
    for name, wrong in ("ONLY", "wake nonsense"), ("SIZES", "8 x"), ("SIZES", "3"):
        os.environ[name] = wrong
        try:
            run.selected(bench)
        except SystemExit as refused:
            assert str(refused).startswith("bench: "), refused
        else:
            sys.exit(f"bench: {name}={wrong} is not refused")
        os.environ.update(ONLY="wake", SIZES="")
names = {f"{row.name}-{word}" for row in every for word in row.words} | {row.name for row in every if not row.words}
equal(sorted(names), sorted(report.definitions()))
sizes = {(name, size) for row in every for name in [row.name, *(f"{row.name}-{word}" for word in row.words)] for size in row.sizes}
equal([goal for goal in rows.GOALS if goal[:2] not in sizes], [])
print(f"{len(names)} rows, {len(rows.GOALS)} goals")
