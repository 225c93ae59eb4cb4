#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Proves the size limits of src/: 450 lines for a file, 60 for a function from its first line to its
# last, and six parameters, except for exported functions and those in tables of the public
# interface. Prints the medians. The rules are first tested on examples that break them.
set -u
cd "$(dirname "$0")/../.." || exit

# functions FILE...: prints "FILE LINE NAME LINES PARAMETERS" for each function defined. Relies on
# clang-format: the braces that begin and end a function stand in the first column.
functions() {
	awk '
	FNR == 1 { signature = ""; body = 0 }
	body {
		if (/^}/) {
			print FILENAME, start, name, FNR - start + 1, parameters
			body = 0
			signature = ""
		}
		next
	}
	/^[ \t]*(\/\*|\*|\/\/|#)/ || /^$/ { signature = ""; next }
	/^{$/ && signature ~ /\)$/ { body = 1; measure(); next }
	signature == "" { start = FNR }
	{ signature = signature $0 }
	/;$|^}|{$/ { signature = "" }
	# The last outermost parentheses hold the parameters; attributes with parentheses come
	# before.
	function measure(  i, c, depth, from) {
		for (i = 1; i <= length(signature); i++) {
			c = substr(signature, i, 1)
			if (c == "(" && depth++ == 0) {
				from = i
				parameters = 1
			} else if (c == ")")
				depth--
			else if (c == "," && depth == 1)
				parameters++
		}
		name = substr(signature, 1, from - 1)
		sub(/^.*[ \t*]/, "", name)
		if (substr(signature, from) ~ /^\((void)?\)/)
			parameters = 0
	}' "$@"
}

# public ROOT: prints the functions whose signature the public interface gives.
public() {
	find "$1/src" -name '*.[ch]' -exec grep -oh '\.[a-z_0-9]* = [a-z_0-9]*[,}]' {} + | sed 's/.* = //; s/.$//'
	sed -n 's/^[ \t]*\(fi_[a-z_0-9]*\);.*/\1/p' "$1/libfabric.map" 2>/dev/null
}

# broken_rules ROOT: prints a line for each file or function that is too large.
broken_rules() {
	local path lines
	find "$1/src" -name '*.[ch]' | while read -r path; do
		lines=$(wc -l <"$path")
		[ "$lines" -le 450 ] || echo "$path: $lines lines, at most 450"
	done
	find "$1/src" -name '*.[ch]' | sort | while read -r path; do functions "$path"; done |
		awk '
		NR == FNR { public[$1]; next }
		$4 > 60 { print $1 ":" $2 ": " $3 " has " $4 " lines, at most 60" }
		$5 > 6 && !($3 in public) { print $1 ":" $2 ": " $3 " has " $5 " parameters, at most 6" }
		' <(public "$1"; echo /) -
}

median() { sort -n | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] }'; }

fail() {
	echo "sizes: $1"
	exit 1
}

# with TEXT: makes a tree whose only file has this text and prints its broken rules.
with() {
	printf '%b' "$1" >"$tree/src/base/a.c"
	broken_rules "$tree"
}
caught() { [ -n "$(with "$1")" ] || fail "not caught: ${1:0:70}"; }
accepted() { [ -z "$(with "$1")" ] || fail "wrongly caught: ${1:0:70}: $(with "$1")"; }
lines() { printf "$2%.0s" $(seq "$1"); }

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/base"
long='(int a, int b,\n\t   int c, int (*d)(int, int), int e, int f, int g)\n{\n}\n'
caught "$(lines 451 '\\n')"
accepted "$(lines 450 '\\n')"
caught "int a(void)\n{\n$(lines 58 '\\tf();\\n')}\n"
accepted "int a(void)\n{\n$(lines 57 '\\tf();\\n')}\n"
caught "static __attribute__((noinline, cold)) void *\na(void)\n{\n$(lines 57 '\\tf();\\n')}\n"
caught "static int a$long"
accepted "static int a$long\nstatic struct ops ops = {.send = a, .recv = b};\n"
accepted "static int a(int a, int b, int c, int (*d)(int, int), int e, int f)\n{\n}\n"
accepted "static const int a[] = {\n$(lines 100 '\\t1,\\n')};\n"
accepted "int a(void);\n$(lines 100 'int x;\\n')int b(void)\n{\n}\n"

found=$(broken_rules .)
mapfile -t sources < <(find src -name '*.c')
echo "median lines of a .c file: $(wc -l "${sources[@]}" | awk '$2 != "total" { print $1 }' | median)"
echo "median lines of a function: $(functions "${sources[@]}" | awk '{ print $4 }' | median)"
functions "${sources[@]}" | awk '$4 > 50 { n++ } END { printf "functions over 50 lines: %d of %d\n", n, NR }'
[ -z "$found" ] || fail "too large:
$found"
