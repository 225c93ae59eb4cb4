# SPDX-License-Identifier: BSD-2-Clause
"""The report of the measurements: raw.csv to figures, and figures to index.md and index.html.

A ratio is the median of the quotients of one turn each: what is compared was measured within seconds, and a machine that
changes its speed from minute to minute changes both.
"""
import csv
import html
import math
import os
import re
import shutil
import statistics
import subprocess

from jobs import SLOW

HEADER = ["row", "who", "size", "round", "value", "unit"]
OURS = "Weft"
BEFORE = "before"  # the other build of AGAINST
LIMIT = "limit"  # "limit: WHAT" is a limit of the machine; the best one counts
RATES = ("M/s", "GB/s", "elements/ns")
TIMES = ("ns", "us", "ms")
GROWTH = 1.2  # a cost may become that many times as great where there is ten times as much of what it is among
GROWS = "Grows: "  # in the definition of a row: why its cost may grow more
NOISE = 0.03  # smaller changes are none
ENOUGH = 3  # turns to tell a change from noise
PAGE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../docs/BENCH.md")


def is_rate(unit):
    return unit in RATES


def is_curve(row):
    """Returns whether a row's sizes are numbers of things, and its figures what one costs among so many."""
    return row.startswith("cost/")


class Figures:
    """All that was measured: for each row and size, in the order of their first turns, who reached what in which turn."""

    def __init__(self):
        self.cells = {}  # (row, size): {who: {round: value}}
        self.units = {}  # row: unit

    def add(self, row, who, size, turn, value, unit):
        self.units[row] = unit
        self.cells.setdefault((row, int(size)), {}).setdefault(who, {})[int(turn)] = float(value)

    def rows(self):
        return list(dict.fromkeys(row for row, _ in self.cells))

    def sizes(self, row):
        return sorted(size for name, size in self.cells if name == row)

    def people(self, row):
        """Returns who was measured in a row, ours first, limits last."""
        names = dict.fromkeys(who for size in self.sizes(row) for who in self.cells[row, size])
        return sorted(names, key=lambda who: (who != OURS, who.startswith(LIMIT)))

    def values(self, row, size, who):
        return list(self.cells.get((row, size), {}).get(who, {}).values())

    def spread(self, row, size, who):
        """Returns (minimum, median, maximum), or None."""
        values = self.values(row, size, who)
        return (min(values), statistics.median(values), max(values)) if values else None

    def quotients(self, row, size, who):
        """Returns ours divided by another's figure, for each turn that has both."""
        cell = self.cells.get((row, size), {})
        ours, other = cell.get(OURS, {}), cell.get(who, {})
        return [ours[turn] / other[turn] for turn in sorted(ours) if other.get(turn)]

    def ratio(self, row, size, who):
        quotients = self.quotients(row, size, who)
        return statistics.median(quotients) if quotients else None

    def growth(self, row, who):
        """Returns {size: by how much a cost grew from the size before, for ten times as many}, of those that grew too much."""
        known = [(size, self.spread(row, size, who)[1]) for size in self.sizes(row) if self.values(row, size, who)]
        found = {}
        for (few, least), (many, most) in zip(known, known[1:]):
            if 0 < least < math.inf and (grown := (most / least) ** (1 / math.log10(many / few))) > GROWTH:
                found[many] = grown
        return found

    def best_limit(self, row, size):
        """Returns which limit is the highest to reach, or None."""
        limits = [who for who in self.cells.get((row, size), {}) if who.startswith(LIMIT)]
        best = max if is_rate(self.units[row]) else min
        return best(limits, key=lambda who: self.spread(row, size, who)[1]) if limits else None


def load(path):
    figures = Figures()
    with open(path, encoding="utf-8", newline="") as raw:
        for line in csv.DictReader(raw):
            figures.add(*(line[name] for name in HEADER))
    return figures


def definitions(path=PAGE):
    """Reads what each row measures: the table rows of docs/BENCH.md that begin with a name in bold."""
    with open(path, encoding="utf-8") as text:
        return dict(re.findall(r"^\| \*\*([^*]+)\*\* \| (.+?) \|", text.read(), re.M))


def figure(value):
    if value == math.inf:
        return f"> {SLOW} s"
    return "-" if value is None else f"{value:.4g}" if value < 1000 else f"{value:.0f}"


def cell(spread):
    """Shows a median, and between which figures it lies."""
    if not spread:
        return "-"
    least, median, most = map(figure, spread)
    return median if least == most else f"{median} ({least} - {most})"


def quotient(value):
    return "-" if value is None else f"{value:.2f}"


def curves(figures, row):
    """Returns a head and lines: what it costs each, by how many there are. What grew too much is marked by how much it did."""
    lines = []
    for who in figures.people(row):
        grown = figures.growth(row, who)
        lines.append([who, *(cell(figures.spread(row, size, who)) + (f" ^{figure(grown[size])}" if 1 < grown.get(size, 1) < math.inf else "")
                             for size in figures.sizes(row))])
    return ["of", *(f"{size:,}" for size in figures.sizes(row))], lines


def table(figures, row):
    """Returns a head and lines: what each reached, then ours divided by each of the others."""
    if is_curve(row):
        return curves(figures, row)
    people = figures.people(row)
    rivals = [who for who in people if who != OURS and not who.startswith(LIMIT)] if OURS in people else []
    limited = OURS in people and any(figures.best_limit(row, size) for size in figures.sizes(row))
    head = ["size", *people, *(f"{OURS}/{who}" for who in rivals), *([f"{OURS}/{LIMIT}"] if limited else [])]
    lines = []
    for size in figures.sizes(row):
        line = [str(size), *(cell(figures.spread(row, size, who)) for who in people)]
        line += [quotient(figures.ratio(row, size, who)) for who in rivals]
        if limited:
            line.append(quotient(figures.ratio(row, size, figures.best_limit(row, size))))
        lines.append(line)
    return head, lines


def has_changed(figures, row, size):
    """Returns whether two builds differ by more than their noise.

    They do if, of at least ENOUGH turns, all of one build are better than all of the other, and the medians differ.
    """
    ours, before = (figures.values(row, size, who) for who in (OURS, BEFORE))
    if min(len(ours), len(before)) < ENOUGH or not (max(ours) < min(before) or min(ours) > max(before)):
        return False
    return abs(statistics.median(ours) / statistics.median(before) - 1) >= NOISE


def changes(figures):
    """Returns a line for each row that another build changed, with the quotient of each turn."""
    lines = []
    for row, size in figures.cells:
        if has_changed(figures, row, size):
            ratio = figures.ratio(row, size, BEFORE)
            word = "faster" if (ratio > 1) == is_rate(figures.units[row]) else "SLOWER"
            each = " ".join(quotient(q) for q in figures.quotients(row, size, BEFORE))
            lines.append(f"{row:32} {size:>8}  {quotient(ratio)} {word}  in each round: {each}")
    return lines


def verdict(figures, goal):
    """Returns the line of a goal. A rate is to reach its bound, a time is not to exceed it."""
    row, size, who, bound = goal
    if who is None:
        spread = figures.spread(row, size, OURS)
        value = spread and spread[1]
    else:
        value = figures.ratio(row, size, figures.best_limit(row, size) if who == LIMIT else who)
    least = is_rate(figures.units.get(row))
    word = "not measured" if value is None else "met" if (value >= bound if least else value <= bound) else "missed"
    name = f"{row} of {size}" + (f", {OURS}/{who}" if who else "")
    return f"{name:56} {quotient(value):>9}   {'at least' if least else 'at most'} {bound}: {word}"


def short(size):
    """Returns a size for the axis: 64, 4K, 1M."""
    for letter, unit in ("M", 1 << 20), ("K", 1 << 10):
        if size and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def chart(figures, row, number):
    """Returns the plot of a row as SVG, or "" without gnuplot or with one size."""
    sizes = figures.sizes(row)
    if len(sizes) < 2 or not shutil.which("gnuplot"):
        return ""
    script = [f'set terminal svg size 760,460 name "row{number}" background rgb "white"', "set logscale xy", "set grid",
              "set key below", "set xtics (" + ", ".join(f'"{short(size)}" {size}' for size in sizes) + ")",
              'set xlabel "size"', f'set ylabel "{figures.units[row]}"']
    plots = []
    for at, who in enumerate(figures.people(row)):
        points = [(size, *figures.spread(row, size, who)) for size in sizes if figures.values(row, size, who)]
        points = [point for point in points if 0 < min(point) and max(point) < math.inf]
        if not points:
            continue
        script += [f"$d{at} << END", *(f"{size} {median} {least} {most}" for size, least, median, most in points), "END"]
        plots.append(f'$d{at} using 1:2:3:4 with yerrorlines title "{who}"')
    script.append("plot " + ", ".join(plots))
    done = subprocess.run(["gnuplot"], input="\n".join(script), capture_output=True, text=True, timeout=30, check=False)
    return done.stdout[done.stdout.find("<svg"):] if done.returncode == 0 and "<svg" in done.stdout else ""


def growths(figures):
    """Returns a line for each of our costs that grows too much: where it does, and whether docs/BENCH.md says why."""
    known, lines = definitions(), []
    for row in filter(is_curve, figures.rows()):
        found = figures.growth(row, OURS)
        if found:
            why = "explained" if GROWS in known.get(row, "") else "NOT EXPLAINED"
            lines.append(f"{row:24} {why:13}  " + ", ".join(f"at {size:,} ^{figure(grown)}" for size, grown in found.items()))
    return lines


def heading(figures, row):
    return f"{row} ({figures.units[row]}{'' if is_rate(figures.units[row]) else ', less is better'})"


ABOUT = (f"Each figure: the median of the rounds (smallest - largest). Ratios: the median of those of each round. ^2: a cost that became "
         f"2 times as great for ten times as many; less than {GROWTH} is not marked.")


def in_markdown(figures, facts, notes):
    known = definitions()
    text = ["# Measurements", "", "| | |", "|---|---|", *(f"| {name} | {fact} |" for name, fact in facts), ""]
    text += [ABOUT, ""]
    for title, lines in notes:
        text += [f"## {title}", "", "```", *lines, "```", ""]
    for row in figures.rows():
        head, lines = table(figures, row)
        text += [f"## {heading(figures, row)}", "", known.get(row, ""), ""]
        text += ["| " + " | ".join(line) + " |" for line in (head, ["---:"] * len(head), *lines)] + [""]
    return "\n".join(text)


def html_table(lines, head=None):
    body = [["th", head]] if head else []
    body += [["td", line] for line in lines]
    return "<table>" + "".join(
        "<tr>" + "".join(f"<{tag}>{html.escape(str(part))}</{tag}>" for part in line) + "</tr>\n" for tag, line in body) + "</table>"


STYLE = """body { font: 15px/1.4 sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; margin: .7em 0 } td, th { border: 1px solid #ccc; padding: .15em .6em; text-align: right }
td:first-child { text-align: left } svg { max-width: 100%; height: auto } pre { overflow-x: auto }"""


def in_html(figures, facts, notes):
    known = definitions()
    text = ["<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8"><title>Measurements</title>',
            f"<style>{STYLE}</style></head><body>", "<h1>Measurements</h1>", html_table(facts),
            f"<p>{ABOUT}</p>"]
    for title, lines in notes:
        text += [f"<h2>{html.escape(title)}</h2>", "<pre>" + html.escape("\n".join(lines)) + "</pre>"]
    for number, row in enumerate(figures.rows()):
        head, lines = table(figures, row)
        text += [f"<h2>{html.escape(heading(figures, row))}</h2>", f"<p>{html.escape(known.get(row, ''))}</p>",
                 chart(figures, row, number), html_table(lines, head)]
    return "\n".join([*text, "</body></html>", ""])


def notes_of(figures, goals):
    """Returns what is said above the rows: pairs of a title and lines."""
    curved = any(map(is_curve, figures.rows()))
    grown = [("Costs that grow by more than a fifth for ten times as many", growths(figures) or ["none"])] if curved else []
    turns = [len(people[BEFORE]) for people in figures.cells.values() if BEFORE in people]
    if turns:
        none = "nothing" if max(turns) >= ENOUGH else f"that takes {ENOUGH} rounds or more to tell"
        return [(f"Changed beyond noise, {OURS}/{BEFORE}", changes(figures) or [none]), *grown]
    reached = [verdict(figures, goal) for goal in goals if goal[:2] in figures.cells]
    return [*([("Meant to be reached", reached)] if reached else []), *grown]


def in_text(figures, goals):
    """Returns the lines that end a run: each row and size, then the notes."""
    lines = []
    for row in figures.rows():
        head, body = table(figures, row)
        columns = [max(map(len, column)) for column in zip(head, *body)]
        lines += ["", heading(figures, row)]
        lines += ["  " + "  ".join(part.rjust(width) for part, width in zip(line, columns)) for line in (head, *body)]
    for title, note in notes_of(figures, goals):
        lines += ["", title + ":", *("  " + line for line in note)]
    return lines


def write(folder, facts, goals):
    """Writes index.md and index.html beside raw.csv. Returns the figures."""
    figures = load(os.path.join(folder, "raw.csv"))
    notes = notes_of(figures, goals)
    for name, make in (("index.md", in_markdown), ("index.html", in_html)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as page:
            page.write(make(figures, facts, notes))
    return figures
