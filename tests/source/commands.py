#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that every command in README.md and CONTRIBUTING.md works.

Runs each command here, or checks that the test named in RUN_BY, which runs the command, exists.

A command is a line of an indented block, or inline code that begins with a program or a setting.
A command that no rule matches fails the test. TIMEOUT=120
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

root = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
os.chdir(root)
build = os.path.realpath(os.environ.get("BUILD", "build"))

PROGRAMS = r"make|cc|man|mpirun|mpiexec|export|ulimit|\./configure|build/bin/\w+"
SETTING = r"[A-Z][A-Z_]*=[^\s`]+"
INLINE = re.compile(rf"`((?:{SETTING} )*(?:{PROGRAMS})(?: [^`]*)?|{SETTING}(?: [^`]*)?)`")
BLOCK = re.compile(r"^    (\S.*)$", re.M)

# Commands, by their beginning, that another test runs in full: tests/DIR/NAME.
RUN_BY = {
    r"make (check|fast)$": "this run itself",
    r"\./configure --prefix=\S+ && make && make install$": "tests/client/install.sh",
    r"export PKG_CONFIG_PATH=": "tests/client/install.sh",
    r"cc program.c": "tests/client/install.sh",
    r"LD_LIBRARY_PATH=\S+ mpiexec ": "tests/client/mpich.sh",
    r"LD_LIBRARY_PATH=\S+ mpirun ": "tests/client/openmpi.sh",
    r"MPICH=build make t/client_mpich$": "tests/client/mpich.sh",
}
# Goals that take too long here, or need what a host may lack: only checked to exist.
GOALS = ("demo", "check", "check-verbs", "check-aarch64", "check-packages", "check-clients", "check-field", "bench-verbs", "lab-shell", "bench", "asan", "tsan", "valgrind",
         "coverage", "format", "lint", "html", "install", "help", "fast", "deb", "rpm")


def commands(text):
    inline = [" ".join(c.split()) for c in INLINE.findall(re.sub(r"^    .*$", "", text, flags=re.M))]
    blocks = [re.sub(r"\s+#.*", "", c) for c in BLOCK.findall(text)]
    return sorted(set(blocks + inline))


def is_test(name):
    """Returns whether `make t/NAME` has a test."""
    folder, _, rest = name.partition("_")
    return any(glob.glob(p) for p in (f"tests/unit/{name}.c", f"tests/{folder}/{rest}.*"))


def run(command, **more):
    env = dict(os.environ, PWD=root, **more)
    done = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True, timeout=60, check=False)
    return None if done.returncode == 0 else f"status {done.returncode}: {done.stderr.strip()[-200:]}"


def configure(option):
    with tempfile.TemporaryDirectory() as there:
        for part in ("config.mk.in", "config.h.in", "configure", "pkgconfig/libfabric.pc.in", "libfabric.map"):
            os.makedirs(os.path.dirname(os.path.join(there, part)), exist_ok=True)
            with open(part, encoding="utf-8") as source, open(os.path.join(there, part), "w", encoding="utf-8") as copy:
                copy.write(source.read())
        return run(f"cd {there} && sh ./configure -q {option} >/dev/null")


def judge_make(words):
    words = [w for w in words if "=" not in w]
    for goal in words[1:]:
        name = goal.removeprefix("t/")
        if goal != name:
            if "NAME" not in name and not is_test(name):
                return f"there is no test {name}"
        elif goal not in GOALS or not re.search(rf"^make (\S+ )*{goal}\s", help_text, re.M):
            return f"make help knows no {goal}"
    return None


def judge(command):
    """Returns None if the command works, else the fault."""
    for pattern, test in RUN_BY.items():
        if re.match(pattern, command):
            return None if test == "this run itself" or os.path.exists(test) else f"{test} is gone"
    if re.fullmatch(r"LD_(LIBRARY_PATH|PRELOAD)=\S+ \./program", command):
        return run(command.replace("$PWD/build", build).replace("./program", f"{build}/bin/fi_info -e"))
    if command == "make demo":
        return run(f"tests/setup.sh build && BUILD={build} examples/demo.sh")
    words = shlex.split(command.replace("'", ""))
    while words and re.match(r"[A-Z_]+=", words[0]):
        words.pop(0)
    if not words:
        name = command.split("=")[0]
        return None if name in settings else f"there is no setting {name}"
    if words[0] == "make":
        return judge_make(words)
    if words[0].startswith("build/bin/"):
        return run(command.replace("build/bin", f"{build}/bin"))
    if words[0] == "./configure":
        return configure(" ".join(words[1:]))
    if words[0] == "man":
        return None if os.path.exists(words[1]) else f"there is no {words[1]}"
    if words[0] == "ulimit":
        return run(command)
    return "no rule of this test knows it"


help_text = subprocess.run(["make", "-s", "help"], capture_output=True, text=True, check=True).stdout
with open("src/base/env.h", encoding="utf-8") as rows:
    settings = set(re.findall(r'"(FI_[A-Z_]+)"', rows.read())) | {"LAB_CACHE", "LAB_MIRROR", "FIELD", "FIELD_MIRROR", "STEPS", "SLOWER", "FEWER", "MORE",
                                                                   "HW", "EP", "MPICH", "MPIR_CVAR_NOLOCAL", "TIMEOUT",
                                                                   "KERNELS"}

assert commands("    make t/no_such_test\n`make help`") == ["make help", "make t/no_such_test"]
assert judge("make t/no_such_test") and judge("make no-such-goal") and judge("frobnicate --all")
assert judge("FI_NO_SUCH=1") and judge("build/bin/fi_info --no-such-option")

failed = 0
known = 0
for page in ("README.md", "CONTRIBUTING.md"):
    with open(page, encoding="utf-8") as text:
        for line in commands(text.read()):
            wrong = judge(line)
            known += 1
            if wrong:
                print(f"{page}: `{line}`: {wrong}")
                failed = 1
print(f"{known} commands")
sys.exit(failed)
