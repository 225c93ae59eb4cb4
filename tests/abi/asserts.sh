#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Compares the public headers with the tables of the API: sizes, offsets, types, values, prototypes,
# with gcc and clang, or the COMPILERS named.
set -u
cd "$(dirname "$0")/../.." || exit
tables=tests/abi/tables
check=$(mktemp --suffix=.c)
trap 'rm -f "$check"' EXIT
python3 $tables/gen_check.py $tables/structs-2.6.tsv $tables/constants-2.6.tsv \
	--calls $tables/calls.tsv --release 2.6 >"$check" || exit 1
tried=0
for cc in ${COMPILERS:-gcc clang}; do
	command -v $cc >/dev/null || continue
	tried=1
	if ! $cc -std=gnu11 -w -Iinclude -fsyntax-only "$check" 2>"$check.log"; then
		head -n 40 "$check.log"
		rm -f "$check.log"
		echo "asserts: the headers differ from the tables ($cc)"
		exit 1
	fi
	rm -f "$check.log"
done
[ $tried -eq 1 ] || { echo "asserts: none of ${COMPILERS:-gcc, clang} here"; exit 77; }
