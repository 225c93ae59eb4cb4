#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# TIMEOUT=120
# Every symbol of the system's libfabric is in ours, as abidiff sees it.
set -u
cd "$(dirname "$0")/../.." || exit
lib=${BUILD:-build}/libfabric.so
command -v abidiff >/dev/null || { echo "abidiff: the program is not installed"; exit 77; }

# A library of the system's own, not one of ours that was installed.
for theirs in /usr/lib/*/libfabric.so.1 /usr/lib64/libfabric.so.1; do
	[ -e "$theirs" ] && ! readelf --dyn-syms -W "$theirs" | grep -q WEFT_ && break
	theirs=
done
[ -n "$theirs" ] || { echo "abidiff: no libfabric of the system to compare with"; exit 77; }

# Ours has more; what was taken away or changed makes the status.
abidiff --no-added-syms "$theirs" "$lib" || { echo "abidiff: ours is no replacement of $theirs"; exit 1; }
