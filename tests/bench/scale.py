#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fits a cost model to measured links, simulates collectives by it, and writes both into docs/SCALE.md, with its plots.

    tests/bench/scale.py                            of the links that the page has
    tests/bench/scale.py build/bench/raw.csv        of the rows shm/latency, tcp/latency and sum/plain measured there

Reads $BUILD (build). The model and the simulation are those of scale.c; what they say of a link, they are told here.
"""
import csv
import math
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
PAGE = os.path.join(ROOT, "docs/SCALE.md")
PLOT = os.path.join(ROOT, "docs/scale.svg")
LINKS = {"shm/latency": "shared memory", "tcp/latency": "network"}
REDUCING = "sum/plain"
EACH = 16  # members a host
HOSTS = [4 ** power for power in range(7)]  # 65,536 members at the most
CALLS = [("barrier", 8), *((what, size) for what in ("allreduce", "broadcast") for size in (8, 65536, 1048576))]
WAYS = {"levels": "hosts known", "flat": "unknown, neighbours", "dealt": "unknown, in turn"}


def measured(page):
    """Reads the measured links of the page: {name: {bytes: us}}, and the rate of reducing in elements/ns."""
    found = {name: {} for name in LINKS.values()}
    for size, *times in re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|", part(page, "measured"), re.M):
        for name, time in zip(found, times):
            found[name][int(size)] = float(time)
    return found, float(re.search(r"([\d.]+) doubles a nanosecond", part(page, "measured")).group(1))


def from_raw(path):
    """Returns what measured() does, of a raw.csv of the benchmark: of its rounds the best, which others disturbed least."""
    cells = {}
    with open(path, encoding="utf-8", newline="") as raw:
        for line in csv.DictReader(raw):
            if line["who"] == "Weft":
                cells.setdefault((line["row"], int(line["size"])), []).append(float(line["value"]))
    found = {name: {size: min(values) for (row, size), values in cells.items() if LINKS.get(row) == name}
             for name in LINKS.values()}
    return found, max(next(values for (row, _), values in cells.items() if row == REDUCING))


def fit(times):
    """Returns alpha (us) and beta (us per byte) with the least squares of relative errors, and the greatest of these."""
    rows = [(1 / time, size / time) for size, time in times.items()]
    aa, ab, bb = (sum(row[i] * row[k] for row in rows) for i, k in ((0, 0), (0, 1), (1, 1)))
    a, b = (sum(row[i] for row in rows) for i in (0, 1))
    alpha, beta = (a * bb - b * ab) / (aa * bb - ab * ab), (b * aa - a * ab) / (aa * bb - ab * ab)
    return alpha, beta, max(abs(alpha * row[0] + beta * row[1] - 1) for row in rows)


def simulator(build):
    """Compiles scale.c with the library's own plans. Returns the program."""
    program = os.path.join(build, "bench/scale")
    os.makedirs(os.path.dirname(program), exist_ok=True)
    command = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Iinclude", "-Isrc", "-I.", "-DWEFT_API_2_7", "-o", program,
               "tests/bench/scale.c", *(f"src/coll/plan/{name}" for name in sorted(os.listdir(os.path.join(ROOT, "src/coll/plan")))
                                        if name.endswith(".c"))]
    subprocess.run([*os.environ.get("CC", "cc").split(), *command], cwd=ROOT, check=True)
    return program


def simulate(program, costs, calls):
    """Returns for each of `calls`, (what, bytes, hosts, members a host, way): (us, rounds, local messages and bytes, and between hosts)."""
    asked = "".join(" ".join(map(str, call)) + "\n" for call in calls)
    done = subprocess.run([program, *map(repr, costs)], input=asked, capture_output=True, text=True, check=True)
    return [tuple(float(word) if at == 0 else int(word) for at, word in enumerate(line.split())) for line in done.stdout.splitlines()]


def part(page, name):
    return re.search(f"<!-- {name} -->\n(.*?)<!-- end -->", page, re.S).group(1)


def with_part(page, name, lines):
    begin = page.index(f"<!-- {name} -->\n") + len(f"<!-- {name} -->\n")
    return page[:begin] + "\n".join([*lines, ""]) + page[page.index("<!-- end -->", begin):]


def figure(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def short(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


def name_of(what, size):
    return what if what == "barrier" else f"{what} {short(size)}"


def links_table(found, rate):
    sizes = sorted(set().union(*found.values()))
    return ["| bytes | shared memory, us | network, us |", "|---:|---:|---:|",
            *(f"| {size} | " + " | ".join(f"{times[size]:.4g}" for times in found.values()) + " |" for size in sizes), "",
            f"Reducing: {rate:.4g} doubles a nanosecond."]


def model_table(found, gamma):
    lines = ["| link | alpha, us | beta, us a KiB | 1 / beta, GB/s | greatest error of the fit |", "|---|---:|---:|---:|---:|"]
    for name, times in found.items():
        alpha, beta, error = fit(times)
        lines.append(f"| {name} | {figure(alpha)} | {figure(1024 * beta)} | {figure(1e-3 / beta)} | {100 * error:.0f} % |")
    return [*lines, "", f"gamma: {figure(1024 * gamma)} us a KiB."]


def results_table(results):
    """`results`: {(what, size, way): {hosts: us}}."""
    lines = [f"| members | hosts | {' | '.join(str(hosts * EACH) for hosts in HOSTS)} |", "|---|---|" + "---:|" * len(HOSTS)]
    for (what, size, way), times in results.items():
        lines.append(f"| {name_of(what, size)} | {WAYS[way]} | " + " | ".join(figure(times[hosts]) for hosts in HOSTS) + " |")
    return lines


COLOURS = ["#555555", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#d62728", "#8c564b"]
LEFT, TOP, WIDE, HIGH, LEAST, MOST = 70, 30, 560, 360, 0, 5  # pixels; powers of ten, us


def plot(results):
    """Returns the SVG: time over members, both logarithmic; solid where hosts are known, dashed where ranks go round them."""
    def x(hosts):
        return LEFT + WIDE * math.log(hosts) / math.log(HOSTS[-1])

    def y(time):
        return TOP + HIGH * (MOST - math.log10(time)) / (MOST - LEAST)

    text = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDE + 190}" height="{TOP + HIGH + 60}" font-family="sans-serif" font-size="12">',
            f'<rect width="100%" height="100%" fill="white"/><text x="{LEFT}" y="18">Simulated: microseconds of a collective, {EACH} members a host; '
            'solid: hosts known, dashed: unknown, ranks in turn</text>']
    for hosts in HOSTS:
        text.append(f'<path d="M{x(hosts):.1f} {TOP}v{HIGH}" stroke="#ddd"/><text x="{x(hosts):.1f}" y="{TOP + HIGH + 18}" text-anchor="middle">{hosts * EACH}</text>')
    for power in range(LEAST, MOST + 1):
        at = y(10 ** power)
        text.append(f'<path d="M{LEFT} {at:.1f}h{WIDE}" stroke="#ddd"/><text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10 ** power}</text>')
    text.append(f'<text x="{LEFT + WIDE / 2:.0f}" y="{TOP + HIGH + 42}" text-anchor="middle">members</text>')
    for (what, size, way), times in results.items():
        if way == "flat":
            continue
        at = CALLS.index((what, size))
        points = " ".join(f"{x(hosts):.1f},{y(max(times[hosts], 1)):.1f}" for hosts in HOSTS)
        dash = "" if way == "levels" else ' stroke-dasharray="5 4"'
        text.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[at]}" stroke-width="1.6"{dash}/>')
        if way == "levels":
            text.append(f'<text x="{LEFT + WIDE + 34}" y="{TOP + 16 + 20 * at}">{name_of(what, size)}</text>'
                        f'<path d="M{LEFT + WIDE + 8} {TOP + 12 + 20 * at}h20" stroke="{COLOURS[at]}" stroke-width="2"/>')
    return "\n".join([*text, "</svg>", ""])


def written(page, found, rate, program):
    """Returns the page with its generated parts, and the plot."""
    page = with_part(page, "measured", links_table(found, rate))
    found, rate = measured(page)  # as they are written there
    gamma = 1e-3 / (rate * 8)
    costs = [cost for times in found.values() for cost in fit(times)[:2]] + [gamma]
    calls = [(*call, hosts, EACH, way) for call in CALLS for way in WAYS for hosts in HOSTS]
    results = {}
    for (what, size, hosts, _, way), (time, *_) in zip(calls, simulate(program, costs, calls)):
        results.setdefault((what, size, way), {})[hosts] = time
    page = with_part(page, "model", model_table(found, gamma))
    return with_part(page, "simulated", results_table(results)), plot(results)


def main():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    found, rate = from_raw(sys.argv[1]) if len(sys.argv) > 1 else measured(page)
    for path, text in zip((PAGE, PLOT), written(page, found, rate, simulator(os.environ.get("BUILD", os.path.join(ROOT, "build"))))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
