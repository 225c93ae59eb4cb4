#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""EasyBuild's recipe fits the sources: it has their version in its text and in its name, configure knows each option, the archive
is the one of `make dist`, and `make install` installs what the recipe looks for. EasyBuild itself is not run."""
import glob
import os
import re
import subprocess
import sys
import tempfile

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=50).stdout


known = set(re.findall(r"--(?:enable|disable)-([a-z]+)", output("./configure", "--help")))
with open("configure.ac", encoding="utf-8") as text:
    version = re.search(r"AC_INIT\(\[weft\], \[([\d.]+)", text.read()).group(1)


def faults(path, recipe, root):
    """Returns what is wrong with a recipe, whose files are to be found in the folder root."""
    chain = recipe["toolchain"]
    name = f"{recipe['name']}-{version}-{chain['name']}-{chain['version']}.eb"
    wrong = [] if os.path.basename(path) == name else [f"its name is not {name}"]
    if [s % recipe for s in recipe["sources"]] != [f"weft-{version}.tar.gz"]:
        wrong.append(f"the archive is weft-{version}.tar.gz")
    wrong += [f"configure has no {o}" for o in recipe["configopts"].split()
              if not set(re.findall(r"^--(?:enable|disable)-(\w+)$", o)) & known]
    looked_for = recipe["sanity_check_paths"]
    wrong += [f"{p} is not installed" for p in looked_for["files"] if not os.path.isfile(f"{root}/{p}")]
    return wrong + [f"{p} is not installed" for p in looked_for["dirs"] if not os.path.isdir(f"{root}/{p}")]


assert len(faults("Weft-0.eb", {"name": "Weft", "version": "0", "toolchain": {"name": "x", "version": "1"}, "sources": ["weft.tar.gz"],
                                "configopts": "--enable-nothing --with-tls",
                                "sanity_check_paths": {"files": ["no"], "dirs": ["never"]}}, ".")) == 6

(path,) = glob.glob("packaging/easybuild/*.eb")
recipe = {"SYSTEM": "system", "SHLIB_EXT": "so"}
with open(path, encoding="utf-8") as text:
    exec(compile(text.read(), path, "exec"), recipe)
with tempfile.TemporaryDirectory() as root:
    output("make", "-s", "install", f"BUILD={os.environ.get('BUILD', 'build')}", f"prefix={root}", "DESTDIR=")
    found = faults(path, recipe, root)
for fault in found:
    print(f"{path}: {fault}")
print(f"{len(recipe['sanity_check_paths']['files'])} files")
sys.exit(bool(found))
