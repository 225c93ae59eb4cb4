# SPDX-License-Identifier: BSD-2-Clause
"""libfabric's own programs, as the distribution built them: fi_info, and fi_pingpong between two processes."""
import re

from engine import Case
from openmpi import package_version

# Provider, kind of endpoint, kinds of messages. WEFT becomes what selects the reference when that is run.
PAIRS = [("WEFT", "rdm", ("msg", "tagged")), ("tcp", "rdm", ("msg", "tagged")), ("shm", "rdm", ("msg", "tagged")),
         ("tcp", "msg", ("msg",)), ("udp", "dgram", ("msg",))]
LIMIT = 60
TALK = """port=$((20000 + $$ % 20000))
/usr/bin/fi_pingpong -B $port $* & server=$!
for try in 1 2 3 4 5 6 7 8 9 10; do
	grep -qi "^ *[0-9]*: [0-9A-F]*:$(printf %04X $port) [0-9A-F:]* 0A" /proc/net/tcp /proc/net/tcp6 && break
	sleep 0.3
done
/usr/bin/fi_pingpong -P $port $* 127.0.0.1 && wait $server"""


def judge_info(status, output):
    if status:
        return f"status {status}"
    return None if re.search(r"^provider: |^# FI_|prov_name: |^ +version: ", output, re.M) else "it shows nothing"


def judge_pingpong(status, output):
    if status:
        return f"status {status}"
    return None if re.search(r"^\d+[kmg]? +\d", output, re.M) else "it shows no figures"


class Tools:
    name = "tools"
    title = "fi_info and fi_pingpong"

    def __init__(self, build, env):
        self.build = build
        self.env = env

    def version(self):
        return package_version("libfabric-bin")

    def how(self, _transport):
        return "the distribution's package, two processes of one host, over the provider that the program's name ends with"

    def transports(self):
        return ["weft"]

    def world_env(self, folder, provider):
        return {"LD_LIBRARY_PATH": folder, "WEFT": provider}

    def prepare(self, _root):
        return None if self.version() else "not installed: libfabric-bin"

    def cases(self):
        for words in "", "-v", "-e", "-l", "-p $WEFT -t FI_EP_RDM -c 'FI_MSG|FI_TAGGED'":
            yield Case(name=f"fi_info {words}".strip().replace("$WEFT", "weft"), command=["sh", "-c", f"/usr/bin/fi_info {words}"],
                       cwd=self.build, limit=LIMIT, judge=judge_info)
        for provider, kind, modes in PAIRS:
            for mode in modes:
                name = f"fi_pingpong {mode} {kind} {provider.lower()}"
                more = "" if kind == "dgram" else "-c"
                words = f"-p ${{{provider}-{provider}}} -e {kind} -m {mode} -S all -I 100 {more}"
                yield Case(name=name, command=["sh", "-c", f"set -- {words}\n{TALK}"], cwd=self.build, limit=LIMIT,
                           judge=judge_pingpong)
