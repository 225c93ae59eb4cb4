#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Reliable datagrams whose other side is killed: an error within the retry time, whether the
# remaining side sends or only waits.
# TIMEOUT=90
. "$(dirname "$0")/lab.bash"
need ip
patience=$((8 * ${SLOWER:-1})) # seconds; the device fails a send after 7 tries of 0.27 s

# busy: the hosts exchange messages; $talk is the process that waits for both sides.
busy() {
	start env LD_LIBRARY_PATH="$BUILD" "$BUILD/t/lab_rdm_talk" "${interface[@]}" >"$work/talk" 2>&1
	talk=$pid
	within 30 going || fail "nothing moves: $(cat "$work/talk")"
}

going() {
	[ "$(grep -c '^going$' "$work/talk")" -eq 2 ]
}

ended() {
	! kill -0 "$talk" 2>/dev/null
}

# ends WHAT SIDES: so many sides get an error and end.
ends() {
	local start=$SECONDS
	within "$patience" ended || fail "$1: not both sides end: $(cat "$work/talk")"
	wait "$talk" || fail "$1: $(cat "$work/talk")"
	[ "$(grep -c ' ended: ' "$work/talk")" -eq "$2" ] || fail "$1: not $2 sides were told: $(cat "$work/talk")"
	echo "$1: within $((SECONDS - start)) s, $(grep ' ended: ' "$work/talk" | paste -sd';')"
}

interface=()
for n in 0 1; do interface+=("$(ip -o -4 addr show to "${address[n]}" | awk '{ print $2; exit }')"); done

busy
pkill -KILL -P "$talk" -o || fail "nobody to kill"
ends "side 0 killed" 1

busy
pkill -KILL -P "$talk" -n || fail "nobody to kill"
ends "side 1 killed" 1
