#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Connected endpoints between hosts: names of both ends, connections that fail for each reason a
# network has, and hosts that vanish without a disconnect.
#     OTHER=/path/libfabric.so.1 bash tests/client/hosts_cm.sh    tests the test, on another library
# TIMEOUT=180
# shellcheck disable=SC2154 # what hosts.bash sets
. "$(dirname "$0")/hosts.bash"
need pkill
lib=${OTHER:-$lib}
program=$work/hosts_cm
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -Iinclude -o "$program" tests/client/hosts_cm.c "$lib" || fail "no hosts_cm"
setting=(env LD_LIBRARY_PATH="$(dirname "$lib")" FI_WEFT_PEER_TIMEOUT=2000 timeout -s KILL 50 "$program")

said() {
	grep -q -- "$2" "$work/$1"
}

# says WHO PATTERN [SECONDS]: waits for a line of that process.
says() {
	within "${3:-10}" said "$1" "$2" || fail "$1 does not say '$2': $(tail -n 20 "$work/listener" "$work/client")"
}

# milliseconds WHO PATTERN: prints the number at the end of that line.
milliseconds() {
	grep -- "$2" "$work/$1" | grep -o '[0-9]*$'
}

# serve HOST OPTION...: listens there on a port of its own.
serve() {
	next_port
	start_on "$1" "${setting[@]}" "${@:2}" listen $port >"$work/listener" 2>&1
	says listener '^listening'
}

# call HOST ADDRESS OPTION...: connects from there.
call() {
	start_on "$1" "${setting[@]}" "${@:3}" connect "$2" $port >"$work/client" 2>&1
}

# meet OPTION...: connects host 2 to host 1, and host 2 sends its word.
meet() {
	serve 1 "$@"
	call 2 10.77.0.1 "$@"
	says listener '^connected 10.77.0.2$'
	says client '^connected 10.77.0.1$'
}

# not_connected ADDRESS PATTERN LOW HIGH OPTION...: the attempt fails with that line, after LOW to
# HIGH milliseconds.
not_connected() {
	local ms
	call 2 "$1" "${@:5}"
	says client "^failed \\($2\\)"
	ms=$(milliseconds client '^failed')
	if [ "$ms" -lt "$3" ] || [ "$ms" -gt "$4" ]; then
		fail "$1: $(grep '^failed' "$work/client"), not within $3 to $4 ms"
	fi
	says client '^receive Operation canceled'
	echo "${*:5}: to $1: $(grep '^failed' "$work/client")"
}

make_hosts 3
for provider in ${OTHER:+tcp} ${OTHER:-weft tcp}; do
	[ "$provider" != "${OTHER-}" ] || continue
	of=(-p "$provider")

	meet "${of[@]}" -a
	says listener '^asked by 10.77.0.2$'
	says listener '^heard 42$'
	on 2 pkill -KILL -x hosts_cm
	says listener '^shutdown'
	says listener '^receive Operation canceled'

	# Both sleep, and receive no word; by name, and by IPv6.
	serve 1 "${of[@]}"
	call 3 h1 "${of[@]}"
	says listener '^connected'
	on 1 pkill -KILL -x hosts_cm
	says client '^shutdown'

	next_port
	not_connected 10.77.0.1 'Connection refused' 0 1500 "${of[@]}"
	not_connected 10.99.0.1 'Network is unreachable' 0 1500 "${of[@]}"

	# A host that does not exist, and no answer.
	drop 1
	on 2 ip neigh replace 10.77.0.1 lladdr 02:00:00:00:00:01 dev eth0
	not_connected 10.77.0.1 'Connection timed out' 1500 8000 "${of[@]}"
	on 2 ip neigh del 10.77.0.1 dev eth0
	restore 1

	# The host is cut off: idle, before a word, and with a long message in flight.
	for how in '' -d -l; do
		meet "${of[@]}" $how
		drop 1
		says client '^shutdown' 20
		says listener '^shutdown' 20
		says client '^receive Operation canceled'
		[ "$how" != -l ] || says client '^send '
		echo "$provider $how: the wire is pulled: $(grep '^shutdown' "$work/client")"
		restore 1
	done
done
