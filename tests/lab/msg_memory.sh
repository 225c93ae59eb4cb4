#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What a device says of memory that it does not take, or of another device's, comes back as it was said.
. "$(dirname "$0")/lab.bash"
need rdma

before=$(rdma resource show)
timeout 30 "$BUILD/t/lab_msg_memory" "${address[0]}" "${device[0]}" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
cat "$work/out"
[ "$(rdma resource show)" = "$before" ] || fail "left behind: $(rdma resource show), before: $before"
