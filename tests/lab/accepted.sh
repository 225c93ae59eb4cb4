#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What was accepted arrives, whatever its sender does next, over RDMA: tests/fault/accepted.c, between endpoints of one
# device. What is injected by fi_inject_write (the fourth operation, from 0 on) goes as a message, and as the devices'
# own affair.
# TIMEOUT=240
. "$(dirname "$0")/lab.bash"

# accepted PROGRAM ARGUMENT...
accepted() {
	HW='verbs;ofi_rxm' LD_LIBRARY_PATH=$BUILD timeout 110 "$BUILD/t/$1" "${@:2}" >"$work/out" 2>&1 ||
		fail "$*: status $?: $(cat "$work/out")"
}

accepted fault_accepted 2
accepted lab_accepted_keys 4 -1 4
