#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sweeps over lengths from 1 byte to 4 MiB; all data is checked. Prints "KIND LENGTH right" for each.

    mpi_sweep.py latency|bandwidth|collectives|rma
"""
import sys

import numpy
from mpi4py import MPI

LENGTHS = [1 << n for n in range(0, 23, 2)]
WINDOW = 16  # messages on their way at a time
world = MPI.COMM_WORLD
me, all_of_us = world.rank, world.size


def pattern(length, seed):
    return (numpy.arange(length, dtype=numpy.uint32) * 2654435761 + seed * 97 >> 8).astype(numpy.uint8)


def rounds(length):
    return 3 if length >= 1 << 20 else 50


def check(got, length, seed):
    if not numpy.array_equal(got[:length], pattern(length, seed)):
        print(f"rank {me}: {length} bytes with seed {seed} are wrong", flush=True)
        world.Abort(1)


def latency(length):
    """Ping-pong."""
    got = numpy.zeros(length, numpy.uint8)
    for turn in range(rounds(length)):
        for sender in (0, 1):
            if me == sender:
                world.Send(pattern(length, turn), 1 - me, turn)
            else:
                world.Recv(got, 1 - me, turn)
                check(got, length, turn)


def bandwidth(length):
    """A window of messages, then an answer."""
    got = numpy.zeros((WINDOW, length), numpy.uint8)
    out = [pattern(length, i) for i in range(WINDOW)]
    for _ in range(rounds(length) // 3):
        got[:] = 0
        if me == 0:
            MPI.Request.Waitall([world.Isend(out[i], 1, i) for i in range(WINDOW)])
            world.Recv(got[0][:1], 1)
        else:
            MPI.Request.Waitall([world.Irecv(got[i], 0, i) for i in range(WINDOW)])
            for i in range(WINDOW):
                check(got[i], length, i)
            world.Send(out[0][:1], 0)


def collectives(length):
    """Broadcast, gather to all, exchange of all with all, sum."""
    ours, theirs = pattern(length, me), numpy.zeros((all_of_us, length), numpy.uint8)
    for root in range(all_of_us):
        got = pattern(length, 7) if me == root else numpy.zeros(length, numpy.uint8)
        world.Bcast(got, root)
        check(got, length, 7)
    world.Allgather(ours, theirs)
    for i in range(all_of_us):
        check(theirs[i], length, i)
    out = numpy.concatenate([pattern(length, me * all_of_us + i) for i in range(all_of_us)])
    world.Alltoall(out, theirs)
    for i in range(all_of_us):
        check(theirs[i], length, i * all_of_us + me)
    total = numpy.zeros(length, numpy.uint8)
    world.Allreduce(ours, total, MPI.BXOR)
    expected = numpy.bitwise_xor.reduce([pattern(length, i) for i in range(all_of_us)])
    if not numpy.array_equal(total, expected):
        print(f"rank {me}: a reduction of {length} bytes is wrong", flush=True)
        world.Abort(1)


def rma(length):
    """Writes into the other's window and reads it back, whole and every second byte, in passive epochs; then a sum."""
    memory = numpy.zeros(length + 8, numpy.uint8)
    window = MPI.Win.Create(memory, 1, comm=world)
    got, peer = numpy.zeros(length, numpy.uint8), (me + 1) % all_of_us
    strided = MPI.BYTE.Create_vector((length + 1) // 2, 1, 2).Commit()
    half = numpy.zeros((length + 1) // 2, numpy.uint8)
    out, ones = pattern(length, me), numpy.ones(8, numpy.uint8)  # which stay until they have been sent
    window.Lock(peer)
    window.Put(out, peer)
    window.Flush(peer)
    window.Get(got, peer)
    window.Get([half, half.size, MPI.BYTE], peer, [0, 1, strided])
    window.Unlock(peer)
    check(got, length, me)
    if not numpy.array_equal(half, pattern(length, me)[::2]):
        world.Abort(1)
    world.Barrier()
    check(memory, length, (me - 1) % all_of_us)
    window.Fence()
    for rank in range(all_of_us):
        window.Accumulate([ones, MPI.BYTE], rank, [length, 8, MPI.BYTE], MPI.BXOR)
    window.Fence()
    if memory[length] != all_of_us % 2:
        world.Abort(1)
    strided.Free()
    window.Free()


for size in LENGTHS:
    {"latency": latency, "bandwidth": bandwidth, "collectives": collectives, "rma": rma}[sys.argv[1]](size)
    world.Barrier()
    if me == 0:
        print(f"{sys.argv[1]} {size} right", flush=True)
