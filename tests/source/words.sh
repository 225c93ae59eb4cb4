#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Proves that no invented word replaces a standard term, alone or as a part of an identifier.
# docs/GLOSSARY.md has the terms to use. The rule is first tested on examples that break it.
set -u
cd "$(dirname "$0")/../.." || exit

invented='lobby strangers? knock(s|ed|ing)? dial(s|ed|ing)? unasked landings? lend(s|ing)? lent conceal(s|ed)? bury buried
graves? heirs? twins? deaf patient habits? stash(es|ed)? whoever said_bye'
# The guest of the lab is a virtual machine.
guests='guests?'

# found ROOT WORDS FOLDER...: prints "file:line: text" for each line with one of the words.
found() {
	local root=$1 words=$2
	shift 2
	# shellcheck disable=SC2086 # a list of words
	words=$(printf '|%s' $words)
	(cd "$root" && grep -rniIE "(^|[^[:alpha:]])(${words#|})([^[:alpha:]]|\$)" "$@")
}

fail() {
	echo "words: $1"
	exit 1
}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/src"
caught() {
	echo "$1" >"$tree/src/a.c"
	[ -n "$(found "$tree" "$invented" src)" ] || fail "not caught: $1"
}
accepted() {
	echo "$1" >"$tree/src/a.c"
	[ -z "$(found "$tree" "$invented" src)" ] || fail "wrongly caught: $1"
}
caught 'struct lobby lobby;'
caught '/* Strangers knock here. */'
caught 'static int knock_again(void);'
caught '#define TCP_LEND_MIN 1'
accepted 'int habitat, silent, theirs, radial;'

places=(src include tests tools examples docs man README.md CONTRIBUTING.md)
broken=$(found . "$invented" "${places[@]}" | grep -v '^tests/source/\(words.sh\|names.py\):\|^docs/GLOSSARY.md:')
[ -z "$broken" ] || fail "invented words:
$broken"
broken=$(found . "$guests" src include tests/unit tests/api tests/fault tests/fuzz tools examples docs)
[ -z "$broken" ] || fail "an accepted connection is no guest:
$broken"
