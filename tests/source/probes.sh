#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The static probes: weft-probes(7) documents those of the sources, with the number of their
# arguments; a library that was configured with sys/sdt.h has a note for each; and the files that
# have probes compile without the header, and then have none.
set -u
cd "$(dirname "$0")/../.." || exit
build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "probes: $1"
	exit 1
}

# Lines "NAME ARGUMENTS".
grep -rhoE '\bPROBE[0-9]\([a-z]+' src --include='*.c' | sed -E 's/PROBE([0-9])\(([a-z]+)/\2 \1/' | sort -u >"$work/sources"
sed -nE 's/^\.It Li ([a-z]+) Ar (.*)/\1 \2/p' man/weft-probes.7 | awk '{print $1, NF - 1}' | sort >"$work/page"
[ "$(wc -l <"$work/sources")" -ge 5 ] || fail "only these probes were found: $(cat "$work/sources")"
diff "$work/sources" "$work/page" || fail "the sources (<) and man/weft-probes.7 (>) differ"

cc=${CC:-$(sed -n 's/^CC = //p' config.mk)}
flags=$(sed -n 's/^CPPFLAGS = //p' config.mk | sed 's/-DWEFT_PROBES//')
grep -rlE '\bPROBE[0-9]\(' src --include='*.c' >"$work/files"
while read -r file; do
	# shellcheck disable=SC2086 # lists of words
	$cc -std=gnu11 -D_GNU_SOURCE -DWEFT_NO_DEPRECATED -DWEFT_API_2_7 -Wall -Wextra ${WERROR-} -O1 -Isrc -Iinclude -I. $flags \
		-c -o "$work/bare.o" "$file" || fail "$file does not compile without sys/sdt.h"
	! readelf -n "$work/bare.o" | grep -q stapsdt || fail "$file has probes that nobody asked for"
done <"$work/files"

if ! grep -q '^CPPFLAGS =.*-DWEFT_PROBES' config.mk; then
	! readelf -n "$build/libfabric.so" | grep -q stapsdt || fail "the library has probes that configure left out"
	echo "configured without sys/sdt.h: no notes"
	exit 0
fi
readelf -n "$build/libfabric.so" | awk '
	/Provider: /	{ ours = $2 == "weft" }
	ours && /Name: /	{ name = $2 }
	ours && /Arguments: /	{ print name, NF - 1 }' | sort -u >"$work/notes"
diff "$work/sources" "$work/notes" || fail "the sources (<) and the notes of $build/libfabric.so (>) differ"
echo "$(wc -l <"$work/notes") probes"
