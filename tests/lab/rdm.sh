#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Reliable datagrams over queue pairs: a client that nobody here wrote, from device to device, data checked.
# TIMEOUT=120
. "$(dirname "$0")/lab.bash"
pingpong=/usr/bin/fi_pingpong
need $pingpong ip

# interface N: the name of the interface that has the address of host N.
interface() {
	ip -o -4 addr show to "${address[$1]}" | awk '{ print $2; exit }'
}

# packets: how many have come in, on all devices that count.
packets() {
	cat /sys/class/infiniband/*/ports/1/hw_counters/rcvd_pkts 2>/dev/null | paste -sd+ | bc
}

setting=(env "LD_LIBRARY_PATH=$BUILD")
# meet SERVER CLIENT OPTION...: of hosts
meet() {
	local from=$1 to=$2
	next_port
	start "${setting[@]}" timeout 60 $pingpong -p 'verbs;ofi_rxm' -e rdm -d "$(interface "$from")" -B $port "${@:3}" \
		>"$work/server" 2>&1
	local server=$pid
	within 30 listening $port || fail "the server does not listen: $(cat "$work/server")"
	"${setting[@]}" timeout 60 $pingpong -p 'verbs;ofi_rxm' -e rdm -d "$(interface "$to")" -P $port "${@:3}" \
		"${address[from]}" >"$work/client" 2>&1 || fail "client $*: $(cat "$work/client" "$work/server")"
	wait "$server" || fail "server $*: $(cat "$work/server")"
	tail -n 1 "$work/client"
}

before=$(packets)
meet 0 1 -c -I 20 -S 8
meet 1 0 -c -I 20 -S 4096
meet 0 1 -c -I 10 -S 65536
meet 0 0 -c -I 4 -S 1048576
after=$(packets)
[ -z "$before" ] || [ $((after - before)) -ge 2000 ] || fail "$((after - before)) packets came in by the devices"
