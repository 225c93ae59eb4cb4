#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What was accepted arrives, whatever its sender does next, over RDMA: tests/fault/accepted.c, between endpoints of one
# device.
# TIMEOUT=240
. "$(dirname "$0")/lab.bash"

HW='verbs;ofi_rxm' LD_LIBRARY_PATH=$BUILD timeout 220 "$BUILD/t/fault_accepted" 2 >"$work/out" 2>&1 ||
	fail "status $?: $(cat "$work/out")"
