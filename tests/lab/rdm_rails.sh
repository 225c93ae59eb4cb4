#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Reliable datagrams over two devices at each of two hosts: one wire after the other goes dark and
# comes back, and a device is taken away, the second one or an endpoint's own, under traffic of which
# each message is checked; then both wires go dark. Before that, which devices FI_VERBS_IFACE chooses.
# TIMEOUT=400
. "$(dirname "$0")/faults.bash"
apart

# A second wire, from 10.78.0.1 to 10.78.0.2, as inside.sh of the guest makes the first.
second=(wire2 wire3) end=(10.78.0.1 10.78.0.2)
away() {
	for n in 2 3; do rdma link del rxe$n; done
	ip link del wire2
	for n in 0 1; do
		ip rule del pref 10 iif "${second[n]}" to "${end[n]}" lookup local
		ip rule del pref 20 from "${end[n]}" to "${end[1 - n]}" lookup $((102 + n))
	done
} 2>/dev/null
trap 'for n in 5 15 16; do ip -4 rule flush pref $n; ip -6 rule flush pref $n; done 2>/dev/null; end_all; away' EXIT
ip link add wire2 type veth peer name wire3
for n in 0 1; do
	ip link set "${second[n]}" up
	mac[n]=$(cat "/sys/class/net/${second[n]}/address")
done
for n in 0 1; do
	dev=${second[n]} own=${end[n]} other=${end[1 - n]}
	ip addr add "$own/24" dev "$dev" &&
		ip neigh add "$other" lladdr "${mac[1 - n]}" dev "$dev" nud permanent &&
		ip route add "$other" dev "$dev" table $((102 + n)) src "$own" &&
		ip rule add pref 10 iif "$dev" to "$own" lookup local &&
		ip rule add pref 20 from "$own" to "$other" lookup $((102 + n)) &&
		rdma link add "rxe$((2 + n))" type rxe netdev "$dev" || fail "no second wire"
done
before=$(objects)

# found LIST: prints the domains of verbs;ofi_rxm with this FI_VERBS_IFACE.
found() {
	FI_VERBS_IFACE=$1 "$BUILD/bin/fi_info" -p 'verbs;ofi_rxm' 2>"$work/why" | sed -n 's/^ *domain: //p' | sort -u | paste -sd' '
}
[ "$(found wire2)" = wire2 ] || fail "FI_VERBS_IFACE=wire2: $(found wire2)"
[ "$(found wire3,wire0)" = 'wire0 wire3' ] || fail "FI_VERBS_IFACE=wire3,wire0: $(found wire3,wire0)"
[ "$(found wire)" = 'wire0 wire1 wire2 wire3' ] || fail "FI_VERBS_IFACE=wire: $(found wire)"
export FI_LOG_LEVEL=info
[ -z "$(found wire7)" ] && grep -q 'FI_VERBS_IFACE=wire7' "$work/why" || fail "FI_VERBS_IFACE=wire7: $(cat "$work/why")"

limit=$((2000 * ${SLOWER:-1}))
export FI_WEFT_RAILS=2 FI_WEFT_RAIL_TIMEOUT=$limit FI_LOG_LEVEL=info FI_LOG_PROV=verbs,core

# dim IFACE...: silently drops what arrives by these, until `light`.
dim() {
	local dev
	for dev; do ip rule add pref 5 iif "$dev" blackhole || fail "the wire does not go dark"; done
}

# times COUNT LINE: the sides have printed so many lines like this.
times() {
	[ "$(grep -cE "$2" "$work/out")" -ge "$1" ]
}

# await COUNT LINE
await() {
	within $((3 * patience)) times "$1" "$2" || fail "not $1 times '$2': $(cat "$work/out")"
}

# carried IFACE: the interface has sent a million bytes.
carried() {
	[ "$(cat "/sys/class/net/$1/statistics/tx_bytes")" -gt $((${bytes[$1]} + 1000000)) ]
}

# divided: each wire carries a part in both directions.
divided() {
	local dev
	declare -A bytes
	for dev in "${interface[@]}" "${second[@]}"; do bytes[$dev]=$(cat "/sys/class/net/$dev/statistics/tx_bytes"); done
	for dev in "${interface[@]}" "${second[@]}"; do
		within "$patience" carried "$dev" || fail "$dev carries next to nothing"
	done
}

joined='a rail to peer' down='the rail to peer .* is down'

FI_WEFT_PEER_TIMEOUT=$limit busy 2 rdm_rails go-on "${interface[@]}" "${second[@]}"
await 2 "$joined"
divided
dim "${interface[@]}"
await 2 "$down"
await 2 'has lost its socket'
sleep 1
light
await 4 "$joined"
sleep 1
dim "${second[@]}"
await 4 "$down"
sleep 1
light
await 6 "$joined"
sleep 1
start rdma link del rxe2
removal=$pid
await 6 "$down"
within "$patience" ended "$removal" || fail "the device is still in use: $(rdma resource show)"
rdma link add rxe2 type rxe netdev wire2 || fail "no new device"
await 8 "$joined"
sleep 1
pkill -USR1 -P "$talk"
over "one wire after the other dark" 'side 0: goes on: .*' 'side 1: goes on: .*'
clean "one wire after the other dark"

FI_WEFT_PEER_TIMEOUT=$limit busy 2 rdm_rails anew "${interface[@]}" "${second[@]}"
await 2 "$joined"
remove
await 2 "$down"
bring_back
await 4 "$joined"
pkill -USR1 -P "$talk"
over "an endpoint's own device taken away" 'side 0: goes on: .*' 'side 0: its new region is written to'
clean "an endpoint's own device taken away"

HW=weft busy 2 rdm_rails go-on "${interface[@]}" "${second[@]}"
await 2 "$joined"
dim "${interface[@]}"
await 2 "$down"
light
await 4 "$joined"
pkill -USR1 -P "$talk"
over "weft, a wire dark" 'side 0: goes on: .*' 'side 1: goes on: .*'
clean "weft, a wire dark"

FI_WEFT_PEER_TIMEOUT=$limit busy 2 rdm_rails end "${interface[@]}" "${second[@]}"
await 2 "$joined"
dim "${interface[@]}" "${second[@]}"
over "both wires dark" 'side 0 was told: Connection timed out' 'side 1 was told: Connection timed out' 'side 0: closed' 'side 1: closed'
light
clean "both wires dark"
