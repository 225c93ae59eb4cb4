#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Inside the virtual machine, with the host's files: makes two interfaces with an RDMA device each,
# as if on two hosts joined by a wire, then runs a command. A failure before the command prints a
# line "lab: broken".
#     rxe0 on wire0: 10.77.0.1, fd77::1          rxe1 on wire1: 10.77.1.1, fd77:1::1
# A kernel does not send packets to an address of its own by a wire. So each address is local only
# for packets that arrive by its interface, and packets from one address to the other take the wire.
set -eu
trap 'echo "lab: broken: line $LINENO of inside.sh failed"' ERR

# addresses FAMILY: prints those of the two ends.
addresses() {
	case $1 in
	-4) echo 10.77.0.1 10.77.1.1 ;;
	-6) echo fd77::1 fd77:1::1 ;;
	esac
}

# ends FAMILY LENGTH [OPTION]: sets the addresses and routes of both ends.
ends() {
	local n own other address
	read -ra address <<<"$(addresses "$1")"
	for n in 0 1; do
		own=${address[n]} other=${address[1 - n]}
		ip "$1" addr add "$own/$2" dev wire$n "${@:3}"
		ip "$1" neigh add "$other" lladdr "${mac[1 - n]}" dev wire$n nud permanent
		ip "$1" route add "$other" dev wire$n table $((100 + n)) src "$own"
		ip "$1" rule add pref 10 iif wire$n to "$own" lookup local
		ip "$1" rule add pref 20 from "$own" to "$other" lookup $((100 + n))
	done
	ip "$1" rule add pref 30 lookup local
	ip "$1" rule del pref 0
}

ip link del dummy0 2>/dev/null || : # made with the module
ip link add wire0 type veth peer name wire1
mac=("$(cat /sys/class/net/wire0/address)" "$(cat /sys/class/net/wire1/address)")
ip link set wire0 up
ip link set wire1 up
ends -4 24
ends -6 64 nodad
for n in 0 1; do rdma link add rxe$n type rxe netdev wire$n; done

# libibverbs loads a driver for each kind of device in every process, a second or more here.
if [ -e /etc/libibverbs.d/rxe.driver ]; then
	mkdir /run/drivers
	cp /etc/libibverbs.d/rxe.driver /run/drivers/
	mount --bind /run/drivers /etc/libibverbs.d
fi
trap - ERR
echo "lab: up"
exec "$@"
