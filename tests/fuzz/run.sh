#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Builds the fuzzers of this folder and the library with the address and undefined behaviour
# sanitizers. Runs each for FUZZ_SECONDS, two at once; each ends with a clean close of everything and a
# look for leaks. New corpus entries stay in the build folder; the log of a crash is printed.
# TIMEOUT=600
set -u
cd "$(dirname "$0")/../.." || exit
export BUILD=${BUILD:-build}
seconds=${FUZZ_SECONDS:-60}
sanitizers=address,undefined
flags=(-O1 -g -fno-omit-frame-pointer -fsanitize="$sanitizers" -fno-sanitize-recover=undefined)
unset MAKEFLAGS MAKELEVEL MFLAGS # of the make that runs this
work=$(realpath -m "$BUILD/fuzz")
mkdir -p "$work"

skip() {
	echo "$*"
	exit 77
}

command -v clang >/dev/null || skip "clang is not installed"
echo 'int LLVMFuzzerTestOneInput(const char *data, long len); int LLVMFuzzerTestOneInput(const char *data, long len)
{ return !data && len; }' | clang -fsanitize=fuzzer,address -x c -o "$work/try" - 2>"$work/try.log" ||
	skip "clang has no runtime for fuzzers here: $(tail -n 1 "$work/try.log")"

make -s -j2 BUILD="$work" CC=clang CFLAGS="${flags[*]} -fsanitize=fuzzer-no-link" "$work/libfabric.a" >"$work/make.log" 2>&1 ||
	{ tail -n 20 "$work/make.log" && exit 1; }
# Libraries to link with.
libs=$(sed -n 's/^LIBS = //p' config.mk)

# fuzz NAME: builds and runs a fuzzer; its log is NAME.log.
fuzz() {
	local name=$1
	# shellcheck disable=SC2086 # LIBS is a list of words
	clang -std=gnu11 -D_GNU_SOURCE -Wall -Wextra ${WERROR-} -pthread "${flags[@]}" -fsanitize=fuzzer -Isrc -Iinclude -I. -DWEFT_API_2_7 \
		-o "$work/$name" "tests/fuzz/$name.c" "$work/libfabric.a" $libs >"$work/$name.log" 2>&1 || return
	mkdir -p "$work/corpus/$name" &&
		"$work/$name" -max_total_time="$seconds" -max_len=2048 -timeout=20 -print_final_stats=1 \
			-artifact_prefix="$work/$name." "$work/corpus/$name" "tests/fuzz/corpus/$name" >>"$work/$name.log" 2>&1
}

# figures LOG: prints the number of inputs and of edges covered.
figures() {
	awk '/ cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) }
		/^stat::number_of_executed_units:/ { runs = $2 }
		END { printf "%d inputs, %d edges\n", runs, cov }' "$1"
}

found=() names=() pids=()
# await N: waits until at most N fuzzers run; reports each that ended.
await() {
	while [ ${#pids[@]} -gt "$1" ]; do
		if wait "${pids[0]}"; then
			echo "${names[0]}: $(figures "$work/${names[0]}.log")"
		else
			found+=("${names[0]}: $(grep -m 1 -E '^tests/fuzz/|ERROR:|runtime error:' "$work/${names[0]}.log")")
			echo "${names[0]} has found something:"
			grep -v '\(NEW\|REDUCE\|RELOAD\|pulse\) *cov:\|NEW_FUNC' "$work/${names[0]}.log" | tail -n 60
		fi
		names=("${names[@]:1}") pids=("${pids[@]:1}")
	done
}

for source in tests/fuzz/*.c; do
	await 1
	names+=("$(basename "$source" .c)")
	fuzz "${names[-1]}" &
	pids+=($!)
done
await 0
[ ${#found[@]} -eq 0 ] || { printf '%s\n' "${found[@]}" && exit 1; }
