#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The API's tests of transfers between two processes on bare queue pairs: what tests/api/msg.sh runs on connected endpoints
# of other transports, as far as a device does it. Left out, beside what is left out there:
#     tags, peek, flood, threads   there are no tags, and a message that nobody waits for stays with its sender
#     multi_recv, truncate         a receive is one message's; one that is too long ends the connection (lab_msg_forms)
#     cancel                       what the device has it keeps: refused (lab_msg_more)
#     rma_denied, rma_keys         a wrong key ends the connection (lab_msg_forms), keys are the device's
#     rma_events, rma_pmem         the device tells nobody of what it does, nor the kernel
#     rma_contexts, rma_many       scalable endpoints; eight threads under emulation do not get through in time
#     cm_names, cm_errors, cm_waits, cm_limits, cm_more
#                                  addresses of 127.0.0.1, where there is no device, TCP's port numbers and the engine's
#                                  contexts and deferred work (connecting: lab_peer, lab_msg_foreign)
#     atomic...                    of atomics there are two, and a write (lab_msg_forms, lab_msg_more)
# TIMEOUT=300
. "$(dirname "$0")/lab.bash"
export EP=msg HW=verbs

# run PROGRAM CASE...: each of them is run and passes.
run() {
	local name program=$1
	shift
	timeout 120 "$BUILD/t/api_$program" "$@" >"$work/out" 2>&1 || fail "api_$program: $(cat "$work/out")"
	for name in "$@"; do
		grep -q "^ok  *$name " "$work/out" || fail "api_$program: $name was not run: $(cat "$work/out")"
	done
	echo "$program: $(grep '^ok ' "$work/out" | cut -c6- | paste -sd,)"
}

run forms forms flags pieces nothing
run sizes whole gathered scattered both
run order order overtake
run completions selective defaults overflow count-zero
run levels delivery delivery-late delivery-default reuse reuse-first more
run rma forms both_sleep pieces flags injected_is_copied inject_default nothing
run rma_complete injected selective asked_by_default told flood
run rma_crossing reads
run rma_order fenced send_after_write delivered fenced_write
unset EP # those that connect by themselves
run cm data data-size small-buffer names crowd backlog often
run cm_ends close attempt unread
