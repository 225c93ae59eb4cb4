#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# TIMEOUT=400
# The API's tests of transfers between two processes on bare queue pairs: what tests/api/msg.sh runs on connected endpoints
# of other transports, as far as a device does it. Left out, beside what is left out there:
#     tags, peek, flood, threads   there are no tags, and a message that nobody waits for stays with its sender
#     multi_recv, truncate         a receive is one message's; one that is too long ends the connection (lab_msg_forms)
#     cancel                       what the device has it keeps: refused (lab_msg_more)
#     rma_denied, rma_keys         a wrong key ends the connection (lab_msg_forms), keys are the device's
#     rma_events, rma_pmem         the device tells nobody of what it does, nor the kernel
#     rma_contexts, rma_many       scalable endpoints; eight threads under emulation do not get through in time
#     cm_limits, cm_more           ranges of TCP's port numbers, and what is the engine's: contexts, deferred work
#     of cm_ends: last-words       what was not confirmed when a connection ends is lost with it
#     of cm_errors: no-way         the connection manager asks at a broadcast address like at any
. "$(dirname "$0")/api.bash"
export EP=msg

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
run cm_names listener reserved again wildcard active-name taken-over no-room
run cm_errors to-nobody rejected unanswered orphan given-up once rejected-late senseless before other-kind
run cm_ends shutdown close attempt unread under-way killed killed-early
run cm_limits forked
run cm_waits asleep idle completions-only completions-asleep events-only nothing-read threads threads-domain threads-auto
