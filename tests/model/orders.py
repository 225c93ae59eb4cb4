#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves the memory orders of what runs without a lock: docs/LOCKING.md, "Memory order".

Each protocol is written down as a few steps of each thread and tried in all executions of a weakly
ordered processor (tests/model/lib/weak.py). Its promise must hold in all of them, and it must break
when any one of the orders that the protocol needs is taken away: so the model sees what each is for.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from weak import executions, fence, load, rmw, store  # noqa: E402

PUBLISHED, TAKEN, CANCELLED = 1, 2, 3


def swap(old, new):
    """The change of a compare-exchange."""
    return lambda value: new if value == old else None


def publish(o):
    """A packet in the ring, its slot used again by the next sender: shm_tx.c publish, shm_rx.c step and
    shm_publish_head, shm_ring.c shm_ring_claim. Shared address vectors publish entries the same way."""
    return {"payload": 0, "token": 0, "head": 0, "claim": 0}, [
        [rmw("a", "claim", swap(0, 1), "acq_rel"), store("payload", 1), store("token", PUBLISHED, o["publish"])],
        [load("t", "token", o["take"]), load("got", "payload", when=lambda t: t == 1),
         store("head", 1, o["retire"], when=lambda t: t == 1)],
        [load("free", "head", "acquire"), store("payload", 2, when=lambda free: free == 1)],
    ], lambda r, m: r["t"] != 1 or r["got"] == 1


def sleep_in_the_claim(o):
    """The owner of a ring falls asleep: shm_ring.c shm_ring_sleep, shm_tx.c claim. One word, no fence."""
    if o["word"] == "shared":
        asleep = [rmw("was", "claim", swap("free", "sleep"))]
        wakes = [rmw("c", "claim", lambda old: "claimed"), store("token", 1, "release")]
    else:
        asleep = [store("sleep", 1), load("was", "claim")]
        wakes = [store("claim", "claimed"), load("s", "sleep")]
    return {"claim": "free", "sleep": 0, "token": 0}, [asleep, wakes], lambda r, m: (
        r["was"] != "free" or r.get("c") == "sleep" or r.get("s") == 1)


def recall_of_a_read(o):
    """A sender reads the peer's memory, then recalls its request: shm_rma.c shm_recall_posted. The peer
    writes only when it has seen that: ring_state."""
    return {"memory": 0, "token": PUBLISHED}, [
        [load("read", "memory"), rmw("mine", "token", swap(PUBLISHED, CANCELLED), o["recall"])],
        [load("t", "token", "acquire"), store("memory", 1, when=lambda t: t == CANCELLED)],
    ], lambda r, m: r["mine"] != PUBLISHED or r["read"] == 0


def recalled_or_taken(o):
    """One of the two performs a request: shm_rx.c take, shm_rma.c shm_cancel_posted."""
    def taking(reg, state):
        if o["take"] == "exchange":
            return [rmw(reg, "token", swap(PUBLISHED, state), "acq_rel")]
        return [load(reg, "token", "acquire"),
                store("token", state, "release", when={"a": lambda a: a == 1, "b": lambda b: b == 1}[reg])]
    return {"token": PUBLISHED}, [taking("a", TAKEN), taking("b", CANCELLED)], lambda r, m: (
        (r["a"] == PUBLISHED) + (r["b"] == PUBLISHED) == 1)


def released_after_a_write(o):
    """What a sender wrote in the peer's place is there when the peer goes on: shm_release, ring_state. A part of a
    joint copy ends so, too: help_done, look."""
    return {"memory": 0, "token": 0}, [
        [store("memory", 1), store("token", CANCELLED, o["release"])],
        [load("t", "token", o["state"]), load("seen", "memory", when=lambda t: t == CANCELLED)],
    ], lambda r, m: r["t"] != CANCELLED or r["seen"] == 1


def region_table(o):
    """An entry is read as a whole: mr_share.c write_entry, mr_view.c read_entry."""
    return {"seq": 0, "base": 0, "length": 0}, [
        [store("seq", 1), store("base", 1, o["word"]), store("length", 1, o["word"]), store("seq", 2, o["end"])],
        [load("from", "seq", o["begin"]), load("base", "base", o["read"]), load("length", "length", o["read"]),
         load("to", "seq")],
    ], lambda r, m: r["from"] != r["to"] or r["from"] == 1 or r["base"] == r["length"] == r["from"] // 2


def access_guard(o):
    """A region is closed: its owner sees the guard, or the initiator sees the removal. mr_share_remove,
    shm_guard_note; shm_guard_enter."""
    return {"guard": 0, "region": 1}, [
        [rmw("g", "guard", swap(0, 1), "acq_rel"), fence(o["enter"]), load("region", "region")],
        [store("region", 0), fence(o["remove"]), load("guard", "guard", "acquire")],
    ], lambda r, m: r["region"] == 0 or r["guard"] == 1


def end_of_an_access(o):
    """Memory whose guard was given back is not touched any more: shm_guard_leave, shm_guard_ended."""
    return {"guard": 1, "memory": 0}, [
        [store("memory", 1), rmw("g", "guard", swap(1, 0), o["leave"])],
        [load("seen", "guard", "acquire"), store("memory", 2, when=lambda seen: seen == 0)],
    ], lambda r, m: r["seen"] == 1 or m["memory"] == 2


def reference(o):
    """An object is freed after its last use: fabric.h ref_put, ref_busy."""
    return {"ref": 1, "object": 1}, [
        [load("used", "object"), rmw("r", "ref", lambda n: n - 1, o["put"])],
        [load("busy", "ref", "acquire"), store("object", 0, when=lambda busy: busy == 0)],
    ], lambda r, m: r["used"] == 1


def counter_and_sleeper(o):
    """cntr_count and wait_notify; wait_arm and mark_now. A threshold (refresh of defer.c, cntr_reached) and
    log callbacks (callbacks_begin, callbacks_drop) are the same: store one, then look at the other."""
    return {"value": 0, "sleeping": 0}, [
        [rmw("v", "value", lambda n: n + 1, o["count"]), load("wake", "sleeping", o["notify"])],
        [store("sleeping", 1, o["arm"]), load("seen", "value", o["mark"])],
    ], lambda r, m: r["seen"] == 1 or r["wake"] == 1


def locked(reg, order, release, *steps):
    return [rmw(reg, "lock", lambda held: 1, order, must=lambda held: held == 0), *steps,
            store("lock", 0, release)]


def queue_and_sleeper(o):
    """A completion queue: cq_push and wait_notify under the shard's lock; wait_arm, then a look at the queue
    under it. The lock alone orders them."""
    return {"lock": 0, "queue": 0, "sleeping": 0}, [
        locked("p", o["take"], o["give"], store("queue", 1), load("wake", "sleeping")),
        [store("sleeping", 1), *locked("c", o["take"], o["give"], load("seen", "queue"))],
    ], lambda r, m: r["seen"] == 1 or r["wake"] == 1


HELD, WANTED, STARVING = 1, 4, 8


def handed(want):
    return want << 2


def handed_lock(o):
    """Two waiters ask for a lock, one of them after a sleep, then they stop asking: lock.h lock_give, lock.c
    lock_give_to_waiters; ask, take_handed. At most one of them has seen the lock free or was handed it, and it sees what
    the holder stored; nothing is left handed to a waiter that has stopped asking."""
    def hand(s):
        want = s & STARVING or s & WANTED
        return s & ~want | handed(want) if want else 0

    def waiter(asked, got, seen, want, takes):
        return [rmw(asked, "lock", lambda state: state | HELD | want),
                rmw(got, "lock", lambda state: state & ~(takes | handed(takes)), o["take"]),
                load(seen, "object")]

    if o["hand"] == "exchange":
        give = rmw("h", "lock", hand, o["give"], when=lambda s: s != HELD)
    else:
        give = store("lock", hand, o["give"], when=lambda s: s != HELD)

    def promise(r, m):
        has = [not r["asked"] & HELD or r["got"] & handed(WANTED),
               not r["asked2"] & HELD or r["got2"] & handed(WANTED | STARVING)]
        return (not m["lock"] & handed(WANTED | STARVING) and not all(has)
                and (not has[0] or r["seen"] == 1) and (not has[1] or r["seen2"] == 1))

    return {"lock": HELD, "object": 0}, [
        [store("object", 1), load("s", "lock"), store("lock", 0, o["free"], when=lambda s: s == HELD), give],
        waiter("asked", "got", "seen", WANTED, WANTED),
        waiter("asked2", "got2", "seen2", STARVING, WANTED | STARVING),
    ], promise


def signal_in_passing(o):
    """A signal clears `sleeping`, and another event comes before it wakes the sleeper, who arms again and looks:
    wait_signal. What wakes it, an eventfd or the gate, releases."""
    return {"sleeping": 1, "event": 0, "woken": 0}, [
        [store("sleeping", 0, "seq_cst"), store("woken", 1, o["wake"])],
        [store("event", 1, "seq_cst"), load("wake", "sleeping", o["notify"])],
        [load("w", "woken", "acquire"), store("sleeping", 1, "seq_cst", when=lambda w: w == 1),
         load("seen", "event", o["look"], when=lambda w: w == 1)],
    ], lambda r, m: r["w"] == 0 or r["wake"] == 1 or r["seen"] == 1


def flag_of_an_eventfd(o):
    """No token stays in an eventfd whose flag `rung` is clear: ring; lead and wait_drain. The lock is the kernel's,
    of the eventfd."""
    return {"lock": 0, "token": 0, "rung": 0}, [
        [*locked("p", "acquire", o["give"], store("token", 1)), store("rung", 1)],
        [store("rung", 0), *locked("c", "acquire", o["give"], store("token", 0))],
    ], lambda r, m: m["token"] == 0 or m["rung"] == 1


def due_counter(o):
    """A counter that changes while its work is run is run again: cntr_enter_due; run_all of defer.c."""
    return {"value": 0, "due": 1}, [
        [rmw("v", "value", lambda n: n + 1, "seq_cst"), rmw("was", "due", lambda old: 1, o["enter"])],
        [store("due", 0, o["clear"]), load("seen", "value", o["look"])],
    ], lambda r, m: r["was"] == 0 or r["seen"] == 1


def new_shard(o):
    """An object moves to a shard made a moment ago: shard.c shard_new, find_empty and move; shard_take. Nobody
    gets the lock of memory that is not initialised yet. The maker takes that lock first, whose acquire would
    do on Arm, but not in C: it is left out here."""
    def at(field):
        return lambda shard: field
    return {"pointer": 0, "new.lock": 0, "object": 0}, [
        [store("new.lock", 0), rmw("l", "new.lock", lambda held: 1), store("pointer", 1, o["move"]),
         store("object", 1), store("new.lock", 0, "release")],
        [load("shard", "pointer", o["take"]),
         rmw("held", at("new.lock"), swap(0, 1), "acquire", when=lambda shard: shard == 1),
         load("seen", "object", when=lambda shard, held: shard == 1 and held == 0)],
    ], lambda r, m: r["shard"] == 0 or r["held"] == 1 or r["seen"] == 1


# Each with its orders, and a weaker one each that breaks it. (order, None): C needs it, but a processor that keeps
# an address before what depends on it does not.
PROTOCOLS = [
    (publish, {"publish": ("release", "relaxed"), "take": ("acquire", "relaxed"), "retire": ("release", "relaxed")}),
    (sleep_in_the_claim, {"word": ("shared", "two")}),
    (recall_of_a_read, {"recall": ("acq_rel", "acquire")}),
    (recalled_or_taken, {"take": ("exchange", "look and store")}),
    (released_after_a_write, {"release": ("release", "relaxed"), "state": ("acquire", "relaxed")}),
    (region_table, {"word": ("release", "relaxed"), "end": ("release", "relaxed"), "begin": ("acquire", "relaxed"),
                    "read": ("acquire", "relaxed")}),
    (access_guard, {"enter": ("seq_cst", ""), "remove": ("seq_cst", "")}),
    (end_of_an_access, {"leave": ("release", "relaxed")}),
    (reference, {"put": ("release", "relaxed")}),
    (counter_and_sleeper, {"count": ("seq_cst", "acq_rel"), "notify": ("seq_cst", "acquire"),
                           "arm": ("seq_cst", "release"), "mark": ("seq_cst", "acquire")}),
    (queue_and_sleeper, {"take": ("acquire", "relaxed"), "give": ("release", "relaxed")}),
    (handed_lock, {"hand": ("exchange", "store"), "give": ("release", "relaxed"), "free": ("release", "relaxed"),
                   "take": ("acquire", "relaxed")}),
    (signal_in_passing, {"wake": ("release", "relaxed"), "notify": ("seq_cst", "acquire"),
                         "look": ("seq_cst", "acquire")}),
    (flag_of_an_eventfd, {"give": ("release", "relaxed")}),
    (due_counter, {"enter": ("seq_cst", "relaxed"), "clear": ("seq_cst", "release"), "look": ("seq_cst", "acquire")}),
    (new_shard, {"move": ("release", "relaxed"), "take": ("acquire", None)}),
]


def broken(protocol, orders):
    """Returns an execution that breaks the promise, or None; and the number of different results."""
    memory, threads, promise = protocol(orders)
    ends = list(executions(memory, *threads))
    assert ends, f"{protocol.__name__}: no execution ends"
    return next((end for end in ends if not promise(*end)), None), len(ends)


failed = 0
for protocol, orders in PROTOCOLS:
    right = {name: order for name, (order, _) in orders.items()}
    found, ends = broken(protocol, right)
    if found:
        print(f"{protocol.__name__}: broken by {found}")
        failed += 1
    for name, (order, weaker) in orders.items():
        if weaker is None:
            continue
        if not broken(protocol, {**right, name: weaker})[0]:
            print(f"{protocol.__name__}: {name} is right with '{weaker}', too: the model does not see what {order} is for")
            failed += 1
    print(f"{protocol.__name__}: {ends} results, and {sum(w is not None for _, w in orders.values())} orders it needs")
sys.exit(1 if failed else 0)
