#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Exports of the library: in the FABRIC versions exactly the symbols of the table, the versions in
# one chain, and every call of the API, inline ones too, in some version.
set -u
cd "$(dirname "$0")/../.." || exit
lib=${BUILD:-build}/libfabric.so
tables=tests/abi/tables
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
export LC_ALL=C

# differ FILE FILE TEXT: fails with the lines that only the first file has.
differ() {
	local only
	only=$(comm -23 "$1" "$2")
	[ -z "$only" ] || { echo "symbols: $3:" && printf '%s\n' "$only" | sed 's/^/    /' && status=1; }
}

readelf --dyn-syms -W "$lib" >"$dir/readelf" || { echo "symbols: cannot read $lib"; exit 1; }
awk '$7 != "UND" && $8 ~ /@/ { print $8 } $7 == "ABS" && $8 !~ /@/ { print $8 "@node" }' "$dir/readelf" |
	sed 's/^\([A-Z]*_[0-9.]*\)@.*/\1@node/' | sort -u >"$dir/have"
# Programs are linked to what the release has; what 2.7 adds is there for those that ask for it.
awk -F'\t' '
	FNR > 1 && $6 == "yes" && !(($1, $2) in seen) {
		seen[$1, $2]
		print $5 ~ /node/ ? $1 "@node" : $1 (NR == FNR && $3 == "yes" ? "@@" : "@") $2
	}
' $tables/symbols.tsv $tables/symbols-2.7.tsv | sort >"$dir/want"
grep -v WEFT_ "$dir/have" >"$dir/fabric"
differ "$dir/want" "$dir/fabric" "missing"
differ "$dir/fabric" "$dir/want" "exported, but not in the table"

sed 's/@.*//' "$dir/have" | sort -u >"$dir/names"
awk -F'\t' 'NR > 1 && $7 == "yes" && $3 ~ /^(static inline|exported symbol)/ { print $1 }' $tables/calls.tsv |
	sort -u >"$dir/calls"
differ "$dir/calls" "$dir/names" "calls that are no symbols"
grep 'WEFT_' "$dir/have" | grep -v '@node' | sed 's/@.*//' | sort -u >"$dir/own"
differ "$dir/own" "$dir/calls" "in a node of our own, but no call of the interface"

# Versions are defined in order; a version's parent is on the line below it.
readelf -V -W "$lib" | awk '
	/Version definition section/ { on = 1 }
	/Version needs section/ { on = 0 }
	on && / Name: / { name = $NF }
	on && /Parent 1:/ && name ~ /^FABRIC_/ { print name, $NF }' | sort -V >"$dir/parents"
for n in 1 2 3 4 5 6 7 8 9 10; do echo "FABRIC_1.$n FABRIC_1.$((n - 1))"; done | sort -V >"$dir/chain"
cmp -s "$dir/parents" "$dir/chain" || { echo "symbols: the nodes and their parents are:"; cat "$dir/parents"; status=1; }

# Programs built with our headers start on a library of the release: they need no younger node, and none of ours.
for program in "$(dirname "$lib")"/bin/*; do
	readelf -V -W "$program" | awk '/File: libfabric/ { on = 1; next } / File: / { on = 0 } on && / Name: / { print $3 }' |
		sort -u >"$dir/needs"
	[ -s "$dir/needs" ] || { echo "symbols: $program needs no version of the library"; status=1; }
	needs=$(grep -vx 'FABRIC_1\.[0-9]' "$dir/needs") && echo "symbols: $program needs ${needs//$'\n'/, }" && status=1
done
exit $status
