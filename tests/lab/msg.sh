#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two connected endpoints of the provider "verbs", with every form of operation.
# TIMEOUT=240 KERNELS=all
. "$(dirname "$0")/lab.bash"
need rdma
objects() {
	rdma resource show | sed 's/ctx [0-9]*//'
}

before=$(objects)
for program in forms:10 more:12; do
	timeout 100 "$BUILD/t/lab_msg_${program%:*}" "${address[0]}" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
	[ "$(grep -c ': done$' "$work/out")" -eq "${program#*:}" ] || fail "not all cases: $(cat "$work/out")"
	cat "$work/out"
	[ "$(objects)" = "$before" ] || fail "left behind: $(objects), before: $before"
done
