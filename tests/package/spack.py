#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Spack's recipe fits the sources: configure knows each option it gives, and what it takes the place of is of no newer
version. Spack itself is not run: a module of the same name notes what the recipe says."""
import os
import re
import subprocess
import sys
import types

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))

said = []


def directive(name):
    return lambda *values, **more: said.append((name, values, more))


class AutotoolsPackage:
    """Answers with both options of a variant."""

    def enable_or_disable(self, name):
        assert name in variants, f"{name} is no variant"
        return [f"--enable-{name}", f"--disable-{name}"]


module = types.ModuleType("spack.package")
module.AutotoolsPackage = AutotoolsPackage
for word in ("license", "version", "variant", "depends_on", "conflicts", "can_splice"):
    setattr(module, word, directive(word))
sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": module})
recipe = {}
with open("packaging/spack/package.py", encoding="utf-8") as text:
    exec(compile(text.read(), "packaging/spack/package.py", "exec"), recipe)

variants = {values[0] for name, values, _ in said if name == "variant"}
versions = {values[0] for name, values, _ in said if name == "version"}
usage = subprocess.run(["./configure", "--help"], capture_output=True, text=True, check=True).stdout
known = set(re.findall(r"--(?:enable|disable)-([a-z]+)", usage))
assert {"verbs", "tls"} <= known and "no" not in known
with open("configure.ac", encoding="utf-8") as text:
    version = re.search(r"AC_INIT\(\[weft\], \[(\d+\.\d+)", text.read()).group(1)


def faults(options, splices):
    """Returns what is wrong with the options for configure, and with [(what is replaced, by which version)]."""
    wrong = [f"configure has no {o}" for o in options if not set(re.findall(r"^--(?:enable|disable)-(\w+)$", o)) & known]
    wrong += [f"{t} is not up to {version}" for t, _ in splices if not t.endswith(f":{version}")]
    return wrong + [f"there is no version {w}" for _, w in splices if w.removeprefix("@") not in versions]


assert len(faults(["--enable-nothing", "--with-tls"], [("libfabric@1:99.9", "@main"), (f"libfabric@1:{version}", "@0")])) == 4

given = recipe["Weft"]().configure_args()
found = faults(given, [(values[0], more["when"]) for name, values, more in said if name == "can_splice"])
for fault in found:
    print(f"packaging/spack/package.py: {fault}")
print(f"{len(given)} options, {len(variants)} variants")
sys.exit(bool(found))
