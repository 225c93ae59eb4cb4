#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# TIMEOUT=200
# Proves that a build can do without each of the options of a connection: without its file and its line in the table it links, so
# nothing else names it, and endpoints connect, exchange messages, and come and go as before. Last, without all of them.
set -u
cd "$(dirname "$0")/../.." || exit

table=src/conn/conn_options_table.c
mapfile -t options < <(sed -n 's/^\t&conn_\(\w*\)_option,.*/\1/p' $table)
[ ${#options[@]} -ge 4 ] || {
	echo "options: only ${#options[@]} in $table"
	exit 1
}
# What a connection without options has to pass, in the build and over the wire; those that test an option itself are left out.
units="conn_conn conn_rows conn_connect conn_hello xfer_tx xfer_starved"
apis="api_peers api_closes api_source api_cm"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
# With the times of all files, so that only what differs is built again.
cp -a Makefile config.* configure* pkgconfig libfabric.map src include tests "$tree" || exit
ln -s "$PWD/tools" "$PWD/examples" "$tree"
mkdir "$tree/build"
cp -a "$BUILD/src" "$tree/build/src" || exit

# without NAME...: builds and tests what lacks these.
without() {
	local name failed=0
	cp -a $table "$tree/$table"
	cp -a src/conn/conn_*.c "$tree/src/conn/"
	for name in "$@"; do
		sed -i "/&conn_${name}_option,/d" "$tree/$table"
		rm "$tree/src/conn/conn_$name.c"
	done
	rm -f "$tree/build/libfabric."* "$tree/build/${table%.c}.o"
	# shellcheck disable=SC2086 # lists of words
	(
		cd "$tree" || exit
		unset MAKEFLAGS MAKELEVEL ARGS WATCH
		make -j2 BUILD=build build/libfabric.a build/libfabric.so.1 $(printf 'build/t/%s ' $units $apis) >log 2>&1 &&
			BUILD=build HW="shm tcp" tests/run.sh $units $apis >log 2>&1
	) || failed=1
	[ $failed = 0 ] || { echo "without $*:" && tail -n 20 "$tree/log"; }
	echo "without $*: $(tail -n 1 "$tree/log")"
	return $failed
}

status=0
for option in "${options[@]}"; do
	without "$option" || status=1
done
without "${options[@]}" || status=1
exit $status
