#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Who may include whom. A file of src/ includes from rooms of its own level or below; no transport includes
# another; no header gathers the others. The rules are first shown to catch what breaks them.
set -u
cd "$(dirname "$0")/../.." || exit

# broken_rules ROOT: a line "file: what is wrong" for each include that is not allowed.
broken_rules() {
	# shellcheck disable=SC2016 # awk's own dollars
	(cd "$1" && find src -name '*.[ch]' | sort | xargs awk '
	BEGIN {
		level["base"] = 1
		level["core"] = level["cntr"] = level["atomic"] = 2
		level["xfer"] = 3
		level["coll"] = 4
		level["hw"] = 5
		most = 12	# own headers that one header may include
	}
	FNR == 1 {
		split(FILENAME, at, "/")
		room = at[2]
		transport = at[4] != "" ? at[3] : ""
		own = 0
		if (!(room in level))
			print FILENAME ": " room " is no room of src/"
	}
	/^[ \t]*#[ \t]*include[ \t]*["<]/ {
		quoted = /include[ \t]*"/
		split($0, part, /["<>]/)
		if (quoted && part[2] !~ /\// && part[2] != "config.h")
			print FILENAME ": \"" part[2] "\" does not name its room"
		if (quoted || part[2] ~ /^(base|core|cntr|atomic|xfer|coll|hw)\//)
			judge(part[2])
	}
	function judge(header,  to, n) {
		n = split(header, to, "/")
		if (n < 2 || to[1] == "rdma")
			return
		if (FILENAME ~ /\.h$/ && ++own == most + 1)
			print FILENAME ": includes more than " most " of our headers"
		if (!(to[1] in level))
			print FILENAME ": " header " is in no room of src/"
		else if (level[to[1]] > level[room] && !allowed(header))
			print FILENAME ": " room " may not include " header
		else if (room == "hw" && transport != "" && to[1] == "hw" && n > 2 && to[2] != transport)
			print FILENAME ": transport " transport " may not include " header
	}
	# The objects install the tables of the engine and know the list of transports.
	function allowed(header) {
		if (FILENAME ~ /^src\/(xfer|coll)\// && (header == "hw/link.h" || header == "hw/wire.h"))
			return 1 # the contract between the engine and its transports
		return FILENAME ~ /^src\/core\/[^\/]*\.c$/ && (header == "xfer/xfer.h" || header == "hw/link.h")
	}' /dev/null)
}

fail() {
	echo "includes: $1"
	exit 1
}

# with FILE LINE...: a tree of that one file, judged.
with() {
	local file=$1
	shift
	rm -rf "$tree/src"
	mkdir -p "$tree/$(dirname "$file")"
	printf '#include %s\n' "$@" >"$tree/$file"
	broken_rules "$tree"
}
caught() { [ -n "$(with "$@")" ] || fail "not caught: $*"; }
accepted() { [ -z "$(with "$@")" ] || fail "wrongly caught: $*"; }

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
caught src/base/map.c '"core/cq.h"'
caught src/base/map.c '<core/cq.h>'
caught src/core/cq.h '"xfer/xfer.h"'
caught src/core/cq.c '"xfer/match.h"'
caught src/atomic/op.c '"hw/link.h"'
caught src/xfer/tx.c '"coll/plan.h"'
caught src/hw/shm/shm_tx.c '"hw/tcp/tcp.h"'
caught src/core/cq.c '"ep.h"'
caught src/core/cq.c '"../hw/tcp/tcp.h"'
caught src/misc/all.c '<stdio.h>'
caught src/core/weft.h '"base/a'{1..13}'.h"'
accepted src/core/weft.h '"base/a'{1..12}'.h"'
accepted src/core/cq.c '<stdio.h>' '"config.h"' '<rdma/fabric.h>' '"base/list.h"' '"cntr/cntr.h"'
accepted src/core/ep.c '"xfer/xfer.h"' '"hw/link.h"'
accepted src/hw/shm/shm_tx.c '"hw/shm/shm.h"' '"hw/link.h"' '"xfer/xfer.h"'
accepted src/hw/list.c '"hw/shm/shm.h"' '"hw/tcp/tcp.h"'
accepted src/xfer/tx.c '"hw/wire.h"'
caught src/xfer/tx.c '"hw/shm/shm.h"'

[ -d src ] || fail "no src/ here"
found=$(broken_rules .)
[ -z "$found" ] || fail "broken rules:
$found"
