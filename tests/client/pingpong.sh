#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The distribution's fi_info and fi_pingpong run on this library.
# TIMEOUT=120
. "$(dirname "$0")/ours.bash"
info=/usr/bin/fi_info pingpong=/usr/bin/fi_pingpong
need $info $pingpong pgrep

listed() {
	"${setting[@]}" timeout 10 $info "$@" >"$work/info" 2>&1 || fail "fi_info $*: $(cat "$work/info")"
}

for way in LD_LIBRARY_PATH="$BUILD" LD_PRELOAD="$lib"; do
	setting=(env "$way")
	listed
	[ "$(sed -n '1s/^provider: //p' "$work/info")" = weft ] || fail "the first entry is: $(head -n 1 "$work/info")"
	listed -v
	listed -e
	grep -q '^# FI_LOG_LEVEL' "$work/info" || fail "fi_info -e does not know FI_LOG_LEVEL"
	for provider in weft shm; do
		listed -p $provider -t FI_EP_RDM -c 'FI_MSG|FI_TAGGED'
		for mode in msg tagged; do
			play $pingpong -p $provider -e rdm -m $mode -S all -I 20 -c
			[ "$(grep -c '=20 ' "$work/client")" -ge 6 ] || fail "$provider $mode: $(cat "$work/client")"
			play $pingpong -p $provider -e rdm -m $mode -S 100000 -I 1000
			echo "$way, $provider, $mode: $(tail -n 1 "$work/client")"
		done
	done
done
