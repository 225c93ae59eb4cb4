# SPDX-License-Identifier: BSD-2-Clause
"""The rows of the benchmark: what is measured, of whom, and what is meant to be reached.

docs/BENCH.md defines each row by its name.
"""
import dataclasses
import os
import shutil

from jobs import SLOW, perftest, program
from report import BEFORE, LIMIT, OURS

EVERY = [8, 64, 512, 4096, 16384, 65536, 262144, 1048576, 4194304]
LONG = [65536, 1048576]
SHM, TCP = "self,shm", "tcp"  # of UCX


@dataclasses.dataclass
class Row:
    name: str
    unit: str
    sizes: list
    jobs: dict  # who: job
    times: int = 1  # turns a round: where the machine disturbs much
    words: dict = dataclasses.field(default_factory=dict)  # WHAT the program prints: unit of the row NAME-WHAT
    late: bool = False  # only in the last round, after all others


@dataclasses.dataclass
class Side:
    """A library under the programs: who, the folder of libfabric.so.1, and its provider for each kind of rows."""
    who: str
    folder: str
    providers: dict

    def named(self, kind):
        """Yields (who, provider): the reference has two over TCP, the newer one is named."""
        for provider in self.providers[kind]:
            yield self.who + (" net" if provider == "net" else ""), provider


OUR_PROVIDERS = {"shm": ["weft"], "tcp": ["tcp"], "udp": ["udp"], "group": ["weft"], "rma": ["tcp"], "peers": ["tcp"],
                 "second": []}
# Of 1.17. The reference has no collectives over shared memory. Its new provider reports delivery of writes too early; the
# layered one does not connect hundreds of endpoints within a minute.
REFERENCE_PROVIDERS = {"shm": ["shm"], "tcp": ["tcp", "net"], "udp": ["udp"], "group": ["tcp;ofi_rxm"], "rma": ["tcp"],
                       "peers": ["net"], "second": ["net"]}
# What its providers keep waiting messages and receives in is small unless they are told to; shm fails above twice this.
REFERENCE_LIMITS = {"FI_SHM_RX_SIZE": "16384", "FI_NET_MAX_SAVED": "1000000"}


class Bench:
    """Who is compared, and where the programs are."""

    def __init__(self, work, build, reference, before):
        self.work = work
        self.sides = [Side(OURS, build, OUR_PROVIDERS)]
        if before:
            self.sides.append(Side(BEFORE, before, OUR_PROVIDERS))
        elif reference:
            self.sides.append(Side("libfabric", reference, REFERENCE_PROVIDERS))
        self.rivals = not before  # two builds are compared with nothing else
        self.ucx = self.rivals and shutil.which("ucx_perftest") is not None
        self.hosts = os.geteuid() == 0 and shutil.which("ip") is not None
        self.mpi = shutil.which("mpirun") is not None and shutil.which("mpicc") is not None

    def path(self, name):
        return os.path.join(self.work, name)

    def sided(self, kind, *argv, **how):
        """Returns the jobs of a program on each side. PROVIDER in `argv` is replaced."""
        return {who: program(self.path(argv[0]), *(provider if arg == "PROVIDER" else arg for arg in argv[1:]),
                             LD_LIBRARY_PATH=side.folder, **how)
                for side in self.sides for who, provider in side.named(kind)}

    def limit(self, what, *argv, **how):
        return {f"{LIMIT}: {what}": program(self.path(argv[0]), *argv[1:], **how)} if self.rivals else {}

    def of_ucx(self, *how, **more):
        return {"UCX": perftest(*how, **more)} if self.ucx else {}

    def two_messages(self, provider, *options):
        """The limit of what a target answers: a message there and one back."""
        return self.limit("two messages", "client", *options, provider, "lat", "8", scale=lambda value, _: 2 * value, LD_LIBRARY_PATH=self.sides[0].folder)


def messages(b):
    copies = {**b.limit("two copies", "limit", "copy", "{}"), **b.limit("queue", "limit", "queue", "{}"), **b.limit("CMA", "limit", "cma", "{}")}
    yield Row("shm/latency", "us", EVERY, {**b.sided("shm", "client", "PROVIDER", "lat", "{}"), **b.of_ucx("tag_lat", SHM, "us"), **copies})
    yield Row("shm/latency-inject", "us", [8], b.sided("shm", "client", "-i", "PROVIDER", "lat", "{}"))
    yield Row("shm/latency-safe", "us", [8], b.sided("shm", "client", "-s", "PROVIDER", "lat", "{}"))
    yield Row("shm/rate", "M/s", [8, 4096], {**b.sided("shm", "client", "PROVIDER", "rate", "{}"),
                                             **b.of_ucx("tag_bw", SHM, "M/s", window=64), **b.limit("claims", "limit", "claims")})
    yield Row("shm/rate-inject", "M/s", [8], {**b.sided("shm", "client", "-i", "PROVIDER", "rate", "{}"), **b.limit("claims", "limit", "claims")})
    yield Row("shm/bandwidth", "GB/s", LONG, {**b.sided("shm", "client", "PROVIDER", "bandwidth", "{}"),
                                              **b.of_ucx("tag_bw", SHM, "GB/s", window=64)})
    yield Row("machine/line", "us", [64], b.limit("line", "limit", "line"))


def onesided(b):
    def way(name, *options):
        return b.sided("shm", "onesided", *options, "PROVIDER", name, "{}")

    yield Row("shm/write", "us", EVERY, {**way("write"), **b.limit("process_vm_writev", "limit", "vmwrite", "{}")})
    yield Row("shm/read", "us", EVERY, {**way("read"), **b.of_ucx("ucp_get", SHM, "us"),
                                        **b.limit("process_vm_readv", "limit", "vmread", "{}")})
    yield Row("shm/fetch-add", "us", [8], {**way("fetch_add"), **b.of_ucx("ucp_fadd", SHM, "us"), **b.two_messages("weft")})
    yield from put_and_get(b, "shm", SHM, "shm")
    yield Row("shm/rate-write", "M/s", [8], {**way("inject_write"), **b.limit("ring", "limit", "ring")})
    yield Row("shm/rate-atomic", "M/s", [8], {**way("atomic_sum"), **b.limit("ring", "limit", "ring")})
    yield Row("shm/rate-atomic-inject", "M/s", [8], {**way("atomic_sum", "-i"), **b.limit("ring", "limit", "ring")})
    if b.rivals:
        yield Row("sum/plain", "elements/ns", [32768], {OURS: program(b.path("plain"), "library"), **b.limit("by hand", "plain", "hand")})


def put_and_get(b, name, transports, kind, *options):
    """What ucx_perftest measures of one-sided operations."""
    def way(what, **how):
        return b.sided(kind, "onesided", *options, "PROVIDER", what, "{}", **how)

    def in_bytes(value, size):
        return value * size / 1000

    yield Row(f"{name}/put", "us", [8, 512, 4096, 65536], {**way("put"), **b.of_ucx("ucp_put_lat", transports, "us")})
    for what, stream, test in ("put", "write_stream", "ucp_put_bw"), ("get", "read_stream", "ucp_get"):
        yield Row(f"{name}/{what}-rate", "M/s", [8], {**way(stream), **b.of_ucx(test, transports, "M/s", window=64)})
        limit = b.limit("two halves", "limit", "halves", "{}", scale=lambda value, size: size / value / 1000) if name == "shm" else {}
        yield Row(f"{name}/{what}-bandwidth", "GB/s", LONG, {**way(stream, scale=in_bytes), **b.of_ucx(test, transports, "GB/s", window=64),
                                                             **limit})


def network(b):
    def client(*argv):
        return b.sided("tcp", "client", "-n", "PROVIDER", *argv)

    yield Row("tcp/latency", "us", EVERY, {**client("lat", "{}"), **b.of_ucx("tag_lat", TCP, "us"),
                                           **b.limit("socket", "sockets", "tcp", "{}")}, times=3)
    yield Row("tcp/rate", "M/s", [8], {**client("rate", "{}"), **b.of_ucx("tag_bw", TCP, "M/s", window=64)}, times=3)
    yield Row("tcp/bandwidth", "GB/s", LONG, {**client("bandwidth", "{}"), **b.of_ucx("tag_bw", TCP, "GB/s", window=64),
                                              **b.limit("socket", "sockets", "stream", "{}")}, times=5)
    for name in "write", "read":
        yield Row(f"tcp/{name}", "us", [8, *LONG], {
            **b.sided("rma", "onesided", "-n", "PROVIDER", name, "{}"),
            **(b.of_ucx("ucp_get", TCP, "us") if name == "read" else {})})
    for name in "write-rare", "write-rare-inject":
        yield Row(f"tcp/{name}", "us", [8, 65536, 1048576], b.sided("rma", "onesided", "-n", "PROVIDER", name.replace("-", "_"), "{}"))
    yield from put_and_get(b, "tcp", TCP, "rma", "-n")
    yield Row("udp/latency", "us", [8], {**b.sided("udp", "client", "-nd", "PROVIDER", "lat", "{}"),
                                         **b.limit("socket", "sockets", "udp", "{}")}, times=3)
    yield Row("udp/rate", "M/s", [8, 1024], b.sided("udp", "client", "-ndm", "PROVIDER", "rate", "{}"), times=3)
    yield from secured(b)
    yield from rails(b)
    yield Row("machine/io_uring", "us", [8], b.limit("io_uring", "sockets", "uring", "{}"))
    yield Row("machine/framed", "GB/s", LONG, b.limit("frames of 32 bytes", "sockets", "framed", "{}"))
    yield Row("machine/zerocopy", "GB/s", LONG, b.limit("MSG_ZEROCOPY", "sockets", "zerocopy", "{}"))
    yield from peers(b)


def ours_alone(b, *argv, **env):
    """Returns the jobs of a program on our builds, for what no reference has."""
    return {side.who: program(b.path(argv[0]), *argv[1:], LD_LIBRARY_PATH=side.folder, **env)
            for side in b.sides if side.providers is OUR_PROVIDERS}


def secured(b):
    key = b.path("key")
    with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(os.urandom(32))
    keyed = {"FI_WEFT_AUTH_KEY_FILE": key}
    encrypted = dict(keyed, FI_WEFT_AUTH="encrypt")
    latency, bandwidth = (("client", "-n", "tcp", way, "{}") for way in ("lat", "bandwidth"))
    yield Row("keyed/latency", "us", [8, 4096], {
        **ours_alone(b, *latency, **keyed), **b.limit("no key", *latency, LD_LIBRARY_PATH=b.sides[0].folder)}, times=3)
    yield Row("encrypted/latency", "us", [8, 4096], {
        **ours_alone(b, *latency, **encrypted), **b.limit("OpenSSL", "tls", "tcp", "{}")}, times=3)
    yield Row("encrypted/bandwidth", "GB/s", LONG, {
        **ours_alone(b, *bandwidth, **encrypted), **b.limit("OpenSSL", "tls", "stream", "{}")}, times=3)


def rails(b):
    """Two wires with limits: what they carry together, beside what one does, and a plain socket over each. Needs root."""
    for name, second in ("alike", 1000), ("unequal", 250):
        def over(how, second=second):
            return ("rails", "1000", str(second), how, "{}")

        alone = program(b.path("rails"), *over("1")[1:], LD_LIBRARY_PATH=b.sides[0].folder)
        yield Row(f"rails/{name}", "GB/s", [1048576], {
            **ours_alone(b, *over("4")), **({"one rail": alone} if b.rivals else {}), **b.limit("two sockets", *over("sockets"))})


def peers(b):
    """Thousands of connections come last: closing them keeps the kernel busy for a minute."""
    yield Row("peers/address", "bytes", [100000], b.sided("tcp", "connect", "PROVIDER", "addresses", "{}"), late=True,
              words={"inserting": "us", "address": "bytes"})
    yield Row("peers/mesh", "ms", [500], b.sided("peers", "connect", "PROVIDER", "mesh", "{}", "8"), late=True,
              words={"opening": "ms", "connecting": "ms", "endpoint": "bytes"})
    yield Row("peers/dense", "bytes", [132], b.sided("peers", "connect", "PROVIDER", "mesh", "{}", "65"), late=True,
              words={"connection": "bytes"})


def cost(b):
    """Curves: the size is how many there are. Once, after all other rows but those that leave the kernel busy."""
    def curve(name, sizes, words, *ways, **env):
        jobs = {who: job for kind, *argv in ways for who, job in b.sided(kind, *argv, "{}", seconds=SLOW, **env).items()}
        return Row(f"cost/{name}", "", sizes, jobs, late=True, words=words)

    def times(*words, **more):
        return {**dict.fromkeys(words, "ns"), **more}

    ten = [1, 10, 100, 1000, 10000, 100000]
    for what, words in (("posted", times("order", "reverse", "random", bytes="bytes")), ("any", times("random")), ("masks", times("random")),
                        ("unexpected", times("order", "reverse", "random", bytes="bytes")), ("cancel", times("order", "reverse", "random"))):
        yield curve(what, ten, words, ("shm", "match", "PROVIDER", what), ("second", "match", "-n", "PROVIDER", what), **REFERENCE_LIMITS)
    yield curve("queue", [1, 16, 256], times("entry"), ("shm", "match", "PROVIDER", "entries"), ("second", "match", "-n", "PROVIDER", "entries"))
    yield curve("vector", ten[:5], times("insert", "remove", "known", "lookup"), ("tcp", "tables", "-n", "PROVIDER", "vector"))
    yield curve("region", ten, times("register", "close", "write"), ("shm", "tables", "PROVIDER", "regions"),
                ("second", "tables", "-n", "PROVIDER", "regions"))
    yield curve("counter", [1, 4, 16], times("wake"), ("shm", "tables", "PROVIDER", "waiters"), ("second", "tables", "-n", "PROVIDER", "waiters"))
    yield curve("host", [2, 16, 64, 200], {"all": "ms", "pair": "us", "descriptors": "descriptors", "private": "kB"},
                ("shm", "everybody", "PROVIDER"))
    words = times("sending", "idle", connecting="us", memory="bytes")
    yield curve("shm", ten[:4], words, ("shm", "star", "PROVIDER", "peers"))
    yield curve("tcp", ten[:4], words, ("tcp", "star", "-n", "PROVIDER", "peers"))
    yield curve("unknown", ten[:5], {"first": "us"}, ("peers", "star", "-n", "PROVIDER", "unknown"))


def threads(b):
    """The size is the number of threads."""
    for kind, *options in ("shm",), ("tcp", "-n"):
        for how in "domain", "endpoint", "shared":
            ours = b.sides[0]
            alternating = b.limit("alternating", "threads", *options, "alternate", ours.providers[kind][0], "{}", LD_LIBRARY_PATH=ours.folder)
            sockets = b.limit("sockets", "threads", *options, "sockets", kind, "{}") if kind == "tcp" else {}
            yield Row(f"{kind}/threads-{how}", "M/s", [1, 2],
                      {**b.sided(kind, "threads", *options, how, "PROVIDER", "{}"), **(alternating if how == "shared" else sockets)})


def wake(b):
    yield Row("shm/wake", "us", [8], {**b.sided("shm", "wake", "PROVIDER"), **b.limit("futex", "wake", "futex")}, times=3)
    yield Row("tcp/wake", "us", [8], {**b.sided("tcp", "wake", "-n", "PROVIDER"), **b.limit("epoll", "wake", "epoll")}, times=3)


OUR_HOSTS = [(2, 2), (2, 4), (4, 2), (8, 2)]  # hosts, members of each


def hosts(b):
    """Members on several hosts, which are network namespaces: that takes root."""
    def job(count, each, *argv, **env):
        return program("tests/bench/hosts.sh", str(count), str(each), *argv, **env)

    for count, each in OUR_HOSTS if b.hosts else ():
        for what, sizes in ("barrier", [8]), ("allreduce", [8, *LONG]), ("broadcast", [8, *LONG]):
            jobs = {side.who: job(count, each, b.path("collective"), "weft", what, "{}", LD_LIBRARY_PATH=side.folder)
                    for side in b.sides if side.providers is OUR_PROVIDERS}
            if b.mpi and b.rivals:
                jobs["Open MPI"] = job(count, each, "mpi", *TUNED, b.path("collective_mpi"), what, "{}")
            yield Row(f"hosts/{what}-{count}x{each}", "us", sizes, jobs, times=3)


AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TUNED = ("--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", "eth0", "--mca", "coll", "^han,adapt")
VADER = ("--mca", "pml", "ob1", "--mca", "btl", "self,vader")
OFI = ("--mca", "pml", "cm", "--mca", "mtl", "ofi")


def mpi(b):
    """Open MPI's OFI parts on each side, and its own shared memory."""
    def jobs(what, *run):
        command = (b.path("mpi_rate"), what, "{}")
        found = {side.who: program(*run, "-x", "LD_LIBRARY_PATH=" + side.folder, *OFI, *command, **AS_ROOT) for side in b.sides}
        return {**found, **({"Open MPI": program(*run, *VADER, *command, **AS_ROOT)} if b.rivals else {})}

    if b.mpi:
        pair = ("mpirun", "-n", "2", "--bind-to", "core")
        crowd = ("taskset", "-c", "0,1", "mpirun", "-n", "4", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
        yield Row("mpi/latency", "us", EVERY, jobs("latency", *pair))
        yield Row("mpi/rate", "M/s", [8, 64, 512, 4096], jobs("rate", *pair))
        yield Row("mpi/crowded", "us", [8, 4096, 65536], jobs("latency", *crowd), times=3)


def collectives(b):
    for members in 2, 4, 8:
        crowded = members > (os.cpu_count() or 1)
        bind = ("--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1") if crowded else ("--bind-to", "core")
        for what, sizes in ("barrier", [8]), ("allreduce", [8, *LONG]), ("broadcast", LONG), ("alltoall", LONG):
            jobs = b.sided("group", "collective", "PROVIDER", str(members), what, "{}")
            if b.mpi and b.rivals:
                jobs["Open MPI"] = program("mpirun", "-n", str(members), *bind, *VADER, b.path("collective_mpi"), what, "{}", **AS_ROOT)
            yield Row(f"collective/{what}-{members}", "us", sizes, jobs, times=5)


PARTS = {"messages": messages, "onesided": onesided, "threads": threads, "wake": wake, "cost": cost, "network": network, "mpi": mpi,
         "collectives": collectives, "hosts": hosts}

# (row, size, whose figure ours is divided by or None, bound): a rate is to reach it, a time is not to exceed it.
GOALS = [
    ("shm/fetch-add", 8, LIMIT, 1.1),
    ("shm/rate-write", 8, "libfabric", 2),
    ("shm/rate-atomic", 8, "libfabric", 2),
    ("sum/plain", 32768, LIMIT, 0.7),
    ("tcp/latency", 8, LIMIT, 1.05),
    ("udp/latency", 8, LIMIT, 1.05),
    *(("udp/rate", size, "libfabric", 3) for size in (8, 1024)),
    *(("tcp/bandwidth", size, who, bound) for size in LONG for who, bound in ((LIMIT, 0.97), ("libfabric", 1.3), ("libfabric net", 1.3))),
    *(("keyed/latency", size, LIMIT, 1.02) for size in (8, 4096)),
    *(("encrypted/latency", size, LIMIT, 1.1) for size in (8, 4096)),
    *(("encrypted/bandwidth", size, LIMIT, 1) for size in LONG),
    *((f"rails/{name}", 1048576, LIMIT, 0.95) for name in ("alike", "unequal")),
    ("rails/alike", 1048576, "one rail", 1.9),
    ("peers/address-address", 100000, None, 32),
    ("peers/dense-connection", 132, None, 8192),
    *((f"collective/{what}-{members}", size, who, bound)
      for members in (2, 4, 8) for what, sizes in (("barrier", [8]), ("allreduce", [8, *LONG]), ("broadcast", LONG), ("alltoall", LONG))
      for size in sizes for who, bound in (("Open MPI", 1), ("libfabric", 0.5))),
    *((f"hosts/{what}-{count}x{each}", size, "Open MPI", 1) for count, each in OUR_HOSTS
      for what, sizes in (("barrier", [8]), ("allreduce", [8, *LONG]), ("broadcast", [8, *LONG])) for size in sizes),
]
