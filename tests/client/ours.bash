# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034 # what is set here is used by those who source it
# Sourced by the tests of this folder, which run independent clients, built for libfabric, on this
# library. BUILD is the build folder; $work is a folder of the test; processes begun by `start` are
# ended at the end.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
lib=$BUILD/libfabric.so.1
started=()
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

fail() {
	echo "failed: $*"
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

# need COMMAND...: skips the test if one of them is missing.
need() {
	local command
	for command in "$@"; do
		command -v "$command" >/dev/null || skip "$command is not installed"
	done
}

# start COMMAND...: in the background; $pid is its process.
start() {
	"$@" &
	pid=$!
	started+=("$pid")
}

end_all() {
	local pid
	for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null; done
	wait 2>/dev/null
	rm -rf "$work"
}

# within SECONDS COMMAND...: repeats the command until it succeeds.
within() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -le $end ] || return 1
		sleep 0.05
	done
}

# listening PORT: succeeds if a process listens on this TCP port.
listening() {
	grep -qi "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$1") [0-9A-F:]* 0A" /proc/net/tcp /proc/net/tcp6
}

# assert_ours PID: the process has loaded the libfabric of $BUILD, and no other.
assert_ours() {
	local mapped
	mapped=$(awk '/libfabric\.so/ { print $NF }' "/proc/$1/maps" | sort -u)
	[ "$mapped" = "$(realpath "$lib")" ] || fail "process $1 has loaded '$mapped', not $lib"
}

# Each pair of processes uses a port of its own.
declare -i port=$((20000 + $$ % 10000))
next_port() {
	port=$((port + 1))
	while listening $port; do port=$((port + 1)); done
}

# play PROGRAM OPTION...: runs a server and a client of fi_pingpong; the array $setting precedes
# each command.
setting=()
play() {
	local server
	next_port
	start "${setting[@]}" timeout 50 "$1" -B $port "${@:2}" >"$work/server" 2>&1
	server=$pid
	within 10 listening $port || fail "$*: the server does not listen: $(cat "$work/server")"
	assert_ours "$(pgrep -P "$server" -x fi_pingpong)"
	"${setting[@]}" timeout 50 "$1" -P $port "${@:2}" 127.0.0.1 >"$work/client" 2>&1 ||
		fail "$*: client: $(cat "$work/client")"
	wait "$server" || fail "$*: server: $(cat "$work/server")"
}

[ -e "$lib" ] || fail "there is no $lib"
mkdir -p "$BUILD/client"
work=$(mktemp -d "$BUILD/client/XXXXXX")
trap end_all EXIT
trap 'exit 1' INT TERM
