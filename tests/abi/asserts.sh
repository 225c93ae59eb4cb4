#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Compares the public headers with the tables of the API: sizes, offsets, types, values, prototypes,
# with gcc and clang, or the COMPILERS named. What API 2.7 adds is in tables of its own, whose rows replace those of 2.6,
# and in the headers if WEFT_API_2_7 is defined.
set -u
cd "$(dirname "$0")/../.." || exit
tables=tests/abi/tables
work=$(mktemp -d)
check=$work/check.c
trap 'rm -rf "$work"' EXIT

# present NAME KEYS: prints the table NAME of 2.6 with the rows of 2.7; rows are told by their first KEYS columns.
present() {
	awk -F'\t' -v keys="$2" '
		{ key = keys == 1 ? $1 : $1 FS $2 }
		NR == FNR { if (FNR > 1) row[key] = $0; next }
		!(key in row)
		END { for (key in row) print row[key] }
	' "$tables/$1-2.7.tsv" "$tables/$1-2.6.tsv"
}
present structs 2 >"$work/structs-2.7"
present constants 1 >"$work/constants-2.7"
tried=0

# same STRUCTS CONSTANTS OPTION...: the headers, compiled with the options, are as the tables say.
same() {
	local cc
	python3 $tables/gen_check.py "$1" "$2" --calls $tables/calls.tsv --release 2.6 >"$check" || exit 1
	for cc in ${COMPILERS:-gcc clang}; do
		command -v $cc >/dev/null || continue
		tried=1
		$cc -std=gnu11 -w -Iinclude "${@:3}" -fsyntax-only "$check" 2>"$check.log" && continue
		head -n 40 "$check.log"
		echo "asserts: the headers differ from the tables ($cc ${*:3})"
		exit 1
	done
}
same $tables/structs-2.6.tsv $tables/constants-2.6.tsv
same "$work/structs-2.7" "$work/constants-2.7" -DWEFT_API_2_7

# Without the macro, no name of 2.7 is there.
awk -F'\t' 'FNR == 1 { next } FILENAME ~ /constants/ { print $1 } /<total>/ { print $1 }
	$2 ~ /xpu|lookup2/ { print $2 }' $tables/constants-2.7.tsv $tables/structs-2.7.tsv | sed 's/^struct //' |
	grep -i 'xpu\|lookup2' | sort -u >"$work/names"
[ "$(wc -l <"$work/names")" -eq 9 ] || { echo "asserts: names of 2.7:" && cat "$work/names"; exit 1; }
for header in include/rdma/*.h; do echo "#include \"$PWD/$header\""; done >"$work/all.c"
if { ${CC:-cc} -Iinclude -E -P -dD "$work/all.c" && ${CC:-cc} -Iinclude -E -P "$work/all.c"; } | grep -wFf "$work/names"; then
	echo "asserts: these are of API 2.7"
	exit 1
fi
[ $tried -eq 1 ] || { echo "asserts: none of ${COMPILERS:-gcc, clang} here"; exit 77; }
