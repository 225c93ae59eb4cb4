#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Accepted operations arrive over RDMA whatever their sender does next: tests/fault/accepted.c,
# between endpoints of one device. fi_inject_write (operation 4, counted from 0) goes as a message,
# and as a write by the devices.
# TIMEOUT=240
. "$(dirname "$0")/lab.bash"

# accepted PROGRAM ARGUMENT...
accepted() {
	HW='verbs;ofi_rxm' LD_LIBRARY_PATH=$BUILD timeout 110 "$BUILD/t/$1" "${@:2}" >"$work/out" 2>&1 ||
		fail "$*: status $?: $(cat "$work/out")"
}

accepted fault_accepted 2
accepted lab_accepted_keys 4 -1 4
