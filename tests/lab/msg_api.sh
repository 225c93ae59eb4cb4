#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# TIMEOUT=400
# API tests of two processes on bare queue pairs: those that tests/api/msg.sh runs over other
# transports, as far as a device supports them. Left out besides:
#     tags, peek, flood, threads   no tags, and no unexpected messages
#     multi_recv, truncate         a receive takes one message; a too long one ends the connection (lab_msg_forms)
#     cancel                       posted operations cannot be cancelled: refused (lab_msg_more)
#     rma_denied, rma_keys         a wrong key ends the connection (lab_msg_forms); the device chooses keys
#     rma_events, rma_pmem         devices report neither remote accesses nor commits
#     rma_contexts, rma_many       scalable endpoints; eight threads are too slow under emulation
#     cm_limits, cm_more           port ranges of TCP, and features of the engine: contexts, deferred work
#     of cm_ends: last-words       sends not confirmed at the end of a connection are lost
#     of cm_errors: no-way         the connection manager asks a broadcast address like any other
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
unset EP # these connect on their own
run cm data data-size small-buffer names crowd backlog often
run cm_names listener reserved again wildcard active-name taken-over no-room
run cm_errors to-nobody rejected unanswered orphan given-up once rejected-late senseless before other-kind
run cm_ends shutdown close attempt unread under-way killed killed-early
run cm_limits forked
run cm_waits asleep idle completions-only completions-asleep events-only nothing-read threads threads-domain threads-auto
