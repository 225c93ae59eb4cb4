#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# TIMEOUT=300
# Each public header compiles alone, in every language standard that programs use, without a
# warning.
set -u
cd "$(dirname "$0")/../.." || exit
log=$(mktemp)
trap 'rm -f "$log"' EXIT
warn='-Wall -Wextra -pedantic -Werror'
tried=0 failed=0

# one COMPILER LANGUAGE STANDARD: compiles each header in a file of its own.
one() {
	local header
	echo 'int main(void) { return 0; }' | $1 -x "$2" -std="$3" -fsyntax-only - 2>/dev/null || return
	for header in include/rdma/*.h include/rdma/*/*.h; do
		tried=$((tried + 1))
		# shellcheck disable=SC2086 # several words
		echo "#include <${header#include/}>" | $1 -x "$2" -std="$3" $warn -Iinclude -fsyntax-only - 2>"$log" && continue
		echo "headers: $header in $3 by $1:"
		head -n 12 "$log"
		failed=$((failed + 1))
	done
}

for std in c99 c11 c2x; do
	one gcc c $std
	one clang c $std
done
for std in c++11 c++17; do
	one g++ c++ $std
	one clang++ c++ $std
done
[ $tried -gt 0 ] || { echo "headers: no compiler here"; exit 77; }
[ $failed -eq 0 ] || { echo "headers: $failed of $tried compilations failed"; exit 1; }
