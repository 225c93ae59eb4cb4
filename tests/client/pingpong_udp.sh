#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The distribution's fi_pingpong on datagram endpoints, also with one side on the distribution's
# library: a datagram is the message alone, so the two interoperate.
# TIMEOUT=240
. "$(dirname "$0")/ours.bash"
info=/usr/bin/fi_info pingpong=/usr/bin/fi_pingpong
need $info $pingpong pgrep

# meet SERVER CLIENT ADDRESS OPTION...: each side is "ours" or "theirs".
meet() {
	local address=$3 server library=([0]=$1 [1]=$2) side
	local -a on=([0]="LD_LIBRARY_PATH=$BUILD" [1]="LD_LIBRARY_PATH=$BUILD")
	for side in 0 1; do [ "${library[side]}" = ours ] || on[side]=LD_LIBRARY_PATH=; done
	next_port
	start env "${on[0]}" timeout 100 $pingpong -B $port -c "${@:4}" >"$work/server" 2>&1
	server=$pid
	within 10 listening $port || fail "$*: the server does not listen: $(cat "$work/server")"
	[ "$1" = theirs ] || assert_ours "$(pgrep -P "$server" -x fi_pingpong)"
	env "${on[1]}" timeout 100 $pingpong -P $port -c "${@:4}" "$address" >"$work/client" 2>&1 ||
		fail "$*: client: $(cat "$work/client")"
	wait "$server" || fail "$*: server: $(cat "$work/server")"
	echo "$1 to $2 at $address, ${*:4}: $(tail -n 1 "$work/client")"
}

# all_sizes: the client has done every size up to 48k.
all_sizes() {
	[ "$(grep -c '=20 ' "$work/client")" -ge 30 ] || fail "$(cat "$work/client")"
}

env LD_LIBRARY_PATH="$BUILD" timeout 10 $info -p udp -t FI_EP_DGRAM -c 'FI_MSG|FI_MULTICAST' >"$work/info" 2>&1 ||
	fail "fi_info: $(cat "$work/info")"
meet ours ours 127.0.0.1 -S all -I 20 && all_sizes # default options
for provider in udp weft sockets; do
	meet ours ours 127.0.0.1 -p $provider -e dgram -S 1000 -I 500
done
addresses=(127.0.0.1)
if grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null; then
	addresses+=(::1)
	meet ours ours ::1 -6 -p udp -e dgram -S all -I 20 && all_sizes
fi
# The other library's limit is 1472 bytes, so "all" means different sizes on the two sides.
for size in 0 1 64 1024; do
	for address in "${addresses[@]}"; do
		[ "$address" = 127.0.0.1 ] && six=() || six=(-6)
		meet ours theirs "$address" "${six[@]}" -p udp -e dgram -S $size -I 50
		meet theirs ours "$address" "${six[@]}" -p udp -e dgram -S $size -I 50
	done
done
