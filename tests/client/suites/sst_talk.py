#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A writer and a reader of ADIOS2's SST engine, as two processes; the reader checks all data and prints "STEPS right".

    sst_talk.py TRANSPORT    SST's DataTransport: rdma, WAN
"""
import os
import subprocess
import sys
import tempfile

import numpy
from mpi4py import MPI

STEPS = 5
COUNT = 300000  # doubles of a step


def values(step):
    return numpy.arange(COUNT, dtype=numpy.float64) * (step + 1) + 0.5


def opened(api, transport, mode):
    """Returns an engine, and what has to live as long."""
    adios = api.ADIOS(MPI.COMM_WORLD)
    io = adios.DeclareIO("talk")
    io.SetEngine("SST")
    io.SetParameters({"DataTransport": transport, "RendezvousReaderCount": "1", "OpenTimeoutSecs": "30"})
    if mode == api.Mode.Write:
        io.DefineVariable("x", values(0), [COUNT], [0], [COUNT], True)
    return io.Open("talk", mode), io, adios


def write(api, transport):
    engine, io, _adios = opened(api, transport, api.Mode.Write)
    for step in range(STEPS):
        out = values(step)
        engine.BeginStep()
        engine.Put(io.InquireVariable("x"), out, api.Mode.Sync)
        engine.EndStep()
    engine.Close()


def read(api, transport):
    engine, io, _adios = opened(api, transport, api.Mode.Read)
    seen = 0
    while engine.BeginStep(api.StepMode.Read, 30.0) == api.StepStatus.OK:
        got = numpy.zeros(COUNT, numpy.float64)
        engine.Get(io.InquireVariable("x"), got, api.Mode.Sync)
        engine.EndStep()
        if not numpy.array_equal(got, values(seen)):
            sys.exit(f"step {seen} is wrong: {got}")
        seen += 1
    engine.Close()
    print(f"{seen} right", flush=True)


def main():
    os.environ["ADIOS2_ALWAYS_USE_MPI"] = "1"  # its other bindings are another package
    import adios2.bindings as api

    if len(sys.argv) == 3:
        return {"write": write, "read": read}[sys.argv[2]](api, sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        ends = [subprocess.Popen([sys.executable, __file__, sys.argv[1], end], cwd=folder) for end in ("write", "read")]
        return max(abs(end.wait()) for end in ends)


if __name__ == "__main__":
    sys.exit(main())
