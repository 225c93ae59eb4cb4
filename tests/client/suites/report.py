# SPDX-License-Identifier: BSD-2-Clause
"""Reports of the suites: a line per program, a table at the end, docs/COMPATIBILITY.md."""
import collections
import os

WORDS = {"pass": "pass", "fail": "FAIL", "reference": "ref ", "expected": "xfail", "skip": "skip"}
NOTES = os.path.join(os.path.dirname(__file__), "notes.md")


def line(turn, row):
    """Returns the line of a program that was run."""
    more = row.get("reason", "")
    if row["verdict"] == "reference":
        more = f"also over the reference ({row['reference']} runs): {more}"
    elif row["verdict"] == "fail":
        more += f"; passes over the reference; {row.get('ours', 'not tried again')} runs over ours fail"
    if row.get("stretched"):
        more = "limit stretched" + (f"; {more}" if more else "")
    return f"{turn} {WORDS[row['verdict']]:5} {row['name'][:60]:60} {row['seconds']:7.2f} s  {more}".rstrip()


def rows_of(session, suite, transport):
    """Returns the rows of programs, without those that were run in parts."""
    return [row for row in session.results.rows.values()
            if row["suite"] == suite.name and row["transport"] == transport and row["verdict"] != "parted"]


def counts(rows):
    """Counts programs by verdict, and those that passed with a longer limit."""
    count = collections.Counter(row["verdict"] for row in rows)
    count["stretched"] = sum(bool(row.get("stretched")) for row in rows if row["verdict"] == "pass")
    return count


def each_run(session, suites, missing):
    for suite in suites:
        for transport in suite.transports():
            yield suite, transport, rows_of(session, suite, transport), missing.get(suite.name)


COLUMNS = ("pass", "fail", "reference", "expected", "skip", "stretched")
HEADS = ("passed", "failed", "fail over the reference, too", "fail as the suite expects", "not run",
         "passed with a stretched limit")


def table(session, suites, missing):
    """Returns the table for the terminal."""
    lines = ["", f"{'suite':12}{'over':8}{'passed':>8}{'failed':>8}{'also ref':>10}{'expected':>10}{'skipped':>9}"
                 f"{'stretched':>11}{'minutes':>9}"]
    for suite, transport, rows, reason in each_run(session, suites, missing):
        count = counts(rows)
        if reason or not rows:
            lines.append(f"{suite.name:12}{transport:8}  not run{': ' + reason if reason else ''}")
            continue
        minutes = sum(row["seconds"] for row in rows) / 60
        lines.append(f"{suite.name:12}{transport:8}" + "".join(
            f"{count[key]:{width}}" for key, width in zip(COLUMNS, (8, 8, 10, 10, 9, 11))) + f"{minutes:9.1f}")
    return "\n".join(lines)


def last_line(session, suites):
    """Prints the counts. Returns the exit status."""
    count = collections.Counter()
    for suite in suites:
        for transport in suite.transports():
            count.update(row["verdict"] for row in rows_of(session, suite, transport))
    print(f"{count['pass']} passed, {count['fail']} failed, "
          f"{count['reference'] + count['expected'] + count['skip']} skipped")
    return 1 if count["fail"] or not count["pass"] else 0


def cell(text):
    return " ".join(text.replace("|", "\\|").split())


def made_of(rows):
    """Returns the days and commits of the results."""
    days = sorted({row["date"] for row in rows})
    commits = list(dict.fromkeys(row["commit"] for row in rows))
    return f"{days[0]}{' to ' + days[-1] if len(days) > 1 else ''}, commit {', '.join(commits)}"


def table_of_runs(runs):
    yield "| suite | over | " + " | ".join(HEADS) + " | when |"
    yield "|---|---|" + "---:|" * len(HEADS) + "---|"
    for suite, transport, rows, reason in runs:
        if reason or not rows:
            why = f"not run{': ' + cell(reason) if reason else ''}"
            yield f"| {suite.title} | {transport} |" + " |" * len(HEADS) + f" {why} |"
            continue
        count = counts(rows)
        yield f"| {suite.title} | {transport} | " + " | ".join(str(count[key]) for key in COLUMNS) + \
            f" | {made_of(rows)} |"


def details(suite, transport, rows):
    """Yields the programs that did not pass, with their reasons."""
    yield f"### {suite.title}, {transport}"
    yield ""
    yield f"{suite.version()}; {suite.how(transport)}."
    yield ""
    for verdict, head in zip(("fail", "reference", "expected", "skip"), HEADS[1:5]):
        found = [row for row in rows if row["verdict"] == verdict]
        if not found:
            continue
        yield f"{head.capitalize()}:"
        yield ""
        for row in found:
            yield f"* `{row['name']}`: {reason_of(row)}"
        yield ""


def reason_of(row):
    words = row["reason"]
    if row.get("said"):
        words += f" (`{cell(row['said'])}`)"
    if row["verdict"] == "reference":
        words += f"; over the reference: {row['reference_reason']}"
    elif row["verdict"] == "fail":
        words += f"; {row.get('ours', '1 of 1')} runs, over the reference {row['reference']}"
    return words


HEAD = """# Compatibility

What programs that nobody here wrote do over this library. `make check-clients` runs their own tests and writes this
page. "The reference" is the libfabric of the distribution, 1.17 on Debian 12, over its `tcp` provider: what fails over
ours is run over it, too, up to three times. What the suites expect to fail themselves, because of their own client, is
counted apart. Programs run one at a time; each has a limit of time, and gets three times as much where that was over.
"Over" is the provider: `weft` is what clients choose when nothing is set, and goes through shared memory here."""


def document(session, suites, missing):
    runs = list(each_run(session, suites, missing))
    lines = [HEAD, ""] + list(table_of_runs(runs)) + [""]
    for suite, transport, rows, reason in runs:
        if rows and not reason:
            lines += details(suite, transport, rows)
    with open(NOTES) as f:
        lines.append("".join(text for text in f if not text.startswith("<!--")).strip())
    return "\n".join(lines) + "\n"
