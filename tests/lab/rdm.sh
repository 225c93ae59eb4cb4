#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Reliable datagrams over queue pairs: an independent client, from device to device, with data
# checked. Also the default provider, whose endpoints of different users of a host communicate as
# those of two hosts do.
# TIMEOUT=150 KERNELS=all
. "$(dirname "$0")/lab.bash"
pingpong=/usr/bin/fi_pingpong
need $pingpong ip

# interface N: prints the interface with the address of host N.
interface() {
	ip -o -4 addr show to "${address[$1]}" | awk '{ print $2; exit }'
}

# packets: prints how many have arrived, on all devices with counters.
packets() {
	cat /sys/class/infiniband/*/ports/1/hw_counters/rcvd_pkts 2>/dev/null | paste -sd+ | bc
}

# meet PROVIDER TYPE SERVER CLIENT OPTION...: SERVER and CLIENT are hosts; $other precedes the
# client.
other=()
meet() {
	local one server options=(-p "$1" -e "$2" "${@:5}")
	next_port
	start env LD_LIBRARY_PATH="$BUILD" timeout 60 $pingpong "${options[@]}" -d "$(interface "$3")" -B $port >"$work/server" 2>&1
	server=$pid
	within 30 listening $port || fail "the server does not listen: $(cat "$work/server")"
	one=$(packets)
	"${other[@]}" env LD_LIBRARY_PATH="$BUILD" timeout 60 $pingpong "${options[@]}" -d "$(interface "$4")" -P $port \
		"${address[$3]}" >"$work/client" 2>&1 || fail "client $*: $(cat "$work/client" "$work/server")"
	wait "$server" || fail "server $*: $(cat "$work/server")"
	[ -z "$one" ] || [ $(($(packets) - one)) -ge 40 ] || fail "$*: not by the devices"
	tail -n 1 "$work/client"
}

rdm=('verbs;ofi_rxm' rdm)
meet "${rdm[@]}" 0 1 -c -I 20 -S 8
meet "${rdm[@]}" 1 0 -c -I 20 -S 4096
meet "${rdm[@]}" 0 1 -c -I 10 -S 65536
meet "${rdm[@]}" 0 0 -c -I 4 -S 1048576

if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	ulimit -l unlimited
	meet weft rdm 0 1 -c -I 20 -S 4096
	meet weft msg 1 0 -c -I 20 -S 4096
fi
