#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Parts of MPI that go through libfabric, each by itself; all data is checked. Prints "PART right" at the end.

    mpi_parts.py threads|spawn|persistent|probes|types|cancel|nonblocking|between|partitioned|windows|locks|posts
"""
import sys
import threading

import mpi4py

mpi4py.rc.thread_level = "multiple"
import numpy
from mpi4py import MPI

LENGTHS = (0, 1, 8, 1000, 5000, 70000, 1 << 20)
THREADS = 4
world = MPI.COMM_WORLD
me, all_of_us = world.rank, world.size
after, before = (me + 1) % all_of_us, (me - 1) % all_of_us


def pattern(length, seed):
    return (numpy.arange(length, dtype=numpy.uint32) * 2654435761 + seed * 97 >> 8).astype(numpy.uint8)


def check(what, got, expected):
    if not numpy.array_equal(got, expected):
        print(f"rank {me}: {what} is wrong: {got}, not {expected}", flush=True)
        world.Abort(1)


def threads():
    """Each thread exchanges messages with the same thread of the next rank, at the same time."""
    check("the level of threads", MPI.Query_thread(), MPI.THREAD_MULTIPLE)
    comms = [world.Dup() for _ in range(THREADS)]
    ended = [0] * THREADS

    def one(number):
        for turn in range(100):
            for length in LENGTHS[:6]:
                got = numpy.zeros(length, numpy.uint8)
                comms[number].Sendrecv(pattern(length, me + turn + number), after, turn, got, before, turn)
                check(f"message of thread {number}", got, pattern(length, before + turn + number))
        ended[number] = 1

    running = [threading.Thread(target=one, args=(number,)) for number in range(THREADS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    check("threads that ended", sum(ended), THREADS)
    for comm in comms:
        comm.Free()


def spawn():
    """Starts processes, twice, talks to them and joins them."""
    for turn in range(2):
        children = world.Spawn(sys.executable, [__file__, "spawned"], 2)
        check("number of children", children.remote_size, 2)
        if me == 0:
            for child in range(2):
                for length in LENGTHS:
                    got = numpy.zeros(length, numpy.uint8)
                    children.Send(pattern(length, child + turn), child, length % 1000)
                    children.Recv(got, child, length % 1000)
                    check("answer of a child", got, pattern(length, child + turn))
        merged = children.Merge(False)
        check("sum with children", merged.allreduce(1), all_of_us + 2)
        merged.Free()
        children.Disconnect()


def spawned():
    parent = MPI.Comm.Get_parent()
    for length in LENGTHS:
        got = numpy.zeros(length, numpy.uint8)
        parent.Recv(got, 0, length % 1000)
        parent.Send(got, 0, length % 1000)
    merged = parent.Merge(True)
    merged.allreduce(1)
    merged.Free()
    parent.Disconnect()


def persistent():
    """Requests that are started again, of each kind of sending."""
    for length in LENGTHS:
        out, got = numpy.zeros(length, numpy.uint8), numpy.zeros(length, numpy.uint8)
        for make in world.Send_init, world.Ssend_init:
            requests = [world.Recv_init(got, before, 5), make(out, after, 5)]
            for turn in range(10):
                out[:] = pattern(length, me + turn)
                MPI.Prequest.Startall(requests)
                MPI.Request.Waitall(requests)
                check("persistent message", got, pattern(length, before + turn))
            for request in requests:
                request.Free()


def probes():
    """Messages that are probed for and claimed, from any source."""
    for length in LENGTHS:
        request = world.Isend(pattern(length, me), after, 9)
        status = MPI.Status()
        message = world.Mprobe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        check("probed source, tag, length", (status.source, status.tag, status.Get_count(MPI.BYTE)), (before, 9, length))
        got = numpy.zeros(length, numpy.uint8)
        message.Recv(got)
        check("claimed message", got, pattern(length, before))
        request.Wait()
        request = world.Issend(pattern(length, me), after, 11)
        while not world.Iprobe(before, 11):
            pass
        world.Recv(got, before, 11)
        check("probed message", got, pattern(length, before))
        request.Wait()


def types():
    """Every third number, and a structure with holes."""
    for count in (1, 10, 1000, 100000):
        strided = MPI.INT.Create_vector(count, 1, 3).Commit()
        out, got = numpy.arange(3 * count, dtype=numpy.int32) + me, numpy.zeros(3 * count, numpy.int32)
        world.Sendrecv([out, 1, strided], after, 3, [got, 1, strided], before, 3)
        expected = numpy.zeros(3 * count, numpy.int32)
        expected[::3] = (numpy.arange(3 * count, dtype=numpy.int32) + before)[::3]
        check("strided message", got, expected)
        packed = numpy.zeros(count, numpy.int32)
        world.Sendrecv([out, 1, strided], after, 4, packed, before, 4)
        check("gathered message", packed, expected[::3])
        strided.Free()


def cancel():
    """Receives that are cancelled, beside others that are not."""
    for length in LENGTHS[1:]:
        got = numpy.zeros(length, numpy.uint8)
        vain, due = world.Irecv(numpy.zeros(8, numpy.uint8), before, 77), world.Irecv(got, before, 78)
        world.Barrier()
        vain.Cancel()
        status = MPI.Status()
        vain.Wait(status)
        check("cancelled", status.Is_cancelled(), True)
        world.Send(pattern(length, me), after, 78)
        due.Wait()
        check("message beside it", got, pattern(length, before))


def nonblocking():
    """Collectives on their way at the same time."""
    for length in LENGTHS[1:]:
        ours, everyone = pattern(length, me), numpy.zeros((all_of_us, length), numpy.uint8)
        wide = ours.astype(numpy.int32)
        told, total, most = pattern(length, 3), numpy.zeros(length, numpy.int32), numpy.zeros(length, numpy.uint8)
        if me:
            told[:] = 0
        requests = [world.Iallgather(ours, everyone), world.Ibcast(told, 0),
                    world.Iallreduce(wide, total), world.Iallreduce(ours, most, MPI.MAX),
                    world.Ibarrier()]
        MPI.Request.Waitall(requests)
        expected = numpy.array([pattern(length, rank) for rank in range(all_of_us)])
        check("iallgather", everyone, expected)
        check("ibcast", told, pattern(length, 3))
        check("sum", total, expected.sum(0, dtype=numpy.int32))
        check("maximum", most, expected.max(0))


def between():
    """Two groups, and communicators made by MPI_Comm_split."""
    side = me % 2
    ours = world.Split(side, me)
    both = ours.Create_intercomm(0, world, 1 - side)
    peer = min(ours.rank, both.remote_size - 1)
    for length in LENGTHS:
        got = numpy.zeros(length, numpy.uint8)
        if ours.rank == peer and ours.rank < both.remote_size:
            both.Sendrecv(pattern(length, side), peer, 1, got, peer, 1)
            check("message of the other side", got, pattern(length, 1 - side))
    check("sum over the other side", both.allreduce(me), sum(rank for rank in range(all_of_us) if rank % 2 != side))
    both.Free()
    ours.Free()


def partitioned():
    """Parts that become ready in any order."""
    parts, length = 8, 4096
    out, got = numpy.zeros(parts * length, numpy.uint8), numpy.zeros(parts * length, numpy.uint8)
    requests = [world.Precv_init(got, parts, before, 2), world.Psend_init(out, parts, after, 2)]
    for turn in range(5):
        out[:] = pattern(parts * length, me + turn)
        MPI.Prequest.Startall(requests)
        for part in reversed(range(parts)):
            requests[1].Pready(part)
        MPI.Request.Waitall(requests)
        check("parts", got, pattern(parts * length, before + turn))
    for request in requests:
        request.Free()


def windows():
    """Writes, reads and sums between fences, over memory given and allocated."""
    for make in (lambda: MPI.Win.Create(numpy.zeros(1 << 16, numpy.int64), 8, comm=world),
                 lambda: MPI.Win.Allocate(8 << 16, 8, comm=world)):
        window = make()
        memory = numpy.frombuffer(window.tomemory(), numpy.int64)
        out, more = numpy.arange(1000) + me, numpy.full(50, me + 1)
        memory[:] = 0
        window.Fence()
        window.Put(out, after, 10)
        window.Fence()
        check("written", memory[10:1010], numpy.arange(1000) + before)
        got = numpy.zeros(1000, numpy.int64)
        window.Get(got, after, 10)
        window.Fence()
        check("read", got, numpy.arange(1000) + me)
        for rank in range(all_of_us):
            window.Accumulate(more, rank, 5000)
        window.Fence()
        check("sums", memory[5000:5050], numpy.full(50, all_of_us * (all_of_us + 1) // 2))
        window.Free()


def locks():
    """A counter that all fetch and add to, a lock by compare-and-swap, in passive epochs."""
    window = MPI.Win.Allocate(8 * 16 if me == 0 else 0, 8, comm=world)
    if me == 0:
        numpy.frombuffer(window.tomemory(), numpy.int64)[:] = 0
    world.Barrier()
    one, got, seen, zero = numpy.ones(1, numpy.int64), numpy.zeros(1, numpy.int64), [], numpy.zeros(1, numpy.int64)
    window.Lock_all()
    for _ in range(100):
        window.Fetch_and_op(one, got, 0, 0)
        window.Flush(0)
        seen.append(int(got[0]))
    for _ in range(10):
        while True:
            window.Compare_and_swap(one, zero, got, 0, 1)
            window.Flush(0)
            if got[0] == 0:
                break
        window.Get(got, 0, 2)
        window.Flush(0)
        got += 1
        window.Put(got, 0, 2)
        window.Flush(0)
        window.Fetch_and_op(zero, got, 0, 1, MPI.REPLACE)
        window.Flush(0)
    world.Barrier()
    window.Get(got, 0, 2)
    window.Flush(0)
    check("counted under the lock", int(got[0]), 10 * all_of_us)
    window.Unlock_all()
    check("numbers fetched", sorted(sum(world.allgather(seen), [])), list(range(100 * all_of_us)))
    window.Free()


def posts():
    """Epochs between neighbours: post, start, complete, wait."""
    memory = numpy.zeros(5000, numpy.uint8)
    window = MPI.Win.Create(memory, 1, comm=world)
    group = world.Get_group()
    to, source = group.Incl([after]), group.Incl([before])
    for turn in range(50):
        window.Post(source)
        window.Start(to)
        out = pattern(5000, me + turn)
        window.Put(out, after)
        window.Complete()
        window.Wait()
        check("written in an epoch", memory, pattern(5000, before + turn))
    window.Free()


PART = sys.argv[1]
{each.__name__: each for each in (threads, spawn, spawned, persistent, probes, types, cancel, nonblocking, between, partitioned,
                                  windows, locks, posts)}[PART]()
if PART != "spawned":
    world.Barrier()
    if me == 0:
        print(f"{PART} right", flush=True)
