# SPDX-License-Identifier: BSD-2-Clause
"""Reports of the suites: a line per program, a table at the end, docs/COMPATIBILITY.md."""
import collections
import os
import re
import textwrap

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
    lines = ["", f"{'suite':15}{'over':8}{'passed':>8}{'failed':>8}{'also ref':>10}{'expected':>10}{'skipped':>9}"
                 f"{'stretched':>11}{'minutes':>9}"]
    for suite, transport, rows, reason in each_run(session, suites, missing):
        count = counts(rows)
        if reason or not rows:
            lines.append(f"{suite.name:15}{transport:8}  not run{': ' + reason if reason else ''}")
            continue
        minutes = sum(row["seconds"] for row in rows) / 60
        lines.append(f"{suite.name:15}{transport:8}" + "".join(
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


def start_of_row(suite, field, transport):
    return f"| {suite.title} | {field} | {transport} |"


def row_of(suite, field, transport, rows):
    """Returns the row of a suite in the table: its counts, and with which commit."""
    count = counts(rows)
    return start_of_row(suite, field, transport) + " " + " | ".join(str(count[key]) for key in COLUMNS) + f" | {made_of(rows)} |"


def row_of_none(suite, field, transport, reason):
    why = f"not run{': ' + cell(reason) if reason else ''}"
    return start_of_row(suite, field, transport) + " |" * len(HEADS) + f" {why} |"


def row_before(suite, field, transport, text):
    """Returns the row that the document has, or ""."""
    start = start_of_row(suite, field, transport)
    return next((line for line in text.splitlines() if line.startswith(start)), "")


def details_before(suite, field, transport, text):
    """Returns what the document says of the suite's programs."""
    _, _, rest = text.partition(f"### {suite.title}, {field}, {transport}\n")
    return re.split(r"^##", rest, maxsplit=1, flags=re.M)[0].splitlines()


def times(rows):
    """Returns how long programs took that Open MPI also ran over its own transport."""
    ours, own = (sum(row.get(key, 0) for row in rows) for key in ("ours_took", "own_took"))
    return f" Those that passed took {ours:.1f} s, over Open MPI's own transport {own:.1f} s." if own else ""


def details(suite, field, transport, rows):
    """Yields the programs that did not pass, with their reasons."""
    yield f"### {suite.title}, {field}, {transport}"
    yield ""
    yield f"{suite.version()}; {suite.how(transport)}.{times(rows)}"
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
page; `make check-field` does it for those of later suites of Debian. "The reference" is the libfabric of the distribution,
1.17 on bookworm and 2.1 on trixie and sid, over its `tcp` provider: what fails over
ours is run over it, too, up to three times. What the suites expect to fail themselves, because of their own client, is
counted apart. Programs run one at a time; each has a limit of time, and gets three times as much where that was over.
"Over" is the provider: `weft` is what clients choose when nothing is set, and goes through shared memory here."""

TESTED = "Tested clients ([commits, versions, dates](docs/COMPATIBILITY.md))"
HOME = "bookworm"
FIELDS = (HOME, "trixie", "sid")


def document(session, suites, now, missing, before):
    """Returns the text for all suites. `now`: the names of those that were run, as (suite, transport); the others, and
    those of other suites of Debian, keep what the text `before` says."""
    names = {(suite.name, transport) for suite, transport in now}
    table_rows, sections = [], []
    for suite, transport, rows, reason in each_run(session, suites, missing):
        for field in FIELDS:
            here, old = field == session.field and (suite.name, transport) in names, row_before(suite, field, transport, before)
            if here and rows and not reason:
                table_rows.append(row_of(suite, field, transport, rows))
                sections += details(suite, field, transport, rows)
            elif ", commit " in old:
                table_rows.append(old)
                sections += [f"### {suite.title}, {field}, {transport}"] + details_before(suite, field, transport, before)
            elif here or old:
                table_rows.append(row_of_none(suite, field, transport, reason) if here else old)
    head = ["| suite | on | over | " + " | ".join(HEADS) + " | when |", "|---|---|---|" + "---:|" * len(HEADS) + "---|"]
    with open(NOTES) as f:
        notes = "".join(text for text in f if not text.startswith("<!--")).strip()
    return "\n".join([HEAD, ""] + head + table_rows + [""] + sections + [notes]) + "\n"


def readme(document_text, before):
    """Returns the text of README.md with the clients of the document's table: what stands before a comma there."""
    table = document_text.split("\n\n")[2].splitlines()[2:]
    clients = dict.fromkeys(re.split("[,|]", line)[1].strip() for line in table if ", commit " in line)
    text = textwrap.fill(f"{TESTED}: {', '.join(clients)}.", 120, break_long_words=False, break_on_hyphens=False)
    return re.sub(r"^Tested clients.*?\n\n", lambda _: text + "\n\n", before, flags=re.M | re.S)
