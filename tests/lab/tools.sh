#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The devices work with independent programs: these find the devices, which reach each other, with
# addresses exchanged by hand and by the RDMA connection manager.
# TIMEOUT=90
. "$(dirname "$0")/lab.bash"
need rdma ibv_devinfo ibv_rc_pingpong ib_send_lat rping taskset

for n in 0 1; do
	ibv_devinfo -d "${device[n]}" >"$work/info" 2>&1 || fail "ibv_devinfo -d ${device[n]}: $(cat "$work/info")"
	grep -q PORT_ACTIVE "$work/info" || fail "${device[n]} is not active: $(cat "$work/info")"
	echo "${device[n]}: ${address[n]}, GID ${gid[n]}"
done

next_port
pair listening ibv_rc_pingpong -d "${device[0]}" -g "${gid[0]}" -p $port -e -c -n 200 -- \
	ibv_rc_pingpong -d "${device[1]}" -g "${gid[1]}" -p $port -e -c -n 200 "${address[0]}"
grep -q '^200 iters' "$work/client" || fail "ibv_rc_pingpong: $(cat "$work/client")"
echo "ibv_rc_pingpong -e: $(grep '^200 iters' "$work/client")"

# latency OPTION... -- OPTION...: runs both sides of ib_send_lat, which poll, so each has its own
# CPU.
latency() {
	local server=() figure
	while [ "$1" != -- ]; do server+=("$1") && shift; done
	shift
	pair "$ready" taskset -c 0 ib_send_lat -p $port -s 8 -n 200 -F "${server[@]}" -- \
		taskset -c 1 ib_send_lat -p $port -s 8 -n 200 -F "$@" "${address[0]}"
	figure=$(awk '$1 == 8 && $2 == 200 { print $5 }' "$work/client")
	[ -n "$figure" ] || fail "ib_send_lat: $(cat "$work/client")"
	echo "ib_send_lat $*, 8 bytes: $figure us one way"
}

next_port
ready=listening latency -d "${device[0]}" -x "${gid[0]}" -- -d "${device[1]}" -x "${gid[1]}"
next_port
ready=rdma_listening latency -R -- -R # the client uses the server's address too: from a device to itself

next_port
pair rdma_listening rping -s -a "${address[0]}" -p $port -C 10 -v -- \
	rping -c -a "${address[0]}" -I "${address[1]}" -p $port -C 10 -v
[ "$(grep -c '^ping data: rdma-ping-' "$work/client")" -eq 10 ] || fail "rping: $(cat "$work/client")"
echo "rping from ${address[1]} to ${address[0]}: 10 times"
