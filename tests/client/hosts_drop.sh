#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A host is cut off without a disconnect. Operations of others with it must fail after
# FI_WEFT_PEER_TIMEOUT. After reconnection the same processes must communicate again.
# TIMEOUT=120
# shellcheck disable=SC2154 # what hosts.bash sets
. "$(dirname "$0")/hosts.bash"
program=$work/hosts_drop
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -Iinclude -o "$program" tests/client/hosts_drop.c "$lib" -pthread ||
	fail "hosts_drop.c does not compile"

all_talked() {
	[ -e "$meet/failed.0" ] || [ -e "$meet/talked.0" ] && [ -e "$meet/talked.1" ] && [ -e "$meet/talked.2" ]
}

lost() {
	[ -e "$meet/failed.0" ] || [ -e "$meet/lost.0" ]
}

# cut SETTING OPTION...
cut() {
	local rank pids=() failed='' timeout=(2000 2000 2000)
	[ -z "${2-}" ] || timeout=(2000 30000 30000) # the host that was cut off makes no calls meanwhile
	meet=$work/$1${2-}
	mkdir "$meet"
	for rank in 0 1 2; do
		start_on $((rank + 1)) env LD_LIBRARY_PATH="$BUILD" FI_PROVIDER="$1" FI_WEFT_PEER_TIMEOUT="${timeout[rank]}" \
			timeout -s KILL 50 "$program" "${@:2}" "$meet" $rank 6 >"$work/out.$rank" 2>&1
		pids+=("$pid")
	done
	within 20 all_talked || fail "$*: they do not talk: $(cat "$work"/out.*)"
	drop 2
	touch "$meet/cut.0"
	within 20 lost || fail "$*: nothing happens: $(cat "$work"/out.*)"
	restore 2
	touch "$meet/whole.0"
	for rank in 0 1 2; do wait "${pids[rank]}" || failed+=" $rank"; done
	[ -z "$failed" ] || fail "$*: ranks$failed: $(tail -n 35 "$work"/out.*)"
	echo "$*:" && cat "$work"/out.*
}

make_hosts 3 pair
for provider in weft tcp; do
	cut $provider
	cut $provider -i
done
