# SPDX-License-Identifier: BSD-2-Clause
"""Programs that Open MPI runs over its own transports and over libfabric, one after the other: what they say must be the
same, and the times are shown beside each other.

    beside.py PATTERN COMMAND... -- COMMAND...    the first over Open MPI's own, the second over libfabric

What matches PATTERN is compared. The last line that is printed has the times.
"""
import re
import subprocess
import sys
import time

from engine import Case
from openmpi import OpenMpi, own_transport


class Beside(OpenMpi):
    """A suite of such programs. `pattern`: what to compare."""
    limit = 120

    def how(self, _transport):
        return f"{self.programs}; {' '.join(['mpirun'] + self.options)}, beside Open MPI's own transport"

    def case(self, name, ranks, program, cwd):
        own, ours = self.mpirun(ranks, own_transport()) + program, self.mpirun(ranks) + program
        command = ["python3", __file__, self.pattern] + own + ["--"] + ours
        return Case(name=name, command=command, cwd=cwd, limit=self.limit, judge=judge)


def judge(status, output):
    if status == 0:
        return None
    said = [line for line in output.splitlines() if line.startswith("beside: ")]
    return said[-1][len("beside: "):] if said else f"status {status}"


def run(command, pattern):
    """Returns the seconds it took, its status, what is to be compared, all output."""
    start = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    seconds = time.monotonic() - start
    output = done.stdout.decode("utf-8", "replace")
    return seconds, done.returncode, [found[0] for found in re.finditer(pattern, output, re.M)], output


def main():
    pattern, words = sys.argv[1], sys.argv[2:]
    middle = words.index("--")
    own, status, expected, output = run(words[:middle], pattern)
    if status or not expected:
        print(f"{output}\nbeside: it fails over Open MPI's own transport, too: status {status}")
        return 2
    ours, status, found, output = run(words[middle + 1:], pattern)
    print(output)
    if status:
        print(f"beside: status {status}, where Open MPI's own transport has 0")
    elif found != expected:
        wrong = next((pair for pair in zip(expected, found) if pair[0] != pair[1]), (len(expected), len(found)))
        print(f"beside: over Open MPI's own transport: {wrong[0]}; over libfabric: {wrong[1]}")
    else:
        print(f"seconds: {ours:.2f}, over Open MPI's own transport {own:.2f}")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
