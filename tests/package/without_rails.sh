#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The folders of rails can go: without them, and with NULL in the one line that names each, the library builds without a warning,
# exports what it did, and passes the other unit tests of their transports, and an api test over tcp that asks for rails.
# TIMEOUT=400
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath "${BUILD:-build}")
work=$(mktemp -d "$build/without.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() {
	echo "without_rails: $1"
	exit 1
}

find . -name 'build*' -prune -o -name .git -prune -o -type f -print0 | tar -c --null -T - | tar -x -C "$work"
cd "$work"
for part in tcp/rails:tcp/tcp_cm.c:tcp verbs/rails:verbs/rdm/verbs_worker.c:verbs; do
	IFS=: read -r folder file name <<<"$part"
	rm -r "src/hw/$folder"
	sed -i "s/&${name}_rails_here;/NULL;/" "src/hw/$file"
	grep -q "${name}_rails_ops = NULL;" "src/hw/$file" || fail "$file does not name the folder in one line"
done
# Those that use neither rails nor what only these have.
mapfile -t tests < <(grep -LE '"hw/[a-z]*/rails/|(fake_rails|fake_regions|rails_pair)\.h' tests/unit/hw_{tcp,verbs}_*.c | sed 's|tests/unit/|t/|; s|\.c$||')
run() { env -u BUILD -u MAKEFLAGS make -s -j"$(nproc)" -k "$@" >log 2>&1 || fail "$(grep -E -A6 "error|FAIL|Assert|:[EF]:" log | head -n 40)"; }
run all
diff <(nm -D --defined-only build/libfabric.so | cut -d' ' -f3) <(nm -D --defined-only "$build/libfabric.so" | cut -d' ' -f3) ||
	fail "other symbols are exported"
run "${tests[@]}"
HW=tcp FI_WEFT_RAILS=2 run t/api_tags
echo "${#tests[@]} unit tests of tcp and verbs pass without rails"
