#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The device's error for memory that it refuses, or that belongs to another device, is returned
# unchanged.
. "$(dirname "$0")/lab.bash"
need rdma

before=$(rdma resource show)
timeout 30 "$BUILD/t/lab_msg_memory" "${address[0]}" "${device[0]}" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
cat "$work/out"
[ "$(rdma resource show)" = "$before" ] || fail "left behind: $(rdma resource show), before: $before"
