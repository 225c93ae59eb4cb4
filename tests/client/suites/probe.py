# SPDX-License-Identifier: BSD-2-Clause
"""Checks that a client runs over the intended library: its ranks print the one they have loaded."""
import os
import subprocess

SOURCE = "tests/client/mpi_check.c"
LIMIT = 240


def build(suite, root, work):
    program = os.path.join(work, f"check-{suite.name}")
    subprocess.run([suite.compiler(), "-O2", "-w", "-std=gnu11", "-o", program, os.path.join(root, SOURCE)], check=True)
    return program


def loads(suite, world, root, work):
    """Returns None, or the error."""
    command = suite.launch(2) + [build(suite, root, work)] + (["few"] if world.name == "reference" else [])
    done = subprocess.run(["timeout", str(LIMIT)] + command, env=dict(os.environ, **world.env), capture_output=True,
                          text=True, check=False)
    meant = os.path.realpath(os.path.join(world.folder, "libfabric.so.1"))
    if done.stdout.count(f"passed with {meant}\n") == 2:
        return None
    return f"{suite.title} does not run over {meant}:\n{done.stdout[-1000:]}{done.stderr[-1000:]}"
