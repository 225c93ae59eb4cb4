#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The fi_info and fi_pingpong of the distribution, programs nobody here wrote, run on our library.
# TIMEOUT=120
. "$(dirname "$0")/ours.bash"
info=/usr/bin/fi_info pingpong=/usr/bin/fi_pingpong
need $info $pingpong pgrep

listed() {
	"${setting[@]}" timeout 10 $info "$@" >"$work/info" 2>&1 || fail "fi_info $*: $(cat "$work/info")"
}

for way in LD_LIBRARY_PATH="$BUILD" LD_PRELOAD="$lib"; do
	setting=(env "$way")
	listed
	[ "$(sed -n '1s/^provider: //p' "$work/info")" = weft ] || fail "the first entry is: $(head -n 1 "$work/info")"
	listed -v
	listed -e
	grep -q '^# FI_LOG_LEVEL' "$work/info" || fail "fi_info -e does not know FI_LOG_LEVEL"
	for provider in weft shm; do
		listed -p $provider -t FI_EP_RDM -c 'FI_MSG|FI_TAGGED'
		for mode in msg tagged; do
			play $pingpong -p $provider -e rdm -m $mode -S all -I 20 -c
			[ "$(grep -c '=20 ' "$work/client")" -ge 6 ] || fail "$provider $mode: $(cat "$work/client")"
			play $pingpong -p $provider -e rdm -m $mode -S 100000 -I 1000
			echo "$way, $provider, $mode: $(tail -n 1 "$work/client")"
		done
	done
done

# meet SERVER CLIENT ADDRESS OPTION...: over udp; each side is "ours" or "theirs", the library of the distribution.
meet() {
	local address=$3 server library=([0]=$1 [1]=$2) side
	local -a on=([0]="LD_LIBRARY_PATH=$BUILD" [1]="LD_LIBRARY_PATH=$BUILD")
	for side in 0 1; do [ "${library[side]}" = ours ] || on[side]=LD_LIBRARY_PATH=; done
	next_port
	start env "${on[0]}" timeout 50 $pingpong -B $port -p udp -c "${@:4}" >"$work/server" 2>&1
	server=$pid
	within 10 listening $port || fail "udp $*: the server does not listen: $(cat "$work/server")"
	[ "$1" = theirs ] || assert_ours "$(pgrep -P "$server" -x fi_pingpong)"
	env "${on[1]}" timeout 50 $pingpong -P $port -p udp -c "${@:4}" "$address" >"$work/client" 2>&1 ||
		fail "udp $*: client: $(cat "$work/client")"
	wait "$server" || fail "udp $*: server: $(cat "$work/server")"
	echo "udp, $1 to $2 at $address, ${*:4}: $(tail -n 1 "$work/client")"
}

# all_sizes: the client went through every size up to 48k.
all_sizes() {
	[ "$(grep -c '=20 ' "$work/client")" -ge 30 ] || fail "udp: $(cat "$work/client")"
}

# A datagram is nothing but the message, so the other library understands it. It goes to 1472 bytes and no further,
# and where the sides do not have the same limit "all" means something else to each.
setting=(env LD_LIBRARY_PATH="$BUILD")
listed -p udp -t FI_EP_DGRAM -c 'FI_MSG|FI_MULTICAST'
meet ours ours 127.0.0.1 -S all -I 20 && all_sizes
meet ours ours 127.0.0.1 -e dgram -S 1000 -I 2000
sixes=()
if grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null; then
	sixes=(::1)
	meet ours ours ::1 -6 -e dgram -S all -I 20 && all_sizes
fi
for size in 0 1 64 1024; do
	for address in 127.0.0.1 "${sixes[@]}"; do
		[ "$address" = 127.0.0.1 ] && six=() || six=(-6)
		meet ours theirs "$address" "${six[@]}" -e dgram -S $size -I 100
		meet theirs ours "$address" "${six[@]}" -e dgram -S $size -I 100
	done
done
