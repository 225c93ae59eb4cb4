#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The examples of one-sided communication and collectives. They check their own results; this test
# checks their output, and that they fail when they must.
# TIMEOUT=240
. "$(dirname "$0")/ours.bash"
bin=$BUILD/bin

# example LINES PATTERN PROGRAM OPTION...: succeeds in time and prints LINES lines that match.
example() {
	local out
	out=$(timeout 50 "$bin/$3" "${@:4}" 2>&1) || fail "${*:3}: $out"
	[ "$(grep -c -- "$2" <<<"$out")" -eq "$1" ] || fail "${*:3}: $1 lines like '$2' expected: $out"
}

# fails PATTERN PROGRAM OPTION...: fails in time and prints a line that matches.
fails() {
	local out status
	out=$(timeout 20 "$bin/$2" "${@:3}" 2>&1)
	status=$?
	[ $status -eq 1 ] || fail "${*:2}: status $status: $out"
	grep -q -- "$1" <<<"$out" || fail "${*:2}: nothing like '$1': $out"
}

for provider in weft shm; do
	example 3 '^process 1: wrote' rma_put -p $provider
	example 1 '^process 0: was told 42 .* all 1052592 bytes in place$' rma_put -p $provider
	example 1 '^process 1: was refused a write beyond the end: ' rma_put -p $provider
	for count in 1 2 4 7; do
		example 5 "^$count processes: " shmem_like -n $count -p $provider
	done
	for count in 1 2 5; do
		example $count ', the sum of all 3\.14159265[0-9]$' allreduce -n $count -p $provider
	done
	for count in 2 4 6; do
		example $((count - 1)) ': appended 100 records$' remote_log -n $count -p $provider
	done
	example 1 'refused a tail at offset 12: Invalid argument$' remote_log -p $provider
	example 1 ': read .* records of 3 writers' remote_log -p $provider -f "$work/log"
	[ "$(stat -c %s "$work/log")" -eq 4194304 ] || fail "the log is not in its file"
done

for program in rma_put shmem_like remote_log allreduce; do
	example 1 "^Usage: $program " $program -h
	fails "^Usage: $program " $program -x
	fails 'fi_getinfo: No data available' $program -p no-such-provider
done
fails '^Usage' shmem_like -n 0
fails '^Usage' shmem_like -n 1000
fails '^Usage' remote_log -n 1
fails '^Usage' allreduce -n 0
fails 'no file for the log' remote_log -f "$work/no/such/folder/log"
