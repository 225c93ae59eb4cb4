#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The library, without its symbols, has less than 1,250,000 bytes: it is loaded into every process of a job.
set -u
cd "$(dirname "$0")/../.." || exit
build=${BUILD:-build}
most=1250000

skip() {
	echo "size: $1"
	exit 77
}

grep -qE '^CFLAGS = .*-O[23]' config.mk && ! grep -q -- '-fsanitize' config.mk || skip "the build is not optimised"
[ "$(uname -m)" = x86_64 ] || skip "the limit is for x86-64"
bare=$(mktemp)
trap 'rm -f "$bare"' EXIT
strip -o "$bare" "$build/libfabric.so.1" || exit
bytes=$(stat -c %s "$bare")
echo "$bytes bytes"
[ "$bytes" -lt $most ] || { echo "size: $bytes bytes, $most or more"; exit 1; }
