#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The examples of one-sided communication and collectives over queue pairs. Each starts its
# processes and checks its results itself.
# TIMEOUT=200
. "$(dirname "$0")/lab.bash"
provider='verbs;ofi_rxm'

# example LINES PATTERN PROGRAM OPTION...: succeeds in time and prints LINES lines that match.
example() {
	local out
	out=$(timeout $((20 * ${SLOWER:-1})) "$BUILD/bin/$3" -p "$provider" "${@:4}" 2>&1) || fail "${*:3}: $out"
	[ "$(grep -c -- "$2" <<<"$out")" -eq "$1" ] || fail "${*:3}: $1 lines like '$2' expected: $out"
}

example 1 '^process 0: was told 42 .* all 1052592 bytes in place$' rma_put
example 5 '^2 processes: ' shmem_like -n 2
example 2 ', the sum of all 3\.14159265[0-9]$' allreduce -n 2
example 2 ': appended 100 records$' remote_log -n 3 -f "$work/log"
example 1 'refused a tail at offset 12: Invalid argument$' remote_log -n 2 -f "$work/log"
example 1 ': read .* records of 1 writers\?' remote_log -n 2 -f "$work/log"
[ "$(stat -c %s "$work/log")" -eq 4194304 ] || fail "the log is not in its file"
