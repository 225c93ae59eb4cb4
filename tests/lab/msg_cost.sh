#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The cost of posting a message on a connected endpoint of the provider "verbs" beside libibverbs:
# the number of instructions executed in the library, with the domain's lock.
# TIMEOUT=120
. "$(dirname "$0")/lab.bash"
need awk
grep -qE '^CFLAGS = .*-O[23]' config.mk && ! grep -q -- '-fsanitize' config.mk || skip "the build is not optimised"
declare -A budget=([send]=60 [send-4096]=60 [recv]=85 [inject]=70)
# The figures are for gcc's code; other compilers may need a quarter more.
grep -q 'clang version' "$BUILD/libfabric.so" && more=25 || more=0

status=0
timeout 100 "$BUILD/t/lab_msg_steps" "${address[0]}" >"$work/steps" || status=$?
[ $status -ne 77 ] || skip "this system does not let a process trace its child"
[ $status -eq 0 ] || fail "the traced program ended with status $status: $(tail -n 5 "$work/steps")"
for call in "${!budget[@]}"; do
	got=$(awk -v call="$call" '$1 == "call" { on = $2 == call } on && $1 == "own" { n++ } END { print n + 0 }' "$work/steps")
	most=$((budget[$call] * (100 + more) / 100))
	echo "$call: $got instructions, $most at most"
	[ "$got" -gt 0 ] || fail "$call: nothing was counted"
	[ "$got" -le $most ] || fail "$call: $got instructions of the library, $most at most"
done
