#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Collectives of eight processes on four hosts, in groups of all, of some, and of one host: with
# shared memory inside hosts and the network between them, and with the network alone.
# TIMEOUT=180
# shellcheck disable=SC2154 # what hosts.bash sets
. "$(dirname "$0")/hosts.bash"
hosts=4 each=2
total=$((hosts * each))
program=$work/hosts_coll
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -Iinclude -o "$program" tests/client/hosts_coll.c "$lib" -pthread ||
	fail "hosts_coll.c does not compile"

# all SETTING: runs all processes.
all() {
	local rank failed='' pids=()
	mkdir "$work/meet"
	for ((rank = 0; rank < total; rank++)); do
		start_on $((rank / each + 1)) env LD_LIBRARY_PATH="$(dirname "$lib")" "$1" timeout -s KILL 60 "$program" \
			"$work/meet" $rank $total $each >"$work/out.$rank" 2>&1
		pids+=("$pid")
	done
	for rank in "${!pids[@]}"; do wait "${pids[rank]}" || failed+=" $rank"; done
	[ -z "$failed" ] || fail "$1: ranks$failed: $(head -n 5 "$work"/out.*)"
	rm -rf "$work/meet"
	echo "$1: $(cat "$work/out.0")"
}

make_hosts $hosts pair
all NOTHING=
all FI_PROVIDER=tcp
