#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two devices are shown with their own limits, in either order.
# TIMEOUT=60
. "$(dirname "$0")/faults.bash"
need fi_info

# shown MTU MTU: sets the MTUs of the hosts' interfaces; prints the two limits of each datagram
# entry.
shown() {
	for n in 0 1; do ip link set "${interface[n]}" mtu "${@:n+1:1}" || fail "no MTU of ${*:n+1:1}"; done
	fi_info -p verbs -t FI_EP_DGRAM -v >"$work/out" 2>&1 || fail "fi_info: $(cat "$work/out")"
	awk '$1 == "inject_size:" { inject = $2 } $1 == "max_msg_size:" { print $2, inject }' "$work/out" | sort -n
}

short_first=$(shown 1500 4400)
long_first=$(shown 4400 1500)
shown 1500 1500 >"$work/same"
echo "limits of datagrams: $(paste -sd, <<<"$short_first"); both alike: $(paste -sd, "$work/same")"
[ "$(cut -d' ' -f1 <<<"$short_first" | sort -u | wc -l)" -eq 2 ] || fail "two kinds of device, but: $(cat "$work/out")"
[ "$short_first" = "$long_first" ] || fail "in the other order: $(paste -sd, <<<"$long_first")"
