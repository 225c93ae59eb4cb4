# SPDX-License-Identifier: BSD-2-Clause
"""What the measurements ran on: the machine, and the versions of what was measured."""
import datetime
import glob
import os
import re
import shutil
import subprocess


def read(path):
    try:
        with open(path, encoding="utf-8") as text:
            return text.read().strip()
    except OSError:
        return ""


def first_line(*argv, env=None):
    """Returns the first line a command prints, or "" if it is not installed."""
    if not shutil.which(argv[0]):
        return ""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False,
                          env=dict(os.environ, **(env or {})))
    return done.stdout.strip().partition("\n")[0]


def processor():
    found = re.search(r"^model name\s*: (.*)", read("/proc/cpuinfo"), re.M)
    return found.group(1) if found else os.uname().machine


def caches():
    """Describes the caches of the first core, and which cores share them."""
    texts = []
    for index in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        level, kind, size, shared = (read(f"{index}/{name}") for name in ("level", "type", "size", "shared_cpu_list"))
        texts.append(f"L{level} {kind.lower()} {size} (cores {shared})")
    return ", ".join(texts)


def version_of(path):
    """Returns the version that a libfabric.so.1 tells, and its path."""
    version = first_line("fi_info", "--version", env={"LD_LIBRARY_PATH": os.path.dirname(path)})
    return f"{version.removeprefix('fi_info: ') or 'unknown version'} ({path})"


def facts(root, build, reference, before):
    """Returns pairs of a name and a fact. `build`, `before`: folders; `reference`: the system's libfabric.so.1, or None."""
    ours = os.path.basename(os.path.realpath(os.path.join(build, "libfabric.so.1")))
    commit = first_line("git", "-C", root, "describe", "--always", "--dirty")
    if before:
        other = ("before", os.path.realpath(os.path.join(before, "libfabric.so.1")))
    else:
        other = ("libfabric", version_of(reference) if reference else "not installed")
    return [
        ("date", datetime.datetime.now().astimezone().isoformat(" ", "minutes")),
        ("processor", processor()),
        ("cores", f"{os.cpu_count()}; each pair of processes is pinned to cores 0 and 1; hardware threads of the first core: "
                  + (read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list") or "unknown")),
        ("caches", caches() or "unknown"),
        ("load before", " ".join(f"{load:.2f}" for load in os.getloadavg())),
        ("kernel", " ".join((os.uname().sysname, os.uname().release))),
        ("ptrace_scope", read("/proc/sys/kernel/yama/ptrace_scope") or "this kernel has no such limit"),
        ("compiler", first_line(os.environ.get("CC", "cc"), "--version")),
        ("Weft", f"{ours}, {commit or 'unknown commit'}"),
        other,
        ("UCX", first_line("ucx_info", "-v").removeprefix("# ") or "not installed"),
        ("Open MPI", first_line("mpirun", "--version") or "not installed"),
    ]
