#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Four hosts of two processes each, all to all, without configuration. Processes of one host must
# use shared memory, all others the network, although all hosts have the same name, the same process
# ids and one common address. The bytes on loopback and wire are counted; with TCP alone both carry
# data, which shows that the count can fail.
#     OTHER=/path/libfabric.so.1 bash tests/client/hosts.sh    tests the test, on another library
# TIMEOUT=180
# shellcheck disable=SC2154 # what hosts.bash sets
. "$(dirname "$0")/hosts.bash"
others=4 each=2
total=$((others * each))
lib=${OTHER:-$lib}
program=$work/hosts_alltoall
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -Iinclude -o "$program" tests/client/hosts_alltoall.c "$lib" -pthread ||
	fail "hosts_alltoall.c does not compile"

# count INTERFACE: sets $bytes, an array by host.
count() {
	local h
	bytes=()
	for ((h = 1; h <= others; h++)); do bytes[h]=$(received $h "$1"); done
}

# start_all SETTING OPTION...: sets $pids.
start_all() {
	local rank
	pids=()
	mkdir "$work/meet"
	for ((rank = 0; rank < total; rank++)); do
		start_on $((rank / each + 1)) env LD_LIBRARY_PATH="$(dirname "$lib")" "$1" timeout -s KILL 50 "$program" \
			"${@:2}" "$work/meet" $rank $total $each >"$work/out.$rank" 2>&1
		pids+=("$pid")
	done
}

# all_to_all SETTING PROVIDER ADDRESS OPTION...: ADDRESS is that of the first host without its last
# digit.
all_to_all() {
	local rank failed='' lo eth0
	count lo && lo=("${bytes[@]}")
	count eth0 && eth0=("${bytes[@]}")
	start_all "$1" "${@:4}"
	for rank in "${!pids[@]}"; do wait "${pids[rank]}" || failed+=" $rank"; done
	[ -z "$failed" ] || fail "$*: ranks$failed: $(head -n 5 "$work"/out.*)"
	for ((rank = 0; rank < total; rank++)); do
		grep -qF "rank $rank of $total: $2 at $3$((rank / each + 1))" "$work/out.$rank" ||
			fail "$*: rank $rank should be $2 at $3$((rank / each + 1)): $(cat "$work/out.$rank")"
	done
	count lo && judge_bytes "$2" lo inside "${lo[@]}"
	count eth0 && judge_bytes "$2" eth0 outside "${eth0[@]}"
	rm -rf "$work/meet"
	echo "$*: $(cat "$work/out.0")"
}

# judge_bytes PROVIDER INTERFACE WORD BEFORE...: checks whether the processes' data came by that
# interface.
judge_bytes() {
	local h said came before=("${@:4}")
	for ((h = 1; h <= others; h++)); do
		came=$((bytes[h] - before[h - 1]))
		said=$(for ((i = 0; i < each; i++)); do
			grep -o "[0-9]* bytes inside, [0-9]* outside" "$work/out.$(((h - 1) * each + i))"
		done | awk -v w="$3" '{ sum += w == "inside" ? $1 : $4 } END { printf "%d", sum }')
		[ "$said" -gt 1000000 ] || fail "host $h: $said bytes $3 prove nothing"
		if [ "$1 $2" = "weft lo" ]; then
			[ $came -lt 65536 ] || fail "weft, host $h: of $said bytes for each other, $came on the loopback"
		else
			[ $came -ge "$said" ] || fail "$1, host $h: $said bytes $3, but $came by $2"
		fi
	done
}

make_hosts $others pair
if [ -n "${OTHER-}" ]; then
	all_to_all FI_PROVIDER=tcp 'tcp;ofi_rxm' fi_sockaddr_in://10.77.0. -a
	exit
fi
all_to_all NOTHING= weft fi_sockaddr_in://10.77.0.
all_to_all NOTHING= weft fi_sockaddr_in6://[fd77:: -6
all_to_all FI_PROVIDER=tcp tcp fi_sockaddr_in://10.77.0.
all_to_all FI_PROVIDER=tcp tcp fi_sockaddr_in6://[fd77:: -6
