# SPDX-License-Identifier: BSD-2-Clause
"""Proves that a client runs over the library it is meant to: its ranks say which one they have loaded."""
import os
import subprocess

SOURCE = "tests/client/mpi_check.c"
LIMIT = 240


def build(suite, root, work):
    program = os.path.join(work, f"check-{suite.name}")
    subprocess.run([suite.compiler(), "-O2", "-w", "-std=gnu11", "-o", program, os.path.join(root, SOURCE)], check=True)
    return program


def loads(suite, world, root, work):
    """None, or what is wrong."""
    command = suite.launch(2) + [build(suite, root, work)]
    done = subprocess.run(["timeout", str(LIMIT)] + command, env=dict(os.environ, **world.env), capture_output=True,
                          text=True, check=False)
    meant = os.path.realpath(os.path.join(world.folder, "libfabric.so.1"))
    if done.stdout.count(f"passed with {meant}\n") == 2:
        return None
    return f"{suite.title} does not run over {meant}:\n{done.stdout[-1000:]}{done.stderr[-1000:]}"
