#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The calls of clients that have agents, runtimes or layers of their own, in their order: each program of orders/ says
# whose. Each runs over all transports that have what it asks for.
# TIMEOUT=600
. "$(dirname "$0")/ours.bash"
export LD_LIBRARY_PATH=$BUILD
failed=0

# run NAME PROVIDER...
run() {
	local provider
	${CC:-cc} -std=gnu11 -D_GNU_SOURCE -Wall -Wextra ${WERROR-} -O2 -Iinclude -o "$work/$1" "tests/client/orders/$1.c" "$lib" \
		-pthread || fail "$1.c does not compile"
	for provider in "${@:2}"; do
		"$work/$1" "$provider" >"$work/out" 2>&1 && echo "$1 over $provider: done" && continue
		echo "$1 over $provider: failed: $(cat "$work/out")"
		failed=1
	done
}

for program in agent fetcher layers leaver plugin publisher runtime unexpected; do
	run $program weft shm tcp
done
run wildcard tcp udp
[ $(find tests/client/orders -name '*.c' | wc -l) -eq 9 ] || fail "a program of orders/ is not run"
exit $failed
