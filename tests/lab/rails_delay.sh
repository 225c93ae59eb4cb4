#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Rails over TCP on wires that delay packets, change their order or their bytes, or send them twice: the guest's kernel can,
# others often cannot.
# TIMEOUT=120
. "$(dirname "$0")/../client/ours.bash"
export HW=tcp LD_LIBRARY_PATH=$BUILD
timeout 330 "$BUILD/t/fault_rails_delay" ${FEWER:+4} >"$work/out" 2>&1
status=$?
cat "$work/out"
[ $status -ne 77 ] || ${LAB_GUEST:+fail} skip "$(cat "$work/out")"
[ $status -eq 0 ] || fail "status $status"
