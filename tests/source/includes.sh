#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Proves that includes follow the layers. A file of src/ includes headers of its own level or below;
# no transport includes another; a header includes few others. The rules are first tested on
# examples that break them.
set -u
cd "$(dirname "$0")/../.." || exit

# broken_rules ROOT: prints "file: fault" for each include that is not allowed.
broken_rules() {
	# shellcheck disable=SC2016 # awk's own dollars
	(cd "$1" && find src -name '*.[ch]' | sort | xargs awk '
	BEGIN {
		level["base"] = 1
		level["atomic"] = level["link"] = 2
		level["info"] = 3
		level["core"] = level["cntr"] = level["hook"] = 4
		level["entry"] = 5
		level["hw"] = 6
		level["xfer"] = 7
		level["coll"] = 8
		level["api"] = 9
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
		if (quoted || part[2] ~ /^(base|atomic|link|info|core|cntr|hook|entry|hw|xfer|coll|api)\//)
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
		else if (level[to[1]] > level[room])
			print FILENAME ": " room " may not include " header
		else if (to[1] == "hw" && room != "hw")
			print FILENAME ": only src/hw names a transport, not " header
		else if (room == "hw" && transport != "" && to[1] == "hw" && n > 2 && to[2] != transport)
			print FILENAME ": transport " transport " may not include " header
		else if (to[1] == "hw" && to[3] == "rails" && at[4] != "rails")
			print FILENAME ": " header " belongs to a folder that a build may leave out"
		else if (to[1] == "hw" && n > 3 && at[5] != "" && to[3] != at[4] && to[3] != "dev" &&
			 !(at[4] == "rails" && to[3] == "rdm"))
			print FILENAME ": " transport "/" at[4] " may not include " header
	}' /dev/null)
}

fail() {
	echo "includes: $1"
	exit 1
}

# with FILE LINE...: makes a tree of this one file and prints its broken rules.
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
caught src/info/hints.c '"core/domain.h"'
caught src/core/cq.h '"xfer/worker.h"'
caught src/core/cq.c '"xfer/msg/match.h"'
caught src/core/cq.c '"entry/tables.h"'
caught src/entry/refuse.h '"xfer/worker.h"'
caught src/link/link.h '"xfer/peer.h"'
caught src/xfer/msg/tx.c '"coll/plan/plan.h"'
caught src/xfer/msg/tx.c '"hw/shm/shm.h"'
caught src/info/resolve.c '"hw/transports.h"'
caught src/xfer/worker.c '"hw/transports.h"'
caught src/hw/shm/shm_tx.c '"xfer/worker.h"'
caught src/hw/shm/shm_tx.c '"hw/tcp/tcp.h"'
caught src/hw/verbs/rc/rc_up.c '"hw/verbs/rdm/verbs.h"'
caught src/hw/verbs/dev/verbs_dev.c '"hw/verbs/rdm/verbs.h"'
caught src/hw/verbs/rdm/verbs_tx.c '"hw/verbs/rails/verbs_rails.h"'
caught src/hw/tcp/tcp_tx.c '"hw/tcp/rails/tcp_rails.h"'
caught src/core/cq.c '"ep.h"'
caught src/core/cq.c '"../hw/tcp/tcp.h"'
caught src/misc/all.c '<stdio.h>'
caught src/core/weft.h '"base/a'{1..13}'.h"'
accepted src/core/weft.h '"base/a'{1..12}'.h"'
accepted src/core/cq.c '<stdio.h>' '"config.h"' '<rdma/fabric.h>' '"base/list.h"' '"cntr/cntr.h"'
accepted src/core/cq.c '"link/engine.h"' '"link/link.h"' '"info/providers.h"'
accepted src/hw/shm/shm_tx.c '"hw/shm/shm.h"' '"link/opener.h"' '"core/mr_view.h"'
accepted src/hw/verbs/rc/rc_up.c '"hw/verbs/rc/rc.h"' '"hw/verbs/dev/verbs_dev.h"'
accepted src/hw/shm/shm_cm.c '"hw/transports.h"'
accepted src/hw/verbs/rails/verbs_rails.c '"hw/verbs/rdm/verbs.h"' '"hw/verbs/rails/verbs_rails.h"'
accepted src/hw/list.c '"hw/shm/shm.h"' '"hw/tcp/tcp.h"'
accepted src/hw/verbs/rc/rc_rma.c '"entry/args.h"'
accepted src/xfer/msg/tx.c '"link/wire.h"' '"xfer/conn/conn.h"'

[ -d src ] || fail "no src/ here"
found=$(broken_rules .)
[ -z "$found" ] || fail "broken rules:
$found"
