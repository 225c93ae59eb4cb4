#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Nothing is left in /dev/shm or /tmp: while a ping-pong runs, after it ended, and after its
# processes were killed. If permitted, the test has its own /dev/shm and /tmp, so that files of
# other programs do not count.
# TIMEOUT=60
. "$(dirname "$0")/ours.bash"
need pgrep
pingpong=$BUILD/bin/fi_pingpong

if [ "${1-}" = inside ]; then
	for folder in /tmp /dev/shm; do mount -t tmpfs none $folder || fail "mount"; done
else
	case $BUILD/ in /tmp/* | /dev/shm/*) tries=() ;; *) tries=(-m -rm) ;; esac
	for option in "${tries[@]}"; do
		if unshare "$option" true 2>/dev/null; then
			unshare "$option" bash "$PWD/tests/client/no_leftovers.sh" inside
			exit
		fi
	done
fi

# Prints the entries of the two folders, and files there that PID... hold open or mapped, also
# unlinked ones. Leaves out the build folder, which may be there.
entries() {
	{
		find /dev/shm /tmp -mindepth 1 2>/dev/null
		local pid
		for pid in "$@"; do
			find "/proc/$pid/fd" -lname '/dev/shm/*' -printf '%l\n' -o -lname '/tmp/*' -printf '%l\n'
			grep -oE '(/dev/shm|/tmp)/.*' "/proc/$pid/maps"
		done
	} | grep -vF "$BUILD/"
}

# nothing_new WHEN PID...
nothing_new() {
	local new
	new=$(comm -13 "$work/before" <(entries "${@:2}" | sort -u))
	[ -z "$new" ] || fail "$1: $new"
}

# run_pair PROVIDER TURNS: starts both programs; sets $server and $client to their process ids.
run_pair() {
	local options=(-p "$1" -e rdm -m tagged -S 65536 -I "$2")
	next_port
	start "$pingpong" "${options[@]}" -B $port >"$work/server" 2>&1
	server=$pid
	within 10 listening $port || fail "the server does not listen: $(cat "$work/server")"
	start "$pingpong" "${options[@]}" -P $port 127.0.0.1 >"$work/client" 2>&1
	client=$pid
}

entries | sort -u >"$work/before"
for provider in weft shm; do
	run_pair $provider 100
	{ wait "$client" && wait "$server"; } || fail "$provider: $(cat "$work/server" "$work/client")"
	nothing_new "$provider, after it ended"

	run_pair $provider 100000000
	sleep 1
	kill -0 "$server" "$client" || fail "$provider: it did not run: $(cat "$work/server" "$work/client")"
	assert_ours "$server"
	nothing_new "$provider, while it runs" "$server" "$client"
	kill -KILL "$client"
	sleep 0.2
	nothing_new "$provider, after the client was killed"
	kill -KILL "$server" 2>/dev/null
	wait "$client" "$server" 2>/dev/null
	nothing_new "$provider, after both were killed"
done
