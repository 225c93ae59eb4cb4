#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Datagram endpoints of the provider "verbs": two processes of this project, and Debian's
# fi_pingpong, between two devices and from a device to itself. Nothing is left on the devices.
# TIMEOUT=240 KERNELS=all
. "$(dirname "$0")/lab.bash"
need rdma fi_pingpong ip
objects() {
	rdma resource show | sed 's/ctx [0-9]*//'
}

before=$(objects)
for to in 1 0; do
	timeout 60 "$BUILD/t/lab_dgram_talk" "${address[0]}" "${address[to]}" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
	[ "$(grep -c ': done$' "$work/out")" -eq 8 ] || fail "not all cases: $(cat "$work/out")"
	cat "$work/out"
done

# interface ADDRESS: prints the interface with this address.
interface() {
	ip -o -4 addr show | awk -v address="$1" '{ split($4, a, "/") } a[1] == address { print $2 }'
}

export LD_LIBRARY_PATH=$BUILD
for to in 0 1; do
	next_port
	options=(-p verbs -e dgram -I 20 -S 256 -c)
	start timeout 60 fi_pingpong "${options[@]}" -d "$(interface "${address[0]}")" -B $port >"$work/server" 2>&1
	server=$pid
	within 20 listening $port || fail "fi_pingpong: $(cat "$work/server")"
	timeout 60 fi_pingpong "${options[@]}" -d "$(interface "${address[to]}")" -P $port "${address[0]}" >"$work/client" 2>&1 ||
		fail "fi_pingpong: $(cat "$work/client" "$work/server")"
	wait "$server" || fail "fi_pingpong: the server: $(cat "$work/server")"
	grep -qE '^256 +20 +=20 ' "$work/client" || fail "fi_pingpong: $(cat "$work/client")"
	echo "fi_pingpong from ${address[to]} to ${address[0]}: done"
done
[ "$(objects)" = "$before" ] || fail "left behind: $(objects), before: $before"
