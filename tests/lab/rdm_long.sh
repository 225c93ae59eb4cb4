#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The receiver's device reads long messages: data is correct, few packets are sent on their own, and
# a process that cancels, closes or dies in the middle leaves the memory of others unchanged.
# TIMEOUT=150
. "$(dirname "$0")/lab.bash"
need ip rdma
interface=()
for n in 0 1; do interface+=("$(ip -o -4 addr show to "${address[n]}" | awk '{ print $2; exit }')"); done
export LD_LIBRARY_PATH=$BUILD

# sends: prints the sends that devices have answered, if they count these.
sends() {
	cat /sys/class/infiniband/*/ports/1/hw_counters/rdma_sends 2>/dev/null | paste -sd+ | bc
}

objects() {
	rdma resource show | sed 's/ctx [0-9]*//'
}

# long CASE: runs it; sets $sent.
long() {
	local before
	before=$(sends)
	timeout 60 "$BUILD/t/lab_rdm_long" "$1" "${interface[@]}" >"$work/out" 2>&1 || fail "$1: $(cat "$work/out")"
	sent=$(($(sends) - before))
	echo "$1: ${sent} sends; $(paste -sd';' "$work/out")"
}

before=$(objects)
long data
[ "$sent" -lt 500 ] || fail "in packets"
long many
[ "$sent" -lt 500 ] || fail "in packets"
long cancel
[ "$sent" -lt 100 ] || fail "in packets"
long close
grep -q 'the send ended: ' "$work/out" || fail "the sender was not told"
long kill
grep -q 'the receive ended: ' "$work/out" || fail "the receiver was not told"

gone() {
	[ "$(objects)" = "$before" ]
}
within 10 gone || fail "left behind: $(objects), before: $before"
