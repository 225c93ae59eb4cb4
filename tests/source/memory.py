#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that docs/SECURITY.md bounds all memory that a peer makes an endpoint allocate.

Each function that allocates, of the folders where packets and connections come in, is either the application's doing or belongs to a
row of the table "Memory" there; each row has such a function. src/base has the means alone: who calls those allocates.
"""
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

NOTE = "docs/SECURITY.md"
FOLDERS = ("src/api", "src/core", "src/conn", "src/xfer", "src/coll", "src/hw")
CALL = re.compile(r"\b(?:malloc|calloc|realloc|reallocarray|strn?dup|v?asprintf|aligned_alloc|posix_memalign|mmap|mremap|open_memstream"
                  r"|pool_get|spare_get|addr_dup|apart_alloc)\(")

OWN = None  # an object that the application opens, a call of its own, or what it has given the library to do
UNEXPECTED, PARTS, HELLO, PEER = "unexpected messages", "packets that are not complete", "connections without a hello", "peers that"
JOINS, FAILED, ANSWERS = "early joins", "joins that failed", "answers that are not read"
RECEIVES, TRIES, EVENTS = "long messages", "addresses that try keys", "completions"
SITES = {
    "src/api/*": {"*": OWN},
    "src/core/cq.c": {"cq_grow": EVENTS, "cq_push_error": EVENTS, "cq_open": OWN},
    "src/core/*": {"*": OWN},
    "src/coll/group/kept.c": {"kept_add": JOINS},
    "src/coll/group/join.c": {"join_note_failure": FAILED},
    "src/coll/*": {"*": OWN},  # bitmaps of a group, too, which it has once
    "src/hw/shm/shm_cm.c": {"shm_open_worker": OWN, "shm_connect": PEER},
    "src/hw/shm/shm_ring.c": {"ring_map": PEER},
    "src/hw/shm/shm_rma.c": {"shm_cancel_posted": OWN},
    "src/hw/tcp/tcp_cm.c": {"tcp_open": OWN, "tcp_connect": PEER},
    "src/hw/tcp/tcp_gather.c": {"buffer_of": OWN},
    "src/hw/tcp/rails/tcp_rails.c": {"rails_open": PEER},
    "src/hw/tcp/tcp_rest.c": {"rest_new": PEER},
    "src/hw/tcp/tcp_tls.c": {"tcp_tls_start": OWN},
    "src/hw/tcp/rails/tcp_window.c": {"tcp_window_open": PARTS},
    "src/hw/udp/udp_sock.c": {"udp_open": OWN},
    "src/hw/verbs/dev/*": {"*": OWN},
    "src/hw/verbs/rc/rc_listen.c": {"listener_open": OWN, "request_new": OWN},  # one for each event that the application reads
    "src/hw/verbs/rc/*": {"*": OWN},
    "src/hw/verbs/rdm/verbs_link.c": {"link_new": PEER},
    "src/hw/verbs/rails/verbs_rails.c": {"rails_find": OWN, "rails_connect": PEER},
    "src/hw/verbs/rails/verbs_rails_keys.c": {"make_registration": OWN, "add_asked": OWN},  # one for each region and device
    "src/hw/verbs/dev/verbs_slots.c": {"verbs_slots_grow": PEER},
    "src/hw/verbs/rails/*": {"*": OWN},
    "src/hw/verbs/rdm/*": {"*": OWN},
    "src/hw/verbs/ud/*": {"*": OWN},
    "src/conn/acceptor.c": {"acceptor_hold": HELLO},
    "src/conn/acceptor_pending.c": {"origin_of": HELLO, "acceptor_pending_add": HELLO},
    "src/conn/addresses.c": {"list_of": OWN},
    "src/conn/attempt.c": {"attempt_begin": PEER},
    "src/conn/auth.c": {"auth_new": PEER},
    "src/conn/conn_names.c": {"conn_names_keep": PEER},
    "src/conn/conn_rails.c": {"rails_of": OWN, "conn_rails_add": PEER, "rail_wanted": PEER},
    "src/conn/conn_single.c": {"conn_request": OWN},
    "src/conn/listen.c": {"bind_next_name": OWN},
    "src/conn/source.c": {"source_wrong_key": TRIES},
    "src/xfer/defer/*": {"*": OWN},
    "src/xfer/dgram/*": {"*": OWN},
    "src/xfer/entry/*": {"*": OWN},
    "src/xfer/msg/rx_index.c": {"rx_index_make_tables": UNEXPECTED, "rx_index_make": UNEXPECTED},
    "src/xfer/msg/rx_match.c": {"xfer_rx_open": OWN, "rx_recv_new": OWN},
    "src/xfer/msg/rx_unexpected.c": {"rx_payload_new": PARTS, "rx_unexpected_memory_of": UNEXPECTED, "rx_unexpected_note": UNEXPECTED},
    "src/xfer/msg/tx_flush.c": {"keep_control": ANSWERS},
    "src/xfer/msg/tx_req.c": {"tx_req_new": OWN, "tx_req_bounce": OWN},
    "src/xfer/msg/rx.h": {"rx_post_one": OWN},
    "src/conn/contact.c": {"contact_new": PEER},
    "src/conn/contact_entry.c": {"contact_rename": PEER, "contact_reserve": OWN},
    "src/xfer/rma/rma_serve.c": {"rma_reply": ANSWERS, "rma_reply_send_fragment": ANSWERS},
    "src/xfer/rma/rma_short.h": {"*": OWN},
    "src/xfer/rndv/rxreq.c": {"rxreq_begin": RECEIVES},
    "src/xfer/stats.c": {"text_of": OWN},
    "src/xfer/worker.c": {"worker_open": OWN},
}


def allocators(text):
    """Names of the functions that allocate."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    text = re.sub(r"__attribute__\(\([^;{]*?\)\)", " ", text)
    for found in re.finditer(r"^(?:[\w*]+[ \t*]+)+?\**[\w \t*]*?(\w+)\(([^;{}]*?)\)\n\{\n(.*?)^\}", text, re.S | re.M):
        if CALL.search(found.group(3)):
            yield found.group(1)


def place_of(path):
    """The entry of the file, or the nearest one of a folder above; NULL: none."""
    if path in SITES:
        return path
    while path:
        path = os.path.dirname(path)
        if path + "/*" in SITES:
            return path + "/*"
    return None


def rows(note):
    """First column of the table of memory."""
    part = note.split("*Memory.*", 1)[1].split("*Time.*", 1)[0]
    return [line.split("|")[1].strip() for line in part.splitlines() if line.startswith("| ") and not line.startswith("| what")]


def faults(files, note):
    wrong, used, bounded = [], set(), set()
    table = rows(note)
    for path, text in files.items():
        for name in allocators(text):
            place = place_of(path)
            key = name if place and name in SITES[place] else "*"
            if not place or key not in SITES[place]:
                wrong.append(f"{path}: {name} allocates: is it a peer's doing? Then it needs a bound: {NOTE}")
                continue
            used.add((place, key))
            row = SITES[place][key]
            if row and not any(line.startswith(row) for line in table):
                wrong.append(f"{path}: {name}: {NOTE} has no row of memory that begins with '{row}'")
            bounded.update(line for line in table if row and line.startswith(row))
    for place, names in SITES.items():
        wrong += [f"{place}: {key} does not allocate any more" for key in names if (place, key) not in used]
    wrong += [f"{NOTE}: no function belongs to '{line}'" for line in table if line not in bounded]
    return wrong


def main():
    files = {}
    for folder in FOLDERS:
        for path in sorted(glob.glob(folder + "/**/*.[ch]", recursive=True)):
            with open(path, encoding="utf-8") as file:
                files[path] = file.read()
    with open(NOTE, encoding="utf-8") as file:
        note = file.read()
    wrong = faults(files, note)
    new = "static int hoard(void)\n{\n\treturn !malloc(1);\n}\n"
    if not any("hoard allocates" in line for line in faults({"src/xfer/msg/new.c": new}, note)):
        wrong.append("an allocation that nobody has judged is not found")
    if not any(f"begins with '{PEER}'" in line for line in faults(files, note.replace("| " + PEER, "| nobody"))):
        wrong.append("a row that is missing is not found")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
