#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The calls of RPC libraries in their order, from the constructor that imports the log to the
# destructor that closes it: see rpc.c. Once with a plain endpoint, once with a scalable endpoint of
# two contexts.
# TIMEOUT=240
. "$(dirname "$0")/ours.bash"
program=$work/rpc
${CC:-cc} -std=gnu11 -Wall -Wextra -O2 -Iinclude -o "$program" tests/client/rpc.c "$lib" -pthread ||
	fail "rpc.c does not compile"
export LD_LIBRARY_PATH=$BUILD
limit=$((50 * ${SLOWER:-1}))

# said WHO: the process has printed its last line, and that of its destructor.
said() {
	[ "$(tr '\n' , <"$work/$1")" = 'done,log closed,' ] || fail "$*: $(cat "$work/$1")"
}

# round PROVIDER [CONTEXTS]
round() {
	local server file=$work/name
	rm -f "$file"
	start timeout -s KILL "$limit" "$program" "$1" "$file" server "${@:2}" >"$work/server" 2>&1
	server=$pid
	within "$limit" [ -e "$file" ] || fail "$*: the server does not come up: $(cat "$work/server")"
	timeout -s KILL "$limit" "$program" "$1" "$file" client "${@:2}" >"$work/client" 2>&1 ||
		fail "$*: client: $(cat "$work/client")"
	wait "$server" || fail "$*: server: $(cat "$work/server")"
	said client
	said server
	echo "$*: done"
}

for provider in shm tcp weft; do
	for _ in {1..3}; do
		round $provider
		round $provider 2
	done
done
