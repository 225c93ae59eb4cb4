#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that memory which another process may write is read once, into private memory.

In src/hw/shm, core/mr_view.c and xfer/msg/rx_read.c a field of a ring's page, of a slot, of a claim or of a peer's table is read by ONCE, once_copy or
an atomic load, and no function reads the same one twice by ONCE. The payload of a received packet lies in the ring as well: the
functions below, and no others of src/xfer and src/coll, look at one, each for the reason given, and copy what they judge by
once_copy. The rules are first shown to catch what breaks them.
"""
import glob
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

COPY = "copies the bytes where the receive says, and judges none"
JUDGE = "judges a copy"
PASS = "passes the pointer on"
OUT = "the payload of a packet to send, or one in private memory"
PAYLOAD = {
    "src/xfer/msg/rx_deliver.c": {"read_rts": JUDGE, "deliver_rts": JUDGE, "deliver_matched": JUDGE, "rx_deliver_place": COPY},
    "src/xfer/msg/rx_read.c": {"rx_read_take": COPY},
    "src/conn/conn_introduce.c": {"read_address": JUDGE},
    "src/xfer/msg/rx.c": {"accept_rts": OUT, "rx_accept": COPY},
    "src/xfer/msg/rx_match.c": {"rx_message": PASS, "accept_unexpected": OUT},
    "src/xfer/msg/rx_unexpected.c": {"rx_unexpected_memory_of": COPY, "rx_payload_new": OUT, "rx_deliver_collected": OUT},
    "src/xfer/msg/rx_peek.c": {"message_len": OUT},
    "src/xfer/msg/tx.c": {"*": OUT},
    "src/xfer/msg/tx_flush.c": {"*": OUT},
    "src/xfer/rndv/rxreq.c": {"rxreq_frag": COPY},
    "src/xfer/rma/rma_rx.c": {"rma_rx_take": JUDGE, "rma_parse": PASS, "rma_rx_put": COPY, "on_notify": PASS},
    "src/xfer/rma/rma_amo.c": {"rma_amo_apply": COPY, "amo_in_a_row": COPY, "rma_amo_packet_of": OUT, "rma_match": OUT, "rma_amo_answer": OUT},
    "src/xfer/rma/rma_answer.c": {"rma_result": COPY, "take_result": COPY},
    "src/xfer/rma/rma_serve.c": {"rma_serve_put": COPY, "rma_serve_get": JUDGE, "rma_serve_amo": JUDGE, "rma_reply_result": OUT},
    "src/xfer/rma/rma_rdma.c": {"rma_notify": OUT},
    "src/xfer/rma/rma_tx.c": {"*": OUT},
    "src/coll/coll.c": {"coll_packet_of": OUT, "coll_hear": JUDGE},
    "src/coll/exchange.c": {"take_in": COPY, "was_early": OUT, "exchange_take": PASS, "exchange_send": OUT},
    "src/coll/group/early.c": {"early_queue_put": COPY},
}
FIELD = re.compile(r"((?:\w+(?:\.|->))*)\b(slot|page)->(\w+)(\[[^]]*\])?")
CHAINED = re.compile(r"(.)(ring_slot_at\([^;]*?\)->|\*ring_claim_at\()")


def functions(text):
    """(name, body) of each function, without comments and strings."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    for found in re.finditer(r"^(?:[\w*]+[ \t*]+)+?\**(?:__attribute__\(\([^;{]*?\)\)[ \t\n]*)?[\w \t*]*?(\w+)\(([^;{}]*?)\)\n\{\n(.*?)^\}", text, re.S | re.M):
        yield found.group(1), found.group(3)


def shared(body):
    """What the body does wrong with shared fields."""
    wrong, seen = [], set()
    for found in FIELD.finditer(body):
        before, after = body[: found.start()].rstrip(), body[found.end():]
        field = re.sub(r"\s+", "", found.group(0))
        if before.endswith("ONCE("):
            if field in seen:
                wrong.append(f"reads {field} twice")
            seen.add(field)
        elif not (before.endswith("&") or re.match(r"\s*=[^=]", after) or (found.group(3) == "rest" and not found.group(4))):
            wrong.append(f"reads {field} without ONCE")
    for found in CHAINED.finditer(body):
        if found.group(1) not in "&(" or (found.group(1) == "(" and not body[: found.start() + 1].endswith("ONCE(")):
            wrong.append(f"reads {found.group(2)} without ONCE or an atomic load")
    return wrong


def payload(path, name, body):
    """What the body does wrong with a payload."""
    if "payload" not in re.findall(r"(?:->|\.)(payload)\b", body):
        return []
    known = PAYLOAD.get(path, {})
    why = known.get(name, known.get("*"))
    if not why:
        return ["uses a payload, and is not in the list of " + __file__]
    if why == JUDGE and not re.search(r"once_copy\(|\.payload = ", body):
        return ["judges a payload that it has not copied by once_copy"]
    if why == JUDGE and len(re.findall(r"\bp->payload", body)) > 1:
        return ["reads a payload twice"]
    return []


assert shared("if (slot->len < 9)\n") == ["reads slot->len without ONCE"]
assert shared("a = ONCE(slot->len); b = ONCE(slot->len);") == ["reads slot->len twice"]
assert shared("if (r->page->uses[at] != use)") == ["reads r->page->uses[at] without ONCE"]
assert shared("x = claim_slots(*ring_claim_at(r, pos));") and shared("x = ring_slot_at(r, pos)->token;")
assert not shared("slot->len = 4; x = ONCE(slot->tag); __atomic_load_n(&r->page->head, 1); p = slot->rest + 8;")
assert not shared("x = ONCE(*ring_claim_at(r, pos)); __atomic_load_n(&ring_slot_at(r, pos)->token, 2);")
assert payload("src/xfer/a.c", "f", "memcpy(&x, p->payload, 8);") and not payload("src/xfer/a.c", "f", "g(p->len);")
assert payload("src/coll/coll.c", "coll_hear", "memcpy(&m, p->payload, 8);")
assert payload("src/coll/coll.c", "coll_hear", "once_copy(&m, p->payload, 8); g(p->payload);")

broken, count = [], 0
for source in sorted(glob.glob("src/hw/shm/*.[ch]")) + ["src/core/mr_view.c", "src/xfer/msg/rx_read.c"]:
    with open(source, encoding="utf-8") as code:
        for function, inside in functions(code.read()):
            count += 1
            broken += [f"{source}: {function} {what}" for what in shared(inside)]
for source in sorted(glob.glob("src/xfer/**/*.c", recursive=True) + glob.glob("src/coll/**/*.c", recursive=True)):
    with open(source, encoding="utf-8") as code:
        for function, inside in functions(code.read()):
            count += 1
            broken += [f"{source}: {function} {what}" for what in payload(source, function, inside)]
print(f"{count} functions")
if broken or count < 500:
    sys.exit("once: shared memory is read once, into private memory:\n" + "\n".join(broken))
