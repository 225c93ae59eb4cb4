#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two builds of one tree have the same bytes, though their folders, times, locales and numbers of jobs differ: the
# library, its archive and a tool.
# TIMEOUT=600
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath "${BUILD:-build}")
work=$(mktemp -d "$build/reproducible.XXXXXX")
trap 'rm -rf "$work"' EXIT
parts=(libfabric.so libfabric.a bin/fi_info)

# built FOLDER JOBS [SETTING...]: builds a copy of the tree there.
built() {
	local folder=$1 jobs=$2
	shift 2
	mkdir -p "$folder"
	cp -R Makefile config.mk.in configure.ac libfabric.map include pkgconfig src tools examples "$folder"
	env -u MAKEFLAGS -u BUILD "$@" make -s -C "$folder" "-j$jobs" "${parts[@]/#/build/}" >"$work/log" 2>&1 ||
		{ tail -n 20 "$work/log" && exit 1; }
}

built "$work/a" 1 LC_ALL=C TZ=UTC
built "$work/another/folder" 2 LC_ALL=C.UTF-8 TZ=Asia/Tokyo
for part in "${parts[@]}"; do
	cmp "$work/a/build/$part" "$work/another/folder/build/$part"
	[ "$(strings -a "$work/a/build/$part" | grep -c -F "$work")" = 0 ] || { echo "$part names its folder" && exit 1; }
done
echo "${#parts[@]} files, the same bytes"
