#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that others cannot fill the log: what they bring about is told by LOG_PEER, which limits the rate of each line.

In src/xfer, src/hw and src/coll a plain LOG_WARN is for what the application asks for, what its settings say and what this host
lacks: the files and beginnings below. A new one is added here once it is clear that no peer, and nobody who reaches the
endpoint, can repeat it. log_due limits by itself only what LOG_PEER cannot. The rules are first shown to catch what breaks them.
"""
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

# Calls and settings of the application, and what the host lacks when objects are opened.
OWN = """coll/entry.c coll/group/coll_join.c coll/group/group.c coll/group/join.c hw/tcp/tcp_flusher.c hw/udp/udp_group.c
hw/udp/udp_sock.c hw/udp/udp_tx.c hw/verbs/dev/verbs_cache.c hw/verbs/dev/verbs_dev.c hw/verbs/dev/verbs_lib.c
hw/verbs/dev/verbs_news.c hw/verbs/rc/rc_cm.c hw/verbs/rc/rc_mem.c hw/verbs/rc/rc_more.c hw/verbs/rc/rc_srx.c hw/verbs/rc/rc_up.c
hw/verbs/ud/ud_tx.c conn/advertise.c conn/conn_relay.c conn/conn_single.c
conn/listen.c conn/rails.c xfer/defer/defer_op.c xfer/defer/defer_work.c xfer/dgram/dgram_tx.c xfer/msg/tx.c xfer/peer_state.c
xfer/rma/rma_from.c xfer/rndv/rdma.c xfer/stats.c""".split()

# In files with both.
OWN_LINES = {
    "coll/exchange.c": ["a member of a group of"],  # a collective that the application called
    "hw/shm/shm_cm.c": ["shm: cannot make a receive ring"],
    "hw/verbs/rc/rc_listen.c": ["%s %s: %s", "reject: of"],  # fi_listen, fi_reject
    "hw/verbs/rdm/verbs_progress.c": ["%s: cannot repost a receive slot"],  # each slot once
    "hw/verbs/rdm/verbs_rdma.c": ["%s: cannot post an RDMA request"],  # each link once
    "hw/verbs/rdm/verbs_tx.c": ["%s: posting a send to peer"],  # each link once: it ends
    "conn/auth_accept.c": ["accept: the endpoint's key"],
    "api/cm.c": ["accept: the request came"],
    "conn/conn_open.c": ["%s: the endpoint was enabled before", "no timer for a connection attempt"],
    "conn/conn_reach.c": ["cannot connect to", "no connection with"],  # our attempts; is_news limits those of others
    "xfer/worker_stuck.c": ["%s: an operation has stood still"],  # operations of ours
    "xfer/msg/rx_match.c": ["FI_AUTH_KEY"],
    "xfer/msg/rx_peek.c": ["FI_CLAIM without"],
    "xfer/quiesce.c": ["close: %s (process"],  # while the application closes
}
LIMITERS = ["base/log.c", "base/log.h", "api/open.c", "info/rails_setting.c", "conn/conn_reach.c"]


def plain(path, text):
    """The beginnings of warnings that should be LOG_PEER; and 'log_due', if the file should not call it."""
    found = []
    if path.split("/")[0] in ("xfer", "hw", "coll") and path not in OWN:
        for call in re.findall(r'\bLOG_(?:WARN\(|REFUSE\([^,]*,)\s*LOG_\w+,\s*(?:"((?:\\.|[^"\\])*))?', text):
            if not any(call.startswith(own) for own in OWN_LINES.get(path, [])):
                found.append(call)
        if re.search(r"\bFI_LOG_WARN\b", text):
            found.append("FI_LOG_WARN")
    if path not in LIMITERS and "log_due(" in text:
        found.append("log_due")
    return found


assert plain("xfer/a.c", '\tLOG_WARN(\n\t\tLOG_EP_CTRL, "hello");') == ["hello"]
assert plain("xfer/a.c", "LOG_WARN(LOG_CQ, why);") == [""] and plain("coll/b/a.c", "LOG_AT(FI_LOG_WARN, LOG_CQ, w);")
assert plain("xfer/a.c", 'return LOG_REFUSE(-FI_EINVAL, LOG_CQ, "hello");') == ["hello"]
assert plain("core/a.c", "if (log_due(&t))") == ["log_due"]
assert not plain("xfer/a.c", 'LOG_PEER(LOG_EP_CTRL, "hello");') and not plain("core/a.c", 'LOG_WARN(LOG_CQ, "hello");')
assert plain("xfer/msg/rx_match.c", 'LOG_WARN(LOG_CQ, "hello");') and not plain("xfer/msg/rx_match.c", 'LOG_WARN(LOG_CQ, "FI_AUTH_KEY: a");')

texts = {}
for source in glob.glob("src/**/*.[ch]", recursive=True):
    with open(source, encoding="utf-8") as file:
        texts[source[4:]] = file.read()
wrong = [f"{path}: {found}" for path, text in sorted(texts.items()) for found in plain(path, text)]
wrong += [f"{path}: no warning of its own" for path in OWN if not re.search(r"LOG_(WARN|REFUSE)\(", texts.get(path, ""))]
wrong += [f"{path}: none begins with '{own}'" for path, owns in OWN_LINES.items() for own in owns if f'"{own}' not in texts.get(path, "")]
limited = sum(text.count("LOG_PEER(") for text in texts.values())
print(f"{limited} warnings of what others do")
if wrong or limited < 60:
    sys.exit("peer_warnings: what others bring about is logged by LOG_PEER:\n" + "\n".join(wrong))
