# SPDX-License-Identifier: BSD-2-Clause
"""All executions of a few small threads on a processor that orders memory weakly, like 64-bit Arm.

A thread is a list of steps. They are performed in any order that these rules leave open:

    - a step that needs a register waits for the step that loads it; a store waits for its condition
      too, but a load does not (it is performed speculatively, and its value is dropped);
    - steps on one location keep their order; a load may take the value of an earlier store of its own
      thread that is not performed yet;
    - what follows an acquire waits for it; a release waits for what precedes it; a fence does both,
      an acquire fence for loads before it only; sequentially consistent steps keep their order;
    - a read-modify-write loads and stores in two moments, between which no other thread stores there.
      Its acquire belongs to the load, its release to the store.

A performed store is seen by all threads at once, as Arm promises. Conditions and values are functions
whose parameters name the registers that they need.
"""
LOAD, STORE, RMW, FENCE = "load", "store", "rmw", "fence"
ACQUIRES = {"acquire", "acq_rel", "seq_cst"}
RELEASES = {"release", "acq_rel", "seq_cst"}
WAITING, HALF, DONE = range(3)


class Step:
    def __init__(self, kind, at=None, order="relaxed", reg=None, value=None, when=None, must=None):
        self.kind, self.at, self.order, self.reg = kind, at, order, reg
        self.value, self.when, self.must = value, when, must
        self.needs = [n for f in (at, value if kind == STORE else None) for n in names(f)]


def names(function):
    return function.__code__.co_varnames[:function.__code__.co_argcount] if callable(function) else ()


def load(reg, at, order="relaxed", when=None):
    return Step(LOAD, at, order, reg, when=when)


def store(at, value, order="relaxed", when=None):
    return Step(STORE, at, order, value=value, when=when)


def rmw(reg, at, change, order="relaxed", when=None, must=None):
    """Loads into reg and stores change(old), nothing if that is None. Waits until must(old)."""
    return Step(RMW, at, order, reg, change, when, must)


def fence(order="seq_cst"):
    """An empty order: no fence."""
    return Step(FENCE, order=order)


def call(function, regs):
    if not callable(function):
        return function
    return function(**{n: regs[n] for n in names(function)})


def known(function, regs):
    return all(n in regs for n in names(function))


def ordered(early, late, half, at):
    """Does `late` wait for `early`, not done yet? half: early's load is done; at: both locations."""
    if early.kind == FENCE or late.kind == FENCE:
        weak = "acquire" in (early.order if early.kind == FENCE else late.order)
        if not early.order or not late.order:
            return False
        return early.kind == FENCE or not weak or early.kind != STORE and not half
    if early.kind != STORE and early.order in ACQUIRES and not half:
        return True
    if early.order == late.order == "seq_cst":
        return True
    return at[0] == at[1] and not (early.kind == STORE and late.kind == LOAD)


class Thread:
    """The state of one thread: of each step, and the registers."""

    def __init__(self, steps, state, regs):
        self.steps, self.state, self.regs = steps, state, regs

    def place(self, i):
        return call(self.steps[i].at, self.regs) if known(self.steps[i].at, self.regs) else None

    def skipped(self, i):
        when = self.steps[i].when
        return known(when, self.regs) and when is not None and not call(when, self.regs)

    def over(self, i):
        return self.state[i] == DONE or self.skipped(i)

    def blocked(self, i, releases):
        step = self.steps[i]
        for e in range(i):
            early = self.steps[e]
            if self.over(e):
                continue
            if releases and step.order in RELEASES and step.kind != FENCE:
                return True
            if ordered(early, step, self.state[e] == HALF, (self.place(e), self.place(i))):
                return True
        return not all(n in self.regs for n in step.needs)

    def forwarded(self, i):
        """The latest earlier store to the same place that is not performed yet."""
        return next((e for e in reversed(range(i)) if not self.over(e) and self.place(e) == self.place(i)
                     and self.steps[e].kind == STORE), None)

    def after(self, i, state, **regs):
        return Thread(self.steps, self.state[:i] + (state,) + self.state[i + 1:], {**self.regs, **regs})

    def moves(self, memory):
        """Yields (thread, change of the memory) for each step that can be performed now."""
        for i, step in enumerate(self.steps):
            if self.over(i):
                continue
            ready = step.when is None or known(step.when, self.regs)
            if step.kind == FENCE:
                if not self.blocked(i, False):
                    yield self.after(i, DONE), {}
            elif step.kind == LOAD and not self.blocked(i, False):
                yield from self.load(i, memory)
            elif step.kind == STORE and ready and not self.blocked(i, True):
                value, count = call(step.value, self.regs), memory[self.place(i)][1] + 1
                yield self.after(i, DONE), {self.place(i): (value, count)}
            elif step.kind == RMW and ready:
                yield from self.rmw(i, memory)

    def load(self, i, memory):
        e = self.forwarded(i)
        if e is None:
            yield self.after(i, DONE, **{self.steps[i].reg: memory[self.place(i)][0]}), {}
        elif all(n in self.regs for n in self.steps[e].needs):
            yield self.after(i, DONE, **{self.steps[i].reg: call(self.steps[e].value, self.regs)}), {}

    def rmw(self, i, memory):
        step = self.steps[i]
        if self.state[i] == WAITING:
            if self.blocked(i, False) or self.forwarded(i) is not None:
                return
            old, count = memory[self.place(i)]
            if step.must and not step.must(old):
                return
            last = step.value(old) is None
            yield self.after(i, DONE if last else HALF, **{step.reg: old, step.reg + "#": count}), {}
        elif not self.blocked(i, True):
            old, count = memory[self.place(i)]
            if count == self.regs[step.reg + "#"]:  # else another came first: that execution is another one
                yield self.after(i, DONE), {self.place(i): (step.value(old), count + 1)}


def executions(memory, *threads):
    """Yields (registers of all threads, memory) at the end of each execution, each result once."""
    begin = tuple(Thread(t, (WAITING,) * len(t), {}) for t in threads)
    todo, seen, ends = [(begin, {k: (v, 0) for k, v in memory.items()})], set(), set()
    while todo:
        state, mem = todo.pop()
        key = (tuple((t.state, tuple(sorted(t.regs.items()))) for t in state), tuple(sorted(mem.items())))
        if key in seen:
            continue
        seen.add(key)
        if all(t.over(i) for t in state for i in range(len(t.steps))):
            regs = {k: v for t in state for k, v in t.regs.items() if not k.endswith("#")}
            values = {k: v for k, (v, _) in mem.items()}
            end = (tuple(sorted(regs.items())), tuple(sorted(values.items())))
            if end not in ends:
                ends.add(end)
                yield regs, values
            continue
        for n, thread in enumerate(state):
            for moved, change in thread.moves(mem):
                todo.append((state[:n] + (moved,) + state[n + 1:], {**mem, **change}))
