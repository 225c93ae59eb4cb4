#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The library works where RDMA devices exist: an independent program lists its providers, and an
# endpoint of any type needs little memory. A device is opened before the first message only if no
# other transport is possible.
. "$(dirname "$0")/lab.bash"
info=/usr/bin/fi_info
need $info
most=64 # MiB of a process with an endpoint

export LD_LIBRARY_PATH=$BUILD
timeout 30 $info >"$work/info" 2>&1 || fail "fi_info: $(cat "$work/info")"
[ "$(sed -n '1s/^provider: //p' "$work/info")" = weft ] || fail "the first entry is: $(head -n 1 "$work/info")"
for provider in weft tcp shm udp; do
	grep -qx "provider: $provider" "$work/info" || fail "fi_info does not list $provider: $(cat "$work/info")"
done
echo "fi_info: $(sed -n 's/^provider: //p' "$work/info" | sort | uniq -c | paste -sd, | tr -s ' ')"

for which in 'weft rdm' 'verbs;ofi_rxm rdm' 'verbs msg' 'verbs dgram'; do
	timeout 30 "$BUILD/t/lab_endpoint" $most "${which% *}" "${which#* }" >"$work/endpoint" 2>&1 ||
		fail "$which: $(cat "$work/endpoint")"
	cat "$work/endpoint"
	grep -q ', devices: 0$' "$work/endpoint" && [ "$which" != 'weft rdm' ] && fail "$which: no device is open"
done
grep -q ', 0 KiB of them pinned' "$work/endpoint" && fail "nothing of a queue pair's slots is pinned, it says"
timeout 30 "$BUILD/t/lab_endpoint" $most >"$work/endpoint" 2>&1 || fail "$(cat "$work/endpoint")"
! timeout 30 "$BUILD/t/lab_endpoint" 1 >"$work/endpoint" 2>&1 || fail "1 MiB is enough, it says: $(cat "$work/endpoint")"
