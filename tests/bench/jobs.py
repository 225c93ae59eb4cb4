# SPDX-License-Identifier: BSD-2-Clause
"""How one figure is measured: by a program that prints it, or by the two sides of ucx_perftest.

A job is called with a size and yields pairs: what was measured (None, or a word that the program prints) and the value.
"""
import os
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import time

LIMIT = 90  # seconds for a program
SLOW = 10  # seconds for a program whose cost may be too great to measure
NOT_OFFERED = 77  # exit status
SHARED = "/dev/shm"


class Refused(Exception):
    """No figure: the program failed, or its library does not offer what it measures."""


class Slow(Refused):
    """No end within the limit of time. `printed`: what the program had told before."""

    def __init__(self, seconds, printed=""):
        super().__init__(f"no end within {seconds} s")
        self.printed = printed


def start(argv, env, out=subprocess.PIPE):
    return subprocess.Popen(argv, env=dict(os.environ, **env), stdin=subprocess.DEVNULL, stdout=out, stderr=out, text=True,
                            start_new_session=True)


def end(process):
    """Ends a process and its group. mpirun ends its ranks, which are in other groups, if it is asked to end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def await_group(number):
    """Waits until the last process of a group is gone, which another one than this may have to be told of."""
    for _ in range(500):
        try:
            os.killpg(number, 0)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.01)


def sweep(since):
    """Removes the shared memory that ended processes of the reference have left since then: a gigabyte may be left, and the next
    process of such a number cannot open an endpoint. Their files are named PID:UID:NUMBER."""
    for name in os.listdir(SHARED):
        path = os.path.join(SHARED, name)
        pid = re.fullmatch(r"(\d+):\d+:\d+", name)
        try:
            if pid and not os.path.exists(f"/proc/{pid[1]}") and os.stat(path).st_ctime >= since:
                os.unlink(path)
        except OSError:
            pass  # of another user, or gone


def output(process, seconds=LIMIT):
    """Waits for a process. Returns what it printed."""
    begun = time.time() - 1  # the clock of files is a coarse one
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as late:  # its output is bytes, whatever was asked for
        raise Slow(seconds, (late.output or b"").decode()) from None
    finally:
        end(process)
        if process.returncode:
            await_group(process.pid)
            sweep(begun)
    if process.returncode == NOT_OFFERED:
        raise Refused("not offered: " + err.strip()[-200:])
    if process.returncode:
        raise Refused(f"status {process.returncode}: " + err.strip()[-300:])
    return out


def program(*argv, scale=None, seconds=LIMIT, **env):
    """Returns the job of a program, {} in whose arguments is the size.

    It prints lines "SIZE VALUE" or "WHAT NUMBER VALUE". `scale` makes figures of the values and sizes. Once it has not ended
    within `seconds`, greater sizes are not tried.
    """
    slow = []  # sizes

    def figures(printed, size):
        for line in printed.splitlines():
            words = line.split()
            value = float(words[-1])
            yield words[0] if len(words) > 2 else None, scale(value, size) if scale else value

    def job(size):
        if slow and size >= min(slow):
            raise Slow(seconds)
        try:
            printed = output(start([arg.replace("{}", str(size)) for arg in argv], env), seconds)
        except Slow as late:
            slow.append(size)
            yield from figures(late.printed, size)
            raise
        yield from figures(printed, size)
    return job


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_listener(port, process):
    """Waits until a process listens. A connection instead of this look would be taken for the client's."""
    for _ in range(500):
        with open("/proc/net/tcp", encoding="utf-8") as sockets:
            if any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in sockets):
                return
        if process.poll() is not None:
            break
        time.sleep(0.01)
    raise Refused("ucx_perftest does not listen")


def schedule(size, network, window):
    """Returns (repeats, iterations of each), as pair.h has them: over a network more and shorter repeats.

    There each repeat of ucx_perftest needs 0.1 s to connect anew, so they are fewer than ours.
    """
    steps = ((64, 4096), (16, 65536), (4, 1048576), (1, size)) if network else ((20000, 4096), (4000, 65536), (300, 1048576), (60, size))
    rounds = next(rounds for rounds, most in steps if size <= most)
    repeats = 21 if network else 11
    if window > 1:
        rounds = window if network else rounds // 20 * window
    return repeats, rounds


def perftest_figure(line, size, unit):
    """Reads a line of ucx_perftest's CSV: label, iterations, then latency, MB/s and messages/s, of each the last one "overall"."""
    column = line.split(",")
    rate = float(column[8]) / 1e6
    return {"us": float(column[4]), "M/s": rate, "GB/s": rate * size / 1000}[unit]


def perftest(test, transports, unit, window=1):
    """Returns the job of ucx_perftest on two cores, the receiver on the second, timed as our own programs are.

    The figure is the median of several repeats. `window`: operations outstanding at most, in tests that are no ping-pong.
    """
    def job(size):
        network = transports == "tcp"
        repeats, count = schedule(size, network, window)
        limit = ["-O", str(window)] if test.endswith("_bw") or test in ("ucp_get", "ucp_fadd") else []
        line = " ".join(["repeat", "-t", test, "-s", str(size), "-n", str(count), "-w", str(count if network else count // 10), *limit])
        env = {"UCX_TLS": transports, "UCX_NET_DEVICES": "lo", "UCX_WARN_UNUSED_ENV_VARS": "n"}
        with tempfile.NamedTemporaryFile("w", prefix="ucx.") as batch:
            batch.write((line + "\n") * repeats)
            batch.flush()
            port = free_port()
            argv = ["ucx_perftest", "-p", str(port), "-f", "-v", "-b", batch.name]
            server = start([*argv, "-c", "1"], env, subprocess.DEVNULL)
            try:
                await_listener(port, server)
                out = output(start([*argv, "-c", "0", "127.0.0.1"], env))
            finally:
                end(server)
        values = [perftest_figure(found, size, unit) for found in out.splitlines() if found.startswith("repeat,")]
        if not values:
            raise Refused("ucx_perftest does not offer it")
        yield None, statistics.median(values)
    return job
