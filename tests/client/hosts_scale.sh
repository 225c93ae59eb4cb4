#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Collectives of members on several hosts: as many bytes cross the network as the simulation of
# docs/SCALE.md says.
# TIMEOUT=180
# shellcheck disable=SC2154,SC2034 # what hosts.bash sets and uses
. "$(dirname "$0")/hosts.bash"
hosts=3 each=2
calls=97 # of collective.c, of 1 MiB
ours=(-std=gnu11 -O2 -Iinclude)
${CC:-cc} "${ours[@]}" -o "$work/collective" tests/bench/collective.c "$lib" -pthread || fail "collective.c does not compile"
${CC:-cc} "${ours[@]}" -Isrc -I. -DWEFT_API_2_7 -o "$work/scale" tests/bench/scale.c src/coll/plan/*.c ||
	fail "scale.c does not compile"

wire() {
	local h sum=0
	for ((h = 1; h <= hosts; h++)); do sum=$((sum + $(received $h eth0))); done
	echo $sum
}

# check WHAT: the bytes of all calls, and at most a twentieth more for headers and answers.
check() {
	local said before came pids="${holder[*]}"
	read -r _ _ _ _ _ said < <(echo "$1 1048576 $hosts $each levels" | "$work/scale" 1 1 1 1 1)
	before=$(wire)
	LD_LIBRARY_PATH=$(dirname "$lib") timeout -s KILL 80 "$work/collective" weft "$((hosts * each))@${pids// /,}" "$1" 1048576 \
		>"$work/out" 2>&1 || fail "$1: $(cat "$work/out")"
	came=$((($(wire) - before) / calls))
	echo "$1: $said bytes between hosts, $came with headers"
	[ "$said" -gt 1000000 ] && [ $came -ge "$said" ] && [ $came -lt $((said / 20 * 21)) ] || fail "$1: $came bytes instead of $said"
}

apart= # members enter the hosts by the process ids of their holders
make_hosts $hosts
check allreduce
check broadcast
