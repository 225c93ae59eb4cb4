#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The distribution's fi_pingpong on connected endpoints, by IPv4 and IPv6; also the example
# msg_pingpong.
# TIMEOUT=240
. "$(dirname "$0")/ours.bash"
pingpong=/usr/bin/fi_pingpong
need $pingpong pgrep

# talk ADDRESS OPTION...: like play, which only does IPv4.
talk() {
	local server
	next_port
	start "${setting[@]}" timeout 100 $pingpong -e msg -B $port "${@:2}" >"$work/server" 2>&1
	server=$pid
	within 10 listening $port || fail "$*: the server does not listen: $(cat "$work/server")"
	assert_ours "$(pgrep -P "$server" -x fi_pingpong)"
	"${setting[@]}" timeout 100 $pingpong -e msg -P $port "${@:2}" "$1" >"$work/client" 2>&1 ||
		fail "$*: client: $(cat "$work/client")"
	wait "$server" || fail "$*: server: $(cat "$work/server")"
}

setting=(env LD_LIBRARY_PATH="$BUILD")
for provider in '' weft tcp shm sockets net; do
	named=(${provider:+-p "$provider"})
	talk 127.0.0.1 "${named[@]}" -S all -I 10 -c
	[ "$(grep -c '=10 ' "$work/client")" -ge 6 ] || fail "${provider:-no name}: $(cat "$work/client")"
	talk ::1 "${named[@]}" -6 -S 100000 -I 50 -c
	echo "${provider:-no name}: $(tail -n 1 "$work/client")"
done
setting=(env LD_PRELOAD="$lib")
talk 127.0.0.1 -p tcp -S 1024 -I 200 -c
echo "preloaded: $(tail -n 1 "$work/client")"

# The example: a client that asks for too much is refused with a reason, the next one is served.
example=$BUILD/bin/msg_pingpong
for provider in weft tcp; do
	next_port
	start timeout 50 "$example" -p $provider -P $port 127.0.0.1 >"$work/server" 2>&1
	server=$pid
	within 10 listening $port || fail "msg_pingpong: the server does not listen: $(cat "$work/server")"
	if timeout 50 "$example" -p $provider -P $port -c -s 1048577 127.0.0.1 >"$work/client" 2>&1; then
		fail "msg_pingpong: the server took too long messages"
	fi
	grep -q 'refused: messages of more than a megabyte' "$work/client" || fail "$(cat "$work/client")"
	timeout 50 "$example" -p $provider -P $port -c -s 4096 127.0.0.1 >"$work/client" 2>&1 ||
		fail "msg_pingpong: client: $(cat "$work/client")"
	grep -q '^# the server says: welcome$' "$work/client" || fail "msg_pingpong: $(cat "$work/client")"
	wait "$server" || fail "msg_pingpong: server: $(cat "$work/server")"
	echo "msg_pingpong, $provider: $(tail -n 1 "$work/client")"
done
