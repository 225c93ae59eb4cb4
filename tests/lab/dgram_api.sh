#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The API's tests of datagrams over a device's. Left out are those of IP addresses (dgram_raw, the IPv6 ones, a name given
# back at once), of multicast, and of what only the kernel's sockets promise.
# TIMEOUT=150
. "$(dirname "$0")/lab.bash"
export HW=verbs

# run PROGRAM CASE...: each of them is run and passes.
run() {
	local name program=$1
	shift
	timeout 120 "$BUILD/t/api_$program" "$@" >"$work/out" 2>&1 || fail "api_$program: $(cat "$work/out")"
	for name in "$@"; do
		grep -q "^ok  *$name " "$work/out" || fail "api_$program: $name was not run: $(cat "$work/out")"
	done
	echo "$program: $(grep '^ok ' "$work/out" | cut -c6- | paste -sd,)"
}

run dgram forms late sizes truncate source source-map unknown unknown-error refuse refuse-objects region
run dgram_flow stream-one stream-many stream-two stream-unlocked stream-more more multi-recv cancel count selective
run dgram_wait sread fd cond undisturbed undisturbed-auto threads alias
