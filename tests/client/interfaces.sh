#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Which network interfaces fi_info shows, for networks made in a namespace of the test.
set -u
if [ -z "${INTERFACES_LAB-}" ]; then
	for command in ip unshare; do
		command -v $command >/dev/null || { echo "$command is not installed"; exit 77; }
	done
	for user in -n -rn; do
		reason=$(unshare $user sh -ec '
			ip link add one type bridge
			ip link add two type veth peer name three' 2>&1) || continue
		# continues with the next user if this fails
		INTERFACES_LAB=1 exec unshare $user bash "$0" "$@"
	done
	echo "no network of our own: ${reason##*$'\n'}"
	exit 77
fi
. "$(dirname "$0")/ours.bash"
unset FI_PROVIDER FI_TCP_IFACE
fi_info=("$BUILD/bin/fi_info")

# entries OPTION...: prints "domain address" of each entry, one per line.
entries() {
	timeout 10 "${fi_info[@]}" -v "$@" >"$work/out" 2>"$work/err" || fail "fi_info $*: $(cat "$work/err")"
	awk '$1 == "src_addr:" { sub(/.*:\/\//, "", $2); sub(/:0$/, "", $2); address = $2 }
		/^    fi_domain_attr:/ { domain = 1 }
		domain && $1 == "name:" { print $2, address; domain = 0 }' "$work/out"
}

# shows "DOMAIN ADDRESS, DOMAIN ADDRESS..." OPTION...: fi_info must show exactly these entries in
# this order.
shows() {
	local got
	got=$(entries "${@:2}" | paste -sd, | sed 's/,/, /g')
	[ "$got" = "$1" ] || fail "fi_info ${*:2}: '$got' instead of '$1'"
}

# refuses PATTERN OPTION...: no entry, and the log has the reason.
refuses() {
	! FI_LOG_LEVEL=info timeout 10 "${fi_info[@]}" "${@:2}" >"$work/out" 2>&1 || fail "fi_info ${*:2}: has entries"
	grep -q -- "$1" "$work/out" || fail "fi_info ${*:2}: nothing like '$1': $(cat "$work/out")"
}

do_ip() {
	ip "$@" || fail "ip $*"
}

msg=(-p tcp -t FI_EP_MSG)
do_ip link set lo up
shows 'lo 127.0.0.1, lo [::1]' "${msg[@]}"
shows 'lo 127.0.0.1' -n 10.3.0.1 "${msg[@]}"
grep -q 'caps:.* FI_REMOTE_COMM' "$work/out" || fail "loopback alone: no FI_REMOTE_COMM"

refuses 'tcp: node no-such-host.invalid' "${msg[@]}" -n no-such-host.invalid

# state LINK WORD: waits until the kernel reports this state of the link.
state() {
	within 5 sh -c "ip link show $1 | grep -q ' state $2 '" || fail "$(ip link show "$1")"
}

# The uplink of a container, a bridge with a running container, and one whose container has stopped.
OUT=10.1.0.2
do_ip link add out0 mtu 1432 type veth peer name far0
for bridge in inner docker; do
	do_ip link add ${bridge}0 type bridge
	do_ip link add ${bridge}1 type veth peer name ${bridge}2
	do_ip link set ${bridge}1 master ${bridge}0
done
for link in far0 out0 inner0 inner1 inner2 docker0 docker1; do
	do_ip link set $link addrgenmode none # no addresses but those of the test
	do_ip link set $link up
done
do_ip addr add 172.17.0.1/16 dev docker0
do_ip addr add 172.18.0.1/16 dev inner0
do_ip addr add $OUT/24 dev out0
do_ip addr add 2001:db8:1::2/64 dev out0 nodad
do_ip route add default via 10.1.0.1 dev out0
state out0 UP
state inner0 UP
state docker0 DOWN

all="out0 $OUT, out0 [2001:db8:1::2], inner0 172.18.0.1, lo 127.0.0.1, lo [::1]"
for program in "$BUILD/bin/fi_info" "$(command -v fi_info)"; do
	[ -n "$program" ] || continue
	fi_info=(env LD_LIBRARY_PATH="$BUILD" "$program")
	for names in "-p tcp -t FI_EP_MSG" "-p tcp;ofi_rxm" "-p sockets -t FI_EP_RDM" "-p udp" "-p weft -t FI_EP_MSG"; do
		# shellcheck disable=SC2086 # options
		shows "$all" $names
	done
	# Hints that require a capability get one entry of a kind, the best.
	shows "out0 $OUT, out0 $OUT, out0 $OUT" -t FI_EP_DGRAM -c FI_MSG
	shows "out0 $OUT, out0 $OUT, shm $OUT, out0 $OUT, out0 $OUT" -t FI_EP_MSG -c 'FI_MSG|FI_RMA'
	# A named interface works while it is up.
	shows 'docker0 172.17.0.1' "${msg[@]}" -d docker0
	shows "out0 $OUT, out0 [2001:db8:1::2]" "${msg[@]}" -d out0
	shows "out0 [2001:db8:1::2], lo [::1]" "${msg[@]}" -a FI_SOCKADDR_IN6
	shows "out0 $OUT, out0 [2001:db8:1::2], inner0 172.18.0.1" "${msg[@]}" -c FI_REMOTE_COMM
	# With a destination the route decides.
	shows 'inner0 172.18.0.1' "${msg[@]}" -n 172.18.0.9
	shows "out0 $OUT" "${msg[@]}" -n 203.0.113.9
	shows 'out0 [2001:db8:1::2]' "${msg[@]}" -n 2001:db8:1::9
	shows 'inner0 172.18.0.1' "${msg[@]}" -s 172.18.0.1
done
timeout 10 "$BUILD/bin/fi_info" -v -p udp -d out0 -a FI_SOCKADDR_IN >"$work/out"
for line in 'mtu: 1432' 'speed: 10000000000' 'state: FI_LINK_UP' 'network_type: Ethernet'; do
	grep -q " $line\$" "$work/out" || fail "link attributes: no '$line': $(grep -A20 nic: "$work/out")"
done
entries "${msg[@]}" >/dev/null
[ "$(grep -c '^    caps:.* FI_REMOTE_COMM' "$work/out")" -eq 3 ] || fail "loopback beside others reaches hosts"

fi_info=("$BUILD/bin/fi_info")
export FI_TCP_IFACE=inner0
shows 'inner0 172.18.0.1' "${msg[@]}"
shows 'inner0 172.18.0.1' "${msg[@]}" -n 203.0.113.9
refuses 'FI_TCP_IFACE: "inner0" asked, no such interface is up with an IPv6 address' "${msg[@]}" -a FI_SOCKADDR_IN6
FI_TCP_IFACE=nosuch0
refuses 'tcp: FI_TCP_IFACE: "nosuch0" asked' "${msg[@]}"
unset FI_TCP_IFACE
refuses 'tcp: domain_attr->name: "nosuch0" asked' "${msg[@]}" -d nosuch0
refuses 'tcp: domain_attr->name: "inner0" asked, no such interface is up with that IPv4 address' \
	"${msg[@]}" -d inner0 -s $OUT

# A link-local destination is reached by its scope; the better interfaces are removed one by one.
do_ip -6 addr add fe80::77/64 dev inner0 nodad
shows 'inner0 [fe80::77]' "${msg[@]}" -n fe80::1%inner0
do_ip link set far0 down
state out0 LOWERLAYERDOWN
[ "$(entries "${msg[@]}" | head -n 1)" = 'inner0 172.18.0.1' ] || fail "without a carrier: $(entries "${msg[@]}")"
do_ip link set inner0 down
shows 'lo 127.0.0.1, lo [::1]' "${msg[@]}"
