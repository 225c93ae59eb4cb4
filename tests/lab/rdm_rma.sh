#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# One-sided operations with keys chosen by the library are done by the devices: the target makes no
# calls, order holds, invalid operations fail without affecting others, and nothing is written to
# memory whose registration was closed.
# TIMEOUT=200 KERNELS=all
. "$(dirname "$0")/lab.bash"
need ip rdma
interface=()
for n in 0 1; do interface+=("$(ip -o -4 addr show to "${address[n]}" | awk '{ print $2; exit }')"); done
export LD_LIBRARY_PATH=$BUILD

objects() {
	rdma resource show | sed 's/ctx [0-9]*//'
}

before=$(objects)
for case in alone order wrong counts close kill; do
	began=$SECONDS
	timeout 90 "$BUILD/t/lab_rdm_rma" $case "${interface[@]}" >"$work/out" 2>&1 || fail "$case: $(cat "$work/out")"
	echo "$case: $((SECONDS - began)) s; $(paste -sd';' "$work/out")"
done
grep -q 'a write ended: ' "$work/out" || fail "the writer was not told"

gone() {
	[ "$(objects)" = "$before" ]
}
within 10 gone || fail "left behind: $(objects), before: $before"
