#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs compiled and linked against the distribution's libfabric 1.17 run on this library
# unchanged. The headers are fetched into the build folder and not installed; only the compiler
# reads them.
# TIMEOUT=120
. "$(dirname "$0")/ours.bash"
need apt-get dpkg-deb
cc=${CC:-cc}
old=$BUILD/old
reference=$(ldconfig -p | awk '$1 == "libfabric.so.1" { print $NF; exit }')
[ -n "$reference" ] || skip "libfabric1 is not installed"

if [ ! -d "$old/usr/include/rdma" ]; then
	mkdir -p "$old"
	(cd "$old" && timeout 60 apt-get download libfabric-dev) >"$work/apt" 2>&1 ||
		skip "libfabric-dev can not be fetched: $(tail -n 1 "$work/apt")"
	dpkg-deb -x "$old"/libfabric-dev_*.deb "$old"
fi

for source in tests/bench/client.c examples/rdm_pingpong.c; do
	$cc -std=gnu11 -O2 -w -fno-diagnostics-show-caret -I"$old/usr/include" \
		-o "$work/$(basename "$source" .c)" "$source" "$reference" || fail "$source does not compile"
done

export LD_LIBRARY_PATH=$BUILD
for provider in weft shm; do
	timeout 50 "$work/client" $provider lat 8 1000 65536 1000000 || fail "client $provider lat"
	timeout 50 "$work/client" -i $provider rate 8 || fail "client $provider rate"
	next_port
	start timeout 50 "$work/rdm_pingpong" -p $provider -P $port 127.0.0.1
	sleep 0.5
	assert_ours "$(pgrep -P "$pid" -x rdm_pingpong)"
	timeout 50 "$work/rdm_pingpong" -p $provider -P $port -c 127.0.0.1 || fail "rdm_pingpong $provider"
	wait "$pid" || fail "rdm_pingpong $provider: the server"
done
