#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The lines of src/ that ran in a build made with --coverage: tests/coverage.sh FOLDER
# A line of a header counts once, and as run if any file that includes it ran it.
set -eu
cd "$(dirname "$0")/.."
list=$(find "${1:-build-coverage}/src" -name '*.gcno')
# shellcheck disable=SC2086 # file names without spaces
gcov --stdout $list 2>/dev/null | awk -F: '
	$2 ~ /^ *0$/ { if ($3 == "Source") file = $4; next }
	file !~ /^src\// || $1 ~ /^ *-$/ || $2 !~ /^ *[0-9]+$/ { next }
	{ key = file ":" $2 + 0 }
	!(key in ran) { ran[key] = 0; lines[file]++ }
	$1 !~ /#|=/ && !ran[key] { ran[key] = 1; hit[file]++ }
	END {
		for (f in lines) {
			printf "%5.1f %%  %5d lines  %s\n", 100 * hit[f] / lines[f], lines[f], f | "sort -n"
			all += lines[f]
			got += hit[f]
		}
		close("sort -n")
		if (!all)
			exit 1
		printf "%5.1f %%  of %d lines of src/ run\n", 100 * got / all, all
	}'
