#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/CONNECTIONS.md draws the machine of src/conn/conn_rows.c as it is; --write draws it anew.

All states can be reached. One function changes the state of a peer, by the rows. The reading of the rows is first tested on
some of its own.
"""
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

PAGE, FOLDER = "docs/CONNECTIONS.md", "src/conn/"
BEGIN, END = "<!-- made by tests/source/connections.py --write -->\n", "<!-- the end of what is made -->\n"


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def enumerators(path, name):
    body = re.search(r"enum " + name + r" \{(.*?)\n\}", read(path), re.S).group(1)
    return re.findall(r"^\t([A-Z]\w+)", body, re.M)


def texts(code, table):
    """The strings of a table by their index."""
    body = re.search(table + r"\[\w+\] = \{(.*?)\n\}", code, re.S).group(1)
    return {name: "".join(re.findall(r'"([^"]*)"', text)) for name, text in re.findall(r'\[(\w+)\] =((?:\s*"[^"]*")+)', body)}


def rows_of(code, states):
    """{event: {state: (action, next)}} of the table; next is None where the state stays."""
    sets = dict(re.findall(r"^#define (\w+)\s+(PEER_\w+\.\.\. PEER_\w+(?: - 1)?)$", code, re.M))
    rows = {}
    for event, body in re.findall(r"\[(CONN_\w+)\] =\s*\{(\[.*?\})\},(?:\n|$)", re.search(r"\]\[PEER_STATES\] = \{\n(.*?)\n\};", code, re.S).group(1), re.S):
        rows[event] = {}
        for where, action, after in re.findall(r"\[([^\]]*)\] = \{(\w+), (\w+)\}", body):
            first, _, last = sets.get(where, where).partition("... ")
            at = states.index(first)
            to = len(states) - 1 if last.endswith("- 1") else states.index(last) if last else at
            for state in states[at:to + 1]:
                assert state not in rows[event], (event, state)
                rows[event][state] = (action, None if after == "STAY" else after)
    return rows


def short(name):
    return name.partition("_")[2]


def picture(rows, states):
    """The changes of state; what every state has alike is left out."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {short(states[0])}"]
    for state in states:
        for after in states:
            events = [short(e) for e, row in rows.items() if len(row) < len(states) and row.get(state, (0, 0))[1] == after != state]
            if events:
                lines.append(f"    {short(state)} --> {short(after)}: {', '.join(events)}")
    return lines + ["```"]


def span(found, states):
    """States by name, three and more in a row by the first and the last."""
    names, at = [], 0
    while at < len(found):
        to = at
        while to + 1 < len(found) and states.index(found[to + 1]) == states.index(found[to]) + 1:
            to += 1
        names += [f"{short(found[at])} to {short(found[to])}"] if to - at > 1 else map(short, found[at:to + 1])
        at = to + 1
    return ", ".join(names)


def cell(row, states):
    """The rows of one event, states that have the same together."""
    alike = {}
    for state, what in row.items():
        alike.setdefault(what, []).append(state)
    return "; ".join(f"{span(found, states)}: {short(action).lower()}" + (f", {short(after)}" if after else "") for (action, after), found in alike.items())


sample = "#define ALL PEER_A... PEER_C - 1\nrows[X][PEER_STATES] = {\n\t[CONN_X] = {[PEER_A... PEER_B] = {DO_Y, PEER_B}},\n\t[CONN_Z] =\n\t\t{[ALL] = {DO_Y, STAY}},\n};\n"
parsed = rows_of(sample, ["PEER_A", "PEER_B"])
assert parsed == {"CONN_X": {"PEER_A": ("DO_Y", "PEER_B"), "PEER_B": ("DO_Y", "PEER_B")}, "CONN_Z": {"PEER_A": ("DO_Y", None), "PEER_B": ("DO_Y", None)}}, parsed
assert picture(parsed, ["PEER_A", "PEER_B"])[3:-1] == []
assert picture({"CONN_X": {"PEER_A": ("DO_Y", "PEER_B")}}, ["PEER_A", "PEER_B"])[3:-1] == ["    A --> B: X"]
assert cell(parsed["CONN_X"], ["PEER_A", "PEER_B"]) == "A, B: y, B"
assert span(["PEER_A", "PEER_B", "PEER_C", "PEER_E"], ["PEER_A", "PEER_B", "PEER_C", "PEER_D", "PEER_E"]) == "A to C, E"

code, header = read(FOLDER + "conn_rows.c"), read(FOLDER + "conn_rows.h")
states = [s for s in enumerators(FOLDER + "contact.h", "peer_state") if s != "PEER_STATES"]
events = [e for e in enumerators(FOLDER + "conn_rows.h", "conn_event") if e != "CONN_EVENTS"]
actions = re.findall(r"^\t(DO_\w+),\s*/\* (.*?) \*/$", header, re.M)
rows = rows_of(code, states)
state_text, event_text = texts(code, "conn_rows_states"), texts(code, "conn_rows_events")
assert list(rows) == events == list(event_text) and list(state_text) == states, "a table lacks something, or has another order"
used = {action for row in rows.values() for action, _ in row.values()}
assert used - {"DO_NOTHING"} == {a for a, _ in actions} - {"DO_REFUSE"}, used ^ {a for a, _ in actions}

failed = False
for state in states[1:]:
    if not any(after == state for row in rows.values() for _, after in row.values()):
        print(f"{state} cannot be reached")
        failed = True

made = ["| state | |", "|---|---|", *(f"| {short(s)} | {state_text[s]} |" for s in states), "", *picture(rows, states), ""]
made += ["| event | | states: action, next state |", "|---|---|---|", *(f"| {short(e)} | {event_text[e]} | {cell(rows[e], states)} |" for e in events), ""]
made += ["| action | |", "|---|---|", *(f"| {short(a).lower()} | {text} |" for a, text in actions if a != "DO_REFUSE")]
before, _, rest = read(PAGE).partition(BEGIN)
drawn, _, behind = rest.partition(END)
if "--write" in sys.argv:
    with open(PAGE, "w", encoding="utf-8") as page:
        page.write(before + BEGIN + "\n" + "\n".join(made) + "\n\n" + END + behind)
elif drawn.strip().splitlines() != made:
    print(f"{PAGE} is not what the rows say: run tests/source/connections.py --write")
    failed = True

WRITES = re.compile(r"\bpeer(?:->|\.)(?:conn\.)?state (?:=|\^=|\|=)(?!=)")
assert WRITES.search("peer->conn.state = PEER_IDLE;") and not WRITES.search("peer->state == PEER_IDLE")
for path in sorted(glob.glob("src/**/*.[ch]", recursive=True)):
    if path != FOLDER + "conn_event.c" and WRITES.search(read(path)):
        print(f"{path} changes the state of a peer: conn_event does")
        failed = True

print(f"{len(states)} states, {len(events)} events, {len(actions)} actions, {sum(map(len, rows.values()))} rows")
sys.exit(failed)
