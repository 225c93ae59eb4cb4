#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The simulation of collectives: it must give the times that the model's formulas say, by hand, for groups that are simple
enough, and the fit the line that points lie on. docs/SCALE.md must be what it makes of the present plans, as far as that is
quick to simulate.
"""
import math
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/bench"))

import scale

ALPHA, BETA, NET_ALPHA, NET_BETA, GAMMA = COSTS = [1, 0.01, 10, 0.1, 0.001]
BY_HAND = [  # call, us, rounds, messages and bytes inside hosts, between hosts
    (("barrier", 8, 2, 1, "levels"), (NET_ALPHA, 1, 0, 0, 2, 0)),
    (("broadcast", 1000, 2, 1, "flat"), (NET_ALPHA + 1000 * NET_BETA, 1, 0, 0, 1, 1000)),
    (("broadcast", 1000, 1, 2, "flat"), (ALPHA + 1000 * BETA, 1, 1, 1000, 0, 0)),
    # Both send, receive, and add.
    (("allreduce", 800, 2, 1, "levels"), (NET_ALPHA + 800 * NET_BETA + 800 * GAMMA, 1, 0, 0, 2, 1600)),
    # The root is busy with three sends, one after the other.
    (("broadcast", 8, 4, 1, "flat"), (2 * NET_ALPHA + 8 * NET_BETA, 1, 0, 0, 3, 24)),
    # Between leaders, then inside both hosts.
    (("broadcast", 800, 2, 2, "levels"), (NET_ALPHA + 800 * NET_BETA + ALPHA + 800 * BETA, 2, 2, 1600, 1, 800)),
]


def fail(why):
    sys.exit(f"scale: {why}")


program = scale.simulator(os.environ.get("BUILD", os.path.join(ROOT, "build")))
for (call, wanted), got in zip(BY_HAND, scale.simulate(program, COSTS, [call for call, _ in BY_HAND])):
    if not math.isclose(got[0], wanted[0], abs_tol=0.001) or got[1:] != wanted[1:]:
        fail(f"{call}: {got} instead of {wanted}")

alpha, beta, error = scale.fit({size: 3 + 0.25 * size for size in (8, 100, 5000, 1 << 20)})
if not (math.isclose(alpha, 3) and math.isclose(beta, 0.25) and error < 1e-9):
    fail(f"points on a line: {alpha}, {beta}, {error}")
if not math.isclose(scale.fit({8: 90, 16: 110, 24: 90, 32: 110})[2], 0.1, abs_tol=0.03):
    fail("the greatest error of a fit")

def cells(page):
    """Returns the lines of the simulated table without the columns of more than 1024 members."""
    return [line.split("|")[:3 + len(scale.HOSTS)] for line in scale.part(page, "simulated").splitlines()]


scale.HOSTS = [hosts for hosts in scale.HOSTS if hosts * scale.EACH <= 1024]
with open(scale.PAGE, encoding="utf-8") as file:
    page = file.read()
made, plot = scale.written(page, *scale.measured(page), program)
if [scale.part(page, name) for name in ("measured", "model")] != [scale.part(made, name) for name in ("measured", "model")]:
    fail("docs/SCALE.md: the model is not fitted to the measured links: run tests/bench/scale.py")
for there, now in zip(cells(page), cells(made), strict=True):
    if there != now:
        fail(f"docs/SCALE.md has {there}, simulated now is {now}: run tests/bench/scale.py")
if not plot.startswith("<svg") or plot.count("<polyline") != 2 * len(scale.CALLS):
    fail("a plot without its lines")
print(f"{len(BY_HAND)} calls by hand, {len(scale.CALLS) * len(scale.WAYS) * len(scale.HOSTS)} simulated")
