#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# TIMEOUT=120
# The library has every symbol of the system's libfabric, by abidiff.
set -u
cd "$(dirname "$0")/../.." || exit
lib=${BUILD:-build}/libfabric.so
command -v abidiff >/dev/null || { echo "abidiff: the program is not installed"; exit 77; }

# Compares with a library of the system, not with an installed build of this project.
for theirs in /usr/lib/*/libfabric.so.1 /usr/lib64/libfabric.so.1; do
	[ -e "$theirs" ] && ! readelf --dyn-syms -W "$theirs" | grep -q WEFT_ && break
	theirs=
done
[ -n "$theirs" ] || { echo "abidiff: no libfabric of the system to compare with"; exit 77; }

# Additions are fine; removed or changed symbols make the status non-zero.
abidiff --no-added-syms "$theirs" "$lib" || { echo "abidiff: ours is no replacement of $theirs"; exit 1; }
