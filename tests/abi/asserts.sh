#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Compares the public headers with the tables of the API: sizes, offsets, types, values, prototypes,
# with gcc and clang, or the COMPILERS named. What API 2.7 adds is in tables of its own, whose rows replace those of 2.6.
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
present structs 2 >"$work/structs"
present constants 1 >"$work/constants"
python3 $tables/gen_check.py "$work/structs" "$work/constants" --calls $tables/calls.tsv --release 2.6 >"$check" || exit 1
tried=0
for cc in ${COMPILERS:-gcc clang}; do
	command -v $cc >/dev/null || continue
	tried=1
	if ! $cc -std=gnu11 -w -Iinclude -fsyntax-only "$check" 2>"$check.log"; then
		head -n 40 "$check.log"
		echo "asserts: the headers differ from the tables ($cc)"
		exit 1
	fi
done
[ $tried -eq 1 ] || { echo "asserts: none of ${COMPILERS:-gcc, clang} here"; exit 77; }
